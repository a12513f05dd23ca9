"""What is known of a model: its layers' caches, its parameters by the way they are shared out, its checkpoint.

Frozen facts without arithmetic; `config.py` reads them from a config.json, `catalogue.py` from the shipped list.
"""

from __future__ import annotations

from dataclasses import dataclass

FULL, SLIDING, CHUNKED, LATENT = "full", "sliding", "chunked", "latent"
CROSS, RECURRENT, UNKNOWN = "cross", "recurrent", "unknown"


@dataclass(frozen=True)
class Cache:
    """What one layer keeps while a request lives.

    `full` every token; `sliding` and `chunked` only the last `window` tokens; `latent` one compressed entry per token
    (MLA); `cross` the tokens of an encoder, not of the request; `recurrent` one state per request however long it is;
    `unknown` something that no formula here covers. Dimensions are elements at TP 1. A recurrent state of unknown size has `state_elements` None.
    """

    kind: str
    kv_heads: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    window: int | None = None
    latent_dim: int = 0
    index_dim: int = 0
    query_heads: int = 0
    query_head_dim: int = 0
    state_elements: int | None = None
    conv_elements: int = 0


@dataclass(frozen=True)
class Parameters:
    """Parameters by how they are shared out and whether a quantised checkpoint leaves them alone; counts, not bytes.

    `embedding` and `head` are the vocabulary matrices (`head` 0 where tied). `kv` are the K and V projections, which
    stop dividing at one head per rank. `replicated` linear layers stand on every rank (latent down-projections).
    `small` are norms, biases of norms and routers: on every rank, never quantised. `experts` are routed experts, `rest`
    every other linear layer. `absorbed` is what MLA keeps a second time, unquantised, in the dtype of the model.
    """

    embedding: int
    head: int
    kv: int
    replicated: int
    small: int
    experts: int
    rest: int
    absorbed: int = 0

    @property
    def total(self) -> int:
        """What a checkpoint holds."""
        return self.embedding + self.head + self.kv + self.replicated + self.small + self.experts + self.rest


@dataclass(frozen=True)
class Model:
    """One architecture. None is unknown.

    `pattern` has for each decoder layer the index of its cache in `caches`, -1 for a layer without one. `params` is the
    published or counted total (`basis` says which), `parts` their division where it can be counted. `quantization` and
    `kv_cache_scheme` are those of the checkpoint. `confirmed` is `y` (fields read in a public config copy or a tool's
    catalogue), `partial` (library defaults or nominal figures), `n` (knowledge only), `config` (the user's file).
    """

    name: str
    family: str
    hidden_size: int
    vocab_size: int | None
    heads: int
    caches: tuple[Cache, ...]
    pattern: tuple[int, ...]
    max_position_embeddings: int | None = None
    dtype: str = "bfloat16"
    intermediate_size: int | None = None
    experts_per_token: int = 0
    parts: Parameters | None = None
    params: int | None = None
    basis: str = "unknown"
    quantization: str | None = None
    kv_cache_scheme: str | None = None
    checkpoint_bytes: int | None = None
    multimodal: bool = False
    confirmed: str = "n"
    source: str = ""
    notes: str = ""

    @property
    def layers(self) -> int:
        """Decoder layers, with and without a cache."""
        return len(self.pattern)

    @property
    def kv_heads(self) -> int | None:
        """KV heads of the layers that have any, the most; None for latent and recurrent caches alone."""
        return max((cache.kv_heads for cache in self.caches), default=0) or None

    @property
    def latent(self) -> bool:
        """MLA: every rank keeps the whole entry."""
        return any(cache.kind == LATENT for cache in self.caches)

    @property
    def hybrid(self) -> bool:
        """Layers of more than one kind of cache: one pool in several groups."""
        return len({cache.kind for cache in self.caches}) > 1
