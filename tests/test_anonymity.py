"""coursekit.anonymity against pycanon's stored values, brute force, and linear programming."""

import json
import math
import subprocess
import sys
from collections import Counter
from itertools import product
from pathlib import Path
from time import process_time

import numpy as np
import pytest
from scipy.optimize import linprog

from coursekit.anonymity import (
    Release,
    average_class_size,
    check_hierarchy,
    datafly,
    discernibility,
    equivalence_classes,
    full_domain,
    generalisation_loss,
    intervals,
    k_anonymity,
    l_diversity,
    minimal_generalisations,
    mondrian,
    prefixes,
    t_closeness,
    tables,
)
from coursekit.anonymity.lattice import _Lattice

STORED = json.loads(
    (Path(__file__).parent / "fixtures" / "pycanon.json").read_text(encoding="utf-8")
)
QI = "quasi-identifier"
ROLES = {
    "name": "identifier",
    "age": QI,
    "sex": QI,
    "race": QI,
    "ill": "sensitive",
    "note": "other",
}
HIERARCHIES = {
    "age": intervals(range(20, 60), widths=[5, 10, 20]),
    "sex": {"F": ("*",), "M": ("*",)},
    "race": {r: ("a-b" if r in "ab" else "c-d", "*") for r in "abcd"},
}
LOSSES = ("height", "generalisation", "discernibility")


def people(n, seed):
    rng = np.random.default_rng(seed)
    return {
        "name": np.array([f"person {i}" for i in range(n)]),
        "age": rng.integers(20, 60, n),
        "sex": np.array(["F", "M"])[rng.integers(0, 2, n)],
        "race": np.array(list("abcd"))[rng.choice(4, n, p=[0.6, 0.2, 0.15, 0.05])],
        "ill": np.array(["flu", "cold", "gout"])[rng.choice(3, n, p=[0.5, 0.3, 0.2])],
        "note": rng.random(n),
    }


def grouped(table, quasi, column):
    """The values of a column in each class, by a dict of tuples."""
    found = {}
    columns = [np.asarray(table[name]).tolist() for name in [*quasi, column]]
    for *key, value in zip(*columns, strict=True):
        found.setdefault(tuple(key), []).append(value)
    return list(found.values())


# pycanon


@pytest.mark.parametrize("case", STORED["cases"], ids=lambda c: f"{c['table']} {c['sensitive']}")
def test_measures_equal_pycanon(case):
    """Here pycanon takes a missing value for a value of its own, and number columns for ordered
    ones; of several sensitive columns the worst counts."""
    said, table = case["pycanon"], STORED["tables"][case["table"]]
    sensitive = dict.fromkeys(case["sensitive"], "sensitive")
    roles = {name: QI if name in STORED["quasi"] else "other" for name in table} | sensitive
    given = {"roles": roles, "missing": "category"}
    ordered = [name for name in sensitive if name == "wage"]
    assert k_anonymity(table, **given) == said["k"]
    assert l_diversity(table, **given) == said["distinct"]
    entropy = l_diversity(table, **given, kind="entropy")
    assert entropy == pytest.approx(said["entropy_exact"], abs=1e-9)
    assert t_closeness(table, **given, ordered=ordered) == pytest.approx(said["t"], abs=1e-9)


def test_pycanon_truncates_entropy_l():
    """Three equally frequent values have entropy l = 3; truncation after rounding makes it 2."""
    (case,) = [c for c in STORED["cases"] if (c["table"], len(c["sensitive"])) == ("even", 2)]
    table = STORED["tables"]["even"]
    roles = dict(zip(table, [QI, QI, QI, "sensitive", "sensitive"], strict=True))
    assert l_diversity(table, roles=roles, kind="entropy") == pytest.approx(3, abs=1e-12)
    assert case["pycanon"]["entropy"] == 2


def test_pycanon_sorts_the_wrong_way_for_recursive_diversity():
    """Its c compares the rarest value with the commonest ones: 1 where the definition needs more.

    Both are recomputed here from the definition with the counts in falling and in rising order.
    """
    disagreements = 0
    for case in STORED["cases"]:
        said_c, l_said = case["pycanon"]["recursive"]
        if len(case["sensitive"]) > 1 or said_c is None:
            continue
        table, name = STORED["tables"][case["table"]], case["sensitive"][0]
        needed = {True: 0, False: 0}
        for values in grouped(table, STORED["quasi"], name):
            for falling in needed:
                r = sorted(Counter(values).values(), reverse=falling)
                needed[falling] = max(needed[falling], math.floor(r[0] / sum(r[l_said - 1 :]) + 1))
        assert said_c == needed[False]
        roles = {column: QI if column in STORED["quasi"] else "other" for column in table}
        given = {"roles": roles | {name: "sensitive"}, "kind": "recursive", "missing": "category"}
        assert l_diversity(table, c=needed[True], **given) >= l_said
        if needed[True] > said_c:
            disagreements += 1
            assert l_diversity(table, c=said_c, **given) < l_said
    assert disagreements >= 6


# Measures by brute force


@pytest.mark.parametrize("seed", range(8))
def test_measures_by_brute_force(seed):
    table = people(60, seed)
    table["age"] = table["age"] // 20
    groups = grouped(table, ["age", "sex"], "ill")
    roles = ROLES | {"race": "other"}
    assert k_anonymity(table, roles=roles) == min(map(len, groups))
    assert l_diversity(table, roles=roles) == min(len(set(group)) for group in groups)
    shares = [np.array(list(Counter(group).values())) / len(group) for group in groups]
    entropy = min(math.exp(-(p * np.log(p)).sum()) for p in shares)
    found = l_diversity(table, roles=roles, kind="entropy")
    assert found == pytest.approx(entropy, rel=1e-12)
    for c in (0.4, 1, 1.5, 3, 10):
        least = min(_largest_l(sorted(Counter(g).values(), reverse=True), c) for g in groups)
        assert l_diversity(table, roles=roles, kind="recursive", c=c) == least


def _largest_l(r, c):
    return max([n for n in range(1, len(r) + 1) if r[0] < c * sum(r[n - 1 :])], default=0)


def test_recursive_diversity_is_strict():
    table = {"q": ["x"] * 6, "s": list("aaabbc")}
    roles = {"q": QI, "s": "sensitive"}
    found = [
        l_diversity(table, roles=roles, kind="recursive", c=c) for c in (0.5, 0.51, 1, 1.01, 3, 3.1)
    ]
    assert found == [0, 1, 1, 2, 2, 3]


def earth_movers(p, q, cost):
    """The distance as a linear program over what moves from i to j."""
    m = len(p)
    rows = [[float(i == a) for i, _ in product(range(m), repeat=2)] for a in range(m)]
    columns = [[float(j == a) for _, j in product(range(m), repeat=2)] for a in range(m)]
    weights = [cost(i, j) for i, j in product(range(m), repeat=2)]
    return linprog(weights, A_eq=rows + columns, b_eq=[*p, *q]).fun


@pytest.mark.parametrize("seed", range(5))
def test_t_closeness_is_the_least_cost_of_moving(seed):
    rng = np.random.default_rng(seed)
    table = {"q": rng.integers(0, 6, 40), "s": rng.choice([1, 2, 50, 51, 52, 1000], 40)}
    roles = {"q": QI, "s": "sensitive"}
    values = sorted(set(table["s"].tolist()))
    whole = np.array([(table["s"] == value).mean() for value in values])
    most = {"equal": 0, "ordered": 0}
    for group in grouped(table, ["q"], "s"):
        p = [group.count(value) / len(group) for value in values]
        equal = earth_movers(p, whole, lambda i, j: float(i != j))
        ranks = earth_movers(p, whole, lambda i, j: abs(i - j) / (len(values) - 1))
        most = {"equal": max(most["equal"], equal), "ordered": max(most["ordered"], ranks)}
    assert t_closeness(table, roles=roles) == pytest.approx(most["equal"], abs=1e-9)
    assert t_closeness(table, roles=roles, ordered=["s"]) == pytest.approx(
        most["ordered"], abs=1e-9
    )


def test_of_several_sensitive_columns_the_worst_counts():
    table = {"q": [1, 1, 2, 2], "s": list("abab"), "v": list("aabb"), "w": list("abba")}
    roles = {"q": QI, "s": "sensitive", "v": "sensitive", "w": "sensitive"}
    assert t_closeness(table, roles=roles) == 0.5 and l_diversity(table, roles=roles) == 1
    roles["v"] = "other"
    assert t_closeness(table, roles=roles) == 0 and l_diversity(table, roles=roles) == 2


def test_extremes_of_t():
    roles = {"q": QI, "s": "sensitive"}
    assert t_closeness({"q": [1, 2], "s": [7, 7]}, roles=roles, ordered=["s"]) == 0
    assert t_closeness({"q": [1, 2], "s": [7, 7]}, roles=roles) == 0
    n = 1000
    far = {"q": np.r_[0, np.ones(n - 1, int)], "s": np.r_[0, np.ones(n - 1, int)]}
    for ordered in ([], ["s"]):
        assert t_closeness(far, roles=roles, ordered=ordered) == pytest.approx(1 - 1 / n, abs=1e-12)


def test_classes_are_numbered_in_the_order_of_the_values():
    table = {"a": np.array([2, 1, 2, 1]), "b": np.array(["y", "y", "x", "y"])}
    assert equivalence_classes(table, roles={"a": QI, "b": QI}).tolist() == [2, 0, 1, 0]


def test_many_wide_columns_do_not_overflow():
    rng = np.random.default_rng(0)
    table = {f"c{i}": rng.random(500)[rng.integers(0, 400, 500)] for i in range(9)}
    table = {name: np.r_[column, column] for name, column in table.items()}
    found = equivalence_classes(table, roles=dict.fromkeys(table, QI))
    rows = list(zip(*(column.tolist() for column in table.values()), strict=True))
    rank = {row: i for i, row in enumerate(sorted(set(rows)))}
    assert found.tolist() == [rank[row] for row in rows]


# Reading a table


@pytest.mark.parametrize("base", [tables.HASH_BASE, 1], ids=["spread", "colliding"])
def test_text_is_ranked_even_if_hashes_collide(base, monkeypatch):
    monkeypatch.setattr(tables, "HASH_BASE", base)
    rng = np.random.default_rng(1)
    for size in (3, 50, 20_000):
        pool = np.array(["".join(rng.permutation(list("abcde"))) + f"{i:x}" for i in range(size)])
        texts = rng.choice(pool, 20_000)
        column = tables.factorise(texts)
        values, codes = np.unique(texts, return_inverse=True)
        assert column.values == values.tolist() and (column.codes == codes).all()


@pytest.mark.parametrize(
    "array",
    [
        np.array([3, -1, 3, 200], dtype=np.int16),
        np.array([2**63 + 5, 1, 2**63 + 5], dtype=np.uint64),
        np.array([2**63 + 5, 2**63 + 4], dtype=np.uint64),
        np.array([-(2**62), 2**62, 0]),
        np.array([0.5, -0.0, 0.0, np.inf]),
        np.array([True, False, True]),
        np.array(["2020-01-02", "2019-05-05"], dtype="datetime64[D]"),
        np.array(["ö", "z", "a"], dtype=">U3"),
        np.array([b"b", b"a"]),
    ],
    ids=lambda array: str(array.dtype),
)
def test_every_kind_of_column_is_ranked(array):
    column = tables.factorise(array)
    values, codes = np.unique(array, return_inverse=True)
    assert (column.codes == codes).all() and (np.array(column.values) == values).all()


class Frame:
    """All that is asked of a table: names by iteration, columns by name (as a DataFrame's)."""

    def __init__(self, columns):
        self.columns = columns

    def __iter__(self):
        return iter(self.columns)

    def __getitem__(self, name):
        return self.columns[name]


def test_a_frame_of_objects_is_a_table():
    table = people(50, 3)
    frame = Frame({name: np.array(column.tolist(), dtype=object) for name, column in table.items()})
    for measure in (k_anonymity, l_diversity, t_closeness):
        assert measure(frame, roles=ROLES) == measure(table, roles=ROLES)
    one, other = (mondrian(t, roles=ROLES, k=4).table for t in (frame, table))
    assert all(one[name].tolist() == other[name].tolist() for name in other)


class NotAvailable:
    """Compares like pandas.NA."""

    def __eq__(self, other):
        return self

    __hash__ = object.__hash__

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


GAPS = {
    "nan": np.array([1.0, np.nan, 1.0, np.nan, 2.0, 2.0]),
    "none": np.array(["a", None, "a", None, "b", "b"], dtype=object),
    "several": np.array([1, float("nan"), 1, NotAvailable(), 2, 2], dtype=object),
    "nat": np.array(["2000", "nat", "2000", "nat", "2001", "2001"], dtype="datetime64[Y]"),
}


@pytest.mark.parametrize("gap", GAPS)
def test_missing_values_follow_the_policy(gap):
    table = {"q": GAPS[gap], "s": np.array(list("xyxyzx"))}
    roles = {"q": QI, "s": "sensitive"}
    with pytest.raises(
        ValueError, match=r"^column 'q' has 2 missing value\(s\), the first in re.*1"
    ):
        k_anonymity(table, roles=roles)
    as_value = equivalence_classes(table, roles=roles, missing="category")
    assert as_value.tolist() == [0, 2, 0, 2, 1, 1]
    assert equivalence_classes(table, roles=roles, missing="drop").tolist() == [0, -1, 0, -1, 1, 1]
    assert l_diversity(table, roles=roles, missing="drop") == 1
    assert t_closeness(table, roles=roles, missing="drop") == pytest.approx(0.25)  # x: 3/4 of four
    assert t_closeness(table, roles=roles, missing="category") == pytest.approx(2 / 3)


def test_a_missing_sensitive_value_follows_the_policy_where_it_counts():
    table = {"q": [1, 1, 1, 2, 2], "s": np.array(["x", "y", None, "x", "y"], dtype=object)}
    roles = {"q": QI, "s": "sensitive"}
    assert k_anonymity(table, roles=roles) == 2
    with pytest.raises(ValueError, match=r"^column 's' has 1 missing"):
        l_diversity(table, roles=roles)
    assert l_diversity(table, roles=roles, missing="drop") == 2
    assert t_closeness(table, roles=roles, missing="drop") == 0
    assert t_closeness(table, roles=roles, missing="category") == pytest.approx(0.2)
    table["s"] = np.array([1, 2, np.nan, 1, 2])
    with pytest.raises(ValueError, match=r"^column 's' is ordered and must hold numbers"):
        t_closeness(table, roles=roles, ordered=["s"], missing="category")


OK = {"q": [1, 1, 2], "s": ["a", "b", "a"]}
OK_ROLES = {"q": QI, "s": "sensitive"}


@pytest.mark.parametrize(
    ("table", "roles", "error", "message"),
    [
        ({}, {}, ValueError, r"got an empty table"),
        ({"q": [], "s": []}, OK_ROLES, ValueError, r"got an empty table"),
        (OK, {"q": QI}, ValueError, r"^column 's' has no role; give it one of 'identifier', "),
        (
            OK,
            OK_ROLES | {"zip": QI},
            ValueError,
            r"unknown column 'zip'; the table has \['q', 's'\]",
        ),
        (OK, OK_ROLES | {"s": "secret"}, ValueError, r"^the role of 's' must be one of .*'secret'"),
        (
            OK,
            {"q": "other", "s": "sensitive"},
            ValueError,
            r"at least one column 'quasi-identifier'",
        ),
        (OK, {"q": QI, "s": "other"}, ValueError, r"at least one column 'sensitive'"),
        (OK, [("q", QI)], TypeError, r"^roles must map every column"),
        (OK | {"s": ["a"]}, OK_ROLES, ValueError, r"one length, got \{'q': 3, 's': 1\}"),
        (OK | {"q": [[1], [1], [2]]}, OK_ROLES, ValueError, r"one-dimensional.*\(3, 1\)"),
        (OK | {"q": np.ma.array([1, 1, 2])}, OK_ROLES, TypeError, r"column 'q'.* masked array"),
        (OK | {"q": np.array([1j, 2, 2])}, OK_ROLES, TypeError, r"^column 'q' must hold numbers"),
        (
            OK | {"q": np.array([[1], [2, 3], 4], object)},
            OK_ROLES,
            TypeError,
            r"'q' must hold hash",
        ),
        (np.zeros((3, 2)), OK_ROLES, TypeError, r"^table must map column names"),
        ([OK], OK_ROLES, TypeError, r"^table must map column names"),
        (None, OK_ROLES, TypeError, r"^table must map column names"),
    ],
)
def test_bad_tables_and_roles_are_refused(table, roles, error, message):
    with pytest.raises(error, match=message):
        l_diversity(table, roles=roles)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: k_anonymity(OK, roles=OK_ROLES, missing="ignore"), r"^missing must be one of"),
        (lambda: l_diversity(OK, roles=OK_ROLES, kind="odd"), r"^kind must be one of"),
        (
            lambda: l_diversity(OK, roles=OK_ROLES, kind="recursive"),
            r"^c goes with kind='recursive'",
        ),
        (lambda: l_diversity(OK, roles=OK_ROLES, c=2), r"^c goes with kind='recursive'"),
        (lambda: l_diversity(OK, roles=OK_ROLES, kind="recursive", c=0), r"^c must be a finite"),
        (
            lambda: t_closeness(OK, roles=OK_ROLES, ordered=["q"]),
            r"^ordered must name sensitive col",
        ),
        (
            lambda: t_closeness(OK, roles=OK_ROLES, ordered=["s"]),
            r"^column 's' is ordered and must",
        ),
        (lambda: mondrian(OK, roles=OK_ROLES, k=4), r"^k must be at most .* records, 3, got 4"),
        (lambda: mondrian(OK, roles=OK_ROLES, k=0), r"^k must be a whole number of at least 1"),
        (
            lambda: mondrian(OK | {"q": [1, np.inf, 2]}, roles=OK_ROLES, k=1),
            r"^column 'q' must hold finite",
        ),
        (
            lambda: mondrian(OK | {"q": [1, np.nan, 2]}, roles=OK_ROLES, k=1, missing="category"),
            r"^column 'q' has missing numbers, which have no place in its order",
        ),
        (
            lambda: mondrian(OK | {"q": [1, None, 2]}, roles=OK_ROLES, k=1, missing="category"),
            r"^column 'q' has missing numbers, which have no place in its order",
        ),
        (
            lambda: mondrian(OK | {"q": [1, np.nan, 2]}, roles=OK_ROLES, k=3, missing="drop"),
            r"^k must be at most .* 2, got 3",
        ),
        (
            lambda: k_anonymity(OK | {"q": [np.nan] * 3}, roles=OK_ROLES, missing="drop"),
            r"a record without missing values",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_ordered_is_a_list_of_names():
    with pytest.raises(TypeError, match=r"^ordered must be a list of column names, got 's'"):
        t_closeness(OK, roles=OK_ROLES, ordered="s")


# Mondrian


def by_hand(table, names, k):
    """Strict Mondrian, one box at a time: the sets of records in its boxes."""
    columns = [table[name] for name in names]
    ranks = [np.unique(column, return_inverse=True)[1] for column in columns]
    boxes, found = [np.arange(len(columns[0]))], set()
    while boxes:
        box = boxes.pop()
        best = (-1.0, None, None)
        for column, rank in zip(columns, ranks, strict=True):
            if column.dtype.kind in "if":
                width = np.ptp(column[box]) / max(np.ptp(column), 1e-300)
            else:
                width = (len(set(column[box])) - 1) / max(1, len(set(column)) - 1)
            cuts = []
            for cut in sorted(set(rank[box].tolist()))[1:]:
                left = int((rank[box] < cut).sum())
                if min(left, len(box) - left) >= k:
                    cuts.append((abs(2 * left - len(box)), cut))
            if cuts and width > best[0] + 1e-12:
                best = (width, rank, min(cuts)[1])
        if best[1] is None:
            found.add(frozenset(box.tolist()))
        else:
            right = best[1][box] >= best[2]
            boxes += [box[~right], box[right]]
    return found


def boxes_of(release):
    return {frozenset(release.rows[release.group == g].tolist()) for g in set(release.group)}


@pytest.mark.parametrize("k", [1, 2, 5, 30])
@pytest.mark.parametrize("seed", range(4))
def test_strict_mondrian_equals_one_box_at_a_time(seed, k):
    table = people(150, seed)
    release = mondrian(table, roles=ROLES, k=k)
    assert boxes_of(release) == by_hand(table, ["age", "sex", "race"], k)
    assert k_anonymity(release.table, roles=release.roles) == release.sizes.min() >= k


@pytest.mark.parametrize("strict", [True, False])
def test_mondrian_publishes_what_is_in_the_box(strict):
    table = people(300, 5)
    release = mondrian(table, roles=ROLES, k=7, strict=strict)
    assert list(release.table) == ["age", "sex", "race", "ill", "note"]
    assert release.suppressed == 0 and (release.table["note"] == table["note"]).all()
    for group in range(len(release.sizes)):
        rows = release.rows[release.group == group]
        for i, name in enumerate(("age", "sex", "race")):
            (label,) = set(release.table[name][release.group == group].tolist())
            inside = sorted(set(table[name][rows].tolist()))
            if len(inside) == 1:
                expected = str(inside[0])
            elif name == "age":
                expected = f"[{inside[0]}, {inside[-1]}]"
            else:
                expected = "{" + ", ".join(inside) + "}"
            assert label == expected
            size = len(set(table[name].tolist()))
            lost = (len(inside) - 1) / (size - 1)
            if name == "age":
                lost = (inside[-1] - inside[0]) / np.ptp(table["age"])
            assert release.widths[release.group == group, i] == pytest.approx(lost)


def test_relaxed_mondrian_halves_to_fewer_than_2k():
    rng = np.random.default_rng(2)
    table = {"a": rng.random(1000), "b": rng.integers(0, 3, 1000)}
    roles = {"a": QI, "b": QI}
    for k in (2, 3, 7, 100):
        sizes = mondrian(table, roles=roles, k=k, strict=False).sizes
        assert sizes.sum() == 1000 and sizes.min() >= k and sizes.max() < 2 * k
    same = {"a": np.r_[np.zeros(9), 1.0]}  # strict cannot cut 9 to 1; relaxed parts equal values
    assert len(mondrian(same, roles={"a": QI}, k=3).sizes) == 1
    parted = mondrian(same, roles={"a": QI}, k=3, strict=False)
    assert sorted(parted.sizes.tolist()) == [5, 5]


def test_mondrian_with_gaps_dates_and_more_than_32_columns():
    table = {
        "ward": np.array(["a", "b", None, None, "c", "a"], dtype=object),
        "day": np.array(["2020-01-01", "2020-01-05"] * 3, dtype="datetime64[D]"),
    }
    roles = {"ward": QI, "day": QI}
    release = mondrian(table, roles=roles, k=3, missing="category")
    assert sorted(release.table["ward"].tolist()) == ["{a, b}"] * 3 + ["{c, missing}"] * 3
    assert set(release.table["day"].tolist()) == {"[2020-01-01, 2020-01-05]"}
    dropped = mondrian(table, roles=roles, k=2, missing="drop")
    assert dropped.rows.tolist() == [0, 1, 4, 5] and dropped.suppressed == 2
    wide = {f"c{i}": np.arange(40) % (i + 2) for i in range(40)}
    assert mondrian(wide, roles=dict.fromkeys(wide, QI), k=4).sizes.min() >= 4


# Hierarchies


def test_intervals_and_prefixes():
    ages = intervals([0, 4, 5, 19], widths=[5, 10])
    assert ages[4] == ("[0, 5)", "[0, 10)", "*") and ages[5] == ("[5, 10)", "[0, 10)", "*")
    assert intervals([-0.5], widths=[1], start=0)[-0.5] == ("[-1, 0)", "*")
    assert prefixes(np.array(["12", "13"]), lengths=[1])["13"] == ("1*", "*")


def test_a_hierarchy_that_is_not_nested_is_refused_with_the_reason():
    """Thirds, then eighths: 6 and 8 share 2 at level 1, and part at level 2."""
    schooling = {years: (years // 3, years // 8, "*") for years in range(16)}
    reason = r"'edu' is not nested: 6 and 8 share 2 at level 1 and part at level 2 \(0 and 1\), so "
    with pytest.raises(ValueError, match=reason):
        check_hierarchy(schooling, "edu")
    with pytest.raises(ValueError, match=reason):
        full_domain({"edu": [6, 8]}, roles={"edu": QI}, hierarchies={"edu": schooling}, k=2)
    # The reason is true: at k = 2 the step from thirds to eighths adds small records.
    records = [6, 8]
    small = [
        sum(n for n in Counter(schooling[r][level] for r in records).values() if n < 2)
        for level in range(2)
    ]
    assert small == [0, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: check_hierarchy({}, "x"), ValueError, r"same number of levels.* got none"),
        (lambda: check_hierarchy({1: ("a",), 2: ()}, "x"), ValueError, r"got 1 for 1, 0 for 2"),
        (lambda: check_hierarchy({1: "ab"}, "x"), TypeError, r"tuples of labels, got 'ab'"),
        (lambda: check_hierarchy({1: ([], "a")}, "x"), TypeError, r"hashable labels"),
        (lambda: check_hierarchy([1], "x"), TypeError, r"must map values to labels"),
        (lambda: intervals([1], widths=[5, 12]), ValueError, r"got 12 after 5.* not nested"),
        (lambda: intervals([1], widths=[5, 5]), ValueError, r"got 5 after 5"),
        (lambda: intervals([np.nan], widths=[5]), ValueError, r"finite numbers only"),
        (lambda: prefixes(["12", "123"], lengths=[1]), TypeError, r"one length, got '123'"),
        (lambda: prefixes([12], lengths=[1]), TypeError, r"one length, got 12"),
        (lambda: prefixes(["12"], lengths=[1, 2]), ValueError, r"must fall"),
    ],
)
def test_bad_hierarchies_are_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


# The lattice


def everything(table, k):
    """By brute force, for each node: the records in classes below k, and the classes' sizes."""
    levels = {
        name: [[(v, *HIERARCHIES[name][v])[i] for v in table[name].tolist()] for i in range(n)]
        for name, n in (("age", 5), ("sex", 2), ("race", 3))
    }
    found = {}
    for node in product(range(5), range(2), range(3)):
        picked = [levels[name][i] for name, i in zip(levels, node, strict=True)]
        keys = list(zip(*picked, strict=True))
        sizes = Counter(keys)
        kept = [i for i, key in enumerate(keys) if sizes[key] >= k]
        found[node] = (len(keys) - len(kept), sizes, kept, picked)
    return found


def losses(table, k, node, entry):
    """The three losses of a node from their definitions."""
    suppressed, sizes, kept, picked = entry
    n, names = len(table["age"]), ("age", "sex", "race")
    total = float(suppressed)
    for i in kept:
        for name, column in zip(names, picked, strict=True):
            values, labels = table[name].tolist(), column
            inside = {v for v, label in zip(values, labels, strict=True) if label == labels[i]}
            total += (len(inside) - 1) / (len(set(values)) - 1) / 3
    return {
        "height": (node[0] / 4 + node[1] / 1 + node[2] / 2) / 3,
        "generalisation": total / n,
        "discernibility": sum(s * s for s in sizes.values() if s >= k) + n * suppressed,
    }


@pytest.mark.parametrize(("k", "most"), [(2, 0), (3, 4), (8, 10)])
@pytest.mark.parametrize("seed", range(3))
def test_the_search_finds_what_brute_force_finds(seed, k, most):
    table = people(70, seed)
    given = {"roles": ROLES, "hierarchies": HIERARCHIES, "k": k, "most_suppressed": most}
    found = everything(table, k)
    good = {node for node in found if found[node][0] <= most}
    steps = np.eye(3, dtype=int)
    minimal = [n for n in good if not any(tuple((np.array(n) - s).tolist()) in good for s in steps)]
    expected = [dict(zip(("age", "sex", "race"), n, strict=True)) for n in sorted(minimal)]
    assert minimal_generalisations(table, **given) == expected
    all_losses = {node: losses(table, k, node, found[node]) for node in good}
    for loss in LOSSES:
        release = full_domain(table, **given, loss=loss)
        node = tuple(release.levels.values())
        assert all_losses[node][loss] == pytest.approx(min(v[loss] for v in all_losses.values()))
        assert release.suppressed == found[node][0] <= most
        assert release.rows.tolist() == found[node][2]
        assert generalisation_loss(release) == pytest.approx(all_losses[node]["generalisation"])
        assert discernibility(release) == all_losses[node]["discernibility"]
        assert k_anonymity(release.table, roles=release.roles) >= k
    # Monotone: no step up adds a record to the small classes.
    for node in found:
        for step in steps:
            above = tuple((np.array(node) + step).tolist())
            assert above not in found or found[above][0] <= found[node][0]


def test_the_search_skips_what_lies_above_a_good_node(monkeypatch):
    asked, table = [], people(70, 0)
    ask = _Lattice.suppressed
    monkeypatch.setattr(_Lattice, "suppressed", lambda s, node: asked.append(node) or ask(s, node))
    given = {"roles": ROLES, "hierarchies": HIERARCHIES, "k": 3, "most_suppressed": 4}
    minimal = [tuple(levels.values()) for levels in minimal_generalisations(table, **given)]
    found = everything(table, 3)
    bad = {node for node in found if found[node][0] > 4}
    top = (4, 1, 2)
    assert sorted(asked) == sorted([*bad, *minimal, top])


def test_datafly_by_hand():
    """Ages have the most values: they rise until races (4) do, and then sex (2)."""
    table = people(70, 1)
    given = {"roles": ROLES, "hierarchies": HIERARCHIES, "k": 3}
    for most in (0, 3, 10):
        found, node = everything(table, 3), [0, 0, 0]
        while found[tuple(node)][0] > most:
            counts = [len(set(column)) for column in found[tuple(node)][3]]
            ready = [i for i in range(3) if node[i] < (4, 1, 2)[i]]
            node[max(ready, key=lambda i: counts[i])] += 1
        release = datafly(table, **given, most_suppressed=most)
        assert list(release.levels.values()) == node
        assert release.rows.tolist() == found[tuple(node)][2]
        best = full_domain(table, **given, most_suppressed=most)
        parts = [
            sum(r.levels[n] / h for n, h in (("age", 4), ("sex", 1), ("race", 2)))
            for r in (best, release)
        ]
        assert parts[0] <= parts[1] + 1e-12


def test_a_release_generalises_and_suppresses():
    table = {"zip": np.array(["13053", "13068", "13053", "14850"]), "n": np.arange(4)}
    roles = {"zip": QI, "n": "other"}
    given = {"roles": roles, "hierarchies": {"zip": prefixes(table["zip"], lengths=[3])}, "k": 2}
    one = full_domain(table, **given, most_suppressed=2)
    assert one.levels == {"zip": 0} and one.table["zip"].tolist() == ["13053", "13053"]
    assert one.rows.tolist() == one.table["n"].tolist() == [0, 2] and one.suppressed == 2
    two = full_domain(table, **given, most_suppressed=1)
    assert two.table["zip"].tolist() == ["130**"] * 3 and two.rows.tolist() == [0, 1, 2]
    three = full_domain(table, **given)
    assert three.table["zip"].tolist() == ["*"] * 4
    # Zip has 3 values: one of three loses nothing, two (3 - 1) / 2 less a half, all three 1.
    assert [generalisation_loss(r) for r in (one, two, three)] == [0.5, 0.625, 1.0]
    assert [discernibility(r) for r in (one, two, three)] == [4 + 8, 9 + 4, 16]
    assert [average_class_size(r) for r in (one, two, three)] == [1.0, 1.5, 2.0]


def test_missing_values_in_the_lattice_need_a_place_in_the_hierarchy():
    table = {"q": np.array(["a", None, "a", "b"], dtype=object)}
    given = {"roles": {"q": QI}, "k": 2, "missing": "category"}
    flat = {"a": ("*",), "b": ("*",)}
    with pytest.raises(ValueError, match=r"^the hierarchy of 'q' misses the value None"):
        full_domain(table, **given, hierarchies={"q": flat})
    release = full_domain(table, **given, hierarchies={"q": flat | {None: ("*",)}})
    assert release.table["q"].tolist() == ["*"] * 4
    dropped = full_domain(table, **(given | {"missing": "drop"}), hierarchies={"q": flat})
    assert dropped.rows.tolist() == [0, 2, 3] and dropped.suppressed == 1
    assert generalisation_loss(dropped) == 1.0 and discernibility(dropped) == 9 + 4


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"hierarchies": {**HIERARCHIES, "race": {r: ("*",) for r in "abc"}}},
            r"'race' misses .*'d'",
        ),
        (
            {"hierarchies": {"age": HIERARCHIES["age"]}},
            r"^hierarchies must be given for .*\['age'\]",
        ),
        ({"hierarchies": {**HIERARCHIES, "ill": {}}}, r"and for no other column, got .*'ill'"),
        ({"k": 71}, r"^k must be at most the number of records, 70, got 71"),
        ({"most_suppressed": -1}, r"^most_suppressed must be a whole number of at least 0"),
        (
            {"hierarchies": {**HIERARCHIES, "age": {a: () for a in range(20, 60)}}},
            r"^no level reaches k=3 with at most 0 suppressed: at the top .* \d+ record",
        ),
    ],
)
@pytest.mark.parametrize("method", [full_domain, datafly, minimal_generalisations])
def test_bad_searches_are_refused(method, changed, message):
    given = {"roles": ROLES, "hierarchies": HIERARCHIES, "k": 3} | changed
    with pytest.raises(ValueError, match=message):
        method(people(70, 0), **given)


def test_an_unknown_loss_and_a_huge_lattice_are_refused():
    with pytest.raises(ValueError, match=r"^loss must be one of 'height'"):
        full_domain(people(9, 0), roles=ROLES, hierarchies=HIERARCHIES, k=1, loss="entropy")
    table = {f"c{i}": [1, 1] for i in range(17)}
    tall = {name: {1: ("*",)} for name in table}
    with pytest.raises(ValueError, match=r"at most 100,000 nodes, got 131,072"):
        full_domain(table, roles=dict.fromkeys(table, QI), hierarchies=tall, k=1)


# What all share


def test_nothing_modifies_or_shares_the_table():
    table = people(80, 4)
    table["ward"] = np.array([None, *"ab" * 40], dtype=object)[:80]
    roles = ROLES | {"ward": "other"}
    before = {name: column.copy() for name, column in table.items()}
    for column in table.values():
        column.flags.writeable = False
    given = {"roles": roles, "k": 2}
    releases = [
        mondrian(table, **given),
        mondrian(table, **given, strict=False),
        full_domain(table, **given, hierarchies=HIERARCHIES, most_suppressed=80),
        datafly(table, **given, hierarchies=HIERARCHIES, most_suppressed=5),
    ]
    (
        k_anonymity(table, roles=roles),
        l_diversity(table, roles=roles),
        t_closeness(table, roles=roles),
    )
    assert all((table[name] == before[name]).all() for name in before)
    for release in releases:
        assert "name" not in release.table and release.roles == {n: roles[n] for n in release.table}
        for name, column in release.table.items():
            assert not np.shares_memory(column, table[name]) and column.flags.writeable


def test_losses_at_the_extremes():
    table = people(50, 6)
    alone = mondrian(table, roles=ROLES, k=1)
    distinct = len(set(zip(*(table[n].tolist() for n in ("age", "sex", "race")), strict=True)))
    assert generalisation_loss(alone) == 0 and len(alone.sizes) == distinct
    together = mondrian(table, roles=ROLES, k=50)
    assert generalisation_loss(together) == 1 and discernibility(together) == 2500
    assert average_class_size(together) == 1 and isinstance(together, Release)


def test_bars_on_30_000_people():
    """CPU seconds, the best of three: Mondrian under 1, the lattice under 0.5."""
    rng = np.random.default_rng(0)
    n = 30_000
    table = people(n, 0) | {"edu": rng.binomial(15, 0.6, n), "hours": rng.binomial(60, 0.6, n)}
    roles = ROLES | {"edu": QI, "hours": QI}
    hierarchies = HIERARCHIES | {
        "edu": {e: (e // 4, e // 8, "*") for e in range(16)},
        "hours": intervals(range(61), widths=[10, 20]),
    }
    spent = {"mondrian": [], "lattice": []}
    for _ in range(3):
        start = process_time()
        assert mondrian(table, roles=roles, k=5).sizes.min() >= 5
        spent["mondrian"].append(process_time() - start)
        start = process_time()
        full_domain(table, roles=roles, hierarchies=hierarchies, k=5, most_suppressed=300)
        spent["lattice"].append(process_time() - start)
    assert min(spent["mondrian"]) < 1 and min(spent["lattice"]) < 0.5


def test_anonymity_loads_numpy_alone():
    code = "import coursekit.anonymity, sys; print(*{m.split('.')[0] for m in sys.modules})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "sklearn", "scipy", "pandas", "matplotlib"} & set(run.stdout.split())
