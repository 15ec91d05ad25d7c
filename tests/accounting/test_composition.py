"""Composition theorems against exact enumeration, and the figures they are known by."""

import itertools
import math

import numpy as np
import pytest

from coursekit.accounting import advanced_composition, basic_composition, optimal_composition
from coursekit.neighbours import smallest_epsilon

PUBLISHED = [  # epsilon, count, best of basic and advanced, optimal: at delta 1e-5
    (0.1, 10, 1.0, 0.99369), (0.1, 100, 5.85024, 4.30679), (0.5, 20, 10.0, 9.85941),
    (0.01, 1000, 1.61793, 1.19773), (0.1, 1000, 25.69136, 17.78713),
]


def enumerated(epsilon, count, delta):
    """The smallest epsilon of `count` randomised responses, from all 2^count transcripts."""
    truth = 1 / (1 + math.exp(-epsilon))
    p = [math.prod(answers) for answers in itertools.product((truth, 1 - truth), repeat=count)]
    return smallest_epsilon(np.array(p), np.array(p[::-1]), delta)


def test_basic_adds_both():
    assert basic_composition([0.1, 1, 10], [0, 1e-6, 2e-6]) == (11.1, 3e-6)
    assert basic_composition([0.1] * 10, 0.0) == (1.0, 0.0)  # exactly: no rounding creeps in


@pytest.mark.parametrize("epsilon, count, advanced, optimal", PUBLISHED)
def test_published_figures(epsilon, count, advanced, optimal):
    best, total = advanced_composition(epsilon, 0.0, count=count, slack=1e-5)
    assert min(best, count * epsilon) == pytest.approx(advanced, abs=1e-5) and total == 1e-5
    best, total = optimal_composition(epsilon, 0.0, count=count, slack=1e-5)
    assert best == pytest.approx(optimal, abs=1e-5) and total == pytest.approx(1e-5, rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("count", [1, 2, 5, 11])
@pytest.mark.parametrize("delta", [1e-9, 1e-3, 0.2])
def test_optimal_equals_enumeration(epsilon, count, delta):
    ours, _ = optimal_composition(epsilon, 0.0, count=count, slack=delta)
    assert ours == pytest.approx(enumerated(epsilon, count, delta), rel=1e-9, abs=1e-12)


def test_a_million_releases_and_a_part_with_delta():
    epsilon, delta = optimal_composition(0.001, 1e-12, count=10**6, slack=1e-6)
    mean, deviation = 10**6 * 0.001 * math.tanh(0.0005), 1.0  # of the sum, a normal law by now
    assert mean + 4 * deviation < epsilon < mean + 5 * deviation
    assert delta == pytest.approx(2e-6, rel=1e-5)


def test_deltas_of_the_parts_are_paid():
    assert advanced_composition(0.1, 1e-7, count=20, slack=1e-5)[1] == pytest.approx(1.2e-5)
    assert advanced_composition(1000, 0, count=2, slack=0.1)[0] == math.inf  # promises nothing


def test_advanced_needs_its_second_term():
    """Without k epsilon (e^epsilon - 1) the formula falls below the exact optimum."""
    optimal, _ = optimal_composition(1.0, 0.0, count=100, slack=1e-5)
    assert 1.0 * math.sqrt(200 * math.log(1e5)) < 0.7 * optimal
    assert advanced_composition(1.0, 0.0, count=100, slack=1e-5)[0] > optimal


@pytest.mark.parametrize("call", [
    lambda: basic_composition([-0.1], [0]), lambda: basic_composition([0.1], [1.0]),
    lambda: basic_composition([math.nan], [0]), lambda: basic_composition([0.1, 1], [0, 0, 0]),
    lambda: advanced_composition(0.1, 0, count=0, slack=0.1),
    lambda: advanced_composition(0.1, 0, count=2, slack=0),
    lambda: optimal_composition(-1, 0, count=2, slack=0.1),
    lambda: optimal_composition(1, 0, count=2, slack=1),
])
def test_refuses(call):
    with pytest.raises(ValueError):
        call()


def test_refuses_half_a_release():
    with pytest.raises(TypeError):
        optimal_composition(1, 0, count=2.5, slack=0.1)
