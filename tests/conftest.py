"""What holds for every test: the helpers beside this file can be imported, and hypothesis tries the same examples each time.

A run on a change must not fail for what the change did not touch: new examples are for `make fuzz`, which sets OOMDOC_FUZZ.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", derandomize=True)
if "OOMDOC_FUZZ" not in os.environ:
    settings.load_profile("same")
