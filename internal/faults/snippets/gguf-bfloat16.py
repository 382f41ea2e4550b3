import os, struct, tempfile

import mlx.core as mx

header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)  # version, tensors, metadata
header += struct.pack("<Q1sIQIQ", 1, b"a", 1, 2, 30, 0)  # name, shape (2), BF16, offset
header += bytes(-len(header) % 32)
path = os.path.join(tempfile.mkdtemp(), "x.gguf")
with open(path, "wb") as file:
    file.write(header + struct.pack("<HH", 0x3F80, 0x4000) + bytes(28))
got = mx.load(path)["a"]
assert got.dtype == mx.bfloat16, got.dtype
