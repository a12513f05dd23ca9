"""/dev/shm and disks: allocations that failed for want of space, and how large each is."""

from __future__ import annotations

import re

from oomdoc.ingest.base import Pattern, Row, pattern, phrases
from oomdoc.ingest.host_events.rows import SIZE, event, fact, host_event, size_in_bytes, size_of_df
from oomdoc.units import parse_size

_FULL_SHARE = 98
"""Percent. Judged: 1.3 MiB of the 64 MiB of a container's default, where a worker's ring buffer takes 10 to 240 MiB."""


def _disk(row: Row, match: re.Match[str]) -> Row | None:
    """A line of `df` for /dev/shm, full; numbers without a unit are KiB.

    `df` rounds its share up, and what is left of a full mount are pages that no segment of a worker fits into.
    """
    row = {"size": size_of_df(match["used"]), "limit": size_of_df(match["all"])}
    return host_event("shm-full", row, match) if int(match["share"]) >= _FULL_SHARE else None


# Names that only objects in /dev/shm have; a full disk says the same words about other paths
SHM_NAME = (
    r"(?:dev/shm\b|\bpsm_[0-9a-f]{4,}|\btorch_\d+_\d+|\bnccl-\w{4,}|\bsem\.mp-|"
    r"[Ss]hared[ _-]memory (?:segment|object|block|region|file|pool|arena|ring|buffer)|\bSharedMemory\(|\bshm_\w+|"
    r"NCCL WARN [^\n]{0,200}posix_fallocate)"
)
_DF = (
    r"^\s*(?:tmpfs|shm)\s+(?:tmpfs\s+)?(?P<all>[\d.]+[KMGTP]?i?)\s+(?P<used>[\d.]+[KMGTP]?i?)\s+[\d.]+[KMGTP]?i?"
    r"\s+(?P<share>\d{1,3})%\s+/dev/shm\s*$"
)
_DF_DISK = (
    r"^\s*(?!tmpfs|shm|udev|devtmpfs|none|run|Filesystem)[\w./:@-]+\s+(?:[a-z][\w.-]{1,20}\s+)?[\d.]+[KMGTP]?i?\s+[\d.]+[KMGTP]?i?\s+(?P<free>[\d.]+[KMGTP]?i?)"
    r"\s+\d{1,3}%\s+/(?!dev\b|run\b|sys\b|proc\b|boot\b)\S*\s*$"
)
NOT_ROOM = r"No such file|Permission denied|invalid argument|File exists|Operation not permitted"
"""What the kernel says of a name or of a right, however much room there is."""

PATTERNS: tuple[Pattern, ...] = (
    pattern(
        "shm-insufficient", "shm", ("Insufficient space in", "exceeds memory available in", "Please check that"),
        (
            rf"Insufficient space in \S*shm\S*[^:\n]*: (?P<size>{SIZE}) required, (?P<limit>{SIZE}) free",
            r"memory request exceeds memory available in /dev/shm"
            r"(?:\. The request is for (?P<size2>\d+) bytes, and the amount available is (?P<limit2>\d+) bytes)?",
            r"Not enough memory to write total of (?P<size3>\d+) bytes\. Please check that /dev/shm",
        ),
        event("shm-full"),
        ("RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 128 MiB required, 16 MiB free.", {"bytes": 128 << 20, "limit_bytes": 16 << 20}),
        (
            "System memory request exceeds memory available in /dev/shm. The request is for 9000 bytes, and the "
            "amount available is 8000 bytes.",
            {"bytes": 9000, "limit_bytes": 8000},
        ),
    ),
    pattern(
        "shm-no-space", "shm",
        phrases("No space left on device|failed to extend|shared memory segment|shared memory object|shared memory(shm)"),
        (
            rf"No space left on device(?=[^\n]{{0,400}}?{SHM_NAME})",
            rf"{SHM_NAME}[^\n]{{0,400}}?No space left on device",
            r"failed to extend /dev/shm/\S+ to (?P<size>\d+) bytes",
            r"Error while creating shared memory segment \S* ?\(size (?P<size2>\d+)\)",
            r"unable to (?:allocate|open|mmap|resize) shared memory ?(?:\(shm\)|object)[^\n]{0,200}\((?:28|12|11)\)",
            # posix_fallocate returns its error and leaves errno alone: torch prints the errno of nothing
            r"unable to allocate shared memory ?\(shm\) for file [^\n]{0,200}: Success \(0\)",
        ),
        event("shm-full", unless=NOT_ROOM),
        "OSError: [Errno 28] No space left on device: '/psm_0a1b2c3d'",
        "RuntimeError: unable to allocate shared memory(shm) for file </torch_71_99_0>: Success (0)",
        "unable to open shared memory object </torch_11_22> in read-write mode: No space left on device (28)",
        ("misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-Ab12Cd to 33030532 bytes", {"bytes": 33030532}),
        ("NCCL WARN Error while creating shared memory segment /dev/shm/nccl-Ab12Cd (size 9637888)", {"bytes": 9637888}),
        "shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
        "E0314 05:11:23.7 1 x.cc:69] \"Failed to increase the shared memory pool size for key 'r_3' to 64 bytes. Error: No space left on device\"",
    ),
    pattern(
        "shm-df-full", "host", ("tmpfs ", "shm  "),
        (_DF,),
        _disk,
        ("shm              64M   64M     0 100% /dev/shm", {"kind": "shm-full", "bytes": 64 << 20, "limit_bytes": 64 << 20}),
        ("tmpfs            128M  126M  2.1M  99% /dev/shm", {"kind": "shm-full", "bytes": 126 << 20, "limit_bytes": 128 << 20}),
    ),
    pattern(
        "shm-df", "host", ("tmpfs ", "shm  "),
        (_DF,),
        fact("shm-size", lambda match: size_in_bytes(size_of_df(match["all"]))),
        ("tmpfs               8192     0      8192   0% /dev/shm", {"value": 8 << 20}),
        ("shm            tmpfs     64M   59M  5.0M  93% /dev/shm", {"value": 64 << 20}),
    ),
    pattern(
        "disk-df", "host", ("overlay ", "nvme", "mapper", "xvda", "sda1", "sda2", "sdb1", "vda1", "vdb1", "md0 "),
        (_DF_DISK,),
        fact("disk-free", lambda match: size_in_bytes(size_of_df(match["free"]))),
        ("overlay         900G  800G   96G  90% /", {"value": 96 << 30}),
        ("overlay        overlay  437G  201G  218G  49% /", {"value": 218 << 30}),
    ),
    pattern(
        "shm-file", "host", ("mmap file", "mapped file", "shared file", "memory file", "shm file"),
        (rf"(?:mmap|mapped|shared|memory|shm) file[^\n]{{0,60}}/dev/shm/\S+\s*\(?(?:size[:= ]*)?(?P<size>{SIZE})",),
        fact("shm-file", lambda match: parse_size(match["size"])),  # the engine divides by a billion
        ("Created mmap file /dev/shm/offload_3a.mmap (8.00 GiB)", {"value": 8 << 30}),
    ),
    pattern(
        "shm-stated", "host",
        ("shm type tmpfs", "shm bytes", "shm total", "shm size", "shm: size", "object store is using", "shm  "),
        (
            rf"/dev/shm type tmpfs \([^)]*\bsize=(?P<limit>{SIZE})",
            rf"/dev/shm (?:bytes )?(?:total |size )?(?:size|total)?[:= ]+(?P<limit2>{SIZE})(?![\d.%]|\s+\d)",
            r"object store is using \S+ instead of /dev/shm because /dev/shm has only (?P<limit3>\d+) bytes available",
            r"^shm {2,}(?P<limit4>\d[\d.]*[KMGT])\s*$",  # a row of df, cut
        ),
        fact("shm-size"),
        ("shm on /dev/shm type tmpfs (rw,nosuid,size=65536k)", {"value": 64 << 20}),
        ("shm              64M", {"value": 64 << 20}),
        ("# /dev/shm bytes total=4096000 free=4095000", {"value": 4096000}),
        ("The object store is using /tmp instead of /dev/shm because /dev/shm has only 67108864 bytes available.", {"value": 64 << 20}),
    ),
)  # fmt: skip
