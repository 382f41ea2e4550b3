import mlx.core as mx

a = mx.broadcast_to(mx.array(1.0), (2**16, 2**16, 2**16, 2**16))
assert a.size == 2**64, f"the size of {a.shape} is {a.size}"
