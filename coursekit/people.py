"""Synthetic people, and a hospital table and a voter list drawn from one population (notebook 06).

Card. Origin: generated here. Sex and age follow the 2010 census of the United States, 42 counts
in bands of five years; the sizes of ZIP codes follow two tables of quantiles of the 2010 census
(ZCTA5). Both are works of the United States government, in the public domain; the counts add up to
the official 308,745,538. Everything else is invented, with round numbers of no source: races,
schooling, hours, incomes, diagnoses and how they hang together. ZIP codes are running numbers.
Names are syllables put together, taken from no list of people; a likeness is chance. Licence: that
of the course. Size: as many people as asked for. Fit for: how often people are unique by ZIP, birth
date and sex, linkage, anonymisation. Not fit for: any statement about race, income or health.

A table is a dict from column name to a 1-D array, one entry a person. Nothing here changes one.
"""

import functools
from typing import NamedTuple

import numpy as np

from coursekit import _arguments

# 2010 census: people of age 0-4, 5-9, ..., 95-99, 100 and over (taken as 100-104).
MEN = (
    *(10319427, 10389638, 10579862, 11303666, 11014176, 10635591, 9996500, 10042022, 10393977),
    *(11209085, 10933274, 9523648, 8077500, 5852547, 4243972, 3182388, 2294374, 1273867),
    *(424387, 82263, 9162),
)
WOMEN = (
    *(9881935, 9959019, 10097332, 10736677, 10571823, 10466258, 9965599, 10137620, 10496987),
    *(11499506, 11364851, 10141157, 8740424, 6582716, 5034194, 4135407, 3448953, 2346592),
    *(1023979, 288981, 44202),
)
# 2010 census, ZCTA5: 2.5%, 7.5%, ..., 97.5% of all people live in a ZIP code of at most so many.
ZIP_SIZES_BY_PEOPLE = (
    *(1564, 4082, 6951, 10021, 13043, 15851, 18551, 21115, 23674, 26125),
    *(28417, 30613, 33249, 36056, 38910, 42204, 46327, 51748, 59182, 75220),
)
# 2010 census, ZCTA5: 0%, 10%, ..., 50% of the 32,948 ZIP codes with people have at most so many.
ZIP_SIZES_BY_ZIP = (1, 238, 527, 984, 1665, 2786)
ZIP_CODES, POPULATION = 32_948, sum(MEN) + sum(WOMEN)

YEAR = 2010  # ages are those reached in this year, so that a birth year is one age
SEXES = np.array(["F", "M"])
COLUMNS = (
    *("zip", "birth_date", "age", "sex", "race", "education", "hours", "income", "diagnosis"),
    "name",
)
RACES = np.array(["white", "black", "asian", "other", "two or more"])
RACE_SHARES = (0.70, 0.13, 0.06, 0.07, 0.04)

# Of every 100 hospital visits at age 0-17, 18-44, 45-64 and over 64; invented.
DIAGNOSES = {
    "appendicitis": (8, 6, 3, 2),
    "arthritis": (1, 3, 11, 15),
    "asthma": (22, 9, 6, 3),
    "cancer": (2, 4, 11, 13),
    "depression": (5, 15, 9, 4),
    "diabetes": (3, 6, 13, 12),
    "fracture": (21, 9, 6, 9),
    "heart failure": (1, 1, 7, 16),
    "influenza": (17, 8, 5, 5),
    "kidney stones": (1, 7, 7, 3),
    "migraine": (6, 11, 7, 2),
    "pneumonia": (12, 4, 6, 9),
    "pregnancy": (1, 17, 0, 0),  # of women; men have the rest
    "stroke": (0, 0, 9, 7),
}
STARTS = (
    *("bel", "cor", "dav", "el", "fen", "gar", "hal", "is", "jor", "kel", "lor", "mar", "nor"),
    *("or", "pel", "quin", "ros", "sel", "tam", "ul", "ver", "wil", "yar", "zel"),
)
ENDS = {"F": ("a", "ina", "etta", "isse", "anne", "ily"), "M": ("o", "en", "ard", "us", "im", "ek")}
HOUSES = ("asp", "brin", "crow", "dun", "elm", "fair", "gold", "hart", "lind", "moss", "oak", "pem")
PLACES = ("berg", "by", "combe", "dale", "field", "ford", "grove", "ham", "ley", "more", "ton")


def age_shares(youngest=0):
    """Return the shares of the 210 groups (sex, age), ages 0 to 104: women first.

    A band of five years is split evenly. `youngest` leaves out younger people.

    >>> shares = age_shares()
    >>> len(shares), round(float(shares[:105].sum()), 4)  # women
    (210, 0.5084)
    """
    youngest = _arguments.whole(youngest, "youngest", least=0)
    if youngest > 104:
        raise ValueError(f"youngest must be a whole number from 0 to 104, got {youngest}.")
    counts = np.repeat(np.array([WOMEN, MEN]) / 5, 5, axis=1)
    counts[:, :youngest] = 0
    return counts.ravel() / counts.sum()


def birth_cells(detail="day", youngest=0):
    """Return the chance of each cell (sex, day, month or year of birth) for one person of `people`.

    All days of a birth year are alike, so February is rarer than March.

    >>> len(birth_cells("year")), len(birth_cells("month")), len(birth_cells("day"))
    (210, 2520, 76702)
    """
    _arguments.one_of(detail, "detail", ("day", "month", "year"))
    shares = age_shares(youngest)
    if detail == "year":
        return shares
    unit = {"day": "D", "month": "M"}[detail]
    years = np.arange(f"{YEAR - 104}", f"{YEAR + 1}", dtype="datetime64[Y]")[::-1]
    units = [np.arange(year, year + 1, dtype=f"datetime64[{unit}]") for year in years]
    parts = [np.diff(np.append(u, u[-1] + 1).astype("datetime64[D]")).astype(int) for u in units]
    return np.concatenate(
        [share * part / part.sum() for share, part in zip(shares, 2 * parts, strict=True)]
    )


@functools.cache
def _size_table():
    small = np.array(ZIP_SIZES_BY_ZIP, float)
    low = (small[:-1, None] + np.diff(small)[:, None] * (np.arange(10) + 0.5) / 10).ravel()
    low_weights = low * (0.01 * ZIP_CODES / POPULATION)  # each stands for 1% of the ZIP codes
    share = low_weights.sum()
    sizes, at = np.array(ZIP_SIZES_BY_PEOPLE[1:], float), np.arange(0.075, 1, 0.05)
    at = np.concatenate([[share], at, [1]])
    sizes = np.concatenate([[small[-1]], sizes, [1.5 * sizes[-1] - 0.5 * sizes[-2]]])
    high = np.interp(share + (1 - share) * (np.arange(95) + 0.5) / 95, at, sizes)
    return np.concatenate([low, high]), np.append(low_weights, np.full(95, (1 - share) / 95))


def zip_size_table():
    """Return (sizes, weights): ZIP codes of about so many people hold this share of all people.

    The smaller half of all ZIP codes (5% of the people) comes from the quantiles over ZIP codes,
    the rest from those over people, both joined by straight lines. It gives 32,800 ZIP codes, of
    really 32,948. Of these people, 0.6434 are alone with their ZIP, birth date and sex, 0.0393 with
    the month of birth and 0.0018 with the year; the whole census file gives 0.6434, 0.0395 and
    0.0018, the 20 quantiles over people alone 0.6438, 0.0369 and 0.0006.

    >>> sizes, weights = zip_size_table()
    >>> len(sizes), round(sizes @ weights)  # the ZIP code of a person has about 29,200 people
    (145, 29225)
    """
    return tuple(array.copy() for array in _size_table())


def zip_sizes(count, *, rng, drawn_by="zip"):
    """Return the sizes of `count` ZIP codes, drawn from `zip_size_table` with replacement.

    `drawn_by`: "zip", each ZIP code alike (about 9,400 people), or "person", the ZIP codes of
    people drawn at random, which are larger (about 29,200).

    >>> zip_sizes(3, rng=np.random.default_rng(0))
    array([6447,  824,  108])
    """
    count = _arguments.whole(count, "count", least=1)
    _arguments.one_of(drawn_by, "drawn_by", ("zip", "person"))
    sizes, weights = _size_table()
    chances = weights / sizes if drawn_by == "zip" else weights
    drawn = _arguments.generator(rng).choice(sizes, count, p=chances / chances.sum())
    return np.rint(drawn).astype(np.int64)


def people(sizes, *, rng, youngest=0, columns=COLUMNS):
    """Return a table of everybody in ZIP codes of `sizes` people, or of one, if it is a number.

    Args:
        sizes: people in each ZIP code, such as 30_000 or zip_sizes(40, rng=rng).
        rng: a numpy Generator; each column has a stream of its own, spawned from it.
        youngest: leaves out younger people; 18 gives a population of adults.
        columns: which columns to return, and in which order; their values do not depend on it.

    Columns: zip (five digits, as text), birth_date (a day), age (reached in 2010), sex ("F", "M"),
    race, education (years of schooling), hours (of paid work a week), income (a year), diagnosis
    (of a hospital visit, had there been one), name.

    Raises: ValueError for sizes below 1 or over 50 million people, or a column not listed.

    >>> table = people([3, 2], rng=np.random.default_rng(1), columns=("zip", "age", "name"))
    >>> for row in zip(*table.values()):
    ...     print(*row)
    00001 27 Garard Elmton
    00001 26 Nora Hartdale
    00001 19 Rosek Aspgrove
    00002 47 Ela Dunley
    00002 14 Coretta Mossley
    """
    sizes = _sizes(sizes)
    for name in columns:
        _arguments.one_of(name, "each of columns", COLUMNS)
    shares = age_shares(youngest)
    streams = dict(
        zip(("birth", *COLUMNS), _arguments.generator(rng).spawn(1 + len(COLUMNS)), strict=True)
    )
    n = sizes.sum()
    group = np.searchsorted(np.cumsum(shares)[:-1], streams["birth"].random(n), side="right")
    male, age = np.divmod(group, 105)
    fill = _Columns(sizes, male, age, streams)
    return {name: getattr(fill, name)() for name in columns}


def _sizes(sizes):
    if np.ndim(sizes) > 1 or np.size(sizes) == 0:
        raise ValueError(f"sizes must be a whole number or a list of them, got {sizes!r}.")
    whole = [_arguments.whole(size, "each of sizes", least=1) for size in np.ravel(sizes).tolist()]
    if sum(whole) > 50_000_000 or len(whole) > 99_999:
        raise ValueError(
            "sizes must come to at most 50,000,000 people in 99,999 ZIP codes, got "
            f"{sum(whole):,} in {len(whole):,}."
        )
    return np.array(whole, dtype=np.int64)


class _Columns:
    """One method for each column: what is drawn first is shared by those that depend on it."""

    def __init__(self, sizes, male, age, streams):
        self.sizes, self.streams, self.n = sizes, streams, len(age)
        self.male, self.years = male, age

    def zip(self):
        codes = np.array([f"{code:05d}" for code in range(1, len(self.sizes) + 1)])
        return np.repeat(codes, self.sizes)

    def birth_date(self):
        year = np.arange(105)
        first = (YEAR - year - 1970).astype("datetime64[Y]")
        start = first.astype("datetime64[D]")
        length = ((first + 1).astype("datetime64[D]") - start).astype(int)
        day = (self.streams["birth_date"].random(self.n) * length[self.years]).astype(np.int64)
        return start[self.years] + day

    def age(self):
        return self.years

    def sex(self):
        return SEXES[self.male]

    def race(self):
        return RACES[_draw(self.streams["race"], np.array([RACE_SHARES]), np.zeros(self.n, int))]

    @functools.cached_property
    def schooling(self):
        """Twelve years for most, more for some, less for the old; not more than age allows."""
        cuts = [-2.4, -2.1, -1.9, -1.7, -1.5, -1.3, -1.1, 0.05, 0.25, 0.5, 0.65, 1.3, 1.5, 1.9, 2.2]
        latent = self.streams["education"].normal(size=self.n) - 0.4 * (self.years > 65)
        return np.minimum(5 + np.searchsorted(cuts, latent), np.maximum(self.years - 5, 0))

    def education(self):
        return self.schooling

    @functools.cached_property
    def work(self):
        stream, age = self.streams["hours"], self.years
        usual = np.clip(np.rint(stream.normal(40 - 6 * (1 - self.male), 11, self.n)), 1, 90)
        kind = stream.random(self.n)
        idle = np.select([age < 16, age < 22, age < 65, age < 75], [1, 0.5, 0.22, 0.75], 0.95)
        full_time = kind < idle + 0.4 * (1 - idle)
        return np.where(kind < idle, 0, np.where(full_time, 40, usual)).astype(int)

    def hours(self):
        return self.work

    def income(self):
        """Pay grows with schooling, hours and, up to 50, age; those over 64 have a pension."""
        noise = np.exp(self.streams["income"].normal(0, 0.45, self.n))
        rise = 0.1 * (self.schooling - 12) + 0.02 * np.clip(self.years - 35, -15, 15)
        pay = 33_000 * self.work / 40 * np.exp(rise)
        return (np.rint((pay + 14_000 * (self.years > 64)) * noise / 100) * 100).astype(int)

    def diagnosis(self):
        visits = np.array(list(DIAGNOSES.values()), float).T
        by_sex = np.stack([visits, visits * (np.array(list(DIAGNOSES)) != "pregnancy")], axis=1)
        band = np.searchsorted([17, 44, 64], self.years)
        shares = (by_sex / by_sex.sum(axis=2, keepdims=True)).reshape(8, -1)
        drawn = _draw(self.streams["diagnosis"], shares, 2 * band + self.male)
        return np.array(list(DIAGNOSES))[drawn]

    def name(self):
        stream, table = self.streams["name"], _names()
        return table[self.male, stream.integers(0, table.shape[1], self.n)]


def _draw(stream, shares, row):
    """Return one column of `shares` for each entry of `row`, which says whose shares to use."""
    bounds, u = np.cumsum(shares, axis=1)[:, :-1], stream.random(len(row))
    return sum((u >= bounds[row, k] for k in range(bounds.shape[1])), np.zeros(len(row), int))


@functools.cache
def _names():
    """Return all names, one row for each sex."""
    families = [(house + place).capitalize() for house in HOUSES for place in PLACES]
    names = []
    for sex in SEXES:
        given = [(start + end).capitalize() for start in STARTS for end in ENDS[sex]]
        names.append([f"{one} {family}" for one in given for family in families])
    return np.array(names)


class Release(NamedTuple):
    """Two tables, and the truth that no attacker sees: the row in the population of each record."""

    hospital: dict
    voters: dict
    hospital_rows: np.ndarray
    voter_rows: np.ndarray


def hospital_and_voters(population, *, h, v, rng):
    """Return a hospital table without names and a voter list, drawn from one table of people.

    Each person is in hospital with probability `h` and on the list with probability `v`,
    independently; both tables come in random order. Give adults (`people(..., youngest=18)`) for
    a list of voters that can hold all of them.

    Raises: ValueError for h or v outside [0, 1], or a population that lacks a column.

    >>> rng = np.random.default_rng(2)
    >>> release = hospital_and_voters(people(1000, rng=rng, youngest=18), h=0.1, v=0.6, rng=rng)
    >>> list(release.hospital), list(release.voters)
    (['zip', 'birth_date', 'sex', 'race', 'diagnosis'], ['name', 'zip', 'birth_date', 'sex'])
    """
    h, v = _arguments.probability(h, "h"), _arguments.probability(v, "v")
    in_hospital = ("zip", "birth_date", "sex", "race", "diagnosis")
    on_list = ("name", "zip", "birth_date", "sex")
    arrays = columns_of(population, dict.fromkeys(in_hospital + on_list), "population")
    _arguments.generator(rng)
    n = len(arrays["zip"])
    patients = rng.permutation(np.flatnonzero(rng.random(n) < h))
    voters = rng.permutation(np.flatnonzero(rng.random(n) < v))
    return Release(
        {name: arrays[name][patients] for name in in_hospital},
        {name: arrays[name][voters] for name in on_list},
        patients,
        voters,
    )


def columns_of(table, names, what):
    """Return the named columns of `table` as arrays of one length; missing ones are refused.

    >>> columns_of({"age": [30, 40]}, ["zip"], "table")
    Traceback (most recent call last):
    ValueError: table must have a column 'zip', its columns are: 'age'.
    """
    try:
        there = list(table)
        table[there[0]] if there else None
    except (TypeError, KeyError, IndexError):
        raise TypeError(
            f"{what} must map column names to arrays, such as a dict or a data frame, got "
            f"{type(table).__name__}."
        ) from None
    for name in names:
        if name not in there:
            listed = ", ".join(repr(one) for one in there) or "none"
            raise ValueError(f"{what} must have a column {name!r}, its columns are: {listed}.")
    arrays = {}
    for name in names:
        arrays[name] = np.asarray(_arguments.unmasked(table[name], f"column {name!r}"))
        if arrays[name].ndim != 1:
            shape = arrays[name].shape
            raise ValueError(f"column {name!r} of {what} must have 1 dimension, got shape {shape}.")
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the columns of {what} must be of one length, got {lengths}.")
    return arrays
