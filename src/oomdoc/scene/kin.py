"""Names by which the bundle's server goes, and what workloads that serve a language model are called."""

from __future__ import annotations

from dataclasses import dataclass

from oomdoc.regexes import regex
from oomdoc.scene.places import ENGINE, workload_of

_SERVING = regex(
    r"(?i)llm|gpt|chat|(?<![a-z])(?:ai|nim|tgi|tei|vlm|vl|moe|rag|kv|tp|gpu)(?![a-z])|models?(?![a-z])|infer|predict|serv(?:e|ing)(?![a-z])|genai|embed|rerank|decod|prefill|"
    r"triton|llama|qwen|mistral|mixtral|deepseek|gemma|gemini|phi-?\d|falcon|granite|baichuan|internlm|glm|yi-\d|nemotron|kimi|minimax|lora|whisper|"
    r"completion|assist(?:ant)?(?![a-z])|copilot|textgen|transformer|(?<!search-)engine|(?<![a-z])ray(?![a-z])|mooncake|lmcache|cache-server"
)
"""What workloads that serve a language model are called: the task, the field, families of models, parts of an engine."""
_TASK = regex(r"rerank|embed|whisper|transcri|guard")
"""What stands beside a language model, by the name of its task."""
_WORD = regex(r"[a-z]{4,}")
_COMMON = frozenset(
    [
        "vllm",
        "serve",
        "server",
        "service",
        "logs",
        "file",
        "files",
        "model",
        "models",
        "text",
        "json",
        "yaml",
        "metrics",
        "metric",
        "node",
        "nodes",
        "pods",
        "data",
        "main",
        "instruct",
        "base",
        "chat",
        "kube",
        "default",
        "describe",
        "events",
        "event",
        "docker",
        "inspect",
        "nvidia",
        "dmesg",
        "kernel",
        "journal",
        "notes",
        "requests",
        "request",
        "gateway",
        "config",
        "stdout",
        "stderr",
        "previous",
        "current",
        "output",
    ]
)


def words_of(text: str) -> set[str]:
    """The words of a name that tell something: of four letters and more, none that every bundle has.

    >>> sorted(words_of("aurora-server-7b.log"))
    ['aurora']
    """
    return {word for word in _WORD.findall(text.lower()) if word not in _COMMON}


@dataclass(frozen=True)
class Kin:
    """Names by which the bundle's server goes, to compare other names with: words of its model, its sources, its pods."""

    words: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()
    """Sources that show it."""

    def shown_beside(self, source: str) -> bool:
        """Whether another source shows the server."""
        return bool(self.sources - {source})

    def shares_a_word(self, name: str) -> bool:
        """Whether a name shares a word with this server's own names.

        >>> Kin(frozenset({"aurora"})).shares_a_word("aurora-0"), Kin(frozenset({"aurora"})).shares_a_word("reranker-0")
        (True, False)
        """
        return bool(words_of(workload_of(name)) & self.words)

    def of_another_task(self, name: str) -> bool:
        """Whether a name is that of a server for a task beside generation, and none of this server's own names has that task.

        >>> Kin(frozenset({"qwen"})).of_another_task("llm-reranker-1"), Kin(frozenset({"reranker"})).of_another_task("llm-reranker-1")
        (True, False)
        """
        own = " ".join((*self.words, *self.sources)).lower()
        tasks = set(_TASK.findall(name.lower()))
        return bool(tasks) and not any(task in own for task in tasks)

    def has(self, name: str | None) -> bool:
        """Whether a name is one of a model server, or shares a word with this server's own names.

        >>> Kin(frozenset({"aurora"})).has("aurora-7d9f8c6b5-x2x4z"), Kin().has("checkout-api-0"), Kin().has("llm-0")
        (True, False, True)
        """
        if not name:
            return False
        stem = workload_of(name)
        return bool(ENGINE.search(name) or _SERVING.search(stem) or words_of(stem) & self.words)
