"""The text that a saved page shows."""

from __future__ import annotations

import html.parser

_CALLED = {"row": "tr", "cell": "td"}
"""What a workbook saved as XML (SpreadsheetML) calls the parts of its tables."""
_UNSEEN = frozenset(("script", "style", "head", "title"))
_WITHIN_SHARE = 0.8  # of the words of a page; one with more around its text is a document, and quotes


class _Page(html.parser.HTMLParser):
    """The text of a page by line: rows of tables between bars."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: dict[int, str] = {}
        self.within = self.around = 0
        self._open: list[str] = []
        self._row: tuple[int, list[str]] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A cell, a row, or a part that is not shown begins."""
        tag = _CALLED.get(tag, tag)
        if tag == "tr":
            self._row = self.getpos()[0], []
        elif tag in ("td", "th") and self._row is not None:
            self._row[1].append("")
        if tag in _UNSEEN or tag == "pre":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """A row is complete, or a part is over."""
        tag = _CALLED.get(tag, tag)
        if tag == "tr" and self._row is not None:
            line, cells = self._row
            self.lines[line] = "| " + " | ".join(" ".join(cell.split()).replace("|", "/") for cell in cells) + " |"
            self._row = None
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        """Text: of a cell, or where it stands."""
        if self._open and self._open[-1] in _UNSEEN:
            return
        words = len(data.split())
        if self._row is not None:
            if self._row[1]:
                self._row[1][-1] += data
            self.within += words
            return
        self.within += words if self._open else 0
        self.around += 0 if self._open else words
        for number, part in enumerate(data.split("\n"), self.getpos()[0]):
            self.lines[number] = self.lines.get(number, "") + part.rstrip("\r")


def text_of_page(text: str) -> str | None:
    """The text of a page by line; None for a document, which quotes."""
    page = _Page()
    page.feed(text)
    page.close()
    if page.within < _WITHIN_SHARE * (page.within + page.around) or not page.within:
        return None
    return "".join(page.lines.get(number, "") + "\n" for number in range(1, text.count("\n") + 2))
