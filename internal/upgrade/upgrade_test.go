package upgrade

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// testdata has two releases of a small MLX, and sources that use it.
const fixtures = "testdata"

func testClang(t *testing.T) clang {
	t.Helper()
	c, err := findClang(t.Context())
	if err != nil {
		skip.Missing(t, skip.Clang, err)
	}
	return c
}

func include(t *testing.T, release string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(fixtures, release))
	require.NoError(t, err)
	return dir
}

var (
	fixtureHeaders = []string{"mlx/mlx.h", "mlx/primitives.h"}
	fixtureUnits   = []string{"mlx/c/ops.cpp", "libmlxg/shim.cpp"}
)

// compareFixtures returns the changes of the fixtures with their users.
func compareFixtures(t *testing.T) []change {
	t.Helper()
	c := testClang(t)
	before, _, err := readHeaders(c, include(t, "old"), fixtureHeaders)
	require.NoError(t, err)
	after, bases, err := readHeaders(c, include(t, "new"), fixtureHeaders)
	require.NoError(t, err)
	changes := compare(before, after)
	check, err := checkSources(c, include(t, "sources"), include(t, "old"), fixtureUnits)
	require.NoError(t, err)
	require.Empty(t, check.errors)
	mark(changes, check.uses, bases)
	return changes
}

// Overloads pair by their parameters, private members do not count, a macro may declare a function, and the members of an
// added or removed class are not listed.
func TestChanges(t *testing.T) {
	var lines []string
	for _, c := range compareFixtures(t) {
		line := c.kindOf() + " in " + c.declaration().Header + ": " + short(c.declaration().String())
		for _, d := range c.Details {
			line += "\n  " + short(d)
		}
		if c.Users != nil {
			line += "\n  used by " + strings.Join(c.Users, ", ")
		}
		lines = append(lines, line)
	}
	require.Equal(t, strings.TrimSpace(wantChanges), strings.Join(lines, "\n"))
}

const wantChanges = `
changed in mlx/mlx.h: #define PATCH 3
  value: 3, formerly 2
added in mlx/mlx.h: Device::Kind::tpu = 5
changed in mlx/mlx.h: int Device::unused = {1}
  type: int, formerly long
  value: {1}, formerly {0}
  used by shim (libmlxg/shim.cpp)
removed in mlx/mlx.h: class Gone
  used by Wrapped
added in mlx/mlx.h: class New
changed in mlx/mlx.h: long answer(int step = LIMIT + 1) [noexcept]
  result: long, formerly int
  parameter step: default LIMIT + 1, formerly LIMIT
  now noexcept
changed in mlx/mlx.h: int array::ndim()
  no longer const
changed in mlx/mlx.h: template <typename T, int N = 8> std::vector<T> fill(const T & value, int count = N * 2)
  template parameters: typename T, int N = 8, formerly typename T, int N = 4
removed in mlx/mlx.h: array gone(const array & x)
  used by mlx_gone (mlx/c/ops.cpp)
changed in mlx/mlx.h: array product(const array & x, const std::optional<array> & bias = std::nullopt, ` +
	`const std::string & mode = "affine", const std::optional<array> & scale = std::nullopt, bool sorted = false, ` +
	`Device device = {Device::Kind::cpu})
  new parameter 4: const std::optional<array> & scale = std::nullopt
  used by mlx_product (mlx/c/ops.cpp)
added in mlx/mlx.h: array sum(const array & x, double axis)
  used by mlx_gone (mlx/c/ops.cpp)
changed in mlx/primitives.h: void Primitive::eval(const std::vector<array> & inputs, std::vector<array> & outputs) [virtual, pure]
  now pure
  used by Ours, shim (libmlxg/shim.cpp)
changed in mlx/primitives.h: long Primitive::hidden() [virtual]
  result: long, formerly int
  used by Ours
added in mlx/primitives.h: bool Primitive::same(const Primitive & other) [virtual, const]
  used by Ours
`

// All errors are found, in all files, with the functions around them.
func TestErrors(t *testing.T) {
	check, err := checkSources(testClang(t), include(t, "sources"), include(t, "new"), fixtureUnits)
	require.NoError(t, err)
	var places []string
	for _, e := range check.errors {
		places = append(places, e.Place()+" "+e.where())
	}
	require.Equal(t, []string{
		"mlx/c/ops.cpp:13 mlx_product", "mlx/c/ops.cpp:20 mlx_gone", "libmlxg/shim.cpp:14 outside of functions",
		"libmlxg/shim.cpp:20 shim",
	}, places)
	require.Contains(t, check.errors[0].Message, "could not bind to an lvalue of type 'bool'")
	require.Equal(t, []string{"passing argument to parameter 'scale' here"}, check.errors[0].Notes)
}

// Headers that do not compile give an error that names the place.
func TestHeadersThatDoNotCompile(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "mlx"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mlx", "mlx.h"), []byte("#pragma once\nint f(;\n"), 0o600))
	_, _, err := readHeaders(testClang(t), dir, []string{"mlx/mlx.h"})
	require.ErrorContains(t, err, "mlx/mlx.h:2: expected")
}

func TestIncludedHeaders(t *testing.T) {
	headers, err := includedHeaders(include(t, "sources"))
	require.NoError(t, err)
	require.Equal(t, fixtureHeaders, headers)
	present, missing := partition(include(t, "new"), append(headers, "mlx/none.h"))
	require.Equal(t, fixtureHeaders, present)
	require.Equal(t, []string{"mlx/none.h"}, missing)
}

func TestParameters(t *testing.T) {
	x, y := parameter{"x", "int", ""}, parameter{"y", "bool", "true"}
	for _, c := range []struct {
		old, new []parameter
		want     []string
	}{
		{[]parameter{x, y}, []parameter{x, y}, nil},
		{[]parameter{x}, []parameter{x, y}, []string{"new parameter 2: bool y = true"}},
		{[]parameter{x, y}, []parameter{y}, []string{"parameter 1 removed: int x"}},
		{[]parameter{x, y}, []parameter{y, x}, []string{"parameter x moved to place 2"}},
		{[]parameter{x}, []parameter{{"z", "int", ""}}, []string{"parameter x renamed z"}},
		{[]parameter{x}, []parameter{{"x", "long", "3"}}, []string{"parameter x: type long, formerly int", "parameter x: new default 3"}},
		{[]parameter{y}, []parameter{{"y", "bool", ""}}, []string{"parameter y: no default, formerly true"}},
		{[]parameter{{"", "int", ""}}, []parameter{{"n", "int", ""}}, nil},
	} {
		require.Equal(t, c.want, paramDetails(c.old, c.new), "%v to %v", c.old, c.new)
	}
}

func TestSplitFunctionType(t *testing.T) {
	for _, c := range [][3]string{
		{"array (const array &, int) const", "array", "const"},
		{"std::function<void (int)> (std::function<int (int)>) noexcept", "std::function<void (int)>", "noexcept"},
		{"void ()", "void", ""},
	} {
		result, rest := splitFunctionType(c[0])
		require.Equal(t, [2]string{c[1], c[2]}, [2]string{result, rest}, c[0])
	}
}
