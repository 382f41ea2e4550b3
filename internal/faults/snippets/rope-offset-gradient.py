import mlx.core as mx

x = mx.ones((1, 1, 2))
f = lambda o: mx.sum(mx.fast.rope(x, 2, traditional=False, base=10000.0, scale=1.0, offset=o))
_, (got,) = mx.vjp(f, [mx.array(1)], [mx.array(1.0)])
assert got.item() == 0, f"the gradient of an integer offset is {got}"
