"""`oomdoc replay`: the recorded traffic under other flags."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Bundle, Color, Memory, Quiet, Since, Timeout, Types, Until, Zone
from oomdoc.errors import EXIT_OK, UsageError


def replay(
    bundle: Bundle,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="FLAG=VALUE", help="An engine flag that is to be otherwise (repeatable)."),
    ] = None,
    pool_tokens: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The KV pool to replay against, in tokens, where you know it."),
    ] = None,
    prefix_tokens: Annotated[
        int, typer.Option(min=0, metavar="N", help="So many first tokens of every prompt are shared with others.")
    ] = 0,
    prefix_groups: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many different shared prefixes there are, used in turn.")
    ] = 1,
    form: Annotated[str, typer.Option("--format", metavar="terminal|json", help="Form of the result.")] = "terminal",
    model_config: Annotated[
        Path | None, typer.Option(metavar="CONFIG.json", help="The model's config.json, if the bundle lacks it.")
    ] = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    tz: Zone = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Run the recorded traffic again against the pool of other flags.

    The requests of the bundle go through the engine's scheduler: first with the recorded flags, which shows how far the
    replay is from the recorded usage, then with the changed ones. It shows usage, waiting, preemptions, and whether it
    survives: nobody preempted, nobody held back for lack of KV blocks.

    Flags: max_num_seqs, max_num_batched_tokens, max_model_len, enable_prefix_caching, enable_chunked_prefill,
    gpu_memory_utilization, kv_cache_dtype, tensor_parallel_size, kv_cache_memory_bytes, num_gpu_blocks_override.

    \b
    Example:
      oomdoc replay bundle.tar.gz
      oomdoc replay bundle.tar.gz --set max_num_seqs=11
      oomdoc replay bundle.tar.gz --set gpu_memory_utilization=0.95 --set kv_cache_dtype=fp8 --format json
    """
    reading.form(form, ("terminal", "json"))
    colored = console.colored(color)
    chosen = _settings(settings or ())
    with reading.analysis(
        [bundle],
        quiet,
        types,
        since,
        until,
        tz,
        model_config=reading.existing(model_config),
        timeout=timeout,
        memory_limit=memory_limit,
    ) as analysis:
        told = analysis.replay(
            chosen, pool_tokens=pool_tokens, prefix_tokens=prefix_tokens, prefix_groups=prefix_groups
        )
        report = analysis.report
    if form == "json":
        from oomdoc.report.json import dump, plain

        head = report.to_dict()
        console.out(
            dump({"oomdoc_version": head["oomdoc_version"], "bundle": head["bundle"], "replay": plain(told)}), utf8=True
        )
    else:
        from oomdoc.report.replay import render

        console.out(render(report.bundle.name, told, width=console.width(), color=colored))
    return EXIT_OK


def _settings(given: Sequence[str]) -> dict[str, str]:
    """`--set FLAG=VALUE`, flags with hyphens or underscores; UsageError for one that the replay does not know."""
    from oomdoc.replay import FLAGS

    chosen = {}
    for entry in given:
        name, sign, value = entry.partition("=")
        name = name.strip().lstrip("-").replace("-", "_")
        if not sign or not name:
            raise UsageError(f"--set '{entry}' lacks a part", "Write FLAG=VALUE, such as max_num_seqs=11")
        if name not in FLAGS:
            raise UsageError(
                f"--set {name} is no flag that the replay knows",
                console.nearest(name, FLAGS, f"choose {', '.join(FLAGS)}"),
            )
        chosen[name] = value
    return chosen
