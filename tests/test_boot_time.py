"""When a machine was started, whoever tells it; and the kernel's lines that count from there."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

import oomdoc
from oomdoc.diagnose import Options
from verdicts import analysed

BOOT = dt.datetime(2026, 4, 7, 6, 30, 20, tzinfo=dt.UTC).timestamp()
VICTIM = "[ 7200.250000] Memory cgroup out of memory: Killed process 881 (python3) total-vm:9000000kB, anon-rss:7000000kB, file-rss:0kB, shmem-rss:0kB\n"
EXPORTED = (
    "# HELP node_boot_time_seconds Node boot time, in unixtime.\n"
    "# TYPE node_boot_time_seconds gauge\n"
    "node_boot_time_seconds {:.0f}\n"
    "node_memory_MemTotal_bytes 5.4e+11\n"
)
LINE = "uptime -s: 2026-04-07 06:30:20\n"
TYPED = "$ uptime -s\n2026-04-07 06:30:20\n"
WHO = "$ who -b\n         system boot  2026-04-07 06:30\n"
STAT = "cpu0 88120 0 9120 771200\nctxt 918273645\nbtime {:.0f}\nprocesses 40112\n"


def times(folder: Path, told: dict[str, str], tz: str | None = None) -> list[float | None]:
    """When the kernel's lines were said, by their order."""
    for name, text in told.items():
        (folder / name).write_text(text)
    with oomdoc.analyze(folder, Options(tz=tz)) as analysis:
        return [row[0] for row in analysis.sql("SELECT t FROM main.host_event WHERE uptime_s > 0 ORDER BY line")[1]]


@pytest.mark.parametrize(
    ("told", "boot"),
    [
        pytest.param({"boot.txt": LINE}, BOOT, id="a line"),
        pytest.param({"boot.txt": TYPED}, BOOT, id="the answer to a typed command"),
        pytest.param({"boot.txt": WHO}, BOOT - 20, id="who, to the minute"),
        pytest.param({"stat.txt": STAT.format(BOOT)}, BOOT, id="the kernel's own count"),
        pytest.param({"node.prom": EXPORTED.format(BOOT)}, BOOT, id="an exporter"),
        pytest.param({"boot.txt": TYPED, "node.prom": EXPORTED.format(BOOT + 1)}, BOOT, id="two that agree to the minute"),
        pytest.param({"boot.txt": TYPED, "node.prom": EXPORTED.format(BOOT + 7200)}, None, id="two boots, hours apart"),
        pytest.param({"note.txt": "We looked at uptime -s and saw nothing odd.\n"}, None, id="a command without its answer"),
        pytest.param({"boot.txt": "$ uptime -p\nup 2 hours, 11 minutes\n"}, None, id="another answer"),
        pytest.param({"stat.txt": "the field btime is what we want\n"}, None, id="a word"),
    ],
)  # fmt: skip
def test_kernel_lines_count_from_the_boot(told: dict[str, str], boot: float | None, tmp_path: Path) -> None:
    found = times(tmp_path, {**told, "dmesg.txt": VICTIM})
    assert len(found) == 1
    assert found[0] == (None if boot is None else pytest.approx(boot + 7200.25, abs=1))


def test_a_line_with_a_time_keeps_it(tmp_path: Path) -> None:
    """Only what has no other time counts from the boot."""
    stamped = VICTIM.replace("[ 7200", "2026-04-07T11:00:00+00:00 n7 kernel: [ 7200")
    assert times(tmp_path, {"kern.log": stamped, "boot.txt": LINE}) == [BOOT + 4.5 * 3600 - 20]


@pytest.mark.parametrize(
    ("told", "behind_s"),
    [
        pytest.param({"boot.txt": TYPED}, 7200.0, id="a stamp is of the zone of the logs"),
        pytest.param({"node.prom": EXPORTED.format(BOOT)}, 0.0, id="seconds since 1970 are of none"),
        pytest.param({"boot.txt": "uptime -s: 2026-04-07 06:30:20 (UTC)\n"}, 0.0, id="it names its zone"),
    ],
)
def test_a_boot_in_the_zone_of_the_logs(told: dict[str, str], behind_s: float, tmp_path: Path) -> None:
    found = times(tmp_path, {**told, "dmesg.txt": VICTIM}, "+02:00")
    assert found == [pytest.approx(BOOT - behind_s + 7200.25, abs=1)]


def test_that_a_machine_was_started_shows_no_server(tmp_path: Path) -> None:
    (tmp_path / "dmesg.txt").write_text(VICTIM.replace("python3", "thunderbird"))
    (tmp_path / "boot.txt").write_text(LINE)
    with analysed(tmp_path) as analysis:
        assert analysis.report.verdict == "no-server"
