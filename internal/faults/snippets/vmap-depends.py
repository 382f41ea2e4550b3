import mlx.core as mx

try:
    mx.vmap(lambda x: mx.depends(x, [x * 2]))(mx.ones((3, 2)))
except ValueError as error:
    raise AssertionError(error)
