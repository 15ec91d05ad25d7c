"""Certified two-sided bounds on what subsampled releases give away (notebook 05).

Adjacency: add/remove, the worse of both directions. Sampler: Poisson. Certified: the truth lies
between the two numbers, with discretisation, wrap-around and rounding counted.
"""

import functools
import math
import warnings

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx

from coursekit import _arguments
from coursekit.accounting.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_noise_multiplier,
)
from coursekit.accounting.losses import (
    Gaussian,
    Step,
    coarser,
    compose,
    discretise,
    log_tails,
    smallest_epsilon,
)
from coursekit.accounting.renyi import (
    LARGEST_NOISE,
    noise_within_range,
    rdp_epsilon,
    smallest_noise,
)

TOLERANCE = 1e-3  # relative width that is aimed at; a wider answer comes with a warning
LOST = (1e-4, 1e-2, 1e-1)  # shares of delta that losses above the grid may cost
TWO_STAGES = 400  # from so many steps on, root(steps) are composed on a fine grid first
LARGEST = 2**17  # grid points of one step
ORDERS, REACHES = np.logspace(-4, 11, 31), np.geomspace(1e-3, 50, 16)  # to search among


class WideBounds(UserWarning):
    """The bounds are certified, but further apart than aimed at."""


def epsilon_bounds(
    *, noise_multiplier, sampling_rate, steps, delta, adjacency="add-remove", tolerance=TOLERANCE
):
    """Return certified (lower, upper) for the smallest epsilon of `steps` subsampled Gaussians.

    Each step adds normal noise of deviation noise_multiplier * C to a sum of vectors of norm up to
    C; each person enters with probability `sampling_rate` (Poisson sampling). Adjacency: add/remove
    (both directions), or "replace-one", for which a sum moves by 2C, without sampling only. The
    relative width is `tolerance`; if that is out of reach, a `WideBounds` warning says so.

    Raises: ValueError or TypeError for noise outside 0.01 to 1e6 (1e-6 to 1e6 without sampling), a
    rate outside [0, 1], steps below 1, delta outside (0, 1), or replace-one with a rate below 1.
    Source: Mironov, Talwar, Zhang (2019) for the pair of laws; Doroshenko et al. (2022) for chords.

    >>> low, high = epsilon_bounds(noise_multiplier=1.15, sampling_rate=0.02, steps=500, delta=1e-5)
    >>> low <= 2.111504 <= high <= 1.001 * low
    True
    """
    phase = gaussian_phase(noise_multiplier, sampling_rate, steps, adjacency)
    delta = _arguments.fraction(delta, "delta")
    return phase_bounds([phase], _arguments.fraction(tolerance, "tolerance"), delta=delta)


def delta_bounds(
    *, noise_multiplier, sampling_rate, steps, epsilon, adjacency="add-remove", tolerance=TOLERANCE
):
    """Return certified (lower, upper) for the smallest delta at `epsilon`, of at least 0.

    Adjacency, sampler, errors and sources: as for `epsilon_bounds`.

    >>> low, high = delta_bounds(noise_multiplier=1, sampling_rate=1, steps=1, epsilon=4.377178)
    >>> round(low, 9), round(high, 9)
    (1e-05, 1e-05)
    """
    phase = gaussian_phase(noise_multiplier, sampling_rate, steps, adjacency)
    epsilon = _arguments.non_negative(epsilon, "epsilon")
    return phase_bounds([phase], _arguments.fraction(tolerance, "tolerance"), epsilon=epsilon)


def calibrate_noise(*, epsilon, delta, sampling_rate, steps):
    """Return the smallest noise multiplier, to 1e-3, whose upper bound is within `epsilon`.

    Adjacency: add/remove; sampler: Poisson. Raises: ValueError or TypeError as `epsilon_bounds`,
    and ValueError if no noise is needed, because a person is hardly ever sampled.
    Source: a root of the upper bound of `epsilon_bounds`, by Brent's method.

    >>> sigma = calibrate_noise(epsilon=2.1115, delta=1e-5, sampling_rate=0.02, steps=500)
    >>> 1.15 <= sigma < 1.15 * 1.001
    True
    """
    epsilon, delta = _arguments.positive(epsilon, "epsilon"), _arguments.fraction(delta, "delta")
    _, rate, steps = gaussian_phase(1.0, sampling_rate, steps)
    release = dict(sampling_rate=rate, steps=steps)
    if -math.expm1(steps * math.log1p(-min(rate, 1 - 1e-16))) <= delta:
        raise ValueError(
            f"no noise is needed: with sampling_rate={sampling_rate!r} and steps={steps!r} the "
            f"chance that a person is sampled at all is within delta={delta!r}."
        )

    def by_renyi(log_noise):
        spent = rdp_epsilon(noise_multiplier=math.exp(log_noise), **release, delta=delta)
        return math.log(max(spent / epsilon, 1e-6))

    @functools.cache
    def excess(log_noise):
        phase = gaussian_phase(math.exp(log_noise), **release)
        with warnings.catch_warnings():  # only the upper bound is asked for, and it is certified
            warnings.simplefilter("ignore", WideBounds)
            return math.log(max(phase_bounds([phase], 5e-4, delta=delta)[1] / epsilon, 1e-6))

    def walk(log_ratio, low):
        """Return (too little log noise, enough), from enough: epsilon falls as fast, or faster."""
        high = low
        while low > least and log_ratio(low) <= 0:
            high, low = low, max(low + 1.1 * max(log_ratio(low), -0.7) - 1e-3, least)
        return low, high

    def off_target(log_noise):  # a little below epsilon is as good as a root
        return 0.0 if -4e-4 <= excess(log_noise) <= 0 else excess(log_noise) + 2e-4

    least, most = math.log(smallest_noise(rate)), math.log(LARGEST_NOISE)
    unsampled = math.log(gaussian_noise_multiplier(epsilon, delta) * math.sqrt(steps))
    low, high = walk(excess, walk(by_renyi, min(max(unsampled, least), most))[1])
    best = brentq(off_target, low, high, xtol=3e-4) if excess(low) > 0 > excess(high) else low
    while best < most and excess(best) > 0:
        best = min(best + 2e-4, most)
    if excess(best) > 0:
        raise ValueError(f"epsilon={epsilon!r} would take noise above {LARGEST_NOISE:.0e}.")
    return math.exp(best)


def gaussian_phase(noise_multiplier, sampling_rate, steps, adjacency="add-remove"):
    """Return (noise, sampling rate, steps), checked."""
    rate = _arguments.probability(sampling_rate, "sampling_rate")
    noise = noise_within_range(noise_multiplier, rate)
    steps = _arguments.whole(steps, "steps", least=1)
    if _arguments.one_of(adjacency, "adjacency", ("add-remove", "replace-one")) == "replace-one":
        if rate < 1:
            raise ValueError(
                "adjacency='replace-one' is only proved here without sampling, sampling_rate=1; "
                f"got sampling_rate={sampling_rate!r}. Use 'add-remove'."
            )
        noise /= 2
    return Gaussian(1 / noise), rate, steps


@np.errstate(all="ignore")
def phase_bounds(phases, tolerance=TOLERANCE, **goal):
    """Return certified (lower, upper) for all `phases` together, each (noise, rate, steps).

    `goal` is delta=... (for bounds on epsilon) or epsilon=... (for bounds on delta).
    """
    merged, mu_squared = {}, 0.0
    for noise, rate, steps in phases:
        if rate == 1 and isinstance(noise, Gaussian):
            mu_squared += steps * noise.mu**2
        elif rate > 0:
            merged[noise, rate] = merged.get((noise, rate), 0) + steps
    if not merged:
        exact = gaussian_epsilon if "delta" in goal else gaussian_delta
        value = exact(math.sqrt(mu_squared), *goal.values())
        return value * (1 - 1e-9), value * (1 + 1e-9)
    if mu_squared:
        merged[Gaussian(math.sqrt(mu_squared)), 1.0] = 1
    lower, upper = _bracket(merged, "remove", tolerance, **goal)
    if any(rate < 1 for _, rate in merged):  # else both directions are alike
        other = _Direction(merged, "add", LOST[0], **goal)
        for aim in (0.1, 0.01, tolerance / 2):  # it is rarely the worse one, so roughly will do
            high = min(other.cap, other.on_grid(aim, below=False)[1]) if other.cap > upper else 0.0
            if high <= upper:
                break
        upper = max(upper, high)
    if upper == math.inf and "delta" in goal and all(isinstance(n, Gaussian) for n, _ in merged):
        mu = math.sqrt(sum(steps * n.mu**2 for (n, _), steps in merged.items()))  # no sampling
        upper = gaussian_epsilon(mu, goal["delta"]) * (1 + 1e-9)
    if upper - lower > 1.0001 * tolerance * upper:
        warnings.warn(f"wide bounds: from {lower:.6g} to {upper:.6g}.", WideBounds, stacklevel=3)
    return float(lower), float(upper)


def _bracket(merged, direction, tolerance, **goal):
    """Return (lower, upper), from grids made finer until they are within `tolerance`.

    Where rounding keeps them apart, rare large losses outweigh those near epsilon. Then the grid
    ends earlier, which costs the upper bound a little.
    """
    lower, upper = 0.0, math.inf
    for lost in LOST:
        one, aim = _Direction(merged, direction, lost, **goal), 0.95 * tolerance
        for _ in range(3):
            low, high = one.on_grid(aim)
            width = upper - lower
            lower, upper = np.fmax(lower, low), np.fmin(upper, min(high, one.cap))
            if upper - lower <= tolerance * upper:
                return lower, upper
            if upper - lower > 0.85 * width:
                break
            wide = (upper - lower) / (tolerance * upper) if upper < math.inf else 16
            aim /= min(max(1.2 * wide, 1.5), 16)
            one.aim_at(upper)
    return lower, upper


class _Direction:
    """One direction of add/remove: its steps, a sketch of their losses, the tilt, the goal."""

    def __init__(self, merged, direction, lost, delta=None, epsilon=None):
        self.steps = [(Step(noise, rate, direction), n) for (noise, rate), n in merged.items()]
        self.count = sum(merged.values())
        self.delta, self.epsilon = delta, epsilon
        largest = sum(n * step.max_loss for step, n in self.steps)
        self.cap = largest if epsilon is None else float(largest > epsilon)  # the trivial bound
        log_delta = -90.0 if delta is None else math.log(delta)
        for _ in range(1 if epsilon is None else 2):
            share = lost * math.exp(log_delta) / self.count
            outlines = [(step.outline(1e-18 / self.count, share), n) for step, n in self.steps]
            self.sketch = [(losses, masses, n) for (losses, masses), n in outlines]
            self.tilt, self.guess, log_delta = _tilt(self.sketch, log_delta, epsilon)
        self.sketch = [_without_low(*part, self.tilt, self.count) for part in self.sketch]

    def aim_at(self, upper):
        if self.epsilon is None and upper < math.inf:
            self.tilt = _tilt(self.sketch, None, upper)[0]

    def on_grid(self, aim, below=True):
        """Return bounds from grids that differ by about `aim`, relative; the lower one if `below`.

        With spacing h the errors of both grids raise epsilon by (tilt + 1) / 8 times the sum of h^2
        over all steps. Many steps go in two stages: blocks of about root(steps) on a fine grid,
        then the blocks on a coarse one.
        """
        budget = 8 * aim / (self.tilt + 1) * (self.guess if self.epsilon is None else 1 / self.tilt)
        blocks = [_block(count) for _, count in self.steps]
        few = sum(-(-n // block) for (_, n), block in zip(self.steps, blocks, strict=True))
        many = sum(n for (_, n), block in zip(self.steps, blocks, strict=True) if block > 1)
        spacing, factors = math.sqrt(budget / few / (2 if many else 1)), []
        for (losses, masses, _), block in zip(self.sketch, blocks, strict=True):
            fine = _fine(losses, masses, self.tilt, budget / 2 / many) if block > 1 else spacing
            factors.append(max(1, round(spacing / fine)))
        ranges = [losses[-1] - losses[0] for losses, _, _ in self.sketch]
        spacing = max(spacing, np.max(np.multiply(ranges, factors)) / LARGEST)
        laws, lost = [], 0.0
        for (step, n), (losses, masses, _), block, factor in zip(
            self.steps, self.sketch, blocks, factors, strict=True
        ):
            *single, gone = discretise(step, losses[0], losses[-1], spacing / factor, self.tilt)
            lost += n * gone
            single = single if below else single[:1]
            if block == 1:
                laws.append((single, n))
                continue
            for size, times in ((block, n // block), (n % block, 1)):
                if size:
                    window = _window([(losses, masses, size)], self.tilt, budget, 1e-17)
                    sums = [compose([(law, size)], window) for law in single]
                    sums = [coarser(law, factor, above=law is sums[0]) for law in sums]
                    laws.append((sums, times))
        window = _window(self.sketch, self.tilt, budget, 1e-23)
        totals = [compose([(law[i], n) for law, n in laws], window) for i in range(len(single))]
        largest = max(np.max(np.abs(law.tilt * law.losses)) + abs(law.log_total) for law in totals)
        rounding = self.count * 2.0**-46 + largest * 2.0**-50  # of all masses, relative
        upper = _upper(totals[0], lost, rounding, self.delta, self.epsilon)
        return _lower(*totals[1:], rounding, self.delta, self.epsilon) if below else 0.0, upper


def _block(count):
    """Return how many steps go into one block: about root(count), a divisor if there is one."""
    if count < TWO_STAGES:
        return 1
    root = math.isqrt(count)
    near = np.arange(root // 2, 2 * root)
    return int(near[np.argmin((count % near > 0) * count + abs(near - root))])


def _fine(losses, masses, tilt, square):
    """Return the spacing h of a grid whose second-order error is that of h^2 = `square`, or less.

    A loss u above a grid point costs u (h - u) above and min(u, h - u)^2 below, h^2/4 on average,
    but little if most losses are near 0 and h is wide.
    """
    weights = masses * np.exp(tilt * (losses - losses[-1]))
    weights /= weights.sum()
    spacing = math.sqrt(square)
    for wider in spacing * 1.25 ** np.arange(12, 0, -1):
        u = losses % wider
        if 4 * weights @ (u * (wider - u) + np.minimum(u, wider - u) ** 2) <= square:
            return wider
    return spacing


def _upper(law, lost, rounding, delta, epsilon):
    """Return the bound of the law above. Misplaced tilted mass costs what Renyi's bound charges."""
    losses, log_masses, s, h = law.losses, law.log_masses(), law.tilt, law.spacing
    each = math.exp(-(s + 1) * math.log1p(1 / s)) / s  # the largest (1 - e^-u) e^(-s u)
    ratio = math.exp(-2 * s * h)
    spread = h * math.sqrt(ratio * (1 + ratio) / (1 - ratio) ** 3)  # their root of sum of squares
    slack = np.log(law.error * each + law.noise * spread) + law.log_total - s * losses
    if epsilon is None:
        return smallest_epsilon(losses, log_masses, delta * (1 - rounding) - lost, slack)
    k = min(np.searchsorted(losses, epsilon), len(losses) - 1)
    log_q, log_delta = log_tails(losses, log_masses)
    between = epsilon + np.log(np.expm1(max(losses[k] - epsilon, 0))) + log_q[k]
    known = np.logaddexp(np.logaddexp(log_delta[k], between), slack[max(k - 1, 0)])
    return math.exp(known) * (1 + rounding) + lost


def _lower(p, q, rounding, delta, epsilon):
    """Return the bound by the best threshold: (P(A) - delta) / Q(A) is at most e^epsilon."""
    tails = []
    for law, sign in ((p, -1), (q, 1)):
        log_tail = np.logaddexp.accumulate(law.log_masses()[::-1])[::-1]
        wrong = law.error + law.noise / math.sqrt(-math.expm1(-2 * law.tilt * law.spacing))
        log_wrong = np.log(wrong) + law.log_total - law.tilt * law.losses
        tails.append(log_tail + np.log1p(sign * (rounding + np.exp(log_wrong - log_tail))))
    log_p, log_q = tails
    if epsilon is None:
        return np.nanmax(np.append(log_p + np.log1p(-np.exp(np.log(delta) - log_p)) - log_q, 0))
    return np.nanmax(np.append(-np.exp(log_p) * np.expm1(epsilon + log_q - log_p), 0))


def _log_moment(sketch, orders):
    """Return log E[e^(order * loss)] of all steps together, at each of the `orders`."""
    total = 0.0
    for losses, masses, count in sketch:
        exponents = np.multiply.outer(orders, losses)
        top = exponents.max(axis=1)
        exponents -= top[:, None]
        total = total + count * (np.log(np.exp(exponents, out=exponents) @ masses) + top)
    return total


def _mean_and_variance(sketch, tilt):
    """Return the mean and the variance of the sum of all tilted losses."""
    mean = variance = 0.0
    for losses, masses, count in sketch:
        weights = masses * np.exp(tilt * (losses - losses[-1]))
        weights /= weights.sum()
        centre = weights @ losses
        mean += count * centre
        variance += count * (weights @ (losses - centre) ** 2)
    return mean, variance


def _tilt(sketch, log_delta, epsilon):
    """Return the best Renyi order less 1, a guess of epsilon (unless given) and of log delta."""
    widest = max(np.ptp(losses) for losses, _, _ in sketch)
    grid, ratio = ORDERS[ORDERS * widest <= 1e5], ORDERS[1] / ORDERS[0]
    for _ in range(3):
        bound = _log_moment(sketch, grid) - (grid + 1) * np.log1p(1 / grid) - np.log(grid)
        best = np.argmin((bound - log_delta) / grid if epsilon is None else bound - grid * epsilon)
        grid, ratio = grid[best] * ratio ** np.linspace(-1, 1, 9), ratio**0.25
    tilt = float(grid[4])
    log_moment = _log_moment(sketch, grid[4:5])[0]
    mean, variance = _mean_and_variance(sketch, tilt)
    spread = math.sqrt(variance / 2)  # below: E[(1 - e^-u)+ e^(-tilt u)] of a normal u
    kernel = max((erfcx(tilt * spread) - erfcx((tilt + 1) * spread)) / 2, 1e-300)
    log_moment += math.log(kernel)
    if epsilon is None:
        epsilon = max((log_moment - log_delta) / tilt, 1e-3 * abs(mean), 1e-12)
    return tilt, epsilon, min(log_moment - tilt * epsilon, -1e-3)


def _without_low(losses, masses, count, tilt, all_steps):
    """Return the sketch without low losses of no weight; `discretise` lumps them at the next."""
    log_total = _log_moment([(losses, masses, 1)], np.array([tilt]))
    raised = np.cumsum(masses[:-1]) * np.exp(tilt * losses[1:] - log_total)
    first = np.count_nonzero(np.maximum.accumulate(raised) < 1e-7 / all_steps)
    return losses[first:], masses[first:], count


def _window(sketch, tilt, budget, outside):
    """Return (low, high, s_low, s_high): beyond lies tilted mass `outside`, by Chernoff's bound.

    Orders s are kept so small that the grid, which adds s^2 budget / 8 to log moments, adds little.
    """
    variance = _mean_and_variance(sketch, tilt)[1] + 1e-12 * np.ptp(sketch[0][0]) ** 2
    s = np.minimum(REACHES / math.sqrt(variance), math.sqrt(40 / budget))
    log_moments = _log_moment(sketch, np.concatenate([tilt + s, tilt - s, [tilt]]))
    ends = (log_moments[:-1] - log_moments[-1] - math.log(outside)) / np.append(s, s)
    i, j = np.argmin(ends[16:]), np.argmin(ends[:16])
    return -ends[16 + i], ends[j], s[i], s[j]
