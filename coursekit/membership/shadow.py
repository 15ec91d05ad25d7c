"""Shadow models: a classifier learns on them to tell the outputs for members from the others."""

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coursekit import _arguments
from coursekit.membership import inputs, scores

LEAST = np.log(1e-30)  # features end here, so that one saturated row does not flatten the others


class ShadowAttack:
    """Attack models trained on shadow models, whose members the attacker knows.

    Threat model: scores, true label and shadow models. The target's membership has no way in.

    Args:
        per_class: one attack model for each true class; by default one that is told the class.
        features: "sorted", log p from high to low, log(p_y / (1 - p_y)) and minus the log of the
            modified entropy, all cut at log 1e-30. "top-3", the three highest log p; pooled, it
            uses no true label (Salem et al., 2019, NDSS, first adversary).
        classifier: a scikit-learn classifier; by default logistic regression on standardised
            features, members and non-members of equal weight.

    Source: Shokri et al. (2017), S&P, with p itself and one attack model per class.

    >>> rng, y = np.random.default_rng(0), np.arange(200) % 2
    >>> membership = rng.random((4, 200)) < 0.5
    >>> own = rng.normal(1, 1, (4, 200)) + 3 * membership  # members are surer of their class
    >>> logits = own[..., None] * (np.arange(2) == y[:, None])
    >>> scores = ShadowAttack().fit(logits[1:], y, membership[1:]).score(logits[0], y)
    >>> bool(scores[membership[0]].mean() > scores[~membership[0]].mean() + 2)
    True
    """

    def __init__(self, *, per_class=False, features="sorted", classifier=None):
        self.per_class = _arguments.one_of(per_class, "per_class", (False, True))
        self.features = _arguments.one_of(features, "features", ("sorted", "top-3"))
        if classifier is None:
            logistic = LogisticRegression(class_weight="balanced", max_iter=1000)
            classifier = make_pipeline(StandardScaler(), logistic)
        self.classifier = classifier

    def fit(self, logits, y, membership):
        """Return self, trained on shadow models: logits (models, records, classes), y (records,),
        membership (models, records).

        Raises: ValueError for shadow models that `check_shadows` refuses, and classes without
            members or non-members.
        """
        check_shadows(logits, y, membership)
        logits, y, membership = _checked(logits, y, membership)
        self.classes, self.models = logits.shape[-1], {}
        for group, these, rows in self._groups(logits, y):
            inside = membership[:, these].ravel()
            inputs.both_sides(inside, "" if group is None else f" of class {group}")
            self.models[group] = clone(self.classifier).fit(rows, inside)
        return self

    def score(self, logits, y):
        """Return scores (..., records): log-odds where the classifier gives them."""
        if not hasattr(self, "models"):
            raise ValueError("fit must be called before score.")
        logits = inputs.checked_logits(logits)
        if logits.shape[-1] != self.classes:
            raise ValueError(f"logits must have {self.classes} classes, got {logits.shape[-1]}.")
        y = inputs.checked_labels(y, *logits.shape[-2:])
        found = np.empty(logits.shape[:-1])
        for group, these, rows in self._groups(logits, y):
            if group not in self.models:
                raise ValueError(f"the shadow models had no record of class {group}.")
            model = self.models[group]
            odds = hasattr(model, "decision_function")
            values = model.decision_function(rows) if odds else model.predict_proba(rows)[:, 1]
            found[..., these] = values.reshape(found[..., these].shape)
        return found

    def _groups(self, logits, y):
        """Yield (class or None for all, its records, their features as rows)."""
        features = self._features(logits, y)
        for group in np.unique(y) if self.per_class else (None,):
            these = slice(None) if group is None else y == group
            yield group, these, features[..., these, :].reshape(-1, features.shape[-1])

    def _features(self, logits, y):
        logp = -np.sort(-np.maximum(scores.log_probabilities(logits)[0], LEAST), axis=-1)
        if self.features == "top-3":
            return logp[..., :3]
        extra = [
            scores.logit_confidence(logits, y),
            scores.modified_entropy_score(logits, y, log=True),
        ]
        parts = [logp, np.clip(np.stack(extra, axis=-1), LEAST, -LEAST)]
        if not self.per_class:
            parts.append(np.broadcast_to(np.arange(self.classes) == y[:, None], logp.shape))
        return np.concatenate(parts, axis=-1)


def check_shadows(logits, y, membership):
    """Return each model's balanced accuracy on its members, unless the models look untrained.

    That is the mean over classes of the share that is right: 1 / classes for one answer to all.
    Arguments: as for `ShadowAttack.fit`.

    Raises: ValueError if a model is no better than that, or their mean is not by 3 standard errors.

    >>> check_shadows([np.eye(2)[[0, 1] * 9]], [0, 1] * 9, np.ones((1, 18), dtype=bool))
    array([1.])
    """
    logits, y, membership = _checked(logits, y, membership)
    own = (np.arange(logits.shape[-1]) == y[:, None]).astype(np.float64)
    size, right = membership @ own, (membership & (logits.argmax(axis=-1) == y)) @ own
    present, each = np.maximum((size > 0).sum(axis=1), 1), np.maximum(size, 1)
    accuracy, chance = (right / each).sum(axis=1) / present, 1 / present
    variance = chance * (1 - chance) * np.where(size > 0, 1 / each, 0).sum(axis=1) / present**2
    low = np.count_nonzero(accuracy <= chance)
    if low or np.mean(accuracy - chance) <= 3 * np.sqrt(variance.sum()) / len(accuracy):
        raise ValueError(
            "shadow models must do better than guessing on the records they were trained on: "
            f"balanced accuracy {accuracy.mean():.3f} on average against {chance.mean():.3f} by "
            f"chance, {low} of {len(accuracy)} models not above it. Were they trained?"
        )
    return accuracy


def _checked(logits, y, membership):
    logits = inputs.checked_logits(logits, ndim=3)
    y = inputs.checked_labels(y, *logits.shape[1:])
    return logits, y, inputs.checked_membership(membership, logits.shape[:2])
