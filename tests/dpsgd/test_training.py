"""What DP-SGD must do, asked of `train_dp_sgd`, of a slow loop, and of the loop with mistakes.

Random properties are tested as distributions; each false alarm has a probability of 1e-9 or less.
"""

import functools
import math
import os
import subprocess
import sys

import numpy as np
import plain
import pytest
import torch
from scipy import stats

from coursekit.accounting import epsilon_bounds
from coursekit.dpsgd import logistic_regression, mlp, poisson_batch, small_cnn, train_dp_sgd

ALARM = 1e-9


def vector(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()]).numpy()


def no_gradient(outputs, y):
    return outputs.sum(1) * 0


def first_score(outputs, y):
    return outputs[:, 0]


def walk(train, steps, seed=5):
    """Return the movement of all parameters in units of one step's noise, gradients being zero."""
    model = logistic_regression(99, 20, seed=0)
    setting = dict(noise_multiplier=1.7, max_grad_norm=0.25, sampling_rate=0.5, learning_rate=0.3)
    X, y = np.ones((40, 99)), np.zeros(40, int)
    trained = train(model, X, y, steps=steps, seed=seed, loss=no_gradient, **setting)[0]
    return (vector(trained) - vector(model)) / (0.3 * 1.7 * 0.25 / 20)


def noise_has_its_scale(train):
    z = walk(train, steps=1)
    assert ALARM / 2 < stats.chi2.cdf(z @ z, len(z)) < 1 - ALARM / 2


def noise_is_fresh_in_each_step(train):
    z = walk(train, steps=9) / 3
    assert ALARM / 2 < stats.chi2.cdf(z @ z, len(z)) < 1 - ALARM / 2


def coordinates_are_independent(train):
    z = walk(train, steps=1)
    assert abs(z.sum()) / math.sqrt(len(z)) < stats.norm.isf(ALARM / 2)
    lagged = z[1:] @ z[:-1] / np.linalg.norm(z) ** 2 * math.sqrt(len(z))
    assert abs(lagged) < 2 * stats.norm.isf(ALARM / 2)


def batches_are_poisson(train):
    model, X = logistic_regression(1, 2, seed=0), np.zeros((12, 1))
    setting = dict(noise_multiplier=0, max_grad_norm=1.0, sampling_rate=0.2, learning_rate=1.0)
    steps = 1500
    history = train(model, X, np.zeros(12, int), steps=steps, seed=3, **setting)[1]
    share = np.searchsorted(np.sort(history["batch_size"]), np.arange(13), side="right") / steps
    far = np.abs(share - stats.binom.cdf(np.arange(13), 12, 0.2)).max()
    assert far < math.sqrt(math.log(2 / ALARM) / (2 * steps))  # Dvoretzky-Kiefer-Wolfowitz


def sums_are_divided_by_the_expected_size(train):
    model, X = logistic_regression(1, 2, seed=0), np.zeros((10, 1))
    setting = dict(noise_multiplier=0, max_grad_norm=1.0, sampling_rate=0.3, learning_rate=0.6)
    for seed in range(20):  # every record's gradient is 1 in one bias, 0 elsewhere
        run = train(model, X, np.zeros(10), steps=1, seed=seed, loss=first_score, **setting)
        moved = vector(model) - vector(run[0])
        expected = [0, 0, 0.6 * run[1]["batch_size"][0] / 3, 0]
        np.testing.assert_allclose(moved, expected, atol=1e-12)


def one_record_moves_the_sum_by_at_most_the_bound(train):
    rng, C = np.random.default_rng(8), 0.7
    model, X, y = mlp([5, 4, 3], seed=1), rng.normal(size=(6, 5)) * 9, rng.integers(0, 3, 6)
    setting = dict(noise_multiplier=0, max_grad_norm=C, sampling_rate=1.0, learning_rate=1.0)

    def summed(X, y):
        run = train(model, X, y, steps=1, seed=0, expected_batch_size=4.0, **setting)
        return (vector(model) - vector(run[0])) * 4

    whole = summed(X, y)
    for i in range(6):
        other = X.copy()
        other[i] *= -3
        assert np.linalg.norm(whole - summed(np.delete(X, i, 0), np.delete(y, i))) < C + 1e-12
        assert np.linalg.norm(whole - summed(other, y)) < 2 * C + 1e-12


def clipping_is_as_defined(train):
    rng = np.random.default_rng(2)
    model, X, y = mlp([4, 6, 3], seed=1), rng.normal(size=(9, 4)), rng.integers(0, 3, 9)
    rows = plain.gradients(model, torch.from_numpy(X), torch.from_numpy(y), plain.cross_entropy)
    C = float(rows.norm(dim=1).median())  # cuts about half of them
    run = train(
        model,
        X,
        y,
        noise_multiplier=0,
        max_grad_norm=C,
        sampling_rate=1.0,
        steps=1,
        learning_rate=1.0,
        seed=0,
    )
    expected = plain.clipped(rows, C).mean(0).numpy()
    np.testing.assert_allclose(vector(model) - vector(run[0]), expected, atol=1e-14)


PROPERTIES = (
    noise_has_its_scale,
    noise_is_fresh_in_each_step,
    coordinates_are_independent,
    batches_are_poisson,
    sums_are_divided_by_the_expected_size,
    one_record_moves_the_sum_by_at_most_the_bound,
    clipping_is_as_defined,
)
CAUGHT_BY = {
    "clip after averaging": one_record_moves_the_sum_by_at_most_the_bound,
    "noise not scaled by C": noise_has_its_scale,
    "one scalar noise for all coordinates": coordinates_are_independent,
    "noise reused": noise_is_fresh_in_each_step,
    "realised batch size": sums_are_divided_by_the_expected_size,
    "fixed-size batches": batches_are_poisson,
    "microbatch clipping": clipping_is_as_defined,
    "each coordinate clipped": one_record_moves_the_sum_by_at_most_the_bound,
    "noise on the mean": noise_has_its_scale,
    "variance for deviation": noise_has_its_scale,
    "no clipping": one_record_moves_the_sum_by_at_most_the_bound,
}


@pytest.mark.parametrize("holds", PROPERTIES, ids=lambda holds: holds.__name__)
@pytest.mark.parametrize("train", [train_dp_sgd, plain.train], ids=["coursekit", "plain loop"])
def test_property(holds, train):
    holds(train)


@pytest.mark.parametrize("mistake", plain.MISTAKES)
def test_mistake_is_caught(mistake):
    with pytest.raises(AssertionError):
        CAUGHT_BY[mistake](functools.partial(plain.train, mistake=mistake))


MODELS = {
    "logistic regression": lambda: logistic_regression(16, 3, seed=4),
    "ReLU network": lambda: mlp([16, 8, 3], seed=4),
    "tanh network": lambda: mlp([16, 8, 3], seed=4, activation="tanh"),
    "CNN": lambda: small_cnn(4, 3, seed=4, channels=(2, 3)),
}
RECORDS = (
    np.random.default_rng(0).normal(size=(20, 16)),
    np.random.default_rng(1).integers(0, 3, 20),
)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "adam"])
def test_without_noise_clipping_and_sampling_it_is_gradient_descent(name, optimiser):
    model, (X, y) = MODELS[name](), RECORDS
    run = train_dp_sgd(
        model,
        X,
        y,
        noise_multiplier=0,
        max_grad_norm=math.inf,
        sampling_rate=1,
        steps=7,
        learning_rate=0.05,
        seed=0,
        optimiser=optimiser,
    )
    other, X, y = MODELS[name](), torch.from_numpy(X), torch.from_numpy(y)
    make = {
        "sgd": functools.partial(torch.optim.SGD, lr=0.05),
        "momentum": functools.partial(torch.optim.SGD, lr=0.05, momentum=0.9),
        "adam": functools.partial(torch.optim.Adam, lr=0.05),
    }
    descent = make[optimiser](other.parameters())
    for _ in range(7):
        descent.zero_grad()
        torch.nn.functional.cross_entropy(other(X), y).backward()
        descent.step()
    np.testing.assert_allclose(vector(run.model), vector(other), rtol=1e-9, atol=1e-11)
    assert run.ledger.epsilon(1e-5) == math.inf


@pytest.mark.parametrize("name", MODELS)
def test_many_steps_equal_the_plain_loop(name):
    (X, y), C = RECORDS, 0.8
    setting = dict(noise_multiplier=0, max_grad_norm=C, sampling_rate=1.0, steps=12, seed=0)
    run = train_dp_sgd(MODELS[name](), X, y, learning_rate=0.5, **setting)
    slow = plain.train(MODELS[name](), X, y, learning_rate=0.5, **setting)
    np.testing.assert_allclose(vector(run.model), vector(slow[0]), rtol=1e-9, atol=1e-11)


def test_float32_noise_has_its_scale_too():
    model = logistic_regression(999, 20, seed=0, dtype=torch.float32)
    X, y = np.ones((40, 999)), np.zeros(40, int)
    run = train_dp_sgd(
        model,
        X,
        y,
        noise_multiplier=1.7,
        max_grad_norm=0.25,
        sampling_rate=0.5,
        steps=9,
        learning_rate=0.3,
        seed=1,
        loss=no_gradient,
    )
    z = (vector(run.model).astype(float) - vector(model)) / (0.3 * 1.7 * 0.25 / 20) / 3
    assert ALARM / 2 < stats.chi2.cdf(z @ z, len(z)) < 1 - ALARM / 2
    assert abs(z.sum()) / math.sqrt(len(z)) < stats.norm.isf(ALARM / 2)


def test_empty_batches_get_noise_only():
    model = logistic_regression(3, 2, seed=0)
    run = train_dp_sgd(
        model,
        np.ones((5, 3)),
        np.zeros(5, int),
        noise_multiplier=1.0,
        steps=40,
        max_grad_norm=1.0,
        sampling_rate=1e-6,
        learning_rate=1e-6,
        seed=0,
    )
    assert not run.history["batch_size"].any() and np.isnan(run.history["loss"]).all()
    assert (vector(run.model) != vector(model)).all()


def test_each_record_enters_by_itself():
    rng, draws = np.random.default_rng(4), 4000
    entered = np.zeros((draws, 6), bool)
    for row in entered:
        row[poisson_batch(6, 0.3, rng)] = True
    far = stats.norm.isf(1e-10) * 1.05  # margin for the binomial's tail
    alone = (entered.sum(0) - 0.3 * draws) / math.sqrt(0.21 * draws)
    assert np.abs(alone).max() < far
    together = (entered.T.astype(int) @ entered)[np.triu_indices(6, 1)]
    assert np.abs((together - 0.09 * draws) / math.sqrt(0.09 * 0.91 * draws)).max() < far
    assert len(poisson_batch(0, 0.3, rng)) == 0


def test_ledger_is_the_accountants():
    X, y = RECORDS
    setting = dict(noise_multiplier=1.3, sampling_rate=0.1, steps=30)
    run = train_dp_sgd(
        MODELS["CNN"](), X, y, max_grad_norm=1.0, learning_rate=0.1, seed=0, **setting
    )
    assert run.ledger.bounds(1e-6) == epsilon_bounds(delta=1e-6, **setting)


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
@pytest.mark.parametrize(("rate", "steps"), [(0.05, 200), (0.5, 20), (1.0, 3)])
def test_target_is_met_and_not_by_much(epsilon, rate, steps):
    X, y = RECORDS
    run = train_dp_sgd(
        MODELS["logistic regression"](),
        X,
        y,
        epsilon=epsilon,
        delta=1e-5,
        seed=0,
        sampling_rate=rate,
        steps=steps,
        max_grad_norm=1.0,
        learning_rate=0.1,
    )
    assert 0.995 * epsilon < run.ledger.epsilon(1e-5) <= epsilon


def test_same_seed_same_model_and_the_given_one_is_left_alone():
    (X, y), model = RECORDS, MODELS["CNN"]()
    before, random_state = vector(model).copy(), torch.random.get_rng_state()
    setting = dict(noise_multiplier=1.0, max_grad_norm=1.0, sampling_rate=0.5, steps=5)
    runs = [train_dp_sgd(model, X, y, learning_rate=0.5, seed=s, **setting) for s in (1, 1, 2)]
    first, again, other = (vector(run.model) for run in runs)
    assert (first == again).all() and (first != other).any()
    assert (vector(model) == before).all()
    assert (torch.random.get_rng_state() == random_state).all()
    assert not any(layer._forward_hooks for layer in runs[0].model.modules())


def test_history_says_what_happened():
    X, y = RECORDS
    model = MODELS["ReLU network"]()
    rows = plain.gradients(model, *map(torch.from_numpy, RECORDS), plain.cross_entropy)
    C = float(rows.norm(dim=1).median())
    run = train_dp_sgd(
        model,
        X,
        y,
        noise_multiplier=1.0,
        max_grad_norm=C,
        sampling_rate=1.0,
        steps=1,
        learning_rate=0.1,
        seed=0,
    )
    assert run.history["batch_size"] == [20]
    assert run.history["clipped"] == float((rows.norm(dim=1) > C).double().mean())
    loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(X)), torch.from_numpy(y))
    assert run.history["loss"][0] == pytest.approx(float(loss.detach()))


SLOW = """
import numpy as np
from coursekit.dpsgd import logistic_regression, training
training.SILENT = {silent}
training.train_dp_sgd(logistic_regression(2, 2, seed=0), np.eye(2), [0, 1], noise_multiplier=1.0,
                      max_grad_norm=1.0, sampling_rate=0.5, steps=200, learning_rate=0.1, seed=0)
"""


@pytest.mark.parametrize(("silent", "shown"), [(0, True), (5, False)])
def test_a_progress_bar_appears_in_long_runs_only(silent, shown):
    environment = {name: value for name, value in os.environ.items() if name != "TQDM_DISABLE"}
    command = [sys.executable, "-c", SLOW.format(silent=silent)]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0 and ("DP-SGD:" in run.stderr) == shown
    assert shown or not run.stderr
