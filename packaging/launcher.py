#!/usr/bin/env python3
"""Starts oomdoc out of the folder it lies in; nothing is installed, and no other package of the host is seen."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "lib"))
sys.dont_write_bytecode = True

from oomdoc.__main__ import main  # noqa: E402 - the path comes first

main()
