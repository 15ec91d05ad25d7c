"""The data: what each card says, and that the script of the shipped set still describes it."""

import gzip
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from coursekit import datasets, linkage, people
from coursekit.data import make_fashion
from coursekit.datasets import (
    FASHION_CLASSES,
    LEAKS,
    breast_cancer,
    digits,
    download_adult,
    fashion,
    leak,
    purchases,
)
from coursekit.ensemble import paired_membership, train_ensemble

SETS = [datasets.fashion, digits, breast_cancer, purchases, leak, download_adult, people,
        linkage.synthetic_ratings, linkage.synthetic_traces]  # fmt: skip


@pytest.mark.parametrize("source", SETS, ids=lambda source: source.__name__)
def test_every_set_has_a_card(source):
    words = " ".join(source.__doc__.split("Card.")[1].split())
    for part in ("Origin", "icence", "Fit for:", "Not fit for:"):
        assert part in words


def test_no_set_is_without_a_card():
    public = {name for name, kind in vars(datasets).items()
              if callable(kind) and getattr(kind, "__module__", "") == datasets.__name__
              and isinstance(kind, type(leak))}  # fmt: skip
    assert public == {source.__name__ for source in SETS[:6]}


def test_the_readme_names_every_card():
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    for source in SETS:
        name = f"{source.__module__}.{source.__name__}" if callable(source) else source.__name__
        assert f"`{name.removeprefix('coursekit.')}`" in text


def test_scaled_sets():
    X, y = digits()
    assert X.min() == 0 and X.max() == 1 and set(y) == set(range(10))
    X, y = breast_cancer()
    np.testing.assert_allclose(X.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(X.std(axis=0), 1, rtol=1e-12)
    assert set(y) == {0, 1}


def test_purchases_follow_their_lists():
    """Each bit of each kind is turned over with probability 0.3: chi-squared, 1e-9."""
    X, y = purchases(40_000, classes=4, features=30, flip=0.3, rng=np.random.default_rng(0))
    assert stats.chisquare(np.bincount(y)).pvalue > 1e-9
    sizes = np.bincount(y)[:, None]
    ones = np.array([X[y == kind].sum(axis=0) for kind in range(4)])
    turned = np.minimum(ones, sizes - ones)
    z = (turned - 0.3 * sizes) / np.sqrt(0.21 * sizes)
    assert 1e-10 < stats.chi2.cdf((z * z).sum(), z.size) < 1 - 1e-10
    assert 20 < (ones > sizes / 2).sum() < 100  # of 120, drawn evenly: 1e-12
    plain, kinds = purchases(500, classes=3, flip=0, rng=np.random.default_rng(0))
    assert len(np.unique(np.column_stack([plain, kinds]), axis=0)) == 3
    with pytest.raises(ValueError, match="flip must be"):
        purchases(5, flip=2, rng=np.random.default_rng(0))


@pytest.mark.parametrize("name", LEAKS)
def test_leak_settings_are_what_they_say(name):
    setting, (size, share, _) = leak(name, seed=3), LEAKS[name]
    assert len(setting.X) == len(setting.y) == size and len(setting.X_test) > 100
    source = {"S3": breast_cancer}.get(name, digits)() if name != "S2" else None
    if source:  # the pool and the rest are the whole set, once; only mislabelled records differ
        rows = np.vstack([setting.X, setting.X_test])
        order, own = np.lexsort(rows.T), np.lexsort(source.X.T)
        np.testing.assert_array_equal(rows[order], source.X[own])
        truth = np.empty(len(rows), int)
        truth[order] = source.y[own]
        np.testing.assert_array_equal(truth[size:], setting.y_test)
        np.testing.assert_array_equal(truth[:size] != setting.y, setting.mislabelled)
    wrong = share * (1 if name == "S3" else 0.9)
    assert stats.binomtest(int(setting.mislabelled.sum()), size, wrong).pvalue > 1e-9
    again, other = leak(name, seed=3), leak(name, seed=4)
    np.testing.assert_array_equal(again.X, setting.X)
    assert not np.array_equal(other.X, setting.X)
    assert size // 2 % setting.training["batch_size"] != 1


@pytest.mark.parametrize("name", ["S2", "S3"])
def test_leak_settings_leak(name):
    """Networks know their members by heart, and others not: the least that the name promises."""
    setting = leak(name, seed=0)
    members = paired_membership(4, len(setting.X), rng=np.random.default_rng(0))
    logits = train_ensemble(setting.X, setting.y, members, seed=0, **setting.training)
    right = logits.logits(setting.X).argmax(axis=2) == setting.y
    assert right[members].mean() > 0.98 > 0.85 > right[~members].mean()


def test_leak_refuses_what_it_does_not_know():
    with pytest.raises(ValueError, match="name must be one of 'S1', 'S2', 'S3', 'S4', got 's1'"):
        leak("s1", seed=0)
    with pytest.raises(TypeError, match="seed must be"):
        leak("S1", seed=None)


def test_adult_becomes_a_table(monkeypatch):
    class Frame(dict):
        columns = ("age", "sex")

    class Column(list):
        def astype(self, kind):
            return SimpleNamespace(to_numpy=lambda dtype: np.array([*map(kind, self)], dtype))

    frame = Frame(age=Column([39, 50]), sex=Column(["Male", "Female"]))

    def fetch(name, version, as_frame):
        assert (name, version, as_frame) == ("adult", 2, True)
        return SimpleNamespace(frame=frame)

    monkeypatch.setattr("sklearn.datasets.fetch_openml", fetch)
    table = download_adult()
    assert list(table) == ["age", "sex"] and table["age"].tolist() == ["39", "50"]


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
