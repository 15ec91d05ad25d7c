"""Problem set 01: its answers against coursekit.neighbours, and what a learner reads."""

import doctest
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest

from coursekit import checks, neighbours, verify
from coursekit.checks import ps01
from coursekit.checks.exercise import WRONG, LocalSubject
from coursekit.learn import check

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps01-neighbouring-datasets"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
PROSE = ["".join(cell["source"]) for cell in SOLUTION["cells"] if cell["cell_type"] == "markdown"]
BOTH = neighbours.ADJACENCIES


def as_multisets(data_sets):
    return sorted(tuple(sorted(records)) for records in data_sets)


# The answers, against the package, which was written independently


def test_statement_c_is_the_right_one_of_exercise_1():
    records = [(ill, score, group) for ill in (0, 1) for score in (0, 100) for group in range(5)]
    queries = {
        "count": lambda data: sum(ill for ill, _, _ in data),
        "sum": lambda data: sum(score for _, score, _ in data),
        "histogram": lambda data: np.bincount([group for _, _, group in data], minlength=5),
    }
    found = {name: [neighbours.global_sensitivity(query, universe=records, size=2, adjacency=way)
                    for way in BOTH] for name, query in queries.items()}
    assert found == {"count": [1, 1], "sum": [100, 100], "histogram": [1, 2]}
    assert ps01.TWO_ADJACENCIES.right() == "c"


@pytest.mark.parametrize("seed", range(20))
def test_neighbours_are_those_of_the_package(seed):
    rng = np.random.default_rng(seed)
    universe = list(range(int(rng.integers(1, 5))))
    records = rng.choice(universe, size=int(rng.integers(0, 6))).tolist()
    expected = neighbours.neighbours(records, adjacency="add-remove", universe=universe)
    ours = ps01.add_remove_neighbours(records, universe)
    assert as_multisets(ours) == as_multisets(expected)


@pytest.mark.parametrize("adjacency", BOTH)
@pytest.mark.parametrize("bounds", [(0, 100), (-50, 50), (-80, 20), (20, 100), (-90, -30)])
def test_sum_sensitivity_is_what_trying_everything_finds(bounds, adjacency):
    universe = np.linspace(*bounds, 6).tolist()
    tried = neighbours.global_sensitivity(sum, universe=universe, size=3, adjacency=adjacency)
    assert ps01.sum_sensitivity(*bounds, adjacency) == pytest.approx(tried, rel=1e-12)


def test_clipping_gives_the_sensitivity_that_its_lesson_states():
    rows = np.array([[3.0, 4.0], [-3.0, -4.0], [0.3, 0.4], [0.0, 0.0]])
    universe = [tuple(row) for row in ps01.clip_rows(rows, 2.0)]
    found = [neighbours.global_sensitivity(lambda data: np.sum(data, axis=0), universe=universe,
                                           size=3, adjacency=way, norm=2) for way in BOTH]
    assert found == pytest.approx([2.0, 4.0])


@pytest.mark.parametrize("seed", range(20))
def test_epsilon_is_that_of_the_package(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(4), size=2)
    assert ps01.smallest_epsilon(p, q) == pytest.approx(neighbours.smallest_epsilon(p, q))
    for case in ps01._distributions_with_zeros(rng):
        expected = neighbours.smallest_epsilon(**case)
        assert ps01.smallest_epsilon(**case) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.1, 1.5, 4.0])
def test_the_law_of_randomised_response_has_this_epsilon(epsilon):
    truth = ps01._keeping(epsilon)
    found = neighbours.smallest_epsilon([truth, 1 - truth], [1 - truth, truth])
    assert found == pytest.approx(epsilon)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.1, 0.9])
def test_largest_tpr_is_the_upper_edge_of_the_region(epsilon, delta):
    fpr = np.linspace(0, 1, 101)
    _, upper = neighbours.tpr_bounds(fpr, epsilon=epsilon, delta=delta)
    assert ps01.largest_tpr(fpr, epsilon, delta) == pytest.approx(upper, abs=1e-12)


def test_the_numbers_in_the_letter_to_meera():
    letter = next(text for text in PROSE if text.startswith("Dear Meera"))

    def best(epsilon, delta=0.0):
        return (1 + neighbours.largest_advantage(epsilon, delta)) / 2

    for shown in (f"{best(0.5):.0%} at ε = 0.5", f"{best(2):.0%} at ε = 2",
                  f"{best(8):.2%} at ε = 8", "fewer than 63 of 100"):
        assert shown in letter
    assert best(0.5, 1e-6) < 0.63
    task = next(text for text in PROSE if text.startswith("## 1.8"))
    assert "½ + (e^ε − 1 + 2δ) / (2(e^ε + 1))" in task
    epsilon, delta = 0.7, 0.05
    corner = 0.5 + (math.exp(epsilon) - 1 + 2 * delta) / (2 * (math.exp(epsilon) + 1))
    assert corner == pytest.approx(best(epsilon, delta))


# Wrong answers that nobody listed


def counted_twice(records, universe):
    return 2 * ps01.add_remove_neighbours(records, universe)


def a_little_shorter(vectors, max_norm):
    return ps01.clip_rows(vectors, 0.999 * max_norm)


def too_little_noise(bits, epsilon, rng):
    return ps01.randomised_response(bits, 3 * epsilon, rng)


def twice_the_delta(fpr, epsilon, delta):
    return ps01.largest_tpr(fpr, epsilon, 2 * delta)


@pytest.mark.parametrize("key, wrong", [
    ("1.1", lambda: "e"),
    ("1.1", lambda: 3),
    ("1.2", counted_twice),
    ("1.2", lambda records, universe: len(records)),
    ("1.3", lambda lower, upper, adjacency: 100),
    ("1.3", lambda lower, upper, adjacency: "100"),
    ("1.4", a_little_shorter),
    ("1.4", lambda vectors, max_norm: ps01.clip_rows(vectors, max_norm)[0]),
    ("1.5", lambda p, q: ps01.smallest_epsilon(p, q) + 0.001),
    ("1.5", lambda p, q: min(ps01.smallest_epsilon(p, q), 20.0)),
    ("1.6", too_little_noise),
    ("1.6", lambda bits, epsilon, rng: ps01.randomised_response(bits, epsilon, rng)[:-1]),
    ("1.6", lambda bits, epsilon, rng: ps01.randomised_response(bits, epsilon, rng).mean()),
    ("1.7", twice_the_delta),
    ("1.7", lambda fpr, epsilon, delta: np.exp(epsilon)),
])
def test_an_unlisted_mistake_is_refused_without_a_name(key, wrong):
    exercise = checks.find(key)
    for seed in range(5):
        verdict = exercise.check(LocalSubject({exercise.function: wrong}), seed=seed)
        assert (verdict.status, verdict.mistake) == (WRONG, None)
        assert verdict.message


# What a learner reads


def test_a_mistake_is_printed_with_its_name_its_reason_and_the_way_to_a_hint(capsys):
    def add_remove_neighbours(records, universe):
        removed = [records[:i] + records[i + 1:] for i in range(len(records))]
        return [tuple(one) for one in removed + [[*records, new] for new in universe]]

    check("1.2", namespace={"add_remove_neighbours": add_remove_neighbours})
    first, reason, *more, way_on = capsys.readouterr().out.splitlines()
    assert all(len(line) <= 88 for line in (first, reason, *more, way_on))
    assert first == "✘ 1.2  Not yet. (lists-a-neighbour-twice)"
    assert reason.startswith("A neighbour appears twice.")
    assert way_on.endswith('hint("1.2")')


def test_a_letter_that_is_no_choice_does_not_get_the_right_one_told(capsys):
    check("1.1", namespace={"answer_1_1": lambda: "e"})
    assert "answer_1_1() gave 'e'; answer with one of the letters a, b, c, d." in (
        capsys.readouterr().out)


def test_a_report_for_everybody_together_is_told_its_shape(capsys):
    check("1.6", namespace={"randomised_response": lambda bits, epsilon, rng: rng.integers(2)})
    assert "an answer of shape () for 100 bits" in capsys.readouterr().out


def examples():
    """The examples of the solution notebook, by the heading they stand under."""
    for text in PROSE:
        fenced = re.findall(r"```python\n(.*?)```", text, re.S)
        if fenced:
            yield pytest.param("\n\n".join(fenced), id=text.split(maxsplit=2)[1])


@pytest.fixture(scope="module")
def solved():
    return verify.run_cells(SOLUTION)


@pytest.mark.parametrize("example", list(examples()))
def test_what_you_should_see_is_what_our_solution_shows(example, solved):
    test = doctest.DocTestParser().get_doctest(example, solved, "example", None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0


def test_six_exercises_show_an_example():
    assert len(list(examples())) == 6


def test_every_section_that_a_message_names_is_in_the_notebook():
    words = [text for exercise in ps01.EXERCISES
             for text in (*(mistake.message for mistake in exercise.mistakes), *exercise.hints)]
    named = {pair for text in words for pair in re.findall(r'otebook (\d\d), "([^"]+)"', text)}
    assert len(named) >= 5
    for number, section in named:
        (path,) = (ROOT / "notebooks").glob(f"{number}_*.ipynb")
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        lines = "".join("\n" + "".join(cell["source"]) for cell in cells).splitlines()
        assert f"## {section}" in lines, f"notebook {number} has no section {section!r}"


def test_the_points_told_are_the_points_given():
    coded = sum(exercise.points for exercise in ps01.EXERCISES if exercise.function)
    total = sum(exercise.points for exercise in ps01.EXERCISES)
    assert f"**Points** {total}: {coded} for the seven exercises in code" in PROSE[0]
    for exercise in ps01.EXERCISES:
        points = f"({exercise.points} point{'s' * (exercise.points > 1)})"
        heading = f"## {exercise.key} {exercise.title} {points}"
        assert sum(text.startswith(heading + "\n") for text in PROSE) == 1, heading


def responses(reports):
    """Right reports, spoilt by `reports(right, bits, epsilon, rng)`."""
    def answer(bits, epsilon, rng):
        right = np.asarray(ps01.randomised_response(bits, epsilon, rng))
        return reports(right, bits, epsilon, rng)
    return answer


def kept_with(chance):
    return lambda bits, epsilon, rng: np.where(
        rng.random(len(bits)) < chance(epsilon), bits, 1 - bits)


@pytest.mark.parametrize("answer", [
    responses(lambda right, bits, epsilon, rng: right[::-1]),
    responses(lambda right, bits, epsilon, rng: rng.permutation(right)),
    responses(lambda right, bits, epsilon, rng: np.sort(right)),
    lambda bits, epsilon, rng: np.where(
        np.sort(rng.random(len(bits))) < 1 / (1 + np.exp(epsilon)), 1 - bits, bits),
    lambda bits, epsilon, rng: np.where(np.resize(
        rng.random(len(bits) // 2 + 1), len(bits)) < 1 / (1 + np.exp(epsilon)), 1 - bits, bits),
    kept_with(np.tanh), kept_with(lambda epsilon: 0.5 + epsilon / 4),
    kept_with(lambda epsilon: 1 - 1 / (2 + epsilon + epsilon**2 / 2)),
], ids=["reversed", "shuffled", "sorted", "sorted coins", "shared coins", "tanh", "linear",
        "second order"])
def test_mechanisms_of_which_only_the_rate_of_lies_is_right_are_refused(answer):
    exercise = checks.find("1.6")
    verdict = exercise.check(LocalSubject({"randomised_response": answer}), seed=7)
    assert verdict.status == WRONG
