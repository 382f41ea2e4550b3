package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// A classPlan divides the classes of LinearCrossEntropy into slices.
type classPlan struct {
	slice int // classes in a slice; the last slice may have fewer
	kept  int // number of slices, from the first, whose logits are kept for the gradient
}

// defaultPlan returns the plan for the current backend. inPlace selects that of a cudaLoss.
func defaultPlan(rows int, weight *mlxc.Array, inPlace bool) classPlan {
	classes, width, dtype := weight.Dim(0), weight.Dim(1), weight.DType()
	if inPlace {
		return newInPlacePlan(rows, classes, width, dtype)
	}
	return newClassPlan(mlxc.CurrentBackend(), rows, classes, width, dtype)
}

// sliceBytes bounds the logits of a slice, by backend; a single slice may have twice as many. At this size matrix
// products run at full speed. On CUDA the host blocks between slices, so fewer and larger slices keep the GPU busy.
var sliceBytes = map[mlxc.Backend]int{
	mlxc.BackendCPU:   64 << 20,
	mlxc.BackendMetal: 64 << 20,
	mlxc.BackendCUDA:  128 << 20,
}

// minSliceClasses is the number of classes that a slice may have even if their logits exceed sliceBytes. With fewer
// classes, the accumulation of dhidden would take as long as the products.
const minSliceClasses = 4096

// newClassPlan returns the plan for logits of shape (rows, classes) from a weight of shape (classes, width). The slices
// are about equally wide.
//
// The kept logits of the first slices are released while the slices of dweight are computed. dweight and its slices
// together take twice the memory of weight, so logits of this size do not raise the peak. For many rows, half of the
// logits are kept, which takes less memory than MLX's gradient and saves half of the fourth product.
func newClassPlan(b mlxc.Backend, rows, classes, width int, dtype mlxc.DType) classPlan {
	column := rows * dtype.Size() // bytes of logits of a class
	limit := max(sliceBytes[b]/column, minSliceClasses)
	slices := (classes + limit - 1) / limit
	if slices == 2 {
		slices = 1
	}
	p := classPlan{slice: (classes + slices - 1) / slices}
	p.kept = max(2*classes*width*dtype.Size(), classes*column/2) / (p.slice * column)
	if 2*width >= rows {
		p.kept = slices // the last slice may be smaller
	}
	p.kept = max(p.kept, p.keptWithoutWeight(classes))
	return p
}

// keptWithoutWeight returns the value of kept if dweight is not computed. A single slice is in memory anyway.
func (p classPlan) keptWithoutWeight(classes int) int {
	if p.slice >= classes {
		return 1
	}
	return 0
}

// newInPlacePlan returns the plan of a cudaLoss. Small logits are one slice. Otherwise the other arrays must also fit in
// the memory of all logits, half of the memory that MLX's gradient takes: workspaces of products, the states of the
// rows and a copy of hidden. A second slice, whose logits take memory of dweight, has as many classes as these arrays
// need. Matrix products are fastest if slices are multiples of 1024 classes.
func newInPlacePlan(rows, classes, width int, dtype mlxc.DType) classPlan {
	column := rows * dtype.Size()
	if classes*column <= 512<<20 {
		return classPlan{slice: classes, kept: 1}
	}
	others := 2*productWorkspace + rows*(width*dtype.Size()+128)
	second := ceilDiv(others, column*1024) * 1024
	// rows·second elements must fit in the first slice's rows of dweight.
	return classPlan{slice: max(classes-second, ceilDiv(classes*rows, rows+width)), kept: 1}
}

// lossSlice returns the number of classes in a slice if a cudaLoss keeps no logits.
func lossSlice(rows, classes int, dtype mlxc.DType) int {
	column := rows * dtype.Size()
	return max(max(128<<20, classes*column/12)/column/minSliceClasses, 1) * minSliceClasses
}
