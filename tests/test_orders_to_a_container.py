"""Who ended a container, as the runtime's own events tell it: an order is one of its lines, and a kill by the kernel is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from test_ends_told_outside import OPEN, put
from verdicts import analysed, likely, tables

ENGINE = "vllm/vllm-openai:v0.13.0"


def event(second: int, what: str, name: str = "aurora", image: str = ENGINE, **more: object) -> str:
    """A line of `docker events`."""
    about = ", ".join([*(f"{key}={value}" for key, value in more.items()), f"image={image}", f"name={name}"])
    at = f"2026-11-24T{9 + second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.104203811Z"
    return f"{at} container {what} 3f9a1c5d7e0b ({about})\n"


def life(begin: int, *, ordered: bool = True, name: str = "aurora", image: str = ENGINE) -> str:
    """A container that is started and ends with 137 after two minutes."""
    orders = event(begin + 120, "kill", name, image, signal=15) + event(begin + 130, "kill", name, image, signal=9)
    died = event(begin + 131, "die", name, image, execDuration=131, exitCode=137)
    return event(begin, "start", name, image) + (orders if ordered else "") + died


def ends(folder: Path, events: str) -> list[tuple[str | None, str]]:
    """Of each end that is told in the events: whose it is, by what is set aside."""
    with analysed(put(folder, {"aurora.log": OPEN, "events.txt": events})) as analysis:
        told = {place for each in analysis.report.set_aside for place in each.refs}
        rows = analysis.sql("SELECT source || ':' || line FROM main.process_exit ORDER BY line")[1]
    return [(place, "aside" if place in told else "counts") for (place,) in rows]


@pytest.mark.parametrize("times", [2, 3, 4])
def test_what_stops_it_a_third_time_stops_whatever_comes_up(times: int, tmp_path: Path) -> None:
    events = "".join(life(160 * turn) for turn in range(times)) + event(160 * times, "start")
    found = likely(tmp_path, {"aurora.log": OPEN, "events.txt": events})
    assert (found == "probe-restart-loop") is (times >= 3)


def test_lives_that_the_kernel_ends_are_ended_by_no_order(tmp_path: Path) -> None:
    """The same lives without the lines of an order: nobody had asked for their end, and the kernel's work is memory's."""
    events = "".join(life(160 * turn, ordered=False) for turn in range(4))
    assert likely(tmp_path, {"aurora.log": OPEN, "events.txt": events}) == "host-memory-exhausted"


def test_an_order_is_about_the_container_that_it_names(tmp_path: Path) -> None:
    """Another container's order stands just before an end that nobody asked for."""
    other = event(110, "kill", "cache", "redis:7", signal=15) + event(111, "die", "cache", "redis:7", exitCode=137)
    own = event(0, "start") + other + event(112, "die", exitCode=137)
    assert [whose for _, whose in ends(tmp_path, own)] == ["aside", "counts"]


@pytest.mark.parametrize(("signal", "asked"), [(15, True), ("SIGKILL", True), (1, False), ("SIGUSR1", False)])
def test_a_signal_that_asks_for_another_thing_than_the_end(signal: object, asked: bool, tmp_path: Path) -> None:
    """A program is told to open its logs anew, and ends by itself a moment later."""
    own = event(0, "start") + event(110, "kill", signal=signal) + event(112, "die", exitCode=137)
    assert [whose for _, whose in ends(tmp_path, own)] == ["aside" if asked else "counts"]


def test_orders_about_another_program_are_no_loop_of_the_server(tmp_path: Path) -> None:
    events = "".join(life(160 * turn, name="cache", image="redis:7") for turn in range(4))
    assert likely(tmp_path, {"aurora.log": OPEN, "events.txt": events}) != "probe-restart-loop"


@pytest.mark.parametrize("ordered", [True, False], ids=["asked for", "by the kernel"])
def test_a_status_without_name_and_time_is_one_of_those_that_the_events_tell(ordered: bool, tmp_path: Path) -> None:
    """`137` in a ticket: where every end by a signal was asked for, that one was, too."""
    events = life(0) + life(160, ordered=ordered)
    note = "The chat server never comes up, exit code 137 each time, so we thought of memory first.\n"
    with analysed(put(tmp_path, {"aurora.log": OPEN, "events.txt": events, "note.md": note})) as analysis:
        aside = [each for each in analysis.report.set_aside if "note.md" in "".join(each.refs)]
        assert analysis.sql("SELECT count(*) FROM main.process_exit WHERE source = 'note.md'")[1][0][0] == 1
    assert bool(aside) is ordered


@pytest.mark.parametrize(
    ("line", "name", "status"),
    [
        ("2026-11-24 09:02:11.000000000 +0000 UTC container died 8c1f (image=vllm:1, name=aurora, containerExitCode=137)", "aurora (vllm:1)", 137),
        ("2026-11-24T09:02:11 container die aurora (exitCode=1)", "aurora", 1),
        ("2026-11-24T09:02:11 container die 3f9a1c5d7e0b (exitCode=135)", None, 135),
    ],
    ids=["podman", "by its name alone", "by its id alone"],
)  # fmt: skip
def test_ends_as_runtimes_write_them(line: str, name: str | None, status: int, tmp_path: Path) -> None:
    with tables(put(tmp_path, {"aurora.log": OPEN, "events.txt": line + "\n"})) as analysis:
        rows = analysis.sql("SELECT name, exit_code FROM main.process_exit")[1]
    assert [tuple(row) for row in rows] == [(name, status)]
