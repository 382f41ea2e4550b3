import mlx.core as mx

a = mx.linalg.inv(mx.zeros((3, 3)))
try:
    mx.eval(a)
except RuntimeError:
    pass
try:
    got = a.tolist()
except RuntimeError:
    pass
else:
    raise AssertionError(f"the second evaluation returns {got}")
