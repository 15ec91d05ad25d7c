"""What an anonymiser gives back, and how much use is left in it.

A suppressed record is left out of the release, not starred: starred records, read as a table, would
pass for one large class.
"""

from typing import NamedTuple

import numpy as np

from coursekit.anonymity.tables import classes, factorise


class Release(NamedTuple):
    """A released table, and what only its publisher knows."""

    table: dict  # no identifiers; quasi-identifiers generalised; all else unchanged
    roles: dict  # of the columns in `table`
    rows: np.ndarray  # the position in the given table of each released record
    group: np.ndarray  # the equivalence class of each released record
    widths: np.ndarray  # (released records, quasi-identifiers), the loss of each value, 0 to 1
    k: int
    records: int  # in the given table
    levels: dict | None  # of each quasi-identifier, for full-domain generalisation

    @property
    def sizes(self):
        """The size of each equivalence class."""
        return np.bincount(self.group)

    @property
    def suppressed(self):
        """How many records of the given table were left out."""
        return self.records - len(self.rows)


def discernibility(release):
    """Return the sum of squared class sizes, and n for each suppressed of the n records given.

    A record costs as many records as it cannot be told from. Between n and n^2.
    Source: Bayardo, Agrawal (2005), ICDE, metric C_DM.
    """
    return discernibility_of(release.sizes, release.suppressed, release.records)


def average_class_size(release):
    """Return released records / (classes * k): 1.0 is the least that a k-anonymous table has.

    Source: LeFevre, DeWitt, Ramakrishnan (2006), ICDE, metric C_AVG.
    """
    return len(release.rows) / (len(release.sizes) * release.k)


def generalisation_loss(release):
    """Return the mean loss of a quasi-identifier's value, from 0 (as it was) to 1 (anything).

    A numeric range of Mondrian loses (high - low) / (max - min) of the column; a set or label that
    stands for s of the m distinct values in the column loses (s - 1) / (m - 1). A suppressed
    record loses 1 in each. For ranges it is the normalised certainty penalty (NCP) with equal
    weights, for sets the loss metric, both over the table's own values.
    Source: Iyengar (2002), KDD, metric LM; Xu et al. (2006), KDD, NCP.
    """
    return loss_of(release.widths.mean(axis=1), release.records)


def discernibility_of(sizes, suppressed, records):
    """Return the discernibility of classes with these sizes."""
    return int((sizes.astype(np.int64) ** 2).sum()) + int(records) * int(suppressed)


def loss_of(widths, records):
    """Return the mean loss of all records, from the widths of the released ones."""
    return float((widths.sum() + records - len(widths)) / records)


def make_release(source, rows, quasi, widths, *, k, levels=None):
    """Return the Release of the records `rows`, whose generalised quasi-identifiers are `quasi`."""
    table = {}
    for name, role in source.roles.items():
        if role == "quasi-identifier":
            table[name] = quasi[name]
        elif role != "identifier":
            table[name] = source.released(name, rows)
    group, _ = classes([factorise(table[name], name) for name in source.quasi])
    roles = {name: source.roles[name] for name in table}
    return Release(table, roles, rows, group, widths, k, source.records, levels)
