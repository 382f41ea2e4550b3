package mlxc_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing/fstest"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func ExampleSaveSafetensors() {
	dir, err := os.MkdirTemp("", "mlxc")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "model.safetensors")
	w := mlxc.FromSlice([]float32{1, 2, 3})
	fmt.Println(mlxc.SaveSafetensors(path, map[string]*mlxc.Array{"layer.weight": w}, map[string]string{"step": "7"}))
	arrays, metadata, err := mlxc.LoadSafetensors(path)
	fmt.Println(arrays["layer.weight"], metadata["step"], err)
	// Output:
	// <nil>
	// array([1, 2, 3], dtype=float32) 7 <nil>
}

// A file of an fs.FS, such as an embed.FS, is a reader.
func ExampleReadNPY() {
	var b bytes.Buffer
	if err := mlxc.WriteNPY(&b, mlxc.Arange(mlxc.Int32, 0, 6, 1).Reshape(2, 3)); err != nil {
		panic(err)
	}
	fsys := fstest.MapFS{"data/x.npy": {Data: b.Bytes()}}
	f, err := fsys.Open("data/x.npy")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	a, err := mlxc.ReadNPY(f)
	fmt.Println(a.Shape(), a.Sum(), err)
	// Output: [2 3] array(15, dtype=int32) <nil>
}

func ExampleWriteGGUF() {
	var b bytes.Buffer
	arrays := map[string]*mlxc.Array{"blk.0.weight": mlxc.Ones(mlxc.BFloat16, 2, 2)}
	metadata := map[string]any{"general.architecture": "tiny", "tiny.block_count": uint32(1)}
	fmt.Println(mlxc.WriteGGUF(&b, arrays, metadata))
	arrays, metadata, err := mlxc.ReadGGUF(&b)
	fmt.Println(arrays["blk.0.weight"].DType(), metadata["tiny.block_count"], err)
	// Output:
	// <nil>
	// bfloat16 1 <nil>
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
