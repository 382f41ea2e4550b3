import struct

import mlx.core as mx

got = mx.broadcast_to(mx.array(1.2345), (1,)).view(mx.uint8)
assert got.tolist() == list(struct.pack("<f", 1.2345)), got
