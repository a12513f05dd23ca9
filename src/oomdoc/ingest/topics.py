"""What free text is asked for: topics, as data. Each is a few shapes of words, with what speaks against them.

Texts are read by words of the field, with an eye on negation ("no LoRA", "does not grow"). Words alone match anything: each topic has
samples and near misses, sentences that nearly say it, in `topics.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from oomdoc.ingest.prose_words import COUNT, FAILS, NUMBERS, SIZE, WORKS
from oomdoc.regexes import regex
from oomdoc.units import GIB, parse_size


@dataclass(frozen=True)
class Topic:
    """A topic of free text: what says it (`shape`), and what in the clause speaks against it (`unless`).

    `deniable`: whether a "no" before the words, or an "off" behind them, takes them back.
    """

    name: str
    says: str
    shape: re.Pattern[str]
    unless: re.Pattern[str] | None = None
    deniable: bool = True


def _topic(name: str, says: str, *shapes: str, unless: str | None = None, deniable: bool = True) -> Topic:
    other = regex(unless, re.I) if unless else None
    return Topic(name, says, regex("|".join(shapes), re.I), other, deniable)


_SHORT = r"(?:out ?of ?memory|(?<![a-z])oom(?![a-z])|\b(?:crash\w*|dies|died|fails?|failed)\b)"
_EAGER = r"(?:enforce[-_ ]?eager|disable[-_ ]cuda[-_ ]graphs?|\beager\b|cuda ?graphs? (?:off|disabled)|(?:without|disabling|no) cuda ?graphs?)"
_MEMORY = r"\b(?:memory|rss|ram|vram|resident|[kmgt]i?b|heap)\b"
_ATTEMPT = r"(?:start|attempt|try|launch|run|time|restart)"
_ANEW = r"(?:re-?start\w*|reboot\w*|fresh(?:ly)?(?: started)? (?:\w+ )?(?:server|engine|pod|process|container|instance|start)|newly started \w+|new (?:server|pod|process|container|instance))"
_SAME = (
    r"(?:(?:same|identical) (?:\w+ )?"
    r"(?:prompts?|inputs?|requests?|documents?|messages?|payloads?|images?|photos?|files?|videos?|quer(?:y|ies)|batch(?:es)?|calls?|clips?|pdfs?|conversations?|one|ones)"
    r"|(?:exactly (?:this|that)|this exact|that exact|this very|the very) \w+)"
)
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
        rf"\b(?:short|small)(?:er)? {_PROMPT}\b[^.;]{{0,60}}(?:{WORKS}|\banswered\b)",
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
        unless=r"\b(?:container|docker|base|disk|oci) images?\b|text[- ]only|\bimages?(?:/s| ?per second)|\bepochs?\b",
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
        rf"{_EAGER}[^.;]{{0,60}}{WORKS}",
        rf"{WORKS}[^.;]{{0,60}}{_EAGER}",
        unless=FAILS,
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
        "passes-when-fresh",
        "what ended the server passes on one that was started anew",
        rf"\b{_ANEW}\b[^;]{{0,60}}\b{_SAME}\b[^;]{{0,60}}{WORKS}",
        rf"\b{_SAME}\b[^;]{{0,40}}{WORKS}[^.;]{{0,40}}\b(?:after|on|with|right behind) (?:a |an |the )?(?:\w+ )?{_ANEW}",
        rf"\b{_SAME}\b[^;]{{0,40}}\b(?:after|on|against|to) (?:a |an |the )?(?:\w+ )?{_ANEW}\b[^;]{{0,40}}{WORKS}",
        rf"\b(?:after|on) (?:a |an |the )?(?:\w+ )?{_ANEW}\b[^;]{{0,30}}\b{_SAME}\b[^;]{{0,40}}{WORKS}",
        unless=r"\b(?:smaller|shorter|half|other settings?|lower(?:ed)?|reduc\w+|with(?:out)? --|changed|instead)\b"
        rf"|(?:\b(?:not|neither|never)\b|n't\b)[^,;]{{0,12}}{WORKS}",
    ),
    _topic(
        "transient",
        "the next start or attempt succeeds",
        rf"\b(?:next|second|later|another|following|third|2nd) {_ATTEMPT}\b[^.;]{{0,50}}{WORKS}",
        rf"{WORKS}[^.;]{{0,40}}\b(?:on|at|after|with) (?:the |a )?(?:second|next|third|2nd) {_ATTEMPT}\b",
        rf"\b(?:retry|retrying|a retry|retries|trying again)\b[^.;]{{0,30}}{WORKS}",
        r"\bonly (?:happens|fails|occurs)?\s?(?:on |at )?(?:the )?first (?:start|attempt|run|launch)",
        r"\bfails? once\b",
        rf"\b(?:a minute|a moment|some seconds|seconds|minutes) later\b[^.;]{{0,40}}{WORKS}",
        r"\b(?:intermittent|sporadic|transient)(?:ly)?\b",
        unless=r"\bfails? (?:on |at )?(?:every|each)\b|\b(?:every|each) (?:start|attempt|time) fails\b",
    ),
    _topic(
        "several-engines",
        "several engines, instances or models share a device; value is how many",
        rf"\b(?P<n1>{COUNT}) (?:\w+ )?(?:instances|copies)\b",
        # engines are also the shards and replicas of one server, each with a device of its own
        rf"\b(?P<n2>{COUNT}) (?:\w+ )?(?:engines|servers|models|containers|processes|stages|replicas|services|jobs)\b"
        rf"[^.;]{{0,60}}\b(?:same|one|single|shared?|sharing|this|each) (?:\w+ )?{_DEVICE}\b",
        r"\b(?:second|another|other) (?:vllm |llm |inference )?(?:instance|engine|copy|server|model|process|job|"
        rf"container|notebook|service|user|application|program)s?\b[^.;]{{0,80}}\b(?:{_DEVICE}|already|holds?|uses?|occupies)\b",
        # a machine that people share is no device
        rf"\bshar(?:es?|ed|ing) (?:the |a |this |one |its )?(?:same |single )?{_DEVICE}\b(?! (?:server|node|box|machine|cluster|host|pool|farm|system)s?\b)",
        rf"\b{_DEVICE} (?:is|are|was) (?:also )?(?:shared|used by)\b",
        rf"(?<!\btp \d )(?<!\btp=\d )(?<!\btp\d )(?<!parallel \d )(?<!-size \d )\b(?:on|of) the same {_DEVICE}\b",
        rf"\bboth\b[^.;]{{0,30}}\b(?:on|use|share)\b[^.;]{{0,15}}\b{_DEVICE}\b",
        r"\bco-?located\b|\btime-?slic(?:ed|ing)\b",
        # that another program runs the same model there is a comparison, and no neighbour
        unless=r"\b(?:no|nothing|none) (?:other|else|another)\b|\bexclusive"
        r"|\b(?:serves?|runs?|loads?|handles?|holds?|starts?|hosts?) (?:it|this|(?:this|that|the same|the very) (?:model|one|checkpoint|file|weights))\b(?! (?:model|one) too)"
        r"|\b(?:serves?|runs?|loads?|answers?|works?|starts?|fits?) (?:\w+ ){0,2}(?:fine|well|happily|without (?:trouble|problem|error)s?)\b"
        rf"|\b(?:one {_DEVICE} each|its own {_DEVICE})\b",
    ),
    _topic(
        "idle-device",
        "devices are there that the engine does not use",
        r"\bonly (?:one|a single|the first|gpu ?\d|card ?\d)\b[^.;]{0,30}\b(?:used|busy|in use|loaded|works?)\b",
        r"\b(?:other|others|remaining|second|rest)\b[^.;]{0,20}\b(?:is|are|stays?|sits?|remains?) (?:idle|empty|unused|free)\b",
        rf"\b{_DEVICE}\b[^.;]{{0,20}}\b(?:is|are|stays?|sits?|remains?) (?:idle|unused)\b",
        rf"\b{COUNT} (?:of (?:them|the \w+|\d+) )(?:{_DEVICE} )?(?:is|are|stay|sit|remain) (?:idle|empty|unused)\b",
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
        rf"\b(?:tp|tensor[- ]parallel\w*)[ =]?\d+\b[^.;]{{0,60}}{WORKS}[.;,]?[^;]{{0,20}}\b(?:tp|tensor[- ]parallel\w*)[ =]?\d+\b"
        rf"[^.;]{{0,60}}\b(?:oom|out of memory|fails?|failed|crash\w*|dies)\b",
        rf"(?:{_SHORT}[^.;]{{0,60}}\b(?:tp|tensor[- ]parallel\w*)[ =]?(?P<many>\d+)\b"
        rf"|\b(?:tp|tensor[- ]parallel\w*)[ =]?(?P<many2>\d+)\b[^.;]{{0,40}}{_SHORT}).{{0,400}}?\b(?:tp|tensor[- ]parallel\w*)[ =]?(?P<few>\d+)\b[^.;]{{0,40}}(?:{WORKS}|\bfits?\b)",
        r"\b(?:each|every|all) (?:rank|gpu|card|device|shard)s?\b[^.;]{0,30}\b(?:own|whole|full) cop(?:y|ies)\b[^.;]{0,20}\b(?:kv|cache)\b",
        # of another model nothing follows for this one
        unless=r"\b(?:smaller|larger|bigger|tiny|different|other|another) (?:model|checkpoint)\b",
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
        r"\b(?:cuda|hip|npu|gpu|run|runs|ran|throws|until|go|goes|going|went|get|gets|got) out of memory\b|\boom(?:s|ed|[- ]kill\w*)?\b(?!\s?[:=]?\s?0\b|(?: killer)? (?:comes?|will|would|may|might|could|strikes?)\b)",
        r"\bOutOfMemory(?:Error)?\b|(?<![a-z._])oom(?![a-z_])(?!\s?[:=]?\s?0\b|[- ]killer (?:comes?|will|would|may|might|could|strikes?|score))|显存(?:不足|不够|溢出|爆)|爆显存|卡死",
        r"\b(?:crash(?:es|ed|ing)?|dies|died|killed|segfaults?|fails? to start|cannot start|won't start)\b",
        r"\bexit(?:s|ed)?(?: with)?(?: an?)? (?:exit )?(?:code|status) [1-9]\d{0,2}\b",
        # who asks whether it would fail tells of no failure: the verb stands before the one of whom it is asked
        unless=r"\b(?:does|would|will|do) (?:that|this|it|these) (?:mean|imply)\b|\bwhat (?:happens|would happen|will happen) (?:if|when)\b|\bwhat if\b"
        r"|(?<!why )(?<!how )\b(?:will|would|could|can|should|might|may) (?:it|we|i|they|he|she|this|that|these|the \w+|a \w+|one|another \w+) (?:\w+ ){0,2}"
        r"(?:oom|run|go|get|crash|die|fail|be killed|exhaust)\b"
        r"|\bis (?:it|there) (?:possible|likely|a (?:risk|danger|chance))\b"
        # a speed that dies from so much to so much is a figure that falls
        r"|\b(?:dies|died),? (?:down )?(?:from|to) (?:about |around |~ ?)?\d"
        r"|\b(?:talks?|speaks?|warns?|mentions?|says something) (?:of|about)(?: \w+){0,2} oom\b"
        r"|(?:是不是|是否|会不会|难道)[^，。！；]{0,12}(?:显存|内存|OOM)|(?:网上|有人|据|听)说[^，,。！；]{0,12}(?:显存|内存|OOM)|\b(?:signal )?terminated program \w+",
    ),
    _topic(
        "unanswered",
        "requests are said to get no answer",
        r"\b(?:no|without(?: an?| any)?) (?:answer|response|reply|tokens?|output)s?\b(?= ?(?:$|[,.;)]|after|within|for|since|in \d|at all|until|yet|by|from the (?:server|engine)|comes?|came|arriv))",
        r"\b(?:none|nothing|not one|no request) (?:was |is |were |got |gets |has been |have been |of them (?:was |is |were )?)?(?:answered|returned|comes? back|came back|completes?|completed|finish(?:es|ed)?)\b",
        r"\bnever (?:answer\w*|return\w*\b(?! (?:a |any |the |its |one )?(?:single )?(?:bytes?|memory|v?ram|[kmg]i?b|pages?|blocks?)\b)|respond\w*|comes? back|complet\w*|finish\w*)\b|\b(?:hangs?|hung) (?:forever|indefinitely|until|for \d|after)",
        r"\b(?:still|keeps?) (?:waiting|hanging|pending|loading) (?:after|for) \d",
        r"\b(?:every|all|each) (?:\w+ ){0,3}?(?:calls?|requests?|queries|query|completions?|prompts?)\b(?! (?:that|may|might|can|could|would|should|will)\b)[^.;]{0,30}\b(?:times? out|timed out|(?:runs?|ran|running) into (?:\w+ ){0,2}?(?:\d+ ?s(?:ec\w*)? )?(?:\w+ )?time-?outs?|(?:ends?|ended|fail(?:s|ed)?|comes? back|came back) (?:with|in|as) (?:an? )?(?:time-?outs?|408|504))\b",
        # memory that is not given back
        unless=r"\b(?:answer key|no response (?:body|format|schema))\b|\b[\d.,]+ ?[KMGT]i?B\b.{0,160}\bnever comes? back\b|\b(?:memory|v?ram)\b.{0,120}\bnever comes? back\b|^\W{0,3}and never comes? back\b",
        deniable=False,
    ),
    _topic(
        "requests-lost",
        "requests are said to be lost or failed; value is how many",
        r"(?<![\d.,])(?P<n>[1-9][\d,]*) (?:\w+ ){0,2}requests? (?:were |was |are |have been |had been |got )?(?:lost|dropped|failed|refused|rejected)\b",
        r"\blost (?P<n2>[1-9][\d,]*) (?:\w+ )?requests?\b",
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
        rf"\bexpandable[-_ ]segments?\b[^.;]{{0,60}}(?:{WORKS}|\b(?:finish(?:es|ed)|surviv(?:es|ed)|complet(?:es|ed)|(?:ran|runs) through|no longer|not (?:occur|happen)\w*|(?:any ?more|since then)))",
        unless=r"\bif reserved but unallocated\b|\b(?:try|tried|setting)\b[^.;]{0,60}\b(?:not|n't|still|same)\b",
        deniable=False,
    ),
    _topic(
        "expandable-in-vain",
        "expandable segments were tried and change nothing",
        r"\bexpandable[-_ ]segments?(?:[:=]\s?true)?\b[^.;]{0,50}\b(?:the same|still (?:fails?|oom\w*|crash\w*|dies|runs? out)|no (?:difference|change|help|effect)|(?:did|does) ?n[o']t (?:help|change)|in vain|unchanged|same (?:end|error|result|failure|crash|oom|place))\b",
        deniable=False,
    ),
    _topic(
        "nonsense-answered",
        "answers are no text: one character without end, or not a number in the logits",
        r"\b(?:gibberish|garbled|gibberisch|kauderwelsch)\b|\b(?:nonsense|garbage|random (?:tokens|characters|symbols)) (?:output|answers?|text|tokens?|replies)\b|\b(?:outputs?|answers?|repl(?:y|ies)|returns?|generat\w+) (?:only |nothing but |just )?(?:nonsense|garbage|exclamation marks?|rubbish)\b",
        r"[\"'“「:]\s?!{16,}|\bexclamation marks?\b[^.;]{0,30}\b(?:only|endless\w*|until|forever)\b|\blogits?\b[^.;]{0,24}\b(?:inf|nan)\b|感叹号|乱码|文字化け|кракозябр",
    ),
    _topic(
        "off-cures",
        "without a feature the same works",
        rf"\b(?:without|disabling|removing|switching off|not using)\s[^.;]{{0,50}}?{WORKS}",
        rf"{WORKS}[^.;]{{0,30}}\b(?:without|(?:after|when|by) (?:disabling|removing))\b",
        rf"{WORKS}[^.;]{{0,50}}=\s?(?:none|false|0)\b",
        rf"\b(?:base|plain|target) model (?:alone|by itself|on its own)\b[^.;]{{0,40}}{WORKS}",
        rf"\bwith [^.;]{{2,40}} (?:switched|turned) off\b[^.;]{{0,40}}{WORKS}",
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
        rf"\+\s?(?P<step>{SIZE}) (?:per|each|every|/) ?\w+",
        r"\b(?:memory|rss|ram|vram)\b[^.;]{0,40}"
        r"\b(?:not|never) (?:freed|released|returned|come back|goes? (?:back|down))\b",
        # what a tool took from one snapshot of a process to the next: its maps (pmap, smaps), its heap (tracemalloc, jemalloc)
        rf"\b(?:anon\w*|heap|mappings?|rss|resident|private|dirty)\b[^.;:=]{{0,40}}\b(?:net|diff(?:erence)?|delta|growth|change)\s*[:=]\s*\+\s?{SIZE}",
        rf"\bsize=[\d.]+ ?\w+ \(\+{SIZE}\), count=",
        unless=r"\bkv\b|cache usage|\b(?:does|do|did) not (?:grow|climb|rise|leak)|\bno (?:growth|leak)|n't grow"
        r"|\b(?:please|try|to|we|by|should|must|could|can|may|might|would) (?:increase|increasing|raise)\b|\bstays? flat\b"
        # the order of words asks, wherever the sign at its end stands
        r"|(?:^|[.;:!?,] ) ?(?:is|are|does|do) (?:the|my|our|this|that|its|it|something|anything)\b(?: \w+){0,4}? (?:leak|grow|climb|ris|creep|increas)\w*"
        r"|\b(?:find out|check|see|tell|know|ask\w*|unsure) (?:me |us )?(?:what|whether|if|who) (?:\w+ ){0,2}(?:leak|grow|climb|ris)|\bfix(?:ed|es)? (?:a|an|the|some|several|potential|possible)\b",
    ),
    _topic(
        "repeated-prefix",
        "the same prefixes are sent again",
        r"\b(?:same|identical|shared|repeated|repeating)\b(?! \d+ )(?: \S+){0,2} (?:system )?"
        r"(?:prompts?|prefix(?:es)?|preambles?|instructions?|messages?)\b",
        # `one prompt of 90,000 tokens` and `one prompt near the limit` are single ones: who shares it has to stand beside it
        r"\b(?:common (?:system )?|one system )(?:prompts?|prefix(?:es)?|preambles?)\b|\bone (?:prefix|preamble)\b",
        r"\bone (?:long |common |fixed |big )?prompt\b[^.;]{0,30}\b(?:all|every\w*|each|both|again)\b",
        r"\b(?:prompts?|prefix(?:es)?) (?:is|are) (?:repeated|reused|sent again|the same|shared)\b",
        r"\b(?:sessions?|conversations?|chats?|users?|prompts?|prefix(?:es)?)\b[^.]{0,80}\b(?:in turn|in a circle|"
        r"round[- ]robin|in rotation|alternat\w+|rotat\w+|cyclic\w*|again and again)\b",
        # prompts that are sent one after the other may be any
        r"\b(?:sessions?|conversations?|chats?|users?|prefix(?:es)?)\b[^.]{0,80}\bone after (?:the other|another)\b",
        # a load that several tries have in common, and a probe of a few requests of which the hits are told, are no traffic that comes again
        # nor is one that was tried again behind a failure
        unless=r"\b(?:error|log|warning) messages?\b|\bre-?start\w*\b|\b(?:same|identical) (?:prompts?|messages?) (?:fails?|failed|works?|worked|passe[sd]|crash\w*|each|everywhere|throughout|as (?:before|above)|(?:for|in|at|on|with) (?:each|every|all|both))\b"
        r"|(?<![\d.])(?!0+(?:\.0+)? ?%)\d+(?:\.\d+)? ?% (?:of )?(?:prefix[- ]?)?(?:cache[- ]?)?hits?\b",
    ),
    _topic(
        "texts-differ",
        "no text is sent twice",
        r"\b(?:with|only|of|every|each|all) (?:\w+ ){0,2}?(?:unique|distinct|unrelated|never[- ]repeated) (?:prompts?|texts?|documents?|questions?|inputs?)\b",
        r"\b(?:prompts?|texts?|documents?|questions?|inputs?) (?:is|are|was|were|being) (?:all |always |each |every one )?(?:unique|distinct|random|never (?:repeated|the same|sent again))\b",
        r"\b(?:every|each|no) (?:prompt|text|document|question|input) (?:is |was )?(?:unique|(?:only )?once|(?:sent |used |asked )?twice)\b",
        unless=r"\b(?:suffix|tail|end|question)\w* (?:is|are|was|were) (?:unique|random|distinct)\b|\b\d+ (?:unique|distinct) ",
    ),
    _topic(
        "no-hits",
        "the prefix cache is not hit",
        r"\bhits?\b[^.;]{0,40}(?:\bnone\b|\bzero\b|(?<![\d.])0(?:\.0+)?(?: ?%|\b)(?![\d.]))",
        r"(?:\b(?:no|zero|without)|(?<![\d.,])0) (?:prefix[- ]?)?(?:cache[- ]?)?hits?\b",
        r"\bhit rate\b[^.;\d]{0,20}(?<![\d.])0(?:\.0+)?(?: ?%|\b)(?![\d.])",
        r"\bcached[_ ]tokens?\b[^.;\d]{0,12}(?<![\d.])(?:0|zero|none)\b(?![\d.])",
        r"\bnever hits?\b|\bnothing (?:is )?(?:hit|reused)\b",
        # what comes once cannot be hit
        unless=r"\bCacheInfo\(|\blru_cache\b|\bhits?[=:] ?[1-9]"
        r"|\b(?:prompts?|requests?|documents?|inputs?|questions?)\b[^.;]{0,20}\b(?:different|unique|random|distinct)\b"
        r"|\b(?:different|unique|random|distinct) (?:prompts?|requests?|documents?|inputs?|questions?)\b"
        r"|\b(?:different|new|another|fresh|unlike) \w+ (?:each|every|for each|for every|in each|in every) (?:time|request|call|run|prompt|question)\b",
        deniable=False,
    ),
    _topic(
        "shm",
        "the size of shared memory is spoken of; value in bytes where told",
        rf"(?:/dev/shm|\bshm[-_ ]?size\b|\bshared memory\b)(?:[^.;\n]{{0,40}}?(?P<size>{SIZE}))?",
        unless=r"broadcast block",
    ),
    _topic(
        "lower-utilization-cures",
        "a lower utilization cures it; value is that utilization",
        rf"(?:utili[sz]ation|gpu[-_ ]mem\w*)[^.;]{{0,30}}(?P<share>0\.\d+)[^.;]{{0,40}}{WORKS}",
        rf"{WORKS}[^.;]{{0,40}}(?:utili[sz]ation|gpu[-_ ]mem\w*)[^.;\d]{{0,20}}(?P<share2>0\.\d+)",
        unless=FAILS,
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
        r"\b(?:load|queue\w*|wait\w*|deferred|concurren\w+|backlog)\b[^.;]{0,120}\b(?:replicas?|pods)\b[^.;]{0,30}\b(?:unchanged|constant|the same|(?:do|does|did) not (?:change|rise|grow|follow)|never (?:changed?|rise|rose|grew))\b",
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
        # the driver of Windows (WDDM, also under WSL) puts into the host's memory what a device has no room for, and everything goes on, slower
        "spilled",
        "memory of a device that the driver has put into the host's, in bytes",
        r"(?P<gb>\d{1,3}(?:[.,]\d{1,2})?) ?GB\b[^.;\d]{0,12}\bshared (?:gpu|video|graphics) memory\b",
        r"\bshared(?: (?:gpu|video|graphics))?(?: memory)?(?: (?:is|at|shows|used))?[: ]{1,3}(?P<gb2>\d{1,3}(?:[.,]\d{1,2})?)(?= ?(?:/ ?\d{1,3}(?:[.,]\d{1,2})? ?)?GB\b)",
        r"\bspill(?:s|ed|ing)? (?:over )?(?:in)?to (?:the )?(?:system|host|main|shared) (?:ram|memory)\b",
    ),
    _topic(
        "unified-memory",
        "CPU and GPU share one memory",
        r"\bunified memory\b|\bGB10\b|\bgfx115\d\b|\bDGX Spark\b|\bJetson\b|\bStrix Halo\b|\bGrace[- ]Hopper\b",
    ),
    _topic(
        "cold-compile",
        "the first start compiles with an empty cache",
        r"\b(?:compile|torch\.compile|inductor)[- ]cache\b[^.;]{0,40}\b(?:empty|deleted|cleared|cold|fresh|missing)\b",
        r"\b(?:empty|cold|cleared|fresh) (?:compile|compilation|inductor) cache\b",
        r"\bcold (?:start|compile|compilation)\b",
    ),
)  # fmt: skip
"""Every topic that free text is searched for."""

_DENIED = regex(
    r"(?:\b(?:no|not|without|never|neither|nor|non|excluding|except|disabled?|free of|instead of)|n't)"
    r"\W+(?:\w+\W+){0,2}$|\b(?:nothing|nobody|none(?: of \w+)?) (?:(?:has|have|had|ever|else|yet) ){0,2}$",
    re.I,
)
_OFF = regex(
    r"\W{0,4}?(?:is |are |was |were )?\W{0,4}?"
    r"(?:no\b(?! matter)|none\b|off\b|disabled|false|not\b|n/a|null|unused|(?<=> |→ )nothing\b(?=\s*(?:$|[;.,)]))|[:=]\s?0\b(?!\.))",
    re.I,
)
_ASKED = regex(
    r"(?:^|[.!?;:]\s|\bor\s(?=did\b|does\b|has\b|was\b|is\b))\W*(?:(?:and|so|but|or|now|then)\W+)?(?:is|are|was|were|does|do|did|has|have|can|could|should|would|will|might|may)\b(?!n't)[^.!?;]*$",
    re.I,
)
"""A question that yes or no answers, up to the words at hand: who asks whether something grows has not seen it."""
_INVERTED = regex(
    r"(?:^|[,.!?;:(]\s|\b(?:and|or|so|but)\s)\W*(?:is|are|was|were|does|do|did|has|have)\s(?:it|this|that|there|these|those|they|we|i)\b[^,.!?;]{0,40}$",
    re.I,
)
"""The same by the order of its words: its question mark may stand in the next line of the paragraph, or nowhere."""
_FEARED = regex(
    r"(?<!why )(?<!how )\b(?:will|would|might|could(?! not)|may(?! \d)|(?:is|are|be) going to|afraid|worr(?:y|ied)|fear(?:s|ed)?|whether|(?<!not )(?<!n't )(?<!never )expect|risk(?:s|ing)?|avoid(?:s|ing)?|prevent(?:s|ing)?|(?:when|how soon|at what point) (?:do|does)"
    r"|befürchten?|fürchten?|angst|crain(?:s|dre|t)|peur|miedo|tem(?:o|emos)|medo|receio|боюсь|боимся|опаса(?:юсь|емся))\b[^.!?;]{0,40}$"
    r"|(?:担心|擔心|担忧|害怕|生怕|恐怕|可能会|迟早会|会不会|心配|恐れ|걱정)[^。！？；.!?;]{0,20}$",
    re.I,
)
"""What may come, and has not."""
_EVERY = regex(r"\b(?:every|each|always|whenever)\b", re.I)  # what will happen every evening does
_HAPPENED = ("failure-told", "grows", "long-prompt")
_TO_ITS_END = regex(r"[^.!?;]*\?")
_STEP = regex(rf"(?:\+|\bby |\babout )\s?({SIZE})\s?(?:per|every|each|an?|/)\s?\w", re.I)
_MULTIPLE = regex(r"(?P<number>\d[\d,.]*)\s?(?P<k>k?)", re.I)


_FEATURES = ("prompt-logprobs", "lora", "draft-model", "multimodal")
_OFF_CURES = next(topic.shape for topic in TOPICS if topic.name == "off-cures")


def topics_of(text: str, begun: str = "") -> Iterator[tuple[str, float | None]]:
    """Topics of one line or sentence with their numbers: tokens, bytes, counts, shares, as each topic says.

    `begun` is what of the sentence stands in the line before: it denies and asks as well, and its own topics are told there.

    >>> list(topics_of("Fails with a 16k token prompt; --enforce-eager starts fine; no LoRA."))
    [('long-prompt', 16000.0), ('eager-cures', None)]
    >>> list(topics_of("OOM and no restart", begun="it ran for a day without")), list(topics_of("OOM and no restart"))
    ([], [('failure-told', None)])
    """
    start = len(begun) + 1 if begun else 0
    text = f"{begun} {text}" if begun else text
    for topic in TOPICS:
        for match in topic.shape.finditer(text, start):
            end = text.find(";", match.end())
            clause = text[text.rfind(";", 0, match.start()) + 1 : end if end >= 0 else len(text)]
            if topic.unless and topic.unless.search(clause):
                continue
            denied = _DENIED.search(text[: match.start()][-40:]) or _OFF.match(text[match.end() :])
            # what is off where it works was on where it failed
            if topic.deniable and denied and not (topic.name in _FEATURES and _OFF_CURES.search(clause)):
                continue
            before = text[: match.start()]
            if topic.deniable and _ASKED.search(before[-200:]) and _TO_ITS_END.match(text[match.end() :]):
                continue
            # up to the first word of the match, or to its last one, which may be what is asked for
            if topic.name in _HAPPENED and any(
                _INVERTED.search(upto[-80:]) for upto in (before, before + match[0].rstrip().rpartition(" ")[0] + " ")
            ):
                continue
            if topic.name in _HAPPENED and _FEARED.search(before[-60:]) and not _EVERY.search(clause):
                continue
            caught = match.groupdict()
            if caught.get("few") and int(caught["many"] or caught["many2"]) <= int(caught["few"]):
                continue
            value = _number(topic.name, match)
            if topic.name == "long-prompt" and value is not None and value < 4000:
                continue
            yield topic.name, value
            break


def _number(topic: str, match: re.Match[str]) -> float | None:
    """The number that a topic's shape caught."""
    caught = next(filter(None, match.groupdict().values()), None)
    if caught is None and topic == "grows" and (step := _STEP.search(match.string, match.start())):
        caught = step[1]
    if caught is None:
        return None
    if topic in ("grows", "shm"):
        return parse_size(caught)
    if topic == "spilled":
        return float(caught.replace(",", ".")) * GIB
    if caught.lower() in NUMBERS:
        return float(NUMBERS[caught.lower()])
    multiple = _MULTIPLE.fullmatch(caught.strip())
    if not multiple:
        return None
    try:
        return float(multiple["number"].rstrip(".,").replace(",", "")) * (1000 if multiple["k"] else 1)
    except ValueError:
        return None
