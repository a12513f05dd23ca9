"""Ranks that a server of SGLang names in its heads: whose pool is whose, and which of them makes it small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oomdoc.diagnose import analyze
from verdicts import SIGNS

TOKENS = 210_000


def told(folder: Path, weights_gb: list[float], seat: str, flag: str, latent: bool) -> dict[str, Any]:
    """The report of a server of one rank a card of 94 GB, whose pool is what the heaviest rank leaves."""
    layers = [round(weights / 8) for weights in weights_gb]
    lines = [
        f"[2027-03-02 04:00:00] server_args=ServerArgs(model_path='/models/long-one', {flag}={len(weights_gb)}, mem_fraction_static=0.93, context_length=65536)"
    ]
    for number, weights in enumerate(weights_gb):
        head = f"[2027-03-02 04:05:{number:02} {seat}{number}]"
        pool = 0.9 * layers[number] / max(layers)
        form = f"KV size: {pool:.2f} GB" if latent else f"K size: {pool / 2:.2f} GB, V size: {pool / 2:.2f} GB"
        lines += [
            f"{head} Load weight begin. avail mem=93.10 GB",
            f"{head} Load weight end. type=LongForCausalLM, dtype=torch.bfloat16, avail mem={93.1 - weights:.2f} GB, mem usage={weights:.2f} GB.",
            f"{head} KV Cache is allocated. #tokens: {TOKENS}, {form}",
            f"{head} Memory pool end. avail mem={93.1 - weights - pool:.2f} GB",
        ]
    lines += [
        f"[2027-03-02 04:06:00 {seat}0] max_total_num_tokens={TOKENS}, chunked_prefill_size=8192, context_len=65536",
        "[2027-03-02 04:06:10] The server is fired up and ready to roll!",
        f"[2027-03-02 05:10:00 {seat}0] Decode batch. #running-req: 4, #token: 204000, token usage: 0.97, gen throughput (token/s): 50.10, #queue-req: 19,",
        f"[2027-03-02 05:10:09 {seat}0] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.61 -> 0.92",
        f"[2027-03-02 05:10:20 {seat}0] Decode batch. #running-req: 4, #token: 201000, token usage: 0.96, gen throughput (token/s): 48.00, #queue-req: 21,",
    ]
    (folder / "server.log").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with analyze(str(folder), SIGNS) as analysis:
        return analysis.to_dict()


@pytest.mark.parametrize("latent", [True, False], ids=["one-figure", "keys-and-values"])
def test_the_stage_that_carries_most_makes_the_pool_of_all_small(tmp_path: Path, latent: bool) -> None:
    first = told(tmp_path, [48.0, 48.0, 48.0, 88.0], "PP", "pp_size", latent)["diagnoses"][0]
    assert first["cause"] == "rank-imbalance"
    assert "kv-differs-by-rank" in {piece["id"] for piece in first["evidence"]}


@pytest.mark.parametrize(("seat", "flag"), [("PP", "pp_size"), ("TP", "tp_size")])
def test_where_all_ranks_carry_alike_it_is_the_traffic(tmp_path: Path, seat: str, flag: str) -> None:
    found = {item["cause"]: item["probability"] for item in told(tmp_path, [88.0] * 4, seat, flag, True)["diagnoses"]}
    assert next(iter(found)) == "kv-demand-exceeds-pool"
    assert found.get("rank-imbalance", 0.0) < 0.15
