// Package nvrtc compiles CUDA kernels with NVRTC, the compiler library of CUDA, and keeps the results in the cache of
// package toolchain. NVRTC needs neither a GPU nor a driver.
//
// The library is loaded at run time. In a process with MLX for CUDA it is the one that MLX itself loads.
package nvrtc

/*
#cgo linux LDFLAGS: -ldl

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

typedef struct program* program;

typedef struct {
  int (*version)(int*, int*);
  int (*count)(int*);
  int (*supported)(int*);
  const char* (*message)(int);
  int (*create)(program*, const char*, const char*, int, const char* const*, const char* const*);
  int (*destroy)(program*);
  int (*compile)(program, int, const char* const*);
  int (*log_size)(program, size_t*);
  int (*log)(program, char*);
  int (*cubin_size)(program, size_t*);
  int (*cubin)(program, char*);
  int (*ptx_size)(program, size_t*);
  int (*ptx)(program, char*);
} api;

// open_library fills f with the functions of a library and returns the library's path. If it fails, it returns NULL and
// sets err. With only_loaded, a library that is not loaded yet is an error.
static const char* open_library(const char* name, int only_loaded, api* f, const char** err) {
  void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | (only_loaded ? RTLD_NOLOAD : 0));
  if (!library) {
    *err = dlerror();
    if (!*err) *err = "not loaded";
    return NULL;
  }
  const struct {
    const char* name;
    void** to;
  } symbols[] = {
      {"nvrtcVersion", (void**)&f->version},
      {"nvrtcGetNumSupportedArchs", (void**)&f->count},
      {"nvrtcGetSupportedArchs", (void**)&f->supported},
      {"nvrtcGetErrorString", (void**)&f->message},
      {"nvrtcCreateProgram", (void**)&f->create},
      {"nvrtcDestroyProgram", (void**)&f->destroy},
      {"nvrtcCompileProgram", (void**)&f->compile},
      {"nvrtcGetProgramLogSize", (void**)&f->log_size},
      {"nvrtcGetProgramLog", (void**)&f->log},
      {"nvrtcGetCUBINSize", (void**)&f->cubin_size},
      {"nvrtcGetCUBIN", (void**)&f->cubin},
      {"nvrtcGetPTXSize", (void**)&f->ptx_size},
      {"nvrtcGetPTX", (void**)&f->ptx},
  };
  for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
    if (!(*symbols[i].to = dlsym(library, symbols[i].name))) {
      *err = dlerror();
      return NULL;
    }
  }
  Dl_info info;
  if (!dladdr((void*)f->version, &info)) {
    *err = "dladdr does not know the library";
    return NULL;
  }
  return info.dli_fname;
}

static void preload(const char* name) { dlopen(name, RTLD_NOW | RTLD_LOCAL); }

static int get_version(const api* f, int* major, int* minor) { return f->version(major, minor); }
static int get_count(const api* f, int* n) { return f->count(n); }
static int get_supported(const api* f, int* list) { return f->supported(list); }
static const char* get_message(const api* f, int code) { return f->message(code); }

// An output of NVRTC. data is allocated with malloc, and the caller frees it.
typedef struct {
  char* data;
  size_t size;
} output;

// take fetches an output. If it fails, it returns NVRTC's result code and leaves data NULL.
static int take(output* out, program p, int (*size)(program, size_t*), int (*get)(program, char*)) {
  int rc = size(p, &out->size);
  if (rc) return rc;
  if (!(out->data = malloc(out->size + 1))) return 1;  // NVRTC_ERROR_OUT_OF_MEMORY
  if ((rc = get(p, out->data))) {
    free(out->data);
    out->data = NULL;
  }
  return rc;
}

// compile returns NVRTC's result code. If NVRTC rejects the program, log holds its messages, if there are any.
static int compile(const api* f, const char* source, const char* name, int n, const char* const* options, int as_ptx,
                   output* code, output* log) {
  program p;
  int rc = f->create(&p, source, name, 0, NULL, NULL);
  if (rc) return rc;
  rc = f->compile(p, n, options);
  if (rc) {
    take(log, p, f->log_size, f->log);
  } else if (as_ptx) {
    rc = take(code, p, f->ptx_size, f->ptx);
  } else {
    rc = take(code, p, f->cubin_size, f->cubin);
  }
  f->destroy(&p);
  return rc;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"
)

// A Compiler is a loaded NVRTC with the folder of its headers. Any number of goroutines may use it.
type Compiler struct {
	api          C.api
	path         string
	major, minor int
	archs        []int  // compute capabilities such as 90, in ascending order
	include      string // folder of CUDA's headers
	identity     string // of the library and the headers, in cache keys
}

// ErrNotLoaded is the error of [Loaded] if this process has not loaded NVRTC.
var ErrNotLoaded = errors.New("NVRTC is not loaded: MLX for CUDA loads libnvrtc.so.13 or libnvrtc.so.12")

// Loaded returns the NVRTC that MLX loaded into this process, or ErrNotLoaded.
func Loaded() (*Compiler, error) {
	for _, name := range []string{"libnvrtc.so.13", "libnvrtc.so.12"} {
		if c, err := open(name, true); !errors.Is(err, ErrNotLoaded) {
			return c, err
		}
	}
	return nil, ErrNotLoaded
}

// Open loads the NVRTC library in a file.
func Open(path string) (*Compiler, error) {
	// NVRTC loads its builtins library by name, without a folder. That succeeds if the library is already loaded.
	builtins, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "libnvrtc-builtins.so*"))
	for _, name := range builtins {
		text := C.CString(name)
		C.preload(text)
		C.free(unsafe.Pointer(text))
	}
	return open(path, false)
}

func open(name string, onlyLoaded bool) (*Compiler, error) {
	runtime.LockOSThread() // dlerror returns the error of the calling thread
	defer runtime.UnlockOSThread()
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	c := new(Compiler)
	var message *C.char
	only := C.int(0)
	if onlyLoaded {
		only = 1
	}
	path := C.open_library(text, only, &c.api, &message)
	switch {
	case path != nil:
	case onlyLoaded && c.api.version == nil:
		return nil, ErrNotLoaded
	default:
		return nil, fmt.Errorf("load NVRTC: %s", C.GoString(message))
	}
	var err error
	if c.path, err = filepath.EvalSymlinks(C.GoString(path)); err != nil {
		return nil, fmt.Errorf("load NVRTC: %w", err)
	}
	var major, minor, count C.int
	if rc := C.get_version(&c.api, &major, &minor); rc != 0 {
		return nil, c.failure("nvrtcVersion", rc)
	}
	c.major, c.minor = int(major), int(minor)
	if rc := C.get_count(&c.api, &count); rc != 0 || count < 1 {
		return nil, c.failure("nvrtcGetNumSupportedArchs", rc)
	}
	list := make([]C.int, count)
	if rc := C.get_supported(&c.api, &list[0]); rc != 0 {
		return nil, c.failure("nvrtcGetSupportedArchs", rc)
	}
	for _, arch := range list {
		c.archs = append(c.archs, int(arch))
	}
	if err := c.findHeaders(); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *Compiler) failure(function string, rc C.int) error {
	return fmt.Errorf("%v: %s failed: %s", c, function, C.GoString(C.get_message(&c.api, rc)))
}

// String returns the path and version of the library.
func (c *Compiler) String() string { return fmt.Sprintf("%s (NVRTC %d.%d)", c.path, c.major, c.minor) }

// compile returns the code of a program. If NVRTC rejects the program, log holds its messages and err is nil.
func (c *Compiler) compile(source, name string, options []string, ptx bool) (code []byte, log string, err error) {
	texts := make([]*C.char, len(options))
	for i, option := range options {
		texts[i] = C.CString(option)
		defer C.free(unsafe.Pointer(texts[i]))
	}
	csource, cname := C.CString(source), C.CString(name)
	defer C.free(unsafe.Pointer(csource))
	defer C.free(unsafe.Pointer(cname))
	asPTX := C.int(0)
	if ptx {
		asPTX = 1
	}
	var out, messages C.output
	defer func() {
		C.free(unsafe.Pointer(out.data))
		C.free(unsafe.Pointer(messages.data))
	}()
	rc := C.compile(&c.api, csource, cname, C.int(len(texts)), unsafe.SliceData(texts), asPTX, &out, &messages)
	if rc != 0 {
		if messages.data != nil {
			log = strings.TrimRight(C.GoStringN(messages.data, C.int(messages.size)), "\x00")
		}
		if log == "" {
			err = c.failure("nvrtcCompileProgram", rc)
		}
		return nil, log, err
	}
	return C.GoBytes(unsafe.Pointer(out.data), C.int(out.size)), "", nil
}

// header is the name of a CUDA header. The folder that contains it is the folder of CUDA's headers.
const header = "cuda_fp16.h"

// ErrNoHeaders is the error if CUDA's headers, which kernels include, are not found.
var ErrNoHeaders = errors.New("CUDA's headers are not found: set CUDA_HOME to a CUDA toolkit, or to the folder " +
	"nvidia/cu13 of the official Python packages (nvidia-cuda-runtime, nvidia-cuda-nvrtc), so that its " +
	"include/" + header + " is there")

// findHeaders sets the folder of CUDA's headers: beside NVRTC, as in toolkits and packages, or in CUDA_HOME, CUDA_PATH
// or /usr/local/cuda.
func (c *Compiler) findHeaders() error {
	beside := filepath.Dir(filepath.Dir(c.path))
	for _, home := range []string{
		beside, filepath.Join(beside, "..", "cuda_runtime"), os.Getenv("CUDA_HOME"), os.Getenv("CUDA_PATH"),
		"/usr/local/cuda",
	} {
		if home == "" {
			continue
		}
		c.include = filepath.Join(home, "include")
		if _, err := os.Stat(filepath.Join(c.include, header)); err == nil {
			return c.identify()
		}
	}
	return ErrNoHeaders
}
