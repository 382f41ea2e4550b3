import mlx.core as mx

# The vjp of a holomorphic f with cotangent 1 is conj(f'), here conj(1 / (2 sqrt(z))).
z = mx.array(0.3 + 0.4j)
_, (got,) = mx.vjp(mx.sqrt, [z], [mx.array(1 + 0j)])
assert abs(got.item() - (0.632456 + 0.316228j)) < 1e-4, got
