from lmdeploy import pipeline, TurbomindEngineConfig

big = pipeline("/models/Llama-3.1-8B-Instruct",
               backend_config=TurbomindEngineConfig(tp=2, max_batch_size=32, enable_prefix_caching=True,
                                                    cache_max_entry_count=0.6, session_len=4096))
small = pipeline("/models/Llama-3.2-3B-Instruct",
                 backend_config=TurbomindEngineConfig(tp=2, max_batch_size=32, enable_prefix_caching=True,
                                                      cache_max_entry_count=0.5, session_len=4096))
qs = [l.strip() for l in open("q.txt")][:200]
a = big(qs); b = small(qs)
print(len(a), len(b), sum(r.finish_reason == "stop" for r in a), sum(r.finish_reason == "stop" for r in b))
