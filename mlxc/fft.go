package mlxc

// FFTNorm says how a Fourier transform and its inverse share the factor 1/n.
type FFTNorm int

// The norms of MLX, which are numpy's.
const (
	FFTBackward FFTNorm = iota // the inverse is multiplied with 1/n
	FFTOrtho                   // both are multiplied with 1/√n
	FFTForward                 // the forward transform is multiplied with 1/n
)
