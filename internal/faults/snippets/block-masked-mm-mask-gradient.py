import mlx.core as mx

a = mx.ones((32, 32))
f = lambda mask: mx.block_masked_mm(a, a, 32, mask)
_, (got,) = mx.vjp(f, [mx.full((1, 1), 2.0)], [mx.ones((32, 32))])
assert got.item() == 32**3, got
