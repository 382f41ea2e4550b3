package ops

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// LinearCrossEntropy is the cross-entropy of the logits hidden·weightᵀ, of which many are
// never there all at once.
//
// hidden has shape (…,H) and is float32, float16 or bfloat16; weight has shape (V,H) and
// hidden's dtype; targets has the shape (…) and is int32 or uint32. The result, the
// options, and the policy for targets that are ignored or out of range are those of
// CrossEntropy. The hidden row of an ignored target may hold anything.
//
// The classes go through in slices, one after the other. The logits of a slice have
// hidden's dtype, to which the product in float32 is rounded, as it would be if all were
// kept, and so has their gradient dlogits. The slice's rows of dweight are
// dlogitsᵀ·hidden, and its share of dhidden is dlogits·weight, rounded to the dtype and
// added up in float32 over the slices, in order. In float16 cotangents and hidden are
// multiplied by powers of two first, and the gradients by what that leaves, so that little
// vanishes in dlogits, and sums over rows do not overflow before a mean is taken.
// Elements of dlogits below 6e-8 times the row's cotangent still vanish in float16; with a soft cap,
// those of logits beyond 9 caps.
//
// The logits of a slice are at most 64 MiB, or those of 4096 classes if that is more. If one
// slice has all, it is kept for the gradient where one is being taken (see
// mlxc.Differentiating): three matrix products in all. Others are computed once more for it,
// which makes four. What has no gradient is not computed: that of hidden or weight where it
// is captured (see mlxc.Array.IsTraced).
//
// Beside the arguments and the gradients there is memory for two slices, each of logits
// and their gradient, for dhidden in float32, and for dweight once more, of whose slices it
// is put together; on Apple GPUs for as many slices as MLX runs ahead (see
// mlxc.Array.AfterCompletion). Without a compiler for the kernels on a CPU, MLX's operations hold
// all logits.
func LinearCrossEntropy(hidden, weight, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
	const op = "ops.LinearCrossEntropy"
	if err := checkLinearCrossEntropy(hidden, weight, targets, cfg); err != nil {
		return mlxc.InvalidArray(opError(op, err, hidden, weight, targets))
	}
	if targets.Size() == 0 {
		return cfg.ofNoRows(targets)
	}
	if !kernelsAvailable(op) {
		return crossEntropyOfMLX(hidden.MatMul(weight.Transpose()), targets, cfg)
	}
	return linearCrossEntropy(hidden, weight, targets, cfg, sliceClasses(targets.Size()*weight.DType().Size(), weight.Dim(0)))
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
		return fmt.Errorf("weight must have the shape [classes, %d], a row like hidden's for each class", hidden.Dim(-1))
	case weight.DType() != hidden.DType():
		return fmt.Errorf("hidden is %v and weight %v: convert one with AsType", hidden.DType(), weight.DType())
	case weight.Size() == 0:
		return errors.New("weight is empty: there must be a class and a column")
	}
	return cfg.check(targets, "hidden", hidden, weight.Dim(0))
}

const (
	// maxSlice is how many bytes the logits of a slice may have: enough that matrix products run
	// at full speed, and little beside the weight of a large vocabulary.
	maxSlice = 64 << 20
	// minSlice is how many classes a slice may have whatever their bytes: with few, the products
	// would take no longer than adding up dhidden.
	minSlice = 4096
)

// sliceClasses is how many classes a slice has, the last perhaps fewer, for so many bytes of a
// column of logits: the slices are about as wide as each other.
func sliceClasses(columnBytes, classes int) int {
	most := max(maxSlice/columnBytes, minSlice)
	slices := (classes + most - 1) / most
	return (classes + slices - 1) / slices
}

// linearCrossEntropy is LinearCrossEntropy in slices of so many classes.
func linearCrossEntropy(hidden, weight, targets *mlxc.Array, cfg CrossEntropyConfig, slice int) *mlxc.Array {
	wanted := [...]bool{hidden.IsTraced(), weight.IsTraced()}
	of := func(args []*mlxc.Array) linearLoss {
		rows := args[2].Size()
		return linearLoss{
			on: currentTarget(), cfg: cfg, slice: slice, wanted: wanted,
			hidden: args[0].Reshape(rows, args[0].Dim(-1)), weight: args[1],
			classes: cfg.classes(args[2], args[1].Dim(0)),
		}
	}
	var made []*mlxc.Array
	results := withGradient([]*mlxc.Array{hidden, weight, targets},
		func(args []*mlxc.Array) []*mlxc.Array {
			made = scoped(func() []*mlxc.Array { return of(args).forward(args[2], mlxc.Differentiating()) })
			return made
		},
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return scoped(func() []*mlxc.Array {
				dhidden, dweight := of(primals).backward(cotangents[0], outputs)
				return []*mlxc.Array{dhidden.Reshape(primals[0].Shape()...), dweight, zerosLike(primals[2])[0]}
			})
		})
	// The graph has them; a handle would keep their memory for longer.
	freeAll(made)
	freeAll(results[1:])
	return results[0]
}

// A linearLoss is the work of LinearCrossEntropy. Its methods leave the arrays that they
// make to the caller's scope.
type linearLoss struct {
	on      target
	hidden  *mlxc.Array // [rows, H]
	weight  *mlxc.Array // [V, H]
	wanted  [2]bool     // the gradients of hidden and weight
	classes *mlxc.Array // [rows]
	cfg     CrossEntropyConfig
	slice   int // classes
}

// forward returns the loss and the rows' states; with keep also the logits, if they are one slice.
func (l linearLoss) forward(targets *mlxc.Array, keep bool) []*mlxc.Array {
	var results, states []*mlxc.Array
	l.slices(l.hidden, func(hidden, weight *mlxc.Array, begin int) []*mlxc.Array {
		logits := hidden.MatMul(weight.Transpose())
		results = append(crossEntropyLosses(l.on, logits, l.classes, nil, classSlice{begin, l.weight.Dim(0)}, l.cfg), logits)
		states = append(states, results[1])
		return results[1:2]
	})
	if len(states) > 1 {
		results = crossEntropyMerge(l.on, mlxc.Stack(0, states...), l.classes, l.weight.Dim(0), l.cfg)
	} else if !keep {
		results = results[:2]
	}
	if l.cfg.Reduction == None {
		results[0] = results[0].Reshape(targets.Shape()...)
	} else {
		results[0] = results[0].Sum().Div(l.cfg.divisor(l.classes))
	}
	return results
}

// backward returns the gradients of hidden and weight, for the cotangent of the loss, from
// outputs of forward; zeros, that nobody asks for, for one that is not wanted.
func (l linearLoss) backward(dloss *mlxc.Array, outputs []*mlxc.Array) (dhidden, dweight *mlxc.Array) {
	rows, dtype := l.classes.Dim(0), l.weight.DType()
	cotangents := dloss
	if l.cfg.Reduction != None {
		cotangents = dloss.Div(l.cfg.divisor(l.classes)).BroadcastTo(rows)
	}
	// A row that is ignored has no part in dweight, whatever it holds.
	ignored, zero := l.classes.Less(mlxc.Scalar[int32](0)), mlxc.Scalar[float32](0)
	cotangents = mlxc.Where(ignored, zero, cotangents.Reshape(rows))
	hidden := mlxc.Where(ignored.ExpandDims(-1), zero.AsType(dtype), l.hidden)
	scaled := unscaled(cotangents, hidden)
	if dtype == mlxc.Float16 {
		scaled = scaledForFloat16(cotangents, hidden)
	}

	var dweights []*mlxc.Array // of the slices
	l.slices(hidden, func(hidden, weight *mlxc.Array, begin int) (done []*mlxc.Array) {
		logits := outputs[len(outputs)-1]
		if !prepared(outputs) {
			logits = hidden.MatMul(weight.Transpose())
		}
		dlogits := crossEntropyGradient(l.on, logits, l.classes, outputs[1], scaled.cotangents, classSlice{begin, l.weight.Dim(0)}, l.cfg)
		if l.wanted[0] {
			dh := dlogits.MatMul(weight)
			if dhidden != nil {
				dh = dhidden.AsType(mlxc.Float32).Add(dh)
			}
			dhidden = dh
			done = append(done, dh)
		}
		if l.wanted[1] {
			dw := scaled.dweight(dlogits.Transpose().MatMul(scaled.hidden))
			dweights = append(dweights, dw)
			done = append(done, dw)
		}
		return done
	})
	if dhidden == nil {
		dhidden = zerosLike(l.hidden)[0]
	}
	if l.wanted[1] {
		dweight = mlxc.Concatenate(0, dweights...)
	} else {
		dweight = zerosLike(l.weight)[0]
	}
	return scaled.dhidden(dhidden).AsType(dtype), dweight
}

// A scaling is what the gradients are computed from, and what makes them of the products.
type scaling struct {
	cotangents *mlxc.Array // [rows]
	hidden     *mlxc.Array // [rows, H]: of dweight's product
	dhidden    func(product *mlxc.Array) *mlxc.Array
	dweight    func(product *mlxc.Array) *mlxc.Array
}

func unscaled(cotangents, hidden *mlxc.Array) scaling {
	same := func(a *mlxc.Array) *mlxc.Array { return a }
	return scaling{cotangents, hidden, same, same}
}

// scaledForFloat16 keeps what is small from vanishing in dlogits, and sums over rows from
// overflowing, by powers of two, which round nothing but elements that are subnormal. A row's cotangent
// is brought to 1 to 2, and dhidden's row multiplied by what it was divided by. hidden takes that over
// for dweight, but for one power for all: such that the largest element of hidden, in all rows at
// once, would give a quarter of what float16 holds.
func scaledForFloat16(cotangents, hidden *mlxc.Array) scaling {
	ofRow := powerOfTwo(cotangents)
	rows := ofRow.ExpandDims(-1)
	most := math.Ldexp(1, bits.Len(uint(hidden.Dim(0)))-12)
	// A power of two that float16 has.
	ofAll := ofRow.Max().Mul(powerOfTwo(hidden.Abs().Max().AsType(mlxc.Float32))).MulScalar(most).Clip(0x1p-24, 0x1p15)
	return scaling{
		cotangents: cotangents.Div(ofRow),
		hidden:     hidden.AsType(mlxc.Float32).Mul(rows.Div(ofAll)).AsType(mlxc.Float16),
		dhidden:    func(product *mlxc.Array) *mlxc.Array { return product.AsType(mlxc.Float32).Mul(rows) },
		dweight:    func(product *mlxc.Array) *mlxc.Array { return product.Mul(ofAll.AsType(mlxc.Float16)) },
	}
}

// powerOfTwo is the power of two in each float32, or 1 for those below all normal numbers: the bits
// other than the exponent's are taken away. Of what is not finite it is infinity.
func powerOfTwo(values *mlxc.Array) *mlxc.Array {
	power := values.View(mlxc.Int32).BitwiseAnd(mlxc.Scalar[int32](0x7f800000)).View(mlxc.Float32)
	zero, one := mlxc.Scalar[float32](0), mlxc.Scalar[float32](1)
	return mlxc.Where(power.Equal(zero), one, power)
}

// slices calls f with every slice of the classes: with hidden, which is not there before what f
// returned for the slice before, the slice's rows of weight, and where it begins. Else the logits
// of all slices could be there at once.
func (l linearLoss) slices(hidden *mlxc.Array, f func(hidden, weight *mlxc.Array, begin int) []*mlxc.Array) {
	for begin, n := 0, l.weight.Dim(0); begin < n; begin += l.slice {
		end := min(begin+l.slice, n)
		done := f(hidden, l.weight.Slice([]int{begin, 0}, []int{end, l.weight.Dim(1)}, nil), begin)
		if end < n {
			hidden = hidden.AfterCompletion(done...)
		}
	}
}
