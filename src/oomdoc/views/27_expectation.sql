-- says: what the model of the engine in focus ought to take on one rank, against what was logged; NULL where the model is not known, no row where nothing is expected
-- scope: incident
-- model: architecture that was computed
-- weights_low_bytes: weights of the model itself per rank, the least
-- weights_high_bytes: weights per rank, the most, with a draft model and the slots of adapters
-- feature_bytes: what a draft model and the slots of adapters take beside them, at least; NULL = none is set, or not known
-- weights_ratio: loaded / expected
-- wider: what is held is at least 1.5 times what the checkpoint should take: a wider format was loaded
-- weights_ref: where the loaded size stands
-- kv_bytes_per_token: of all layers, per rank
-- kv_ratio: measured bytes of a token / expected
-- kv_heads: KV heads of the model; NULL = none, or not known
-- vocab_size: rows of the vocabulary; NULL = not known
-- step_bytes: what the largest step takes at its peak, at most, per rank: the forward pass, and the sampler unless a layer of experts failed; NULL = its tokens or the model are not known, or an encoder takes what it takes
-- positions: tokens of the longest context that the checkpoint states, the default of max_model_len; NULL = not known of this very checkpoint
-- feature_loaded: what was loaded is the model and its features, and a third of it at least are these, or nothing is left for KV and they are several times what is missing; NULL = nothing of the kind is set, or a figure lacks
-- latent: every rank keeps the whole cache, whatever TP is
-- max_num_batched_tokens: tokens of a step, the default of the release on such a device; NULL = not known
-- kv_heads_replicated: more ranks than KV heads: a head stands on several ranks
WITH x AS (
  SELECT any_value(model) AS model, max(low) FILTER (name = 'weights_bytes') AS low,
    max(high) FILTER (name = 'weights_bytes') + coalesce(max(high) FILTER (name = 'feature_bytes'), 0) AS high,
    max(low) FILTER (name = 'kv_bytes_per_token') AS each, max(low) FILTER (name = 'feature_bytes') AS feature,
      max(low) FILTER (name = 'kv_heads') AS kv_heads, max(low) FILTER (name = 'vocab_size') AS vocab,
      max(low) FILTER (name = 'positions') AS positions, max(low) FILTER (name = 'latent') = 1 AS latent,
      max(low) FILTER (name = 'max_num_batched_tokens') AS batched, max(high) FILTER (name = 'step_token_bytes') AS step_token,
        max(low) FILTER (name = 'multimodal') AS multimodal, count(*) AS n
  FROM expected_figure
)
SELECT x.model, low::BIGINT AS weights_low_bytes, high::BIGINT AS weights_high_bytes, feature::BIGINT AS feature_bytes,
  e.weights_bytes / ((low + high) / 2) AS weights_ratio,
  greatest(e.weights_bytes, CASE WHEN f.phase = 'load' THEN coalesce(f.live_bytes, 0) END) > $wider_format * high AS wider,
  coalesce(e.weights_ref, f.oom_ref) AS weights_ref, each AS kv_bytes_per_token, e.kv_bytes_per_token / each AS kv_ratio,
    kv_heads::BIGINT AS kv_heads, vocab::BIGINT AS vocab_size, -- in a layer of experts neither the encoder nor the sampler runs
  CASE WHEN f.in_moe THEN coalesce(e.max_num_batched_tokens, batched) * step_token
    WHEN x.multimodal = 0 THEN coalesce(e.max_num_batched_tokens, batched) * step_token + e.max_num_seqs * vocab * $sampler_entry END::BIGINT AS step_bytes,
  positions::BIGINT AS positions,
  e.weights_bytes BETWEEN (low + feature) * (1 - $feature_near) AND high * (1 + $feature_near)
    AND (feature >= $feature_part * e.weights_bytes OR feature >= $feature_decides * -e.kv_available_bytes AND e.kv_available_bytes <= 0)
    AS feature_loaded, latent, batched::BIGINT AS max_num_batched_tokens,
  CASE WHEN NOT coalesce(latent, false) THEN e.tensor_parallel_size > kv_heads END AS kv_heads_replicated
FROM x, engine e, failure f WHERE x.n > 0
