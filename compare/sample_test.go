package compare

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

// Reached returns the operations with their dtypes, the traits of their launches and the words in the names of cases.
func Reached(ops []Op) map[string]bool {
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

// CountPrograms returns the number of variants of kernels that ops launch in dtypes.
func CountPrograms(ops []Op, dtypes []mlxc.DType) int { return len(programsOf(ops, dtypes)) }

// CountLaunches returns the number of kernels that a case launches in a dtype.
func CountLaunches(op string, c Case, dtype mlxc.DType) int { return len(c.programs(op, dtype)) }

// SampleNames lists the cases of the sample with their dtypes.
func SampleNames(ops []Op) (list []string) {
	for _, op := range Sample(ops) {
		for _, c := range op.Cases {
			for _, dtype := range c.DTypes {
				list = append(list, op.Name+" "+c.Name+" "+dtype.String())
			}
		}
	}
	return list
}

// TargetNames returns the names of the judged results of a case.
func TargetNames(c Case) (names []string) {
	for _, t := range c.targets(mlxc.Float32) {
		names = append(names, t.name)
	}
	return names
}

// Empty reports whether an input of the case has no elements.
func (c Case) Empty() bool { return c.empty() }

// OracleInputs returns the oracle's inputs of a case in float32.
func OracleInputs(op string, c Case) ([]oracle.Tensor, error) {
	data, err := drawOperands(RNG(op, c.Name), c, mlxc.Float32)
	return tensors(data.inputs), err
}

func TestCompileKernels(t *testing.T) {
	op := altered(func(*Case) {})
	var calls [][2]int
	CompileKernels(t.Context(), op, DTypes(), func(compiled, all int) { calls = append(calls, [2]int{compiled, all}) })
	want := make([][2]int, 10)
	for i := range want {
		want[i] = [2]int{i, 9} // three kernels in three dtypes
	}
	require.Equal(t, want, calls)
	require.Nil(t, ahead.Current())

	// A case without our function has no kernels, and a panic in it is reported by Run.
	for _, ours := range []mlxc.Func{nil, func([]*mlxc.Array) []*mlxc.Array { panic("out of ink") }} {
		CompileKernels(t.Context(), altered(func(c *Case) { c.Ours = ours }), DTypes(), func(_, all int) { require.Zero(t, all) })
	}
}
