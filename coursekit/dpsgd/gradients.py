"""What each record asks of a model, clipped and summed, at the price of plain training.

A linear layer computes z = W a + b. One record's gradient of W is the outer product g a^T of what
comes back to z and what went in, so its norm is |g| |a|, and the sum over records with shares c is
G^T diag(c) A. So backward to every z is all that is needed, and nothing of the size (records,
parameters) is built (Goodfellow 2015, arXiv:1510.01799; in one pass, as "book-keeping": Bu, Wang,
Zha, Karypis 2023, ICML). A convolution is a linear layer over patches. Other layers go through
`torch.func`, which builds every gradient and is slower.
"""

import copy
import functools

import torch
from torch import nn
from torch.func import functional_call, grad_and_value, vmap
from torch.nn import functional as F

from coursekit.dpsgd.by_hand import ReluNets, clip_shares, relu_widths, row_squares

AT_ONCE = 2**24  # numbers that torch.func may hold at a time


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
    "by hand" (ReLU networks).
    """

    def __init__(self, model, probe, loss):
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
        layers, widths = _linear_layers(self.model, trained), relu_widths(self.model)
        if layers:
            ways["book-keeping"] = self._book_keeping
            for layer in layers:
                layer.register_forward_hook(self._keep)
        if widths and len(layers) == len(widths) - 1 and loss is cross_entropy:
            ways["by hand"] = self._by_hand
            self.nets = ReluNets(1, widths, self.parameters, self.total)
        results = {name: self._tried(way, *probe) for name, way in ways.items()}
        agreeing = [name for name in ways if _close(results[name], results["torch.func"])]
        self.method, self._way = agreeing[-1], ways[agreeing[-1]]

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
        except RuntimeError:
            if way == self._torch_func:
                raise
            return None
        finally:
            self.kept = None
            self.model.train(training)

    def _by_hand(self, X, y, max_grad_norm):
        norms, losses = self.nets.clipped_sum(X[None], y[None], max_grad_norm)
        return norms[0], losses[0]

    def _book_keeping(self, X, y, max_grad_norm):
        self.kept = {}
        losses = self.loss(self.model(X), y)
        kept, self.kept = self.kept, None
        inputs, outputs = zip(*kept.values(), strict=True)
        backs = torch.autograd.grad(losses, outputs, torch.ones_like(losses))
        with torch.no_grad():
            parts = [_layer(*part) for part in zip(kept, inputs, backs, strict=True)]
            norms = functools.reduce(torch.add, [squares for squares, _ in parts]).sqrt_()
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
    """Return each record's squared gradient norm in one layer, and how to sum with shares."""
    has_bias = layer.bias is not None
    if type(layer) is nn.Conv2d:
        a = F.unfold(a, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
        return _at_places(a, g.flatten(2), has_bias)
    if g.ndim > 2:
        return _at_places(a.flatten(1, -2).mT, g.flatten(1, -2).mT, has_bias)

    def weighted_sum(shares, weight, bias):
        g.mul_(shares[:, None])
        torch.mm(g.T, a, out=weight)
        if has_bias:
            torch.sum(g, 0, out=bias)

    squares = row_squares(g)
    if has_bias:
        return torch.addcmul(squares, squares, row_squares(a)), weighted_sum
    return squares * row_squares(a), weighted_sum


def _at_places(a, g, has_bias):
    """The same for a layer used at many places: a (records, in, places), g (records, out, places).

    A record's gradient is the sum of outer products over places. It is built where that is smaller
    than all products of two places, (a_j . a_k)(g_j . g_k), which sum to its squared norm.
    """
    over_places, built = g.sum(2), None
    if 2 * a.shape[2] ** 2 > a.shape[1] * g.shape[1]:
        built = torch.bmm(g, a.mT).flatten(1)
        squares = row_squares(built)
    else:
        squares = torch.linalg.vecdot(torch.bmm(a.mT, a).flatten(1), torch.bmm(g.mT, g).flatten(1))
    if has_bias:
        squares = squares + row_squares(over_places)

    def weighted_sum(shares, weight, bias):
        if built is None:
            weight.copy_(torch.einsum("njp,nkp->jk", g * shares[:, None, None], a).view_as(weight))
        else:
            torch.mv(built.T, shares, out=weight.view(-1))
        if has_bias:
            torch.mv(over_places.T, shares, out=bias)

    return squares, weighted_sum
