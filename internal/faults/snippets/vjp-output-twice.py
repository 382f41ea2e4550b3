import mlx.core as mx


def f(x):
    y = x * 2
    return [y, y]


_, (got,) = mx.vjp(f, [mx.array(1.0)], [mx.array(1.0), mx.array(1.0)])
assert got.item() == 4, got
