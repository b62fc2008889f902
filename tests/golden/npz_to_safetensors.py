"""Turns an .npz of the golden data into one .safetensors file, which the C++ golden tests read.

usage: npz_to_safetensors.py IN.npz OUT.safetensors

uint16 arrays hold bf16 bit patterns and are tagged BF16; float16 becomes F32; int16 and int32 become I32; others keep
their type. A fixture of the test run: nothing it writes is committed.
"""

import json
import sys

import numpy as np

TAGS = {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "uint16": "BF16"}
WIDENED = {"float16": np.float32, "int16": np.int32}


def main() -> None:
    source, target = sys.argv[1:]
    header, blobs, offset = {}, [], 0
    with np.load(source) as arrays:
        for name in arrays.files:
            array = np.ascontiguousarray(arrays[name])
            array = array.astype(WIDENED.get(array.dtype.name, array.dtype))
            header[name] = {
                "dtype": TAGS[array.dtype.name],
                "shape": list(array.shape),
                "data_offsets": [offset, offset + array.nbytes],
            }
            blobs.append(array.tobytes())
            offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(target, "wb") as out:
        out.write(len(text).to_bytes(8, "little"))
        out.write(text)
        out.writelines(blobs)


if __name__ == "__main__":
    main()
