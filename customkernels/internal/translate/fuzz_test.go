package translate

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl/msltest"
)

// FuzzParsedKernels looks for a shader file with a kernel that makes a translation panic or lose lines, or for an error
// without a position.
func FuzzParsedKernels(f *testing.F) {
	msltest.Seeds(f, seedFiles)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := parseText(text)
		if err != nil {
			return
		}
		for _, k := range file.Kernels {
			m := MLX(k)
			require.Equal(t, strings.Count(k.Body, "\n"), strings.Count(m.Body, "\n"))
			require.Contains(t, m.Body, k.Body)
			require.Equal(t, m.Header == "", !strings.HasSuffix(m.Header, "\n"))
			generated := generateDefault(k, false)
			host, err := Host(generated, Conversions{})
			if err != nil {
				requireProblem(t, err, generated)
				continue
			}
			require.Contains(t, host.Source, "mlxgrad_entry")
		}
	})
}

// FuzzHost looks for a generated text that makes the translation panic or moves its lines.
func FuzzHost(f *testing.F) {
	msltest.Seeds(f, seedFiles)
	f.Fuzz(func(t *testing.T, text string) {
		host, err := Host(text, Conversions{})
		if err != nil {
			requireProblem(t, err, text)
			return
		}
		at := strings.Index(host.Source, "namespace {\nvoid mlxg_invoke(")
		require.Positive(t, at)
		want := strings.Count(text, "\n") + HostLineShift
		if !strings.HasSuffix(text, "\n") {
			want++
		}
		if strings.Contains(host.Source, "mlxg_shader") {
			want++
		}
		require.Equal(t, want, strings.Count(host.Source[:at], "\n"))
	})
}

const seedFiles = "../*/testdata/*.metal"

// requireProblem checks that an error is an *msl.Error with a place in the text.
func requireProblem(t *testing.T, err error, text string) {
	t.Helper()
	var problem *msl.Error
	require.True(t, errors.As(err, &problem), "%T: %v", err, err)
	require.NotEmpty(t, problem.Message)
	require.Positive(t, problem.Line)
	require.Positive(t, problem.Column)
	require.LessOrEqual(t, problem.Line, 1+strings.Count(text, "\n"))
}

func TestHostOfHostileTexts(t *testing.T) {
	msltest.Hostile(t, func(text string) { _, _ = Host(text, Conversions{}) })
}
