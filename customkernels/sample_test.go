package customkernels

import "github.com/mlxgrad/mlxgrad/internal/long"

// inSample reports whether the i-th of a test's similar cases runs: in a full run all, otherwise one in three.
func inSample(i int) bool { return long.Full() || i%3 == 0 }
