"""Short free text that people put beside logs: hardware, workloads, observations, series of memory, exit codes.

    GPUs: 8 x RTX A6000                                   EngineCore, RSS after round 5: 18.08 GB
    vllm 0.15.2, two instances on one card                state,nvidia_smi_process_mib
    short prompts work; this is after a long one          asleep after boot,412

A statement becomes a row of the table that its matter has: `gpu_device`, `engine_flag` (origin `file`),
`process_memory`, `process_exit`, `metric`; everything else that bears on a cause is a `note` of a topic (`TOPICS`).
Texts are read by words of the field, with an eye on negation ("no LoRA", "does not grow"); what nothing here knows is
passed over, since prose is no format. Device sizes are binary, as cards are sold: "24 GB" is 24 GiB. Other sizes mean
what they say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from oomdoc.ingest import launch
from oomdoc.ingest.base import HEAD_BYTES, TEXT_CAP, Head, Rows, regex
from oomdoc.ingest.record import HEAD, peel
from oomdoc.scan import Chunk
from oomdoc.tables import Batch
from oomdoc.units import KIB, MIB, parse_size, parse_time

KIND = "notes"
TABLES: tuple[str, ...] = (
    "note",
    "gpu_device",
    "engine_flag",
    "process_memory",
    "process_exit",
    "host_event",
    "metric",
    "gpu_sample",
    "problem",
)

_LINE_CAP = 2000
_TEXT = 300  # characters of a sentence that are kept
_SIZE = r"(?<![\w.])\d[\d,]*(?:\.\d+)?\s?[KMGT]i?B\b"
_NUMBERS = {"a": 1, "an": 1, "one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "eight": 8}
_COUNT = r"(?:\d{1,4}|" + "|".join(name for name in _NUMBERS if len(name) > 2) + r")"


class Topic(NamedTuple):
    """A topic of free text: what tells it, what in the clause speaks against it, whether a "no" before it counts."""

    name: str
    says: str
    shape: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    deniable: bool = True


def _topic(name: str, says: str, *shapes: str, unless: str | None = None, deniable: bool = True) -> Topic:
    other = regex(unless, re.I) if unless else None
    return Topic(name, says, regex("|".join(shapes), re.I), other, deniable)


_WORKS = (
    r"(?:\b(?:works?|worked|working|(?:runs?|ran)(?! out)|starts?|started|succeeds?|succeeded|fine|ok|okay|cures?|cured|helps?|helped|"
    r"fix(?:es|ed)?|solves?|solved|avoids?|loads?|gone|goes away|stable|serves?|passes|passed|comes? up|came up|"
    r"no (?:oom|crash|error|problem|failure)s?|completes?|completed)\b|(?<!不)正常|成功|解决|可以了|没问题)"
)
_SHORT = r"(?:out ?of ?memory|(?<![a-z])oom(?![a-z])|\b(?:crash(?:es|ed)?|dies|died|fails?|failed)\b)"
_FAILS = r"\b(?:not|still|also|even|neither|fails?|failed|crash(?:es|ed)?|same (?:error|problem|oom|failure))\b|n't\b"
_BREAKS = r"\b(?:oom|out of memory|fails?|failed|crash\w*|dies)\b"
_EAGER = r"(?:enforce[-_ ]?eager|\beager\b|cuda ?graphs? (?:off|disabled)|(?:without|disabling|no) cuda ?graphs?)"
_MEMORY = r"\b(?:memory|rss|ram|vram|resident|[kmgt]i?b|heap)\b"
_ATTEMPT = r"(?:start|attempt|try|launch|run|time|restart)"
_PROMPT = r"(?:prompts?|inputs?|requests?|documents?|messages?)"
_DEVICE = r"(?:gpus?|cards?|devices?|accelerators?)"
_ENDED = (
    r"\b(?:ctrl[- +]?c|kill(?:ed|ing)?|exit(?:ed|s|ing)?|shut ?down|stop(?:ped|ping|s)?|terminat\w+|quit\w*|ended)\b"
)
_KEPT = (
    r"\b(?:(?:stays?|remains?|is still|are still|still) (?:taken|held|occupied|allocated|reserved|in use|used|full)|"
    r"(?:is |are )?(?:not|never) (?:released|freed|given back)|isn't (?:released|freed))\b"
)
_TOKENS = r"(?P<tokens{0}>\d[\d,.]*\s?k?)"

TOPICS: tuple[Topic, ...] = (
    _topic(
        "prompt-logprobs",
        "prompt logprobs or echo are asked for",
        r"prompt[ _-]?logprobs",
        r"logprobs (?:of|for) (?:the )?prompts?",
        r"\"?\becho\b\"?\s*(?:=|:|is|set to|parameter)?\s*(?:true|1|on)\b",
        r"\bwith echo\b",
    ),
    _topic(
        "long-prompt",
        "long prompts are named; value in tokens where told, from 4,000 on",
        r"\b(?:long|large|huge|big|longer|longest)(?:[- ]context)? "
        r"(?:prompts?|inputs?|contexts?|documents?|requests?|prefills?|conversations?)\b"
        rf"(?: ?\({_TOKENS.format(0)} tok)?",
        rf"\b{_PROMPT}\b[^.]{{0,60}}\ba (?:very )?long(?:er)? one\b",
        r"\blong[- ]context\b",
        rf"\b{_PROMPT} (?:of|with|over|above|longer than|around|about|is|are|:)\s*(?:about|around|some|over|up to|~|>)?"
        rf"\s*{_TOKENS.format(1)}[- ]?tok",
        rf"{_TOKENS.format(2)}[- ]?tok(?:en)?s? (?:long )?(?:system )?{_PROMPT}\b",
        rf"\b{_TOKENS.format(3)} (?:long )?(?:system )?(?:prompts?|inputs?)\b",
        unless=r"\bno long\b",
    ),
    _topic(
        "short-works",
        "short requests are answered",
        rf"\b(?:short|small)(?:er)? {_PROMPT}\b[^.;]{{0,60}}(?:{_WORKS}|\banswered\b)",
        deniable=False,
    ),
    _topic(
        "multimodal",
        "images, video or audio are in the requests",
        r"\bmulti-?modal\b",
        r"\b(?:images?|pictures?|photos?|screenshots?|videos?|audio)\b(?=[^.;]{0,60}\b"
        r"(?:requests?|inputs?|prompts?|per|upload\w*|sent|attached|frames|clips|resolution|pixels?|dpi|base64))",
        r"\b(?:with|of|containing|many|several|\d+) (?:large |big |high-resolution )?"
        r"(?:images|pictures|photos|videos|screenshots|audio (?:clips|files))\b",
        r"\b(?:image|video|audio)_url\b",
        r"\bvision (?:inputs?|requests?|encoder)\b",
        r"\bmm_processor|limit_mm_per_prompt",
        unless=r"\b(?:container|docker|base|disk|oci) images?\b|text[- ]only",
    ),
    _topic(
        "lora",
        "adapters are used; value is the rank where told",
        r"\bq?loras?\b(?:[^.;]{0,30}\brank (?P<rank>\d+))?",
        r"\bpeft\b",
        r"\b(?:with|the|one|an|each) adapters?\b",
    ),
    _topic(
        "draft-model",
        "a draft model or another way of speculation is used",
        r"\bdraft(?:er)? model\b",
        r"\bspeculative(?: decoding| model| tokens)?\b",
        r"\bspec[- ]decod\w*",
        r"\beagle-?[23]?\b",
        r"\bmedusa\b",
        r"\bmtp\b",
        r"\bn-?gram (?:lookup|speculation)",
    ),
    _topic(
        "eager-cures",
        "eager mode cures it",
        rf"{_EAGER}[^.;]{{0,60}}{_WORKS}",
        rf"{_WORKS}[^.;]{{0,60}}{_EAGER}",
        unless=_FAILS,
        deniable=False,
    ),
    _topic(
        "eager-fails",
        "it fails in eager mode too",
        rf"\b(?:even|also|still|same)\b[^.;]{{0,40}}{_EAGER}",
        rf"{_EAGER}[^.;]{{0,40}}(?:does not|doesn't|did not|didn't|no) (?:help|change|fix|cure|difference)",
        rf"{_EAGER}[^.;]{{0,30}}\b(?:still|also|fails?|crashes)\b",
        deniable=False,
    ),
    _topic(
        "restart-cures",
        "a restart brings memory back",
        r"\b(?:re-?start|reboot|re-?load|re-?creat)\w*\b[^.;]{0,60}\b(?:brings?|brought|frees?|freed|returns?|resets?|"
        r"recovers?|releases?|restores?|fixes|fixed|cures?|helps?|clears?|goes? (?:back|away))\b",
        r"\bonly (?:a |the )?(?:re-?start|reboot)\w*",
        r"\buntil (?:it|the \w+|we|they)? ?(?:is |are |was )?(?:re-?start|reboot)\w*",
        r"\b(?:needs?|needed|has to be|must be|have to) (?:a )?(?:re-?start|reboot)\w*",
    ),
    _topic(
        "transient",
        "the next start or attempt succeeds",
        rf"\b(?:next|second|later|another|following|third|2nd) {_ATTEMPT}\b[^.;]{{0,50}}{_WORKS}",
        rf"{_WORKS}[^.;]{{0,40}}\b(?:on|at|after|with) (?:the |a )?(?:second|next|third|2nd) {_ATTEMPT}\b",
        rf"\b(?:retry|retrying|a retry|retries|trying again)\b[^.;]{{0,30}}{_WORKS}",
        r"\bonly (?:happens|fails|occurs)?\s?(?:on |at )?(?:the )?first (?:start|attempt|run|launch)",
        r"\bfails? once\b",
        rf"\b(?:a minute|a moment|some seconds|seconds|minutes) later\b[^.;]{{0,40}}{_WORKS}",
        r"\b(?:intermittent|sporadic|transient)(?:ly)?\b",
        unless=r"\bfails? (?:on |at )?(?:every|each)\b|\b(?:every|each) (?:start|attempt|time) fails\b",
    ),
    _topic(
        "several-engines",
        "several engines, instances or models share a device; value is how many",
        rf"\b(?P<n1>{_COUNT}) (?:\w+ )?(?:instances|copies|engines)\b",
        rf"\b(?P<n2>{_COUNT}) (?:\w+ )?(?:servers|models|containers|processes|stages|replicas|services|jobs)\b"
        rf"[^.;]{{0,60}}\b(?:same|one|single|shared?|sharing|this|each) (?:\w+ )?{_DEVICE}\b",
        r"\b(?:second|another|other) (?:vllm |llm |inference )?(?:instance|engine|copy|server|model|process|job|"
        rf"container|notebook|service|user|application|program)s?\b[^.;]{{0,80}}\b(?:{_DEVICE}|already|holds?|uses?|occupies)\b",
        rf"\bshar(?:es?|ed|ing) (?:the |a |this |one |its )?(?:same |single )?{_DEVICE}\b",
        rf"\b{_DEVICE} (?:is|are|was) (?:also )?(?:shared|used by)\b",
        rf"(?<!\btp \d )(?<!\btp=\d )(?<!\btp\d )(?<!parallel \d )(?<!-size \d )\b(?:on|of) the same {_DEVICE}\b",
        rf"\bboth\b[^.;]{{0,30}}\b(?:on|use|share)\b[^.;]{{0,15}}\b{_DEVICE}\b",
        r"\bco-?located\b|\btime-?slic(?:ed|ing)\b",
        unless=r"\b(?:no|nothing|none) (?:other|else|another)\b|\bexclusive"
        rf"|\b(?:one {_DEVICE} each|its own {_DEVICE})\b",
    ),
    _topic(
        "co-start",
        "engines were started at the same moment",
        rf"\b(?:{_COUNT}|both|all|the) (?:\w+ )?(?:engines|instances|servers|containers|stages|pods|replicas)\b[^.;]{{0,40}}"
        r"\b(?:start\w*|launched|came? up|brought up)\b[^.;]{0,30}"
        r"\b(?:together|at the same time|simultaneously|in parallel|at once|the same (?:second|moment))\b",
    ),
    _topic(
        "idle-device",
        "devices are there that the engine does not use",
        r"\bonly (?:one|a single|the first|gpu ?\d|card ?\d)\b[^.;]{0,30}\b(?:used|busy|in use|loaded|works?)\b",
        r"\b(?:other|others|remaining|second|rest)\b[^.;]{0,20}\b(?:is|are|stays?|sits?|remains?) (?:idle|empty|unused|free)\b",
        rf"\b{_DEVICE}\b[^.;]{{0,20}}\b(?:is|are|stays?|sits?|remains?) (?:idle|unused)\b",
        rf"\b{_COUNT} (?:of (?:them|the \w+|\d+) )(?:{_DEVICE} )?(?:is|are|stay|sit|remain) (?:idle|empty|unused)\b",
    ),
    _topic(
        "tp-no-gain",
        "more ranks do not lower what each of them holds",
        r"\b(?:tp|tensor[- ]parallel\w*)[ =]?\d+\b[^.;]{0,80}"
        r"\b(?:hardly|no less|as much|barely|does not (?:fall|shrink|drop)|the same (?:memory|amount|usage))\b",
        r"\b(?:tp|tensor[- ]parallel\w*)\b[^.;\d]{0,20}\d+ to \d+\b[^;]{0,160}\b(?:only|hardly|barely|merely)\b[^.;]{0,40}"
        r"\b(?:percent|went up|grew|rose|gains?|more)\b|\b(?:tp|tensor[- ]parallel\w*)\b[^.;\d]{0,20}\d+ to \d+\b[^;]{0,160}"
        r"\b(?:only|hardly|barely|merely)\b[^.;]{0,40}\d ?%",
    ),
    _topic(
        "more-ranks-fail",
        "more ranks need more, or fail where fewer work",
        r"\b(?:replicat\w+|duplicat\w+)\b[^.;]{0,60}\b(?:kv|cache|latent)\b[^.;]{0,60}\b(?:each|every|all|per|eight|both)\b",
        r"\b(?:kv|cache|latent)\b[^.;]{0,60}\b(?:replicat\w+|duplicat\w+)\b",
        rf"\b(?:tp|tensor[- ]parallel\w*)[ =]?\d+\b[^.;]{{0,60}}{_WORKS}[.;,]?[^;]{{0,20}}\b(?:tp|tensor[- ]parallel\w*)[ =]?\d+\b"
        rf"[^.;]{{0,60}}\b(?:oom|out of memory|fails?|failed|crash\w*|dies)\b",
        rf"(?:{_BREAKS}[^.;]{{0,60}}\b(?:tp|tensor[- ]parallel\w*)[ =]?(?P<many>\d+)\b"
        rf"|\b(?:tp|tensor[- ]parallel\w*)[ =]?(?P<many2>\d+)\b[^.;]{{0,40}}{_BREAKS}).{{0,400}}?\b(?:tp|tensor[- ]parallel\w*)[ =]?(?P<few>\d+)\b[^.;]{{0,40}}(?:{_WORKS}|\bfits?\b)",
        r"\b(?:each|every|all) (?:rank|gpu|card|device|shard)s?\b[^.;]{0,30}\b(?:own|whole|full) cop(?:y|ies)\b[^.;]{0,20}\b(?:kv|cache)\b",
    ),
    _topic(
        "ranks-uneven",
        "one rank, stage, card or node holds more than the others",
        r"\b(?:uneven(?:ly)?|unbalanced|imbalanced?)\b[^.;]{0,60}\b(?:memory|vram|usage|gpus?|cards?|ranks?|nodes?|stages?|load)\b",
        r"\b(?:memory|vram|usage|gpus?|cards?|ranks?|nodes?|stages?)\b[^.;]{0,40}\b(?:uneven(?:ly)?|unbalanced|imbalanced?)\b",
        rf"\b(?:one|first|last|rank \d+|gpu ?\d+|{_DEVICE}|node|stage|driver)\b[^.;]{{0,40}}\b(?:uses?|holds?|has|takes?|needs?|carries|consumes?)\b"
        r"[^.;]{0,30}\bmore\b[^.;]{0,40}\bthan (?:the )?(?:other|rest|remaining)",
        r"\b(?:gpu|card|rank|device) ?\d+ only\b[^;]{0,60}\b(?:others?|rest)\b|\bonly on (?:gpu|card|rank|device) ?\d+\b[^;]{0,60}\b(?:others?|rest)\b",
        r"\bnot (?:\w+ )?(?:divided|split|spread|distributed|cut|evenly|equally)\b[^.;]{0,30}\b(?:even(?:ly)?|equal(?:ly)?|over|across|between|among)\b"
        r"[^.;]{0,30}\b(?:nodes?|stages?|ranks?|gpus?|cards?)\b",
        r"\b(?:first|last|one) (?:pp |pipeline )?(?:rank|stage|node|card|gpu)\b[^.;]{0,40}\b(?:oom|out of memory|runs? out|dies)\b"
        r"[^.;]{0,60}\bothers?\b",
    ),
    _topic(
        "prefix-evicted",
        "cached prefixes are evicted and computed again",
        r"\b(?:prefix(?:es)?|blocks?|context|conversations?|sessions?|cache[ds]?)\b[^.;]{0,60}\bevict(?:s|ed|ing|ions?)\b"
        r"[^;]{0,80}\b(?:re-?)?(?:prefill\w*|comput\w+)\b",
        r"\bevict(?:s|ed|ing|ions?)\b[^.;]{0,60}\b(?:prefix(?:es)?|context|conversations?|sessions?)\b[^;]{0,80}\b(?:re-?prefill\w*|recomput\w+)\b",
        r"\bre-?prefills?\b[^.;]{0,60}\b(?:cold|from scratch|every|each|whole|entire|again)\b",
        r"\b(?:prefilled|recomputed|computed|read|processed) (?:again|anew|from scratch|every time|each time)\b",
        r"\bprefills? (?:everything|all(?: of it)?|the (?:whole|entire|full) \w+|it all) (?:again|anew)\b",
        r"\b(?:push\w*|throw\w*|kick\w*|forc\w+) (?:\w+ ){0,3}(?:pages?|blocks?|prefix(?:es)?|contexts?|conversations?) out\b",
        unless=r"\bpreempt",
    ),
    _topic(
        "host-full",
        "the memory of the host runs out",
        r"\b(?:memavailable|(?:host|system|cpu|main) (?:memory|ram)|ram|unified memory)\b[^.;]{0,60}"
        r"\b(?:falls?|drops?|collapses?|goes (?:down )?to|runs? out|exhaust\w*|is full|fills? up|used up|100 ?%|until killed)\b",
        r"\b(?:killed by|because of) the (?:kernel|oom)",
        r"\b(?:machine|host|vm|server|box|node|system)\b[^.;]{0,30}\b(?:freezes?|froze|hangs?|wedges?|goes down|unresponsive|locks up|dies)\b"
        r"[^.;]{0,60}\b(?:memory|ram)\b",
        r"\b(?:ssh|console) (?:dies|hangs|stops)\b|\bpower[- ]cycle\b|\bhard reset\b",
        unless=r"\b(?:gpu|device|kv) memory\b|\bvram\b",
    ),
    _topic(
        "failure-told",
        "the text itself tells of a failure",
        r"\b(?:cuda|hip|npu|gpu|run|runs|ran|throws|until|go|goes|going|went|get|gets|got) out of memory\b|\boom(?:s|ed|[- ]kill\w*)?\b",
        r"\bOutOfMemory(?:Error)?\b|(?<![a-z])oom(?![a-z])|显存(?:不足|不够|溢出|爆)|爆显存|卡死",
        r"\b(?:crash(?:es|ed|ing)?|dies|died|killed|segfaults?|fails? to start|cannot start|won't start)\b",
        deniable=True,
    ),
    _topic(
        "asks-if-normal",
        "the text asks why so much memory is taken, and tells of no failure",
        r"\bis (?:this|that|it) (?:normal|usual|expected|intended|by design|right)\b",
        r"\bwhy (?:does|do|is|are) [^.;?]{0,40}\b(?:use|uses|using|take|takes|consume|consumes|need|needs|require|requires|occupy|occupies|show|shows|list|lists|report|reports|hold|holds|reserve|reserves|allocate|allocates)\b[^.;?]{0,40}(?:\b(?:memory|vram|ram)|(?:\b|\d)gi?b)\b",
        r"\b(?:strange|weird|odd|surpris\w+|confus\w+|puzzl\w+|unexpected\w*)\b[^;]{0,80}\b(?:use|take|consume|need|require|hold|reserve|occup(?:ie|y))s?\b"
        r"[^.;]{0,20}\d ?gi?b?\b[^.;]{0,20}\b(?:memory|vram)\b",
        r"\bwhere does the memory go\b|\bso much (?:gpu |video )?(?:memory|vram)\b",
        unless=r"\b(?:oom|out of memory|crash\w*|killed|fails?|failed|error|leak\w*|grow\w*|increas\w*)\b",
        deniable=False,
    ),
    _topic(
        "expandable-cures",
        "expandable segments cure it",
        rf"\bexpandable[-_ ]segments?\b[^.;]{{0,60}}(?:{_WORKS}|\b(?:no longer|not (?:occur|happen)\w*|(?:any ?more|since then)))",
        unless=r"\bif reserved but unallocated\b|\b(?:try|tried|setting)\b[^.;]{0,60}\b(?:not|n't|still|same)\b",
        deniable=False,
    ),
    _topic(
        "fewer-seqs-cure",
        "fewer sequences cure it",
        rf"\bmax[-_ ]num[-_ ]seqs\b[^.;]{{0,40}}{_WORKS}",
        rf"{_WORKS}[^.;]{{0,40}}\bmax[-_ ]num[-_ ]seqs\b",
        unless=_FAILS,
        deniable=False,
    ),
    _topic(
        "off-cures",
        "without a feature the same works",
        rf"\b(?:without|disabling|removing|switching off|not using)\s[^.;]{{0,50}}?{_WORKS}",
        rf"{_WORKS}[^.;]{{0,30}}\b(?:without|(?:after|when|by) (?:disabling|removing))\b",
        rf"{_WORKS}[^.;]{{0,50}}=\s?(?:none|false|0)\b",
        rf"\b(?:base|plain|target) model (?:alone|by itself|on its own)\b[^.;]{{0,40}}{_WORKS}",
        rf"\bwith [^.;]{{2,40}} (?:switched|turned) off\b[^.;]{{0,40}}{_WORKS}",
        unless=r"\b(?:not|n't|neither|still|even|also)\b[^.;]{0,30}\b(?:help|work|start|fix|change)",
        deniable=False,
    ),
    _topic(
        "orphan-process",
        "a process of a dead server is still there",
        r"\b(?:orphan(?:ed)?|zombie|stale|left[- ]?over|dangling)\b[^.;]{0,50}"
        r"\b(?:process(?:es)?|workers?|engines?|servers?|pids?|vllm|python|memory)\b",
        r"\b(?:old|dead|previous|killed|crashed|earlier) (?:server|engine|process|worker|container|run|instance|pod)\b"
        r"[^.;]{0,60}\b(?:still|holds?|held|alive|lives?|remains?|kept)\b",
        r"\bre-?parented\b",
        rf"\b(?:after|once|when)\b[^.;]{{0,20}}{_ENDED}[^.;]{{0,60}}\b(?:memory|vram)\b[^.;]{{0,20}}{_KEPT}",
        rf"\b(?:memory|vram)\b[^.;]{{0,20}}{_KEPT}[^.;]{{0,20}}\b(?:after|once|when|even)\b[^.;]{{0,30}}{_ENDED}",
    ),
    _topic(
        "grows",
        "memory climbs and does not come back; value in bytes where a step is told",
        r"\bmemory leak\b",
        rf"{_MEMORY}[^.;]{{0,60}}\b(?:grows?|growing|grew|climbs?|climbing|climbed|creeps?|rises?|rising|rose|increases?|"
        r"increased|leaks?|leaking|accumulates?)\b",
        r"\b(?:grows?|growing|climbs?|climbing|creeps?|rises?|rising|increases?|leaks?|leaking)\b"
        rf"[^.;]{{0,60}}{_MEMORY}",
        rf"\+\s?(?P<step>{_SIZE}) (?:per|each|every|/) ?\w+",
        r"\b(?:memory|rss|ram|vram)\b[^.;]{0,40}"
        r"\b(?:not|never) (?:freed|released|returned|come back|goes? (?:back|down))\b",
        unless=r"\bkv\b|cache usage|\b(?:does|do|did) not (?:grow|climb|rise|leak)|\bno (?:growth|leak)|n't grow"
        r"|\b(?:please|try|to|we|by) (?:increase|increasing|raise)\b|\bstays? flat\b",
    ),
    _topic(
        "plateau",
        "memory stays where it is or comes back",
        rf"{_MEMORY}[^.;]{{0,50}}\b(?:plateaus?|levels? off|flat|stable|constant|comes? back|returns? to|"
        r"does not (?:grow|rise)|settles?)\b",
        unless=r"\b(?:not|never|n't) (?:come back|return|stable|flat|constant)",
        deniable=False,
    ),
    _topic(
        "repeated-prefix",
        "the same prefixes are sent again",
        r"\b(?:same|identical|shared|repeated|repeating)\b(?: \S+){0,2} (?:system )?"
        r"(?:prompts?|prefix(?:es)?|preambles?|instructions?|messages?)\b",
        r"\b(?:common|one) (?:system )?(?:prompts?|prefix(?:es)?|preambles?)\b",
        r"\b(?:prompts?|prefix(?:es)?) (?:is|are) (?:repeated|reused|sent again|the same|shared)\b",
        r"\b(?:sessions?|conversations?|chats?|users?|prompts?|prefix(?:es)?)\b[^.]{0,80}\b(?:in turn|in a circle|"
        r"round[- ]robin|in rotation|alternat\w+|rotat\w+|cyclic\w*|again and again|one after (?:the other|another))\b",
        unless=r"\b(?:error|log|warning) messages?\b",
    ),
    _topic(
        "no-hits",
        "the prefix cache is not hit",
        r"\bhits?\b[^.;]{0,40}(?:\bnone\b|\bzero\b|(?<![\d.])0(?:\.0+)?(?: ?%|\b)(?![\d.]))",
        r"(?:\b(?:no|zero|without)|(?<![\d.,])0) (?:prefix[- ]?)?(?:cache[- ]?)?hits?\b",
        r"\bhit rate\b[^.;\d]{0,20}(?<![\d.])0(?:\.0+)?(?: ?%|\b)(?![\d.])",
        r"\bcached[_ ]tokens?\b[^.;\d]{0,12}(?<![\d.])(?:0|zero|none)\b(?![\d.])",
        r"\bnever hits?\b|\bnothing (?:is )?(?:hit|reused)\b",
        deniable=False,
    ),
    _topic(
        "shm",
        "the size of shared memory is spoken of; value in bytes where told",
        rf"(?:/dev/shm|\bshm[-_ ]?size\b|\bshared memory\b)(?:[^.;\n]{{0,40}}?(?P<size>{_SIZE}))?",
        unless=r"broadcast block",
    ),
    _topic("sleep-mode", "sleep mode is in use", r"\bsleep mode\b|\basleep\b|\bwake[-_ ]?up\b|\bsleeping engine"),
    _topic(
        "other-version-works",
        "another version of the engine works",
        rf"{_WORKS}[^.;]{{0,40}}\b(?:in|with|on|under|before|until|using) (?:vllm )?v?\d+\.\d+(?:\.\d+)?\b",
        r"\b(?:since|after) (?:the )?(?:upgrade|update|upgrading|updating)\b",
    ),
    _topic(
        "lower-utilization-cures",
        "a lower utilization cures it; value is that utilization",
        rf"(?:utili[sz]ation|gpu[-_ ]mem\w*)[^.;]{{0,30}}(?P<share>0\.\d+)[^.;]{{0,40}}{_WORKS}",
        rf"{_WORKS}[^.;]{{0,40}}(?:utili[sz]ation|gpu[-_ ]mem\w*)[^.;\d]{{0,20}}(?P<share2>0\.\d+)",
        unless=_FAILS,
        deniable=False,
    ),
    _topic(
        "higher-utilization-fails",
        "a higher utilization fails where a lower one does not; value is the higher",
        rf"utili[sz]ation\b[^;]{{0,120}}?\b(?:set|sets|setting|rais\w+|increas\w+|chang\w+)\b[^.;]{{0,40}}?"
        rf"(?P<up>\b1(?:\.0+)?|\b0?\.9\d*)(?![\d.]*\d)[^;]{{0,80}}?{_SHORT}",
        unless=r"\bstill\b|\balso\b|\beven\b|\bsame (?:error|problem|oom)\b",
        deniable=False,
    ),
    _topic(
        "length-refused",
        "a context is said not to fit in the KV cache, before anything is served",
        r"\btokens\b[^.;]{0,30}\b(?:do(?:es)?(?: not|n't) fit|(?:is|are) (?:larger|more|longer) than|exceeds?)\b[^.;]{0,40}\b(?:kv|key[-/ ]value|pool)\b",
        r"\bmax[-_ ](?:model|seq(?:uence)?)[-_ ]len\w*[^.;]{0,40}\b(?:larger|longer|more) than\b[^.;]{0,60}\b(?:kv|cache)\b",
        r"\b(?:context|sequence|model) length[^.;]{0,40}\b(?:does(?: not|n't) fit|exceeds?|larger than)\b[^.;]{0,40}\b(?:kv|key[-/ ]value|pool)\b",
        deniable=False,
    ),
    _topic(
        "pool-pressed",
        "the KV pool is said to be full under live requests, or preemptions are told; value is their number",
        r"(?<![\d.,])(?P<n>[1-9][\d,]*) preemptions?\b",
        r"\bpreemptions?(?: (?:detected|counted|observed|seen))?\s?[:=]\s?(?P<n2>[1-9]\d*)",
        r"\b(?:constant|frequent|aggressive|excessive|many|hundreds of|thousands of) preemptions?\b",
        r"\bpreempts? (?:requests )?(?:aggressively|constantly|frequently|often|all the time)\b",
        r"\b(?:kv(?:[- ]cache)?|pool)\b[^.;]{0,40}\b(?:fully used|exhausted|saturated|(?:is|was|gets?|got|always|completely|nearly|almost) full)\b"
        r"(?! (?:context|length|precision|of (?:cached|reusable)))",
        r"\bkv[- ]cache usage\b[^;]{0,40}\b(?:at|to|reach\w*|hits?|[涨升]到|达到)?\s?(?:9[5-9](?:\.\d+)?|100(?:\.0+)?)\s?%",
        unless=r"\bprofil|\bwarm-?up\b",
    ),
    _topic(
        "client-disconnects",
        "clients give up",
        r"\bclients?\b[^.;]{0,40}\b(?:disconnect\w*|gives? up|gave up|cancel\w*|abort\w*)\b",
    ),
    _topic(
        "probe",
        "a probe is spoken of",
        r"\b(?:liveness|startup|readiness|health)[- ](?:probe|check)s?\b",
    ),
    _topic(
        "restarts-told",
        "a server is said to start over and over",
        r"\b\d+ restarts\b|\brestart(?:s|ed|ing)? (?:again and again|over and over|in a (?:circle|loop)|every \d)|\brestart[- ]loop\b",
        r"\b(?:ended|terminated|killed|stopped)\b[^.;]{0,30}\b(?:starts?|begins?) (?:again |over |anew )?(?:from (?:zero|scratch|the (?:start|beginning)))\b",
    ),
    _topic(
        "scaling-told",
        "replicas are said not to follow the load, or to follow what does not show it",
        r"\b(?:replicas?|deployments?|hpa|autoscal\w+|keda|scaler)\b[^.;]{0,40}\b(?:stays?|stuck|remains?|sits?)\b[^.;]{0,15}"
        r"\b(?:at|on) (?:one|1|\d+)\b[^;]{0,80}\b(?:queue\w*|wait\w*|load|ttft|latency|time-?outs?)\b",
        r"\b(?:hpa|autoscal\w+|keda|scaler)\b[^.;]{0,40}\b(?:never|does not|doesn't|did not|didn't|won't)\b[^.;]{0,20}"
        r"\b(?:adds?|scales?|reacts?|moves?|triggers?|fires?)\b",
        r"\b(?:hpa|autoscal\w+|keda|scaler)\b[^.;]{0,20}\b(?:keeps (?:on )?adding|goes? straight to)\b",
        r"\b(?:scales?|scaling|scaled)\b[^.;]{0,40}\bon (?:the )?(?:\w+ )?(?:sm[ _]active|sm occupancy|cpu|gpu (?:utili[sz]ation|usage|use|load))\b",
        deniable=False,
    ),
    _topic(
        "driver-stuck",
        "a process hangs in the driver and cannot be ended",
        r"\buvm_\w+\+0x|\[nvidia(?:_uvm)?\]",
        r"\bkill -(?:9|KILL)\b[^.;]{0,30}\b(?:no effect|not|nothing|in vain|without effect)\b",
        r"\b(?:unkillable|uninterruptible)\b|\bstate [DR]\b[^.;]{0,60}\breboot",
        deniable=False,
    ),
    _topic("autoscaler", "an autoscaler is spoken of", r"\b(?:hpa|keda|autoscal\w+|auto-scal\w+)\b"),
    _topic(
        "unified-memory",
        "CPU and GPU share one memory",
        r"\bunified memory\b|\bGB10\b|\bgfx115\d\b|\bDGX Spark\b|\bJetson\b|\bStrix Halo\b|\bGrace[- ]Hopper\b",
    ),
    _topic(
        "desktop",
        "a desktop or display runs on the device",
        r"\b(?:desktop|display manager|xorg|gnome|wayland|wsl2?)\b",
    ),
    _topic(
        "cold-compile",
        "the first start compiles with an empty cache",
        r"\b(?:compile|torch\.compile|inductor)[- ]cache\b[^.;]{0,40}\b(?:empty|deleted|cleared|cold|fresh|missing)\b",
        r"\b(?:empty|cold|cleared|fresh) (?:compile|compilation|inductor) cache\b",
        r"\bcold (?:start|compile|compilation)\b",
    ),
    _topic(
        "no-failure",
        "the text says that nothing failed",
        r"\bnothing (?:failed|fails|crashed|is wrong|went wrong)\b",
        r"\bno (?:errors?|failures?|crash(?:es)?|incidents?) (?:were |was |are |is )?"
        r"(?:seen|found|observed|reported|so far|at all)\b",
        r"\b(?:works|working|runs|running) (?:fine|well|as expected|without (?:problems?|errors?))\b",
        deniable=False,
    ),
)  # fmt: skip
"""Every topic that free text is searched for. `kernel_log.FACTS` lists those that other modules give."""

_DENIED = regex(
    r"(?:\b(?:no|not|without|never|neither|nor|non|excluding|except|disabled?|free of|instead of)|n't)"
    r"\W+(?:\w+\W+){0,2}$",
    re.I,
)
_OFF = regex(
    r"\W{0,4}?(?:is |are |was |were )?\W{0,4}?"
    r"(?:no\b(?! matter)|none\b|off\b|disabled|false|not\b|n/a|null|unused|[:=]\s?0\b(?!\.))",
    re.I,
)
_STEP = regex(rf"(?:\+|\bby |\babout )\s?({_SIZE})\s?(?:per|every|each|an?|/)\s?\w", re.I)
_MULTIPLE = regex(r"(?P<number>\d[\d,.]*)\s?(?P<k>k?)", re.I)


_FEATURES = ("prompt-logprobs", "lora", "draft-model", "multimodal")
_OFF_CURES = next(topic.shape for topic in TOPICS if topic.name == "off-cures")


def topics_of(text: str) -> Iterator[tuple[str, float | None]]:
    """Topics of one line or sentence with their numbers: tokens, bytes, counts, shares, as each topic says.

    >>> list(topics_of("Fails with a 16k token prompt; --enforce-eager starts fine; no LoRA."))
    [('long-prompt', 16000.0), ('eager-cures', None)]
    """
    for topic in TOPICS:
        for match in topic.shape.finditer(text):
            clause = text[text.rfind(";", 0, match.start()) + 1 : _clause_end(text, match.end())]
            if topic.unless and topic.unless.search(clause):
                continue
            denied = _DENIED.search(text[: match.start()][-40:]) or _OFF.match(text[match.end() :])
            # what is off where it works was on where it failed
            if topic.deniable and denied and not (topic.name in _FEATURES and _OFF_CURES.search(clause)):
                continue
            caught = match.groupdict()
            if caught.get("few") and int(caught["many"] or caught["many2"]) <= int(caught["few"]):
                continue
            value = _number(topic.name, match)
            if topic.name == "long-prompt" and value is not None and value < 4000:
                continue
            yield topic.name, value
            break


def _clause_end(text: str, at: int) -> int:
    end = text.find(";", at)
    return len(text) if end < 0 else end


def _number(topic: str, match: re.Match[str]) -> float | None:
    """The number that a topic's shape caught."""
    caught = next((text for name, text in match.groupdict().items() if text), None)
    if caught is None and topic == "grows":
        step = _STEP.search(match.string, match.start())
        caught = step[1] if step else None
    if caught is None:
        return None
    if topic in ("grows", "shm"):
        return parse_size(caught)
    if caught.lower() in _NUMBERS:
        return float(_NUMBERS[caught.lower()])
    multiple = _MULTIPLE.fullmatch(caught.strip())
    if not multiple:
        return None
    try:
        return float(multiple["number"].rstrip(".,").replace(",", "")) * (1000 if multiple["k"] else 1)
    except ValueError:
        return None


# ---- hardware

_GPU_NAME = regex(
    r"(?:(?:NVIDIA|AMD|Intel|GeForce|Tesla|Quadro|Radeon|Instinct|Habana|Huawei) )*"
    r"(?:(?:RTX|GTX)[ -]?(?:PRO[ -]?)?(?:A\d{4}|\d{4})(?: ?(?:Ti|SUPER|Ada|D|Laptop|Max-Q|Blackwell|Generation|Server|"
    r"Workstation|Edition|GPU))*|TITAN \w+|GH200|GB[23]00|GB10|B[1-3]00A?|H[128]00|H20|A100X?|A800|A10G?|A16|A2|A30|"
    r"A40|L4|L20|L40S?|T4|V100S?|P100|P40|K80|MI\d{2,3}[AX]?|Gaudi ?\d|Ascend \w+|910B\d?|Arc \w+|DGX Spark|"
    r"Jetson \w+(?: \w+)?)(?:[- ](?:SXM\d?|PCIe|PCIE|NVL|HBM\d\w?|\d{2,3}G(?:i?B)?\b))*(?!\w|\.\d)"
)
_MIG = regex(r"\b(?:\dc\.)?\dg\.\d{1,3}gb(?:\+\w+(?:\.\w+)?)?", re.I)
_GPU_KEY = regex(
    r"^(?P<key>gpus?|gpu (?:models?|type|name|model name)|cards?|graphics(?: card)?|accelerators?|hardware|devices?|"
    r"machine|node|server|host|instance|environment|gpu models and configuration)\s*[:=]\s*(?P<value>\S.*)$",
    re.I,
)
_GPU_INDEX = regex(r"(?:^|[:\s])GPU ?(?P<gpu>\d{1,3})\s*:\s*(?P<value>[A-Za-z].*)$")
_TIMES = regex(
    rf"(?<![\w.-])(?P<count>{_COUNT})\s?(?:[x×*]\s?| )(?=[A-Z(\d])"
    rf"|\b[x×]\s?(?P<after>\d{{1,3}})\b|\((?P<each>\d{{1,3}})[x×]?\)"
)
_ALL_CARDS = regex(
    r"\b(?:gpu|device|vram|video) ?memory\b[^:=]{0,40}\b(?:all|total|together|sum|combined)\b[^:=]{0,40}[:=]\s*"
    rf"(?P<size>{_SIZE})",
    re.I,
)
_ONE_CARD = regex(
    r"^(?:gpu memory|vram|device memory|memory per (?:gpu|card|device)|gpu memory per (?:gpu|card))[^:=]{0,40}[:=]\s*"
    rf"(?P<size>{_SIZE})",
    re.I,
)
_HOST_RAM = regex(
    rf"^(?:host |system |cpu |node )?(?:ram|memory|main memory)\s*[:=]\s*(?P<size>{_SIZE})"
    rf"|(?P<beside>{_SIZE}) (?:of )?(?:host |system |main |cpu )?(?:ram\b|(?:host|system|main|cpu) memory)",
    re.I,
)
_ELSEWHERE = regex(
    r"\b(?:than|compared|unlike|instead of|also on|even on|(?:works?|worked|fine|ok|starts?|fits?) (?:on|with) an?)\b",
    re.I,
)
_IN_PROSE = regex(
    r"(?:\b(?:on|over|with|using|across|have|has|has got|of)\s+(?:a single |single |an? |the |one )?|^)"
    rf"(?:(?P<count>{_COUNT})\s?(?:[x×]\s?| ))?(?=[A-Z])"
)


_OCCUPIED = regex(
    rf"\bGPU ?(?P<gpu>\d{{1,3}})\b[^\d\n]{{0,30}}?(?P<part>\d[\d,]*(?:\.\d+)?(?:\s?[KMGT]i?B)?)\s*(?P<free>free\s)?\s*(?:used |in use )?"
    rf"(?:/|of|out of)\s*(?P<total>{_SIZE})(?P<after>\s*(?:is |are )?free)?",
    re.I,
)


def _occupied(text: str) -> Iterator[dict[str, Any]]:
    """How full each device is: `GPU 0: 45.2 of 47.5 GiB`, `GPU 1: 3 MiB / 81559 MiB`, `GPU 2: 10 GiB free of 24 GiB`."""
    if "capacity" in text:
        return
    for match in _OCCUPIED.finditer(text):
        unit = re.sub(r"[^A-Za-z]", "", match["total"])
        part, total = (parse_size(match[name], binary=True, unit=unit) for name in ("part", "total"))
        if part is None or total is None or part > total:
            continue
        free = match["free"] or match["after"] or re.search(r"\bfree\b", text[match.start() : match.start("part")])
        yield {"gpu": int(match["gpu"]), "used_bytes": total - part if free else part, "total_bytes": total}


class _Devices:
    """Devices that the text states, in order; a size for all cards is divided once their number is known."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[str, Any]]] = []

    def line(self, number: int, text: str) -> bool:
        """Whether the line was a statement about devices."""
        everything = _ALL_CARDS.search(text)
        if everything:
            self._share(number, parse_size(everything["size"], binary=True))
            return True
        one = _ONE_CARD.match(text)
        if one:
            size = parse_size(one["size"], binary=True)
            if self.rows and self.rows[-1][1].get("total_bytes") is None:
                self.rows[-1][1]["total_bytes"] = size
            else:
                self.rows.append((number, {"total_bytes": size, "count": 1}))
            return True
        indexed = _GPU_INDEX.search(text)
        if indexed and not re.search(r"\b(?:has|total capacity|memory in use|free)\b", text):
            row = _device(indexed["value"])
            if row:
                self.rows.append((number, {**row, "gpu": int(indexed["gpu"]), "count": 1}))
            return bool(row)
        keyed = _GPU_KEY.match(text)
        if keyed:
            own = keyed["key"].lower().startswith(("gpu", "card", "graphic", "accel"))
            found = [row for part in _parts(keyed["value"]) if (row := _device(part, own))]
            self.rows += [(number, row) for row in found]
            return bool(found)
        for sentence in re.split(r"(?<=[.;])\s", text):
            row = None if _ELSEWHERE.search(sentence) else _in_prose(sentence)
            if row:
                self.rows.append((number, row))
                break
        return False

    def _share(self, number: int, size: int | None) -> None:
        count = sum(row["count"] for _, row in self.rows)
        if size and count and all(row.get("total_bytes") is None for _, row in self.rows):
            for _, row in self.rows:
                row["total_bytes"] = size // count


def _in_prose(text: str) -> dict[str, Any] | None:
    """A device in a sentence: "runs on two H100", "8 x A100", "MIG 1g.10gb of an A100"."""
    for name in _GPU_NAME.finditer(text):
        for before in _IN_PROSE.finditer(text, 0, name.end()):
            if before.end() == name.start():
                row = _device(text[before.start() :], True) or {"count": 1}
                mig = _MIG.search(text)
                if mig:
                    row["mig_profile"] = mig[0].lower()
                    row.pop("total_bytes", None)
                return row
    return None


def _parts(text: str) -> Iterator[str]:
    """Devices named side by side: `A + B`, `A and B`."""
    yield from (part for part in re.split(r"\s\+\s|;\s|\s(?:and|&)\s(?=\d|an? |one |two |[A-Z])", text) if part.strip())


def _device(text: str, own: bool = False) -> dict[str, Any] | None:
    """One device statement: name, memory, MIG profile, count; `own` accepts a text that names no product."""
    text = _HOST_RAM.sub("", text)
    name, mig = _GPU_NAME.search(text), _MIG.search(text)
    size = re.search(_SIZE, text)
    if not (name or mig or (own and size)):
        plain = re.match(r"[A-Z][\w -]{2,60}", text.strip()) if own else None
        if not plain:
            return None
        return {"name": plain[0].strip(), "count": 1}
    times = _TIMES.search(re.sub(_SIZE, "", text)) or re.match(rf"(?P<count>{_COUNT})\s", text.strip(), re.I)
    printed = next((group for group in times.groupdict().values() if group), None) if times else None
    row: dict[str, Any] = {"count": 1}
    if printed:
        row["count"] = max(1, _NUMBERS.get(printed.lower(), 0) or (int(printed) if printed.isdigit() else 1))
    if name:
        row["name"] = name[0].strip()
    if mig:
        row["mig_profile"] = mig[0].lower()
    elif size:
        row["total_bytes"] = parse_size(size[0], binary=True)
        if row["total_bytes"] and re.match(r" (?:together|combined|in total|altogether|in all)\b", text[size.end() :]):
            row["total_bytes"] //= row["count"]
    return row


# ---- engine facts in prose

_VERSION = regex(
    r"(?:^|[,;(]\s*|\bversion[:=]?\s*)vllm(?:[ _-]?version)?\s*(?:[:=]{1,2}|\s)\s*v?"
    r"(?P<version>\d+\.\d+(?:\.\w+)*[\w.+-]*)",
    re.I,
)
_MODEL = regex(
    r"^(?:base |served )?models?(?:[ _-]?(?:name|id|path))?\s*[:=]\s*(?P<model>[\w.-]+(?:/[\w.-]+)*)\s*(?:$|[,;(])",
    re.I,
)
_PARALLEL = regex(r"(?<![\w-])(?P<kind>TP|PP|DP)\s?(?:=|:|size)?\s?(?P<size>\d{1,3})\b")
_PAIR = regex(r"(?<![\w-])(?P<flag>[a-z][a-z_]{4,})\s?[=:]\s?(?P<value>-?[\w.]+)")
_OPTIONS = regex(
    r"^(?:command|args|arguments|flags|options|started with|launched with|run with|engine args)\b\s*:?\s*(?P<rest>.*)",
    re.I,
)
_TRIED = regex(rf"{_WORKS}|{_FAILS}|\b(?:instead|raised|lowered|tried|trying|if|would|should|could|helps?)\b", re.I)
_NAMED = regex(
    r"(?<!-)\b(?P<flag>gpu[-_ ]memory[-_ ]utili[sz]ation|max[-_]model[-_]len|max[-_]num[-_]seqs|max[-_]num[-_]batched[-_]tokens)"
    r" (?:of |is |at |was )?(?P<value>0?\.\d+|\d{1,7})(?![\w.]*\w)",
    re.I,
)
_PARALLEL_FLAGS = {"TP": "tensor_parallel_size", "PP": "pipeline_parallel_size", "DP": "data_parallel_size"}


def _facts(text: str) -> Iterator[tuple[str, str]]:
    """Engine settings that a line states as given; what somebody tried or proposes is none."""
    tried = bool(_TRIED.search(text))
    version = _VERSION.search(text)
    if version and not tried:
        yield "version", version["version"].rstrip(".,;-")
    model = _MODEL.match(text)
    if model and (not model["model"].islower() or "/" in model["model"] or re.search(r"\d", model["model"])):
        yield "model", model["model"]
    if tried:
        return
    sizes = {(found["kind"], found["size"]) for found in _PARALLEL.finditer(text)}
    for kind, size in sorted(sizes):
        if sum(kind == other for other, _ in sizes) == 1:  # a line that compares several states none
            yield _PARALLEL_FLAGS[kind], size
    named = {
        (found["flag"].lower().replace("-", "_").replace(" ", "_"), found["value"]) for found in _NAMED.finditer(text)
    }
    for flag, value in sorted(named):
        if sum(flag == other for other, _ in named) == 1:
            yield flag.replace("utilisation", "utilization"), value
    options = _OPTIONS.match(text)
    if options or text.startswith(("--", "vllm serve")):
        yield from launch.flags_of(options["rest"] if options else text)
        return
    for pair in _PAIR.finditer(text):
        if pair["flag"] in launch.ENGINE_FLAGS:
            yield pair["flag"], pair["value"].rstrip(".")


# ---- memory series

_MEASURED = regex(
    r"\b(?:(?P<gpu>nvidia[-_ ]smi|gpu[- ]memory|vram|device memory|gpu)|"
    r"(?P<host>rss|resident(?: set| memory)?(?: size)?|host memory|ram|vmrss|pss))\b"
    r"(?: (?:used|usage|in use|process(?:es)?|of the \w+))*"
    r"|\b(?P<any>memory(?: used| usage| in use)?|mem)\b",
    re.I,
)
_POINT = regex(
    rf"^(?P<label>[^:=]{{2,160}}?)\s{{0,20}}(?:[:=]|\s(?:is|was)\s|\t|\s{{2,20}})\s{{0,20}}(?P<size>{_SIZE})\s{{0,20}}(?:[,;(].*)?\.?$"
)
_STATE = regex(
    r"\b(?:after|before|idle|asleep|sleep(?:ing)?|awake|round|start(?:ed|up)?|boot|hours?|days?|min(?:ute)?s?|wake|"
    r"load(?:ed|ing)?|step|cycle|iteration|epoch|requests?|at rest|baseline|begin(?:ning)?|end|peak|t ?=|during|"
    r"initial|final|warm-?up|\d+ ?[hdms])\b",
    re.I,
)
_CAPACITY = regex(
    r"\b(?:total|limit|capacity|all cards|per card|available|required|needed|weights?|model size|disk|swap|budget|free|"
    r"kv cache|reserved|request|installed)\b",
    re.I,
)


def _point(text: str, subject: str | None) -> dict[str, Any] | None:
    """A sample of a process's memory in words: who, in what state, how much."""
    match = _POINT.match(text)
    if not match or "+" in match["label"][-2:]:
        return None
    label = match["label"].strip(" ,-*")
    measured = _MEASURED.search(label)
    if _CAPACITY.search(label) or (measured is None and subject is None):
        return None
    resource = subject
    before, after = label, ""
    if measured:
        resource = "gpu" if measured["gpu"] else "host" if measured["host"] else subject
        before, after = label[: measured.start()].strip(" ,(-"), label[measured.end() :].strip(" ,-:")
    state, name = after or None, before or None
    if state is None and before and _STATE.search(before):
        state, name = before, None
    elif measured is None:
        state, name = label, None
    if state is None or not _STATE.search(state):
        return None
    return {"name": name, "state": state, "resource": resource, "bytes": parse_size(match["size"])}


_TWICE = regex(
    rf"(?P<size>{_SIZE}) (?P<state>(?:idle|at|after|before|when|while|asleep|on|in)\b[^,;.]{{0,60}}|\w+ at idle)", re.I
)


def _points(text: str) -> Iterator[dict[str, Any]]:
    """Several samples in one sentence: "3.1 GB idle, 7.9 GB after a day"."""
    found = list(_TWICE.finditer(text))
    measured = _MEASURED.search(text)
    if len(found) < 2 or not measured or _CAPACITY.search(text):
        return
    resource = "gpu" if measured["gpu"] else "host" if measured["host"] else None
    for match in found:
        yield {"state": match["state"].strip(), "resource": resource, "bytes": parse_size(match["size"])}


_MEMORY_COLUMN = regex(
    r"(?:rss|resident|vmrss|pss|vram|nvidia_?smi|used|usage|mem(?:ory)?|process|gpu|cuda|device)\w*?"
    r"[ _(\[]*(?P<unit>bytes|b|kib|mib|gib|kb|mb|gb)[\])]?$"
    r"|^(?:rss|vmrss|pss|uss|vram|memory|mem|mem_used|memory_used|used_memory)$",
    re.I,
)
_NOT_COLUMN = regex(
    r"total|limit|capacity|free|shared|avail|vsz|virt|cache|util|percent|%|swap|requested|input|output", re.I
)
_TIME_COLUMN = regex(
    r"^(?:timestamp|time|t|ts|date|datetime|at|when|time_utc|epoch(?:_s)?|unix|elapsed\w*|hours?|minutes?|seconds?)\b",
    re.I,
)
_STATE_COLUMN = regex(
    r"^(?:state|phase|label|event|stage|step|round|when|note|situation|moment|iteration|cycle)s?$", re.I
)
_NAME_COLUMN = regex(r"^(?:name|process|proc|command|comm|cmd|process_name|container|pod|service)$", re.I)
_COLUMN_NAME = regex(r"\s*[\"']?[A-Za-z][\w .()\[\]/%-]{0,40}[\"']?\s*")
_UNITS = {"b": "B", "bytes": "B"}


class _Sheet:
    """A CSV or column text with memory of processes: which column is what."""

    def __init__(self, header: Sequence[str], split: re.Pattern[str] | None) -> None:
        self.split = split
        names = [name.strip().strip("\"'") for name in header]
        self.width = len(names)
        self.memory: list[tuple[int, str, str, str | None]] = []  # index, column, unit, resource
        self.time = self.state = self.name = self.pid = -1
        self.time_name = ""
        for index, name in enumerate(names):
            found = _MEMORY_COLUMN.search(name)
            if found and not _NOT_COLUMN.search(name):
                gpu = re.search(r"gpu|smi|vram|device|cuda", name, re.I)
                host = re.search(r"rss|resident|host|ram\b|pss|uss", name, re.I)
                resource = "gpu" if gpu else "host" if host else None
                self.memory.append((index, name, (found["unit"] or "").lower(), resource))
            elif self.time < 0 and _TIME_COLUMN.match(name):
                self.time, self.time_name = index, name
            elif self.state < 0 and _STATE_COLUMN.match(name):
                self.state = index
            elif self.name < 0 and _NAME_COLUMN.match(name):
                self.name = index
            elif name.lower() == "pid":
                self.pid = index

    @property
    def useful(self) -> bool:
        """Whether this is a series: a memory column beside a time, a state or a process."""
        return bool(self.memory) and max(self.time, self.state, self.name) >= 0

    def _age(self, cells: Sequence[str]) -> str | None:
        """A time that is no date (`3h`, hour 2) is the state."""
        if self.time < 0 or not cells[self.time] or _moment(cells[self.time]) is not None:
            return None
        number = re.fullmatch(r"[\d.]+|\d+:\d\d(?::\d\d)?", cells[self.time])
        return f"{self.time_name} {cells[self.time]}" if number else cells[self.time]

    def rows(self, text: str) -> Iterator[dict[str, Any]]:
        """Samples of one line; none where it does not fit."""
        cells = [cell.strip().strip("\"'") for cell in _cells(text, self.split)]
        if len(cells) < self.width:
            return
        name = cells[self.name] if self.name >= 0 else None
        if self.pid >= 0:
            name = f"{name or 'process'} (pid {cells[self.pid]})"
        for index, column, unit, resource in self.memory:
            printed = cells[index]
            size = parse_size(printed, unit=_UNITS.get(unit, unit)) if re.fullmatch(r"[\d.,]+\s?\w*", printed) else None
            if size is None:
                continue
            yield {
                "t": _moment(cells[self.time]) if self.time >= 0 else None,
                "name": name or (column if len(self.memory) > 1 else None),
                "state": cells[self.state] or None if self.state >= 0 else self._age(cells),
                "resource": resource,
                "bytes": size,
            }


def _moment(text: str) -> float | None:
    stamp = parse_time(text)
    if stamp is None and re.fullmatch(r"1[0-9]{9}(?:\.\d+)?", text):
        return float(text)
    return stamp


_SPLITS: tuple[re.Pattern[str], ...] = tuple(regex(shape) for shape in (r",", r";", r"\t", r"\s*\|\s*", r"\s{2,}"))


def _cells(text: str, split: re.Pattern[str] | None) -> list[str]:
    return split.split(text.strip().strip("|")) if split else text.split()


def _sheet(text: str) -> _Sheet | None:
    """The layout that a header line announces; None where it is no header of a memory series."""
    if len(text) > 1000 or _PS.match(text) or not re.search(r"rss|mem|vram|smi|resident|pss|used|_[mg]i?b", text, re.I):
        return None
    for split in _SPLITS:
        cells = split.split(text.strip().strip("|"))
        if len(cells) >= 2 and all(
            re.fullmatch(r"\s*[\"']?[A-Za-z][\w .()\[\]/%-]{0,40}[\"']?\s*", cell) for cell in cells
        ):
            sheet = _Sheet(cells, split)
            if sheet.useful:
                return sheet
    return None


# ---- processes

_PS = regex(r"^\s*(?=.*\bPID\b)(?=.*\bRSS\b)(?=.*\b(?:COMMAND|CMD|COMM)\b)")
_ENGINE_PROCESS = regex(r"VLLM::|EngineCore|\bWorker_|vllm|ray::", re.I)
_EXIT = regex(
    r"\b(?:exit(?:ed)? with exit|exit(?:ed)?|return)[ _-]?(?:code|status)?\b(?: (?:of|from) (?:the )?(?P<name>[^:=\n]{1,60}?))?"
    r"\s*(?:[:=]\s*|\bwith (?:code |status )?|\b(?:is|was) |(?<=exit code) )(?P<code>-?\d{1,3})(?![\d.]|\s*(?:%|ms|s\b))",
    re.I,
)
_SIGKILL = regex(r"\W{0,3}SIGKILL", re.I)
_EXIT_WORD = regex(r"\bexit|\breturn ?code", re.I)
_OPERATOR = regex(
    r"\b(?:operator|admin(?:istrator)?|somebody|someone|colleague|manually|by hand)\b[^.;]{0,40}\bkill(?:ed|s)?\b"
    r"|\bkill(?:ed)?\b[^.;]{0,40}\b(?:by hand|manually|by (?:an|the) (?:operator|admin\w*))\b"
    r"|(?:^|[\s$#])p?kill -(?:9|KILL|SIGKILL)\b",
    re.I,
)
_UNIFIED = regex(r"\bGB10\b|\bgfx115\d\b")  # a device whose memory is the host's
_RAY_TITLE = regex(r"^(ray::\w{1,100})\.\w{1,100}")  # a busy actor bears the name of its call as well
_VMRSS = regex(r"^VmRSS:\s+(?P<kib>\d{1,15}) kB")
_DELTA = regex(
    r"^(?P<name>(?:vllm|lmcache|process|python):[\w:]+|vllm:\w+)(?P<labels>\{[^}]*\})?\s*[:=]?\s*(?:delta|Δ)?\s*"
    r"(?:(?P<value>[+-]\d[\d,]*(?:\.\d+)?)|(?P<before>\d[\d,]*(?:\.\d+)?)\s*(?:->|→|to)\s*(?P<after>\d[\d,]*(?:\.\d+)?))\s*$"
)


# ---- the reader


class _Reader:
    """Reads a note line by line."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.devices = _Devices()
        self.sheet: _Sheet | None = None
        self.ps: list[str] | None = None
        self.subject: str | None = None
        self.told: set[tuple[str, str]] = set()

    def line(self, number: int, raw: str) -> None:
        """One physical line."""
        text = _plain(raw)
        if not text:
            self.ps = None
            return
        if self._table(number, text, raw):
            return
        if _is_log(raw):
            return
        delta = _DELTA.match(text)
        samples = list(_occupied(text))
        if delta:
            self._delta(number, delta)
        elif samples:
            for sample in samples:
                self.rows.add("gpu_sample", number, **sample)
        elif self.devices.line(number, text):
            self._state(number, text, topics=bool(_MIG.search(text) or _UNIFIED.search(text)) or "," in text)
        else:
            self._state(number, text, topics=True)

    def end(self) -> None:
        """The end of the text: devices are complete now."""
        for number, row in self.devices.rows:
            self.rows.add("gpu_device", number, **row)

    def _table(self, number: int, text: str, raw: str) -> bool:
        """Lines of a CSV, of `ps` output."""
        if self.sheet is not None:
            found = False
            for row in self.sheet.rows(raw):
                self.rows.add("process_memory", number, **row)
                found = True
            if found:
                return True
        if self.ps is not None and self._process(number, raw):
            return True
        sheet = _sheet(raw) if self.sheet is None else None
        if sheet is not None:
            self.sheet = sheet
            return True
        if _PS.match(raw):
            self.ps = raw.split()
            return True
        rss = _VMRSS.match(text)
        if rss:
            self.rows.add("process_memory", number, resource="host", bytes=int(rss["kib"]) * KIB)
        return rss is not None

    def _process(self, number: int, raw: str) -> bool:
        assert self.ps is not None
        cells = raw.split(None, len(self.ps) - 1)
        cell = dict(zip(self.ps, cells, strict=False))
        command = next((cell[key] for key in ("COMMAND", "CMD", "COMM", "ARGS") if key in cell), None)
        if command is None or not cell.get("RSS", "").isdigit() or len(cell["RSS"]) > 15:
            return False
        size = int(cell["RSS"]) * KIB
        command = _RAY_TITLE.sub(r"\1", command)
        name = f"{command[:120]} (pid {cell['PID']})" if cell.get("PID") else command[:120]
        self.rows.add("process_memory", number, name=name, resource="host", bytes=size)
        if cell.get("PPID") == "1" and size >= 64 * MIB and _ENGINE_PROCESS.search(command):
            self._note(number, "orphan-process", float(size), raw)
        return True

    def _delta(self, number: int, match: re.Match[str]) -> None:
        """The change of a counter between two scrapes."""
        first, last = (_real(match[name]) for name in ("before", "after"))
        value = (
            _real(match["value"])
            if match["value"]
            else last - first
            if first is not None and last is not None
            else None
        )
        if value is not None:
            self.rows.add("metric", number, name=match["name"], labels="delta", value=value)

    def _state(self, number: int, text: str, topics: bool) -> None:
        """A line of prose: exits, memory, engine facts, topics."""
        exited = _EXIT.search(text) if _EXIT_WORD.search(text) else None
        if exited:
            name = re.sub(r"\s*\bprocess\b\s*$", "", exited["name"] or "").strip() or None
            killed = exited["code"] in ("137", "-9") and _SIGKILL.match(text, exited.end())
            self.rows.add("process_exit", number, name=name, exit_code=-9 if killed else int(exited["code"]))
        if _OPERATOR.search(text):
            self.rows.add("host_event", number, kind="killed-by-operator", text=text[:TEXT_CAP])
        point = _point(text, self.subject)
        if point:
            self.rows.add("process_memory", number, **point)
            self.subject = point["resource"] or self.subject
            return
        several = list(_points(text))
        for one in several:
            self.rows.add("process_memory", number, **one)
        subject = _MEASURED.search(text)
        if subject and len(text) < 120 and (subject["gpu"] or subject["host"]):
            self.subject = "gpu" if subject["gpu"] else "host"
        ram = _HOST_RAM.search(text)
        if ram:
            self._note(number, "host-size", parse_size(ram["size"] or ram["beside"], binary=True), text)
        for flag, value in _facts(text):
            self.rows.add("engine_flag", number, flag=flag, value=launch.shown(flag, value), origin="file")
        if topics:
            for topic, number_told in topics_of(text[:_LINE_CAP]):
                self._note(number, topic, number_told, text)

    def _note(self, line: int, topic: str, value: float | None, text: str) -> None:
        told = text.strip()[:_TEXT]
        if (topic, told) not in self.told:
            self.told.add((topic, told))
            self.rows.add("note", line, topic=topic, value=value, text=told)


def _real(text: str | None) -> float | None:
    try:
        return float(text.replace(",", "")) if text else None
    except ValueError:
        return None


_BULLET = regex(r"^(?:[-*•>]|\d{1,2}[.)]|#{1,6})\s+")


def _plain(raw: str) -> str:
    """A line without bullets, Markdown marks and surrounding space."""
    text = raw.strip()
    for _ in range(3):
        text = _BULLET.sub("", text)
    return text.replace("**", "").replace("`", "").strip()[:_LINE_CAP]


_LOG_LINE = regex(
    r"\s*(?:Traceback \(most recent|File \"[^\"]+\", line \d|(?:\w+\.)*\w*(?:Error|Exception|Warning|Interrupt)\b: |"
    r"INFO: +\S|\[\s*\d+\.\d{3,}\]|\[rank\d+\]|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d|\w{3} +\d+ \d\d:\d\d:\d\d |"
    r"\((?:\w+\) |[\w.:-]+(?: rank=\d+)? pid=\d+)|\d+%\||"
    r"(?:#\d+ 0x|raise |self\.|return |CUDA error|NCCL |Loading )|\*\*\* \w+ received)"
)


def _is_log(line: str) -> bool:
    match = HEAD.match(line)
    return bool((match and (match["mon"] or match["src"])) or _LOG_LINE.match(line))


def _adapter(text: str) -> dict[str, Any] | None:
    """What an adapter's configuration tells; None where the text is none."""
    if text.lstrip()[:1] != "{" or not re.search(r"\"(?:peft_type|lora_alpha)\"", text):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    rank = value.get("r")
    base = value.get("base_model_name_or_path")
    return {
        "topic": "lora",
        "value": float(rank) if isinstance(rank, (int, float)) else None,
        "text": f"adapter of type {value.get('peft_type', 'unknown')}, rank {rank}, base model {base}"[:_TEXT],
    }


def _request(text: str) -> Iterator[dict[str, Any]]:
    """What the body of one API request asks for that costs memory; nothing where the text is none."""
    if text.lstrip()[:1] != "{" or not re.search(r"\"(?:messages|prompt|prompt_logprobs|echo)\"\s*:", text):
        return
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return
    if not isinstance(value, dict) or not {"messages", "prompt", "prompt_logprobs", "echo"} & set(value):
        return
    for key in ("prompt_logprobs", "echo"):
        if value.get(key) not in (None, False):
            yield {"topic": "prompt-logprobs", "text": f"the request asks for {key} = {value[key]}"[:_TEXT]}
    media = re.findall(r"\"(?:type)\"\s*:\s*\"(?:image|video|audio|input_audio)\w*\"", text)
    if media:
        yield {
            "topic": "multimodal",
            "value": float(len(media)),
            "text": f"the request carries {len(media)} media parts",
        }


def matches(head: Head) -> bool:
    """A small text with statements that are understood and hardly a log line; a memory series of any length."""
    if b"\x00" in head.data:
        return False
    text = head.data.decode("utf-8", "replace")
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return False
    sheet = next((found for line in lines[:3] if (found := _sheet(line))), None)
    if sheet is not None:
        fit = [line for line in lines[1:20] if any(True for _ in sheet.rows(line))]
        return 2 * len(fit) >= len(lines[1:20]) > 0
    if len(head.data) >= HEAD_BYTES:
        return False
    if _adapter(text) is not None or any(True for _ in _request(text)):
        return True
    if text.lstrip()[:1] in ("{", "["):
        return False
    logged = sum(_is_log(line) or _is_log(peel(line)[0]) for line in lines)
    if logged * 5 > len(lines) or any((record := HEAD.match(line)) and record["src"] for line in lines):
        return False
    rows = Rows()
    reader = _Reader(rows)
    for number, line in enumerate(lines, 1):
        reader.line(number, line)
        if rows.count or reader.devices.rows:
            return True
    return False


_PROSE = regex(
    r"^(?!\s*(?:[-$#|{}\[\]\\]|\w+\s*[=:(]|docker |vllm serve|python|export |kubectl ))(?=.*(?:\b[A-Za-z']+,? ){3}[A-Za-z']+)"
)


class Prose:
    """Topics of sentences that stand in a text of another kind: what people write around a command."""

    def __init__(self) -> None:
        self.rows = Rows()
        self.reader = _Reader(self.rows)

    def chunk(self, chunk: Chunk) -> None:
        """Read one chunk; commands, settings and records are passed over."""
        if chunk.first_line > 400:
            return
        for number, line in enumerate(chunk.data[:HEAD_BYTES].split(b"\n"), chunk.first_line):
            text = line[:_LINE_CAP].decode("utf-8", "replace")
            if _PROSE.match(text) and not _is_log(text):
                plain = _plain(text)
                self.reader.devices.line(number, plain)
                for flag, value in _facts(plain):
                    self.rows.add("engine_flag", number, flag=flag, value=launch.shown(flag, value), origin="file")
                for topic, told in topics_of(plain):
                    self.reader._note(number, topic, told, text)

    def take(self) -> Iterator[Batch]:
        """What was read."""
        self.reader.end()
        yield from self.rows.take()


def read(path: str, chunks: Iterable[Chunk]) -> Iterator[Batch]:
    """Rows of every table that free text can fill, in the order of the text."""
    rows = Rows()
    reader = _Reader(rows)
    document: list[bytes] | None = None
    begun = False
    for chunk in chunks:
        if not begun and chunk.data.strip():
            begun = True
            document = [] if chunk.data.lstrip()[:1] == b"{" else None
        if document is not None:
            if sum(map(len, document)) < HEAD_BYTES:
                document.append(chunk.data)
            continue
        for number, text in chunk.lines(_LINE_CAP):
            reader.line(number, text)
        if rows.count >= 20_000:
            yield from rows.take()
    reader.end()
    if document is not None:
        text = b"".join(document).decode("utf-8", "replace")
        adapter = _adapter(text)
        for row in [adapter] if adapter else _request(text):
            rows.add("note", 1, **row)
    yield from rows.take()
