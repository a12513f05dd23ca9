"""Bundles made to hurt: each is read as far as it goes, within memory and time, and the good log beside it is diagnosed.

All of them are analysed by `hostile.py` in one process under limits of the system; each test looks at its own row.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from grids import made_once

REPLAYS_ANEW = True

SAMPLES = Path(__file__).parents[1] / "sample_logs"
GOOD = (SAMPLES / "sampler-warmup-1024" / "vllm.log").read_bytes()
CAUSE = "max-num-seqs-too-high"
TIME_S = 60.0  # of CPU for one bundle on a slow machine; most take less than one
MEMORY_BYTES = 512 << 20
HEAD = b"INFO 01-05 12:00:00 [x.py:1] "


def tar(entries: list[tuple[str, bytes, bytes, str]]) -> bytes:
    """A tar of (name, data, kind, link), the good log at its end."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, data, kind, link in [*entries, ("good/vllm.log", GOOD, tarfile.REGTYPE, "")]:
            info = tarfile.TarInfo(name)
            info.size, info.type, info.linkname = len(data), kind, link
            archive.addfile(info, io.BytesIO(data))
    return raw.getvalue()


def file(name: str, data: bytes = b"hello\n") -> tuple[str, bytes, bytes, str]:
    return name, data, tarfile.REGTYPE, ""


def names() -> bytes:
    kinds = [(tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "../../x"), (tarfile.CHRTYPE, ""), (tarfile.BLKTYPE, ""), (tarfile.FIFOTYPE, "")]  # fmt: skip
    evil = ["../../../../tmp/oomdoc-was-here", "/tmp/oomdoc-was-here", "..\\..\\oomdoc-was-here", "C:\\oomdoc-was-here", "a/../../oomdoc-was-here", "\x1b]0;title\x07.log", "=cmd|' /C calc'!A0.csv"]  # fmt: skip
    return tar([*[file(name) for name in evil * 2], *[(f"special-{n}", b"", kind, link) for n, (kind, link) in enumerate(kinds)]])  # fmt: skip


def zeros(gib: int) -> bytes:
    """A zstd of so many GiB of zeros, written as frames of 64 MiB."""
    frame = zstandard.ZstdCompressor().compress(bytes(64 << 20))
    return frame * (16 * gib)


def endless_line(mib: int) -> bytes:
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1, mtime=0) as packed:
        packed.write(HEAD + b"GPU KV cache size: ")
        for _ in range(mib):
            packed.write(b"9,(((Available KV cache memory " * (1 << 15))
    return raw.getvalue()


def nested(depth: int) -> bytes:
    data = GOOD
    for level in range(depth):
        raw = io.BytesIO()
        with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(f"level-{level}.zip" if level else "vllm.log", data)
            if level == depth - 1:
                archive.writestr("near.log", GOOD)
        data = raw.getvalue()
    return data


def many(count: int) -> bytes:
    """A zstd of a tar with so many empty members of one name, and the good log before them."""
    info = tarfile.TarInfo("empty.log")
    first = tar([])
    return zstandard.ZstdCompressor().compress(first[: (len(first) // 512 - 2) * 512].rstrip(b"\0") + _pad(first) + info.tobuf() * count)  # fmt: skip


def _pad(data: bytes) -> bytes:
    return bytes(-len(data.rstrip(b"\0")) % 512)


def lying() -> bytes:
    """A tar whose header promises 8 GiB, behind the good log."""
    info = tarfile.TarInfo("promised.log")
    info.size = 8 << 30
    whole = tar([])
    return whole.rstrip(b"\0") + _pad(whole) + info.tobuf() + b"x" * 600


def sparse() -> bytes:
    """A GNU sparse member of 1 TiB that stores 512 bytes."""
    info = tarfile.TarInfo("sparse.log")
    info.type, info.size = tarfile.GNUTYPE_SPARSE, 512
    head = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    head[386:398], head[398:410] = b"%011o\0" % 0, b"%011o\0" % 512
    head[483:495] = b"\x80" + (1 << 40).to_bytes(11, "big")
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + b"INFO sparse".ljust(512, b"\n") + tar([])


def laughs() -> bytes:
    yaml = "a: &a [lol,lol,lol,lol,lol,lol,lol,lol,lol]\n" + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 9)}]\n" for n in range(9))  # fmt: skip
    xml = '<?xml version="1.0"?>\n<!DOCTYPE nvidia_smi_log [<!ENTITY a "lol">' + "".join(f'<!ENTITY {chr(98 + n)} "{("&" + chr(97 + n) + ";") * 10}">' for n in range(9)) + "]>\n<nvidia_smi_log><gpu id=\"0\"><product_name>&j;</product_name></gpu></nvidia_smi_log>\n"  # fmt: skip
    deep = b'{"items": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    pod = b"apiVersion: v1\nkind: Pod\nspec: " + b"{a: " * 20_000
    return tar([file("values.yaml", yaml.encode()), file("smi.xml", xml.encode()), file("deep.json", deep), file("pod.yaml", pod), file("entries.json", b'[{"timestamp": 1, "message": "x"},' + b"{}," * 3_000_000 + b"{}]")])  # fmt: skip


def words() -> bytes:
    """Text that terminals, spreadsheets, browsers and regular expressions might act on."""
    lines = [
        HEAD + b"\x1b]0;owned\x07\x1b[2J\x1b[31mGPU KV cache size: 9 tokens",
        b"=HYPERLINK(\"http://192.0.2.1\",\"x\")",
        HEAD + b"Received request a: prompt: '<script>alert(1)</script> torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 9 GiB', params: x",
        HEAD + b"KV cache memory " + b"9" * 60_000,
        HEAD + b"Free memory on device (" * 2500,
        b"ValueError: " + b"(" * 60_000,
        b"Sequence group " + b"is preempted by mode " * 3000,
        HEAD + b"non-default args: {" + b"{'a': [" * 9000,
        HEAD + b"Dumping scheduler output " + b"prompt_token_ids_len=" * 3000,
        b"\xe2\x80\xae txt.exe \xef\xbb\xbf",
    ]  # fmt: skip
    return tar([file("words.log", b"\n".join(lines) + b"\n"), file("rows.csv", b"timestamp,prompt_tokens\n=1+1,@SUM(A1)\n+2,-3\n")])  # fmt: skip


BUNDLES: dict[str, Callable[[], bytes]] = {
    "names.tar": names,
    "flat-bomb.zst": lambda: zeros(8),
    "bomb-in-tar.tar": lambda: tar([file("zeros.zst", zeros(2))]),
    "endless-line.log.gz": lambda: endless_line(16),
    "nested.zip": lambda: nested(12),
    "many.tar.zst": lambda: many(200_000),
    "lying.tar": lying,
    "sparse.tar": sparse,
    "laughs.tar": laughs,
    "words.tar": words,
    "utf16.log": lambda: GOOD.decode("utf-8", "replace").encode("utf-16"),
    "nuls.log": lambda: bytes(5000) + GOOD.replace(b"\n", b"\n\0\0\0", 200) + bytes(100_000),
    "gzip-that-lies.log.gz": lambda: gzip.compress(GOOD, mtime=0)[:-4] + b"\xff\xff\xff\x7f",
    "cut.tar.gz": lambda: gzip.compress(tar([file("a.log", GOOD)]), mtime=0)[:-900],
    "nothing.bin": lambda: bytes(range(256)) * 64,
}
STILL = {name for name in BUNDLES if name not in ("flat-bomb.zst", "endless-line.log.gz", "nothing.bin")}
"""Bundles in which the good log can be read all the same."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    root = made_once("hostile", tmp_path_factory.getbasetemp(), analysed)
    found = [json.loads(line) for line in (root / "report").read_text().splitlines()]
    return {Path(row["path"]).name: row for row in found}


def analysed(root: Path) -> None:
    """All of them below the root, and `report`, a row for each."""
    scratch = root / "scratch"
    scratch.mkdir()
    given = root / "given"
    given.mkdir()
    for name, make in BUNDLES.items():
        (given / name).write_bytes(make())
    before = {path.name: path.stat().st_size for path in given.iterdir()}
    argv = [sys.executable, str(Path(__file__).with_name("hostile.py")), str(scratch), str(root / "report"), *(str(given / name) for name in BUNDLES)]  # fmt: skip
    env = {
        **os.environ,
        "TMPDIR": str(scratch),
        # glibc makes one more arena of 64 MiB of addresses for each thread that finds the others taken: on a
        # loaded machine the same run reserves more of them, and the limit below counts addresses
        "MALLOC_ARENA_MAX": "2",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(SAMPLES.parent / "src"),
    }
    ran = subprocess.run(argv, cwd=scratch, env=env, capture_output=True, text=True, timeout=1800)
    found = [json.loads(line) for line in (root / "report").read_text().splitlines()]
    assert ran.returncode == 0, (ran.stderr[-2000:], found[-1:])
    assert {path.name: path.stat().st_size for path in given.iterdir()} == before
    assert list(scratch.iterdir()) == [], "something was left in the scratch folder"


def whys(row: dict[str, Any]) -> Iterator[str]:
    yield from (why for _, why in row.get("unread", ()))


@pytest.mark.parametrize("name", BUNDLES)
def test_time_and_memory_are_bounded_and_nothing_is_touched(name: str, rows: dict[str, dict[str, Any]]) -> None:
    row = rows[name]
    assert row["seconds"] < TIME_S
    assert row["peak_bytes"] < MEMORY_BYTES
    assert row["forbidden"] == []
    assert row.get("escapes", 0) == 0


@pytest.mark.parametrize("name", sorted(STILL))
def test_the_good_log_is_diagnosed_all_the_same(name: str, rows: dict[str, dict[str, Any]]) -> None:
    assert rows[name].get("cause") == CAUSE, rows[name]


def test_nothing_was_written_under_a_name_that_an_archive_chose(rows: dict[str, dict[str, Any]]) -> None:
    assert not Path("/tmp/oomdoc-was-here").exists()
    assert all(".." not in path and not path.startswith("/") and "\x1b" not in path for path in rows["names.tar"]["sources"])  # fmt: skip
    said = set(whys(rows["names.tar"]))
    assert {"symbolic link, not followed", "hard link, not followed", "device, not read", "named pipe, not read"} <= said  # fmt: skip


def test_limits_that_were_hit_are_told(rows: dict[str, dict[str, Any]]) -> None:
    def says(name: str, part: str) -> bool:
        return any(part in why for why in whys(rows[name])) or part in rows[name].get("refused", "")

    assert says("flat-bomb.zst", "grew more than")
    assert says("bomb-in-tar.tar", "grew more than")
    assert says("nested.zip", "archives inside each other")
    assert says("many.tar.zst", "more than 5,000 files")
    assert says("lying.tar", "truncated")
    assert says("cut.tar.gz", "truncated")
    assert says("gzip-that-lies.log.gz", "damaged")
    assert says("nothing.bin", "binary data")
