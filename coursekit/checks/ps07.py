"""Checks of problem set 07, anonymity and its limits.

Each exercise: our answer, other right answers, the mistakes as code, and the parts of the check.
No answer is random. A table is a dict from column names to columns; a release, as an attacker reads
it, is a list of equivalence classes, each the list of the illnesses in it.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats
from scipy.optimize import lsq_linear

from coursekit.checks.exercise import Exact, Exercise, Mistake

ILLNESSES = ["asthma", "cold", "diabetes", "flu", "gout", "migraine", "stroke"]


def shuffled(values, rng):
    """A list in another order, its values as they are."""
    return [values[i] for i in rng.permutation(len(values))]


# -------------------------------------------------------------------------------------------- 7.1

def is_missing(value):
    return value is None or value != value


def rows_of(table, names):
    """The records as tuples, with None for every missing value."""
    columns = ([None if is_missing(value) else value for value in table[name]] for name in names)
    return list(zip(*columns, strict=True))


def crowd_of_each(table, quasi, person):
    rows, members = rows_of(table, quasi), {}
    for row, who in zip(rows, person, strict=True):
        members.setdefault(row, set()).add(who)
    return [len(members[row]) for row in rows]


def crowd_by_codes(table, quasi, person):
    group = np.zeros(len(person), dtype=int)
    for name in quasi:
        texts = np.array(["missing" if is_missing(v) else f"value {v}" for v in table[name]])
        codes = np.unique(texts, return_inverse=True)[1]
        group = np.unique(group * (codes.max() + 1) + codes, return_inverse=True)[1]
    return np.bincount(np.unique([group, person], axis=1)[0])[group]


def crowd_with(rows=rows_of, count=lambda who: len(set(who))):
    """Crowds by comparing all pairs of rows(table, quasi); count(list of persons) is the size."""
    def wrong(table, quasi, person):
        compared = rows(table, quasi)
        return [count([who for who, other in zip(person, compared, strict=True) if other == row])
                for row in compared]
    return wrong


def crowd_with_wildcards(table, quasi, person):
    rows = rows_of(table, quasi)
    return [len({who for who, other in zip(person, rows, strict=True)
                 if all(a == b or a is None or b is None for a, b in zip(row, other, strict=True))})
            for row in rows]


def blanks_dropped(table, quasi, person):
    full = [None not in row for row in rows_of(table, quasi)]
    return [n for n, kept in zip(crowd_of_each(table, quasi, person), full, strict=True) if kept]


def blank_numbers(table, quasi, instead):
    """The records, as text, with instead(place) for a missing number."""
    return [str([instead(place) if value is None and isinstance(table[name], np.ndarray) else value
                 for name, value in zip(quasi, row, strict=True)])
            for place, row in enumerate(rows_of(table, quasi))]


def crowd_cases(rng):
    nan = np.nan
    babies = {"age": np.array([0.0, 0, nan, nan, 2, 2]),
              "ward": ["A", "A", "A", "A", "B", "B"], "illness": ["flu"] * 6}
    doors = {"house": ["1", "1", "11", "2", "2", "12"], "flat": ["12", "12", "2", "2", "2", "1"],
             "illness": ["flu"] * 6}
    gaps = {"age": np.array([30, 30, 40, nan, nan, nan]),
            "ward": ["A", None, None, "B", None, "B"], "illness": shuffled(ILLNESSES, rng)[:6]}
    cases = [(babies, ["age", "ward"], [3, 8, 5, 6, 1, 2]), (doors, ["house", "flat"], range(6)),
             (gaps, ["ward", "age"], [1, 2, 3, 4, 5, 6]), (gaps, ["ward"], [7, 4, 7, 4, 4, 4])]
    for _ in range(4):
        kinds = int(rng.integers(5, 9))
        table = {"age": rng.integers(20, 23, kinds).astype(float),
                 "sex": shuffled(["F", "M"] * kinds, rng)[:kinds],
                 "ward": shuffled(["A", "B", None] * kinds, rng)[:kinds],
                 "illness": shuffled(ILLNESSES * 2, rng)[:kinds]}
        table["age"][rng.integers(1, kinds)], table["ward"][0] = nan, "B"  # record 0 has no blank
        times = rng.permutation(np.repeat(np.arange(kinds), rng.integers(2, 6, kinds)))
        person = rng.choice(90, 12, replace=False)[rng.integers(12, size=len(times))]
        table = {name: [column[i] for i in times] for name, column in table.items()}
        cases.append((table | {"age": np.array(table["age"])}, ["age", "sex", "ward"], person))
    return [{"table": table, "quasi": quasi, "person": np.array(person)}
            for table, quasi, person in cases]


CROWD_OF_EACH = Exercise(
    "7.1", "How many hide together?", 1, function="crowd_of_each", right=crowd_of_each,
    others=(crowd_with(), crowd_by_codes),
    parts=(Exact(crowd_cases, proof="the crowds agree, with missing values of either kind and "
                                    "with several visits of one person"),),
    mistakes=(
        Mistake("counts-records", crowd_with(count=len),
                "You counted records. Three visits of one person are one person: whoever looks for "
                "her need not know which of them is which."),
        Mistake("others-only", crowd_with(count=lambda who: len(set(who)) - 1),
                "One too few everywhere: the person of the record is in the class as well."),
        Mistake("smallest-only", lambda **case: min(crowd_of_each(**case)),
                "That is k, one number. Asked is the crowd of each record; k is its minimum."),
        Mistake("missing-is-a-wildcard", crowd_with_wildcards,
                "You let a missing value match anything. That makes no classes: 30 matches missing "
                "and missing matches 40, but 30 does not match 40. Whoever reads the table sees "
                "which fields are blank, so blank is one more value."),
        Mistake("missing-is-dropped", blanks_dropped,
                "You left out the records with a missing value. They are published, and the people "
                "behind them may be alone: a blank is one more value."),
        Mistake("blanks-are-one-class",
                crowd_with(lambda *case: [None if None in row else row for row in rows_of(*case)]),
                "You put all records with a missing value into one class. Two of them that differ "
                "in another column can be told apart: only the same field is the same blank."),
        Mistake("nan-is-never-equal",
                crowd_with(lambda *case: blank_numbers(*case, lambda place: [place])),
                "Each NaN is a class of its own in your count, because NaN == NaN is False. Two "
                "blank ages look alike to whoever reads the table: put something else there."),
        Mistake("missing-becomes-0",
                crowd_with(lambda *case: blank_numbers(*case, lambda place: np.float64(0))),
                "A missing age became the age 0, and so joined the babies. It needs a value that "
                "nobody else has, such as None."),
        Mistake("column-by-column", lambda table, quasi, person: np.min(
            [crowd_of_each(table, [name], person) for name in quasi], axis=0),
                "You looked at one column at a time. Ravi knows all quasi-identifiers of a person "
                "at once: compare combinations."),
        Mistake("all-columns", lambda table, quasi, person: crowd_of_each(table, [*table], person),
                "You compared all columns. Only the quasi-identifiers count, those that an "
                "attacker knows from elsewhere; what he wants to find out is not among them."),
        Mistake("glued-together",
                crowd_with(lambda *case: ["".join(map(str, row)) for row in rows_of(*case)]),
                "You glued the values to one text, and so flat 12 in house 1 became flat 2 in "
                "house 11. Compare tuples."),
    ),
    hints=(
        "Make a tuple of the quasi-identifiers of each record, and keep for each tuple the people "
        "who have it. What does your tuple hold where a value is missing?",
        "value is None or value != value is true for None and for NaN: put None into the tuple "
        "then. A dict from tuples to sets of people forgets second visits by itself.",
    ),
    lesson="A k counted over records can be the visits of one patient, and tools differ in what "
           "they do with blanks: ask both of a reported k.",
)


# -------------------------------------------------------------------------------------------- 7.2

def counts_in(group, values):
    """For each class the numbers of its records with each value that occurs, largest first."""
    members = {}
    for label, value in zip(group, values, strict=True):
        members.setdefault(int(label), []).append(value)
    return [sorted(Counter(inside).values(), reverse=True) for inside in members.values()]


def effective(counts):
    """The exponential of the entropy."""
    shares = np.array(counts) / sum(counts)
    return float(np.exp(-np.sum(shares * np.log(shares))))


def limit(counts, level):
    """r1 / (r_l + ... + r_m), which c has to exceed; infinity if there is no r_l."""
    tail = sum(counts[level - 1:])
    return counts[0] / tail if tail else math.inf


def diversities(group, values, level):
    classes = counts_in(group, values)
    return min(map(effective, classes)), max(limit(counts, level) for counts in classes)


def diversities_loop(group, values, level):
    best, most = math.inf, 0.0
    for label in set(group.tolist()):
        inside = [value for value, of in zip(values, group, strict=True) if of == label]
        counts = sorted(inside.count(value) for value in set(inside))
        bits = -sum(n / len(inside) * math.log2(n / len(inside)) for n in counts)
        tail = len(inside) - sum(counts[len(counts) - min(level - 1, len(counts)):])
        best, most = min(best, 2**bits), max(most, counts[-1] / tail if tail else float("inf"))
    return [best, most]


def diversities_matrix(group, values, level):
    rows, columns = (np.unique(x, return_inverse=True)[1] for x in (group, np.array(values)))
    table = np.zeros((rows.max() + 1, columns.max() + 1))
    np.add.at(table, (rows, columns), 1)
    entropy = stats.entropy(table, axis=1)
    falling = -np.sort(-table, axis=1)
    with np.errstate(divide="ignore"):
        limits = falling[:, 0] / falling[:, level - 1:].sum(axis=1)
    return np.array([np.exp(entropy.min()), limits.max()])


def diverse_with(first=effective, second=limit, pick=min, pick_limit=max):
    """Wrong diversities: first(counts) and second(counts, level) of a class, picks over classes."""
    def wrong(group, values, level):
        classes = counts_in(group, values)
        return (pick([first(counts) for counts in classes]),
                pick_limit([second(counts, level) for counts in classes]))
    return wrong


def entropy_of(counts):
    return float(np.log(effective(counts)))


def diversity_cases(rng):
    two = ([4, 4, 4, 9, 9, 9, 9], "flu flu flu flu cold gout gout")
    six = ([2] * 6 + [1] * 7, "flu flu flu cold cold gout flu flu flu cold gout stroke gout")
    # The class with the least entropy asks for the smaller c: 5/5, and 7/6 in the other.
    odd = ([3] * 10 + [8] * 13, "flu cold " * 5 + "flu " * 6 + " ".join(ILLNESSES))
    cases = [(group, words.split(), level) for (group, words), level in (
        (two, 2), (two, 1), (odd, 2), (six, 1), (six, 2), (six, 3))]
    for level in (1, 2, 3, 3, 4):
        group, values = [], []
        for label in rng.choice(90, 4, replace=False):
            # Never fewer illnesses than `level`; shares rise, so that no two mistakes agree.
            kinds = int(rng.integers(max(level, 2), 6))
            counts = np.cumsum(rng.integers(1, 4, kinds))
            group += [int(label)] * int(counts.sum())
            values += [word for word, n in zip(shuffled(ILLNESSES, rng), counts, strict=False)
                       for _ in range(n)]
        order = rng.permutation(len(group))
        cases.append(([group[i] for i in order], [values[i] for i in order], level))
    return [{"group": np.array(group), "values": values, "level": level}
            for group, values, level in cases]


DIVERSITIES = Exercise(
    "7.2", "Ten who hide nothing", 2, function="diversities", right=diversities,
    others=(diversities_loop, diversities_matrix),
    parts=(Exact(diversity_cases, proof="both numbers agree, in mixed and in uniform classes"),),
    mistakes=(
        Mistake("sorted-upwards", diverse_with(second=lambda counts, lev: limit(counts[::-1], lev)),
                "You sorted the counts upwards, so that your r1 is the rarest illness. r1 is the "
                "most frequent one: it is what Ravi would guess. (A published tool sorts like you, "
                "so ask which way a reported l was counted.)"),
        Mistake("tail-one-short", diverse_with(second=lambda counts, lev: limit(counts, lev + 1)),
                "Your tail starts one too late: it is r_l + ... + r_m, with r_l in it, and for "
                "l = 1 it is the whole class."),
        Mistake("upside-down", diverse_with(second=lambda r, lev: sum(r[lev - 1:]) / r[0]),
                "You divided the tail by r1. Solve r1 < c * tail for c: r1 is above the line."),
        Mistake("level-ignored", diverse_with(second=lambda counts, lev: counts[0] / sum(counts)),
                "l does not enter: you divided by the whole class, as for l = 1."),
        Mistake("best-class", diverse_with(pick_limit=min),
                "Your second number is that of the class that asks for the smallest c. One c has "
                "to exceed the limits of all classes: take the largest."),
        Mistake("too-few-is-0", diverse_with(
            second=lambda counts, lev: limit(counts, lev) if lev <= len(counts) else 0),
                "A class with fewer than l illnesses has no say in your second number. No c makes "
                "it diverse, so its limit is infinity."),
        Mistake("not-exponentiated", diverse_with(first=entropy_of),
                "Your first number is the entropy itself. Its exponential is the number of equally "
                "frequent illnesses that would be as uncertain."),
        Mistake("bits-and-e", diverse_with(first=lambda counts:
                                           math.exp(entropy_of(counts) / math.log(2))),
                "You took the entropy in bits and the exponential to base e. With log2 belongs "
                "2**H, with log belongs exp(H): two equal halves must give 2."),
        Mistake("mean-over-classes", diverse_with(pick=np.mean, pick_limit=np.mean),
                "You averaged over the classes. A promise to everybody is that of the worst one."),
        Mistake("whole-table", lambda group, values, level: diversities(0 * group, values, level),
                "You looked at the whole table. Ravi knows the class of the person he is after, so "
                "count within each class."),
        Mistake("swapped", lambda group, values, level: diversities(group, values, level)[::-1],
                "The two numbers have changed places: first the exponential of the entropy, then "
                "the limit."),
    ),
    hints=(
        "Count the illnesses in each class. The two numbers of a class need only these counts; "
        "which class is the worst for the first number, and which for the second?",
        "With counts sorted downwards and places from 0, the tail is sum(counts[level - 1:]). It "
        "is 0 if the class has too few illnesses: math.inf then.",
    ),
    lesson="k counts records, and ten equal illnesses are ten records: k says nothing about what "
           "is to be hidden. Both numbers here do, and neither is a promise against an attacker "
           "who knows more than it allows for.",
)


# -------------------------------------------------------------------------------------------- 7.3

def shares_of(values, places):
    return np.array([np.mean(values == place) for place in places])


def equal_costs(p, q):
    return np.abs(p - q).sum() / 2


def rank_costs(p, q):
    return np.abs(np.cumsum(p - q)).sum() / (len(p) - 1) if len(p) > 1 else 0.0


def closeness(group, values, ordered):
    places = np.unique(values)
    q = shares_of(values, places)
    distance = rank_costs if ordered else equal_costs
    return np.array([distance(shares_of(values[group == g], places), q) for g in group])


def closeness_by_counting(group, values, ordered):
    places, found = sorted(set(values.tolist())), {}
    for g in set(group.tolist()):
        inside = values[group == g].tolist()
        gaps = [Fraction(inside.count(place), len(inside))
                - Fraction(values.tolist().count(place), len(values)) for place in places]
        if ordered:
            crossing = sum(abs(sum(gaps[:i])) for i in range(1, len(places)))
            found[g] = float(crossing / max(1, len(places) - 1))
        else:
            found[g] = float(sum(gap for gap in gaps if gap > 0))
    return [found[g] for g in group.tolist()]


def closeness_by_matrix(group, values, ordered):
    codes, rows = (np.unique(x, return_inverse=True)[1] for x in (values, group))
    table = np.zeros((rows.max() + 1, codes.max() + 1))
    np.add.at(table, (rows, codes), 1)
    gaps = table / table.sum(axis=1, keepdims=True) - table.sum(axis=0) / table.sum()
    if ordered:
        return (np.abs(gaps.cumsum(axis=1)).sum(axis=1) / max(1, table.shape[1] - 1))[rows]
    return np.maximum(gaps, 0).sum(axis=1)[rows]


def close_with(equal=equal_costs, ranks=rank_costs, places=np.unique,
               whole=lambda values, inside: values):
    """Wrong distances: how far, the order of the values, whom a class is compared with."""
    def wrong(group, values, ordered):
        at, distance = places(values), ranks if ordered else equal
        return [distance(shares_of(values[group == g], at),
                         shares_of(whole(values, group == g), at)) for g in group]
    return wrong


def own_values_only(group, values, ordered):
    distance, found = rank_costs if ordered else equal_costs, []
    for g in group:
        places = np.unique(values[group == g])
        found.append(distance(shares_of(values[group == g], places), shares_of(values, places)))
    return found


def gaps_in_numbers(group, values, ordered):
    if not ordered:
        return closeness(group, values, ordered)
    return [stats.wasserstein_distance(values[group == g], values) / max(np.ptp(values), 1)
            for g in group]


def nan_for_one_value(p, q):
    with np.errstate(all="ignore"):
        return np.abs(np.cumsum(p - q)).sum() / np.float64(len(p) - 1)


def closeness_cases(rng):
    wages, thirds = np.array([3, 4, 5, 6, 11, 8, 7, 9, 10]), np.repeat([0, 1, 2], 3)
    skewed = np.array([9, 9, 10, 100, 9, 20, 20, 9, 10, 9, 9, 100])
    cases = []
    for ordered in (False, True):
        cases += [(thirds, wages, ordered), (np.repeat([7, 3, 5], 4), skewed, ordered),
                  (np.repeat([0, 1], 3), np.full(6, 4), ordered),
                  (np.zeros(5, dtype=int), np.array([1, 2, 2, 3, 9]), ordered)]
        for _ in range(3):
            sizes = rng.integers(4, 10, 4)
            group = rng.permutation(np.repeat(rng.choice(60, 4, replace=False), sizes))
            values = rng.choice([2, 9, 10, 30, 100, 101], len(group)) + int(rng.integers(0, 8))
            cases.append((group, values, ordered))
    return [{"group": group, "values": values, "ordered": ordered}
            for group, values, ordered in cases]


CLOSENESS = Exercise(
    "7.3", "How far from everybody?", 3, function="closeness", right=closeness,
    others=(closeness_by_counting, closeness_by_matrix),
    parts=(Exact(closeness_cases, proof="the distances agree, for either kind of cost"),),
    mistakes=(
        Mistake("equal-costs-always", close_with(ranks=equal_costs),
                "You took half the sum of |p - q| for ordered values too. There a share that moves "
                "from the lowest to the highest wage costs more than one that moves by one place: "
                "add up the cumulative differences."),
        Mistake("not-halved", close_with(equal=lambda p, q: np.abs(p - q).sum()),
                "Twice too much: what one value has too much another has too little, and each "
                "share moves once. Take half of the sum of |p - q|."),
        Mistake("not-divided",
                close_with(ranks=lambda p, q: np.abs(np.cumsum(p - q)).sum()),
                "You forgot 1/(m - 1). A move by one place costs that much, so that the longest "
                "move costs 1."),
        Mistake("divided-by-m",
                close_with(ranks=lambda p, q: np.abs(np.cumsum(p - q)).mean()),
                "You divided by m. Between m values there are m - 1 steps, so a step costs "
                "1/(m - 1)."),
        Mistake("largest-gap-only",
                close_with(ranks=lambda p, q: np.abs(np.cumsum(p - q)).max()),
                "You took the largest cumulative difference (that is Kolmogorov's distance). Each "
                "of them is a share that has to cross at that place: add them all up."),
        Mistake("distances-of-numbers", gaps_in_numbers,
                "You measured the distance between the numbers. The definition moves along ranks: "
                "from 20 to 100 is one place if nothing lies between."),
        Mistake("order-of-appearance",
                close_with(places=lambda values: np.array(list(dict.fromkeys(values.tolist())))),
                "You accumulated in the order in which the values come up in the table. Sort them "
                "first."),
        Mistake("absent-values-forgotten", own_values_only,
                "You compared only the values that occur in the class. Those absent from it count "
                "too: that nobody in it has a high wage is what gives people away."),
        Mistake("rest-of-the-table", close_with(
            whole=lambda values, inside: values if inside.all() else values[~inside]),
                "You compared each class with the rest of the table. The definition compares it "
                "with the whole table, the class included."),
        Mistake("largest-only", lambda **case: closeness(**case).max(),
                "That is t, one number. Asked is the distance of each record's class; t is the "
                "largest of them."),
        Mistake("one-for-each-class", lambda group, values, ordered: [
            closeness(group, values, ordered)[group == g][0] for g in np.unique(group)],
                "One number for each class. Asked is one for each record, in the order of `group`: "
                "the distance of the class that it is in."),
        Mistake("nothing-to-divide-by", close_with(ranks=nan_for_one_value),
                "Not a number where the whole table has one value only: m - 1 is 0 there. Nothing "
                "has to move, so the distance is 0."),
    ),
    hints=(
        "List the distinct values of the whole table once, sorted. Each class gives a vector of "
        "shares over that same list, with zeros where it lacks a value.",
        "np.abs(p - q).sum() / 2 without an order; np.abs(np.cumsum(p - q)).sum() / (m - 1) with "
        "one, and 0 if m is 1. Then give each record the distance of its class.",
    ),
    lesson="In the example the class of the three lowest wages is as far from everybody as that "
           "of 6, 11 and 8 if every move costs the same, and more than twice as far if wages have "
           "an order. So ask which distance a reported t used.",
)


# -------------------------------------------------------------------------------------------- 7.4

def edge_where(allowed):
    """edge(column, k): the first value of the upper side, of all cuts with allowed(lower, upper, k)
    that of the one nearest to the middle; None if there is none.
    """
    def edge(column, k):
        ranked, n = np.sort(column), len(column)
        cuts = [i for i in range(1, n) if ranked[i - 1] < ranked[i] and allowed(i, n - i, k)]
        return ranked[min(cuts, key=lambda i: (abs(2 * i - n), i))] if cuts else None
    return edge


best_edge = edge_where(lambda lower, upper, k: min(lower, upper) >= k)


def mondrian_cut(table, rows, k):
    box = table[rows]
    for column in np.argsort(-np.ptp(box, axis=0) / np.ptp(table, axis=0), kind="stable"):
        first = best_edge(box[:, column], k)
        if first is not None:
            return box[:, column] >= first
    return np.zeros(len(rows), dtype=bool)


def mondrian_cut_by_values(table, rows, k):
    scores = []
    for column in range(table.shape[1]):
        inside = table[rows, column]
        width = Fraction(int(np.ptp(inside)), int(np.ptp(table[:, column])))
        for value in set(inside.tolist()):
            lower = int(np.sum(inside < value))
            if k <= lower <= len(rows) - k:
                scores.append((-width, column, abs(2 * lower - len(rows)), lower, value))
    if not scores:
        return [False] * len(rows)
    _, column, _, _, value = min(scores)
    return [bool(table[row, column] >= value) for row in rows]


def mondrian_cut_by_counts(table, rows, k):
    answer, widest = np.zeros(len(rows), dtype=bool), -1.0
    for column in range(table.shape[1]):
        inside = table[rows, column]
        values, counts = np.unique(inside, return_counts=True)
        lower = np.cumsum(counts)[:-1]
        able = (lower >= k) & (len(rows) - lower >= k)
        width = (values[-1] - values[0]) / (table[:, column].max() - table[:, column].min())
        if able.any() and width > widest:
            off = np.where(able, np.abs(2 * lower - len(rows)), len(rows) + 1)
            answer, widest = inside > values[np.argmin(off)], width
    return answer


def box_width(table, rows):
    return np.ptp(table[rows], axis=0) / np.ptp(table, axis=0)


def cut_with(width=box_width, edge=best_edge, tries=None):
    """A wrong cut: width(table, rows) of each column, edge(column, k) a value or None."""
    def wrong(table, rows, k):
        box, widths = table[rows], np.asarray(width(table, rows), dtype=float)
        for column in np.argsort(-widths, kind="stable")[:tries]:
            first = edge(box[:, column], k)
            if first is not None:
                return box[:, column] >= first
        return np.zeros(len(rows), dtype=bool)
    return wrong


def edge_at(middle):
    """Only one cut is tried: the records up to middle(column) go down."""
    def edge(column, k):
        upper = column[column > middle(column)]
        return upper.min() if k <= len(upper) <= len(column) - k else None
    return edge


def ties_are_parted(table, rows, k):
    box = table[rows]
    upper = np.zeros(len(rows), dtype=bool)
    if len(rows) >= 2 * k:
        column = np.argmax(box_width(table, rows))
        upper[np.argsort(box[:, column], kind="stable")[len(rows) // 2:]] = True
    return upper


def median_of_the_table(table, rows, k):
    box = table[rows]
    for column in np.argsort(-box_width(table, rows), kind="stable"):
        upper = box[:, column] > np.median(table[:, column])
        if k <= upper.sum() <= len(rows) - k:
            return upper
    return np.zeros(len(rows), dtype=bool)


# Boxes with something special, after their k. In the whole table the ranges are 16, 64 and 40.
BOXES = (
    (2, [[6, 20, 5], [2, 50, 25], [4, 24, 9], [3, 22, 16], [5, 33, 13], [3, 30, 8]]),  # plain
    (1, [[3, 20, 5], [9, 22, 6], [9, 24, 6], [9, 26, 6], [9, 28, 7], [12, 30, 7]]),  # ties
    (2, [[3, 20, 5], [3, 22, 6], [3, 24, 6], [3, 26, 6], [3, 28, 7], [12, 30, 9]]),  # one far up
    (2, [[3, 20, 5], [12, 22, 6], [12, 24, 6], [12, 26, 6], [12, 28, 7], [12, 30, 9]]),  # or down
    (3, [[3, 20, 5], [3, 20, 5], [3, 20, 5], [9, 30, 9], [9, 30, 9]]),  # no cut
    (3, [[3, 20, 5], [3, 20, 5], [3, 20, 5], [9, 30, 9], [9, 30, 9], [9, 30, 9]]),  # just k
    # Two columns equally wide (6/16 and 24/64), and two cuts equally near to the middle.
    (2, [[3, 36, 5], [3, 20, 5], [4, 36, 5], [4, 20, 5], [4, 36, 5], [9, 44, 5], [9, 44, 5]]),
    (1, [[0, 8, 5], [1, 9, 6], [2, 8, 6], [3, 8, 6], [4, 8, 7], [16, 8, 7], [5, 8, 5]]),
    (4, [[7, 8, 5]] * 8),  # all alike
    # Nearly equally wide (8/64 and 9/64); 4 of 7 is nearer to the middle than 2, by a little.
    (2, [[3, 24, 5], [5, 20, 5], [3, 29, 5], [5, 29, 5], [3, 20, 5], [5, 24, 5], [5, 29, 5]]),
    (2, [[9, 8, 5], [3, 8, 5], [9, 8, 5], [3, 8, 5], [9, 8, 5]]),  # many at the top
    (4, [[7, 8, 5]] * 4 + [[9, 8, 5]]),  # all alike but one
)
LEAST = (20, 3, 90)  # added to all: a column's largest value is not its range


def cut_cases(rng):
    cases = []
    for k, box in BOXES:
        table = np.array([[0, 0, 0], *box, *[[16, 64, 40]] * 9]) + LEAST
        cases.append({"table": table, "rows": np.arange(1, 1 + len(box)), "k": k})
    while len(cases) < len(BOXES) + 5:
        table = np.stack([rng.integers(1, 8, 40), rng.integers(20, 81, 40),
                          rng.integers(0, 40, 40) // 7 * 5], axis=1)
        rows = rng.permutation(np.flatnonzero(table[:, 1] < rng.integers(50, 75)))
        k = int(rng.integers(2, 6))
        if len(rows) > 2 * k and np.diff(np.sort(box_width(table, rows))).min() > 1e-6:
            cases.append({"table": table, "rows": rows, "k": k})
    return cases


MONDRIAN_CUT = Exercise(
    "7.4", "Where to cut the crowd", 3, function="mondrian_cut", right=mondrian_cut,
    others=(mondrian_cut_by_values, mondrian_cut_by_counts),
    parts=(Exact(cut_cases, proof="the upper sides agree, also where there is no cut"),),
    mistakes=(
        Mistake("not-normalised",
                cut_with(width=lambda table, rows: np.ptp(table[rows], axis=0)),
                "You compared ranges as they are, so the column with the largest numbers wins, "
                "whatever they mean. Divide each by the range of that column in the whole table."),
        Mistake("range-of-the-table",
                cut_with(width=lambda table, rows: np.ptp(table, axis=0) / np.ptp(table, axis=0)),
                "You measured the width on the whole table. Earlier cuts have made this box "
                "narrower, in other columns too: measure it on the records that are in it."),
        Mistake("gives-up", cut_with(tries=1),
                "You stop when the widest column has no cut with k on either side. Try the next "
                "widest one: the box is final only if no column has a cut."),
        Mistake("ties-are-parted", ties_are_parted,
                "You parted records with equal values. Then the two boxes overlap and nobody can "
                "tell from a value which box it is in; a strict cut lies between two values."),
        Mistake("median-only", cut_with(edge=edge_at(np.median)),
                "You tried only the cut just above the median. With many equal values one side can "
                "get too few there, or many fewer than it could: look at every place where the "
                "value changes, and take the one nearest to the middle."),
        Mistake("median-of-the-table", median_of_the_table,
                "You cut at the median of the whole table. Take the middle of the records in the "
                "box."),
        Mistake("middle-of-the-range",
                cut_with(edge=edge_at(lambda column: (column.max() + column.min()) / 2)),
                "You cut in the middle of the range. Count records, not years: as many on either "
                "side as can be."),
        Mistake("k-on-one-side", cut_with(edge=edge_where(lambda lower, upper, k: lower >= k)),
                "You asked for k records on the lower side only. The upper side needs them too."),
        Mistake("k-forgotten", cut_with(edge=edge_where(lambda *sizes: True)),
                "k does not enter: some of your sides have fewer than k records."),
        Mistake("more-than-k", cut_with(edge=edge_where(lambda i, j, k: min(i, j) > k)),
                "You asked for more than k on either side. k itself is enough."),
        Mistake("lower-side", lambda table, rows, k: ~mondrian_cut(table, rows, k),
                "You marked the lower side. True stands for the upper one."),
    ),
    hints=(
        "Sort the box by a column. After i records there can be a cut if the value changes there "
        "and k <= i <= n - k. Which of these i is nearest to n/2?",
        "Go through the columns from the widest to the narrowest (np.argsort of the negative "
        "widths with kind=\"stable\" keeps the first of equals first) and return at the first that "
        "has a cut.",
    ),
    lesson="Applied again and again this is Mondrian. What it then publishes of a box, the least "
           "and the greatest value in each column, are true values of somebody.",
)


# -------------------------------------------------------------------------------------------- 7.5

def candidates_left(releases, people):
    counts = []
    for classes in people.tolist():
        left = set(releases[0][classes[0]])
        for release, of in zip(releases, classes, strict=True):
            left &= set(release[of])
        counts.append(len(left))
    return counts


def candidates_left_matrix(releases, people):
    words = sorted({word for release in releases for inside in release for word in inside})
    possible = np.ones((len(people), len(words)), dtype=bool)
    for release, of in zip(releases, people.T, strict=True):
        present = np.array([[word in inside for word in words] for inside in release])
        possible &= present[of]
    return possible.sum(axis=1)


def candidates_left_counter(releases, people):
    answer = np.zeros(len(people), dtype=int)
    for i, classes in enumerate(people):
        seen = Counter(word for release, of in zip(releases, classes, strict=True)
                       for word in set(release[of]))
        answer[i] = sum(times == len(releases) for times in seen.values())
    return answer


def left_with(count):
    """A wrong answer: count(lists), the lists being a person's classes, one of each release."""
    return lambda releases, people: [
        count([release[of] for release, of in zip(releases, classes, strict=True)])
        for classes in people.tolist()]


def in_all(lists):
    return set.intersection(*map(set, lists))


def place_by_place(lists):
    return sum(len(set(words)) == 1 for words in zip(*lists, strict=False))


def of_whole_releases(releases, people):
    both = in_all([[word for inside in release for word in inside] for release in releases])
    return [len(both)] * len(people)


def candidate_cases(rng):
    # Sizes grow with the number of the class, so that no two mistakes agree by chance.
    cases = []
    for count, sizes in ((2, (2, 4, 5, 7)), (2, (4, 6, 8)), (3, (3, 6, 9)), (1, (3, 5, 7)),
                         (4, (5, 6, 7))):
        n = sum(sizes)
        ill = [str(word) for word in rng.choice(ILLNESSES, n)]
        releases, of = [], np.zeros((n, count), dtype=int)
        for j in range(count):
            order = rng.permutation(n)
            cuts = np.split(order, np.cumsum(sizes)[:-1])
            releases.append([[ill[i] for i in part] for part in cuts])
            for number, part in enumerate(cuts):
                of[part, j] = number
        cases.append({"releases": releases, "people": of[rng.permutation(n)]})
    first = [["flu", "flu", "cold"], ["gout", "cold", "cold"]]
    second = [["cold", "flu", "cold", "gout"], ["flu", "cold", "stroke"]]
    return [{"releases": [first, second], "people": np.array([[0, 0], [0, 1], [1, 0], [1, 1]])},
            *cases]


CANDIDATES_LEFT = Exercise(
    "7.5", "Two hospitals, one Meera", 2, function="candidates_left", right=candidates_left,
    others=(candidates_left_matrix, candidates_left_counter),
    parts=(Exact(candidate_cases, proof="the counts agree, for one release and for several"),),
    mistakes=(
        Mistake("union", left_with(lambda lists: len(set().union(*lists))),
                "You counted the illnesses that occur in any of her classes. Her record is in each "
                "of them, so her illness is in all: intersect."),
        Mistake("first-release", left_with(lambda lists: len(set(lists[0]))),
                "You looked at the first release only. Each further one can rule out more."),
        Mistake("last-release", left_with(lambda lists: len(set(lists[-1]))),
                "You looked at the last release only, perhaps because a loop overwrites its "
                "result. Keep what is left from the ones before, and intersect."),
        Mistake("first-two", left_with(lambda lists: len(in_all(lists[:2]))),
                "You used two releases where there are more. There may be any number."),
        Mistake("smallest-class", left_with(lambda lists: min(len(set(words)) for words in lists)),
                "You took the class with the fewest illnesses. The classes together can leave "
                "fewer than any of them alone."),
        Mistake("counts-records", left_with(lambda lists: sum(
            word in in_all(lists) for word in lists[0])),
                "You counted records. Two flus are one possible illness: count each once."),
        Mistake("with-multiplicity", left_with(lambda lists: sum(
            min(words.count(word) for words in lists) for word in in_all(lists))),
                "You intersected the lists with repetitions. Two flus in each class are still one "
                "possible illness."),
        Mistake("place-by-place", left_with(place_by_place),
                "You compared the lists place by place. The order of the records in a class means "
                "nothing."),
        Mistake("whole-releases", of_whole_releases,
                "You intersected whole releases. Ravi knows the class of each person: intersect "
                "these."),
        Mistake("who-is-caught", left_with(lambda lists: len(in_all(lists)) == 1),
                "You tell who has a single candidate left. Asked is how many are left for each."),
    ),
    hints=(
        "For one person: take the classes she is in, one for each release. Which illnesses occur "
        "in every one of them?",
        "set.intersection(*sets) intersects any number of sets, and a set forgets repetitions. "
        "people[i, j] is the place of person i's class in releases[j].",
    ),
    lesson="k-anonymity does not add up: two releases, each with k, can leave one candidate, and "
           "neither hospital can see it from its own table (Ganta, Kasiviswanathan and Smith "
           "2008). What adds up is a privacy budget.",
)


# -------------------------------------------------------------------------------------------- 7.6

def ways(small, large, positive):
    """How many of `positive` may be in the small group, and in how many ways."""
    for inside in range(max(0, positive - large), min(small, positive) + 1):
        yield inside, math.comb(small, inside) * math.comb(large, positive - inside)


def is_merged(inside, small, large, positive, most):
    return inside > most * small or positive - inside > most * large


def minimality_posterior(small, large, positive, most):
    merged = [(inside, count) for inside, count in ways(small, large, positive)
              if is_merged(inside, small, large, positive, most)]
    total = sum(count for _, count in merged)
    return sum(inside * count for inside, count in merged) / (small * total)


def posterior_by_law(small, large, positive, most):
    inside = np.arange(small + 1)
    weights = stats.hypergeom(small + large, small, positive).pmf(inside)
    weights = weights * ((inside / small > most) | ((positive - inside) / large > most))
    return np.average(inside / small, weights=weights)


def posterior_by_bayes(small, large, positive, most):
    """Given Meera ill or not, the law of the other places; then Bayes' rule for the merging."""
    likelihood = {}
    for ill in (0, 1):
        law = stats.hypergeom(small + large - 1, small - 1, positive - ill)
        likelihood[ill] = sum(
            law.pmf(others) for others in range(small)
            if is_merged(others + ill, small, large, positive, most))
    prior = positive / (small + large)
    return prior * likelihood[1] / (prior * likelihood[1] + (1 - prior) * likelihood[0])


def posterior_with(rule=is_merged, weight=None, value=lambda inside, small, left, large:
                   inside / small, given=True):
    """A wrong posterior: what is merged, the weights, what is averaged (`left` are the ill people
    of the large group), and whether it is divided by the chance of merging.
    """
    def wrong(small, large, positive, most):
        top = total = 0.0
        for inside, count in ways(small, large, positive):
            w = weight(inside, small, large, positive) if weight else count
            merged = rule(inside, small, large, positive, most)
            top += w * merged * value(inside, small, positive - inside, large)
            total += w * (merged or not given)
        return top / total if total else 0.0
    return wrong


def minimality_cases(rng):
    cases = [(2, 4, 2, 0.5), (2, 10, 2, 0.5), (4, 10, 3, 0.5), (5, 20, 4, 0.5), (4, 6, 4, 0.5),
             (3, 8, 6, 0.5), (8, 12, 7, 0.25), (4, 8, 6, 0.5), (5, 9, 10, 0.75)]
    while len(cases) < 13:
        small = int(rng.integers(2, 9))
        large = int(rng.integers(small + 1, 30))
        positive = int(rng.integers(3, small + large - 1))
        most = float(rng.choice([0.25, 0.5, 0.75]))
        merged = [is_merged(inside, small, large, positive, most)
                  for inside, _ in ways(small, large, positive)]
        if any(merged) and not all(merged):
            cases.append((small, large, positive, most))
    return [dict(zip(("small", "large", "positive", "most"), case, strict=True))
            for case in cases]


MINIMALITY = Exercise(
    "7.6", "What the merging says", 2, function="minimality_posterior",
    right=minimality_posterior, others=(posterior_by_law, posterior_by_bayes),
    parts=(Exact(minimality_cases, proof="the chances agree, for several rules"),),
    mistakes=(
        Mistake("prior", lambda small, large, positive, most: positive / (small + large),
                "This is the share in the merged group, what the table seems to say. But Ravi also "
                "knows why the groups were merged: only the distributions that break the rule "
                "remain."),
        Mistake("equality-merges", posterior_with(lambda inside, small, large, positive, most:
                                                  inside >= most * small
                                                  or positive - inside >= most * large),
                "You also merge where a share equals the limit. The rule merges only above it."),
        Mistake("small-group-only", posterior_with(lambda inside, small, large, positive, most:
                                                   inside > most * small),
                "You only looked at whether the small group breaks the rule. Too many in the large "
                "one lead to a merging as well."),
        Mistake("opposite", posterior_with(lambda *case: not is_merged(*case)),
                "You kept the distributions that keep the rule. With those the groups would have "
                "been published one by one; Ravi sees that they were merged."),
        Mistake("not-conditioned", posterior_with(given=False),
                "You divided by all distributions. That gives the chance that she is ill *and* the "
                "groups are merged; Ravi sees the merging, so divide by the chance of that."),
        Mistake("unweighted", posterior_with(weight=lambda *case: 1),
                "You gave each number of ill people in the small group the same weight. Some can "
                "come about in many more ways: weigh with the number of ways to choose them."),
        Mistake("ways-in-the-small-group",
                posterior_with(weight=lambda inside, small, large, positive:
                               math.comb(small, inside)),
                "You counted only the ways to choose the ill people of the small group. The others "
                "are spread over the large group, in math.comb(large, positive - inside) ways."),
        Mistake("independent-people", posterior_with(weight=lambda inside, small, large, positive:
                                                     stats.binom(small, positive / (small + large)
                                                                 ).pmf(inside)),
                "You let each person of the small group be ill by a coin of their own. How many "
                "are ill in all is published, so more in one group means fewer in the other."),
        Mistake("somebody-is-ill", posterior_with(value=lambda inside, small, left, large:
                                                  inside > 0),
                "This is the chance that somebody in the small group is ill. Meera is one of them: "
                "if j of them are ill, she is with chance j / small."),
        Mistake("number-not-share", posterior_with(value=lambda inside, small, left, large:
                                                   inside),
                "This is the expected number of ill people in the small group. Divide by its size: "
                "she is one of them."),
    ),
    hints=(
        "For each number j of ill people in the small group: in how many ways can that be, and "
        "would the clinic have merged? Keep those in which it would.",
        "The weight of j is math.comb(small, j) * math.comb(large, positive - j). Average j/small "
        "with these weights over the j that break the rule.",
    ),
    lesson="The rule that makes a table safe tells, by what it did, what it saw (Wong, Fu, Wang "
           "and Pei 2007). A method must be safe for those who know the method.",
)


# -------------------------------------------------------------------------------------------- 7.7

def isolating_questions(people, target, least):
    others = [i for i in range(people) if i != target][:least]
    questions = np.zeros((2, people), dtype=int)
    questions[:, others] = 1
    questions[0, target] = 1
    return questions


def isolating_large(people, target, least):
    """As many as may be: `least` people are left out of the larger question."""
    out = [i for i in range(people) if i != target][-least:]
    return [[i not in out for i in range(people)],
            [i not in out and i != target for i in range(people)]]


def isolating_roll(people, target, least):
    half = np.roll(np.arange(people) < people // 2, target + 1)
    return np.array([half | (np.arange(people) == target), half])


def fault(questions, people, target, least):
    """The name of what is wrong with two questions, None if nothing is."""
    try:
        asked = np.asarray(questions)
    except ValueError:  # rows of unequal length
        return "not-flags"
    if (asked.dtype.kind not in "biuf" or asked.shape != (2, people)
            or not np.all((asked == 0) | (asked == 1))):
        return "not-flags"
    asked = asked.astype(float)
    size = asked.sum(axis=1)
    for few, name, alone in ((size.min(), "asks-about-too-few", "asks-about-her-alone"),
                             (people - size.max(), "leaves-out-too-few", "asks-about-everybody")):
        if few < least:
            return alone if few <= 1 < least or few == 0 else name
    change = asked[0] - asked[1]
    if change[target] == 0:
        return "she-is-in-both" if asked[0, target] else "she-is-in-neither"
    if np.abs(change).sum() > 1:
        return "others-change-too"
    return "wrong-way-round" if change[target] < 0 else None


@dataclass(frozen=True)
class Questions:
    """Any two questions will do that a filter on both sides answers and that isolate the target."""

    cases: Callable

    def examine(self, exercise, subject, seed):
        for case in self.cases(np.random.default_rng(seed)):
            (given,) = exercise.answers(subject, case)
            name = fault(given, **case)
            if name:
                return exercise.wrong(name)
        return None

    def describe(self):
        return "both questions pass the filter, and their answers differ by hers alone"


def question_cases(rng):
    sizes = [(12, 4, 3), (7, 0, 3), (7, 6, 3), (3, 1, 1), (40, 2, 5), (41, 39, 20)]
    for _ in range(4):
        least = int(rng.integers(2, 15))
        people = 2 * least + int(rng.integers(2, 30))
        sizes.append((people, int(rng.integers(people)), least))
    return [{"people": n, "target": t, "least": k} for n, t, k in sizes]


def asking(build, drop=0):
    """Wrong questions build(crowd, her), two rows of flags; `drop` people leave the crowd first,
    which has `least` others in it, if that is more than `drop`.
    """
    def wrong(people, target, least):
        both = isolating_questions(people, target, least)
        if least > drop:
            both[:, np.flatnonzero(both[1])[:drop]] = 0
        return build(both[1], both[0] - both[1])
    return wrong


def crowd_grows(crowd, her):
    return [crowd + her + (np.cumsum(1 - crowd - her) == 1) * (1 - crowd - her), crowd]


QUESTIONS = Exercise(
    "7.7", "Two questions", 2, function="isolating_questions", right=isolating_questions,
    others=(isolating_large, isolating_roll),
    parts=(Questions(question_cases),),
    mistakes=(
        Mistake("asks-about-her-alone", asking(lambda crowd, her: [her, 0 * crowd]),
                "You ask about one person, or about nobody. That is what the filter was built "
                "against: hide her in a crowd, and ask about the crowd without her as well."),
        Mistake("asks-about-everybody", asking(lambda crowd, her: [0 * crowd + 1, 1 - her]),
                "You ask about everybody, or nearly so. This filter looks at those left out too: "
                "leave at least `least` people out of both questions."),
        Mistake("asks-about-too-few", asking(lambda crowd, her: [crowd + her, crowd], drop=1),
                "One question is about fewer than `least` people. The one without her is smaller "
                "by one: it must be large enough too."),
        Mistake("leaves-out-too-few",
                asking(lambda crowd, her: [1 - crowd, 1 - crowd - her], drop=1),
                "One question leaves out fewer than `least` people. The one with her is larger by "
                "one: it must leave enough out too."),
        Mistake("wrong-way-round", asking(lambda crowd, her: [crowd, crowd + her]),
                "The first answer less the second is minus her value. The question with her comes "
                "first."),
        Mistake("she-is-in-both", asking(lambda crowd, her: [crowd + her, crowd + her]),
                "She is in both questions, so her value cancels. Leave her out of the second. (Is "
                "she perhaps in your crowd by chance, for some targets?)"),
        Mistake("she-is-in-neither", asking(lambda crowd, her: [crowd, crowd]),
                "She is in neither question, so neither answer knows of her. The first has to have "
                "her in it."),
        Mistake("others-change-too", asking(crowd_grows),
                "The two questions differ in more people than her, so the difference holds their "
                "values too. Keep the crowd the same."),
        Mistake("not-flags",
                asking(lambda crowd, her: [np.flatnonzero(crowd + her), np.flatnonzero(crowd)]),
                "A question is a row with a 0 or a 1 for each person, and there are two: an array "
                "of shape (2, people). Not a list of positions, for instance."),
    ),
    hints=(
        "Take a crowd without her that is large enough, and ask about it with her and without. How "
        "small and how large may the crowd be?",
        "A crowd of exactly `least` others always works, since people is at least 2 least + 1. "
        "Mind that she is not among the first ones that you pick.",
    ),
    lesson="Whether an answer harms depends on the other answers, which a filter on one question "
           "does not see. With fresh Laplace noise of scale 1/epsilon on each answer Ravi repeats "
           "the pair m times, and for large m a yes or no comes out right with chance about "
           "Phi(epsilon sqrt(m) / 4): what protects her is a budget for all answers together.",
)


# -------------------------------------------------------------------------------------------- 7.8

def estimates(queries, answers):
    return np.linalg.lstsq(queries.astype(float), answers, rcond=None)[0]


def reconstruct_bits(queries, answers, known):
    bits, unknown = known.copy(), known < 0
    rest = answers - queries[:, ~unknown] @ known[~unknown]
    bits[unknown] = estimates(queries[:, unknown], rest) > 0.5
    return bits


def reconstruct_normal(queries, answers, known):
    """Normal equations, with every unknown bit measured from 1/2."""
    A = queries[:, known == -1].astype(float)
    guess = np.where(known == -1, 0.5, known)
    guess[known == -1] += np.linalg.solve(A.T @ A, A.T @ (answers - queries @ guess))
    return [int(x > 0.5) for x in guess]


def reconstruct_pinv(queries, answers, known):
    unknown = known == -1
    guess = np.where(unknown, 0, known).astype(float)
    guess[unknown] = np.linalg.pinv(queries[:, unknown]) @ (answers - queries @ guess)
    return np.rint(np.clip(guess, 0, 1))


def helpful(queries, known):
    """What the known people add to each answer."""
    return queries[:, known >= 0] @ known[known >= 0]


def bits_with(estimate=estimates, decide=lambda x: x > 0.5, told=helpful):
    """Wrong bits: decide(estimate(questions, answers)) of the unknown people; told(queries, known)
    is subtracted from the answers first.
    """
    def wrong(queries, answers, known):
        bits, unknown = known.copy(), known < 0
        bits[unknown] = decide(estimate(queries[:, unknown], answers - told(queries, known)))
        return bits
    return wrong


def one_at_a_time(queries, answers):
    means = [[answers[column == bit].mean() for bit in (1, 0)] for column in queries.T]
    return np.array([inside - outside for inside, outside in means])


def with_an_intercept(queries, answers):
    return estimates(queries - queries.mean(axis=0), answers - answers.mean())


def overwritten_at_the_end(queries, answers, known):
    return np.where(known < 0, estimates(queries, answers) > 0.5, known)


def reconstruction_cases(rng):
    # No estimate is so near to 1/2 that rounding could decide.
    queries, nobody = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]]), np.full(4, -1)
    cases = [{"queries": queries, "answers": np.array([0.8, 1.2, 1.9, 1.7]), "known": nobody[:3]},
             {"queries": np.eye(4, dtype=int)[rng.permutation(4)],  # each estimate is an answer
              "answers": np.array([0.501, 0.499, 1.6, 0.501]), "known": nobody}]
    plans = [(30, 60, 0, 0.5, 0.5), (40, 90, 0, 0.15, 0.4), (40, 90, 0, 0.85, 0.4),
             (50, 45, 25, 0.5, 0.35), (40, 120, 12, 0.3, 0.6), (30, 90, 3, 0.6, 0.0)]
    for n, m, told, share, spread in plans:
        while True:
            queries = rng.integers(2, size=(m, n))
            bits = (rng.random(n) < share).astype(int)
            # Least squares has errors of about 2 sigma / sqrt(m - unknown): choose sigma by that.
            sigma = spread * math.sqrt(max(1, m - (n - told))) / 2
            answers = queries @ bits + sigma * rng.standard_normal(m)
            known = np.where(rng.permutation(n) < told, bits, -1)
            found = estimates(queries[:, known < 0], answers - helpful(queries, known))
            if np.abs(found - 0.5).min() > 1e-6:
                break
        cases.append({"queries": queries, "answers": answers, "known": known})
    return cases


RECONSTRUCT = Exercise(
    "7.8", "Everybody at once", 2, function="reconstruct_bits", right=reconstruct_bits,
    others=(reconstruct_normal, reconstruct_pinv),
    parts=(Exact(reconstruction_cases,
                 proof="all bits agree, with noise and without, with and without known people"),),
    mistakes=(
        Mistake("rounded", bits_with(decide=np.rint),
                "You rounded to the nearest whole number, so noise made 2s and -1s. A bit is 0 or "
                "1: compare with 1/2."),
        Mistake("truncated", bits_with(decide=lambda x: np.clip(x.astype(int), 0, 1)),
                "You cut the decimals off, so 0.97 became 0. Compare with 1/2."),
        Mistake("above-the-mean", bits_with(decide=lambda x: x > x.mean()),
                "You compared with the mean of the estimates. That fits only if half of the people "
                "are ill; the line between 0 and 1 is 1/2, however many are."),
        Mistake("one-at-a-time", bits_with(one_at_a_time),
                "You compared the answers with a person and those without, one person at a time. "
                "The other people are then noise; solving for all of them at once removes it."),
        Mistake("as-many-as-people", bits_with(lambda Q, a: estimates(Q[:Q.shape[1]],
                                                                      a[:Q.shape[1]])),
                "You used as many questions as there are unknown people. That fits the noise "
                "exactly; the further answers are what averages it out."),
        Mistake("with-an-intercept", bits_with(with_an_intercept),
                "You centred questions and answers, as a regression with an intercept does. "
                "Counts have no unknown offset: nobody chosen gives 0, so the intercept throws "
                "away what the level of the answers says."),
        Mistake("answers-as-shares", bits_with(lambda Q, a: estimates(Q, a / Q.shape[1])),
                "You divided the answers by the number of people. They are counts, as 0 and 1 "
                "times the bits are."),
        Mistake("kept-between-0-and-1", bits_with(lambda Q, a: lsq_linear(
            Q.astype(float), a, bounds=(0, 1), tol=1e-13).x),
                "You kept the estimates between 0 and 1 while solving. That is a sensible attack; "
                "asked is plain least squares, whose error has a closed form."),
        Mistake("overwritten-at-the-end", overwritten_at_the_end,
                "You solved for everybody and put the known bits in at the end. Known people "
                "should help: subtract what they add to each answer, and solve for the others."),
        Mistake("minus-1-subtracted", bits_with(told=lambda queries, known: queries @ known),
                "You subtracted questions @ known, with -1 for those who are not known. Only known "
                "people may be subtracted."),
        Mistake("known-not-subtracted", bits_with(told=lambda queries, known: 0),
                "You left out the known people's columns, but their bits are still in the answers. "
                "Subtract them."),
    ),
    hints=(
        "First without known people: which x makes queries @ x come nearest to the answers? "
        "np.linalg.lstsq finds it; then compare with 1/2.",
        "unknown = known < 0. Subtract queries[:, ~unknown] @ known[~unknown] from the answers, "
        "and solve with the columns queries[:, unknown] alone.",
    ),
    lesson="With n people, none known, c n random questions (c above 1) and independent normal "
           "noise of deviation alpha sqrt(n) on each answer, about Phi(-sqrt(c - 1) / (4 alpha)) "
           "of the bits come out wrong, whatever n is: noise that does not grow like sqrt(n) does "
           "not stop this (after Dinur and Nissim 2003).",
)


# -------------------------------------------------------------------------------------------- 7.9

PLAN = Exercise(
    "7.9", "The clinic's plan", 3,
    rubric=(
        "1 point: what k = 10 says and what it does not. Nobody's row can be told from nine "
        "others, for someone who knows only age, schooling and hours, in one table; it is no "
        "promise about the diagnosis (a class may share one, or lack one; l-diversity or "
        "t-closeness speak about that), nor against someone who knows more, nor a limit of 10% on "
        "what can be inferred. 1 point: releases do not add up. Tables of several years can be "
        "intersected, and the page is open to differencing (two large counts that differ in one "
        "person), whatever its filter; one of the two with a worked example or number, the other "
        "named. 1 point, for a proposal that answers what was found and a sentence that is true: "
        "for instance one budget for all tables and the page over all years (differential privacy, "
        "with adjacency and epsilon), a single table, fewer columns, or access under contract with "
        "the questions recorded. 'Larger k' or 'a larger filter' alone earns nothing."
    ),
)

EXERCISES = (CROWD_OF_EACH, DIVERSITIES, CLOSENESS, MONDRIAN_CUT, CANDIDATES_LEFT, MINIMALITY,
             QUESTIONS, RECONSTRUCT, PLAN)
