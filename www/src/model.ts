// The network that learns the digits: 64 pixels to 128 features, one gated block with a residual, ten logits.
import type { Engine, Tensor } from "wgrad";

interface Affine {
  weight: Tensor;
  bias: Tensor;
}

/** Weight [outputs, inputs] and bias [outputs], uniform in ±1/√inputs: how PyTorch starts a Linear. */
function linear(engine: Engine, inputs: number, outputs: number): Affine {
  const high = 1 / Math.sqrt(inputs);
  const start = { low: -high, high, requiresGrad: true };
  return { weight: engine.rand([outputs, inputs], start), bias: engine.rand([outputs], start) };
}

/** The scale and shift of a LayerNorm. */
function norm(engine: Engine, features: number): Affine {
  const learned = { requiresGrad: true };
  return { weight: engine.ones([features], learned), bias: engine.zeros([features], learned) };
}

export class DigitModel {
  private readonly embed: Affine;
  private readonly embedNorm: Affine;
  private readonly up: Affine;
  private readonly down: Affine;
  private readonly headNorm: Affine;
  private readonly head: Affine;

  constructor(engine: Engine, { features = 128, hidden = 256 } = {}) {
    this.embed = linear(engine, 64, features);
    this.embedNorm = norm(engine, features);
    // Gate and value side by side: one matrix product feeds the fused SwiGLU.
    this.up = linear(engine, features, 2 * hidden);
    this.down = linear(engine, hidden, features);
    this.headNorm = norm(engine, features);
    this.head = linear(engine, features, 10);
  }

  get parameters(): Tensor[] {
    const layers = [this.embed, this.embedNorm, this.up, this.down, this.headNorm, this.head];
    return layers.flatMap(({ weight, bias }) => [weight, bias]);
  }

  /** Images [n, 64] with values from 0 to 1; gives logits [n, 10]. */
  forward(images: Tensor): Tensor {
    const { embed, embedNorm, up, down, headNorm, head } = this;
    const features = images.linear(embed.weight, embed.bias).layerNorm(embedNorm.weight, embedNorm.bias);
    const gated = features.linear(up.weight, up.bias).swiglu().linear(down.weight, down.bias);
    const normed = features.add(gated).layerNorm(headNorm.weight, headNorm.bias);
    return normed.linear(head.weight, head.bias);
  }
}
