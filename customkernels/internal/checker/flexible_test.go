package checker

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/toolchain"
)

// A last member with one element stands for all elements up to the end of the buffer.
func TestFlexibleArrays(t *testing.T) {
	compiler, err := toolchain.FindToolchain()
	require.NoError(t, err)
	const row = "struct row { uint count; uint data[1]; };\n"
	for name, test := range map[string]struct {
		text string
		slot int // of the access out of bounds; -2: there is none
	}{
		"pointer":           {row + "y[i] = reinterpret_cast<const row*>(x)->data[i % 39];", -2},
		"reference":         {row + "const row& r = *reinterpret_cast<const row*>(x);\ny[i] = r.data[i % 39];", -2},
		"element":           {row + "y[i] = reinterpret_cast<const row*>(x)[0].data[i % 39];", -2},
		"beyond the buffer": {row + "y[i] = reinterpret_cast<const row*>(x)->data[i];", 0},
		"own":               {row + "row r = {i, {i}};\ny[i] = r.data[i % 2];", -1},
		"not the last": {"struct row { uint data[1]; uint count; };\ny[i] = reinterpret_cast<const " +
			"row*>(x)->data[i % 39];", -1},
		"two elements": {"struct row { uint count; uint data[2]; };\ny[i] = reinterpret_cast<const " +
			"row*>(x)->data[i % 39];", -1},
	} {
		if name == "own" && compiler.Clang() {
			continue // docs/sanitize.md: clang takes each such member for a flexible one
		}
		r := runBody(t, test.text)
		if test.slot == -2 {
			require.Empty(t, r.Findings, name)
			continue
		}
		require.Len(t, r.Findings, 1, name)
		require.Equal(t, OutOfBounds, r.Findings[0].Kind, name)
		require.Equal(t, test.slot, r.Findings[0].Slot, name)
	}
}
