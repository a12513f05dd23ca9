"""Object stores: a server of moto on loopback holds bundles and store; what is told is what folders tell."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from faulty import Faults, proxy
from make_fleet import write_bundle
from night import ask, night

from growing import dense
from oomdoc import cli
from oomdoc.errors import BundleError, BusyError, DamagedError, UsageError
from oomdoc.sweep import faults, locks
from oomdoc.sweep.dataset import Dataset
from oomdoc.sweep.places import Access, Bucket, place
from oomdoc.sweep.repair import check, repair

FIRST, SECOND = "2026-11-20", "2026-11-21"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    moto = pytest.importorskip("moto.server", reason="object stores are tested with moto's server")
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
    boto3 = pytest.importorskip("boto3", reason="object stores are tested with moto and boto3")
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


@pytest.mark.usefixtures("here")
def test_an_object_that_grew_is_read_on(tmp_path: Path, bucket: tuple[str, object], access: Access) -> None:
    name, client = bucket
    data = (dict(dense())["vllm.log"] * 3)[:2_400_000]  # past two of its blocks, most of it past one
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


@pytest.mark.usefixtures("here")
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


# ---- bad nights


@pytest.fixture
def quick(here: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Short waits, which workers in this process have too."""
    monkeypatch.setattr(faults, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(faults, "LOOK_AGAIN_S", 0.0)


@pytest.fixture
def soon(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """What never comes is asked for three times: of each its client waits for a second and more, by a clock of its own."""
    monkeypatch.setattr(faults, "MOST_TRIES", 3)


def keys(client: object, name: str, prefix: str) -> dict[str, str]:
    """Data files of a store in a bucket and their entity tags."""
    listed = client.list_objects_v2(Bucket=name, Prefix=f"{prefix}/").get("Contents", [])  # type: ignore[attr-defined]
    return {entry["Key"].removeprefix(prefix): entry["ETag"] for entry in listed if entry["Key"].endswith(".parquet")}


@pytest.mark.long
@pytest.mark.usefixtures("quick")
def test_a_bad_night_tells_what_a_calm_one_tells(tmp_path: Path, bucket: tuple[str, object], access: Access) -> None:
    """A third of all requests fails: nothing is lost, nothing doubled, nothing foreign touched."""
    name, client = bucket
    for number in range(2):
        write_bundle(tmp_path / "in", number, 3, FIRST)
    upload(client, name, tmp_path / "in", "fleet")
    client.put_object(Bucket=name, Key="other/evidence/important.txt", Body=b"x")  # type: ignore[attr-defined]
    time.sleep(2.1)  # settled, whoever looks
    bad = Faults({"reset": 0.1, "cut": 0.15, "busy": 0.08, "slow": 0.03})
    with proxy(str(access.endpoint_url), bad) as url:
        for prefix, there in (("calm", access), ("bad", Access(url))):
            for date in (FIRST, SECOND):
                told = night(f"s3://{name}/{prefix}", [f"s3://{name}/fleet"], date, access=there)  # type: ignore[list-item]
                assert (told.counts.found, told.errors) == (2, ())
                assert told.counts.read == (2 if date == FIRST else 0)
    assert {kind for kind, times in bad.done.items() if times > 1} == {"none", "reset", "cut", "busy", "slow"}
    assert keys(client, name, "bad") == keys(client, name, "calm") != {}
    assert not check(f"s3://{name}/bad", access).damage
    assert client.get_object(Bucket=name, Key="other/evidence/important.txt")["Body"].read() == b"x"  # type: ignore[attr-defined]


@pytest.mark.usefixtures("soon")
def test_a_bundle_that_cannot_be_fetched_is_left_and_named_and_the_night_goes_on(
    tmp_path: Path, bucket: tuple[str, object], access: Access
) -> None:
    name, client = bucket
    for number in range(2):
        write_bundle(tmp_path / "in", number, 3, FIRST)
    upload(client, name, tmp_path / "in", "fleet")
    cursed = next(path.name for path in (tmp_path / "in").rglob("*.tar.gz"))
    with proxy(str(access.endpoint_url), Faults({}, cursed=cursed)) as url:
        told = night(f"s3://{name}/s", [f"s3://{name}/fleet"], FIRST, access=Access(url))  # type: ignore[list-item]
    assert (told.counts.found, told.counts.read) == (2, 1)
    assert [(error.bundle.rpartition("/")[2], error.status) for error in told.errors] == [(cursed, "io")]
    assert night(f"s3://{name}/s", [f"s3://{name}/fleet"], SECOND, access=access).counts.read == 1  # type: ignore[list-item]


@pytest.mark.usefixtures("soon")
def test_a_store_that_does_not_answer_is_not_called_damaged(
    tmp_path: Path, bucket: tuple[str, object], access: Access
) -> None:
    name, client = bucket
    write_bundle(tmp_path / "in", 1, 3, FIRST)
    night(f"s3://{name}/s", tmp_path / "in", FIRST, access=access)
    with proxy(str(access.endpoint_url), Faults({}, cursed="/bundle/day")) as url:
        with pytest.raises(BundleError, match="Nothing says that the store is damaged") as caught:
            night(f"s3://{name}/s", tmp_path / "in", SECOND, access=Access(url))
        assert not isinstance(caught.value, DamagedError)
    (path,) = [key for key in keys(client, name, "s") if key.startswith("/bundle/")]
    client.put_object(Bucket=name, Key=f"s{path}", Body=b"")  # type: ignore[attr-defined]
    with pytest.raises(DamagedError, match="written with"):
        night(f"s3://{name}/s", tmp_path / "in", SECOND, access=access)
    with pytest.raises(DamagedError, match="is not what was written"):
        ask(f"s3://{name}/s", "SELECT * FROM bundle", access)


def test_rights_and_names_are_not_asked_again(access: Access) -> None:
    tries = []

    def denied() -> None:
        tries.append(1)
        raise OSError(
            "When reading information for key 'a' in bucket 'b': AWS Error ACCESS_DENIED during HeadObject operation"
        )

    with pytest.raises(OSError, match="ACCESS_DENIED"):
        faults.patiently(denied)
    assert len(tries) == 1


@pytest.mark.usefixtures("quick")
def test_foreign_objects_are_never_touched(tmp_path: Path, bucket: tuple[str, object], access: Access) -> None:
    name, client = bucket
    write_bundle(tmp_path / "in", 1, 3, FIRST)
    foreign = ("evidence/important.txt", "bundle/photo.jpg", "lock/mine.txt", "lock/readme")
    for key in foreign:
        client.put_object(Bucket=name, Key=f"theirs/{key}", Body=b"x")  # type: ignore[attr-defined]
        client.put_object(Bucket=name, Key=f"s/{key}", Body=b"x") if key == foreign[0] else None  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="no store of a sweep, and not empty"):
        night(f"s3://{name}/theirs", tmp_path / "in", FIRST, access=access)
    client.delete_object(Bucket=name, Key=f"s/{foreign[0]}")  # type: ignore[attr-defined]
    night(f"s3://{name}/s", tmp_path / "in", FIRST, access=access)
    for key in foreign:
        client.put_object(Bucket=name, Key=f"s/{key}", Body=b"x")  # type: ignore[attr-defined]
    for date in ("2027-03-01", "2027-03-02"):
        night(f"s3://{name}/s", tmp_path / "in", date, access=access, retention_days=5, rebuild=True)
    for prefix in ("theirs", "s"):
        for key in foreign:
            assert client.get_object(Bucket=name, Key=f"{prefix}/{key}")["Body"].read() == b"x"  # type: ignore[attr-defined]
    listed = client.list_objects_v2(Bucket=name, Prefix="theirs/")["Contents"]  # type: ignore[attr-defined]
    assert {entry["Key"] for entry in listed} == {f"theirs/{key}" for key in foreign}


@pytest.mark.usefixtures("quick")
def test_a_bucket_that_lost_its_record_is_refused_and_mended(
    tmp_path: Path, bucket: tuple[str, object], access: Access
) -> None:
    name, client = bucket
    write_bundle(tmp_path / "in", 1, 3, FIRST, cause="shared")
    night(f"s3://{name}/s", tmp_path / "in", FIRST, access=access)
    rows = ask(f"s3://{name}/s", "SELECT * FROM incident", access)
    before = keys(client, name, "s")
    client.delete_object(Bucket=name, Key="s/manifest.json")  # type: ignore[attr-defined]
    with pytest.raises(DamagedError, match="it has data and no manifest"):
        night(f"s3://{name}/s", tmp_path / "in", SECOND, access=access)
    assert keys(client, name, "s") == before
    assert repair(f"s3://{name}/s", access).mended
    assert ask(f"s3://{name}/s", "SELECT * FROM incident", access) == rows
    assert night(f"s3://{name}/s", tmp_path / "in", SECOND, access=access).previous == FIRST


def test_a_claim_that_could_not_be_renewed_writes_no_more(
    bucket: tuple[str, object], access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, _ = bucket
    there = place(f"s3://{name}/store", access)
    monkeypatch.setattr(locks, "_TRUST_S", -1.0)
    with locks.locked(there) as still, pytest.raises(BusyError, match="could not be renewed"):
        Dataset(there, still=still).load().prepare()
    assert not [key for key in there.files() if key.endswith(".json")]


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


@pytest.mark.usefixtures("here")  # that workers reach a bucket is asked of S3
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
