package ops

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// LinearCrossEntropy returns the cross-entropy of the logits hidden·weightᵀ without keeping all logits in memory. It
// has gradients for hidden and weight.
//
// hidden has shape (…,H) and dtype float32, float16 or bfloat16; weight has shape (V,H) and hidden's dtype; targets has
// shape (…) and dtype int32 or uint32. The loss, its options and the treatment of targets that are ignored or out of
// range are the same as in [CrossEntropy]. The hidden row of an ignored target may hold any values.
//
// The classes are processed in slices, one after the other. For each slice, with dlogits the gradient of its logits,
//
//	dweight[slice] = dlogitsᵀ·hidden
//	dhidden       += dlogits·weight[slice]
//
// The products are those of [MatMul]. Logits, dlogits and products are rounded to hidden's dtype. dhidden is
// accumulated in the order of the slices: in float32, except for the two slices of a CUDA device.
//
// In float16, cotangents and, if needed, hidden are scaled before the products and the gradients are scaled back
// afterwards. This keeps small elements of dlogits from vanishing and sums over rows from overflowing before a mean is
// taken. Elements of dlogits below 6e-8 times the row's cotangent still vanish, for example where the magnitude of a
// logit exceeds 9 times the soft cap.
//
// While a gradient is being taken (see [mlxc.Differentiating]), the logits of the first slices are kept for it. A slice
// whose logits are kept takes three matrix products for the loss and the gradients. The logits of any other slice are
// computed twice, which makes four products. If the differentiated function captures hidden or weight instead of taking
// it as an argument (see [mlxc.Array.IsTraced]), that gradient is not computed.
//
// On CUDA devices with MLX 0.32.4, a product can write to the memory of another array, and no logits are computed twice.
// If the losses are reduced, one kernel computes them and replaces the logits by dlogits for a cotangent of 1, so the
// forward pass does most of the work of a gradient. Otherwise dlogits replace the logits in the backward pass. Logits of
// at most 512 MiB are one slice, others two. The second slice is small, and its memory later holds dweight. In addition
// to arguments and gradients, a gradient takes the memory of all logits, half of what MLX's gradient takes. The loss
// alone takes the memory of one slice, 128 MiB or a twelfth of all logits.
//
// On a CPU, an Apple GPU, and CUDA devices with MLX 0.32.2, the logits of a slice take at most 64 MiB (128 MiB on
// CUDA), but a slice may always have 4096 classes. If two slices would suffice, there is one of up to twice the size.
// The kept logits take at most twice the memory of weight or half the memory of all logits, whichever is larger; a
// single slice is always kept. Without the gradient of weight, logits are kept only if there is a single slice. In
// addition to arguments and gradients, these arrays are in memory:
//
//   - the kept logits, which are released as slices of dweight are computed
//   - logits and dlogits of two slices; on Apple GPUs, of as many slices as MLX runs ahead (see
//     [mlxc.Array.AfterCompletion])
//   - dhidden in float32
//   - a copy of dweight, which is concatenated from its slices
//
// On a CPU without a C++ compiler, MLX's operations are used, and all logits are in memory.
func LinearCrossEntropy(hidden, weight, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
	const op = "ops.LinearCrossEntropy"
	loss := recorded(newLinearLossKey(hidden, weight, cfg, classPlan{}), hidden, weight, targets)
	if loss != nil && cfg.checkTargets(targets, weight.Dim(0)) == nil {
		return loss[0]
	}
	if err := checkLinearCrossEntropy(hidden, weight, targets, cfg); err != nil {
		return mlxc.InvalidArray(opError(op, err, hidden, weight, targets))
	}
	if targets.Size() == 0 {
		return cfg.emptyLoss(targets)
	}
	if !kernelsAvailable(op) {
		return crossEntropyMLX(hidden.MatMul(weight.Transpose()), targets, cfg)
	}
	return linearCrossEntropy(hidden, weight, targets, cfg, classPlan{}, productsInPlace().Available())
}

func checkLinearCrossEntropy(hidden, weight, targets *mlxc.Array, cfg CrossEntropyConfig) error {
	if err := checkRows("hidden", hidden); err != nil {
		return err
	}
	if err := requireArray("weight", weight); err != nil {
		return err
	}
	switch {
	case weight.NDim() != 2 || weight.Dim(1) != hidden.Dim(-1):
		return fmt.Errorf("weight has shape %v; it must be [classes, %d], with rows like hidden's",
			weight.Shape(), hidden.Dim(-1))
	case weight.DType() != hidden.DType():
		return fmt.Errorf("hidden is %v and weight is %v; they must be equal: convert one with AsType",
			hidden.DType(), weight.DType())
	case weight.Size() == 0:
		return errors.New("weight is empty; it must have at least one class and one column")
	}
	return cfg.check(targets, "hidden", hidden, weight.Dim(0))
}

// linearCrossEntropy is LinearCrossEntropy with a given division of the classes. A plan of zeros is the default plan.
// inPlace selects cudaLoss.
func linearCrossEntropy(
	hidden, weight, targets *mlxc.Array, cfg CrossEntropyConfig, plan classPlan, inPlace bool,
) *mlxc.Array {
	cfg = cfg.clone()
	key := newLinearLossKey(hidden, weight, cfg, plan)
	needsGrad := key.needsGrad
	if plan == (classPlan{}) {
		plan = defaultPlan(targets.Size(), weight, inPlace)
	}
	switch {
	case needsGrad[1]:
	case inPlace:
		plan.slice = weight.Dim(0) // the second slice would take memory of dweight
	default:
		plan.kept = plan.keptWithoutWeight(weight.Dim(0))
	}
	newLoss := func(args []*mlxc.Array) linearLoss {
		rows := args[2].Size()
		return linearLoss{
			on: currentTarget(), cfg: cfg, plan: plan, inPlace: inPlace, needsGrad: needsGrad,
			hidden: args[0].Reshape(rows, args[0].Dim(-1)), weight: args[1],
			classes: cfg.classes(args[2], args[1].Dim(0)),
		}
	}
	var graph any
	if inPlace { // the other loss limits how far the host runs ahead, which needs nodes of its own at every call
		graph = key
	}
	var outputs []*mlxc.Array
	results := withHidden(1, graph, []*mlxc.Array{hidden, weight, targets},
		func(args []*mlxc.Array) []*mlxc.Array {
			outputs = scoped(func() []*mlxc.Array { return newLoss(args).forward(args[2], mlxc.Differentiating()) })
			return outputs
		},
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return scoped(func() []*mlxc.Array {
				dhidden, dweight := newLoss(primals).backward(cotangents[0], outputs)
				return []*mlxc.Array{dhidden.Reshape(primals[0].Shape()...), dweight, zerosLike(primals[2])[0]}
			})
		})
	freeAll(outputs) // handles would keep the memory alive longer than the graph
	return results[0]
}

// A linearLossKey identifies the graphs of LinearCrossEntropy. See withGradient.
type linearLossKey struct {
	options         lossOptionsKey
	plan            classPlan // zeros for the default plan, which depends on the arguments' shapes and dtypes
	needsGrad       [2]bool   // of hidden and of weight
	differentiating bool      // logits are kept
}

func newLinearLossKey(hidden, weight *mlxc.Array, cfg CrossEntropyConfig, plan classPlan) linearLossKey {
	return linearLossKey{
		options: cfg.key(), plan: plan, differentiating: mlxc.Differentiating(),
		needsGrad: [...]bool{hidden.IsTraced(), weight.IsTraced()},
	}
}

// A linearLoss holds the operands of LinearCrossEntropy. The arrays that its methods create belong to the scope of the
// caller.
type linearLoss struct {
	on        target
	hidden    *mlxc.Array // [rows, H]
	weight    *mlxc.Array // [V, H]
	needsGrad [2]bool     // of hidden and of weight
	classes   *mlxc.Array // [rows]
	cfg       CrossEntropyConfig
	plan      classPlan
	inPlace   bool
}

func (l linearLoss) logits(hidden, weight *mlxc.Array) *mlxc.Array {
	return matrixProduct(l.on, matrix{array: hidden}, matrix{array: weight, transposed: true})
}

// forward returns the loss, the states of the rows, the divisor of a reduced loss and, if keep is set, the logits of the
// slices that the plan keeps.
func (l linearLoss) forward(targets *mlxc.Array, keep bool) []*mlxc.Array {
	sliceStates := l.sliceStates
	if l.inPlace {
		sliceStates = newCUDALoss(l).sliceStates
	}
	results, states, kept := sliceStates(keep)
	if len(states) > 1 {
		results = crossEntropyMerge(l.on, mlxc.Stack(0, states...), l.classes, l.weight.Dim(0), l.cfg)
	}
	switch {
	case l.cfg.Reduction == ReductionNone:
		results[0] = results[0].Reshape(targets.Shape()...)
	case l.inPlace:
		loss, divisor := l.cfg.reduced(l.on, results[0], l.classes)
		results = append([]*mlxc.Array{loss}, append(results[1:], divisor)...)
	default:
		divisor := l.cfg.divisor(l.classes)
		results[0] = results[0].Sum().Div(divisor)
		results = append(results, divisor)
	}
	return append(results, kept...)
}

// sliceStates returns the losses and states of the last slice, the states of all slices and, if keep is set, the logits
// that the plan keeps.
func (l linearLoss) sliceStates(keep bool) (results, states, kept []*mlxc.Array) {
	l.slices(l.hidden, func(hidden, weight *mlxc.Array, begin int) []*mlxc.Array {
		logits := l.logits(hidden, weight)
		results = crossEntropyLosses(l.on, logits, l.classes, nil, classSlice{begin, l.weight.Dim(0)}, l.cfg)
		states = append(states, results[1])
		if keep && len(kept) < l.plan.kept {
			kept = append(kept, logits)
		}
		return results[1:2]
	})
	return results, states, kept
}

// backward returns the gradients of hidden and weight for the cotangent dloss of the loss. outputs are the results of
// forward. If a gradient is not needed, its result is zeros, which are never evaluated.
func (l linearLoss) backward(dloss *mlxc.Array, outputs []*mlxc.Array) (dhidden, dweight *mlxc.Array) {
	rows, dtype := l.classes.Dim(0), l.weight.DType()
	uniform := l.cfg.Reduction != ReductionNone
	cotangents, kept := dloss, outputs[2:]
	if uniform {
		cotangents, kept = dloss.Div(outputs[2]), outputs[3:]
	}
	ignored := l.ignoredRows()
	perRow := func(c *mlxc.Array) *mlxc.Array {
		if !uniform {
			c = c.Reshape(rows)
		}
		return zerosWhere(ignored, c.BroadcastTo(rows))
	}
	unmasked := ignored // ignored rows of l.hidden, which may hold NaN and must not enter dweight
	if !l.inPlace {
		// The copy also keeps MLX's compiler from merging logits that are computed twice.
		l.hidden, unmasked = zerosWhere(ignored.ExpandDims(-1), l.hidden), nil
	}
	var scaled scaling
	switch {
	case l.inPlace && uniform:
		scaled.inPlace, scaled.dweight = cotangents, cotangents
		scaled.cotangents = mlxc.Ones(mlxc.Float32, rows)
		scaled.hidden = l.scaleRows(l.hidden, nil, unmasked != nil)
	case dtype != mlxc.Float16:
		scaled.cotangents = perRow(cotangents)
		scaled.hidden = l.scaleRows(l.hidden, nil, unmasked != nil)
	default:
		scaled = l.scaledForFloat16(perRow(cotangents), unmasked)
	}
	if mlxc.Differentiating() && !l.inPlace {
		kept = nil // MLX would treat them as constants in a second derivative; the one of products in place is an error
	}
	gradients := l.gradients
	if l.inPlace {
		gradients = newCUDALoss(l).gradients
	}
	dhidden, dweight = gradients(outputs[1], kept, scaled)
	if dhidden == nil {
		dhidden = zerosLike(l.hidden)[0]
	}
	if dweight == nil {
		dweight = zerosLike(l.weight)[0]
	}
	if scaled.rows != nil {
		dhidden = l.scaleRows(dhidden, scaled.rows, false)
	}
	return dhidden.AsType(dtype), dweight
}

// ignoredRows returns an array of booleans that tells which rows are ignored, or nil if products in place need none.
func (l linearLoss) ignoredRows() *mlxc.Array {
	if l.inPlace && l.classes.DType() == mlxc.Uint32 { // no class is negative
		return nil
	}
	return l.classes.Less(mlxc.Scalar[int32](0))
}

// gradients returns the sums of the products that compute dhidden, and dweight; nil for a gradient that is not needed.
func (l linearLoss) gradients(
	states *mlxc.Array, kept []*mlxc.Array, scaled scaling,
) (dhidden, dweight *mlxc.Array) {
	var dweights []*mlxc.Array // one per slice
	l.slices(l.hidden, func(hidden, weight *mlxc.Array, begin int) (done []*mlxc.Array) {
		var logits *mlxc.Array
		if at := begin / l.plan.slice; at < len(kept) {
			logits = kept[at].After(hidden) // otherwise MLX could compute all dlogits at once
		} else {
			logits = l.logits(hidden, weight)
		}
		slice := classSlice{begin, l.weight.Dim(0)}
		dlogits := crossEntropyGradient(l.on, logits, states, scaled.cotangents, slice, l.cfg)
		if l.needsGrad[0] {
			dh := matrixProduct(l.on, matrix{array: dlogits}, matrix{array: weight})
			if dhidden != nil {
				dh = dhidden.AsType(mlxc.Float32).Add(dh)
			}
			dhidden = dh
			done = append(done, dh)
		}
		if l.needsGrad[1] {
			dw := matrixProduct(l.on, matrix{array: dlogits, transposed: true}, matrix{array: scaled.hidden})
			if scaled.dweight != nil {
				dw = dw.Mul(scaled.dweight.AsType(mlxc.Float16))
			}
			dweights = append(dweights, dw)
			done = append(done, dw)
		}
		return done
	})
	if l.needsGrad[1] {
		dweight = mlxc.Concatenate(0, dweights...)
	}
	return dhidden, dweight
}

// A scaling holds the scaled operands of the matrix products that compute dhidden and dweight, and the factors that
// undo the scaling of these products. A nil factor is 1.
type scaling struct {
	cotangents *mlxc.Array // [rows]
	hidden     *mlxc.Array // [rows, H], operand of dweight; ignored rows are zeros
	inPlace    *mlxc.Array // float32 scalar, factor of dhidden's products in place; dweight is then the same
	rows       *mlxc.Array // [rows], float32, factors of the rows of dhidden
	dweight    *mlxc.Array // float32 scalar, factor of dweight
}

// scaleRows returns the rows of a matrix times float32 factors [rows], which may be nil. With products in place, `masked`
// replaces ignored rows by zeros.
func (l linearLoss) scaleRows(a, factors *mlxc.Array, masked bool) *mlxc.Array {
	if l.inPlace && (factors != nil || masked) {
		var classes *mlxc.Array
		if masked {
			classes = l.classes
		}
		return productsInPlace().ScaleRows(a, factors, classes)
	}
	if factors != nil {
		a = a.AsType(mlxc.Float32).Mul(factors.ExpandDims(-1))
	}
	return a
}

// zerosWhere returns an array with zeros where ignored is true. ignored may be nil.
func zerosWhere(ignored, a *mlxc.Array) *mlxc.Array {
	if ignored == nil {
		return a
	}
	return mlxc.Where(ignored, mlxc.Scalar[float32](0).AsType(a.DType()), a)
}

// scaledForFloat16 keeps small elements of dlogits from vanishing and sums over rows from overflowing. It scales by
// powers of two, which round only subnormal elements.
//
// Each cotangent is divided by a power of two p of its row, which brings it to [1, 2). The row of dhidden is multiplied
// by p afterwards. For dweight, the row of hidden is multiplied by p/q, with one power of two q for all rows, and
// dweight by q afterwards. q is chosen for the worst case: if all elements of hidden were as large as the largest,
// their sum over the rows would be a quarter of float16's largest number. unmasked, if not nil, tells which rows of
// hidden are taken as zeros.
func (l linearLoss) scaledForFloat16(cotangents, unmasked *mlxc.Array) scaling {
	rowScale := powerOfTwo(cotangents)
	sumScale := math.Ldexp(1, bits.Len(uint(l.hidden.Dim(0)))-12)
	largest := powerOfTwo(zerosWhere(unmasked, l.hidden.Abs().Max(-1)).Max().AsType(mlxc.Float32))
	scale := rowScale.Max().Mul(largest).MulScalar(sumScale).Clip(0x1p-24, 0x1p15) // float16's powers of two
	return scaling{
		cotangents: cotangents.Div(rowScale),
		hidden:     l.scaleRows(l.hidden, rowScale.Div(scale), unmasked != nil).AsType(mlxc.Float16),
		rows:       rowScale,
		dweight:    scale,
	}
}

// powerOfTwo returns the largest power of two that is not above |v| for each float32 v: v with only its exponent bits.
// The result is 1 for zero and subnormal numbers, and infinity for infinity and NaN.
func powerOfTwo(values *mlxc.Array) *mlxc.Array {
	power := values.View(mlxc.Int32).BitwiseAnd(mlxc.Scalar[int32](0x7f800000)).View(mlxc.Float32)
	zero, one := mlxc.Scalar[float32](0), mlxc.Scalar[float32](1)
	return mlxc.Where(power.Equal(zero), one, power)
}

// A classRange is a slice of the classes, without `end`.
type classRange struct{ begin, end int }

// classSlices returns the slices of the plan.
func (l linearLoss) classSlices() []classRange {
	classes := l.weight.Dim(0)
	var all []classRange
	for begin := 0; begin < classes; begin += l.plan.slice {
		all = append(all, classRange{begin, min(begin+l.plan.slice, classes)})
	}
	return all
}

// slices calls f for every slice of the classes, with hidden, the slice's rows of weight, and the first class. f
// returns the last arrays that it computes for the slice. The hidden of the next call depends on them; otherwise MLX
// could compute the logits of all slices at once.
func (l linearLoss) slices(hidden *mlxc.Array, f func(hidden, weight *mlxc.Array, begin int) []*mlxc.Array) {
	all := l.classSlices()
	for i, s := range all {
		done := f(hidden, l.weight.Slice([]int{s.begin, 0}, []int{s.end, l.weight.Dim(1)}, nil), s.begin)
		if i+1 < len(all) {
			hidden = hidden.AfterCompletion(done...)
		}
	}
}
