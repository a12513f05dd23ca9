"""How devices are connected: the matrix of `nvidia-smi topo -m`, and that of `rocm-smi --showtopotype`.

            GPU0    GPU1    NIC0    CPU Affinity    NUMA Affinity
    GPU0     X      NV18    PIX     0-47            0
    GPU1    NV18     X      SYS     48-95           1

One row of `gpu_link` for each device and peer. It bears on the speed of tensor parallelism, and on peer-to-peer buffers; on
memory only in so far as it says how many devices the host has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head
from oomdoc.ingest.problems import Capped
from oomdoc.ingest.record import peel
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "gpu-topology"

_NODE = regex(r"GPU\d{1,3}|NIC\d{1,3}|mlx\d_\d{1,2}|[a-z]+_bond_\d|rocep\S{1,20}")
_HEADER = regex(r"\s*GPU\d{1,3}(?:\s+GPU\d{1,3})*(?:\s+(?:" + _NODE.pattern + r"))*(?:\s+CPU Affinity.*)?\s*")
_ROW = regex(r"\s*GPU(?P<gpu>\d{1,3})\s+(?P<cells>\S.*)")
_LINK = regex(r"X|NV\d{1,2}|PIX|PXB|PHB|NODE|SYS|XGMI|PCIE|0|N/A")


def matches(head: Head) -> bool:
    """A header of devices above a row of links."""
    if b"GPU0" not in head.data:
        return False
    lines = [line for line in head.lines[:40] if line.strip()]
    return any(
        _HEADER.fullmatch(above) and (row := _ROW.fullmatch(line)) and _LINK.fullmatch(row["cells"].split()[0])
        for above, line in pairwise(lines)
    ) and 3 * sum(1 for line in lines if _ROW.match(line) or _HEADER.fullmatch(line)) >= sum(
        1 for line in lines if "=" not in line and not line.endswith(":")
    )


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """A row for each device and peer; the legend is passed over."""
    rows = Capped()
    nodes: list[str] = []
    for chunk in chunks:
        for number, raw in enumerate(chunk.data.split(b"\n"), chunk.first_line):
            line = peel(raw[:4096].decode("utf-8", "replace").rstrip())[0]
            row = _ROW.fullmatch(line)
            if _HEADER.fullmatch(line):
                nodes = [
                    name for name in re.split(r"\s+", line.split("CPU Affinity")[0].strip()) if _NODE.fullmatch(name)
                ]
            elif row and nodes:
                cells = row["cells"].split()[: len(nodes)]
                if len(cells) < len(nodes) or not all(map(_LINK.fullmatch, cells)):
                    rows.problem(number, f"not a link to each of {len(nodes)} peers", line)
                    continue
                for peer, link in zip(nodes, cells, strict=True):
                    if link not in ("X", "0") and peer != f"GPU{row['gpu']}":
                        rows.add("gpu_link", number, gpu=int(row["gpu"]), peer=peer, link=link)
        yield from rows.take()
    yield from rows.close()
