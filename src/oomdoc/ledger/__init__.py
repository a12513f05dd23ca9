"""Where the memory of each device went: figures of logs, allocator messages and device tools put into one account.

`lives.py` says whose rows are whose, `readings.py` asks the store, `books.py` knows which figures a moment has, `closing.py`
adds one moment up (both pure), `expectation.py` says what model, flags and device ought to give. Printed figures are
intervals; what does not add up is a remainder or a contradiction, never averaged.
"""

from __future__ import annotations

from oomdoc.ledger.expectation import LEAST_DEVICE_BYTES, Expectation, expectation, model_config
from oomdoc.ledger.readings import default_step, ledger

__all__ = ["LEAST_DEVICE_BYTES", "Expectation", "default_step", "expectation", "ledger", "model_config"]
