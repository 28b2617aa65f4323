//! What calls cost while a profile is taken.

use std::cell::{Cell, OnceCell, RefCell};

use wasm_bindgen::prelude::JsValue;

use super::submission::Submission;
use crate::profile::KernelCall;

/// A profile that is being taken.
#[derive(Default)]
pub(super) struct Profile {
    calls: RefCell<Vec<KernelCall>>,
    /// Whether calls are noted; their times may come later.
    noting: Cell<bool>,
    /// What times calls, once there was a profile, on a device that can.
    pub timer: OnceCell<JsValue>,
}

impl Profile {
    /// Notes calls from now on.
    pub fn start(&self) {
        self.calls.take();
        self.noting.set(true);
    }

    /// Notes no more.
    pub fn stop(&self) {
        self.noting.set(false);
    }

    /// The calls that were noted, from the first on: the device's clock has a beginning of its own.
    pub fn take(&self) -> Vec<KernelCall> {
        let mut calls = self.calls.take();
        let first = calls.iter().filter_map(|call| call.start).fold(f64::INFINITY, f64::min);
        for start in calls.iter_mut().filter_map(|call| call.start.as_mut()) {
            *start -= first;
        }
        calls
    }

    /// Notes a call; its place, if a profile is being taken.
    pub fn note(&self, call: impl FnOnce() -> KernelCall) -> Option<u32> {
        if !self.noting.get() {
            return None;
        }
        let mut calls = self.calls.borrow_mut();
        calls.push(call());
        Some(calls.len() as u32 - 1)
    }

    /// Takes the times of a submission, two a call that is not skipped.
    pub fn time(&self, submission: &Submission, times: &[f64]) {
        let mut calls = self.calls.borrow_mut();
        let notes = submission.calls.iter().filter(|note| !note.skipped);
        for (note, times) in notes.zip(times.chunks_exact(2)) {
            if let Some(call) = note.profiled.and_then(|place| calls.get_mut(place as usize)) {
                // Nanoseconds; a device may take two for one.
                call.start = Some(times[0] / 1e3);
                call.time = Some(((times[1] - times[0]) / 1e3).max(0.0));
            }
        }
    }
}
