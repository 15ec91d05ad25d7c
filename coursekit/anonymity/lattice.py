"""Full-domain generalisation: each quasi-identifier as a whole is lifted to a level of a hierarchy.

The vectors of levels form a lattice. With nested hierarchies a step up only merges equivalence
classes, so the number of records in classes below k never rises: this is what the search rests on.
"""

import math
from itertools import product

import numpy as np

from coursekit import _arguments
from coursekit.anonymity.hierarchies import check_hierarchy
from coursekit.anonymity.releases import discernibility_of, loss_of, make_release
from coursekit.anonymity.tables import checked_k, dense, read, sizes

LOSSES = ("height", "generalisation", "discernibility")
MOST_NODES = 100_000


def full_domain(
    table, *, roles, hierarchies, k, most_suppressed=0, loss="height", missing="refuse"
):
    """Return the k-anonymous full-domain release with the least loss, found by exact search.

    Records in classes below k are suppressed, `most_suppressed` at most. The losses:

    - "height": the mean of level / number of levels over the quasi-identifiers (1 - Prec of
      Sweeney), which leaves suppression out and rises with every step up;
    - "generalisation" and "discernibility": those of `generalisation_loss` and `discernibility`,
      which count suppressed records. They can fall on the way up, so all anonymous nodes are
      weighed, not the minimal ones alone.

    Ties go to fewer suppressed records, then to lower levels of the earlier quasi-identifiers.

    Args: as `equivalence_classes`; `hierarchies`, one for each quasi-identifier, see
    `check_hierarchy`; k from 1 to the number of records; `most_suppressed`, a number of records.
    Records dropped for missing values count as suppressed in the losses, not in this limit.
    Returns: a `Release` with `levels`.
    Raises: as `equivalence_classes` and `check_hierarchy`; ValueError for a hierarchy that misses a
    value, more than 100,000 nodes, or if even the top level suppresses too many.
    Source: Samarati (2001), TKDE; LeFevre, DeWitt, Ramakrishnan (2005), SIGMOD, the generalisation
    property; El Emam et al. (2009), JAMIA, for tagging what lies above.

    >>> table = {"age": [31, 34, 42, 47, 48], "illness": ["flu", "cold", "flu", "gout", "flu"]}
    >>> roles = {"age": "quasi-identifier", "illness": "sensitive"}
    >>> from coursekit.anonymity import intervals
    >>> ages = {"age": intervals(table["age"], widths=[5, 10])}
    >>> release = full_domain(table, roles=roles, hierarchies=ages, k=2, most_suppressed=1)
    >>> release.levels, release.suppressed, release.table["age"].tolist()
    ({'age': 1}, 1, ['[30, 35)', '[30, 35)', '[45, 50)', '[45, 50)'])
    """
    _arguments.one_of(loss, "loss", LOSSES)
    lattice = _Lattice(table, roles, hierarchies, k, most_suppressed, missing)
    feasible = lattice.feasible()
    nodes = _minimal(feasible) if loss == "height" else _nodes(feasible)
    return lattice.release(lattice.best(nodes, loss))


def minimal_generalisations(table, *, roles, hierarchies, k, most_suppressed=0, missing="refuse"):
    """Return all minimal k-anonymous generalisations: no step down from them is k-anonymous.

    Args and Raises: as `full_domain`. Returns: a list of dicts from quasi-identifier to level.
    Source: Samarati (2001), TKDE, minimal generalisations with suppression.
    """
    lattice = _Lattice(table, roles, hierarchies, k, most_suppressed, missing)
    return [lattice.named(node) for node in _minimal(lattice.feasible())]


def datafly(table, *, roles, hierarchies, k, most_suppressed=0, missing="refuse"):
    """Return the k-anonymous release of the Datafly heuristic, which is quick and rarely the best.

    While more than `most_suppressed` records are in classes below k, it lifts the quasi-identifier
    with the most distinct values by a level (the first of them on a tie; one at its top stays);
    then it suppresses the records left in such classes.

    Args, Returns, Raises: as `full_domain`.
    Source: Sweeney (2002), "Achieving k-anonymity privacy protection using generalization and
    suppression".
    """
    lattice = _Lattice(table, roles, hierarchies, k, most_suppressed, missing)
    node = (0,) * len(lattice.heights)
    while lattice.suppressed(node) > lattice.most:
        open_ = [i for i, height in enumerate(lattice.heights) if node[i] < height]
        lift = max(open_, key=lambda i: lattice.counts[i][node[i]])  # max takes the first
        node = (*node[:lift], node[lift] + 1, *node[lift + 1 :])
    return lattice.release(node)


class _Lattice:
    """The nodes (one level for each quasi-identifier) and what each does to the records at hand."""

    def __init__(self, table, roles, hierarchies, k, most_suppressed, missing):
        self.most = _arguments.whole(most_suppressed, "most_suppressed", least=0)
        self.source = read(table, roles, missing)
        self.k = checked_k(k, self.source)
        self.names = list(self.source.quasi)
        self.heights = self._checked(hierarchies)
        # For each quasi-identifier and level: the records' codes, the number of labels, the labels,
        # what a value under each loses, and the mean of that over the records.
        self.codes, self.counts, self.labels, self.widths, self.means = [], [], [], [], []
        for name in self.names:
            self._add_levels(self.source.quasi[name], hierarchies[name], name)
        left = self.suppressed(self.heights)
        if left > self.most:
            raise ValueError(
                f"no level reaches k={self.k} with at most {self.most} suppressed: at the top of "
                f"all hierarchies {left} record(s) are in classes below k."
            )

    def _checked(self, hierarchies):
        if not hasattr(hierarchies, "keys"):
            raise TypeError(f"hierarchies must map column names to them, got {hierarchies!r}.")
        if set(hierarchies.keys()) != set(self.names):
            raise ValueError(
                f"hierarchies must be given for the quasi-identifiers, {self.names}, and for no "
                f"other column, got {list(hierarchies.keys())}."
            )
        heights = tuple(check_hierarchy(hierarchies[name], name) for name in self.names)
        nodes = math.prod(height + 1 for height in heights)
        if nodes > MOST_NODES:
            raise ValueError(f"the lattice must have at most {MOST_NODES:,} nodes, got {nodes:,}.")
        return heights

    def _add_levels(self, column, hierarchy, name):
        for value in column.values:
            if value not in hierarchy:
                raise ValueError(f"the hierarchy of {name!r} misses the value {value!r}.")
        paths = [(i, *hierarchy[value]) for i, value in enumerate(column.values)]
        codes, counts, labels, widths = [], [], [], []
        for level in zip(*paths, strict=True):
            rank = {label: i for i, label in enumerate(dict.fromkeys(level))}
            of_value = np.array([rank[label] for label in level])
            members = np.bincount(of_value)
            codes.append(of_value[column.codes])
            counts.append(len(rank))
            labels.append(list(rank))
            widths.append((members - 1) / max(1, len(column.values) - 1))
        self.codes.append(codes)
        self.counts.append(counts)
        self.labels.append(labels)
        self.widths.append(widths)
        self.means.append([lost[code].mean() for lost, code in zip(widths, codes, strict=True)])

    def feasible(self):
        """Return, for every node, whether it suppresses few enough; skips all above a good one."""
        feasible = np.zeros([height + 1 for height in self.heights], dtype=bool)
        for node in sorted(product(*(range(size) for size in feasible.shape)), key=sum):
            good_below = any(feasible[below] for below in _below(node))
            feasible[node] = good_below or self.suppressed(node) <= self.most
        return feasible

    def suppressed(self, node):
        count = self._sizes(node)
        return int(count[count < self.k].sum())

    def best(self, nodes, loss):
        """Return the node of least loss; one whose least possible loss is more is not weighed."""
        least = (math.inf,)
        for floor, node in sorted((self.floor(node, loss), node) for node in nodes):
            if floor > least[0]:
                break
            least = min(least, (self.loss(node, loss), self.suppressed(node), node))
        return least[-1]

    def floor(self, node, loss):
        """Return what the loss is at least: that of suppressing nobody (0 for discernibility)."""
        if loss == "discernibility":
            return 0
        if loss == "generalisation":
            means = [mean[level] for mean, level in zip(self.means, node, strict=True)]
        else:
            means = [level / max(1, top) for level, top in zip(node, self.heights, strict=True)]
        return _rounded(sum(means) / len(means))

    def loss(self, node, loss):
        if loss == "height":
            return self.floor(node, loss)
        if loss == "generalisation":
            widths = self._widths(node, self._kept(node)).mean(axis=1)
            return _rounded(loss_of(widths, self.source.records))
        kept = self._sizes(node)
        kept = kept[kept >= self.k]
        return discernibility_of(kept, self.source.records - kept.sum(), self.source.records)

    def named(self, node):
        return dict(zip(self.names, node, strict=True))

    def release(self, node):
        kept = self._kept(node)
        rows = self.source.rows[kept]
        quasi = {}
        for i, (name, level) in enumerate(zip(self.names, node, strict=True)):
            if level == 0:
                quasi[name] = self.source.released(name, rows)
            else:
                quasi[name] = _array(self.labels[i][level])[self.codes[i][level][kept]]
        widths = self._widths(node, kept)
        return make_release(self.source, rows, quasi, widths, k=self.k, levels=self.named(node))

    def _key(self, node):
        key, bound = 0, 1
        for codes, counts, level in zip(self.codes, self.counts, node, strict=True):
            if bound > 2**62 // counts[level]:
                key, bound = dense(key, bound)
            key, bound = key * counts[level] + codes[level], bound * counts[level]
        return key, bound

    def _sizes(self, node):
        return sizes(*self._key(node))

    def _kept(self, node):
        group, _ = dense(*self._key(node))
        return np.bincount(group)[group] >= self.k

    def _widths(self, node, kept):
        columns = zip(self.widths, self.codes, node, strict=True)
        return np.stack([widths[at][codes[at][kept]] for widths, codes, at in columns], axis=1)


def _rounded(loss):
    return round(loss, 12)  # so that equal losses tie whatever their last digits


def _below(node):
    for i, level in enumerate(node):
        if level:
            yield (*node[:i], level - 1, *node[i + 1 :])


def _nodes(feasible):
    return [tuple(int(level) for level in node) for node in np.argwhere(feasible)]


def _minimal(feasible):
    return [node for node in _nodes(feasible) if not any(feasible[below] for below in _below(node))]


def _array(labels):
    kinds = {type(label) for label in labels}
    if kinds in ({str}, {int}, {float}):
        return np.array(labels)
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    return array
