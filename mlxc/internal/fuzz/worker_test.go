package fuzz

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

const (
	sequenceLength = 16 // calls
	hang           = 30 * time.Second
)

// job is the work of one process.
type job struct {
	Seed    uint64
	From    int    // number of the first call
	Calls   int    // how many
	Guarded bool   // guard.c is loaded
	Dir     string // for files
	Journal string // path of a file: the calls of the current sequence
	Output  string // path of the file that is the standard output
	Report  string // path of the report
}

// failure describes a failed call.
type failure struct {
	Call       int
	What       string
	Transcript string
}

// report is the result of a job.
type report struct {
	Calls     int            // that were made, and not avoided
	Evaluated int            // arrays
	Compared  int            // results, with other layouts or under transforms
	Accepted  map[string]int // calls with valid arrays as results, by function
	Failures  []failure
}

// worker runs a job.
type worker struct {
	job
	table   []callable
	stream  *mlxc.Stream
	journal *os.File
	printed int64        // bytes on the standard output that were judged
	steps   atomic.Int64 // lines of the journal, by which a hang is known
	report  report
}

// work runs the job that an environment variable holds, and writes a report.
func work(text string) error {
	w := &worker{report: report{Accepted: map[string]int{}}}
	if err := json.Unmarshal([]byte(text), &w.job); err != nil {
		return err
	}
	if err := w.setUp(); err != nil {
		return err
	}
	go w.watch()
	for first := w.From; first < w.From+w.Calls; first += sequenceLength {
		if err := w.run(first / sequenceLength); err != nil {
			return err
		}
	}
	out, err := json.Marshal(w.report)
	if err != nil {
		return err
	}
	return os.WriteFile(w.Report, out, 0o600)
}

func (w *worker) setUp() (err error) {
	if w.table, err = table(); err != nil {
		return err
	}
	if w.journal, err = os.Create(w.Journal); err != nil {
		return err
	}
	if w.stream, err = mlxc.NewStream(mlxc.CPU); err != nil {
		return err
	}
	// Fusing would run a C++ compiler for most calls of compiled functions.
	if _, err = mlxc.SetCompileMode(mlxc.CompileNoFuse); err != nil {
		return err
	}
	if w.Guarded {
		// A buffer from the cache may be longer than the array in it.
		if _, err = mlxc.SetCacheLimit(0); err != nil {
			return err
		}
	}
	return limitMemory()
}

// limitMemory lets the process take 4 GiB more of address space.
func limitMemory() error {
	var pages uint64
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return nil //nolint:nilerr // not Linux: the sizes of arrays are the only limit
	}
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return err
	}
	size := pages*uint64(os.Getpagesize()) + 4<<30
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: size, Max: size})
}

// watch ends the process when it makes no progress.
func (w *worker) watch() {
	for last := int64(-1); ; {
		now := w.steps.Load()
		if now == last {
			stacks := make([]byte, 1<<20)
			fmt.Fprintf(os.Stderr, "hang: no progress in %v\n%s\n", hang, stacks[:runtime.Stack(stacks, true)])
			os.Exit(1)
		}
		last = now
		time.Sleep(hang)
	}
}

// sequence is a number of calls. Each may use the results of the earlier ones.
type sequence struct {
	*rand.Rand
	*worker
	call       int
	sizes      []int
	mainDType  mlxc.DType
	tame       bool // small numbers, and results compared with the results for contiguous operands
	dir        string
	pool       []*mlxc.Array
	names      map[*mlxc.Array]string
	special    map[reflect.Type]func(name string, like *mlxc.Array) any
	transcript strings.Builder
}

func (w *worker) run(number int) error {
	s := &sequence{
		Rand: rand.New(rand.NewPCG(w.Seed, uint64(number))), worker: w,
		call: number * sequenceLength, names: map[*mlxc.Array]string{},
	}
	s.special = s.specials()
	all := []int{0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64}
	s.sizes = []int{all[2+s.IntN(8)], all[2+s.IntN(8)], all[s.IntN(len(all))]}
	s.mainDType = []mlxc.DType{mlxc.Float32, mlxc.Float32, mlxc.Float32, mlxc.Float16, mlxc.BFloat16, mlxc.Int32, mlxc.Float64, mlxc.Complex64, mlxc.Bool, mlxc.Uint8, mlxc.Int64, mlxc.Int8}[s.IntN(12)]
	s.tame = s.chance(35)
	s.dir = w.Dir
	if err := w.journal.Truncate(0); err != nil {
		return err
	}
	if _, err := w.journal.Seek(0, 0); err != nil {
		return err
	}
	mlxc.RandomSeed(uint64(number))
	mlxc.WithScope(func() {
		for range sequenceLength {
			s.one()
			s.call++
		}
		s.call--
		s.finish()
	})
	return nil
}

// write adds a line to the journal. It comes before the call that it describes.
func (s *sequence) write(format string, args ...any) {
	line := fmt.Sprintf("%d: ", s.call) + fmt.Sprintf(format, args...) + "\n"
	s.transcript.WriteString(line)
	if _, err := s.journal.WriteString(line); err != nil {
		panic(err)
	}
	s.steps.Add(1)
}

// add takes an array into the pool.
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

// one makes one call.
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

// take uses the results of a call, and tells if there are valid arrays among them.
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

// some are one to three arrays.
func (s *sequence) some() []*mlxc.Array {
	var out []*mlxc.Array
	for range 1 + s.IntN(3) {
		out = append(out, s.arrayArgument("", nil))
	}
	s.write("of %s", s.show("", []reflect.Value{reflect.ValueOf(out)}))
	return out
}

// use takes an array of a result into the pool and often evaluates it. It tells if it is valid.
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

// evaluated judges the error of an evaluation.
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

// silent fails if the sequence printed something, as LAPACK does of wrong arguments.
func (s *sequence) silent() {
	if info, err := os.Stdout.Stat(); err == nil && info.Size() > s.printed {
		text, _ := os.ReadFile(s.Output)
		s.fail("printed: %s", text[min(s.printed, int64(len(text))):])
		s.printed = info.Size()
	}
}

// show writes a call.
func (s *sequence) show(name string, args []reflect.Value) string {
	texts := make([]string, len(args))
	for i, v := range args {
		texts[i] = s.showValue(v)
	}
	return name + "(" + strings.Join(texts, ", ") + ")"
}

func (s *sequence) showValue(v reflect.Value) string {
	if !v.IsValid() || !v.CanInterface() {
		return "?"
	}
	switch x := v.Interface().(type) {
	case *mlxc.Array:
		if x == nil {
			return "nil"
		}
		return s.names[x]
	case fmt.Stringer:
		if v.Kind() != reflect.Pointer {
			return x.String()
		}
	}
	switch v.Kind() {
	case reflect.Slice:
		texts := make([]string, v.Len())
		for i := range v.Len() {
			texts[i] = s.showValue(v.Index(i))
		}
		return "[" + strings.Join(texts, " ") + "]"
	case reflect.Struct:
		var texts []string
		for i := range v.NumField() {
			if f := v.Field(i); v.Type().Field(i).IsExported() && !f.IsZero() {
				texts = append(texts, v.Type().Field(i).Name+": "+s.showValue(f))
			}
		}
		return "{" + strings.Join(texts, ", ") + "}"
	case reflect.Func:
		return "f"
	case reflect.Map:
		var texts []string
		for _, k := range v.MapKeys() {
			texts = append(texts, s.showValue(k)+": "+s.showValue(v.MapIndex(k)))
		}
		return "{" + strings.Join(texts, ", ") + "}"
	case reflect.Pointer:
		if v.Elem().Kind() == reflect.Float32 {
			return fmt.Sprint("&", v.Elem())
		}
		return v.Type().String()
	case reflect.String:
		return fmt.Sprintf("%q", v.Interface())
	}
	return fmt.Sprint(v.Interface())
}

// arraysOf collects the arrays in results.
func arraysOf(results []reflect.Value) (out []*mlxc.Array) {
	for _, r := range results {
		switch x := r.Interface().(type) {
		case *mlxc.Array:
			out = append(out, x)
		case []*mlxc.Array:
			out = append(out, x[:min(len(x), 8)]...)
		case map[string]*mlxc.Array:
			for _, name := range slices.Sorted(maps.Keys(x)) {
				out = append(out, x[name])
			}
		case mlxc.Quantized:
			for _, a := range []*mlxc.Array{x.Weight, x.Scales, x.Biases, x.GlobalScale} {
				if a != nil {
					out = append(out, a)
				}
			}
		}
	}
	return out
}
