-- says: the start in focus was refused a pool, or its length for want of a larger one, and another start of the bundle with weights of the same size and the same settings got one that is large enough, or one of the same model and the same settings came up; no row without such a pair
-- scope: incident
-- tokens: the pool of the other start; NULL = it came up, and its pool is not told
-- weights_bytes: weights of both, per rank; NULL = not told of the other
-- utilization: share of the card that both plan with
-- other_ref: where the other start's pool stands, or where that start begins
-- available_bytes: what this start had left for KV; negative where the plan is beyond the budget
-- other_available_bytes: what the other had left
-- estimate_bytes: what this start's plan sets aside for graphs
-- of_graphs: to a twentieth of that it is the difference between the two: one plan counts the graphs, the other does not
-- ref: the refusal
SELECT b.tokens::BIGINT AS tokens, b.weights::BIGINT AS weights_bytes, e.gpu_memory_utilization AS utilization, b.ref AS other_ref,
  coalesce(e.kv_available_bytes, x.available_bytes) AS available_bytes,
  -- where it is not told, what its tokens take at what one takes by the refusal
  coalesce(p.available_bytes, b.tokens * x.needed_bytes / x.check_len)::BIGINT AS other_available_bytes, e.graph_estimate_bytes AS estimate_bytes,
  coalesce(
    abs(p.available_bytes - e.kv_available_bytes - e.graph_estimate_bytes) <= $graphs_differ * e.graph_estimate_bytes, false
  ) AS of_graphs, x.check_ref AS ref
FROM focus f
JOIN incident i USING (incident)
JOIN failure x ON x.check_name IN ('no-kv-blocks', 'kv-below-max-model-len')
JOIN engine e ON true
JOIN start_pair b ON b.own = i.start_id AND (x.check_name = 'no-kv-blocks' OR b.tokens >= x.check_len)
LEFT JOIN start_pool p ON p.start_id = b.other
LEFT JOIN (
  SELECT s.start_id, max(g.value) AS peak
  FROM engine_start s
  JOIN main.engine_figure g ON g.source = s.source AND g.line BETWEEN s.first_line AND s.last_line AND g.name = 'activation_bytes'
  GROUP BY s.start_id
) a ON a.start_id = b.other
WHERE NOT EXISTS (FROM lone_refusal)  -- nor is it who else was there
  AND NOT EXISTS (FROM cut_card)  -- on an instance of a card the other start may have had more
  -- another release plans otherwise
  AND NOT EXISTS (
    FROM engine_start mine JOIN engine_start other ON other.version <> mine.version WHERE mine.start_id = i.start_id AND other.start_id = b.other
  )
  -- a profile run that took less is no other neighbour, but a smaller step
  AND NOT coalesce(e.activation_bytes > $peak_alike * a.peak, false)
ORDER BY b.tokens DESC NULLS LAST, b.ref LIMIT 1
