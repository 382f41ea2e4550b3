package sanitizer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

const pythonModule = `import mlx.core as mx
a = mx.fast.metal_kernel(name="a", input_names=["x"], output_names=["y"],
                         source="""
  y[thread_position_in_grid.x] = x[thread_position_in_grid.x] +
    N;""")
b = mx.fast.metal_kernel("b", [], ["y"], "y[0] = 1;")
c = mx.fast.metal_kernel("b", [], ["y"], "y[0] = 2;")
`

// Kernels of Python files run with the signature that MLX generates, and their findings name lines of the file.
func TestLoadPython(t *testing.T) {
	f := LoadPython("m.py", []byte(pythonModule))
	require.Equal(t, []string{"a", "b", "b"}, f.Names())
	require.NoError(t, f.Problem("a"))
	require.EqualError(t, f.Problem("b"), "m.py:6:13: two calls have the name b; give each its own")
	require.ErrorContains(t, f.Problem("c"), `the file has no kernel "c"; it has a, b, b`)
	require.ErrorContains(t, f.Problem(""), "choose one of a, b, b")

	if _, err := Compiler(); err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	x := Array{DType: Int32, Shape: []int{8}, Data: make([]byte, 32)}
	y := Output{DType: Int32, Shape: []int{7}}
	template := []TemplateArg{{"N", 5}}
	k, err := f.Kernel(t.Context(), "a", template, map[string]Array{"x": x}, map[string]Output{"y": y})
	require.NoError(t, err)
	require.Equal(t, "a", k.Name())
	r, err := k.Sanitize(t.Context(), Launch{Grid: [3]int{8}, Threadgroup: [3]int{8}, Outputs: []Output{y}},
		Config{Schedules: 1}, x)
	require.NoError(t, err)
	require.Len(t, r.Findings, 1)
	require.Equal(t, FindingOutOfBounds, r.Findings[0].Kind)
	require.Equal(t, "m.py:4", r.Findings[0].Site.String())
	require.Equal(t, "a", r.Findings[0].Site.Function)

	_, err = f.Kernel(t.Context(), "a", nil, nil, nil)
	require.EqualError(t, err, "the input x is missing: add x=DTYPE[SHAPE]")
	_, err = f.Kernel(t.Context(), "a", nil, map[string]Array{"x": x}, nil)
	require.EqualError(t, err, "the output y is missing: add y=out:DTYPE[SHAPE]")
	_, err = f.Kernel(t.Context(), "a", []TemplateArg{{"N", Expression("float4")}}, nil, nil)
	require.ErrorContains(t, err, "the template argument N = float4 is no dtype, integer or bool")
}

// Diagnostics returns the place of every error of the compiler.
func TestDiagnostics(t *testing.T) {
	if _, err := Compiler(); err != nil {
		skip.Missing(t, skip.CXX, err)
	}
	k := load(t, "kernel void f(device int* y [[buffer(0)]]) {\n  y[0] = one;\n  y[1] = two;\n}")
	_, err := k.Sanitize(t.Context(), Launch{Grid: [3]int{1}, Outputs: []Output{{DType: Int32, Shape: []int{2}}}}, Config{})
	found := Diagnostics(err)
	require.Len(t, found, 2)
	require.Equal(t, Site{File: "f.metal", Line: 3, Column: 10}, found[1].Site)
	require.Contains(t, found[1].Message, "two")
	require.Empty(t, Diagnostics(ErrNoCompiler))
	require.Empty(t, Diagnostics(nil))
}
