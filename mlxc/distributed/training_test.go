package distributed_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// agreement checks the functions of a training in each process of a ring.
func agreement(t *testing.T, g *distributed.Group) {
	type params struct {
		Weight, Half, Scalar, Empty, Mask *mlxc.Array
	}
	negativeZero := float32(math.Copysign(0, -1))
	values := []float32{negativeZero, 1.5, float32(math.NaN()), -3}
	own := params{
		Weight: mlxc.FromSlice(values, 2, 2).AddScalar(float64(g.Rank())),
		Half:   mlxc.Scalar(float32(g.Rank() + 2)).AsType(mlxc.Float16).Reshape(1),
		Scalar: mlxc.Scalar(int32(g.Rank() + 7)),
		Empty:  mlxc.Zeros(mlxc.Float32, 0, 3),
		Mask:   mlxc.Scalar(float32(g.Rank())).EqualScalar(0).Reshape(1),
	}
	if g.Rank() == 0 {
		own.Weight = mlxc.FromSlice([]float32{values[0], values[2], values[1], values[3]}, 2, 2).Transpose()
	}
	same, err := distributed.Broadcast(g, own)
	require.NoError(t, err)
	got := mlxtest.Read[float32](t, same.Weight)
	for i, v := range values {
		require.Equal(t, math.Float32bits(v), math.Float32bits(got[i]), "the bits of rank 0")
	}
	require.Equal(t, []int{2, 2}, same.Weight.Shape())
	require.Equal(t, []float32{2}, mlxtest.Read[float32](t, same.Half.AsType(mlxc.Float32)))
	require.Equal(t, []int32{7}, mlxtest.Read[int32](t, same.Scalar))
	require.Empty(t, same.Scalar.Shape())
	require.Equal(t, []int{0, 3}, same.Empty.Shape())
	require.Equal(t, []bool{true}, mlxtest.Read[bool](t, same.Mask))

	last := g.Rank() == g.Size()-1
	some, err := g.AnyRank(last)
	require.NoError(t, err)
	require.True(t, some)
	none, err := g.AnyRank(false)
	require.NoError(t, err)
	require.False(t, none)

	calls := 0
	require.NoError(t, g.OnFirst(func() error { calls++; return nil }))
	require.Equal(t, g.Rank() == 0, calls == 1)
	err = g.OnFirst(func() error { return errors.New("the disk is full") })
	if g.Rank() == 0 {
		require.EqualError(t, err, "the disk is full")
	} else {
		require.ErrorContains(t, err, "the function failed in rank 0")
	}

	// A panic in rank 0 reaches the other processes.
	fails := func() { err = g.OnFirst(func() error { panic("the disk is gone") }) }
	if g.Rank() == 0 {
		require.PanicsWithValue(t, "the disk is gone", fails)
	} else {
		fails()
		require.ErrorContains(t, err, "the function failed in rank 0")
	}

	// The parts of 10 items follow each other.
	begin, end := g.Share(10)
	parts := mlxtest.Read[int32](t, g.AllGather(mlxc.FromSlice([]int32{int32(begin), int32(end)})))
	require.Equal(t, int32(0), parts[0])
	require.Equal(t, int32(10), parts[len(parts)-1])
	for i := 2; i < len(parts); i += 2 {
		require.Equal(t, parts[i-1], parts[i])
	}

	// The weights 1, 2, … of the values 0, 1, …
	var sum, weights float64
	for r := range g.Size() {
		sum, weights = sum+float64(r*(r+1)), weights+float64(r+1)
	}
	mean, err := g.WeightedMean(float64(g.Rank()), float64(g.Rank()+1))
	require.NoError(t, err)
	require.InDelta(t, sum/weights, mean, 1e-6)
	_, err = g.WeightedMean(1, 0)
	require.ErrorContains(t, err, "all weights are 0")
	if last {
		_, err = g.WeightedMean(1, -1)
		require.ErrorContains(t, err, "the weight is -1")
	} else {
		_, err = g.WeightedMean(1, 1)
		require.ErrorContains(t, err, "the weight of another process is negative or NaN")
	}
	value, items := 3.0, 2.0
	if last {
		value, items = math.NaN(), 0
	}
	mean, err = g.WeightedMean(value, items)
	require.NoError(t, err)
	require.Equal(t, 3.0, mean, "the last process has no items")

	draws := mlxtest.Read[float32](t, g.AllGather(
		mlxc.RandomUniform(g.RandomKey(mlxc.RandomKey(1)), 0, 1, mlxc.Float32, 1)))
	seen := map[float32]bool{}
	for _, d := range draws {
		seen[d] = true
	}
	require.Len(t, seen, g.Size(), "each process draws other numbers: %v", draws)
	_, err = g.AnyRank(false) // no process ends before the others have finished
	require.NoError(t, err)
}

func TestAgreementOfOne(t *testing.T) {
	g, err := distributed.Init(distributed.Any, false)
	require.NoError(t, err)
	require.ErrorContains(t, g.OnFirst(func() error { return errors.New("full") }), "full")
	_, err = g.WeightedMean(1, -1)
	require.ErrorContains(t, err, "the weight is -1")
	_, err = g.WeightedMean(1, math.NaN())
	require.ErrorContains(t, err, "the weight is NaN")
	mean, err := g.WeightedMean(3, 2)
	require.NoError(t, err)
	require.InDelta(t, 3, mean, 0)
	same, err := distributed.Broadcast(g, arrays{mlxc.Scalar[float32](2)})
	require.NoError(t, err)
	require.Equal(t, []float32{2}, mlxtest.Read[float32](t, same[0]))
	_, err = distributed.Broadcast(g, arrays{mlxc.InvalidArray(errors.New("bad weight"))})
	require.ErrorContains(t, err, "bad weight")

	var none *distributed.Group
	_, err = distributed.Broadcast(none, arrays{})
	require.ErrorContains(t, err, "the group is nil")
	_, err = none.AnyRank(true)
	require.ErrorContains(t, err, "the group is nil")
	require.ErrorContains(t, none.OnFirst(nil), "the group is nil")
	_, err = none.WeightedMean(1, 1)
	require.ErrorContains(t, err, "the group is nil")
	require.ErrorContains(t, none.RandomKey(mlxc.RandomKey(1)).Err(), "the group is nil")
}
