import mlx.core as mx

a = mx.ones(2)
try:
    a[mx.array([True, False])] = mx.zeros((0,))
    mx.eval(a)
except (ValueError, RuntimeError):
    pass
