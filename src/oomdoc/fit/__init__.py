"""The capacity worksheet: does a model fit on these devices with these flags, and what is the most that does.

`question` turns flags, a config.json or a report into one `Question`; `sheet` answers all of it, `solve` one flag. Only
numbers go through here: nothing is read from disk and nothing printed.
"""

from __future__ import annotations

from oomdoc.fit.matrix import matrix
from oomdoc.fit.question import Given, Logged, Question, ask
from oomdoc.fit.sheet import worksheet
from oomdoc.fit.solve import SOLVABLE, solve

__all__ = ["SOLVABLE", "Given", "Logged", "Question", "ask", "matrix", "solve", "worksheet"]
