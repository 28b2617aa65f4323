//! The composer: a shader's source and a variant's flags become WGSL text.
//!
//! Directives stand alone on their lines: `#import name` (a file of `shaders/lib`, once), `#if flag`, `#elif flag`,
//! `#else`, `#endif`; a flag may be negated with `!`.

use std::fmt::Write as _;

pub(crate) mod source;

macro_rules! library {
    ($($name:literal),* $(,)?) => {
        /// The shared snippets, by the name that `#import` uses.
        pub const LIBRARY: &[(&str, &str)] =
            &[$(($name, source::shader!(concat!("lib/", $name)))),*];
    };
}
library!(
    "activation",
    "dispatch",
    "error_function",
    "exponential",
    "faults",
    "held",
    "pair",
    "reduce",
    "row_main",
    "strided",
);

/// How a tensor's elements are stored for a kernel, and so what `scalar` means in its shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// 32-bit floats.
    F32,
    /// 16-bit floats, on devices with `shader-f16`.
    F16,
    /// 16-bit floats held in 32 bits and rounded at every store, on devices without.
    F16InF32,
    /// 32-bit signed integers.
    I32,
    /// 32-bit unsigned integers.
    U32,
}

impl Scalar {
    /// Bytes an element takes.
    #[must_use]
    pub fn bytes(self) -> usize {
        if self == Self::F16 { 2 } else { 4 }
    }

    /// Whether it holds floating-point numbers; shaders see it as the flag `float`.
    #[must_use]
    pub fn is_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::F16InF32)
    }

    /// The type's name in WGSL.
    #[must_use]
    pub fn wgsl(self) -> &'static str {
        match self {
            Self::F32 | Self::F16InF32 => "f32",
            Self::F16 => "f16",
            Self::I32 => "i32",
            Self::U32 => "u32",
        }
    }
}

/// Which of the two WGSL front ends reads the text: they differ in the directives they know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// A browser's compiler: wants `enable subgroups;`.
    Browser,
    /// naga: rejects that line and needs none.
    Naga,
}

/// A fault in a shader's directives: the file's name and the line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}, line {line}: {message}")]
pub struct ComposeError {
    file: String,
    line: usize,
    message: String,
}

/// Composes `source` (called `name` in errors) for the flags that `is_set` accepts.
///
/// # Errors
/// A directive that is unknown, unbalanced, or imports what does not exist.
pub fn compose(
    name: &str,
    source: &str,
    scalar: Scalar,
    dialect: Dialect,
    is_set: &dyn Fn(&str) -> bool,
) -> Result<String, ComposeError> {
    let mut body = String::with_capacity(source.len() * 2);
    let mut imported = Vec::new();
    expand(name, source, is_set, &mut imported, &mut body)?;
    let mut out = String::with_capacity(body.len() + 512);
    if scalar == Scalar::F16 {
        out.push_str("enable f16;\n");
    }
    if is_set("subgroups") && dialect == Dialect::Browser {
        // Rows go to subgroups whole: flow is uniform in each, which a browser's analysis cannot see.
        out.push_str("enable subgroups;\ndiagnostic(off, subgroup_uniformity);\n");
    }
    writeln!(out, "alias scalar = {};", scalar.wgsl()).expect("writing to a string");
    out.push_str(match scalar {
        Scalar::F32 => {
            "fn to_scalar(v: f32) -> scalar { return v; }\n\
             fn to_scalar4(v: vec4<f32>) -> vec4<scalar> { return v; }\n"
        }
        Scalar::F16 => {
            "fn to_scalar(v: f32) -> scalar { return f16(v); }\n\
             fn to_scalar4(v: vec4<f32>) -> vec4<scalar> { return vec4<f16>(v); }\n"
        }
        Scalar::F16InF32 => F16_ROUNDING,
        Scalar::I32 | Scalar::U32 => "",
    });
    out.push_str(&body);
    Ok(out)
}

/// Rounds to the nearest f16, ties to even, by bits: `pack2x16float` may round either way and is undefined past 65504.
const F16_ROUNDING: &str = "fn to_scalar(v: f32) -> scalar {
  let bits = bitcast<u32>(v);
  let sign = bits & 0x80000000u;
  let size = bits & 0x7fffffffu;
  if size >= 0x7f800000u { return v; }
  if size >= 0x477ff000u { return bitcast<f32>(sign | 0x7f800000u); }
  if size < 0x38800000u {
    let steps = u32(bitcast<f32>(size) * 16777216.0);
    let rest = bitcast<f32>(size) * 16777216.0 - f32(steps);
    let up = rest > 0.5 || (rest == 0.5 && (steps & 1u) == 1u);
    return bitcast<f32>(sign | bitcast<u32>(f32(steps + select(0u, 1u, up)) * 5.9604644775390625e-8));
  }
  let rounded = (size + 0xfffu + ((size >> 13u) & 1u)) & 0xffffe000u;
  return bitcast<f32>(sign | rounded);
}
fn to_scalar4(v: vec4<f32>) -> vec4<scalar> {
  return vec4<scalar>(to_scalar(v.x), to_scalar(v.y), to_scalar(v.z), to_scalar(v.w));
}
";

/// One open `#if`: whether its present branch is taken, and whether any branch was.
struct Branch {
    active: bool,
    taken: bool,
}

fn expand(
    file: &str,
    source: &str,
    is_set: &dyn Fn(&str) -> bool,
    imported: &mut Vec<&'static str>,
    out: &mut String,
) -> Result<(), ComposeError> {
    let mut open: Vec<Branch> = Vec::new();
    let holds = |flag: &str| flag.strip_prefix('!').map_or_else(|| is_set(flag), |f| !is_set(f));
    let fail = |line: usize, message: String| ComposeError { file: file.to_owned(), line: line + 1, message };
    for (number, line) in source.split_terminator('\n').enumerate() {
        let live = open.iter().all(|b| b.active);
        let Some(directive) = line.trim_ascii_start().strip_prefix('#') else {
            if live {
                out.push_str(line);
                out.push('\n');
            }
            continue;
        };
        let directive = directive.trim_ascii();
        let (word, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let rest = rest.trim_ascii();
        match word {
            "if" => {
                let active = holds(rest);
                open.push(Branch { active, taken: active });
            }
            "elif" | "else" => {
                let branch = open.last_mut().ok_or_else(|| fail(number, format!("#{word} without #if")))?;
                branch.active = !branch.taken && (word == "else" || holds(rest));
                branch.taken |= branch.active;
            }
            "endif" => {
                open.pop().ok_or_else(|| fail(number, "#endif without #if".into()))?;
            }
            "import" if live => {
                let &(name, text) = LIBRARY
                    .iter()
                    .find(|(name, _)| *name == rest)
                    .ok_or_else(|| fail(number, format!("no shaders/lib/{rest}.wgsl")))?;
                if !imported.contains(&name) {
                    imported.push(name);
                    expand(name, text, is_set, imported, out)?;
                }
            }
            "import" => {}
            other => return Err(fail(number, format!("unknown directive #{other}"))),
        }
    }
    if open.is_empty() {
        Ok(())
    } else {
        Err(fail(source.matches('\n').count(), "an #if is not closed".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(source: &str, flags: &[&str]) -> Result<String, ComposeError> {
        let text = compose("t", source, Scalar::F32, Dialect::Naga, &|f| flags.contains(&f))?;
        Ok(text.lines().skip(3).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn branches_nest_and_choose_the_first_that_holds() {
        let source = "#if a\none\n#elif b\ntwo\n  #if !c\nthree\n  #endif\n#else\nfour\n#endif";
        assert_eq!(body(source, &["a", "b"]).unwrap(), "one");
        assert_eq!(body(source, &["b"]).unwrap(), "two three");
        assert_eq!(body(source, &["b", "c"]).unwrap(), "two");
        assert_eq!(body(source, &[]).unwrap(), "four");
    }

    #[test]
    fn faults_name_the_line() {
        assert_eq!(body("x\n#endif", &[]).unwrap_err().line, 2);
        assert!(body("#if a", &[]).is_err());
        assert!(body("#import nothing", &[]).is_err());
        assert!(body("#include a", &[]).is_err());
    }

    #[test]
    fn an_import_appears_once() {
        let text = body("#import dispatch\n#import dispatch", &[]).unwrap();
        assert_eq!(text.matches("fn linear_workgroup").count(), 1);
    }
}
