"""Labelled cases whose evidence is told in another form keep their first cause: a part of `retold.py`, which tries them all."""

from __future__ import annotations

from pathlib import Path

import pytest
import retold

ROUNDS = Path(__file__).parent / "rounds"
