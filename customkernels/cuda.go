package customkernels

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// launchCUDA is MLX's own custom kernel, with the text that MLX generates for Metal
// rewritten.
func (k *Kernel) launchCUDA(l Launch, inputs []*mlxc.Array) ([]*mlxc.Array, error) {
	fail := func(err error) ([]*mlxc.Array, error) { return nil, mlxc.NewError(k.name, err, inputs...) }
	if err := checkBlocks(l); err != nil {
		return fail(err)
	}
	kernel, err := k.cudaKernel(l, inputs)
	if err != nil {
		return fail(err)
	}
	if !l.whole() {
		inputs = append(inputs[:len(inputs):len(inputs)], Constants(uint32(l.Grid[0]), uint32(l.Grid[1]), uint32(l.Grid[2])))
	}
	return kernel.Apply(mlxc.KernelLaunch{Outputs: l.Outputs, Grid: l.Grid, Threadgroup: l.Threadgroup, InitValue: l.InitValue}, inputs...)
}

// checkBlocks holds a launch to CUDA's limits, which are below Metal's.
func checkBlocks(l Launch) error {
	for i := 1; i < 3; i++ {
		if blocks := (l.Grid[i] + l.Threadgroup[i] - 1) / l.Threadgroup[i]; blocks > MaxThreadgroupsYZ {
			return fmt.Errorf("%d threadgroups along axis %d: CUDA has at most %d there; put the long axis first", blocks, i, MaxThreadgroupsYZ)
		}
	}
	return nil
}

// threads is the number of threads of a full threadgroup.
func (l Launch) threads() int { return l.Threadgroup[0] * l.Threadgroup[1] * l.Threadgroup[2] }

// bounds are the arguments of CUDA's __launch_bounds__.
func (l Launch) bounds() string {
	bounds := strconv.Itoa(l.threads())
	if l.Resident > 0 {
		bounds += ", " + strconv.Itoa(l.Resident)
	}
	return bounds
}

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

// cudaKernel finds the kernel for a signature, or builds it. There is one for each size of
// threadgroups, and one for launches that do not fill theirs.
func (k *Kernel) cudaKernel(l Launch, inputs []*mlxc.Array) (*mlxc.CUDAKernel, error) {
	key := make([]byte, 0, keySize)
	for _, n := range append(l.Threadgroup[:], l.Resident) {
		key = append(strconv.AppendInt(key, int64(n), 10), ' ')
	}
	key = strconv.AppendBool(strconv.AppendBool(key, l.whole()), l.inOrder())
	key = k.signature(key, l, inputs)
	return foundOrBuilt(k, k.cuda, key, func() (*mlxc.CUDAKernel, error) { return k.buildCUDA(l, inputs) })
}

// CUDASource returns the CUDA text of a launch on these inputs, complete but for MLX's own
// prelude and with void pointers where MLX writes the arrays' types: the vocabulary, the
// rewritten text of MetalSource, and the function that MLX makes. It needs no NVIDIA GPU.
func (k *Kernel) CUDASource(l Launch, inputs ...*mlxc.Array) (string, error) {
	l = k.normalized(l)
	if err := k.check(l, inputs); err != nil {
		return "", err
	}
	source, err := k.cudaSource(l, inputs)
	if err != nil {
		return "", err
	}
	vocabulary, err := cudaVocabulary()
	if err != nil {
		return "", err
	}
	var parameters []string
	for _, name := range source.Inputs {
		parameters = append(parameters, "const void* "+name)
	}
	if !l.whole() {
		parameters = append(parameters, "const unsigned* "+translate.GridInput)
	}
	for _, name := range source.Outputs {
		parameters = append(parameters, "void* "+name)
	}
	return fmt.Sprintf("%s%snamespace mlx::core::cu {\n__global__ void __launch_bounds__(%s) %s(%s) {\n%s}\n}\n",
		vocabulary, source.Header, l.bounds(), k.name, strings.Join(parameters, ", "), source.Body(l.Threadgroup, l.whole())), nil
}

// cudaVocabulary is Metal's vocabulary, which multiplies floats as MLX does.
func cudaVocabulary() (string, error) {
	vocabulary, err := metalstd.CUDA()
	tf32 := 0
	if mlxc.TF32Enabled() {
		tf32 = 1
	}
	return fmt.Sprintf("#define MLXG_TF32 %d\n%s", tf32, vocabulary), err
}

// cudaSource is the text that MLX generates for a launch, as CUDA.
func (k *Kernel) cudaSource(l Launch, inputs []*mlxc.Array) (*translate.CUDASource, error) {
	text, err := k.generate(l, inputs)
	if err != nil {
		return nil, err
	}
	source, err := translate.CUDA(text)
	if err != nil {
		return nil, k.loaded.Located(text, err)
	}
	return source, nil
}

func (k *Kernel) buildCUDA(l Launch, inputs []*mlxc.Array) (*mlxc.CUDAKernel, error) {
	source, err := k.cudaSource(l, inputs)
	if err != nil {
		return nil, err
	}
	vocabulary, err := cudaVocabulary()
	if err != nil {
		return nil, err
	}
	if source.Lanes && !l.inOrder() {
		return nil, fmt.Errorf("lanes of the kernel work together, and the last threadgroup of the grid %v is not full along an axis before the "+
			"threadgroup's last, %v: CUDA's simdgroups would have other threads than Metal's; make the grid a multiple of the threadgroup", l.Grid, l.Threadgroup)
	}
	body, names := source.Body(l.Threadgroup, l.whole()), source.Inputs
	if !l.whole() {
		names = append(names[:len(names):len(names)], translate.GridInput)
	}
	// MLX finds compiled kernels by name, which here has to stand for the prelude too.
	name := k.name + "_" + shader.Digest(vocabulary, source.Header, body, strings.Join(names, ","), strings.Join(source.Outputs, ","), l.bounds())
	// MLX's kernels do not say how large their blocks are. The compiler then may use more
	// registers than a large block can have, and the launch fails. A macro of the kernel's
	// own name says it.
	function := "custom_kernel_" + name
	return mlxc.NewCUDAKernel(mlxc.CUDAKernelSource{
		Name: name, Inputs: names, Outputs: source.Outputs,
		Prelude: []string{vocabulary, source.Header},
		Header:  fmt.Sprintf("#define %s __launch_bounds__(%s) %[1]s\n", function, l.bounds()),
		Body:    fmt.Sprintf("\n#undef %s\n%s", function, body),
	})
}
