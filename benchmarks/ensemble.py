"""Shadow models one after the other and stacked, side by side: time and memory.

    python course.py bench ensemble            rewrite benchmarks/ensemble.md
    python course.py bench ensemble --check    write nothing; exit code 1 if a bar is missed

Times are wall-clock times, since two jobs are to be of use; PyTorch has one thread a job. Methods
take turns, and a ratio is the median over the turns.
"""

import statistics
import sys
import time
from functools import partial
from pathlib import Path

from _tables import digits, finish, made_by, one_thread, peak_memory, peak_memory_of, ratio, table

HERE = Path(__file__).resolve().parent
TABLE = HERE / "ensemble.md"
COMMAND = "python course.py bench ensemble"
COMPARED = ("numpy", "torch")

MODELS, LOOPED, TURNS = 64, 4, 5  # of the loop a few models are timed, and count for all
TRAINING = {"hidden": [128], "epochs": 50, "batch_size": 32, "learning_rate": 0.05, "seed": 0}
PLAIN = "plain PyTorch, one by one"
BARS = {"float32": 16, "float64": 8}
WHOLE, WHOLE_BARS = (266, 10), {"float32": 5, "float64": 12}  # networks, of which targets; seconds
MEMORY_BAR = 20  # MB


def problem(models, dtype):
    """Return digits: 600 records, 300 for each model, as PyTorch's `dtype`."""
    import numpy as np
    import torch

    from coursekit.datasets import leak
    from coursekit.ensemble import paired_membership

    setting = leak("S1", seed=0)
    members = paired_membership(models, len(setting.X), rng=np.random.default_rng(0))
    return setting.X, setting.y, members, getattr(torch, dtype)


def one_by_one(X, y, members, dtype):
    """Train as anybody would: a network, an optimiser, slices of a shuffled tensor."""
    import torch
    from torch import nn

    X, y = torch.from_numpy(X).to(dtype), torch.from_numpy(y)
    for row in torch.from_numpy(members):
        mine, own = X[row], y[row]
        net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to(dtype)
        optimiser = torch.optim.SGD(net.parameters(), lr=TRAINING["learning_rate"], momentum=0.9)
        for _ in range(TRAINING["epochs"]):
            for rows in torch.randperm(len(mine)).split(TRAINING["batch_size"]):
                optimiser.zero_grad()
                nn.functional.cross_entropy(net(mine[rows]), own[rows]).backward()
                optimiser.step()


def stacked(X, y, members, dtype, jobs):
    from coursekit.ensemble import train_ensemble

    return train_ensemble(X, y, members, dtype=dtype, jobs=jobs, **TRAINING)


def whole_job(dtype):
    """Train shadows and targets, take all logits, score by LiRA: what a notebook does."""
    from coursekit.membership import lira_online, logit_confidence

    models, targets = WHOLE
    X, y, members, dtype = problem(models, dtype)
    signals = logit_confidence(stacked(X, y, members, dtype, 2).logits(X), y)
    lira_online(signals[:targets], signals[targets:], members[targets:])


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(dtype):
    """Return {method: [seconds of 64 models, for each turn]} and the seconds of the whole job."""
    X, y, members, kind = problem(MODELS, dtype)
    calls = {PLAIN: partial(one_by_one, X, y, members[:LOOPED], kind)}
    for jobs in (1, 2):
        calls[f"stacked, {jobs} job{'s' * (jobs > 1)}"] = partial(
            stacked, X, y, members, kind, jobs
        )
    one_by_one(X, y, members[:1], kind)
    taken = {name: [] for name in calls}
    for _ in range(TURNS):
        for name, call in calls.items():
            scale = MODELS / LOOPED if name == PLAIN else 1
            taken[name].append(seconds_of(call) * scale)
    return taken, statistics.median(seconds_of(partial(whole_job, dtype)) for _ in range(3))


def print_memory(method):
    """Print the peak memory of this process, which trains a few models or all."""
    import torch

    import coursekit.ensemble

    assert coursekit.ensemble
    torch.set_num_threads(1)
    X, y, members, dtype = problem(MODELS, "float32")
    one_by_one(X, y, members[:1], dtype)
    if method == "stacked":
        stacked(X, y, members, dtype, 1)
    print(peak_memory())


def measure_all():
    return {
        "found": {dtype: measure(dtype) for dtype in BARS},
        "memory": peak_memory_of(__file__, "stacked") - peak_memory_of(__file__, "plain"),
    }


def missed_bars(results):
    """Return a sentence for each bar that is missed."""
    bars = {}
    for dtype, (taken, whole) in results["found"].items():
        fast = max(ratio(taken, PLAIN, name) for name in taken)
        bars[f"{dtype}: stacked is {BARS[dtype]} times faster ({fast:.1f})"] = fast >= BARS[dtype]
        most = WHOLE_BARS[dtype]
        bars[f"{dtype}: the whole job takes {most} s ({whole:.1f})"] = whole <= most
    memory = results["memory"]
    bars[f"{MEMORY_BAR} MB more than one model ({memory:.0f})"] = memory <= MEMORY_BAR
    return [sentence for sentence, met in bars.items() if not met]


def report(results):
    """Return the whole of ensemble.md."""
    rows = []
    for dtype, (taken, _) in results["found"].items():
        for name in taken:
            median = digits(statistics.median(taken[name]))
            rows.append([dtype, name, median, digits(ratio(taken, PLAIN, name))])
    wholes = [f"{whole:.1f} s in {dtype}" for dtype, (_, whole) in results["found"].items()]
    return f"""\
# Shadow models, one by one and stacked

{made_by(COMMAND, COMPARED)}

{MODELS} networks 64-128-10 on digits, {TRAINING["epochs"]} epochs over 300 records each, batches of
{TRAINING["batch_size"]}, momentum 0.9. Wall-clock seconds, medians of {TURNS} turns; of the loop
{LOOPED} networks are timed and count for all.

{table(["numbers", "method", "seconds", "times faster"], rows, left=2)}

The whole of a notebook's work, {WHOLE[0] - WHOLE[1]} shadow models and {WHOLE[1]} targets, the
logits of all on all records, and LiRA, takes {" and ".join(wholes)}, with two jobs. Stacking 64
networks in float32 takes {results["memory"]:.0f} MB of memory more than training one.
"""


def main(arguments):
    one_thread()
    if arguments[:1] == ["--memory"]:
        return print_memory(arguments[1])
    if set(arguments) - {"--check"}:
        sys.exit(f"{__doc__}\nThere is no {' '.join(arguments)}.")
    import torch

    torch.set_num_threads(1)
    results = measure_all()
    return finish(report(results), missed_bars(results), TABLE, check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
