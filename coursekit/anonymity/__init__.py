"""Anonymity by generalising and suppressing: measures of it and ways to get it (notebook 07).

A table maps column names to arrays of one length, and `roles` gives every column a part to play:
"identifier", "quasi-identifier", "sensitive" or "other". None of these measures or methods is a
promise about an attacker who knows more; notebook 07 shows what breaks them.
"""

from coursekit.anonymity.hierarchies import check_hierarchy, intervals, prefixes
from coursekit.anonymity.lattice import datafly, full_domain, minimal_generalisations
from coursekit.anonymity.measures import k_anonymity, l_diversity, t_closeness
from coursekit.anonymity.partition import mondrian
from coursekit.anonymity.releases import (
    Release,
    average_class_size,
    discernibility,
    generalisation_loss,
)
from coursekit.anonymity.tables import equivalence_classes
