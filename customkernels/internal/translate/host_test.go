package translate

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

func TestHostGolden(t *testing.T) {
	for _, name := range []string{"norm", "histogram", "mlx_sample", "mlx_atomic"} {
		host, err := Host(generatedTexts(t)[name], Conversions{})
		require.NoError(t, err)
		golden := filepath.Join("testdata", name+".golden.cpp")
		if *update {
			require.NoError(t, os.WriteFile(golden, []byte(host.Source), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), host.Source, "%s differs; if that is meant, run the tests with -update", golden)
	}
}

func TestHostDescription(t *testing.T) {
	host, err := Host(generatedTexts(t)["mlx_sample"], Conversions{})
	require.NoError(t, err)
	require.Equal(t, "custom_kernel_rms_dx__float16_t_3_1_float16_t_bfloat16_tc_int32_t_floats_float16_t_float",
		host.KernelName)
	require.Equal(t, []HostBuffer{
		{"x", "float16_t", false, false},
		{"w", "bfloat16_t", false, false},
		{"dims", "int32_t", false, false},
		{"s0", "float", true, false},
		{"dx", "float16_t", false, true},
		{"p", "float", false, true},
	}, host.Buffers)

	host, err = Host(generatedTexts(t)["mlx_atomic"], Conversions{})
	require.NoError(t, err)
	require.Equal(t, []HostBuffer{
		{"x", "float16_t", false, false},
		{"x_shape", "int", false, false},
		{"x_strides", "int64_t", false, false},
		{"x_ndim", "int", true, false},
		{"h", "atomic<uint32_t>", false, true},
		{"y", "atomic<float>", false, true},
	}, host.Buffers)
}

// The translation changes qualifiers, attributes, and the constructs that depend on them. All other tokens keep their
// positions.
func TestHostChangesQualifiersOnly(t *testing.T) {
	for name, text := range generatedTexts(t) {
		t.Run(name, func(t *testing.T) {
			host, err := Host(text, Conversions{})
			require.NoError(t, err)
			_, source, ok := strings.Cut(host.Source, "\n")
			require.True(t, ok)
			source = openedNamespace.ReplaceAllString(source, "")
			requireOnlyQualifiersChanged(t, text, source)
		})
	}
}

// openedNamespace matches the namespace that the translation opens, with the overloads of Metal's functions.
var openedNamespace = regexp.MustCompile(
	`namespace metal \{ (void \w+\(detail::nothing&\); )*namespace mlxg_shader \{ (using metal::\w+; )*`)

var threadgroupReference = regexp.MustCompile(`^typedef (.+?) (mlxg_tg_type_\d+)((?: \[[^;]*\])?); (\S+)& (\w+) = mlxg::threadgroup_variable<(\S+), \d+>\(\)`)

// requireOnlyQualifiersChanged compares the texts token by token.
func requireOnlyQualifiersChanged(t *testing.T, text, host string) {
	t.Helper()
	in, out := msl.Tokenize(text), msl.Tokenize(host)
	j := 0
	spoiled := 0 // a line whose columns have moved
	for i := 0; i < len(in); i++ {
		a, b := in[i], msl.Token{}
		if j < len(out) {
			b = out[j]
		}
		// The second of two overloads that became equal is removed.
		rest := text[a.Offset:]
		switch {
		case (strings.HasPrefix(rest, "template <typename T>\ninline float load(const constant T* p") ||
			strings.HasPrefix(rest, "template <typename V> constant V* mlxg_cast_const(")) && a.Line != b.Line:
			for !in[i].Is("}") {
				i++
			}
		case a.Kind == b.Kind && a.Text == b.Text && !(a.Is("template") && in[i+1].Is("[") && a.Directive == 0):
			require.Equal(t, a.Line, b.Line, "%q", a.Text)
			if j > 0 && a.Line > 1 && spoiled != a.Line {
				require.Equal(t, a.Column, b.Column, "line %d: %q", a.Line, a.Text)
			}
			j++
		case a.Is("[") && in[i+1].Is("["): // an attribute
			for depth := 0; ; i++ {
				if in[i].Is("[") {
					depth++
				} else if in[i].Is("]") {
					if depth--; depth == 0 {
						break
					}
				}
			}
		case a.Is("template") && in[i+1].Is("["): // an instantiation
			for !in[i].Is(";") {
				i++
			}
		case a.Is("threadgroup") && b.Is("typedef"):
			spoiled = a.Line
			for { // each declarator
				m := threadgroupReference.FindStringSubmatch(host[out[j].Offset:])
				require.NotNil(t, m, "line %d", a.Line)
				require.Equal(t, m[2], m[4])
				require.Equal(t, m[2], m[6])
				written := m[5] + strings.ReplaceAll(m[3], " [", "[")
				if in[i].Is("threadgroup") {
					written = "threadgroup " + m[1] + " " + written
				} else {
					written = ", " + written
				}
				for _, word := range msl.Tokenize(written) {
					require.Equal(t, word.Text, in[i].Text, "line %d", a.Line)
					i++
				}
				for end := out[j].Offset + len(m[0]); j < len(out) && out[j].Offset < end; {
					j++
				}
				if !in[i].Is(",") {
					break
				}
				require.True(t, out[j].Is(";"))
				j++
			}
			i--
		case a.Text == `"clang loop unroll(full)"` && b.Text == strconv.Quote(Unroll):
			j++
		case a.Is("constant") && b.Is("const"):
			j++
		case a.Is("device"), a.Is("constant"), a.Is("threadgroup"), a.Is("thread"), a.Is("kernel"):
		case a.Is("DEV") && in[i-1].Directive == 0: // the example's macro for device
		default:
			require.Fail(t, "changed", "line %d: %q became %q", a.Line, a.Text, b.Text)
		}
	}
	if j < len(out) && out[j].Is("}") {
		j += 2
	}
	require.True(t, strings.HasPrefix(host[out[j].Offset:], "namespace {\nvoid mlxg_invoke("))
}
