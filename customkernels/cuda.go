package customkernels

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// launchCUDA adds MLX's custom CUDA kernel to the graph, with the translation of the Metal source.
func (k *Kernel) launchCUDA(l Launch, inputs []*mlxc.Array) ([]*mlxc.Array, error) {
	fail := func(err error) ([]*mlxc.Array, error) { return nil, mlxc.NewError(k.name, err, inputs...) }
	if err := checkBlocks(l); err != nil {
		return fail(err)
	}
	values := valuesOf(inputs)
	kernel, err := k.cudaKernel(context.Background(), l, inputs, values.inputs)
	if err != nil {
		return fail(err)
	}
	if !l.fullGroups() {
		grid := Constants(uint32(l.Grid[0]), uint32(l.Grid[1]), uint32(l.Grid[2]))
		inputs = append(inputs[:len(inputs):len(inputs)], grid)
	}
	return kernel.Apply(mlxc.KernelLaunch{
		Outputs: l.Outputs, Grid: l.Grid, Threadgroup: l.Threadgroup, InitValue: l.InitValue,
		Values: values.bits,
	}, inputs...)
}

// checkBlocks returns an error if a launch exceeds CUDA's limits on blocks, which are lower than Metal's.
func checkBlocks(l Launch) error {
	for i := 1; i < 3; i++ {
		if blocks := (l.Grid[i] + l.Threadgroup[i] - 1) / l.Threadgroup[i]; blocks > MaxThreadgroupsYZ {
			return fmt.Errorf("%d threadgroups along axis %d: CUDA allows at most %d there; put the long axis first",
				blocks, i, MaxThreadgroupsYZ)
		}
	}
	return nil
}

// launchBounds returns the arguments of CUDA's __launch_bounds__.
func (l Launch) launchBounds() string {
	bounds := strconv.Itoa(l.Threadgroup[0] * l.Threadgroup[1] * l.Threadgroup[2])
	if l.MinGroupsPerCore > 0 {
		bounds += ", " + strconv.Itoa(l.MinGroupsPerCore)
	}
	return bounds
}

// fullGroups reports whether all threadgroups are full: the grid is a multiple of the threadgroup.
func (l Launch) fullGroups() bool {
	for i := range 3 {
		if l.Grid[i]%l.Threadgroup[i] != 0 {
			return false
		}
	}
	return true
}

// sameSimdgroups reports whether simdgroups have the same threads on CUDA as on Metal. In a partial threadgroup, Metal
// numbers the existing threads without gaps, and CUDA numbers all threads of the block. The numbers agree only if each
// axis along which the grid is not a multiple of the threadgroup is the last axis with more than one thread.
func (l Launch) sameSimdgroups() bool {
	for i := range 3 {
		if l.Grid[i]%l.Threadgroup[i] == 0 {
			continue
		}
		for j := i + 1; j < 3; j++ {
			if l.Threadgroup[j] > 1 {
				return false
			}
		}
	}
	return true
}

// cudaKernel returns the kernel of a launch. It passes the inputs in `values`, a bit for each, by value.
func (k *Kernel) cudaKernel(ctx context.Context, l Launch, inputs []*mlxc.Array, values uint32) (*mlxc.CUDAKernel, error) {
	return getOrBuild(k, k.cuda, k.cudaKey(l, inputs, values), func() (*mlxc.CUDAKernel, error) {
		return k.buildCUDA(ctx, l, inputs, values)
	})
}

// cudaKey returns the cache key of a launch's CUDA kernel. It covers Threadgroup, MinGroupsPerCore, ThreadgroupMemory,
// Products, values, AlignedInputs, StartsEarly, fullGroups, sameSimdgroups and the signature.
func (k *Kernel) cudaKey(l Launch, inputs []*mlxc.Array, values uint32) []byte {
	key := make([]byte, 0, keySize)
	for _, n := range append(l.Threadgroup[:], l.MinGroupsPerCore, l.ThreadgroupMemory, int(l.Products), int(values)) {
		key = append(strconv.AppendInt(key, int64(n), 10), ' ')
	}
	for _, b := range []bool{l.fullGroups(), l.sameSimdgroups(), l.AlignedInputs, l.StartsEarly} {
		key = strconv.AppendBool(key, b)
	}
	return k.signature(key, l, inputs)
}

// CUDASource returns the CUDA program of a launch on these inputs: Metal's standard library for CUDA, the translation
// of MetalSource, and the function that is launched. The program lacks the prelude with CUDA's headers. CUDASource
// needs no NVIDIA GPU.
func (k *Kernel) CUDASource(l Launch, inputs ...*mlxc.Array) (string, error) {
	l = k.withDefaults(l)
	if err := k.check(l, inputs); err != nil {
		return "", err
	}
	text, err := k.generate(l, inputs)
	if err != nil {
		return "", err
	}
	source, err := k.cudaSource(text, l)
	if err != nil {
		return "", err
	}
	library, err := cudaLibrary(l)
	return cudaProgram(library, source, l, k.name, valuesOf(inputs).inputs), err
}

// cudaLibrary returns Metal's standard library for CUDA.
func cudaLibrary(l Launch) (string, error) {
	library, err := metalstd.CUDA()
	bit := map[bool]int{true: 1}
	tf32 := l.Products == DefaultProducts && mlxc.TF32Enabled()
	return fmt.Sprintf("#define MLXG_TF32 %d\n#define MLXG_FMA %d\n#define MLXG_FULL_SPLIT %d\n#define MLXG_DYNAMIC_MEMORY %d\n%s",
		bit[tf32], bit[l.Products == FMAProducts], bit[l.Products == FullSplitProducts], l.ThreadgroupMemory, library), err
}

// cudaSource returns the CUDA translation of a launch's Metal source.
func (k *Kernel) cudaSource(text string, l Launch) (*translate.CUDASource, error) {
	source, err := translate.CUDA(text, l.ThreadgroupMemory > 0)
	if err != nil {
		return nil, k.loaded.MapParseError(text, err)
	}
	return source, nil
}

// buildCUDA translates, compiles and registers the kernel of a launch.
func (k *Kernel) buildCUDA(
	ctx context.Context, l Launch, inputs []*mlxc.Array, values uint32,
) (*mlxc.CUDAKernel, error) {
	text, err := k.generate(l, inputs)
	if err != nil {
		return nil, err
	}
	source, err := k.cudaSource(text, l)
	if err != nil {
		return nil, err
	}
	library, err := cudaLibrary(l)
	if err != nil {
		return nil, err
	}
	if source.NeedsSIMDGroups && !l.sameSimdgroups() {
		return nil, fmt.Errorf("the kernel uses SIMD functions, but the grid %v is not a multiple of the threadgroup "+
			"%v along an axis before the threadgroup's last, so simdgroups would hold other threads than on Metal: "+
			"make the grid a multiple of the threadgroup", l.Grid, l.Threadgroup)
	}
	body, names := source.Body(l.Threadgroup, l.fullGroups()), source.Inputs
	if !l.fullGroups() {
		names = append(names[:len(names):len(names)], translate.GridInput)
	}
	// MLX caches compiled kernels by name alone, so the name covers the whole source.
	name := k.name + "_" + shader.Digest(library, source.Header, body,
		strings.Join(names, ","), strings.Join(source.Outputs, ","), l.launchBounds(), strconv.FormatBool(l.AlignedInputs),
		strconv.FormatBool(l.StartsEarly), strconv.Itoa(int(values)))
	// MLX declares its kernels without __launch_bounds__. The compiler may then use more registers per thread than a
	// large block can have, and the launch fails. A macro with the kernel's name adds the bounds.
	function := "custom_kernel_" + name
	kernel := mlxc.CUDAKernelSource{
		Name: name, Inputs: names, Outputs: source.Outputs,
		Prelude: []string{library, source.Header},
		Header:  fmt.Sprintf("#define %s __launch_bounds__(%s) %[1]s\n", function, l.launchBounds()),
		Body:    fmt.Sprintf("\n#undef %s\n%s", function, body),

		Aligned:      l.AlignedInputs,
		SharedMemory: l.ThreadgroupMemory,
	}
	// MLX passes shapes and strides only to kernels that it compiles itself.
	if !source.UsesMetadata {
		kernel.Function, kernel.Values = function, values
		if kernel.Code, err = compileCUDA(ctx, function, cudaProgram(library, source, l, function, values)); err != nil {
			return nil, k.loaded.MapCompilerError(text, err)
		}
		major, _, err := computeCapability()
		if err != nil {
			return nil, err
		}
		kernel.StartsEarly = l.StartsEarly && major >= 9 // see waitForInputs
	}
	return mlxc.NewCUDAKernel(kernel)
}
