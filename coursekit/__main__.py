"""`python -m coursekit` is the command `coursekit`."""

import sys

from coursekit.cli import main

sys.exit(main())
