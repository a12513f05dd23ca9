"""What a sweep finds, and how log trees are cut into bundles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from oomdoc.errors import BundleError, UsageError
from oomdoc.sweep.places import Access, Seen
from oomdoc.sweep.sources import Candidate, find, host_of, pod_of, signature

SAMPLES = Path(__file__).parents[2] / "sample_logs"
NOW = 2_000_000_000_000_000_000


def tree(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)


def found(paths: list[str], group_by: str = "folder", spare: tuple[str, ...] = ()) -> dict[str, Candidate]:
    return {candidate.key: candidate for candidate in find(paths, group_by, Access(), NOW, spare)[0]}


def inside(candidate: Candidate) -> list[str]:
    return [file.address[len(candidate.base) + 1 :] for file in candidate.files]


def test_an_archive_is_a_bundle_and_other_files_go_by_folder(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "a.tar.gz",
        "b.ZIP",
        "logs/n1/vllm.log",
        "logs/n1/k8s/describe.txt",
        "logs/n2/vllm.log.1.gz",
        "logs/n2/old.tgz",
    )
    made = found([str(tmp_path)])
    assert sorted(made) == [
        f"{tmp_path}/{name}" for name in ("a.tar.gz", "b.ZIP", "logs/n1", "logs/n2", "logs/n2/old.tgz")
    ]
    assert inside(made[f"{tmp_path}/logs/n1"]) == ["k8s/describe.txt", "vllm.log"]
    assert inside(made[f"{tmp_path}/logs/n2"]) == ["vllm.log.1.gz"]
    assert made[f"{tmp_path}/a.tar.gz"].alone and not made[f"{tmp_path}/logs/n2"].alone


def test_files_in_the_folder_given_do_not_swallow_those_below(tmp_path: Path) -> None:
    tree(tmp_path, "dmesg.txt", "n1/vllm.log", "n2/vllm.log")
    made = found([str(tmp_path)])
    assert sorted(made) == [str(tmp_path), f"{tmp_path}/n1", f"{tmp_path}/n2"]
    assert inside(made[str(tmp_path)]) == ["dmesg.txt"]


def test_by_pod_and_by_host_collect_over_folders(tmp_path: Path) -> None:
    tree(
        tmp_path,
        "d1/pods/serving_chat-0_0b1f22aa-77/vllm/0.log",
        "d2/pods/serving_chat-0_0b1f22aa-77/vllm/1.log",
        "d1/pods/serving_chat-1_9999ffff-11/vllm/0.log",
        "other/notes.txt",
    )
    made = found([str(tmp_path)], "pod")
    assert sorted(made) == [f"{tmp_path}#pod=chat-0", f"{tmp_path}#pod=chat-1", f"{tmp_path}/other"]
    assert len(made[f"{tmp_path}#pod=chat-0"].files) == 2
    assert made[f"{tmp_path}#pod=chat-0"].pod == "chat-0"
    tree(
        tmp_path / "h",
        "2026-11-19/gpu-node-3/vllm.log",
        "2026-11-20/gpu-node-3/vllm.log",
        "2026-11-20/gpu-node-4/vllm.log",
    )
    made = found([str(tmp_path / "h")], "host")
    assert sorted(made) == [f"{tmp_path}/h#host=gpu-node-3", f"{tmp_path}/h#host=gpu-node-4"]


@pytest.mark.parametrize(
    ("path", "host"),
    [
        ("archives/gpu17.tar.gz", "gpu17"),
        ("host=edge-a/vllm.log", "edge-a"),
        ("ip-10-0-3-7/vllm.log", "ip-10-0-3-7"),
        ("gpu-shared-a1/vllm.log", None),
        ("v0.27.1/vllm.log", None),
        ("case.12/vllm.log", None),
        ("nights/g027.tar.gz", None),
        ("chat1.log.gz", None),
        ("a3.example.com.tar.zst", "a3.example.com"),
    ],
)
def test_a_host_is_told_only_where_the_path_names_one(path: str, host: str | None) -> None:
    assert host_of(path) == host


def test_a_pod_is_told_only_where_the_path_names_one() -> None:
    assert pod_of("namespaces/ml/pods/chat-7/vllm/current.log") == "chat-7"
    assert pod_of("containers/chat-0_ml_vllm-0123abcd.log") == "chat-0"
    assert pod_of("vllm-server.log") is None


def test_globs_name_files_and_folders(tmp_path: Path) -> None:
    tree(tmp_path, "n1/vllm.log", "n1/other.txt", "n2/vllm.log", "n3/readme")
    made = found([f"{tmp_path}/*/vllm.log"])
    assert sorted(made) == [f"{tmp_path}/n1", f"{tmp_path}/n2"]
    assert inside(made[f"{tmp_path}/n1"]) == ["vllm.log"]
    assert sorted(found([f"{tmp_path}/n[12]"])) == [f"{tmp_path}/n1", f"{tmp_path}/n2"]


def test_links_unfinished_files_and_the_store_are_no_input(tmp_path: Path) -> None:
    tree(tmp_path, "n1/vllm.log", "n1/.vllm.log.swp", "up.tar.gz.part", "store/manifest.json")
    (tmp_path / "n1" / "etc").symlink_to("/etc")
    (tmp_path / "again").symlink_to(tmp_path / "n1")
    made = found([str(tmp_path)], spare=(f"{tmp_path}/store",))
    assert sorted(made) == [f"{tmp_path}/n1"]
    assert inside(made[f"{tmp_path}/n1"]) == ["vllm.log"]


def test_what_is_named_twice_is_there_once(tmp_path: Path) -> None:
    tree(tmp_path, "n1/vllm.log")
    assert len(found([str(tmp_path), str(tmp_path / "n1"), f"{tmp_path}/*"])) == 1


def test_nothing_found_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"no bundle was found .*nowhere does not exist"):
        found([str(tmp_path / "nowhere")])
    with pytest.raises(UsageError, match="--group-by rack"):
        found([str(tmp_path)], "rack")


def test_a_path_that_is_missing_does_not_hide_the_others(tmp_path: Path) -> None:
    tree(tmp_path, "n1/vllm.log")
    made, faults = find([str(tmp_path / "gone"), str(tmp_path)], "folder", Access(), NOW)
    assert [candidate.name for candidate in made] == ["n1"]
    assert len(faults) == 1 and "gone does not exist" in faults[0]


@pytest.mark.parametrize("change", [{"bytes": 9}, {"modified_ns": 8}, {"changed_ns": 7}, {"address": "b"}])
def test_every_part_of_a_file_changes_the_signature(change: dict[str, object]) -> None:
    file = Seen("a", 1, 2, 3)
    assert signature([file]) == signature([Seen("a", 1, 2, 3)])
    assert signature([file]) != signature([file._replace(**change)])


def test_a_file_written_a_moment_ago_is_not_settled(tmp_path: Path) -> None:
    tree(tmp_path, "n1/vllm.log")
    os.utime(tmp_path / "n1" / "vllm.log", ns=(NOW, NOW - 1_000_000_000))
    assert not found([str(tmp_path)])[f"{tmp_path}/n1"].settled
    os.utime(tmp_path / "n1" / "vllm.log", ns=(NOW, NOW - 3_000_000_000))
    assert found([str(tmp_path)])[f"{tmp_path}/n1"].settled


@pytest.mark.parametrize("at", ["", "cases/one/"])
def test_parts_of_one_bundle_are_no_bundles_of_their_own(at: str, tmp_path: Path) -> None:
    tree(
        tmp_path, *(f"{at}{name}" for name in ("pod.yaml", "vllm.log", "node/dmesg.txt", "pod-logs/vllm/previous.log"))
    )
    made = found([str(tmp_path)])
    assert [*made] == [f"{tmp_path}/{at}".rstrip("/")]
    assert len(next(iter(made.values())).files) == 4


def test_parts_without_a_file_beside_them_are_one_bundle_too(tmp_path: Path) -> None:
    tree(tmp_path, "cases/one/node/dmesg.txt", "cases/one/pod-logs/vllm.log", "cases/two/logs/vllm.log")
    assert [*found([str(tmp_path)])] == [f"{tmp_path}/cases/one", f"{tmp_path}/cases/two/logs"]


def test_folders_alike_and_folders_of_hosts_stay_apart(tmp_path: Path) -> None:
    tree(tmp_path, "index.txt", "nodes/n1/vllm.log", "nodes/n2/vllm.log")
    assert len(found([str(tmp_path)])) == 3
    tree(tmp_path / "b", "notes.txt", "logs/vllm.log", "metrics/night.tar.gz")
    assert len(found([str(tmp_path / "b")])) == 3  # an archive is a bundle, also beside parts
    tree(tmp_path / "c", "dmesg.txt", "logs/dmesg.txt")
    assert len(found([str(tmp_path / "c")])) == 2


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SAMPLES.glob("*/case.toml")))
def test_every_sample_is_one_bundle(name: str) -> None:
    (only,) = found([str(SAMPLES / name)])
    assert only == str(SAMPLES / name) or only.endswith(".tar.gz")


def test_the_samples_together_are_as_many_bundles_as_there_are_samples() -> None:
    assert len(found([str(SAMPLES)])) == len([*SAMPLES.glob("*/case.toml")])
