package ops

import (
	"slices"

	"github.com/mlxgrad/mlxgrad/internal/products"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A cudaLoss is a linearLoss whose matrix products write to memory that exists. One matrix holds the logits of all
// slices in turn. The forward pass computes the first slice last. The backward pass begins with these logits and
// overwrites them by dlogits; the logits of other slices are computed again. All products use one workspace, so they
// run one after the other, and the host need not wait between slices to bound the memory.
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

// logitsInto computes the logits of a slice in the memory of the first array, which has at least as many columns.
// `after` lists arrays whose nodes read that memory before.
func (l cudaLoss) logitsInto(memory, hidden, weight *mlxc.Array, after ...*mlxc.Array) *mlxc.Array {
	return l.products.Into(products.Product[*mlxc.Array]{
		A: hidden, B: weight, TransposedB: true, Workspace: l.workspace, After: after,
		Destination: columnsOf(memory, weight.Dim(0)),
	})
}

// columnsOf returns a matrix of n columns in the memory of a matrix with as many rows and at least n columns.
func columnsOf(memory *mlxc.Array, n int) *mlxc.Array {
	rows, width := memory.Dim(0), memory.Dim(1)
	if n == width {
		return memory
	}
	used := ceilDiv(rows*n, width) // all rows may have more elements than an axis can have
	return memory.Slice([]int{0, 0}, []int{used, width}, nil).Reshape(used*width).
		Slice([]int{0}, []int{rows * n}, nil).Reshape(rows, n)
}

// sliceStates is linearLoss.sliceStates. It begins with the last slice, so that the logits of the first remain.
func (l cudaLoss) sliceStates(keep bool) (results, states, kept []*mlxc.Array) {
	rows, classes := l.classes.Dim(0), l.weight.Dim(0)
	if !keep {
		l.plan.slice = min(l.plan.slice, lossSlice(rows, classes, l.weight.DType()))
	}
	memory := l.products.Undefined(l.weight.DType(), rows, l.plan.slice)
	for _, s := range slices.Backward(l.classSlices()) {
		kept = []*mlxc.Array{l.logitsInto(memory, l.hidden, s.weight, results...)}
		results = crossEntropyLosses(l.on, kept[0], l.classes, nil, classSlice{s.begin, classes}, l.cfg)
		states = append(states, results[1])
	}
	if !keep {
		kept = nil
	}
	return results, states, kept
}

// gradients is linearLoss.gradients.
func (l cudaLoss) gradients(
	hidden, states *mlxc.Array, kept []*mlxc.Array, scaled scaling,
) (dhidden, dweight *mlxc.Array) {
	dtype := l.weight.DType()
	hidden, scaled.hidden = hidden.Contiguous(), scaled.hidden.Contiguous()
	if l.needsGrad[0] {
		dhidden = l.products.Undefined(dtype, l.hidden.Shape()...)
	}
	if l.needsGrad[1] {
		dweight = l.products.Undefined(dtype, l.weight.Shape()...)
	}
	var logits, memory *mlxc.Array
	if len(kept) > 0 {
		logits, memory = l.products.Reuse(kept[0])
	} else {
		memory = l.products.Undefined(dtype, l.classes.Dim(0), l.plan.slice)
	}
	var last []*mlxc.Array
	for i, s := range l.classSlices() {
		dlogits := columnsOf(memory, s.weight.Dim(0))
		if i > 0 || logits == nil {
			dlogits = l.logitsInto(memory, hidden, s.weight, last...)
			logits = dlogits
		}
		written := crossEntropyGradientInto(
			l.on, dlogits, logits, l.classes, states, scaled.cotangents, classSlice{s.begin, l.weight.Dim(0)}, l.cfg)
		p := products.Product[*mlxc.Array]{A: dlogits, Workspace: l.workspace, After: []*mlxc.Array{written}}
		last = nil
		if l.needsGrad[0] {
			p.B, p.Destination, p.Accumulate, p.Factor = s.weight, dhidden, i > 0, scaled.inPlace
			dhidden = l.products.Into(p)
			last = append(last, dhidden)
		}
		if l.needsGrad[1] {
			p.B, p.Destination, p.Accumulate, p.Factor = scaled.hidden, dweight, false, scaled.dweight
			p.TransposedA, p.Row = true, s.begin
			dweight = l.products.Into(p)
			last = append(last, dweight)
		}
	}
	return dhidden, dweight
}
