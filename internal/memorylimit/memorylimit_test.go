package memorylimit

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestFromEnvironment(t *testing.T) {
	before := mlxc.MemoryLimit()
	t.Cleanup(func() { _, _ = mlxc.SetMemoryLimit(before) })
	t.Setenv(Variable, "")
	require.NoError(t, FromEnvironment())
	require.Equal(t, before, mlxc.MemoryLimit())
	for text, want := range map[string]int{"512MiB": 512 << 20, "3GiB": 3 << 30} {
		t.Setenv(Variable, text)
		require.NoError(t, FromEnvironment())
		require.Equal(t, want, mlxc.MemoryLimit())
	}
	for _, text := range []string{"0GiB", "-1GiB", "3", "3GB", "GiB", "1.5GiB", "99999999999GiB", "3 GiB"} {
		t.Setenv(Variable, text)
		require.EqualError(t, FromEnvironment(),
			`MLXGRAD_MEMORY_LIMIT is "`+text+`"; it must be a positive whole number of MiB or GiB, such as 3GiB`)
	}
}
