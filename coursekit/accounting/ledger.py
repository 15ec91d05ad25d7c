"""A ledger of releases about the same people, with a budget that cannot be overdrawn (notebook 05).

Adjacency: add/remove. Sampler: Poisson. The total is that of a list of releases fixed in advance.
Questions may depend on earlier answers, how much each spends may not; nor when you stop, unless you
then quote the total of the whole list (Rogers, Roth, Ullman, Vadhan 2016, NeurIPS).
"""

import warnings

from coursekit import _arguments
from coursekit.accounting.bounds import WideBounds, gaussian_phase, phase_bounds
from coursekit.accounting.losses import Laplace, Pure


class BudgetExceeded(ValueError):
    """The release would overdraw the budget; nothing was recorded."""


class Ledger:
    """What was released, and what it costs: certified bounds for releases of several kinds.

    With `epsilon` and `delta` it keeps that budget: `add` raises `BudgetExceeded` before anything
    is recorded, so call it before you release. Adjacency: add/remove; sampler: Poisson.

    Raises: ValueError or TypeError for a bad number, or for only one of epsilon and delta.

    >>> ledger = Ledger(epsilon=1.0, delta=1e-6)
    >>> ledger.add(noise_multiplier=8.0, steps=2)
    >>> ledger.add(laplace_epsilon=0.1)
    >>> round(ledger.epsilon(1e-6), 2)
    0.8
    >>> ledger.add(laplace_epsilon=0.3)
    Traceback (most recent call last):
    coursekit.accounting.ledger.BudgetExceeded: ...
    """

    def __init__(self, *, epsilon=None, delta=None):
        if (epsilon is None) != (delta is None):
            raise ValueError(f"a budget needs both, got epsilon={epsilon!r}, delta={delta!r}.")
        self.budget = None
        if epsilon is not None:
            epsilon = _arguments.positive(epsilon, "epsilon")
            self.budget = epsilon, _arguments.fraction(delta, "delta")
        self.phases = []

    def add(self, *, sampling_rate=1.0, steps=1, **kind):
        """Record `steps` releases of one kind, or raise `BudgetExceeded` and record none.

        Give one of `noise_multiplier` (normal noise, as in `epsilon_bounds`), `laplace_epsilon`
        (real-valued Laplace noise on one number, of scale sensitivity / laplace_epsilon) and
        `pure_epsilon` (any epsilon-DP release; whole-number noise or randomised response, say).
        Adjacency: add/remove; sampler: Poisson.
        """
        phase = _phase(sampling_rate, steps, **kind)
        if self.budget:
            spent = self._bounds([*self.phases, phase], self.budget[1])[1]
            if spent > self.budget[0]:
                raise BudgetExceeded(
                    f"that would spend epsilon={spent:.6g} of {self.budget[0]:.6g} at "
                    f"delta={self.budget[1]:.6g}; so far {self.epsilon(self.budget[1]):.6g}."
                )
        self.phases.append(phase)

    def bounds(self, delta):
        """Return certified (lower, upper) for the epsilon of all that was recorded, at `delta`."""
        return self._bounds(self.phases, _arguments.fraction(delta, "delta"))

    def epsilon(self, delta):
        """Return an epsilon that is certified for all that was recorded, at `delta`."""
        return self.bounds(delta)[1]

    def remaining(self, *, most=1_000_000, **release):
        """Return how many more steps of `release` (as for `add`) fit the budget, `most` at most."""
        if self.budget is None:
            raise ValueError("this ledger has no budget; give epsilon and delta when you make it.")
        low, high = 0, _arguments.whole(most, "most", least=1) + 1
        while high - low > 1:  # `low` fits, `high` does not or is not asked for
            middle = min((low + high) // 2, 2 * low + 1)
            phases = [*self.phases, _phase(**{"sampling_rate": 1.0, **release, "steps": middle})]
            fits = self._bounds(phases, self.budget[1])[1] <= self.budget[0]
            low, high = (middle, high) if fits else (low, middle)
        return low

    def _bounds(self, phases, delta):
        low, high = phase_bounds(phases, delta=delta)
        if self.budget and delta == self.budget[1] and low <= self.budget[0] < high:
            with warnings.catch_warnings():  # the budget lies between: look closer
                warnings.simplefilter("ignore", WideBounds)
                closer = phase_bounds(phases, 1e-5, delta=delta)
            low, high = max(low, closer[0]), min(high, closer[1])
        return low, high


KINDS = {"laplace_epsilon": Laplace, "pure_epsilon": Pure}


def _phase(sampling_rate, steps, **kind):
    if len(kind) != 1 or not set(kind) <= {"noise_multiplier", *KINDS}:
        raise ValueError(
            "give one of noise_multiplier, laplace_epsilon and pure_epsilon, "
            f"got {', '.join(f'{name}={value!r}' for name, value in kind.items()) or 'none'}."
        )
    ((name, value),) = kind.items()
    if name == "noise_multiplier":
        return gaussian_phase(value, sampling_rate, steps)
    noise = KINDS[name](_arguments.positive(value, name))
    return noise, *gaussian_phase(1, sampling_rate, steps)[1:]
