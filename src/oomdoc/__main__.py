"""`python -m oomdoc` and the console script: the answers that need no machinery, else the command line."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run oomdoc; `--version` alone is answered before anything heavy is imported."""
    _occupy()
    if sys.argv[1:] == ["--version"] and sys.stdout is not None:
        from oomdoc import __version__

        try:
            print(f"oomdoc {__version__}", flush=True)
        except OSError:  # said below
            pass
        else:
            return
    # numpy would start a thread per core for linear algebra that nobody asks for: 40 ms of CPU
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # a run makes hardly any cycles, and looking for them among all that is imported costs 7 % of a small one
    gc.disable()
    from oomdoc.cli import run

    _leave(run(sys.argv[1:]))


def _occupy() -> None:
    """Where standard streams are closed, keep their numbers: the next file opened would get one, and be written to as such."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _leave(status: int) -> None:
    """End the process. To take every imported module apart first costs a tenth of a small run, and nothing is left to close."""
    if "multiprocessing" in sys.modules:  # a sweep: its own exit waits for workers
        sys.exit(status)
    os._exit(status)  # both streams are empty by now


if __name__ == "__main__":
    main()
