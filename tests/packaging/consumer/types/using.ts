import { init } from "wgrad";

export async function sum(values: number[]): Promise<number> {
  using engine = await init({ device: "cpu" });
  using x = engine.tensor(values);
  using total = x.sum();
  const things: Disposable[] = [engine, x];
  console.log(things.length);
  return await total.item();
}
