"""Lists of packages: the engine's release, and no word of a package's name."""

from __future__ import annotations

import io

import pytest

from oomdoc import ingest
from oomdoc.ingest import make_head
from oomdoc.intake.scan import chunks


def rows(text: str) -> tuple[str, list[tuple[str, str]]]:
    ingestor, kind = ingest.recognise(make_head("any", text.encode()))
    found = []
    for batch in ingest.read(ingestor, "any", chunks(io.BytesIO(text.encode()))):
        assert batch.table == "engine_flag"
        found += list(zip(batch.columns["flag"], batch.columns["value"], strict=True))
    return kind, found


@pytest.mark.parametrize(
    "text",
    [
        "Package          Version\n---------------- -------\nlora-kit         1.0\nvllm             0.9.2\n",
        "lora-kit==1.0\nvllm==0.9.2\n",
        "# pinned\n--index-url https://example.org\nvllm[audio]==0.9.2\nspec-decoding==2.0\n",
    ],
)
def test_the_release_is_read_and_other_names_are_not(text: str) -> None:
    assert rows(text) == ("package-list", [("version", "0.9.2")])


@pytest.mark.parametrize("text", ["vllm>=0.8.0\ntorch>=2.5.0\n", "torch==2.7.0\nray==2.40\n"])
def test_a_bound_is_no_release(text: str) -> None:
    assert rows(text) == ("package-list", [])


def test_a_note_with_a_card_is_none() -> None:
    text = "vllm 0.9.2\ntorch 2.7.0\n2x RTX A6000\n"
    assert ingest.recognise(make_head("any", text.encode()))[1] == "notes"
