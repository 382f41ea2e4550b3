package fuzz

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// write adds a line to the journal. It must precede the call that the line describes.
func (s *sequence) write(format string, args ...any) {
	line := fmt.Sprintf("%d: ", s.call) + fmt.Sprintf(format, args...) + "\n"
	s.transcript.WriteString(line)
	if _, err := s.journal.WriteString(line); err != nil {
		panic(err)
	}
	s.steps.Add(1)
}

// add puts an array into the pool and returns its name. text describes the array.
func (s *sequence) add(a *mlxc.Array, text string) (name string) {
	if name, ok := s.names[a]; ok {
		return name
	}
	name = fmt.Sprintf("a%d", len(s.names))
	s.names[a] = name
	s.pool = append(s.pool, a)
	s.write("%s = %s", name, text)
	return name
}

// fail reports a failure.
func (s *sequence) fail(format string, args ...any) {
	s.report.Failures = append(s.report.Failures, failure{s.call, fmt.Sprintf(format, args...), s.transcript.String()})
}

func (s *sequence) check(err error) {
	if err != nil {
		s.fail("%v", err)
	}
}

// one makes one random call.
func (s *sequence) one() {
	c := s.table[s.IntN(len(s.table))]
	args := s.arguments(c)
	s.report.Calls++
	text := s.show(c.name, args)
	if s.chance(12) {
		s.transformed(c, args, text)
		return
	}
	s.write("%s", text)
	results, ok := s.invoke(c, args)
	if !ok {
		return
	}
	accepted := s.take(results)
	if accepted {
		s.report.Accepted[c.name]++
	} else if len(arraysOf(results)) > 0 {
		s.report.Accepted[c.name] += 0
	}
	if s.tame && accepted && stable(c.name, args) {
		s.compareContiguous(c, args, results)
	}
	if s.chance(10) && len(s.pool) > 0 {
		a := s.pool[s.IntN(len(s.pool))]
		s.write("%s.Free()", s.names[a])
		a.Free()
	}
}

func (s *sequence) arguments(c callable) []reflect.Value {
	t := c.f.Type()
	args := make([]reflect.Value, t.NumIn())
	var like *mlxc.Array
	var shapes [][]int
	if recipe := recipes[c.name]; recipe != nil && s.chance(70) {
		shapes = recipe(s)
	}
	floating := []mlxc.DType{mlxc.Float32, mlxc.Float32, mlxc.Float32, mlxc.Float16, mlxc.BFloat16}[s.IntN(5)]
	for i := range args {
		if t.In(i) == reflect.TypeFor[*mlxc.Array]() && len(shapes) > 0 {
			args[i] = reflect.ValueOf(s.array(floating, shapes[0]))
			shapes = shapes[1:]
		} else {
			args[i] = s.argument(c.params[i], t.In(i), like)
		}
		if a, ok := args[i].Interface().(*mlxc.Array); ok && like == nil {
			like = a
		}
	}
	return args
}

// invoke calls the function. A panic is a failure.
func (s *sequence) invoke(c callable, args []reflect.Value) (results []reflect.Value, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			s.fail("%s: panic: %v\n%s", c.name, r, debug.Stack())
		}
	}()
	if c.f.Type().IsVariadic() {
		return c.f.CallSlice(args), true
	}
	return c.f.Call(args), true
}

// take uses the results of a call, and reports whether they include valid arrays.
func (s *sequence) take(results []reflect.Value) (accepted bool) {
	for _, r := range results {
		if r.CanInterface() && r.Kind() != reflect.Func {
			if err, ok := r.Interface().(error); ok && err != nil && err.Error() == "" {
				s.fail("an error without a text")
			}
		}
	}
	for _, a := range arraysOf(results) {
		if s.use(a) {
			accepted = true
		}
	}
	for _, r := range results {
		s.callResult(r)
	}
	return accepted
}

// callResult calls a returned function, and takes some steps of a returned iterator.
func (s *sequence) callResult(r reflect.Value) {
	switch f := r.Interface().(type) {
	case mlxc.Func:
		if f == nil || s.chance(50) {
			return
		}
		s.write("its result, of some arrays")
		for _, a := range f(s.some()) {
			s.use(a)
		}
	case func([]*mlxc.Array) ([]*mlxc.Array, error):
		s.write("its result, of some arrays")
		out, _ := f(s.some())
		for _, a := range out {
			s.use(a)
		}
	case func([]*mlxc.Array) ([]*mlxc.Array, []*mlxc.Array, error):
		s.write("its result, of some arrays")
		values, grads, _ := f(s.some())
		for _, a := range slices.Concat(values, grads) {
			s.use(a)
		}
	case *mlxc.Compiled:
		s.write("Call of its result, twice, and Close")
		for range 2 {
			out, _ := f.Call(s.some()...)
			for _, a := range out {
				s.use(a)
			}
		}
		f.Close()
	case interface{ Error() string }:
		_ = f.Error()
	default:
		if r.Kind() == reflect.Func && r.Type().CanSeq2() {
			n := 0
			for _, v := range r.Seq2() {
				s.use(v.Interface().(*mlxc.Array))
				if n++; n == 3 {
					break
				}
			}
		}
	}
}

// some returns one to three arrays.
func (s *sequence) some() []*mlxc.Array {
	var out []*mlxc.Array
	for range 1 + s.IntN(3) {
		out = append(out, s.arrayArgument("", nil))
	}
	s.write("of %s", s.show("", []reflect.Value{reflect.ValueOf(out)}))
	return out
}

// use puts an array of a result into the pool and often evaluates it. It reports whether the array is valid.
func (s *sequence) use(a *mlxc.Array) bool {
	if err := a.Err(); err != nil {
		if err.Error() == "" {
			s.fail("an error without a text")
		}
		return false
	}
	if a.Size() > maxSize {
		a.Free()
		return true
	}
	name := s.add(a, fmt.Sprintf("%v%v", a.DType(), a.Shape()))
	if s.chance(70) {
		s.evaluate(a, name)
	}
	return true
}

// evaluate evaluates and reads an array in one of several ways.
func (s *sequence) evaluate(a *mlxc.Array, name string) {
	var err error
	switch s.IntN(5) {
	case 0:
		s.write("Eval(%s)", name)
		err = mlxc.Eval(a)
	case 1:
		s.write("AsyncEval(%s)", name)
		err = mlxc.AsyncEval(a)
	case 2:
		s.write("%s.String()", name)
		_ = a.String()
	default:
		s.write("ToSlice(%s)", name)
		_, err = values(a)
	}
	s.report.Evaluated++
	s.evaluated(err)
}

// evaluated reports a failure unless the error of an evaluation is nil or expected.
func (s *sequence) evaluated(err error) {
	if err == nil || errors.Is(err, mlxc.ErrFreed) {
		return
	}
	for text := range evaluationErrors {
		if strings.Contains(err.Error(), text) {
			return
		}
	}
	s.fail("evaluation: %v", err)
}

// finish evaluates and reads the remaining arrays.
func (s *sequence) finish() {
	for _, a := range s.pool {
		if a.Err() == nil && a.Size() <= maxSize {
			s.write("ToSlice(%s)", s.names[a])
			_, err := values(a)
			s.evaluated(err)
		}
	}
	s.write("Synchronize()")
	s.evaluated(mlxc.Synchronize())
	s.silent()
}

// silent reports a failure if the sequence printed text, as LAPACK does for wrong arguments.
func (s *sequence) silent() {
	if info, err := os.Stdout.Stat(); err == nil && info.Size() > s.printed {
		text, _ := os.ReadFile(s.Output)
		s.fail("printed: %s", text[min(s.printed, int64(len(text))):])
		s.printed = info.Size()
	}
}
