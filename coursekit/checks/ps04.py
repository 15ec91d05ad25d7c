"""Checks of problem set 04, DP-SGD by hand.

Each exercise: our answer, other right answers, the mistakes as code, and the parts of the check.
Adjacency is add/remove unless an exercise says otherwise, and batches are Poisson batches. Steps
are judged three times: without noise and with everybody in the batch they are plain arithmetic
(an `Exact` part), with gradients of zero only the noise is left, and with one coordinate for each
person the answer shows who was in the batch. Exact parts let rounding to single precision pass.
"""

import inspect
import itertools
import math
from types import SimpleNamespace

import numpy as np
from scipy import special, stats

from coursekit.accounting import Ledger, epsilon_bounds, rdp_epsilon
from coursekit.checks.exercise import (
    GENERIC,
    Exact,
    Exercise,
    Independent,
    Law,
    Mistake,
    Randomness,
    Separate,
    randomness_mistakes,
)


def chances(values, masses):
    """The law on a few whole numbers with these masses."""
    return stats.rv_discrete(values=(values, masses))()


def by_place(right):
    """A decorator for functions with the arguments of `right`, in its order, under short names."""
    names = list(inspect.signature(right).parameters)
    return lambda short: lambda **case: short(*(case[name] for name in names))


def changes_its_input(wrong):
    (message,) = (mistake.message for mistake in GENERIC if mistake.name == "changes-its-input")
    return Mistake("changes-its-input", wrong, message)


SAID = {
    "uphill":
        "You go uphill: the gradient points to where the loss grows, so it is subtracted.",
    "divides-by-who-came":
        "You divide by the size of the batch that happened to come. It is private: with Meera in "
        "it, every other row is divided by one more, and if it is 0 you divide by nothing. Divide "
        "by the planned batch_size, which everybody may know.",
    "not-divided":
        "Your sum is not divided. Divide it, noise and all, by the planned batch_size.",
    "rows-cut-off":
        "You leave out the rows beyond the planned size. A Poisson batch may be larger than "
        "planned; everybody in it pulls.",
    "noise-on-the-average":
        "You put the noise for a sum on the average, after the division: it is batch_size times "
        "too wide. First the noise, then the division; or noise of sigma C / batch_size.",
    "norm-forgotten":
        "Your noise does not grow with C. The multiplier counts in units of the clipping norm: a "
        "person who pulls twice as far needs twice the noise.",
    "noise-for-each-row":
        "You added noise to each person's row. Only the sum is released, so one draw for each "
        "coordinate protects it; and an empty batch would get none at all.",
    "one-draw-for-all":
        "One draw for all coordinates, as in a much-read example: whoever subtracts two of them "
        "has removed the noise. Give rng.normal a size.",
    "draws-hang-together":
        "The noises of your coordinates hang together, or are not of one law everywhere. Whoever "
        "sees one learns about the next: each needs a draw of its own, with the same width.",
    "clips-each-coordinate":
        "You clipped each coordinate by itself. The row may then still be as long as C times the "
        "root of d, and it points elsewhere: shorten the row as a whole.",
    "l1-norm":
        "You measured by sums of absolute values, which go with Laplace noise. Normal noise goes "
        "with the Euclidean length, the root of the sum of squares.",
    "mean-in-the-length":
        "You took a mean of squares. A length is the root of their sum, larger by the root of how "
        "many there are: with yours a row may keep more than C.",
}


def known(name, wrong):
    """A mistake that can be made in more than one exercise."""
    return Mistake(name, wrong, SAID[name])


def listed(*rows):
    """A tuple of mistakes, from rows (name, wrong answer, message) and mistakes ready made."""
    return tuple(row if isinstance(row, Mistake) else Mistake(*row) for row in rows)


A_LITTLE = (
    ("noise-a-little-small", 0.9, "Your noise is narrower than it should be, by a tenth or so. The "
     "accountant was promised the whole of sigma C: with less, the true epsilon is above the one "
     "that is reported."),
    ("noise-a-little-large", 1.1, "Your noise is wider than asked, by a tenth or so. That is "
     "private, but it costs accuracy for a promise that nobody makes."),
)


def a_little_off(right):
    """The mistakes of noise that is somewhat too narrow or too wide, from the right answer."""
    return tuple(
        Mistake(name, lambda noise_multiplier, factor=factor, **case: right(
            noise_multiplier=factor * noise_multiplier, **case), message)
        for name, factor, message in A_LITTLE)


def without_noise(right, **changes):
    """The answer of `right` without its noise, which takes no generator."""
    changes = {"noise_multiplier": 0.0, **changes, "rng": np.random.default_rng(0)}
    return lambda **case: right(**case | changes)


def a_little_off_laws(width):
    return {name: stats.norm(0, factor * width) for name, factor, _ in A_LITTLE}


# -------------------------------------------------------------------------------------------- 4.1

def per_example_gradients(X, y, w):
    return (special.expit(X @ w) - y)[:, np.newaxis] * X


def per_example_gradients_loop(X, y, w):
    rows = []
    for x, label in zip(X, y, strict=True):
        z = float(np.dot(x, w))
        p = 1 / (1 + math.exp(-z)) if z > 0 else math.exp(z) / (1 + math.exp(z))
        rows.append([(p - label) * float(value) for value in x])
    return rows


def per_example_gradients_by_logarithm(X, y, w):
    p = np.exp(-np.logaddexp(0, -(X @ w)))
    return np.einsum("i,ij->ij", p - y, X).astype(np.float32)


def gradients_with(residual):
    """Wrong gradients: residual(z, y) instead of sigmoid(z) - y."""
    return lambda X, y, w: residual(X @ w, y)[:, np.newaxis] * X


def expit_overflows(z):
    with np.errstate(all="ignore"):
        return np.exp(z) / (1 + np.exp(z))


def gradient_cases(rng):
    cases = [
        ([[1.0, 2.0], [3.0, -1.0], [0.0, 1.0]], [1, 0, 1], [0.5, -1.0]),
        ([[1000.0, 1.0], [-1000.0, 2.0], [1000.0, 3.0]], [0, 1, 1], [1.0, 0.5]),
        ([[0.5, -2.0, 1.0]], [0], np.zeros(3)),
        (np.zeros((0, 3)), np.zeros(0, int), np.ones(3)),
    ]
    for _ in range(3):
        n, d = int(rng.integers(3, 12)), int(rng.integers(2, 6))
        cases.append((rng.normal(0, 2, (n, d)), rng.integers(0, 2, n), rng.normal(0, 1, d)))
    return [{"X": np.array(X), "y": np.array(y), "w": np.array(w)} for X, y, w in cases]


GRADIENTS = Exercise(
    "4.1", "One gradient for each person", 1, function="per_example_gradients",
    right=per_example_gradients,
    others=(per_example_gradients_loop, per_example_gradients_by_logarithm),
    parts=(Exact(gradient_cases, tolerance=1e-5,
                 proof="the values agree, also far out and for nobody"),),
    mistakes=listed(
        ("sign-flipped", gradients_with(lambda z, y: y - special.expit(z)),
         "The sign is the other way round. That is the direction in which the loss falls; the "
         "gradient points where it rises, and the step subtracts it."),
        ("summed", lambda X, y, w: per_example_gradients(X, y, w).sum(axis=0),
         "This is one gradient for all of them. Once they are added up nobody can be clipped any "
         "more: keep a row for each person."),
        ("averaged", lambda X, y, w: per_example_gradients(X, y, w).sum(axis=0) / max(len(X), 1),
         "This is the average gradient, what a library gives when nobody asks. Clipping needs "
         "each person's own: keep a row for each."),
        ("divided-by-n", lambda X, y, w: per_example_gradients(X, y, w) / max(len(X), 1),
         "Each of your rows is divided by the number of people, as if it were a share of an "
         "average. One person's gradient does not depend on how many others there are."),
        ("no-sigmoid", gradients_with(lambda z, y: z - y),
         "The sigmoid is missing: x.w - y is the residual of linear regression. Here the "
         "prediction is the probability 1/(1 + e^(-x.w))."),
        ("hard-predictions", gradients_with(lambda z, y: (z > 0) - y),
         "You compare the label with a yes or no (the perceptron's rule). The gradient of the "
         "logistic loss needs the probability itself."),
        ("squared-loss",
         gradients_with(lambda z, y: (special.expit(z) - y) * special.expit(z) * special.expit(-z)),
         "You have a factor p(1 - p) too many: that is the gradient of the squared error of p. "
         "In the logistic loss the derivative of the logarithm cancels it."),
        ("labels-of-plus-and-minus-one", gradients_with(lambda z, y: -y * special.expit(-y * z)),
         "Whoever has the label 0 gets zeros from you. Either your formula is for labels of -1 "
         "and +1, or only the first half of the loss, -y ln p, is in it."),
        ("label-forgotten", gradients_with(lambda z, y: special.expit(z)),
         "The label does not enter your answer. The gradient is the prediction error, "
         "probability minus label, times the features."),
        ("halves-pull-alike", gradients_with(lambda z, y: (2 * y - 1) * special.expit(z) - y),
         "For the label 0 your sign is turned round: the derivative of -ln(1 - p) by z is +p. "
         "Both halves together are p - y."),
        ("errors-only", lambda X, y, w: special.expit(X @ w) - y,
         "These are the prediction errors, one number for each person. The gradient is taken by "
         "each weight: multiply by the features."),
        ("times-the-weights", lambda X, y, w: (special.expit(X @ w) - y)[:, np.newaxis] * w,
         "You multiplied the errors by the weights. The derivative of x.w by w is x, the "
         "features."),
        ("transposed", lambda X, y, w: per_example_gradients(X, y, w).T,
         "Rows and columns are swapped: one row for each person, one column for each weight."),
        ("sigmoid-mirrored", gradients_with(lambda z, y: special.expit(-z) - y),
         "Your sigmoid falls where it should rise: the probability of the label 1 is 1/(1 + "
         "e^(-x.w)), with a minus in the exponent."),
        ("exponential-overflows", gradients_with(lambda z, y: expit_overflows(z) - y),
         "Right for moderate values, but e^1000 is more than a float holds, and infinity over "
         "infinity is not a number. 1/(1 + np.exp(-z)) does not have that trouble, and "
         "scipy.special.expit does it without a warning."),
    ),
    hints=(
        "With p = 1/(1 + e^(-z)) the derivative of -y ln p - (1 - y) ln(1 - p) by z is p - y. "
        "What is the derivative of z = x.w by w?",
        "Row i is (p_i - y_i) times x_i. errors[:, np.newaxis] * X multiplies each row of X by "
        "its own error.",
    ),
    lesson="A person's gradient is her prediction error times her features, so it is long where "
           "the model is wrong about her, or where she is unusual. Those are the people that "
           "clipping will shorten.",
)


# -------------------------------------------------------------------------------------------- 4.2

def clip_gradients(gradients, max_grad_norm):
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return gradients / np.maximum(1, norms / max_grad_norm)


def clip_rows_loop(gradients, max_grad_norm):
    rows = []
    for row in gradients:
        norm = math.sqrt(sum(float(value) ** 2 for value in row))
        factor = max_grad_norm / norm if norm > max_grad_norm else 1.0
        rows.append([float(value) * factor for value in row])
    return rows


def clip_rows_where(gradients, max_grad_norm):
    clipped = gradients.astype(np.float32)
    norms = np.sqrt(np.einsum("ij,ij->i", gradients, gradients))
    long = norms > max_grad_norm
    clipped[long] *= max_grad_norm / norms[long, np.newaxis]
    return clipped


def lengths(rows):
    return np.linalg.norm(rows, axis=1, keepdims=True)


def clip_with(norm=lengths, factor=lambda norms, c: np.minimum(1, c / np.maximum(norms, 1e-300))):
    """Wrong clipping: another norm(gradients), or another factor(norms, bound)."""

    def wrong(gradients, max_grad_norm):
        with np.errstate(all="ignore"):
            return gradients * factor(norm(gradients), max_grad_norm)

    return wrong


def clips_the_sum(gradients, max_grad_norm):
    length = np.linalg.norm(gradients.sum(axis=0))
    return gradients * min(1, max_grad_norm / max(length, 1e-300))


def clips_in_place(gradients, max_grad_norm):
    gradients[...] = clip_gradients(gradients, max_grad_norm)
    return gradients


def clip_cases(rng):
    cases = [
        ([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]], 1.0),
        ([[0.9, 0.9, 0.9], [-5.0, 0.0, 0.1], [0.5, 0.0, -0.5]], 1.0),
        ([[3e-8, 4e-8], [3e-10, -4e-10]], 1e-9),
        ([[10.0], [-0.5], [-3.0], [1.5]], 2.0),
        (np.zeros((0, 3)), 1.0),
    ]
    for _ in range(3):
        size = (int(rng.integers(3, 9)), int(rng.integers(2, 6)))
        cases.append((rng.normal(0, 2, size), float(rng.uniform(1.5, 4))))
    return [{"gradients": np.array(rows), "max_grad_norm": norm} for rows, norm in cases]


def relatively(rows):
    """Signs and logarithms, so that very short rows are compared as sharply as long ones."""
    rows = np.asarray(rows, dtype=float)
    with np.errstate(divide="ignore"):
        return np.array([np.sign(rows), np.log(np.abs(rows))])


CLIP = Exercise(
    "4.2", "Clip each row", 2, function="clip_gradients", right=clip_gradients,
    others=(clip_rows_loop, clip_rows_where),
    parts=(Exact(clip_cases, tolerance=1e-6, tidy=relatively,
                 proof="long, short, tiny and zero rows come out right"),),
    mistakes=listed(
        known("clips-each-coordinate",
              lambda gradients, max_grad_norm: np.clip(gradients, -max_grad_norm, max_grad_norm)),
        ("stretches-short-rows", clip_with(factor=lambda norms, c: c / np.maximum(norms, 1e-300)),
         "You bring every row to the length C, the short ones too. Clipping only shortens: the "
         "factor is never above 1."),
        ("clips-the-sum", clips_the_sum,
         "You measured the sum of the rows and shortened all by one factor. That bounds the sum; "
         "here the bound is on what each person contributes, so each row has its own norm and "
         "factor."),
        ("one-norm-for-all", clip_with(norm=np.linalg.norm),
         "You measured the whole table. np.linalg.norm needs axis=1 to give one length for each "
         "row; with one factor for all, a person's share depends on the others."),
        ("norm-of-columns", clip_with(norm=lambda rows: lengths(rows.T).T),
         "You measured columns. A person is a row: axis=1."),
        known("l1-norm", clip_with(norm=lambda rows: np.abs(rows).sum(axis=1, keepdims=True))),
        ("largest-coordinate", clip_with(norm=lambda rows: np.abs(rows).max(axis=1, keepdims=True)),
         "You measured a row by its largest coordinate. Its length is the root of the sum of "
         "squares, which can be larger by a factor of up to the root of d."),
        ("length-not-rooted", clip_with(norm=lambda rows: (rows**2).sum(axis=1, keepdims=True)),
         "You compare the squared length with C: the root is missing."),
        known("mean-in-the-length",
              clip_with(norm=lambda rows: lengths(rows) / math.sqrt(rows.shape[1]))),
        ("factor-upside-down", clip_with(factor=lambda norms, c: np.maximum(1, norms / c)),
         "Your factor stands on its head: it makes long rows longer. Divide by it."),
        ("bound-forgotten", clip_with(factor=lambda norms, c: 1 / np.maximum(1, norms)),
         "Your rows end at the length 1, whatever C is."),
        ("compares-with-one", clip_with(factor=lambda norms, c: np.where(norms > 1, c / norms, 1)),
         "You shorten the rows that are longer than 1. Those longer than C are meant."),
        ("shortens-every-row", clip_with(factor=lambda norms, c: c / (c + norms)),
         "You shorten every row, by C/(C + length). The bound holds, but here rows that are "
         "short enough stay as they are."),
        ("clips-twice", clip_with(factor=lambda norms, c: 1 / np.maximum(1, norms / c) ** 2),
         "Your factor comes twice, so that long rows end below C."),
        ("lengthens-only",
         clip_with(factor=lambda norms, c: np.maximum(1, c / np.maximum(norms, 1e-300))),
         "You took the maximum of 1 and C/norm where the minimum belongs: now short rows grow "
         "and long ones stay."),
        ("drops-long-rows", clip_with(factor=lambda norms, c: norms <= c),
         "You set the long rows to zero. That is private too, but it silences the very people "
         "that the model is wrong about: shorten them to C, so that everybody still pulls."),
        ("zero-over-zero",
         clip_with(factor=lambda norms, c: np.where(norms == 0, np.nan, np.minimum(1, c / norms))),
         "A row of zeros becomes NaN: you divided 0 by 0. It should stay as it is. np.maximum(1, "
         "norms / C) never is 0."),
        ("small-number-in-the-norm",
         clip_with(factor=lambda norms, c: np.minimum(1, c / (norms + 1e-6))),
         "You added 1e-6 to the norm, as some libraries do against a division by 0. That errs on "
         "the safe side, but a row that is hardly longer than that comes out much too short. "
         "Here the length is to be exactly C."),
        changes_its_input(clips_in_place),
    ),
    hints=(
        "Each row is multiplied by a factor of its own: 1 if it is short enough, and C over its "
        "length if it is not.",
        "np.linalg.norm(gradients, axis=1, keepdims=True) is a column of lengths. Divide by "
        "np.maximum(1, lengths / C), which is 1 for short rows and for zeros.",
    ),
    lesson="After this nobody pulls with more than C, whatever her record is. That one number "
           "makes it possible to say how much noise is enough.",
)


# -------------------------------------------------------------------------------------------- 4.3

def per_example_norms(inputs, output_gradients):
    squares = (inputs**2).sum(axis=1) + 1
    return np.linalg.norm(output_gradients, axis=1) * np.sqrt(squares)


def per_example_norms_naive(inputs, output_gradients):
    return [float(np.linalg.norm(np.append(np.outer(g, a).ravel(), g)))
            for a, g in zip(inputs, output_gradients, strict=True)]


def per_example_norms_built(inputs, output_gradients):
    weights = output_gradients[:, :, np.newaxis] * inputs[:, np.newaxis, :]
    squares = np.einsum("ijk,ijk->i", weights, weights)
    return np.sqrt(squares + np.einsum("ij,ij->i", output_gradients, output_gradients))


def per_example_norms_with_ones(inputs, output_gradients):
    with_one = np.column_stack([inputs, np.ones(len(inputs))]).astype(np.float32)
    return np.sqrt(np.square(with_one).sum(1) * np.square(output_gradients).sum(1))


def norms_with(combine):
    """Wrong norms: combine(|a|, |g|) of the two lengths of each person."""
    return lambda inputs, output_gradients: combine(
        np.linalg.norm(inputs, axis=1), np.linalg.norm(output_gradients, axis=1))


@by_place(per_example_norms)
def norm_of_the_whole_layer(a, g):
    return np.full(len(a), math.hypot(np.linalg.norm(g.T @ a), np.linalg.norm(g.sum(axis=0))))


def norm_cases(rng):
    cases = [
        ([[3.0, 4.0], [0.0, 0.0]], [[2.0], [-5.0]]),
        ([[1.0, -2.0, 2.0], [6.0, 2.0, -3.0]], [[0.0, 0.0], [4.0, -3.0]]),
        (np.zeros((0, 4)), np.zeros((0, 2))),
    ]
    for n, d_in, d_out in ((4, 5, 3), (7, 2, 6), (50, 60, 40)):
        cases.append((rng.normal(0, 2, (n, d_in)), rng.normal(0, 0.5, (n, d_out))))
    return [{"inputs": np.array(a), "output_gradients": np.array(g)} for a, g in cases]


NORMS = Exercise(
    "4.3", "Norms without the gradients", 2, function="per_example_norms", right=per_example_norms,
    others=(per_example_norms_naive, per_example_norms_built, per_example_norms_with_ones),
    parts=(Exact(norm_cases, tolerance=1e-6,
                 proof="the norms are those of the gradients written out"),),
    mistakes=listed(
        ("bias-forgotten", norms_with(lambda a, g: a * g),
         "The bias is missing: its gradient is g itself, so its square has to be counted too. A "
         "norm that is too small lets a person pull with more than C."),
        ("bias-only", norms_with(lambda a, g: g),
         "This is the length of the gradient by the bias alone. The weights have d_out times "
         "d_in more coordinates, g times a."),
        ("lengths-added", norms_with(lambda a, g: a * g + g),
         "You added the length for the weights and the length for the bias. They are parts of "
         "one vector: squares add up, lengths do not."),
        ("one-outside-the-root", norms_with(lambda a, g: np.sqrt(a**2 * g**2 + 1)),
         "You added 1 for the bias. Its gradient is g, so its squared length is |g|^2: the 1 "
         "belongs beside |a|^2, inside the bracket that |g|^2 multiplies."),
        ("bias-not-squared", norms_with(lambda a, g: np.sqrt(a**2 * g**2 + g)),
         "The length of the bias gradient has to be squared before it is added: |g|^2, not |g|."),
        ("bias-from-the-input", norms_with(lambda a, g: a * np.sqrt(g**2 + 1)),
         "You gave the bias the gradient a. Since z = Wa + b, its gradient is g: 1 belongs to "
         "|a|^2."),
        known("mean-in-the-length", by_place(per_example_norms)(
                  lambda a, g: np.sqrt(((a**2).mean(axis=1) + 1) * (g**2).sum(axis=1)))),
        ("sum-of-squares", norms_with(lambda a, g: np.sqrt(a**2 + g**2)),
         "You put a and g side by side. The gradient by the weights is their outer product, each "
         "g times each a: lengths multiply."),
        ("not-rooted", norms_with(lambda a, g: g**2 * (a**2 + 1)),
         "This is the squared norm: the root is missing."),
        ("half-rooted", norms_with(lambda a, g: g * (a**2 + 1)),
         "The root covers |a|^2 + 1 as well: |g| times the root of (|a|^2 + 1)."),
        ("norm-of-the-batch", norm_of_the_whole_layer,
         "This is the norm of the gradient of the whole batch, the same for everybody. In the "
         "sum one person's share is lost: one number for each row."),
        ("divided-by-n",
         by_place(per_example_norms)(lambda a, g: per_example_norms(a, g) / max(len(a), 1)),
         "You divided by the number of people. Each norm belongs to one person and is the same "
         "whoever else is in the batch."),
        known("l1-norm", by_place(per_example_norms)(
                  lambda a, g: np.abs(g).sum(axis=1) * (np.abs(a).sum(axis=1) + 1))),
        ("one-for-each-output", by_place(per_example_norms)(
             lambda a, g: np.abs(g) * np.sqrt((a**2).sum(axis=1, keepdims=True) + 1)),
         "You have a norm for each person and output: the length by the weights of one row. Put "
         "the outputs together too, by their squares."),
        ("input-only", norms_with(lambda a, g: np.sqrt(a**2 + 1)),
         "The output gradients do not enter your answer. Two people with the same input pull "
         "differently if the model is wrong about one of them."),
    ),
    hints=(
        "The gradient by the weights has the coordinates g_j a_k. Add up their squares over all j "
        "and k: the double sum is a product of two sums.",
        "The bias is like one more input that is always 1. So the squared norm is |g|^2 times "
        "(|a|^2 + 1).",
    ),
    lesson="Neither the norms nor the clipped sum (one matrix product, with the rows of G scaled) "
           "need the gradient of any single person: private training need not be much slower than "
           "the usual kind. In papers this is called ghost clipping and book-keeping.",
)


# -------------------------------------------------------------------------------------------- 4.4

def poisson_batch(people, sampling_rate, rng):
    return rng.random(people) < sampling_rate


def poisson_batch_loop(people, sampling_rate, rng):
    return [int(rng.binomial(1, sampling_rate)) for _ in range(people)]


def mask(people, indices):
    batch = np.zeros(people, bool)
    batch[indices] = True
    return batch


def poisson_batch_by_size(people, sampling_rate, rng):
    """The size first, from its law; then people of that number, all sets equally likely."""
    return mask(people, rng.choice(people, rng.binomial(people, sampling_rate), replace=False))


def poisson_batch_by_gaps(people, sampling_rate, rng):
    """How many people are passed over until the next one is taken is geometric."""
    batch, place = np.zeros(people, bool), -1
    while (place := place + rng.geometric(sampling_rate)) < people:
        batch[place] = True
    return batch


def at_random(size):
    """A wrong batch: size(n, q, rng) people, all sets of that size equally likely."""
    return lambda people, sampling_rate, rng: mask(
        people, rng.permutation(people)[:size(people, sampling_rate, rng)])


def coins_of(chance):
    """A wrong batch: a coin for each with chance(n, q) of heads."""
    return lambda people, sampling_rate, rng: rng.random(people) < chance(people, sampling_rate)


fixed_size = at_random(lambda n, q, rng: round(q * n))


def with_replacement(people, sampling_rate, rng):
    return mask(people, rng.integers(0, people, round(sampling_rate * people)))


def every_so_many(people, sampling_rate, rng):
    stride = round(1 / sampling_rate)
    return (np.arange(people) + rng.integers(stride)) % stride == 0


def never_empty(people, sampling_rate, rng):
    batch = poisson_batch(people, sampling_rate, rng)
    return batch if batch.any() else mask(people, rng.integers(people))


def the_first_ones(people, sampling_rate, rng):
    return np.arange(people) < rng.binomial(people, sampling_rate)


def neighbours_together(people, sampling_rate, rng):
    size, start = rng.binomial(people, sampling_rate), rng.integers(people)
    return (np.arange(people) - start) % people < size


# At this rate no wrong one is near: round(q n)/n is 0.25, 1/round(1/q) is 1/3.
BATCH = {"people": 12, "sampling_rate": 0.29}
SMALL = {"people": 4, "sampling_rate": 0.25}


def capped(law, largest):
    """The law of a whole number from 0 on, of which what is above `largest` is cut off."""
    values = np.arange(largest + 1)
    masses = law.pmf(values)
    masses[-1] += law.sf(largest)
    return chances(values, masses)


def size_laws():
    """The size of a batch out of twelve people at a rate of 0.29, by each wrong answer."""
    n, q = BATCH.values()
    return {
        "fixed-size": chances([3], [1.0]),
        "every-so-many": chances([4], [1.0]),
        # Three draws out of twelve: all of one person, of two, or of three.
        "with-replacement": chances([1, 2, 3], [1 / 144, 33 / 144, 110 / 144]),
        "one-coin-for-all": chances([0, n], [1 - q, q]),
        "rate-turned-round": stats.binom(n, 1 - q),
        "fair-coins": stats.binom(n, 0.5),
        "rate-from-the-rounded-size": stats.binom(n, 3 / n),
        "one-in-so-many": stats.binom(n, 1 / 3),
        "size-from-a-poisson-law": capped(stats.poisson(n * q), n),
        "size-capped": capped(stats.binom(n, q), 3),
    }


def batch_parts():
    n, q = BATCH.values()
    nobody = (1 - SMALL["sampling_rate"]) ** SMALL["people"]
    sizes = Law(
        BATCH, stats.binom(n, q), size_laws(), shape=(n,), count=3_000,
        noise=lambda answers, case: answers.sum(axis=1),
        advice="Draw 10,000 batches and look at the mean and the variance of their sizes: n q and "
               "n q (1 - q).")
    empty = Law(
        SMALL, stats.bernoulli(nobody), {"never-empty": stats.bernoulli(1e-9)},
        shape=(SMALL["people"],), count=500,
        noise=lambda answers, case: answers.sum(axis=1) == 0,
        advice="Count how often your batch is empty.")
    # More than twice the expected size: now and then it has to be.
    large = Law(
        BATCH, stats.bernoulli(stats.binom(n, q).sf(6)),
        {"size-capped-at-twice": stats.bernoulli(1e-9)}, shape=(n,), count=1_500,
        noise=lambda answers, case: answers.sum(axis=1) > 6,
        advice="Count how often your batch is more than twice as large as expected.")
    each = Law(
        BATCH, stats.bernoulli(q), {"the-first-ones": stats.bernoulli(1 - (1 - q) ** n)},
        shape=(n,), count=1_000, noise=lambda answers, case: answers[:, 0],
        advice="Count how often each person is in.")
    return (
        Exact(lambda rng: [{"people": n, "sampling_rate": 1.0} for n in (1, 3, 5)], seeded=True,
              proof="at a rate of 1 everybody is in", allowed="at a rate of 1 everybody is in."),
        # Four batches out of forty people come twice with chance below 1e-40.
        Randomness({"people": 40, "sampling_rate": 0.5}),
        sizes, empty, large, each,
        Independent(BATCH, stats.bernoulli(q), noise=lambda answers, case: answers, count=1_500,
                    mistake="neighbours-together"),
    )


POISSON = Exercise(
    "4.4", "A Poisson batch", 1, function="poisson_batch", right=poisson_batch,
    others=(poisson_batch_loop, poisson_batch_by_size, poisson_batch_by_gaps),
    parts=batch_parts(),
    mistakes=listed(
        ("returns-indices", lambda **case: np.flatnonzero(poisson_batch(**case)),
         "You returned the numbers of those who are in. Here the answer has one entry for each "
         "person, True or False."),
        ("fixed-size", fixed_size,
         "Your batch always has the same size. Then who is in depends on who else is, and with "
         "one person more everybody's chance changes. The accountant for Poisson batches does "
         "not cover that, nor the usual shuffled batches."),
        ("every-so-many", every_so_many,
         "You take people at a fixed distance, from a random start. Even where each has the "
         "chance q, they are not independent: two of them are always in together."),
        ("with-replacement", with_replacement,
         "You draw a fixed number of people with replacement. Poisson sampling asks each person "
         "once, so nobody is drawn twice, and the number is left to chance."),
        ("one-coin-for-all",
         lambda people, sampling_rate, rng: np.full(people, rng.random() < sampling_rate),
         "One coin decides for all: the batch is everybody or nobody. Each person needs a coin "
         "of her own: rng.random(people)."),
        ("rate-turned-round", coins_of(lambda n, q: 1 - q if q < 1 else q),
         "Your people are in with chance 1 - q. A uniform number lies *below* q with chance q."),
        ("fair-coins", coins_of(lambda n, q: 0.5 if q < 1 else q),
         "Your coins are fair, whatever the sampling rate is."),
        ("rate-from-the-rounded-size", coins_of(lambda n, q: round(q * n) / n),
         "Your people are in a little too rarely, with a chance of about round(q n)/n. Compare "
         "with q itself: no size is planned, so none has to be a whole number."),
        ("one-in-so-many", coins_of(lambda n, q: 1 / round(1 / q)),
         "Your people are in a little too often, with a chance of about 1/round(1/q). Compare "
         "with q itself: nothing has to be a whole number."),
        ("size-from-a-poisson-law", at_random(lambda n, q, rng: rng.poisson(q * n) if q < 1 else n),
         "You drew the size from a Poisson law. The name misleads: with a coin for each person "
         "the size is binomial, and its variance is n q (1 - q), not n q."),
        ("size-capped",
         at_random(lambda n, q, rng: min(rng.binomial(n, q), math.ceil(q * n - 0.5))),
         "Your batch is never larger than its expected size. Cut off like that, people are left "
         "out because others came, which the accountant for Poisson batches does not cover."),
        ("size-capped-at-twice",
         at_random(lambda n, q, rng: min(rng.binomial(n, q), int(2 * q * n))),
         "Your batch is never more than twice as large as expected. Poisson batches have no "
         "largest size: whoever is cut off leaves because others came."),
        ("never-empty", never_empty,
         "Your batch is never empty. It has to be now and then: the chance of that is (1 - q)^n. "
         "Otherwise a person who is alone in the data would be in every batch, and the "
         "accountant thinks that she is there with chance q."),
        ("the-first-ones", the_first_ones,
         "The size is right, but it is always the people at the top of the table who are in. "
         "Everybody needs the same chance."),
        ("neighbours-together", neighbours_together,
         "People do not enter your batch independently: whether one is in says something about "
         "another, for instance the next in the table. Each needs a coin of her own."),
        *randomness_mistakes(poisson_batch, lambda people, sampling_rate: np.arange(people)
                              < round(sampling_rate * people)),
    ),
    hints=(
        "Toss a coin for each person, with chance q of heads. That is all: no size is chosen "
        "beforehand.",
        "rng.random(people) gives one number between 0 and 1 for each; it is below q with chance "
        "q.",
    ),
    lesson="An empty batch is no accident to be mended, and a fixed size no harmless variant: the "
           "epsilon of the accountants is computed for these coins and for nothing else.",
)


# -------------------------------------------------------------------------------------------- 4.5

def noisy_average(clipped, max_grad_norm, noise_multiplier, batch_size, rng):
    noise = rng.normal(0, noise_multiplier * max_grad_norm, clipped.shape[1])
    return (clipped.sum(axis=0) + noise) / batch_size


def noisy_average_loop(clipped, max_grad_norm, noise_multiplier, batch_size, rng):
    average = []
    for column in clipped.T:
        total = sum(float(value) for value in column)
        total += noise_multiplier * max_grad_norm * rng.standard_normal()
        average.append(total / batch_size)
    return average


def noisy_average_inverse(clipped, max_grad_norm, noise_multiplier, batch_size, rng):
    noise = special.ndtri(rng.random(clipped.shape[1]))
    width = noise_multiplier * max_grad_norm / batch_size
    return (np.ones(len(clipped)) @ clipped / batch_size + width * noise).astype(np.float32)


def average_with(width=lambda sigma, c, b, rows: sigma * c / b, draw=None):
    """A wrong average: another width of the noise, or another draw(width, size, rng, rows)."""

    @by_place(noisy_average)
    def wrong(rows, c, sigma, b, rng):
        wide, d = width(sigma, c, b, rows), rows.shape[1]
        noise = draw(wide, d, rng, rows) if draw else rng.normal(0, wide, d)
        return rows.sum(axis=0) / b + noise

    return wrong


def average_of(rows=lambda rows, b: rows, divisor=lambda rows, b: b):
    """A wrong average: of other rows(rows, batch_size), sum and noise over another divisor."""
    return by_place(noisy_average)(lambda clipped, c, sigma, b, rng: noisy_average(
        rows(clipped, b), c, sigma, divisor(clipped, b), rng))


def longest(rows):
    return np.linalg.norm(rows, axis=1).max(initial=0.0)


@by_place(noisy_average)
def no_noise_when_empty(rows, c, sigma, b, rng):
    return noisy_average(rows, c, sigma, b, rng) if len(rows) else np.zeros(rows.shape[1])


# All rows are shorter than C, so that noise made for them is not noise for C.
ROWS = np.array([[0.5, -1.0, 0.25], [1.0, 0.5, 0.5], [-0.5, 0.75, 0.0], [0.0, -0.25, 1.0],
                 [0.75, 0.5, -0.5]])
AVERAGE = {"clipped": ROWS, "max_grad_norm": 2.5, "noise_multiplier": 2.2, "batch_size": 8}
NOBODY = {**AVERAGE, "clipped": np.zeros((0, 3))}


def average_noise(answers, case):
    return answers - case["clipped"].sum(axis=0) / case["batch_size"]


def average_laws():
    rows, c, sigma, b = AVERAGE.values()
    wide, (people, weights) = sigma * c / b, rows.shape
    normal = {
        "noise-on-the-average": sigma * c,
        "noise-divided-twice": wide / b,
        "root-of-the-batch": sigma * c / math.sqrt(b),
        "noise-over-who-came": sigma * c / people,
        "norm-forgotten": sigma / b,
        "noise-from-the-rows": sigma * longest(rows) / b,
        "multiplier-forgotten": c / b,
        "deviation-as-variance": math.sqrt(sigma * c) / b,
        "noise-for-each-row": wide * math.sqrt(people),
        "noise-for-a-cube": wide * math.sqrt(weights),
        "twice-the-noise": 2 * wide,
        "norm-squared": wide * c,
    }
    whole = Law(
        AVERAGE, stats.norm(0, wide),
        {"laplace": stats.laplace(0, wide),
         "uniform": stats.uniform(-wide * 3**0.5, wide * 12**0.5)}
        | {name: stats.norm(0, width) for name, width in normal.items()} | a_little_off_laws(wide),
        shape=(weights,), count=4_000,
        noise=lambda answers, case: average_noise(answers, case).ravel(),
        advice="Call your function 10,000 times on one set of rows and look at the standard "
               "deviation of each coordinate: sigma C / batch_size.")
    # Normal noise passes 2.5 deviations once in eighty draws; where it never does, it is cut off.
    tails = Law(
        AVERAGE, stats.bernoulli(2 * stats.norm.sf(2.5)), {"cut-off": stats.bernoulli(1e-9)},
        shape=(3,), count=2_000,
        noise=lambda answers, case: np.ravel(np.abs(average_noise(answers, case)) > 2.5 * wide),
        advice="Look at how often your noise is far out.")
    return whole, tails


def average_cases(rng):
    cases = [
        (np.array([[0.6, 0.8], [0.3, -0.4]]), 1.0, 4),
        (np.zeros((0, 2)), 1.0, 3),
        (np.array([[1.0, -1.0, 0.5]]), 1.5, 10),
        (np.array([[1.0, 2.0], [3.0, 4.0], [0.5, 0.0], [-2.0, 1.0]]), 5.0, 3),  # more than planned
    ]
    for _ in range(3):
        size = (int(rng.integers(2, 9)), int(rng.integers(2, 6)))
        bound = float(rng.uniform(0.5, 4))
        rows = clip_gradients(rng.normal(0, 2, size), bound)
        cases.append((rows, bound, int(rng.integers(10, 30))))
    return [{"clipped": rows, "max_grad_norm": bound, "noise_multiplier": 1e-14, "batch_size": b}
            for rows, bound, b in cases]


def average_in_place(clipped, **case):
    clipped += 0.0 * clipped + 1e-3
    return noisy_average(clipped, **case)


NOISE = Exercise(
    "4.5", "Noise on the sum, then divide", 2, function="noisy_average", right=noisy_average,
    others=(noisy_average_loop, noisy_average_inverse),
    parts=(
        Randomness(AVERAGE),
        # Eight draws agree to 1e-9 with chance far below 1e-9.
        Separate({**AVERAGE, "clipped": np.full((2, 8), 0.25)}),
        Exact(average_cases, tolerance=1e-5, seeded=True,
              proof="with hardly any noise the sum over the planned size is left"),
        *average_laws(),
        Randomness(NOBODY, everywhere=True, mistake="no-noise-when-empty"),
        Independent(AVERAGE, stats.norm(0, 2.2 * 2.5 / 8), noise=average_noise,
                    mistake="draws-hang-together"),
    ),
    mistakes=listed(
        known("one-draw-for-all",
              average_with(draw=lambda wide, d, rng, rows: rng.normal(0, wide))),
        known("divides-by-who-came", average_of(divisor=lambda rows, b: max(len(rows), 1))),
        ("divides-by-the-larger", average_of(divisor=lambda rows, b: max(len(rows), b)),
         "When more people come than planned you divide by their number. It is private, also "
         "then: divide by the planned size always."),
        known("rows-cut-off", average_of(rows=lambda rows, b: rows[:b])),
        known("not-divided", average_of(divisor=lambda rows, b: 1)),
        known("noise-on-the-average", average_with(width=lambda sigma, c, b, rows: sigma * c)),
        ("noise-divided-twice", average_with(width=lambda sigma, c, b, rows: sigma * c / b**2),
         "Your noise was divided by the batch size twice. A person moves the sum by up to C, so "
         "the noise on the sum is sigma C; dividing once makes both smaller alike."),
        ("root-of-the-batch",
         average_with(width=lambda sigma, c, b, rows: sigma * c / math.sqrt(b)),
         "You divided the noise by the root of the batch size. That is how the noise of an "
         "average of separate draws shrinks; here is one draw, divided as the sum is."),
        ("noise-over-who-came",
         average_with(width=lambda sigma, c, b, rows: sigma * c / max(1, len(rows))),
         "The sum is divided by the planned size and the noise by the number of rows. Both "
         "belong over the planned size; how many came is private."),
        known("norm-forgotten", average_with(width=lambda sigma, c, b, rows: sigma / b)),
        ("norm-squared", average_with(width=lambda sigma, c, b, rows: sigma * c**2 / b),
         "The clipping norm enters your noise twice. On the sum its deviation is sigma times C."),
        ("noise-from-the-rows",
         average_with(width=lambda sigma, c, b, rows: sigma * longest(rows) / b),
         "Your noise is made for the longest row that came. That length is private: Meera may be "
         "the one who sets it. C is public and fixed before."),
        ("multiplier-forgotten", average_with(width=lambda sigma, c, b, rows: c / b),
         "The noise multiplier does not enter your noise."),
        ("deviation-as-variance",
         average_with(width=lambda sigma, c, b, rows: math.sqrt(sigma * c) / b),
         "The variance of your noise is what its standard deviation ought to be. rng.normal "
         "takes the standard deviation, not its square."),
        ("laplace", average_with(draw=lambda wide, d, rng, rows: rng.laplace(0, wide, d)),
         "Your noise is Laplace noise. It goes with the L1 norm; these rows are bounded in "
         "Euclidean length, and the accountant counts on normal noise."),
        ("uniform",
         average_with(draw=lambda wide, d, rng, rows:
                      rng.uniform(-wide * 3**0.5, wide * 3**0.5, d)),
         "Your noise is uniform. It ends somewhere, so some releases are possible for one data "
         "set and impossible for its neighbour: draw with rng.normal."),
        known("noise-for-each-row",
              average_with(draw=lambda wide, d, rng, rows:
                           rng.normal(0, wide, (max(1, len(rows)), d)).sum(axis=0))),
        ("noise-for-a-cube",
         average_with(width=lambda sigma, c, b, rows: sigma * c / b * math.sqrt(rows.shape[1])),
         "Your noise has a factor of the root of d, as if each coordinate could move by C. The "
         "whole row is at most C long, whatever d is."),
        ("twice-the-noise", average_with(width=lambda sigma, c, b, rows: 2 * sigma * c / b),
         "Your noise is twice as wide as it must be. That is for a row that is replaced by its "
         "opposite; under add/remove a row comes or goes, and moves the sum by at most C."),
        ("cut-off",
         average_with(draw=lambda wide, d, rng, rows:
                      wide * np.clip(rng.normal(size=d), -2.5, 2.5)),
         "Your noise never goes far out. Cutting the tails off makes releases that are possible "
         "for one data set and impossible for its neighbour; delta pays for the thin tails of "
         "the whole normal law only."),
        ("no-noise-when-empty", no_noise_when_empty,
         "For an empty batch your answer carries no noise. An answer that is exactly 0 then, and "
         "only then, tells that nobody was there."),
        known("draws-hang-together",
              average_with(draw=lambda wide, d, rng, rows:
                           np.abs(rng.normal(0, wide, d)) * rng.choice([-1, 1]))),
        *a_little_off(noisy_average),
        changes_its_input(average_in_place),
        *randomness_mistakes(noisy_average, without_noise(noisy_average)),
    ),
    hints=(
        "Three things in this order: add up the rows, add normal noise to each coordinate of the "
        "sum, divide everything by batch_size.",
        "rng.normal(0, width, size) with one draw for each of the d coordinates. How far can one "
        "row of length at most C move the sum?",
    ),
    lesson="Noise and division by a public number could change places, if the width went along. "
           "That a large batch hides a person well is the work of the clipping: without it one "
           "share of the sum might be longer than all the others together.",
)


# -------------------------------------------------------------------------------------------- 4.6

def dp_sgd_step(
    w, X, y, sampling_rate, max_grad_norm, noise_multiplier, batch_size, learning_rate, rng
):
    batch = poisson_batch(len(X), sampling_rate, rng)
    rows = clip_gradients(per_example_gradients(X[batch], y[batch], w), max_grad_norm)
    average = noisy_average(rows, max_grad_norm, noise_multiplier, batch_size, rng)
    return w - learning_rate * average


a_step = by_place(dp_sgd_step)


@a_step
def dp_sgd_step_loop(w, X, y, q, c, sigma, b, rate, rng):
    total = [sigma * c * rng.standard_normal() for _ in w]
    for x, label in zip(X, y, strict=True):
        if rng.random() < q:
            error = float(special.expit(np.dot(x, w))) - label
            length = abs(error) * math.sqrt(sum(value * value for value in x))
            factor = error / max(1, length / c)
            total = [old + factor * value for old, value in zip(total, x, strict=True)]
    return [old - rate * pull / b for old, pull in zip(w, total, strict=True)]


@a_step
def dp_sgd_step_masked(w, X, y, q, c, sigma, b, rate, rng):
    """Nobody is left out of the arithmetic; who is not in the batch has the factor 0."""
    errors = special.expit(X @ w) - y
    norms = np.abs(errors) * np.linalg.norm(X, axis=1)
    factors = rng.binomial(1, q, len(X)) * np.minimum(1, c / np.maximum(norms, 1e-300))
    noise = rng.normal(size=len(w)) * rate * sigma * c / b
    return (w - rate / b * ((factors * errors) @ X) - noise).astype(np.float32)


def step_with(*, batch=poisson_batch, pull=lambda rows, c, b: clip_gradients(rows, c).sum(axis=0),
              noise=lambda width, rows, rng: rng.normal(0, width, rows.shape[1]),
              size=lambda rows, X, q, b: b, sign=-1):
    """A wrong step: another batch, clipped sum, noise on it, divisor or sign."""

    @a_step
    def wrong(w, X, y, q, c, sigma, b, rate, rng):
        chosen = batch(len(X), q, rng)
        rows = per_example_gradients(X[chosen], y[chosen], w)
        total = pull(rows, c, b) + noise(sigma * c, rows, rng)
        return w + sign * rate * total / size(rows, X, q, b)

    return wrong


def clipped_together(total, bound):
    return clip_gradients(total[np.newaxis], bound)[0]


def pairs_clipped(rows, bound, batch_size):
    """The average of every two rows is clipped, and counts for two."""
    pairs = [rows[start : start + 2] for start in range(0, len(rows), 2)]
    return sum((len(pair) * clipped_together(pair.mean(axis=0), bound) for pair in pairs),
               np.zeros(rows.shape[1]))


def step_noise_after(width):
    """A wrong step: noise of width(sigma, C, B, rate) on the new weights."""

    @a_step
    def wrong(w, X, y, q, c, sigma, b, rate, rng):
        quiet = dp_sgd_step(w, X, y, q, c, 0.0, b, rate, rng)
        return quiet + rng.normal(0, width(sigma, c, b, rate), len(w))

    return wrong


@a_step
def step_clipped_last(w, X, y, q, c, sigma, b, rate, rng):
    batch = poisson_batch(len(X), q, rng)
    rows = per_example_gradients(X[batch], y[batch], w)
    rows = rows + rng.normal(0, sigma * c, rows.shape)
    return w - rate * clip_gradients(rows, c).sum(axis=0) / b


@a_step
def step_skips_empty(w, X, y, q, c, sigma, b, rate, rng):
    batch = poisson_batch(len(X), q, rng)
    return dp_sgd_step(w, X[batch], y[batch], 1.0, c, sigma, b, rate, rng) if batch.any() else w


def step_in_place(w, rng, **case):
    w += dp_sgd_step(w, rng=rng, **case) - w
    return w


def step_returns_the_gradient(w, learning_rate, **case):
    return (w - dp_sgd_step(w, learning_rate=learning_rate, **case)) / learning_rate


def step_without_rate(learning_rate, **case):
    return dp_sgd_step(learning_rate=1.0, **case)


def noise_in_pairs(width, rows, rng):
    """Two neighbours share a draw."""
    d = rows.shape[1]
    return np.repeat(rng.normal(0, width, (d + 1) // 2), 2)[:d]


# Gradients of zeros: only the noise moves the weights, by a deviation of 0.5 * 2.2 * 2.5 / 8.
STILL = {
    "w": np.array([1.0, -2.0, 0.5, 0.0, 3.0, -1.5, 0.0, 2.0]), "X": np.zeros((5, 8)),
    "y": np.array([0, 1, 0, 1, 1]), "sampling_rate": 1.0, "max_grad_norm": 2.5,
    "noise_multiplier": 2.2, "batch_size": 8, "learning_rate": 0.5,
}
ONE_NOISE = 0.5 * 2.2 * 2.5 / 8
MOVING = {**STILL, "X": np.arange(40.0).reshape(5, 8) / 20 - 1, "sampling_rate": 0.5}
EMPTY = {**STILL, "X": np.ones((2, 8)), "y": np.array([0, 1]), "sampling_rate": 1e-4}
# A coordinate for each of eight people: whoever is in the batch moves hers by -1.
SEEN = {
    "w": np.zeros(8), "X": np.eye(8), "y": np.zeros(8, int), "sampling_rate": 0.25,
    "max_grad_norm": 0.25, "noise_multiplier": 0.0, "batch_size": 2, "learning_rate": 8.0,
}
# The same for a crowd, in which the size of a batch is never the planned 2, nor q n = 30.3.
CROWD = {**SEEN, "w": np.zeros(101), "X": 100 * np.eye(101), "y": np.zeros(101, int),
         "sampling_rate": 0.3, "learning_rate": 4.0}


def who_was_in(answers, case):
    return np.rint(-answers)


def still_noise(answers, case):
    return answers - case["w"]


def divisor(answer):
    """What an answer to CROWD was divided by, where that is private or wrong by a factor of q."""
    moves = np.abs(np.asarray(answer, dtype=float))
    moved = moves[moves > 0]
    if len(moved) and np.ptp(moved) < 1e-4 * moved.max():
        known = {"the plan": [2], "q times the plan": [0.3 * 2], "who came": [len(moved)],
                 "the number of rows": [101, 0.3 * 101, 30]}
        for name, sizes in known.items():
            if any(math.isclose(1 / moved[0], size, rel_tol=1e-3) for size in sizes):
                return name
    return "the plan"


def is_far_out(answer):
    return bool(np.linalg.norm(answer) > 1e3)


def step_cases(rng):
    X = np.array([[3.0, 4.0, 0.0], [0.1, 0.2, 0.1], [-2.0, 1.0, 3.0]])
    cases = [(np.array([1.0, -2.0, 0.5]), X, np.array([0, 1, 1]), 1.0, 8)]
    for _ in range(3):
        n, d = int(rng.integers(4, 9)), int(rng.integers(2, 5))
        cases.append((rng.normal(0, 1, d), rng.normal(0, 3, (n, d)), rng.integers(0, 2, n),
                      float(rng.uniform(0.2, 0.4)), int(rng.integers(2, 4))))
    return [{"w": w, "X": X, "y": y, "sampling_rate": 1.0, "max_grad_norm": c,
             "noise_multiplier": 0.0, "batch_size": b, "learning_rate": float(rng.uniform(2, 4))}
            for w, X, y, c, b in cases]


def who_is_in(case):
    """The parts on a step with SEEN: how many are in, and whether they are in independently."""
    law = stats.binom(8, 0.25)
    masses = law.pmf(range(1, 9)) + np.eye(8)[0] * law.pmf(0)
    sizes = Law(
        case, law, {"no-sampling": chances([8], [1.0]), "fixed-size-batches": chances([2], [1.0]),
                    "never-empty": chances(range(1, 9), masses)},
        shape=(8,), count=1_000, noise=lambda answers, case: who_was_in(answers, case).sum(axis=1),
        advice="Look at how many people move the weights in a step, and by how much: each is in "
               "the batch with chance q, by a coin of her own, and pulls with at most C.")
    return sizes, Independent(case, stats.bernoulli(0.25), noise=who_was_in,
                              mistake="people-together")


def batch_mistakes(with_batch):
    """The mistakes of a batch in an exercise that draws one, from with_batch(batch)."""
    return (
        Mistake("no-sampling", with_batch(lambda n, q, rng: np.ones(n, bool)),
                "Everybody is in your batch. That is a fine mechanism, but another one: the "
                "accountant counts on a chance of q, and the batch size is planned for it."),
        Mistake("fixed-size-batches", with_batch(fixed_size),
                "Your batches always have the same size. Each person needs a coin of her own in "
                "each step (exercise 4.4)."),
        Mistake("never-empty", with_batch(never_empty),
                "Your batches are never empty. They have to be now and then (exercise 4.4)."),
        Mistake("people-together", with_batch(neighbours_together),
                "People do not enter your batch independently: whether one is in says something "
                "about another. Each needs a coin of her own in each step (exercise 4.4)."),
    )


def step_parts():
    noises = Law(
        STILL, stats.norm(0, ONE_NOISE),
        {"noise-on-the-average": stats.norm(0, ONE_NOISE * 8),
         "noise-without-learning-rate": stats.norm(0, ONE_NOISE / 0.5),
         "norm-forgotten": stats.norm(0, ONE_NOISE / 2.5),
         "noise-for-each-row": stats.norm(0, ONE_NOISE * math.sqrt(5)),
         **a_little_off_laws(ONE_NOISE)},
        shape=(8,), count=1_500, noise=lambda answers, case: still_noise(answers, case).ravel(),
        advice="With gradients of zeros each weight moves by normal noise with a standard "
               "deviation of learning_rate sigma C / batch_size.")
    return (
        Randomness(STILL),
        Randomness(MOVING),
        Separate({**STILL, "w": np.zeros(8), "X": np.zeros((2, 8)), "y": np.array([0, 1])}),
        Exact(lambda rng: [CROWD], seeded=True, tidy=divisor,
              proof="the divisor is the planned size", allowed="divide by the planned batch_size."),
        Exact(step_cases, tolerance=1e-5, seeded=True,
              proof="without noise and with everybody in, the new weights agree"),
        # Noise of deviation 1e8 in eight coordinates stays below 1e3 with chance below 1e-9.
        Exact(lambda rng: [{**STILL, "noise_multiplier": 6.4e8}], seeded=True, tidy=is_far_out,
              proof="the noise comes after the clipping",
              allowed="with so much noise it should be far from 0."),
        noises, *who_is_in(SEEN),
        Independent(STILL, stats.norm(0, ONE_NOISE), noise=still_noise,
                    mistake="draws-hang-together"),
        Randomness(EMPTY, everywhere=True, mistake="skips-empty-batches"),
    )


STEP = Exercise(
    "4.6", "One step of DP-SGD", 3, function="dp_sgd_step", right=dp_sgd_step,
    others=(dp_sgd_step_loop, dp_sgd_step_masked),
    parts=step_parts(),
    mistakes=listed(
        known("uphill", step_with(sign=1)),
        known("divides-by-who-came", step_with(size=lambda rows, X, q, b: max(len(rows), 1))),
        ("size-from-the-data", step_with(size=lambda rows, X, q, b: q * len(X)),
         "You divide by the number of people in the table, or q times that. Under add/remove "
         "that number is private: with Meera it is one more. The planned batch_size is public."),
        ("divided-by-the-rate", step_with(size=lambda rows, X, q, b: q * b),
         "You divide by q as well, as if those who came stood for those who did not. The planned "
         "batch_size is q n already: divide by it alone."),
        known("not-divided", step_with(size=lambda rows, X, q, b: 1)),
        ("clipping-forgotten", step_with(pull=lambda rows, c, b: rows.sum(axis=0)),
         "You do not clip. Then nothing bounds what one person can do, and no noise is enough."),
        known("clips-each-coordinate",
              step_with(pull=lambda rows, c, b: np.clip(rows, -c, c).sum(axis=0))),
        ("clips-the-average",
         step_with(pull=lambda rows, c, b: b * clipped_together(rows.sum(axis=0) / b, c)),
         "You clipped the average gradient. One person may turn it round altogether, and that is "
         "2C and not C / batch_size: clip each row before you add (exercise 4.7)."),
        ("clips-the-sum", step_with(pull=lambda rows, c, b: clipped_together(rows.sum(axis=0), c)),
         "You clipped the sum of the gradients. Clip each person's row, then add."),
        ("averaged-before-clipping",
         step_with(pull=lambda rows, c, b: clip_gradients(rows / max(1, len(rows)), c).sum(axis=0)),
         "You divided each gradient by the number of those who came before you clipped it, as a "
         "loss that is a mean does. That number is private, and the division comes a second time "
         "later: clip the gradients themselves."),
        ("clips-at-the-share",
         step_with(pull=lambda rows, c, b: clip_gradients(rows, c / b).sum(axis=0)),
         "You clip at C / batch_size and then divide by batch_size. Clip at C; the division "
         "makes the share of it."),
        ("clips-pairs", step_with(pull=pairs_clipped),
         "You clipped averages of small groups (microbatches). Within a group one person may "
         "turn the clipped average round, by 2C and not by C, and when she is missing the groups "
         "after her are formed anew: clip each row by itself."),
        known("rows-cut-off",
              step_with(pull=lambda rows, c, b: clip_gradients(rows[:b], c).sum(axis=0))),
        ("learning-rate-forgotten", step_without_rate,
         "The learning rate does not enter your step."),
        ("returns-the-gradient", step_returns_the_gradient,
         "You returned the noisy average gradient. Return the new weights: the old ones less "
         "learning_rate times that."),
        ("clipped-after-the-noise", step_clipped_last,
         "However wide the noise, your weights hardly move: it was clipped with the gradients. "
         "The noise comes on the sum, after the clipping."),
        known("noise-on-the-average", step_noise_after(lambda sigma, c, b, rate: rate * sigma * c)),
        ("noise-without-learning-rate", step_noise_after(lambda sigma, c, b, rate: sigma * c / b),
         "Your noise is not multiplied by the learning rate. It belongs on the gradient: then "
         "the step scales both."),
        known("norm-forgotten", step_noise_after(lambda sigma, c, b, rate: rate * sigma / b)),
        known("noise-for-each-row",
              step_with(noise=lambda width, rows, rng:
                        rng.normal(0, width, rows.shape).sum(axis=0))),
        known("one-draw-for-all", step_with(noise=lambda width, rows, rng: rng.normal(0, width))),
        known("draws-hang-together", step_with(noise=noise_in_pairs)),
        *batch_mistakes(lambda batch: step_with(batch=batch)),
        ("skips-empty-batches", step_skips_empty,
         "When nobody is drawn your weights stay as they are, without noise. A step that does "
         "not move then, and only then, tells that the batch was empty. Add noise always."),
        changes_its_input(step_in_place),
        *a_little_off(dp_sgd_step),
        *randomness_mistakes(dp_sgd_step, without_noise(dp_sgd_step, sampling_rate=1.0)),
    ),
    hints=(
        "It is made of your own answers: poisson_batch says who is in, per_example_gradients and "
        "clip_gradients give their rows, noisy_average what to move by.",
        "batch = poisson_batch(len(X), ...) is a mask: X[batch], y[batch] are those who came. "
        "Nothing special is needed for an empty batch. Return w - learning_rate * average.",
    ),
    lesson="Four lines: coins, clip, noise, move. A step that divides by who came, clips the "
           "average or skips empty batches would train a model too, and its loss curve would look "
           "fine. What it lacks is the promise.",
)


# -------------------------------------------------------------------------------------------- 4.7

RULES = ("clip-sum", "clip-sum-divide", "clip-average", "sum-clip", "sum-divide-clip")
ADJACENCIES = ("add-remove", "replace-one")


def largest_change(rule, adjacency, max_grad_norm, batch_size):
    if rule in ("sum-clip", "sum-divide-clip"):
        return 2 * max_grad_norm
    one_person = max_grad_norm / (batch_size if rule == "clip-sum-divide" else 1)
    return one_person if adjacency == "add-remove" else 2 * one_person


def largest_change_by_table(rule, adjacency, max_grad_norm, batch_size):
    both = {"clip-sum": (1, 2), "clip-average": (1, 2), "sum-clip": (2, 2),
            "sum-divide-clip": (2, 2), "clip-sum-divide": (1 / batch_size, 2 / batch_size)}
    return max_grad_norm * both[rule][adjacency == "replace-one"]


def largest_change_tried(rule, adjacency, max_grad_norm, batch_size):
    """The worst of a few neighbours on a line: a person who pulls far either way, and few others.

    On these rules it is the worst of all neighbours: one direction is enough, small batches are
    the worst for an average, and a pull far beyond every bound turns the others round.
    """
    far = 10 * max_grad_norm * batch_size

    def release(pulls):
        pulls = np.array(pulls, dtype=float)
        if rule.startswith("clip"):
            pulls = np.clip(pulls, -max_grad_norm, max_grad_norm)
        total = pulls.sum()
        if rule == "clip-average":
            return total / max(len(pulls), 1)
        total = total / (batch_size if "divide" in rule else 1)
        return np.clip(total, -max_grad_norm, max_grad_norm) if rule.endswith("clip") else total

    changes = []
    for others in ([], [far], [far, far]):
        with_her = [release([*others, pull]) for pull in (-2 * far, 2 * far, -3 * far)]
        neighbours = with_her if adjacency == "replace-one" else [release(others)]
        changes += [abs(a - b) for a in with_her for b in neighbours]
    return float(max(changes))


def change_with(**wrong_rules):
    """A wrong table: for a rule (dashes as underscores) a function of (C, B, replaced)."""

    @by_place(largest_change)
    def wrong(rule, adjacency, c, b):
        change = wrong_rules.get(rule.replace("-", "_"))
        replaced = adjacency == "replace-one"
        return change(c, b, replaced) if change else largest_change(rule, adjacency, c, b)

    return wrong


def clipped_last(change):
    """A wrong table: the same change(C, B, replaced) for both rules that clip last."""
    return change_with(sum_clip=change, sum_divide_clip=change)


def as_under(adjacency):
    """A wrong table: adjacency(given) in place of the one that is given."""
    return by_place(largest_change)(
        lambda rule, given, c, b: largest_change(rule, adjacency(given), c, b))


def once_or_twice(c, b, replaced):
    return 2 * c if replaced else c


def shared_out(c, b, replaced):
    return once_or_twice(c, b, replaced) / b


@by_place(largest_change)
def root_of_2(rule, adjacency, c, b):
    wide = math.sqrt(2) if adjacency == "replace-one" and rule.startswith("clip") else 1
    return wide * largest_change(rule, "add-remove", c, b)


def change_cases(rng):
    sizes = [(1.0, 500), (0.5, 8), (float(rng.uniform(0.2, 4)), int(rng.integers(3, 200)))]
    return [{"rule": rule, "adjacency": adjacency, "max_grad_norm": norm, "batch_size": size}
            for norm, size in sizes for rule in RULES for adjacency in ADJACENCIES]


CHANGE = Exercise(
    "4.7", "How far can one person move it?", 2, function="largest_change", right=largest_change,
    others=(largest_change_by_table, largest_change_tried),
    parts=(Exact(change_cases, tolerance=1e-6, proof="five rules under two adjacencies",
                 allowed="that is not how far the worst neighbour is."),),
    mistakes=listed(
        ("clipped-anywhere-is-c", clipped_last(once_or_twice),
         "You say C for what is clipped last, under add/remove. The value lies in a ball of "
         "radius C both times, but one person whose gradient is long enough takes it from one "
         "end of a diameter to the other: 2C."),
        ("clipped-last-is-in-the-ball", clipped_last(lambda c, b, replaced: c),
         "You say C for what is clipped last. So long is the value itself; from one end of that "
         "ball to the other it is 2C."),
        ("clipped-average-is-c", change_with(sum_divide_clip=once_or_twice),
         "The clipped sum is right, the clipped average not: dividing first does not help, since "
         "one gradient may be as long as it likes. Under add/remove it moves by 2C as well."),
        ("clipped-sum-is-c", change_with(sum_clip=once_or_twice),
         "The clipped average is right, the clipped sum not: it lies in a ball of radius C just "
         "so, and under add/remove too it moves by up to 2C."),
        ("clipped-last-divided", change_with(sum_divide_clip=lambda c, b, replaced: 2 * c / b),
         "You divided what is clipped after the division by the batch size. The division comes "
         "first there, so the ball still has the radius C: nothing shrinks it. This is the error "
         "that makes clipped averages unsafe."),
        ("clipped-last-as-each-row",
         change_with(sum_clip=once_or_twice, sum_divide_clip=shared_out),
         "You treat clipping the sum like clipping each row. When each row is clipped, a "
         "person's share is at most C; when the sum is, only the result has a bound."),
        ("clipped-last-without-bound", clipped_last(lambda c, b, replaced: math.inf),
         "You say that nothing bounds the change when the sum or the average is clipped. One "
         "person's share has no bound, but the result is at most C long with her and without "
         "her: so it moves by no more than 2C, and noise made for 2C keeps the promise."),
        ("four-c-for-replacing",
         clipped_last(lambda c, b, replaced: 2 * once_or_twice(c, b, replaced)),
         "You doubled for replace-one where it cannot double: two points of a ball of radius C "
         "are never further apart than 2C."),
        ("once-always", as_under(lambda given: "add-remove"),
         "Under replace-one a clipped row may be replaced by its opposite: the sum moves by 2C."),
        ("twice-always", as_under(lambda given: "replace-one"),
         "Under add/remove a clipped row comes or goes, and moves the sum by its own length, at "
         "most C. 2C is for a row that is replaced by its opposite."),
        ("root-of-2", root_of_2,
         "You have the root of 2 for a replaced row. That is how far two rows at right angles "
         "lie apart; the worst case is two opposite ones."),
        ("division-forgotten", change_with(clip_sum_divide=once_or_twice),
         "Dividing by the planned size divides the change as well: C / batch_size, and twice "
         "that under replace-one."),
        ("average-hides-by-the-plan", change_with(clip_average=shared_out),
         "You divided by the planned size where the rule divides by who came. The worst batch is "
         "a small one: alone she moves the average by C, and two people are no better under "
         "add/remove. Only a public divisor makes the change small."),
        ("average-of-a-full-batch",
         change_with(clip_average=lambda c, b, replaced: 2 * c / (b if replaced else b + 1)),
         "You took a batch of the planned size for the worst one in \"clip-average\". It is the "
         "best: the smaller the batch, the more one person moves its average. Try one and two."),
        ("average-moves-by-2c", change_with(clip_average=lambda c, b, replaced: 2 * c),
         "Under add/remove the average of clipped rows moves by no more than C. From m people to "
         "m + 1 it moves by at most 2C/(m + 1), which is C for m = 1; and for m = 0 it moves "
         "from 0 by her own row, again C."),
        ("everybody-counted",
         change_with(clip_sum=lambda c, b, replaced: b * once_or_twice(c, b, replaced)),
         "You counted how long the whole sum can be. What counts is how far it moves when one "
         "person changes; the others stay as they are."),
        ("adjacencies-swapped", as_under(lambda given: ADJACENCIES[given == "add-remove"]),
         "The two adjacencies are swapped: coming or going moves a sum of clipped rows by one "
         "row, being replaced by the difference of two."),
    ),
    hints=(
        "Where each row is clipped, ask how long one person's share is. Where only the result is "
        "clipped, ask in which ball it lies, and how far two points of that ball can be apart.",
        "Let the others pull a little to the right and Meera very far to the left: where is the "
        "clipped sum with her, and where without? For the average by who came, try a batch of one "
        "and of two.",
    ),
    lesson="Normal noise of sigma times this number protects a batch against that adjacency as "
           "sigma promises, by each of the rules; under add/remove, Poisson batches then have the "
           "same epsilon by each. For clip-sum-divide it is sigma C / B under add/remove, for "
           "sum-divide-clip 2 sigma C under either adjacency: 2B times as much.",
)


# -------------------------------------------------------------------------------------------- 4.8

def private_plan(people, batch, epochs, noise_multiplier, delta):
    rate, steps = batch / people, math.ceil(epochs * people / batch)
    if people * delta >= 1:
        return rate, steps, math.inf
    _, epsilon = epsilon_bounds(
        noise_multiplier=noise_multiplier, sampling_rate=rate, steps=steps, delta=delta)
    return rate, steps, epsilon


def private_plan_by_ledger(people, batch, epochs, noise_multiplier, delta):
    steps = -(-people * epochs // batch)
    ledger = Ledger()
    ledger.add(noise_multiplier=noise_multiplier, sampling_rate=batch / people, steps=steps)
    return [batch / people, steps, np.inf if delta >= 1 / people else ledger.epsilon(delta)]


def spends(sigma, rate, steps, delta):
    return epsilon_bounds(noise_multiplier=max(0.05, sigma), sampling_rate=min(1.0, rate),
                          steps=max(1, int(steps)), delta=delta)


def plan_with(*, rate=None, steps=None, epsilon=lambda p: spends(p.sigma, p.q, p.t, p.delta)[1],
              refuses=lambda n, delta: n * delta >= 1):
    """A wrong plan: rate(n, b, e), steps(n, b, e), epsilon(plan), or another refusal of delta."""

    @by_place(private_plan)
    def wrong(n, b, e, sigma, delta):
        q, t, _ = private_plan(n, b, e, sigma, 1.0)
        q, t = (rate(n, b, e) if rate else q), (steps(n, b, e) if steps else t)
        plan = SimpleNamespace(n=n, b=b, e=e, sigma=sigma, delta=delta, q=q, t=t)
        return q, t, math.inf if refuses(n, delta) else epsilon(plan)

    return wrong


def plan_cases(rng):
    plans = [
        (1000, 250, 10, 4.0, 1e-5),
        (25_000, 500, 10, 1.15, 1e-5),
        (1000, 300, 10, 2.0, 1e-5),
        (1000, 300, 2, 2.0, 1e-5),
        (500, 50, 2, 1.5, 1e-4),
        (500, 50, 2, 1.5, 0.002),
        (1000, 10, 1, 3.0, 0.01),
    ]
    for _ in range(2):  # 7 epochs of 7 more people are less than a batch: never a whole number
        batch = int(rng.integers(50, 200))
        plans.append((int(rng.integers(5, 15)) * batch + 7, batch, int(rng.integers(2, 8)),
                      float(rng.uniform(1, 5)), 1e-5))
    names = inspect.signature(private_plan).parameters
    return [dict(zip(names, plan, strict=True)) for plan in plans]


PLAN = Exercise(
    "4.8", "What a training run costs", 2, function="private_plan", right=private_plan,
    others=(private_plan_by_ledger,),
    parts=(Exact(plan_cases, proof="rate, steps and epsilon agree, and a large delta is refused"),),
    mistakes=listed(
        ("epochs-twice", plan_with(steps=lambda n, b, e: math.ceil(e * e * n / b)),
         "The epochs enter your steps twice: for 1000 people, batches of 250 and 10 epochs you "
         "get 400, as a much-read example does. Four batches are an epoch, so ten are 40 steps."),
        ("epochs-times-people", plan_with(steps=lambda n, b, e: e * n),
         "You count a step for each person and epoch. A step takes a whole batch."),
        ("one-epoch-only", plan_with(steps=lambda n, b, e: math.ceil(n / b)),
         "These are the steps of one epoch. Every step costs, in every epoch."),
        ("rounds-down", plan_with(steps=lambda n, b, e: e * n // b),
         "You rounded the steps down. A promise counts every step that is made: round up."),
        ("rounds-to-the-nearest", plan_with(steps=lambda n, b, e: round(e * n / b)),
         "You rounded to the nearest whole number. A promise counts every step: round up."),
        ("last-batch-dropped", plan_with(steps=lambda n, b, e: e * (n // b)),
         "You rounded the batches of each epoch down, as if the last people were dropped. Nobody "
         "is dropped from Poisson batches: round once, at the end, and up."),
        ("rounds-each-epoch", plan_with(steps=lambda n, b, e: e * math.ceil(n / b)),
         "You rounded up in each epoch. Round once, at the end: ten epochs of 3 1/3 batches are "
         "34 steps, not 40."),
        ("not-rounded",
         plan_with(steps=lambda n, b, e: e * n / b,
                   epsilon=lambda p: spends(p.sigma, p.q, math.ceil(p.t), p.delta)[1]),
         "Your steps are no whole number. Round them up, at the end."),
        ("one-over-batch", plan_with(rate=lambda n, b, e: 1 / b),
         "Your rate is 1 / batch. It is the chance that a given person is in a given batch: the "
         "share of the people that a batch takes."),
        ("rate-from-whole-batches", plan_with(rate=lambda n, b, e: 1 / math.ceil(n / b)),
         "Your rate is one over a rounded number of batches. It is batch / people."),
        ("rate-upside-down", plan_with(rate=lambda n, b, e: n / b),
         "Your rate stands on its head: a chance is never above 1."),
        ("rate-over-all-epochs", plan_with(rate=lambda n, b, e: e * b / n),
         "You multiplied the rate by the epochs. How often one draws is what the steps say."),
        ("lower-bound", plan_with(epsilon=lambda p: spends(p.sigma, p.q, p.t, p.delta)[0]),
         "You report the lower bound: no promise below it holds. A promise is the upper one, the "
         "second of the two."),
        ("middle-of-the-bounds",
         plan_with(epsilon=lambda p: sum(spends(p.sigma, p.q, p.t, p.delta)) / 2),
         "You report the middle of the two bounds. The truth may lie above it; only the upper "
         "bound is a promise."),
        ("sampling-forgotten", plan_with(epsilon=lambda p: spends(p.sigma, 1.0, p.t, p.delta)[1]),
         "Your epsilon is that of a training in which everybody is in every batch. Give the "
         "accountant the sampling rate."),
        ("one-step-only", plan_with(epsilon=lambda p: spends(p.sigma, p.q, 1, p.delta)[1]),
         "This is what one step costs. Give the accountant all of them."),
        ("epochs-for-steps", plan_with(epsilon=lambda p: spends(p.sigma, p.q, p.e, p.delta)[1]),
         "You gave the accountant epochs for steps. Each batch is a release of its own."),
        ("epsilons-added",
         plan_with(epsilon=lambda p: p.t * spends(p.sigma, p.q, 1, p.delta / p.t)[1]),
         "You added up the epsilons of the steps (basic composition, with delta shared out). "
         "That holds, but it is far more than the run costs; the accountant adds up losses."),
        ("closed-form",
         plan_with(epsilon=lambda p: p.q * math.sqrt(2 * p.t * math.log(1 / p.delta)) / p.sigma),
         "This is the closed form q sqrt(2 T ln(1/delta)) / sigma. It is no bound: it is "
         "sometimes above and sometimes below the truth."),
        ("renyi-bound",
         plan_with(epsilon=lambda p: rdp_epsilon(noise_multiplier=p.sigma, sampling_rate=p.q,
                                                 steps=p.t, delta=p.delta)),
         "This epsilon goes by Renyi orders. It is a bound, but a looser one: the exercise asks "
         "for the upper one of epsilon_bounds."),
        ("noise-of-the-average",
         plan_with(epsilon=lambda p: spends(p.sigma / p.b, p.q, p.t, p.delta)[1]),
         "You divided the noise multiplier by the batch. It is the noise in units of what one "
         "person can do, and dividing the noisy sum makes both smaller alike."),
        ("delta-for-each-step",
         plan_with(epsilon=lambda p: spends(p.sigma, p.q, p.t, p.delta / p.t)[1]),
         "You shared delta out among the steps before asking the accountant. Its delta is that "
         "of the whole run."),
        ("accepts-any-delta", plan_with(refuses=lambda n, delta: False),
         "You give an epsilon for a delta of 1/people and more. There is one, but the clinic "
         "makes no such promise: by its rule the answer is np.inf then."),
        ("accepts-delta-of-one-in-n", plan_with(refuses=lambda n, delta: n * delta > 1),
         "Nearly: by the clinic's rule a delta of exactly 1/people is too large as well."),
        ("swapped", lambda **case: [private_plan(**case)[k] for k in (1, 0, 2)],
         "Steps and rate have changed places: first the rate, then the steps."),
    ),
    hints=(
        "How many batches are one epoch, and how many are all? Which share of the people is in a "
        "batch? The rest is one call of epsilon_bounds, and one question about delta.",
        "rate = batch / people, steps = math.ceil(epochs * people / batch). epsilon_bounds gives "
        "a lower and an upper bound; a promise is the upper one.",
    ),
    lesson="The three numbers belong together, with the sampler and the adjacency: an epsilon "
           "computed for Poisson batches says nothing about the same script with shuffled ones.",
)


# -------------------------------------------------------------------------------------------- 4.9

def train(
    w, X, y, steps, sampling_rate, max_grad_norm, noise_multiplier, batch_size, learning_rate, rng
):
    for _ in range(steps):
        w = dp_sgd_step(
            w, X, y, sampling_rate, max_grad_norm, noise_multiplier, batch_size, learning_rate, rng)
    return w


@by_place(train)
def train_drawn_first(w, X, y, steps, q, c, sigma, b, rate, rng):
    """All coins and all noise first, then the arithmetic."""
    coins = rng.random((steps, len(X))) < q
    noise = rng.normal(0, sigma * c, (steps, len(w)))
    w = np.array(w)
    for batch, draw in zip(coins, noise, strict=True):
        rows = clip_gradients(per_example_gradients(X[batch], y[batch], w), c)
        w -= rate / b * (rows.sum(axis=0) + draw)
    return w


def train_recursively(w, X, y, steps, rng, **rest):
    if not steps:
        return list(w)
    new = dp_sgd_step_masked(w=np.array(w), X=X, y=y, rng=rng, **rest)
    return train_recursively(new, X, y, steps - 1, rng, **rest)


class Training:
    """A training step by step, for wrong ones: `k` counts the steps, `kept` is kept for all."""

    def __init__(self, w, X, y, steps, rng, **case):
        self.w, self.X, self.y, self.steps, self.rng = w, X, y, steps, rng
        self.case, self.start, self.k = case, w, 0

    def coins(self):
        return poisson_batch(len(self.X), self.case["sampling_rate"], self.rng)

    def noise(self):
        width = self.case["noise_multiplier"] * self.case["max_grad_norm"]
        return self.rng.normal(0, width, len(self.w))

    def step(self, *, noise=None, batch=None, at=None):
        """The next weights, with this noise on the sum, this batch, or gradients at these."""
        batch = self.coins() if batch is None else batch
        rows = per_example_gradients(self.X[batch], self.y[batch], self.w if at is None else at)
        total = clip_gradients(rows, self.case["max_grad_norm"]).sum(axis=0)
        total = total + (self.noise() if noise is None else noise)
        return self.w - self.case["learning_rate"] * total / self.case["batch_size"]

    def as_in_4_6(self, step=dp_sgd_step, **changes):
        return step(w=self.w, X=self.X, y=self.y, rng=self.rng, **self.case | changes)


def train_with(step=Training.step, *, count=lambda steps: steps, keep=lambda run: None):
    """A wrong training: another step(run), another count of steps, or `run.kept` from keep(run)."""

    def wrong(**case):
        run = Training(**case)
        run.kept = keep(run)
        for k in range(count(run.steps)):
            run.k = k
            run.w = step(run)
        return run.w

    return wrong


def shuffled(run):
    size = max(1, round(run.case["sampling_rate"] * len(run.X)))
    batches = [run.kept[i : i + size] for i in range(0, len(run.kept), size)]
    return run.step(batch=batches[run.k % len(batches)])


def noise_at_the_end(run):
    """Output perturbation: as much noise as after all steps, but only on the last weights."""
    last = run.k == run.steps - 1
    return run.step(noise=math.sqrt(run.steps) * run.noise() if last else 0.0)


def iterates(w, steps, **case):
    path = []
    for _ in range(steps):
        w = dp_sgd_step(w, **case)
        path.append(w)
    return np.array(path)


def train_in_place(w, steps, **case):
    for _ in range(steps):
        w += dp_sgd_step(w, **case) - w
    return w


# Three steps with gradients of zeros: a walk of three noises, wider than one by the root of 3.
WALK = {**STILL, "steps": 3}
WALKED = math.sqrt(3) * ONE_NOISE
MOVED = {**MOVING, "steps": 3}
# Each person in a batch moves her own weight by -0.01, since her gradient stays longer than C.
SEEN_OFTEN = {
    "w": np.zeros(6), "X": 10 * np.eye(6), "y": np.zeros(6, int), "steps": 3,
    "sampling_rate": 1 / 3, "max_grad_norm": 0.1, "noise_multiplier": 0.0, "batch_size": 2,
    "learning_rate": 0.2,
}
# Two people on each of four weights, who pull against each other. At 0 they balance; the noise of
# the first step, n, decides which of them pulls in the second, by 1 and against it. So n - sign(n)
# is reached, and the noise of the second step takes it beyond 1 with chance 1/4: it has to be the
# longer of the two, and of the other sign.
TORN = {
    "w": np.zeros(4), "X": 1e7 * np.repeat(np.eye(4), 2, axis=0), "y": np.array([0, 1] * 4),
    "steps": 2, "sampling_rate": 1.0, "max_grad_norm": 1.0, "noise_multiplier": 0.2,
    "batch_size": 1, "learning_rate": 1.0,
}


def how_often(answers, case):
    return np.rint(-100 * answers)


def train_parts():
    walk = Law(
        WALK, stats.norm(0, WALKED),
        {"one-noise-for-all-steps": stats.norm(0, 3 * ONE_NOISE),
         "noise-in-one-step-only": stats.norm(0, ONE_NOISE),
         "last-step-clean": stats.norm(0, math.sqrt(2) * ONE_NOISE),
         "noise-shared-out": stats.norm(0, WALKED / 3), **a_little_off_laws(WALKED)},
        shape=(8,), count=1_500, noise=lambda answers, case: still_noise(answers, case).ravel(),
        advice="With gradients of zeros the weights do a random walk: after T steps the standard "
               "deviation is the root of T times that of one step, learning_rate sigma C / "
               "batch_size.")
    torn = Law(
        TORN, stats.bernoulli(0.25),
        {"noise-all-at-once": stats.bernoulli(2 * stats.norm.sf(1 / (0.2 * math.sqrt(2))))},
        shape=(4,), count=200, noise=lambda answers, case: np.ravel(np.abs(answers) > 1),
        advice="The gradients of a step have to be taken at the weights that the noise of the step "
               "before has moved.")
    who = Law(
        SEEN_OFTEN, stats.binom(3, 1 / 3),
        {"one-batch-for-all-steps": chances([0, 3], [2 / 3, 1 / 3]),
         "shuffled-epochs": chances([1], [1.0]), "no-sampling": chances([3], [1.0])},
        shape=(6,), count=200, noise=lambda answers, case: how_often(answers, case).ravel(),
        advice="Count in how many steps each person takes part: that is binomial.")
    return (
        Randomness(WALK),
        Randomness(MOVED),
        Exact(descent_cases, tolerance=1e-5, seeded=True,
              proof="without noise and sampling it is gradient descent, clipped or not"),
        walk, torn, who, *who_is_in({**SEEN, "steps": 1}),
        Independent(WALK, stats.norm(0, WALKED), noise=still_noise, count=600,
                    mistake="draws-hang-together"),
    )


def descent_cases(rng):
    cases = []
    for steps, norm in itertools.product((1, 2, 5), (1e9, None)):
        n, d = int(rng.integers(4, 9)), int(rng.integers(2, 5))
        cases.append({
            "w": rng.normal(0, 1, d), "X": rng.normal(0, 2, (n, d)), "y": rng.integers(0, 2, n),
            "steps": steps, "sampling_rate": 1.0,
            "max_grad_norm": norm or float(rng.uniform(0.5, 2)), "noise_multiplier": 0.0,
            "batch_size": int(rng.integers(10, 20)), "learning_rate": float(rng.uniform(1, 3)),
        })
    return cases


TRAIN = Exercise(
    "4.9", "A whole training", 2, function="train", right=train,
    others=(train_drawn_first, train_recursively),
    parts=train_parts(),
    mistakes=listed(
        ("one-step-only", train_with(count=lambda steps: 1),
         "Your weights have made one step. A return inside the loop? Or does each step start "
         "from the first weights again?"),
        ("one-step-too-few", train_with(count=lambda steps: steps - 1),
         "Your training is one step short: range(1, steps) has steps - 1 entries."),
        ("one-step-too-many", train_with(count=lambda steps: steps + 1),
         "You make one step more than you say. The accountant was told `steps`: the last is not "
         "paid for."),
        ("never-looks-again", train_with(lambda run: run.step(at=run.start)),
         "All your gradients are taken at the first weights. Each step starts where the one "
         "before ended: w = dp_sgd_step(w, ...)."),
        ("returns-all-steps", iterates,
         "You returned the weights after each step. Only the last ones are asked for (to publish "
         "all would cost nothing more: the accountant assumes that)."),
        ("averages-the-steps", lambda **case: iterates(**case).mean(axis=0),
         "You returned the average over the steps. That is allowed, as post-processing, and "
         "often good, but here the last weights are asked for."),
        ("slower-and-slower", train_with(lambda run: run.as_in_4_6(
             learning_rate=run.case["learning_rate"] / (run.k + 1))),
         "Your learning rate gets smaller from step to step. Here it stays as it is."),
        known("uphill", train_with(lambda run: run.as_in_4_6(step_with(sign=1)))),
        known("divides-by-who-came", train_with(lambda run: run.as_in_4_6(
                  step_with(size=lambda rows, X, q, b: max(len(rows), 1))))),
        ("one-noise-for-all-steps",
         train_with(lambda run: run.step(noise=run.kept), keep=Training.noise),
         "After T steps your noise is T times as wide as that of one step, not the root of T "
         "times. Either the same noise comes back in each: whoever sees the steps subtracts one "
         "from another, and it is gone. Or each noise is the root of T too wide: that several "
         "steps are made is what the accountant reckons with."),
        ("noise-in-one-step-only",
         train_with(lambda run: run.step(noise=run.noise() if run.k == run.steps - 1 else 0.0)),
         "After all steps your noise is as wide as that of one step. The accountant counts each "
         "step as a noisy release: the whole of sigma C goes on every gradient, neither on one "
         "of them only nor shared out."),
        ("last-step-clean",
         train_with(lambda run: run.step(noise=run.noise() if run.k < run.steps - 1 else 0.0)),
         "Your noise is narrower than that of all steps together, as if one of them had none, "
         "perhaps the last or the first. To somebody who sees each step, as the accountant "
         "assumes, whoever is drawn in such a step may be exposed: then no epsilon holds for a "
         "delta below q."),
        ("noise-shared-out", train_with(lambda run: run.step(noise=run.noise() / run.steps)),
         "You shared the noise out among the steps. Each step needs the whole of sigma C: that "
         "several are made is what the accountant reckons with."),
        ("noise-all-at-once", train_with(noise_at_the_end),
         "Your noise comes on all at once, at the end or at the start. Altogether it has the "
         "right width, but the other steps are exact, and what they show the accountant does not "
         "count. Put noise on each gradient."),
        known("draws-hang-together",
              train_with(lambda run: run.as_in_4_6(step_with(noise=noise_in_pairs)))),
        ("one-batch-for-all-steps",
         train_with(lambda run: run.step(batch=run.kept), keep=Training.coins),
         "The same batch is used in every step. Whoever is in it is in all of them, and the "
         "accountant counts on fresh coins each time."),
        ("shuffled-epochs", train_with(shuffled, keep=lambda run: run.rng.permutation(len(run.X))),
         "You shuffle the people and go through them in batches, the usual way. Then everybody "
         "comes exactly once an epoch, and the epsilon for Poisson batches does not hold for it. "
         "Draw each batch with coins of its own."),
        changes_its_input(train_in_place),
        *batch_mistakes(lambda batch:
                        train_with(lambda run: run.as_in_4_6(step_with(batch=batch)))),
        *a_little_off(train),
        *randomness_mistakes(train, without_noise(train, sampling_rate=1.0)),
    ),
    hints=(
        "A loop around exercise 4.6: each step starts from the weights of the one before.",
        "for _ in range(steps): w = dp_sgd_step(w, X, y, ...). Hand on the same rng each time, so "
        "that batch and noise are new.",
    ),
    lesson="Noise that is drawn anew adds up like a random walk, with the root of the number of "
           "steps; a pull of the data that stays the same adds up in full. That is why long "
           "trainings with much noise can still learn.",
)


# ------------------------------------------------------------------------------------------- 4.10

LETTER = Exercise(
    "4.10", "Clipping the average", 3,
    rubric="1 point: what is not true. The clipped average is at most C long with and without "
           "her, so one person moves it by at most 2C (triangle inequality; under add/remove and "
           "under replace-one), and normal noise of 2 sigma C in each coordinate keeps the "
           "promise of sigma: the guarantee is not destroyed. (Also right: if all gradients are "
           "at most R long anyway, the average by the planned size B moves by at most R/B under "
           "add/remove.) 1 point: what is true. The noise of the script, sigma C / B, is made for "
           "a change of C / B; against 2C it is 2B = 1000 times too small, and with it no useful "
           "epsilon is left, since a single long gradient can turn the average round. Clip each "
           "row first: only then does a large batch hide a person. 1 point: whom clipping hurts: "
           "people with long gradients, about whom the model is wrong (rare groups, unusual "
           "records): they are shortened, everybody else pulls in full, and an average accuracy "
           "does not show it; with a remedy or a way to see it, such as errors for each group, "
           "another C, or more data of that group.")

EXERCISES = (GRADIENTS, CLIP, NORMS, POISSON, NOISE, STEP, CHANGE, PLAN, TRAIN, LETTER)
