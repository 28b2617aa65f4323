/** The WebAssembly module in base64; the bundler of the package provides it. */
declare module "virtual:wgrad-wasm" {
  const base64: string;
  export default base64;
}
