//! The cases as the files hold them. A field that is not known here is an error: none can be overlooked.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor};
use serde_json::{Map, Value};

use super::fill::Formula;

/// A number; `"nan"`, `"inf"`, `"-inf"` and `"-0"` are strings in JSON.
#[derive(Debug, Clone, Copy)]
pub struct Number(pub f64);

/// The number that a word stands for.
pub fn word(text: &str) -> Option<f64> {
    match text {
        "nan" => Some(f64::NAN),
        "inf" => Some(f64::INFINITY),
        "-inf" => Some(f64::NEG_INFINITY),
        "-0" => Some(-0.0),
        _ => None,
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AnyNumber;
        impl Visitor<'_> for AnyNumber {
            type Value = Number;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number, or one of the words nan, inf, -inf, -0")
            }
            fn visit_f64<E>(self, x: f64) -> Result<Number, E> {
                Ok(Number(x))
            }
            fn visit_i64<E>(self, x: i64) -> Result<Number, E> {
                Ok(Number(x as f64))
            }
            fn visit_u64<E>(self, x: u64) -> Result<Number, E> {
                Ok(Number(x as f64))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
                word(text).map(Number).ok_or_else(|| E::custom(format!("{text:?} is no number")))
            }
        }
        from.deserialize_any(AnyNumber)
    }
}

/// A formula over the flat index.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    #[serde(deserialize_with = "formula")]
    pub fill: Formula,
}

/// Some of the elements, with their places.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    pub samples: Vec<(usize, Number)>,
}

fn formula<'de, D: Deserializer<'de>>(from: D) -> Result<Formula, D::Error> {
    Formula::parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn optional_formula<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Formula>, D::Error> {
    formula(from).map(Some)
}

/// The elements of a tensor, all or some.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Elements {
    All(Vec<Number>),
    Fill(Fill),
    Some(Samples),
}

impl Elements {
    fn one_of(
        data: Option<Vec<Number>>,
        fill: Option<Formula>,
        samples: Option<Vec<(usize, Number)>>,
    ) -> Result<Self, String> {
        match (data, fill, samples) {
            (Some(data), None, None) => Ok(Self::All(data)),
            (None, Some(fill), None) => Ok(Self::Fill(Fill { fill })),
            (None, None, Some(samples)) => Ok(Self::Some(Samples { samples })),
            _ => Err("exactly one of data, fill and samples".into()),
        }
    }

    /// The `n` elements; `None` when only some are known.
    pub fn all(&self, n: usize) -> Option<Vec<f64>> {
        match self {
            Self::All(data) => Some(data.iter().map(|x| x.0).collect()),
            Self::Fill(f) => Some((0..n).map(|i| f.fill.at(i as f64)).collect()),
            Self::Some(_) => None,
        }
    }
}

/// `{"slice": [...]}`: one step of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slice {
    pub dim: isize,
    pub start: isize,
    pub end: isize,
    #[serde(default = "one")]
    pub step: isize,
}

fn one() -> isize {
    1
}

/// A view to build from the created tensor.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum View {
    Transpose(isize, isize),
    Expand(Vec<isize>),
    Slice(Vec<Slice>),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(View),
    Many(Vec<View>),
}

/// An input.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawInput")]
pub struct Input {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<usize>,
    pub elements: Elements,
    pub layout: Vec<View>,
    pub grad: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawInput {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    data: Option<Vec<Number>>,
    #[serde(default, deserialize_with = "optional_formula")]
    fill: Option<Formula>,
    layout: Option<OneOrMany>,
    #[serde(default)]
    grad: bool,
}

impl TryFrom<RawInput> for Input {
    type Error = String;
    fn try_from(raw: RawInput) -> Result<Self, String> {
        let layout = match raw.layout {
            None => vec![],
            Some(OneOrMany::One(view)) => vec![view],
            Some(OneOrMany::Many(views)) => views,
        };
        let elements = Elements::one_of(raw.data, raw.fill, None)?;
        Ok(Self { name: raw.name, dtype: raw.dtype, shape: raw.shape, elements, layout, grad: raw.grad })
    }
}

/// An expected output.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "RawOutput")]
pub struct Output {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<usize>,
    pub elements: Elements,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOutput {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    data: Option<Vec<Number>>,
    #[serde(default, deserialize_with = "optional_formula")]
    fill: Option<Formula>,
    samples: Option<Vec<(usize, Number)>>,
}

impl TryFrom<RawOutput> for Output {
    type Error = String;
    fn try_from(raw: RawOutput) -> Result<Self, String> {
        let elements = Elements::one_of(raw.data, raw.fill, raw.samples)?;
        Ok(Self { name: raw.name, dtype: raw.dtype, shape: raw.shape, elements })
    }
}

/// One step of an optimizer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// The parameters' gradients.
    pub grads: BTreeMap<String, Elements>,
}

/// A call of a graph.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphStep {
    pub out: String,
    pub op: String,
    pub args: Vec<GraphArgument>,
    #[serde(default)]
    pub attrs: Map<String, Value>,
}

/// A tensor's name, or a number that stands for a scalar.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum GraphArgument {
    Scalar(f64),
    Name(String),
}

/// A case.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Case {
    pub id: String,
    pub op: String,
    pub inputs: Vec<Input>,
    #[serde(default)]
    pub attrs: Map<String, Value>,
    #[serde(default)]
    pub outputs: Vec<Output>,
    pub upstream: Option<Vec<Option<Elements>>>,
    #[serde(default)]
    pub grads: BTreeMap<String, Elements>,
    #[serde(default)]
    pub steps: Vec<Step>,
    #[serde(default)]
    pub rtol: f64,
    #[serde(default)]
    pub atol: f64,
    pub cpu_rtol: Option<f64>,
    pub cpu_atol: Option<f64>,
    pub grad_rtol: Option<f64>,
    pub grad_atol: Option<f64>,
    #[serde(default)]
    pub signed_zero: bool,
    pub repeat: Option<usize>,
    pub error: Option<String>,
    pub why: Option<String>,
}

impl Case {
    /// The calls of a graph.
    ///
    /// # Errors
    /// What is wrong with `attrs.steps`.
    pub fn graph_steps(&self) -> Result<Vec<GraphStep>, String> {
        let steps = self.attrs.get("steps").cloned().unwrap_or_default();
        serde_json::from_value(steps).map_err(|e| format!("steps: {e}"))
    }

    /// How often a graph's backward is called.
    pub fn backwards(&self) -> usize {
        self.attrs.get("backwards").and_then(Value::as_u64).map_or(1, |n| n as usize)
    }
}
