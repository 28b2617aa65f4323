// Bodies of tests/api.test.mjs: what goes in and comes out: numbers, typed arrays, nested arrays, f16.
import { bits, equal, fails, near, ok } from "../expect.mjs";
import { allFail } from "./fail.mjs";

export const bodies = {
  "numbers stand for scalars, NaN and infinities too": async ({ engine }) => {
    const x = engine.tensor([0, 1, -2], { requiresGrad: true });
    const rows = [
      [x.add(NaN), [NaN, NaN, NaN]],
      [x.add(Infinity), [Infinity, Infinity, Infinity]],
      [x.mul(-Infinity), [NaN, -Infinity, Infinity]],
      [x.mul(-0), [-0, -0, 0]],
      [x.sub(1.5), [-1.5, -0.5, -3.5]],
      [x.div(0), [NaN, Infinity, -Infinity]],
      [x.div(-0), [NaN, -Infinity, Infinity]],
      [x.mul(1e300), [NaN, Infinity, -Infinity]],
      [x.mul(1e-300), [0, 0, -0]],
      [x.reluMul(NaN), [NaN, NaN, NaN]],
      [x.siluMul(Infinity), [NaN, Infinity, -Infinity]],
      [x.reluMul(-1), [-0, -1, -0]],
    ];
    for (const [k, [tensor, want]] of rows.entries()) equal(await tensor.data(), want, `row ${k}`);
    const half = engine.tensor([1, 3], { dtype: "f16" });
    const third = half.mul(0.1);
    equal(third.dtype, "f16", "the type of the tensor stays");
    equal(
      await third.data({ raw: true }),
      [0x2e66, 0x34cc],
      "0.1 is rounded to f16, and so is the product, a tie",
    );
    near(await x.geluMul(2, { approximate: "tanh" }).data(), [0, 1.6823839, -0.0908046], { absolute: 1e-6 });
    x.mul(3).sum().backward();
    equal(await x.grad.data(), [3, 3, 3], "the gradient");
  },

  "typed arrays of every kind": async ({ wgrad, engine }) => {
    const rows = [
      [Float32Array, "f32", Float32Array, [1.5, -2, 0]],
      [Float64Array, "f32", Float32Array, [1.5, -2, 1e30]],
      [Int8Array, "i32", Int32Array, [-128, 127, 0]],
      [Int16Array, "i32", Int32Array, [-32768, 32767, 0]],
      [Int32Array, "i32", Int32Array, [-(2 ** 31), 2 ** 31 - 1, 0]],
      [Uint8Array, "i32", Int32Array, [0, 255, 7]],
      [Uint8ClampedArray, "i32", Int32Array, [0, 255, 7]],
      [Uint16Array, "i32", Int32Array, [0, 65535, 7]],
      [Uint32Array, "u32", Uint32Array, [0, 2 ** 32 - 1, 2 ** 31]],
    ];
    for (const [Kind, dtype, Out, values] of rows) {
      const tensor = engine.tensor(Kind.from(values));
      equal(tensor.dtype, dtype, Kind.name);
      equal(tensor.shape, [3], Kind.name);
      const got = await tensor.data();
      ok(got instanceof Out, `${Kind.name} comes back as ${got.constructor.name}`);
      equal(got, Out.from(values), Kind.name);
      equal(await tensor.array(), Array.from(Out.from(values)), `${Kind.name}, array`);
      tensor.dispose();
    }
    for (const Kind of [BigInt64Array, BigUint64Array]) {
      const tensor = engine.tensor(Kind.of(5n, 2147483647n));
      equal(tensor.dtype, "i32", Kind.name);
      equal(await tensor.data(), [5, 2 ** 31 - 1], Kind.name);
      tensor.dispose();
      const large = Kind.of(2147483648n);
      await fails(
        wgrad,
        () => engine.tensor(large),
        "ArgumentError",
        ["2147483648", "2147483647"],
        Kind.name,
      );
    }
    equal(await engine.tensor(BigInt64Array.of(-2147483648n)).data(), [-(2 ** 31)], "the least i32");
    await fails(wgrad, () => engine.tensor(BigInt64Array.of(-2147483649n)), "ArgumentError", ["-2147483649"]);
    equal(await engine.tensor(BigUint64Array.of(4294967295n), { dtype: "u32" }).data(), [2 ** 32 - 1], "u32");
    near(await engine.tensor(BigInt64Array.of(1n << 53n), { dtype: "f32" }).data(), [2 ** 53], {}, "f32");
    if (typeof Float16Array !== "undefined") {
      const tensor = engine.tensor(Float16Array.of(0.1, 2, -3));
      equal(tensor.dtype, "f16", "Float16Array");
      equal(await tensor.data(), [Math.fround(0.0999755859375), 2, -3], "Float16Array");
    }
    equal(
      await engine.tensor(Float64Array.of(1e300, 0.1)).data(),
      [Infinity, Math.fround(0.1)],
      "f64 to f32",
    );
    equal(
      bits(await engine.tensor(Float32Array.of(-0, 1e-45)).data()),
      [0x80000000, 1],
      "-0 and a subnormal",
    );

    const truth = engine.tensor([true, false, true]);
    equal(truth.dtype, "bool", "booleans");
    const raw = await truth.data();
    ok(raw instanceof Uint8Array, "booleans come back as bytes");
    equal(raw, [1, 0, 1], "booleans");
    equal(await truth.array(), [true, false, true], "booleans as an array");
    equal(await engine.tensor(true).item(), 1, "a boolean's item");
    equal(await engine.tensor([3, 0, -1], { dtype: "bool" }).data(), [1, 0, 1], "numbers as booleans");
    equal(await engine.tensor([true, false], { dtype: "f32" }).data(), [1, 0], "booleans as f32");
    equal(engine.tensor([true, 2]).dtype, "f32", "a mix of truth and numbers");
    equal(engine.tensor([]).dtype, "f32", "nothing");

    equal(await engine.tensor(Float32Array.of(3, -4), { dtype: "i32" }).data(), [3, -4], "f32 as i32");
    equal(await engine.tensor([7], { dtype: "u32" }).data(), [7], "a number as u32");
    equal(await engine.tensor(Int32Array.of(7), { dtype: "f32" }).data(), [7], "i32 as f32");
    equal(await engine.full([2], 3, { dtype: "bool" }).data(), [1, 1], "a full bool");
  },

  "numbers that an integer type does not hold are ArgumentErrors": async (context) => {
    const { engine } = context;
    const rows = [
      [1.5, "i32"],
      [NaN, "i32"],
      [Infinity, "i32"],
      [2 ** 31, "i32"],
      [-1, "u32"],
      [2 ** 32, "u32"],
      [0.5, "u32"],
    ].flatMap(([value, dtype]) => {
      const words = [String(value), dtype, "whole number"];
      return [
        [() => engine.tensor([value], { dtype }), "ArgumentError", ["tensor", ...words]],
        [() => engine.full([2], value, { dtype }), "ArgumentError", ["full", ...words]],
      ];
    });
    await allFail(context, rows);
  },

  "integers are exact to the last one": async ({ engine }) => {
    equal(await engine.full([1], 16_777_217, { dtype: "i32" }).item(), 16_777_217, "a full of 2^24 + 1");
    equal(
      await engine.full([1], 2 ** 31 - 1, { dtype: "i32" }).item(),
      2 ** 31 - 1,
      "a full of the largest i32",
    );
    equal(
      await engine.full([1], 4_294_967_295, { dtype: "u32" }).item(),
      4_294_967_295,
      "of the largest u32",
    );
  },

  "views with an offset, shared memory, other lengths": async ({ engine }) => {
    const buffer = new ArrayBuffer(64);
    new Float32Array(buffer).set([0, 1, 2, 3, 4, 5, 6, 7]);
    equal(await engine.tensor(new Float32Array(buffer, 8, 3)).data(), [2, 3, 4], "an offset");
    equal(await engine.tensor(new Uint8Array(buffer, 7, 1)).data(), [63], "an odd offset");
    const shared = new SharedArrayBuffer(32);
    new Float32Array(shared).set([1, 2, 3, 4, 5, 6, 7, 8]);
    equal(await engine.tensor(new Float32Array(shared)).data(), [1, 2, 3, 4, 5, 6, 7, 8], "shared memory");
    equal(await engine.tensor(new Float32Array(shared, 4, 2)).data(), [2, 3], "a part of shared memory");
    equal((await engine.tensor(new Int32Array(shared)).data())[0], 0x3f800000, "shared i32");
    equal((await engine.tensor(new Uint32Array(shared)).data())[0], 0x3f800000, "shared u32");
    equal((await engine.tensor(new Float32Array(shared), { dtype: "f16" }).data())[7], 8, "shared to f16");
    // Longer than needed is as wrong as shorter: ShapeErrors are tested above. A shape of its own is right.
    const tensor = engine.tensor(new Float32Array(buffer, 0, 8), { shape: Int32Array.of(2, 4) });
    equal(tensor.shape, [2, 4], "a shape in a typed array");
  },

  "f16: odd lengths, odd offsets, raw bits": async ({ engine }) => {
    for (const length of [1, 2, 3, 5, 7, 8, 31, 33, 1023]) {
      const values = Array.from({ length }, (_, k) => (k % 37) / 4 - 3);
      const tensor = engine.tensor(values, { dtype: "f16" });
      equal(tensor.dtype, "f16", "dtype");
      equal(await tensor.data(), values, `${length} elements`);
      equal(await tensor.add(1).data(), values.map((v) => v + 1), `${length} elements and 1`); // prettier-ignore
      const raw = await tensor.data({ raw: true });
      ok(raw instanceof Uint16Array && raw.length === length, `${length} raw elements`);
      if (length > 3) {
        equal(
          await tensor.narrow(0, 1, length - 2).data(),
          values.slice(1, -1),
          `${length}, from the second`,
        );
        equal(await tensor.slice({ start: 3 }).data(), values.slice(3), `${length}, from the fourth`);
      }
    }
    const rows = [
      [1, 0x3c00],
      [-2, 0xc000],
      [-0, 0x8000],
      [65504, 0x7bff],
      [65519, 0x7bff],
      [65520, 0x7c00],
      [-1e9, 0xfc00],
      [Infinity, 0x7c00],
      [2 ** -14, 0x0400],
      [2 ** -24, 0x0001],
      [2 ** -25, 0x0000],
      [1.5 * 2 ** -24, 0x0002],
      [1023 * 2 ** -24, 0x03ff],
      [0.1, 0x2e66],
      [1 + 2 ** -11, 0x3c00],
      [1 + 3 * 2 ** -11, 0x3c02],
    ];
    const tensor = engine.tensor(rows.map(([v]) => v), { dtype: "f16" }); // prettier-ignore
    equal(await tensor.data({ raw: true }), rows.map(([, b]) => b), "bits, ties to even"); // prettier-ignore
    const [nan] = await engine.tensor([NaN], { dtype: "f16" }).data({ raw: true });
    ok((nan & 0x7fff) > 0x7c00, `NaN is ${nan.toString(16)}`);
    const plain = await engine.tensor([1.5]).data({ raw: true });
    ok(plain instanceof Float32Array, "raw f32 is f32");
    const uniform = await engine.rand([100_000], { dtype: "f16" }).data();
    ok(uniform.every((v) => v >= 0 && v < 1), "uniform f16 numbers stay below their upper end"); // prettier-ignore
  },

  "array() and item()": async (context) => {
    const { engine } = context;
    const x = engine.tensor([1, 2, 3, 4, 5, 6], { shape: [1, 2, 3] });
    equal(await x.array(), [[[1, 2, 3], [4, 5, 6]]], "three dimensions"); // prettier-ignore
    equal(await x.transpose(1, 2).array(), [[[1, 4], [2, 5], [3, 6]]], "a transpose"); // prettier-ignore
    equal(await engine.tensor(5).array(), 5, "a scalar");
    equal(await engine.zeros([2, 0]).array(), [[], []], "an empty dimension");
    equal(await engine.zeros([0, 2]).array(), [], "an empty first dimension");
    equal(await engine.tensor(5).item(), 5, "item of a scalar");
    equal(await engine.full([1, 1], 7).item(), 7, "item of one element");
    await allFail(context, [
      [() => x.item(), "ArgumentError", ["item", "[1, 2, 3]"]],
      [() => engine.zeros([0]).item(), "ArgumentError", ["item", "[0]"]],
    ]);
    equal(await engine.tensor([[true], [false]]).array(), [[true], [false]], "truth values");
  },
};
