-- says: one row per process in a list of a device, whether it is the server's own by its name, and whether the server has that device
-- scope: bundle
-- device: index, uuid or bus address of the device, whichever the list shows; NULL = not told
-- t: when it was listed; NULL = not told
-- source: the list
-- host: the host, where the list shows several, but for the first of them
-- line: its line
-- pid: its number
-- type: C compute, G graphics
-- name: its name, may be cut
-- used_bytes: what it holds there
-- foreigner: it is no part of the server: a program of another name or, beside one that bears the engine's title, an interpreter without a title that holds more than a context
-- elsewhere: the server was put on other devices, by their numbers or uuids; false where nobody says on which
WITH each AS (
  -- a list that is repeated without a time shows each process again
  SELECT coalesce(gpu::VARCHAR, gpu_uuid) AS device, t, source, pid, type, name, max(used_bytes) AS used_bytes, min(line) AS line FROM gpu_process GROUP BY ALL
), titled AS (
  SELECT DISTINCT source, device FROM each WHERE name ILIKE '%vllm::%'
), figured AS (
  -- whatever it is called there, the row that tells what runs in an engine tells of its process
  SELECT DISTINCT g.source, g.name FROM gpu_process g JOIN metric m ON m.source = g.source AND m.line = g.line WHERE m.name LIKE 'vllm:%' AND g.name IS NOT NULL
), largest AS (
  SELECT source, device, pid, max(used_bytes) AS used_bytes FROM each GROUP BY ALL
)
SELECT e.device, e.t, e.source, nullif(regexp_extract(e.source, '\[([\w.-]+)\]$', 1), '') AS host, e.line, e.pid, e.type, e.name, e.used_bytes, coalesce(e.type, 'C') <> 'G' AND q.source IS NULL AND (
    NOT regexp_matches(coalesce(e.name, ''), '(?i)^$|^-$|vllm|python|ray::|sglang|not found|n/a')
      -- a script with a name of its own; `main.py` or `server.py` can start any server
      OR regexp_matches(coalesce(e.name, ''), '(?i)python[\d.]*"? (-[\w=]+ )*\S*[\w-]+\.py\b')
        AND NOT regexp_matches(e.name, '(?i)vllm|sglang|\bray\b|lmdeploy|tgi|llm|engine|api_server|launch_server|(^|[/ ])(main|app|run|serve|server|start|api|worker)\.py')
      -- every process of the engine that computes bears its title
      OR s.source IS NOT NULL AND l.used_bytes >= $untitled_bytes AND regexp_matches(coalesce(e.name, ''), '(?i)python[\d.]*$')
        AND NOT regexp_matches(e.name, '(?i)vllm|sglang|\bray\b')
  ) AS foreigner,
  coalesce(
    e.device NOT IN (SELECT device FROM own_device) AND EXISTS (FROM own_device t WHERE regexp_matches(t.device, '^\d+$') = regexp_matches(e.device, '^\d+$'))
      AND regexp_matches(e.device, '^\d+$|^GPU-'), false) AS elsewhere
FROM each e
JOIN largest l ON l.source = e.source AND l.device IS NOT DISTINCT FROM e.device AND l.pid IS NOT DISTINCT FROM e.pid
LEFT JOIN titled s ON s.source = e.source AND s.device = e.device
LEFT JOIN figured q ON q.source = e.source AND q.name = e.name
