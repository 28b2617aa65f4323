//! One error type: a kind a program can match on, the operation, and what would have been right.

use std::borrow::Cow;
use std::fmt;

/// What went wrong, as the class name that the JavaScript layer throws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Shapes do not fit together, or a dimension is not one.
    Shape,
    /// An element type the operation does not take, or a mix that needs a cast.
    DType,
    /// A dimension or an index out of range.
    Index,
    /// More than the device or the address space holds.
    Limit,
    /// A tensor or an engine used after `dispose`.
    Disposed,
    /// The GPU device is gone.
    DeviceLost,
    /// A valid request that this build or device cannot serve.
    Unsupported,
    /// A file or buffer that is not in the format it should have.
    Format,
    /// An option or value outside what the operation takes.
    Argument,
    /// Automatic differentiation was asked for something impossible.
    Grad,
    /// The GPU rejected work that wgrad submitted, or did it wrongly: a fault of wgrad or of the driver.
    Kernel,
}

impl ErrorKind {
    /// The class name in JavaScript, which is also its `code`.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::Shape => "ShapeError",
            Self::DType => "DTypeError",
            Self::Index => "IndexError",
            Self::Limit => "LimitError",
            Self::Disposed => "DisposedError",
            Self::DeviceLost => "DeviceLostError",
            Self::Unsupported => "UnsupportedError",
            Self::Format => "FormatError",
            Self::Argument => "ArgumentError",
            Self::Grad => "GradError",
            Self::Kernel => "KernelError",
        }
    }
}

/// An error of any wgrad call. The engine stays usable after every one but [`ErrorKind::DeviceLost`].
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct Error(Box<Report>);

/// Boxed, so that a result is small where all goes well.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Report {
    kind: ErrorKind,
    op: Cow<'static, str>,
    message: String,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.op, self.0.message)
    }
}

impl Error {
    /// An error of `kind` in the operation `op`.
    pub fn new(kind: ErrorKind, op: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self(Box::new(Report { kind, op: op.into(), message: message.into() }))
    }

    /// What kind of error this is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The operation that failed, named as in the JavaScript API.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.0.op
    }

    pub(crate) fn shape(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Shape, op, message)
    }

    pub(crate) fn dtype(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DType, op, message)
    }

    pub(crate) fn index(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Index, op, message)
    }

    pub(crate) fn limit(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Limit, op, message)
    }

    pub(crate) fn argument(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Argument, op, message)
    }

    pub(crate) fn grad(op: &'static str, message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Grad, op, message)
    }
}

/// A number as it stands in an error. JavaScript writes it in the browser: Rust's own way is kilobytes of the module.
pub(crate) fn number(value: f64) -> String {
    #[cfg(target_arch = "wasm32")]
    return js_sys::Number::from(value).to_string_with_radix(10).map_or_else(|_| String::new(), String::from);
    #[cfg(not(target_arch = "wasm32"))]
    value.to_string()
}

/// The same for single precision: seven digits, and not what double precision makes of them.
pub(crate) fn number_f32(value: f32) -> String {
    #[cfg(target_arch = "wasm32")]
    return match js_sys::Number::from(value).to_precision(7) {
        Ok(digits) => number(js_sys::parse_float(&String::from(digits))),
        Err(_) => String::new(),
    };
    #[cfg(not(target_arch = "wasm32"))]
    value.to_string()
}

/// The result of every fallible wgrad call.
pub type Result<T> = std::result::Result<T, Error>;
