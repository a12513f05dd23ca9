import base64, csv, glob, sys
from openai import OpenAI
client = OpenAI(base_url="http://vlm-1:9325/v1", api_key="x")

for path in sorted(glob.glob("claims/*.jpg")):
    b64 = base64.b64encode(open(path, "rb").read()).decode()
    r = client.chat.completions.create(
        model="Qwen/Qwen2.5-VL-7B-Instruct",
        messages=[
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": [
                {"type": "image_url",
                 "image_url": {"url": f"data:image/jpeg;base64,{b64}"},
                 "max_pixels": 256 * 28 * 28},          # 256 tokens at most
                {"type": "text", "text": "Describe the damage"}]},
        ],
        temperature=0.1, max_tokens=300)
    print(path, r.usage.prompt_tokens)
