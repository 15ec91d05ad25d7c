"""coursekit.neighbours against enumeration, closed forms and linear programming."""

import math
import sys
from collections import Counter
from fractions import Fraction
from itertools import combinations, combinations_with_replacement, pairwise, product
from subprocess import run
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import norm

from coursekit import neighbours as module
from coursekit.neighbours import (
    global_sensitivity,
    group_privacy,
    hockey_stick,
    largest_advantage,
    neighbours,
    optimal_roc,
    smallest_epsilon,
    tpr_bounds,
)

ADJACENCIES = ("add-remove", "replace-one")


# Neighbours


def multiset(records):
    return frozenset(Counter(records).items())


def multisets(universe, sizes):
    return [records for n in sizes for records in combinations_with_replacement(universe, n)]


def are_neighbours(a, b, adjacency):
    """The definition, from the two multisets' differences."""
    only_a, only_b = Counter(a) - Counter(b), Counter(b) - Counter(a)
    counts = sorted([only_a.total(), only_b.total()])
    return counts == ([0, 1] if adjacency == "add-remove" else [1, 1])


def test_neighbours_of_a_small_data_set_by_hand():
    records = ("b", "a", "b")
    assert neighbours(records, adjacency="add-remove", universe="abc") == [
        ("a", "b"),
        ("b", "b"),
        ("b", "a", "b", "a"),
        ("b", "a", "b", "b"),
        ("b", "a", "b", "c"),
    ]
    assert neighbours(records, adjacency="replace-one", universe="abc") == [
        ("a", "a", "b"),
        ("c", "a", "b"),
        ("b", "b", "b"),
        ("b", "c", "b"),
    ]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("universe", [(7,), (0, 1), (0, 1, 2), ("x", 1, (2, 3))])
def test_neighbours_are_those_of_the_definition_each_once(adjacency, universe):
    everything = multisets(universe, range(6))
    for records in multisets(universe, range(5)):
        listed = [multiset(other) for other in neighbours(records, adjacency=adjacency,
                                                          universe=universe)]
        expected = {multiset(o) for o in everything if are_neighbours(records, o, adjacency)}
        assert len(listed) == len(set(listed))
        assert set(listed) == expected


def test_the_empty_data_set_has_only_added_neighbours():
    assert neighbours([], adjacency="add-remove", universe=[1, 2]) == [(1,), (2,)]
    assert neighbours([], adjacency="replace-one", universe=[1, 2]) == []


def test_duplicates_in_the_universe_change_nothing():
    for adjacency in ADJACENCIES:
        assert neighbours([1], adjacency=adjacency, universe=[1, 2, 1, 2]) == neighbours(
            [1], adjacency=adjacency, universe=[1, 2]
        )


def test_records_and_universe_may_be_arrays_and_stay_as_they_were():
    records, universe = np.array([1, 2]), np.array([1, 2, 3])
    assert neighbours(records, adjacency="replace-one", universe=universe) == [
        (2, 2), (3, 2), (1, 1), (1, 3),
    ]  # fmt: skip
    assert records.tolist() == [1, 2]


# Global sensitivity


def clip_to_ball(bound):
    # The corners of an octagon of that radius: each v comes with -v.
    angles = np.arange(8) * np.pi / 4
    return [(bound * math.cos(a), bound * math.sin(a)) for a in angles]


def vector_sum(records):
    return np.sum(np.array(records).reshape(-1, 2), axis=0)


def histogram(records):
    return [records.count(value) for value in "abc"]


C = 1.5
CLOSED_FORMS = [
    # query, universe, size, norm, add-remove, replace-one: the known sensitivities
    ("count of ages over 40", lambda d: sum(x > 40 for x in d), (30, 50), 4, 1, 1, 1),
    ("number of records", len, (30, 50), 4, 1, 1, 0),
    ("sum in [0, 100]", sum, (0, 25, 50, 100), 4, 1, 100, 100),
    ("sum in [-100, 100]", sum, (-100, 0, 100), 4, 1, 100, 200),
    ("vector sum in an L2 ball", vector_sum, clip_to_ball(C), 3, 2, C, 2 * C),
    ("histogram, L1", histogram, "abc", 4, 1, 1, 2),
    ("histogram, L2", histogram, "abc", 4, 2, 1, math.sqrt(2)),
    ("mean", np.mean, (0, 50, 100), 4, 1, 50, 100 / 4),
    ("maximum", max, (0, 1, 10), 3, 1, 10, 10),
    ("constant", lambda d: 7, (0, 1), 3, 1, 0, 0),
]


@pytest.mark.parametrize("case", CLOSED_FORMS, ids=[case[0] for case in CLOSED_FORMS])
def test_sensitivities_known_in_closed_form(case):
    _, query, universe, size, ord, add_remove, replace_one = case
    for adjacency, expected in zip(ADJACENCIES, (add_remove, replace_one), strict=True):
        found = global_sensitivity(
            query, universe=universe, size=size, adjacency=adjacency, norm=ord
        )
        assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_mean_with_public_and_with_private_n(n):
    def ask(adjacency, **options):
        return global_sensitivity(
            lambda d: sum(d) / len(d) if d else 0, universe=[0, 100], size=n,
            adjacency=adjacency, **options,
        )  # fmt: skip

    assert ask("replace-one") == pytest.approx(100 / n)
    assert ask("add-remove") == pytest.approx(50)
    assert ask("add-remove", smallest=0) == pytest.approx(100)
    # With n known to be at least m, one record more moves the mean by 100 / (m + 1).
    assert ask("add-remove", smallest=n) == pytest.approx(100 / (n + 1))


def test_a_universe_of_hundreds_is_compared_whole():
    # The extremes stand far apart in the universe, so that no part of it can be left out.
    universe = [*range(1, 240), 1000, *range(240, 450), -7]
    for adjacency, expected in (("add-remove", 1000), ("replace-one", 1007)):
        found = global_sensitivity(sum, universe=universe, size=1, adjacency=adjacency)
        assert found == expected


def by_definition(query, universe, size, adjacency, ord, smallest):
    sizes = range(smallest, size + 2) if adjacency == "add-remove" else [size]
    return max(
        np.linalg.norm(np.atleast_1d(query(a)) - np.atleast_1d(query(b)), ord=ord)
        for a in multisets(universe, sizes)
        for b in multisets(universe, sizes)
        if a == b or are_neighbours(a, b, adjacency)
    )


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("ord", [1, 2])
def test_any_query_agrees_with_the_definition(adjacency, ord):
    rng = np.random.default_rng(1)
    for universe, size, smallest in [((0, 1, 2), 3, 0), ((0, 1, 2), 2, 1), ("xy", 4, 2)]:
        table = {multiset(d): rng.normal(size=2) for d in multisets(universe, range(size + 2))}

        def query(records, table=table):
            return table[multiset(records)]

        found = global_sensitivity(query, universe=universe, size=size, adjacency=adjacency,
                                   norm=ord, smallest=smallest)
        expected = by_definition(query, universe, size, adjacency, ord, smallest)
        assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("adjacency, sizes", [("add-remove", (1, 2, 3, 4)), ("replace-one", (3,))])
def test_each_data_set_is_asked_about_once(adjacency, sizes):
    asked = []

    def query(records):
        assert isinstance(records, tuple)
        asked.append(multiset(records))
        return len(records)

    global_sensitivity(query, universe=[1, 2, 3], size=3, adjacency=adjacency)
    assert len(asked) == len(set(asked))
    assert set(asked) == {multiset(d) for d in multisets([1, 2, 3], sizes)}


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_a_search_too_large_is_refused_before_it_starts(adjacency):
    def query(records):
        raise AssertionError("asked")

    # range(101): C(100 + 12, 12) data sets of 12 records.
    with pytest.raises(ValueError, match="at most 2,000,000 data sets"):
        global_sensitivity(query, universe=range(101), size=12, adjacency=adjacency)
    # Few data sets and still too many pairs.
    with pytest.raises(ValueError, match="pairs of neighbours"):
        global_sensitivity(query, universe=range(30_000), size=1, adjacency=adjacency)


@pytest.mark.parametrize("adjacency, sizes", [("add-remove", (1, 2, 3, 4)), ("replace-one", (3,))])
def test_the_limits_of_a_search_count_what_it_covers(adjacency, sizes, monkeypatch):
    universe = range(5)
    shared_sizes = sizes[:-1] if adjacency == "add-remove" else (2,)
    data_sets = len(multisets(universe, sizes))
    completions = 5 if adjacency == "add-remove" else math.comb(5, 2)
    pairs = len(multisets(universe, shared_sizes)) * completions
    for limit, count in (("MOST_DATA_SETS", data_sets), ("MOST_PAIRS", pairs)):
        with monkeypatch.context() as patch:
            patch.setattr(module, limit, count)
            assert global_sensitivity(len, universe=universe, size=3, adjacency=adjacency) >= 0
            patch.setattr(module, limit, count - 1)
            with pytest.raises(ValueError, match="this one has more"):
                global_sensitivity(never, universe=universe, size=3, adjacency=adjacency)


HUGE = [
    dict(universe=range(300), size=10**400),
    dict(universe=range(300), size=10**6),
    dict(universe=range(300), size=10**4),
    dict(universe=range(10**12), size=2),
    dict(universe=range(10**5), size=10**4),
    dict(universe=[0], size=10**400),
]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("case", HUGE, ids=str)
def test_a_huge_search_is_refused_in_no_time(adjacency, case):
    start = perf_counter()
    with pytest.raises(ValueError, match="at most"):
        global_sensitivity(never, adjacency=adjacency, **case)
    assert perf_counter() - start < 20


def test_a_list_too_long_is_refused_with_its_count():
    everything = range(3000)
    for adjacency, count in (("add-remove", "6,000"), ("replace-one", "8,997,000")):
        with pytest.raises(ValueError, match=f"3,000 records has {count} neighbours; .* at most"):
            neighbours(everything, adjacency=adjacency, universe=everything)
    with pytest.raises(ValueError, match="records must hold at most 100,000 records"):
        neighbours(range(10**12), adjacency="add-remove", universe=[0])


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_limit_of_a_list_counts_its_records(adjacency, monkeypatch):
    arguments = dict(adjacency=adjacency, universe=range(5))
    records = (0, 1, 1, 2)
    count = len(neighbours(records, **arguments)) * len(records)
    monkeypatch.setattr(module, "MOST_LISTED", count)
    neighbours(records, **arguments)
    monkeypatch.setattr(module, "MOST_LISTED", count - 1)
    with pytest.raises(ValueError, match="neighbours; together"):
        neighbours(records, **arguments)


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.float16])
def test_numbers_of_numpy_are_python_numbers_to_a_query(kind):
    values = np.array([50, 100], kind)
    for universe in (values, list(values)):
        for adjacency, expected in (("add-remove", 100), ("replace-one", 50)):
            found = global_sensitivity(sum, universe=universe, size=5, adjacency=adjacency)
            assert found == expected

    def first_of_each(records):
        return sum(vector[0] for vector in records)

    pairs = np.array([[50, 0], [100, 0]], kind)
    for universe in (pairs, list(pairs), [tuple(pair) for pair in pairs]):
        assert search(first_of_each, universe=universe, size=5) == 100
        found = neighbours(universe[:1], adjacency="add-remove", universe=universe)
        assert found == [(), ((50, 0), (50, 0)), ((50, 0), (100, 0))]
        assert type(found[1][0][0]) in (int, float)
    (number,) = neighbours([], adjacency="add-remove", universe=values[:1])[0]
    assert type(number) in (int, float)


def test_exact_answers_are_taken():
    assert search(lambda d: Fraction(sum(d), 4)) == 0.25
    assert search(lambda d: [Fraction(sum(d), 4), sum(d)]) == 1.25
    assert search(lambda d: 2**70 * sum(d)) == 2.0**70


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("norm", [1, 2])
def test_changes_beyond_float64_are_refused(norm):
    for query in (lambda d: (-1) ** sum(d) * 1e308, lambda d: [(-1) ** sum(d) * 1e308] * 2):
        with pytest.raises(ValueError, match=r"changes overflow float64\.$"):
            search(query, norm=norm)


def test_numpy_scalars_are_taken_as_choices():
    for ord, expected in ((1, 2), (2, math.sqrt(2))):
        found = search(lambda d: [sum(d)] * 2, norm=np.int64(ord), adjacency=np.str_("add-remove"))
        assert found == pytest.approx(expected)


# Two distributions


def distributions(outcomes):
    def normalised(weights):
        return np.array(weights) / sum(weights)

    # Small whole weights give ties, zeros on one side, and zeros on both.
    weights = st.lists(st.integers(0, 6), min_size=outcomes, max_size=outcomes)
    return weights.filter(any).map(normalised)


PAIRS = st.integers(1, 7).flatmap(lambda k: st.tuples(distributions(k), distributions(k)))
EPSILONS = st.one_of(st.just(0.0), st.floats(0, 5), st.floats(600, 1000))
DELTAS = st.one_of(st.just(0.0), st.floats(1e-6, 1))


def events(outcomes):
    for k in range(outcomes + 1):
        yield from (list(event) for event in combinations(range(outcomes), k))


@given(PAIRS, st.floats(0, 5))
@settings(deadline=None, derandomize=True)
def test_hockey_stick_is_the_largest_excess_of_any_event(pair, epsilon):
    p, q = pair
    largest = max(p[s].sum() - math.exp(epsilon) * q[s].sum() for s in events(len(p)))
    assert hockey_stick(p, q, epsilon) == pytest.approx(largest, abs=1e-9)


def test_hockey_stick_is_one_direction_only():
    p, q = [0.5, 0.5, 0.0], [0.25, 0.25, 0.5]
    assert hockey_stick(p, q, math.log(2)) == pytest.approx(0)
    assert hockey_stick(q, p, math.log(2)) == pytest.approx(0.5)


def epsilon_by_events(p, q, delta):
    """The least epsilon from the definition: each event of each direction asks for its own."""
    asks = [0.0]
    for a, b in ((p, q), (q, p)):
        for s in events(len(p)):
            excess, weight = a[s].sum() - delta, b[s].sum()
            if excess > 1e-12:
                asks.append(math.log(excess / weight) if weight > 0 else math.inf)
    return max(asks)


def epsilon_by_linear_programming(p, q, delta):
    """The least t >= 1 with p <= t q + excess, q <= t p + excess' and both excesses <= delta."""
    k = len(p)
    cost = np.r_[1.0, np.zeros(2 * k)]
    rows = np.block([
        [-q[:, None], -np.eye(k), np.zeros((k, k))],
        [-p[:, None], np.zeros((k, k)), -np.eye(k)],
        [np.zeros((1, 1)), np.ones((1, k)), np.zeros((1, k))],
        [np.zeros((1, 1)), np.zeros((1, k)), np.ones((1, k))],
    ])  # fmt: skip
    limits = np.r_[-p, -q, delta, delta]
    bounds = [(1, None)] + [(0, None)] * (2 * k)
    found = linprog(cost, A_ub=rows, b_ub=limits, bounds=bounds, method="highs")
    return math.log(found.x[0]) if found.status == 0 else math.inf


# Deltas that are no difference of these masses, so that no event stands on a knife's edge.
SAFE_DELTAS = st.sampled_from([0.0, 0.0101, 0.0473, 0.1234567, 0.31415926, 0.577, 1.0])


@given(PAIRS, SAFE_DELTAS)
@settings(deadline=None, derandomize=True, max_examples=300)
def test_smallest_epsilon_agrees_with_all_events(pair, delta):
    expected = epsilon_by_events(*pair, delta)
    assert smallest_epsilon(*pair, delta) == pytest.approx(expected, abs=1e-9)


@given(PAIRS, SAFE_DELTAS)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_smallest_epsilon_agrees_with_linear_programming(pair, delta):
    expected = epsilon_by_linear_programming(*pair, delta)
    assert smallest_epsilon(*pair, delta) == pytest.approx(expected, abs=1e-6)


@given(PAIRS, DELTAS)
@settings(deadline=None, derandomize=True)
def test_smallest_epsilon_holds_and_nothing_below_it_does(pair, delta):
    p, q = pair
    epsilon = smallest_epsilon(p, q, delta)
    assert epsilon >= 0
    worst = max(hockey_stick(p, q, 700), hockey_stick(q, p, 700))
    if epsilon == math.inf:
        assert worst > delta
        return
    assert max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon)) <= delta + 1e-12
    if epsilon > 1e-3:
        below = epsilon * (1 - 1e-6)
        assert max(hockey_stick(p, q, below), hockey_stick(q, p, below)) > delta


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 8.0, 30.0])
def test_randomised_response_in_closed_form(epsilon):
    truth = 1 / (1 + math.exp(-epsilon))
    p, q = np.array([truth, 1 - truth]), np.array([1 - truth, truth])
    assert smallest_epsilon(p, q) == pytest.approx(epsilon, rel=1e-3 if epsilon == 30 else 1e-9)
    for delta in (0.01, 0.2, 0.4):
        expected = max(0, math.log(max(truth - delta, 1e-300) / (1 - truth)))
        assert smallest_epsilon(p, q, delta) == pytest.approx(expected, rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("mu, epsilon", [(0.5, 0.1), (0.5, 1), (1, 0.5), (1, 4), (3, 1), (3, 8)])
def test_gaussian_noise_in_closed_form(mu, epsilon):
    # Balle and Wang (2018), theorem 8. Events are half-lines, so bins lose nothing as long as
    # the two thresholds (one a direction) are edges of bins.
    delta = norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    thresholds = [mu / 2 - epsilon / mu, mu / 2 + epsilon / mu]
    edges = np.r_[-np.inf, np.sort(np.r_[np.linspace(-6, 9, 40), thresholds]), np.inf]
    p, q = np.diff(norm.cdf(edges)), np.diff(norm.cdf(edges, loc=mu))
    assert hockey_stick(p, q, epsilon) == pytest.approx(delta, abs=1e-12)
    assert smallest_epsilon(p, q, delta) == pytest.approx(epsilon, abs=1e-6)


def test_laplace_noise_in_closed_form():
    # Noise of scale 1 / epsilon on answers 0 and 1: delta(e) = 1 - exp((e - epsilon) / 2).
    epsilon, smaller = 2.0, 0.7
    edges = np.r_[-np.inf, np.sort(np.r_[np.linspace(0, 1, 21), 0.5 + smaller / 2 / epsilon,
                                         0.5 - smaller / 2 / epsilon]), np.inf]

    def cdf(x):
        return np.where(x < 0, np.exp(epsilon * np.minimum(x, 0)) / 2,
                        1 - np.exp(-epsilon * np.maximum(x, 0)) / 2)

    p, q = np.diff(cdf(edges)), np.diff(cdf(edges - 1))
    delta = 1 - math.exp((smaller - epsilon) / 2)
    assert smallest_epsilon(p, q) == pytest.approx(epsilon)
    assert hockey_stick(p, q, smaller) == pytest.approx(delta)
    assert smallest_epsilon(p, q, delta) == pytest.approx(smaller)


def test_smallest_epsilon_looks_both_ways():
    p, q = np.array([0.5, 0.5]), np.array([0.1, 0.9])
    assert smallest_epsilon(p, q) == smallest_epsilon(q, p) == pytest.approx(math.log(5))
    assert smallest_epsilon([1, 0], [0.5, 0.5]) == smallest_epsilon([0.5, 0.5], [1, 0]) == math.inf


def test_delta_pays_for_impossible_outcomes_or_nothing_does():
    p, q = [0.25, 0.75, 0.0], [0.0, 0.75, 0.25]
    assert smallest_epsilon(p, q, 0.2499) == math.inf
    assert smallest_epsilon(p, q, 0.25) == 0
    assert smallest_epsilon(p, q) == math.inf
    # All of delta is spent on the first outcome; the third then asks for log(0.25 / 0.125).
    p, q = [0.25, 0.5, 0.25], [0.0, 0.875, 0.125]
    assert smallest_epsilon(p, q, 0.25) == pytest.approx(math.log(2))


@given(PAIRS)
@settings(deadline=None, derandomize=True)
def test_no_epsilon_is_needed_from_the_total_variation_on(pair):
    p, q = pair
    distance = np.abs(p - q).sum() / 2
    assert smallest_epsilon(p, p) == 0
    assert smallest_epsilon(p, q, min(1, distance + 1e-12)) == 0
    assert smallest_epsilon(p, q, distance) == pytest.approx(0, abs=1e-9)
    if distance > 0:
        assert smallest_epsilon(p, q, distance * 0.99) > 0


@given(PAIRS, EPSILONS, DELTAS, st.integers(0, 2**32))
@settings(deadline=None, derandomize=True)
def test_nothing_done_to_the_output_helps_an_attacker(pair, epsilon, delta, seed):
    p, q = pair
    channel = np.random.default_rng(seed).dirichlet(np.ones(3), size=len(p))
    assert hockey_stick(p @ channel, q @ channel, epsilon) <= hockey_stick(p, q, epsilon) + 1e-12
    before = smallest_epsilon(p, q, delta)
    assert smallest_epsilon(p @ channel, q @ channel, delta) <= before + 1e-9


def test_tiny_probabilities_and_huge_epsilons_do_not_overflow():
    p, q = [1 - 1e-300, 1e-300], [1e-300, 1 - 1e-300]
    assert smallest_epsilon(p, q) == pytest.approx(300 * math.log(10))
    assert hockey_stick(p, q, 680.0) == pytest.approx(1 - math.exp(680 - 300 * math.log(10)))
    assert hockey_stick(p, q, 1e308) == 0
    assert hockey_stick([1.0, 0.0], [0.0, 1.0], 1e308) == 1


# Groups


def randomised_response_on(bits, epsilon):
    """The exact distribution of independently randomised bits over all outputs."""
    truth = math.exp(epsilon) / (1 + math.exp(epsilon))
    outputs = product((0, 1), repeat=len(bits))
    return np.array([
        math.prod(truth if a == b else 1 - truth for a, b in zip(bits, output, strict=True))
        for output in outputs
    ])  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_pure_group_privacy_is_reached_by_randomised_response(size):
    zeros, ones = (randomised_response_on([bit] * 6, 0.4) for bit in (0, 1))
    some = randomised_response_on([1] * size + [0] * (6 - size), 0.4)
    group_epsilon, group_delta = group_privacy(0.4, size=size)
    assert group_delta == 0
    assert smallest_epsilon(zeros, some) == pytest.approx(group_epsilon)
    assert smallest_epsilon(zeros, ones) == pytest.approx(6 * 0.4)


@pytest.mark.parametrize("epsilon, delta, size", [
    (0.5, 0.01, 1), (0.5, 0.01, 4), (0.0, 0.05, 7), (1.0, 0.02, 3), (0.1, 1e-6, 9), (3.0, 1e-5, 4),
])  # fmt: skip
def test_approximate_group_privacy_is_reached_by_a_chain(epsilon, delta, size):
    # Data set i says "yes" with probability yes[i], each as far from the next as is allowed.
    yes = [0.0]
    for _ in range(size):
        yes.append(math.exp(epsilon) * yes[-1] + delta)
    assert yes[-1] <= 0.5
    chain = [np.array([y, 1 - y]) for y in yes]
    for a, b in pairwise(chain):
        assert smallest_epsilon(a, b, delta) <= epsilon + 1e-9
    group_epsilon, group_delta = group_privacy(epsilon, delta, size=size)
    assert group_epsilon == pytest.approx(size * epsilon)
    assert hockey_stick(chain[-1], chain[0], group_epsilon) == pytest.approx(group_delta)


@given(st.floats(0, 2), st.floats(0, 0.3), st.integers(1, 4), st.integers(0, 2**32))
@settings(deadline=None, derandomize=True)
def test_group_privacy_holds_along_any_chain(epsilon, delta, size, seed):
    rng = np.random.default_rng(seed)
    chain = [rng.dirichlet(np.ones(3))]
    for _ in range(size):
        # A step towards a random distribution, halved until the promise holds.
        step, target = 1.0, rng.dirichlet(np.ones(3) / 2)
        while smallest_epsilon(chain[-1], (1 - step) * chain[-1] + step * target, delta) > epsilon:
            step = step / 2 if step > 1e-6 else 0.0
        chain.append((1 - step) * chain[-1] + step * target)
    group_epsilon, group_delta = group_privacy(epsilon, delta, size=size)
    for a, b in ((chain[0], chain[-1]), (chain[-1], chain[0])):
        assert hockey_stick(a, b, group_epsilon) <= group_delta + 1e-9


def test_group_delta_is_at_most_one_and_never_overflows():
    assert group_privacy(1.0, 0.2, size=5) == (5.0, 1.0)
    assert group_privacy(800.0, 1e-9, size=1) == (800.0, 1e-9)
    assert group_privacy(800.0, 1e-9, size=2) == (1600.0, 1.0)
    assert group_privacy(800.0, size=10**12) == (8e14, 0.0)
    assert group_privacy(0.0, 1e-12, size=10**9) == (0.0, pytest.approx(1e-3))


# The region of (FPR, TPR)


def extremal(epsilon, delta):
    """The mechanism of Kairouz, Oh and Viswanath (2015) that dominates all others."""
    likely = (1 - delta) * math.exp(epsilon) / (1 + math.exp(epsilon))
    unlikely = (1 - delta) / (1 + math.exp(epsilon))
    return np.array([delta, likely, unlikely, 0]), np.array([0, unlikely, likely, delta])


SETTINGS = [(0.0, 0.0), (0.0, 0.1), (0.5, 0.0), (1.0, 1e-5), (1.0, 0.2), (3.0, 0.05), (2.0, 1.0)]


@pytest.mark.parametrize("epsilon, delta", SETTINGS)
def test_every_corner_is_reached_by_an_event_of_the_extremal_mechanism(epsilon, delta):
    p, q = extremal(epsilon, delta)
    assert smallest_epsilon(p, q, delta) == pytest.approx(epsilon if delta < 1 else 0, abs=1e-9)
    for s in events(4):
        lower, upper = tpr_bounds(min(1, q[s].sum()), epsilon=epsilon, delta=delta)
        assert lower - 1e-9 <= p[s].sum() <= upper + 1e-9
    # The best test and its opposite (swap the decisions) run along both edges.
    fpr, tpr = optimal_roc(p, q)
    grid = np.linspace(0, 1, 101)
    grid = grid[(grid > 1e-9) & (grid < 1 - 1e-9)]  # a jump at 0 has two values
    lower, upper = tpr_bounds(grid, epsilon=epsilon, delta=delta)
    assert upper == pytest.approx(np.interp(grid, fpr, tpr), abs=1e-9)
    assert lower == pytest.approx(np.interp(grid, 1 - fpr[::-1], 1 - tpr[::-1]), abs=1e-9)


@given(PAIRS, DELTAS)
@settings(deadline=None, derandomize=True)
def test_no_event_of_a_private_mechanism_leaves_the_region(pair, delta):
    p, q = pair
    epsilon = smallest_epsilon(p, q, delta)
    if epsilon == math.inf:
        return
    for s in events(len(p)):
        fpr, tpr = min(1, q[s].sum()), p[s].sum()
        lower, upper = tpr_bounds(fpr, epsilon=epsilon, delta=delta)
        assert lower - 1e-9 <= tpr <= upper + 1e-9


@pytest.mark.parametrize("epsilon, delta", SETTINGS)
def test_the_region_is_what_its_four_lines_leave(epsilon, delta):
    grid = np.linspace(0, 1, 41)
    f, t = np.meshgrid(grid, grid, indexing="ij")
    e = math.exp(epsilon)
    lines = [
        (t, e * f + delta), (f, e * t + delta),
        (1 - t, e * (1 - f) + delta), (1 - f, e * (1 - t) + delta),
    ]  # fmt: skip
    # Off the edge by a hair, where rounding decides.
    slack = np.min([right - left for left, right in lines], axis=0)
    clear = np.abs(slack) > 1e-9
    lower, upper = tpr_bounds(grid, epsilon=epsilon, delta=delta)
    inside = (lower[:, None] <= t) & (t <= upper[:, None])
    assert np.array_equal(inside[clear], (slack > 0)[clear])


def test_bounds_keep_the_shape_of_fpr_and_leave_it_as_it_was():
    fpr = np.full((2, 3), 0.1)
    lower, upper = tpr_bounds(fpr, epsilon=1.0)
    assert lower.shape == upper.shape == (2, 3)
    assert upper == pytest.approx(np.full((2, 3), 0.1 * math.e))
    assert np.all(fpr == 0.1)
    assert [np.shape(bound) for bound in tpr_bounds(0.1, epsilon=1.0)] == [(), ()]
    assert [bound.shape for bound in tpr_bounds([], epsilon=1.0)] == [(0,), (0,)]


def test_a_huge_epsilon_allows_everything_and_warns_of_nothing():
    lower, upper = tpr_bounds([0, 1e-9, 0.5, 1], epsilon=1e6, delta=0.25)
    assert upper.tolist() == [0.25, 1, 1, 1]
    assert lower == pytest.approx([0, 0, 0, 0.75], abs=1e-300)
    assert largest_advantage(1e6) == 1


@pytest.mark.parametrize("epsilon, delta", SETTINGS)
def test_largest_advantage_is_the_widest_gap_of_the_region(epsilon, delta):
    corner = (1 - delta) / (1 + math.exp(epsilon))
    fpr = np.append(np.linspace(0, 1, 1001), corner)
    _, upper = tpr_bounds(fpr, epsilon=epsilon, delta=delta)
    expected = (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
    assert largest_advantage(epsilon, delta) == pytest.approx(expected, abs=1e-12)
    assert largest_advantage(epsilon, delta) == pytest.approx(np.max(upper - fpr), abs=1e-12)
    p, q = extremal(epsilon, delta)
    assert largest_advantage(epsilon, delta) == pytest.approx(np.abs(p - q).sum() / 2)


def test_balanced_accuracies_of_the_course():
    accuracies = [100 * (1 + largest_advantage(epsilon)) / 2 for epsilon in (0.5, 2, 8)]
    assert accuracies == pytest.approx([62.246, 88.080, 99.966], abs=1e-3)


@given(PAIRS)
@settings(deadline=None, derandomize=True)
def test_optimal_roc_is_the_best_of_all_randomised_tests(pair):
    p, q = pair
    fpr, tpr = optimal_roc(p, q)
    assert len(fpr) == len(tpr) == len(p) + 1
    assert (fpr[0], tpr[0]) == (0, 0)
    assert (fpr[-1], tpr[-1]) == pytest.approx((1, 1))
    assert np.all(np.diff(fpr) >= 0) and np.all(np.diff(tpr) >= 0)
    assert np.max(fpr) <= 1 and np.max(tpr) <= 1
    # A test is a probability of "member" for each outcome: the best at this FPR is a linear
    # program.
    for budget in (0.05, 0.3, 0.8):
        best = linprog(-p, A_ub=[q], b_ub=[budget], bounds=(0, 1), method="highs")
        assert np.interp(budget, fpr, tpr) == pytest.approx(-best.fun, abs=1e-7)


def test_rounding_never_carries_a_curve_beyond_its_square():
    p = np.array([1, 6, 3, 3]) / 13
    assert np.cumsum(p)[-1] > 1
    fpr, tpr = optimal_roc(p, p)
    assert (fpr[-1], tpr[-1]) == (1, 1)
    tpr_bounds(fpr, epsilon=1.0)


# Refusals


def never(records):
    raise AssertionError("the query was asked before its arguments were checked")


def search(query=never, **changes):
    arguments = {"universe": [0, 1], "size": 2, "adjacency": "add-remove", **changes}
    return global_sensitivity(query, **arguments)


HALF = [0.5, 0.5]
NAN, INF = float("nan"), float("inf")
MASKED = np.ma.array([1.0, 0.0], mask=[0, 1])
REFUSALS = [
    # what is done, the error, words of its sentence
    (lambda: neighbours([1], adjacency="swap", universe=[1]), ValueError, "'swap'"),
    (lambda: neighbours([3], adjacency="add-remove", universe=[1]), ValueError, "record 3"),
    (lambda: neighbours([1], adjacency="add-remove", universe=[]), ValueError, "got none"),
    (lambda: neighbours([[1]], adjacency="add-remove", universe=[1]), TypeError, "type list"),
    (lambda: neighbours([1], adjacency="add-remove", universe=[[1]]), TypeError, "universe"),
    (
        lambda: neighbours(np.ones((1, 2)), adjacency="add-remove", universe=[1]),
        ValueError, r"record \(1.0, 1.0\)",
    ),
    (lambda: neighbours([1], adjacency="add-remove", universe=MASKED), TypeError, "masked array"),
    (lambda: search(universe=MASKED), TypeError, "universe must not be a masked array"),
    (lambda: search(lambda d: MASKED), TypeError, "answer of query must not be a masked array"),
    (lambda: search(lambda d: 10**400), ValueError, r"within float64, .* for \(0, 0\)"),
    (lambda: search(lambda d: 10**5000), ValueError, r"within float64, .* for \(0, 0\)"),
    (lambda: search(lambda d: 1j), TypeError, "got 1j"),
    (lambda: search(size=10_001), ValueError, "at most 10,000"),
    (lambda: hockey_stick(MASKED, HALF, 1), TypeError, "p must not be a masked array"),
    (lambda: neighbours(1, adjacency="add-remove", universe=[1]), TypeError, "list of records"),
    (lambda: neighbours([NAN], adjacency="replace-one", universe=[NAN]), ValueError, "NaN"),
    (lambda: search(query=3), TypeError, "function"),
    (lambda: search(adjacency="replace"), ValueError, "'replace'"),
    (lambda: search(norm=3), ValueError, "1, 2, got 3"),
    (lambda: search(norm=True), ValueError, "got True"),
    (lambda: search(size=0), ValueError, "at least 1, got 0"),
    (lambda: search(size=2.0), TypeError, "got 2.0"),
    (lambda: search(smallest=-1), ValueError, "at least 0, got -1"),
    (lambda: search(smallest=3), ValueError, "at most size, got 3"),
    (lambda: search(universe=[]), ValueError, "got none"),
    (lambda: search(lambda d: NAN if len(d) == 3 else 0), ValueError, r"data set \(0, 0, 0\)"),
    (lambda: search(lambda d: INF if d == (1,) else 0), ValueError, r"inf .* data set \(1,\)"),
    (lambda: search(lambda d: d), ValueError, r"\[1, 2\], the last for the data set \(0,\)"),
    (lambda: search(lambda d: "7"), TypeError, r"'7' for the data set \(0, 0\)"),
    (lambda: search(lambda d: None), TypeError, "got None"),
    (lambda: search(lambda d: [[1], [1, 2]]), TypeError, "vector of numbers"),
    (lambda: search(lambda d: np.eye(2)), TypeError, "vector of numbers"),
    (lambda: hockey_stick([0.6, 0.5], HALF, 1), ValueError, "p must sum to 1, got a sum of 1.1"),
    (lambda: hockey_stick(HALF, [0.5, 0.5 + 2e-9], 1), ValueError, "q must sum to 1"),
    (lambda: hockey_stick(HALF, [1.5, -0.5], 1), ValueError, "no negative numbers, got -0.5"),
    (lambda: hockey_stick(HALF, [0.5, 0.25, 0.25], 1), ValueError, "got 2 and 3"),
    (lambda: hockey_stick([HALF], [HALF], 1), ValueError, "dimension"),
    (lambda: hockey_stick([], [], 1), ValueError, "sum to 1"),
    (lambda: hockey_stick([NAN, 1], HALF, 1), ValueError, "got nan at position 0"),
    (lambda: hockey_stick(HALF, HALF, -0.1), ValueError, "epsilon .* got -0.1"),
    (lambda: hockey_stick(HALF, HALF, NAN), ValueError, "epsilon .* got nan"),
    (lambda: hockey_stick(HALF, HALF, INF), ValueError, "epsilon .* got inf"),
    (lambda: hockey_stick("ab", HALF, 1), TypeError, "array of numbers"),
    (lambda: smallest_epsilon(HALF, [0.5, 0.4]), ValueError, "q must sum to 1"),
    (lambda: smallest_epsilon(HALF, HALF, -0.1), ValueError, "delta .* got -0.1"),
    (lambda: smallest_epsilon(HALF, HALF, NAN), ValueError, "delta .* got nan"),
    (lambda: optimal_roc(HALF, [1.5, -0.5]), ValueError, "negative"),
    (lambda: group_privacy(1.0, size=0), ValueError, "size .* got 0"),
    (lambda: group_privacy(1.0, size=1.5), TypeError, "size .* got 1.5"),
    (lambda: group_privacy(-1.0, size=1), ValueError, "epsilon .* got -1.0"),
    (lambda: group_privacy(1.0, 1.5, size=1), ValueError, "delta .* got 1.5"),
    (lambda: tpr_bounds([0.5, 1.1], epsilon=1), ValueError, "from 0.5 to 1.1"),
    (lambda: tpr_bounds(-0.1, epsilon=1), ValueError, "fpr"),
    (lambda: tpr_bounds([NAN], epsilon=1), ValueError, "fpr"),
    (lambda: tpr_bounds(0.5, epsilon="1"), TypeError, "epsilon"),
    (lambda: tpr_bounds(0.5, epsilon=1, delta=2), ValueError, "delta .* got 2"),
    (lambda: largest_advantage(-1), ValueError, "epsilon .* got -1"),
    (lambda: largest_advantage(1, NAN), ValueError, "delta .* got nan"),
]


@pytest.mark.parametrize("case", range(len(REFUSALS)))
def test_bad_input_is_refused_with_a_sentence(case):
    act, error, words = REFUSALS[case]
    with pytest.raises(error, match=words) as refusal:
        act()
    assert str(refusal.value).endswith(".")


def test_rounding_of_a_sum_is_forgiven():
    assert hockey_stick([0.5, 0.5 + 9e-10], HALF, 0) == pytest.approx(9e-10, rel=1e-6)


def test_importing_the_module_loads_numpy_alone():
    code = "import sys, coursekit.neighbours; print({'scipy', 'torch', 'sklearn'} & {*sys.modules})"
    found = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"
