"""coursekit: the small, tested package behind the course Privacy in Machine Learning.

A module for each chapter, named as the chapter: start with `coursekit.neighbours` and
`coursekit.mechanisms`. Importing the package alone loads nothing else, so it is instant.
It is made for learning and checking; for a real release use OpenDP or Opacus (see README).
"""

__version__ = "0.1.0"
