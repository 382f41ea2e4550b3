import mlx.core as mx


def f(x):
    x[1:3] = mx.array([8.0, 9.0])
    return x


got = mx.vmap(f)(mx.zeros((3, 4)))
assert got.tolist() == [[0, 8, 9, 0]] * 3, got
