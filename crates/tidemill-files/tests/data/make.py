"""Writes the files beside it, which tests/files.rs reads: `python make.py`, with numpy, pandas and safetensors."""

import os

import numpy as np
import pandas as pd
import safetensors
import safetensors.numpy

os.chdir(os.path.dirname(os.path.abspath(__file__)))

# The element at [i, j] is 3 i + j; of complex numbers, minus as much of the imaginary unit; of bools, whether it is odd.
numbers = np.arange(6).reshape(2, 3)
types = {"f2": numbers, "f4": numbers, "f8": numbers, "i1": numbers, "u1": numbers, "i2": numbers, "u2": numbers,
         "i4": numbers, "u4": numbers, "i8": numbers, "u8": numbers, "c8": numbers * (1 - 1j), "c16": numbers * (1 - 1j),
         "b1": numbers % 2}
arrays = {name: array.astype("<" + name) for name, array in types.items()}
arrays |= {"big_" + name: array.astype(">" + name) for name, array in types.items() if name[1:] != "1"}
arrays["text"] = np.array(["a", "b"])
np.savez("types.npz", **arrays)
np.savez_compressed("deflated.npz", rows=np.arange(600, dtype="<i4").reshape(20, 30), vector=np.arange(5.0))

pages = np.arange(24, dtype="<f8").reshape(2, 3, 4)
np.save("rows.npy", pages)
np.save("columns.npy", np.asfortranarray(pages))
np.save("vector.npy", np.arange(3, dtype="<i8"))
np.save("scalar.npy", np.float32(2.5))
np.save("empty.npy", np.zeros((0, 3)))
np.save("halves.npy", np.array([65504, 2.0**-24, np.inf, -np.inf, np.nan, -0.0], dtype="<f2"))
np.save("large.npy", np.array([1, 2**63 - 1, 2**63], dtype="<u8"))
with open("version2.npy", "wb") as file:
    np.lib.format.write_array(file, pages, version=(2, 0))

safetensors.numpy.save_file({
    "weights": numbers.astype("<f4"), "biases": np.arange(3, dtype="<f4"), "mask": numbers % 2 == 1,
    "steps": np.array([7], dtype="<i8"), "pages": pages,
}, "weights.safetensors", metadata={"made by": "make.py"})
# The upper halves of 1, -2.5 and 3.0e38 in f32 are bf16; 1 and 2 in f8 are 0x38 and 0x40.
bf16 = (np.array([1.0, -2.5, 3.0e38], dtype="<f4").view("<u4") >> 16).astype("<u2")
f8 = np.array([0x38, 0x40], dtype="u1")
safetensors.serialize_file({
    "bf16": safetensors.TensorSpec(dtype="bfloat16", shape=[3], data_ptr=bf16.ctypes.data, data_len=3 * 2),
    "f8": safetensors.TensorSpec(dtype="float8_e4m3fn", shape=[2], data_ptr=f8.ctypes.data, data_len=2),
}, "narrow.safetensors", None)

pd.DataFrame({"time": [0, 1, 2], "height, m": [1.5, np.nan, 1e-300]}).to_csv("pandas.csv", index=False)
np.savetxt("numpy.csv", numbers / 7, delimiter=",", header="by numpy.savetxt")
