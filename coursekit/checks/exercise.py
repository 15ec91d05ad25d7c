"""What an exercise is: a function to write, the parts of its check, and the mistakes it knows.

A check never looks at code. It calls the learner's function by name through a *subject*, which
may live in this process or behind a sandbox, and judges plain arrays. Exact parts compare with
the right answer; random parts compare laws, with a false-alarm rate of 1e-9 (see `evidence`).
"""

import contextlib
import copy
import hashlib
import io
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from coursekit.checks import evidence

RIGHT, WRONG, CRASHED = "right", "wrong", "crashed"
NOT_ATTEMPTED, WRITTEN = "not attempted", "for a person to mark"


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check: a status, a sentence for the learner, and the mistake's name."""

    status: str
    message: str
    mistake: str | None = None


@dataclass(frozen=True)
class Mistake:
    """A plausible wrong answer as code, with the sentence that helps whoever made it."""

    name: str
    wrong: Callable
    message: str


@dataclass(frozen=True)
class Run:
    """What one call, or several in a row, of the learner's function gave."""

    values: tuple
    changed_input: bool = False


class Judged(Exception):
    """Ends a check early with this verdict."""

    def __init__(self, verdict):
        super().__init__(verdict.message)
        self.verdict = verdict


class LocalSubject:
    """The learner's functions in this process, found in a namespace (a notebook's globals)."""

    def __init__(self, namespace: Mapping):
        self._namespace = namespace

    def run(self, function, arguments, *, seed=None, count=1):
        """Call `function(**arguments)` `count` times; a `seed` adds one generator as `rng`."""
        call = self._namespace.get(function)
        if not callable(call):
            raise Judged(Verdict(NOT_ATTEMPTED, f"There is no function called {function} yet: "
                                                "run its cell first."))
        given = copy.deepcopy(dict(arguments))
        if seed is not None:
            given["rng"] = np.random.default_rng(seed)
        with contextlib.redirect_stdout(io.StringIO()):
            values = tuple(_call(function, call, given) for _ in range(count))
        changed = any(not same(given[name], arguments[name], 0) for name in arguments)
        return Run(values, changed)


def _call(function, call, given):
    try:
        value = call(**given)
    except NotImplementedError:
        raise Judged(Verdict(NOT_ATTEMPTED, f"{function} still waits for your code.")) from None
    except (Exception, SystemExit) as error:
        raise Judged(Verdict(CRASHED, _what_stopped(function, given, error))) from None
    try:
        return copy.deepcopy(value)
    except TypeError:  # a generator, an open file and the like
        raise Judged(Verdict(WRONG, f"{function} returned {_short(value)}; expected plain values "
                                    "such as numbers, lists or arrays.")) from None


def _what_stopped(function, given, error):
    """A sentence on the error, with the line of the cell that it came from."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first is the call itself
    if isinstance(error, TypeError) and not frames:
        return (f"{function} could not be called: {error}. Keep the arguments of the exercise, "
                f"with their names: {', '.join(given) or 'none at all'}.")
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    lines = [frame.lineno for frame in frames if frame.filename == frames[0].filename]
    where = f" (line {lines[-1]})" if lines else ""
    return f"{_written_out(function, given)} stopped with {what}{where}."


def same(a, b, tolerance=1e-9):
    """True if two plain values agree: same shape or length, numbers to a relative tolerance.

    >>> same([1, 2.0], np.array([1.0, 2.0])), same("b", "c"), same([1], [1, 2])
    (True, False, False)
    """
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        return (isinstance(a, Mapping) and isinstance(b, Mapping) and a.keys() == b.keys()
                and all(same(a[key], b[key], tolerance) for key in a))
    a, b = _plain(a), _plain(b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.size == b.size == 0:
            return True
        return a.shape == b.shape and np.allclose(a, b, tolerance, tolerance, equal_nan=True)
    if _has_items(a) or _has_items(b):
        return (_has_items(a) and _has_items(b) and len(a) == len(b)
                and all(same(x, y, tolerance) for x, y in zip(a, b, strict=True)))
    a, b = (x.item() if isinstance(x, np.ndarray) else x for x in (a, b))
    try:
        return bool(a == b)
    except Exception:  # an object that refuses to be compared
        return False


def _plain(value):
    """Numbers as an array; a list or tuple of anything else as it is; other things as Python's."""
    try:
        array = np.asarray(value)
    except Exception:  # rows of unequal length, or an object that refuses
        return value
    if array.dtype.kind in "biuf":
        return array
    return value if isinstance(value, (list, tuple)) else array.tolist()


def _has_items(value):
    return isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.ndim > 0)


def outcome(function, arguments, *, seed=None):
    """The value of a function of ours on a case, or the name of what it raised."""
    try:
        return LocalSubject({"f": function}).run("f", arguments, seed=seed).values[0]
    except Judged:
        return "raised an error"


@dataclass(frozen=True)
class Exact:
    """Compare with the right answer on cases drawn afresh: exactly, up to rounding.

    cases: function of a Generator that returns a list of arguments (dicts).
    seeded: the function takes `rng`; then choose cases whose noise is below `tolerance`.
    tidy: applied to both answers first, for instance to ignore an order.
    proof: what a right answer has shown, as `check` tells the learner.
    allowed: said after a wrong value instead of the right one, where that would be the answer.
    """

    cases: Callable
    tolerance: float = 1e-9
    seeded: bool = False
    tidy: Callable = field(default=lambda value: value)
    proof: str = "the values agree with the closed form"
    allowed: str = ""

    def examine(self, exercise, subject, seed):
        cases = self.cases(np.random.default_rng(seed))
        seed = seed if self.seeded else None
        given = [exercise.answers(subject, case, seed=seed)[0] for case in cases]
        right = [exercise.right(**case, **self._rng(seed)) for case in cases]
        for case, got, expected in zip(cases, given, right, strict=True):
            if not self._agree(got, expected):
                name = self._name(exercise, cases, given, seed)
                detail = _difference(exercise.function, case, got, expected, self.allowed)
                return exercise.wrong(name, detail)
        return None

    def _rng(self, seed):
        return {} if seed is None else {"rng": np.random.default_rng(seed)}

    def _agree(self, a, b):
        try:
            return same(self.tidy(a), self.tidy(b), self.tolerance)
        except (TypeError, ValueError, AttributeError, OverflowError):
            return False

    def _name(self, exercise, cases, given, seed):
        """The listed mistake that gives the very same answers on every case, if there is one."""
        for mistake in exercise.mistakes:
            if all(self._agree(outcome(mistake.wrong, case, seed=seed), got)
                   for case, got in zip(cases, given, strict=True)):
                return mistake.name
        return None

    def describe(self):
        return self.proof


@dataclass(frozen=True)
class Randomness:
    """The noise must come from `rng`: same seed, same answer; another seed or call, another one.

    A right answer repeats itself by chance with probability below 1e-9: choose cases (vectors for
    discrete answers) for which that holds.
    """

    case: Mapping
    count: int = 4
    everywhere: bool = False  # each coordinate has to change, not only one of them
    mistake: str = "always-the-same"

    def examine(self, exercise, subject, seed):
        first, again, other = (
            _numbers(exercise, exercise.answers(subject, self.case, seed=s, count=self.count))
            for s in (seed, seed, seed + 1))
        if not same(first, again, 0):
            return exercise.wrong("own-randomness")
        if first.shape != other.shape:
            return exercise.wrong(None, f"{exercise.function} returned {first.shape[1:]} and "
                                        f"{other.shape[1:]} numbers for the same arguments.")
        still = np.ptp(np.concatenate([first, other]), axis=0) == 0
        if still.any() if self.everywhere else still.all():
            return exercise.wrong(self.mistake)
        if same(first, other, 0):
            return exercise.wrong("own-randomness")
        return None

    def describe(self):
        return "all randomness comes from rng"


@dataclass(frozen=True)
class Separate:
    """Coordinates of one answer must carry separate noise: they may not all be equal.

    For a right answer that happens with probability below 1e-9: choose a case with enough
    coordinates, of equal true values or with `noise` as for `Independent`.
    """

    case: Mapping
    mistake: str = "one-draw-for-all"
    noise: Callable = field(default=lambda answers, case: answers)

    def examine(self, exercise, subject, seed):
        answers = _numbers(exercise, exercise.answers(subject, self.case, seed=seed))
        values = np.ravel(self.noise(answers, self.case)).astype(float)
        if len(values) > 1 and np.ptp(values) <= 1e-9 * (1 + np.abs(values).max()):
            return exercise.wrong(self.mistake)
        return None

    def describe(self):
        return "each coordinate has a draw of its own"


@dataclass(frozen=True)
class Independent:
    """Coordinates of one answer must be independent draws, wherever they stand.

    case: one with few coordinates, all of whose noise follows the law `right`. noise: as for
    `Law`, but the sample keeps its shape (draws, coordinates).
    """

    case: Mapping
    right: object
    noise: Callable
    count: int = 1_000
    mistake: str = "not-independent"

    def examine(self, exercise, subject, seed):
        values = exercise.answers(subject, self.case, seed=seed, count=self.count)
        sample = self.noise(_numbers(exercise, values), self.case)
        if not evidence.independent(sample, self.right):
            return exercise.wrong(self.mistake)
        return None

    def describe(self):
        return "no draw depends on its place or on another draw"


@dataclass(frozen=True)
class Law:
    """Many draws must follow the right law, judged by `evidence.weigh`.

    noise: turns the stacked answers (draws first) and the case into a 1-D sample of independent
    draws. wrong: dict from a mistake's name to the law it would give (frozen scipy.stats).
    advice: what to try when no listed mistake fits.
    """

    case: Mapping
    right: object
    wrong: Mapping
    noise: Callable
    shape: tuple = ()
    count: int = 20_000
    advice: str = ""

    def examine(self, exercise, subject, seed):
        shape = _numbers(exercise, exercise.answers(subject, self.case, seed=seed)).shape[1:]
        if shape != self.shape:
            return exercise.wrong(
                None, f"{exercise.function} returned an answer of shape {shape}; "
                      f"expected shape {self.shape}."
            )
        values = exercise.answers(subject, self.case, seed=seed, count=self.count)
        stacked = _numbers(exercise, values)
        finding = evidence.weigh(self.noise(stacked, self.case), self.right, self.wrong)
        if finding.wrong:
            verdict = exercise.wrong(
                finding.name,
                f"{self.drawn():,} draws do not follow the law that the exercise asks for. "
                f"{self.advice}".strip(),
            )
            # A law may be near that of a listed mistake without being it.
            likely = f"Most likely this: {verdict.message}" if finding.name else verdict.message
            return replace(verdict, message=likely)
        return None

    def describe(self):
        wrong = f"{len(self.wrong)} wrong law{'' if len(self.wrong) == 1 else 's'}"
        return f"{self.drawn():,} draws follow the right law, with {wrong} ruled out"

    def needed(self):
        """Draws that rule out each listed law but once in a million, by mistake."""
        return {name: evidence.draws_needed(self.right, law, laws=len(self.wrong))
                for name, law in self.wrong.items()}

    def drawn(self):
        """Independent values that `count` calls give."""
        answers = np.zeros((2, *self.shape))
        return self.count * len(self.noise(answers, self.case)) // 2


@dataclass(frozen=True)
class Exercise:
    """One exercise of a problem set: what is asked, how it is checked, what may go wrong.

    right: our own answer. others: right answers written differently, which must pass.
    A written exercise has a `rubric` instead of a function.
    """

    key: str
    title: str
    points: int
    function: str | None = None
    right: Callable | None = None
    parts: tuple = ()
    mistakes: tuple = ()
    others: tuple = ()
    hints: tuple = ()
    lesson: str = ""
    rubric: str = ""

    def answers(self, subject, case, *, seed=None, count=1):
        """The values of `count` calls; a changed input or a missing return ends the check."""
        run = subject.run(self.function, case, seed=seed, count=count)
        if run.changed_input:
            raise Judged(self.wrong("changes-its-input"))
        if any(value is None for value in run.values):
            raise Judged(self.wrong(None, f"{self.function} returned None: is a return missing?"))
        return run.values

    def check(self, subject, *, seed):
        """Judge a subject's answer; the same seed gives the same verdict."""
        if not self.function:
            return Verdict(WRITTEN, f"A person marks this one. What counts: {self.rubric}")
        try:
            with np.errstate(all="ignore"):  # whatever the notebook set: a NaN is judged, not told
                for position, part in enumerate(self.parts):
                    verdict = part.examine(self, subject, seed + 1000 * position)
                    if verdict:
                        return verdict
        except Judged as end:
            return end.verdict
        checked = "; ".join(dict.fromkeys(part.describe() for part in self.parts))
        chance = ""
        if any(isinstance(part, (Law, Independent)) for part in self.parts):
            chance = " A right answer fails such a law with probability below 1e-9."
        return Verdict(RIGHT, f"{self.lesson} Checked: {checked}.{chance}".strip())

    def wrong(self, name, detail=""):
        """The verdict for a mistake: the listed sentence if it has a name, else the detail."""
        known = {mistake.name: mistake.message for mistake in (*GENERIC, *self.mistakes)}
        if name in known:
            return Verdict(WRONG, known[name], name)
        return Verdict(WRONG, detail)


GENERIC = (
    Mistake("own-randomness", None,
            "The noise does not come from rng: two calls with equally seeded generators differ, "
            "or the seed changes nothing. Draw with rng, and make no generator of your own."),
    Mistake("always-the-same", None,
            "Every call gives the same answer, so no noise was added, or the same noise each "
            "time. A release without fresh noise protects nobody."),
    Mistake("not-independent", None,
            "The numbers of one answer hang together, or follow another law in some places than in "
            "others. Whoever sees one learns about its neighbour's noise. Each needs a draw of its "
            "own, used nowhere else and not sorted."),
    Mistake("changes-its-input", None,
            "Your function changed the array or list it was given. Work on a copy: the caller "
            "still needs the original."),
)


def randomness_mistakes(right, centre):
    """The mistakes with a generator that any noisy answer can make, as code.

    centre: the answer without its noise, a function of the same arguments but `rng`.
    """
    messages = {mistake.name: mistake.message for mistake in GENERIC}
    return (
        Mistake("own-randomness",
                lambda rng, **case: right(**case, rng=np.random.default_rng()),
                messages["own-randomness"]),
        Mistake("always-the-same", lambda rng, **case: centre(**case),
                messages["always-the-same"]),
    )


def dependence_mistake(wrong):
    """The mistake of draws that hang together, from an answer that makes it."""
    (message,) = (mistake.message for mistake in GENERIC if mistake.name == "not-independent")
    return Mistake("not-independent", wrong, message)


def choice(key, title, *, right, reasons, points=1, hints=(), lesson=""):
    """A multiple-choice exercise, answered by a function `answer_K_N()` that returns a letter.

    reasons: dict from each wrong letter to why it is wrong.
    """
    function = "answer_" + key.replace(".", "_")
    mistakes = tuple(Mistake(f"chose-{letter}", lambda letter=letter: letter, reason)
                     for letter, reason in reasons.items())
    letters = ", ".join(sorted([right, *reasons]))
    compare = Exact(lambda rng: [{}], tidy=lambda answer: str(answer).strip().lower(),
                    proof="your choice", allowed=f"answer with one of the letters {letters}.")
    return Exercise(
        key, title, points, function=function, right=lambda: right, parts=(compare,),
        mistakes=mistakes, others=(lambda: right.upper(),), hints=hints, lesson=lesson,
    )


def seed_for(salt, key, submission=""):
    """A seed that is the same for the same salt, exercise and submission.

    >>> seed_for("autumn", "2.3") == seed_for("autumn", "2.3") != seed_for("spring", "2.3")
    True
    """
    digest = hashlib.sha256("\0".join((salt, key, submission)).encode()).digest()
    return int.from_bytes(digest[:6], "big")


def _numbers(exercise, values):
    """The answers, stacked, as floats; any that is no finite number ends the check."""
    stacked = _plain(values)
    if isinstance(stacked, np.ndarray) and np.all(np.isfinite(stacked)):
        return stacked.astype(float)
    strange = (value for value in values
               if not isinstance(stacked, np.ndarray) or not np.all(np.isfinite(value)))
    message = (f"{exercise.function} returned {_short(next(strange))}; expected finite numbers, "
               "of one shape each time.")
    raise Judged(exercise.wrong(None, message))


def _difference(function, case, got, expected, allowed):
    """Say what was given and what should be; for long answers also where they differ first."""
    allowed = allowed or f"it should give {_short(expected)}."
    where = ""
    if (isinstance(expected, np.ndarray) and expected.ndim == 1 and len(expected) > 12
            and isinstance(_plain(got), np.ndarray) and np.shape(got) == expected.shape):
        place = int(np.argmax([not same(a, b) for a, b in zip(got, expected, strict=True)]))
        where = f" The first difference is at position {place}: {got[place]} for {expected[place]}."
    return f"{_written_out(function, case)} gave {_short(got)}; {allowed}{where}"


def _written_out(function, case):
    """The call as a learner would type it."""
    inputs = [f"{name}={_short(value)}" for name, value in case.items() if name != "rng"]
    return f"{function}({', '.join(inputs + ['rng=rng'] * ('rng' in case))})"


def _short(value):
    value = value.item() if isinstance(value, np.generic) else value
    with np.printoptions(precision=4, threshold=12, edgeitems=3):
        text = " ".join(repr(value).split())
    return text if len(text) <= 160 else text[:157] + "..."
