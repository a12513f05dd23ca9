"""`oomdoc show`: the lines that a report cites."""

from __future__ import annotations

from typing import Annotated

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Color, Paths
from oomdoc.errors import EXIT_OK
from oomdoc.limits import MEMORY_BYTES, TIMEOUT_S, limited


def show(
    paths: Paths,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="PATH:LINE", help="A place as a report cites it; path:first-last too.", show_default=False
        ),
    ],
    context: Annotated[
        int, typer.Option("-C", "--context", min=0, max=10_000, metavar="N", help="Lines before and after.")
    ] = 3,
    color: Color = "auto",
) -> int:
    """Print the lines behind a path:line that a report cites.

    Name the bundle as it was analysed. The cited path may leave out its first folders where that is unambiguous.
    Control characters are made visible.

    \b
    Example:
      oomdoc show bundle.tar.gz pods/vllm-0/vllm.log:812 -C 10
    """
    from oomdoc.assemble.show import lines
    from oomdoc.report.words import neutral, neutral_line

    bold, dim, end = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if console.colored(color) else ("", "", "")
    with limited(TIMEOUT_S, MEMORY_BYTES):
        excerpt = lines(reading.inputs(paths), ref, context)
    digits = len(str(excerpt.lines[-1][0]))
    console.out(f"{dim}{neutral(excerpt.path)}{end}\n")
    for number, text in excerpt.lines:
        asked = excerpt.first <= number <= excerpt.last
        mark, on, off = (">", bold, end) if asked else (" ", "", "")
        console.out(f"{mark} {dim}{number:>{digits}}{end}  {on}{neutral_line(text)}{off}".rstrip() + "\n")
    return EXIT_OK
