"""Attacks on a model that hides its scores (labels only) or blurs them (query averaging)."""

import numpy as np

from coursekit import _arguments
from coursekit.membership.inputs import checked_labels
from coursekit.membership.scores import logits_from_probabilities


def label_only_score(predict, X, y, *, noise, votes=32, rng):
    """Return the share of noisy copies of each record that are still predicted right.

    Without noise it is the gap attack. If the label is the sign of w x + b, a vote under Gaussian
    noise is right with chance Phi(margin / (noise norm(w))), the margin |w x + b| taken negative
    where x itself is predicted wrong. Threat model: labels only, `votes` queries of each record.

    Args:
        predict: takes a float64 array like X, returns labels (records,) or logits
            (records, classes), of which only the highest is used. X: (records, ...). y: (records,).
        noise: standard deviation of Gaussian noise, or a function (X, rng) that returns noisy
            copies (shifts, flipped bits). To be chosen on shadow models.

    Source: Choquette-Choo et al. (2021), ICML.

    >>> rng = np.random.default_rng(0)
    >>> label_only_score(lambda X: X[:, 0] > 0, [[9.0], [-9.0]], [1, 1], noise=1.0, rng=rng)
    array([1., 0.])
    """
    X, y = _checked(predict, X, y)
    votes, rng = _arguments.whole(votes, "votes", least=1), _arguments.generator(rng)
    if not callable(noise):
        noise = _arguments.non_negative(noise, "noise")
    right = np.zeros(len(X))
    for _ in range(votes):
        noisy = noise(X.copy(), rng) if callable(noise) else X + rng.normal(0, noise, X.shape)
        if np.shape(noisy) != X.shape:
            raise ValueError(f"noise must keep the shape {X.shape}, it returned {np.shape(noisy)}.")
        right += _predicted(predict, noisy) == y
    return right / votes


def boundary_score(predict, X, y, *, reach, directions=16, steps=12, rng):
    """Return the distance to the nearest wrong label along random directions, the same for all.

    By bisection, to within reach / 2^steps if each direction leaves the label once; `reach` if none
    leaves it, 0 if the record itself is predicted wrong. Threat model: labels only,
    directions x (steps + 1) + 1 queries of each record. Arguments: as for `label_only_score`.

    Source: after Choquette-Choo et al. (2021), ICML, and Li and Zhang (2021), CCS, who look for the
    nearest in all directions, at far more queries.

    >>> rng = np.random.default_rng(0)
    >>> predict = lambda X: X[:, 0] > 0
    >>> boundary_score(predict, [[1.0], [-1.0]], [1, 1], reach=4.0, rng=rng).round(2)
    array([1., 0.])
    """
    X, y = _checked(predict, X, y)
    reach = _arguments.positive(reach, "reach")
    directions = _arguments.whole(directions, "directions", least=1)
    steps = _arguments.whole(steps, "steps", least=1)
    ways = _arguments.generator(rng).normal(size=(directions, X[0].size))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    ways = ways.reshape(directions, 1, *X.shape[1:])

    def right_at(distance):
        distance = distance.reshape(-1, *[1] * (X.ndim - 1))
        return np.all([_predicted(predict, X + distance * way) == y for way in ways], axis=0)

    low, high = np.zeros(len(X)), np.full(len(X), reach)
    beyond = right_at(high)
    for _ in range(steps):
        middle = (low + high) / 2
        right = right_at(middle)
        low, high = np.where(right, middle, low), np.where(right, high, middle)
    inside = np.where(beyond, reach, (low + high) / 2)
    return np.where(_predicted(predict, X.copy()) == y, inside, 0.0)


def average_queries(query, count):
    """Return the mean of log p over `count` queries of a randomised defence, to use as logits.

    If the defence answers softmax((z + noise) / T), T times the difference of two classes' means is
    z_i - z_j plus the mean of their noises' differences, exactly: for Gaussian noise of standard
    deviation s, independent over classes and queries, its standard deviation is s sqrt(2 / count).
    The mean of p itself tends to something else. Noise that is the same at each query stays.

    Threat model: scores, and leave to ask the same question again.

    Args:
        query: a function without arguments that returns probabilities (..., records, classes), such
            as `lambda: defence.protect(logits, rng)`; below 1e-30 they count as that.

    >>> average_queries(lambda: np.array([[0.5, 0.5]]), 4).round(4)
    array([[-0.6931, -0.6931]])
    """
    if not callable(query):
        raise TypeError(f"query must be a function without arguments, got {query!r}.")
    count, total = _arguments.whole(count, "count", least=1), 0.0
    for number in range(count):
        answer = logits_from_probabilities(query())
        if number and answer.shape != total.shape:
            raise ValueError(f"query must return one shape, got {total.shape}, {answer.shape}.")
        total = total + answer
    return total / count


def _checked(predict, X, y):
    if not callable(predict):
        raise TypeError(f"predict must be a function of records, got {type(predict).__name__}.")
    X = _arguments.finite_array(X, "X")
    if X.ndim < 2 or not X.size:
        raise ValueError(f"X must have the shape (records, features), got {X.shape}.")
    return X, checked_labels(y, len(X))


def _predicted(predict, X):
    """Return the label of each record, from labels or logits."""
    answer = np.asarray(predict(X))
    if answer.ndim not in (1, 2) or len(answer) != len(X):
        raise ValueError(
            "predict must return (records,) labels or (records, classes) logits for "
            f"{len(X)} records, it returned the shape {answer.shape}."
        )
    return answer if answer.ndim == 1 else answer.argmax(axis=1)
