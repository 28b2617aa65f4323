//! What the test crates share: the reference cases and the runner that holds an engine against them, a
//! float64 array, and the faults that users of such packages report.
//!
//! The cases' format stands in `tests/data/README.md`. Everything is asynchronous and takes an engine, so that
//! one body serves the CPU natively, the CPU in wasm and WebGPU.
#![allow(dead_code, reason = "no test crate uses all of it")]

pub mod compare;
pub mod faults;
pub mod fill;
pub mod format;
pub mod naive;
pub mod ops;
pub mod run;

use std::fmt::Write;

use wgrad::Engine;

use format::Case;

/// A file of cases, and how many of them must run: a case that silently drops out is seen.
pub struct File {
    /// The operations' family.
    pub name: &'static str,
    json: &'static str,
    at_least: usize,
}

macro_rules! file {
    ($name:literal, $at_least:literal) => {
        File { name: $name, json: include_str!(concat!("../data/", $name, ".json")), at_least: $at_least }
    };
}

/// Every file. The counts grow with the operations; they never fall.
pub const FILES: &[File] = &[
    file!("binary", 33),
    file!("f16", 18),
    file!("gated", 92),
    file!("graph", 4),
    file!("loss", 9),
    file!("matmul", 31),
    file!("norm", 31),
    file!("optimizer", 4),
    file!("reduction", 33),
];

impl File {
    /// The file of this name.
    pub fn named(name: &str) -> &'static Self {
        FILES.iter().find(|f| f.name == name).unwrap_or_else(|| panic!("no file {name}"))
    }

    /// Its cases.
    pub fn cases(&self) -> Vec<Case> {
        serde_json::from_str(self.json).unwrap_or_else(|e| panic!("{}.json: {e}", self.name))
    }

    /// Runs every supported case on `engine`: a line to print.
    ///
    /// # Panics
    /// When a case fails, with all that do; when fewer cases ran than must.
    pub async fn run(&self, engine: &Engine) -> String {
        let (mut ran, mut unsupported) = (0, 0);
        let mut failures = String::new();
        for case in self.cases() {
            if !ops::supported(&case) {
                unsupported += 1;
                continue;
            }
            ran += 1;
            if let Err(message) = run::run(engine, &case).await {
                write!(failures, "\n  {message}").expect("a string takes everything");
            }
        }
        let line = format!("{:<10} {}: {ran} run, {unsupported} unsupported", self.name, engine.device());
        assert!(failures.is_empty(), "{line}{failures}");
        assert!(ran >= self.at_least, "{line}; {} must run", self.at_least);
        line
    }
}

/// Runs a future of the CPU engine, which is always ready.
#[cfg(not(target_arch = "wasm32"))]
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("the CPU engine never waits"),
    }
}
