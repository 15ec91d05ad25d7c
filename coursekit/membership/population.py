"""Attacks that compare with records the target was surely not trained on: RMIA, quantiles."""

import numpy as np
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingRegressor

from coursekit import _arguments
from coursekit.membership.inputs import checked_signals, refuse_few


def rmia(
    signal, shadow_signals, shadow_membership, population, shadow_population, *, gamma=1.0, a=1.0
):
    """Return the share of population records that a record beats, ties broken by its own ratio.

    A record's ratio r is its p_y by the target over (1 + a) / 2 times its mean p_y by the OUT
    shadows plus (1 - a) / 2; x beats z if r(x) / r(z) > gamma. The bare share is often tied at 1,
    where low false-positive rates are decided; the score is (number beaten + t) / (population + 1)
    with 0 < t < 1 growing with r. Its order is that of r.

    Threat model: scores, true label, a population, and shadow models without the records in
    question (offline). Signals of IN shadows are not read and may be NaN.

    Args:
        signal: `loss_score` by the target, (records,) or (targets, records).
        shadow_signals, shadow_membership: (models, records).
        population, shadow_population: the same signals of records that neither target nor shadows
            were trained on, (population,) or (targets, population), and (models, population).
        gamma: above 0. a: from 0 to 1. p_y by models trained on x is taken for a times that by
            others plus 1 - a; to be tuned on a shadow model that plays the target.

    Raises: ValueError for records without OUT shadow, and signals above 0, which no log p_y is.
    Source: Zarifzadeh et al. (2024), ICML; the tie-break is this course's.

    >>> shadow, out, shadow_z = np.log([[0.5, 0.5]]), [[False, False]], np.log([[0.4] * 3])
    >>> scores = rmia(np.log([0.3, 0.9]), shadow, out, np.log([0.2, 0.4, 0.6]), shadow_z)
    >>> np.floor(scores * 4) / 3  # the bare shares
    array([0.33333333, 1.        ])
    """
    arrays = (signal, shadow_signals, shadow_membership)
    signal, shadow, inside = checked_signals(*arrays, offline=True)
    refuse_few(~inside, "OUT")
    never = np.zeros(np.shape(shadow_population), dtype=bool)
    others, shadow_others, _ = checked_signals(population, shadow_population, never)
    if others.shape[:-1] != signal.shape[:-1] or len(shadow_others) != len(shadow):
        raise ValueError(
            "records and population must come from the same models, got signals of shape "
            f"{signal.shape} and {others.shape}, shadows {shadow.shape} and {shadow_others.shape}."
        )
    most = max(array.max() for array in (signal, shadow, others, shadow_others))
    if most > 1e-6:
        raise ValueError(f"signals must be logs of p_y, at most 0, got {most:.4g}.")
    gamma, a = _arguments.positive(gamma, "gamma"), _arguments.probability(a, "a")
    ratio = signal - _log_reference(shadow, ~inside, a)
    bar = np.log(gamma) + others - _log_reference(shadow_others, ~never, a)
    beaten = (ratio[..., None] > bar[..., None, :]).sum(axis=-1)
    return (beaten + 0.5 + np.arctan(ratio) / np.pi) / (bar.shape[-1] + 1)


def _log_reference(shadow, outside, a):
    """Return the log of (1 + a) / 2 mean_OUT p + (1 - a) / 2 for each record."""
    shadow = np.where(outside, shadow, -np.inf)
    most = shadow.max(axis=0)
    mean = np.exp(shadow - most).sum(axis=0) / outside.sum(axis=0)
    log_mean = np.log((1 + a) / 2) + most + np.log(mean)
    return np.logaddexp(log_mean, np.log((1 - a) / 2)) if a < 1 else log_mean


def quantile_attack(
    signal, features, population_signal, population_features, *, fpr=0.05, regressor=None
):
    """Return how far each signal lies above the quantile that non-members like it have.

    A regression on every other population record predicts the (1 - fpr)-quantile of the signal from
    the features; the other half moves it by one number, so that a fresh non-member has a score
    above 0 with probability at most fpr, however bad the regression (over the draw of population
    and non-member, which must be exchangeable).

    Threat model: scores, true label and a population; no shadow models.

    Args:
        signal: (records,), such as `logit_confidence`. features: (records, ...), the records.
        population_signal, population_features: of records that the target was not trained on.
        regressor: a scikit-learn regressor of that quantile; by default boosted trees.

    Raises: ValueError for a population of fewer than about 2 / fpr.
    Source: Bertran et al. (2023), NeurIPS; the shift: Romano et al. (2019), NeurIPS.

    >>> known = np.random.default_rng(0).normal(size=400)
    >>> quantile_attack([1.0, 3.0], [[0.0], [0.0]], known, np.zeros((400, 1))) > 0
    array([False,  True])
    """
    signal, features = _checked_pair(signal, features, "")
    known, likewise = _checked_pair(population_signal, population_features, "population_")
    fpr = _arguments.fraction(fpr, "fpr")
    if features.shape[1] != likewise.shape[1]:
        wide = f"{features.shape[1]} and {likewise.shape[1]}"
        raise ValueError(f"features must be of one width, got {wide} for the population.")
    rank = int(np.ceil((1 - fpr) * (len(known) // 2 + 1) - 1e-9))
    if rank > len(known) // 2:
        least = 2 * int(np.ceil(1 / fpr - 1 - 1e-9))
        raise ValueError(f"fpr={fpr:g} needs a population of at least {least}, got {len(known)}.")
    if regressor is None:
        regressor = GradientBoostingRegressor(loss="quantile", alpha=1 - fpr, random_state=0)
    model = clone(regressor).fit(likewise[::2], known[::2])
    over = np.sort(known[1::2] - model.predict(likewise[1::2]))
    return signal - model.predict(features) - over[rank - 1]


def _checked_pair(signal, features, prefix):
    signal = _arguments.finite_array(signal, f"{prefix}signal", ndim=1)
    features = _arguments.finite_array(features, f"{prefix}features")
    if features.ndim < 2 or len(features) != len(signal) or not features.size:
        many = f"a row for each of {len(signal)} signals"
        raise ValueError(f"{prefix}features must have {many}, got shape {features.shape}.")
    return signal, features.reshape(len(features), -1)
