import mlx.core as mx

sevens = memoryview(bytearray(b"\0\0\xe0\x40" * 2**19)).cast("f")
w = mx.ones((512, 2048))[:, ::2]
mx.eval(w)
wrong = 0
for _ in range(300):
    mx.async_eval(mx.zeros((0, 512)) @ w)
    large = mx.array(sevens)
    mx.synchronize()
    wrong += mx.sum(large != 7).item()
assert wrong == 0, f"{wrong} elements of other arrays were overwritten"
