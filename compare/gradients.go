package compare

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The flags are registered in test binaries only.
var (
	inputsFlag = new(20)
	caseFlag   = new("")
)

func init() {
	if testing.Testing() {
		flag.IntVar(inputsFlag, "compare.inputs", *inputsFlag, "number of random inputs for each case of compare.Gradients")
		flag.StringVar(caseFlag, "compare.case", "", "run only this input, as a failure of compare.Gradients prints it")
	}
}

// Gradients checks the outputs and the gradients of ours against a reference, at random inputs. ours may be any
// function of MLX arrays: a kernel with its vjp, or operations of MLX. Of each case, Gradients reads the fields Inputs,
// Outputs, Sizes, DTypes, MLX and UsesTF32. All cases share ours and reference.
//
// For each case it tries 20 random inputs, in each dtype. It chooses
//   - a size for each dimension that [Input.Dims] names, the same for all inputs. It tries every size that Sizes lists,
//     if necessary with more than 20 inputs, and the largest default size of every dimension. Other sizes are reduced
//     until an input has at most 16,384 elements, or 256 with finite differences;
//   - values for each input without Values: usually Normal(1), otherwise a harder distribution, such as [Spread],
//     [Spike] or [Zeros];
//   - a memory layout for each input and cotangent without Layout.
//
// The inputs depend only on the name of the test and on the order of its calls of Gradients. An input of finite numbers
// is left out if a true value is NaN or overflows the dtype, if all true values of a result are subnormal, or if finite
// differences (see [Reference]) give no gradient for more than half of the elements of an input. If nothing is compared
// in a dtype, the test fails.
//
// The accuracy rule of [Run] judges the results. Gradients also allows the errors of float32 arithmetic and one
// rounding to the dtype. A function that computes or keeps values in float16 fails; to allow it, set MLX to an equally
// accurate function, or leave out the dtype. If all true values of a result are almost 0 because large terms cancel, as
// in the gradient of RMSNorm of a single element, a correct function can fail too; leave out such sizes.
//
// If an input fails, Gradients shrinks it: it looks for a failing input with smaller sizes, contiguous arrays, and
// integers as values. It reports the result by t.Errorf, with the largest error, the values and the command that runs
// the input again, and continues with the next case. If an argument is not valid, it calls t.Fatalf. It must therefore
// run in the goroutine of the test.
//
// The test binary has two flags: -compare.inputs=N sets the number of random inputs for each case, and -compare.case
// runs the one input that a failure names.
func Gradients(t testing.TB, ours mlxc.Func, reference Reference, cases ...Case) {
	t.Helper()
	call := nextCall(t)
	if len(cases) == 0 {
		t.Fatalf("compare.Gradients: there are no cases; it needs at least one compare.Case with Inputs")
	}
	only, err := parseTrial(*caseFlag)
	if err != nil {
		t.Fatalf("compare.Gradients: -compare.case=%q: %v", *caseFlag, err)
	}
	for i, c := range cases {
		if c.Ours != nil || c.Reference.given() {
			t.Fatalf("compare.Gradients: case %d sets Ours or Reference; they are arguments of Gradients", i)
		}
		c.Ours, c.Reference = ours, reference
		if err := c.checkTemplate(); err != nil {
			t.Fatalf("compare.Gradients: case %d: %v", i, err)
		}
		s := search{t: t, c: c, call: call, at: i}
		switch {
		case only == nil:
			s.run(*inputsFlag)
		case only.call == call && only.at == i:
			inputTaken(t)
			s.runOne(*only)
		}
	}
}

var (
	callsMu sync.Mutex
	calls   = map[string]int{}  // number of calls of Gradients, by the name of the running test
	taken   = map[string]bool{} // the names of running tests that have run the input of -compare.case
)

// nextCall counts a call of Gradients in a test and returns the number of earlier calls. When the test ends, it fails if
// no call took the input of -compare.case.
func nextCall(t testing.TB) int {
	callsMu.Lock()
	defer callsMu.Unlock()
	n := calls[t.Name()]
	if n == 0 {
		t.Cleanup(func() {
			callsMu.Lock()
			defer callsMu.Unlock()
			if *caseFlag != "" && !taken[t.Name()] && !t.Failed() {
				t.Errorf("compare.Gradients: -compare.case=%q: nothing was run; the test has no such call or case", *caseFlag)
			}
			delete(calls, t.Name())
			delete(taken, t.Name())
		})
	}
	calls[t.Name()] = n + 1
	return n
}

// inputTaken records that a test runs the input of -compare.case. It counts for the tests of which it is a subtest too.
func inputTaken(t testing.TB) {
	callsMu.Lock()
	defer callsMu.Unlock()
	for name := t.Name(); ; name = name[:strings.LastIndex(name, "/")] {
		taken[name] = true
		if !strings.Contains(name, "/") {
			return
		}
	}
}

// search looks for a failing input of a case.
type search struct {
	t        testing.TB
	c        Case // with Ours and Reference
	call, at int  // the numbers of the call of Gradients and of the case in it
}

// run tries n random inputs in every dtype and reports the first failure.
func (s search) run(n int) {
	s.t.Helper()
	judged := map[mlxc.DType]bool{}
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %d", s.t.Name(), s.call, s.at)
	required, listed := s.c.requiredSizes(rand.New(rand.NewPCG(h.Sum64(), math.MaxUint64)))
	n = max(n, listed)
	for i := range n {
		var size dimSize
		if i < len(required) {
			size = required[i]
		}
		tr := s.c.randomTrial(rand.New(rand.NewPCG(h.Sum64(), uint64(i))), size)
		tr.call, tr.at = s.call, s.at
		for _, dtype := range DTypes() {
			if !s.c.runsIn(dtype) {
				continue
			}
			tr.dtype = dtype
			f, err := s.try(tr)
			switch {
			case err != nil:
				continue
			case f != nil:
				s.report(*f)
				return
			}
			judged[dtype] = true
		}
	}
	for _, dtype := range DTypes() {
		if s.c.runsIn(dtype) && !judged[dtype] {
			s.t.Errorf("compare.Gradients: case %d: none of %d inputs has elements with true values in the range of %v, "+
				"so nothing was compared; set Values of the inputs, or Sizes or DTypes of the case", s.at, n, dtype)
		}
	}
}

// runOne tries one input and reports its failure.
func (s search) runOne(tr trial) {
	s.t.Helper()
	if err := s.c.fits(tr); err != nil {
		s.t.Fatalf("compare.Gradients: -compare.case=%q: %v", *caseFlag, err)
	}
	switch f, err := s.try(tr); {
	case err != nil:
		s.t.Errorf("compare.Gradients: %s: %v", tr, err)
	case f != nil:
		s.t.Errorf("%s", f.message(s.t.Name()))
	}
}

// report shrinks a failure and reports it.
func (s search) report(first failure) {
	s.t.Helper()
	f, steps := s.shrink(first)
	text := f.message(s.t.Name())
	if narrow := f.trial; narrow.dtype != mlxc.Float32 && s.c.runsIn(mlxc.Float32) {
		narrow.dtype = mlxc.Float32
		if other, err := s.try(narrow); other == nil && err == nil {
			text += fmt.Sprintf("\nThe same input passes in float32: in %v the precision or the formula differs.", f.trial.dtype)
		}
	}
	if steps > 0 {
		text += fmt.Sprintf("\nFound at %q and made smaller in %d steps.", first.trial, steps)
	}
	s.t.Errorf("%s", text)
}

// The errors for inputs that give nothing to compare (see problem.rangeError).
var (
	errOutOfRange = errors.New("a true value is NaN or overflows the dtype, or all true values of a result are subnormal")
	errUndefined  = errors.New("most elements of a gradient are undefined")
	errNoElements = errors.New("no result has an element with a true value")
)

// try runs one input. It returns a failure of ours, or an error if there is nothing to compare.
func (s search) try(tr trial) (f *failure, err error) {
	mlxc.WithScope(func() {
		var c Case
		if c, err = s.c.resolve(tr); err != nil {
			f, err = &failure{trial: tr, reason: "the reference failed: " + err.Error()}, nil
			return
		}
		p, posed := pose("", c, tr.dtype)
		if posed != nil {
			f = &failure{trial: tr, reason: posed.Error()}
			return
		}
		if err = p.rangeError(); errors.Is(err, errOutOfRange) {
			return
		}
		ours, solved := p.solve()
		if solved != nil {
			err = nil
			f = &failure{trial: tr, reason: strings.TrimPrefix(solved.Error(), "our gradient failed: ")}
			return
		}
		for i, t := range p.targets {
			at := p.notFinite(i, ours[i])
			if err != nil { // near most elements the function may not be defined, as √x at 0, so infinity may be right
				at = slices.DeleteFunc(at, func(j int) bool { return !math.IsNaN(ours[i][j]) })
			}
			if len(at) > 0 {
				err = nil
				f = &failure{trial: tr, p: p, target: &p.targets[i], ours: ours[i], truth: p.truth[i], undefinedAt: &at[0]}
				f.reason = fmt.Sprintf("NaN or infinity in %d of %d elements (%d draws) at which the reference has no gradient, "+
					"such as a kink", len(at), oracle.Size(t.shape)*len(p.draws), len(p.draws))
				return
			}
		}
		if err != nil {
			return
		}
		rows := p.judgeAtRandomInputs(ours)
		ours = p.c.ignoreUndefined(ours, p.truth)
		for i, row := range rows {
			if !row.Pass {
				f = &failure{trial: tr, p: p, target: &p.targets[i], reason: row.Message, ours: ours[i], truth: p.truth[i]}
				return
			}
		}
		if p.compared() == 0 {
			err = errNoElements
		}
	})
	return f, err
}
