package upgrade

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The report lists every finding and a decision for each of them.
func TestReport(t *testing.T) {
	f := declaration{Kind: kindFunction, Name: "mlx::core::f", Header: "mlx/ops.h", Type: "void (int)", Result: "void"}
	g := f
	g.Name, g.Params = "mlx::core::g", []parameter{{"x", "int", "1"}}
	r := report{
		From: "1.0", To: "1.1", MLXC: "0.9", Rules: []string{"rules.json"}, Entry: "{}\n",
		Packages: []string{"cuda12: a is kept"},
		Changes: []change{
			{Old: &f, Users: []string{"mlx_f (mlx/c/ops.cpp)"}},
			{New: &g},
		},
		Unfit:     []error{errors.New("patch \"p\" fits 0 places")},
		Errors:    []compileError{{File: "libmlxg/a.cpp", Line: 3, Function: "a", Message: "no f", Notes: []string{"note"}}},
		Generated: []string{"mlxc/gen_ops.go would change"},
	}
	for format, want := range map[format]string{
		plain{}: `=== MLX 1.1 with mlx-c 0.9, compared with MLX 1.0

== Changed declarations in use: 1
- removed in mlx/ops.h: void f()
  - used by mlx_f (mlx/c/ops.cpp)

== Other changed declarations: 1
- added in mlx/ops.h: void g(int x = 1)

== Patch rules of mlx-c (rules.json)
- patch "p" fits 0 places

== Compiler errors: 1
- libmlxg/a.cpp
  - line 3, a: no f
    - note
The libraries were not linked.

== Generated bindings
- mlxc/gen_ops.go would change

== Packages
- cuda12: a is kept

== Entry of the lock file
{}

== Decisions for a person
- Adapt 1 patch rules in third_party/mlx-c/patches.
- Change libmlxg/a.cpp, a of libmlxg so that it compiles against both releases.
- f was removed: check its users, mlx_f (mlx/c/ops.cpp).
- g is new and mlx-c lacks it: decide whether mlxc needs it.
- Check a package. cuda12: a is kept.
- Run go generate ./mlxc and review the difference.
- Add the entry with ./build.sh upgrade 1.1 --write.
- Run ./build.sh setup --mlx 1.1, ./build.sh test and ./build.sh parity, and the same on a Mac and on an NVIDIA GPU.
- Set tested, and default if it is to be the default, in the lock file; complete NOTICE.md and CHANGELOG.md.
`,
		markdown{}: "- removed in mlx/ops.h: `` void f() ``\n  - used by mlx_f",
	} {
		var b strings.Builder
		require.NoError(t, r.write(&b, format))
		require.Contains(t, b.String(), want)
	}
}

// A release without differences says so in every section.
func TestReportWithoutDifferences(t *testing.T) {
	var b strings.Builder
	r := report{From: "1.0", To: "1.1", MLXC: "0.9", Rules: []string{"rules.json"}, Built: true, Written: true}
	require.NoError(t, r.write(&b, plain{}))
	for _, want := range []string{
		"in use: 0", "All rules fit.", "errors: 0", "compiled, linked and loaded", "Nothing would change.",
		"the same packages", "written to third_party/mlx-c/lock.json",
	} {
		require.Contains(t, b.String(), want)
	}
	require.NotContains(t, b.String(), "--write")
}
