"""The fix behind the advice: what a change gives, whether it survives, what would not help, and the command to paste.

Rules keep their advice as data. For the leading cause `solve` holds each of their changes against the engine's own
constraints (`guard`), computes what it gives (`predict`), proves it on the recorded traffic where there is any
(`rehearsal`), adds what is smaller or was missing, names what would not help (`advice`) and writes the whole launch
command (`launch`). What refutes itself is dropped and told.
"""

from __future__ import annotations

from oomdoc.solve.situation import Situation, situation
from oomdoc.solve.solver import solve

__all__ = ["Situation", "situation", "solve"]
