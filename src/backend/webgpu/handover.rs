//! Handing the list over, and what the device answers.

use std::rc::Rc;

use js_sys::{Array, Float64Array, Promise};
use wasm_bindgen::prelude::JsCast;
use wasm_bindgen_futures::spawn_local;

use super::Shared;
use super::device::{settled, write};
use super::recorder::Objects;
use super::submission::{Note, Submission};
use crate::error::{Error, ErrorKind};

impl Shared {
    pub(super) fn objects(&self) -> Objects<'_> {
        Objects {
            device: &self.device,
            pipelines: &self.pipelines,
            staging: &self.staging,
            record: &self.record,
            timer: self.profile.timer.get(),
        }
    }

    /// Hands over all that is noted and waits for nothing. What waits comes back here when that is over.
    pub(super) fn flush(self: &Rc<Self>) {
        self.hand_over(false);
    }

    /// Hands over all that is noted, whatever the page has to wait for.
    pub(super) fn flush_all(self: &Rc<Self>) {
        for pipeline in self.recorder.borrow().wanted() {
            pipeline.compile_now(&self.device);
        }
        // What waits for the memory of a buffer must be there before the calls that read it.
        for buffer in self.recorder.borrow().asked() {
            buffer.hurried.set(true);
            if let Some(words) = self.pool.take_waiting(buffer) {
                buffer.with(|handle| write(&self.device, handle, bytemuck::cast_slice(&words)));
            }
        }
        self.hand_over(true);
    }

    pub(super) fn hand_over(self: &Rc<Self>, all: bool) {
        loop {
            let mut recorder = self.recorder.borrow_mut();
            let Some((submission, answer)) = recorder.submit(&self.objects(), all) else { break };
            drop(recorder);
            self.remember(submission, answer);
        }
        self.pool.settle();
    }

    /// Waits for the device's answer to a submission.
    pub(super) fn remember(self: &Rc<Self>, submission: Submission, answer: Promise) {
        let submission = Rc::new(submission);
        for copy in &submission.copies {
            copy.submitted.happen();
        }
        if let Some(sent) = self.submissions.borrow_mut().push(Rc::clone(&submission)) {
            self.recorder.borrow_mut().recycle(sent);
        }
        let (weak, touched) = (Rc::downgrade(self), self.touched());
        spawn_local(async move {
            let answers = heard(answer).await;
            let Some(shared) = weak.upgrade() else { return };
            if let Ok(times) = answers.get(2).dyn_into::<Float64Array>() {
                shared.profile.time(&submission, &times.to_vec());
            }
            let verdicts = match complaint(&answers) {
                Some((kind, text)) => shared.examine(&submission, touched, kind, text).await,
                None => Vec::new(),
            };
            submission.verdicts.replace(Some(verdicts));
            shared.submissions.borrow_mut().settle();
        });
    }

    /// Finds out which calls of a rejected submission were at fault. The device has done nothing of it. If nothing came after,
    /// its calls go out again, one by one, so that only what depends on a faulty one is lost; and its copies do, whose sources
    /// may be sound.
    async fn examine(
        &self,
        submission: &Rc<Submission>,
        touched: u64,
        kind: ErrorKind,
        text: String,
    ) -> Vec<Option<Error>> {
        let names: Vec<&'static str> =
            submission.calls.iter().filter(|note| !note.skipped).map(Note::kernel).collect();
        let mut kernels = names.clone();
        kernels.dedup();
        let op = if kernels.is_empty() { "read".into() } else { kernels.join(" or ") };
        let whole = Error::new(kind, op, rejected(&text));
        let mut verdicts = vec![Some(whole.clone()); names.len()];
        // What was wrong may be a bind group: nobody shall find it again.
        self.recorder.borrow_mut().forget_groups();
        let latest = self.submissions.borrow().is_latest(submission) && self.check("").is_ok();
        let mut failure = Some(whole);
        if latest {
            let calls = kind == ErrorKind::Kernel && self.touched() == touched;
            let (calls, copies) = self.recorder.borrow().submit_again(&self.objects(), submission, calls);
            for ((verdict, name), answer) in verdicts.iter_mut().zip(&names).zip(calls) {
                let complaint = complaint(&heard(answer).await);
                *verdict = complaint.map(|(kind, text)| Error::new(kind, *name, rejected(&text)));
            }
            let complaint = complaint(&heard(copies).await);
            failure = complaint.map(|(kind, text)| Error::new(kind, "read", rejected(&text)));
        }
        for copy in &submission.copies {
            let known = copy.error.take();
            copy.error.replace(known.or_else(|| failure.clone()));
        }
        verdicts
    }

    /// Flushes at the end of the running JavaScript task, unless something does before.
    pub(super) fn plan_flush(self: &Rc<Self>) {
        if self.state.flush_planned.replace(true) {
            return;
        }
        let weak = Rc::downgrade(self);
        spawn_local(async move {
            if let Some(shared) = weak.upgrade() {
                shared.state.flush_planned.set(false);
                if shared.check("flush").is_ok() {
                    shared.flush();
                }
            }
        });
    }
}

/// The device's answers to a submission; none when it is lost.
async fn heard(answer: Promise) -> Array {
    settled(answer).await.map(JsCast::unchecked_into).unwrap_or_default()
}

/// The device's answer to a submission: a fault that left all of it undone, with the words, and whether it is memory.
fn complaint(answers: &Array) -> Option<(ErrorKind, String)> {
    let invalid = answers.get(0).as_string().map(|text| (ErrorKind::Kernel, text));
    invalid.or_else(|| answers.get(1).as_string().map(|text| (ErrorKind::Limit, text)))
}

/// What a kernel's error says of the device's words.
fn rejected(text: &str) -> String {
    format!("the GPU rejected it, so that nothing that depends on it can be read: {text}")
}
