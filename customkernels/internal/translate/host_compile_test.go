package translate

import (
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// The translation compiles with g++ and clang, if they are installed. A sample has one in twelve of the texts of each
// compiler, and the text below.
func TestHostCompiles(t *testing.T) {
	headers := t.TempDir()
	require.NoError(t, metalstd.WriteHost(headers))
	texts := generatedTexts(t)
	const handwritten = "names of the C library"
	texts[handwritten] = `constant float gamma = 1, y1 = 2;
inline float expm1f(float x) { return x; }
inline float index(int read, float* write) { return write[read]; }
typedef float (*activation)(float);
typedef int (sum_of)(thread int&);
#define SPACE device
struct Pair { float a, b; float sum() const device { return a + b; } float sum() const { return a + b; } };
template <typename T> float total(SPACE const T* p) { return p[0]; }
template <typename T> float total(constant T* p) { return p[0]; }
template <typename T, int N>
[[kernel]] void custom_kernel_test(
  const device T* x [[buffer(0)]],
  const constant float* w [[buffer(1)]],
  const constant float& eps [[buffer(2)]],
  device float* y [[buffer(3)]]) {
  float buffer[1] = {gamma + expm1f(y1)};
  threadgroup Pair pairs[4], one;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  y[0] = index(0, buffer) + abs(-1) + max(1, 2) + total(x) + total(w) + pairs[0].sum() + one.a + T(eps);
}

template [[host_name("custom_kernel_test")]] [[kernel]] decltype(custom_kernel_test<float, 4>) custom_kernel_test<float, 4>;
`
	for tool, names := range map[skip.Tool][]string{skip.GXX: {"g++"}, skip.Clang: {"clang++", "clang++-14"}} {
		i := slices.IndexFunc(names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
		if i < 0 {
			skip.Lacking(t, tool, fmt.Sprintf("none of %q is on the PATH", names))
			continue
		}
		compiler := names[i]
		options := precompile(t, tool, compiler, headers)
		for i, name := range slices.Sorted(maps.Keys(texts)) {
			if name != handwritten && !mlxtest.InSample(i) {
				continue
			}
			t.Run(compiler+"/"+name, func(t *testing.T) {
				t.Parallel()
				host, err := Host(texts[name], Conversions{})
				require.NoError(t, err)
				command := exec.Command(compiler, slices.Concat(options,
					[]string{"-x", "c++", "-fsyntax-only", "-"})...)
				command.Stdin = strings.NewReader(host.Source)
				output, err := command.CombinedOutput()
				require.NoError(t, err, "%s\n%s", output, host.Source)
			})
		}
	}
}

// precompile returns options with which a compiler reads texts that include metal_host.h. It precompiles the header,
// which takes most of the time of a text otherwise.
func precompile(t *testing.T, tool skip.Tool, compiler, folder string) []string {
	t.Helper()
	compiled := filepath.Join(t.TempDir(), metalstd.HostHeader+".gch")
	options := []string{"-std=c++20", "-w", "-I" + folder}
	command := exec.Command(compiler, slices.Concat(options,
		[]string{"-x", "c++-header", "-o", compiled, filepath.Join(folder, metalstd.HostHeader)})...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
	if tool == skip.Clang {
		return append(options, "-include-pch", compiled)
	}
	// In each folder, g++ prefers the precompiled header to the text.
	return slices.Insert(options, 0, "-I"+filepath.Dir(compiled))
}
