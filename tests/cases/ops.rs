//! The operations that cases name, as calls of the Rust API.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use wgrad::optim::AdamWOptions;
use wgrad::{Approximate, CrossEntropy, Reduction, Result, Tensor};

use super::format::{Case, word};

/// The attributes of a call. Every one must be looked at: one that a call ignores is a fault of the table.
pub struct Attributes<'a> {
    all: &'a Map<String, Value>,
    seen: RefCell<BTreeSet<&'a str>>,
}

impl<'a> Attributes<'a> {
    pub fn new(all: &'a Map<String, Value>) -> Self {
        Self { all, seen: RefCell::default() }
    }

    fn get(&self, name: &str) -> Option<&'a Value> {
        let (key, value) = self.all.get_key_value(name)?;
        self.seen.borrow_mut().insert(key);
        (!value.is_null()).then_some(value)
    }

    fn number(&self, name: &str) -> Option<f64> {
        let value = self.get(name)?;
        Some(
            value
                .as_f64()
                .or_else(|| value.as_str().and_then(word))
                .unwrap_or_else(|| panic!("{name}: {value}")),
        )
    }

    fn integer(&self, name: &str) -> Option<isize> {
        let value = self.get(name)?;
        Some(value.as_i64().unwrap_or_else(|| panic!("{name}: {value}")) as isize)
    }

    /// A list, or one number as a list.
    fn integers(&self, name: &str) -> Option<Vec<isize>> {
        let value = self.get(name)?;
        let list = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
        let integer = |v: &Value| v.as_i64().unwrap_or_else(|| panic!("{name}: {value}")) as isize;
        Some(list.iter().map(integer).collect())
    }

    fn sizes(&self, name: &str) -> Option<Vec<usize>> {
        self.integers(name).map(|list| list.iter().map(|&d| d as usize).collect())
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.get(name).and_then(Value::as_str)
    }

    fn approximate(&self) -> Approximate {
        match self.text("approximate") {
            None | Some("none") => Approximate::None,
            Some("tanh") => Approximate::Tanh,
            Some(other) => panic!("approximate: {other}"),
        }
    }

    fn cross_entropy(&self) -> CrossEntropy {
        let default = CrossEntropy::default();
        CrossEntropy {
            reduction: match self.text("reduction") {
                None | Some("mean") => Reduction::Mean,
                Some("sum") => Reduction::Sum,
                Some("none") => Reduction::None,
                Some(other) => panic!("reduction: {other}"),
            },
            ignore_index: self.integer("ignoreIndex").map_or(default.ignore_index, |k| k as i32),
            label_smoothing: self.number("labelSmoothing").map_or(default.label_smoothing, |x| x as f32),
        }
    }

    /// The options of `AdamW`.
    pub fn adamw(&self) -> AdamWOptions {
        let default = AdamWOptions::default();
        let betas = self.get("betas").map(|v| {
            let list: Vec<f64> = v.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
            (list[0], list[1])
        });
        AdamWOptions {
            lr: self.number("lr").unwrap_or(default.lr),
            betas: betas.unwrap_or(default.betas),
            eps: self.number("eps").unwrap_or(default.eps),
            weight_decay: self.number("weightDecay").unwrap_or(default.weight_decay),
        }
    }

    /// Fails when an attribute was not looked at.
    ///
    /// # Errors
    /// The attribute.
    pub fn all_seen(&self) -> std::result::Result<(), String> {
        let seen = self.seen.borrow();
        self.all
            .keys()
            .find(|k| !seen.contains(k.as_str()))
            .map_or(Ok(()), |k| Err(format!("attribute {k} was ignored")))
    }
}

/// The operands of a call.
pub struct Operands {
    named: BTreeMap<String, Tensor>,
    in_order: Vec<Tensor>,
}

impl Operands {
    pub fn new(operands: impl IntoIterator<Item = (String, Tensor)>) -> Self {
        let operands: Vec<_> = operands.into_iter().collect();
        Self {
            in_order: operands.iter().map(|(_, t)| t.clone()).collect(),
            named: operands.into_iter().collect(),
        }
    }

    fn named(&self, name: &str) -> Option<&Tensor> {
        self.named.get(name)
    }
}

/// A call. Its operands come in the order of the case.
pub type Call = fn(&Operands, &Attributes<'_>) -> Result<Tensor>;

/// The names that positional operands of a graph's step have.
pub fn operand_names(op: &str, count: usize) -> &'static [&'static str] {
    match (op, count) {
        ("linear" | "layerNorm", _) => &["x", "weight", "bias"],
        ("crossEntropy", _) => &["x", "target"],
        (_, 1) => &["x"],
        _ => &["a", "b"],
    }
}

macro_rules! unary {
    ($method:ident) => {
        |t, _| t.in_order[0].$method()
    };
}

macro_rules! binary {
    ($method:ident) => {
        |t, _| t.in_order[0].$method(&t.in_order[1])
    };
}

/// The call that an operation of the cases is; `None` when there is none yet.
pub fn lookup(op: &str) -> Option<Call> {
    Some(match op {
        "siluMul" => binary!(silu_mul),
        "reluMul" => binary!(relu_mul),
        "sigmoidMul" => binary!(sigmoid_mul),
        "geluMul" => |t, a| t.in_order[0].gelu_mul(&t.in_order[1], a.approximate()),
        "swiglu" => unary!(swiglu),
        "reglu" => unary!(reglu),
        "glu" => unary!(glu),
        "geglu" => |t, a| t.in_order[0].geglu(a.approximate()),
        "layerNorm" => |t, a| {
            let normalized = a.sizes("normalizedShape").expect("normalizedShape is always given");
            let eps = a.number("eps").unwrap_or(1e-5) as f32;
            t.in_order[0].layer_norm(&normalized, t.named("weight"), t.named("bias"), eps)
        },
        "matmul" => binary!(matmul),
        "linear" => |t, _| t.in_order[0].linear(&t.in_order[1], t.named("bias")),
        "add" => binary!(add),
        "sub" => binary!(sub),
        "mul" => binary!(mul),
        "div" => binary!(div),
        "sum" => |t, a| t.in_order[0].sum(a.integers("dim").as_deref(), a.flag("keepdim")),
        "mean" => |t, a| t.in_order[0].mean(a.integers("dim").as_deref(), a.flag("keepdim")),
        "crossEntropy" => |t, a| t.in_order[0].cross_entropy(&t.in_order[1], a.cross_entropy()),
        "reshape" => |t, a| t.in_order[0].reshape(&a.integers("shape").expect("a shape")),
        "transpose" => |t, a| {
            t.in_order[0]
                .transpose(a.integer("dim0").expect("a dimension"), a.integer("dim1").expect("a dimension"))
        },
        "permute" => |t, a| t.in_order[0].permute(&a.integers("dims").expect("dimensions")),
        "expand" => |t, a| t.in_order[0].expand(&a.integers("shape").expect("a shape")),
        "slice" => |t, a| {
            let (start, end) = (a.integer("start").unwrap_or(0), a.integer("end").unwrap_or(isize::MAX));
            t.in_order[0].slice(
                a.integer("dim").expect("a dimension"),
                start,
                end,
                a.integer("step").unwrap_or(1),
            )
        },
        "narrow" => |t, a| {
            let (start, length) =
                (a.integer("start").expect("a start"), a.integer("length").expect("a length"));
            t.in_order[0].narrow(a.integer("dim").expect("a dimension"), start, length as usize)
        },
        "squeeze" => |t, a| t.in_order[0].squeeze(a.integer("dim")),
        "unsqueeze" => |t, a| t.in_order[0].unsqueeze(a.integer("dim").expect("a dimension")),
        "flatten" => |t, a| {
            t.in_order[0].flatten(a.integer("startDim").unwrap_or(0), a.integer("endDim").unwrap_or(-1))
        },
        _ => return None,
    })
}

/// Whether the case can run: its operations exist, and take its element types.
pub fn supported(case: &Case) -> bool {
    let floats = case.inputs.iter().all(|t| {
        let target = case.op == "crossEntropy" && t.name == "target";
        matches!((t.dtype.as_str(), target), ("f32" | "f16", false) | ("i32", true))
    });
    floats
        && match case.op.as_str() {
            "adamw" => true,
            "graph" => case.graph_steps().is_ok_and(|steps| steps.iter().all(|s| lookup(&s.op).is_some())),
            op => lookup(op).is_some(),
        }
}
