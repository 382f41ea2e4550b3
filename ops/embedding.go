package ops

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var embeddingKernels = newShaderFile("embedding.metal")

// Embedding returns rows of a table by id: y_s = weight[ids_s]. It has a gradient for weight.
//
// weight has shape (V,D) and dtype float32, float16 or bfloat16. ids has any shape S and dtype int32 or uint32. The
// result has shape S+(D) and weight's dtype.
//
// An id that is negative or not below V is out of range. Embedding returns an error for it if ids has been computed,
// has at most 65,536 elements and, on an NVIDIA GPU, was made by [mlxc.FromSlice]. Otherwise the row of the result is
// NaN and the id does not contribute to the gradient. The kernels access no memory out of bounds.
//
// The gradient is dweight_v = Σ dy_s over the tokens s whose id is v; rows without tokens are zero. Sums are in
// float32, in an order that depends only on ids, so the bits are the same at every call. The tokens are sorted by id.
// The kernels then read dy once and write each row of dweight once, in parallel even if all tokens have the same id. A
// second derivative is an error. The gradient has V rows; [EmbeddingSparseGradient] computes only the rows that ids
// contains.
func Embedding(weight, ids *mlxc.Array) *mlxc.Array {
	const op = "ops.Embedding"
	if err := checkEmbedding(weight, ids); err != nil {
		return mlxc.InvalidArray(opError(op, err, weight, ids))
	}
	if !kernelsAvailable(op) {
		return embeddingMLX(weight, ids)
	}
	return withGradient(op, []*mlxc.Array{weight, ids},
		func(args []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{embeddingForward(currentTarget(), args[0], args[1])}
		},
		func(primals, cotangents, _ []*mlxc.Array) []*mlxc.Array {
			dy := cotangents[0].AsType(primals[0].DType())
			defer dy.Free()
			dweight := embeddingBackward(currentTarget(), dy, primals[1], primals[0].Dim(0))
			return []*mlxc.Array{dweight, zerosLike(primals[1])[0]}
		})[0]
}

func checkEmbedding(weight, ids *mlxc.Array) error {
	if err := requireArray("weight", weight); err != nil {
		return err
	}
	if weight.NDim() != 2 {
		return fmt.Errorf("weight has shape %v; it must have two axes, vocabulary and width", weight.Shape())
	}
	if !slices.Contains(gradientDTypes, weight.DType()) {
		return fmt.Errorf("weight is %v; it must be float32, float16 or bfloat16: convert it with AsType",
			weight.DType())
	}
	return checkIDs(ids, weight.Dim(0))
}

// checkIDs returns an error if ids has a wrong dtype, or an id out of range that can be read without synchronization.
func checkIDs(ids *mlxc.Array, vocabulary int) error {
	if err := requireArray("ids", ids); err != nil {
		return err
	}
	if d := ids.DType(); d != mlxc.Int32 && d != mlxc.Uint32 {
		return fmt.Errorf("ids is %v; it must be int32 or uint32: convert it with AsType", d)
	}
	if ids.Size() > maxCheckedElements {
		return nil
	}
	if i, id := ids.FindOutside(0, vocabulary-1, math.MinInt); i >= 0 {
		return fmt.Errorf("element %d of ids is %d; it must be at least 0 and below %d, the number of table rows",
			i, id, vocabulary)
	}
	return nil
}

// embeddingMLX returns Embedding composed of MLX operations.
func embeddingMLX(weight, ids *mlxc.Array) *mlxc.Array {
	nan := mlxc.Scalar(float32(math.NaN())).AsType(weight.DType())
	if weight.Dim(0) == 0 {
		return mlxc.Full(weight.DType(), nan, append(ids.Shape(), weight.Dim(1))...)
	}
	unsigned := ids.AsType(mlxc.Uint32) // negative ids become 2³¹ and more
	last := mlxc.Scalar(uint32(weight.Dim(0) - 1))
	known := unsigned.LessEqual(last).ExpandDims(ids.NDim())
	return mlxc.Where(known, weight.Take(unsigned.Minimum(last), 0), nan)
}

// embeddingTemplate holds the template parameters of the forward kernel.
type embeddingTemplate struct {
	dtype mlxc.DType
	vec   int
}

func (t embeddingTemplate) args() []mlxc.TemplateArg {
	return []mlxc.TemplateArg{{Name: "T", Value: t.dtype}, {Name: "VEC", Value: t.vec}}
}

// embeddingForward returns the rows of weight.
func embeddingForward(on target, weight, ids *mlxc.Array) *mlxc.Array {
	tokens, width := ids.Size(), weight.Dim(1)
	unsigned := unsignedIDs(ids)
	defer unsigned.Free()
	g := embeddingGeometryFor(on.backend, weight.DType(), tokens, width)
	n := uint32Args(tokens, weight.Dim(0), width, g.threadsPerRow)
	return on.launch(embeddingKernels.kernel("embedding"), customkernels.Launch{
		Grid:        [3]int{g.grid},
		Threadgroup: [3]int{g.threads},
		Template:    embeddingTemplate{weight.DType(), g.vec}.args(),
		Outputs:     []mlxc.Output{{Shape: append(ids.Shape(), width), DType: weight.DType()}},
	}, weight, unsigned, n[0], n[1], n[2], n[3])[0]
}

// unsignedIDs returns the ids as uint32 along one axis. Negative ids become 2³¹ and more.
func unsignedIDs(ids *mlxc.Array) *mlxc.Array {
	unsigned := ids.AsType(mlxc.Uint32)
	defer unsigned.Free()
	return unsigned.Reshape(ids.Size())
}
