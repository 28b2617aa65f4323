// What logits say: guesses, probabilities, and how good they are.

export interface Evaluation {
  /** What the network says for each held-out digit. */
  guesses: Uint8Array;
  correct: number;
  accuracy: number;
  loss: number;
}

/** Logits [n, 10] against the n labels. */
export function judge(logits: ArrayLike<number>, labels: Int32Array): Evaluation {
  const guesses = new Uint8Array(labels.length);
  let correct = 0;
  let loss = 0;
  labels.forEach((label, row) => {
    const probabilities = softmax(Array.from({ length: 10 }, (_, digit) => logits[row * 10 + digit] ?? NaN));
    guesses[row] = probabilities.indexOf(Math.max(...probabilities));
    if (guesses[row] === label) correct++;
    loss -= Math.log(Math.max(probabilities[label] ?? NaN, Number.MIN_VALUE)) / labels.length;
  });
  return { guesses, correct, accuracy: correct / labels.length, loss };
}

export function softmax(logits: ArrayLike<number>): number[] {
  const values = Array.from(logits);
  const highest = Math.max(...values);
  const powers = values.map((value) => Math.exp(value - highest));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}
