"""Whose a fault is that the driver tells of one device of several: that of the device on which the server's own processes are."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoc.scene.devices import key_of
from verdicts import UP, shows

BUSES = ("19", "3B", "4C", "DB")
SMI = """Tue Mar  2 08:00:00 2027
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 570.86.10              Driver Version: 570.86.10      CUDA Version: 12.8     |
|-----------------------------------------+------------------------+----------------------+
"""


def listing(name: str, gpus: tuple[int, ...]) -> str:
    """A listing of four devices, with a process of this name on each of some."""
    boxes = "".join(
        f"|   {gpu}  NVIDIA L40S                    On  |   00000000:{bus}:00.0 Off |                    0 |\n"
        "| N/A   41C    P0             80W /  350W |   40000MiB /  46068MiB |     10%      Default |\n"
        for gpu, bus in enumerate(BUSES)
    )
    rows = "".join(
        f"|    {gpu}   N/A  N/A           {7100 + gpu}      C   {name}                   39990MiB |\n" for gpu in gpus
    )
    return (
        SMI
        + boxes
        + "| Processes:   |\n|  GPU   GI   CI              PID   Type   Process name              GPU Memory |\n"
        + rows
    )


def fault(bus: str) -> str:
    """What the kernel logs of a device that is gone."""
    return f"[Tue Mar  2 08:05:10 2027] NVRM: Xid (PCI:0000:{bus.lower()}:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"


DIED = UP + "ERROR 03-02 08:05:12 [core.py:700] RuntimeError: CUDA error: unspecified launch failure\n"


@pytest.mark.parametrize(
    ("name", "gpus", "bus", "counts"),
    [
        ("VLLM::Worker", (0, 1), "3B", True),
        ("VLLM::Worker", (0, 1), "DB", False),
        ("python3", (0, 1), "DB", True),  # whose processes these are nobody says
        ("VLLM::Worker", (0, 1, 3), "DB", True),
    ],
    ids=["on it", "beside it", "not told", "on it as well"],
)
def test_a_fault_is_the_servers_where_it_is_on_the_device(
    name: str, gpus: tuple[int, ...], bus: str, counts: bool, tmp_path: Path
) -> None:
    files = {"engine.log": DIED, "smi.txt": listing(name, gpus), "dmesg.txt": fault(bus)}
    assert shows(tmp_path, files, "not-memory", "driver-reports-a-fault") is counts


@pytest.mark.parametrize(("shown", "counts"), [("0,1", False), ("2,3", True)], ids=["others", "these"])
def test_the_devices_that_a_server_was_shown_say_on_which_it_is(shown: str, counts: bool, tmp_path: Path) -> None:
    command = f"CUDA_VISIBLE_DEVICES={shown} vllm serve /models/chat --tensor-parallel-size 2\n"
    files = {"engine.log": DIED, "run.sh": command, "smi.txt": listing("python3", (0, 1)), "dmesg.txt": fault("DB")}
    assert shows(tmp_path, files, "not-memory", "driver-reports-a-fault") is counts


def test_two_hosts_have_the_same_addresses(tmp_path: Path) -> None:
    """An address is of its host alone: where two are listed that differ, nobody says which device it is."""
    other = (
        listing("python3", ())
        .replace("00000000:DB", "00000000:19")
        .replace("00000000:19:00.0 Off", "00000000:DB:00.0 Off", 1)
    )
    files = {
        "engine.log": DIED,
        "smi.txt": listing("VLLM::Worker", (0, 1)),
        "smi_b.txt": other,
        "dmesg.txt": fault("DB"),
    }
    assert shows(tmp_path, files, "not-memory", "driver-reports-a-fault") is True


def test_one_spelling_of_an_address() -> None:
    assert len({key_of("0000:db:00"), key_of("00000000:DB:00.0"), key_of("db:00")}) == 1
    assert key_of("0001:db:00") != key_of("0000:db:00")
