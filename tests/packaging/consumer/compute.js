/** One line of JSON: three values and the device they were computed on, or the error. */
export async function compute(init, options) {
  try {
    const engine = await init(options);
    const y = engine.tensor([1, -2, 0.5]).siluMul(engine.tensor([3, 0.25, -1]));
    return JSON.stringify({ values: Array.from(await y.data()), device: engine.device });
  } catch (error) {
    return JSON.stringify({ error: { code: error.code, message: error.message } });
  }
}
