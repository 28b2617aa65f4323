//! The CPU backend: kernels run at once, in order, on SIMD code.

use std::cell::{Cell, Ref, RefCell, RefMut};
use std::rc::{Rc, Weak};

use bytemuck::allocation::cast_vec;
use half::f16;

use super::{Backend, Buffer, HostData, Launch, LocalFuture, Memory, Storage, disposed, try_collect};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Access, CpuArgs, CpuBuffer, Element};
use crate::profile::{self, KernelCall};

/// The words of one storage; an engine that is disposed takes them away.
type Words = Rc<RefCell<Vec<f32>>>;

/// Bytes of free words that are always kept; as many as are in use may be kept besides, since a loop will want them again.
const KEEP: u64 = 16 << 20;

/// How many free pieces are kept: all are looked through.
const KEEP_PIECES: usize = 256;

/// What all memory of a backend shares.
#[derive(Debug, Default)]
struct Shared {
    bytes: Cell<u64>,
    /// The most that were ever in use.
    peak: Cell<u64>,
    /// Bytes of free words to keep, if the caller has said.
    keep: Option<u64>,
    /// Words whose storage is gone, for the next one of their length.
    free: RefCell<Vec<Vec<f32>>>,
    free_bytes: Cell<u64>,
    disposed: Cell<bool>,
    live: RefCell<Vec<Weak<RefCell<Vec<f32>>>>>,
    /// How long the list of live words may become before the dead are taken out.
    tidy_at: Cell<usize>,
}

/// Words on the heap; `f16` and `bool` elements take a word each.
#[derive(Debug)]
pub(crate) struct CpuMemory {
    words: Words,
    shared: Rc<Shared>,
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        let words = self.words.take();
        let bytes = words.len() as u64 * 4;
        self.shared.bytes.set(self.shared.bytes.get() - bytes);
        self.shared.give_back(words, bytes);
    }
}

impl Shared {
    fn give_back(&self, words: Vec<f32>, bytes: u64) {
        let free_bytes = self.free_bytes.get() + bytes;
        let mut free = self.free.borrow_mut();
        let most = self.keep.unwrap_or_else(|| KEEP.max(self.bytes.get()));
        if !words.is_empty() && free.len() < KEEP_PIECES && free_bytes <= most {
            self.free_bytes.set(free_bytes);
            free.push(words);
        }
    }

    /// Free words of this length, the latest: they may still be in the cache. Their content is what it was.
    fn reuse(&self, length: usize) -> Option<Vec<f32>> {
        let mut free = self.free.borrow_mut();
        let place = free.iter().rposition(|words| words.len() == length)?;
        self.free_bytes.set(self.free_bytes.get() - length as u64 * 4);
        Some(free.swap_remove(place))
    }

    fn forget_free(&self) {
        self.free_bytes.set(0);
        self.free.take();
    }
}

/// Runs kernels on the calling thread.
#[derive(Debug, Default)]
pub(crate) struct CpuBackend {
    shared: Rc<Shared>,
    profile: RefCell<Option<Profile>>,
}

/// The calls since a profile began.
#[derive(Debug)]
struct Profile {
    began: f64,
    calls: Vec<KernelCall>,
}

impl CpuBackend {
    /// A backend that keeps this many bytes of free words.
    pub fn keeping(keep: Option<u64>) -> Self {
        Self { shared: Rc::new(Shared { keep, ..Shared::default() }), profile: RefCell::default() }
    }

    fn keep(&self, words: Vec<f32>, dtype: DType) -> Storage {
        let elements = words.len();
        let bytes = self.shared.bytes.get() + elements as u64 * 4;
        self.shared.bytes.set(bytes);
        self.shared.peak.set(self.shared.peak.get().max(bytes));
        let words = Rc::new(RefCell::new(words));
        let mut live = self.shared.live.borrow_mut();
        if live.len() >= self.shared.tidy_at.get() {
            live.retain(|w| w.strong_count() > 0);
            self.shared.tidy_at.set(2 * live.len() + 64);
        }
        live.push(Rc::downgrade(&words));
        Storage::new(Buffer::Cpu(CpuMemory { words, shared: Rc::clone(&self.shared) }), dtype, elements)
    }

    /// Words of a storage, at once: a CPU has nothing to wait for.
    pub fn words(&self, op: &'static str, storage: &Storage, start: usize, count: usize) -> Result<Vec<f32>> {
        self.check(op)?;
        let words = memory_of(storage).words.borrow();
        try_collect(op, count, words[start..start + count].iter().copied())
    }

    fn check(&self, op: &'static str) -> Result<()> {
        if self.shared.disposed.get() { Err(disposed(op)) } else { Ok(()) }
    }

    fn execute(&self, launch: &Launch<'_>) -> Result<()> {
        let kernel = launch.kernel;
        self.check(kernel.name)?;
        let in_use = || {
            Error::new(
                ErrorKind::Kernel,
                kernel.name,
                "a buffer is both read and written; this is a fault of wgrad",
            )
        };
        let mut buffers = Vec::with_capacity(kernel.bindings.len());
        for (binding, storage) in kernel.bindings.iter().zip(launch.buffers) {
            buffers.push(match storage {
                None => CpuBuffer::Absent,
                Some(s) if binding.access == Access::Read => {
                    let words = memory_of(s).words.try_borrow().map_err(|_| in_use())?;
                    CpuBuffer::Read(Ref::map(words, Vec::as_slice))
                }
                Some(s) => {
                    let words = memory_of(s).words.try_borrow_mut().map_err(|_| in_use())?;
                    CpuBuffer::Write(RefMut::map(words, Vec::as_mut_slice))
                }
            });
        }
        (kernel.cpu)(&mut CpuArgs { kernel, flags: launch.flags, params: launch.params, buffers })?;
        if launch.dtype == DType::F16 {
            for (binding, storage) in kernel.bindings.iter().zip(launch.buffers) {
                if let Some(s) =
                    storage.filter(|_| binding.access != Access::Read && binding.element == Element::Scalar)
                {
                    round_to_f16(&mut memory_of(s).words.borrow_mut());
                }
            }
        }
        Ok(())
    }
}

fn memory_of(storage: &Storage) -> &CpuMemory {
    match &storage.0.buffer {
        Buffer::Cpu(memory) => memory,
        #[cfg(target_arch = "wasm32")]
        Buffer::Gpu(_) => unreachable!("operations refuse tensors of another engine"),
    }
}

impl Backend for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn alloc(&self, op: &'static str, dtype: DType, elements: usize) -> Result<Storage> {
        self.check(op)?;
        let zeros = || try_collect(op, elements, std::iter::repeat_n(0.0, elements));
        let words = match self.shared.reuse(elements) {
            Some(words) => words,
            // What lies free in other lengths may be what is missing.
            None => zeros().or_else(|_| {
                self.shared.forget_free();
                zeros()
            })?,
        };
        Ok(self.keep(words, dtype))
    }

    fn upload(&self, op: &'static str, dtype: DType, data: HostData) -> Result<Storage> {
        self.check(op)?;
        let mut words: Vec<f32> = match data {
            HostData::F32(values) => values,
            HostData::I32(values) => cast_vec(values),
            HostData::U32(values) => cast_vec(values),
        };
        if dtype == DType::F16 {
            round_to_f16(&mut words);
        }
        Ok(self.keep(words, dtype))
    }

    fn run(&self, launch: &Launch<'_>) -> Result<()> {
        if self.profile.borrow().is_none() {
            return self.execute(launch);
        }
        let start = profile::now();
        self.execute(launch)?;
        let time = Some(profile::now() - start);
        if let Some(profile) = &mut *self.profile.borrow_mut() {
            let call = KernelCall::of(launch, &|_| size_of::<f32>());
            profile.calls.push(KernelCall { start: Some(start - profile.began), time, ..call });
        }
        Ok(())
    }

    fn read(
        &self,
        op: &'static str,
        storage: &Storage,
        start: usize,
        count: usize,
    ) -> LocalFuture<Result<HostData>> {
        let words = self.words(op, storage, start, count);
        let elements = words.map(|words| HostData::from_words(storage.0.dtype, cast_vec(words)));
        Box::pin(std::future::ready(elements))
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }

    fn sync(&self) -> LocalFuture<Result<()>> {
        Box::pin(std::future::ready(self.check("sync")))
    }

    fn profile_start(&self) -> Result<()> {
        self.check("profile")?;
        self.profile.replace(Some(Profile { began: profile::now(), calls: Vec::new() }));
        Ok(())
    }

    fn profile_stop(&self) -> LocalFuture<Result<Vec<KernelCall>>> {
        let calls = self.profile.take().map_or_else(Vec::new, |profile| profile.calls);
        Box::pin(std::future::ready(self.check("profile").map(|()| calls)))
    }

    fn memory(&self) -> Memory {
        let bytes_used = self.shared.bytes.get();
        Memory {
            bytes_used,
            bytes_allocated: bytes_used + self.shared.free_bytes.get(),
            bytes_peak: self.shared.peak.get(),
            objects_created: 0,
        }
    }

    fn dispose(&self) {
        self.shared.disposed.set(true);
        self.shared.forget_free();
        self.shared.bytes.set(0);
        for words in self.shared.live.take().iter().filter_map(Weak::upgrade) {
            words.take();
        }
    }
}

fn round_to_f16(words: &mut [f32]) {
    for w in words {
        *w = f16::from_f32(*w).to_f32();
    }
}
