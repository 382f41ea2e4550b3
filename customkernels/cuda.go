package customkernels

import (
	"fmt"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/cuda"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// cudaProgram is a kernel for one signature, as MLX's CUDA kernels: one for launches that
// fill their threadgroups, one for the others.
type cudaProgram struct {
	whole, ragged *mlxc.CUDAKernel
}

// launchCUDA is MLX's own custom kernel, with the text that MLX generates for Metal
// rewritten.
func (k *Kernel) launchCUDA(l Launch, inputs []*mlxc.Array) ([]*mlxc.Array, error) {
	fail := func(err error) ([]*mlxc.Array, error) { return nil, mlxc.NewError(k.name, err, inputs...) }
	if err := checkBlocks(l); err != nil {
		return fail(err)
	}
	p, err := k.cudaProgram(l, inputs)
	if err != nil {
		return fail(err)
	}
	launch := mlxc.KernelLaunch{Outputs: l.Outputs, Grid: l.Grid, Threadgroup: l.Threadgroup, InitValue: l.InitValue}
	if l.whole() {
		return p.whole.Apply(launch, inputs...)
	}
	if p.ragged == nil {
		return fail(fmt.Errorf("lanes of the kernel work together, and the last threadgroup of the grid %v is not full along an axis before the "+
			"threadgroup's last, %v: CUDA's simdgroups would have other threads than Metal's; make the grid a multiple of the threadgroup", l.Grid, l.Threadgroup))
	}
	grid := mlxc.FromSlice([]uint32{uint32(l.Grid[0]), uint32(l.Grid[1]), uint32(l.Grid[2])})
	defer grid.Free()
	return p.ragged.Apply(launch, append(inputs[:len(inputs):len(inputs)], grid)...)
}

// checkBlocks holds a launch to CUDA's limits, which are below Metal's.
func checkBlocks(l Launch) error {
	const most = 65535 // blocks along the second and third axis
	for i := 1; i < 3; i++ {
		if blocks := (l.Grid[i] + l.Threadgroup[i] - 1) / l.Threadgroup[i]; blocks > most {
			return fmt.Errorf("%d threadgroups along axis %d: CUDA has at most %d there; put the long axis first", blocks, i, most)
		}
	}
	return nil
}

// threads is the number of threads of a full threadgroup.
func (l Launch) threads() int { return l.Threadgroup[0] * l.Threadgroup[1] * l.Threadgroup[2] }

// whole reports whether the threadgroups of a launch fill its grid.
func (l Launch) whole() bool {
	for i := range 3 {
		if l.Grid[i]%l.Threadgroup[i] != 0 {
			return false
		}
	}
	return true
}

// inOrder reports whether threads have the same simdgroups on CUDA as on Metal, where a
// threadgroup at the end of an axis is short: only its last axis may be.
func (l Launch) inOrder() bool {
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

// cudaProgram finds the program of a signature, or builds it.
func (k *Kernel) cudaProgram(l Launch, inputs []*mlxc.Array) (*cudaProgram, error) {
	key := fmt.Sprint(k.signature(l, inputs), "|", l.threads(), l.inOrder())
	return foundOrBuilt(k, k.cuda, key, func() (*cudaProgram, error) { return k.buildCUDA(l, inputs) })
}

// CUDASource returns the CUDA text of a launch on these inputs, complete but for MLX's own
// prelude and with void pointers where MLX writes the arrays' types: the vocabulary, the
// rewritten text of MetalSource, and the function that MLX makes. It needs no NVIDIA GPU.
func (k *Kernel) CUDASource(l Launch, inputs ...*mlxc.Array) (string, error) {
	l = l.normalized()
	if err := k.check(l, inputs); err != nil {
		return "", err
	}
	source, err := k.cudaSource(l, inputs)
	if err != nil {
		return "", err
	}
	vocabulary, err := cuda.Vocabulary()
	if err != nil {
		return "", err
	}
	var parameters []string
	for _, name := range source.Inputs {
		parameters = append(parameters, "const void* "+name)
	}
	if !l.whole() {
		parameters = append(parameters, "const unsigned* "+msl.GridInput)
	}
	for _, name := range source.Outputs {
		parameters = append(parameters, "void* "+name)
	}
	return fmt.Sprintf("%s%snamespace mlx::core::cu {\n__global__ void __launch_bounds__(%d) %s(%s) {\n%s}\n}\n",
		vocabulary, source.Header, l.threads(), k.name, strings.Join(parameters, ", "), source.Body(l.whole())), nil
}

// cudaSource is the text that MLX generates for a launch, as CUDA.
func (k *Kernel) cudaSource(l Launch, inputs []*mlxc.Array) (*msl.CUDASource, error) {
	text, err := k.generate(l, inputs)
	if err != nil {
		return nil, err
	}
	source, err := msl.CUDA(text)
	if err != nil {
		return nil, k.located(text, err)
	}
	return source, nil
}

func (k *Kernel) buildCUDA(l Launch, inputs []*mlxc.Array) (*cudaProgram, error) {
	source, err := k.cudaSource(l, inputs)
	if err != nil {
		return nil, err
	}
	vocabulary, err := cuda.Vocabulary()
	if err != nil {
		return nil, err
	}
	kernel := func(whole bool) (*mlxc.CUDAKernel, error) {
		header, body, names := vocabulary+source.Header, source.Body(whole), source.Inputs
		if !whole {
			names = append(names[:len(names):len(names)], msl.GridInput)
		}
		// MLX finds compiled kernels by name, on disk too.
		name := k.name + "_" + digest(header, body, strings.Join(names, ","), strings.Join(source.Outputs, ","), fmt.Sprint(l.threads()))
		// MLX's kernels do not say how large their blocks are. The compiler then may use more
		// registers than a large block can have, and the launch fails. A macro of the kernel's
		// own name says it.
		function := "custom_kernel_" + name
		return mlxc.NewCUDAKernel(mlxc.CUDAKernelSource{
			Name: name, Inputs: names, Outputs: source.Outputs,
			Header: fmt.Sprintf("%s#define %s __launch_bounds__(%d) %[2]s\n", header, function, l.threads()),
			Body:   fmt.Sprintf("\n#undef %s\n%s", function, body),
		})
	}
	p := &cudaProgram{}
	if p.whole, err = kernel(true); err != nil {
		return nil, err
	}
	if !source.Lanes || l.inOrder() {
		p.ragged, err = kernel(false)
	}
	return p, err
}
