package tree_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

type linear struct {
	Weight, Bias *mlxc.Array
}

type base struct{ Scale *mlxc.Array }

type Shared struct{ Table *mlxc.Array }

type model struct {
	base
	*Shared
	QProj   *mlxc.Array
	RMSNorm *mlxc.Array `mlx:"norm"`
	Layers  []*linear
	Heads   map[string]linear
	ByWidth map[int]*mlxc.Array
	Pair    [2]*mlxc.Array
	Free    any
	Extra   *linear
	Width   int                 `mlx:"-"`
	cached  map[string]struct{} `mlx:"-"`
}

func number(v float32) *mlxc.Array { return mlxc.Scalar(v) }

func newModel() model {
	return model{
		base:    base{number(1)},
		Shared:  &Shared{number(2)},
		QProj:   number(3),
		RMSNorm: number(4),
		Layers:  []*linear{{number(5), number(6)}, {number(7), number(8)}},
		Heads:   map[string]linear{"b": {number(11), number(12)}, "a": {number(9), number(10)}},
		ByWidth: map[int]*mlxc.Array{10: number(14), 9: number(13)},
		Pair:    [2]*mlxc.Array{number(15), number(16)},
		Free:    map[string]any{"x": []any{number(17)}},
		Width:   64,
		cached:  map[string]struct{}{"kept": {}},
	}
}

func values(t *testing.T, arrays []*mlxc.Array) []float32 {
	t.Helper()
	var all []float32
	for _, a := range arrays {
		v, err := mlxc.ToSlice[float32](a)
		require.NoError(t, err)
		all = append(all, v...)
	}
	return all
}

func flattened[T any](t *testing.T, u T) []float32 {
	t.Helper()
	arrays, err := tree.Flatten(u)
	require.NoError(t, err)
	return values(t, arrays)
}

func TestOrderAndNames(t *testing.T) {
	m := newModel()
	for range 20 { // maps have no order of their own
		names, err := tree.Names(m)
		require.NoError(t, err)
		require.Equal(t, []string{
			"scale", "table", "q_proj", "norm",
			"layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
			"heads.a.weight", "heads.a.bias", "heads.b.weight", "heads.b.bias",
			"by_width.9", "by_width.10", "pair.0", "pair.1", "free.x.0",
		}, names)
		require.Equal(t, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, flattened(t, m))
	}
}

func TestUnflattenReturnsANewTree(t *testing.T) {
	m := newModel()
	arrays, err := tree.Flatten(m)
	require.NoError(t, err)
	var doubled []*mlxc.Array
	for _, a := range arrays {
		doubled = append(doubled, a.MulScalar(2))
	}
	twice, err := tree.Unflatten(m, doubled)
	require.NoError(t, err)
	require.Equal(t, values(t, doubled), flattened(t, twice))
	require.Equal(t, []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17}, flattened(t, m))
	require.Equal(t, 64, twice.Width)
	require.Equal(t, m.cached, twice.cached)
	require.Nil(t, twice.Extra)
	require.NotSame(t, m.Layers[0], twice.Layers[0])
	require.NotSame(t, m.Shared, twice.Shared)

	mapped, err := tree.Map(func(a *mlxc.Array) *mlxc.Array { return a.MulScalar(2) }, &m)
	require.NoError(t, err)
	require.Equal(t, flattened(t, twice), flattened(t, mapped))

	sum, err := tree.Map2((*mlxc.Array).Add, m, twice)
	require.NoError(t, err)
	require.Equal(t, float32(3*17), flattened(t, sum)[16])

	// Unflatten uses only the form of `like`; its arrays may be nil.
	empty := model{base: base{}, Shared: &Shared{}, Layers: []*linear{{}}, Free: (*mlxc.Array)(nil)}
	names, err := tree.Names(empty)
	require.NoError(t, err)
	filled, err := tree.Unflatten(empty, arrays[:len(names)])
	require.NoError(t, err)
	require.Equal(t, values(t, arrays[:len(names)]), flattened(t, filled))
}

func TestSingleArraysAndEmptyTrees(t *testing.T) {
	names, err := tree.Names(number(1))
	require.NoError(t, err)
	require.Equal(t, []string{""}, names)
	require.Equal(t, []float32{1}, flattened(t, number(1)))
	var none []*mlxc.Array
	require.Empty(t, flattened(t, none))
	require.Empty(t, flattened(t, struct{}{}))
	again, err := tree.Unflatten(none, nil)
	require.NoError(t, err)
	require.Nil(t, again)
	require.Equal(t, []float32{1}, flattened[any](t, number(1)))
	// The name of a single array is empty, so a map by name adds no component to the name of its field.
	byName, err := tree.ToMap(number(1))
	require.NoError(t, err)
	names, err = tree.Names(struct{ Master map[string]*mlxc.Array }{byName})
	require.NoError(t, err)
	require.Equal(t, []string{"master"}, names)
}

func TestMapsByName(t *testing.T) {
	m := newModel()
	byName, err := tree.ToMap(m)
	require.NoError(t, err)
	require.Len(t, byName, 17)
	require.Equal(t, []float32{7}, values(t, []*mlxc.Array{byName["layers.1.weight"]}))

	byName["layers.1.weight"] = number(70)
	loaded, err := tree.FromMap(m, byName)
	require.NoError(t, err)
	require.Equal(t, []float32{70}, values(t, []*mlxc.Array{loaded.Layers[1].Weight}))

	for _, c := range []struct {
		change  func(m map[string]*mlxc.Array)
		message string
	}{
		{func(m map[string]*mlxc.Array) { delete(m, "norm") }, "tree: norm: the map has no such array"},
		{
			func(m map[string]*mlxc.Array) { m["more"] = number(1) },
			"tree: more: the tree has no place for this array of the map",
		},
		{func(m map[string]*mlxc.Array) { m["norm"] = nil }, "tree: norm: the array is nil"},
		{
			func(m map[string]*mlxc.Array) { m["norm"] = mlxc.Zeros(mlxc.Float32, 2) },
			"tree: norm: the map's array is float32 [2]: it must be float32 []",
		},
		{
			func(m map[string]*mlxc.Array) { m["norm"] = mlxc.Zeros(mlxc.Float16) },
			"tree: norm: the map's array is float16 []: it must be float32 []",
		},
	} {
		byName, err := tree.ToMap(m)
		require.NoError(t, err)
		c.change(byName)
		_, err = tree.FromMap(m, byName)
		require.EqualError(t, err, c.message)
	}
}

type optional struct {
	Weight *mlxc.Array
	Bias   *mlxc.Array `mlx:",omitempty"`
	Scale  *mlxc.Array `mlx:"gain,omitempty"`
}

func TestOptionalArrays(t *testing.T) {
	both := []optional{{Weight: number(1)}, {number(2), number(3), number(4)}}
	names, err := tree.Names(both)
	require.NoError(t, err)
	require.Equal(t, []string{"0.weight", "1.weight", "1.bias", "1.gain"}, names)
	doubled, err := tree.Map(func(a *mlxc.Array) *mlxc.Array { return a.MulScalar(2) }, both)
	require.NoError(t, err)
	require.Nil(t, doubled[0].Bias)
	require.Equal(t, []float32{2, 4, 6, 8}, flattened(t, doubled))
	_, err = tree.Flatten(optional{Bias: number(1)})
	require.EqualError(t, err, "tree: weight: the array is nil")

	// A map fills optional arrays, and only the ones that it has.
	byName, err := tree.ToMap(both[1])
	require.NoError(t, err)
	delete(byName, "bias")
	loaded, err := tree.FromMap(optional{}, byName)
	require.NoError(t, err)
	require.Nil(t, loaded.Bias)
	require.Equal(t, []float32{2, 4}, flattened(t, loaded))
	_, err = tree.FromMap(both[1], byName)
	require.EqualError(t, err, "tree: bias: the map has no such array")
	byName["bias"] = nil
	_, err = tree.FromMap(optional{}, byName)
	require.EqualError(t, err, "tree: bias: the array is nil")

	// Transforms skip absent arrays.
	_, grads, err := tree.ValueAndGrad(func(p []optional) *mlxc.Array {
		require.Nil(t, p[0].Bias)
		return p[0].Weight.Mul(p[1].Bias)
	})(both)
	require.NoError(t, err)
	require.Nil(t, grads[0].Scale)
	require.Equal(t, []float32{3, 0, 1, 0}, flattened(t, grads))
	compiled := tree.Compile(func(p []optional) ([]optional, error) { return p, nil })
	defer compiled.Close()
	for range 2 {
		out, err := compiled.Call(both)
		require.NoError(t, err)
		require.Nil(t, out[0].Bias)
		require.Equal(t, []float32{1, 2, 3, 4}, flattened(t, out))
	}
	_, err = compiled.Call(both[1:])
	require.EqualError(t, err, `tree: one tree has array "1.weight" where the other has array "0.bias"`)

	for _, c := range []struct {
		tree any
		want string
	}{
		{struct {
			A []*mlxc.Array `mlx:"a,omitempty"`
		}{}, `has the option "omitempty": the only option is omitempty, for *mlxc.Array`},
		{struct {
			A *mlxc.Array `mlx:"a,optional"`
		}{}, `has the option "optional"`},
		{struct {
			A *mlxc.Array `mlx:"a,"`
		}{}, `has the option ""`},
		{struct {
			a *mlxc.Array `mlx:",omitempty"`
		}{}, "is not exported"},
	} {
		_, err := tree.Flatten(c.tree)
		require.ErrorContains(t, err, c.want)
	}
}

func TestQuantizedTrees(t *testing.T) {
	type layer struct{ Proj mlxc.Quantized }
	x := mlxc.Ones(mlxc.Float32, 1, 64)
	for mode, want := range map[mlxc.QuantizeMode][]string{
		mlxc.Affine: {"proj.weight", "proj.scales", "proj.biases"},
		mlxc.MXFP4:  {"proj.weight", "proj.scales"},
	} {
		l := layer{mlxc.Ones(mlxc.Float32, 2, 64).Quantize(mlxc.QuantizeConfig{Mode: mode})}
		names, err := tree.Names(l)
		require.NoError(t, err)
		require.Equal(t, want, names)
		byName, err := tree.ToMap(l)
		require.NoError(t, err)
		loaded, err := tree.FromMap(layer{mlxc.Quantized{QuantizeConfig: l.Proj.QuantizeConfig}}, byName)
		require.NoError(t, err)
		require.Equal(t, []float32{64, 64}, values(t, []*mlxc.Array{x.QuantizedMatMul(loaded.Proj, true)}))
	}
}

type ring struct {
	Next  *ring
	Array *mlxc.Array
}

func TestErrors(t *testing.T) {
	cyclic := &ring{Array: number(1)}
	cyclic.Next = &ring{Array: number(2), Next: cyclic}
	list := []any{nil}
	list[0] = list
	self := map[string]any{}
	self["self"] = self
	for _, c := range []struct {
		tree    any
		message string
	}{
		{linear{Weight: number(1)}, "tree: bias: the array is nil"},
		{[]linear{{number(1), nil}}, "tree: 0.bias: the array is nil"},
		{struct{ Heads int }{4}, "tree: heads: it is of type int: a tree holds *mlxc.Array in structs, maps, slices " +
			"and arrays; leave a field out with the tag `mlx:\"-\"`"},
		{struct{ heads int }{4}, "tree: heads: the field heads of struct { heads int } is not exported: export it, " +
			"or leave it out with the tag `mlx:\"-\"`"},
		{
			struct{ weight *mlxc.Array }{number(1)},
			"tree: weight: the field weight of struct { weight *mlxc.Array } is not exported: export it, or leave it " +
				"out with the tag `mlx:\"-\"`",
		},
		{struct {
			A *mlxc.Array `mlx:""`
		}{number(1)}, "tree: the tree: the tag of the field A of struct { A *mlxc.Array \"mlx:\\\"\\\"\" } has no name"},
		{struct {
			A *mlxc.Array
			B *mlxc.Array `mlx:"a"`
		}{number(1), number(2)}, "tree: a: two arrays have this name: rename one with a tag `mlx:\"name\"` or " +
			"another key"},
		{
			map[string]any{"a.b": number(1), "a": map[string]*mlxc.Array{"b": number(2)}},
			"tree: a.b: two arrays have this name: rename one with a tag `mlx:\"name\"` or another key",
		},
		{map[float64]*mlxc.Array{1: number(1)}, "tree: the tree: the keys of map[float64]*mlxc.Array have no order: " +
			"use strings or integers"},
		{map[string]any{"a": nil}, "tree: a: the interface is nil: put an array or a tree into it"},
		{cyclic, "tree: next.next: the *tree_test.ring is part of a cycle"},
		{list, "tree: 0: the []interface {} is part of a cycle"},
		{self, "tree: self: the map[string]interface {} is part of a cycle"},
		{&struct{ A mlxc.Array }{}, "tree: a: it is an mlxc.Array, which must not be copied: use *mlxc.Array"},
		{nil, "tree: the tree: the interface is nil: put an array or a tree into it"},
		{make(chan int), "tree: the tree: it is of type chan int: a tree holds *mlxc.Array in structs, maps, slices " +
			"and arrays; leave a field out with the tag `mlx:\"-\"`"},
	} {
		_, err := tree.Flatten(c.tree)
		require.EqualError(t, err, c.message)
		_, err = tree.Map(func(a *mlxc.Array) *mlxc.Array { return a }, c.tree)
		require.EqualError(t, err, c.message)
	}

	_, err := tree.Flatten(linear{Weight: number(1)})
	require.ErrorIs(t, err, mlxc.ErrNil)
	_, err = tree.Unflatten(linear{}, []*mlxc.Array{number(1)})
	require.EqualError(t, err, "tree: there are 1 arrays, but the tree has places for 2")
	_, err = tree.Unflatten(linear{}, []*mlxc.Array{number(1), number(2), number(3)})
	require.EqualError(t, err, "tree: there are 3 arrays, but the tree has places for 2")
	_, err = tree.Unflatten(linear{}, []*mlxc.Array{number(1), nil})
	require.EqualError(t, err, "tree: bias: the array is nil")
	_, err = tree.Map(func(*mlxc.Array) *mlxc.Array { return nil }, linear{number(1), number(2)})
	require.EqualError(t, err, "tree: weight: the array is nil")
	_, err = tree.Map2((*mlxc.Array).Add, []*mlxc.Array{number(1)}, []*mlxc.Array{number(1), number(2)})
	require.EqualError(t, err, `tree: one tree has no array where the other has array "1"`)

	// A value at two positions is not a cycle.
	one := number(1)
	require.Equal(t, []float32{1, 1}, flattened(t, linear{one, one}))
	shared := &linear{number(1), number(2)}
	require.Equal(t, []float32{1, 2, 1, 2}, flattened(t, []*linear{shared, shared}))
	require.Empty(t, flattened(t, [][][]*mlxc.Array{{}, {{}, {}}}))
}

func TestLifetimes(t *testing.T) {
	var kept, dropped linear
	mlxc.WithScope(func() {
		kept, dropped = linear{number(1), number(2)}, linear{number(3), number(4)}
		require.NoError(t, tree.Keep(kept))
	})
	require.NoError(t, tree.Eval(kept))
	require.ErrorIs(t, tree.Eval(dropped), mlxc.ErrFreed)
	require.NoError(t, tree.Free(&kept))
	require.ErrorIs(t, kept.Bias.Err(), mlxc.ErrFreed)
	require.ErrorIs(t, tree.Eval(linear{}), mlxc.ErrNil)
}
