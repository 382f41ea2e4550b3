import mlx.core as mx

w, scales, biases = (a[None] for a in mx.quantize(mx.random.normal((64, 64))))
x, ids = mx.arange(64.0).reshape(1, 1, 64), mx.array([0], dtype=mx.uint32)
f = lambda biases: mx.gather_qmm(x, w, scales, biases, rhs_indices=ids, transpose=False)
_, (got,) = mx.vjp(f, [biases], [mx.ones((1, 1, 64))])
assert mx.array_equal(got.flatten(), 64 * x.flatten()), got
