-- says: what a container or a process held of the host's memory, one row per sample, whoever measured it
-- scope: bundle
-- source: where
-- line: which line
-- series: whose samples follow one another: names and labels as the source has them
-- name: as the source names it
-- moment: t, or the order of the samples
-- bytes: what it held
SELECT source, line, concat_ws(' ', name, variant) AS series, name, coalesce(t, elapsed_s, step, line)::DOUBLE AS moment, bytes
FROM process_memory
WHERE resource = 'host' AND bytes IS NOT NULL
UNION ALL
-- an exporter's own names: without the files that the kernel gives up before it kills
SELECT source, line, concat_ws(' ', name, labels), regexp_extract(labels, '\bcontainer="([^"]+)"', 1), coalesce(t, line)::DOUBLE, value::BIGINT
FROM metric
WHERE name IN ('container_memory_working_set_bytes', 'container_memory_rss') AND labels LIKE '%container="%' AND labels NOT LIKE '%container=""%'
