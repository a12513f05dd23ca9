"""One sweep in a process of its own, to be killed: `driver.py STORE NIGHT ENGINE PATH...`."""

import sys

if __name__ == "__main__":
    from oomdoc.errors import BusyError
    from oomdoc.sweep.run import Settings, sweep

    try:
        sweep(sys.argv[4:], Settings(sys.argv[1], night=sys.argv[2], engine=sys.argv[3], jobs=2, batch_bundles=2))
    except BusyError:
        sys.exit(75)
