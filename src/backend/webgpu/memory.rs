//! Memory of tensors: from the pool, written by the host, and asked for again where there was none.

use std::rc::{Rc, Weak};

use js_sys::Promise;
use wasm_bindgen_futures::spawn_local;

use super::Shared;
use super::device::{self, settled};
use super::pool::PooledBuffer;
use crate::backend::{Buffer, Storage};
use crate::dtype::DType;
use crate::error::Result;

impl Shared {
    /// Memory for a tensor; `idle` where the host will write it.
    pub(super) fn alloc(
        self: &Rc<Self>,
        op: &'static str,
        dtype: DType,
        elements: usize,
        idle: bool,
    ) -> Result<Storage> {
        self.check(op)?;
        // Whole vec4s, so that kernels may read and write past the last element.
        let bytes = (elements as u64 * self.scalar(dtype).bytes() as u64).next_multiple_of(16).max(16);
        let memory = self.pool.alloc(op, bytes, idle)?;
        self.sound(&memory.buffer);
        for (buffer, answer) in self.pool.take_asked() {
            spawn_local(confirm(Rc::downgrade(self), op, buffer, answer));
        }
        Ok(Storage::new(Buffer::Gpu(memory), dtype, elements))
    }

    /// What a buffer held does not matter any more.
    pub(super) fn sound(&self, buffer: &PooledBuffer) {
        if !self.recorder.borrow_mut().sound(buffer.id + 1) {
            self.submissions.borrow_mut().sound(buffer.id + 1);
        }
    }

    /// The host writes into a buffer.
    pub(super) fn wrote(&self, buffer: &PooledBuffer) {
        self.sound(buffer);
        self.state.writes.set(self.state.writes.get() + 1);
    }

    /// What the host has done to buffers beside the submissions: those cannot be repeated after it.
    pub(super) fn touched(&self) -> u64 {
        self.state.writes.get() + self.pool.destroyed()
    }

    /// Writes words into a buffer that no noted call uses.
    pub(super) fn write(&self, buffer: &PooledBuffer, words: Vec<u32>) {
        self.wrote(buffer);
        if let Some(words) = self.pool.let_wait(buffer, words) {
            buffer.hurried.set(buffer.is_asked());
            buffer.with(|handle| device::write(&self.device, handle, bytemuck::cast_slice(&words)));
        }
    }
}

/// Waits for the memory of a new large buffer. If there is none, all that lies unused is given back, and it is asked for once
/// more.
async fn confirm(weak: Weak<Shared>, op: &'static str, buffer: Weak<PooledBuffer>, answer: Promise) {
    // Nothing holds the buffer here while it is waited for: it may be given back and taken again.
    let both = || Some((weak.upgrade().filter(|shared| shared.check(op).is_ok())?, buffer.upgrade()?));
    let complains = async |answer| settled(answer).await.ok().and_then(|text| text.as_string());
    let mut complaint = complains(answer).await;
    if complaint.is_some() {
        let Some((shared, buffer)) = both() else { return };
        shared.pool.empty();
        let again = if buffer.hurried.get() { None } else { shared.pool.create_again(&buffer) };
        drop((shared, buffer));
        if let Some(again) = again {
            complaint = complains(again).await;
        }
    }
    let Some((shared, buffer)) = both() else { return };
    let waiting = shared.pool.answered(&buffer);
    match (complaint, waiting) {
        (Some(words), _) => shared.pool.give_up(op, &buffer, &words),
        (None, Some(waiting)) => {
            let bytes = bytemuck::cast_slice(&waiting);
            buffer.with(|handle| device::write(&shared.device, handle, bytes));
        }
        (None, None) => {}
    }
    drop(buffer);
    shared.flush();
}
