"""The data of the course: each set ships with a package or is generated; its docstring is its card.

No set here is downloaded, and none is about real people.
"""

from importlib import resources
from typing import NamedTuple

import numpy as np

FASHION_CLASSES = (
    "T-shirt",
    "trousers",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "trainer",
    "bag",
    "ankle boot",
)


class Split(NamedTuple):
    """A data set in two parts: X (records, features) as float64, y (records,) as whole numbers."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def fashion():
    """Return Fashion-MNIST, reduced: 8,000 training and 2,000 test images of 14 x 14 pixels.

    Card. Origin: Fashion-MNIST (Xiao, Rasul, Vollgraf 2017, arXiv:1708.07747), article photographs
    of Zalando; the first 800 training and 200 test images of each of ten classes, averaged over
    2 x 2 pixels by `coursekit/data/make_fashion.py`. Licence: MIT, in `coursekit/data`. Size:
    1.3 MB. Fit for: image classification that trains in seconds, private or not. Not fit for:
    comparison with published results, which use 60,000 images of 28 x 28.

    Pixels run from 0 to 1, a row of 196 for each image; `FASHION_CLASSES` names the classes.

    >>> X_train, y_train, X_test, y_test = fashion()
    >>> X_train.shape, X_test.shape, FASHION_CLASSES[y_train[0]]
    ((8000, 196), (2000, 196), 'ankle boot')
    """
    with resources.files("coursekit").joinpath("data/fashion.npz").open("rb") as file:
        arrays = dict(np.load(file, allow_pickle=False))
    parts = []
    for part in ("train", "test"):
        parts.append(arrays[f"X_{part}"].reshape(-1, 196) / 255)
        parts.append(arrays[f"y_{part}"].astype(np.int64))
    return Split(*parts)
