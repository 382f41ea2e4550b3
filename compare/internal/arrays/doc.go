// Package arrays moves values between Go and MLX for package compare and its sub-packages: conversions between float64
// and the stored dtypes, the spacing of those dtypes, and a vector-Jacobian product with respect to some of the
// arguments.
package arrays
