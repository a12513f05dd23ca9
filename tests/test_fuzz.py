"""Every reader on bytes that were mangled: rows and problems, never an exception, and every row of its table's columns.

`OOMDOC_FUZZ=2000 pytest tests/test_fuzz.py` (or `make fuzz`) tries so many inputs per reader.
"""

from __future__ import annotations

import functools
import io
import os
from pathlib import Path
from typing import BinaryIO, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoc import ingest
from oomdoc.evidence.tables import LOOKALIKE, TABLES
from oomdoc.ingest import text_log
from oomdoc.ingest.base import HEAD_BYTES, Ingestor
from oomdoc.ingest.record import Clock, decode, peel, read_record
from oomdoc.intake.scan import chunks
from oomdoc.intake.unwrap import unwrap

SAMPLES = Path(__file__).parents[1] / "sample_logs"
EXAMPLES = int(os.environ.get("OOMDOC_FUZZ", "25"))
QUICK = settings(max_examples=EXAMPLES, deadline=None, derandomize=EXAMPLES < 100, suppress_health_check=list(HealthCheck))  # fmt: skip
JOINTS = (b"\n", b"\r\n", b"\r", b"\0", b"", b" ", b"\n\n", b",", b"\t", b"|", b"\xff", b"{", b'"', b"]", b"\x1b[1m")


@functools.cache
def texts() -> tuple[bytes, ...]:
    """Heads of the shipped files, and the lines that patterns promise to read."""
    files = [path.read_bytes() for path in sorted(SAMPLES.rglob("*")) if path.is_file() and path.suffix not in (".py", ".gz", ".pyc")]  # fmt: skip
    lines = [text.encode() for pattern in text_log.PATTERNS for text, _ in pattern.samples]
    return (*(data[:3000] for data in files), *lines)


@functools.cache
def pieces() -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(line for text in texts() for line in text.split(b"\n")[:25] if line))


@st.composite
def mangled(draw: st.DrawFn) -> bytes:
    """A real head with a cut, a flipped byte or noise in it, and lines of anything else behind."""
    data = bytearray(draw(st.sampled_from(texts())))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 30))] = draw(st.one_of(st.binary(max_size=12), st.sampled_from(JOINTS)))
    tail = draw(st.lists(st.one_of(st.sampled_from(pieces()), st.binary(max_size=30)), max_size=8))
    return bytes(data) + draw(st.sampled_from(JOINTS)) + draw(st.sampled_from(JOINTS)).join(tail)


def rows_are_whole(reader: Ingestor, data: bytes, size: int) -> None:
    for batch in reader.read("any.log", unwrap(chunks(cast(BinaryIO, io.BytesIO(data)), size))):
        lengths = {len(values) for values in batch.columns.values() if values is not None}
        assert len(lengths) == 1
        if batch.table != LOOKALIKE:
            assert set(batch.columns) <= set(TABLES[batch.table].column_names)
            assert all(1 <= int(line) <= data.count(b"\n") + 1 for line in batch.columns["line"])


@pytest.mark.parametrize("reader", ingest.INGESTORS, ids=lambda reader: reader.KIND)
def test_a_reader_takes_anything(reader: Ingestor) -> None:
    """Whatever `recognise` thinks of it: `--type` may hand any source to any reader."""

    @QUICK
    @given(mangled(), st.sampled_from([64, 4096, 1 << 20]))
    def check(data: bytes, size: int) -> None:
        rows_are_whole(reader, data, size)

    check()


@QUICK
@given(mangled())
def test_every_text_is_recognised(data: bytes) -> None:
    head = ingest.make_head("any.log", data[:HEAD_BYTES])
    reader, kind = ingest.recognise(head)
    assert kind in ingest.KINDS
    for batch in ingest.read(reader, "any.log", chunks(cast(BinaryIO, io.BytesIO(data)))):
        assert batch.rows >= 0


@QUICK
@given(st.one_of(mangled(), st.binary(max_size=200)))
def test_every_line_is_a_record(data: bytes) -> None:
    clock = Clock()
    for number, line in enumerate(data.split(b"\n")[:40], 1):
        record = read_record(number, decode(line), clock)
        assert record.line == number and isinstance(record.text, str)
        assert peel(decode(line))[0] is not None


PLAIN = "(Worker_TP1 pid=77) ERROR 11-20 20:04:51 [gpu_worker.py:12] "


@QUICK
@given(st.text(st.characters(exclude_characters="\r\n\x00\x1b[", exclude_categories=("Cs",)), max_size=60))
def test_an_envelope_keeps_the_message(message: str) -> None:
    """Whatever a message says, the envelopes of one line give it back."""
    import shapes

    plain = read_record(1, PLAIN + message, Clock())
    for name in ("docker-json", "cri", "kubectl-timestamps", "kubectl-prefix", "compose", "journal-short-iso", "journal-json", "rfc5424", "loki-raw", "fluent-bit", "gitlab-runner", "ray-prefix"):  # fmt: skip
        line = shapes.ENVELOPES[name]([(1795205091.0, PLAIN + message)]).rstrip("\n")
        found = read_record(1, line, Clock())
        assert (found.text.rstrip(), found.rank, found.level) == (plain.text.rstrip(), 1, "ERROR"), (name, line)
