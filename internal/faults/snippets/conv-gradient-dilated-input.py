import mlx.core as mx

x, w = mx.ones((1, 2, 1)), mx.ones((1, 3, 1))
f = lambda x, w: mx.conv_general(x, w, padding=([0], [3]), input_dilation=2)
_, (dx, dw) = mx.vjp(f, [x, w], [mx.ones((1, 4, 1))])
assert dx.shape == x.shape and dw.shape == w.shape, (dx.shape, dw.shape)
