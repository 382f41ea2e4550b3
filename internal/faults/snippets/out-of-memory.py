import mlx.core as mx

try:
    mx.eval(mx.ones((2**20, 2**24)) + 1)
except (RuntimeError, MemoryError):
    pass
