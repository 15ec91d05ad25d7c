"""coursekit.plots: the axes' data, the stored outputs, the exported HTML. Pixels prove nothing."""

import base64
import io
import json
import subprocess
import sys
from html.parser import HTMLParser
from itertools import pairwise

import matplotlib as mpl
import matplotlib.image
import matplotlib.style
import nbformat
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from coursekit import plots

TITLE = "The noise shrinks as epsilon grows."
ALT = 'A falling curve: <b>"noise"</b> & scale go from 10 at epsilon 0.1 to 0.1 at epsilon 10.'
PARENT = str(plots.TEMPLATES.parent.parent)


def small_figure(**changes):
    return plots.figure(**{"title": TITLE, "x": "epsilon", "y": "noise scale", **changes})


# figure


def test_a_figure_says_what_it_was_told():
    fig, ax = small_figure(size=(5, 3))
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == (TITLE, "epsilon", "noise scale")
    assert fig.get_size_inches().tolist() == [5, 3]
    assert fig.axes == [ax]
    assert small_figure(title="  Two\n  words. ")[1].get_title() == "Two words."


@pytest.mark.parametrize("width", [4.0, 6.4, 9.0])
def test_a_long_title_stays_inside_the_figure(width):
    title = "No attack on a mechanism with epsilon 1 gains more, however much its maker may know."
    fig, ax = small_figure(title=title, size=(width, 3.6))
    assert ax.get_title().replace("\n", " ") == title
    fig.draw_without_rendering()
    box = ax.title.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= fig.bbox.width and box.y1 <= fig.bbox.height


def test_a_figure_changes_nothing_outside_itself():
    # Reading the setting "backend" would itself load pyplot.
    code = (
        "import sys; from matplotlib import rcParams\n"
        "before = {name: rcParams[name] for name in rcParams if name != 'backend'}\n"
        "from coursekit import plots\n"
        "plots.png(plots.figure(title='T.', x='x', y='y')[0])\n"
        "assert all(rcParams[name] == before[name] for name in before)\n"
        "unwanted = {'matplotlib.pyplot', 'IPython', 'torch', 'sklearn', 'scipy'}\n"
        "assert not unwanted & {*sys.modules}, unwanted & {*sys.modules}\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PARENT)


def test_text_is_readable_from_the_last_row():
    _, ax = small_figure()
    sizes = [ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
    # Points: 1/72 inch, and an inch is 100 pixels on the page.
    assert min(text.get_fontsize() for text in sizes) >= 11
    assert not ax.spines["top"].get_visible() and not ax.spines["right"].get_visible()
    assert ax.xaxis.get_gridlines()[0].get_visible()


def luminance(colour):
    """Relative luminance, as in WCAG 2: what remains of a colour in a grey print."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return np.dot(linear, [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    dark, light = sorted([luminance(a), luminance(b)])
    return (light + 0.05) / (dark + 0.05)


def test_the_colours_are_petroffs_and_named():
    cycle = mpl.style.library["petroff10"]["axes.prop_cycle"].by_key()["color"]
    assert [mpl.colors.to_hex(colour) for colour in cycle] == list(plots.PALETTE)
    assert plots.PALETTE.blue == plots.PALETTE[0]
    assert len(set(plots.PALETTE)) == 10


def test_the_first_three_lines_differ_in_grey_and_all_differ_without_colour():
    first = plots.PALETTE[:3]
    grey = sorted(luminance(colour) for colour in first)
    assert all((b + 0.05) / (a + 0.05) > 1.5 for a, b in pairwise(grey))
    assert contrast(plots.MEMBER, plots.NON_MEMBER) > 1.5
    assert min(contrast(colour, "white") for colour in (plots.MEMBER, plots.NON_MEMBER)) > 3

    _, ax = small_figure()
    lines = [ax.plot([0, 1])[0] for _ in range(5)]
    assert [line.get_color() for line in lines] == list(plots.PALETTE[:5])
    assert [line.get_linestyle() for line in lines[:4]] == ["-", "--", "-.", ":"]
    assert len({str(dash) for dash in plots.LINES.by_key()["linestyle"][:5]}) == 5
    assert {line.get_marker() for line in lines} == {"None"}

    _, ax = small_figure(markers=True)
    lines = [ax.plot([0, 1])[0] for _ in range(10)]
    assert len({line.get_marker() for line in lines}) == 10


def test_a_markers_choice_draws_every_point():
    _, ax = small_figure(markers=True)
    (line,) = ax.plot(range(100), range(100), "o")
    assert line.get_markevery() is None


@pytest.mark.parametrize("changes, error, words", [
    ({"title": " "}, ValueError, "title must say something, got ' '"),
    ({"x": ""}, ValueError, "x must say something"),
    ({"y": ""}, ValueError, "y must say something"),
    ({"title": None}, TypeError, "title must be a text, got None"),
    ({"x": 3}, TypeError, "x must be a text, got 3"),
    ({"size": (6, 0)}, ValueError, "size must be a width and a height above 0"),
    ({"size": (6, 4, 2)}, ValueError, "size must be a width and a height"),
    ({"size": 6}, ValueError, "size"),
    ({"size": "big"}, TypeError, "size"),
    ({"size": (6, float("nan"))}, ValueError, "got nan"),
])  # fmt: skip
def test_a_figure_without_words_or_size_is_refused(changes, error, words):
    with pytest.raises(error, match=words):
        small_figure(**changes)


# show


@pytest.fixture
def shown(monkeypatch):
    calls = []
    monkeypatch.setattr("IPython.display.display", lambda *data, **options: calls.append(
        (*data, options)))
    return calls


def test_show_stores_the_description_and_prints_it(shown, capsys):
    fig, ax = small_figure(size=(5, 3))
    ax.plot([1, 2], [3, 4])
    plots.show(fig, ALT)
    [(data, options)] = shown
    assert options == {
        "raw": True,
        "metadata": {"image/png": {"alt": ALT, "width": 500, "height": 300}},
    }
    assert data["text/plain"].startswith("<figure: A falling curve")
    assert len(data["text/plain"]) < 75
    assert base64.b64decode(data["image/png"]) == plots.png(fig)
    assert capsys.readouterr().out == f"Figure: {ALT}\n"
    json.dumps(data)


def test_a_description_may_be_written_over_several_lines(shown, capsys):
    plots.show(small_figure()[0], f"  {ALT[:30]}\n      {ALT[30:]}\n")
    expected = " ".join(f"{ALT[:30]} {ALT[30:]}".split())
    assert shown[0][1]["metadata"]["image/png"]["alt"] == expected
    assert capsys.readouterr().out == f"Figure: {expected}\n"


def test_the_same_figure_gives_the_same_bytes_with_no_version_in_them():
    def draw():
        fig, ax = small_figure()
        ax.plot([1, 2], [3, 4], label="a")
        ax.legend()
        return plots.png(fig)

    first = draw()
    assert first == draw()
    assert b"Software" not in first and mpl.__version__.encode() not in first
    pixels = matplotlib.image.imread(io.BytesIO(first))
    assert pixels.shape[:2] == (720, 1280)


def test_titles_and_labels_of_a_whole_figure_count(shown):
    fig = Figure()
    fig.suptitle("Three panels tell one story.")
    fig.supxlabel("epsilon")
    fig.supylabel("error")
    fig.subplots(1, 3)
    plots.show(fig, ALT)
    assert len(shown) == 1


def without(part):
    fig, ax = small_figure()
    getattr(ax, f"set_{part}")("")
    return fig


@pytest.mark.parametrize("fig, alt, error, words", [
    (lambda: small_figure()[0], "", ValueError, "alt must say something"),
    (lambda: small_figure()[0], "A falling curve.", ValueError, "at least 40 characters, got 16"),
    (lambda: small_figure()[0], "x" * 39 + " " * 9, ValueError, "got 39"),
    (lambda: small_figure()[0], None, TypeError, "alt must be a text, got None"),
    (lambda: small_figure(title=ALT)[0], f"{ALT.upper()}!", ValueError, "more than the title"),
    (lambda: without("title"), ALT, ValueError, "it has no title"),
    (lambda: without("xlabel"), ALT, ValueError, "it has no x label"),
    (lambda: without("ylabel"), ALT, ValueError, "it has no y label"),
    (Figure, ALT, ValueError, "it has no title"),
    (lambda: small_figure()[1], ALT, TypeError, "fig must be a matplotlib Figure"),
])  # fmt: skip
def test_a_figure_that_is_not_described_is_not_shown(fig, alt, error, words, shown, capsys):
    with pytest.raises(error, match=words):
        plots.show(fig(), alt)
    assert shown == []
    assert capsys.readouterr().out == ""


# The notebook and the exported page


CELL = f"""
from coursekit.plots import figure, show
fig, ax = figure(title={TITLE!r}, x="epsilon", y="noise scale")
ax.plot([0.1, 1, 10], [10, 1, 0.1], label="Laplace")
show(fig, {ALT!r})
"""


@pytest.fixture(scope="module")
def notebook():
    """A notebook of one figure, run in a kernel of its own."""
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)])
    NotebookClient(notebook, timeout=120, kernel_name="python3",
                   resources={"metadata": {"path": PARENT}}).execute()
    return notebook


def test_a_kernel_stores_the_figure_its_description_and_nothing_else(notebook):
    figure, printed = notebook.cells[0].outputs
    assert figure.output_type == "display_data"
    assert set(figure.data) == {"image/png", "text/plain"}
    assert figure.metadata["image/png"] == {"alt": ALT, "width": 640, "height": 360}
    assert base64.b64decode(figure.data["image/png"]).startswith(b"\x89PNG")
    assert printed.text == f"Figure: {ALT}\n"


class Images(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.found.append(dict(attributes))


def exported_images(notebook, folder):
    """The images of the page that the documented command makes."""
    path = folder / "notebook.ipynb"
    nbformat.write(notebook, path)
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--to", "html", "--template", "course",
         f"--TemplateExporter.extra_template_basedirs={plots.TEMPLATES}", str(path)],
        check=True, capture_output=True,
    )  # fmt: skip
    parser = Images()
    parser.feed((folder / "notebook.html").read_text(encoding="utf-8"))
    return parser.found


def described(images):
    """Whether there are images and each has an alt text of its own, not nbconvert's excuse."""
    excuse = "No description has been provided"
    alts = [image.get("alt", "") for image in images]
    return bool(alts) and all(alt.strip() and not alt.startswith(excuse) for alt in alts)


def test_an_exported_page_has_the_description_of_each_figure(notebook, tmp_path):
    def copy(identity, **alt):
        cell = nbformat.from_dict(json.loads(json.dumps(notebook.cells[0])))
        cell.id, cell.outputs[0].metadata["image/png"] = identity, {"width": 200, **alt}
        return cell

    other = "Another description, of forty letters or more."
    cells = [notebook.cells[0], copy("another", alt=other), copy("without")]
    images = exported_images(nbformat.v4.new_notebook(cells=cells), tmp_path)
    assert [image["alt"] for image in images[:2]] == [ALT, other]
    assert [image["width"] for image in images] == ["640", "200", "200"]
    assert images[0]["height"] == "360"
    assert base64.b64decode(images[0]["src"].removeprefix("data:image/png;base64,")) == (
        base64.b64decode(notebook.cells[0].outputs[0].data["image/png"])
    )
    assert described(images[:2])
    # Nothing is made up for a figure that has none.
    assert not described(images[2:])
