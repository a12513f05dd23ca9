-- says: a model that its server found too large for the device, and put a part of its layers on the host for: the plan that is farthest beyond; no row where none is told
-- scope: incident
-- needs_bytes: what the whole model needs, its cache and buffers included, as the server counts it
-- finds_bytes: what it finds free on a device
-- weights_bytes: weights alone, as told, or by the layers that are on the device
-- slots: requests that it makes room for at a time; NULL = not told
-- one_slot_bytes: what it would need with room for one: weights, and a share of cache and buffers; NULL where slots or the cache are not told
-- ref: the line of the plan
WITH plan AS (
  SELECT source, line, lead(line) OVER (PARTITION BY source ORDER BY line) AS next,
    max(value) FILTER (name IN ('model_needs_bytes', 'projected_needs_bytes')) AS needs,
    max(value) FILTER (name IN ('model_finds_bytes', 'projected_finds_bytes')) AS finds, bool_or(name = 'projected_needs_bytes') AS projected,
    coalesce(max(value) FILTER (name = 'model_kv_bytes'), 0) AS kv, coalesce(max(value) FILTER (name = 'model_graph_bytes'), 0) AS graph,
    max(value) FILTER (name = 'model_weights_bytes') AS weights
  FROM seen.engine_figure
  WHERE name LIKE 'model\_%\_bytes' ESCAPE '\' OR name LIKE 'projected\_%' ESCAPE '\'
  GROUP BY source, line
), placed AS (
  SELECT p.* EXCLUDE (weights), coalesce(p.weights, a.told, a.held * a.layers / a.on_device) AS weights
  FROM plan p, LATERAL (
    -- up to the next plan it is this model that is loaded
    SELECT max(value) FILTER (name = 'layers_on_device') AS on_device, max(value) FILTER (name = 'layers_of_model') AS layers,
      sum(value) FILTER (name = 'weights_bytes') AS held, max(value) FILTER (name = 'told_weights_bytes') AS told
    FROM seen.engine_figure g WHERE g.source = p.source AND g.line >= p.line AND g.line < coalesce(p.next, g.line + 1)
  ) a
  -- several devices hold what the first alone would not; and what is only projected is made to fit, by a shorter length or by fewer layers
  WHERE p.needs > p.finds AND coalesce(a.on_device < a.layers, NOT p.projected)
), parted AS (
  -- earlier releases count the cache among the weights: then the parts are more than the whole
  SELECT *, CASE WHEN weights + kv + graph > $parts_beyond * needs THEN weights - kv ELSE weights END AS bare FROM placed
)
SELECT p.needs::BIGINT AS needs_bytes, p.finds::BIGINT AS finds_bytes, p.bare::BIGINT AS weights_bytes, s.slots,
  (p.bare + (nullif(p.kv, 0) + p.graph) / s.slots)::BIGINT AS one_slot_bytes, p.source || ':' || p.line AS ref
FROM parted p
LEFT JOIN LATERAL (
  -- the runner is started right behind the plan
  SELECT try_cast(g.value AS INTEGER) AS slots FROM seen.engine_flag g
  WHERE g.flag = 'max_num_seqs' AND g.source = p.source AND g.line > p.line AND g.line <= p.line + $lines_to_the_runner
  ORDER BY g.line LIMIT 1
) s ON true
ORDER BY p.bare IS NULL, p.needs / p.finds DESC, p.source, p.line
LIMIT 1
