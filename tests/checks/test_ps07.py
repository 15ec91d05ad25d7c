"""Problem set 07: its answers against the package and enumeration, and what a learner reads."""

import itertools
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog

from coursekit import anonymity, reconstruction, verify
from coursekit.checks import ps07
from coursekit.checks.exercise import RIGHT, WRONG, LocalSubject
from tests.checks.tasks import tried_examples

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps07-anonymity-and-its-limits"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
PROSE = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]
         if cell["cell_type"] == "markdown"}
SHOWN = {cell["id"]: "".join("".join(output.get("text", "")) for output in cell["outputs"])
         for cell in SOLUTION["cells"] if cell["cell_type"] == "code"}
SEED = 20_240
QUASI = "quasi-identifier"


def verdict(exercise, answer):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=SEED)


def answers(exercise):
    return (exercise.right, *exercise.others)


# 7.1 to 7.3: the package's measures


@pytest.mark.parametrize("seed", range(10))
def test_crowds_are_the_people_in_the_packages_classes_with_missing_as_a_category(seed):
    for case in ps07.crowd_cases(np.random.default_rng(seed)):
        table = {name: np.array(column) for name, column in case["table"].items()}
        roles = {name: QUASI if name in case["quasi"] else "other" for name in table}
        group = anonymity.equivalence_classes(table, roles=roles, missing="category")
        expected = [len(set(case["person"][group == g].tolist())) for g in group]
        # A person is a value of their own, so the fewest people are the least distinct diversity.
        k = anonymity.l_diversity(table | {"who": case["person"]},
                                  roles=roles | {"who": "sensitive"}, missing="category")
        for answer in answers(ps07.CROWD_OF_EACH):
            assert list(answer(**case)) == expected and min(expected) == k


def test_second_visits_make_crowds_smaller():
    for case in ps07.crowd_cases(np.random.default_rng(SEED))[3:]:  # those with second visits
        assert sum(ps07.crowd_with(count=len)(**case)) > sum(ps07.crowd_of_each(**case))


@pytest.mark.parametrize("seed", range(10))
def test_diversities_are_the_packages(seed):
    for case in ps07.diversity_cases(np.random.default_rng(seed)):
        given = dict(table={"class": case["group"], "ill": np.array(case["values"])},
                     roles={"class": QUASI, "ill": "sensitive"})
        for answer in answers(ps07.DIVERSITIES):
            entropy, limit = answer(**case)
            assert entropy == pytest.approx(anonymity.l_diversity(**given, kind="entropy"))
            below, above = (anonymity.l_diversity(**given, kind="recursive", c=min(limit, 1e9) * by)
                            for by in (1 - 1e-6, 1 + 1e-6))
            assert below < case["level"] and (above >= case["level"]) == (limit < math.inf)


def test_some_limits_are_infinite_and_the_reading_of_l_holds():
    limits = [ps07.diversities(**case)[1]
              for case in ps07.diversity_cases(np.random.default_rng(SEED))]
    assert math.inf in limits and len(set(limits)) > 6
    for counts in itertools.product(range(1, 5), repeat=4):  # sorted ones among them
        if list(counts) == sorted(counts, reverse=True):
            for level in (2, 3, 4):
                left = [sum(n for i, n in enumerate(counts) if i > 0 and i not in out)
                        for out in itertools.combinations(range(1, 4), level - 2)]
                assert ps07.limit(counts, level) == counts[0] / min(left)


def test_worst_classes_of_the_two_diversities_can_differ():
    case = ps07.diversity_cases(np.random.default_rng(SEED))[2]
    values = np.array(case["values"])
    own = [ps07.diversities(case["group"][inside], values[inside].tolist(), case["level"])
           for inside in (case["group"] == 3, case["group"] == 8)]
    assert own[0][0] < own[1][0] and own[0][1] == 1 < own[1][1] == pytest.approx(7 / 6)


@pytest.mark.parametrize("seed", range(10))
def test_closeness_is_the_packages(seed):
    for case in ps07.closeness_cases(np.random.default_rng(seed)):
        expected = anonymity.t_closeness(
            {"class": case["group"], "wage": case["values"]},
            roles={"class": QUASI, "wage": "sensitive"}, ordered=["wage"] * case["ordered"])
        group, ranks = case["group"], np.unique(case["values"], return_inverse=True)[1]
        each = [stats.wasserstein_distance(ranks[group == g], ranks) / max(1, ranks.max())
                for g in group]
        for answer in answers(ps07.CLOSENESS):
            found = answer(**case)
            assert max(found) == pytest.approx(expected)
            assert not case["ordered"] or list(found) == pytest.approx(each)


@pytest.mark.parametrize("ordered", [False, True])
def test_distances_are_the_cheapest_way_to_move_shares(ordered):
    rng = np.random.default_rng(SEED)
    for _ in range(5):
        p, q = rng.dirichlet(np.ones(5), 2)
        places = np.arange(5)
        cost = np.abs(places[:, None] - places) / 4 if ordered else 1.0 - np.eye(5)
        rows, columns = np.kron(np.eye(5), np.ones(5)), np.kron(np.ones(5), np.eye(5))
        plan = linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.append(p, q))
        distance = ps07.rank_costs if ordered else ps07.equal_costs
        assert distance(p, q) == pytest.approx(plan.fun, abs=1e-7)


def test_lesson_on_the_two_distances():
    group, wages = np.repeat([0, 1, 2], 3), np.array([3, 4, 5, 6, 11, 8, 7, 9, 10])
    places = np.unique(wages)
    shares = [ps07.shares_of(wages[group == g], places) for g in (0, 1)]
    everybody = ps07.shares_of(wages, places)
    low, mixed = (ps07.equal_costs(p, everybody) for p in shares)
    assert low == pytest.approx(mixed)
    low, mixed = (ps07.rank_costs(p, everybody) for p in shares)
    assert low > 2 * mixed and low == pytest.approx(0.375)


# 7.4: the package's Mondrian, cut by cut


def boxes(cut, table, k):
    done, todo = [], [np.arange(len(table))]
    while todo:
        rows = todo.pop()
        upper = np.asarray(cut(table, rows, k))
        if upper.any():
            assert k <= upper.sum() <= len(rows) - k
            todo += [rows[upper], rows[~upper]]
        else:
            done.append(tuple(sorted(rows.tolist())))
    return sorted(done)


@pytest.mark.parametrize("seed", range(8))
def test_cuts_again_and_again_are_the_packages_mondrian(seed):
    rng = np.random.default_rng(seed)
    table = np.stack([rng.integers(0, 9, 120), rng.integers(20, 81, 120),
                      rng.integers(0, 40, 120) // 7 * 5], axis=1)
    k = int(rng.integers(1, 9))
    release = anonymity.mondrian({str(i): column for i, column in enumerate(table.T)},
                                 roles={str(i): QUASI for i in range(3)}, k=k)
    expected = sorted(tuple(np.flatnonzero(release.group == g).tolist())
                      for g in range(release.group.max() + 1))
    for answer in answers(ps07.MONDRIAN_CUT):
        assert boxes(answer, table, k) == expected


def test_boxes_are_special_as_their_comments_say():
    cuts = [ps07.mondrian_cut(**case) for case in ps07.cut_cases(np.random.default_rng(SEED))]
    assert [bool(np.any(upper)) for upper in cuts[:len(ps07.BOXES)]] == [
        True, True, True, True, False, True, True, True, False, True, True, False]
    tied = ps07.cut_cases(np.random.default_rng(SEED))[6]
    widths = ps07.box_width(tied["table"], tied["rows"])
    assert widths[0] == widths[1] > widths[2]
    column = np.sort(tied["table"][tied["rows"], 0])
    assert np.flatnonzero(np.diff(column)).tolist() == [1, 4] and len(column) == 7


# 7.5


@pytest.mark.parametrize("seed", range(5))
def test_candidates_hold_the_truth_and_fall_with_every_release(seed):
    rng = np.random.default_rng(seed)
    ill = [str(word) for word in rng.choice(ps07.ILLNESSES, 60)]
    releases, people = [], []
    for _ in range(3):
        table = {"age": rng.integers(20, 60, 60), "ill": np.array(ill)}
        group = anonymity.mondrian(table, roles={"age": QUASI, "ill": "sensitive"}, k=5).group
        releases.append([[ill[i] for i in np.flatnonzero(group == g)]
                         for g in range(group.max() + 1)])
        people.append(group)
    people = np.stack(people, axis=1)
    before = [len(ps07.ILLNESSES)] * 60
    for count in (1, 2, 3):
        for answer in answers(ps07.CANDIDATES_LEFT):
            left = answer(releases=releases[:count], people=people[:, :count])
            for i, number in enumerate(left):
                possible = [word for word in ps07.ILLNESSES if all(
                    word in releases[j][people[i, j]] for j in range(count))]
                assert ill[i] in possible and number == len(possible) <= before[i]
        before = list(left)


# 7.6


def enumerated(small, large, positive, most):
    """Person 0 is Meera; every choice of the ill people has the same weight."""
    ill = merged = 0
    for chosen in itertools.combinations(range(small + large), positive):
        inside = sum(person < small for person in chosen)
        if inside / small > most or (positive - inside) / large > most:
            merged += 1
            ill += 0 in chosen
    return ill / merged


@pytest.mark.parametrize("case", [(2, 4, 2, 0.5), (2, 10, 2, 0.5), (4, 10, 3, 0.5),
                                  (5, 20, 4, 0.5), (4, 6, 4, 0.5), (3, 8, 6, 0.25),
                                  (5, 9, 10, 0.75)])
def test_posterior_is_that_of_enumeration(case):
    for answer in answers(ps07.MINIMALITY):
        assert answer(*case) == pytest.approx(enumerated(*case))


@pytest.mark.parametrize(("case", "before", "after"), [
    ((2, 4, 2, 0.5), 0.333, 1), ((2, 10, 2, 0.5), 0.167, 1), ((4, 10, 3, 0.5), 0.214, 0.75),
    ((5, 20, 4, 0.5), 0.16, 0.605)])
def test_merging_says_more_than_the_table(case, before, after):
    assert case[2] / (case[0] + case[1]) == pytest.approx(before, abs=5e-4)
    assert ps07.minimality_posterior(*case) == pytest.approx(after, abs=5e-4)


# 7.7


@pytest.mark.parametrize("seed", range(5))
def test_questions_pass_the_packages_filter_and_give_her_away(seed):
    rng = np.random.default_rng(seed)
    for case in ps07.question_cases(rng):
        secret = rng.integers(2, size=case["people"])
        ask = reconstruction.size_filter(secret, least=case["least"], both_sides=True)
        for answer in answers(ps07.QUESTIONS):
            first, second = (ask(question) for question in answer(**case))
            assert first - second == secret[case["target"]]


def test_a_fault_is_found_just_where_the_filter_or_the_difference_says_so():
    people, target, values = 5, 1, np.array([3, 10, 30, 100, 300])  # all differences differ
    rows = [np.array(bits) for bits in itertools.product((0, 1), repeat=people)]
    for least in (1, 2):
        right = 0
        for first, second in itertools.product(rows, repeat=2):
            asks = [reconstruction.size_filter(np.zeros(people, dtype=int), least=least,
                                               both_sides=True)(row) for row in (first, second)]
            holds = None not in asks and (first - second) @ values == values[target]
            assert (ps07.fault([first, second], people, target, least) is None) == holds
            right += holds
        assert right > 0
    for first, second in itertools.product(rows, repeat=2):  # 2 least + 1 people are needed
        assert ps07.fault([first[:4], second[:4]], 4, target, 2) is not None


@pytest.mark.parametrize("strange", [
    "no", 3, 10**400, [[0, 1], [1]], [["0"] * 12, ["1"] * 12], np.eye(2, 12) * (1 + 0j),
    np.zeros((2, 12, 1)), np.full((2, 12), 0.5), np.full((2, 12), np.nan),
    [["a"] * 12] * 2, {"first": [0] * 12}, [None, None], np.zeros((3, 12))])
def test_strange_questions_are_told_their_form(strange):
    told = verdict(ps07.QUESTIONS, lambda people, target, least: strange)
    assert (told.status, told.mistake) == (WRONG, "not-flags")


def test_lesson_on_repeated_questions():
    assert "Phi(epsilon sqrt(m) / 4)" in ps07.QUESTIONS.lesson
    rng = np.random.default_rng(SEED)
    right = reconstruction.noisy_differences([1, 0, 0], 0, epsilon=0.5, repeats=64, trials=40_000,
                                             rng=rng).mean()
    expected = reconstruction.differencing_accuracy(epsilon=0.5, repeats=64)
    # Hoeffding at 1e-9, and what 64 repeats are short of the limit.
    assert abs(right - expected) < math.sqrt(math.log(2e9) / 80_000) + 0.005
    shown = re.findall(r"(\d+) pairs: right ([\d.]+), formula ([\d.]+)", SHOWN["pair"])
    for repeats, _, formula in shown:
        assert float(formula) == pytest.approx(reconstruction.differencing_accuracy(
            epsilon=0.1, repeats=int(repeats)), abs=0.005)


# 7.8


@pytest.mark.parametrize("seed", range(5))
def test_reconstruction_is_the_packages_attack_on_the_unknown(seed):
    for case in ps07.reconstruction_cases(np.random.default_rng(seed)):
        known, queries = case["known"], case["queries"]
        told = np.where(known < 0, 0, known)
        expected = told.copy()
        expected[known < 0] = reconstruction.least_squares_attack(
            queries[:, known < 0], case["answers"] - queries @ told)
        for answer in answers(ps07.RECONSTRUCT):
            np.testing.assert_array_equal(answer(**case), expected)


def test_share_of_wrong_bits_is_that_of_the_lesson():
    assert "Phi(-sqrt(c - 1) / (4 alpha))" in ps07.RECONSTRUCT.lesson
    assert reconstruction.wrong_bit_rate(alpha=0.5, ratio=4) == pytest.approx(
        0.5 * math.erfc(math.sqrt(3) / 2 / math.sqrt(2)))
    rows = re.findall(r"alpha +([\d.]+): closed ([\d.]+), 64 people ([\d.]+), 256 ([\d.]+)",
                      SHOWN["noise"])
    assert len(rows) == 4
    for alpha, closed, *measured in rows:
        assert float(closed) == pytest.approx(
            reconstruction.wrong_bit_rate(alpha=float(alpha), ratio=4), abs=5e-4)
        # Eight runs; bits of one run hang together, so four times the error of independent ones.
        assert all(abs(float(rate) - float(closed)) < 0.09 for rate in measured)
    for ratio, alpha in re.findall(r"(\d+) questions a person: alpha ([\d.]+)", SHOWN["alpha"]):
        assert reconstruction.wrong_bit_rate(alpha=float(alpha), ratio=int(ratio)) == pytest.approx(
            0.3, abs=0.003)


# Wrong answers that nobody listed


def other_edge(prefer, allowed=lambda i, n, k: k <= i <= n - k):
    def edge(column, k):
        ranked, n = np.sort(column), len(column)
        cuts = [i for i in range(1, n) if ranked[i - 1] < ranked[i] and allowed(i, n, k)]
        return ranked[min(cuts, key=lambda i: prefer(i, n))] if cuts else None
    return ps07.cut_with(edge=edge)


def last_of_equally_wide(table, rows, k):
    return ps07.mondrian_cut(table[:, ::-1], rows, k)


def only_the_first_target(people, target, least):
    return ps07.isolating_questions(people, 4, least)


def packages_k(table, quasi, person):
    return anonymity.k_anonymity(
        {name: np.array(column) for name, column in table.items()}, missing="category",
        roles={name: QUASI if name in quasi else "other" for name in table})


def least_diverse_class_for_both(group, values, level):
    values = np.array(values)
    return min(ps07.diversities(group[group == g], values[group == g].tolist(), level)
               for g in np.unique(group))


UNLISTED = {
    "7.1": [lambda **case: np.array(ps07.crowd_of_each(**case)) + 1,
            lambda table, quasi, person: ps07.crowd_of_each(table, quasi[:1], person),
            lambda **case: np.maximum(2, ps07.crowd_of_each(**case)),
            lambda **case: sorted(ps07.crowd_of_each(**case)),
            lambda **case: [str(n) for n in ps07.crowd_of_each(**case)],
            ps07.crowd_with(lambda *case: [frozenset(row) for row in ps07.rows_of(*case)]),
            packages_k],
    "7.2": [lambda **case: np.array(ps07.diversities(**case)) * [1, 1.1],
            lambda **case: np.array(ps07.diversities(**case)) * [1.01, 1],
            lambda group, values, level: ps07.diversities(group, values, 2),
            lambda group, values, level: ps07.diversities(np.sort(group), values, level),
            least_diverse_class_for_both,
            ps07.diverse_with(second=lambda counts, level: counts[0] / sum(counts[:level])),
            ps07.diverse_with(second=lambda counts, level: ps07.limit(counts, level)
                              if level < len(counts) else math.inf),
            ps07.diverse_with(pick=max)],
    "7.3": [lambda group, values, ordered: ps07.closeness(group, values, ordered) * 1.01,
            lambda group, values, ordered: ps07.closeness(group, values, True),
            lambda group, values, ordered: ps07.closeness(np.sort(group), values, ordered),
            lambda **case: np.full(len(case["group"]), ps07.closeness(**case).max()),
            ps07.close_with(places=lambda values: np.array(sorted(set(values.tolist()), key=str))),
            ps07.close_with(ranks=lambda p, q: abs(np.cumsum(p - q).sum()) / max(1, len(p) - 1))],
    "7.4": [other_edge(lambda i, n: (abs(2 * i - n), -i)), other_edge(lambda i, n: i),
            other_edge(lambda i, n: abs(2 * i - n), lambda i, n, k: n - i >= k),
            other_edge(lambda i, n: abs(i - n // 2)),
            other_edge(lambda i, n: abs(i - (n + 1) // 2)),
            lambda table, rows, k: ps07.mondrian_cut(table, rows, max(1, k - 1)),
            ps07.cut_with(width=lambda table, rows: (np.ptp(table[rows], axis=0) + 1)
                          / np.ptp(table, axis=0)),
            ps07.cut_with(width=lambda table, rows: (np.ptp(table[rows], axis=0) + 1)
                          / (np.ptp(table, axis=0) + 1)),
            ps07.cut_with(width=lambda table, rows: np.ptp(table[rows], axis=0)
                          / table.max(axis=0)),
            lambda table, rows, k: ps07.mondrian_cut(table, np.sort(rows), k),
            last_of_equally_wide],
    "7.5": [lambda releases, people: ps07.candidates_left([r[::-1] for r in releases], people),
            lambda releases, people: [max(2, n) for n in ps07.candidates_left(releases, people)]],
    "7.6": [lambda small, large, positive, most:
            ps07.minimality_posterior(small, large, positive, most) * 0.99,
            ps07.posterior_with(rule=lambda inside, small, large, positive, most:
                                positive - inside > most * large),
            ps07.posterior_with(weight=lambda inside, small, large, positive:
                                math.comb(large, positive - inside)),
            ps07.posterior_with(rule=lambda *case: ps07.is_merged(*case[:4], 0.5)),
            ps07.posterior_with(rule=lambda *case: ps07.is_merged(*case[:4], 1.1 * case[4])),
            ps07.posterior_with(rule=lambda *case: ps07.is_merged(*case[:4], 0.9 * case[4]))],
    "7.8": [ps07.bits_with(decide=lambda x: x > 0), ps07.bits_with(decide=lambda x: x < 0.5),
            ps07.bits_with(decide=lambda x: x > 0.495), ps07.bits_with(decide=lambda x: x > 0.505),
            ps07.bits_with(lambda Q, a: ps07.estimates(Q[1:], a[1:])),
            ps07.bits_with(lambda Q, a: ps07.estimates(Q[:-1], a[:-1])),
            ps07.bits_with(lambda Q, a: np.linalg.solve(Q.T @ Q + 0.1 * np.eye(Q.shape[1]),
                                                        Q.T @ a)),
            ps07.bits_with(lambda Q, a: ps07.estimates(Q, 0.9 * a)),
            ps07.bits_with(lambda Q, a: ps07.estimates(2 * Q - 1, a)),
            ps07.bits_with(lambda Q, a: ps07.estimates(Q, a - a.mean())),
            lambda queries, answers, known: (ps07.estimates(queries, answers) > 0.5).astype(int)],
}


@pytest.mark.parametrize(("key", "wrong"), [
    (key, wrong) for key, many in UNLISTED.items() for wrong in many])
def test_unlisted_mistakes_are_refused_without_a_name_and_shown(key, wrong):
    (exercise,) = (exercise for exercise in ps07.EXERCISES if exercise.key == key)
    for seed in range(4):
        told = exercise.check(LocalSubject({exercise.function: wrong}), seed=seed)
        if wrong is packages_k and told.mistake == "smallest-only":
            continue  # no second visits in the smallest classes: the name is right then
        assert (told.status, told.mistake) == (WRONG, None)
        assert "it should give" in told.message


def test_questions_about_one_place_only_are_refused():
    assert verdict(ps07.QUESTIONS, only_the_first_target).status == WRONG


def test_answers_may_be_lists_arrays_booleans_or_floats():
    for exercise in (ps07.CROWD_OF_EACH, ps07.DIVERSITIES, ps07.CLOSENESS,
                     ps07.MONDRIAN_CUT, ps07.CANDIDATES_LEFT, ps07.QUESTIONS, ps07.RECONSTRUCT):
        for form in (list, lambda answer: np.asarray(answer).tolist(),
                     lambda answer: np.asarray(answer, dtype=float)):
            told = verdict(exercise, lambda form=form, right=exercise.right, **case:
                           form(right(**case)))
            assert told.status == RIGHT, told.message
    assert verdict(ps07.CLOSENESS, lambda **case: [ps07.closeness(**case)]).status == WRONG
    assert verdict(ps07.RECONSTRUCT, lambda **case: ps07.reconstruct_bits(**case) == 1
                   ).status == RIGHT


def test_bits_written_into_known_are_told():
    def careless(queries, answers, known):
        right = ps07.reconstruct_bits(queries, answers, known)
        known[:] = right
        return known

    assert verdict(ps07.RECONSTRUCT, careless).mistake == "changes-its-input"


# What a learner reads


def test_examples_in_the_tasks_are_true():
    assert tried_examples(SOLUTION, PROSE) == 26


def test_letter_to_meera_has_its_numbers_right():
    letter, years = PROSE["answer-7-9"], SHOWN["years"]
    left = np.array(re.findall(r"average ([\d.]+), ([\d.]+), ([\d.]+), ([\d.]+); .* for (\d+)",
                               years), dtype=float)
    assert left.shape == (5, 5)
    low, high = left.min(axis=0), left.max(axis=0)
    assert f"left {low[0]} to {high[0]} of 14 diagnoses" in letter
    assert f"ten tables {low[3]} or {high[3]}; for {low[4]:.0f} to {high[4]:.0f} of" in letter
    assert np.all(np.abs((1 - left[:, 3] / left[:, 0]) - 0.42) < 0.03)  # "about two fifths"
    right = np.array(re.findall(r"for ([\d.]+)%, without for ([\d.]+)%", SHOWN["guess"]), float)
    assert 23 < right[:, 0].min() and right[:, 0].max() < 26 and "right for 23 to 26%" in letter
    assert 11 < right[:, 1].min() and right[:, 1].max() < 13 and "against 11 to 13%" in letter
    assert round(math.e, 1) == 2.7 and 1 / (1 / 10) == 10 and "noise of scale 10" in letter


def test_afterword_works_with_the_learners_own_functions():
    cells = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]}
    assert "delete `ours.`" in PROSE["afterword"]
    namespace = verify.run_cells({"cells": [
        cell | {"source": cell["source"] if cell["id"] != "years" else ""}
        for cell in SOLUTION["cells"]]})
    before = sorted(map(tuple, map(sorted, namespace["boxes"]))), namespace["t"]
    for name in ("boxes", "same", "noise"):
        assert "ours." in cells[name]
        exec(cells[name].replace("ours.", ""), namespace)
    after = sorted(map(tuple, map(sorted, namespace["boxes"]))), namespace["t"]
    assert after == (before[0], pytest.approx(before[1]))
    left = []
    for source in (cells["years"], cells["years"].replace("ours.", "")):
        exec(source.partition("for seed in")[0], namespace)
        left.append(namespace["yearly"](0, years=3, first=400, new=50))
    assert left[0] == left[1]
