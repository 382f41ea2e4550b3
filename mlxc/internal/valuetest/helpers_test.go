package valuetest

import (
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

type arrays = []*mlxc.Array

var (
	wide     = mlxtest.Wide
	near     = mlxtest.Near
	floats   = mlxtest.Read[float32]
	counting = mlxtest.Counting
	normal   = mlxtest.Normal
	dominant = mlxtest.Dominant
)

func read[T mlxc.Element](t testing.TB, a *mlxc.Array) []T {
	t.Helper()
	return mlxtest.Read[T](t, a)
}

// single returns a Func of one argument and one result that calls f.
func single(f func(a *mlxc.Array) *mlxc.Array) mlxc.Func {
	return func(args arrays) arrays { return arrays{f(args[0])} }
}
