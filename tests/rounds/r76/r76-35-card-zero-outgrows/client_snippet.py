# used by the moderation team since 26 Feb
payload = {
    "model": "/data/Qwen2.5-32B-Instruct",
    "messages": msgs,
    "max_tokens": 400,
    "bad_words": load_list("banned_zh.txt"),   # 212 entries
}
