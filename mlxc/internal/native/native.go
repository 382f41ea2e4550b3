//go:build mlxheaders

// Package native calls MLX's own file functions, for tests: MLX must read the files that mlxio writes, and mlxio the
// files that MLX writes. mlxio does not use these functions, because they trust the file, discard read errors and write
// arrays in no fixed order.
package native

/*
#cgo CFLAGS: -I${SRCDIR}/../../../third_party/mlx-c/install/include
#cgo LDFLAGS: -L${SRCDIR}/../../../third_party/mlx-c/install/lib -L${SRCDIR}/../../../third_party/mlx-c/install/mlx/lib -lmlxc -lmlx
#cgo LDFLAGS: -Wl,-rpath,${SRCDIR}/../../../third_party/mlx-c/install/lib -Wl,-rpath,${SRCDIR}/../../../third_party/mlx-c/install/mlx/lib

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "mlx/c/mlx.h"

static bool file_ok(void* f) { return f != NULL; }
static size_t file_tell(void* f) { return ftell(f); }
static int file_seek(void* f, int64_t off, int whence) { return fseek(f, off, whence); }
static size_t file_read(void* f, char* data, size_t n) { return fread(data, 1, n, f); }
static size_t file_read_at(void* f, char* data, size_t n, size_t off) { return pread(fileno(f), data, n, off); }
static size_t file_write(void* f, const char* data, size_t n) { return fwrite(data, 1, n, f); }
static const char* file_label(void* f) { (void)f; return "a file of C"; }
static void file_free(void* f) { if (f) fclose(f); }
static const mlx_io_vtable file_vtable = {
  file_ok, file_ok, file_tell, file_seek, file_read, file_read_at, file_write, file_label, file_free,
};
static mlx_io_reader new_reader(const char* path) { return mlx_io_reader_new(fopen(path, "rb"), file_vtable); }
static mlx_io_writer new_writer(const char* path) { return mlx_io_writer_new(fopen(path, "wb"), file_vtable); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"unsafe"
)

// Array is a copy of an array.
type Array struct {
	DType int // an mlx_dtype
	Shape []int
	Data  []byte // in row-major order
}

// call runs f, which returns a status of mlx-c, on one thread, because MLX's streams are bound to threads.
func call(what string, f func(s C.mlx_stream) C.int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := C.mlx_default_cpu_stream_new()
	defer C.mlx_stream_free(s)
	if rc := f(s); rc != 0 {
		return fmt.Errorf("%s: status %d", what, rc)
	}
	return nil
}

func text(s string) *C.char { return C.CString(s) }

func free(p *C.char) { C.free(unsafe.Pointer(p)) }

// take copies an array out of MLX.
func take(a C.mlx_array, s C.mlx_stream) (Array, C.int) {
	var rows C.mlx_array
	defer func() { C.mlx_array_free(rows) }()
	if rc := C.mlx_contiguous(&rows, a, false, s); rc != 0 {
		return Array{}, rc
	}
	if rc := C.mlx_array_eval(rows); rc != 0 {
		return Array{}, rc
	}
	out := Array{DType: int(C.mlx_array_dtype(a)), Shape: []int{}}
	for _, n := range unsafe.Slice(C.mlx_array_shape(a), C.mlx_array_ndim(a)) {
		out.Shape = append(out.Shape, int(n))
	}
	out.Data = C.GoBytes(unsafe.Pointer(C.mlx_array_data_uint8(rows)), C.int(C.mlx_array_nbytes(rows)))
	return out, 0
}

// give copies the array into MLX. The caller frees the result.
func (a Array) give() C.mlx_array {
	shape := make([]C.int, len(a.Shape)+1)
	for i, n := range a.Shape {
		shape[i] = C.int(n)
	}
	return C.mlx_array_new_data(unsafe.Pointer(unsafe.SliceData(a.Data)), &shape[0], C.int(len(a.Shape)),
		C.mlx_dtype(a.DType))
}

// LoadNPY reads a .npy file by its name or, with through set, through a reader in C.
func LoadNPY(path string, through bool) (out Array, err error) {
	p := text(path)
	defer free(p)
	err = call("mlx_load", func(s C.mlx_stream) (rc C.int) {
		a := C.mlx_array_new()
		defer func() { C.mlx_array_free(a) }()
		if through {
			r := C.new_reader(p)
			defer C.mlx_io_reader_free(r)
			rc = C.mlx_load_reader(&a, r, s)
		} else {
			rc = C.mlx_load(&a, p, s)
		}
		if rc == 0 {
			out, rc = take(a, s)
		}
		return rc
	})
	return out, err
}

// SaveNPY writes a .npy file by its name or, with through set, through a writer in C.
func SaveNPY(path string, through bool, in Array) error {
	p := text(path)
	defer free(p)
	return call("mlx_save", func(C.mlx_stream) C.int {
		a := in.give()
		defer C.mlx_array_free(a)
		if !through {
			return C.mlx_save(p, a)
		}
		w := C.new_writer(p)
		defer C.mlx_io_writer_free(w)
		return C.mlx_save_writer(w, a)
	})
}

// LoadSafetensors reads a safetensors file; see LoadNPY for through.
func LoadSafetensors(path string, through bool) (arrays map[string]Array, metadata map[string]string, err error) {
	p := text(path)
	defer free(p)
	arrays, metadata = map[string]Array{}, map[string]string{}
	err = call("mlx_load_safetensors", func(s C.mlx_stream) (rc C.int) {
		m, t := C.mlx_map_string_to_array_new(), C.mlx_map_string_to_string_new()
		defer func() {
			C.mlx_map_string_to_array_free(m)
			C.mlx_map_string_to_string_free(t)
		}()
		if through {
			r := C.new_reader(p)
			defer C.mlx_io_reader_free(r)
			rc = C.mlx_load_safetensors_reader(&m, &t, r, s)
		} else {
			rc = C.mlx_load_safetensors(&m, &t, p, s)
		}
		if rc != 0 {
			return rc
		}
		texts := C.mlx_map_string_to_string_iterator_new(t)
		defer C.mlx_map_string_to_string_iterator_free(texts)
		var key, value *C.char
		for C.mlx_map_string_to_string_iterator_next(&key, &value, texts) == 0 {
			metadata[C.GoString(key)] = C.GoString(value)
		}
		items := C.mlx_map_string_to_array_iterator_new(m)
		defer C.mlx_map_string_to_array_iterator_free(items)
		a := C.mlx_array_new()
		defer func() { C.mlx_array_free(a) }()
		for C.mlx_map_string_to_array_iterator_next(&key, &a, items) == 0 {
			if arrays[C.GoString(key)], rc = take(a, s); rc != 0 {
				return rc
			}
		}
		return 0
	})
	return arrays, metadata, err
}

// SaveSafetensors writes a safetensors file; see SaveNPY for through.
func SaveSafetensors(path string, through bool, arrays map[string]Array, metadata map[string]string) error {
	p := text(path)
	defer free(p)
	return call("mlx_save_safetensors", func(C.mlx_stream) C.int {
		m, t := C.mlx_map_string_to_array_new(), C.mlx_map_string_to_string_new()
		defer func() {
			C.mlx_map_string_to_array_free(m)
			C.mlx_map_string_to_string_free(t)
		}()
		for name, in := range arrays {
			key, a := text(name), in.give()
			C.mlx_map_string_to_array_insert(m, key, a)
			C.mlx_array_free(a)
			free(key)
		}
		for name, v := range metadata {
			key, value := text(name), text(v)
			C.mlx_map_string_to_string_insert(t, key, value)
			free(key)
			free(value)
		}
		if !through {
			return C.mlx_save_safetensors(p, m, t)
		}
		w := C.new_writer(p)
		defer C.mlx_io_writer_free(w)
		return C.mlx_save_safetensors_writer(w, m, t)
	})
}

// LoadGGUF reads the arrays of a GGUF file, and the metadata of these keys. A metadata value is an Array, a string or a
// []string.
func LoadGGUF(path string, keys ...string) (arrays map[string]Array, metadata map[string]any, err error) {
	p := text(path)
	defer free(p)
	arrays, metadata = map[string]Array{}, map[string]any{}
	err = call("mlx_load_gguf", func(s C.mlx_stream) C.int {
		g := C.mlx_io_gguf_new()
		defer func() { C.mlx_io_gguf_free(g) }()
		if rc := C.mlx_load_gguf(&g, p, s); rc != 0 {
			return rc
		}
		a := C.mlx_array_new()
		defer func() { C.mlx_array_free(a) }()
		names := C.mlx_vector_string_new()
		defer func() { C.mlx_vector_string_free(names) }()
		if rc := C.mlx_io_gguf_get_keys(&names, g); rc != 0 {
			return rc
		}
		for _, name := range texts(names) {
			key := text(name)
			rc := C.mlx_io_gguf_get_array(&a, g, key)
			free(key)
			if rc == 0 {
				arrays[name], rc = take(a, s)
			}
			if rc != 0 {
				return rc
			}
		}
		for _, name := range keys {
			v, rc := value(g, name, s)
			if rc != 0 {
				return rc
			}
			metadata[name] = v
		}
		return 0
	})
	return arrays, metadata, err
}

func texts(v C.mlx_vector_string) (list []string) {
	for i := range C.mlx_vector_string_size(v) {
		var p *C.char
		C.mlx_vector_string_get(&p, v, i)
		list = append(list, C.GoString(p))
	}
	return list
}

// value returns a metadata value.
func value(g C.mlx_io_gguf, name string, s C.mlx_stream) (any, C.int) {
	key := text(name)
	defer free(key)
	var isArray, isText, isTexts C.bool
	if rc := C.mlx_io_gguf_has_metadata_array(&isArray, g, key); rc != 0 {
		return nil, rc
	}
	C.mlx_io_gguf_has_metadata_string(&isText, g, key)
	C.mlx_io_gguf_has_metadata_vector_string(&isTexts, g, key)
	switch {
	case bool(isArray):
		a := C.mlx_array_new()
		defer func() { C.mlx_array_free(a) }()
		if rc := C.mlx_io_gguf_get_metadata_array(&a, g, key); rc != 0 {
			return nil, rc
		}
		return take(a, s)
	case bool(isText):
		t := C.mlx_string_new()
		defer func() { C.mlx_string_free(t) }()
		rc := C.mlx_io_gguf_get_metadata_string(&t, g, key)
		return C.GoString(C.mlx_string_data(t)), rc
	case bool(isTexts):
		v := C.mlx_vector_string_new()
		defer func() { C.mlx_vector_string_free(v) }()
		rc := C.mlx_io_gguf_get_metadata_vector_string(&v, g, key)
		return texts(v), rc
	}
	return nil, 2
}

// SaveGGUF writes a GGUF file.
func SaveGGUF(path string, arrays map[string]Array, metadata map[string]any) error {
	p := text(path)
	defer free(p)
	return call("mlx_save_gguf", func(C.mlx_stream) C.int {
		g := C.mlx_io_gguf_new()
		defer C.mlx_io_gguf_free(g)
		for name, in := range arrays {
			key, a := text(name), in.give()
			C.mlx_io_gguf_set_array(g, key, a)
			C.mlx_array_free(a)
			free(key)
		}
		for name, v := range metadata {
			key := text(name)
			switch v := v.(type) {
			case Array:
				a := v.give()
				C.mlx_io_gguf_set_metadata_array(g, key, a)
				C.mlx_array_free(a)
			case string:
				t := text(v)
				C.mlx_io_gguf_set_metadata_string(g, key, t)
				free(t)
			case []string:
				list := C.mlx_vector_string_new()
				for _, s := range v {
					t := text(s)
					C.mlx_vector_string_append_value(list, t)
					free(t)
				}
				C.mlx_io_gguf_set_metadata_vector_string(g, key, list)
				C.mlx_vector_string_free(list)
			}
			free(key)
		}
		return C.mlx_save_gguf(p, g)
	})
}

// Describe opens the file with a reader and a writer in C, and returns MLX's descriptions of both.
func Describe(path string) (reader, writer string) {
	p := text(path)
	defer free(p)
	t := C.mlx_string_new()
	defer func() { C.mlx_string_free(t) }()
	var desc unsafe.Pointer
	w := C.new_writer(p)
	defer C.mlx_io_writer_free(w)
	if C.mlx_io_writer_descriptor(&desc, w) == 0 && desc != nil && C.mlx_io_writer_tostring(&t, w) == 0 {
		writer = C.GoString(C.mlx_string_data(t))
	}
	r := C.new_reader(p)
	defer C.mlx_io_reader_free(r)
	if C.mlx_io_reader_descriptor(&desc, r) == 0 && desc != nil && C.mlx_io_reader_tostring(&t, r) == 0 {
		reader = C.GoString(C.mlx_string_data(t))
	}
	return reader, writer
}
