"""The matrix: one model and one set of flags over devices, ranks and formats of the weights."""

from __future__ import annotations

from dataclasses import replace

from oomdoc.fit.judge import filled, judge
from oomdoc.fit.question import Question
from oomdoc.fit.start import start_of
from oomdoc.model.worksheet import Cell, Matrix
from oomdoc.physics.gpus import find_gpu
from oomdoc.physics.weights import FORMATS, known_format
from oomdoc.units import show_bytes

DEVICES = ("RTX 4090", "L4", "A10G", "L40S", "A100-40GB", "A100-80GB", "H100", "H200", "B200", "MI300X")
"""What is widely rented or bought, by memory."""

RANKS = (1, 2, 4, 8)
_OTHER_FORMATS = ("fp8", "awq")


def matrix(question: Question) -> Matrix:
    """Every device of `DEVICES` and the one asked for, with 1 to 8 ranks, as the checkpoint is and in 8 and 4 bits.

    What was measured on one device says nothing about another, so nothing measured is used.
    """
    model, setup = question.model, question.setup
    present = known_format(setup.quantization if setup.quantization is not None else model.quantization)
    formats = [present or "16 bits"]
    for other in _OTHER_FORMATS:
        if present is None or FORMATS[other].bytes_per_weight < FORMATS[present].bytes_per_weight * 0.9:
            formats.append(other)
    devices = dict.fromkeys((find_gpu(name).name, name) for name in DEVICES)
    named = [(question.device, question.total_bytes)] if question.device else []
    for full, name in devices:
        if full != question.device:
            named.append((name, find_gpu(name).total_bytes))
    cells = []
    for device, total in named:
        for method in formats:
            for ranks in RANKS:
                asked = replace(question, total_bytes=total, device=device, measured=None)
                changed = replace(
                    setup,
                    tensor_parallel_size=ranks,
                    quantization=setup.quantization if method == formats[0] else method,
                )
                result = judge(asked, changed)
                start = start_of(asked, changed, result)
                tokens = int(result.pool.tokens.lo) if result.pool and start.starts is not False else None
                lacks = show_bytes(start.lacking_bytes.hi) if start.lacking_bytes and start.starts is False else ""
                cells.append(Cell(device, method, ranks, start.starts, tokens, lacks and f"lacks {lacks}"))
    return Matrix(question.name, filled(question, setup).max_model_len, tuple(cells))
