"""What people put around a text is taken off, and nothing else: by content, with the line numbers that `show` counts."""

from __future__ import annotations

import io
import json
from typing import BinaryIO, cast

import pytest

from oomdoc.intake.handed import handed
from oomdoc.intake.scan import chunks
from oomdoc.intake.unwrap import numbered, unwrap

TABLE = "gpu,used\n0,76012\n1,12\n2,13\n"
LOG = "INFO 11-20 20:04:51 [core.py:1] up\nINFO 11-20 20:04:52 [core.py:1] down\n"


def undone(text: str, size: int = 1 << 20) -> str:
    pieces = unwrap(chunks(cast(BinaryIO, io.BytesIO(text.encode())), size))
    return b"".join(chunk.data for chunk in pieces).decode()


def before(prefix: str, text: str = TABLE) -> str:
    return "".join(prefix + line + "\n" for line in text.splitlines())


@pytest.mark.parametrize("prefix", ["[pod/llm-0/server] ", "node-7 | ", "> ", "    ", "\t"])
def test_what_stands_before_every_line_is_taken_off(prefix: str) -> None:
    assert undone(before(prefix)) == TABLE
    assert undone(before(prefix).replace("1,12\n", "1,12\n" + prefix.rstrip() + "\n")) == TABLE.replace(
        "1,12\n", "1,12\n\n"
    )


def test_a_prefix_that_tells_who_wrote_a_log_stays() -> None:
    coloured = "\x1b[1;36m(APIServer pid=1)\x1b[0;0m " + LOG
    assert undone(before("server-1  | ", coloured)) == before("server-1  | ", coloured)
    traced = LOG + "  went on\n" * 40
    assert undone(before("[pod/llm-0/server] ", traced)) == before("[pod/llm-0/server] ", traced)
    for prefix in ("[pod/llm-0/server] ", "server-1  | ", "> "):
        assert undone(before(prefix, LOG)) == before(prefix, LOG)
    assert undone(before("  ", LOG)) == LOG  # blanks tell nothing


def test_two_prefixes_are_none() -> None:
    mixed = before("[pod/llm-0/server] ") + before("[pod/llm-1/server] ")
    assert undone(mixed) == mixed


def test_a_mark_and_returns() -> None:
    assert undone("\ufeff" + TABLE.replace("\n", "\r\n")) == TABLE


def test_messages_without_a_time_are_their_text() -> None:
    lines = [json.dumps({"message": line, "host": "n7"}) for line in TABLE.splitlines()]
    assert undone("\n".join(lines) + "\n") == TABLE
    timed = (
        "\n".join(json.dumps({"message": line, "time": "2026-11-20T20:04:51Z"}) for line in TABLE.splitlines()) + "\n"
    )
    assert undone(timed) == timed  # `record.peel` reads both
    asked = json.dumps({"message": TABLE, "model": "m", "prompt": "x"}) + "\n"
    assert undone(asked) == asked


def test_a_text_in_a_document_is_its_lines() -> None:
    assert undone(json.dumps({"host": "n7", "output": TABLE}, indent=1)) == TABLE
    assert undone(json.dumps({"host": "n7", "output": TABLE}, indent=1), size=16) == TABLE  # a short first chunk
    for kept in ({"prompt": TABLE, "output": TABLE}, {"output": TABLE, "inner": {"a": 1}}, {"text": "one line"}):
        assert undone(json.dumps(kept)) == json.dumps(kept)


def test_a_block_of_yaml_keeps_its_lines() -> None:
    text = "host: n7\noutput: |\n" + before("  ")
    assert undone(text) == "\n\n" + TABLE
    config_map = "apiVersion: v1\nkind: ConfigMap\ndata: |\n" + before("  ")
    assert undone(config_map) == config_map


def test_newlines_in_letters() -> None:
    assert undone(TABLE.rstrip("\n").replace("\n", "\\n")) == TABLE
    once = "printf a\\nb\n"
    assert undone(once) == once


def test_a_table_of_a_page_is_a_row_a_line() -> None:
    page = "<html><body>\n<table>\n<tr><th>gpu</th><th>used</th></tr>\n<tr>\n<td>0</td>\n<td>76012 &amp; more</td>\n</tr>\n</table></body></html>\n"
    lines = undone(page).split("\n")
    assert lines[2] == "| gpu | used |" and lines[3] == "| 0 | 76012 & more |"
    assert undone("<pre>\n" + TABLE.replace("gpu", "&lt;gpu&gt;") + "</pre>\n").split("\n")[1:4] == [
        "<gpu>,used",
        "0,76012",
        "1,12",
    ]


def test_a_page_that_says_more_is_a_document() -> None:
    page = (
        "<html><body><p>"
        + "How to read such a table in production. " * 8
        + "</p><pre>\n"
        + TABLE
        + "</pre></body></html>\n"
    )
    assert undone(page) == page


def test_lines_that_were_broken_at_a_width_are_whole() -> None:
    long = "".join(f"{word} number {at} begins here and goes on for quite a while, longer than any terminal is wide{word}\n" for at, word in enumerate(("alpha", "beta", "gamma", "delta")))  # fmt: skip
    broken = "".join(line[at : at + 80] + "\n" for line in long.splitlines() for at in range(0, len(line), 80))
    assert [line for line in undone(broken).split("\n") if line] == long.splitlines()
    assert undone(broken).count("\n") == broken.count("\n")


def test_a_window_that_somebody_drew_has_any_width() -> None:
    long = "".join(f"{word} number {at} begins here and goes on for a long while, longer than any window that a person draws by hand on a screen of two{word} halves\n" for at, word in enumerate(("alpha", "beta", "gamma", "delta")))  # fmt: skip
    broken = "".join(line[at : at + 97] + "\n" for line in long.splitlines() for at in range(0, len(line), 97))
    assert [line for line in undone(broken).split("\n") if line] == long.splitlines()
    few = "".join(broken.splitlines(keepends=True)[:6])  # three breaks may be chance
    assert undone(few) == few


def test_an_aligned_table_of_a_terminals_width_is_not_joined() -> None:
    free = (
        "               total        used        free      shared  buff/cache   available\n"
        "Mem:           125Gi        21Gi        98Gi       0.1Gi       6.0Gi       103Gi\n"
        "Swap:             0B          0B          0B\n"
    )
    assert {len(line) for line in free.splitlines()[:2]} == {80}
    assert undone(free) == free


def test_rows_of_one_width_are_rows() -> None:
    rows = "".join(
        f"2026/11/20 20:04:{at:02d}.000, 0, NVIDIA H100 80GB HBM3, 76012 MiB, 81559 MiB, 9{at % 10} %, {at % 10}\n"
        for at in range(20)
    )
    width = len(rows.split("\n")[0])
    padded = "".join(line.replace("NVIDIA", "N" * (80 - width) + "NVIDIA") + "\n" for line in rows.splitlines())
    assert {len(line) for line in padded.splitlines()} == {80}
    assert undone(padded) == padded


def test_rows_of_one_form_are_rows_whatever_they_begin_with() -> None:
    listed = "".join(
        f"GPU-{device}c791fca-99ad-fff3-0fcc-78cab9dfe0b5, 8842{at:02d}, VLLM::Worker_TP{at}, 7700{at} MiB\n"
        for at, device in enumerate("6af2c0de")
    )
    assert len({len(line) for line in listed.splitlines()}) == 1
    assert undone(listed) == listed
    told = (
        "a line that says one thing, then another, and has to be told to its very end, wherever that may be; so it is "
        * 9
    )[:640]
    broken = "".join(told[at : at + 80] + "\n" for at in range(0, len(told), 80))
    assert undone(broken).split() == told.split()


@pytest.mark.parametrize(
    "text", [TABLE, LOG, "", "\n", "{", "<", "a: |\n", "| a | b |\n|---|---|\n| 1 | 2 |\n", "cat x | grep y\n"]
)
def test_a_plain_text_is_left_alone(text: str) -> None:
    assert handed(text.encode()) is None
    assert undone(text) == text


def test_lines_are_counted_as_they_are_shown() -> None:
    for text in (json.dumps({"output": TABLE}), TABLE.rstrip("\n").replace("\n", "\\n"), before("> ")):
        stream = cast(BinaryIO, io.BufferedReader(io.BytesIO(text.encode())))  # type: ignore[arg-type]
        shown = numbered(stream).read().decode().split("\n")
        told = undone(text).split("\n")
        assert [line.removeprefix("> ") for line in shown] == told


def test_a_table_that_is_printed_anew_under_each_moment_is_not_joined() -> None:
    row = "9f02c8b7711e   umbra-exporter".ljust(96) + "0B / 0B   12"
    looks = "".join(f"2026-03-02T0{hour}:00:00Z\n{row}\n" for hour in range(8))
    assert undone(looks) == looks


BLOCKS = "Filesystem     1{unit}  Used Available Use% Mounted on\nshm                   64     3        61   5% /dev/shm\n/dev/vda1         102400 92400     10000  91% /\n"


@pytest.mark.parametrize(
    ("unit", "letter"),
    [("M-blocks", "M"), ("G-blocks", "G"), ("048576-blocks", "M"), ("M-Blöcke", "M")],
    ids=["MiB", "GiB", "POSIX", "in another tongue"],
)
def test_the_unit_of_a_list_of_file_systems_stands_behind_its_numbers(unit: str, letter: str) -> None:
    rows = undone(BLOCKS.replace("{unit}", unit) + "\n$ free\nused 4 5 6 7% /x\n").splitlines()
    assert rows[1].split() == ["shm", f"64{letter}", f"3{letter}", f"61{letter}", "5%", "/dev/shm"]
    assert rows[2].split()[1:4] == [f"102400{letter}", f"92400{letter}", f"10000{letter}"]
    assert rows[-1] == "used 4 5 6 7% /x", "behind another command nothing is changed"


def test_blocks_of_a_kibibyte_and_cells_with_a_unit_stay() -> None:
    plain = BLOCKS.replace("{unit}", "K-blocks")
    assert undone(plain) == plain
    sized = BLOCKS.replace("{unit}", "G-blocks").replace("64     3        61", "64G    3G       61G")
    assert undone(sized).splitlines()[1] == sized.splitlines()[1]
