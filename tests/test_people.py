"""People: the tables that ship, the law that is drawn from, and the two tables of one population.

Random tests: the seeds are fixed, and the bounds such that a right generator would fail at other
seeds with probability 1e-9 or less.
"""

import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

from coursekit import people as module
from coursekit.people import (
    COLUMNS,
    age_shares,
    birth_cells,
    hospital_and_voters,
    people,
    zip_size_table,
    zip_sizes,
)

ALARM = 1e-9


def generator(seed):
    return np.random.default_rng(seed)


def fits(counts, shares):
    """Whether counts look drawn from shares, at a false alarm of 1e-9; rare cells are merged."""
    order = np.argsort(shares)
    rare = order[np.cumsum(shares[order]) * counts.sum() < 20]
    assert not counts[shares == 0].any()
    kept = np.setdiff1d(np.flatnonzero(shares), rare)
    seen = np.append(counts[kept], counts[rare].sum())
    expected = np.append(shares[kept], shares[rare].sum()) * counts.sum()
    seen, expected = seen[expected > 0], expected[expected > 0]
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), len(seen) - 1) > ALARM


# The tables


def test_the_census_counts_add_up_to_the_official_number():
    assert (sum(module.MEN), sum(module.WOMEN)) == (151_781_326, 156_964_212)
    assert module.POPULATION == 308_745_538
    assert len(module.MEN) == len(module.WOMEN) == 21


def test_age_shares_are_the_counts_split_evenly():
    shares = age_shares().reshape(2, 21, 5)
    assert shares.sum() == pytest.approx(1)
    assert np.allclose(shares.sum(axis=2)[1], np.array(module.MEN) / module.POPULATION)
    assert np.ptp(shares, axis=2).max() == 0
    adults = age_shares(18)
    assert adults.sum() == pytest.approx(1) and not adults.reshape(2, 105)[:, :18].any()
    assert adults[20] / adults[30] == pytest.approx(age_shares()[20] / age_shares()[30])


@pytest.mark.parametrize("youngest", [0, 18])
def test_days_add_up_to_months_and_months_to_years(youngest):
    year, month, day = (birth_cells(detail, youngest) for detail in ("year", "month", "day"))
    assert np.allclose(month.reshape(210, 12).sum(axis=1), year)
    days = np.array(
        [
            (np.datetime64(f"{2011 - age}-01-01") - np.datetime64(f"{2010 - age}-01-01")).astype(
                int
            )
            for age in range(105)
        ]
    )
    ends = np.cumsum(np.tile(days, 2))
    assert len(day) == ends[-1]
    assert np.allclose(np.add.reduceat(day, ends - np.tile(days, 2)), year)
    assert np.allclose(month.reshape(210, 12)[:, 3], year * 30 / np.tile(days, 2))


def test_the_size_table_keeps_both_tables_of_quantiles():
    sizes, weights = zip_size_table()
    assert weights.sum() == pytest.approx(1) and (np.diff(sizes) > 0).all()
    at = np.cumsum(weights) - weights / 2
    found = np.interp(np.arange(0.075, 1, 0.05), at, sizes)
    assert np.allclose(found, module.ZIP_SIZES_BY_PEOPLE[1:], rtol=0.01)
    # two sources, one number: the lowest quantile over people was not used
    assert np.interp(0.025, at, sizes) == pytest.approx(module.ZIP_SIZES_BY_PEOPLE[0], rel=0.02)
    zips = module.POPULATION * weights / sizes
    assert zips.sum() == pytest.approx(module.ZIP_CODES, rel=0.01)
    below = [zips[sizes < size].sum() / zips.sum() for size in module.ZIP_SIZES_BY_ZIP]
    assert np.allclose(below, np.arange(6) / 10, atol=0.01)


def test_the_size_table_cannot_be_changed_by_its_reader():
    zip_size_table()[0][:] = 0
    assert zip_size_table()[0].min() > 0


@pytest.mark.parametrize("drawn_by", ["zip", "person"])
def test_zip_sizes_follow_the_table(drawn_by):
    sizes, weights = zip_size_table()
    chances = weights / sizes if drawn_by == "zip" else weights
    drawn = zip_sizes(50_000, rng=generator(1), drawn_by=drawn_by)
    values, counts = np.unique(drawn, return_counts=True)
    whole = np.rint(sizes).astype(int)
    assert set(values) <= set(whole)
    all_counts = np.zeros(len(sizes), int)
    all_counts[np.searchsorted(whole, values)] = counts
    assert fits(all_counts, chances / chances.sum())


# The people


@pytest.fixture(scope="module")
def town():
    return people([40_000, 60_000, 100_000], rng=generator(3))


def test_the_columns_are_those_promised(town):
    assert tuple(town) == COLUMNS
    assert {len(column) for column in town.values()} == {200_000}
    assert {column.ndim for column in town.values()} == {1}
    kinds = {name: column.dtype.kind for name, column in town.items()}
    text = dict.fromkeys(("zip", "sex", "race", "diagnosis", "name"), "U")
    assert kinds == {**dict.fromkeys(COLUMNS, "i"), **text, "birth_date": "M"}
    codes, counts = np.unique(town["zip"], return_counts=True)
    assert list(codes) == ["00001", "00002", "00003"]
    assert list(counts) == [40_000, 60_000, 100_000]


@pytest.mark.parametrize("detail, unit", [("year", "Y"), ("month", "M")])
@pytest.mark.parametrize("youngest", [0, 18])
def test_sex_and_birth_follow_birth_cells(detail, unit, youngest):
    table = people(200_000, rng=generator(4), youngest=youngest, columns=("sex", "birth_date"))
    age = 2010 - table["birth_date"].astype("datetime64[Y]").astype(int) - 1970
    cell = age + 105 * (table["sex"] == "M")
    if unit == "M":
        cell = 12 * cell + table["birth_date"].astype("datetime64[M]").astype(int) % 12
    shares = birth_cells(detail, youngest)
    assert fits(np.bincount(cell, minlength=len(shares)), shares)


def test_days_of_a_year_are_alike_and_leap_days_exist(town):
    dates = town["birth_date"]
    year = dates.astype("datetime64[Y]")
    day = (dates - year).astype(int)
    leap = ((year + 1).astype("datetime64[D]") - year.astype("datetime64[D]")).astype(int) == 366
    for which, length in ((~leap, 365), (leap, 366)):
        counts = np.bincount(day[which], minlength=length)
        assert len(counts) == length and fits(counts, np.full(length, 1 / length))


def test_age_agrees_with_birth_date(town):
    year = 1970 + town["birth_date"].astype("datetime64[Y]").astype(int)
    assert (town["age"] == 2010 - year).all()


def test_race_follows_its_shares(town):
    counts = np.array([(town["race"] == race).sum() for race in module.RACES])
    assert fits(counts, np.array(module.RACE_SHARES))


def test_diagnoses_follow_their_table_and_no_man_is_pregnant(town):
    names = list(module.DIAGNOSES)
    for band, (low, high) in enumerate([(0, 17), (18, 44), (45, 64), (65, 104)]):
        for sex in "FM":
            here = (town["age"] >= low) & (town["age"] <= high) & (town["sex"] == sex)
            counts = np.array([(town["diagnosis"][here] == name).sum() for name in names])
            shares = np.array([module.DIAGNOSES[name][band] for name in names], float)
            shares[names.index("pregnancy")] *= sex == "F"
            assert fits(counts, shares / shares.sum())


def test_nobody_works_or_learns_before_their_time(town):
    assert not town["hours"][town["age"] < 16].any()
    assert not town["income"][town["age"] < 16].any()
    assert (town["education"] <= np.maximum(town["age"] - 5, 0)).all()
    assert town["hours"].min() == 0 and town["hours"].max() <= 90
    assert town["education"].min() == 0 and town["education"].max() == 20


def test_income_hangs_on_schooling_so_that_homogeneity_bites(town):
    working = (town["age"] > 24) & (town["age"] < 65) & (town["hours"] >= 35)
    high = working & (town["education"] >= 16)
    low = working & (town["education"] < 12)
    assert np.mean(town["income"][high] > 50_000) > 2 * np.mean(town["income"][low] > 50_000)
    assert 0.1 < np.mean(town["income"][town["age"] > 17] > 50_000) < 0.3


def test_names_are_made_of_syllables_and_fit_the_sex(town):
    for sex in "FM":
        given = {name.split()[0].lower() for name in np.unique(town["name"][town["sex"] == sex])}
        assert given <= {start + end for start in module.STARTS for end in module.ENDS[sex]}
    assert len(np.unique(town["name"])) > 35_000


def test_the_seed_decides_and_two_calls_differ():
    first, again, other = (people(50, rng=generator(seed)) for seed in (5, 5, 6))
    assert all((first[name] == again[name]).all() for name in COLUMNS)
    assert (first["birth_date"] != other["birth_date"]).any()
    rng = generator(5)
    assert (people(50, rng=rng)["name"] != people(50, rng=rng)["name"]).any()


def test_a_column_does_not_depend_on_the_columns_asked_for():
    every = people([300, 200], rng=generator(7))
    for name in COLUMNS:
        (only,) = people([300, 200], rng=generator(7), columns=(name,)).values()
        assert (only == every[name]).all()


# Two tables of one population


def test_the_two_tables_hold_what_they_should(town):
    before = {name: column.copy() for name, column in town.items()}
    release = hospital_and_voters(town, h=0.1, v=0.6, rng=generator(9))
    assert list(release.hospital) == ["zip", "birth_date", "sex", "race", "diagnosis"]
    assert list(release.voters) == ["name", "zip", "birth_date", "sex"]
    for table, rows in (
        (release.hospital, release.hospital_rows),
        (release.voters, release.voter_rows),
    ):
        assert len(np.unique(rows)) == len(rows)
        assert all((table[name] == town[name][rows]).all() for name in table)
        assert (np.diff(rows) < 0).any()  # in no telling order
    assert all((town[name] == before[name]).all() for name in town)


def test_coverage_is_h_and_v_and_independent(town):
    release = hospital_and_voters(town, h=0.1, v=0.6, rng=generator(10))
    inside = np.zeros((2, 200_000), int)
    inside[0, release.hospital_rows] = inside[1, release.voter_rows] = 1
    counts = np.bincount(2 * inside[0] + inside[1], minlength=4)
    assert fits(counts, np.array([0.9 * 0.4, 0.9 * 0.6, 0.1 * 0.4, 0.1 * 0.6]))


@pytest.mark.parametrize("h, v", [(0, 1), (1, 0)])
def test_nobody_and_everybody_can_be_covered(h, v):
    release = hospital_and_voters(people(100, rng=generator(0)), h=h, v=v, rng=generator(1))
    assert (len(release.hospital_rows), len(release.voter_rows)) == (100 * h, 100 * v)


class Frame:
    """As much of a data frame as is used: names when iterated over, columns by name."""

    def __init__(self, table):
        self.table = table

    def __iter__(self):
        return iter(self.table)

    def __getitem__(self, name):
        return self.table[name]


def test_a_data_frame_is_a_table():
    table = people(100, rng=generator(0))
    plain = hospital_and_voters(table, h=0.5, v=0.5, rng=generator(1))
    framed = hospital_and_voters(Frame(table), h=0.5, v=0.5, rng=generator(1))
    assert (plain.voters["name"] == framed.voters["name"]).all()


# What is refused, and what is loaded


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda r: people([], rng=r), ValueError, "sizes must be"),
        (lambda r: people([[3]], rng=r), ValueError, "sizes must be"),
        (lambda r: people([3, 0], rng=r), ValueError, "at least 1, got 0"),
        (lambda r: people(2.5, rng=r), TypeError, "whole number"),
        (lambda r: people(10**9, rng=r), ValueError, "50,000,000"),
        (lambda r: people(5, rng=7), TypeError, "rng must be"),
        (lambda r: people(5, rng=r, youngest=105), ValueError, "0 to 104"),
        (lambda r: people(5, rng=r, columns=("zip", "height")), ValueError, "got 'height'"),
        (lambda r: zip_sizes(0, rng=r), ValueError, "count"),
        (lambda r: zip_sizes(3, rng=r, drawn_by="house"), ValueError, "'zip', 'person'"),
        (lambda r: birth_cells("hour"), ValueError, "'day', 'month', 'year'"),
        (
            lambda r: hospital_and_voters(people(5, rng=r), h=1.1, v=0.5, rng=r),
            ValueError,
            "h must",
        ),
        (lambda r: hospital_and_voters(people(5, rng=r), h=0.1, v=-1, rng=r), ValueError, "v must"),
        (
            lambda r: hospital_and_voters({"zip": [1]}, h=0.1, v=1, rng=r),
            ValueError,
            "'birth_date'",
        ),
        (lambda r: hospital_and_voters({}, h=0.1, v=1, rng=r), ValueError, "columns are: none"),
        (lambda r: hospital_and_voters(3, h=0.1, v=1, rng=r), TypeError, "map column names"),
        (
            lambda r: hospital_and_voters({**people(5, rng=r), "sex": ["F"]}, h=0.1, v=1, rng=r),
            ValueError,
            "of one length",
        ),
        (
            lambda r: hospital_and_voters({**people(5, rng=r), "sex": [["F"]]}, h=0.1, v=1, rng=r),
            ValueError,
            "1 dimension",
        ),
    ],
)
def test_bad_input_is_refused_with_a_reason(call, error, words):
    with pytest.raises(error, match=words):
        call(generator(0))


@pytest.mark.parametrize("name", ["people", "linkage"])
def test_neither_module_loads_torch(name):
    code = f"import sys, coursekit.{name}; print(sorted({{'torch', 'pandas'}} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
