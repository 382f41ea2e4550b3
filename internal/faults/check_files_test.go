//go:build mlxheaders

package faults_test

import (
	endian "encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	mlx "github.com/mlxgrad/mlxgrad/internal/faults/unguarded"
)

// file writes a file and returns its path.
func file(name, content string) string {
	path := filepath.Join(os.Getenv(folder), name)
	if err := os.WriteFile(path, []byte(content), 0o444); err != nil {
		panic(err)
	}
	return path
}

// gguf returns a file with the tensor "a", a vector of n elements of a type of the format.
func gguf(n, kind int, data string) string {
	b := []byte("GGUF")
	b = endian.LittleEndian.AppendUint32(b, 3)
	for _, n := range []int{1, 0, 1} { // tensors, metadata, length of the name
		b = endian.LittleEndian.AppendUint64(b, uint64(n))
	}
	b = append(b, 'a')
	b = endian.LittleEndian.AppendUint32(b, 1) // axes
	b = endian.LittleEndian.AppendUint64(b, uint64(n))
	b = endian.LittleEndian.AppendUint32(b, uint32(kind))
	b = endian.LittleEndian.AppendUint64(b, 0) // offset
	for len(b)%32 != 0 {
		b = append(b, 0)
	}
	return file("x.gguf", string(b)+data+strings.Repeat("\x00", 32-len(data)%32))
}

var fileChecks = map[string]check{
	"npy-truncated": func() string {
		header := fmt.Sprintf("%-117s\n", "{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }")
		path := file("x.npy", "\x93NUMPY\x01\x00\x76\x00"+header+strings.Repeat("\x00", 72))
		if mlx.Try(func() { mlx.Eval(mlx.Load(path)) }) == nil {
			return "no error"
		}
		return ""
	},
	"gguf-opened-for-writing": func() string {
		path := gguf(4, 0, strings.Repeat("\x00", 16))
		if os.Geteuid() == 0 { // root may write to every file
			if err := syscall.Setuid(65534); err != nil {
				panic(err)
			}
		}
		return failure(func() { mlx.LoadGGUF(path) })
	},
	"gguf-bfloat16": func() string {
		if d := mlx.LoadGGUF(gguf(2, 30, "\x80\x3f\x00\x40")).DType(); d != mlx.BFloat16 {
			return fmt.Sprintf("the dtype is number %d", d)
		}
		return ""
	},
	"gguf-q4-k-scales": func() string {
		const one = "\x00\x3c" // in float16
		scales := "\x01\x02\x03\x04\x00\x00\x00\x00\x05\x06\x07\x08"
		block := one + "\x00\x00" + scales + strings.Repeat("\x11", 128)
		got := mlx.LoadGGUF(gguf(256, 12, block)).Read()
		var want []float32
		for g := range 8 {
			want = append(want, slices.Repeat([]float32{float32(g + 1)}, 32)...)
		}
		if !slices.Equal(got, want) {
			return fmt.Sprintf("group 1 holds %v instead of %v", got[32], want[32])
		}
		return ""
	},
}
