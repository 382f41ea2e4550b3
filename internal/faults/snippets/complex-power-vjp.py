import mlx.core as mx

# The vjp of z**p with cotangent 1 is conj(p z**(p - 1)).
z, p = 0.3 + 0.4j, 1.5 + 0.5j
_, (got,) = mx.vjp(lambda z: mx.power(z, mx.array(p)), [mx.array(z)], [mx.array(1 + 0j)])
assert abs(got.item() - (p * z ** (p - 1)).conjugate()) < 1e-4, got
