package mlxc

// #include "mlxg.h"
import "C"

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// CustomRules define the behavior of a function under transforms. For a nil rule, MLX differentiates or batches the
// operations of the function; the function then runs again.
type CustomRules struct {
	VJP  VJPFunc  // for VJP, Grad and ValueAndGrad
	JVP  JVPFunc  // for JVP
	Vmap VmapFunc // for Vmap
}

// CustomFunction returns a function that computes f and uses the rules under transforms. A rule runs only when a
// transform needs it, on the stream on which f ran. Under Vmap the function keeps its VJP and JVP rules.
//
// The results of a rule are checked. VJP must return one array per argument, JVP one per output, and Vmap one per
// output with the batch axis first, in matching shapes and dtypes. Arrays that a rule makes are freed when it returns,
// except its results and arrays on which it calls Keep. If the call fails, the function returns invalid arrays that
// carry the error: as many as f returned before, or one.
//
// A rule should use the outputs that it receives. A rule that captures an output of the function instead keeps both
// alive until the output is evaluated or freed: neither the garbage collector nor MLX sees the whole cycle.
func CustomFunction(f Func, rules CustomRules) Func {
	return customFunction("CustomFunction", f, rules)
}

// CustomVJP returns a function that computes f and whose vector-Jacobian product is vjp. It is CustomFunction with only
// that rule.
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
			return C.mlxg_custom_function(register(recordingCount(c.recordingOutputs(f), &outputs)), vjp, jvp, vmap,
				h.ptr(), h.n())
		})
	}
}

// customCall is one call of a custom function. It checks the results of the rules: MLX would read past the end of a
// short list.
type customCall struct {
	op      string
	stream  streamHandle
	outputs []Output // shapes and dtypes of the function's outputs
	tape    seedTape // random draws of the function
}

// recordingOutputs returns a function that calls f and records the shapes and dtypes of its outputs in c.outputs.
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

// run runs a rule and checks its results against the shapes and dtypes in want. `like` is the name of the matching
// arrays in errors, such as "argument".
func (c *customCall) run(rule, like string, f func() []*Array, want []Output) (results []*Array) {
	withStream(c.stream, func() { results = f() })
	if len(results) != len(want) {
		return invalidArrays(1, opError(c.op, errCount("the "+rule+"'s results", len(results), len(want))))
	}
	for i, r := range results {
		if d := r.info(); r.Err() == nil && (!slices.Equal(d.shape, want[i].Shape) || d.dtype != want[i].DType) {
			err := fmt.Errorf("result %d of the %s must have the shape and dtype of %s %d", i, rule, like, i)
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
		return c.run("vmap", "the batch of output", func() []*Array { return f(args, mapped) }, want)
	}
}
