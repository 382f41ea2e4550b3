import mlx.core as mx

q, kv = mx.zeros((1, 2, 3, 4)), mx.zeros((1, 0, 3, 4))
try:
    mx.eval(mx.fast.scaled_dot_product_attention(q, kv, kv, scale=1.0))
except ValueError:
    pass
