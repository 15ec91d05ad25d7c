"""ReLU networks by hand, any number of one shape at once: forward, backward, clip (notebook 04).

The book-keeping of `gradients`, without autograd and with a leading axis for the networks. A small
network trains faster than by autograd without privacy, and of many together each costs less.
"""

import torch
from torch import nn

from coursekit.ensemble import ReluNets


class ClippedNets(ReluNets):
    """ReLU networks with cross-entropy, whose `total` holds sums of clipped gradients."""

    @torch.inference_mode()
    def clipped_sum(self, X, y, max_grad_norm):
        """Write each network's clipped sum to `total`; return norms and losses (networks, records).

        X (networks, records, features), y (networks, records).
        """
        *kept, logits = self.forward(X)
        back, label = torch.log_softmax(logits, -1), y[..., None]
        log_p = back.gather(-1, label)
        back = back.exp_().scatter_(-1, label, log_p.expm1())  # probabilities, less 1 at the label
        backs, norms = [], []
        for (weight, _), inputs in zip(self.layers[::-1], kept[::-1], strict=True):
            backs.append(back)
            norms += outer_norms(back, inputs)
            if inputs is not X:
                back = torch.matmul(back, weight)
                back = torch.ops.aten.threshold_backward(back, inputs, 0)  # 0 where ReLU gave 0
        norms = total_norm(norms)
        shares = clip_shares(norms, max_grad_norm).unsqueeze(-1)
        for (weight, bias), back, inputs in zip(self.sums, backs[::-1], kept, strict=True):
            back.mul_(shares)
            torch.matmul(back.mT, inputs, out=weight)
            torch.sum(back, -2, keepdim=True, out=bias)
        return norms, log_p.neg_()[..., 0]


def relu_widths(model):
    """Return the layer sizes of an `nn.Sequential` of linear layers and ReLU, else None."""
    layers = list(model) if type(model) is nn.Sequential else []
    linear, between = layers[::2], layers[1::2]
    alike = all(type(layer) is nn.Linear and layer.bias is not None for layer in linear)
    if len(linear) != len(between) + 1 or not alike or any(type(f) is not nn.ReLU for f in between):
        return None
    return [linear[0].in_features] + [layer.out_features for layer in linear]


def clip_shares(norms, max_grad_norm):
    """Return min(1, max_grad_norm / norm), what clipping leaves of each record's gradient."""
    return (max_grad_norm / norms).clamp_max_(1.0)


def outer_norms(back, inputs):
    """Return the norms of each record's gradient of a bias, |g|, and of a weight, |g| |a|."""
    bias = torch.linalg.vector_norm(back, dim=-1)
    return bias, bias * torch.linalg.vector_norm(inputs, dim=-1)


def total_norm(norms):
    """Return the norm of gradients from the norms of their parts."""
    squares = norms[0].square()
    for norm in norms[1:]:
        squares.addcmul_(norm, norm)
    return squares.sqrt_()
