"""What is known of a model: its layers' caches, its parameters by the way they are shared out, its checkpoint.

Frozen facts without arithmetic; `config.py` reads them from a config.json, `catalogue.py` from the shipped list.
"""

from __future__ import annotations

from dataclasses import dataclass

from oomdoc.regexes import regex

FULL, SLIDING, CHUNKED, LATENT = "full", "sliding", "chunked", "latent"
CROSS, RECURRENT, ENCODER, UNKNOWN = "cross", "recurrent", "encoder", "unknown"
COMPRESSED = "compressed"


_POOLED = regex(r"(?i)embed|reward|(?<![a-z])(e5|bge|gte)(?![a-z])")
_SCORING = regex(r"(?i)rerank")


@dataclass(frozen=True)
class Cache:
    """What one layer keeps while a request lives.

    `full` every token; `sliding` and `chunked` only the last `window` tokens; `latent` one compressed entry per token
    (MLA); `cross` the tokens of an encoder, not of the request; `recurrent` one state per request however long it is;
    `compressed` one entry for `ratio` tokens and, of the last `window` of them, one each (DeepSeek-V4; ratio 0: the window
    alone); `encoder` nothing at all (an embedding model reads its text at once); `unknown` something that no formula here
    covers. Dimensions are elements at TP 1. A recurrent state of unknown size has `state_elements` None;
    `state_bytes_each` is the width that the config states for its elements, 2 where it states none. `conv_width` is
    the width of one step of the convolution, for speculation keeps one more step per draft token. `side_bytes` is what a
    sparse indexer keeps of a token beside keys, values or latents, on every rank. `early_index_dim` is what early releases
    keep in a layer that looks where another's indexer has looked (`kv.SHARED_INDEXER_SINCE`). `wide` layers stay in 16 bits
    whatever KV dtype is asked for (`kv.WIDE_AT_EACH_END`).
    """

    kind: str
    kv_heads: int = 0
    head_dim: int = 0
    v_head_dim: int = 0
    window: int | None = None
    latent_dim: int = 0
    index_dim: int = 0
    early_index_dim: int = 0
    query_heads: int = 0
    query_head_dim: int = 0
    state_elements: int | None = None
    conv_elements: int = 0
    state_bytes_each: int = 2
    conv_width: int = 0
    side_bytes: float = 0.0
    ratio: int = 0
    wide: bool = False

    @property
    def sparse(self) -> bool:
        """Latents that a sparse indexer chooses from (DeepSeek-V3.2, GLM-5)."""
        return self.kind == LATENT and bool(self.index_dim or self.early_index_dim)


@dataclass(frozen=True)
class Parameters:
    """Parameters by how they are shared out and whether a quantised checkpoint leaves them alone; counts, not bytes.

    `embedding` and `head` are the vocabulary matrices (`head` 0 where tied). `kv` are the K and V projections, which
    stop dividing at one head per rank. `replicated` linear layers stand on every rank (latent down-projections).
    `small` are norms, biases of norms and routers: on every rank, never quantised. `experts` are routed experts, `rest`
    every other linear layer; `attention` (projections of attention or of a recurrent layer) and `shared` (shared
    experts) are parts of it that many 4-bit checkpoints leave in 16 bits. `absorbed` is what MLA keeps a second time,
    unquantised, in the dtype of the model; `folded` what releases 0.7 kept instead (`weights.FOLDED_UNTIL`).
    `entry` are a Nemotron-H's attention blocks and as many state-space blocks, which lead into them: part of `attention`. `linear` are the
    projections of delta nets, another part of it.
    """

    embedding: int
    head: int
    kv: int
    replicated: int
    small: int
    experts: int
    rest: int
    absorbed: int = 0
    attention: int = 0
    shared: int = 0
    folded: int = 0
    entry: int = 0
    linear: int = 0

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
    catalogue), `partial` (library defaults or nominal figures), `n` (knowledge only), `config` (the user's file), `name`
    (estimated from the model's name alone). `draft_layers` are layers for speculation (MTP) that the checkpoint holds.
    `checkpoint_format` is the format that `checkpoint_bytes` speaks of (None: 16 bits); `quantization` may be another
    one by a copy's name. `copy_bytes` are the files of the very copy that was asked for, one size for each of its revisions. `asked` is the repository that was asked for, where a copy's differs. `tower_params` are those of an encoder beside the counted language model.
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
    expert_size: int | None = None
    parts: Parameters | None = None
    params: int | None = None
    basis: str = "unknown"
    quantization: str | None = None
    kv_cache_scheme: str | None = None
    checkpoint_bytes: int | None = None
    checkpoint_format: str | None = None
    copy_bytes: tuple[int, ...] = ()
    tower_params: int | None = None
    multimodal: bool = False
    asked: str = ""
    rope_scaled: bool = False
    own_positions: bool = False
    draft_layers: int = 0
    confirmed: str = "n"
    source: str = ""
    notes: str = ""

    @property
    def maker(self) -> str:
        """Who published the copy that was asked for, in lower case; empty where nobody named an owner."""
        owner, slash, _ = self.asked.rpartition("/")
        return owner.rpartition("/")[2].lower() if slash else ""

    @property
    def layers(self) -> int:
        """Decoder layers, with and without a cache; a layer with attention and a state space side by side counts twice."""
        return len(self.pattern)

    @property
    def kv_heads(self) -> int | None:
        """KV heads of the layers that have any, the most; None for latent and recurrent caches alone."""
        return max((cache.kv_heads for cache in self.caches), default=0) or None

    @property
    def latent(self) -> bool:
        """MLA and what came after it: every rank keeps the whole entry."""
        return any(cache.kind in (LATENT, COMPRESSED) for cache in self.caches)

    @property
    def recurrent(self) -> bool:
        """Some layers keep one state per request instead of a token's keys and values."""
        return any(cache.kind == RECURRENT for cache in self.caches)

    @property
    def encoder(self) -> bool:
        """An embedding model that keeps nothing between tokens."""
        return bool(self.caches) and all(cache.kind == ENCODER for cache in self.caches)

    @property
    def pooled(self) -> bool:
        """By its name it gives vectors or scores and no tokens, so that nothing is sampled."""
        return self.encoder or _POOLED.search((self.asked or self.name).rpartition("/")[2]) is not None

    @property
    def scoring(self) -> bool:
        """By its name it scores, by a head of its own or by the next token: whether it samples, only its server says."""
        return not self.pooled and _SCORING.search((self.asked or self.name).rpartition("/")[2]) is not None

    @property
    def hybrid(self) -> bool:
        """Layers of more than one kind of cache: one pool in several groups."""
        return len({cache.kind for cache in self.caches}) > 1
