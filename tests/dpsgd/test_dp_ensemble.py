"""Many networks at once: each equals the same network trained alone, and keeps its own promise."""

import math
from itertools import pairwise

import numpy as np
import plain
import pytest
import torch
from scipy import stats

from coursekit.accounting import epsilon_bounds
from coursekit.dpsgd import mlp, train_dp_ensemble
from coursekit.dpsgd.by_hand import ClippedNets

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 5)), RNG.integers(0, 3, 12)
HALVES = np.array([RNG.permutation(12) < 6 for _ in range(20)])
GOOD = dict(hidden=[4], noise_multiplier=1.0, max_grad_norm=1.0, sampling_rate=0.5, steps=3,
            learning_rate=0.2, seed=0)  # fmt: skip


def as_model(nets, i):
    widths = [nets.layers[0][0].shape[2]] + [weight.shape[1] for weight, _ in nets.layers]
    model = mlp(widths, seed=0)
    for layer, (weight, bias) in zip(model[::2], nets.layers, strict=True):
        layer.weight.data.copy_(weight[i])
        layer.bias.data.copy_(bias[i, 0])
    return model


@pytest.mark.parametrize("widths", [[5, 3], [5, 4, 3], [5, 4, 6, 3]])
@pytest.mark.parametrize("C", [math.inf, 0.4])
def test_clipped_sums_equal_the_plain_ones(widths, C):
    size = sum((a + 1) * b for a, b in pairwise(widths))
    parameters = torch.from_numpy(RNG.normal(size=7 * size))
    nets = ClippedNets(7, widths, parameters, torch.zeros_like(parameters))
    rows = torch.from_numpy(np.stack([RNG.permutation(12)[:8] for _ in range(7)]))
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    norms, losses = nets.clipped_sum(x[rows], y[rows], C)
    for i in range(7):
        model = as_model(nets, i)
        gradients = plain.gradients(model, x[rows[i]], y[rows[i]], plain.cross_entropy)
        np.testing.assert_allclose(norms[i], gradients.norm(dim=1), rtol=1e-12, atol=1e-12)
        found = torch.cat([p[i].flatten() for pair in nets.sums for p in pair])
        np.testing.assert_allclose(found, plain.clipped(gradients, C).sum(0), atol=1e-13)
        expected = plain.cross_entropy(model(x[rows[i]]), y[rows[i]])
        np.testing.assert_allclose(losses[i], expected.detach(), rtol=1e-12)


def test_each_network_learns_from_its_own_records_only():
    setting = {**GOOD, "noise_multiplier": 0, "sampling_rate": 1.0, "steps": 4}
    first = train_dp_ensemble(X, Y, HALVES, **setting).logits(X)
    changed = X + 5.0 * ~HALVES[3][:, None]  # records that network 3 may not use
    second = train_dp_ensemble(changed, Y, HALVES, **setting).logits(X)
    np.testing.assert_array_equal(first[3], second[3])
    assert (np.abs(first - second).max(axis=(1, 2)) > 0).sum() >= 15


def test_full_batches_equal_the_plain_loop():
    setting = dict(noise_multiplier=0, max_grad_norm=0.7, sampling_rate=1.0, learning_rate=0.3)
    start = train_dp_ensemble(X, Y, HALVES, hidden=[4], seed=1, steps=1,
                              **{**setting, "learning_rate": 1e-300})  # fmt: skip
    end = train_dp_ensemble(X, Y, HALVES, hidden=[4], seed=1, steps=5, **setting)
    for i in (0, 7, 19):
        model = as_model(start.blocks[i // 16], i % 16)
        slow, *_ = plain.train(model, X[HALVES[i]], Y[HALVES[i]], steps=5, seed=0, **setting)
        np.testing.assert_allclose(end.logits(X)[i], slow(torch.from_numpy(X)).detach(), rtol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_noise_is_independent_over_networks_and_steps(dtype):
    x, member = np.zeros((2, 1)), np.ones((20, 2), bool)
    y = np.array([0, 1])
    setting = dict(hidden=[300], max_grad_norm=1e-9, sampling_rate=0.5, learning_rate=1.0, seed=2)
    setting |= dict(dtype=dtype, noise_multiplier=1e6)
    start = train_dp_ensemble(x, y, member, steps=1, **{**setting, "learning_rate": 1e-30})
    end = train_dp_ensemble(x, y, member, steps=4, **setting)
    moved = []
    for a, b in zip(start.blocks, end.blocks, strict=True):
        per_net = [(q - p).flatten(1).double() for (w, v), (s, t) in
                   zip(a.layers, b.layers, strict=True) for p, q in ((w, s), (v, t))]  # fmt: skip
        moved.append(torch.cat(per_net, dim=1).numpy())
    z = np.concatenate(moved) / 1e-3 / 2  # four steps; divided by an expected batch of 1
    size = z.shape[1]
    assert 1e-10 < stats.chi2.cdf((z * z).sum(), z.size) < 1 - 1e-10
    between = (z @ z.T)[np.triu_indices(20, 1)] / math.sqrt(size)
    assert np.abs(between).max() < 1.2 * stats.norm.isf(1e-9 / 380)  # margin for products' tails


def test_batches_are_poisson():
    x, y, member, sizes = np.zeros((12, 1)), np.zeros(12, int), np.ones((2, 12), bool), []
    setting = dict(hidden=[], noise_multiplier=0, max_grad_norm=1e-3, sampling_rate=0.25, steps=1)
    for seed in range(300):  # every clipped gradient is the same, so the move counts the batch
        runs = [train_dp_ensemble(x, y, member, seed=seed, learning_rate=rate, **setting)
                for rate in (1e-30, 1.0)]
        move = (runs[1].logits(x) - runs[0].logits(x))[:, 0, 0] * 3 / 1e-3 * math.sqrt(2)
        np.testing.assert_allclose(move, np.rint(move), atol=1e-6)
        sizes.append(np.rint(move[0]))
    share = np.searchsorted(np.sort(sizes), np.arange(13), side="right") / 300
    far = np.abs(share - stats.binom.cdf(np.arange(13), 12, 0.25)).max()
    assert far < math.sqrt(math.log(2 / 1e-9) / 600)  # Dvoretzky-Kiefer-Wolfowitz


def test_threads_and_blocks_change_nothing():
    one = train_dp_ensemble(X, Y, HALVES, **GOOD).logits(X)
    np.testing.assert_array_equal(one, train_dp_ensemble(X, Y, HALVES, jobs=2, **GOOD).logits(X))
    first = train_dp_ensemble(X, Y, HALVES[:16], **GOOD).logits(X)
    np.testing.assert_array_equal(one[:16], first)
    threads = torch.get_num_threads()
    assert train_dp_ensemble(X, Y, HALVES, **GOOD).ledger and torch.get_num_threads() == threads


def test_ledger_and_target():
    known = dict(noise_multiplier=1.0, sampling_rate=0.5, steps=3, delta=1e-5)
    assert train_dp_ensemble(X, Y, HALVES, **GOOD).ledger.bounds(1e-5) == epsilon_bounds(**known)
    target = {**GOOD, "noise_multiplier": None, "epsilon": 2.0, "delta": 1e-5}
    assert 1.99 < train_dp_ensemble(X, Y, HALVES, **target).ledger.epsilon(1e-5) <= 2.0


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"membership": HALVES[:, :5]}, r"for \(models, 12 records\), got shape \(20, 5\)"),
        ({"membership": HALVES[0]}, r"got shape \(12,\)"),
        ({"membership": HALVES * 2}, "True or False"),
        ({"membership": np.triu(np.ones((12, 12)))}, "same number of records, .* from 1 to 12"),
        ({"membership": np.zeros((3, 12))}, "at least 1; got from 0 to 0"),
        ({"membership": np.zeros((0, 12))}, "at least 1"),
        ({"hidden": "4"}, "hidden must be a list of sizes"),
        ({"hidden": [0]}, "each of hidden must be"),
        ({"jobs": 0}, "jobs must be"),
        ({"optimiser": "x"}, "optimiser must be one of"),
        ({"steps": 0}, "steps must be"),
        ({"y": Y - 1}, "y must hold one class"),
        ({"y": []}, "got 12 and 0"),
        ({"y": Y + 0.5}, "whole numbers"),
        ({"X": X[0]}, r"X must have shape \(records, features\)"),
    ],
)
def test_bad_input_is_refused(changed, sentence):
    arguments = {"X": X, "y": Y, "membership": HALVES, **GOOD, **changed}
    with pytest.raises((ValueError, TypeError), match=sentence):
        train_dp_ensemble(**arguments)
