//! Buffers by size class, used again in queue order: what a finished tensor held serves the next one, at once.
//!
//! A buffer can be free while noted calls still use it: whatever is noted later runs later. Two things must not happen to such a
//! buffer: the host writing into it (that would overtake the calls), and its destruction. Who holds a buffer tells: one that only
//! the pool holds is idle.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use wgpu::webgpu::{GpuBuffer, GpuDevice};

use super::device::{create_buffer, usage};
use super::table::Table;
use crate::error::{Error, Result};

/// Bytes of free buffers that are always kept.
const KEEP: u64 = 256 << 20;

/// A buffer with a number that no other buffer of the engine ever has.
#[derive(Debug)]
pub(crate) struct PooledBuffer {
    pub buffer: GpuBuffer,
    pub id: u64,
    pub size: u64,
}

/// Free buffers of one size in the order in which they became free, with the time of that.
type FreeList = Vec<(u64, Rc<PooledBuffer>)>;

/// The pool of one device.
#[derive(Debug)]
pub(crate) struct Pool {
    device: GpuDevice,
    max_size: u64,
    /// Every buffer that was made and not destroyed, by its number.
    all: RefCell<Table<u64, GpuBuffer>>,
    disposed: Cell<bool>,
    /// Free buffers by size.
    free: RefCell<Table<u64, FreeList>>,
    /// Surplus that noted calls still use.
    doomed: RefCell<Vec<Rc<PooledBuffer>>>,
    free_bytes: Cell<u64>,
    allocated: Cell<u64>,
    used: Cell<u64>,
    /// The most bytes in use lately: as much may lie free, since a loop will want it again.
    peak: Cell<u64>,
    next: Cell<u64>,
    time: Cell<u64>,
}

impl Pool {
    pub fn new(device: GpuDevice, max_size: u64) -> Self {
        Self {
            device,
            max_size,
            all: RefCell::default(),
            disposed: Cell::new(false),
            free: RefCell::default(),
            doomed: RefCell::default(),
            free_bytes: Cell::new(0),
            allocated: Cell::new(0),
            used: Cell::new(0),
            peak: Cell::new(0),
            next: Cell::new(0),
            time: Cell::new(0),
        }
    }

    /// The size of the buffer that serves `bytes`: four classes to a power of two, at least 256.
    fn class(&self, bytes: u64) -> u64 {
        let power = bytes.max(256).next_power_of_two();
        let step = power / 8;
        bytes.max(256).next_multiple_of(step).min(self.max_size)
    }

    /// A buffer of at least `bytes`; its content is arbitrary. The host may write into it only if it was asked for `idle`.
    pub fn alloc(self: &Rc<Self>, op: &'static str, bytes: u64, idle: bool) -> Result<GpuMemory> {
        if bytes > self.max_size {
            return Err(Error::limit(
                op,
                format!(
                    "{bytes} bytes in one tensor; this device binds at most {}. Split the tensor, or use f16",
                    self.max_size
                ),
            ));
        }
        let size = self.class(bytes);
        let reused = self.free.borrow_mut().get_mut(&size).and_then(|list| {
            if !idle {
                return list.pop();
            }
            let place = list.iter().position(|(_, b)| Rc::strong_count(b) == 1)?;
            Some(list.remove(place))
        });
        let buffer = if let Some((_, buffer)) = reused {
            self.free_bytes.set(self.free_bytes.get() - size);
            buffer
        } else {
            let usage = usage::STORAGE | usage::COPY_SRC | usage::COPY_DST;
            self.allocated.set(self.allocated.get() + size);
            let id = self.next.replace(self.next.get() + 1);
            let buffer = create_buffer(&self.device, "", size as f64, usage);
            self.all.borrow_mut().insert(id, buffer.clone());
            Rc::new(PooledBuffer { buffer, id, size })
        };
        self.used.set(self.used.get() + bytes);
        self.peak.set(self.peak.get().max(self.used.get()));
        Ok(GpuMemory { buffer, bytes, pool: Rc::clone(self) })
    }

    fn give_back(&self, buffer: &Rc<PooledBuffer>, bytes: u64) {
        if self.disposed.get() {
            return;
        }
        self.used.set(self.used.get() - bytes);
        self.free_bytes.set(self.free_bytes.get() + buffer.size);
        let time = self.time.replace(self.time.get() + 1);
        let mut free = self.free.borrow_mut();
        free.entry(buffer.size).or_default().push((time, Rc::clone(buffer)));
        while self.free_bytes.get() > KEEP.max(self.peak.get()) {
            // What has been free for longest is the least likely to be wanted again.
            let oldest = free.iter().filter_map(|(&size, list)| Some((list.first()?.0, size))).min();
            let Some(list) = oldest.and_then(|(_, size)| free.get_mut(&size)) else { break };
            let (_, surplus) = list.remove(0);
            self.free_bytes.set(self.free_bytes.get() - surplus.size);
            self.doomed.borrow_mut().push(surplus);
        }
    }

    /// After the noted calls were handed over: destroys the surplus, and lets the peak come down slowly.
    pub fn settle(&self) {
        for buffer in self.doomed.take() {
            self.destroy(&buffer);
        }
        let peak = self.peak.get();
        self.peak.set((peak - peak / 64).max(self.used.get()));
    }

    fn destroy(&self, buffer: &PooledBuffer) {
        self.allocated.set(self.allocated.get() - buffer.size);
        self.all.borrow_mut().remove(&buffer.id);
        buffer.buffer.destroy();
    }

    /// Destroys every buffer, those of live tensors too.
    pub fn dispose(&self) {
        for buffer in self.all.take().into_values() {
            buffer.destroy();
        }
        self.free.take();
        self.doomed.take();
        for count in [&self.free_bytes, &self.allocated, &self.used] {
            count.set(0);
        }
        self.disposed.set(true);
    }

    pub fn allocated(&self) -> u64 {
        self.allocated.get()
    }

    pub fn used(&self) -> u64 {
        self.used.get()
    }
}

/// A storage's buffer; it goes back to its pool when the storage is gone.
#[derive(Debug)]
pub(crate) struct GpuMemory {
    pub buffer: Rc<PooledBuffer>,
    bytes: u64,
    pool: Rc<Pool>,
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        self.pool.give_back(&self.buffer, self.bytes);
    }
}
