//! Element types of tensors.

use std::fmt;

/// The type of a tensor's elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 16-bit float: stored as f16 where the device can, computed in f32 everywhere.
    F16,
    /// 32-bit signed integer.
    I32,
    /// 32-bit unsigned integer.
    U32,
    /// Truth value, stored as a 32-bit 0 or 1.
    Bool,
}

impl DType {
    /// The name used in both APIs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::I32 => "i32",
            Self::U32 => "u32",
            Self::Bool => "bool",
        }
    }

    /// The type with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::F32, Self::F16, Self::I32, Self::U32, Self::Bool].into_iter().find(|d| d.name() == name)
    }

    /// Whether gradients exist for this type.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
