"""Marks that terminals, mails and trackers leave in every line of a text: told by its first bytes, taken off line by line.

    ESC [ 0 1 ; 3 2 m, ESC ] 0 ; title BEL, nvidai BS BS ia-smi      what a recorded terminal was told: the text that it showed
    =C2=A0, =3D, a `=` at the end                                    quoted-printable, as mails are sent: the line in its letters
    ||Pod||Restarts||, {color:red}9{color}, {noformat}               a tracker's markup: bars, bare cells, fences
    44&nbsp;870                                                      a blank that no line may break at: a blank

Every line keeps its number.
"""

from __future__ import annotations

import quopri
from collections.abc import Callable, Iterable, Iterator

from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

Change = Callable[[bytes], bytes]

_CODE = regex(
    rb"\x1b\][^\x07\x1b\n]{0,400}(?:\x07|\x1b\\)?|\x1b\[[0-?]{0,40}[ -/]{0,4}[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78MDEc]"
)
_RECORDED = regex(rb"\x1b\]\d|\x1b\[\?\d{1,4}[hl]|[^\s\x08]\x08")
"""What only a recording has: a title, a mode, a letter taken back. Colours alone are known to who reads lines."""
_QUOTED = regex(rb"(?im)^Content-Transfer-Encoding:[ \t]*quoted-printable[ \t]*\r?$")
_QUOTED_NO_MORE = b"Content-Transfer-Encoding: 8bit"
_SOFT_BREAK = regex(rb"=[ \t]*\r?$")
_HEADER_CELLS = regex(rb"(?m)^[ \t]*(?:\|\|[^|\n]{1,80}){2,40}\|\|[ \t]*\r?$")
_HEADER_LINE = regex(rb"[ \t]*(?:\|\|[^|\n]{0,80}){1,40}\|\|\s*$")
_MACRO = regex(rb"\{color(?::[#\w]{1,20})?\}")
_VERBATIM = regex(rb"[ \t]*\{(?:noformat|code)(?::[^{}\n]{0,80})?\}[ \t]*\r?$")
_MONOSPACED = regex(rb"\{\{([^{}\n]{1,200})\}\}")
_BLANKS = regex(rb"\xc2\xa0|\xe2\x80\xaf|\xe2\x80\x87|\xe2\x80\x89")
"""No-break space, its narrow sister, figure space, thin space."""


def marks(head: bytes) -> tuple[str, Change] | None:
    """The name of the marks in a text and what takes them out of a line; None for a text without any."""
    if b"\x1b" in head and _RECORDED.search(head):
        return "terminal", shown
    if b"||" in head and _HEADER_CELLS.search(head):
        return "wiki", unmarked
    return ("blanks", lambda line: _BLANKS.sub(b" ", line)) if _BLANKS.search(head) else None


def shown(line: bytes) -> bytes:
    r"""What a terminal showed of a line.

    >>> shown(b"\x1b[?2004h\x1b]0;me@n1\x07$ nvidai\x08\x1b[K\x08\x1b[Kia-smi\r")
    b'$ nvidia-smi'
    """
    first, *others = _CODE.sub(b"", line).strip(b"\r").split(b"\x08")
    text = bytearray(first)
    for piece in others:
        del text[-1:]  # what was typed before is taken back
        text += piece
    return bytes(text)


def unmarked(line: bytes) -> bytes:
    """A line of a tracker's markup as Markdown has it.

    >>> unmarked(b"||Pod||Peak||"), unmarked(b"|chat-0|{color:red}9{color}|"), unmarked(b"{code:title=x}"), unmarked(b"set {{--tp 2}} or || true")
    (b'|Pod|Peak|', b'|chat-0|9|', b'```', b'set `--tp 2` or || true')
    """
    if _VERBATIM.match(line):
        return b"```"
    line = _MONOSPACED.sub(rb"`\1`", _MACRO.sub(b"", line))
    return line.replace(b"||", b"|") if _HEADER_LINE.match(line) else line


def is_quoted_printable(head: bytes) -> bool:
    """Whether a mail says that its letters are written so that any server lets them pass."""
    return _QUOTED.search(head) is not None


def unquoted(pieces: Iterable[Chunk]) -> Iterator[Chunk]:
    """Such a mail in its letters: a line that was cut stands where its first piece stood, the others are empty."""
    for chunk in pieces:
        lines = _QUOTED.sub(_QUOTED_NO_MORE, chunk.data).split(b"\n")
        begin = 0
        for at, line in enumerate(lines):
            cut = _SOFT_BREAK.search(line)
            if at > begin:
                lines[begin] += line[: cut.start()] if cut else line
                lines[at] = b""
            elif cut:
                lines[at] = line[: cut.start()]
            if not cut:
                lines[begin] = quopri.decodestring(lines[begin])
                begin = at + 1
        yield chunk._replace(data=b"\n".join(lines))
