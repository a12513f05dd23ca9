-- says: what fills a memory group: the processes' own memory or files that the kernel caches and gives up on demand; no row where nobody says
-- scope: bundle
-- own_bytes: anonymous and shared memory
-- cached_bytes: page cache
-- limit_bytes: the limit of the group, as it or the container tells
-- of_files: the cache is most of what is held, and the processes' own memory is half of the limit at most
-- ref: where
WITH held AS (
  SELECT arg_max(bytes, line) FILTER (
    resource = 'host' AND (name = 'memory group' OR regexp_matches(lower(name), '(container|pod|cgroup).*(rss|anon)'))
  ) AS own, arg_max(bytes, line) FILTER (resource = 'page-cache') AS cached, arg_max(bytes, line) FILTER (resource = 'host-limit') AS size,
         arg_max(source || ':' || line, line) FILTER (resource = 'page-cache') AS ref FROM process_memory
)
SELECT own AS own_bytes, cached AS cached_bytes, coalesce(size, (SELECT max(memory_limit_bytes) FROM container)) AS limit_bytes,
       cached > own AND cached > $cache_counts_bytes
         AND coalesce(
           own <= $own_half * coalesce(size, (SELECT max(memory_limit_bytes) FROM container)), cached > $cache_over_own * own
         ) AS of_files, ref
FROM held WHERE own IS NOT NULL AND cached IS NOT NULL
