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
	l.hidden, l.weight = l.hidden.Contiguous(), l.weight.Contiguous()
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
	rows, n := l.classes.Dim(0), s.weight.Dim(0)
	if n == memory.Dim(1) && rows == memory.Dim(0) {
		return memory
	}
	return memory.Reshape(memory.Size()).Slice([]int{0}, []int{rows * n}, nil).Reshape(rows, n)
}

// keptLogits returns arrays that begin with the logits of the slices. The second has the shape of weight.
func (l cudaLoss) keptLogits() []*mlxc.Array {
	memory := []*mlxc.Array{l.products.Undefined(l.weight.DType(), l.classes.Dim(0), l.plan.slice)}
	all := l.classSlices()
	if len(all) > 1 {
		memory = append(memory, l.products.Undefined(l.weight.DType(), l.weight.Shape()...))
	}
	for i, s := range all {
		memory[i] = l.logitsInto(memory[i], s)
	}
	return memory
}

// sliceStates is linearLoss.sliceStates.
func (l cudaLoss) sliceStates(keep bool) (results, states, kept []*mlxc.Array) {
	rows, classes := l.classes.Dim(0), l.weight.Dim(0)
	addStates := func(memory *mlxc.Array, s weightSlice) {
		results = crossEntropyLosses(l.on, l.logitsOf(memory, s), l.classes, nil, classSlice{s.begin, classes}, l.cfg)
		states = append(states, results[1])
	}
	if keep {
		kept = l.keptLogits()
		for i, s := range l.classSlices() {
			addStates(kept[i], s)
		}
		return results, states, kept
	}
	l.plan.slice = min(l.plan.slice, lossSlice(rows, classes, l.weight.DType()))
	memory := l.products.Undefined(l.weight.DType(), rows, l.plan.slice)
	for _, s := range l.classSlices() {
		memory = l.logitsInto(memory, s, results...)
		addStates(memory, s)
	}
	return results, states, nil
}

// gradients is linearLoss.gradients.
func (l cudaLoss) gradients(
	_, states *mlxc.Array, kept []*mlxc.Array, scaled scaling,
) (dhidden, dweight *mlxc.Array) {
	if len(kept) == 0 {
		kept = l.keptLogits()
	}
	scaled.hidden = scaled.hidden.Contiguous()
	var last []*mlxc.Array // products of the second slice
	for i, s := range slices.Backward(l.classSlices()) {
		elements, memory := l.products.Reuse(kept[i])
		logits, dlogits := l.logitsOf(elements, s), l.logitsOf(memory, s)
		written := crossEntropyGradientInto(
			l.on, dlogits, logits, l.classes, states, scaled.cotangents, classSlice{s.begin, l.weight.Dim(0)}, l.cfg)
		p := products.Product[*mlxc.Array]{A: dlogits, Workspace: l.workspace, After: append(last, written)}
		last = nil
		if l.needsGrad[0] {
			p.B, p.Destination, p.Accumulate, p.Factor = s.weight, dhidden, dhidden != nil, scaled.inPlace
			if dhidden == nil {
				p.Destination = l.products.Undefined(l.weight.DType(), l.hidden.Shape()...)
			}
			dhidden = l.products.Into(p)
			last = append(last, dhidden)
		}
		if l.needsGrad[1] {
			p.B, p.Destination, p.Accumulate, p.Factor = scaled.hidden, dweight, false, scaled.dweight
			p.TransposedA, p.Begin = true, s.begin*l.weight.Dim(1)
			switch {
			case i > 0:
				p.Destination = memory
			case dweight == nil:
				p.Destination = l.products.Undefined(l.weight.DType(), l.weight.Shape()...)
			}
			dweight = l.products.Into(p)
			last = append(last, dweight)
		}
	}
	return dhidden, dweight
}
