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

func ExampleImported() {
	dir, err := os.MkdirTemp("", "mlxc")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "f.mlxfn")
	f := func(a []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{a[0].Square().Sum()} }
	fmt.Println(mlxc.ExportTraces(file, f,
		[]*mlxc.Array{mlxc.Zeros(mlxc.Float32, 2)},
		[]*mlxc.Array{mlxc.Zeros(mlxc.Float32, 3)}))
	g, err := mlxc.Import(file)
	if err != nil {
		panic(err)
	}
	defer g.Close()
	out, err := g.Call(mlxc.FromSlice([]float32{1, 2, 3}))
	fmt.Println(out[0], err)
	// Output:
	// <nil>
	// array(14, dtype=float32) <nil>
}

func ExamplePrintGraph() {
	x := mlxc.Ones(mlxc.Float32, 2)
	if err := mlxc.Eval(x); err != nil {
		panic(err)
	}
	y := x.Exp().Sum()
	if err := mlxc.PrintGraph(os.Stdout, map[*mlxc.Array]string{x: "x", y: "y"}, y); err != nil {
		panic(err)
	}
	// Output:
	// Inputs: x [(2), float32]
	// Outputs: y [(), float32]
	// Exp x [(2), float32] -> C [(2), float32]
	// Sum C [(2), float32] -> D [(1), float32]
	// Squeeze D [(1), float32] -> y [(), float32]
}
