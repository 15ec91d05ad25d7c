"""Problem set 04: its answers against the package and closed forms, and what a learner reads."""

import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from coursekit import accounting
from coursekit.checks import ps04
from coursekit.checks.exercise import RIGHT, WRONG, LocalSubject
from tests.checks.tasks import tried_examples

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps04-dp-sgd"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
PROSE = {
    cell["id"]: "".join(cell["source"])
    for cell in SOLUTION["cells"]
    if cell["cell_type"] == "markdown"
}
SHOWN = {
    cell["id"]: "".join("".join(output.get("text", "")) for output in cell["outputs"])
    for cell in SOLUTION["cells"]
    if cell["cell_type"] == "code"
}
CODED = [exercise for exercise in ps04.EXERCISES if exercise.function]
SEED = 20_240


def verdict(exercise, answer, seed=SEED):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=seed)


def words(text):
    return " ".join(text.split())


# 4.1 to 4.3: gradients


def complex_step(loss, at):
    """The gradient of an analytic function, to the last digit, without any differencing."""
    at = np.asarray(at, dtype=complex)
    return np.array([loss(at + 1e-200j * row).imag / 1e-200 for row in np.eye(len(at))])


@pytest.mark.parametrize("seed", range(10))
def test_gradients_are_derivatives_of_the_loss(seed):
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(6, 3)), rng.integers(0, 2, 6), rng.normal(size=3)
    for x, label, row in zip(X, y, ps04.per_example_gradients(X, y, w), strict=True):

        def loss(weights, x=x, label=label):
            p = 1 / (1 + np.exp(-(x @ weights)))
            return -label * np.log(p) - (1 - label) * np.log(1 - p)

        np.testing.assert_allclose(row, complex_step(loss, w), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize("seed", range(10))
def test_clipped_rows_are_the_nearest_points_of_the_ball(seed):
    rng = np.random.default_rng(seed)
    rows, bound = rng.normal(0, 2, (40, 3)), rng.uniform(0.5, 4)
    clipped = ps04.clip_gradients(rows, bound)
    lengths, after = np.linalg.norm(rows, axis=1), np.linalg.norm(clipped, axis=1)
    np.testing.assert_allclose(after, np.minimum(lengths, bound))
    np.testing.assert_array_equal(clipped[lengths <= bound], rows[lengths <= bound])
    np.testing.assert_allclose(clipped * lengths[:, np.newaxis], rows * after[:, np.newaxis])
    # No two points get further apart, which the reply of 4.10 uses.
    for i, j in itertools.combinations(range(40), 2):
        before = np.linalg.norm(rows[i] - rows[j])
        assert np.linalg.norm(clipped[i] - clipped[j]) <= before * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_norms_are_those_of_a_layers_derivatives(seed):
    rng = np.random.default_rng(seed)
    a, g = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    for inputs, outputs, norm in zip(a, g, ps04.per_example_norms(a, g), strict=True):

        def loss(weights, inputs=inputs, outputs=outputs):
            """Any loss whose gradient by z = W a + b is `outputs`; this one is linear."""
            return outputs @ (weights[:6].reshape(2, 3) @ inputs + weights[6:])

        gradient = complex_step(loss, rng.normal(size=8))
        assert norm == pytest.approx(np.linalg.norm(gradient), rel=1e-12)


def test_tables_of_the_large_layer_are_as_many_numbers_as_the_task_says():
    assert round(512 * 512 * 256 / 1e6) == 67
    assert "512 inputs and 256 outputs and a batch of 512 people" in PROSE["task-4-3"]
    assert "67 million numbers" in PROSE["task-4-3"]


# 4.4: batches


def frequencies(answer, people, rate, draws=20_000):
    rng = np.random.default_rng(SEED)
    masks = np.array([answer(people, rate, rng) for _ in range(draws)], dtype=int)
    return np.bincount(masks @ 2 ** np.arange(people), minlength=2**people) / draws


@pytest.mark.parametrize("answer", [ps04.poisson_batch, *ps04.POISSON.others])
def test_every_set_of_people_has_its_probability(answer):
    """Hoeffding: one of 16 frequencies is off by 0.026 with chance 32 exp(-2 n t^2) < 1e-9."""
    seen = frequencies(answer, 4, 0.3)
    for code, frequency in enumerate(seen):
        size = code.bit_count()
        assert abs(frequency - 0.3**size * 0.7 ** (4 - size)) < 0.026


@pytest.mark.parametrize("name", ps04.size_laws())
def test_listed_laws_of_the_size_are_those_of_the_mistakes(name):
    """The bound of Dvoretzky, Kiefer, Wolfowitz and Massart, at 1e-9 for each law."""
    (mistake,) = (mistake for mistake in ps04.POISSON.mistakes if mistake.name == name)
    rng, draws = np.random.default_rng(SEED), 5_000
    sizes = np.sort([mistake.wrong(**ps04.BATCH, rng=rng).sum() for _ in range(draws)])
    at = np.arange(ps04.BATCH["people"] + 1)
    gaps = np.searchsorted(sizes, at, side="right") / draws - ps04.size_laws()[name].cdf(at)
    assert np.abs(gaps).max() < math.sqrt(math.log(2e9) / (2 * draws))


def test_law_of_draws_with_replacement_by_going_through_all_of_them():
    sizes = [len(set(draws)) for draws in itertools.product(range(12), repeat=3)]
    masses = np.bincount(sizes, minlength=4)[1:] / 12**3
    np.testing.assert_allclose(ps04.size_laws()["with-replacement"].pmf([1, 2, 3]), masses)


def test_numbers_of_the_task_on_batches():
    assert 1000 * 0.25 == 250 and round(math.sqrt(1000 * 0.25 * 0.75)) == 14
    assert round(0.75**4, 1) == 0.3


# 4.5, 4.6 and 4.9: noise and steps


def test_noise_is_sigma_times_the_change_of_exercise_4_7():
    change = ps04.largest_change("clip-sum-divide", "add-remove", 2.5, 8)
    rng = np.random.default_rng(SEED)
    draws = np.array([ps04.noisy_average(**ps04.AVERAGE, rng=rng) for _ in range(4_000)])
    noise = ps04.average_noise(draws, ps04.AVERAGE).ravel() / change
    # A chi-squared law with 12,000 degrees of freedom, left on either side with chance 5e-10.
    low, high = stats.chi2(noise.size).ppf([5e-10, 1 - 5e-10])
    assert low < np.sum(noise**2) / 2.2**2 < high


def test_divisors_of_a_crowd_are_told_apart_and_the_right_one_hardly_ever_taken_for_another():
    people, q, planned = 101, ps04.CROWD["sampling_rate"], ps04.CROWD["batch_size"]
    assert len(ps04.CROWD["X"]) == people and stats.binom(people, q).pmf(planned) < 1e-10
    names = {
        "divides-by-who-came": "who came",
        "size-from-the-data": "the number of rows",
        "divided-by-the-rate": "q times the plan",
        "not-divided": "the plan",
    }
    for mistake in ps04.STEP.mistakes:
        if mistake.name in names:
            for seed in range(20):
                rng = np.random.default_rng(seed)
                assert ps04.divisor(mistake.wrong(**ps04.CROWD, rng=rng)) == names[mistake.name]
    for seed in range(50):
        moved = ps04.dp_sgd_step(**ps04.CROWD, rng=np.random.default_rng(seed))
        assert ps04.divisor(moved) == "the plan"


def test_a_person_who_is_in_moves_her_weight_by_one():
    everybody = {**ps04.SEEN, "sampling_rate": 1.0}
    np.testing.assert_allclose(
        ps04.dp_sgd_step(**everybody, rng=np.random.default_rng(1)), -np.ones(8)
    )
    always = {**ps04.SEEN_OFTEN, "sampling_rate": 1.0}
    np.testing.assert_allclose(
        ps04.train(**always, rng=np.random.default_rng(1)), -0.03 * np.ones(6)
    )


def test_training_on_rows_of_zeros_is_a_random_walk():
    case = {**ps04.WALK, "w": np.zeros(4_000), "X": np.zeros((5, 4_000)), "steps": 9}
    ends = ps04.train(**case, rng=np.random.default_rng(SEED))
    width = 3 * case["learning_rate"] * 2.2 * 2.5 / 8
    low, high = stats.chi2(4_000).ppf([5e-10, 1 - 5e-10])
    assert low < np.sum(ends**2) / width**2 < high


def test_noise_of_the_first_step_decides_who_pulls_in_the_second():
    """1,600 weights end beyond 1 with chance 1/4 each; Hoeffding: off by 0.082 once in 1e9."""
    rng = np.random.default_rng(SEED)
    ends = np.array([ps04.train(**ps04.TORN, rng=rng) for _ in range(400)])
    assert abs(np.mean(np.abs(ends) > 1) - 0.25) < 0.082
    assert 2 * math.exp(-2 * ends.size * 0.082**2) < 1e-9


def test_planned_sizes_are_passed_and_rows_are_shorter_than_the_norm():
    cases = ps04.average_cases(np.random.default_rng(SEED))
    assert any(len(case["clipped"]) > case["batch_size"] for case in cases)
    assert ps04.longest(ps04.ROWS) < 0.5 * ps04.AVERAGE["max_grad_norm"]


# 4.7: one person


def value_of(rule, rows, bound, planned):
    def shortened(row):
        length = math.sqrt(sum(x * x for x in row))
        return row if length <= bound else row * (bound / length)

    if rule.startswith("clip"):
        rows = [shortened(row) for row in rows]
    total = sum(rows, np.zeros(2))
    if rule == "clip-average":
        return total / max(1, len(rows))
    total = total / (planned if "divide" in rule else 1)
    return shortened(total) if rule.endswith("clip") else total


@pytest.mark.parametrize("rule", ps04.RULES)
@pytest.mark.parametrize("adjacency", ps04.ADJACENCIES)
def test_no_neighbour_moves_a_value_further_and_some_move_it_so_far(rule, adjacency):
    rng, bound, planned = np.random.default_rng(SEED), 1.5, 4
    furthest = 0.0
    for _ in range(4_000):
        size = int(rng.integers(0, 4))
        # Lengths from tiny to far beyond every bound, along a line or anywhere.
        rows = rng.choice([-1, 1], (size + 2, 1)) * [1.0, rng.choice([0.0, 1.0])]
        rows = rows * 10 ** rng.uniform(-2, 4, (size + 2, 1)) * rng.choice([-1, 1], (1, 2))
        *others, meera, instead = rows
        neighbour = [*others, instead] if adjacency == "replace-one" else others
        change = value_of(rule, [*others, meera], bound, planned) - value_of(
            rule, neighbour, bound, planned
        )
        furthest = max(furthest, float(np.linalg.norm(change)))
    limit = ps04.largest_change(rule, adjacency, bound, planned)
    assert furthest <= limit * (1 + 1e-9)
    assert furthest > limit * (1 - 1e-6)


def test_lesson_and_table_of_the_rules():
    for rule in ps04.RULES:
        assert f'`"{rule}"`' in PROSE["task-4-7"]
    clipped_last = ps04.largest_change("sum-divide-clip", "add-remove", 1, 500)
    assert clipped_last / ps04.largest_change("clip-sum-divide", "add-remove", 1, 500) == 1000
    assert "2B times as much" in ps04.CHANGE.lesson


# 4.8: the plan


def test_plan_is_the_packages_and_the_slip_costs_what_we_say():
    rate, steps, epsilon = ps04.private_plan(1000, 250, 10, 4.0, 1e-5)
    run = dict(noise_multiplier=4.0, sampling_rate=0.25, delta=1e-5)
    assert (rate, steps) == (0.25, 40)
    low, high = accounting.epsilon_bounds(steps=40, **run, tolerance=1e-4)
    assert low <= epsilon and epsilon == pytest.approx(high, rel=2e-3)
    assert "(0.25, 40, 1.65)" in PROSE["task-4-8"] and round(epsilon, 2) == 1.65


def test_some_case_has_a_delta_of_one_in_n_and_one_a_larger_one():
    cases = ps04.plan_cases(np.random.default_rng(SEED))
    products = [case["people"] * case["delta"] for case in cases]
    assert 1.0 in products and max(products) > 1
    for case in cases:  # both ways of comparing agree
        assert (case["people"] * case["delta"] >= 1) == (case["delta"] >= 1 / case["people"])
        assert math.isinf(ps04.private_plan(**case)[2]) == (case["people"] * case["delta"] >= 1)


def test_publishing_each_record_with_chance_delta_is_private_and_shows_n_delta_records():
    """With probability delta her record is shown: a gain of delta at epsilon 0, both ways."""
    delta = 0.01
    with_her, without = np.array([delta, 1 - delta]), np.array([0.0, 1.0])
    for p, q in ((with_her, without), (without, with_her)):
        assert np.maximum(0, p - q).sum() == pytest.approx(delta)


# 4.10 and the afterwords


def test_reply_to_the_colleague_has_its_numbers_right():
    task, reply, rubric = PROSE["task-4-10"], PROSE["answer-4-10"], ps04.LETTER.rubric
    assert "planned B = 500" in task and "C = 1" in task and "σ = 1.15" in task
    change = ps04.largest_change("sum-divide-clip", "add-remove", 1.0, 500)
    assert change == 2 and "2C = 2" in reply and f"2σC = {2 * 1.15:.1f}" in reply
    noise = 1.15 / 500
    assert f"σC/B = {noise:.4f}" in reply and f"C/B = {1 / 500}" in reply
    assert round(2 * 1.15 / noise) == 1000
    assert "2B = 1000 times" in reply and "2B = 1000 times" in rubric
    assert f"{change / noise:.0f}" == "870" and "870 standard deviations" in reply
    # One such step, everybody in: no useful epsilon is left.
    assert accounting.gaussian_epsilon(change / noise, 1e-5) > 300_000
    # With q = 0.02 hardly less: epsilon + log q at delta / q (Li, Qardaji and Su 2012).
    assert accounting.gaussian_epsilon(change / noise, 5e-4) + math.log(0.02) > 300_000


def clipped_average_delta(width, rate, others, meera, epsilon):
    """The exact delta of one step on a line, C = 1 and B = 2, by integration over all batches."""
    z = np.linspace(-1 - 9 * width, 1 + 9 * width, 4_001)
    without = with_her = 0.0
    for batch in itertools.product([0, 1], repeat=len(others)):
        chance = math.prod(rate if taken else 1 - rate for taken in batch)
        total = float(np.dot(batch, others))
        alone, joined = (
            stats.norm.pdf(z, np.clip(value / 2, -1, 1), width) for value in (total, total + meera)
        )
        without = without + chance * alone
        with_her = with_her + chance * (rate * joined + (1 - rate) * alone)
    pairs = ((with_her, without), (without, with_her))
    gains = [np.maximum(0, p - math.exp(epsilon) * q).sum() for p, q in pairs]
    return max(gains) * (z[1] - z[0])


def test_clipped_average_keeps_the_promise_with_noise_for_2c_and_breaks_it_with_the_scripts():
    """As the reply of 4.10 says, for Poisson batches under add/remove."""
    rate, sigma, worst = 0.3, 1.15, 0.0
    for epsilon in (0.2, 0.5, 1.0):
        promised = accounting.delta_bounds(
            noise_multiplier=sigma, sampling_rate=rate, steps=1, epsilon=epsilon
        )[1]
        for others in ([], [9.0], [9.0] * 6, [0.5, -3.0, 2.0]):
            for meera in (-1e6, 1e6, 1.0):
                delta = clipped_average_delta(2 * sigma, rate, others, meera, epsilon)
                assert delta <= promised * (1 + 1e-6)
                worst = max(worst, delta / promised)
        assert clipped_average_delta(sigma / 2, rate, [9.0] * 6, -1e6, epsilon) > 1.5 * promised
    assert worst > 0.8  # nearly reached: six others are hardly ever all missing


def test_numbers_of_the_afterwords_are_those_shown():
    lines = SHOWN["groups"].splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "C = 1e+09, 100 steps", "C = 1, 100 steps", "C = 0.1, 100 steps", "C = 0.1, 500 steps",
    ]  # fmt: skip
    assert "all 0.90, the many 0.91, the few 0.89" in lines[0]
    assert "all 0.82, the many 0.91, the few 0.10" in lines[2]
    assert "the few 0.90" in lines[3]
    reply, reading = PROSE["answer-4-10"], PROSE["groups-reading"]
    assert "the many keep their 0.91" in reply and "fall from 0.89 to 0.10" in reply
    assert "from 0.90 to 0.82" in PROSE["task-4-10"] and "over all, 0.82" in reading
    worst = lines[2].split("(")[1].rstrip(")").split(" to ")
    assert float(worst[1]) < 0.2 and "in each of the ten data sets" in reading
    assert "moves by 0.002, 0.87" in SHOWN["moves"] and "2.000, 869.57" in SHOWN["moves"]
    assert "same sum: True" in SHOWN["book-keeping"]


def test_set_needs_neither_torch_nor_the_lectures_module():
    code = "".join(
        "".join(cell["source"]) for cell in SOLUTION["cells"] if cell["cell_type"] == "code"
    )
    for source in (code, Path(ps04.__file__).read_text(encoding="utf-8")):
        assert "torch" not in source and "coursekit.dpsgd" not in source


# Wrong answers that nobody listed

UNLISTED = {
    "4.1": lambda X, y, w: ps04.per_example_gradients(X, y, w) * (1 + 1e-4),
    "4.2": lambda gradients, max_grad_norm: ps04.clip_gradients(gradients, max_grad_norm * 0.999),
    "4.3": lambda inputs, output_gradients: ps04.per_example_norms(inputs, output_gradients)[::-1],
    "4.7": lambda rule, adjacency, max_grad_norm, batch_size: max_grad_norm,
    "4.8": lambda people, batch, epochs, noise_multiplier, delta: ps04.private_plan(
        people, batch, epochs, noise_multiplier * 1.01, delta
    ),
}


@pytest.mark.parametrize("key", UNLISTED)
def test_unlisted_mistakes_are_refused_without_a_name_and_shown(key):
    (exercise,) = (exercise for exercise in CODED if exercise.key == key)
    told = verdict(exercise, UNLISTED[key])
    assert (told.status, told.mistake) == (WRONG, None)
    assert "it should give" in told.message or "that is not how far" in told.message


def later_people_rarely(people, sampling_rate, rng):
    chances = sampling_rate * np.linspace(1.4, 0.6, people)
    return rng.random(people) < np.minimum(1, chances if sampling_rate < 1 else 1.0)


def wider_to_the_right(clipped, max_grad_norm, noise_multiplier, batch_size, rng):
    width = noise_multiplier * max_grad_norm * np.linspace(0.6, 1.4, clipped.shape[1])
    return (clipped.sum(axis=0) + rng.normal(0, width)) / batch_size


def uniform_noise(clipped, max_grad_norm, noise_multiplier, batch_size, rng):
    width = math.sqrt(3) * noise_multiplier * max_grad_norm
    return (clipped.sum(axis=0) + rng.uniform(-width, width, clipped.shape[1])) / batch_size


def step_with_pairs_of_people(w, X, y, sampling_rate, rng, **rest):
    together = np.repeat(rng.random((len(X) + 1) // 2) < sampling_rate, 2)[: len(X)]
    return ps04.dp_sgd_step(w, X[together], y[together], 1.0, rng=rng, **rest)


def train_with_half_the_noise(noise_multiplier, **rest):
    return ps04.train(noise_multiplier=noise_multiplier / math.sqrt(2), **rest)


def with_noise(exercise, factor):
    """The answer with other noise, where there is a law to judge it by."""
    return lambda noise_multiplier, **case: exercise.right(
        noise_multiplier=factor * noise_multiplier, **case
    )


@pytest.mark.parametrize("exercise", [ps04.NOISE, ps04.STEP, ps04.TRAIN], ids=lambda e: e.key)
@pytest.mark.parametrize("factor", [0.8, 0.85, 0.9, 1.1, 1.2])
def test_noise_that_is_off_by_a_tenth_or_two_is_refused(exercise, factor):
    for seed in range(2):
        assert verdict(exercise, with_noise(exercise, factor), seed).status == WRONG


def capped(people, sampling_rate, rng):
    batch = ps04.poisson_batch(people, sampling_rate, rng)
    if sampling_rate < 1:
        batch[np.flatnonzero(batch)[int(2 * sampling_rate * people) :]] = False
    return batch


def all_noise_first(w, X, y, steps, noise_multiplier, rng, **rest):
    first = ps04.dp_sgd_step(
        w, X, y, noise_multiplier=math.sqrt(steps) * noise_multiplier, rng=rng, **rest
    )
    return ps04.train(first, X, y, steps - 1, noise_multiplier=0.0, rng=rng, **rest)


def train_without_empty_batches(w, X, y, steps, sampling_rate, rng, **rest):
    for _ in range(steps):
        batch = ps04.never_empty(len(X), sampling_rate, rng)
        w = ps04.dp_sgd_step(w, X[batch], y[batch], 1.0, rng=rng, **rest)
    return w


@pytest.mark.parametrize(
    ("exercise", "answer"),
    [
        (ps04.POISSON, capped),
        (ps04.TRAIN, all_noise_first),
        (ps04.TRAIN, train_without_empty_batches),
        (ps04.POISSON, later_people_rarely),
        (ps04.NOISE, wider_to_the_right),
        (ps04.NOISE, uniform_noise),
        (ps04.STEP, step_with_pairs_of_people),
        (ps04.TRAIN, train_with_half_the_noise),
    ],
    ids=["capped", "first", "empty", "rarely", "wider", "uniform", "pairs", "half"],
)
def test_unlisted_laws_are_refused(exercise, answer):
    for seed in range(3):
        assert verdict(exercise, answer, seed).status == WRONG


def test_other_forms_of_a_mistake_have_its_name():
    def drawn_again(people, sampling_rate, rng):
        while not (batch := ps04.poisson_batch(people, sampling_rate, rng)).any():
            pass
        return batch

    def noise_of_one_seed(rng, **case):
        return ps04.noisy_average(**case, rng=np.random.default_rng(0))

    def first_step_clean(noise_multiplier, steps, rng, w, **rest):
        w = ps04.dp_sgd_step(w, noise_multiplier=0.0, rng=rng, **rest)
        return ps04.train(w, steps=steps - 1, noise_multiplier=noise_multiplier, rng=rng, **rest)

    assert verdict(ps04.POISSON, drawn_again).mistake == "never-empty"
    assert verdict(ps04.NOISE, noise_of_one_seed).mistake == "always-the-same"
    assert verdict(ps04.TRAIN, first_step_clean).mistake == "last-step-clean"


def test_answers_may_be_lists_or_arrays_and_whole_numbers_may_be_floats():
    def plan_as_array(**case):
        return np.array(ps04.private_plan(**case), dtype=float)

    assert verdict(ps04.PLAN, plan_as_array).status == RIGHT
    for exercise in CODED:
        if exercise not in (ps04.PLAN, ps04.CHANGE):
            single = verdict(exercise, lambda e=exercise, **case: np.float32(e.right(**case)))
            assert single.status == RIGHT, single.message
    assert verdict(ps04.CLIP, lambda **case: ps04.clip_gradients(**case).tolist()).status == RIGHT
    assert verdict(ps04.STEP, lambda **case: list(ps04.dp_sgd_step(**case))).status == RIGHT


# What a learner reads


def test_examples_in_the_tasks_are_true():
    assert tried_examples(SOLUTION, PROSE) == 27


def test_last_exercise_keeps_its_quotes():
    """check(4.10) would be check(4.1), which the first page says."""
    assert str(4.10) == "4.1" and "4.10 is the number 4.1" in PROSE["how-to-work"]
