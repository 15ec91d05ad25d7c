"""Membership inference: was this record among those a model was trained on (notebooks 08 and 09)?

One shape for all: `logits[model, record, class]`, `membership[model, record]` (True for IN), and
scores in which higher means member. Log-probabilities are logits too. What an attack may see, each
level with the one before: labels; scores; the true label; a population of records that the target
was not trained on; shadow models, trained in the same way on sets that the attacker knows.
"""

from coursekit.membership.labels import average_queries, boundary_score, label_only_score
from coursekit.membership.likelihood import bavaria, lira_offline, lira_online
from coursekit.membership.population import quantile_attack, rmia
from coursekit.membership.report import audit
from coursekit.membership.scores import (
    confidence_score,
    entropy_score,
    gap_score,
    logit_confidence,
    logits_from_probabilities,
    loss_score,
    modified_entropy_score,
    true_label_score,
)
from coursekit.membership.shadow import ShadowAttack, check_shadows
from coursekit.membership.thresholds import Threshold
