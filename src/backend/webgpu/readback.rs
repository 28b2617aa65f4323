//! Reading back: a copy in the list of calls, a buffer that the host can map, and who waits for it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wgpu::webgpu::{GpuBuffer, GpuDevice};

use super::device::{create_buffer, usage};
use super::event::Event;
use super::pool::PooledBuffer;
use crate::error::Error;

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
