import os, struct, tempfile

import mlx.core as mx

# One block of 256 numbers 1 with the scales 1 to 8 and no minima: group g holds g + 1.
block = struct.pack("<ee", 1.0, 0.0) + bytes([1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8]) + bytes([0x11] * 128)
header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)  # version, tensors, metadata
header += struct.pack("<Q1sIQIQ", 1, b"a", 1, 256, 12, 0)  # name, shape (256), Q4_K, offset
header += bytes(-len(header) % 32)
path = os.path.join(tempfile.mkdtemp(), "x.gguf")
with open(path, "wb") as file:
    file.write(header + block)
got = mx.load(path)["a"][::32]
assert got.tolist() == [1, 2, 3, 4, 5, 6, 7, 8], got.tolist()
