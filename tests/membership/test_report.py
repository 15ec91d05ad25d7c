"""The audit of somebody's own model: what it reports, when it is void, what it refuses."""

import json

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from torch import nn

from coursekit import metrics
from coursekit.datasets import purchases
from coursekit.membership import audit, gap_score, logit_confidence
from coursekit.membership.report import BLIND_ALARM, Shadows, _blind, _compare, _shadow_members

X, Y = purchases(400, classes=4, features=20, flip=0.35, rng=np.random.default_rng(0))
MEMBERS, OTHERS = (X[:200], Y[:200]), (X[200:], Y[200:])


def forest(X, y, seed):
    return RandomForestClassifier(20, random_state=seed).fit(X, y)


FOREST = forest(*MEMBERS, 99)
REPORT = audit(FOREST, MEMBERS, OTHERS, train=forest, shadows=8, fprs=(0.01, 0.05, 0.2))


def logits_of(X):
    return np.asarray(X) @ np.random.default_rng(1).normal(size=(20, 4))


def test_scores_are_those_of_the_attacks():
    plain = audit(logits_of, MEMBERS, OTHERS)
    inside, logits = np.arange(400) < 200, logits_of(X)
    for name, score in (("gap", gap_score), ("loss", logit_confidence)):
        expected = metrics.auc(score(logits, Y), inside)
        assert plain.attacks[name].auc == expected
    expected = metrics.tpr_at_fpr(logit_confidence(logits, Y), inside, 0.1)
    assert plain.attacks["loss"].rates[0.1] == expected
    assert plain.attacks["loss"].rates[0.01] is None  # 200 non-members are too few
    right = logits.argmax(axis=1) == Y
    assert plain.accuracy == (right[:200].mean(), right[200:].mean())
    assert plain.shadows is None and list(plain.attacks) == [
        "gap", "loss", "confidence", "entropy", "modified entropy"]  # fmt: skip


def test_every_kind_of_model_gives_the_same():
    net = nn.Sequential(nn.Linear(20, 4, bias=False), nn.Dropout(0.5)).double()
    weight = np.random.default_rng(1).normal(size=(20, 4))
    net[0].weight.data = torch.from_numpy(weight.T.copy())
    logistic = LogisticRegression().fit(X, Y)
    logistic.coef_, logistic.intercept_ = weight.T.copy(), np.zeros(4)
    first = audit(logits_of, MEMBERS, OTHERS)
    assert net.training
    for model in (net, logistic, lambda rows: softmax(logits_of(rows), axis=1)):
        other = audit(model, MEMBERS, OTHERS)
        for name in first.attacks:
            expected = first.attacks[name].auc
            assert other.attacks[name].auc == pytest.approx(expected, abs=1e-9)
    assert net.training  # put back, and Dropout was off


def test_scikit_learn_labels_need_not_be_numbers_from_0():
    names = np.array(["b", "a", "d", "c"])
    model = RandomForestClassifier(20, random_state=99).fit(X[:200], names[Y[:200]])
    named = audit(model, (X[:200], names[Y[:200]]), (X[200:], names[Y[200:]]))
    assert named.accuracy[0] == 1.0 and named.accuracy[1] < 0.9
    with pytest.raises(ValueError, match=r"y must hold classes of the model, .*'e'"):
        audit(model, (X[:200], names[Y[:200]]), (X[200:], np.repeat(["a", "e"], 100)))


def test_a_forest_learns_its_members_by_heart_and_the_report_says_so():
    assert REPORT.accuracy[0] == 1.0
    assert REPORT.attacks["LiRA, online"].auc > 0.8
    assert REPORT.strongest in REPORT.attacks and REPORT.doubts == []
    assert REPORT.shadows.count == 8
    index, share = REPORT.at_risk[0]
    assert 0 <= index < 200 and share <= 0.05 and len(REPORT.at_risk) == 10


def test_the_report_prints_draws_and_writes():
    text = str(REPORT)
    parts = ["200 members", "blind baseline", "LiRA, online", "TPR at 5.0% FPR"]
    for part in (*parts, "it takes 1,000 for 1.0%", "where 1% are members", "shadow models: 8"):
        assert part in text
    rate = REPORT.attacks[REPORT.strongest].rates[0.05]
    chance = rate.tpr * 0.1 / (rate.tpr * 0.1 + rate.fpr * 0.9)
    assert f"{chance:.1%} where 10% are members" in text
    assert "nan" not in text and max(map(len, text.splitlines())) < 160
    found = json.loads(REPORT.json())
    assert found["attacks"]["loss"]["auc"] == REPORT.attacks["loss"].auc
    assert found["attacks"]["loss"]["tpr_at"]["0.01"] is None
    assert found["most_at_risk"][0]["member"] == REPORT.at_risk[0][0]
    axes = REPORT.figure().axes[0]
    assert len(axes.get_legend().get_texts()) == 9 and axes.get_xscale() == "log"


def test_a_void_comparison_is_called_void():
    """Groups that differ by themselves: one pixel shifted, and labels only."""
    shifted = X[200:].copy()
    shifted[:, 3] = 1.0
    report = audit(logits_of, MEMBERS, (shifted, Y[200:]))
    assert report.blind.void and "VOID" in str(report)
    assert "Void" in report.figure().axes[0].get_title()
    assert json.loads(report.json())["blind_baseline"]["void"] is True
    by_label = audit(logits_of, MEMBERS, (X[200:], np.where(Y[200:] == 0, 1, Y[200:])))
    assert by_label.blind.void


def test_the_blind_baseline_seldom_sounds_without_a_difference():
    """12 random splits: with BLIND_ALARM each, 4 alarms or more are rarer than 1e-9."""
    alarms, rng = 0, np.random.default_rng(3)
    assert BLIND_ALARM == 1e-3
    for seed in range(12):
        inside = rng.permutation(100) < 50
        alarms += _blind(X[:100, :5], Y[:100], inside, seed).void
    assert alarms < 4


def test_shadows_are_as_large_as_the_target_and_every_record_is_in_and_out():
    for size in (50, 40, 70):
        drawn = _shadow_members(16, 100, size, np.random.default_rng(0))
        assert (drawn.sum(axis=1) == size).all()
        assert drawn.sum(axis=0).min() >= 2 and (~drawn).sum(axis=0).min() >= 2
    halves = _shadow_members(8, 100, 50, np.random.default_rng(0))
    np.testing.assert_array_equal(halves[::2], ~halves[1::2])
    with pytest.raises(ValueError, match="ask for more shadows"):
        _shadow_members(8, 100, 97, np.random.default_rng(0))


def test_shadows_see_their_own_records_and_a_fresh_seed():
    seen = []

    def train(X, y, seed):
        seen.append((len(X), seed))
        X[:], y[:] = 0, 0  # theirs to spoil
        return logits_of

    before = X.copy()
    with pytest.raises(ValueError, match="better than guessing"):
        audit(logits_of, MEMBERS, OTHERS, train=train, shadows=8, seed=5)
    assert seen == [(200, seed) for seed in range(5, 13)]
    np.testing.assert_array_equal(X, before)


def test_shadows_trained_otherwise_are_doubted():
    def small(X, y, seed):
        return RandomForestClassifier(20, max_depth=2, random_state=seed).fit(X, y)

    report = audit(FOREST, MEMBERS, OTHERS, train=small, shadows=8)
    assert any("accuracy on members is 1.000" in doubt for doubt in report.doubts)
    assert "DOUBTFUL" in str(report)


def test_what_is_compared_with_shadows():
    rng = np.random.default_rng(0)
    drawn, inside = rng.random((50, 400)) < 0.5, np.arange(400) < 200
    logits = rng.normal(size=(51, 400, 4)) + 2 * np.eye(4)[Y]
    alike = _compare(logits[0], logits[1:], Y, inside, drawn)
    assert isinstance(alike, Shadows) and not alike.doubts
    worse = _compare(logits[0] + 2 * np.eye(4)[Y], logits[1:], Y, inside, drawn)
    assert len(worse.doubts) == 4
    own = -np.log(softmax(logits[0], axis=1)[np.arange(400), Y])
    assert alike.target["loss on members"] == pytest.approx(own[:200].mean())


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"members": X[:200]}, r"members must be a pair \(X, y\), got ndarray"),
        ({"members": (X[:19], Y[:19])}, "at least 20 members, got 19"),
        ({"non_members": (X[:5], Y[:5])}, "at least 20 non_members, got 5"),
        ({"non_members": (X[200:, :9], Y[200:])}, r"records of one shape, got \(20,\) and \(9,\)"),
        ({"non_members": (X[200:], Y[:9])}, r"got shapes \(200, 20\) and \(9,\)"),
        ({"members": (X[:200] * np.nan, Y[:200])}, "X of members must hold finite"),
        ({"members": (X[:200], 0 * Y[:200]), "non_members": (X[200:], 0 * Y[200:])},
         "at least 2 classes, got only"),
        ({"members": (X[:200], Y[:200] + 9)}, "classes from 0 to 3, got 1"),
        ({"predict_logits": lambda X: softmax(logits_of(X), axis=1) * 0.9},
         r'add up to 1 in each row.*say outputs="logits"'),
        ({"predict_logits": lambda X: logits_of(X), "outputs": "probabilities"}, "add up to 1"),
        ({"predict_logits": lambda X: logits_of(X)[:, 0]}, "the model's outputs must have"),
        ({"predict_logits": lambda X: logits_of(X)[:, :1]}, "at least 2 classes"),
        ({"predict_logits": lambda X: logits_of(X)[:9]}, "each of 400 records, got 9 rows"),
        ({"predict_logits": lambda X: logits_of(X) * np.nan}, "finite"),
        ({"predict_logits": "model.pt"}, "a PyTorch module, a scikit-learn classifier"),
        ({"train": 3}, r"train must be a function \(X, y, seed\)"),
        ({"shadows": 4}, "shadows must be"),
        ({"outputs": "log"}, "outputs must be one of"),
        ({"fprs": (0.0,)}, "each of fprs"),
        ({"priors": 2}, "each of priors"),
        ({"alpha": 1}, "alpha must be"),
        ({"seed": None}, "seed must be"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(changed, sentence):
    arguments = {"predict_logits": logits_of, "members": MEMBERS, "non_members": OTHERS, **changed}
    with pytest.raises((TypeError, ValueError), match=sentence):
        audit(arguments.pop("predict_logits"), arguments.pop("members"),
              arguments.pop("non_members"), **arguments)  # fmt: skip
