package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// CustomRules are what a function does under transforms. A rule that is nil is that of
// the operations that the function is made of; where such a rule is asked for, the
// function runs again.
type CustomRules struct {
	VJP  VJPFunc  // for VJP, Grad and ValueAndGrad
	JVP  JVPFunc  // for JVP
	Vmap VmapFunc // for Vmap
}

// CustomFunction gives f rules of its own: a function that computes f, and does under
// transforms what the rules say. A rule runs only where it is asked for, on the stream
// on which f did. Under Vmap the function keeps its VJP and JVP.
//
// The results of a rule are checked: VJP gives one array for every argument, JVP one for
// every output and Vmap one for every output with the elements first, in their shapes and
// dtypes. Arrays that a rule makes are freed when it returns, but for those that it
// Keeps. If the call fails, the function returns invalid arrays that carry the error: as
// many as f gave, or one if f never gave any.
//
// A rule that captures what the function has returned, rather than use the outputs that it is
// given, keeps both alive until that is evaluated or freed: neither the collector nor MLX
// sees the whole circle.
func CustomFunction(f Func, rules CustomRules) Func {
	return customFunction("CustomFunction", f, rules)
}

// CustomVJP gives f a gradient of its own: a function that computes f, and whose
// vector-Jacobian product is vjp. It is a CustomFunction with that rule only.
func CustomVJP(f Func, vjp VJPFunc) Func {
	const op = "CustomVJP"
	if vjp == nil {
		return func([]*Array) []*Array { return invalidArrays(1, opError(op, errNoFunction)) }
	}
	return customFunction(op, f, CustomRules{VJP: vjp})
}

func customFunction(op string, f Func, rules CustomRules) Func {
	var outputs atomic.Int64
	return func(args []*Array) []*Array {
		if f == nil {
			return invalidArrays(1, opError(op, errNoFunction))
		}
		c := customCall{op: op, stream: currentStream()}
		return callClosure(op, args, &outputs, func(h handles) C.mlxg_results {
			var vjp, jvp, vmap C.uintptr_t
			if rules.VJP != nil {
				vjp = register(c.vjp(rules.VJP))
			}
			if rules.JVP != nil {
				jvp = register(c.jvp(rules.JVP))
			}
			if rules.Vmap != nil {
				vmap = register(c.vmap(rules.Vmap))
			}
			return C.mlxg_custom_function(register(recordingCount(c.recordingOutputs(f), &outputs)), vjp, jvp, vmap, h.ptr(), h.n())
		})
	}
}

// customCall is one call of a custom function. Its rules check what they give: MLX takes
// their lists as they are and would read past the end.
type customCall struct {
	op      string
	stream  streamHandle
	outputs []Output // of the function; the graph lock guards them
	tape    seedTape // of the function
}

// noting is f; it notes what its outputs are like.
func (c *customCall) recordingOutputs(f Func) Func {
	return func(args []*Array) []*Array {
		results := c.tape.run(f, args)
		c.outputs = c.outputs[:0]
		for _, r := range results {
			d := r.info()
			c.outputs = append(c.outputs, Output{Shape: d.shape, DType: d.dtype})
		}
		return results
	}
}

// run runs a rule and checks its results: as many as want describes, and like them.
func (c *customCall) run(rule, like string, f func() []*Array, want []Output) (results []*Array) {
	withStream(c.stream, func() { results = f() })
	if len(results) != len(want) {
		return invalidArrays(1, opError(c.op, errCount("the "+rule+"'s results", len(results), len(want))))
	}
	for i, r := range results {
		if d := r.info(); r.Err() == nil && (!slices.Equal(d.shape, want[i].Shape) || d.dtype != want[i].DType) {
			err := fmt.Errorf("the %s's result %d is not like %s %d", rule, i, like, i)
			return invalidArrays(1, shapeError(c.op, err, []DType{d.dtype, want[i].DType}, r.Shape(), want[i].Shape))
		}
	}
	return results
}

func (c *customCall) vjp(f VJPFunc) VJPFunc {
	return func(primals, cotangents, outputs []*Array) []*Array {
		want := make([]Output, len(primals))
		for i, p := range primals {
			d := p.info()
			want[i] = Output{Shape: d.shape, DType: d.dtype}
		}
		return c.run("vjp", "argument", func() []*Array { return f(primals, cotangents, outputs) }, want)
	}
}

func (c *customCall) jvp(f JVPFunc) JVPFunc {
	return func(primals, tangents []*Array) []*Array {
		return c.run("jvp", "output", func() []*Array { return f(primals, tangents) }, c.outputs)
	}
}

func (c *customCall) vmap(f VmapFunc) VmapFunc {
	return func(args []*Array, mapped []bool) []*Array {
		size := args[slices.Index(mapped, true)].Dim(0)
		want := make([]Output, len(c.outputs))
		for i, o := range c.outputs {
			want[i] = Output{Shape: slices.Concat([]int{size}, o.Shape), DType: o.DType}
		}
		return c.run("vmap", "all of output", func() []*Array { return f(args, mapped) }, want)
	}
}
