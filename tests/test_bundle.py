"""Bundles of every form, whole, nested, broken, hostile: what is handed out, what is listed as unread, and no harm."""

from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import lzma
import os
import random
import socket
import struct
import sys
import tarfile
import tempfile
import threading
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
import zstandard
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from oomdoc.errors import EXIT_INPUT, BundleError
from oomdoc.intake.binary import binary_form
from oomdoc.intake.bundle import Intake, Limits, open_bundle
from oomdoc.intake.members import safe_path
from oomdoc.intake.scan import chunks, read_ahead
from oomdoc.intake.streams import ZSTD
from oomdoc.units import MIB


def packed_gzip(data: bytes) -> bytes:
    """The same bytes at any time of day."""
    return gzip.compress(data, mtime=0)


LOG = b"".join(b"INFO 11-20 20:04:%02d [core.py:%d] step %d\n" % (n % 60, n, n * n) for n in range(4000))
FILES = {"a.log": LOG, "sub/b.csv": b"x,y\n1,2\n", "sub/empty": b""}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gz": packed_gzip,
    "zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    "xz": lzma.compress,
    "bz2": bz2.compress,
}


def tar_of(files: dict[str, bytes], form: int = tarfile.PAX_FORMAT) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=form) as archive:
        for name, data in files.items():
            add(archive, name, data)
    return out.getvalue()


def add(archive: tarfile.TarFile, name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> None:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, len(data)
    archive.addfile(info, io.BytesIO(data))


def zip_of(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def read(intake: Intake) -> dict[str, bytes]:
    """Every member whole, by the path it has; paths are unique and fit to print."""
    found: dict[str, bytes] = {}
    for member in intake.members():
        assert member.path not in found
        assert safe_path(member.path) == member.path
        found[member.path] = b"".join(chunk.data for chunk in chunks(member.stream))
        assert member.stream.read(10) == b""
    assert intake.files == len(found)
    assert intake.content_bytes == sum(map(len, found.values()))
    return found


def place(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def opened(
    folder: Path, data: bytes, limits: Limits | None = None, name: str = "bundle"
) -> tuple[dict[str, bytes], Intake]:
    intake = open_bundle([place(folder, name, data)], limits or Limits())
    return read(intake), intake


def whys(intake: Intake) -> dict[str, str]:
    return {item.path: item.why for item in intake.unread}


@pytest.fixture(autouse=True)
def nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reading leaves no file behind, neither in the working directory nor among the temporary files."""
    cwd, temp = tmp_path / "cwd", tmp_path / "temp"
    cwd.mkdir()
    temp.mkdir()
    monkeypatch.chdir(cwd)
    monkeypatch.setattr(tempfile, "tempdir", str(temp))
    yield
    assert list(cwd.rglob("*")) == []
    assert list(temp.rglob("*")) == []
    assert not (tmp_path.parent / "evil").exists()


@pytest.fixture
def box(tmp_path: Path) -> Path:
    folder = tmp_path / "box"
    folder.mkdir()
    return folder


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))


# --- forms ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("packer", [None, *PACKERS])
def test_tar_in_any_packing(box: Path, packer: str | None, form: int) -> None:
    data = tar_of(FILES, form)
    found, intake = opened(box, PACKERS[packer](data) if packer else data, name="logs.of.no.known.suffix")
    assert found == FILES
    assert intake.unread == []
    assert list(found) == list(FILES)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2])
def test_zip(box: Path, method: int) -> None:
    found, intake = opened(box, zip_of(FILES, method))
    assert found == FILES
    assert intake.unread == []


def test_zip_with_zstd_entries_is_read_and_unknown_methods_are_listed(box: Path) -> None:
    data = zip_of({"a.log": PACKERS["zst"](LOG)}, zipfile.ZIP_STORED)
    for method, gives in ((93, {"a.log": LOG}), (14, {}), (99, {})):
        claimed = bytearray(data)
        for at in (data.find(b"PK\x03\x04") + 8, data.find(b"PK\x01\x02") + 10):
            claimed[at : at + 2] = struct.pack("<H", method)
        intake = open_bundle([place(box, "b.zip", bytes(claimed))])
        if gives:
            assert read(intake) == gives
            assert "checksum" in whys(intake)["a.log"]  # it was that of the packed bytes
        else:
            with pytest.raises(BundleError, match=f"method {method} is not supported"):
                read(intake)


@pytest.mark.parametrize("packer", [None, *PACKERS])
def test_a_single_file_keeps_its_name(box: Path, packer: str | None) -> None:
    data = PACKERS[packer](LOG) if packer else LOG
    found, intake = opened(box, data, name="vllm.log.1")
    assert found == {"vllm.log.1": LOG}
    assert (intake.name, intake.bytes, intake.files) == ("vllm.log.1", len(data), 1)
    assert intake.digest == hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("packer", PACKERS)
def test_several_compressed_streams_in_a_row_are_one_file(box: Path, packer: str) -> None:
    pack = PACKERS[packer]
    found, intake = opened(box, pack(LOG) + pack(b"") + pack(b"more\n"))
    assert found == {"bundle": LOG + b"more\n"}
    assert intake.unread == []


@pytest.mark.parametrize("packer", PACKERS)
def test_other_data_behind_a_compressed_stream_are_noted(box: Path, packer: str) -> None:
    found, intake = opened(box, PACKERS[packer](LOG) + b"something else")
    assert found == {"bundle": LOG}
    assert whys(intake)["bundle"].startswith("damaged: bad ")


def test_gzip_headers_may_carry_more(box: Path) -> None:
    plain = packed_gzip(LOG)
    head = plain[:3] + b"\x1e" + plain[4:10] + b"\x03\0abc" + b"name.log\0" + b"c" * 70_000 + b"\0"
    found, intake = opened(box, head + struct.pack("<H", zlib.crc32(head) & 0xFFFF) + plain[10:])
    assert (found, intake.unread) == ({"bundle": LOG}, [])


def test_a_wrong_checksum_is_noted_and_the_content_given(box: Path) -> None:
    for packer, at in (("gz", -6), ("zst", -2), ("bz2", -3)):
        data = bytearray(PACKERS[packer](LOG))
        data[at] ^= 0x10
        found, intake = opened(box, bytes(data))
        assert found == {"bundle": LOG} or packer == "bz2"
        assert whys(intake)["bundle"].startswith("damaged: bad ")


def test_damage_in_the_middle_costs_what_follows_only(box: Path) -> None:
    log = random.Random(8).randbytes(300_000)
    for packer in ("gz", "zst"):
        data = bytearray(PACKERS[packer](log))
        data[200_000:] = b"\xff" * (len(data) - 200_000)
        found, intake = opened(box, bytes(data))
        assert log.startswith(found["bundle"][:100_000])
        assert len(found["bundle"]) > 100_000
        assert list(whys(intake)) == ["bundle"]


def test_thousands_of_tiny_streams_cost_no_copies(box: Path) -> None:
    assert opened(box, packed_gzip(b"x\n") * 20_000)[0] == {"bundle": b"x\n" * 20_000}


def test_zero_padding_behind_a_stream_is_nothing(box: Path) -> None:
    for packer in ("gz", "xz", "bz2"):
        found, intake = opened(box, PACKERS[packer](LOG) + bytes(1024))
        assert (found, intake.unread) == ({"bundle": LOG}, [])
    found, intake = opened(box, PACKERS["gz"](LOG) + b"\n")
    assert found == {"bundle": LOG}
    assert "other data follow the end" in whys(intake)["bundle"]


def test_zstd_of_pzstd_begins_with_a_frame_to_pass_over(box: Path) -> None:
    data = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd" + zstandard.ZstdCompressor().compress(LOG)
    assert opened(box, data)[0] == {"bundle": LOG}


def test_what_zstd_packed_a_thousandfold_is_unpacked_by_and_by() -> None:
    frame = zstandard.ZstdCompressor().compress(bytes(64 * MIB))
    engine, most, size = ZSTD.new(), 0, 0
    data: bytes | memoryview = frame
    while not engine.eof:
        piece = engine.decompress(data, MIB)
        data, most, size = b"", max(most, len(piece)), size + len(piece)
    assert size == 64 * MIB
    assert most <= 8 * MIB  # a block of one byte repeated takes four bytes, for 128 KiB at most: 16 of them in a crumb


def test_long_names_and_large_members(box: Path) -> None:
    long, big = "d/" * 150 + "x.log", random.Random(1).randbytes(3_000_000)
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        files = {long: LOG, "grün.log": b"1\n", "big": big, "after": b"2\n"}
        assert opened(box, tar_of(files, form))[0] == files


def test_tars_written_one_after_the_other(box: Path) -> None:
    found, intake = opened(box, tar_of({"a": b"1\n"}) + tar_of({"b": b"2\n"}))
    assert (found, intake.unread) == ({"a": b"1\n", "b": b"2\n"}, [])


def test_a_tar_without_its_end_marker_is_whole(box: Path) -> None:
    found, intake = opened(box, tar_of({"a": b"1\n"})[:1024])
    assert (found, intake.unread) == ({"a": b"1\n"}, [])


def test_names_begin_without_dot_slash(box: Path) -> None:
    assert list(opened(box, tar_of({"./a.log": b"1", "./s/b.log": b"2"}))[0]) == ["a.log", "s/b.log"]


def test_sparse_members_give_what_is_stored(box: Path) -> None:
    header = tarfile.TarInfo("GNUSparseFile.0/s.log")
    stored = b"1\n1024\n5\n".ljust(512, b"\0") + b"tail\n"
    header.size = len(stored)
    header.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "s.log"}
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(header, io.BytesIO(stored))
        add(archive, "after", b"2\n")
    assert opened(box, out.getvalue())[0] == {"s.log": b"tail\n", "after": b"2\n"}


def test_folder(box: Path) -> None:
    for name, data in FILES.items():
        place(box, name, data)
    place(box, "rotated.log.1.gz", packed_gzip(b"old\n"))
    place(box, "node.tgz", packed_gzip(tar_of({"in/x.log": b"x\n"})))
    found = read(intake := open_bundle([box]))
    assert found == {**FILES, "rotated.log.1.gz": b"old\n", "node.tgz/in/x.log": b"x\n"}
    assert list(found) == ["a.log", "node.tgz/in/x.log", "rotated.log.1.gz", "sub/b.csv", "sub/empty"]
    assert (intake.name, intake.unread) == ("box", [])


def test_sizes_are_what_the_archive_says(box: Path) -> None:
    place(box, "l.log", LOG)
    place(box, "z.gz", packed_gzip(LOG))
    place(box, "t.tar", tar_of({"x": b"12"}))
    sizes = {member.path: member.size for member in open_bundle([box]).members()}
    assert sizes == {"l.log": len(LOG), "z.gz": None, "t.tar/x": 2}


def test_members_need_not_be_consumed_and_may_be_read_ahead(box: Path) -> None:
    path = place(box, "b.tar.gz", packed_gzip(tar_of(FILES)))
    whole = open_bundle([path])
    read(whole)
    passed = open_bundle([path])
    assert [member.path for member in passed.members()] == list(FILES)
    assert passed.digest == whole.digest
    first = open_bundle([path])
    heads = read_ahead((member.path, member.stream.read(4)) for member in first.members())
    assert [head for _, head in heads] == [b"INFO", b"x,y\n", b""]


def test_reads_are_full_up_to_64_kib_and_lines_can_be_read(box: Path) -> None:
    path = place(box, "b.tar.zst", PACKERS["zst"](tar_of({"a": LOG, "b": LOG})))
    for member in open_bundle([path]).members():
        assert len(member.stream.read(65536)) == 65536
        assert len(member.stream.read(100)) == 100
        assert member.stream.readline().endswith(b"\n")
        assert len(member.stream.read()) > 1000


# --- nested ----------------------------------------------------------------------------------------------------


def test_chunks_of_a_packed_text_are_as_large_as_those_of_a_file(box: Path) -> None:
    dice = random.Random(3)
    text = b"".join(b"%x\n" % dice.getrandbits(120) * 3 for _ in range(60_000))  # 64 KiB packed are 300 KiB
    place(box, "a.tar.gz", packed_gzip(tar_of({"a.log": text})))
    sizes = [len(chunk.data) for member in open_bundle([box]).members() for chunk in chunks(member.stream)]
    assert sum(sizes) == len(text)
    assert min(sizes[2:-1]) > 700 << 10  # the first ones are what was looked at to tell the form


def test_archives_in_archives(box: Path) -> None:
    inner = packed_gzip(tar_of({"x.log": LOG, "y.log.gz": packed_gzip(b"y\n")}))
    middle = zip_of({"n1/in.tar.gz": inner, "plain.txt": b"p\n"})
    found, intake = opened(box, lzma.compress(tar_of({"m.zip": middle, "end.log": b"e\n"})))
    assert found == {
        "m.zip/n1/in.tar.gz/x.log": LOG,
        "m.zip/n1/in.tar.gz/y.log.gz": b"y\n",
        "m.zip/plain.txt": b"p\n",
        "end.log": b"e\n",
    }
    assert intake.unread == []


def test_a_nested_zip_too_large_to_keep_is_listed(box: Path) -> None:
    data = tar_of({"m.zip": zip_of({"x": b"1" * 5000}, zipfile.ZIP_STORED), "end.log": b"e\n"})
    found, intake = opened(box, data, Limits(max_spool_bytes=1000))
    assert found == {"end.log": b"e\n"}
    assert whys(intake) == {"m.zip": "zip of more than 1000 B in an archive or pipe: give it as a file"}


def test_a_nested_zip_beyond_the_memory_share_goes_to_a_file_that_is_gone_again(box: Path) -> None:
    big = random.Random(2).randbytes(6_000_000)
    assert opened(box, tar_of({"m.zip": zip_of({"big": big})}))[0] == {"m.zip/big": big}


def test_depth_is_limited_and_the_rest_is_read(box: Path) -> None:
    data = b"deep\n"
    for _ in range(8):
        data = packed_gzip(tar_of({"t.tar.gz": data, "here.log": b"h\n"}))
    found, intake = opened(box, data)
    assert list(found.values()) == [b"h\n"] * 6
    assert list(whys(intake).values()) == ["more than 6 archives inside each other: not opened"]
    layers = LOG
    for _ in range(9):
        layers = packed_gzip(layers)
    with pytest.raises(BundleError, match="more than 6 archives inside each other"):
        opened(box, layers)


# --- hostile names, links and devices ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("../../evil", "evil"),
        ("/etc/passwd", "etc/passwd"),
        ("a/../../evil", "a/evil"),
        ("C:\\Windows\\evil", "Windows/evil"),
        ("C:/Windows/evil", "Windows/evil"),
        ("c:evil", "evil"),
        ("..\\..\\evil", "evil"),
        ("a\\..\\..\\evil", "a/evil"),
        ("\\\\server\\share", "server/share"),
        ("a\nb\x1b[31m\u202e", "a\ufffdb\ufffd[31m\ufffd"),
        ("dev-disk\\x2duuid.device", "dev-disk\\x2duuid.device"),
        ("./a//b/./c", "a/b/c"),
        ("..", "unnamed"),
        ("/", "unnamed"),
        ("", "unnamed"),
    ],
)
def test_names_become_safe(name: str, label: str) -> None:
    assert safe_path(name) == label
    assert safe_path(label) == label


@given(st.text(max_size=40) | st.text("./\\:.aC", max_size=20))
def test_any_name_becomes_safe(name: str) -> None:
    label = safe_path(name)
    assert label.isprintable() or not label.isascii()
    assert safe_path(label) == label
    for parts in (label.split("/"), label.replace("\\", "/").split("/")[:-1]):
        assert ".." not in parts
    assert not label.startswith(("/", "\\"))
    assert len(safe_path(name * 200)) <= 1024


def test_hostile_tar(box: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        add(archive, "../../evil", b"1\n")
        add(archive, "/evil", b"2\n")
        add(archive, "same", b"3\n")
        add(archive, "same", b"4\n")
        add(archive, "link", kind=tarfile.SYMTYPE, link="/etc/passwd")
        add(archive, "hard", kind=tarfile.LNKTYPE, link="same")
        add(archive, "null", kind=tarfile.CHRTYPE)
        add(archive, "disk", kind=tarfile.BLKTYPE)
        add(archive, "pipe", kind=tarfile.FIFOTYPE)
        add(archive, "folder/", kind=tarfile.DIRTYPE)
        add(archive, "last", b"5\n")
    found, intake = opened(box, out.getvalue())
    assert found == {"evil": b"1\n", "evil#2": b"2\n", "same": b"3\n", "same#2": b"4\n", "last": b"5\n"}
    assert whys(intake) == {
        "link": "symbolic link, not followed",
        "hard": "hard link, not followed",
        "null": "device, not read",
        "disk": "device, not read",
        "pipe": "named pipe, not read",
    }


def test_hostile_zip(box: Path) -> None:
    out = io.BytesIO()
    with pytest.warns(UserWarning), zipfile.ZipFile(out, "w") as archive:
        archive.writestr("../evil", b"1\n")
        archive.writestr("C:\\evil", b"2\n")
        archive.writestr("same", b"3\n")
        archive.writestr("same", b"4\n")
        archive.writestr("folder/", b"")
        link = zipfile.ZipInfo("link")
        link.create_system, link.external_attr = 3, 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
    found, intake = opened(box, out.getvalue())
    assert found == {"evil": b"1\n", "evil#2": b"2\n", "same": b"3\n", "same#2": b"4\n"}
    assert whys(intake) == {"link": "symbolic link, not followed"}


def test_a_zip_entry_without_a_name_gets_one(box: Path) -> None:
    assert opened(box, zip_of({"~": b"1\n"}).replace(b"~", b"\0"))[0] == {"unnamed": b"1\n"}


def test_folder_with_links_pipes_and_sockets(box: Path) -> None:
    place(box, "a.log", LOG)
    place(box.parent, "outside/secret", b"s\n")
    (box / "link.log").symlink_to("a.log")
    (box / "out").symlink_to(box.parent / "outside")
    (box / "round").symlink_to(box)
    (box / "dead").symlink_to("nowhere")
    os.mkfifo(box / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(box / "sock"))
        found = read(intake := open_bundle([box]))
    assert found == {"a.log": LOG}
    link = "symbolic link, not followed"
    assert whys(intake) == {
        "dead": link,
        "link.log": link,
        "out": link,
        "pipe": "named pipe, not read",
        "round": link,
        "sock": "socket, not read",
    }


def test_a_file_that_became_a_pipe_or_link_or_went_away_is_listed(box: Path) -> None:
    for name in ("a.log", "b.log", "c.log", "d.log"):
        place(box, name, b"1\n")
    intake = open_bundle([box])
    for name in ("a.log", "b.log", "c.log"):
        (box / name).unlink()
    os.mkfifo(box / "b.log")
    (box / "c.log").symlink_to("/etc/passwd")
    assert read(intake) == {"d.log": b"1\n"}
    assert whys(intake)["a.log"] == "it is gone"
    assert whys(intake)["b.log"] == "it is no regular file any more"
    assert "link" in whys(intake)["c.log"]


def test_files_that_may_not_be_read_are_listed(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place(box, "a.log", b"1\n")
    place(box, "b.log", b"2\n")
    real = os.open

    def refusing(path: Path, flags: int) -> int:
        if Path(path).name in refused:
            raise PermissionError(13, "Permission denied")
        return real(path, flags)

    monkeypatch.setattr(os, "open", refusing)
    refused = {"a.log"}
    assert read(intake := open_bundle([box])) == {"b.log": b"2\n"}
    assert whys(intake) == {"a.log": "permission denied"}
    refused.add("b.log")
    with pytest.raises(BundleError, match=r"nothing in box could be read \(a.log: permission denied, and 1 more\)"):
        read(open_bundle([box]))


def test_hard_links_in_a_folder_are_read_once(box: Path) -> None:
    (box / "b.log").hardlink_to(place(box, "a.log", b"1\n"))
    assert read(intake := open_bundle([box])) == {"a.log": b"1\n"}
    assert whys(intake) == {"b.log": "the same file as a.log, read once"}


def test_names_that_are_no_utf8_are_kept_apart(box: Path) -> None:
    for byte in (b"\xff", b"\xfe"):
        Path(os.fsdecode(os.fsencode(box) + b"/" + byte + b".log")).write_bytes(byte)
    assert read(open_bundle([box])) == {"\ufffd.log": b"\xfe", "\ufffd.log#2": b"\xff"}


# --- limits -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packer", ["zst", "xz", "bz2", "zip"])
def test_a_bomb_is_cut_and_the_rest_is_read(box: Path, packer: str) -> None:
    zeros = bytes(4 << 20)
    bomb = zip_of({"zeros": zeros}) if packer == "zip" else PACKERS[packer](zeros)
    limits = Limits(max_ratio=500, ratio_from_bytes=1 << 20)
    noise = random.Random(3).randbytes(20_000)
    found, intake = opened(box, tar_of({"bomb": bomb, "noise": noise, "end.log": b"e\n"}), limits)
    assert found["end.log"] == b"e\n"
    name = "bomb/zeros" if packer == "zip" else "bomb"
    assert len(found.get(name, b"")) < 2 << 20  # zstd unpacks all 4 MiB at once, and none is handed out
    assert whys(intake)[name] == "grew more than 500 times while unpacking: the rest was not read"


def test_many_small_bombs_are_one(box: Path) -> None:
    bomb = zip_of({f"z{n}": bytes(1 << 20) for n in range(8)})
    found, intake = opened(box, zip_of({"m.zip": bomb}), Limits(max_ratio=1100, ratio_from_bytes=1 << 20))
    assert intake.content_bytes < 6 << 20
    assert any(why.startswith("the bundle grew more than 1,100 times") for why in whys(intake).values())
    assert len(found) < 8


def test_a_constant_log_is_no_bomb(box: Path) -> None:
    log = b"INFO Avg prompt throughput: 0.0 tokens/s\n" * 400_000
    found, intake = opened(box, PACKERS["zst"](log))
    assert (found["bundle"], intake.unread) == (log, [])


def test_member_size_is_limited(box: Path) -> None:
    files = {"big": LOG, "just": LOG[:1000], "small": b"s\n"}
    for data in (tar_of(files), packed_gzip(tar_of(files)), zip_of(files)):
        found, intake = opened(box, data, Limits(max_member_bytes=1000))
        assert found == {"big": LOG[:1000], "just": LOG[:1000], "small": b"s\n"}
        assert whys(intake) == {"big": "larger than 1000 B: the rest was not read"}


def test_total_size_is_limited(box: Path) -> None:
    for name in "abc":
        place(box, f"{name}.log", LOG)
    found = read(intake := open_bundle([box], Limits(max_total_bytes=len(LOG) + 10)))
    assert list(found) == ["a.log", "b.log"]
    assert list(whys(intake)) == ["b.log", "c.log"]
    assert all("in all: the rest was not read" in why for why in whys(intake).values())
    packed = packed_gzip(tar_of({"a": LOG, "b": LOG, "c": LOG}))
    found, intake = opened(box, packed, Limits(max_total_bytes=len(LOG) * 3 // 2))
    assert found["a"] == LOG
    assert len(intake.unread) == 1
    assert intake.digest == hashlib.sha256(packed).hexdigest()


def test_count_is_limited(box: Path) -> None:
    files = {f"f{n}": b"1" for n in range(20)}
    limits = Limits(max_members=5)
    for data in (tar_of(files), zip_of(files)):
        found, intake = opened(box, data, limits)
        assert list(found) == list(files)[:5]
        assert whys(intake) == {"bundle": "more than 5 files in all: the rest was not read"}
    for name, data in files.items():
        place(box, f"folder/{name}", data)
    found = read(intake := open_bundle([box / "folder"], limits))
    assert list(found) == sorted(files)[:5]
    assert whys(intake) == {"folder": "more than 5 files in all: the rest was not read"}
    folders = io.BytesIO()
    with tarfile.open(fileobj=folders, mode="w") as archive:
        add(archive, "a", b"1")
        for n in range(60):
            add(archive, f"d{n}/", kind=tarfile.DIRTYPE)
        add(archive, "b", b"1")
    assert list(opened(box, folders.getvalue(), limits)[0]) == ["a"]


def test_a_huge_pax_header_is_not_kept_in_memory(box: Path) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 8 << 20
    data = header.tobuf() + bytes(8 << 20) + tar_of({"a": b"1\n"})
    assert opened(box, data)[0] == {"a": b"1\n"}


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packer", [None, *PACKERS])
def test_a_truncated_archive_gives_what_is_there(box: Path, packer: str | None) -> None:
    noise = random.Random(4).randbytes(2_000_000)
    data = tar_of({"first": b"1\n", "second": noise, "third": b"3\n"})
    packed = PACKERS[packer](data) if packer else data
    found, intake = opened(box, packed[: len(packed) // 2])
    assert found["first"] == b"1\n"
    assert "third" not in found
    assert noise.startswith(found["second"])
    assert whys(intake)["second"].startswith("truncated: ended after ")
    if packer != "bz2":  # a bzip2 block is all or nothing
        assert len(found["second"]) > 800_000
    if packer:
        assert "data end too early, after " in whys(intake)["bundle"]


@pytest.mark.parametrize("packer", PACKERS)
def test_a_truncated_file_gives_what_is_there(box: Path, packer: str) -> None:
    log = random.Random(5).randbytes(2_000_000)
    packed = PACKERS[packer](log)
    for cut in (len(packed) * 2 // 3, len(packed) - 2):
        found, intake = opened(box, packed[:cut])
        assert log.startswith(found["bundle"])
        assert len(found["bundle"]) > 800_000
        assert list(whys(intake)) == ["bundle"]
        assert whys(intake)["bundle"].startswith("truncated: the ")


def test_a_zip_without_its_table_is_named_and_the_rest_is_read(box: Path) -> None:
    for data in (zip_of(FILES), streamed_zip(FILES)):
        cut = data[: data.find(b"PK\x01\x02")]
        found, intake = opened(box, tar_of({"m.zip": cut, "end.log": b"e\n"}))
        assert found == {"end.log": b"e\n"}
        assert list(whys(intake)) == ["m.zip"]
        assert whys(intake)["m.zip"].startswith("truncated or damaged: no usable table of contents")


def test_a_zip_whose_table_lies_costs_the_entry(box: Path) -> None:
    data = bytearray(zip_of({"a": b"1\n", "b": b"2\n", "c": b"3\n"}))
    data[data.find(b"PK\x03\x04", 4)] = 0
    found, intake = opened(box, bytes(data))
    assert found == {"a": b"1\n", "c": b"3\n"}
    assert whys(intake)["b"].startswith("damaged: the zip has no such entry where it says")


def streamed_zip(files: dict[str, bytes]) -> bytes:
    """As written to a pipe: the sizes follow the content."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def seek(self, *_: int) -> int:
            raise OSError

        def tell(self) -> int:
            raise OSError

    out = Pipe()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


def test_a_damaged_member_does_not_end_the_zip(box: Path) -> None:
    data = bytearray(zip_of({"a": b"1\n", "b": LOG, "c": b"3\n"}))
    at = data.find(b"b", 30) + 2000
    data[at : at + 50] = bytes(50)
    found, intake = opened(box, bytes(data))
    assert (found["a"], found["c"]) == (b"1\n", b"3\n")
    assert list(whys(intake)) == ["b"]
    assert whys(intake)["b"].startswith("damaged: ")
    stored = bytearray(zip_of({"a": b"hello"}, zipfile.ZIP_STORED))
    stored[stored.find(b"hello")] = ord("j")
    found, intake = opened(box, bytes(stored))
    assert found == {"a": b"jello"}
    assert "checksum" in whys(intake)["a"]


def test_a_damaged_tar_header_costs_what_follows(box: Path) -> None:
    data = bytearray(tar_of({"a": b"1\n", "b": LOG, "c": b"3\n"}, tarfile.USTAR_FORMAT))
    data[1024:1124] = b"\xaa" * 100
    found, intake = opened(box, bytes(data))
    assert found == {"a": b"1\n"}
    lost = len(data) - 1024
    assert whys(intake) == {"bundle": f"damaged: no tar header where one should be, {lost:,} bytes at 1,024 not read"}


def test_a_damaged_tar_in_a_bundle_costs_only_itself(box: Path) -> None:
    good = tar_of({"a": b"1\n"}, tarfile.USTAR_FORMAT)[:1024]
    found, intake = opened(box, tar_of({"t.tar": good + b"y" * 512 + good, "end.log": b"e\n"}))
    assert found == {"t.tar/a": b"1\n", "end.log": b"e\n"}
    assert list(whys(intake)) == ["t.tar"]


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_headers_made_to_cost_time_or_memory_are_damage(box: Path, kind: bytes) -> None:
    header = tarfile.TarInfo("pax")
    header.type, header.size = kind, 16 << 10
    for claim in (b"1" * (16 << 10), (b"2 " * (8 << 10))[:-1] + b"="):
        data = tar_of({"a": b"1\n"})[:1024] + (header.tobuf() + claim) * 200 + tar_of({"b": b"2\n"})
        found, intake = opened(box, data)
        assert found["a"] == b"1\n"
        assert whys(intake)["bundle"].startswith("damaged: ")


def test_encrypted_zip_entries_are_listed(box: Path) -> None:
    data = bytearray(zip_of({"secret": b"s\n", "open": b"o\n"}))
    for at in (data.find(b"PK\x03\x04") + 6, data.find(b"PK\x01\x02") + 8):
        data[at] |= 1
    found, intake = opened(box, bytes(data))
    assert found == {"open": b"o\n"}
    assert whys(intake) == {"secret": "encrypted: unpack it with its password and give the files"}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x1f\x8b" + b"garbage" * 20, "bundle could be read .damaged: bad gzip data after 0 bytes"),
        (packed_gzip(LOG)[:12], "truncated: the gzip data end too early"),
        (b"\x28\xb5\x2f\xfd" + b"garbage" * 20, "damaged: bad zstd data|truncated: the zstd data"),
        (b"\xfd7zXZ\0" + b"garbage" * 20, "damaged: bad xz data"),
        (b"BZh91AY&SY" + b"garbage" * 20, "damaged: bad bzip2 data|truncated: the bzip2 data"),
        (b"PK\x03\x04" + b"garbage" * 20, "truncated or damaged: no usable table of contents"),
        (zip_of({}), "bundle holds no files"),
        (b"", "bundle is empty"),
        (packed_gzip(b""), "bundle is empty"),
        (tar_of({"a": b"", "b": b""}), "bundle holds only empty files"),
    ],
)
def test_what_gives_nothing_is_an_error_in_one_sentence(box: Path, data: bytes, says: str) -> None:
    with pytest.raises(BundleError, match=says) as caught:
        opened(box, data)
    assert caught.value.exit_code == EXIT_INPUT
    assert "\n" not in str(caught.value)


def test_a_tar_of_links_only_is_an_error(box: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        add(archive, "l", kind=tarfile.SYMTYPE, link="x")
    with pytest.raises(BundleError, match=r"nothing in bundle could be read \(l: symbolic link, not followed\)"):
        opened(box, out.getvalue())


def test_a_garbage_tail_of_a_tar_is_noted(box: Path) -> None:
    found, intake = opened(box, tar_of({"a": b"1\n"}) + b"junk" * 1000)
    assert found == {"a": b"1\n"}
    assert whys(intake)["bundle"].startswith("damaged: no tar header where one should be, 4,000 bytes")


def test_a_read_error_of_the_disk_is_a_note(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= 131072:
                raise OSError(5, "Input/output error")
            return super().read(size)

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Broken(LOG)))
    found = read(intake := open_bundle(["-"]))
    assert LOG.startswith(found["stdin"])
    assert whys(intake) == {"stdin": "read error: input/output error"}


SEEDS = [pack(tar_of({"a": b"1\n" * 300, "b": b"2\n"})) for pack in (bytes, *PACKERS.values())]
SEEDS += [
    zip_of({"a": b"1\n" * 300, "b": b"2\n"}),
    streamed_zip({"a": b"1\n" * 300}),
    tar_of({"z.zip": zip_of({"a": b"1"})}),
]
calm = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@calm
@given(st.binary(max_size=200), st.sampled_from([seed[:300] for seed in SEEDS]), st.integers(0, 300))
def test_any_bytes_are_read_or_refused(box: Path, tail: bytes, start: bytes, keep: int) -> None:
    refused_or_read(box, start[:keep] + tail)


@calm
@given(
    st.sampled_from(SEEDS),
    st.lists(st.tuples(st.integers(0, 12_000), st.integers(0, 255)), max_size=8),
    st.integers(1, 12_000),
)
@example(SEEDS[0], [(124 + n, 0x80 if n == 0 else 0xFF) for n in range(12)], 12_000)
def test_any_change_of_an_archive_is_read_or_refused(
    box: Path, seed: bytes, changes: Sequence[tuple[int, int]], keep: int
) -> None:
    data = bytearray(seed)
    for at, value in changes:
        data[at % len(data)] = value
    refused_or_read(box, bytes(data[:keep]))


def refused_or_read(folder: Path, data: bytes) -> None:
    try:
        opened(folder, data, Limits(max_total_bytes=1 << 20, max_spool_bytes=1 << 20))
    except BundleError as problem:
        assert str(problem).isprintable()


# --- what a person names ----------------------------------------------------------------------------------------------


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    for data in (packed_gzip(tar_of(FILES)), zip_of(FILES)):
        stdin(monkeypatch, data)
        intake = open_bundle(["-"])
        assert read(intake) == FILES
        assert (intake.name, intake.bytes) == ("stdin", len(data))
        assert intake.digest == hashlib.sha256(data).hexdigest()
    stdin(monkeypatch, LOG)
    assert read(open_bundle(["-"])) == {"stdin": LOG}
    stdin(monkeypatch, b"")
    with pytest.raises(BundleError, match="stdin is empty"):
        read(open_bundle(["-"]))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BundleError, match="standard input is closed"):
        open_bundle(["-"])


def test_a_file_named_dash_is_a_file() -> None:
    Path("-").write_bytes(b"1\n")
    assert read(open_bundle(["./-"])) == {"-": b"1\n"}
    Path("-").unlink()


def test_several_paths_are_told_apart(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = place(box, "n1/vllm.log", b"1\n"), place(box, "n2/vllm.log", b"2\n")
    other = place(box, "gpu.csv", b"3\n")
    packed = place(box, "n3.tar.gz", packed_gzip(tar_of({"x.log": b"4\n"})))
    place(box, "n1/more.log", b"6\n")
    stdin(monkeypatch, b"5\n")
    intake = open_bundle([one, two, other, packed, "-", box / "n1", one])
    assert read(intake) == {
        "n1/vllm.log": b"1\n",
        "n2/vllm.log": b"2\n",
        "gpu.csv": b"3\n",
        "n3.tar.gz/x.log": b"4\n",
        "stdin": b"5\n",
        "n1/more.log": b"6\n",
    }
    assert whys(intake) == {"n1/vllm.log#2": "the same file as n1/vllm.log, read once"}
    assert intake.name == "n1/vllm.log and 5 more"


def test_a_named_pipe_that_is_named_is_read(box: Path) -> None:
    os.mkfifo(box / "pipe")
    writer = threading.Thread(target=(box / "pipe").write_bytes, args=(packed_gzip(LOG),))
    writer.start()
    assert read(open_bundle([box / "pipe"])) == {"pipe": LOG}
    writer.join()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda box: box / "missing", "missing does not exist. Check the path"),
        (lambda box: place(box, "f", b"") / "below", "below does not exist"),
        (lambda _: Path("http://127.0.0.1:9/metrics"), "is an address, and nothing is read over a network. Pipe it in"),
        (lambda box: box, "box holds no files"),
        (lambda _: "/dev/null", "/dev/null is a device or a socket"),
        (lambda _: "a\0b", "cannot be read: "),
    ],
)
def test_paths_that_cannot_be_read(box: Path, make: Callable[[Path], str | Path], says: str) -> None:
    with pytest.raises(BundleError) as caught:
        open_bundle([make(box)])
    assert says in str(caught.value)


def test_no_path_and_folders_without_files(box: Path) -> None:
    with pytest.raises(BundleError, match="no path was given"):
        open_bundle([])
    (box / "e1").mkdir()
    (box / "e2").mkdir()
    with pytest.raises(BundleError, match=r"nothing in e1 and 1 more could be read \(e1: folder holds no files, and 1"):
        open_bundle([box / "e1", box / "e2"])
    found = read(intake := open_bundle([place(box, "a.log", b"1\n"), box / "e1"]))
    assert (found, whys(intake)) == ({"a.log": b"1\n"}, {"e1": "folder holds no files"})


# --- digest -----------------------------------------------------------------------------------------------------------


def test_the_digest_is_of_names_and_content(box: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(folder: Path, hashing: bool = True) -> str:
        intake = open_bundle([folder], hashing=hashing)
        read(intake)
        return intake.digest

    for folder in ("one", "two"):
        for name, data in FILES.items():
            place(box, f"{folder}/{name}", data)
    lines = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(FILES.items()))
    assert digest(box / "one") == digest(box / "two") == hashlib.sha256(lines.encode()).hexdigest()
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: Reversed(real(path)))
    assert digest(box / "one") == digest(box / "two")
    place(box, "two/a.log", LOG + b"!")
    assert digest(box / "one") != digest(box / "two")
    assert digest(box / "one", hashing=False) == ""


class Reversed:
    """A listing of a folder in another order."""

    def __init__(self, listing: Iterator[os.DirEntry[str]]) -> None:
        self.entries = list(listing)[::-1]

    def __enter__(self) -> list[os.DirEntry[str]]:
        return self.entries

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...


# --- what is no text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "head",
    [
        b"",
        LOG,
        "INFO 11-20 grün\n".encode("utf-16") * 20,
        "INFO 11-20 plain\n".encode("utf-16-le") * 20,
        "INFO 11-20 plain\n".encode("utf-16-be") * 20,
        "日志 内存不足\n".encode("gbk") * 20,
        "größe\n".encode("latin-1") * 20,
        LOG[:2000] + b"\0" * 3 + LOG[:2000],
        bytes(60_000) + LOG[:2000],
        b"INFO a\0b\0c\n",
        b"\x1b[32mINFO\x1b[0m \rLoading: 10%\rLoading: 20%\x08\n" * 30,
        b'{"log": "x"}\n',
        b"\xef\xbb\xbftime,used\n",
    ],
)
def test_text(head: bytes) -> None:
    assert binary_form(head) is None


@pytest.mark.parametrize(
    ("head", "form"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(20), "PNG image"),
        (b"\x7fELF\x02\x01\x01", "ELF program or core dump"),
        (b"%PDF-1.7\n", "PDF document"),
        (b"SQLite format 3\0", "SQLite database"),
        (b"PAR1\x15\x04", "Parquet file"),
        (b"\x80\x04\x95\x10\0\0\0", "Python pickle"),
        (b"\x80\x02}q\0", "Python pickle"),
        (b"\x80\x02\x8a\nl\xfc\x9cF", "Python pickle"),
        (struct.pack("<Q", 900) + b'{"__metadata__":{"format":"pt"}}', "safetensors model"),
        (b"LPKSHHRH" + bytes(8), "systemd journal, export it with `journalctl --file`"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip archive, unpack it first"),
        (random.Random(7).randbytes(4096), "binary data"),
        (struct.pack("<500d", *range(500)), "binary data"),
    ],
)
def test_no_text(head: bytes, form: str) -> None:
    assert binary_form(head) == form
