package mlxc_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func ExampleNode() {
	f := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Exp().Add(args[1])} }
	x := mlxc.Ones(mlxc.Float32, 3)
	nodes, err := mlxc.Trace(f, []*mlxc.Array{x, x})
	if err != nil {
		panic(err)
	}
	for _, n := range nodes {
		fmt.Println(n.Primitive)
	}
	// Output:
	// Exp
	// Add
}

func ExampleNamedFunc() {
	scaled := func(args []*mlxc.Array, named map[string]*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{args[0].Mul(named["scale"])}
	}
	dir, err := os.MkdirTemp("", "mlxc")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "scaled.mlxfn")
	x, scale := mlxc.FromSlice([]float32{1, 2}), mlxc.Scalar[float32](3)
	if err := mlxc.ExportNamed(file, scaled, map[string]*mlxc.Array{"scale": scale}, x); err != nil {
		panic(err)
	}
	f, err := mlxc.Import(file)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	out, err := f.CallNamed(map[string]*mlxc.Array{"scale": mlxc.Scalar[float32](10)}, x)
	fmt.Println(out[0], err)
	// Output: array([10, 20], dtype=float32) <nil>
}
