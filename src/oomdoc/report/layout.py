"""A page of text at a width, with or without colour: how reports for a terminal indent, wrap and set off."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.text import Text

from oomdoc.report.words import neutral

WIDEST = 140  # longer lines are hard to follow
NARROWEST_COLUMN = 24


class Page:
    """Collects lines and writes them at a width, with or without colour; knows how to indent and to wrap."""

    def __init__(self, width: int, color: bool) -> None:
        self.width = max(40, min(width, WIDEST))
        self.color = color
        self._out = io.StringIO()
        self._console = Console(
            file=self._out,
            width=self.width,
            color_system="standard" if color else None,
            force_terminal=color,
            no_color=not color,
            legacy_windows=False,
            highlight=False,
            markup=False,
            emoji=False,
            _environ={},
        )

    def text(self) -> str:
        """Everything so far; no line ends with a blank, the last one ends with a newline."""
        lines = self._out.getvalue().split("\n")
        return "\n".join(line.rstrip(" ") for line in lines).strip("\n") + "\n"

    def line(self, text: Text) -> None:
        """One line as it is, however long."""
        self._console.print(text, soft_wrap=True)

    def heading(self, title: str, aside: str = "") -> None:
        """A section's title after an empty line; the aside says what its figures are."""
        self.line(Text())
        head, note = ink(title, "bold"), ink(f"({aside})" if aside else "", "dim")
        if head.cell_len + 1 + note.cell_len <= self.width:
            self.flow(head, note, gap=1)
        else:
            self.flow(Text(), head)
            self.flow(Text(), note, indent=2)

    def flow(self, lead: Text, body: Text, *, indent: int = 0, gap: int = 2, lead_width: int = 0) -> None:
        """`lead` and then `body`, wrapped so that its later lines begin under its first."""
        lead = ink(" " * indent) + lead
        lead.append(
            " "
            * (
                max(indent + lead_width - lead.cell_len, 0)
                + (gap if body and (lead.cell_len > indent or lead_width) else 0)
            )
        )
        room = self.width - lead.cell_len
        if room < NARROWEST_COLUMN and lead.cell_len > indent + 2:  # no place beside it: the body goes below
            lead.rstrip()
            self.line(lead)
            lead = ink(" " * (indent + 2))
            room = self.width - indent - 2
        margin = ink(" " * lead.cell_len)
        for number, part in enumerate(body.wrap(self._console, room) or [Text()]):
            part.rstrip()
            self.line((margin if number else lead) + part)

    def items(self, pieces: Iterable[Text], *, indent: int = 2, between: str = "  ") -> None:
        """Pieces side by side; a piece is never broken unless it is longer than a line."""
        row = Text()
        for piece in pieces:
            if row and indent + row.cell_len + len(between) + piece.cell_len > self.width:
                self.flow(Text(), row, indent=indent)
                row = Text()
            row = row + ink(between if row else "") + piece
        if row:
            self.flow(Text(), row, indent=indent)

    def prose(self, text: str, refs: Sequence[str] = (), style: str = "") -> Text:
        """Text of a rule or a bundle made harmless, with its `path:line` and its `code` set off."""
        clean = neutral(text)
        body = Text()
        for number, piece in enumerate(re.split(r"`([^`]+)`", clean)):
            if number % 2 == 0:
                body.append(piece)
            elif self.color:
                body.append(piece, "bold")
            else:
                body.append(f"`{piece}`")
        for ref in refs:
            if name := neutral(ref):
                body.highlight_words([name], "cyan")
        if style:
            body.stylize_before(style)
        return body


def ink(text: str, style: str = "") -> Text:
    """Text in a style that ends where the text ends, whatever is added to it (a `Text`'s own style would spread)."""
    return Text().append(text, style)
