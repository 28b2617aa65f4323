/** The net under `dispose()`: what the garbage collector finds undisposed is freed. It is no plan: it may be late. */
let net: FinalizationRegistry<() => void> | null = null;

/** Calls `free` once `target` is gone; `free` must not hold it. */
export function catchForgotten(target: object, free: () => void): void {
  net ??= new FinalizationRegistry<() => void>((forgotten) => {
    forgotten();
  });
  net.register(target, free, target);
}

/** `target` was freed by hand. */
export function release(target: object): void {
  net?.unregister(target);
}
