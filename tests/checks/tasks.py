"""What the tests of the problem sets share."""

import doctest
import re

from coursekit import verify


def tried_examples(solution, prose):
    """Run the examples in the tasks with the solution's names; return how many there were."""
    namespace = verify.run_cells(solution)
    runner = doctest.DocTestRunner(verbose=False)
    tried = 0
    for name, text in prose.items():
        for block in re.findall(r"```python\n(>>>.*?)```", text, re.DOTALL):
            example = doctest.DocTestParser().get_doctest(block, dict(namespace), name, None, 0)
            tried += runner.run(example, clear_globs=False).attempted
    assert runner.summarize(verbose=False).failed == 0
    return tried
