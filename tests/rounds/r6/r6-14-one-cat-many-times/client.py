while True:
    client.chat.completions.create(model=m, max_tokens=512, temperature=0, messages=[{"role":"user","content":[{"type":"image_url","image_url":{"url":CAT}},{"type":"text","text":"what is this?"}]}])
    time.sleep(3)
