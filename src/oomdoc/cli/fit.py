"""`oomdoc fit`: the capacity worksheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from oomdoc.cli import console, reading
from oomdoc.cli.options import Color, Quiet
from oomdoc.errors import EXIT_OK


def fit(
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model: a repository id, a path or a short name.")
    ] = None,
    model_config: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="The model's folder or config.json; an index or weight files beside it give the weights' size.",
        ),
    ] = None,
    params: Annotated[
        str | None, typer.Option(metavar="COUNT", help="Parameters, such as 8B, for a model that nothing else names.")
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(metavar="COMMIT", help="The commit of the model's repository, where its content has changed."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="BUNDLE", help="Take model, flags, figures and traffic from a bundle."),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|SIZE", help="The device: H100, 4xA100-40GB, H100 MIG 3g.40gb, or its total as 80GiB."
        ),
    ] = None,
    tp: Annotated[
        int | None, typer.Option("--tp", "--tensor-parallel-size", metavar="N", help="Tensor parallel size.")
    ] = None,
    pp: Annotated[
        int | None, typer.Option("--pp", "--pipeline-parallel-size", metavar="N", help="Pipeline parallel size.")
    ] = None,
    dcp: Annotated[
        int | None,
        typer.Option("--dcp", "--decode-context-parallel-size", metavar="N", help="Decode context parallel size."),
    ] = None,
    max_model_len: Annotated[
        str | None,
        typer.Option(metavar="TOKENS", help="Longest request, such as 131072 or 128k; else what the model states."),
    ] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(metavar="N", help="Sequences in a batch; else the release's default.")
    ] = None,
    max_num_batched_tokens: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Tokens of one step; else the release's default.")
    ] = None,
    gpu_memory_utilization: Annotated[
        float | None, typer.Option(metavar="SHARE", help="0 to 1; else the release's default (0.9, from 0.20 on 0.92).")
    ] = None,
    kv_cache_dtype: Annotated[
        str | None, typer.Option(metavar="DTYPE", help="auto, fp8, bfloat16, nvfp4 and the like.")
    ] = None,
    quantization: Annotated[
        str | None,
        typer.Option(
            metavar="FORMAT", help="Format of the weights (none, fp8, awq, ...), if the name does not say it."
        ),
    ] = None,
    dtype: Annotated[str | None, typer.Option(metavar="DTYPE", help="auto, bfloat16, float16, float32.")] = None,
    block_size: Annotated[int | None, typer.Option(metavar="TOKENS", help="Tokens in a KV block.")] = None,
    enforce_eager: Annotated[bool, typer.Option("--enforce-eager", help="No CUDA graphs.")] = False,
    prefix_caching: Annotated[
        bool | None,
        typer.Option(
            "--enable-prefix-caching/--no-enable-prefix-caching", help="Prefix caching; else the release's default."
        ),
    ] = None,
    speculative_config: Annotated[
        str | None,
        typer.Option(
            metavar="JSON",
            help='What drafts: {"method": "mtp", "num_speculative_tokens": 2}, or a model\'s name in it.',
        ),
    ] = None,
    language_model_only: Annotated[
        bool, typer.Option("--language-model-only", help="A multimodal model without its encoder's items.")
    ] = False,
    kv_cache_memory_bytes: Annotated[
        str | None, typer.Option(metavar="SIZE", help="The pool set by hand, per GPU: 20GiB or bytes.")
    ] = None,
    num_gpu_blocks_override: Annotated[
        int | None, typer.Option(metavar="N", help="The pool set by hand, in blocks.")
    ] = None,
    hf_overrides: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="As given to the engine; scaled positions lift the length it accepts."),
    ] = None,
    engine_version: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION",
            help="vLLM's version, such as 0.11.2; it decides formulas and defaults. 'any': nobody knows.",
        ),
    ] = None,
    available_kv: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="A log's 'Available KV cache memory', such as 31.99GiB: blocks as the engine counts them.",
        ),
    ] = None,
    input_tokens: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="Size of requests: 1200, or p50=1200,p95=8000.")
    ] = None,
    output_tokens: Annotated[
        str | None, typer.Option(metavar="TOKENS", help="The same for what they generate.")
    ] = None,
    solve: Annotated[
        str | None,
        typer.Option(
            metavar="FLAG",
            help="Print only the largest value that fits for sure: max_model_len, max_num_seqs, max_num_batched_tokens, "
            "gpu_memory_utilization; or the smallest tensor_parallel_size.",
        ),
    ] = None,
    matrix: Annotated[
        bool, typer.Option("--matrix", help="Print which devices, ranks and formats start instead of the worksheet.")
    ] = False,
    form: Annotated[str, typer.Option("--format", metavar="terminal|json", help="Form of the worksheet.")] = "terminal",
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Work out what fits: pool, longest context, concurrency.

    Says whether the engine would start with these flags and what is missing otherwise, how many tokens the KV pool stores, the
    largest max_model_len, how many requests run at once, the safest utilization, what TP, PP, an 8-bit KV cache and
    quantised weights change, parameters for short and for long traffic, and the command to start. Figures are per GPU;
    what is not known is a range, and every input is shown with its origin. GiB is 2^30 bytes.

    \b
    Example:
      oomdoc fit --model Qwen/Qwen3-32B --gpu H100 --tp 2 --max-model-len 32768
      oomdoc fit --model llama-3.3-70b-instruct-fp8 --gpu A100-80GB --tp 2 \\
          --engine-version 0.11.2 --input-tokens p50=1500,p95=12000 --output-tokens 600
      oomdoc fit --model Qwen3-8B --gpu L4 --solve max_model_len
      oomdoc fit --model-config ./my-model --gpu 24GiB --quantization awq
      oomdoc fit --model Qwen3-32B --gpu 4xA100-40GB --max-model-len 32k
      oomdoc fit --model Qwen3-32B --gpu H100 --max-model-len 16384 --matrix
      oomdoc fit --from bundle.tar.gz --gpu-memory-utilization 0.95
      oomdoc fit --model GLM-4.7-NVFP4 --gpu B200 --tp 4 --kv-cache-dtype fp8 \\
          --available-kv 31.99GiB --engine-version 0.15.1 --format json

    \b
    Exit status: 0 whatever fits or not (--solve prints `none` where nothing
    does); 2 wrong usage; 3 the bundle could not be read.
    """
    reading.form(form, ("terminal", "json"))
    colored = console.colored(color)
    from oomdoc import fit as fitting
    from oomdoc.fit.question import parse_tokens
    from oomdoc.physics.model_folder import read_model_files

    place = model_config if model_config is not None and model_config.is_dir() else reading.existing(model_config)
    if place is None and model is not None and (Path(model) / "config.json").is_file():
        place = Path(model)
    files = None if place is None else read_model_files(place)
    given = fitting.Given(
        model=model, model_config=files.config if files else None, weight_bytes=files.weight_bytes if files else None, params=params, gpu=gpu, engine_version=engine_version, revision=revision, tensor_parallel_size=tp,
        pipeline_parallel_size=pp, decode_context_parallel_size=dcp, max_model_len=parse_tokens("--max-model-len", max_model_len), max_num_seqs=max_num_seqs,
        max_num_batched_tokens=parse_tokens("--max-num-batched-tokens", max_num_batched_tokens), gpu_memory_utilization=gpu_memory_utilization,
        kv_cache_dtype=kv_cache_dtype, quantization=quantization, dtype=dtype, block_size=block_size,
        enforce_eager=enforce_eager or None, enable_prefix_caching=prefix_caching,
        speculative_config=speculative_config, language_model_only=language_model_only or None,
        kv_cache_memory_bytes=kv_cache_memory_bytes, num_gpu_blocks_override=num_gpu_blocks_override, hf_overrides=hf_overrides,
        available_kv=available_kv, input_tokens=input_tokens, output_tokens=output_tokens,
    )  # fmt: skip
    report = None
    if source is not None:
        with reading.analysis([source], quiet, None, None, None, None) as analysis:
            report = analysis.report
    question = fitting.ask(given, report)
    from oomdoc.report import fit as forms

    if matrix:
        table = fitting.matrix(question)
        console.out(
            forms.render_json(table)
            if form == "json"
            else forms.render_matrix(table, width=console.width(), color=colored),
            utf8=form == "json",
        )
        return EXIT_OK
    if solve is None:
        sheet = fitting.worksheet(question)
        console.out(
            forms.render_json(sheet) if form == "json" else forms.render(sheet, width=console.width(), color=colored),
            utf8=form == "json",
        )
        return EXIT_OK
    solved = fitting.solve(question, solve)
    if form == "json":
        console.out(forms.render_json(solved), utf8=True)
        return EXIT_OK
    console.out(forms.render_solved(solved))
    best = "" if solved.value is not None or solved.at_best is None else f"; at best {solved.at_best:g}"
    console.note(solved.says + best, quiet)
    return EXIT_OK
