package mlxc

import (
	"fmt"
	"slices"
)

// broadcastShapes returns the common shape of two broadcast arrays.
func broadcastShapes(a, b []int) ([]int, error) {
	if len(a) < len(b) {
		a, b = b, a
	}
	out := slices.Clone(a)
	for i, n := range b {
		k := len(a) - len(b) + i
		switch {
		case out[k] == n || n == 1:
		case out[k] == 1:
			out[k] = n
		default:
			return nil, fmt.Errorf("the shapes %s and %s cannot be broadcast to each other", shapeText(a), shapeText(b))
		}
	}
	return out, nil
}

// broadcastInto returns an error if an array of shape `from` cannot be broadcast to shape `to`.
func broadcastInto(from, to []int) error {
	out, err := broadcastShapes(from, to)
	if err == nil && !slices.Equal(out, to) {
		err = fmt.Errorf("the shape %s cannot be broadcast to %s", shapeText(from), shapeText(to))
	}
	return err
}
