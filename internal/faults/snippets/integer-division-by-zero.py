import mlx.core as mx

mx.eval(mx.array(1) // mx.array(0))
