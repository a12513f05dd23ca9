"""What terminals, mails and trackers leave in a text is taken off, and what only looks like it stays."""

from __future__ import annotations

import io
import quopri
from typing import BinaryIO, cast

from oomdoc.intake.handed import handed
from oomdoc.intake.scan import chunks
from oomdoc.intake.unwrap import unwrap


def undone(text: str) -> str:
    pieces = unwrap(chunks(cast(BinaryIO, io.BytesIO(text.encode())), 1 << 20))
    return b"".join(chunk.data for chunk in pieces).decode()


def test_a_recorded_terminal_gives_what_it_showed() -> None:
    shown = "me@n2:~$ free -m\nMem: 7 3 4\nme@n2:~$ exit\n"
    told = "\x1b[?2004h\x1b]0;me@n2\x07\x1b[01;32mme@n2\x1b[00m:~$ fer\x08\x1b[K\x08\x1b[Kree -m\r\n\x1b[?2004l\rMem: 7 3 4\r\n\x1b[?2004hme@n2:~$ exit\r\n"
    assert undone(told) == shown
    coloured = "\x1b[36mINFO\x1b[0m up\n\x1b[31mERROR\x1b[0m down\n"
    assert undone(coloured) == coloured  # who reads lines knows colours
    assert handed(b"took \x1b[1mA\x1b[0m\n") is None


def test_two_panes_stand_one_below_the_other() -> None:
    left = [
        "INFO 05-06 07:08:09 [loggers.py:9] Running: 3",
        " reqs, Waiting: 0 reqs",
        "INFO 05-06 07:08:19 [loggers.py:9] Running: 9",
        "INFO 05-06 07:08:29 [loggers.py:9] up",
        "",
        "",
    ]
    right = ["gpu,used", "0,512", "1,9", "", "$ uptime", "up 4 days"]
    rows = [f"{one:<45}│{other}" for one, other in zip(left, right, strict=True)]
    rows[3] = rows[3].replace("│", "├" + "─" * 8)
    text = undone("\n".join(rows) + "\n")
    assert "[loggers.py:9] Running: 3 reqs, Waiting: 0 reqs\n" in text and "│" not in text
    assert text.endswith("gpu,used\n0,512\n1,9\n\n$ uptime\nup 4 days\n\n")


def test_a_table_is_no_pane() -> None:
    names = [f"{'a name of thirty letters and ' + str(at):<40}│ {at}" for at in range(8)]
    ruled = "\n".join([names[0], "─" * 40 + "┼───", *names[1:]]) + "\n"
    assert undone(ruled) == ruled
    boxed = "\n".join(f"│ {'x' * 40} │ {at} │" for at in range(8)) + "\n"
    assert undone(boxed) == boxed
    listing = "\n".join(f"{at:<6} │ text of a listing" for at in range(8)) + "\n"
    assert undone(listing) == listing


def test_a_mail_is_read_in_its_letters() -> None:
    head = "Subject: box\nContent-Transfer-Encoding: quoted-printable\n\n"
    body = "started with --max-num-seqs=512 and " + "more words " * 12 + "\nCafé at 10\u00a0GiB\n"
    sent = head + quopri.encodestring(body.encode()).decode()
    read = undone(sent)
    assert "--max-num-seqs=512 and more words" in read and "Café at 10 GiB\n" in read
    assert read.count("\n") == sent.count("\n")
    plain = "a=3D stands in a note\nand =C2=A0 too\n"
    assert undone(plain) == plain


def test_a_trackers_markup_is_markdown() -> None:
    marked = "h2. Found\n||Pod||Peak||Limit||\n|web-1|{color:#f00}9 GiB{color}|12 GiB|\n{code:title=log}\nup\n{code}\n"
    assert "|Pod|Peak|Limit|\n|web-1|9 GiB|12 GiB|\n```\nup\n```\n" in undone(marked)
    shell = "test -f a || exit 1\ntest -f b || exit 2\n"
    assert undone(shell) == shell
