package ops

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// crossEntropyCases have targets of every kind: classes, ignored ones, and one that is no
// class. Ragged, a row is wider than a GPU's threadgroup holds, and one ends where a pack
// of a thread would begin; and without smoothing there are logits of −infinity, which the
// loss then leaves alone.
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
				minus := mlxc.Scalar(float32(math.Inf(-1))).AsType(dtype)
				logits = mlxc.Where(logits.Greater(mlxc.Scalar(float32(1)).AsType(dtype)), minus, logits)
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
				targets = targets.AsType(mlxc.Uint32) // of which those from 2³¹ on are no classes
			}
			if slice[1] > 0 {
				crossEntropyOfSlice(on, logits, targets, dloss, slice, cfg)
				return
			}
			crossEntropyForward(on, logits, targets, cfg, true)
			rows := cfg
			rows.Reduction = None
			outputs := crossEntropyForward(on, logits, targets, rows, false)
			crossEntropyBackward(on, logits, targets, dloss, outputs, rows)
		}}
	}
	options := CrossEntropyConfig{LabelSmoothing: 0.1, ZLoss: 0.01}
	var cases []launchCase
	for _, s := range shapes {
		cases = append(cases, crossEntropyCase(s[0], s[1], [2]int{}, options))
	}
	if set == TypicalCases {
		cases = append(cases, crossEntropyCase(64, 1024, [2]int{512, 1024}, options))
	} else {
		options.SoftCap = 2
		for _, slice := range [][2]int{{}, {0, 50}, {33, 129}} {
			cases = append(cases, crossEntropyCase(37, 129, slice, options), crossEntropyCase(37, 129, slice, CrossEntropyConfig{}))
		}
		cases = append(cases, crossEntropyCase(1031, 260, [2]int{100, 260}, CrossEntropyConfig{}))
	}
	return cases
}

// capScales brings columns of normal logits below the soft cap, near it and far beyond it.
func capScales(columns int) *mlxc.Array {
	scales := make([]float32, columns)
	for i := range scales {
		scales[i] = [...]float32{1, 10, 100}[i%3]
	}
	return mlxc.FromSlice(scales)
}

// crossEntropyOfSlice computes the gradient of a slice of the classes, after the states of two
// slices, this one and the classes before it, or after, as LinearCrossEntropy does.
func crossEntropyOfSlice(on target, logits, targets, dloss *mlxc.Array, slice [2]int, cfg CrossEntropyConfig) {
	rows, width := logits.Dim(0), logits.Dim(1)
	columns := func(begin, end int) *mlxc.Array { return logits.Slice([]int{0, begin}, []int{rows, end}, nil) }
	part, at := columns(slice[0], slice[1]), classSlice{slice[0], width}
	states := crossEntropyLosses(on, part, targets, nil, at, cfg)[1]
	others := [2]int{0, slice[0]}
	if slice[0] == 0 {
		others = [2]int{slice[1], width}
	}
	unseen := target{backend: on.backend} // or there would be two launches of one name
	more := crossEntropyLosses(unseen, columns(others[0], others[1]), targets, nil, classSlice{others[0], width}, cfg)[1]
	merged := crossEntropyMerge(on, mlxc.Stack(0, more, states), targets, width, cfg)
	crossEntropyGradient(on, part, targets, merged[1], dloss, at, cfg)
}
