"""Many networks trained by DP-SGD at once, each on its own records: shadow models, audits."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from tqdm import tqdm

from coursekit import _arguments
from coursekit.dpsgd.by_hand import ReluNets
from coursekit.dpsgd.gradients import cross_entropy
from coursekit.dpsgd.inputs import checked
from coursekit.dpsgd.models import draw_evenly, mlp
from coursekit.dpsgd.steps import (
    SILENT,
    clipping_norm,
    poisson_batch,
    promise,
    refuse_diverged,
    seeded,
    step_taker,
)

BLOCK = 16  # networks trained together


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
    are not independent. The ledger holds for each model alone; releasing several adds up. The
    number of records of a model and that of the classes, which is read off `y`, count as public.

    Adjacency: add/remove; sampler: Poisson. Raises: TypeError or ValueError as `train_dp_sgd`, and
    for models with different numbers of records.
    Source: `train_dp_sgd`, stacked.

    >>> ensemble = train_dp_ensemble(
    ...     np.eye(4), [0, 1, 0, 1], [[1, 1, 0, 0], [0, 0, 1, 1]], hidden=[3], max_grad_norm=1.0,
    ...     noise_multiplier=1.0, sampling_rate=0.5, steps=10, learning_rate=0.1, seed=0)
    >>> ensemble.logits(np.eye(4)).shape
    (2, 4, 2)
    """
    C = clipping_norm(max_grad_norm, noise_multiplier)
    noise, ledger = promise(noise_multiplier, epsilon, delta, sampling_rate, steps)
    if np.ndim(X) != 2:
        raise ValueError(f"X must have shape (records, features), got shape {np.shape(X)}.")
    if not isinstance(hidden, (list, tuple)):
        raise TypeError(f"hidden must be a list of sizes, got {hidden!r}.")
    classes = int(_arguments.finite_array(y, "y", ndim=1).max(initial=1)) + 1
    widths = [np.shape(X)[1], *hidden, max(classes, 2)]
    X, y, _ = checked(mlp(widths, seed=0, dtype=dtype), X, y, cross_entropy)
    members = _members(membership, len(X))
    plan = dict(
        noise_multiplier=noise,
        max_grad_norm=C,
        expected_batch_size=sampling_rate * members.shape[1],
        optimiser=optimiser,
        learning_rate=learning_rate,
    )
    train = partial(_train_block, X, y, widths, float(sampling_rate), steps, plan)
    blocks = np.split(members, range(BLOCK, len(members), BLOCK))
    rngs = seeded(seed).spawn(len(blocks))
    intra_op = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with ThreadPoolExecutor(_arguments.whole(threads, "threads", least=1)) as pool:
            nets = pool.map(train, blocks, rngs)
            nets = list(tqdm(nets, total=len(blocks), delay=SILENT, leave=False, desc="DP-SGD"))
    finally:
        torch.set_num_threads(intra_op)
    return DPEnsemble(nets, ledger)


def _train_block(X, y, widths, rate, steps, plan, members, rng):
    """Train one network for each row of `members`, the indices of its records."""
    count, size = members.shape
    parameters = sum((a + 1) * b for a, b in pairwise(widths)) * count
    nets = ReluNets(count, widths, *torch.zeros(2, parameters, dtype=X.dtype))
    for inputs, layer in zip(widths[:-1], nets.layers, strict=True):
        draw_evenly(layer, inputs, rng)
    members = torch.from_numpy(rng.permuted(members, axis=1))
    take_step = step_taker(nets, rng=rng, **plan)
    for _ in range(steps):
        batch = members[:, torch.from_numpy(poisson_batch(size, rate, rng))]
        take_step(X[batch], y[batch])
    refuse_diverged(float(nets.parameters.sum()), steps - 1)
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
