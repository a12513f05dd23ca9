"""The engine's scheduler over its paged KV pool, event by event.

The rules are those of vLLM's scheduler (`vllm/v1/core/sched/scheduler.py` of the V1 engine, `vllm/core/scheduler.py` of V0),
told step by step in `plain.py`. Here the steps between two events are taken at once: as long as nobody arrives, finishes
or finds the pool full, every running request computes one token a step, and only blocks are counted. Times are whole
picoseconds, so that both say exactly the same.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence, Sized

from oomdoc.replay.asked import (
    ANYBODY,
    NEVER,
    Outcome,
    Sample,
    Setup,
    Traffic,
    blocks,
    full_from,
    lengths,
    prefix_blocks,
)
from oomdoc.replay.free_blocks import FreeBlocks
from oomdoc.replay.growth import Growth


def simulate(setup: Setup, traffic: Traffic, sample_ps: Sequence[int] = ()) -> Outcome:
    """Run the traffic to its end. `sample_ps` are moments, ascending, at which the state is wanted."""
    return _Run(setup, traffic, sample_ps).outcome()


def survives(setup: Setup, traffic: Traffic, most_blocks: int) -> Outcome | None:
    """The outcome where all run without preemption, wait for blocks and more than so many used blocks; None otherwise.

    It stops at the first of them, which comes early in what does not survive by far.
    """
    run = _Run(setup, traffic, ())
    run.most_blocks = most_blocks
    outcome = None if run.impossible else run.outcome()
    return None if outcome is None or run.failed() else outcome


def nearer(
    setup: Setup, traffic: Traffic, sample_ps: Sequence[int], ends_ps: Sequence[int | None], most_off_ps: float
) -> Outcome | None:
    """The outcome; None, and sooner, where the requests end further from these moments than so much in all."""
    run = _Run(setup, traffic, sample_ps)
    run.ends, run.most_off = ends_ps, most_off_ps
    outcome = run.outcome()
    return None if run.failed() else outcome


class _Run:
    """State of one simulation. `step` counts decode steps: a request that decodes has computed `base + step` tokens."""

    def __init__(self, setup: Setup, traffic: Traffic, sample_ps: Sequence[int]) -> None:
        count = len(traffic)
        self.setup, self.block_size = setup, setup.block_size
        self.arrival = list(traffic.arrival_ps)
        self.sent = min(count, setup.callers or count)  # requests whose time of arrival is known
        self.arrival[self.sent :] = [NEVER] * (count - self.sent)
        self.input = list(traffic.input_tokens)
        self.outputs, self.impossible = lengths(setup, traffic)
        self.shared = prefix_blocks(setup, traffic)
        self.group = [-2 - group for group in traffic.group] if any(self.shared) else []
        self.cached = list(traffic.cached_tokens) if setup.prefix_caching else []
        self.priority = list(traffic.priority) if setup.policy == "priority" and traffic.priority else [0] * count
        self.by_priority = setup.policy == "priority"
        self.free = FreeBlocks(setup.usable_blocks)
        self.live: dict[int, int] = {}  # group -> requests that hold its blocks
        self.held_group: dict[int, int] = {}  # group -> blocks of it that they hold
        self.waiting: deque[int] = deque()
        self.heap: list[tuple[int, int]] = []  # the same under the priority policy
        self.line: Sized = self.heap if self.by_priority else self.waiting
        self.running: dict[int, None] = {}  # in order of admission
        self.partial: int | None = (
            None  # the one request whose prompt is not computed to its end, always the last admitted
        )
        self.partial_computed = 0
        self.tokens = list(self.input)  # prompt and what was generated before the latest admission
        self.base = [0] * count
        self.bases = 0  # sum of `base` over those who decode
        self.finish_step = [-1] * count
        self.finishing: list[tuple[int, int, int]] = []  # step, nth to decode, request
        self.growth = Growth(setup.block_size)
        self.admitted = [0] * count  # how many were admitted before, the latest time
        self.admissions = 0
        self.lost = [0] * count  # tokens that a preemption threw away and that were not computed again yet
        self.step = 0
        self.pairs = 0  # of this step: squares of the tokens computed, after less before
        self.steps = 0
        self.begun = 0
        self.now = self.arrival[0] if count else 0
        self.next = 0
        self.blocked = ""  # why the head of the line was refused: "blocks", "seqs", or "" = ask again
        self.settled = False  # that reason lasts until somebody leaves
        self.last = (0, 0, 0)  # used blocks, running, waiting after the latest step
        self.samples: list[Sample] = []
        self.sample_ps = sample_ps
        self.peak = 0
        self.full_from = full_from(setup.usable_blocks)
        self.preemptions = self.recomputed = self.computed = self.held = 0
        self.full_ps: int | None = None
        self.waiting_ps: int | None = None
        self.preemption_ps: int | None = None
        self.first: list[int | None] = [None] * count
        self.finished: list[int | None] = [None] * count
        self.skip = frozenset(self.impossible)
        self.most_blocks: int | None = None  # beyond it, or with any wait for blocks, nobody wants to know the rest
        self.ends: Sequence[int | None] | None = None  # when each was to end
        self.off = 0  # how far from it they have ended, in all
        self.most_off = math.inf  # beyond it nobody wants to know the rest

    def failed(self) -> bool:
        """Whether what `survives` or `nearer` asks for is lost already."""
        if self.most_blocks is None:
            return self.off > self.most_off
        return bool(self.preemptions or self.held) or self.peak > self.most_blocks

    def outcome(self) -> Outcome:
        count, begin = len(self.arrival), self.now
        most_off = self.most_off
        while True:
            if self.next < count and self.arrival[self.next] <= self.now:
                self._arrive()
            if not self.running and not self.line:
                if self.next >= count:
                    break
                self._idle_until(self.arrival[self.next])
                continue
            calm = self.partial is None and self.running
            if not (calm and (not self.line or (self.blocked and self.settled)) and self._jump()):
                self._one_step()
            if self.off > most_off or (self.most_blocks is not None and self.failed()):
                break
        self._idle_until(self.now if not self.sample_ps else max(self.now, self.sample_ps[-1] + 1))
        end = max((moment for moment in self.finished if moment is not None), default=begin)
        return Outcome(
            end, self.steps, self.peak, self.preemptions, self.recomputed, self.computed, self.held, self.full_ps,
            self.waiting_ps, self.preemption_ps, self.impossible, self.first, self.finished, tuple(self.samples), self.arrival,
        )  # fmt: skip

    # ---- the line

    def _arrive(self) -> None:
        arrival, count, place = self.arrival, len(self.arrival), self.next
        while place < count and arrival[place] <= self.now:
            if place in self.skip:
                self._send()
            else:
                if self.by_priority:
                    heapq.heappush(self.heap, (self.priority[place], place))
                    self.blocked = ""
                else:
                    self.waiting.append(place)
            place += 1
        self.next = place

    def _send(self) -> None:
        """A caller has its answer and sends the next request, where callers wait for theirs."""
        if self.sent < len(self.arrival):
            self.arrival[self.sent] = max(self.now, self.arrival[self.sent - 1])
            self.sent += 1

    def _idle_until(self, moment: int) -> None:
        self._sample_until(moment)
        self.now = moment

    def _sample_until(self, moment: int) -> None:
        while len(self.samples) < len(self.sample_ps) and self.sample_ps[len(self.samples)] < moment:
            self.samples.append(Sample(self.sample_ps[len(self.samples)], *self.last))

    # ---- many steps at once

    def _jump(self) -> bool:
        """Take all steps up to the next event; False where the very next step is one that has to be looked at."""
        setup, running = self.setup, len(self.running)
        while self.finish_step[self.finishing[0][2]] != self.finishing[0][0]:
            heapq.heappop(self.finishing)  # preempted since
        count = self.finishing[0][0] - self.step
        each = setup.step_ps + setup.sequence_ps * running
        if setup.context_ps:
            each = self._lasting(1)
        if self.next < self.sent and (not self.blocked or self.by_priority):
            count = min(count, self._steps_for(self.arrival[self.next] - self.now, each))
        free = self.free.count
        grown = self.growth.blocks(self.step, count, running)
        if grown > free:
            count = self.growth.steps_within(self.step, free, running)
            if count == 0:
                return False
            grown = self.growth.blocks(self.step, count, running)
        used = setup.usable_blocks - free
        if self.full_ps is None and used + grown >= self.full_from:
            self.full_ps = self.now + self._lasting(
                self.growth.steps_within(self.step, self.full_from - used - 1, running)
            )
        lasted = self._lasting(count) if setup.context_ps else count * each
        if len(self.samples) < len(self.sample_ps) and self.sample_ps[len(self.samples)] < self.now + lasted:
            self._sample_jump(used, running, lasted, each)
        queued = self._queued_at(self.now + self._lasting(count - 1)) if self.line else 0
        self.free.take(grown)
        if used + grown > self.peak:
            self.peak = used + grown
        if self.blocked == "blocks":
            self.held += lasted
        self.computed += count * running
        self.step += count
        self.steps += count
        self.now += lasted
        if self.finishing[0][0] <= self.step:
            self._finish()
        self.last = (setup.usable_blocks - self.free.count, len(self.running), queued)
        return True

    def _lasting(self, count: int) -> int:
        """Duration of so many steps of those who run now: their contexts grow by a token each."""
        setup, running = self.setup, len(self.running)
        steady = setup.step_ps + setup.sequence_ps * running + setup.context_ps * (self.bases + running * self.step)
        return count * steady + setup.context_ps * running * (count * (count - 1) // 2)

    def _steps_for(self, span: int, each: int) -> int:
        """Fewest steps that last at least so long; the first lasts `each`."""
        if not self.setup.context_ps:
            return -(-span // each)
        grows = self.setup.context_ps * len(self.running) / 2
        count = max(0, int((math.sqrt((each - grows) ** 2 + 4 * grows * span) - (each - grows)) / (2 * grows)))
        while count and self._lasting(count - 1) >= span:
            count -= 1
        while self._lasting(count) < span:
            count += 1
        return count

    def _sample_jump(self, used: int, running: int, lasted: int, each: int) -> None:
        self._sample_until(self.now + each)
        samples, wanted = self.samples, self.sample_ps
        while len(samples) < len(wanted) and wanted[len(samples)] < self.now + lasted:
            done = self._steps_for(wanted[len(samples)] - self.now + 1, each) - 1
            queued = self._queued_at(self.now + self._lasting(done - 1))
            samples.append(
                Sample(wanted[len(samples)], used + self.growth.blocks(self.step, done, running), running, queued)
            )

    def _queued_at(self, moment: int) -> int:
        """Length of the line in a step of a jump that begins at the moment: those who came in the meantime stand behind."""
        if not self.line:
            return 0
        came = range(self.next, bisect_right(self.arrival, moment, self.next))
        return len(self.line) + len(came) - (sum(place in self.skip for place in came) if self.skip else 0)

    # ---- one step

    def _one_step(self) -> None:
        setup, running, free = self.setup, self.running, self.free
        budget, partial = setup.max_num_batched_tokens, self.partial
        prefilled = 0
        complete: list[int] = []
        self.blocked = ""
        self.pairs = attended = 0
        if setup.prefill_first:
            prefilled = self._admit(budget, 0, complete)
            partial = self.partial
        if not prefilled:
            chunk, preempted_before = 0, self.preemptions
            need = len(self.growth.who(self.step))
            if partial is not None:
                begun = self.partial_computed
                chunk = min(self.tokens[partial] - begun, budget - len(running) + 1)
                need -= (begun + chunk) // -self.block_size - begun // -self.block_size
            if need <= free.count:
                free.take(need)
            else:
                chunk, partial = self._grow_or_preempt(budget), self.partial
            if chunk and partial is not None:
                computed = self.partial_computed + chunk
                if self.shared[partial]:
                    self._hold(partial, computed)
                self.pairs += computed**2 - self.partial_computed**2
                self.partial_computed = computed
                if computed == self.tokens[partial]:
                    complete.append(partial)
                    self.partial = None
            prefilled = chunk
            decoding = len(running) - (partial is not None)
            attended = self.bases + decoding * self.step
            if self.line and self.preemptions == preempted_before and not setup.prefill_first:
                prefilled += self._admit(budget - decoding - chunk, decoding + chunk, complete)
        else:
            decoding = 0
        used = setup.usable_blocks - free.count
        duration = (
            setup.step_ps + setup.sequence_ps * decoding + setup.context_ps * attended
            + setup.prompt_token_ps * prefilled + setup.prompt_pair_ps * self.pairs
        )  # fmt: skip
        queued = len(self.line)
        if used > self.peak:
            self.peak = used
        if self.full_ps is None and used >= self.full_from:
            self.full_ps = self.now
        if queued and self.waiting_ps is None:
            self.waiting_ps = self.now
        if self.blocked == "blocks":
            self.held += duration
        if self.sample_ps:
            self._sample_until(self.now + duration)
        self.computed += decoding + prefilled
        self.steps += 1
        self.now += duration
        if decoding or not setup.prefill_first:
            self.step += 1
        if self.finishing and self.finishing[0][0] <= self.step:
            self._finish()  # those who ran before, in their order, then those who were admitted
        if complete:
            self._completed(complete)
        self.last = (setup.usable_blocks - free.count, len(running), queued)

    def _grow_or_preempt(self, budget: int) -> int:
        grown: dict[int, int] = {}
        chunk = 0
        partial = self.partial
        # nearly all have room left in their last block
        asking = sorted(self.growth.who(self.step), key=self.admitted.__getitem__)
        asking += [] if partial is None else [partial]
        for place in asking:
            if place not in self.running:
                continue
            need = 1
            if place == partial:
                chunk = min(self.tokens[place] - self.partial_computed, budget - len(self.running) + 1)
                need = self._more(place, chunk)
            while need > self.free.count:
                victim = self._victim()
                if victim == self.partial:
                    chunk = 0
                self._preempt(victim, grown.get(victim, 0))
                if victim == place:
                    break
            else:
                self.free.take(need)
                grown[place] = need
                if place == self.partial:
                    self._hold(place, self.partial_computed + chunk)
        return chunk

    def _victim(self) -> int:
        if self.by_priority:
            return max(self.running, key=lambda place: (self.priority[place], place))
        return next(reversed(self.running))

    def _preempt(self, place: int, grown: int) -> None:
        """Take a request's blocks and put it first in line; `grown` blocks were given to it in this very step."""
        partial = place == self.partial
        computed = self.partial_computed if partial else self.base[place] + self.step
        del self.running[place]
        if partial:
            self.partial = None
        else:
            self._stop_decoding(place)
            self.tokens[place] = computed + 1
        self._release(place, computed, grown, keep=True)
        self.lost[place] = computed
        self.blocked = ""
        self.preemptions += 1
        if self.preemption_ps is None:
            self.preemption_ps = self.now
        if self.by_priority:
            heapq.heappush(self.heap, (self.priority[place], place))
        else:
            self.waiting.appendleft(place)

    def _release(self, place: int, computed: int, grown: int, keep: bool) -> None:
        """Free the blocks of a request, the last first."""
        size, shared = self.block_size, self.shared[place]
        whole = computed // size
        mine = max(0, whole - shared)
        self.free.put(ANYBODY, blocks(computed, size) + grown - whole)
        self.free.put(place if keep and self.setup.prefix_caching else ANYBODY, mine)
        if shared:
            group = self.group[place]
            self.live[group] -= 1
            if not self.live[group]:
                self.free.put(group, self.held_group.pop(group))

    def _more(self, place: int, chunk: int) -> int:
        """Further blocks that the partial request needs for its next tokens."""
        return blocks(self.partial_computed + chunk, self.block_size) - blocks(self.partial_computed, self.block_size)

    def _hold(self, place: int, computed: int) -> None:
        """The partial request's part of its group's blocks grows with what it has computed."""
        if self.shared[place]:
            group = self.group[place]
            self.held_group[group] = max(self.held_group[group], min(self.shared[place], computed // self.block_size))

    def _admit(self, budget: int, scheduled: int, complete: list[int]) -> int:
        """Admit from the line while tokens, sequences and blocks last; the prompt tokens that this step computes."""
        setup, size, running, free = self.setup, self.block_size, self.running, self.free
        prefilled = 0
        while self.line:
            if len(running) >= setup.max_num_seqs:
                self.blocked, self.settled = "seqs", True
                break
            if budget <= 0:
                break
            place = self.heap[0][1] if self.by_priority else self.waiting[0]
            tokens, shared = self.tokens[place], self.shared[place]
            group = self.group[place] if shared else ANYBODY
            lives = bool(shared and self.live.get(group))
            of_group = of_own = 0
            if setup.prefix_caching:
                if shared:
                    of_group = shared if lives else free.held(group)
                if of_group == shared and self.lost[place]:  # nobody else left blocks of its own
                    of_own = min(free.held(place), (tokens - 1) // size - shared)
            hit = (of_group + of_own) * size
            if self.cached:
                hit = max(hit, min(self.cached[place] // size, (tokens - 1) // size) * size)
            new = tokens - hit
            chunk = new if new < budget or not setup.chunked_prefill else budget
            reach = tokens if setup.whole_prompt_must_fit else hit + chunk
            spare = setup.watermark_blocks if running else 0
            if -(-reach // size) - (shared if lives else 0) + spare > free.count:
                self.blocked = "blocks"
                # Each block that others take until then may be one that it finds in the cache, so that it asks for one less,
                # but then one less is free. Only where its group's go does it lose all of its own with the first of them.
                self.settled = setup.whole_prompt_must_fit or lives or not shared or not of_own
                break
            if new > budget and not setup.chunked_prefill and (prefilled or scheduled):
                break  # the next step may have more of them
            if self.by_priority:
                heapq.heappop(self.heap)
            else:
                self.waiting.popleft()
            if shared and not lives:
                free.reuse(group, of_group)
            if self.lost[place]:
                free.reuse(place, of_own)
            free.take(-(-(hit + chunk) // size) - of_group - of_own)
            if shared:
                self.live[group] = self.live.get(group, 0) + 1
                self.held_group[group] = max(
                    self.held_group.get(group, 0), of_group, min(shared, (hit + chunk) // size)
                )
            running[place] = None
            self.admitted[place] = self.admissions
            self.admissions += 1
            if self.first[place] is None:
                self.first[place] = self.now
            if self.lost[place]:
                self.recomputed += max(0, min(self.lost[place], tokens) - hit)
                self.lost[place] = 0
            if chunk == new:
                complete.append(place)
            else:
                self.partial, self.partial_computed = place, hit + chunk
            self.pairs += (hit + chunk) ** 2 - hit**2
            budget -= chunk
            prefilled += chunk
        return prefilled

    def _completed(self, complete: list[int]) -> None:
        """Prompts that this step computed to their end: the first token of each is there."""
        for place in complete:
            left = self.outputs[place] - (self.tokens[place] - self.input[place]) - 1
            if not left:
                self._leave(place, self.tokens[place])
                continue
            self.base[place] = self.tokens[place] - self.step
            self.growth.begin(place, self.base[place])
            self.bases += self.base[place]
            self.finish_step[place] = self.step + left
            self.begun += 1
            heapq.heappush(self.finishing, (self.step + left, self.begun, place))

    def _finish(self) -> None:
        finishing = self.finishing
        while finishing and finishing[0][0] <= self.step:
            step, _, place = heapq.heappop(finishing)
            if self.finish_step[place] == step:
                self._stop_decoding(place)
                self._leave(place, self.base[place] + step)

    def _stop_decoding(self, place: int) -> None:
        self.growth.end(place, self.base[place])
        self.bases -= self.base[place]
        self.finish_step[place] = -1

    def _leave(self, place: int, computed: int) -> None:
        del self.running[place]
        self._release(place, computed, 0, keep=False)
        self.finished[place] = self.now
        if self.ends is not None and (end := self.ends[place]) is not None:
            self.off += abs(self.now - end)
        self._send()
        self.blocked = ""
