"""Columns that somebody asked kubectl for by paths."""

from __future__ import annotations

from typing import Any

from forms import read

ASKED = (
    "$ kubectl get pods -l a=b -o custom-columns='P:.metadata.name,C:.status.containerStatuses[*].name,"
    "N:.status.containerStatuses[*].restartCount,WHY:.status.containerStatuses[*].lastState.terminated.reason,"
    "M:.spec.containers[*].resources.limits.memory'\n"
)
TABLE = """\
P          C              N      WHY               M
chat-0     engine,proxy   7,0    OOMKilled         48Gi,1Gi
chat-1     engine,proxy   2,1    Error,Completed   48Gi
chat-2     engine,proxy   3,4    OOMKilled         48Gi,1Gi
"""


def containers(text: str) -> list[dict[str, Any]]:
    return read("session.txt", text.encode())[1].get("container", [])


def test_values_of_a_cell_are_of_the_containers_in_their_order() -> None:
    named = [
        (row["pod"], row["name"], row["restarts"], row.get("last_reason"))
        for row in containers(ASKED + TABLE)
        if row.get("name")
    ]
    assert named == [
        ("chat-0", "engine", 7, "OOMKilled"),  # the one that restarted
        ("chat-0", "proxy", 0, None),
        ("chat-1", "engine", 2, "Error"),
        ("chat-1", "proxy", 1, "Completed"),
        ("chat-2", "engine", 3, None),  # one reason and two that restarted: whose it is nobody knows
        ("chat-2", "proxy", 4, None),
    ]


def test_one_limit_of_two_containers_is_nobodys() -> None:
    limits = [
        (row["pod"], row["memory_limit_bytes"] >> 30)
        for row in containers(ASKED + TABLE)
        if row.get("memory_limit_bytes")
    ]
    assert limits == [("chat-0", 48), ("chat-0", 1), ("chat-2", 48), ("chat-2", 1)]


def test_a_table_that_was_not_asked_for_so_is_none() -> None:
    assert not containers(ASKED.replace(",M:.spec", ",M:.x,Z:.spec") + TABLE)
    assert not containers("$ cat pods.txt\n" + TABLE)
