"""Linkage: against enumeration, brute force, the closed forms and the published figures.

Simulations of the uniqueness and linkage tables: within 4 standard errors, at five stated seeds.
"""

import itertools
import math
import time

import numpy as np
import pytest
from scipy import sparse, stats

from coursekit import linkage
from coursekit.linkage import (
    Clues,
    Traces,
    clues_about,
    coarsen,
    expected_links,
    expected_uniqueness,
    fit_coarsening_law,
    independent_unicity,
    join,
    link_precision,
    pigeonhole_uniqueness,
    ratings_of,
    scoreboard,
    simulated_uniqueness,
    synthetic_ratings,
    synthetic_traces,
    unicity,
    uniqueness,
    uniqueness_error,
)
from coursekit.people import (
    ZIP_SIZES_BY_PEOPLE,
    age_shares,
    birth_cells,
    hospital_and_voters,
    people,
    zip_size_table,
    zip_sizes,
)

SEEDS = range(5)
KEY = ["zip", "birth_date", "sex"]


def generator(seed):
    return np.random.default_rng(seed)


# Uniqueness


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_expected_uniqueness_and_its_error_by_enumeration(n):
    shares = np.array([0.1, 0.2, 0.3, 0.4])
    mean = 0.0
    for cells in itertools.product(range(4), repeat=n):
        counts = np.bincount(cells, minlength=4)
        mean += np.prod(shares[list(cells)]) * (counts == 1).sum() / n
    assert expected_uniqueness(n, shares) == pytest.approx(mean, rel=1e-12)


def test_two_people_and_two_cells_are_alone_half_of_the_time():
    assert expected_uniqueness(2, [0.5, 0.5]) == 0.5


def test_groups_count_by_their_people():
    one, two = expected_uniqueness(10, [1.0], cells=9), expected_uniqueness(30, [1.0], cells=9)
    assert expected_uniqueness([10, 30, 10], [1.0], cells=9) == pytest.approx(0.4 * one + 0.6 * two)
    weighted = expected_uniqueness([10, 30], [1.0], cells=9, weights=[0.9, 0.1])
    assert weighted == pytest.approx(0.9 * one + 0.1 * two)


def test_cells_split_each_share_evenly():
    whole, split = expected_uniqueness(50, [0.3, 0.7], cells=10), np.repeat([0.03, 0.07], 10)
    assert whole == pytest.approx(expected_uniqueness(50, split), rel=1e-12)
    error = uniqueness_error(50, [0.3, 0.7], cells=10)
    assert error == pytest.approx(uniqueness_error(50, split), rel=1e-12)


@pytest.mark.parametrize(
    "cells, figure, off", [(365.25, 0.6434, 1e-4), (12, 0.0395, 3e-4), (1, 0.0018, 6e-5)]
)
def test_the_nation_is_as_unique_as_the_whole_census_file_says(cells, figure, off):
    sizes, weights = zip_size_table()
    found = expected_uniqueness(sizes, age_shares(), cells=cells, weights=weights)
    assert found == pytest.approx(figure, abs=off)
    detail = {365.25: "day", 12: "month", 1: "year"}[cells]
    calendar = expected_uniqueness(sizes, birth_cells(detail), weights=weights)
    assert calendar == pytest.approx(found, abs=1e-5)


def test_twenty_quantiles_over_people_do_for_days_but_not_for_months():
    def found(cells):
        return expected_uniqueness(
            ZIP_SIZES_BY_PEOPLE, age_shares(), cells=cells, weights=np.full(20, 0.05)
        )

    assert found(365.25) == pytest.approx(0.6438, abs=5e-5)
    assert found(12) == pytest.approx(0.0369, abs=5e-5)
    assert found(1) == pytest.approx(0.0006, abs=5e-5)


def test_cooks_toy():
    assert expected_uniqueness(9330, [1.0], cells=56_940) == pytest.approx(0.8489, abs=5e-5)
    equal = np.full(56_940, 1 / 56_940)
    error = uniqueness_error(9330, equal)
    for seed in SEEDS:
        found = simulated_uniqueness(9330, equal, rng=generator(seed))
        assert abs(found - 0.8489) < 4 * error + 5e-5
        assert 0.838 < found < 0.860  # he reports 0.843 to 0.857


@pytest.mark.parametrize("n, cells", [(400, 500), (2000, 500), (300, 5000), (60, 100)])
def test_the_error_is_that_of_the_occupancy_law(n, cells):
    """For equal cells the variance is known exactly."""
    one = n * (1 / cells) * (1 - 1 / cells) ** (n - 1)
    two = n * (n - 1) / cells**2 * (1 - 2 / cells) ** (n - 2)
    variance = cells * one * (1 - one) + cells * (cells - 1) * (two - one**2)
    error = math.sqrt(variance) / n
    assert uniqueness_error(n, [1.0], cells=cells) == pytest.approx(error, rel=0.02)


def test_the_binomial_error_is_too_small_where_most_are_alone():
    share = expected_uniqueness(1000, [1.0], cells=1e6)
    binomial = math.sqrt(share * (1 - share) / 1000)
    ratio = uniqueness_error(1000, [1.0], cells=1e6) / binomial
    assert ratio == pytest.approx(math.sqrt(2), rel=0.01)


@pytest.mark.parametrize("detail", ["day", "month", "year"])
@pytest.mark.parametrize("seed", SEEDS)
def test_simulation_meets_the_closed_form(detail, seed):
    rng, shares = generator(seed), birth_cells(detail)
    sizes = zip_sizes(100, rng=rng)
    found = simulated_uniqueness(sizes, shares, rng=rng)
    off = found - expected_uniqueness(sizes, shares)
    assert abs(off) < 4 * uniqueness_error(sizes, shares)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_table_of_people_meets_the_closed_form(seed):
    rng = generator(seed)
    sizes = zip_sizes(10, rng=rng)
    table = people(sizes, rng=rng, columns=KEY)
    months = {**table, "birth_date": table["birth_date"].astype("datetime64[M]")}
    for one, detail in ((table, "day"), (months, "month")):
        shares = birth_cells(detail)
        off = uniqueness(one, on=KEY) - expected_uniqueness(sizes, shares)
        assert abs(off) < 4 * uniqueness_error(sizes, shares)


def test_the_pigeonhole_rule_by_hand():
    young = age_shares().reshape(2, 105)[:, :65].sum()
    hand = (10_000 * 1 + 80_000 * (1 - young)) / 90_000  # 80,000 people have too many under 65
    assert 80_000 * young > 730 * 65 >= 10_000 * young
    assert pigeonhole_uniqueness([10_000, 80_000], bands=[0, 65]) == pytest.approx(hand)


@pytest.mark.parametrize(
    "bands", [linkage.FIVE_YEARS, (0, 12, 19, 25, 35, 45, 55, 65), (*range(66),)]
)
def test_the_pigeonhole_rule_gives_nine_tenths_on_the_table_that_gives_064(bands):
    sizes, weights = zip_size_table()
    found = pigeonhole_uniqueness(sizes, bands=bands, weights=weights)
    assert found == pytest.approx(0.909, abs=5e-3)  # 0.909 with the real ages of each ZIP code


def test_pigeonholes_that_are_just_full_leave_one_in_e_alone():
    assert expected_uniqueness(730, [1.0], cells=730) == pytest.approx(1 / math.e, rel=1e-3)


def test_uniqueness_of_a_table_by_brute_force():
    rng = generator(0)
    table = {"a": rng.integers(0, 9, 60), "b": rng.choice(["x", "y", "z"], 60), "c": np.arange(60)}
    rows = list(zip(table["a"], table["b"], strict=True))
    assert uniqueness(table, on=["a", "b"]) == sum(rows.count(row) == 1 for row in rows) / 60
    assert uniqueness(table, on=["c", "a"]) == 1


# The join


def brute_join(left, right, on):
    rows = [list(zip(*(table[name] for name in on), strict=True)) for table in (left, right)]
    return {
        (i, rows[1].index(row))
        for i, row in enumerate(rows[0])
        if rows[0].count(row) == rows[1].count(row) == 1
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_join_is_the_brute_force_join(seed):
    rng = generator(seed)

    def table(n):
        return {
            "zip": rng.choice(["01", "02", "10"], n),
            "age": rng.integers(0, 12, n),
            "born": np.datetime64("2000-01-01") + rng.integers(0, 3, n),
        }

    left, right = table(50), table(70)
    before = [{name: column.copy() for name, column in one.items()} for one in (left, right)]
    for on in (["age"], ["zip", "age"], ["born", "age", "zip"]):
        links = join(left, right, on=on)
        assert set(zip(*links, strict=True)) == brute_join(left, right, on)
        assert len(links.left) == len(set(links.left))
    for one, old in zip((left, right), before, strict=True):
        assert all((one[name] == old[name]).all() for name in old)


def test_join_takes_objects_lists_and_two_kinds_of_number():
    left = {"zip": np.array(["1", "22", "333"], object), "n": [1, 2, 3]}
    right = {"zip": ["333", "1"], "n": [3.0, 1.0]}
    links = join(left, right, on=["zip", "n"])
    assert set(zip(*links, strict=True)) == {(0, 1), (2, 0)}


def test_join_does_not_overflow_with_many_columns():
    """2048^8 cells: in 64 bits the first columns would no longer count."""
    rng = generator(1)
    right = {str(k): rng.permutation(2048) for k in range(8)}
    left = {name: np.append(column, column[0]) for name, column in right.items()}
    left["0"][2048] = right["0"][1]  # the last record is like the first but for one column
    links = join(left, right, on=list(left))
    assert len(links.left) == 2048 and (links.left == links.right).all()


@pytest.mark.parametrize("mean", [0.01, 0.5, 3.0])
@pytest.mark.parametrize("h, v", [(0.1, 0.6), (0.5, 0.5), (1, 0.3), (0.4, 1)])
def test_the_precision_law_by_enumeration(mean, h, v):
    """People in the cell: Poisson. In both tables, in one, in neither: multinomial."""
    claimed = correct = 0.0
    for n in range(1, 60):
        chance = stats.poisson.pmf(n, mean)
        right = n * h * v * ((1 - h) * (1 - v)) ** (n - 1)
        pairs = n * (n - 1) * h * (1 - v) * v * (1 - h) * ((1 - h) * (1 - v)) ** max(n - 2, 0)
        correct, claimed = correct + chance * right, claimed + chance * (right + pairs)
    assert link_precision(mean, h=h, v=v) == pytest.approx(correct / claimed, rel=1e-9)
    found = expected_links(mean * 1e6, [1.0], cells=1e6, h=h, v=v)
    assert found.claimed == pytest.approx(claimed * 1e6, rel=1e-9)
    assert found.correct == pytest.approx(correct * 1e6, rel=1e-9)
    assert found.precision == pytest.approx(correct / claimed, rel=1e-9)
    assert found.recall == pytest.approx(correct / (mean * h), rel=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_join_meets_its_law(seed):
    rng = generator(seed)
    sizes = zip_sizes(20, rng=rng, drawn_by="person")
    adults = people(sizes, rng=rng, youngest=18, columns=(*KEY, "race", "diagnosis", "name"))
    release = hospital_and_voters(adults, h=0.1, v=0.6, rng=rng)
    links = join(release.hospital, release.voters, on=KEY)
    right = release.hospital_rows[links.left] == release.voter_rows[links.right]
    law = expected_links(sizes, birth_cells("day", 18), h=0.1, v=0.6)
    n, p = len(right), law.precision
    assert abs(n - law.claimed) < 4 * math.sqrt(law.claimed)
    assert abs(right.mean() - p) < 4 * math.sqrt(p * (1 - p) / n)
    patients = len(release.hospital_rows)
    error = math.sqrt(law.recall * (1 - law.recall) / patients)
    assert abs(right.sum() / patients - law.recall) < 4 * error
    assert 0.7 < right.mean() < 0.9  # a confident link is often somebody else


def test_everybody_on_both_sides_makes_every_link_right():
    adults = people(2000, rng=generator(0), youngest=18)
    release = hospital_and_voters(adults, h=1, v=1, rng=generator(1))
    links = join(release.hospital, release.voters, on=KEY)
    assert (release.hospital_rows[links.left] == release.voter_rows[links.right]).all()
    assert len(links.left) / 2000 == uniqueness(adults, on=KEY)
    assert link_precision(3, h=1, v=0.2) == link_precision(3, h=0.2, v=1) == 1


# Ratings


def brute_scores(ratings, movies, stars, days, *, without=None, use_days=True):
    """Scores of all users, by loops over dense arrays; -1 marks the one who is gone."""
    dense, when = ratings.stars.toarray(), ratings.days.toarray()
    rated = np.zeros(dense.shape, bool)
    rated[ratings.stars.nonzero()] = True
    keep = np.arange(len(dense)) != (-1 if without is None else without)
    scores = np.zeros(len(dense))
    for m, s, d in zip(movies, stars, days, strict=True):
        weight = 1 / math.log(max(2, rated[keep, m].sum()))
        for u in np.flatnonzero(rated[:, m] & keep):
            scores[u] += weight * math.exp(-abs(dense[u, m] - s) / 1.5)
            scores[u] += use_days * weight * math.exp(-abs(when[u, m] - d) / 30)
    return scores, keep


@pytest.fixture(scope="module")
def small():
    return synthetic_ratings(80, 120, rng=generator(1))


@pytest.mark.parametrize("use_days", [True, False])
@pytest.mark.parametrize("control", [False, True])
def test_scoreboard_is_the_dense_scorer(small, use_days, control):
    known = dict(known=4, wrong=1, made_up=1, day_error=5)
    clues = clues_about(small, targets=40, **known, rng=generator(2))
    gone = clues.targets if control else None
    answers = scoreboard(small, clues, without=gone, use_days=use_days)
    for t, target in enumerate(clues.targets):
        scores, keep = brute_scores(
            small,
            clues.movies[t],
            clues.stars[t],
            clues.days[t],
            without=target if control else None,
            use_days=use_days,
        )
        second, first = np.sort(scores[keep])[-2:]
        assert answers.eccentricity[t] == pytest.approx((first - second) / scores[keep].std())
        if first - second > 1e-9:
            assert answers.best[t] == np.flatnonzero(keep)[np.argmax(scores[keep])]
    assert (answers.named == np.where(answers.eccentricity >= 1.5, answers.best, -1)).all()


def test_scoreboard_by_hand():
    """Three users, two movies: the score of each is a sum of at most four terms."""
    ratings = ratings_of([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [5, 1, 4, 5, 3], [9, 9, 400, 9, 50])
    clues = Clues(np.array([0]), np.array([[0, 1]]), np.array([[5, 1]]), np.array([[10, 9]]))
    rare, common = 1 / math.log(2), 1 / math.log(3)
    scores = [
        common * (1 + math.exp(-1 / 30)) + rare * 2,
        common * (math.exp(-1 / 1.5) + math.exp(-13)) + rare * (math.exp(-4 / 1.5) + 1),
        common * (math.exp(-2 / 1.5) + math.exp(-40 / 30)),
    ]
    answers = scoreboard(ratings, clues)
    assert answers.best[0] == 0
    assert answers.eccentricity[0] == pytest.approx((scores[0] - scores[1]) / np.std(scores))
    assert scoreboard(ratings, clues, threshold=2).named[0] == -1  # with three users: under 1.74


def test_without_is_the_same_as_a_release_that_never_held_the_target(small):
    clues = clues_about(small, targets=10, known=4, day_error=5, rng=generator(3))
    control = scoreboard(small, clues, without=clues.targets)
    for t, target in enumerate(clues.targets):
        keep = np.delete(np.arange(80), target)
        rows = linkage.Ratings(small.stars[keep], small.days[keep])
        one = Clues(*(part[t : t + 1] for part in clues))
        alone = scoreboard(rows, one)
        assert keep[alone.best[0]] == control.best[t]
        assert alone.eccentricity[0] == pytest.approx(control.eccentricity[t])
        assert control.best[t] != target


def test_who_is_gone_is_not_even_the_best_of_nobody():
    ratings = ratings_of([0, 1, 2], [0, 1, 1], [5, 4, 3], [1, 2, 3])
    clues = Clues([0], [[0]], [[5]], [[1]])  # only the one who is gone rated that movie
    answers = scoreboard(ratings, clues, without=[0])
    assert answers.best[0] != 0 and answers.eccentricity[0] == 0 and answers.named[0] == -1


@pytest.fixture(scope="module")
def rated():
    """(ratings, {setting: (hit, wrong, wrong with the target removed)}) for two seeds."""
    settings = {
        "eight": (dict(known=8, wrong=2, day_error=14), True),
        "two": (dict(known=2, day_error=3), True),
        "four": (dict(known=4, wrong=1, day_error=14), True),
        "no days": (dict(known=8, wrong=2), False),
        "rare, no days": (dict(known=8, wrong=2, skip_popular=100), False),
    }
    rates = {name: [] for name in settings}
    for seed in range(2):
        rng = generator(seed)
        ratings = synthetic_ratings(rng=rng)
        for name, (known, use_days) in settings.items():
            clues = clues_about(ratings, targets=300, rng=rng, **known)
            named = scoreboard(ratings, clues, use_days=use_days).named
            control = scoreboard(ratings, clues, use_days=use_days, without=clues.targets).named
            hit = named == clues.targets
            rates[name].append((hit.mean(), np.mean(~hit & (named >= 0)), np.mean(control >= 0)))
    return ratings, {name: np.mean(rate, axis=0) for name, rate in rates.items()}


def test_scoreboard_finds_nearly_everybody(rated):
    """Means over two seeds of 300 targets; the bounds leave room for a seed's own ratings."""
    hits = {name: rate[0] for name, rate in rated[1].items()}
    assert hits["eight"] > 0.99 and 0.85 < hits["two"] < 0.98 and hits["four"] > 0.88
    assert 0.5 < hits["no days"] < 0.8 and hits["rare, no days"] > hits["no days"] + 0.1
    assert hits["two"] < hits["eight"]


def test_the_control_names_somebody_for_one_target_in_ten_or_more(rated):
    """The threshold does not bound wrong names: with the targets gone, each name is wrong."""
    wrong = {name: rate[2] for name, rate in rated[1].items()}
    assert all(0.02 < rate < 0.3 for rate in wrong.values())
    assert wrong["two"] > 0.1 and all(rate[1] < 0.03 for rate in rated[1].values())


def test_ratings_look_as_their_card_says(rated):
    stars, days = rated[0]
    assert stars.shape == (5000, 3000) and 500_000 < stars.nnz < 650_000
    many = np.diff(stars.indptr)
    assert many.min() == 10 and 50 < np.median(many) < 70
    assert set(np.unique(stars.data)) == {1, 2, 3, 4, 5}
    assert days.data.min() >= 0 and days.data.max() < 2000
    popular = np.bincount(stars.indices)
    assert popular[:30].mean() > 5 * popular[300:330].mean() > 20 * popular[2500:].mean()
    user = days[[int(np.argmax(many))]].data  # dates come in bursts
    assert len(np.unique(user)) < len(user) / 4
    assert np.mean(user == user.min()) > 0.15


def test_people_rate_what_they_like():
    """Mean stars over 20 seeds: 3.72, spread 0.04 a seed; were taste turned round, 3.43."""
    stars = [synthetic_ratings(400, 600, rng=generator(k)).stars.data.mean() for k in range(20)]
    assert 3.65 < np.mean(stars) < 3.8


def test_clues_are_what_was_asked_for(small):
    known = dict(known=6, wrong=2, made_up=1, day_error=3)
    clues = clues_about(small, targets=30, **known, rng=generator(4))
    rated, stars, days = small.stars.toarray() > 0, small.stars.toarray(), small.days.toarray()
    who = clues.targets[:, None]
    assert len(set(clues.targets)) == 30
    assert rated[who, clues.movies[:, 1:]].all() and not rated[who, clues.movies[:, :1]].all()
    assert (stars[who, clues.movies] == clues.stars)[:, 3:].all()
    assert not (stars[who, clues.movies] == clues.stars)[:, 1:3].all()
    off = np.abs(days[who, clues.movies] - clues.days)
    assert off[:, 3:].max() == 3 and off[:, 1:3].max() > 100
    assert all(len(set(row)) == 5 for row in clues.movies[:, 1:])


def test_popular_movies_can_be_left_out(small):
    popular = np.argsort(-np.bincount(small.stars.indices, minlength=120), kind="stable")[:20]
    clues = clues_about(small, targets=20, known=3, skip_popular=20, rng=generator(5))
    assert not np.isin(clues.movies, popular).any()


def test_scoreboard_is_fast():
    """CPU time, 5,000 users and 300 targets, without the generator; the bar is 3 seconds."""
    rng = generator(0)
    ratings = synthetic_ratings(rng=rng)
    clues = clues_about(ratings, targets=300, known=8, wrong=2, day_error=14, rng=rng)
    start = time.process_time()
    scoreboard(ratings, clues)
    assert time.process_time() - start < 3


# Traces


def brute_unicity(traces, p, rng):
    """By sets; the points of each target are drawn anew."""
    visited = {}
    for user, antenna, hour in zip(*traces, strict=True):
        visited.setdefault(user, set()).add((antenna, hour))
    alone, tried = 0, 0
    for cells in visited.values():
        if len(cells) >= p:
            cells = sorted(cells)
            known = {cells[i] for i in rng.choice(len(cells), p, replace=False)}
            alone += sum(known <= other for other in visited.values()) == 1
            tried += 1
    return alone / tried, tried


def test_unicity_is_the_set_intersection_when_the_whole_trace_is_known():
    """With exactly p points each, nothing is random: sparse and sets must agree to the digit."""
    rng = generator(0)
    for p in (1, 2, 3):
        cells = np.concatenate([rng.choice(12, p, replace=False) for _ in range(200)])
        traces = Traces(np.repeat(np.arange(200), p), cells // 4, cells % 4)
        found = unicity(traces, points=p, targets=200, rng=rng)
        assert found == brute_unicity(traces, p, rng)[0]
    assert 0 < found < 1


def test_unicity_is_the_set_intersection_for_random_points_too():
    """200 users, all of them targets, 15 draws each way; a difference of means, at 1e-9."""
    rng = generator(1)
    traces = synthetic_traces(200, 4, 3, rng=rng)
    for p in (1, 2, 3):
        long = brute_unicity(traces, p, rng)[1]
        ours = [unicity(traces, points=p, targets=long, rng=rng) for _ in range(15)]
        theirs = [brute_unicity(traces, p, rng)[0] for _ in range(15)]
        assert 0 < np.mean(ours) < 1
        assert stats.ttest_ind(ours, theirs).pvalue > 1e-9
        assert abs(np.mean(ours) - np.mean(theirs)) < 0.03


@pytest.mark.parametrize("users, q, p", [(40, 0.15, 2), (40, 0.3, 3), (3, 0.4, 1)])
def test_independent_points_meet_the_closed_form(users, q, p):
    """300 populations, 100 cells each: within 4 standard errors of their mean."""
    rng, found = generator(2), []
    for _ in range(300):
        user, cell = np.nonzero(rng.random((users, 100)) < q)
        found.append(
            unicity(Traces(user, cell // 10, cell % 10), points=p, targets=min(15, users), rng=rng)
        )
    error = np.std(found) / math.sqrt(300)
    law = independent_unicity(users, chance=q, points=p)
    assert 0.05 < law < 0.95 and abs(np.mean(found) - law) < 4 * error


def test_one_order_of_points_makes_unicity_rise_and_one_number_is_a_float():
    traces = synthetic_traces(1000, 10, rng=generator(3))
    found = unicity(traces, points=[1, 2, 3, 4, 6, 8], targets=200, rng=generator(4))
    assert (np.diff(found) >= 0).all() and found[-1] > found[0]
    assert isinstance(unicity(traces, points=2, targets=200, rng=generator(4)), float)
    backwards = unicity(traces, points=[8, 1], targets=200, rng=generator(4))
    assert list(backwards) == [found[-1], found[0]]


def test_repeated_points_count_once():
    """One user sees one place twice: two different points are not to be had."""
    traces = Traces([0, 0, 1, 1], [3, 3, 3, 4], [5, 5, 5, 5])
    assert unicity(traces, points=1, targets=1, rng=generator(0)) in (0, 1)
    with pytest.raises(ValueError, match="users with 2 points, 1, got 2"):
        unicity(traces, points=2, targets=2, rng=generator(0))


def test_points_repeated_many_times_do_not_overflow():
    traces = Traces(np.repeat([0, 1], 32), np.repeat([1, 2, 3, 4], 16), np.full(64, 5))
    assert unicity(traces, points=2, targets=2, rng=generator(0)) == 1


def test_large_numbers_of_antennas_do_no_harm():
    traces = synthetic_traces(300, 5, 3, rng=generator(5))
    wide = traces._replace(antenna=traces.antenna * 10**9 + 7)
    wide = wide._replace(user=traces.user * 10**12)
    found = [unicity(t, points=[1, 2, 3], targets=100, rng=generator(6)) for t in (traces, wide)]
    assert (found[0] == found[1]).all() and found[0][1] > 0


def test_coarsening_merges_and_never_changes_its_input():
    traces = synthetic_traces(500, 20, 7, rng=generator(7))
    before = [part.copy() for part in traces]
    merged = coarsen(traces, antennas=4, hours=6)
    assert (merged.antenna == traces.antenna // 4).all() and merged.hour.max() == 27
    merged.user[:] = 0
    unicity(traces, points=2, targets=10, rng=generator(0))
    assert all((part == old).all() for part, old in zip(traces, before, strict=True))


def test_neighbouring_numbers_are_neighbouring_antennas():
    """Blocks of v numbers lie closer together than random ones, for each v."""
    where = generator(8).normal(size=(100, 2))
    order = linkage._near_order(where, np.arange(100))
    assert sorted(order) == list(range(100))

    def spread(ids, v):
        blocks = [where[ids[i : i + v]] for i in range(0, 100, v)]
        return np.mean([np.ptp(block, axis=0).mean() for block in blocks if len(block) == v])

    shuffled = generator(9).permutation(100)
    assert all(spread(order, v) < 0.6 * spread(shuffled, v) for v in (2, 4, 8, 16))


def test_people_mostly_go_to_neighbouring_antennas():
    """Away from home, in the same block of 8: more often than with numbers dealt at random."""
    for seed in range(3):
        traces = synthetic_traces(1000, 64, 7, rng=generator(seed))

        def near(antenna, user=traces.user):
            seen = np.zeros((1000, 64))
            np.add.at(seen, (user, antenna), 1)
            home = seen.argmax(axis=1)[user]
            away = antenna != home
            return np.mean((antenna // 8 == home // 8)[away])

        shuffled = [near(generator(k).permutation(64)[traces.antenna]) for k in range(5)]
        assert near(traces.antenna) > 1.5 * np.mean(shuffled)


def test_traces_look_as_their_card_says():
    traces = synthetic_traces(4000, 20, rng=generator(10))
    key = traces.user * 28 * 24 + traces.hour
    assert len(np.unique(key)) == len(key)  # one place in one hour
    many = np.bincount(traces.user)
    assert 100 < many.mean() < 125 and many.std() > 50
    of_day = np.bincount(traces.hour % 24, minlength=24)
    assert of_day[3] < of_day[18] / 5
    top = [np.bincount(traces.antenna[traces.user == u]).max() / many[u] for u in range(200)]
    assert 0.3 < np.mean(top) < 0.8


@pytest.fixture(scope="module")
def study():
    """Unicity at 23,000 users, 100 antennas, for p = 1 to 5: two seeds of 400 targets."""
    found = []
    for seed in range(2):
        rng = generator(seed)
        start = time.process_time()
        traces = synthetic_traces(rng=rng)
        found.append(unicity(traces, points=[1, 2, 3, 4, 5], targets=400, rng=rng))
        found[-1] = (*found[-1], time.process_time() - start)
    return np.array(found)


def test_four_points_tell_most_people_apart(study):
    """Ranges with room for a few percent of one seed's town."""
    one, two, three, four, five, _ = study.mean(axis=0)
    assert one < 0.02 and 0.35 < two < 0.6 and 0.7 < three < 0.9
    assert 0.88 < four < 0.99 and five > 0.93


def test_unicity_is_fast(study):
    """CPU time with the generator, the better of two; the bar is 4 seconds."""
    assert study[:, -1].min() < 4


def test_coarsening_follows_the_law_and_the_exponent_falls_with_the_points():
    steps, laws = (1, 2, 4, 8), []
    for seed in range(2):
        rng = generator(seed)
        traces = synthetic_traces(3000, 30, rng=rng)
        merged = [v * h for v in steps for h in steps]
        found = [
            unicity(coarsen(traces, antennas=v, hours=h), points=[4, 8], targets=200, rng=rng)
            for v in steps
            for h in steps
        ]
        laws.append([fit_coarsening_law(merged, column) for column in np.transpose(found)])
    beta = np.array([[law.beta for law in pair] for pair in laws])
    assert (0.05 < beta[:, 0]).all() and (beta[:, 0] < 0.25).all()
    assert (beta[:, 1] < beta[:, 0]).all()
    assert all(law.error < 0.12 for pair in laws for law in pair)


@pytest.mark.parametrize("alpha, beta", [(2.0, 0.15), (1.9, 0.02), (1.5, 0.4)])
def test_the_law_is_found_again(alpha, beta):
    merged = np.array([1, 2, 4, 8, 16, 64])
    noise = generator(0).normal(0, 1e-9, 6)
    law = fit_coarsening_law(merged, alpha - merged**beta + noise)
    assert law.alpha == pytest.approx(alpha, abs=1e-6) and law.beta == pytest.approx(beta, abs=1e-6)
    assert law.error < 1e-8 and np.allclose(law.at(merged), alpha - merged**beta, atol=1e-6)


def test_the_fit_is_least_squares():
    merged, shares = np.array([1, 3, 9, 27]), np.array([0.9, 0.7, 0.55, 0.1])
    law = fit_coarsening_law(merged, shares)

    def error(alpha, beta):
        return np.sqrt(np.mean((alpha - merged**beta - shares) ** 2))

    assert law.error == pytest.approx(error(law.alpha, law.beta))
    for a, b in itertools.product((-1e-3, 0, 1e-3), repeat=2):
        assert error(law.alpha + a, law.beta + b) >= law.error - 1e-12


# What is refused


GOOD = ratings_of([0, 0, 1, 2], [0, 1, 0, 1], [5, 1, 4, 2], [9, 9, 4, 7])
CLUE = Clues(np.array([0]), np.array([[0, 1]]), np.array([[5, 1]]), np.array([[9, 9]]))
TRACE = Traces([0, 1, 1], [3, 3, 4], [5, 5, 6])


def two(column, other):
    return join({"x": column}, {"x": other}, on=["x"])


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda r: expected_uniqueness([], [1.0]), ValueError, "sizes must"),
        (lambda r: expected_uniqueness([0.5], [1.0]), ValueError, "sizes must"),
        (lambda r: expected_uniqueness([math.nan], [1.0]), ValueError, "sizes must"),
        (lambda r: expected_uniqueness(5, [0.5, 0.4]), ValueError, "add up to 1, got 0.9"),
        (lambda r: expected_uniqueness(5, [1.5, -0.5]), ValueError, "at least 0"),
        (lambda r: expected_uniqueness(5, [1.0], cells=0.5), ValueError, "cells must"),
        (
            lambda r: expected_uniqueness([5, 6], [1.0], weights=[1.0]),
            ValueError,
            "one entry a size",
        ),
        (lambda r: simulated_uniqueness(5.5, [1.0], rng=r), TypeError, "whole number"),
        (lambda r: simulated_uniqueness(5, [1.0], rng=1), TypeError, "rng must"),
        (lambda r: pigeonhole_uniqueness(5, bands=[5, 10]), ValueError, "rising ages from 0"),
        (lambda r: pigeonhole_uniqueness(5, bands=[0, 10, 10]), ValueError, "rising ages"),
        (lambda r: pigeonhole_uniqueness(5, open_years=0), ValueError, "open_years"),
        (lambda r: uniqueness({"x": []}, on=["x"]), ValueError, "at least one record"),
        (lambda r: uniqueness({"x": [1]}, on=["y"]), ValueError, "a column 'y'"),
        (lambda r: uniqueness({"x": [1]}, on="x"), ValueError, "list of column names"),
        (lambda r: uniqueness({"x": [1]}, on=[]), ValueError, "list of column names"),
        (lambda r: two([1.0, math.nan], [1.0]), ValueError, "miss a value"),
        (
            lambda r: two([np.datetime64("NaT")], [np.datetime64("2000-01-01")]),
            ValueError,
            "position 0",
        ),
        (
            lambda r: two(np.array(["a", None], object), ["a"]),
            ValueError,
            "which must all be text, got None",
        ),
        (lambda r: two(["1"], [1]), TypeError, "one kind"),
        (
            lambda r: join({"x": [1]}, {"y": [1]}, on=["x"]),
            ValueError,
            "right must have a column 'x'",
        ),
        (lambda r: link_precision(-1, h=0.1, v=0.1), ValueError, "mean must"),
        (lambda r: link_precision(1, h=2, v=0.1), ValueError, "h must"),
        (lambda r: expected_links(5, [1.0], h=0, v=0.1), ValueError, "above 0"),
        (lambda r: ratings_of([0, 0], [1, 1], [5, 4], [1, 2]), ValueError, "at most once"),
        (lambda r: ratings_of([0, -1], [1, 1], [5, 4], [1, 2]), ValueError, "at least 0, got -1"),
        (lambda r: ratings_of([0], [1, 1], [5, 4], [1, 2]), ValueError, "of one length"),
        (lambda r: synthetic_ratings(1, 100, rng=r), ValueError, "users must"),
        (
            lambda r: clues_about(GOOD, targets=2, known=2, rng=r),
            ValueError,
            "2 ratings .*, 1, got 2",
        ),
        (
            lambda r: clues_about(GOOD, targets=1, known=2, wrong=2, made_up=1, rng=r),
            ValueError,
            "wrong",
        ),
        (lambda r: clues_about(3, targets=1, known=2, rng=r), TypeError, "ratings must be"),
        (
            lambda r: scoreboard(GOOD, CLUE._replace(movies=np.array([[0, 2]]))),
            ValueError,
            "from 0 to 1",
        ),
        (lambda r: scoreboard(GOOD, CLUE._replace(days=np.array([[0]]))), ValueError, "clues.days"),
        (lambda r: scoreboard(GOOD, CLUE, without=[3]), ValueError, "from 0 to 2"),
        (lambda r: scoreboard(GOOD, CLUE, without=[0, 1]), ValueError, "each of 1 targets"),
        (lambda r: scoreboard(GOOD, CLUE, day_scale=0), ValueError, "day_scale"),
        (
            lambda r: scoreboard(GOOD, CLUE._replace(stars=np.array([[1, math.nan]]))),
            ValueError,
            "nan",
        ),
        (lambda r: scoreboard(GOOD, tuple(CLUE)), TypeError, "clues must be Clues"),
        (
            lambda r: scoreboard((GOOD.stars, sparse.csr_array((3, 2))), CLUE),
            ValueError,
            "same places",
        ),
        (lambda r: unicity(TRACE, points=0, targets=1, rng=r), ValueError, "points must"),
        (lambda r: unicity(TRACE, points=[], targets=1, rng=r), ValueError, "points must"),
        (lambda r: unicity(TRACE, points=2, targets=2, rng=r), ValueError, "2 points, 1, got 2"),
        (
            lambda r: unicity(TRACE._replace(hour=[1.5, 2, 3]), points=1, targets=1, rng=r),
            TypeError,
            "hour",
        ),
        (
            lambda r: unicity(TRACE._replace(hour=[1]), points=1, targets=1, rng=r),
            ValueError,
            "one length",
        ),
        (
            lambda r: unicity(Traces([], [], []), points=1, targets=1, rng=r),
            ValueError,
            "at least one",
        ),
        (lambda r: unicity(7, points=1, targets=1, rng=r), TypeError, "traces must be"),
        (lambda r: coarsen(TRACE, hours=0), ValueError, "hours must"),
        (lambda r: fit_coarsening_law([1, 1], [0.5, 0.4]), ValueError, "two different numbers"),
        (lambda r: fit_coarsening_law([1, 2], [0.5]), ValueError, "of one length"),
        (lambda r: independent_unicity(5, chance=1.2, points=1), ValueError, "chance must"),
    ],
)
def test_bad_input_is_refused_with_a_reason(call, error, words):
    with pytest.raises(error, match=words):
        call(generator(0))


def test_ratings_do_not_depend_on_the_order_that_a_partition_leaves(monkeypatch):
    """It differs between CPUs, and is nobody's promise."""
    first = synthetic_ratings(40, 60, rng=np.random.default_rng(0))
    plain = np.argpartition
    monkeypatch.setattr(np, "argpartition", lambda row, k: np.r_[plain(row, k)[:k][::-1],
                                                                plain(row, k)[k:]])  # fmt: skip
    again = synthetic_ratings(40, 60, rng=np.random.default_rng(0))
    for one, other in zip(first, again, strict=True):
        assert (one != other).nnz == 0 if hasattr(one, "nnz") else np.array_equal(one, other)
