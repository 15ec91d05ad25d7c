"""The accountants of other libraries and coursekit's: how far from the truth, and how fast.

    python course.py bench accounting            rewrite benchmarks/accounting.md
    python course.py bench accounting --check    write nothing; exit code 1 if a bar is missed

Every method is asked for epsilon. Adjacency: add/remove; sampler: Poisson. The exact values come
from a contour integral of the composed privacy loss, independent of every library here.
"""

import csv
import math
import signal
import statistics
import sys
import time
import warnings
from contextlib import contextmanager
from pathlib import Path

from _tables import digits, finish, made_by, one_thread, table

HERE = Path(__file__).resolve().parent
SETTINGS, TABLE = HERE / "accounting_settings.csv", HERE / "accounting.md"
COMMAND = "python course.py bench accounting"
COMPARED = ("numpy", "scipy", "torch", "dp-accounting", "opacus", "prv-accountant")

LONG = 0.5  # CPU seconds from which a call is timed once
TOGETHER = 0.1  # CPU seconds to time in one go, for a clock may tick as slowly as in 4 ms
LIMIT = 60  # CPU seconds after which a call counts as failed
EXACT_TO = 1e-8  # relative error that the exact values may have
TINY = {  # delta: the exact epsilon, to six decimals
    1e-8: 3.035379,
    1e-10: 3.599496,
    1e-11: 3.875616,
    1e-12: 4.150279,
    1e-13: 4.424574,
    1e-14: 4.698988,
    1e-15: 4.973523,
}
TINY_SETTING = (0.02, 1.15, 500)
TINY_EXACT_TO = 2e-7


# The methods: (sampling rate, noise multiplier, steps, delta) to (lower or None, upper)


def coursekit_bounds(q, sigma, steps, delta):
    from coursekit.accounting import epsilon_bounds

    return epsilon_bounds(noise_multiplier=sigma, sampling_rate=q, steps=steps, delta=delta)


def coursekit_rdp(q, sigma, steps, delta):
    from coursekit.accounting import rdp_epsilon

    return None, rdp_epsilon(noise_multiplier=sigma, sampling_rate=q, steps=steps, delta=delta)


def _event(q, sigma, steps):
    import dp_accounting as dp

    step = dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(sigma))
    return dp.SelfComposedDpEvent(step, steps)


def dp_accounting_rdp(q, sigma, steps, delta):
    from dp_accounting.rdp import RdpAccountant

    return None, RdpAccountant().compose(_event(q, sigma, steps)).get_epsilon(delta)


def dp_accounting_pld(q, sigma, steps, delta, spacing=1e-4):
    from dp_accounting.pld import PLDAccountant

    accountant = PLDAccountant(value_discretization_interval=spacing)
    return None, accountant.compose(_event(q, sigma, steps)).get_epsilon(delta)


def dp_accounting_coarse_pld(q, sigma, steps, delta):
    return dp_accounting_pld(q, sigma, steps, delta, spacing=1e-3)


def opacus_rdp(q, sigma, steps, delta):
    from opacus.accountants import RDPAccountant

    accountant = RDPAccountant()
    accountant.history = [(sigma, q, steps)]
    return None, accountant.get_epsilon(delta=delta)


def opacus_prv(q, sigma, steps, delta):
    from opacus.accountants import PRVAccountant

    accountant = PRVAccountant()
    accountant.history = [(sigma, q, steps)]
    return None, accountant.get_epsilon(delta=delta, eps_error=0.01)


def prv_accountant(q, sigma, steps, delta):
    from prv_accountant import PRVAccountant
    from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

    law = PoissonSubsampledGaussianMechanism(noise_multiplier=sigma, sampling_probability=q)
    accountant = PRVAccountant(
        prvs=[law], max_self_compositions=[steps], eps_error=0.01, delta_error=delta / 1000
    )
    lower, _, upper = accountant.compute_epsilon(delta=delta, num_self_compositions=[steps])
    return lower, upper


OURS, OUR_RDP = "coursekit epsilon_bounds", "coursekit rdp_epsilon"
FINE_PLD, PRV = "dp-accounting PLD, 1e-4", "prv-accountant"
METHODS = {
    OURS: coursekit_bounds,
    OUR_RDP: coursekit_rdp,
    "dp-accounting RDP": dp_accounting_rdp,
    FINE_PLD: dp_accounting_pld,
    "dp-accounting PLD, 1e-3": dp_accounting_coarse_pld,
    "Opacus RDP": opacus_rdp,
    "Opacus PRV": opacus_prv,
    PRV: prv_accountant,
}


# Measuring


def read_settings():
    """Return a list of (setting, (sampling rate, noise, steps, delta), exact epsilon)."""
    with SETTINGS.open(encoding="utf-8", newline="") as file:
        return [
            (
                row["setting"],
                (
                    float(row["sampling_rate"]),
                    float(row["noise_multiplier"]),
                    int(row["steps"]),
                    float(row["delta"]),
                ),
                float(row["exact"]),
            )
            for row in csv.DictReader(file)
        ]


@contextmanager
def cpu_limit(seconds):
    """Raise TimeoutError once the block has used so much CPU time; Windows has no such limit."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_):
        raise TimeoutError(f"no answer within {seconds} s of CPU time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def timed(method, setting, calls=1):
    """Return what the method says, and the CPU seconds of one call, the mean of so many."""
    start = time.process_time()
    for _ in range(calls):
        bounds = method(*setting)
    return bounds, (time.process_time() - start) / calls


def calls_together(method, setting):
    """Return how many calls take TOGETHER, or a little more."""
    calls = 1
    while (seconds := calls * timed(method, setting, calls)[1]) < TOGETHER / 4:
        calls *= 2
    return max(1, math.ceil(calls * TOGETHER / seconds))


def measure(method, setting, exact, exact_to=EXACT_TO, repeats=3):
    """Return error, width, below (the truth), lower, upper and CPU milliseconds; or a failure.

    The first call is a warm-up, and counts only if it was so long that there is no other.
    """
    try:
        with cpu_limit(LIMIT):  # not around the runs that are timed: it makes some clocks coarse
            (lower, upper), seconds = timed(method, setting)
        if not math.isfinite(upper):
            return {"failure": f"epsilon = {float(upper)}"}
        if seconds < LONG and repeats:
            calls = calls_together(method, setting)
            runs = [timed(method, setting, calls)[1] for _ in range(repeats)]
            seconds = statistics.median(runs)
    except Exception as error:  # whatever another library raises, it gave no answer
        return {"failure": type(error).__name__}
    return {
        "error": (upper - exact) / exact,
        "width": None if lower is None else (upper - lower) / exact,
        "below": bool(upper < exact * (1 - exact_to)),
        "above": bool(lower is not None and lower > exact * (1 + exact_to)),
        "lower": lower,
        "upper": float(upper),
        "ms": 1000 * seconds,
    }


def measure_all(settings, methods=METHODS):
    """Return {method: {setting: what was measured}}."""
    results = {}
    for name, method in methods.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        measure(method, (0.02, 2.0, 20, 1e-5), 1.0, repeats=0)  # imports, and first-time work
        results[name] = {label: measure(method, *setting) for label, *setting in settings}
    return results


def measure_tiny(methods=METHODS):
    """Return {method: {delta: what was measured}} at the tiny deltas."""
    return {
        name: {
            delta: measure(method, (*TINY_SETTING, delta), exact, TINY_EXACT_TO, repeats=0)
            for delta, exact in TINY.items()
        }
        for name, method in methods.items()
    }


# Summing up


def answers(of_method):
    return [one for one in of_method.values() if "failure" not in one]


def ratios(results, name):
    """Return per setting: CPU time of a method over that of epsilon_bounds, where both answer."""
    pairs = [(results[name][label], results[OURS][label]) for label in results[name]]
    return [a["ms"] / b["ms"] for a, b in pairs if "failure" not in a and "failure" not in b]


def percentile_95(values):
    values = sorted(values)
    return values[math.ceil(0.95 * len(values)) - 1]


def summarise(results, name):
    """Return the numbers of one line of the first table."""
    found = answers(results[name])
    widths = [one["width"] for one in found if one["width"] is not None]
    errors, ms = [one["error"] for one in found], [one["ms"] for one in found]
    return {
        "median_error": statistics.median(errors),
        "max_error": max(errors),
        "median_width": statistics.median(widths) if widths else None,
        "max_width": max(widths) if widths else None,
        "median_ms": statistics.median(ms),
        "p95_ms": percentile_95(ms),
        "ratio": statistics.median(ratios(results, name)),
        "below": sum(one["below"] for one in found),
        "above": sum(one["above"] for one in found),
        "failures": len(results[name]) - len(found),
    }


def missed_bars(results, tiny):
    """Return a sentence for each bar that is missed."""
    ours, rdp = summarise(results, OURS), summarise(results, OUR_RDP)
    every = [*results[OURS].values(), *tiny[OURS].values()]
    every += [*results[OUR_RDP].values(), *tiny[OUR_RDP].values()]
    bars = {
        "coursekit gives an answer everywhere": not any("failure" in one for one in every),
        "coursekit is never below the truth": not any(one.get("below") for one in every),
        "coursekit's lower bound is never above it": not any(one.get("above") for one in every),
        "the median width of epsilon_bounds is at most 1e-3": ours["median_width"] <= 1e-3,
        "rdp_epsilon takes at most 0.5 ms in the median": rdp["median_ms"] <= 0.5,
    }
    for name in (FINE_PLD, PRV):
        ratio = summarise(results, name)["ratio"]
        bars[f"{name} takes at least 50 times as long (median ratio {ratio:.1f})"] = ratio >= 50
    return [sentence for sentence, met in bars.items() if not met]


# Writing


def percent(value):
    """Three digits of a share, in per cent."""
    return "–" if value is None else f"{100 * value:.3g} %" if abs(value) >= 1e-8 else "0 %"


def first_table(results):
    head = ["method", "median error", "max error", "median width", "max width", "median CPU ms",
            "p95 CPU ms", "median CPU ratio", "below the truth", "failures"]
    rows = []
    for name in results:
        if not answers(results[name]):
            rows.append([name, *["–"] * 8, len(results[name])])
            continue
        one = summarise(results, name)
        rows.append([
            name, *(percent(one[key]) for key in list(one)[:4]), digits(one["median_ms"]),
            digits(one["p95_ms"]), digits(one["ratio"]), one["below"], one["failures"],
        ])
    return table(head, rows)


def second_table(results, settings):
    head = ["setting", "rate", "noise", "steps", "delta", "exact", "method", "upper", "error",
            "width", "CPU ms"]
    rows = []
    for label, (q, sigma, steps, delta), exact in settings:
        where = [label, f"{q:.6g}", f"{sigma:g}", steps, f"{delta:g}", f"{exact:.6f}"]
        for name in results:
            rows.append([*where, name, *cells(results[name][label])])
            where = [""] * len(where)
    return table(head, rows)


def cells(one):
    if "failure" in one:
        return [one["failure"], "–", "–", "–"]
    upper = f"**{one['upper']:.6f}**" if one["below"] else f"{one['upper']:.6f}"
    return [upper, percent(one["error"]), percent(one["width"]), digits(one["ms"])]


def tiny_table(tiny):
    head = ["delta", "exact", *tiny]
    rows = []
    for delta, exact in TINY.items():
        row = [f"{delta:g}", f"{exact:.6f}"]
        for name in tiny:
            one = tiny[name][delta]
            if "failure" in one:
                row.append(one["failure"])
                continue
            upper = f"**{one['upper']:.6f}**" if one["below"] else f"{one['upper']:.6f}"
            row.append(upper if name != OURS else f"{one['lower']:.6f} to {upper}")
        rows.append(row)
    return table(head, rows, left=0)


def report(results, tiny, settings):
    """Return the whole of accounting.md."""
    return f"""\
# Accountants compared

{made_by(COMMAND, COMPARED)}

What is asked for: the epsilon of `steps` Gaussian steps with Poisson sampling, add/remove, the
worse of both directions. Error: (upper - exact) / exact. Width: (upper - lower) / exact, where a
method gives both ends. CPU time of a call: the median of 3 runs after a warm-up, each of as many
calls as take {1000 * TOGETHER:g} ms; one of {1000 * LONG:g} ms or more is timed once. One of over
{LIMIT} s counts as failed, as do an exception and an infinite epsilon. CPU ratio: the median over
the settings of a method's time over that of `epsilon_bounds` in the same one. Below the truth: an
upper value too small by more than {EXACT_TO:g}, relative, to which the exact values are known.
Errors, widths and times are over the settings in which a method answers. The PRV accountants run
with eps_error 0.01; all else is as each library has it by default.

## {len(settings)} settings, one line for each method

{first_table(results)}

## Each setting

An upper value **in bold** is below the truth.

{second_table(results, settings)}

## At tiny delta

Rate {TINY_SETTING[0]}, noise {TINY_SETTING[1]}, {TINY_SETTING[2]} steps. Upper values, for
`epsilon_bounds` both ends; **in bold** those below the truth. The others' last digits here are
rounding of a Fourier transform and may differ on another processor.

{tiny_table(tiny)}
"""


def main(arguments):
    if set(arguments) - {"--check"}:
        sys.exit(f"{__doc__}\nThere is no {' '.join(arguments)}.")
    one_thread()
    import logging

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    settings = read_settings()
    results, tiny = measure_all(settings), measure_tiny()
    text, missed = report(results, tiny, settings), missed_bars(results, tiny)
    return finish(text, missed, TABLE, check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
