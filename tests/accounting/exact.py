"""Exact privacy of the Poisson-subsampled Gaussian mechanism, for judging accountants.

One step compares P = (1 - q) N(0, s^2) + q N(1, s^2) with Q = N(0, s^2); `steps` of them compose.
In the direction "remove" the data come from P and the privacy loss of a step is L = log(P / Q); in
the direction "add" they come from Q and the loss is log(Q / P). With S the sum of the losses,

    delta(epsilon) = E[(1 - exp(epsilon - S))_+]
                   = 1 / (2 pi i) * integral of exp(T K(z) - z epsilon) / (z (z + 1)) dz

along any vertical line Re z = c > 0, where K(z) = log E[exp(z L)]. Nothing is rounded to a grid of
losses, so the method shares no error with the accountants that do that.

How the integral is made accurate:

* c is near the saddle point, so the integrand has no cancellation, however small delta is.
* E[exp(z L)] is a trapezoid sum over x on a line moved off the real axis, x = u + i v. That is
  allowed up to the zeros of P / Q at |v| = pi s^2, and it turns the oscillation at large Im z into
  decay, so that a few hundred points serve for every z.
* Loss beyond a smooth cut far in the tail is left out: at most 1e-10 of delta.
* In the direction "remove", runs in which no step has a large loss cannot reach epsilon, or so
  rarely that Chernoff's bound puts them below 1e-11 of delta. Their (slowly decaying) part of the
  integrand is left out too.
* The integral over Im z uses Gauss-Legendre panels that split until each is resolved.
* Every value is computed twice, with another c, another v and other points. If the two disagree,
  or one is not resolved, `NotConverged` is raised: no unverified number is returned.

A single step, and sampling_rate = 1, have closed forms, evaluated with 60 digits.

    python -m tests.accounting.exact

writes random_settings.csv beside this file.
"""

import csv
import math
import pathlib
import sys
import time

import mpmath
import numpy as np
from scipy import optimize, special

DIRECTIONS = ("remove", "add")
TABLE = pathlib.Path(__file__).with_name("random_settings.csv")
TABLE_COLUMNS = ("sampling_rate", "noise_multiplier", "steps", "delta", "exact_remove", "exact_add")
TABLE_SEED = 20240607
TABLE_DRAWS = 900
AGREEMENT = 1e-8  # largest relative difference between the two evaluations of epsilon
ORDER = 32
NODES, WEIGHTS = np.polynomial.legendre.leggauss(ORDER)
# Maps values at the nodes to Legendre coefficients: small last ones mean a resolved panel.
LEGENDRE = (np.polynomial.legendre.legvander(NODES, ORDER - 1) * WEIGHTS[:, None]
            * (np.arange(ORDER) + 0.5))


class NotConverged(ArithmeticError):
    """The value could not be verified, so none is given."""


# -------------------------------------------------------------------------------- closed forms


def _gaussian_delta(epsilon, mu):
    """Delta of the Gaussian mechanism with mean shift `mu` in units of its noise (Balle-Wang)."""
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    upper = mpmath.ncdf(-epsilon / mu + mu / 2)
    return upper - mpmath.exp(epsilon) * mpmath.ncdf(-epsilon / mu - mu / 2)


def _one_step_delta(epsilon, s, q, direction):
    """Delta of one step: the loss is monotone in x, so it exceeds epsilon on a ray."""
    q, s, ratio = mpmath.mpf(q), mpmath.mpf(s), mpmath.exp(mpmath.mpf(epsilon))
    odds = (ratio if direction == "remove" else 1 / ratio) - (1 - q)
    if odds <= 0:  # in "remove" every x exceeds epsilon, in "add" none does
        return 1 - ratio if direction == "remove" else mpmath.mpf(0)
    edge = s * s * mpmath.log(odds / q) + 0.5
    if direction == "remove":
        return q * mpmath.ncdf((1 - edge) / s) - (ratio - 1 + q) * mpmath.ncdf(-edge / s)
    return (1 - ratio * (1 - q)) * mpmath.ncdf(edge / s) - ratio * q * mpmath.ncdf((edge - 1) / s)


def _closed_delta(epsilon, s, q, steps, direction):
    """Delta where a closed form exists, as an mpmath number."""
    with mpmath.workdps(60):
        if q == 1:
            return _gaussian_delta(epsilon, mpmath.sqrt(steps) / s)
        return _one_step_delta(epsilon, s, q, direction)


def _closed_epsilon(delta, s, q, steps, direction):
    """Invert a closed form by Brent's method on log delta; 0 if delta needs no epsilon above 0."""

    def excess(epsilon):
        value = _closed_delta(epsilon, s, q, steps, direction)
        return float(mpmath.log(value / delta)) if value > 0 else -1e6

    if excess(0.0) <= 0:
        return 0.0
    high = 1.0
    if direction == "add" and q < 1:
        high = -math.log1p(-q)
    while excess(high) > 0:
        high *= 2
    low = high
    while excess(low) <= 0:  # so that Brent's relative tolerance holds for a small root too
        high, low = low, low / 2
    return optimize.brentq(excess, low, high, xtol=1e-300, rtol=1e-14)


# ---------------------------------------------------------------------- one step in the x plane


def _loss(x, s, q):
    """log(P / Q) at the complex points x."""
    t = (2 * x - 1) / (2 * s * s)
    big = t.real > 0
    falling = np.exp(np.where(big, -t, t))
    return np.where(big, t + np.log(q + (1 - q) * falling), np.log1p(q * (falling - 1)))


class _Line:
    """The trapezoid points x = u + i v of one step, with the factors that do not depend on z."""

    def __init__(self, *, s, q, steps, log_delta, direction, shift, points):
        self.sign = 1 if direction == "remove" else -1
        self.tilt0 = 1 if direction == "remove" else 0
        v = abs(shift)
        self.width = 0.7 * s
        spacing = min(v, s) / points if v else s / 12
        reach = math.sqrt(2 * (math.log(steps) + 25 - log_delta))
        far = math.hypot(s, self.width) * reach
        if direction == "remove":
            lower, upper, cut = -9.5 * s, 1 + far + 9 * self.width, 1 + far
        else:
            lower, upper, cut = -far - 9 * self.width, 9.5 * s, -far
        self.u = np.arange(lower, upper, spacing)
        x = self.u + 1j * shift
        self.loss = _loss(x, s, q)
        self.fixed = (-x * x / (2 * s * s) + math.log(spacing / (s * math.sqrt(2 * math.pi)))
                      + special.log_ndtr(self.sign * (cut - x) / self.width))
        self.x = x

    def exponents(self, z):
        """log of the summands of E[exp(z L)], a row for each z."""
        tilt = self.tilt0 + self.sign * np.atleast_1d(z)
        return np.multiply.outer(tilt, self.loss) + self.fixed

    def small_losses(self, cut):
        """log of the smooth weight that keeps only x below `cut`."""
        return special.log_ndtr((cut - self.x) / self.width)

    def large_losses(self, cut):
        """log of the complementary weight."""
        return special.log_ndtr((self.x - cut) / self.width)


class _Real(_Line):
    """The same on the real axis: real moments, for choosing the contour."""

    def __init__(self, **setting):
        super().__init__(shift=0.0, points=12, **setting)
        self.loss, self.fixed, self.x = self.loss.real, self.fixed.real, self.u

    def cumulants(self, c):
        """K(c), K'(c), K''(c)."""
        rows = self.exponents(c)[0]
        top = rows.max()
        weight = np.exp(rows - top)
        total = weight.sum()
        weight /= total
        mean = self.sign * (weight @ self.loss)
        return (top + math.log(total), mean,
                weight @ (self.sign * self.loss - mean) ** 2)


# ----------------------------------------------------------------------------------- the saddle


class _Saddle:
    """The saddle-point estimates of epsilon and log delta as functions of c."""

    def __init__(self, real, steps):
        self.real, self.steps = real, steps

    def __call__(self, c):
        k, mean, variance = self.real.cumulants(c)
        epsilon = self.steps * mean - 1 / c - 1 / (c + 1)
        curvature = self.steps * variance + c**-2 + (c + 1) ** -2
        log_delta = (self.steps * k - c * epsilon - math.log(c) - math.log1p(c)
                     - math.log(2 * math.pi * curvature) / 2)
        return epsilon, log_delta, curvature

    def find(self, *, epsilon=None, log_delta=None):
        """The c at which epsilon, or log delta, has the given value."""

        def gap(log_c):
            now = self(math.exp(log_c))
            return now[0] - epsilon if log_delta is None else log_delta - now[1]

        low, high = math.log(1e-9), math.log(1e13)
        if gap(low) > 0 or gap(high) < 0:
            raise NotConverged("no saddle point in reach")
        return math.exp(optimize.brentq(gap, low, high, xtol=1e-6))


class _RareSaddle:
    """The saddle point of what is left once runs with small losses only are taken out."""

    def __init__(self, real, steps, cut):
        self.real, self.steps = real, steps
        self.small, self.large = real.small_losses(cut), real.large_losses(cut)

    def log_power(self, c):
        """log(E[exp(c L)]^T - E[exp(c L); small]^T)."""
        rows = self.real.exponents(c)[0]
        small = special.logsumexp(rows + self.small)
        large = special.logsumexp(rows + self.large)
        more = self.steps * np.logaddexp(0.0, large - small)
        if more > 30:
            return self.steps * np.logaddexp(small, large)
        return self.steps * small + math.log(math.expm1(more)) if more > 0 else -1e300

    def find(self, epsilon):
        """The best c for this epsilon, the curvature there and the estimate of log delta."""

        def height(log_c):
            c = math.exp(log_c)
            return self.log_power(c) - c * epsilon - log_c - math.log1p(c)

        best = optimize.minimize_scalar(height, bounds=(math.log(1e-6), math.log(1e9)),
                                        method="bounded", options={"xatol": 1e-3})
        h = 0.02
        c = math.exp(best.x)
        bend = (height(best.x + h) + height(best.x - h) - 2 * best.fun) / (h * h)
        curvature = max(bend, 0.1) / c**2
        return c, curvature, best.fun - math.log(2 * math.pi * curvature) / 2


# ---------------------------------------------------------------------------------- the contour


def _small_loss_cut(real, steps, epsilon, log_delta):
    """The largest x such that runs with all steps below it do not matter, or None."""
    tilts = np.geomspace(1e-2, 1e9, 80)
    rows = real.exponents(tilts)

    def negligible(cut):
        weighted = special.logsumexp(rows + real.small_losses(cut), axis=1)
        return np.min(steps * weighted - tilts * epsilon) < log_delta - 27

    # From far right (nothing left out) to the left: leaving out more is possible further left.
    low, high = real.u[0], real.u[-1]
    if not negligible(low):
        return None
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if negligible(middle) else (low, middle)
    return low


class _Contour:
    """log delta(epsilon) from the integral along Re z = c; points are kept for other epsilons."""

    def __init__(self, *, line, steps, c, epsilon, curvature, cut, max_panels):
        self.line, self.steps, self.c = line, steps, c
        rows = line.exponents(c)[0]
        self.top = rows.real.max()
        keep = rows.real > self.top - 60
        self.loss, self.fixed = line.loss[keep], line.fixed[keep]
        small = line.small_losses(cut)[keep] if cut is not None else None
        self.parts = None
        if small is not None:
            self.parts = np.stack([np.exp(small), np.exp(line.large_losses(cut)[keep])], axis=1)
        self.k = math.log(abs(np.exp(rows[keep] - self.top).sum().real)) + self.top
        self._integrate(epsilon, 1 / math.sqrt(curvature), max_panels)

    def _powers(self, y):
        """E[exp(z L)]^T at z = c + i y, less the part of runs with small losses, over its size."""
        tilt = self.line.tilt0 + self.line.sign * (self.c + 1j * y)
        summands = np.exp(np.multiply.outer(tilt, self.loss) + (self.fixed - self.k))
        if self.parts is None:
            return summands.sum(axis=-1) ** self.steps
        small, large = (summands @ self.parts).T
        with np.errstate(all="ignore"):
            more = self.steps * np.log1p(large / small)
            close = small ** self.steps * np.expm1(more)
            return np.where(np.abs(more) < 1, close, (small + large) ** self.steps
                            - small ** self.steps)

    def _integrate(self, epsilon, scale, max_panels):
        """Panels that double in width from the real axis outwards, each split until resolved."""
        ys, ws, powers = [], [], []
        size = abs(self._powers(np.zeros(1))[0]) * scale / (self.c * (self.c + 1))
        noise = 1e-14 + 3e-16 * self.steps  # what rounding leaves of a power
        low, width, quiet, used = 0.0, scale / 2, 0, 0
        while quiet < 3:
            waiting, loudest = [(low, low + width)], 0.0
            while waiting:
                used += len(waiting)
                if used > max_panels:
                    raise NotConverged("the integrand decays too slowly along the contour")
                edges = np.array(waiting)
                half = (edges[:, 1] - edges[:, 0]) / 2
                y = edges.mean(axis=1)[:, None] + half[:, None] * NODES
                power = self._blocks(y.ravel()).reshape(y.shape)
                z = self.c + 1j * y
                value = power * np.exp(-1j * y * epsilon) / (z * (z + 1))
                rough = half * np.abs(value @ LEGENDRE)[:, -4:].max(axis=1)
                good = rough < noise * size
                waiting = [pair for a, b in edges[~good]
                           for pair in ((a, (a + b) / 2), ((a + b) / 2, b))]
                ys.append(y[good].ravel())
                ws.append((half[good, None] * WEIGHTS).ravel())
                powers.append(power[good].ravel())
                loudest = max(loudest, *np.abs(value).max(axis=1))
            low += width
            width *= 2 if used < 8 else 1.5
            quiet = quiet + 1 if loudest * low < 10 * noise * size else 0
        self.y, self.w = np.concatenate(ys), np.concatenate(ws)
        self.power = np.concatenate(powers)
        self.panels = used

    def _blocks(self, y):
        """`_powers` in pieces that fit into the cache."""
        rows = max(1, 100_000 // len(self.loss))
        return np.concatenate([self._powers(y[i:i + rows]) for i in range(0, len(y), rows)])

    def log_delta(self, epsilon):
        """log delta and its derivative by epsilon."""
        z = self.c + 1j * self.y
        value = self.w * self.power * np.exp(-1j * self.y * epsilon) / (z + 1)
        slope, total = value.sum().real, (value / z).sum().real
        if not total > 0:
            raise NotConverged("the integral is not positive")
        return self.steps * self.k - self.c * epsilon + math.log(total / math.pi), -slope / total

    def epsilon(self, log_delta, start):
        """Solve log delta(epsilon) = log_delta by Newton's method."""
        epsilon = start
        for _ in range(60):
            value, slope = self.log_delta(epsilon)
            step = (log_delta - value) / slope
            epsilon += step
            if abs(step) <= 1e-13 * abs(epsilon) or abs(step * slope) < 1e-14:
                return epsilon
        raise NotConverged("Newton's method did not settle")


class _Problem:
    """One setting, with the loss cut where it cannot matter for deltas down to exp(log_delta)."""

    def __init__(self, s, q, steps, direction, log_delta, max_panels):
        self.setting = {"s": s, "q": q, "steps": steps, "direction": direction,
                        "log_delta": log_delta}
        self.s, self.steps, self.direction = s, steps, direction
        self.max_panels = max_panels
        self.real = _Real(**self.setting)
        self.saddle = _Saddle(self.real, steps)

    def rare(self, epsilon, log_delta):
        """(c, curvature, estimate of log delta) with the small losses taken out if possible."""
        cut = None
        if self.direction == "remove":
            cut = _small_loss_cut(self.real, self.steps, epsilon, log_delta)
        if cut is None:
            c = self.saddle.find(epsilon=epsilon)
            _, estimate, curvature = self.saddle(c)
            return c, curvature, estimate
        return _RareSaddle(self.real, self.steps, cut).find(epsilon)

    def start(self, epsilon, log_delta):
        """Where the estimate of log delta meets its target: below or above a first guess."""

        def gap(log_epsilon):
            return self.rare(math.exp(log_epsilon), log_delta)[2] - log_delta

        low = high = math.log(epsilon)
        step = 0.1
        while gap(low) < 0:
            high, low, step = low, low - step, 2 * step
            if low < math.log(epsilon) - 12:
                raise NotConverged("no start for epsilon")
        if high == low:
            while gap(high) > 0:
                low, high, step = high, high + step, 2 * step
        return math.exp(optimize.brentq(gap, low, high, xtol=1e-3))

    def contour(self, *, c, epsilon, log_delta, curvature, variant=0):
        """A contour through c for values near epsilon; `variant` changes every other choice."""
        factor = (1.0, 0.8)[variant]
        cut = None
        if self.direction == "remove":
            shift = factor * min(1.2 * self.s**2, 1.2 * self.s)
            cut = _small_loss_cut(self.real, self.steps, epsilon, log_delta)
        else:
            rows = self.real.exponents(c)[0]
            weight = np.exp(rows - rows.max())
            weight /= weight.sum()
            spread = math.sqrt(weight @ (self.real.u - weight @ self.real.u) ** 2)
            shift = -factor * min(0.9 * self.s**2, 1.2 * self.s, 1.2 * spread)
        line = _Line(shift=shift, points=(6, 7.3)[variant], **self.setting)
        if variant and cut is not None:
            cut -= 0.3 * self.s
        return _Contour(line=line, steps=self.steps, c=c, epsilon=epsilon, cut=cut,
                        curvature=curvature * (1.0, 1.7)[variant], max_panels=self.max_panels)


def _contour_epsilon(delta, s, q, steps, direction, max_panels):
    """epsilon(delta) by the contour integral, verified by a second one; 0 where it is below 0."""
    log_delta = math.log(delta)
    problem = _Problem(s, q, steps, direction, log_delta, max_panels)
    try:
        c = problem.saddle.find(log_delta=log_delta)
    except NotConverged:
        c = None
    start = None if c is None else problem.saddle(c)[0]
    if start is None or start <= 0:
        at_zero = _contour_log_delta(0.0, s, q, steps, direction, max_panels)
        if at_zero <= log_delta:
            return 0.0
        if c is None:
            raise NotConverged("no saddle point for this delta")
    curvature = problem.saddle(c)[2]
    if start > 0 and direction == "remove":
        start = problem.start(start, log_delta)
        c, curvature, _ = problem.rare(start, log_delta)
    for _ in range(6):  # the cut of small losses must be valid for the epsilon that comes out
        contour = problem.contour(c=c, epsilon=start, log_delta=log_delta, curvature=curvature)
        first = contour.epsilon(log_delta, start)
        if abs(first - start) <= 0.02 * abs(first):
            break
        start = first
        c, curvature, _ = problem.rare(first, log_delta)
    else:
        raise NotConverged("the estimates of epsilon do not settle")
    if first <= 0:
        raise NotConverged("epsilon came out below 0, although epsilon = 0 was ruled out")
    c, curvature, _ = problem.rare(first, log_delta)
    check = problem.contour(c=0.9 * c, epsilon=first, log_delta=log_delta, curvature=curvature,
                            variant=1)
    second = check.epsilon(log_delta, first)
    if not abs(first - second) <= AGREEMENT * second:
        raise NotConverged(f"two evaluations of epsilon differ: {first!r} and {second!r}")
    return float(second)


def _contour_log_delta(epsilon, s, q, steps, direction, max_panels):
    """log delta(epsilon) by the contour integral, verified by a second one."""
    largest = -steps * math.log1p(-q)
    if direction == "add" and epsilon >= largest:
        return -math.inf
    guess = -50.0
    for _ in range(6):
        problem = _Problem(s, q, steps, direction, guess - 5, max_panels)
        c, curvature, now = problem.rare(epsilon, guess - 5)
        if abs(now - guess) < 3:
            break
        guess = now
    else:
        raise NotConverged("the estimates of delta do not settle")
    first = problem.contour(c=c, epsilon=epsilon, log_delta=now - 5,
                            curvature=curvature).log_delta(epsilon)[0]
    check = problem.contour(c=0.9 * c, epsilon=epsilon, log_delta=now - 5, variant=1,
                            curvature=curvature)
    second = check.log_delta(epsilon)[0]
    if not abs(first - second) <= 1e-7:
        raise NotConverged(f"two evaluations of log delta differ: {first!r} and {second!r}")
    return second


# ------------------------------------------------------------------------------ the two functions


def _checked(noise_multiplier, sampling_rate, steps, direction):
    """Refuse settings outside the range for which this module was tested."""
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {DIRECTIONS}, got {direction!r}.")
    if not (0 < sampling_rate <= 1 and noise_multiplier > 0 and steps >= 1):
        raise ValueError("need 0 < sampling_rate <= 1, noise_multiplier > 0 and steps >= 1.")
    if steps != int(steps):
        raise ValueError(f"steps must be whole, got {steps!r}.")
    return float(noise_multiplier), float(sampling_rate), int(steps), direction


def _guarded(function, *arguments):
    """Call `function`; an overflow or an undefined operation in it means NotConverged."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return function(*arguments)
    except (ArithmeticError, ValueError) as error:
        raise NotConverged(str(error)) from error


def exact_delta(*, epsilon, noise_multiplier, sampling_rate, steps, direction="remove",
                max_panels=3000):
    """Return delta(epsilon), to a relative error of about 1e-7; raise NotConverged if unsure."""
    s, q, steps, direction = _checked(noise_multiplier, sampling_rate, steps, direction)
    if epsilon < 0:
        raise ValueError(f"epsilon must be at least 0, got {epsilon!r}.")
    if q == 1 or steps == 1:
        return float(_closed_delta(epsilon, s, q, steps, direction))
    return math.exp(_guarded(_contour_log_delta, float(epsilon), s, q, steps, direction,
                             max_panels))


def exact_epsilon(*, delta, noise_multiplier, sampling_rate, steps, direction="remove",
                  max_panels=3000):
    """Return epsilon(delta), to a relative error of 1e-8; raise NotConverged if unsure.

    The answer is 0 if epsilon = 0 already satisfies delta.
    """
    s, q, steps, direction = _checked(noise_multiplier, sampling_rate, steps, direction)
    if not 0 < delta < 1:
        raise ValueError(f"delta must lie between 0 and 1, got {delta!r}.")
    if q == 1 or steps == 1:
        return _closed_epsilon(float(delta), s, q, steps, direction)
    return _guarded(_contour_epsilon, float(delta), s, q, steps, direction, max_panels)


# -------------------------------------------------------------------------------- random settings


def random_settings(count):
    """Yield (sampling_rate, noise_multiplier, steps, delta), each log-uniform in its range."""
    rng = np.random.default_rng(TABLE_SEED)
    ranges = np.log([[1e-5, 1], [0.3, 50], [1, 1e6], [1e-30, 1e-2]])
    for row in np.exp(rng.uniform(ranges[:, 0], ranges[:, 1], size=(count, 4))).tolist():
        yield row[0], row[1], max(1, round(row[2])), row[3]


def main(count=TABLE_DRAWS):
    """Write the table of random settings and print how many did not converge, and where."""
    kept, failed, zero = [], [], 0
    began = time.perf_counter()
    for q, s, steps, delta in random_settings(count):
        values = []
        for direction in DIRECTIONS:
            try:
                values.append(exact_epsilon(delta=delta, noise_multiplier=s, sampling_rate=q,
                                            steps=steps, direction=direction))
            except NotConverged as error:
                failed.append((q, s, steps, delta, direction, str(error)))
        if len(values) == 2:
            zero += max(values) == 0
            if max(values) > 0:
                kept.append((q, s, steps, delta, *values))
    with TABLE.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(TABLE_COLUMNS)
        writer.writerows([[repr(value) for value in row] for row in kept])
    print(f"{count} settings drawn, {len(kept)} kept, {zero} with epsilon 0 in both directions, "
          f"{len(failed)} values not converged, {time.perf_counter() - began:.0f} s")
    for q, s, steps, delta, direction, reason in failed:
        print(f"not converged: q={q:.3g} s={s:.3g} T={steps} delta={delta:.2g} {direction}: "
              f"{reason}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
