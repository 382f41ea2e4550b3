package mlxc

// #include "mlxg.h"
import "C"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"unsafe"
)

// CUDAKernel is a custom CUDA kernel of MLX (mlx_fast_cuda_kernel). MLX writes the signature
// around Body, a __global__ function in namespace mlx::core::cu: inputs are const T*, outputs
// T*, and an input's shape, strides and number of axes are there, by value, if Body names
// them (x_shape, x_strides, x_ndim for the input x). Template arguments are constants inside
// the body. NVRTC compiles it when a launch is evaluated, for which MLX wants CUDA's headers in
// CUDA_HOME.
//
// MLX keeps compiled kernels by name, and by a hash of Header and Body: a name must change with
// Prelude, so put a hash of that in.
type CUDAKernel struct{ kernel *customKernel }

// CUDAKernelSource describes a CUDA kernel to MLX.
type CUDAKernelSource struct {
	Name    string
	Inputs  []string
	Outputs []string
	Body    string
	// Prelude and then Header come before the function, outside of its namespace. MLX copies
	// the texts of a kernel and hashes them at every launch; what is long belongs into Prelude,
	// each text of which MLX sees as a file.
	Prelude []string
	Header  string
	// Strided passes inputs as they are; else MLX copies them to row-major order
	// where they are not.
	Strided bool
	// SharedMemory is how many bytes of dynamic shared memory a block gets.
	SharedMemory int
}

// NewCUDAKernel registers a kernel. It fails where MLX was built without CUDA.
func NewCUDAKernel(s CUDAKernelSource) (*CUDAKernel, error) {
	fail := func(err error) (*CUDAKernel, error) { return nil, opError(s.Name, err) }
	if s.SharedMemory < 0 {
		return fail(fmt.Errorf("%d bytes of shared memory: there must be 0 or more", s.SharedMemory))
	}
	if err := check32(s.SharedMemory); err != nil {
		return fail(err)
	}
	includes, err := includeLines(s.Prelude)
	if err != nil {
		return fail(err)
	}
	// Other processes cannot read the files.
	header, exported := C.CString(includes+s.Header), C.CString(strings.Join(s.Prelude, "")+s.Header)
	defer C.free(unsafe.Pointer(header))
	defer C.free(unsafe.Pointer(exported))
	k, err := newCustomKernel("CUDA", s.Name, s.Body, s.Inputs, s.Outputs, func(name, body, inputs, outputs *C.char, err **C.char) unsafe.Pointer {
		return C.mlxg_cuda_kernel_new(name, inputs, C.size_t(len(s.Inputs)), outputs, C.size_t(len(s.Outputs)), body, header, exported,
			C.bool(!s.Strided), C.int(s.SharedMemory), err)
	})
	if err != nil {
		return nil, err
	}
	return &CUDAKernel{k}, nil
}

// Apply adds a launch to the graph of the inputs, on the current stream. CUDA runs whole
// blocks: where Grid is no multiple of Threadgroup, threads beyond the grid run too.
func (k *CUDAKernel) Apply(l KernelLaunch, inputs ...*Array) ([]*Array, error) {
	return k.kernel.apply(l, inputs)
}

// included are the files that kernels include, by the hash of their text.
var included struct {
	mu    sync.Mutex
	files map[[sha256.Size]byte]*os.File
}

// includeLines are lines that include texts. Their files are open for as long as the process
// lives and have no name in any folder: nobody can remove or change one before a graph is
// evaluated, which is when they are read.
func includeLines(texts []string) (string, error) {
	included.mu.Lock()
	defer included.mu.Unlock()
	var lines strings.Builder
	for _, text := range texts {
		key := sha256.Sum256([]byte(text))
		if included.files[key] == nil {
			file, err := unnamedFile(text)
			if err != nil {
				return "", fmt.Errorf("a file for NVRTC could not be made: %w", err)
			}
			if included.files == nil {
				included.files = map[[sha256.Size]byte]*os.File{}
			}
			included.files[key] = file
		}
		fmt.Fprintf(&lines, "#include \"/proc/self/fd/%d\"\n", included.files[key].Fd())
	}
	return lines.String(), nil
}

// nameless is an open file with this text.
func unnamedFile(text string) (*os.File, error) {
	file, err := os.CreateTemp("", "mlxgrad-*.h")
	if err != nil {
		return nil, err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, os.Remove(file.Name())); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
