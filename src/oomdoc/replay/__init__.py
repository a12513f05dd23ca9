"""The recorded traffic run again through the scheduler, against the pool that other flags would give.

`recording.py` reads the bundle, `speed.py` says how long a step takes, `pool.py` how large the pool would be,
`scheduler.py` runs the traffic (`plain.py` is its obvious twin for tests), and `run.py` puts them together and holds the
result against the usage that the server recorded. `rehearsal.py` runs many settings on one recording, for the solver.
"""

from __future__ import annotations

from oomdoc.replay.rehearsal import Rehearsal, Result, rehearse
from oomdoc.replay.run import FLAGS, replay

__all__ = ["FLAGS", "Rehearsal", "Result", "rehearse", "replay"]
