"""The same scheduler, one step and one block at a time: the obvious form that tests hold `scheduler.simulate` against.

A step of the engine:

1. Every running request, in order of admission, gets the slot of its next token (a prompt that is not through yet: of its
   next chunk). A request that begins a block while none is free takes one from the request that came last, which loses
   everything, goes to the front of the line, and is computed again later.
2. If nobody was preempted, requests are admitted from the front of the line while there are sequences, tokens of the
   step and blocks for them; the first that does not fit stops the line.
3. The step runs. A request whose tokens are all computed generates one; with its last token it leaves and frees its blocks.

V0 without chunked prefill does 2 before 1, and 1 only in steps that admit nobody. Freed blocks go to the end of the list
of free blocks, the last of a request first, and keep their content until they are taken again from its beginning.

Callers, where their number is known, send the next request when one is done; otherwise requests come when they came.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from oomdoc.replay.asked import NEVER, Outcome, Sample, Setup, Traffic, blocks, full_from, lengths, prefix_blocks


@dataclass
class _Request:
    place: int
    priority: int
    prompt: int
    output: int
    shared: int  # blocks of its group's prefix
    group: int
    cached: int
    tokens: int = 0  # prompt and generated
    computed: int = 0
    lost: int = 0
    prefilled: bool = False  # its prompt, and what it had generated before it was preempted, is computed
    held: list[int] = field(default_factory=list)  # block numbers in order of its tokens


class _Pool:
    """Blocks by number: which are free, in order; who holds each; which content can be found again."""

    def __init__(self, count: int) -> None:
        self.free = deque(range(count))
        self.holders: Counter[int] = Counter()
        self.content: dict[tuple[str, int, int], int] = {}  # (whose, which one, nth block) -> block

    def take(self) -> int:
        block = self.free.popleft()
        assert self.holders[block] == 0, "a block is used twice"
        for key in [key for key, held in self.content.items() if held == block]:
            del self.content[key]
        self.holders[block] = 1
        return block

    def reuse(self, block: int) -> None:
        if self.holders[block] == 0:
            self.free.remove(block)
        self.holders[block] += 1

    def release(self, block: int) -> None:
        self.holders[block] -= 1
        if self.holders[block] == 0:
            self.free.append(block)

    def run_of(self, whose: str, which: int, begin: int, most: int) -> list[int]:
        """Blocks of that content that follow one another from the nth on."""
        found: list[int] = []
        while len(found) < most and (whose, which, begin + len(found)) in self.content:
            found.append(self.content[whose, which, begin + len(found)])
        return found


def simulate_plain(setup: Setup, traffic: Traffic, sample_ps: Sequence[int] = ()) -> Outcome:
    """What `scheduler.simulate` gives, slowly."""
    return _Engine(setup, traffic, sample_ps).outcome()


class _Engine:
    def __init__(self, setup: Setup, traffic: Traffic, sample_ps: Sequence[int]) -> None:
        self.setup, self.sample_ps = setup, sample_ps
        outputs, self.impossible = lengths(setup, traffic)
        shared = prefix_blocks(setup, traffic)
        self.arrival = list(traffic.arrival_ps)
        self.sent = min(len(self.arrival), setup.callers or len(self.arrival))
        self.arrival[self.sent :] = [NEVER] * (len(self.arrival) - self.sent)
        self.requests = [
            _Request(
                place, traffic.priority[place] if traffic.priority and setup.policy == "priority" else 0, prompt, outputs[place],
                shared[place], traffic.group[place] if traffic.group else -1,
                traffic.cached_tokens[place] if traffic.cached_tokens and setup.prefix_caching else 0, tokens=prompt,
            )
            for place, prompt in enumerate(traffic.input_tokens)
        ]  # fmt: skip
        self.pool = _Pool(setup.usable_blocks)
        self.waiting: list[_Request] = []
        self.running: list[_Request] = []
        self.now = self.arrival[0] if self.arrival else 0
        self.next = 0
        self.steps = self.peak = self.preemptions = self.recomputed = self.computed = self.held = 0
        self.full_ps: int | None = None
        self.waiting_ps: int | None = None
        self.preemption_ps: int | None = None
        self.first: list[int | None] = [None] * len(self.arrival)
        self.finished: list[int | None] = [None] * len(self.arrival)
        self.samples: list[Sample] = []
        self.last = (0, 0, 0)  # used blocks, running, waiting after the latest step

    def outcome(self) -> Outcome:
        begin = self.now
        while True:
            self._arrive()
            if not self.running and not self.waiting:
                if self.next >= len(self.arrival):
                    break
                self._sample(self.arrival[self.next])
                self.now = self.arrival[self.next]
                continue
            self._step()
        if self.sample_ps:
            self._sample(self.sample_ps[-1] + 1)
        end = max((moment for moment in self.finished if moment is not None), default=begin)
        return Outcome(
            end, self.steps, self.peak, self.preemptions, self.recomputed, self.computed, self.held, self.full_ps,
            self.waiting_ps, self.preemption_ps, self.impossible, self.first, self.finished, tuple(self.samples), self.arrival,
        )  # fmt: skip

    def _arrive(self) -> None:
        while self.next < len(self.arrival) and self.arrival[self.next] <= self.now:
            if self.next in self.impossible:
                self._send()
            else:
                self.waiting.append(self.requests[self.next])
            self.next += 1
        self._order()

    def _send(self) -> None:
        if self.sent < len(self.arrival):
            self.arrival[self.sent] = max(self.now, self.arrival[self.sent - 1])
            self.sent += 1

    def _order(self) -> None:
        if self.setup.policy == "priority":
            self.waiting.sort(key=lambda request: (request.priority, request.place))

    def _sample(self, until: int) -> None:
        while len(self.samples) < len(self.sample_ps) and self.sample_ps[len(self.samples)] < until:
            self.samples.append(Sample(self.sample_ps[len(self.samples)], *self.last))

    def _step(self) -> None:
        setup = self.setup
        scheduled: dict[int, int] = {}  # place -> tokens of this step
        decodes = {request.place: request.computed for request in self.running if request.prefilled}
        refused = ""
        if setup.prefill_first:
            refused = self._admit(setup.max_num_batched_tokens, scheduled)
        if not scheduled:
            before = self.preemptions
            left = self._grow(setup.max_num_batched_tokens, scheduled)
            if self.preemptions != before:
                refused = ""  # the line was not asked with the blocks that this set free
            elif not setup.prefill_first:
                refused = self._admit(left, scheduled)
        decoded = sum(place in decodes for place in scheduled)
        prefilled = sum(tokens for place, tokens in scheduled.items() if place not in decodes)
        attended = sum(computed for place, computed in decodes.items() if place in scheduled)
        pairs = sum(
            (self.requests[place].computed + tokens) ** 2 - self.requests[place].computed ** 2
            for place, tokens in scheduled.items()
            if place not in decodes
        )
        duration = (
            setup.step_ps + setup.sequence_ps * decoded + setup.context_ps * attended
            + setup.prompt_token_ps * prefilled + setup.prompt_pair_ps * pairs
        )  # fmt: skip
        used = setup.usable_blocks - len(self.pool.free)
        assert used == len({block for request in self.running for block in request.held}), "blocks are lost"
        self.peak = max(self.peak, used)
        if self.full_ps is None and used >= full_from(setup.usable_blocks):
            self.full_ps = self.now
        if self.waiting_ps is None and self.waiting:
            self.waiting_ps = self.now
        if refused == "blocks":
            self.held += duration
        self._sample(self.now + duration)
        self.steps += 1
        self.now += duration
        self.computed += decoded + prefilled
        queued = len(self.waiting)
        self._generate(scheduled)
        self.last = (setup.usable_blocks - len(self.pool.free), len(self.running), queued)

    def _generate(self, scheduled: dict[int, int]) -> None:
        for request in list(self.running):
            if request.place not in scheduled:
                continue
            request.computed += scheduled[request.place]
            if request.computed < request.tokens:
                continue
            request.tokens += 1
            request.prefilled = True
            if request.tokens - request.prompt == request.output:
                self.running.remove(request)
                self._free(request)
                self.finished[request.place] = self.now
                self._send()

    def _remember(self, request: _Request, reach: int) -> None:
        """Whole blocks of a group's prefix can be found by the next of the group, already in the step that computes them."""
        for nth in range(min(request.shared, reach // self.setup.block_size)):
            self.pool.content[("group", request.group, nth)] = request.held[nth]

    def _grow(self, budget: int, scheduled: dict[int, int]) -> int:
        size = self.setup.block_size
        for request in list(self.running):
            if request not in self.running:
                continue
            tokens = min(request.tokens - request.computed, budget)
            need = blocks(request.computed + tokens, size) - len(request.held)
            while need > len(self.pool.free):
                if self.setup.policy == "priority":
                    victim = max(self.running, key=lambda other: (other.priority, other.place))
                else:
                    victim = self.running[-1]
                budget += scheduled.pop(victim.place, 0)
                self._preempt(victim)
                if victim is request:
                    break
            else:
                request.held += [self.pool.take() for _ in range(need)]
                self._remember(request, request.computed + tokens)
                scheduled[request.place] = tokens
                budget -= tokens
        return budget

    def _preempt(self, request: _Request) -> None:
        size = self.setup.block_size
        if self.setup.prefix_caching:
            for nth in range(request.shared, request.computed // size):
                self.pool.content[("own", request.place, nth)] = request.held[nth]
        request.lost, request.computed, request.prefilled = request.computed, 0, False
        self._free(request)
        self.running.remove(request)
        self.waiting.insert(0, request)
        self._order()
        self.preemptions += 1
        if self.preemption_ps is None:
            self.preemption_ps = self.now

    def _free(self, request: _Request) -> None:
        for block in reversed(request.held):
            self.pool.release(block)
        request.held = []

    def _admit(self, budget: int, scheduled: dict[int, int]) -> str:
        setup, size = self.setup, self.setup.block_size
        while self.waiting and budget > 0:
            request = self.waiting[0]
            if len(self.running) >= setup.max_num_seqs:
                return "seqs"
            found: list[int] = []
            if setup.prefix_caching:
                found = self.pool.run_of("group", request.group, 0, request.shared)
                if len(found) == request.shared:
                    most = (request.tokens - 1) // size - request.shared
                    found = found + self.pool.run_of("own", request.place, request.shared, most)
            hit = max(len(found), min(request.cached, request.tokens - 1) // size) * size
            new = request.tokens - hit
            chunk = min(new, budget) if setup.chunked_prefill else new
            reach = request.tokens if setup.whole_prompt_must_fit else hit + chunk
            alive = sum(self.pool.holders[block] > 0 for block in found)
            spare = setup.watermark_blocks if self.running else 0
            if blocks(reach, size) - alive + spare > len(self.pool.free):
                return "blocks"
            if new > budget and not setup.chunked_prefill and scheduled:
                return "tokens"
            self.waiting.pop(0)
            for block in found:
                self.pool.reuse(block)
            for key in [key for key in self.pool.content if key[:2] == ("own", request.place)]:
                del self.pool.content[key]
            need = blocks(hit + chunk, size) - len(found)
            request.held = found + [self.pool.take() for _ in range(need)]
            self.running.append(request)
            if self.first[request.place] is None:
                self.first[request.place] = self.now
            self.recomputed += max(0, min(request.lost, request.tokens) - hit)
            request.lost = 0
            request.computed = hit
            self._remember(request, hit + chunk)
            scheduled[request.place] = chunk
            budget -= chunk
        return ""
