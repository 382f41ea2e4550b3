package corpus

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// A launchCase is a launch of a kernel and the outputs that mathematics defines.
type launchCase struct {
	file   string // below the folder of the corpus
	launch string // launch description
	// want returns the expected outputs, or is nil if the findings leave none. Its argument holds all inputs, and the initial content of in-out buffers.
	want func(in arrays) arrays
	// tolerance is the largest error, relative to the expected value or to 1 if that is larger.
	tolerance float64
	// findings are the kinds of the findings in the kernel, which docs/sanitize-bugs.md explains.
	findings []sanitizer.FindingKind
	wrong    bool // the outputs are wrong, as that document explains
}

// arrays are the elements of buffers by name. Complex numbers and vectors have several elements. NaN as an expected
// element matches any value.
type arrays map[string][]float64

// structure returns an input of elements uint32 with the bytes of a structure's members, aligned as in Metal.
func structure(members ...any) string {
	var data []byte
	widest := 4
	for _, m := range members {
		size := binary.Size(m)
		widest = max(widest, size)
		for len(data)%size != 0 {
			data = append(data, 0)
		}
		data, _ = binary.Append(data, binary.NativeEndian, m)
	}
	for len(data)%widest != 0 {
		data = append(data, 0)
	}
	words := make([]uint32, len(data)/4)
	for i := range words {
		words[i] = binary.NativeEndian.Uint32(data[4*i:])
	}
	return fmt.Sprintf("uint32[%d]:%s", len(words), list(words))
}

// list returns numbers separated by commas.
func list[T any](numbers []T) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(numbers), "[]"), " ", ",")
}

// numbers returns an input with these elements.
func numbers(dtype string, values ...int) string {
	return fmt.Sprintf("%s[%d]:%s", dtype, len(values), list(values))
}

// libraries holds loaded files by name.
var libraries sync.Map

func load(t *testing.T, folder string, c launchCase) *sanitizer.Library {
	t.Helper()
	repository, _, _ := strings.Cut(c.file, "/")
	once, _ := libraries.LoadOrStore(c.file, sync.OnceValues(func() (*sanitizer.Library, error) {
		options := sanitizer.NativeOptions{Include: []string{repository}}
		return sanitizer.LoadNative(t.Context(), os.DirFS(folder), c.file, options)
	}))
	lib, err := once.(func() (*sanitizer.Library, error))()
	require.NoError(t, err)
	return lib
}

// run checks a launch, and compares its outputs and findings with the expected ones.
func run(t *testing.T, folder string, c launchCase) {
	specs, err := launchspec.Parse([]byte("// launch: " + c.launch))
	require.NoError(t, err)
	spec := specs[0]
	lib := load(t, folder, c)
	kernel, err := lib.Kernel(spec.Kernel, spec.Options()...)
	require.NoError(t, err)
	launch, inputs, err := spec.Arguments(kernel, 1)
	require.NoError(t, err)
	report, err := kernel.Sanitize(t.Context(), launch, sanitizer.Config{}, inputs...)
	require.NoError(t, err)

	var kinds []sanitizer.FindingKind
	for _, f := range report.Findings {
		t.Log(f)
		if _, name, _ := strings.Cut(f.Site.File, "/"); f.Severity == sanitizer.SeverityError {
			require.Contains(t, document(), fmt.Sprintf("%s:%d: error: %s", name, f.Site.Line, f.Kind))
		}
		if !slices.Contains(kinds, f.Kind) {
			kinds = append(kinds, f.Kind)
		}
	}
	// One finding may stand for another with the same cause.
	require.Subset(t, c.findings, kinds)
	require.Equal(t, len(c.findings) > 0, len(kinds) > 0)
	if c.want == nil {
		require.NotEmpty(t, kinds)
		return
	}
	require.NotNil(t, report.Outputs)

	in := arrays{}
	for i, name := range kernel.Inputs() {
		in[name] = inputs[i].Values()
	}
	for name, a := range launch.InOut {
		in[name] = a.Values()
	}
	want := c.want(in)
	compared, different := 0, 0
	for i, name := range kernel.Outputs() {
		if want[name] != nil {
			compared++
			different += c.compare(t, name, report.Outputs[i].Values(), want[name])
		}
	}
	require.Len(t, want, compared, "an expected output is no output of the kernel: %v", kernel.Outputs())
	require.NotZero(t, compared)
	require.Equal(t, c.wrong, different > 0, "%d elements differ", different)
}

// document returns the document that explains the errors in the kernels.
var document = sync.OnceValue(func() string {
	text, err := os.ReadFile("../../docs/sanitize-bugs.md")
	if err != nil {
		return err.Error()
	}
	return string(text)
})

// compare logs the first elements that differ from the expected ones, and returns their number.
func (c launchCase) compare(t *testing.T, name string, got, want []float64) (different int) {
	t.Helper()
	require.Len(t, got, len(want), name)
	for i := range want {
		if math.IsNaN(want[i]) || got[i] == want[i] || math.Abs(got[i]-want[i]) <= c.tolerance*max(1, math.Abs(want[i])) {
			continue
		}
		if different++; different <= 5 {
			t.Logf("%s[%d] is %v; want %v", name, i, got[i], want[i])
		}
	}
	return different
}

// Kernels of each repository give the values that mathematics defines, without false findings, on sizes with several
// threadgroups and partial edges.
func TestLaunches(t *testing.T) {
	skip.Program(t, skip.GXX)
	folder := Folder(t)
	for _, cases := range [][]launchCase{
		candleCases(), ggmlCases(), lambdaworksCases(), mistralrsCases(), mlxCases(), tractCases(),
	} {
		require.NotEmpty(t, cases)
		for _, c := range cases {
			kernel, _, _ := strings.Cut(c.launch, " ")
			t.Run(filepath.Base(c.file)+"/"+kernel, func(t *testing.T) {
				t.Parallel()
				run(t, folder, c)
			})
		}
	}
}
