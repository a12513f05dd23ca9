@serve.deployment(
    max_concurrent_queries=1,
    autoscaling_config={"min_replicas": 1, "max_replicas": 8, "target_num_ongoing_requests_per_replica": 1},
    ray_actor_options={"num_gpus": 1},
)
class Generate:
    def __call__(self, req):   # about 8 s
        return self.model.generate(**req)
