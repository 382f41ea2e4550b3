package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const pkg = "../.."

var headers = filepath.Join(pkg, "..", "third_party", "mlx-c", "install", "include", "mlx", "c")

func surveyed(t *testing.T) *coverage {
	c, err := survey(headers, pkg)
	require.NoError(t, err)
	return c
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	files, err := allFiles(surveyed(t), pkg)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for name, want := range files {
		have, err := os.ReadFile(filepath.Join(pkg, name))
		require.NoError(t, err)
		require.Equal(t, string(want), string(have), "%s: run go generate ./mlxc", name)
	}
	var have []string
	for _, pattern := range []string{"", "libmlxg", "../internal/library"} {
		found, err := filepath.Glob(filepath.Join(pkg, pattern, generatedPrefix+"*"))
		require.NoError(t, err)
		have = append(have, found...)
	}
	require.Len(t, have, len(files), "a file of an earlier run is left: run go generate ./mlxc")
}

func TestInterface(t *testing.T) {
	all := interfaceOf(`
// A comment with char* mlxg_none(void);
typedef int (*mlxg_fn)(void* ctx);
char* mlxg_eval(const uintptr_t* arrays, size_t n); // and mlxg_other(void);
mlxg_results mlxg_two(
    uintptr_t id,
    const int* list, char** err);
void mlxg_clear(void);
const char* mlxg_name(void* group);
`)
	require.Equal(t, []libraryFunction{
		{"char*", "mlxg_eval", "const uintptr_t* arrays, size_t n", []string{"arrays", "n"}},
		{"mlxg_results", "mlxg_two", "uintptr_t id, const int* list, char** err", []string{"id", "list", "err"}},
		{"void", "mlxg_clear", "void", nil},
		{"const char*", "mlxg_name", "void* group", []string{"group"}},
	}, all)
}

func TestParseHeader(t *testing.T) {
	all, err := parseHeader("x", `
#ifndef X
#define X
extern "C" {
/** mlx_in_a_comment(int); */
typedef struct mlx_thing_ {
  void* ctx;
} mlx_thing;
typedef struct mlx_other_ mlx_other;
static inline mlx_thing mlx_inlined(void) {
  mlx_thing t;
  return t;
}
int mlx_add(
    mlx_array* res,
    const mlx_array a,
    const mlx_array b /* may be null */,
    const int* axes,
    size_t axes_num,
    const mlx_stream s);
void mlx_each(void (*f)(int, void*), void* payload);
}
#endif`)
	require.NoError(t, err)
	var got []string
	for _, d := range all {
		got = append(got, d.signature())
	}
	require.Equal(t, []string{
		"int mlx_add(mlx_array* res, const mlx_array a, const mlx_array b, const int* axes, size_t axes_num, const mlx_stream s)",
		"void mlx_each(void (*f)(int, void*) function, void* payload)",
	}, got)
	c, ok := all[0].parse()
	require.True(t, ok)
	require.Equal(t, []argument{{"a", array}, {"b", optional}, {"axes", integers}, {"s", stream}}, c.args)
	_, ok = all[1].parse()
	require.False(t, ok)
}

// Irregular new functions and unused entries of skipped.txt cause an error with their names.
func TestUnboundFunctionsAreNamed(t *testing.T) {
	c := &coverage{
		declarations: []declaration{
			{name: "mlx_new", header: "ops", result: "int", params: []parameter{{name: "f", ctype: "mlx_closure"}}},
			{name: "mlx_old", header: "array", result: "int"},
		},
		byHand: map[string]string{"mlx_old": "array.go"}, skipped: map[string]string{},
	}
	var err error
	c.stale, err = c.readSkipped("mlx_old  bound all the same\nmlx_gone  it is gone\n")
	require.NoError(t, err)
	err = c.err()
	require.ErrorContains(t, err, "mlx_new(mlx_closure f)")
	require.ErrorContains(t, err, "mlx_old")
	require.ErrorContains(t, err, "mlx_gone")
	require.Equal(t, 3, len(strings.Split(err.Error(), "\n")))
}
