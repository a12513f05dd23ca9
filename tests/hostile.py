"""Analyses bundles one after the other under limits of the system: memory, no network, no file written outside a scratch folder.

    python hostile.py SCRATCH REPORT BUNDLE...      one JSON line per bundle into REPORT

What a library does in C is not seen by Python's audit; the tests look at the folders as well.
"""

from __future__ import annotations

import dataclasses
import json
import os
import resource
import sys
import time
from typing import Any

MEMBERS = 5_000  # of a bundle: the default of 100,000 takes half a minute
MEMORY_BYTES = 1 << 30
"""Of data as the system counts it, private maps that nobody has touched included: two thirds more than the worst bundle
reserves (`laughs.tar`, 613 MiB). What is resident is held to less by the tests."""


def main(argv: list[str]) -> int:
    """Run the analyses; the exit status says whether all of them ended as they should."""
    scratch, report, bundles = argv[0], argv[1], argv[2:]
    out = open(report, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - opened before the door is shut
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
    forbidden: list[str] = []

    def audit(event: str, args: tuple[Any, ...]) -> None:
        if event.startswith("socket.") or event in (
            "subprocess.Popen",
            "os.system",
            "os.exec",
            "os.fork",
            "pickle.find_class",
        ):
            forbidden.append(event)
            raise PermissionError(event)
        if event == "open" and isinstance(args[0], str) and _writes(args) and not _inside(args[0], scratch):
            forbidden.append(f"open {args[0]}")
            raise PermissionError(event)
        if event in ("os.mkdir", "os.symlink", "os.link", "os.rename") and not _inside(os.fspath(args[0]), scratch):
            forbidden.append(f"{event} {args[0]}")
            raise PermissionError(event)

    import oomdoc
    from oomdoc.diagnose import Options
    from oomdoc.errors import OomdocError
    from oomdoc.intake.bundle import DEFAULT_LIMITS
    from oomdoc.report import REPORTS

    options = Options(limits=dataclasses.replace(DEFAULT_LIMITS, max_members=MEMBERS))
    sys.addaudithook(audit)
    for path in bundles:
        began = time.process_time()
        row: dict[str, Any] = {"path": path}
        try:
            with oomdoc.analyze(path, options) as analysis:
                told = analysis.report
                page = REPORTS["terminal"](told, top=3, width=100, color=False) + REPORTS["json"](
                    told, top=3, width=100, color=False
                )
                row |= {
                    "verdict": told.verdict,
                    "cause": told.diagnoses[0].cause if told.diagnoses else None,
                    "sources": [source.path for source in told.coverage.sources][:50],
                    "unread": [[item.path, item.why] for item in told.coverage.unread][:50],
                    "escapes": sum(ord(letter) < 32 and letter != "\n" for letter in page),
                }
        except OomdocError as refused:
            row["refused"] = str(refused)
        row["seconds"] = round(time.process_time() - began, 2)
        row["peak_bytes"] = peak()
        row["forbidden"] = list(forbidden)
        out.write(json.dumps(row) + "\n")
        out.flush()
    return 1 if forbidden else 0


def peak() -> int:
    """The most memory resident so far: of this program, which `ru_maxrss` is not (it begins with its parent's)."""
    with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123 - nothing imported while the hook looks
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def _writes(args: tuple[Any, ...]) -> bool:
    mode, flags = args[1], args[2]
    return bool(mode and set(mode) & set("wax+")) or bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _inside(path: str, scratch: str) -> bool:
    return os.path.abspath(path).startswith((scratch + os.sep, "/dev/"))  # noqa: PTH100 - no import while the hook looks


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
