"""Makes ggml_blocks.json: one block of each GGUF type that quantmap decodes, with the values libggml decodes it to.

Usage: make_ggml_blocks.py VECTORS/gguf.json > ggml_blocks.json

The blocks are the first ones of the project's gguf.json, whose bytes and values came from libggml-base 0.25.3 (the
sources in llama-cpp-python 0.3.36, gcc -O3, no FMA) on Gaussian data. Python 3.11; no packages.
"""
import json
import sys

IDS = {"q4_0": 2, "q4_1": 3, "q5_0": 6, "q5_1": 7, "q8_0": 8, "q2_K": 10, "q3_K": 11, "q4_K": 12, "q5_K": 13,
       "q6_K": 14, "iq4_nl": 20}

source = json.load(open(sys.argv[1]))
blocks = []
for case in source["cases"]:
    if case["type"] in IDS:
        blocks.append({"id": IDS[case["type"]], "type": case["type"], "bytes": case["bytes"][0],
                       "values": case["dequant"][0]})
json.dump({"note": "one block a type; values: FP32 bit patterns in hex", "made_with": source["made_with"],
           "blocks": blocks}, sys.stdout, indent=1)
print()
