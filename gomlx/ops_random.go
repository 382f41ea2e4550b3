package gomlx

import (
	"fmt"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// RNGBitGenerator returns random bits and the next state. The bits come from MLX's generator, Threefry, with a key that
// depends on the whole state. The next state has a larger last number.
func (f *function) RNGBitGenerator(
	state backends.Value, shape shapes.Shape,
) (newState, values backends.Value, err error) {
	results, err := f.add(backends.OpTypeRNGBitGenerator, []backends.Value{state},
		func(in []shapes.Shape) ([]shapes.Shape, runFunc, error) {
			if !in[0].Equal(backends.RNGStateShape) {
				return nil, nil, fmt.Errorf("the state is %v; it must be %v", in[0], backends.RNGStateShape)
			}
			if shape.DType.IsPacked() || shape.DType.Bits()%8 != 0 || shape.DType.Bits() > 64 {
				return nil, nil, notImplemented("random bits of dtype %v", shape.DType)
			}
			return []shapes.Shape{in[0], shape}, func(in []*mlxc.Array) ([]*mlxc.Array, error) {
				next := in[0].Add(mlxc.FromSlice([]uint64{0, 0, 1}))
				return []*mlxc.Array{next, randomBits(randomKey(in[0]), shape)}, nil
			}, nil
		})
	if err != nil {
		return nil, nil, err
	}
	return results[0], results[1], nil
}

// randomKey mixes the numbers of a state into a key of MLX.
func randomKey(state *mlxc.Array) *mlxc.Array {
	words := state.View(mlxc.Uint32).Reshape(3, 2).Unstack(0)
	key := words[0]
	for _, w := range words[1:] {
		key = mlxc.RandomBits(key, mlxc.Uint32, 2).BitwiseXor(w)
	}
	return key
}

func randomBits(key *mlxc.Array, shape shapes.Shape) *mlxc.Array {
	d := mlxDType(shape.DType)
	switch d.Size() {
	case 1:
		return mlxc.RandomBits(key, mlxc.Uint8, shape.Dimensions...).View(d)
	case 2:
		return mlxc.RandomBits(key, mlxc.Uint16, shape.Dimensions...).View(d)
	case 4:
		return mlxc.RandomBits(key, mlxc.Uint32, shape.Dimensions...).View(d)
	}
	return mlxc.RandomBits(key, mlxc.Uint32, shape.Size(), 2).View(d).Reshape(shape.Dimensions...)
}
