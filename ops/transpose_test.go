package ops

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/bfloat16"
)

func mlxTranspose(x *mlxc.Array) *mlxc.Array { return x.SwapAxes(-1, -2).Contiguous() }

// The geometry of each backend moves each element to its place: for sides of less than one, one and several tiles, for
// vectors of every size, and for aligned and unaligned addresses.
func TestTransposeInEveryGeometry(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for _, rows := range []int{1, 7, 16, 32, 36, 66, 129} {
			for _, columns := range []int{1, 8, 31, 64, 130, 1031} {
				for _, matrices := range []int{1, 3} {
					shape := []int{matrices, rows, columns}
					n := matrices * rows * columns
					flat := normal(1, dtype, n+1)
					for first := range 2 {
						x := flat.Slice([]int{first}, []int{first + n}, nil).Reshape(shape...)
						want := mlxtest.Floats(t, mlxTranspose(x))
						for _, d := range backends {
							got := transpose(target{backend: d}, x)
							require.Equal(t, []int{matrices, columns, rows}, got.Shape())
							require.Equal(t, dtype, got.DType())
							equal := slices.Equal(want, mlxtest.Floats(t, got))
							require.True(t, equal, "%v %v from %d on %v", dtype, shape, first, d)
						}
					}
				}
			}
		}
	}
}

// The number of matrices may exceed the groups of a grid along an axis.
func TestTransposeOfManyMatrices(t *testing.T) {
	long.Only(t, "65,537 threadgroups of 256 threads")
	x := normal(1, mlxc.BFloat16, 65537, 16, 16)
	want := mlxtest.Floats(t, mlxTranspose(x))
	for _, d := range backends {
		require.True(t, slices.Equal(want, mlxtest.Floats(t, transpose(target{backend: d}, x))), "%v", d)
	}
}

// Quiet and signaling NaNs with a payload, signed zeros and subnormal numbers keep their bits.
func TestTransposeKeepsBits(t *testing.T) {
	for _, d := range backends {
		t.Run(string(d), func(t *testing.T) {
			keepsBits(t, d, []uint32{
				0x7fc12345, 0x7f812345, 0xffc00001, 0x80000000, 1, 0x807fffff, 0x7f800000, 0xff800000, 0x3f800001,
			}, math.Float32frombits, math.Float32bits)
			keepsBits(t, d, []uint16{0x7e55, 0x7c55, 0xfe01, 0x8000, 1, 0x83ff, 0x7c00, 0xfc00, 0x3c01},
				float16.Frombits, float16.Float16.Bits)
			keepsBits(t, d, []uint16{0x7fd5, 0x7f95, 0xffc1, 0x8000, 1, 0x807f, 0x7f80, 0xff80, 0x3f81},
				bfloat16.FromBits, bfloat16.BFloat16.Bits)
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestTransposeKeepsBits)

func keepsBits[T mlxc.Element, B uint16 | uint32](
	t *testing.T, d mlxc.Backend, bits []B, from func(B) T, to func(T) B,
) {
	const rows, columns = 67, 128
	values := make([]T, rows*columns)
	for i := range values {
		values[i] = from(bits[i%len(bits)])
	}
	y, err := mlxc.ToSlice[T](transpose(target{backend: d}, mlxc.FromSlice(values, rows, columns)))
	require.NoError(t, err)
	for i, v := range y {
		require.Equal(t, bits[(i%rows*columns+i/rows)%len(bits)], to(v), "element %d", i)
	}
}

func TestTransposeUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		x, dy := normal(1, dtype, 2, 37, 65), normal(2, dtype, 2, 65, 37)
		t.Run(dtype.String(), func(t *testing.T) {
			testUnaryUnderTransforms(t, Transpose2D, mlxTranspose, x, dy)
			t.Run("second derivatives", func(t *testing.T) {
				// The gradient of Σ yᵢ³/3 is x²; its vjp for the cotangent x is 2x·x.
				first := func(args arrays) arrays {
					loss := func(args arrays) arrays {
						y := Transpose2D(args[0])
						return arrays{y.Mul(y).Mul(y).AsType(mlxc.Float32).Sum().MulScalar(1.0 / 3)}
					}
					_, grads, err := mlxc.ValueAndGrad(loss, 0)(args)
					if err != nil {
						return arrays{mlxc.InvalidArray(err)}
					}
					return grads
				}
				y, got, err := mlxc.VJP(first, arrays{x}, arrays{x})
				require.NoError(t, err)
				closeTo(t, x.Square(), y[0])
				closeTo(t, x.Square().MulScalar(2), got[0])
			})
		})
	}
}

func TestTransposeWithoutACompiler(t *testing.T) {
	testUnaryWithoutCompiler(t, Transpose2D, mlxTranspose)
}

func TestTransposeOfLayouts(t *testing.T) { testUnaryOfLayouts(t, Transpose2D, mlxTranspose) }

var _ = testdevice.AlsoOnGPU(TestTransposeOfLayouts)

func TestTransposeIsExportedForMetal(t *testing.T) {
	for _, dtype := range gradientDTypes {
		kernels := exportedKernels(t, Transpose2D, normal(1, dtype, 8, 100))
		require.Len(t, kernels, 2)
		for _, k := range kernels {
			require.Contains(t, k, "transpose_2d")
		}
	}
}

func TestTransposeWithoutElements(t *testing.T) {
	for _, shape := range [][]int{{0, 4}, {3, 0}, {0, 3, 4}, {2, 0, 4}} {
		n := len(shape)
		x := mlxc.Zeros(mlxc.BFloat16, shape...)
		want := slices.Clone(shape)
		want[n-2], want[n-1] = want[n-1], want[n-2]
		y, grads, err := mlxc.VJP(unary(Transpose2D), arrays{x}, arrays{mlxc.Zeros(mlxc.BFloat16, want...)})
		require.NoError(t, err)
		require.NoError(t, mlxc.Eval(y[0], grads[0]))
		require.Equal(t, want, y[0].Shape())
		require.Equal(t, shape, grads[0].Shape())
	}
}

var _ = testdevice.AlsoOnGPU(TestTransposeWithoutElements)

func TestTransposeArgumentErrors(t *testing.T) {
	x := mlxc.Ones(mlxc.Float32, 2, 3)
	freed := mlxc.Ones(mlxc.Float32, 2, 3)
	freed.Free()
	for _, c := range []struct {
		name  string
		y     *mlxc.Array
		parts []string
	}{
		{"rank 1", Transpose2D(mlxc.Ones(mlxc.Float32, 3)), []string{"Transpose2D", "float32(3)", "ExpandDims"}},
		{"integers", Transpose2D(x.AsType(mlxc.Int32)), []string{"Transpose2D", "int32(2,3)", "AsType"}},
		{"float64", Transpose2D(x.AsType(mlxc.Float64)), []string{"Transpose2D", "float64", "AsType"}},
		{"nil", Transpose2D(nil), []string{"Transpose2D", "nil"}},
		{"freed", Transpose2D(freed), []string{"Transpose2D", "freed"}},
		{"an error passes through", Transpose2D(x.Add(mlxc.Ones(mlxc.Float32, 7))), []string{"add"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := mlxc.Eval(c.y)
			for _, p := range c.parts {
				require.ErrorContains(t, err, p)
			}
		})
	}
}
