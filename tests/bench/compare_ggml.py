#!/usr/bin/env python3
"""Speed of libggml's quantizers beside quantmap's: one thread, FP32 rows of N(0,1), nanoseconds a value and GB/s of FP32
read. Not run by CI.

Usage: compare_ggml.py LIBGGML.so [QUANTMAP]

LIBGGML.so: any libggml(-base) with ggml_quantize_chunk, such as the one in the wheel of llama-cpp-python, or built from
its sources. QUANTMAP: the binary; its rows are those of `quantmap bench --format json` ("weights … decoded": quantized
and decoded, which libggml's quantizing leaves out). Needs numpy.
"""
import ctypes
import json
import subprocess
import sys
import time

import numpy as np

TYPES = {"q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q2_k": 10, "q3_k": 11, "q4_k": 12, "q5_k": 13, "q6_k": 14,
         "iq4_nl": 20, "iq4_xs": 23, "tq1_0": 34, "tq2_0": 35, "ggml_mxfp4": 39, "ggml_nvfp4": 40, "q1_0": 41, "q2_0": 42}
ROWS, COLS, REPETITIONS = 1024, 4096, 3


def libggml_times(path):
    library = ctypes.CDLL(path)
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    library.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p] + [ctypes.c_int64] * 3 + [
        ctypes.c_void_p]
    x = np.random.default_rng(42).standard_normal((ROWS, COLS)).astype(np.float32)
    out = np.zeros(x.size * 2, np.uint8)
    times = {}
    for name, number in TYPES.items():
        rows, best = 16, None  # fewer rows where a first look says that all would take seconds
        for _ in range(1 + REPETITIONS):
            start = time.process_time()
            library.ggml_quantize_chunk(number, x.ctypes.data, out.ctypes.data, 0, rows, COLS, None)
            each = (time.process_time() - start) / (rows * COLS) * 1e9
            if best is None:
                rows = int(min(ROWS, max(16, 0.5e9 / each / COLS)))
                best = float("inf")
            else:
                best = min(best, each)
        times[name] = best
    return times


def quantmap_times(binary):
    table = json.loads(subprocess.run([binary, "bench", "--format", "json"], check=True, capture_output=True).stdout)
    times = {}
    for row in table["rows"]:
        words = row["name"].split()
        if row["shape"].startswith("weights") and words[-1] == "decoded":
            times[words[0]] = row["median"]
    return times


def main():
    theirs = libggml_times(sys.argv[1])
    ours = quantmap_times(sys.argv[2]) if len(sys.argv) > 2 else {}
    print("| type | libggml, ns/value | GB/s | quantmap, ns/value | GB/s |\n| :-- | --: | --: | --: | --: |")
    for name, time_a in theirs.items():
        time_b = ours.get(name)
        print(f"| {name} | {time_a:.2f} | {4 / time_a:.2f} | " +
              (f"{time_b:.2f} | {4 / time_b:.2f} |" if time_b else "- | - |"))


if __name__ == "__main__":
    main()
