package customkernels

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A namedLaunch is a launch of a correct kernel with a check of its results.
type namedLaunch struct {
	name    string
	kernel  *Kernel
	launch  Launch
	inputs  arrays
	check   func(t testing.TB, outputs arrays)
	finding sanitizer.FindingKind // a portability finding that the checker must report, or ""
}

// correctLaunches returns launches of every shader of testdata/correct, in every dtype that the shader supports and
// with sizes that are no multiples of the threadgroup. An error that the checker finds in one of them is a false
// positive. The inputs are the same in every run.
func correctLaunches(t testing.TB) []namedLaunch {
	t.Helper()
	c := &corpus{Source: mlxtest.NewSource(t, 2, 71), kernels: map[string]*Kernel{}}
	for _, add := range []func(*corpus){
		addScans, addSorts, addMatrixProducts, addRowNorms, addAttention, addConvolutions,
		addGrids, addVectors, addAtomics, addTables, addLanguage, addConjugateGradients,
	} {
		add(c)
	}
	return c.list
}

// A corpus collects launches. All inputs come from one random source.
type corpus struct {
	*mlxtest.Source
	kernels map[string]*Kernel
	list    []namedLaunch
}

// kernel returns a kernel of a file of testdata/correct.
func (c *corpus) kernel(file, name string) *Kernel {
	c.T.Helper()
	key := file + " " + name
	if k := c.kernels[key]; k != nil {
		return k
	}
	lib, err := Load(os.DirFS("testdata/correct"), file+".metal")
	require.NoError(c.T, err)
	k, err := lib.Kernel(name)
	require.NoError(c.T, err)
	c.kernels[key] = k
	return k
}

// add appends a launch.
func (c *corpus) add(n namedLaunch) { c.list = append(c.list, n) }

func TestCorrectShaders(t *testing.T) {
	files, err := os.ReadDir("testdata/correct")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 22)
	unused := map[string]bool{}
	for _, f := range files {
		unused[f.Name()] = true
	}
	names := map[string]bool{}
	all := correctLaunches(t)
	for _, l := range all {
		require.False(t, names[l.name], "two launches are named %s", l.name)
		names[l.name] = true
	}
	for _, l := range sampleLaunches(all) {
		delete(unused, l.kernel.loaded.File)
		t.Run(l.name, func(t *testing.T) {
			t.Parallel() // the compiler takes most of the time
			outputs := l.kernel.Launch(l.launch, l.inputs...)
			require.NoError(t, mlxc.Eval(outputs...))
			l.check(t, outputs)
		})
	}
	require.Empty(t, unused, "files that no launch takes a kernel of")
}

// The address-space check, which stands in for Apple's compiler, accepts the text of every launch.
func TestAddressSpacesOfCorrectShaders(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range sampleLaunches(correctLaunches(t)) {
		text, err := l.kernel.MetalSource(l.launch, l.inputs...)
		require.NoError(t, err, l.name)
		if seen[text] {
			continue
		}
		seen[text] = true
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			findings, err := addrspace.Check(t.Context(), text)
			require.NoError(t, err)
			require.Empty(t, findings)
		})
	}
}
