//! Arrays in float64, by index and without any trick: what the tests hold tensors against.

use libm::{erf, exp, log, sqrt, tanh};
use wgrad::{Approximate, CrossEntropy, Reduction, Result, Tensor};

/// Elements in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub struct Array {
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

/// The place of an index in row-major order.
fn place(shape: &[usize], index: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |at, (&i, &size)| at * size + i)
}

/// The index at a place in row-major order.
fn index(shape: &[usize], mut place: usize) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (i, &size) in index.iter_mut().zip(shape).rev() {
        *i = place % size;
        place /= size;
    }
    index
}

/// The common shape under broadcasting.
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |s: &[usize], k: usize| (k + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    let pick = |k| match (size(a, k), size(b, k)) {
        (x, y) if x == y => Some(x),
        (1, x) | (x, 1) => Some(x),
        _ => None,
    };
    (0..rank).map(pick).collect()
}

impl Array {
    pub fn new(shape: &[usize], data: Vec<f64>) -> Self {
        assert_eq!(shape.iter().product::<usize>(), data.len());
        Self { shape: shape.to_vec(), data }
    }

    pub fn from_fn(shape: &[usize], f: impl FnMut(&[usize]) -> f64) -> Self {
        let mut f = f;
        let data = (0..shape.iter().product()).map(|k| f(&index(shape, k))).collect();
        Self::new(shape, data)
    }

    pub fn from_f32(shape: &[usize], data: &[f32]) -> Self {
        Self::new(shape, data.iter().map(|&x| f64::from(x)).collect())
    }

    pub fn at(&self, index: &[usize]) -> f64 {
        self.data[place(&self.shape, index)]
    }

    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    pub fn permute(&self, dims: &[usize]) -> Self {
        let shape: Vec<usize> = dims.iter().map(|&d| self.shape[d]).collect();
        Self::from_fn(&shape, |i| {
            let mut from = vec![0; dims.len()];
            for (k, &d) in dims.iter().enumerate() {
                from[d] = i[k];
            }
            self.at(&from)
        })
    }

    pub fn transpose(&self, a: usize, b: usize) -> Self {
        let mut dims: Vec<usize> = (0..self.rank()).collect();
        dims.swap(a, b);
        self.permute(&dims)
    }

    /// Elements `start`, `start + step`, … of `dim`, `count` of them.
    pub fn slice(&self, dim: usize, start: usize, count: usize, step: usize) -> Self {
        let mut shape = self.shape.clone();
        shape[dim] = count;
        Self::from_fn(&shape, |i| {
            let mut from = i.to_vec();
            from[dim] = start + i[dim] * step;
            self.at(&from)
        })
    }

    pub fn reshape(&self, shape: &[usize]) -> Self {
        Self::new(shape, self.data.clone())
    }

    pub fn expand(&self, shape: &[usize]) -> Self {
        let lead = shape.len() - self.rank();
        Self::from_fn(shape, |i| {
            let from: Vec<usize> =
                i[lead..].iter().zip(&self.shape).map(|(&i, &d)| if d == 1 { 0 } else { i }).collect();
            self.at(&from)
        })
    }

    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        Self::new(&self.shape, self.data.iter().map(|&x| f(x)).collect())
    }

    /// `f` of both, broadcast.
    pub fn zip(&self, other: &Self, f: impl Fn(f64, f64) -> f64) -> Self {
        let shape = broadcast(&self.shape, &other.shape).expect("shapes that broadcast");
        let (a, b) = (self.expand(&shape), other.expand(&shape));
        Self::new(&shape, a.data.iter().zip(&b.data).map(|(&a, &b)| f(a, b)).collect())
    }

    pub fn sum(&self, dims: &[usize], keepdim: bool) -> Self {
        let mut shape = self.shape.clone();
        for &d in dims {
            shape[d] = 1;
        }
        let mut out = vec![0.0; shape.iter().product()];
        for (k, x) in self.data.iter().enumerate() {
            let mut to = index(&self.shape, k);
            for &d in dims {
                to[d] = 0;
            }
            out[place(&shape, &to)] += x;
        }
        let kept = |k: &usize| keepdim || !dims.contains(k);
        let left: Vec<usize> = (0..shape.len()).filter(kept).map(|k| shape[k]).collect();
        Self::new(&left, out)
    }

    pub fn mean(&self, dims: &[usize], keepdim: bool) -> Self {
        let n: usize = dims.iter().map(|&d| self.shape[d]).product();
        self.sum(dims, keepdim).map(|x| x / n as f64)
    }

    /// The matrix product as PyTorch has it; `None` when the shapes do not fit.
    pub fn matmul(&self, other: &Self) -> Option<Self> {
        if self.rank() == 0 || other.rank() == 0 {
            return None;
        }
        let row = |s: &[usize]| if s.len() == 1 { vec![1, s[0]] } else { s.to_vec() };
        let column = |s: &[usize]| if s.len() == 1 { vec![s[0], 1] } else { s.to_vec() };
        let (a, b) = (self.reshape(&row(&self.shape)), other.reshape(&column(&other.shape)));
        let ([batch_a @ .., m, k], [batch_b @ .., k2, n]) = (a.shape.as_slice(), b.shape.as_slice()) else {
            return None;
        };
        let (m, k, n) = (*m, *k, *n);
        if k != *k2 {
            return None;
        }
        let batch = broadcast(batch_a, batch_b)?;
        let with = |tail: [usize; 2]| batch.iter().copied().chain(tail).collect::<Vec<_>>();
        let (a, b) = (a.expand(&with([m, k])), b.expand(&with([k, n])));
        let full = Self::from_fn(&with([m, n]), |at| {
            let (lead, last) = at.split_at(batch.len());
            let pair = |x, y| lead.iter().copied().chain([x, y]).collect::<Vec<_>>();
            (0..k).map(|c| a.at(&pair(last[0], c)) * b.at(&pair(c, last[1]))).sum()
        });
        let mut shape = batch.clone();
        if self.rank() > 1 {
            shape.push(m);
        }
        if other.rank() > 1 {
            shape.push(n);
        }
        Some(full.reshape(&shape))
    }

    /// Normalised over the last `count` dimensions.
    pub fn layer_norm(&self, count: usize, weight: Option<&Self>, bias: Option<&Self>, eps: f64) -> Self {
        let cols: usize = self.shape[self.rank() - count..].iter().product();
        let mut data = Vec::new();
        for row in self.data.chunks(cols.max(1)) {
            let mean = row.iter().sum::<f64>() / cols as f64;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / cols as f64;
            for (c, x) in row.iter().enumerate() {
                let scale = weight.map_or(1.0, |w| w.data[c]);
                data.push((x - mean) / sqrt(variance + eps) * scale + bias.map_or(0.0, |b| b.data[c]));
            }
        }
        Self::new(&self.shape, data)
    }

    /// Of logits `[rows, classes]`.
    pub fn cross_entropy(&self, target: &[i32], options: CrossEntropy) -> Self {
        let classes = self.shape[1];
        let (mut losses, mut counted) = (vec![], 0.0);
        for (row, &target) in self.data.chunks(classes).zip(target) {
            if target == options.ignore_index {
                losses.push(0.0);
                continue;
            }
            counted += 1.0;
            let log_sum = log(row.iter().map(|&x| exp(x)).sum());
            let smoothing = f64::from(options.label_smoothing);
            let spread = row.iter().map(|x| log_sum - x).sum::<f64>() / classes as f64;
            losses.push((1.0 - smoothing) * (log_sum - row[target as usize]) + smoothing * spread);
        }
        let total: f64 = losses.iter().sum();
        match options.reduction {
            Reduction::None => Self::new(&[losses.len()], losses),
            Reduction::Sum => Self::new(&[], vec![total]),
            Reduction::Mean => Self::new(&[], vec![total / counted]),
        }
    }

    /// The two halves of the last dimension.
    pub fn halves(&self) -> (Self, Self) {
        let last = self.rank() - 1;
        let half = self.shape[last] / 2;
        (self.slice(last, 0, half, 1), self.slice(last, half, half, 1))
    }
}

pub fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

pub fn silu(x: f64) -> f64 {
    x * sigmoid(x)
}

pub fn relu(x: f64) -> f64 {
    if x > 0.0 { x } else { 0.0 }
}

pub fn gelu(x: f64, approximate: Approximate) -> f64 {
    match approximate {
        Approximate::None => 0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2)),
        Approximate::Tanh => {
            0.5 * x * (1.0 + tanh(sqrt(2.0 / std::f64::consts::PI) * (x + 0.044_715 * x * x * x)))
        }
    }
}

/// A view that both a tensor and an array can take.
#[derive(Debug, Clone)]
pub enum View {
    Transpose(usize, usize),
    Permute(Vec<usize>),
    Slice { dim: usize, start: usize, count: usize, step: usize },
    Narrow { dim: usize, start: usize, length: usize },
    Expand(Vec<usize>),
    Reshape(Vec<usize>),
    Unsqueeze(usize),
    Squeeze,
    Flatten(usize, usize),
}

/// Sizes as the methods of a tensor take them.
pub fn signed(sizes: &[usize]) -> Vec<isize> {
    sizes.iter().map(|&d| d as isize).collect()
}

impl View {
    /// Of a tensor.
    ///
    /// # Errors
    /// Those of the method.
    pub fn of_tensor(&self, x: &Tensor) -> Result<Tensor> {
        match self {
            // One dimension from the front, one from the back.
            Self::Transpose(a, b) => x.transpose(*a as isize, *b as isize - x.shape().rank() as isize),
            Self::Permute(dims) => x.permute(&signed(dims)),
            Self::Slice { dim, start, count, step } => {
                // The end is exclusive: the last element is the last that fits.
                let end = if *count == 0 { *start } else { start + (count - 1) * step + 1 };
                x.slice(*dim as isize, *start as isize, end as isize, *step as isize)
            }
            Self::Narrow { dim, start, length } => x.narrow(*dim as isize, *start as isize, *length),
            Self::Expand(shape) => x.expand(&signed(shape)),
            Self::Reshape(shape) => x.reshape(&signed(shape)),
            Self::Unsqueeze(dim) => x.unsqueeze(*dim as isize),
            Self::Squeeze => x.squeeze(None),
            Self::Flatten(start, end) => x.flatten(*start as isize, *end as isize),
        }
    }

    /// Of an array.
    pub fn of_array(&self, x: &Array) -> Array {
        match self {
            Self::Transpose(a, b) => x.transpose(*a, *b),
            Self::Permute(dims) => x.permute(dims),
            Self::Slice { dim, start, count, step } => x.slice(*dim, *start, *count, *step),
            Self::Narrow { dim, start, length } => x.slice(*dim, *start, *length, 1),
            Self::Expand(shape) => x.expand(shape),
            Self::Reshape(shape) => x.reshape(shape),
            Self::Unsqueeze(dim) => {
                let mut shape = x.shape.clone();
                shape.insert(*dim, 1);
                x.reshape(&shape)
            }
            Self::Squeeze => x.reshape(&x.shape.iter().copied().filter(|&d| d != 1).collect::<Vec<_>>()),
            Self::Flatten(start, end) => {
                let mut shape = x.shape[..*start].to_vec();
                shape.push(x.shape[*start..=*end].iter().product());
                shape.extend(&x.shape[end + 1..]);
                x.reshape(&shape)
            }
        }
    }
}

/// Deterministic values that look random, on a grid of 1/64 that misses zero: `low` to `high`.
pub fn values(n: usize, seed: u64, low: f64, high: f64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    (0..n)
        .map(|_| {
            // xorshift64* (Vigna 2016).
            state ^= state >> 12;
            state ^= state << 25;
            state ^= state >> 27;
            let unit = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f64 / f64::from(1 << 24);
            (((low + (high - low) * unit) * 64.0).floor() / 64.0 + 1.0 / 128.0) as f32
        })
        .collect()
}
