"""Which device a fault names, and on which the server's own processes are: addresses on the bus, uuids, indices."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from oomdoc.regexes import regex
from oomdoc.scene.lives import Server
from oomdoc.scene.lookups import rows_of
from oomdoc.scene.owner import FOREIGN, Bond, Row
from oomdoc.scene.places import ENGINE
from oomdoc.scene.presence import Tables

_BUS = regex(r"(?i)(?:([0-9a-f]{1,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.\d)?")


def key_of(device: str) -> str:
    """One spelling of what names a device: the kernel prints `PCI:0000:0b:00`, nvidia-smi `00000000:0B:00.0`, both one address.

    >>> key_of("0000:0b:00"), key_of("00000000:0B:00.0"), key_of("GPU-0A1B2C3D-4e5f"), key_of("3")
    ('0:0b:00', '0:0b:00', 'gpu-0a1b2c3d-4e5f', '3')
    """
    address = _BUS.fullmatch(device.strip())
    if not address:
        return device.strip().lower()
    return f"{int(address[1] or '0', 16):x}:{address[2]}:{address[3]}".lower()


@dataclass(frozen=True)
class Placement:
    """The devices of one host by what names them, and the indices of those that the server's own processes are on.

    Both are empty where nobody says, or where two hosts were listed: an address is of its host alone.
    """

    index: dict[str, int]
    own: frozenset[int]

    def elsewhere(self, row: Row) -> Bond | None:
        """Whose a fault of a device is that the server is not on; None: it is on it, or nobody says."""
        at = self.index.get(key_of(row["device"])) if row["device"] and self.own else None
        if at is None or at in self.own:
            return None
        on = ", ".join(map(str, sorted(self.own)))
        return Bond(FOREIGN, f"{row['kind']} of device {at}, and the server is on {on}")


def placement_of(store: Tables, server: Server) -> Placement:
    """Where devices are, and the server on them: by its processes in a list of nvidia-smi, else by the devices that it was shown."""
    named: dict[str, set[int]] = defaultdict(set)
    at: dict[int, set[str]] = defaultdict(set)
    for row in rows_of(store, "gpu_device", "DISTINCT gpu, bus_id, uuid", "gpu IS NOT NULL AND coalesce(bus_id, uuid) IS NOT NULL"):  # fmt: skip
        for name in (row["bus_id"], row["uuid"]):
            if name:
                named[key_of(name)].add(row["gpu"])
        if row["bus_id"]:
            at[row["gpu"]].add(key_of(row["bus_id"]))
    if not named or any(len(gpus) > 1 for gpus in named.values()) or any(len(keys) > 1 for keys in at.values()):
        return Placement({}, frozenset())
    pids = server.listed_pids.union(*(life.pids for life in server.lives))
    listed = rows_of(store, "gpu_process", "DISTINCT gpu, pid, name", "gpu IS NOT NULL")
    own = {row["gpu"] for row in listed if row["pid"] in pids or ENGINE.search(row["name"] or "")}
    index = {key: gpus.pop() for key, gpus in named.items()}
    if not own and not server.pods:  # in a pod the numbers are those of what it was given
        flags = "flag IN ('CUDA_VISIBLE_DEVICES', 'NVIDIA_VISIBLE_DEVICES') AND origin IN ('environment', 'command')"
        shown = {key_of(name) for row in rows_of(store, "engine_flag", "DISTINCT value", flags) for name in (row["value"] or "").split(",")}  # fmt: skip
        if all(name.isdigit() or name in index for name in shown):  # `all`, `none` and a slice name no card of these
            own = {int(name) if name.isdigit() else index[name] for name in shown}
    return Placement(index, frozenset(own))
