"""Anonymity and linkage in coursekit: what they cost, and pycanon beside them.

    python course.py bench releases            rewrite benchmarks/releases.md
    python course.py bench releases --check    write nothing; exit code 1 if a bar is missed

All times are CPU times of one thread, medians of several calls. pycanon pins NumPy exactly, so it
gets an environment of its own inside .bench, and takes its time there, on the same table.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _tables import digits, finish, made_by, one_thread, table

HERE = Path(__file__).resolve().parent
TABLE = HERE / "releases.md"
COMMAND = "python course.py bench releases"
COMPARED = ("numpy", "scipy")
PYCANON = "pycanon==1.3.6"

RECORDS, K, CALLS = 30_000, 5, 5
QUASI = ["age", "education", "hours", "sex", "race"]
BARS = {  # seconds
    "Mondrian": 1.0,
    "full-domain lattice, best": 0.5,
    "unicity, 23,000 users": 4.0,
    "scoreboard, 5,000 users, 300 targets": 3.0,
}
FASTER = 100


def people(seed=0):
    """Return 30,000 people of age 17 and over, with what is published of them."""
    import numpy as np

    from coursekit.people import people

    names = ("age", "education", "hours", "sex", "race", "diagnosis", "income")
    rng = np.random.default_rng(seed)
    return people([RECORDS], rng=rng, youngest=17, columns=names)


def seconds(call, calls=CALLS):
    """Return the median CPU seconds of a call."""
    taken = []
    for _ in range(calls):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def hierarchies(found):
    from coursekit.anonymity import intervals

    return {
        "age": intervals(range(120), widths=[5, 10, 20, 40]),
        "hours": intervals(range(120), widths=[10, 20, 40]),
        **{name: {value: ("*",) for value in set(found[name])} for name in ("sex", "race")},
        "education": {value: ("*",) for value in set(found["education"])},
    }


def our_bars():
    """Return {what: CPU seconds} for each of `BARS`."""
    import numpy as np

    from coursekit.anonymity import full_domain, mondrian
    from coursekit.linkage import (
        clues_about,
        scoreboard,
        synthetic_ratings,
        synthetic_traces,
        unicity,
    )

    found, rng = people(), np.random.default_rng(0)
    roles = dict.fromkeys(QUASI, "quasi-identifier") | {"diagnosis": "sensitive", "income": "other"}
    ladders = hierarchies(found)
    traces = synthetic_traces(rng=rng)
    ratings = synthetic_ratings(rng=rng)
    clues = clues_about(ratings, targets=300, known=8, wrong=2, day_error=14, rng=rng)
    calls = [
        lambda: mondrian(found, roles=roles, k=K),
        lambda: full_domain(
            found, roles=roles, hierarchies=ladders, k=K, most_suppressed=RECORDS // 100
        ),
        lambda: [unicity(traces, points=points, targets=400, rng=rng) for points in range(1, 7)],
        lambda: scoreboard(ratings, clues),
    ]
    return {name: seconds(call) for name, call in zip(BARS, calls, strict=True)}


def our_measures(found):
    from coursekit.anonymity import k_anonymity, l_diversity, t_closeness

    roles = dict.fromkeys(QUASI, "quasi-identifier") | {"diagnosis": "sensitive", "income": "other"}
    return {
        "k-anonymity": seconds(lambda: k_anonymity(found, roles=roles), 20),
        "l-diversity, distinct": seconds(lambda: l_diversity(found, roles=roles)),
        "t-closeness": seconds(lambda: t_closeness(found, roles=roles)),
    }


def pycanons_measures(found):
    """Return the same by pycanon, run by a Python of its own."""
    import numpy as np

    folder = Path(sys.prefix) / "pycanon"
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    subprocess.run([python, "-m", "pip", "install", "--quiet", PYCANON], check=True)
    with tempfile.TemporaryDirectory() as place:
        file = Path(place, "people.npz")
        np.savez(file, **found)
        command = [python, __file__, "--pycanon", file]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def time_pycanon(file):
    """Print pycanon's CPU seconds as JSON; this runs in its environment."""
    import numpy as np
    import pandas as pd
    from pycanon import anonymity

    data = pd.DataFrame(dict(np.load(file, allow_pickle=False)))
    calls = {
        "k-anonymity": lambda: anonymity.k_anonymity(data, QUASI),
        "l-diversity, distinct": lambda: anonymity.l_diversity(data, QUASI, ["diagnosis"]),
        "t-closeness": lambda: anonymity.t_closeness(data, QUASI, ["diagnosis"]),
    }
    print(json.dumps({name: seconds(call, calls=1) for name, call in calls.items()}))


def measure_all():
    found = people()
    return {"bars": our_bars(), "ours": our_measures(found), "theirs": pycanons_measures(found)}


def missed_bars(results):
    """Return a sentence for each bar that is missed."""
    bars = {f"{name} takes {BARS[name]} s ({taken:.2f})": taken <= BARS[name]
            for name, taken in results["bars"].items()}  # fmt: skip
    for name, taken in results["ours"].items():
        fast = results["theirs"][name] / taken
        bars[f"{name}: {FASTER} times faster than pycanon ({fast:.0f})"] = fast >= FASTER
    return [sentence for sentence, met in bars.items() if not met]


def report(results):
    """Return the whole of releases.md."""
    bars = [[name, digits(taken), BARS[name]] for name, taken in results["bars"].items()]
    against = []
    for name, taken in results["ours"].items():
        theirs = results["theirs"][name]
        times = [digits(1e3 * taken), digits(1e3 * theirs)]
        against.append([name, *times, f"{theirs / taken:,.0f}"])
    return f"""\
# Anonymity and linkage: what they cost

{made_by(COMMAND, COMPARED)}

## In CPU seconds

{RECORDS:,} people, k = {K}, quasi-identifiers {", ".join(QUASI)}; the lattice may suppress 1%;
unicity takes 400 targets and 1 to 6 points.

{table(["", "seconds", "bar"], bars)}

## Against pycanon ({PYCANON.split("==")[1]}), in milliseconds

The same table; l and t for the diagnosis. pycanon ran in an environment of its own.

{table(["", "coursekit", "pycanon", "times faster"], against)}
"""


def main(arguments):
    one_thread()
    if arguments[:1] == ["--pycanon"]:
        return time_pycanon(arguments[1])
    if set(arguments) - {"--check"}:
        sys.exit(f"{__doc__}\nThere is no {' '.join(arguments)}.")
    results = measure_all()
    return finish(report(results), missed_bars(results), TABLE, check="--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
