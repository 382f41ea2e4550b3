package suite

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// linearLossCase is a lossCase whose logits are products of h[rows, width] and w.
type linearLossCase struct {
	lossCase
	width int
}

func linearCrossEntropy() compare.Op {
	op := compare.Op{Name: "linear-cross-entropy"}
	add := func(width int, c lossCase) { op.Cases = append(op.Cases, linearLossCase{c, width}.ofHidden()) }

	all := everyLossOption()
	for _, o := range all {
		add(8, lossCase{targets: []int{40}, v: 33, lossOptions: o})
	}
	for _, width := range []int{1, 7, 33, 64, 129} {
		for _, v := range []int{1, 2, 33, 1000} {
			add(width, lossCase{targets: []int{37}, v: v, lossOptions: lossOptions{reduction: ops.ReductionNone}})
		}
		add(width, lossCase{targets: []int{3}, v: 127})
	}
	for _, c := range []linearLossCase{
		{lossCase{targets: []int{1}, v: 1}, 1},
		{lossCase{targets: []int{1}, v: 129}, 7},
		{lossCase{targets: nil, v: 33}, 16},
		{lossCase{targets: []int{2, 3}, v: 33}, 31},
		{lossCase{targets: []int{2, 3, 7}, v: 31}, 8},
	} {
		add(c.width, c.lossCase)
		c.reduction = ops.ReductionNone
		add(c.width, c.lossCase)
	}
	for _, c := range []linearLossCase{
		{lossCase{targets: []int{3}, v: 32003}, 8},
		{lossCase{targets: []int{199}, v: 1000}, 33},
		{lossCase{targets: []int{37}, v: 129}, 1024},
		{lossCase{targets: []int{37}, v: 4099}, 16},
	} {
		for _, o := range []lossOptions{{reduction: ops.ReductionNone}, all[len(all)-1]} {
			c.lossOptions = o
			add(c.width, c.lossCase)
		}
	}
	// The logits exceed 64 MiB in every dtype and are computed in slices.
	add(4, lossCase{targets: []int{1049}, v: 32003, lossOptions: lossOptions{reduction: ops.ReductionNone, ignore: true}})
	add(5, lossCase{targets: []int{520}, v: 65537, lossOptions: all[len(all)-1]})
	add(7, lossCase{targets: []int{0}, v: 33})
	add(3, lossCase{targets: []int{2, 0}, v: 7, lossOptions: lossOptions{reduction: ops.ReductionNone}})
	for _, reduction := range reductions() {
		o := lossOptions{reduction: reduction, ignore: true}
		add(16, lossCase{targets: []int{37}, v: 33, lossOptions: o, signed: true})
		add(16, lossCase{targets: []int{37}, v: 33, lossOptions: o, draw: equalTo(ignoredClass(33)), label: "all ignored"})
	}
	for _, layout := range everyLayout() {
		for _, operand := range []string{"h", "w", "t", "dloss"} {
			if operand == "w" && layout == compare.Broadcast {
				continue // if all classes are equal, dh is 0 and a computed dh is only rounding
			}
			c := lossCase{targets: []int{5, 9}, v: 33, layouts: layouts{operand: layout}}
			c.reduction, c.ignore = ops.ReductionNone, true
			add(31, c)
		}
	}
	for _, values := range []struct {
		values compare.Values
		label  string
	}{
		{compare.EqualRows, "equal rows"},
		{compare.Normal(100), "huge"},
		{compare.Normal(1e-4), "tiny"},
		{compare.Spike, "spike"},
		{compare.Zeros, "zero"},
	} {
		c := lossCase{targets: []int{37}, v: 129, values: values.values, label: values.label}
		c.reduction = ops.ReductionNone
		add(33, c)
	}
	add(16, lossCase{targets: []int{37}, v: 33, lossOptions: lossOptions{reduction: ops.ReductionNone}, outOfRange: true})
	// Beyond these caps the gradients of logits vanish in float16.
	for _, caps := range []float64{3, 5} {
		for _, c := range saturatedLosses(caps) {
			add(8, c)
		}
	}
	return op
}

func (c linearLossCase) ofHidden() compare.Case {
	exact := c.exactConfig()
	// This deviation makes the logits of normal h normal.
	ofHidden, ofWeight := c.values, compare.Normal(1/math.Sqrt(float64(c.width)))
	if c.caps > 0 {
		ofHidden, ofWeight = sided(1), sided(c.caps*softCap/float64(c.width))
	}
	hidden := append(slices.Clone(c.targets), c.width)
	return compare.Case{
		Name: c.name(fmt.Sprintf("%s to %d", dimensions(hidden), c.v)),
		Inputs: []compare.Input{
			{Name: "h", Shape: hidden, Layout: c.layouts["h"], Values: ofHidden},
			{Name: "w", Shape: []int{c.v, c.width}, Layout: c.layouts["w"], Values: ofWeight},
			c.targetsInput(),
		},
		Outputs: []compare.Output{c.loss()},
		// More than 64 MiB of float32 logits are computed in slices.
		UsesTF32: c.v*oracle.Size(c.targets) > 16<<20,
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{oracle.LinearCrossEntropy(in[0], in[1], in[2], exact)}
			},
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				dh, dw := oracle.LinearCrossEntropyVJP(in[0], in[1], in[2], exact, ct[0])
				return []oracle.Tensor{dh, dw}
			},
		},
		Ours: c.ours(func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{ops.LinearCrossEntropy(in[0], in[1], in[2], c.config())}
		}),
		MLX: func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{crossEntropyOfMLX(in[0].MatMul(in[1].Transpose()), in[2], c.config())}
		},
	}
}
