//! The reference cases on the CPU engine: forward values, gradients and errors against float64.
#![cfg(not(target_arch = "wasm32"))]

mod cases;

use cases::{File, block_on};
use wgrad::Engine;

macro_rules! files {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            println!("{}", block_on(File::named(stringify!($name)).run(&Engine::cpu())));
        })*

        #[test]
        fn every_file_has_a_test() {
            let tested = [$(stringify!($name)),*];
            assert_eq!(cases::FILES.iter().map(|f| f.name).collect::<Vec<_>>(), tested);
            let there = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")).expect("the folder of cases");
            let there = there.filter(|e| e.as_ref().is_ok_and(|e| e.path().extension().is_some_and(|x| x == "json")));
            assert_eq!(there.count(), tested.len());
        }
    };
}

files!(binary, f16, gated, graph, loss, matmul, norm, optimizer, reduction);
