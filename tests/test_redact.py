"""Redacted copies: nothing planted is left, everything else is where it was, and the diagnosis is the same."""

from __future__ import annotations

import bz2
import gzip
import importlib
import io
import json
import lzma
import pkgutil
import re
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import canaries
import oomdoc
import shapes
from grids import WHOLE, report_of, some
from oomdoc import cli
from oomdoc.errors import BundleError, UsageError
from oomdoc.intake.bundle import Limits, open_bundle
from oomdoc.judge.wording import ID as WORDING
from oomdoc.redact import manifest
from oomdoc.redact.names import Pseudonyms
from oomdoc.redact.run import Redaction, common_words, redact, redact_stream
from oomdoc.redact.same import differences
from oomdoc.redact.text import Redactor
from oomdoc.redact.words import kind_of

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "sample_logs"
NAMES = sorted(path.parent.name for path in SAMPLES.glob("*/case.toml"))
KEY = b"a key that only this test has..."
NAMES_ELSEWHERE = {path: canaries.TEXTS[path].encode() for path in ("pods.json", "requests.jsonl", "messages")}


def redactor() -> Redactor:
    return Redactor(Pseudonyms(KEY), common_words())


def redacted(text: str) -> str:
    return redactor().whole(text)


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def members(path: Path) -> dict[str, bytes]:
    """Every member of a bundle, archives opened, by path."""
    return {member.path: member.stream.read() for member in open_bundle([path]).members()}


def survivors(path: Path) -> list[tuple[str, str]]:
    """Canaries in names and contents of a copy, archives opened."""
    found = [(name, what) for name, data in members(path).items() for what in canaries.left(data)]
    found += [(name, what) for name in members(path) for what in canaries.left(name.encode())]
    plain = [entry for entry in path.rglob("*") if entry.is_file()] if path.is_dir() else [path]
    return found + [(str(entry), what) for entry in plain for what in canaries.left(entry.read_bytes())]


# ---- nothing that was planted is left


def test_the_canaries_are_there_before(tmp_path: Path) -> None:
    files = {path: text.encode() for path, text in canaries.TEXTS.items()}
    there = {what for data in [*files.values(), *(path.encode() for path in files)] for what in canaries.left(data)}
    assert there == {f"{kind}: {word}" for kind, words in canaries.CANARIES.items() for word in words}
    assert {kind for path, data in files.items() for kind in canaries.left(data)}


def test_no_canary_survives_in_any_source(tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle", {path: text.encode() for path, text in canaries.TEXTS.items()})
    told = redact(bundle, tmp_path / "copy")
    assert survivors(tmp_path / "copy") == []
    assert {"prompt", "secret", "user", "host", "tenant", "email", "ip", "mac"} <= set(told.replaced)
    assert told.renamed == 1


@pytest.mark.parametrize(
    "path", [path for path in canaries.TEXTS if path not in ("notes.txt", "home") and "/" not in path]
)
def test_no_canary_survives_in_a_source_alone(path: str, tmp_path: Path) -> None:
    """Without any other source that tells which names there are."""
    file = tmp_path / path
    file.write_text(canaries.TEXTS[path], encoding="utf-8")
    redact(file, tmp_path / "copy")
    assert survivors(tmp_path / "copy") == []


@pytest.mark.parametrize("name", shapes.ENVELOPES)
def test_no_canary_survives_in_an_envelope(name: str, tmp_path: Path) -> None:
    logs = ("vllm.log", "raw.log", "requests.jsonl", "requests.log", "messages", "commands.txt", "notes.txt")
    files = dict(NAMES_ELSEWHERE)
    for log in logs:
        lines = list(shapes.stamped(canaries.TEXTS[log].encode(), 2026))
        files[f"logs/{log}.out"] = shapes.ENVELOPES[name](lines).encode("utf-8", "surrogateescape")
    redact(write(tmp_path / "bundle", files), tmp_path / "copy")
    assert survivors(tmp_path / "copy") == []


def _tar(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.uname, info.mtime = len(data), canaries.USER, 1795205101
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _zip(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.comment = canaries.EMAIL.encode()
        for name, data in files.items():
            archive.writestr(name, data)
    return out.getvalue()


FILES = {path: text.encode() for path, text in canaries.TEXTS.items()}
ARCHIVES: Mapping[str, bytes] = {
    "a.tar": _tar(FILES),
    "a.tar.gz": gzip.compress(_tar(FILES)),
    "a.tar.zst": zstandard.compress(_tar(FILES)),
    "a.zip": _zip(FILES),
    "nested.zip": _zip({"node/inner.tar.gz": gzip.compress(_tar(FILES)), "x.log.gz": gzip.compress(FILES["vllm.log"]), "last.txt": b"end\n"}),
    "deep.tar.xz": lzma.compress(_tar({f"{canaries.USER}.tar.bz2": bz2.compress(_tar({"in.zip": _zip(FILES)}))})),
}  # fmt: skip


@pytest.mark.parametrize("name", ARCHIVES)
def test_an_archive_stays_an_archive_of_the_same_form(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(ARCHIVES[name])
    target = tmp_path / f"copy-of-{name}"
    options = Redaction(map=tmp_path / "map")
    told = redact(tmp_path / name, target, options)
    assert survivors(target) == []
    before, after = members(tmp_path / name), members(target)
    assert len(after) == len(before) + 1 == told.members + 1
    assert list(after)[-1].endswith(manifest.NAME)
    stand_in = json.loads((tmp_path / "map").read_text())["names"]
    renamed = [path.replace(canaries.USER, stand_in["user"][canaries.USER]).replace(canaries.HOST, stand_in["host"][canaries.HOST]) for path in before]  # fmt: skip
    assert list(after)[:-1] == renamed
    assert target.read_bytes()[:2] == ARCHIVES[name][:2]
    again = tmp_path / f"again-{name}"
    redact(tmp_path / name, again, options)
    assert again.read_bytes() == target.read_bytes(), "the same map gives the same bytes"


def test_lines_stay_where_they_are(tmp_path: Path) -> None:
    bundle = write(
        tmp_path / "bundle", {path: text.encode() for path, text in canaries.TEXTS.items() if "/" not in path}
    )
    redact(bundle, tmp_path / "copy")
    before, after = members(bundle), members(tmp_path / "copy")
    assert {path: data.count(b"\n") for path, data in before.items()} == {
        path: data.count(b"\n") for path, data in after.items() if path != manifest.NAME
    }


def test_utf_16_is_redacted_and_stays(tmp_path: Path) -> None:
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        file = tmp_path / f"{encoding}.log"
        file.write_bytes(canaries.TEXTS["vllm.log"].encode(encoding))
        target = tmp_path / f"copy-{encoding}.log"
        redact(file, target)
        assert canaries.left(target.read_bytes()) == []
        assert canaries.left(target.read_bytes().decode(encoding).encode()) == []
        assert "CUDA out of memory" in target.read_bytes().decode(encoding)


def test_parts_that_end_with_nul(tmp_path: Path) -> None:
    environ = f"HF_TOKEN={canaries.SECRETS['hugging face']}\0HOME=/home/{canaries.USER}\0HOSTNAME={canaries.HOST}\0VLLM_PORT=8000\0"
    command = f"vllm\0serve\0/models/x\0--api-key\0{canaries.SECRETS['password']}\0--max-num-seqs\x0064\0"
    bundle = write(tmp_path / "bundle", {"environ": environ.encode(), "cmdline": command.encode()})
    redact(bundle, tmp_path / "copy")
    assert survivors(tmp_path / "copy") == []
    assert (tmp_path / "copy/cmdline").read_bytes().endswith(b"\0--max-num-seqs\x0064\0")


@pytest.mark.parametrize("filler", [b'{"ts": 1795205100, "n": 12}\n', b'{"n": 12, "k": [1, 2, 3]},'])
def test_the_border_of_a_chunk_hides_nothing(filler: bytes, tmp_path: Path) -> None:
    """Canaries at every offset around the size in which sources are read, in lines and in one line without end."""
    row = json.dumps({"ts": 1, "messages": [{"role": "user", "content": canaries.PROMPT}], "user": canaries.USER, "api_key": canaries.SECRETS["password"]}).encode()  # fmt: skip
    row += b"\n" if filler.endswith(b"\n") else b","
    file = tmp_path / "big.json"
    with file.open("wb") as out:
        while out.tell() < (3 << 20 if WHOLE else (1 << 20) + (1 << 16)):
            room = (1 << 20) - out.tell() % (1 << 20)
            out.write(row if room < 2000 else filler * max(1, (room - 1000) // len(filler) // 2))
    redact(file, tmp_path / "copy")
    made = (tmp_path / "copy").read_bytes()
    assert canaries.left(made) == []
    assert made.count(b"redacted-prompt") == file.read_bytes().count(canaries.PROMPT.encode()) > 2


def test_pretty_json_over_a_chunk_is_held_until_it_is_whole(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": f"{number} {canaries.PROMPT}"} for number in range(12_000)]
    file = tmp_path / "x.json"
    file.write_text(json.dumps({"messages": turns, "model": "m", "prompt_tokens": 5}, indent=4))
    redact(file, tmp_path / "copy")
    made = json.loads((tmp_path / "copy").read_text())
    assert canaries.left((tmp_path / "copy").read_bytes()) == []
    assert (made["model"], made["prompt_tokens"], len(made["messages"]), made["messages"][0]["role"]) == ("m", 5, 12_000, "user")  # fmt: skip


# ---- what is replaced, and what is not

KEPT = (
    "INFO 11-20 20:04:51 [api_server.py:1289] vLLM API server version 0.10.1.1",
    "Driver Version: 550.54.15      CUDA Version: 12.4",
    "nvidia-cudnn-cu12==9.10.2.21",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total capacity of 23.50 GiB",
    "INFO 11-20 20:05:07 [loggers.py:123] Engine 000: Avg prompt throughput: 1.2 tokens/s, Running: 1 reqs",
    "[12345.678901] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    "|   0  NVIDIA H100 80GB HBM3          On  |   00000000:3B:00.0 Off |                    0 |",
    "vllm serve /models/x --host 0.0.0.0 --port 8000 --max-num-seqs 64 --dtype auto",
    '{"prompt_tokens": 128, "completion_tokens": 64, "eos_token": "</s>", "max_tokens": 99}',
    "nvidia.com/gpu: 1",
    "kubernetes.io/arch: amd64",
    'HF_TOKEN=***HIDDEN*** API_KEY="${API_KEY}" password: <redacted> token=None',
    "serviceAccountToken: 3600",
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    "std::vector c10::cuda at::native a::b 12:30:11 2026-11-20T20:04:51Z",
    "user: root, host: localhost, namespace: default, tenant: None, node: 0",
    "forward_pass: compiled in 12 s, bypass=no",
    '{"time_per_output_token_ms": 12, "max_token": 5, "eosToken": "</s>", "num_token": "many"}',
    "core-26-11-20-20-05-01.log 2026-11-20-20-05-01 0000:3b:00.0 GPU-8f6c1b3a-1c2d-4e5f-8a9b-0c1d2e3f4a5b",
    'columns ["prompt_tokens", "output_tokens"], ["timestamp", "tenant"], ("a", "b")',
    "<fb_memory_usage><total>81559 MiB</total><used>70000 MiB</used></fb_memory_usage>",
    "kind: ConfigMap\napiVersion: v1\ndata:\n  VLLM_ARGS: --max-num-seqs 64",
    "users: 50, teams: 3, targets: 4, tokens: 5, clusters: 2",
    "127.0.0.1 is the address, $1 = value, ${HOME}, $2y is no hash",
    "image sha256:" + "9f1c3ab27e5d4081" * 4,
    "digest sha512:" + "0123456789abcdef" * 8,
    "WARNING 11-20 20:04:51 [x.py:1] the template lacks <|im_end|> and [/INST]",
    "[rank0]:[W1120 20:04:40.123 ProcessGroupNCCL.cpp:1250] Warning",
    '  - name: VLLM_PORT\n    value: "8000"\n  - name: API_TOKEN\n    valueFrom: x',
)


@pytest.mark.parametrize("line", KEPT)
def test_what_tells_of_nobody_stays(line: str) -> None:
    assert redacted(line) == line


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("access_token", "secret"),
        ("grafana_token", "secret"),
        ("adminToken", "secret"),
        ("jira-token", "secret"),
        ("eos_token", None),
        ("bostoken", None),
        ("perToken", None),
        ("time_per_output_token", None),
        ("DB_PASS", "secret"),
        ("forward_pass", None),
        ("bypass", None),
        ("POSTGRES_USER", "user"),
        ("MLFLOW_TRACKING_USERNAME", "user"),
    ],
)
def test_what_the_name_of_a_field_says(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_only_the_secrets_among_objects_lose_their_data() -> None:
    plain = "kind: ConfigMap\napiVersion: v1\ndata:\n  args: --max-num-seqs 64\n"
    secret = "apiVersion: v1\ndata:\n  args: LS1tYXgtbnVtLXNlcXM=\nkind: Secret\nmetadata:\n  name: x\n"
    made = redacted(f"{plain}---\n{secret}---\n{plain}")
    assert made.count("--max-num-seqs 64") == 2 and "LS1t" not in made
    items = [{"apiVersion": "v1", "data": {"a": "--max-num-seqs 64"}, "kind": kind} for kind in ("ConfigMap", "Secret")]
    told = json.loads(redacted(json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=1)))
    assert told["items"][0]["data"] == {"a": "--max-num-seqs 64"} != told["items"][1]["data"]


def test_what_follows_a_list_or_a_text_of_yaml_stays() -> None:
    for prompts in ("prompts:\n- one two three\n- 'four five'\n", "prompt: one two\n  three four\n"):
        made = redacted(f"a: 1\n{prompts}max_tokens: 5\n- b: two words\n")
        assert made.startswith("a: 1\nprompt") and made.endswith("\nmax_tokens: 5\n- b: two words\n")
        assert "one" not in made and "four" not in made and made.count("\n") == prompts.count("\n") + 3


def test_colour_goes_and_the_line_stays() -> None:
    assert redacted("\x1b[32mINFO\x1b[0m 11-20 [x.py:1] GPU KV cache size: 9 tokens") == "INFO 11-20 [x.py:1] GPU KV cache size: 9 tokens"  # fmt: skip


def test_a_prompt_keeps_its_length_and_token_ids_their_number() -> None:
    assert redacted('{"prompt": "abcdefghij", "n": 5}') == '{"prompt": "redacted-prompt-10-chars", "n": 5}'
    assert redacted("prompt_token_ids: [128000, 7, 9]") == "prompt_token_ids: [0, 0, 0]"


def test_a_name_is_the_same_wherever_it_stands_and_in_every_bundle_of_a_map(tmp_path: Path) -> None:
    kept = Redaction(map=tmp_path / "fleet.map")
    for number in (1, 2):
        (tmp_path / f"{number}.jsonl").write_text('{"user": "quillworth", "prompt_tokens": 1}\nquillworth again\n')
        redact(tmp_path / f"{number}.jsonl", tmp_path / f"{number}.out", kept)
    first, second = ((tmp_path / f"{number}.out").read_text() for number in (1, 2))
    assert first == second
    stand_in = json.loads(first.splitlines()[0])["user"]
    assert first.splitlines()[1] == f"{stand_in} again"
    assert (tmp_path / "fleet.map").stat().st_mode & 0o777 == 0o600
    known = json.loads((tmp_path / "fleet.map").read_text())
    assert known["names"]["user"] == {"quillworth": stand_in}
    (tmp_path / "3.txt").write_text("what did quillworth do\n")
    redact(tmp_path / "3.txt", tmp_path / "3.out", kept)
    assert (tmp_path / "3.out").read_text() == f"what did {stand_in} do\n", "a name of another bundle of the fleet"


def test_without_a_map_stand_ins_are_of_this_run_alone(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("tenant=quillworth\n")
    for name in ("one", "two"):
        redact(tmp_path / "x.log", tmp_path / name)
    assert (tmp_path / "one").read_text() != (tmp_path / "two").read_text()


def test_the_map_holds_neither_secrets_nor_prompts(tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle", FILES)
    redact(bundle, tmp_path / "copy", Redaction(map=tmp_path / "map"))
    found = canaries.left((tmp_path / "map").read_bytes())
    assert found and not [what for what in found if what.startswith(("secret", "prompt"))]


def test_words_of_ones_own_go_too(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("Project Northwind, northwind, NORTHWIND and northwinds\n")
    redact(tmp_path / "x.log", tmp_path / "out", Redaction(words=("northwind",)))
    made = (tmp_path / "out").read_text()
    assert re.fullmatch(r"Project (word-\w{8}), \1, \1 and hid\w{8}\n", made)


def test_a_name_that_logs_are_made_of_is_replaced_in_its_field_only(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("open /home/page/x: page fault, out of memory\n")
    redact(tmp_path / "x.log", tmp_path / "out")
    assert re.fullmatch(r"open /home/user-\w{8}/x: page fault, out of memory\n", (tmp_path / "out").read_text())


def test_a_copy_of_a_copy_is_the_same(tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle", FILES)
    redact(bundle, tmp_path / "one", Redaction(map=tmp_path / "map"))
    redact(tmp_path / "one", tmp_path / "two", Redaction(map=tmp_path / "map"))
    one, two = members(tmp_path / "one"), members(tmp_path / "two")
    assert {path: data for path, data in one.items() if path != manifest.NAME} == {
        path: data for path, data in two.items() if path != manifest.NAME
    }


# ---- what cannot be redacted, and what the copy says of itself


def test_binary_files_are_left_out_and_told_apart_from_absent_ones(tmp_path: Path) -> None:
    log = FILES["vllm.log"]
    picture = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
    redact(write(tmp_path / "bundle", {"vllm.log": log, "shot.png": picture}), tmp_path / "copy")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [manifest.NAME, "vllm.log"]
    with oomdoc.analyze(tmp_path / "copy") as analysis:
        report = analysis.report
    assert ("shot.png", "PNG image, left out by the redaction") in [
        tuple(vars(item).values()) for item in report.coverage.unread
    ]
    assert [row.kind for row in report.coverage.sources] == ["redaction", "text-log"] or {row.path: row.kind for row in report.coverage.sources}[manifest.NAME] == "redaction"  # fmt: skip
    assert [warning for warning in report.warnings if "redacted copy" in warning]
    with oomdoc.analyze(tmp_path / "bundle") as analysis:
        assert not [warning for warning in analysis.report.warnings if "redacted copy" in warning]


@pytest.mark.parametrize("text", ['{"oomdoc_redaction": 1', '{"oomdoc_redaction": 1, "left_out": 3}', '{"oomdoc_redaction": 1}', '{"oomdoc_redaction": 1, "left_out": [{}]}'])  # fmt: skip
def test_a_manifest_that_somebody_broke_is_named(text: str, tmp_path: Path) -> None:
    bundle = write(tmp_path / "b", {"vllm.log": FILES["vllm.log"], manifest.NAME: text.encode()})
    with oomdoc.analyze(bundle) as analysis:
        assert (manifest.NAME, "the manifest of a redacted copy, damaged") in [
            (item.path, item.why) for item in analysis.report.coverage.unread
        ]


def test_limits_of_the_intake_hold(tmp_path: Path) -> None:
    bundle = write(tmp_path / "b", {"a.log": b"x" * 5000 + b"\n", "b.log": b"y" * 5000 + b"\n"})
    told = redact(bundle, tmp_path / "copy", Redaction(limits=Limits(max_total_bytes=6000)))
    assert [path for path, why in told.left_out if "the rest was not read" in why] == ["b.log"]


def test_nothing_is_written_over_or_into_the_input(tmp_path: Path) -> None:
    bundle = write(tmp_path / "b", {"a.log": b"x\n"})
    there = tmp_path / "there"
    there.write_text("mine")
    for out in (there, bundle / "copy", tmp_path / "no" / "folder"):
        with pytest.raises(UsageError):
            redact(bundle, out)
    assert there.read_text() == "mine"
    with pytest.raises(BundleError):
        redact(write(tmp_path / "c", {"only.png": b"\x89PNG\r\n\x1a\n" + bytes(100)}), tmp_path / "out")
    assert not (tmp_path / "out").exists(), "half a copy is none"


def test_a_file_that_is_no_map_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("a\n")
    for text in ("", "[]", '{"oomdoc_redaction_map": 1}', '{"oomdoc_redaction_map": 1, "key": "00", "names": {}}'):
        (tmp_path / "map").write_text(text)
        with pytest.raises(UsageError, match="no map"):
            redact(tmp_path / "x.log", tmp_path / "out", Redaction(map=tmp_path / "map"))


# ---- the diagnosis stays


@pytest.mark.parametrize("name", some(NAMES, 3))
def test_the_copy_of_a_sample_has_the_same_diagnosis(name: str, tmp_path: Path) -> None:
    redact(SAMPLES / name, tmp_path / "copy")
    signs = oomdoc.Options(wording=False)
    with oomdoc.analyze(SAMPLES / name, signs) as plain, oomdoc.analyze(tmp_path / "copy", signs) as after:
        before = plain.report
        assert differences(before, after.report) == ()
        rows = {row.path: (row.kind, row.lines, row.rows, row.problems) for row in before.coverage.sources}
        assert rows == {
            row.path: (row.kind, row.lines, row.rows, row.problems)
            for row in after.report.coverage.sources
            if row.kind != manifest.KIND
        }


def test_a_difference_is_told() -> None:
    told = differences(report_of(NAMES[0]), report_of(NAMES[1]))
    assert any("order of causes" in item for item in told) and any("evidence" in item for item in told)


# ---- the command


def test_the_command_tells_what_it_did(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = write(tmp_path / "bundle", FILES)
    assert cli.run(["redact", str(bundle), str(tmp_path / "copy"), "--map", str(tmp_path / "map")]) == 0
    told = capsys.readouterr().out
    assert "prompts and completions" in told and "Diagnosis: the same" in told
    assert canaries.left(told.encode()) == []
    assert cli.run(["redact", str(bundle), str(tmp_path / "copy2"), "--format", "json", "--no-check"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert value["same_diagnosis"] is None and value["replaced"]["prompt"] > 5
    assert cli.run(["redact", str(bundle), str(tmp_path / "copy")]) == 2


REFUSED = (
    f"INFO 11-20 20:06:01 [core.py:58] Initializing a V1 LLM engine (v0.11.0) with config: model='/home/{canaries.USER}/models/Nimbus-8B', dtype=torch.bfloat16\n"
    "INFO 11-20 20:06:40 [gpu_model_runner.py:2392] Model loading took 15.2672 GiB and 9.1 seconds\n"
    "INFO 11-20 20:06:50 [gpu_worker.py:298] Available KV cache memory: 4.21 GiB\n"
    "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is needed, which is larger than the "
    "available KV cache memory (4.21 GiB). Based on the available memory, the estimated maximum model length is 34480. Try increasing "
    "`gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
)
DECIDED = {"vllm.log": REFUSED.encode(), **{name: FILES[name] for name in ("notes.txt", "commands.txt", "hosts", "pods.json", "describe.txt", "config.json")}}  # fmt: skip


@pytest.mark.parametrize(("files", "decided"), [(FILES, False), (DECIDED, True)], ids=["of everything", "of one cause"])
def test_a_redacted_report_holds_no_canary_in_any_form(
    files: Mapping[str, bytes], decided: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"{canaries.USER}-{canaries.HOST}.tar.gz"
    (tmp_path / name).write_bytes(gzip.compress(_tar(files)))
    out = tmp_path / "report.json"
    assert cli.run(["analyze", str(tmp_path / name), "--redact", "-o", "-", "-o", str(out), "-q"]) == 0
    page = capsys.readouterr().out
    assert canaries.left(page.encode()) == [] and canaries.left(out.read_bytes()) == []
    assert cli.run(["analyze", str(tmp_path / name), "--format", "json", "-q"]) == 0
    plain, told = json.loads(capsys.readouterr().out), json.loads(out.read_text())
    assert canaries.left(json.dumps(plain).encode()), "the plain report quotes some"
    figures = [{item["cause"]: item["probability"] for item in report["diagnoses"]} for report in (plain, told)]
    assert figures[1] == pytest.approx(figures[0], abs=0.2), "stand-ins are other words, which turn nothing"
    # where forty files speak of as many matters nothing is decided, and words turn which of the causes is the nearest
    assert (plain["verdict"] == "diagnosed") is decided and plain["verdict"] == told["verdict"]
    assert not decided or plain["diagnoses"][0]["cause"] == told["diagnoses"][0]["cause"]
    signs = [
        {(item["cause"], piece["id"]): piece["weight"] for item in report["diagnoses"] for piece in (*item["evidence"], *item["against"]) if piece["id"] != WORDING}
        for report in (plain, told)
    ]  # fmt: skip
    assert signs[0] == signs[1]


def test_standard_input_is_redacted_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(ARCHIVES["a.tar.gz"])

        def isatty(self) -> bool:
            return False

    monkeypatch.setattr("sys.stdin", Stdin())
    redact("-", tmp_path / "copy.tar.gz")
    assert survivors(tmp_path / "copy.tar.gz") == []


# ---- a scanner that others keep finds nothing


OTHERWISE = ("ip_public", "keyword", "cloudant", "ibm_cloud_iam", "ibm_cos_hmac", "softlayer", "basic_auth", "npm")
"""Detectors of assignments in any notation of code: the notations of logs are tried below, key by key."""


def detectors() -> Iterator[tuple[str, Any, re.Pattern[str]]]:
    import detect_secrets.plugins as plugins

    for info in pkgutil.iter_modules(plugins.__path__):
        module = importlib.import_module(f"detect_secrets.plugins.{info.name}")
        for name, kind in sorted(vars(module).items()):
            listed = getattr(kind, "denylist", None)
            if (
                name.endswith("Detector")
                and kind.__module__ == module.__name__
                and info.name not in ("ip_public", "keyword")
            ):
                for place, regex in enumerate(listed if isinstance(listed, (list, tuple)) else [listed]):
                    if isinstance(regex, re.Pattern):
                        yield f"{info.name}-{place}", kind, regex


DETECTORS = {name: (kind, regex) for name, kind, regex in detectors()}


def test_there_are_detectors() -> None:
    assert len(DETECTORS) > 20


@pytest.mark.parametrize("name", DETECTORS)
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_what_detect_secrets_knows_is_replaced(name: str, data: st.DataObject) -> None:
    kind, regex = DETECTORS[name]
    text = data.draw(st.from_regex(regex, alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
    line = f"2026-11-20 value {text} end"
    secrets = {secret for secret in kind().analyze_string(line) if len(secret) > 3}
    made = redacted(line)
    left = {secret for secret in secrets if secret in made and not secret.startswith(("BEGIN", "PuTTY"))}
    assert not left, (line, made)


# ---- any text whatever


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_the_same_number_of_lines(text: str) -> None:
    made = redacted(text)
    assert made.count("\n") == text.count("\n")


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=400))
def test_any_bytes_are_redacted_or_kept(data: bytes) -> None:
    stream = io.BufferedReader(io.BytesIO(data))  # type: ignore[arg-type]
    b"".join(redact_stream(stream, redactor(), lambda why: None))


@settings(max_examples=50, deadline=None)
@given(
    secret=st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=12, max_size=40),
    quote=st.sampled_from(["", '"', "'"]),
    sign=st.sampled_from(["=", ": ", ":", " = "]),
    key=st.sampled_from(
        [
            "api_key",
            "HF_TOKEN",
            "password",
            "X-API-Key",
            "client_secret",
            "aws_secret_access_key",
            "cloudant_password",
            "IBM_CLOUD_IAM_KEY",
            "softlayer_api_key",
            "cos_hmac_secret_key",
            "//registry.npmjs.org/:_authToken",
        ]
    ),
)
def test_a_secret_in_a_field_goes_however_it_is_written(secret: str, quote: str, sign: str, key: str) -> None:
    if not secret.isdigit() and not re.fullmatch(r"x{4,}|\d.*", secret, re.I):
        assert secret not in redacted(f"a {key}{sign}{quote}{secret}{quote} b")


@settings(max_examples=50, deadline=None)
@given(prompt=st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=12, max_size=80))
def test_a_prompt_goes_in_every_notation(prompt: str) -> None:
    if not re.search(r"[A-Za-z]{4} [A-Za-z]{4}", prompt):
        prompt = f"word {prompt} Lantern ferry"
    for line in (
        json.dumps({"prompt": prompt, "n": 1}),
        json.dumps({"log": json.dumps({"messages": [{"role": "user", "content": prompt}]}), "stream": "stdout"}),
        f"INFO 11-20 20:05:01 [logger.py:39] Received request x: prompt: {prompt!r}, params: SamplingParams(n=1)",
        f"tenant=a prompt={json.dumps(prompt)} prompt_tokens=3",
    ):
        assert "Lantern ferry" not in redacted(line) and prompt not in redacted(line)


@pytest.mark.parametrize("name", ["copy.rar", "copy.7z"])
def test_an_archive_that_is_not_written_is_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        cli.run(
            ["redact", str(Path(__file__).parents[1] / "sample_logs" / "graph-capture-on-24gb"), str(tmp_path / name)]
        )
        == 2
    )
    assert "names an archive that is not written" in capsys.readouterr().err
    assert not (tmp_path / name).exists()


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A redacted copy of the folder, which stays a folder."""
    root = tmp_path_factory.mktemp("plain")
    redact(write(root / "bundle", FILES), root / "copy")
    return root / "copy"


@pytest.mark.parametrize("end", [".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tar", ".zip"])
def test_a_folder_becomes_the_archive_that_the_copy_is_named_for(end: str, plain: Path, tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle", FILES)
    packed = tmp_path / f"copy{end}"
    redact(bundle, packed)
    assert packed.is_file()
    if end == ".zip":
        assert zipfile.is_zipfile(packed)
    elif end != ".tar.zst":
        with tarfile.open(packed) as archive:  # any compression that Python reads: what the name says is what it is
            assert {item.name for item in archive if item.isfile()} >= {manifest.NAME}
    assert len(members(packed)) == len(members(plain)) and survivors(packed) == []


def test_a_plain_file_is_packed_too_and_an_archive_of_another_kind_is_refused(tmp_path: Path) -> None:
    bundle = write(tmp_path / "bundle", FILES)
    log = tmp_path / "one.log"
    log.write_bytes(next(data for name, data in FILES.items() if name.endswith(".log")))
    redact(log, tmp_path / "one.tar.gz")
    with tarfile.open(tmp_path / "one.tar.gz") as archive:
        assert {item.name for item in archive} == {"one.log", manifest.NAME}
    redact(bundle, tmp_path / "bundle.zip")
    with pytest.raises(UsageError, match=r"bundle\.tgz names another kind of archive than bundle\.zip is"):
        redact(tmp_path / "bundle.zip", tmp_path / "bundle.tgz")
    assert not (tmp_path / "bundle.tgz").exists()
    redact(tmp_path / "bundle.zip", tmp_path / "again.zip")
    assert zipfile.is_zipfile(tmp_path / "again.zip")
