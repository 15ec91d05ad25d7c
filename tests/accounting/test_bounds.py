"""The bracket against a contour integral that knows no grid, closed forms, and its own promises.

`random_settings.csv` holds 726 random settings and their exact epsilon, from `exact.py`.
"""

import csv
import json
import math
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from coursekit.accounting import (
    Ledger,
    WideBounds,
    calibrate_noise,
    delta_bounds,
    epsilon_bounds,
    gaussian_epsilon,
    optimal_composition,
)
from coursekit.accounting import bounds as bounds_module
from coursekit.accounting.losses import Gaussian, Law, Step, coarser, compose, discretise
from tests.accounting.exact import exact_delta, exact_epsilon

HERE = Path(__file__).parent
with (HERE / "random_settings.csv").open() as lines:
    RANDOM = [{name: float(cell) for name, cell in row.items()} for row in csv.DictReader(lines)]
PUBLISHED = [  # sampling rate, noise, steps, delta, exact epsilon
    (0.25, 4.0, 400, 1e-5, 5.864169184892211), (0.25, 4.0, 40, 1e-5, 1.6463924403055668),
    (0.02, 1.15, 50, 1e-5, 0.7920745428387632), (0.02, 1.15, 500, 1e-5, 2.111504259873324),
    (0.02, 1.15, 5000, 1e-5, 7.26619592735333), (0.01, 4.0, 10000, 1e-5, 0.9468668007645704),
    (256 / 60000, 1.1, 14062, 1e-5, 2.3815969214246033),
    (256 / 60000, 0.7, 10546, 1e-5, 5.639413556207944),
    (0.08192, 3.0, 2500, 1e-5, 6.578895850577256), (0.5, 0.5, 10, 1e-5, 31.374467983534473),
    (0.01, 0.5, 1000, 1e-5, 13.360823985349704), (0.01, 1.0, 1000, 1e-12, 3.9142981560375367),
]
TINY = {1e-8: 3.035379, 1e-10: 3.599496, 1e-12: 4.150279, 1e-14: 4.698988, 1e-30: 9.005372}
LAPLACE = [(0.1, 10, 0.9899599, 0.9899623), (0.1, 100, 4.2201237, 4.2203473),
           (0.5, 20, 9.1054135, 9.1055437), (0.01, 1000, 1.1954557, 1.1957031),
           (0.1, 1000, 17.4212962, 17.4236521)]


def bracket(rate, noise, steps, delta):
    return epsilon_bounds(noise_multiplier=noise, sampling_rate=rate, steps=steps, delta=delta)


def through_the_grid(mu, steps, delta):
    """The bracket of the plain Gaussian by the grid, which `epsilon_bounds` itself need not use."""
    with np.errstate(all="ignore"):
        return bounds_module._bracket({(Gaussian(mu), 1.0): steps}, "remove", 1e-3, delta=delta)


@pytest.mark.parametrize("rate, noise, steps, delta, exact", PUBLISHED)
def test_published_settings(rate, noise, steps, delta, exact):
    low, high = bracket(rate, noise, steps, delta)
    assert low <= exact <= high <= 1.001 * low


@pytest.mark.parametrize("part", range(6))
def test_random_settings(part):
    """Certified on all, and narrow on nearly all: none is wide without a warning."""
    widths = []
    for row in RANDOM[part::6]:
        steps = int(row["steps"])
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            low, high = bracket(row["sampling_rate"], row["noise_multiplier"], steps, row["delta"])
        values = [row["exact_remove"], row["exact_add"]]
        exact = max(value for value in values if not math.isnan(value))
        assert low <= exact * (1 + 1e-9) and exact * (1 - 1e-9) <= high, row
        widths.append((high - low) / high)
        assert widths[-1] <= 1.001e-3 or any(w.category is WideBounds for w in told), row
    assert np.median(widths) <= 1e-3 and np.mean(np.array(widths) <= 2e-3) >= 0.97


def test_tiny_delta():
    for delta, exact in TINY.items():
        low, high = bracket(0.02, 1.15, 500, delta)
        assert low <= exact + 1e-6 and exact - 1e-6 <= high <= 1.001 * low


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("steps", [1, 30, 1000])
@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-25])
def test_grid_contains_the_gaussian_closed_form(mu, steps, delta):
    low, high = through_the_grid(mu / math.sqrt(steps), steps, delta)
    assert low <= gaussian_epsilon(mu, delta) <= high <= 1.001 * low


@pytest.mark.parametrize("epsilon, count, low, high", LAPLACE)
def test_laplace(epsilon, count, low, high):
    """Against another accountant's optimistic and pessimistic values at a grid of 1e-4."""
    ledger = Ledger()
    ledger.add(laplace_epsilon=epsilon, steps=count)
    ours = ledger.bounds(1e-5)
    assert ours[0] <= high and low <= ours[1] <= 1.001 * ours[0]
    assert ours[1] < optimal_composition(epsilon, 0, count=count, slack=1e-5)[0]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_one_laplace_release(epsilon, delta):
    """delta(e) = 1 - exp((e - epsilon) / 2), so e = epsilon + 2 ln(1 - delta)."""
    ledger = Ledger()
    ledger.add(laplace_epsilon=epsilon)
    low, high = ledger.bounds(delta)
    assert low <= epsilon + 2 * math.log1p(-delta) <= high <= 1.001 * low


@pytest.mark.parametrize("rate, noise, steps, epsilon", [
    (0.02, 1.15, 500, 2.0), (0.02, 1.15, 500, 9.0), (0.25, 4.0, 40, 0.5), (0.001, 0.7, 3000, 1.0)])
def test_delta(rate, noise, steps, epsilon):
    known = dict(epsilon=epsilon, noise_multiplier=noise, sampling_rate=rate, steps=steps)
    low, high = delta_bounds(**known)
    exact = max(exact_delta(**known, direction=way) for way in ("remove", "add"))
    assert low <= exact <= high <= 1.002 * low


def test_the_reference_is_right_itself():
    """The contour integral, which judges the bracket, against the closed form at q near 1."""
    known = dict(noise_multiplier=10.0, sampling_rate=1 - 1e-12, steps=100)
    assert exact_epsilon(delta=1e-5, **known) == pytest.approx(gaussian_epsilon(1, 1e-5), rel=1e-7)


@pytest.mark.parametrize("epsilon, delta, rate, steps", [
    (2.111504, 1e-5, 0.02, 500), (1.0, 1e-5, 0.01, 1000), (0.05, 1e-5, 0.5, 10),
    (8.0, 1e-9, 1.0, 1), (100.0, 1e-5, 0.9, 10)])
def test_calibrated_noise_is_enough_and_smallest(epsilon, delta, rate, steps):
    noise = calibrate_noise(epsilon=epsilon, delta=delta, sampling_rate=rate, steps=steps)
    assert exact_epsilon(delta=delta, noise_multiplier=noise, sampling_rate=rate,
                         steps=steps) <= epsilon
    assert exact_epsilon(delta=delta, noise_multiplier=noise * (1 - 1e-3), sampling_rate=rate,
                         steps=steps) > epsilon
    known = dict(noise_multiplier=noise, sampling_rate=rate, steps=steps, delta=delta)
    assert epsilon_bounds(**known, tolerance=5e-4)[1] <= epsilon


def test_calibration_where_no_noise_is_needed():
    with pytest.raises(ValueError, match="no noise is needed"):
        calibrate_noise(epsilon=1, delta=0.1, sampling_rate=1e-4, steps=10)
    with pytest.raises(ValueError, match="no noise is needed"):
        calibrate_noise(epsilon=1, delta=0.1, sampling_rate=0, steps=10)


def test_calibration_does_not_warn_of_its_own_search():
    """Some bracket on the way is wider than asked for; pytest turns a warning into a failure."""
    known = dict(delta=2.643920355260328e-05, sampling_rate=0.0002684288765920146, steps=3)
    noise = calibrate_noise(epsilon=0.25340483385195767, **known)
    assert epsilon_bounds(noise_multiplier=noise, **known, tolerance=0.01)[0] <= 0.2534049


def test_calibration_beyond_what_is_sensible():
    with pytest.raises(ValueError, match=r"would take noise above 1e\+06"):
        calibrate_noise(epsilon=1e-9, delta=1e-9, sampling_rate=0.5, steps=10)


@pytest.mark.parametrize("rate", [0.001, 0.5, 0.9999])
def test_hardly_any_noise(rate):
    """The grid gives up, and says so; the upper bound is then that without sampling."""
    with pytest.warns(WideBounds):
        low, high = bracket(rate, 0.02, 3, 1e-5)
    assert low <= gaussian_epsilon(math.sqrt(3) / 0.02, 1e-5) <= high <= 1e4


def test_replace_one_is_twice_as_far():
    known = dict(noise_multiplier=1.0, sampling_rate=1.0, steps=1, delta=1e-5)
    low, high = epsilon_bounds(**known, adjacency="replace-one")
    assert low <= 9.997256146434298 <= high
    with pytest.raises(ValueError, match="only proved here without sampling"):
        epsilon_bounds(**{**known, "sampling_rate": 0.5}, adjacency="replace-one")


def test_nothing_spent():
    assert bracket(0.0, 1.0, 10, 1e-5) == (0.0, 0.0) == bracket(0.01, 50.0, 1, 0.1)
    assert delta_bounds(noise_multiplier=1, sampling_rate=0, steps=1, epsilon=1) == (0.0, 0.0)


def test_more_steps_noise_and_sampling_count_the_right_way():
    base = bracket(0.02, 1.15, 500, 1e-5)
    assert bracket(0.02, 1.15, 510, 1e-5)[0] > base[1]
    assert bracket(0.021, 1.15, 500, 1e-5)[0] > base[1]
    assert bracket(0.02, 1.2, 500, 1e-5)[1] < base[0]
    assert bracket(0.02, 1.15, 500, 2e-5)[1] < base[0]


def test_a_wide_answer_is_announced():
    known = dict(noise_multiplier=1.0, sampling_rate=0.1, steps=3, delta=1e-5)
    with pytest.warns(WideBounds, match="wide bounds: from"):
        low, high = epsilon_bounds(**known, tolerance=1e-12)
    exact = exact_epsilon(**known)
    assert exact - 1e-4 < low <= exact <= high < exact + 1e-4


@pytest.mark.parametrize("rate, noise, steps, delta", [
    (1.48e-5, 0.78, 11172, 9.5e-15), (4.1e-5, 1.91, 928, 2e-27), (1.85e-5, 0.823, 2, 6.2e-18)])
def test_rare_large_losses(rate, noise, steps, delta):
    """Where one rare step decides, the first grid's rounding hides it; the bracket still closes."""
    low, high = bracket(rate, noise, steps, delta)
    assert 0 < low <= high <= 1.001 * low
    beyond = steps * exact_delta(epsilon=high, noise_multiplier=noise, sampling_rate=rate, steps=1)
    assert 0.2 * delta < beyond < delta  # one step alone leaves nearly all of delta beyond epsilon


def one_step_delta(epsilon, noise, rate):
    """Closed form of one step, direction remove, at any real epsilon: the loss grows with x."""
    known = epsilon > math.log1p(-rate)
    x = noise**2 * np.log(np.where(known, np.expm1(epsilon) + rate, rate) / rate) + 0.5
    seen, unseen = norm.sf((x - 1) / noise), norm.sf(x / noise)
    return np.where(known, rate * seen - (np.expm1(epsilon) + rate) * unseen, -np.expm1(epsilon))


def two_step_delta(epsilon, noise, rate):
    """delta of two steps: that of the second, averaged over the loss of the first."""
    edges = np.arange(-14, 14 + 1 / noise, 0.01) * noise
    nodes, weights = np.polynomial.legendre.leggauss(8)
    x = (edges[:-1, None] + (nodes + 1) * 0.005 * noise).ravel()
    loss = np.log1p(rate * np.expm1((2 * x - 1) / (2 * noise**2)))
    density = (1 - rate) * norm.pdf(x, 0, noise) + rate * norm.pdf(x, 1, noise)
    values = density * one_step_delta(epsilon - loss, noise, rate)
    return np.sum(values * np.tile(weights, len(edges) - 1)) * 0.005 * noise


@pytest.mark.parametrize("rate", [1e-5, 3e-4, 0.01])
@pytest.mark.parametrize("noise", [0.6, 1.0, 2.5])
@pytest.mark.parametrize("delta", [1e-7, 1e-12, 1e-20])
def test_two_steps_by_quadrature(rate, noise, delta):
    """Few steps, rare sampling, little noise: the corner where the contour does not converge."""
    low, high = bracket(rate, noise, 2, delta)
    if high == 0:
        assert two_step_delta(0.0, noise, rate) <= delta
        return
    assert high <= 1.001 * low
    assert two_step_delta(high * (1 + 1e-9), noise, rate) <= delta * (1 + 1e-6)
    assert two_step_delta(low * (1 - 1e-9), noise, rate) >= delta * (1 - 1e-6)


def test_one_step_keeps_both_masses():
    """Above, the two laws keep their total mass; below, they do too."""
    step = Step(Gaussian(1 / 1.15), 0.02, "remove")
    above, p, q, lost = discretise(step, -0.03, 9.0, 0.01, 0.0)
    mass = above.weights.sum() * math.exp(above.log_total)
    other = np.sum(above.weights * math.exp(above.log_total) * np.exp(-above.losses))
    assert mass + lost == pytest.approx(1, abs=1e-12) and other == pytest.approx(1, abs=1e-12)
    assert p.log_total == pytest.approx(0, abs=1e-12)
    assert np.sum(np.exp(q.log_masses())) == pytest.approx(1, abs=1e-12)


def test_low_losses_are_lumped_not_lost():
    step = Step(Gaussian(1 / 1.15), 0.5, "remove")
    above, p, q, lost = discretise(step, 0.1, 9.0, 0.01, 0.0)
    assert above.weights.sum() * math.exp(above.log_total) + lost == pytest.approx(1, abs=1e-12)
    assert np.sum(np.exp(p.log_masses())) == pytest.approx(1, abs=1e-12)
    assert np.sum(np.exp(q.log_masses())) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("start", [-7, 0, 3, 12])
def test_a_coarser_grid_keeps_what_it_should(start):
    """Above: the masses of P and Q. Below: every loss moves to the nearest point with its mass."""
    masses = np.array([0.1, 0.2, 0.3, 0.25, 0.15])
    fine = Law(start, 0.1, 0.0, masses, 0.0, origin=(None, 1))
    above, below = coarser(fine, 5, above=True), coarser(fine, 5, above=False)
    for weigh in (np.ones_like, lambda losses: np.exp(-losses)):
        kept = np.exp(above.log_masses()) @ weigh(above.losses)
        assert kept == pytest.approx(masses @ weigh(fine.losses), rel=1e-12)
    for loss, mass in zip(below.losses, np.exp(below.log_masses()), strict=True):
        near = np.abs(fine.losses - loss) < 0.25
        assert mass == pytest.approx(masses[near].sum(), abs=1e-12)


@pytest.mark.parametrize("high", [0.5, 0.7, 1.3])
def test_wrapped_mass_is_counted(high):
    """In a window too small the masses are wrong, but by no more than the error says."""
    step = Step(Gaussian(1.0), 0.3, "add")
    above, *_ = discretise(step, -8.0, 0.4, 0.05, 1.3)
    true = np.convolve(np.convolve(above.weights, above.weights), above.weights)
    law = compose([(above, 3)], (-3.0, high, 1.0, 1.0))
    places = law.start - 3 * above.start + np.arange(len(law.weights))
    expected = np.where(places < len(true), true[np.minimum(places, len(true) - 1)], 0)
    off = np.abs(law.weights - expected).sum() + true.sum() - expected.sum()
    assert 1e-9 < off <= law.error


def test_what_is_counted_is_paid():
    """Errors in a law raise the upper bound and lower the lower one."""
    direction = bounds_module._Direction({(Gaussian(0.1), 0.5): 50}, "remove", 1e-4, delta=1e-5)
    step = Step(Gaussian(0.1), 0.5, "remove")
    low, high = direction.sketch[0][0][[0, -1]]
    above, p, q, lost = discretise(step, low, high, 1e-3, direction.tilt)
    for field in ("error", "noise"):
        bounds = []
        for size in (1e-12, 1e-4):
            laws = [replace(law, **{field: size, "noise" if field == "error" else "error": 1e-16})
                    for law in (above, p, q)]
            with np.errstate(all="ignore"):
                bounds.append((bounds_module._lower(*laws[1:], 0.0, 1e-5, None),
                               bounds_module._upper(laws[0], lost, 0.0, 1e-5, None)))
        assert bounds[1][0] < bounds[0][0] <= bounds[0][1] < bounds[1][1]


def test_the_worse_direction_counts(monkeypatch):
    """If removal gave almost nothing away, the bound for addition would decide."""
    monkeypatch.setattr(bounds_module, "_bracket", lambda *args, **goal: (0.01, 0.02))
    with pytest.warns(WideBounds):
        low, high = bracket(0.02, 1.15, 500, 1e-5)
    exact = exact_epsilon(delta=1e-5, noise_multiplier=1.15, sampling_rate=0.02, steps=500,
                          direction="add")
    assert low == 0.01 and exact <= high <= 1.01 * exact


def test_composition_by_transform_equals_convolution():
    step = Step(Gaussian(1.0), 0.3, "add")
    above, *_ = discretise(step, -8.0, 0.4, 0.05, 1.3)
    direct = np.convolve(np.convolve(above.weights, above.weights), above.weights)
    law = compose([(above, 3)], (-24.5, 1.5, 1.0, 1.0))
    at = law.start - 3 * above.start
    ours = law.weights[-at : -at + len(direct)] if at < 0 else law.weights[: len(direct) - at]
    assert np.allclose(ours, direct[max(at, 0):], atol=1e-14)


@pytest.mark.parametrize("wrong", [
    dict(noise_multiplier=0), dict(noise_multiplier=-1), dict(noise_multiplier=math.nan),
    dict(noise_multiplier=0.009), dict(noise_multiplier=1e7),
    dict(sampling_rate=-0.1), dict(sampling_rate=1.1), dict(sampling_rate=math.nan),
    dict(steps=0), dict(steps=-5), dict(delta=0), dict(delta=1), dict(delta=2),
    dict(delta=math.nan), dict(adjacency="swap")])
def test_refuses(wrong):
    good = dict(noise_multiplier=1.0, sampling_rate=0.1, steps=10, delta=1e-5)
    (name,) = wrong
    with pytest.raises(ValueError, match=name):
        epsilon_bounds(**{**good, **wrong})


@pytest.mark.parametrize("wrong", [dict(steps=2.5), dict(steps=True), dict(noise_multiplier="1")])
def test_refuses_types(wrong):
    good = dict(noise_multiplier=1.0, sampling_rate=0.1, steps=10, delta=1e-5)
    with pytest.raises(TypeError):
        epsilon_bounds(**{**good, **wrong})


def test_table_is_what_the_tests_think():
    assert len(RANDOM) >= 500
    assert json.dumps(sorted(RANDOM[0])) == json.dumps(sorted([
        "sampling_rate", "noise_multiplier", "steps", "delta", "exact_remove", "exact_add"]))
