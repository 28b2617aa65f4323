import { adapter } from "./wgrad-cases.mjs";

export default adapter("wgrad-cpu", "cpu");
