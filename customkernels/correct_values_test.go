package customkernels

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// floatDTypes are the dtypes that most shaders are for.
var floatDTypes = []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16}

// roundoff is half the distance of two neighbouring numbers at 1: what rounding a value to
// the dtype changes it by at most, relatively.
func roundoff(d mlxc.DType) float64 {
	switch d {
	case mlxc.Float32:
		return 0x1p-24
	case mlxc.Float16:
		return 0x1p-11
	case mlxc.BFloat16:
		return 0x1p-8
	}
	return 0
}

// bound is how far a result may lie from a reference in float64.
type bound struct{ absolute, relative float64 }

// rounded is the bound for results of a dtype after `steps` operations in f32 on
// intermediate values up to `size`. Shaders compute in f32, where each step errs by
// 2⁻²⁴ of its result at most, and round once to the dtype. References start from the
// rounded inputs, so these do not count. The least f16 is 2⁻²⁴, hence half of it.
func rounded(d mlxc.DType, steps int, size float64) bound {
	return bound{float64(steps)*0x1p-24*size + 0x1p-25, 1.01 * roundoff(d)}
}

// requireNear compares an output with the reference.
func requireNear(t testing.TB, want []float64, got *mlxc.Array, b bound) {
	t.Helper()
	v := values(t, got)
	require.Len(t, v, len(want))
	for i := range want {
		if d := math.Abs(v[i] - want[i]); !(d <= b.absolute+b.relative*math.Abs(want[i])) && v[i] != want[i] { // NaN is wrong
			require.FailNow(t, "wrong value", "element %d of %v is %v, want %v within %+v", i, got.Shape(), v[i], want[i], b)
		}
	}
}

// values is an array of any real dtype in float64, in row-major order.
func values(t testing.TB, a *mlxc.Array) []float64 {
	t.Helper()
	switch a.DType() {
	case mlxc.Uint32:
		return convert[uint32](t, a)
	case mlxc.Int32:
		return convert[int32](t, a)
	}
	return convert[float32](t, a.AsType(mlxc.Float32))
}

func convert[T mlxc.Element](t testing.TB, a *mlxc.Array) []float64 {
	t.Helper()
	v, err := mlxc.ToSlice[T](a)
	require.NoError(t, err)
	r := make([]float64, len(v))
	for i, x := range v {
		switch x := any(x).(type) {
		case uint32:
			r[i] = float64(x)
		case int32:
			r[i] = float64(x)
		case float32:
			r[i] = float64(x)
		}
	}
	return r
}

// array makes an array of a dtype and returns the elements as the dtype holds them.
func (c *corpus) array(d mlxc.DType, elements []float32, shape ...int) (*mlxc.Array, []float64) {
	c.t.Helper()
	a := mlxc.FromSlice(elements, shape...).AsType(d)
	require.NoError(c.t, mlxc.Eval(a))
	return a, values(c.t, a)
}

// normal draws from the normal distribution.
func (c *corpus) normal(d mlxc.DType, shape ...int) (*mlxc.Array, []float64) {
	c.t.Helper()
	v := make([]float32, product(shape))
	for i := range v {
		v[i] = float32(c.random.NormFloat64())
	}
	return c.array(d, v, shape...)
}

// uniform draws from [low, high).
func (c *corpus) uniform(d mlxc.DType, low, high float64, shape ...int) (*mlxc.Array, []float64) {
	c.t.Helper()
	v := make([]float32, product(shape))
	for i := range v {
		v[i] = float32(low + (high-low)*c.random.Float64())
	}
	return c.array(d, v, shape...)
}

// integers draws whole numbers from [0, n), which every dtype holds if n ≤ 256.
func (c *corpus) integers(d mlxc.DType, n int, shape ...int) (*mlxc.Array, []float64) {
	c.t.Helper()
	v := make([]float32, product(shape))
	for i := range v {
		v[i] = float32(c.random.IntN(n))
	}
	return c.array(d, v, shape...)
}

func product(shape []int) int {
	n := 1
	for _, s := range shape {
		n *= s
	}
	return n
}

// uints makes scalar inputs of the type uint.
func uints(n ...int) arrays {
	var a arrays
	for _, x := range n {
		a = append(a, mlxc.Scalar(uint32(x)))
	}
	return a
}

// ints makes scalar inputs of the type int.
func ints(n ...int) arrays {
	var a arrays
	for _, x := range n {
		a = append(a, mlxc.Scalar(int32(x)))
	}
	return a
}

// inputs puts lists of inputs together.
func inputs(lists ...arrays) arrays { return slices.Concat(lists...) }

// template makes template arguments of pairs of name and value.
func template(pairs ...any) []mlxc.TemplateArg {
	var args []mlxc.TemplateArg
	for i := 0; i < len(pairs); i += 2 {
		args = append(args, mlxc.TemplateArg{Name: pairs[i].(string), Value: pairs[i+1]})
	}
	return args
}

// output describes one output.
func output(d mlxc.DType, shape ...int) mlxc.Output { return mlxc.Output{Shape: shape, DType: d} }

// initially is an initial value.
func initially(v float32) *float32 { return &v }

// named joins the parts of a launch's name.
func named(kernel string, parts ...any) string {
	for _, p := range parts {
		kernel += fmt.Sprintf("/%v", p)
	}
	return kernel
}

// byRow applies f to each row of width elements of x and joins the results.
func byRow(x []float64, width int, f func(row []float64) []float64) []float64 {
	var y []float64
	for row := range slices.Chunk(x, width) {
		y = append(y, f(row)...)
	}
	return y
}
