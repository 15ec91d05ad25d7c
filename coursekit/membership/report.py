"""An audit of somebody's own model: how well membership attacks do, and whether to believe it."""

import json
import math
import sys
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from coursekit import _arguments, metrics
from coursekit.membership import scores
from coursekit.membership.inputs import checked_labels, checked_logits
from coursekit.membership.likelihood import lira_offline, lira_online
from coursekit.membership.shadow import ShadowAttack, check_shadows

LEAST = 20  # members, and non-members
LEAST_SHADOWS = 8
MANY_SHADOWS = 64  # from here on LiRA estimates a variance for each record
BLIND_ALARM = 1e-3  # how often the blind baseline sounds a false alarm
FAR = 4.0  # standard deviations that a target may lie from its shadows
AT_RISK = 10


class Attack(NamedTuple):
    """What one attack achieves: its area, its curve, and `Rates` or None for each FPR asked."""

    auc: metrics.Auc
    curve: metrics.Roc
    rates: dict


class Blind(NamedTuple):
    """The best AUC of classifiers that see records and labels only, and what noise may reach."""

    auc: float
    limit: float

    @property
    def void(self):
        return self.auc > self.limit


class Shadows(NamedTuple):
    """Accuracy and mean loss on members and on others: of the target, and (mean, sd) of shadows.

    `doubts` holds a sentence for each that lies far away.
    """

    count: int
    target: dict
    shadows: dict
    doubts: list


@dataclass(frozen=True)
class Report:
    """What `audit` found. `print(report)`, `report.figure()`, `report.json()`."""

    members: int
    non_members: int
    accuracy: tuple  # on members, on non-members
    attacks: dict
    blind: Blind
    at_risk: list  # (index among the members, share of non-members that score as high)
    shadows: Shadows | None
    priors: tuple
    alpha: float

    @property
    def doubts(self):
        """Sentences that say why not to believe the numbers; empty if there is none."""
        found = list(self.shadows.doubts) if self.shadows else []
        if self.blind.void:
            found.insert(0, (
                f"VOID: without any query to the model, members are told from non-members with AUC "
                f"{self.blind.auc:.3f} (noise reaches {self.blind.limit:.3f}). The two groups "
                "differ by themselves; draw both from one pool, at random, before training."
            ))  # fmt: skip
        return found

    @property
    def strongest(self):
        """The name of the attack with the largest area under the curve, on these very records."""
        return max(self.attacks, key=lambda name: self.attacks[name].auc)

    def __str__(self):
        lines = [
            f"Membership audit: {self.members} members, {self.non_members} non-members",
            f"accuracy of the model: {self.accuracy[0]:.3f} on members, "
            f"{self.accuracy[1]:.3f} on non-members",
            *self.doubts,
            f"blind baseline: AUC {self.blind.auc:.3f} (noise reaches {self.blind.limit:.3f})",
            "",
            *self._table(),
            "",
            *self._posteriors(),
            f"members most at risk, by {self.strongest!r}: "
            + ", ".join(f"{index} ({share:.1%})" for index, share in self.at_risk[:5])
            + " (in brackets: non-members that score as high)",
        ]
        if self.shadows:
            lines.append(
                f"shadow models: {self.shadows.count}, "
                + ("trained as the target seems to be" if not self.shadows.doubts else "DOUBTFUL")
            )
        else:
            lines.append("no shadow models: attacks that compare with them are stronger")
        return "\n".join(lines)

    def _table(self):
        rates = next(iter(self.attacks.values())).rates
        heads = "".join(f"TPR at {fpr:.1%} FPR".ljust(25) for fpr in rates)
        yield f"{'attack':18s}{'AUC':25s}{heads}".rstrip() + f"   ({1 - self.alpha:.0%} intervals)"
        z = -ndtri(self.alpha / 2)
        for name, attack in self.attacks.items():
            area, margin = attack.auc, z * attack.auc.error
            cells = [(area, max(0.0, area - margin), min(1.0, area + margin))]
            for rate in attack.rates.values():
                cells.append(None if rate is None else (rate, *rate.tpr_interval))
            texts = ["{:.3f} ({:.3f} to {:.3f})".format(*cell) if cell else "–" for cell in cells]
            yield name.ljust(18) + "".join(text.ljust(25) for text in texts).rstrip()
        few = [fpr for fpr, rate in rates.items() if rate is None]
        if few:
            needed = ", ".join(
                f"{math.ceil(metrics.LEAST_FALSE / fpr):,} for {fpr:.1%}" for fpr in few
            )
            yield f"–: too few non-members to speak of so low an FPR; it takes {needed}"

    def _posteriors(self):
        name = self.strongest
        for fpr, rate in self.attacks[name].rates.items():
            if rate is not None and rate + rate.fpr:
                chances = [metrics.posterior(rate, rate.fpr, prior) for prior in self.priors]
                listed = ", ".join(
                    f"{chance:.1%} where {prior:.0%} are members"
                    for prior, chance in zip(self.priors, chances, strict=True)
                )
                yield f"whom {name!r} accuses at {fpr:.1%} FPR is a member: {listed}"

    def figure(self):
        """Return a figure of all curves, both axes logarithmic, the strongest with its band."""
        from coursekit import plots

        name, least = self.strongest, 1 / (2 * self.non_members)
        best = self.attacks[name]
        title = f"{name}: AUC {best.auc:.2f} for telling members from non-members."
        if self.blind.void:
            title = "Void: the groups differ without any query to the model."
        fig, ax = plots.figure(
            title=title, x="false-positive rate", y="true-positive rate", size=(6.4, 4.8)
        )
        for each, attack in self.attacks.items():
            ax.plot(np.maximum(attack.curve.fpr, least), attack.curve.tpr, label=each)
        low, high = best.curve.bands(alpha=self.alpha)[1]
        grey = plots.PALETTE.grey
        ax.fill_between(
            np.maximum(best.curve.fpr, least), low, high, color=grey, alpha=0.4, linewidth=0
        )
        ax.plot([least, 1], [least, 1], color="black", linewidth=0.8, label="guessing")
        ax.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1))
        ax.legend(fontsize=9)
        return fig

    def json(self):
        """Return the report as JSON text, without the curves."""
        rates = {
            name: {
                f"{fpr:g}": getattr(rate, "__dict__", None) for fpr, rate in attack.rates.items()
            }
            for name, attack in self.attacks.items()
        }
        found = {
            "members": self.members,
            "non_members": self.non_members,
            "accuracy": dict(zip(("members", "non_members"), self.accuracy, strict=True)),
            "doubts": self.doubts,
            "blind_baseline": {**self.blind._asdict(), "void": self.blind.void},
            "alpha": self.alpha,
            "attacks": {
                name: {
                    "auc": float(attack.auc),
                    "auc_error": attack.auc.error,
                    "tpr_at": rates[name],
                }
                for name, attack in self.attacks.items()
            },
            "most_at_risk": [{"member": i, "non_members_as_high": s} for i, s in self.at_risk],
            "shadows": self.shadows and self.shadows._asdict(),
        }
        return json.dumps(_plain(found), indent=2, allow_nan=False)


def audit(
    predict_logits,
    members,
    non_members,
    *,
    train=None,
    shadows=32,
    outputs="auto",
    fprs=(0.001, 0.01, 0.1),
    priors=(0.01, 0.1, 0.5),
    alpha=0.05,
    seed=0,
):
    """Return a `Report`: how well attacks tell the records a model was trained on from others.

    Args:
        predict_logits: a PyTorch module (its outputs are logits), a scikit-learn classifier, or a
            function from records X to logits or probabilities (records, classes).
        members, non_members: (X, y) each, at least 20 records; X (records, ...), y the labels: from
            0, or for scikit-learn those it was fitted to. They should be drawn at random from one
            pool, before training.
        train: a function (X, y, seed) that trains a model as the target was trained, and returns
            it, in a form that `predict_logits` could have. With it, `shadows` models are trained on
            as many records as the target, drawn from members and non-members, and the attacks that
            need them are run too. y keeps the labels given. The seeds are `seed`, `seed` + 1, ...:
            a target that was trained with one of them shares its first weights with a shadow.
        outputs: "logits", "probabilities", or "auto": probabilities from scikit-learn and wherever
            all lie in [0, 1] and add up to 1 in each row.
        fprs, priors: where to report TPR, and for which shares of members the posterior.
        alpha: intervals are right with probability 1 - alpha, each alone.
        seed: draws the shadows' records, and the blind baseline's folds.

    Intervals take records as independent, for this one target. An attack that finds nothing proves
    nothing: others may. Raises: TypeError or ValueError, before any training, for inputs that do
    not fit together.
    Source: Carlini et al. (2022), S&P, for TPR at low FPR; Das, Zhang, Tramer (2024,
    arXiv:2406.16201) for blind baselines; Jayaraman et al. (2021), PoPETs, for priors.

    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y, n = np.arange(200) % 2, 100
    >>> known = {tuple(row) for row in X[:n]}  # a model that has learnt its members by heart
    >>> def model(rows):
    ...     sure = np.array([tuple(row) in known for row in rows]) * 5.0
    ...     return np.outer(sure, [1, -1])
    >>> audit(model, (X[:n], y[:n]), (X[n:], y[n:])).attacks["confidence"].auc
    1.0
    """
    X, y, size = _records(members, non_members)
    alpha, fprs, priors = _levels(alpha, fprs, priors)
    seed = _arguments.whole(seed, "seed", least=0)
    outputs = _arguments.one_of(outputs, "outputs", ("auto", "logits", "probabilities"))
    if train is not None and not callable(train):
        raise TypeError(f"train must be a function (X, y, seed), got {type(train).__name__}.")
    shadows = _arguments.whole(shadows, "shadows", least=LEAST_SHADOWS)
    logits, labels = _logits_of(predict_logits, X, y, outputs)
    inside = np.arange(len(X)) < size
    found = _simple(logits, labels)
    shadow_report = None
    if train is not None:
        drawn = _shadow_members(shadows, len(X), size, np.random.default_rng([seed, 1]))
        shadow_logits = _train_shadows(train, X, y, drawn, outputs, seed)
        check_shadows(shadow_logits, labels, drawn)
        shadow_report = _compare(logits, shadow_logits, labels, inside, drawn)
        found |= _with_shadows(logits, shadow_logits, labels, drawn)
    attacks = {name: _attack(value, inside, fprs, alpha) for name, value in found.items()}
    right = scores.gap_score(logits, labels)
    best = max(attacks, key=lambda name: attacks[name].auc)
    return Report(
        members=size,
        non_members=len(X) - size,
        accuracy=(float(right[inside].mean()), float(right[~inside].mean())),
        attacks=attacks,
        blind=_blind(X, labels, inside, seed),
        at_risk=_at_risk(found[best], inside),
        shadows=shadow_report,
        priors=priors,
        alpha=alpha,
    )


def _records(members, non_members):
    """Return X, y of both groups together, members first, and how many they are."""
    groups = []
    for group, name in ((members, "members"), (non_members, "non_members")):
        if not isinstance(group, (tuple, list)) or len(group) != 2:
            raise TypeError(f"{name} must be a pair (X, y), got {type(group).__name__}.")
        X, y = _arguments.finite_array(group[0], f"X of {name}"), np.asarray(group[1])
        if X.ndim < 2 or y.shape != X.shape[:1]:
            raise ValueError(
                f"{name} must be X (records, features) and y (records,), "
                f"got shapes {X.shape} and {y.shape}."
            )
        if len(X) < LEAST:
            raise ValueError(f"there must be at least {LEAST} {name}, got {len(X)}.")
        groups.append((X, y))
    (X, y), (X_non, y_non) = groups
    if X.shape[1:] != X_non.shape[1:]:
        raise ValueError(
            "members and non_members must have records of one shape, "
            f"got {X.shape[1:]} and {X_non.shape[1:]}."
        )
    both = np.concatenate([y, y_non])
    if len(np.unique(both)) < 2:
        raise ValueError(f"y must hold at least 2 classes, got only {both[0]!r}.")
    return np.concatenate([X, X_non]), both, len(X)


def _levels(alpha, fprs, priors):
    fprs = tuple(_arguments.fraction(fpr, "each of fprs") for fpr in np.atleast_1d(fprs).tolist())
    priors = tuple(_arguments.fraction(p, "each of priors") for p in np.atleast_1d(priors).tolist())
    return _arguments.fraction(alpha, "alpha"), fprs, priors


def _logits_of(model, X, y, outputs):
    """Return the model's logits on X, and labels as column numbers."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(model, torch.nn.Module):
        outputs = "logits" if outputs == "auto" else outputs
        answer = _ask_module(torch, model, X)
    elif hasattr(model, "predict_proba"):
        answer, outputs = model.predict_proba(X), "probabilities"
    elif callable(model):
        answer = model(X.copy())
    else:
        raise TypeError(
            "the model must be a PyTorch module, a scikit-learn classifier with predict_proba, or "
            f"a function of records, got {type(model).__name__}."
        )
    answer = checked_logits(answer, "the model's outputs", ndim=2)
    if len(answer) != len(X):
        raise ValueError(f"the model must answer each of {len(X)} records, got {len(answer)} rows.")
    classes = getattr(model, "classes_", None)
    if classes is not None:
        unknown = np.setdiff1d(y, classes)
        if len(unknown):
            raise ValueError(f"y must hold classes of the model, {classes}, got {unknown[0]!r}.")
        y = np.searchsorted(classes, y)
    labels = checked_labels(y, len(X), answer.shape[1])
    within = answer.min() >= 0 and answer.max() <= 1
    if outputs == "probabilities" or (outputs == "auto" and within):
        try:
            answer = scores.logits_from_probabilities(answer)
        except ValueError as error:
            raise ValueError(f'{error} If they are logits, say outputs="logits".') from None
    return answer, labels


def _ask_module(torch, model, X):
    kind = next((p.dtype for p in model.parameters()), torch.float32)
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            parts = [model(part) for part in torch.from_numpy(X).to(kind).split(512)]
    finally:
        model.train(training)
    return torch.cat(parts).double().numpy()


def _simple(logits, y):
    return {
        "gap": scores.gap_score(logits, y),
        "loss": scores.logit_confidence(logits, y),
        "confidence": scores.confidence_score(logits),
        "entropy": scores.entropy_score(logits),
        "modified entropy": scores.modified_entropy_score(logits, y, log=True),
    }


def _with_shadows(logits, shadow_logits, y, drawn):
    variance = "per-record" if len(drawn) >= MANY_SHADOWS else "fixed"
    signals = scores.logit_confidence(logits, y), scores.logit_confidence(shadow_logits, y), drawn
    return {
        "Shokri": ShadowAttack().fit(shadow_logits, y, drawn).score(logits, y),
        "LiRA, offline": lira_offline(*signals, variance=variance),
        "LiRA, online": lira_online(*signals, variance=variance),
    }


def _shadow_members(shadows, records, size, rng):
    """Draw `size` records for each shadow, by pairs from the two ends of one random order.

    Each record must be in some and out of others: again until it is so.
    """
    for _ in range(100):
        drawn = np.zeros((shadows, records), bool)
        for i in range(0, shadows, 2):
            order = rng.permutation(records)
            drawn[i, order[:size]] = True
            drawn[i + 1 : i + 2, order[records - size :]] = True
        counts = drawn.sum(axis=0)
        if counts.min() >= 2 and counts.max() <= shadows - 2:
            return drawn
    raise ValueError(
        f"{shadows} shadow models of {size} records, drawn from {records}, leave records that are "
        "in (or out of) fewer than 2 of them: ask for more shadows, or give as many non_members "
        "as members."
    )


def _train_shadows(train, X, y, drawn, outputs, seed):
    """Return the logits (shadows, records, classes) of models trained on the records drawn."""
    found = []
    for number, rows in enumerate(tqdm(drawn, delay=5, leave=False, desc="shadow models")):
        model = train(X[rows].copy(), y[rows].copy(), seed + number)
        logits, _ = _logits_of(model, X, y, outputs)
        if found and logits.shape != found[0].shape:
            raise ValueError(
                f"shadow models must answer alike, got shapes {found[0].shape}, {logits.shape}."
            )
        found.append(logits)
    return np.stack(found)


def _compare(logits, shadow_logits, y, inside, drawn):
    """Return `Shadows`: whether the shadows behave as the target does."""
    target, shadows, doubts = {}, {}, []
    for kind, score, sign in (
        ("accuracy", scores.gap_score, 1), ("loss", scores.loss_score, -1)
    ):  # fmt: skip
        own, theirs = sign * score(logits, y), sign * score(shadow_logits, y)
        for side, mine, rows in (("members", inside, drawn), ("non-members", ~inside, ~drawn)):
            values = np.array([part[row].mean() for part, row in zip(theirs, rows, strict=True)])
            name = f"{kind} on {side}"
            target[name] = float(own[mine].mean())
            mean, spread = float(values.mean()), float(values.std(ddof=1))
            shadows[name] = (mean, spread)
            slack = 0.02 if kind == "accuracy" else 0.02 + 0.1 * abs(mean)
            if abs(target[name] - mean) > max(FAR * spread, slack):
                doubts.append(
                    f"DOUBT: {name} is {target[name]:.3f} for the target and {mean:.3f} "
                    f"(sd {spread:.3f}) for the shadow models: they are not trained alike."
                )
    return Shadows(len(drawn), target, shadows, doubts)


def _attack(value, inside, fprs, alpha):
    rates = {}
    for fpr in fprs:
        enough = np.count_nonzero(~inside) * fpr >= metrics.LEAST_FALSE * (1 - 1e-12)
        rates[fpr] = metrics.tpr_at_fpr(value, inside, fpr, alpha=alpha) if enough else None
    return Attack(metrics.auc(value, inside), metrics.roc(value, inside), rates)


def _blind(X, y, inside, seed):
    """Return the better of two classifiers on records and labels, by 5-fold cross-validation.

    Without any difference, each area lies above the limit with probability about BLIND_ALARM / 2.
    """
    rows = np.column_stack([X.reshape(len(X), -1), np.eye(y.max() + 1)[y]])
    logistic = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
    forest = RandomForestClassifier(100, min_samples_leaf=2, random_state=seed)
    areas = []
    for classifier in (logistic, forest):
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        guess = cross_val_predict(classifier, rows, inside, cv=folds, method="predict_proba")
        areas.append(metrics.auc(guess[:, 1], inside))
    error = metrics.auc_null_error(np.count_nonzero(inside), np.count_nonzero(~inside))
    return Blind(max(areas), 0.5 - float(ndtri(BLIND_ALARM / 2)) * error)


def _at_risk(value, inside):
    """Return the members with the highest scores: (index, share of non-members as high)."""
    members, others = value[inside], np.sort(value[~inside])
    order = np.argsort(-members, kind="stable")[:AT_RISK]
    as_high = (len(others) - np.searchsorted(others, members[order])) / len(others)
    return [(int(i), float(share)) for i, share in zip(order, as_high, strict=True)]


def _plain(value):
    """Return a value that JSON can write: plain numbers, and None for NaN and infinity."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, (bool, str)) or value is None:
        return value
    number = value.item() if hasattr(value, "item") else value
    return number if math.isfinite(number) else None
