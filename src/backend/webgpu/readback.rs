//! Reading back: a copy in the list of calls, a buffer that the host can map, and who waits for it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wasm_bindgen::prelude::JsValue;
use wgpu::webgpu::{GpuBuffer, GpuDevice};

use super::device::{self, create_buffer, message, settled, usage};
use super::event::Event;
use super::pool::PooledBuffer;
use super::{Shared, lost_error};
use crate::backend::{disposed, try_collect};
use crate::error::{Error, ErrorKind, Result};

/// How long the news of a lost device may take after a read has failed.
const LOSS_TOLD_MS: u32 = 1000;

/// Bytes of the device's record of values out of range, which follows the bytes that were asked for.
pub(super) const RECORD_SIZE: u64 = 16;

/// Buffers for reading that are kept for reuse, and the bytes they may have.
const KEEP: usize = 16;
const KEEP_BYTES: u64 = 64 << 20;

/// What is to be copied to the host.
#[derive(Debug)]
pub(super) enum Source {
    /// Bytes of a tensor, from a place on.
    Buffer { buffer: Rc<PooledBuffer>, start: u64, bytes: u64 },
    /// Nothing: it is only waited for.
    Nothing,
}

impl Source {
    pub fn buffer(&self) -> Option<&Rc<PooledBuffer>> {
        match self {
            Self::Buffer { buffer, .. } => Some(buffer),
            Self::Nothing => None,
        }
    }

    pub fn bytes(&self) -> u64 {
        match self {
            Self::Buffer { bytes, .. } => *bytes,
            Self::Nothing => 0,
        }
    }
}

/// A copy on its way to the host.
#[derive(Debug)]
pub(super) struct Copy {
    pub source: Source,
    /// Whether the record of values out of range comes along.
    pub record: bool,
    /// It was handed to the device, and `staging` is there.
    pub submitted: Event,
    pub staging: RefCell<Option<Rc<Staged>>>,
    /// It is known what the device made of it, and of all before it.
    pub settled: Event,
    /// Why there is nothing to read.
    pub error: RefCell<Option<Error>>,
}

impl Copy {
    pub fn new(source: Source, record: bool) -> Self {
        Self {
            source,
            record,
            submitted: Event::default(),
            staging: RefCell::default(),
            settled: Event::default(),
            error: RefCell::default(),
        }
    }

    /// Bytes that arrive, the record included.
    pub fn bytes(&self) -> u64 {
        self.source.bytes() + if self.record { RECORD_SIZE } else { 0 }
    }

    /// Nothing will come of it: who waits shall look at what became of the device.
    pub fn abandon(&self) {
        self.submitted.happen();
        self.settled.happen();
    }
}

/// A buffer that the host can map.
#[derive(Debug)]
pub(super) struct Staged {
    pub buffer: GpuBuffer,
    size: u64,
}

/// Buffers for reading, used again.
#[derive(Debug, Default)]
pub(super) struct Staging {
    free: RefCell<Vec<Rc<Staged>>>,
    created: Cell<u64>,
}

impl Staging {
    /// A buffer of at least `bytes`.
    pub fn take(&self, device: &GpuDevice, bytes: u64) -> Rc<Staged> {
        let size = bytes.max(256).next_power_of_two();
        let mut free = self.free.borrow_mut();
        if let Some(place) = free.iter().position(|s| s.size == size) {
            return free.remove(place);
        }
        self.created.set(self.created.get() + 1);
        let buffer = create_buffer(device, "read", size as f64, usage::MAP_READ | usage::COPY_DST);
        Rc::new(Staged { buffer, size })
    }

    /// Takes a buffer back that is not mapped.
    pub fn give_back(&self, staged: Rc<Staged>) {
        let mut free = self.free.borrow_mut();
        free.push(staged);
        // The one that was free for longest goes.
        while free.len() > KEEP || free.iter().map(|s| s.size).sum::<u64>() > KEEP_BYTES {
            free.remove(0).buffer.destroy();
        }
    }

    /// How many were made.
    pub fn created(&self) -> u64 {
        self.created.get()
    }

    pub fn dispose(&self) {
        for staged in self.free.take() {
            staged.buffer.destroy();
        }
    }
}

impl Shared {
    /// Notes a copy to the host and hands over all that is noted. What the caller does next comes later in the queue and is not
    /// seen.
    pub(super) fn copy_out(self: &Rc<Self>, source: Source, record: bool) -> Rc<Copy> {
        let record = self.state.record_pending.replace(false) || record;
        let copy = Rc::new(Copy::new(source, record));
        self.recorder.borrow_mut().copy(Rc::clone(&copy));
        self.flush();
        copy
    }

    /// Waits for a copy and takes its words.
    pub(super) async fn arrive(&self, op: &'static str, copy: Rc<Copy>) -> Result<Vec<u32>> {
        let bytes = copy.bytes();
        copy.submitted.wait().await;
        loop {
            self.check(op)?;
            let Some(staged) = copy.staging.borrow().clone() else { return Err(disposed(op)) };
            let mapped = settled(device::map(&staged.buffer, bytes as f64)).await;
            copy.settled.wait().await;
            let mut words =
                try_collect(op, bytes as usize / 4, std::iter::repeat_n(0u32, bytes as usize / 4))?;
            let taken = mapped.and_then(|_| device::take(&staged.buffer, &mut words));
            let again = copy.staging.borrow().as_ref().is_some_and(|latest| !Rc::ptr_eq(latest, &staged));
            if taken.is_ok() {
                self.staging.give_back(staged);
            }
            if again {
                continue;
            }
            self.check(op)?;
            if let Some(error) = copy.error.take() {
                return Err(error);
            }
            if let Err(error) = taken {
                return Err(self.why_no_map(op, &error).await);
            }
            if copy.record {
                let record = words.split_off((copy.source.bytes() / 4) as usize);
                if record[0] > 0 {
                    let (kernel, place, value) = (record[1] as usize, record[2] as usize, record[3] as i32);
                    return Err(crate::kernels::fault(kernel, place, value));
                }
            }
            return Ok(words);
        }
    }

    /// Why a staging buffer could not be mapped: mostly because the device is gone, which is told in a later task.
    pub(super) async fn why_no_map(&self, op: &'static str, error: &JsValue) -> Error {
        let told = settled(device::loss_within(&self.device, LOSS_TOLD_MS)).await;
        if let Some(reason) = told.ok().and_then(|reason| reason.as_string()) {
            let lost = lost_error(op, &reason);
            self.lose(reason);
            return lost;
        }
        Error::new(ErrorKind::Kernel, op, message(error))
    }
}
