"""The data of the course: each set ships with a package or is generated; its docstring is its card.

Synthetic people are in `coursekit.people`; ratings and location traces in `coursekit.linkage`. Only
`download_adult` needs the internet, and nothing in the course calls it.
"""

from importlib import resources
from typing import NamedTuple

import numpy as np

from coursekit import _arguments

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


class Records(NamedTuple):
    """X (records, features) as float64, y (records,) as whole numbers from 0."""

    X: np.ndarray
    y: np.ndarray


def digits():
    """Return 1,797 images of handwritten digits, 8 x 8 pixels from 0 to 1, and which digit it is.

    Card. Origin: Optical Recognition of Handwritten Digits, test part (Alpaydin, Kaynak 1998, UCI),
    as scikit-learn ships it. Licence: CC BY 4.0 (UCI). Size: 1,797 records of 64 numbers, ten
    classes. Fit for: networks that train in a second. Not fit for: telling writers apart, who are
    not named.

    >>> X, y = digits()
    >>> X.shape, y[:5]
    ((1797, 64), array([0, 1, 2, 3, 4]))
    """
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return Records(X / 16, y.astype(np.int64))


def breast_cancer():
    """Return 569 tumours, 30 measurements of cell nuclei each, and 1 for benign, 0 for malignant.

    Card. Origin: Breast Cancer Wisconsin (Diagnostic) (Wolberg, Mangasarian, Street, Street 1993,
    UCI), as scikit-learn ships it: real patients, without names or dates, published for research.
    Licence: CC BY 4.0 (UCI). Size: 569 records. Fit for: a small medical-looking table. Not fit
    for: medicine, or attacks on the people in it; we only ever look for which records a model of
    ours was trained on.

    Each column is scaled to mean 0 and standard deviation 1 over all records.

    >>> X, y = breast_cancer()
    >>> X.shape, np.bincount(y)
    ((569, 30), array([212, 357]))
    """
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    return Records((X - X.mean(axis=0)) / X.std(axis=0), y.astype(np.int64))


def purchases(records, *, classes=20, features=60, flip=0.3, rng):
    """Return what customers bought, 0 or 1 for each of `features` goods, and their kind.

    Card. Origin: generated here, in the manner of the Purchase-100 set of Shokri et al. (2017).
    Licence: that of the course. Size: as many records as asked for. Fit for: membership inference
    on a table of bits. Not fit for: comparison with figures published on Purchase-100.

    Each kind of customer has a list of goods, drawn evenly; each customer's bits are those of the
    list, each turned over with probability `flip`. Kinds are drawn evenly. Raises: TypeError or
    ValueError for a bad argument.

    >>> X, y = purchases(1000, rng=np.random.default_rng(0))
    >>> X.shape, int(y.max()), round(float(X.mean()), 1)
    ((1000, 60), 19, 0.5)
    """
    records = _arguments.whole(records, "records", least=1)
    classes = _arguments.whole(classes, "classes", least=2)
    features = _arguments.whole(features, "features", least=1)
    flip = _arguments.probability(flip, "flip")
    rng = _arguments.generator(rng)
    lists, y = rng.integers(0, 2, (classes, features)), rng.integers(0, classes, records)
    turned = rng.random((records, features)) < flip
    return Records((lists[y] ^ turned).astype(np.float64), y)


class Leak(NamedTuple):
    """Records to train on and attack, clean ones to test on, and how to train.

    X, y: the pool, of which a model gets one half; mislabelled (records,): where y is wrong;
    X_test, y_test: never trained on, labels right; training: arguments for `train_ensemble`.
    """

    X: np.ndarray
    y: np.ndarray
    mislabelled: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    training: dict


# Name: (pool, share of labels drawn anew, training). No batch of an epoch may hold a single record,
# whose step throws some networks off: hence 25 for the 225 records of S3.
LEAKS = {
    "S1": (600, 0.2, dict(hidden=[128], epochs=80, batch_size=32, learning_rate=0.05)),
    "S2": (1000, 0.0, dict(hidden=[64], epochs=30, batch_size=32, learning_rate=0.05)),
    "S3": (450, 0.2, dict(hidden=[128], epochs=100, batch_size=25, learning_rate=0.05)),
    "S4": (1500, 0.1, dict(hidden=[128], epochs=50, batch_size=32, learning_rate=0.05)),
}


def leak(name, *, seed):
    """Return one of four settings in which a small network leaks clearly, in seconds: a `Leak`.

    "S1": 600 `digits`, 20% of labels drawn anew from all ten. "S2": 1,000 `purchases`, 20 kinds; it
    leaks without wrong labels. "S3": 450 of `breast_cancer`, 20% of labels turned over. "S4": 1,500
    `digits`, 10% drawn anew; accuracy survives DP-SGD. `seed` draws the pool and the labels.

    Card. Origin, licence: those of the sets named. Size: 450 to 1,500 records. Fit for: showing
    and comparing attacks and defences. Not fit for: saying how much a typical model leaks. Wrong
    labels are what makes S1, S3 and S4 leak: a network can only learn them by heart.

    Raises: TypeError or ValueError for an unknown name or a bad seed.

    >>> setting = leak("S1", seed=0)
    >>> setting.X.shape, setting.X_test.shape, bool(0.1 < setting.mislabelled.mean() < 0.3)
    ((600, 64), (1197, 64), True)
    """
    size, share, training = LEAKS[_arguments.one_of(name, "name", tuple(LEAKS))]
    rng = np.random.default_rng(_arguments.whole(seed, "seed", least=0))
    if name == "S2":
        X, y = purchases(2 * size, rng=rng)
    else:
        X, y = breast_cancer() if name == "S3" else digits()
        order = rng.permutation(len(X))
        X, y = X[order], y[order]
    drawn = rng.random(size) < share
    other = 1 - y[:size] if name == "S3" else rng.integers(0, y.max() + 1, size)
    labels = np.where(drawn, other, y[:size])
    wrong = labels != y[:size]
    return Leak(X[:size], labels, wrong, X[size:], y[size:], {**training, "optimiser": "momentum"})


def download_adult():
    """Download the Adult census table from OpenML: a dict from column name to array of text.

    Card. Origin: 1994 census of the United States, an extract (Becker, Kohavi 1996, UCI): 48,842
    real people, without names. Licence: CC BY 4.0 (UCI). Fit for: seeing on real data what
    `coursekit.people` shows on synthetic data. Not fit for: finding anybody. Needs the internet;
    nothing in the course calls it.
    """
    from sklearn.datasets import fetch_openml

    frame = fetch_openml("adult", version=2, as_frame=True).frame
    return {str(name): frame[name].astype(str).to_numpy(dtype=str) for name in frame.columns}
