"""DP-SGD in coursekit, in Opacus and without privacy: time, memory, accuracy, side by side.

    python course.py bench dp_sgd            rewrite benchmarks/dp_sgd.md
    python course.py bench dp_sgd --check    write nothing; exit code 1 if a bar is missed

All times are CPU times of one thread. Methods take turns, several times over, and a ratio is the
median over the turns: what else the machine does then hits all of them.
"""

import copy
import statistics
import sys
import time
import warnings
from functools import partial
from itertools import pairwise
from pathlib import Path

from _tables import digits, finish, made_by, one_thread, peak_memory, peak_memory_of, ratio, table

HERE = Path(__file__).resolve().parent
TABLE = HERE / "dp_sgd.md"
COMMAND = "python course.py bench dp_sgd"
COMPARED = ("numpy", "torch", "opacus")

TURN = 0.25  # CPU seconds of one method's turn
TURNS = 9
EPOCHS = 20
CNN = "small CNN, 28 x 28"
NETS = {  # name: layer sizes, batch size
    "logistic regression 64-10": ((64, 10), 256),
    "MLP 64-128-10": ((64, 128, 10), 256),
    "MLP 30-64-2": ((30, 64, 2), 128),
    "MLP 600-512-256-100": ((600, 512, 256, 100), 512),
    CNN: (None, 256),
}
LARGE = "MLP 600-512-256-100"
SMALL = ["logistic regression 64-10", "MLP 64-128-10", "MLP 30-64-2"]
PLAIN, GENERAL, OURS = "plain PyTorch", "coursekit, general", "coursekit, ReLU by hand"
OPACUS = ("hooks", "functorch", "ew", "ghost")
SETTING = {"max_grad_norm": 1.0, "noise_multiplier": 1.0, "learning_rate": 0.1}


# One step on one batch


def problem(name):
    """Return a net as PyTorch draws it, and a batch X, y, all float32."""
    import torch
    from torch import nn

    torch.manual_seed(0)
    widths, batch = NETS[name]
    if widths is None:  # that of Opacus's own MNIST example
        layers = [nn.Conv2d(1, 16, 8, 2, 3), nn.ReLU(), nn.MaxPool2d(2, 1), nn.Conv2d(16, 32, 4, 2)]
        layers += [nn.ReLU(), nn.MaxPool2d(2, 1), nn.Flatten(), nn.Linear(512, 32), nn.ReLU()]
        net, shape, classes = nn.Sequential(*layers, nn.Linear(32, 10)), (1, 28, 28), 10
    else:
        layers = []
        for inside, outside in pairwise(widths):
            layers += [nn.Linear(inside, outside), nn.ReLU()]
        net, shape, classes = nn.Sequential(*layers[:-1]), widths[:1], widths[-1]
    return net, torch.randn(batch, *shape), torch.randint(0, classes, (batch,))


def plain(net, X, y):
    import torch

    optimiser = torch.optim.SGD(net.parameters(), lr=SETTING["learning_rate"])

    def step():
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(net(X), y).backward()
        optimiser.step()

    return step


def coursekit(net, X, y, method=None):
    import numpy as np

    from coursekit.dpsgd.gradients import Gradients, cross_entropy
    from coursekit.dpsgd.steps import step_taker

    gradients = Gradients(net, (X[:3], y[:3]), cross_entropy, method)
    take_step = step_taker(
        gradients,
        expected_batch_size=len(X),
        optimiser="sgd",
        rng=np.random.default_rng(0),
        **SETTING,
    )
    return lambda: take_step(X, y)


def general(net, X, y):
    return coursekit(net, X, y, "book-keeping")


def opacus(mode):
    """Return what makes a step of Opacus in one of its modes."""

    def make(net, X, y):
        import torch
        from opacus.grad_sample import GradSampleModule, GradSampleModuleFastGradientClipping
        from opacus.optimizers import DPOptimizer
        from opacus.optimizers.optimizer_fast_gradient_clipping import (
            DPOptimizerFastGradientClipping,
        )
        from opacus.utils.fast_gradient_clipping_utils import DPLossFastGradientClipping

        plain = torch.optim.SGD(net.parameters(), lr=SETTING["learning_rate"])
        how = {"noise_multiplier": SETTING["noise_multiplier"], "expected_batch_size": len(X)}
        how["max_grad_norm"] = SETTING["max_grad_norm"]
        loss = torch.nn.CrossEntropyLoss()
        if mode == "ghost":
            net = GradSampleModuleFastGradientClipping(net, max_grad_norm=how["max_grad_norm"])
            optimiser = DPOptimizerFastGradientClipping(plain, **how)
            loss = DPLossFastGradientClipping(net, optimiser, loss)
        else:
            from opacus.grad_sample import GradSampleModuleExpandedWeights

            if mode == "ew":
                net = GradSampleModuleExpandedWeights(net)
            else:
                net = GradSampleModule(net, force_functorch=mode == "functorch")
            optimiser = DPOptimizer(plain, **how)

        def step():
            optimiser.zero_grad()
            loss(net(X), y).backward()
            optimiser.step()

        return step

    return make


METHODS = {PLAIN: plain, GENERAL: general, OURS: coursekit}
METHODS |= {f"Opacus, {mode}": opacus(mode) for mode in OPACUS}


def methods_for(name):
    """Return the methods that apply to a net."""
    return {key: make for key, make in METHODS.items() if key != OURS or NETS[name][0]}


# Measuring


def cpu(call, times=1):
    start = time.process_time()
    for _ in range(times):
        call()
    return (time.process_time() - start) / times


def by_turns(calls, turns=TURNS, turn=TURN):
    """Return {name: [CPU seconds of a call, for each turn]}; the calls take turns."""
    times = {}
    for name, call in calls.items():
        cpu(call, 3)
        times[name] = max(1, round(turn / max(cpu(call, 3), 1e-6)))
    taken = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            taken[name].append(cpu(call, times[name]))
    return taken


def time_steps(name):
    net, X, y = problem(name)
    made = methods_for(name).items()
    return by_turns({key: make(copy.deepcopy(net), X, y) for key, make in made})


# Whole runs


def epochs(name, count=EPOCHS, records=2048):
    """Return {name: [CPU seconds of `count` epochs]}, sampling and set-up of a run included."""
    import numpy as np

    from coursekit.dpsgd import train_dp_sgd

    net, X, y = problem(name)
    batch, times = len(X), records // len(X)
    X, y = X.repeat(times, 1), y.repeat(times)
    steps = count * times
    arrays = X.numpy(), y.numpy().astype(np.int64)
    calls = {
        "plain PyTorch, DataLoader": lambda: with_loader(net, X, y, batch, count),
        "coursekit": lambda: train_dp_sgd(
            net, *arrays, sampling_rate=batch / records, steps=steps, seed=0, **SETTING
        ),
    }
    for mode in ("hooks", "ghost"):
        calls[f"Opacus, {mode}, Poisson loader"] = partial(
            with_engine, net, X, y, batch, count, mode
        )
    return by_turns(calls, turns=5)


def loader(X, y, batch):
    from torch.utils.data import DataLoader, TensorDataset

    return DataLoader(TensorDataset(X, y), batch_size=batch, shuffle=True)


def with_loader(net, X, y, batch, count):
    import torch

    net = copy.deepcopy(net)
    optimiser = torch.optim.SGD(net.parameters(), lr=SETTING["learning_rate"])
    for _ in range(count):
        for rows, labels in loader(X, y, batch):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(rows), labels).backward()
            optimiser.step()
    return net


def with_engine(net, X, y, batch, count, mode, noise_multiplier=1.0, C=1.0, lr=0.1, seed=0):
    """Train a copy by Opacus's PrivacyEngine, with its Poisson loader, and return it."""
    import torch
    from opacus import PrivacyEngine

    torch.manual_seed(seed)
    net = copy.deepcopy(net)
    loss = torch.nn.CrossEntropyLoss()
    how = {"criterion": loss, "grad_sample_mode": "ghost"} if mode == "ghost" else {}
    net, optimiser, *others = PrivacyEngine().make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=lr),
        data_loader=loader(X, y, batch),
        noise_multiplier=noise_multiplier,
        max_grad_norm=C,
        **how,
    )
    if mode == "ghost":
        loss = others[0]
    for _ in range(count):
        for rows, labels in others[-1]:
            optimiser.zero_grad()
            loss(net(rows), labels).backward()
            optimiser.step()
    return net


def many(models=64, records=600, batch=64, steps=100):
    """Return {name: [CPU seconds of all runs]}; two of Opacus's are timed, and count for all."""
    import numpy as np
    import torch

    from coursekit.dpsgd import train_dp_ensemble

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(records, 64)), rng.integers(0, 10, records)
    members = np.argsort(rng.random((models, records)), axis=1) < records // 2
    rate = batch / (records // 2)
    net, *_ = problem("MLP 64-128-10")
    calls = {
        "coursekit, stacked": lambda: train_dp_ensemble(
            X, y, members, hidden=[128], sampling_rate=rate, steps=steps, seed=0,
            dtype=torch.float32, **SETTING,
        )
    }  # fmt: skip
    halves = [torch.from_numpy(np.flatnonzero(row)) for row in members[:2]]
    X, y = torch.from_numpy(X).float(), torch.from_numpy(y)

    def one_by_one(mode):
        for half in halves:
            count = round(steps * rate)
            with_engine(net, X[half], y[half], batch, count, mode)

    for mode in ("hooks", "ghost"):
        calls[f"Opacus, {mode}"] = partial(one_by_one, mode)
    taken = by_turns(calls, turns=3)
    for mode in ("hooks", "ghost"):
        key = f"Opacus, {mode}"
        taken[key] = [seconds * models / len(halves) for seconds in taken[key]]
    return taken


def print_memory(name, method, steps):
    import opacus.grad_sample  # all that any method imports, so that imports do not count
    import torch

    import coursekit.dpsgd

    assert opacus.grad_sample and coursekit.dpsgd
    torch.set_num_threads(1)
    net, X, y = problem(name)
    cpu(METHODS[method](net, X, y), int(steps))
    print(peak_memory())


# Accuracy at a given epsilon

TARGET = {"epsilon": 3.0, "delta": 1e-5}
PLAN = {"sampling_rate": 0.06, "steps": 800}
CLIP, RATE, SEEDS = 0.1, 20.0, range(5)


def accuracy(seeds=SEEDS):
    """Return {name: [(test accuracy, CPU seconds) for each seed]} of an MLP 196-64-10."""
    import numpy as np
    import torch
    from opacus.accountants.utils import get_noise_multiplier

    from coursekit.datasets import fashion
    from coursekit.dpsgd import mlp, train_dp_sgd

    data = fashion()
    X, X_test = (np.float32(part - 0.3) for part in (data.X_train, data.X_test))
    batch = round(PLAN["sampling_rate"] * len(X))
    count = round(PLAN["steps"] * PLAN["sampling_rate"])

    def ours(net, seed):
        arguments = {"max_grad_norm": CLIP, "learning_rate": RATE, "seed": seed, **PLAN, **TARGET}
        return train_dp_sgd(net, X, data.y_train, **arguments).model

    def opacus_hooks(net, seed):
        noise = get_noise_multiplier(
            target_epsilon=TARGET["epsilon"],
            target_delta=TARGET["delta"],
            sample_rate=PLAN["sampling_rate"],
            steps=PLAN["steps"],
            accountant="rdp",
        )
        tensors = torch.from_numpy(X), torch.from_numpy(data.y_train)
        return with_engine(net, *tensors, batch, count, "hooks", noise, CLIP, RATE, seed)

    found = {}
    for name, train in (("coursekit", ours), ("Opacus, hooks", opacus_hooks)):
        found[name] = []
        for seed in seeds:
            net = mlp([196, 64, 10], seed=seed, dtype=torch.float32)
            start = time.process_time()
            trained = train(net, seed)
            seconds = time.process_time() - start
            with torch.no_grad():
                right = trained(torch.from_numpy(X_test)).argmax(1).numpy() == data.y_test
            found[name].append((float(right.mean()), seconds))
    return found


# Writing


def measure_all():
    """Return all that is measured, by section."""
    results = {"steps": {}, "epochs": {}}
    for name in NETS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        results["steps"][name] = time_steps(name)
        if name in SMALL:
            results["epochs"][name] = epochs(name)
    print("64 models, memory, accuracy ...", file=sys.stderr, flush=True)
    results["many"] = many()
    results["memory"] = {
        name: {key: peak_memory_of(__file__, name, key, 10) for key in methods_for(name)}
        for name in (LARGE, CNN)
    }
    results["accuracy"] = accuracy()
    return results


def fastest_opacus(taken):
    """Return how often Opacus's fastest mode takes the time of coursekit's fastest way."""
    ours = OURS if OURS in taken else GENERAL
    return min(ratio(taken, f"Opacus, {mode}", ours) for mode in OPACUS)


def missed_bars(results):
    """Return a sentence for each bar that is missed."""
    bars = {}
    for name, taken in results["steps"].items():
        found, most = ratio(taken, GENERAL, PLAIN), 1.25 if name == CNN else 1.2
        bars[f"{name}: the general way takes {most} of plain ({found:.2f})"] = found <= most
        if OURS in taken:
            found, most = ratio(taken, OURS, PLAIN), 1.1 if name == LARGE else 0.6
            bars[f"{name}: by hand takes {most} of plain ({found:.2f})"] = found <= most
            found, least = fastest_opacus(taken), 1.6 if name == LARGE else 3.5
            bars[f"{name}: Opacus takes {least} times as long ({found:.2f})"] = found >= least
    for name, taken in results["epochs"].items():
        for mode, least in (("ghost", 5), ("hooks", 8)):
            found = ratio(taken, f"Opacus, {mode}, Poisson loader", "coursekit")
            bars[f"{name}: an epoch of Opacus {mode} takes {least} times ({found:.1f})"] = (
                found >= least
            )
    for mode in ("hooks", "ghost"):
        found = ratio(results["many"], f"Opacus, {mode}", "coursekit, stacked")
        bars[f"64 models: Opacus {mode} takes 25 times as long ({found:.1f})"] = found >= 25
    extra = results["memory"][LARGE][OURS] - results["memory"][LARGE][PLAIN]
    bars[f"{LARGE}: 15 MB more than plain ({extra:.0f})"] = extra <= 15
    return [sentence for sentence, met in bars.items() if not met]


def times_table(sections, base, scale=1e6, unit="microseconds"):
    """Return a table of median times, and of ratios to `base`, a column for each section."""
    methods = list(dict.fromkeys(key for taken in sections.values() for key in taken))
    rows = []
    for method in methods:
        row = [method]
        for taken in sections.values():
            if method not in taken:
                row.append("–")
                continue
            times = digits(scale * statistics.median(taken[method]))
            row.append(f"{digits(ratio(taken, method, base))} ({times})")
        rows.append(row)
    return table([f"ratio ({unit})", *sections], rows)


def report(results):
    """Return the whole of dp_sgd.md."""
    extra = [
        [key, *(
            digits(results["memory"][name][key] - results["memory"][name][PLAIN])
            if key in results["memory"][name] else "–"
            for name in (LARGE, CNN)
        )]
        for key in METHODS if key != PLAIN
    ]  # fmt: skip
    scores = []
    for name, runs in results["accuracy"].items():
        right, seconds = zip(*runs, strict=True)
        scores.append([
            name, f"{statistics.mean(right):.3f}", f"{min(right):.3f} to {max(right):.3f}",
            f"{statistics.stdev(right):.3f}", digits(statistics.mean(seconds)),
        ])  # fmt: skip
    return f"""\
# What DP-SGD costs

{made_by(COMMAND, COMPARED)}

CPU time, float32, one thread. Methods take turns, {TURNS} times (5 for epochs, 3 for 64 models);
a ratio is the median over the turns of one method's time over another's in the same turn, and the
time in brackets the median. Opacus draws its noise as it does by default; ours is PyTorch's too.

## One step, noise and update included, against plain PyTorch

Batches are fixed: {", ".join(f"{batch} for {name}" for name, (_, batch) in NETS.items())}.
Plain: forward, backward, `torch.optim.SGD`. "coursekit, general" is the book-keeping that takes
every net of linear layers and convolutions; "ReLU by hand" is what `train_dp_sgd` takes for ReLU
networks.

{times_table(results["steps"], PLAIN)}

On the largest net, Opacus (but for ghost) spends most of its time in page faults of large
allocations, which other settings of the allocator would spare.

## {EPOCHS} epochs of 2,048 records, Poisson batches and set-up included, against ours

{times_table(results["epochs"], "coursekit", 1e3, "milliseconds")}

## 64 models MLP 64-128-10, 100 Poisson steps of 64 expected records, against ours

Two of Opacus's runs are timed and count 32 times.

{times_table({"64 models": results["many"]}, "coursekit, stacked", 1, "seconds")}

## Peak memory above plain training, in MB (Linux only)

{table(["10 steps", LARGE, CNN], extra)}

## Fashion-MNIST, reduced, at epsilon {TARGET["epsilon"]:g} and delta {TARGET["delta"]:g}

MLP 196-64-10 from scratch, 8,000 training and 2,000 test images of 14 x 14, {len(SEEDS)} seeds,
sampling rate {PLAN["sampling_rate"]}, {PLAN["steps"]} steps, clipping norm {CLIP}, learning rate
{RATE:g}, the same for both. The noise is what each library says it takes: Opacus by RDP,
coursekit by its certified bound. A test accuracy of 0.82 on 2,000 images has a standard error of
0.009 of its own, which both share.

{table(["", "mean accuracy", "range", "standard deviation", "CPU seconds a run"], scores)}
"""


def main(arguments):
    if arguments[:1] == ["--memory"]:
        return print_memory(*arguments[1:])
    if set(arguments) - {"--check"}:
        sys.exit(f"{__doc__}\nThere is no {' '.join(arguments)}.")
    one_thread()
    warnings.simplefilter("ignore")
    import torch

    torch.set_num_threads(1)
    results = measure_all()
    return finish(report(results), missed_bars(results), TABLE, check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
