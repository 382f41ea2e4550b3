package cxx

import (
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
