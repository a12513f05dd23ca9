"""Screens and queries of the devices of several hosts in one text (`intake.hosts`): each host's are read by themselves.

    == node-a ==                                        node-a: 0, 76012 MiB, 81559 MiB, 97 %
    |   0  NVIDIA H100 80GB HBM3 ...                     node-b: 0, 21012 MiB, 81559 MiB, 0 %
    == node-b ==
    |   0  NVIDIA H100 80GB HBM3 ...

GPU 0 of one is another card than GPU 0 of the other. Rows of the second and later ones have a source of their own, `all.txt[node-b]`; those of
the first keep `all.txt`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest import amd_smi, device_screens, nvidia_smi
from oomdoc.ingest.base import Head, Ingestor
from oomdoc.intake.hosts import apart, writer_of
from oomdoc.intake.scan import Chunk, whole

KIND = "devices-of-hosts"
READERS: tuple[Ingestor, ...] = (nvidia_smi, amd_smi, device_screens)
"""Who reads what tools show of devices."""
_CAP_BYTES = 16 << 20
_SHOWN = (b"MiB /", b"MiB/", b" MiB,", b" MiB\n", b"MEM[", b" MB |", b"VRAM", b"npu-smi")
"""One of them is in every screen or query of devices."""


def reader_of(path: str, data: bytes) -> Ingestor | None:
    """Who reads the devices that a text shows, if it shows any."""
    head = Head(path, data)
    return next((module for module in READERS if module.matches(head)), None)


def matches(head: Head) -> bool:
    """Devices under the names of two hosts at least."""
    return any(word in head.data for word in _SHOWN) and sum(reader_of(head.path, data) is not None for _, data in apart(head.data)) > 1  # fmt: skip


def kind_of(head: Head) -> str:
    """The kind of the first host's text."""
    return next(reader.KIND for _, data in apart(head.data) if (reader := reader_of(head.path, data)))


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """The devices of each host; of a text that is too long to be taken apart, those of one."""
    held, rest = whole(chunks, _CAP_BYTES)
    if rest is not None:
        yield from nvidia_smi.read(path, itertools.chain(held, rest))
        return
    hosts: dict[str, str] = {}
    for host, data in apart(b"".join(chunk.data for chunk in held)):
        reader = reader_of(path, data)
        if reader is not None:
            for batch in reader.read(path, [Chunk(data, 1, True)]):
                yield batch._replace(writer=writer_of(host, hosts))
