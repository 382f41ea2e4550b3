import mlx.core as mx

a = mx.arange(8).reshape(2, 4).astype(mx.float16)
b = mx.ones((4, 2), dtype=mx.float16)
got = mx.segmented_mm(a, b, mx.array([[0, 2], [2, 4]], dtype=mx.uint32))
assert got[:, :, 0].tolist() == [[1, 9], [5, 13]], got
