"""The benchmarks: their tables say what they claim, and their numbers agree with coursekit."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

import course
from coursekit.accounting import epsilon_bounds

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "benchmarks"
PEERS = ["opacus", "dp_accounting", "prv_accountant", "torch"]

sys.path.insert(0, str(FOLDER))  # as for the script itself, for _tables


def load(name):
    # By path: other packages install a module `benchmarks` of their own.
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


NAMES = ["accounting", "dp_sgd", "ensemble", "releases"]
accounting, dp_sgd, ensemble, releases = ALL = [load(name) for name in NAMES]
EACH = pytest.mark.parametrize("benchmark", ALL, ids=NAMES)
SETTINGS = {label: (setting, exact) for label, setting, exact in accounting.read_settings()}


def lines_of(number):
    """The rows of one table of accounting.md, each a list of cells."""
    text = accounting.TABLE.read_text("utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, flags=re.MULTILINE)
    rows = [line.strip("| ").split(" | ") for line in tables[number].splitlines()]
    return [[cell.strip() for cell in row] for row in rows[2:]]


# The committed table


@EACH
def test_the_command_in_the_table_is_one_that_course_py_has(benchmark):
    text = benchmark.TABLE.read_text("utf-8")
    (command,) = re.findall(r"Made by `(.+?)`", text)
    assert command == benchmark.COMMAND
    python, script, verb, name = command.split()
    assert (python, script, verb) == ("python", "course.py", "bench")
    assert f"python course.py bench {name} " in course.__doc__
    assert (FOLDER / f"{name}.py").is_file()


def test_the_table_has_every_setting_and_every_method():
    methods = list(accounting.METHODS)
    assert [row[0] for row in lines_of(0)] == methods
    rows = [line.split("|") for line in accounting.TABLE.read_text("utf-8").splitlines()]
    labels = [row[1].strip() for row in rows if len(row) == 13 and row[6].strip()[:1].isdigit()]
    assert labels == list(SETTINGS)
    assert len(lines_of(1)) == len(SETTINGS) * len(methods)
    assert [float(row[0]) for row in lines_of(2)] == list(accounting.TINY)


@EACH
def test_the_table_was_made_with_the_pinned_versions(benchmark):
    text = benchmark.TABLE.read_text("utf-8")
    pinned = (FOLDER / "requirements.txt").read_text("utf-8")
    pins = dict(re.findall(r"^(\S+)==(\S+)$", pinned, re.M))
    assert {"dp-accounting", "opacus", "prv-accountant"} <= set(pins)
    for name in set(benchmark.COMPARED) & set(pins):
        assert re.search(rf"\b{name} {re.escape(pins[name])}\b", text), name
    assert all(f"{name} " in text for name in benchmark.COMPARED)


@EACH
def test_the_table_says_nothing_of_the_machine_but_its_kind(benchmark):
    text = benchmark.TABLE.read_text("utf-8")
    assert not re.search(r"(?<![\w`.])/\w+/|[A-Z]:\\", text)
    assert re.search(r"^\w+, \d+ cores, one thread; Python 3\.\d+\.\d+;$", text, re.M)


# The settings


@pytest.mark.parametrize("label", ["S03_onco_1ep", "S25_d3", "S28_d12"])
def test_the_exact_value_is_within_the_bounds_of_coursekit(label):
    (rate, noise, steps, delta), exact = SETTINGS[label]
    low, high = epsilon_bounds(
        noise_multiplier=noise, sampling_rate=rate, steps=steps, delta=delta
    )
    assert low <= exact <= high <= 1.0011 * low


def test_the_settings_are_sampled_and_named_once():
    assert len(SETTINGS) == len(accounting.read_settings()) > 10
    for (rate, noise, steps, delta), exact in SETTINGS.values():
        assert 0 < rate < 1 and 0 < delta < 1
        assert min(noise, steps, exact) > 0


# The program


@pytest.mark.parametrize("path", sorted(FOLDER.glob("[a-z]*.py")), ids=lambda path: path.stem)
def test_a_benchmark_imports_without_the_libraries_that_it_compares(path):
    code = "import runpy, sys; sys.modules.update(dict.fromkeys(sys.argv[2:]));"
    code += f"sys.path.insert(0, {str(FOLDER)!r});"
    code += "runpy.run_path(sys.argv[1]); sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, path, *PEERS]).returncode == 0


def test_what_is_measured_of_a_method():
    one = accounting.measure(lambda *setting: (0.9, 1.1), (), 1.0)
    assert one["error"] == pytest.approx(0.1) and one["width"] == pytest.approx(0.2)
    assert not one["below"] and not one["above"] and one["ms"] >= 0
    assert accounting.measure(lambda *setting: (None, 0.9), (), 1.0)["below"]
    assert accounting.measure(lambda *setting: (1.1, 1.2), (), 1.0)["above"]
    rounded = accounting.measure(lambda *setting: (None, 1 - 1e-12), (), 1.0)
    assert not rounded["below"] and rounded["width"] is None


def test_short_calls_are_timed_many_together_three_times_and_a_long_one_once(monkeypatch):
    clock, calls = [0.0], []

    def method(seconds):
        calls.append(seconds)
        clock[0] += seconds
        return None, 1.0

    tick = 0.004  # a clock as coarse as some machines have
    monkeypatch.setattr(accounting.time, "process_time", lambda: clock[0] // tick * tick)
    for seconds in (0.0004, 0.003, 0.09, 0.3):
        calls.clear()
        ms = accounting.measure(method, (seconds,), 1.0)["ms"]
        assert ms == pytest.approx(1000 * seconds, rel=0.05)
        assert len(calls) >= 5
    calls.clear()
    assert accounting.measure(method, (0.7,), 1.0)["ms"] == pytest.approx(700, rel=0.01)
    assert len(calls) == 1


def test_an_exception_an_infinite_epsilon_and_too_much_time_are_failures(monkeypatch):
    def slow(*setting):
        while True:
            pass

    assert accounting.measure(lambda *setting: 1 / 0, (), 1.0) == {"failure": "ZeroDivisionError"}
    infinite = accounting.measure(lambda *setting: (None, float("inf")), (), 1.0)
    assert infinite == {"failure": "epsilon = inf"}
    if hasattr(accounting.signal, "setitimer"):
        monkeypatch.setattr(accounting, "LIMIT", 0.05)
        assert accounting.measure(slow, (), 1.0) == {"failure": "TimeoutError"}


def measured(ms, **changes):
    one = {"error": 0.0005, "width": 0.001, "below": False, "above": False, "lower": 0.9995,
           "upper": 1.0005, "ms": ms}
    return {"S1": one | changes, "S2": one | changes, "S3": {"failure": "ValueError"}}


def good_results():
    results = {name: measured(1000) for name in accounting.METHODS}
    for name, ms in ((accounting.OURS, 10), (accounting.OUR_RDP, 0.5)):
        results[name] = measured(ms)
        del results[name]["S3"]
        results[name]["S3"] = results[name]["S1"]
    tiny = {name: {1e-8: results[name]["S1"]} for name in accounting.METHODS}
    return results, tiny


def test_a_line_sums_up_a_method():
    results, _ = good_results()
    results["Opacus RDP"]["S2"] = results["Opacus RDP"]["S2"] | {"ms": 3000, "error": -0.1,
                                                                  "below": True, "width": None}
    one = accounting.summarise(results, "Opacus RDP")
    assert (one["median_ms"], one["p95_ms"], one["ratio"]) == (2000, 3000, 200)
    assert (one["below"], one["failures"], one["max_error"]) == (1, 1, 0.0005)
    assert one["median_width"] == 0.001
    assert accounting.percentile_95(range(1, 101)) == 95
    assert accounting.percentile_95([7]) == 7


def test_no_bar_is_missed_by_good_results():
    assert accounting.missed_bars(*good_results()) == []


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        (accounting.OURS, {"below": True}, "never below the truth"),
        (accounting.OUR_RDP, {"below": True}, "never below the truth"),
        (accounting.OURS, {"above": True}, "lower bound is never above"),
        (accounting.OURS, {"width": 0.0011}, "median width"),
        (accounting.OUR_RDP, {"ms": 0.51}, "0.5 ms"),
        (accounting.FINE_PLD, {"ms": 499}, "median ratio 49.9"),
        (accounting.PRV, {"ms": 499}, "median ratio 49.9"),
    ],
)
def test_each_bar_is_missed_by_bad_results(name, changes, words):
    results, tiny = good_results()
    for one in (results[name][label] for label in ("S1", "S2")):
        one.update(changes)
    (sentence,) = accounting.missed_bars(results, tiny)
    assert words in sentence


def test_a_failure_or_a_value_below_the_truth_at_tiny_delta_misses_a_bar():
    results, tiny = good_results()
    tiny[accounting.OURS] = {1e-8: {"failure": "ValueError"}}
    assert accounting.missed_bars(results, tiny) == ["coursekit gives an answer everywhere"]
    tiny[accounting.OURS] = {1e-8: results[accounting.OURS]["S1"] | {"below": True}}
    assert accounting.missed_bars(results, tiny) == ["coursekit is never below the truth"]


def test_check_writes_nothing_and_its_exit_code_tells(monkeypatch, tmp_path, capsys):
    results, tiny = good_results()
    monkeypatch.setattr(accounting, "TABLE", tmp_path / "accounting.md")
    monkeypatch.setattr(accounting, "measure_all", lambda settings: results)
    monkeypatch.setattr(accounting, "measure_tiny", lambda: tiny)
    monkeypatch.setattr(accounting, "report", lambda *_: "the table")
    monkeypatch.setattr("logging.disable", lambda level: None)
    assert accounting.main(["--check"]) == 0
    results[accounting.PRV] = measured(1)
    assert accounting.main(["--check"]) == 1
    assert "Missed: prv-accountant takes" in capsys.readouterr().out
    assert not accounting.TABLE.exists()
    assert accounting.main([]) == 0
    assert accounting.TABLE.read_text("utf-8") == "the table"
    with pytest.raises(SystemExit, match="There is no --chekc"):
        accounting.main(["--chekc"])


@pytest.mark.parametrize(
    ("value", "printed"), [(0.4321, "0.432"), (43.21, "43.2"), (4321.0, "4321"), (0, "0")]
)
def test_times_have_three_digits_and_no_exponent(value, printed):
    assert accounting.digits(value) == printed


# The one of DP-SGD


def good_training():
    """Measurements of two turns that meet every bar."""
    steps = {}
    for name in dp_sgd.NETS:
        times = {dp_sgd.PLAIN: 100, dp_sgd.GENERAL: 110, dp_sgd.OURS: 55}
        times |= {f"Opacus, {mode}": 500 for mode in dp_sgd.OPACUS}
        if name == dp_sgd.CNN:
            del times[dp_sgd.OURS]
        steps[name] = {key: [one, 2 * one] for key, one in times.items()}
    whole = {"coursekit": [1, 2], "Opacus, ghost, Poisson loader": [6, 12],
             "Opacus, hooks, Poisson loader": [9, 18]}
    many = {"coursekit, stacked": [1, 2], "Opacus, hooks": [30, 60], "Opacus, ghost": [26, 52]}
    memory = {name: {dp_sgd.PLAIN: 100, dp_sgd.OURS: 110} for name in (dp_sgd.LARGE, dp_sgd.CNN)}
    return {"steps": steps, "epochs": dict.fromkeys(dp_sgd.SMALL, whole), "many": many,
            "memory": memory, "accuracy": {"coursekit": [(0.8, 1.0), (0.9, 2.0)]}}


def test_good_training_misses_no_bar_and_its_report_has_a_line_for_each_method(monkeypatch):
    results = good_training()
    assert dp_sgd.missed_bars(results) == []
    monkeypatch.setattr(dp_sgd, "made_by", lambda command, packages: "made")
    text = dp_sgd.report(results)
    for name in dp_sgd.METHODS:
        assert f"\n| {name} |" in text
    assert "| coursekit | 0.850 | 0.800 to 0.900 | 0.071 | 1.50 |" in text


@pytest.mark.parametrize(
    ("section", "name", "method", "times", "words"),
    [
        ("steps", dp_sgd.SMALL[0], dp_sgd.GENERAL, [121, 242], "general way takes 1.2 of"),
        ("steps", dp_sgd.CNN, dp_sgd.GENERAL, [126, 252], "general way takes 1.25 of"),
        ("steps", dp_sgd.SMALL[1], dp_sgd.OURS, [61, 122], "by hand takes 0.6 of plain (0.61)"),
        ("steps", dp_sgd.SMALL[2], "Opacus, ew", [190, 380], "Opacus takes 3.5 times"),
        ("epochs", dp_sgd.SMALL[0], "Opacus, hooks, Poisson loader", [7, 14], "hooks takes 8"),
        ("epochs", dp_sgd.SMALL[0], "Opacus, ghost, Poisson loader", [4, 8], "ghost takes 5"),
    ],
)
def test_each_bar_of_training_is_missed_by_bad_results(section, name, method, times, words):
    results = good_training()
    results[section][name] = {**results[section][name], method: times}
    (sentence,) = dp_sgd.missed_bars(results)
    assert words in sentence and sentence.startswith(name)


def test_bars_of_many_models_and_of_memory_are_missed_by_bad_results():
    results = good_training()
    results["many"]["Opacus, ghost"] = [20, 40]
    results["memory"][dp_sgd.LARGE][dp_sgd.OURS] = 116
    models, memory = dp_sgd.missed_bars(results)
    assert "64 models: Opacus ghost" in models and "15 MB more than plain (16)" in memory


def test_methods_take_turns_and_a_ratio_is_of_the_same_turn(monkeypatch):
    clock, order = [0.0], []

    def call(name, seconds):
        order.append(name)
        clock[0] += seconds * (1 + len(order) // 100)  # the machine gets slower and slower

    monkeypatch.setattr(dp_sgd.time, "process_time", lambda: clock[0])
    calls = {"quick": lambda: call("quick", 0.01), "slow": lambda: call("slow", 0.03)}
    taken = dp_sgd.by_turns(calls, turns=9, turn=0.06)
    assert len(taken["quick"]) == len(taken["slow"]) == 9
    assert order[-8:].count("slow") == 2 and order[-2:] == ["slow", "slow"]
    assert dp_sgd.ratio(taken, "slow", "quick") == pytest.approx(3, rel=0.2)
    assert dp_sgd.ratio({"a": [1, 30, 3], "b": [1, 10, 1]}, "a", "b") == 3


def test_both_benchmarks_write_what_they_print_and_tell_by_the_exit_code(monkeypatch, tmp_path):
    results = good_training()
    monkeypatch.setattr(dp_sgd, "TABLE", tmp_path / "dp_sgd.md")
    monkeypatch.setattr(dp_sgd, "measure_all", lambda: results)
    monkeypatch.setattr(dp_sgd, "made_by", lambda command, packages: "made")
    assert dp_sgd.main(["--check"]) == 0 and not dp_sgd.TABLE.exists()
    results["many"]["Opacus, ghost"] = [1, 1]
    assert dp_sgd.main(["--check"]) == 1
    assert dp_sgd.main([]) == 0 and "made" in dp_sgd.TABLE.read_text("utf-8")
    with pytest.raises(SystemExit, match="There is no --chekc"):
        dp_sgd.main(["--chekc"])


# The two smaller benchmarks


def good_ensemble():
    taken = {ensemble.PLAIN: [16, 32], "stacked, 1 job": [2, 4], "stacked, 2 jobs": [1, 2]}
    return {"found": {"float32": (taken, 5), "float64": (taken, 12)}, "memory": 20}


def good_releases():
    ours = {"k-anonymity": 0.01, "t-closeness": 0.02}
    theirs = {name: 100 * taken for name, taken in ours.items()}
    return {"bars": dict(releases.BARS), "ours": ours, "theirs": theirs}


@pytest.mark.parametrize(
    ("benchmark", "good", "change", "words"),
    [
        (ensemble, good_ensemble, lambda r: r["found"]["float32"][0].update(
            {"stacked, 2 jobs": [1.1, 2.2]}), "float32: stacked is 16 times faster (14.5)"),
        (ensemble, good_ensemble, lambda r: r.update(memory=21), "20 MB more than one model (21)"),
        (ensemble, good_ensemble, lambda r: r["found"].update(
            float64=(r["found"]["float64"][0], 13)), "float64: the whole job takes 12 s (13.0)"),
        (releases, good_releases, lambda r: r["bars"].update(Mondrian=1.1), "Mondrian takes 1.0 s"),
        (releases, good_releases, lambda r: r["theirs"].update({"k-anonymity": 0.5}),
         "k-anonymity: 100 times faster than pycanon (50)"),
    ],
)  # fmt: skip
def test_good_results_miss_no_bar_and_bad_ones_the_right_one(
    benchmark, good, change, words, monkeypatch, tmp_path
):
    results = good()
    monkeypatch.setattr(benchmark, "TABLE", tmp_path / "table.md")
    monkeypatch.setattr(benchmark, "measure_all", lambda: results)
    monkeypatch.setattr(benchmark, "made_by", lambda command, packages: "made")
    assert benchmark.missed_bars(results) == [] and benchmark.main(["--check"]) == 0
    change(results)
    (sentence,) = benchmark.missed_bars(results)
    assert words in sentence
    assert benchmark.main(["--check"]) == 1 and not benchmark.TABLE.exists()
    assert benchmark.main([]) == 0 and "made" in benchmark.TABLE.read_text("utf-8")
    with pytest.raises(SystemExit, match="There is no --chekc"):
        benchmark.main(["--chekc"])


def test_their_tables_have_a_row_for_each_thing_measured():
    for benchmark, names in ((ensemble, [ensemble.PLAIN, "stacked, 2 jobs"]),
                             (releases, [*releases.BARS, "k-anonymity"])):  # fmt: skip
        text = benchmark.TABLE.read_text("utf-8")
        assert all(f"| {name} |" in text for name in names)
