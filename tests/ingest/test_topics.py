"""Topics of free text as data: each proves itself by samples, and by sentences that nearly say it."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from oomdoc.ingest import topics
from oomdoc.ingest.topics import TOPICS, topics_of

IDS = [topic.name for topic in TOPICS]
PROOFS = tomllib.loads(Path(topics.__file__).with_suffix(".toml").read_text("utf-8"))


@pytest.mark.parametrize("name", IDS)
def test_samples_say_the_topic_and_near_misses_do_not(name: str) -> None:
    proof = PROOFS[name]
    assert proof["samples"] and proof["near_misses"]
    for text, *value in proof["samples"]:
        told = dict(topics_of(text))
        assert name in told and told[name] == (value[0] if value else None), (text, told)
    for text in proof["near_misses"]:
        assert name not in dict(topics_of(text)), text


def test_names_are_given_once_and_each_is_proven() -> None:
    assert list(PROOFS) == IDS
    assert all(dataclasses.asdict(topic)["says"] for topic in TOPICS)
