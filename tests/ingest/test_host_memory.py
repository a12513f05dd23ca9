"""What the host had left, as the system's own tools print it again and again."""

import io

import pytest

from oomdoc import ingest
from oomdoc.ingest.texts import Texts
from oomdoc.intake.scan import chunks
from oomdoc.units import GIB, KIB, MIB

FREE = "               total        used        free      shared  buff/cache   available\nMem:           {total}        {used}        20Gi       1.0Gi        40Gi        {left}\nSwap:             0B          0B          0B\n"


def rows(text: str) -> list[dict]:
    head = ingest.make_head("x", text.encode())
    ingestor, _ = ingest.recognise(head)
    found = []
    for batch in ingest.read(ingestor, "x", chunks(io.BytesIO(text.encode()))):
        if batch.table == "process_memory":
            names = list(batch.columns)
            found += [dict(zip(names, row, strict=True)) for row in zip(*batch.columns.values(), strict=True)]
    return [row for row in found if row["resource"] == "host-available"]


def left(text: str) -> list[int]:
    return [row["bytes"] for row in rows(text)]


def test_free_before_and_after() -> None:
    text = "before the start\n$ free -h\n" + FREE.format(total="251Gi", used="9Gi", left="240Gi") + "with the server\n$ free -h\n" + FREE.format(total="251Gi", used="230Gi", left="17Gi")  # fmt: skip
    found = rows(text)
    assert [(row["bytes"], row["state"], row["step"]) for row in found] == [(240 * GIB, "before the start", 0), (17 * GIB, "with the server", 1)]  # fmt: skip


def test_one_listing_is_no_series() -> None:
    assert rows(FREE.format(total="251Gi", used="9Gi", left="240Gi")) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mem:  64216 41022 1200 104 21993 22412\nMem:  64216 61022 900 104 2293 2010\n", [22412 * MIB, 2010 * MIB]),
        ("             total       used       free     shared    buffers     cached\nMem:      65757184   42006528   1228800     106496     100000   22421856\n"
         "             total       used       free     shared    buffers     cached\nMem:      65757184   62006528   228800     106496     1000   221856\n", [23750656 * KIB, 451656 * KIB]),
        ("10:00:00\nMemTotal:       131000000 kB\nMemFree:          900000 kB\nMemAvailable:   90000000 kB\n10:00:05\nMemTotal:       131000000 kB\nMemFree:          100000 kB\nMemAvailable:    2000000 kB\n",
         [90000000 * KIB, 2000000 * KIB]),
        ("top - 09:00:01 up 3 days,  1 user\nMiB Mem : 128000.0 total,   900.0 free, 90000.0 used,  30000.0 buff/cache\nMiB Swap:      0.0 total,      0.0 free,      0.0 used.  36000.5 avail Mem\n"
         "top - 09:00:31 up 3 days,  1 user\nMiB Mem : 128000.0 total,   100.0 free, 126000.0 used,  1000.0 buff/cache\nMiB Swap:      0.0 total,      0.0 free,      0.0 used.   1500.0 avail Mem\n",
         [int(36000.5 * MIB), 1500 * MIB]),
        ("procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----\n r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n"
         " 1  0      0 9000000 100000 4000000    0    0     1     2    3    4  5  1 94  0  0\n 9  2      0  200000   1000   30000    0    0     1     2    3    4  5  1 94  0  0\n",
         [13100000 * KIB, 231000 * KIB]),
        ("Linux 6.8.0 (box)  03/02/2027  _x86_64_\n\n10:00:01  kbmemfree  kbavail kbmemused  %memused\n10:01:01   8000000 60000000  70000000     50.00\n10:02:01    300000  1900000 120000000     97.00\n",
         [60000000 * KIB, 1900000 * KIB]),
        ("Mar  2 10:00:01 box earlyoom[7]: mem avail: 30000 of 124546 MiB (24.09%), swap free:    0 of    0 MiB ( 0.00%)\nMar  2 10:00:04 box earlyoom[7]: mem avail:  4000 of 124546 MiB ( 3.21%), swap free:    0 of    0 MiB ( 0.00%)\n",
         [30000 * MIB, 4000 * MIB]),
    ],
)  # fmt: skip
def test_every_tool_that_says_what_is_left(text: str, expected: list[int]) -> None:
    assert left(text) == expected


def test_the_clock_above_a_listing_is_its_moment() -> None:
    text = "23:59:50\nMemAvailable:   90000000 kB\n00:00:20\nMemAvailable:    2000000 kB\n"
    assert [row["elapsed_s"] for row in rows(text)] == [0.0, 30.0]


@pytest.mark.parametrize("text", ["free memory is what matters\nMem: a lot\nMem: less\n", "swpd is a column of vmstat\n1 2 3 4 5 6\n", "Mem:  3 of 4 tests passed\nMem:  4 of 4 tests passed\n"])  # fmt: skip
def test_other_texts_have_none(text: str) -> None:
    assert rows(text) == []


def test_a_log_in_two_chunks_gives_the_same() -> None:
    text = "MemAvailable:   90000000 kB\n" * 3
    whole, parts = Texts(), Texts()
    for chunk in chunks(io.BytesIO(text.encode())):
        whole.hear(chunk)
    for chunk in chunks(io.BytesIO(text.encode()), 30):
        parts.hear(chunk)
    assert [batch.rows for batch in whole.close()] == [batch.rows for batch in parts.close()] != []


@pytest.mark.parametrize(
    "text",
    [
        "09:00:00\n$ pmap -x 77 | tail -1\ntotal kB         90000000  4000000  3900000\n11:00:00\n$ pmap -x 77 | tail -1\ntotal kB         99000000  9000000  8900000\n",
        "09:00:00\n55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:             4000000 kB\nPss:             3900000 kB\n11:00:00\n55d0-7ffe ---p 00000000 00:00 0    [rollup]\nRss:             9000000 kB\nPss:             8900000 kB\n",
    ],
)
def test_the_resident_set_of_a_process_again_and_again(text: str) -> None:
    texts = Texts()
    for chunk in chunks(io.BytesIO(text.encode())):
        texts.hear(chunk)
    found = [batch for batch in texts.close() if batch.table == "process_memory"]
    assert [(batch.columns["resource"], batch.columns["bytes"], batch.columns["elapsed_s"]) for batch in found] == [
        (["host", "host"], [4000000 * KIB, 9000000 * KIB], [0.0, 7200.0])
    ]


STAMPED = (
    "{at}               total        used        free      shared  buff/cache   available\n"
    "{at} Mem:           251Gi        {used}Gi        20Gi       1.0Gi        40Gi        {left}Gi\n"
    "{at} Swap:             0B          0B          0B\n"
)


@pytest.mark.parametrize("stamp", ["10:00:0{}", "[2027-03-02 10:00:0{}]", "2027-03-02T10:00:0{}.120Z"])
def test_free_behind_a_stamp(stamp: str) -> None:
    """`free -h | ts`: the columns are those of the heading, without the stamp."""
    text = STAMPED.format(at=stamp.format(1), used=9, left=240) + STAMPED.format(at=stamp.format(7), used=230, left=17)
    assert left(text) == [240 * GIB, 17 * GIB]


def test_what_is_available_behind_a_stamp() -> None:
    text = "10:00:00 MemAvailable:   90000000 kB\n10:00:05 MemAvailable:    2000000 kB\n"
    assert left(text) == [90000000 * KIB, 2000000 * KIB]


@pytest.mark.parametrize("before", ["worker-3", "10:00", "3 of 4"])
def test_free_behind_other_words(before: str) -> None:
    assert left(STAMPED.format(at=before, used=9, left=240) + STAMPED.format(at=before, used=230, left=17)) == []
