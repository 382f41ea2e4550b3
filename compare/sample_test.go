package compare

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestSampleReachesEverything(t *testing.T) {
	sample := Sample(Ops())
	require.Len(t, sample, len(Ops()))
	want, got := reached(Ops()), reached(sample)
	for name := range want {
		require.True(t, got[name], "the sample does not reach %s", name)
	}
	require.GreaterOrEqual(t, CountRows(sample, DTypes()), 1500)
	// Compiling variants takes most of the time of a first run.
	require.Less(t, len(programsOf(sample, DTypes())), 300)
	for i, op := range Ops() {
		require.GreaterOrEqual(t, 11*CountRows(sample[i:i+1], DTypes()), CountRows([]Op{op}, DTypes()), "about a tenth of %s", op.Name)
	}
}

// reached returns the operations with their dtypes, the traits of their launches and the words in the names of cases.
func reached(ops []Op) set {
	all := set{}
	for _, op := range ops {
		for _, c := range op.Cases {
			all.add(wordInName.FindAllString(c.Name, -1))
			for _, dtype := range DTypes() {
				if !c.runsIn(dtype) {
					continue
				}
				all.add([]string{op.Name + " " + dtype.String()})
				for _, p := range c.programs(op.Name, dtype) {
					all.add(traits(op.Name, p, dtype))
				}
			}
		}
	}
	return all
}

func TestSampleIsDeterministic(t *testing.T) {
	names := func() (list []string) {
		for _, op := range Sample(Ops()) {
			for _, c := range op.Cases {
				for _, dtype := range c.dtypes {
					list = append(list, op.Name+" "+c.Name+" "+dtype.String())
				}
			}
		}
		return list
	}
	require.Equal(t, names(), names())
}

// The programs of a case are the ones that its gradient launches.
func TestProgramsAreComplete(t *testing.T) {
	for _, op := range Ops() {
		c := op.Cases[len(op.Cases)/2]
		r := Run(t.Context(), []Op{{Name: op.Name, Cases: []Case{c}}}, Options{DTypes: []mlxc.DType{mlxc.Float16}})
		require.NotEmpty(t, r.Cases)
		require.Equal(t, r.Cases[0].Launches, len(c.programs(op.Name, mlxc.Float16)), "%s %s", op.Name, c.Name)
	}
}

func TestCompileKernels(t *testing.T) {
	op := altered(func(*Case) {})
	var calls [][2]int
	CompileKernels(t.Context(), op, DTypes(), func(compiled, all int) { calls = append(calls, [2]int{compiled, all}) })
	require.Equal(t, [][2]int{{0, 6}, {1, 6}, {2, 6}, {3, 6}, {4, 6}, {5, 6}, {6, 6}}, calls)
	require.Nil(t, ahead.Current())

	// A case without our function has no kernels, and a panic in it is reported by Run.
	for _, ours := range []mlxc.Func{nil, func([]*mlxc.Array) []*mlxc.Array { panic("out of ink") }} {
		CompileKernels(t.Context(), altered(func(c *Case) { c.Ours = ours }), DTypes(), func(_, all int) { require.Zero(t, all) })
	}
}
