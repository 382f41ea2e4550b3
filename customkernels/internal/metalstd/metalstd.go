// Package metalstd holds Metal's standard library as C++ headers: the folder host for CPUs, cuda for NVIDIA GPUs,
// and common for both. Shaders include it under Metal's names, such as <metal_stdlib>.
package metalstd

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The limits of an Apple GPU. Every executor enforces them.
const (
	MaxThreads           = 1024  // threads of a threadgroup
	MaxThreadgroupMemory = 32768 // bytes
)

// HostHeader is the header that a translation unit for the host includes. It includes all others.
const HostHeader = "metal_host.h"

// NativeHeader is HostHeader without the declarations that MLX puts before a kernel.
const NativeHeader = "metal_native.h"

// TextureHeader is NativeHeader with textures and samplers.
const TextureHeader = "metal_textured.h"

// HeaderOf returns the header that a translation unit for the host includes first.
func HeaderOf(text string) string {
	for _, header := range []string{NativeHeader, TextureHeader} {
		if strings.HasPrefix(text, `#include "`+header+`"`) {
			return header
		}
	}
	return HostHeader
}

//go:embed common host cuda
var files embed.FS

// aliases holds Metal's names of the library's headers. Each of these files includes [HostHeader].
var aliases = strings.Fields(`metal_stdlib metal_math metal_simdgroup metal_simdgroup_matrix
	metal_atomic metal_integer metal_common metal_geometric metal_compute metal_types
	metal_limits metal_type_traits metal_relational metal_pack metal_uniform metal_array
	metal_config metal_extended_vector metal_matrix metal_logging metal_quadgroup metal_texture
	metal_graphics simd/simd.h`)

type header struct {
	name string
	text []byte
}

// hostHeaders holds the headers for the host, sorted by name.
var hostHeaders = func() []header {
	var list []header
	for _, folder := range []string{"common", "host"} {
		entries, _ := fs.ReadDir(files, folder)
		for _, e := range entries {
			text, _ := files.ReadFile(folder + "/" + e.Name())
			list = append(list, header{e.Name(), text})
		}
	}
	slices.SortFunc(list, func(a, b header) int { return strings.Compare(a.name, b.name) })
	return list
}()

// HostHash is a SHA-256 of the headers for the host. It is part of the keys of compiled kernels.
var HostHash = func() [sha256.Size]byte {
	h := sha256.New()
	for _, f := range hostHeaders {
		fmt.Fprintf(h, "%s %d\n%s", f.name, len(f.text), f.text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}()

// WriteHost writes the headers for the host into dir, without subfolders, and a file for each of Metal's names of the
// library. dir must not contain a folder simd.
func WriteHost(dir string) error {
	for _, f := range hostHeaders {
		if err := os.WriteFile(filepath.Join(dir, f.name), f.text, 0o600); err != nil {
			return err
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "simd"), 0o700); err != nil {
		return err
	}
	for _, name := range aliases {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#include \""+HostHeader+"\"\n"), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// HeaderNames returns Metal's names of the library's headers.
func HeaderNames() []string { return slices.Clone(aliases) }
