//! Shaders inside the module: published ones go without comments and indentation, a third of their text.

/// The source of a shader, by its path under `shaders/`, without the extension.
macro_rules! shader {
    ($path:expr) => {{
        const SOURCE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/", $path, ".wgsl"));
        const LENGTH: usize = $crate::wgsl::source::bare::<0>(SOURCE).1;
        const BARE: [u8; LENGTH] = $crate::wgsl::source::bare::<LENGTH>(SOURCE).0;
        if $crate::wgsl::source::COMMENTED {
            SOURCE
        } else {
            match std::str::from_utf8(&BARE) {
                Ok(text) => text,
                Err(_) => panic!("what is taken out are whole characters"),
            }
        }
    }};
}
pub(crate) use shader;

/// Whether shaders keep their comments: where somebody works on them or looks at them.
pub(crate) const COMMENTED: bool = cfg!(any(debug_assertions, feature = "commented"));

/// The bytes of `source` without comments, indentation and empty lines, as many as fit, and how many there are.
pub(crate) const fn bare<const N: usize>(source: &str) -> ([u8; N], usize) {
    let from = source.as_bytes();
    let (mut to, mut length) = ([0; N], 0);
    let mut at = 0;
    while at < from.len() {
        // One line.
        let mut end = at;
        while end < from.len() && from[end] != b'\n' {
            end += 1;
        }
        let mut code = at;
        while code < end && !(from[code] == b'/' && code + 1 < end && from[code + 1] == b'/') {
            code += 1;
        }
        while at < code && from[at] == b' ' {
            at += 1;
        }
        while code > at && from[code - 1] == b' ' {
            code -= 1;
        }
        let line = code > at;
        while at < code {
            if length < N {
                to[length] = from[at];
            }
            length += 1;
            at += 1;
        }
        if line {
            if length < N {
                to[length] = b'\n';
            }
            length += 1;
        }
        at = end + 1;
    }
    (to, length)
}

#[cfg(test)]
mod tests {
    use super::bare;

    #[test]
    fn comments_indentation_and_empty_lines_go() {
        const SOURCE: &str = "// mean µ\n\nfn f() {\n  let x = 1; // why\n  #if a\n  }\n";
        const LENGTH: usize = bare::<0>(SOURCE).1;
        let (bytes, length) = bare::<LENGTH>(SOURCE);
        assert_eq!(std::str::from_utf8(&bytes).unwrap(), "fn f() {\nlet x = 1;\n#if a\n}\n");
        assert_eq!(length, LENGTH);
    }
}
