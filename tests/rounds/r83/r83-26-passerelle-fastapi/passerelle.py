import json, logging, time
import requests
from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

app = FastAPI()
log = logging.getLogger("passerelle")
VLLM = "http://127.0.0.1:8000/v1/chat/completions"
CLES = json.load(open("cles.json"))


class Question(BaseModel):
    texte: str
    max_tokens: int = 256


@app.post("/demande")
async def demande(q: Question, x_cle: str = Header()):
    if x_cle not in CLES:
        raise HTTPException(401)
    t = time.time()
    r = requests.post(VLLM, json={
        "model": "qwen",
        "messages": [{"role": "user", "content": q.texte}],
        "max_tokens": q.max_tokens,
    }, timeout=600)
    r.raise_for_status()
    log.info("%s %.2fs", CLES[x_cle], time.time() - t)
    return {"reponse": r.json()["choices"][0]["message"]["content"]}

# lancement : uvicorn passerelle:app --host 0.0.0.0 --port 9000 --workers 1
