"""The rules every notebook keeps. Each takes a `Book` and yields a sentence for each violation.

`BOTH` holds the rules for lecture notebooks and solutions, `LECTURE` those for lectures alone,
`SET` those over all lectures together. Cells are numbered from 1, prose and code alike.
"""

import ast
import functools
import io
import math
import re
import statistics
import tokenize
from dataclasses import dataclass
from functools import cached_property
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import nbformat
import prose_numbers

IGNORED_OUTPUT = {"nbval-ignore-output", "nbval-skip"}
ERROR_TAGS = {"raises-exception", "nbval-raises-exception"}
IMAGES = ("image/png", "image/jpeg", "image/svg+xml")


@dataclass(frozen=True)
class Book:
    """A notebook with the path it was read from."""

    path: Path
    notebook: nbformat.NotebookNode

    @property
    def name(self):
        return self.path.stem

    @cached_property
    def cells(self):
        return list(enumerate(self.notebook.cells, start=1))

    @cached_property
    def code(self):
        return [(number, cell) for number, cell in self.cells if cell.cell_type == "code"]

    @cached_property
    def prose(self):
        return [(number, cell) for number, cell in self.cells if cell.cell_type == "markdown"]

    @cached_property
    def headings(self):
        """All headings as (cell number, level, text)."""
        return [
            (number, len(marks), text.strip())
            for number, cell in self.prose
            for marks, text in re.findall(r"^(#{1,6}) +(.+)$", without_fences(cell.source), re.M)
        ]

    def at(self, number, sentence):
        return f"{self.name} cell {number}: {sentence}"


def read(path):
    return Book(Path(path), nbformat.read(path, as_version=nbformat.NO_CONVERT))


def tags(cell):
    return set(cell.metadata.get("tags", []))


def without_fences(source):
    return re.sub(r"^(```|~~~).*?^\1", "", source, flags=re.M | re.S)


def without_code(source):
    return re.sub(r"(`+).+?\1", "", without_fences(source))


def text_outputs(cell):
    """Yield what a cell shows as text: streams, plain text, HTML without its tags, errors."""
    for output in cell.outputs:
        if output.output_type == "stream":
            yield output.text
        elif output.output_type == "error":
            yield f"{output.ename}: {output.evalue}"
        else:
            yield output.data.get("text/plain", "")
            yield re.sub(r"<[^>]*>", " ", output.data.get("text/html", ""))


def image_outputs(cell):
    """Yield (kind, alt text) for each image a cell shows."""
    for output in cell.outputs:
        for kind in IMAGES:
            if kind in output.get("data", {}):
                yield kind, output.metadata.get(kind, {}).get("alt", "")


@functools.cache
def parsed(source):
    """Return the syntax tree of a cell; an empty one if it is not plain Python."""
    try:
        return ast.parse(source)
    except SyntaxError:
        return ast.parse("")


def dotted(node):
    """Return `np.random.seed` for the tree of that name, "" for anything that is no name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


def calls(cell):
    """Yield (dotted name, call) for each call in a cell."""
    for node in ast.walk(parsed(cell.source)):
        if isinstance(node, ast.Call):
            yield dotted(node.func), node


def imports(cell):
    """Yield the full dotted name of everything a cell imports."""
    for node in ast.walk(parsed(cell.source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def identifiers(cell):
    """Return every name, attribute, imported name and keyword that a cell uses."""
    found = {part for name in imports(cell) for part in name.split(".")}
    for node in ast.walk(parsed(cell.source)):
        if isinstance(node, ast.Name):
            found.add(node.id)
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        if isinstance(node, ast.keyword) and node.arg:
            found.add(node.arg)
    return found


# The file ------------------------------------------------------------------------------------


def valid_format(book):
    try:
        nbformat.validate(book.notebook)
    except nbformat.ValidationError as error:
        yield f"{book.name}: not a valid notebook: {error.message}"


def kernel(book):
    metadata = book.notebook.metadata
    if metadata.get("kernelspec", {}).get("name") != "python3":
        yield f"{book.name}: its kernel must be python3, got {metadata.get('kernelspec')}"
    if "version" in metadata.get("language_info", {}):
        yield f"{book.name}: states the Python version it ran under (language_info.version)"
    if "widgets" in metadata:
        yield f"{book.name}: stores the state of widgets"


def unique_ids(book):
    seen = set()
    for number, cell in book.cells:
        if cell.get("id") is None or cell.id in seen:
            yield book.at(number, f"needs an id of its own, has {cell.get('id')!r}")
        seen.add(cell.get("id"))


def no_empty_cells(book):
    for number, cell in book.cells:
        if not cell.source.strip():
            yield book.at(number, "is empty")


def ran_in_order(book):
    for count, (number, cell) in enumerate(book.code, start=1):
        if cell.execution_count != count:
            yield book.at(number, f"has execution count {cell.execution_count}, must be {count}:"
                                  " run the whole notebook from top to bottom")


def no_errors(book):
    for number, cell in book.code:
        wanted = bool(ERROR_TAGS & tags(cell))
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if errors and not wanted:
            yield book.at(number, f"ended in {errors[0].ename} and is not tagged raises-exception")
        if wanted and not errors:
            yield book.at(number, "is tagged raises-exception but shows no error")


def no_stderr(book):
    for number, cell in book.code:
        for output in cell.outputs:
            if output.output_type == "stream" and output.name == "stderr":
                yield book.at(number, f"wrote to stderr: {output.text.strip()[:80]!r}")


# Code cells ----------------------------------------------------------------------------------


def plain_python(book):
    for number, cell in book.code:
        try:
            ast.parse(cell.source)
        except SyntaxError as error:
            yield book.at(number, f"is not plain Python (line {error.lineno}: {error.msg}):"
                                  " no %magic, !shell or name?")


def line_counts(book):
    return [len([line for line in cell.source.splitlines() if line.strip()])
            for _, cell in book.code]


def longest_cell(book):
    for (number, _), lines in zip(book.code, line_counts(book), strict=True):
        if lines > 30:
            yield book.at(number, f"has {lines} lines of code, at most 30 are allowed")


def _short(lines, name):
    median = statistics.median(lines or [0])
    ninetieth = sorted(lines or [0])[math.ceil(0.9 * len(lines)) - 1]
    if median > 5:
        yield f"{name}: the median code cell has {median} lines, at most 5 are allowed"
    if ninetieth > 15:
        yield f"{name}: the 90th percentile code cell has {ninetieth} lines, at most 15 are allowed"


def short_cells(book):
    yield from _short(line_counts(book), book.name)


def short_cells_over_all(books):
    yield from _short([lines for book in books for lines in line_counts(book)], "all notebooks")


def prose_between_code(book):
    previous = None
    for number, cell in book.cells:
        if cell.cell_type == "code" and (previous is None or previous.cell_type != "markdown"):
            if previous is None or "setup" not in tags(cell) | tags(previous):
                yield book.at(number, "is code with no sentence before it")
        previous = cell
    if previous is None or previous.cell_type != "markdown":
        yield f"{book.name}: must end in a reading of the last result, not in code"


def prose_rhythm(book):
    ratio = len(book.prose) / max(1, len(book.code))
    if not 1.2 <= ratio <= 2.0:
        yield (f"{book.name}: {len(book.prose)} cells of prose for {len(book.code)} of code is a"
               f" ratio of {ratio:.2f}, must be 1.2 to 2.0")
    words = statistics.median([len(cell.source.split()) for _, cell in book.prose] or [0])
    if not 25 <= words <= 70:
        yield f"{book.name}: the median cell of prose has {words} words, must be 25 to 70"


# Structure -----------------------------------------------------------------------------------

TIME = re.compile(r"\*\*Time\*\*.*\babout \d+ minutes to read, (\d+) s to run", re.S)


def opening_box(book):
    first = book.notebook.cells[0].source if book.notebook.cells else ""
    if not first.startswith("# "):
        yield f"{book.name}: the first cell must start with '# ' and the title"
    for label in ("You will be able to", "You need first"):
        if f"**{label}**" not in first:
            yield f"{book.name}: the first cell lacks **{label}**"
    time = TIME.search(first)
    if not time:
        yield (f"{book.name}: the first cell lacks **Time** with"
               " 'about N minutes to read, M s to run'")
    elif int(time[1]) > 60:
        yield f"{book.name}: takes {time[1]} s to run, at most 60 s are allowed"


def heading_levels(book):
    levels = [level for _, level, _ in book.headings]
    if levels.count(1) != 1:
        yield f"{book.name}: has {levels.count(1)} headings '# ', must have one"
    for (_, before, _), (number, level, text) in pairwise(book.headings):
        if level > before + 1:
            yield book.at(number, f"heading {text!r} skips from level {before} to {level}")


def section(book, title):
    """Return the text under the heading `title`, down to the next heading; None if missing."""
    whole = "\n".join(f"\n{without_fences(cell.source)}\n" for _, cell in book.prose)
    found = re.search(rf"^##+ +{re.escape(title)}\b.*\n((?s:.*?))(?=^#|\Z)", whole, re.M)
    return found[1].strip() if found else None


def closing_sections(book):
    for title in ("Take-aways", "Sources", "Hinglish recap"):
        if not section(book, title):
            yield f"{book.name}: lacks a section '## {title}' with text in it"


HINDI = {"hai", "hain", "ka", "ki", "ke", "ko", "nahi", "aur", "mein", "se", "yeh", "agar", "toh"}


def hinglish(book):
    recap = section(book, "Hinglish recap") or ""
    if re.search(r"[\u0900-\u097f]", recap):
        yield f"{book.name}: the Hinglish recap must be in Roman letters"
    if recap and len(HINDI & set(re.findall(r"[a-z]+", recap.lower()))) < 4:
        yield f"{book.name}: the Hinglish recap does not read as Hindi-English"


def predictions(book):
    count = sum("prediction" in tags(cell) or "**Predict**" in cell.source
                for _, cell in book.prose)
    if count < 2:
        yield f"{book.name}: asks for {count} predictions (tag prediction or **Predict**), needs 2"


def mistake_run(book):
    tagged = any("mistake" in tags(cell) for _, cell in book.cells)
    if not tagged and not any("mistake" in text.lower() for _, _, text in book.headings):
        yield f"{book.name}: runs no mistake (tag mistake, or a heading that says so)"


def slide_types(book):
    allowed = {"slide", "subslide", "fragment", "skip", "notes", "-"}
    for number, cell in book.cells:
        kind = cell.metadata.get("slideshow", {}).get("slide_type")
        if kind not in allowed:
            yield book.at(number, f"has slide_type {kind!r}, must be one of {sorted(allowed)}")


# Figures -------------------------------------------------------------------------------------


def alt_texts(book):
    for number, cell in book.code:
        shown = " ".join(" ".join(text_outputs(cell)).split())
        for _, alt in image_outputs(cell):
            if len(alt.strip()) < 40:
                yield book.at(number, f"its figure needs an alt text of 40 characters, has {alt!r}")
            elif f"Figure: {' '.join(alt.split())}" not in shown:
                yield book.at(number, "does not print 'Figure: ' and the alt text of its figure")


def no_bare_figures(book):
    for number, cell in book.code:
        for output in cell.outputs:
            data = output.get("data", {})
            bare = not any(output.get("metadata", {}).get(kind, {}).get("alt") for kind in IMAGES)
            if data.get("text/plain", "").startswith("<Figure size") and bare:
                yield book.at(number, "leaves its figure to pyplot: show it with coursekit.plots")


def prose_images(book):
    for number, cell in book.prose:
        source = without_code(cell.source)
        if re.search(r"!\[\s*\]", source):
            yield book.at(number, "has an image without alt text")
        for image in re.findall(r"<img\b[^>]*>", source):
            if not re.search(r"\balt=([\"'])\s*\S.*?\1", image):
                yield book.at(number, "has an <img> without alt text")


class _Alts(HTMLParser):
    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        if tag == "img":
            self.found.append(dict(attributes).get("alt") or "")


@functools.cache
def _exporter():
    from nbconvert import HTMLExporter

    import coursekit

    templates = Path(coursekit.__file__).parent / "templates"
    return HTMLExporter(template_name="course", extra_template_basedirs=[str(templates)])


def exported_alts(book):
    html, _ = _exporter().from_notebook_node(book.notebook)
    alts = _Alts()
    alts.feed(html)
    for position, alt in enumerate(alts.found, start=1):
        if not alt.strip() or alt.startswith("No description has been provided"):
            yield f"{book.name}: image {position} of the exported HTML has no alt text"
    drawn = sum(1 for _, cell in book.code for _ in image_outputs(cell))
    if len(alts.found) < drawn:
        yield f"{book.name}: the HTML shows {len(alts.found)} images, the notebook holds {drawn}"


# The network ---------------------------------------------------------------------------------

NETWORK_MODULES = {"urllib", "urllib3", "requests", "httpx", "aiohttp", "http", "socket", "ftplib",
                   "wget", "pip", "subprocess", "openml", "huggingface_hub"}
NETWORK_NAMES = re.compile(r"urlopen|urlretrieve|fetch_\w+|download\w*|load_state_dict_from_url")


def no_network(book):
    for number, cell in book.code:
        if re.search(r"\b(https?|ftp)://", cell.source):
            yield book.at(number, "has a URL in its code: sources stand in the prose")
        for module in sorted({name.split(".")[0] for name in imports(cell)} & NETWORK_MODULES):
            yield book.at(number, f"imports {module}, which can reach outside the notebook")
        for name in sorted(filter(NETWORK_NAMES.fullmatch, identifiers(cell))):
            yield book.at(number, f"uses {name}, which downloads")
        if "os.system" in (name for name, _ in calls(cell)):
            yield book.at(number, "calls os.system")


LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)|\b(?:href|src)=[\"']([^\"']+)[\"']")


def links(book):
    """Yield (cell number, target) for each link and image in the prose."""
    for number, cell in book.prose:
        for markdown, html in LINK.findall(without_code(cell.source)):
            yield number, markdown or html


def anchors(book):
    """Return the ids JupyterLab gives the headings: the text as shown, blanks turned to '-'."""
    return {re.sub(r"[`*]", "", text).replace(" ", "-") for _, _, text in book.headings}


def links_lead_somewhere(book):
    for number, target in links(book):
        if re.match(r"[a-z]+:", target):
            if target.startswith("attachment:"):
                yield book.at(number, f"shows an attachment ({target}): draw it in code instead")
            continue
        file, _, anchor = unquote(target).partition("#")
        path = (book.path.parent / file) if file else book.path
        if not path.exists():
            yield book.at(number, f"links to {target}, which does not exist")
        elif anchor and path.suffix == ".ipynb":
            if anchor not in anchors(read(path) if file else book):
                yield book.at(number, f"links to {target}, but there is no such heading")


# Randomness ----------------------------------------------------------------------------------

NUMPY_RANDOM = re.compile(r"(?:np|numpy)\.random\.(\w+)")
SEEDED = {"default_rng", "SeedSequence", "PCG64", "Philox", "MT19937", "SFC64", "RandomState"}
NEW_STYLE = SEEDED - {"RandomState"} | {"Generator", "BitGenerator"}
UNSEEDABLE = {"random", "secrets", "uuid"}
TORCH_DRAW = re.compile(
    r"torch\.(rand|randn|randint|randperm|normal|bernoulli|multinomial)(_like)?")
RANDOM_STATE = re.compile(
    r"rvs|train_test_split|make_(blobs|moons|circles|classification|regression)|resample|shuffle"
    r"|KMeans|TSNE|RandomForest\w+|ExtraTrees\w+|MLP\w+|SGD\w+|permutation_importance")


def seeded_numpy(book):
    for number, cell in book.code:
        names = {dotted(node) for node in ast.walk(parsed(cell.source))} | set(imports(cell))
        for name in sorted(filter(NUMPY_RANDOM.fullmatch, names)):
            if name.split(".")[-1] not in NEW_STYLE:
                yield book.at(number, f"uses {name}: take rng = np.random.default_rng(seed)")
        for name, call in calls(cell):
            arguments = call.args + [keyword.value for keyword in call.keywords]
            unseeded = not arguments or dotted_none(arguments[0])
            if name.split(".")[-1] in SEEDED and unseeded:
                yield book.at(number, f"calls {name} without a seed")


def dotted_none(node):
    return isinstance(node, ast.Constant) and node.value is None


def no_unseedable(book):
    for number, cell in book.code:
        for module in sorted({name.split(".")[0] for name in imports(cell)} & UNSEEDABLE):
            yield book.at(number, f"imports {module}: take rng = np.random.default_rng(seed)")
        if "urandom" in identifiers(cell):
            yield book.at(number, "uses os.urandom: take rng = np.random.default_rng(seed)")


def seeded_torch(book):
    seeded = False
    for number, cell in book.code:
        seeded = seeded or any(name.endswith("manual_seed") for name, _ in calls(cell))
        for name, call in calls(cell):
            own = any(keyword.arg == "generator" for keyword in call.keywords)
            if TORCH_DRAW.fullmatch(name) and not seeded and not own:
                yield book.at(number, f"calls {name} before torch.manual_seed")


def seeded_libraries(book):
    for number, cell in book.code:
        for name, call in calls(cell):
            given = any(keyword.arg in ("random_state", None) for keyword in call.keywords)
            method = name.startswith(("rng.", "self."))
            if RANDOM_STATE.fullmatch(name.split(".")[-1]) and not given and not method:
                yield book.at(number, f"calls {name} without random_state")


CLOCKS = {"hash", "id", "time", "time.time", "time.perf_counter", "time.process_time",
          "time.monotonic", "perf_counter", "process_time", "monotonic", "datetime.now",
          "datetime.datetime.now", "datetime.today", "date.today", "datetime.date.today"}


def no_clocks(book):
    for number, cell in book.code:
        if not IGNORED_OUTPUT & tags(cell):
            for name in sorted(CLOCKS & {name for name, _ in calls(cell)}):
                yield book.at(number, f"calls {name}(), whose value differs from run to run")


# What nbval trips over -----------------------------------------------------------------------

NOT_REPLAYED = {"clear_output", "update_display", "display_id", "interact", "interactive",
                "interactive_output", "Output", "tqdm", "trange"}


def ends_in_semicolon(source):
    """Tell whether a line of code does; a semicolon in a string or a comment is text."""
    if not parsed(source).body:
        return False
    tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    return any(one.string == ";" and two.type in (tokenize.NEWLINE, tokenize.COMMENT)
               for one, two in pairwise(tokens))


def nbval_sources(book):
    for number, cell in book.code:
        if ends_in_semicolon(cell.source):
            yield book.at(number, "has a line that ends in ';': write _ = ... instead")
        for name in sorted(NOT_REPLAYED & identifiers(cell)):
            yield book.at(number, f"uses {name}, which nbval cannot replay")
        for node in ast.walk(parsed(cell.source)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                if node.id in ("_", "__", "___", "Out", "In"):
                    yield book.at(number, f"reads {node.id}, which nbval does not keep")


def marks_have_reasons(book):
    for number, cell in book.code:
        if re.search(r"^\s*#+\s*(NBVAL|PYTEST_VALIDATE)_", cell.source, re.M):
            yield book.at(number, "is marked for nbval in a comment: use the tag")
        if IGNORED_OUTPUT & tags(cell) and "# Output varies: " not in cell.source:
            yield book.at(number, "is not compared, and no '# Output varies: ' comment says why")
    ignored = [number for number, cell in book.code if IGNORED_OUTPUT & tags(cell)]
    if len(ignored) > 2:
        yield f"{book.name}: cells {ignored} are not compared, at most 2 may be"


PATHS = re.compile(r"(?:(?<=[\s'\"(=])|^)/[A-Za-z][\w.-]*/[\w.-]+|\b[A-Z]:\\+\w+", re.M)
SET_OF_STRINGS = re.compile(r"\{('[^']*'|\"[^\"]*\")(, ('[^']*'|\"[^\"]*\"))+\}")


def nbval_outputs(book):
    for number, cell in book.code:
        streams = " ".join(output.text for output in cell.outputs if output.output_type == "stream")
        shown = " ".join(text_outputs(cell))
        if re.search(r"\bat 0x[0-9a-fA-F]+", shown):
            yield book.at(number, "shows an address in memory (at 0x...)")
        if SET_OF_STRINGS.search(streams):
            yield book.at(number, "prints a set of strings, whose order varies: print sorted(...)")
        path = PATHS.search(f"{shown} {cell.source}")
        if path:
            yield book.at(number, f"holds a path of one machine, {path[0]}")


def printed_digits(book):
    for number, cell in book.code:
        if "exact-digits" in tags(cell) or IGNORED_OUTPUT & tags(cell):
            continue
        for text in text_outputs(cell):
            for whole, decimals in re.findall(r"(?<![\w.])(\d+)\.(\d+)", text):
                significant = decimals if int(whole) else decimals.lstrip("0")
                if len(significant) > 6:
                    yield book.at(number, f"prints {whole}.{decimals}: more digits than hold on"
                                          " every machine (round, or tag exact-digits)")


# Words and numbers ---------------------------------------------------------------------------


def outside_sources(book, strip):
    """Yield (cell number, prose) with `strip` applied and the Sources section left out."""
    level = 0
    for number, cell in book.prose:
        kept = []
        for line in strip(cell.source).splitlines():
            heading = re.match(r"(#{1,6}) +(.*)", line)
            if heading and (not level or len(heading[1]) <= level):
                level = len(heading[1]) if heading[2].startswith("Sources") else 0
            if not level:
                kept.append(line)
        yield number, "\n".join(kept)


def plain_words(source):
    return re.sub(r"\]\([^)]*\)|<[^>]*>|https?://\S+", "]", without_code(source))


BANNED = re.compile(r"\b(obviously|trivially|clearly|of course)\b", re.I)


def no_brushing_aside(book):
    for number, text in outside_sources(book, plain_words):
        for word in BANNED.findall(text):
            yield book.at(number, f"says {word!r}")


AMERICAN = re.compile(
    r"\b((?:neighbor|behavior|favor)\w*|color(?:s|ed|ing|ful)?|center(?:s|ed|ing)?"
    r"|(?:analyz|randomiz|generaliz|summariz|recogniz|minimiz|maximiz|normaliz|anonymiz|memoriz"
    r"|optimiz|realiz|organiz|standardiz|penaliz|regulariz|initializ)\w+|defenses?"
    r"|labeled|labeling|modeled|modeling|gray|fulfill|skeptical)\b", re.I)


def british(book):
    for number, text in outside_sources(book, plain_words):
        for word in AMERICAN.findall(text):
            yield book.at(number, f"spells {word!r} the American way")


def numbers_in_prose(book):
    """Each decimal, percentage and number from 1000 on in the prose comes from the run."""
    evidence, prose = [], dict(outside_sources(book, without_fences))
    for number, cell in book.cells:
        if cell.cell_type == "code":
            evidence += prose_numbers.evidence(cell)
            continue
        following = [later for place, later in book.code
                     if place > number and "setup" not in tags(later)]
        known = evidence + [value for later in following[:1]
                            for value in prose_numbers.evidence(later)]
        for written in prose_numbers.claims(prose.get(number, "")):
            if not written.matches(known):
                yield book.at(number, f"says {written.text}, which no cell up to the next computes")


def numbers_in_figures(book):
    """A number typed into an alt text comes from the run, like one in the prose."""
    evidence = []
    for number, cell in book.code:
        evidence += prose_numbers.evidence(cell)
        for written in prose_numbers.caption_claims(cell):
            if not written.matches(evidence):
                yield book.at(number, f"types {written.text} into 'Figure: ', and computes no such")


# The set -------------------------------------------------------------------------------------


def start_links_all(books):
    start = next((book for book in books if book.name == "00_start_here"), None)
    if start is None:
        yield "notebooks/00_start_here.ipynb is missing"
        return
    linked = {Path(unquote(target).partition("#")[0]).name for _, target in links(start)}
    for book in books:
        if book is not start and book.path.name not in linked:
            yield f"00_start_here: does not link to {book.path.name}"


def linked_in_order(books):
    books = sorted(books, key=lambda book: book.name)
    for before, after in pairwise(books):
        for one, other in ((before, after), (after, before)):
            if not any(other.path.name in unquote(target) for _, target in links(one)):
                yield f"{one.name}: does not link to its neighbour {other.path.name}"


def problem_sets_linked(books):
    for book in books:
        problem_set = f"ps{book.name[:2]}-"
        exists = list(book.path.parents[1].glob(f"solutions/{problem_set}*/*.ipynb"))
        if exists and not any(problem_set in target for _, target in links(book)):
            yield f"{book.name}: does not link to its problem set {exists[0].parent.name}"


BOTH = [valid_format, kernel, unique_ids, no_empty_cells, ran_in_order, no_errors, no_stderr,
        plain_python, longest_cell, alt_texts, no_bare_figures, prose_images, exported_alts,
        no_network, links_lead_somewhere, seeded_numpy, no_unseedable, seeded_torch,
        seeded_libraries, no_clocks, nbval_sources, marks_have_reasons, nbval_outputs,
        printed_digits]
LECTURE = [short_cells, prose_between_code, prose_rhythm, opening_box, heading_levels,
           closing_sections, hinglish, predictions, mistake_run, slide_types, no_brushing_aside,
           british, numbers_in_prose, numbers_in_figures]
SET = [short_cells_over_all, start_links_all, linked_in_order, problem_sets_linked]
