import itertools
import torch
from vllm.v1.sample.logits_processor import LogitsProcessor, BatchUpdate

class TenantBias(LogitsProcessor):
    def __init__(self, vllm_config, device, is_pin_memory):
        self.device = device
        self.vocab = vllm_config.model_config.get_vocab_size()      # 151936
        self.rows = {}          # (tenant, n) -> bias row on the device
        self.slot = {}
        self.seq = itertools.count()

    def is_argmax_invariant(self):
        return False

    def update_state(self, batch_update: BatchUpdate | None):
        if not batch_update:
            return
        for index, params, *_ in batch_update.added:
            key = (params.extra_args or {}).get("tenant"), next(self.seq)
            row = torch.zeros(self.vocab, dtype=torch.float32, device=self.device)
            row[(params.extra_args or {}).get("avoid", [])] = -4.0
            self.rows[key] = row
            self.slot[index] = key
        for index in batch_update.removed:
            self.slot.pop(index, None)
        for a, b, direction in batch_update.moved:
            self.slot[b] = self.slot.pop(a, None)

    def apply(self, logits):
        for i, key in self.slot.items():
            if key in self.rows:
                logits[i] += self.rows[key]
        return logits
