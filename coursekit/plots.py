"""The course's figures: one look, and a description that travels with each.

    fig, ax = figure(title="The noise shrinks as epsilon grows.", x="epsilon", y="noise scale")
    ax.plot(epsilons, scales)
    show(fig, "A falling curve: the noise scale is 10 at epsilon 0.1 and 0.1 at epsilon 10.")

The description (alt text) is for those who cannot see the figure. `show` stores it in the
notebook, and the template in `TEMPLATES` writes it into exported pages:

    jupyter nbconvert --to html --template course
        --TemplateExporter.extra_template_basedirs=coursekit/templates notebook.ipynb
"""

import base64
import io
import textwrap
from collections import namedtuple
from pathlib import Path

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure

from coursekit import _arguments

TEMPLATES = Path(__file__).parent / "templates"
FEWEST_LETTERS = 40  # of a description
WIDTH = 100  # pixels on the page for each inch of a figure; the PNG holds twice as many
LETTERS = 8.4  # of a title for each inch of a figure

# Petroff (2021), "Accessible color sequences for data visualization": ten colours told apart
# with any common colour vision. Matplotlib calls them petroff10.
Palette = namedtuple(
    "Palette", "blue orange red grey purple brown vermilion sand slate cyan", module=__name__
)
PALETTE = Palette(
    "#3f90da", "#ffa90e", "#bd1f01", "#94a4a2", "#832db6",
    "#a96b59", "#e76300", "#b9ac70", "#717581", "#92dadd",
)
MEMBER, NON_MEMBER = PALETTE.red, PALETTE.blue

# Colours alone do not survive a grey print or every eye, so lines differ in their dashes too.
DASHES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1))]
LINES = cycler(color=PALETTE) + cycler(linestyle=DASHES * 2) + cycler(linewidth=[2] * 10)
MARKERS = cycler(marker=["o", "s", "^", "D", "v", "P", "X", "<", ">", "*"])

STYLE = {
    "font.family": ["DejaVu Sans"],
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.labelsize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": "#d9d9d9",
    "grid.linestyle": "-",
    "grid.linewidth": 0.6,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
}


def figure(*, title, x, y, size=(6.4, 3.6), markers=False):
    """Return a new, empty figure in the style of the course.

    It is not pyplot's: nothing is shown by itself, and no setting outlives the call.

    Args:
        title: the finding, as a sentence. Long titles are broken into lines.
        x, y: what the axes measure, with the unit.
        size: width and height in inches; the page shows an inch as 100 pixels.
        markers: whether lines also mark each of their points, for lines of few points.

    Returns:
        (fig, ax), a matplotlib Figure and its Axes.

    Raises:
        TypeError, ValueError: a title or label that is not a text or is empty; a size that is
            not two numbers above 0.

    >>> fig, ax = figure(title="Noise falls with epsilon.", x="epsilon", y="noise scale")
    >>> ax.get_title()
    'Noise falls with epsilon.'
    """
    title, x, y = _text(title, "title"), _text(x, "x"), _text(y, "y")
    width, height = _size(size)
    cycle = LINES + MARKERS if markers else LINES
    with mpl.rc_context({**STYLE, "axes.prop_cycle": cycle}):
        fig = Figure(figsize=(width, height), dpi=WIDTH, layout="constrained")
        ax = fig.add_subplot()
        ax.set_title(textwrap.fill(title, width=int(LETTERS * width)))
        ax.set_xlabel(x)
        ax.set_ylabel(y)
    return fig, ax


def show(fig, alt):
    """Show a figure in the notebook, with its description.

    The PNG carries the description as alt text, and the line "Figure: ..." prints it, so that
    it is read in every viewer and compared whenever the notebook is tested.

    Args:
        fig: a Figure with a title and labelled axes.
        alt: what the figure shows, in a sentence or two: kind of figure, what is compared, the
            values that matter. At least 40 characters; line breaks and runs of spaces become
            single spaces.

    Raises:
        TypeError: fig is not a Figure or alt is not a text.
        ValueError: a figure without a title or labels; an alt that is too short or only repeats
            the title.

    >>> fig, ax = figure(title="Noise falls with epsilon.", x="epsilon", y="noise scale")
    >>> show(fig, "Noise.")
    Traceback (most recent call last):
    ValueError: alt must describe the figure in at least 40 characters, got 6: 'Noise.'.
    """
    alt = _description(fig, alt)
    # Imported here, since only a notebook needs it.
    from IPython.display import display

    width, height = (round(WIDTH * inches) for inches in fig.get_size_inches())
    data = {
        "image/png": base64.b64encode(png(fig)).decode("ascii"),
        "text/plain": f"<figure: {textwrap.shorten(alt, 60, placeholder=' ...')}>",
    }
    metadata = {"image/png": {"alt": alt, "width": width, "height": height}}
    display(data, raw=True, metadata=metadata)
    print(f"Figure: {alt}")


def png(fig):
    """Return a figure as the bytes of a PNG: the same figure, the same bytes.

    >>> fig, ax = figure(title="Noise falls with epsilon.", x="epsilon", y="noise scale")
    >>> png(fig)[1:4]
    b'PNG'
    """
    buffer = io.BytesIO()
    # Matplotlib would write its own version into the file.
    fig.savefig(buffer, format="png", dpi=2 * WIDTH, metadata={"Software": None})
    return buffer.getvalue()


def _text(value, name):
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a text, got {value!r}.")
    text = " ".join(value.split())
    if not text:
        raise ValueError(f"{name} must say something, got {value!r}.")
    return text


def _size(size):
    width_and_height = _arguments.finite_array(size, "size", ndim=1)
    if len(width_and_height) != 2 or min(width_and_height) <= 0:
        raise ValueError(f"size must be a width and a height above 0 in inches, got {size!r}.")
    return width_and_height


def _description(fig, alt):
    if not isinstance(fig, Figure):
        raise TypeError(f"fig must be a matplotlib Figure, got {fig!r}.")
    alt = _text(alt, "alt")
    if len(alt) < FEWEST_LETTERS:
        raise ValueError(
            f"alt must describe the figure in at least {FEWEST_LETTERS} characters, "
            f"got {len(alt)}: {alt!r}."
        )
    titles = [fig.get_suptitle()]
    titles += [ax.get_title(loc) for ax in fig.axes for loc in ("left", "center", "right")]
    xlabels = [fig.get_supxlabel()] + [ax.get_xlabel() for ax in fig.axes]
    ylabels = [fig.get_supylabel()] + [ax.get_ylabel() for ax in fig.axes]
    for name, texts in (("title", titles), ("x label", xlabels), ("y label", ylabels)):
        if not any(texts):
            raise ValueError(f"The figure must have a title and labelled axes, it has no {name}.")
    if any(_letters(alt) == _letters(title) for title in titles):
        raise ValueError(f"alt must say more than the title, got {alt!r}.")
    return alt


def _letters(text):
    return "".join(letter for letter in text.casefold() if letter.isalnum())
