-- says: a front end that is at the end of its one core while the engine behind it has little to do; no row where no listing shows both
-- scope: bundle
-- name: the process or thread
-- share: of a core that it uses
-- engine_share: of a core that the engine's own process uses
-- ref: its line
WITH front AS (
  SELECT name, share, source || ':' || line AS ref FROM process_cpu
  WHERE regexp_matches(name, '(?i)api_?server|uvicorn|^vllm$|vllm serve|openai|gunicorn|tokenizer')
    AND share BETWEEN $core_full AND $core_most
  ORDER BY share DESC, source, line LIMIT 1
), engine AS (
  SELECT max(share) AS share FROM process_cpu WHERE regexp_matches(name, '(?i)engine_?c|worker')
)
SELECT f.name, f.share, e.share AS engine_share, f.ref FROM front f, engine e WHERE e.share < $engine_idle
