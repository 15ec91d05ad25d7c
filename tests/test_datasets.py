"""The shipped data: what its card says, and that its script still describes it."""

import gzip

import numpy as np

from coursekit.data import make_fashion
from coursekit.datasets import FASHION_CLASSES, fashion


def test_fashion_is_what_its_card_says():
    X_train, y_train, X_test, y_test = fashion()
    assert X_train.shape == (8000, 196) and X_test.shape == (2000, 196)
    assert X_train.dtype == X_test.dtype == np.float64
    assert X_train.min() == 0 and X_train.max() == 1
    assert (np.bincount(y_train) == 800).all() and (np.bincount(y_test) == 200).all()
    assert len(FASHION_CLASSES) == 10
    assert len(np.unique(np.concatenate([X_train, X_test]), axis=0)) > 9990


def test_its_script_averages_squares_and_keeps_the_first_of_each_class(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (60, 28, 28)).astype(np.uint8)
    labels = np.repeat(np.arange(10), 6).astype(np.uint8)
    rng.shuffle(labels)
    for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
        (tmp_path / f"train-{kind}-ubyte.gz").write_bytes(gzip.compress(head + array.tobytes()))
    monkeypatch.setitem(make_fashion.PER_CLASS, "train", 2)
    found, classes = make_fashion.reduced(tmp_path, "train")
    kept = [i for i in range(60) if (labels[:i] == labels[i]).sum() < 2]
    assert (classes == labels[kept]).all()
    square = images[kept[3], 4:6, 10:12].astype(float)
    assert found.shape == (20, 14, 14) and found[3, 2, 5] == np.rint(square.mean())
