"""What is refused, with a sentence that says what was given and what is allowed."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from coursekit.dpsgd import logistic_regression, mlp, per_example_norms, small_cnn, train_dp_sgd

X, Y = np.random.default_rng(0).normal(size=(8, 4)), np.arange(8) % 3
GOOD = dict(noise_multiplier=1.0, max_grad_norm=1.0, sampling_rate=0.5, steps=2, learning_rate=0.1)


def train(model=None, x=X, y=Y, **changed):
    return train_dp_sgd(model or mlp([4, 5, 3], seed=0), x, y, **{**GOOD, "seed": 0, **changed})


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"max_grad_norm": 0}, "max_grad_norm must be a finite number above 0, got 0"),
        ({"max_grad_norm": math.inf}, "max_grad_norm must be a finite number above 0, got inf"),
        ({"max_grad_norm": -1}, "max_grad_norm must be"),
        (
            {"noise_multiplier": -1},
            "noise_multiplier must be a finite number of at least 0, got -1",
        ),
        ({"noise_multiplier": math.nan}, "noise_multiplier must be"),
        ({"noise_multiplier": 1e-3}, "noise_multiplier must lie between"),
        ({"noise_multiplier": None}, "give noise_multiplier, or both epsilon and delta"),
        ({"epsilon": 1.0, "delta": 1e-5}, "not both"),
        ({"noise_multiplier": None, "epsilon": 1.0}, "both epsilon and delta"),
        ({"noise_multiplier": None, "epsilon": 0, "delta": 1e-5}, "epsilon must be"),
        ({"noise_multiplier": None, "epsilon": 1.0, "delta": 1}, "delta must be"),
        ({"sampling_rate": 0}, "sampling_rate must be a finite number above 0, got 0"),
        ({"sampling_rate": 1.5}, "sampling_rate must be a number from 0 to 1, got 1.5"),
        (
            {"sampling_rate": 1.5, "noise_multiplier": 0},
            "sampling_rate must be a number from 0 to 1",
        ),
        ({"steps": 0}, "steps must be a whole number of at least 1, got 0"),
        ({"steps": 2.5}, "steps must be"),
        ({"learning_rate": 0}, "learning_rate must be"),
        ({"seed": -1}, "seed must be a whole number of at least 0, got -1"),
        ({"seed": None}, "seed must be"),
        ({"optimiser": "rmsprop"}, "optimiser must be one of 'sgd', 'momentum', 'adam', got"),
        ({"expected_batch_size": 0}, "expected_batch_size must be"),
        ({"y": Y[:5]}, "X and y must have a row for each record, got 8 and 5"),
        ({"y": Y + 1}, "one class for each record, from 0 to 2, got shape .* from 1 to 3"),
        ({"y": Y - 1}, "from 0 to 2"),
        ({"y": Y + 0.5}, "y must hold whole numbers only"),
        ({"y": np.stack([Y, Y], 1)}, "one class for each record"),
        ({"x": X[:0], "y": Y[:0]}, "got 0 and 0"),
        ({"x": np.where(X > 1, np.nan, X)}, "X must hold finite numbers only, got nan"),
        ({"x": X[:, :3]}, r"does not take records of shape \(3,\)"),
        ({"x": [["a"] * 4] * 8}, "X must be an array of numbers"),
        ({"x": 3.0}, "X must have a row for each record"),
        ({"model": nn.Sequential(nn.Linear(4, 1)).double()}, "2 classes or more, got"),
        ({"model": nn.Sequential(nn.ReLU())}, "this model has none"),
        ({"model": nn.Linear(4, 3).half()}, "this model has torch.float16 on cpu"),
        ({"loss": lambda o, y: o.mean()}, r"one number for each record.* returned shape \(\)"),
        ({"loss": lambda o, y: o}, r"one number for each record.* returned shape \(3, 3\)"),
        ({"model": 3}, "model must be a torch.nn.Module, got int"),
    ],
)
def test_bad_input_is_refused(changed, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        train(**changed)


def with_layer(layer):
    return nn.Sequential(nn.Unflatten(1, (2, 2)), layer, nn.Flatten(), nn.Linear(4, 3)).double()


class Centred(nn.Module):
    """Takes the batch's mean away: no BatchNorm, but it mixes records all the same."""

    def forward(self, x):
        return x - x.mean(0, keepdim=True)


@pytest.mark.parametrize("function", [train, lambda model: per_example_norms(model, X, Y)])
@pytest.mark.parametrize(
    ("layer", "sentence"),
    [
        (nn.BatchNorm1d(2), "layer '1' is a BatchNorm1d, which mixes .* Use torch.nn.GroupNorm"),
        (nn.BatchNorm1d(2, track_running_stats=False), "BatchNorm1d, which mixes"),
        (nn.SyncBatchNorm(2), "SyncBatchNorm, which mixes"),
        (nn.InstanceNorm1d(2, track_running_stats=True), "InstanceNorm1d, which mixes"),
        (Centred(), "the model mixes records"),
    ],
)
def test_layers_that_mix_records_are_refused(function, layer, sentence):
    with pytest.raises(ValueError, match=sentence):
        function(with_layer(layer))


def test_batchnorm_is_refused_in_evaluation_mode_too():
    with pytest.raises(ValueError, match="BatchNorm1d"):
        train(with_layer(nn.BatchNorm1d(2)).eval())


@pytest.mark.parametrize(
    "layer", [nn.GroupNorm(1, 2), nn.LayerNorm(2), nn.InstanceNorm1d(2), nn.Dropout(0.5)]
)
def test_layers_that_treat_each_record_alone_are_taken(layer):
    assert np.isfinite(train(with_layer(layer), sampling_rate=1.0).history["loss"]).all()


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.GRU(2, 3, batch_first=True)

    def forward(self, x):
        return self.layer(x.reshape(-1, 2, 2))[0][:, -1]


def test_a_layer_that_torch_func_cannot_take_is_refused_with_a_reason():
    with pytest.raises(ValueError, match="record by record, as for GRU and LSTM"):
        train(Recurrent().double())


def test_dropout_is_drawn_from_the_seed():
    model, runs = with_layer(nn.Dropout(0.5)), []
    for state in (1, 2):  # of PyTorch's own generator, which must not matter
        torch.manual_seed(state)
        runs.append(train(model, noise_multiplier=0, sampling_rate=1.0, seed=7))
    for a, b in zip(*(run.model.parameters() for run in runs), strict=True):
        assert torch.equal(a, b)


def test_divergence_is_an_error():
    with pytest.raises(FloatingPointError, match="diverged by step"):
        train(noise_multiplier=0, max_grad_norm=math.inf, learning_rate=1e200, steps=20)


def test_inputs_are_not_modified_and_lists_and_tensors_are_taken():
    x, y = X.copy(), Y.copy()
    norms = per_example_norms(mlp([4, 5, 3], seed=0), x, y)
    assert (x == X).all() and (y == Y).all()
    for kinds in ((X.tolist(), Y.tolist()), (torch.from_numpy(X), torch.from_numpy(Y))):
        assert torch.equal(per_example_norms(mlp([4, 5, 3], seed=0), *kinds), norms)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: mlp([4], seed=0), "two or more sizes"),
        (lambda: mlp([4, 1], seed=0), "classes must be a whole number of at least 2, got 1"),
        (lambda: mlp([0, 2], seed=0), "each of widths must be"),
        (lambda: mlp([4, 2], seed=0, activation="gelu"), "activation must be one of"),
        (lambda: mlp([4, 2], seed=0, dtype=torch.float16), "dtype must be"),
        (lambda: logistic_regression(4, 2, seed=-1), "seed must be"),
        (lambda: small_cnn(3, 2, seed=0), "side must be a whole number of at least 4, got 3"),
        (lambda: small_cnn(8, 2, seed=0, channels=(3,)), "channels must be two sizes"),
    ],
)
def test_models_refuse(make, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        make()


def test_first_weights_are_even_within_their_reach_and_leave_torchs_generator_alone():
    before = torch.random.get_rng_state()
    model = mlp([400, 300, 10], seed=3)
    assert torch.equal(torch.random.get_rng_state(), before)
    for layer, reach in ((model[0], 1 / 20), (model[2], 300**-0.5)):
        weights = np.sort(layer.weight.detach().numpy().ravel())
        share = (weights / reach + 1) / 2
        assert 0 <= share[0] and share[-1] <= 1
        far = np.abs(share - np.arange(len(share)) / len(share)).max()
        assert far < math.sqrt(math.log(2 / 1e-9) / (2 * len(share))) + 1 / len(share)
