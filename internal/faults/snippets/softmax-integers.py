import mlx.core as mx

got = mx.softmax(mx.array([[0], [0]]), axis=0)
assert got.tolist() == [[0.5], [0.5]], got
