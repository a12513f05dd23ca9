"""Everything that a node tells, handed in together: what is the server's among it, and what is somebody else's, another day's or a
consequence. From text to verdict, each relation beside the same bundle with the one fact changed that decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_whose_event import EVENT, LISTED, OTHER_UID, OWN_UID, POD, kill, serving, start
from verdicts import likely

CHECK = (
    "2026-11-24 09:{minute:02}:30 probe: requests.exceptions.ReadTimeout: HTTPConnectionPool(host='10.4.0.7', port=8000): Read timed out. (read timeout=20)\n"
)  # fmt: skip
STALLED = (
    "(APIServer pid=7) INFO 11-24 09:{minute:02}:10 [loggers.py:248] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 0.0 tokens/s, "
    "Running: 3 reqs, Waiting: 2 reqs, GPU KV cache usage: 18.0%, Prefix cache hit rate: 9.0%\n"
)


@pytest.mark.parametrize(
    ("log", "well"),
    [
        pytest.param(serving(), True, id="it goes on"),
        pytest.param(serving("".join(STALLED.format(minute=m) for m in range(20, 40))), False, id="it stands still"),
    ],
)
def test_a_check_that_gives_up_beside_a_server(log: str, well: bool, tmp_path: Path) -> None:
    """What a caller met is no failure of a server that went on."""
    checks = "".join(CHECK.format(minute=minute) for minute in (5, 11, 17))
    assert (likely(tmp_path, vllm__log=log, check__log=checks) == "healthy") is well


BOOT = "$ uptime -s\n2026-11-21 09:00:00\n"
DAY = 86400.0


@pytest.mark.parametrize(
    ("at", "boot", "cause"),
    [
        pytest.param(2.5 * DAY + 3600, BOOT, "healthy", id="eleven hours before"),
        pytest.param(3 * DAY + 1202, BOOT, "host-memory-exhausted", id="when its log ends"),
        pytest.param(2.5 * DAY + 3600, "", "host-memory-exhausted", id="nobody tells the boot"),
    ],
)
def test_a_kill_by_the_kernels_clock(at: float, boot: str, cause: str, tmp_path: Path) -> None:
    told = {"vllm.log": serving(), "dmesg.txt": kill(f"{at:.6f}", "VLLM::EngineCor", "/box")}
    if boot:
        told["boot.txt"] = boot
    assert likely(tmp_path, told) == cause


POD_ENDED = """Name:             stork-0
Namespace:        ai
Node:             n7/10.4.0.7
Containers:
  vllm:
    Image:         vllm/vllm-openai:v0.13.0
    Args:
      --model
      org/stork-70B
    State:          Waiting
      Reason:       CrashLoopBackOff
    Last State:     Terminated
      Reason:       Error
      Exit Code:    1
      Started:      Tue, 24 Nov 2026 09:00:00 +0000
      Finished:     Tue, 24 Nov 2026 09:00:40 +0000
    Ready:          False
    Restart Count:  6
    Limits:
      memory:          256Gi
      nvidia.com/gpu:  4
"""


def cards(others_mib: int) -> str:
    """Four cards of 48 GiB: the first fills within 20 s and is empty again, three times; the others hold what they hold."""
    rows = ["time,gpu,memory_used_mib,memory_total_mib"]
    for turn in range(3):
        for at, used in enumerate((6, 6, 9200, 21400, 33600, 47900, 6, 6)):
            clock = f"09:{2 * turn:02}:{8 + 4 * at:02}"
            rows += [f"2026-11-24 {clock},{gpu},{used if gpu == 0 else others_mib},49140" for gpu in range(4)]
    return "\n".join(rows) + "\n"


def loading() -> str:
    return start(model="org/stork-70B") + (
        "(EngineCore_DP0 pid=41) INFO 11-24 09:00:14 [gpu_model_runner.py:2602] Starting to load model org/stork-70B...\n"
    )


@pytest.mark.parametrize(
    ("others_mib", "spread"),
    [pytest.param(6, True, id="three stand empty"), pytest.param(46200, False, id="others fill them")],
)
def test_a_load_that_fills_one_card_of_four_and_is_gone(others_mib: int, spread: bool, tmp_path: Path) -> None:
    told = {"vllm.log": loading(), "describe.txt": POD_ENDED, "cards.csv": cards(others_mib)}
    assert (likely(tmp_path, told) == "tp-undersharded") is spread


def group(top: float) -> str:
    """What a container of 64 GiB holds every five seconds while it loads; it begins anew three times."""
    rows = ["time,container,working_set_bytes,limit_bytes"]
    for turn in range(3):
        for at, share in enumerate((0.02, 0.3, 0.6, 0.85, top, 0.01, 0.01)):
            rows.append(f"2026-11-24 09:{3 * turn:02}:{5 * at:02},vllm,{int(share * 64 * (1 << 30))},{64 * (1 << 30)}")
    return "\n".join(rows) + "\n"


@pytest.mark.parametrize(
    ("top", "full"), [pytest.param(0.995, True, id="to its limit"), pytest.param(0.88, False, id="well below it")]
)
def test_a_container_that_fills_its_limit_and_is_gone(top: float, full: bool, tmp_path: Path) -> None:
    told = {
        "vllm.log": loading(),
        "describe.txt": POD_ENDED.replace("256Gi", "64Gi").replace("Exit Code:    1\n", "Exit Code:    137\n"),
        "memory.csv": group(top),
    }
    assert (likely(tmp_path, told) == "host-memory-exhausted") is full


def periods(stopped: int) -> str:
    return "time,nr_periods,nr_throttled\n" + "".join(f"2026-11-24 09:{3 + at:02}:00,{4000 + 600 * at},{900 + stopped * at}\n" for at in range(12))  # fmt: skip


WAITED = "".join(
    f"2026-11-24T09:{3 + at:02}:30.100Z  info  crew-{at % 3}  /v1/completions  200  {31000 + 900 * at}\n"
    for at in range(16)
)


@pytest.mark.parametrize(
    ("stopped", "held"),
    [pytest.param(582, True, id="in 97 of 100 periods"), pytest.param(18, False, id="in 3 of 100")],
)
def test_a_server_that_a_limit_on_processors_stops(stopped: int, held: bool, tmp_path: Path) -> None:
    told = {"vllm.log": serving(), "cpu.csv": periods(stopped), "gateway.log": WAITED}
    assert (likely(tmp_path, told) == "not-memory") is held


OLD = (
    "(EngineCore_DP0 pid=41) ERROR 11-23 {hour}:00:20 [core.py:708] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB. "
    "GPU 0 has a total capacity of 23.64 GiB of which 402.00 MiB is free. Including non-PyTorch memory, this process has 23.24 GiB memory in use. "
    "Of the allocated memory 22.70 GiB is allocated by PyTorch, and 61.50 MiB is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(
    ("hour", "well"),
    [pytest.param(20, True, id="thirteen hours before"), pytest.param(22, False, id="eleven hours before")],
)
def test_a_start_that_failed_another_day(hour: int, well: bool, tmp_path: Path) -> None:
    first = start(23, hour) + OLD.format(hour=hour)
    assert (likely(tmp_path, {"first.log": first, "vllm.log": serving()}) == "healthy") is well


@pytest.mark.parametrize(
    ("uid", "cause"),
    [
        pytest.param(OTHER_UID, "healthy", id="another pod's"),
        pytest.param(OWN_UID, "host-memory-exhausted", id="its own"),
    ],
)
def test_a_kill_that_an_event_and_the_kernel_tell(uid: str, cause: str, tmp_path: Path) -> None:
    told = {
        "vllm.log": serving(),
        "pod.json": POD % OWN_UID,
        "events.txt": EVENT.format(pid=5512),
        "dmesg.txt": kill("Tue Nov 24 09:20:01 2026", "python3", f"/kubepods/burstable/pod{uid}/{'7b' * 32}"),
    }
    assert likely(tmp_path, told) == cause


@pytest.mark.parametrize(
    ("container", "cause"),
    [
        pytest.param("5f0c2e9ab417", "healthy", id="another of the list"),
        pytest.param("9ad04c7be113", "host-memory-exhausted", id="its own"),
    ],
)
def test_a_kill_in_one_of_the_containers_of_a_list(container: str, cause: str, tmp_path: Path) -> None:
    group = f"/system.slice/docker-{container}{'0' * 52}.scope"
    told = {"vllm.log": serving(), "docker-ps.txt": LISTED, "dmesg.txt": kill("Tue Nov 24 09:20:01 2026", "python3", group)}  # fmt: skip
    assert likely(tmp_path, told) == cause


def sheet(failed: int) -> str:
    return "minute,requests_in,http_200,http_503,p95_first_token_s\n" + "".join(
        f"09:{3 + at:02},200,{200 - failed},{failed},0.4\n" for at in range(12)
    )


@pytest.mark.parametrize(
    ("failed", "well"), [pytest.param(0, True, id="all answered"), pytest.param(60, False, id="three of ten lost")]
)
def test_what_a_gateway_counts(failed: int, well: bool, tmp_path: Path) -> None:
    assert (likely(tmp_path, {"vllm.log": serving(), "gateway.csv": sheet(failed)}) == "healthy") is well


PROBES = (
    "LAST SEEN   TYPE      REASON      OBJECT         MESSAGE\n"
    "4m          Warning   Unhealthy   pod/{name}     Liveness probe failed: connection refused\n"
    "4m          Normal    Killing     pod/{name}     Container s failed liveness probe, will be restarted\n"
)


@pytest.mark.parametrize(
    ("name", "well"),
    [pytest.param("reranker-0", True, id="another server's"), pytest.param("aurora-0", False, id="its own")],
)
def test_probes_that_end_a_server(name: str, well: bool, tmp_path: Path) -> None:
    told = {"vllm.log": serving(), "events.txt": PROBES.format(name=name)}
    assert (likely(tmp_path, told) == "healthy") is well
