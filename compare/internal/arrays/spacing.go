package arrays

import "github.com/mlxgrad/mlxgrad/mlxc"

// Spacing returns the distance from 1 to the next larger number of dtype, the eps of the accuracy rule. It is 0 for
// integers, which must be exact, and panics for a dtype that no operation is tested in.
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

// Normal returns the smallest and the largest normal number of a floating-point dtype that operations are tested in.
func Normal(dtype mlxc.DType) (smallest, largest float64) {
	if dtype == mlxc.Float16 {
		return 0x1p-14, 65504
	}
	return 0x1p-126, 0x1.fep127 // of bfloat16; float32 has few larger ones
}

// TF32Spacing is the spacing at 1 of TF32, the format to which NVIDIA's matrix units round float32 operands.
const TF32Spacing = 0x1p-10

// TF32 returns "on" or "off", as the current device multiplies float32 matrices with TF32 or not. It is "" for a device
// that has no such mode.
func TF32() string {
	switch {
	case mlxc.CurrentBackend() != mlxc.BackendCUDA:
		return ""
	case mlxc.TF32Enabled():
		return "on"
	}
	return "off"
}
