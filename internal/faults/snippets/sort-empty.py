import mlx.core as mx

mx.eval(mx.sort(mx.zeros((0, 3)), axis=0))
