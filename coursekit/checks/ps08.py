"""Checks of problem set 08, threshold attacks.

Each exercise: our answer, other right answers, the mistakes as code, and the parts of the check.
No answer is random. Scores are higher for members; in 8.4 there are losses, which are lower.
"""

import math

import numpy as np
from scipy import special, stats
from scipy.optimize import brentq

from coursekit.checks.exercise import Exact, Exercise, Mistake

# -------------------------------------------------------------------------------------------- 8.1

def gap_accuracy(predicted, labels, member):
    right = predicted == labels
    return (np.mean(right[member]) + np.mean(~right[~member])) / 2


def gap_accuracy_from_accuracies(predicted, labels, member):
    train, test = (np.mean(predicted[who] == labels[who]) for who in (member, ~member))
    return 0.5 + (train - test) / 2


def gap_accuracy_by_counting(predicted, labels, member):
    judged, sizes = [0, 0], [0, 0]
    for guess, label, inside in zip(predicted, labels, member, strict=True):
        sizes[int(inside)] += 1
        judged[int(inside)] += bool(guess == label) == bool(inside)
    return sum(judged[i] / sizes[i] for i in (0, 1)) / 2


def gap_with(value):
    """A wrong answer from the model's accuracies on members and on non-members."""
    def wrong(predicted, labels, member):
        return value(*(np.mean(predicted[who] == labels[who]) for who in (member, ~member)))
    return wrong


def gap_precision(predicted, labels, member):
    called = predicted == labels
    return np.mean(member[called]) if called.any() else 0.0


def gap_cases(rng):
    # (members, of whom right, non-members, of whom right); in two the strangers do better.
    counts = [(3, 3, 5, 2), (40, 34, 10, 5), (8, 2, 20, 15), (1, 0, 3, 2), (6, 3, 12, 6)]
    for _ in range(4):
        m, n = rng.integers(12, 50, 2)
        counts.append((m, rng.integers(1, m + 1), n, rng.integers(n + 1)))
    cases = []
    for m, right_in, n, right_out in counts:
        order, labels = rng.permutation(m + n), rng.integers(4, size=m + n)
        member, right = np.zeros((2, m + n), dtype=bool)
        member[order[:m]], right[order[:right_in]] = True, True
        right[order[m:m + right_out]] = True
        predicted = np.where(right, labels, (labels + rng.integers(1, 4, m + n)) % 4)
        cases.append({"predicted": predicted, "labels": labels, "member": member})
    return cases


GAP = Exercise(
    "8.1", "Right means member", 1, function="gap_accuracy", right=gap_accuracy,
    others=(gap_accuracy_from_accuracies, gap_accuracy_by_counting),
    parts=(Exact(gap_cases, proof="the values agree, also where there are more members than "
                                  "others and where the attack does worse than a coin"),),
    mistakes=(
        Mistake("not-balanced",
                lambda predicted, labels, member: np.mean((predicted == labels) == member),
                "You averaged over all records, so whichever group is larger decides, and an "
                "attacker who always says \"member\" looks good where most are members. Take the "
                "share of right answers in each group, then the mean of the two."),
        Mistake("accuracy-of-the-model",
                lambda predicted, labels, member: np.mean(predicted == labels),
                "This is the accuracy of the model. The attack is right on a non-member where the "
                "model is wrong."),
        Mistake("mean-of-accuracies", gap_with(lambda train, test: (train + test) / 2),
                "You averaged the two accuracies of the model. On non-members the attack is right "
                "where the model is wrong: there take one minus the accuracy."),
        Mistake("members-only", gap_with(lambda train, test: train),
                "You looked at members only. Whoever calls everybody a member is always right "
                "there; what matters is the other half, the false alarms."),
        Mistake("test-accuracy-only", gap_with(lambda train, test: test),
                "This is the model's accuracy on non-members: the attack's false-positive rate, "
                "not its accuracy."),
        Mistake("gap-itself", gap_with(lambda train, test: train - test),
                "This is the gap, which is the attack's advantage, TPR minus FPR. Its accuracy is "
                "one half plus half of that."),
        Mistake("gap-not-halved", gap_with(lambda train, test: 0.5 + train - test),
                "You added the whole gap to one half. With a gap of 1 the attack is always right: "
                "that is 1, not 1.5."),
        Mistake("turned-round", gap_with(lambda train, test: 0.5 - (train - test) / 2),
                "The rule is the other way round: a right prediction means \"member\"."),
        Mistake("cut-at-one-half", gap_with(lambda train, test: max(0.5, 0.5 + (train - test) / 2)),
                "You lifted values below one half to one half. As a verdict on a defence that is "
                "wise, but the question is how often this rule is right."),
        Mistake("gap-without-sign", gap_with(lambda train, test: 0.5 + abs(train - test) / 2),
                "You took the gap without its sign. A model that does better on strangers makes "
                "this rule worse than a coin."),
        Mistake("precision", gap_precision,
                "This is the share of members among those called members, the precision. It "
                "depends on how many members there are; the balanced accuracy does not."),
    ),
    hints=(
        "Two shares: of the members, those whom the model gets right; of the non-members, those "
        "whom it gets wrong.",
        "np.mean(right[member]) is the first, with right = predicted == labels and `member` an "
        "array of True and False; ~member picks the others. Then the mean of the two shares.",
    ),
    lesson="It is 1/2 + (training accuracy - test accuracy) / 2, always: a gap of 12 points gives "
           "56%. The rule has no threshold to turn, so it has one point on the ROC and cannot be "
           "made careful.",
)


# -------------------------------------------------------------------------------------------- 8.2

def log_sum(logits, kept):
    """log of the sum of e^logit over the classes kept, in each row."""
    return np.logaddexp.reduce(np.where(kept, logits, -np.inf), axis=1)


def log_odds(logits, true):
    logits = np.asarray(logits, dtype=np.float64)
    return log_sum(logits, true) - log_sum(logits, ~true)


def log_odds_by_rows(logits, true):
    found = []
    for row, own in zip(np.asarray(logits).tolist(), np.asarray(true).tolist(), strict=True):
        sums = []
        for wanted in (True, False):
            kept = [z for z, here in zip(row, own, strict=True) if here == wanted]
            sums.append(max(kept) + math.log(math.fsum(math.exp(z - max(kept)) for z in kept)))
        found.append(sums[0] - sums[1])
    return found


def log_odds_by_scipy(logits, true):
    logits = np.asarray(logits).astype(float)
    above, below = (special.logsumexp(logits, axis=1, b=kept.astype(float)) for kept in
                    (true, ~true))
    return above - below


def softmax(logits):
    e = np.exp(logits - np.max(logits, axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def odds_from(probabilities, tiny=0.0):
    """A wrong answer that goes through probabilities(logits), with tiny added to each of two."""
    def wrong(logits, true):
        p = np.where(true, probabilities(np.asarray(logits, dtype=float)), 0).sum(axis=1)
        return np.log(p + tiny) - np.log(1 - p + tiny)
    return wrong


def softmax_overflows(logits):
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def odds_with(value):
    """A wrong answer value(logits, true), after the logits were made float64."""
    return lambda logits, true: value(np.asarray(logits, dtype=float), np.asarray(true))


def in_the_precision_given(logits, true):
    def of(kept):
        masked = np.where(kept, logits, np.array(-np.inf, dtype=logits.dtype))
        return np.logaddexp.reduce(masked, axis=1)
    return of(true) - of(~true)


def only(chosen, shape):
    return np.arange(shape[1]) == chosen[:, None]


def predicted_class(logits, true):
    own = only(logits.argmax(axis=1), logits.shape)
    return log_sum(logits, own) - log_sum(logits, ~own)


def first_class(logits, true):
    own = only(true.argmax(axis=1), logits.shape)
    return log_sum(logits, own) - log_sum(logits, ~own)


def labels_of(rng, rows, classes):
    """A random label for each row: some of the classes, never all; the first is one class."""
    counts = np.append(1, rng.integers(1, classes, rows - 1))
    return np.array([rng.permutation(classes) < count for count in counts])


def odds_cases(rng):
    sure = np.array([[40.0, 0], [0, 40], [-800, 0], [0, -800], [3, 3]])
    cases = [{"logits": sure, "true": only(np.zeros(5), sure.shape)}]
    # Two classes of one label, both below the winner; and a lead that no softmax can show.
    logits = np.array([[5.0, 7, 1, 6], [-999, -1001, -100, -50], [1200, 300, 299, 1199]])
    cases.append({"logits": logits, "true": np.array([[1, 0, 0, 1], [1, 1, 0, 0], [1, 0, 0, 1]],
                                                     dtype=bool)})
    for scale, kind in ((5, np.float64), (3, np.float32), (30, np.float32)):
        rows, classes = 14, int(rng.integers(3, 7))
        cases.append({"logits": (scale * rng.normal(size=(rows, classes))).astype(kind),
                      "true": labels_of(rng, rows, classes)})
    return cases


LOG_ODDS = Exercise(
    "8.2", "How sure, on a scale without end?", 2, function="log_odds", right=log_odds,
    others=(log_odds_by_rows, log_odds_by_scipy),
    parts=(Exact(odds_cases, proof="the log-odds agree to all digits, for labels of one class and "
                                   "of several, and for logits in the hundreds"),),
    mistakes=(
        Mistake("softmax-saturates", odds_from(softmax),
                "You went through the softmax. From a lead of 37 on it says 1.0 to the last digit, "
                "1 - p is 0, and all sure records tie at infinity. Stay with the logits: the "
                "common denominator of p and 1 - p cancels."),
        Mistake("softmax-overflows", odds_from(softmax_overflows),
                "Your exponentials overflow: e^800 is infinite to a computer, and infinity over "
                "infinity is not a number. Stay with logarithms, for instance np.logaddexp."),
        Mistake("tiny-number-added",
                odds_with(lambda z, true: np.log((softmax(z) * true).sum(axis=1) + 1e-45)
                          - np.log((softmax(z) * ~true).sum(axis=1) + 1e-45)),
                "A tiny number inside the logarithm keeps it finite, but then no value is above "
                "103.6: log(1e-45) is where your scale ends, and beyond it all records tie."),
        Mistake("all-classes-below", odds_with(lambda z, true: log_sum(z, true)
                                               - log_sum(z, np.ones_like(true))),
                "You summed over all classes below the line, which gives log p. The odds compare "
                "with the other classes only, p over 1 - p."),
        Mistake("predicted-class", odds_with(predicted_class),
                "You took the class with the largest logit. Being sure and wrong is no sign of "
                "membership: the classes that count are those of the record's label."),
        Mistake("first-class-of-the-label", odds_with(first_class),
                "Where a label covers several classes you used one of them. All of them are right "
                "answers, so their chances add up."),
        Mistake("runner-up", odds_with(lambda z, true: np.max(np.where(true, z, -np.inf), axis=1)
                                       - np.max(np.where(true, -np.inf, z), axis=1)),
                "You compared the largest logit inside the label with the largest outside. That is "
                "the margin; 1 - p holds all other classes, not only the best of them."),
        Mistake("hidden-by-zero",
                odds_with(lambda z, true: np.logaddexp.reduce(z * true, axis=1)
                          - np.logaddexp.reduce(z * ~true, axis=1)),
                "You set the logits that should not count to 0, and e^0 is 1: each of them still "
                "adds 1 to the sum. What adds nothing is minus infinity."),
        Mistake("logits-averaged",
                odds_with(lambda z, true: np.mean(z, axis=1, where=true)
                          - np.mean(z, axis=1, where=~true)),
                "You averaged logits. Chances add up, and they are the exponentials of the logits: "
                "one class with a large logit outweighs many small ones."),
        Mistake("sign-flipped", lambda logits, true: -log_odds(logits, true),
                "The sign is turned: a record of whose label the model is sure has a large "
                "positive value."),
        Mistake("sums-as-exponentials",
                odds_with(lambda z, true: np.log((softmax(z) * true).sum(axis=1))
                          - np.log((softmax(z) * ~true).sum(axis=1))),
                "The two sums are right, but you took their logarithms at the end: e^-800 is 0 to "
                "a computer and e^800 infinite, so such a record scores infinity. Stay with "
                "logarithms all the way, for instance np.logaddexp."),
        Mistake("stays-in-float32", in_the_precision_given,
                "Nearly: you calculated in the float32 in which the logits came, so seven digits "
                "are right. Make them float64 first; ties and order of sure records depend on it."),
    ),
    hints=(
        "p = A / (A + B) and 1 - p = B / (A + B), with A and B the sums of e^logit inside and "
        "outside the label. What is log(p / (1 - p))?",
        "log A - log B, each as np.logaddexp.reduce(..., axis=1) over logits in float64, with the "
        "classes that should not count set to -np.inf by np.where.",
    ),
    lesson="With one class for a label this is the signal of LiRA (Carlini et al. 2022; notebook "
           "09). The chance of the label ranks records alike, and the loss the other way round; "
           "but the chance ties at 1.0, and a loss taken from it at 0.",
)


# -------------------------------------------------------------------------------------------- 8.3

def mentropy_score(p, labels, floor):
    own = np.arange(p.shape[1]) == labels[:, None]
    log_p, log_rest = np.log(np.maximum(p, floor)), np.log(np.maximum(1 - p, floor))
    return np.where(own, (1 - p) * log_p, p * log_rest).sum(axis=1)


def mentropy_by_rows(p, labels, floor):
    found = []
    for row, label in zip(p.tolist(), labels.tolist(), strict=True):
        score = (1 - row[label]) * math.log(max(row[label], floor))
        for i, share in enumerate(row):
            if i != label:
                score += share * math.log(max(1 - share, floor))
        found.append(score)
    return found


def mentropy_by_swapping(p, labels, floor):
    """The label's entry is turned into its complement; then all entries have one formula."""
    turned = p.copy()
    at = np.arange(len(p)), labels
    turned[at] = 1 - p[at]
    rest = 1 - turned
    rest[at] = p[at]
    return np.einsum("ij,ij->i", turned, np.log(np.where(rest < floor, floor, rest)))


def mentropy_with(own=lambda p, log_p, log_rest: (1 - p) * log_p,
                  other=lambda p, log_p, log_rest: p * log_rest,
                  logs=lambda p, floor: (np.log(np.maximum(p, floor)),
                                         np.log(np.maximum(1 - p, floor))),
                  label=lambda p, labels: labels):
    """A wrong score: own(...) at the label, other(...) elsewhere, added up."""
    def wrong(p, labels, floor):
        at = np.arange(p.shape[1]) == label(p, labels)[:, None]
        log_p, log_rest = logs(p, floor)
        return np.where(at, own(p, log_p, log_rest), other(p, log_p, log_rest)).sum(axis=1)
    return wrong


def guards_p_twice(p, floor):
    """The slip of a published script: 1 - p is replaced where p is 0, not where 1 - p is."""
    return np.log(np.where(p == 0, floor, p)), np.log(np.where(p == 0, 1.0, 1 - p))


def zero_for_log_of_zero(p, floor):
    return [np.where(x > 0, np.log(np.where(x > 0, x, 1)), 0) for x in (p, 1 - p)]


def mentropy_cases(rng):
    # Sure and right, sure and wrong, wrong without being sure of anything else, even, and nearly
    # sure, where a floor of 0.01 replaces more than 0.
    rows = np.array([[0.0, 1, 0], [0, 1, 0], [0, 0.5, 0.5], [1 / 3, 1 / 3, 1 / 3], [0.2, 0.1, 0.7],
                     [0.996, 0.003, 0.001]])
    cases = [{"p": rows, "labels": np.array([1, 0, 0, 2, 2, 0]), "floor": 1e-30},
             {"p": rows, "labels": np.array([1, 2, 1, 0, 0, 1]), "floor": 0.01}]
    for _ in range(3):
        classes = int(rng.integers(2, 7))
        cases.append({"p": rng.dirichlet(np.ones(classes), 14),
                      "labels": rng.integers(classes, size=14), "floor": 1e-30})
    return cases


MENTROPY = Exercise(
    "8.3", "Sure, and of the right thing", 2, function="mentropy_score", right=mentropy_score,
    others=(mentropy_by_rows, mentropy_by_swapping),
    parts=(Exact(mentropy_cases, proof="the scores agree, also of sure answers, right and wrong"),),
    mistakes=(
        Mistake("guards-the-wrong-array", mentropy_with(logs=guards_p_twice),
                "A sure wrong answer gives minus infinity: there 1 - p is 0 for the class "
                "predicted, and log(1 - p) is not guarded, only log p is. The script of SELENA "
                "(Tang et al. 2022) has this slip. (To cut p at 1 - floor does not help: 1 - 1e-30 "
                "is 1 to a computer.)"),
        Mistake("no-guard", mentropy_with(logs=lambda p, floor: (np.log(p), np.log(1 - p))),
                "You took the logarithm of 0. Replace what is below the floor by the floor, in p "
                "and in 1 - p."),
        Mistake("log-of-zero-is-zero", mentropy_with(logs=zero_for_log_of_zero),
                "Where a logarithm is infinite you put 0. Then a sure wrong answer scores 0, like "
                "a sure right one: just the difference that this score was made for."),
        Mistake("plain-entropy", mentropy_with(own=lambda p, log_p, log_rest: p * log_p,
                                               other=lambda p, log_p, log_rest: p * log_p),
                "This is the plain entropy, with its sign. It does not know the label: sure and "
                "right and sure and wrong both score 0."),
        Mistake("sign-flipped", lambda p, labels, floor: -mentropy_score(p, labels, floor),
                "This is the modified entropy itself, which is low for members. The score is minus "
                "that: 0 for a sure right answer, below 0 for all others."),
        Mistake("factor-of-the-label-missing",
                mentropy_with(own=lambda p, log_p, log_rest: log_p),
                "The label's term lacks its factor 1 - p: you have log p alone, the loss."),
        Mistake("factor-p-at-the-label",
                mentropy_with(own=lambda p, log_p, log_rest: p * log_p),
                "At the label you weigh log p with p, as plain entropy does. Then p near 0 there "
                "costs nothing; the weight is 1 - p."),
        Mistake("factors-of-the-others-missing",
                mentropy_with(other=lambda p, log_p, log_rest: log_rest),
                "The other classes' terms lack their factor p."),
        Mistake("label-in-the-sum",
                mentropy_with(own=lambda p, log_p, log_rest: (1 - p) * log_p + p * log_rest),
                "Your sum over the other classes runs over the label too, and so punishes a model "
                "for being sure of the right answer."),
        Mistake("label-only", mentropy_with(other=lambda p, log_p, log_rest: 0 * p),
                "You have the label's term only. The others say where the rest of the chance went: "
                "all to one class, or spread."),
        Mistake("others-only", mentropy_with(own=lambda p, log_p, log_rest: 0 * p),
                "The label's own term is missing."),
        Mistake("predicted-class", mentropy_with(label=lambda p, labels: p.argmax(axis=1)),
                "You took the most likely class for the label. The label is given, and this score "
                "is about the difference between the two."),
    ),
    hints=(
        "At the label the term is (1 - p) log p, at each other class p log(1 - p). Logarithms of "
        "two arrays are needed, and each of the two can hold a 0.",
        "np.log(np.maximum(p, floor)) and np.log(np.maximum(1 - p, floor)); own = "
        "np.arange(classes) == labels[:, None] tells the label, and np.where picks the term.",
    ),
    lesson="Song and Mittal (2021) use it with one threshold for each class. Whoever finds "
           "infinities in scores should look for a guard on the wrong array: all such records "
           "tie at the bottom.",
)


# -------------------------------------------------------------------------------------------- 8.4

def roc_of_losses(members, others):
    thresholds = np.unique(np.concatenate([members, others]))
    fpr, tpr = (np.append(0, (losses[:, None] <= thresholds).mean(axis=0))
                for losses in (others, members))
    return fpr, tpr


def roc_by_counting(members, others):
    fpr, tpr = [0.0], [0.0]
    for threshold in sorted({*members.tolist(), *others.tolist()}):
        fpr.append(sum(loss <= threshold for loss in others.tolist()) / len(others))
        tpr.append(sum(loss <= threshold for loss in members.tolist()) / len(members))
    return [fpr, tpr]


def roc_by_walking(members, others):
    losses = np.concatenate([members, others])
    member = np.arange(len(losses)) < len(members)
    order = np.argsort(losses, kind="stable")
    ends = np.append(np.flatnonzero(losses[order][1:] != losses[order][:-1]), len(losses) - 1)
    found = np.append(0, np.cumsum(member[order])[ends])
    return np.stack([(np.append(0, ends + 1) - found) / len(others), found / len(members)])


def roc_with(change):
    """A wrong curve change(fpr, tpr) made of the right one."""
    return lambda members, others: change(*roc_of_losses(members, others))


def walk_record_by_record(first):
    """Each record makes a step of its own, in ties those of `first` before the others."""
    def wrong(members, others):
        losses = np.concatenate([members, others])
        member = np.arange(len(losses)) < len(members)
        order = np.lexsort([member != first, losses])
        return [np.append(0, np.cumsum(who[order]) / who.sum()) for who in (~member, member)]
    return wrong


def roc_at_losses_of_members(members, others):
    return [np.append(0, (losses[:, None] <= np.unique(members)).mean(axis=0))
            for losses in (others, members)]


def roc_strict(members, others):
    thresholds = np.unique(np.concatenate([members, others]))
    return [(losses[:, None] < thresholds).mean(axis=0) for losses in (others, members)]


def false_discoveries(members, others):
    fpr, tpr = roc_of_losses(members, others)
    called = fpr * len(others) + tpr * len(members)
    return fpr * len(others) / np.maximum(called, 1), tpr


def corners_only(fpr, tpr):
    kept = [0, *(i for i in range(1, len(fpr) - 1) if not (
        np.isclose(fpr[i + 1] - fpr[i], fpr[i] - fpr[i - 1])
        and np.isclose(tpr[i + 1] - tpr[i], tpr[i] - tpr[i - 1]))), len(fpr) - 1]
    return fpr[kept], tpr[kept]


def roc_cases(rng):
    # Ties within and across, two equal steps in a row, and infinite losses, which tie as well.
    cases = [([0.1, 0.2, 0.2, 0.9], [0.2, 0.5, 0.9, 0.9]),
             ([0.1, 0.2, 0.3, 2.0, np.inf], [0.5, np.inf, np.inf]),
             ([0.7], [0.2, 0.7, 0.7])]
    for _ in range(4):
        m, n = rng.integers(5, 16, 2)
        losses = rng.exponential([[0.4], [1.0]], (2, 16)).round(1)
        cases.append((losses[0, :m], losses[1, :n]))
    # Near to each other but different, as of an overfitted model. Not sorted, as losses come.
    cases.append([10.0 ** rng.uniform(-12, 0, size) for size in (7, 9)])
    return [{"members": rng.permutation(np.array(a)), "others": rng.permutation(np.array(b))}
            for a, b in cases]


ROC = Exercise(
    "8.4", "A curve from a list of losses", 2, function="roc_of_losses", right=roc_of_losses,
    others=(roc_by_counting, roc_by_walking),
    parts=(Exact(roc_cases, proof="all points agree, with ties within and across the groups"),),
    mistakes=(
        Mistake("ties-one-by-one-members-first", walk_record_by_record(first=True),
                "You stepped from record to record, and among equal losses took members first. No "
                "threshold can do that: equal losses are called together. Your curve shows a leak "
                "even where all losses are equal."),
        Mistake("ties-one-by-one-others-first", walk_record_by_record(first=False),
                "You stepped from record to record, and among equal losses took non-members first. "
                "No threshold can do that: equal losses are called together, in one step."),
        Mistake("nobody-missing", roc_with(lambda fpr, tpr: (fpr[1:], tpr[1:])),
                "The point (0, 0) is missing: with a threshold below all losses the attacker calls "
                "nobody."),
        Mistake("strictly-below", roc_strict,
                "You call a record if its loss is strictly below the threshold. The rule here is "
                "\"at most\"; with yours nobody with the largest loss is ever called, and the "
                "curve does not end at (1, 1)."),
        Mistake("large-losses-called",
                roc_with(lambda fpr, tpr: (1 - fpr[::-1], 1 - tpr[::-1])),
                "You call those with large losses. Members have small ones: the model has seen "
                "them."),
        Mistake("falling-order", roc_with(lambda fpr, tpr: (fpr[::-1], tpr[::-1])),
                "The points run from (1, 1) to (0, 0). Let the threshold rise, so that the curve "
                "starts with nobody."),
        Mistake("axes-swapped", roc_with(lambda fpr, tpr: (tpr, fpr)),
                "You return TPR first. FPR is the horizontal axis and comes first."),
        Mistake("counts", lambda members, others: np.multiply(
                    roc_of_losses(members, others), [[len(others)], [len(members)]]),
                "These are counts. Divide each by the size of its group."),
        Mistake("divided-by-all", lambda members, others: np.multiply(
                    roc_of_losses(members, others), [[len(others)], [len(members)]])
                / (len(members) + len(others)),
                "You divided by all records. TPR is a share of the members, FPR one of the "
                "non-members."),
        Mistake("false-among-called", false_discoveries,
                "Your first array is the share of non-members among those called. FPR is the share "
                "of those called among the non-members."),
        Mistake("points-dropped", roc_with(corners_only),
                "You left out points that lie on a straight line between their neighbours, as some "
                "libraries do. On paper the curve looks the same, but TPR at a given FPR is then "
                "read off at the wrong point."),
        Mistake("thresholds-of-members-only", roc_at_losses_of_members,
                "You took the members' losses as thresholds. The attacker does not know who is "
                "one: each loss that occurs is a threshold."),
    ),
    hints=(
        "np.unique gives the different losses in rising order. For each of them count the members "
        "with a loss of at most that, and the non-members.",
        "(losses[:, None] <= thresholds).mean(axis=0) is the share called at each threshold, for "
        "`members` and for `others`; np.append(0, ...) puts the first point in front.",
    ),
    lesson="Every attack with a threshold is such a list of points, and nothing lies between two "
           "of them but for an attacker who tosses a coin.",
)


# -------------------------------------------------------------------------------------------- 8.5

def auc_and_error(members, others):
    wins = (members[:, None] > others) + 0.5 * (members[:, None] == others)
    return wins.mean(), null_error(members, others)


def null_error(members, others):
    m, n, total = len(members), len(others), len(members) + len(others)
    _, t = np.unique(np.concatenate([members, others]), return_counts=True)
    return math.sqrt((total + 1 - np.sum(t**3 - t) / (total * (total - 1))) / (12 * m * n))


def auc_by_ranks(members, others):
    """The sum of the members' mid-ranks, and its variance in a draw without replacement."""
    m, n = len(members), len(others)
    ranks = stats.rankdata(np.concatenate([members, others]))
    auc = (ranks[:m].sum() - m * (m + 1) / 2) / (m * n)
    return auc, math.sqrt(ranks.var(ddof=1) / (m * n * (m + n)))


def auc_by_area(members, others):
    fpr, tpr = roc_of_losses(-np.asarray(members), -np.asarray(others))
    area = np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]) / 2)
    values = np.concatenate([members, others]).tolist()
    m, n, total = len(members), len(others), len(values)
    ties = sum(values.count(v) ** 2 - 1 for v in values)
    return [area, ((total + 1 - ties / (total * (total - 1))) / (12 * m * n)) ** 0.5]


def auc_with(auc=lambda above, equal: above + equal / 2, error=null_error):
    """A wrong pair: auc of the shares of pairs won and tied, or error(members, others)."""
    def wrong(members, others):
        above, equal = ((compare(members[:, None], others)).mean()
                        for compare in (np.greater, np.equal))
        return auc(above, equal), error(members, others)
    return wrong


def error_with(ties=lambda t: t**3 - t, counted=lambda members, others: [*members, *others],
               more=1, pairs=lambda m, n: m * n):
    def error(members, others):
        total = len(members) + len(others)
        _, t = np.unique(counted(members, others), return_counts=True)
        variance = total + more - np.sum(ties(t)) / (total * (total - 1))
        return math.sqrt(max(0, variance) / (12 * pairs(len(members), len(others))))
    return error


def delong_error(members, others):
    wins = (members[:, None] > others) + 0.5 * (members[:, None] == others)
    return math.sqrt(sum(wins.mean(axis=axis).var(ddof=min(1, size - 1)) / size
                         for axis, size in ((1, len(members)), (0, len(others)))))


def auc_cases(rng):
    cases = [([3.0, 2, 2], [2.0, 1]), ([1.0, 0, 1, 1, 1], [0.0, 0, 1]), ([0.5], [0.7])]
    for digits in (0, 1, 6):
        m, n = rng.integers(6, 30, 2)
        cases.append((rng.normal(0.7, 1, m).round(digits), rng.normal(0, 1, n).round(digits)))
    cases.append((rng.normal(-1, 1, 14).round(0), rng.normal(0, 1, 23).round(0)))
    cases.append([700 + 1e-6 * rng.normal(size=size) for size in (8, 11)])  # near, and no ties
    return [{"members": np.array(a), "others": np.array(b)} for a, b in cases]


AUC = Exercise(
    "8.5", "All pairs, and what chance would do", 2, function="auc_and_error", right=auc_and_error,
    others=(auc_by_ranks, auc_by_area),
    parts=(Exact(auc_cases, proof="area and error agree, with ties and without"),),
    mistakes=(
        Mistake("ties-lost", auc_with(auc=lambda above, equal: above),
                "You counted ties as lost. Then an attack that says the same of everybody has an "
                "AUC of 0; a tie is half a win."),
        Mistake("ties-won", auc_with(auc=lambda above, equal: above + equal),
                "You counted ties as won. Then an attack that says the same of everybody has an "
                "AUC of 1, a perfect score for knowing nothing; a tie is half a win."),
        Mistake("ties-left-out", auc_with(auc=lambda above, equal:
                                          above / (1 - equal) if equal < 1 else 0.5),
                "You left the tied pairs out. They are pairs that the attack cannot tell apart: "
                "each is half a win."),
        Mistake("turned-round", auc_with(auc=lambda above, equal: 1 - above - equal / 2),
                "You counted the pairs in which the non-member scores higher."),
        Mistake("folded-at-one-half",
                auc_with(auc=lambda above, equal: 0.5 + abs(above + equal / 2 - 0.5)),
                "You turned values below one half round. That is a choice made after seeing the "
                "answer, and noise then has an AUC above one half."),
        Mistake("ties-not-corrected", auc_with(error=error_with(ties=lambda t: 0 * t)),
                "Your error is that without ties. For scores with few values, like those of 8.1, "
                "it is too large: take the sum over the ties off."),
        Mistake("ties-among-members-only",
                auc_with(error=error_with(counted=lambda members, others: members)),
                "You counted ties among the members alone. Chance deals out all records, so t "
                "counts how many of all of them share a value."),
        Mistake("cubes-only", auc_with(error=error_with(ties=lambda t: t**3)),
                "Your sum takes t^3 instead of t^3 - t. A value that occurs once is no tie and "
                "must count 0."),
        Mistake("one-forgotten", auc_with(error=error_with(more=0)),
                "The bracket starts with N + 1. With one member and one non-member the AUC is 0 or "
                "1, and its standard deviation one half."),
        Mistake("not-the-pairs", auc_with(error=error_with(pairs=lambda m, n: m + n)),
                "You divided by 12 (m + n). It is the number of pairs, m times n, that stands "
                "below the line."),
        Mistake("variance", auc_with(error=lambda *groups: null_error(*groups) ** 2),
                "This is the variance. The standard error is its root."),
        Mistake("error-at-the-measured-auc", auc_with(error=delong_error),
                "This is the standard error at the AUC measured (DeLong's). The question was how "
                "far chance alone strays, where membership says nothing."),
    ),
    hints=(
        "members[:, None] > others compares all pairs at once; its mean is the share won. Add half "
        "the share of equal ones.",
        "np.unique(all of them, return_counts=True)[1] gives the t. In the bracket: N + 1 less the "
        "sum of t^3 - t over N (N - 1); divide by 12 m n and take the root.",
    ),
    lesson="With 1000 a side and no ties chance strays by 0.013, so an AUC of 0.52 is hardly a "
           "finding. The records of one model share that model: for many models ask how the AUC "
           "scatters over them.",
)


# -------------------------------------------------------------------------------------------- 8.6

LEAST = 10


def tpr_at(members, others, fpr):
    if len(others) < LEAST / fpr * (1 - 1e-12):
        return math.nan, math.nan
    curve_fpr, curve_tpr = roc_of_losses(-members, -others)
    last = np.flatnonzero(curve_fpr <= fpr)[-1]
    return curve_tpr[last], curve_fpr[last]


def tpr_above_the_first_too_many(members, others, fpr):
    if len(others) * fpr < LEAST * (1 - 1e-12):
        return [math.nan] * 2
    allowed = math.floor(fpr * len(others) + 1e-9)
    too_many = np.sort(others)[::-1][allowed]
    return [np.mean(group > too_many) for group in (members, others)]


def tpr_by_trying_all(members, others, fpr):
    if len(others) * fpr < LEAST * (1 - 1e-12):
        return np.full(2, np.nan)
    best = (0.0, 0.0)
    for threshold in sorted({*members.tolist(), *others.tolist()}, reverse=True):
        false = sum(score >= threshold for score in others.tolist()) / len(others)
        if false > fpr:
            break
        best = sum(score >= threshold for score in members.tolist()) / len(members), false
    return best


def tpr_with(pick, refuse=lambda m, n, fpr: n * fpr < LEAST * (1 - 1e-12)):
    """A wrong pair: pick(fpr of the curve, tpr of the curve, target), unless refused."""
    def wrong(members, others, fpr):
        if refuse(len(members), len(others), fpr):
            return math.nan, math.nan
        return pick(*roc_of_losses(-members, -others), fpr)
    return wrong


def last_allowed(x, y, fpr):
    last = np.flatnonzero(x <= fpr)[-1]
    return y[last], x[last]


def last_below(x, y, fpr):
    last = np.flatnonzero(x < fpr)[-1]
    return y[last], x[last]


def first_reaching(x, y, fpr):
    first = np.argmax(x >= fpr)
    return y[first], x[first]


def foot_of_the_step(x, y, fpr):
    first = np.argmax(x == x[x <= fpr].max())
    return y[first], x[first]


def nearest_point(x, y, fpr):
    near = np.argmin(np.abs(x - fpr))
    return y[near], x[near]


def tied_with_the_last_allowed(members, others, fpr):
    if len(others) * fpr < LEAST * (1 - 1e-12):
        return math.nan, math.nan
    allowed = math.floor(fpr * len(others) + 1e-9)
    last = np.sort(others)[::-1][allowed - 1]
    return np.mean(members >= last), allowed / len(others)


def at_the_quantile(members, others, fpr):
    if len(others) * fpr < LEAST * (1 - 1e-12):
        return math.nan, math.nan
    threshold = np.quantile(others, 1 - fpr)
    return np.mean(members >= threshold), np.mean(others >= threshold)


def falling_scores(rng, groups, others):
    """Scores from the top: each (members, non-members) of `groups` ties; then by chance."""
    groups = list(groups)
    while (left := others - sum(n for _, n in groups)) > 0:
        groups.append((int(rng.integers(0, 3)), int(min(left, rng.integers(1, 4)))))
    values = -np.cumsum(rng.uniform(0.01, 0.1, len(groups))) + rng.uniform(0, 9)
    scores = [np.repeat(values, np.array(groups)[:, i]) for i in (0, 1)]
    return [rng.permutation(group) for group in scores]


def low_fpr_cases(rng):
    # 10 false positives allowed, and members above the 11th; a tie that jumps over the target; one
    # at the very top; too few, by one; a target of 1%; just enough non-members; the target
    # between two points without ties, at the first of which is no member; and by chance.
    steps = [(4, 0), (3, 2), (0, 5), (2, 3), (3, 0), (1, 1), (5, 0)]
    designs = [(steps, 200, 0.05), ([(5, 3), (2, 4), (6, 5)], 205, 0.05), ([(3, 20)], 200, 0.05),
               (steps, 199, 0.05), ([(2, 0), (1, 4), (2, 6), (0, 5)], 1000, 0.01),
               ([(1, 9), (2, 1), (1, 0)], 100, 0.1), ([(1, 1)] * 9 + [(0, 1), (1, 1)], 215, 0.05)]
    for n, fpr in ((10, 0.1), (20, 0.05), (50, 0.02)):
        designs.append(([(1, 0)], n * int(rng.integers(11, 16)) + 7, fpr))
    cases = []
    for groups, others, fpr in designs:
        a, b = falling_scores(rng, groups, others)
        cases.append({"members": a, "others": b, "fpr": fpr})
    for m, n in ((400, 150), (60, 50)):  # too few non-members, among many records and among few
        cases.append({"members": rng.normal(1, 1, m), "others": rng.normal(0, 1, n), "fpr": 0.05})
    return cases


TPR_AT = Exercise(
    "8.6", "Careful attackers", 2, function="tpr_at", right=tpr_at,
    others=(tpr_above_the_first_too_many, tpr_by_trying_all),
    parts=(Exact(low_fpr_cases, proof="the rates agree, with ties at the target, and where there "
                                      "is nothing to say"),),
    mistakes=(
        Mistake("interpolates", tpr_with(lambda x, y, fpr: (np.interp(fpr, x, y), fpr)),
                "You interpolated between two points of the curve. No threshold has that rate: "
                "between them the attacker would have to toss a coin. Take the last point that is "
                "allowed."),
        Mistake("strictly-below-the-target", tpr_with(last_below),
                "You took the last point strictly below the target. One at the target is allowed."),
        Mistake("above-the-target", tpr_with(first_reaching),
                "You took the first point that reaches the target. Its FPR is often above it, and "
                "the TPR is then too good: stay at or below."),
        Mistake("nearest-point", tpr_with(nearest_point),
                "You took the point nearest to the target, on either side. It has to be one at or "
                "below."),
        Mistake("foot-of-the-step", tpr_with(foot_of_the_step),
                "You stopped at the first point with that FPR. Members that score above the next "
                "non-member come for free: go on to the last point with it."),
        Mistake("ties-cut-through", tied_with_the_last_allowed,
                "You let the last allowed false positive set the threshold and counted all members "
                "with that score, but not all non-members with it. Equal scores are called "
                "together; if that is too many, none of them is called."),
        Mistake("interpolated-quantile", at_the_quantile,
                "You took a quantile of the non-members as threshold. np.quantile interpolates, "
                "and ties sit on it, so its FPR is only about the target, and often above."),
        Mistake("target-for-the-rate-reached",
                tpr_with(lambda x, y, fpr: (last_allowed(x, y, fpr)[0], fpr)),
                "Your second number is the target. Say which FPR was really reached: it can be far "
                "below."),
        Mistake("swapped", tpr_with(lambda x, y, fpr: last_allowed(x, y, fpr)[::-1]),
                "First the TPR, then the FPR that was reached."),
        Mistake("never-refuses", tpr_with(last_allowed, refuse=lambda m, n, fpr: False),
                "You gave a number although fewer than 10 / fpr non-members are there. A rate that "
                "rests on a handful of false positives is an anecdote: return nan twice."),
        Mistake("refuses-by-members",
                tpr_with(last_allowed, refuse=lambda m, n, fpr: m * fpr < LEAST * (1 - 1e-12)),
                "You counted the members. It is the FPR that has to be known, so the non-members "
                "must be many."),
        Mistake("refuses-by-all-records",
                tpr_with(last_allowed,
                         refuse=lambda m, n, fpr: (m + n) * fpr < LEAST * (1 - 1e-12)),
                "You counted all records. An FPR is a share of the non-members: only they count."),
    ),
    hints=(
        "Make the points of the curve as in 8.4 (members have high scores here). Which of them "
        "have an FPR of at most the target, and which of those is the last?",
        "np.flatnonzero(curve_fpr <= fpr)[-1] is its place; return TPR and FPR there. Before that: "
        "if len(others) < 10 / fpr, return np.nan, np.nan.",
    ),
    lesson="The threshold came from these very records, so the true FPR may be above the target. "
           "An attacker fixes it on models of his own (notebook 09) and takes the FPR that comes.",
)


# -------------------------------------------------------------------------------------------- 8.7

def share_limits(successes, trials, tail):
    """Clopper-Pearson: either limit is wrong with probability `tail` at most."""
    k, n = successes, trials
    low = stats.beta.ppf(tail, k, n - k + 1) if k > 0 else 0.0
    high = stats.beta.ppf(1 - tail, k + 1, n - k) if k < n else 1.0
    return low, high


def precision(tpr, fpr, prior):
    return tpr * prior / (tpr * prior + fpr * (1 - prior))


def precision_limits(found, members, alarms, others, prior, alpha):
    tpr = share_limits(found, members, alpha / 4)
    fpr = share_limits(alarms, others, alpha / 4)
    return precision(tpr[0], fpr[1], prior), precision(tpr[1], fpr[0], prior)


def share_limits_by_search(k, n, tail):
    low, high = 0.0, 1.0
    if k > 0:
        low = brentq(lambda p: stats.binom.sf(k - 1, n, p) - tail, 0, 1, xtol=1e-15, rtol=1e-13)
    if k < n:
        high = brentq(lambda p: stats.binom.cdf(k, n, p) - tail, 0, 1, xtol=1e-15, rtol=1e-13)
    return low, high


def precision_by_odds(found, members, alarms, others, prior, alpha):
    """Prior odds times the ratio of the rates; an infinite ratio is certainty."""
    tpr, fpr = (share_limits_by_search(k, n, alpha / 4)
                for k, n in ((found, members), (alarms, others)))
    limits = []
    for true, false in ((tpr[0], fpr[1]), (tpr[1], fpr[0])):
        odds = prior / (1 - prior) * true / false if false else math.inf
        limits.append(odds / (1 + odds) if odds < math.inf else 1.0)
    return limits


def precision_by_scipy(found, members, alarms, others, prior, alpha):
    tpr, fpr = (stats.binomtest(k, n).proportion_ci(1 - alpha / 2, method="exact")
                for k, n in ((found, members), (alarms, others)))
    missed = np.array([fpr.high, fpr.low]) * (1 - prior)
    hit = np.array([tpr.low, tpr.high]) * prior
    return hit / (hit + missed)


def limits_with(limits=share_limits, tail=1 / 4, pair=lambda tpr, fpr: ((tpr[0], fpr[1]),
                                                                        (tpr[1], fpr[0])),
                final=precision):
    """A wrong interval: limits(k, n, tail alpha), paired by pair, made a number by final."""
    def wrong(found, members, alarms, others, prior, alpha):
        tpr, fpr = (limits(k, n, tail * alpha) for k, n in ((found, members), (alarms, others)))
        return tuple(final(np.float64(t), np.float64(f), prior) for t, f in pair(tpr, fpr))
    return wrong


def normal_limits(k, n, tail):
    away = stats.norm.isf(tail) * math.sqrt(k / n * (1 - k / n) / n)
    return max(0, k / n - away), min(1, k / n + away)


def of_those_called(found, members, alarms, others, prior, alpha):
    return share_limits(found, found + alarms, alpha / 2) if found + alarms else (0.0, 1.0)


def precision_cases(rng):
    cases = [(380, 500, 120, 500, 0.01, 0.05), (10, 1000, 0, 1000, 0.01, 0.05),
             (0, 200, 3, 150, 0.5, 0.05), (30, 30, 40, 40, 0.1, 0.01), (0, 50, 0, 70, 0.2, 0.1),
             (7, 400, 2, 2500, 0.3, 0.05)]
    for _ in range(4):
        m, n = rng.integers(50, 900, 2)
        cases.append((rng.integers(1, m), m, rng.integers(1, n), n, rng.uniform(0.01, 0.6),
                      rng.choice([0.01, 0.05, 0.1])))
    names = ("found", "members", "alarms", "others", "prior", "alpha")
    return [dict(zip(names, (*map(int, case[:4]), *map(float, case[4:])), strict=True))
            for case in cases]


PRECISION = Exercise(
    "8.7", "Is she really one?", 3, function="precision_limits", right=precision_limits,
    others=(precision_by_odds, precision_by_scipy),
    parts=(Exact(precision_cases, proof="both limits agree, also for none and for all of n"),),
    mistakes=(
        Mistake("tpr-for-the-precision", limits_with(final=lambda tpr, fpr, prior: tpr),
                "These are limits of the TPR: the chance that a member is called one. Asked is the "
                "reverse, the chance that somebody called a member is one, and that depends on the "
                "FPR and the prior."),
        Mistake("prior-ignored", limits_with(final=lambda tpr, fpr, prior: tpr / (tpr + fpr)),
                "You took members and non-members as equally frequent. Where members are rare most "
                "alarms are false: weigh TPR with the prior and FPR with one minus the prior."),
        Mistake("prior-on-the-wrong-side",
                limits_with(final=lambda tpr, fpr, prior: precision(tpr, fpr, 1 - prior)),
                "The prior stands at the wrong rate: it is the share of members, and goes with the "
                "TPR."),
        Mistake("prior-above-only",
                limits_with(final=lambda tpr, fpr, prior: tpr * prior / (tpr + fpr)),
                "You have the prior above the line only. Below stand all who are called: members "
                "with weight prior, and non-members with weight 1 - prior."),
        Mistake("odds", limits_with(final=lambda tpr, fpr, prior:
                                    tpr * prior / (fpr * (1 - prior))),
                "These are odds, members to non-members among those called. The chance is the "
                "members over all of those called."),
        Mistake("share-of-those-called", of_those_called,
                "You looked at those called in this experiment, in which the experimenter chose "
                "how many members there are. Outside the share of members is the prior."),
        Mistake("no-limits", limits_with(limits=lambda k, n, tail: (k / n, k / n)),
                "You took the counted shares as the true rates. No false alarm among 1000 people "
                "does not mean that there is none among a million: use limits of both rates."),
        Mistake("normal-limits", limits_with(limits=normal_limits),
                "You used the normal approximation. For 0 of n its interval has no width, which "
                "claims certainty from nothing seen: use Clopper-Pearson."),
        Mistake("uniform-prior-limits",
                limits_with(limits=lambda k, n, tail: tuple(
                    stats.beta.ppf([tail, 1 - tail], k + 1, n - k + 1))),
                "You used quantiles of Beta(k + 1, n - k + 1) for both limits, a posterior. "
                "Clopper-Pearson has Beta(k, n - k + 1) below and Beta(k + 1, n - k) above."),
        Mistake("like-with-like", limits_with(pair=lambda tpr, fpr: zip(tpr, fpr, strict=True)),
                "You paired low with low and high with high. The precision is lowest where the TPR "
                "is low and the FPR is high."),
        Mistake("two-intervals-two-alphas", limits_with(tail=1 / 2),
                "You gave each of the two intervals the whole alpha. Both have to hold at once, "
                "and the chances of being wrong add up: alpha / 2 for each interval, so alpha / 4 "
                "for each of four limits."),
        Mistake("alpha-for-each-limit", limits_with(tail=1),
                "You let each of four limits be wrong with chance alpha. Together they may be "
                "wrong with chance alpha only: alpha / 4 each."),
    ),
    hints=(
        "First four limits, each with alpha / 4: of the TPR, found of members, and of the FPR, "
        "alarms of others. Then put into the formula of the precision what is worst, and what is "
        "best, for the attacker.",
        "scipy.stats.beta.ppf(a, k, n - k + 1) is the lower limit (0 for k = 0), "
        "beta.ppf(1 - a, k + 1, n - k) the upper one (1 for k = n). The lowest precision has the "
        "low TPR and the high FPR.",
    ),
    lesson="At a prior of 1% the attack that finds 76% and has 24% false alarms is right about one "
           "person in 32 of those it names. And 10 of 1000 found without a false alarm may still "
           "be right about fewer than one in a hundred.",
)


# -------------------------------------------------------------------------------------------- 8.8

def least_epsilon(fpr, tpr, delta):
    best = 0.0
    for more, less in ((tpr, fpr), (1 - fpr, 1 - tpr), (fpr, tpr), (1 - tpr, 1 - fpr)):
        for a, b in zip(more, less, strict=True):
            if a > delta:
                best = max(best, math.log((a - delta) / b) if b > 0 else math.inf)
    return best


def least_epsilon_by_arrays(fpr, tpr, delta):
    more = np.concatenate([tpr, 1 - fpr, fpr, 1 - tpr])
    less = np.concatenate([fpr, 1 - tpr, tpr, 1 - fpr])
    with np.errstate(divide="ignore"):
        logs = np.log(np.maximum(more - delta, 0)) - np.log(np.maximum(less, 1e-300))
    best = logs[more > delta].max(initial=0)
    return best if best < 500 else np.inf


def least_epsilon_by_search(fpr, tpr, delta):
    """Halve an interval until the region of (epsilon, delta) just holds all points."""
    def holds(epsilon):
        factor = math.exp(epsilon)
        return all(np.all(a <= factor * b + delta) for a, b in (
            (tpr, fpr), (fpr, tpr), (1 - fpr, 1 - tpr), (1 - tpr, 1 - fpr)))

    low, high = 0.0, 100.0
    if holds(low):
        return low
    if not holds(high):
        return math.inf
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


LINES = (lambda x, y: (y, x), lambda x, y: (1 - x, 1 - y),  # alarm, silence
         lambda x, y: (x, y), lambda x, y: (1 - y, 1 - x))  # the same, mirrored


def epsilon_with(lines=LINES, ratio=lambda a, b, delta: (a - delta) / b, least=1.0, over=np.nanmax,
                 keep=lambda x, y: slice(None), log=np.log):
    """A wrong epsilon: the log of the largest ratio over these lines and the points kept."""
    def wrong(fpr, tpr, delta):
        kept = keep(fpr, tpr)
        x, y = fpr[kept], tpr[kept]
        worst = over(np.array([ratio(*line(x, y), delta) for line in lines]))
        return log(worst if least is None else max(worst, least))  # nan stays
    return wrong


def from_the_advantage(fpr, tpr, delta):
    gap = np.max(np.abs(tpr - fpr))
    return math.log(max(1, (1 + gap - 2 * delta) / (1 - gap))) if gap < 1 else math.inf


def epsilon_cases(rng):
    cases = [([0.24], [0.76], 0.0),
             ([0.0, 0.01, 0.3, 1.0], [0.0, 0.2, 0.7, 1.0], 0.0),  # the corners; steep at the foot
             ([0.1, 0.5, 0.6], [0.3, 0.98, 0.985], 0.01),  # steep at the top: silence tells most
             ([0.2, 0.6, 0.9], [0.25, 0.1, 0.88], 0.001),  # below the diagonal
             ([0.3, 0.97], [0.25, 0.6], 1e-5),  # and at its top
             ([0.0, 0.5], [0.3, 0.6], 0.01),  # a rule that is never wrong about her
             ([0.0, 0.2], [0.005, 0.3], 0.01),  # within delta
             ([0.0, 0.4, 0.8, 1.0], [0.0, 0.41, 0.8, 1.0], 0.02)]
    for delta in (0.0, 1e-5, 0.03):
        points = np.sort(rng.uniform(0.02, 0.98, (2, 6)))
        cases.append((points.min(axis=0), points.max(axis=0), delta))
        cases.append((*rng.uniform(0.05, 0.95, (2, 5)), delta))
    return [{"fpr": np.array(x), "tpr": np.array(y), "delta": delta} for x, y, delta in cases]


EPSILON = Exercise(
    "8.8", "Which promise is refuted?", 3, function="least_epsilon", right=least_epsilon,
    others=(least_epsilon_by_arrays, least_epsilon_by_search),
    parts=(Exact(epsilon_cases, proof="the values agree, at both ends of a curve, below the "
                                      "diagonal, and where no epsilon is left"),),
    mistakes=(
        Mistake("alarms-only", epsilon_with(lines=LINES[:1]),
                "You used the line TPR <= e^epsilon FPR + delta alone. The event \"silence\" has a "
                "line of its own, 1 - FPR <= e^epsilon (1 - TPR) + delta: it decides near the top "
                "of the curve."),
        Mistake("silence-only", epsilon_with(lines=LINES[1:2]),
                "You used the line of silence alone. The event \"alarm\" has one too, TPR <= "
                "e^epsilon FPR + delta: it decides at low FPR."),
        Mistake("above-the-diagonal-only", epsilon_with(lines=LINES[:2]),
                "Points below the diagonal say as much: the definition holds in both directions, "
                "so that also FPR <= e^epsilon TPR + delta, and so for silence. Four lines."),
        Mistake("delta-forgotten", epsilon_with(ratio=lambda a, b, delta: a / b),
                "You left delta out. A rule may be right without ever being wrong in a share delta "
                "of cases, and the promise is kept."),
        Mistake("delta-times-the-factor", epsilon_with(ratio=lambda a, b, delta: a / (b + delta)),
                "You put delta at the smaller rate, inside the factor e^epsilon. It is added after "
                "the factor, so it is taken off the larger rate."),
        Mistake("delta-with-the-wrong-sign",
                epsilon_with(ratio=lambda a, b, delta: (a + delta) / b),
                "You added delta to the larger rate. What has to be explained by e^epsilon is what "
                "is left without it."),
        Mistake("below-zero", epsilon_with(least=None),
                "Your epsilon is negative for points within delta of the diagonal. They refute "
                "nothing: return 0."),
        Mistake("widest-gap-only", epsilon_with(keep=lambda x, y: [np.argmax(np.abs(y - x))]),
                "You looked at the point with the largest TPR - FPR. The ratio decides, not the "
                "difference: a point at low FPR often refutes far more."),
        Mistake("from-the-advantage", from_the_advantage,
                "You turned the advantage into an epsilon. That bound holds, but it is weak: it is "
                "met at one corner of the region only, and the ratios of the rates say more."),
        Mistake("zero-over-zero", epsilon_with(over=np.max),
                "At the corners (0, 0) and (1, 1) you divide 0 by 0, and not a number comes out. "
                "Such a point refutes nothing: skip it where the larger rate is not above delta."),
        Mistake("never-wrong-skipped", epsilon_with(over=lambda ratios: np.max(
                    ratios[np.isfinite(ratios)], initial=1.0)),
                "You skipped points with a rate of 0 below the line. If TPR is above delta and FPR "
                "is 0, no epsilon allows that: the answer is np.inf."),
        Mistake("without-logarithm", epsilon_with(log=lambda ratio: ratio),
                "You returned e^epsilon, the ratio. Take its natural logarithm."),
    ),
    hints=(
        "Each line has the form a <= e^epsilon b + delta, with a and b two rates. Which epsilon "
        "makes it an equality? All lines have to hold at all points.",
        "(a, b) is (TPR, FPR), (1 - FPR, 1 - TPR), and both with a and b exchanged. Only where a > "
        "delta take ln((a - delta) / b), infinity if b is 0; then the largest, and at least 0.",
    ),
    lesson="Counted rates scatter: with one person called, one rate is 0 and the other is not, on "
           "any model. Put in limits for one threshold chosen beforehand, the low one for TPR and "
           "the high one for FPR, and the answer is a bound with a confidence (notebook 12).",
)


# -------------------------------------------------------------------------------------------- 8.9

VERDICTS = Exercise(
    "8.9", "Two sentences from reports", 3,
    rubric=(
        "1 point, report A, the number: 50.8% of 50,000 is 3.6 standard errors above a coin (0.224 "
        "points, if the threshold was fixed beforehand), so it is no coin toss; and an average can "
        "hide victims: 400 of 25,000 members found without one false alarm also make 50.8%. Either "
        "half is enough if it has its number. 1 point, report A, the conclusion: one attack that "
        "fails is a lower bound on the leak and no proof of safety. Two of: it did not know of the "
        "defence; TPR at a low FPR is missing, with its interval; the most exposed records were "
        "not looked at; only a proof such as DP bounds all attacks, and even epsilon = 2.5 allows "
        "92%. 1 point, report B: 0.76 here is TPR and balanced accuracy at one threshold, from "
        "which no AUC follows (0.58 to 0.94 is possible); an AUC is the chance that a member "
        "scores above a non-member, and no share of members found; and the 76% come with 24% false "
        "alarms, so that at a prior of 1% about 3% of those named are members. Two of the three "
        "are enough."
    ),
)

EXERCISES = (GAP, LOG_ODDS, MENTROPY, ROC, AUC, TPR_AT, PRECISION, EPSILON, VERDICTS)
