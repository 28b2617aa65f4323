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
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
            let entries = std::fs::read_dir(folder).expect("the folder of cases");
            let paths = entries.map(|e| e.expect("a readable entry").path());
            assert_eq!(paths.filter(|p| p.extension().is_some_and(|x| x == "json")).count(), tested.len());
        }
    };
}

files!(binary, f16, gated, graph, loss, matmul, norm, optimizer, reduction);
