"""What the benchmarks share: numbers and tables for their Markdown files."""

import math
import os
import platform
import re
import statistics
import subprocess
import sys
from datetime import date
from importlib import metadata
from pathlib import Path

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def one_thread():
    """Ask for one thread; call it before anything loads NumPy."""
    os.environ.update(dict.fromkeys(THREADS, "1"))


def made_by(command, packages):
    """Return the lines that say how, when and on what a table was made."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in packages)
    return f"""\
Made by `{command}` on {date.today().isoformat()}.
{platform.machine()}, {os.cpu_count()} cores, one thread; Python {platform.python_version()};
{versions}."""


def finish(text, missed, path, *, check):
    """Print the report and the bars that are missed; with `check` return 1 for any, else write."""
    print(text)
    for sentence in missed:
        print(f"Missed: {sentence}.")
    if check:
        return int(bool(missed))
    path.write_text(text, encoding="utf-8", newline="\n")
    return 0


def ratio(taken, name, base):
    """Return the median over the turns of a method's time over another's in the same turn."""
    return statistics.median(a / b for a, b in zip(taken[name], taken[base], strict=True))


def peak_memory():
    """Return the peak memory of this process, in MB (Linux only)."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def peak_memory_of(script, *arguments):
    """Return what a process of its own prints: `script --memory`, and what is to be measured."""
    command = [sys.executable, script, "--memory", *map(str, arguments)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def digits(value):
    """Three digits, without an exponent."""
    places = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{places}f}"


def table(head, rows, left=1):
    """Return a Markdown table; columns after the first `left` are set to the right."""
    rule = [":--"] * left + ["--:"] * (len(head) - left)
    lines = [f"| {' | '.join(map(str, row))} |" for row in (head, rule, *rows)]
    return "\n".join(lines)
