package customkernels

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/nvrtc"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/shader"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/translate"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// cudaProgram returns a program with one kernel, called function, that runs a launch. Its parameters are those of
// [mlxc.CUDAKernelSource.Code]: pointers to the inputs, to the grid if some threadgroups are partial, and to the
// outputs, and then the inputs in `values`, a bit for each, by value.
func cudaProgram(library string, source *translate.CUDASource, l Launch, function string, values uint32) string {
	var parameters, addresses, byValue []string
	pointers := ""
	for i, name := range source.Inputs {
		if values>>i&1 != 0 {
			byValue = append(byValue, "const int "+name+"_value")
			pointers += fmt.Sprintf("  const void* const %s = &%[1]s_value;\n", name)
			continue
		}
		parameters, addresses = append(parameters, "const void* "+name), append(addresses, name)
	}
	if !l.fullGroups() {
		parameters = append(parameters, "const unsigned* "+translate.GridInput)
		addresses = append(addresses, translate.GridInput)
	}
	for _, name := range source.Outputs {
		parameters, addresses = append(parameters, "void* "+name), append(addresses, name)
	}
	alignment := ""
	if l.AlignedInputs {
		alignment = "#define MLXG_ALIGNED_INPUTS 1\n"
	}
	wait := ""
	if l.StartsEarly {
		wait = waitForInputs(addresses)
	}
	// NVRTC reports the lines of the Metal source.
	return fmt.Sprintf("%s%s\n#line 1 \"%s\"\n%s#line 1 \"launch\"\n"+
		"extern \"C\" __global__ void __launch_bounds__(%s) %s(%s) {\n%s%s%s}\n",
		alignment, library, shader.MetalText, source.Header, l.launchBounds(), function,
		strings.Join(append(parameters, byValue...), ", "), wait, pointers, source.Body(l.Threadgroup, l.fullGroups()))
}

// waitForInputs returns statements that wait for the end of the kernels that write the inputs of a kernel, and then set
// the kernel's addresses. Without the second step the compiler would load constants before the wait.
func waitForInputs(addresses []string) string {
	var text strings.Builder
	text.WriteString("#if __CUDA_ARCH__ >= 900\n  asm volatile(\"griddepcontrol.wait;\" : : : \"memory\");\n")
	for _, a := range addresses {
		fmt.Fprintf(&text, "  asm volatile(\"\" : \"+l\"(%s) : : \"memory\");\n", a)
	}
	text.WriteString("#endif\n")
	return text.String()
}

// compileCUDA compiles a program for the first NVIDIA GPU and returns the cubin or PTX.
func compileCUDA(ctx context.Context, function, program string) ([]byte, error) {
	compiler, target, err := cudaCompiler()
	if err != nil {
		return nil, err
	}
	return compiler.Compile(ctx, target, function, program)
}

// gpuCompiler is a compiler with the target for the first GPU.
type gpuCompiler struct {
	compiler *nvrtc.Compiler
	target   nvrtc.Target
}

var foundCompiler atomic.Pointer[gpuCompiler]

// cudaCompiler returns the NVRTC of this process and the target for the first GPU. Only success is cached.
func cudaCompiler() (*nvrtc.Compiler, nvrtc.Target, error) {
	if g := foundCompiler.Load(); g != nil {
		return g.compiler, g.target, nil
	}
	fail := func(err error) (*nvrtc.Compiler, nvrtc.Target, error) { return nil, nvrtc.Target{}, err }
	major, minor, err := computeCapability()
	if err != nil {
		return fail(err)
	}
	g := new(gpuCompiler)
	if g.compiler, err = nvrtc.Loaded(); err != nil {
		return fail(err)
	}
	if g.target, err = g.compiler.Target(major, minor); err != nil {
		return fail(err)
	}
	foundCompiler.Store(g)
	return g.compiler, g.target, nil
}

var foundCapability atomic.Pointer[[2]int]

// computeCapability returns the compute capability of the first NVIDIA GPU. Only success is cached.
func computeCapability() (major, minor int, err error) {
	if c := foundCapability.Load(); c != nil {
		return c[0], c[1], nil
	}
	info, err := mlxc.GPU.Info(0)
	if err != nil {
		return 0, 0, err
	}
	major, okMajor := info["compute_capability_major"].(int)
	minor, okMinor := info["compute_capability_minor"].(int)
	if !okMajor || !okMinor {
		return 0, 0, errors.New("MLX does not report the GPU's compute capability")
	}
	foundCapability.Store(&[2]int{major, minor})
	return major, minor, nil
}

// HasWarpgroups reports whether kernels on the first GPU can use the matrix instructions of a warpgroup (wgmma), and so
// tiles of 128 lanes. It is true for compute capability 9.0, for which kernels are compiled as sm_90a.
func HasWarpgroups() bool {
	major, minor, err := computeCapability()
	return err == nil && major == 9 && minor == 0
}
