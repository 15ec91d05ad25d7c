"""Checks of problem set 03, composition and the Gaussian mechanism.

Each exercise: our answer, other right answers, the mistakes as code, and the parts of the check.
Small deltas are compared as logarithms, since a tolerance of 1e-9 would not see them. An answer
found by a search may be off by a little, but on the side that keeps the promise: see `SafeSide`.
"""

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import numpy as np
from scipy import integrate, optimize, special, stats

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

CLOSE = 1e-6  # relative; for a delta, of its logarithm
SMALLEST = 1e-13  # below, a delta is a rounding error of 0


def log_delta(delta):
    """The logarithm of one delta, a number."""
    return math.log(max(_number(delta), SMALLEST))


def _number(value):
    """One number as a float; TypeError for an array or anything else."""
    if np.ndim(value):
        raise TypeError(f"expected one number, got {value!r}")
    return float(value)


@dataclass(frozen=True)
class SafeSide(Exact):
    """Compare with the best answer, on the side that keeps the promise.

    above: larger answers are safe (noise), else smaller ones (a share of a budget). A safe answer
    may miss the best by a factor of 1e-6, an unsafe one by 1e-9, so that a root finder may round.
    mistake: the name for answers that are nearly right on the unsafe side.
    """

    above: bool = True
    mistake: str = ""

    def examine(self, exercise, subject, seed):
        verdict = super().examine(exercise, subject, seed)
        if verdict is None or verdict.mistake:
            return verdict
        cases = self.cases(np.random.default_rng(seed))
        excess = [self._excess(exercise.answers(subject, case)[0], exercise.right(**case))
                  for case in cases]
        nearly = all(abs(value) < 0.05 for value in excess)
        return exercise.wrong(self.mistake) if nearly and min(excess) < -1e-9 else verdict

    def _excess(self, answer, best):
        """How far on the safe side, relative to the best; NaN for what is no number."""
        try:
            share = _number(answer) / best - 1
        except (TypeError, ValueError, OverflowError):
            return math.nan
        return share if self.above else -share

    def _agree(self, a, b):
        try:
            return -1e-9 <= self._excess(a, _number(b)) <= CLOSE
        except (TypeError, ValueError, ZeroDivisionError, OverflowError):
            return False


# -------------------------------------------------------------------------------------------- 3.1

CHOICE = choice(
    "3.1", "What adds up, and what does not", right="d", points=1,
    reasons={
        "a": "Take the mechanism that publishes each of the 10,000 records in full with "
             "probability 0.001, and else nothing. It keeps the promise (epsilon 0, delta 0.001), "
             "and it publishes ten records on average. That is why delta has to be far smaller "
             "than 1 over the number of people.",
        "b": "Delta is no probability of failure. Some mechanisms do fail like that; a Gaussian "
             "one never publishes the data, and its loss passes 4.38 with a probability of about "
             "5e-5, not 1e-5. Delta is what is left when e^epsilon times one probability is taken "
             "from the other, on the worst set of releases (notebook 03, \"What δ means\").",
        "c": "Basic composition allows each question to depend on all answers before it: for "
             "whatever came so far, the next release multiplies the ratio by at most its own "
             "e^epsilon (notebook 03, \"The proof, in two lines\"). What has to be fixed in "
             "advance is the limit for the sum.",
        "e": "The other two answers are evidence as well: three independent draws around the same "
             "count can all point the same way, and then their losses add up to 11.1 (notebook 03, "
             "\"Three answers to one question\").",
    },
    hints=(
        "For each statement look for a counterexample: a mechanism that publishes a record at "
        "random, a release far out in a tail, one patient who is replaced.",
        "In how many of the twelve counts does one patient stand? In how many may the new record "
        "and the old one stand?",
    ),
    lesson="Parallel composition needs data that are split by something that one person cannot "
           "stand in twice, and the adjacency decides how many parts one change can touch: one "
           "under add/remove, two under replace-one.",
)


# -------------------------------------------------------------------------------------------- 3.2

def answered(requests, epsilon, delta):
    spent, decisions = (Fraction(0), Fraction(0)), []
    for each, each_delta, repeats in requests:
        would_be = (spent[0] + repeats * Fraction(str(each)),
                    spent[1] + repeats * Fraction(str(each_delta)))
        fits = would_be[0] <= Fraction(str(epsilon)) and would_be[1] <= Fraction(str(delta))
        spent = would_be if fits else spent
        decisions.append(fits)
    return decisions


def answered_with_tolerance(requests, epsilon, delta):
    left, decisions = np.array([epsilon, delta]), []
    room = 1e-9 * left
    for *each, repeats in requests:
        fits = bool(np.all(repeats * np.array(each) <= left + room))
        decisions.append(fits)
        if fits:
            left = left - repeats * np.array(each)
    return np.array(decisions)


def answered_in_decimals(requests, epsilon, delta):
    kept, decisions = [], []
    for request in requests:
        parts = [*kept, request]
        totals = [sum(Decimal(repr(float(part[i]))) * part[2] for part in parts) for i in (0, 1)]
        decisions.append(all(total <= Decimal(repr(float(budget)))
                             for total, budget in zip(totals, (epsilon, delta), strict=True)))
        kept += [request] * decisions[-1]
    return decisions


def exactly(number):
    return Fraction(str(number))


def cost(each, delta, repeats):
    return repeats * exactly(each), repeats * exactly(delta)


def sums(costs):
    return [sum(part) for part in zip(*costs, strict=True)]


def within(total, epsilon, delta):
    return bool(total[0] <= exactly(epsilon) and total[1] <= exactly(delta))


def ledger_with(cost=cost, total=sums, fits=within, *, records_refused=False):
    """A wrong ledger: it differs from ours in one of these."""
    def wrong(requests, epsilon, delta):
        kept, decisions = [], []
        for request in requests:
            new = cost(*request)
            yes = bool(fits(total([*kept, new]), epsilon, delta))
            kept += [new] * (yes or records_refused)
            decisions.append(yes)
        return decisions
    return wrong


def answered_before_looking(requests, epsilon, delta):
    """Answers while anything is left, and records afterwards."""
    spent, decisions = (Fraction(0), Fraction(0)), []
    for request in requests:
        yes = spent[0] < exactly(epsilon) and spent[1] <= exactly(delta)
        if yes:
            spent = sums([spent, cost(*request)])
        decisions.append(yes)
    return decisions


def averages(costs):
    return [part / len(costs) for part in sums(costs)]


def ledger_cases(rng):
    budgets = [
        # The demo: 0.1 + 1 + 10, and then the fourth question.
        ([(0.1, 0, 1), (1.0, 0, 1), (10.0, 0, 1), (0.1, 0, 1)], 11.1, 1e-6),
        ([(0.1, 0.0, 1), (0.1, 0.0, 1), (0.1, 0.0, 1), (0.01, 0.0, 1)], 0.3, 1e-6),
        ([(0.4, 0.0, 3), (0.4, 0.0, 2), (0.3, 0.0, 1), (0.2, 0.0, 1)], 1.0, 1e-6),
        ([(0.1, 1e-9, 1), (0.1, 1e-9, 1), (0.1, 0.0, 1)], 1.0, 1e-9),
        ([(0.1, 1e-12, 1), (0.1, 1e-12, 1), (0.1, 0.0, 1)], 1.0, 1e-12),
        ([(2.0, 0.0, 1), (0.5, 2e-6, 1), (0.5, 5e-7, 1), (0.5, 1e-7, 6), (0.5, 0.0, 1)], 1.0, 1e-6),
        ([(0.2, 0.0, 1), (1.5, 0.0, 1), (0.1, 3e-6, 1), (0.7, 0.0, 1)], 1.0, 1e-6),
        ([], 1.0, 1e-6),
    ]
    for _ in range(4):
        requests = [(int(rng.integers(1, 40)) / 100, float(rng.choice([0.0, 1e-7, 3e-7])),
                     int(rng.integers(1, 5))) for _ in range(12)]
        budgets.append((requests, 2.0, 1.5e-6))
    return [{"requests": requests, "epsilon": epsilon, "delta": delta}
            for requests, epsilon, delta in budgets]


LEDGER = Exercise(
    "3.2", "A ledger that can say no", 2, function="answered", right=answered,
    others=(answered_with_tolerance, answered_in_decimals),
    parts=(Exact(ledger_cases, proof="the same requests are answered and refused"),),
    mistakes=(
        Mistake("each-on-its-own", ledger_with(total=lambda costs: costs[-1]),
                "You compare each request with the whole budget, as if the others had not been "
                "answered. Promises about the same people add up: the demo with 0.1, 1 and 10 "
                "promises 11.1 in total, not 10."),
        Mistake("average", ledger_with(total=averages),
                "You averaged the promises. An attacker sees all the answers, not an average "
                "answer: the losses add up."),
        Mistake("repeats-forgotten",
                ledger_with(cost=lambda each, delta, repeats: cost(each, delta, 1)),
                "You count each request once, however often it is repeated. A release with fresh "
                "noise three times is three releases: both epsilon and delta count three times "
                "(notebook 03, \"Asking again\")."),
        Mistake("deltas-forgotten",
                ledger_with(fits=lambda total, epsilon, delta: total[0] <= exactly(epsilon)),
                "You keep the epsilons and let the deltas go. They add up just the same, and the "
                "budget has a delta of its own."),
        Mistake("deltas-not-repeated",
                ledger_with(cost=lambda each, delta, repeats:
                            (repeats * exactly(each), exactly(delta))),
                "You multiply epsilon by the number of repeats, but not delta. Each repeat adds "
                "its delta too."),
        Mistake("one-of-the-two-fits",
                ledger_with(fits=lambda total, epsilon, delta:
                            total[0] <= exactly(epsilon) or total[1] <= exactly(delta)),
                "You answer when epsilon or delta is within the budget. Both must be: a promise "
                "is the pair."),
        Mistake("root-of-squares",
                ledger_with(cost=lambda each, delta, repeats:
                            (repeats * exactly(each) ** 2, repeats * exactly(delta)),
                            fits=lambda total, epsilon, delta:
                            total[0] <= exactly(epsilon) ** 2 and total[1] <= exactly(delta)),
                "You added squares and took a root, as one does with standard deviations. Epsilon "
                "bounds the loss in the worst case, and worst cases add up plainly. (For Gaussian "
                "noise something like it is true of mu: exercise 3.6.)"),
        Mistake("adds-the-factors",
                ledger_with(cost=lambda each, delta, repeats:
                            (repeats * math.exp(each), repeats * exactly(delta)),
                            fits=lambda total, epsilon, delta:
                            total[0] <= math.exp(epsilon) and total[1] <= exactly(delta)),
                "You added the factors e^epsilon. The factors of several releases multiply, "
                "so it is the epsilons that add up."),
        Mistake("answers-first", answered_before_looking,
                "You answer as long as anything is left, and only then record. The last answer "
                "may then overdraw the budget, and an answer cannot be taken back: work out what "
                "the total would be, and decide before answering."),
        Mistake("stops-at-the-first-refusal", ledger_with(records_refused=True),
                "After one refusal you refuse all the rest. Did you stop, or charge for what was "
                "refused? A refusal looks only at the numbers in the ledger, so it tells nothing "
                "about the data and costs nothing; a smaller request may still fit."),
        Mistake("refuses-at-the-budget",
                ledger_with(fits=lambda total, epsilon, delta:
                            total[0] < exactly(epsilon) and total[1] < exactly(delta)),
                "You refuse a request that uses the budget up exactly. A budget is what may be "
                "spent, the last part of it too."),
        Mistake("rounding-refuses",
                ledger_with(cost=lambda each, delta, repeats: (repeats * each, repeats * delta),
                            fits=lambda total, epsilon, delta:
                            total[0] <= epsilon and total[1] <= delta),
                "Right but for the floats: 0.1 + 0.1 + 0.1 is a little more than 0.3 to a "
                "computer, so your ledger refuses what just fits. Add exact fractions, "
                "Fraction(str(0.1)), or allow one part in a billion of the budget."),
        Mistake("absolute-tolerance",
                ledger_with(fits=lambda total, epsilon, delta:
                            (total[0] <= exactly(epsilon) or np.isclose(float(total[0]), epsilon))
                            and (total[1] <= exactly(delta)
                                 or np.isclose(float(total[1]), delta))),
                "Your tolerance is larger than the deltas: np.isclose takes 2e-9 and 1e-9 for "
                "equal. Allow a small part of the budget, not a fixed amount."),
        Mistake("refused-for-answered",
                lambda **case: [not yes for yes in answered(**case)],
                "You have it the other way round: True is for the requests that are answered."),
    ),
    hints=(
        "Keep two running totals. For each request work out what both would be after it; only if "
        "neither passes its budget, answer and keep the new totals.",
        "Three times 0.1 must fit a budget of 0.3. Fraction(str(0.1)) is exactly 1/10, and "
        "fractions add up without rounding.",
    ),
    lesson="Deciding before answering is what makes a budget a promise. Basic composition even "
           "allows the requests to depend on the answers before them, as long as the ledger "
           "stops in time (Rogers et al. 2016).",
)


# -------------------------------------------------------------------------------------------- 3.3

def advanced(epsilon, delta, count, slack):
    root = epsilon * math.sqrt(2 * count * math.log(1 / slack))
    return root + count * epsilon * math.expm1(epsilon), count * delta + slack


def advanced_by_mean_and_width(epsilon, delta, count, slack):
    mean, width = epsilon * (np.exp(epsilon) - 1), 2 * epsilon
    spread = width * np.sqrt(count * -np.log(slack) / 2)
    return np.array([count * mean + spread, slack + sum([delta] * count)])


def advanced_as_list(epsilon, delta, count, slack):
    log_term = -2 * count * math.log(slack)
    return [epsilon * (log_term**0.5 + count * (math.e**epsilon - 1)), delta * count + slack]


def advanced_with(first=lambda e, k, s: e * math.sqrt(2 * k * math.log(1 / s)),
                  second=lambda e, k: k * e * math.expm1(e),
                  total=lambda d, k, s: k * d + s):
    """A wrong theorem: it differs from ours in one of the three terms."""
    def wrong(epsilon, delta, count, slack):
        return (first(epsilon, count, slack) + second(epsilon, count),
                total(delta, count, slack))
    return wrong


def pair_with_log(answer):
    epsilon, delta = answer
    return [_number(epsilon), log_delta(delta)]


def advanced_cases(rng):
    cases = [(0.1, 1e-7, 1000, 1e-5), (0.5, 0.0, 20, 1e-5), (1.0, 1e-6, 3, 1e-3),
             (0.01, 1e-8, 5000, 1e-6), (2.0, 1e-6, 1, 0.1)]
    for _ in range(4):
        cases.append((float(rng.uniform(0.02, 1)), float(10 ** rng.uniform(-8, -6)),
                      int(rng.integers(5, 2000)), float(10 ** rng.uniform(-6, -3))))
    return [dict(zip(("epsilon", "delta", "count", "slack"), case, strict=True)) for case in cases]


ADVANCED = Exercise(
    "3.3", "Advanced composition, both terms", 2, function="advanced", right=advanced,
    others=(advanced_by_mean_and_width, advanced_as_list),
    parts=(Exact(advanced_cases, tidy=pair_with_log),),
    mistakes=(
        Mistake("second-term-dropped", advanced_with(second=lambda e, k: 0),
                "The second term is missing. Each loss is positive on average, and the root "
                "covers only how far the sum strays from its mean. For a thousand releases at 0.1 "
                "the second term is about 10.5 (notebook 03, \"A mistake: the drift left out\")."),
        Mistake("epsilon-squared", advanced_with(second=lambda e, k: k * e * e),
                "Your second term is k epsilon squared. That is its value for small epsilon only, "
                "and it is smaller than epsilon (e^epsilon - 1): you claim more than was proved."),
        Mistake("half-of-the-second",
                advanced_with(second=lambda e, k: k * e * math.expm1(e) / 2),
                "Your second term is half of the theorem's. Sharper versions exist, but each "
                "needs a proof of its own; use the theorem as stated."),
        Mistake("one-less-forgotten", advanced_with(second=lambda e, k: k * e * math.exp(e)),
                "You multiply by e^epsilon where the theorem has e^epsilon - 1. A release that "
                "promises much has a mean loss near 0; with your term k releases cost more than "
                "k epsilon."),
        Mistake("second-term-once", advanced_with(second=lambda e, k: e * math.expm1(e)),
                "Your second term stands there once. It is the mean loss of one release, and there "
                "are k of them."),
        Mistake("factor-2-in-the-root",
                advanced_with(first=lambda e, k, s: e * math.sqrt(k * math.log(1 / s))),
                "The 2 under the root is missing, so you claim less epsilon than was proved. It "
                "comes from the tail of a bounded sum (notebook 03, \"Advanced composition\")."),
        Mistake("logarithm-to-base-10",
                advanced_with(first=lambda e, k, s: e * math.sqrt(2 * k * math.log10(1 / s))),
                "You took the logarithm to base 10. In formulas of privacy ln is the natural one, "
                "and np.log and math.log give it."),
        Mistake("count-outside-the-root",
                advanced_with(first=lambda e, k, s: k * e * math.sqrt(2 * math.log(1 / s))),
                "You have k in front of the root. It stands under it, and that is the whole gain: "
                "the spread of a sum grows with the root of k."),
        Mistake("epsilon-under-the-root",
                advanced_with(first=lambda e, k, s: math.sqrt(2 * k * e * math.log(1 / s))),
                "Your epsilon stands under the root. It is the size of each loss, so it "
                "multiplies the root."),
        Mistake("logarithm-of-the-total-delta",
                lambda epsilon, delta, count, slack:
                (advanced(epsilon, delta, count, count * delta + slack)[0],
                 count * delta + slack),
                "Your logarithm has the total delta in it. Only the slack may buy a smaller "
                "epsilon: the k deltas are spent already."),
        Mistake("slack-lost", advanced_with(total=lambda d, k, s: k * d),
                "The slack is missing in your delta. It is the price of leaving out the far "
                "tail of the sum, and it is paid in delta."),
        Mistake("count-of-deltas-lost", advanced_with(total=lambda d, k, s: d + s),
                "Your delta counts the releases' delta once. Each of the k releases brings its "
                "own."),
        Mistake("slack-for-each", advanced_with(total=lambda d, k, s: k * (d + s)),
                "You pay the slack k times. It is spent once, on the sum of all losses."),
        Mistake("basic-composition",
                lambda epsilon, delta, count, slack: (count * epsilon, count * delta),
                "That is basic composition. It is true as well, but the exercise asks for the "
                "other theorem (exercise 3.4 takes the better of the two)."),
        Mistake("smaller-of-the-two",
                lambda epsilon, delta, count, slack:
                (min(count * epsilon, advanced(epsilon, delta, count, slack)[0]),
                 count * delta + slack),
                "You took the smaller of the two theorems' epsilons. A fine idea, and the one of "
                "exercise 3.4; here only the theorem is wanted, so that you see where it loses."),
    ),
    hints=(
        "Two terms make the epsilon: how far the sum of the losses strays (a root), and where its "
        "mean lies (k times one release's). And two make the delta.",
        "math.expm1(epsilon) is e^epsilon - 1, and math.log is the natural logarithm.",
    ),
    lesson="For a thousand releases at 0.1 that is 25.7 where basic composition says 100; the "
           "root of k is the gain and the second term its limit. For few releases, or large "
           "epsilons, basic composition is the better one.",
)


# -------------------------------------------------------------------------------------------- 3.4

def advanced_total(epsilon, count, slack):
    return advanced(epsilon, 0.0, count, slack)[0]


def largest(fits, low, high):
    """The largest number, to rounding, that fits; `low` must fit."""
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def largest_share(total, count, slack):
    return largest(lambda share: min(count * share, advanced_total(share, count, slack)) <= total,
                   total / count, total)


def largest_share_by_root(total, count, slack):
    excess = lambda share: advanced_total(share, count, slack) - total  # noqa: E731
    root = optimize.brentq(excess, 0, total / math.sqrt(2 * count * math.log(1 / slack)),
                           xtol=1e-15)
    return max(total / count, root)


def largest_share_by_newton(total, count, slack):
    width = math.sqrt(2 * count * math.log(1 / slack))
    share = total / width  # above the root of a convex function: Newton's steps come down to it
    for _ in range(60):
        slope = width + count * (math.expm1(share) + share * math.exp(share))
        share -= (width * share + count * share * math.expm1(share) - total) / slope
    return np.float64(max(share * (1 - 1e-12), total / count))


def inverse_of(spent):
    """The largest share for which spent(share, count, slack) fits, or basic composition does."""
    def share(total, count, slack):
        fits = lambda each: min(count * each, spent(each, count, slack)) <= total  # noqa: E731
        return largest(fits, total / count, total)
    return share


def advanced_share(total, count, slack):
    return largest(lambda share: advanced_total(share, count, slack) <= total, 0.0, total)


def share_cases(rng):
    cases = [(1.0, 1095, 1e-6), (1.0, 12, 1e-6), (2.0, 100, 1e-5), (10.0, 1000, 1e-5),
             (0.5, 1, 1e-5), (8.0, 365, 1e-3), (30.0, 2, 1e-5)]
    for _ in range(3):
        cases.append((float(rng.uniform(0.5, 8)), int(rng.integers(2, 3000)),
                      float(10 ** rng.uniform(-6, -3))))
    return [dict(zip(("total", "count", "slack"), case, strict=True)) for case in cases]


SHARE = Exercise(
    "3.4", "How much may each release spend?", 3, function="largest_share", right=largest_share,
    others=(largest_share_by_root, largest_share_by_newton),
    parts=(SafeSide(share_cases, above=False, mistake="overdraws",
                    proof="the share is the largest, and the budget is not overdrawn"),),
    mistakes=(
        Mistake("basic-only", lambda total, count, slack: total / count,
                "You divide the budget by the number of releases: basic composition alone. It "
                "keeps the budget, but for many releases the other theorem allows a larger "
                "share."),
        Mistake("advanced-only", advanced_share,
                "You use advanced composition alone. For few releases basic composition allows a "
                "larger share, and both are proved: take the better one."),
        Mistake("worse-of-the-two",
                lambda total, count, slack:
                min(total / count, advanced_share(total, count, slack)),
                "You take the smaller of the two shares. Either theorem is enough to keep the "
                "budget, so the larger share is allowed."),
        Mistake("second-term-dropped",
                lambda total, count, slack:
                max(total / count, total / math.sqrt(2 * count * math.log(1 / slack))),
                "You divide by the root alone, so the second term of the theorem is missing: the "
                "budget is overdrawn, by more the larger the share is. With both terms there is "
                "no closed form; search."),
        Mistake("divides-by-the-root-of-the-count",
                lambda total, count, slack: total / math.sqrt(count),
                "You divide by the root of the number of releases. The theorem has more in it: "
                "the 2 ln(1/slack) under the root, and a second term. Put your share into "
                "exercise 3.3 and see what it spends."),
        Mistake("epsilon-squared",
                inverse_of(lambda e, k, s: e * math.sqrt(2 * k * math.log(1 / s)) + k * e * e),
                "Your second term is k epsilon squared, which is too small, so the share "
                "overdraws the budget. The theorem has k epsilon (e^epsilon - 1)."),
        Mistake("logarithm-to-base-10",
                inverse_of(lambda e, k, s: e * math.sqrt(2 * k * math.log10(1 / s))
                           + k * e * math.expm1(e)),
                "You took the logarithm to base 10; the theorem has the natural one. Your share "
                "overdraws the budget."),
        Mistake("factor-2-in-the-root",
                inverse_of(lambda e, k, s: e * math.sqrt(k * math.log(1 / s))
                           + k * e * math.expm1(e)),
                "The 2 under the root is missing, and so your share overdraws the budget."),
        Mistake("slack-for-each",
                lambda total, count, slack: largest_share(total, count, slack / count),
                "You split the slack over the releases. It is spent once, on the sum of all "
                "losses, so all of it may stand in the logarithm."),
        Mistake("forward",
                lambda total, count, slack:
                min(count * total, advanced_total(total, count, slack)),
                "You computed what `count` releases at the full budget would spend. The question "
                "goes the other way: the total is given, and the share is wanted."),
        Mistake("wastes-budget",
                lambda total, count, slack:
                math.floor(largest_share(total, count, slack) * 1e5) / 1e5,
                "Your share is on the safe side, but coarse: it is cut off after a few digits. "
                "Go on halving until the share is known to a millionth of itself."),
        Mistake("overdraws",
                lambda total, count, slack:
                math.ceil(largest_share(total, count, slack) * 1e5) / 1e5,
                "So close, but your share spends a little more than the budget: a promise is "
                "broken by a little too. When a search or a rounding leaves a choice, take the end "
                "that still fits."),
    ),
    hints=(
        "What would a share spend? By basic composition count times the share; by the theorem of "
        "exercise 3.3 something else. The smaller of the two must not pass the total.",
        "Both grow with the share. Keep a `low` that fits (total / count does) and a `high` that "
        "is too much, halve the gap a hundred times, and return `low`.",
    ),
    lesson="Three dashboards a day for a year are 1095 releases: for a total of 1 the better "
           "theorem allows each about six times the share of basic composition, and still only "
           "about 0.0056.",
)


# -------------------------------------------------------------------------------------------- 3.5

def responses_delta(epsilon, each, count):
    p = 1 / (1 + math.exp(-each))
    delta = 0.0
    for truths in range(count + 1):
        loss = (2 * truths - count) * each
        chance = math.comb(count, truths) * p**truths * (1 - p) ** (count - truths)
        delta += chance * max(0.0, -math.expm1(epsilon - loss))
    return delta


def responses_delta_by_tails(epsilon, each, count):
    truths = np.arange(count + 1)
    p = special.expit(each)
    here, there = stats.binom.pmf(truths, count, p), stats.binom.pmf(truths, count, 1 - p)
    return np.maximum(here - np.exp(epsilon) * there, 0).sum()


def responses_delta_by_convolution(epsilon, each, count):
    """Add one release after the other to the law of the loss."""
    law, p = {0: 1.0}, math.exp(each) / (1 + math.exp(each))
    for _ in range(count):
        new = {}
        for loss, mass in law.items():
            new[loss + 1] = new.get(loss + 1, 0.0) + mass * p
            new[loss - 1] = new.get(loss - 1, 0.0) + mass * (1 - p)
        law = new
    return sum(mass * (1 - math.exp(epsilon - loss * each))
               for loss, mass in law.items() if loss * each > epsilon)


def responses_with(term=lambda p, q, epsilon: max(0.0, p - math.exp(epsilon) * q), *,
                   choose=math.comb, last=1, truth=lambda each: 1 / (1 + math.exp(-each))):
    """A wrong sum: it adds term(p, q, epsilon), or differs in a coefficient."""
    def wrong(epsilon, each, count):
        right, lie = truth(each), 1 - truth(each)
        return sum(term(choose(count, j) * right**j * lie ** (count - j),
                        choose(count, j) * lie**j * right ** (count - j), epsilon)
                   for j in range(count + last))
    return wrong


def responses_losses_of_truths_only(epsilon, each, count):
    p = 1 / (1 + math.exp(-each))
    return sum(math.comb(count, j) * p**j * (1 - p) ** (count - j)
               * max(0.0, 1 - math.exp(epsilon - j * each)) for j in range(count + 1))


def responses_deltas_added(epsilon, each, count):
    return count * responses_delta(epsilon / count, each, 1)


def responses_cases(rng):
    cases = [(0.0, 1.0, 1), (1.0, 1.0, 2), (2.0, 0.5, 10), (9.9, 1.0, 4), (5.0, 0.1, 200),
             (1.05, 0.25, 12)]
    for _ in range(4):
        count, each = int(rng.integers(3, 120)), float(rng.uniform(0.05, 0.8))
        cases.append((float(rng.uniform(0.1, 2)) * each * math.sqrt(count), each, count))
    return [dict(zip(("epsilon", "each", "count"), case, strict=True)) for case in cases]


RESPONSES = Exercise(
    "3.5", "The worst case, counted", 2, function="responses_delta", right=responses_delta,
    others=(responses_delta_by_tails, responses_delta_by_convolution),
    parts=(Exact(responses_cases, tolerance=CLOSE, tidy=log_delta,
                 proof="the values agree with the sum, to a millionth of their logarithm"),),
    mistakes=(
        Mistake("tail-of-the-loss",
                responses_with(lambda p, q, epsilon: p if p > math.exp(epsilon) * q else 0.0),
                "You added up the chance that the loss passes epsilon. That is never smaller than "
                "delta, and mostly larger: of each such outcome e^epsilon times its chance in the "
                "other world is allowed, and only the rest counts."),
        Mistake("negative-terms-kept",
                responses_with(lambda p, q, epsilon: p - math.exp(epsilon) * q),
                "You also added the negative terms, so that all of them together give 1 - "
                "e^epsilon. The attacker picks the set of outcomes, and picks only those that "
                "help: take the positive part of each term (notebook 03, \"From losses to δ\")."),
        Mistake("epsilon-forgotten",
                responses_with(lambda p, q, epsilon: max(0.0, p - q)),
                "Your epsilon does not matter: e^epsilon is missing before the chance in the "
                "other world. What you have is delta at epsilon 0."),
        Mistake("epsilon-for-its-factor",
                responses_with(lambda p, q, epsilon: max(0.0, p - epsilon * q)),
                "You multiply by epsilon where the definition has e^epsilon."),
        Mistake("absolute-values",
                responses_with(lambda p, q, epsilon: abs(p - math.exp(epsilon) * q) / 2),
                "You took half of the absolute differences. For epsilon 0 this is the same as the "
                "positive parts, since both chances add up to 1; for any other epsilon it is not."),
        Mistake("coefficients-forgotten", responses_with(choose=lambda n, j: 1),
                "The binomial coefficient is missing: j truths among k can fall in many orders, "
                "and all of them count."),
        Mistake("lies-forgotten", responses_losses_of_truths_only,
                "Your loss counts the truths and not the lies. Each lie takes epsilon off: with j "
                "truths among k the loss is (2j - k) times epsilon (notebook 03, \"The worst "
                "mechanism is a coin\")."),
        Mistake("last-term-left-out", responses_with(last=0),
                "The last term is missing: all k answers may be true. range(k) ends before k."),
        Mistake("deltas-added", responses_deltas_added,
                "You split epsilon evenly and added the deltas of the parts. That is basic "
                "composition; counting the outcomes gives the whole truth."),
        Mistake("worlds-exchanged",
                responses_with(lambda p, q, epsilon:
                               q * max(0.0, 1 - math.exp(epsilon) * q / p)),
                "You weigh each outcome with its chance in the other world. Delta is counted "
                "where the outcome comes about: in the world that the loss speaks for."),
        Mistake("truth-half-as-much",
                responses_with(truth=lambda each: 1 / (1 + math.exp(-each / 2))),
                "Your coin tells the truth too seldom: the odds of truth to lie must be "
                "e^epsilon, so the chance of the truth is e^epsilon / (1 + e^epsilon)."),
    ),
    hints=(
        "j truths among k: how likely is that in one world, and how likely in the other (where "
        "they are lies)? Both are binomial.",
        "Delta is the sum over j of the positive part of P(j) - e^epsilon Q(j). Equivalently, "
        "P(j) times the positive part of 1 - e^(epsilon - loss), the loss being (2j - k) each.",
    ),
    lesson="Randomised response is the worst that an epsilon-DP release can be, so nobody can "
           "prove a better total from the epsilons alone (Kairouz, Oh and Viswanath 2015): for a "
           "thousand releases at 0.1 and delta 1e-5 it is 17.8, and advanced composition says "
           "25.7.",
)


# -------------------------------------------------------------------------------------------- 3.6

def phi(x):
    return float(special.ndtr(x))


def gaussian_delta(mu, epsilon):
    return phi(mu / 2 - epsilon / mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon / mu)


def gaussian_delta_by_erfc(mu, epsilon):
    upper = lambda x: 0.5 * math.erfc(x / math.sqrt(2))  # noqa: E731
    return upper(epsilon / mu - mu / 2) - math.exp(epsilon) * upper(epsilon / mu + mu / 2)


def gaussian_delta_by_integral(mu, epsilon):
    """Integrate p - e^epsilon q from where the loss is epsilon."""
    start = mu / 2 + epsilon / mu
    def excess(z):
        return math.exp(-((z - mu) ** 2) / 2) - math.exp(epsilon - z * z / 2)
    value, _ = integrate.quad(excess, start, max(start, mu) + 12, epsabs=0, epsrel=1e-11, limit=500)
    return value / math.sqrt(2 * math.pi)


def gaussian_tail(mu, epsilon):
    """P(loss > epsilon), a delta that suffices."""
    return phi(mu / 2 - epsilon / mu)


def gaussian_cases(rng):
    cases = [(1.0, 1.0), (1.0, 0.0), (0.5, 2.0), (2.0, 6.0), (0.2, 0.1), (3.0, 3.0)]
    for _ in range(5):
        mu = float(rng.uniform(0.2, 3))
        cases.append((mu, max(0.0, mu * mu / 2 + mu * float(rng.uniform(-0.5, 4)))))
    return [{"mu": mu, "epsilon": epsilon} for mu, epsilon in cases]


GAUSSIAN_DELTA = Exercise(
    "3.6", "The exact curve of normal noise", 2, function="gaussian_delta", right=gaussian_delta,
    others=(gaussian_delta_by_erfc, gaussian_delta_by_integral),
    parts=(Exact(gaussian_cases, tolerance=CLOSE, tidy=log_delta,
                 proof="the values agree with the closed form, to a millionth of their "
                       "logarithm"),),
    mistakes=(
        Mistake("sigma-for-mu", lambda mu, epsilon: gaussian_delta(1 / mu, epsilon),
                "You used mu as if it were the noise. It is sensitivity over noise: a large mu "
                "means little noise, and delta must grow with it."),
        Mistake("tail-of-the-loss", gaussian_tail,
                "You have the first term only: the chance that the loss passes epsilon. It is a "
                "delta that suffices, but too large; what the other world's chance explains, "
                "e^epsilon times it, must be taken off."),
        Mistake("both-tails", lambda mu, epsilon: 2 * gaussian_tail(mu, epsilon),
                "You doubled a tail. The loss has a sign, and only its upper tail counts here; "
                "the exchanged pair of worlds gives the same curve again, not an addition to "
                "it."),
        Mistake("factor-forgotten",
                lambda mu, epsilon:
                phi(mu / 2 - epsilon / mu) - phi(-mu / 2 - epsilon / mu),
                "The factor e^epsilon before the second term is missing: the definition compares "
                "one probability with e^epsilon times the other."),
        Mistake("adds-the-terms",
                lambda mu, epsilon:
                phi(mu / 2 - epsilon / mu) + math.exp(epsilon) * phi(-mu / 2 - epsilon / mu),
                "You added the second term. It is what the promise allows, so it is taken off."),
        Mistake("half-forgotten",
                lambda mu, epsilon:
                phi(mu - epsilon / mu) - math.exp(epsilon) * phi(-mu - epsilon / mu),
                "You have mu where the formula has mu/2. The loss of a release z is mu z - mu^2/2 "
                "when the worlds have means 0 and mu (notebook 03, \"Normal noise\"): set that "
                "equal to epsilon."),
        Mistake("times-mu",
                lambda mu, epsilon:
                phi(mu / 2 - epsilon * mu) - math.exp(epsilon) * phi(-mu / 2 - epsilon * mu),
                "You multiply epsilon by mu. The loss grows with mu times the release, so the "
                "release that reaches epsilon is epsilon divided by mu, plus mu/2."),
        Mistake("epsilon-not-scaled",
                lambda mu, epsilon:
                phi(mu / 2 - epsilon) - math.exp(epsilon) * phi(-mu / 2 - epsilon),
                "Epsilon stands alone in your formula. It is a loss, and the argument of Phi is a "
                "distance in standard deviations: divide by mu."),
        Mistake("same-sign-twice",
                lambda mu, epsilon:
                abs(phi(mu / 2 - epsilon / mu) * (1 - math.exp(epsilon))),
                "Both your terms have the same argument. The two worlds lie mu apart: the same "
                "release is mu/2 from the middle on one side for one of them, on the other side "
                "for the other."),
        Mistake("density-for-distribution",
                lambda mu, epsilon:
                stats.norm.pdf(mu / 2 - epsilon / mu)
                - math.exp(epsilon) * stats.norm.pdf(-mu / 2 - epsilon / mu),
                "You took the density of the normal law. At the release in question both densities "
                "balance, so your answer is about 0; Phi is the distribution function, "
                "norm.cdf."),
        Mistake("root-of-2-in-erf",
                lambda mu, epsilon:
                0.5 * (1 + math.erf(mu / 2 - epsilon / mu))
                - 0.5 * math.exp(epsilon) * (1 + math.erf(-mu / 2 - epsilon / mu)),
                "Phi(x) is (1 + erf(x / root of 2)) / 2: the root of 2 is missing. scipy's "
                "norm.cdf is Phi itself."),
        Mistake("classical-formula-turned-round",
                lambda mu, epsilon: 1.25 * math.exp(-((epsilon / mu) ** 2) / 2),
                "You solved the classical formula for delta. It is a bound, for epsilon up to 1, "
                "and for small epsilon it even passes 1. Here the exact curve is wanted."),
    ),
    hints=(
        "Around 0 and around mu, with standard deviation 1: which releases z have a loss above "
        "epsilon? How likely are they in each of the two worlds?",
        "Phi(mu/2 - epsilon/mu) is how likely they are around mu, and Phi(-mu/2 - epsilon/mu) "
        "around 0. Delta is the first minus e^epsilon times the second.",
    ),
    lesson="A sum of normal losses is normal, so T releases with the same mu are one release with "
           "mu times the root of T, exactly: for normal noise no composition theorem is needed, "
           "only this curve (Dong, Roth and Su 2022).",
)


# -------------------------------------------------------------------------------------------- 3.7

def smallest_sigma(sensitivity, epsilon, delta):
    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if gaussian_delta(1 / middle, epsilon) <= delta else (
            middle, high)
    return high * sensitivity


def smallest_sigma_by_root(sensitivity, epsilon, delta):
    high = 1.0
    while gaussian_delta_by_erfc(1 / high, epsilon) > delta:
        high *= 2
    low = high
    while gaussian_delta_by_erfc(1 / low, epsilon) <= delta:
        low /= 2
    root = optimize.brentq(
        lambda sigma: gaussian_delta_by_erfc(1 / sigma, epsilon) - delta, low, high, xtol=1e-14)
    return np.float64(sensitivity * root)


def smallest_sigma_by_decimals(sensitivity, epsilon, delta):
    """Go up in steps until it is enough, then step back and refine."""
    sigma, step = 0.0, 1000.0
    while step > 1e-12:
        if gaussian_delta(sensitivity / (sigma + step), epsilon) > delta:
            sigma += step
        else:
            step /= 4
    return sigma + 4 * step


def sigma_for(curve):
    """The noise at which a (wrong) curve(mu, epsilon) reaches delta."""
    def sigma(sensitivity, epsilon, delta):
        low, high = 1e-3, 1e6
        for _ in range(200):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if curve(1 / middle, epsilon) <= delta else (middle, high)
        return high * sensitivity
    return sigma


def classical(sensitivity, epsilon, delta):
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def by_zcdp(sensitivity, epsilon, delta):
    """rho + 2 sqrt(rho ln(1/delta)) = epsilon, solved for sigma."""
    wide = math.log(1 / delta)
    root = math.sqrt(wide + epsilon) - math.sqrt(wide)
    return sensitivity / math.sqrt(2) / root


def sigma_cases(rng):
    cases = [(1.0, 1.0, 1e-5), (0.02, 0.1, 1e-6), (1.0, 4.0, 1e-5), (3.0, 16.0, 1e-5),
             (2.5, 30.0, 1e-6), (5.0, 0.1, 1e-6)]  # the last needs a sigma of about 181
    for _ in range(3):
        cases.append((float(rng.uniform(0.1, 5)), float(rng.uniform(0.2, 8)),
                      float(10 ** rng.uniform(-7, -3))))
    return [dict(zip(("sensitivity", "epsilon", "delta"), case, strict=True)) for case in cases]


SIGMA = Exercise(
    "3.7", "The least noise that keeps a promise", 2, function="smallest_sigma",
    right=smallest_sigma, others=(smallest_sigma_by_root, smallest_sigma_by_decimals),
    parts=(SafeSide(sigma_cases, above=True, mistake="too-little-noise",
                    proof="the noise is the least, and the promise holds"),),
    mistakes=(
        Mistake("classical-formula", classical,
                "You used the classical formula. For epsilon up to 1 it is right and wasteful; "
                "above 1 its proof fails, and for large epsilon so does the promise: at epsilon "
                "16 its noise gives no (16, 1e-5) (notebook 03, \"Normal noise\"). Search on the "
                "exact curve."),
        Mistake("classical-as-the-ceiling",
                lambda sensitivity, epsilon, delta:
                min(classical(sensitivity, epsilon, delta),
                    smallest_sigma(sensitivity, epsilon, delta)),
                "Your search never goes above the classical formula. For large epsilon that "
                "formula gives too little noise, so the answer lies above it: let the upper end "
                "grow until the curve says that it is enough."),
        Mistake("classical-without-1.25",
                lambda sensitivity, epsilon, delta:
                sensitivity * math.sqrt(2 * math.log(1 / delta)) / epsilon,
                "That looks like the classical formula, with its 1.25 lost. Here no formula of "
                "that kind is needed: search on the exact curve."),
        Mistake("tail-of-the-loss", sigma_for(gaussian_tail),
                "You ask that the loss passes epsilon with probability at most delta. That is "
                "enough, but more than the promise needs: use the exact curve of exercise 3.6, "
                "with its second term."),
        Mistake("factor-forgotten",
                sigma_for(lambda mu, epsilon:
                          phi(mu / 2 - epsilon / mu) - phi(-mu / 2 - epsilon / mu)),
                "Your curve lacks the factor e^epsilon, so it asks for more noise than the "
                "promise needs. See exercise 3.6."),
        Mistake("zcdp", by_zcdp,
                "You went through zCDP and its formula for epsilon. The promise holds, but the "
                "conversion gives something away; on the exact curve less noise is enough."),
        Mistake("laplace-scale",
                lambda sensitivity, epsilon, delta: sensitivity / epsilon,
                "That is the scale of Laplace noise. Normal noise is calibrated with delta too, "
                "and mostly needs to be wider."),
        Mistake("mu-for-sigma",
                lambda sensitivity, epsilon, delta:
                sensitivity / smallest_sigma(1.0, epsilon, delta),
                "You returned sensitivity times mu. The noise is sensitivity divided by mu: more "
                "noise, smaller mu."),
        Mistake("sensitivity-forgotten",
                lambda sensitivity, epsilon, delta: smallest_sigma(1.0, epsilon, delta),
                "The sensitivity does not matter in your answer. The curve needs only mu, which "
                "is sensitivity / sigma: so sigma grows with the sensitivity."),
        Mistake("sensitivity-divides",
                lambda sensitivity, epsilon, delta:
                smallest_sigma(1.0, epsilon, delta) / sensitivity,
                "Your noise shrinks when one person matters more. It must grow in proportion to "
                "the sensitivity."),
        Mistake("variance",
                lambda sensitivity, epsilon, delta:
                smallest_sigma(sensitivity, epsilon, delta) ** 2,
                "You returned the variance. The standard deviation is wanted, which is also what "
                "rng.normal takes as its second argument."),
        Mistake("too-little-noise",
                lambda sensitivity, epsilon, delta:
                math.floor(1e4 * smallest_sigma(sensitivity, epsilon, delta)) / 1e4,
                "So close, but a little too little: at your noise the curve lies above delta, so "
                "the promise is false. When a search or a rounding leaves a choice, take the end "
                "with more noise."),
        Mistake("wasteful-rounding",
                lambda sensitivity, epsilon, delta:
                math.ceil(1e4 * smallest_sigma(sensitivity, epsilon, delta)) / 1e4,
                "The promise holds, but the search is coarse: your noise is rounded up after a few "
                "digits. Go on halving until it is known to a millionth of itself."),
    ),
    hints=(
        "More noise, smaller delta: so halving works. What is mu for a noise sigma and this "
        "sensitivity?",
        "Keep a `low` with too little noise and a `high` with enough, start wide (1e-3 to 1e6 for "
        "sensitivity 1), halve, and return `high`.",
    ),
    lesson="At (1, 1e-5) this asks for 3.73 times the sensitivity where the classical formula "
           "asks for 4.84 (Balle and Wang 2018), and it holds for every epsilon.",
)


# -------------------------------------------------------------------------------------------- 3.8

def clipped(rows, bound):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1, bound / np.maximum(norms, 1e-300))


def sensitivity_of(bound, adjacency):
    return {"add-remove": 1, "replace-one": 2}[adjacency] * bound


def noisy_vector_sum(rows, bound, multiplier, adjacency, rng):
    sigma = multiplier * sensitivity_of(bound, adjacency)
    return clipped(rows, bound).sum(axis=0) + rng.normal(0, sigma, rows.shape[1])


def noisy_vector_sum_loop(rows, bound, multiplier, adjacency, rng):
    total = np.zeros(rows.shape[1])
    for row in rows:
        norm = math.sqrt(sum(x * x for x in row))
        total += row if norm <= bound else row * bound / norm
    width = multiplier * (bound if adjacency == "add-remove" else 2 * bound)
    return [x + width * rng.standard_normal() for x in total]


def noisy_vector_sum_inverse(rows, bound, multiplier, adjacency, rng):
    factors = 1 / np.maximum(1, np.sqrt(np.einsum("ij,ij->i", rows, rows)) / bound)
    noise = special.ndtri(rng.random(rows.shape[1]))
    return factors @ rows + noise * multiplier * bound * (1 + (adjacency == "replace-one"))


def vectors_with(noise=None, prepare=clipped, *, scale=None):
    """A wrong sum: another noise(sigma, rows, rng), another clipping or another scale."""
    def wrong(rows, bound, multiplier, adjacency, rng):
        sigma = (scale or (lambda m, c, a, rows: m * sensitivity_of(c, a)))(
            multiplier, bound, adjacency, rows)
        total = prepare(rows, bound).sum(axis=0)
        return total + (noise(sigma, rows, rng) if noise
                        else rng.normal(0, sigma, rows.shape[1]))
    return wrong


def rescaled(rows, norms, bound):
    return rows * np.minimum(1, bound / np.maximum(norms, 1e-300))


def noise_before_clipping(rows, bound, multiplier, adjacency, rng):
    sigma = multiplier * sensitivity_of(bound, adjacency)
    return clipped(rows + rng.normal(0, sigma, rows.shape), bound).sum(axis=0)


def clipped_in_place(rows, bound, multiplier, adjacency, rng):
    rows[...] = clipped(rows, bound)
    return noisy_vector_sum(rows, bound, multiplier, adjacency, rng)


# All rows inside the ball: here only the noise can be wrong.
SHORT = np.array([[0.5, -1.0, 0.25], [1.0, 0.5, 0.5], [-0.5, 0.75, 0.0], [0.0, -0.25, 1.5],
                  [2.0, 1.0, -1.0]])
VECTORS = {"rows": SHORT, "bound": 2.5, "multiplier": 2.2, "adjacency": "add-remove"}
NO_ROWS = {**VECTORS, "rows": np.zeros((0, 3))}


def vector_noise(answers, case):
    return answers - clipped(case["rows"], case["bound"]).sum(axis=0)


def vector_law(adjacency, wrong):
    case = {**VECTORS, "adjacency": adjacency}
    sigma = case["multiplier"] * sensitivity_of(case["bound"], adjacency)
    rows, columns = SHORT.shape
    laws = {
        "bound-forgotten": stats.norm(0, sigma / case["bound"]),
        "bound-squared": stats.norm(0, sigma * case["bound"]),
        "deviation-as-variance": stats.norm(0, math.sqrt(sigma)),
        "multiplier-divides": stats.norm(0, sigma / case["multiplier"] ** 2),
        "laplace": stats.laplace(0, sigma),
        "noise-for-each-row": stats.norm(0, sigma * math.sqrt(rows)),
        "noise-for-a-cube": stats.norm(0, sigma * math.sqrt(columns)),
        **{name: stats.norm(0, factor * sigma) for name, factor in wrong.items()},
    }
    return Law(case, stats.norm(0, sigma), laws, shape=(columns,), count=4_000,
               noise=lambda answers, case: vector_noise(answers, case).ravel(),
               advice="Call your function 10,000 times on one set of rows and look at the mean "
                      "and the standard deviation of each coordinate.")


def vector_tails():
    """Normal noise passes 2.5 deviations in one draw out of eighty; where it never does, it is
    cut off."""
    sigma = VECTORS["multiplier"] * VECTORS["bound"]
    return Law(VECTORS, stats.bernoulli(2 * stats.norm.sf(2.5)),
               {"cut-off": stats.bernoulli(1e-9)}, shape=(3,), count=2_000,
               noise=lambda answers, case:
               np.ravel(np.abs(vector_noise(answers, case)) > 2.5 * sigma),
               advice="Look at how often your noise is far out.")


def vector_cases(rng):
    cases = [
        (np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0),
        (np.array([[0.9, 0.9, 0.9], [0.0, 0.0, 0.0], [-5.0, 0.0, 0.1]]), 1.0),
        (np.array([[10.0], [-0.5], [3.0]]), 2.0),
        (np.zeros((0, 3)), 1.0),
    ]
    for _ in range(3):
        size = (int(rng.integers(2, 9)), int(rng.integers(2, 6)))
        cases.append((rng.normal(0, 2, size), float(rng.uniform(0.5, 4))))
    return [{"rows": rows, "bound": bound, "multiplier": 1e-14, "adjacency": adjacency}
            for rows, bound in cases for adjacency in ("add-remove", "replace-one")]


def is_far_out(answer):
    return bool(np.linalg.norm(answer) > 1e3)


VECTOR_SUM = Exercise(
    "3.8", "A noisy sum of vectors", 3, function="noisy_vector_sum", right=noisy_vector_sum,
    others=(noisy_vector_sum_loop, noisy_vector_sum_inverse),
    parts=(
        Randomness(VECTORS),
        # Eight draws agree to 1e-9 with chance far below 1e-9.
        Separate({**VECTORS, "rows": np.full((2, 8), 0.25)}),
        Exact(vector_cases, tolerance=1e-6, seeded=True,
              proof="with hardly any noise the sum of the clipped rows is left"),
        # Noise of deviation 3e9 in three coordinates stays below 1e3 with chance below 1e-9.
        Exact(lambda rng: [{**VECTORS, "multiplier": 1e9}], seeded=True, tidy=is_far_out,
              proof="the noise comes after the clipping",
              allowed="with so much noise it should be far from 0."),
        vector_law("add-remove", {"twice-always": 2.0, "half-the-noise": 0.5}),
        vector_law("replace-one", {"once-always": 0.5, "root-of-2-for-replacing": 0.5**0.5}),
        vector_tails(),
        Randomness(NO_ROWS, everywhere=True, mistake="exact-on-special-data"),
        Randomness({**VECTORS, "rows": np.zeros((2, 3))}, everywhere=True,
                   mistake="exact-on-special-data"),
        Independent(VECTORS, stats.norm(0, 5.5), noise=vector_noise),
    ),
    mistakes=(
        Mistake("one-draw-for-all", vectors_with(lambda sigma, rows, rng: rng.normal(0, sigma)),
                "One draw for all coordinates: whoever subtracts two of them has removed the "
                "noise. Each coordinate needs a draw of its own: rng.normal(0, sigma, size)."),
        Mistake("clipping-forgotten", vectors_with(prepare=lambda rows, bound: rows),
                "A long row enters your sum as it is. The noise is made for rows of length at "
                "most `bound`; a longer one moves the sum further than it can hide."),
        Mistake("clips-each-coordinate",
                vectors_with(prepare=lambda rows, bound: np.clip(rows, -bound, bound)),
                "You clipped each coordinate. The row may then still be as long as bound times "
                "the root of d: its length, over all coordinates, has to be at most `bound`."),
        Mistake("clips-the-l1-norm",
                vectors_with(prepare=lambda rows, bound:
                             rescaled(rows, np.abs(rows).sum(axis=1, keepdims=True), bound)),
                "You clipped by the sum of absolute values, which belongs to Laplace noise. "
                "Normal noise goes with the Euclidean length: the root of the sum of squares."),
        Mistake("length-not-rooted",
                vectors_with(prepare=lambda rows, bound:
                             rescaled(rows, (rows**2).sum(axis=1, keepdims=True), bound)),
                "You compare the squared length with the bound: the root is missing."),
        Mistake("clips-the-sum",
                vectors_with(prepare=lambda rows, bound:
                             clipped(rows.sum(axis=0, keepdims=True), bound)),
                "You clipped the sum. The bound is on what one person contributes: clip each row, "
                "then add."),
        Mistake("one-length-for-all",
                vectors_with(prepare=lambda rows, bound:
                             rescaled(rows, np.linalg.norm(rows), bound)),
                "You measured the length of the whole table: np.linalg.norm needs axis=1 to give "
                "one length for each row."),
        Mistake("stretches-short-rows",
                vectors_with(prepare=lambda rows, bound:
                             rows * bound / np.maximum(
                                 np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)),
                "You bring every row to the length `bound`, the short ones too. Clipping only "
                "shortens: the factor is never above 1."),
        Mistake("drops-long-rows",
                vectors_with(prepare=lambda rows, bound:
                             rows[np.linalg.norm(rows, axis=1) <= bound]),
                "You left out the long rows. That is private too, but here they are to be "
                "shortened to the bound, so that everybody still counts."),
        Mistake("divides-by-n",
                lambda rows, bound, multiplier, adjacency, rng:
                noisy_vector_sum(rows, bound, multiplier, adjacency, rng) / max(len(rows), 1),
                "You returned a mean; the sum is wanted. Under add/remove the number of rows is "
                "private as well, so dividing by it needs care."),
        Mistake("clipped-after-the-noise", noise_before_clipping,
                "However wide the noise, your answer stays near 0: it was clipped after the noise "
                "came in. Clip each row, add up, and put the noise on the sum last."),
        Mistake("bound-forgotten",
                vectors_with(scale=lambda m, c, a, rows: m * sensitivity_of(1, a)),
                "Your noise does not grow with the bound. The multiplier says how much noise "
                "there is for each unit of sensitivity, and that is made of the bound."),
        Mistake("bound-squared",
                vectors_with(scale=lambda m, c, a, rows: m * c * sensitivity_of(c, a)),
                "The bound enters your noise twice. Once is right: sigma is the multiplier times "
                "the sensitivity."),
        Mistake("deviation-as-variance",
                vectors_with(scale=lambda m, c, a, rows: math.sqrt(m * sensitivity_of(c, a))),
                "The variance of your noise is what its standard deviation ought to be. "
                "rng.normal takes the standard deviation, not its square."),
        Mistake("multiplier-divides",
                vectors_with(scale=lambda m, c, a, rows: sensitivity_of(c, a) / m),
                "You divide by the multiplier: a larger one should mean more noise."),
        Mistake("laplace", vectors_with(lambda sigma, rows, rng:
                                        rng.laplace(0, sigma, rows.shape[1])),
                "Your noise is Laplace noise. It goes with the L1 norm; this exercise asks for "
                "normal noise, which goes with the Euclidean length."),
        Mistake("twice-always",
                vectors_with(scale=lambda m, c, a, rows: 2 * m * c),
                "Under add/remove your noise is twice as wide as it must be. A row that comes or "
                "goes moves the sum by its own length, at most `bound`; 2 x bound is for a row "
                "that is replaced by its opposite."),
        Mistake("once-always", vectors_with(scale=lambda m, c, a, rows: m * c),
                "Under replace-one your noise is half as wide as it must be. A row of length "
                "`bound` may be replaced by its opposite: the sum then moves by 2 x bound."),
        Mistake("root-of-2-for-replacing",
                vectors_with(scale=lambda m, c, a, rows:
                             m * c * (math.sqrt(2) if a == "replace-one" else 1)),
                "Under replace-one your noise has a factor of the root of 2. That is how far two "
                "rows at right angles lie apart; the worst case is two opposite ones, 2 x bound."),
        Mistake("half-the-noise",
                vectors_with(scale=lambda m, c, a, rows: m * sensitivity_of(c, a) / 2),
                "Your noise is half as wide as it must be. By how much does the sum move when a "
                "row of length `bound` leaves?"),
        Mistake("noise-for-each-row",
                vectors_with(lambda sigma, rows, rng:
                             rng.normal(0, sigma, rows.shape).sum(axis=0)
                             if len(rows) else rng.normal(0, sigma, rows.shape[1])),
                "You added noise to each row and then summed. Only the sum is released, so one "
                "draw for each coordinate protects it. (With no rows there would be no noise "
                "either.)"),
        Mistake("noise-for-a-cube",
                vectors_with(scale=lambda m, c, a, rows:
                             m * sensitivity_of(c, a) * math.sqrt(rows.shape[1])),
                "Your noise has a factor of the root of d, as if each coordinate could move by "
                "`bound`. The length of the whole row is at most `bound`, whatever d is."),
        Mistake("cut-off",
                vectors_with(lambda sigma, rows, rng:
                             sigma * np.clip(rng.normal(size=rows.shape[1]), -2.5, 2.5)),
                "Your noise never goes far out. Cutting the tails off makes releases that are "
                "possible for one data set and impossible for its neighbour; delta pays for the "
                "thin tails of the whole normal law only."),
        Mistake("exact-on-special-data",
                lambda rows, bound, multiplier, adjacency, rng:
                noisy_vector_sum(rows, bound, multiplier, adjacency, rng) if np.any(rows)
                else np.zeros(rows.shape[1]),
                "With nobody there, or with rows of zeros, your answer carries no noise. An "
                "answer that is exact then, and only then, tells that the data are such."),
        Mistake("changes-its-input", clipped_in_place,
                next(m.message for m in GENERIC if m.name == "changes-its-input")),
        dependence_mistake(
            vectors_with(lambda sigma, rows, rng:
                         np.abs(rng.normal(0, sigma, rows.shape[1])) * rng.choice([-1, 1]))),
        *randomness_mistakes(noisy_vector_sum, lambda rows, bound, multiplier, adjacency:
                             clipped(rows, bound).sum(axis=0)),
    ),
    hints=(
        "Three steps: shorten each row whose length passes `bound`; add up over the rows; put "
        "independent normal noise on each coordinate. How far can one person move the sum?",
        "np.linalg.norm(rows, axis=1, keepdims=True) gives the lengths, np.minimum(1, bound / "
        "length) the factors. A replaced row can turn into its opposite.",
    ),
    lesson="This is one step of DP-SGD: the rows are then gradients, the bound is the clipping "
           "norm, and notebook 04 repeats it thousands of times.",
)


# -------------------------------------------------------------------------------------------- 3.9

DASHBOARDS = Exercise(
    "3.9", "Three dashboards, every day", 3,
    rubric=(
        "1 point: why the budget runs out, with the arithmetic. Three a day are 1095 releases a "
        "year about the same patients; the epsilons add up (109.5), and a budget of 1 is used up "
        "by ten releases, on the fourth day. That fresh noise on the same number averages out is "
        "a good way to say it. 1 point: that better mathematics does not save the plan (advanced "
        "composition gives about 29, the best possible total about 20), or that no accounting "
        "makes it small; and delta said correctly, not as 'the probability of failure'. 1 point: "
        "something sensible that the board can decide, such as one noisy table from which all "
        "three dashboards are computed (post-processing), refreshing less often, keeping a draw "
        "until the data change, a ledger that refuses, one adjacency and one budget written down."
    ),
)

EXERCISES = (CHOICE, LEDGER, ADVANCED, SHARE, RESPONSES, GAUSSIAN_DELTA, SIGMA, VECTOR_SUM,
             DASHBOARDS)
