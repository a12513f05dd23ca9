pipeline = PaddleOCRVL(
    layout_detection_model_name="PP-DocLayoutV2",
    layout_detection_model_dir="/models/PP-DocLayoutV2",
    vl_rec_backend="vllm-server",
    vl_rec_server_url="http://127.0.0.1:8118/v1",
)

@app.post("/ocr")
async def ocr(req: Req):
    result = pipeline.predict(req.file_base64)
    return [r.json for r in result]
