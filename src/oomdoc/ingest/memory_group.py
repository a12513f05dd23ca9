"""What a memory group (a container, a unit of systemd) holds: `memory.stat` of both versions of control groups, as it is.

    cache 29684113408                    anon 4512354304
    rss 4512354304                       file 29684113408
    hierarchical_memory_limit 34359738368

Anonymous memory is the processes' own, file memory is the page cache of what they read, which the kernel takes back when somebody
needs it: a group that is full of files is not short of memory. Rows of `process_memory`: resource `host` (anonymous and shared),
`page-cache`, `host-limit`. Several listings in one text are several samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from oomdoc.evidence.tables import Batch
from oomdoc.ingest.base import Head, Rows
from oomdoc.intake.scan import Chunk
from oomdoc.regexes import regex

KIND = "memory-group"

_LINE = regex(r"\s*(?:\S*memory\.stat:)?(?P<key>[a-z][a-z_0-9]{2,40})[ \t]+(?P<value>\d{1,20})\s*$")
_KEYS = """
    cache rss rss_huge shmem mapped_file swap swapcached dirty writeback pgpgin pgpgout pgfault pgmajfault inactive_anon active_anon
    inactive_file active_file unevictable hierarchical_memory_limit hierarchical_memsw_limit anon file kernel kernel_stack pagetables percpu
    sock vmalloc file_mapped file_dirty file_writeback anon_thp file_thp shmem_thp slab slab_reclaimable slab_unreclaimable
    workingset_refault_anon workingset_refault_file zswap zswapped sec_pagetables"""
_OWN = frozenset(_KEYS.split())
_V1, _V2 = frozenset(("cache", "rss")), frozenset(("anon", "file"))
_NO_LIMIT = 1 << 60
_LINE_CAP = 200


def _key(text: str) -> tuple[str, int] | None:
    found = _LINE.match(text)
    return (found["key"].removeprefix("total_"), int(found["value"])) if found else None


def matches(head: Head) -> bool:
    """Both halves of one of the versions, in lines most of which are such counters."""
    if b"\x00" in head.data:
        return False
    pairs = [_key(line) for line in head.told[:200]]
    keys = {pair[0] for pair in pairs if pair}
    known = sum(pair is not None and pair[0] in _OWN for pair in pairs)
    return (keys >= _V1 or keys >= _V2) and known >= 4 and 2 * known >= len(pairs)


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Anonymous memory, page cache and limit of each listing."""
    rows = Rows()
    values: dict[str, int] = {}
    places: dict[str, int] = {}
    step = 0

    def close() -> None:
        nonlocal step
        shared = values.get("shmem", 0)
        if "anon" in values:
            own, cached, at = values["anon"] + shared, values.get("file", 0) - shared, "anon"
        elif "rss" in values:
            own, cached, at = values["rss"] + shared, values.get("cache", 0) - shared, "rss"
        else:
            return
        told = {"host": (own, at), "page-cache": (max(0, cached), "file" if "file" in values else "cache")}
        limit = values.get("hierarchical_memory_limit", _NO_LIMIT)
        if limit < _NO_LIMIT:
            told["host-limit"] = (limit, "hierarchical_memory_limit")
        for resource, (size, key) in told.items():
            line = places.get(key, places[at])
            rows.add("process_memory", line, name="memory group", resource=resource, bytes=size, step=step)
        step += 1

    for chunk in chunks:
        for number, text in chunk.lines(_LINE_CAP):
            pair = _key(text)
            if pair is None or pair[0] not in _OWN:
                continue
            bare = text.split()[0].rpartition(":")[2]
            if bare in places and bare == pair[0]:
                close()
                values.clear()
                places.clear()
            if pair[0] not in values or bare.startswith("total_"):
                values[pair[0]], places[pair[0]] = pair[1], number
    close()
    yield from rows.take()
