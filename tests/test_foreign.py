"""What other programs write gives no row in any table, nor do this project's own sources and pages, which are full of quotations."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence

import pytest

import foreign
from grids import some


@functools.cache
def made() -> Sequence[tuple[str, str]]:
    """Made when they are asked for: every worker that runs tests reads this module."""
    return list(foreign.files())


def test_there_are_files_enough_of_programs_enough() -> None:
    assert len(made()) >= 500
    assert len(foreign.MAKERS) >= 40
    assert len({text for _, text in made()}) == len(made())


@pytest.mark.parametrize("kind", foreign.MAKERS)
def test_files_of_other_programs_give_no_row(kind: str) -> None:
    found = {name: rows for name, text in made() if name[3:] == kind and (rows := foreign.rows_of(name, text.encode()))}
    assert found == {}


def test_own_sources_and_pages_give_no_row() -> None:
    found = {
        name: rows for name, text in some(list(foreign.own()), 5) if (rows := foreign.rows_of(name, text.encode()))
    }
    assert found == {}


def test_a_script_that_starts_an_engine_is_evidence_all_the_same() -> None:
    script = b'"""Runs the nightly job; `vllm serve other/model --max-model-len 99` was the old way."""\nimport os\nfrom vllm import LLM\n\n\ndef main() -> None:\n    # LLM(model="old/model", max_model_len=7)\n    llm = LLM(model="org/model", max_model_len=4096)\n    print(llm.generate("hi"))\n\n\nmain()\n'
    assert foreign.rows_of("job.py", script) == Counter({"engine_flag": 2})


def test_a_library_that_names_an_engine_in_strings_starts_none() -> None:
    library = b'import re\n\nCOMMANDS = ("vllm serve", "api_server")\n\n\ndef matches(line: str) -> bool:\n    return re.search(r"vllm serve --max-model-len 4096", line) is not None\n'
    assert foreign.rows_of("tool.py", library) == Counter()
