-- says: the start in focus was refused with a feature that loads weights of its own, and another start of the same model on as many devices, without it or with less of it, loaded less and had the room; no row where that is not so
-- scope: incident
-- feature: which
-- loaded_bytes: per rank, with it
-- plain_bytes: without it
-- left_bytes: for KV, with it
-- plain_left_bytes: without it
-- needed_bytes: what a request of the longest length takes; NULL = nothing was left at all
-- ref: where the start without it tells what it loaded
WITH told AS (
  SELECT p.*, f.slots, coalesce(f.lora, false) AS lora, coalesce(f.draft, false) AS draft, f.loaded_ref, regexp_extract(lower(p.model), '[^/]+$') AS base
  FROM start_pool p LEFT JOIN start_feature f USING (start_id)
), own AS (
  SELECT t.*, x.needed_bytes
  FROM focus o
  JOIN incident i ON i.incident = o.incident
  JOIN told t ON t.start_id = i.start_id
  JOIN failure x ON x.check_name IN ('no-kv-blocks', 'kv-below-max-model-len', 'negative-kv')
)
SELECT CASE WHEN a.lora AND b.lora THEN 'more adapters' WHEN a.lora AND NOT b.lora THEN 'adapters' ELSE 'a draft model' END AS feature, a.weights_bytes::BIGINT AS loaded_bytes,
  b.weights_bytes::BIGINT AS plain_bytes, a.available_bytes::BIGINT AS left_bytes, b.available_bytes::BIGINT AS plain_left_bytes, a.needed_bytes,
  b.loaded_ref AS ref
FROM own a
JOIN told b ON b.start_id <> a.start_id AND b.base = a.base AND b.shards IS NOT DISTINCT FROM a.shards
WHERE ((a.lora AND NOT b.lora) OR (a.lora AND b.lora AND a.slots > b.slots) OR (a.draft AND NOT b.draft)) AND a.weights_bytes - b.weights_bytes >= $layer_sized
  AND b.available_bytes >= coalesce(a.needed_bytes, 0) AND coalesce(a.available_bytes, 0) < coalesce(a.needed_bytes, 1)
ORDER BY b.available_bytes DESC LIMIT 1
