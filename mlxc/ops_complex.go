package mlxc

// Complex numbers have the dtype complex64. Where the operations of this package take
// floating-point numbers, they mostly take complex ones too. The vector-Jacobian product of a
// holomorphic f with a cotangent g is conj(f')·g, and JVP's product with a tangent t is f'·t.

// Real returns the real part, as float32; an array that is not complex stays as it is.
func (a *Array) Real() *Array { return mlxReal(a) }

// Imag returns the imaginary part, as float32; of an array that is not complex, zeros of
// its dtype.
func (a *Array) Imag() *Array { return mlxImag(a) }

// Conjugate returns a with the sign of the imaginary part the other way; an array that is
// not complex stays as it is.
func (a *Array) Conjugate() *Array { return mlxConjugate(a) }
