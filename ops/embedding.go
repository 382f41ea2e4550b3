package ops

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var embeddingKernels = newShaderFile("embedding.metal")

// Embedding takes rows of a table by their numbers.
//
// weight has shape (V,D) and is float32, float16 or bfloat16; ids are int32 or uint32, of
// any shape S. The result has shape S+(D) and weight's dtype.
//
// An id that is negative, V or more is out of range: the call fails if the ids are
// evaluated already, at most 65,536 and, on an NVIDIA GPU, made by mlxc.FromSlice; else
// the row of the result is NaN, and the id has no gradient. Nothing is accessed out of
// bounds.
//
// The gradient is dweight_v = Σ dy over the tokens whose id is v, added up in float32 and
// in an order that the number of tokens alone decides; zero for a row that has none. MLX
// sorts the tokens by their ids; kernels then read dy once and write every row of dweight
// once, in parallel however many tokens share an id. The gradient has V rows:
// EmbeddingSparseGradient has only those that ids name.
func Embedding(weight, ids *mlxc.Array) *mlxc.Array {
	const op = "ops.Embedding"
	if err := checkEmbedding(weight, ids); err != nil {
		return mlxc.InvalidArray(opError(op, err, weight, ids))
	}
	if !kernelsAvailable(op) {
		return takeOrNaN(weight, ids)
	}
	return withGradient([]*mlxc.Array{weight, ids},
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
		return errors.New("weight must have two axes, vocabulary and width")
	}
	if !slices.Contains(gradientDTypes, weight.DType()) {
		return fmt.Errorf("weight is %v: the gradient's kernels take float32, float16 and bfloat16; convert with AsType", weight.DType())
	}
	return checkIDs(ids, weight.Dim(0))
}

// checkIDs checks ids for rows of a table, and their values if those are there and
// few.
func checkIDs(ids *mlxc.Array, vocabulary int) error {
	if err := requireArray("ids", ids); err != nil {
		return err
	}
	if d := ids.DType(); d != mlxc.Int32 && d != mlxc.Uint32 {
		return fmt.Errorf("ids are %v: they must be int32 or uint32; convert with AsType", d)
	}
	if !readableWithoutSync(ids) {
		return nil
	}
	if ids.DType() == mlxc.Int32 {
		return inRange[int32](ids, vocabulary)
	}
	return inRange[uint32](ids, vocabulary)
}

func inRange[T int32 | uint32](ids *mlxc.Array, vocabulary int) error {
	values, err := mlxc.ToSlice[T](ids)
	if err != nil {
		return err
	}
	for i, id := range values {
		if int64(id) < 0 || int64(id) >= int64(vocabulary) {
			return fmt.Errorf("id %d of %d is %d: the table has %d rows, from 0", i+1, len(values), id, vocabulary)
		}
	}
	return nil
}

// takeOrNaN is Embedding in operations of MLX.
func takeOrNaN(weight, ids *mlxc.Array) *mlxc.Array {
	nan := mlxc.Scalar(float32(math.NaN())).AsType(weight.DType())
	if weight.Dim(0) == 0 {
		return mlxc.Full(weight.DType(), nan, append(ids.Shape(), weight.Dim(1))...)
	}
	unsigned := ids.AsType(mlxc.Uint32) // negative ids become large ones
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

// embeddingForward launches the forward kernel.
func embeddingForward(on target, weight, ids *mlxc.Array) *mlxc.Array {
	tokens, width := ids.Size(), weight.Dim(1)
	unsigned := unsignedIDs(ids)
	defer unsigned.Free()
	g := sharesOf(on.backend, weight.DType(), tokens, width)
	n := uint32Args(tokens, weight.Dim(0), width, g.shares)
	return on.launch(embeddingKernels.kernel("embedding"), customkernels.Launch{
		Grid:        [3]int{g.grid},
		Threadgroup: [3]int{g.threads},
		Template:    embeddingTemplate{weight.DType(), g.chunk}.args(),
		Outputs:     []mlxc.Output{{Shape: append(ids.Shape(), width), DType: weight.DType()}},
	}, weight, unsigned, n[0], n[1], n[2], n[3])[0]
}

// unsignedIDs are the ids along one axis; negative ones become large ones.
func unsignedIDs(ids *mlxc.Array) *mlxc.Array {
	unsigned := ids.AsType(mlxc.Uint32)
	defer unsigned.Free()
	return unsigned.Reshape(ids.Size())
}
