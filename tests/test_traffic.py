"""The request profile from rows: buckets at other bounds, series without gaps, surges, before and during, who asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from oomdoc.assemble.traffic import BOUNDS, HEAVIEST, profile
from oomdoc.cli import run
from oomdoc.evidence.store import Store

T = 1_795_000_000.0


def told(rows: list[dict[str, Any]], incident: float | None = None, bounds: tuple[int, ...] = BOUNDS) -> dict[str, Any]:
    """The profile of such requests; each has its line."""
    with Store() as store:
        store.add("source", [{"source": "requests.jsonl", "kind": "request-log"}])
        store.add("request", [{"source": "requests.jsonl", "line": line, **row} for line, row in enumerate(rows, 1)])
        store.finish()
        return profile(store, None if incident is None else {"incident": "i1", "t": incident}, bounds)


def chats(count: int, every_s: float = 10.0, **other: Any) -> list[dict[str, Any]]:
    return [{"t": T + place * every_s, "input_tokens": 100, "output_tokens": 50, "latency_s": 5.0, **other} for place in range(count)]  # fmt: skip


def test_buckets_at_other_bounds_move_requests_between_the_classes() -> None:
    rows = chats(4) + chats(2, input_tokens=3000) + chats(1, input_tokens=9000)
    usual = {row["name"]: row["requests"] for row in told(rows)["buckets"]["input"]}
    moved = told(rows, bounds=(50, 3000, 9001))["buckets"]
    assert usual == {"S": 4, "M": 0, "L": 2, "XL": 1}
    assert {row["name"]: row["requests"] for row in moved["input"]} == {"S": 0, "M": 4, "L": 3, "XL": 0}
    assert [row["up_to_tokens"] for row in moved["context"]] == [50, 3000, 9001, None]
    assert sum(row["token_share"] for row in moved["input"]) == pytest.approx(1)
    assert moved["output"] == told(rows)["buckets"]["output"]  # generations have bounds of their own


def test_the_usual_bounds_say_the_same_both_ways() -> None:
    from oomdoc.assemble.traffic import _buckets_at

    rows = chats(3) + chats(2, input_tokens=700) + chats(2, input_tokens=2048, output_tokens=None)
    with Store() as store:
        store.add("request", [{"source": "r", "line": line, **row} for line, row in enumerate(rows, 1)])
        store.finish()
        view = [row for row in store.rows_of("SELECT * FROM traffic_bucket") if row["measure"] != "output"]
        key = lambda row: (row["measure"], row["bucket"])  # noqa: E731
        assert sorted(_buckets_at(store, BOUNDS), key=key) == sorted(view, key=key)


def test_idle_steps_are_steps_too() -> None:
    rows = [*chats(2, 1.0), *[{**row, "t": row["t"] + 120} for row in chats(1)]]
    series = told(rows)["in_flight"]
    assert series["step_s"] == 1.0
    assert len(series["tokens"]) == len(series["arrivals"]) == 126
    assert series["requests"][:8] == [1, 2, 2, 2, 2, 1, 0, 0]
    assert series["requests"][60] == 0 and series["arrivals"][120] == 1
    assert sum(series["arrivals"]) == 3 and sum(series["arrived_tokens"]) == 300


def test_a_request_without_a_latency_is_not_in_flight_for_ever() -> None:
    series = told(chats(3) + chats(1, latency_s=None))["in_flight"]
    assert sum(series["arrivals"]) == 4
    assert series["requests"][-1] == 0


def test_a_surge_of_long_prompts_is_one() -> None:
    calm = chats(180)
    surge = [{**row, "t": T + 900 + place, "input_tokens": 4000} for place, row in enumerate(chats(20))]
    surges = told(calm + surge)["surges"]
    assert surges["prompt_tokens"]["surge"] is True
    assert surges["prompt_tokens"]["ratio"] == pytest.approx(
        surges["prompt_tokens"]["highest"] / surges["prompt_tokens"]["average"]
    )
    assert surges["prompt_tokens"]["t"] == "2026-11-18T11:21:40Z"
    assert surges["prompt_tokens_per_s"]["surge"] is True


def test_near_misses_of_a_surge() -> None:
    assert told(chats(180))["surges"]["prompt_tokens"]["surge"] is False  # even traffic
    lone = told([*chats(180), {**chats(1)[0], "t": T + 1900, "input_tokens": 90_000}])["surges"]
    assert lone["prompt_tokens"]["surge"] is False  # one long prompt in an idle window is no surge
    assert "surges" not in told(chats(30))  # five minutes: nothing to compare with


def test_before_and_during_are_told_apart() -> None:
    rows = chats(120) + [{**row, "t": row["t"] + 1200, "input_tokens": 5000} for row in chats(60)]
    sides = told(rows, incident=T + 1800)["incident"]
    assert (sides["before"]["input_p50"], sides["during"]["input_p50"]) == (100, 5000)
    assert (sides["before"]["long_share"], sides["during"]["long_share"]) == (0.0, 1.0)
    assert sides["before"]["requests"] + sides["during"]["requests"] == len(rows)
    assert "incident" not in told(rows)
    assert "incident" not in told(rows, incident=T)  # nothing before it


def test_tenants_are_ordered_by_tokens_and_one_alone_is_no_news() -> None:
    rows = chats(10, tenant="many") + chats(1, tenant="long", input_tokens=30_000) + chats(2)
    tenants = told(rows)["tenants"]
    assert [row["name"] for row in tenants] == ["long", "many"]
    assert sum(row["share"] for row in tenants) == pytest.approx(1)
    assert "tenants" not in told(chats(10, tenant="many"))
    assert "models" not in told(rows)


def test_the_heaviest_request_is_the_one_that_held_the_most_for_the_longest() -> None:
    rows = [
        *chats(10),
        {"t": T, "input_tokens": 9000, "output_tokens": 10, "latency_s": 100.0},
        {"t": T, "input_tokens": 50_000, "output_tokens": 1, "latency_s": 1.0},
    ]
    heaviest = told(rows)["heaviest"]
    assert [row["ref"] for row in heaviest[:2]] == ["requests.jsonl:11", "requests.jsonl:12"]
    assert heaviest[0]["token_s"] == 9010 * 100.0
    assert len(heaviest) == HEAVIEST


def test_around_an_incident_only_those_near_it_count() -> None:
    rows = [
        {"t": T, "input_tokens": 50_000, "output_tokens": 1, "latency_s": 60.0},
        *[{**row, "t": row["t"] + 5000} for row in chats(3)],
    ]
    near = told(rows, incident=T + 5010)["heaviest"]
    assert [row["ref"] for row in near] == ["requests.jsonl:2", "requests.jsonl:3", "requests.jsonl:4"]
    assert told(rows, incident=T + 900_000)["heaviest"][0]["ref"] == "requests.jsonl:1"  # nobody near: all count


def test_the_command_takes_bounds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "requests.jsonl"
    path.write_text(
        "".join(
            json.dumps(
                {
                    "timestamp": f"2026-11-20T20:00:{second:02}Z",
                    "input_tokens": 900,
                    "output_tokens": 9,
                    "latency_s": 1.0,
                    "status": 200,
                }
            )
            + "\n"
            for second in range(12)
        )
    )
    assert run(["profile", str(path), "--buckets", "1000,2000,4000", "--format", "json", "-q"]) == 0
    bucket = json.loads(capsys.readouterr().out)["traffic"]["buckets"]["input"][0]
    assert (bucket["name"], bucket["up_to_tokens"], bucket["requests"]) == ("S", 1000, 12)


@pytest.mark.parametrize("buckets", ["512,2048", "2048,512,8192", "0,1,2", "a,b,c", "1,2,3,4", "512,2048,99999999999"])
def test_wrong_bounds_are_refused(buckets: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["profile", "requests.jsonl", "--buckets", buckets]) == 2
    assert "three rising token counts" in capsys.readouterr().err
