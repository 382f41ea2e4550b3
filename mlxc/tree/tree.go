package tree

import (
	"fmt"
	"slices"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Flatten returns the arrays of t in their order. It returns an error if t is not a tree (see the package
// documentation) or an array in it is nil. Invalid arrays are returned as they are.
func Flatten[T any](t T) ([]*mlxc.Array, error) {
	_, arrays, err := flatten(t)
	return arrays, err
}

// Names returns the names of t's arrays, in the order of Flatten. The arrays may be nil.
func Names[T any](t T) ([]string, error) {
	var names []string
	_, err := walk(t, func(name string, a *mlxc.Array) (*mlxc.Array, error) {
		names = append(names, name)
		return a, nil
	})
	return names, err
}

func flatten[T any](t T) (names []string, arrays []*mlxc.Array, err error) {
	_, err = walk(t, func(name string, a *mlxc.Array) (*mlxc.Array, error) {
		names, arrays = append(names, name), append(arrays, a)
		return a, notNil(name, a)
	})
	if err != nil {
		return nil, nil, err
	}
	return names, arrays, nil
}

func notNil(name string, a *mlxc.Array) error {
	if a == nil {
		return fail(name, "%w", mlxc.ErrNil)
	}
	return nil
}

// Unflatten returns a tree like `like` that holds arrays, in the order of Flatten. The arrays of `like` may be nil. It
// returns an error if the number of arrays differs or one of them is nil.
func Unflatten[T any](like T, arrays []*mlxc.Array) (T, error) {
	next := 0
	out, err := walk(like, func(name string, _ *mlxc.Array) (*mlxc.Array, error) {
		next++
		if next > len(arrays) {
			return nil, nil
		}
		return arrays[next-1], notNil(name, arrays[next-1])
	})
	if err == nil && next != len(arrays) {
		err = fmt.Errorf("tree: there are %d arrays, but the tree has places for %d", len(arrays), next)
	}
	return orZero(out, err)
}

func orZero[T any](t T, err error) (T, error) {
	if err != nil {
		var zero T
		return zero, err
	}
	return t, nil
}

// Map returns a tree like t with every array a replaced by f(a). It calls f in the order of Flatten, and returns an
// error if a result is nil.
func Map[T any](f func(a *mlxc.Array) *mlxc.Array, t T) (T, error) {
	return orZero(walk(t, func(name string, a *mlxc.Array) (*mlxc.Array, error) {
		if err := notNil(name, a); err != nil {
			return nil, err
		}
		b := f(a)
		return b, notNil(name, b)
	}))
}

// Map2 returns a tree like t with every array a replaced by f(a, b), where b is the array at the same position of u.
// Both trees must have the same names.
func Map2[T, U any](f func(a, b *mlxc.Array) *mlxc.Array, t T, u U) (T, error) {
	var zero T
	names, others, err := flatten(u)
	if err != nil {
		return zero, err
	}
	ours, err := Names(t)
	if err == nil {
		err = sameNames(ours, names)
	}
	if err != nil {
		return zero, err
	}
	next := 0
	return Map(func(a *mlxc.Array) *mlxc.Array {
		next++
		return f(a, others[next-1])
	}, t)
}

// sameNames returns an error that names the first difference of two trees.
func sameNames(a, b []string) error {
	if slices.Equal(a, b) {
		return nil
	}
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	name := func(names []string) string {
		if i < len(names) {
			return fmt.Sprintf("array %q", names[i])
		}
		return "no array"
	}
	return fmt.Errorf("tree: one tree has %s where the other has %s", name(a), name(b))
}

// ToMap returns the arrays of t by name, as in files.
func ToMap[T any](t T) (map[string]*mlxc.Array, error) {
	names, arrays, err := flatten(t)
	if err != nil {
		return nil, err
	}
	m := make(map[string]*mlxc.Array, len(names))
	for i, name := range names {
		m[name] = arrays[i]
	}
	return m, nil
}

// FromMap returns a tree like `like` with the arrays of m by name. If an array of `like` is not nil, the array of m
// must have its shape and dtype. m must have an array for each name and no others. A nil optional array of `like` stays
// nil if m does not have it.
func FromMap[T any](like T, m map[string]*mlxc.Array) (T, error) {
	used := map[string]bool{}
	out, err := walkWanted(like, func(name string, old *mlxc.Array) (*mlxc.Array, error) {
		a, ok := m[name]
		if !ok {
			return nil, fail(name, "the map has no such array")
		}
		if err := notNil(name, a); err != nil {
			return nil, err
		}
		if old.Err() == nil && a.Err() == nil && (old.DType() != a.DType() || !slices.Equal(old.Shape(), a.Shape())) {
			return nil, fail(name, "the map's array is %v %v: it must be %v %v", a.DType(), a.Shape(), old.DType(),
				old.Shape())
		}
		used[name] = true
		return a, nil
	}, func(name string) bool { _, ok := m[name]; return ok })
	if err == nil && len(used) != len(m) {
		for name := range m {
			if !used[name] {
				err = fail(name, "the tree has no place for this array of the map")
			}
		}
	}
	return orZero(out, err)
}

// Eval computes all arrays of t; see mlxc.Eval.
func Eval[T any](t T) error {
	arrays, err := Flatten(t)
	if err != nil {
		return err
	}
	return mlxc.Eval(arrays...)
}

// Keep moves the arrays of t out of the scope that owns them; see mlxc.Array.Keep.
func Keep[T any](t T) error { return each(t, func(a *mlxc.Array) { a.Keep() }) }

// Free releases the memory of t's arrays, unless something else needs it. A training loop frees the old parameters and
// states after each step.
func Free[T any](t T) error { return each(t, (*mlxc.Array).Free) }

func each[T any](t T, f func(*mlxc.Array)) error {
	arrays, err := Flatten(t)
	for _, a := range arrays {
		f(a)
	}
	return err
}
