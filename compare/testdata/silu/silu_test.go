package silu

import (
	"math"
	"testing"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
)

func silu64(in []oracle.Tensor) []oracle.Tensor {
	y := oracle.New(in[0].Shape...)
	for i, x := range in[0].Data {
		y.Data[i] = x / (1 + math.Exp(-x))
	}
	return []oracle.Tensor{y}
}

func TestSilu(t *testing.T) {
	silu, err := New()
	if err != nil {
		t.Fatal(err)
	}
	compare.Gradients(t, silu, compare.Reference{Forward: silu64}, compare.Case{
		Inputs: []compare.Input{{Name: "x", Dims: []string{"rows", "d"}}},
	})
}
