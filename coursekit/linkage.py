"""Linkage attacks on released data: birth dates, a join, ratings, location traces (notebook 06).

Only for synthetic people. Beside each attack stands the law, or the control, that says how far to
believe it.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar

from coursekit import _arguments
from coursekit.people import age_shares, columns_of

FIVE_YEARS = tuple(range(0, 66, 5))  # ages at which bands start; the last one is open
NOBODY = -1

# Who is alone with ZIP, birth date and sex


def expected_uniqueness(sizes, shares, *, cells=1, weights=None):
    """Return the expected share of people who are alone with their values.

    In a group (a ZIP code) of N people each falls into cell c with chance p_c, independently, so a
    share U(N) = sum of p_c (1 - p_c)^(N - 1) is alone in a cell. Groups count by their people.

    Args:
        sizes: the people of each group, or one number.
        shares: chances that add up to 1, such as `people.birth_cells("day")`: the p_c.
        cells: each share is split evenly into so many cells first, such as 365.25 days.
        weights: the share of all people that lives in groups of each size, as
            `people.zip_size_table` gives it; without it each size is one group.

    Raises: ValueError for sizes below 1, shares that do not add up to 1, cells below 1.
    Source: Golle (2006), who finds 63% for ZIP, birth date and sex in the census of 2000.

    >>> expected_uniqueness(2, [0.5, 0.5])
    0.5
    >>> round(expected_uniqueness(9330, [1.0], cells=56_940), 4)
    0.8489
    """
    sizes, weights = _groups(sizes, weights)
    p, many = _alike(shares, cells)
    alone = [many * p @ (1 - p) ** (n - 1) for n in sizes]
    return float(weights @ alone)


def uniqueness_error(sizes, shares, *, cells=1):
    """Return the standard deviation of the share of people who are alone, over populations.

    For large groups: a cell holds one person with chance q, and that N is fixed takes off the
    second term: variance of the number alone = sum of q (1 - q) - N (sum of p (1 - Np) (1-p)^N)^2.
    It is not the binomial U(1 - U)N: people who share a cell do so together, so where most are
    alone the variance is up to twice as large. Arguments: as for `expected_uniqueness`.

    >>> round(uniqueness_error(10_000, [1.0], cells=1e6), 5)  # binomial: 0.00099
    0.0014
    """
    different, weights = _groups(sizes, None)
    p, many = _alike(shares, cells)
    spread = []  # variance of the number alone, per person
    for n in different:
        q = n * p * (1 - p) ** (n - 1)
        fixed = many * p @ ((1 - n * p) * (1 - p) ** (n - 1))
        spread.append(many * q @ (1 - q) / n - fixed**2)
    return float(np.sqrt(max(weights @ spread, 0.0) / np.sum(sizes)))


def simulated_uniqueness(sizes, shares, *, rng):
    """Return the share of people who are alone in one population, drawn at random.

    Sizes (whole numbers) and shares are those of `expected_uniqueness`, which is its mean;
    `uniqueness_error` is its standard deviation.

    >>> simulated_uniqueness([1000, 2000], np.full(730, 1 / 730), rng=np.random.default_rng(0))
    0.12733333333333333
    """
    _groups(sizes, None)  # refuses what is none
    sizes = [_arguments.whole(n, "each of sizes", least=1) for n in np.ravel(sizes)]
    bounds = np.cumsum(_shares(shares))[:-1]
    _arguments.generator(rng)
    alone = 0
    for n in sizes:
        cell = np.searchsorted(bounds, rng.random(n), side="right")
        alone += np.count_nonzero(np.bincount(cell) == 1)
    return float(alone / sum(sizes))


def pigeonhole_uniqueness(sizes, *, bands=FIVE_YEARS, open_years=24, weights=None):
    """Return the share of people whom a pigeonhole rule calls unique by ZIP, birth date and sex.

    The rule calls everybody in a ZIP code and age band unique if the band holds no more people
    than pigeonholes: 2 sexes x 365 days x its years. So it counts as unique a person who shares a
    day with others as long as there are as many days as people; in a band that is just full only
    1/e of them are expected to be alone. Sweeney (2000) counts in this way and has 87% (census of
    1990), Golle (2006) computes the expectation and has 63% (census of 2000). On one and the same
    table, of 2010, the rule gives 0.91 and `expected_uniqueness` 0.64: the definition, not the
    data, makes the difference.

    Args:
        sizes, weights: as for `expected_uniqueness`. Every ZIP code has the nation's ages.
        bands: the ages at which bands start, first 0; the last band is open.
        open_years: the years that the last band is taken to have; the rule needs some number.

    >>> pigeonhole_uniqueness([10_000, 80_000], bands=[0, 65])  # all of the first, the old of both
    0.227044...
    """
    sizes, weights = _groups(sizes, weights)
    starts = [_arguments.whole(start, "each of bands", least=0) for start in bands]
    years = _arguments.positive(open_years, "open_years")
    if not starts or starts[0] != 0 or sorted(set(starts)) != starts or starts[-1] > 104:
        raise ValueError(f"bands must be rising ages from 0 to at most 104, got {bands!r}.")
    shares = np.add.reduceat(age_shares().reshape(2, -1).sum(axis=0), starts)
    holes = 2 * 365 * np.append(np.diff(starts), years)
    return float(weights @ ((np.outer(sizes, shares) <= holes) @ shares))


def uniqueness(table, *, on):
    """Return the share of the records of `table` that no other one equals in the columns `on`.

    >>> uniqueness({"zip": ["1", "1", "2"], "sex": ["F", "M", "F"]}, on=["sex"])
    0.3333333333333333
    """
    (codes,) = _codes([table], ["table"], on)
    if not len(codes):
        raise ValueError("table must have at least one record, got none.")
    counts = np.unique(codes, return_counts=True)[1]
    return float(np.count_nonzero(counts == 1) / len(codes))


def _alike(shares, cells):
    """Return (p, many): the different chances of a cell, and how many cells have each."""
    cells = _cells(cells)
    values, counts = np.unique(_shares(shares), return_counts=True)
    return values / cells, counts * cells


def _groups(sizes, weights):
    """Return (sizes, the share of all people in groups of each size)."""
    sizes = _arguments.finite_array(np.ravel(sizes), "sizes")
    if not len(sizes) or (sizes < 1).any() or (sizes > 1e9).any():
        raise ValueError("sizes must hold numbers from 1 to 1e9, at least one.")
    if weights is not None:
        return sizes, _shares(weights, "weights", len(sizes))
    sizes, counts = np.unique(sizes, return_counts=True)
    return sizes, sizes * counts / (sizes @ counts)


def _shares(shares, name="shares", length=None):
    shares = _arguments.finite_array(shares, name, ndim=1)
    if (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
        raise ValueError(f"{name} must be at least 0 and add up to 1, got {shares.sum():.10g}.")
    if length is not None and len(shares) != length:
        raise ValueError(f"{name} must have one entry a size, {length}, got {len(shares)}.")
    return shares


def _cells(cells):
    if _arguments.real(cells, "cells") < 1:
        raise ValueError(f"cells must be a finite number of at least 1, got {cells!r}.")
    return float(cells)


# Two tables joined


class Links(NamedTuple):
    """Row numbers, pair by pair: a record of the left table, and the one of the right it equals."""

    left: np.ndarray
    right: np.ndarray


def join(left, right, *, on):
    """Return the pairs of records, alone in their tables, that agree in the columns `on`.

    This is what an attacker would claim: one record here, one there, the same ZIP, birth date and
    sex. `link_precision` says how often it is the same person.

    Args:
        left, right: tables. on: names of columns that both have.

    Raises: ValueError for a column that a table lacks or that holds missing values, which agree
    with nothing; TypeError for one that is text in one table and numbers in the other.

    >>> left = {"zip": ["1", "1", "2"], "ill": [1, 0, 1]}
    >>> right = {"name": ["Ada", "Bo"], "zip": ["2", "1"]}
    >>> join(left, right, on=["zip"])  # two on the left live in ZIP 1
    Links(left=array([2]), right=array([0]))
    """
    codes = _codes([left, right], ["left", "right"], on)
    once = []
    for side in codes:
        values, rows, counts = np.unique(side, return_index=True, return_counts=True)
        once.append((values[counts == 1], rows[counts == 1]))
    (a, rows), (b, others) = once
    _, i, j = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    return Links(rows[i], others[j])


def link_precision(mean, *, h, v):
    """Return the chance that a link of `join` is right: 1 / (1 + mean (1 - h)(1 - v)).

    A cell holds a Poisson number of people; each is in the left table with chance `h` and in the
    right one with chance `v`, independently. Given one record of the cell on each side, they are
    the same person with this chance. Being alone in two samples is not being alone.

    >>> round(link_precision(0.5, h=0.1, v=0.6), 3)
    0.847
    """
    mean = _arguments.non_negative(mean, "mean")
    h, v = _arguments.probability(h, "h"), _arguments.probability(v, "v")
    return 1 / (1 + mean * (1 - h) * (1 - v))


class ExpectedLinks(NamedTuple):
    """Links claimed and correct; correct among claimed, and among all records on the left."""

    claimed: float
    correct: float
    precision: float
    recall: float


def expected_links(sizes, shares, *, h, v, cells=1):
    """Return what `join` is expected to find, as `ExpectedLinks`, summed over all cells.

    A cell of mean m has one person in both samples and nobody else in either with chance
    m h v e^(-m(h + v - hv)), and one in each, two people, with m^2 h(1 - v) v(1 - h) times the
    same exponential. Sizes, shares and cells are those of `expected_uniqueness`; the number of
    people in a cell is taken as Poisson.

    >>> found = expected_links(1000, [1.0], cells=1000, h=0.1, v=0.6)
    >>> round(found.claimed, 1), round(found.precision, 3), round(found.recall, 3)
    (43.0, 0.735, 0.316)
    """
    different, weights = _groups(sizes, None)
    people = float(np.sum(sizes))
    p, many = _alike(shares, cells)
    h, v = _arguments.probability(h, "h"), _arguments.probability(v, "v")
    if h == 0 or v == 0:
        raise ValueError(f"h and v must be above 0, or nothing is linked, got h={h}, v={v}.")
    means = np.outer(different, p)
    alone = people * weights[:, None] * many * p * h * v * np.exp(-means * (h + v - h * v))
    correct = float(alone.sum())
    claimed = float((alone * (1 + means * (1 - h) * (1 - v))).sum())
    return ExpectedLinks(claimed, correct, correct / claimed, correct / (h * people))


def _codes(tables, names, on):
    """Return whole numbers for the records of each table, equal where all columns `on` are."""
    if isinstance(on, str) or not len(on):
        raise ValueError(f"on must be a list of column names, at least one, got {on!r}.")
    parts = [columns_of(table, on, name) for table, name in zip(tables, names, strict=True)]
    ends = np.cumsum([len(part[on[0]]) for part in parts])
    codes, size = np.zeros(ends[-1], np.int64), 1
    for name in on:
        columns = [_comparable(part[name], name) for part in parts]
        kinds = {column.dtype.kind for column in columns}
        if len(kinds) > 1 and not kinds <= set("iuf"):
            listed = " and ".join(str(column.dtype) for column in columns)
            raise TypeError(f"column {name!r} must be of one kind in both tables, got {listed}.")
        values, inverse = np.unique(np.concatenate(columns), return_inverse=True)
        if size * len(values) > 2**62:
            seen, codes = np.unique(codes, return_inverse=True)
            size = len(seen)
        codes, size = codes * len(values) + inverse, size * max(len(values), 1)
    return np.split(codes, ends[:-1])


def _comparable(column, name):
    """Return `column` as numbers, text or dates without a missing value."""
    if column.dtype.kind == "O":
        wrong = [value for value in column if not isinstance(value, str)]
        if wrong:
            raise ValueError(
                f"column {name!r} holds objects, which must all be text, got {wrong[0]!r}; drop "
                "records that miss a value, which agrees with nothing."
            )
        return column.astype(str)
    missing = column != column if column.dtype.kind in "fM" else np.zeros(0, bool)
    if missing.any():
        raise ValueError(
            f"column {name!r} must not miss a value, which agrees with nothing, got "
            f"{column[missing][0]} at position {int(np.argmax(missing))}."
        )
    return column


# Ratings


class Ratings(NamedTuple):
    """Two sparse arrays (users, movies) with entries at the same places: stars, and days."""

    stars: sparse.csr_array
    days: sparse.csr_array


class Clues(NamedTuple):
    """What an attacker knows: for each target user a row of movies, stars and days."""

    targets: np.ndarray
    movies: np.ndarray
    stars: np.ndarray
    days: np.ndarray


class Answers(NamedTuple):
    """For each target: the best user, by how much (eccentricity), and whom the attack names.

    `named` is `best` where the eccentricity reaches the threshold, else -1, "nobody".
    """

    best: np.ndarray
    eccentricity: np.ndarray
    named: np.ndarray


def ratings_of(user, movie, stars, day, *, shape=None):
    """Return `Ratings` from four lists, one entry a rating; users and movies count from 0.

    Raises: ValueError for lists of unequal length, a movie rated twice, or numbers below 0.

    >>> ratings_of([0, 1, 1], [0, 0, 2], [5, 3, 4], [10, 12, 90]).stars.toarray()
    array([[5., 0., 0.],
           [3., 0., 4.]])
    """
    user, movie = _whole_numbers(user, "user"), _whole_numbers(movie, "movie")
    stars = _arguments.finite_array(stars, "stars", ndim=1)
    day = _arguments.finite_array(day, "day", ndim=1)
    _one_length(user=user, movie=movie, stars=stars, day=day)
    arrays = [sparse.csr_array((x, (user, movie)), shape=shape) for x in (stars, day)]
    if arrays[0].nnz < len(user):
        raise ValueError("a user must rate a movie at most once, got a pair (user, movie) twice.")
    return Ratings(*arrays)


def synthetic_ratings(users=5000, movies=3000, *, rng):
    """Return synthetic `Ratings`, about 110 a user, 1 to 5 stars, on days 0 to 1999.

    Card. Origin: generated here; no real ratings. Licence: that of the course. Fit for: attacks
    that tell users apart by what they rated, and when. Not fit for: recommenders.

    How many movies a user rates is log-normal (median 60). Movies are taken without replacement,
    in proportion to 1 / (rank + 10) and to taste, four hidden factors. A quarter of the ratings
    falls on a user's first day, the rest on days that take about eight each: such bursts are why
    dates tell so much.

    >>> ratings = synthetic_ratings(100, 300, rng=np.random.default_rng(0))
    >>> ratings.stars.shape, int(ratings.stars.min(axis=None, explicit=True))
    ((100, 300), 1)
    """
    users = _arguments.whole(users, "users", least=2)
    movies = _arguments.whole(movies, "movies", least=20)
    taste, kinds = _arguments.generator(rng).normal(size=(users, 4)), rng.normal(size=(movies, 4))
    quality, bias = rng.normal(0, 0.4, movies), rng.normal(0, 0.4, users)
    many = np.clip(rng.lognormal(np.log(60), 1.15, users), 10, movies // 2).astype(np.int64)
    chosen, liked = [], []
    for first in range(0, users, 500):
        match = taste[first : first + 500] @ kinds.T / 4
        # the k smallest of E / weight, E exponential: k draws without replacement
        race = rng.standard_exponential(match.shape) * np.exp(-match) * (np.arange(movies) + 10)
        for row, fit, k in zip(race, match, many[first : first + 500], strict=True):
            chosen.append(np.sort(np.argpartition(row, k)[:k]))  # sorted: the order differs by CPU
            liked.append(fit[chosen[-1]])
    user, movie = np.repeat(np.arange(users), many), np.concatenate(chosen)
    stars = 3.6 + bias[user] + quality[movie] + np.concatenate(liked)
    stars = np.clip(np.rint(stars + rng.normal(0, 0.7, len(user))), 1, 5)
    return ratings_of(user, movie, stars, _bursts(user, many, rng), shape=(users, movies))


def _bursts(user, many, rng):
    """Return a day for each rating: the user's first day, or that of one of the later bursts."""
    first = rng.integers(0, 1900, len(many))
    bursts = np.ceil(0.75 * many / 8).astype(np.int64)
    start = np.cumsum(bursts) - bursts
    days = rng.integers(np.repeat(first, bursts), 2000)
    which = start[user] + (rng.random(len(user)) * bursts[user]).astype(np.int64)
    return np.where(rng.random(len(user)) < 0.25, first[user], days[which])


def clues_about(ratings, *, targets, known, wrong=0, made_up=0, day_error=0, skip_popular=0, rng):
    """Return `Clues` about `targets` users drawn at random, each with `known` ratings of theirs.

    Args:
        targets: how many users; drawn among those with enough ratings to choose from.
        known: clues for each. wrong: so many of them name the right movie, but stars and a day of
            some other rating. made_up: so many are ratings drawn from everybody's.
        day_error: days are off by up to so many, uniformly. Stars are exact.
        skip_popular: the clues are not about the so many most rated movies.

    Raises: ValueError if fewer users have enough ratings.

    >>> ratings = synthetic_ratings(100, 300, rng=np.random.default_rng(0))
    >>> clues_about(ratings, targets=5, known=8, wrong=2, rng=np.random.default_rng(1)).days.shape
    (5, 8)
    """
    targets = _arguments.whole(targets, "targets", least=1)
    known = _arguments.whole(known, "known", least=1)
    wrong = _arguments.whole(wrong, "wrong", least=0)
    made_up = _arguments.whole(made_up, "made_up", least=0)
    if wrong + made_up > known:
        raise ValueError(
            f"wrong and made_up together must be at most known, {known}, got {wrong} and {made_up}."
        )
    day_error = _arguments.whole(day_error, "day_error", least=0)
    skip = _arguments.whole(skip_popular, "skip_popular", least=0)
    _arguments.generator(rng)
    stars, days = _checked(ratings)
    popularity = np.bincount(stars.indices, minlength=stars.shape[1])
    usable = np.ones(stars.shape[1], bool)
    usable[np.argsort(-popularity, kind="stable")[:skip]] = False
    rows = np.repeat(np.arange(stars.shape[0]), np.diff(stars.indptr))
    choice = np.flatnonzero(usable[stars.indices])
    enough = np.flatnonzero(np.bincount(rows[choice], minlength=stars.shape[0]) >= known)
    if len(enough) < targets:
        raise ValueError(
            f"targets must be at most the users with {known} ratings to choose from, "
            f"{len(enough)}, got {targets}."
        )
    who = rng.choice(enough, targets, replace=False)
    others = rng.integers(0, stars.nnz, (targets, known))
    bounds = np.searchsorted(rows[choice], np.stack([who, who + 1], axis=1))
    at = np.stack([rng.choice(choice[low:high], known, replace=False) for low, high in bounds])
    at[:, :made_up] = others[:, :made_up]
    told = at.copy()  # where stars and days come from
    told[:, : made_up + wrong] = others[:, : made_up + wrong]
    off = rng.integers(-day_error, day_error + 1, at.shape)
    return Clues(who, stars.indices[at].astype(np.int64), stars.data[told], days.data[told] + off)


def scoreboard(
    ratings, clues, *, star_scale=1.5, day_scale=30.0, threshold=1.5, without=None, use_days=True
):
    """Return `Answers`: whom each row of clues points to, by Narayanan and Shmatikov's Scoreboard.

    A user's score is the sum over the clues about movies that the user rated of w (e^(-|stars
    off| / star_scale) + e^(-|days off| / day_scale)), where w = 1 / log(how often the movie was
    rated) makes rare ones count; a movie rated less than twice counts as if twice. The
    eccentricity is (best - second best) / standard deviation of all scores; the attack names
    nobody if it is below `threshold`.

    Args:
        ratings: the released `Ratings`. clues: as `clues_about` gives them.
        without: a user for each target, who is taken out of the release first. With the targets
            themselves this is the control: whoever is named then is wrong. Report it with the hit
            rate, for the threshold does not bound it.
        use_days: False leaves out the second term.

    Raises: ValueError for clues about movies or users that the ratings do not have.
    Source: Narayanan and Shmatikov (2008), Scoreboard-RH, with its three constants as a public
    repository quotes them.

    >>> ratings = ratings_of([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [5, 1, 4, 5, 3], [9, 9, 400, 9, 50])
    >>> clues = Clues(np.array([0]), np.array([[0, 1]]), np.array([[5, 1]]), np.array([[10, 9]]))
    >>> scoreboard(ratings, clues).named
    array([0])
    >>> scoreboard(ratings, clues, without=[0]).best  # never the one who is not there
    array([1])
    """
    star_scale = _arguments.positive(star_scale, "star_scale")
    day_scale = _arguments.positive(day_scale, "day_scale")
    threshold = _arguments.non_negative(threshold, "threshold")
    stars, days = (array.tocsc() for array in _checked(ratings))
    movies, known_stars, known_days = _checked_clues(clues, stars.shape)
    users, spans = stars.shape[0], zip(stars.indptr[movies], stars.indptr[movies + 1], strict=True)
    gone = _without(without, movies, users)
    best, eccentricity = np.zeros(len(movies), np.int64), np.zeros(len(movies))
    for t, (lows, highs) in enumerate(spans):
        at = np.concatenate([np.arange(*span) for span in zip(lows, highs, strict=True)])
        who, support = stars.indices[at], highs - lows
        clue = np.repeat(np.arange(len(support)), support)  # which clue each rating answers
        support = support - np.bincount(clue[who == gone[t]], minlength=len(support))
        match = np.exp(-np.abs(stars.data[at] - known_stars[t][clue]) / star_scale)
        if use_days:
            match += np.exp(-np.abs(days.data[at] - known_days[t][clue]) / day_scale)
        weight = 1 / np.log(np.maximum(support, 2))[clue]
        scores = np.bincount(who, weight * match, minlength=users)
        best[t], eccentricity[t] = _stand_out(scores, gone[t])
    return Answers(best, eccentricity, np.where(eccentricity >= threshold, best, NOBODY))


def _stand_out(scores, gone):
    """Return (the best user, its eccentricity) among all users but `gone`."""
    spread = np.std(scores if gone == NOBODY else np.delete(scores, gone))
    ranked = scores if gone == NOBODY else np.where(np.arange(len(scores)) == gone, -1, scores)
    second, first = np.partition(ranked, -2)[-2:]
    return np.argmax(ranked), (first - second) / spread if spread > 0 else 0.0


def _checked(ratings):
    try:
        stars, days = (sparse.csr_array(array) for array in ratings)
    except (TypeError, ValueError):
        raise TypeError(
            f"ratings must be Ratings(stars, days), got {type(ratings).__name__}."
        ) from None
    for array in (stars, days):
        if not array.has_canonical_format:
            raise ValueError("ratings must be in canonical form; ratings_of() makes them so.")
    same = stars.shape == days.shape and np.array_equal(stars.indptr, days.indptr)
    if not same or not np.array_equal(stars.indices, days.indices):
        raise ValueError("stars and days must have entries at the same places.")
    return stars, days


def _checked_clues(clues, shape):
    if not isinstance(clues, Clues):
        raise TypeError(f"clues must be Clues, got {type(clues).__name__}.")
    movies = np.asarray(clues.movies)
    if movies.ndim != 2 or not movies.size or movies.dtype.kind not in "iu":
        raise ValueError("clues.movies must be whole numbers, one row for each target.")
    if movies.min() < 0 or movies.max() >= shape[1]:
        raise ValueError(f"clues.movies must run from 0 to {shape[1] - 1}.")
    arrays = [movies]
    for name in ("stars", "days"):
        arrays.append(_arguments.finite_array(getattr(clues, name), f"clues.{name}"))
        if arrays[-1].shape != movies.shape:
            raise ValueError(f"clues.{name} must have the shape of clues.movies, {movies.shape}.")
    return arrays


def _without(without, movies, users):
    if users < (2 if without is None else 3):
        raise ValueError(f"ratings must leave at least two users to choose from, got {users}.")
    if without is None:
        return np.full(len(movies), NOBODY)
    gone = _whole_numbers(without, "without")
    if gone.shape != (len(movies),) or gone.max() >= users:
        raise ValueError(
            f"without must hold one user from 0 to {users - 1} for each of {len(movies)} targets."
        )
    return gone


# Location traces


class Traces(NamedTuple):
    """Points, one entry each: who was seen at which antenna in which hour."""

    user: np.ndarray
    antenna: np.ndarray
    hour: np.ndarray


def synthetic_traces(users=23_000, antennas=100, days=28, *, rng):
    """Return synthetic `Traces`: about 110 points a user, one place at most in one hour.

    Card. Origin: generated here; no real person's trace. Licence: that of the course. Fit for:
    unicity and what coarser data do to it. Not fit for: anything about a real city. Unicity falls
    with users per antenna: keep it near 230 to speak about the published study.

    Antennas lie within some 40 km, dense in the middle; numbers that are near each other lie
    near each other (halves of halves of the plane), so `coarsen` merges neighbours. A user has 25
    places, visited as k^-1.2: home, then jumps of length r in proportion to
    (r + 1.5 km)^-1.75 e^(-r / 80 km) and to the people there, where a jump within an antenna's
    area counts as 3 km. Calls follow the hour of the day;
    in working hours the second place is six times as likely. Activity is log-normal.

    >>> trace = synthetic_traces(50, 10, rng=np.random.default_rng(0))
    >>> len(np.unique(trace.user)), int(trace.antenna.max()), bool(trace.hour.max() < 28 * 24)
    (50, 9, True)
    """
    users = _arguments.whole(users, "users", least=2)
    antennas = _arguments.whole(antennas, "antennas", least=1)
    hours = 24 * _arguments.whole(days, "days", least=1)
    places = _places(users, antennas, _arguments.generator(rng))
    many = 5.3 * days * rng.lognormal(-(0.8**2) / 2, 0.8, users)
    many = np.clip(np.rint(many), 1, hours // 2).astype(np.int64)
    user = np.repeat(np.arange(users, dtype=np.int32), many)
    of_day = np.array([1, 1, 1, 1, 1, 1, 2, 4, 6, 7, 7, 8, 9, 8, 7, 7, 8, 9, 10, 10, 9, 7, 4, 2.0])
    bounds = np.cumsum(np.tile(of_day, days))
    hour = np.searchsorted(bounds[:-1], rng.random(len(user)) * bounds[-1], side="right")
    visits = np.arange(1, 26) ** -1.2
    at_work = visits * np.where(np.arange(25) == 1, 6, 1)
    u, ranks = rng.random(len(user)), []
    for shares in (visits, at_work):
        ranks.append(np.searchsorted(np.cumsum(shares / shares.sum())[:-1], u, side="right"))
    work = (hour % 24 >= 9) & (hour % 24 < 17) & (hour // 24 % 7 < 5)
    seen = np.full(users * hours, -1, np.int32)  # the last one stands: one place in one hour
    seen[user.astype(np.int64) * hours + hour] = places[user, np.where(work, ranks[1], ranks[0])]
    at = np.flatnonzero(seen >= 0)
    return Traces(at // hours, seen[at].astype(np.int64), at % hours)


def _places(users, antennas, rng):
    """Return the 25 antennas of each user, home first."""
    where = rng.normal(0, 20, (antennas, 2))
    where = where[_near_order(where, np.arange(antennas))]
    people = rng.gamma(2.0, size=antennas)
    away = np.hypot(*(where[:, None] - where).T)
    np.fill_diagonal(away, 3)
    jump = (away + 1.5) ** -1.75 * np.exp(-away / 80) * people
    home = np.sort(rng.choice(antennas, users, p=people / people.sum()))
    places = np.empty((users, 25), np.int64)
    places[:, 0] = home
    for antenna in range(antennas):
        low, high = np.searchsorted(home, [antenna, antenna + 1])
        bounds = np.cumsum(jump[antenna] / jump[antenna].sum())[:-1]
        draws = rng.random((high - low, 24))
        places[low:high, 1:] = np.searchsorted(bounds, draws, side="right")
    return rng.permutation(places)


def _near_order(where, these):
    """Return `these` so that each run of 1, 2, 4, 8, ... from the start lies together."""
    if len(these) < 2:
        return these
    wide = np.argmax(np.ptp(where[these], axis=0))
    these = these[np.argsort(where[these, wide], kind="stable")]
    half = 1 << (len(these) - 1).bit_length() - 1
    return np.concatenate([_near_order(where, these[:half]), _near_order(where, these[half:])])


def coarsen(traces, *, antennas=1, hours=1):
    """Return `Traces` with `antennas` neighbouring numbers and `hours` hours merged into one.

    Points that become equal are all kept; `unicity` counts them once.

    >>> coarsen(Traces([0, 0], [3, 4], [7, 8]), antennas=4, hours=6).antenna
    array([0, 1])
    """
    antennas = _arguments.whole(antennas, "antennas", least=1)
    hours = _arguments.whole(hours, "hours", least=1)
    user, antenna, hour = _checked_traces(traces)
    return Traces(user.copy(), antenna // antennas, hour // hours)


def unicity(traces, *, points, targets, rng):
    """Return the share of targets whom so many random points of their trace tell from all others.

    A trace is the set of a user's (antenna, hour). The targets are drawn at random among users with
    at least max(points) points; the points of a target are the first p of one random order, so the
    share never falls with p.

    Args:
        points: a whole number, or a list of them. targets: how many users to try.

    Returns: a number, or an array of one for each of `points`.

    Raises: ValueError for fewer users with so many points than targets.
    Source: de Montjoye et al. (2013): four points tell 95% of 1.5 million people apart.

    >>> trace = Traces([0, 0, 1, 1, 2], [5, 6, 5, 7, 7], [9, 9, 9, 9, 9])
    >>> unicity(trace, points=[1, 2], targets=2, rng=np.random.default_rng(0))
    array([0.5, 1. ])
    """
    several = [_arguments.whole(p, "points", least=1) for p in np.ravel(points)]
    if np.ndim(points) > 1 or not several:
        raise ValueError(f"points must be a whole number or a list of them, got {points!r}.")
    targets, most = _arguments.whole(targets, "targets", least=1), max(several)
    _arguments.generator(rng)
    by_user = _cells_of_users(*_checked_traces(traces))
    long = np.flatnonzero(np.diff(by_user.indptr) >= most)
    if len(long) < targets:
        raise ValueError(
            f"targets must be at most the users with {most} points, {len(long)}, got {targets}."
        )
    who = rng.choice(long, targets, replace=False)
    spans = [by_user.indices[by_user.indptr[u] : by_user.indptr[u + 1]] for u in who]
    known = np.stack([rng.choice(cells, most, replace=False) for cells in spans])
    by_cell = by_user.T.tocsr()
    matching, alone = by_cell[known[:, 0]], []
    for p in range(most):
        matching = matching.multiply(by_cell[known[:, p]]).tocsr() if p else matching
        alone.append(np.mean(np.diff(matching.indptr) == 1))
    found = np.array(alone)[np.array(several) - 1]
    return found if np.ndim(points) else float(found[0])


def independent_unicity(users, *, chance, points):
    """Return the unicity if each user visits each cell independently with probability `chance`.

    All others miss one of p points: (1 - chance^p)^(users - 1).

    >>> round(independent_unicity(1000, chance=0.1, points=3), 3)
    0.368
    """
    users = _arguments.whole(users, "users", least=1)
    points = _arguments.whole(points, "points", least=1)
    return (1 - _arguments.probability(chance, "chance") ** points) ** (users - 1)


class CoarseningLaw(NamedTuple):
    """unicity = alpha - (antennas x hours)^beta, and the root mean square of what is left."""

    alpha: float
    beta: float
    error: float

    def at(self, merged):
        """Return what the law says for so many antennas x hours merged, or an array of them."""
        return self.alpha - np.asarray(merged, float) ** self.beta


def fit_coarsening_law(merged, unicities):
    """Return the `CoarseningLaw` that fits best (least squares).

    It may exceed 1 where little is merged; it describes the range it was fitted to.

    Args:
        merged: antennas x hours merged into one, at least 1. unicities: as measured there.

    Raises: ValueError for lists of unequal length, or fewer than two different values of merged.
    Source: de Montjoye et al. (2013): alpha - (v h)^beta, not (v h)^beta.

    >>> law = fit_coarsening_law([1, 4, 16, 64], 2 - np.array([1, 4, 16, 64]) ** 0.15)
    >>> round(law.alpha, 6), round(law.beta, 6)
    (2.0, 0.15)
    """
    merged = _arguments.finite_array(merged, "merged", ndim=1)
    shares = _arguments.finite_array(unicities, "unicities", ndim=1)
    _one_length(merged=merged, unicities=shares)
    if len(np.unique(merged)) < 2 or merged.min() < 1:
        raise ValueError(f"merged must hold two different numbers of at least 1, got {merged}.")

    def residual(beta):
        rest = shares + merged**beta  # alpha for each; the best one is their mean
        return np.sqrt(np.mean((rest - rest.mean()) ** 2))

    best = minimize_scalar(residual, bounds=(-1, 1), method="bounded", options={"xatol": 1e-10})
    return CoarseningLaw(float(np.mean(shares + merged**best.x)), float(best.x), float(best.fun))


def _cells_of_users(user, antenna, hour):
    """Return a boolean csr array (users, cells): who was where when; empty cells are left out."""
    cell = antenna * (int(hour.max()) + 1) + hour
    cell, user = (
        np.unique(these, return_inverse=True)[1] if these.max() > 50_000_000 else these
        for these in (cell, user)
    )
    array = sparse.csr_array((np.ones(len(user), np.int8), (user, cell)))
    array.data[:] = 1  # the sum of repeated points; as products they could overflow to 0
    return array


def _checked_traces(traces):
    try:
        user, antenna, hour = traces
    except (TypeError, ValueError):
        raise TypeError(
            f"traces must be Traces(user, antenna, hour), got {type(traces).__name__}."
        ) from None
    user, antenna = _whole_numbers(user, "user"), _whole_numbers(antenna, "antenna")
    hour = _whole_numbers(hour, "hour")
    _one_length(user=user, antenna=antenna, hour=hour)
    if (int(antenna.max()) + 1) * (int(hour.max()) + 1) > 2**62:
        raise ValueError("traces must have numbers that fit 64 bits: antenna x hour is too large.")
    return user, antenna, hour


def _whole_numbers(values, name):
    array = np.asarray(_arguments.unmasked(values, name))
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{name} must be a list of at least one whole number, got {values!r}.")
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold whole numbers, got {array.dtype} values.")
    if array.min() < 0:
        raise ValueError(f"{name} must hold numbers of at least 0, got {array.min()}.")
    return array.astype(np.int64, copy=False)


def _one_length(**arrays):
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} {len(array)}" for name, array in arrays.items())
        raise ValueError(f"the lists must be of one length, got {lengths}.")
