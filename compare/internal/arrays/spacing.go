package arrays

import "github.com/mlxgrad/mlxgrad/mlxc"

// Spacing returns the distance from 1 to the next larger number of dtype, the eps of the accuracy rule. It is 0 for
// uint32, int32 and bool, which must be exact. It panics for dtypes other than these, float32, float16 and bfloat16.
func Spacing(dtype mlxc.DType) float64 {
	switch dtype {
	case mlxc.Float32:
		return 0x1p-23
	case mlxc.Float16:
		return 0x1p-10
	case mlxc.BFloat16:
		return 0x1p-7
	case mlxc.Uint32, mlxc.Int32, mlxc.Bool:
		return 0
	}
	panic("compare: no spacing for " + dtype.String())
}

// Normal returns the smallest and the largest positive normal number of float32, float16 or bfloat16.
func Normal(dtype mlxc.DType) (smallest, largest float64) {
	if dtype == mlxc.Float16 {
		return 0x1p-14, 65504
	}
	return 0x1p-126, 0x1.fep127 // of bfloat16; the largest float32 is 0.4 % larger
}

// TF32Spacing is the spacing at 1 of TF32, the format to which NVIDIA's matrix units round float32 operands.
const TF32Spacing = 0x1p-10

// TF32 returns "on" if the current device multiplies float32 matrices as TF32, "off" if TF32 is disabled, and "" for a
// device without TF32.
func TF32() string {
	switch {
	case mlxc.CurrentBackend() != mlxc.BackendCUDA:
		return ""
	case mlxc.TF32Enabled():
		return "on"
	}
	return "off"
}
