"""The command line: `coursekit start ps02`, and the authors' build, verify, run and portable."""

import argparse
import sys
from pathlib import Path


def main(argv=None):
    """Run one command; return its exit code. Problems are told in a sentence, never a traceback."""
    arguments = _parser().parse_args(argv)
    try:
        return arguments.command(arguments)
    except (ValueError, OSError, RuntimeError) as error:
        print(f"coursekit: {error}", file=sys.stderr)
        return 1


def _parser():
    parser = argparse.ArgumentParser(
        prog="coursekit", description="Companion of the course Privacy in Machine Learning."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    start = commands.add_parser("start", help="copy a problem set into work/, where it is yours")
    start.add_argument("problem_set", help="such as ps02")
    start.add_argument("--fresh", action="store_true",
                       help="make a second copy beside the one that is there")
    start.set_defaults(command=_start)

    build = commands.add_parser("build", help="make exercises/ from solutions/")
    build.add_argument("--check", action="store_true", help="compare only; fail if they differ")
    build.set_defaults(command=_build)

    verify = commands.add_parser("verify", help="prove the exercises and their checks")
    verify.add_argument("problem_sets", nargs="*", help="such as ps02; all by default")
    verify.set_defaults(command=_verify)

    run = commands.add_parser("run", help="run notebooks and store their outputs")
    run.add_argument("paths", nargs="+", type=Path)
    run.set_defaults(command=_run)

    portable = commands.add_parser(
        "portable", help="run notebooks as another computer would; report outputs that moved"
    )
    portable.add_argument("paths", nargs="*", type=Path, help="all notebooks by default")
    portable.set_defaults(command=_portable)
    return parser


def _start(arguments):
    from coursekit.learn import course_folder, start

    path = start(arguments.problem_set, fresh=arguments.fresh)
    print(f"Yours: {path.relative_to(course_folder())}")
    return 0


def _build(arguments):
    from coursekit import build
    from coursekit.learn import course_folder

    changed = build.build(course_folder(), check=arguments.check)
    for path in changed:
        word = "differs from its solution" if arguments.check else "written"
        print(f"{path.relative_to(course_folder())}: {word}")
    print(f"exercises: {len(changed)} {'differ' if arguments.check else 'changed'}")
    return 1 if arguments.check and changed else 0


def _verify(arguments):
    from coursekit.verify import verify

    return 1 if verify(arguments.problem_sets) else 0


def _run(arguments):
    from coursekit import notebooks

    notebooks.run(arguments.paths)
    return 0


def _portable(arguments):
    from coursekit import notebooks
    from coursekit.learn import course_folder

    root = course_folder()
    ours = sorted([*root.glob("notebooks/*.ipynb"), *root.glob("solutions/*/*.ipynb")])
    return 1 if notebooks.portable(arguments.paths or ours) else 0
