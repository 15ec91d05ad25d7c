"""The quantile attack: its false-positive rate has an exact law, whatever the regression is worth.

With n records to calibrate on and the r-th smallest residual as shift, the number of false
positives among N fresh non-members is beta-binomial (N, n - r + 1, r).
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import QuantileRegressor

from coursekit.membership import quantile_attack

N, FRESH = 1000, 4000


def draw(rng, n, member=0.0):
    """Signals that depend on the record: difficulty 3 x, noise that grows with x."""
    X = rng.uniform(-2, 2, (n, 2))
    return 3 * X[:, 0] + 1.5 * member + rng.normal(size=n) * np.exp(X[:, 0] / 2), X


def p_value(wrong, fpr):
    n = N // 2
    law = stats.betabinom(FRESH, n - (r := int(np.ceil((1 - fpr) * (n + 1)))) + 1, r)
    return 2 * min(law.cdf(wrong), law.sf(wrong - 1))


REGRESSORS = {
    "trees": None, "constant": DummyRegressor(), "linear": QuantileRegressor(alpha=0.0),
    "wrong": GradientBoostingRegressor(n_estimators=5, random_state=0),
}


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("fpr", [0.01, 0.1])
def test_false_positives_follow_their_law(name, fpr):
    rng = np.random.default_rng([int(100 * fpr), len(name)])
    known, fresh = draw(rng, N), draw(rng, FRESH)
    scores = quantile_attack(*fresh, *known, fpr=fpr, regressor=REGRESSORS[name])
    assert p_value(np.count_nonzero(scores > 0), fpr) > 1e-9


def test_a_population_of_members_is_not_calibrated():
    rng = np.random.default_rng(1)
    scores = quantile_attack(*draw(rng, FRESH), *draw(rng, N, member=1.0), fpr=0.1)
    assert p_value(np.count_nonzero(scores > 0), 0.1) < 1e-9


def test_it_knows_which_records_are_hard():
    """At 5% false positives it finds more than twice the members a threshold for all finds."""
    rng = np.random.default_rng(2)
    known, members = draw(rng, N), draw(rng, FRESH, member=1.0)
    found = np.mean(quantile_attack(*members, *known, fpr=0.05) > 0)
    blind = np.mean(members[0] > np.quantile(known[0], 0.95))
    assert found > 2 * blind


def test_the_score_is_signal_minus_quantile():
    """By hand: fitted on even rows, shifted by the odd ones."""
    rng = np.random.default_rng(3)
    (known, X), (signal, new) = draw(rng, 200), draw(rng, 50)
    model = QuantileRegressor(quantile=0.9, alpha=0.0).fit(X[::2], known[::2])
    residuals = sorted(known[1::2] - model.predict(X[1::2]))
    wanted = signal - model.predict(new) - residuals[91 - 1]  # ceil(0.9 x 101) = 91
    arrays = [array.copy() for array in (signal, new, known, X)]
    for array in (signal, new, known, X):
        array.flags.writeable = False
    unfitted = QuantileRegressor(quantile=0.9, alpha=0.0)
    found = quantile_attack(signal, new, known, X, fpr=0.1, regressor=unfitted)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert not hasattr(unfitted, "coef_")
    for array, copy in zip((signal, new, known, X), arrays, strict=True):
        np.testing.assert_array_equal(array, copy)
    trees = GradientBoostingRegressor(loss="quantile", alpha=0.9, random_state=0)
    np.testing.assert_array_equal(quantile_attack(signal, new, known, X, fpr=0.1),
                                  quantile_attack(signal, new, known, X, fpr=0.1, regressor=trees))
    images = quantile_attack(signal, new.reshape(50, 1, 2), known, X, fpr=0.1, regressor=unfitted)
    np.testing.assert_array_equal(images, found)


def test_refused():
    rng = np.random.default_rng(4)
    (known, X), (signal, new) = draw(rng, 38), draw(rng, 5)
    dummy = DummyRegressor()
    assert np.isfinite(quantile_attack(signal, new, known, X, regressor=dummy)).all()
    with pytest.raises(ValueError, match=r"fpr=0.05 needs a population of at least 38, got 37"):
        quantile_attack(signal, new, known[1:], X[1:], regressor=dummy)
    with pytest.raises(ValueError, match="of one width, got 1 and 2"):
        quantile_attack(signal, new[:, :1], known, X)
    with pytest.raises(ValueError, match="population_features must have a row for each of 38"):
        quantile_attack(signal, new, known, X[1:])
    with pytest.raises(ValueError, match="features must have a row for each of 5 signals"):
        quantile_attack(signal, new[:, 0], known, X)
    with pytest.raises(ValueError, match="signal must have 1 dimension"):
        quantile_attack(signal[None], new, known, X)
    with pytest.raises(ValueError, match="fpr must be a number between 0 and 1"):
        quantile_attack(signal, new, known, X, fpr=0)
