//! The faults that users of such packages report, on the CPU engine.
#![cfg(not(target_arch = "wasm32"))]

mod cases;

use cases::{block_on, faults};
use wgrad::Engine;

macro_rules! tests {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            block_on(faults::$name(Engine::cpu()));
        })*
    };
}

faults::each_fault!(tests);
