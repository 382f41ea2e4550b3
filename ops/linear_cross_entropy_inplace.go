package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/internal/products"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A cudaLoss is a linearLoss whose matrix products write to memory that exists. All products use one workspace, so they
// run one after the other, and the host need not wait between slices to bound the memory. While a gradient is being
// taken, there are at most two slices, whose logits are kept and overwritten by dlogits. The logits of the second slice
// lie in the memory of dweight, in rows of the first slice, so the backward pass begins with the second.
type cudaLoss struct {
	linearLoss
	products  products.Functions[*mlxc.Array, mlxc.DType]
	workspace *mlxc.Array
}

// productWorkspace is the size of the workspace in bytes. cuBLAS's products of large matrices use none on an H100.
const productWorkspace = 4 << 20

func newCUDALoss(l linearLoss) cudaLoss {
	p := productsInPlace()
	return cudaLoss{linearLoss: l, products: p, workspace: p.Undefined(mlxc.Uint8, productWorkspace)}
}

func productsInPlace() products.Functions[*mlxc.Array, mlxc.DType] {
	return products.Use[*mlxc.Array, mlxc.DType]()
}

// logitsInto returns the memory with the logits of a slice at its beginning. `after` lists arrays whose nodes read that
// memory before.
func (l cudaLoss) logitsInto(memory *mlxc.Array, s weightSlice, after ...*mlxc.Array) *mlxc.Array {
	return l.products.Into(products.Product[*mlxc.Array]{
		A: l.hidden, B: s.weight, TransposedB: true, Workspace: l.workspace, After: after, Destination: memory,
	})
}

// logitsOf returns the logits of a slice, which begin the memory.
func (l cudaLoss) logitsOf(memory *mlxc.Array, s weightSlice) *mlxc.Array {
	return matrixAtBeginning(memory, l.classes.Dim(0), s.weight.Dim(0))
}

// matrixAtBeginning returns the matrix of a shape whose elements are the first of another matrix.
func matrixAtBeginning(memory *mlxc.Array, rows, columns int) *mlxc.Array {
	if memory.Err() != nil || rows == memory.Dim(0) && columns == memory.Dim(1) {
		return memory
	}
	return productsInPlace().Beginning(memory, rows, columns)
}

// keptLogits returns arrays that begin with the logits of the slices. The second has the shape of weight.
func (l cudaLoss) keptLogits() []*mlxc.Array {
	shapes := [][]int{{l.classes.Dim(0), l.plan.slice}, l.weight.Shape()}
	all := l.classSlices()
	kept := make([]*mlxc.Array, len(all))
	for i, s := range slices.Backward(all) {
		kept[i] = l.logitsInto(l.products.Undefined(l.weight.DType(), shapes[i]...), s)
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
	memory := l.products.Undefined(dtype, rows, l.plan.slice)
	for _, s := range l.classSlices() {
		memory = l.logitsInto(memory, s, results...)
		results = crossEntropyLosses(l.on, l.logitsOf(memory, s), l.classes, nil, classSlice{s.begin, classes}, l.cfg)
		states = append(states, results[1])
	}
	return results, states, nil
}

// keptStates returns the losses and states of the first slice, and the states of all slices. If the losses are reduced,
// it replaces the logits by dlogits, for cotangents of 1, and returns only the states of all classes.
func (l cudaLoss) keptStates(kept []*mlxc.Array) (results, states []*mlxc.Array) {
	all := l.classSlices()
	logits := make([]*mlxc.Array, len(all))
	for i, s := range all {
		logits[i] = l.logitsOf(kept[i], s)
	}
	if l.reduced() {
		results = crossEntropyLossesInPlace(l.on, logits, l.classes, l.cfg)
		return results, results[1:]
	}
	for i, s := range slices.Backward(all) {
		results = crossEntropyLosses(l.on, logits[i], l.classes, nil, classSlice{s.begin, l.weight.Dim(0)}, l.cfg)
		states = append(states, results[1])
	}
	return results, states
}

// dlogits returns dlogits of slice i, memory that products may overwrite when they have read dlogits, and an array after
// whose node dlogits are there. dlogits begin the memory, unless another backward pass reads them there.
func (l cudaLoss) dlogits(
	i int, kept []*mlxc.Array, states, cotangents *mlxc.Array,
) (dlogits, memory, written *mlxc.Array) {
	s := l.classSlices()[i]
	if i == 0 && l.reduced() { // nothing overwrites them
		return l.logitsOf(kept[i], s), nil, states
	}
	// All nodes of the forward pass that read the logits run before the states are complete.
	logits, memory := l.products.Reuse(kept[i], states)
	if l.reduced() {
		return l.logitsOf(logits, s), memory, states
	}
	dlogits = l.logitsOf(memory, s)
	written = crossEntropyGradientInto(l.on, dlogits, l.logitsOf(logits, s), states, cotangents,
		classSlice{s.begin, l.weight.Dim(0)}, l.cfg)
	return dlogits, memory, written
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
	dtype := l.weight.DType()
	var last []*mlxc.Array // products of the previous slice
	for i, s := range slices.Backward(l.classSlices()) {
		dlogits, memory, written := l.dlogits(i, kept, states, scaled.cotangents)
		p := products.Product[*mlxc.Array]{A: dlogits, Workspace: l.workspace, After: append(last, written)}
		last = nil
		if l.needsGrad[0] {
			p.B, p.Destination, p.Accumulate, p.Factor = s.weight, dhidden, dhidden != nil, scaled.inPlace
			if dhidden == nil {
				p.Destination = l.products.Undefined(dtype, l.hidden.Shape()...)
			}
			dhidden = l.products.Into(p)
			last = append(last, dhidden)
		}
		if l.needsGrad[1] {
			if i > 0 {
				dweight = memory
			} else if dweight == nil {
				dweight = l.products.Undefined(dtype, l.weight.Shape()...)
			}
			p.B, p.Destination, p.Accumulate, p.Factor = scaled.hidden, dweight, false, scaled.dweight
			p.TransposedA, p.Begin = true, s.begin*l.weight.Dim(1)
			dweight = l.products.Into(p)
			last = append(last, dweight)
		}
	}
	return dhidden, dweight
}
