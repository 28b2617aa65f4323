// Holds the worker: one run at a time, and a new worker where one was stopped or broke.
import type { Message, Request } from "./messages";

export class Runner {
  #worker: Worker | null = null;
  #listen: (message: Message) => void;

  constructor(listen: (message: Message) => void) {
    this.#listen = listen;
  }

  run(request: Request): void {
    this.#worker ??= this.#start();
    this.#worker.postMessage(request);
  }

  /** Ends what is under way; the next run starts anew. */
  stop(): void {
    this.#worker?.terminate();
    this.#worker = null;
  }

  #start(): Worker {
    const worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
    worker.addEventListener("message", ({ data }: MessageEvent<Message>) => {
      if (data.type === "failure" && data.broken) this.stop();
      this.#listen(data);
    });
    worker.addEventListener("error", ({ message }) => {
      this.stop();
      const words = message || "the worker could not be loaded";
      this.#listen({ type: "failure", failure: { kind: "Error", words }, broken: true });
    });
    return worker;
  }
}
