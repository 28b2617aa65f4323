// Two engines in two workers, one of them on the GPU.
const start = () => new Worker(new URL("./worker.js", import.meta.url), { type: "module" });

const answer = (worker, options) =>
  new Promise((done, fail) => {
    worker.onmessage = ({ data }) => done(JSON.parse(data));
    worker.onerror = (event) => fail(new Error(event.message));
    worker.postMessage(options);
  });

Promise.all([answer(start(), {}), answer(start(), { device: "webgpu" })]).then(
  (answers) => (document.title = JSON.stringify(answers)),
  (error) => (document.title = JSON.stringify({ error: { message: error.message } })),
);
