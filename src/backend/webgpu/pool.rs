//! Buffers by size class, used again in queue order: what a finished tensor held serves the next one, at once.
//!
//! A buffer can be free while noted calls still use it: whatever is noted later runs later. Two things must not happen to such a
//! buffer: the host writing into it (that would overtake the calls), and its destruction. Who holds a buffer tells: one that only
//! the pool holds is idle.
//!
//! Of the free buffers of a size the one in the first place is taken. Equal work on equal tensors then meets equal buffers, and
//! finds its bind groups made.

use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};

use js_sys::Promise;
use wgpu::webgpu::{GpuBuffer, GpuDevice};

use super::device::{create_buffer, pop_error_scope, push_error_scope, usage};
use super::table::Table;
use crate::error::{Error, Result, number};

mod class;

use class::Class;

/// Bytes of free buffers that are always kept, unless the page says otherwise.
const KEEP: u64 = 256 << 20;

/// From how many bytes on a new buffer is waited for before work that uses it goes out: the browser tells late that there is
/// no memory.
const LARGE: u64 = 4 << 20;

/// Words of uploads that may wait for their buffers' memory: a page that loads a model at once shall not hold it twice.
const WAITING_WORDS: usize = 64 << 20;

/// What is known about a buffer's memory.
#[derive(Debug, Clone)]
pub(super) enum Standing {
    /// It is there.
    Sound,
    /// The browser has not answered yet. What the host wrote meanwhile waits here.
    Asked(Option<Vec<u32>>),
    /// It could not be had.
    Missing(Error),
}

/// A buffer with a number that no other buffer of the engine ever has.
#[derive(Debug)]
pub(crate) struct PooledBuffer {
    handle: RefCell<GpuBuffer>,
    pub id: u32,
    pub size: u64,
    /// Its place among those of its size.
    place: usize,
    pub(super) standing: RefCell<Standing>,
    /// It was written or handed over before its memory was answered for: another in its place would not hold the same.
    pub(super) hurried: Cell<bool>,
}

impl PooledBuffer {
    /// Does something with the browser's buffer.
    pub fn with<T>(&self, f: impl FnOnce(&GpuBuffer) -> T) -> T {
        f(&self.handle.borrow())
    }

    /// Whether work that uses it must wait.
    pub fn is_asked(&self) -> bool {
        matches!(*self.standing.borrow(), Standing::Asked(_))
    }

    /// Why there is no memory behind it.
    pub fn missing(&self) -> Option<Error> {
        match &*self.standing.borrow() {
            Standing::Missing(error) => Some(error.clone()),
            _ => None,
        }
    }
}

/// The pool of one device.
#[derive(Debug)]
pub(crate) struct Pool {
    device: GpuDevice,
    max_size: u64,
    /// Bytes of free buffers to keep, if the page has said.
    keep: Option<u64>,
    classes: RefCell<Table<u64, Class>>,
    disposed: Cell<bool>,
    /// Surplus that noted calls still use.
    doomed: RefCell<Vec<Rc<PooledBuffer>>>,
    /// New large buffers whose answer nobody waits for yet.
    asked: RefCell<Vec<(Weak<PooledBuffer>, Promise)>>,
    free_bytes: Cell<u64>,
    allocated: Cell<u64>,
    used: Cell<u64>,
    /// The most bytes that were ever in use.
    peak: Cell<u64>,
    /// The most bytes in use lately: as much may lie free, since a loop will want it again.
    recent: Cell<u64>,
    /// Words that wait for their buffers' memory.
    waiting_words: Cell<usize>,
    created: Cell<u32>,
    time: Cell<u64>,
    /// How often something happened that the device does outside of submitted lists: a destruction.
    destroyed: Cell<u64>,
}

impl Pool {
    pub fn new(device: GpuDevice, max_size: u64, keep: Option<u64>) -> Self {
        Self {
            device,
            max_size,
            keep,
            classes: RefCell::default(),
            disposed: Cell::new(false),
            doomed: RefCell::default(),
            asked: RefCell::default(),
            free_bytes: Cell::new(0),
            allocated: Cell::new(0),
            used: Cell::new(0),
            peak: Cell::new(0),
            recent: Cell::new(0),
            waiting_words: Cell::new(0),
            created: Cell::new(0),
            time: Cell::new(0),
            destroyed: Cell::new(0),
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
        let mut classes = self.classes.borrow_mut();
        let class = classes.entry(size).or_default();
        class.wanted = self.time.replace(self.time.get() + 1);
        let buffer = if let Some(buffer) = class.take(|b| !idle || Rc::strong_count(b) == 1) {
            self.free_bytes.set(self.free_bytes.get() - size);
            buffer
        } else {
            self.add(class, size)
        };
        self.used.set(self.used.get() + bytes);
        self.peak.set(self.peak.get().max(self.used.get()));
        self.recent.set(self.recent.get().max(self.used.get()));
        Ok(GpuMemory { buffer, bytes, pool: Rc::clone(self) })
    }

    /// A new buffer.
    fn add(&self, class: &mut Class, size: u64) -> Rc<PooledBuffer> {
        let place = class.room();
        let (handle, answer) = self.create(size);
        let buffer = Rc::new(PooledBuffer {
            handle: RefCell::new(handle),
            id: self.created.get(),
            size,
            place,
            standing: RefCell::new(if answer.is_some() { Standing::Asked(None) } else { Standing::Sound }),
            hurried: Cell::new(false),
        });
        class.places[place] = Some(Rc::clone(&buffer));
        self.allocated.set(self.allocated.get() + size);
        if let Some(answer) = answer {
            self.asked.borrow_mut().push((Rc::downgrade(&buffer), answer));
        }
        buffer
    }

    /// A buffer of the browser; the promise of a large one gives what is wrong, or nothing.
    fn create(&self, size: u64) -> (GpuBuffer, Option<Promise>) {
        let usage = usage::STORAGE | usage::COPY_SRC | usage::COPY_DST;
        self.created.set(self.created.get() + 1);
        if size < LARGE {
            return (create_buffer(&self.device, "", size as f64, usage), None);
        }
        push_error_scope(&self.device, "out-of-memory");
        let buffer = create_buffer(&self.device, "", size as f64, usage);
        (buffer, Some(pop_error_scope(&self.device)))
    }

    /// Lets words wait for a buffer's memory, in place of those that did. They come back where it is there, or too many wait.
    pub fn let_wait(&self, buffer: &PooledBuffer, words: Vec<u32>) -> Option<Vec<u32>> {
        match &mut *buffer.standing.borrow_mut() {
            Standing::Asked(waiting) if self.waiting_words.get() + words.len() <= WAITING_WORDS => {
                self.count_waiting(waiting.take(), Some(&words));
                *waiting = Some(words);
                None
            }
            _ => Some(words),
        }
    }

    /// The buffer is used before its memory is answered for: what waits to be written.
    pub fn take_waiting(&self, buffer: &PooledBuffer) -> Option<Vec<u32>> {
        match &mut *buffer.standing.borrow_mut() {
            Standing::Asked(waiting) => self.count_waiting(waiting.take(), None),
            _ => None,
        }
    }

    /// A buffer's memory is there, or given up: what waited for it.
    pub fn answered(&self, buffer: &PooledBuffer) -> Option<Vec<u32>> {
        let Standing::Asked(waiting) = buffer.standing.replace(Standing::Sound) else { return None };
        self.count_waiting(waiting, None)
    }

    fn count_waiting(&self, old: Option<Vec<u32>>, new: Option<&Vec<u32>>) -> Option<Vec<u32>> {
        let words = |words: Option<&Vec<u32>>| words.map_or(0, Vec::len);
        self.waiting_words.set(self.waiting_words.get() + words(new) - words(old.as_ref()));
        old
    }

    /// New large buffers, with promises of what is wrong with them.
    pub fn take_asked(&self) -> Vec<(Weak<PooledBuffer>, Promise)> {
        self.asked.take()
    }

    /// Asks for a buffer's memory once more.
    pub fn create_again(&self, buffer: &PooledBuffer) -> Option<Promise> {
        let (handle, answer) = self.create(buffer.size);
        buffer.handle.replace(handle);
        answer
    }

    /// A buffer could not be had: `op` wanted it, and the browser says why.
    pub fn give_up(&self, op: &'static str, buffer: &PooledBuffer, words: &str) {
        // Drivers go on for lines.
        let words = words.lines().next().unwrap_or_default();
        let megabytes = |bytes: u64| number((bytes as f64 / 1e5).round() / 10.0);
        self.allocated.set(self.allocated.get() - buffer.size);
        let error = Error::limit(
            op,
            format!(
                "the GPU has no {} MB for a tensor, after everything unused was given back; {} MB are in use. \
                 Dispose tensors, or make smaller ones ({words})",
                megabytes(buffer.size),
                megabytes(self.used.get().saturating_sub(buffer.size)),
            ),
        );
        buffer.standing.replace(Standing::Missing(error));
    }

    fn give_back(&self, buffer: &Rc<PooledBuffer>, bytes: u64) {
        if self.disposed.get() {
            return;
        }
        self.used.set(self.used.get() - bytes);
        let mut classes = self.classes.borrow_mut();
        let Some(class) = classes.get_mut(&buffer.size) else { return };
        if buffer.missing().is_some() {
            class.remove(buffer.place);
            self.doom(Rc::clone(buffer));
            return;
        }
        // Besides its place here only the memory that is given back holds it: what waits to be written nobody will read.
        if Rc::strong_count(buffer) == 2 {
            self.take_waiting(buffer);
        }
        class.put(buffer.place);
        self.free_bytes.set(self.free_bytes.get() + buffer.size);
        let most = self.keep.unwrap_or_else(|| KEEP.max(self.recent.get()));
        self.shrink(&mut classes, most);
    }

    /// Gives buffers back until no more than `most` bytes lie free.
    fn shrink(&self, classes: &mut Table<u64, Class>, most: u64) {
        while self.free_bytes.get() > most {
            // The size that nobody has wanted for longest is the least likely to be wanted again.
            let idle = classes.values_mut().filter(|c| c.free_count > 0);
            let Some(surplus) = idle.min_by_key(|c| c.wanted).and_then(Class::remove_last_free) else {
                break;
            };
            self.free_bytes.set(self.free_bytes.get() - surplus.size);
            self.doom(surplus);
        }
    }

    /// Destroys a buffer as soon as no noted call needs it.
    fn doom(&self, buffer: Rc<PooledBuffer>) {
        self.doomed.borrow_mut().push(buffer);
    }

    /// Gives back all that lies free, as far as no noted call uses it.
    pub fn empty(&self) {
        self.shrink(&mut self.classes.borrow_mut(), 0);
        self.destroy_doomed();
    }

    /// After noted calls were handed over: destroys the surplus, and lets what is kept come down slowly.
    pub fn settle(&self) {
        self.destroy_doomed();
        let recent = self.recent.get();
        self.recent.set((recent - recent / 64).max(self.used.get()));
    }

    fn destroy_doomed(&self) {
        self.doomed.borrow_mut().retain(|buffer| {
            let needed = Rc::strong_count(buffer) > 1;
            if !needed {
                if buffer.missing().is_none() {
                    self.allocated.set(self.allocated.get() - buffer.size);
                }
                self.destroyed.set(self.destroyed.get() + 1);
                buffer.with(GpuBuffer::destroy);
            }
            needed
        });
    }

    /// Destroys every buffer, those of live tensors too.
    pub fn dispose(&self) {
        self.disposed.set(true);
        let placed = self.classes.take().into_values().flat_map(|class| class.places).flatten();
        for buffer in placed.chain(self.doomed.take()) {
            buffer.with(GpuBuffer::destroy);
        }
        self.asked.take();
        for count in [&self.free_bytes, &self.allocated, &self.used] {
            count.set(0);
        }
    }

    pub fn allocated(&self) -> u64 {
        self.allocated.get()
    }

    pub fn used(&self) -> u64 {
        self.used.get()
    }

    pub fn peak(&self) -> u64 {
        self.peak.get()
    }

    /// How many buffers were made.
    pub fn created(&self) -> u64 {
        u64::from(self.created.get())
    }

    /// Grows with every buffer that is destroyed.
    pub fn destroyed(&self) -> u64 {
        self.destroyed.get()
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
