-- says: what the settings of the engine in focus take from the host, all ranks together, against what the host or the container has; no row where no such setting is known
-- scope: incident
-- names: the settings, each with its size and how often it is taken
-- claim_bytes: their sum
-- room_bytes: the container's limit or the memory of the host, whichever is smaller; NULL = not told
-- fills_bytes: of them, what fills by and by as requests come, and is not taken at the start
-- input_gib: the cache of multimodal inputs that each API server and each engine has of its own; NULL = not told
-- input_copies: how many have one; NULL = no such cache is told
-- mount_bytes: of them, what lies in shared memory and not in each of those who have it; NULL = nothing does
-- ref: where the largest of them stands
WITH flag AS (
  SELECT lower(regexp_replace(flag, '^LMCACHE_', '')) AS name, try_cast(regexp_extract(value, '^[\d.]+') AS DOUBLE) AS gib,
    source || ':' || line AS ref
  FROM seen.engine_flag
  WHERE lower(flag) IN ('swap_space', 'cpu_offload_gb', 'kv_offloading_size', 'max_local_cpu_size', 'lmcache_max_local_cpu_size', 'mm_processor_cache_gb')
  QUALIFY row_number() OVER (
    PARTITION BY name ORDER BY list_position(['logged', 'config', 'command', 'environment', 'file'], origin), line DESC
  ) = 1
), server AS (
  SELECT max(try_cast(value AS BIGINT)) FILTER (flag = 'api_server_count') AS fronts,
    coalesce(bool_or(lower(value) = 'shm') FILTER (flag = 'mm_processor_cache_type'), false) AS inputs_in_shm
  FROM seen.engine_flag WHERE flag IN ('api_server_count', 'mm_processor_cache_type')
), defaulted AS (
  FROM flag
  UNION ALL
  -- who takes images, and has several API servers, and says nothing of it, has the default of each of them (vllm/config/multimodal.py)
  SELECT 'mm_processor_cache_gb', $input_cache_gib, min(f.source || ':' || f.line)
  FROM seen.engine_flag f
  WHERE f.flag = 'limit_mm_per_prompt' AND regexp_matches(f.value, '[1-9]') AND (SELECT max(fronts) FROM server) > 1
    AND NOT EXISTS (FROM flag WHERE name = 'mm_processor_cache_gb') AND NOT EXISTS (FROM seen.engine_flag o WHERE o.flag ILIKE '%disable_mm_preprocessor_cache%' AND o.value ILIKE 'true')
  HAVING count(*) > 0
), made AS (
  -- ranks that were seen to make one, where nobody tells how many there are
  SELECT count(DISTINCT coalesce(rank, pid)) AS ranks
  FROM (
    SELECT rank, pid
    FROM seen.milestone
    WHERE name = 'host-cache-made'
    UNION ALL
    SELECT rank, pid
    FROM seen.engine_flag
    WHERE flag = 'max_local_cpu_size'
  )
), claim AS (
  -- per rank: swap space, offloaded weights and LMCache's pool are pinned by every worker; the engine's own KV offloading is stated for all ranks together
  SELECT f.name, f.gib * 1073741824 AS each,
    CASE WHEN f.name = 'kv_offloading_size' THEN 1
      -- each API server and each engine keeps its own copies of the inputs (vllm/config/multimodal.py), or each API server puts them where all engines see them
      WHEN f.name = 'mm_processor_cache_gb' AND s.inputs_in_shm THEN coalesce(s.fronts, 1)
      WHEN f.name = 'mm_processor_cache_gb' THEN coalesce(s.fronts, 1) + coalesce(e.data_parallel_size, 1)
      ELSE greatest(coalesce(e.world_size, 1), CASE WHEN f.name = 'max_local_cpu_size' THEN m.ranks ELSE 1 END) END AS times, f.ref
  FROM defaulted f, engine e, made m, server s
  WHERE f.gib > 0
), room AS (
  -- where nobody tells the size, what was available before anything was loaded
  SELECT least(
    (SELECT min(memory_limit_bytes) FROM container WHERE memory_limit_bytes > 0),
    -- of several limits that are told beside the server nobody knows which is its own
    (SELECT CASE WHEN count(DISTINCT value) = 1 THEN max(value) END FROM note WHERE topic = 'container-limit'),
    coalesce((SELECT max(value) FROM note WHERE topic IN ('host-size', 'container-limit')), (SELECT host_available_bytes FROM engine))
  ) AS bytes
)
SELECT string_agg(
  name || ' ' || round(each / 1073741824, 1)::VARCHAR || ' GiB x ' || times::VARCHAR, ' + ' ORDER BY each * times DESC
) AS names, try_cast(sum(each * times) AS BIGINT) AS claim_bytes, any_value(room.bytes)::BIGINT AS room_bytes,
  try_cast(coalesce(sum(each * times) FILTER (name = 'mm_processor_cache_gb'), 0) AS BIGINT) AS fills_bytes,
  max(each) FILTER (name = 'mm_processor_cache_gb') / 1073741824 AS input_gib, max(times) FILTER (name = 'mm_processor_cache_gb') AS input_copies,
  (sum(each * times) FILTER (name = 'mm_processor_cache_gb' AND (SELECT inputs_in_shm FROM server)))::BIGINT AS mount_bytes,
  arg_max(ref, each * times) AS ref
FROM claim, room HAVING count(*) > 0
