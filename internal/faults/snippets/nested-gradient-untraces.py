import mlx.core as mx

x = mx.array([1.0, 2.0, 3.0])


def f(p):
    y = p * 2
    mx.vjp(lambda a: [(a * y).sum()], [x], [mx.array(1.0)])
    mx.eval(y)
    return [y.sum()]


_, (got,) = mx.vjp(f, [x], [mx.array(1.0)])
assert got.tolist() == [2, 2, 2], got
