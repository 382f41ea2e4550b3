package ops

import (
	"github.com/mlxgrad/mlxgrad/internal/products"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// A cudaLoss is a linearLoss whose matrix products write to memory that exists. The slices of dweight are written to
// dweight itself, dhidden is accumulated in one array, and all slices share the memory of their logits. All products use
// one workspace, so they run one after the other, and the host need not wait between slices to bound the memory.
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
	rows := memory.Dim(0)
	if n == memory.Dim(1) {
		return memory
	}
	return memory.Reshape(memory.Size()).Slice([]int{0}, []int{rows * n}, nil).Reshape(rows, n)
}

// sliceStates is linearLoss.sliceStates. If some logits are not kept, their memory follows the kept logits, so that the
// gradient can use it.
func (l cudaLoss) sliceStates(keep bool) (results, states, kept []*mlxc.Array) {
	rows, dtype := l.classes.Dim(0), l.weight.DType()
	var shared *mlxc.Array // memory of the logits that are not kept
	l.classSlices(func(i int, weight *mlxc.Array, begin int) {
		memory, after := shared, []*mlxc.Array(nil)
		keeps := keep && i < l.plan.kept
		switch {
		case keeps:
			memory = l.products.Undefined(dtype, rows, weight.Dim(0))
		case shared == nil:
			shared = l.products.Undefined(dtype, rows, l.plan.slice)
			memory = shared
		default:
			after = states[i-1:]
		}
		logits := l.logitsInto(memory, l.hidden, weight, after...)
		results = crossEntropyLosses(l.on, logits, l.classes, nil, classSlice{begin, l.weight.Dim(0)}, l.cfg)
		states = append(states, results[1])
		if keeps {
			kept = append(kept, logits)
		}
	})
	if keep && shared != nil {
		kept = append(kept, shared)
	}
	return results, states, kept
}

// gradients is linearLoss.gradients. dhidden is float32.
func (l cudaLoss) gradients(
	hidden, states *mlxc.Array, kept []*mlxc.Array, scaled scaling,
) (dhidden, dweight *mlxc.Array) {
	rows, dtype := l.classes.Dim(0), l.weight.DType()
	hidden, scaled.hidden = hidden.Contiguous(), scaled.hidden.Contiguous()
	var scratch *mlxc.Array // logits and then dlogits of a slice
	if len(kept) > l.plan.kept {
		kept, scratch = kept[:l.plan.kept], kept[l.plan.kept]
	} else {
		scratch = l.products.Undefined(dtype, rows, l.plan.slice)
	}
	if l.needsGrad[0] {
		dhidden = l.products.Undefined(mlxc.Float32, l.hidden.Shape()...)
	}
	if l.needsGrad[1] {
		dweight = l.products.Undefined(dtype, l.weight.Shape()...)
	}
	l.classSlices(func(i int, weight *mlxc.Array, begin int) {
		var logits, dlogits *mlxc.Array
		if i < len(kept) {
			logits, dlogits = kept[i], columnsOf(scratch, weight.Dim(0))
		} else {
			logits = l.logitsInto(scratch, hidden, weight, states)
			dlogits = logits
		}
		written := crossEntropyGradientInto(
			l.on, dlogits, logits, l.classes, states, scaled.cotangents, classSlice{begin, l.weight.Dim(0)}, l.cfg)
		p := products.Product[*mlxc.Array]{A: dlogits, Workspace: l.workspace, After: []*mlxc.Array{written}}
		var last []*mlxc.Array
		if l.needsGrad[0] {
			p.B, p.Destination, p.Accumulate = weight, dhidden, i > 0
			dhidden = l.products.Into(p)
			last = append(last, dhidden)
		}
		if l.needsGrad[1] {
			p.B, p.Destination, p.Accumulate, p.Factor = scaled.hidden, dweight, false, scaled.dweight
			p.TransposedA, p.Row = true, begin
			dweight = l.products.Into(p)
			last = append(last, dweight)
		}
		scratch = scratch.After(last...)
	})
	return dhidden, dweight
}
