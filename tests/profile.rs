//! What a profile notes of the calls on the CPU engine.
#![cfg(not(target_arch = "wasm32"))]

mod cases;

use cases::block_on;
use wgrad::{DType, Engine, ErrorKind, KernelCall, Result, Tensor};

fn profiled(engine: &Engine, f: impl FnOnce() -> Result<Tensor>) -> Vec<KernelCall> {
    engine.profile_start().expect("no profile is under way");
    f().expect("the call is right");
    block_on(engine.profile_stop()).expect("it can be stopped")
}

#[test]
fn bytes_and_operations_of_a_call() {
    let engine = Engine::cpu();
    let [a, b] = [1.0, 2.0].map(|v| engine.full(&[64, 768], v, DType::F32).expect("a tensor"));
    let size = 64 * 768 * 4;
    let costs = |calls: &[KernelCall]| calls.iter().map(|c| (c.kernel, c.bytes, c.flops)).collect::<Vec<_>>();
    let gated = profiled(&engine, || a.silu_mul(&b));
    assert_eq!(costs(&gated), [("gated", 3 * size, 0)]);
    // One tensor behind two bindings is read once.
    assert_eq!(costs(&profiled(&engine, || a.silu_mul(&a))), [("gated", 2 * size, 0)]);
    let product = profiled(&engine, || a.matmul(&b.transpose(0, 1)?));
    assert_eq!(costs(&product), [("matmul", 2 * size + 64 * 64 * 4, 2 * 64 * 64 * 768)]);
}

#[test]
fn times_follow_one_another() {
    let engine = Engine::cpu();
    let a = engine.ones(&[128, 128]).expect("a tensor");
    let calls = profiled(&engine, || a.matmul(&a)?.matmul(&a));
    let mut end = 0.0;
    for call in &calls {
        let (start, time) = (call.start.expect("a start"), call.time.expect("a time"));
        assert!(start >= end && time > 0.0, "{start} and {time} after {end}");
        end = start + time;
    }
    assert_eq!(calls.len(), 2);
}

#[test]
fn a_call_that_fails_is_not_noted_and_the_profile_goes_on() {
    let engine = Engine::cpu();
    let logits = engine.ones(&[1, 3]).expect("a tensor");
    let label = |value| engine.tensor_i32(&[value], &[1]).expect("a tensor");
    let calls = profiled(&engine, || {
        let error = logits.cross_entropy(&label(7), wgrad::CrossEntropy::default());
        assert_eq!(error.expect_err("no such class").kind(), ErrorKind::Index);
        logits.silu_mul(&logits)
    });
    assert_eq!(calls.last().map(|c| c.kernel), Some("gated"));
    assert!(calls.iter().all(|c| c.kernel != "cross_entropy"));
}

#[test]
fn starts_and_stops_come_in_pairs() {
    let engine = Engine::cpu();
    let refused = |result: Result<()>| assert_eq!(result.expect_err("refused").kind(), ErrorKind::Argument);
    let stop = || block_on(engine.profile_stop()).map(|calls| assert!(calls.is_empty()));
    refused(stop());
    engine.profile_start().expect("the first");
    refused(engine.profile_start());
    stop().expect("the first goes on");
    refused(stop());
    engine.profile_start().expect("the next");
    engine.dispose();
    assert_eq!(stop().expect_err("it is gone").kind(), ErrorKind::Disposed);
}
