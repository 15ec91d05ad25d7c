"""The checks of problem set 01: neighbouring data sets, and what one person can change.

Each exercise has our answer, right answers written differently, and the mistakes it knows. Data
sets are multisets, as in `coursekit.neighbours`; nothing here uses that module, so each proves
the other.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

import numpy as np
from scipy import optimize, stats

from coursekit.checks.exercise import (
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

# 1.1 Two adjacencies, one clinic

TWO_ADJACENCIES = choice(
    "1.1", "Does replacing double the sensitivity?", right="c",
    reasons={
        "a": "Replacing is removing and then adding, so it changes an answer at most twice as "
             "much. Often it is less: when a yes becomes a no, the removal moves the count by 1 "
             "and the addition by 0. Work out the same for the sum (notebook 01, "
             '"Sensitivity: how far can one person move the answer?").',
        "b": "A histogram speaks against it: a person who is replaced can leave one bar and enter "
             "another. How much do the bars change in total, and how much if the person only "
             "leaves?",
        "d": "The number of records stays, but this counts the records that say yes, and a "
             "record that says no can become one that says yes.",
    },
    hints=("Take three records, change one of them in the worst way you can, and write down all "
           "three answers before and after.",
           "A record of 0 becomes a record of 100: how far does the sum move? And how far does it "
           "move when a record of 100 leaves?"),
    lesson="The adjacency changes some sensitivities and leaves others alone, so it has to be "
           "stated with every guarantee, and computed for every query.",
)


# 1.2 Every neighbour of a small survey

def add_remove_neighbours(records, universe):
    records = list(records)
    places = [records.index(record) for record in dict.fromkeys(records)]
    removed = [tuple(records[:i] + records[i + 1 :]) for i in places]
    return removed + [(*records, new) for new in universe]


def neighbours_by_counting(records, universe):
    counts = Counter(records)
    less = [counts - Counter([record]) for record in counts]
    more = [counts + Counter([record]) for record in universe]
    return [tuple(data_set.elements()) for data_set in less + more]


def neighbours_by_search(records, universe):
    """All data sets of the two possible sizes; one that contains the other is a neighbour."""
    counts, found = Counter(records), []
    for size in (len(records) - 1, len(records) + 1):
        for other in combinations_with_replacement(universe, size) if size >= 0 else ():
            different = (counts - Counter(other)) + (Counter(other) - counts)
            if sum(different.values()) == 1:
                found.append(other)
    return found


def _removals(records):
    return [tuple(records[:i] + records[i + 1 :]) for i in range(len(records))]


def _additions(records, universe):
    return [(*records, new) for new in universe]


def _replacements(records, universe):
    exchanged = [(*rest, new) for rest in _removals(records) for new in universe]
    return [*{tuple(sorted(one)) for one in exchanged} - {tuple(sorted(records))}]


def _removed(records):
    return list(dict.fromkeys(tuple(sorted(left)) for left in _removals(records)))


def _every_equal_record_removed(records, universe):
    without = [tuple(r for r in records if r != gone) for gone in dict.fromkeys(records)]
    return without + _additions(records, universe)


def _equal_records_merged(records, universe):
    return add_remove_neighbours(set(records), universe)


def _each_order_counted(records, universe):
    return [*dict.fromkeys(_removals(records) + _additions(records, universe))]


def _different_records(rng):
    ages = [30, 40, 50]
    two = rng.choice(ages, size=2, replace=False).tolist()
    return [
        {"records": two, "universe": ages},
        {"records": ["flu"], "universe": ["asthma", "flu"]},
        {"records": [], "universe": ages},
    ]


def _equal_records(rng):
    ages = [30, 40, 50]
    four = rng.choice(ages, size=4).tolist()  # of three values, so two are equal
    return [
        {"records": [40, 30, 40], "universe": ages},
        {"records": ["flu", "flu"], "universe": ["asthma", "flu"]},
        {"records": four, "universe": ages},
        {"records": [50], "universe": [50]},
    ]


def _in_order(data_sets):
    return sorted(tuple(sorted(records)) for records in data_sets)


NEIGHBOURS = Exercise(
    "1.2", "Every neighbour of a small survey", points=2, function="add_remove_neighbours",
    right=add_remove_neighbours,
    others=(neighbours_by_counting, neighbours_by_search),
    parts=(
        Exact(_different_records, tidy=_in_order, proof="the neighbours are all there"),
        Exact(_equal_records, tidy=_in_order, proof="each once, also where records are equal"),
    ),
    mistakes=(
        Mistake("replace-one-neighbours", _replacements,
                "These are the neighbours under replace-one: one record exchanged for another, "
                "the number of records kept. Under add/remove a neighbour has one record more or "
                "one record less."),
        Mistake("both-adjacencies",
                lambda records, universe: add_remove_neighbours(records, universe)
                + _replacements(records, universe),
                "Data sets with one record exchanged are in your list too. They differ from the "
                "original in two records, the old one and the new one, so they are not neighbours "
                "under add/remove."),
        Mistake("only-removals", lambda records, universe: _removed(records),
                "Somebody may also be added. Being neighbours goes both ways: if leaving gives a "
                'neighbour, so does joining (notebook 01, "All neighbours, by hand").'),
        Mistake("only-additions", _additions,
                "Somebody may also leave: each data set with one record removed is a neighbour "
                "as well."),
        Mistake("includes-itself",
                lambda records, universe: [
                    tuple(records), *add_remove_neighbours(records, universe)],
                "The data set itself is in your list. Neighbours differ in exactly one record, "
                "so nothing is its own neighbour."),
        Mistake("only-new-values",
                lambda records, universe: _removed(records)
                + [(*records, new) for new in universe if new not in records],
                "You add a value only when nobody has it yet. A data set is a multiset: two people "
                "may have equal records, and the person who joins may have any value of the "
                "universe. (If you work with Python sets: adding to a set what is in it already "
                "changes nothing.)"),
        Mistake("sets-not-multisets", _equal_records_merged,
                "Equal records have become one, as in a Python set. A data set is a multiset: "
                "three people are three records, also if two of them are of the same age."),
        Mistake("order-matters", _each_order_counted,
                "The same multiset appears in two orders, such as (30, 40) and (40, 30), and you "
                "count it twice. Bring the records of each tuple into one order before you compare "
                "tuples."),
        Mistake("lists-a-neighbour-twice",
                lambda records, universe: _removals(records) + _additions(records, universe),
                "A neighbour appears twice. Removing either of two equal records leaves the same "
                'multiset, so it counts once (notebook 01, "All neighbours, by hand").'),
        Mistake("removes-every-equal-record", _every_equal_record_removed,
                "With the record you remove, all others equal to it go too. One person leaves, so "
                "one record goes and its equals stay. Perhaps a condition such as r != record is "
                "the culprit."),
    ),
    hints=(
        "Two steps: the data sets with one record less, then those with one record more. Which of "
        "the two needs care when records are equal?",
        "For the removals go through the different values only, for instance with "
        "dict.fromkeys(records) or set(records), and take away one record of each.",
    ),
    lesson="A guarantee under add/remove speaks about exactly these pairs, and about nothing else.",
)


# 1.3 The sensitivity of a sum

def sum_sensitivity(lower, upper, adjacency):
    if adjacency == "add-remove":
        return max(abs(lower), abs(upper))
    return upper - lower


def sensitivity_by_trying(lower, upper, adjacency):
    """The sum is linear in each record, so the worst case lies at the bounds."""
    values = np.array([lower, upper])
    if adjacency == "add-remove":
        return np.abs(values).max()
    return np.abs(values[:, None] - values).max()


def sensitivity_of_a_sum_of_three(lower, upper, adjacency):
    sums = {}
    for size in (2, 3):
        sums[size] = [sum(some) for some in combinations_with_replacement([lower, upper], size)]
    if adjacency == "replace-one":
        return max(sums[3][i + 1] - sums[3][i] for i in range(3))
    one_more = [(sums[2][i], sums[3][i + j]) for i in range(3) for j in (0, 1)]
    return max(abs(after - before) for before, after in one_more)


def _either(add_remove, replace_one):
    """A mistake from what it says under each adjacency."""
    def wrong(lower, upper, adjacency):
        return (add_remove if adjacency == "add-remove" else replace_one)(lower, upper)
    return wrong


def _largest(lower, upper):
    return max(abs(lower), abs(upper))


def _width(lower, upper):
    return upper - lower


def _bounds(rng):
    low, high = rng.uniform(1, 100, size=2).round(1).tolist()
    return _under_both([(0, 100), (-50, 50), (-80, 20), (20, 100), (-low, high), (-1.0, 0.0)])


def _negative_bounds(rng):
    low, high = -np.sort(-rng.uniform(1, 100, size=2)).round(1)
    return _under_both([(-90, -30), (-float(low), -float(high) / 2)])


def _under_both(pairs):
    return [{"lower": lower, "upper": upper, "adjacency": adjacency}
            for lower, upper in pairs for adjacency in ("add-remove", "replace-one")]


SUM_SENSITIVITY = Exercise(
    "1.3", "The sensitivity of a sum", points=2, function="sum_sensitivity",
    right=sum_sensitivity,
    others=(sensitivity_by_trying, sensitivity_of_a_sum_of_three),
    parts=(
        Exact(_bounds, proof="the worst pairs of neighbours were found"),
        Exact(_negative_bounds, proof="also with negative values only"),
    ),
    mistakes=(
        Mistake("always-doubles", _either(_largest, lambda low, up: 2 * _largest(low, up)),
                "Right under add/remove, but replacing does not always double it. That would need "
                "two allowed records as far apart as the largest value and its negative. How far "
                "apart can two values between 20 and 100 be?"),
        Mistake("doubles-the-width", _either(_width, lambda low, up: 2 * _width(low, up)),
                "The width of the interval is how far apart two records can be. Ask which "
                "adjacency compares two records with each other, and what the other one compares "
                "a record with."),
        Mistake("width-for-both", _either(_width, _width),
                "You use the width for both adjacencies. But somebody who leaves takes the whole "
                "record out of the sum, not only its distance from the other bound: think of "
                "values between 20 and 100 (notebook 01, "
                '"Sensitivity: how far can one person move the answer?"). If you did tell them '
                'apart: the names are "add-remove" and "replace-one".'),
        Mistake("largest-value-for-both", _either(_largest, _largest),
                "You use the largest absolute value for both adjacencies. Under replace-one a "
                "record can go from one bound to the other: think of values between -50 and 50. "
                'If you did tell them apart: the names are "add-remove" and "replace-one".'),
        Mistake("swapped", _either(_width, _largest),
                "The two adjacencies are swapped. Removing a record compares it with nothing; "
                "replacing compares it with another record."),
        Mistake("negative-values-forgotten", _either(lambda low, up: up, _width),
                "Under add/remove you look at the upper bound only. With values between -80 and "
                "20, whose leaving changes the sum the most?"),
        Mistake("half-the-width", _either(lambda low, up: (up - low) / 2, _width),
                "Under add/remove you take half the width. That is right only for an interval "
                "around zero: somebody with 100 who leaves a sum of values between 0 and 100 "
                "changes it by 100."),
        Mistake("adds-the-sizes", _either(_largest, lambda low, up: abs(low) + abs(up)),
                "Right under add/remove. Under replace-one you add the absolute values of the two "
                "bounds, but if both have the same sign a large part of the change cancels."),
    ),
    hints=(
        "Find the worst pair of neighbours under each adjacency: which record leaves, and which "
        "record becomes which?",
        "Under add/remove the sum changes by the record itself, under replace-one by the "
        "difference of two records. Both are largest at the bounds.",
    ),
    lesson="The noise of a private sum is proportional to this number, so narrow bounds around "
           "zero are worth having.",
)


# 1.4 Bounding a whole row

def clip_rows(vectors, max_norm):
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.maximum(1, norms / max_norm)


def clip_row_by_row(vectors, max_norm):
    clipped = vectors.copy()
    for i, vector in enumerate(vectors):
        norm = math.sqrt(sum(x * x for x in vector))
        if norm > max_norm:
            clipped[i] = vector * max_norm / norm
    return clipped


def clip_with_a_small_constant(vectors, max_norm):
    """As deep-learning libraries do it, with 1e-6 against a division by zero."""
    factors = np.minimum(1, max_norm / (np.sqrt(np.sum(vectors**2, axis=1)) + 1e-6))
    return np.einsum("i,ij->ij", factors, vectors)


def clip_by_lists(vectors, max_norm):
    return [[x * max_norm / max(max_norm, math.hypot(*row)) for x in row] for row in vectors]


def _shrunk(vectors, norms, max_norm):
    return vectors / np.maximum(1, norms / max_norm)


def _normalised(vectors, max_norm):
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return max_norm * vectors / np.where(norms == 0, 1, norms)


def _nan_for_zero_rows(vectors, max_norm):
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return vectors / norms * np.minimum(norms, max_norm)


def _clipped_in_place(vectors, max_norm):
    vectors /= np.maximum(1, np.linalg.norm(vectors, axis=1, keepdims=True) / max_norm)
    return vectors


def _short_and_long_rows(rng, rows=6, columns=3):
    max_norm = float(rng.uniform(1.5, 4))  # far from 1: else forgetting it might pass
    directions = rng.normal(size=(rows, columns))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    lengths = np.resize([0.3, 5, 0.9, 1.4, 2, 20], rows)[:, None] * max_norm
    return {"vectors": directions * lengths, "max_norm": max_norm}


def _clip_cases(rng):
    return [
        {"vectors": np.array([[3.0, 4.0], [0.3, 0.4]]), "max_norm": 2.0},
        _short_and_long_rows(rng),
        _short_and_long_rows(rng, columns=1),
        {"vectors": np.array([[6.0, 8.0, 0.0]]), "max_norm": 10.0},
    ]


def _zero_rows(rng):
    case = _short_and_long_rows(rng)
    case["vectors"][[0, 3]] = 0
    return [case, {"vectors": np.zeros((1, 2)), "max_norm": 2.0}]


CLIP_ROWS = Exercise(
    "1.4", "Bounding a whole row", points=2, function="clip_rows",
    right=clip_rows,
    others=(clip_row_by_row, clip_with_a_small_constant, clip_by_lists),
    parts=(
        # 1e-5: a small constant under the fraction, as libraries have it, is no mistake.
        Exact(_clip_cases, tolerance=1e-5, proof="short rows are kept and long ones shortened"),
        Exact(_zero_rows, tolerance=1e-5, proof="zero rows stay zero"),
    ),
    mistakes=(
        Mistake("not-clipped", lambda vectors, max_norm: vectors.copy(),
                "The rows come back as they were, so one long row can still change the sum without "
                "any bound. (In a loop over rows, row = ... gives the name another value and "
                "leaves the array alone.)"),
        Mistake("coordinate-by-coordinate",
                lambda vectors, max_norm: np.clip(vectors, -max_norm, max_norm),
                "You bound each coordinate, as np.clip does. A row of d such coordinates can still "
                "be sqrt(d) times as long as allowed, and its direction changes. Shorten the row "
                "as a whole."),
        Mistake("always-to-the-bound", _normalised,
                "Short rows have been stretched to the bound. Clipping only shortens: a row within "
                "the bound stays as it is."),
        Mistake("norm-of-the-whole-array",
                lambda vectors, max_norm: _shrunk(vectors, np.linalg.norm(vectors), max_norm),
                "One factor for the whole array depends on everybody's rows together, so one "
                "person's row now changes what all others contribute. Each row needs a norm of its "
                "own: look at axis in np.linalg.norm."),
        Mistake("columns-instead-of-rows",
                lambda vectors, max_norm: _shrunk(
                    vectors, np.linalg.norm(vectors, axis=0, keepdims=True), max_norm),
                "You bound the columns, but a person is a row. Look at axis in np.linalg.norm."),
        Mistake("sum-of-absolute-values",
                lambda vectors, max_norm: _shrunk(
                    vectors, np.abs(vectors).sum(axis=1, keepdims=True), max_norm),
                "You measure a row by the sum of its absolute values, the L1 norm. Here the "
                "Euclidean length, the L2 norm, is asked for."),
        Mistake("square-root-forgotten",
                lambda vectors, max_norm: _shrunk(
                    vectors, (vectors**2).sum(axis=1, keepdims=True), max_norm),
                "You measure a row by the sum of its squares. The Euclidean length is the square "
                "root of that."),
        Mistake("to-length-one",
                lambda vectors, max_norm: _shrunk(
                    vectors, np.linalg.norm(vectors, axis=1, keepdims=True), 1),
                "No row is longer than 1, whatever max_norm says. Compare the length of a row with "
                "max_norm, and shorten to max_norm."),
        Mistake("long-rows-set-to-zero",
                lambda vectors, max_norm: vectors * (
                    np.linalg.norm(vectors, axis=1, keepdims=True) <= max_norm),
                "Rows that are too long have become zero. That does bound the sum, but loses those "
                "people; clipping keeps the direction of a row and shortens it to the bound."),
        Mistake("nan-for-zero-rows", _nan_for_zero_rows,
                "A row of zeros comes back as NaN: it has length 0, and you divide by it. One NaN "
                "turns the whole sum into NaN."),
        Mistake("changes-its-input", _clipped_in_place,
                "The array that was given has changed, and the caller still needs it as it was."),
    ),
    hints=(
        "Which rows must change at all? Find the length of each row first: np.linalg.norm with "
        "axis=1, and keepdims=True so that it divides row by row.",
        "Divide each row by a factor of at least 1 that is above 1 only for long rows, where it is "
        "the length over max_norm. np.maximum takes the larger of two, item by item.",
    ),
    lesson="A sum of such rows has L2 sensitivity max_norm under add/remove and twice that under "
           "replace-one, where a row can become its opposite.",
)


# 1.5 How private was that?

def smallest_epsilon(p, q):
    possible = (p > 0) | (q > 0)
    with np.errstate(divide="ignore"):
        return np.max(np.abs(np.log(p[possible]) - np.log(q[possible])))


def epsilon_outcome_by_outcome(p, q):
    largest = 0.0
    for a, b in zip(p, q, strict=True):
        if a == b:
            continue
        if a == 0 or b == 0:
            return math.inf
        largest = max(largest, math.log(a / b), math.log(b / a))
    return largest


def epsilon_by_root_finding(p, q):
    """The least epsilon at which no outcome breaks the promise in either direction."""
    p, q = p[p + q > 0], q[p + q > 0]

    def worst(epsilon):
        return max(np.max(p - np.exp(epsilon) * q), np.max(q - np.exp(epsilon) * p))

    if worst(50.0) > 0:
        return math.inf
    return 0.0 if worst(0.0) <= 0 else optimize.brentq(worst, 0, 50, xtol=1e-13)


def _log_ratios(p, q):
    both = (p > 0) & (q > 0)
    return np.log(p[both] / q[both])


def _with_infinity(formula):
    """A wrong formula that at least knows when no epsilon is enough."""
    return lambda p, q: math.inf if np.any((p > 0) != (q > 0)) else formula(p, q)


def _only_from_p_to_q(p, q):
    return math.inf if np.any((p > 0) & (q == 0)) else np.max(_log_ratios(p, q))


def _zeros_in_q_only(p, q):
    if np.any((p > 0) & (q == 0)):
        return math.inf
    return np.max(np.abs(_log_ratios(p, q)))


def _infinite_at_any_zero(p, q):
    return math.inf if 0 in p or 0 in q else np.max(np.abs(_log_ratios(p, q)))


def _nan_at_shared_zeros(p, q):
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.max(np.abs(np.log(p / q)))


def _distributions_without_zeros(rng):
    random = [0.9 * rng.dirichlet(np.ones(4)) + 0.025 for _ in range(4)]
    p, q = np.array([0.4, 0.3, 0.2, 0.1]), np.array([0.2, 0.2, 0.25, 0.35])
    # Not symmetric, and both ways round: one direction alone is wrong in one of the two.
    a, b = np.array([0.1, 0.9]), np.array([0.4, 0.6])
    pairs = [(p, q), (a, b), (b, a), (p, p), random[:2], random[2:]]
    return [{"p": p, "q": q} for p, q in pairs]


def _distributions_with_zeros(rng):
    p, q = rng.dirichlet(np.ones(3), size=2)
    where = rng.integers(4)
    pairs = [
        ([0.6, 0.4, 0.0], [0.5, 0.5, 0.0]),
        ([0.5, 0.5, 0.0], [0.4, 0.4, 0.2]),
        ([0.4, 0.4, 0.2], [0.5, 0.5, 0.0]),
        ([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]),
        (np.insert(p, where, 0.0), np.insert(q, where, 0.0)),
    ]
    return [{"p": np.array(p), "q": np.array(q)} for p, q in pairs]


SMALLEST_EPSILON = Exercise(
    "1.5", "How private was that?", points=2, function="smallest_epsilon",
    right=smallest_epsilon,
    others=(epsilon_outcome_by_outcome, epsilon_by_root_finding),
    parts=(
        # 1e-6: a tiny constant against zeros shows where it matters, in the second part.
        Exact(_distributions_without_zeros, tolerance=1e-6,
              proof="epsilon is right where all outcomes are possible"),
        Exact(_distributions_with_zeros, tolerance=1e-6, proof="and where some are not"),
    ),
    mistakes=(
        Mistake("one-direction", _only_from_p_to_q,
                "You compare p with q, but not q with p. Neighbours are neighbours in both orders, "
                "so the bound has to hold both ways."),
        Mistake("other-direction", lambda p, q: _only_from_p_to_q(q, p),
                "You compare q with p, but not p with q. Neighbours are neighbours in both orders, "
                "so the bound has to hold both ways."),
        Mistake("base-two", lambda p, q: smallest_epsilon(p, q) / math.log(2),
                "This is a logarithm to base 2, the size of the ratio in bits. The definition says "
                "e to the epsilon, so the natural logarithm undoes it."),
        Mistake("base-ten", lambda p, q: smallest_epsilon(p, q) / math.log(10),
                "This is a logarithm to base 10. The definition says e to the epsilon, so the "
                "natural logarithm undoes it."),
        Mistake("ratio-without-logarithm", lambda p, q: math.exp(smallest_epsilon(p, q)),
                "This is the largest ratio of the probabilities, which is e to the epsilon. One "
                "step is missing to epsilon itself (notebook 01, "
                '"The promise: a mechanism and its two worlds").'),
        Mistake("ratio-in-one-direction",
                lambda p, q: np.exp(_only_from_p_to_q(p, q)),
                "This is the largest ratio p/q. Two steps are missing: q/p may be larger, and the "
                "promise allows a ratio of e to the epsilon, so epsilon is not the ratio itself."),
        Mistake("total-variation", lambda p, q: np.abs(p - q).sum() / 2,
                "This is the total variation distance, the largest difference of probabilities. "
                "Epsilon bounds ratios: 0.001 against 0.101 is a small difference and a ratio of "
                '101 (notebook 01, "Why a ratio, and why e?").'),
        Mistake("largest-difference", lambda p, q: np.abs(p - q).max(),
                "This is the largest difference of two probabilities. Epsilon bounds their ratio: "
                "0.001 against 0.101 is a small difference and a ratio of 101."),
        Mistake("kl-divergence", _with_infinity(
                    lambda p, q: np.sum(p[p > 0] * _log_ratios(p, q))),
                "This is the Kullback-Leibler divergence, an average over the outcomes. The "
                "promise holds for every outcome, so the worst one decides, however rare it is."),
        Mistake("sum-over-outcomes", _with_infinity(
                    lambda p, q: np.sum(np.abs(_log_ratios(p, q)))),
                "You add over the outcomes. An observer sees one of them, so the worst one "
                "decides."),
        Mistake("average-over-outcomes", _with_infinity(
                    lambda p, q: np.mean(np.abs(_log_ratios(p, q)))),
                "You average over the outcomes. The promise holds for every one of them, so the "
                "worst one decides."),
        Mistake("impossible-outcomes-ignored", lambda p, q: np.max(np.abs(_log_ratios(p, q))),
                "You leave out the outcomes that are impossible under one distribution and "
                "possible under the other. They are the worst of all: whoever sees one knows for "
                'certain. Which epsilon would allow that? (Notebook 01, "Why a ratio, and why '
                'e?")'),
        Mistake("zeros-in-q-only", _zeros_in_q_only,
                "You notice outcomes that are impossible under q, but not those impossible under p "
                "and possible under q. Whoever sees one of those knows for certain as well."),
        Mistake("infinite-at-any-zero", _infinite_at_any_zero,
                "An outcome that is impossible under both distributions is never seen, so it "
                "betrays nothing. Leave it out and look at the others."),
        Mistake("nan-at-shared-zeros", _nan_at_shared_zeros,
                "Where both probabilities are zero you compute 0/0 and get NaN, which swallows the "
                "maximum. Such an outcome is never seen, so it betrays nothing: leave it out."),
    ),
    hints=(
        "Write the definition for a single outcome, p <= e^epsilon q and q <= e^epsilon p, and "
        "solve both for epsilon. Which outcome asks for the most?",
        "It is the largest absolute value of log p - log q over the outcomes with p > 0 or q > 0. "
        "In NumPy log(0) is minus infinity, which does the right thing where only one is zero.",
    ),
    lesson="The promise binds every single output, so the most telling one decides.",
)


# 1.6 A coin before every answer

EPSILON = 0.9  # keeps 0.71 of the bits: far from all the wrong laws below, see `Law.needed`
PEOPLE = 100
HALF_AND_HALF = np.repeat([0, 1], 50)
# At 0.1 a right answer keeps a bit with probability 0.525. That two answers of 100 bits are equal,
# or that all bits are kept or all flipped, has probability below 1e-27.
NOISY = {"bits": HALF_AND_HALF, "epsilon": 0.1}


def _keeping(epsilon):
    return math.exp(epsilon) / (1 + math.exp(epsilon))


def randomised_response(bits, epsilon, rng):
    lies = rng.random(len(bits)) < 1 / (1 + np.exp(epsilon))
    return np.where(lies, 1 - bits, bits)


def response_bit_by_bit(bits, epsilon, rng):
    return [int(bit) if rng.uniform() < _keeping(epsilon) else 1 - int(bit) for bit in bits]


def response_by_chance_of_a_one(bits, epsilon, rng):
    truth = _keeping(epsilon)
    return rng.binomial(1, np.where(bits == 1, truth, 1 - truth))


def response_by_random_bits(bits, epsilon, rng):
    """With probability tanh(epsilon / 2) the truth, else a fair coin."""
    truth = rng.random(bits.shape) < np.tanh(epsilon / 2)
    return np.where(truth, bits, rng.integers(2, size=bits.shape))


def _response(keeping):
    """The answer that keeps a bit with another probability, a function of epsilon."""
    def wrong(bits, epsilon, rng):
        lies = rng.random(len(bits)) >= keeping(epsilon)
        return np.where(lies, 1 - bits, bits)
    return wrong


def _keeping_or_a_coin(epsilon):
    return _keeping(epsilon) + (1 - _keeping(epsilon)) / 2


def _lies_of(bit):
    """The answer that lies about this bit only."""
    def wrong(bits, epsilon, rng):
        return np.where(bits == bit, randomised_response(bits, epsilon, rng), bits)
    return wrong


def _response_in_place(bits, epsilon, rng):
    lies = rng.random(len(bits)) < 1 / (1 + np.exp(epsilon))
    bits[lies] = 1 - bits[lies]
    return bits


def responses_that_hang_together(bits, epsilon, rng):
    """Two neighbours share each coin."""
    lies = np.repeat(rng.random(len(bits)), 2)[: len(bits)] < 1 / (1 + np.exp(epsilon))
    return np.where(lies, 1 - bits, bits)


def _kept(reports, case):
    return reports == case["bits"]


def _hardly_private(rng):
    sizes = (1, 2, 7, 40)
    return [{"bits": rng.integers(0, 2, size), "epsilon": 60.0} for size in sizes]


@dataclass(frozen=True)
class Reports:
    """Each report must be 0 or 1, one for each bit."""

    case: Mapping

    def examine(self, exercise, subject, seed):
        bits = self.case["bits"]
        (answer,) = exercise.answers(subject, self.case, seed=seed)
        reports = np.asarray(answer, dtype=object)
        if reports.shape != bits.shape:
            return exercise.wrong(
                None, f"{exercise.function} returned an answer of shape {reports.shape} for "
                      f"{len(bits)} bits; expected one report for each bit."
            )
        if not np.isin(reports, (0, 1)).all():
            return exercise.wrong("not-a-bit")
        return None

    def describe(self):
        return "the reports are bits"


def _law(bit, only_the_other):
    """How many of 100 people with the same bit report it as it is: binomial, coins of their own."""
    keeping = {
        "half-epsilon": _keeping(EPSILON / 2),
        "truth-and-lie-swapped": 1 - _keeping(EPSILON),
        "half-the-lies": 1 - math.exp(-EPSILON) / 2,
        "lies-too-rarely": _keeping_or_a_coin(EPSILON),
        "lies-too-often": 1 - math.exp(-EPSILON),
        "one-plus-epsilon": (1 + EPSILON) / (2 + EPSILON),
        "rounded-laplace": 1 - math.exp(-EPSILON / 2) / 2,
        "coin-twice": 0.75,
        only_the_other: 1.0,
    }
    return Law(
        {"bits": np.full(PEOPLE, bit), "epsilon": EPSILON},
        right=stats.binom(PEOPLE, _keeping(EPSILON)),
        wrong={name: stats.binom(PEOPLE, chance) for name, chance in keeping.items()},
        noise=lambda reports, case: _kept(reports, case).sum(axis=1),
        shape=(PEOPLE,), count=600,
        advice="Try it on many people with the same bit, and divide the share of true reports by "
               "the share of lies: the result should be e^epsilon, with zeros and with ones. Then "
               "try one person many times.",
    )


_OWN_COINS, _NO_COINS = randomness_mistakes(randomised_response, lambda bits, epsilon: bits)

RANDOMISED_RESPONSE = Exercise(
    "1.6", "A coin before every answer", points=3, function="randomised_response",
    right=randomised_response,
    others=(response_bit_by_bit, response_by_chance_of_a_one, response_by_random_bits),
    parts=(
        Reports(NOISY),
        Randomness(NOISY, count=40),  # one coin for all would often look the same four times
        Separate(NOISY, noise=_kept),
        _law(0, "lies-about-ones-only"),
        _law(1, "lies-about-zeros-only"),
        # A bit is flipped at epsilon 60 with probability below 1e-26.
        Exact(_hardly_private, seeded=True, proof="each report is about its own bit"),
        *(Independent({"bits": bits, "epsilon": EPSILON}, stats.bernoulli(_keeping(EPSILON)),
                      noise=_kept)
          for bits in (np.array([0, 0, 1, 1, 0, 1, 1, 0]), np.array([1, 0, 1]))),
        Law({"bits": np.ones(PEOPLE, int), "epsilon": 2.5},
            stats.binom(PEOPLE, _keeping(2.5)),
            {"lies-too-rarely": stats.binom(PEOPLE, _keeping_or_a_coin(2.5)),
             "one-plus-epsilon": stats.binom(PEOPLE, 3.5 / 4.5)},
            noise=lambda reports, case: _kept(reports, case).sum(axis=1), shape=(PEOPLE,),
            count=600, advice="Try more than one epsilon: truth and lie must be in the ratio "
                              "e^epsilon for each."),
    ),
    mistakes=(
        _OWN_COINS,
        replace(_NO_COINS,
                message="Every call gives the same answer: either no bit is ever flipped, or every "
                        "bit always is. Is your probability of a lie between 0 and 1 (look at its "
                        "brackets), and compared with a fresh number from rng for each bit?"),
        dependence_mistake(responses_that_hang_together),
        Mistake("order-lost", lambda bits, epsilon, rng:
                randomised_response(bits, epsilon, rng)[::-1],
                "The reports are right, but not in the order of the people: report i has to be "
                "about bit i. Was something sorted, shuffled or reversed on the way?"),
        Mistake("one-draw-for-all",
                lambda bits, epsilon, rng: bits if rng.random() < _keeping(epsilon) else 1 - bits,
                "One coin decides for everybody: either all reports are true or all are lies, so "
                "whoever knows one person's bit learns all the others. Toss a coin for each bit."),
        Mistake("not-a-bit",
                lambda bits, epsilon, rng: bits + rng.laplace(0, 1 / epsilon, size=len(bits)),
                "A report is 0 or 1, like a bit; yours are other numbers. Here the noise is a "
                "coin, not a number to add: it decides whether the bit is flipped. (To flip a bit "
                "take 1 - bit; -bit and ~bit are something else.)"),
        Mistake("half-epsilon", _response(lambda epsilon: _keeping(epsilon / 2)),
                "Your lies are those for half of epsilon: private, but noisier than asked for. "
                "Perhaps a factor 2 from elsewhere slipped in. Truth and lie must be in the ratio "
                'e^epsilon (notebook 01, "The promise: a mechanism and its two worlds").'),
        Mistake("truth-and-lie-swapped", _response(lambda epsilon: 1 - _keeping(epsilon)),
                "Truth and lie are swapped: the larger epsilon, the more you lie. Compare with a "
                "very large epsilon, which should leave nearly all bits as they are."),
        Mistake("half-the-lies", _response(lambda epsilon: 1 - np.exp(-epsilon) / 2),
                "You lie with probability e^-epsilon / 2, which is too rarely. Divide the "
                "probability of the truth by that of a lie: the ratio must be e to the epsilon."),
        Mistake("lies-too-rarely", _response(_keeping_or_a_coin),
                "You seem to replace a bit by a fair coin instead of flipping it. Half of the time "
                "the coin shows the true bit, so the truth is told too often for this epsilon."),
        Mistake("lies-too-often", _response(lambda epsilon: 1 - np.exp(-epsilon)),
                "You lie with probability e^-epsilon, so truth and lie are in the ratio "
                "e^epsilon - 1 to 1. The two probabilities must add up to 1 and have the ratio "
                "e^epsilon."),
        Mistake("one-plus-epsilon", _response(lambda epsilon: (1 + epsilon) / (2 + epsilon)),
                "You use 1 + epsilon in place of e^epsilon. The two are close for small epsilon "
                "only; here truth and lie must be in the ratio e^epsilon."),
        Mistake("rounded-laplace",
                lambda bits, epsilon, rng: 1 * (
                    bits + rng.laplace(0, 1 / epsilon, size=len(bits)) > 0.5),
                "This looks like Laplace noise, rounded to the nearer bit. That is private, but "
                "wastes part of epsilon: each bit is flipped more often than necessary. Toss one "
                "coin for each bit and flip it or not."),
        Mistake("coin-twice", _response(lambda epsilon: 0.75),
                "This is the classic with two tosses of a fair coin, which tells the truth with "
                "probability 3/4 whatever epsilon is. It is right for one epsilon only, log 3."),
        Mistake("lies-about-ones-only", _lies_of(1),
                "Zeros are always reported as they are, so a report of 1 proves that the person "
                "has a 1: an infinite epsilon. Both bits need a chance of a lie."),
        Mistake("lies-about-zeros-only", _lies_of(0),
                "Ones are always reported as they are, so a report of 0 proves that the person "
                "has a 0: an infinite epsilon. Both bits need a chance of a lie."),
        Mistake("changes-its-input", _response_in_place,
                "The array that was given has changed, and the caller still needs it as it was."),
    ),
    hints=(
        "Call the probability of the truth t, so a lie has 1 - t. The report 1 has probability t "
        "or 1 - t, depending on the bit. Their ratio is to be e^epsilon: solve for t.",
        "A lie has probability 1 / (1 + e^epsilon). Draw a number for each bit with "
        "rng.random(len(bits)) and flip the bit, 1 - bit, where the number is below that.",
    ),
    lesson="A report moves the odds on a person by a factor of e^epsilon at most, whatever is done "
           "with it later; and yet the share of ones in a town can be estimated.",
)


# 1.7 The best possible attack

def largest_tpr(fpr, epsilon, delta):
    few_alarms = np.exp(epsilon) * fpr + delta
    many_alarms = 1 - np.exp(-epsilon) * (1 - delta - fpr)
    return np.minimum(1, np.minimum(few_alarms, many_alarms))


def tpr_one_by_one(fpr, epsilon, delta):
    factor = math.exp(epsilon)
    return [min(1.0, factor * f + delta, 1 - (1 - delta - f) / factor) for f in fpr]


def tpr_by_linear_programming(fpr, epsilon, delta):
    """The most probability under p of an event with probability fpr under q.

    For each rate: maximise t under t <= e^epsilon f + delta, 1 - f <= e^epsilon (1 - t) + delta
    and the box.
    """
    factor = math.exp(epsilon)
    best = []
    for f in fpr:
        bounds = [factor * f + delta, factor + delta - (1 - f)]
        best.append(optimize.linprog([-1], A_ub=[[1], [factor]], b_ub=bounds, bounds=(0, 1)).x[0])
    return np.array(best)


def tpr_of_the_worst_mechanism(fpr, epsilon, delta):
    """The corners (0, delta), (f, 1 - f) and (1 - delta, 1), joined by straight lines."""
    corner = (1 - delta) / (1 + np.exp(epsilon))
    return np.interp(fpr, [0, corner, 1 - delta], [delta, 1 - corner, 1])


def _lines(fpr, delta, factor):
    return factor * fpr + delta, 1 - (1 - delta - fpr) / factor


def _lowest(lines):
    return np.minimum(1, np.minimum(*lines))


def _smallest_tpr(fpr, epsilon, delta):
    factor = np.exp(epsilon)
    return np.maximum(0, np.maximum((fpr - delta) / factor, 1 - delta - factor * (1 - fpr)))


def _wrong_sign(fpr, epsilon, delta):
    factor = np.exp(epsilon)
    return _lowest((factor * fpr + delta, 1 - factor * (1 - delta - fpr)))


def _below_the_cap(rng, epsilon, delta):
    """False-positive rates at which no line passes 1, on both sides of the corner."""
    corner = (1 - delta) / (1 + math.exp(epsilon))
    one = (1 - delta) * math.exp(-epsilon)  # where the first line reaches 1
    drawn = rng.uniform(0, one, size=2)
    fpr = np.array([0, corner / 2, (corner + one) / 2, *drawn])
    return {"fpr": fpr, "epsilon": epsilon, "delta": delta}


def _pure(rng):
    epsilons = 1.0, math.log(3), float(rng.uniform(0.3, 2))
    return [_below_the_cap(rng, epsilon, 0.0) for epsilon in epsilons]


def _with_delta(rng):
    drawn = float(rng.uniform(0.3, 2)), float(rng.uniform(0.02, 0.2))
    return [_below_the_cap(rng, *privacy) for privacy in ((0.5, 0.1), (math.log(3), 0.05), drawn)]


def _all_rates(rng):
    return [{"fpr": np.array([0, *np.sort(rng.random(3)), 1]), "epsilon": epsilon, "delta": delta}
            for epsilon, delta in ((1.0, 0.0), (0.5, 0.1), (math.log(3), 0.05))]


LARGEST_TPR = Exercise(
    "1.7", "The best possible attack", points=3, function="largest_tpr",
    right=largest_tpr,
    others=(tpr_one_by_one, tpr_by_linear_programming, tpr_of_the_worst_mechanism),
    parts=(
        Exact(_pure, tolerance=1e-7, proof="both lines are right without delta"),
        Exact(_with_delta, tolerance=1e-7, proof="and with it"),
        Exact(_all_rates, tolerance=1e-7, proof="no rate is above 1"),
    ),
    mistakes=(
        Mistake("first-line-only",
                lambda fpr, epsilon, delta: np.minimum(1, _lines(fpr, delta, np.exp(epsilon))[0]),
                "Right for small false-positive rates. But the guarantee also holds for the event "
                "that the attack stays silent, with the two data sets exchanged, and that gives a "
                "second line: write it down and solve it for the true-positive rate (notebook 01, "
                '"What an attacker can do at best").'),
        Mistake("second-line-only",
                lambda fpr, epsilon, delta: np.minimum(1, _lines(fpr, delta, np.exp(epsilon))[1]),
                "Right for large false-positive rates. For small ones the guarantee for the event "
                "of an alarm says more: TPR is at most e^epsilon FPR + delta."),
        Mistake("higher-of-the-lines",
                lambda fpr, epsilon, delta: np.minimum(
                    1, np.maximum(*_lines(fpr, delta, np.exp(epsilon)))),
                "You take the higher of the two lines. Both bounds hold at once, so the lower one "
                "decides."),
        Mistake("delta-forgotten",
                lambda fpr, epsilon, delta: _lowest(_lines(fpr, 0, np.exp(epsilon))),
                "Delta has no effect. With probability delta the output may betray everything, so "
                "an attack can reach that much without a single false alarm (notebook 01, "
                '"A family, and delta").'),
        Mistake("delta-in-one-line-only",
                lambda fpr, epsilon, delta: _lowest(
                    (np.exp(epsilon) * fpr + delta, 1 - np.exp(-epsilon) * (1 - fpr))),
                "The first line has its delta, the second has none. Start again from "
                "1 - FPR <= e^epsilon (1 - TPR) + delta."),
        Mistake("delta-after-the-division",
                lambda fpr, epsilon, delta: _lowest(
                    (np.exp(epsilon) * fpr + delta, 1 - np.exp(-epsilon) * (1 - fpr) + delta)),
                "In the second line you add delta at the end. Start again from "
                "1 - FPR <= e^epsilon (1 - TPR) + delta: delta is there before you divide."),
        Mistake("delta-with-the-wrong-sign",
                lambda fpr, epsilon, delta: _lowest(
                    (np.exp(epsilon) * fpr + delta, 1 - np.exp(-epsilon) * (1 + delta - fpr))),
                "In the second line delta has the wrong sign: a larger delta would leave the "
                "attacker less. Start again from 1 - FPR <= e^epsilon (1 - TPR) + delta."),
        Mistake("delta-multiplied",
                lambda fpr, epsilon, delta: _lowest(
                    (np.exp(epsilon) * (fpr + delta), 1 - np.exp(-epsilon) * (1 - delta - fpr))),
                "In the first line you multiply delta by e^epsilon as well. The definition adds "
                "it after the multiplication."),
        Mistake("sign-in-the-second-line", _wrong_sign,
                "In the second line you multiply by e^epsilon. Solve "
                "1 - FPR <= e^epsilon (1 - TPR) + delta for TPR once more: it is a division, so "
                "the exponent is negative."),
        Mistake("one-plus-epsilon",
                lambda fpr, epsilon, delta: _lowest(_lines(fpr, delta, 1 + epsilon)),
                "You use 1 + epsilon in place of e^epsilon. The two are close for small epsilon "
                "only: at epsilon 1 it is 2 against 2.72, and you promise too much."),
        Mistake("smallest-instead-of-largest", _smallest_tpr,
                "This is the least true-positive rate, the lower edge of the region: an attack "
                "that does worse than that would do better if its answers were turned round."),
        Mistake("not-capped",
                lambda fpr, epsilon, delta: np.minimum(*_lines(fpr, delta, np.exp(epsilon))),
                "Near a false-positive rate of 1 your answer is above 1, and no rate can be."),
    ),
    hints=(
        "The guarantee holds for every event and for both orders of the two data sets. Apply it to "
        "the event of an alarm, then, the other way round, to the event of no alarm.",
        "You get TPR <= e^epsilon FPR + delta and 1 - FPR <= e^epsilon (1 - TPR) + delta. Solve "
        "the second for TPR. The answer is the lowest of the two and 1; np.minimum takes arrays.",
    ),
    lesson="This curve holds for every attack, also for those nobody has thought of yet; a point "
           "above it would prove the guarantee false.",
)


# 1.8 What the brochure may say

BROCHURE = Exercise(
    "1.8", "What the brochure may say", points=3,
    rubric=(
        "(1 point) The sentence depends on epsilon and delta, shown with the bound "
        "1/2 + (e^epsilon - 1 + 2 delta) / (2 (e^epsilon + 1)) and with numbers for a small and a "
        "large epsilon. "
        "(1 point) The conditions: unlimited computing power is indeed covered; the adjacency, so "
        "what is hidden; that the bound takes both answers to be equally likely beforehand, or "
        "what prior knowledge does; that epsilon has to cover everything the clinic releases. "
        "(1 point) What is not promised: facts about the town as a whole, from which something "
        "about Meera may follow whether she takes part or not; and a sentence of your own that is "
        "true."
    ),
)


EXERCISES = (
    TWO_ADJACENCIES, NEIGHBOURS, SUM_SENSITIVITY, CLIP_ROWS, SMALLEST_EPSILON,
    RANDOMISED_RESPONSE, LARGEST_TPR, BROCHURE,
)
