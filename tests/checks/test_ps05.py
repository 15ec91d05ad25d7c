"""Problem set 05: its answers against the package and closed forms, and what a learner reads."""

import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special, stats

from coursekit import accounting, verify
from coursekit.accounting.losses import sampled
from coursekit.checks import ps05
from coursekit.checks.exercise import RIGHT, WRONG, LocalSubject
from tests.checks.tasks import tried_examples

ROOT = Path(__file__).resolve().parents[2]
NAME = "ps05-accounting"
SOLUTION = json.loads((ROOT / "solutions" / NAME / f"{NAME}.ipynb").read_text(encoding="utf-8"))
PROSE = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]
         if cell["cell_type"] == "markdown"}
SHOWN = {cell["id"]: "".join("".join(output.get("text", "")) for output in cell["outputs"])
         for cell in SOLUTION["cells"] if cell["cell_type"] == "code"}
SEED = 20_240
ONCOLOGY = dict(noise_multiplier=1.15, sampling_rate=0.02)


def verdict(exercise, answer):
    return exercise.check(LocalSubject({exercise.function: answer}), seed=SEED)


def closed_form(q, sigma, steps, delta=1e-5):
    return q * math.sqrt(2 * steps * math.log(1 / delta)) / sigma


# 5.1: the statements


def test_table_of_the_first_task_is_computed():
    rows = re.findall(r"\| q = ([\d.]+), σ = ([\d.]+), T = (\d+) \| ([\d.]+) \| ([\d.]+) \| "
                      r"([\d.]+) to ([\d.]+) \|", PROSE["task-5-1"])
    assert len(rows) == 2
    for row in rows:
        q, sigma, steps, closed, renyi, low, high = map(float, row)
        run = dict(noise_multiplier=sigma, sampling_rate=q, steps=int(steps), delta=1e-5)
        bounds = accounting.epsilon_bounds(**run)
        assert low == math.floor(100 * bounds[0]) / 100
        assert high == math.ceil(100 * bounds[1]) / 100
        assert closed == pytest.approx(closed_form(q, sigma, steps), abs=0.005)
        assert renyi == pytest.approx(accounting.rdp_epsilon(**run), abs=0.005)


def test_statement_b_holds_and_the_others_do_not():
    first = dict(noise_multiplier=4.0, sampling_rate=0.25, steps=400, delta=1e-5)
    second = dict(**ONCOLOGY, steps=500, delta=1e-5)
    assert closed_form(0.02, 1.15, 500) < accounting.epsilon_bounds(**second)[0]  # a
    assert accounting.epsilon_bounds(**first)[1] < closed_form(0.25, 4, 400)  # c: above the truth
    assert closed_form(0.25, 4, 400) < accounting.rdp_epsilon(**first)  # but Renyi is no error
    for run in (first, second):  # d
        assert accounting.epsilon_bounds(**run)[1] < accounting.rdp_epsilon(**run)
    assert ps05.CHOICE.right() == "b"
    reasons = {mistake.name: mistake.message for mistake in ps05.CHOICE.mistakes}
    assert "below 2.11 holds" in reasons["chose-a"] and "below 5.87" in reasons["chose-c"]
    assert accounting.epsilon_bounds(**second)[0] > 2.11
    assert accounting.epsilon_bounds(**first)[1] < 5.87


# 5.2


@pytest.mark.parametrize(("people", "batch", "epochs", "steps", "rate"), [
    (1000, 250, 10, 40, 0.25), (25_000, 500, 30, 1500, 0.02), (25_000, 500, 10, 500, 0.02),
    (60_000, 256, 15, 3516, 256 / 60_000), (40, 7, 21, 120, 7 / 40),
])
def test_steps_of_known_runs(people, batch, epochs, steps, rate):
    for answer in (ps05.steps_and_rate, *ps05.STEPS_AND_RATE.others):
        assert list(answer(people, batch, epochs)) == [steps, pytest.approx(rate)]


def test_float_trap_is_one_and_the_slip_costs_what_the_lesson_says():
    people, batch, epochs = ps05.FLOAT_TRAP
    assert epochs * people % batch == 0
    assert math.ceil(epochs / (batch / people)) == epochs * people // batch + 1
    run = dict(noise_multiplier=4.0, sampling_rate=0.25, delta=1e-5, tolerance=1e-4)
    for steps, said in ((40, "1.65"), (400, "5.86")):
        bounds = accounting.epsilon_bounds(steps=steps, **run)
        assert {f"{bound:.2f}" for bound in bounds} == {said}
        assert said in ps05.STEPS_AND_RATE.lesson


# 5.3


@pytest.mark.parametrize("seed", range(20))
def test_privacy_loss_is_the_log_ratio_of_densities(seed):
    rng = np.random.default_rng(seed)
    sigma, q = rng.uniform(0.5, 3), rng.uniform(0.01, 1)
    x = rng.normal(0.5, 2 * sigma, 50)
    without = stats.norm.pdf(x, 0, sigma)
    with_her = (1 - q) * without + q * stats.norm.pdf(x, 1, sigma)
    loss = ps05.privacy_loss(x, sigma, q, "remove")
    np.testing.assert_allclose(loss, np.log(with_her / without), atol=1e-9)
    np.testing.assert_allclose(loss, sampled((2 * x - 1) / (2 * sigma**2), q), atol=1e-9)
    np.testing.assert_array_equal(ps05.privacy_loss(x, sigma, q, "add"), -loss)
    assert np.all(loss >= math.log1p(-q))  # the lesson


# 5.4 and 5.5


@pytest.mark.parametrize(("order", "sigma", "q"), [
    (2, 2.0, 0.1), (8, 1.0, 0.05), (32, 1.15, 0.02), (200, 0.6, 0.02), (5, 3.0, 0.5),
])
def test_renyi_divergence_is_that_of_the_package(order, sigma, q):
    ours = ps05.renyi_divergence(order, sigma, q)
    assert ours == pytest.approx(
        accounting.rdp(float(order), noise_multiplier=sigma, sampling_rate=q), rel=1e-9)


@pytest.mark.parametrize(("order", "sigma", "q"), [(2, 2.0, 0.1), (8, 1.0, 0.05), (5, 3.0, 0.5)])
def test_renyi_divergence_is_its_integral_and_covers_the_other_direction(order, sigma, q):
    def moment(sign):
        """E_Q[(P/Q)^order], and with sign -1 E_P[(Q/P)^order], of densities P and Q."""
        def integrand(x):
            without = stats.norm.pdf(x, 0, sigma)
            ratio = 1 - q + q * math.exp((2 * x - 1) / (2 * sigma**2))
            return without * (ratio**order if sign > 0 else ratio ** (1 - order))
        return integrate.quad(integrand, -12 * sigma, order + 12 * sigma, limit=400)[0]

    ours = ps05.renyi_divergence(order, sigma, q)
    assert ours == pytest.approx(math.log(moment(1)) / (order - 1), rel=1e-6)
    assert math.log(moment(-1)) / (order - 1) <= ours


def test_lesson_on_high_orders():
    for order, sigma, q in ((200, 0.6, 0.02), (500, 1.15, 0.02), (300, 1.0, 0.1)):
        less = order / (2 * sigma**2) - ps05.renyi_divergence(order, sigma, q)
        assert math.log(1 / q) < less < 1.02 * math.log(1 / q)


def test_best_epsilon_is_that_of_the_package():
    orders = np.linspace(1.01, 60, 4000)
    for sigma, steps in ((1.0, 1), (10.0, 100), (3.0, 5)):  # no sampling
        ours = ps05.best_epsilon(orders, orders / (2 * sigma**2), steps, 1e-5)
        best = accounting.zcdp_epsilon(accounting.zcdp_rho(sigma, steps=steps), 1e-5)
        assert best <= ours == pytest.approx(best, rel=1e-4)
    whole = np.arange(2, 65)
    divergences = np.array([ps05.renyi_divergence(int(order), 1.15, 0.02) for order in whole])
    for steps, published in ((500, 2.362100243396046), (1500, 4.075079855020826)):  # Opacus 1.6.0
        ours = ps05.best_epsilon(whole, divergences, steps, 1e-5)
        best = accounting.rdp_epsilon(**ONCOLOGY, steps=steps, delta=1e-5)
        assert best <= ours == pytest.approx(published, rel=0.02)


def test_some_case_of_best_epsilon_is_cut_at_zero_and_the_best_order_moves():
    cases = ps05.epsilon_cases(np.random.default_rng(SEED))
    answers = [ps05.best_epsilon(**case) for case in cases]
    assert answers.count(0.0) == 1
    orders = np.linspace(1.01, 200, 4000)
    best = [orders[np.argmin(steps * orders / 2e2 + ps05.price(orders, delta))]
            for steps, delta in ((1, 1e-5), (100, 1e-5), (1, 1e-10))]
    assert best[1] < best[0] < best[2]  # the lesson


# 5.6


@pytest.mark.parametrize(("mu", "delta"), [(0.5, 1e-5), (1.0, 1e-5), (1.0, 1e-2), (2.0, 1e-6)])
def test_attacker_stays_below_the_truth_and_finer_cells_reach_further(mu, delta):
    truth = accounting.gaussian_epsilon(mu, delta)
    bounds = []
    for count in (40, 4000):
        edges = np.concatenate([[-np.inf], np.linspace(-8, 8 + mu, count), [np.inf]])
        p, q = (-np.diff(stats.norm.sf(edges - middle)) for middle in (mu, 0))
        bounds.append(ps05.attackers_bound(p, q, delta))
    assert bounds[0] <= bounds[1] <= truth * (1 + 1e-9)
    # A threshold costs delta whole, the hockey stick does not: the attacker proves a little less.
    t = np.linspace(-3, 8, 20_001)
    best = np.log(np.max((stats.norm.sf(t - mu) - delta) / stats.norm.sf(t)))
    assert bounds[1] == pytest.approx(best, rel=1e-3)


def test_with_the_promise_of_its_own_bound_no_region_is_left():
    case = ps05.attack_cases(np.random.default_rng(SEED))[0]
    p, q, delta = case["p"], case["q"], case["delta"]
    bound = ps05.attackers_bound(**case)
    gaps = [p[k:].sum() - math.exp(bound) * q[k:].sum() - delta for k in range(len(p))]
    assert max(gaps) == pytest.approx(0, abs=1e-12)


# 5.7 and 5.8


def hockey_stick(losses, masses, epsilon):
    return np.sum(masses * np.maximum(0, 1 - np.exp(epsilon - losses)))


@pytest.mark.parametrize("seed", range(10))
def test_grid_keeps_both_laws_and_never_promises_too_much(seed):
    rng = np.random.default_rng(seed)
    grid = np.sort(rng.uniform(-2, 3, 12))
    losses, masses = rng.uniform(grid[0], grid[-1], 40), rng.dirichlet(np.ones(40))
    moved = ps05.onto_grid(losses, masses, grid)
    assert np.all(moved >= 0) and moved.sum() == pytest.approx(1)
    assert moved @ np.exp(-grid) == pytest.approx(masses @ np.exp(-losses))
    for epsilon in np.linspace(-2, 3, 101):
        on_grid = hockey_stick(grid, moved, epsilon)
        assert on_grid >= hockey_stick(losses, masses, epsilon) - 1e-12


def test_listed_unsafe_splits_do_promise_too_much_and_safe_ones_do_not():
    wrong = {mistake.name: mistake.wrong for mistake in ps05.ONTO_GRID.mistakes}
    losses, masses, grid = np.array([0.6]), np.array([1.0]), np.array([0.0, 1.0])
    for name in ("rounds-down", "linear-share", "exponent-sign"):
        moved = wrong[name](losses, masses, grid)
        assert hockey_stick(grid, moved, -0.1) < hockey_stick(losses, masses, -0.1), name
    true = hockey_stick(losses, masses, 0.2)
    chords = hockey_stick(grid, ps05.onto_grid(losses, masses, grid), 0.2)
    assert true < chords < hockey_stick(grid, wrong["rounds-up"](losses, masses, grid), 0.2)


def test_error_of_the_grid_falls_with_the_square_of_its_spacing():
    scores = (np.arange(20_000) + 0.5) / 20_000
    losses = 0.5 + special.ndtri(scores)  # plain Gaussian, mu = 1
    excess = []
    for spacing in (0.4, 0.2, 0.1):
        grid = np.arange(-8, 8, spacing) + 0.013
        moved = ps05.onto_grid(losses, np.full(20_000, 1 / 20_000), grid)
        excess.append(np.mean([hockey_stick(grid, moved, e) - hockey_stick(losses, 1 / 20_000, e)
                               for e in np.linspace(0, 2, 41)]))
    assert 3.5 < excess[0] / excess[1] < 4.5 and 3.5 < excess[1] / excess[2] < 4.5


@pytest.mark.parametrize("steps", [1, 2, 7, 20])
def test_composed_delta_of_coins_is_the_binomial_sum(steps):
    coin = np.array([1, np.e]) / (1 + np.e)
    for epsilon in (0.0, 0.5, 1.0, 3.0):
        k = np.arange(steps + 1)
        losses = 2.0 * k - steps
        expected = hockey_stick(losses, stats.binom(steps, coin[1]).pmf(k), epsilon)
        assert ps05.composed_delta(coin, -1.0, 2.0, steps, epsilon) == pytest.approx(expected)
    if steps > 1:
        best, _ = accounting.optimal_composition(1.0, 0.0, count=steps, slack=1e-3)
        assert ps05.composed_delta(coin, -1.0, 2.0, steps, best) == pytest.approx(1e-3)


def test_the_three_exercises_together_bracket_the_truth():
    namespace = verify.run_cells(SOLUTION)
    run = dict(noise_multiplier=2.0, sampling_rate=0.1, steps=20, delta=1e-5)
    low, high = accounting.epsilon_bounds(**run, tolerance=1e-4)
    assert namespace["lower"] < low < high < namespace["upper"] < accounting.rdp_epsilon(**run)
    assert f"proves {namespace['lower']:.3f}" in SHOWN["two-sides"]
    assert f"promises {namespace['upper']:.3f}" in SHOWN["two-sides"]
    assert namespace["upper"] < 1.02 * namespace["lower"]


# Wrong answers that nobody listed

UNLISTED = {
    "5.2": lambda people, batch, epochs: (epochs * (people // batch), batch / people),
    "5.3": lambda x, noise_multiplier, sampling_rate, direction: ps05.privacy_loss(
        x, noise_multiplier / 2, sampling_rate, direction),
    "5.4": lambda order, noise_multiplier, sampling_rate: ps05.renyi_divergence(
        order, noise_multiplier, sampling_rate) * (1 + 1e-6),
    "5.5": lambda orders, divergences, steps, delta: float(
        np.median(steps * divergences + ps05.price(orders, delta))),
    "5.6": lambda p, q, delta: ps05.attackers_bound(p, q, delta / 2),
    "5.7": lambda losses, masses, grid: ps05.onto_grid(losses, masses, grid)[::-1],
    "5.8": lambda masses, low, spacing, steps, epsilon: ps05.composed_delta(
        masses, low + spacing / 2, spacing, steps, epsilon),
}


@pytest.mark.parametrize("exercise", [e for e in ps05.EXERCISES if e.key in UNLISTED],
                         ids=lambda exercise: exercise.key)
def test_unlisted_mistakes_are_refused_without_a_name_and_shown(exercise):
    told = verdict(exercise, UNLISTED[exercise.key])
    assert (told.status, told.mistake) == (WRONG, None)
    assert "it should give" in told.message


def test_answers_may_be_lists_or_arrays_and_whole_numbers_may_be_floats():
    def steps_as_floats(people, batch, epochs):
        return np.array(ps05.steps_and_rate(people, batch, epochs), dtype=float)

    assert verdict(ps05.STEPS_AND_RATE, steps_as_floats).status == RIGHT
    assert verdict(ps05.ONTO_GRID, lambda **case: ps05.onto_grid(**case).tolist()).status == RIGHT
    assert verdict(ps05.COMPOSED, lambda **case: np.array([ps05.composed_delta(**case)])
                   ).status == WRONG


# What a learner reads


def test_examples_in_the_tasks_are_true():
    assert tried_examples(SOLUTION, PROSE) == 17


def test_reply_to_the_colleague_has_its_numbers_right():
    reply, rubric = PROSE["answer-5-9"], ps05.REPORT.rubric
    run = dict(**ONCOLOGY, steps=1500)
    bounds = accounting.epsilon_bounds(**run, delta=1e-5, tolerance=1e-4)
    assert {f"{bound:.2f}" for bound in bounds} == {"3.72"}
    assert "smallest ε is 3.72" in reply and "3.72" in rubric
    assert f"{accounting.rdp_epsilon(**run, delta=1e-5):.2f}" == "4.08"
    assert "Rényi's bound is 4.08" in reply and "4.08" in rubric
    assert f"{closed_form(0.02, 1.15, 1500):.2f}" == "3.23"
    low, high = accounting.delta_bounds(**run, epsilon=3.23)
    assert f"{low:.1e}" == f"{high:.1e}" == "8.1e-05" and "a δ of 8.1e-5, eight times" in reply
    assert 30.85 < accounting.gaussian_epsilon(math.sqrt(30) / 1.15, 1e-5) < 30.95
    assert "ε = 30.9" in reply and "epsilon 31" in rubric
    for sigma, enough in ((1.26, True), (1.25, False)):
        bounds = accounting.epsilon_bounds(
            noise_multiplier=sigma, sampling_rate=0.02, steps=1500, delta=1e-5)
        assert (bounds[1] <= 3.23, bounds[0] > 3.23) == (enough, not enough)
    assert f"{1 - (1 - 1e-5) ** 25_000:.0%}" == "22%" and "chance 22%" in reply
    assert (1 / 25_000) / 1e-5 == pytest.approx(4) and 25_000 * 1e-5 == pytest.approx(0.25)


def test_afterword_works_with_the_learners_own_functions():
    cells = {cell["id"]: "".join(cell["source"]) for cell in SOLUTION["cells"]}
    assert cells["two-sides"].count("ours.") == 3
    assert "delete `ours.` three times" in PROSE["bounds-intro"]
    namespace = verify.run_cells(SOLUTION)
    before = namespace["lower"], namespace["upper"]
    exec(cells["two-sides"].replace("ours.", ""), namespace)
    assert (namespace["lower"], namespace["upper"]) == pytest.approx(before, rel=1e-9)
