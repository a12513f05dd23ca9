"""Weights where only files or a name tell their size, by hand: what mutants of `physics/weights.py` showed to be held by no number."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from oomdoc.ledger import model_config
from oomdoc.physics import weights
from oomdoc.physics.catalogue import models
from oomdoc.physics.config import read_config
from oomdoc.physics.speculation import Speculation
from oomdoc.physics.weights import FORMATS, draft_bytes, named_size, weights_bytes

MODEL = next(model for model in models() if model.dtype == "bfloat16")
METHOD = next(name for name, of in FORMATS.items() if not of.experts_only and of.bytes_per_weight < 1)


@pytest.mark.parametrize(
    ("name", "size"),
    [("8x7b", 46.48e9), ("acme/8x7B-Chat", 46.48e9), ("acme/lm2_5-1_8B-chat", 1.8e9), ("LM_1_8b", 1.8e9), ("acme/8b/chat", None)],
)  # fmt: skip
def test_sizes_that_names_tell(name: str, size: float | None) -> None:
    assert named_size(name) == size


def test_parameters_by_files_are_those_of_their_format_beside_a_wide_vocabulary() -> None:
    wide, slim = 2, FORMATS[METHOD].bytes_per_weight
    packed = replace(MODEL, checkpoint_bytes=5_000_000, checkpoint_format=METHOD)
    assert weights._of_files(packed, 1_000_000) == round(1_000_000 + (5_000_000 - 1_000_000 * wide) / slim)
    assert weights._of_files(packed, 2_500_000) is None, "nothing is left beside the vocabulary"
    assert weights._of_files(replace(packed, checkpoint_format=None), 1_000_000) == 2_500_000


def test_a_checkpoint_is_divided_by_its_ranks() -> None:
    low, high = weights.LOADED_OVER_CHECKPOINT
    of_rank, same = weights._of_checkpoint(replace(MODEL, checkpoint_bytes=64 * 10**9), "assumed", 4, 2)
    assert (of_rank.lo, of_rank.hi, of_rank.origin) == (pytest.approx(8e9 * low), pytest.approx(8e9 * high), "assumed")
    assert same == of_rank


def test_a_whole_draft_is_counted_as_what_it_is() -> None:
    alone, halved = weights_bytes(MODEL), weights_bytes(MODEL, tp=2)
    assert alone is not None and halved is not None
    draft = Speculation(method="draft_model", tokens=3, draft=MODEL)
    assert draft_bytes(MODEL, draft) == alone
    assert draft_bytes(MODEL, draft, tp=2) == halved != alone


@pytest.mark.parametrize(("named", "known"), [("CohereForCausalLM", True), ("OwnForCausalLM", False), (None, False)])
def test_a_config_whose_class_alone_names_the_family(named: str | None, known: bool) -> None:
    """Where no `model_type` is told the class of the model says how a layer is built."""
    row = {"num_hidden_layers": 40, "hidden_size": 8192, "intermediate_size": 24576, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 256000, "dtype": "float16", "architectures": [named] if named else None}  # fmt: skip
    config = model_config(json.dumps(row))
    assert config is not None
    size = weights_bytes(read_config(config))
    assert (size is not None) is known
    if size is not None:
        # 40 layers of 2 x 8192^2 for queries and output, 2 x 8192 x 1024 for keys and values, 3 x 8192 x 24576, and the tied vocabulary
        by_hand = 2 * (40 * (2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 24576) + 256000 * 8192)
        assert size.lo <= by_hand * 1.001 and size.hi >= by_hand
