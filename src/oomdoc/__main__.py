"""`python -m oomdoc` and the console script: the answers that need no machinery, else the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run oomdoc; `--version` alone is answered before anything heavy is imported."""
    if sys.argv[1:] == ["--version"]:
        from oomdoc import __version__

        print(f"oomdoc {__version__}")
        return
    from oomdoc.cli import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
