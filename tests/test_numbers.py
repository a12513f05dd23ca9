"""Absurd numbers where figures stand: infinite, negative, of hundreds of digits, in other digits. Every report is made all the same."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest

import oomdoc
from grids import WHOLE
from oomdoc.errors import OomdocError
from oomdoc.evidence.store import Store
from oomdoc.evidence.tables import Batch
from oomdoc.ingest import text_log
from oomdoc.ingest.base import Pattern
from oomdoc.report import REPORTS

SAMPLES = Path(__file__).parents[1] / "sample_logs"
ABSURD = ("inf", "-inf", "nan", "-5", "9" * 400, "9" * 5000, "1e999", "-1e308", "9223372036854775807", "18446744073709551616", "4294967296", "99999999999", "٣٤", "1٣", "²", "½", "0", "1_000", "1e18")  # fmt: skip
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def made(folder: Path) -> None:
    """Every form of the report; no warning says that a query failed."""
    try:
        with oomdoc.analyze(folder) as analysis:
            for form in ("json", "terminal", "markdown", "html"):
                text = REPORTS[form](analysis.report, top=3, width=100, color=False)
                assert form != "json" or json.loads(text)["schema_version"] == "1"
            assert not [warning for warning in analysis.report.warnings if "query failed" in warning]
    except OomdocError:
        pass


@pytest.mark.parametrize("turn", range(len(ABSURD) if WHOLE else 4))
def test_every_number_of_every_known_message(turn: int, tmp_path: Path) -> None:
    """Each number in its turn is one of them; in a whole run each number is each of them."""
    absurd = itertools.cycle(ABSURD[turn * 5 % len(ABSURD) :] + ABSURD[: turn * 5 % len(ABSURD)])
    lines = ["INFO 11-20 20:14:01 [api_server.py:10] vLLM API server version 0.10.2"]
    for pattern in text_log.PATTERNS:
        for sample, _ in pattern.samples:
            line = str(sample)
            lines += [line[: number.start()] + next(absurd) + line[number.end() :] for number in NUMBER.finditer(line)]
    (tmp_path / "vllm.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    made(tmp_path)


@pytest.mark.parametrize("name", ["kv-demand-long-chats", "second-tenant-on-card-one", "killed-while-loading"])
def test_numbers_of_every_source_of_a_bundle(name: str, tmp_path: Path) -> None:
    chance = random.Random(name)
    for often in (0.0005, 0.02):

        def other(number: re.Match[str], share: float = often) -> str:
            return chance.choice(ABSURD) if chance.random() < share else number[0]

        for path in (SAMPLES / name).iterdir():
            if path.is_file() and path.name != "case.toml":
                text = path.read_text(encoding="utf-8", errors="surrogateescape")
                text = NUMBER.sub(other, text)
                (tmp_path / path.name).write_text(text, encoding="utf-8", errors="surrogateescape")
        made(tmp_path)


def test_a_figure_that_cannot_be_is_unknown(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        wild = [float("inf"), float("nan"), -float("inf"), 1e30, 2.5]
        store.add("engine_stat", [{"source": "v.log", "line": n, "running": value, "kv_used": value} for n, value in enumerate([*wild[:4], 3], 1)])  # fmt: skip
        store.load("g.csv", Batch("gpu_sample", {"line": np.arange(1, 6, dtype=np.uint32), "gpu_util": np.array(wild)}))
        store.add("engine_flag", [{"source": "v.log", "line": 1, "flag": "max_model_len", "value": value} for value in ("9" * 20, "1e300", "4096", "1e3")])  # fmt: skip
        store.finish()
        assert store.query("SELECT running, kv_used FROM engine_stat ORDER BY line")[1] == [(None, None)] * 4 + [
            (3, 3.0)
        ]
        assert store.query("SELECT gpu_util FROM gpu_sample ORDER BY line")[1] == [(None,)] * 4 + [(2.5,)]
        assert store.query("SELECT value FROM engine_flag")[1] == [(None,), (None,), ("4096",), ("1e3",)]


def test_a_row_that_cannot_be_finished_is_left_out() -> None:
    sample = ("waits 3 s", {"text": "waits"})
    pattern = Pattern("x", "vllm", ("waits",), re.compile(r"(?P<text>waits) (?P<n>\d+)"), "milestone", (sample,), convert=lambda row, _: {"text": row["text"], "line": int(float(row["n"]) // 1)})  # fmt: skip
    assert list(pattern.rows("waits 3 s")) == [{"text": "waits", "line": 3}]
    assert list(pattern.rows(f"waits {'9' * 400} s")) == []
