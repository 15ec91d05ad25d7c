"""Stacked networks equal networks trained alone in plain PyTorch, wherever the blocks run."""

import math
import pickle

import joblib
import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn.functional import cross_entropy

from coursekit.ensemble import Batch, ReluNets, paired_membership, train_ensemble

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(30, 5)), RNG.integers(0, 3, 30)
MEMBERS = paired_membership(20, 30, rng=np.random.default_rng(1))
GOOD = dict(hidden=[8], epochs=3, batch_size=4, learning_rate=0.1, seed=0)


def mean_loss(logits, batch):
    losses = cross_entropy(logits.flatten(0, 1), batch.y.flatten(), reduction="none")
    return losses.view(batch.y.shape).mean(1)


class Seen:
    """A loss that keeps the batches it is given."""

    def __init__(self):
        self.batches = []

    def __call__(self, logits, batch):
        self.batches.append(batch)
        return mean_loss(logits, batch)


def replayed(model, batches, position, optimiser, weight_decay, learning_rate):
    """Train one plain network on the batches that network `position` of a block saw."""
    kinds = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam,
             "momentum": lambda *a, **k: torch.optim.SGD(*a, momentum=0.9, **k)}
    optimiser = kinds[optimiser](model.parameters(), lr=learning_rate, weight_decay=weight_decay)
    for batch in batches:
        rows = batch.records[position]
        optimiser.zero_grad()
        inputs = torch.from_numpy(X[rows]).to(next(model.parameters()).dtype)
        cross_entropy(model(inputs), torch.from_numpy(Y[rows])).backward()
        optimiser.step()
    return model


@pytest.mark.parametrize("optimiser", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.03])
@pytest.mark.parametrize("hidden", [[], [8], [7, 6]])
def test_each_network_equals_one_trained_alone_in_plain_pytorch(optimiser, weight_decay, hidden):
    setting = {**GOOD, "hidden": hidden, "optimiser": optimiser, "weight_decay": weight_decay}
    start, seen = train_ensemble(X, Y, MEMBERS, **{**setting, "epochs": 0}), Seen()
    train_ensemble(X, Y, MEMBERS, loss=seen, **setting)
    end = train_ensemble(X, Y, MEMBERS, **setting)
    for i in (0, 1, 15, 16, 19):
        batches = [batch for batch in seen.batches if i in batch.models]
        plain = replayed(start.model(i), batches, i % 16, optimiser, weight_decay, 0.1)
        expected = plain(torch.from_numpy(X)).detach()
        np.testing.assert_allclose(end.logits(X)[i], expected, rtol=1e-9, atol=1e-10)
        assert np.abs(end.logits(X)[i] - start.logits(X)[i]).max() > 0.1


def test_float32_equals_plain_pytorch_to_its_rounding():
    setting, seen = {**GOOD, "dtype": torch.float32}, Seen()
    start = train_ensemble(X, Y, MEMBERS, **{**setting, "epochs": 0})
    train_ensemble(X, Y, MEMBERS, loss=seen, **setting)
    logits = train_ensemble(X, Y, MEMBERS, **setting).logits(X)
    assert logits.dtype == np.float32
    batches = [batch for batch in seen.batches if 3 in batch.models]
    plain = replayed(start.model(3), batches, 3, "momentum", 0, 0.1)
    expected = plain(torch.from_numpy(X).float()).detach()
    np.testing.assert_allclose(logits[3], expected, rtol=1e-4, atol=1e-4)


def test_a_loss_gets_what_it_needs_and_replaces_cross_entropy():
    seen = Seen()
    by_loss = train_ensemble(X, Y, MEMBERS, loss=seen, **GOOD).logits(X)
    np.testing.assert_allclose(by_loss, train_ensemble(X, Y, MEMBERS, **GOOD).logits(X), rtol=1e-9)
    first = seen.batches[0]
    assert isinstance(first, Batch) and first.models == range(16) and first.epoch == 0
    assert seen.batches[-1].models == range(16, 20) and seen.batches[-1].epoch == 2
    np.testing.assert_array_equal(first.y, Y[first.records])
    assert first.nets.forward(torch.from_numpy(X)[None])[-1].shape == (16, 30, 3)

    def flat(logits, batch):  # nothing to learn
        return 0.0 * logits.sum((1, 2))

    start = train_ensemble(X, Y, MEMBERS, **{**GOOD, "epochs": 0}).logits(X)
    np.testing.assert_array_equal(train_ensemble(X, Y, MEMBERS, loss=flat, **GOOD).logits(X), start)


def test_each_epoch_goes_once_through_each_networks_own_records():
    seen = Seen()
    train_ensemble(X, Y, MEMBERS, loss=seen, **GOOD)
    orders = []
    for epoch in range(3):
        steps = [b.records for b in seen.batches if b.epoch == epoch and b.models == range(16)]
        assert [step.shape[1] for step in steps] == [4, 4, 4, 3]
        orders.append(torch.cat(steps, dim=1).numpy())
        for i, order in enumerate(orders[-1]):
            np.testing.assert_array_equal(np.sort(order), np.flatnonzero(MEMBERS[i]))
    assert len({tuple(row) for rows in orders for row in rows}) == 48


def test_orders_are_even():
    """The record that comes first, over 500 models: chi-squared; a wrong alarm in 1e9."""
    seen, members = Seen(), np.ones((500, 5), bool)
    train_ensemble(X[:5], Y[:5], members, loss=seen, **{**GOOD, "epochs": 1, "batch_size": 1})
    firsts = np.concatenate([b.records[:, 0] for b in seen.batches[::5]])
    assert len(firsts) == 500
    assert stats.chisquare(np.bincount(firsts, minlength=5)).pvalue > 1e-9


def test_first_weights_are_even_and_drawn_apart():
    """Kolmogorov-Smirnov and correlation, 1e-9 each."""
    nets = train_ensemble(X, Y, MEMBERS, **{**GOOD, "hidden": [50], "epochs": 0}).blocks[0]
    first = nets.layers[0][0].flatten(1).numpy() * math.sqrt(5)
    assert stats.kstest(first.ravel(), stats.uniform(-1, 2).cdf).pvalue > 1e-9
    second = nets.layers[1][0].numpy().ravel() * math.sqrt(50)
    assert stats.kstest(second, stats.uniform(-1, 2).cdf).pvalue > 1e-9
    between = np.corrcoef(first)[np.triu_indices(16, 1)] * math.sqrt(first.shape[1])
    assert np.abs(between).max() < 1.2 * stats.norm.isf(1e-9 / 240)


def test_a_network_depends_on_its_own_records_only():
    first = train_ensemble(X, Y, MEMBERS, **GOOD).logits(X)
    changed = X + 5.0 * ~MEMBERS[3][:, None]
    second = train_ensemble(changed, Y, MEMBERS, **GOOD).logits(X)
    np.testing.assert_array_equal(first[3], second[3])
    assert (np.abs(first - second).max(axis=(1, 2)) > 0).sum() == 19


def test_threads_and_more_networks_change_no_bit():
    one = train_ensemble(X, Y, MEMBERS, **GOOD).logits(X)
    np.testing.assert_array_equal(one, train_ensemble(X, Y, MEMBERS, jobs=2, **GOOD).logits(X))
    for count in (1, 5, 16, 17):
        fewer = train_ensemble(X, Y, MEMBERS[:count], **GOOD)
        assert len(fewer) == count
        np.testing.assert_array_equal(one[:count], fewer.logits(X))
    other = train_ensemble(X, Y, MEMBERS, **{**GOOD, "seed": 1}).logits(X)
    assert np.abs(one - other).max(axis=(1, 2)).min() > 0


def test_intra_op_threads_change_nothing_and_are_put_back():
    one, before = train_ensemble(X, Y, MEMBERS, **GOOD).logits(X), torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        np.testing.assert_array_equal(one, train_ensemble(X, Y, MEMBERS, **GOOD).logits(X))
        assert torch.get_num_threads() == 3
        with pytest.raises(FloatingPointError):
            train_ensemble(X, Y, MEMBERS, **{**GOOD, "learning_rate": 1e200})
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_training_and_logits_take_one_intra_op_thread(monkeypatch):
    forward, seen = ReluNets.forward, []
    monkeypatch.setattr(ReluNets, "forward", lambda nets, X: (
        seen.append(torch.get_num_threads()), forward(nets, X))[1])  # fmt: skip
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        ensemble = train_ensemble(X, Y, MEMBERS, **GOOD)
        trained = len(seen)
        ensemble.logits(X)
    finally:
        torch.set_num_threads(before)
    assert len(seen) > trained > 0 and set(seen) == {1}


def test_the_same_from_other_processes():
    one = train_ensemble(X, Y, MEMBERS, **GOOD)
    with joblib.parallel_config("loky", n_jobs=2):
        other = train_ensemble(X, Y, MEMBERS, **GOOD)
    np.testing.assert_array_equal(one.logits(X), other.logits(X))
    size = len(pickle.dumps(one.blocks[0]))
    assert size < 1.2 * one.blocks[0].parameters.nbytes + 2000  # sent once, not once a layer


@pytest.mark.filterwarnings("default")
def test_the_same_from_a_dask_cluster():
    distributed = pytest.importorskip("distributed")
    one = train_ensemble(X, Y, MEMBERS, **GOOD).logits(X)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True,
                                 dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
        joblib.parallel_config("dask"),
    ):
        other = train_ensemble(X, Y, MEMBERS, **GOOD).logits(X)
        tasks = client.run(lambda dask_worker: dask_worker.state.transition_counter)
    np.testing.assert_array_equal(one, other)
    assert len(tasks) == 2 and any(tasks.values())


def test_logits_and_models_agree_over_blocks_and_chunks():
    ensemble, many = train_ensemble(X, Y, MEMBERS, **GOOD), RNG.normal(size=(1100, 5))
    before = many.copy()
    logits = ensemble.logits(many)
    assert logits.shape == (20, 1100, 3) and logits.dtype == np.float64
    for i in (0, 15, 16, -1):
        model = ensemble.model(i)
        np.testing.assert_allclose(logits[i], model(torch.from_numpy(many)).detach(), rtol=1e-11)
        with torch.no_grad():
            model[0].weight.zero_()  # a copy: the ensemble keeps its own
    np.testing.assert_array_equal(ensemble.logits(many), logits)
    np.testing.assert_array_equal(many, before)
    assert ensemble.logits(np.zeros((0, 5))).shape == (20, 0, 3)
    with pytest.raises(IndexError):
        ensemble.model(20)
    with pytest.raises(ValueError, match=r"X must have 5 features, got shape \(3, 4\)"):
        ensemble.logits(np.zeros((3, 4)))


def test_pairs_are_complementary_halves_and_even():
    members = paired_membership(4000, 6, rng=np.random.default_rng(2))
    np.testing.assert_array_equal(members[::2], ~members[1::2])
    np.testing.assert_array_equal(members.sum(axis=1), 3)
    halves = (members[::2] @ (1 << np.arange(6))).astype(int)
    counts = np.unique(halves, return_counts=True)[1]
    assert len(counts) == 20 and stats.chisquare(counts).pvalue > 1e-9


@pytest.mark.parametrize(
    ("models", "records", "sentence"),
    [(3, 4, "models must be even, for pairs of halves, got 3"), (4, 5, "records must be even"),
     (0, 4, "models must be a whole number of at least 2"), (4, 2.0, "records must be a whole")],
)  # fmt: skip
def test_bad_pairs_are_refused(models, records, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        paired_membership(models, records, rng=np.random.default_rng(0))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"membership": MEMBERS[:, :5]}, r"for \(models, 30 records\), got shape \(20, 5\)"),
        ({"membership": MEMBERS * 2}, "True or False"),
        ({"membership": np.triu(np.ones((30, 30)))}, "same number of records, .* from 1 to 30"),
        ({"membership": np.zeros((0, 30))}, "at least 1"),
        ({"hidden": "8"}, "hidden must be a list of sizes"),
        ({"hidden": [0]}, "each of hidden must be"),
        ({"epochs": -1}, "epochs must be"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"weight_decay": -1}, "weight_decay must be"),
        ({"optimiser": "rmsprop"}, "optimiser must be one of 'sgd', 'momentum', 'adam'"),
        ({"seed": -1}, "seed must be"),
        ({"jobs": 0}, "jobs must be"),
        ({"dtype": torch.float16}, "dtype must be torch.float64 or torch.float32"),
        ({"y": Y - 1}, "y must hold one class"),
        ({"y": Y[:, None]}, "y must hold one class"),
        ({"y": []}, "got 30 and 0"),
        ({"y": Y + 0.5}, "whole numbers"),
        ({"y": Y * np.nan}, "finite numbers"),
        ({"X": X[0]}, r"X must have shape \(records, features\)"),
        ({"X": X * np.inf}, "finite numbers"),
        ({"loss": lambda logits, batch: logits.sum()}, r"each of 16 networks, got shape \(\)"),
        ({"loss": lambda logits, batch: 1.0}, "one loss for each of 16 networks"),
        ({"learning_rate": 1e200}, "training diverged: try a smaller learning_rate"),
    ],
)
def test_bad_input_is_refused(changed, sentence):
    arguments = {"X": X, "y": Y, "membership": MEMBERS, **GOOD, **changed}
    with pytest.raises((ValueError, TypeError, FloatingPointError), match=sentence):
        train_ensemble(**arguments)
