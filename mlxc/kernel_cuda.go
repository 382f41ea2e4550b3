package mlxc

// #include "mlxg.h"
import "C"

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"strings"
	"sync"
	"unsafe"
)

// CUDAKernel is a custom CUDA kernel of MLX (mlx_fast_cuda_kernel). MLX generates the signature of a __global__
// function in namespace mlx::core::cu around Body. Inputs are const T*, outputs T*. The shape, the strides and the
// number of axes of an input x are passed by value if Body contains x_shape, x_strides or x_ndim. Template arguments
// are constants inside the body. NVRTC compiles the kernel when a launch is evaluated; for this, MLX needs CUDA's
// headers in CUDA_HOME.
//
// MLX caches compiled kernels by name and by a hash of Header and Body, but not by Prelude. The name must therefore
// change with Prelude: put a hash of it into the name.
//
// Any goroutine may use a kernel. It is freed when it becomes unreachable.
type CUDAKernel struct {
	kernel   *customKernel
	compiled bool
	values   int // inputs passed by value
}

// CUDAKernelSource is the source of a CUDA kernel.
type CUDAKernelSource struct {
	Name    string
	Inputs  []string // names of the parameters for inputs
	Outputs []string // names of the parameters for outputs
	Body    string
	// Prelude and then Header come before the function, outside its namespace. MLX copies and hashes Header and Body at
	// every launch. Long texts therefore belong in Prelude, whose texts are included as files.
	Prelude []string
	Header  string
	// Strided passes inputs with their strides. Otherwise MLX copies inputs to row-major order if needed.
	Strided bool
	// SharedMemory is the dynamic shared memory of a block, in bytes.
	SharedMemory int
	// Code is a cubin or PTX for the device. If it is not empty, launches run its function Function instead of Body;
	// exported graphs still contain Body. The function's parameters are pointers to the inputs and then to the outputs:
	// it gets no shapes, strides or template arguments.
	Code     []byte
	Function string
	// Values has a bit for each input that launches of Code pass by value: 32 bits each, after the outputs. Their values
	// are in [KernelLaunch].
	Values uint32
	// Aligned makes launches of Code read copies of views that do not begin at a multiple of 16 bytes in their buffer.
	// MLX aligns the buffers of more than 8 bytes. Launches of Body read inputs where they are. With other versions of
	// MLX than 0.32.4 these kernels run Body.
	Aligned bool
	// StartsEarly lets a launch of Code start before the end of the launch whose results it reads, in the graphs that
	// package ops records. Each thread of Function must execute griddepcontrol.wait before it accesses memory. The
	// instruction needs compute capability 9.0. A compiler may move loads of constants before it, unless the program
	// defines their addresses after it.
	StartsEarly bool
}

// NewCUDAKernel registers a kernel. It fails if MLX was built without CUDA.
func NewCUDAKernel(s CUDAKernelSource) (*CUDAKernel, error) {
	fail := func(err error) (*CUDAKernel, error) { return nil, opError(s.Name, err) }
	if s.SharedMemory < 0 {
		return fail(fmt.Errorf("SharedMemory is %d bytes: it must be at least 0", s.SharedMemory))
	}
	if err := check32(s.SharedMemory); err != nil {
		return fail(err)
	}
	if s.Values>>len(s.Inputs) != 0 {
		return fail(fmt.Errorf("Values is %#b: it must have bits for the %d inputs only", s.Values, len(s.Inputs)))
	}
	if (len(s.Code) == 0) != (s.Function == "") {
		return fail(fmt.Errorf("Code has %d bytes and Function is %q: set both or neither", len(s.Code), s.Function))
	}
	includes, err := includeLines(s.Prelude)
	if err != nil {
		return fail(err)
	}
	// Exported graphs contain the whole text, because other processes cannot read the files.
	header, exported := C.CString(includes+s.Header), C.CString(strings.Join(s.Prelude, "")+s.Header)
	defer C.free(unsafe.Pointer(header))
	defer C.free(unsafe.Pointer(exported))
	function := C.CString(s.Function)
	defer C.free(unsafe.Pointer(function))
	k, err := newCustomKernel("CUDA", s.Name, s.Body, s.Inputs, s.Outputs, func(name, body, inputs, outputs *C.char,
		err **C.char,
	) unsafe.Pointer {
		return C.mlxg_cuda_kernel_new(name, inputs, C.size_t(len(s.Inputs)), outputs, C.size_t(len(s.Outputs)), body,
			header, exported, function, unsafe.Pointer(unsafe.SliceData(s.Code)), C.size_t(len(s.Code)),
			C.uint32_t(s.Values), C.bool(!s.Strided), C.bool(s.Aligned), C.bool(s.StartsEarly), C.int(s.SharedMemory), err)
	})
	if err != nil {
		return nil, err
	}
	return &CUDAKernel{kernel: k, compiled: len(s.Code) > 0, values: bits.OnesCount32(s.Values)}, nil
}

// Apply adds a launch to the graph of the inputs, on the current stream. CUDA runs whole blocks: if Grid is not a
// multiple of Threadgroup, threads outside the grid run too.
func (k *CUDAKernel) Apply(l KernelLaunch, inputs ...*Array) ([]*Array, error) {
	if k.compiled && len(l.Template) > 0 {
		return nil, opError(k.kernel.name, fmt.Errorf("%d template arguments: a kernel with Code has none",
			len(l.Template)), inputs...)
	}
	if !k.compiled {
		l.Values = nil
	} else if len(l.Values) != k.values {
		return nil, opError(k.kernel.name, errCount("values of the launch", len(l.Values), k.values), inputs...)
	}
	return k.kernel.apply(l, inputs)
}

// included holds the files that kernels include, by the hash of their text.
var included struct {
	mu    sync.Mutex
	files map[[sha256.Size]byte]*os.File
}

// includeLines returns one #include line per text. It writes each text to a file that stays open as long as the process
// lives. The file has no name in any folder, so it cannot be removed or changed before an evaluation reads it.
func includeLines(texts []string) (string, error) {
	included.mu.Lock()
	defer included.mu.Unlock()
	var lines strings.Builder
	for _, text := range texts {
		key := sha256.Sum256([]byte(text))
		if included.files[key] == nil {
			file, err := unnamedFile(text)
			if err != nil {
				return "", fmt.Errorf("create an include file for NVRTC: %w", err)
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

// unnamedFile returns an open file with the text. The file's name is removed from its folder.
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
