import time

import mlx.core as mx

mx.async_eval(mx.linalg.inv(mx.zeros((300, 300))))
time.sleep(0.2)
try:
    mx.eval(mx.ones(3) + 1)
except RuntimeError as error:
    raise AssertionError(f"ones(3) + 1: {error}")
