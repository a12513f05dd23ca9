"""The catalogue of the engine's own messages: mined from an invented tree of releases, and the one that is kept."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "docs"))

import mine  # noqa: E402

OLD = '''
class Pool:
    """Logs of memory that stand in a docstring are none: logger.error("Out of memory in a docstring")."""

    def grow(self, size):
        logger.info("The pool holds %d cache blocks now", size)
        logger.debug("Block table of memory is %s", size)
        if size < 0:
            raise ValueError(f"No available room for {size} cache blocks, the pool " "is full")
        if size == 1:
            raise ValueError("The block size of memory must be a power of two")
        self.print("Out of memory: this is no logger")
'''
NEW = (
    OLD.replace("holds %d", "has %d")
    + """
    def stop(self):
        self.logger.warning_once("Worker {} died while it slept: {}".format(1, 2))
"""
)


def put(folder: Path, source: str) -> None:
    path = folder / "vllm" / "core" / "pool.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(source)
    (folder / "vllm" / "broken.py").write_text("def (:\n")
    (folder / "vllm" / "models").mkdir(exist_ok=True)
    (folder / "vllm" / "models" / "one.py").write_text('logger.error("out of memory in the one model")\n')


def told(checkout: Path) -> list[tuple[str, str, str, str]]:
    found, _ = mine.catalogue(mine.releases(checkout))
    return [(one.first, one.last, one.level, one.text) for one in found]


EXPECTED = [
    ("0.9.2", "0.10.0", "raise", "No available room for <> cache blocks, the pool is full"),
    ("0.9.2", "0.9.2", "info", "The pool holds <> cache blocks now"),
    ("0.10.0", "0.10.0", "info", "The pool has <> cache blocks now"),
    ("0.10.0", "0.10.0", "warning", "Worker <> died while it slept: <>"),
]


def test_messages_of_unpacked_releases_have_their_first_and_last_release(tmp_path: Path) -> None:
    put(tmp_path / "0.10.0", NEW)
    put(tmp_path / "0.9.2", OLD)
    assert told(tmp_path) == EXPECTED


@pytest.mark.skipif(shutil.which("git") is None, reason="no git here")
def test_a_checkout_is_walked_by_its_tags(tmp_path: Path) -> None:
    git = [
        "git",
        "-C",
        str(tmp_path),
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@example.org",
        "-c",
        "commit.gpgsign=false",
    ]
    subprocess.run([*git, "init", "-q"], check=True)
    for version, source in (("v0.9.2", OLD), ("v0.10.0", NEW)):
        put(tmp_path, source)
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", version], check=True)
        subprocess.run([*git, "tag", version], check=True)
    subprocess.run([*git, "tag", "nightly"], check=True)
    assert told(tmp_path) == EXPECTED


def test_what_covers_a_message() -> None:
    assert mine.covered("Available KV cache memory: <> GiB") == "milestone-kv-available" or mine.covered("Available KV cache memory: <> GiB") == "figure-kv-available"  # fmt: skip
    assert mine.covered("Initial free memory <> GiB, reserved <> GiB memory for KV Cache")
    assert mine.covered("The kettle holds <> cache blocks of tea") == ""


def test_a_failure_is_open_and_what_a_healthy_server_says_is_benign(tmp_path: Path) -> None:
    put(tmp_path / "0.10.0", NEW)
    lines = mine.table(*mine.catalogue(mine.releases(tmp_path))).splitlines()[2:]
    assert {line.split("\t")[5]: line.split("\t")[4] for line in lines} == {
        "No available room for <> cache blocks, the pool is full": "",
        "The pool has <> cache blocks now": "benign",
        "Worker <> died while it slept: <>": "",
    }


def test_a_folder_without_releases_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mine.main([str(tmp_path), "-o", str(tmp_path / "x.tsv")]) == 2
    assert "neither tags of releases" in capsys.readouterr().err and not (tmp_path / "x.tsv").exists()


def test_the_catalogue_that_is_kept_is_whole_and_names_patterns_that_there_are() -> None:
    from oomdoc.ingest import text_log

    first, header, *lines = mine.LISTED.read_text(encoding="utf-8").splitlines()
    versions = first.partition(": ")[2].split()
    assert versions == sorted(versions, key=mine.order) and len(versions) >= 10 and header == mine.HEADER
    known = (
        {pattern.name for pattern in text_log.PATTERNS}
        | {"benign"}
        | {f"known:{name}" for name, _, _, _ in mine.known()}
    )
    for line in lines:
        since, until, level, file, by, message = line.split("\t")
        assert since in versions and until in versions and mine.order(since) <= mine.order(until)
        assert level in (*mine.LEVELS, "raise") and file.endswith(".py") and by in known and 0 < len(message) <= mine.SHOWN  # fmt: skip


def test_every_reason_is_given_for_some_message_and_no_message_is_open() -> None:
    rows = [line.split("\t") for line in mine.LISTED.read_text(encoding="utf-8").splitlines()[2:]]
    assert [row[5] for row in rows if not row[4]] == []
    given = {row[4] for row in rows}
    for name, _, _, shapes in mine.known():
        assert f"known:{name}" in given, name
        for shape in shapes:
            assert any(shape.search(row[5]) for row in rows), (name, shape.pattern)
    assert mine.judged(mine.LISTED.read_text(encoding="utf-8")) == mine.LISTED.read_text(encoding="utf-8")


def test_what_no_reason_knows_is_open() -> None:
    assert mine.reason("Worker <> died while it slept: <>") == ""
    assert mine.reason("P2PSession <>: handshake timed out") == "known:tier-lost"
    assert mine.reason("Token id <> is out of vocabulary") == "known:one-request"
