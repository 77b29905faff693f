"""What product.md promises of a capture, looked at with h5py.

Prints one JSON object: root attributes, and for each dataset its shape, type, attributes and the SHA-256 of its
values as little-endian float32 (int32 for tokens and rows). The test compares them with what quantmap reads.
"""
import hashlib
import json
import sys

import h5py
import numpy


def plain(value):
    return value.item() if hasattr(value, "item") else value


result = {"attributes": {}, "datasets": {}}
with h5py.File(sys.argv[1], "r") as file:
    result["attributes"] = {name: plain(value) for name, value in file.attrs.items()}

    def look(name, item):
        if not isinstance(item, h5py.Dataset):
            return
        result["datasets"][name] = {
            "shape": list(item.shape),
            "dtype": str(item.dtype),
            "bytes": item.id.get_type().get_size(),
            "chunks": list(item.chunks) if item.chunks else None,
            "attributes": {key: plain(value) for key, value in item.attrs.items()},
        }

    # visititems goes to an object once; links are looked at by name.
    for top in ("activations", "kv"):
        for module in file.get(top, {}):
            for side in file[top][module]:
                look(f"{top}/{module}/{side}", file[top][module][side])
    for tensor in file.get("weights", {}):
        look(f"weights/{tensor}", file["weights"][tensor])
    for name in ("tokens", "rows"):
        look(name, file[name])
    for name, entry in result["datasets"].items():
        values = file[name][...]
        values = values.astype("<i4" if name in ("tokens", "rows") else "<f4")
        entry["sha256"] = hashlib.sha256(numpy.ascontiguousarray(values).tobytes()).hexdigest()
        entry["address"] = h5py.h5o.get_info(file[name].id).addr
json.dump(result, sys.stdout)
