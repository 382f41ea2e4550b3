//go:build mlxheaders

package faults_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/cmplx"

	mlx "github.com/mlxgrad/mlxgrad/internal/faults/unguarded"
)

// notNaN returns "" if x is NaN.
func notNaN(x float32) string {
	if x != x {
		return ""
	}
	return fmt.Sprintf("%v instead of NaN", x)
}

var valueChecks = map[string]check{
	"lu-factor-size": func() string {
		identity := make([]float32, 256*256)
		for i := range 256 {
			identity[257*i] = 1
		}
		lu := mlx.New(identity, 256, 256).LUFactor()
		mlx.Eval(lu)
		before := mlx.ActiveMemory()
		twice := lu.Mul(mlx.Scalar[float32](2))
		mlx.Eval(twice)
		if used := mlx.ActiveMemory() - before; used > 2*twice.Bytes() {
			return fmt.Sprintf("an array of %d bytes takes %d", twice.Bytes(), used)
		}
		return ""
	},
	"view-single-element-stride": func() string {
		var want []float32
		for _, b := range binary.LittleEndian.AppendUint32(nil, math.Float32bits(1.2345)) {
			want = append(want, float32(b))
		}
		// The slice is read with its strides.
		return floats(mlx.Scalar[float32](1.2345).BroadcastTo(1).View(mlx.Uint8).Slice(1, 4, 1), want[1:]...)
	},
	"view-column-major-flag": func() string {
		bytes := mlx.New([]float32{1, 2, 3}, 3, 1).View(mlx.Uint8)
		columns := mlx.New([]uint8{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3}, 4, 3).Transpose()
		return floats(bytes.Add(columns), 0, 1, 130, 66, 0, 1, 2, 67, 0, 1, 66, 67)
	},
	"split-negative-stride": func() string {
		first := mlx.Arange(6).Slice(5, -7, -1).Split()[0]
		mlx.Eval(first)
		return floats(first.Add(mlx.Scalar[float32](1)), 6, 5, 4)
	},
	"floor-divide-negative": func() string {
		return floats(mlx.Scalar[int32](-7).FloorDivide(mlx.Scalar[int32](2)), -4)
	},
	"integer-division-by-zero": func() string {
		return ends(mlx.Scalar[int32](1).FloorDivide(mlx.Scalar[int32](0)))
	},
	"integer-division-overflow": func() string {
		return ends(mlx.Scalar[int32](math.MinInt32).FloorDivide(mlx.Scalar[int32](-1)))
	},
	"to-fp8-float64": func() string {
		return floats(mlx.New([]float32{1, 2, 3}, 3).AsType(mlx.Float64).ToFP8().FromFP8(), 1, 2, 3)
	},
	"segmented-mm-half": func() string {
		a := mlx.Arange(8).Reshape(2, 4).AsType(mlx.Float16)
		b := mlx.Full(1, 4, 1).AsType(mlx.Float16)
		return floats(a.SegmentedMM(b, mlx.New([]uint32{0, 2, 2, 4}, 2, 2)), 1, 9, 5, 13)
	},
	"quantized-matmul-half": func() string {
		ones := mlx.Full(1, 1, 8192).AsType(mlx.Float16)
		return floats(ones.QuantizedMatMul(ones.Quantize()), 8192)
	},
	"logcumsumexp-integers": func() string {
		if d := mlx.New([]int32{0, 0}, 2).LogCumSumExp().DType(); d != mlx.Float32 {
			return fmt.Sprintf("the dtype is number %d", d)
		}
		return ""
	},
	"logsumexp-integers": func() string {
		got := mlx.New([]uint8{0, 255}, 2, 1).LogSumExp(0).Read()[0]
		if math.Abs(float64(got)-255) > 1e-3 {
			return fmt.Sprint(got)
		}
		return ""
	},
	"softmax-integers": func() string { return floats(mlx.New([]int32{0, 0}, 2, 1).Softmax(0), 0.5, 0.5) },
	"sum-stagnates": func() string {
		return floats(mlx.Scalar[float32](1).BroadcastTo(1<<25).Sum(0), 1<<25)
	},
	"cummax-complex-nan": func() string {
		got := mlx.New([]complex64{1, complex64(cmplx.NaN()), 3}, 3).CumMax(true).ReadComplex()
		if !cmplx.IsNaN(complex128(got[2])) {
			return fmt.Sprint(got)
		}
		return ""
	},
	"cummax-half-nan": func() string {
		return notNaN(mlx.New([]float32{1, float32(math.NaN()), 2}, 3).AsType(mlx.Float16).CumMax(true).Read()[1])
	},
	"scatter-max-nan": func() string {
		x := mlx.New([]float32{float32(math.NaN()), 1}, 2)
		return notNaN(x.ScatterMax(mlx.New([]uint32{0}, 1), mlx.New([]float32{2}, 1, 1)).Read()[0])
	},
	"argpartition-complex-nan": func() string {
		var numbers []complex64
		for range 50 {
			nan := complex64(cmplx.NaN())
			numbers = append(numbers, 3, nan, 1, nan, 2, nan, 5, 0)
		}
		x := mlx.New(numbers, len(numbers))
		for i, z := range x.Take(x.ArgPartition(150)).ReadComplex()[:150] {
			if cmplx.IsNaN(complex128(z)) {
				return fmt.Sprintf("element %d is NaN", i)
			}
		}
		return ""
	},
	"as-strided-broadcast": func() string {
		x := mlx.Scalar[float32](3).BroadcastTo(4)
		mlx.Eval(x)
		return failure(func() { mlx.Eval(x.AsStrided(1)) })
	},
	"reshape-negative-sizes": func() string {
		if mlx.Try(func() { mlx.Full(0, 4).Reshape(-2, -2) }) == nil {
			return "no error"
		}
		return ""
	},
	"slice-stride-overflow":  func() string { return floats(mlx.Arange(10).Slice(0, 10, math.MaxInt32), 0) },
	"tril-diagonal-overflow": func() string { return floats(mlx.Full(1, 2, 2).Tril(math.MinInt32), 0, 0, 0, 0) },
}
