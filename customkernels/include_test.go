package customkernels

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// including returns a shader of two files. It computes the value of the right neighbor plus one. right is the text of
// the included function.
func including(right string) fstest.MapFS {
	return fstest.MapFS{
		"shaders/f.metal": {Data: []byte(`#include <metal_stdlib>
#include "common/right.h"
kernel void f(device const float* x [[buffer(0)]], device float* y [[buffer(1)]],
    uint i [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup float tile[64];
  tile[i] = x[i];
  simdgroup_barrier(mem_flags::mem_threadgroup);
  y[i] = right(tile, i, n);
}
`)},
		"shaders/common/right.h": {Data: []byte("#pragma once\n#include \"../one.h\"\n" + right)},
		"shaders/one.h":          {Data: []byte("constant float one = 1;\n")},
	}
}

const rightOfTile = `inline float right(threadgroup const float* tile, uint i, uint n) {
  return tile[(i + 1) % n] + one;
}
`

func includingKernel(t *testing.T, right string) *Kernel {
	t.Helper()
	lib, err := Load(including(right), "shaders/f.metal")
	require.NoError(t, err)
	k, err := lib.Kernel("")
	require.NoError(t, err)
	return k
}

func TestLaunchOfShaderThatIncludes(t *testing.T) {
	k := includingKernel(t, rightOfTile)
	x := mlxc.Arange(mlxc.Float32, 0, 8, 1)
	l := Launch{Grid: [3]int{8}, Threadgroup: [3]int{8}, Outputs: []mlxc.Output{{Shape: []int{8}, DType: mlxc.Float32}}}
	require.Equal(t, []float32{2, 3, 4, 5, 6, 7, 8, 1}, mlxtest.Floats(t, k.Launch(l, x)[0]))
	// MLX caches compiled kernels by name.
	other := includingKernel(t, rightOfTile+"// changed\n")
	require.NotEqual(t, metalName(t, k, l, x), metalName(t, other, l, x))
}

var _ = testdevice.AlsoOnGPU(TestLaunchOfShaderThatIncludes)

// metalName returns the name under which MLX caches a kernel.
func metalName(t *testing.T, k *Kernel, l Launch, x *mlxc.Array) string {
	t.Helper()
	text, err := k.MetalSource(l, x)
	require.NoError(t, err)
	name := regexp.MustCompile(`custom_kernel_\w+`).FindString(text)
	require.NotEmpty(t, name)
	return name
}

// Errors of the compiler and findings of the checker name the included file.
func TestProblemsInIncludedFiles(t *testing.T) {
	x := mlxc.Arange(mlxc.Float32, 0, 64, 1)
	l := perElement(x)
	l.Threadgroup = [3]int{64}

	r, err := includingKernel(t, rightOfTile).Sanitize(t.Context(), l, sanitizer.Config{}, x)
	require.NoError(t, err)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	require.Equal(t, sanitizer.FindingRace, f.Kind)
	require.Contains(t, f.Message, f.Other.String())
	f.Site.Column, f.Other.Column = 0, 0 // depend on the compiler
	header, root := sanitizer.Site{File: "shaders/common/right.h", Line: 4, Function: "right"}, sanitizer.Site{File: "shaders/f.metal", Line: 6, Function: "f"}
	require.ElementsMatch(t, []sanitizer.Site{header, root}, []sanitizer.Site{f.Site, f.Other})
	if f.Site == header {
		require.Len(t, f.Path, 1)
		f.Path[0].Column = 0
		require.Equal(t, sanitizer.Site{File: "shaders/f.metal", Line: 8, Function: "f"}, f.Path[0])
	}

	k := includingKernel(t, "float right(threadgroup float* p, uint i, uint n) {\n  return nothing_of_this_name; }\n")
	for _, err := range []error{k.Launch(l, x)[0].Err(), sanitizeError(t, k, l, x)} {
		require.ErrorContains(t, err, "shaders/common/right.h:4:10: ")
	}
	k = includingKernel(t, "float right(threadgroup float* p, uint i, uint n) { return 1; }\nfloat right(device float* p, uint i, uint n) { return 2; }\n")
	require.ErrorContains(t, k.Launch(l, x)[0].Err(), "shaders/common/right.h:4:1: this function differs from an earlier one")
}

func sanitizeError(t *testing.T, k *Kernel, l Launch, inputs ...*mlxc.Array) error {
	t.Helper()
	_, err := k.Sanitize(t.Context(), l, sanitizer.Config{}, inputs...)
	require.Error(t, err)
	return err
}

// An include cannot read a file outside of the file system, whether os.DirFS or another implementation.
func TestIncludeStaysInTheFileSystem(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("secret.h", "int secret;")
	for include, want := range map[string]string{
		"../secret.h":                  "must lie in the file system that the shader is loaded from",
		"a/../../secret.h":             "must lie in the file system that the shader is loaded from",
		filepath.Join(dir, "secret.h"): "is an absolute path; write it relative to the folder of the including file",
	} {
		text := "#include \"" + include + "\"\nkernel void f(device float* y) {}\n"
		write("shaders/f.metal", text)
		for _, fsys := range []fs.FS{
			os.DirFS(filepath.Join(dir, "shaders")), fstest.MapFS{"f.metal": {Data: []byte(text)}, "secret.h": {Data: []byte("int secret;")}},
		} {
			_, err := Load(fsys, "f.metal")
			require.ErrorContains(t, err, "customkernels: Load: f.metal:1:10: ")
			require.ErrorContains(t, err, want)
		}
	}
	write("shaders/f.metal", "#include \"common/../none.h\"\nkernel void f(device float* y) {}\n")
	_, err := Load(os.DirFS(filepath.Join(dir, "shaders")), "f.metal")
	require.ErrorContains(t, err, `"common/../none.h" cannot be read: stat none.h: `)
	_, err = Load(os.DirFS(dir), "none.metal")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
