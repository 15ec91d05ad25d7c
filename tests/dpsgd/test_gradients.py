"""Norms and clipped sums against one backward pass for each record, for every kind of layer."""

import math

import numpy as np
import plain
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from coursekit.dpsgd import cross_entropy, mlp, per_example_norms, small_cnn
from coursekit.dpsgd.gradients import Gradients


class Twice(nn.Module):
    """A layer that is used twice: its gradient is a sum of two outer products."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        return self.layer(torch.tanh(self.layer(x)))


class Tied(nn.Module):
    """A layer whose weight is used again behind its back."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        return nn.functional.linear(torch.tanh(self.layer(x)), self.layer.weight)


class Unused(nn.Module):
    """A layer that nothing depends on: its gradients are zero, its noise must still be fresh."""

    def __init__(self):
        super().__init__()
        self.layer, self.other = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        return self.layer(x)


class Scaled(nn.Module):
    """A parameter that belongs to no layer."""

    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(6, 3), nn.Parameter(torch.tensor(1.5))

    def forward(self, x):
        return self.layer(x) * self.scale


class Unbiased(nn.Linear):
    """A subclass may compute anything."""

    def forward(self, x):
        return super().forward(x) * 2


def frozen(model):
    model[0].requires_grad_(False)
    return model


def tied(model):
    model[2].weight = model[0].weight
    return model


def conv(*args, **kwargs):
    image = nn.Unflatten(1, (2, 6, 6))
    return nn.Sequential(
        image, nn.Conv2d(2, *args, **kwargs), nn.ReLU(), nn.Flatten(), nn.LazyLinear(3)
    )


S = nn.Sequential
CASES = {  # name: (model, features, method)
    "logistic": (lambda: S(nn.Linear(6, 3)), 6, "by hand"),
    "ReLU": (lambda: S(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)), 6,
             "by hand"),
    "ReLU in place": (lambda: S(nn.Linear(6, 5), nn.ReLU(inplace=True), nn.Linear(5, 3)), 6,
                      "by hand"),
    "tanh": (lambda: S(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)), 6, "book-keeping"),
    "ELU in place": (lambda: S(nn.Linear(6, 5), nn.ELU(inplace=True), nn.Linear(5, 3)), 6,
                     "book-keeping"),
    "no bias": (lambda: S(nn.Linear(6, 5, bias=False), nn.ReLU(), nn.Linear(5, 3)), 6,
                "book-keeping"),
    "frozen first": (lambda: frozen(S(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))), 6,
                     "book-keeping"),
    "three axes": (lambda: S(nn.Unflatten(1, (4, 3)), nn.Linear(3, 5), nn.Tanh(), nn.Flatten(),
                             nn.Linear(20, 3)), 12, "book-keeping"),
    "many places": (lambda: S(nn.Unflatten(1, (24, 3)), nn.Linear(3, 2), nn.Flatten(),
                              nn.Linear(48, 3)), 72, "book-keeping"),
    "conv": (lambda: conv(4, 3), 72, "book-keeping"),
    "conv wide": (lambda: conv(40, 5), 72, "book-keeping"),
    "conv stride, padding": (lambda: conv(3, (3, 2), stride=2, padding=(1, 0)), 72, "book-keeping"),
    "conv dilation, no bias": (lambda: conv(3, 2, dilation=2, bias=False), 72, "book-keeping"),
    "conv groups": (lambda: conv(4, 3, groups=2), 72, "torch.func"),
    "conv same": (lambda: conv(4, 3, padding="same"), 72, "torch.func"),
    "conv circular": (lambda: conv(4, 3, padding=1, padding_mode="circular"), 72, "torch.func"),
    "small CNN": (lambda: small_cnn(6, 3, seed=0, channels=(2, 3)), 36, "book-keeping"),
    "GroupNorm": (lambda: S(nn.Linear(6, 8), nn.GroupNorm(2, 8), nn.ReLU(), nn.Linear(8, 3)), 6,
                  "torch.func"),
    "LayerNorm": (lambda: S(nn.LayerNorm(6), nn.Linear(6, 3)), 6, "torch.func"),
    "used twice": (Twice, 6, "torch.func"),
    "tied by functional": (Tied, 6, "torch.func"),
    "tied weights": (lambda: tied(S(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))), 6, "torch.func"),
    "unused layer": (Unused, 6, "torch.func"),
    "lone parameter": (Scaled, 6, "torch.func"),
    "subclass": (lambda: S(Unbiased(6, 3)), 6, "torch.func"),
}  # fmt: skip


def case(name, dtype=torch.float64, records=11, scale=1.0):
    make, features, method = CASES[name]
    torch.manual_seed(3)
    model, X = make(), torch.randn(records, features, dtype=torch.float64) * scale
    model = model.double()
    model(X)  # lazy layers take their size
    return model.to(dtype), X.to(dtype), torch.arange(records) % 3, method


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_norms_equal_those_of_each_record_alone(name, dtype, rtol):
    model, X, y, _ = case(name, dtype)
    expected = plain.gradients(model, X, y, plain.cross_entropy).norm(dim=1)
    norms = per_example_norms(model, X, y)
    assert norms.dtype == dtype and norms.shape == (11,)
    np.testing.assert_allclose(norms, expected, rtol=rtol, atol=rtol * float(expected.max()))


@pytest.mark.parametrize("name", ["three axes", "many places", "conv", "conv wide"])
def test_norms_and_sums_without_building_a_gradient(name, monkeypatch):
    model, X, y, _ = case(name)
    monkeypatch.setattr("coursekit.dpsgd.gradients.AT_ONCE", 1)
    rows = plain.gradients(model, X, y, plain.cross_entropy)
    gradients, C = Gradients(model, (X[:3], y[:3]), cross_entropy), float(rows.norm(dim=1).median())
    assert gradients.method == "book-keeping"
    norms, _ = gradients.clipped_sum(X, y, C)
    np.testing.assert_allclose(norms, rows.norm(dim=1), rtol=1e-12)
    np.testing.assert_allclose(gradients.total, plain.clipped(rows, C).sum(0), atol=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_clipped_sum_equals_the_plain_one(name):
    model, X, y, method = case(name)
    rows = plain.gradients(model, X, y, plain.cross_entropy)
    gradients = Gradients(model, (X[:3], y[:3]), cross_entropy)
    assert gradients.method == method
    for C in (math.inf, float(rows.norm(dim=1).median()), 1e-3):
        gradients.total.fill_(7.0)  # what was there before must not count
        gradients.clipped_sum(X, y, C)
        expected = plain.clipped(rows, C).sum(0)
        np.testing.assert_allclose(gradients.total, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["logistic", "ReLU", "tanh", "conv", "conv wide", "GroupNorm"])
@given(seed=st.integers(0, 2**32), scale=st.sampled_from([0.0, 1e-3, 1.0, 1e3]))
@settings(max_examples=15, deadline=None)
def test_one_record_moves_the_sum_by_at_most_the_bound(name, seed, scale):
    model, _, y, _ = case(name)
    X = torch.from_numpy(np.random.default_rng(seed).normal(size=(11, CASES[name][1])) * scale)
    gradients, C = Gradients(model, (X[:3], y[:3]), cross_entropy), 0.5
    sums = []
    for rows in (slice(0, 10), slice(0, 9), [*range(9), 10]):  # all, one removed, one replaced
        gradients.clipped_sum(X[rows], y[rows], C)
        sums.append(gradients.total.clone())
    assert torch.linalg.vector_norm(sums[0] - sums[1]) <= C * (1 + 1e-12)
    assert torch.linalg.vector_norm(sums[0] - sums[2]) <= 2 * C * (1 + 1e-12)


def test_torch_func_in_parts_is_the_same(monkeypatch):
    model, X, y, _ = case("GroupNorm")
    gradients = Gradients(model, (X[:3], y[:3]), cross_entropy)
    norms, losses = gradients.clipped_sum(X, y, 0.1)
    whole = gradients.total.clone()
    monkeypatch.setattr("coursekit.dpsgd.gradients.AT_ONCE", 4 * len(whole))
    parts = gradients.clipped_sum(X, y, 0.1)
    np.testing.assert_allclose(gradients.total, whole, rtol=1e-12)
    np.testing.assert_allclose(torch.stack(parts), torch.stack((norms, losses)), rtol=1e-12)


def test_saturated_and_zero_gradients():
    model = mlp([2, 3, 2], seed=0)
    norms = per_example_norms(
        model, [[0.0, 0.0], [1e4, 1e4]], [0, 1], loss=lambda o, y: o.sum(1) * 0
    )
    assert (norms == 0).all()
    gradients = Gradients(model, (torch.rand(2, 2).double(), torch.tensor([0, 1])), cross_entropy)
    gradients.clipped_sum(torch.tensor([[1e6, -1e6]]).double(), torch.tensor([1]), 1.0)
    assert torch.isfinite(gradients.total).all()


def test_other_losses():
    model, X, y, _ = case("tanh")

    def squared(outputs, target):
        return (outputs - target[:, None]).square().sum(1)

    target = y.double() / 2
    expected = plain.gradients(model, X, target, squared).norm(dim=1)
    np.testing.assert_allclose(
        per_example_norms(model, X, target, loss=squared), expected, rtol=1e-12
    )


def test_embeddings_take_whole_numbers():
    torch.manual_seed(0)
    model = S(nn.Embedding(7, 4), nn.Flatten(), nn.Linear(12, 3)).double()
    X, y = np.arange(15).reshape(5, 3) % 7, np.arange(5) % 3
    rows = plain.gradients(model, torch.from_numpy(X), torch.from_numpy(y), plain.cross_entropy)
    np.testing.assert_allclose(per_example_norms(model, X, y), rows.norm(dim=1), rtol=1e-12)
