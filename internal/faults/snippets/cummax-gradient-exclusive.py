import mlx.core as mx

f = lambda x: mx.sum(mx.cummax(x, inclusive=False))
mx.eval(mx.grad(f)(mx.ones(1)))
