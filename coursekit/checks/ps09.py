"""Checks of problem set 09, shadow models.

Each exercise: our answer, other right answers, the mistakes as code, and the parts of the check.
Only the first one draws at random; all others get their signals, logits and membership as arrays.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from coursekit.checks.exercise import Exact, Exercise, Independent, Law, Mistake, Randomness

# -------------------------------------------------------------------------------------------- 9.1


def interleaved(first, second):
    return np.stack([first, second], axis=1).reshape(2 * len(first), -1)


def some_halves(pairs, records, rng):
    return rng.permuted(np.tile(np.arange(records) < records // 2, (pairs, 1)), axis=1)


def paired_halves(models, records, rng):
    first = some_halves(models // 2, records, rng)
    return interleaved(first, ~first)


def paired_halves_loop(models, records, rng):
    rows = []
    for _ in range(models // 2):
        chosen = set(rng.permutation(records)[: records // 2].tolist())
        row = [int(record in chosen) for record in range(records)]
        rows += [row, [1 - flag for flag in row]]
    return rows


def paired_halves_by_rank(models, records, rng):
    rank = rng.random((models // 2, records)).argsort(axis=1).argsort(axis=1)
    return np.repeat(rank % 2, 2, axis=0) != np.arange(models)[:, None] % 2


def halves_with(draw):
    """Wrong halves: draw(pairs, records, rng), each followed by its complement."""
    def wrong(models, records, rng):
        first = draw(models // 2, records, rng)
        return interleaved(first, ~first)
    return wrong


def one_of_each_neighbour(pairs, records, rng):
    coins = rng.random((pairs, records // 2)) < 0.5
    flags = np.stack([coins, ~coins], axis=2).reshape(pairs, -1)
    return np.pad(flags, ((0, 0), (0, records % 2)))


def rotated_blocks(pairs, records, rng):
    block = np.arange(records) < records // 2
    return np.stack([np.roll(block, rng.integers(records)) for _ in range(pairs)])


def one_record_swapped(pairs, records, rng):
    """Each half is the one before, but for one record that leaves and one that joins."""
    halves = [some_halves(1, records, rng)[0]]
    for _ in range(pairs - 1):
        half = halves[-1].copy()
        leaves, joins = rng.choice(np.flatnonzero(half)), rng.choice(np.flatnonzero(~half))
        half[leaves], half[joins] = False, True
        halves.append(half)
    return np.stack(halves)


def complements_at_the_end(models, records, rng):
    first = some_halves(models // 2, records, rng)
    return np.concatenate([first, ~first])


def same_half_twice(models, records, rng):
    first = some_halves(models // 2, records, rng)
    return interleaved(first, first)


def tilde_on_numbers(models, records, rng):
    first = some_halves(models // 2, records, rng).astype(int)
    return interleaved(first, ~first)


def halves_fault(given, models, records):
    """(Name of what is wrong with the halves, detail), or None."""
    try:
        found = np.asarray(given)
    except ValueError:  # rows of unequal length
        found = np.empty(0)
    if found.shape != (models, records) or found.dtype.kind not in "biuf":
        return None, (f"paired_halves({models}, {records}, rng) should give True or False for "
                      f"{models} models (rows) and {records} records (columns).")
    if np.any(found < -1) and np.all(np.isin(found, (-2, -1, 0, 1))):
        return "tilde-on-numbers", ""
    if not np.all((found == 0) | (found == 1)):
        return None, "All entries should be True or False (or 1 and 0), and some are neither."
    found = found.astype(bool)
    first, second = found[::2], found[1::2]
    sizes, half = found.sum(axis=1), records // 2
    full = (sizes == half) | (sizes == records - half)
    if np.array_equal(second, ~first):
        if not full.all():
            return "sizes-unequal", ""
        if np.any(sizes[::2] > half):
            return "larger-half-first", ""
        if len(first) > 3 and all(np.array_equal(first[0], row) for row in first):
            return "same-half-each-time", ""
        return None
    if np.array_equal(second, first):
        return "no-complement", ""
    if all(any(np.array_equal(row, ~other) for other in found) for row in found):
        return "complements-at-the-end", ""
    if full.all():
        return "each-draws-its-own", ""
    return None, "The records of model 2i + 1 should be those that model 2i does not have."


@dataclass(frozen=True)
class Halves:
    """Any matrix will do in which model 2i has half of the records and model 2i + 1 the rest."""

    cases: Callable

    def examine(self, exercise, subject, seed):
        for case in self.cases(np.random.default_rng(seed)):
            (given,) = exercise.answers(subject, case, seed=seed)
            fault = halves_fault(given, **case)
            if fault:
                return exercise.wrong(*fault)
        return None

    def describe(self):
        return "pairs of exact halves, every record in half of the models"


def halves_cases(rng):
    sizes = [(16, 60), (8, 2 * int(rng.integers(30, 60)) + 1), (2, 6), (2, 2), (6, 61)]
    return [{"models": models, "records": records} for models, records in sizes]


CODES = np.array([3, 5, 6, 9, 10, 12])  # the six halves of four records, bit k for record k


def which_half(flags):
    """The place in CODES of halves of four records, -1 for anything else."""
    code = (flags @ [1, 2, 4, 8]).astype(int)
    return np.where(np.isin(code, CODES), np.searchsorted(CODES, code), -1)


def only(codes):
    """The law of a half drawn evenly from some of the six."""
    return stats.rv_discrete(values=(which_codes(codes), [1 / len(codes)] * len(codes)))()


def which_codes(codes):
    return [int(np.searchsorted(CODES, code)) for code in codes]


PAIRED_HALVES = Exercise(
    "9.1", "Who trains on what", 2, function="paired_halves", right=paired_halves,
    others=(paired_halves_loop, paired_halves_by_rank),
    parts=(
        Halves(halves_cases),
        Randomness({"models": 4, "records": 60}, mistake="seed-ignored"),
        Law({"models": 2, "records": 4}, stats.randint(0, 6),
            {"one-of-each-neighbour": only([5, 6, 9, 10]), "a-run-of-records": only([3, 6, 9, 12])},
            noise=lambda answers, case: which_half(answers[:, 0]), shape=(2, 4), count=2000,
            advice="Draw halves of four records many times: each of the six should come equally "
                   "often."),
        Independent({"models": 6, "records": 4}, stats.randint(0, 6), count=2000,
                    noise=lambda answers, case: which_half(answers[:, ::2]),
                    mistake="pairs-hang-together"),
    ),
    mistakes=(
        Mistake("each-draws-its-own", lambda models, records, rng:
                some_halves(models, records, rng),
                "Each model draws a half of its own, so a record can be in all the models or in "
                "none. Model 2i + 1 should get exactly what model 2i leaves."),
        Mistake("sizes-unequal", halves_with(lambda pairs, n, rng: rng.random((pairs, n)) < 0.5),
                "The two sets of a pair are not of one size, as happens with a coin for each "
                "record, or when records are drawn with replacement. Shadows should be as large "
                "as the target: exactly half each."),
        Mistake("larger-half-first", halves_with(
            lambda pairs, n, rng: ~some_halves(pairs, n, rng)),
                "Right for an even number of records. Of an odd number the first of each pair gets "
                "the smaller half, records // 2, and the second the one that is left over, too."),
        Mistake("same-half-each-time", halves_with(
            lambda pairs, n, rng: np.repeat(some_halves(1, n, rng), pairs, axis=0)),
                "All pairs have the same half, so the shadows differ in nothing but their first "
                "weights. Draw again for each pair (rng.shuffle and rng.permutation on a matrix "
                "move whole rows only)."),
        Mistake("no-complement", same_half_twice,
                "Both models of a pair got the same half. The second should get the other half."),
        Mistake("complements-at-the-end", complements_at_the_end,
                "Each half has its complement, but not next to it. That is as good a design, but "
                "here models 2i and 2i + 1 are the pair: whoever leaves a target out has to leave "
                "its partner out too, and looks there."),
        Mistake("tilde-on-numbers", tilde_on_numbers,
                "Some entries are neither True (1) nor False (0). ~ turns 0 into -1 and 1 into "
                "-2; only on booleans does it mean \"not\"."),
        Mistake("seed-ignored", lambda models, records, rng:
                paired_halves(models, records, np.random.default_rng(0)),
                "Every call gives the same halves, whatever rng is. If your function makes a "
                "generator with a fixed seed, all ensembles share their halves: draw with rng."),
        Mistake("own-randomness", lambda models, records, rng:
                paired_halves(models, records, np.random.default_rng()),
                "The halves do not come from rng: two calls with equally seeded generators "
                "differ. Draw with rng, and make no generator of your own."),
        Mistake("one-of-each-neighbour", halves_with(one_of_each_neighbour),
                "Of two neighbours in the list exactly one is in each set. The sizes are right, "
                "but most halves never come: which neighbour is in tells about the other."),
        Mistake("a-run-of-records", halves_with(rotated_blocks),
                "Your halves are runs of records that stand next to each other. Most halves never "
                "come, and in a sorted list a run is a group of similar people."),
        Mistake("pairs-hang-together", halves_with(one_record_swapped),
                "The half of one pair says something about that of another. Each pair needs a "
                "draw of its own, or the shadows are fewer than they seem."),
    ),
    hints=(
        "Draw only for models 0, 2, 4 and so on: a random half for each. What do the others get?",
        "rng.permutation(records)[: records // 2] are the places of a random half. Or start from a "
        "row with as many True as False, once for each pair, and shuffle each row by itself: "
        "rng.permuted(rows, axis=1). Then ~rows are the partners.",
    ),
    lesson="All sets are as large as each other (give or take the odd record), and each record has "
           "as many IN as OUT models. "
           "With a coin for each of n records the sizes would scatter by sqrt(n)/2.",
)


# -------------------------------------------------------------------------------------------- 9.2

def masked(signals, side):
    return np.where(side, signals, np.nan)


def in_and_out(signals, membership):
    found = []
    for side in (membership, ~membership):
        kept = masked(signals, side)
        found += [np.nanmean(kept, axis=0), np.nanstd(kept, axis=0)]
    return found


def in_and_out_loop(signals, membership):
    columns = [[], [], [], []]
    for signal, member in zip(signals.T, membership.T, strict=True):
        for place, side in ((0, signal[member]), (2, signal[~member])):
            mean = sum(side) / len(side)
            columns[place].append(mean)
            columns[place + 1].append(math.sqrt(sum((x - mean) ** 2 for x in side) / len(side)))
    return columns


def in_and_out_by_sums(signals, membership):
    sides = np.stack([membership, ~membership]).astype(float)
    count = sides.sum(axis=1)
    mean = (sides * signals).sum(axis=1) / count
    squares = (sides * (signals - mean[:, None]) ** 2).sum(axis=1)
    return np.stack([mean, np.sqrt(squares / count)], axis=1).reshape(4, -1)


def sides_with(mean=np.nanmean, spread=np.nanstd):
    """Wrong means and spreads: functions of signals, NaN for the other side, and of axis=0."""
    def wrong(signals, membership):
        found = []
        for side in (membership, ~membership):
            kept = masked(signals, side)
            found += [mean(kept, 0), spread(kept, 0)]
        return found
    return wrong


def spread_of_all(signals, membership):
    (mean_in, _, mean_out, _), spread = in_and_out(signals, membership), signals.std(axis=0)
    return mean_in, spread, mean_out, spread


def zeros_counted(signals, membership):
    parts = [np.where(side, signals, 0) for side in (membership, ~membership)]
    return [f(part, axis=0) for part in parts for f in (np.mean, np.std)]


def divided_by_half(signals, membership):
    found, half = [], len(signals) / 2
    for side in (membership, ~membership):
        mean = np.where(side, signals, 0).sum(axis=0) / half
        found += [mean, np.sqrt(np.where(side, (signals - mean) ** 2, 0).sum(axis=0) / half)]
    return found


def about_the_middle(signals, membership):
    found, middle = in_and_out(signals, membership), signals.mean(axis=0)
    for place, side in ((1, membership), (3, ~membership)):
        found[place] = np.sqrt(np.nanmean(masked((signals - middle) ** 2, side), axis=0))
    return found


def one_for_all(signals, membership):
    return [np.full(signals.shape[1], f(signals[side]))
            for side in (membership, ~membership) for f in (np.mean, np.std)]


def some_membership(models, records, rng):
    """At least 2 IN and 2 OUT shadows for each record, unequal numbers of them."""
    cut = rng.integers(2, models - 1, records)
    return rng.permuted(np.arange(models)[:, None] < cut, axis=0)


def shadow_world(models, records, rng, scale=1.0):
    """Signals of records that differ in everything, and membership."""
    membership = some_membership(models, records, rng)
    middle, gap = rng.normal(2, 3, records), rng.uniform(1, 4, records)
    spread = np.where(membership, rng.uniform(0.5, 1, records), rng.uniform(1, 2.5, records))
    noise = rng.normal(size=(models, records))
    return scale * (middle + gap * membership + spread * noise), membership


def sides_cases(rng):
    visible = {"signals": np.array([[5.0, 2], [3, 1], [0, -4], [-2, 8]]),
               "membership": np.array([[True, False], [True, True], [False, True], [False, False]])}
    worlds = [shadow_world(models, records, rng, scale)
              for models, records, scale in ((5, 3, 1), (12, 8, 0.1), (9, 20, 1))]
    return [visible] + [{"signals": s, "membership": m} for s, m in worlds]


IN_AND_OUT = Exercise(
    "9.2", "With her, and without", 1, function="in_and_out", right=in_and_out,
    others=(in_and_out_loop, in_and_out_by_sums),
    parts=(Exact(sides_cases, proof="the values agree, for equal and unequal numbers of shadows"),),
    mistakes=(
        Mistake("sides-swapped", lambda signals, membership: in_and_out(signals, ~membership),
                "IN and OUT have changed places: True means that the model was trained on the "
                "record."),
        Mistake("means-first", lambda signals, membership:
                [in_and_out(signals, membership)[place] for place in (0, 2, 1, 3)],
                "The four arrays are right, in another order: mean and spread of IN come first, "
                "then mean and spread of OUT."),
        Mistake("one-spread-for-both", spread_of_all,
                "Your spread is that of all the shadows of a record, IN and OUT together. It "
                "contains the gap between the two means, the very thing to be seen against it."),
        Mistake("about-the-middle", about_the_middle,
                "Your spreads are taken about the mean of all shadows. Each side has a mean of its "
                "own, and its spread is about that."),
        Mistake("sample-spread", sides_with(spread=lambda kept, axis:
                                            np.nanstd(kept, axis, ddof=1)),
                "You divided by one less than the number of signals. Often a good idea; here it "
                "is the number itself, as np.std does by default."),
        Mistake("variance", sides_with(spread=np.nanvar),
                "This is the variance. The spread asked for is its square root."),
        Mistake("standard-error", sides_with(spread=lambda kept, axis: np.nanstd(kept, axis)
                                             / np.sqrt(np.sum(~np.isnan(kept), axis))),
                "You divided by the root of the number: that is how well the mean is known. The "
                "target is one model, so how far single models scatter is what counts."),
        Mistake("zeros-counted", zeros_counted,
                "The models of the other side take part with a signal of 0. Leave them out: np.nan "
                "and np.nanmean do that, or one record at a time."),
        Mistake("divides-by-half", divided_by_half,
                "You divided by half the number of models. That is right for paired halves only; "
                "count how many models each record really has on each side."),
        Mistake("one-for-each-model", lambda signals, membership:
                in_and_out_by_sums(signals.T, membership.T),
                "You averaged over the records of a model. Each record is to be compared with "
                "itself, over the models: axis 0."),
        Mistake("one-for-all-records", one_for_all,
                "One mean and one spread for all records. A record that is hard for every model "
                "would then look like a non-member always: each needs numbers of its own."),
        Mistake("median", sides_with(mean=np.nanmedian),
                "You took the median for the mean. Some published code does (one bad shadow moves "
                "it less); here the mean is asked for."),
    ),
    hints=(
        "Column by column: signals[membership[:, j], j] are the signals of record j from the "
        "models that were trained on it.",
        "np.where(membership, signals, np.nan) blanks the models without the record; np.nanmean "
        "and np.nanstd with axis=0 skip blanks. Do the same with ~membership.",
    ),
    lesson="A spread from few signals is too small: dividing by their number, four draws from a "
           "normal law give 0.80 of its spread on average, two give 0.56. That is why LiRA with "
           "few shadows is too sure of itself; 9.4 and 9.5 divide otherwise.",
)


# -------------------------------------------------------------------------------------------- 9.3

def log_normal(x, mean, spread):
    return -(((x - mean) / spread) ** 2) / 2 - np.log(spread)


def lira_log_ratio(signal, mean_in, spread_in, mean_out, spread_out):
    return log_normal(signal, mean_in, spread_in) - log_normal(signal, mean_out, spread_out)


def lira_by_scipy(signal, mean_in, spread_in, mean_out, spread_out):
    return (stats.norm.logpdf(signal, mean_in, spread_in)
            - stats.norm(mean_out, spread_out).logpdf(signal))


def lira_loop(signal, mean_in, spread_in, mean_out, spread_out):
    scores = []
    for x, a, s, b, t in zip(signal, mean_in, spread_in, mean_out, spread_out, strict=True):
        scores.append(math.log(t / s) + (x - b) ** 2 / (2 * t * t) - (x - a) ** 2 / (2 * s * s))
    return scores


def lira_with(density):
    """A wrong ratio: density(x, mean, spread) instead of the log of the normal density."""
    def wrong(signal, mean_in, spread_in, mean_out, spread_out):
        with np.errstate(all="ignore"):
            return density(signal, mean_in, spread_in) - density(signal, mean_out, spread_out)
    return wrong


def ratio_of_densities(**case):
    with np.errstate(over="ignore"):
        return np.exp(lira_log_ratio(**case))


def lira_underflows(signal, mean_in, spread_in, mean_out, spread_out):
    with np.errstate(all="ignore"):
        p, q = (stats.norm.pdf(signal, mean_in, spread_in),
                stats.norm.pdf(signal, mean_out, spread_out))
        return np.log(p / q)


def ratio_cases(rng):
    count = 12
    low, spread_in, spread_out = (rng.normal(0, 2, count), rng.uniform(0.3, 3, count),
                                  rng.uniform(0.3, 3, count))
    names = ("signal", "mean_in", "spread_in", "mean_out", "spread_out")
    rows = [([4.0, 2.0, 2.0], [3.0, 3.0, 3.0], [1.0, 1.0, 2.0], [0.0] * 3, [2.0, 2.0, 1.0]),
            ([400.0, -300.0], [5.0, 4.0], [1.0, 2.0], [1.0, 0.0], [2.0, 0.5]),
            ([-3.0, 7.0], [-1.0, 6.0], [0.5, 0.25], [-1.0, 8.0], [0.5, 0.25]),
            (rng.normal(2, 4, count), low + rng.uniform(0.5, 3, count), spread_in, low, spread_out)]
    return [dict(zip(names, map(np.array, row), strict=True)) for row in rows]


LIRA = Exercise(
    "9.3", "Which of the two laws?", 2, function="lira_log_ratio", right=lira_log_ratio,
    others=(lira_by_scipy, lira_loop),
    parts=(Exact(ratio_cases, proof="the values agree, also far out"),),
    mistakes=(
        Mistake("sides-swapped", lambda **case: -lira_log_ratio(**case),
                "The sign is the other way round: a high score should mean IN, so IN's density "
                "stands above the line."),
        Mistake("spread-term-forgotten", lira_with(lambda x, m, s: -((x - m) / s) ** 2 / 2),
                "The factor 1/spread in front of the exponential is missing. It cancels only if "
                "both spreads are equal: a narrow law is higher in its middle."),
        Mistake("spread-term-sign",
                lira_with(lambda x, m, s: -((x - m) / s) ** 2 / 2 + np.log(s)),
                "The logarithm of the spread has the wrong sign: the density is divided by the "
                "spread, so its logarithm falls when the spread grows."),
        Mistake("half-forgotten", lira_with(lambda x, m, s: -((x - m) / s) ** 2 - np.log(s)),
                "A factor of two: the exponent of a normal density is -(x - m)^2 / (2 s^2)."),
        Mistake("spread-not-squared",
                lira_with(lambda x, m, s: -((x - m) ** 2) / (2 * s) - np.log(s)),
                "The exponent is divided by the spread, not by its square: -(x - m)^2 / (2 s^2)."),
        Mistake("not-squared", lira_with(lambda x, m, s: -np.abs(x - m) / s - np.log(s)),
                "You did not square the distance. An exponent that falls with the distance itself "
                "is that of a Laplace law."),
        Mistake("one-spread-for-both",
                lambda signal, mean_in, spread_in, mean_out, spread_out:
                lira_log_ratio(signal, mean_in, spread_out, mean_out, spread_out),
                "You used the spread of OUT for both laws. IN has one of its own, often smaller: "
                "models that have seen a record agree about it."),
        Mistake("only-in", lambda signal, mean_in, spread_in, mean_out, spread_out:
                stats.norm.logpdf(signal, mean_in, spread_in),
                "You give the density under IN alone. A signal can fit IN well and OUT better: "
                "compare the two."),
        Mistake("areas-for-densities", lira_with(lambda x, m, s: stats.norm.logcdf(x, m, s)),
                "You compared areas (cdf). How likely this very signal is under a law is its "
                "density (pdf)."),
        Mistake("ratio-not-log", ratio_of_densities,
                "This is the ratio itself. Far out it is more than a float holds, or 0; the score "
                "asked for is its natural logarithm."),
        Mistake("densities-underflow", lira_underflows,
                "Right near the middle, but far out both densities are 0 in floating point, and "
                "log(0/0) is not a number. Take the logarithm on paper first."),
    ),
    hints=(
        "Write down the logarithm of a normal density: two terms depend on the mean and the "
        "spread, a third is the same for both laws and cancels.",
        "log density = -((x - mean) / spread)^2 / 2 - log(spread) + a constant. Subtract that of "
        "OUT from that of IN.",
    ),
    lesson="With equal spreads the score rises with the signal. With a wider OUT it does not: far "
           "above both means it falls again, because there only the wide law reaches.",
)


# -------------------------------------------------------------------------------------------- 9.4

def one_sided_score(signal, shadow_signals, shadow_membership):
    outside = masked(shadow_signals, ~shadow_membership)
    return (signal - np.nanmean(outside, axis=0)) / np.nanstd(outside, axis=0, ddof=1)


def one_sided_loop(signal, shadow_signals, shadow_membership):
    scores = []
    for j in range(len(signal)):
        out = [shadow_signals[i, j] for i in range(len(shadow_signals))
               if not shadow_membership[i, j]]
        scores.append((signal[j] - np.mean(out)) / np.std(out, ddof=1))
    return scores


def one_sided_masked(signal, shadow_signals, shadow_membership):
    outside = np.ma.array(shadow_signals, mask=shadow_membership)
    return np.asarray((signal - outside.mean(axis=0)) / outside.std(axis=0, ddof=1))


def offline_with(score=lambda z, spread: z, mean=None, spread=None):
    """A wrong score(z, spread); mean(signals, membership) and spread(...) replace those of OUT."""
    def wrong(signal, shadow_signals, shadow_membership):
        outside = masked(shadow_signals, ~shadow_membership)
        with np.errstate(all="ignore"):
            middle = (np.nanmean(outside, axis=0) if mean is None
                      else mean(shadow_signals, shadow_membership))
            width = (np.nanstd(outside, axis=0, ddof=1) if spread is None
                     else spread(shadow_signals, shadow_membership))
            return score((signal - middle) / width, width)
    return wrong


def mean_in(signals, membership):
    return np.where(membership, signals, 0).sum(axis=0) / membership.sum(axis=0)


def spread_in(signals, membership):
    centred = (signals - mean_in(signals, membership)) ** 2
    return np.sqrt(np.where(membership, centred, 0).sum(axis=0) / (membership.sum(axis=0) - 1))


def zeros_for_in(signals, membership):
    return np.where(membership, 0, signals)


def offline_cases(rng):
    cases = [{"signal": np.array([5.0, 0.0]),
              "shadow_signals": np.array([[1.0, np.nan], [3.0, 4.0], [np.nan, 6.0], [np.nan, 2.0]]),
              "shadow_membership": np.array([[False, True], [False, False], [True, False],
                                             [True, False]])}]
    for models, records, unknown in ((7, 4, False), (10, 12, True), (16, 10, False)):
        signals, membership = shadow_world(models, records, rng)
        signal = signals.mean(axis=0) + rng.normal(0, 4, records)
        signal[0] += 40
        shown = np.where(membership & unknown, np.nan, signals)
        cases.append({"signal": signal, "shadow_signals": shown, "shadow_membership": membership})
    return cases


ONE_SIDED = Exercise(
    "9.4", "Without any model of hers", 2, function="one_sided_score", right=one_sided_score,
    others=(one_sided_loop, one_sided_masked),
    parts=(Exact(offline_cases, proof="the values agree, with and without signals of IN shadows"),),
    mistakes=(
        Mistake("two-sided-density", offline_with(lambda z, s: z**2 / 2 + np.log(s)
                                                  + math.log(2 * math.pi) / 2),
                "This is minus the log of OUT's density. It is two-sided: a signal far *below* "
                "the mean gets a high score too, though members lie above. (The code released "
                "with LiRA's paper does this; the paper does not.)"),
        Mistake("absolute-value", offline_with(lambda z, s: np.abs(z)),
                "You took the absolute value. A signal far below the OUT mean is no sign of a "
                "member: members' signals are higher."),
        Mistake("sign-flipped", offline_with(lambda z, s: -z),
                "The sign is the other way round. A member's signal lies above the OUT mean, and "
                "high scores mean member."),
        Mistake("spread-from-in", offline_with(spread=spread_in),
                "Your spread is that of the IN shadows, a slip that is found in published code. "
                "Offline there are none: the spread belongs to OUT, as the mean does."),
        Mistake("all-shadows", offline_with(mean=lambda s, m: np.nanmean(s, axis=0),
                                            spread=lambda s, m: np.nanstd(s, axis=0, ddof=1)),
                "You used all shadows that are not blank. Some IN shadows have a signal, which "
                "pulls the mean towards a member's: go by shadow_membership, not by nan."),
        Mistake("in-for-out", offline_with(mean=mean_in, spread=spread_in),
                "You used the IN shadows. True means trained on the record; the offline attack "
                "uses the others."),
        Mistake("blanks-became-0", offline_with(
            mean=lambda s, m: zeros_for_in(s, m).mean(axis=0),
            spread=lambda s, m: zeros_for_in(s, m).std(axis=0, ddof=1)),
                "The IN shadows take part with a signal of 0. They should not take part at all."),
        Mistake("not-divided", offline_with(lambda z, s: z * s),
                "You give the distance itself. Far is what is far for this record: divide by its "
                "spread."),
        Mistake("spread-of-9.2", offline_with(spread=lambda s, m: np.nanstd(masked(s, ~m), axis=0)),
                "Your spread is that of 9.2, divided by the number of OUT signals. Here the sum of "
                "squares is divided by one less: with few shadows that matters."),
        Mistake("one-spread-for-all", offline_with(
            spread=lambda s, m: np.full(s.shape[1], np.std(s[~m], ddof=1))),
                "Your spread is that of all records' OUT signals together, which mostly says how "
                "much the records differ. Each record has a spread of its own here."),
        Mistake("probability-saturates", offline_with(lambda z, s: special.ndtr(z)),
                "This is Phi(z), the chance that an OUT model gives less. The order is the same "
                "until it is 1.0 in floating point, from z = 8.3 on, just where the surest members "
                "are: give z itself."),
    ),
    hints=(
        "What do models say that never saw the record? Their mean is the zero of your scale, "
        "their spread its unit.",
        "Blank the IN shadows with np.where; np.nanmean and np.nanstd along axis 0 skip blanks, "
        "and the latter has an argument ddof, what is taken off the number.",
    ),
    lesson="One-sided matters: if IN is as wide as OUT and lies 1.5 spreads higher (both normal, "
           "and known exactly), z has an AUC of 0.856 and the two-sided score one of 0.753.",
)


# -------------------------------------------------------------------------------------------- 9.5

def fixed_spread_score(signal, shadow_signals, shadow_membership):
    score = 0.0
    for side, sign in ((shadow_membership, 1), (~shadow_membership, -1)):
        kept = masked(shadow_signals, side)
        mean = np.nanmean(kept, axis=0)
        spread = np.sqrt(np.nansum((kept - mean) ** 2) / (side.sum() - len(signal)))
        score = score + sign * log_normal(signal, mean, spread)
    return score


def fixed_spread_by_weights(signal, shadow_signals, shadow_membership):
    a, own_in, b, own_out = in_and_out_loop(shadow_signals, shadow_membership)
    count = shadow_membership.sum(axis=0)
    s, t = (math.sqrt(np.dot(np.square(own), n) / np.sum(n - 1))
            for own, n in ((own_in, count), (own_out, len(shadow_signals) - count)))
    return stats.norm(a, s).logpdf(signal) - stats.norm(b, t).logpdf(signal)


def fixed_spread_by_residuals(signal, shadow_signals, shadow_membership):
    mean_in, _, mean_out, _ = in_and_out(shadow_signals, shadow_membership)
    residual = shadow_signals - np.where(shadow_membership, mean_in, mean_out)
    s, t = (residual[side].std(ddof=len(signal))
            for side in (shadow_membership, ~shadow_membership))
    return ((signal - mean_out) / t) ** 2 / 2 - ((signal - mean_in) / s) ** 2 / 2 + np.log(t / s)


def fixed_with(spreads, means=lambda s, m: in_and_out(s, m)[::2], log_term=1):
    """A wrong score: spreads(signals, membership) and means(...) for IN and OUT."""
    def wrong(signal, shadow_signals, shadow_membership):
        (a, b), (s, t) = (f(shadow_signals, shadow_membership) for f in (means, spreads))
        return (log_normal(signal, a, s) - log_normal(signal, b, t)
                + (1 - log_term) * (np.log(s) - np.log(t)))
    return wrong


def residuals(signals, membership):
    mean_in, _, mean_out, _ = in_and_out(signals, membership)
    return signals - np.where(membership, mean_in, mean_out)


def shared(squares, inside, less):
    """For each side the root of its squares' sum over their number, less so many."""
    return [np.sqrt(squares[side].sum() / (side.sum() - less)) for side in (inside, ~inside)]


def pooled(signals, membership):
    return shared(residuals(signals, membership) ** 2, membership, signals.shape[1])


def not_centred(signals, membership):
    return signals[membership].std(), signals[~membership].std()


def average(power):
    """The power mean over the records of their own spreads, as in 9.4."""
    def spreads(signals, membership):
        own = spread_in(signals, membership), spread_in(signals, ~membership)
        return [np.mean(spread**power) ** (1 / power) for spread in own]
    return spreads


def fixed_cases(rng):
    cases = [{"signal": np.array([2.0, 2.0]),
              "shadow_signals": np.array([[1.0, 5.0], [3.0, 9.0], [0.0, 4.0], [-2.0, 0.0]]),
              "shadow_membership": np.array([[True, True], [True, True], [False, False],
                                             [False, False]])}]
    for models, records in ((5, 6), (9, 12), (14, 5)):
        signals, membership = shadow_world(models, records, rng)
        cases.append({"signal": signals.mean(axis=0) + rng.normal(0, 3, records),
                      "shadow_signals": signals, "shadow_membership": membership})
    return cases


FIXED_SPREAD = Exercise(
    "9.5", "One spread for everybody", 2, function="fixed_spread_score", right=fixed_spread_score,
    others=(fixed_spread_by_weights, fixed_spread_by_residuals),
    parts=(Exact(fixed_cases, proof="the values agree, for equal and unequal numbers of shadows"),),
    mistakes=(
        Mistake("not-centred", fixed_with(not_centred),
                "You took the spread of all signals as they are. That is mostly how much the "
                "records differ from each other. Take each record's own mean off first. (Some "
                "published code forgets it; the order of the scores may hardly suffer, but log "
                "ratios they are no more.)"),
        Mistake("centred-on-all-shadows", fixed_with(
            lambda s, m: shared((s - s.mean(axis=0)) ** 2, m, s.shape[1])),
                "You took off the mean of IN and OUT together. A part of the gap then counts "
                "as spread: centre IN signals on the IN mean, OUT signals on the OUT mean."),
        Mistake("in-spread-for-both", fixed_with(lambda s, m: (pooled(s, m)[0],) * 2),
                "Both spreads are that of IN, a slip of the pen that is found in published code "
                "(std_out = std(dat_in)). OUT has its own."),
        Mistake("spreads-swapped", fixed_with(lambda s, m: pooled(s, m)[::-1]),
                "The means are right, and the two spreads have changed places."),
        Mistake("one-spread-for-both", fixed_with(
            lambda s, m: (residuals(s, m).std(ddof=2 * s.shape[1]),) * 2),
                "You took one spread for IN and OUT together. Here each side has one, from its own "
                "signals."),
        Mistake("average-of-spreads", fixed_with(average(1)),
                "You averaged the spreads of the records. Squares can be pooled, spreads cannot: "
                "collect all squared distances first, then divide once and take one root."),
        Mistake("average-of-variances", fixed_with(average(2)),
                "You averaged the variances of the records, each with the same weight. A record "
                "with two shadows then counts as much as one with ten: add up all squares first."),
        Mistake("spread-of-each-record", fixed_with(lambda s, m: in_and_out(s, m)[1::2]),
                "Each record has a spread of its own. That is 9.2 with 9.3, which is noisy with "
                "few shadows; here one spread is shared by all records."),
        Mistake("one-mean-for-all", fixed_with(not_centred, lambda s, m: (s[m].mean(),
                                                                          s[~m].mean())),
                "The means are shared by all records, too. Then the score is a global threshold on "
                "the signal in all but name: only the spreads are shared, each record keeps its "
                "means."),
        Mistake("sides-swapped", lambda **case: -np.asarray(fixed_spread_score(**case)),
                "The sign is the other way round: a high score should mean IN."),
        Mistake("divides-by-number", fixed_with(lambda s, m: shared(residuals(s, m) ** 2, m, 0)),
                "You divided by the number of signals. A mean was taken off for each record, which "
                "made the distances smaller: divide by that number less the number of records."),
        Mistake("spread-term-forgotten", fixed_with(pooled, log_term=0),
                "The logarithms of the spreads are missing. That moves all scores by one number "
                "and so changes no ROC, but then 0 no longer means \"equally likely\"."),
    ),
    hints=(
        "Two steps: the mean of each record on each side, as in 9.2; then all the distances from "
        "those means, of all records, in one heap for IN and one for OUT.",
        "With the other side blanked, mean = np.nanmean(kept, axis=0); then np.nansum of the "
        "squares of kept - mean, without an axis, divided as the exercise says. Then 9.3.",
    ),
    lesson="A shared spread is wrong for almost every record, but it is steady: with few shadows "
           "that is worth more. Which one to use can be tried on shadows, one of which plays the "
           "target.",
)


# -------------------------------------------------------------------------------------------- 9.6

def attack_table(logits, y, membership, target):
    others = np.arange(len(logits)) != target
    p = special.softmax(logits[others], axis=2)
    rows = -np.sort(-p, axis=2).reshape(-1, p.shape[2])
    return rows, np.tile(y, others.sum()), membership[others].ravel()


def attack_table_loop(logits, y, membership, target):
    rows, classes, labels = [], [], []
    for i in range(len(logits)):
        for j in range(len(y)):
            if i != target:
                weights = np.exp(logits[i, j] - max(logits[i, j]))
                rows.append(sorted((weights / sum(weights)).tolist(), reverse=True))
                classes.append(int(y[j]))
                labels.append(int(membership[i, j]))
    return rows, classes, labels


def attack_table_delete(logits, y, membership, target):
    shadows, known = np.delete(logits, target, axis=0), np.delete(membership, target, axis=0)
    p = np.exp(shadows - np.logaddexp.reduce(shadows, axis=2, keepdims=True))
    p = np.sort(p.reshape(-1, p.shape[2]), axis=1)[:, ::-1]
    return p, np.concatenate([y] * len(shadows)), np.concatenate(list(known))


def falling(p):
    return -np.sort(-p, axis=-1)


def overflowing(logits):
    with np.errstate(all="ignore"):
        weights = np.exp(logits)
        return weights / weights.sum(axis=-1, keepdims=True)


def table_with(features=lambda z: falling(special.softmax(z, axis=-1)), models=None, known=None,
               classes=lambda z, y: np.broadcast_to(y, z.shape[:2]), flat=lambda part: part):
    """A wrong table: which models' logits, which rows of membership, how they are laid out."""
    def wrong(logits, y, membership, target):
        others = np.flatnonzero(np.arange(len(logits)) != target)
        z = logits[others if models is None else models(logits, target)]
        inside = membership[others] if known is None else known(membership, target, len(z))
        p = flat(features(z))
        return (p.reshape(-1, p.shape[-1]), flat(classes(z, y)).ravel(), inside.ravel())
    return wrong


def only_members(logits, y, membership, target):
    rows, classes, labels = attack_table(logits, y, membership, target)
    return rows[labels], classes[labels], labels[labels]


def records_first(logits, y, membership, target):
    rows, classes, labels = attack_table(logits, y, membership, target)
    order = np.arange(len(rows)).reshape(-1, len(y)).T.ravel()
    return rows[order], classes[order], labels[order]


def table_cases(rng):
    cases = []
    sizes = ((3, 2, 3, 1, 1.0), (4, 6, 3, 0, 3.0), (5, 7, 4, 4, 3.0), (6, 5, 2, 2, 3.0),
             (4, 3, 3, 1, 500.0))
    for models, records, classes, target, scale in sizes:
        membership = rng.random((models, records)) < 0.5
        membership[0], membership[-1] = True, False  # so that rows can be told apart
        membership[:2, 0] = [True, False]
        logits = rng.normal(0, scale, (models, records, classes))
        if scale > 100:
            logits[0, :2] = [[900, 899, 897], [-900, -899, -897]]  # exp overflows, underflows
        cases.append({"logits": logits, "y": rng.integers(classes, size=records),
                      "membership": membership, "target": target})
    return cases


ATTACK_TABLE = Exercise(
    "9.6", "What the attack model learns from", 3, function="attack_table", right=attack_table,
    others=(attack_table_loop, attack_table_delete),
    parts=(Exact(table_cases, proof="rows, classes and labels agree, whichever model is the target "
                                    "and however large the logits"),),
    mistakes=(
        Mistake("includes-the-target", table_with(models=lambda z, t: np.arange(len(z)),
                                                  known=lambda m, t, n: m),
                "The target's rows are in the table, with its membership: that is the answer "
                "sheet. An attack that learns from it is no attack (ask of any tool what it is "
                "fitted on)."),
        Mistake("last-left-out", table_with(models=lambda z, t: np.arange(len(z) - 1),
                                            known=lambda m, t, n: m[:-1]),
                "You left out the last model. The target is model number `target`, wherever it "
                "stands."),
        Mistake("membership-row-shifted", table_with(known=lambda m, t, n: m[:n]),
                "The target's logits are left out, but its row of membership is not (or the last "
                "row is, instead): from there on each model has another's labels. Leave the same "
                "row out of both."),
        Mistake("membership-of-the-target", table_with(known=lambda m, t, n: np.tile(m[t], n)),
                "Your labels are the target's membership, for every shadow. Each shadow has a row "
                "of its own, and the target's is what the attack is to find out."),
        Mistake("labels-transposed", table_with(known=lambda m, t, n:
                                                np.delete(m, t, axis=0).T.copy()),
                "The features go model by model and the labels record by record, so that they "
                "belong to different rows. Lay both out in one order."),
        Mistake("records-first", records_first,
                "The rows are right and belong together, but go record by record. The exercise "
                "asks for model by model, the order of membership.ravel()."),
        Mistake("only-members", only_members,
                "Only members are in the table. What should the attack model tell them from? "
                "Non-members need rows as well."),
        Mistake("not-sorted", table_with(lambda z: special.softmax(z, axis=-1)),
                "The probabilities stand in the order of the classes. Sort each row from high to "
                "low, so that \"very sure\" looks alike whatever it is sure of."),
        Mistake("rising", table_with(lambda z: np.sort(special.softmax(z, axis=-1))),
                "The rows are sorted from low to high. The highest probability comes first."),
        Mistake("logits-not-probabilities", table_with(falling),
                "These are the logits, sorted. Two models may give the same probabilities with "
                "logits that differ by a constant: take the softmax first."),
        Mistake("exponential-overflows", table_with(lambda z: falling(overflowing(z))),
                "Right for small logits, but e^900 is more than a float holds. Subtract the "
                "largest logit of each row first: the softmax does not change."),
        Mistake("predicted-class", table_with(classes=lambda z, y: z.argmax(axis=-1)),
                "The second array holds the class that the model predicts. It should be the true "
                "class, y, the same for every model."),
    ),
    hints=(
        "Three arrays, all with a row for each pair of shadow and record. np.delete(a, target, "
        "axis=0) leaves a model out; of which arrays is that needed?",
        "p = np.exp(z - z.max(axis=2, keepdims=True)), divided by its sum over axis 2, sorted with "
        "np.sort(p)[..., ::-1]; p.reshape(-1, classes), np.tile(y, shadows) and membership.ravel() "
        "are all model by model.",
    ),
    lesson="The target's membership has no way into the table, so what an attack model scores on "
           "the target is a fair result, whatever classifier is fitted.",
)


# -------------------------------------------------------------------------------------------- 9.7

def shadow_rates(shadow_scores, shadow_membership, scores, membership, fpr):
    others = np.sort(shadow_scores[~shadow_membership])[::-1]
    above = np.arange(len(others)) / len(others)  # at most this share lies above others[k]
    threshold = others[np.flatnonzero(above <= fpr)[-1]]
    return threshold, np.mean(scores[membership] > threshold), np.mean(
        scores[~membership] > threshold)


def shadow_rates_by_search(shadow_scores, shadow_membership, scores, membership, fpr):
    others = shadow_scores[~shadow_membership]
    threshold = min(t for t in others if np.mean(others > t) <= fpr)
    accused = scores > threshold
    return np.array([threshold, *(accused[side].sum() / side.sum()
                                  for side in (membership, ~membership))])


def shadow_rates_by_list(shadow_scores, shadow_membership, scores, membership, fpr):
    others = sorted(shadow_scores[~shadow_membership].tolist())
    threshold = next(t for t in others if sum(s > t for s in others) / len(others) <= fpr)
    hits, members = [0, 0], sum(membership.tolist())
    for score, member in zip(scores, membership, strict=True):
        hits[int(member)] += int(score > threshold)
    return [threshold, hits[1] / members, hits[0] / (len(scores) - members)]


def right_threshold(others, fpr):
    allowed = np.flatnonzero(np.arange(len(others)) / len(others) <= fpr)[-1]
    return np.sort(others)[::-1][allowed]


def nth(places):
    """The threshold that stands places(n, fpr) from the top of n falling scores."""
    def cut(others, fpr):
        place = places(len(others), fpr)
        return np.sort(others)[::-1][min(max(place, 0), len(others) - 1)]
    return cut


def allowed_above(n, fpr):
    return int(np.flatnonzero(np.arange(n) / n <= fpr)[-1])


def rates_with(others=lambda s, m, t, tm: s[~m], cut=right_threshold,
               accuse=lambda s, t: s > t, report=lambda hit, m: (hit[m].mean(), hit[~m].mean())):
    """Wrong rates: whose scores give the threshold, how it is cut, who is accused, what counts."""
    def wrong(shadow_scores, shadow_membership, scores, membership, fpr):
        known = others(shadow_scores, shadow_membership, scores, membership)
        threshold = cut(known, fpr)
        return (threshold, *report(accuse(scores, threshold), membership))
    return wrong


def precision_for_tpr(hit, member):
    called = hit.sum()
    return (hit & member).sum() / called if called else 0.0, hit[~member].mean()


def on_the_shadows(shadow_scores, shadow_membership, scores, membership, fpr):
    return shadow_rates(shadow_scores, shadow_membership, shadow_scores, shadow_membership, fpr)


def rates_cases(rng):
    cases = [{"shadow_scores": np.array([[4.0, 1, 3, 0], [2, 6, 5, 7]]),
              "shadow_membership": np.array([[True, False, False, False],
                                             [False, True, False, True]]),
              "scores": np.array([3.5, 2, 5, 3]),
              "membership": np.array([True, True, False, False]), "fpr": 0.2}]
    # 29/100 is at most 0.29, though 0.29 * 100 is 28.999999999999996 in floating point.
    for models, records, fpr, tied in ((4, 50, 0.29, False), (3, 40, 0.1, True),
                                       (2, 60, 0.01, False), (4, 30, 0.34, False)):
        inside = rng.permuted(np.tile(np.arange(records) % 2 == 0, (models, 1)), axis=1)
        shadow_scores = rng.normal(0, 1.5, (models, records)) + inside
        member = rng.permutation(np.arange(records) < records // 3)
        scores = rng.normal(0.3, 1.5, records) + 1.5 * member
        if tied:
            shadow_scores, scores = np.round(shadow_scores), np.round(scores)
        # Some of the target's scores are the threshold itself, on either side.
        cut = right_threshold(shadow_scores[~inside], fpr)
        scores[np.flatnonzero(member)[0]] = scores[np.flatnonzero(~member)[0]] = cut
        scores[np.flatnonzero(member)[1]] = cut + 9
        cases.append({"shadow_scores": shadow_scores, "shadow_membership": inside,
                      "scores": scores, "membership": member, "fpr": fpr})
    return cases


SHADOW_RATES = Exercise(
    "9.7", "A threshold that never saw the target", 3, function="shadow_rates", right=shadow_rates,
    others=(shadow_rates_by_search, shadow_rates_by_list),
    parts=(Exact(rates_cases, proof="threshold and rates agree, with ties and where the share is "
                                    "met exactly"),),
    mistakes=(
        Mistake("threshold-from-the-target", rates_with(lambda s, m, t, tm: t[~tm]),
                "You took the threshold from the target's non-members. Then its FPR is right by "
                "construction, and an attacker who knows the target's non-members needs no attack. "
                "Only the shadows may give the threshold."),
        Mistake("threshold-from-members", rates_with(lambda s, m, t, tm: s[m]),
                "You took the threshold from the shadows' members. False positives are "
                "non-members that are called members, so the non-members' scores set it."),
        Mistake("at-least", rates_with(accuse=lambda s, t: s >= t),
                "You accuse at the threshold, too (>=). The exercise calls those members whose "
                "score is above it (>); with ties that is another set of people."),
        Mistake("one-too-few", rates_with(cut=nth(lambda n, f: allowed_above(n, f) - 1)),
                "Your threshold is one score too high: one more non-member may lie above it. With "
                "k allowed above, the threshold is number k + 1 from the top, index k."),
        Mistake("one-too-many", rates_with(cut=nth(lambda n, f: allowed_above(n, f) + 1)),
                "Your threshold is one score too low: more than the wanted share of the shadows' "
                "non-members lie above it."),
        Mistake("interpolated", rates_with(cut=lambda others, f: np.quantile(others, 1 - f)),
                "np.quantile interpolates between two scores. Where few scores lie, at a low FPR, "
                "that can let one non-member too many through: take a score that occurs."),
        Mistake("rounds-to-nearest", rates_with(cut=nth(lambda n, f: round(n * f))),
                "You rounded the number of allowed false positives to the nearest whole number. At "
                "most a share fpr means: round down."),
        Mistake("float-rounds-down", rates_with(cut=nth(lambda n, f: int(f * n))),
                "Nearly: 0.29 * 100 is 28.999999999999996 in floating point, so that 29 seem to be "
                "too many of 100. Compare shares instead: number / n <= fpr."),
        Mistake("rates-swapped", rates_with(report=lambda hit, m: (hit[~m].mean(), hit[m].mean())),
                "The two rates have changed places: threshold, TPR, FPR."),
        Mistake("shares-of-everybody", rates_with(report=lambda hit, m: ((hit & m).mean(),
                                                                         (hit & ~m).mean())),
                "You divided by all records. TPR is a share of the members, FPR one of the "
                "non-members."),
        Mistake("precision", rates_with(report=precision_for_tpr),
                "Your TPR is the share of members among the accused, which depends on how many "
                "members there are. TPR is the share of the members that are accused."),
        Mistake("rates-on-the-shadows", on_the_shadows,
                "You report the rates on the shadows, on which the threshold was chosen. They "
                "are right by construction; what counts is how it does on the target."),
    ),
    hints=(
        "Sort the scores of the shadows' non-members, highest first. If the threshold is entry k, "
        "at most k of them lie above it. How large may k be?",
        "k is the largest whole number with k / n <= fpr. Then accused = scores > threshold, and "
        "the two rates are means of accused over members and over non-members.",
    ),
    lesson="The FPR on the target is not the one you asked for; it is what it turns out to be, and "
           "belongs beside the TPR, with the number of non-members it rests on.",
)


# -------------------------------------------------------------------------------------------- 9.8

def rmia_score(p, shadow_p, shadow_membership, population_p, population_shadow_p, a):
    def calibrated(mean):
        return (1 + a) / 2 * mean + (1 - a) / 2
    r = p / calibrated(np.nanmean(masked(shadow_p, ~shadow_membership), axis=0))
    bar = population_p / calibrated(population_shadow_p.mean(axis=0))
    return (np.sum(r[:, None] > bar, axis=1) + r / (1 + r)) / (len(bar) + 1)


def rmia_loop(p, shadow_p, shadow_membership, population_p, population_shadow_p, a):
    def ratio(own, others):
        return own / ((1 + a) / 2 * (sum(others) / len(others)) + (1 - a) / 2)
    bars = [ratio(q, column) for q, column in zip(population_p, population_shadow_p.T, strict=True)]
    scores = []
    for j, own in enumerate(p):
        r = ratio(own, shadow_p[~shadow_membership[:, j], j])
        scores.append((sum(r > bar for bar in bars) + r / (1 + r)) / (len(bars) + 1))
    return scores


def rmia_by_sorting(p, shadow_p, shadow_membership, population_p, population_shadow_p, a):
    outside = np.where(shadow_membership, 0, shadow_p).sum(axis=0) / (~shadow_membership).sum(0)
    r = p / (1 + (1 + a) / 2 * (outside - 1))
    bar = np.sort(population_p / (1 + (1 + a) / 2 * (np.mean(population_shadow_p, axis=0) - 1)))
    return (np.searchsorted(bar, r, side="left") + 1 - 1 / (1 + r)) / (len(bar) + 1)


def rmia_with(outside=None, correct=lambda mean, a: (1 + a) / 2 * mean + (1 - a) / 2,
              ratio=np.divide, own_bar=True, beats=np.greater, score=None):
    """A wrong score: the mean of the shadows, its correction, the ratio, the bar, the tie-break."""
    def wrong(p, shadow_p, shadow_membership, population_p, population_shadow_p, a):
        kept = masked(shadow_p, ~shadow_membership)
        mean = np.nanmean(kept, axis=0) if outside is None else outside(shadow_p, shadow_membership)
        r = ratio(p, correct(mean, a))
        bar = (ratio(population_p, correct(population_shadow_p.mean(axis=0), a)) if own_bar
               else population_p)
        beaten = beats(r[:, None], bar).sum(axis=1)
        if score is not None:
            return score(beaten, r, len(bar))
        return (beaten + r / (1 + r)) / (len(bar) + 1)
    return wrong


def geometric(shadow_p, membership):
    return np.exp(np.nanmean(masked(np.log(shadow_p), ~membership), axis=0))


def rmia_cases(rng):
    cases = [{"p": np.array([0.9, 0.35, 0.5]),
              "shadow_p": np.array([[0.5, 0.5, np.nan], [np.nan, 0.25, 0.25]]),
              "shadow_membership": np.array([[False, False, True], [True, False, False]]),
              "population_p": np.array([0.2, 0.4, 0.5, 0.6]),
              "population_shadow_p": np.array([[0.25, 0.5, 0.25, 0.5], [0.25, 0.25, 0.25, 0.25]]),
              "a": 1.0}]
    for models, records, others, a, unknown in ((4, 6, 15, 0.3, False), (7, 10, 25, 0.6, True),
                                                (5, 8, 40, 0.0, False)):
        membership = some_membership(models, records, rng)
        shadow_p = rng.uniform(0.05, 0.6, (models, records)) + 0.39 * membership
        if unknown:
            shadow_p[membership] = np.nan
        p = rng.uniform(0.1, 1, records)
        p[0] = 0.999
        population_p = rng.uniform(0.05, 0.8, others)
        cases.append({"p": p, "shadow_p": shadow_p, "shadow_membership": membership,
                      "population_p": population_p,
                      "population_shadow_p": rng.uniform(0.05, 0.8, (models, others)), "a": a})
    return cases


RMIA = Exercise(
    "9.8", "Surer than of strangers", 2, function="rmia_score", right=rmia_score,
    others=(rmia_loop, rmia_by_sorting),
    parts=(Exact(rmia_cases, proof="the values agree, with ties and at the top"),),
    mistakes=(
        Mistake("in-shadows-counted", rmia_with(lambda s, m: np.nanmean(s, axis=0)),
                "The mean runs over all shadows that are not blank. Those trained on the record "
                "are not to be used, blank or not: only OUT counts."),
        Mistake("in-for-out", rmia_with(lambda s, m: np.where(m, s, 0).sum(axis=0) / m.sum(axis=0)),
                "You averaged over the IN shadows. The question is how sure models are that "
                "never saw the record: ~shadow_membership."),
        Mistake("mean-of-logs", rmia_with(geometric),
                "You averaged the logarithms. Probabilities themselves are averaged here: one "
                "shadow that is quite wrong would pull a mean of logs down to nothing."),
        Mistake("a-forgotten", rmia_with(correct=lambda mean, a: mean),
                "a does not enter. The OUT mean stands for the mean over all models, half of "
                "which have seen the record and are surer: that is what a corrects for."),
        Mistake("a-swapped", rmia_with(correct=lambda mean, a: (1 - a) / 2 * mean + (1 + a) / 2),
                "(1 + a)/2 and (1 - a)/2 have changed places: for a = 1 the mean itself should be "
                "left."),
        Mistake("in-mean-alone", rmia_with(correct=lambda mean, a: a * mean + 1 - a),
                "Below your line stands a m + 1 - a, what models give that were trained on her. It "
                "should be the mean of that and of m."),
        Mistake("upside-down", rmia_with(ratio=lambda p, mean: mean / p),
                "Your ratio stands on its head. The target's probability belongs above the line: a "
                "model that was trained on her is surer than others are."),
        Mistake("strangers-not-calibrated", rmia_with(own_bar=False),
                "The records of the population are compared by p alone. Some of them are easy, "
                "some hard, for every model: each needs its own ratio, by the same shadows."),
        Mistake("at-least", rmia_with(beats=np.greater_equal),
                "A record that is level with a stranger does not beat it: > and not >=."),
        Mistake("tie-break-forgotten", rmia_with(score=lambda beaten, r, n: beaten / n),
                "This is the bare share. Whoever beats everybody is tied at 1, and low "
                "false-positive rates are decided among just those: add r / (1 + r) and divide by "
                "one more."),
        Mistake("tie-break-too-large", rmia_with(score=lambda beaten, r, n: (beaten + r) / (n + 1)),
                "You added r itself, which may be larger than 1 and then counts for more than a "
                "beaten stranger. r / (1 + r) stays between 0 and 1."),
    ),
    hints=(
        "One ratio for each record and one for each stranger: p over the corrected mean of the "
        "shadows. For a stranger all shadows are OUT.",
        "np.sum(r[:, None] > bar, axis=1) counts how many bars each record passes. Add r / (1 + r) "
        "and divide by the number of strangers plus one.",
    ),
    lesson="The record with the larger ratio has the larger score, so the ROC is that of the "
           "ratio. The strangers turn it into a share, which stays as it is when all ratios of a "
           "model grow tenfold.",
)


# -------------------------------------------------------------------------------------------- 9.9

REPORT = Exercise(
    "9.9", "Two audit reports", 3,
    rubric=(
        "1 point, report A: it is void. A classifier that never asks the model tells the two "
        "groups apart better (AUC 0.807) than any attack (0.674), so the difference may lie in the "
        "questionnaire and nothing follows about the model: neither that it leaks nor that it is "
        "safe. Remedy: non-members from the same pool, set aside at random before training. "
        "1 point, report B: the shadows are not trained as the target (accuracy and loss on "
        "members), so LiRA's 0.61 is no upper limit and not LiRA's worth. But the loss attack "
        "uses no shadows and the blind baseline is at chance, so that part stands: the model "
        "does leak, AUC 0.731 (0.701 to 0.762), 30.6% of members at 10% FPR, as a lower bound. "
        "Remedy: shadows that are trained as the target was. 1 point, for any two: nothing is "
        "said about an FPR of 1%, which takes 1,000 non-members; 75.4% holds where half are "
        "members, and where 1% are it is 3.0%; these are averages, and single members may be at "
        "far higher risk; one target, and an interval over records only; the best of several "
        "attacks was chosen on these same records; an attack that finds little proves nothing."
    ),
)

EXERCISES = (PAIRED_HALVES, IN_AND_OUT, LIRA, ONE_SIDED, FIXED_SPREAD, ATTACK_TABLE, SHADOW_RATES,
             RMIA, REPORT)
