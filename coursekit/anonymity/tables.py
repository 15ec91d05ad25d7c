"""Reading a table: every column has a role, missing values follow a policy, values become ranks.

An equivalence class holds the records that agree in every quasi-identifier.
"""

import numbers
from typing import NamedTuple

import numpy as np

from coursekit import _arguments

ROLES = ("identifier", "quasi-identifier", "sensitive", "other")
POLICIES = ("refuse", "drop", "category")
HASH_BASE = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio: odd, and spreads well


class Column(NamedTuple):
    """A column as ranks among its distinct values; `numbers` is None for text and categories."""

    codes: np.ndarray
    values: list  # in order; a last None stands for all missing values
    numbers: np.ndarray | None


class Source(NamedTuple):
    """A table that was checked: all its arrays, the columns in use, and the records that stay."""

    arrays: dict
    roles: dict
    quasi: dict
    sensitive: dict
    rows: np.ndarray
    records: int

    def released(self, name, rows):
        """Return a copy of a column that a release passes on unchanged."""
        return self.arrays[name][rows]


def equivalence_classes(table, *, roles, missing="refuse"):
    """Return the number of each record's equivalence class, 0, 1, ... in the order of the values.

    Args:
        table: a mapping from column name to a one-dimensional array; it is not modified.
        roles: for every column one of "identifier", "quasi-identifier", "sensitive", "other".
        missing: what to do with a missing value (NaN, None, NaT or pandas.NA) in a column that
            counts: "refuse" it; "drop" its record, which gets -1 here; or treat all missing values
            as one more value, a "category". There is no wildcard: "matches anything" is not
            transitive, so it makes no classes.

    Raises: ValueError or TypeError for an empty table, a column without a role or of another
    length, a role without a column, no quasi-identifier, or a missing value that is refused.

    >>> table = {"age": [30, 40, 30], "ward": ["A", "A", "A"]}
    >>> roles = {"age": "quasi-identifier", "ward": "other"}
    >>> equivalence_classes(table, roles=roles).tolist()
    [0, 1, 0]
    """
    source = read(table, roles, missing)
    groups = np.full(source.records, -1)
    groups[source.rows] = classes(list(source.quasi.values()))[0]
    return groups


def read(table, roles, missing, *, sensitive=False):
    """Return `table` as a Source; with `sensitive`, those columns count and one must be there."""
    _arguments.one_of(missing, "missing", POLICIES)
    arrays = _arrays(table)
    roles = _roles(roles, list(arrays))
    quasi = [name for name in roles if roles[name] == "quasi-identifier"]
    private = [name for name in roles if roles[name] == "sensitive"] if sensitive else []
    if not quasi or (sensitive and not private):
        lacks = "sensitive" if quasi else "quasi-identifier"
        raise ValueError(f"roles must make at least one column {lacks!r}, got {roles!r}.")
    records = len(next(iter(arrays.values())))
    columns = {name: factorise(arrays[name], name) for name in quasi + private}
    rows = np.arange(records)
    blank = [name for name in columns if columns[name].values[-1] is None]
    if blank and missing == "refuse":
        raise ValueError(_refused(blank[0], columns[blank[0]]))
    if blank and missing == "drop":
        gaps = [columns[name].codes == len(columns[name].values) - 1 for name in blank]
        rows = np.flatnonzero(~np.any(gaps, axis=0))
        if not len(rows):
            raise ValueError("table must hold a record without missing values, got none.")
        columns = {name: factorise(arrays[name][rows], name) for name in columns}
    return Source(
        arrays=arrays,
        roles=roles,
        quasi={name: columns[name] for name in quasi},
        sensitive={name: columns[name] for name in private},
        rows=rows,
        records=records,
    )


def factorise(array, name="column"):
    """Return an array as a Column: the rank of each value among the distinct ones, missing last."""
    kind = array.dtype.kind
    if kind in "biu":
        values, codes = _whole_numbers(array)
        return Column(codes, values.tolist(), None if kind == "b" else values.astype(np.float64))
    if kind in "fMm":
        return _with_gaps(array)
    if kind == "U" and array.dtype.itemsize:
        return _text(array)
    if kind in "USOT":
        return _objects(array, name)
    raise TypeError(f"column {name!r} must hold numbers, text or dates, got {array.dtype}.")


def classes(columns):
    """Return the class number of each record, and how many classes there are."""
    return dense(*_key(columns))


def class_sizes(columns):
    """Return the size of each class; quicker than numbering the records."""
    return sizes(*_key(columns))


def sizes(key, bound):
    """Return how often each whole number occurs, for those from 0 to below `bound` that do."""
    if bound <= 4 * len(key):
        count = np.bincount(key)
        return count[count > 0]
    key = np.sort(key)
    return np.diff(np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1], [True]])))


def _key(columns):
    key, bound = columns[0].codes, len(columns[0].values)
    for column in columns[1:]:
        size = len(column.values)
        if bound > 2**62 // size:
            key, bound = dense(key, bound)
        key, bound = key * size + column.codes, bound * size
    return key, bound


def dense(key, bound):
    """Return whole numbers from 0 to below `bound` as ranks, and the number of distinct ones."""
    if bound <= 4 * len(key) + 1000:
        found = np.zeros(bound, dtype=bool)
        found[key] = True
        ranks = np.cumsum(found)
        return ranks[key] - 1, int(ranks[-1])
    distinct, ranks = np.unique(key, return_inverse=True)
    return ranks, len(distinct)


def checked_k(k, source):
    """Return `k`, a whole number that does not exceed the records at hand."""
    k = _arguments.whole(k, "k", least=1)
    if k > len(source.rows):
        raise ValueError(f"k must be at most the number of records, {len(source.rows)}, got {k}.")
    return k


def _arrays(table):
    if isinstance(table, (str, bytes, list, tuple, set, np.ndarray)) or not hasattr(
        table, "__getitem__"
    ):
        raise TypeError(
            f"table must map column names to arrays, got an object of type {type(table).__name__}."
        )
    arrays = {}
    for name in list(table):
        array = np.asarray(_arguments.unmasked(table[name], f"column {name!r}"))
        if array.ndim != 1:
            raise ValueError(
                f"column {name!r} must be one-dimensional and named once, got shape {array.shape}."
            )
        arrays[name] = array
    lengths = {name: len(array) for name, array in arrays.items()}
    if not arrays or 0 in lengths.values():
        raise ValueError("table must hold at least one column and one record, got an empty table.")
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of table must have one length, got {lengths}.")
    return arrays


def _roles(roles, names):
    if not hasattr(roles, "items"):
        raise TypeError(f"roles must map every column name to its role, got {roles!r}.")
    for name, role in roles.items():
        if name not in names:
            raise ValueError(f"roles names the unknown column {name!r}; the table has {names}.")
        _arguments.one_of(role, f"the role of {name!r}", ROLES)
    for name in names:
        if name not in roles:
            raise ValueError(
                f"column {name!r} has no role; give it one of {', '.join(map(repr, ROLES))}."
            )
    return dict(roles)


def _refused(name, column):
    gaps = np.flatnonzero(column.codes == len(column.values) - 1)
    return (
        f"column {name!r} has {len(gaps)} missing value(s), the first in record {gaps[0]}; choose "
        "missing='drop' (leave such records out) or 'category' (one more value)."
    )


def _whole_numbers(array):
    low, high = int(array.min()), int(array.max())
    if high - low <= 4 * len(array) + 1000 and high < 2**63:
        codes, _ = dense(array.astype(np.int64) - low, high - low + 1)
        values = np.empty(codes.max() + 1, dtype=array.dtype)
        values[codes] = array
        return values, codes
    return np.unique(array, return_inverse=True)


def _with_gaps(array):
    gaps = np.isnan(array) if array.dtype.kind == "f" else np.isnat(array)
    distinct, ranks = np.unique(array[~gaps], return_inverse=True)
    codes = np.full(len(array), len(distinct))
    codes[~gaps] = ranks
    is_number = array.dtype.kind == "f"
    points = (distinct if is_number else distinct.astype(np.int64)).astype(np.float64)
    values = distinct.tolist() if is_number else list(distinct)
    return Column(codes, values + [None] * bool(gaps.any()), points)


def _text(array):
    # Texts meet in hash buckets; every text is compared with the one that its bucket keeps.
    array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))
    letters = array.view(np.uint32).reshape(len(array), -1).astype(np.uint64)
    powers = np.cumprod(np.full(letters.shape[1], HASH_BASE, dtype=np.uint64))
    hashed = letters @ powers
    bucket = (hashed >> np.uint64(47)).astype(np.int64)
    keeper = np.empty(2**17, dtype=np.int64)
    keeper[bucket] = np.arange(len(array))
    kept = keeper[bucket]
    if (hashed[kept] != hashed).any():
        _, first, ranks = np.unique(hashed, return_index=True, return_inverse=True)
        kept = first[ranks]
    if (array[kept] != array).any():
        return _objects(array, "text")
    which, count = dense(kept, len(array))
    values = np.empty(count, dtype=array.dtype)
    values[which] = array
    order = np.argsort(values)
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(count)
    return Column(ranks[which], values[order].tolist(), None)


def _objects(array, name):
    listed = array.tolist()
    try:
        distinct = dict.fromkeys(listed)
    except TypeError:
        raise TypeError(f"column {name!r} must hold hashable values such as text.") from None
    known = [value for value in distinct if not _is_missing(value)]
    gaps = len(known) < len(distinct)
    try:
        known.sort()
    except TypeError:  # values of several types
        known.sort(key=lambda value: (type(value).__name__, str(value)))
    ranks = dict.fromkeys(distinct, len(known)) | {value: i for i, value in enumerate(known)}
    codes = np.fromiter(map(ranks.__getitem__, listed), np.int64, len(listed))
    points = np.array(known, np.float64) if all(map(_is_number, known)) else None
    return Column(codes, known + [None] * gaps, points)


def _is_number(value):
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))


def _is_missing(value):
    if value is None:
        return True
    try:
        return not value == value
    except TypeError:  # pandas.NA has no truth value
        return True
