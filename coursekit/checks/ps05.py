"""Checks of problem set 05, privacy accounting.

Each exercise: our answer, other right answers, the mistakes as code, and the parts of the check.
All answers are exact. The two laws throughout are those of one step of the Poisson-subsampled
Gaussian under add/remove: P = (1 - q) N(0, s^2) + q N(1, s^2) with the person, Q = N(0, s^2)
without.
"""

import math

import numpy as np
from scipy import special, stats

from coursekit.checks.exercise import Exact, Exercise, Mistake, choice

# -------------------------------------------------------------------------------------------- 5.1

CHOICE = choice(
    "5.1", "Which number is a promise?", right="b", points=1,
    reasons={
        "a": "Compare the rows: in the second run the formula gives 1.87, and no epsilon below "
             "2.11 holds there. It leaves out terms that count when sigma is near 1 or epsilon is "
             "large, so it is sometimes too large and sometimes too small, and nothing in its "
             "result says which.",
        "c": "An accountant reports what it can prove, and the formula proves nothing, so it is "
             "no ceiling. In the first run Renyi gives 6.34 and is right; 6.00 happens to be "
             "above the truth, which lies below 5.87, but only the last column shows that.",
        "d": "Both are proved upper bounds on the same smallest epsilon, so the truth lies below "
             "both. They differ because Renyi keeps one number for each order and pays for that "
             "in the conversion, while the loss distribution keeps the whole law.",
        "e": "The three columns assume that each person is drawn into each batch by a coin of her "
             "own (Poisson sampling). In a shuffled list everybody comes exactly once in an epoch "
             "and the batches depend on each other: no theorem carries these numbers over, and "
             "the truth can be much larger (Chua et al. 2024).",
    },
    hints=(
        "Ask of each column: is there a theorem that says that the smallest epsilon lies at or "
        "below it? And under which way of drawing batches?",
        "Look for a row in which the first column is smaller than what the last column says no "
        "promise can go below. Then look for one in which it is smaller than the middle column.",
    ),
    lesson="A number is a promise if a theorem stands behind it, whether it is small or large: "
           "the best accountant is the one with the smallest number among those that prove it, "
           "for the sampler that was really used.",
)


# -------------------------------------------------------------------------------------------- 5.2

def steps_and_rate(people, batch, epochs):
    return math.ceil(epochs * people / batch), batch / people


def steps_and_rate_whole(people, batch, epochs):
    return [-(-epochs * people // batch), batch / people]


def steps_and_rate_remainder(people, batch, epochs):
    steps, left = divmod(epochs * people, batch)
    return np.array([steps + (left > 0), 1 / (people / batch)])


def with_steps(steps):
    return lambda people, batch, epochs: (steps(people, batch, epochs), batch / people)


def with_rate(rate):
    def wrong(people, batch, epochs):
        steps, _ = steps_and_rate(people, batch, epochs)
        return steps, rate(people, batch, epochs, steps)
    return wrong


FLOAT_TRAP = (40, 7, 21)  # 120 steps; but 21 / (7 / 40) is 120.00000000000001


def steps_cases(rng):
    sizes = [(1000, 250, 10), (1000, 250, 1), (25_000, 500, 30), (60_000, 256, 15),
             (1000, 300, 10), (50, 50, 4), (7, 2, 3), (100, 7, 7), (101, 60, 3), FLOAT_TRAP]
    for _ in range(4):
        batch = int(rng.integers(2, 400))
        sizes.append((int(rng.integers(batch, 9000)), batch, int(rng.integers(2, 80))))
    return [{"people": n, "batch": b, "epochs": e} for n, b, e in sizes]


STEPS_AND_RATE = Exercise(
    "5.2", "How many steps, at which rate?", 1, function="steps_and_rate", right=steps_and_rate,
    others=(steps_and_rate_whole, steps_and_rate_remainder),
    parts=(Exact(steps_cases, proof="steps and rate agree for whole and for broken epochs"),),
    mistakes=(
        Mistake("epochs-times-people", with_steps(lambda n, b, e: e * n),
                "You count one step for each person and epoch. A step takes a whole batch: how "
                "many batches go through the data once?"),
        Mistake("epochs-times-batch", with_steps(lambda n, b, e: e * b),
                "Your steps grow with the batch. A larger batch covers the data in fewer steps, "
                "so the batch belongs below the line."),
        Mistake("epochs-times-rate", with_steps(lambda n, b, e: e * b / n),
                "You multiplied the epochs by the rate. Each step takes the share q of the data, "
                "so an epoch has 1/q steps, not q."),
        Mistake("epochs-twice", with_steps(lambda n, b, e: math.ceil(e * e * n / b)),
                "The epochs enter twice: for 1000 people, batches of 250 and 10 epochs you get "
                "400 steps, the slip of a well-known example. Four steps are an epoch, so ten "
                "epochs are 40."),
        Mistake("one-epoch-only", with_steps(lambda n, b, e: math.ceil(n / b)),
                "These are the steps of one epoch. Privacy is spent in every epoch: the accountant "
                "needs all the steps of the training."),
        Mistake("one-step-an-epoch", with_steps(lambda n, b, e: e),
                "You count epochs. Noise is added once for each batch, so the accountant counts "
                "batches."),
        Mistake("rounds-down", with_steps(lambda n, b, e: e * n // b),
                "You rounded down, so the last step of a broken epoch is made but not accounted "
                "for. A promise has to count every step: round up."),
        Mistake("rounds-each-epoch", with_steps(lambda n, b, e: e * math.ceil(n / b)),
                "You rounded up in each epoch, as a data loader does that ends an epoch with a "
                "small batch. Poisson sampling has no such batch: round once, at the end."),
        Mistake("rounds-to-nearest", with_steps(lambda n, b, e: round(e * n / b)),
                "You rounded to the nearest whole number, which sometimes forgets a step that is "
                "made. A promise has to count every step: round up."),
        Mistake("rounds-a-float-up", with_steps(lambda n, b, e: math.ceil(e / (b / n))),
                "Nearly: epochs / q is sometimes a last bit above a whole number, and then "
                "rounding up adds a step that is not made. Divide whole numbers: people times "
                "epochs over batch."),
        Mistake("rate-upside-down", with_rate(lambda n, b, e, steps: n / b),
                "Your rate stands on its head. It is the chance that a given person is in a given "
                "batch, so it is never above 1."),
        Mistake("rate-over-all-epochs", with_rate(lambda n, b, e, steps: e * b / n),
                "You multiplied the rate by the epochs. The rate is the chance to be in one "
                "batch; how often batches are drawn is what the number of steps says."),
        Mistake("rate-of-all-steps", with_rate(lambda n, b, e, steps: 1 / steps),
                "Your rate is one over all the steps. It has nothing to do with how long the "
                "training runs: it is the share of the people that one batch takes."),
        Mistake("swapped", lambda people, batch, epochs:
                steps_and_rate(people, batch, epochs)[::-1],
                "Steps and rate have changed places: first the number of steps, then the rate."),
    ),
    hints=(
        "A batch takes batch/people of the data on average. How many such batches are one epoch, "
        "and how many are all the epochs?",
        "T is epochs times people over batch; round it up with math.ceil, once. q is the chance "
        "that a given person is in a given batch.",
    ),
    lesson="At q = 0.25, sigma = 4 and delta = 1e-5, 40 steps cost an epsilon of 1.65, and the "
           "400 of the slip 5.86 (add/remove, Poisson): a slip in T is one in epsilon.",
)


# -------------------------------------------------------------------------------------------- 5.3

def gaussian_loss(x, noise_multiplier):
    return (2 * x - 1) / (2 * noise_multiplier**2)


def privacy_loss(x, noise_multiplier, sampling_rate, direction):
    with np.errstate(divide="ignore"):
        stays = np.log1p(-sampling_rate)
    loss = np.logaddexp(stays, np.log(sampling_rate) + gaussian_loss(x, noise_multiplier))
    return loss if direction == "remove" else -loss


def privacy_loss_by_cases(x, noise_multiplier, sampling_rate, direction):
    """The larger of the two terms of the sum is taken out before the exponential."""
    losses = []
    for z in gaussian_loss(x, noise_multiplier):
        if z > 0:
            loss = z + math.log(sampling_rate + (1 - sampling_rate) * math.exp(-z))
        elif sampling_rate < 1:
            loss = math.log(1 - sampling_rate + sampling_rate * math.exp(z))
        else:
            loss = z
        losses.append(loss if direction == "remove" else -loss)
    return losses


def privacy_loss_by_log_densities(x, noise_multiplier, sampling_rate, direction):
    near, far = (stats.norm(middle, noise_multiplier).logpdf(x) for middle in (1, 0))
    weights = np.array([[1 - sampling_rate], [sampling_rate]])
    with np.errstate(divide="ignore"):
        log_p = special.logsumexp([far, near], axis=0, b=weights)
    return (log_p - far) * (1 if direction == "remove" else -1)


def loss_with(remove):
    """A wrong loss: remove(z, q) instead of log(1 - q + q e^z), and its negative for "add"."""
    def wrong(x, noise_multiplier, sampling_rate, direction):
        loss = remove(gaussian_loss(x, noise_multiplier), sampling_rate)
        return loss if direction == "remove" else -loss
    return wrong


def loss_of(exponent):
    """A wrong loss whose exponent is exponent(x, sigma) instead of (2x - 1) / (2 sigma^2)."""
    def wrong(x, noise_multiplier, sampling_rate, direction):
        z = exponent(x, noise_multiplier)
        with np.errstate(divide="ignore"):
            loss = np.logaddexp(np.log1p(-sampling_rate), np.log(sampling_rate) + z)
        return loss if direction == "remove" else -loss
    return wrong


def log_mixture(z, rate):
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log1p(-rate), np.log(rate) + z)


def loss_overflows(z, rate):
    with np.errstate(all="ignore"):
        return np.log(1 - rate + rate * np.exp(z))


def loss_underflows(x, noise_multiplier, sampling_rate, direction):
    with np.errstate(all="ignore"):
        near, far = (stats.norm(middle, noise_multiplier).pdf(x) for middle in (1, 0))
        loss = np.log(((1 - sampling_rate) * far + sampling_rate * near) / far)
    return loss if direction == "remove" else -loss


def loss_mirrored(x, noise_multiplier, sampling_rate, direction):
    z = gaussian_loss(x, noise_multiplier)
    return log_mixture(z if direction == "remove" else -z, sampling_rate)


def privacy_loss_cases(rng):
    cases = []
    for direction in ("remove", "add"):
        cases += [
            {"x": np.array([-1.0, 0.0, 0.5, 1.0, 3.0]), "noise_multiplier": 2.0,
             "sampling_rate": 0.1},
            {"x": np.array([-400.0, 400.0]), "noise_multiplier": 0.5, "sampling_rate": 0.25},
            {"x": np.array([-2.0, 0.25, 4.0]), "noise_multiplier": 0.8, "sampling_rate": 1.0},
            {"x": np.array([]), "noise_multiplier": 1.0, "sampling_rate": 0.5},
        ]
        noise, rate = rng.uniform(0.6, 3), rng.uniform(0.02, 0.4)
        cases.append({"x": rng.normal(0.5, noise, 20), "noise_multiplier": noise,
                      "sampling_rate": rate})
        for case in cases:
            case.setdefault("direction", direction)
    return cases


PRIVACY_LOSS = Exercise(
    "5.3", "The privacy loss of one step", 2, function="privacy_loss", right=privacy_loss,
    others=(privacy_loss_by_cases, privacy_loss_by_log_densities),
    parts=(Exact(privacy_loss_cases),),
    mistakes=(
        Mistake("sign-flipped", lambda **case: -privacy_loss(**case),
                "The signs are the other way round. A large x speaks for the data with the person, "
                "so in the direction \"remove\", where she is in the data, the loss is positive "
                "there."),
        Mistake("same-in-both-directions",
                lambda direction, **case: privacy_loss(direction="remove", **case),
                "You give the same loss in both directions. For \"add\" the data are those without "
                "the person, and the density without her stands above the line."),
        Mistake("mirrored-exponent", loss_mirrored,
                "For \"add\" you turned the sign inside the exponent. That swaps the two normal "
                "laws, but the laws that are seen are a mixture and a normal law: turn the sign "
                "of the whole logarithm."),
        Mistake("no-sampling", loss_with(lambda z, q: z),
                "This is the loss without sampling, as if the person were in the batch for "
                "certain. She is there with chance q only: the density with her is a mixture."),
        Mistake("rate-times-loss", loss_with(lambda z, q: q * z),
                "You multiplied the unsampled loss by q. That averages the logarithm; the density "
                "is averaged first and the logarithm comes after. Where x is large the loss is "
                "nearly the unsampled one less log(1/q), whatever q is."),
        Mistake("not-in-the-batch-forgotten", loss_with(lambda z, q: np.log(q) + z),
                "You kept only the case in which the person is in the batch. With chance 1 - q she "
                "is not, and then x comes from the law without her: that term keeps the loss above "
                "log(1 - q)."),
        Mistake("one-not-one-minus-q", loss_with(lambda z, q: np.logaddexp(0, np.log(q) + z)),
                "Your mixture weighs 1 + q in all. The chances of not being in the batch and of "
                "being in it are 1 - q and q."),
        Mistake("rate-swapped", loss_with(lambda z, q: log_mixture(z, 1 - q)),
                "Your weights are swapped: q is the chance that the person is in the batch, and "
                "belongs to the law around 1."),
        Mistake("sigma-not-squared", loss_of(lambda x, sigma: (2 * x - 1) / (2 * sigma)),
                "The exponent of a normal density is divided by twice the variance, that is by "
                "2 sigma squared; you divided by 2 sigma."),
        Mistake("two-forgotten", loss_of(lambda x, sigma: (2 * x - 1) / sigma**2),
                "A factor of two: the exponent of a normal density is -(x - m)^2 / (2 sigma^2)."),
        Mistake("middle-forgotten", loss_of(lambda x, sigma: x / sigma**2),
                "The two normal laws are equally likely at x = 1/2, half-way between their "
                "centres, so there the loss must be 0. Square out (x - 1)^2: a 1 stays behind."),
        Mistake("shift-of-two", loss_of(lambda x, sigma: (2 * x - 2) / sigma**2),
                "You moved the law by 2, as for replace-one, where one vector goes and another "
                "comes. Under add/remove one vector of norm at most C comes or goes: the shift is "
                "1, in units of C."),
        Mistake("ratio-not-log",
                lambda **case: np.exp(privacy_loss(**case)),
                "This is the ratio of the densities itself. The privacy loss is its natural "
                "logarithm, so that losses of steps add up."),
        Mistake("logarithm-to-base-2",
                lambda **case: privacy_loss(**case) / np.log(2),
                "This is the logarithm to base 2. Epsilon is measured with the natural logarithm."),
        Mistake("exponential-overflows", loss_with(loss_overflows),
                "Right near the middle, but far out the exponential is more than a float holds, or "
                "nothing at all. np.logaddexp(a, b) gives log(e^a + e^b) without that."),
        Mistake("densities-underflow", loss_underflows,
                "Right near the middle, but far out both densities are 0 in floating point, and "
                "0/0 is not a number. Simplify the logarithm on paper first, then compute."),
    ),
    hints=(
        "Divide the two densities on paper: the ratio of P to Q is (1 - q) + q e^z with z = "
        "(2x - 1) / (2 sigma^2). Which direction wants which of the two above the line?",
        "The logarithm of a sum of two exponentials is np.logaddexp of the two exponents; here "
        "these are log(1 - q) and log(q) + z.",
    ),
    lesson="In the direction \"remove\" the loss never falls below log(1 - q), in the direction "
           "\"add\" it never rises above -log(1 - q): the two directions are different "
           "mechanisms, and an accountant has to look at both.",
)


# -------------------------------------------------------------------------------------------- 5.4

def renyi_divergence(order, noise_multiplier, sampling_rate):
    k = np.arange(order + 1)
    binomial = special.gammaln(order + 1) - special.gammaln(k + 1) - special.gammaln(order - k + 1)
    logs = (binomial + k * np.log(sampling_rate) + (order - k) * np.log1p(-sampling_rate)
            + k * (k - 1) / (2 * noise_multiplier**2))
    return special.logsumexp(logs) / (order - 1)


def renyi_by_logaddexp(order, noise_multiplier, sampling_rate):
    total = -math.inf
    for k in range(order + 1):
        log_chance = stats.binom(order, sampling_rate).logpmf(k)
        total = np.logaddexp(total, log_chance + k * (k - 1) / 2 / noise_multiplier**2)
    return total / (order - 1)


def renyi_by_largest(order, noise_multiplier, sampling_rate):
    terms = [math.log(math.comb(order, k)) + k * math.log(sampling_rate)
             + (order - k) * math.log(1 - sampling_rate) + (k * k - k) / (2 * noise_multiplier**2)
             for k in range(order + 1)]
    largest = max(terms)
    return (largest + math.log(sum(math.exp(term - largest) for term in terms))) / (order - 1)


def log_moment(order, sigma, q, *, exponent=None, keep=slice(None), binomial=True):
    """Log of the binomial sum, with one thing wrong in it."""
    k = np.arange(order + 1)
    logs = k * np.log(q) + (order - k) * np.log1p(-q)
    if binomial:
        logs = logs + special.gammaln(order + 1) - special.gammaln(k + 1)
        logs = logs - special.gammaln(order - k + 1)
    logs = logs + (k * (k - 1) / (2 * sigma**2) if exponent is None else exponent(k, sigma))
    return special.logsumexp(logs[keep])


def renyi_with(**changes):
    def wrong(order, noise_multiplier, sampling_rate):
        return log_moment(order, noise_multiplier, sampling_rate, **changes) / (order - 1)
    return wrong


def renyi_overflows(order, noise_multiplier, sampling_rate):
    k = np.arange(order + 1)
    with np.errstate(all="ignore"):
        terms = (special.comb(order, k) * sampling_rate**k * (1 - sampling_rate) ** (order - k)
                 * np.exp(k * (k - 1) / (2 * noise_multiplier**2)))
        return np.log(np.sum(terms)) / (order - 1)


def renyi_not_log(order, noise_multiplier, sampling_rate):
    with np.errstate(over="ignore"):
        return np.exp(log_moment(order, noise_multiplier, sampling_rate)) / (order - 1)


def renyi_cases(rng):
    # Logarithms of the terms are right to about 1e-11, and no answer is below 1e-3, so that the
    # tolerance of 1e-9 lets rounding pass and no mistake.
    cases = [(2, 2.0, 0.1), (8, 1.0, 0.05), (32, 1.15, 0.02), (200, 0.6, 0.02), (3, 0.7, 0.9)]
    for _ in range(3):
        cases.append((int(rng.integers(3, 40)), rng.uniform(0.7, 3), rng.uniform(0.05, 0.4)))
    return [{"order": order, "noise_multiplier": noise, "sampling_rate": rate}
            for order, noise, rate in cases]


RENYI = Exercise(
    "5.4", "One number for each order", 3, function="renyi_divergence", right=renyi_divergence,
    others=(renyi_by_logaddexp, renyi_by_largest),
    parts=(Exact(renyi_cases, proof="the values agree with the sum at small and large orders"),),
    mistakes=(
        Mistake("not-divided", lambda order, noise_multiplier, sampling_rate:
                log_moment(order, noise_multiplier, sampling_rate),
                "This is the logarithm of the moment. The Renyi divergence divides by order - 1, "
                "which makes divergences of all orders comparable: of a plain Gaussian it is then "
                "order / (2 sigma^2)."),
        Mistake("divided-by-order", lambda order, noise_multiplier, sampling_rate:
                log_moment(order, noise_multiplier, sampling_rate) / order,
                "You divided by the order. The definition divides by order - 1."),
        Mistake("order-off-by-one", lambda order, noise_multiplier, sampling_rate:
                log_moment(order + 1, noise_multiplier, sampling_rate) / order,
                "This is the divergence of the next order. The mean of (P/Q)^order under Q is what "
                "counts; under P it would be one order more (the moments accountant of Abadi et "
                "al. 2016 counts its orders that way)."),
        Mistake("k-squared", renyi_with(exponent=lambda k, s: k**2 / (2 * s**2)),
                "Your exponent is k^2 / (2 sigma^2). The k-th power of e^z with z = (2x - 1) / "
                "(2 sigma^2) has mean e^(k(k-1) / (2 sigma^2)) under Q: for k = 1 it must be 1."),
        Mistake("sigma-not-squared", renyi_with(exponent=lambda k, s: k * (k - 1) / (2 * s)),
                "Your exponent has sigma where its square belongs: the variance of the noise is "
                "sigma squared."),
        Mistake("two-forgotten", renyi_with(exponent=lambda k, s: k * (k - 1) / s**2),
                "A factor of two in the exponent: it is k(k - 1) over 2 sigma^2."),
        Mistake("rate-swapped", lambda order, noise_multiplier, sampling_rate:
                log_moment(order, noise_multiplier, 1 - sampling_rate) / (order - 1),
                "q and 1 - q are swapped. The power k counts how many times the factor of a person "
                "who is in the batch occurs, so q has the power k."),
        Mistake("binomial-forgotten", renyi_with(binomial=False),
                "The binomial coefficients are missing: a product of `order` brackets has many "
                "terms with the same k."),
        Mistake("starts-at-one", renyi_with(keep=slice(1, None)),
                "The sum starts at k = 0, the case of never being in the batch. You started at 1."),
        Mistake("ends-too-early", renyi_with(keep=slice(None, -1)),
                "The sum ends at k = order, so there are order + 1 terms: np.arange(order) stops "
                "one before."),
        Mistake("linear-amplification", lambda order, noise_multiplier, sampling_rate:
                sampling_rate * order / (2 * noise_multiplier**2),
                "You multiplied the divergence without sampling by q. Sampling helps more than "
                "that at low orders (there it goes with q^2) and far less at high ones."),
        Mistake("small-rate-formula", lambda order, noise_multiplier, sampling_rate:
                sampling_rate**2 * order / noise_multiplier**2,
                "This is the rule of thumb q^2 order / sigma^2. It holds only for small q, large "
                "sigma and low orders, and outside it is no bound: the sum is exact."),
        Mistake("no-sampling", lambda order, noise_multiplier, sampling_rate:
                order / (2 * noise_multiplier**2),
                "This is the divergence without sampling: the rate does not enter. It is the "
                "answer for q = 1 only."),
        Mistake("not-the-logarithm", renyi_not_log,
                "The logarithm is missing. It turns the products of composition into sums, which "
                "is why Renyi divergences of steps add up."),
        Mistake("logarithm-to-base-2", lambda **case: renyi_divergence(**case) / np.log(2),
                "This is the logarithm to base 2. Epsilon is measured with the natural logarithm."),
        Mistake("sum-overflows", renyi_overflows,
                "Right for low orders, but at a high one a term is more than a float holds. Add in "
                "logarithms: np.logaddexp, or take the largest exponent out before you add."),
    ),
    hints=(
        "(1 - q + q e^z)^order is a power of a sum of two: expand it by the binomial theorem. "
        "Under Q, x is normal around 0, and the mean of e^(kz) is e^(k(k-1) / (2 sigma^2)).",
        "Make an array of the logarithms of all terms, k = 0 to order: log of the binomial "
        "coefficient + k log q + (order - k) log(1 - q) + k(k - 1) / (2 sigma^2). Then add them "
        "with np.logaddexp.reduce, and divide by order - 1.",
    ),
    lesson="At high orders the last term of the sum outgrows all others, and what is left is the "
           "divergence without sampling, order / (2 sigma^2), less a little more than log(1/q): "
           "there sampling hardly helps. At low orders it helps by about q^2.",
)


# -------------------------------------------------------------------------------------------- 5.5

def best_epsilon(orders, divergences, steps, delta):
    orders = np.asarray(orders, float)
    epsilons = (steps * np.asarray(divergences) + np.log1p(-1 / orders)
                - np.log(delta * orders) / (orders - 1))
    return max(0.0, epsilons.min())


def best_epsilon_loop(orders, divergences, steps, delta):
    best = math.inf
    for order, divergence in zip(orders, divergences, strict=True):
        price = math.log((order - 1) / order) + (math.log(1 / delta) - math.log(order)) / (
            order - 1)
        best = min(best, steps * divergence + price)
    return best if best > 0 else 0


def best_epsilon_by_inverse(orders, divergences, steps, delta):
    """delta = e^((order - 1)(spent - epsilon)) (1 - 1/order)^(order - 1) / order, for epsilon."""
    s = np.array(orders) - 1.0
    log_factor = s * np.log(s / (s + 1)) - np.log(s + 1)
    return np.clip(steps * np.array(divergences) + (log_factor - np.log(delta)) / s, 0, None).min()


def price(orders, delta):
    return np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)


def epsilon_with(spent=None, cost=price, pick=np.min):
    """A wrong epsilon: spent(divergences, steps) + cost(orders, delta), then pick among them."""
    def wrong(orders, divergences, steps, delta):
        total = steps * divergences if spent is None else spent(divergences, steps)
        return max(0.0, pick(total + cost(orders, delta)))
    return wrong


def smallest_divergence_first(orders, divergences, steps, delta):
    epsilons = steps * divergences + price(orders, delta)
    return max(0.0, epsilons[np.argmin(divergences)])


def epsilon_cases(rng):
    orders = np.array([1.25, 1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128])
    shuffled = rng.permutation(orders)
    noise, steps = rng.uniform(2, 20), int(rng.integers(2, 40))
    plain = {"orders": shuffled, "divergences": shuffled / (2 * noise**2), "steps": steps,
             "delta": 1e-6}
    whole = np.array([64, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 32])
    sampled = np.array([renyi_divergence(int(order), 1.15, 0.02) for order in whole])
    odd = [2.0, 3.5, 5.0]
    return [
        {"orders": whole, "divergences": sampled, "steps": 500, "delta": 1e-5},
        plain,
        {"orders": np.array([8.0]), "divergences": np.array([0.05]), "steps": 7, "delta": 1e-3},
        {"orders": orders, "divergences": orders / 2e5, "steps": 3, "delta": 0.1},
        {"orders": np.array(odd), "divergences": rng.uniform(0.01, 0.3, 3), "steps": 11,
         "delta": 1e-5},
    ]


BEST_EPSILON = Exercise(
    "5.5", "From Rényi to epsilon", 2, function="best_epsilon", right=best_epsilon,
    others=(best_epsilon_loop, best_epsilon_by_inverse),
    parts=(Exact(epsilon_cases, proof="the values agree for one step and for many, and where the "
                                      "formula is negative"),),
    mistakes=(
        Mistake("steps-forgotten", epsilon_with(lambda rho, T: rho),
                "The number of steps does not enter. The divergence that you were given is that of "
                "one step; those of independent steps add up."),
        Mistake("root-of-steps", epsilon_with(lambda rho, T: np.sqrt(T) * rho),
                "You multiplied by the root of the steps. At a fixed order divergences simply add; "
                "the famous root comes out later, because the best order moves."),
        Mistake("converts-each-step",
                lambda orders, divergences, steps, delta:
                max(0.0, (steps * (divergences + price(orders, delta))).min()),
                "You converted one step and multiplied its epsilon by the steps: that is "
                "basic composition. Compose in Renyi divergences, and convert once, at the end."),
        Mistake("delta-split",
                lambda orders, divergences, steps, delta:
                best_epsilon(orders, divergences, steps, delta / steps),
                "You divided delta among the steps. The conversion happens once, after all steps, "
                "so it may use the whole delta."),
        Mistake("log-delta-sign",
                epsilon_with(cost=lambda a, d: np.log1p(-1 / a) + np.log(d * a) / (a - 1)),
                "A smaller delta must cost more epsilon. With your sign it costs less: delta is "
                "below 1, so its logarithm is negative, and there is a minus before it."),
        Mistake("divided-by-order",
                epsilon_with(cost=lambda a, d: np.log1p(-1 / a) - np.log(d * a) / a),
                "You divided by the order. The logarithm of delta is divided by order - 1, since "
                "delta falls like e^(-(order - 1) epsilon)."),
        Mistake("older-conversion",
                epsilon_with(cost=lambda a, d: -np.log(d) / (a - 1)),
                "That is Mironov's conversion of 2017, T times the divergence + log(1/delta) / "
                "(order - 1). It holds, but gives more than needed: the exercise asks for the "
                "sharper one, with its two terms in the order."),
        Mistake("term-in-the-order-forgotten",
                epsilon_with(cost=lambda a, d: -np.log(d * a) / (a - 1)),
                "The term log(1 - 1/order) is missing. What you have is a valid bound, but not the "
                "one asked for: the term is negative and helps."),
        Mistake("order-in-delta-forgotten",
                epsilon_with(cost=lambda a, d: np.log1p(-1 / a) - np.log(d) / (a - 1)),
                "Inside the logarithm stands delta times the order; you have delta alone. That "
                "holds too, but gives more epsilon than needed."),
        Mistake("logarithm-to-base-10",
                epsilon_with(cost=lambda a, d:
                             np.log1p(-1 / a) - np.log10(d * a) / (a - 1)),
                "You took the logarithm of delta to base 10, and so promise too little epsilon. "
                "All logarithms here are natural ones."),
        Mistake("maximum", epsilon_with(pick=np.max),
                "You took the largest epsilon. The bound of each order holds by itself, so you may "
                "quote the smallest of them."),
        Mistake("average", epsilon_with(pick=np.mean),
                "You averaged over the orders. The bound of each order holds by itself: quote the "
                "smallest."),
        Mistake("first-order", epsilon_with(pick=lambda epsilons: epsilons[0]),
                "You used the first order of the list only. Which order is best depends on T and "
                "delta: compute the epsilon of each and take the smallest."),
        Mistake("last-order", epsilon_with(pick=lambda epsilons: epsilons[-1]),
                "You used the last order of the list only, perhaps because a loop overwrites its "
                "result. Compute the epsilon of each order and take the smallest."),
        Mistake("smallest-divergence", smallest_divergence_first,
                "You picked the order with the smallest divergence and converted that one. Low "
                "orders have small divergences and a dear conversion: convert each order first, "
                "then take the smallest epsilon."),
        Mistake("negative",
                lambda orders, divergences, steps, delta:
                (steps * divergences + price(orders, delta)).min(),
                "A negative epsilon. For a large delta and little spending the formula falls below "
                "0; no promise is better than epsilon = 0, so cut there."),
    ),
    hints=(
        "For one order: steps times divergence, plus the two terms in delta and the order. Each "
        "order gives an epsilon that holds.",
        "epsilons = steps * divergences + np.log(1 - 1 / orders) - np.log(delta * orders) / "
        "(orders - 1), all as arrays. Then the smallest, and never below 0.",
    ),
    lesson="Which order is best depends on T, sigma and delta: few steps and a small delta want a "
           "high order, many steps a low one. Minimising over the orders costs nothing, since "
           "the bounds of all of them hold at once.",
)


# -------------------------------------------------------------------------------------------- 5.6

def attackers_bound(p, q, delta):
    tail_p, tail_q = (np.cumsum(masses[::-1]) for masses in (p, q))
    return math.log(max(1.0, np.max((tail_p - delta) / tail_q)))


def attackers_bound_loop(p, q, delta):
    best = 0.0
    for k in range(len(p)):
        gain = sum(p[k:]) - delta
        if gain > 0:
            best = max(best, math.log(gain / sum(q[k:])))
    return best


def attackers_bound_matrix(p, q, delta):
    regions = np.triu(np.ones((len(p), len(p))))
    with np.errstate(all="ignore"):
        bounds = np.log(regions @ p - delta) - np.log(regions @ q)
    return max(0, np.nanmax(np.append(bounds, 0.0)))


def tails(masses):
    return np.cumsum(masses[::-1])[::-1]


def attack_with(ratio):
    """A wrong bound: the largest of ratio(P's tails, Q's tails, delta), cut and in logarithms."""
    def wrong(p, q, delta):
        return math.log(max(1.0, np.max(ratio(tails(p), tails(q), delta))))
    return wrong


def attack_not_cut(p, q, delta):
    return math.log(np.max((tails(p) - delta) / tails(q)))


def attack_not_a_number(p, q, delta):
    with np.errstate(all="ignore"):
        return np.maximum(0.0, np.max(np.log((tails(p) - delta) / tails(q))))


def attack_nan_as_zero(p, q, delta):
    bound = attack_not_a_number(p, q, delta)
    return 0.0 if math.isnan(bound) else bound


def attack_sorted(p, q, delta):
    order = np.argsort(p / q)
    return attackers_bound(p[order], q[order], delta)


def attack_at(place):
    def wrong(p, q, delta):
        k = place(p, q)
        return math.log(max(1.0, (tails(p)[k] - delta) / tails(q)[k]))
    return wrong


def attack_cases(rng):
    cases = [{"p": np.array([0.2, 0.3, 0.3, 0.2]), "q": np.array([0.4, 0.4, 0.16, 0.04]),
              "delta": 0.15},
             {"p": np.array([0.25, 0.5, 0.25]), "q": np.array([0.25, 0.5, 0.25]), "delta": 0.01},
             {"p": np.array([0.5, 0.5]), "q": np.array([0.75, 0.25]), "delta": 0.0},
             {"p": np.array([0.4, 0.05, 0.1, 0.45]), "q": np.array([0.1, 0.35, 0.4, 0.15]),
              "delta": 0.2}]
    for shift, delta in ((1.0, 1e-5), (rng.uniform(0.5, 2), 1e-3), (rng.uniform(0.5, 2), 0.02)):
        edges = np.concatenate([[-np.inf], np.linspace(-5, 5 + shift, 60), [np.inf]])
        p, q = (np.diff(stats.norm.cdf(edges - middle)) for middle in (shift, 0))
        cases.append({"p": p / p.sum(), "q": q / q.sum(), "delta": delta})
    return cases


ATTACK = Exercise(
    "5.6", "What an attacker proves", 2, function="attackers_bound", right=attackers_bound,
    others=(attackers_bound_loop, attackers_bound_matrix),
    # Tails taken as 1 - cumsum are off by some 1e-16, and Q of the best region is above 1e-8.
    parts=(Exact(attack_cases, tolerance=1e-7, proof="the values agree, at every delta tried"),),
    mistakes=(
        Mistake("delta-forgotten", attack_with(lambda P, Q, d: P / Q),
                "delta does not enter. An (epsilon, delta) promise forgives a mass of delta, so "
                "only what P(A) has beyond delta proves anything; without that the far tail seems "
                "to refute every epsilon."),
        Mistake("delta-added", attack_with(lambda P, Q, d: (P + d) / Q),
                "You added delta to P(A). The promise is P(A) <= e^epsilon Q(A) + delta: bring "
                "delta to the left side, and its sign turns."),
        Mistake("delta-taken-from-q", attack_with(lambda P, Q, d: P / (Q + d)),
                "You put delta on the side of Q. In P(A) <= e^epsilon Q(A) + delta it is not "
                "multiplied by e^epsilon, so it belongs to P(A), with a minus."),
        Mistake("swapped", lambda p, q, delta: attackers_bound(q, p, delta),
                "P and Q are swapped: the tails you look at are likelier under P, so P belongs "
                "above the line."),
        Mistake("lower-tails", lambda p, q, delta: attackers_bound(p[::-1], q[::-1], delta),
                "Your regions are the lower tails. There P is the smaller one; the attacker says "
                "\"she is in\" when the output is at the threshold or above."),
        Mistake("single-outcomes", lambda p, q, delta:
                math.log(max(1.0, np.max((p - delta) / q))),
                "You compared single outcomes. delta is then taken from each small mass, and most "
                "of the evidence is lost: a region collects many outcomes, and pays delta once."),
        Mistake("middle-threshold-only", attack_at(lambda p, q: len(p) // 2),
                "You tried one threshold, in the middle. Each threshold gives a lower bound that "
                "holds; take the best of all."),
        Mistake("chooses-without-delta", attack_at(lambda p, q: np.argmax(tails(p) / tails(q))),
                "You chose the threshold with the largest P(A)/Q(A), and only then subtracted "
                "delta. That is the far tail, where delta eats everything: subtract first, then "
                "choose."),
        Mistake("complement-below", attack_with(lambda P, Q, d: (P - d) / np.maximum(1 - Q, 1e-300)
                                                * (Q < 1)),
                "You divided by 1 - Q(A). That is the chance of a true negative; what stands below "
                "the line is the chance of a false alarm, Q(A)."),
        Mistake("divides-by-p", attack_with(lambda P, Q, d: (P - d) / P),
                "You divided by P(A), and so never find anything: what matters is how much "
                "likelier A is under P than under Q."),
        Mistake("difference", lambda p, q, delta: max(0.0, np.max(tails(p) - tails(q)) - delta),
                "You took the largest difference P(A) - Q(A). Epsilon is about ratios: the "
                "difference tells the delta that would be needed at epsilon = 0."),
        Mistake("mean-of-the-loss", lambda p, q, delta: max(0.0, float(np.sum(p * np.log(p / q)))),
                "This is the mean of the privacy loss. An average over outcomes proves no bound at "
                "a given delta; a region does."),
        Mistake("ratio-not-log", lambda p, q, delta: math.exp(attackers_bound(p, q, delta)),
                "This is e to the epsilon. Epsilon is its natural logarithm."),
        Mistake("negative", attack_not_cut,
                "A negative bound, where no region proves anything. That epsilon is at least 0 is "
                "known anyway: the answer is never below it."),
        Mistake("not-a-number", attack_not_a_number,
                "Where P(A) is at most delta the logarithm does not exist, and np.max then returns "
                "nan. Such a region proves nothing: leave it out, or take the largest ratio before "
                "the logarithm."),
        Mistake("not-a-number-became-0", attack_nan_as_zero,
                "Where P(A) is at most delta the logarithm does not exist; np.max of all is then "
                "nan, and max(0, nan) is 0 in Python. Take the largest ratio first, and only then "
                "the logarithm."),
        Mistake("sorted-first", attack_sorted,
                "You sorted the outcomes by p/q first. That is the best attacker there is (Neyman "
                "and Pearson), but the regions asked for are thresholds in the given order."),
    ),
    hints=(
        "Solve P(A) <= e^epsilon Q(A) + delta for epsilon. The regions A are the last one, the "
        "last two, the last three outcomes, and so on.",
        "np.cumsum(p[::-1]) holds P of all these regions, the smallest first. Take the largest of "
        "(P(A) - delta) / Q(A), at least 1, and then the logarithm.",
    ),
    lesson="No proof can promise less than what one attacker achieves. Where this number and an "
           "accountant's meet, the accountant is exact; in notebook 12 such attackers are real "
           "ones, and their masses are counted.",
)


# -------------------------------------------------------------------------------------------- 5.7

def cell_of(losses, grid):
    return np.clip(np.searchsorted(grid, losses, side="right") - 1, 0, len(grid) - 2)


def onto_grid(losses, masses, grid):
    low = cell_of(losses, grid)
    share = np.expm1(grid[low] - losses) / np.expm1(grid[low] - grid[low + 1])
    moved = np.zeros(len(grid))
    np.add.at(moved, low, masses * (1 - share))
    np.add.at(moved, low + 1, masses * share)
    return moved


def onto_grid_loop(losses, masses, grid):
    moved = [0.0] * len(grid)
    for loss, mass in zip(losses, masses, strict=True):
        k = 0
        while k < len(grid) - 2 and grid[k + 1] < loss:
            k += 1
        share = (1 - math.exp(grid[k] - loss)) / (1 - math.exp(grid[k] - grid[k + 1]))
        moved[k] += mass * (1 - share)
        moved[k + 1] += mass * share
    return moved


def onto_grid_by_equations(losses, masses, grid):
    """For each loss the two linear equations, both divided by e^(-loss) where Q stands."""
    moved = np.zeros(len(grid))
    for loss, mass in zip(losses, masses, strict=True):
        k = cell_of(loss, grid)
        keeps = np.array([[1.0, 1.0], np.exp(loss - grid[k : k + 2])])
        moved[k : k + 2] += np.linalg.solve(keeps, [mass, mass])
    return moved


def grid_with(share, weigh=lambda mass, loss, low, high: mass):
    """A wrong split: share(loss, low, high) goes to the upper grid point."""
    def wrong(losses, masses, grid):
        low = cell_of(losses, grid)
        ends = losses, grid[low], grid[low + 1]
        with np.errstate(all="ignore"):
            up, mass = share(*ends), weigh(masses, *ends)
            moved = np.zeros(len(grid))
            np.add.at(moved, low, mass * (1 - up))
            np.add.at(moved, low + 1, mass * up)
        return moved
    return wrong


def chord(loss, low, high):
    return np.expm1(low - loss) / np.expm1(low - high)


def rounded_up(loss, low, high):
    return np.where(loss > low, 1.0, 0.0)


def keeps_q_only(losses, masses, grid):
    moved = np.zeros(len(grid))
    low = cell_of(losses, grid)
    up = low + rounded_up(losses, grid[low], grid[low + 1]).astype(int)
    np.add.at(moved, up, masses * np.exp(grid[up] - losses))
    return moved


def once_for_each_point(losses, masses, grid):
    moved = np.zeros(len(grid))
    low = cell_of(losses, grid)
    share = chord(losses, grid[low], grid[low + 1])
    moved[low] += masses * (1 - share)
    moved[low + 1] += masses * share
    return moved


def assigns(losses, masses, grid):
    moved = np.zeros(len(grid))
    for loss, mass in zip(losses, masses, strict=True):
        k = cell_of(loss, grid)
        share = chord(loss, grid[k], grid[k + 1])
        moved[k], moved[k + 1] = mass * (1 - share), mass * share
    return moved


def grid_cases(rng):
    cases = [
        {"losses": np.array([0.25]), "masses": np.array([1.0]), "grid": np.array([0.0, 1.0])},
        {"losses": np.array([-0.9, 0.1, 0.2, 0.2, 1.7]),
         "masses": np.array([0.1, 0.3, 0.2, 0.1, 0.3]), "grid": np.array([-1.0, 0.0, 1.0, 2.0])},
        {"losses": np.array([-1.0, 0.0, 2.0]), "masses": np.array([0.2, 0.5, 0.3]),
         "grid": np.array([-1.0, 0.0, 1.0, 2.0])},
        {"losses": np.array([800.25, 800.5, 801.75]), "masses": np.array([0.5, 0.25, 0.25]),
         "grid": np.array([800.0, 801.0, 802.0])},
    ]
    grid = np.arange(-8, 13) * rng.uniform(0.1, 0.5)
    losses = rng.uniform(grid[0], grid[-1], 60)
    cases.append({"losses": losses, "masses": rng.dirichlet(np.ones(60)), "grid": grid})
    return cases


ONTO_GRID = Exercise(
    "5.7", "Losses onto a grid, on the safe side", 3, function="onto_grid", right=onto_grid,
    others=(onto_grid_loop, onto_grid_by_equations),
    parts=(Exact(grid_cases, proof="P and Q keep their masses, also at grid points and at large "
                                   "losses"),),
    mistakes=(
        Mistake("rounds-up", grid_with(rounded_up),
                "You moved each loss up to the next grid point. That is safe, but Q loses mass, "
                "and over many steps half a grid cell a step adds up to a large epsilon. Splitting "
                "between both ends is as safe and far closer."),
        Mistake("rounds-down", grid_with(lambda loss, low, high: np.where(loss < high, 0.0, 1.0)),
                "You moved each loss down. Then the losses are smaller than the truth, and so is "
                "the epsilon: no promise may rest on that."),
        Mistake("rounds-to-nearest",
                grid_with(lambda loss, low, high: np.where(loss - low < high - loss, 0.0, 1.0)),
                "You moved each loss to the nearest grid point. That is a good guess and no bound: "
                "half of the losses get smaller."),
        Mistake("linear-share", grid_with(lambda loss, low, high: (loss - low) / (high - low)),
                "You split in proportion to the distance, so that the mean of the loss stays as it "
                "is. What must stay is the mass of Q, a mean of e^(-loss): with your split Q "
                "gets too heavy, and delta can come out too small."),
        Mistake("half-and-half", grid_with(lambda loss, low, high:
                                           np.where((loss > low) & (loss < high), 0.5,
                                                    np.where(loss < high, 0.0, 1.0))),
                "You gave half to each end, wherever the loss lies. P keeps its mass so, but Q "
                "does not: the share has to depend on the loss."),
        Mistake("ends-swapped", grid_with(lambda loss, low, high: 1 - chord(loss, low, high)),
                "The two shares are swapped: a loss near the lower grid point should leave most "
                "of its mass there."),
        Mistake("exponent-sign",
                grid_with(lambda loss, low, high: np.expm1(loss - low) / np.expm1(high - low)),
                "Your split keeps the mean of e^(+loss). The mass of Q at a loss is that of P "
                "times e^(-loss): turn the sign in the exponents."),
        Mistake("share-not-divided",
                grid_with(lambda loss, low, high: -np.expm1(low - loss)),
                "Your share is 1 - e^(low - loss), which is not 1 where the loss is the upper grid "
                "point itself. Solve both equations: it has to be divided by the same for high."),
        Mistake("masses-of-q",
                grid_with(chord, lambda mass, loss, low, high: mass * np.exp(-loss)),
                "These are masses of Q. The shares are right; they are shares of the given masses, "
                "which are those of P."),
        Mistake("keeps-q-only", keeps_q_only,
                "You moved each loss up and changed its mass so that Q keeps its own. But then P "
                "has more than 1 in all: two things must be kept, so two shares are needed."),
        Mistake("added-once", once_for_each_point,
                "Some mass is lost where several losses share a cell: moved[index] += ... with an "
                "array of indices adds only the last of equal ones. np.add.at(moved, index, ...) "
                "or a loop adds them all."),
        Mistake("overwrites", assigns,
                "A later loss overwrites what an earlier one left at the same grid point. Add to "
                "what is there."),
        Mistake("exponentials-underflow",
                grid_with(lambda loss, low, high: (np.exp(-low) - np.exp(-loss))
                          / (np.exp(-low) - np.exp(-high))),
                "Right for small losses, but e^(-800) is 0 in floating point, and 0/0 is not a "
                "number. Only differences of losses matter: divide above and below by e^(-low)."),
    ),
    hints=(
        "Two unknowns, the masses at `low` and at `high`; two equations: they add up to the mass, "
        "and with the weights e^(-low) and e^(-high) to the mass times e^(-loss).",
        "The share of the upper end is (1 - e^(low - loss)) / (1 - e^(low - high)). "
        "np.searchsorted(grid, losses, side=\"right\") - 1 is the place of `low`; for a loss at "
        "the very end of the grid take the last cell.",
    ),
    lesson="Keeping P and Q both makes the new pair harder to hide in than the old one at every "
           "epsilon, so an epsilon computed on the grid is a promise (Doroshenko et al. 2022), "
           "and its error falls with the square of the spacing.",
)


# -------------------------------------------------------------------------------------------- 5.8

def composed_delta(masses, low, spacing, steps, epsilon):
    total = masses
    for _ in range(steps - 1):
        total = np.convolve(total, masses)
    losses = steps * low + spacing * np.arange(len(total))
    return np.sum(total * np.maximum(0, -np.expm1(epsilon - losses)))


def composed_delta_fourier(masses, low, spacing, steps, epsilon):
    size = steps * (len(masses) - 1) + 1
    total = np.fft.irfft(np.fft.rfft(masses, size) ** steps, size)
    losses = steps * low + spacing * np.arange(size)
    above = losses > epsilon
    return total[above].sum() - np.exp(epsilon) * (total[above] * np.exp(-losses[above])).sum()


def composed_delta_by_dict(masses, low, spacing, steps, epsilon):
    total = {0: 1.0}
    for _ in range(steps):
        after = {}
        for place, mass in total.items():
            for k, more in enumerate(masses):
                after[place + k] = after.get(place + k, 0.0) + mass * more
        total = after
    delta = 0.0
    for place, mass in total.items():
        loss = steps * low + place * spacing
        if loss > epsilon:
            delta += mass * (1 - math.exp(epsilon - loss))
    return delta


def folded(masses, times):
    total = np.ones(1)
    for _ in range(times):
        total = np.convolve(total, masses)
    return total


def hockey_stick(masses, losses, epsilon):
    return float(np.sum(masses * np.maximum(0, -np.expm1(epsilon - losses))))


def delta_with(total=folded, losses=None, weigh=hockey_stick):
    """A wrong delta: total(masses, steps), losses(low, spacing, steps, size), or the weights."""
    def wrong(masses, low, spacing, steps, epsilon):
        composed = total(masses, steps)
        if losses is None:
            at = steps * low + spacing * np.arange(len(composed))
        else:
            at = losses(low, spacing, steps, len(composed))
        return weigh(composed, at, epsilon)
    return wrong


def wrapped_around(masses, steps):
    return np.fft.irfft(np.fft.rfft(masses) ** steps, len(masses))


def same_size(masses, steps):
    total = masses
    for _ in range(steps - 1):
        total = np.convolve(total, masses, mode="same")
    return total


def doubled(masses, steps):
    total = masses
    for _ in range(steps - 1):
        total = np.convolve(total, total)
    return total


def delta_cases(rng):
    # Every answer that is not 0 is above 1e-4, so that the tolerance of 1e-9, absolute and
    # relative, is far above the rounding of a Fourier transform (1e-16) and below any mistake.
    half = np.array([1, np.e]) / (1 + np.e)
    cases = [{"masses": half, "low": -1.0, "spacing": 2.0, "steps": 3, "epsilon": 1.5},
             {"masses": half, "low": -1.0, "spacing": 2.0, "steps": 3, "epsilon": 3.0},
             {"masses": half, "low": -1.0, "spacing": 2.0, "steps": 1, "epsilon": 0.5}]
    for steps in (2, 5):
        count, spacing = 15, rng.uniform(0.1, 0.3)
        low = -spacing * 6
        losses = low + spacing * np.arange(count)
        masses = np.exp(-((losses - 0.2) ** 2) / 0.5) * rng.uniform(0.8, 1.2, count)
        cases.append({"masses": masses / masses.sum(), "low": low, "spacing": spacing,
                      "steps": steps, "epsilon": rng.uniform(0.1, 0.9)})
    return cases


COMPOSED = Exercise(
    "5.8", "The losses of many steps", 3, function="composed_delta", right=composed_delta,
    others=(composed_delta_fourier, composed_delta_by_dict),
    parts=(Exact(delta_cases, proof="the values agree, for one step and for several"),),
    mistakes=(
        Mistake("tail-probability",
                delta_with(weigh=lambda m, losses, e: m[losses > e].sum()),
                "You took the chance that the loss is above epsilon. That is enough for a promise, "
                "but more than the smallest delta: a loss a little above epsilon counts only a "
                "little, with weight 1 - e^(epsilon - loss)."),
        Mistake("not-cut",
                delta_with(weigh=lambda m, losses, e: np.sum(m * -np.expm1(e - losses))),
                "Your sum runs over all losses, also those below epsilon, whose weight is "
                "negative: there the attacker would rather not say anything. Only losses above "
                "epsilon count."),
        Mistake("cut-at-the-end",
                delta_with(weigh=lambda m, losses, e: max(0.0, np.sum(m * -np.expm1(e - losses)))),
                "You cut the whole sum at 0, not each of its terms. A loss below epsilon adds "
                "nothing, and takes nothing away either."),
        Mistake("weight-without-the-loss",
                delta_with(weigh=lambda m, losses, e:
                           m[losses > e].sum() - np.exp(e) * m[losses > e].sum()),
                "You subtracted e^epsilon times the mass of P. The second term is a mass of Q, and "
                "that is P's times e^(-loss), for each loss by itself."),
        Mistake("wrong-side",
                delta_with(weigh=lambda m, losses, e: np.sum(m * np.maximum(0, -np.expm1(losses - e)
                                                                            ))),
                "You weigh the losses below epsilon, with the sign in the exponent turned. What "
                "breaks a promise are losses above epsilon."),
        Mistake("excess-of-the-loss",
                delta_with(weigh=lambda m, losses, e: np.sum(m * np.maximum(0, losses - e))),
                "You weigh each loss by how far it exceeds epsilon. The weight is 1 - "
                "e^(epsilon - loss), which is close to that for small excesses but never above 1."),
        Mistake("sum-of-deltas", lambda masses, low, spacing, steps, epsilon:
                steps * hockey_stick(masses, low + spacing * np.arange(len(masses)), epsilon),
                "You added up the delta of each step at the full epsilon. Losses add up first: "
                "several steps together exceed epsilon though none does alone."),
        Mistake("basic-composition", lambda masses, low, spacing, steps, epsilon:
                steps * hockey_stick(masses, low + spacing * np.arange(len(masses)),
                                     epsilon / steps),
                "This is basic composition: epsilon / steps for each, and the deltas added. It "
                "holds, but it gives more than the sum of losses, which is exact."),
        Mistake("all-steps-alike",
                delta_with(total=lambda m, steps: m,
                           losses=lambda low, spacing, steps, size:
                           steps * (low + spacing * np.arange(size))),
                "You multiplied the losses of one step by the number of steps, as if the same loss "
                "came each time. The steps have noise of their own: convolve, and large and small "
                "losses balance."),
        Mistake("powers-of-masses",
                delta_with(total=lambda m, steps: m**steps,
                           losses=lambda low, spacing, steps, size:
                           steps * (low + spacing * np.arange(size))),
                "You took the masses to the power of steps. That is the chance of the very same "
                "loss each time; the sum can come about in many other ways, which a convolution "
                "counts."),
        Mistake("one-step-too-many", delta_with(total=lambda m, steps: folded(m, steps + 1),
                                                losses=lambda low, spacing, steps, size:
                                                (steps + 1) * low + spacing * np.arange(size)),
                "One step too many: starting from the masses of one step, steps - 1 convolutions "
                "are left to do."),
        Mistake("grid-starts-at-low",
                delta_with(losses=lambda low, spacing, steps, size:
                           low + spacing * np.arange(size)),
                "Your grid starts at low. The smallest sum of `steps` losses is steps times low."),
        Mistake("grid-spacing-grows",
                delta_with(losses=lambda low, spacing, steps, size:
                           steps * (low + spacing * np.arange(size))),
                "You stretched the grid by the number of steps. A convolution has more grid points "
                "at the same distance; only the start moves, to steps times low."),
        Mistake("wraps-around", delta_with(total=wrapped_around),
                "Your Fourier transform is as short as one step's masses, so that sums beyond the "
                "end come in again at the beginning. Give it room: steps * (n - 1) + 1 points."),
        Mistake("cut-to-one-step", delta_with(total=same_size,
                                              losses=lambda low, spacing, steps, size:
                                              low + spacing * np.arange(size)),
                "You kept the length of one step (mode=\"same\"), which throws the largest sums "
                "away, the ones that matter. Keep the whole convolution."),
        Mistake("doubles-each-time",
                delta_with(total=doubled,
                           losses=lambda low, spacing, steps, size:
                           2 ** (steps - 1) * low + spacing * np.arange(size)),
                "You convolve the result with itself each time, so the number of steps doubles: "
                "1, 2, 4, 8. Convolve with the masses of one step."),
    ),
    hints=(
        "np.convolve(a, b) holds the masses of the sum of two independent losses. Its first entry "
        "belongs to the sum of the two smallest losses.",
        "After steps - 1 convolutions entry k belongs to the loss steps * low + spacing * k. Add "
        "up mass times (1 - e^(epsilon - loss)), only where the loss is above epsilon.",
    ),
    lesson="That is a privacy-loss accountant. coursekit's adds three things: it convolves by "
           "Fourier transforms, tilts the masses so that a delta of 1e-30 keeps its digits, and "
           "counts what rounding and the ends of the grid cost.",
)


# -------------------------------------------------------------------------------------------- 5.9

REPORT = Exercise(
    "5.9", "A colleague's report", 3,
    rubric=(
        "1 point: the closed form is no bound. With T = 1500, q = 0.02 and sigma = 1.15 it gives "
        "3.23; but even for Poisson batches (add/remove) the smallest epsilon at delta = 1e-5 is "
        "3.72, and Renyi gives 4.08. One accountant with its number is enough. 1 point: shuffled "
        "batches are no Poisson samples, so no accountant for q = 0.02 speaks about this run. A "
        "remedy counts too: draw Poisson batches, or claim only what holds if each person is in "
        "one batch an epoch (30 Gaussian releases, epsilon 31 under zero-out adjacency). 1 point, "
        "for any two: adjacency not stated (replace-one doubles the sensitivity); sampler, T and "
        "accountant not stated; delta is only 4 times below 1/n, so n delta = 0.25; a low epsilon "
        "is no safety from every attack; the other runs, if the best of several was kept, spend "
        "too."
    ),
)

EXERCISES = (CHOICE, STEPS_AND_RATE, PRIVACY_LOSS, RENYI, BEST_EPSILON, ATTACK, ONTO_GRID,
             COMPOSED, REPORT)
