"""The checks of the problem sets: one module a set, `ps01` for problem set 01 and so on.

They judge in three places alike: in the learner's notebook (`coursekit.learn`), in the proof that
the exercises are sound (`coursekit.verify`), and when a class is graded.
"""

import importlib
import pkgutil


def problem_sets():
    """Names of all problem sets, in order.

    >>> problem_sets()[:2]
    ['ps01', 'ps02']
    """
    names = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in names if name[:2] == "ps" and name[2:].isdecimal())


def known(problem_set):
    """The name as given, if there is such a problem set.

    >>> known("ps2")
    Traceback (most recent call last):
    ValueError: There is no problem set 'ps2'; there are: ps01, ps02...
    """
    if problem_set not in problem_sets():
        listed = ", ".join(problem_sets())
        raise ValueError(f"There is no problem set {problem_set!r}; there are: {listed}.")
    return problem_set


def exercises(problem_set):
    """The exercises of one problem set, a dict from key ("2.3") to Exercise, in order.

    >>> list(exercises("ps02"))[0]
    '2.1'
    """
    module = importlib.import_module(f"{__name__}.{known(problem_set)}")
    return {exercise.key: exercise for exercise in module.EXERCISES}


def find(key):
    """The exercise with this key.

    >>> find("2.10")
    Traceback (most recent call last):
    ValueError: There is no exercise '2.10'; problem set ps02 has 2.1 to 2.9.
    """
    number = str(key).partition(".")[0]
    name = f"ps{int(number):02d}" if number.isdecimal() else None
    if name not in problem_sets():
        raise ValueError(f"There is no exercise {key!r}; write it as \"2.3\", "
                         f"with a set from {', '.join(problem_sets())}.")
    found = exercises(name)
    if str(key) not in found:
        first, *_, last = found
        raise ValueError(
            f"There is no exercise {key!r}; problem set {name} has {first} to {last}."
        )
    return found[str(key)]
