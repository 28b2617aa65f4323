#!/usr/bin/env python3
"""Converts scikit-learn's digits into www/public/digits.bin.

    python3 scripts/digits.py path/to/digits.csv.gz [www/public/digits.bin]

The input is sklearn/datasets/data/digits.csv.gz inside any scikit-learn package: 1,797 lines of 64 pixels (8x8,
row-major, 0..16) and a label (0..9). The output is 1,797 * 64 bytes of pixels followed by 1,797 bytes of labels,
one value a byte, in the order of the input.
"""

import csv
import gzip
import sys
from pathlib import Path

IMAGES, PIXELS = 1797, 64


def convert(source: Path) -> bytes:
    with gzip.open(source, "rt", newline="") as lines:
        rows = [[int(float(value)) for value in row] for row in csv.reader(lines)]
    if len(rows) != IMAGES or any(len(row) != PIXELS + 1 for row in rows):
        raise SystemExit(f"{source}: not {IMAGES} rows of {PIXELS} pixels and a label")
    if any(not 0 <= pixel <= 16 for row in rows for pixel in row[:PIXELS]):
        raise SystemExit(f"{source}: a pixel is outside 0..16")
    if any(not 0 <= row[PIXELS] <= 9 for row in rows):
        raise SystemExit(f"{source}: a label is outside 0..9")
    pixels = bytes(pixel for row in rows for pixel in row[:PIXELS])
    return pixels + bytes(row[PIXELS] for row in rows)


def main() -> None:
    if len(sys.argv) not in (2, 3):
        raise SystemExit(__doc__)
    default = Path(__file__).resolve().parent.parent / "www" / "public" / "digits.bin"
    target = Path(sys.argv[2]) if len(sys.argv) == 3 else default
    data = convert(Path(sys.argv[1]))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    print(f"{target}: {len(data)} bytes")


if __name__ == "__main__":
    main()
