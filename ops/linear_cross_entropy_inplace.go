package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/internal/products"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A cudaLoss is a linearLoss whose matrix products write to memory that exists. All products of a pass share an operand,
// so they run one after the other, and the host need not wait between slices to bound the memory. While a gradient is
// being taken, there are at most two slices, whose logits are kept and overwritten by dlogits. The logits of the second
// slice lie in the memory of dweight, in rows of the first slice, so the backward pass begins with the second.
type cudaLoss struct {
	linearLoss
	products products.Functions[*mlxc.Array]
}

// productWorkspace is the most memory of a product in bytes, most_workspace of mlxg_products.cpp. cuBLAS's products of
// large matrices use none on an H100.
const productWorkspace = 4 << 20

func newCUDALoss(l linearLoss) cudaLoss { return cudaLoss{l, productsInPlace()} }

func productsInPlace() products.Functions[*mlxc.Array] { return products.Use[*mlxc.Array]() }

// logitsInto returns the logits of a slice in the memory of an array or, if it is nil, at the beginning of new memory for
// a matrix of the shape `size`. `after` lists arrays whose nodes read the memory before.
func (l cudaLoss) logitsInto(memory *mlxc.Array, size products.Shape, s classRange, after ...*mlxc.Array) *mlxc.Array {
	return l.products.Into(products.Product[*mlxc.Array]{
		A: l.hidden, B: l.weight, FirstB: s.begin, EndB: s.end, TransposedB: true,
		Destination: memory, Memory: size, Result: products.Shape{l.classes.Dim(0), s.end - s.begin}, After: after,
	})
}

// keptMemory returns the shape of the memory that begins with the logits of slice i.
func (l cudaLoss) keptMemory(i int) products.Shape {
	if i > 0 {
		return products.Shape(l.weight.Shape())
	}
	return products.Shape{l.classes.Dim(0), l.plan.slice}
}

// keptLogits returns the logits of the slices. The memory of the second is that of an array of weight's shape.
func (l cudaLoss) keptLogits() []*mlxc.Array {
	all := l.classSlices()
	kept := make([]*mlxc.Array, len(all))
	for i, s := range slices.Backward(all) {
		kept[i] = l.logitsInto(nil, l.keptMemory(i), s)
	}
	return kept
}

// reduced reports whether all losses have the same cotangent. The products for the gradients are then multiplied by it.
func (l cudaLoss) reduced() bool { return l.cfg.Reduction != ReductionNone }

// sliceStates is linearLoss.sliceStates.
func (l cudaLoss) sliceStates(keep bool) (results, states, kept []*mlxc.Array) {
	if keep {
		kept = l.keptLogits()
		results, states = l.keptStates(kept)
		return results, states, kept
	}
	rows, classes, dtype := l.classes.Dim(0), l.weight.Dim(0), l.weight.DType()
	l.plan.slice = min(l.plan.slice, lossSlice(rows, classes, dtype))
	var logits *mlxc.Array
	for _, s := range l.classSlices() {
		logits = l.logitsInto(logits, products.Shape{rows, l.plan.slice}, s, results...)
		results = crossEntropyLosses(l.on, logits, l.classes, nil, classSlice{s.begin, classes}, l.cfg)
		states = append(states, results[1])
	}
	return results, states, nil
}

// keptStates returns the losses and states of the first slice, and the states of all slices. If the losses are reduced,
// it replaces the logits by dlogits, for cotangents of 1, and returns only the states of all classes.
func (l cudaLoss) keptStates(kept []*mlxc.Array) (results, states []*mlxc.Array) {
	if l.reduced() {
		results = crossEntropyLossesInPlace(l.on, kept, l.classes, l.cfg)
		return results, results[1:]
	}
	for i, s := range slices.Backward(l.classSlices()) {
		results = crossEntropyLosses(l.on, kept[i], l.classes, nil, classSlice{s.begin, l.weight.Dim(0)}, l.cfg)
		states = append(states, results[1])
	}
	return results, states
}

// dlogits returns dlogits of slice i, an array whose memory products may overwrite when they have read dlogits, and an
// array after whose node dlogits are there. dlogits have the memory of the logits, unless another backward pass reads
// them there.
func (l cudaLoss) dlogits(
	i int, kept []*mlxc.Array, states, cotangents *mlxc.Array,
) (dlogits, memory, written *mlxc.Array) {
	if i == 0 && l.reduced() { // nothing overwrites them
		return kept[i], nil, states
	}
	// All nodes of the forward pass that read the logits run before the states are complete.
	logits, memory := l.products.Reuse(kept[i], states, l.keptMemory(i))
	if l.reduced() {
		return logits, memory, states
	}
	slice := classSlice{l.classSlices()[i].begin, l.weight.Dim(0)}
	written = crossEntropyGradientInto(l.on, memory, logits, states, cotangents, slice, l.cfg)
	return memory, memory, written
}

// gradients is linearLoss.gradients.
func (l cudaLoss) gradients(
	states *mlxc.Array, kept []*mlxc.Array, scaled scaling,
) (dhidden, dweight *mlxc.Array) {
	if len(kept) == 0 {
		kept = l.keptLogits()
		if l.reduced() {
			_, all := l.keptStates(kept)
			states = all[0]
		}
	}
	var last []*mlxc.Array // products of the previous slice
	for i, s := range slices.Backward(l.classSlices()) {
		dlogits, memory, written := l.dlogits(i, kept, states, scaled.cotangents)
		p := products.Product[*mlxc.Array]{A: dlogits, After: append(last, written)}
		last = nil
		if l.needsGrad[0] {
			p.B, p.FirstB, p.EndB, p.Factor = l.weight, s.begin, s.end, scaled.inPlace
			p.Destination, p.Accumulate = dhidden, dhidden != nil
			p.Result = products.Shape(l.hidden.Shape())
			p.Memory = p.Result
			dhidden = l.products.Into(p)
			last = append(last, dhidden)
		}
		if l.needsGrad[1] {
			p.B, p.FirstB, p.EndB, p.Factor = scaled.hidden, 0, l.classes.Dim(0), scaled.dweight
			p.Destination, p.Accumulate = dweight, false
			if i > 0 {
				p.Destination = memory
			}
			p.Result = products.Shape(l.weight.Shape())
			p.Memory = p.Result
			p.TransposedA, p.Begin = true, s.begin*l.weight.Dim(1)
			dweight = l.products.Into(p)
			last = append(last, dweight)
		}
	}
	return dhidden, dweight
}
