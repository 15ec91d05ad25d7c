"""Problem set 06: its answers against the package and closed forms, and what a learner reads."""

import contextlib
import io
import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from coursekit import linkage, people, verify
from coursekit.checks import ps06
from coursekit.checks.exercise import RIGHT, WRONG, LocalSubject
from tests.checks.tasks import tried_examples

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps06-linkage-attacks"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
CELLS = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]}
PROSE = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]
         if cell["cell_type"] == "markdown"}
SHOWN = {cell["id"]: "".join("".join(output.get("text", "")) for output in cell["outputs"])
         for cell in SOLUTION["cells"] if cell["cell_type"] == "code"}
SEED = 20_240
CODED = [exercise for exercise in ps06.EXERCISES if exercise.function]
each = pytest.mark.parametrize("exercise", CODED, ids=lambda exercise: exercise.key)


def verdict(exercise, answer, seed=SEED):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=seed)


def answers(exercise):
    return (exercise.right, *exercise.others)


# 6.1 to 6.3: who is alone


@pytest.mark.parametrize("seed", range(5))
def test_share_alone_is_that_of_the_package(seed):
    table = ps06.synthetic_table(np.random.default_rng(seed), 300, zips=20, births=9, diagnosis=4)
    for on in (["zip"], ["zip", "birth"], ["zip", "birth", "sex"], ["diagnosis", "zip", "birth"]):
        for answer in answers(ps06.ALONE):
            assert answer(table, on) == pytest.approx(linkage.uniqueness(table, on=on))


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_expected_alone_by_enumeration(n):
    shares, days = np.array([0.5, 0.2, 0.3]), 2
    cells = np.repeat(shares / days, days)
    mean = 0.0
    for where in itertools.product(range(len(cells)), repeat=n):
        mean += np.prod(cells[list(where)]) * sum(where.count(cell) == 1 for cell in where) / n
    for answer in answers(ps06.EXPECTED):
        assert answer(np.array([n]), shares, days) == pytest.approx(mean)


def test_expected_alone_is_that_of_the_package():
    sizes, shares = np.array([3, 800, 20_000, 800]), people.age_shares()
    for days in (365.25, 12, 1):
        ours = ps06.expected_alone(sizes, shares, days)
        assert ours == pytest.approx(linkage.expected_uniqueness(sizes, shares, cells=days))


def test_called_unique_is_that_of_the_package():
    bands = np.add.reduceat(people.age_shares().reshape(2, -1).sum(axis=0), linkage.FIVE_YEARS)
    years = np.append(np.full(13, 5), 24)
    sizes = people.zip_sizes(300, rng=np.random.default_rng(1), drawn_by="person")
    for answer in answers(ps06.CALLED):
        assert answer(sizes, bands, years) == pytest.approx(linkage.pigeonhole_uniqueness(sizes))


def test_lessons_of_62_and_63():
    for known, said in (("date", "0.643"), ("month", "0.039"), ("year", "0.002")):
        assert f"{known} of birth: {said}" in SHOWN["nation"]
    assert "0.64 for the birth date, 0.04 for the month and 0.002" in ps06.EXPECTED.lesson
    holes = 2 * 365 * 5
    alone = ps06.expected_alone(np.array([holes]), np.full(10, 0.1), 365)
    assert alone == pytest.approx(1 / math.e, abs=1e-3)
    assert ps06.called_unique(np.array([holes]), np.array([1.0]), np.array([5])) == 1


def test_cases_of_63_hold_a_band_that_is_just_full_and_one_with_one_more():
    case = ps06.called_cases(np.random.default_rng(SEED))[0]
    over = np.outer(case["sizes"], case["band_shares"]) / (730 * case["band_years"])
    assert np.any(over == 1) and np.any((over > 1) & (over < 1.0001))  # a factor of 730.1 shows


# 6.4 and 6.5: the join and its precision


@pytest.mark.parametrize("seed", range(5))
def test_links_are_those_of_the_package(seed):
    rng = np.random.default_rng(seed)
    left, right = (ps06.synthetic_table(rng, n, zips=9, births=20) for n in (80, 150))
    for on in (["zip", "birth"], ["sex", "birth", "zip"]):
        links = np.column_stack(linkage.join(left, right, on=on))
        assert 0 < len(links) < 40
        for answer in answers(ps06.LINKS):
            found = answer(left, right, on)
            np.testing.assert_array_equal(ps06.in_order(found), ps06.in_order(links))


def test_links_may_come_in_any_order_and_none_may_be_an_empty_list():
    def backwards(**case):
        return ps06.certain_links(**case)[::-1].tolist()

    assert verdict(ps06.LINKS, backwards).status == RIGHT
    assert len(ps06.certain_links(**ps06.link_cases(np.random.default_rng(SEED))[-1])) == 0


@pytest.mark.parametrize(("h", "v"), [(0.1, 0.6), (0.5, 1.0), (0.3, 0.2)])
def test_claims_are_those_of_the_package_and_their_share_the_formula(h, v):
    cells = people.birth_cells("month", 18)
    found = linkage.expected_links(5000, cells, h=h, v=v)
    for answer in (ps06.claimed_and_right, ps06.claimed_and_right_by_poisson):
        np.testing.assert_allclose(answer(5000 * cells, h, v), [found.claimed, found.correct])
    for mean in (0.01, 0.5, 3.0):
        claimed, right = ps06.claimed_and_right(np.array([mean]), h, v)
        assert right / claimed == pytest.approx(1 / (1 + mean * (1 - h) * (1 - v)))  # the lesson
        assert right / claimed == pytest.approx(linkage.link_precision(mean, h=h, v=v))


def test_claims_are_those_of_a_simulation():
    """Each count is binomial: it leaves the interval with probability 1e-9 in all."""
    rng, cells, mean, h, v = np.random.default_rng(6), 200_000, 0.8, 0.2, 0.6
    cell = rng.integers(0, cells, rng.poisson(mean * cells))  # Poisson numbers, cell by cell
    patient, voter = rng.random(len(cell)) < h, rng.random(len(cell)) < v
    patients, voters, both = (np.bincount(cell[who], minlength=cells)
                              for who in (patient, voter, patient & voter))
    claimed = (patients == 1) & (voters == 1)
    expected = ps06.claimed_and_right(np.array([mean]), h, v)
    for count, chance in zip((claimed.sum(), (claimed & (both == 1)).sum()), expected, strict=True):
        law = stats.binom(cells, chance)
        assert law.ppf(2.5e-10) <= count <= law.isf(2.5e-10)


# 6.6 and 6.7: ratings


@pytest.mark.parametrize("seed", range(3))
def test_scores_and_names_are_those_of_the_packages_scoreboard(seed):
    rng = np.random.default_rng(seed)
    ratings = linkage.synthetic_ratings(120, 60, rng=rng)
    clues = linkage.clues_about(ratings, targets=25, known=3, wrong=1, day_error=20, rng=rng)
    stars, days = ratings.stars.toarray(), ratings.days.toarray()
    rows = np.stack([clues.movies, clues.stars, clues.days], axis=2).astype(int)
    assert np.sum(stars > 0, axis=0).min() > 2
    for without in (None, clues.targets):
        theirs = linkage.scoreboard(ratings, clues, star_scale=1.2, day_scale=25.0, without=without)
        for t, row in enumerate(rows):
            here = np.arange(120) != (clues.targets[t] if without is not None else -1)
            for score, name in itertools.product(answers(ps06.SCORES), answers(ps06.NAMING)):
                scores = np.array(score(stars[here], days[here], row, 1.2, 25.0))[np.newaxis]
                user = int(name(scores, 1.5)[0])
                assert (np.arange(120)[here][user] if user >= 0 else -1) == theirs.named[t]


@pytest.mark.parametrize("seed", range(5))
def test_some_scores_stand_out_just_enough_and_some_just_not(seed):
    for case in ps06.naming_cases(np.random.default_rng(seed))[2:]:
        two = np.sort(case["scores"], axis=1)[:, -2:]
        stand_out = np.diff(two, axis=1)[:, 0] / np.std(case["scores"], axis=1) / case["threshold"]
        assert {0.4, 0.995, 1.005, 1.6} <= set(stand_out.round(4))


def test_a_few_wrong_clues_do_less_harm_in_a_sum_than_in_a_product():
    """The message on products and the lesson of 6.6, on one clue whose date is wrong."""
    product = {m.name: m.wrong for m in ps06.SCORES.mistakes}["product"]
    stars, days = np.array([[5], [5], [2]]), np.array([[1000], [100], [90]])
    case = dict(stars=stars, days=days, clues=np.array([[0, 5, 10]]), star_scale=1.5, day_scale=30)
    assert product(**case)[0] < 1e-9 < 0.5 < ps06.match_scores(**case)[0]


# 6.8: traces


@pytest.mark.parametrize("seed", range(3))
def test_told_apart_is_the_packages_unicity_of_coarsened_traces(seed):
    """For one point of each user and every user: the package draws nothing but the order."""
    rng = np.random.default_rng(seed)
    trace = linkage.Traces(np.arange(40), rng.integers(0, 12, 40), rng.integers(0, 15, 40))
    rows = np.column_stack(trace)
    for antennas, hours in ((1, 1), (2, 1), (1, 3), (3, 2)):
        coarse = linkage.coarsen(trace, antennas=antennas, hours=hours)
        theirs = linkage.unicity(coarse, points=1, targets=40, rng=rng)
        for answer in answers(ps06.TRACES):
            assert answer(rows, rows[:, np.newaxis, 1:], antennas, hours) == pytest.approx(theirs)


@pytest.mark.parametrize("seed", range(3))
def test_told_apart_never_falls_with_more_points(seed):
    rng = np.random.default_rng(seed)
    traces = np.column_stack(linkage.synthetic_traces(150, 5, rng=rng))
    own = [traces[traces[:, 0] == user, 1:] for user in range(150)]
    points = np.array([rng.permutation(trace)[:6] for trace in own if len(trace) >= 6])
    fine, merged = ([ps06.told_apart(traces, points[:, :p], *merge) for p in range(1, 7)]
                    for merge in ((1, 1), (2, 6)))
    assert fine == sorted(fine) and merged == sorted(merged)
    assert fine[0] < 0.5 < fine[-1] and np.all(np.array(merged) <= fine)


@pytest.mark.parametrize("seed", range(5))
def test_cases_of_68_lie_between_none_and_all(seed):
    shares = [ps06.told_apart(**case) for case in ps06.trace_cases(np.random.default_rng(seed))]
    assert sum(0 < share < 1 for share in shares) >= 6


# Wrong answers that nobody listed

UNLISTED = {
    "6.1": lambda table, on: ps06.share_alone(table, on[1:] or on),
    "6.2": lambda sizes, shares, days: ps06.expected_alone(sizes, shares, 1.1 * days),
    "6.3": lambda sizes, band_shares, band_years: ps06.called_unique(
        sizes, band_shares, 1.1 * band_years),
    "6.4": lambda left, right, on: ps06.certain_links(left, right, on)[:-1],
    "6.5": lambda means, h, v: ps06.claimed_and_right(means, h, 0.9 * v),
    "6.6": lambda stars, days, clues, star_scale, day_scale: ps06.match_scores(
        stars, days, clues, star_scale, 1.1 * day_scale),
    "6.7": lambda scores, threshold: ps06.name_or_nobody(scores, 1.01 * threshold),
    "6.8": lambda traces, points, antennas, hours: ps06.told_apart(
        traces, points, antennas, hours + 1),
}


def coded(table, on, base):
    """One number for each record, base * (base * first + second) + third and so on."""
    key = 0
    for name in on:
        key = base * key + table[name]
    return {"key": key}


@pytest.mark.parametrize("base", [10, 31, 100, 366, 1000, 10_000])
def test_codes_that_collide_are_refused_whatever_their_base(base):
    def share(table, on):
        return ps06.share_alone(coded(table, on, base), ["key"])

    def share_backwards(table, on):
        return ps06.share_alone(coded(table, on[::-1], base), ["key"])

    def links(left, right, on):
        return ps06.certain_links(coded(left, on, base), coded(right, on, base), ["key"])

    for seed in range(3):
        assert verdict(ps06.ALONE, share, seed).status == WRONG
        assert verdict(ps06.ALONE, share_backwards, seed).status == WRONG
        assert verdict(ps06.LINKS, links, seed).status == WRONG


def cells_by(cell):
    """Told apart by any other cell(antenna, hour), after the traces and points were merged."""
    def answer(traces, points, antennas, hours):
        def made(rows):
            merged = (rows // [antennas, hours]).reshape(-1, 2).tolist()
            return np.unique([cell(*row) for row in merged], return_inverse=True)

        both = made(np.concatenate([traces[:, 1:], points.reshape(-1, 2)]))[1].ravel()
        both = np.column_stack([both, 0 * both])
        return ps06.told_apart(np.column_stack([traces[:, 0], both[:len(traces)]]),
                               both[len(traces):].reshape(points.shape), 1, 1)
    return answer


@pytest.mark.parametrize("cell", [lambda a, h: 25 * a + h, lambda a, h: 168 * a + h,
                                  lambda a, h: 1000 * a + h, lambda a, h: a + 30 * h,
                                  lambda a, h: a + 100 * h, lambda a, h: f"{a}{h}"])
def test_cells_that_collide_are_refused(cell):
    assert verdict(ps06.TRACES, cells_by(lambda a, h: f"{a},{h}")).status == RIGHT
    for seed in range(3):
        assert verdict(ps06.TRACES, cells_by(cell), seed).status == WRONG


def second_best_with_best_set_to(value):
    def answer(scores, threshold):
        best = scores.argmax(axis=1)
        rest = np.where(np.arange(scores.shape[1]) == best[:, None], value, scores)
        gap = scores.max(axis=1) - rest.max(axis=1)
        return np.where((gap > 0) & (gap >= threshold * scores.std(axis=1)), best, -1)
    return answer


def test_scores_may_be_negative():
    assert verdict(ps06.NAMING, second_best_with_best_set_to(-np.inf)).status == RIGHT
    for value in (0, -1):
        assert verdict(ps06.NAMING, second_best_with_best_set_to(value)).status == WRONG


def test_numbers_of_users_have_gaps_and_either_table_may_be_longer():
    def first_users(traces, points, antennas, hours):
        there = traces[:, 0] < len(np.unique(traces[:, 0]))
        return ps06.told_apart(traces[there], points, antennas, hours)

    def only_rows_of(longest):
        def answer(left, right, on):
            links = ps06.certain_links(left, right, on)
            return links[np.all(links < longest(len(left["zip"]), len(right["zip"])), axis=1)]
        return answer

    def told(**case):
        try:
            return first_users(**case)
        except KeyError:  # nobody left in a cell
            return -1.0

    for seed in range(5):
        assert verdict(ps06.TRACES, told, seed).status == WRONG
        assert verdict(ps06.LINKS, only_rows_of(lambda left, right: left), seed).status == WRONG
        assert verdict(ps06.LINKS, only_rows_of(lambda left, right: right), seed).status == WRONG


def test_a_little_below_the_pigeonholes_is_no_mistake_of_just_full():
    """364.9 days in a year are not told as "just full left out", nor 366 as anything but days."""
    def scaled(factor):
        return lambda sizes, band_shares, band_years: ps06.called_unique(
            sizes, band_shares, factor * band_years)

    for seed in range(5):
        assert verdict(ps06.CALLED, scaled(364.9 / 365), seed).mistake is None
        assert verdict(ps06.CALLED, scaled(366 / 365), seed).mistake in (None, "leap-days")


@each
def test_strange_answers_are_refused_with_a_sentence(exercise):
    for strange in ("0.5", [], {}, {1}, math.nan, math.inf, 1j, True, [None], [["0"]], [1, [2]],
                    10**400, np.zeros((0, 3)), np.zeros((2, 2, 2)), np.ma.masked, {"a": [1]}):
        told = verdict(exercise, lambda strange=strange, **case: strange)
        assert told.status == WRONG and len(told.message.split()) >= 5, strange


@each
def test_unlisted_mistakes_are_refused_without_a_name_and_shown(exercise):
    for seed in range(5):
        told = verdict(exercise, UNLISTED[exercise.key], seed)
        assert (told.status, told.mistake) == (WRONG, None)
        assert "it should give" in told.message


@each
def test_an_answer_that_only_knows_the_examples_is_refused(exercise):
    """The first case is told as it is, whatever the seed; all others have to be computed."""
    first = exercise.parts[0].cases(np.random.default_rng(0))[0]
    known = exercise.right(**first)
    assert verdict(exercise, lambda **case: known).status == WRONG


@each
def test_hidden_inputs_differ_from_seed_to_seed(exercise):
    one, two = (exercise.parts[0].cases(np.random.default_rng(seed)) for seed in (1, 2))
    assert len(one) == len(two) and repr(one) != repr(two)


def test_a_changed_input_is_noticed_in_a_table_too():
    def sorts_in_place(table, on):
        share = ps06.share_alone(table, on)
        table[on[0]].sort()
        return share

    def drops_a_column(left, right, on):
        links = ps06.certain_links(left, right, on)
        left.pop(on[0])
        return links

    assert verdict(ps06.ALONE, sorts_in_place).mistake == "changes-its-input"
    assert verdict(ps06.LINKS, drops_a_column).mistake == "changes-its-input"


# What a learner reads


def test_examples_in_the_tasks_are_true():
    assert tried_examples(SOLUTION, PROSE) == 24


def test_reply_to_dr_kulkarni_has_its_numbers_right():
    reply, rubric = PROSE["answer-6-9"], ps06.CLAIM.rubric
    month, year = (people.birth_cells(detail, youngest=18) for detail in ("month", "year"))
    claimed, right = (40 * n for n in ps06.claimed_and_right(30_000 * month, 0.1, 0.6))
    patients = 40 * 30_000 * 0.1
    assert (round(claimed), round(right), patients) == (780, 411, 120_000)
    assert "can expect 780 links, and 411 of them are right" in reply
    assert "780 links are expected, 411 of them right" in rubric
    assert f"{right / patients:.1%}" == "0.3%" and "the other 369" in reply
    assert round(claimed) - round(right) == 369 and "the 369 wrong links" in rubric
    alone = ps06.expected_alone(np.array([30_000]), month, 1)
    assert f"{alone:.2%}" == "0.29%" and round(alone * patients) == 351
    assert "0.29% of the adults, so 351 of the patients" in reply
    in_table = month @ (1 - 0.1 * month) ** 29_999
    assert f"{in_table:.0%}" == "16%" and "16% of the patients are alone" in reply
    assert "16% of the patients are alone" in rubric
    guessed = np.sum(1 - (1 - 0.6 * month) ** 30_000) / 30_000
    assert f"{guessed:.0%}" == "6%" and "right for 6% of the patients" in reply
    links = [round(40 * n) for n in ps06.claimed_and_right(30_000 * year, 0.1, 0.6)]
    assert links == [27, 16] and "27 links with 16 right ones" in reply
    assert "by year 27 links, 16 right" in rubric


def test_picking_a_voter_at_random_is_right_as_often_as_said():
    """Against the sum over the binomial number of other voters in the cell."""
    shares, n, v = np.array([0.02, 0.2, 0.78]), 40, 0.6
    direct = 0.0
    for p in shares:
        others = np.arange(n)
        direct += p * v * np.sum(stats.binom(n - 1, p * v).pmf(others) / (others + 1))
    assert direct == pytest.approx(np.sum(1 - (1 - v * shares) ** n) / n)


def test_readings_in_the_afterword_are_those_of_its_outputs():
    assert "called unique: 0.906" in SHOWN["rule"] and "0.91 against 0.64" in PROSE["join-intro"]
    lines = re.findall(r"(\d+) links, ([\d.]+) of them right", SHOWN["join"])
    assert all(abs(int(n) - 5853) < 80 and abs(float(p) - 0.814) < 0.01 for n, p in lines)
    assert "58527 links,  47658 right (0.814)" in SHOWN["law"] and len(lines) == 3
    assert "picked at random: right for 0.060; alone among the patients: 0.165" in SHOWN["guess"]
    assert SHOWN["ratings"] == "right 0.9, control names 0.1\n"
    assert "Nine in ten" in PROSE["traces-intro"] and "about one in ten" in PROSE["traces-intro"]
    four, eight = np.array(re.findall(r"([\d.]+) by four points, ([\d.]+) by eight",
                                      SHOWN["traces"]), float).T
    assert np.all(four[::2] > 0.95) and np.all(abs(four[1::2] - 0.5 * four[::2]) < 0.06)
    assert np.all(abs(eight[1::2] - 0.8) < 0.05)


def test_afterword_works_with_the_learners_own_functions():
    """Every cell of it, and with answers that are lists where lists are accepted."""
    namespace = {"__name__": "__main__"}
    for key in ("setup", *(f"answer-6-{k}" for k in range(1, 9))):
        exec(CELLS[key], namespace)
    for name in ("match_scores", "name_or_nobody", "claimed_and_right", "certain_links"):
        ours = namespace[name]
        namespace[name] = lambda *a, ours=ours, **k: np.asarray(ours(*a, **k)).tolist()
    for key in ("nation", "rule", "join", "law", "guess", "ratings", "traces"):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            exec(CELLS[key].replace("ours.", ""), namespace)
        assert shown.getvalue() == SHOWN[key], key


def test_the_released_notebook_runs_and_answers_nothing():
    released = json.loads((ROOT / "exercises" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
    assert verify.build.dump(verify.build.derive(SOLUTION)) == verify.build.dump(released)
