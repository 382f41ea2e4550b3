import mlx.core as mx

x, weights = mx.random.normal((1, 6, 4)), mx.random.normal((3, 4, 2, 2))
f = lambda w: mx.conv1d(x, w, groups=2)
got = mx.vmap(f)(weights)
want = mx.stack([f(w) for w in weights])
assert mx.allclose(got, want, atol=1e-5), mx.max(mx.abs(got - want))
