"""Whose a fault of a device or a program is, which the kernel logs or an exporter repeats."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from oomdoc.scene.lives import WENT_ON_S, Server
from oomdoc.scene.owner import AFTER_S, FOREIGN, OTHER_WORK, OWN, UNKNOWN, Bond, Row, apart, in_time, of_pod
from oomdoc.scene.places import is_engine

PROCESS_XIDS = frozenset((13, 31, 43, 45, 68, 69))
"""Xids that a program brings upon itself; all others are the device's or the driver's, whoever was using it (NVIDIA's catalogue of Xid errors)."""

SENT = frozenset((137, 143))
"""SIGKILL and SIGTERM. A program that ends by a fault of its own has status 139, 132 or 136; where it is a worker, its server notices
and ends with a status below 128."""


def of_fault(row: Row, server: Server) -> Bond:
    """An error of a device or program that the kernel reports (Xid, segfault, reboot): `process`, `t`, `kind`."""
    t, name = row["t"], row["process"]
    what = f"{row['kind']}" + (f" of {name}" if name else "")
    if row["pid"] in server.listed_pids:
        return Bond(OWN, f"{what} names process {row['pid']}, which a list of processes shows to be the server's")
    when, life = in_time(t, server)
    alone = row["kind"] == "segfault" or row["count"] in PROCESS_XIDS
    if is_gauge(row):  # an exporter names the pod that has the device
        bond = None if server.kin.has(name) else of_pod(name, None, server, what)
        if bond is not None and bond.whose == FOREIGN:
            return bond
        if name and not server.kin.has(name) and OTHER_WORK.search(name):
            return Bond(FOREIGN, f"{what}, another program's pod")
        name = None
    if (server.lives or server.kin.shown_beside(row["source"])) and alone and is_engine(name) is False:
        return Bond(FOREIGN, f"{what} is another program's")
    if row["kind"] == "segfault" and server.exit_codes and server.exit_codes <= SENT:
        return Bond(FOREIGN, f"{what}, and the server's container was ended by a signal that somebody sent")
    if when in ("before", "after"):
        return Bond(FOREIGN, f"{what} {apart(t, server)}")
    if when == "survived" and life is not None:
        return Bond(FOREIGN, f"{what}, and the server of {life.source} answered on after it")
    if when == "untimed" and server.lives:
        return Bond(UNKNOWN, f"{what} at a time that cannot be compared")
    return Bond(OWN, what, None if life is None else life.id)


def of_traffic(row: Row, answers: Sequence[float], what: str) -> Bond | None:
    """A fault beside a sheet of requests, where no log tells when the server lived: another's where answers went on after it, or where all
    that the sheet tells came long after. `answers`: when requests were answered, in order. None: it may be the server's."""
    t = row["t"]
    if t is None or not answers:
        return None
    if answers[0] - t > AFTER_S:
        return Bond(FOREIGN, f"{what}, long before the first of the requests that are told")
    nth = bisect_right(answers, t + WENT_ON_S)
    if nth < len(answers) and answers[nth] <= t + AFTER_S:
        return Bond(FOREIGN, f"{what}, and requests were answered on after it")
    return None


def is_gauge(row: Row) -> bool:
    """Whether an exporter's gauge tells the fault: it repeats the last one for as long as the driver is loaded."""
    return (row["text"] or "").startswith("DCGM")


def of_repeated(row: Row, logged: Sequence[tuple[Row, Bond]]) -> Bond | None:
    """Whose the faults of this code are that the kernel logged before an exporter told of one: that one is among them. None: no log has
    one, or they are not all others'."""
    told = [
        bond
        for fault, bond in logged
        if fault["count"] == row["count"] and (None in (fault["t"], row["t"]) or fault["t"] <= row["t"])
    ]
    if not told or any(bond.whose != FOREIGN for bond in told):
        return None
    return Bond(FOREIGN, f"the gauge repeats what the kernel logged: {told[-1].why}")
