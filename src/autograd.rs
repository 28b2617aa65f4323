//! The tape: what was computed from what, and how gradients flow back. It knows no operation and no device.
//!
//! Every recorded call is an [`Entry`] with the variables it read, the values its backward needs, and a function that
//! turns gradients of outputs into gradients of inputs. Entries are numbered as they are made, so walking them by
//! falling number is a topological order.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::rc::Rc;

use crate::error::{Error, Result};

/// What flows along the tape.
pub(crate) trait Value: Clone {
    /// The sum of two gradients of one variable.
    fn accumulate(&self, other: &Self) -> Result<Self>;
    /// Changes when the value is overwritten in place.
    fn version(&self) -> u32;
}

/// A value's place in the graph: a leaf that collects a gradient, or output `index` of an entry.
pub(crate) struct Variable<T: Value> {
    source: Option<(Rc<Entry<T>>, usize)>,
    gradient: RefCell<Option<T>>,
}

impl<T: Value> Variable<T> {
    /// A variable that the user made.
    pub fn leaf() -> Rc<Self> {
        Rc::new(Self { source: None, gradient: RefCell::new(None) })
    }

    /// Whether it is not the result of a recorded call.
    pub fn is_leaf(&self) -> bool {
        self.source.is_none()
    }

    pub fn gradient(&self) -> Option<T> {
        self.gradient.borrow().clone()
    }

    pub fn set_gradient(&self, gradient: Option<T>) {
        self.gradient.replace(gradient);
    }
}

/// What a backward function gets.
pub(crate) struct Backward<'a, T: Value> {
    /// The gradient of each output; `None` where no gradient arrived.
    pub upstream: &'a [Option<T>],
    /// What the call saved.
    pub saved: &'a [T],
    /// Which inputs need a gradient.
    pub wants: &'a [bool],
}

impl<T: Value> Backward<'_, T> {
    /// The gradient of the only output.
    pub fn dy(&self) -> &T {
        self.upstream[0].as_ref().expect("an entry is visited only when a gradient arrived")
    }
}

/// Gradients of outputs in, gradients of inputs out: one an input, `None` where there is none or it is not wanted.
pub(crate) type BackwardFn<T> = Box<dyn Fn(&Backward<'_, T>) -> Result<Vec<Option<T>>>>;

struct Saved<T> {
    value: T,
    version: u32,
}

/// A recorded call.
pub(crate) struct Entry<T: Value> {
    number: u64,
    op: &'static str,
    outputs: usize,
    inputs: RefCell<Vec<Option<Rc<Variable<T>>>>>,
    saved: RefCell<Option<Vec<Saved<T>>>>,
    /// The gradients of the outputs that have arrived in a backward that is on its way.
    upstream: RefCell<Vec<Option<T>>>,
    backward: BackwardFn<T>,
}

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
}

/// Records a call and returns the variables of its `outputs` outputs.
///
/// A saved value that is itself a variable must be among the inputs: only then can a graph of any length be freed
/// without recursion.
pub(crate) fn record<T: Value>(
    op: &'static str,
    inputs: Vec<Option<Rc<Variable<T>>>>,
    saved: Vec<T>,
    outputs: usize,
    backward: BackwardFn<T>,
) -> Vec<Rc<Variable<T>>> {
    let number = NEXT.with(|n| n.replace(n.get() + 1));
    let saved = saved.into_iter().map(|value| Saved { version: value.version(), value }).collect();
    let entry = Rc::new(Entry {
        number,
        op,
        outputs,
        inputs: RefCell::new(inputs),
        saved: RefCell::new(Some(saved)),
        upstream: RefCell::default(),
        backward,
    });
    (0..outputs)
        .map(|k| Rc::new(Variable { source: Some((Rc::clone(&entry), k)), gradient: RefCell::new(None) }))
        .collect()
}

/// An entry that gradients have arrived at; the latest call is the greatest.
struct Waiting<T: Value>(Rc<Entry<T>>);

impl<T: Value> Ord for Waiting<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.number.cmp(&other.0.number)
    }
}

impl<T: Value> PartialOrd for Waiting<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Value> PartialEq for Waiting<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.number == other.0.number
    }
}

impl<T: Value> Eq for Waiting<T> {}

/// A walk back through the graph.
struct Walk<T: Value> {
    waiting: BinaryHeap<Waiting<T>>,
    leaves: Vec<(Rc<Variable<T>>, T)>,
}

impl<T: Value> Drop for Walk<T> {
    /// A walk that failed leaves nothing behind in the entries.
    fn drop(&mut self) {
        for Waiting(entry) in self.waiting.drain() {
            entry.upstream.take();
        }
    }
}

impl<T: Value> Walk<T> {
    /// Adds a gradient to what has arrived at `variable`.
    fn arrive(&mut self, variable: &Rc<Variable<T>>, gradient: T) -> Result<()> {
        let Some((entry, index)) = &variable.source else {
            match self.leaves.iter_mut().find(|(leaf, _)| Rc::ptr_eq(leaf, variable)) {
                Some((_, sum)) => *sum = sum.accumulate(&gradient)?,
                None => self.leaves.push((Rc::clone(variable), gradient)),
            }
            return Ok(());
        };
        let mut upstream = entry.upstream.borrow_mut();
        if upstream.is_empty() {
            upstream.resize(entry.outputs, None);
            self.waiting.push(Waiting(Rc::clone(entry)));
        }
        let slot = &mut upstream[*index];
        *slot = Some(match slot.take() {
            Some(sum) => sum.accumulate(&gradient)?,
            None => gradient,
        });
        Ok(())
    }
}

/// Sends `upstream` back from `root` and adds what arrives to the leaves' gradients.
///
/// Nothing is added and nothing freed when any step fails: the call can be made again.
///
/// # Errors
/// `GradError` when the graph was already used up or a saved value was overwritten; whatever a backward returns.
pub(crate) fn backward<T: Value>(root: &Rc<Variable<T>>, upstream: T, retain: bool) -> Result<()> {
    let mut walk = Walk { waiting: BinaryHeap::new(), leaves: Vec::new() };
    let mut done = Vec::new();
    walk.arrive(root, upstream)?;
    while let Some(Waiting(entry)) = walk.waiting.pop() {
        let upstream = entry.upstream.take();
        let gradients = step(&entry, &upstream)?;
        let inputs = entry.inputs.borrow().clone();
        for (input, gradient) in inputs.iter().zip(gradients) {
            if let (Some(input), Some(gradient)) = (input, gradient) {
                walk.arrive(input, gradient)?;
            }
        }
        done.push(entry);
    }
    let sums = std::mem::take(&mut walk.leaves)
        .into_iter()
        .map(|(leaf, new)| {
            let sum = leaf
                .gradient
                .borrow()
                .as_ref()
                .map_or_else(|| Ok(new.clone()), |old| old.accumulate(&new))?;
            Ok((leaf, sum))
        })
        .collect::<Result<Vec<_>>>()?;
    for (leaf, sum) in sums {
        leaf.gradient.replace(Some(sum));
    }
    if !retain {
        for entry in done {
            entry.saved.replace(None);
        }
    }
    Ok(())
}

fn step<T: Value>(entry: &Entry<T>, upstream: &[Option<T>]) -> Result<Vec<Option<T>>> {
    let saved = entry.saved.borrow();
    let saved = saved.as_ref().ok_or_else(|| {
        Error::grad(
            "backward",
            format!(
                "the values saved by {} are gone after an earlier backward; pass retainGraph to it",
                entry.op
            ),
        )
    })?;
    if saved.iter().any(|s| s.value.version() != s.version) {
        return Err(Error::grad(
            "backward",
            format!(
                "a tensor that {} needs was changed in place after the call; do the change after backward",
                entry.op
            ),
        ));
    }
    let values: Vec<T> = saved.iter().map(|s| s.value.clone()).collect();
    let wants: Vec<bool> = entry.inputs.borrow().iter().map(Option::is_some).collect();
    (entry.backward)(&Backward { upstream, saved: &values, wants: &wants })
}

impl<T: Value> Drop for Entry<T> {
    /// Frees the graph behind this entry with a list of its own: a long chain must not use up the stack.
    fn drop(&mut self) {
        let mut stack = self.inputs.take();
        self.saved.take();
        while let Some(variable) = stack.pop() {
            let Some(source) = variable.and_then(Rc::into_inner).and_then(|v| v.source) else { continue };
            if let Some(entry) = Rc::into_inner(source.0) {
                stack.append(&mut entry.inputs.take());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Number(f64, Rc<Cell<u32>>);

    impl Number {
        fn new(x: f64) -> Self {
            Self(x, Rc::default())
        }
    }

    impl Value for Number {
        fn accumulate(&self, other: &Self) -> Result<Self> {
            Ok(Self::new(self.0 + other.0))
        }
        fn version(&self) -> u32 {
            self.1.get()
        }
    }

    type Node = (Number, Rc<Variable<Number>>);

    fn leaf(x: f64) -> Node {
        (Number::new(x), Variable::leaf())
    }

    fn mul(a: &Node, b: &Node) -> Node {
        let inputs = vec![Some(Rc::clone(&a.1)), Some(Rc::clone(&b.1))];
        let backward: BackwardFn<Number> = Box::new(|g| {
            let (dy, a, b) = (g.dy().0, g.saved[0].0, g.saved[1].0);
            Ok(vec![Some(Number::new(dy * b)), Some(Number::new(dy * a))])
        });
        let out = record("mul", inputs, vec![a.0.clone(), b.0.clone()], 1, backward);
        (Number::new(a.0.0 * b.0.0), Rc::clone(&out[0]))
    }

    fn gradient(node: &Node) -> f64 {
        node.1.gradient().unwrap().0
    }

    #[test]
    fn both_paths_to_a_variable_add_up() {
        let x = leaf(3.0);
        let y = mul(&mul(&x, &x), &x);
        backward(&y.1, Number::new(1.0), false).unwrap();
        assert!((gradient(&x) - 27.0).abs() < 1e-12);
    }

    #[test]
    fn a_second_backward_needs_a_retained_graph() {
        let x = leaf(2.0);
        let y = mul(&x, &x);
        backward(&y.1, Number::new(1.0), true).unwrap();
        backward(&y.1, Number::new(1.0), false).unwrap();
        assert!((gradient(&x) - 8.0).abs() < 1e-12);
        let error = backward(&y.1, Number::new(1.0), false).unwrap_err();
        assert_eq!(error.kind().code(), "GradError");
        assert!((gradient(&x) - 8.0).abs() < 1e-12, "a failed backward changes nothing");
    }

    #[test]
    fn a_saved_value_changed_in_place_is_an_error() {
        let x = leaf(2.0);
        let y = mul(&x, &x);
        x.0.1.set(1);
        assert_eq!(backward(&y.1, Number::new(1.0), false).unwrap_err().kind().code(), "GradError");
    }

    #[test]
    fn a_graph_of_a_million_entries_is_walked_and_freed_without_recursion() {
        let x = leaf(1.0);
        let mut y = mul(&x, &x);
        for _ in 0..1_000_000 {
            y = mul(&y, &x);
        }
        backward(&y.1, Number::new(1.0), true).unwrap();
        assert!((gradient(&x) - 1_000_002.0).abs() < 1e-3);
        drop(y);
    }
}
