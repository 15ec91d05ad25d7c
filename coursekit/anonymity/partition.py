"""Mondrian: boxes cut at the median until a cut would leave fewer than k people on a side."""

from typing import NamedTuple

import numpy as np

from coursekit.anonymity.releases import make_release
from coursekit.anonymity.tables import checked_k, dense, read


class _Axis(NamedTuple):
    codes: np.ndarray  # rank of each record's value
    labels: list  # of each rank
    at: np.ndarray  # where each rank lies, scaled to 0 to 1
    is_set: bool  # published as a set of values, not a range


def mondrian(table, *, roles, k, strict=True, missing="refuse"):
    """Return a k-anonymous release by Mondrian's greedy cuts of the widest quasi-identifier.

    A box is cut along the quasi-identifier in which it is widest, among those that can be cut: the
    range divided by that of the whole table; for text and booleans, in alphabetical order, (s - 1)
    / (m - 1) for s of the m distinct values. The first in `roles` wins a tie. A strict cut parts
    two different values, as near to the middle record as can be; it needs k records on either side
    and no box can be cut further. With `strict=False` (relaxed) the middle record is the cut, even
    among equal values, ties in the order of the records, so the boxes may overlap.

    What is published is what is there: "[low, high]" with the least and greatest value in the box,
    "{a, b}" with the values in it, or the only value as text. Every end is thus a person's real
    value.

    Args: as `equivalence_classes`, and k from 1 to the number of records. Missing values of text
    may be a "category"; a missing number has no place in the order and is then refused.
    Returns: a `Release`; its `rows` leave out dropped records alone.
    Raises: as `equivalence_classes`; ValueError for a k out of range or an infinite number.
    Source: LeFevre, DeWitt, Ramakrishnan (2006), ICDE.

    >>> table = {"age": [30, 31, 40, 47, 48], "sex": ["f", "m", "f", "m", "f"]}
    >>> roles = {"age": "quasi-identifier", "sex": "quasi-identifier"}
    >>> release = mondrian(table, roles=roles, k=2)
    >>> release.table["age"].tolist()
    ['[30, 31]', '[30, 31]', '[40, 48]', '[40, 48]', '[40, 48]']
    >>> release.table["sex"].tolist()
    ['{f, m}', '{f, m}', '{f, m}', '{f, m}', '{f, m}']
    """
    source = read(table, roles, missing)
    k = checked_k(k, source)
    axes = [_axis(name, column) for name, column in source.quasi.items()]
    box = _boxes(axes, k, bool(strict))
    quasi, widths = {}, []
    for name, axis in zip(source.quasi, axes, strict=True):
        labels, lost = _published(axis, box)
        quasi[name] = labels[box]
        widths.append(lost[box])
    return make_release(source, source.rows.copy(), quasi, np.stack(widths, axis=1), k=k)


def _axis(name, column):
    values = column.values
    if column.numbers is None:
        labels = ["missing" if value is None else str(value) for value in values]
        return _Axis(column.codes, labels, np.arange(len(values)) / max(1, len(values) - 1), True)
    if values[-1] is None:
        raise ValueError(
            f"column {name!r} has missing numbers, which have no place in its order; choose "
            "missing='drop', or make the column text."
        )
    if not np.isfinite(column.numbers).all():
        raise ValueError(f"column {name!r} must hold finite numbers, got an infinite one.")
    low, high = column.numbers[0], column.numbers[-1]
    at = (column.numbers / 2 - low / 2) / ((high / 2 - low / 2) or 1.0)  # halves do not overflow
    return _Axis(column.codes, [str(value) for value in values], at, False)


def _boxes(axes, k, strict):
    """Return the number of each record's box. All boxes of one depth are cut at a time."""
    records = len(axes[0].codes)
    box = np.zeros(records, dtype=np.int64)  # final numbers are given from the top down
    rows, group, closed = np.arange(records), np.zeros(records, dtype=np.int64), 0
    while len(rows):
        right, cut = _halves(axes, rows, group, k, strict)
        done = ~cut[group]
        ranks = np.cumsum(~cut) - 1 + closed
        box[rows[done]] = ranks[group[done]]
        closed += int((~cut).sum())
        rows, halves = rows[~done], 2 * group[~done] + right[~done]
        group, _ = dense(halves, 2 * len(cut))
    return box


def _halves(axes, rows, group, k, strict):
    """Return which records go to the right half of their box, and which boxes are cut at all."""
    sizes = np.bincount(group)
    codes = [axis.codes[rows] for axis in axes]
    widest, chosen = np.full(len(sizes), -1.0), np.full(len(sizes), -1)
    edges = []  # the first rank to the right of the cut, for each axis and box
    for i, axis in enumerate(axes):
        width, edge = _look(axis, codes[i], group, sizes, k)
        able = edge >= 0 if strict else (width > 0) & (sizes >= 2 * k)
        better = able & (width > widest)
        widest[better], chosen[better] = width[better], i
        edges.append(edge)
    code = np.stack(codes)[chosen[group], np.arange(len(rows))]
    if strict:
        right = code >= np.array(edges)[chosen, np.arange(len(sizes))][group]
    else:
        order = np.lexsort((code, group))  # stable: ties stay in the order of the records
        start = np.cumsum(sizes) - sizes
        right = np.empty(len(rows), dtype=bool)
        right[order] = np.arange(len(rows)) - start[group[order]] >= sizes[group[order]] // 2
    return right, chosen >= 0


def _look(axis, codes, group, sizes, k):
    """Return the width of each box along an axis, and its best strict cut (-1 if there is none)."""
    values = len(axis.labels)
    key = np.sort(group * values + codes)
    box, code = key // values, key % values
    stop = np.cumsum(sizes)
    start = stop - sizes
    # An edge is where the value changes inside a box; `left` records lie before it.
    edge = np.flatnonzero((box[1:] == box[:-1]) & (code[1:] != code[:-1])) + 1
    if axis.is_set:
        width = np.bincount(box[edge], minlength=len(sizes)) / max(1, values - 1)
    else:
        width = axis.at[code[stop - 1]] - axis.at[code[start]]
    left = edge - start[box[edge]]
    edge = edge[(left >= k) & (sizes[box[edge]] - left >= k)]
    off_middle = np.abs(2 * (edge - start[box[edge]]) - sizes[box[edge]])
    # The nearest edge to the middle, the left one of two, as one number for each box.
    score = np.full(len(sizes), np.iinfo(np.int64).max)
    np.minimum.at(score, box[edge], off_middle * (len(key) + 1) + edge)
    found = score < np.iinfo(np.int64).max
    best = np.full(len(sizes), -1)
    best[found] = code[score[found] % (len(key) + 1)]
    return width, best


def _published(axis, box):
    """Return the label of each box along an axis, and what it loses."""
    values = len(axis.labels)
    pairs = np.unique(box * values + axis.codes)
    of_box, code = pairs // values, pairs % values
    count = np.bincount(of_box)
    stop = np.cumsum(count)
    low, high = code[stop - count], code[stop - 1]
    lost = (count - 1) / max(1, values - 1) if axis.is_set else axis.at[high] - axis.at[low]
    labels = []
    for i, (first, last) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        if first == last:
            labels.append(axis.labels[first])
        elif axis.is_set:
            inside = code[stop[i] - count[i] : stop[i]]
            labels.append("{" + ", ".join(axis.labels[j] for j in inside) + "}")
        else:
            labels.append(f"[{axis.labels[first]}, {axis.labels[last]}]")
    return np.array(labels), lost
