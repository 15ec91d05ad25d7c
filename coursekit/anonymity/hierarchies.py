"""Hierarchies: what each value of a column becomes at each level of generalisation.

A hierarchy is a mapping from every value to its labels, one for each level, the mildest first; at
level 0 stands the value itself. `None` is the key of a missing value.
"""

from itertools import pairwise

import numpy as np

from coursekit import _arguments


def check_hierarchy(hierarchy, name="hierarchy"):
    """Return the number of levels of a hierarchy, or refuse one that is not nested.

    Nested: values that share a label go on sharing one at every higher level. Generalising then
    only merges equivalence classes, so no step up adds a record to the small ones, and a search may
    skip all that lies above a table that is anonymous already. Without nesting that is false.

    Raises: ValueError if it is empty, values differ in their number of levels, or it is not nested
    (the message names two values and the level); TypeError if it maps to anything but tuples or
    lists of hashable labels.

    >>> check_hierarchy({1: ("1-2", "any"), 2: ("1-2", "any"), 3: ("3-4", "any")})
    2
    >>> check_hierarchy({1: ("low", "odd"), 2: ("low", "even")}, "dose")
    Traceback (most recent call last):
    ValueError: the hierarchy of 'dose' is not nested: 1 and 2 share 'low' at level 1 and part ...
    """
    if not hasattr(hierarchy, "items"):
        raise TypeError(f"the hierarchy of {name!r} must map values to labels, got {hierarchy!r}.")
    heights = {}
    for value, labels in hierarchy.items():
        if not isinstance(labels, (tuple, list)):
            raise TypeError(
                f"the hierarchy of {name!r} must map to tuples of labels, got {labels!r}."
            )
        heights.setdefault(len(labels), value)
    if len(heights) != 1:
        found = ", ".join(f"{height} for {value!r}" for height, value in heights.items()) or "none"
        raise ValueError(
            f"the hierarchy of {name!r} must have the same number of levels for all its values, "
            f"got {found}."
        )
    (height,) = heights
    for level in range(1, height):
        _refuse_parting(hierarchy, name, level)
    return height


def intervals(values, *, widths, start=0):
    """Return a hierarchy of numbers: intervals [low, high) of each width, then "*" for all.

    Args: the values, the widths from narrow to wide, each a multiple of the one before it (else the
    levels are not nested and are refused), and the left end of one interval.

    >>> intervals([23, 31], widths=[5, 10])
    {23: ('[20, 25)', '[20, 30)', '*'), 31: ('[30, 35)', '[30, 40)', '*')}
    """
    numbers = np.unique(_arguments.finite_array(values, "values", ndim=1))
    widths = [_arguments.positive(width, "each of widths") for width in widths]
    start = _arguments.real(start, "start")
    for narrow, wide in pairwise(widths):
        if wide <= narrow or abs(wide / narrow - round(wide / narrow)) > 1e-9:
            raise ValueError(
                f"widths must each be a multiple of the one before, got {wide:g} after {narrow:g}: "
                f"an interval of width {narrow:g} would be cut in two, so levels are not nested."
            )
    made = {}
    for number in numbers.tolist():
        lows = [start + width * np.floor((number - start) / width) for width in widths]
        labels = [f"[{low:g}, {low + w:g})" for low, w in zip(lows, widths, strict=True)]
        made[int(number) if number.is_integer() else number] = (*labels, "*")
    check_hierarchy(made, "intervals")
    return made


def prefixes(values, *, lengths):
    """Return a hierarchy of text such as ZIP codes: the first characters, then "*" for all.

    Args: the values, texts of one length, and how many characters stay at each level, falling.

    >>> prefixes(["13053", "13068"], lengths=[4, 3])
    {'13053': ('1305*', '130**', '*'), '13068': ('1306*', '130**', '*')}
    """
    texts = sorted(
        dict.fromkeys(np.asarray(_arguments.unmasked(values, "values")).tolist()), key=str
    )
    for text in texts:
        if not isinstance(text, str) or len(text) != len(texts[0]):
            raise TypeError(f"values must be texts of one length, got {text!r}.")
    lengths = [_arguments.whole(length, "each of lengths", least=1) for length in lengths]
    if lengths != sorted(set(lengths), reverse=True):
        raise ValueError(f"lengths must fall from level to level, got {lengths}.")
    return {
        text: (*(text[:length].ljust(len(text), "*") for length in lengths), "*") for text in texts
    }


def _refuse_parting(hierarchy, name, level):
    # Levels count from 1, so labels[level - 1] is the label at `level`.
    seen = {}
    for value, labels in hierarchy.items():
        label, above = labels[level - 1], labels[level]
        try:
            other, expected = seen.setdefault(label, (value, above))
        except TypeError:
            raise TypeError(f"the hierarchy of {name!r} must have hashable labels.") from None
        if above != expected:
            raise ValueError(
                f"the hierarchy of {name!r} is not nested: {other!r} and {value!r} share {label!r} "
                f"at level {level} and part at level {level + 1} ({expected!r} and {above!r}), so "
                "generalising further could split a class, and more records could be in small ones."
            )
