"""The columns of dense chunks: every fast reader gives what its plain twin gives, on any bytes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoc.intake.cells import NULLS, Field, Memo, is_null, stamp
from oomdoc.intake.columns import Cut, Template
from oomdoc.units import parse_time

QUERY = Template(
    b",",
    5,
    (
        Field("stamp", "t", 0, 0, fraction=3),
        Field("integer", "gpu", 1, 1, b" "),
        Field("integer", "util", 2, 2, b" ", b" %"),
        Field("integer", "used", 3, 3, b" ", b" MiB"),
        Field("text", "name", 4, 4, b" "),
    ),
)
PAIRS = Template(
    b" ",
    6,
    (
        Field("stamp", "t", 0, 1, b"[", b"+01:00]", 0, 3600.0),
        Field("key", "", 2, 2, b"id="),
        Field("integer", "given", 3, 3, b"in="),
        Field("real", "took", 4, 4, b"took=", b"ms"),
        Field("same", "", 5, 5, b"done=yes"),
    ),
    ((b"=", 4), (b'"', 0)),
)
BLOCK = Template(b"\n", 1, (Field("stamp", "t", 0, 0, b"=== ", b" ==="),))


def plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


def shown(cut: Cut | None) -> object:
    """A cut as lists, so that both ways compare."""
    if cut is None:
        return None
    columns = {name: plain(value) for name, value in cut.columns.items()}
    return [int(line) for line in cut.lines], columns, list(cut.odd_lines())


def agree(template: Template, data: bytes, share: float = 0.0) -> Cut | None:
    """Both ways read the data alike; what they give."""
    fast = template.read(data, share)
    assert shown(fast) == shown(template.read_plain(data, share))
    return fast


ROW = b"2026/11/20 20:04:51.120, 3, 93 %, 76012 MiB, NVIDIA H100\n"


def test_a_chunk_of_one_shape() -> None:
    cut = agree(QUERY, ROW * 3)
    assert cut is not None
    assert cut.lines.tolist() == [0, 1, 2]
    assert cut.columns["t"].tolist() == [1795205091.12] * 3
    assert (cut.columns["gpu"][0], cut.columns["util"][0], cut.columns["used"][0]) == (3, 93, 76012)
    assert cut.columns["name"].tolist() == ["NVIDIA H100"] * 3


@pytest.mark.parametrize("null", NULLS)
def test_spelled_nulls_are_masked(null: bytes) -> None:
    cut = agree(QUERY, ROW + b"2026/11/20 20:04:52.120, 4, " + null + b", " + null + b", x\n" + ROW)
    assert cut is not None
    assert cut.columns["util"].tolist() == [93, None, 93]
    assert cut.columns["used"].tolist() == [76012, None, 76012]


def test_a_null_may_keep_the_suffix() -> None:
    cut = agree(Template(b",", 1, (Field("integer", "n", 0, 0, b"n=", b"}"),)), b"n=5}\nn=null}\nn=\nn=}\n")
    assert cut is not None
    assert cut.columns["n"].tolist() == [5, None, None, None]


@pytest.mark.parametrize(
    ("cell", "value"),
    [(b"0", 0), (b"00012", 12), (b"12345678", 12345678), (b"123456789", 123456789), (b"9999999999", 9999999999),
     (b"123456789012345", 123456789012345), (b"1234567890123456", "odd"), (b"1" * 40, "odd"), (b"-1", "odd"),
     (b"1.5", "odd"), (b" 1", "odd"), (b"1 ", "odd"), (b"\xff1", "odd"), (b"1_0", "odd")],
)  # fmt: skip
def test_integers_of_every_width(cell: bytes, value: int | str) -> None:
    template = Template(b",", 2, (Field("integer", "n", 1, 1),))
    cut = agree(template, b"a,7\nb," + cell + b"\nc,8\n")
    assert cut is not None
    assert cut.columns["n"].tolist() == ([7, 8] if value == "odd" else [7, value, 8])


@pytest.mark.parametrize("text", ["0.5", "14436.8", "3.0", "0.065", "12", "123456.789012", "0.1", "1710460800.616123"])
def test_reals_round_as_float_does(text: str) -> None:
    cut = agree(Template(b",", 2, (Field("real", "x", 1, 1),)), f"a,{text}\nb,1.25\nc,7\n".encode())
    assert cut is not None
    assert cut.columns["x"].tolist() == [float(text), 1.25, 7.0]


@pytest.mark.parametrize("text", ["1e5", "1.", ".5", "1.2.3", "-1.0", "1710460800.6161234", "x", "1,5"])
def test_other_reals_are_odd(text: str) -> None:
    cut = agree(Template(b",", 2, (Field("real", "x", 1, 1),)), f"a,{text}\nb,1.25\n".encode())
    assert cut is not None
    assert cut.columns["x"].tolist() == [1.25]
    assert [line for line, _, _ in cut.odd_lines()] == [0]


@pytest.mark.parametrize(
    ("stamp", "t"),
    [(b"[2026-11-20 20:04:51+01:00]", 1795201491.0), (b"[2024-02-29 00:00:00+01:00]", 1709161200.0),
     (b"[2023-02-29 00:00:00+01:00]", None), (b"[2026-11-20 20:04:60+01:00]", None), (b"[2026-11-20 24:04:00+01:00]", None),
     (b"[2026-11-20 20-04:00+01:00]", None), (b"[2026-11-20 20:04:00+02:00]", None), (b"[2026/11/20 20:04:51+01:00]", 1795201491.0)],
)  # fmt: skip
def test_stamps(stamp: bytes, t: float | None) -> None:
    cut = agree(
        PAIRS,
        stamp + b" id=x in=5 took=1.5ms done=yes\n" + b"[2026-11-20 20:04:51+01:00] id=y in=6 took=2ms done=yes\n",
    )
    assert cut is not None
    assert cut.columns["t"].tolist() == ([1795201491.0] if t is None else [t, 1795201491.0])


def test_lines_of_another_shape_are_odd() -> None:
    good = b"[2026-11-20 20:04:51+01:00] id=x in=5 took=1.5ms done=yes\n"
    others = [
        b"\n", b"words\n", good.replace(b"in=", b"on="), good.replace(b"yes", b"yet"), good.replace(b"done", b"more done"),
        good.replace(b"id=x", b'id="'), good.replace(b"id=x", b"id=="), b" " * 5 + b"\n", good.replace(b"ms", b""),
    ]  # fmt: skip
    cut = agree(PAIRS, b"".join(other + good for other in others) + good)
    assert cut is not None
    assert len(cut.lines) == len(others) + 1
    assert [line for line, _, _ in cut.odd_lines()] == [2 * at for at in range(len(others))]


def test_too_few_lines_of_the_shape() -> None:
    assert agree(QUERY, ROW + b"x\n" * 9, 0.7) is None
    assert agree(QUERY, b"", 0.7) is None
    assert agree(QUERY, b"x", 0.7) is None


@pytest.mark.parametrize("ending", [b"", b"\n"])
def test_the_last_line_may_lack_its_newline(ending: bytes) -> None:
    cut = agree(QUERY, ROW + ROW.rstrip(b"\n") + ending)
    assert cut is not None
    assert len(cut.lines) == 2
    cut = agree(BLOCK, b"=== 2026-11-20 20:04:51 ===" + ending)
    assert cut is not None
    assert cut.columns["t"].tolist() == [1795205091.0]


def test_carriage_returns_belong_to_a_suffix() -> None:
    template = Template(b",", 2, (Field("integer", "a", 0, 0), Field("integer", "b", 1, 1, suffix=b"\r")))
    cut = agree(template, b"1,2\r\n3,4\r\n5,6\n")
    assert cut is not None
    assert cut.columns["b"].tolist() == [2, 4]


def test_texts() -> None:
    template = Template(
        b",", 2, (Field("text", "x", 0, 0), Field("text", "y", 1, 1, decode=Memo(lambda text: text.hex())))
    )
    data = b"abc,1\n" + b"x" * 64 + b",2\n" + b"x" * 65 + b",3\n,4\nN/A,5\n\xffz,6\nend\0,7\n"
    cut = agree(template, data)
    assert cut is not None
    assert cut.columns["x"].tolist() == ["abc", "x" * 64, None, None, "�z"]
    assert cut.columns["y"].tolist() == ["31", "32", "34", "35", "36"]


def test_a_memo_stays_small() -> None:
    memo = Memo(lambda text: text.decode())
    for number in range(70_000):
        memo[b"%d" % number]
    assert len(memo) <= 1 << 16


def test_many_texts_share_a_table() -> None:
    memo = Memo(lambda text: text.decode().upper())
    template = Template(b",", 1, (Field("text", "x", 0, 0, decode=memo),))
    for seed in range(3):
        texts = [f"tenant-{(at * 7919 + seed) % 30_011}" for at in range(40_000)]
        cut = template.read("\n".join(texts).encode())
        assert cut is not None
        assert cut.columns["x"].tolist() == [text.upper() for text in texts]
    cut = template.read(b"one\n" * 100)
    assert cut is not None
    assert cut.columns["x"].tolist() == ["ONE"] * 100


def test_is_null() -> None:
    assert is_null(b"[N/A]")
    assert not is_null(b"0")


CELL = st.one_of(
    st.integers(0, 10**17).map(lambda value: b"%d" % value),
    st.floats(0, 1e9).map(lambda value: b"%.3f" % value),
    st.sampled_from(
        [*NULLS, b"2026-11-20 20:04:51.123", b"2024/12/31 23:59:59.999", b"2026-11-31 00:00:00.000", b"7 MiB"]
    ),
    st.text('ab=," \\{}\r\0é0123456789.%:-', max_size=12).map(str.encode),
    st.binary(max_size=6),
)


@st.composite
def chunks(draw: st.DrawFn) -> bytes:
    """Lines of cells: many of them right, some with another number of cells, some with any bytes."""
    lines = []
    for _ in range(draw(st.integers(0, 12))):
        if draw(st.integers(0, 5)):
            cells = [
                draw(st.sampled_from([b"2026/11/20 20:04:51.120", b"2026-11-20T20:05:00,999", b"2026/11/20 20:04:5x.120"])) if draw(st.booleans()) else draw(CELL),
                b" " + (b"%d" % draw(st.integers(0, 10**6)) if draw(st.booleans()) else draw(CELL)),
                b" " + draw(CELL) + b" %",
                b" %d MiB" % draw(st.integers(0, 10**16)),
                b" " + draw(CELL),
            ]  # fmt: skip
        else:
            cells = draw(st.lists(CELL, max_size=7))
        lines.append(b",".join(cells))
    return b"\n".join(lines) + draw(st.sampled_from([b"", b"\n", b"\r\n"]))


@settings(max_examples=60, deadline=None)
@given(chunks())
def test_any_chunk_reads_alike_both_ways(data: bytes) -> None:
    agree(QUERY, data)
    agree(BLOCK, data)


REALS = Template(
    b",", 3, (Field("real", "a", 0, 0), Field("real", "b", 1, 1, b"x", b"s"), Field("key", "", 2, 2, b"k", b"!"))
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.from_regex(rb"[0-9.]{0,12}", fullmatch=True), CELL, CELL), max_size=8))
def test_any_reals_read_alike_both_ways(rows: list[tuple[bytes, bytes, bytes]]) -> None:
    agree(REALS, b"\n".join(b"%s,x%ss,k%s!" % row for row in rows))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([QUERY, PAIRS, BLOCK, REALS]))
def test_any_bytes_read_alike_both_ways(data: bytes, template: Template) -> None:
    agree(template, data)


def test_numpy_waits_for_the_first_chunk() -> None:
    code = "import sys, oomdoc.intake.columns; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-20T20:04:51Z", "2026/11/20 20:04:51.120", "x 2026-11-20 20:04:51,5 +0100 y", "2026-11-20T20:04:51-05:30",
        "2026-02-30 20:04:51", "2026-11-20 24:04:51", "2026-11-20", "", "0000-00-00 00:00:00", "2026-11-20T20:04:51.123456789Z",
    ],
)  # fmt: skip
def test_a_stamp_is_what_parse_time_says(text: str) -> None:
    assert stamp(text) == parse_time(text)
