import mlx.core as mx

try:
    mx.eval(mx.conv1d(mx.zeros((1, 4, 0)), mx.ones((1, 2, 0))))
except ValueError:
    pass
