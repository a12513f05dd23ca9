"""Access logs of proxies: which calls are requests, how long they took, and what a timer in between looks like."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from oomdoc.ingest import access_log, make_head, recognise, server_answer
from oomdoc.intake.scan import Chunk
from verdicts import analysed

STAMP = "[05/Feb/2026:08:30:10 +0000]"


def rows(text: str) -> list[dict[str, object]]:
    found = []
    for batch in access_log.read("any", [Chunk(text.encode(), 1, True)]):
        names = list(batch.columns)
        found += [dict(zip(names, row, strict=True)) for row in zip(*batch.columns.values(), strict=True)]
    return found


def test_durations_of_four_writers() -> None:
    log = "\n".join(
        (
            f'10.1.0.7 - - {STAMP} "POST /v1/completions HTTP/1.1" 200 812 rt=12.500 urt=12.480',
            f'10.1.0.8 - bob {STAMP} "POST /v1/embeddings HTTP/2" 200 812 "-" "curl/8.5" 0.125 0.120',
            '[2026-02-05T08:30:10.500Z] "POST /v1/chat/completions HTTP/1.1" 504 UT 512 24 15001 - "-" "httpx" "id" "llm" "10.0.0.9:8000"',
            f'10.1.0.9 - - {STAMP} "POST /generate HTTP/1.1" 499 0 "-" "axios" 14 "llm@docker" "http://10.0.0.9:8000" 8003ms',
            f'10.1.0.9 - - {STAMP} "POST /v1/completions HTTP/1.1" 200 9 duration=41000 upstream="a"',
        )
    )
    found = rows(log)
    assert [(row["status"], row["latency_s"]) for row in found] == [(200, 12.5), (200, 0.125), (504, 15.001), (499, 8.003), (200, 41.0)]  # fmt: skip
    begun = 1770280210.0
    assert [row["t"] for row in found] == [begun - 12.5, begun - 0.125, begun + 0.5, begun - 8.003, begun - 41.0]
    assert [row["tenant"] for row in found] == ["10.1.0.7", "bob", None, "10.1.0.9", "10.1.0.9"]
    assert recognise(make_head("any", log.encode()))[1] == "access-log"


def test_durations_as_go_prints_them() -> None:
    swap = '[INFO] Request 10.1.0.7 "POST /v1/chat/completions HTTP/1.1" {} 58 "httpx/0.28" {}\n'
    gin = '[GIN] 2026/02/05 - 08:30:10 | {} |  {} |       10.1.0.8 | POST     "{}"\n'
    log = swap.format(502, "5m0.003s") + swap.format(200, "412.25ms") + gin.format(200, "1m27.5s", "/api/chat") + gin.format(500, "850.5µs", "/v1/completions") + gin.format(200, "1s", "/api/version")  # fmt: skip
    found = rows(log)
    assert [(row["status"], round(float(str(row["latency_s"])), 7)) for row in found] == [(502, 300.003), (200, 0.41225), (200, 87.5), (500, 0.0008505)]  # fmt: skip
    assert [row["t"] for row in found[2:]] == [
        pytest.approx(1770280210.0 - 87.5),
        pytest.approx(1770280210.0 - 0.0008505),
    ]
    assert [row["tenant"] for row in found] == [None, None, "10.1.0.8", "10.1.0.8"]
    assert recognise(make_head("any", log.encode()))[1] == "access-log"


def test_calls_that_are_no_requests() -> None:
    shop = f'10.1.0.7 - - {STAMP} "GET /shop/cart HTTP/1.1" 200 812 "-" "curl" 0.125\n' * 4
    bare = 'INFO:     10.1.0.7:40114 - "POST /v1/completions HTTP/1.1" 200 OK\n' * 4
    for text in (shop, bare):
        assert rows(text) == []
        assert recognise(make_head("any", text.encode()))[1] != "access-log"


def test_what_a_server_answers_to_a_request_it_does_not_take() -> None:
    def refused(value: object) -> list[object]:
        data = json.dumps(value).encode()
        found: list[object] = [
            (batch.columns["value"][0], batch.columns["text"][0])
            for batch in server_answer.read("any", [Chunk(data, 1, True)])
        ]
        assert server_answer.matches(make_head("any", data)) == bool(found)
        return found

    assert refused({"error": {"message": "no adapter tax-7", "code": 404}}) == [(404.0, "no adapter tax-7")]
    assert refused({"object": "error", "message": "best_of must be 1", "type": "BadRequestError", "code": 400}) == [(400.0, "best_of must be 1")]  # fmt: skip
    assert refused({"error": {"message": "insufficient_quota", "code": "quota"}}) == []
    assert refused({"message": "hello", "code": 400}) == []


def _stats(run: int, usage: float) -> str:
    return "".join(
        f"INFO 02-05 08:3{n}:00 [loggers.py:271] Engine 000: Avg prompt throughput: 310.0 tokens/s, Avg generation throughput: 250.1 tokens/s, "
        f"Running: {run} reqs, Waiting: 0 reqs, GPU KV cache usage: {usage}%, Prefix cache hit rate: 4.0%\n"
        for n in range(6)
    )


def _first(folder: Path, usage: float, ends: list[float]) -> tuple[str, float]:
    folder.mkdir()
    lines = [f'10.2.0.{n} - - {STAMP} "POST /v1/completions HTTP/1.1" 504 167 rt={seconds:.3f}' for n, seconds in enumerate(ends)]  # fmt: skip
    lines += [f'10.2.1.{n} - - {STAMP} "POST /v1/completions HTTP/1.1" 200 1670 rt={9 + n}.250' for n in range(9)]
    (folder / "edge.log").write_text("\n".join(lines) + "\n")
    (folder / "vllm.log").write_text(_stats(9, usage))
    with analysed(str(folder)) as analysis:
        first = analysis.report.diagnoses[0]
    return first.cause, first.probability


def test_a_timer_in_between_is_no_lack_of_memory(tmp_path: Path) -> None:
    assert _first(tmp_path / "timer", 22.0, [30.0, 30.001, 30.0, 30.002])[0] == "not-memory"
    cause, probability = _first(tmp_path / "full", 99.4, [30.0, 30.001, 30.0, 30.002])
    assert cause != "not-memory" or probability < 0.5
    cause, probability = _first(tmp_path / "own-ages", 22.0, [11.0, 22.5, 30.0, 41.7])
    assert cause != "not-memory" or probability < 0.9


def test_bare_calls_in_columns_of_somebodys_own() -> None:
    """A path, a status and how long it took: bare whole numbers are milliseconds; who refused a call himself has no duration of the server's."""
    log = "\n".join(
        (
            "2026-02-05T08:30:10.500Z  info  crew-a  /v1/completions  200  2434",
            "2026-02-05T08:30:11.500Z  info  crew-b  /v1/chat/completions  200  1.75",
            "2026-02-05T08:30:12.500Z  info  crew-b  /v1/completions  201  250ms  cached",
            "2026-02-05T08:30:13.500Z  warn  crew-c  /v1/completions  429  -",
            "2026-02-05T08:35:10.500Z  front[31]: POST /v1/completions 504 no answer after 300s",
        )
    )
    found = rows(log)
    assert [(row["status"], row["latency_s"]) for row in found] == [(200, 2.434), (200, 1.75), (201, 0.25), (429, None), (504, 300.0)]  # fmt: skip
    at = 1770280210.5
    assert [row["t"] for row in found] == pytest.approx([at - 2.434, at + 1 - 1.75, at + 2 - 0.25, at + 3, at])
    assert {row["tenant"] for row in found} == {None}, "what stands first is a stamp and no client"
    assert recognise(make_head("any", log.encode()))[1] == "access-log"


@pytest.mark.parametrize(
    "line",
    [
        "2026-02-05T08:30:10.500Z  info  crew-a  /shop/cart  200  2434",
        "2026-02-05T08:30:10.500Z  info  crew-a  /v1/completions  200  OK",
        "2026-02-05T08:30:10.500Z  info  crew-a  /v1/completions  200",
        "2026-02-05T08:30:10.500Z  info  crew-a  /v1/completions  2434  200",
        "2026-02-05T08:30:10.500Z  mounted /v1/models in 200 steps",
        'INFO:     10.1.0.7:40114 - "POST /v1/completions HTTP/1.1" 200 OK',
    ],
)
def test_bare_lines_that_are_no_calls(line: str) -> None:
    text = f"{line}\n" * 4
    assert rows(text) == []
    assert recognise(make_head("any", text.encode()))[1] != "access-log"


BALANCED = (
    "https 2026-02-11T09:01:00.250000Z app/umbra-llm/50dc6c495c0c9188 10.4.8.21:14782 10.42.3.14:8000 0.001 {times} {status} {of_target} 5120 910 "
    '"POST https://llm.example:443/v1/chat/completions HTTP/1.1" "umbra/2.1" TLS_AES_128_GCM_SHA256 TLSv1.3 arn:x "Root=1-a" "llm.example" "-" 0{created} "forward" "-"'
)


def test_a_balancers_call_is_as_long_as_its_parts() -> None:
    line = BALANCED.format(times="12.200 0.049", status=200, of_target=200, created="")
    (row, _) = rows(line + "\n" + line + "\n")
    assert (row["latency_s"], row["status"], row["tenant"]) == (pytest.approx(12.25), 200, "10.4.8.21")
    assert row["t"] == pytest.approx(1770800460.25 - 12.25)


def test_the_longest_queue_before_a_server_is_told_as_it_grows() -> None:
    line = 'Feb  5 08:30:{0} gw haproxy[7]: 10.1.0.9:4100 [05/Feb/2026:08:30:{0}.100] llm~ be/a 0/{1}/1/90/9000 200 812 - - ---- 30/16/16/16/0 {2}/{3} "POST /v1/chat/completions HTTP/1.1"'
    log = "\n".join(line.format(*told) for told in ((10, 0, 0, 0), (11, 900, 3, 0), (12, 700, 2, 0), (13, 9000, 4, 21)))
    queues = [(row["line"], row["name"], row["value"]) for row in rows(log) if row.get("quantity") == "queued"]
    assert queues == [(2, "proxy_queue_len", 3.0), (4, "proxy_queue_len", 21.0)]
    assert [row["latency_s"] for row in rows(log) if "latency_s" in row] == [9.0] * 4


def test_a_balancer_that_gave_up_tells_no_age_but_by_when_it_was_asked() -> None:
    (bare, dated) = rows(
        BALANCED.format(times="-1 -1", status=504, of_target="-", created="")
        + "\n"
        + BALANCED.format(times="-1 -1", status=504, of_target="-", created=" 2026-02-11T09:00:00.200000Z")
        + "\n"
    )
    assert (bare["status"], bare.get("latency_s")) == (504, None)
    assert dated["latency_s"] == pytest.approx(60.05)
