"""Privacy-loss distributions on a grid, above and below the truth (notebook 05).

For two laws P and Q of what may be seen, the loss of an output is log(P/Q); losses of independent
steps add up, and delta(epsilon) = E_P[(1 - e^(epsilon - loss))+]. Two grids bracket the truth:

- above: the mass between two grid points moves to these points, so that P and Q both keep it. This
  joins dots of the convex curve delta(e^epsilon) by chords, which lie above it
  (Doroshenko, Ghazi, Kamath, Kumar, Manurangsi 2022, PoPETs, "Connect the dots");
- below: an attacker rounds each loss to the nearest grid point, adds up and compares the sum with
  a threshold. No promise can be smaller than what one attacker achieves.

Masses are kept tilted, p e^(tilt * loss) / total, so that the losses around epsilon are the likely
ones: a Fourier transform, whose rounding is relative to the largest mass, stays right at a delta
of 1e-30. What is lost on the way is counted, in tilted mass, by `Law.error` and `Law.noise`.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.fft import irfft, rfft
from scipy.fft import next_fast_len
from scipy.special import ndtr, ndtri

ROUNDING = 2.0**-52


@dataclass(frozen=True)
class Gaussian:
    """Normal noise, mu = sensitivity / deviation: losses of mean +-mu^2/2 and deviation mu."""

    mu: float
    max_loss = np.inf

    def range(self, tail):
        """Return losses outside which P and Q have mass `tail` at most, on either side."""
        reach = self.mu * (self.mu / 2 - ndtri(max(tail, 1e-300)))
        return -reach, reach

    def masses(self, edges):
        """Return the masses of P and of Q between consecutive `edges`, small ones right too."""
        scores = edges / self.mu
        return _normal_masses(scores - self.mu / 2), _normal_masses(scores + self.mu / 2)


@dataclass(frozen=True)
class Laplace:
    """Real-valued Laplace noise: losses from -epsilon to epsilon, with a lump at both ends."""

    epsilon: float

    @property
    def max_loss(self):
        return self.epsilon

    def range(self, tail):
        return -self.epsilon, self.epsilon

    def masses(self, edges):
        inside = np.clip(edges, -self.epsilon, self.epsilon)
        p = np.diff(np.exp((inside - self.epsilon) / 2)) / 2
        q = -np.diff(np.exp((-inside - self.epsilon) / 2)) / 2
        return _with_lumps(p, q, edges, self.epsilon, share=1 / 2)


class Pure(Laplace):
    """Any epsilon-DP release: the worst is a coin, with losses of epsilon and -epsilon only."""

    def masses(self, edges):
        nothing = np.zeros(len(edges) - 1)
        share = 1 / (1 + np.exp(-self.epsilon))
        return _with_lumps(nothing, nothing.copy(), edges, self.epsilon, share)


@dataclass(frozen=True)
class Step:
    """Noise on a sum that each person enters with probability `sampling_rate` (Poisson sampling).

    Direction "remove": P is the law with the person, Q the law without; "add": the reverse.
    """

    noise: Gaussian | Laplace
    sampling_rate: float
    direction: str

    @property
    def max_loss(self):
        if self.direction == "remove":
            return float(sampled(self.noise.max_loss, self.sampling_rate))
        return -float(sampled(-self.noise.max_loss, self.sampling_rate))

    def masses(self, edges):
        """Return P, Q and P - Q between consecutive `edges`, given as losses."""
        if self.direction == "add":
            p, q, difference = replace(self, direction="remove").masses(-edges[::-1])
            return q[::-1], p[::-1], -difference[::-1]
        seen, unseen = self.noise.masses(sampled(edges, 1 / self.sampling_rate))
        rate = self.sampling_rate
        return (1 - rate) * unseen + rate * seen, unseen, rate * (seen - unseen)

    def outline(self, tail, lost, cells=400):
        """Return (losses, masses of P): a sketch, only to choose the tilt, the grid, the window.

        Low losses of mass `tail` are left out; those above which delta falls below `lost` are
        lumped together.
        """
        edges = np.linspace(*self.noise.range(min(tail, lost)), cells + 1)
        seen, unseen = self.noise.masses(edges)
        losses = sampled((edges[1:] + edges[:-1]) / 2, self.sampling_rate)
        ends = sampled(edges, self.sampling_rate)[1:]
        p = (1 - self.sampling_rate) * unseen + self.sampling_rate * seen
        if self.direction == "add":
            losses, p = -losses[::-1], unseen[::-1]
            ends = -sampled(edges, self.sampling_rate)[-2::-1]
        with np.errstate(divide="ignore"):
            last = min(np.count_nonzero(log_tails(losses, np.log(p))[1] > np.log(lost)), cells - 1)
        losses[last], p[last] = ends[last], p[last:].sum()
        kept = (np.cumsum(p) > tail) & (p > 0) & (np.arange(cells) <= last)
        return losses[kept], p[kept]


@dataclass(frozen=True)
class Law:
    """Masses at the losses (start + 0, 1, 2, ...) * spacing: weight * e^(log_total - tilt * loss).

    The weights sum to about 1 and differ from the true ones by `error` in sum and by rounding,
    `noise` in root of the sum of squares. `origin`: the step, how many, and what grids added.
    """

    start: int
    spacing: float
    tilt: float
    weights: np.ndarray
    log_total: float
    error: float = 0.0
    noise: float = 0.0
    origin: tuple | None = None

    @property
    def losses(self):
        return (self.start + np.arange(len(self.weights))) * self.spacing

    def log_masses(self):
        with np.errstate(divide="ignore"):
            return np.log(self.weights) + self.log_total - self.tilt * self.losses

    def log_moment(self, s):
        """Return log E[e^(s * loss)] over the tilted weights, or a little more."""
        if self.origin is None:
            return _log_sum(s * self.losses, self.weights)
        step, count, grid = self.origin
        return count * (step.log_total + step.log_moment(s)) + grid(self.tilt + s) - self.log_total


def discretise(step, low, high, spacing, tilt):
    """Return (above, below P, below Q) of a step as laws, and P's mass at an infinite loss."""
    start = int(np.floor(low / spacing))
    count = max(int(np.ceil(high / spacing)) - start, 1)
    edges = np.concatenate([[-np.inf], (start + np.arange(2 * count + 1) / 2) * spacing, [np.inf]])
    p, q, difference = step.masses(edges)
    # Above: of the mass p between two grid points, `up` goes to the upper one, so that Q keeps q.
    cells = [mass[1:-1].reshape(-1, 2).sum(axis=1) for mass in (p, q, difference)]
    floor = np.expm1((start + np.arange(count)) * spacing)
    up = np.clip((cells[2] - floor * cells[1]) / -np.expm1(-spacing), 0, cells[0])
    above = np.append(cells[0] - up, 0.0)
    above[1:] += up
    above[0] += p[0]
    top = (start + count) * spacing
    above[-1] += q[-1] * np.exp(top)
    lost = max(difference[-1] - np.expm1(top) * q[-1], 0.0)
    # Below: each grid point collects the half cells around it.
    below_p, below_q = (mass.reshape(-1, 2).sum(axis=1) for mass in (p, q))
    masses = ((above, tilt), (below_p, tilt), (below_q, tilt + 1))
    return *(_tilted(start, spacing, t, mass) for mass, t in masses), lost


def coarser(law, factor, *, above):
    """Return the law on a grid `factor` times as wide: by chords if `above`, else rounded."""
    middle = 0 if above else factor // 2
    start, shift = divmod(law.start + middle, factor)
    cells = np.zeros(-(-(len(law.weights) + shift) // factor) * factor)
    cells[shift : shift + len(law.weights)] = law.weights
    cells = cells.reshape(-1, factor)
    width, tilt, offsets = law.spacing * factor, law.tilt, np.arange(factor) * law.spacing
    if above:
        share = np.expm1(-offsets) / np.expm1(-width)
        weights = np.append(cells @ ((1 - share) * np.exp(-tilt * offsets)), 0.0)
        weights[1:] += cells @ (share * np.exp(tilt * (width - offsets)))
    else:
        weights = cells @ np.exp(tilt * (middle * law.spacing - offsets))

    def moved(order):  # at most this is added to log E_P[e^(order * loss)]; Hoeffding's lemma
        return max(order * (order + 1), 0) * width**2 / 8 if above else abs(order) * width / 2

    total, most = weights.sum(), np.exp(tilt * width)
    error, noise = law.error * most / total, law.noise * np.sqrt(factor) * most / total
    log_total = law.log_total + np.log(total)
    return Law(start, width, tilt, weights / total, log_total, error, noise, (*law.origin, moved))


def compose(parts, window):
    """Return the law of the sum: `parts` are (law, count), on one grid and with one tilt.

    `window` is (low, high, s_low, s_high): the losses to keep, and the orders of two Chernoff
    bounds on the mass outside, which wraps around and is counted as error. The rounding of the
    transform is that of Higham (2002), section 24.1.
    """
    spacing, tilt = parts[0][0].spacing, parts[0][0].tilt
    start, stop = int(np.floor(window[0] / spacing)), int(np.ceil(window[1] / spacing))
    size = next_fast_len(stop - start + 1, real=True)
    spectrum, shift, log_total, error, noise = 1.0, -start, 0.0, 0.0, 0.0
    outside = np.array([window[2] * start, -window[3] * (start + size)]) * spacing
    for law, count in parts:
        wave = rfft(np.bincount(np.arange(len(law.weights)) % size, law.weights, size))
        spectrum = spectrum * _power(wave, count)
        shift += count * law.start
        log_total += count * law.log_total
        error += count * law.error
        rounding = 2 * ROUNDING * np.log2(size) * np.sqrt(law.weights @ law.weights)
        noise += count * law.noise + (count + 2) * rounding
        outside += count * np.array([law.log_moment(-window[2]), law.log_moment(window[3])])
    weights = np.maximum(irfft(spectrum, size), 0.0)
    weights = np.concatenate([weights[-shift % size :], weights[: -shift % size]])
    error += np.exp(np.minimum(outside, 700)).sum()
    return Law(start, spacing, tilt, weights, log_total, error, noise, parts[0])


def log_tails(losses, log_masses):
    """Return log Q(loss >= y) and log delta(y) at each loss y, from the log masses of P.

    delta is the integral of Q's tail over e^loss: a sum of positive terms, nothing cancels.
    """
    log_q = np.logaddexp.accumulate((log_masses - losses)[::-1])[::-1]
    with np.errstate(divide="ignore"):
        terms = losses[:-1] + np.log(np.expm1(np.diff(losses))) + log_q[1:]
    return log_q, np.append(np.logaddexp.accumulate(terms[::-1])[::-1], -np.inf)


def smallest_epsilon(losses, log_masses, delta, log_slack=-np.inf):
    """Return the smallest epsilon >= 0 at which delta(epsilon) + slack <= delta; inf if none."""
    log_q, log_delta = log_tails(losses, log_masses)
    log_slack = np.broadcast_to(log_slack, log_delta.shape)
    goal = np.log(delta) if delta > 0 else -np.inf
    enough = np.flatnonzero(np.logaddexp(log_delta, log_slack) < goal)
    if not len(enough):
        return np.inf
    k = enough[0]
    room = delta - np.exp(log_delta[k]) - np.exp(log_slack[max(k - 1, 0)])
    share = np.exp(np.log(room) - log_q[k] - losses[k]) if room > 0 else 0.0
    return max(0.0, float(losses[k] + np.log1p(-share))) if share < 1 else 0.0


def sampled(loss, rate):
    """Return log(1 + rate (e^loss - 1)), the loss after sampling; 1 / rate gives the inverse."""
    if rate == 1:
        return np.asarray(loss)
    with np.errstate(divide="ignore"):
        small = np.log1p(np.maximum(rate * np.expm1(np.minimum(loss, 30)), -1))
    large = loss + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(loss, 30)))
    return np.where(loss < 30, small, large)


def _tilted(start, spacing, tilt, masses):
    exponents = tilt * (start + np.arange(len(masses))) * spacing
    total = _log_sum(exponents, masses)
    return Law(start, spacing, tilt, masses * np.exp(exponents - total), total)


def _power(wave, count):
    """Return wave^count by squaring, some times faster than NumPy's complex power."""
    result = wave if count % 2 else 1.0
    while count := count // 2:
        wave = wave * wave
        result = result * wave if count % 2 else result
    return result


def _log_sum(exponents, weights):
    top = np.max(exponents)
    return float(top + np.log(weights @ np.exp(exponents - top)))


def _with_lumps(p, q, edges, epsilon, share):
    """Add P's mass `share` at the loss epsilon and Q's at -epsilon, and what each leaves there."""
    for end in (-epsilon, epsilon):
        cell = min(np.searchsorted(edges, end, side="right"), len(edges) - 1) - 1
        p[cell] += share * np.exp((end - epsilon) / 2)
        q[cell] += share * np.exp((-end - epsilon) / 2)
    return p, q


def _normal_masses(scores):
    right = scores[:-1] > 0
    tails = np.where(right, ndtr(-scores[:-1]), ndtr(scores[1:]))
    return tails - np.where(right, ndtr(-scores[1:]), ndtr(scores[:-1]))
