"""Proof that the machinery bites: each rule, `run`, `portable`, and the network guard under nbval.

One small notebook keeps every rule; each mutation of it breaks one rule and must be reported.
"""

import copy
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import notebook_rules as rules
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from coursekit import notebooks

ROOT = Path(__file__).resolve().parents[1]
FILLER = ("Read the number slowly and ask what it would mean for one person in the data, "
          "because a release that looks harmless in a table may still tell a neighbour far too "
          "much about somebody real.")
ALT = "Two bars of equal height show that the draws fall evenly on both sides, 0.51 and 0.49."
PIXEL = ("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
         "awAAAABJRU5ErkJggg==")


def prose(text, **metadata):
    return new_markdown_cell(text, metadata={"slideshow": {"slide_type": "slide"}, **metadata})


def code(source, *outputs, **metadata):
    return new_code_cell(source, outputs=list(outputs),
                         metadata={"slideshow": {"slide_type": "fragment"}, **metadata})


def printed(text, name="stdout"):
    return new_output("stream", text=text, name=name)


def figure(alt=ALT):
    return new_output("display_data", {"image/png": PIXEL, "text/plain": "<Figure size 640x480>"},
                      metadata={"image/png": {"alt": alt}})


def good_notebook(other="01_second.ipynb"):
    """Return a notebook that keeps every rule and links to `other`."""
    notebook = new_notebook(metadata={"kernelspec": dict(notebooks.KERNELSPEC)}, cells=[
        prose("# A small notebook\n\n**You will be able to** read a number\n\n**You need first** "
              f"[the other one]({other}) and [its set](../exercises/ps01-first/ps01-first.ipynb)"
              "\n\n**Time**: about 5 minutes to read, 3 s to run. The end is the "
              "[recap](#Hinglish-recap)."),
        code("import numpy as np\n\nrng = np.random.default_rng(7)", tags=["setup"]),
        prose(f"## A draw\n\n**Predict** how far off 1,000 draws will be. {FILLER}"),
        code("draws = rng.laplace(size=1_000)\nprint(f'{draws.mean():.4f}', f'{share:.3f}')",
             printed("0.2718 0.799\n")),
        prose(f"The mean is 0.27, and 80% of the releases give the person away. {FILLER}"),
        prose(f"### Both sides\n\nHow many on each side? {FILLER}", tags=["prediction"]),
        code("show(fig, alt=f'Two bars ... {above:.2f} and {below:.2f}')", figure(),
             printed(f"Figure: {ALT}\n")),
        prose(f"About half, 0.51, lie above (see section 2.5, and Python 3.12). {FILLER}"),
        prose(f"## A mistake, run\n\nWhat if epsilon is 0? {FILLER}"),
        code("private_count(2_000, epsilon=0)",
             new_output("error", ename="ValueError", evalue="epsilon must be above 0, got 0.",
                        traceback=[]), tags=["raises-exception"]),
        prose(f"It is refused for all 2,000 records, with a sentence. {FILLER}"),
        prose(f"## Take-aways\n\nDraw with a seed. {FILLER}\n\n## Sources\n\nA paper on randomized "
              "responses says 63.3%.\n\n## Hinglish recap\n\nYeh number ka matlab hai ki ek insaan "
              "ke baare mein kuch nahi pata chalta."),
    ])
    for count, cell in enumerate([c for c in notebook.cells if c.cell_type == "code"], 1):
        cell.execution_count = count
    return notebook


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course of two good notebooks and a problem set; returns the two books."""
    root = tmp_path_factory.mktemp("course")
    for folder in ("solutions", "exercises"):
        path = root / folder / "ps01-first" / "ps01-first.ipynb"
        path.parent.mkdir(parents=True)
        nbformat.write(good_notebook(), path)
    (root / "notebooks").mkdir()
    paths = [root / "notebooks" / name for name in ("00_start_here.ipynb", "01_second.ipynb")]
    for path, other in zip(paths, reversed(paths), strict=True):
        nbformat.write(good_notebook(other.name), path)
    return [rules.read(path) for path in paths]


# Mutations -----------------------------------------------------------------------------------


def replace(number, old, new):
    def mutate(notebook):
        cell = notebook.cells[number - 1]
        assert old in cell.source
        cell.source = cell.source.replace(old, new)
    return mutate


def added(source, *outputs, **metadata):
    """Put one more cell of code, with a sentence before it, ahead of the last cell."""
    def mutate(notebook):
        notebook.cells[-1:-1] = [prose(FILLER), code(source, *outputs, **metadata)]
    return mutate


def prose_added(text):
    return lambda notebook: notebook.cells.insert(-1, prose(text))


def without(number):
    return lambda notebook: notebook.cells.pop(number - 1)


def edited(number, **changes):
    return lambda notebook: notebook.cells[number - 1].update(changes)


def untagged(number):
    return lambda notebook: notebook.cells[number - 1].metadata.pop("tags")


def in_metadata(key, value):
    return lambda notebook: notebook.metadata.update({key: value})


def lines(count):
    return "\n".join(["x = 1"] * count)


def all_code(source):
    def mutate(notebook):
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.source = source
    return mutate


def swapped_alt(alt):
    return edited(7, outputs=[figure(alt), printed(f"Figure: {ALT}\n")])


MUTATIONS = [
    (rules.valid_format, edited(4, outputs=[{"output_type": "nonsense"}]), "not a valid notebook"),
    (rules.kernel, in_metadata("kernelspec", {"name": "my-env", "display_name": "x"}), "python3"),
    (rules.kernel, in_metadata("language_info", {"name": "python", "version": "3.11"}), "version"),
    (rules.kernel, in_metadata("widgets", {"state": {}}), "state of widgets"),
    (rules.unique_ids, lambda notebook: notebook.cells.append(notebook.cells[0]), "cell 13: needs"),
    (rules.no_empty_cells, edited(5, source=" \n"), "cell 5: is empty"),
    (rules.ran_in_order, edited(4, execution_count=None, outputs=[]), "count None, must be 2"),
    (rules.ran_in_order, edited(4, execution_count=5), "cell 4: has execution count 5"),
    (rules.no_errors, untagged(10), "cell 10: ended in ValueError"),
    (rules.no_errors, edited(10, outputs=[]), "tagged raises-exception but shows no error"),
    (rules.no_stderr, added("warn()", printed("Warning: x", "stderr")), "cell 13: wrote to stderr"),
    (rules.plain_python, added("%matplotlib inline"), "not plain Python"),
    (rules.plain_python, added("!pip install x"), "not plain Python"),
    (rules.plain_python, added("len?"), "not plain Python"),
    (rules.longest_cell, added(lines(31)), "has 31 lines"),
    (rules.short_cells, all_code(lines(6)), "median code cell has 6"),
    (rules.short_cells, added(lines(16)), "90th percentile code cell has 16"),
    (rules.prose_between_code, lambda notebook: notebook.cells.insert(4, code("1")), "cell 5: is"),
    (rules.prose_between_code, lambda notebook: notebook.cells.append(code("1")), "not in code"),
    (rules.prose_between_code, without(1), "cell 1: is code with no sentence"),
    (rules.prose_rhythm, prose_added(FILLER), "ratio of 2.25"),
    (rules.prose_rhythm, lambda notebook: [added("1")(notebook) for _ in range(20)], "ratio of 1."),
    (rules.prose_rhythm, lambda notebook: [replace(n, FILLER, "So.")(notebook)
                                           for n in (3, 5, 6, 8, 9, 11)], "median cell of prose"),
    (rules.prose_rhythm, lambda notebook: [replace(n, FILLER, 3 * FILLER)(notebook)
                                           for n in (3, 5, 6, 8, 9, 11)], "median cell of prose"),
    (rules.opening_box, replace(1, "# A small", "A small"), "'# ' and the title"),
    (rules.opening_box, replace(1, "**You will be able to**", "Learn"), "You will be able to"),
    (rules.opening_box, replace(1, "**You need first**", "First"), "You need first"),
    (rules.opening_box, replace(1, ", 3 s to run", ""), "**Time**"),
    (rules.opening_box, replace(1, "3 s to run", "61 s to run"), "takes 61 s"),
    (rules.heading_levels, replace(9, "## A", "# A"), "has 2 headings"),
    (rules.heading_levels, replace(6, "### Both", "#### Both"), "skips from level 2 to 4"),
    (rules.closing_sections, replace(12, "## Take-aways", "## Summary"), "'## Take-aways'"),
    (rules.closing_sections, replace(12, "## Sources", "## Books"), "'## Sources'"),
    (rules.closing_sections, replace(12, "## Hinglish recap", "## Recap"), "'## Hinglish recap'"),
    (rules.closing_sections, replace(12, "Draw with a seed. " + FILLER, ""), "'## Take-aways'"),
    (rules.hinglish, replace(12, "Yeh number", "यह number"), "Roman letters"),
    (rules.hinglish, replace(12, "Yeh number ka matlab hai ki ek insaan ke baare mein kuch nahi "
                             "pata chalta.", "This number means little."), "Hindi-English"),
    (rules.predictions, untagged(6), "asks for 1 predictions"),
    (rules.predictions, replace(3, "**Predict**", "Guess"), "asks for 1 predictions"),
    (rules.mistake_run, replace(9, "A mistake, run", "Zero"), "runs no mistake"),
    (rules.slide_types, edited(5, metadata={}), "cell 5: has slide_type None"),
    (rules.alt_texts, swapped_alt(""), "cell 7: its figure needs an alt text"),
    (rules.alt_texts, swapped_alt("A figure with two bars."), "alt text of 40 characters"),
    (rules.alt_texts, swapped_alt(ALT.replace("0.51", "0.61")), "does not print 'Figure: '"),
    (rules.no_bare_figures, swapped_alt(""), "leaves its figure to pyplot"),
    (rules.prose_images, prose_added("![](a.png)"), "image without alt"),
    (rules.prose_images, prose_added('<img src="a.png" alt="">'), "<img> without alt"),
    (rules.exported_alts, swapped_alt(""), "image 1 of the exported HTML"),
    (rules.exported_alts, prose_added("![](https://example.org/a.png)"), "exported HTML"),
    (rules.exported_alts, edited(7, outputs=[new_output(
        "display_data", {"image/png": PIXEL, "text/html": "<b>0.51</b>"})]), "shows 0 images"),
    (rules.no_network, added("data = 'https://example.org/x.csv'"), "URL in its code"),
    (rules.no_network, added("# http://example.org"), "URL in its code"),
    (rules.no_network, added("from urllib.request import urlopen"), "uses urlopen"),
    (rules.no_network, added("import requests"), "imports requests"),
    (rules.no_network, added("import subprocess"), "imports subprocess"),
    (rules.no_network, added("from sklearn.datasets import fetch_openml"), "uses fetch_openml"),
    (rules.no_network, added("MNIST('.', download=True)"), "uses download"),
    (rules.no_network, added("import os\nos.system('curl x')"), "calls os.system"),
    (rules.links_lead_somewhere, prose_added("[x](03_missing.ipynb)"), "does not exist"),
    (rules.links_lead_somewhere, prose_added("[x](#Nowhere)"), "no such heading"),
    (rules.links_lead_somewhere, prose_added("[x](00_start_here.ipynb#No)"), "no such heading"),
    (rules.links_lead_somewhere, prose_added("![x](attachment:a.png)"), "attachment"),
    (rules.seeded_numpy, added("np.random.seed(1)"), "uses np.random.seed"),
    (rules.seeded_numpy, added("draw = np.random.normal"), "uses np.random.normal"),
    (rules.seeded_numpy, added("from numpy.random import laplace"), "numpy.random.laplace"),
    (rules.seeded_numpy, added("rng = np.random.default_rng()"), "default_rng without a seed"),
    (rules.seeded_numpy, added("rng = np.random.default_rng(None)"), "default_rng without a seed"),
    (rules.seeded_numpy, added("rng = np.random.default_rng(seed=None)"), "without a seed"),
    (rules.no_unseedable, added("import random"), "imports random"),
    (rules.no_unseedable, added("from secrets import randbelow"), "imports secrets"),
    (rules.no_unseedable, added("import os\nos.urandom(8)"), "uses os.urandom"),
    (rules.seeded_torch, added("torch.randn(3)"), "torch.randn before torch.manual_seed"),
    (rules.seeded_libraries, added("stats.norm.rvs(size=3)"), "rvs without random_state"),
    (rules.seeded_libraries, added("train_test_split(X, y)"), "without random_state"),
    (rules.no_clocks, added("import time\nprint(time.perf_counter())"), "time.perf_counter()"),
    (rules.no_clocks, added("hash('Asha')"), "calls hash()"),
    (rules.nbval_sources, added("plot(x);"), "ends in ';'"),
    (rules.nbval_sources, added("plot(x);  # quiet"), "ends in ';'"),
    (rules.nbval_sources, added("print(_)"), "reads _"),
    (rules.nbval_sources, added("Out[3]"), "reads Out"),
    (rules.nbval_sources, added("from IPython.display import clear_output"), "clear_output"),
    (rules.nbval_sources, added("widgets.Output()"), "uses Output"),
    (rules.nbval_sources, added("for x in tqdm(xs): pass"), "uses tqdm"),
    (rules.nbval_sources, added("display(x, display_id='a')"), "uses display_id"),
    (rules.marks_have_reasons, added("# NBVAL_IGNORE_OUTPUT\nf()"), "use the tag"),
    (rules.marks_have_reasons, added("f()", tags=["nbval-ignore-output"]), "says why"),
    (rules.marks_have_reasons, added("f()", tags=["nbval-skip"]), "says why"),
    (rules.marks_have_reasons, lambda notebook: [
        added("# Output varies: a clock", tags=["nbval-ignore-output"])(notebook)
        for _ in range(3)], "at most 2 may be"),
    (rules.nbval_outputs, added("f", printed("<function f at 0x7f12ab>")), "address in memory"),
    (rules.nbval_outputs, added("print(s)", printed("{'b', 'a'}\n")), "set of strings"),
    (rules.nbval_outputs, added("f()", printed("in /home/asha/x.py")), "/home/asha"),
    (rules.nbval_outputs, added("open('C:\\\\Users\\\\x')"), "path of one machine"),
    (rules.printed_digits, added("1/3", printed("0.3333333")), "prints 0.3333333"),
    (rules.printed_digits, added("1/3", new_output("execute_result", {"text/plain": "5.1234567"})),
     "prints 5.1234567"),
    (rules.printed_digits, added("t", new_output("execute_result", {"text/html": "<b>0.1234567"})),
     "prints 0.1234567"),
    (rules.nbval_outputs, added("f(x)", new_output(
        "error", ename="TypeError", evalue="<object at 0x7f12ab>", traceback=[])), "in memory"),
    (rules.no_brushing_aside, prose_added("This is Obviously so."), "says 'Obviously'"),
    (rules.british, prose_added("Two neighboring data sets."), "'neighboring'"),
    (rules.british, prose_added("A randomized answer."), "'randomized'"),
    (rules.british, prose_added("Each color, once."), "'color'"),
    (rules.numbers_in_prose, prose_added("The mean is 0.31."), "says 0.31"),
    (rules.numbers_in_prose, prose_added("In 81% of cases."), "says 81%"),
    (rules.numbers_in_prose, prose_added("Over 3,000 people."), "says 3,000"),
    (rules.numbers_in_prose, prose_added("Over $3{,}000$ people."), "says 3{,}000"),
    (rules.numbers_in_prose, prose_added("It is $0.273$, by far."), "says 0.273"),
    (rules.numbers_in_prose, replace(1, "read a number", "read 0.51"), "cell 1: says 0.51"),
    (rules.numbers_in_prose, lambda notebook: [added("print('a share of 0.64')",
                                                     printed("a share of 0.64"))(notebook),
                                               prose_added("It is 0.64.")(notebook)], "says 0.64"),
    (rules.numbers_in_figures, replace(7, "{above:.2f}", "0.51"), "types 0.51 into"),
]


@pytest.mark.parametrize("rule", rules.BOTH + rules.LECTURE, ids=lambda rule: rule.__name__)
def test_a_good_notebook_is_passed(course, rule):
    assert [list(rule(book)) for book in course] == [[], []]


@pytest.mark.parametrize("rule", rules.SET, ids=lambda rule: rule.__name__)
def test_a_good_set_is_passed(course, rule):
    assert list(rule(course)) == []


@pytest.mark.parametrize("rule, mutate, phrase",
MUTATIONS,
                         ids=[f"{rule.__name__}-{phrase}" for rule, _, phrase in MUTATIONS])
def test_a_mutated_notebook_is_reported(course, rule, mutate, phrase):
    notebook = copy.deepcopy(course[1].notebook)
    mutate(notebook)
    reported = list(rule(rules.Book(course[1].path, notebook)))
    assert any(phrase in sentence for sentence in reported), reported


@pytest.mark.parametrize("rule, book, mutate, phrase", [
    (rules.short_cells_over_all, 1, added(lines(16)), "all notebooks: the 90th"),
    (rules.start_links_all, 0, replace(1, "01_second.ipynb", "x"), "link to 01_second.ipynb"),
    (rules.linked_in_order, 1, replace(1, "00_start_here.ipynb", "x"), "link to its neighbour"),
    (rules.problem_sets_linked, 1, replace(1, "ps01-first", "x"), "problem set ps01-first"),
], ids=lambda value: getattr(value, "__name__", None))
def test_a_mutated_set_is_reported(course, rule, book, mutate, phrase):
    books = [rules.Book(one.path, copy.deepcopy(one.notebook)) for one in course]
    mutate(books[book].notebook)
    reported = list(rule(books))
    assert any(phrase in sentence for sentence in reported), reported


def test_each_rule_has_a_mutation():
    assert {rule for rule, _, _ in MUTATIONS} == {*rules.BOTH, *rules.LECTURE}


def test_the_start_notebook_may_not_be_missing(course):
    assert list(rules.start_links_all(course[1:])) == ["notebooks/00_start_here.ipynb is missing"]


@pytest.mark.parametrize("rule, mutate", [
    (rules.printed_digits, added("0.1 + 0.2", printed("0.30000000000000004"),
                                 tags=["exact-digits"])),
    (rules.printed_digits, added("x", printed("0.000123456"))),
    (rules.no_clocks, added("time.time()", tags=["nbval-ignore-output"])),
    (rules.marks_have_reasons, added("# Output varies: a clock", tags=["nbval-ignore-output"])),
    (rules.seeded_torch, added("torch.manual_seed(1)\ntorch.rand(2)")),
    (rules.seeded_torch, added("torch.rand(2, generator=g)")),
    (rules.seeded_libraries, added("stats.norm.rvs(size=3, random_state=rng)\nrng.shuffle(x)")),
    (rules.nbval_sources, added("# first;\ntext = '''a;\nb;'''")),
    (rules.nbval_sources, added("_ = plot(x)\nfor _ in range(3):\n    f()")),
    (rules.nbval_outputs, added("print(sorted({'b', 'a'}))", printed("['a', 'b']"))),
    (rules.british, prose_added("See `np.neighbor` and [it](https://a.org/color).")),
    (rules.numbers_in_prose, prose_added("Some 87% in 1990 (Sweeney 2000).")),
    (rules.numbers_in_prose, prose_added("It is [0.633](https://example.org/golle).")),
    (rules.numbers_in_prose, prose_added("In 1997, by Theorem 3.6, a 95% interval; "
                                         "check(\"2.3\"), arXiv:1607.00133.")),
    (rules.numbers_in_prose, prose_added("It is $0.272$ for $2{,}000$, or 27.2\\% and .80.")),
], ids=lambda value: getattr(value, "__name__", None))
def test_what_is_allowed_is_passed(course, rule, mutate):
    notebook = copy.deepcopy(course[1].notebook)
    mutate(notebook)
    assert list(rule(rules.Book(course[1].path, notebook))) == []


# Running -------------------------------------------------------------------------------------

HONEST = "import numpy as np\nprint(round(np.random.default_rng(7).random(), 3))"
PICTURE = ("from IPython.display import display\nimport matplotlib.pyplot as plt\n"
           "fig, ax = plt.subplots(figsize=(2, 1))\nax.plot([0, 1])\n"
           "display(fig, metadata={'image/png': {'alt': 'A rising line'}})\nplt.close(fig)")
NOISY = "import os\nfor i in range(3):\n    print(i, flush=True)\nos.environ['OMP_NUM_THREADS']"


def stored(path, *sources):
    """Write a notebook of code cells and return its path."""
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
    return path


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A notebook that was run, with the bytes of the first run."""
    folder = tmp_path_factory.mktemp("ran")
    path = stored(folder / "sample.ipynb", HONEST, PICTURE, NOISY,
                  "open('own-folder', 'w').close()", "raise ValueError('no')",
                  "import uuid\ndisplay({'text/plain': 'slider', 'application/vnd.jupyter."
                  "widget-view+json': {'model_id': uuid.uuid4().hex}}, raw=True)")
    notebook = nbformat.read(path, 4)
    notebook.cells[4].metadata["tags"] = ["raises-exception"]
    notebook.cells[0].metadata["execution"] = {"iopub.status.busy": "2026-01-01T00:00:00Z"}
    notebook.metadata["widgets"] = {}
    nbformat.write(notebook, path)
    ids = [cell.id for cell in notebook.cells]
    seconds = notebooks.run(path)
    return path, path.read_bytes(), seconds, ids


def test_run_twice_gives_the_same_bytes(ran, capsys):
    path, first, _, _ = ran
    (seconds,) = notebooks.run([path])
    assert path.read_bytes() == first
    assert f"sample.ipynb: ran in {seconds:.1f} s" in capsys.readouterr().out


def test_run_stores_what_a_reader_needs_and_no_more(ran):
    path, content, seconds, ids = ran
    assert content.endswith(b"}\n") and not content.endswith(b"\n\n")
    assert content.startswith(b'{\n "cells": [')
    assert [path.name for path in path.parent.iterdir() if path.name != "sample.ipynb"] == [
        "own-folder"]
    assert 0 < seconds[0] < 60
    book = rules.read(path)
    assert [cell.id for _, cell in book.code] == ids
    for rule in (rules.valid_format, rules.kernel, rules.unique_ids, rules.ran_in_order,
                 rules.no_errors, rules.no_stderr, rules.nbval_outputs):
        assert list(rule(book)) == []
    assert book.notebook.metadata.kernelspec == notebooks.KERNELSPEC
    assert all(set(cell.metadata) <= {"tags"} for _, cell in book.code)
    streams = [output.text for output in book.notebook.cells[2].outputs
               if output.output_type == "stream"]
    assert streams == ["0\n1\n2\n"]
    assert list(rules.image_outputs(book.notebook.cells[1])) == [("image/png", "A rising line")]
    assert book.notebook.cells[4].outputs[0].traceback == ["ValueError: no"]


def test_a_failing_cell_is_named_and_the_file_left_alone(tmp_path):
    path = stored(tmp_path / "broken.ipynb", "1", "print('x')\n1 / 0", "2")
    before = path.read_bytes()
    with pytest.raises(notebooks.NotebookError,
                       match=r"^broken cell 2 failed: ZeroDivisionError: division by zero$"):
        notebooks.run(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_notebook(tmp_path, monkeypatch):
    path = stored(tmp_path / "old.ipynb", "1")
    before = path.read_bytes()

    def no_room(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", no_room)
    with pytest.raises(OSError, match="No space"):
        notebooks._write(new_notebook(), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("act", [notebooks.run, notebooks.portable])
@pytest.mark.parametrize("paths, error, sentence", [
    ([], ValueError, "at least one notebook"),
    ("pyproject.toml", ValueError, r"must be notebooks \(.ipynb\), got pyproject.toml"),
    (["missing.ipynb"], FileNotFoundError, "no notebook missing.ipynb"),
])
def test_paths_that_are_no_notebooks_are_refused(act, paths, error, sentence):
    with pytest.raises(error, match=sentence):
        act(paths)


def test_portable_reports_what_moves_and_nothing_else(tmp_path, capsys):
    threads = "import os\nprint('threads', os.environ['OMP_NUM_THREADS'])"
    pixel = "from IPython.display import display\ndisplay({'image/png': '1000'}, raw=True)"
    path = stored(tmp_path / "sample.ipynb", HONEST, pixel, threads, threads,
                  f"{threads}\nassert os.environ['OMP_NUM_THREADS'] == '1'", "1",
                  threads.replace("print", "raise ValueError"), "'<b>'",
                  pixel.replace("'1000'", "os.environ['OMP_NUM_THREADS'] + '000'"))
    notebook = nbformat.read(path, 4)
    for cell, tag in ((3, "nbval-ignore-output"), (4, "nbval-skip"), (6, "raises-exception")):
        notebook.cells[cell].metadata["tags"] = [tag]
    nbformat.write(notebook, path)
    notebooks.run(path)
    notebook = nbformat.read(path, 4)
    assert notebook.cells[4].outputs[0].text == "threads 1\n"
    notebook.cells[5].outputs = []
    nbformat.write(notebook, path)
    moved = notebooks.portable([path], {"two threads": notebooks.TWO_THREADS})
    starts = [
        "sample cell 3, two threads: stdout: the file has 'threads 1\\n', the run gave 'threads 2",
        "sample cell 6, two threads: the file has the outputs [], the run gave ['text/plain']",
        "sample cell 7, two threads: error: the file has …",
        "sample cell 9, two threads: image/png: the file has '1000",
    ]
    assert len(moved) == len(starts)
    output = capsys.readouterr().out
    for sentence, start in zip(moved, starts, strict=True):
        assert sentence.startswith(start)
        assert sentence in output


def test_portable_sets_the_old_processor_and_tells_of_a_crash(tmp_path):
    path = stored(tmp_path / "sample.ipynb", "import os",
                  f"assert ({notebooks.OLD_X86} | {notebooks.FIXED_ENVIRONMENT})"
                  ".items() <= dict(os.environ).items()", "os._exit(1)")
    (crash,) = notebooks.portable(path, {"old processor": notebooks.OLD_X86})
    assert crash.startswith("sample cell 3 failed: ") and "under old processor" in crash


def test_portable_covers_both_settings_on_x86(monkeypatch):
    monkeypatch.setattr("platform.machine", lambda: "AMD64")
    assert notebooks._settings() == {"old processor": notebooks.OLD_X86,
                                     "two threads": notebooks.TWO_THREADS}


def test_portable_leaves_x86_settings_out_elsewhere(monkeypatch, capsys):
    monkeypatch.setattr("platform.machine", lambda: "arm64")
    assert notebooks._settings() == {"two threads": notebooks.TWO_THREADS}
    assert "arm64, not x86" in capsys.readouterr().out


# The network guard ---------------------------------------------------------------------------

CUT_OFF = "The network is cut off while the course is tested; this code asked for "


def guarded(code, folder, **extra):
    """Run Python code in a process with the guard, in front of `folder`; return the process."""
    path = os.pathsep.join([str(ROOT / "tests" / "offline"), str(folder)])
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": path, **extra}, timeout=300)


def test_the_guard_refuses_and_records_every_way_out(tmp_path):
    record = tmp_path / "record"
    done = guarded("""
import asyncio, socket
udp = socket.socket(type=socket.SOCK_DGRAM)
ways = [
    lambda: socket.create_connection(("192.0.2.1", 80)),
    lambda: socket.socket().connect(("192.0.2.1", 80)),
    lambda: socket.socket().connect_ex(("192.0.2.1", 80)),
    lambda: socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80)),
    lambda: udp.sendto(b"x", ("192.0.2.1", 53)),
    lambda: udp.sendmsg([b"x"], [], 0, ("192.0.2.1", 53)),
    lambda: socket.getaddrinfo("example.org", 80),
    lambda: socket.getaddrinfo(b"example.org", 80),
    lambda: socket.gethostbyname("example.org"),
    lambda: socket.gethostbyname_ex("example.org"),
    lambda: socket.gethostbyaddr("192.0.2.1"),
    lambda: asyncio.run(asyncio.open_connection("example.org", 80)),
]
for way in ways:
    try:
        way()
    except OSError as error:
        print(error)
print(len(ways))
""", tmp_path, COURSE_OFFLINE_RECORD=str(record))
    *sentences, count = done.stdout.splitlines()
    assert done.stderr == ""
    assert len(sentences) == int(count) == 12
    assert all(sentence.startswith(CUT_OFF) for sentence in sentences), sentences
    assert len(record.read_text().splitlines()) == 12


def test_the_guard_lets_this_machine_talk_to_itself(tmp_path):
    record = tmp_path / "record"
    done = guarded("""
import http.server, os, socket, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
server.RequestHandlerClass.log_message = lambda *_: None
threading.Thread(target=server.handle_request, daemon=True).start()
urllib.request.urlopen(f"http://localhost:{server.server_port}").read()
socket.getaddrinfo(None, 80)
socket.getaddrinfo("::1", 80)
socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9))
one, two = socket.socketpair()
one.sendmsg([b"x"])
if hasattr(socket, "AF_UNIX"):
    socket.socket(socket.AF_UNIX).connect_ex("./nobody-listens")
print("fine")
""", tmp_path, COURSE_OFFLINE_RECORD=str(record))
    assert (done.stdout, done.stderr) == ("fine\n", "")
    assert not record.exists()


def test_the_guard_runs_the_sitecustomize_it_hides(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("print('the other one')")
    assert guarded("pass", tmp_path).stdout == "the other one\n"


ASKS = ("import urllib.request\n"
        "try:\n    urllib.request.urlopen('http://example.org')\n"
        "except OSError as error:\n    print(error.reason)")


@pytest.fixture(scope="module")
def copied_course(tmp_path_factory):
    """This repository's conftest.py, guard and settings, with two notebooks of its own."""
    root = tmp_path_factory.mktemp("copied")
    (root / "coursekit").mkdir()
    for file in ("conftest.py", "pyproject.toml", "coursekit/__init__.py",
                 "coursekit/notebooks.py"):
        shutil.copy(ROOT / file, root / file)
    shutil.copytree(ROOT / "tests" / "offline", root / "tests" / "offline")
    # jsonschema would compile a grammar of web addresses with it: seconds of no use here.
    (root / "quick").mkdir()
    (root / "quick" / "rfc3987_syntax.py").write_text("raise ImportError")
    return root


def nbval(root, *arguments):
    """Run pytest with nbval in `root`, in an environment that owes nothing to this process."""
    ours = {"COURSE_OFFLINE_RECORD", *notebooks.FIXED_ENVIRONMENT}
    environment = {key: value for key, value in os.environ.items()
                   if key not in ours and not key.startswith("PYTEST_")}
    environment["PYTHONPATH"] = str(root / "quick")
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", *arguments]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True,
                          timeout=300)


def test_nbval_kernels_are_cut_off_have_one_thread_and_fail_the_run(copied_course):
    (copied_course / "notebooks").mkdir()
    path = stored(copied_course / "notebooks" / "asks.ipynb", ASKS,
                  "import os\n[os.environ['OMP_NUM_THREADS'], os.environ['PYTHONHASHSEED']]",
                  "import coursekit, pathlib\n"
                  "pathlib.Path(coursekit.__file__).parents[1] == pathlib.Path.cwd().parent")
    notebook = nbformat.read(path, 4)
    told = f"{CUT_OFF}'example.org'."
    outputs = [printed(f"{told}\n"),
               new_output("execute_result", {"text/plain": "['1', '0']"}, execution_count=2),
               new_output("execute_result", {"text/plain": "True"}, execution_count=3)]
    for count, (cell, output) in enumerate(zip(notebook.cells, outputs, strict=True), 1):
        cell.execution_count, cell.outputs = count, [output]
    nbformat.write(notebook, path)
    done = nbval(copied_course, "notebooks", "-n1", "--dist", "loadscope")
    assert "3 passed" in done.stdout, done.stdout
    # The notebook swallowed the refusal, so each cell passes; the run must not.
    assert "The network was asked for" in done.stdout
    assert "socket.getaddrinfo example.org" in done.stdout
    assert done.returncode == 1


def test_pytest_does_not_import_the_guard(pytestconfig):
    ignored = pytestconfig.hook.pytest_ignore_collect
    assert ignored(collection_path=ROOT / "tests" / "offline", config=pytestconfig)
    assert not ignored(collection_path=Path(__file__), config=pytestconfig)


def test_a_notebook_run_under_the_guard_fails_with_the_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests" / "offline"))
    monkeypatch.setenv("COURSE_OFFLINE_RECORD", str(tmp_path / "record"))
    path = stored(tmp_path / "asks.ipynb", "import socket",
                  "socket.create_connection(('192.0.2.1', 80))")
    with pytest.raises(notebooks.NotebookError, match=f"asks cell 2 failed: OSError: {CUT_OFF}"):
        notebooks.run(path)


def test_tests_that_install_something_can_reach_the_network(networked_environment):
    look_up = "import sys; sys.audit('socket.getaddrinfo', 'example.org', 80, 0, 0, 0)"
    for environment, code in ((dict(os.environ), 1), (networked_environment, 0)):
        environment.pop("COURSE_OFFLINE_RECORD", None)
        done = subprocess.run([sys.executable, "-c", look_up], env=environment,
                              capture_output=True, text=True, timeout=300)
        assert done.returncode == code


def test_settle_drops_what_nobody_changed_and_nothing_else():
    notebook = nbformat.from_dict({
        "metadata": {"language_info": {"name": "python", "version": "3.12.1"}, "mine": 1},
        "cells": [
            {"id": "a", "cell_type": "markdown", "source": "mine", "metadata": {}},
            {"id": "b", "cell_type": "code", "source": "1", "metadata": {}, "execution_count": 7,
             "outputs": [
                 {"output_type": "stream", "name": "stdout", "text": "1"},
                 {"output_type": "display_data", "metadata": {}, "data": {
                     "application/vnd.jupyter.widget-view+json": {"model_id": "f00"}}}]}]})
    before = json.loads(json.dumps(notebook))
    notebooks.settle(notebook)
    before["metadata"]["language_info"] = {"name": "python"}
    view = before["cells"][1]["outputs"][1]["data"]["application/vnd.jupyter.widget-view+json"]
    view["model_id"] = "b-1"
    assert json.loads(json.dumps(notebook)) == before
