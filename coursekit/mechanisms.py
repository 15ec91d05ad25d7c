"""Mechanisms: answers with just enough noise to be differentially private.

Notebook 02 derives them, notebook 03 the Gaussian one. Each function states its adjacency (which
two data sets count as neighbours), the sensitivity it needs and the guarantee it gives. Nothing is
read off the data to set the noise: bounds, sensitivities and categories are all arguments, named
by the caller.

`laplace_mechanism` and `gaussian_mechanism` are private in real arithmetic only, as their
docstrings explain. Every other mechanism here draws whole numbers and computes exactly, so its
guarantee holds for the numbers the machine really returns. It holds against readers who cannot
predict `rng` and cannot time the call: NumPy's generators are made for simulation, not for
secrets, and larger noise takes longer (Jin et al. 2022, IEEE S&P). So use this module to learn and
to check, and OpenDP for a real release. A refusal of bad values depends on them: it is for the
holder of the data only.
"""

import math
import numbers
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import numpy as np

from coursekit import _arguments
from coursekit.accounting.gaussian import gaussian_noise_multiplier

ADJACENCIES = ("add-remove", "replace-one")
_INT64 = np.iinfo(np.int64)
_DIGITS = Context(prec=60)
_LN_2 = _DIGITS.ln(2)


# ------------------------------------------------------------------------------- Laplace noise


def laplace_scale(*, sensitivity, epsilon):
    """Return the scale b = sensitivity / epsilon of the Laplace noise that gives epsilon-DP.

    The noise has density exp(-|x|/b) / (2b), mean 0 and standard deviation sqrt(2) b.
    `sensitivity` is the L1 sensitivity under the adjacency you chose; epsilon then holds under
    that same adjacency.

    Raises: TypeError or ValueError unless both are finite numbers above 0 and their ratio lies
    between 1e-300 and 1e300 (further out, float64 would soon turn it into 0 or infinity).
    Source: Dwork, McSherry, Nissim, Smith (2006), "Calibrating noise to sensitivity in private
    data analysis", TCC.

    >>> laplace_scale(sensitivity=1, epsilon=0.5)
    2.0
    """
    top = _arguments.positive(sensitivity, "sensitivity")
    bottom = _arguments.positive(epsilon, "epsilon")
    scale = top / bottom
    if not 1e-300 <= scale <= 1e300:
        raise ValueError(
            "sensitivity / epsilon must lie between 1e-300 and 1e300, "
            f"got sensitivity={top!r} and epsilon={bottom!r}."
        )
    return scale


def laplace_mechanism(value, *, sensitivity, epsilon, rng=None):
    """Return `value` plus independent Laplace noise of scale sensitivity / epsilon.

    `value` is a number or an array of any shape; every coordinate gets noise of its own, and
    `sensitivity` is the L1 sensitivity of the whole value under the adjacency you chose. A number
    comes back as a float, an array as a float64 array of the same shape.

    Guarantee: epsilon-DP in real arithmetic ONLY. In float64 it is broken: the low bits of the
    answer can give the true value away with certainty (Mironov 2012; notebook 02 runs the
    attack). Use it to learn; release with `discrete_laplace_mechanism` or `snapping_mechanism`.

    Raises: TypeError or ValueError for a value that is not finite numbers, a bad sensitivity or
    epsilon (see `laplace_scale`), or an `rng` that is not a NumPy Generator.
    Source: Dwork, McSherry, Nissim, Smith (2006), TCC; Mironov (2012), "On significance of the
    least significant bits for differential privacy", CCS.

    >>> rng = np.random.default_rng(7)
    >>> laplace_mechanism([10.0, 20.0, 30.0], sensitivity=1, epsilon=0.5, rng=rng).shape
    (3,)
    """
    value = _arguments.finite_array(value, "value")
    scale = laplace_scale(sensitivity=sensitivity, epsilon=epsilon)
    rng = _arguments.generator(rng)
    noisy = value + rng.laplace(scale=scale, size=value.shape)
    return float(noisy) if value.ndim == 0 else noisy


# ------------------------------------------------------------------------------ Gaussian noise


def gaussian_sigma(*, sensitivity, epsilon, delta):
    """Return the smallest standard deviation of normal noise that is (epsilon, delta)-DP.

    The exact ("analytic") calibration, for every epsilon. `sensitivity` is the L2 sensitivity under
    the adjacency you chose; the promise then holds under that same adjacency. No sampling.

    Raises: TypeError or ValueError unless sensitivity and epsilon are finite numbers above 0 and
    delta lies between 0 and 1.
    Source: Balle and Wang (2018), "Improving the Gaussian mechanism for differential privacy",
    ICML.

    >>> round(gaussian_sigma(sensitivity=1, epsilon=1, delta=1e-5), 4)
    3.7306
    """
    sensitivity = _arguments.positive(sensitivity, "sensitivity")
    sigma = sensitivity * gaussian_noise_multiplier(epsilon, delta)
    if not 1e-300 <= sigma <= 1e300:
        raise ValueError(
            f"the noise must lie between 1e-300 and 1e300, got {sigma!r} "
            f"for sensitivity={sensitivity!r}, epsilon={epsilon!r} and delta={delta!r}."
        )
    return sigma


def gaussian_mechanism(value, *, sensitivity, epsilon, delta, rng=None):
    """Return `value` plus independent normal noise with the deviation `gaussian_sigma` gives.

    `value` is a number or an array of any shape; every coordinate gets noise of its own, and
    `sensitivity` is the L2 sensitivity of the whole value under the adjacency you chose. A number
    comes back as a float, an array as a float64 array of the same shape.

    Guarantee: (epsilon, delta)-DP in real arithmetic ONLY; the low bits of a float64 can give the
    true value away, as with `laplace_mechanism`. Use it to learn.

    Raises: TypeError or ValueError for a value that is not finite numbers, a bad sensitivity,
    epsilon or delta (see `gaussian_sigma`), or an `rng` that is not a NumPy Generator.
    Source: Balle and Wang (2018), ICML; Dwork, Kenthapadi, McSherry, Mironov, Naor (2006),
    EUROCRYPT, for the idea.

    >>> rng = np.random.default_rng(7)
    >>> gaussian_mechanism([10.0, 20.0], sensitivity=1, epsilon=1, delta=1e-5, rng=rng).shape
    (2,)
    """
    value = _arguments.finite_array(value, "value")
    sigma = gaussian_sigma(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    rng = _arguments.generator(rng)
    noisy = value + rng.normal(scale=sigma, size=value.shape)
    return float(noisy) if value.ndim == 0 else noisy


# ------------------------------------------------------------------------------- exact sampling


def _uniform_integers(rng):
    """Return `below`, where `below(n)` draws one of 0, ..., n - 1, each exactly as likely.

    It cuts random bits from 64-bit words of `rng`, as many as n - 1 has, and tries again when
    they spell n or more; n may be any size.
    """

    def words():
        while True:
            yield from rng.integers(2**64, size=64, dtype=np.uint64).tolist()

    word = words()

    def below(n):
        bits = (n - 1).bit_length()
        while True:
            draw = 0
            for _ in range(0, bits, 64):
                draw = draw << 64 | next(word)
            draw >>= -bits % 64
            if draw < n:
                return draw

    return below


def _bernoulli_exp(numerator, denominator, below):
    """Return True with probability exactly exp(-x), where x = numerator / denominator >= 0.

    For x up to 1: toss coins of chance x/1, x/2, x/3, ... until the first tail, at toss k. More
    than j tosses are needed with chance x^j / j!, so k is odd with chance
    1 - x + x^2/2! - x^3/3! + ... = exp(-x). (Canonne, Kamath, Steinke 2020, Algorithm 1.)
    """
    while numerator > denominator:  # exp(-x) = exp(-1) exp(-(x - 1))
        if not _bernoulli_exp(1, 1, below):
            return False
        numerator -= denominator
    k = 1
    while below(denominator * k) < numerator:
        k += 1
    return k % 2 == 1


def _discrete_laplace(scale, below):
    """Return one integer k, drawn with probability exactly proportional to exp(-|k| / scale).

    With scale = t/s, draw x >= 0 with chance proportional to exp(-x/t): its remainder modulo t
    by rejection, the multiple of t by counting successes. Then x // s is geometric, and a random
    sign makes it two-sided; -0 is rejected, or zero would count twice.
    (Canonne, Kamath, Steinke 2020, Algorithm 2.)
    """
    t, s = scale.numerator, scale.denominator
    while True:
        x = below(t)
        if not _bernoulli_exp(x, t, below):
            continue
        while _bernoulli_exp(1, 1, below):
            x += t
        magnitude, negative = x // s, below(2)
        if magnitude or not negative:
            return -magnitude if negative else magnitude


def _discrete_gaussian(variance, below):
    """Return one integer k, drawn with chance exactly proportional to exp(-k^2 / (2 variance)).

    Draw k from the discrete Laplace law of scale t, the first whole number above sqrt(variance),
    and keep it with chance exp(-(|k| - variance/t)^2 / (2 variance)). The two exponents add up to
    -k^2 / (2 variance) and a constant: any t would do, this one seldom rejects.
    (Canonne, Kamath, Steinke 2020, Algorithm 3.)
    """
    p, q = variance.numerator, variance.denominator
    t = math.isqrt(p // q) + 1
    while True:
        k = _discrete_laplace(Fraction(t), below)
        if _bernoulli_exp((abs(k) * q * t - p) ** 2, 2 * p * q * t * t, below):
            return k


def _fraction(number):
    """Return a real number as the exact Fraction it is (a float is a whole number over 2^j)."""
    if isinstance(number, numbers.Integral):
        return Fraction(int(number))
    return number if isinstance(number, Fraction) else Fraction(float(number))


def _exact_scale(sensitivity, epsilon):
    """Return sensitivity / epsilon as an exact Fraction, after the checks of `laplace_scale`."""
    laplace_scale(sensitivity=sensitivity, epsilon=epsilon)
    return _fraction(sensitivity) / _fraction(epsilon)


def _array(values, name, allowed):
    try:
        return np.asarray(_arguments.unmasked(values, name))
    except ValueError:
        raise TypeError(f"{name} must be {allowed}, got rows of unequal length.") from None


def _integers(values, name):
    """Return `values` as an array of integers that fit in int64, or refuse."""
    allowed = "an integer or an array of integers"
    array = _array(values, name, allowed)
    for number in array.ravel().tolist() if array.dtype.kind in "uO" else ():
        if isinstance(number, int) and not _INT64.min <= number <= _INT64.max:
            raise ValueError(f"{name} must lie from -2**63 to 2**63 - 1, got {number}.")
    if array.dtype.kind not in "iu" and array.size:
        given = repr(values) if array.ndim == 0 else f"{array.dtype} values"
        raise TypeError(f"{name} must be {allowed}, got {given}.")
    return array


def discrete_laplace_mechanism(value, *, sensitivity, epsilon, rng=None):
    """Return `value` plus independent discrete Laplace noise: the Laplace mechanism for integers.

    P(noise = k) is proportional to exp(-|k| epsilon / sensitivity), k = ..., -1, 0, 1, ...
    `value` is an integer, or an array of integers of any shape; `sensitivity` is the L1
    sensitivity of the whole value under the adjacency you chose. An integer comes back as an int
    of any size, an array as an int64 array of the same shape (a release beyond int64 is set to
    its nearest end, which is post-processing and costs no privacy).

    Guarantee: epsilon-DP, under the adjacency of the sensitivity, for the numbers returned and
    not only in theory. `sensitivity` and `epsilon` may be Fractions or ints; a float is taken as
    the exact fraction it is. The sampler is exact: its only randomness is uniform whole numbers
    and it never rounds. (NumPy's PCG64 is not a cryptographic generator: good for learning.)

    Raises: TypeError for values that are not integers (3.0 and True included) or an `rng` that
    is not a NumPy Generator; ValueError for integers beyond int64 or a bad sensitivity or
    epsilon (see `laplace_scale`).
    Source: Ghosh, Roughgarden, Sundararajan (2009), "Universally utility-maximizing privacy
    mechanisms", STOC; Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential
    privacy", NeurIPS, for the sampler.

    >>> discrete_laplace_mechanism(100, sensitivity=1, epsilon=1e9, rng=np.random.default_rng(7))
    100
    """
    value = _integers(value, "value")
    scale = _exact_scale(sensitivity, epsilon)
    below = _uniform_integers(_arguments.generator(rng))
    noisy = [number + _discrete_laplace(scale, below) for number in value.ravel().tolist()]
    if value.ndim == 0:
        return noisy[0]
    within = [min(max(number, _INT64.min), _INT64.max) for number in noisy]
    return np.array(within, dtype=np.int64).reshape(value.shape)


def discrete_laplace_pmf(k, *, scale):
    """Return P(noise = k) of the discrete Laplace law, (1 - p) / (1 + p) p^|k|, p = exp(-1/scale).

    `k` is an integer or an array of integers; the result is a float or a float64 array.

    Raises: TypeError or ValueError if `k` is not integers or `scale` not a finite number above 0.
    Source: Inusah, Kozubowski (2006), "A discrete analogue of the Laplace distribution", Journal
    of Statistical Planning and Inference.

    >>> round(discrete_laplace_pmf(0, scale=1), 4)
    0.4621
    """
    k = _integers(k, "k")
    scale = _arguments.positive(scale, "scale")
    # (1 - p) / (1 + p) = tanh(1 / (2 scale)), which loses no digits when p is close to 1.
    with np.errstate(over="ignore"):
        chance = np.tanh(0.5 / np.float64(scale)) * np.exp(-np.abs(k.astype(np.float64)) / scale)
    return float(chance) if k.ndim == 0 else chance


# --------------------------------------------------------------------- discrete Gaussian noise


def discrete_gaussian_sigma(*, sensitivity, rho):
    """Return sigma = sensitivity / sqrt(2 rho), with which discrete Gaussian noise is rho-zCDP.

    `sensitivity` is the L2 sensitivity under the adjacency you chose; rho then holds under that
    same adjacency. No sampling. The standard deviation of the noise is below sigma: by 7% at
    sigma = 0.5, by a ten-millionth at sigma = 1.

    Raises: TypeError or ValueError unless both are finite numbers above 0 and sigma lies between
    1e-150 and 1e150.
    Source: Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy",
    NeurIPS; Bun, Steinke (2016), "Concentrated differential privacy", TCC, for zCDP.

    >>> discrete_gaussian_sigma(sensitivity=1, rho=0.125)
    2.0
    """
    top = _arguments.positive(sensitivity, "sensitivity")
    bottom = _arguments.positive(rho, "rho")
    sigma = top / math.sqrt(2 * bottom)
    if not 1e-150 <= sigma <= 1e150:
        raise ValueError(
            "sensitivity / sqrt(2 rho) must lie between 1e-150 and 1e150, "
            f"got sensitivity={top!r} and rho={bottom!r}."
        )
    return sigma


def discrete_gaussian_mechanism(value, *, sensitivity, rho, rng=None):
    """Return `value` plus independent discrete Gaussian noise: the Gaussian one for integers.

    P(noise = k) is proportional to exp(-k^2 / (2 sigma^2)), k = ..., -1, 0, 1, ..., with
    sigma^2 = sensitivity^2 / (2 rho). `value` is an integer, or an array of integers of any shape;
    `sensitivity` is the L2 sensitivity of the whole value under the adjacency you chose. An integer
    comes back as an int of any size, an array as an int64 array of the same shape (a release beyond
    int64 is set to its nearest end, which is post-processing and costs no privacy).

    Guarantee: rho-zCDP, under the adjacency of the sensitivity, for the numbers returned and not
    only in theory; `coursekit.accounting.zcdp_epsilon` turns it into (epsilon, delta). It is the
    rho of normal noise, and needs that every value is an integer: neighbours then differ by whole
    numbers s, for which the Renyi divergence of order a is at most a s^2 / (2 sigma^2) (a fraction
    would show through the noise unchanged). `sensitivity` and `rho` may be Fractions or ints; a
    float is taken as the exact fraction it is. The sampler is exact, as for
    `discrete_laplace_mechanism`.

    Raises: TypeError for values that are not integers (3.0 and True included) or an `rng` that
    is not a NumPy Generator; ValueError for integers beyond int64 or a bad sensitivity or rho (see
    `discrete_gaussian_sigma`).
    Source: Canonne, Kamath, Steinke (2020), "The discrete Gaussian for differential privacy",
    NeurIPS, for guarantee and sampler.

    >>> discrete_gaussian_mechanism(100, sensitivity=1, rho=1e9, rng=np.random.default_rng(7))
    100
    """
    value = _integers(value, "value")
    discrete_gaussian_sigma(sensitivity=sensitivity, rho=rho)
    variance = _fraction(sensitivity) ** 2 / (2 * _fraction(rho))
    below = _uniform_integers(_arguments.generator(rng))
    noisy = [number + _discrete_gaussian(variance, below) for number in value.ravel().tolist()]
    if value.ndim == 0:
        return noisy[0]
    within = [min(max(number, _INT64.min), _INT64.max) for number in noisy]
    return np.array(within, dtype=np.int64).reshape(value.shape)


def discrete_gaussian_pmf(k, *, sigma):
    """Return P(noise = k) of the discrete Gaussian, exp(-k^2 / (2 sigma^2)) over its sum.

    `k` is an integer or an array of integers; the result is a float or a float64 array. The sum
    over all integers is taken as it stands for sigma below 1; above, Poisson's summation formula
    turns it into sigma sqrt(2 pi) (1 + 2 e^-x + 2 e^-4x + ...), x = 2 pi^2 sigma^2.

    Raises: TypeError or ValueError if `k` is not integers or `sigma` not a finite number above 0.
    Source: Canonne, Kamath, Steinke (2020), NeurIPS.

    >>> round(discrete_gaussian_pmf(0, sigma=1), 4)
    0.3989
    """
    k = _integers(k, "k")
    sigma = _arguments.positive(sigma, "sigma")
    j = np.arange(1, 40, dtype=np.float64)
    with np.errstate(over="ignore", under="ignore"):
        if sigma < 1:
            total = 1 + 2 * np.exp(-0.5 * (j / sigma) ** 2).sum()
        else:
            waves = np.exp(-2 * (math.pi * sigma * j) ** 2).sum()
            total = math.sqrt(2 * math.pi) * sigma * (1 + 2 * waves)
        chance = np.exp(-0.5 * (k.astype(np.float64) / sigma) ** 2) / total
    return float(chance) if k.ndim == 0 else chance


# ------------------------------------------------------------------------------------- snapping


def _log_of_uniform(below):
    """Return ln(U) as the nearest float, for U uniform on the floats between 0 and 1.

    U = mantissa / 2^exponent with 53 significant bits: each float comes with the probability of
    the gap up to the next one, down to the tiniest (the exponent has no floor). 60 digits settle
    which float is nearest.
    """
    exponent = 53
    while below(2):
        exponent += 1
    mantissa = 2**52 + below(2**52)
    return float(_DIGITS.fma(-exponent, _LN_2, _DIGITS.ln(mantissa)))


def _power_of_two_at_least(number):
    """Return the smallest power of two that is at least `number`, a Fraction above 0."""
    power = Fraction(2) ** (number.numerator.bit_length() - number.denominator.bit_length() - 1)
    while power < number:
        power *= 2
    return power


def snapping_mechanism(value, *, sensitivity, epsilon, bound, rng=None):
    """Return `value` with Laplace noise, snapped to a coarse public grid that hides the low bits.

    clamp(round(clamp(value) + scale * S * ln U)), where clamp moves into [-bound, bound], S is a
    random sign, U a uniform float in (0, 1), and round goes to the nearest multiple of the
    smallest power of two that is at least `scale`, ties upwards. `value` is one real number and
    `sensitivity` its sensitivity under the adjacency you chose. The result is a float: a multiple
    of the grid, or one of the two bounds.

    Guarantee: epsilon-DP for the floats returned. Mironov's theorem, for sensitivity 1 and
    scale < bound < 2^46 scale, gives 1/scale + 2^-49 bound/scale. Divide value, bound and scale by
    the sensitivity, which changes no output here because everything but the logarithm is exact
    (the theorem allows a rounding at each step, and needs a grid no finer than the scale), and it
    reads epsilon = (sensitivity + 2^-49 bound) / scale; this function solves that for the scale.

    Raises: TypeError or ValueError for an argument that is not a finite number (above 0, but for
    `value`), a `bound` outside the range of the theorem, or an `rng` that is no NumPy Generator.
    Source: Mironov (2012), "On significance of the least significant bits for differential
    privacy", CCS, section 5.2.

    >>> rng = np.random.default_rng(7)
    >>> snapping_mechanism(3.14, sensitivity=1, epsilon=1, bound=100, rng=rng) % 2
    0.0
    """
    _arguments.real(value, "value")
    _arguments.positive(bound, "bound")
    laplace_scale(sensitivity=sensitivity, epsilon=epsilon)
    below = _uniform_integers(_arguments.generator(rng))
    value, limit = _fraction(value), _fraction(bound)
    scale = (_fraction(sensitivity) + limit / 2**49) / _fraction(epsilon)
    if not scale < limit < 2**46 * scale:
        raise ValueError(
            f"bound must lie between the noise scale, here {float(scale):.6g}, "
            f"and 2**46 times it, got {bound!r}."
        )

    def clamp(number):
        return min(max(number, -limit), limit)

    sign = 1 - 2 * below(2)
    noisy = clamp(value) + scale * sign * Fraction(_log_of_uniform(below))
    grid = _power_of_two_at_least(scale)
    snapped = grid * math.floor(noisy / grid + Fraction(1, 2))
    return float(clamp(snapped))


# ------------------------------------------------------------- randomised response and selection


def _bits(bits, name):
    """Return `bits` as an array of zeros and ones (or False and True), or refuse."""
    allowed = "0 or 1 (or False and True)"
    array = _array(bits, name, allowed)
    if array.dtype.kind not in "biuf":
        given = repr(bits) if array.ndim == 0 else f"{array.dtype} values"
        raise TypeError(f"{name} must be {allowed}, got {given}.")
    wrong = array[(array != 0) & (array != 1)]
    if wrong.size:
        raise ValueError(f"{name} must be {allowed}, got {wrong[0].item()!r}.")
    return array


def randomised_response(bits, *, epsilon, rng=None):
    """Return `bits`, each kept with probability e^epsilon / (1 + e^epsilon), else flipped.

    `bits` is 0 or 1 (False or True) or an array of them, one for each person; every bit has a
    coin of its own. The result has the same shape and kind.

    Guarantee: epsilon-DP for each bit, and local: it holds before anybody collects the reports.
    Adjacency: replace-one, a person's bit is 0 in one data set and 1 in the other; a person with
    several bits spends epsilon on each. The chance of a flip is rounded up to a multiple of
    2^-53, never down, so epsilon is an upper bound for the machine's coins too.

    Raises: TypeError or ValueError for anything but 0 and 1, an epsilon that is not a finite
    number above 0, or an `rng` that is not a NumPy Generator.
    Source: Warner (1965), "Randomized response: a survey technique for eliminating evasive answer
    bias", Journal of the American Statistical Association; Kasiviswanathan et al. (2011), "What
    can we learn privately?", SIAM Journal on Computing, for the local model.

    >>> randomised_response([0, 1, 1], epsilon=30, rng=np.random.default_rng(7))
    array([0, 1, 1])
    """
    bits = _bits(bits, "bits")
    epsilon = _arguments.positive(epsilon, "epsilon")
    rng = _arguments.generator(rng)
    with localcontext(_DIGITS):  # past 40 the flip is 2^-53 all the same
        flip = math.ceil(2**53 / (1 + Decimal(min(epsilon, 40)).exp()))
    reports = (bits != (rng.integers(2**53, size=bits.shape) < flip)).astype(bits.dtype)
    return reports.item() if bits.ndim == 0 else reports


def randomised_response_mean(reports, *, epsilon):
    """Return an unbiased estimate of the fraction of ones before `randomised_response`.

    A true fraction f is reported as 1/2 + (f - 1/2) tanh(epsilon/2) on average; this solves it
    for f. The estimate can leave [0, 1]: moving it back would bias it. It only reads reports, so
    it is post-processing and costs no privacy.

    Raises: TypeError or ValueError for reports other than 0 and 1, none at all, or an epsilon
    that is not a finite number of at least 1e-300.
    Source: Warner (1965), Journal of the American Statistical Association.

    >>> round(randomised_response_mean([1, 1, 1, 0], epsilon=2), 4)
    0.8283
    """
    reports = _bits(reports, "reports")
    if reports.size == 0:
        raise ValueError("reports must hold at least one report, got none.")
    epsilon = _arguments.positive(epsilon, "epsilon")
    if epsilon < 1e-300:
        raise ValueError(f"epsilon must be at least 1e-300 to undo its noise, got {epsilon!r}.")
    return float(0.5 + (reports.mean(dtype=float) - 0.5) / math.tanh(epsilon / 2))


def _scores(scores):
    scores = _arguments.finite_array(scores, "scores", ndim=1)
    if scores.size == 0:
        raise ValueError("scores must hold at least one score, got none.")
    return scores


def exponential_mechanism_probabilities(scores, *, sensitivity, epsilon):
    """Return the chance of each candidate, proportional to exp(epsilon score / (2 sensitivity)).

    `scores` is an array of finite numbers, one for each candidate; so is the result, and it sums
    to 1. The best score is taken off first, so that huge scores cannot overflow.

    Raises: as `exponential_mechanism`.
    Source: McSherry, Talwar (2007), "Mechanism design via differential privacy", FOCS.

    >>> exponential_mechanism_probabilities([0, 0], sensitivity=1, epsilon=1)
    array([0.5, 0.5])
    """
    scores = _scores(scores)
    scale = laplace_scale(sensitivity=sensitivity, epsilon=epsilon)
    with np.errstate(over="ignore"):  # a gap too wide for float64 is minus infinity: chance 0
        weights = np.exp((scores / 2 - scores.max() / 2) / scale)
    return weights / weights.sum()


def exponential_mechanism(scores, *, sensitivity, epsilon, rng=None):
    """Return the index of one candidate, drawn with better chances for better scores.

    P(candidate) is proportional to exp(epsilon score / (2 sensitivity)).
    `scores` is an array of finite numbers, one for each candidate; the list of candidates must be
    the same for all data sets. `sensitivity` is the most that any one candidate's score can move
    between neighbours, under the adjacency you chose.

    Guarantee: epsilon-DP under that adjacency, for the choices really made: a candidate is drawn
    uniformly and kept with probability exp(-epsilon gap / (2 sensitivity)), exactly, where gap is
    how far it falls short of the best; otherwise another is drawn. With n candidates that takes
    n tries on average at worst.

    Raises: TypeError or ValueError for scores that are not a 1-D array of finite numbers or are
    empty, a bad sensitivity or epsilon (see `laplace_scale`), or an `rng` that is no Generator.
    Source: McSherry, Talwar (2007), "Mechanism design via differential privacy", FOCS.

    >>> exponential_mechanism([0, 9, 1], sensitivity=1, epsilon=100, rng=np.random.default_rng(7))
    1
    """
    scores = _scores(scores).tolist()
    scale = 2 * _exact_scale(sensitivity, epsilon)
    below = _uniform_integers(_arguments.generator(rng))
    best = Fraction(max(scores))
    while True:
        candidate = below(len(scores))
        gap = (best - Fraction(scores[candidate])) / scale
        if _bernoulli_exp(gap.numerator, gap.denominator, below):
            return candidate


# --------------------------------------------------------- counts, sums, means and histograms


def private_count(flags, *, epsilon, rng=None):
    """Return the number of ones in `flags`, one flag for each person, with discrete Laplace noise.

    Guarantee: epsilon-DP under add-remove and under replace-one alike: either changes the count
    by at most 1. The noisy count is an int and may be negative.

    Raises: TypeError or ValueError for flags that are not a 1-D array of 0 and 1 (or False and
    True), a bad epsilon, or an `rng` that is not a NumPy Generator.
    Source: as `discrete_laplace_mechanism`.

    >>> private_count([True, False, True], epsilon=1e9, rng=np.random.default_rng(7))
    2
    """
    flags = _bits(flags, "flags")
    if flags.ndim != 1:
        raise ValueError(f"flags must be one row, a flag for each person, got shape {flags.shape}.")
    count = int(np.count_nonzero(flags))
    return discrete_laplace_mechanism(count, sensitivity=1, epsilon=epsilon, rng=rng)


def _bounded(values, lower, upper, clip):
    """Return (values, lower, upper) as floats with every value inside the bounds, or refuse."""
    lower, upper = _arguments.real(lower, "lower"), _arguments.real(upper, "upper")
    if not lower < upper:
        raise ValueError(f"lower must be below upper, got lower={lower!r} and upper={upper!r}.")
    if max(abs(lower), abs(upper)) > 1e290 or upper - lower < 1e-290:
        raise ValueError(
            "lower and upper must lie from -1e290 to 1e290 and at least 1e-290 apart, "
            f"got lower={lower!r} and upper={upper!r}."
        )
    _arguments.one_of(clip, "clip", (True, False))
    values = _arguments.finite_array(values, "values", ndim=1)
    outside = values[(values < lower) | (values > upper)]
    if outside.size and not clip:
        raise ValueError(
            f"values must lie from lower={lower!r} to upper={upper!r}, got {float(outside[0])!r}; "
            "clip=True moves such values to the nearest bound."
        )
    return np.clip(values, lower, upper), lower, upper


def _grid_step(width):
    """Return the largest power of two that is at most width / 2^20."""
    return math.ldexp(1.0, math.frexp(width)[1] - 21)


def _on_grid(values, step):
    """Return each of `values` as the nearest whole number of steps, as Python ints."""
    return [int(units) for units in np.rint(np.atleast_1d(values) / step).tolist()]


def _sum_noise(lower, upper, epsilon, adjacency):
    """Return (step, scale): the grid of `private_sum`, its noise scale in steps; or refuse."""
    step = _grid_step(upper - lower)
    low, high = _on_grid([lower, upper], step)
    sensitivity = max(abs(low), abs(high)) if adjacency == "add-remove" else high - low
    laplace_scale(sensitivity=sensitivity * step, epsilon=epsilon)
    return step, _exact_scale(sensitivity, epsilon)


def private_sum(values, *, lower, upper, epsilon, adjacency, rng=None, clip=False):
    """Return the sum of `values`, one for each person, with noise for the bounds [lower, upper].

    Sensitivity: max(|lower|, |upper|) under "add-remove" (a person comes or goes), upper - lower
    under "replace-one" (a person's value changes; the number of people is public). With
    clip=True, values outside the bounds are moved to the nearest one; otherwise they are refused,
    a refusal that a reader of a real release must not get to see.

    Guarantee: epsilon-DP under that adjacency, for the float returned. A sum of floats is rounded
    on the way, which changes its sensitivity; so each value is first rounded to a grid of whole
    steps, the steps are added up as integers, and the noise is discrete Laplace for the
    sensitivity in steps. The step is the largest power of two up to (upper - lower) / 2^20: it
    depends on the bounds alone, moves each value by less than a millionth of the range, and
    multiplying by it is exact (for totals up to 2^53 steps; beyond, it rounds a finished
    release).

    Raises: TypeError or ValueError for values that are not a 1-D array of finite numbers or lie
    outside the bounds without clip=True; bounds that are not finite, in order, within 1e290 and
    1e-290 apart; a bad epsilon; another adjacency; an `rng` that is not a NumPy Generator.
    Source: as `discrete_laplace_mechanism`; Mironov (2012), CCS, for why floats need care.

    >>> ages, rng = [31, 45, 62], np.random.default_rng(7)
    >>> private_sum(ages, lower=0, upper=128, epsilon=1e9, adjacency="add-remove", rng=rng)
    138.0
    """
    values, lower, upper = _bounded(values, lower, upper, clip)
    _arguments.one_of(adjacency, "adjacency", ADJACENCIES)
    step, scale = _sum_noise(lower, upper, epsilon, adjacency)
    below = _uniform_integers(_arguments.generator(rng))
    return (sum(_on_grid(values, step)) + _discrete_laplace(scale, below)) * step


def private_mean(
    values, *, lower, upper, epsilon, adjacency, rng=None, clip=False, count_share=0.5
):
    """Return the mean of `values`, one for each person, with noise for the bounds [lower, upper].

    "replace-one": the number of people n is public, and the answer is `private_sum` / n, which
    may leave the bounds. "add-remove": n is itself private. `count_share` of epsilon buys a noisy
    count, the rest a noisy sum of the deviations from the middle of the bounds, whose sensitivity
    is only (upper - lower) / 2. The answer is middle + sum / max(count, 1), moved into the bounds:
    both are post-processing. It is not unbiased, and with few people it says little.

    Guarantee: epsilon-DP under that adjacency, for the float returned (under "add-remove" by basic
    composition of count and sum).

    Raises: as `private_sum`; ValueError for an empty data set under "replace-one", or a
    `count_share` that does not lie between 0 and 1 or leaves one of the two too little.
    Source: as `private_sum`; Dwork, Roth (2014), "The algorithmic foundations of differential
    privacy", section 3.5, for composition.

    >>> ages, rng = [30, 45, 60], np.random.default_rng(7)
    >>> private_mean(ages, lower=0, upper=128, epsilon=1e9, adjacency="replace-one", rng=rng)
    45.0
    """
    values, lower, upper = _bounded(values, lower, upper, clip)
    _arguments.one_of(adjacency, "adjacency", ADJACENCIES)
    laplace_scale(sensitivity=upper - lower, epsilon=epsilon)
    if not 0 < _arguments.real(count_share, "count_share") < 1:
        raise ValueError(f"count_share must lie between 0 and 1, got {count_share!r}.")
    _arguments.generator(rng)

    if adjacency == "replace-one":
        if values.size == 0:
            raise ValueError("values must hold at least one value under 'replace-one', got none.")
        total = private_sum(
            values, lower=lower, upper=upper, epsilon=epsilon, adjacency=adjacency, rng=rng
        )
        return total / values.size

    # Fractions, so that the two shares add up to epsilon and not to a rounding more.
    count_epsilon = _fraction(epsilon) * _fraction(count_share)
    sum_epsilon = _fraction(epsilon) - count_epsilon
    half_width = (upper - lower) / 2
    middle = lower + half_width
    try:
        _exact_scale(1, count_epsilon)
        _sum_noise(-half_width, half_width, sum_epsilon, adjacency)
    except ValueError:
        raise ValueError(
            "count_share must leave count and sum an epsilon each that puts their noise scale "
            f"between 1e-300 and 1e300, got {count_share!r} of epsilon={epsilon!r}."
        ) from None
    count = discrete_laplace_mechanism(values.size, sensitivity=1, epsilon=count_epsilon, rng=rng)
    deviations = private_sum(
        values - middle, lower=-half_width, upper=half_width, epsilon=sum_epsilon,
        adjacency=adjacency, rng=rng, clip=True,
    )  # fmt: skip
    return min(max(middle + deviations / max(count, 1), lower), upper)


def private_histogram(values, *, categories, epsilon, adjacency, rng=None):
    """Return a noisy count of `values` in each of `categories`, as an int64 array in their order.

    `values` holds one category for each person. `categories` is a list of all that are possible,
    stated by the caller: to read it off the data would tell which of them occur. An empty category
    gets noise like any other, and a noisy count may be negative.

    Guarantee: epsilon-DP for the whole histogram. L1 sensitivity: 1 under "add-remove" (one person
    stands in one category), 2 under "replace-one" (one count falls, another rises).

    Raises: TypeError or ValueError for a value outside the categories; categories that are empty,
    repeated or not a list; another adjacency; a bad epsilon; an `rng` that is no Generator.
    Source: Dwork, McSherry, Nissim, Smith (2006), TCC; noise as `discrete_laplace_mechanism`.

    >>> private_histogram(["tea", "tea", "milk"], categories=["tea", "milk", "water"],
    ...     epsilon=1e9, adjacency="add-remove", rng=np.random.default_rng(7))
    array([2, 1, 0])
    """
    counts = _category_counts(values, categories)
    _arguments.one_of(adjacency, "adjacency", ADJACENCIES)
    sensitivity = 1 if adjacency == "add-remove" else 2
    return discrete_laplace_mechanism(counts, sensitivity=sensitivity, epsilon=epsilon, rng=rng)


def _category_counts(values, categories):
    """Return how many of `values` fall in each of `categories`, in their order, or refuse."""
    for name, given in (("values", values), ("categories", categories)):
        _arguments.unmasked(given, name)
        listed = isinstance(given, (list, tuple, range, np.ndarray))
        if not listed or getattr(given, "ndim", 1) != 1:
            raise TypeError(f"{name} must be a list, tuple or 1-D array, got {given!r}.")
    try:
        position = {category: index for index, category in enumerate(categories)}
        places = [position.get(value) for value in values]
    except TypeError as error:
        raise TypeError(f"values and categories must be plain labels, got {error}.") from None
    if not 0 < len(position) == len(categories):
        raise ValueError(f"categories must be one or more, each stated once, got {categories!r}.")
    if None in places:
        outside = values[places.index(None)]
        raise ValueError(f"values must lie in categories {list(position)!r}, got {outside!r}.")
    return np.bincount(np.array(places, dtype=np.int64), minlength=len(position))
