package mlxc_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func ExampleArray_Solve() {
	// 2x + y = 5 and x − y = 1.
	a := mlxc.FromSlice([]float32{2, 1, 1, -1}, 2, 2)
	b := mlxc.FromSlice([]float32{5, 1})
	x := mlxc.InvalidArray(mlxc.ErrNil)
	if err := mlxc.WithDevice(mlxc.CPU, func() { x = a.Solve(b) }); err != nil {
		fmt.Println(err)
	}
	fmt.Println(x)
	// Output: array([2, 1], dtype=float32)
}

func ExampleEinsum() {
	a := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2)
	fmt.Println(mlxc.Einsum("ij->j", a), mlxc.Einsum("ii", a))
	// Output: array([4, 6], dtype=float32) array(5, dtype=float32)
}

func ExampleFFTConfig() {
	x := mlxc.FromSlice([]float32{1, 0, -1, 0})
	fmt.Println(x.RFFT(mlxc.FFTConfig{}).Abs())
	fmt.Println(x.RFFT(mlxc.FFTConfig{N: []int{2}}).Abs())
	// Output:
	// array([0, 2, 0], dtype=float32)
	// array([1, 1], dtype=float32)
}

func ExampleFFTNorm() {
	x := mlxc.Ones(mlxc.Float32, 4)
	fmt.Println(x.FFT(mlxc.FFTConfig{Norm: mlxc.FFTOrtho}).Abs())
	// Output: array([2, 0, 0, 0], dtype=float32)
}

func ExampleConvConfig() {
	signal := mlxc.FromSlice([]float32{1, 2, 3, 4}, 1, 4, 1)
	difference := mlxc.FromSlice([]float32{-1, 1}, 1, 2, 1)
	fmt.Println(mlxc.Conv1D(signal, difference, mlxc.ConvConfig{Padding: []int{1}}).Flatten(0, 2))
	// Output: array([1, 1, 1, 1, -4], dtype=float32)
}

func ExampleConvGeneralConfig() {
	signal := mlxc.FromSlice([]float32{1, 2, 3, 4}, 1, 4, 1)
	difference := mlxc.FromSlice([]float32{-1, 1}, 1, 2, 1)
	// Each result depends only on earlier elements.
	fmt.Println(mlxc.ConvGeneral(signal, difference, mlxc.ConvGeneralConfig{PaddingLow: []int{1}}).Flatten(0, 2))
	// Output: array([1, 1, 1, 1], dtype=float32)
}

func ExampleConvTransposeConfig() {
	signal := mlxc.FromSlice([]float32{1, 10}, 1, 2, 1)
	kernel := mlxc.FromSlice([]float32{1, 2}, 1, 2, 1)
	fmt.Println(mlxc.ConvTranspose1D(signal, kernel, mlxc.ConvTransposeConfig{Stride: []int{2}}).Flatten(0, 2))
	// Output: array([1, 2, 10, 20], dtype=float32)
}

func ExampleQuantized() {
	w := mlxc.Arange(mlxc.Float32, 0, 128, 1).Reshape(2, 64).DivScalar(15)
	x := mlxc.Ones(mlxc.Float32, 1, 64)
	q := w.Quantize(mlxc.QuantizeConfig{Bits: 8})
	fmt.Println(q.Weight.NBytes(), "bytes instead of", w.NBytes())
	fmt.Println(x.QuantizedMatMul(q, true).Sub(x.MatMul(w.Transpose())).Abs().Max().Less(mlxc.Scalar[float32](0.1)))
	// Output:
	// 128 bytes instead of 512
	// array(true, dtype=bool)
}

func ExampleQuantizeConfig() {
	q := mlxc.Ones(mlxc.Float32, 1, 64).Quantize(mlxc.QuantizeConfig{Mode: mlxc.MXFP8})
	fmt.Println(q.Scales.Shape(), q.Dequantize(mlxc.Float32).Mean())
	// Output: [1 2] array(1, dtype=float32)
}

func ExampleQuantizeMode() {
	w := mlxc.Ones(mlxc.Float32, 1, 64)
	for _, mode := range []mlxc.QuantizeMode{mlxc.Affine, mlxc.MXFP4, mlxc.MXFP8, mlxc.NVFP4} {
		q := w.Quantize(mlxc.QuantizeConfig{Mode: mode})
		fmt.Println(mode, q.Weight.Shape(), q.Scales.Shape())
	}
	// Output:
	// affine [1 8] [1 1]
	// mxfp4 [1 8] [1 2]
	// mxfp8 [1 16] [1 2]
	// nvfp4 [1 8] [1 4]
}

func ExampleMatMulIDs() {
	// Two rows, each multiplied by a selected matrix.
	x := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 1, 2)
	experts := mlxc.Stack(0, mlxc.Ones(mlxc.Float32, 2, 1), mlxc.Ones(mlxc.Float32, 2, 1).Neg())
	y := x.GatherMM(experts, mlxc.MatMulIDs{Right: mlxc.FromSlice([]uint32{1, 0})})
	fmt.Println(y.Flatten(0, 2))
	// Output: array([-3, 7], dtype=float32)
}

func ExampleBlockMasks() {
	a := mlxc.Ones(mlxc.Float32, 64, 64)
	left := mlxc.FromSlice([]bool{true, false, true, true}, 2, 2)
	y := a.BlockMaskedMM(a, mlxc.BlockMasks{Size: 32, Left: left})
	fmt.Println(y.Mean(1).Min(), y.Mean(1).Max())
	// Output: array(32, dtype=float32) array(64, dtype=float32)
}

func ExampleRoPEConfig() {
	x := mlxc.FromSlice([]float32{1, 0, 1, 0}, 1, 2, 2)
	// The second row is rotated by 90°.
	quarter := mlxc.FromSlice([]float32{2 / 3.14159265})
	fmt.Println(mlxc.RoPE(x, mlxc.RoPEConfig{Freqs: quarter}).MulScalar(1000).AsType(mlxc.Int32))
	// Output:
	// array([[[1000, 0],
	//         [0, 1000]]], dtype=int32)
}

func ExampleRandomSeed() {
	mlxc.RandomSeed(1)
	a := mlxc.RandomNormal(nil, mlxc.Float32, 1000)
	mlxc.RandomSeed(1)
	b := mlxc.RandomNormal(nil, mlxc.Float32, 1000)
	fmt.Println(a.Equal(b).All())
	// Output: array(true, dtype=bool)
}

func ExampleCUDAKernel() {
	kernel, err := mlxc.NewCUDAKernel(mlxc.CUDAKernelSource{
		Name: "square_example", Inputs: []string{"x"}, Outputs: []string{"y"},
		Body: "uint i = blockIdx.x * blockDim.x + threadIdx.x; if (i < x_shape[0]) y[i] = x[i] * x[i];",
	})
	if err != nil {
		fmt.Println(err) // MLX was built without CUDA
		return
	}
	out, err := kernel.Apply(mlxc.KernelLaunch{
		Outputs: []mlxc.Output{{Shape: []int{1}, DType: mlxc.Float32}},
		Grid:    [3]int{1, 1, 1}, Threadgroup: [3]int{1, 1, 1},
	}, mlxc.FromSlice([]float32{5}))
	fmt.Println(out, err)
}
