package main

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/mlxgrad/mlxgrad/ops"
)

// adapter is a trainable change of a frozen matrix by a product of low rank: W + A·B (Hu et al., "LoRA: Low-Rank
// Adaptation of Large Language Models", 2021, section 4.1).
type adapter struct {
	A *mlxc.Array // (in, rank)
	B *mlxc.Array // (rank, out), initially zero
}

// adapters has the adapters of each layer's attention.
type adapters struct{ Layers []layerAdapters }

type layerAdapters struct{ QKV, Out adapter }

// linear returns x·(W + A·B) without computing A·B, which is as large as W.
func (a adapter) linear(x, w *mlxc.Array) *mlxc.Array {
	return ops.MatMul(x, w).Add(ops.MatMul(ops.MatMul(x, a.A), a.B))
}

// newAdapters returns adapters that change nothing yet.
func (m model) newAdapters(rank int) adapters {
	seed := uint64(0)
	of := func(w *mlxc.Array) adapter {
		seed++
		in, out := w.Dim(0), w.Dim(1)
		return adapter{
			mlxc.RandomNormal(mlxc.RandomKey(seed), w.DType(), in, rank).DivScalar(math.Sqrt(float64(in))),
			mlxc.Zeros(w.DType(), rank, out),
		}
	}
	var a adapters
	for _, l := range m.Layers {
		a.Layers = append(a.Layers, layerAdapters{of(l.QKV), of(l.Out)})
	}
	return a
}

func (a adapters) save(file string) error {
	arrays, err := tree.ToMap(a)
	if err != nil {
		return err
	}
	return mlxio.SaveSafetensors(file, arrays, nil)
}

// loadAdapters reads adapters of this rank that save wrote.
func (m model) loadAdapters(file string, rank int) (adapters, error) {
	arrays, _, err := mlxio.LoadSafetensors(file)
	if err != nil {
		return adapters{}, err
	}
	a, err := tree.FromMap(m.newAdapters(rank), arrays)
	if err != nil {
		return a, fmt.Errorf("%s does not fit the model: %w", file, err)
	}
	return a, tree.Eval(a)
}
