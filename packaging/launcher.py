#!/usr/bin/env python3
"""Starts oomdoc out of the folder it lies in; nothing is installed, and its own packages come before those of the host."""

import sys
from pathlib import Path

here = Path(__file__).resolve().parent
made_for = here / "python"  # written by airgap.sh: shared libraries load in that version alone
if made_for.exists() and made_for.read_text().strip() != "{}.{}".format(*sys.version_info):
    sys.exit(
        f"oomdoc: this folder was packed for Python {made_for.read_text().strip()}, and this is {sys.version.split()[0]}."
    )
sys.path.insert(0, str(here / "lib"))
sys.dont_write_bytecode = True

from oomdoc.__main__ import main  # noqa: E402 - the path comes first

main()
