package compare_test

import (
	"math"
	"slices"
	"testing"

	. "github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/compare/suite"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

func TestSampleReachesEverything(t *testing.T) {
	sample := Sample(suite.Ops())
	require.Len(t, sample, len(suite.Ops()))
	want, got := Reached(suite.Ops()), Reached(sample)
	for name := range want {
		require.True(t, got[name], "the sample does not reach %s", name)
	}
	require.GreaterOrEqual(t, CountRows(sample, DTypes()), 1500)
	// Compiling variants takes most of the time of a first run.
	require.Less(t, CountPrograms(sample, DTypes()), 460)
	for i, op := range suite.Ops() {
		require.GreaterOrEqual(t, 11*CountRows(sample[i:i+1], DTypes()), CountRows([]Op{op}, DTypes()), "about a tenth of %s", op.Name)
	}
}

func TestSampleIsDeterministic(t *testing.T) {
	require.Equal(t, SampleNames(suite.Ops()), SampleNames(suite.Ops()))
}

// The listed programs of a case are the programs that its gradient launches.
func TestProgramsAreComplete(t *testing.T) {
	for _, op := range suite.Ops() {
		c := op.Cases[len(op.Cases)/2]
		r := Run(t.Context(), []Op{{Name: op.Name, Cases: []Case{c}}}, Options{DTypes: []mlxc.DType{mlxc.Float16}})
		require.NotEmpty(t, r.Rows)
		require.Equal(t, r.Rows[0].Launches, CountLaunches(op.Name, c, mlxc.Float16), "%s %s", op.Name, c.Name)
	}
}

// Each mistake is found in every operation, output and dtype, in at least a third of the cases. Some cases hide a
// mistake: a last key that few queries see has almost no gradient. A full run tries all cases. Otherwise the cases are
// those of TestParity in package suite, which share their compiled kernels, with one dtype for each operation.
func TestMistakesAreFound(t *testing.T) {
	type kind struct{ op, dtype, output, mistake string }
	tried, found, examples := map[kind]int{}, map[kind]int{}, map[kind]string{}
	ops := suite.Ops()
	for i := range ops {
		ops[i].Cases = slices.DeleteFunc(ops[i].Cases, func(c Case) bool { return large(c) || c.Empty() })
	}
	if !long.Full() {
		ops = Sample(ops)
	}
	for i, op := range ops {
		for _, c := range op.Cases {
			for d, dtype := range DTypes() {
				if !long.Full() && (d != i%len(DTypes()) || c.DTypes != nil && !slices.Contains(c.DTypes, dtype)) {
					continue
				}
				mlxc.WithScope(func() {
					EachMistake(t, op.Name, c, dtype, func(output, mistake string, row report.Row) {
						k := kind{op.Name, dtype.String(), output, mistake}
						tried[k]++
						if row.Pass {
							examples[k] = c.Name
						} else {
							found[k]++
						}
					})
				})
			}
		}
	}
	require.NotEmpty(t, tried)
	reached := map[string]bool{}
	for k := range tried {
		reached[k.op+" "+k.output] = true
	}
	for _, op := range suite.Ops() {
		for _, c := range op.Cases {
			for _, name := range TargetNames(c) {
				require.True(t, reached[op.Name+" "+name], "no mistake of %s %s was tried", op.Name, name)
			}
		}
	}
	for k, n := range tried {
		if 3*found[k] < n {
			t.Errorf(
				"%s %s %s: %q is found in %d of %d cases only, and not in %s",
				k.op,
				k.dtype,
				k.output,
				k.mistake,
				found[k],
				n,
				examples[k],
			)
		}
	}
}

// Each oracle's gradient agrees with directional differences of its own forward function at every case's inputs. A
// comparison with a kernel cannot show an error that the oracle and the kernel share. A sample has one case in three.
func TestOraclesAreGradients(t *testing.T) {
	for _, op := range suite.Ops() {
		for n, c := range op.Cases {
			if !long.Full() && n%3 != 0 {
				continue
			}
			if len(c.Differentiated()) == 0 || large(c) { // a large case has the same formulas as a small one
				continue
			}
			in, err := OracleInputs(op.Name, c)
			require.NoError(t, err)
			if !allFinite(in) || !allFinite(c.Forward(in)) {
				continue // differences of NaN and infinity are undefined
			}
			fixed := map[int]bool{}
			for i := range c.Inputs {
				fixed[i] = c.Inputs[i].Kind != Real
			}
			err = oracle.CheckDirectional(c.Forward, c.Gradient, in, fixed, RNG(op.Name, c.Name))
			require.NoError(t, err, "%s %s", op.Name, c.Name)
		}
	}
}

func allFinite(ts []oracle.Tensor) bool {
	for _, t := range ts {
		for _, v := range t.Data {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
}

// Case names select cases and seed their data, so they differ.
func TestCaseNamesDiffer(t *testing.T) {
	for _, op := range suite.Ops() {
		seen := map[string]bool{}
		name, target := "", ""
		for _, c := range op.Cases {
			require.False(t, seen[c.Name], "%s %s", op.Name, c.Name)
			seen[c.Name] = true
			name = longest(name, c.Name)
			for _, name := range TargetNames(c) {
				target = longest(target, name)
			}
		}
		require.Less(t, len(name)+len(target), 46, "%q and %q make the table wider than 120 columns", name, target)
	}
}

func longest(a, b string) string {
	if len(b) > len(a) {
		return b
	}
	return a
}

// large reports whether an input is too large for a fast test.
func large(c Case) bool {
	return slices.ContainsFunc(c.Inputs, func(in Input) bool { return oracle.Size(in.Shape) > 1<<14 })
}
