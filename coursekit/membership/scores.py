"""Scores that need no training: what one output says about membership.

All work from logits in float64, since a saturated softmax has lost the order: p_y is 1.0 to all
digits from a lead of 37 on (a lead is z_y - logsumexp of the others). Logits are (..., records,
classes), y is (records,), a score is (..., records); higher means member.
"""

import numpy as np
from scipy.special import expit

from coursekit import _arguments
from coursekit.membership.inputs import checked_labels, checked_logits

ALMOST = -37.0  # log(1 - p) below this: -log p is 1 - p to all digits


def gap_score(logits, y):
    """Return 1.0 where the class with the highest logit is y, else 0.0 (the first one, if tied).

    Threat model: labels only. With as many members as non-members, calling the right ones members
    is right in 1/2 + (training accuracy - test accuracy) / 2 of cases, exactly. No other threshold
    exists. Source: Yeom et al. (2018), CSF.

    >>> gap_score([[2.0, 1.0], [2.0, 1.0]], [0, 1])
    array([1., 0.])
    """
    logits, y = _checked(logits, y)
    return (logits.argmax(axis=-1) == y).astype(np.float64)


def logit_confidence(logits, y):
    """Return log(p_y / (1 - p_y)), computed as z_y - logsumexp of the other logits.

    Threat model: scores and the true label. The signal that LiRA models by Gaussians; it never
    saturates. Source: Carlini et al. (2022), S&P.

    >>> logit_confidence([[800.0, 0.0], [0.0, 0.0]], [0, 0])
    array([800.,   0.])
    """
    logits, y = _checked(logits, y)
    at = np.broadcast_to(y[:, None], (*logits.shape[:-1], 1))
    own = np.take_along_axis(logits, at, axis=-1)[..., 0]
    np.put_along_axis(logits, at, -np.inf, axis=-1)
    return own - _log_sum(logits)


def loss_score(logits, y):
    """Return log p_y, minus the cross-entropy: members have the smaller losses.

    Threat model: scores and the true label. Source: Yeom et al. (2018), CSF, whose threshold is the
    mean training loss; `Threshold` finds one on shadow models.

    >>> loss_score([[50.0, 0.0], [0.0, 50.0]], [0, 0])
    array([-1.92874985e-22, -5.00000000e+01])
    """
    return -np.logaddexp(0, -logit_confidence(logits, y))


def true_label_score(logits, y):
    """Return p_y, the confidence in the true label.

    Threat model: scores and the true label. The same order as `loss_score` and `logit_confidence`,
    but for ties: they are 1.0 from a lead of 37 on. Not to be mixed up with `confidence_score`.

    >>> true_label_score([[3.0, 0.0], [0.0, 3.0]], [0, 0]).round(3)
    array([0.953, 0.047])
    """
    return expit(logit_confidence(logits, y))


def confidence_score(logits):
    """Return the maximum of p, the confidence in whatever class is predicted.

    Threat model: scores, no true label. Being sure and wrong counts as being sure; ties at 1.0 from
    a lead of 37 on. Source: Salem et al. (2019), NDSS, their third adversary.

    >>> confidence_score([[3.0, 0.0], [0.0, 3.0]]).round(3)
    array([0.953, 0.953])
    """
    return np.exp(log_probabilities(checked_logits(logits))[0].max(axis=-1))


def entropy_score(logits):
    """Return the sum of p log p, minus the entropy in nats: 0 for any one-hot output.

    Threat model: scores, no true label. Source: Song and Mittal (2021), USENIX Security.

    >>> entropy_score([[0.0, 0.0], [0.0, 9e3]]).round(4) + 0
    array([-0.6931,  0.    ])
    """
    logp, _ = log_probabilities(checked_logits(logits))
    return (np.exp(logp) * logp).sum(axis=-1)


def modified_entropy_score(logits, y, *, log=False):
    """Return minus the modified entropy, (1 - p_y) log p_y + sum over i != y of p_i log(1 - p_i).

    0 for a sure right answer, and low for a sure wrong one, where entropy sees no difference.
    Threat model: scores and the true label. Source: Song and Mittal (2021), USENIX Security; they
    use it with one threshold for each class, `Threshold(per_class=True)`.

    Args:
        log: return minus the log of the modified entropy instead: the same order, without the ties
            at 0 that begin at a lead of 370.

    >>> modified_entropy_score([[0.0, 0.0], [100.0, 0.0]], [1, 1]).round(3)
    array([  -0.693, -200.   ])
    """
    logits, y = _checked(logits, y)
    logp, log_rest = log_probabilities(logits)
    terms = logp + _log_minus(log_rest, logp)  # log of -p_i log(1 - p_i)
    own = log_rest + _log_minus(logp, log_rest)
    value = _log_sum(np.where(np.arange(logits.shape[-1]) == y[:, None], own, terms))
    return -value if _arguments.one_of(log, "log", (False, True)) else -np.exp(value)


def logits_from_probabilities(probabilities, *, floor=1e-30):
    """Return log p, which all functions here take as logits; p below `floor` counts as `floor`.

    Args:
        probabilities: (..., records, classes), rows that add up to 1 to within 0.001.

    Raises: ValueError for rows that do not, or negative entries.

    >>> modified_entropy_score(logits_from_probabilities([[1.0, 0.0]]), [1]).round(3)
    array([-138.155])
    """
    p = checked_logits(probabilities, "probabilities")
    floor = _arguments.fraction(floor, "floor")
    wrong = np.abs(p.sum(axis=-1) - 1) > 1e-3
    if (p < 0).any() or wrong.any():
        raise ValueError(
            "probabilities must be at least 0 and add up to 1 in each row, got a smallest one of "
            f"{p.min():.4g} and {np.count_nonzero(wrong)} of {wrong.size} rows that do not."
        )
    return np.log(np.maximum(p, floor))


def _checked(logits, y):
    logits = checked_logits(logits)
    return logits, checked_labels(y, *logits.shape[-2:])


def _log_sum(values):
    """Return the log of the sum of e^values over the last axis; the largest one is finite."""
    most = values.max(axis=-1, keepdims=True)
    return most[..., 0] + np.log(np.exp(values - most).sum(axis=-1))


def log_probabilities(logits):
    """Return log p and log(1 - p), both to full relative precision."""
    top = logits.argmax(axis=-1)[..., None]
    logp = logits - np.take_along_axis(logits, top, axis=-1)
    others = logp.copy()
    np.put_along_axis(others, top, -np.inf, axis=-1)
    log_others = _log_sum(others)[..., None]
    log_total = np.log1p(np.exp(log_others))
    logp -= log_total
    log_rest = np.log1p(-np.minimum(np.exp(logp), 0.5))  # right for all but the top class
    np.put_along_axis(log_rest, top, log_others - log_total, axis=-1)
    return logp, log_rest


def _log_minus(logp, log_rest):
    """Return log(-log p), given log p and log(1 - p)."""
    return np.where(log_rest < ALMOST, log_rest, np.log(-np.minimum(logp, -1e-300)))
