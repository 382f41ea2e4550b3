package mlxc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

func TestSplit(t *testing.T) {
	x := counting(2, 6)
	parts := x.Split(3, 1)
	require.Len(t, parts, 3)
	for i, p := range parts {
		want := []float32{float32(2 * i), float32(2*i + 1), float32(6 + 2*i), float32(7 + 2*i)}
		require.Equal(t, []int{2, 2}, p.Shape())
		require.Equal(t, want, floats(t, p))
	}
	parts = x.SplitAt(-1, 1, 1, 4)
	require.Len(t, parts, 4)
	require.Equal(t, []float32{0, 6}, floats(t, parts[0]))
	require.Equal(t, []int{2, 0}, parts[1].Shape())
	require.Equal(t, []float32{1, 2, 3, 7, 8, 9}, floats(t, parts[2]))
	require.Equal(t, []float32{4, 5, 10, 11}, floats(t, parts[3]))
	require.Equal(t, floats(t, x), floats(t, x.SplitAt(0)[0]))
	require.Equal(t, floats(t, x), floats(t, mlxc.Concatenate(1, parts...)))
}

// Every part of a failed split is invalid by itself, so callers need no check before they use one.
func TestFailedSplitsHaveTheirParts(t *testing.T) {
	x := counting(2, 6)
	positions := []int{4, 2}
	for want, parts := range map[string]arrays{
		"equal size":       x.Split(4, 1),
		"0 parts":          x.Split(0, 1),
		"out of bounds":    x.Split(2, 2),
		"32 bits":          x.Split(1<<40, 1),
		"do not ascend":    x.SplitAt(1, positions...),
		"between 0 and 6":  x.SplitAt(1, 7),
		"no axis 2":        x.SplitAt(2, 1),
		"no axis 9":        x.SplitAt(9),
		"the array is nil": (*mlxc.Array)(nil).Split(5, 0),
		"mlxc: add":        x.Add(counting(5)).SplitAt(0, 1, 2, 3),
	} {
		for _, p := range parts {
			require.ErrorContains(t, p.Err(), want)
		}
	}
	require.Len(t, x.Split(4, 1), 4)
	require.Len(t, x.Split(0, 1), 1)
	require.Len(t, x.Split(1<<40, 1), 1024)
	require.Len(t, x.SplitAt(1, positions...), 3)
	require.Equal(t, []int{4, 2}, positions)
}

func TestStack(t *testing.T) {
	a, b := counting(2, 2), counting(2, 2).MulScalar(10)
	require.Equal(t, []float32{0, 1, 2, 3, 0, 10, 20, 30}, floats(t, mlxc.Stack(0, a, b)))
	require.Equal(t, []float32{0, 1, 0, 10, 2, 3, 20, 30}, floats(t, mlxc.Stack(1, a, b)))
	require.Equal(t, []float32{0, 0, 1, 10, 2, 20, 3, 30}, floats(t, mlxc.Stack(-1, a, b)))
	require.Equal(t, []int{2, 2, 1}, mlxc.Stack(2, a).Shape())
}

func TestFlattenAndSwapAxes(t *testing.T) {
	x := counting(2, 3, 4)
	require.Equal(t, []int{6, 4}, x.Flatten(0, 1).Shape())
	require.Equal(t, []int{2, 12}, x.Flatten(-2, -1).Shape())
	require.Equal(t, []int{24}, x.Flatten(0, -1).Shape())
	require.Equal(t, []int{2, 3, 4}, x.Flatten(1, 1).Shape())
	require.Equal(t, floats(t, x), floats(t, x.Flatten(0, 2)))
	swapped := x.SwapAxes(0, -1)
	require.Equal(t, []int{4, 3, 2}, swapped.Shape())
	got := floats(t, swapped)
	for i := range 4 {
		for j := range 3 {
			for k := range 2 {
				require.Equal(t, float32((k*3+j)*4+i), got[(i*3+j)*2+k])
			}
		}
	}
}

func TestTileAndRepeat(t *testing.T) {
	x := counting(2, 2)
	require.Equal(t, []float32{0, 1, 0, 1, 2, 3, 2, 3}, floats(t, x.Tile(2)))
	require.Equal(t, []float32{0, 1, 2, 3, 0, 1, 2, 3}, floats(t, x.Tile(2, 1)))
	require.Equal(t, []int{3, 2, 4}, x.Tile(3, 1, 2).Shape())
	require.Equal(t, []int{2, 0}, x.Tile(0).Shape())
	require.Equal(t, []float32{0, 0, 1, 1, 2, 2, 3, 3}, floats(t, x.Repeat(2, 1)))
	require.Equal(t, []float32{0, 1, 0, 1, 2, 3, 2, 3}, floats(t, x.Repeat(2, -2)))
	require.Equal(t, []int{0, 2}, x.Repeat(0, 0).Shape())
}
