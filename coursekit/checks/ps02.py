"""Checks of problem set 02, the Laplace mechanism.

Each exercise: our answer, other right answers, the mistakes as code, and the parts of the check.
A mistake in the scale of the noise shows in a `Law`; a mistake in what is counted or summed shows
in an `Exact` part whose epsilon is so large (HARDLY_PRIVATE) that no noise is left to see.
"""

from fractions import Fraction

import numpy as np
from scipy import stats

from coursekit.checks.exercise import (
    GENERIC,
    Exact,
    Exercise,
    Independent,
    Law,
    Mistake,
    Randomness,
    Separate,
    choice,
    dependence_mistake,
    randomness_mistakes,
)

# Noise of scale up to 200 / HARDLY_PRIVATE leaves the tolerance NEARLY with chance exp(-5e5).
HARDLY_PRIVATE = 1e14
NEARLY = 1e-6
WITHOUT_NOISE = "at a huge epsilon the true answer is left"
ADVICE = ("Call your function 10,000 times on one data set and look at the mean and the standard "
          "deviation of the answers: Laplace noise of scale b moves the mean by 0 and has a "
          "standard deviation of b times the root of 2. If you rounded, or moved the answer into "
          "a range: a release may do that, but here the noisy number itself is wanted.")


def laplace(scale, middle=0.0):
    return stats.laplace(middle, scale)


def gaussian(scale):
    """The normal law with the standard deviation of Laplace noise of this scale."""
    return stats.norm(0, np.sqrt(2) * scale)


def uniform(scale):
    """The uniform law with the standard deviation of Laplace noise of this scale."""
    half_width = np.sqrt(6) * scale
    return stats.uniform(-half_width, 2 * half_width)


def tails(case, noise, scale, calls, shape=()):
    """Laplace noise passes 4 scales with chance e^-4; where it never does, it was cut off."""
    return Law(case, stats.bernoulli(np.exp(-4)), {"cut-off": stats.bernoulli(1e-9)}, shape=shape,
               noise=lambda answers, case: np.ravel(np.abs(noise(answers, case)) > 4 * scale),
               count=calls, advice="Look at how often your noise is far out.")


def cut_off(wrong):
    return Mistake("cut-off", wrong,
                   "Your noise never goes far out. The far tails are what keeps the ratio of the "
                   "two densities bounded: where one data set's noise ends, a release is possible "
                   "for its neighbour only, and no finite epsilon holds.")


def exact_on_special_data(wrong):
    return Mistake("exact-on-special-data", wrong,
                   "On some data sets (nobody there, no flag set, all of them, a single category) "
                   "your answer carries no noise. Those need it too: an answer that is exact "
                   "there, and only there, tells that the data are such.")


def special(**case):
    return Randomness(case, everywhere=True, mistake="exact-on-special-data")


# -------------------------------------------------------------------------------------------- 2.1

CHOICE = choice(
    "2.1", "A release without a proof", right="c", points=1,
    reasons={
        "a": "A guarantee belongs to the law of the released number, not to the name or the "
             "intention of whoever wrote the line. Compare the law on two neighbouring data sets: "
             "how far apart are the two means, measured in standard deviations of the noise?",
        "b": "Far out, the densities of two shifted Gaussians have a ratio beyond every bound, "
             "since the exponent is a square. Sensitivity over epsilon is the rule for the scale "
             "of Laplace noise; a Gaussian never gives pure epsilon-DP, for any epsilon (notebook "
             '02, "Why not the normal law?").',
        "d": "An average of many people still moves when one of them changes, and whoever knows "
             "the other 999 ages subtracts them. Without noise the answer is exact: no finite "
             "epsilon holds.",
        "e": "The noise alone says nothing. Its size counts against the sensitivity, and that "
             "comes from the bounds on an age: without them one replaced age can move the mean "
             "by any amount (notebook 02, \"A mistake: 'noise without sensitivity'\").",
    },
    hints=(
        "How far can the mean move when one of 1000 ages in [0, 100] is replaced? Compare that "
        "with the standard deviation of the noise.",
        "The line is a mechanism with a name, only not the one that notebook 02 derives. What kind "
        "of guarantee does its noise give, pure or with a delta?",
    ),
    lesson="The line is a Gaussian mechanism whose noise is as wide as its sensitivity, 100/1000, "
           "and (4.38, 1e-5)-DP; what it lacks is a stated adjacency, bounds and sensitivity, so "
           "that a reader could know it.",
)


# -------------------------------------------------------------------------------------------- 2.2

def privacy_loss(z, value, other, scale):
    return (np.abs(z - other) - np.abs(z - value)) / scale


def privacy_loss_by_log_density(z, value, other, scale):
    def log_density(x, middle):
        return -abs(x - middle) / scale - np.log(2 * scale)
    return [log_density(x, value) - log_density(x, other) for x in z]


def privacy_loss_by_clipping(z, value, other, scale):
    """The loss falls from one end to the other between the two centres, and is flat outside."""
    low, high = min(value, other), max(value, other)
    inside = np.clip(z, low, high)
    return np.sign(other - value) * (low + high - 2 * inside) / scale


def privacy_loss_by_underflow(z, value, other, scale):
    with np.errstate(all="ignore"):
        p = np.exp(-np.abs(z - value) / scale) / (2 * scale)
        q = np.exp(-np.abs(z - other) / scale) / (2 * scale)
        return np.log(p / q)


def privacy_loss_ratio(z, value, other, scale):
    with np.errstate(over="ignore"):
        return np.exp(privacy_loss(z, value, other, scale))


def privacy_loss_cases(rng):
    cases = [
        {"z": np.array([-1.0, 0.0, 0.5, 1.0, 3.0]), "value": 0.0, "other": 1.0, "scale": 2.0},
        {"z": np.array([39.0, 40.25, 41.0]), "value": 41.0, "other": 40.0, "scale": 0.5},
        {"z": np.array([-5000.0, 5000.0]), "value": 0.0, "other": 1.0, "scale": 1.0},
        {"z": np.array([2.0]), "value": -3.0, "other": -3.0, "scale": 4.0},
        {"z": np.array([]), "value": 0.0, "other": 1.0, "scale": 1.0},
    ]
    for sign in (-1, 1):
        value, scale = rng.uniform(-50, 50), rng.uniform(0.5, 5)
        other = value + sign * rng.uniform(1, 5)
        z = rng.laplace(value, scale, 20)
        cases.append({"z": z, "value": value, "other": other, "scale": scale})
    return cases


PRIVACY_LOSS = Exercise(
    "2.2", "The privacy loss of one release", 2, function="privacy_loss", right=privacy_loss,
    others=(privacy_loss_by_log_density, privacy_loss_by_clipping),
    parts=(Exact(privacy_loss_cases),),
    mistakes=(
        Mistake("sign-flipped", lambda **case: -privacy_loss(**case),
                "The sign is the other way round. A release close to `value` is evidence for "
                "`value`, so there the loss must be positive: which of the two densities stands "
                "above the line of the fraction?"),
        Mistake("gaussian-squares",
                lambda z, value, other, scale:
                ((z - other) ** 2 - (z - value) ** 2) / (2 * scale**2),
                "You squared the distances: that is the log ratio of two Gaussians. The exponent "
                "of a Laplace density holds a distance, not its square."),
        Mistake("times-scale",
                lambda z, value, other, scale:
                (np.abs(z - other) - np.abs(z - value)) * scale,
                "You multiplied by the scale. More noise must mean less loss: look again at where "
                "the scale stands in the exponent of the density."),
        Mistake("scale-forgotten",
                lambda z, value, other, scale: np.abs(z - other) - np.abs(z - value),
                "The scale of the noise does not enter your answer. The same release loses less "
                "privacy when the noise is wide: look at the exponent of the density."),
        Mistake("no-absolute-values",
                lambda z, value, other, scale: ((z - other) - (z - value)) / scale,
                "Without absolute values z drops out: your loss is the same for every release. "
                "The Laplace density falls on both sides of its middle (notebook 02, \"The "
                'derivation, line by line\").'),
        Mistake("absolute-at-the-end",
                lambda z, value, other, scale: np.abs(privacy_loss(z, value, other, scale)),
                "Your loss is never negative. It has a sign: a release may speak for `other`, and "
                "then the loss of `value` against it is below zero."),
        Mistake("ratio-not-log", privacy_loss_ratio,
                "This is the ratio of the densities itself. The privacy loss is its natural "
                "logarithm, so that losses add up and are compared with epsilon."),
        Mistake("logarithm-to-base-2",
                lambda z, value, other, scale:
                privacy_loss(z, value, other, scale) / np.log(2),
                "This is the logarithm to base 2. Epsilon is measured with the natural logarithm "
                "(the definition has e to the epsilon in it)."),
        Mistake("always-the-worst-case",
                lambda z, value, other, scale: np.full(np.shape(z), abs(value - other) / scale),
                "This is the largest loss that any release can have, given for every release. "
                "Between the two centres the loss is smaller: it depends on z."),
        Mistake("densities-underflow", privacy_loss_by_underflow,
                "Right near the middle, but far out both densities are 0 in floating point, and "
                "0/0 is not a number. Simplify the logarithm on paper first, then compute."),
    ),
    hints=(
        "Write down log p(z) for a Laplace density around `value`, and the same around `other`. "
        "Subtract: one term cancels.",
        "What is left are two distances from z, each over the scale. The distance to `value` "
        "comes with a minus, since it stands in the exponent of the density above the line.",
    ),
    lesson="By the triangle inequality the loss never leaves the range from -d to d with "
           "d = |value - other| / scale: that inequality is the whole proof of the Laplace "
           "mechanism.",
)


# -------------------------------------------------------------------------------------------- 2.3

def noisy_count(flags, epsilon, rng):
    return np.sum(flags) + rng.laplace(0, 1 / epsilon)


def noisy_count_inverse(flags, epsilon, rng):
    """Inverse of the distribution function: u in (-1/2, 1/2] gives -sign(u) log(1 - 2|u|) b."""
    u = 0.5 - rng.random()
    return np.count_nonzero(flags) - np.sign(u) * np.log1p(-2 * min(abs(u), 0.5 - 2**-54)) / epsilon


def noisy_count_exponentials(flags, epsilon, rng):
    total = 0
    for flag in flags:
        total += int(flag)
    return total + (rng.exponential() - rng.exponential()) / epsilon


def count_with(noise):
    """A wrong count: noise(people, epsilon, rng) instead of Laplace noise of scale 1/epsilon."""
    return lambda flags, epsilon, rng: np.sum(flags) + noise(len(flags), epsilon, rng)


def count_law(people, count, epsilon, calls):
    flags = np.arange(people) < count
    scale = 1 / epsilon
    wrong = {
        "epsilon-as-scale": laplace(epsilon),
        "factor-2": laplace(2 * scale),
        "half": laplace(scale / 2),
        "gaussian": gaussian(scale),
        "uniform": uniform(scale),
        "variance-for-scale": laplace(np.sqrt(scale / 2)),
        "deviation-for-scale": laplace(scale / np.sqrt(2)),
        # A sum of many independent Laplace draws is close to normal.
        "noise-for-each-record": gaussian(np.sqrt(people) * scale),
        "noise-for-each-yes": gaussian(np.sqrt(count) * scale),
        "one-sided": stats.expon(0, scale),
        "scale-from-data": laplace(people * scale),
        "scale-as-location": laplace(1, scale),
        "counts-everybody": laplace(scale, people - count),
        "mean-of-the-flags": laplace(scale, count / people - count),
    }
    return Law({"flags": flags, "epsilon": epsilon}, laplace(scale), wrong,
               noise=lambda answers, case: answers - count, count=calls, advice=ADVICE)


def count_cases(rng):
    sizes = (0, 1, 1, int(rng.integers(5, 60)))
    flags = [np.zeros(0, bool), np.array([True]), np.array([False]), rng.random(sizes[-1]) < 0.3]
    return [{"flags": f, "epsilon": HARDLY_PRIVATE} for f in flags]


NOISY_COUNT = Exercise(
    "2.3", "A noisy count", 2, function="noisy_count", right=noisy_count,
    others=(noisy_count_inverse, noisy_count_exponentials),
    parts=(
        Randomness({"flags": np.array([True, False, True]), "epsilon": 0.5}),
        count_law(people=20, count=8, epsilon=0.2, calls=20_000),
        count_law(people=30, count=25, epsilon=4, calls=3_000),
        tails({"flags": np.array([True, False]), "epsilon": 0.5},
              lambda answers, case: answers - 1, scale=2, calls=4_000),
        special(flags=np.zeros(0, bool), epsilon=0.5),
        special(flags=np.zeros(4, bool), epsilon=0.5),
        special(flags=np.ones(4, bool), epsilon=0.5),
        Exact(count_cases, tolerance=NEARLY, seeded=True, proof=WITHOUT_NOISE),
    ),
    mistakes=(
        Mistake("epsilon-as-scale", count_with(lambda n, epsilon, rng: rng.laplace(0, epsilon)),
                "Your noise grows with epsilon. A small epsilon is a strong promise and needs "
                'wide noise: see how the scale comes about in notebook 02, "The derivation, line '
                'by line".'),
        Mistake("factor-2", count_with(lambda n, epsilon, rng: rng.laplace(0, 2 / epsilon)),
                "Your noise is twice as wide as it must be. Replacing a record takes one flag "
                "away and brings another, but when a yes becomes a no the count moves by 1, not "
                "by 2."),
        Mistake("half", count_with(lambda n, epsilon, rng: rng.laplace(0, 0.5 / epsilon)),
                "Your noise is half as wide as it must be, so the promise that holds is twice the "
                "epsilon you were given. By how much can one person change the count?"),
        Mistake("gaussian",
                count_with(lambda n, epsilon, rng: rng.normal(0, np.sqrt(2) / epsilon)),
                "Your noise is Gaussian. However wide, it never gives pure epsilon-DP: far out, "
                "the ratio of two shifted Gaussian densities grows beyond every bound "
                '(notebook 02, "Why not the normal law?").'),
        Mistake("uniform",
                count_with(lambda n, epsilon, rng: rng.uniform(-1, 1) * np.sqrt(6) / epsilon),
                "Your noise is uniform. It ends somewhere, so there are releases that are "
                "possible for one data set and impossible for its neighbour: no finite epsilon "
                "holds."),
        Mistake("variance-for-scale",
                count_with(lambda n, epsilon, rng: rng.laplace(0, np.sqrt(0.5 / epsilon))),
                "The variance of your noise is what its scale ought to be. For the Laplace law "
                "the variance is 2 b squared; the rule of notebook 02 sets b itself."),
        Mistake("deviation-for-scale",
                count_with(lambda n, epsilon, rng: rng.laplace(0, np.sqrt(0.5) / epsilon)),
                "The standard deviation of your noise is what its scale ought to be. For the "
                "Laplace law the two differ by a factor of the root of 2; the rule sets the "
                "scale, which is also the second argument of rng.laplace."),
        Mistake("noise-for-each-record",
                count_with(lambda n, epsilon, rng: rng.laplace(0, 1 / epsilon, n).sum()),
                "You added noise for each record and then summed. Only one number is released, "
                "so one draw protects it; more draws make the answer worse for nothing."),
        Mistake("noise-for-each-yes",
                lambda flags, epsilon, rng: sum(1 + rng.laplace(0, 1 / epsilon) for _ in
                                                range(np.count_nonzero(flags))),
                "You added noise for each True flag. Only one number is released, so one draw "
                "protects it. Worse, the width of your noise depends on the data, and a count of "
                "0 comes out exactly."),
        Mistake("one-sided", count_with(lambda n, epsilon, rng: rng.exponential(1 / epsilon)),
                "Your noise is never negative. A release below the larger of two neighbouring "
                "counts then rules that count out for certain. The noise must fall on both "
                "sides."),
        Mistake("scale-from-data", count_with(lambda n, epsilon, rng: rng.laplace(0, n / epsilon)),
                "Your noise grows with the number of records. Sensitivity is what one person can "
                "change, not how large the answer is; and a scale read off the data tells "
                "something about the data."),
        Mistake("scale-as-location",
                count_with(lambda n, epsilon, rng: rng.laplace(1 / epsilon)),
                "Your noise is shifted and has scale 1 whatever epsilon is: the first argument of "
                "rng.laplace is the middle of the law, the second is the scale."),
        Mistake("mean-of-the-flags",
                lambda flags, epsilon, rng:
                (np.mean(flags) if len(flags) else 0) + rng.laplace(0, 1 / epsilon),
                "The noise is fine, but it stands on the fraction of True flags. The question is "
                "how many there are."),
        Mistake("counts-everybody",
                lambda flags, epsilon, rng: len(flags) + rng.laplace(0, 1 / epsilon),
                "The noise is fine, but it stands on the number of records. The question is how "
                "many of the flags are True."),
        cut_off(count_with(lambda n, epsilon, rng:
                           np.clip(rng.laplace(), -3.5, 3.5) / epsilon)),
        exact_on_special_data(lambda flags, epsilon, rng:
                              noisy_count(flags, epsilon, rng) if np.any(flags) else 0.0),
        *randomness_mistakes(noisy_count, lambda flags, epsilon: float(np.sum(flags))),
    ),
    hints=(
        "First without noise: how many flags are True, and by how much can one person change "
        "that number?",
        "The scale of the Laplace noise is sensitivity / epsilon, and rng.laplace(0, scale) "
        "draws it once.",
    ),
    lesson="One draw of scale 1/epsilon protects everybody in the count, whether twenty people "
           "are in it or twenty million: that is why large surveys pay so little for privacy.",
)


# -------------------------------------------------------------------------------------------- 2.4

def largest_size(lower, upper):
    return max(abs(lower), abs(upper))


def noisy_sum(values, lower, upper, epsilon, rng):
    return np.clip(values, lower, upper).sum() + rng.laplace(
        0, largest_size(lower, upper) / epsilon)


def noisy_sum_loop(values, lower, upper, epsilon, rng):
    noise = rng.exponential() - rng.exponential()
    total = 0.0
    for value in values:
        total += min(max(value, lower), upper)
    return total + noise * max(-lower, upper) / epsilon


def noisy_sum_inverse(values, lower, upper, epsilon, rng):
    bounded = np.where(values < lower, lower, np.where(values > upper, upper, values))
    sign = rng.choice([-1, 1])
    return bounded.sum() - sign * np.log(1 - rng.random()) * np.abs([lower, upper]).max() / epsilon


def sum_with(scale, noise=lambda scale, n, rng: rng.laplace(0, scale)):
    """A wrong sum: its noise has the scale scale(values, lower, upper, epsilon)."""
    def wrong(values, lower, upper, epsilon, rng):
        wide = scale(values, lower, upper, epsilon)
        return np.clip(values, lower, upper).sum() + noise(wide, len(values), rng)
    return wrong


def right_scale(values, lower, upper, epsilon):
    return largest_size(lower, upper) / epsilon


def noisy_sum_without_clipping(values, lower, upper, epsilon, rng):
    return np.sum(values) + rng.laplace(0, largest_size(lower, upper) / epsilon)


def noisy_sum_clips_the_sum(values, lower, upper, epsilon, rng):
    total = np.clip(np.sum(values), lower, upper)
    return total + rng.laplace(0, largest_size(lower, upper) / epsilon)


def noisy_sum_in_place(values, lower, upper, epsilon, rng):
    values[values < lower] = lower
    values[values > upper] = upper
    return noisy_sum(values, lower, upper, epsilon, rng)


# All values inside the bounds, and their sum too: here only the noise can be wrong.
INSIDE = {"values": np.array([-2.5, 0.5, 1.5, -1.0, 2.0, 0.0, -0.5, 1.0]),
          "lower": -4.0, "upper": 3.0, "epsilon": 0.5}
# Two values outside: here clipping shows.
OUTSIDE = {"values": np.array([25.0, 61.0, 44.0, 150.0, -20.0]),
           "lower": 0.0, "upper": 80.0, "epsilon": 2.0}


def sum_noise(answers, case):
    return answers - np.clip(case["values"], case["lower"], case["upper"]).sum()


def sum_law_inside():
    values, lower, upper, epsilon = INSIDE.values()
    scale = right_scale(**INSIDE)
    total, people = values.sum(), len(values)
    return Law(INSIDE, laplace(scale), {
        "epsilon-over-sensitivity": laplace(1 / scale),
        "factor-2": laplace(2 * scale),
        "width-for-size": laplace((upper - lower) / epsilon),
        "upper-only": laplace(abs(upper) / epsilon),
        "sensitivity-of-a-count": laplace(1 / epsilon),
        "sensitivity-from-data": laplace(np.abs(values).max() / epsilon),
        "gaussian": gaussian(scale),
        # A sum of many independent Laplace draws is close to normal.
        "noise-for-each-record": gaussian(np.sqrt(people) * scale),
        "divides-by-n": laplace(scale / people, total / people - total),
    }, noise=sum_noise, count=10_000, advice=ADVICE)


def sum_law_outside():
    values, lower, upper, _ = OUTSIDE.values()
    scale = right_scale(**OUTSIDE)
    true = np.clip(values, lower, upper).sum()
    return Law(OUTSIDE, laplace(scale), {
        "clipping-forgotten": laplace(scale, values.sum() - true),
        "clips-the-sum": laplace(scale, np.clip(values.sum(), lower, upper) - true),
        "drops-values-outside": laplace(
            scale, values[(values >= lower) & (values <= upper)].sum() - true),
    }, noise=sum_noise, count=5_000, advice=ADVICE)


def sum_cases(rng):
    bounds = [(0.0, 100.0), (-7.0, 2.0), (-9.0, -3.0), (10.0, 20.0)]
    cases = [{"values": np.array([]), "lower": -1.0, "upper": 1.0},
             {"values": np.array([500.0]), "lower": 0.0, "upper": 100.0},
             {"values": np.array([3, 3, -8]), "lower": 0, "upper": 5}]
    for lower, upper in bounds:
        values = rng.uniform(lower - 20, upper + 20, int(rng.integers(2, 30)))
        cases.append({"values": values, "lower": lower, "upper": upper})
    return [{**case, "epsilon": HARDLY_PRIVATE} for case in cases]


NOISY_SUM = Exercise(
    "2.4", "A noisy sum", 2, function="noisy_sum", right=noisy_sum,
    others=(noisy_sum_loop, noisy_sum_inverse),
    parts=(
        Randomness(INSIDE),
        sum_law_inside(),
        sum_law_outside(),
        tails(INSIDE, sum_noise, right_scale(**INSIDE), calls=4_000),
        special(**{**INSIDE, "values": np.array([])}),
        special(**{**INSIDE, "values": np.zeros(3)}),
        Exact(sum_cases, tolerance=NEARLY, seeded=True, proof=WITHOUT_NOISE),
    ),
    mistakes=(
        Mistake("clipping-forgotten", noisy_sum_without_clipping,
                "A value outside the bounds enters your sum as it is. The noise is made for "
                "values between lower and upper: one that lies beyond can move the sum further "
                'than the noise can hide (notebook 02, "A sum needs bounds").'),
        Mistake("clips-the-sum", noisy_sum_clips_the_sum,
                "You moved the sum into the bounds. They are bounds on one person's value: move "
                "each value first, then add."),
        Mistake("drops-values-outside",
                lambda values, lower, upper, epsilon, rng:
                noisy_sum(np.array([v for v in values if lower <= v <= upper]),
                          lower, upper, epsilon, rng),
                "You left out the values beyond the bounds. That is private too, but the exercise "
                "asks to move them to the nearest bound, so that everybody still counts."),
        Mistake("sensitivity-of-a-count",
                sum_with(lambda values, lower, upper, epsilon: 1 / epsilon),
                "Your noise is made for a count, which one person moves by 1. By how much can one "
                "person move this sum?"),
        Mistake("sensitivity-from-data",
                sum_with(lambda values, lower, upper, epsilon: np.abs(values).max() / epsilon),
                "Your noise is made for the largest value that occurs in the data. One person "
                "more can have a larger one, and the width of the noise would itself tell about "
                "the data. Only the bounds count, since they are known before anybody answers "
                '(notebook 02, "A sum needs bounds").'),
        Mistake("width-for-size",
                sum_with(lambda values, lower, upper, epsilon: (upper - lower) / epsilon),
                "Your noise is made for upper - lower: that is the sensitivity under replace-one, "
                "where a value moves from one bound to the other. Here a person comes or goes "
                "(add/remove): what is the most that one value can add or take away?"),
        Mistake("upper-only",
                sum_with(lambda values, lower, upper, epsilon: abs(upper) / epsilon),
                "Your noise is made for the upper bound alone. With bounds from -4 to 3 a person "
                "who comes or goes can move the sum further down than up."),
        Mistake("epsilon-over-sensitivity",
                sum_with(lambda *case: 1 / right_scale(*case)),
                "Your fraction stands on its head: the noise shrinks when one person matters "
                "more, and grows with epsilon. It must be the other way round."),
        Mistake("factor-2", sum_with(lambda *case: 2 * right_scale(*case)),
                "Your noise is twice as wide as it must be. Under add/remove one value comes or "
                "goes; no second one takes its place."),
        Mistake("gaussian", sum_with(right_scale, lambda scale, n, rng:
                                     rng.normal(0, np.sqrt(2) * scale)),
                "Your noise is Gaussian. However wide, it never gives pure epsilon-DP "
                "(exercise 2.1); this exercise asks for the Laplace mechanism."),
        Mistake("noise-for-each-record",
                sum_with(right_scale, lambda scale, n, rng: rng.laplace(0, scale, n).sum()),
                "You added noise to each value and then summed. Only the sum is released, so one "
                "draw protects it; more draws make the answer worse for nothing."),
        Mistake("divides-by-n",
                lambda values, lower, upper, epsilon, rng:
                noisy_sum(values, lower, upper, epsilon, rng) / max(len(values), 1),
                "You released a mean: the exercise asks for the sum. Dividing by the number of "
                "records uses that number exactly, and under add/remove it is private too "
                "(exercise 2.6)."),
        Mistake("changes-its-input", noisy_sum_in_place,
                next(m.message for m in GENERIC if m.name == "changes-its-input")),
        cut_off(lambda values, lower, upper, epsilon, rng:
                np.clip(values, lower, upper).sum() + np.clip(rng.laplace(), -3.5, 3.5)
                * largest_size(lower, upper) / epsilon),
        exact_on_special_data(lambda values, lower, upper, epsilon, rng:
                              noisy_sum(values, lower, upper, epsilon, rng)
                              if len(values) else 0.0),
        *randomness_mistakes(noisy_sum, lambda values, lower, upper, epsilon:
                             np.clip(values, lower, upper).sum()),
    ),
    hints=(
        "Two steps before any noise: move each value into the bounds, then add up. Now let one "
        "person leave: by how much can the sum change, at most, whoever it is?",
        "The person may hold the value `lower` or the value `upper`. Either may be negative: "
        "what matters is which of the two lies further from 0.",
    ),
    lesson="Bounds are a promise made before anybody looks at the data: they set the noise, and "
           "choosing them tight but honest is most of the craft.",
)


# -------------------------------------------------------------------------------------------- 2.5

def counts_of(values, categories):
    return np.array([list(values).count(category) for category in categories], dtype=float)


def noisy_histogram(values, categories, epsilon, rng):
    return counts_of(values, categories) + rng.laplace(0, 2 / epsilon, len(categories))


def noisy_histogram_by_dict(values, categories, epsilon, rng):
    noisy = {category: rng.laplace(0, 2 / epsilon) for category in categories}
    for value in values:
        noisy[value] += 1
    return list(noisy.values())


def noisy_histogram_matrix(values, categories, epsilon, rng):
    seen = np.array([[value == category for value in values] for category in categories])
    draws = rng.exponential(2 / epsilon, (len(categories), 2))
    return seen.reshape(len(categories), -1).sum(axis=1) + draws[:, 0] - draws[:, 1]


def histogram_with(scale, noise=lambda scale, bins, rng: rng.laplace(0, scale, bins)):
    """A wrong histogram: its noise has the scale scale(people, bins, epsilon)."""
    def wrong(values, categories, epsilon, rng):
        bins = len(categories)
        return counts_of(values, categories) + noise(scale(len(values), bins, epsilon), bins, rng)
    return wrong


def histogram_none_on_empty(values, categories, epsilon, rng):
    counts = counts_of(values, categories)
    return np.where(counts > 0, counts + rng.laplace(0, 2 / epsilon, len(counts)), 0)


def histogram_only_seen(values, categories, epsilon, rng):
    seen = [category for category in categories if category in values]
    return noisy_histogram(values, seen, epsilon, rng)


def histogram_alphabetical(values, categories, epsilon, rng):
    return noisy_histogram(values, sorted(categories), epsilon, rng)


def histogram_like_np_unique(values, categories, epsilon, rng):
    return noisy_histogram(values, sorted(set(values)), epsilon, rng)


def histogram_in_order_of_appearance(values, categories, epsilon, rng):
    return noisy_histogram(values, list(dict.fromkeys(values)), epsilon, rng)


def histogram_law(counts, epsilon, calls):
    """Categories in alphabetical order: only the noise can be wrong here."""
    categories = [f"ward {letter}" for letter in "abcdefgh"[: len(counts)]]
    values = [category for category, n in zip(categories, counts, strict=True) for _ in range(n)]
    scale, bins, people = 2 / epsilon, len(counts), len(values)
    wrong = {
        "scale-for-add-remove": laplace(scale / 2),
        "epsilon-split-over-bins": laplace(bins * scale),
        "bins-as-sensitivity": laplace(bins / epsilon),
        "epsilon-over-sensitivity": laplace(1 / scale),
        "gaussian": gaussian(scale),
        "scale-from-data": laplace(people / epsilon),
    }
    return Law({"values": values, "categories": categories, "epsilon": epsilon},
               laplace(scale), wrong, shape=(bins,), count=calls, advice=ADVICE,
               noise=lambda answers, case: (answers - np.array(counts)).ravel())


BLOOD_GROUPS = ["O+", "B+", "A+", "AB+", "O-", "B-", "A-", "AB-"]
NOBODY = {"values": [], "categories": BLOOD_GROUPS, "epsilon": 0.5}


def noise_itself(answers, case):
    return answers


def histogram_cases(rng):
    groups = list(rng.permutation(BLOOD_GROUPS))
    groups = [str(group) for group in groups]
    some = [groups[i] for i in rng.integers(0, 3, 40)]  # five groups stay empty
    cases = [{"values": ["B+", "A-", "O+", "B+", "A-", "A-"],
              "categories": ["O+", "B+", "AB-", "A-"]},
             {"values": [], "categories": ["O+", "A+"]},
             {"values": ["A+", "A+"], "categories": ["A+"]},
             {"values": some, "categories": groups}]
    return [{**case, "epsilon": HARDLY_PRIVATE} for case in cases]


NOISY_HISTOGRAM = Exercise(
    "2.5", "A noisy histogram", 2, function="noisy_histogram", right=noisy_histogram,
    others=(noisy_histogram_by_dict, noisy_histogram_matrix),
    parts=(
        Randomness({"values": ["O+", "B+"], "categories": ["O+", "B+"], "epsilon": 0.5}),
        # Eight draws agree to 1e-9 with chance far below 1e-9 (two of them: about 1e-9).
        Separate({"values": BLOOD_GROUPS, "categories": BLOOD_GROUPS, "epsilon": 0.5}),
        histogram_law((12, 9, 7, 2, 3), epsilon=0.5, calls=4_000),
        Separate(NOBODY, mistake="no-noise-on-empty-bins"),
        Exact(histogram_cases, tolerance=NEARLY, seeded=True, proof=WITHOUT_NOISE,
              allowed="at this huge epsilon it should be the number of values in each of "
                      "`categories`, in their order."),
        histogram_law((0, 5, 0, 0, 30, 1, 0, 0), epsilon=2.5, calls=1_000),
        tails(NOBODY, noise_itself, scale=4, calls=500, shape=(8,)),
        special(values=["O+"] * 3, categories=["O+"], epsilon=0.5),
        Independent(NOBODY, laplace(4), noise=noise_itself),
        Independent({**NOBODY, "categories": BLOOD_GROUPS[:3]}, laplace(4), noise=noise_itself),
    ),
    mistakes=(
        Mistake("scale-for-add-remove", histogram_with(lambda n, bins, epsilon: 1 / epsilon),
                "Your noise is made for one count that moves by 1: that is add/remove. Under "
                "replace-one a person can leave one category and enter another. How many counts "
                "move then, and by how much together?"),
        Mistake("one-draw-for-all",
                histogram_with(lambda n, bins, epsilon: 2 / epsilon,
                               lambda scale, bins, rng: rng.laplace(0, scale)),
                "All counts got the same noise, so the difference of any two is exact: nothing "
                "protects it. Each count needs a draw of its own."),
        Mistake("epsilon-split-over-bins",
                histogram_with(lambda n, bins, epsilon: 2 * bins / epsilon),
                "Your noise grows with the number of categories, as if epsilon were divided among "
                "them. A person stands in one category only, so a replaced record moves two "
                "counts, however many there are."),
        Mistake("bins-as-sensitivity", histogram_with(lambda n, bins, epsilon: bins / epsilon),
                "Your noise is made for a person who can change every count. A person stands in "
                "one category only: how many counts can move when one record is replaced?"),
        Mistake("epsilon-over-sensitivity", histogram_with(lambda n, bins, epsilon: epsilon / 2),
                "Your fraction stands on its head: the noise grows with epsilon, though a large "
                "epsilon is a weak promise and needs little noise."),
        Mistake("gaussian",
                histogram_with(lambda n, bins, epsilon: 2 / epsilon,
                               lambda scale, bins, rng: rng.normal(0, np.sqrt(2) * scale, bins)),
                "Your noise is Gaussian. However wide, it never gives pure epsilon-DP "
                "(exercise 2.1); this exercise asks for Laplace noise."),
        Mistake("scale-from-data", histogram_with(lambda n, bins, epsilon: n / epsilon),
                "Your noise grows with the number of records. Sensitivity is what one replaced "
                "record can change, not how large the counts are."),
        Mistake("no-noise-on-empty-bins", histogram_none_on_empty,
                "An empty category is released as an exact 0. The first person in it then shows "
                "for certain: a rare blood group is just where that hurts. Every count needs "
                "noise, the empty ones too."),
        Mistake("only-categories-seen", histogram_only_seen,
                "Your answer leaves out categories that nobody has. Which categories occur is a "
                "fact about the data: the answer has one number for each of `categories`."),
        Mistake("as-np-unique-gives-them", histogram_like_np_unique,
                "Your answer has only the categories that somebody has, and in alphabetical order "
                "(np.unique does both). Which categories occur is a fact about the data: the "
                "answer has one number for each of `categories`, in their order."),
        Mistake("order-of-appearance", histogram_in_order_of_appearance,
                "Your answer has the categories as they come up in the data (a Counter does "
                "that). Their order and their absence are facts about the data: the answer has "
                "one number for each of `categories`, in their order."),
        Mistake("alphabetical-order", histogram_alphabetical,
                "The counts are in alphabetical order (np.unique sorts, for instance). The answer "
                "must follow the order of `categories`."),
        cut_off(histogram_with(
            lambda people, bins, epsilon: 2 / epsilon,
            lambda scale, bins, rng: scale * np.clip(rng.laplace(size=bins), -3.5, 3.5))),
        exact_on_special_data(lambda values, categories, epsilon, rng:
                              noisy_histogram(values, categories, epsilon, rng)
                              if len(categories) > 1 else [len(values)]),
        dependence_mistake(
            lambda values, categories, epsilon, rng: counts_of(values, categories)
            + np.sort(rng.laplace(0, 2 / epsilon, len(categories)))),
        *randomness_mistakes(noisy_histogram, lambda values, categories, epsilon:
                             counts_of(values, categories)),
    ),
    hints=(
        "One person's blood group is corrected from A+ to B+. Which counts change, and by how "
        "much in total (the L1 distance)?",
        "Count for each of `categories`, the empty ones too, then add "
        "rng.laplace(0, scale, size): as many draws as there are categories. What you found in "
        "the first hint is the sensitivity.",
    ),
    lesson="A whole histogram costs no more than two of its counts, however many categories it "
           "has, because one person stands in one category only.",
)


# -------------------------------------------------------------------------------------------- 2.6

def noisy_sum_and_count(values, lower, upper, epsilon, rng):
    half = epsilon / 2
    total = np.clip(values, lower, upper).sum() + rng.laplace(
        0, largest_size(lower, upper) / half)
    return np.array([total, len(values) + rng.laplace(0, 1 / half)])


def noisy_sum_and_count_vector(values, lower, upper, epsilon, rng):
    truth = np.array([np.clip(values, lower, upper).sum(), len(values)])
    sensitivities = np.array([max(abs(lower), abs(upper)), 1])
    return truth + rng.laplace(size=2) * 2 * sensitivities / epsilon


def noisy_sum_and_count_first(values, lower, upper, epsilon, rng):
    """The count is drawn first; both come from the answers to exercises 2.3 and 2.4."""
    count = noisy_count_exponentials(np.ones(len(values), bool), epsilon / 2, rng)
    return [noisy_sum_loop(values, lower, upper, epsilon / 2, rng), count]


def pair_with(sum_scale, count_scale):
    """A wrong pair: its noise has the scales sum_scale(size, width, n, epsilon) and so on."""
    def wrong(values, lower, upper, epsilon, rng):
        case = largest_size(lower, upper), upper - lower, len(values), epsilon
        return np.array([
            np.clip(values, lower, upper).sum() + rng.laplace(0, sum_scale(*case)),
            len(values) + rng.laplace(0, count_scale(*case)),
        ])
    return wrong


def right_sum_scale(size, width, n, epsilon):
    return 2 * size / epsilon


def right_count_scale(size, width, n, epsilon):
    return 2 / epsilon


def pair_with_one_draw(values, lower, upper, epsilon, rng):
    draw = rng.laplace()
    size = largest_size(lower, upper)
    return np.array([np.clip(values, lower, upper).sum() + 2 * size / epsilon * draw,
                     len(values) + 2 / epsilon * draw])


def pair_without_clipping(values, lower, upper, epsilon, rng):
    noisy_sum, noisy_count = noisy_sum_and_count(values, lower, upper, epsilon, rng)
    return np.array([noisy_sum + (values - np.clip(values, lower, upper)).sum(), noisy_count])


PAIR = {"values": np.array([-2.5, 0.5, 1.5, -1.0, 20.0, 2.0, 0.0, -0.5, 1.0, -3.5]),
        "lower": -7.0, "upper": 3.0, "epsilon": 0.5}
PAIR_SUM = np.clip(PAIR["values"], PAIR["lower"], PAIR["upper"]).sum()
PAIR_COUNT = len(PAIR["values"])
PAIR_SUM_SCALE, PAIR_COUNT_SCALE = 28.0, 4.0


def pair_noise(answers, case):
    """The noise of both numbers, each in its own scales."""
    return (answers - [PAIR_SUM, PAIR_COUNT]) / [PAIR_SUM_SCALE, PAIR_COUNT_SCALE]


def pair_laws():
    """Three laws: of the sum's noise, of the count's, and of the larger of the two in scales.

    The last is (1 - exp(-x))^2 for independent draws, and 1 - exp(-x) if one is the other's
    shadow.
    """
    epsilon, size, width = PAIR["epsilon"], 7, 10
    for_sum = {
        "epsilon-not-split": laplace(size / epsilon),
        "epsilon-doubled": laplace(size / 2 / epsilon),
        "width-for-size": laplace(2 * width / epsilon),
        "sum-as-a-mean": laplace(PAIR_SUM_SCALE / PAIR_COUNT),
        "joint-sensitivity": laplace((size + 1) / epsilon),
        "same-scale-for-both": laplace(PAIR_COUNT_SCALE),
        "swapped": laplace(PAIR_COUNT_SCALE, PAIR_COUNT - PAIR_SUM),
        "clipping-forgotten": laplace(PAIR_SUM_SCALE, PAIR["values"].sum() - PAIR_SUM),
    }
    for_count = {
        "epsilon-not-split": laplace(1 / epsilon),
        "epsilon-doubled": laplace(0.5 / epsilon),
        "same-scale-for-both": laplace(PAIR_SUM_SCALE),
    }

    def larger(answers, case):
        return np.abs(pair_noise(answers, case)).max(axis=1)

    return (
        Law(PAIR, laplace(PAIR_SUM_SCALE), for_sum, shape=(2,), count=4_000, advice=ADVICE,
            noise=lambda answers, case: answers[:, 0] - PAIR_SUM),
        Law(PAIR, laplace(PAIR_COUNT_SCALE), for_count, shape=(2,), count=4_000,
            advice=ADVICE, noise=lambda answers, case: answers[:, 1] - PAIR_COUNT),
        Law(PAIR, stats.exponweib(2, 1), {"same-draw-for-both": stats.expon()}, shape=(2,),
            count=4_000, noise=larger,
            advice="Each noise has the right law, but the two are not independent of each other."),
    )


def holds_the_exact_count(answer):
    return bool(np.any(np.ravel(answer)[1:] == PAIR_COUNT))


NOISY_SUM_AND_COUNT = Exercise(
    "2.6", "A noisy sum and a noisy count", 3, function="noisy_sum_and_count",
    right=noisy_sum_and_count,
    others=(noisy_sum_and_count_vector, noisy_sum_and_count_first),
    parts=(
        Randomness(PAIR),
        # True values (0, 0). Two right draws agree to 1e-9 (1 + the larger) with chance at most
        # 1e-9 (1 + count scale) / sum scale = 1e-9 x 5/400.
        Separate({"values": np.array([]), "lower": -100.0, "upper": 100.0, "epsilon": 0.5},
                 mistake="same-draw-for-both"),
        # Noise of scale 2e9 leaves a count as it is with chance below 1e-9, even if rounded.
        Exact(lambda rng: [{**PAIR, "epsilon": 1e-9}], seeded=True, tidy=holds_the_exact_count,
              proof="the count is not exact"),
        *pair_laws()[:2],
        tails(PAIR, pair_noise, scale=1, calls=2_000, shape=(2,)),
        pair_laws()[2],
        special(**{**PAIR, "values": np.array([])}),
        Independent(PAIR, laplace(1), noise=pair_noise),
        Exact(sum_cases, tolerance=NEARLY, seeded=True, proof=WITHOUT_NOISE),
    ),
    mistakes=(
        Mistake("epsilon-not-split",
                pair_with(lambda size, width, n, epsilon: size / epsilon,
                          lambda size, width, n, epsilon: 1 / epsilon),
                "A release spends the whole epsilon, and so the two together spend more than was "
                "promised: epsilons add up (basic composition; notebook 02, \"The mean: "
                'a worked example, corrected").'),
        Mistake("epsilon-doubled",
                pair_with(lambda size, width, n, epsilon: size / (2 * epsilon),
                          lambda size, width, n, epsilon: 1 / (2 * epsilon)),
                "Each of the two releases spends twice epsilon. The budget is shared, so each has "
                "less than epsilon, and less epsilon means more noise, not less."),
        Mistake("count-left-exact",
                lambda values, lower, upper, epsilon, rng:
                np.array([noisy_sum(values, lower, upper, epsilon / 2, rng), len(values)]),
                "The count is released exactly. Under add/remove the number of people is private "
                "too: whoever knows it with and without Meera knows whether she took part."),
        Mistake("same-draw-for-both", pair_with_one_draw,
                "Both releases carry the same draw of noise. Weighed against each other, it "
                "cancels, and an exact combination of sum and count is left: each release needs a "
                "draw of its own."),
        Mistake("sum-as-a-mean",
                pair_with(lambda size, width, n, epsilon: 2 * size / max(n, 1) / epsilon,
                          right_count_scale),
                "The noise on your sum shrinks with the number of records, as for a mean with a "
                "public n. A sum is released here, and one person moves it just as far in a large "
                "survey as in a small one."),
        Mistake("width-for-size",
                pair_with(lambda size, width, n, epsilon: 2 * width / epsilon, right_count_scale),
                "Your sum's noise is made for upper - lower, the sensitivity under replace-one. "
                "Here a person comes or goes (add/remove), as in exercise 2.4."),
        Mistake("same-scale-for-both",
                pair_with(right_sum_scale, right_sum_scale),
                "Sum and count carry noise of the same scale. Each has a sensitivity of its own: "
                "by how much can one person change a sum of values in these bounds, and by how "
                "much a count?"),
        Mistake("joint-sensitivity",
                pair_with(lambda size, width, n, epsilon: (size + 1) / epsilon,
                          lambda size, width, n, epsilon: (size + 1) / epsilon),
                "You treated the pair as one vector and gave both numbers noise for its L1 "
                "sensitivity. That is private as well, but the count drowns in noise made for "
                "sums. The exercise asks for two releases with half of epsilon each."),
        Mistake("swapped",
                lambda **case: noisy_sum_and_count(**case)[::-1],
                "The two numbers stand in the wrong order: first the sum, then the count."),
        Mistake("clipping-forgotten", pair_without_clipping,
                "A value outside the bounds enters your sum as it is. The noise is made for "
                "values between lower and upper: move each value there first (exercise 2.4)."),
        cut_off(lambda values, lower, upper, epsilon, rng:
                np.array([np.clip(values, lower, upper).sum(), len(values)])
                + np.array([largest_size(lower, upper), 1]) * 2 / epsilon
                * np.clip(rng.laplace(size=2), -3.5, 3.5)),
        exact_on_special_data(lambda values, lower, upper, epsilon, rng:
                              noisy_sum_and_count(values, lower, upper, epsilon, rng)
                              * [len(values) > 0, 1]),
        dependence_mistake(lambda values, lower, upper, epsilon, rng:
                           np.array([np.clip(values, lower, upper).sum(), len(values)])
                           + np.array([largest_size(lower, upper), 1]) * 2 / epsilon
                           * rng.exponential(size=2) * rng.choice([-1, 1])),
        *randomness_mistakes(noisy_sum_and_count, lambda values, lower, upper, epsilon:
                             np.array([np.clip(values, lower, upper).sum(), len(values)])),
    ),
    hints=(
        "You have both parts already: exercises 2.3 and 2.4. What changes is the epsilon that "
        "each of them may spend.",
        "Basic composition: if the first release is epsilon/2-DP and the second too, the pair is "
        "epsilon-DP. Half the epsilon means a scale how many times as wide?",
    ),
    lesson="From these two numbers anybody may compute a mean at no further cost "
           "(post-processing), and nobody ever saw the exact number of people.",
)


# -------------------------------------------------------------------------------------------- 2.7

def discrete_laplace(scale, size, rng):
    """The difference of two geometric draws."""
    stop = -np.expm1(-1 / scale)
    return rng.geometric(stop, size) - rng.geometric(stop, size)


def discrete_laplace_inverse(scale, size, rng):
    """Inverse of the distribution function, on a table that leaves out less than 1e-30."""
    reach = int(70 * scale) + 2
    k = np.arange(-reach, reach + 1)
    p = np.exp(-1 / scale)
    chances = (1 - p) / (1 + p) * p ** np.abs(k)
    places = np.searchsorted(np.cumsum(chances), rng.random(size))
    return k[np.minimum(places, len(k) - 1)]


def discrete_laplace_rejection(scale, size, rng):
    """A sign and a magnitude, one number at a time; minus zero is thrown away."""
    draws = []
    while len(draws) < size:
        magnitude, sign = int(rng.exponential(scale)), rng.choice([-1, 1])
        if magnitude > 0 or sign > 0:
            draws.append(sign * magnitude)
    return draws


def magnitudes(p, size, rng):
    """Geometric draws 0, 1, 2, ... with P(k) proportional to p^k."""
    return rng.geometric(1 - p, size) - 1


def signs(size, rng):
    return rng.choice([-1, 1], size)


def decay(scale):
    return np.exp(-1 / scale)


def discrete_law_of(chance):
    """A law on the integers given by chance(k), an array; the cut-off leaves out less than 1e-30.

    The sum of `chance` must be 1.
    """
    k = np.arange(-400, 401)
    return stats.rv_discrete(values=(k, chance(k)))()


def discrete_law(scale, leave_out=()):
    p = decay(scale)

    def cell(cut):
        """P(a Laplace draw falls in [k + cut, k + cut + 1)), for each k."""
        cdf = stats.laplace(0, scale).cdf
        return discrete_law_of(lambda k: cdf(k + cut + 1) - cdf(k + cut))

    wrong = {
        "rounded-laplace": cell(-0.5),
        "floor-of-laplace": cell(0),
        "one-sided": stats.planck(1 / scale),
        "zero-counted-twice": discrete_law_of(
            lambda k: np.where(k == 0, 1 - p, (1 - p) * p ** np.abs(k) / 2)),
        "never-zero": discrete_law_of(
            lambda k: np.where(k == 0, 0, (1 - p) * p ** (np.abs(k) - 1.0) / 2)),
        "p-for-its-complement": stats.dlaplace(-np.log(1 - p)),
        "scale-in-the-wrong-place": stats.dlaplace(scale),
    }
    told = {name: law for name, law in wrong.items() if name not in leave_out}
    return Law({"scale": scale, "size": 1000}, stats.dlaplace(1 / scale), told, shape=(1000,),
               count=20, noise=lambda answers, case: answers.ravel(),
               advice="Compare the shares of 0, 1 and -1 in 100,000 draws of yours with the "
                      "formula.")


def beyond(k, scale):
    """P(|draw| > k) of the discrete Laplace law."""
    return 2 * decay(scale) ** (k + 1) / (1 + decay(scale))


def is_whole(answer):
    answer = np.asarray(answer, dtype=float)
    return bool(np.all(answer == np.rint(answer)))


DISCRETE_LAPLACE = Exercise(
    "2.7", "Noise in whole numbers", 3, function="discrete_laplace", right=discrete_laplace,
    others=(discrete_laplace_inverse, discrete_laplace_rejection),
    parts=(
        # Sixty draws of scale 2 agree with sixty others with chance below 0.2^60, and all with
        # each other with chance below 0.25^59.
        Randomness({"scale": 2.0, "size": 60}),
        Separate({"scale": 2.0, "size": 60}),
        Exact(lambda rng: [{"scale": 2.0, "size": 60}], seeded=True, tidy=is_whole,
              proof="all draws are whole numbers"),
        discrete_law(0.6),
        discrete_law(3.0, leave_out=("rounded-laplace",)),  # too alike at this scale
        Law({"scale": 2.0, "size": 1000}, stats.bernoulli(beyond(10, 2.0)),
            {"cut-off": stats.bernoulli(1e-9)}, shape=(1000,), count=20,
            noise=lambda draws, case: np.ravel(np.abs(draws) > 10),
            advice="Look at how often your draws are far out."),
        Independent({"scale": 2.0, "size": 8}, stats.dlaplace(1 / 2), noise=noise_itself),
        Independent({"scale": 2.0, "size": 3}, stats.dlaplace(1 / 2), noise=noise_itself),
    ),
    mistakes=(
        Mistake("not-whole", lambda scale, size, rng: rng.laplace(0, scale, size),
                "Your draws are not whole numbers. The discrete law lives on the integers: build "
                "it from draws that are integers from the start."),
        Mistake("rounded-laplace",
                lambda scale, size, rng: np.rint(rng.laplace(0, scale, size)).astype(int),
                "You rounded continuous Laplace noise. Close, but another law: zero comes too "
                "seldom. Work out P(0) for both: how much of the Laplace law lies between -1/2 and "
                "1/2?"),
        Mistake("floor-of-laplace",
                lambda scale, size, rng: np.floor(rng.laplace(0, scale, size)).astype(int),
                "Your noise leans to one side: it is a Laplace draw rounded down, and it is off "
                "by a half on average. The law is the same on both sides of 0."),
        Mistake("one-sided", lambda scale, size, rng: magnitudes(decay(scale), size, rng),
                "Your draws are never negative: one geometric draw gives only one side. Noise "
                "that never pulls down rules out some data sets for certain."),
        Mistake("zero-counted-twice",
                lambda scale, size, rng:
                signs(size, rng) * magnitudes(decay(scale), size, rng),
                "Zero comes about twice as often as it should, compared with its neighbours. Plus "
                "zero and minus zero are the same number, and cutting off the digits of a draw "
                "also sends both sides to zero."),
        Mistake("never-zero",
                lambda scale, size, rng: signs(size, rng) * rng.geometric(1 - decay(scale), size),
                "Zero never comes. It is the likeliest value of this law; NumPy's geometric draws "
                "start at 1."),
        Mistake("p-for-its-complement",
                lambda scale, size, rng:
                rng.geometric(decay(scale), size) - rng.geometric(decay(scale), size),
                "Your draws fall off with 1 - p instead of p. NumPy's rng.geometric takes the "
                "chance to stop, while the p of the formula is the chance to go on."),
        Mistake("scale-in-the-wrong-place",
                lambda scale, size, rng: discrete_laplace(1 / scale, size, rng),
                "Your noise shrinks when the scale grows. Look again at how p depends on the "
                "scale."),
        Mistake("one-draw-for-all",
                lambda scale, size, rng: np.full(size, discrete_laplace(scale, 1, rng)[0]),
                "All draws of one call are equal. Each of the `size` numbers needs a draw of its "
                "own."),
        cut_off(lambda scale, size, rng:
                np.clip(discrete_laplace(scale, size, rng), -int(5 * scale), int(5 * scale))),
        dependence_mistake(
            lambda scale, size, rng: np.repeat(discrete_laplace(scale, size, rng), 2)[:size]),
        *randomness_mistakes(discrete_laplace, lambda scale, size: np.arange(size) % 5 - 2),
    ),
    hints=(
        "A geometric draw counts how often a coin of chance p says \"go on\" before it stops: "
        "P(k) is proportional to p^k for k = 0, 1, 2, ... How do you make it two-sided without "
        "spoiling zero?",
        "Take two independent geometric draws and subtract. In rng.geometric(q, size) the q is "
        "the chance to stop.",
    ),
    lesson="On the integers the release has no low bits that could betray anything, so the proof "
           "holds for the numbers that really leave the machine (given honest random bits; "
           "coursekit's sampler avoids even the rounding in p).",
)


# -------------------------------------------------------------------------------------------- 2.8

def impossible_from_one(releases):
    steps = np.ldexp(releases, 53)  # exact: it only changes the exponent
    return steps != np.rint(steps)


def impossible_by_remainder(releases):
    return np.fmod(releases, 2.0**-53) != 0


def impossible_by_fractions(releases):
    return [(Fraction(float(release)) * 2**53).denominator > 1 for release in releases]


def off_grid(power):
    return lambda releases: np.ldexp(releases, power) != np.rint(np.ldexp(releases, power))


def impossible_cases(rng):
    step = 2.0**-53
    edges = np.array([0.0, -0.0, 1.0, step, -step, step / 2, -step / 2, 3 * step, 2.5 * step,
                      1e-20, -1e-20, 5e-324, 0.5, 0.5 + step, 0.5 - step / 2, -0.5 - step,
                      0.25 + step / 2, -0.25 - step / 4, 1 + 2 * step, -3.0, 37.0])
    first = np.array([0.75, 0.1, 0.5, -0.1, 0.3, -3.0])
    from_zero, from_one = rng.laplace(0, 1, 300), 1 + rng.laplace(0, 1, 300)
    tiny = rng.laplace(0, 0.01, 100)
    return [{"releases": releases}
            for releases in (first, edges, np.array([]), from_zero, from_one, tiny)]


IMPOSSIBLE = Exercise(
    "2.8", "The release that gives itself away", 2, function="impossible_from_one",
    right=impossible_from_one, others=(impossible_by_remainder, impossible_by_fractions),
    parts=(Exact(impossible_cases),),
    mistakes=(
        Mistake("grid-too-coarse", off_grid(52),
                "Your grid has steps of 2**-52, and so you accuse releases that a count of 1 can "
                "give: between 1/2 and 1 the floats lie 2**-53 apart (notebook 02, \"Broken "
                'through the last bits\").'),
        Mistake("grid-too-fine", off_grid(54),
                "Your grid has steps of 2**-54, and so you let go releases that a count of 1 "
                "cannot give: odd multiples of 2**-54 are not multiples of 2**-53."),
        Mistake("negatives-forgotten",
                lambda releases: impossible_from_one(releases) & (releases > 0),
                "You never accuse a negative release. Those off the grid are as impossible as the "
                "positive ones: the reasoning does not care about the sign."),
        Mistake("everything-below-one", lambda releases: releases < 1,
                "You accuse every release below 1. The noise goes both ways, so a count of 1 "
                "often gives less than 1; what it cannot give are numbers between the grid "
                "points."),
        Mistake("everything-below-a-half", lambda releases: np.abs(releases) < 0.5,
                "You accuse every release between -1/2 and 1/2. There the floats lie closer than "
                "the grid, so some are off it, but many are on it: test each one."),
        Mistake("complement", lambda releases: ~impossible_from_one(releases),
                "You have it exactly the other way round: True is for the releases that a count "
                "of 1 cannot give."),
        Mistake("decimal-digits", lambda releases: np.round(releases, 16) != releases,
                "You looked at decimal digits. The grid is binary: multiples of 2**-53, most of "
                "which need more than 16 decimals. Scale by a power of two, which loses no bits."),
        Mistake("compares-with-tolerance",
                lambda releases: ~np.isclose(np.ldexp(releases, 53),
                                             np.rint(np.ldexp(releases, 53))),
                "You compared with a tolerance. This attack lives in the very last bits, which a "
                "tolerance smooths away; scaling by a power of two is exact, so none is needed."),
        Mistake("round-trip", lambda releases: 1 + (releases - 1) != releases,
                "A sharper attack than the one asked for: going to `releases - 1` and back also "
                "rules out some negative releases that lie on the grid. Here only those off the "
                "grid of 2**-53 are wanted."),
    ),
    hints=(
        "Is a number a multiple of 2**-53? Multiply by 2**53 and see whether the result is a "
        "whole number. Multiplying a float by a power of two is exact.",
        "np.ldexp(x, 53) is x times 2**53, and np.rint gives the nearest whole number. Compare "
        "the two without any tolerance.",
    ),
    lesson="At epsilon 1 this flags about 27% of the releases of a true 0, and none of a true 1: "
           "a proof in real numbers does not cover the floats of the machine (Mironov 2012), and "
           "an attacker who also retraces NumPy's sampler does far better.",
)


# -------------------------------------------------------------------------------------------- 2.9

YEAR_OF_RELEASES = Exercise(
    "2.9", "A year of weekly releases", 3,
    rubric=(
        "1 point: the promise for the year. Epsilons add up over releases from the same patients "
        "(basic composition), so 52 weekly releases at epsilon 1 give epsilon 52 and a factor "
        "e^52 that promises nothing; that fresh noise each week can be averaged away is a good "
        "way to say it. 1 point: adjacency and sensitivity in plain words (what counts as one "
        "person's part; how far one person can move the number; that bounds are fixed beforehand) "
        "and which adjacency protects the fact that she takes part. 1 point: something sensible "
        "to ask for, such as one budget for the whole year, fewer releases, a stated adjacency "
        "and bounds, a noise generator that is safe on real machines."
    ),
)

EXERCISES = (CHOICE, PRIVACY_LOSS, NOISY_COUNT, NOISY_SUM, NOISY_HISTOGRAM, NOISY_SUM_AND_COUNT,
             DISCRETE_LAPLACE, IMPOSSIBLE, YEAR_OF_RELEASES)
