"""DP-SGD: training with a promise to each record, at the price of plain training (notebook 04)."""

from coursekit.dpsgd.gradients import cross_entropy
from coursekit.dpsgd.models import logistic_regression, mlp, small_cnn
from coursekit.dpsgd.training import (
    DPEnsemble,
    Training,
    per_example_norms,
    poisson_batch,
    train_dp_ensemble,
    train_dp_sgd,
)
