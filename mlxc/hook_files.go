package mlxc

// #include "mlxg_io.h"
import "C"

import (
	"unsafe"

	"github.com/mlxgrad/mlxgrad/mlxc/internal/hook"
)

// init registers the functions through which package mlxio makes and reads arrays. See package hook.
func init() {
	hook.SetFiles(hook.Files[*Array, DType]{
		CheckShape:  checkShape,
		OpenSource:  openSource,
		CloseSource: func(source unsafe.Pointer) { C.mlxg_source_free(source) },
		Load:        loadFromSource,
		NewUnfilled: func(shape []int, d DType) (*Array, []byte, error) {
			a, data := newUnfilledLeaf("load", shape, d)
			return a, data, a.Err()
		},
		Read:     readElements,
		LoadGGUF: loadGGUF,
	})
}

func openSource(fd uintptr) (source unsafe.Pointer, err error) {
	if e := C.mlxg_source_new(C.int(fd), &source); e != nil {
		return nil, takeError(e)
	}
	return source, nil
}

func loadFromSource(source unsafe.Pointer, offset int64, shape []int, d DType) (*Array, error) {
	dims := cShape(shape)
	a := wrap("load", C.mlxg_load(source, C.uint64_t(offset), &dims[0], C.int(len(shape)), C.int(d.c())))
	return a, a.Err()
}

func readElements(a *Array, data []byte) error {
	ctx, err := a.acquire()
	if err != nil {
		return err
	}
	defer a.release()
	if len(data) == 0 {
		return nil
	}
	var e *C.char
	onCleanThread(func() { e = C.mlxg_read(ctx, unsafe.Pointer(&data[0]), C.size_t(len(data))) })
	if e != nil {
		return takeError(e)
	}
	return nil
}

func loadGGUF(path string, names []string) ([]*Array, error) {
	cNames := make([]*C.char, len(names))
	for i, name := range names {
		cNames[i] = C.CString(name)
		defer C.free(unsafe.Pointer(cNames[i]))
	}
	cPath := C.CString(path)
	defer C.free(unsafe.Pointer(cPath))
	return wrapAll("load", C.mlxg_gguf_arrays(cPath, &cNames[0], C.size_t(len(cNames))))
}
