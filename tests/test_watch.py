"""What came near failing: at the threshold and just below it, nothing told for what the bundle does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoc.assemble.watch import CONTEXT_SHARE, HEADROOM_BYTES, POOL_SHARE, watch
from oomdoc.evidence.store import Store
from oomdoc.model import Watch
from oomdoc.units import GIB

T = 1_795_000_000.0


def told(traffic: dict[str, Any] | None = None, **tables: list[dict[str, Any]]) -> dict[str, Watch]:
    with Store() as store:
        store.add("source", [{"source": "vllm.log", "kind": "vllm-log"}])
        for table, rows in tables.items():
            store.add(table, [{"source": "vllm.log", "line": line, **row} for line, row in enumerate(rows, 1)])
        store.finish()
        store.focus(None)
        return {item.id: item for item in watch(store, traffic or {})}


def stats(*used: float, waiting: int = 0) -> list[dict[str, Any]]:
    return [
        {"t": T + 10 * place, "kv_used": share, "running": 4, "waiting": waiting} for place, share in enumerate(used)
    ]


def test_an_empty_bundle_is_not_said_to_have_room() -> None:
    assert told() == {}


@pytest.mark.parametrize(("left", "near"), [(HEADROOM_BYTES, False), (HEADROOM_BYTES - 1, True)])
def test_headroom_of_the_fullest_device_at_its_fullest(left: int, near: bool) -> None:
    total = 80 * GIB
    samples = [{"t": T + place, "gpu": gpu, "used_bytes": total - free, "total_bytes": total}
               for place, (gpu, free) in enumerate([("0", 9 * GIB), ("1", left), ("0", 8 * GIB), ("1", 5 * GIB)])]  # fmt: skip
    item = told(gpu_sample=samples)["device-headroom"]
    assert (item.value, item.near, item.refs, item.alert) == (left, near, ("vllm.log:2",), "DeviceHeadroomSmall")


@pytest.mark.parametrize(("peak", "near"), [(POOL_SHARE - 0.01, False), (POOL_SHARE, True)])
def test_the_pool(peak: float, near: bool) -> None:
    item = told(engine_stat=stats(0.1, peak, 0.2))["pool-usage"]
    assert (item.value, item.near, item.refs) == (peak, near, ("vllm.log:2",))


def test_a_queue_for_a_moment_is_a_queue_at_work() -> None:
    moment = stats(*[0.1] * 30) + stats(0.1, waiting=3)
    assert not told(engine_stat=moment)["queue"].near
    assert told(engine_stat=stats(*[0.1] * 30, waiting=2))["queue"].near
    now_and_then = stats(*[0.18] * 27) + stats(*[0.18] * 3, waiting=2)
    assert not told(engine_stat=now_and_then)["queue"].near  # beside a pool that is four fifths empty
    assert told(engine_stat=[*now_and_then, *stats(POOL_SHARE)])["queue"].near


def test_preemptions_that_nobody_counted_are_not_none() -> None:
    assert "preemptions" not in told(engine_stat=stats(0.1))
    counted = told(metric=[{"t": T, "name": "vllm:num_preemptions_total", "value": 0.0}])
    assert not counted["preemptions"].near
    assert told(metric=[{"t": T, "name": "vllm:num_preemptions_total", "value": 3.0}])["preemptions"].near


@pytest.mark.parametrize(
    ("longest", "near"), [(int(10_000 * CONTEXT_SHARE) - 1, False), (int(10_000 * CONTEXT_SHARE), True)]
)
def test_the_longest_context_against_the_limit(longest: int, near: bool) -> None:
    flags = [{"flag": "max_model_len", "value": "10000", "origin": "logged"}]
    requests = [
        {"t": T, "input_tokens": 100, "output_tokens": 50},
        {"t": T + 1, "input_tokens": longest - 50, "output_tokens": 50},
    ]
    item = told(engine_flag=flags, milestone=[{"name": "start", "t": T}], request=requests)["longest-context"]
    assert (item.value, item.near, item.refs) == (longest / 10_000, near, ("vllm.log:2",))


def test_a_surge_is_what_the_profile_calls_one() -> None:
    surges = {
        "window_s": 300.0,
        "from_ratio": 2.0,
        "prompt_tokens": {"ratio": 2.6, "t": "2026-11-24T08:37:24Z", "surge": True},
    }
    item = told({"surges": surges})["context-surge"]
    assert (item.near, item.value, item.threshold) == (True, 2.6, 2.0)


def test_near_ones_come_first() -> None:
    order = [
        item.near
        for item in told(
            {}, engine_stat=stats(0.9, 0.2), metric=[{"t": T, "name": "vllm:num_preemptions_total", "value": 0.0}]
        ).values()
    ]
    assert order == sorted(order, reverse=True) and len(set(order)) == 2
