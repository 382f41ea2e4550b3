package host

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func compileFile(t testing.TB, name string) *Library {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	l, err := Compile(t.Context(), string(text))
	require.NoError(t, err)
	return l
}
