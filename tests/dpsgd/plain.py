"""DP-SGD written the slow and obvious way, with the mistakes that people make as a switch."""

import copy
import math

import numpy as np
import torch
from torch.nn import functional as F

MISTAKES = (
    "clip after averaging",
    "noise not scaled by C",
    "one scalar noise for all coordinates",
    "noise reused",
    "realised batch size",
    "fixed-size batches",
    "microbatch clipping",
    "each coordinate clipped",
    "noise on the mean",
    "variance for deviation",
    "no clipping",
)


def gradients(model, X, y, loss):
    """Return each record's gradient by a backward pass of its own, (records, parameters)."""
    trained = [p for p in model.parameters() if p.requires_grad]
    rows = []
    for i in range(len(X)):
        value = loss(model(X[i : i + 1]), y[i : i + 1]).sum()
        parts = torch.autograd.grad(value, trained, allow_unused=True)
        rows.append(
            torch.cat(
                [
                    torch.zeros_like(p).flatten() if g is None else g.flatten()
                    for g, p in zip(parts, trained, strict=True)
                ]
            )
        )
    return torch.stack(rows) if rows else torch.zeros(0, sum(p.numel() for p in trained))


def clipped(rows, bound):
    """Return the rows, each scaled to a norm of at most `bound`."""
    norms = rows.norm(dim=1, keepdim=True)
    return torch.where(norms > bound, rows * (bound / norms), rows)


def cross_entropy(outputs, y):
    return F.cross_entropy(outputs, y, reduction="none")


def train(
    model,
    X,
    y,
    *,
    noise_multiplier,
    max_grad_norm,
    sampling_rate,
    steps,
    learning_rate,
    seed,
    loss=cross_entropy,
    expected_batch_size=None,
    mistake=None,
):
    """Return (model, history, None) after DP-SGD, or after DP-SGD with a mistake."""
    model, rng, C = copy.deepcopy(model), np.random.default_rng(seed), max_grad_norm
    X = torch.as_tensor(np.asarray(X), dtype=torch.float64)
    y = torch.as_tensor(np.asarray(y))
    trained = list(model.parameters())
    expected, sizes = expected_batch_size or sampling_rate * len(X), []
    size = sum(p.numel() for p in trained)
    first = rng.standard_normal(size)
    for _ in range(steps):
        if mistake == "fixed-size batches":
            batch = rng.permutation(len(X))[: round(sampling_rate * len(X))]
        else:
            batch = np.flatnonzero(rng.random(len(X)) < sampling_rate)
        sizes.append(len(batch))
        rows = gradients(model, X[batch], y[batch], loss).to(torch.float64)
        if mistake == "clip after averaging":
            total = clipped(rows.sum(0, keepdim=True) / expected, C)[0] * expected
        elif mistake == "microbatch clipping":
            pairs = [rows[i : i + 2].mean(0, keepdim=True) for i in range(0, len(rows), 2)]
            total = clipped(torch.cat(pairs), C).sum(0) if pairs else rows.sum(0)
        elif mistake == "each coordinate clipped":
            total = rows.clamp(-C, C).sum(0)
        elif mistake == "no clipping":
            total = rows.sum(0)
        else:
            total = clipped(rows, C).sum(0)
        noise, scale = rng.standard_normal(size), noise_multiplier * C
        if mistake == "noise not scaled by C":
            scale = noise_multiplier
        elif mistake == "one scalar noise for all coordinates":
            noise = np.full(size, noise[0])
        elif mistake == "noise reused":
            noise = first
        elif mistake == "noise on the mean":
            scale *= expected
        elif mistake == "variance for deviation":
            scale = math.sqrt(scale)
        if noise_multiplier:
            total = total + torch.from_numpy(noise) * scale
        divisor = max(len(batch), 1) if mistake == "realised batch size" else expected
        done = 0
        for parameter in trained:
            part = total[done : done + parameter.numel()].view_as(parameter)
            parameter.data -= learning_rate * part / divisor
            done += parameter.numel()
    return model, {"batch_size": np.array(sizes, float)}, None
