-- says: whether what was asked for when memory ran out belongs to a private pool (the tensors of a CUDA graph): the memory snapshot shows the call that failed as the one that filled the pool; no row without such a pool
-- scope: bundle
-- pool_bytes: live in private pools
-- blocks: how many the failing call has there
-- site_bytes: of them
-- requested_bytes: failed request
-- largest_bytes: largest of them
-- asked: it has several there, of the size that failed
-- ref: where the snapshot stands
SELECT p.pool_bytes, b.blocks, b.bytes AS site_bytes, o.requested_bytes, b.largest_bytes,
  b.blocks >= $pool_blocks AND b.largest_bytes BETWEEN o.requested_bytes / $pool_piece AND o.requested_bytes * $pool_piece AS asked,
    o.source || ':' || o.line AS ref
FROM (SELECT source, sum(allocated_bytes) AS pool_bytes FROM allocator_segment WHERE pool = 'private' GROUP BY source) p
JOIN oom o ON o.source = p.source
JOIN allocator_block b ON b.source = p.source AND b.pool = 'private' AND ends_with(o.text, 'asked by ' || b.site)
ORDER BY b.bytes DESC LIMIT 1
