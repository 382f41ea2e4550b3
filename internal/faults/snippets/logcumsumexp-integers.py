import mlx.core as mx

got = mx.logcumsumexp(mx.array([0, 0]))
assert abs(got[1].item() - 0.6931) < 1e-3, got
