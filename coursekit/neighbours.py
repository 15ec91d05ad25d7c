"""Neighbouring data sets, and what differential privacy promises about them.

Two data sets are neighbours if they differ in one person. There are two ways to say that:

- "add-remove": one has one record more than the other, so the number of records is private;
- "replace-one": both have the same number of records, which is public, and differ in one.

The first half of this module lists neighbours and finds sensitivities by trying everything; the
second compares the two output distributions that a mechanism has on two neighbours. Everything is
exact and meant for small examples.
"""

import math
import numbers
from itertools import combinations_with_replacement, islice

import numpy as np

from coursekit import _arguments

ADJACENCIES = ("add-remove", "replace-one")
MOST_DATA_SETS = 2_000_000
MOST_PAIRS = 100_000_000
MOST_RECORDS = 100_000
MOST_LISTED = 10_000_000
MOST_SIZE = 10_000
ROUNDING = 1e-12


# Data sets


def neighbours(records, *, adjacency, universe):
    """Return every neighbour of a data set, each once.

    A data set is a multiset: two orders of the same records are the same data set, and a data set
    is not its own neighbour. The records that stay keep their order; an added record comes last,
    and a replacement takes the place of the first record equal to the one replaced. NumPy's
    numbers become Python's, and its vectors tuples.

    Args:
        records: the data set, hashable records or an array of them, all in the universe.
        adjacency: "add-remove" or "replace-one".
        universe: all values that a record may have, in the order in which to try them.

    Returns:
        A list of tuples of records.

    Raises:
        ValueError: unknown adjacency, empty universe, a record outside the universe, more than
            100,000 records or values, or over 10 million records in the neighbours together.
        TypeError: records that cannot be hashed, such as lists, or a masked array.

    Source: Kifer and Machanavajjhala (2011), where the two are called "unbounded" and "bounded".

    >>> neighbours([30, 30], adjacency="add-remove", universe=[30, 40])
    [(30,), (30, 30, 30), (30, 30, 40)]
    >>> neighbours([30, 30], adjacency="replace-one", universe=[30, 40])
    [(40, 30)]
    """
    _arguments.one_of(adjacency, "adjacency", ADJACENCIES)
    universe = _universe(universe)
    records = _records(records, "records")
    possible = set(universe)
    for record in records:
        if record not in possible:
            raise ValueError(f"Every record must be in the universe, got the record {record!r}.")
    _refuse_long_list(records, universe, adjacency)

    first_places = [records.index(record) for record in dict.fromkeys(records)]
    if adjacency == "add-remove":
        removed = [records[:i] + records[i + 1 :] for i in first_places]
        added = [(*records, new) for new in universe]
        return removed + added
    return [
        (*records[:i], new, *records[i + 1 :])
        for i in first_places
        for new in universe
        if new != records[i]
    ]


def global_sensitivity(query, *, universe, size, adjacency, norm=1, smallest=1):
    """Return the most that one person can change the answer of a query, by trying every case.

    With "replace-one" the number of records n is public: the search covers all neighbours among
    the data sets of exactly `size` records, and `smallest` plays no part. With "add-remove" n is
    private: it covers all data sets of `smallest` to `size` records, each against the same data
    set with one record more. Many queries, such as a mean, are undefined on no records, so the
    empty data set is left out unless `smallest=0`. The answer matters: the mean of values in
    [0, 100] has sensitivity 50 without the empty data set, and 100 if its mean is set to 0.

    Two things follow from "every case". Values between those in the universe are not tried, and
    neither are data sets larger than `size`.

    Args:
        query: a function of a tuple of records that returns a number or a vector. It must not
            depend on the order of the records and is asked about each data set once.
        universe: all values that a record may have. NumPy's numbers become Python's, which do
            not wrap around, and its vectors tuples.
        size: the number of records, see above; at most 10,000.
        adjacency: "add-remove" or "replace-one".
        norm: how to measure the change of a vector, 1 (sum of absolute changes, as the Laplace
            mechanism needs) or 2 (Euclidean length, as the Gaussian mechanism needs).
        smallest: the fewest records of a data set under "add-remove", 0 or more.

    Returns:
        A float, in the unit of the query's answer. Answers are compared as float64, so it is
        off by their rounding, about 1e-16 of the largest answer.

    Raises:
        ValueError: an argument outside the above; a search of more than 2 million data sets or
            100 million pairs; or a query whose answer is not finite, changes length, or is so
            large that a change overflows float64.
        TypeError: an argument of the wrong type, or a query that does not return numbers.

    Source: Dwork and Roth (2014), definitions 3.1 (norm 1) and 3.8 (norm 2).

    >>> global_sensitivity(sum, universe=[0, 50, 100], size=3, adjacency="add-remove")
    100.0
    >>> global_sensitivity(np.mean, universe=[0, 50, 100], size=4, adjacency="replace-one")
    25.0
    """
    if not callable(query):
        raise TypeError(f"query must be a function of a data set, got {query!r}.")
    _arguments.one_of(adjacency, "adjacency", ADJACENCIES)
    _arguments.one_of(norm, "norm", (1, 2))
    universe = _universe(universe)
    size = _arguments.whole(size, "size", least=1)
    smallest = _arguments.whole(smallest, "smallest", least=0)
    if size > MOST_SIZE:
        raise ValueError(f"size must be at most {MOST_SIZE:,}, got more.")
    if adjacency == "add-remove" and smallest > size:
        raise ValueError(f"smallest must be at most size, got {smallest} and size {size}.")
    shared_sizes = range(smallest, size + 1) if adjacency == "add-remove" else [size - 1]
    _refuse_large_search(len(universe), shared_sizes, adjacency)

    ask = _ask_once(query, universe)
    largest = 0.0
    # Two neighbours share all their records but one. We go through what they can share, as
    # sorted positions in the universe, and complete it in every possible way.
    for count in shared_sizes:
        for shared in combinations_with_replacement(range(len(universe)), count):
            larger = np.array([ask((*shared, i)) for i in range(len(universe))])
            others = larger if adjacency == "replace-one" else np.array([ask(shared)])
            largest = max(largest, _largest_distance(larger, others, norm))
    if largest == math.inf:
        raise ValueError("query must return smaller numbers, its changes overflow float64.")
    return largest


def _largest_distance(a, b, norm):
    # All rows of a against all of b, in blocks that keep the memory small.
    blocks = [b[start : start + 200] for start in range(0, len(b), 200)]
    with np.errstate(over="ignore"):  # an infinite distance is refused in the end
        return max(
            float(np.linalg.norm(a[:, None] - block, ord=norm, axis=-1).max()) for block in blocks
        )


def _plain(record):
    # NumPy's small integers wrap around when added, and its arrays cannot be hashed.
    if isinstance(record, (np.number, np.bool_)):
        return record.item()
    if type(record) is tuple or (isinstance(record, np.ndarray) and record.ndim):
        return tuple(_plain(part) for part in record)
    return record


def _records(values, name):
    _arguments.unmasked(values, name)
    try:
        values = tuple(islice(values, MOST_RECORDS + 1))
    except TypeError:
        raise TypeError(f"{name} must be a list of records, got {values!r}.") from None
    if len(values) > MOST_RECORDS:
        raise ValueError(f"{name} must hold at most {MOST_RECORDS:,} records, got more.")
    values = tuple(_plain(value) for value in values)
    for value in values:
        try:
            hash(value)
        except TypeError:
            raise TypeError(
                f"{name} must hold hashable records such as numbers, strings or tuples, "
                f"got {value!r} of type {type(value).__name__}."
            ) from None
        if value != value:
            raise ValueError(f"{name} must not hold NaN, which equals no record, not even itself.")
    return values


def _universe(values):
    universe = tuple(dict.fromkeys(_records(values, "universe")))
    if not universe:
        raise ValueError("universe must hold at least one record, got none.")
    return universe


def _refuse_long_list(records, universe, adjacency):
    distinct = len(set(records))
    if adjacency == "add-remove":
        count = distinct + len(universe)
    else:
        count = distinct * (len(universe) - 1)
    if count * len(records) > MOST_LISTED:
        raise ValueError(
            f"The data set of {len(records):,} records has {count:,} neighbours; together they "
            f"may hold at most {MOST_LISTED:,} records. Take a smaller data set or universe."
        )


def _refuse_large_search(values, shared_sizes, adjacency):
    # There are C(values + n - 1, n) multisets of n records over a universe of `values` values.
    def multisets(n):
        return math.comb(values + n - 1, n)

    shared = 0
    for n in shared_sizes:
        shared += multisets(n)
        if shared > MOST_DATA_SETS:  # enough to know, and the rest can take forever to count
            break
    data_sets = multisets(n + 1) + (shared if adjacency == "add-remove" else 0)
    pairs = shared * (values if adjacency == "add-remove" else math.comb(values, 2))
    if data_sets > MOST_DATA_SETS or pairs > MOST_PAIRS:
        raise ValueError(
            f"The search may cover at most {MOST_DATA_SETS:,} data sets and {MOST_PAIRS:,} pairs "
            "of neighbours, and this one has more. Take a smaller universe or size."
        )


def _ask_once(query, universe):
    answers = {}
    lengths = set()

    def ask(positions):
        positions = tuple(sorted(positions))
        if positions not in answers:
            records = tuple(universe[i] for i in positions)
            answers[positions] = answer = _answer(query(records), records)
            lengths.add(len(answer))
            if len(lengths) > 1:
                raise ValueError(
                    "query must return the same number of values for every data set, "
                    f"got {sorted(lengths)}, the last for the data set {records!r}."
                )
        return answers[positions]

    return ask


def _answer(value, records):
    try:
        answer = np.atleast_1d(_arguments.unmasked(value, "The answer of query"))
    except ValueError:
        answer = np.array(None)
    # Fractions and integers beyond 64 bits come as objects.
    exact = answer.dtype == object and all(isinstance(x, numbers.Real) for x in answer.flat)
    if not (answer.dtype.kind in "biuf" or exact) or answer.ndim != 1:
        raise TypeError(
            "query must return a number or a vector of numbers, "
            f"got {value!r} for the data set {records!r}."
        )
    try:
        with np.errstate(over="ignore"):
            answer = answer.astype(np.float64)
    except OverflowError:
        raise ValueError(
            f"query must return numbers within float64, got a larger one for {records!r}."
        ) from None
    if not np.isfinite(answer).all():
        raise ValueError(
            f"query must return finite numbers, got {value!r} for the data set {records!r}."
        )
    return answer


# Output distributions


def hockey_stick(p, q, epsilon):
    """Return the hockey-stick divergence of p from q: the sum of max(p - e^epsilon q, 0).

    It is the largest value of p(S) - e^epsilon q(S) over all events S, so a mechanism with output
    distributions p and q on two neighbours keeps (epsilon, delta) between them if and only if
    both hockey_stick(p, q, epsilon) and hockey_stick(q, p, epsilon) are at most delta. This
    function is one direction only. At epsilon 0 it is the total variation distance.

    Args:
        p, q: probabilities of the same outcomes, two arrays of shape (outcomes,).
        epsilon: at least 0.

    Returns:
        A float from 0 to 1.

    Raises:
        ValueError: negative entries, a sum more than 1e-9 away from 1, shapes that differ, or an
            epsilon that is negative or not finite.
        TypeError: arguments that are not numbers.

    Source: Barthe and Olmedo (2013); Balle, Barthe and Gaboardi (2018).

    >>> hockey_stick([0.5, 0.5, 0.0], [0.0, 0.5, 0.5], epsilon=0.0)
    0.5
    """
    p, q = _distributions(p, q)
    epsilon = _arguments.non_negative(epsilon, "epsilon")
    return float(np.maximum(p - _exp(epsilon) * q, 0).sum())


def smallest_epsilon(p, q, delta=0.0):
    """Return the least epsilon such that (epsilon, delta) holds between p and q both ways.

    Exact, without a search. For an event S, p(S) <= e^epsilon q(S) + delta asks for
    epsilon >= log((p(S) - delta) / q(S)), and the events that ask for the most collect the
    outcomes in order of the ratio p / q, the largest first.

    Args:
        p, q: probabilities of the same outcomes, two arrays of shape (outcomes,).
        delta: from 0 to 1; one part in 10^12 above it is put down to rounding.

    Returns:
        A float of at least 0. It is infinite if no epsilon will do, which is when the outcomes
        that are impossible under one distribution have more than delta under the other.

    Raises:
        ValueError: p and q as for `hockey_stick`, or a delta outside 0 to 1.
        TypeError: arguments that are not numbers.

    Source: from the definition, Dwork, Kenthapadi, McSherry, Mironov and Naor (2006), by the
    Neyman-Pearson lemma.

    >>> round(smallest_epsilon([0.75, 0.25], [0.25, 0.75]), 4)
    1.0986
    """
    p, q = _distributions(p, q)
    delta = _arguments.probability(delta, "delta")
    return max(_one_sided_epsilon(p, q, delta), _one_sided_epsilon(q, p, delta))


def _one_sided_epsilon(p, q, delta):
    # Masses that equal delta but for rounding must not ask for an infinite epsilon.
    excess = p[q == 0].sum() - delta * (1 + ROUNDING)
    if excess > 0:
        return math.inf
    p, q = p[q > 0], q[q > 0]
    order = _most_telling_first(p, q)
    excess = excess + np.cumsum(p[order])
    weight = np.cumsum(q[order])
    asks = excess > 0
    return float(np.max(np.log(excess[asks]) - np.log(weight[asks]), initial=0.0))


def group_privacy(epsilon, delta=0.0, *, size):
    """Return what an (epsilon, delta) guarantee for one person gives a group of people.

    A group of k people is k steps from neighbour to neighbour, and each step multiplies by
    e^epsilon and adds delta: P0 <= e^epsilon P1 + delta <= e^epsilon (e^epsilon P2 + delta) +
    delta, and so on. In total this is (k epsilon, delta (1 + e^epsilon + ... +
    e^((k-1) epsilon))). While that delta is at most 1/2 some mechanism reaches it, so nothing
    better is true of all; a delta above 1 promises nothing, and 1.0 is returned. The group is
    counted in the adjacency of the guarantee: k people added or removed, or k replaced.

    Args:
        epsilon: at least 0.
        delta: from 0 to 1.
        size: the number of people in the group, k.

    Returns:
        (epsilon, delta) for the group, two floats.

    Raises:
        ValueError, TypeError: an argument outside the above.

    Source: Dwork and Roth (2014), theorem 2.2, for delta = 0; else the chain above, of which
    Vadhan (2017), lemma 2.2, is a coarser form.

    >>> group_privacy(0.5, size=3)
    (1.5, 0.0)
    """
    epsilon = _arguments.non_negative(epsilon, "epsilon")
    delta = _arguments.probability(delta, "delta")
    size = _arguments.whole(size, "size", least=1)
    # The sum of the geometric series, written so that nothing overflows.
    terms = size if epsilon == 0 else math.expm1(-size * epsilon) / math.expm1(-epsilon)
    group_delta = min(1.0, delta * terms * _exp((size - 1) * epsilon))
    return size * epsilon, group_delta


def tpr_bounds(fpr, *, epsilon, delta=0.0):
    """Return the least and greatest true-positive rate of any attack at a false-positive rate.

    The attack sees one output of an (epsilon, delta) mechanism and says which of two neighbours
    it came from. Saying "member" on an event S has TPR p(S) and FPR q(S), and the guarantee,
    applied to S and to its complement and to both orders of the neighbours, leaves four lines.

    Args:
        fpr: false-positive rates from 0 to 1, a number or an array.
        epsilon: at least 0.
        delta: from 0 to 1.

    Returns:
        (lower, upper), two arrays of the shape of fpr.

    Raises:
        ValueError, TypeError: an argument outside the above.

    Source: Wasserman and Zhou (2010) for delta = 0; Kairouz, Oh and Viswanath (2015).

    >>> lower, upper = tpr_bounds([0.0, 0.1, 0.5], epsilon=np.log(3), delta=0.1)
    >>> upper.round(4).tolist()
    [0.1, 0.4, 0.8667]
    >>> lower.round(4).tolist()
    [0.0, 0.0, 0.1333]
    """
    fpr = _arguments.finite_array(fpr, "fpr")
    epsilon = _arguments.non_negative(epsilon, "epsilon")
    delta = _arguments.probability(delta, "delta")
    if fpr.size and not (fpr.min() >= 0 and fpr.max() <= 1):
        raise ValueError(
            f"fpr must hold numbers from 0 to 1, got values from {fpr.min()} to {fpr.max()}."
        )
    factor = _exp(epsilon)
    upper = np.minimum(factor * fpr + delta, 1 - (1 - delta - fpr) / factor)
    lower = np.maximum((fpr - delta) / factor, 1 - delta - factor * (1 - fpr))
    return np.clip(lower, 0, 1), np.clip(upper, 0, 1)


def largest_advantage(epsilon, delta=0.0):
    """Return the largest TPR - FPR of any attack on an (epsilon, delta) mechanism.

    It is (e^epsilon - 1 + 2 delta) / (e^epsilon + 1), reached by the mechanism of Kairouz, Oh and
    Viswanath. The best balanced accuracy is (1 + advantage) / 2.

    Args:
        epsilon: at least 0.
        delta: from 0 to 1.

    Returns:
        A float from 0 to 1.

    Raises:
        ValueError, TypeError: an argument outside the above.

    Source: Kairouz, Oh and Viswanath (2015), the corner of the region in `tpr_bounds`.

    >>> round(largest_advantage(1.0), 4)
    0.4621
    """
    epsilon = _arguments.non_negative(epsilon, "epsilon")
    delta = _arguments.probability(delta, "delta")
    # (e^epsilon - 1) / (e^epsilon + 1) is tanh(epsilon / 2), which never overflows.
    pure = math.tanh(epsilon / 2)
    return pure + delta * (1 - pure)


def optimal_roc(p, q):
    """Return the ROC curve of the best attack on one output: the likelihood-ratio test.

    Args:
        p, q: probabilities of the outputs with and without the person, two arrays of shape
            (outcomes,).

    Returns:
        (fpr, tpr), two arrays of shape (outcomes + 1,): the corners of the curve from (0, 0) to
        (1, 1). A coin toss between two corners reaches the line between them.

    Raises:
        ValueError, TypeError: p and q as for `hockey_stick`.

    Source: Neyman and Pearson (1933).

    >>> fpr, tpr = optimal_roc([0.75, 0.25], [0.25, 0.75])
    >>> fpr.tolist(), tpr.tolist()
    ([0.0, 0.25, 1.0], [0.0, 0.75, 1.0])
    """
    p, q = _distributions(p, q)
    order = _most_telling_first(p, q)
    fpr = np.append(0.0, np.cumsum(q[order]))
    tpr = np.append(0.0, np.cumsum(p[order]))
    return np.minimum(fpr, 1), np.minimum(tpr, 1)


def _distributions(p, q):
    p = _arguments.finite_array(p, "p", ndim=1)
    q = _arguments.finite_array(q, "q", ndim=1)
    if p.shape != q.shape:
        raise ValueError(f"p and q must have the same outcomes, got {len(p)} and {len(q)}.")
    for name, values in (("p", p), ("q", q)):
        if np.any(values < 0):
            raise ValueError(f"{name} must hold no negative numbers, got {values.min()}.")
        if abs(values.sum() - 1) > 1e-9:
            raise ValueError(f"{name} must sum to 1, got a sum of {values.sum()}.")
    return p, q


def _most_telling_first(p, q):
    # The order of falling p / q. Outcomes with p = q = 0 compare as NaN, which sorts last.
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.argsort(np.log(q) - np.log(p), kind="stable")


def _exp(epsilon):
    # e^700 already exceeds the ratio of any two probabilities above 1e-304, so the cap changes no
    # answer and keeps infinity (and infinity times 0) out of the arithmetic.
    return math.exp(min(epsilon, 700.0))
