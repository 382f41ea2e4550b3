import mlx.core as mx

try:
    got = mx.reshape(mx.zeros((4,)), (-2, -2))
except ValueError:
    pass
else:
    raise AssertionError(f"the shape is {got.shape}")
