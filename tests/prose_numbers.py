"""Numbers in prose, and the numbers of a run that bear them out.

A claim is a decimal, a percentage or a whole number from 1000 on. It is borne out by a number that
a code cell holds or shows and that is equal to it at the digits the claim gives. A number typed
into a string proves nothing: it would be shown whatever the code computes.
"""

import ast
import functools
import re
from dataclasses import dataclass

NUMBER = re.compile(
    r"(?<![\w.])(?P<whole>\d{1,3}(?:(?:,|\{,\}|\\,|\u2009|\u202f)\d{3})+|\d*)(?P<decimals>\.\d+)?"
    r"(?P<exponent>e[-+]?\d+)?(?![\w]|\.\d)(?P<percent>\s?\\?%| per ?cent\b)?"
)
REFERENCE = re.compile(
    r"\b(?:sections?|exercises?|notebooks?|theorems?|lemmas?|definitions?|propositions?|remarks?"
    r"|corollary|chapters?|figures?|tables?|equations?|algorithms?|steps?|problem sets?|appendix"
    r"|parts?|questions?|python|numpy|scipy|pytorch|torch|versions?|check|hint|solution)"
    r"(?:[\s(\"'`]|\\ )*\d+(?:\.\d+)*(?:(?:,| and| to| or)\s+\d+\.\d+)*", re.I)
LEVEL = re.compile(r"\b\d+(?:\.\d+)?\s?\\?% (?:confidence|credible|interval|band|level)")
NOT_CLAIMS = [
    re.compile(r"\]\([^)]*\)|https?://\S+|\b10\.\d{4,}/\S+|arXiv[:\s]+\d{4}\.\d{4,5}\S*"),
    re.compile(r"^#+ +\d+(?:\.\d+)*", re.M),
    re.compile(r"\*\*Time\*\*.*"),
    REFERENCE,
    LEVEL,
]
# "(Dwork et al. 2006)", "Dwork and Roth (2014)", or a link to another site.
CITATION = re.compile(r"\([A-Z][^()\d]*\b(?:19|20)\d\d[a-z]?\)|\b[A-Z][\w.]+,? \((?:19|20)\d\d\)"
                      r"|https?://")


@dataclass(frozen=True)
class Number:
    """A number as written, its value, and half a unit of its last digit."""

    text: str
    value: float
    half_unit: float
    percent: bool = False

    def matches(self, known):
        values = [abs(number) for number in known]
        if self.percent:
            values += [100 * value for value in values]
        slack = self.half_unit + 1e-9 * max(1.0, self.value)
        return any(abs(value - self.value) <= slack for value in values)


def numbers(text):
    """Yield each number in `text`, signs apart."""
    for found in NUMBER.finditer(text):
        whole = re.sub(r"\D", "", found["whole"])
        decimals = found["decimals"] or ""
        if whole or decimals:
            exponent = int((found["exponent"] or "e0")[1:])
            half_unit = 0.5 * 10.0 ** (exponent - max(0, len(decimals) - 1))
            value = float(f"{whole or 0}{decimals}e{exponent}")
            yield Number(found[0].strip(), value, half_unit, bool(found["percent"]))


def _is_claim(number):
    year = re.fullmatch(r"(19|20)\d\d", number.text)
    return not year and (number.percent or "." in number.text or number.value >= 1000)


def claims(prose):
    """Return the numbers in a cell of prose that a run must bear out; none if it cites a source."""
    if CITATION.search(prose):
        return []
    for pattern in NOT_CLAIMS:
        prose = pattern.sub(" ", prose)
    return [number for number in numbers(prose) if _is_claim(number)]


@functools.cache
def _constants(source):
    """Return (numbers, strings) that stand in the code of a cell."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return [], []
    values = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    strings = [value for value in values if isinstance(value, str)]
    return [abs(value) for value in values if type(value) in (int, float)], strings


def _typed(cell):
    _, strings = _constants(cell.source)
    return {number.text for string in strings for number in numbers(string)}


def _shown(cell):
    """Yield each line of text that a cell shows."""
    for output in cell.outputs:
        data = output.get("data", {})
        html = re.sub(r"<[^>]*>", " ", data.get("text/html", ""))
        for text in (output.get("text", ""), data.get("text/plain", ""), html,
                     output.get("evalue", "")):
            yield from text.splitlines()


def evidence(cell):
    """Return the values that a cell computes or sets: in its code, or shown and not just typed."""
    values, _ = _constants(cell.source)
    typed = _typed(cell)
    shown = [number for line in _shown(cell) for number in numbers(line)]
    return values + [number.value for number in shown if number.text not in typed]


def caption_claims(cell):
    """Return the claims in a cell's "Figure: ..." lines."""
    captions = [line for line in _shown(cell) if line.startswith("Figure: ")]
    return [number for line in captions for number in claims(line)]
