"""coursekit._arguments where the tests of the public functions do not reach."""

import numpy as np
import pytest

from coursekit import _arguments

ADJACENCIES = ("add-remove", "replace-one")


@pytest.mark.parametrize(("value", "choices", "expected"), [
    (np.int64(1), (1, 2), 1),
    (2.0, (1, 2), 2),
    (np.str_("add-remove"), ADJACENCIES, "add-remove"),
    (np.True_, (True, False), True),
    (np.False_, (True, False), False),
])
def test_an_equal_scalar_is_the_choice(value, choices, expected):
    chosen = _arguments.one_of(value, "choice", choices)
    assert chosen == expected
    assert type(chosen) is type(expected)


@pytest.mark.parametrize(("value", "choices"), [
    (True, (1, 2)), (np.True_, (1, 2)), (1, (True, False)), (np.int64(0), (True, False)),
    (np.array([1, 2]), (1, 2)), ([1], (1, 2)), (None, (1, 2)), ("1", (1, 2)), (3, (1, 2)),
])
def test_anything_else_is_refused(value, choices):
    with pytest.raises(ValueError, match=r"^choice must be one of .*, got "):
        _arguments.one_of(value, "choice", choices)


def test_a_masked_array_is_refused_even_if_nothing_is_hidden():
    for masked in (np.ma.array([1.0, 2.0]), np.ma.array([1.0, 9999.0], mask=[0, 1])):
        with pytest.raises(TypeError, match=r"^values must not be a masked array; .*\.$"):
            _arguments.finite_array(masked, "values")
