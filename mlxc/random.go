package mlxc

// RandomKey makes a key of MLX's counter-based generator. The same key gives the
// same numbers, on every device.
func RandomKey(seed uint64) *Array {
	return mlxRandomKey(seed)
}

// RandomNormal draws from the standard normal distribution. d is a floating-point
// dtype.
func RandomNormal(key *Array, d DType, shape ...int) *Array {
	const op = "random_normal"
	if err := checkNew(d, shape); err != nil {
		return invalid(&Error{Op: op, Err: err})
	}
	return mlxRandomNormal(shape, d, 0, 1, key)
}

// RandomUniform draws from the interval [low, high). d is a floating-point dtype.
func RandomUniform(key *Array, low, high float32, d DType, shape ...int) *Array {
	const op = "random_uniform"
	l, h := Scalar(low), Scalar(high)
	defer l.Free()
	defer h.Free()
	if err := checkNew(d, shape); err != nil {
		return invalid(&Error{Op: op, Err: err})
	}
	return mlxRandomUniform(l, h, shape, d, key)
}
