package ops

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// largeArray is an array of more than 2³² elements and the parts that form it. Operations on the parts need only small
// indices, and their results are the reference for the whole.
type largeArray struct {
	whole *mlxc.Array
	parts arrays
}

const (
	largeParts = 16
	partRows   = 65539
	largeWidth = 4099
	largeDType = mlxc.Float16
)

func newLargeArray(t *testing.T, seed uint64) largeArray {
	t.Helper()
	long.Only(t, "arrays of 9 GB")
	if mlxc.CurrentBackend() == mlxc.BackendCPU {
		skip.Missing(t, skip.GPU, "arrays of 9 GB are for a GPU")
	}
	var l largeArray
	for i := range largeParts {
		l.parts = append(l.parts, normal(seed+uint64(i), largeDType, partRows, largeWidth))
	}
	l.whole = mlxc.Concatenate(0, l.parts...)
	t.Cleanup(func() {
		freeAll(append(l.parts, l.whole))
		mlxc.ClearCache()
	})
	require.NoError(t, mlxc.Eval(append(l.parts, l.whole)...))
	return l
}

// rowsOfPart returns the rows of an array like largeArray.whole that belong to a part.
func rowsOfPart(a *mlxc.Array, part int) *mlxc.Array {
	return a.Slice([]int{part * partRows, 0}, []int{(part + 1) * partRows, largeWidth}, nil)
}

func equalBits(t *testing.T, want, got *mlxc.Array, message ...any) {
	t.Helper()
	require.Equal(t, want.Shape(), got.Shape())
	same, err := mlxc.Item[bool](want.View(mlxc.Uint16).ArrayEqual(got.View(mlxc.Uint16), false))
	require.NoError(t, err)
	require.True(t, same, message...)
}

// Row operations work beyond 2³² elements. Rows are independent, and the gradients of weights are sums over the parts.
func TestRowsBeyond32Bits(t *testing.T) {
	x, dy := newLargeArray(t, 1), newLargeArray(t, 100)
	weight, bias := normal(1, largeDType, largeWidth), normal(2, largeDType, largeWidth)
	for name, c := range map[string]struct {
		f          func(args arrays) arrays
		weights    arrays
		cotangents func(dy *mlxc.Array) arrays
	}{
		"RMSNorm":         {f: norm(true, 1e-5, RMSNorm), weights: arrays{weight}},
		"RMSNormSeparate": {f: norm(true, 1e-5, rmsNormSeparate), weights: arrays{weight}},
		"LayerNorm":       {f: affine(true, true, 1e-5, LayerNorm), weights: arrays{weight, bias}},
		"RMSNormResidual": {
			f:       func(a arrays) arrays { return arrays{RMSNormResidual(a[0], a[0], a[1], 1e-5)} },
			weights: arrays{weight},
		},
		"AddRMSNorm": {
			f: func(a arrays) arrays {
				h, y := AddRMSNorm(a[0], a[0], a[1], 1e-5)
				return arrays{h, y}
			},
			weights:    arrays{weight},
			cotangents: func(dy *mlxc.Array) arrays { return arrays{dy, dy} },
		},
		"Softmax": {f: func(a arrays) arrays { return arrays{Softmax(a[0])} }},
		"CrossEntropy": {
			f: func(a arrays) arrays {
				targets := mlxc.Full(mlxc.Int32, mlxc.Scalar[int32](7), a[0].Dim(0))
				return arrays{CrossEntropy(a[0], targets, CrossEntropyConfig{Reduction: ReductionNone})}
			},
			cotangents: func(dy *mlxc.Array) arrays {
				return arrays{dy.Slice([]int{0, 0}, []int{dy.Dim(0), 1}, nil).Reshape(dy.Dim(0)).AsType(mlxc.Float32)}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mlxc.WithScope(func() {
				defer mlxc.ClearCache()
				gradients := func(x, dy *mlxc.Array) arrays {
					cotangents := arrays{dy}
					if c.cotangents != nil {
						cotangents = c.cotangents(dy)
					}
					_, gradients, err := mlxc.VJP(c.f, append(arrays{x}, c.weights...), cotangents)
					require.NoError(t, err)
					require.NoError(t, mlxc.Eval(gradients...))
					return gradients
				}
				got := gradients(x.whole, dy.whole)
				sums := make(arrays, len(c.weights))
				for part := range largeParts {
					want := gradients(x.parts[part], dy.parts[part])
					equalBits(t, want[0], rowsOfPart(got[0], part), "part %d", part)
					for i := range sums {
						sum := want[i+1].AsType(mlxc.Float32)
						if part > 0 {
							sum = sum.Add(sums[i])
						}
						sums[i] = sum
					}
				}
				for i, sum := range sums {
					// The sum over a part, of 65,539 terms, is about 256, so its float16 rounding error is at most 1/8.
					// The rounding error of the whole sum is at most 1.
					difference, err := mlxc.Item[float32](sum.Sub(got[i+1].AsType(mlxc.Float32)).Abs().Max())
					require.NoError(t, err)
					require.Less(t, difference, float32(4), "the gradient of weight %d", i)
				}
			})
		})
	}
}

var _ = testdevice.AlsoOnGPU(TestRowsBeyond32Bits)

func TestTransposeBeyond32Bits(t *testing.T) {
	x := newLargeArray(t, 1)
	mlxc.WithScope(func() {
		y := Transpose2D(x.whole)
		for part := range largeParts {
			equalBits(t, Transpose2D(x.parts[part]),
				y.Slice([]int{0, part * partRows}, []int{largeWidth, (part + 1) * partRows}, nil), "part %d", part)
		}
		equalBits(t, x.whole, Transpose2D(y), "transposed twice")
	})
}

var _ = testdevice.AlsoOnGPU(TestTransposeBeyond32Bits)

// Embedding works with a table, or a result, of more than 2³² elements.
func TestEmbeddingBeyond32Bits(t *testing.T) {
	x := newLargeArray(t, 1)
	last := largeParts - 1
	gradient := func(weight, ids, dy *mlxc.Array) *mlxc.Array {
		lookUp := func(a arrays) arrays { return arrays{Embedding(a[0], ids)} }
		_, gradients, err := mlxc.VJP(lookUp, arrays{weight}, arrays{dy})
		require.NoError(t, err)
		return gradients[0]
	}
	mlxc.WithScope(func() {
		ids := mlxc.RandomInt(mlxc.RandomKey(3), 0, partRows, mlxc.Int32, 4096)
		inLast := ids.Add(mlxc.Scalar(int32(last * partRows)))
		equalBits(t, Embedding(x.parts[last], ids), Embedding(x.whole, inLast))
		dy := normal(4, largeDType, 4096, largeWidth)
		dweight := gradient(x.whole, inLast, dy)
		equalBits(t, gradient(x.parts[last], ids, dy), rowsOfPart(dweight, last))
		equalBits(t, mlxc.Zeros(largeDType, partRows, largeWidth), rowsOfPart(dweight, last-1))

		// A permutation of all ids, so that neighboring tokens are in different parts.
		every := mlxc.RandomPermutationArange(mlxc.RandomKey(5), largeParts*partRows).AsType(mlxc.Int32)
		y := Embedding(x.whole, every)
		same, err := mlxc.Item[bool](x.whole.ArrayEqual(gradient(x.whole, every, y), false)) // a sum has no −0
		require.NoError(t, err)
		require.True(t, same)
	})
}

var _ = testdevice.AlsoOnGPU(TestEmbeddingBeyond32Bits)
