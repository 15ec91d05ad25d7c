"""Thresholds: the best of all by trying all, the stated share of errors, nothing of the target."""

import inspect

import numpy as np
import pytest
from scipy import stats

from coursekit.membership import Threshold


def draw(seed, shape=(3, 40), levels=None):
    rng = np.random.default_rng(seed)
    membership = rng.random(shape) < 0.4
    scores = rng.normal(size=shape) + membership
    return (scores if levels is None else np.round(scores * levels) / levels), membership


@pytest.mark.parametrize("levels", [None, 2, 1])
@pytest.mark.parametrize("seed", range(5))
def test_best_balanced_accuracy(seed, levels):
    scores, membership = draw(seed, levels=levels)
    threshold = Threshold().fit(scores, membership)

    def gain(value):
        says = scores >= value
        return says[membership].mean() - says[~membership].mean()

    every = {value: gain(value) for value in [*np.unique(scores), np.inf]}
    best = max(every.values())
    assert threshold.values == {None: max(v for v, g in every.items() if g > best - 1e-9)}
    np.testing.assert_array_equal(threshold.decide(scores), scores >= threshold.values[None])


def test_worse_than_chance_accuses_nobody():
    threshold = Threshold().fit([1.0, 2.0], [True, False])
    assert not threshold.decide([1.0, 2.0, 1e9]).any()


@pytest.mark.parametrize("levels", [None, 2])
@pytest.mark.parametrize("fpr", [0.05, 0.1, 0.5, 0.9])
def test_stated_share_of_errors(fpr, levels):
    """At most fpr of the shadows' non-members, and any lower threshold would have more."""
    scores, membership = draw(6, levels=levels)
    threshold = Threshold(fpr=fpr).fit(scores, membership)
    others = scores[~membership]
    assert np.mean(threshold.decide(others)) <= fpr
    assert np.mean(others >= np.nextafter(threshold.values[None], -np.inf)) > fpr
    if levels is None:
        assert np.mean(threshold.decide(others)) > fpr - 1 / len(others)


def test_errors_on_fresh_records():
    """Of n non-members k may lie above: the rate on fresh ones is Beta(k + 1, n - k)."""
    scores, membership = draw(7, (1, 4000))
    n = int((~membership).sum())
    k = int(0.1 * n)
    rate = stats.norm.sf(Threshold(fpr=0.1).fit(scores, membership).values[None])
    assert 5e-10 < stats.beta.cdf(rate, k + 1, n - k) < 1 - 5e-10


@pytest.mark.parametrize("fpr", [None, 0.2])
def test_one_for_each_class(fpr):
    scores, membership = draw(8, (3, 200))
    y = np.arange(200) % 4
    scores += 10.0 * y
    threshold = Threshold(per_class=True, fpr=fpr).fit(scores, membership, y)
    for group in range(4):
        alone = Threshold(fpr=fpr).fit(scores[:, y == group], membership[:, y == group])
        assert threshold.values[group] == alone.values[None]
    np.testing.assert_array_equal(
        threshold.decide(scores[0], y), scores[0] >= np.array([*threshold.values.values()])[y])
    assert threshold.decide(scores, y).shape == scores.shape


def test_the_membership_of_an_evaluation_has_no_way_in():
    """Nor do its scores change the threshold."""
    assert list(inspect.signature(Threshold.decide).parameters) == ["self", "scores", "y"]
    threshold = Threshold().fit(*draw(9))
    before = dict(threshold.values)
    threshold.decide(np.full(40, 7.0))
    assert threshold.values == before


def test_inputs_stay():
    scores, membership = draw(10)
    copies = scores.copy(), membership.copy()
    scores.flags.writeable = membership.flags.writeable = False
    Threshold(per_class=True).fit(scores, membership, np.arange(40) % 2)
    np.testing.assert_array_equal(scores, copies[0])
    np.testing.assert_array_equal(membership, copies[1])


def test_refused():
    scores, membership = draw(11)
    y = np.arange(40) % 2
    with pytest.raises(ValueError, match="fit must be called before decide"):
        Threshold().decide(scores)
    for labels in (np.where(membership, 1, 0), np.where(membership, np.nan, 0)):
        with pytest.raises(TypeError, match=r"True .IN. and False .OUT. only"):
            Threshold().fit(scores, labels)
    with pytest.raises(ValueError, match=r"membership must have the shape \(3, 40\)"):
        Threshold().fit(scores, membership[0])
    with pytest.raises(ValueError, match="finite numbers only, got nan"):
        Threshold().fit(np.where(membership, scores, np.nan), membership)
    with pytest.raises(ValueError, match=r"members and non-members\."):
        Threshold().fit(scores, np.zeros((3, 40), bool))
    with pytest.raises(ValueError, match="members and non-members of class 1"):
        Threshold(per_class=True).fit(scores, membership & (y == 0), y)
    with pytest.raises(ValueError, match="y must be given"):
        Threshold(per_class=True).fit(scores, membership)
    with pytest.raises(ValueError, match="no threshold was fitted for class 2"):
        Threshold(per_class=True).fit(scores, membership, y).decide([1.0], [2])
    with pytest.raises(ValueError, match=r"fpr=0.1 needs 10 non-members or more, got 9"):
        Threshold(fpr=0.1).fit(np.arange(10.0), np.arange(10) == 9)
    assert Threshold(fpr=0.1).fit(np.arange(11.0), np.arange(11) == 0).values[None] > 9
    for fpr in (0, 1, "a"):
        with pytest.raises((ValueError, TypeError), match="fpr must be a number between 0 and 1"):
            Threshold(fpr=fpr)
