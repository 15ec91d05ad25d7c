"""From scores to decisions, by thresholds that are found on shadow models."""

import numpy as np

from coursekit import _arguments
from coursekit.membership.inputs import both_sides, checked_labels, checked_membership


class Threshold:
    """A threshold fitted on shadow models: a score of at least that much means member.

    Threat model: that of the scores, and shadow models. The membership of an evaluation has no way
    in; a threshold chosen on it would be right too often.

    Args:
        per_class: one threshold for each true class (Song and Mittal, 2021, USENIX Security);
            with few records of a class it fits their noise.
        fpr: the share of the shadows' non-members that may be called members; by default the
            threshold has the best balanced accuracy, and is the highest of them if several do.

    After `fit`, `values` maps each class, or None for all of them, to its threshold.

    >>> threshold = Threshold().fit([[1.0, 2.0, 3.0, 4.0]], [[False, True, False, True]])
    >>> threshold.values, threshold.decide([3.5, 4.5])
    ({None: 4.0}, array([False,  True]))
    """

    def __init__(self, *, per_class=False, fpr=None):
        self.per_class = _arguments.one_of(per_class, "per_class", (False, True))
        self.fpr = None if fpr is None else _arguments.fraction(fpr, "fpr")

    def fit(self, scores, membership, y=None):
        """Return self; scores and membership (models, records) or (records,), y (records,).

        Raises: ValueError for a class (or all) without members or non-members, or with fewer than
            1 / fpr non-members, or y missing with per_class.
        """
        scores, groups = self._groups(scores, y)
        membership = checked_membership(membership, scores.shape)
        self.values = {}
        for group, these in groups:
            inside, values = membership[..., these].ravel(), scores[..., these].ravel()
            of = "" if group is None else f" of class {group}"
            both_sides(inside, of)
            members, others = np.sort(values[inside]), np.sort(values[~inside])
            self.values[group] = (
                _best(members, others) if self.fpr is None else _above(others, self.fpr, of)
            )
        return self

    def decide(self, scores, y=None):
        """Return True where a score (..., records) says member; y as for `fit`."""
        if not hasattr(self, "values"):
            raise ValueError("fit must be called before decide.")
        scores, groups = self._groups(scores, y)
        decisions = np.empty(scores.shape, dtype=bool)
        for group, these in groups:
            if group not in self.values:
                raise ValueError(f"no threshold was fitted for class {group}.")
            decisions[..., these] = scores[..., these] >= self.values[group]
        return decisions

    def _groups(self, scores, y):
        scores = _arguments.finite_array(scores, "scores")
        if not scores.ndim or not scores.size:
            raise ValueError(f"scores must have the shape (records,), got {scores.shape}.")
        if not self.per_class:
            return scores, [(None, slice(None))]
        if y is None:
            raise ValueError("y must be given: there is one threshold for each class.")
        y = checked_labels(y, scores.shape[-1])
        return scores, [(int(group), y == group) for group in np.unique(y)]


def _best(members, others):
    """Return the highest threshold of the best balanced accuracy; both are sorted."""
    values = np.append(np.unique(np.concatenate([members, others])), np.inf)
    caught = len(members) - np.searchsorted(members, values)
    wrong = len(others) - np.searchsorted(others, values)
    gain = caught * len(others) - wrong * len(members)  # whole numbers: ties are ties
    return float(values[np.flatnonzero(gain == gain.max())[-1]])


def _above(others, fpr, of):
    """Return the lowest threshold that at most a share fpr of `others`, sorted, reaches."""
    allowed = int(fpr * len(others) + 1e-9)
    if not allowed:
        least = int(np.ceil(1 / fpr - 1e-9))
        raise ValueError(f"fpr={fpr:g} needs {least} non-members{of} or more, got {len(others)}.")
    return float(np.nextafter(others[-1 - allowed], np.inf))
