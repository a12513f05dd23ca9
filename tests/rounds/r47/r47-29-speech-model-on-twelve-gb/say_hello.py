from orpheus_tts import OrpheusModel
import wave

# the sentence from the front page, nothing changed
model = OrpheusModel(model_name="canopylabs/orpheus-tts-0.1-finetune-prod")
syn = model.generate_speech(prompt="Good evening, this is a short test.", voice="tara")
with wave.open("out.wav", "wb") as wf:
    wf.setnchannels(1); wf.setsampwidth(2); wf.setframerate(24000)
    for chunk in syn:
        wf.writeframes(chunk)
