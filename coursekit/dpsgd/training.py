"""DP-SGD: clip each record's gradient, sum, add noise, step (notebook 04).

Adjacency: add/remove. Sampler: Poisson, each record in each batch with probability `sampling_rate`.
The promise covers the models of all steps, not the history, nor `seed`: whoever knows it can take
the noise away again. It holds in real arithmetic. So learn with this module, and release with noise
that nobody can replay.
"""

import copy
import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from tqdm import tqdm

from coursekit import _arguments
from coursekit.accounting import Ledger, calibrate_noise
from coursekit.dpsgd.by_hand import ReluNets
from coursekit.dpsgd.gradients import Gradients, cross_entropy
from coursekit.dpsgd.inputs import checked
from coursekit.dpsgd.models import mlp

OPTIMISERS = ("sgd", "momentum", "adam")
SILENT = 5  # seconds before a progress bar appears
BLOCK = 16  # networks trained together


class Training(NamedTuple):
    """What `train_dp_sgd` returns.

    `history` holds one number for each step: "batch_size", "loss" (mean over the batch; NaN for an
    empty one) and "clipped" (share of the batch whose gradients were cut). They come from the
    records without any noise: look at them, never release them.
    """

    model: nn.Module
    history: dict
    ledger: Ledger


class NoPromise(Ledger):
    """The ledger of training without noise: epsilon is infinite."""

    def bounds(self, delta):
        _arguments.fraction(delta, "delta")
        return 0.0, math.inf


def per_example_norms(model, X, y, *, loss=cross_entropy):
    """Return the L2 norm of each record's gradient in all trainable parameters, (records,).

    The gradient is that of the record's own loss. X (records, ...), y (records,), arrays or
    tensors; `loss` takes outputs and y and returns (records,). No gradient is built for linear
    layers: see `gradients`. Nothing private about it: norms come from the records as they are.
    Raises: TypeError or ValueError for bad X or y, or a model that mixes records (BatchNorm).
    Source: Goodfellow (2015), arXiv:1510.01799.

    >>> from coursekit.dpsgd import logistic_regression
    >>> norms = per_example_norms(logistic_regression(2, 2, seed=0), [[0, 0], [3, 4]], [0, 1])
    >>> norms.shape
    torch.Size([2])
    """
    X, y, probe = checked(model, X, y, loss)
    norms, _ = Gradients(model, probe, loss).clipped_sum(X, y, math.inf)
    return norms


def poisson_batch(records, sampling_rate, rng):
    """Return the indices of a Poisson batch: each record enters by itself with `sampling_rate`.

    Sizes are Binomial(records, sampling_rate), so a batch may be empty. Raises: TypeError or
    ValueError for a bad argument. Source: Abadi et al. (2016), CCS, who call a batch a lot.

    >>> poisson_batch(3, 1.0, np.random.default_rng(0))
    array([0, 1, 2])
    """
    records = _arguments.whole(records, "records", least=0)
    rate = _arguments.probability(sampling_rate, "sampling_rate")
    return np.flatnonzero(_arguments.generator(rng).random(records) < rate)


def train_dp_sgd(
    model,
    X,
    y,
    *,
    max_grad_norm,
    sampling_rate,
    steps,
    learning_rate,
    seed,
    noise_multiplier=None,
    epsilon=None,
    delta=None,
    optimiser="sgd",
    loss=cross_entropy,
    expected_batch_size=None,
):
    """Train a copy of `model` by DP-SGD; return (model, history, ledger), see `Training`.

    A step draws a Poisson batch, scales each record's gradient down to an L2 norm of at most
    `max_grad_norm` (C), sums, adds normal noise of deviation noise_multiplier * C to every
    coordinate, divides by the expected batch size and hands the result to the optimiser ("sgd",
    "momentum" with 0.9, or "adam"), which costs no privacy. Give `noise_multiplier`, or else
    `epsilon` and `delta` for the smallest noise that keeps them. Adjacency: add/remove; sampler:
    Poisson; the ledger counts all steps.

    Choosing: C about the median norm of `per_example_norms`, measured on public records, or small
    (0.1 to 1): with a small C every gradient is cut, and only learning_rate * C matters. Take large
    batches, few steps, and a learning rate above that of plain training, such as 0.5 / C.

    Args:
        model: a torch.nn.Module of float64 or float32 that treats each record alone.
        X, y: arrays or tensors, one row for each record; y holds class numbers for cross-entropy.
        sampling_rate: above 0, at most 1. steps: updates, empty batches included.
        seed: whole number; batches, noise and dropout are drawn from it.
        loss: takes outputs and y, returns one number for each record.
        expected_batch_size: a public number to divide by, sampling_rate * len(X) unless given. That
            default treats the number of records as public, which add/remove does not grant: the
            strict promise needs a number fixed without looking.

    Without noise (noise_multiplier=0) the ledger's epsilon is infinite; max_grad_norm may then be
    infinite too. Models of linear layers and convolutions cost about as much as without privacy.

    Raises: TypeError or ValueError for a bad number, for X or y that do not fit, for BatchNorm and
    other layers that mix records; FloatingPointError if training diverges.
    Source: Abadi et al. (2016), CCS, Algorithm 1, on Poisson batches.

    >>> from coursekit.dpsgd import logistic_regression
    >>> model, history, ledger = train_dp_sgd(
    ...     logistic_regression(2, 2, seed=0), [[0, 1], [1, 0]], [0, 1], noise_multiplier=1.0,
    ...     max_grad_norm=1.0, sampling_rate=1.0, steps=1, learning_rate=0.5, seed=0)
    >>> history["batch_size"], round(ledger.epsilon(1e-5), 3)
    (array([2.]), 4.377)
    """
    C = _clipping(max_grad_norm, noise_multiplier)
    noise, ledger = _promise(noise_multiplier, epsilon, delta, sampling_rate, steps)
    rate, rng = float(sampling_rate), _rng(seed)
    X, y, probe = checked(model, X, y, loss)
    expected = rate * len(X) if expected_batch_size is None else expected_batch_size
    expected = _arguments.positive(expected, "expected_batch_size")
    with torch.random.fork_rng(devices=[]):  # dropout draws from PyTorch's own generator
        torch.manual_seed(int(rng.integers(2**62)))
        gradients = Gradients(model, probe, loss)
        add_noise = _noise(gradients.total, noise * C if noise else 0.0, rng)
        update = _update(optimiser, gradients.parameters, gradients.total, learning_rate)
        history = {name: np.full(steps, np.nan) for name in ("batch_size", "loss", "clipped")}
        for step in tqdm(range(steps), delay=SILENT, leave=False, unit="step", desc="DP-SGD"):
            batch = torch.from_numpy(poisson_batch(len(X), rate, rng))
            norms, losses = gradients.clipped_sum(X[batch], y[batch], C)
            add_noise()
            gradients.total.div_(expected)
            update()
            history["batch_size"][step] = len(batch)
            if len(batch):
                history["loss"][step] = losses.numpy().mean()
                history["clipped"][step] = (norms.numpy() > C).mean()
                _refuse_diverged(history["loss"][step], step)
    _refuse_diverged(float(gradients.parameters.sum()), steps - 1)
    trained = copy.deepcopy(model)
    for parameter, value in zip(trained.parameters(), gradients.model.parameters(), strict=True):
        parameter.data.copy_(value)
    return Training(trained, history, ledger)


class DPEnsemble:
    """What `train_dp_ensemble` returns: `logits(X)` of all models, and the `ledger` of each one."""

    def __init__(self, blocks, ledger):
        self.blocks, self.ledger = blocks, ledger

    def logits(self, X):
        """Return the scores (models, records, classes) as an array; X (records, features)."""
        dtype = self.blocks[0].parameters.dtype
        X = torch.as_tensor(_arguments.finite_array(X, "X", ndim=2), dtype=dtype)
        parts = [nets.forward(X[None])[-1] for nets in self.blocks]
        return torch.cat(parts).numpy()


def train_dp_ensemble(
    X,
    y,
    membership,
    *,
    hidden,
    max_grad_norm,
    sampling_rate,
    steps,
    learning_rate,
    seed,
    noise_multiplier=None,
    epsilon=None,
    delta=None,
    optimiser="sgd",
    dtype=torch.float64,
    threads=1,
):
    """Train many ReLU networks at once, each by DP-SGD on its own records; see `DPEnsemble`.

    For shadow models and audits. `membership` (models, records) is True where a model may use a
    record, the same number for each model; `hidden` lists the sizes of hidden layers. Models are
    trained `BLOCK` at a time, blocks side by side in `threads` threads, which changes no result.
    The models of a block draw the same positions in their own, randomly ordered, lists of records:
    each model's batches are Poisson, which is what its promise needs, but batches of two models
    are not independent. The ledger holds for each model alone; releasing several adds up.

    Adjacency: add/remove; sampler: Poisson. Raises: TypeError or ValueError as `train_dp_sgd`, and
    for models with different numbers of records.
    Source: `train_dp_sgd`, stacked.

    >>> ensemble = train_dp_ensemble(
    ...     np.eye(4), [0, 1, 0, 1], [[1, 1, 0, 0], [0, 0, 1, 1]], hidden=[3], max_grad_norm=1.0,
    ...     noise_multiplier=1.0, sampling_rate=0.5, steps=10, learning_rate=0.1, seed=0)
    >>> ensemble.logits(np.eye(4)).shape
    (2, 4, 2)
    """
    C = _clipping(max_grad_norm, noise_multiplier)
    noise, ledger = _promise(noise_multiplier, epsilon, delta, sampling_rate, steps)
    if np.ndim(X) != 2:
        raise ValueError(f"X must have shape (records, features), got shape {np.shape(X)}.")
    if not isinstance(hidden, (list, tuple)):
        raise TypeError(f"hidden must be a list of sizes, got {hidden!r}.")
    classes = int(_arguments.finite_array(y, "y", ndim=1).max(initial=1)) + 1
    widths = [np.shape(X)[1], *hidden, max(classes, 2)]
    X, y, _ = checked(mlp(widths, seed=0, dtype=dtype), X, y, cross_entropy)
    members = _members(membership, len(X))
    plan = dict(rate=float(sampling_rate), steps=steps, C=C, noise=noise, lr=learning_rate)
    plan |= dict(widths=widths, optimiser=optimiser)
    blocks = np.split(members, range(BLOCK, len(members), BLOCK))
    rngs = _rng(seed).spawn(len(blocks))
    intra_op = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(_arguments.whole(threads, "threads", least=1)) as pool:
            nets = pool.map(partial(_train_block, X, y, **plan), blocks, rngs)
            nets = list(tqdm(nets, total=len(blocks), delay=SILENT, leave=False, desc="DP-SGD"))
    finally:
        torch.set_num_threads(intra_op)
    return DPEnsemble(nets, ledger)


def _train_block(X, y, members, rng, *, widths, rate, steps, C, noise, lr, optimiser):
    """Train one network for each row of `members`, the indices of its records."""
    count, size = members.shape
    parameters = sum((a + 1) * b for a, b in pairwise(widths)) * count
    nets = ReluNets(count, widths, *torch.zeros(2, parameters, dtype=X.dtype))
    for layer in nets.layers:
        for parameter in layer:
            drawn = (2 * rng.random(parameter.shape) - 1) * layer[0].shape[-1] ** -0.5
            parameter.copy_(torch.from_numpy(drawn))
    members = torch.from_numpy(rng.permuted(members, axis=1))
    add_noise = _noise(nets.total, noise * C if noise else 0.0, rng)
    update = _update(optimiser, nets.parameters, nets.total, lr)
    for _ in range(steps):
        batch = members[:, torch.from_numpy(poisson_batch(size, rate, rng))]
        nets.clipped_sum(X[batch], y[batch], C)
        add_noise()
        nets.total.div_(rate * size)
        update()
    _refuse_diverged(float(nets.parameters.sum()), steps - 1)
    return nets


def _members(membership, records):
    allowed = np.asarray(membership)
    if allowed.ndim != 2 or allowed.shape[1] != records or not np.isin(allowed, (0, 1)).all():
        raise ValueError(
            f"membership must hold True or False for (models, {records} records), "
            f"got shape {allowed.shape}."
        )
    sizes = np.count_nonzero(allowed, axis=1)
    if len(set(sizes)) != 1 or not sizes[0]:
        raise ValueError(
            "every model must have the same number of records, at least 1; "
            f"got from {min(sizes, default=0)} to {max(sizes, default=0)}."
        )
    return np.nonzero(allowed)[1].reshape(len(allowed), -1)


def _rng(seed):
    return np.random.default_rng(_arguments.whole(seed, "seed", least=0))


def _clipping(max_grad_norm, noise_multiplier):
    if max_grad_norm == math.inf and noise_multiplier == 0:
        return math.inf
    return _arguments.positive(max_grad_norm, "max_grad_norm")


def _promise(noise_multiplier, epsilon, delta, sampling_rate, steps):
    """Return the noise multiplier and a ledger that has booked all steps."""
    _arguments.positive(sampling_rate, "sampling_rate")
    known = dict(sampling_rate=sampling_rate, steps=_arguments.whole(steps, "steps", least=1))
    if noise_multiplier is None:
        if epsilon is None or delta is None:
            raise ValueError("give noise_multiplier, or both epsilon and delta.")
        noise = calibrate_noise(epsilon=epsilon, delta=delta, **known)
        ledger = Ledger(epsilon=epsilon, delta=delta)
    elif epsilon is not None or delta is not None:
        raise ValueError("give noise_multiplier, or epsilon and delta, not both.")
    else:
        noise = _arguments.non_negative(noise_multiplier, "noise_multiplier")
        _arguments.probability(sampling_rate, "sampling_rate")
        ledger = Ledger() if noise else NoPromise()
    if noise:
        ledger.add(noise_multiplier=noise, **known)
    return noise, ledger


def _noise(total, scale, rng):
    """Return what adds independent normal noise of deviation `scale` to every number of `total`.

    float64 from NumPy, the same on every CPU; float32 from PyTorch, twice as fast.
    """
    if not scale:
        return lambda: None
    if total.dtype == torch.float64:
        return lambda: total.add_(torch.from_numpy(rng.standard_normal(len(total))), alpha=scale)
    generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
    return lambda: total.add_(torch.empty_like(total).normal_(generator=generator), alpha=scale)


def _update(optimiser, parameters, total, learning_rate):
    """Return what moves the parameters by one step along `total`."""
    rate = _arguments.positive(learning_rate, "learning_rate")
    name = _arguments.one_of(optimiser, "optimiser", OPTIMISERS)
    if name == "sgd":
        return lambda: parameters.sub_(total, alpha=rate)
    parameters.grad = total
    if name == "momentum":
        return torch.optim.SGD([parameters], lr=rate, momentum=0.9).step
    return torch.optim.Adam([parameters], lr=rate).step


def _refuse_diverged(number, step):
    if not math.isfinite(number):
        raise FloatingPointError(
            f"training diverged by step {step + 1}: try a smaller learning_rate, or max_grad_norm."
        )
