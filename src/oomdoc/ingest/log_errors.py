"""Exceptions and fatal lines in a log, sorted by what they say of the resource that failed.

The decisive line is rarely the last: wrappers and consequences ("See root cause above", EngineDeadError) are *echoes* and
never outrank a cause. Data only: `ERROR_KINDS` is searched in order, the first that matches names the kind.
"""

from __future__ import annotations

import re

from oomdoc.ingest.base import Finish, Pattern, Row, Sample, pattern
from oomdoc.ingest.host_events.shared_memory import NOT_ROOM
from oomdoc.ingest.openings import KERNEL_LINE
from oomdoc.ingest.vocabulary.quantity import read
from oomdoc.regexes import regex

ERROR_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, regex(shape.replace("\n", "").replace("NOT_ROOM", NOT_ROOM), re.I))
    for kind, shape in read("errors")["kinds"]
)
"""Kinds of errors by their words, the first that fits (`vocabulary/errors.toml`)."""


def error_kind(exception: str | None, text: str) -> str:
    """The kind of an exception by its class and words; `other` where nothing is known of it.

    >>> error_kind("RuntimeError", "Engine core initialization failed. See root cause above."), error_kind("ValueError", "bad x")
    ('echo', 'bad-argument')
    """
    whole = f"{exception}: {text}" if exception else text
    return next((kind for kind, pattern in ERROR_KINDS if pattern.search(whole)), "other")


_VALIDATION = regex(r"^\d+ validation errors? for \S+ (?:Value error, )?(?P<what>.{3,}?)(?: \[type=.*)?$", re.S)


def what_is_wrong(text: str) -> str:
    """A message without the head and the tail of pydantic's: which check failed, not that one did.

    >>> what_is_wrong("1 validation error for VllmConfig Value error, 28 heads by 8 [type=value_error, input_value=()]"), what_is_wrong("x")
    ('28 heads by 8', 'x')
    """
    validation = _VALIDATION.match(text)
    return validation["what"] if validation else text


def _finish(row: dict[str, object], match: re.Match[str]) -> dict[str, object] | None:
    exception = row.get("exception")
    text = what_is_wrong(str(row.get("text") or ""))[:400]
    name = str(exception).rpartition(".")[2] if exception else None
    if name and name.endswith("Warning"):
        return None
    kind = error_kind(str(exception) if exception else None, text)
    # drivers and file systems of the kernel print such a word before their messages: no program raised it
    return None if kind == "other" and KERNEL_LINE.match(match.string) else {**row, "text": text, "kind": kind}


_MARK = r"(?:\[[^\]\n]{1,120}\]:?|\S{0,80}[\d|:>/@=]\S{0,80}|(?i:ERROR|CRITICAL|FATAL|WARN(?:ING)?|stderr|stdout|[EWF-])|[\w.]{1,60}[ \t]+-)[ \t]+"
_HEAD = rf"[ \t]{{0,16}}(?:{_MARK}){{0,8}}(?:(?:ERROR|CRITICAL|FATAL|WARNING):[\w.]{{1,60}}:|\[\d+,\d+\]<std\w{{3}}>:)?(?:\w{{1,24}}=[\"'])?"
"""What loggers put before a message: stamps, levels, ids, places in brackets, names between dashes. No word of a sentence is among them."""
_HANDED_ON = rf"[ \t]{{0,16}}(?:{_MARK}){{1,8}}[^\n:'\"]{{1,80}}\b(?:failed|error|exception|cause|reason)(?: \w{{1,12}}){{0,2}}:? ['\"]?"
"""The same, and the words of somebody who hands the message on: what failed, and with which error."""


def _error(
    name: str, dialect: str, anchors: tuple[str, ...], shape: str, kind: str, *samples: Sample | str, versions: str = ""
) -> Pattern:
    """A pattern of a line whose group `text` is the message: of one kind, or of the one that its words are of ("")."""

    def convert(row: Row, match: re.Match[str]) -> Row:
        return {"text": row["text"][:400], "kind": kind}

    finish = Finish("log_error", {"kind": kind}, convert) if kind else Finish("log_error", {}, _finish)
    return pattern(name, dialect, anchors, (shape,), finish, *samples, versions=versions)


_SECONDS = {"ms": 0.001, "min": 60.0, "minutes": 60.0}


def _given_up(row: Row, match: re.Match[str]) -> Row:
    """A request that its caller, or whoever stands between, ended at an age: no answer."""
    return {"status": 0, "latency_s": float(match["latency_s"]) * _SECONDS.get(match[2].lower(), 1.0)}


PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        "exception", "python", ("Error: ", "Exception: ", "Interrupt: ", "Error(", "Exception(", "error: ", "Exit: ", "OutOfResources: ", "Timeout: ", "Timeout("),
        regex(
            rf"^(?:{_HANDED_ON}|{_HEAD})" r"(?:Exception: |Failed: |[Rr]equest \S{1,64} failed: |.{0,40}?Process group watchdog.{0,400}?)?(?!Xid)(?P<exception>(?:[A-Za-z_]\w{0,80}\.){0,12}(?:[A-Za-z_]\w{0,120}(?:Error|Exception)(?:Group)?|[A-Z_]\w{0,120}(?:Interrupt|Exit|Overflow|Timeout)|OutOfResources))"
            r"(?:: |\(['\"]?)(?P<text>.*)", re.S,
        ),
        "log_error", convert=_finish, samples=(
            ("ValueError: bad value of a thing", {"exception": "ValueError", "kind": "bad-argument", "text": "bad value of a thing"}),
            ("torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error", {"exception": "torch.distributed.DistBackendError", "kind": "nccl"}),
            ("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}", {"kind": "echo"}),
            ("KeyError: '/psm_0a1b2c3d'", {"kind": "echo"}),
            ("RuntimeError: Engine loop has died", {"kind": "echo"}),
            ("OSError: [Errno 28] No space left on device: '/psm_0a1b2c3d'", {"kind": "shm"}),
            ("FileNotFoundError: [Errno 2] No such file or directory: '/psm_5e6f7a8b'", {"kind": "missing-file"}),
            ("pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig Value error, 28 heads must be divisible by 8. [type=value_error, input_value=()]",
             {"exception": "pydantic_core._pydantic_core.ValidationError", "kind": "bad-argument", "text": "28 heads must be divisible by 8."}),
            ("2027-03-02 04:05:06 ERROR 51733 [runner.py:88] RuntimeError: CUDA error: an illegal memory access was encountered", {"exception": "RuntimeError", "kind": "kernel"}),
            ("2027-03-02 04:05:06,118 - serving.engine - ERROR - KeyError: 'a_model_type'", {"exception": "KeyError", "kind": "bad-argument"}),
            ("CRITICAL:root:KeyError: 'a_model_type'", {"exception": "KeyError", "kind": "bad-argument"}),
            ("[1,3]<stderr>:KeyError: 'a_model_type'", {"exception": "KeyError", "kind": "bad-argument"}),
            ('t=2027-03-02T04:05:06Z lvl=error msg="KeyError: a_model_type"', {"exception": "KeyError", "kind": "bad-argument"}),
            ("2027-03-02T04:05:06.118Z ERROR gateway::pool: worker 3 failed: KeyError: 'a_model_type'", {"exception": "KeyError", "kind": "bad-argument"}),
            ("    KeyError: 'a_model_type'", {"exception": "KeyError", "kind": "bad-argument"}),
            ("E0302 04:05:06.118 51733 server.cc:41] errors.OutOfResources: out of resource: shared memory, Required: 120000", {"exception": "errors.OutOfResources", "kind": "kernel"}),
            ("[2027-03-02 04:05:06] ERROR: Request 51fe failed: requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='img.example', port=443): Read timed out.", {"exception": "requests.exceptions.ReadTimeout", "kind": "network"}),
            ("httpx.ConnectTimeout: timed out while an image was fetched", {"exception": "httpx.ConnectTimeout", "kind": "network"}),
            ("09:20:00   ERROR 4 of 90 rollouts failed: httpx.RemoteProtocolError: Server disconnected without sending a response.", {"exception": "httpx.RemoteProtocolError", "kind": "echo"}),
            ('RuntimeError: torch_call_dispatcher( "aten::new_empty", "", stack.data(), TORCH_ABI_VERSION) API call failed at ops.h, line 9', {"exception": "RuntimeError", "kind": "memory"}),
            ("TimeoutError: timed out after 4 s waiting for the first token", {"exception": "TimeoutError", "kind": "client"}),  # a caller's patience
            ("TimeoutError: Timed out waiting for mmap file to reach 8589934592 bytes", {"exception": "TimeoutError", "kind": "hang"}),
            ("RuntimeError: Barrier timed out after 30 seconds", {"exception": "RuntimeError", "kind": "hang"}),
            ("RuntimeError: Fault detected in EP all2all communication: one or more ranks timed out during dispatch", {"exception": "RuntimeError", "kind": "hang"}),
            ("ValueError: Token id 151936 is out of vocabulary", {"exception": "ValueError", "kind": "client"}),
            ("ChatTemplateError: Chat template rendering timed out after 10s. This may", {"exception": "ChatTemplateError", "kind": "client"}),
            ("IndexError: visible device ordinal 4 is out of range for CUDA_VISIBLE_DEVICES=0,1", {"exception": "IndexError", "kind": "bad-argument"}),
            ("OutOfMemoryError('Error in model execution: CUDA out of memory. Tried to allocate 5.00 MiB.", {"exception": "OutOfMemoryError", "kind": "memory"}),
        ),
    ),
    Pattern(
        "given-up", "client", ("imeout after ", "imed out after ", "iving up after ", "xceeded after "),
        regex(
            r"(?i)(?:\b(?:read|write|pool) ?timeout|\b(?:request|call|run|post|client|upstream|completions?|stream(?:ing)?)\b[^\n]{0,120}?(?:timeout|timed out|giving up|deadline exceeded))"
            r" after (?P<latency_s>\d{1,5}(?:\.\d{1,6})?) ?(ms|s|secs?|seconds|min|minutes)\b"
        ),
        "request", convert=_given_up, samples=(
            ("07:15:40 job 12: httpx.ReadTimeout after 45.0 s total, closing connection", {"latency_s": 45.0, "status": 0}),
            ("WARN Request 9f31 to /v1/completions timed out after 30000 ms", {"latency_s": 30.0, "status": 0}),
        ),
    ),
    _error(
        "no-descriptor", "python", ("out of system resource",), r"(?P<text>socket\.accept\(\) out of system resource)", "limit",
        ("ERROR:asyncio:socket.accept() out of system resource", {"kind": "limit"}),  # EMFILE, ENFILE and their like (asyncio/selector_events.py)
    ),
    _error(
        "bare-assertion", "python", ("AssertionError", "NotImplementedError", "KeyboardInterrupt", "RecursionError"),
        r"^(?P<exception>AssertionError|NotImplementedError|KeyboardInterrupt|RecursionError)(?P<text>)$", "",
        ("AssertionError", {"exception": "AssertionError", "kind": "bad-argument"}),
    ),
    _error(
        "fatal-line", "vllm",
        ("failed to start", "encountered a fatal error", "hit an exception", "initialization failed", "already dead", "output_handler failed", "Exception in worker", "Error executing method", "Invocation of "),
        r"^(?P<text>(?:EngineCore|WorkerProc|Engine|AsyncLLM|MQLLMEngine|Exception in worker|Error executing method|Invocation of \w{1,60} method failed).{0,200})", "",
        ("EngineCore encountered a fatal error.", {"text": "EngineCore encountered a fatal error.", "kind": "echo"}),
        ("Invocation of wake_up method failed", {"text": "Invocation of wake_up method failed", "kind": "echo"}),
        versions="0.4.3 →",
    ),
    _error(
        "collective-timeout", "nccl", ("Watchdog caught collective",), r"(?P<text>Watchdog caught collective operation timeout.*)", "nccl",
        "[E101 10:00:00 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=5)",
    ),
    _error(
        "stalled-broadcast", "vllm", ("shared memory broadcast block found", "No available block found in", "Engine iteration timed out", "atchdog timeout (self.watchdog"),
        r"(?P<text>No available (?:shared memory broadcast )?block found in .*|Engine iteration timed out\..*|(?:Scheduler w|W)atchdog timeout \(self\.watchdog_timeout=\d.*)", "hang",
        "[2027-03-02 04:05:06 TP3] Watchdog timeout (self.watchdog_timeout=240)", "[2027-03-02 04:05:06 TP3] Scheduler watchdog timeout (self.watchdog_timeout=90, self.soft=False)",
        "No available shared memory broadcast block found in 60 seconds. This typically happens",
        "No available block found in 60 second. ",
        "Engine iteration timed out. This should never happen!",
        versions="0.4.3 →",
    ),
    _error(
        "fetch-failed", "network", ("HTTP status client error", "HTTP status server error", "ailed to fetch model", "ailed to download model", "ailed to download file"),
        r"(?P<text>(?:request error: )?HTTP status (?:client|server) error \(\d{3}.*|[Ff]ailed to (?:fetch|download) (?:model|file)\b.*)", "",
        ("2027-03-02T04:05:06.113240Z ERROR hub_client::download: request error: HTTP status client error (429 Too Many Requests) for url (https://hub.example/m)", {"kind": "network"}),
        ("Failed to register model: Failed to fetch model from hub", {"kind": "network", "text": "Failed to fetch model from hub"}),
    ),
    _error(
        "usage-error", "python", (": error: ",), r"^(?!(?:\[\S{8,40}\] )?(?:\S{1,40}: )?(?:srun|sbatch|salloc|slurmd|slurmstepd|mpirun):)\S+(?:\.py)?(?: \w+)?: error: (?P<text>.*)", "bad-argument",
        "api_server.py: error: unrecognized arguments: --max-num-on-the-fly-batches 4",
    ),
    _error(
        "cuda-error-line", "cuda", ("CUDA error (", "Cuda failure", "Error 803", "Error 804", "CUDA error: ", "Cuda error ", "custom_all_reduce.cuh"),
        r"^(?:ERROR )?(?:[\w:.]{1,60}: ){0,3}(?P<text>(?:CUDA error|Cuda failure|Cuda error \S+:\d+ '|\S{0,80}custom_all_reduce\.cuh:\d+ '|.{0,200}Error 80[34]:).*)", "",
        ("Failed: Cuda error /build/custom_all_reduce.cuh:453 'invalid argument'", {"kind": "kernel"}),
        ("CUDA error (/build/attention/launch.h:188): invalid argument", {"kind": "kernel"}),
        ("VLLM: Failed: /build/custom_all_reduce.cuh:453 'invalid argument'", {"kind": "kernel"}),
        ("Cuda failure 'CUDA driver version is insufficient for CUDA runtime version'", {"kind": "driver"}),
    ),
    # what the runtime says of a call that failed, whoever hands it on: a watchdog's thread, a library's own logger, a wrapped message
    _error(
        "device-fault", "cuda", ("CUDA error: ", "HIP error: "),
        rf"^(?:{_HANDED_ON}|{_HEAD})(?:what\(\): +|[A-Z][^\n:]{{0,200}}: ){{0,3}}?(?P<text>(?:CUDA|HIP) error: (?!out of memory)[^\n]{{3,300}})", "",
        ("[rank2]:[E402 09:11:44.7 ProcessGroupNCCL.cpp:2093] [PG ID 2 Rank 2] Process group watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered",
         {"kind": "kernel", "text": "CUDA error: an illegal memory access was encountered"}),
        ("(Worker_TP3 pid=77) HIP error: unspecified launch failure", {"kind": "kernel"}),
        ("  what():  CUDA error: misaligned address", {"kind": "kernel"}),
    ),
    _error(
        "driver-unreachable", "nvidia", ("initialize NVML", "nvidia-container-cli:"),
        r"(?P<text>(?:Failed|Unable) to initialize NVML: [^\n]{3,200}|nvidia-container-cli: [^\n]{3,300})", "driver",
        "Failed to initialize NVML: Driver/library version mismatch",
        "OCI runtime create failed: nvidia-container-cli: initialization error: nvml error: driver not loaded: unknown",
    ),
    Pattern(
        # a thread or a process that nobody may make any more, said by whoever wanted it
        "thread-refused", "host", ("pthread_create failed", "what():", "start new thread", "create new native thread", "create native thread", "RLIMIT_NPROC", "fork: retry", "Cannot fork"),
        regex(rf"^{_HEAD}(?P<text>[^\n]{{0,120}}?(?:pthread_create failed|what\(\):\s+Resource temporarily unavailable|can'?t start new thread|[Uu]nable to create (?:new )?native thread|RLIMIT_NPROC \d|fork: retry: Resource|Cannot fork)[^\n]{{0,200}})"), "log_error",
        convert=lambda row, match: {"text": row["text"].strip()[:400], "kind": "limit"}, samples=(
            ("E0302 04:05:06.118 51733 thd.cc:157]                           pthread_create failed: Resource temporarily unavailable", {"kind": "limit"}),
            ("OpenBLAS blas_thread_init: pthread_create failed for thread 7 of 32: Resource temporarily unavailable", {"kind": "limit"}),
            ("-bash: fork: retry: Resource temporarily unavailable", {"kind": "limit"}),
            ("  what():  Resource temporarily unavailable", {"kind": "limit"}),  # std::system_error of std::thread
        ),
    ),
    _error(
        "gpu-access-fault", "rocm", ("Memory access fault by GPU",), r"(?P<text>Memory access fault by GPU node-\d+.{0,200})", "",
        ("Memory access fault by GPU node-1 (Agent handle: 0x55) on address 0x7f00. Reason: Unknown.", {"kind": "kernel"}),
    ),
    # a queue that the runtime gives up: the code says what the hardware refused
    _error(
        "gpu-queue-aborted", "rocm", ("HSA_STATUS_ERROR_",), r"aborting with error ?: ?(?P<text>HSA_STATUS_ERROR_(?!OUT_OF)\w+.{0,200})", "",
        (":0:rocdevice.cpp :2984: 9 us:  Callback: Queue 0x7f10 aborting with error : HSA_STATUS_ERROR_EXCEPTION: a hardware exception. code: 0x1016", {"kind": "kernel"}),
    ),
    _error(
        "collective-timeout-hccl", "ascend", ("EI0002:",), r"(?P<text>EI0002: .{0,300})", "nccl",
        "EI0002: [PID: 7] The wait execution of the Notify register times out.",
    ),
    # the runtime of the device by its number: 507 and 107 are kernels and streams; memory has numbers of its own (207)
    _error(
        "npu-runtime-error", "ascend", ("error code is 507", "error code is 107", "runtime result", "ret code", "return code"),
        r"(?P<text>(?:error code is|runtime result(?: =|:)|ret(?:urn)? code(?: =|:| is)) ?(?:507|107)\d{3}\b.{0,200})", "kernel",
        "[W101 10:00:00.5 NPUStream.cpp:1] Warning: NPU warning, error code is 507011[Error]:",
        "       wait for compute device to finish failed, runtime result = 507034.[FUNC:ReportCallError]",
    ),
    _error(
        "npu-core-timeout", "ascend", ("execution timed out", "core timeout", "cpu timeout"),
        r"(?P<text>(?:[Vv]ector|AI|[Aa]i) ?[Cc](?:ore|PU|pu) (?:execution timed out|timeout).{0,200})", "kernel",
        "[Error]: Vector core execution timed out.",
        "EE9999: rtStreamSynchronize execution failed, reason=aicore timeout",
    ),
    _error(
        "child-failed", "sglang", ("from a child process",), r"(?P<text>Received sig\w+ from a child process.{0,200})", "echo",
        "Received sigquit from a child process. It usually means the child failed.",
    ),
    _error(
        "uvicorn-bind", "uvicorn", ("address already in use",), r"^(?P<text>.{0,400}?address already in use.{0,200})", "",
        ("ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use", {"kind": "network"}),
    ),
)  # fmt: skip
