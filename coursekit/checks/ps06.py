"""Checks of problem set 06, linkage attacks.

Each exercise: our answer, other right answers, the mistakes as code, and the parts of the check.
All answers are exact. Tables are dicts from column name to an array of whole numbers; all people
are synthetic, drawn afresh for each check.
"""

import math
from collections import Counter, defaultdict

import numpy as np
from scipy import stats

from coursekit.checks.exercise import Exact, Exercise, Mistake


def records(table, on):
    """The records of a table as tuples of their values in the columns `on`."""
    return list(zip(*(np.asarray(table[name]).tolist() for name in on), strict=True))


def listed(*rows):
    """A tuple of mistakes from rows (name, wrong answer, message)."""
    return tuple(Mistake(*row) for row in rows)


def synthetic_table(rng, count, *, zips, births, **more):
    """A table of people in `zips` ZIP codes with `births` birth dates (around day 0), and more."""
    columns = {"zip": rng.integers(1, zips + 1, count),
               "birth": rng.integers(0, births, count) - births // 2,
               "sex": rng.integers(0, 2, count)}
    return columns | {name: rng.integers(0, kinds, count) for name, kinds in more.items()}


def look_alikes(*bases):
    """Two rows of numbers, all of whose columns differ; a code base * a + b is twice the same."""
    bases, step = np.array(bases), 20 * np.arange(len(bases))
    return np.concatenate([[step, bases + 7], [step + 1, 0 * bases + 7]], axis=1)


def wide_table():
    """People whom no code such as 1000 * zip + birth can keep apart."""
    return dict(zip(("zip", "birth"), look_alikes(10, 31, 100, 366, 1000, 10_000), strict=True))


# -------------------------------------------------------------------------------------------- 6.1

def share_alone(table, on):
    columns = np.column_stack([table[name] for name in on])
    counts = np.unique(columns, axis=0, return_counts=True)[1]
    return np.sum(counts == 1) / len(columns)


def share_alone_counter(table, on):
    keys = records(table, on)
    return [count for _, count in Counter(keys).items()].count(1) / len(keys)


def share_alone_pairs(table, on):
    equal = np.all([table[name][:, None] == table[name] for name in on], axis=0)
    return np.mean(equal.sum(axis=1) == 1)


def crowds(keys):
    """For each record: how many have the same key."""
    counts = Counter(keys)
    return np.array([counts[key] for key in keys])


def share_of(judge, keys=records):
    """A wrong share: judge(how many records have the key of each), or with other keys."""
    return lambda table, on: judge(crowds(keys(table, on)))


def glued(table, on):
    return ["".join(map(str, key)) for key in records(table, on)]


def in_one_column(combine):
    return lambda table, on: np.mean(combine([crowds(records(table, [name])) == 1 for name in on],
                                             axis=0))


def not_sorted(table, on):
    keys = [None, *records(table, on), None]
    return np.mean([keys[i] not in (keys[i - 1], keys[i + 1]) for i in range(1, len(keys) - 1)])


def alone_cases(rng):
    trap = {"zip": np.array([1, 11, 3, 3]), "birth": np.array([12, 2, 5, 5]),
            "sex": np.array([0, 0, 1, 1])}
    cases = [{"table": trap, "on": ["zip", "birth"]},
             {"table": {name: values[:1] for name, values in trap.items()}, "on": ["zip", "sex"]}]
    table = synthetic_table(rng, 120, zips=12, births=11, diagnosis=4)
    for on in (["zip", "birth", "sex"], ["birth", "zip"], ["zip", "birth", "sex", "diagnosis"]):
        cases.append({"table": table, "on": on})
    few = synthetic_table(rng, 40, zips=30, births=40, diagnosis=4)
    return cases + [{"table": table, "on": on} for table, on in (
        (few, ["birth"]), (few, ["zip", "birth"]), (wide_table(), ["zip", "birth"]),
        (wide_table(), ["birth", "zip"]))]


ALONE = Exercise(
    "6.1", "Who is alone?", 1, function="share_alone", right=share_alone,
    others=(share_alone_counter, share_alone_pairs),
    parts=(Exact(alone_cases, proof="the shares agree, on one column and on several"),),
    mistakes=listed(
        ("counts-different-values", share_of(lambda n: np.sum(1 / n) / len(n)),
         "You count how many different combinations there are; three people who share one count "
         "as one. Whoever shares her values with anybody is not alone: count only combinations "
         "that one record has."),
        ("share-of-combinations", share_of(lambda n: np.sum(n == 1) / np.sum(1 / n)),
         "You divide by the number of different combinations. The question is about people: "
         "divide by the number of records."),
        ("those-who-share", share_of(lambda n: np.mean(n > 1)),
         "This is the share of those who are not alone. Take it from 1."),
        ("count-not-share", share_of(lambda n: int(np.sum(n == 1))),
         "This is a number of records. Divide by how many records there are."),
        ("percent", share_of(lambda n: 100 * np.mean(n == 1)),
         "These are per cent. A share lies between 0 and 1."),
        ("pairs-count-too", share_of(lambda n: np.mean(n <= 2)),
         "You count pairs as alone. Two people with the same values hide each other, if badly."),
        ("all-columns", lambda table, on: share_alone(table, list(table)),
         "You use all the columns of the table. The attacker knows only those in `on`."),
        ("first-column-only", lambda table, on: share_alone(table, on[:1]),
         "You use only the first name in `on`. What singles people out is the combination."),
        ("alone-in-some-column", in_one_column(np.any),
         "You call a record alone if some one of its values is rare. A person whose birth date "
         "and ZIP code are both common may still be the only one with both."),
        ("alone-in-every-column", in_one_column(np.all),
         "You ask that each single value be found nowhere else. It is enough that no other record "
         "has all the values together."),
        ("glued-text", share_of(lambda n: np.mean(n == 1), glued),
         "Nearly: you glue the values together as text, and then 1 and 12 look like 11 and 2. "
         "Keep the values apart, for instance as tuples."),
        ("adds-the-columns", share_of(lambda n: np.mean(n == 1), lambda table, on:
                                      [sum(key) for key in records(table, on)]),
         "You add the columns up, so that ZIP 3 with day 5 looks like ZIP 5 with day 3."),
        ("neighbouring-rows-only", not_sorted,
         "You compare each record with the rows beside it. The others with the same values may "
         "stand anywhere: sort first, or count."),
    ),
    hints=(
        "Give each record a key, the tuple of its values in the columns `on`. How many records "
        "have each key?",
        "np.unique(array, axis=0, return_counts=True) counts the different rows of an array; "
        "np.column_stack puts columns side by side. Count those that occur once.",
    ),
    lesson="Nobody has to be alone in any single column. And this is about the table: whoever is "
           "alone in it may have doubles in the population that it was drawn from.",
)


# -------------------------------------------------------------------------------------------- 6.2

def expected_alone(sizes, shares, days):
    alone = [shares @ (1 - shares / days) ** (size - 1) for size in sizes]
    return sizes @ np.array(alone) / sizes.sum()


def expected_alone_by_log(sizes, shares, days):
    with np.errstate(divide="ignore", invalid="ignore"):
        others = np.outer(sizes - 1, np.log1p(-shares / days))
    others[sizes == 1] = 0  # 0 times minus infinity
    return np.average(np.exp(others) @ shares, weights=sizes)


def expected_alone_by_cells(sizes, shares, days):
    """The expected number of cells that hold one person, over the number of people."""
    alone = people = 0
    for size in sizes.tolist():
        for share in shares.tolist():
            alone += days * stats.binom(size, share / days).pmf(1)
        people += size
    return alone / people


def spread(sizes, alone):
    """The share of all people, from that of each ZIP code."""
    return np.asarray(sizes) @ np.asarray(alone, float) / np.sum(sizes)


def alone_with(one, over=spread):
    """A wrong answer: one(N, shares, days) for a ZIP code, and how ZIP codes are put together."""
    return lambda sizes, shares, days: over(sizes, [one(int(n), shares, days) for n in sizes])


def alone_in(n, shares, days):
    return shares @ (1 - shares / days) ** (n - 1)


def expected_cases(rng):
    cases = [{"sizes": np.array([2]), "shares": np.array([0.5, 0.5]), "days": 1},
             {"sizes": np.array([9330]), "shares": np.array([1.0]), "days": 56_940},
             {"sizes": np.array([1, 3, 700]), "shares": np.array([0.7, 0.0, 0.3]), "days": 12}]
    for days in (365.25, 365.25, 12, 1, 365):
        sizes = np.rint(np.exp(rng.uniform(2, 9, 6))).astype(np.int64)
        cases.append({"sizes": sizes, "shares": rng.dirichlet(2 * np.ones(8)), "days": days})
    return cases


EXPECTED = Exercise(
    "6.2", "How many to expect", 2, function="expected_alone", right=expected_alone,
    others=(expected_alone_by_log, expected_alone_by_cells),
    parts=(Exact(expected_cases),),
    mistakes=listed(
        ("counts-herself", alone_with(lambda n, s, d: s @ (1 - s / d) ** n),
         "Your exponent is the number of people in the ZIP code. She is one of them, and only the "
         "other N - 1 can spoil it: in a ZIP code of one person everybody is alone."),
        ("groups-not-weighted", alone_with(lambda n, s, d: np.mean((1 - s / d) ** (n - 1))),
         "You average over the groups as if each held as many people. A person is in group g with "
         "chance shares[g]: weigh by it, or the few who are 100 years old count as much as "
         "the many who are 40."),
        ("weights-of-a-day", alone_with(lambda n, s, d: (s / d) @ (1 - s / d) ** (n - 1)),
         "Your weights add up to 1/days. The chance of one cell is shares/days, but each group has "
         "`days` such cells, so its weight is its share."),
        ("days-forgotten", alone_with(lambda n, s, d: s @ (1 - s) ** (n - 1)),
         "You did not split the groups: this is how many are alone with sex and *year* of birth. "
         "The chance that another person shares the day too is shares/days."),
        ("days-written-in", alone_with(lambda n, s, d: alone_in(n, s, 365.25)),
         "You wrote 365.25 into the function. `days` may be 12 (months) or 1 (years)."),
        ("days-cut-to-whole", alone_with(lambda n, s, d: alone_in(n, s, int(d))),
         "You rounded 365.25 down. Take `days` as it is given."),
        ("groups-all-alike", alone_with(lambda n, s, d: (1 - 1 / len(s) / d) ** (n - 1)),
         "You took all cells to be equally likely. There are more people of 40 than of 90, and "
         "the crowded cells decide: use the shares."),
        ("zip-codes-not-weighted", alone_with(alone_in, lambda sizes, alone: np.mean(alone)),
         "You average over ZIP codes. Most of them are small and hold few people, who are often "
         "alone; the question is about people, so weigh each ZIP code by its size."),
        ("average-size-first", lambda sizes, shares, days:
         alone_in(np.mean(sizes), shares, days),
         "You put the average size into the formula. It bends: what is alone at the average size "
         "is not the average of what is alone. Compute for each ZIP code, then average."),
        ("one-big-zip", lambda sizes, shares, days: alone_in(np.sum(sizes), shares, days),
         "You put everybody into one ZIP code. Only people of her own ZIP code can share hers."),
        ("exponential", alone_with(lambda n, s, d: s @ np.exp(-n * s / d)),
         "This is the approximation e^(-N p). It is good for large ZIP codes, but wrong for small "
         "ones: with one person it says that she may not be alone. Use the power."),
        ("count-not-share", alone_with(alone_in, lambda sizes, alone:
                                      np.sum(sizes * np.array(alone))),
         "This is the expected number of people who are alone. Divide by how many there are."),
        ("not-alone", lambda **case: 1 - expected_alone(**case),
         "This is the share of those who are not alone. Take it from 1."),
    ),
    hints=(
        "Take one person, of group g. The chance that another one of her ZIP code has the same "
        "group and day is shares[g] / days. How many others are there, and what is the chance "
        "that none of them does?",
        "Each of the N - 1 others misses her cell with chance 1 - shares[g]/days, independently. "
        "Average over her group (weights: the shares), then over ZIP codes (weights: the people).",
    ),
    lesson="With the census of 2010 this formula gives 0.64 for the birth date, 0.04 for the month "
           "and 0.002 for the year (see the afterword). Golle (2006) has 63% for the birth date, "
           "with the census of 2000.",
)


# -------------------------------------------------------------------------------------------- 6.3

def called_unique(sizes, band_shares, band_years):
    held = np.outer(sizes, band_shares)
    fits = held <= 2 * 365 * band_years
    return np.sum(held * fits) / np.sum(sizes)


def called_unique_loop(sizes, band_shares, band_years):
    unique = everybody = 0.0
    for size in sizes.tolist():
        for share, years in zip(band_shares.tolist(), band_years.tolist(), strict=True):
            everybody += size * share
            if size * share <= 730 * years:
                unique += size * share
    return unique / everybody


def called_unique_by_band(sizes, band_shares, band_years):
    weights = sizes / sizes.sum()
    per_band = [weights[size_fits].sum() for size_fits in
                (sizes * share <= 2 * (365 * years)
                 for share, years in zip(band_shares, band_years, strict=True))]
    return band_shares @ np.array(per_band)


def pigeonholes(counted=lambda held, holes, sizes: np.sum(held * (held <= holes)) / np.sum(sizes),
                holes=lambda years: 730 * years):
    """A wrong answer: counted(held, holes, sizes), or another number of pigeonholes."""
    return lambda sizes, band_shares, band_years: counted(
        np.outer(sizes, band_shares), holes(np.asarray(band_years)), sizes)


def called_cases(rng):
    shares, years = np.array([0.25, 0.25, 0.5]), np.array([5, 5, 20])
    cases = [{"sizes": np.array([14_599, 14_600, 14_601, 29_204, 40_000]), "band_shares": shares,
              "band_years": years},
             {"sizes": np.array([400]), "band_shares": shares, "band_years": years}]
    for bands in (3, 5, 5):
        shares = rng.dirichlet(4 * np.ones(bands))
        cases.append({"sizes": np.rint(np.exp(rng.uniform(7, 11.3, 60))).astype(np.int64),
                      "band_shares": shares, "band_years": rng.integers(3, 25, bands)})
    return cases


CALLED = Exercise(
    "6.3", "The pigeonhole rule", 2, function="called_unique", right=called_unique,
    others=(called_unique_loop, called_unique_by_band),
    parts=(Exact(called_cases, proof="the shares agree, also where a band is just full"),),
    mistakes=listed(
        ("just-full-left-out", pigeonholes(lambda held, holes, sizes:
                                           np.sum(held * (held < holes)) / np.sum(sizes)),
         "You leave out bands that are just full. By the rule as many people as pigeonholes still "
         "count as unique: at most, not fewer than."),
        ("sexes-forgotten", pigeonholes(holes=lambda years: 365 * years),
         "You have one pigeonhole for each day. A day has two, one for each sex."),
        ("years-forgotten", pigeonholes(holes=lambda years: 730 + 0 * years),
         "You have the pigeonholes of one year. A band of 5 years has five times as many."),
        ("leap-days", pigeonholes(holes=lambda years: 730.5 * years),
         "You counted leap days (365.25 or 366 days a year). The rule of this exercise has 365."),
        ("months", pigeonholes(holes=lambda years: 24 * years),
         "You have a pigeonhole for each month. The rule is about birth *dates*: 365 a year."),
        ("whole-zip", lambda sizes, band_shares, band_years:
         np.sum(sizes * (sizes <= 730 * np.sum(band_years))) / np.sum(sizes),
         "You compare the whole ZIP code with all its pigeonholes. The rule looks at each age band "
         "by itself: the young may be too many where the old are few."),
        ("all-or-nothing", lambda sizes, band_shares, band_years: np.sum(
            sizes * np.all(np.outer(sizes, band_shares) <= 730 * band_years, axis=1))
         / np.sum(sizes),
         "You count a ZIP code only if all its bands fit. The rule counts each band by itself."),
        ("fills-the-holes", pigeonholes(lambda held, holes, sizes:
                                        np.sum(np.minimum(held, holes)) / np.sum(sizes)),
         "In a band that is too full you count as many people as pigeonholes. The rule counts "
         "nobody there: with more people than holes, some must share."),
        ("bands-not-people", pigeonholes(lambda held, holes, sizes: np.mean(held <= holes)),
         "You give the share of bands. Count the people in them."),
        ("zip-codes-not-weighted", lambda sizes, band_shares, band_years: np.mean(
            (np.outer(sizes, band_shares) <= 730 * band_years) @ band_shares),
         "You average over ZIP codes. The question is about people: large ZIP codes hold more of "
         "them."),
        ("too-full", pigeonholes(lambda held, holes, sizes:
                                 np.sum(held * (held > holes)) / np.sum(sizes)),
         "These are the people in bands that are too full. The rule calls the others unique."),
        ("expects", pigeonholes(lambda held, holes, sizes:
                                np.sum(held * (1 - 1 / holes) ** (held - 1)) / np.sum(sizes)),
         "You computed how many to expect alone, as in 6.2. That is the better question, but here "
         "the rule is asked for, which counts all or nobody in a band."),
        ("one-big-zip", lambda sizes, band_shares, band_years:
         called_unique(np.array([np.sum(sizes)]), band_shares, band_years),
         "You put everybody into one ZIP code. The bands of each ZIP code count by themselves."),
        ("count-not-share", pigeonholes(lambda held, holes, sizes: np.sum(held * (held <= holes))),
         "This is a number of people. Divide by how many there are."),
    ),
    hints=(
        "How many people are in each band of each ZIP code? np.outer(sizes, band_shares) says it. "
        "How many pigeonholes has the band?",
        "A band of Y years has 2 * 365 * Y pigeonholes. Add up the people of all bands that hold "
        "at most so many, and divide by all people.",
    ),
    lesson="The rule asks whether people could all be different, not whether they are. In a band "
           "that is just full, with all days and both sexes alike, only about 1/e of the people "
           "are expected to be alone (6.2), and the rule counts them all.",
)


# -------------------------------------------------------------------------------------------- 6.4

def certain_links(left, right, on):
    here, there = records(left, on), records(right, on)
    times, others = Counter(here), Counter(there)
    row = {key: j for j, key in enumerate(there)}
    links = [(i, row[key]) for i, key in enumerate(here) if times[key] == others[key] == 1]
    return np.array(links, dtype=int).reshape(-1, 2)


def certain_links_unique(left, right, on):
    tables = [np.column_stack([table[name] for name in on]) for table in (left, right)]
    codes = np.unique(np.concatenate(tables), axis=0, return_inverse=True)[1].ravel()
    once = []
    for side in np.split(codes, [len(tables[0])]):
        values, rows, counts = np.unique(side, return_index=True, return_counts=True)
        once.append((values[counts == 1], rows[counts == 1]))
    (a, rows), (b, others) = once
    _, i, j = np.intersect1d(a, b, return_indices=True)
    return np.column_stack([rows[i], others[j]])


def certain_links_afterwards(left, right, on):
    """All pairs that agree; then those whose two records are in no other pair."""
    equal = np.all([left[name][:, None] == right[name] for name in on], axis=0)
    alone = (equal.sum(axis=1) == 1)[:, None] & (equal.sum(axis=0) == 1)
    return np.argwhere(equal & alone).tolist()


def all_pairs(left, right, on):
    there = defaultdict(list)
    for j, key in enumerate(records(right, on)):
        there[key].append(j)
    return [(i, j) for i, key in enumerate(records(left, on)) for j in there[key]]


def links_if(keep):
    """Wrong links: the pairs (i, j) that agree, with keep(records like i, records like j)."""
    def wrong(left, right, on):
        here, there = (crowds(records(table, on)) for table in (left, right))
        pairs = [pair for pair in all_pairs(left, right, on) if keep(here[pair[0]], there[pair[1]])]
        return np.array(pairs, dtype=int).reshape(-1, 2)
    return wrong


def looked_up(place):
    """One right row for each left record: the first or the last that agrees."""
    def wrong(left, right, on):
        found = defaultdict(list)
        for i, j in all_pairs(left, right, on):
            found[i].append(j)
        return np.array([(i, js[place]) for i, js in found.items()], dtype=int).reshape(-1, 2)
    return wrong


def first_of_each(left, right, on):
    here, there = ({key: i for i, key in reversed(list(enumerate(records(table, on))))}
                   for table in (left, right))
    links = [(i, there[key]) for key, i in here.items() if key in there]
    return np.array(sorted(links), dtype=int).reshape(-1, 2)


def none_is_zero(left, right, on):
    here, there = (records(table, on) for table in (left, right))
    alone = [i for i, times in enumerate(crowds(here)) if times == 1]
    return np.array([(i, there.index(here[i]) if here[i] in there else 0) for i in alone],
                    dtype=int).reshape(-1, 2)


def rows_of_what_was_left(left, right, on):
    once = [np.cumsum(crowds(records(table, on)) == 1) - 1 for table in (left, right)]
    links = certain_links(left, right, on)
    return np.column_stack([once[0][links[:, 0]], once[1][links[:, 1]]])


def links_glued(left, right, on):
    keys = [{"all": np.array(glued(table, on))} for table in (left, right)]
    return certain_links(*keys, ["all"])


def in_order(links):
    """Links in the order of their rows, whatever order they came in."""
    links = np.asarray(links)
    return links[np.lexsort(links.T[::-1])] if links.ndim == 2 and links.size else links


def link_cases(rng):
    trap = ({"zip": np.array([1, 11, 7, 8]), "birth": np.array([12, 2, 5, 5])},
            {"zip": np.array([7, 8, 1, 8]), "birth": np.array([5, 5, 12, 5])})
    cases = [{"left": trap[0], "right": trap[1], "on": ["zip", "birth"]}]
    for on, births, patients in ((["zip", "birth", "sex"], 25, 60), (["zip", "birth"], 12, 60),
                                 (["birth", "sex"], 50, 130)):  # the longer table is on either side
        sizes = {"zips": 6, "births": births}
        cases.append({"left": synthetic_table(rng, patients, **sizes, diagnosis=5),
                      "right": synthetic_table(rng, 90, **sizes, voter=500), "on": on})
    turned = {name: values[::-1] for name, values in wide_table().items()}
    for on in (["zip", "birth"], ["birth", "zip"]):
        cases.append({"left": wide_table(), "right": turned, "on": on})
    apart = synthetic_table(rng, 5, zips=2, births=9)
    return [*cases, {"left": apart | {"zip": apart["zip"] + 100}, "right": apart,
                     "on": ["birth", "zip"]}]


LINKS = Exercise(
    "6.4", "The join", 2, function="certain_links", right=certain_links,
    others=(certain_links_unique, certain_links_afterwards),
    parts=(Exact(link_cases, tidy=in_order,
                 proof="the links agree where people are alone, in pairs or missing"),),
    mistakes=listed(
        ("all-pairs", all_pairs,
         "You claim every pair that agrees. If two voters share ZIP code, birth date and sex, one "
         "patient gets two names, and at most one of them is right. Claim only what is alone on "
         "both sides."),
        ("alone-on-the-left-only", links_if(lambda here, there: here == 1),
         "You ask that the record be alone in the left table only. If two on the right agree with "
         "it, nothing says which of them it is."),
        ("alone-on-the-right-only", links_if(lambda here, there: there == 1),
         "You ask that the record be alone in the right table only. Then two patients may get the "
         "same name."),
        ("alone-on-one-side", links_if(lambda here, there: here == 1 or there == 1),
         "You ask for one side or the other. Both records of a link have to be alone, each in its "
         "own table."),
        ("first-that-agrees", looked_up(0),
         "You take the first that agrees, as a search does. Where several agree, the attacker "
         "cannot know which one it is, and claims nothing."),
        ("last-that-agrees", looked_up(-1),
         "You take the last that agrees: a dict keeps the last row of equal keys. Where several "
         "agree, claim nothing."),
        ("first-of-each", first_of_each,
         "You keep the first record of each key (np.unique and np.intersect1d do that), also of "
         "keys that occur several times. Those have to go altogether."),
        ("none-is-row-0", none_is_zero,
         "Records with no partner are linked to row 0: argmax of nothing but False is 0. Ask "
         "first whether there is any that agrees."),
        ("first-column-only", lambda left, right, on: certain_links(left, right, on[:1]),
         "You compare only the first column of `on`. All of them have to agree."),
        ("glued-text", links_glued,
         "Nearly: you glue the values together as text, and then 1 and 12 look like 11 and 2. "
         "Keep the values apart, for instance as tuples."),
        ("sides-swapped", lambda left, right, on: certain_links(left, right, on)[:, ::-1],
         "Left and right have changed places: first the row of the left table."),
        ("two-rows-not-pairs", lambda left, right, on: certain_links(left, right, on).T,
         "You return two rows, one for each table. Give a row for each link: np.column_stack puts "
         "two lists side by side."),
        ("rows-of-what-was-left", rows_of_what_was_left,
         "Your row numbers count within the records that are alone. Give those of the tables as "
         "they came, so that the diagnosis and the name can be looked up."),
    ),
    hints=(
        "Give each record a key, a tuple. A link needs a key that occurs once on the left and "
        "once on the right. Counter(keys) counts them.",
        "A dict from key to row number finds the partner on the right. Go through the left with "
        "enumerate, and keep a pair only where both counters say 1.",
    ),
    lesson="The function knows only that both records are alone in their tables. How often they "
           "are one person comes next.",
)


# -------------------------------------------------------------------------------------------- 6.5

def claimed_and_right(means, h, v):
    nobody_else = np.exp(-means * (h + v - h * v))
    right = means * h * v * nobody_else
    wrong = means * h * (1 - v) * means * v * (1 - h) * nobody_else
    return np.sum(right + wrong), np.sum(right)


def claimed_and_right_by_poisson(means, h, v):
    both, left, right = (stats.poisson(means * share)
                         for share in (h * v, h * (1 - v), (1 - h) * v))
    same = both.pmf(1) * left.pmf(0) * right.pmf(0)
    other = both.pmf(0) * left.pmf(1) * right.pmf(1)
    return [float(np.sum(same + other)), float(np.sum(same))]


def claimed_and_right_by_people(means, h, v):
    """Over all numbers of people in a cell, who are in neither table with chance (1-h)(1-v)."""
    n, neither = np.arange(80), (1 - h) * (1 - v)
    chances = stats.poisson(means[:, None]).pmf(n)
    right = n * h * v * neither ** np.maximum(n - 1, 0)
    wrong = n * (n - 1) * h * (1 - v) * v * (1 - h) * neither ** np.maximum(n - 2, 0)
    return np.array([np.sum(chances * (right + wrong)), np.sum(chances * right)])


def claims_with(*, none=lambda m, h, v: np.exp(-m * (h + v - h * v)),
                right=lambda m, h, v: m * h * v,
                wrong=lambda m, h, v: m**2 * h * (1 - v) * v * (1 - h), give=None):
    """A wrong answer: right(...) and wrong(...) times none(...), the chance of nobody else."""
    def answer(means, h, v):
        good = np.sum(right(means, h, v) * none(means, h, v))
        bad = np.sum(wrong(means, h, v) * none(means, h, v))
        return give(good, bad, len(means)) if give else (good + bad, good)
    return answer


def averaged_first(means, h, v):
    claimed, right = claimed_and_right(np.array([np.mean(means)]), h, v)
    return len(means) * claimed, len(means) * right


def tables_unrelated(means, h, v):
    claimed = np.sum(stats.poisson(means * h).pmf(1) * stats.poisson(means * v).pmf(1))
    return claimed, claimed_and_right(means, h, v)[1]


def claim_cases(rng):
    cases = [{"means": np.array([0.5]), "h": 0.1, "v": 0.6},
             {"means": np.array([2.0, 0.0, 0.3]), "h": 1.0, "v": 0.25}]
    for top in (0.5, 2.0, 4.0):
        cases.append({"means": rng.uniform(0.1, top, 9), "h": rng.uniform(0.05, 0.4),
                      "v": rng.uniform(0.4, 0.9)})
    return cases


CLAIMS = Exercise(
    "6.5", "How often is a link right?", 2, function="claimed_and_right", right=claimed_and_right,
    others=(claimed_and_right_by_poisson, claimed_and_right_by_people),
    parts=(Exact(claim_cases, proof="both numbers agree, in full cells and in empty ones"),),
    mistakes=listed(
        ("both-counted-twice", claims_with(none=lambda m, h, v: np.exp(-m * (h + v))),
         "Your exponential is e^(-m(h + v)): those in both tables are counted twice. The share in "
         "at least one of them is h + v - hv."),
        ("alone-in-the-population", claims_with(none=lambda m, h, v: np.exp(-m)),
         "Your exponential asks that nobody else be in the cell at all. People who are in neither "
         "table disturb nobody: they are why a link can be wrong without anybody noticing."),
        ("nobody-else-forgotten", claims_with(none=lambda m, h, v: np.ones(len(m))),
         "You forgot that nobody else may be there. A second patient or voter of the same cell "
         "spoils the link: the three Poisson numbers must all be right, also those that are 0."),
        ("only-both-counted", claims_with(none=lambda m, h, v: np.exp(-m * h * v)),
         "Your exponential looks only at those in both tables. Patients who are no voters and "
         "voters who are no patients would spoil a link too."),
        ("two-people-forgotten", claims_with(wrong=lambda m, h, v: 0 * m),
         "You claim only links that are right. There is a second way to have one record on each "
         "side: a patient who is no voter, and a voter who is no patient."),
        ("others-may-be-in-both", claims_with(wrong=lambda m, h, v: m**2 * h * v),
         "In your wrong links the patient may be on the list as well, and the voter in hospital. "
         "Then there would be two records on a side: multiply by (1 - h)(1 - v)."),
        ("mean-not-squared", claims_with(wrong=lambda m, h, v: m * h * (1 - v) * v * (1 - h)),
         "A wrong link needs two people, so the mean m enters twice, once for each."),
        ("pairs-halved", claims_with(wrong=lambda m, h, v: m**2 / 2 * h * (1 - v) * v * (1 - h)),
         "Half of the wrong links are missing. m^2/2 counts pairs of people in no order; but "
         "either of the two may be the patient."),
        ("tables-unrelated", tables_unrelated,
         "You multiplied the chances of one patient and of one voter, as if the two numbers had "
         "nothing to do with each other. People in both tables raise them together: split the "
         "cell into the three kinds first."),
        ("wrong-not-claimed", claims_with(give=lambda good, bad, cells: (bad, good)),
         "Your first number holds only the wrong links. Claimed are all, right or wrong."),
        ("precision", claims_with(give=lambda good, bad, cells: (good + bad, good / (good + bad))),
         "Your second number is the share of right links. Return how many there are; the share is "
         "then second over first."),
        ("swapped", claims_with(give=lambda good, bad, cells: (good, good + bad)),
         "The two numbers have changed places: first the claimed links, then the right ones."),
        ("mean-over-cells", claims_with(give=lambda good, bad, cells:
                                        ((good + bad) / cells, good / cells)),
         "These are means over the cells. Add them up: expected numbers of links in all."),
        ("averages-the-means", averaged_first,
         "You put the mean of `means` into the formula. It bends: compute for each cell, then "
         "add up."),
    ),
    hints=(
        "Split the people of a cell into three kinds: in both tables, patients only, voters only. "
        "Their numbers are independent Poisson with means m h v, m h (1 - v) and m (1 - h) v. "
        "Which triples of numbers give one record on each side?",
        "(1, 0, 0) is a right link, (0, 1, 1) a wrong one. The chance of a triple is a product of "
        "three Poisson chances: e^(-mean) for 0, mean e^(-mean) for 1. What do the three "
        "exponentials make together?",
    ),
    lesson="In one cell the share of right links is 1 / (1 + m (1 - h)(1 - v)): what lowers it are "
           "people in neither table. Alone in two samples is not alone in the population.",
)


# -------------------------------------------------------------------------------------------- 6.6

def match_scores(stars, days, clues, star_scale, day_scale):
    films, known_stars, known_days = clues.T
    rated = stars[:, films] > 0
    near = (np.exp(-np.abs(stars[:, films] - known_stars) / star_scale)
            + np.exp(-np.abs(days[:, films] - known_days) / day_scale))
    return (rated * near) @ (1 / np.log(rated.sum(axis=0)))


def match_scores_loop(stars, days, clues, star_scale, day_scale):
    scores = []
    for member in range(len(stars)):
        score = 0.0
        for film, star, day in clues.tolist():
            if stars[member, film] > 0:
                support = sum(1 for other in stars[:, film].tolist() if other)
                star_off, day_off = abs(stars[member, film] - star), abs(days[member, film] - day)
                score += (math.exp(-star_off / star_scale) + math.exp(-day_off / day_scale)
                          ) / math.log(support)
        scores.append(score)
    return scores


def match_scores_by_clue(stars, days, clues, star_scale, day_scale):
    scores = np.zeros(len(stars))
    for film, star, day in clues:
        who = np.flatnonzero(stars[:, film])
        for given, known, scale in ((stars, star, star_scale), (days, day, day_scale)):
            off = given[who, film] - known
            scores[who] += np.minimum(np.exp(off / scale), np.exp(-off / scale)
                                      ) / np.log(len(who))
    return scores


def scores_with(*, near=None, weight=lambda support, stars, films: 1 / np.log(support),
                rated=lambda stars, films: stars[:, films] > 0,
                collect=lambda terms: np.sum(terms, axis=1), films=lambda clues: clues[:, 0]):
    """Wrong scores: one of their ingredients is another one."""
    def wrong(stars, days, clues, star_scale, day_scale):
        at = films(clues)
        a = (stars[:, at] - clues[:, 1]) / star_scale
        b = (days[:, at] - clues[:, 2]) / day_scale
        match = (near or (lambda a, b: np.exp(-np.abs(a)) + np.exp(-np.abs(b))))(a, b)
        support = np.sum(stars[:, at] > 0, axis=0)
        return collect(rated(stars, at) * match * weight(support, stars, at))
    return wrong


def scales_swapped(stars, days, clues, star_scale, day_scale):
    return match_scores(stars, days, clues, day_scale, star_scale)


def score_cases(rng):
    stars = np.array([[5, 0, 1], [4, 2, 0], [0, 3, 5], [1, 3, 4]])
    days = np.array([[10, 0, 300], [0, 90, 0], [0, 95, 20], [700, 9, 0]])  # two ratings on day 0
    cases = [{"stars": stars, "days": days, "clues": np.array([[0, 5, 13], [2, 1, 280]])}]
    for members, clues in ((12, 4), (20, 6)):
        stars = rng.integers(1, 6, (members, 15)) * (rng.random((members, 15)) < 0.5)
        stars[:4] = np.maximum(stars[:4], 1)  # each film has four ratings or more
        days = rng.integers(1, 2000, (members, 15)) * (stars > 0)
        films = rng.permutation(15)[:clues]
        days[:, films[0]] = np.minimum(days[:, films[0]], 40)  # where a 0 would look near
        days[1] = 0  # the first day has number 0
        near = np.abs(days[0, films] + rng.integers(-14, 15, clues))
        cases.append({"stars": stars, "days": days, "clues": np.column_stack(
            [films, rng.integers(1, 6, clues), near])})
    scales = [(1.5, 30.0), (0.8, 14.0), (2.5, 60.0)]
    return [case | {"star_scale": scale[0], "day_scale": scale[1]}
            for case, scale in zip(cases, scales, strict=True)]


SCORES = Exercise(
    "6.6", "Who rated like that?", 3, function="match_scores", right=match_scores,
    others=(match_scores_loop, match_scores_by_clue),
    parts=(Exact(score_cases, proof="the scores of all members agree"),),
    mistakes=listed(
        ("unrated-counts", scores_with(rated=lambda stars, films: 1),
         "You score films that a member never rated, as if 0 stars on day 0 were a rating. She "
         "gets a term only for films that she rated."),
        ("days-forgotten", scores_with(near=lambda a, b: np.exp(-np.abs(a))),
         "The days are missing. They are what gives people away: few rate the same film in the "
         "same week."),
        ("stars-forgotten", scores_with(near=lambda a, b: np.exp(-np.abs(b))),
         "The stars are missing: each clue gives two terms, one for stars and one for days."),
        ("product", scores_with(near=lambda a, b: np.exp(-np.abs(a) - np.abs(b))),
         "You multiplied the two kernels. Then one wrong date makes a clue worthless; in the sum "
         "the stars still count."),
        ("not-absolute", scores_with(near=lambda a, b: np.exp(-a) + np.exp(-b)),
         "You left out the absolute values: whoever rated far below or long before the clue then "
         "gets a huge score."),
        ("squared", scores_with(near=lambda a, b: np.exp(-(a**2)) + np.exp(-(b**2))),
         "You squared the differences. The kernels of this exercise fall with the difference "
         "itself, and forgive a large one more easily."),
        ("scales-swapped", scales_swapped,
         "The scales have changed places: stars by star_scale, days by day_scale."),
        ("weights-forgotten", scores_with(weight=lambda support, stars, films: 1),
         "All clues count the same. A film that few have rated says more: weigh by one over the "
         "logarithm of how many rated it."),
        ("weight-upside-down", scores_with(weight=lambda support, stars, films: np.log(support)),
         "Your weights grow with the number of ratings. It should be one over the logarithm: rare "
         "films tell more."),
        ("weight-without-logarithm", scores_with(weight=lambda support, stars, films: 1 / support),
         "Your weights are one over the number of ratings. Take one over its logarithm; otherwise "
         "the rarest film decides nearly alone."),
        ("logarithm-to-another-base",
         scores_with(weight=lambda support, stars, films: 1 / np.log2(support)),
         "Your logarithm is to base 2. Ranks stay the same, but take the natural one, np.log."),
        ("adds-up-stars", scores_with(weight=lambda support, stars, films:
                                      1 / np.log(stars[:, films].sum(axis=0))),
         "Your support is the sum of the stars. Count how many members rated the film."),
        ("day-0-is-no-rating", lambda stars, days, **case:
         match_scores(stars * (days > 0), days, **case),
         "You take day 0 for \"not rated\", but it is a day like others: `stars` says who rated."),
        ("stars-and-days-of-clues-swapped", lambda clues, **case:
         match_scores(clues=clues[:, [0, 2, 1]], **case),
         "You take the days of the clues for stars. The columns are film, stars, day."),
        ("mean-over-clues", scores_with(collect=lambda terms: np.mean(terms, axis=1)),
         "You took the mean over the clues. The score is their sum."),
        ("clue-number-for-film", scores_with(films=lambda clues: np.arange(len(clues))),
         "You look at films 0, 1, 2 and so on. Which film a clue is about stands in its first "
         "column."),
    ),
    hints=(
        "stars[:, films] has a row for each member and a column for each clue. Compare it with the "
        "stars of the clues; NumPy repeats these for each row.",
        "Where stars is 0 there is no rating, so no term. The support of a film is "
        "np.sum(stars > 0, axis=0), and its weight 1 / np.log(support).",
    ),
    lesson="That is Narayanan and Shmatikov's Scoreboard-RH. A few wrong clues do little harm, "
           "because a sum forgives them.",
)


# -------------------------------------------------------------------------------------------- 6.7

def name_or_nobody(scores, threshold):
    ranked = np.sort(scores, axis=1)
    gap = ranked[:, -1] - ranked[:, -2]
    named = (gap > 0) & (gap >= threshold * np.std(scores, axis=1))
    return np.where(named, np.argmax(scores, axis=1), -1)


def name_or_nobody_loop(scores, threshold):
    named = []
    for row in scores.tolist():
        order = sorted(range(len(row)), key=row.__getitem__, reverse=True)
        mean = sum(row) / len(row)
        spread = math.sqrt(sum((x - mean) ** 2 for x in row) / len(row))
        gap = row[order[0]] - row[order[1]]
        named.append(order[0] if gap > 0 and gap / spread >= threshold else -1)
    return named


def name_or_nobody_partition(scores, threshold):
    second, first = np.partition(scores, -2, axis=1)[:, -2:].T
    with np.errstate(all="ignore"):
        eccentricity = (first - second) / np.std(scores, axis=1)
    best = scores.argmax(axis=1)
    best[~(eccentricity >= threshold)] = -1  # 0/0, where all are equal, is not above it
    return best


def naming(stand_out, *, reached=np.greater_equal, name=np.argmax, nobody=-1):
    """A wrong answer: stand_out(row, best, second), or another rule or name."""
    def wrong(scores, threshold):
        named = []
        for row in scores:
            second, best = np.sort(row)[-2:]
            enough = reached(stand_out(row, best, second), threshold)
            named.append(name(row) if enough else nobody)
        return np.array(named)
    return wrong


def by_std(row, best, second):
    return (best - second) / np.std(row) if best > second else 0.0


def second_different(row, best, second):
    different = np.unique(row)
    return (different[-1] - different[-2]) / np.std(row) if len(different) > 1 else 0.0


def one_spread(scores, threshold):
    ranked = np.sort(scores, axis=1)
    named = (ranked[:, -1] - ranked[:, -2]) / np.std(scores) >= threshold
    return np.where(named & (ranked[:, -1] > ranked[:, -2]), np.argmax(scores, axis=1), -1)


def without_the_best(row, best, second):
    others = np.delete(row, np.argmax(row))
    return (best - second) / np.std(others) if best > second else 0.0


def with_eccentricity(row, wanted):
    """A copy of a row with the best score moved so that its eccentricity is `wanted`."""
    row, place = row.copy(), np.argmax(row)
    low = np.sort(row)[-2]
    high = low + 1000 * np.ptp(row)
    for _ in range(60):
        row[place] = (low + high) / 2
        low, high = (row[place], high) if by_std(row, *np.sort(row)[:-3:-1]) < wanted else (
            low, row[place])
    return row


def naming_cases(rng):
    equal = [{"scores": np.array([[0.0, 2.0], [2.0, 0.0]]), "threshold": 2.0}]  # exactly reached
    odd = np.array([[3.0, 3.0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0.0],
                    [0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3], [0, 0, 0, 5, 0, 0, 0, 0.0]])
    cases = [*equal, {"scores": odd, "threshold": 1.5}]
    for threshold in (1.5, 0.9):
        factors = (0.4, 0.8, 0.93, 0.98, 0.995, 1.005, 1.01, 1.03, 1.1, 1.25, 1.6,
                   *rng.uniform(0.5, 1.4, 9))
        rows = np.exp(rng.normal(0, 0.5, (20, 12))) * (rng.random((20, 12)) < 0.8)
        rows[:, :4] += rng.uniform(0.05, 0.3, (20, 4))
        made = np.array([with_eccentricity(row, factor * threshold) for row, factor in
                         zip(rows * rng.uniform(0.2, 5, (20, 1)), factors, strict=True)])
        cases.append({"scores": rng.permutation(made), "threshold": threshold})
    return [*cases, {"scores": made - made.max(axis=1)[:, None] - 2, "threshold": threshold}]


NAMING = Exercise(
    "6.7", "The best, or nobody", 2, function="name_or_nobody", right=name_or_nobody,
    others=(name_or_nobody_loop, name_or_nobody_partition),
    parts=(Exact(naming_cases, proof="the names agree just above and just below the threshold"),),
    mistakes=listed(
        ("always-names", naming(lambda row, best, second: math.inf),
         "You always name the best. Somebody is always best, also if the one you look for is not "
         "in the data at all: below the threshold answer -1."),
        ("ratio", naming(lambda row, best, second: np.divide(best, second)),
         "You divide the best by the second best. Eccentricity is their difference, over the "
         "standard deviation of all the scores."),
        ("gap-alone", naming(lambda row, best, second: best - second),
         "You compare the gap itself with the threshold. How large a gap is depends on how far "
         "the scores are spread: divide by their standard deviation."),
        ("above-the-mean", naming(lambda row, best, second: (best - np.mean(row)) / np.std(row)
                                  if best > second else 0.0),
         "You measure how far the best stands above the mean. A second one may stand just as "
         "high: the gap is to the second best."),
        ("best-left-out", naming(without_the_best),
         "You left the best out of the standard deviation. Here all scores of the row are meant."),
        ("zeros-left-out", naming(lambda row, best, second: np.divide(
            best - second, np.std(row[row > 0]) if best > 0 else math.inf)),
         "You left members with a score of 0 out of the standard deviation. They are members too: "
         "all scores of the row are meant."),
        ("n-minus-1", naming(lambda row, best, second: (best - second) / np.std(row, ddof=1)
                             if best > second else 0.0),
         "You divided by n - 1 in the standard deviation. These are all the members, no sample: "
         "divide by n, as np.std does."),
        ("variance", naming(lambda row, best, second: (best - second) / np.var(row)
                            if best > second else 0.0),
         "You divided by the variance. The standard deviation is its root."),
        ("one-spread-for-all", one_spread,
         "You took one standard deviation over all rows. Each row has its own: axis=1."),
        ("tie-overlooked", naming(second_different),
         "You took the second best *different* score. If two share the best one, the gap is "
         "0 and nobody can be named."),
        ("above-not-at", naming(by_std, reached=np.greater),
         "You name only above the threshold; at the threshold itself the member is named too. "
         "(Adding something like 1e-12 to the spread does the same: treat a spread of 0 apart.)"),
        ("place-in-the-sorted-row", naming(by_std, name=lambda row: len(row) - 1),
         "You return the place in the sorted row, which is always the last. np.argmax of the row "
         "as it came says who it is."),
        ("score-not-member", naming(by_std, name=np.max),
         "You return the best score. Return whose it is, the column number."),
        ("nobody-is-0", naming(by_std, nobody=0),
         "You return 0 for nobody, but 0 is a member. Return -1."),
        ("turned-round", naming(by_std, reached=np.less),
         "You name where the best does not stand out, and keep silent where it does."),
    ),
    hints=(
        "np.sort(scores, axis=1)[:, -2:] holds the two best scores of each row; np.std(scores, "
        "axis=1) the spread of each row.",
        "Name np.argmax of the row where (best - second) >= threshold * std. Where all scores are "
        "equal, gap and std are 0: that must give -1 as well.",
    ),
    lesson="The threshold makes the attack keep silent more often. It does not say how often a "
           "name is wrong: for that, take the person out of the data and count who is named then.",
)


# -------------------------------------------------------------------------------------------- 6.8

def told_apart(traces, points, antennas, hours):
    who = defaultdict(set)
    for user, antenna, hour in traces.tolist():
        who[antenna // antennas, hour // hours].add(user)
    alone = [len(set.intersection(*(who[a // antennas, h // hours] for a, h in known))) == 1
             for known in points.tolist()]
    return np.mean(alone)


def told_apart_by_traces(traces, points, antennas, hours):
    """The set of points of each user; who holds all the known ones?"""
    merge = [antennas, hours]
    held = {user: set(map(tuple, traces[traces[:, 0] == user, 1:] // merge))
            for user in np.unique(traces[:, 0])}
    fits = [sum(set(map(tuple, known // merge)) <= have for have in held.values())
            for known in points]
    return fits.count(1) / len(fits)


def told_apart_by_matrix(traces, points, antennas, hours):
    user = np.unique(traces[:, 0], return_inverse=True)[1]
    cells = np.concatenate([traces[:, 1:], points.reshape(-1, 2)]) // [antennas, hours]
    code = np.unique(cells, axis=0, return_inverse=True)[1].ravel()
    seen = np.zeros((user.max() + 1, code.max() + 1), bool)
    seen[user, code[:len(user)]] = True
    known = code[len(user):].reshape(points.shape[:2])
    return float(np.mean(seen[:, known].all(axis=2).sum(axis=0) == 1))


def users_at(traces, cell):
    who = defaultdict(set)
    for user, antenna, hour in traces.tolist():
        who[cell(antenna, hour)].add(user)
    return who


def fits_with(*, there=None, here=None, combine=set.intersection, judge=lambda fits: fits == 1,
              keep=slice(None)):
    """A wrong share. there, here(antenna, hour, antennas, hours): the cell of a traced point and
    of a known one; combine(*sets): who fits; judge(how many): told apart or not.
    """
    def merged(a, h, antennas, hours):
        return a // antennas, h // hours

    def wrong(traces, points, antennas, hours):
        who = users_at(traces, lambda a, h: (there or merged)(a, h, antennas, hours))
        alone = []
        for known in points[:, keep].tolist():
            cells = [(here or there or merged)(a, h, antennas, hours) for a, h in known]
            alone.append(judge(len(combine(*(who.get(cell, set()) for cell in cells)))))
        return np.mean(alone)
    return wrong


def as_given(a, h, antennas, hours):
    return a, h


def antenna_and_hour_apart(traces, points, antennas, hours):
    at, when = (users_at(traces, cell) for cell in (lambda a, h: a // antennas,
                                                    lambda a, h: h // hours))
    return np.mean([len(set.intersection(*(at[a // antennas] & when[h // hours]
                                           for a, h in known))) == 1 for known in points.tolist()])


def records_not_users(traces, points, antennas, hours):
    """Counts matching records of each user, so that a point met twice counts for two."""
    alone, merge = [], [antennas, hours]
    for known in points // merge:
        match = (traces[:, None, 1:] // merge == known).all(axis=2).any(axis=1)
        alone.append(np.sum(np.bincount(traces[match, 0]) >= len(known)) == 1)
    return np.mean(alone)


def wants_different_points(traces, points, antennas, hours):
    """Asks for as many different points as were known before merging."""
    alone, merge = [], [antennas, hours]
    different = set(map(tuple, (traces // [1, *merge]).tolist()))
    for known in points // merge:
        cells = set(map(tuple, known.tolist()))
        met = Counter(user for user, *cell in different if tuple(cell) in cells)
        alone.append(sum(count == len(known) for count in met.values()) == 1)
    return np.mean(alone)


def some_point_alone(traces, points, antennas, hours):
    who = users_at(traces, lambda a, h: (a // antennas, h // hours))
    return np.mean([any(len(who[a // antennas, h // hours]) == 1 for a, h in known)
                    for known in points.tolist()])


def trace_cases(rng):
    # (known points, antennas and hours merged, users, antennas, hours): few enough users in some
    # cases that places alone, or hours alone, tell some of them apart.
    cases = [trace_case(rng, *sizes) for sizes in (
        (1, 1, 1, 8, 16, 16), (3, 1, 1, 8, 16, 16), (2, 1, 1, 60, 6, 60), (1, 1, 2, 30, 12, 24),
        (1, 2, 1, 30, 12, 24), (2, 2, 3, 24, 16, 60), (2, 3, 6, 24, 24, 96),
        (3, 1, 24, 40, 12, 240), (4, 4, 12, 40, 24, 240))]
    wide = np.concatenate([look_alikes(25, 31, 100, 168, 1000).T,  # codes that collide, and texts
                           look_alikes(30, 100)[::-1].T, [[1, 12], [11, 2]]])
    return [*cases, {"traces": np.column_stack([np.arange(len(wide)), wide]),
                     "points": wide[:, np.newaxis], "antennas": 1, "hours": 1}]


def trace_case(rng, known, antennas, hours, users, places, span):
    own = rng.integers(0, places, (users, 4))  # four antennas each
    user = np.repeat(np.arange(users), 12)
    traces = np.column_stack([user, own[user, rng.integers(0, 4, len(user))],
                              rng.integers(0, span, len(user))])
    traces += [0, 1, 1] if antennas * hours > 1 else 0  # cells begin at 0, not at the first record
    points = []
    while len(points) < 36:
        row = np.unique(traces[traces[:, 0] == rng.integers(users), 1:], axis=0)
        first = rng.integers(len(row))  # half of the tries are about points near each other
        order = np.arange(len(row)) if len(points) % 2 else rng.permutation(len(row))
        if first + known <= len(row):
            points.append(row[order[first:first + known]])
    again = traces[rng.integers(0, len(traces), len(traces) // 4)]  # some records stand twice
    traces = rng.permutation(np.concatenate([traces, again]))
    traces[:, 0] = rng.choice(3 * users, users, replace=False)[traces[:, 0]]  # numbers with gaps
    return {"traces": traces, "points": np.array(points), "antennas": antennas, "hours": hours}


TRACES = Exercise(
    "6.8", "Four points of a trace", 3, function="told_apart", right=told_apart,
    others=(told_apart_by_traces, told_apart_by_matrix),
    parts=(Exact(trace_cases, proof="the shares agree, with fine data and with merged data"),),
    mistakes=listed(
        ("not-merged", fits_with(there=as_given),
         "You did not merge anything. Divide antenna and hour by how many are merged into one, "
         "and drop the remainder."),
        ("traces-merged-only", fits_with(here=as_given),
         "You merged the traces but not the known points. Whoever looks a point up in coarse data "
         "has to make it coarse as well."),
        ("points-merged-only", fits_with(there=as_given, here=lambda a, h, antennas, hours:
                                         (a // antennas, h // hours)),
         "You merged the known points but not the traces. It is the released data that is made "
         "coarse; the points are only looked up in it."),
        ("merges-swapped", fits_with(there=lambda a, h, antennas, hours:
                                     (a // hours, h // antennas)),
         "You merged the antennas by `hours` and the hours by `antennas`."),
        ("rounds", fits_with(there=lambda a, h, antennas, hours:
                             (round(a / antennas), round(h / hours))),
         "You rounded to the nearest. Hours 0 to 5 are one cell, 6 to 11 the next: divide and "
         "drop the remainder, with //."),
        ("any-point", fits_with(combine=set.union),
         "You look for users who have *any* of the points. They must have all of them."),
        ("antenna-and-hour-apart", antenna_and_hour_apart,
         "You look for the antenna and the hour separately. A point is both at once: there, at "
         "that time."),
        ("hours-forgotten", fits_with(there=lambda a, h, antennas, hours: a // antennas),
         "You compare only places. A point is a place and an hour."),
        ("antennas-forgotten", fits_with(there=lambda a, h, antennas, hours: h // hours),
         "You compare only hours. A point is a place and an hour."),
        ("first-point-only", fits_with(keep=slice(0, 1)),
         "You look only at the first known point of each row."),
        ("some-point-alone", some_point_alone,
         "You ask whether one of the points is found with nobody else. Points that many people "
         "share can still be found together with one only."),
        ("records-not-users", records_not_users,
         "You count matching records. A user who was in a merged cell twice then seems to have two "
         "points: count each point of a user once."),
        ("asks-for-different-points", wants_different_points,
         "Two known points may become one when merged. You still ask for as many different ones as "
         "before, so not even their owner fits."),
        ("codes-collide", fits_with(there=lambda a, h, antennas, hours:
                                    24 * (a // antennas) + h // hours),
         "You made one number of antenna and hour, 24 antenna + hour, but hours go on beyond 24: "
         "antenna 0 at hour 30 looks like antenna 1 at hour 6. Keep them apart, as a tuple."),
        ("cells-from-the-first-record", lambda traces, points, **merged: told_apart(
            traces - [0, *traces.min(axis=0)[1:]], points - traces.min(axis=0)[1:], **merged),
         "Your cells begin at the first antenna and hour in the data. They begin at 0: hours 0 to "
         "5 are one cell, even if nobody was recorded before hour 3."),
        ("not-told-apart", fits_with(judge=lambda fits: fits != 1),
         "This is the share of those whom the points do not tell apart. Take it from 1."),
    ),
    hints=(
        "For each cell (antenna // antennas, hour // hours), who was there? A dict from cell to "
        "the set of users answers it. Who was in all the cells of a row of points?",
        "set.intersection(*sets) is the set of users who fit a row. The owner of the points is "
        "one of them; if she is the only one, she is told apart.",
    ),
    lesson="Merging makes each point say less, and some more points make up for it (see the "
           "afterword). Whoever lives or works with somebody knows more than four.",
)


# -------------------------------------------------------------------------------------------- 6.9

CLAIM = Exercise(
    "6.9", "Two statements about one table", 3,
    rubric=(
        "1 point: \"nobody\" or \"impossible\" is wrong, with a number: by ZIP code, month of "
        "birth and sex about 780 links are expected, 411 of them right, 0.3% of the patients; "
        "or: 0.29% of the adults, so 351 patients, are expected to be alone; or: whoever knows "
        "that somebody was a patient needs no list, and 16% of the patients are alone in the "
        "table. 1 point: the newspaper is wrong too. Naming somebody for 99% is not identifying "
        "99%: only about 60% of the patients are on the list, so at most so many names can be "
        "right; or: without a control (target taken out, or truth known) a rate of names says "
        "nothing. And 87% is a pigeonhole count for full birth dates (1990), where 63% are "
        "expected alone (Golle 2006, census of 2000); or: alone is not found. 1 point, for two "
        "proposals or facts: publish claimed and right links with their assumptions; a control; "
        "coarser data (by year 27 links, 16 right); fewer columns, or access under contract; "
        "the 369 wrong links hurt people too; coarsening promises nothing against other "
        "knowledge, differential privacy for statistics does."
    ),
)

EXERCISES = (ALONE, EXPECTED, CALLED, LINKS, CLAIMS, SCORES, NAMING, TRACES, CLAIM)
