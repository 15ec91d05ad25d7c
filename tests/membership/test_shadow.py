"""Shadow models: an attack built again by hand, chance where it is due, and untrained models."""

import inspect

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coursekit.membership import ShadowAttack, check_shadows

K = 4


def world(seed, models=6, records=400, boost=2.0):
    """Logits of nets that know their classes, and know them better for members."""
    rng = np.random.default_rng(seed)
    y = np.arange(records) % K
    membership = rng.random((models, records)) < 0.5
    logits = rng.normal(size=(models, records, K))
    logits += (1.5 + boost * membership)[..., None] * (np.arange(K) == y[:, None])
    return logits, y, membership


def test_it_tells_members_from_others():
    logits, y, membership = world(0)
    for options in ({}, {"per_class": True}, {"features": "top-3"}):
        attack = ShadowAttack(**options).fit(logits[1:], y, membership[1:])
        scores = attack.score(logits[0], y)
        assert scores.shape == y.shape
        assert roc_auc_score(membership[0], scores) > 0.75


@pytest.mark.parametrize("per_class", [False, True])
def test_equal_to_the_attack_built_by_hand(per_class):
    """Three highest log p; one logistic regression, or one for each class."""
    logits, y, membership = world(1)
    attack = ShadowAttack(per_class=per_class, features="top-3")
    scores = attack.fit(logits[1:], y, membership[1:]).score(logits[:2], y)
    features = np.sort(log_softmax(logits, axis=-1), axis=-1)[..., ::-1][..., :3]
    for group in range(K) if per_class else [None]:
        these = np.ones(400, bool) if group is None else y == group
        model = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced"))
        model.fit(features[1:, these].reshape(-1, 3), membership[1:, these].ravel())
        for target in range(2):
            np.testing.assert_allclose(
                scores[target, these], model.decision_function(features[target, these]), rtol=1e-3,
                atol=1e-3)


def test_top_3_pooled_uses_no_label_and_the_others_do():
    logits, y, membership = world(2)
    for options, same in (({"features": "top-3"}, True), ({}, False)):
        attack = ShadowAttack(**options).fit(logits[1:], y, membership[1:])
        scores = attack.score(logits[0], y), attack.score(logits[0], (y + 1) % K)
        assert np.array_equal(*scores) == same


def test_pooled_it_is_told_the_class():
    """Where classes differ in confidence, an attack model that does not know them is worse."""
    logits, y, membership = world(14, records=2000)
    logits += 2.0 * y[:, None] * (np.arange(K) == y[:, None])
    areas = []
    for options in ({}, {"per_class": True}, {"features": "top-3"}):
        attack = ShadowAttack(**options).fit(logits[1:], y, membership[1:])
        areas.append(roc_auc_score(membership[0], attack.score(logits[0], y)))
    assert min(areas[:2]) > areas[2] + 0.1


def test_a_target_that_was_trained_on_neither_half():
    logits, y, membership = world(3, records=4000)
    target = world(4, models=1, records=4000, boost=0.0)[0][0]
    half = np.random.default_rng(5).permutation(4000) < 2000
    attack = ShadowAttack().fit(logits, y, membership)
    error = np.sqrt(4001 / (12 * 2000**2))
    assert abs(roc_auc_score(half, attack.score(target, y)) - 0.5) < 6.2 * error  # 6e-10


def test_shuffled_membership_leaves_chance():
    """Log-odds fitted to coins: the sum of their squares is 4 chi^2 of as many degrees as features
    (regularisation only takes from it); a false alarm has probability 1e-9."""
    logits, y, membership = world(6)
    rng = np.random.default_rng(7)
    for options, features in (({}, 2 * K + 3), ({"per_class": True}, K * (K + 3)),
                              ({"features": "top-3"}, 4)):
        limit = 4 * stats.chi2.isf(1e-9, features)
        for labels, chance in ((rng.permuted(membership, axis=1), True), (membership, False)):
            scores = ShadowAttack(**options).fit(logits, y, labels).score(logits, y)
            assert (np.sum(scores**2) < limit) == chance


def test_the_membership_of_a_target_has_no_way_in():
    assert list(inspect.signature(ShadowAttack.score).parameters) == ["self", "logits", "y"]


def test_several_targets_saturation_and_no_change_of_inputs():
    logits, y, membership = world(8)
    logits[2, :5] = 1e4 * np.eye(K)[[0, 1, 2, 3, 0]]
    before = logits.copy(), y.copy(), membership.copy()
    for array in (logits, y, membership):
        array.flags.writeable = False
    for options in ({}, {"per_class": True}, {"features": "top-3"}):
        attack = ShadowAttack(**options).fit(logits[1:], y, membership[1:])
        scores = attack.score(logits, y)
        np.testing.assert_allclose(scores, [attack.score(z, y) for z in logits], rtol=1e-12)
        for rows in (1e4 * np.eye(K), np.eye(K), -1e4 * np.eye(K)):
            assert np.isfinite(attack.score(rows, np.arange(K))).all()
            assert np.isfinite(attack.score(rows, [1, 2, 3, 0])).all()
    for array, copy in zip((logits, y, membership), before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_another_classifier():
    logits, y, membership = world(9)
    forest = RandomForestClassifier(20, min_samples_leaf=20, random_state=0)
    attack = ShadowAttack(classifier=forest).fit(logits[1:], y, membership[1:])
    scores = attack.score(logits[0], y)
    assert scores.min() >= 0 and scores.max() <= 1 and not hasattr(forest, "estimators_")
    assert roc_auc_score(membership[0], scores) > 0.75


def test_accuracy_of_the_shadows():
    logits, y, membership = world(10)
    y = np.where(np.arange(400) < 300, 0, y)
    found = check_shadows(logits + 3 * np.eye(K)[y], y, membership)
    for i, own in enumerate(membership):
        guesses = (logits[i] + 3 * np.eye(K)[y]).argmax(-1)[own]
        assert found[i] == pytest.approx(balanced_accuracy_score(y[own], guesses), rel=1e-12)


def test_untrained_shadows_are_refused():
    """Random logits (refused with probability above 0.998 a seed), one answer to all, one bad."""
    logits, y, membership = world(11)
    y0 = np.where(np.arange(400) < 300, 0, y)  # 81% of one class
    constant = np.tile(np.eye(K)[0], (6, 400, 1))
    one_bad = logits.copy()
    one_bad[3] = constant[3]
    rng = np.random.default_rng(12)
    for bad, labels, low in [(rng.normal(size=logits.shape), y, r"\d"), (constant, y0, "6"),
                             (one_bad, y, "1")]:
        with pytest.raises(ValueError, match=rf"better than guessing.*, {low} of 6 models"):
            ShadowAttack().fit(bad, labels, membership)
    barely = constant.copy()
    barely[:, 1] = np.eye(K)[1]  # one more right, in each model
    with pytest.raises(ValueError, match="0 of 6 models"):
        check_shadows(barely, y, np.ones_like(membership))


def test_refused():
    logits, y, membership = world(13)
    attack = ShadowAttack(per_class=True)
    with pytest.raises(ValueError, match="fit must be called before score"):
        attack.score(logits, y)
    with pytest.raises(TypeError, match=r"True .IN. and False .OUT. only, got float64"):
        attack.fit(logits, y, np.where(membership, 1.0, np.nan))
    with pytest.raises(ValueError, match=r"shape \(models, records, classes\), got \(400, 4\)"):
        attack.fit(logits[0], y, membership[0])
    with pytest.raises(ValueError, match="members and non-members of class 2"):
        attack.fit(logits, y, membership | (y == 2))
    with pytest.raises(ValueError, match=r"members and non-members\."):
        ShadowAttack().fit(logits, y, np.ones_like(membership))
    some = y < 3
    attack.fit(logits[:, some], y[some], membership[:, some])
    with pytest.raises(ValueError, match="no record of class 3"):
        attack.score(logits, y)
    with pytest.raises(ValueError, match="must have 4 classes, got 3"):
        attack.score(logits[..., :3], y)
    for options in ({"features": "raw"}, {"per_class": 1}):
        with pytest.raises(ValueError, match="must be one of"):
            ShadowAttack(**options)
