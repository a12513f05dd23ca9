"""Topics of free text as data: each proves itself by samples, and by sentences that nearly say it."""

from __future__ import annotations

import dataclasses
import re

import pytest

from oomdoc.ingest.topics import TOPICS, Topic, topics_of

IDS = [topic.name for topic in TOPICS]


@pytest.mark.parametrize("topic", TOPICS, ids=IDS)
def test_samples_say_the_topic_and_near_misses_do_not(topic: Topic) -> None:
    for text, value in topic.samples:
        told = dict(topics_of(text))
        assert topic.name in told and told[topic.name] == value, (text, told)
    for text in topic.near_misses:
        assert topic.name not in dict(topics_of(text)), text


def test_a_topic_without_a_sample_or_a_near_miss_is_refused() -> None:
    sample, near = (("it is slow", None),), ("it is not slow",)
    assert Topic("slow", "says so", re.compile("slow"), sample, near).name == "slow"
    for missing in ((sample, ()), ((), near)):
        with pytest.raises(ValueError, match="topic slow needs a sample and a near miss"):
            Topic("slow", "says so", re.compile("slow"), *missing)


def test_names_are_given_once() -> None:
    assert len(IDS) == len(set(IDS))
    assert all(dataclasses.asdict(topic)["says"] for topic in TOPICS)
