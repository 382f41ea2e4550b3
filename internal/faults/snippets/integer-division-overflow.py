import mlx.core as mx

mx.eval(mx.array(-(2**31)) // mx.array(-1))
