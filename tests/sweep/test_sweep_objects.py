"""Object stores: a server of moto on loopback holds bundles and store; what is told is what folders tell."""

from __future__ import annotations

import socket
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from make_fleet import write_bundle
from night import ask, night

from growing import wrapped
from oomdoc import cli
from oomdoc.errors import BundleError, BusyError
from oomdoc.sweep import locks
from oomdoc.sweep.places import Access, Bucket, place

FIRST, SECOND = "2026-11-20", "2026-11-21"
boto3 = pytest.importorskip("boto3", reason="object stores are tested with moto and boto3")
moto = pytest.importorskip("moto.server", reason="object stores are tested with moto's server")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    held = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    held.start()
    host, port = held.get_host_and_port()
    yield f"http://{host}:{port}"
    held.stop()


@pytest.fixture
def access(server: str, monkeypatch: pytest.MonkeyPatch) -> Access:
    for name, value in (("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test"), ("AWS_REGION", "us-east-1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    return Access(server)


@pytest.fixture
def bucket(access: Access, request: pytest.FixtureRequest) -> Iterator[tuple[str, object]]:
    client = boto3.client("s3", endpoint_url=access.endpoint_url, region_name="us-east-1")
    name = f"b{abs(hash(request.node.name)) % 10**9}"
    client.create_bucket(Bucket=name)
    yield name, client


def upload(client: object, name: str, folder: Path, prefix: str) -> None:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            client.upload_file(str(path), name, f"{prefix}/{path.relative_to(folder).as_posix()}")  # type: ignore[attr-defined]


def test_a_bucket_tells_what_a_folder_tells(tmp_path: Path, bucket: tuple[str, object], access: Access) -> None:
    name, client = bucket
    write_bundle(tmp_path / "in", 0, 3, FIRST, cause="shared")
    folder = write_bundle(tmp_path / "in", 1, 3, FIRST, cause="pool")
    upload(client, name, tmp_path / "in", "fleet")
    night(tmp_path / "here", tmp_path / "in", FIRST)
    store = f"s3://{name}/oomdoc"
    told = night(store, [f"s3://{name}/fleet"], FIRST, access=access)  # type: ignore[list-item]
    assert (told.counts.read, told.new_incidents) == (2, 2)
    query = "SELECT name, sha256, cause, probability, ledger_shape, bytes FROM bundle ORDER BY name"
    assert ask(store, query, access) == ask(tmp_path / "here", query)
    assert ask(store, "SELECT count(*) FROM bundle WHERE etag IS NOT NULL", access) == [(2,)]
    # the second night lists and reads nothing; objects of today are not settled at once, and are hashed
    second = night(store, [f"s3://{name}/fleet"], SECOND, access=access)  # type: ignore[list-item]
    assert (second.counts.read, second.counts.unchanged) == (0, 2)
    client.put_object(Bucket=name, Key=f"fleet/logs/{folder.name}/date.txt", Body=b"changed\n")  # type: ignore[attr-defined]
    third = night(store, [f"s3://{name}/fleet"], SECOND, access=access)  # type: ignore[list-item]
    assert third.counts.read == 1
    assert third.new_incidents == 0, "the incident was known"


def test_an_object_that_grew_is_read_on(tmp_path: Path, bucket: tuple[str, object], access: Access) -> None:
    name, client = bucket
    data = dict(wrapped())["server.log"] * 3
    store, tree = f"s3://{name}/oomdoc", tmp_path / "in" / "node-1"
    tree.mkdir(parents=True)
    taken = []
    for date, share in ((FIRST, 0.8), (SECOND, 1.0)):
        (tree / "server.log").write_bytes(data[: int(len(data) * share)])
        upload(client, name, tmp_path / "in", "fleet")
        assert night(store, [f"s3://{name}/fleet"], date, access=access).counts.read == 1  # type: ignore[list-item]
        taken += ask(store, "SELECT bytes FROM grown", access)
        night(tmp_path / date, tmp_path / "in", date)
        for query in (
            "SELECT source, bytes, lines, rows FROM coverage",
            "SELECT ref, text, cause, probability FROM incident",
        ):
            latest = f"{query} WHERE night = '{date}' ORDER BY ALL"
            assert ask(store, latest, access) == ask(tmp_path / date, latest)
    assert 1 << 20 < taken[0][0] < taken[1][0] <= len(data)


def test_patterns_and_sql_through_the_command(
    tmp_path: Path, bucket: tuple[str, object], access: Access, capsys: pytest.CaptureFixture[str]
) -> None:
    name, client = bucket
    write_bundle(tmp_path / "in", 0, 3, FIRST, cause="shared")
    write_bundle(tmp_path / "in", 1, 3, FIRST, cause="pool")
    upload(client, name, tmp_path / "in", "fleet")
    endpoint = str(access.endpoint_url)
    told = [
        "sweep",
        f"s3://{name}/fleet/*/*.tar.gz",
        "--store",
        str(tmp_path / "s"),
        "--endpoint-url",
        endpoint,
        "--night",
        FIRST,
    ]
    assert cli.run([*told, "--format", "jsonl"]) == 0
    assert '"found":1,' in capsys.readouterr().out
    with pytest.raises(BundleError, match="no bundle was found"):
        night(tmp_path / "s2", [f"s3://{name}/nothing"], FIRST, access=access)  # type: ignore[list-item]
    assert (
        cli.run(
            ["sweep", f"s3://{name}/fleet", "--store", f"s3://{name}/s", "--endpoint-url", endpoint, "--night", FIRST]
        )
        == 0
    )
    capsys.readouterr()
    assert (
        cli.run(
            ["sql", f"s3://{name}/s", "SELECT count(*) AS n FROM bundle", "--endpoint-url", endpoint, "--format", "csv"]
        )
        == 0
    )
    assert capsys.readouterr().out == "n\n2\n"


def test_a_claim_keeps_others_out_until_it_is_given_up_or_old(
    bucket: tuple[str, object], access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _ = bucket
    there = place(f"s3://{name}/store", access)
    assert isinstance(there, Bucket)
    with locks.locked(there):
        with pytest.raises(BusyError), locks.locked(there):
            pytest.fail("two hold it")
        assert len(list(there.files())) == 1, "the one that stepped back has left nothing"
    assert list(there.files()) == []
    there.write("lock/00000000deadbeef", b"")
    with pytest.raises(BusyError), locks.locked(there):
        pytest.fail("the other one may live")
    monkeypatch.setattr(locks, "_LEASE_NS", -(10**18))
    with locks.locked(there):
        assert "lock/00000000deadbeef" not in list(there.files())


@pytest.fixture
def google() -> Iterator[tuple[str, str]]:
    """A server with the interface of Google's store on loopback, and a bucket in it."""
    pytest.importorskip(
        "gcp_storage_emulator.server", reason="gs:// is tested with gcp-storage-emulator: `pip install` it"
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "import sys, time; from gcp_storage_emulator.server import create_server as make; make('127.0.0.1', int(sys.argv[1]), in_memory=True, default_bucket='support').start(); print(1, flush=True); time.sleep(600)"
    held = subprocess.Popen([sys.executable, "-c", code, str(port)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert held.stdout and held.stdout.readline()
    yield f"http://127.0.0.1:{port}", "support"
    held.kill()
    held.wait()
    held.stdout.close()


def test_a_bucket_of_google_tells_what_a_folder_tells(tmp_path: Path, google: tuple[str, str]) -> None:
    address, name = google
    write_bundle(tmp_path / "in", 0, 3, FIRST, cause="shared")
    write_bundle(tmp_path / "in", 1, 3, FIRST, cause="pool")
    for path in sorted((tmp_path / "in").rglob("*")):
        if path.is_file():
            key = urllib.parse.quote(f"fleet/{path.relative_to(tmp_path / 'in').as_posix()}", safe="")
            url = f"{address}/upload/storage/v1/b/{name}/o?uploadType=media&name={key}"
            urllib.request.urlopen(urllib.request.Request(url, path.read_bytes(), method="POST")).close()
    night(tmp_path / "here", tmp_path / "in", FIRST)
    access, store = Access(address, anonymous=True), f"gs://{name}/oomdoc"
    told = night(store, [f"gs://{name}/fleet"], FIRST, access=access)  # type: ignore[list-item]
    assert (told.counts.read, told.new_incidents) == (2, 2)
    query = "SELECT name, sha256, cause, probability, ledger_shape, bytes FROM bundle ORDER BY name"
    assert ask(store, query, access) == ask(tmp_path / "here", query)
    second = night(store, [f"gs://{name}/fleet"], SECOND, access=access)  # type: ignore[list-item]
    assert (second.counts.read, second.counts.unchanged) == (0, 2)
