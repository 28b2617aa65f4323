//! What was handed over and not answered yet, and which buffers hold nothing that may be read.
//!
//! The device tells in later tasks what it has rejected. Until then a submission's calls are remembered; walking them in order
//! shows what a fault has spoilt: whatever a call writes that failed or read something spoilt, until something sound is written
//! there. A copy to the host that finds its source spoilt gives the error in place of the elements.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use js_sys::Array;

use super::pipelines::Pipeline;
use super::readback::{Copy, Source};
use super::recorder::{Call, MAX_BUFFERS};
use super::table::Table;
use crate::error::Error;

/// A call, without its hold on its buffers.
#[derive(Debug)]
pub(super) struct Note {
    pipeline: Rc<Pipeline>,
    /// Their numbers, each one higher; 0 for none.
    pub buffers: [u32; MAX_BUFFERS],
    /// It cannot run, or what it reads is not there: the device never saw it.
    pub skipped: bool,
    /// Its place in the profile that is being taken.
    pub profiled: Option<u32>,
    failure: Option<Error>,
}

impl Note {
    /// The note of a call; `bad` are the buffers that skipped calls should have written.
    pub fn of(call: &Call, bad: &mut Vec<u32>) -> Self {
        let mut buffers = [0; MAX_BUFFERS];
        for (number, buffer) in buffers.iter_mut().zip(&call.buffers) {
            *number = buffer.as_ref().map_or(0, |b| b.id + 1);
        }
        let missing = || call.buffers.iter().flatten().find_map(|b| b.missing());
        let failure = call.pipeline.failure.borrow().clone().or_else(missing);
        let mut note = Self {
            pipeline: Rc::clone(&call.pipeline),
            buffers,
            skipped: failure.is_some(),
            profiled: call.profiled,
            failure,
        };
        if note.skipped || !bad.is_empty() {
            note.skipped |= note.reads().any(|b| bad.contains(&b));
            for buffer in note.writes() {
                bad.retain(|b| *b != buffer);
                if note.skipped {
                    bad.push(buffer);
                }
            }
        }
        note
    }

    pub fn kernel(&self) -> &'static str {
        self.pipeline.kernel.name
    }

    fn masked(&self, mask: u32) -> impl Iterator<Item = u32> + use<> {
        let numbers = self.buffers.into_iter().enumerate();
        numbers.filter(move |&(k, number)| number != 0 && mask >> k & 1 == 1).map(|(_, number)| number)
    }

    fn reads(&self) -> impl Iterator<Item = u32> + use<> {
        self.masked(self.pipeline.reads)
    }

    fn writes(&self) -> impl Iterator<Item = u32> + use<> {
        self.masked(self.pipeline.writes)
    }
}

/// What the device got of a submission.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// Five numbers a call that is not skipped.
    pub list: Vec<u32>,
    /// The parameters of all calls.
    pub params: Vec<u8>,
    /// The bind groups that the list names by their places.
    pub groups: Array,
}

/// Calls and copies that went out together.
#[derive(Debug, Default)]
pub(super) struct Submission {
    /// Buffers that were written by the host or became another tensor's, with how many of the calls came before: what they
    /// held later calls do not read.
    pub sound: Vec<(usize, u32)>,
    pub calls: Vec<Note>,
    pub copies: Vec<Rc<Copy>>,
    /// The same after all of it.
    pub sound_after: RefCell<Vec<u32>>,
    /// What the device got; the latest submission keeps it.
    pub sent: RefCell<Sent>,
    /// What the device says to each call that is not skipped, once it has answered; empty when all went well.
    pub verdicts: RefCell<Option<Vec<Option<Error>>>>,
}

/// The submissions on their way, and the spoilt buffers.
#[derive(Debug, Default)]
pub(super) struct Submissions {
    waiting: VecDeque<Rc<Submission>>,
    spoilt: Table<u32, Error>,
    /// The first fault that nobody was told of.
    fault: Option<Error>,
}

impl Submissions {
    /// Remembers the latest submission; what the one before had sent is returned, for its memory to be used again.
    pub fn push(&mut self, submission: Rc<Submission>) -> Option<Sent> {
        let sent = self.waiting.back().map(|before| before.sent.take());
        self.waiting.push_back(submission);
        sent
    }

    /// A buffer holds nothing spoilt after all that was handed over.
    pub fn sound(&mut self, buffer: u32) {
        match self.waiting.back() {
            Some(latest) => latest.sound_after.borrow_mut().push(buffer),
            None => drop(self.spoilt.remove(&buffer)),
        }
    }

    pub fn is_latest(&self, submission: &Rc<Submission>) -> bool {
        self.waiting.back().is_some_and(|latest| Rc::ptr_eq(latest, submission))
    }

    /// The device has answered to one: goes on through all that are answered, in order.
    pub fn settle(&mut self) {
        while self.waiting.front().is_some_and(|s| s.verdicts.borrow().is_some()) {
            let Some(submission) = self.waiting.pop_front() else { break };
            self.walk(&submission);
            for copy in &submission.copies {
                self.judge(copy);
                copy.settled.happen();
            }
            for buffer in submission.sound_after.take() {
                self.spoilt.remove(&buffer);
            }
        }
    }

    fn walk(&mut self, submission: &Submission) {
        let verdicts = submission.verdicts.take().unwrap_or_default();
        let skipped = |note: &Note| note.skipped;
        if self.spoilt.is_empty() && verdicts.is_empty() && !submission.calls.iter().any(skipped) {
            return;
        }
        let mut verdicts = verdicts.into_iter();
        let mut sound = submission.sound.iter().peekable();
        for (k, note) in submission.calls.iter().enumerate() {
            while let Some((_, buffer)) = sound.next_if(|(before, _)| *before <= k) {
                self.spoilt.remove(buffer);
            }
            let own = if note.skipped { note.failure.clone() } else { verdicts.next().flatten() };
            if let Some(error) = &own {
                self.fault.get_or_insert_with(|| error.clone());
            }
            let error = own.or_else(|| note.reads().find_map(|b| self.spoilt.get(&b).cloned()));
            for buffer in note.writes() {
                match &error {
                    Some(error) => self.spoilt.insert(buffer, error.clone()),
                    None => self.spoilt.remove(&buffer),
                };
            }
        }
        for (_, buffer) in sound {
            self.spoilt.remove(buffer);
        }
    }

    /// Whether a copy's source is sound; what only waits hears of every fault that was not told yet.
    fn judge(&mut self, copy: &Copy) {
        let mut error = copy.error.borrow_mut();
        match &copy.source {
            Source::Buffer { buffer, .. } => {
                if error.is_none() && !self.spoilt.is_empty() {
                    *error = self.spoilt.get(&(buffer.id + 1)).cloned();
                }
                if error.is_some() && *error == self.fault {
                    self.fault = None;
                }
            }
            Source::Nothing => *error = error.take().or_else(|| self.fault.take()),
        }
    }

    /// Nothing more will be heard.
    pub fn abandon(&mut self) {
        for submission in self.waiting.drain(..) {
            for copy in &submission.copies {
                copy.abandon();
            }
        }
    }
}
