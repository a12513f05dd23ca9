-- says: the engine in focus: its settings with defaults of its version where the log is silent, and the figures it printed
-- scope: incident
-- version: engine version
-- version_number: major x 10^6 + minor x 10^3 + patch; NULL = unknown
-- generation: V0 or V1, as printed or as that version has it
-- platform: gpu or cpu, as far as the lines tell
-- model: model path or name
-- max_model_len: longest request in tokens
-- max_model_len_given: a person asked for it (logged or command)
-- gpu_memory_utilization: share of the device that the engine may plan with
-- utilization_origin: logged, command, metrics, figure, default
-- utilization_ref: where it stands
-- max_num_seqs: most sequences at once; NULL = default unknown
-- max_num_seqs_given: a person asked for it
-- max_num_batched_tokens: tokens of one step
-- tensor_parallel_size: TP
-- pipeline_parallel_size: PP
-- world_size: TP x PP; at least the workers seen where neither is stated
-- data_parallel_size: replicas of the engine, each with its own devices
-- parallel_given: TP or PP was stated
-- world_known: world_size is exact: stated, or nothing shows several workers
-- dtype: model dtype as printed
-- quantization: method as printed; NULL = none or unknown
-- kv_cache_dtype: as printed
-- enforce_eager: CUDA graphs switched off
-- prefix_caching: prefix caching on, by flag or default
-- speculative: a draft model or speculative method is configured
-- lora: LoRA is enabled
-- multimodal: an encoder cache was budgeted or the architecture is a vision model, and its settings do not switch that off
-- kv_cache_memory_bytes: KV size set by hand
-- num_gpu_blocks_override: pool set by hand, blocks
-- swap_space_gib: CPU swap space per GPU that a flag asks for
-- cpu_offload_gib: weights offloaded to the host per GPU
-- sleep_mode: sleep mode is enabled
-- expandable_segments: the allocator setting is on
-- weights_bytes: loaded per rank, the largest
-- weights_ref: where
-- kv_available_bytes: for KV, the smallest rank; may be negative
-- kv_available_max_bytes: the largest rank
-- kv_available_ref: where
-- kv_pool_tokens: tokens that the pool stores, the smallest
-- kv_pool_ref: where
-- max_concurrency: requests of max_model_len at once
-- num_gpu_blocks: blocks of the pool
-- graph_bytes: what captured graphs took, the largest
-- graph_estimate_bytes: what was planned for them
-- activation_bytes: profiled peak
-- non_torch_bytes: outside torch
-- total_bytes: device (or host node) total as the engine sees it
-- free_at_start_bytes: free when the engine began
-- budget_bytes: what the engine may plan with
-- host_available_bytes: host memory before loading
-- checkpoint_bytes: size of the checkpoint
-- served: the server came up
-- last_milestone: last step reached
-- kv_bytes_per_token: available KV bytes by tokens of the pool, per rank
-- start_ref: where the engine began
WITH earlier AS (
  -- a configuration that the metrics tell of a moment before this start, where they tell it of one behind its begin as well: an earlier life's
  SELECT DISTINCT g.source, g.line
  FROM seen.engine_flag g
  JOIN focus f ON true
  JOIN incident i ON i.incident = f.incident
  JOIN engine_start own ON own.start_id = i.start_id
  WHERE g.origin = 'metrics' AND g.t < own.t AND EXISTS (FROM seen.engine_flag n WHERE n.origin = 'metrics' AND n.flag = g.flag AND n.t >= own.t)
), pick AS (
  SELECT flag, value, origin, source || ':' || line AS ref FROM (
    SELECT *,
      row_number() OVER (PARTITION BY flag ORDER BY CASE origin WHEN 'logged' THEN 1 WHEN 'config' THEN 2 WHEN 'command' THEN 3 WHEN 'metrics' THEN 4
      WHEN 'environment' THEN 5 WHEN 'file' THEN 6 ELSE 7 END, line DESC, source) AS nth
    FROM seen.engine_flag f WHERE value NOT IN ('None', 'null', '') AND NOT EXISTS (FROM earlier e WHERE e.source = f.source AND e.line = f.line)
      -- what somebody tried and found to work is not how the server that failed was set
      AND NOT (origin IN ('command', 'file') AND EXISTS (FROM trial t WHERE t.source = f.source AND t.line = f.line AND t.flag = f.flag AND t.works
        AND EXISTS (FROM trial b WHERE b.source = t.source AND NOT b.works)))
  ) WHERE nth = 1
), flags AS (
  SELECT
    max(value) FILTER (flag IN ('version')) AS version,
    max(value) FILTER (flag = 'model') AS model,
    max(try_cast(value AS BIGINT)) FILTER (flag = 'max_model_len') AS max_model_len,
    bool_or(origin IN ('logged', 'command')) FILTER (flag = 'max_model_len') AS max_model_len_given,
    max(try_cast(value AS DOUBLE)) FILTER (flag = 'gpu_memory_utilization') AS utilization,
    max(origin) FILTER (flag = 'gpu_memory_utilization') AS utilization_origin,
      max(ref) FILTER (flag = 'gpu_memory_utilization') AS utilization_ref,
    max(try_cast(value AS BIGINT)) FILTER (flag = 'max_num_seqs') AS max_num_seqs,
    max(try_cast(value AS BIGINT)) FILTER (flag = 'max_num_batched_tokens') AS max_num_batched_tokens,
    max(try_cast(value AS INTEGER)) FILTER (flag = 'tensor_parallel_size') AS tp,
    max(try_cast(value AS INTEGER)) FILTER (flag = 'pipeline_parallel_size') AS pp,
    max(try_cast(value AS INTEGER)) FILTER (flag = 'data_parallel_size') AS dp,
    max(value) FILTER (flag = 'dtype') AS dtype,
    max(value) FILTER (flag = 'quantization') AS quantization,
    max(value) FILTER (flag = 'kv_cache_dtype') AS kv_cache_dtype,
    bool_or(lower(value) IN ('true', '1')) FILTER (flag = 'enforce_eager') AS enforce_eager,
    bool_or(lower(value) IN ('true', '1')) FILTER (flag = 'enable_prefix_caching') AS prefix_caching,
    bool_or(lower(value) NOT IN ('false', '0')) FILTER (flag IN ('speculative_config', 'speculative_model', 'num_speculative_tokens')) AS speculative,
    bool_or(lower(value) NOT IN ('false', '0', '[]')) FILTER (flag IN ('enable_lora', 'lora_modules')) AS lora,
    bool_or(
      value ILIKE '%VL%' OR value ILIKE '%vision%' OR value ILIKE '%image%' OR value ILIKE '%audio%' OR value ILIKE '%omni%'
    ) FILTER (flag IN ('architecture', 'limit_mm_per_prompt')) AS multimodal,
    -- no picture is taken, so no encoder is made room for
    bool_or(
      (flag = 'language_model_only' AND lower(value) IN ('true', '1', 'on'))
        OR (flag = 'limit_mm_per_prompt' AND regexp_matches(value, '\d') AND NOT regexp_matches(value, '[1-9]'))
    ) AS text_only,
    max(try_cast(value AS BIGINT)) FILTER (flag IN ('kv_cache_memory_bytes', 'kv_cache_memory')) AS kv_cache_memory_bytes,
    bool_or(true) FILTER (flag IN ('kv_cache_memory_bytes', 'kv_cache_memory')) AS kv_by_hand,
    max(try_cast(value AS BIGINT)) FILTER (flag = 'num_gpu_blocks_override') AS num_gpu_blocks_override,
    max(try_cast(value AS DOUBLE)) FILTER (flag = 'swap_space') AS swap_space_gib,
    max(try_cast(value AS DOUBLE)) FILTER (flag = 'cpu_offload_gb') AS cpu_offload_gib,
    bool_or(lower(value) = 'true') FILTER (flag = 'enable_sleep_mode') AS sleep_mode,
    bool_or(value ILIKE '%expandable_segments:true%') FILTER (
      flag IN ('PYTORCH_CUDA_ALLOC_CONF', 'PYTORCH_ALLOC_CONF')
    ) AS expandable_segments,
    bool_or(value ILIKE '%cpu%') FILTER (flag IN ('device', 'platform', 'device_config')) AS cpu_device
  FROM pick
), figures AS (
  SELECT
    max(value) FILTER (name = 'weights_bytes') AS weights_bytes,
    max_by(source || ':' || line, value) FILTER (name = 'weights_bytes') AS weights_ref,
    min(value) FILTER (name = 'kv_available_bytes') AS kv_available_bytes,
    max(value) FILTER (name = 'kv_available_bytes') AS kv_available_max_bytes,
    min_by(source || ':' || line, value) FILTER (name = 'kv_available_bytes') AS kv_available_ref,
    max(value) FILTER (name = 'kv_reserved_bytes') AS kv_reserved_bytes,
    min(value) FILTER (name = 'kv_pool_tokens') AS kv_pool_tokens,
    min_by(source || ':' || line, value) FILTER (name = 'kv_pool_tokens') AS kv_pool_ref,
    min(value) FILTER (name = 'max_concurrency') AS max_concurrency,
    min(value) FILTER (name = 'concurrency_tokens') AS concurrency_tokens,
    min(value) FILTER (name = 'num_gpu_blocks') AS num_gpu_blocks,
    max(value) FILTER (name = 'block_size') AS block_size,
    max(value) FILTER (name IN ('graph_bytes', 'graph_actual_bytes')) AS graph_bytes,
    max(value) FILTER (name = 'graph_estimate_bytes') AS graph_estimate_bytes,
    max(value) FILTER (name = 'activation_bytes') AS activation_bytes,
    max(value) FILTER (name = 'non_torch_bytes') AS non_torch_bytes,
    max(value) FILTER (name = 'total_bytes') AS total_bytes,
    min(value) FILTER (name IN ('free_bytes', 'free_at_start_bytes')) AS free_at_start_bytes,
    max(value) FILTER (name = 'budget_bytes') AS budget_bytes,
    max(value) FILTER (name = 'gpu_memory_utilization') AS utilization,
    -- the share of the device that the graphs are, and what they are estimated at, tell its size
    CASE WHEN max(value) FILTER (name = 'graph_estimate_bytes') >= $estimate_tells_size
      THEN max(value) FILTER (name = 'graph_estimate_bytes')
        / nullif(max(value) FILTER (name = 'gpu_memory_utilization') - max(value) FILTER (name = 'utilization_without_graphs'), 0)
    END AS told_bytes,
    min(value) FILTER (name = 'host_available_bytes') AS host_available_bytes,
    max(value) FILTER (name = 'checkpoint_bytes') AS checkpoint_bytes,
    bool_or(name = 'encoder_budget_tokens') AS encoder
  FROM seen.engine_figure f
  WHERE NOT EXISTS (FROM earlier e WHERE e.source = f.source AND e.line = f.line)
), checks AS (
  SELECT max(total_bytes) AS total_bytes, min(free_bytes) FILTER (name = 'free-memory') AS free_bytes, max(utilization) AS utilization,
         max(max_model_len) AS max_model_len, bool_or(device_kind = 'cpu') AS cpu FROM seen.startup_check
), steps AS (
  SELECT arg_max(name, line) AS last_milestone, bool_or(name IN ('serving', 'engine-ready')) AS up,
    any_value(text) FILTER (name = 'engine-init') AS init,
         arg_max(text, line) FILTER (name = 'server-version') AS version, bool_or(name = 'load-draft') AS draft,
           bool_or(name = 'lora') AS lora, bool_or(name = 'eager') AS eager,
         min_by(source || ':' || line, line) FILTER (name IN ('server-version', 'engine-init')) AS start_ref,
           any_value(text) FILTER (name = 'load-start') AS model
  FROM seen.milestone
), told AS (
  SELECT coalesce(steps.version, nullif(regexp_extract(init, '\d+\.\d+[\w.+]*'), ''), flags.version) AS version,
    nullif(regexp_extract(init, 'V[01]'), '') AS generation
  FROM steps, flags
), numbered AS (
  SELECT *,
    try_cast(
      regexp_extract(version, '(\d+)\.(\d+)(?:\.(\d+))?', 1) AS BIGINT
    ) * 1000000 + try_cast(regexp_extract(version, '(\d+)\.(\d+)(?:\.(\d+))?', 2) AS BIGINT) * 1000
            + coalesce(try_cast(regexp_extract(version, '(\d+)\.(\d+)(?:\.(\d+))?', 3) AS BIGINT), 0) AS version_number FROM told
), others AS (
  -- a panel or a scrape shows whoever serves: where another start does, it is no sign that this one came up
  SELECT count(*) > 0 AS serve FROM focus f JOIN incident i ON i.incident = f.incident JOIN engine_start s ON s.served AND s.start_id <> i.start_id
), beyond AS (
  -- another log that goes on after this start had died is another server's, or of its next life
  SELECT x.source
  FROM focus f
  JOIN incident i ON i.incident = f.incident
  JOIN outcome c ON c.start_id = i.start_id AND c.outcome IN ('died', 'refused')
  JOIN seen.engine_stat x ON x.source <> i.start_source AND x.t > i.t + $log_goes_on
  JOIN engine_start s ON s.source = x.source
  GROUP BY x.source
), stats AS (
  SELECT count(*) AS n
  FROM seen.engine_stat x, others o
  WHERE (NOT o.serve OR x.source IN (SELECT source FROM engine_start)) AND x.source NOT IN (SELECT source FROM beyond)
)
, worker AS (
  SELECT coalesce(max(rank), -1) + 1 AS ranks, count(DISTINCT pid) AS pids,
    bool_or(
      process LIKE 'VllmWorkerProcess%' OR process LIKE 'Worker\_TP%' ESCAPE '\' OR process LIKE 'Worker\_PP%' ESCAPE '\' OR rank >= 1
    ) AS several
  FROM (
    -- no CASE ... ELSE process: DuckDB 2.0 takes a column of NULLs alone for the whole of it, and drops its rows
    SELECT coalesce(CASE WHEN device >= 1 OR rank >= 1 THEN 'Worker' END, process) AS process, pid, coalesce(rank, device) AS rank
    FROM seen.oom
    UNION ALL
    SELECT process, pid, rank
    FROM seen.log_error
    UNION ALL
    -- one process that spreads a model itself names the device, and no worker
    SELECT coalesce(process, CASE WHEN rank >= 1 THEN 'Worker' END) AS process, pid, rank
    FROM seen.engine_figure
    UNION ALL
    SELECT process, pid, rank
    FROM seen.startup_check)
  WHERE process LIKE '%Worker%'
)
SELECT numbered.version, version_number,
  coalesce(generation, CASE WHEN version_number < $v1_since THEN 'V0' WHEN version_number >= $v0_until THEN 'V1' END) AS generation,
  CASE WHEN checks.cpu OR flags.cpu_device THEN 'cpu' ELSE 'gpu' END AS platform,
  coalesce(flags.model, steps.model) AS model,
  coalesce(flags.max_model_len, checks.max_model_len, concurrency_tokens)::BIGINT AS max_model_len,
    coalesce(max_model_len_given, false) AS max_model_len_given,
  coalesce(flags.utilization, figures.utilization, checks.utilization, d.value) AS gpu_memory_utilization,
  CASE WHEN flags.utilization IS NOT NULL THEN utilization_origin
    WHEN coalesce(figures.utilization, checks.utilization) IS NOT NULL THEN 'figure' WHEN d.value IS NOT NULL THEN 'default'
    END AS utilization_origin, coalesce(utilization_ref, start_ref) AS utilization_ref,
  max_num_seqs, max_num_seqs IS NOT NULL AS max_num_seqs_given, max_num_batched_tokens,
  coalesce(tp, 1) AS tensor_parallel_size, coalesce(pp, 1) AS pipeline_parallel_size,
    CASE WHEN coalesce(tp, pp) IS NULL AND worker.several THEN greatest(2, worker.ranks, worker.pids) ELSE coalesce(tp, 1) * coalesce(pp, 1)
      END::INTEGER AS world_size, coalesce(dp, 1) AS data_parallel_size,
  coalesce(tp, pp) IS NOT NULL AS parallel_given, coalesce(tp, pp) IS NOT NULL OR NOT coalesce(worker.several, false) AS world_known,
  dtype, quantization, kv_cache_dtype, coalesce(enforce_eager, steps.eager, false) AS enforce_eager,
  coalesce(
    prefix_caching, CASE WHEN coalesce(generation, CASE WHEN version_number >= $v1_since THEN 'V1' END) = 'V1' THEN true END
  ) AS prefix_caching,
  coalesce(speculative, false) OR coalesce(draft, false) AS speculative, coalesce(flags.lora, false) OR coalesce(steps.lora, false) AS lora,
  NOT coalesce(text_only, false) AND (coalesce(multimodal, false) OR coalesce(encoder, false)) AS multimodal,
  coalesce(kv_cache_memory_bytes, CASE WHEN kv_by_hand THEN kv_reserved_bytes END)::BIGINT AS kv_cache_memory_bytes,
    num_gpu_blocks_override, swap_space_gib, cpu_offload_gib,
  coalesce(sleep_mode, false) AS sleep_mode, expandable_segments,
  weights_bytes::BIGINT AS weights_bytes, weights_ref, kv_available_bytes::BIGINT AS kv_available_bytes,
    kv_available_max_bytes::BIGINT AS kv_available_max_bytes, kv_available_ref,
  -- a start that has nothing for KV prints the blocks of its trial run, which are no pool
  coalesce(
    kv_pool_tokens, CASE WHEN coalesce(kv_available_bytes, 1) > 0 THEN num_gpu_blocks * coalesce(block_size, 16) END
  )::BIGINT AS kv_pool_tokens, kv_pool_ref, max_concurrency, num_gpu_blocks::BIGINT AS num_gpu_blocks,
  graph_bytes::BIGINT AS graph_bytes, graph_estimate_bytes::BIGINT AS graph_estimate_bytes, activation_bytes::BIGINT AS activation_bytes,
    non_torch_bytes::BIGINT AS non_torch_bytes,
  coalesce(figures.total_bytes, checks.total_bytes, figures.told_bytes)::BIGINT AS total_bytes,
    coalesce(free_at_start_bytes, checks.free_bytes)::BIGINT AS free_at_start_bytes,
  coalesce(
    budget_bytes,
    coalesce(figures.total_bytes, checks.total_bytes, figures.told_bytes) * coalesce(flags.utilization, figures.utilization, checks.utilization, d.value)
  )::BIGINT AS budget_bytes,
  host_available_bytes::BIGINT AS host_available_bytes, checkpoint_bytes::BIGINT AS checkpoint_bytes,
  coalesce(up, false) OR stats.n > 0 AS served, last_milestone,
  CASE WHEN coalesce(kv_available_bytes, 1) > 0
    THEN coalesce(kv_available_bytes, kv_reserved_bytes, kv_cache_memory_bytes) / nullif(
      coalesce(kv_pool_tokens, num_gpu_blocks * coalesce(block_size, 16)), 0
    ) END AS kv_bytes_per_token, start_ref
FROM numbered, flags, figures, checks, steps, stats, worker
  LEFT JOIN engine_default d ON d.flag = 'gpu_memory_utilization' AND version_number BETWEEN d.since AND d.until
