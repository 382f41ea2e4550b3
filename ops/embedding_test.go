package ops

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// randomIDs returns ids below v with a skewed distribution, like words: many tokens share a few ids.
func randomIDs(seed uint64, v int, shape ...int) *mlxc.Array {
	rng := rand.New(rand.NewPCG(seed, 0))
	n := 1
	for _, d := range shape {
		n *= d
	}
	ids := make([]uint32, n)
	for i := range ids {
		u := rng.Float64()
		ids[i] = uint32(float64(v) * u * u * u)
	}
	return mlxc.FromSlice(ids, shape...)
}

// lazily returns an equal array that has not been computed.
func lazily(a *mlxc.Array) *mlxc.Array { return a.Add(mlxc.Zeros(a.DType())) }

func take(weight, ids *mlxc.Array) *mlxc.Array { return weight.Take(ids, 0) }

// lookup returns f as a function of the table alone.
func lookup(ids *mlxc.Array, f func(weight, ids *mlxc.Array) *mlxc.Array) mlxc.Func {
	return unary(func(weight *mlxc.Array) *mlxc.Array { return f(weight, ids) })
}

// tableGradient returns the gradient of a table of `vocabulary` rows, summed in float64. Ids out of range contribute
// nothing.
func tableGradient(t *testing.T, dy, ids *mlxc.Array, vocabulary int) *mlxc.Array {
	t.Helper()
	width := dy.Dim(-1)
	sums := make([]float64, vocabulary*width)
	flat, err := mlxc.ToSlice[int64](ids.AsType(mlxc.Int64))
	require.NoError(t, err)
	values := mlxtest.Floats(t, dy)
	for n, id := range flat {
		if id < 0 || id >= int64(vocabulary) {
			continue
		}
		for j := range width {
			sums[int(id)*width+j] += float64(values[n*width+j])
		}
	}
	rounded := make([]float32, len(sums))
	for i, s := range sums {
		rounded[i] = float32(s)
	}
	return mlxc.FromSlice(rounded, vocabulary, width).AsType(dy.DType())
}

func TestEmbeddingValues(t *testing.T) {
	weight := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6}, 3, 2)
	dy := mlxc.FromSlice([]float32{1, 2, 3, 4, 5, 6, 7, 8}, 2, 2, 2)
	for _, ids := range (arrays{
		mlxc.FromSlice([]uint32{2, 0, 2, 2}, 2, 2), mlxc.FromSlice([]int32{2, 0, 2, 2}, 2, 2),
	}) {
		y, dw, err := mlxc.VJP(lookup(ids, Embedding), arrays{weight}, arrays{dy})
		require.NoError(t, err)
		require.Equal(t, []int{2, 2, 2}, y[0].Shape())
		require.Equal(t, []float32{5, 6, 1, 2, 5, 6, 5, 6}, mlxtest.Floats(t, y[0]))
		require.Equal(t, []int{3, 2}, dw[0].Shape())
		require.Equal(t, []float32{3, 4, 0, 0, 13, 16}, mlxtest.Floats(t, dw[0]))
	}
}

var _ = testdevice.AlsoOnGPU(TestEmbeddingValues)

// The result is a bitwise copy of rows.
func TestEmbeddingCopies(t *testing.T) {
	special := []float32{
		0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), 1e-40, math.MaxFloat32,
	}
	for _, dtype := range gradientDTypes {
		weight := mlxc.Concatenate(0, mlxc.FromSlice(special).AsType(dtype), normal(1, dtype, 14)).Reshape(4, 5)
		ids := mlxc.FromSlice([]uint32{3, 0, 1, 0, 2, 3, 1})
		for _, d := range backends {
			got := embeddingForward(target{backend: d}, weight, ids)
			require.Equal(t, bitsOf(t, weight.Take(ids, 0)), bitsOf(t, got))
		}
	}
}

// bitsOf returns the bits of the elements, which differ for −0 and 0.
func bitsOf(t *testing.T, a *mlxc.Array) []uint32 {
	var bits []uint32
	for _, v := range mlxtest.Floats(t, a) {
		bits = append(bits, math.Float32bits(v))
	}
	return bits
}

// The geometry of each backend computes the same bits. Runs of tokens are empty, of one token, shorter than a segment,
// and of many segments.
func TestEmbeddingInEveryGeometry(t *testing.T) {
	for _, dtype := range gradientDTypes {
		for i, c := range []struct{ tokens, vocabulary, width int }{
			{1, 1, 1},
			{3, 2, 31},
			{37, 13, 32},
			{37, 1000, 33},
			{199, 3, 129},
			{5, 3, 4099},
			{3, 5, 9001},
			{128, 1, 7},
			{127, 1, 7},
			{129, 1, 7},
			{1031, 1, 65},
			{1031, 2, 65},
			{4099, 7, 24},
			{2048, 2048, 3},
			{300, 40000, 2},
		} {
			if !inSample(i, dtype) {
				continue
			}
			t.Run(fmt.Sprintf("%v/%d of %dx%d", dtype, c.tokens, c.vocabulary, c.width), func(t *testing.T) {
				weight, dy := normal(1, dtype, c.vocabulary, c.width), normal(2, dtype, c.tokens, c.width)
				ids := randomIDs(3, c.vocabulary, c.tokens)
				want := tableGradient(t, dy, ids, c.vocabulary)
				var first []float32
				for _, d := range backends {
					on := target{backend: d}
					require.Equal(t, mlxtest.Floats(t, take(weight, ids)), mlxtest.Floats(t, embeddingForward(on, weight, ids)))
					got := embeddingBackward(on, dy, ids, c.vocabulary)
					closeTo(t, want, got)
					// The order of sums does not depend on the geometry.
					if first == nil {
						first = mlxtest.Floats(t, got)
					}
					require.Equal(t, first, mlxtest.Floats(t, got))
				}
			})
		}
	}
}

// A million tokens of one row and many rows with few tokens are each counted once.
func TestEmbeddingGradientOfManyTokensAndRows(t *testing.T) {
	for _, c := range []struct{ tokens, vocabulary, width int }{
		{1_000_000, 1, 3}, {512, 150_000, 5}, {70_001, 70_001, 2},
	} {
		t.Run(fmt.Sprintf("%d of %dx%d", c.tokens, c.vocabulary, c.width), func(t *testing.T) {
			// Sums of small integers are exact in float32.
			dy := mlxc.Arange(mlxc.Float32, 0, float64(c.tokens*c.width), 1).
				Remainder(mlxc.Scalar[float32](7)).Reshape(c.tokens, c.width)
			ids := mlxc.Arange(mlxc.Uint32, 0, float64(c.tokens), 1).
				Mul(mlxc.Scalar[uint32](31)).Remainder(mlxc.Scalar(uint32(c.vocabulary)))
			got := embeddingBackward(currentTarget(), dy, ids, c.vocabulary)
			require.Equal(t, mlxtest.Floats(t, tableGradient(t, dy, ids, c.vocabulary)), mlxtest.Floats(t, got))
		})
	}
}

func TestEmbeddingUnderTransforms(t *testing.T) {
	for _, dtype := range gradientDTypes {
		t.Run(dtype.String(), func(t *testing.T) {
			ids := randomIDs(3, 33, 2, 3, 5)
			weight, dy := normal(1, dtype, 33, 65), normal(2, dtype, 2, 3, 5, 65)
			testUnaryUnderTransforms(t,
				func(w *mlxc.Array) *mlxc.Array { return Embedding(w, ids) },
				func(w *mlxc.Array) *mlxc.Array { return take(w, ids) }, weight, dy)
			grad := func(args arrays) arrays {
				_, grads, err := mlxc.VJP(lookup(ids, Embedding), args[:1], args[1:])
				if err != nil {
					return arrays{mlxc.InvalidArray(err)}
				}
				return grads
			}
			_, _, err := mlxc.VJP(grad, arrays{weight, dy}, arrays{weight})
			require.ErrorContains(t, err, "embedding_backward")
			require.ErrorContains(t, err, "no gradient")
		})
	}
}

// ids may be an argument of a transformed function. Their gradient is zero.
func TestEmbeddingOfTracedIDs(t *testing.T) {
	weight, ids := normal(1, mlxc.Float32, 7, 9), mlxc.FromSlice([]int32{6, 1, 1, 0})
	loss := func(f func(weight, ids *mlxc.Array) *mlxc.Array) mlxc.Func {
		return func(args arrays) arrays { return arrays{f(args[0], args[1]).Square().Sum()} }
	}
	_, want, err := mlxc.ValueAndGrad(loss(take))(arrays{weight, ids})
	require.NoError(t, err)
	for name, f := range map[string]mlxc.Func{
		"plain": loss(Embedding), "checkpointed": mlxc.Checkpoint(loss(Embedding)),
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := mlxc.ValueAndGrad(f)(arrays{weight, ids})
			require.NoError(t, err)
			closeTo(t, want[0], got[0])
		})
	}
	t.Run("compiled", func(t *testing.T) {
		c := mlxc.Compile(func(args arrays) arrays {
			_, grads, err := mlxc.ValueAndGrad(loss(Embedding))(args)
			if err != nil {
				return arrays{mlxc.InvalidArray(err)}
			}
			return grads
		})
		defer c.Close()
		for _, ids := range (arrays{ids, mlxc.FromSlice([]int32{2, 2, 5, 0})}) {
			_, want, err := mlxc.ValueAndGrad(loss(take))(arrays{weight, ids})
			require.NoError(t, err)
			got, err := c.Call(weight, ids)
			require.NoError(t, err)
			closeTo(t, want[0], got[0])
		}
	})
	t.Run("all gradients", func(t *testing.T) {
		_, got, err := mlxc.VJP(func(args arrays) arrays { return arrays{Embedding(args[0], args[1])} },
			arrays{weight, ids}, arrays{mlxc.Ones(mlxc.Float32, 4, 9)})
		require.NoError(t, err)
		require.Equal(t, []float32{0, 0, 0, 0}, mlxtest.Floats(t, got[1]))
	})
}

func TestEmbeddingOfLayouts(t *testing.T) {
	ids := randomIDs(3, 20, 4, 6)
	base := normal(1, mlxc.Float32, 66, 20)
	cases := map[string]struct{ weight, ids *mlxc.Array }{
		"weight transposed":     {base.Transpose(), ids},
		"weight strided":        {base.Slice([]int{1, 0}, []int{66, 20}, []int{2, 3}), ids},
		"weight broadcast":      {normal(2, mlxc.Float32, 1, 40).BroadcastTo(20, 40), ids},
		"ids transposed":        {base, ids.Transpose()},
		"ids strided":           {base, ids.Slice([]int{0, 1}, []int{4, 6}, []int{2, 2})},
		"ids broadcast":         {base, mlxc.FromSlice([]int32{3, 1, 2}, 1, 3).BroadcastTo(5, 3)},
		"ids without axes":      {base, mlxc.Scalar[int32](7)},
		"ids with several axes": {base, ids.Reshape(2, 2, 3, 2).AsType(mlxc.Int32)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			shape := take(c.weight, c.ids).Shape()
			// dy is not row-major.
			reversed := make([]int, len(shape))
			for i, n := range shape {
				reversed[len(shape)-1-i] = n
			}
			dy := normal(5, mlxc.Float32, reversed...).Transpose()
			wantY, want, err := mlxc.VJP(lookup(c.ids, take), arrays{c.weight}, arrays{dy})
			require.NoError(t, err)
			y, got, err := mlxc.VJP(lookup(c.ids, Embedding), arrays{c.weight}, arrays{dy})
			require.NoError(t, err)
			require.Equal(t, mlxtest.Floats(t, wantY[0]), mlxtest.Floats(t, y[0]))
			closeTo(t, want[0], got[0])
		})
	}
}

func TestEmbeddingWithoutElements(t *testing.T) {
	for _, c := range []struct{ ids, weight []int }{
		{[]int{0}, []int{3, 4}}, {[]int{2, 0}, []int{3, 4}}, {[]int{5}, []int{3, 0}}, {[]int{0}, []int{0, 4}},
	} {
		weight, ids := mlxc.Ones(mlxc.Float32, c.weight...), mlxc.Zeros(mlxc.Int32, c.ids...)
		dy := mlxc.Ones(mlxc.Float32, append(c.ids, c.weight[1])...)
		launches := customkernels.LaunchCount()
		y, grads, err := mlxc.VJP(lookup(ids, Embedding), arrays{weight}, arrays{dy})
		require.NoError(t, err)
		require.Equal(t, dy.Shape(), y[0].Shape())
		require.Equal(t, c.weight, grads[0].Shape())
		require.Equal(t, make([]float32, weight.Size()), mlxtest.Floats(t, grads[0]))
		require.Equal(t, launches, customkernels.LaunchCount())
	}
}

var _ = testdevice.AlsoOnGPU(TestEmbeddingWithoutElements)

func TestEmbeddingGivesTheSameBits(t *testing.T) {
	for _, dtype := range gradientDTypes {
		dy, ids := normal(1, dtype, 3000, 129), randomIDs(2, 50, 3000)
		for _, d := range backends {
			want := mlxtest.Floats(t, embeddingBackward(target{backend: d}, dy, ids, 50))
			for range 19 {
				require.Equal(t, want, mlxtest.Floats(t, embeddingBackward(target{backend: d}, dy, ids, 50)))
			}
		}
	}
}

// Without a C++ compiler, MLX's operations compute the same results, also for ids out of range.
func TestEmbeddingWithoutACompiler(t *testing.T) {
	weight, dy := normal(1, mlxc.Float32, 5, 3), normal(2, mlxc.Float32, 5, 3)
	run := func() arrays {
		ids := lazily(mlxc.FromSlice([]int32{4, -1, 0, 4, 5}))
		y, grads, err := mlxc.VJP(lookup(ids, Embedding), arrays{weight}, arrays{dy})
		require.NoError(t, err)
		rows, gradients, count := EmbeddingSparseGradient(dy, ids, 5)
		empty := weight.Slice([]int{0, 0}, []int{0, 3}, nil)
		return append(append(y, grads...), rows, gradients, count, Embedding(empty, ids))
	}
	want := run()
	require.NoError(t, mlxc.Eval(want...))
	withoutCompiler(t)
	launches := customkernels.LaunchCount()
	for i, got := range run() {
		require.Equal(t, want[i].DType(), got.DType())
		require.Equal(t, want[i].Shape(), got.Shape())
		sameFloats(t, mlxtest.Floats(t, want[i]), mlxtest.Floats(t, got))
	}
	require.Equal(t, launches, customkernels.LaunchCount())
}

func TestEmbeddingGradientIsExportedForMetal(t *testing.T) {
	for _, dtype := range gradientDTypes {
		ids := randomIDs(2, 10, 300)
		lookUp := func(w *mlxc.Array) *mlxc.Array { return Embedding(w, ids) }
		kernels := exportedKernels(t, lookUp, normal(1, dtype, 10, 40))
		text := strings.Join(kernels, " ")
		require.Len(t, kernels, 5, text)
		for _, name := range []string{"custom_kernel_embedding_keys", "embedding_runs", "embedding_backward_partial"} {
			require.Contains(t, text, name)
		}
	}
}
