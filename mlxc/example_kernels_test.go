package mlxc_test

import (
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// On a Mac, Apply suffices. On every machine, Trace returns the Metal source that MLX generates.
func ExampleMetalKernel() {
	square, err := mlxc.NewMetalKernel(mlxc.MetalKernelSource{
		Name: "square_example", Inputs: []string{"x"}, Outputs: []string{"y"},
		Body: "    uint i = thread_position_in_grid.x;\n    y[i] = x[i] * x[i];",
	})
	if err != nil {
		panic(err)
	}
	f := func(args []*mlxc.Array) []*mlxc.Array {
		out, err := square.Apply(mlxc.KernelLaunch{
			Outputs: []mlxc.Output{{Shape: args[0].Shape(), DType: mlxc.Float32}},
			Grid:    [3]int{args[0].Size(), 1, 1}, Threadgroup: [3]int{256, 1, 1},
		}, args[0])
		if err != nil {
			return []*mlxc.Array{mlxc.InvalidArray(err)}
		}
		return out
	}
	nodes, err := mlxc.Trace(func(args []*mlxc.Array) (out []*mlxc.Array) {
		mlxc.WithPlaceholderGPU(func() { out = f(args) })
		return out
	}, []*mlxc.Array{mlxc.Ones(mlxc.Float32, 1024)})
	if err != nil {
		panic(err)
	}
	fmt.Print(nodes[0].Strings[1])
	// Output:
	// [[kernel]] void custom_kernel_square_example_float_float(
	//   const device float* x [[buffer(0)]],
	//   device float* y [[buffer(1)]],
	//   uint3 thread_position_in_grid [[thread_position_in_grid]]) {
	//     uint i = thread_position_in_grid.x;
	//     y[i] = x[i] * x[i];
	// }
}

// metalText returns the source that MLX generates for a launch, as in the example of MetalKernel.
func metalText(s mlxc.MetalKernelSource, l mlxc.KernelLaunch, inputs ...*mlxc.Array) string {
	kernel, err := mlxc.NewMetalKernel(s)
	if err != nil {
		return err.Error()
	}
	nodes, err := mlxc.Trace(func(args []*mlxc.Array) (out []*mlxc.Array) {
		mlxc.WithPlaceholderGPU(func() { out, err = kernel.Apply(l, args...) })
		if err != nil {
			return []*mlxc.Array{mlxc.InvalidArray(err)}
		}
		return out
	}, inputs)
	if err != nil {
		return err.Error()
	}
	return nodes[0].Strings[1]
}

func ExampleMetalKernelSource() {
	// A kernel that reads its input through strides and calls a function of Header.
	source := mlxc.MetalKernelSource{
		Name: "cube_example", Inputs: []string{"x"}, Outputs: []string{"y"},
		Header:  "template <typename T> T cube(T v) { return v * v * v; }\n",
		Body:    "    uint i = thread_position_in_grid.x;\n    y[i] = cube(x[i * x_strides[0]]);",
		Strided: true,
	}
	columns := mlxc.Ones(mlxc.Float32, 100, 4).Transpose()
	fmt.Print(metalText(source, mlxc.KernelLaunch{
		Outputs: []mlxc.Output{{Shape: []int{4}, DType: mlxc.Float32}},
		Grid:    [3]int{4, 1, 1}, Threadgroup: [3]int{4, 1, 1},
	}, columns))
	// Output:
	// template <typename T> T cube(T v) { return v * v * v; }
	// [[kernel]] void custom_kernel_cube_example_float_float(
	//   const device float* x [[buffer(0)]],
	//   const constant int64_t* x_strides [[buffer(1)]],
	//   device float* y [[buffer(2)]],
	//   uint3 thread_position_in_grid [[thread_position_in_grid]]) {
	//     uint i = thread_position_in_grid.x;
	//     y[i] = cube(x[i * x_strides[0]]);
	// }
}

func ExampleKernelLaunch() {
	// One thread per element, in threadgroups of 256; elements that no thread writes are 0.
	zero := float32(0)
	x := mlxc.Ones(mlxc.Float32, 1000)
	launch := mlxc.KernelLaunch{
		Outputs:     []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
		Grid:        [3]int{x.Size(), 1, 1},
		Threadgroup: [3]int{256, 1, 1},
		InitValue:   &zero,
	}
	fmt.Print(metalText(mlxc.MetalKernelSource{
		Name: "positive_example", Inputs: []string{"x"}, Outputs: []string{"y"},
		Body: "    uint i = thread_position_in_grid.x;\n    if (x[i] > 0) y[i] = x[i];",
	}, launch, x))
	// Output:
	// [[kernel]] void custom_kernel_positive_example_float_float(
	//   const device float* x [[buffer(0)]],
	//   device float* y [[buffer(1)]],
	//   uint3 thread_position_in_grid [[thread_position_in_grid]]) {
	//     uint i = thread_position_in_grid.x;
	//     if (x[i] > 0) y[i] = x[i];
	// }
}

func ExampleTemplateArg() {
	x := mlxc.Ones(mlxc.Float16, 1024)
	text := metalText(mlxc.MetalKernelSource{
		Name: "power_example", Inputs: []string{"x"}, Outputs: []string{"y"},
		Body: "    uint i = thread_position_in_grid.x;\n    T v = 1;\n    for (int k = 0; k < N; k++) v *= x[i];\n   " +
			" y[i] = v;",
	}, mlxc.KernelLaunch{
		Outputs: []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
		Grid:    [3]int{1024, 1, 1}, Threadgroup: [3]int{256, 1, 1},
		Template: []mlxc.TemplateArg{{Name: "T", Value: mlxc.Float16}, {Name: "N", Value: 3}},
	}, x)
	source, _, _ := strings.Cut(text, "\n\n") // the rest instantiates the template
	fmt.Println(source)
	// Output:
	// template <typename T, int N>
	// [[kernel]] void custom_kernel_power_example__float16_t_3_float16_t_float16_t(
	//   const device float16_t* x [[buffer(0)]],
	//   device float16_t* y [[buffer(1)]],
	//   uint3 thread_position_in_grid [[thread_position_in_grid]]) {
	//     uint i = thread_position_in_grid.x;
	//     T v = 1;
	//     for (int k = 0; k < N; k++) v *= x[i];
	//     y[i] = v;
	// }
}

func ExampleOutput() {
	// A launch with two outputs, in the order of the kernel's output names.
	x := mlxc.Ones(mlxc.Float32, 1024)
	fmt.Print(metalText(mlxc.MetalKernelSource{
		Name: "frexp_example", Inputs: []string{"x"}, Outputs: []string{"fraction", "exponent"},
		Body: "    uint i = thread_position_in_grid.x;\n    int e;\n    fraction[i] = frexp(x[i], e);\n    " +
			"exponent[i] = e;",
	}, mlxc.KernelLaunch{
		Outputs: []mlxc.Output{{Shape: x.Shape(), DType: mlxc.Float32}, {Shape: x.Shape(), DType: mlxc.Int32}},
		Grid:    [3]int{1024, 1, 1}, Threadgroup: [3]int{256, 1, 1},
	}, x))
	// Output:
	// [[kernel]] void custom_kernel_frexp_example_float_float_int32_t(
	//   const device float* x [[buffer(0)]],
	//   device float* fraction [[buffer(1)]],
	//   device int32_t* exponent [[buffer(2)]],
	//   uint3 thread_position_in_grid [[thread_position_in_grid]]) {
	//     uint i = thread_position_in_grid.x;
	//     int e;
	//     fraction[i] = frexp(x[i], e);
	//     exponent[i] = e;
	// }
}

func ExampleCUDAKernelSource() {
	// MLX caches kernels by name: with a Prelude, the name must contain a hash of the Prelude.
	kernel, err := mlxc.NewCUDAKernel(mlxc.CUDAKernelSource{
		Name: "reverse_example_1", Inputs: []string{"x"}, Outputs: []string{"y"},
		Body: `extern __shared__ float row[];
		row[threadIdx.x] = x[threadIdx.x];
		__syncthreads();
		y[threadIdx.x] = row[blockDim.x - 1 - threadIdx.x];`,
		SharedMemory: 3 * 4, // three float32
	})
	if err != nil {
		fmt.Println(err) // MLX was built without CUDA
		return
	}
	y, err := kernel.Apply(mlxc.KernelLaunch{
		Outputs: []mlxc.Output{{Shape: []int{3}, DType: mlxc.Float32}},
		Grid:    [3]int{3, 1, 1}, Threadgroup: [3]int{3, 1, 1},
	}, mlxc.FromSlice([]float32{1, 2, 3}))
	fmt.Println(y, err)
}

func ExampleHostFunction() {
	// run is the address of a C function: with cgo, unsafe.Pointer(C.my_square).
	square := func(run unsafe.Pointer, x *mlxc.Array) *mlxc.Array {
		out, err := mlxc.HostFunction{
			Name: "my_square", Run: run,
			Outputs: []mlxc.Output{{Shape: x.Shape(), DType: x.DType()}},
		}.Apply(x)
		if err != nil {
			return mlxc.InvalidArray(err)
		}
		return out[0]
	}
	err := mlxc.WithDevice(mlxc.CPU, func() {
		y := square(nil, mlxc.Ones(mlxc.Float32, 2)) // this example has no C function
		fmt.Println(errors.Unwrap(y.Sum().Err()))
	})
	if err != nil {
		panic(err)
	}
	// Output: Run is nil
}
