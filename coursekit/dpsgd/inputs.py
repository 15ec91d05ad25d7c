"""What `dpsgd` refuses before any work: records it cannot use, and models that mix records."""

import copy

import numpy as np
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase
from torch.nn.modules.dropout import _DropoutNd

from coursekit import _arguments
from coursekit.dpsgd.gradients import cross_entropy

TRAINABLE = {(torch.float64, "cpu"), (torch.float32, "cpu")}


def checked(model, X, y, loss):
    """Return X and y as tensors and a probe (X, y), a few records to try the model on.

    The probe's inputs are random numbers, since the first records may be alike.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"model must be a torch.nn.Module, got {type(model).__name__}.")
    kinds = {(p.dtype, p.device.type) for p in model.parameters() if p.requires_grad}
    if len(kinds) != 1 or not kinds <= TRAINABLE:
        found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds)) or "none"
        raise ValueError(
            "the parameters to train must all be float64 or all float32, on the CPU; "
            f"this model has {found}."
        )
    ((dtype, _),) = kinds
    tokens = any(isinstance(layer, nn.Embedding) for layer in model.modules())
    X = _tensor(X, "X", torch.int64 if tokens else dtype)
    y = _tensor(y, "y", torch.int64 if loss is cross_entropy or _is_whole(y) else dtype)
    if len(X) != len(y) or not len(X):
        raise ValueError(f"X and y must have a row for each record, got {len(X)} and {len(y)}.")
    probe = X[:3]
    if not tokens:
        probe = torch.rand(probe.shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    outputs = _refuse_mixing(model, probe)
    if loss is cross_entropy:
        _refuse_classes(outputs, y)
    losses = loss(outputs, y[:3])
    if losses.shape != (len(probe),):
        raise ValueError(
            "loss must return one number for each record, not their mean; for "
            f"{len(probe)} records it returned shape {tuple(losses.shape)}."
        )
    return X, y, (probe, y[:3])


def _is_whole(values):
    return np.asarray(values).dtype.kind in "iu"


def _tensor(values, name, dtype):
    if isinstance(values, torch.Tensor):
        values = values.detach().numpy()
    array = _arguments.finite_array(values, name)
    if not array.ndim:
        raise ValueError(f"{name} must have a row for each record, got a single number.")
    if dtype == torch.int64 and (array % 1).any():
        raise ValueError(f"{name} must hold whole numbers only.")
    return torch.from_numpy(array).to(dtype)


def _refuse_mixing(model, probe):
    """Return the outputs on the probe, unless one record's output depends on the others."""
    for name, layer in model.named_modules():
        running = isinstance(layer, _NormBase) and layer.track_running_stats
        if running or isinstance(layer, _BatchNorm):
            raise ValueError(
                f"layer {name or 'model'!r} is a {type(layer).__name__}, which mixes the records "
                "of a batch: one record then moves the gradients of all, and clipping bounds "
                "nothing. Use torch.nn.GroupNorm instead."
            )
    model = copy.deepcopy(model)
    for layer in model.modules():
        if isinstance(layer, _DropoutNd):
            layer.eval()
    with torch.no_grad():
        try:
            together, alone = model(probe), torch.cat([model(x[None]) for x in probe])
        except (RuntimeError, ValueError, IndexError) as error:
            shape = tuple(probe.shape[1:])
            raise ValueError(f"the model does not take records of shape {shape}: {error}") from None
    near = 1e-3 * float(together.abs().max())
    if together.shape != alone.shape or not torch.allclose(together, alone, rtol=0, atol=near):
        raise ValueError(
            "the model mixes records: its output for one changes with the others in the batch, "
            "so clipping bounds nothing. Use layers that treat each record alone, such as "
            "torch.nn.GroupNorm or LayerNorm."
        )
    return together


def _refuse_classes(outputs, y):
    if outputs.ndim != 2 or outputs.shape[1] < 2:
        raise ValueError(
            "cross-entropy takes outputs of shape (records, classes) with 2 classes or more, "
            f"got {tuple(outputs.shape)}; change the last layer or give another loss."
        )
    if y.ndim != 1 or y.min() < 0 or y.max() >= outputs.shape[1]:
        raise ValueError(
            f"y must hold one class for each record, from 0 to {outputs.shape[1] - 1}, "
            f"got shape {tuple(y.shape)} with values from {int(y.min())} to {int(y.max())}."
        )
