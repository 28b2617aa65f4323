//! Runs one case on an engine.

use std::collections::BTreeMap;

use wgrad::optim::AdamW;
use wgrad::{DType, Engine, HostData, Tensor};

use super::compare::{Tolerance, compare, same_bits};
use super::format::{Case, Elements, GraphArgument, Input, View};
use super::ops::{Attributes, Operands, lookup, operand_names};

type Outcome<T> = Result<T, String>;

fn say(what: &str) -> impl Fn(wgrad::Error) -> String + '_ {
    move |e| format!("{what}: {} {e}", e.kind().code())
}

/// The elements as they travel to the engine, rounded to `dtype` once.
fn host(elements: &Elements, n: usize, dtype: DType) -> Outcome<HostData> {
    let values = elements.all(n).ok_or("samples are no input")?;
    Ok(match dtype {
        DType::F32 => HostData::F32(values.iter().map(|&x| x as f32).collect()),
        DType::F16 => HostData::F32(values.iter().map(|&x| half::f16::from_f64(x).to_f32()).collect()),
        DType::I32 => HostData::I32(values.iter().map(|&x| x as i32).collect()),
        DType::U32 | DType::Bool => HostData::U32(values.iter().map(|&x| x as u32).collect()),
    })
}

fn make(engine: &Engine, elements: &Elements, shape: &[usize], dtype: &str) -> Outcome<Tensor> {
    let dtype = DType::from_name(dtype).ok_or_else(|| format!("dtype {dtype}"))?;
    let data = host(elements, shape.iter().product(), dtype)?;
    engine.tensor_from(data, shape, dtype).map_err(say("tensor"))
}

fn leaf(engine: &Engine, input: &Input) -> Outcome<Tensor> {
    let mut t = make(engine, &input.elements, &input.shape, &input.dtype)?;
    t.set_requires_grad(input.grad).map_err(say("requiresGrad"))?;
    Ok(t)
}

fn view(leaf: &Tensor, layout: &[View]) -> wgrad::Result<Tensor> {
    layout.iter().try_fold(leaf.clone(), |t, step| match step {
        View::Transpose(a, b) => t.transpose(*a, *b),
        View::Expand(shape) => t.expand(shape),
        View::Slice(slices) => slices.iter().try_fold(t, |t, s| t.slice(s.dim, s.start, s.end, s.step)),
    })
}

struct Runner<'a> {
    engine: &'a Engine,
    case: &'a Case,
    problems: Vec<String>,
    /// Every result, for the comparison of two runs.
    results: Vec<HostData>,
}

impl Runner<'_> {
    fn tolerance(&self) -> (f64, f64) {
        let c = self.case;
        match (c.cpu_rtol, c.cpu_atol) {
            (Some(relative), Some(absolute)) if self.engine.device() == "cpu" => (relative, absolute),
            _ => (c.rtol, c.atol),
        }
    }

    fn grad_tolerance(&self) -> (f64, f64) {
        self.case.grad_rtol.zip(self.case.grad_atol).unwrap_or_else(|| self.tolerance())
    }

    /// Holds a result against its expectation and keeps it.
    async fn check(
        &mut self,
        label: &str,
        t: &Tensor,
        shape: &[usize],
        dtype: &str,
        want: &Elements,
    ) -> Outcome<()> {
        let gradient = label.starts_with("grad of");
        let (relative, absolute) = if gradient { self.grad_tolerance() } else { self.tolerance() };
        if **t.shape() != *shape {
            self.problems.push(format!("{label}: shape {}, expected {shape:?}", t.shape()));
            return Ok(());
        }
        let fits = match (t.dtype().name(), dtype) {
            ("u32", "i32") => true,
            ("f32", "f16") => gradient,
            (got, want) => got == want,
        };
        if !fits {
            self.problems.push(format!("{label}: {}, expected {dtype}", t.dtype()));
        }
        let signed_zero = self.case.signed_zero && !gradient;
        let tolerance = Tolerance { relative, absolute, signed_zero, half: dtype == "f16" };
        let data = t.data().await.map_err(say(label))?;
        if let (HostData::F32(v), DType::F16) = (&data, t.dtype()) {
            // What is held as f32, for want of f16, must be rounded all the same.
            let rounded = |x: f32| x.is_nan() || half::f16::from_f32(x).to_f32().to_bits() == x.to_bits();
            if let Some(x) = v.iter().find(|&&x| !rounded(x)) {
                self.problems.push(format!("{label}: {x:e} is no f16"));
            }
        }
        if let Err(message) = compare(&data, want, shape.iter().product(), tolerance) {
            self.problems.push(format!("{label}{message}"));
        }
        self.results.push(data);
        Ok(())
    }

    /// The result of the case's calls.
    fn call(&self, views: &[Tensor]) -> wgrad::Result<Outcome<Tensor>> {
        let named = || self.case.inputs.iter().map(|i| i.name.clone()).zip(views.iter().cloned());
        if self.case.op != "graph" {
            let attributes = Attributes::new(&self.case.attrs);
            let call = lookup(&self.case.op).expect("the case is supported");
            let out = call(&Operands::new(named()), &attributes)?;
            return Ok(attributes.all_seen().map(|()| out));
        }
        let mut values: BTreeMap<String, Tensor> = named().collect();
        let steps = match self.case.graph_steps() {
            Ok(steps) => steps,
            Err(e) => return Ok(Err(e)),
        };
        for step in &steps {
            let names = operand_names(&step.op, step.args.len());
            let mut operands = Vec::new();
            for (argument, name) in step.args.iter().zip(names) {
                let t = match argument {
                    GraphArgument::Name(name) => values[name].clone(),
                    GraphArgument::Scalar(x) => self.engine.full(&[], *x, views[0].dtype())?,
                };
                operands.push(((*name).to_owned(), t));
            }
            let attributes = Attributes::new(&step.attrs);
            let out =
                lookup(&step.op).expect("the case is supported")(&Operands::new(operands), &attributes)?;
            if let Err(e) = attributes.all_seen() {
                return Ok(Err(e));
            }
            values.insert(step.out.clone(), out);
        }
        Ok(values.remove("out").ok_or_else(|| "a graph's result is out".into()))
    }

    /// The call, or the reading of its result, must fail with the right error.
    async fn expect_error(&mut self, views: &[Tensor], code: &str) -> Outcome<()> {
        let error = match self.call(views) {
            Ok(out) => out?.data().await.err(),
            Err(e) => Some(e),
        };
        match error {
            None => self.problems.push(format!("did not fail, expected {code}")),
            Some(e) if e.kind().code() != code => {
                self.problems.push(format!("{}, expected {code}: {e}", e.kind().code()));
            }
            Some(_) => {}
        }
        Ok(())
    }

    async fn optimize(&mut self, leaves: &[Tensor]) -> Outcome<()> {
        let case = self.case;
        let attributes = Attributes::new(&case.attrs);
        let mut optimizer = AdamW::new(leaves.to_vec(), attributes.adamw()).map_err(say("adamw"))?;
        attributes.all_seen()?;
        for (k, step) in case.steps.iter().enumerate() {
            optimizer.zero_grad();
            for (input, parameter) in case.inputs.iter().zip(leaves) {
                // The gradient of sum(p · g) with respect to p is g.
                let g = make(self.engine, &step.grads[&input.name], &input.shape, "f32")?;
                let loss = parameter.mul(&g).and_then(|t| t.sum(None, false)).map_err(say("loss"))?;
                loss.backward(None, false).map_err(say("backward"))?;
            }
            optimizer.step().map_err(say("step"))?;
            for (input, parameter) in case.inputs.iter().zip(leaves) {
                let name = format!("{}@{}", input.name, k + 1);
                let want = case
                    .outputs
                    .iter()
                    .find(|o| o.name == name)
                    .ok_or_else(|| format!("no output {name}"))?;
                self.check(&name, parameter, &want.shape, &want.dtype, &want.elements).await?;
            }
        }
        Ok(())
    }

    async fn backward(&mut self, out: &Tensor, leaves: &[Tensor]) -> Outcome<()> {
        let case = self.case;
        let Some(upstream) = &case.upstream else { return Ok(()) };
        let [Some(upstream)] = upstream.as_slice() else { return Err("one output has one upstream".into()) };
        let want = &case.outputs[0];
        let times = case.backwards();
        for n in 1..=times {
            let up = make(self.engine, upstream, &want.shape, &want.dtype)?;
            out.backward(Some(&up), n < times).map_err(say("backward"))?;
        }
        for (name, elements) in &case.grads {
            let place =
                case.inputs.iter().position(|i| i.name == *name).ok_or_else(|| format!("no input {name}"))?;
            let input = &case.inputs[place];
            let label = format!("grad of {name}");
            match leaves[place].grad() {
                None => self.problems.push(format!("{label}: missing")),
                Some(g) => self.check(&label, &g, &input.shape, &input.dtype, elements).await?,
            }
        }
        if times > 1 {
            for (input, leaf) in case.inputs.iter().zip(leaves) {
                let before = host(&input.elements, input.shape.iter().product(), leaf.dtype())?;
                if !same_bits(&leaf.data().await.map_err(say("data"))?, &before) {
                    self.problems.push(format!("input {} changed", input.name));
                }
            }
        }
        Ok(())
    }

    async fn run(&mut self) -> Outcome<()> {
        let case = self.case;
        let leaves = case.inputs.iter().map(|i| leaf(self.engine, i)).collect::<Outcome<Vec<_>>>()?;
        if case.op == "adamw" {
            return self.optimize(&leaves).await;
        }
        let views = case
            .inputs
            .iter()
            .zip(&leaves)
            .map(|(i, t)| view(t, &i.layout))
            .collect::<wgrad::Result<Vec<_>>>();
        let views = views.map_err(say("layout"))?;
        if let Some(code) = &case.error {
            return self.expect_error(&views, code).await;
        }
        let out = self.call(&views).map_err(say(&case.op))??;
        let [want] = case.outputs.as_slice() else { return Err("has several outputs".into()) };
        self.check(&want.name, &out, &want.shape, &want.dtype, &want.elements).await?;
        self.backward(&out, &leaves).await
    }
}

/// Runs a case, as often as it says.
///
/// # Errors
/// The case's id, and what is wrong: the output, the index, what came and what was expected.
pub async fn run(engine: &Engine, case: &Case) -> Outcome<()> {
    let mut before: Option<Vec<HostData>> = None;
    for _ in 0..case.repeat.unwrap_or(1) {
        let mut runner = Runner { engine, case, problems: vec![], results: vec![] };
        if let Err(message) = runner.run().await {
            runner.problems.push(message);
        }
        let results = runner.results;
        let same =
            |a: &[HostData]| a.len() == results.len() && a.iter().zip(&results).all(|(a, b)| same_bits(a, b));
        if runner.problems.is_empty() && !before.as_deref().is_none_or(same) {
            runner.problems.push("results differ between runs".into());
        }
        if !runner.problems.is_empty() {
            let why = case.why.as_ref().map_or(String::new(), |w| format!(" ({w})"));
            return Err(format!("{}: {}{why}", case.id, runner.problems.join("; ")));
        }
        before = Some(results);
    }
    Ok(())
}
