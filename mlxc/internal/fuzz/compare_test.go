package fuzz

import (
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// unstable lists functions whose results depend on more than the elements of the operands, or have several correct
// values, with the reason.
var unstable = map[string]string{
	"Array.Strides":      "returns the layout",
	"Array.Keep":         "returns its operand",
	"Array.Partition":    "the order is not defined",
	"Array.ArgPartition": "the order is not defined",
	"Array.TopK":         "the order is not defined",
	"Array.ArgSort":      "the order of equal elements is not defined",
	"Array.IsReady":      "depends on earlier evaluations",
}

// stable reports whether a call with equal elements must give equal results.
func stable(name string, args []reflect.Value) bool {
	if unstable[name] != "" {
		return false
	}
	for _, a := range operands(args) {
		// Long sums of float16 and bfloat16 depend on their order.
		if d := a.DType(); (d == mlxc.Float16 || d == mlxc.BFloat16) && a.Size() > 64 {
			return false
		}
	}
	// A random function without a key uses the next key of the process, so a second call differs.
	return !strings.HasPrefix(name, "Random") || !args[0].IsValid() || !args[0].IsZero()
}

// evaluationErrors lists parts of errors that evaluations of accepted operations may have, with the reason.
var evaluationErrors = map[string]string{
	"factorization failed": "the matrix is singular",
	"inversion failed":     "the matrix is singular",
	"of the function":      "a drawn function failed",
	"SVD failed":           "the matrix has a NaN",
	"Source does not have": "the mask of MaskedScatter has more trues than the source elements",
}

// substituted returns a copy of args whose arrays are replaced by arrays, in order.
func substituted(args []reflect.Value, arrays []*mlxc.Array) []reflect.Value {
	out := slices.Clone(args)
	next := 0
	for i, v := range args {
		if _, ok := v.Interface().(*mlxc.Array); ok {
			out[i] = reflect.ValueOf(arrays[next])
			next++
		}
	}
	return out
}

// operands returns the arrays among the arguments.
func operands(args []reflect.Value) (out []*mlxc.Array) {
	for _, v := range args {
		if a, ok := v.Interface().(*mlxc.Array); ok {
			out = append(out, a)
		}
	}
	return out
}

// compareContiguous repeats a call with copies of its operands in row-major order, and compares
// the results.
func (s *sequence) compareContiguous(c callable, args, results []reflect.Value) {
	var copies []*mlxc.Array
	for _, a := range operands(args) {
		if a.Err() != nil {
			copies = append(copies, a)
			continue
		}
		b, err := contiguous(a)
		if err != nil {
			return
		}
		copies = append(copies, b)
	}
	if len(copies) == 0 {
		return
	}
	s.write("the same call with contiguous operands")
	other, ok := s.invoke(c, substituted(args, copies))
	if ok {
		s.compare("contiguous operands", arraysOf(other), arraysOf(results))
	}
}

// compare compares the valid results of two calls.
func (s *sequence) compare(what string, want, got []*mlxc.Array) {
	if len(want) != len(got) {
		s.fail("%s: %d results, not %d", what, len(got), len(want))
		return
	}
	for i := range want {
		if want[i].Size() > maxSize || got[i].Size() > maxSize {
			continue
		}
		if a, b := want[i].Err(), got[i].Err(); a != nil || b != nil {
			// An id out of range is an error only if the ids have been computed.
			if (a == nil) != (b == nil) && !strings.Contains(fmt.Sprint(a, b), "the id at") {
				s.fail("%s: result %d has the error %v, not %v", what, i, b, a)
			}
			continue
		}
		d, err := difference(want[i], got[i])
		if err == nil && d != "" {
			s.fail("%s: result %d: %s", what, i, d)
		}
		if err != nil {
			s.evaluated(err)
		}
		s.report.Compared++
	}
}

// transformed makes the call inside a function, and compares the function's results with and without a transform.
func (s *sequence) transformed(c callable, args []reflect.Value, text string) {
	in := operands(args)
	if t := c.f.Type(); len(in) == 0 || t.NumOut() == 0 || t.Out(0) != reflect.TypeFor[*mlxc.Array]() &&
		t.Out(0) != reflect.TypeFor[[]*mlxc.Array]() {
		return
	}
	f := func(a []*mlxc.Array) []*mlxc.Array {
		out, _ := s.invoke(c, substituted(args, a))
		return arraysOf(out)
	}
	s.write("f = %s", text)
	want := f(in)
	for _, a := range want {
		if a.Size() > maxSize {
			return
		}
	}
	ones := func(a []*mlxc.Array) (out []*mlxc.Array) {
		for _, x := range a {
			out = append(out, mlxc.OnesLike(x))
		}
		return out
	}
	var got, more []*mlxc.Array
	var err error
	switch s.IntN(8) {
	case 0, 1:
		s.write("VJP of f")
		got, more, err = mlxc.VJP(f, in, ones(want))
	case 2:
		s.write("JVP of f")
		got, more, err = mlxc.JVP(f, in, ones(in))
	case 3:
		s.write("Vmap of f")
		more = mlxc.Vmap(f, slices.Repeat([]int{0}, len(in)), nil)(in)
	case 4:
		s.write("Compile of f")
		compiled := mlxc.Compile(f)
		got, err = compiled.Call(in...)
		compiled.Close()
	case 5:
		s.write("CompileShapeless of f")
		compiled := mlxc.CompileShapeless(f)
		got, err = compiled.Call(in...)
		compiled.Close()
	case 6:
		s.write("VJP of Checkpoint of f")
		got, more, err = mlxc.VJP(mlxc.Checkpoint(f), in, ones(want))
	default:
		s.write("Export of f and Import")
		path := filepath.Join(s.dir, "f.mlxfn")
		if mlxc.Export(path, f, in...) == nil {
			var imported *mlxc.Imported
			if imported, err = mlxc.Import(path); err == nil {
				got, err = imported.Call(in...)
				imported.Close()
			}
		}
	}
	if err == nil && len(got) > 0 && s.tame && stable(c.name, args) {
		s.compare("under the transform", want, got)
	}
	for _, a := range slices.Concat(got, more) {
		s.use(a)
	}
}
