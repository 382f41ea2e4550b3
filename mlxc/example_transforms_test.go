package mlxc_test

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func ExampleFunc() {
	// A Func builds a graph from its arguments.
	f := func(args []*mlxc.Array) []*mlxc.Array {
		x, w := args[0], args[1]
		return []*mlxc.Array{x.MatMul(w).Sum()}
	}
	x, w := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2), mlxc.FromSlice([]float32{5, 6})
	fmt.Println(f([]*mlxc.Array{x, w})[0])
	grads, err := mlxc.Grad(f, 1)([]*mlxc.Array{x, w})
	fmt.Println(grads[0], err)
	// Output:
	// array(56, dtype=float32)
	// array([4, 6], dtype=float32) <nil>
}

// Gradients can be nested in other transforms.
func ExampleAsFunc() {
	loss := func(args []*mlxc.Array) []*mlxc.Array {
		w, x := args[0], args[1]
		return []*mlxc.Array{w.Mul(x).Sum().Square()}
	}
	w, rows := mlxc.FromSlice([]float32{1, 2}), mlxc.FromSlice([]float32{1, 0, 0, 1, 1, 1}, 3, 2)
	// The per-sample gradients with respect to shared weights.
	samples := mlxc.Vmap(mlxc.AsFunc(mlxc.Grad(loss)), []int{mlxc.Unmapped, 0}, nil)
	fmt.Println(samples([]*mlxc.Array{w, rows})[0])
	// The second derivative of the sine is −sin.
	sine := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Sin()} }
	second, err := mlxc.Grad(mlxc.AsFunc(mlxc.Grad(sine)))([]*mlxc.Array{mlxc.Scalar[float32](0.5)})
	fmt.Println(second[0].RoundTo(4), err)
	// Output:
	// array([[2, 0],
	//        [0, 4],
	//        [6, 6]], dtype=float32)
	// array(-0.4794, dtype=float32) <nil>
}

func ExampleVJPFunc() {
	// clip clips the gradient; identity leaves the value unchanged.
	clip := func(_, cotangents, _ []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{cotangents[0].Clip(-1, 1)}
	}
	identity := func(args []*mlxc.Array) []*mlxc.Array { return args }
	x := mlxc.FromSlice([]float32{1, 2})
	values, grads, err := mlxc.VJP(mlxc.CustomVJP(identity, clip),
		[]*mlxc.Array{x}, []*mlxc.Array{mlxc.FromSlice([]float32{0.5, 40})})
	fmt.Println(values[0], grads[0], err)
	// Output: array([1, 2], dtype=float32) array([0.5, 1], dtype=float32) <nil>
}

func ExampleJVPFunc() {
	// The square with an explicit derivative.
	square := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Square()} }
	derivative := func(primals, tangents []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{primals[0].MulScalar(2).Mul(tangents[0])}
	}
	f := mlxc.CustomFunction(square, mlxc.CustomRules{JVP: derivative})
	_, jvps, err := mlxc.JVP(f, []*mlxc.Array{mlxc.FromSlice([]float32{1, 2, 3})},
		[]*mlxc.Array{mlxc.Ones(mlxc.Float32, 3)})
	fmt.Println(jvps[0], err)
	// Output: array([2, 4, 6], dtype=float32) <nil>
}

func ExampleVmapFunc() {
	// dot takes two vectors. For a batch, dots sums the products along the last axis. This works for either argument
	// mapped, or both.
	dot := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Inner(args[1])} }
	dots := func(args []*mlxc.Array, mapped []bool) []*mlxc.Array {
		fmt.Println("mapped:", mapped)
		return []*mlxc.Array{args[0].Mul(args[1]).Sum(-1)}
	}
	f := mlxc.CustomFunction(dot, mlxc.CustomRules{Vmap: dots})
	rows, v := mlxc.FromSlice([]float32{1, 2, 3, 4}, 2, 2), mlxc.FromSlice([]float32{1, 10})
	fmt.Println(mlxc.Vmap(f, []int{0, mlxc.Unmapped}, nil)([]*mlxc.Array{rows, v})[0])
	// Output:
	// mapped: [true false]
	// array([21, 43], dtype=float32)
}

func ExampleCustomRules() {
	// A threshold has derivative 0 everywhere. Under VJP it gets the derivative of the sigmoid instead; under JVP and
	// Vmap it keeps MLX's rules.
	threshold := mlxc.CustomFunction(
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{args[0].Greater(mlxc.Scalar[float32](0)).AsType(mlxc.Float32)}
		},
		mlxc.CustomRules{VJP: func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			s := primals[0].Sigmoid()
			return []*mlxc.Array{cotangents[0].Mul(s).Mul(s.Neg().AddScalar(1))}
		}})
	x, one := mlxc.FromSlice([]float32{0, 1}), mlxc.Ones(mlxc.Float32, 2)
	values, grads, err := mlxc.VJP(threshold, []*mlxc.Array{x}, []*mlxc.Array{one})
	fmt.Println(values[0], grads[0].RoundTo(2), err)
	// Output: array([0, 1], dtype=float32) array([0.25, 0.2], dtype=float32) <nil>
}

func ExampleCompiled() {
	gelu := mlxc.Compile(func(args []*mlxc.Array) []*mlxc.Array {
		fmt.Println("traced for", args[0].Shape())
		x := args[0]
		return []*mlxc.Array{x.Mul(x.DivScalar(1.4142135).Erf().AddScalar(1)).MulScalar(0.5)}
	})
	defer gelu.Close()
	for _, n := range []int{1, 1, 2} {
		y, err := gelu.Call(mlxc.Zeros(mlxc.Float32, n))
		fmt.Println(y[0], err)
	}
	// Output:
	// traced for [1]
	// array([0], dtype=float32) <nil>
	// array([0], dtype=float32) <nil>
	// traced for [2]
	// array([0, 0], dtype=float32) <nil>
}

func ExampleCompileMode() {
	runs := 0
	square := mlxc.Compile(func(args []*mlxc.Array) []*mlxc.Array {
		runs++
		return []*mlxc.Array{args[0].Square()}
	})
	defer square.Close()
	for _, mode := range []mlxc.CompileMode{mlxc.CompileEnabled, mlxc.CompileDisabled} {
		before, err := mlxc.SetCompileMode(mode)
		if err != nil {
			panic(err)
		}
		runs = 0
		for range 3 {
			if _, err := square.Call(mlxc.Ones(mlxc.Float32, 2)); err != nil {
				panic(err)
			}
		}
		fmt.Println("runs:", runs)
		if _, err := mlxc.SetCompileMode(before); err != nil {
			panic(err)
		}
	}
	// Output:
	// runs: 1
	// runs: 3
}
