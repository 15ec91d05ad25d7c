"""Derive fashion.npz from the four files of Fashion-MNIST (see README.md in this folder).

    python coursekit/data/make_fashion.py FOLDER

FOLDER holds train-images-idx3-ubyte.gz and so on, as Zalando Research and Debian's package
dataset-fashion-mnist ship them. The first 800 training images and the first 200 test images of each
class are kept, in their order, and every 2 x 2 square of pixels becomes its mean, rounded.
"""

import gzip
import sys
from pathlib import Path

import numpy as np

PER_CLASS = {"train": 800, "t10k": 200}


def read(path):
    """Return an IDX file of unsigned bytes as an array."""
    data = gzip.decompress(Path(path).read_bytes())
    shape = np.frombuffer(data, ">i4", count=data[3], offset=4)
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def reduced(folder, part):
    """Return (images, labels) of one part: (records, 14, 14) and (records,), both uint8."""
    labels = read(Path(folder) / f"{part}-labels-idx1-ubyte.gz")
    chosen = [np.flatnonzero(labels == label)[: PER_CLASS[part]] for label in range(10)]
    chosen = np.sort(np.concatenate(chosen))
    images = read(Path(folder) / f"{part}-images-idx3-ubyte.gz")[chosen]
    squares = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    return np.rint(squares).astype(np.uint8), labels[chosen]


def main(folder):
    parts = {"train": "train", "test": "t10k"}
    arrays = {}
    for name, part in parts.items():
        arrays[f"X_{name}"], arrays[f"y_{name}"] = reduced(folder, part)
    np.savez_compressed(Path(__file__).with_name("fashion.npz"), **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
