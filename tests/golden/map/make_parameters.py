"""Parameters of the models whose configurations ../shared/data/configs holds, counted by building each on torch's
meta device with Hugging Face transformers: an implementation that is not ours.

    python3 -m venv V; V/bin/pip install transformers==4.57.1 torch==2.9.1
    V/bin/python make_parameters.py ../../../../shared/data/configs > parameters.json

Counted are parameters and the routers' stored correction bias (a buffer in transformers); tied heads once. A
multimodal configuration counts by its text model. Kimi K2 is built as DeepSeek V3, which its code copies.
"""
import json
import sys
from pathlib import Path

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM

ROOT = Path(sys.argv[1])
FILES = sorted(list(ROOT.glob("models/*.json")) + list(ROOT.glob("quant/*config.json")))


def text_of(config):
    return config.get("text_config", config)


def build(config):
    config = dict(text_of(config))
    config.pop("quantization_config", None)
    config.pop("auto_map", None)
    kind = config.pop("model_type")
    kind = {"kimi_k2": "deepseek_v3"}.get(kind, kind)
    settings = AutoConfig.for_model(kind, **config)
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(settings, attn_implementation="eager"), settings


counts = {}
for path in FILES:
    config = json.loads(path.read_text())
    kind = text_of(config).get("model_type")
    if kind is None or kind in ("phimoe", "llama4_text", "gemma4_text", "qwen3_5_text", "llama4"):
        continue
    model, settings = build(config)
    seen = {id(p): p.numel() for p in model.parameters()}
    total = sum(seen.values())
    total += sum(b.numel() for n, b in model.named_buffers() if n.endswith("e_score_correction_bias"))
    types = getattr(settings, "layer_types", None) or []
    counts[str(path.relative_to(ROOT))] = {
        "model_type": kind,
        "parameters": total,
        "sliding_layers": sum(t == "sliding_attention" for t in types),
        "sliding_window": getattr(settings, "sliding_window", None),
        "tied": bool(settings.tie_word_embeddings),
    }
    print(path.name, counts[str(path.relative_to(ROOT))], file=sys.stderr)

json.dump({"transformers": transformers.__version__, "torch": torch.__version__, "models": counts}, sys.stdout,
          indent=1)
