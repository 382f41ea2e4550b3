package skip

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeT records how a test ended.
type fakeT struct {
	testing.TB
	skipped, failed string
	logged          string
}

func (t *fakeT) Helper()                           {}
func (t *fakeT) Fatal(args ...any)                 { t.failed = fmt.Sprint(args...); runtime.Goexit() }
func (t *fakeT) Fatalf(format string, args ...any) { t.Fatal(fmt.Sprintf(format, args...)) }
func (t *fakeT) Skip(args ...any)                  { t.skipped = fmt.Sprint(args...); runtime.Goexit() }
func (t *fakeT) SkipNow()                          { t.Skip("now") }
func (t *fakeT) Logf(format string, args ...any)   { t.logged = fmt.Sprintf(format, args...) }

func ends(test func(t testing.TB)) *fakeT {
	t, done := &fakeT{}, make(chan bool)
	go func() {
		defer close(done)
		test(t)
	}()
	<-done
	return t
}

// The MLXGRAD_REQUIRE of this run has no unknown names. Other tests only read it if a tool is missing.
func TestRequiredToolsAreTools(t *testing.T) {
	_, err := required(GPU)
	require.NoError(t, err)
}

func TestMissing(t *testing.T) {
	lacksClang := func(t testing.TB) { Missing(t, Clang, "not on the PATH") }

	t.Setenv(Variable, "")
	end := ends(lacksClang)
	require.Equal(t, "clang is missing: not on the PATH", end.logged)
	require.NotEmpty(t, end.skipped)
	require.Empty(t, end.failed)

	t.Setenv(Variable, "g++, git")
	require.NotEmpty(t, ends(lacksClang).skipped)

	t.Setenv(Variable, "g++, clang,")
	end = ends(lacksClang)
	require.Empty(t, end.skipped)
	require.Equal(t, "clang, which MLXGRAD_REQUIRE lists, is missing: not on the PATH", end.failed)
	require.NotEmpty(t, ends(func(t testing.TB) { Lacking(t, Clang, "") }).failed)
	require.Empty(t, ends(func(t testing.TB) { Lacking(t, CUDA, "") }).failed)
	require.Empty(t, ends(func(t testing.TB) { Lacking(t, CUDA, "") }).skipped)
	require.Equal(t, "only Linux has it", ends(func(t testing.TB) { Platform(t, "only Linux has it") }).skipped)

	t.Setenv(Variable, "g++,clnag")
	require.Contains(t, ends(lacksClang).failed, `MLXGRAD_REQUIRE lists "clnag"; the tools are ["c++" "g++" "clang"`)
}

func TestProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv(Variable, "")
	program := func(t testing.TB) { Program(t, Git) }
	require.NotEmpty(t, ends(program).skipped)
	t.Setenv(Variable, "git")
	require.Contains(t, ends(program).failed, "git, which MLXGRAD_REQUIRE lists, is missing: ")
}
