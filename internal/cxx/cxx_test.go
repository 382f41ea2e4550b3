package cxx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCommand(t *testing.T) {
	for value, want := range map[string][]string{
		"":                               nil,
		" \t":                            nil,
		"g++":                            {"g++"},
		" ccache  g++\t-m64 ":            {"ccache", "g++", "-m64"},
		`"/my tools/g++" -DX='a'`:        {"/my tools/g++", "-DX='a'"},
		`'/my "tools"/g++'`:              {`/my "tools"/g++`},
		`ccache "/my tools/g++" '' "-x"`: {"ccache", "/my tools/g++", "", "-x"},
	} {
		t.Setenv("CXX", value)
		words, err := Command()
		require.NoError(t, err, value)
		require.Equal(t, want, words, value)
	}
	t.Setenv("CXX", `"/my tools/g++`)
	_, err := Command()
	require.EqualError(t, err, `CXX="/my tools/g++: the quote " is not closed`)
}

func TestFindClang(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	require.Empty(t, FindClang("clang++", "clang"))
	// Each program that is added comes before the earlier ones.
	for _, name := range []string{"clang-14", "clang++-14", "clang-22", "clang"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o700))
		require.Equal(t, filepath.Join(dir, name), FindClang("clang++", "clang"))
	}
	require.Equal(t, filepath.Join(dir, "clang++-14"), FindClang("clang++"))
}
