"""The collectors: the script runs in every shell on stub hosts, leaves secrets behind, and what it brings is diagnosed."""

from __future__ import annotations

import http.server
import re
import shutil
import signal
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import oomdoc
from oomdoc import cli, collect
from oomdoc.errors import UsageError
from oomdoc.ingest import collection
from oomdoc.redact.run import Redaction, redact
from oomdoc.report import REPORTS

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "src" / "oomdoc" / "collect" / "collector.sh"
SAMPLES = ROOT / "sample_logs"
TOOLS = (
    "sh", "sed", "tr", "date", "uname", "mkdir", "tail", "head", "cat", "rm", "grep", "cut", "sort", "tar", "gzip", "sleep",
    "find", "df", "ps", "timeout", "ls",
)  # fmt: skip
SECRET = "hf_" + "Zx9" * 8  # no real one
SHELLS = [
    pytest.param(argv, marks=pytest.mark.skipif(shutil.which(argv[0]) is None, reason=f"no {argv[0]} here"), id=argv[0])
    for argv in (["dash"], ["busybox", "sh"], ["bash", "--posix"])
]


class Host:
    """A machine of stubs: only these commands are on the PATH, and its process table is a folder."""

    def __init__(self, folder: Path, without: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self.bin, self.proc, self.out = folder / "bin", folder / "proc", folder / "out"
        for made in (self.bin, self.proc, self.out):
            made.mkdir()
        for tool in TOOLS:
            place = shutil.which(tool)
            if place and tool not in without:
                (self.bin / tool).symlink_to(place)

    def stub(self, name: str, body: str) -> None:
        path = self.bin / name
        path.unlink(missing_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
        path.chmod(0o755)

    def process(self, pid: int, argv: list[str], environment: dict[str, str]) -> None:
        place = self.proc / str(pid)
        place.mkdir()
        (place / "cmdline").write_bytes("\0".join(argv).encode() + b"\0")
        (place / "environ").write_bytes(
            "\0".join(f"{name}={value}" for name, value in environment.items()).encode() + b"\0"
        )
        (place / "status").write_text("Name:\tvllm\nVmRSS:\t 1048576 kB\n", encoding="utf-8")

    def details(self, pid: int, files: dict[str, str], outputs: tuple[str | Path, ...] = ()) -> None:
        """Further files of a process (`root/models/x/config.json`), and where its standard output and error go."""
        for name, text in files.items():
            path = self.proc / str(pid) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (self.proc / str(pid) / "fd").mkdir()
        for stream, target in enumerate(outputs, 1):
            (self.proc / str(pid) / "fd" / str(stream)).symlink_to(target)

    def clock(self) -> None:
        """Nobody waits: time stands still but where something sleeps, which puts forward what `date` says."""
        slept, date = self.folder / "slept", shutil.which("date")
        slept.write_text("")
        self.stub("sleep", f'echo "$1" >> {slept}')
        self.stub(
            "date",
            f'now={int(time.time())}; while read -r each; do now=$((now + each)); done < {slept}; exec {date} -d "@$now" "$@"',
        )

    def group(self, path: str, **counters: str) -> None:
        """A control group below /sys/fs/cgroup."""
        place = self.folder / "sys" / "fs" / "cgroup" / path
        place.mkdir(parents=True)
        for name, value in counters.items():
            (place / f"memory.{name}").write_text(value + "\n", encoding="utf-8")

    def collect(self, shell: list[str], *options: str) -> tuple[Path, str]:
        """The archive and what was said on the way."""
        program = [str(shutil.which(shell[0])), *shell[1:]]
        ran = subprocess.run(
            [*program, str(SCRIPT), "-d", "0", "-P", str(self.proc), "-o", str(self.out), *options],
            env={"PATH": str(self.bin), "HOME": str(self.folder)}, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return Path(ran.stdout.strip()), ran.stderr


def everything(archive: Path) -> dict[str, str]:
    with tarfile.open(archive) as packed:
        files = [member for member in packed.getmembers() if member.isfile()]
        return {member.name.partition("/")[2]: packed.extractfile(member).read().decode() for member in files}  # type: ignore[union-attr]


def leading(archive: Path) -> tuple[str, float]:
    with oomdoc.analyze(str(archive)) as analysis:
        first = analysis.report.diagnoses[0]
        return first.cause, first.probability


@pytest.mark.parametrize("shell", SHELLS)
def test_a_pod_beside_a_second_tenant_is_diagnosed_from_the_archive(shell: list[str], tmp_path: Path) -> None:
    case = SAMPLES / "second-tenant-on-card-one"
    host = Host(tmp_path)
    host.stub("nvidia-smi", f'[ $# -eq 0 ] && exec cat "{case}/node/nvidia-smi.txt"; exit 6')
    host.stub(
        "kubectl",
        f'case "$*" in *" logs "*--previous*) exec cat "{case}/pod-logs/server-previous.log" ;;'
        f' *" logs "*) exec cat "{case}/pod-logs/server.log" ;; *) echo "Error from server (Forbidden)" >&2; exit 1 ;; esac',
    )
    archive, said = host.collect(shell, "-n", "serving", "-p", "vllm-0")
    assert leading(archive)[0] == "gpu-shared"
    assert "no container" not in said and "docker: is not on the PATH" in said
    told = everything(archive)
    assert "kernel log: neither" in told["missing.txt"]
    assert "docker: is not on the PATH" in told["missing.txt"]
    assert sorted(path.name for path in host.out.iterdir()) == [archive.name]  # the folder is packed and gone


@pytest.mark.parametrize("shell", SHELLS)
def test_a_container_that_the_kernel_killed_is_diagnosed_from_the_archive(shell: list[str], tmp_path: Path) -> None:
    case = SAMPLES / "killed-while-loading"
    host = Host(tmp_path)
    host.stub("dmesg", f'exec cat "{case}/node/dmesg-T.txt"')
    host.stub(
        "docker",
        f'case "$1" in ps) echo "chat vllm/vllm-openai:v0.14.1 vllm" ;; logs) exec cat "{case}/vllm-previous.log" ;;'
        ' inspect) case "$3" in *OOMKilled*) echo "OOMKilled: true"; echo "ExitCode: 137" ;;'
        " *) echo 'vllm serve meta-llama/Llama-3.3-70B-Instruct --tensor-parallel-size 2 --cpu-offload-gb 32 --api-key sk-live0123456789abcd' ;; esac ;; esac",
    )
    archive, _ = host.collect(shell)
    told = everything(archive)
    assert "--api-key ***HIDDEN***" in told["containers/chat/command.txt"]
    assert leading(archive)[0] == "host-memory-exhausted"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_model_of_a_server_that_is_gone_is_found_by_its_log(shell: list[str], tmp_path: Path) -> None:
    host = Host(tmp_path)
    model = tmp_path / "models" / "own"
    model.mkdir(parents=True)
    (model / "config.json").write_text('{"model_type": "llama", "num_hidden_layers": 9}\n', encoding="utf-8")
    log = tmp_path / "server.log"
    log.write_text(
        f"INFO 11-20 20:14:01 non-default args: {{'model_tag': '{model}', 'port': 9000}}\n", encoding="utf-8"
    )
    other = tmp_path / "other.log"
    other.write_text("INFO 11-20 20:14:01 non-default args: {'model_tag': 'org/model-7b'}\n", encoding="utf-8")
    archive, _ = host.collect(shell, "-l", str(log), "-l", str(other))
    told = everything(archive)
    assert [text for name, text in told.items() if name.endswith("config.json")] == [
        '{"model_type": "llama", "num_hidden_layers": 9}\n'
    ]


@pytest.mark.parametrize("shell", SHELLS)
def test_secrets_of_the_environment_stay_behind_and_settings_come_along(shell: list[str], tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.process(
        4242,
        ["/usr/bin/python3", "/usr/bin/vllm", "serve", "org/model-7b", "--max-num-seqs", "96", "--api-key", "topsecretvalue1", "--hf-token=" + SECRET],
        {
            "HF_TOKEN": SECRET, "VLLM_API_KEY": "topsecretvalue2", "VLLM_USE_V1": "1", "AWS_SECRET_ACCESS_KEY": "topsecretvalue3",
            "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "DATABASE": "postgres://u:topsecretvalue4@db/x",
        },
    )  # fmt: skip
    host.process(7, ["/usr/sbin/sshd"], {"HF_TOKEN": SECRET})
    note = tmp_path / "gateway.log"
    note.write_text(
        f'fetch https://u:topsecretvalue5@hub/x Authorization: Bearer {SECRET} {{"api_key": "topsecretvalue6"}} max_tokens=512\n',
        encoding="utf-8",
    )
    archive, _ = host.collect(shell, "-l", str(note))
    told = everything(archive)
    whole = "\n".join(told.values())
    assert "topsecret" not in whole and SECRET not in whole
    assert told["process/4242/environment.env"].splitlines() == [
        "VLLM_USE_V1=1",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    ]
    assert "--max-num-seqs 96" in told["process/4242/command.txt"]
    assert "max_tokens=512" in whole  # a number of tokens is no secret
    assert not any(name.startswith("process/7/") for name in told)
    with oomdoc.analyze(str(archive)) as analysis:
        _, rows = analysis.sql(
            "SELECT flag, value FROM engine_flag WHERE flag IN ('max_num_seqs', 'model') ORDER BY flag"
        )
    assert rows == [("max_num_seqs", "96"), ("model", "org/model-7b")]


KEYS = tuple(
    f"{word}{number}" for number, word in enumerate(("Umbra", "Quill-x", "Heron", "Sorrel", "Vesper", "Tallis-y"))
)
PLANTED = """\
INFO 11-20 20:04:41 [utils.py:233] non-default args: {{'api_key': ['{0}', '{1}'], 'max_num_seqs': 64}}
vllm serve m --api-key {0} {1} "{2}" --port 80 --max-tokens 512
vllm serve m --api-key={0} {1} --hf-token {2} | tee x
["vllm", "--api-key", "{0}", "{1}", "--port", "80"]
{{"auth": {{"any": "{0}"}}, "client_secret": "{1}", "n": 5}}
{{\\"api_key\\": \\"{0}\\"}} u=x%3Fapi_key%3D{1}%26n%3D5 redis://:{2}@cache:6379
HF_TOKEN={0} API_KEY_2={1} DB_PASSWORD: [{2} MY_SECRET="{3}" Authorization: Bearer {4}{4}{4}
      DB_PASSWORD:                 {0}
args:
- --api-key
- {0}
- "{1}"
- --port
- "80"
api_keys:
  - {0}
  - {1}
port: 81
password:
  "{2}"
port: 82
    Args:
      --api-key
      {3}
      {4}
      --port
      83
- name: HF_TOKEN
  value: {0}
- name: VLLM_PORT
  value: kept-84
vllm serve x \\
  --api-key \\
  {5} \\
  --port 85
-----BEGIN PRIVATE KEY-----
{0}
-----END PRIVATE KEY-----
Namespace(api_key=None, allow_credentials=False, port=86) eos_token='</s>' max_tokens=512 last line
""".format(*KEYS)


@pytest.mark.parametrize("shell", SHELLS)
def test_no_key_gets_into_the_archive_in_any_notation(shell: list[str], tmp_path: Path) -> None:
    host = Host(tmp_path)
    log = tmp_path / "server.log"
    log.write_text(PLANTED, encoding="utf-8")
    host.process(
        4242,
        ["vllm", "serve", "/models/x", "--api-key", KEYS[0], KEYS[1], "--max-num-seqs", "96", f"--hf-token={KEYS[2]}"],
        {"VLLM_API_KEY": KEYS[3], "VLLM_USE_V1": "1", "NCCL_SECRET_X": KEYS[4]},
    )
    host.details(4242, {"root/models/x/config.json": f'{{"auth_token": "{KEYS[5]}", "hidden_size": 4096}}'}, (log, log))
    host.stub("ps", f"echo '4242 1048576 vllm serve /models/x --api-key {KEYS[0]} {KEYS[1]} --max-num-seqs 96'")
    host.stub(
        "docker",
        f"case \"$1\" in ps) echo 'chat vllm/vllm-openai vllm' ;; logs) cat '{log}' ;; inspect) echo 'vllm --api-key {KEYS[0]} {KEYS[1]} --port 80' ;; esac",
    )
    host.stub("kubectl", f"cat '{log}'")
    archive, _ = host.collect(shell, "-l", str(log), "-p", "vllm-0")
    told = everything(archive)
    left = [(name, word) for name, text in told.items() for word in KEYS if word in text]
    assert left == []
    for name in ("process/4242/output-1.log", "containers/chat/server.log", "pods/vllm-0/current.log"):
        for kept in ("'max_num_seqs': 64", "--port 80", "--max-tokens 512", "port: 81", "port: 82", "83", "kept-84", "--port 85",
                     "api_key=None, allow_credentials=False, port=86) eos_token='</s>' max_tokens=512 last line"):  # fmt: skip
            assert kept in told[name], (name, kept)
    assert "--max-num-seqs 96" in told["process/4242/command.txt"] and "--max-num-seqs 96" in told["process/rss.txt"]
    assert '"hidden_size": 4096' in told["process/4242/model/config.json"]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("shell", SHELLS)
def test_what_stands_around_a_server_comes_along(shell: list[str], version: int, tmp_path: Path) -> None:
    host = Host(tmp_path)
    log = tmp_path / "vllm.out"
    log.write_text("INFO 11-20 20:04:40 [api_server.py:1289] vLLM API server version 0.11.0\n", encoding="utf-8")
    host.process(4242, ["vllm", "serve", "/models/x"], {})
    host.process(7, ["redis-server", "--requirepass", "topsecret"], {})
    (host.proc / "7" / "status").write_text("Name:\tredis-server\nVmRSS:\t 8388608 kB\n", encoding="utf-8")
    (host.proc / "meminfo").write_text("MemTotal:  16000000 kB\nMemAvailable:   1000 kB\n", encoding="utf-8")
    line = "5:cpu,memory,pids:/llm/vllm\n" if version == 1 else "0::/llm/vllm\n"
    host.details(4242, {"cgroup": line, "limits": "Max open files 1024 4096 files\n"}, (log, "pipe:[4711]"))
    host.group(
        "memory/llm/vllm" if version == 1 else "llm/vllm",
        **({"usage_in_bytes": "777"} if version == 1 else {"current": "777"}),
    )
    host.clock()
    archive, _ = host.collect(shell, "-d", "4", "-i", "1", "-l", str(log))
    told = everything(archive)
    assert "vLLM API server version" in told["process/4242/output-1.log"]
    assert not any(name.startswith("logs/") for name in told)  # the same log twice would look like two starts
    assert told["process/4242/command.txt"].endswith("\n")
    assert "goes to a pipe:[4711]: docker logs" in told["missing.txt"]
    assert told["process/4242/limits.txt"].startswith("Max open files")
    assert "777" in told["process/4242/memory-group.txt"] and "999" not in told["process/4242/memory-group.txt"]
    assert told["host/largest-processes.txt"].splitlines()[:2] == ["PID RSS_KIB NAME", "7 8388608 redis-server"]
    samples = told["metrics/host-memory.prom"].splitlines()
    assert len(samples) == 10  # of each one at the start and after each of four seconds
    assert re.fullmatch(r"node_memory_MemAvailable_bytes 1024000 \d{10}000", samples[0])
    assert re.fullmatch(r'container_memory_usage_bytes\{id="(?:/memory)?/llm/vllm"\} 777 \d{10}000', samples[1])


@pytest.mark.parametrize("shell", SHELLS)
def test_what_was_missed_says_how_to_get_it(shell: list[str], tmp_path: Path) -> None:
    archive, _ = Host(tmp_path).collect(shell, "-l", "/no/such.log")
    headline, *lines = everything(archive)["missing.txt"].splitlines()
    assert headline == collection.HEADLINE
    assert len(lines) > 3
    assert all(line.count(": ") >= 2 for line in lines), lines


@pytest.mark.parametrize("shell", SHELLS)
def test_a_report_says_first_what_the_collector_missed(shell: list[str], tmp_path: Path) -> None:
    host = Host(tmp_path)
    log = tmp_path / "vllm.log"
    log.write_bytes((SAMPLES / "edge-097-chat-server" / "vllm.log").read_bytes())
    host.process(4242, ["vllm", "serve", "/models/x"], {})
    host.details(4242, {}, ("pipe:[4711]", "pipe:[4712]"))
    archive, _ = host.collect(shell, "-l", str(log))
    told = everything(archive)["missing.txt"].splitlines()[1:]
    with oomdoc.analyze(str(archive)) as analysis:
        report = analysis.report
        noted = {f"{item.what}: {item.why}" for item in report.coverage.uncollected}
        assert noted == set(told) and all("missing.txt:" in item.ref for item in report.coverage.uncollected)
        assert {item["what"] for item in analysis.to_dict()["coverage"]["uncollected"]} == {
            line.partition(": ")[0] for line in told
        }
        for form in ("terminal", "markdown", "html"):
            page = " ".join(REPORTS[form](report, width=200).replace("\\", "").split())
            assert page.index("Not collected") < page.index("How sure")
            assert (
                "output of process 4242 (goes to a pipe:[4711]: docker logs, kubectl logs or journalctl have it)"
                in page
            ), form
            assert "kernel log" in page
        first = report.diagnoses[0].cause
    assert first == "memory-utilization-edge"  # and what it missed is no evidence
    if shell[0] != next(filter(shutil.which, ("dash", "busybox", "bash"))):
        return  # what follows has read the archive already
    copy = tmp_path / "copy.tar.gz"
    redact(str(archive), copy, Redaction())
    with oomdoc.analyze(str(copy)) as analysis:  # a copy to send away says so too
        assert len(analysis.report.coverage.uncollected) == len(told)


class Server(http.server.BaseHTTPRequestHandler):
    """A server as the collector meets it: its metrics, its version and its models, which may need a key."""

    closed = False
    health = 200

    def do_GET(self) -> None:
        if self.path == "/health":  # an engine that is dead is a 503 of a server that still answers
            self.send_response(self.health)
            self.end_headers()
            return
        answers = {
            "/metrics": '# TYPE vllm:num_requests_waiting gauge\nvllm:num_requests_waiting{engine="0"} 7.0\n',
            "/version": '{"version":"0.11.2"}',
            "/v1/models": '{"object":"list","data":[{"id":"chat","object":"model","created":1795205091,"owned_by":"vllm",'
            '"root":"org/model-7b","parent":null,"max_model_len":16384,"permission":[{"id":"modelperm-1"}]}]}',
        }
        body = answers.get(self.path)
        if body is None or (self.closed and self.path.startswith("/v1")):
            self.send_error(404 if body is None else 401)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing: the test reads what the collector says."""


@pytest.fixture(params=[False, True], ids=["open", "closed"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[str, bool]]:
    handler = type("Asked", (Server,), {"closed": request.param})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}", request.param
        listening.shutdown()
        thread.join()


@pytest.mark.skipif(shutil.which("curl") is None and shutil.which("wget") is None, reason="no curl and no wget here")
@pytest.mark.parametrize("program", ["curl", "wget"])
@pytest.mark.parametrize("shell", SHELLS)
def test_a_server_is_asked_what_it_is(shell: list[str], program: str, server: tuple[str, bool], tmp_path: Path) -> None:
    place = shutil.which(program)
    if place is None:
        pytest.skip(f"no {program} here")
    address, closed = server
    host = Host(tmp_path)
    (host.bin / program).symlink_to(place)
    archive, _ = host.collect(shell, "-u", f"{address}/metrics")
    told = everything(archive)
    (version,) = [text for name, text in told.items() if name.endswith("version.json")]
    assert version == '{"version":"0.11.2"}\n'
    assert any(name.endswith("models.json") for name in told) is not closed
    assert (f"{address}/v1/models: gave no reply, or needs a key: curl -H" in told["missing.txt"]) is closed
    with oomdoc.analyze(str(archive)) as analysis:
        flags = dict(
            analysis.sql("SELECT flag, value FROM engine_flag WHERE flag IN ('version', 'model', 'max_model_len')")[1]
        )
        assert analysis.sql("SELECT value FROM metric")[1] == [(7.0,)]
    assert flags == (
        {"version": "0.11.2"} if closed else {"version": "0.11.2", "model": "org/model-7b", "max_model_len": "16384"}
    )


@pytest.mark.skipif(shutil.which("curl") is None and shutil.which("wget") is None, reason="no curl and no wget here")
@pytest.mark.parametrize("program", ["curl", "wget"])
@pytest.mark.parametrize("health", [200, 503])
@pytest.mark.parametrize("shell", SHELLS)
def test_a_server_is_asked_whether_its_engine_lives(
    shell: list[str], health: int, program: str, tmp_path: Path
) -> None:
    place = shutil.which(program)
    if place is None:
        pytest.skip(f"no {program} here")
    host = Host(tmp_path)
    (host.bin / program).symlink_to(place)
    handler = type("Asked", (Server,), {"health": health})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{listening.server_address[1]}"
        archive, _ = host.collect(shell, "-u", f"{address}/metrics")
        listening.shutdown()
    (told,) = [text for name, text in everything(archive).items() if name.endswith("health.txt")]
    assert told.endswith(f"HTTP {health} GET {address}/health\n")
    with oomdoc.analyze(str(archive)) as analysis:
        events = analysis.sql("SELECT reason FROM cluster_event WHERE source LIKE '%health.txt'")[1]
        assert events == ([] if health == 200 else [("Unhealthy",)])
        assert analysis.report.verdict != "diagnosed"  # one check that fails is no cause


@pytest.mark.parametrize("shell", SHELLS)
def test_a_server_that_gives_no_reply_is_named_and_nothing_is_made_up(shell: list[str], tmp_path: Path) -> None:
    host = Host(tmp_path)
    archive, _ = host.collect(shell, "-u", "http://127.0.0.1:9/metrics")
    told = everything(archive)
    assert not any(name.endswith("health.txt") for name in told)
    assert "http://127.0.0.1:9/health: gave no reply" in told["missing.txt"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_collection_packs_what_it_has(shell: list[str], number: int, tmp_path: Path) -> None:
    host = Host(tmp_path)
    program = [str(shutil.which(shell[0])), *shell[1:]]
    running = subprocess.Popen(
        [*program, str(SCRIPT), "-d", "60", "-i", "1", "-P", str(host.proc), "-o", str(host.out)],
        env={"PATH": str(host.bin), "HOME": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # a run in the background ignores it, and a shell cannot take that back
    )  # fmt: skip
    assert running.stderr
    for line in running.stderr:
        if "samples for" in line:
            break
    time.sleep(0.3)
    running.send_signal(number)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    told = everything(Path(out.strip()))
    assert "was interrupted" in told["missing.txt"] and "host/uname.txt" in told
    assert [path.name for path in host.out.iterdir()] == [Path(out.strip()).name]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_command_that_hangs_or_prints_without_end_is_bounded(shell: list[str], tmp_path: Path) -> None:
    host = Host(tmp_path, without=("timeout",))
    host.stub("nvidia-smi", "exec sleep 600")
    host.stub(
        "dmesg",
        "i=0; while [ $i -lt 40000 ]; do echo 'a line of the kernel that is repeated and repeated again'; i=$((i + 1)); done",
    )
    archive, _ = host.collect(shell, "-t", "1", "-s", "1")
    told = everything(archive)
    assert len(told["host/dmesg.txt"]) <= 1 << 20
    assert "nvidia-smi" in told["missing.txt"]


@pytest.mark.parametrize("shell", SHELLS)
def test_scrapes_and_device_samples_are_read_as_such(shell: list[str], tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.stub(
        "curl",
        'for last; do :; done; [ "$last" = http://s:8000/metrics ] || exit 22; echo "# TYPE vllm:num_requests_waiting gauge"; echo \'vllm:num_requests_waiting{engine="0"} 7.0\'',
    )
    host.stub(
        "nvidia-smi",
        'case "$*" in *query-gpu*) echo "timestamp, index, name, utilization.gpu [%], utilization.memory [%], memory.used [MiB], memory.total [MiB]";'
        ' echo "2026/11/20 20:04:51.120, 0, NVIDIA H100 80GB HBM3, 93 %, 61 %, 76012 MiB, 81559 MiB" ;; *) exit 6 ;; esac',
    )
    archive, said = host.collect(shell, "-u", "http://s:8000/metrics", "-u", "http://gone:8000/metrics")
    assert "http://gone:8000/metrics: gave no reply" in said
    with oomdoc.analyze(str(archive)) as analysis:
        assert analysis.sql("SELECT DISTINCT name, value FROM metric")[1] == [("vllm:num_requests_waiting", 7.0)]
        assert analysis.sql("SELECT DISTINCT used_bytes FROM gpu_sample")[1] == [(76012 << 20,)]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("wrong", [["-d", "soon"], ["-x"], ["leftover"], ["-o", "/no/such/folder"], ["-i", "1;id"]])
def test_wrong_calls_end_with_2_and_a_sentence(shell: list[str], wrong: list[str]) -> None:
    ran = subprocess.run([*shell, str(SCRIPT), *wrong], capture_output=True, text=True)
    assert ran.returncode == 2
    assert "collect:" in ran.stderr and ran.stdout == ""


def test_the_help_names_every_option() -> None:
    ran = subprocess.run(["sh", str(SCRIPT), "-h"], capture_output=True, text=True)
    options = re.search(r"getopts h(\S+)", SCRIPT.read_text(encoding="utf-8"))
    assert ran.returncode == 0 and options
    assert all(f"-{letter} " in ran.stdout for letter in options[1].replace(":", ""))
    assert "#!" not in ran.stdout


def test_shellcheck_is_content() -> None:
    program = shutil.which("shellcheck")
    if program is None:
        pytest.skip("no shellcheck here")
    ran = subprocess.run([program, "-s", "sh", str(SCRIPT)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


# ---- Kubernetes


def test_the_spec_is_one_bundle_with_its_redactors() -> None:
    bundle, redactor = yaml.safe_load_all(collect.kubernetes("serving", "app=vllm,tier=chat"))
    assert (bundle["kind"], redactor["kind"]) == ("SupportBundle", "Redactor")
    assert {bundle["apiVersion"], redactor["apiVersion"]} == {"troubleshoot.sh/v1beta2"}
    kinds = [next(iter(entry)) for entry in bundle["spec"]["collectors"]]
    assert set(kinds) == {"clusterInfo", "clusterResources", "logs", "exec"}
    for entry in bundle["spec"]["collectors"]:
        for kind, fields in entry.items():
            if kind in ("logs", "exec"):
                assert (
                    fields["namespace"] == "serving" and fields["selector"] == ["app=vllm,tier=chat"] and fields["name"]
                )
            if kind == "exec":
                assert fields["timeout"].endswith("s") and all(
                    isinstance(word, str) for word in [*fields["command"], *fields.get("args", [])]
                )
    assert "@" not in collect.kubernetes("a", "b=c").replace("@/", "")


def test_the_redactors_blank_secrets_and_leave_figures() -> None:
    _, redactor = yaml.safe_load_all(collect.kubernetes("serving", "app=vllm"))

    def redact(line: str) -> str:
        for item in redactor["spec"]["redactors"]:
            for rule in item["removals"]["regex"]:
                if "selector" not in rule:
                    line = re.sub(rule["redactor"], lambda match: match[0].replace(match["mask"], "***"), line)
        return line

    assert SECRET not in redact(f"--hf-token {SECRET} --max-num-seqs 96")
    assert "topsecret" not in redact('{"api_key": "topsecretvalue"}')
    several = redact("vllm serve --api-key topsecret1 topsecret2 --max-num-seqs 96")
    assert "topsecret" not in several and several.endswith(" --max-num-seqs 96")
    assert "topsecret" not in redact("'api_key': ['topsecret1', 'topsecret2'], 'port': 80")
    assert redact('["--api-key", "topsecret1", "topsecret2", "--port"]').count("topsecret") == 0
    assert redact("prompt_tokens=512 max_num_batched_tokens=8192") == "prompt_tokens=512 max_num_batched_tokens=8192"


@pytest.mark.parametrize(
    ("namespace", "selector"), [("A", "app=x"), ("a", "app"), ("a", 'app=x"]\n- evil: ['), ("a b", "app=x")]
)
def test_names_that_a_cluster_refuses_are_refused_here(namespace: str, selector: str) -> None:
    with pytest.raises(UsageError):
        collect.kubernetes(namespace, selector)


def test_a_support_bundle_of_that_spec_is_diagnosed(tmp_path: Path) -> None:
    case = SAMPLES / "second-tenant-on-card-one"
    base = tmp_path / "support-bundle-2026-09-03T06_05_20"
    (base / "server" / "vllm-0").mkdir(parents=True)
    (base / "gpu" / "serving" / "vllm-0").mkdir(parents=True)
    shutil.copy(case / "pod-logs" / "server.log", base / "server" / "vllm-0" / "server.log")
    shutil.copy(case / "pod-logs" / "server-previous.log", base / "server" / "vllm-0" / "server-previous.log")
    shutil.copy(case / "node" / "nvidia-smi.txt", base / "gpu" / "serving" / "vllm-0" / "nvidia-smi-stdout.txt")
    (base / "version.yaml").write_text("apiVersion: troubleshoot.sh/v1beta2\nkind: SupportBundle\n", encoding="utf-8")
    assert leading(base)[0] == "gpu-shared"


# ---- the command


def test_the_command_prints_what_the_package_holds(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["collect"]) == 0
    assert capsys.readouterr().out == SCRIPT.read_text(encoding="utf-8")
    assert cli.run(["collect", "--kubernetes", "-n", "serving"]) == 0
    assert "namespace: serving" in capsys.readouterr().out
    assert cli.run(["collect", "--kubernetes", "-n", "no such"]) == 2
