package mlxc

// Complex numbers have dtype complex64. Most operations on floating-point numbers also accept complex ones. For a
// holomorphic f, VJP with cotangent g returns conj(f')·g, and JVP with tangent t returns f'·t.

// Real returns the real part as float32. An array that is not complex is returned unchanged.
func (a *Array) Real() *Array { return mlxReal(a) }

// Imag returns the imaginary part as float32. For an array that is not complex it returns zeros of its dtype.
func (a *Array) Imag() *Array { return mlxImag(a) }

// Conjugate returns the complex conjugate. An array that is not complex is returned unchanged.
func (a *Array) Conjugate() *Array { return mlxConjugate(a) }
