"""Scores: 60-digit arithmetic, closed forms, saturation, and inputs that must stay as they are."""

import mpmath
import numpy as np
import pytest

from coursekit.membership import (
    confidence_score,
    entropy_score,
    gap_score,
    logit_confidence,
    logits_from_probabilities,
    loss_score,
    modified_entropy_score,
    true_label_score,
)

WITH_LABEL = [gap_score, loss_score, true_label_score, modified_entropy_score, logit_confidence]
WITHOUT = [confidence_score, entropy_score]


def all_scores(logits, y):
    scores = {f.__name__: f(logits, y) for f in WITH_LABEL}
    scores["log"] = modified_entropy_score(logits, y, log=True)
    return scores | {f.__name__: f(logits) for f in WITHOUT}


def exact(row, y):
    """All scores of one row, by their definitions, in 200 digits."""
    with mpmath.workdps(200):
        e = [mpmath.exp(mpmath.mpf(float(z))) for z in row]
        p = [value / sum(e) for value in e]
        rest = [sum(v for j, v in enumerate(e) if j != i) / sum(e) for i in range(len(e))]
        log = mpmath.log
        mentr = -rest[y] * log(p[y]) - sum(p[i] * log(rest[i]) for i in range(len(p)) if i != y)
        return {"loss_score": float(log(p[y])), "true_label_score": float(p[y]),
                "logit_confidence": float(log(p[y] / rest[y])), "confidence_score": float(max(p)),
                "entropy_score": float(sum(v * log(v) for v in p)),
                "modified_entropy_score": float(-mentr), "log": float(-log(mentr)),
                "gap_score": float(max(row) == row[y])}


@pytest.mark.parametrize("spread", [0.1, 1, 5, 30, 60])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_equal_to_200_digits(spread, classes):
    rng = np.random.default_rng([int(10 * spread), classes])
    logits, y = rng.normal(0, spread, (12, classes)), rng.integers(0, classes, 12)
    ours = all_scores(logits, y)
    for i in range(12):
        for name, value in exact(logits[i], y[i]).items():
            assert ours[name][i] == pytest.approx(value, rel=1e-12, abs=0), name


def test_closed_forms():
    for k in (2, 5, 10):
        mentr = (1 - 1 / k) * np.log(k) - (1 - 1 / k) * np.log(1 - 1 / k)
        assert modified_entropy_score(np.zeros((1, k)), [1]) == pytest.approx(-mentr, rel=1e-14)
        assert entropy_score(np.zeros((1, k))) == pytest.approx(-np.log(k), rel=1e-14)
    assert modified_entropy_score(np.zeros((1, 5)), [0]) == pytest.approx(-1.46607, abs=5e-6)
    z = np.linspace(-9, 9, 19)
    two, y = np.column_stack([z, 0 * z]), np.zeros(19, int)
    closed = -2 / (1 + np.exp(z)) * np.log1p(np.exp(-z))  # 2 (1 - p_y) log p_y
    np.testing.assert_allclose(modified_entropy_score(two, y), closed, rtol=1e-12)
    np.testing.assert_allclose(logit_confidence(two, y), z, rtol=0, atol=1e-14)


def test_one_hot_outputs_by_the_floor():
    """With the floor 1e-30: 0 if right, 2 x 69.0776 if wrong; entropy sees no difference."""
    logits = logits_from_probabilities([[1.0, 0.0], [1.0, 0.0]])
    right, wrong = -modified_entropy_score(logits, [0, 1])
    assert right == pytest.approx(0, abs=1e-50)
    assert wrong == pytest.approx(138.155, abs=5e-4)
    assert np.ptp(entropy_score(logits)) == 0
    assert logits_from_probabilities([[1.0, 0.0]], floor=1e-10)[0, 1] == np.log(1e-10)


def test_gap_is_the_two_accuracies():
    rng = np.random.default_rng(1)
    logits, y = rng.normal(size=(1000, 3)), rng.integers(0, 3, 1000)
    logits[np.arange(400), y[:400]] += 1
    gap, right = gap_score(logits, y), logits.argmax(1) == y
    balanced = (gap[:500].mean() + 1 - gap[500:].mean()) / 2
    assert balanced == pytest.approx(0.5 + (right[:500].mean() - right[500:].mean()) / 2, rel=1e-14)
    assert set(gap) == {0.0, 1.0}
    kept = np.argsort(np.argsort(logits))  # the order of the classes and nothing else
    np.testing.assert_array_equal(gap_score(kept, y), gap)


def test_saturated_rows_are_finite_and_ordered():
    lead = np.array([0, 1, 30, 37, 40, 100, 300, 369, 700, 800, 1e3, 1e4, 1e6])
    for label in (0, 1):
        logits = np.column_stack([lead, 0 * lead, -lead])
        y = np.full(len(lead), label)
        scores = all_scores(logits, y)
        assert all(np.isfinite(s).all() for s in scores.values())
        sign = 1 - 2 * label
        for name in ("logit_confidence", "log"):
            assert (sign * np.diff(scores[name]) > 0).all(), name
        assert (sign * np.diff(scores["loss_score"][:9]) > 0).all()
        assert (sign * np.diff(scores["modified_entropy_score"][:8]) > 0).all()
        if label:
            assert (np.diff(scores["loss_score"]) < 0).all()
            assert (np.diff(scores["modified_entropy_score"]) < 0).all()
    assert (np.diff(entropy_score(logits)) >= 0).all()
    for z in (100, 1e3, 1e6):  # two classes: 2 (1 - p_y) (-log p_y) = 2 e^(-2 z), but for e^(-3 z)
        assert modified_entropy_score([[z, 0]], [0], log=True) == pytest.approx(
            2 * z - np.log(2), rel=1e-14)
    for logits in (np.eye(4), 1e4 * np.eye(4), -1e4 * np.eye(4), np.full((4, 4), 1e4),
                   np.float32(40) * np.eye(4, dtype=np.float32)):
        assert all(np.isfinite(s).all() for s in all_scores(logits, np.arange(4)).values())
        assert all(np.isfinite(s).all() for s in all_scores(logits, [1, 2, 3, 0]).values())


def test_float32_logits_do_not_saturate():
    assert logit_confidence(np.array([[40, 0, 0]], np.float32), [0]) == pytest.approx(
        40 - np.log(2), rel=1e-14)


def test_one_order_for_the_three_scores_of_the_label():
    rng = np.random.default_rng(2)
    logits, y = rng.normal(0, 3, (500, 4)), rng.integers(0, 4, 500)
    order = np.argsort(logit_confidence(logits, y))
    for score in (loss_score, true_label_score):
        np.testing.assert_array_equal(np.argsort(score(logits, y)), order)
    log = modified_entropy_score(logits, y, log=True)
    np.testing.assert_array_equal(np.argsort(log), np.argsort(modified_entropy_score(logits, y)))
    assert (np.argsort(confidence_score(logits)) != order).any()


def test_bounded_loss_adversary():
    """Saying member with chance 1 - loss / B has the advantage (R_test - R_train) / B exactly."""
    rng = np.random.default_rng(3)
    logits, y = rng.normal(size=(200, 3)), rng.integers(0, 3, 200)
    loss = -loss_score(logits, y)
    says = 1 - loss / loss.max()
    assert says[:100].mean() - says[100:].mean() == pytest.approx(
        (loss[100:].mean() - loss[:100].mean()) / loss.max(), rel=1e-12)


@pytest.mark.parametrize("score", WITH_LABEL + WITHOUT, ids=lambda f: f.__name__)
def test_models_at_once_shifts_permutations_and_no_change_of_inputs(score):
    rng = np.random.default_rng(4)
    logits, y = rng.normal(0, 4, (3, 40, 5)), rng.integers(0, 5, 40)
    before, labels = logits.copy(), y.copy()
    logits.flags.writeable = y.flags.writeable = False

    def scored(z, y):
        return score(z, y) if score in WITH_LABEL else score(z)

    together = scored(logits, y)
    assert together.shape == (3, 40) and together.dtype == np.float64
    np.testing.assert_array_equal(together, [scored(z, y) for z in logits])
    np.testing.assert_allclose(scored(logits + 7.5, y), together, rtol=1e-12, atol=1e-14)
    mix, classes = rng.permutation(40), rng.permutation(5)
    np.testing.assert_array_equal(scored(logits[:, mix], y[mix]), together[:, mix])
    renamed = logits[..., np.argsort(classes)]
    np.testing.assert_allclose(scored(renamed, classes[y]), together, rtol=1e-12)
    np.testing.assert_array_equal(logits, before)
    np.testing.assert_array_equal(y, labels)


BAD = [
    ((np.zeros(3), [0]), ValueError, r"must have the shape \(records, classes\), got \(3,\)"),
    ((np.zeros((2, 1)), [0, 0]), ValueError, "at least 2 classes"),
    ((np.zeros((0, 2)), []), ValueError, "logits must have the shape"),
    (([[0, np.nan]], [0]), ValueError, "finite numbers only"),
    ((np.zeros((2, 3)), [0, 3]), ValueError, "classes from 0 to 2, got 3"),
    ((np.zeros((2, 3)), [0, -1]), ValueError, "classes from 0 to 2, got -1"),
    ((np.zeros((2, 3)), [0, 0.5]), ValueError, "classes from 0 to 2, got 0.5"),
    ((np.zeros((2, 3)), [0]), ValueError, r"each of 2 records, got \(1,\)"),
    ((np.zeros((2, 3)), ["a", "b"]), TypeError, "y must be an array of numbers"),
]


@pytest.mark.parametrize("arguments, error, words", BAD)
@pytest.mark.parametrize("score", WITH_LABEL, ids=lambda f: f.__name__)
def test_refused(score, arguments, error, words):
    with pytest.raises(error, match=words):
        score(*arguments)


def test_probabilities_refused():
    for p, words in (([[0.5, 0.6]], "1 of 1 rows"), ([[-0.1, 1.1]], "smallest one of -0.1")):
        with pytest.raises(ValueError, match=words):
            logits_from_probabilities(p)
    np.testing.assert_allclose(true_label_score(logits_from_probabilities([[0.2, 0.8]]), [1]), 0.8)
