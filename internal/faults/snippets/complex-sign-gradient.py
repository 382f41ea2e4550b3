import mlx.core as mx

# The derivative of z / |z| in direction t is the component of t across z, divided by |z|.
z, t = mx.array(3 + 4j), mx.array(1 + 0j)
_, (got,) = mx.jvp(mx.sign, [z], [t])
assert abs(got.item() - (0.128 - 0.096j)) < 1e-4, got
