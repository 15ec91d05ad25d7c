"""The author's tools: run a notebook into its file, and prove that its outputs hold elsewhere.

`run` fills a notebook in so that a second run gives the same bytes. `portable` runs notebooks as
another computer would and tells which outputs moved; nothing may.
"""

import os
import platform
import site
import time
from pathlib import Path

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
}
# No progress bars: a slow machine would leave them in the outputs.
FIXED_ENVIRONMENT = {**ONE_THREAD, "PYTHONHASHSEED": "0", "TQDM_DISABLE": "1"}

# The kernels that an x86 processor of 2008 would choose. Other machines know none of these names.
OLD_X86 = {
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "X86_V3",
}
TWO_THREADS = dict.fromkeys(ONE_THREAD, "2")

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
ERROR_TAGS = {"raises-exception", "nbval-raises-exception"}
NOT_COMPARED_TAGS = {"nbval-ignore-output", "nbval-skip"}
CELL_SECONDS = 600


class NotebookError(RuntimeError):
    """A notebook could not be run to its end; the message names the cell and the error."""


def run(paths):
    """Run each notebook in a fresh kernel, in its own folder, and store its outputs in the file.

    One thread, a fixed hash seed, no progress bars; a second run gives byte-identical files. The
    seconds are printed, since a notebook's first cell states them. `paths` is one path or several.

    Returns:
        The seconds each notebook took, kernel start included.

    Raises:
        FileNotFoundError, ValueError: a path is no notebook; nothing has been run.
        NotebookError: a cell failed; its notebook's file is as it was.
    """
    seconds = []
    for path in _notebook_paths(paths):
        notebook = _read(path)
        seconds.append(_execute(notebook, path, FIXED_ENVIRONMENT))
        _tidy(notebook)
        _write(notebook, path)
        print(f"{path}: ran in {seconds[-1]:.1f} s")
    return seconds


def portable(paths, settings=None):
    """Run notebooks as another computer would, and report every output that differs from the file.

    Two settings: the arithmetic kernels of an old processor, and two threads. Texts, HTML, errors
    and the bytes of images are compared; cells tagged `nbval-ignore-output` are not, cells tagged
    `nbval-skip` are not run. `paths` is one path or several; `settings` maps names to environments.

    Returns:
        A sentence for each output that moved, in the order found: an empty list is a pass.
    """
    paths = _notebook_paths(paths)
    moved = []
    for setting, environment in (_settings() if settings is None else settings).items():
        for path in paths:
            found = _moves(path, setting, {**FIXED_ENVIRONMENT, **environment})
            print(f"{path}: {len(found)} outputs moved under {setting}")
            for sentence in found:
                print(f"  {sentence}")
            moved += found
    return moved


def _settings():
    """Return the environments of `portable` that mean something on this machine."""
    if platform.machine().lower() not in {"x86_64", "amd64", "i386", "i686"}:
        print(f"This machine is {platform.machine()}, not x86: only the thread count is changed.")
        return {"two threads": TWO_THREADS}
    return {"old processor": OLD_X86, "two threads": TWO_THREADS}


def _notebook_paths(paths):
    """Return `paths` as a list of Path; each must be a notebook that exists."""
    paths = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    paths = [Path(path) for path in paths]
    if not paths:
        raise ValueError("paths must name at least one notebook, got none.")
    for path in paths:
        if path.suffix != ".ipynb":
            raise ValueError(f"paths must be notebooks (.ipynb), got {path}.")
        if not path.is_file():
            raise FileNotFoundError(f"There is no notebook {path}.")
    return paths


def _read(path):
    import nbformat

    return nbformat.read(path, as_version=4)


def _write(notebook, path):
    """Replace the file in one step, so that a crash leaves the old notebook or the new one."""
    import nbformat

    nbformat.validate(notebook)
    unfinished = path.with_name(f".{path.name}.unfinished")
    try:
        with open(unfinished, "w", encoding="utf-8", newline="\n") as file:
            file.write(nbformat.writes(notebook).rstrip("\n") + "\n")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def _execute(notebook, path, environment, skip=""):
    """Run the cells of `notebook` in place, but for those tagged `skip`; return the seconds."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellControlSignal, DeadKernelError

    running = []
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=CELL_SECONDS,
        resources={"metadata": {"path": str(path.resolve().parent)}},
        # Each kernel would warn the terminal that loopback is not encrypted.
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        skip_cells_with_tag=skip,
        store_widget_state=False,
        record_timing=False,
        coalesce_streams=True,
        on_cell_execute=lambda cell, cell_index: running.append(cell_index + 1),
    )
    start = time.perf_counter()
    try:
        client.execute(env=_kernel_environment(environment))
    except (CellControlSignal, DeadKernelError) as error:
        last_line = _what_happened(error)
        raise NotebookError(f"{path.stem} cell {running[-1]} failed: {last_line}") from None
    return time.perf_counter() - start


def _what_happened(error):
    """Say in one line why nbclient stopped."""
    if hasattr(error, "ename"):
        return f"{error.ename}: {error.evalue}"
    return str(error).strip().splitlines()[0]


def _kernel_environment(environment):
    """Return this process's environment with `environment`, for a kernel with this coursekit."""
    result = {**os.environ, **environment}
    home = str(Path(__file__).resolve().parents[1])
    if home not in site.getsitepackages():
        result["PYTHONPATH"] = os.pathsep.join(filter(None, [home, result.get("PYTHONPATH")]))
    return result


def _tidy(notebook):
    """Drop from a notebook that has just run whatever differs from run to run or by machine."""
    notebook.nbformat_minor = max(notebook.nbformat_minor, 5)
    notebook.metadata.pop("widgets", None)
    notebook.metadata["kernelspec"] = dict(KERNELSPEC)
    settle(notebook)
    code_cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code_cells, start=1):
        cell.execution_count = count
        for key in ("execution", "ExecuteTime", "collapsed", "scrolled"):
            cell.metadata.pop(key, None)
        for output in cell.outputs:
            _tidy_output(output, count)


def settle(notebook):
    """Drop from a notebook (a dict) what changes on every machine although nobody changed it.

    JupyterLab calls this before it saves, so that reading the course leaves its files as they are.
    """
    notebook["metadata"].get("language_info", {}).pop("version", None)
    for cell in notebook["cells"]:
        for number, output in enumerate(cell.get("outputs", [])):
            view = output.get("data", {}).get("application/vnd.jupyter.widget-view+json")
            if view:
                view["model_id"] = f"{cell['id']}-{number}"


def _tidy_output(output, count):
    if output.output_type == "execute_result":
        output.execution_count = count
    if output.output_type == "error":
        # A traceback shows the paths of the machine it arose on.
        output.traceback = [f"{output.ename}: {output.evalue}"]


def _moves(path, setting, environment):
    """Return a sentence for each output of the notebook that differs under `environment`."""
    committed, rerun = _read(path), _read(path)
    try:
        _execute(rerun, path, environment, skip="nbval-skip")
    except NotebookError as error:
        return [f"{error} (under {setting})"]
    moved = []
    for number, (before, after) in enumerate(zip(committed.cells, rerun.cells, strict=True), 1):
        if before.cell_type != "code" or NOT_COMPARED_TAGS & set(before.metadata.get("tags", [])):
            continue
        where = f"{path.stem} cell {number}, {setting}"
        moved += [f"{where}: {change}" for change in _changes(before.outputs, after.outputs)]
    return moved


def _changes(before, after):
    """Describe how one cell's outputs differ; each output is a pair of kind and content."""
    before, after = _contents(before), _contents(after)
    kinds_before, kinds_after = [kind for kind, _ in before], [kind for kind, _ in after]
    if kinds_before != kinds_after:
        return [f"the file has the outputs {kinds_before}, the run gave {kinds_after}"]
    return [
        f"{kind}: the file has {_around(old, new)}, the run gave {_around(new, old)}"
        for (kind, old), (_, new) in zip(before, after, strict=True)
        if old != new
    ]


def _contents(outputs):
    """List (kind, content) over a cell's outputs; the streams of one name are joined."""
    streams, rest = {}, []
    for output in outputs:
        if output.output_type == "stream":
            streams[output.name] = streams.get(output.name, "") + output.text
        elif output.output_type == "error":
            rest.append(("error", f"{output.ename}: {output.evalue}"))
        else:
            rest += [(mime, str(content)) for mime, content in sorted(output.data.items())
                     if "widget-view" not in mime]
    return list(streams.items()) + rest


def _around(text, other, width=60):
    """Quote the part of `text` where it first differs from `other`."""
    pairs = zip(text, other, strict=False)
    same = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(text), len(other)))
    start = max(0, same - width // 3)
    part = text[start:start + width]
    return f"{'…' if start else ''}{part!r}{'…' if start + width < len(text) else ''}"
