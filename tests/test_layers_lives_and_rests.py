"""Layers on the host, engines in one process, starts that end without a word, and gains that are a start and an end: from text to verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

import oomdoc
from verdicts import SIGNS, UP, analysed, first, likely, minute

OLLAMA = (
    'time=2027-03-02T08:10:03.118Z level=INFO source=memory.go:36 msg="new model will not fit in available VRAM, offloading partially" gpu=GPU-7 available="15.1 GiB" required="{needs} GiB"\n'
    "load_tensors: offloading {on} repeating layers to GPU\nload_tensors: offloaded {on}/{layers} layers to GPU\n"
    "load_tensors:        CUDA0 model buffer size = {held:.2f} MiB\nload_tensors:   CPU_Mapped model buffer size = 2101.50 MiB\n"
    'time=2027-03-02T08:11:40.900Z level=INFO source=server.go:1289 msg="llama runner started in 97.71 seconds"\n'
)


@pytest.mark.parametrize(
    ("needs", "on", "layers", "held", "cause"),
    [
        pytest.param(39.2, 20, 65, 10_400, "weights-exceed-gpu", id="33 GiB of weights for 15 that are free"),
        pytest.param(
            39.2, 20, 65, 3_100, None, id="10 GiB of weights: something else is too large, and nobody tells what"
        ),
        pytest.param(16.0, 65, 65, 10_400, None, id="all layers are on the devices together"),
    ],
)
def test_weights_by_the_layers_that_fit(needs: float, on: int, layers: int, held: float, cause: str | None, tmp_path: Path) -> None:  # fmt: skip
    log = OLLAMA.format(needs=needs, on=on, layers=layers, held=held)
    (tmp_path / "server.log").write_text(log)
    with analysed(tmp_path, SIGNS) as analysis:
        assert analysis.answers["weights-exceed-gpu"]["weights-put-layers-on-the-host"] is (True if cause else None)
    assert (likely(tmp_path) == "weights-exceed-gpu") is (cause is not None)


PLAN = (
    'time=2027-03-02T08:10:03.260Z level=INFO source=memory.go:326 msg="offload to cuda" layers.requested=-1 layers.model=33 layers.offload=6 layers.split="" '
    'memory.available="[11.2 GiB]" memory.required.full="{full} GiB" memory.required.partial="10.9 GiB" memory.required.kv="{kv} GiB" memory.weights.total="{weights} GiB" memory.graph.full="2.0 GiB"\n'
    'time=2027-03-02T08:10:03.902Z level=INFO source=server.go:388 msg="starting llama server" cmd="/usr/bin/ollama runner --model /m/sha256-11 --ctx-size 98304 --batch-size 512 --parallel {slots} --port 41177"\n'
    'time=2027-03-02T08:10:20.480Z level=INFO source=server.go:626 msg="llama runner started in 16.58 seconds"\n'
)


@pytest.mark.parametrize(
    ("full", "kv", "weights", "slots", "cause"),
    [
        pytest.param(19.1, 12.0, 5.1, 1, "kv-pool-below-max-model-len", id="one request of that length"),
        pytest.param(19.1, 12.0, 5.1, 12, "max-num-seqs-too-high", id="a dozen of them"),
    ],
)
def test_what_puts_layers_on_the_host(full: float, kv: float, weights: float, slots: int, cause: str, tmp_path: Path) -> None:  # fmt: skip
    assert likely(tmp_path, server__log=PLAN.format(full=full, kv=kv, weights=weights, slots=slots)) == cause


LLAMA = """\
main: loading model
srv    load_model: loading model '/m/teacher-Q5.gguf'
llama_params_fit_impl: projected to use {needs} MiB of device memory vs. {free} MiB of free device memory
llama_model_load_from_file_impl: using device ROCm0 (Radeon Z) (0000:c5:00.0) - {free} MiB free
print_info: file size   = {weights:.2f} GiB (5.50 BPW)
load_tensors: loading model tensors, this can take a while... (mmap = false)
ggml_backend_cuda_buffer_type_alloc_buffer: allocating {asked:.2f} MiB on device 0: cudaMalloc failed: out of memory
alloc_tensor_range: failed to allocate ROCm0 buffer of size {size}
llama_model_load: error loading model: unable to allocate ROCm0 buffer
main: exiting due to model loading error
"""


def test_a_file_that_is_larger_than_what_is_free(tmp_path: Path) -> None:
    log = LLAMA.format(
        needs=45_100, free=31_900, weights=40.2, asked=40.2 * 1024 - 300, size=int((40.2 * 1024 - 300) * 1048576)
    )
    cause, sure = first(tmp_path, {"llama.out": log})
    assert cause == "weights-exceed-gpu" and sure > 0.6


REFUSED = (
    'Mar 02 08:44:10 forge ollama[118]: time=2027-03-02T08:44:10.402Z level=INFO source=sched.go:788 msg="new model will fit in available VRAM in single GPU, loading" model=/m/sha256-8e gpu=GPU-5 parallel=2 available={free} required="{needs} GiB"\n'
    "Mar 02 08:44:11 forge ollama[118]: load_tensors: loading model tensors, this can take a while... (mmap = true)\n"
    "Mar 02 08:44:11 forge ollama[118]: llama_model_load: error loading model: unable to allocate ROCm0 buffer\n"
)


@pytest.mark.parametrize(("free", "needs", "told"), [(16_900_000_000, 3.4, True), (16_900_000_000, 14.9, False)])
def test_a_refusal_of_what_was_counted_with_room(free: int, needs: float, told: bool, tmp_path: Path) -> None:
    assert (first(tmp_path, {"journal.txt": REFUSED.format(free=free, needs=needs)})[0] == "not-memory") is told


TWO = """\
INFO 03-02 08:00:01 llm_engine.py:234] Initializing an LLM engine (v0.6.6) with config: model='/m/judge-awq', tensor_parallel_size=1, enforce_eager=False
INFO 03-02 08:00:40 model_runner.py:1099] Loading model weights took 28.1000 GB
INFO 03-02 08:00:50 distributed_gpu_executor.py:57] # GPU blocks: 1900, # CPU blocks: 1638
INFO 03-02 08:01:10 model_runner.py:1535] Graph capturing finished in 17 secs, took 0.40 GiB
INFO 03-02 08:01:10 llm_engine.py:431] init engine (profile, create kv cache, warmup model) took 29.30 seconds
{between}INFO 03-02 08:01:12 llm_engine.py:234] Initializing an LLM engine (v0.6.6) with config: model='/m/coder', tensor_parallel_size=1, enforce_eager=False
INFO 03-02 08:01:14 model_runner.py:1094] Starting to load model /m/coder...
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 320.00 MiB. GPU 0 has a total capacity of 47.54 GiB of which 101.10 MiB is free. Including non-PyTorch memory, this process has 47.40 GiB memory in use. Of the allocated memory 46.70 GiB is allocated by PyTorch, with 58.00 MiB allocated in private pools (e.g., CUDA Graphs), and 90.00 MiB is reserved by PyTorch but unallocated.
"""


@pytest.mark.parametrize(
    ("between", "told"),
    [("", True), ("INFO:     Shutting down\n", None)],
)
def test_a_second_engine_where_the_first_one_is(between: str, told: bool | None, tmp_path: Path) -> None:
    (tmp_path / "terminal.txt").write_text(TWO.format(between=between))
    with analysed(tmp_path, SIGNS) as analysis:
        assert analysis.answers["gpu-shared"]["earlier-engine-still-there"] is told
        assert analysis.answers["weights-exceed-gpu"]["out-of-memory-while-loading"] is (None if told else False)
        assert not told or analysis.report.diagnoses[0].cause == "gpu-shared"


NAMED = (
    "2027-03-02 09:40:02,377 - api - ERROR - server error: Traceback (most recent call last):\n"
    '  File "/srv/sing/api.py", line 101, in sing\n    wav = await sing.render(text)\n'
    '  File "/srv/sing/render.py", line 319, in render\n    wav = self.vocoder(latent)\n'
    '  File "/srv/sing/vocoder/models.py", line 248, in forward\n    xs += self.blocks[i](x)\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of 23.53 GiB of which 22.06 MiB is free. Process 2817 has {others} GiB memory in use. "
    "Including non-PyTorch memory, this process has {own} GiB memory in use. Of the allocated memory 20.10 GiB is allocated by PyTorch, with 26.00 MiB allocated in private pools (e.g., CUDA Graphs), and 700.00 MiB is reserved by PyTorch but unallocated.\n"
    "\nThe start:\n\nINFO 03-02 09:38:51 [core.py:71] Initializing a V1 LLM engine (v0.9.2) with config: model='m/lm', max_seq_len=2048, tensor_parallel_size=1\n"
    "INFO 03-02 09:38:55 [gpu_model_runner.py:1801] Model loading took 1.5000 GiB and 0.88 seconds\nINFO 03-02 09:39:13 [gpu_worker.py:232] Available KV cache memory: 16.50 GiB\n"
    "INFO 03-02 09:39:13 [kv_cache_utils.py:716] GPU KV cache size: 144,160 tokens\nINFO:     Application startup complete.\n"
)


@pytest.mark.parametrize(
    ("others", "own", "cause"), [(1.3, 22.1, "memory-utilization-edge"), (4.9, 18.5, "gpu-shared")]
)
def test_another_model_of_the_process_against_another_process(others: float, own: float, cause: str, tmp_path: Path) -> None:  # fmt: skip
    assert first(tmp_path, {"ask.md": NAMED.format(others=others, own=own)})[0] == cause


CHIP = """\
INFO 03-02 14:41:07 [llm_engine.py:241] Initializing a V0 LLM engine (vdev) with config: model='m/teacher-8b', dtype=torch.bfloat16, max_seq_len=65536, tensor_parallel_size=1, device_config=tt
INFO 03-02 14:52:18 [tt_worker.py:231] # TT blocks: {blocks} (block size 64), max tokens all users: 65536
Always | FATAL | Out of Memory: Not enough space to allocate 35684352 B DRAM buffer across 12 banks, where each bank needs to store 2973696 B
Traceback (most recent call last):
  File "vllm/worker/tt_worker.py", line 340, in _init_cache_engine
    self.kv_cache = self.model_runner.model.allocate_kv_cache(shape)
  File "models/tt/generator.py", line 41, in allocate_tt_kv_cache
RuntimeError: Out of Memory: Not enough space to allocate 35684352 B DRAM buffer across 12 banks
"""


@pytest.mark.parametrize(("blocks", "told"), [(1025, True), (731, None)])
def test_a_pool_of_a_size_that_nobody_measured(blocks: int, told: bool | None, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(CHIP.format(blocks=blocks))
    with analysed(tmp_path, SIGNS) as analysis:
        assert analysis.answers["memory-utilization-edge"]["pool-of-a-size-that-was-set"] is told
        assert analysis.answers["memory-utilization-edge"]["failed-outside-the-plan"] is True


def unit_start(day: int, at: str, pid: int, share: str, rest: str) -> str:
    """A start of a unit, up to its weights, as a journal has it."""
    head = f"Mar {day:02} {at}:{{:02}} n4 vllm[{pid}]: "
    stamp = f"03-{day:02} {at}:{{:02}}"
    text = (
        f"{head.format(1)}INFO {stamp.format(1)} api_server.py:339] vLLM API server version 0.5.4\n"
        f"{head.format(1)}INFO {stamp.format(1)} api_server.py:340] args: Namespace(host=None, port=8000, model='/m/teacher-8b', max_model_len=8192, gpu_memory_utilization={share}, max_num_seqs=256, tensor_parallel_size=1)\n"
        f"{head.format(3)}INFO {stamp.format(3)} llm_engine.py:174] Initializing an LLM engine (v0.5.4) with config: model='/m/teacher-8b', dtype=torch.float16, max_seq_len=8192, tensor_parallel_size=1)\n"
        f"{head.format(20)}INFO {stamp.format(20)} model_runner.py:732] Loading model weights took 14.9600 GB\n"
    )
    return text + rest.replace("HEAD ", head).replace("{:02}", "28")


SERVES = "HEAD INFO:     Application startup complete.\nHEAD INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)\n"
ENDS = "Mar 03 {at}:29 n4 systemd[1]: chat.service: Main process exited, code=exited, status={status}/{word}\nMar 03 {at}:29 n4 systemd[1]: chat.service: Failed with result 'exit-code'.\n"


@pytest.mark.parametrize(("status", "word", "died"), [(1, "FAILURE", True), (143, "n/a", False)])
def test_a_start_that_ends_with_a_status_alone(status: int, word: str, died: bool, tmp_path: Path) -> None:
    text = unit_start(2, "08:00", 700, "0.9", SERVES)
    text += "".join(
        unit_start(3, f"09:0{at}", 800 + at, "0.4", ENDS.format(at=f"09:0{at}", status=status, word=word))
        for at in range(3)
    )
    (tmp_path / "journal.txt").write_text(text)
    with analysed(tmp_path, SIGNS) as analysis:
        assert analysis.answers["memory-utilization-too-low"]["one-setting-decides"] is (True if died else None)
        assert (analysis.report.diagnoses[0].cause == "memory-utilization-too-low") is died


PMON = "#Time     gpu         pid   type     fb   ccpm    command\n#HH:MM:SS Idx           #    C/G     MB     MB    name\n"


@pytest.mark.parametrize(("name", "spread"), [("protein-fold", None), (None, True)])
def test_a_card_that_another_program_has_is_none_to_spread_over(name: str | None, spread: bool | None, tmp_path: Path) -> None:  # fmt: skip
    rows = "".join(
        f" 16:03:{at:02}   0      54417     C   {held}      0    python3\n"
        + (f" 16:03:{at:02}   1       3310     C   31000      0    {name}\n" if name else "")
        for at, held in ((1, 512), (3, 30_100), (5, 47_900))
    )
    log = (
        "INFO 03-02 16:03:00 llm_engine.py:234] Initializing an LLM engine (v0.6.6) with config: model='/m/teacher-14b', dtype=torch.float32, tensor_parallel_size=1\n"
        "INFO 03-02 16:03:01 model_runner.py:1094] Starting to load model /m/teacher-14b...\nTraceback (most recent call last):\n"
        '  File "/v/vllm/worker/model_runner.py", line 1096, in load_model\n    self.model = get_model(vllm_config=self.vllm_config)\n'
    )
    (tmp_path / "vllm.log").write_text(log)
    (tmp_path / "pmon.txt").write_text(PMON + rows)
    (tmp_path / "cards.csv").write_text(
        "index, name, memory.total [MiB]\n0, NVIDIA L40S, 46068 MiB\n1, NVIDIA L40S, 46068 MiB\n"
    )
    with analysed(tmp_path, SIGNS) as analysis:
        assert analysis.answers["weights-exceed-gpu"]["fits-when-spread"] is spread


def sets(course: list[tuple[int, float]]) -> str:
    """The working set of a pod by the second, in GiB, within a limit of 24."""
    head = "time,container_memory_working_set_gib{pod=chat},container_spec_memory_limit_gib\n"
    return head + "".join(f"2027-03-02T{8 + at // 3600:02}:{at // 60 % 60:02}:{at % 60:02}Z,{held:.2f},24.00\n" for at, held in course)  # fmt: skip


START = [(15 * at, 0.8 * at) for at in range(9)]
REST = [(120 + 15 * at, 6.4 + 0.01 * (at % 2)) for at in range(1, 190)]


@pytest.mark.parametrize(
    ("course", "gains"),
    [
        pytest.param([*START, *REST, *((2975 + 2 * at, 6.5 + 1.75 * at) for at in range(1, 11))], False, id="at the end it rises at once"),
        pytest.param([*START, *((120 + 15 * at, 6.4 + 0.0925 * at) for at in range(1, 190))], True, id="it rises all the time"),
    ],
)  # fmt: skip
def test_a_gain_of_a_start_and_an_end(course: list[tuple[int, float]], gains: bool, tmp_path: Path) -> None:
    (tmp_path / "memory.csv").write_text(sets(course))
    (tmp_path / "vllm.log").write_text(UP + "".join(minute(at, 3, 0, 12.5) for at in range(3, 30)))
    with analysed(tmp_path, SIGNS) as analysis:
        assert (analysis.answers["memory-leak"]["gains-and-keeps"] is True) is gains


FAILED = (
    "INFO 03-01 08:00:01 llm_engine.py:72] Initializing an LLM engine with config: model='m/teacher-34b-awq', dtype=torch.float16, max_seq_len=16384, tensor_parallel_size=1, quantization=awq)\n"
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 10.75 GiB (GPU 0; 23.69 GiB total capacity; 17.58 GiB already allocated; 5.31 GiB free; 17.67 GiB reserved in total by PyTorch)\n"
)
TRIED = (
    "INFO 03-02 08:00:01 llm_engine.py:72] Initializing an LLM engine with config: model='m/teacher-34b-awq', dtype=torch.float16, max_seq_len={length}, tensor_parallel_size=1, quantization=awq)\n"
    "INFO 03-02 08:00:28 llm_engine.py:205] # GPU blocks: 271, # CPU blocks: 1365\nINFO:     Application startup complete.\n"
)


@pytest.mark.parametrize(
    ("length", "work", "asked"),
    [
        pytest.param(4000, "", True, id="a try with another length"),
        pytest.param(16384, "", False, id="the same settings came up the next day"),
        pytest.param(4000, "".join(minute(at, 3, 0, 12.5) for at in range(3, 30)), False, id="it went to work"),
    ],
)
def test_a_try_with_another_setting_is_no_end_of_the_matter(length: int, work: str, asked: bool, tmp_path: Path) -> None:  # fmt: skip
    (tmp_path / "first.log").write_text(FAILED)
    (tmp_path / "second.log").write_text(TRIED.format(length=length) + work)
    with oomdoc.analyze(tmp_path, SIGNS) as analysis:
        assert (len(analysis.report.incidents) > 0) is asked


@pytest.mark.parametrize(("share", "told"), [(0.34, True), (0.6, None)])
def test_a_budget_that_ends_behind_the_weights(share: float, told: bool | None, tmp_path: Path) -> None:
    text = unit_start(3, "09:01", 801, f"{share}", ENDS.format(at="09:01", status=1, word="FAILURE")).replace(
        "/m/teacher-8b", "meta-llama/Llama-3.1-8B-Instruct"
    )
    (tmp_path / "journal.txt").write_text(text)
    (tmp_path / "cards.csv").write_text(
        "index, name, memory.used [MiB], memory.total [MiB]\n0, NVIDIA A40, 4 MiB, 46068 MiB\n"
    )
    with analysed(tmp_path, SIGNS) as analysis:
        assert analysis.answers["memory-utilization-too-low"]["weights-beyond-the-budget"] is told
        assert not told or analysis.report.diagnoses[0].cause == "memory-utilization-too-low"
