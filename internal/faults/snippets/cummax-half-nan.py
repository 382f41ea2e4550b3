import mlx.core as mx

for dtype in (mx.float16, mx.bfloat16):
    x = mx.array([1, float("nan"), 2], dtype=dtype)
    for got in (mx.cummax(x), mx.cummin(x)):
        assert mx.isnan(got).tolist() == [False, True, True], got
