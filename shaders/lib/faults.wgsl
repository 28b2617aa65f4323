// A value out of range cannot stop a kernel: the first one is written down, and the next read rejects with it.
struct Faults {
  count: atomic<u32>,
  kernel: u32,
  place: u32,
  value: i32,
}

fn report_fault(kernel: u32, place: u32, value: i32) {
  if atomicAdd(&faults.count, 1u) == 0u {
    faults.kernel = kernel;
    faults.place = place;
    faults.value = value;
  }
}
