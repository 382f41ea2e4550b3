import mlx.core as mx

a, b = mx.arange(4.0).reshape(1, 1, 4), mx.ones((2, 4, 5))
ids, cotangent = mx.array([0, 0, 1], dtype=mx.uint32), mx.arange(15.0).reshape(3, 1, 5)


def gradient(sorted_indices):
    f = lambda b: mx.gather_mm(a, b, rhs_indices=ids, sorted_indices=sorted_indices)
    return mx.vjp(f, [b], [cotangent])[1][0]


assert mx.array_equal(gradient(True), gradient(False)), (gradient(True), gradient(False))
