"""DP-SGD: training with a promise to each record, at the price of plain training (notebook 04)."""

from coursekit.dpsgd.ensemble import DPEnsemble, train_dp_ensemble
from coursekit.dpsgd.gradients import cross_entropy
from coursekit.dpsgd.models import logistic_regression, mlp, small_cnn
from coursekit.dpsgd.steps import poisson_batch
from coursekit.dpsgd.training import Training, per_example_norms, train_dp_sgd
