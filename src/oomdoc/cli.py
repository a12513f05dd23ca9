"""The command line: arguments in, one call, one report out, and the exit status of the contract; nothing else.

Everything heavy is imported inside the command that needs it, so that `--help` costs a few hundredths of a second.
Standard output is the result and standard error is progress, notes and warnings.
"""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from oomdoc.errors import EXIT_FOUND, EXIT_INTERRUPTED, EXIT_OK, BundleError, OomdocError, UsageError
from oomdoc.limits import MEMORY_BYTES, TIMEOUT_S, Ended, limited, watched

if TYPE_CHECKING:
    from oomdoc.diagnose import Analysis
    from oomdoc.model import Report
    from oomdoc.rules import Rule

EXIT_BUG = 70  # EX_SOFTWARE of sysexits.h
PIPE_WIDTH = 100  # columns where no terminal says
PROGRESS_AFTER_S = 1.0
PROGRESS_EVERY_S = 0.1
SWEEP_LOG_EVERY_S = 30.0  # where standard error is a file or a journal
REPORT_BYTES = 64 << 20  # a report is far smaller; larger files are bundles

app = typer.Typer(
    name="oomdoc",
    rich_markup_mode=None,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
rules_app = typer.Typer(
    rich_markup_mode=None,
    help="""List, test, write and count the rule set: one cause per file.

    \b
    Example:
      oomdoc rules list
      oomdoc rules new disk-full ./my-rules
      oomdoc rules test ./my-rules
    """,
)
app.add_typer(rules_app, name="rules")

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Archive, folder or files; - is standard input.", show_default=False),
]
Bundle = Annotated[
    str, typer.Argument(metavar="BUNDLE", help="Archive, folder or file; - is standard input.", show_default=False)
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="GLOB=KIND", help="Read sources whose path matches GLOB as KIND (repeatable)."),
]
Since = Annotated[
    str | None, typer.Option(metavar="TIME", help="Leave out evidence before TIME (ISO 8601, UTC without a zone).")
]
Until = Annotated[str | None, typer.Option(metavar="TIME", help="Leave out evidence after TIME.")]
Zone = Annotated[
    str | None, typer.Option("--tz", metavar="ZONE", help="Zone of logs that name none: +02:00 or Europe/Berlin.")
]
RuleFolder = Annotated[Path | None, typer.Option("--rules", metavar="DIR", help="Add the rules of this folder.")]
Color = Annotated[
    str,
    typer.Option(
        metavar="auto|always|never", help="Colour; auto heeds NO_COLOR, FORCE_COLOR and whether a terminal reads."
    ),
]
Timeout = Annotated[
    float | None, typer.Option(min=0, metavar="SECONDS", help="Stop after so long (default 3600; 0 is never).")
]
Memory = Annotated[
    str | None,
    typer.Option("--memory-limit", metavar="SIZE", help="Take at most so much memory (default 4GiB; 0 is any)."),
]
MaxSize = Annotated[
    str | None, typer.Option(metavar="SIZE", help="Read at most so much in all, unpacked (default 64GiB).")
]
MaxMembers = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Read at most N files, links and folders (default 100000).")
]
Map = Annotated[
    Path | None,
    typer.Option(
        "--map", metavar="FILE", help="Private map of stand-ins, used again and kept: same names, same stand-ins."
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="No progress, notes or warnings on standard error.")]


def run(argv: list[str]) -> int:
    """Run one command; the exit status of the contract. Errors for people become one sentence on standard error."""
    root = typer.main.get_command(app)
    commands: Iterable[str] = root.commands  # type: ignore[attr-defined]
    usage_error: type[Exception] = typer.BadParameter.__mro__[2]  # ClickException, wherever this typer keeps it
    try:
        if not argv:
            sys.stderr.write(root.get_help(root.make_context("oomdoc", [], resilient_parsing=True)) + "\n")
            return UsageError.exit_code
        argv, environment = _configured(argv)
        chosen = _default_map(root, environment)
        with watched():
            status = root.main(
                args=_with_command(argv, list(commands)), prog_name="oomdoc", standalone_mode=False, default_map=chosen
            )
        if status == EXIT_INTERRUPTED:
            raise KeyboardInterrupt
        return int(status or EXIT_OK)
    except OomdocError as problem:
        _say(str(problem))
        return problem.exit_code
    except usage_error as problem:
        _say(_usage_sentence(problem))
        return UsageError.exit_code
    except Ended as end:
        _say(end.says)
        return end.status
    except (KeyboardInterrupt, typer.Abort):
        _say("interrupted")
        return EXIT_INTERRUPTED
    except Exception:  # not 1, which means that --fail-on found something
        import traceback

        traceback.print_exc()
        _say("this is a bug. Please report it with the lines above")
        return EXIT_BUG


def _configured(argv: list[str]) -> tuple[list[str], dict[str, str]]:
    """The arguments without `--config FILE` and `--no-config` in front, and the environment as they make it."""
    environment = dict(os.environ)
    rest = list(argv)
    while rest and (rest[0] in ("--config", "--no-config") or rest[0].startswith("--config=")):
        word = rest.pop(0)
        if word == "--config" and not rest:
            raise UsageError("--config needs a file", "Write --config FILE before the command")
        environment["OOMDOC_CONFIG"] = "" if word == "--no-config" else word.partition("=")[2] or rest.pop(0)
    return rest or ["--help"], environment


def _default_map(root: Any, environment: dict[str, str]) -> dict[str, Any]:
    """What files and variables set, in the form in which commands take their defaults; empty where nothing is set."""
    from oomdoc import config

    paths = config.files(environment, Path.cwd())
    if not paths and not any(name.startswith("OOMDOC_") and name not in config.OTHER_VARIABLES for name in environment):
        return {}
    options = {path: _options(command) for path, command in _walk(root) if path}
    found = config.defaults(options, environment, paths)
    made: dict[str, Any] = {}
    context = root.make_context("oomdoc", [], resilient_parsing=True)
    for path, values in found.items():
        place = made
        for word in path.split():
            place = place.setdefault(word, {})
        for name, (value, where) in values.items():
            option = options[path][name]
            try:
                if isinstance(value, bool) and not option.is_flag:
                    raise ValueError
                option.process_value(context, [value] if option.multiple else value)
            except Exception:
                raise UsageError(f"{where} = {value!r} does not fit --{name}", option.help or "") from None
            place[option.name] = [value] if option.multiple else value
    return made


def _walk(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every command by its path below `oomdoc`."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from _walk(inner, f"{path} {name}".strip())


def _options(command: Any) -> dict[str, Any]:
    """Options of a command by their long name without the hyphens."""
    return {
        max(param.opts, key=len).lstrip("-"): param for param in command.params if param.param_type_name == "option"
    }


def _with_command(argv: list[str], commands: list[str]) -> list[str]:
    """A bare `oomdoc PATH` means `oomdoc analyze PATH`; a mistyped command is told, not looked for as a file."""
    first = argv[0]
    if first in commands or first in ("-h", "--help", "--version"):
        return argv
    near = difflib.get_close_matches(first, commands, 1, 0.7)
    if near and not Path(first).exists():
        raise UsageError(f"'{first}' is neither a command nor a file here", f"Did you mean `oomdoc {near[0]}`?")
    return ["analyze", *argv]


def _usage_sentence(problem: Exception) -> str:
    said = problem.format_message() if hasattr(problem, "format_message") else str(problem)
    context = getattr(problem, "ctx", None)
    path = context.command_path if context else "oomdoc"
    said = said.strip().rstrip(".")
    return f"{said[:1].lower()}{said[1:]}{'' if said.endswith('?') else '.'} `{path} --help` tells more"


# --- commands ---------------------------------------------------------------------------------------------------------


def _version(wanted: bool) -> None:
    if wanted:
        from oomdoc import __version__

        _out(f"oomdoc {__version__}\n")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Take defaults of options from FILE, not from oomdoc.toml here and in ~/.config."
        ),
    ] = None,
    no_config: Annotated[bool, typer.Option("--no-config", help="Take defaults from no file.")] = False,
) -> None:
    """Says why an LLM server (vLLM) ran out of memory.

    Ranked causes, the lines that prove them, and the flags that would have held. It reads a support bundle (logs,
    request logs, nvidia-smi, Kubernetes and kernel output in any archive or folder),
    needs no network and no GPU, and changes nothing. A bare `oomdoc PATH` is `oomdoc analyze PATH`.

    \b
    Example:
      oomdoc bundle.tar.gz
      oomdoc show bundle.tar.gz pods/vllm-0/vllm.log:812
      oomdoc explain kv-demand-exceeds-pool

    Defaults of options can be set: in oomdoc.toml of the working folder or of ~/.config/oomdoc (top = 5, or gpu = "H100"
    under [fit]), and as OOMDOC_TOP or OOMDOC_FIT_GPU. The command line wins over variables, these over files.

    \b
    Exit status:
      0    the analysis was made, whatever it found
      1    with --fail-on P, a cause other than `healthy` reached P;
           with `rules test`, a test failed
      2    wrong usage
      3    the input could not be read or held nothing that can be analysed
      70   a bug in oomdoc; the traceback says where
      75   `sweep`: another sweep is at work on the store
      130  interrupted
    """


@app.command()
def analyze(
    paths: Paths,
    form: Annotated[
        str,
        typer.Option("--format", metavar="terminal|json|markdown|html", help="Form of what goes to standard output."),
    ] = "terminal",
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write to FILE, .txt, .json, .md or .html, instead (repeatable; - is standard output).",
        ),
    ] = None,
    top: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many causes the terminal form shows; the JSON has all.")
    ] = 3,
    fail_on: Annotated[
        float | None,
        typer.Option(
            metavar="P", help="Exit with 1 when a cause other than `healthy` is at least this probable (0 to 1)."
        ),
    ] = None,
    db: Annotated[
        Path | None, typer.Option(metavar="FILE.duckdb", help="Keep the evidence tables in this new file.")
    ] = None,
    rules: RuleFolder = None,
    model_config: Annotated[
        Path | None, typer.Option(metavar="CONFIG.json", help="The model's config.json, if the bundle lacks it.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME|SIZE", help="The GPU, if the bundle does not tell: H100, or 80GiB.")
    ] = None,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    tz: Zone = None,
    max_size: MaxSize = None,
    max_members: MaxMembers = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    redact: Annotated[
        bool,
        typer.Option("--redact", help="Report on a redacted copy: names, addresses, secrets, prompts as stand-ins."),
    ] = False,
    redaction_map: Map = None,
    explain_coverage: Annotated[
        bool,
        typer.Option(
            "--explain-coverage",
            help="Account for every member instead: read as what, lines, rows, problems, or why not.",
        ),
    ] = False,
    details: Annotated[
        bool,
        typer.Option(
            "--details",
            help="Add log lines behind the references and the fix replayed to the JSON; HTML always has them.",
        ),
    ] = False,
    color: Color = "auto",
    quiet: Quiet = False,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="Name each source and what it was read as on standard error.")
    ] = False,
) -> int:
    """Rank the causes of a memory failure, with proof and fix.

    The report tells the verdict, where the memory is, what failed first, the evidence by path:line, and the fix.
    Several PATHs are read as one bundle. The same bundle and rules give the same report, byte for byte.

    \b
    Example:
      oomdoc analyze bundle.tar.gz
      oomdoc analyze vllm.log requests.jsonl nvidia-smi.csv --gpu H100
      oomdoc analyze bundle.tar.gz -o report.html -o report.json --fail-on 0.8
      kubectl logs vllm-0 --previous | oomdoc analyze - --format json
      oomdoc analyze bundle.tar.gz --explain-coverage --max-size 8GiB
      oomdoc analyze bundle.tar.gz --redact -o report.json
    """
    if fail_on is not None and not 0 <= fail_on <= 1:
        raise UsageError(f"--fail-on {fail_on:g} is no probability", "Give a number from 0 to 1, such as 0.8")
    colored = _colored(color)
    plan = [(_form(form), "-")] if not outputs else [_target(name, form) for name in outputs]
    _spare_inputs(paths, [*(name for _, name in plan), *([str(db)] if db else [])])
    if explain_coverage and form != "terminal":
        raise UsageError(
            "--explain-coverage is for people", f"The {form} report holds the same under `coverage`: leave one out"
        )
    options: dict[str, Any] = {"rules": rules, "db": db, "model_config": _file(model_config), "gpu": gpu}
    if max_size is not None or max_members is not None:
        options["limits"] = _limits(max_size, max_members)
    options |= {"timeout": timeout, "memory_limit": memory_limit, "redact": redact, "redaction_map": redaction_map}
    if redaction_map is not None and not redact:
        raise UsageError("--map is for --redact", "Add --redact, or leave it out")
    options["details"] = details or any(name == "html" for name, _ in plan)
    with _analysis(paths, quiet, types, since, until, tz, **options) as analysis:
        report = analysis.report
        account = _account(analysis) if explain_coverage else ""
    for sentence in _read(report) if verbose else ():
        _note(sentence, quiet)
    from oomdoc.report import REPORTS

    if explain_coverage:
        _out(account)
        plan = [entry for entry in plan if entry[1] != "-"]

    for name, target in plan:
        if target == "-":
            text = REPORTS[name](report, top=top, width=_width(), color=colored)
            _out(text, utf8=name != "terminal")
        else:
            _write(target, REPORTS[name](report, top=top, width=PIPE_WIDTH, color=False))
            _note(f"wrote {target}", quiet)
    if ("terminal", "-") not in plan:
        for warning in report.warnings:
            _note(f"warning: {warning}", quiet)
    return EXIT_FOUND if fail_on is not None and _reached(report, fail_on) else EXIT_OK


@app.command()
def profile(
    paths: Paths,
    form: Annotated[str, typer.Option("--format", metavar="terminal|json", help="Form of the profile.")] = "terminal",
    buckets: Annotated[
        str | None,
        typer.Option(metavar="N,N,N", help="Tokens at which the buckets M, L and XL begin; 512,2048,8192 else."),
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
    """Show the traffic: sizes, rates, surges, before and during.

    Requests are bucketed S, M, L, XL by tokens; arrivals and tokens in flight are drawn over time; surges of five minutes
    are held against the average, the minutes of the incident against the time before. Tenants, models and the requests
    that weighed most are named where the log tells them.

    \b
    Example:
      oomdoc profile requests.jsonl --buckets 1000,4000,16000
      oomdoc profile bundle.tar.gz --since 2026-11-20T18:00 --until 2026-11-20T21:00
    """
    if form not in ("terminal", "json"):
        raise UsageError(f"--format {form} is unknown", "Choose terminal or json")
    colored = _colored(color)
    bounds = None if buckets is None else _bounds(buckets)
    with _analysis(paths, quiet, types, since, until, tz, timeout=timeout, memory_limit=memory_limit) as analysis:
        report = analysis.report
        if bounds is not None and report.traffic:
            import dataclasses

            report = dataclasses.replace(report, traffic=analysis.traffic(bounds))
    if not report.traffic.get("requests"):
        raise BundleError(
            f"no requests with token counts in {report.bundle.name}",
            "Add a request log: JSON lines, CSV or key=value with prompt and output tokens",
        )
    if form == "json":
        from oomdoc.report.json import dump

        plain = report.to_dict()
        _out(dump({key: plain[key] for key in ("schema_version", "oomdoc_version", "bundle", "traffic")}), utf8=True)
    else:
        from oomdoc.report.profile import render

        _out(render(report, width=_width(), color=colored))
    return EXIT_OK


def _read(report: Report) -> Iterator[str]:
    """What `--verbose` tells: each source with what became of it, and what was left unread."""
    from oomdoc.report.words import count

    for item in report.coverage.sources:
        yield f"read {item.path} as {item.kind}: {count(item.lines, 'line')}, {count(item.rows, 'row')} of evidence, {count(item.problems, 'problem')}"
    for left in report.coverage.unread:
        yield f"not read: {left.path} ({left.why})"


def _bounds(text: str) -> list[int]:
    """The three token counts of `--buckets`, rising."""
    parts = [part.strip() for part in text.split(",")]
    bounds = [int(part) for part in parts if part.isdecimal() and part.isascii()]
    if len(parts) != 3 or len(bounds) != 3 or not 0 < bounds[0] < bounds[1] < bounds[2] < 2**31:
        raise UsageError(f"--buckets {text} is not three rising token counts", "Write 512,2048,8192")
    return bounds


@app.command()
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
    replay is from the recorded usage, then with the changed ones. It tells usage, waiting, preemptions, and whether it
    survives: nobody preempted, nobody held back for lack of KV blocks.

    Flags: max_num_seqs, max_num_batched_tokens, max_model_len, enable_prefix_caching, enable_chunked_prefill,
    gpu_memory_utilization, kv_cache_dtype, tensor_parallel_size, kv_cache_memory_bytes, num_gpu_blocks_override.

    \b
    Example:
      oomdoc replay bundle.tar.gz
      oomdoc replay bundle.tar.gz --set max_num_seqs=11
      oomdoc replay bundle.tar.gz --set gpu_memory_utilization=0.95 --set kv_cache_dtype=fp8 --format json
    """
    if form not in ("terminal", "json"):
        raise UsageError(f"--format {form} is unknown", "Choose terminal or json")
    colored = _colored(color)
    chosen = _settings(settings or ())
    with _analysis(
        [bundle],
        quiet,
        types,
        since,
        until,
        tz,
        model_config=_file(model_config),
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
        _out(
            dump({"oomdoc_version": head["oomdoc_version"], "bundle": head["bundle"], "replay": plain(told)}), utf8=True
        )
    else:
        from oomdoc.report.replay import render

        _out(render(report.bundle.name, told, width=_width(), color=colored))
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
                f"--set {name} is no flag that the replay knows", _nearest(name, FLAGS, f"choose {', '.join(FLAGS)}")
            )
        chosen[name] = value
    return chosen


@app.command()
def fit(
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Model: a repository id, a path or a short name.")
    ] = None,
    model_config: Annotated[
        Path | None,
        typer.Option(metavar="CONFIG.json", help="The model's config.json, for models not in the catalogue."),
    ] = None,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="BUNDLE", help="Take model, flags, figures and traffic from a bundle."),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME|SIZE", help="The device: H100, A10G, RTX 4090, or its total as 80GiB.")
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
        int | None, typer.Option(metavar="TOKENS", help="Longest request; else what the model states.")
    ] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(metavar="N", help="Sequences in a batch; else the release's default.")
    ] = None,
    max_num_batched_tokens: Annotated[
        int | None, typer.Option(metavar="TOKENS", help="Tokens of one step; else the release's default.")
    ] = None,
    gpu_memory_utilization: Annotated[
        float | None, typer.Option(metavar="SHARE", help="0 to 1; else the release's default (0.9, from 0.20 on 0.92).")
    ] = None,
    kv_cache_dtype: Annotated[
        str | None, typer.Option(metavar="DTYPE", help="auto, fp8, bfloat16, nvfp4 and the like.")
    ] = None,
    quantization: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="Format of the weights (none, fp8, awq, ...), if the name does not tell."),
    ] = None,
    dtype: Annotated[str | None, typer.Option(metavar="DTYPE", help="auto, bfloat16, float16, float32.")] = None,
    block_size: Annotated[int | None, typer.Option(metavar="TOKENS", help="Tokens in a KV block.")] = None,
    enforce_eager: Annotated[bool, typer.Option("--enforce-eager", help="No CUDA graphs.")] = False,
    engine_version: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="vLLM's version, such as 0.11.2; it decides formulas and defaults."),
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
    form: Annotated[str, typer.Option("--format", metavar="terminal|json", help="Form of the worksheet.")] = "terminal",
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Work out what fits: pool, longest context, concurrency.

    Says whether the engine would start with these flags and what lacks otherwise, how many tokens the KV pool holds, the
    largest max_model_len, how many requests run at once, the safest utilization, what TP, PP, an 8-bit KV cache and
    quantised weights change, parameters for short and for long traffic, and the command to start. Figures are per GPU;
    what is not known is a range, and every input is told with its origin. GiB is 2^30 bytes.

    \b
    Example:
      oomdoc fit --model Qwen/Qwen3-32B --gpu H100 --tp 2 --max-model-len 32768
      oomdoc fit --model llama-3.3-70b-instruct-fp8 --gpu A100-80GB --tp 2 \\
          --engine-version 0.11.2 --input-tokens p50=1500,p95=12000 --output-tokens 600
      oomdoc fit --model Qwen3-8B --gpu L4 --solve max_model_len
      oomdoc fit --model-config ./config.json --gpu 24GiB --quantization awq
      oomdoc fit --from bundle.tar.gz --gpu-memory-utilization 0.95
      oomdoc fit --model GLM-4.7-NVFP4 --gpu B200 --tp 4 --kv-cache-dtype fp8 \\
          --available-kv 31.99GiB --engine-version 0.15.1 --format json

    \b
    Exit status: 0 whatever fits or not (--solve prints `none` where nothing
    does); 2 wrong usage; 3 the bundle could not be read.
    """
    if form not in ("terminal", "json"):
        raise UsageError(f"--format {form} is unknown", "Choose terminal or json")
    colored = _colored(color)
    from oomdoc import fit as fitting

    given = fitting.Given(
        model=model, model_config=_config(model_config), gpu=gpu, engine_version=engine_version, tensor_parallel_size=tp,
        pipeline_parallel_size=pp, decode_context_parallel_size=dcp, max_model_len=max_model_len, max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens, gpu_memory_utilization=gpu_memory_utilization,
        kv_cache_dtype=kv_cache_dtype, quantization=quantization, dtype=dtype, block_size=block_size,
        enforce_eager=enforce_eager or None, available_kv=available_kv, input_tokens=input_tokens, output_tokens=output_tokens,
    )  # fmt: skip
    report = None
    if source is not None:
        with _analysis([source], quiet, None, None, None, None) as analysis:
            report = analysis.report
    question = fitting.ask(given, report)
    from oomdoc.report import fit as forms

    if solve is None:
        sheet = fitting.worksheet(question)
        _out(
            forms.render_json(sheet) if form == "json" else forms.render(sheet, width=_width(), color=colored),
            utf8=form == "json",
        )
        return EXIT_OK
    solved = fitting.solve(question, solve)
    if form == "json":
        _out(forms.render_json(solved), utf8=True)
        return EXIT_OK
    _out(forms.render_solved(solved))
    best = "" if solved.value is not None or solved.at_best is None else f"; at best {solved.at_best:g}"
    _note(solved.says + best, quiet)
    return EXIT_OK


@app.command()
def diff(
    old: Annotated[
        str,
        typer.Argument(
            metavar="OLD", help="Bundle, or a report that `analyze -o report.json` wrote.", show_default=False
        ),
    ],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The same, later or otherwise set.", show_default=False)],
    form: Annotated[
        str,
        typer.Option("--format", metavar="terminal|json|markdown|html", help="Form of what goes to standard output."),
    ] = "terminal",
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to FILE, .txt, .json, .md or .html, instead (repeatable)."
        ),
    ] = None,
    rules: RuleFolder = None,
    types: Types = None,
    tz: Zone = None,
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Tell what changed between two bundles, and which change explains the failure.

    Versions, model, flags, where the memory is, traffic and verdict, side by side. Changes come in the order in which the
    leading cause's evidence and advice speak of them; a change that went the other way explains nothing. What a bundle
    does not state is told as not stated. Bundles and JSON reports can be mixed.

    \b
    Example:
      oomdoc diff monday.tar.gz tuesday.tar.gz
      oomdoc diff good-report.json bundle.tar.gz -o diff.md -o diff.html
    """
    from oomdoc.report import SUFFIXES

    forms = ("terminal", "json", "markdown", "html")
    if form not in forms:
        raise UsageError(f"--format {form} is unknown", f"Choose {', '.join(forms[:-1])} or {forms[-1]}")
    plan = [(form, "-")]
    if outputs:
        plan = []
        for name in outputs:
            suffix = Path(name).suffix.lower()
            if name != "-" and suffix not in SUFFIXES:
                raise UsageError(
                    f"-o {name} does not say which form to write", "End the name with .txt, .json, .md or .html"
                )
            plan.append((form if name == "-" else SUFFIXES[suffix], name))
    _spare_inputs([old, new], [name for _, name in plan])
    colored = _colored(color)
    if old == new == "-":
        raise UsageError("OLD and NEW are both standard input", "Give one of them as a file")
    from oomdoc.compare import compare

    told = compare(*(_report_of(path, quiet, types, tz, rules) for path in (old, new)))
    from oomdoc.report import diff as page

    for name, target in plan:
        if target == "-":
            _out(page.FORMS[name](told, width=_width(), color=colored), utf8=name != "terminal")
        else:
            _write(target, page.FORMS[name](told, width=PIPE_WIDTH, color=False))
            _note(f"wrote {target}", quiet)
    return EXIT_OK


def _report_of(path: str, quiet: bool, types: Sequence[str] | None, tz: str | None, rules: Path | None) -> Any:
    """The JSON object of a report: read where the file is one, else made from the bundle."""
    from oomdoc.compare import check

    if path != "-" and Path(path).is_file() and Path(path).stat().st_size <= REPORT_BYTES:
        raw = Path(path).read_bytes()
        if raw.lstrip()[:1] == b"{":
            import json

            try:
                found = json.loads(raw)
            except (ValueError, RecursionError):
                found = None  # a log of JSON lines, perhaps: the analysis tells
            if isinstance(found, dict) and "schema_version" in found and "diagnoses" in found:
                return check(found, path)
    with _analysis([path], quiet, types, None, None, tz, rules=rules) as analysis:
        return analysis.report.to_dict()


@app.command()
def sweep(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="PATH|URI...", help="Folders, globs, archives, s3://BUCKET/PREFIX, gs://...", show_default=False
        ),
    ],
    store: Annotated[
        str, typer.Option(metavar="DIR|URI", help="The dataset: made if it is not there.", show_default=False)
    ],
    group_by: Annotated[
        str, typer.Option(metavar="folder|host|pod", help="What of a log tree is one bundle; an archive always is one.")
    ] = "folder",
    engine: Annotated[str, typer.Option(metavar="embedded|ray", help="Who runs the work.")] = "embedded",
    jobs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Bundles at the same time; else one per core.")
    ] = None,
    time_limit: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="For one bundle.")] = 600,
    memory: Annotated[str, typer.Option(metavar="SIZE", help="For one worker.")] = "1GiB",
    night: Annotated[str | None, typer.Option(metavar="DATE", help="The night's date; else today in UTC.")] = None,
    retention: Annotated[
        int | None, typer.Option(min=1, metavar="DAYS", help="Forget nights that are older; else none is forgotten.")
    ] = None,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Read every bundle again, changed or not.")] = False,
    endpoint_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of an object store that is not the cloud's own.")
    ] = None,
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Read public buckets without credentials.")] = False,
    rules: RuleFolder = None,
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORM", help="On standard output: terminal, markdown, html, jsonl, junit or prometheus."
        ),
    ] = "terminal",
    outputs: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="Write the report to FILE as well: .txt, .md, .html, .jsonl, .xml (JUnit), .prom (repeatable).",
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="new|P",
            help="Exit with 1 for a new incident with a memory cause, or for one at least this probable (0 to 1).",
        ),
    ] = None,
    color: Color = "auto",
    quiet: Quiet = False,
) -> int:
    """Diagnose a fleet every night: read what is new, tell what is new.

    Every archive is a bundle; log trees are cut into bundles by folder (the first one on the way down that holds files),
    host or pod. What is unchanged is not read again, new rules judge kept evidence, and the dataset of Parquet files answers
    `oomdoc sql STORE`. Killed at any moment, the next sweep goes on. Object stores are reached with the usual credentials.

    \b
    Example:
      oomdoc sweep /var/bundles --store ./fleet
      oomdoc sweep '/logs/*/vllm*.log' --group-by host --store ./fleet -o morning.html -o oomdoc.prom
      oomdoc sweep s3://support/bundles --store s3://support/oomdoc --retention 90 --fail-on new
      oomdoc sql ./fleet "SELECT cause, count(*) AS n FROM new_incident GROUP BY cause ORDER BY n DESC"

    \b
    Exit status: 0 the sweep was made; 1 with --fail-on; 2 wrong usage; 3 nothing
    could be read or written; 75 another sweep is at work on the store.
    """
    from oomdoc.report.morning import FORMS, SUFFIXES, terminal

    if form not in FORMS:
        raise UsageError(f"--format {form} is unknown", f"Choose {', '.join(FORMS)}")
    least = _sweep_bar(fail_on)
    colored = _colored(color)
    targets = []
    for name in outputs or ():
        suffix = Path(name).suffix.lower()
        if suffix not in SUFFIXES:
            raise UsageError(f"-o {name} does not say which form to write", f"End the name with {', '.join(SUFFIXES)}")
        if not Path(name).parent.is_dir():
            raise UsageError(f"cannot write {name}, there is no folder {Path(name).parent}", "Make it first")
        targets.append((SUFFIXES[suffix], name))
    from oomdoc.units import parse_size

    size = parse_size(memory)
    if not size or size < 256 << 20:
        raise UsageError(
            f"--memory '{memory}' is no size that a worker can live in", "Write 1GiB, and not less than 256MiB"
        )
    from oomdoc.sweep.places import Access, need_pyarrow

    need_pyarrow()
    from oomdoc.sweep import run as sweeping
    from oomdoc.sweep.engines import Limits

    progress = _SweepProgress(quiet)
    chosen = sweeping.Settings(
        store=store, group_by=group_by, engine=engine, jobs=jobs, limits=Limits(time_limit, size), night=night, retention_days=retention,
        rebuild=rebuild, rules=rules, access=Access(endpoint_url, anonymous), progress=progress,
    )  # fmt: skip
    try:
        morning = sweeping.sweep(paths, chosen)
    finally:
        progress.clear()
    for name, target in targets:
        _write(target, FORMS[name](morning))
        _note(f"wrote {target}", quiet)
    text = terminal(morning, width=_width(), color=colored) if form == "terminal" else FORMS[form](morning)
    _out(text, utf8=form != "terminal")
    if least is None:
        return EXIT_OK
    reached = (
        morning.new_incidents > 0
        if least == "new"
        else any(group.cause != "healthy" and (group.probability or 0) >= float(least) for group in morning.groups)
    )
    return EXIT_FOUND if reached else EXIT_OK


@app.command()
def sql(
    bundle: Bundle,
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="SELECT",
            help="One SELECT over the tables that `oomdoc tables` lists; without it a prompt, or what a pipe says.",
            show_default=False,
        ),
    ] = None,
    form: Annotated[str, typer.Option("--format", metavar="table|csv|json|jsonl", help="Form of the rows.")] = "table",
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to FILE, .csv, .json, .jsonl or .parquet, instead."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most N rows.")] = None,
    endpoint_url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the object store that holds a sweep's store.")
    ] = None,
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Read a public store without credentials.")] = False,
    types: Types = None,
    since: Since = None,
    until: Until = None,
    tz: Zone = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    quiet: Quiet = False,
) -> int:
    """Answer SELECTs from the evidence tables of a bundle.

    The dialect is DuckDB's; nothing can be written and no file opened. `oomdoc tables` says what there is. Without a SELECT
    a prompt opens, with history and with completion of tables and columns (Tab); `.help` lists its commands. A pipe is
    answered statement by statement. For the store of a sweep it answers from the dataset: docs/sweep.md has its tables. JSON
    and Parquet hold texts as they are; in a table and in CSV no terminal acts on them and no spreadsheet computes them.

    \b
    Example:
      oomdoc sql bundle.tar.gz "SELECT t, kv_used, waiting FROM engine_stat ORDER BY kv_used DESC LIMIT 5"
      oomdoc sql bundle.tar.gz "FROM oom" --format json
      oomdoc sql bundle.tar.gz "FROM request" -o requests.parquet
      oomdoc sql bundle.tar.gz
      oomdoc sql bundle.tar.gz < questions.sql
    """
    if form not in ("table", "csv", "json", "jsonl"):
        raise UsageError(f"--format {form} is unknown", "Choose table, csv, json or jsonl")
    if query is None and bundle == "-":
        raise UsageError("standard input is the bundle, so the question has to be an argument", "Add a SELECT")
    suffix = output.suffix.lower().lstrip(".") if output else ""
    if output is not None:
        if suffix not in ("csv", "json", "jsonl", "parquet"):
            raise UsageError(
                f"-o {output} does not say which form to write", "End it with .csv, .json, .jsonl or .parquet"
            )
        if query is None:
            raise UsageError(f"-o {output} needs a SELECT", "Give it as an argument")
        _spare_inputs([bundle], [str(output)])
    from oomdoc.report.words import count

    if _is_store(bundle):
        if query is None or suffix == "parquet":
            raise UsageError(
                "the store of a sweep answers one SELECT as text", "Give it as an argument; copy its Parquet files"
            )
        names, rows = _ask_store(bundle, query, limit + 1 if limit else None, endpoint_url, anonymous)
        return _rows_out(names, rows, form, output, suffix, limit, quiet)
    with _analysis([bundle], quiet, types, since, until, tz, timeout=timeout, memory_limit=memory_limit) as analysis:
        if query is None:
            return _questions(analysis, form, limit, quiet)
        if output is not None and suffix == "parquet":
            _note(f"wrote {count(analysis.parquet(query, output, limit), 'row')} to {output}", quiet)
            return EXIT_OK
        names, rows = analysis.sql(query, limit + 1 if limit else None)
    return _rows_out(names, rows, form, output, suffix, limit, quiet)


def _rows_out(
    names: list[str],
    rows: list[tuple[Any, ...]],
    form: str,
    output: Path | None,
    suffix: str,
    limit: int | None,
    quiet: bool,
) -> int:
    """Rows on standard output or in a file; one more than `limit` of them says that there are more."""
    from oomdoc.report import rows as forms
    from oomdoc.report.words import count

    shown = rows[:limit]
    writers = {"csv": forms.csv, "json": forms.json, "jsonl": forms.jsonl}
    if output is not None:
        _write(str(output), writers[suffix](names, shown))
        _note(f"wrote {count(len(shown), 'row')} to {output}", quiet)
    elif form == "table":
        _out(forms.table(names, shown, _width() if sys.stdout.isatty() else None))
    else:
        _out(writers[form](names, shown), utf8=True)
    if len(shown) < len(rows):
        _note(f"only the first {count(len(shown), 'row')}; --limit gives more", quiet)
    return EXIT_OK


def _questions(analysis: Analysis, form: str, limit: int | None, quiet: bool) -> int:
    """Statements of a person at the prompt, where a mistake is told and forgotten, or of a pipe, where it ends the run."""
    import pydoc

    from oomdoc import prompt
    from oomdoc.tables import TABLES
    from oomdoc.views import VIEWS

    known = prompt.known_tables(TABLES, VIEWS)
    person = sys.stdin.isatty() and sys.stdout.isatty()
    session = prompt.Session(analysis.sql, known, form=form, limit=limit if limit or not person else 200)
    if not person:
        for statement in prompt.statements(sys.stdin.read()):
            if (told := session.answer(statement)) is None:
                break
            _out(told, utf8=session.form != "table")
        return EXIT_OK
    _note(f"{analysis.report.bundle.name}: SELECT ...; or .help, Ctrl-D to leave", quiet)
    for statement in prompt.lines_of_terminal(known):
        session.width = _width()
        try:
            told = session.answer(statement)
        except UsageError as problem:
            _say(str(problem))
            continue
        if told is None:
            break
        prompt.paged(told, shutil.get_terminal_size().lines, pydoc.pager, _out)
    return EXIT_OK


@app.command()
def tables(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="One table or view.", show_default=False)] = None,
    short: Annotated[bool, typer.Option("--short", help="Names and meanings only, no columns.")] = False,
) -> int:
    """List the evidence tables and views, and what each column means.

    \b
    Example:
      oomdoc tables --short
      oomdoc tables engine_stat
    """
    from oomdoc.prompt import known_tables
    from oomdoc.report.rows import catalogue
    from oomdoc.tables import TABLES
    from oomdoc.views import VIEWS

    known = known_tables(TABLES, VIEWS)
    if name is not None and name not in known:
        raise UsageError(f"no table or view '{name}'", _nearest(name, known, "`oomdoc tables --short` lists them"))
    chosen = known if name is None else {name: known[name]}
    _out(catalogue(chosen, columns=not short, width=_width()))
    return EXIT_OK


@app.command()
def show(
    paths: Paths,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="PATH:LINE", help="A place as a report cites it; path:first-last too.", show_default=False
        ),
    ],
    context: Annotated[
        int, typer.Option("-C", "--context", min=0, max=10_000, metavar="N", help="Lines before and after.")
    ] = 3,
    color: Color = "auto",
) -> int:
    """Print the lines behind a path:line that a report cites.

    Name the bundle as it was analysed. The cited path may leave out its first folders where that is unambiguous.
    Control characters are made visible.

    \b
    Example:
      oomdoc show bundle.tar.gz pods/vllm-0/vllm.log:812 -C 10
    """
    from oomdoc.report.words import neutral, neutral_line
    from oomdoc.show import lines

    bold, dim, end = ("\x1b[1m", "\x1b[2m", "\x1b[0m") if _colored(color) else ("", "", "")
    with limited(TIMEOUT_S, MEMORY_BYTES):
        excerpt = lines(_inputs(paths), ref, context)
    digits = len(str(excerpt.lines[-1][0]))
    _out(f"{dim}{neutral(excerpt.path)}{end}\n")
    for number, text in excerpt.lines:
        asked = excerpt.first <= number <= excerpt.last
        mark, on, off = (">", bold, end) if asked else (" ", "", "")
        _out(f"{mark} {dim}{number:>{digits}}{end}  {on}{neutral_line(text)}{off}".rstrip() + "\n")
    return EXIT_OK


@app.command()
def explain(
    cause: Annotated[
        str,
        typer.Argument(
            metavar="CAUSE", help="A cause id, as reports and `oomdoc rules list` name it.", show_default=False
        ),
    ],
    rules: RuleFolder = None,
    color: Color = "auto",
) -> int:
    """Print a cause's page: meaning, evidence, actions, references.

    \b
    Example:
      oomdoc explain kv-demand-exceeds-pool
    """
    from oomdoc.report.page import render

    known = {rule.id: rule for rule in _rules(rules)[0]}
    if cause not in known:
        raise UsageError(f"no cause '{cause}'", _nearest(cause, known, "`oomdoc rules list` names them all"))
    _out(render(known[cause], width=_width(), color=_colored(color)))
    return EXIT_OK


@rules_app.command("list")
def rules_list(rules: RuleFolder = None, color: Color = "auto") -> int:
    """List every cause by category with its prior and how much evidence it weighs.

    \b
    Example:
      oomdoc rules list
    """
    from oomdoc.report.page import table

    _out(table(_rules(rules)[0], width=_width(), color=_colored(color)))
    return EXIT_OK


@rules_app.command("matrix")
def rules_matrix(
    rules: RuleFolder = None,
    form: Annotated[str, typer.Option("--format", metavar="table|markdown|csv", help="How to print it.")] = "table",
    color: Color = "auto",
) -> int:
    """Print the root-cause matrix: causes by their strongest signs, what speaks against, what to do.

    \b
    Example:
      oomdoc rules matrix
      oomdoc rules matrix --format markdown > matrix.md
    """
    from oomdoc.report.page import MATRIX_FORMS, matrix

    if form not in MATRIX_FORMS:
        raise UsageError(f"--format {form} is not one of {', '.join(MATRIX_FORMS)}")
    _out(matrix(_rules(rules)[0], form, width=_width(), color=_colored(color)))
    return EXIT_OK


@rules_app.command("new")
def rules_new(
    cause: Annotated[str, typer.Argument(metavar="CAUSE", help="Id of the cause: words with hyphens.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Your folder of rules.")] = Path("my-rules"),
    category: Annotated[str, typer.Option("--category", metavar="NAME", help="Row of the root-cause matrix.")] = "host",
) -> int:
    """Write a rule file to begin from: one piece of evidence, one action and a test that passes.

    \b
    Example:
      oomdoc rules new disk-full ./my-rules --category host
      oomdoc rules test ./my-rules
    """
    from oomdoc.rules import new_rule

    path = new_rule(cause, category, folder)
    _out(f"{path} written. Edit it, then: oomdoc rules test {folder}\n")
    return EXIT_OK


@rules_app.command("test")
def rules_test(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="A folder of rules to add; else the built-in ones.", show_default=False),
    ] = None,
) -> int:
    """Run the tests that every rule file carries; exit status 1 when one fails.

    \b
    Example:
      oomdoc rules test
      oomdoc rules test ./my-rules
    """
    from oomdoc.report.words import count, neutral
    from oomdoc.rule_tests import run as run_tests

    chosen, faults = _rules(folder, told=True)
    with limited(TIMEOUT_S, MEMORY_BYTES):
        results = run_tests(chosen)
    failed = [result for result in results if not result[2]]
    for fault in faults:
        _out(f"BROKEN {neutral(fault)}\n")
    for rule_id, name, _, detail in failed:
        _out(f"FAILED {neutral(rule_id)}: {neutral(name)}\n")
        _out("".join(f"    {neutral(line)}\n" for line in str(detail).splitlines()))
    done = f"{len(results) - len(failed)} passed, {len(failed)} failed" + (
        f", {count(len(faults), 'broken file')}" if faults else ""
    )
    _out(f"{count(len(results), 'test')} of {count(len(chosen), 'rule')}: {done}\n")
    return EXIT_FOUND if failed or faults else EXIT_OK


@rules_app.command("count")
def rules_count(
    folders: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Folders of labelled bundles: each holds a case.toml.")
    ],
    write: Annotated[bool, typer.Option("--write", help="Write the counted numbers into the rule files.")] = False,
    rules: RuleFolder = None,
    quiet: Quiet = False,
) -> int:
    """Count on labelled bundles how often each piece of evidence holds, and how good the ranking is.

    A labelled bundle is a folder with a case.toml that says cause = "..." (and perhaps also = [...]). Every
    figure leaves out the bundle that is judged. With --write the numbers go into the rule files; what people
    judged stays beside them and weighs as much as 60 bundles.

    \b
    Example:
      oomdoc rules count tests/cases sample_logs
      oomdoc rules count ~/incidents --rules ./my-rules --write
    """
    from oomdoc import counting
    from oomdoc.report import figures

    chosen = _rules(rules)[0]
    progress = _Progress(quiet)
    tell = (lambda name: progress(name, 0)) if progress.on else (lambda name: None)
    cases, counted = counting.run(folders, chosen, rules, tell)
    progress.clear()
    left_out = counting.left_out(cases, chosen)
    now = [counting.ranking(case, chosen) for case in cases]
    made = [counting.figures(cases, chosen, told) for told in (now, left_out)]
    _out(figures.render(made[0], made[1], counting.best_sharpness(cases, chosen, left_out)))
    if write:
        for rule in counted:
            counting.write(rule)
    return EXIT_OK


@app.command()
def collect(
    kubernetes: Annotated[
        bool, typer.Option("--kubernetes", help="Print a support-bundle spec of troubleshoot.sh instead of the script.")
    ] = False,
    namespace: Annotated[
        str, typer.Option("-n", "--namespace", metavar="NAME", help="Namespace of the server's pods.")
    ] = "default",
    selector: Annotated[
        str, typer.Option("-l", "--selector", metavar="LABELS", help="Labels of the server's pods.")
    ] = "app=vllm",
) -> int:
    """Print a collector whose archive `analyze` reads.

    A POSIX shell script for a host: devices in a loop, metrics, logs of containers, pods and files, kernel log, launch
    command, memory group, versions. It needs neither Python nor root, is bounded in time and size, says what it could not
    get, and leaves secrets of the environment behind. With --kubernetes a spec for `kubectl support-bundle`: pods and
    their previous logs, events, devices, metrics, and redactors. Read it before you run it; `sh collect.sh -h` lists its
    options.

    \b
    Example:
      oomdoc collect > collect.sh && sh collect.sh -d 600 -c vllm
      oomdoc collect > collect.sh && sh collect.sh -n serving -p vllm-0
      oomdoc collect --kubernetes -n serving -l app=vllm > oomdoc-support-bundle.yaml
    """
    from oomdoc import collect as texts

    _out(texts.kubernetes(namespace, selector) if kubernetes else texts.shell(), utf8=True)
    return EXIT_OK


@app.command()
def redact(
    paths: Paths,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The copy: must not exist yet.", show_default=False)],
    redaction_map: Map = None,
    words: Annotated[
        list[str] | None,
        typer.Option(
            "--word", metavar="WORD", help="Replace this too, wherever it stands (repeatable): a project, a customer."
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="Diagnose both and compare (default), or only copy.")
    ] = True,
    form: Annotated[str, typer.Option("--format", metavar="terminal|json", help="Form of the account.")] = "terminal",
    max_size: MaxSize = None,
    max_members: MaxMembers = None,
    timeout: Timeout = None,
    memory_limit: Memory = None,
    quiet: Quiet = False,
) -> int:
    """Write a copy that is fit to send away, with the same diagnosis.

    Prompts, completions, keys, tokens, names of users, hosts and tenants, mail, addresses and homes in paths become stand-ins:
    the same for the same name, made with a key that is not in the copy. Numbers, sizes, times and line numbers stay. A folder
    gives a folder, an archive the same kind of archive. What is no text is left out and named. The copy holds a manifest,
    oomdoc-redaction.json: what was replaced, by kind and count. Keep the map of --map private: it translates back.

    \b
    Example:
      oomdoc redact bundle.tar.gz redacted.tar.gz
      oomdoc redact ./incident ./incident-redacted --map ~/fleet.map --word northwind

    \b
    Exit status: 0 the copy is written; 1 it is, but gives another diagnosis;
    2 wrong usage; 3 the input could not be read.
    """
    if form not in ("terminal", "json"):
        raise UsageError(f"--format {form} is unknown", "Choose terminal or json")
    from oomdoc.redact.run import Redaction
    from oomdoc.redact.run import redact as copy
    from oomdoc.report.redaction import render

    inputs = _inputs(paths)
    progress = _Progress(quiet)
    chosen = Redaction(
        redaction_map, tuple(words or ()), _limits(max_size, max_members), progress if progress.on else None
    )
    with limited(*_allowed(timeout, memory_limit)):
        try:
            manifest = copy(inputs, out, chosen)
        finally:
            progress.clear()
        differences = _compared(inputs, out, chosen.limits) if check and "-" not in inputs else None
    if form == "json":
        told = None if differences is None else not differences
        _out(manifest.to_json(same_diagnosis=told, differences=list(differences or ())), utf8=True)
    else:
        _out(render(str(out), manifest.members, manifest.replaced, manifest.renamed, manifest.left_out, differences))
    return EXIT_FOUND if differences else EXIT_OK


def _compared(inputs: Sequence[str], out: Path, limits: Any) -> tuple[str, ...] | None:
    """What the diagnosis of the copy has otherwise; None where the original gives none."""
    from oomdoc import diagnose
    from oomdoc.redact.same import differences

    options = diagnose.Options(limits=limits)
    try:
        with diagnose.analyze(inputs, options) as before, diagnose.analyze(out, options) as after:
            return differences(before.report, after.report)
    except BundleError:
        return None


@app.command()
def version() -> int:
    """Print the versions: of oomdoc, of its rules, and of the engine releases it knows.

    \b
    Example:
      oomdoc version
    """
    import platform

    from oomdoc import __version__
    from oomdoc.physics.defaults import NEWEST_READ, OLDEST_READ
    from oomdoc.rules import rules_version

    rules = _rules(None)[0]
    _out(
        f"oomdoc  {__version__}\n"
        f"rules   {rules_version(rules)} ({len(rules)} causes)\n"
        f"engine  vLLM {OLDEST_READ} to {NEWEST_READ}\n"
        f"python  {platform.python_version()}\n"
    )
    return EXIT_OK


@app.command()
def completion(
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="Your shell.", show_default=False)],
) -> int:
    """Print a script that completes commands and options in a shell.

    It is made from the commands of this version and edits nothing of yours: load it where your shell starts.

    \b
    Example:
      oomdoc completion bash > ~/.local/share/bash-completion/completions/oomdoc
      oomdoc completion zsh > ~/.zfunc/_oomdoc
      oomdoc completion fish > ~/.config/fish/completions/oomdoc.fish
    """
    from oomdoc.completion import SHELLS, script

    if shell not in SHELLS:
        raise UsageError(f"no completion for '{shell}'", f"Choose {', '.join(SHELLS[:-1])} or {SHELLS[-1]}")
    told: dict[str, dict[str, str]] = {}
    for path, command in _walk(typer.main.get_command(app)):
        inner = getattr(command, "commands", {})
        follows = {name: str(entry.help or "").strip().splitlines()[0] for name, entry in inner.items()}
        for param in command.params:
            if param.param_type_name == "option":
                follows.update(dict.fromkeys(param.opts, param.help or ""))
        told[path] = {**follows, "--help": "Show this message and exit."}
    _out(script(shell, told), utf8=True)
    return EXIT_OK


@app.command()
def schema() -> int:
    """Print the JSON Schema of the report (draft 2020-12).

    It describes what `analyze --format json` writes, every field with its unit.

    \b
    Example:
      oomdoc schema > report.schema.json
    """
    from oomdoc.schema import text

    _out(text(), utf8=True)
    return EXIT_OK


# --- what the commands share ------------------------------------------------------------------------------------------


@contextmanager
def _analysis(
    paths: Sequence[str],
    quiet: bool,
    types: Sequence[str] | None,
    since: str | None,
    until: str | None,
    tz: str | None,
    *,
    timeout: float | None = None,
    memory_limit: str | None = None,
    redact: bool = False,
    redaction_map: Path | None = None,
    **options: Any,
) -> Iterator[Analysis]:
    """Analyse with a progress line, within the limits of a run; the store is closed at the end."""
    for given in types or ():
        glob, _, kind = given.rpartition("=")
        if not glob or not kind:
            raise UsageError(f"--type '{given}' lacks a part", "Write GLOB=KIND, such as '*.txt=vllm-log'")
    begin, end = _moment("--since", since, tz), _moment("--until", until, tz)
    if begin is not None and end is not None and begin > end:
        raise UsageError(f"--since {since} is after --until {until}", "Swap them")
    inputs = _inputs(paths)
    from oomdoc import diagnose

    progress = _Progress(quiet)
    chosen = diagnose.Options(
        types=tuple(types or ()), since=begin, until=end, tz=tz, progress=progress if progress.on else None, **options
    )
    with ExitStack() as held:
        held.enter_context(limited(*_allowed(timeout, memory_limit)))
        try:
            if redact:
                inputs = [held.enter_context(_redacted(inputs, redaction_map, chosen))]
            analysis = diagnose.analyze(inputs, chosen)
        finally:
            progress.clear()
        yield held.enter_context(analysis)


@contextmanager
def _redacted(inputs: Sequence[str], redaction_map: Path | None, chosen: Any) -> Iterator[str]:
    """A redacted copy of the inputs in a folder that goes with the run, under a redacted name."""
    from oomdoc.limits import scratch_folder
    from oomdoc.redact.run import Redaction, redact

    with scratch_folder() as folder:
        copy = folder / "copy"
        options = Redaction(map=redaction_map, limits=chosen.limits, progress=chosen.progress)
        manifest = redact(inputs, copy, options)
        yield str(copy.rename(copy.with_name(manifest.name)))


def _allowed(timeout: float | None, memory_limit: str | None) -> tuple[float | None, int | None]:
    """Seconds and bytes that a run may take; 0 of either is no limit."""
    from oomdoc.units import parse_size

    size: int | None = MEMORY_BYTES
    if memory_limit is not None:
        size = 0 if memory_limit.strip() == "0" else parse_size(memory_limit)
        if size is None or size < 0:
            raise UsageError(f"--memory-limit '{memory_limit}' is no size", "Write it like 2GiB or 500MB")
    return (TIMEOUT_S if timeout is None else timeout or None), size or None


def _inputs(paths: Sequence[str]) -> list[str]:
    if "-" in paths and sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(
            "- reads standard input, and that is a terminal",
            "Pipe a bundle into it: `oomdoc analyze - < bundle.tar.gz`",
        )
    return list(paths)


def _limits(size: str | None, members: int | None) -> Any:
    """The limits of the intake with what a person set."""
    from dataclasses import replace

    from oomdoc.bundle import DEFAULT_LIMITS
    from oomdoc.units import parse_size

    limits = DEFAULT_LIMITS
    if size is not None:
        total = parse_size(size)
        if not total or total < 0:
            raise UsageError(f"--max-size '{size}' is no size", "Write it like 8GiB or 500MB")
        limits = replace(limits, max_total_bytes=total, max_member_bytes=min(total, limits.max_member_bytes))
    return limits if members is None else replace(limits, max_members=members)


def _account(analysis: Analysis) -> str:
    """The account of every source: what was read of it into which table, and what could not be read."""
    from oomdoc.report.coverage import Problem, render
    from oomdoc.tables import TABLES

    names = [name for name in TABLES if name != "source"]
    query = " UNION ALL ".join(
        f"SELECT source, '{name}' AS name, count(*) AS n FROM {name} GROUP BY ALL" for name in names
    )
    filled: dict[str, list[tuple[str, int]]] = {}
    for source, name, rows in analysis.sql(f"{query} ORDER BY 1, 3 DESC, 2")[1]:
        filled.setdefault(source, []).append((name, rows))
    problems: dict[str, list[Problem]] = {}
    asked = "SELECT source, reason, count(*), min(line) FROM problem GROUP BY ALL ORDER BY 1, 3 DESC, 4"
    for source, reason, places, line in analysis.sql(asked)[1]:
        problems.setdefault(source, []).append(Problem(reason, places, line))
    return render(analysis.report, filled, problems)


def _moment(option: str, text: str | None, tz: str | None) -> float | None:
    """Epoch seconds of an option; a time without a zone is in `--tz`, else UTC."""
    import datetime as dt

    zone: dt.tzinfo = dt.UTC
    if tz is not None:
        zone = _zone(tz)
    if text is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text.strip())
    except ValueError:
        raise UsageError(
            f"{option} '{text}' is no ISO 8601 time", "Write it like 2026-11-20T20:04:51Z or 2026-11-20"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()


def _zone(name: str) -> Any:
    from oomdoc.units import zone

    found = zone(name)
    if found is None:
        raise UsageError(
            f"--tz '{name}' is no time zone", "Write an offset such as +02:00, or a name such as Europe/Berlin"
        )
    return found


def _form(name: str) -> str:
    from oomdoc.report import REPORTS

    if name in REPORTS:
        return name
    near = difflib.get_close_matches(name, list(REPORTS), 1)
    raise UsageError(
        f"--format {name} is unknown", f"Did you mean {near[0]}?" if near else f"Choose {', '.join(REPORTS)}"
    )


def _target(name: str, form: str) -> tuple[str, str]:
    """Form and place of one `-o`: the suffix chooses the form, `-` takes that of `--format`."""
    from oomdoc.report import SUFFIXES

    if name == "-":
        return _form(form), "-"
    path = Path(name)
    if path.suffix.lower() not in SUFFIXES:
        raise UsageError(f"-o {name} does not say which form to write", "End the name with .txt, .json, .md or .html")
    if not path.parent.is_dir():
        raise UsageError(f"cannot write {name}, there is no folder {path.parent}", "Make it first")
    return _form(SUFFIXES[path.suffix.lower()]), name


def _spare_inputs(paths: Sequence[str], targets: Sequence[str]) -> None:
    """Refuse to write over what is read."""
    for target in targets:
        for path in paths:
            if target != "-" and Path(path).exists() and Path(target).exists() and Path(path).samefile(target):
                raise UsageError(f"{target} is the input", "Choose another file to write")


def _file(path: Path | None) -> Path | None:
    if path is not None and not path.is_file():
        raise UsageError(f"no file {path}", "Give the config.json that lies beside the model's weights")
    return path


def _config(path: Path | None) -> dict[str, Any] | None:
    """The JSON object of a model's config.json."""
    if _file(path) is None or path is None:
        return None
    import json

    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageError(
            f"--model-config {path} cannot be read as JSON ({problem})", "Give the model's config.json"
        ) from None
    if not isinstance(config, dict):
        raise UsageError(f"--model-config {path} is no JSON object", "Give the model's config.json")
    return config


def _write(name: str, text: str) -> None:
    try:
        Path(name).write_bytes(text.encode("utf-8"))
    except OSError as problem:
        raise UsageError(f"cannot write {name}: {problem.strerror or problem}", "Choose another file") from None


def _reached(report: Report, probability: float) -> bool:
    every = [report.diagnoses, *(incident.diagnoses for incident in report.incidents)]
    return any(
        item.cause != "healthy" and round(item.probability, 6) >= probability
        for diagnoses in every
        for item in diagnoses
    )


def _rules(folder: Path | None, told: bool = False) -> tuple[list[Rule], list[str]]:
    """The rules and the faults of broken files; the faults go to standard error unless the caller tells them."""
    from oomdoc.rules import load_rules

    rules, faults = load_rules(folder)
    for fault in () if told else faults:
        _say(f"warning: {fault}")
    return rules, faults


def _nearest(name: str, known: Iterable[str], otherwise: str) -> str:
    near = difflib.get_close_matches(name, list(known), 3, 0.5)
    return (
        f"Did you mean {' or '.join(f'`{item}`' for item in near)}?" if near else otherwise[:1].upper() + otherwise[1:]
    )


def _width() -> int:
    return shutil.get_terminal_size((PIPE_WIDTH, 24)).columns


def _colored(choice: str) -> bool:
    """`--color` before NO_COLOR before FORCE_COLOR before whether a terminal reads."""
    if choice not in ("auto", "always", "never"):
        raise UsageError(f"--color {choice} is unknown", "Choose auto, always or never")
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _out(text: str, utf8: bool = False) -> None:
    """Write to standard output in its encoding, or as UTF-8 what machines read; a reader that left is no error."""
    try:
        raw = getattr(sys.stdout, "buffer", None)
        if raw is None:
            sys.stdout.write(text)
        else:
            encoding = "utf-8" if utf8 else sys.stdout.encoding or "utf-8"
            sys.stdout.flush()
            raw.write(text.encode(encoding, "replace"))
        sys.stdout.flush()
    except BrokenPipeError:  # whatever is written from here on, and at exit, goes nowhere
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _note(sentence: str, quiet: bool) -> None:
    if not quiet:
        _say(sentence)


def _say(sentence: str) -> None:
    from oomdoc.report.words import neutral

    encoding = sys.stderr.encoding or "utf-8"
    sys.stderr.write(f"oomdoc: {neutral(sentence)}\n".encode(encoding, "replace").decode(encoding))
    sys.stderr.flush()


class _Progress:
    """One line on standard error that is overwritten: only for a terminal, only when it takes long."""

    def __init__(self, quiet: bool) -> None:
        self.on = not quiet and sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._next = time.monotonic() + PROGRESS_AFTER_S
        self._drawn = False

    def __call__(self, path: str, read_bytes: int) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + PROGRESS_EVERY_S
        from oomdoc.report.words import neutral
        from oomdoc.units import show_bytes

        size = show_bytes(read_bytes)
        room = max(shutil.get_terminal_size().columns - len(size) - 12, 10)
        name = neutral(path)
        sys.stderr.write(f"\rreading {name if len(name) <= room else '…' + name[1 - room :]}  {size}\x1b[K")
        sys.stderr.flush()
        self._drawn = True

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False


def _sweep_bar(given: str | None) -> str | float | None:
    """`--fail-on` of a sweep: `new`, a probability, or None."""
    if given is None or given == "new":
        return given
    try:
        bar = float(given)
    except ValueError:
        bar = -1.0
    if not 0 <= bar <= 1:
        raise UsageError(f"--fail-on {given} is neither `new` nor a probability", "Write new, or a number such as 0.8")
    return bar


def _is_store(bundle: str) -> bool:
    """Whether a path is the store of a sweep: told by its manifest, without importing anything."""
    if "://" in bundle:
        return True
    try:
        return '"oomdoc_dataset"' in (Path(bundle) / "manifest.json").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False


def _ask_store(
    store: str, query: str, limit: int | None, endpoint_url: str | None, anonymous: bool
) -> tuple[list[str], list[tuple[Any, ...]]]:
    from oomdoc.sweep.places import Access, is_uri, need_pyarrow

    need_pyarrow()
    from oomdoc.sweep.dataset import existing
    from oomdoc.sweep.trends import questions

    if "://" in store and not is_uri(store):
        raise UsageError(
            f"{store} is in no object store that is known here", "Write s3://BUCKET/PREFIX or gs://BUCKET/PREFIX"
        )
    with questions(existing(store, Access(endpoint_url, anonymous))) as ask:
        return ask.query(query, limit, "docs/sweep.md lists tables and columns")


class _SweepProgress:
    """Bundles done, errors, rate and time left: a line that is overwritten on a terminal, one every half minute in a log."""

    def __init__(self, quiet: bool) -> None:
        self._on = not quiet and sys.stderr is not None
        self._tty = self._on and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._begun = time.monotonic()
        self._next = self._begun + (PROGRESS_AFTER_S if self._tty else SWEEP_LOG_EVERY_S)
        self._drawn = False

    def __call__(self, done: int, of: int, errors: int) -> None:
        now = time.monotonic()
        if not self._on or now < self._next:
            return
        from oomdoc.units import show_seconds

        rate = done / (now - self._begun)
        told = f"{done:,} of {of:,} bundles, {rate:.1f}/s, {show_seconds((of - done) / rate)} left"
        told += f", {errors:,} could not be read" if errors else ""
        if self._tty:
            self._next = now + PROGRESS_EVERY_S
            sys.stderr.write(f"\r{told[: shutil.get_terminal_size().columns - 1]}\x1b[K")
            sys.stderr.flush()
            self._drawn = True
        else:
            self._next = now + SWEEP_LOG_EVERY_S
            _say(told)

    def clear(self) -> None:
        """Take the line away."""
        if self._drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._drawn = False
