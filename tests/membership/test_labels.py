"""Labels only, and query averaging: the closed forms of a linear model and of Gaussian noise."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, softmax

from coursekit.membership import average_queries, boundary_score, gap_score, label_only_score

W, B = np.array([2.0, -1.0, 0.5]), 0.3


def linear(X):
    return (X @ W + B > 0).astype(int)


def linear_logits(X):
    return np.column_stack([0 * X[:, 0], X @ W + B])


def records(n=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(rng.random(n) < 0.8, linear(X), 1 - linear(X))


def test_votes_of_a_linear_model():
    """Each of 12 records is binomial with chance Phi(margin / (noise norm w)), held to 1e-10."""
    X, y = records()
    margin = (X @ W + B) * (2 * y - 1)
    for noise in (0.3, 1.0):
        chance = stats.norm.cdf(margin / (noise * np.linalg.norm(W)))
        right = 5000 * label_only_score(linear, X, y, noise=noise, votes=5000,
                                        rng=np.random.default_rng(1))
        for count, p in zip(right.round().astype(int), chance, strict=True):
            assert stats.binomtest(int(count), 5000, p).pvalue > 1e-10


def test_without_noise_it_is_the_gap_attack():
    X, y = records()
    score = label_only_score(linear, X, y, noise=0, votes=3, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(score, gap_score(linear_logits(X), y))
    assert 0 < score.mean() < 1


@pytest.mark.parametrize("attack, options", [(label_only_score, {"noise": 0.5}),
                                             (boundary_score, {"reach": 4.0})])
def test_only_the_highest_class_matters(attack, options):
    """Labels, logits, and any output that keeps the highest class give the same bits."""
    X, y = records()
    outputs = [linear, linear_logits, lambda X: softmax(linear_logits(X) / 10, axis=1),
               lambda X: np.argsort(np.argsort(linear_logits(X)))]
    scores = [attack(f, X, y, rng=np.random.default_rng(3), **options) for f in outputs]
    for other in scores[1:]:
        np.testing.assert_array_equal(other, scores[0])


def test_distance_to_the_boundary_of_a_linear_model():
    X, y = records(40, seed=4)
    found = boundary_score(linear, X, y, reach=2.0, steps=20, rng=np.random.default_rng(5))
    ways = np.random.default_rng(5).normal(size=(16, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    value = X @ W + B
    along = -value[:, None] / (ways @ W)  # where the line crosses, or behind if negative
    nearest = np.where(along > 0, along, np.inf).min(axis=1)
    wanted = np.where(linear(X) == y, np.minimum(nearest, 2.0), 0)
    np.testing.assert_allclose(found, wanted, atol=2.0 / 2**20)
    assert {0.0, 2.0} < set(found)


def test_more_directions_tend_to_the_distance():
    X, y = records(40, seed=6)
    found = boundary_score(linear, X, y, reach=9.0, directions=500, rng=np.random.default_rng(7))
    true = np.abs(X @ W + B) / np.linalg.norm(W)
    right = linear(X) == y
    assert (found[right] > true[right] - 9 / 2**12).all()
    np.testing.assert_allclose(found[right], true[right], rtol=0.05, atol=9 / 2**12)


def test_noise_of_ones_own():
    bits = np.array([[1.0, 0, 1, 1], [0, 0, 1, 0]])

    def flip_all(X, rng):
        X[:] = 1 - X  # in place, on a copy
        return X

    score = label_only_score(lambda X: X[:, 0], bits, [1, 1], noise=flip_all, votes=2,
                             rng=np.random.default_rng(8))
    np.testing.assert_array_equal(score, [0, 1])
    np.testing.assert_array_equal(bits[0], [1, 0, 1, 1])


@pytest.mark.parametrize("attack, options, calls", [
    (label_only_score, {"noise": 0.5, "votes": 7}, 7), (label_only_score, {"noise": 0}, 32),
    (boundary_score, {"reach": 4.0, "directions": 3, "steps": 5}, 3 * 6 + 1)])
def test_images_queries_and_no_change_of_inputs(attack, options, calls):
    """A model that writes into what it is given does not reach the caller's records."""
    X = np.random.default_rng(9).normal(size=(5, 2, 3))
    before, seen = X.copy(), []

    def spoils(batch):
        assert batch.shape == (5, 2, 3)
        label = (batch.sum(axis=(1, 2)) > 0).astype(int)
        batch[:] = np.nan
        seen.append(1)
        return label

    scores = attack(spoils, X, [0, 1, 0, 1, 0], rng=np.random.default_rng(10), **options)
    assert scores.shape == (5,) and np.isfinite(scores).all()
    assert len(seen) == calls
    np.testing.assert_array_equal(X, before)


def test_labels_refused():
    X, y = records()
    rng = np.random.default_rng(11)
    for predict, words in ((lambda X: 1.0, r"returned the shape \(\)"),
                           (lambda X: linear(X)[1:], r"for 12 records, it returned the shape \(11"),
                           (lambda X: np.zeros((12, 2, 2)), "must return")):
        for attack, options in ((label_only_score, {"noise": 1}), (boundary_score, {"reach": 1})):
            with pytest.raises(ValueError, match=words):
                attack(predict, X, y, rng=rng, **options)
    with pytest.raises(TypeError, match="predict must be a function of records, got ndarray"):
        label_only_score(linear(X), X, y, noise=1, rng=rng)
    with pytest.raises(ValueError, match="X must have the shape"):
        label_only_score(linear, X[:, 0], y, noise=1, rng=rng)
    with pytest.raises(ValueError, match="noise must keep the shape"):
        label_only_score(linear, X, y, noise=lambda X, rng: X[:1], rng=rng)
    with pytest.raises(ValueError, match="noise must be a finite number of at least 0"):
        label_only_score(linear, X, y, noise=-1, rng=rng)
    with pytest.raises(ValueError, match="reach must be a finite number above 0"):
        boundary_score(linear, X, y, reach=0, rng=rng)
    with pytest.raises(TypeError, match="rng must be a numpy Generator"):
        boundary_score(linear, X, y, reach=1, rng=0)


# Query averaging

Z, T, S = np.array([[2.0, 0.0, -1.0]]), 5.0, 0.7


def noisy(rng, rows):
    logits = np.repeat(Z, rows, axis=0)
    return lambda: softmax((logits + rng.normal(0, S, logits.shape)) / T, axis=1)


@pytest.mark.parametrize("count", [1, 16, 256])
def test_law_of_the_average(count):
    """T times a difference: normal with mean z_i - z_j and variance 2 s^2 / count, at 1e-9 each."""
    rows = 3000
    mean = T * average_queries(noisy(np.random.default_rng(count), rows), count)
    difference = mean[:, 0] - mean[:, 1] - 2.0
    variance = 2 * S**2 / count
    assert abs(difference.mean()) < stats.norm.isf(5e-10) * np.sqrt(variance / rows)
    low, high = stats.chi2.ppf([5e-10, 1 - 5e-10], rows)
    assert low < np.sum(difference**2) / variance < high


def test_the_mean_of_probabilities_tends_to_something_else():
    rng = np.random.default_rng(12)
    logits = np.tile([2.0, 0.0], (200_000, 1))
    p = softmax(logits + rng.normal(0, 3, logits.shape), axis=1).mean(axis=0)
    assert np.log(p[0] / p[1]) < 1.5
    log_p = average_queries(lambda: softmax(logits[:100] + rng.normal(0, 3, (100, 2)), axis=1), 400)
    assert np.ptp(log_p.mean(axis=0)) == pytest.approx(2, abs=6.1 * 3 * np.sqrt(2 / 40_000))


def test_noise_that_stays_is_not_averaged():
    once = noisy(np.random.default_rng(13), 4)()
    np.testing.assert_allclose(average_queries(lambda: once, 7), np.log(once), rtol=1e-12)
    np.testing.assert_allclose(average_queries(lambda: softmax(Z / T, axis=1), 2),
                               log_softmax(Z / T, axis=1), rtol=1e-12)


def test_queries_are_counted_and_checked():
    answers = []

    def query():
        answers.append(1)
        return np.array([[1.0, 0.0]])

    assert np.isfinite(average_queries(query, 9)).all()
    assert len(answers) == 9
    with pytest.raises(ValueError, match="probabilities must be at least 0 and add up to 1"):
        average_queries(lambda: np.array([[3.0, -1.0]]), 2)
    with pytest.raises(TypeError, match="query must be a function without arguments"):
        average_queries(np.array([[1.0, 0.0]]), 2)
    with pytest.raises(ValueError, match="count must be a whole number of at least 1"):
        average_queries(query, 0)
    shapes = iter([np.full((1, 2), 0.5), np.full((2, 2), 0.5)])
    with pytest.raises(ValueError, match="query must return one shape"):
        average_queries(lambda: next(shapes), 2)
