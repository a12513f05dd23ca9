-- says: where the memory of a device went as far as known, one row per rank of the engine in focus
-- scope: incident
-- start_id: engine start in focus; NULL = the bundle tells no start apart
-- rank: worker rank; NULL = one rank, or figures that hold for every rank
-- device: device as the sources name it
-- total_bytes: device total
-- other_processes_bytes: others on the device
-- non_torch_bytes: outside torch
-- weights_bytes: parameters
-- kv_pool_bytes: KV pool
-- cuda_graph_bytes: captured graphs
-- activation_bytes: profiled peak
-- allocator_slack_bytes: reserved but unallocated at the failure
-- free_bytes: free at the failure
-- kv_bytes_per_token: per rank
-- kv_pool_tokens: tokens of the pool
-- refs: where the figures stand
WITH who AS (
  SELECT rank, max(source || ':' || line) FILTER (name = 'weights_bytes') AS weights_ref,
    max(source || ':' || line) FILTER (name IN ('kv_available_bytes', 'kv_reserved_bytes')) AS kv_ref,
    max(source || ':' || line) FILTER (name = 'graph_bytes') AS graph_ref,
    max(value) FILTER (name = 'weights_bytes') AS weights, max(value) FILTER (name IN ('kv_available_bytes', 'kv_reserved_bytes')) AS kv,
      max(value) FILTER (name IN ('graph_bytes', 'graph_actual_bytes')) AS graphs,
    max(value) FILTER (name = 'activation_bytes') AS activation, max(value) FILTER (name = 'non_torch_bytes') AS non_torch,
      max(value) FILTER (name = 'total_bytes') AS total
  FROM seen.engine_figure GROUP BY rank
), books AS (
  SELECT rank, min(source || ':' || line) AS ref, arg_min(total_bytes, line) AS total, arg_min(free_bytes, line) AS free,
    arg_min(other_processes_bytes, line) AS others, arg_min(unallocated_bytes, line) AS slack,
         arg_min(this_process_bytes - allocated_bytes - unallocated_bytes, line) AS non_torch, arg_min(device, line) AS device,
           arg_min(private_pool_bytes, line) AS private
  FROM seen.oom WHERE total_bytes IS NOT NULL OR free_bytes IS NOT NULL GROUP BY rank
), ranks AS (
  SELECT rank FROM who UNION SELECT rank FROM books
), known AS (SELECT count(*) FILTER (rank IS NOT NULL) AS n FROM ranks), shared AS (SELECT * FROM who WHERE rank IS NULL)
, other AS (
  SELECT who.*
  FROM who, engine e
  WHERE weights IS NOT NULL AND coalesce(e.version_number >= $rank_0_prints_since, true)
  ORDER BY rank
  LIMIT 1
)
SELECT (SELECT i.start_id FROM incident i, focus f WHERE i.incident = f.incident) AS start_id, r.rank,
  coalesce('GPU ' || b.device, CASE WHEN e.platform = 'cpu' THEN 'host node' END) AS device,
  coalesce(b.total, w.total, s.total, e.total_bytes, d.total_bytes)::BIGINT AS total_bytes, b.others::BIGINT AS other_processes_bytes,
    CASE WHEN coalesce(b.non_torch, w.non_torch, s.non_torch) >= 0 THEN coalesce(b.non_torch, w.non_torch, s.non_torch)
      END::BIGINT AS non_torch_bytes,
  coalesce(w.weights, s.weights, o.weights)::BIGINT AS weights_bytes,
    if(coalesce(w.kv, s.kv, o.kv) < 0, 0, coalesce(w.kv, s.kv, o.kv))::BIGINT AS kv_pool_bytes,
  if(
    coalesce(w.graphs, s.graphs, o.graphs, b.private) < 0, 0, coalesce(w.graphs, s.graphs, o.graphs, b.private)
  )::BIGINT AS cuda_graph_bytes, coalesce(w.activation, s.activation, o.activation)::BIGINT AS activation_bytes,
  b.slack::BIGINT AS allocator_slack_bytes, b.free::BIGINT AS free_bytes, e.kv_bytes_per_token, e.kv_pool_tokens,
  list_filter(
    [b.ref, coalesce(
      w.weights_ref, s.weights_ref, o.weights_ref
    ), coalesce(w.kv_ref, s.kv_ref, o.kv_ref), coalesce(w.graph_ref, s.graph_ref, o.graph_ref)], lambda x: x IS NOT NULL
  ) AS refs
FROM ranks r
LEFT JOIN who w ON w.rank IS NOT DISTINCT FROM r.rank
LEFT JOIN books b ON b.rank IS NOT DISTINCT FROM r.rank
LEFT JOIN shared s ON true
LEFT JOIN other o ON true, engine e, known, device d
WHERE r.rank IS NOT NULL OR known.n = 0
ORDER BY r.rank
