//! The seam between operations and devices: allocate, upload, run, read. It knows no operation.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::{Flags, Kernel};
use crate::profile::KernelCall;

#[cfg(any(target_arch = "wasm32", test))]
mod agreement;
#[cfg(target_arch = "wasm32")]
pub(crate) mod checked;
pub(crate) mod cpu;
#[cfg(target_arch = "wasm32")]
pub(crate) mod webgpu;

/// A future of the single-threaded world of a page.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// Elements on their way in or out, in the host's types: `f16` travels as `f32`, `bool` as `u32`.
#[derive(Debug, Clone, PartialEq)]
pub enum HostData {
    /// Elements of `f32` and `f16` tensors.
    F32(Vec<f32>),
    /// Elements of `i32` tensors.
    I32(Vec<i32>),
    /// Elements of `u32` and `bool` tensors.
    U32(Vec<u32>),
}

impl HostData {
    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::F32(v) => v.len(),
            Self::I32(v) => v.len(),
            Self::U32(v) => v.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements as `f64`, whatever their type.
    #[must_use]
    pub fn to_f64(&self) -> Vec<f64> {
        match self {
            Self::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Self::I32(v) => v.iter().map(|&x| f64::from(x)).collect(),
            Self::U32(v) => v.iter().map(|&x| f64::from(x)).collect(),
        }
    }

    /// The same bits seen as 32-bit words.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn words(&self) -> &[u32] {
        match self {
            Self::F32(v) => bytemuck::cast_slice(v),
            Self::I32(v) => bytemuck::cast_slice(v),
            Self::U32(v) => v,
        }
    }

    /// The same bits as 32-bit words.
    #[cfg(target_arch = "wasm32")]
    pub(crate) fn into_words(self) -> Vec<u32> {
        match self {
            Self::F32(v) => bytemuck::allocation::cast_vec(v),
            Self::I32(v) => bytemuck::allocation::cast_vec(v),
            Self::U32(v) => v,
        }
    }

    /// Words of storage back in the host type of `dtype`.
    pub(crate) fn from_words(dtype: DType, words: Vec<u32>) -> Self {
        match dtype {
            DType::F32 | DType::F16 => Self::F32(bytemuck::allocation::cast_vec(words)),
            DType::I32 => Self::I32(bytemuck::allocation::cast_vec(words)),
            DType::U32 | DType::Bool => Self::U32(words),
        }
    }
}

/// Collects into memory that may not be there: an allocation that fails must be an error, since a trap would take every engine
/// of the page with it.
pub(crate) fn try_collect<T>(
    op: &'static str,
    count: usize,
    values: impl Iterator<Item = T>,
) -> Result<Vec<T>> {
    let mut all = Vec::new();
    all.try_reserve_exact(count).map_err(|_| {
        let bytes = count as u64 * size_of::<T>() as u64;
        Error::new(
            ErrorKind::Limit,
            op,
            format!("{bytes} bytes of memory for {count} elements are not to be had; free tensors first"),
        )
    })?;
    all.extend(values);
    Ok(all)
}

/// Memory of one device.
#[derive(Debug)]
pub(crate) enum Buffer {
    Cpu(cpu::CpuMemory),
    #[cfg(target_arch = "wasm32")]
    Gpu(webgpu::GpuMemory),
}

/// What tensors share: memory, what it holds, and how often it was written in place.
#[derive(Debug)]
pub(crate) struct StorageInner {
    pub buffer: Buffer,
    pub dtype: DType,
    pub elements: usize,
    version: Cell<u32>,
}

/// A shared piece of device memory.
#[derive(Debug, Clone)]
pub(crate) struct Storage(pub Rc<StorageInner>);

impl Storage {
    pub fn new(buffer: Buffer, dtype: DType, elements: usize) -> Self {
        Self(Rc::new(StorageInner { buffer, dtype, elements, version: Cell::new(0) }))
    }

    /// How often the content was changed in place.
    pub fn version(&self) -> u32 {
        self.0.version.get()
    }

    pub fn bump_version(&self) {
        self.0.version.set(self.0.version.get().wrapping_add(1));
    }
}

/// One call of a kernel.
#[derive(Debug)]
pub(crate) struct Launch<'a> {
    pub kernel: &'static Kernel,
    pub flags: Flags,
    /// The type of the tensors behind `scalar` bindings.
    pub dtype: DType,
    pub params: &'a [u8],
    /// One entry a binding; `None` where the variant has none.
    pub buffers: &'a [Option<&'a Storage>],
}

/// What an engine holds at the moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes that live storages need.
    pub bytes_used: u64,
    /// Bytes held from the system, buffers kept for reuse included.
    pub bytes_allocated: u64,
    /// The most bytes that live storages needed at one time.
    pub bytes_peak: u64,
    /// GPU objects made so far: buffers, bind groups and pipelines. A steady loop makes none. 0 on the CPU.
    pub objects_created: u64,
}

/// A device that runs kernels.
pub(crate) trait Backend {
    /// `"cpu"` or `"webgpu"`.
    fn name(&self) -> &'static str;
    /// Memory for `elements` of `dtype`; its content is arbitrary until a kernel or an upload writes it.
    fn alloc(&self, op: &'static str, dtype: DType, elements: usize) -> Result<Storage>;
    /// Fresh memory with these elements; `dtype` is one that the data fit.
    fn upload(&self, op: &'static str, dtype: DType, data: HostData) -> Result<Storage>;
    /// Queues a kernel.
    fn run(&self, launch: &Launch<'_>) -> Result<()>;
    /// The `count` elements from `start`, once all queued work on them is done.
    fn read(
        &self,
        op: &'static str,
        storage: &Storage,
        start: usize,
        count: usize,
    ) -> LocalFuture<Result<HostData>>;
    /// Hands queued work to the device.
    fn flush(&self) -> Result<()>;
    /// Resolves when the device has done all work queued so far.
    fn sync(&self) -> LocalFuture<Result<()>>;
    /// Notes every call from now on; what was queued before is not in it.
    fn profile_start(&self) -> Result<()>;
    /// Stops noting; the calls, once the device has done them.
    fn profile_stop(&self) -> LocalFuture<Result<Vec<KernelCall>>>;
    /// What is held.
    fn memory(&self) -> Memory;
    /// Gives everything back; later calls fail with `DisposedError`.
    fn dispose(&self);
}

/// The error of an engine that was disposed.
pub(crate) fn disposed(op: &'static str) -> Error {
    Error::new(ErrorKind::Disposed, op, "the engine was disposed; make a new one with init()")
}
