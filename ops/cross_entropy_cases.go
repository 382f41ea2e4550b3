package ops

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// crossEntropyCases returns the cases of the cross-entropy kernels. Their targets are classes, ignored targets and one
// out of range. The ragged widths include one that exceeds the registers of a GPU's threadgroup, and one that ends
// exactly where another vector would begin. Without smoothing, some logits are −∞. With smoothing and a soft
// cap, the losses are summed.
func crossEntropyCases(set CaseSet) []launchCase {
	shapes := rowShapes(set)
	if set == RaggedCases {
		shapes = append(shapes, [2]int{2, 16411}, [2]int{3, 384})
	}
	crossEntropyCase := func(rows, width int, slice [2]int, cfg CrossEntropyConfig) launchCase {
		name := fmt.Sprintf("%dx%d", rows, width)
		if cfg.SoftCap > 0 {
			name += ", soft-cap"
		}
		if slice[1] > 0 {
			name += fmt.Sprintf(", classes %d to %d", slice[0], slice[1])
		}
		masked := cfg.LabelSmoothing == 0
		if masked {
			name += ", masked"
		}
		return launchCase{name: name, run: func(on target, dtype mlxc.DType) {
			logits := mlxc.RandomNormal(mlxc.RandomKey(1), dtype, rows, width)
			if masked {
				minusInf := mlxc.Scalar(float32(math.Inf(-1))).AsType(dtype)
				logits = mlxc.Where(logits.Greater(mlxc.Scalar(float32(1)).AsType(dtype)), minusInf, logits)
			}
			if cfg.SoftCap > 0 {
				logits = logits.Mul(capScales(width).AsType(dtype))
			}
			values := make([]int32, rows)
			for i := range values {
				values[i] = int32((5*i+width-1)%(width+2) - 1)
			}
			targets, dloss := mlxc.FromSlice(values), mlxc.RandomNormal(mlxc.RandomKey(2), mlxc.Float32, rows)
			if cfg == (CrossEntropyConfig{}) {
				targets = targets.AsType(mlxc.Uint32) // negative targets become 2³¹ and more, out of range
			}
			if slice[1] > 0 {
				launchSlice(on, logits, targets, dloss, slice, cfg)
				return
			}
			crossEntropyForward(on, logits, targets, cfg, true)
			outputs := crossEntropyForward(on, logits, targets, cfg, false)
			perRow := cfg
			perRow.Reduction = ReductionNone
			crossEntropyBackward(on, logits, targets, dloss, outputs, perRow)
		}}
	}
	options := CrossEntropyConfig{LabelSmoothing: 0.1, ZLoss: 0.01}
	if set == WarpgroupCases { // rows whose blocks fill the registers and the threadgroup memory
		return []launchCase{crossEntropyCase(2, 131080, [2]int{}, options)}
	}
	var cases []launchCase
	for _, s := range shapes {
		cases = append(cases, crossEntropyCase(s[0], s[1], [2]int{}, options))
	}
	if set == TypicalCases {
		cases = append(cases, crossEntropyCase(64, 1024, [2]int{512, 1024}, options))
	} else {
		options.SoftCap, options.Reduction = 2, ReductionSum
		for _, slice := range [][2]int{{}, {0, 50}, {33, 129}} {
			cases = append(cases,
				crossEntropyCase(37, 129, slice, options),
				crossEntropyCase(37, 129, slice, CrossEntropyConfig{}))
		}
		cases = append(cases, crossEntropyCase(1031, 260, [2]int{100, 260}, CrossEntropyConfig{}))
	}
	return cases
}

// capScales returns factors that bring columns of normal logits below a soft cap, near it and far beyond it.
func capScales(columns int) *mlxc.Array {
	scales := make([]float32, columns)
	for i := range scales {
		scales[i] = [...]float32{1, 10, 100}[i%3]
	}
	return mlxc.FromSlice(scales)
}

// launchSlice launches the kernels of LinearCrossEntropy for two slices of the classes: one for the states of each
// slice, one that merges the states, and one for the gradient of the classes from slice[0] to slice[1]−1.
func launchSlice(on target, logits, targets, dloss *mlxc.Array, slice [2]int, cfg CrossEntropyConfig) {
	rows, width := logits.Dim(0), logits.Dim(1)
	columns := func(begin, end int) *mlxc.Array { return logits.Slice([]int{0, begin}, []int{rows, end}, nil) }
	part, classes := columns(slice[0], slice[1]), classSlice{slice[0], width}
	states := crossEntropyLosses(on, part, targets, nil, classes, cfg)[1]
	other := [2]int{0, slice[0]}
	if slice[0] == 0 {
		other = [2]int{slice[1], width}
	}
	unrecorded := target{backend: on.backend} // a second recorded launch would have the same name
	otherClasses := classSlice{other[0], width}
	otherStates := crossEntropyLosses(unrecorded, columns(other[0], other[1]), targets, nil, otherClasses, cfg)[1]
	merged := crossEntropyMerge(on, mlxc.Stack(0, otherStates, states), targets, width, cfg)
	crossEntropyGradient(on, part, merged[1], dloss, classes, cfg)
}
