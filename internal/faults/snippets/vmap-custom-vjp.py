import mlx.core as mx


@mx.custom_function
def f(x):
    return x * 2


@f.vjp
def f_vjp(primals, cotangent, output):
    return cotangent * 10


_, (got,) = mx.vjp(mx.vmap(f), [mx.ones(3)], [mx.ones(3)])
assert got.tolist() == [10, 10, 10], got
