# sizing sheet, kept next to the compose file
cfg = dict(layers=94, attention_heads=64, kv_heads=4, head_dim=128, max_len=262144)
tp = 8
per_token = 2 * cfg["layers"] * cfg["kv_heads"] * cfg["head_dim"] * 2          # K and V, bf16
print("bytes per token      ", per_token)                                      # 192512
print("one full request, GiB", per_token * cfg["max_len"] / 2**30)             # 47.0
print("per card, GiB        ", per_token * cfg["max_len"] / 2**30 / tp)        # 5.875
