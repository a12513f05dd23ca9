"""Arguments and options that several commands take, in the same words."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Archive, folder or files; - is standard input.", show_default=False),
]
Bundle = Annotated[
    str, typer.Argument(metavar="BUNDLE", help="Archive, folder or file; - is standard input.", show_default=False)
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="GLOB=KIND", help="Read sources whose path matches GLOB as KIND (repeatable)."),
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Leave out evidence before TIME (ISO 8601, UTC without a zone).")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Leave out evidence after TIME.")]
Zone = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", help="Zone of logs that name none: +02:00 or Europe/Berlin.")
]
RuleFolder = Annotated[Path | None, typer.Option("--rules", metavar="DIR", help="Add the rules of this folder.")]
Color = Annotated[
    str,
    typer.Option(
        metavar="auto|always|never", help="Colour; auto heeds NO_COLOR, FORCE_COLOR and whether a terminal reads."
    ),
]
Timeout = Annotated[
    float | None, typer.Option(min=0, metavar="SECONDS", help="Stop after so long (default 3600; 0 is never).")
]
Memory = Annotated[
    str | None,
    typer.Option("--memory-limit", metavar="SIZE", help="Take at most so much memory (default 4GiB; 0 is any)."),
]
MaxSize = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Read at most so much in all, unpacked (default 64GiB).")
]
MaxMembers = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Read at most N files, links and folders (default 100000).")
]
Map = Annotated[
    Path | None,
    typer.Option(
        "--map", metavar="FILE", help="Private map of stand-ins, used again and kept: same names, same stand-ins."
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, notes or warnings on standard error.")]
