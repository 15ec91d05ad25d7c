"""Many networks of one shape trained at once, each on its own records (notebooks 08 to 11).

Shadow models are small, and PyTorch spends most of a small step on calls, not on numbers. Stacked,
the networks share the calls: `parameters` gain a leading axis for the networks, and each product of
matrices becomes a batch of products.
"""

from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from joblib import Parallel, delayed
from torch import nn
from tqdm import tqdm

from coursekit import _arguments

BLOCK = 16  # networks trained together
ROWS = 512  # records passed through a block together
SILENT = 5  # seconds before a progress bar appears
OPTIMISERS = ("sgd", "momentum", "adam")


class ReluNets:
    """Networks of layer sizes `widths`, ReLU between layers; logits at the end.

    `parameters` is one vector: the first layer's weights of every network, its biases, the second
    layer's, and so on. `total` has the same layout and holds gradients. Shapes below are those of
    `count` networks; if it is None there is one, and no axis for it.
    """

    def __init__(self, count, widths, parameters, total=None):
        many, shapes = () if count is None else (count,), []
        for inside, outside in pairwise(widths):
            shapes += [(*many, outside, inside), (*many, 1, outside)]
        sizes = [torch.Size(shape).numel() for shape in shapes]
        self.count, self.widths = count, widths
        self.parameters = parameters
        self.total = torch.zeros_like(parameters) if total is None else total
        layers, sums = (
            [part.view(shape) for part, shape in zip(flat.split(sizes), shapes, strict=True)]
            for flat in (self.parameters, self.total)
        )
        self.layers = list(zip(layers[::2], layers[1::2], strict=True))
        self.sums = list(zip(sums[::2], sums[1::2], strict=True))

    def __reduce__(self):
        return type(self), (self.count, self.widths, self.parameters)

    def forward(self, X):
        """Return each layer's inputs, then the logits; X (networks or 1, records, features)."""
        kept = [X]
        for weight, bias in self.layers:
            if len(kept) > 1:
                kept[-1].relu_()
            kept.append(torch.matmul(kept[-1], weight.mT).add_(bias))
        return kept

    def backward(self, kept, back):
        """Write to `total` the gradients that follow from `back`, those of the logits.

        `kept` is what `forward` returns, without the logits; back (networks, records, classes).
        """
        for i in reversed(range(len(kept))):
            weight, bias = self.sums[i]
            torch.matmul(back.mT, kept[i], out=weight)
            torch.sum(back, -2, keepdim=True, out=bias)
            if i:
                back = torch.matmul(back, self.layers[i][0])
                back = torch.ops.aten.threshold_backward(back, kept[i], 0)  # 0 where ReLU gave 0


class Batch(NamedTuple):
    """What a `loss` may look at besides the logits: a batch of each network of a block.

    y and records (networks, batch size): labels, and the indices of the records. models: the
    networks' indices in the ensemble. epoch: from 0. nets: the networks, `nets.forward(X)[-1]`
    gives their logits.
    """

    y: torch.Tensor
    records: torch.Tensor
    models: range
    epoch: int
    nets: ReluNets


class Ensemble:
    """Trained networks of one shape. `len(ensemble)` is their number."""

    def __init__(self, blocks):
        self.blocks = blocks

    def __len__(self):
        return sum(nets.count for nets in self.blocks)

    def logits(self, X):
        """Return the scores of all models on X (records, features): (models, records, classes).

        Raises: TypeError or ValueError unless X holds finite numbers, as many a record as the
        networks take.
        """
        X = _arguments.finite_array(X, "X", ndim=2)
        widths = self.blocks[0].widths
        if X.shape[1] != widths[0]:
            raise ValueError(f"X must have {widths[0]} features, got shape {X.shape}.")
        X = torch.from_numpy(X).to(self.blocks[0].parameters.dtype)
        found = torch.empty(len(self), len(X), widths[-1], dtype=X.dtype)
        with torch.inference_mode(), one_thread():
            for nets, part in zip(self.blocks, found.split(BLOCK), strict=True):
                for rows, out in zip(X.split(ROWS), part.split(ROWS, dim=1), strict=True):
                    out.copy_(nets.forward(rows[None])[-1])
        return found.numpy()

    def model(self, index):
        """Return one network as a `torch.nn.Sequential` of its own, with copied parameters."""
        index = range(len(self))[index]
        nets, position, layers = self.blocks[index // BLOCK], index % BLOCK, []
        for weight, bias in nets.layers:
            linear = nn.utils.skip_init(nn.Linear, *reversed(weight.shape[1:]), dtype=weight.dtype)
            linear.weight.data.copy_(weight[position])
            linear.bias.data.copy_(bias[position, 0])
            layers += [linear, nn.ReLU()]
        return nn.Sequential(*layers[:-1])


def paired_membership(models, records, *, rng):
    """Return who trains on what: a boolean array (models, records), drawn in pairs of halves.

    Model 2i gets a random half of the records and model 2i+1 the other half, so every model trains
    on equally many records and every record is in exactly half of the models. Raises: TypeError or
    ValueError unless both numbers are even whole numbers of at least 2.
    Source: the sampling of Privacy Meter (Murakonda, Shokri 2020, arXiv:2007.09339), in pairs.

    >>> members = paired_membership(4, 6, rng=np.random.default_rng(0))
    >>> members.sum(axis=1), members.sum(axis=0)
    (array([3, 3, 3, 3]), array([2, 2, 2, 2, 2, 2]))
    """
    for value, name in ((models, "models"), (records, "records")):
        if _arguments.whole(value, name, least=2) % 2:
            raise ValueError(f"{name} must be even, for pairs of halves, got {value}.")
    rng = _arguments.generator(rng)
    halves = rng.permuted(np.tile(np.arange(records) % 2 == 0, (models // 2, 1)), axis=1)
    return np.stack([halves, ~halves], axis=1).reshape(models, records)


def train_ensemble(
    X,
    y,
    membership,
    *,
    hidden,
    epochs,
    batch_size,
    learning_rate,
    seed,
    optimiser="momentum",
    weight_decay=0.0,
    loss=None,
    dtype=torch.float64,
    jobs=None,
):
    """Train one ReLU network for each row of `membership`, on its own records; see `Ensemble`.

    X (records, features), y (records,) classes from 0; `membership` (models, records) is True where
    a model trains on a record, equally often for each model. `hidden` lists the sizes of hidden
    layers; [] gives logistic regression. Each epoch goes once through a model's records in a new
    order, in batches of `batch_size`; the last may be smaller, and if it holds one record, its step
    can throw a network off. `optimiser` is "sgd", "momentum" (0.9)
    or "adam", as PyTorch defines them; `weight_decay` is added to gradients.

    `loss(logits, batch)` replaces the mean cross-entropy: given logits (networks, batch size,
    classes) and a `Batch` it returns one loss for each network, by differentiable operations.

    Model i depends on i, its own row, X, y and the seed only: more rows after it, or `jobs`,
    change nothing. `jobs` threads work side by side on blocks of `BLOCK` models; within a
    `joblib.parallel_config(...)` the blocks go where it says: to processes, or to a Dask cluster,
    whose processes are left with PyTorch set to one thread.

    Raises: TypeError or ValueError for a bad argument, FloatingPointError if training diverges.
    Source: the stacking that PyTorch teaches for `torch.func`, "Model ensembling".

    >>> ensemble = train_ensemble(
    ...     np.eye(4), [0, 1, 0, 1], [[1, 1, 0, 0], [0, 0, 1, 1]], hidden=[8], epochs=50,
    ...     batch_size=2, learning_rate=0.1, seed=0)
    >>> ensemble.logits(np.eye(4)).argmax(axis=2)[0, :2]
    array([0, 1])
    """
    X, y, widths, members = stacked_inputs(X, y, membership, hidden, dtype)
    plan = dict(
        epochs=_arguments.whole(epochs, "epochs", least=0),
        batch_size=_arguments.whole(batch_size, "batch_size", least=1),
        learning_rate=_arguments.positive(learning_rate, "learning_rate"),
        optimiser=_arguments.one_of(optimiser, "optimiser", OPTIMISERS),
        weight_decay=_arguments.non_negative(weight_decay, "weight_decay"),
        loss=loss,
    )
    streams = np.random.SeedSequence(_arguments.whole(seed, "seed", least=0)).spawn(len(members))
    train = partial(_train_block, X, y, widths, plan)
    return Ensemble(in_blocks(train, members, streams, jobs=jobs, description="models"))


def _train_block(X, y, widths, plan, models, members, streams):
    """Train the networks `models` (a range), the rows of `members` being their records."""
    rngs = [np.random.default_rng(stream) for stream in streams]
    parameters = torch.zeros(parameter_count(widths) * len(rngs), dtype=X.dtype)
    nets = ReluNets(len(rngs), widths, parameters)
    for inputs, (weight, bias) in zip(widths[:-1], nets.layers, strict=True):
        for i, rng in enumerate(rngs):
            draw_evenly((weight[i], bias[i]), inputs, rng)
    update = updater(plan["optimiser"], parameters, nets.total, plan["learning_rate"])
    back_of = partial(_back_of_loss, plan["loss"]) if plan["loss"] else _back_of_cross_entropy
    with torch.no_grad():
        for epoch in range(plan["epochs"]):
            order = [rng.permutation(row) for rng, row in zip(rngs, members, strict=True)]
            for rows in torch.from_numpy(np.stack(order)).split(plan["batch_size"], dim=1):
                flat = rows.reshape(-1)
                *kept, logits = nets.forward(X.index_select(0, flat).view(*rows.shape, -1))
                batch = Batch(y[rows], rows, models, epoch, nets)
                nets.backward(kept, back_of(logits, batch))
                if plan["weight_decay"]:
                    nets.total.add_(parameters, alpha=plan["weight_decay"])
                update()
    if not torch.isfinite(parameters).all():
        raise FloatingPointError("training diverged: try a smaller learning_rate.")
    return nets


def _back_of_cross_entropy(logits, batch):
    """Return the gradient of the mean loss: (probabilities, less 1 at the label) / batch size."""
    back = torch.softmax(logits, -1)
    minus = back.new_full((1, 1, 1), -1.0).expand(*batch.y.shape, 1)
    return back.scatter_add_(-1, batch.y[..., None], minus).div_(batch.y.shape[1])


def _back_of_loss(loss, logits, batch):
    with torch.enable_grad():
        logits = logits.requires_grad_()
        losses = loss(logits, batch)
        if not isinstance(losses, torch.Tensor) or losses.shape != (len(logits),):
            shape = tuple(getattr(losses, "shape", ()))
            raise ValueError(
                f"loss must return one loss for each of {len(logits)} networks, got shape {shape}."
            )
        return torch.autograd.grad(losses.sum(), logits)[0]


def updater(optimiser, parameters, total, learning_rate, scale=1.0):
    """Return what moves `parameters` by one step along `scale` * `total`."""
    if optimiser == "sgd":
        return lambda: parameters.sub_(total, alpha=learning_rate * scale)
    if optimiser == "momentum":
        velocity = torch.zeros_like(total)

        def update():
            torch.add(total, velocity, alpha=0.9, out=velocity)
            parameters.sub_(velocity, alpha=learning_rate * scale)

        return update
    parameters.grad = torch.empty_like(total)
    step = torch.optim.Adam([parameters], lr=learning_rate).step

    def update():
        torch.mul(total, scale, out=parameters.grad)
        step()

    return update


def draw_evenly(parameters, inputs, rng):
    """Fill a layer's parameters with numbers from -1/sqrt(inputs) to 1/sqrt(inputs)."""
    for parameter in parameters:
        drawn = (2 * rng.random(tuple(parameter.shape)) - 1) * inputs**-0.5
        parameter.data.copy_(torch.from_numpy(drawn))


def parameter_count(widths):
    return sum((inside + 1) * outside for inside, outside in pairwise(widths))


@contextmanager
def one_thread():
    """Let PyTorch work in one thread: several would change last digits, and fight for cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def in_blocks(train, members, streams, *, jobs, description):
    """Return train(models, members, streams) for each block of `BLOCK` models, in order."""
    if jobs is not None:
        _arguments.whole(jobs, "jobs", least=1)
    starts = range(0, len(members), BLOCK)
    tasks = []
    for start in starts:
        part = slice(start, start + BLOCK)
        models = range(len(members))[part]
        tasks.append(delayed(_in_one_thread)(train, models, members[part], streams[part]))
    with one_thread():
        blocks = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(tasks)
        bar = dict(total=len(tasks), unit="block", delay=SILENT, leave=False, desc=description)
        return list(tqdm(blocks, **bar))


def _in_one_thread(train, *arguments):
    """Train in one thread of PyTorch, in a process of joblib's or Dask's too."""
    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    return train(*arguments)


def stacked_inputs(X, y, membership, hidden, dtype):
    """Return X and y as tensors, the layer sizes, and each model's records (models, size)."""
    if np.ndim(X) != 2:
        raise ValueError(f"X must have shape (records, features), got shape {np.shape(X)}.")
    X, y = _arguments.finite_array(X, "X"), _arguments.finite_array(y, "y")
    if (y % 1).any():
        raise ValueError("y must hold whole numbers only.")
    if len(X) != y.size or not len(X):
        raise ValueError(f"X and y must have a row for each record, got {len(X)} and {y.size}.")
    if y.ndim != 1 or y.min() < 0:
        raise ValueError(
            f"y must hold one class for each record, from 0, got shape {y.shape} "
            f"with values from {int(y.min())}."
        )
    hidden = [hidden] if isinstance(hidden, (int, np.integer)) else hidden
    if not isinstance(hidden, (list, tuple)):
        raise TypeError(f"hidden must be a list of sizes, got {hidden!r}.")
    hidden = [_arguments.whole(size, "each of hidden", least=1) for size in hidden]
    if dtype not in (torch.float64, torch.float32):
        raise ValueError(f"dtype must be torch.float64 or torch.float32, got {dtype!r}.")
    widths = [X.shape[1], *hidden, max(int(y.max()) + 1, 2)]
    members = _member_lists(membership, len(X))
    return torch.from_numpy(X).to(dtype), torch.from_numpy(y).long(), widths, members


def _member_lists(membership, records):
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
