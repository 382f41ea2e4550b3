package valuetest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

func init() {
	optionTests["Take and ScatterAdd"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		shape, x := a.Shape(), wide(t, a)
		axis := drawnAxes(r, len(shape), 1)[0]
		k := (axis + len(shape)) % len(shape)
		idShape := drawnShape(r, 1+r.IntN(2))
		n := shape[k]
		ids := drawn(r,
			idShape...).AsType(mlxc.Int32).Remainder(mlxc.Scalar(int32(n))).Sub(mlxc.Scalar(int32(r.IntN(2) * n)))
		id := wide(t, ids)
		taken := slices.Concat(shape[:k], idShape, shape[k+1:])
		updates := drawn(r, taken...)
		u, want, sums := wide(t, updates), []float64{}, slices.Clone(x)
		eachIndex(taken, func(at []int) {
			p := int(id[flatIndex(idShape, at[k:k+len(idShape)])])
			from := flatIndex(shape, slices.Concat(at[:k], []int{(p + n) % n}, at[k+len(idShape):]))
			sums[from] += u[len(want)]
			want = append(want, x[from])
		})
		requireArray(t, taken, want, a.Take(ids, axis))
		requireArray(t, shape, sums, a.ScatterAdd(ids, updates, axis))
	}
	optionTests["TakeAlongAxis and PutAlongAxis"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		shape, x := a.Shape(), wide(t, a)
		axis := drawnAxes(r, len(shape), 1)[0]
		k := (axis + len(shape)) % len(shape)
		idShape := slices.Clone(shape)
		idShape[k] = 1 + r.IntN(shape[k])
		// The ids are a permutation, so that PutAlongAxis writes each element at most once.
		ids := mlxc.RandomUniform(mlxc.RandomKey(r.Uint64()), 0, 1, mlxc.Float32, shape...).ArgSort(axis).
			Split(1, axis)[0].AsType(mlxc.Int32)
		ids = ids.Index(append(slices.Repeat([]mlxc.Index{mlxc.All}, k), mlxc.Range(0, idShape[k]))...)
		values := drawn(r, idShape...)
		id, v, want, put, added := wide(t, ids), wide(t, values), []float64{}, slices.Clone(x), slices.Clone(x)
		eachIndex(idShape, func(at []int) {
			from := slices.Clone(at)
			from[k] = int(id[len(want)])
			put[flatIndex(shape, from)] = v[len(want)]
			added[flatIndex(shape, from)] += v[len(want)]
			want = append(want, x[flatIndex(shape, from)])
		})
		requireArray(t, idShape, want, a.TakeAlongAxis(ids, axis))
		requireArray(t, shape, put, a.PutAlongAxis(ids, values, axis))
		requireArray(t, shape, added, a.ScatterAddAlongAxis(ids, values, axis))
	}
	optionTests["sorting"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		axes := drawnAxes(r, a.NDim(), 1)
		axis, n := axes[0], a.Dim(axes[0])
		kth := r.IntN(n)
		in := groups(wide(t, a), a.Shape(), axes)
		sorted := groups(wide(t, a.Sort(axis)), a.Shape(), axes)
		byPosition := groups(wide(t, a.TakeAlongAxis(a.ArgSort(axis), axis)), a.Shape(), axes)
		parts := groups(wide(t, a.Partition(kth, axis)), a.Shape(), axes)
		topShape := a.Shape()
		topShape[(axis+len(topShape))%len(topShape)] = kth + 1
		top := groups(wide(t, a.TopK(kth+1, axis)), topShape, axes)
		for i, g := range in {
			slices.Sort(g)
			require.Equal(t, g, sorted[i])
			require.Equal(t, g, byPosition[i])
			require.InDelta(t, g[kth], parts[i][kth], 0)
			require.InDelta(t, g[kth], slices.Max(parts[i][:kth+1]), 0)
			slices.Sort(parts[i])
			require.Equal(t, g, parts[i])
			slices.Sort(top[i])
			require.Equal(t, g[n-kth-1:], top[i])
		}
	}
}
