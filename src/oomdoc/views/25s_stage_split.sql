-- says: a pipeline whose layers somebody dealt out by hand, worked out for the stage that got most of them from what the others printed; no row where nobody did, or fewer than two stages of figures are there
-- scope: incident
-- parts: layers per stage, as they were set
-- stage: the stage with most layers, from 0
-- layers: how many it got
-- even: how many each would get
-- layer_bytes: what a layer takes on a rank, from two stages that differ in their number, else from the one that took least for each
-- weights_bytes: what the layers of that stage take on a rank, without embeddings or a head
-- room_bytes: what is left of it for KV where weights and room of the others together are what each rank has; may be negative
-- least_bytes: the least room that another stage printed
-- told: that stage printed its own room
-- ref: where the setting stands
WITH dealt AS (
  SELECT value AS parts, [try_cast(trim(part) AS INTEGER) FOR part IN string_split(value, ',')] AS layers, source || ':' || line AS ref
  FROM seen.engine_flag
  WHERE flag = 'VLLM_PP_LAYER_PARTITION' AND regexp_matches(value, '^ *\d{1,3}( *, *\d{1,3})+ *$')
  ORDER BY source, line LIMIT 1
), stage AS (
  SELECT unnest(generate_series(0, len(layers) - 1))::INTEGER AS stage, unnest(layers) AS layers, parts, ref, list_avg(layers) AS even FROM dealt
), printed AS (
  SELECT (f.rank // greatest(coalesce(e.tensor_parallel_size, 1), 1))::INTEGER AS stage, max(f.value) FILTER (f.name = 'weights_bytes') AS weights,
    min(f.value) FILTER (f.name = 'kv_available_bytes') AS room
  FROM seen.engine_figure f, engine e
  WHERE f.rank IS NOT NULL AND f.name IN ('weights_bytes', 'kv_available_bytes')
  GROUP BY ALL
  HAVING weights IS NOT NULL AND room IS NOT NULL
), known AS (
  SELECT s.stage, s.layers, p.weights, p.room, s.stage BETWEEN 1 AND (SELECT max(stage) FROM stage) - 1 AS inner FROM stage s JOIN printed p USING (stage)
), layer AS (
  SELECT coalesce(
    -- the first also holds the embeddings, the last a head
    (SELECT median((a.weights - b.weights) / (a.layers - b.layers)) FROM known a JOIN known b ON a.layers > b.layers AND a.inner AND b.inner AND a.weights > b.weights),
    (SELECT min(weights / layers) FROM known)
  ) AS bytes
), heaviest AS (
  SELECT * FROM stage ORDER BY layers DESC, stage LIMIT 1
)
SELECT h.parts, h.stage, h.layers, h.even, l.bytes::BIGINT AS layer_bytes, (h.layers * l.bytes)::BIGINT AS weights_bytes,
  ((SELECT median(weights + room) FROM known) - h.layers * l.bytes)::BIGINT AS room_bytes, (SELECT min(room) FROM known WHERE stage <> h.stage)::BIGINT AS least_bytes,
  EXISTS (FROM known WHERE stage = h.stage) AS told, h.ref
FROM heaviest h, layer l
WHERE h.layers > h.even AND (SELECT count(*) FROM known) >= 2 AND l.bytes > 0
