import mlx.core as mx

segments = mx.array([[0, 4]], dtype=mx.uint32)
mx.eval(mx.segmented_mm(mx.zeros((0, 4)), mx.zeros((4, 2)), segments))
