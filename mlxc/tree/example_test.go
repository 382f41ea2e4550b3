package tree_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

type Layer struct {
	Weight, Bias *mlxc.Array
}

type Params struct {
	Embedding *mlxc.Array `mlx:"embed"`
	Layers    []Layer
}

func ExampleFlatten() {
	p := Params{
		Embedding: mlxc.FromSlice([]float32{1, 2}),
		Layers:    []Layer{{mlxc.Scalar[float32](3), mlxc.Scalar[float32](4)}},
	}
	names, err := tree.Names(p)
	fmt.Println(names, err)
	arrays, err := tree.Flatten(p)
	fmt.Println(arrays[2], err)
	// Output:
	// [embed layers.0.weight layers.0.bias] <nil>
	// array(4, dtype=float32) <nil>
}

func ExampleMap() {
	p := Layer{mlxc.Scalar[float32](3), mlxc.Scalar[float32](4)}
	half, err := tree.Map(func(a *mlxc.Array) *mlxc.Array { return a.AsType(mlxc.Float16) }, p)
	fmt.Println(half.Weight, err)
	// Output: array(3, dtype=float16) <nil>
}

func ExampleValueAndGrad() {
	x, y := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{5, 9})
	loss := func(p Layer) *mlxc.Array { return x.Mul(p.Weight).Add(p.Bias).Sub(y).Square().Mean() }
	value, grads, err := tree.ValueAndGrad(loss)(Layer{mlxc.Scalar[float32](3), mlxc.Scalar[float32](0)})
	fmt.Println(value, grads.Weight, grads.Bias, err)
	// Output: array(6.5, dtype=float32) array(-8, dtype=float32) array(-5, dtype=float32) <nil>
}

func ExampleValueAndGradAux() {
	x, y := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{5, 9})
	loss := func(p Layer) (*mlxc.Array, *mlxc.Array) {
		guess := x.Mul(p.Weight).Add(p.Bias)
		return guess.Sub(y).Square().Mean(), guess
	}
	value, guess, grads, err := tree.ValueAndGradAux(loss)(Layer{mlxc.Scalar[float32](3), mlxc.Scalar[float32](0)})
	fmt.Println(value, guess, grads.Weight, err)
	// Output: array(6.5, dtype=float32) array([3, 6], dtype=float32) array(-8, dtype=float32) <nil>
}

func ExampleCompile() {
	type training struct {
		Params Layer
		X      *mlxc.Array
	}
	step := tree.Compile(func(t training) (Layer, error) {
		loss := func(p Layer) *mlxc.Array { return t.X.Mul(p.Weight).Add(p.Bias).Square() }
		_, grads, err := tree.ValueAndGrad(loss)(t.Params)
		if err != nil {
			return Layer{}, err
		}
		return tree.Map2(func(a, g *mlxc.Array) *mlxc.Array { return a.Sub(g.MulScalar(0.25)) }, t.Params, grads)
	})
	p := Layer{mlxc.Scalar[float32](3), mlxc.Scalar[float32](1)}
	for range 3 {
		var err error
		if p, err = step.Call(training{p, mlxc.Scalar[float32](1)}); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(p.Weight, p.Bias)
	// Output: array(1, dtype=float32) array(-1, dtype=float32)
}

// One compiled function serves batches of all shapes; each shape is traced once.
func ExampleCompiled() {
	mean := tree.Compile(func(batch map[string]*mlxc.Array) (*mlxc.Array, error) {
		return batch["x"].Mul(batch["weight"]).Mean(), nil
	})
	defer mean.Close()
	for _, x := range []*mlxc.Array{mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{1, 2, 3})} {
		fmt.Println(mean.Call(map[string]*mlxc.Array{"x": x, "weight": mlxc.Scalar[float32](2)}))
	}
	// Output:
	// array(3, dtype=float32) <nil>
	// array(4, dtype=float32) <nil>
}

// Parameters by name, as in files.
func ExampleFromMap() {
	p := Layer{mlxc.Scalar[float32](3), mlxc.Scalar[float32](4)}
	arrays, err := tree.ToMap(p)
	if err != nil {
		fmt.Println(err)
		return
	}
	arrays["bias"] = mlxc.Scalar[float32](5) // from another file
	p, err = tree.FromMap(p, arrays)
	fmt.Println(p.Weight, p.Bias, err)
	// Output: array(3, dtype=float32) array(5, dtype=float32) <nil>
}
