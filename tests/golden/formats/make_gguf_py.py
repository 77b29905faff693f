"""Makes gguf_py.json: rows of several distributions quantized and decoded by gguf-py (numpy, not libggml).

Usage: make_gguf_py.py LIBGGML.so > gguf_py.json       Python 3.11, gguf 0.19.0, numpy 2.

Every type that gguf-py quantizes and quantmap encodes: q4_0 q4_1 q5_0 q5_1 q8_0 tq1_0 tq2_0 mxfp4. `x`: FP32 in hex,
512 values; `bytes`: the blocks in memory order. `weights`: SHA-256 of the bytes of whole weights of the model in
datasets/demo, which is read beside this file: by gguf-py for its types, by libggml for the others (0.25.3, the sources
in llama-cpp-python 0.3.36: ggml*.c, ggml*.cpp, gguf.cpp of ggml/src, gcc 12 -O3 -ffp-contract=off, as a shared library).
"""
import ctypes
import hashlib
import importlib.metadata
import json
import pathlib
import struct
import sys

import numpy as np
from gguf import GGMLQuantizationType, quants

TYPES = ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "TQ1_0", "TQ2_0", "MXFP4"]
random = np.random.default_rng(20)
n = 512
samples = {
    "gaussian": random.standard_normal(n),
    "weights": 0.02 * random.standard_normal(n),
    "uniform, one-sided": 3 + random.random(n),
    "negative": -1 - random.random(n),
    "ties": random.integers(-64, 65, n) / 16,
    "constant": np.full(n, 0.3),
    "zeros among others": np.where(np.arange(n) // 32 % 2 == 0, 0, random.standard_normal(n)),
    "outlier": np.where(np.arange(n) % 97 == 5, 1900, random.standard_normal(n)),
    "tiny": 1e-6 * random.standard_normal(n),
}
cases = []
for name, values in samples.items():
    x = values.astype(np.float32)
    rows = {}
    for kind in TYPES:
        data = quants.quantize(x.reshape(1, -1), GGMLQuantizationType[kind])
        rows[kind] = data.tobytes().hex()
    cases.append({"name": name, "x": x.astype(">f4").tobytes().hex(), "bytes": rows})

model = pathlib.Path(__file__).parents[3] / "datasets/demo/model.safetensors"
data = model.read_bytes()
size = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + size])
libggml = ctypes.CDLL(sys.argv[1])
libggml.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [
    ctypes.c_void_p]
libggml.ggml_quantize_chunk.restype = ctypes.c_size_t
LIBGGML_TYPES = {"Q2_K": 10, "Q3_K": 11, "Q4_K": 12, "Q5_K": 13, "Q6_K": 14, "IQ4_NL": 20, "IQ4_XS": 23, "NVFP4": 40,
                 "Q1_0": 41, "Q2_0": 42}
weights = []
for name in ["model.layers.0.mlp.down_proj.weight", "model.layers.3.self_attn.q_proj.weight"]:
    begin, end = header[name]["data_offsets"]
    assert header[name]["dtype"] == "BF16"
    bits = np.frombuffer(data[8 + size + begin:8 + size + end], dtype="<u2").astype(np.uint32) << 16
    values = bits.view(np.float32).reshape(header[name]["shape"])
    sums = {}
    for kind in TYPES:
        if values.shape[1] % (256 if kind.startswith("TQ") else 32) == 0:
            coded = quants.quantize(values, GGMLQuantizationType[kind])
            sums[kind] = hashlib.sha256(coded.tobytes()).hexdigest()
    for kind, number in LIBGGML_TYPES.items():
        out = np.zeros(values.size * 2, np.uint8)
        count = libggml.ggml_quantize_chunk(number, values.ctypes.data, out.ctypes.data, 0, *values.shape, None)
        sums[kind] = hashlib.sha256(out[:count].tobytes()).hexdigest()
    weights.append({"name": name, "sha256": sums})
json.dump({"made_with": f"gguf {importlib.metadata.version('gguf')}, numpy {np.__version__}; libggml 0.25.3",
           "cases": cases,
           "weights": weights},
          sys.stdout, indent=1)
print()
