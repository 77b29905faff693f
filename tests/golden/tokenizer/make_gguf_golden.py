#!/usr/bin/env python3
"""Golden ids of llama.cpp for whole models in GGUF: make_gguf_golden.py SMOLLM2.gguf STORIES260K.gguf WIKITEXT

Needs PyPI's `xllamacpp` (llama.cpp's server in a wheel); asks its /tokenize, no special tokens added or parsed.
Writes gguf.json beside itself: the ids of the texts in splits.json, and the hash of those of WIKITEXT.
"""
import hashlib
import importlib.metadata
import json
import pathlib
import struct
import sys
import urllib.request

import xllamacpp

HERE = pathlib.Path(__file__).resolve().parent


def tokenize(server, text):
    body = json.dumps({"content": text, "add_special": False, "parse_special": False}).encode()
    request = urllib.request.Request(server.listening_address + "/tokenize", body, {"Content-Type": "application/json"})
    return json.loads(urllib.request.urlopen(request, timeout=600).read())["tokens"]


texts = json.loads((HERE / "splits.json").read_text())["texts"]
whole = pathlib.Path(sys.argv[3]).read_bytes().decode()
models = {}
for name, path in zip(["smollm2", "stories260k"], sys.argv[1:3]):
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.n_ctx = 512
    params.warmup = False
    params.cpuparams.n_threads = 1
    server = xllamacpp.Server(params)
    ids = tokenize(server, whole)
    models[name] = {
        "whole_text": {"count": len(ids), "sha256": hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest(),
                       "first": ids[:16]},
        "ids": [tokenize(server, text) for text in texts]}
content = {"versions": {"xllamacpp": importlib.metadata.version("xllamacpp")}, "texts": texts, "models": models}
(HERE / "gguf.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")
