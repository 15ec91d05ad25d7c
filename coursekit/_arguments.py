"""Refusals in one voice: each says what was given and what is allowed.

Every public function calls these before it does any work. A wrong type raises `TypeError`, a wrong
value `ValueError`.
"""

import math
import numbers
import operator

import numpy as np


def real(value, name, allowed="a finite number"):
    """Return `value` as a finite float; booleans, strings, arrays, NaN and infinity are refused.

    >>> real(np.float64(2), "epsilon")
    2.0
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


def positive(value, name):
    """Return `value` as a finite float above zero.

    >>> positive(0, "epsilon")
    Traceback (most recent call last):
    ValueError: epsilon must be a finite number above 0, got 0.
    """
    allowed = "a finite number above 0"
    number = real(value, name, allowed)
    if number <= 0:
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


def non_negative(value, name):
    """Return `value` as a finite float of at least zero.

    >>> non_negative(0, "epsilon")
    0.0
    """
    allowed = "a finite number of at least 0"
    number = real(value, name, allowed)
    if number < 0:
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


def whole(value, name, *, least):
    """Return `value` as an int of at least `least`.

    >>> whole(2.5, "size", least=1)
    Traceback (most recent call last):
    TypeError: size must be a whole number of at least 1, got 2.5.
    """
    allowed = f"a whole number of at least {least}"
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be {allowed}, got {value!r}.") from None
    if number < least:
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


def probability(value, name):
    """Return `value` as a float between 0 and 1, both included.

    >>> probability(1.5, "delta")
    Traceback (most recent call last):
    ValueError: delta must be a number from 0 to 1, got 1.5.
    """
    allowed = "a number from 0 to 1"
    number = real(value, name, allowed)
    if not 0 <= number <= 1:
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


def fraction(value, name):
    """Return `value` as a float strictly between 0 and 1.

    >>> fraction(0, "delta")
    Traceback (most recent call last):
    ValueError: delta must be a number between 0 and 1, both excluded, got 0.
    """
    allowed = "a number between 0 and 1, both excluded"
    number = real(value, name, allowed)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


def one_of(value, name, choices):
    """Return the one of `choices` that `value` equals; a boolean equals booleans only.

    >>> one_of(np.int64(1), "norm", (1, 2))
    1
    >>> one_of("swap", "adjacency", ("add-remove", "replace-one"))
    Traceback (most recent call last):
    ValueError: adjacency must be one of 'add-remove', 'replace-one', got 'swap'.
    """
    boolean = isinstance(value, (bool, np.bool_))
    for choice in choices:
        if np.isscalar(value) and boolean == isinstance(choice, bool) and value == choice:
            return choice
    listed = ", ".join(repr(choice) for choice in choices)
    raise ValueError(f"{name} must be one of {listed}, got {value!r}.")


def generator(rng):
    """Return `rng` if it is a NumPy Generator; seeds, None and the old RandomState are refused.

    >>> generator(7)
    Traceback (most recent call last):
    TypeError: rng must be a numpy Generator such as np.random.default_rng(7), got 7.
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a numpy Generator such as np.random.default_rng(7), got {rng!r}."
        )
    return rng


def unmasked(values, name):
    """Return `values` if it is no masked array, whose hidden values NumPy would quietly use.

    >>> unmasked(np.ma.array([1, 2], mask=[0, 1]), "values")
    Traceback (most recent call last):
    TypeError: values must not be a masked array; pass the values to use, .compressed() gives them.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must not be a masked array; pass the values to use, .compressed() gives them."
        )
    return values


def finite_array(values, name, *, ndim=None):
    """Return `values` as a float64 array without NaN or infinity; the input is never modified.

    Masked arrays are refused.

    >>> finite_array([1, float("nan")], "values")
    Traceback (most recent call last):
    ValueError: values must hold finite numbers only, got nan at position 1.
    """
    try:
        array = np.asarray(unmasked(values, name))
    except ValueError:
        message = f"{name} must be an array of numbers, got rows of unequal length."
        raise TypeError(message) from None
    if array.dtype.kind not in "iuf" and array.size:
        raise TypeError(f"{name} must be an array of numbers, got {array.dtype} values.")
    if ndim is not None and array.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} dimension(s), got shape {array.shape}.")
    array = array.astype(np.float64)
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        at = tuple(int(i) for i in wrong[0])
        where = at[0] if len(at) == 1 else at
        raise ValueError(
            f"{name} must hold finite numbers only, got {float(array[at])} at position {where}."
        )
    return array
