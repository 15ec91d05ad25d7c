"""How anonymous a table is: k-anonymity, l-diversity and t-closeness.

Each speaks of equivalence classes, the records that agree in every quasi-identifier; identifiers
are taken to be left out of the release. Several sensitive columns: the worst of them counts.
"""

import numpy as np

from coursekit import _arguments
from coursekit.anonymity.tables import class_sizes, classes, read

KINDS = ("distinct", "entropy", "recursive")


def k_anonymity(table, *, roles, missing="refuse"):
    """Return k, the size of the smallest equivalence class.

    Args and Raises: as `equivalence_classes`.
    Source: Samarati (2001); Sweeney (2002), "k-anonymity: a model for protecting privacy".

    >>> table = {"age": [30, 30, 40, 40, 40], "illness": ["flu", "flu", "flu", "cold", "gout"]}
    >>> roles = {"age": "quasi-identifier", "illness": "sensitive"}
    >>> k_anonymity(table, roles=roles)
    2
    """
    source = read(table, roles, missing)
    return int(class_sizes(list(source.quasi.values())).min())


def l_diversity(table, *, roles, kind="distinct", c=None, missing="refuse"):
    """Return l, the least diversity of a sensitive column in an equivalence class.

    "distinct" counts the values. "entropy" is exp(H), H the entropy in nats: 2.0 for two equally
    frequent values (to rounding). "recursive" is the largest l for which every class is recursive
    (c, l)-diverse: r1 < c (r_l + ... + r_m), with r1 >= r2 >= ... >= rm the counts of the values
    in the class; it is 0 if l = 1 already fails.

    Args: as `equivalence_classes`, and `c`, a number above 0, for "recursive" alone. A missing
    sensitive value falls under `missing` as well.
    Returns: an int, for "entropy" a float.
    Raises: as `equivalence_classes`; ValueError without a sensitive column, or for a c too many.
    Source: Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam (2007), TKDD. pycanon 1.3.6
    differs in two: it truncates "entropy" to a whole number, after rounding (2 for three equally
    frequent values), and for "recursive" takes the counts in rising order.

    >>> table = {"age": [30, 30, 40, 40, 40], "illness": ["flu", "cold", "flu", "cold", "gout"]}
    >>> roles = {"age": "quasi-identifier", "illness": "sensitive"}
    >>> l_diversity(table, roles=roles), l_diversity(table, roles=roles, kind="recursive", c=1.5)
    (2, 2)
    """
    _arguments.one_of(kind, "kind", KINDS)
    if (kind == "recursive") != (c is not None):
        raise ValueError(f"c goes with kind='recursive' and only there, got {kind!r} and c={c!r}.")
    c = c if c is None else _arguments.positive(c, "c")
    source = read(table, roles, missing, sensitive=True)
    group, count = classes(list(source.quasi.values()))
    found = []
    for column in source.sensitive.values():
        cells = _cells(group, column)
        if kind == "distinct":
            found.append(int(np.bincount(cells[0]).min()))
        elif kind == "entropy":
            share = cells[2] / _sizes(group, count)[cells[0]]
            found.append(float(np.exp(-np.bincount(cells[0], share * np.log(share)).max())))
        else:
            found.append(_recursive(cells, c))
    return min(found)


def t_closeness(table, *, roles, ordered=(), missing="refuse"):
    """Return t, the largest distance between a class and the whole table in a sensitive column.

    The distance is the earth mover's, between the shares p of the values in the class and q in
    the whole table. Moving between any two values costs 1, so it is half of sum |p - q|; for the
    columns in `ordered`, whose m distinct values are numbers or dates, moving i ranks costs
    i / (m - 1), so it is the sum of |cumulative p - cumulative q| over m - 1. Ranks count, not
    the distances between the numbers. pycanon uses the same two, "ordered" for number columns
    and equal costs for text. A column with a single value has distance 0.

    Args: as `equivalence_classes`, and `ordered`, names of sensitive columns. A missing sensitive
    value falls under `missing` as well; dropped records do not count in the whole either.
    Returns: a float from 0 to 1.
    Raises: as `equivalence_classes`; ValueError without a sensitive column, for an `ordered` name
    that is none, or one whose values have no order (text, or missing values as a category).
    Source: Li, Li, Venkatasubramanian (2007), ICDE.

    >>> table = {"age": [30, 30, 40, 40], "wage": [1, 2, 3, 3]}
    >>> roles = {"age": "quasi-identifier", "wage": "sensitive"}
    >>> t_closeness(table, roles=roles), t_closeness(table, roles=roles, ordered=["wage"])
    (0.5, 0.375)
    """
    source = read(table, roles, missing, sensitive=True)
    ordered = _ordered(ordered, source.sensitive)
    group, _ = classes(list(source.quasi.values()))
    found = []
    for name, column in source.sensitive.items():
        distance = _ordered_distance if name in ordered else _equal_distance
        found.append(float(distance(_cells(group, column), _sizes(column.codes)).max()))
    return min(1.0, max(0.0, *found))


def _sizes(group, count=0):
    return np.bincount(group, minlength=count)


def _cells(group, column):
    # For each pair of a class and a value that occurs: class, value, count; in that order.
    size = len(column.values)
    key, count = np.unique(group * size + column.codes, return_counts=True)
    return key // size, key % size, count


def _recursive(cells, c):
    order = np.lexsort((-cells[2], cells[0]))
    group, count = cells[0][order], cells[2][order]
    first = np.searchsorted(group, np.arange(group[-1] + 1))
    before = np.cumsum(count) - count
    tail = np.bincount(group, count)[group] - (before - before[first][group])
    return int(np.bincount(group, count[first][group] < c * tail).min())


def _ordered(names, sensitive):
    if isinstance(names, str):
        raise TypeError(f"ordered must be a list of column names, got {names!r}.")
    for name in names:
        if name not in sensitive:
            raise ValueError(
                f"ordered must name sensitive columns, {list(sensitive)}, got {name!r}."
            )
        if sensitive[name].numbers is None or sensitive[name].values[-1] is None:
            raise ValueError(
                f"column {name!r} is ordered and must hold numbers or dates without gaps; "
                "turn ordered text into ranks, and drop missing values."
            )
    return set(names)


def _equal_distance(cells, totals):
    group, value, count = cells
    p = count / np.bincount(group, count)[group]
    q = totals[value] / totals.sum()
    # Values that are absent from a class add q each: start from sum q = 1 and correct the others.
    return (1 + np.bincount(group, np.abs(p - q) - q)) / 2


def _ordered_distance(cells, totals):
    group, value, count = cells
    if len(totals) == 1:
        return np.zeros(group[-1] + 1)
    whole = np.cumsum(totals) / totals.sum()
    prefix = np.append(0.0, np.cumsum(whole))  # sums of `whole` up to a rank
    first = np.searchsorted(group, np.arange(group[-1] + 1))
    before = np.cumsum(count) - count
    p = (np.cumsum(count) - before[first][group]) / np.bincount(group, count)[group]
    # The class's cumulative share is p from one of its values up to its next; `whole` rises, and
    # crosses p once, before rank `cross`.
    stop = np.append(value[1:], 0)
    stop[np.append(first[1:], len(value)) - 1] = len(totals)
    cross = np.clip(np.searchsorted(whole, p, side="right"), value, stop)
    below = p * (cross - value) - (prefix[cross] - prefix[value])
    above = prefix[stop] - prefix[cross] - p * (stop - cross)
    return (prefix[value[first]] + np.bincount(group, below + above)) / (len(totals) - 1)
