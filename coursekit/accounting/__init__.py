"""Accounting: what many releases about the same people promise together (notebooks 03 and 05)."""

from coursekit.accounting.bounds import WideBounds, calibrate_noise, delta_bounds, epsilon_bounds
from coursekit.accounting.composition import (
    advanced_composition,
    basic_composition,
    optimal_composition,
)
from coursekit.accounting.gaussian import (
    classical_noise_multiplier,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_noise_multiplier,
    zcdp_epsilon,
    zcdp_rho,
)
from coursekit.accounting.ledger import BudgetExceeded, Ledger
from coursekit.accounting.renyi import rdp, rdp_epsilon
