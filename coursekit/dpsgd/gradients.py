"""What each record asks of a model, clipped and summed, at the price of plain training.

A linear layer computes z = W a + b. One record's gradient of W is the outer product g a^T of what
comes back to z and what went in, so its norm is |g| |a|, and the sum over records with shares c is
G^T diag(c) A. So backward to every z is all that is needed, and nothing of the size (records,
parameters) is built (Goodfellow 2015, arXiv:1510.01799; in one pass, as "book-keeping": Bu, Wang,
Zha, Karypis 2023, ICML). A convolution is a linear layer over patches: there the gradients of the
one layer are built while they fit, which is quicker. Other layers go through `torch.func`, which
builds every gradient and is slower.
"""

import copy

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional as F

from coursekit.dpsgd.by_hand import (
    ClippedNets,
    clip_shares,
    outer_norms,
    relu_widths,
    total_norm,
)

AT_ONCE = 2**24  # numbers that built gradients may hold at a time


def cross_entropy(outputs, y):
    """Return each record's cross-entropy, (records,): outputs (records, classes), y whole numbers.

    >>> cross_entropy(torch.zeros(1, 2), torch.tensor([1]))
    tensor([0.6931])
    """
    return F.cross_entropy(outputs, y, reduction="none")


class Gradients:
    """A copy of `model`, its trainable parameters in one vector, and sums of clipped gradients.

    `parameters` is that vector and `total` one of the same layout, to which `clipped_sum` writes.
    `method` is the quickest way that gives what the first does on `probe`, some records (X, y):
    "torch.func" (any layer), "book-keeping" (linear layers and convolutions, each used once),
    "by hand" (ReLU networks). `method` asks for one of them by name.
    """

    def __init__(self, model, probe, loss, method=None):
        self.model, self.loss, self.kept = copy.deepcopy(model), loss, None
        for layer in self.model.modules():
            if getattr(layer, "inplace", False):
                layer.inplace = False  # it would overwrite what is kept below
        trained = [p for p in self.model.parameters() if p.requires_grad]
        self.parameters = torch.cat([p.detach().flatten() for p in trained])
        self.total = torch.zeros_like(self.parameters)
        self.sums = dict(zip(trained, _views(self.total, trained), strict=True))
        for parameter, view in zip(trained, _views(self.parameters, trained), strict=True):
            parameter.data = view
        ways = {"torch.func": self._torch_func}
        widths, self.layers = relu_widths(self.model), _linear_layers(self.model, trained)
        if self.layers:
            ways["book-keeping"] = self._book_keeping
            for layer in self.layers:
                layer.register_forward_hook(self._keep)
        if widths and len(self.layers) == len(widths) - 1 and loss is cross_entropy:
            ways["by hand"] = ClippedNets(None, widths, self.parameters, self.total).clipped_sum
        results = {name: self._tried(way, *probe) for name, way in ways.items()}
        right = [name for name in ways if _close(results[name], results["torch.func"])]
        self.method = right[-1] if method is None else right[right.index(method)]
        self._way = ways[self.method]

    def clipped_sum(self, X, y, max_grad_norm):
        """Write the clipped sum to `total`; return norms and losses, both (records,)."""
        if not len(X):
            self.total.zero_()
            return self.total[:0], self.total[:0]
        return self._way(X, y, max_grad_norm)

    def _tried(self, way, X, y):
        training = self.model.training
        self.model.eval()
        try:
            norms, _ = way(X, y, 1.0)
            return torch.cat([norms, self.total])
        except RuntimeError as error:
            if way != self._torch_func:
                return None
            raise ValueError(
                "torch.func cannot take gradients of this model record by record, as for GRU "
                f"and LSTM; build it of layers that it knows. It said: {error}"
            ) from None
        finally:
            self.kept = None
            self.model.train(training)

    def _book_keeping(self, X, y, max_grad_norm):
        self.kept = {}
        losses = self.loss(self.model(X), y)
        kept, self.kept = self.kept, None
        if len(kept) < len(self.layers):
            raise RuntimeError("a layer with parameters to train was not used.")
        inputs, outputs = zip(*kept.values(), strict=True)
        backs = torch.autograd.grad(losses, outputs, torch.ones_like(losses))
        with torch.inference_mode():
            parts = [_layer(*part) for part in zip(kept, inputs, backs, strict=True)]
            norms = total_norm([norm for norms, _ in parts for norm in norms])
            shares = clip_shares(norms, max_grad_norm)
            for layer, (_, weighted_sum) in zip(kept, parts, strict=True):
                weighted_sum(shares, self.sums[layer.weight], self.sums.get(layer.bias))
        return norms, losses.detach()

    def _keep(self, layer, inputs, output):
        if self.kept is not None:
            if layer in self.kept:
                raise RuntimeError(f"{layer} is used twice in one pass.")
            self.kept[layer] = inputs[0].detach(), output

    def _torch_func(self, X, y, max_grad_norm):
        named = {name: p.detach() for name, p in self.model.named_parameters() if p.requires_grad}

        def one(parameters, x, label):
            return self.loss(functional_call(self.model, parameters, (x[None],)), label[None])[0]

        each = vmap(grad_and_value(one), in_dims=(None, 0, 0), randomness="different")
        size, found = max(1, AT_ONCE // len(self.total)), []
        self.total.zero_()
        for rows, labels in zip(X.split(size), y.split(size), strict=True):
            gradients, losses = each(named, rows, labels)
            gradients = torch.cat([g.reshape(len(rows), -1) for g in gradients.values()], dim=1)
            norms = torch.linalg.vector_norm(gradients, dim=1)
            self.total += clip_shares(norms, max_grad_norm) @ gradients
            found.append((norms, losses))
        norms, losses = zip(*found, strict=True)
        return torch.cat(norms), torch.cat(losses)


def _close(found, expected):
    if found is None:
        return False
    tolerance = 10 * torch.finfo(expected.dtype).eps ** 0.5
    return torch.allclose(found, expected, rtol=tolerance, atol=tolerance * float(expected.norm()))


def _views(flat, parameters):
    parts = flat.split([p.numel() for p in parameters])
    return [part.view_as(p) for part, p in zip(parts, parameters, strict=True)]


def _linear_layers(model, trained):
    """Return the layers that hold all trained parameters if they are linear or convolutions."""
    layers = [m for m in model.modules() if any(p.requires_grad for p in m.parameters(False))]
    owned = [p for layer in layers for p in layer.parameters()]
    plain = all(map(_is_plain, layers)) and len(owned) == len(trained)
    return layers if plain and set(owned) == set(trained) else []


def _is_plain(layer):
    if type(layer) is nn.Conv2d:
        zeros = layer.padding_mode == "zeros" and not isinstance(layer.padding, str)
        return zeros and layer.groups == 1
    return type(layer) is nn.Linear


def _layer(layer, a, g):
    """Return the norms of each record's gradients in one layer, and how to sum with shares."""
    has_bias = layer.bias is not None
    if type(layer) is nn.Conv2d:
        return _at_places(_patches(layer, a), g.flatten(2), has_bias)
    if g.ndim > 2:
        return _at_places(a.flatten(1, -2).mT, g.flatten(1, -2).mT, has_bias)

    def weighted_sum(shares, weight, bias):
        g.mul_(shares[:, None])
        torch.mm(g.T, a, out=weight)
        if has_bias:
            torch.sum(g, 0, out=bias)

    bias_norms, weight_norms = outer_norms(g, a)
    return ([weight_norms, bias_norms] if has_bias else [weight_norms]), weighted_sum


def _patches(layer, x):
    """Return what a convolution sees at each place, (records, inputs of a place, places)."""
    if layer.dilation != (1, 1):
        return F.unfold(x, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
    (tall, wide), (down, right), (high, left) = layer.kernel_size, layer.stride, layer.padding
    x = F.pad(x, (left, left, high, high)).unfold(2, tall, down).unfold(3, wide, right)
    return x.permute(0, 1, 4, 5, 2, 3).flatten(4).flatten(1, 3)  # some times faster than F.unfold


def _at_places(a, g, has_bias):
    """The same for a layer used at many places: a (records, in, places), g (records, out, places).

    A record's gradient is the sum of outer products over places. It is built unless that takes too
    much room; then all products of two places, (a_j . a_k)(g_j . g_k), sum to its squared norm.
    """
    over_places, built = g.sum(2), None
    if len(a) * a.shape[1] * g.shape[1] <= AT_ONCE:
        built = torch.bmm(g, a.mT).flatten(1)
        norms = [torch.linalg.vector_norm(built, dim=1)]
    else:
        squares = torch.linalg.vecdot(torch.bmm(a.mT, a).flatten(1), torch.bmm(g.mT, g).flatten(1))
        norms = [squares.clamp_(min=0).sqrt_()]
    if has_bias:
        norms.append(torch.linalg.vector_norm(over_places, dim=1))

    def weighted_sum(shares, weight, bias):
        if built is None:
            weight.copy_(torch.einsum("njp,nkp->jk", g * shares[:, None, None], a).view_as(weight))
        else:
            torch.mv(built.T, shares, out=weight.view(-1))
        if has_bias:
            torch.mv(over_places.T, shares, out=bias)

    return norms, weighted_sum
