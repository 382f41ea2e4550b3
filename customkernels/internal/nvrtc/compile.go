package nvrtc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
)

// A Target is the GPU architecture that a program is compiled for.
type Target struct {
	name string // sm_90a, or compute_120 for PTX
	ptx  bool
}

// String returns the name of the architecture.
func (t Target) String() string { return t.name }

// Target returns the target for a GPU of compute capability major.minor. From 9.0 on it is the architecture-specific
// target, such as sm_90a with wgmma, whose code runs only on this architecture. If NVRTC does not know the GPU, the
// target is PTX for the newest older architecture, and the driver compiles the PTX for the GPU.
func (c *Compiler) Target(major, minor int) (Target, error) {
	capability := 10*major + minor
	if slices.Contains(c.archs, capability) {
		name := fmt.Sprintf("sm_%d", capability)
		if major >= 9 {
			name += "a"
		}
		return Target{name: name}, nil
	}
	for _, arch := range slices.Backward(c.archs) {
		if arch < capability {
			return Target{name: fmt.Sprintf("compute_%d", arch), ptx: true}, nil
		}
	}
	return Target{}, fmt.Errorf("%v compiles for no GPU of compute capability %d.%d: it must be at least %d.%d", c,
		major, minor, c.archs[0]/10, c.archs[0]%10)
}

// Prelude begins every program. It declares the names of MLX's prelude for CUDA kernels that package metalstd uses.
const Prelude = `#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
`

var (
	programs     toolchain.Cache[[]byte]
	compilations atomic.Int64
)

// Compilations returns the number of programs that NVRTC has compiled in this process.
func Compilations() int { return int(compilations.Load()) }

// cacheFormat is part of the key of a program. Change it when the format of cached files changes.
const cacheFormat = "nvrtc 1"

// Compile returns the code of a program for a target: a cubin or PTX. It comes from this process, from the cache on
// disk or from NVRTC. The program is Prelude followed by source. Errors name the kernel.
//
// Callers with the same source and target share one compilation. Other programs are compiled in parallel. Compile
// returns early if ctx ends, but NVRTC continues. The error is a *toolchain.CompileError if NVRTC rejects the program.
func (c *Compiler) Compile(ctx context.Context, target Target, kernel, source string) ([]byte, error) {
	options := []string{"--gpu-architecture=" + target.name, "--device-as-default-execution-space"}
	source = Prelude + source
	key := toolchain.Hash(append([]string{cacheFormat, c.identity, source}, options...)...)
	return programs.Share(ctx, key, kernel, func(context.Context) ([]byte, error) {
		extension := ".cubin"
		if target.ptx {
			extension = ".ptx"
		}
		return toolchain.Stored(key, extension, func() ([]byte, error) {
			defer toolchain.Compiling(c)()
			compilations.Add(1)
			code, log, err := c.compile(source, kernel+".cu", append(options, "--include-path="+c.include), target.ptx)
			if log != "" {
				err = &toolchain.CompileError{Kernel: kernel, Compiler: fmt.Sprintf("%v for %v", c, target), Output: log}
			}
			return code, err
		})
	})
}

// identify sets the identity, a hash of the library's version and size and of the headers' texts.
func (c *Compiler) identify() error {
	info, err := os.Stat(c.path)
	if err != nil {
		return err
	}
	parts := []string{fmt.Sprintf("%d.%d, %d bytes", c.major, c.minor, info.Size())}
	for _, name := range []string{"cuda_fp16.h", "cuda_fp16.hpp", "cuda_bf16.h", "cuda_bf16.hpp"} {
		text, err := os.ReadFile(filepath.Join(c.include, name))
		if err != nil {
			return fmt.Errorf("CUDA's headers: %w", err)
		}
		parts = append(parts, string(text))
	}
	c.identity = toolchain.Hash(parts...)
	return nil
}
