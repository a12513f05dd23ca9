-- says: the first failure of the incident in focus, with the books of its allocator message, the refusal's figures, the phase and what the server did just before
-- scope: incident
-- failed: something failed; false = an engine log is there and shows no failure; NULL = no engine log
-- kind: kind of the first failure (see incident); NULL = none
-- ref: where it stands
-- t: when
-- text: the line
-- phase: init, load, profile, kv-plan (the engine's arithmetic), graph-profile, kv-alloc, sampler-warmup, capture, warmup, forward, after-capture (graph pools exist, no more is known); NULL = cannot tell
-- phase_by: frames or milestones
-- last_milestone: last step before the failure
-- ooms: allocator messages about a device
-- oom_ref: the first of them
-- allocator: who said it
-- device: index in the message
-- requested_bytes: failed request
-- total_bytes: device total, from the message or the refusal
-- free_bytes: free at the failure
-- this_process_bytes: the failing process
-- other_bytes: held by other processes on the device that are not the server's own
-- other_processes: how many
-- sibling_bytes: held by processes that the message names and that write into the server's own log, or were started by its command: its stages and ranks
-- allocated_bytes: by torch
-- private_pool_bytes: of it in graph pools
-- unallocated_bytes: reserved by torch but unallocated
-- live_bytes: allocated without private pools
-- reserved_bytes: allocated + unallocated
-- non_torch_bytes: this process less reserved
-- allowed_bytes: per-process cap
-- live_share: allocated / total
-- pieces_fit: free + unallocated would hold the request, each alone would not
-- split_share: unallocated / requested
-- check_name: the engine's own refusal
-- check_ref: where
-- check_len: max_model_len in it
-- needed_bytes: KV bytes needed
-- available_bytes: KV bytes available
-- pool_tokens: tokens that the pool would store
-- estimated_len: the engine's estimate of what fits
-- check_free_bytes: free in the refusal
-- check_total_bytes: total in the refusal
-- check_wanted_bytes: asked in the refusal
-- check_utilization: utilization in the refusal
-- check_needed_utilization: the least that would do, as the refusal says; NULL = it names none
-- share_would_do: that share can be given; false = nothing could be left for a context and for libraries
-- dummy_requests: sequences of the warm-up
-- check_cpu: the refusal is about host memory of the CPU backend
-- kv_used: last usage before the failure, or in the crash dump
-- running: requests running then
-- waiting: requests waiting then
-- scheduled_tokens: tokens of the failing step, from the crash dump
-- largest_prompt_tokens: longest new prompt in the failing step
-- prompt_logprobs: the step (or a request) asked for prompt logprobs
-- in_sampler: the sampler or logits part is in the traceback
-- in_states: so is what makes the recurrent states of all sequences at once
-- in_attention_workspace: an attention workspace is in the traceback
-- in_prefill: a kernel or step that only prefills is in the traceback
-- in_other_code: the traceback has steps of a program, and none of an engine: another model in the same process
-- in_draft: a draft model is in the traceback, or its loading is the last step before the allocator's message
-- in_lora: LoRA is in the traceback
-- in_communication: it makes a buffer of the communication between ranks (DeepEP, NVSHMEM, PPLX, symmetric memory, custom all-reduce)
-- communication_ref: where
-- in_vision: a vision encoder is in the traceback
-- in_moe: an expert layer is in the traceback
-- in_create_weights: parameters were being created
-- first_error_kind: kind of the first error that is no echo and not about memory
-- first_error_ref: where
-- first_error_text: its text
-- ranks_failed: ranks that report an allocator message or refusal
-- counted_needs_bytes: what the server had counted for the model that it then could not load, with cache and buffers; NULL = it tells no count
-- counted_finds_bytes: what it had found free for it
-- told_weights_bytes: all weights of that model, as told
-- beside_engine: an engine that came up earlier in the same log never ended: what is live, and the graphs that are there, may be its
-- graph_hint: the message itself speaks of CUDA graph memory
WITH logs AS (
  SELECT count(*) AS n
  FROM source
  WHERE (
    (kind = 'vllm-log'
      -- the whole log is another server's
      AND source NOT IN (SELECT r.source FROM main.relation r WHERE r.of_table IN ('milestone', 'engine_stat') AND r.line = 0 AND r.whose = 'foreign'))
      OR source IN (
        SELECT source FROM seen.engine_stat UNION ALL SELECT source FROM seen.milestone UNION ALL SELECT source FROM seen.log_error
      )
  )
    -- a text that tells of a failure leaves it open whether the log would show one, unless the server's containers were never started again
    AND (
      NOT EXISTS (
        SELECT 1 FROM note WHERE topic = 'failure-told'
          -- what the kernel is said to have ended may be what it did end, of another program
          AND NOT (regexp_matches(text, '(?i)\b(kernel|dmesg|oom[-_ ]?kill\w*)\b') AND EXISTS (
            FROM main.relation r JOIN main.host_event h ON h.source = r.source AND r.line IN (0, h.line)
            WHERE r.of_table = 'host_event' AND r.whose = 'foreign' AND h.kind IN ('cgroup-oom-kill', 'node-oom-kill', 'oom-kill')
          ) AND NOT EXISTS (FROM host_event WHERE kind IN ('cgroup-oom-kill', 'node-oom-kill', 'oom-kill')))
      )
        OR (SELECT count(*) FILTER (state = 'Running' AND restarts = 0) > 0 AND bool_and(restarts = 0 OR with_machine OR orderly) FROM container_end)
    )
), told AS (
  SELECT i.* FROM incident i, focus f WHERE i.incident = f.incident
), book AS (
  SELECT *, source || ':' || line AS ref FROM seen.oom
  ORDER BY requested_bytes IS NULL AND total_bytes IS NULL, source <> coalesce((SELECT source FROM told), source), line, source LIMIT 1
), kin AS (
  -- processes that the message names and the server's own log, too: stages and ranks of one server are no others
  SELECT coalesce(sum(bytes), 0)::BIGINT AS bytes, count(*) AS n FROM (
    SELECT named[1]::BIGINT AS pid, (named[2]::DOUBLE * CASE named[3] WHEN 'G' THEN 1073741824 WHEN 'M' THEN 1048576 ELSE 1024 END)::BIGINT AS bytes
    FROM (
      SELECT regexp_extract_all(text, 'Process (\d{1,9}) has ([\d.]{1,12}) ([GMK])iB', 1) AS pids, regexp_extract_all(text, 'Process (\d{1,9}) has ([\d.]{1,12}) ([GMK])iB', 2) AS sizes,
        regexp_extract_all(text, 'Process (\d{1,9}) has ([\d.]{1,12}) ([GMK])iB', 3) AS units FROM book
    ) b, LATERAL (SELECT unnest(list_zip(pids, sizes, units)) AS named)
  )
  -- and the one that failed is an engine's, too: a launcher of several models writes one log
  WHERE ((SELECT process IS NOT NULL AND pid <> own FROM (SELECT process, pid AS own FROM book)) AND pid IN (
    SELECT x.pid FROM (SELECT source, pid FROM seen.milestone UNION SELECT source, pid FROM seen.engine_figure UNION SELECT source, pid FROM seen.engine_flag) x JOIN book USING (source)
  ))
    -- or a list of the device's processes has both under one command: the one that holds what the message says of itself, and the one that it names
    OR pid IN (
      SELECT other.pid FROM gpu_process other JOIN gpu_process own ON own.source = other.source AND own.t IS NOT DISTINCT FROM other.t
        AND own.gpu IS NOT DISTINCT FROM other.gpu AND own.pid <> other.pid, book
      WHERE abs(own.used_bytes - book.this_process_bytes) <= $same_process * book.this_process_bytes
        AND (starts_with(other.name, own.name) OR starts_with(own.name, other.name))
        -- the name of an interpreter alone is everybody's
        AND regexp_matches(own.name, '\S \S') AND regexp_matches(other.name, '\S \S')
    )
), refusal AS (
  -- what stopped the next start explains no death before it
  SELECT *, source || ':' || line AS ref FROM (
    SELECT c.* FROM seen.startup_check c ANTI JOIN next_refusal USING (source, line)
    UNION ALL BY NAME
    -- a start whose share is less than its weights, or that counts less than nothing for KV, is refused for certain, also where the log ends before it says so
    SELECT f.source, f.line, f.t, f.process, f.pid, f.rank, 'no-kv-blocks' AS name, room.bytes::BIGINT AS available_bytes, 'room for KV: ' || round(room.bytes / 1073741824, 2) || ' GiB' AS text
    FROM seen.engine_figure f, engine e, device d, told,
      LATERAL (SELECT CASE f.name WHEN 'kv_available_bytes' THEN f.value
        WHEN 'weights_bytes' THEN coalesce(e.budget_bytes, e.gpu_memory_utilization * coalesce(e.total_bytes, d.total_bytes)) - f.value END AS bytes) room
    WHERE room.bytes < 0 AND NOT e.served AND told.kind IN ('exit', 'echo') AND NOT EXISTS (FROM seen.oom) AND NOT EXISTS (FROM seen.startup_check)
  )
  ORDER BY name = 'load-oom', line, source LIMIT 1
), place AS (
  -- an end that a supervisor tells lies behind the last line of the start's own log
  SELECT coalesce(book.source, refusal.source, CASE WHEN told.kind = 'exit' THEN told.start_source END, told.source) AS source,
    coalesce(
      book.line, refusal.line,
      CASE WHEN told.kind = 'exit' AND told.start_source <> told.source THEN (
        SELECT max(m.line) + 1 FROM seen.milestone m WHERE m.source = told.start_source
      ) END, told.line
    ) AS line,
    coalesce(book.pid, refusal.pid) AS pid
  FROM (SELECT 1) LEFT JOIN book ON true LEFT JOIN refusal ON true LEFT JOIN told ON true
), near AS (
  SELECT f.*
  FROM seen.frame f, place
  WHERE f.source = place.source
    AND f.line BETWEEN place.line - least(place.line, $traceback_lines_before)::UINTEGER AND place.line + $traceback_lines_behind
    AND coalesce(f.pid = place.pid, true)
), exact AS (
  -- where the size was set by hand and is what the message rounds, it is known to the byte
  SELECT e.kv_cache_memory_bytes AS available_bytes FROM engine e, refusal r
  WHERE r.name = 'kv-below-max-model-len' AND r.needed_bytes < $coarse_when_rounded_bytes
    AND abs(r.available_bytes - e.kv_cache_memory_bytes) <= $half_of_a_hundredth_gib_bytes
), stack AS (
  SELECT bool_or(function IN ('profile_cudagraph_memory')) AS graph_profile,
    bool_or(function IN ('_dummy_sampler_run', '_dummy_pooler_run')) AS sampler,
    bool_or(regexp_matches(function, '^(_?capture(_model|_graphs|_cudagraphs|_begin|_end|_one_batch_size)?|warmup_graphs|cuda_graph_warmup)$')) AS capture,
    bool_or(function IN ('compile_or_warm_up_model', 'kernel_warmup')) AS warmup,
    bool_or(
      function IN (
        'initialize_kv_cache', '_allocate_kv_cache', 'init_memory_pool', 'allocate_gpu_cache', '_allocate_kv_cache_tensors', 'initialize_cache', '_init_cache'
      )
        -- other platforms have names of their own for it
        OR regexp_matches(function, '^_?(?:init|initialize|allocate|create)_(?:\w{1,20}_)?(?:kv_caches?|cache_engine)(?:_tensors)?$')
    ) AS kv_alloc,
    bool_or(
      function IN ('profile_run', 'determine_available_memory', 'determine_num_available_blocks', 'profile_num_available_blocks')
    ) AS profile,
    bool_or(function IN ('load_model', 'create_weights', 'process_weights_after_loading', 'load_weights', 'initialize_model', 'make_layers')
            -- layers and models make their weights as they are built; what captures graphs or runs a model does not
            OR (function = '__init__' AND regexp_matches(file, 'model_executor/(models|layers|model_loader)/'))) AS load,
    bool_or(function IN ('init_device', 'init_worker_distributed_environment')) AS init,
    bool_or(function IN ('execute_model', 'generate', 'step', 'engine_step', 'run_busy_loop', 'run_engine_loop', '_process_engine_step')
            -- the loop of 0.5.4 to 0.10, entered once the engine is built
            OR (function = 'start' AND file LIKE '%multiprocessing/engine%')) AS forward,
    bool_or(
      function = 'execute_model' OR file LIKE '%model_runner_base%'
        OR (function IN ('prefill', 'decode') AND file = 'text_generation_server')
    ) AS executed,
    bool_or(
      function LIKE '%sampl%' OR function IN ('compute_logits', '_get_logits', '_get_prompt_logprobs_dict', 'apply_top_k_top_p')
        OR file LIKE '%sampler%' OR file LIKE '%logits_processor%'
    ) AS in_sampler,
    -- the state caches of V0 hold max_num_seqs states from the first profile run on; in V1 states are blocks of the pool
    bool_or(regexp_matches(concat_ws(' ', file, function), '(?i)(mamba|ssm|recurrent|constant_size|minimax)\w*_cache|mamba_?cache_?manager')) AS in_states,
    count(*) >= $steps_of_a_traceback AND bool_or(function = 'forward') AND NOT bool_or(
      regexp_matches(file, '(?i)(?:^|/)vllm/|model_runner|model_executor|/(?:worker|engine|executor|attention|sglang|tensorrt_llm)/|text_generation_server')
    ) AS other_code,
    bool_or(function LIKE '%workspace%') AS workspace,
    -- chunk_*_fwd: the linear attention of hybrids takes another kernel for decode
    bool_or(function LIKE '%prefill%' OR function LIKE 'chunk\_%fwd%' ESCAPE '\') AS prefill,
    bool_or(file LIKE '%spec_decode%' OR file LIKE '%eagle%' OR file LIKE '%medusa%' OR function LIKE '%draft%') AS draft,
    bool_or(file LIKE '%/lora/%' OR function ILIKE '%lora%' OR file LIKE '%punica%') AS lora,
         bool_or(
           regexp_matches(
             concat_ws(' ', file, function),
             '(?i)deep_ep|nvshmem|pplx|symm_mem|symmetric_memory|alloc_rdma|rdma_buffer|flashinfer/comm|custom_all_reduce|all2all'
           )
         ) AS communication,
         min(source || ':' || line) FILTER (
           regexp_matches(
             concat_ws(' ', file, function),
             '(?i)deep_ep|nvshmem|pplx|symm_mem|symmetric_memory|alloc_rdma|rdma_buffer|flashinfer/comm|custom_all_reduce|all2all'
           )
         ) AS communication_ref,
    bool_or(
      function LIKE '%multimodal%' OR function LIKE '%vision%' OR file LIKE '%vision%' OR file LIKE '%\_vl.%' ESCAPE '\'
        OR file LIKE '%clip%' OR file LIKE '%siglip%' OR file LIKE '%/vit\_%' ESCAPE '\'
    ) AS vision,
    bool_or(file LIKE '%fused_moe%' OR function LIKE '%experts%') AS moe,
    bool_or(function IN ('create_weights')) AS create_weights,
    bool_or(function = '_get_prompt_logprobs_dict') AS prompt_logprobs
  FROM near
), before AS (
  -- Ray collects what its workers print alike and hands it on seconds later: in an excerpt that begins with the failure, what it hands on next was said before
  SELECT coalesce(
    arg_max(m.name, m.line) FILTER (m.line < place.line), arg_min(m.name, m.line) FILTER (m.process LIKE 'RayWorker%')
  ) AS name, bool_or(m.name IN ('serving', 'engine-ready')) FILTER (m.line < place.line) AS up
  FROM seen.milestone m, place
  WHERE m.source = place.source AND m.line < place.line + $handed_on_late
    AND m.name NOT IN ('host-cache-made', 'shutdown', 'terminated', 'server-process', 'sleeping', 'lora', 'eager', 'v0-fallback')
), stat AS (
  SELECT s.*, s.source = place.source AS own
  FROM seen.engine_stat s, place
  WHERE s.kv_used IS NOT NULL AND (s.source <> place.source OR s.line <= place.line)
  ORDER BY s.source <> place.source, s.line DESC
  LIMIT 1
), step AS (
  SELECT max(scheduled_tokens) AS scheduled_tokens, max(largest_prompt_tokens) AS largest_prompt_tokens, max(running) AS running,
    max(waiting) AS waiting,
         max(kv_used) AS kv_used, bool_or(prompt_logprobs) AS prompt_logprobs FROM seen.crash_step
), error AS (
  SELECT *, source || ':' || line AS ref
  FROM seen.log_error
  WHERE kind NOT IN ('echo', 'memory', 'client', 'host-memory', 'shm')
    AND NOT (kind = 'hang' AND (source, line) IN (SELECT (source, line) FROM failure_event WHERE grade = 0))
  ORDER BY source <> coalesce((SELECT source FROM told), source), line
  LIMIT 1
), counted AS (
  SELECT count(*) AS ooms, count(DISTINCT coalesce(rank, pid)) AS ranks FROM seen.oom
), counted_for AS (
  -- the last count before the message
  SELECT arg_max(value, f.line) FILTER (f.name IN ('model_needs_bytes', 'projected_needs_bytes')) AS needs,
    arg_max(value, f.line) FILTER (f.name IN ('model_finds_bytes', 'projected_finds_bytes')) AS finds,
    arg_max(value, f.line) FILTER (f.name IN ('told_weights_bytes', 'model_weights_bytes')) AS weights
  FROM seen.engine_figure f, book
  WHERE f.source = book.source AND f.line < book.line
), slept AS (
  -- a server that can sleep keeps all of its tensors in a private pool
  SELECT EXISTS (FROM seen.engine_flag WHERE flag = 'enable_sleep_mode' AND lower(value) IN ('true', '1')) AS pooled
), beside AS (
  -- an engine that came up earlier in the same log and never ended: the next one of that process finds its graphs, and its own are still to come
  SELECT EXISTS (
    FROM engine_start b JOIN engine_start a ON a.source = b.source AND a.last_line < b.first_line AND a.served AND a.marked
    WHERE b.start_id = (SELECT start_id FROM told)
      AND NOT EXISTS (FROM failure_event e WHERE e.start_id = a.start_id AND e.grade >= 2)
      AND NOT EXISTS (FROM main.milestone m WHERE m.source = a.source AND m.name IN ('shutdown', 'terminated') AND m.line BETWEEN a.first_line AND b.first_line)
      AND NOT EXISTS (FROM main.process_exit p WHERE p.source = a.source AND p.line BETWEEN a.first_line AND b.first_line)
  ) AS engine
), hint AS (
  SELECT bool_or(text ILIKE '%cudagraph%' OR text ILIKE '%CUDA graph%capture%') AS graphs FROM seen.oom
)
SELECT CASE WHEN told.kind NOT IN ('pressure', 'restart') THEN true WHEN logs.n > 0 THEN false END AS failed,
  nullif(told.kind, 'pressure') AS kind, told.ref, told.t, coalesce(told.text, book.text, refusal.text) AS text,
  CASE WHEN book.ref IS NULL
    AND refusal.name IN ('no-kv-blocks', 'kv-below-max-model-len', 'no-autofit', 'mamba-blocks', 'kv-request-exceeds-host') THEN 'kv-plan'
       WHEN book.ref IS NULL AND refusal.name IN ('free-memory', 'shm-space', 'swap-space') THEN 'init' WHEN book.ref IS NULL
         AND refusal.name = 'profiling-interference' THEN 'profile'
       WHEN stack.graph_profile THEN 'graph-profile' WHEN stack.sampler
         OR refusal.name = 'warmup' THEN 'sampler-warmup' WHEN stack.capture THEN 'capture'
       WHEN stack.profile THEN 'profile' WHEN stack.kv_alloc THEN 'kv-alloc'
       WHEN stack.load OR refusal.name = 'load-oom' THEN 'load'
       -- the warm-up is the caller of the capture as well: where graphs were counted last, one of them failed
       WHEN stack.warmup THEN CASE WHEN before.name = 'capture-progress' THEN 'capture' ELSE 'warmup' END WHEN stack.init THEN 'init'
       WHEN stack.executed OR book.text LIKE '%Error in model execution%'
         OR book.text LIKE '%error in forwardAsync%' THEN 'forward' WHEN before.up
         -- another log's statistics say nothing of a start whose own steps are told
         OR (stat.kv_used IS NOT NULL AND (stat.own OR before.name IS NULL)) THEN 'forward'
       -- private pools are filled by graph capture: whatever failed, failed during or after it, whatever the log shows last
       WHEN book.private_pool_bytes >= $graph_pool_bytes AND NOT coalesce(slept.pooled, false)
         AND NOT beside.engine
         AND before.name IN ('load-start', 'load-progress', 'weights-read', 'load-draft', 'loaded', 'profiled') THEN 'after-capture'
       WHEN before.name IN ('load-start', 'load-progress', 'weights-read', 'load-draft') THEN 'load'
         WHEN before.name IN ('loaded', 'image-profile') THEN 'profile'
       WHEN before.name IN ('profiled', 'kv-available') THEN 'kv-alloc'
       WHEN before.name IN ('kv-sized', 'kv-blocks', 'capture-start', 'capture-progress') THEN 'capture'
         WHEN before.name IN ('captured') THEN 'warmup'
       WHEN stack.forward THEN 'forward' WHEN before.name IN ('server-version', 'engine-init') THEN 'init'
       WHEN book.private_pool_bytes >= $graph_pool_bytes AND NOT coalesce(slept.pooled, false) THEN 'after-capture' END AS phase,
  CASE WHEN stack.graph_profile OR stack.sampler OR stack.capture OR stack.warmup OR stack.kv_alloc OR stack.profile OR stack.load
    OR stack.init OR stack.executed THEN 'frames'
       WHEN before.name IS NOT NULL THEN 'milestones' END AS phase_by,
  before.name AS last_milestone, counted.ooms, book.ref AS oom_ref, book.allocator, book.device, book.requested_bytes,
  coalesce(book.total_bytes, refusal.total_bytes) AS total_bytes, book.free_bytes, book.this_process_bytes,
    CASE WHEN kin.bytes < book.other_processes_bytes OR kin.n = 0 THEN book.other_processes_bytes - kin.bytes WHEN kin.n > 0 THEN 0 END AS other_bytes,
    CASE WHEN kin.n <= book.other_processes THEN book.other_processes - kin.n WHEN kin.n > 0 THEN 0 END AS other_processes,
    CASE WHEN book.other_processes > 0 THEN kin.bytes END AS sibling_bytes,
  book.allocated_bytes, book.private_pool_bytes, book.unallocated_bytes,
    book.allocated_bytes - coalesce(book.private_pool_bytes, 0) AS live_bytes,
  book.allocated_bytes + book.unallocated_bytes AS reserved_bytes,
    book.this_process_bytes - book.allocated_bytes - book.unallocated_bytes AS non_torch_bytes, book.allowed_bytes,
  book.allocated_bytes / book.total_bytes AS live_share,
  book.unallocated_bytes + book.free_bytes >= book.requested_bytes AND book.free_bytes < book.requested_bytes AS pieces_fit,
  book.unallocated_bytes / book.requested_bytes AS split_share,
  refusal.name AS check_name, refusal.ref AS check_ref, refusal.max_model_len AS check_len,
  coalesce(
    exact.available_bytes * refusal.max_model_len // nullif(refusal.estimated_max_model_len, 0), refusal.needed_bytes
  ) AS needed_bytes,
  coalesce(exact.available_bytes, refusal.available_bytes) AS available_bytes, refusal.pool_tokens,
  refusal.estimated_max_model_len AS estimated_len, refusal.free_bytes AS check_free_bytes, refusal.total_bytes AS check_total_bytes,
    refusal.wanted_bytes AS check_wanted_bytes,
  refusal.utilization AS check_utilization, refusal.needed_utilization AS check_needed_utilization, refusal.needed_utilization <= $share_at_most AS share_would_do, refusal.dummy_requests, refusal.device_kind = 'cpu' AS check_cpu,
  coalesce(step.kv_used, stat.kv_used) AS kv_used, coalesce(step.running, stat.running) AS running,
    coalesce(step.waiting, stat.waiting) AS waiting,
  step.scheduled_tokens, step.largest_prompt_tokens,
    coalesce(step.prompt_logprobs, false) OR coalesce(stack.prompt_logprobs, false) AS prompt_logprobs,
  stack.in_sampler, stack.in_states, stack.workspace AS in_attention_workspace, stack.prefill AS in_prefill, coalesce(stack.other_code, false) AS in_other_code,
    CASE WHEN before.name = 'load-draft' AND book.ref IS NOT NULL AND book.private_pool_bytes IS NULL THEN true ELSE stack.draft
      END AS in_draft, stack.lora AS in_lora, stack.communication AS in_communication, stack.communication_ref, stack.vision AS in_vision,
    stack.moe AS in_moe, stack.create_weights AS in_create_weights,
  error.kind AS first_error_kind, error.ref AS first_error_ref, error.text AS first_error_text, counted.ranks AS ranks_failed,
  counted_for.needs::BIGINT AS counted_needs_bytes, counted_for.finds::BIGINT AS counted_finds_bytes, counted_for.weights::BIGINT AS told_weights_bytes,
    beside.engine AS beside_engine,
    coalesce(hint.graphs, false) AS graph_hint
FROM logs
LEFT JOIN told ON true
LEFT JOIN book ON true
LEFT JOIN kin ON true
LEFT JOIN refusal ON true
LEFT JOIN exact ON true
LEFT JOIN stack ON true
LEFT JOIN before ON true
LEFT JOIN stat ON true
  LEFT JOIN step ON true LEFT JOIN error ON true LEFT JOIN counted ON true LEFT JOIN hint ON true LEFT JOIN slept ON true LEFT JOIN beside ON true LEFT JOIN counted_for ON true
