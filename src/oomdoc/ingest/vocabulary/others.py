"""Names that are no quantity of ours: what bears on no memory, and what other programs' tables are known by."""

from __future__ import annotations

IRRELEVANT = """
    pstate, perf, serial, gpu_serial, vbios_version, driver_version, driver, cuda_version, persistence_mode, persistence-m, compute_mode,
    compute m., disp.a, display_active, volatile uncorr. ecc, fan, count, pci.domain, ecc.mode.current, sm_clock, enc, dec, jpg, ofa,
    mclk, pclk, pwr, gtemp, mtemp, gpu_instance_id, xcp, gi id, ci id, compute_instance_id, mig.mode.current, mig m., accounting.mode,
    request_id, id, req_id, x-request-id, trace_id, span_id, call_type, route, path, endpoint, method, url, uri, level, component, msg, message,
    total_tokens, stream, finish_reason, object, seed, temperature, top_p, top_k, user_agent, remote_addr, host, hostname, node, instance,
    job, pod, namespace, container, source, sourcetype, zone, region, cluster, rack, comment, remark, session, session_id, conversation_id,
    attempt, retries, turn, turn_no, turn_id, turn_index, turn_number, engine, version, ppid, uid, tty, stat, vsz, nice, cpu, cpu%, %cpu, %mem, shared, shared_bytes, shr, virt, threads, tpot_ms, itl_ms,
    tpot, itl, queue_time, queue_ms, bytes_in, bytes_out, request_bytes, response_bytes, ip, client_ip, port, protocol, subobject, name, namespace_name,
    reporter, reportingcomponent, reportinginstance, uid_, first_seen, mode, unit,
    priority, tags, labels, measurement, metric_type, help, system, sm_util, gi, ci, cache_dtype, row, rowid, no, nr, line, seq, sequence, index_, #, MemFree, MemAvailable, Buffers, Cached, SwapTotal, SwapFree, attached_gpus, iteration_time, cache.size, cache.cache_size, num_cpu_blocks
"""
IRRELEVANT_WORDS = (
    "temperature temp power watt watts clock clocks fan ecc voltage throttle throttled pcie nvlink encoder decoder driver vbios serial "
    "tpot itl cost price spend latitude user_agent bar vms enc dec swap cpu disk network rx tx ipc gtt visible"
)
FOREIGN: tuple[tuple[str, str], ...] = (
    ("zfs", "arcsz, arc_size, arc, hits, misses, miss, dmis, pmis, mmis, demand_data_hits, l2hits, arc_c, zpool, dedup, alloc, frag"),
    ("redis", "redis_version, redis_mode, used_memory_human, used_memory_rss_human, used_memory_peak, used_memory_lua, maxmemory, maxmemory_policy, keyspace_hits, keyspace_misses, evicted_keys, expired_keys, mem_fragmentation_ratio, connected_clients, aof_enabled, used_memory_dataset, allocator_allocated"),
    ("memcached", "get_hits, get_misses, cmd_get, cmd_set, limit_maxbytes, curr_items"),
    ("web server", "remote_addr, request_uri, http_referer, http_user_agent, user_agent, body_bytes_sent, upstream_addr, cs-uri-stem, sc-status, useragent, referer"),
    ("database", "shared_buffers, blks_hit, blks_read, tup_returned, buffer_pool_size, innodb_buffer_pool_reads, seq_scan, idx_scan"),
    ("java", "heap_used, heap_max, heap_committed, metaspace_used, gc_count, gc_time, eden, survivor, ygc, fgc"),
    ("disk", "filesystem, mounted on, 1k-blocks, use%, inodes, iused, rrqm/s, wrqm/s, r/s, w/s, await, svctm, avgqu-sz"),
    ("memory map", "address, perm, perms, offset, inode, mapping, pathname, address perm, offset device, anonymous mapping"),
    ("host tools", "swpd, buff, buffers, buff/cache, kbmemfree, kbmemused, kbcached, kbcommit, shared hugepages, si, so"),
    ("message queue", "partition, current-offset, log-end-offset, lag, consumer-id, messages_ready, messages_unacknowledged"),
    ("training", "epoch, loss, train_loss, learning_rate, lr, grad_norm, perplexity, accuracy, val_loss"),
    ("cloud bill", "sku, unit_price, invoice, usage_amount, usage_quantity"),
)  # fmt: skip
"""Columns by which the tables of another program are known: beside one of them only strong names count."""
