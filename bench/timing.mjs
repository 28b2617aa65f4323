// Times things side by side. A contestant is `{ run(k) }`: `run` does its work `k` times and resolves when it is done.

export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};

async function batch({ run }, k) {
  const start = performance.now();
  await run(k);
  return performance.now() - start;
}

/**
 * How often to repeat for a batch of about `milliseconds`. The first batch compiles and allocates, so it is not looked
 * at; the batches up to the answer are the warm-up.
 */
async function repetitions(contestant, milliseconds) {
  await batch(contestant, 1);
  for (let k = 1; ; k *= 2) {
    // The better of two: one hiccup must not settle how often the rest is done.
    const took = Math.min(await batch(contestant, k), await batch(contestant, k));
    if (took >= milliseconds / 2) return Math.max(1, Math.round((k * milliseconds) / took));
  }
}

/**
 * Milliseconds of one repetition of each contestant: the median and the fastest of `batches` batches. The contestants
 * take turns, so that a clock that changes meets all of them.
 */
export async function compare(contestants, { batches, milliseconds }) {
  const entries = [];
  for (const contestant of contestants) {
    entries.push({ contestant, k: await repetitions(contestant, milliseconds), times: [] });
  }
  for (let i = 0; i < batches; i++) {
    for (const { contestant, k, times } of entries) times.push((await batch(contestant, k)) / k);
  }
  return entries.map(({ times }) => ({ median: median(times), fastest: Math.min(...times) }));
}
