"""Many networks trained by DP-SGD at once, each on its own records: shadow models, audits."""

from functools import partial

import torch

from coursekit.dpsgd.by_hand import ClippedNets
from coursekit.dpsgd.steps import (
    clipping_norm,
    poisson_batch,
    promise,
    refuse_diverged,
    seeded,
    step_taker,
)
from coursekit.ensemble import (
    BLOCK,
    Ensemble,
    draw_evenly,
    in_blocks,
    parameter_count,
    stacked_inputs,
)


class DPEnsemble(Ensemble):
    """What `train_dp_ensemble` returns: an `Ensemble`, and the `ledger` of each of its models."""

    def __init__(self, blocks, ledger):
        super().__init__(blocks)
        self.ledger = ledger


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
    jobs=None,
):
    """Train many ReLU networks at once, each by DP-SGD on its own records; see `DPEnsemble`.

    For shadow models and audits. `membership` (models, records) is True where a model may use a
    record, the same number for each model; `hidden` lists the sizes of hidden layers. Models are
    trained `BLOCK` at a time, in `jobs` threads or where `joblib.parallel_config` says, as by
    `train_ensemble`, which changes no result.
    The models of a block draw the same positions in their own, randomly ordered, lists of records:
    each model's batches are Poisson, which is what its promise needs, but batches of two models
    are not independent. The ledger holds for each model alone; releasing several adds up. The
    number of records of a model and that of the classes, which is read off `y`, count as public.

    Adjacency: add/remove; sampler: Poisson. Raises: TypeError or ValueError as `train_dp_sgd`, and
    for models with different numbers of records.
    Source: `train_dp_sgd`, stacked.

    >>> ensemble = train_dp_ensemble(
    ...     torch.eye(4), [0, 1, 0, 1], [[1, 1, 0, 0], [0, 0, 1, 1]], hidden=[3], max_grad_norm=1.0,
    ...     noise_multiplier=1.0, sampling_rate=0.5, steps=10, learning_rate=0.1, seed=0)
    >>> ensemble.logits(torch.eye(4)).shape
    (2, 4, 2)
    """
    C = clipping_norm(max_grad_norm, noise_multiplier)
    noise, ledger = promise(noise_multiplier, epsilon, delta, sampling_rate, steps)
    X, y, widths, members = stacked_inputs(X, y, membership, hidden, dtype)
    plan = dict(
        noise_multiplier=noise,
        max_grad_norm=C,
        expected_batch_size=sampling_rate * members.shape[1],
        optimiser=optimiser,
        learning_rate=learning_rate,
    )
    train = partial(_train_block, X, y, widths, float(sampling_rate), steps, plan)
    blocks = seeded(seed).spawn(-(-len(members) // BLOCK))
    streams = [rng for rng in blocks for _ in range(BLOCK)]  # one for the whole block
    return DPEnsemble(in_blocks(train, members, streams, jobs=jobs, description="DP-SGD"), ledger)


def _train_block(X, y, widths, rate, steps, plan, _, members, streams):
    """Train one network for each row of `members`, the indices of its records."""
    (count, size), rng = members.shape, streams[0]
    nets = ClippedNets(count, widths, torch.zeros(parameter_count(widths) * count, dtype=X.dtype))
    for inputs, layer in zip(widths[:-1], nets.layers, strict=True):
        draw_evenly(layer, inputs, rng)
    members = torch.from_numpy(rng.permuted(members, axis=1))
    take_step = step_taker(nets, rng=rng, **plan)
    for _ in range(steps):
        batch = members[:, torch.from_numpy(poisson_batch(size, rate, rng))]
        take_step(X[batch], y[batch])
    refuse_diverged(float(nets.parameters.sum()), steps - 1)
    return nets
