package gomlx

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// checkKernels returns an error unless the dtype is one that the operations of package ops take.
func checkKernels(d dtypes.DType) error {
	if c, ok := codecs[d]; !ok || !hasKernels(c.dtype) {
		return fmt.Errorf("the dtype is %v; the kernels take float32, float16 and bfloat16: %w", d,
			backends.ErrNotImplemented)
	}
	return nil
}

// FusedSoftmax is the softmax along one axis.
func (f *function) FusedSoftmax(x backends.Value, axis int) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeFusedSoftmax, x, func(x *mlxc.Array) *mlxc.Array {
		last := x.NDim() - 1
		if axis == last {
			return ops.Softmax(x)
		}
		return ops.Softmax(x.MoveAxis(axis, last)).MoveAxis(last, axis)
	}, func(s shapes.Shape) (shapes.Shape, error) {
		if axis < 0 || axis >= s.Rank() {
			return s, fmt.Errorf("the axis is %d; it must be an axis of %v", axis, s)
		}
		return s, checkKernels(s.DType)
	})
}

// FusedGelu is x·Φ(x), or its approximation with tanh.
func (f *function) FusedGelu(x backends.Value, exact bool) (backends.Value, error) {
	return f.unaryTo(backends.OpTypeFusedGelu, x, func(x *mlxc.Array) *mlxc.Array {
		if exact {
			return gelu(x)
		}
		inner := x.Add(x.Mul(x).Mul(x).MulScalar(0.044715)).MulScalar(math.Sqrt(2 / math.Pi))
		return x.MulScalar(0.5).Mul(inner.Tanh().AddScalar(1))
	}, func(s shapes.Shape) (shapes.Shape, error) { return s, checkKernels(s.DType) })
}

func gelu(x *mlxc.Array) *mlxc.Array {
	return x.MulScalar(0.5).Mul(x.MulScalar(math.Sqrt2 / 2).Erf().AddScalar(1))
}

// FusedLayerNorm is the layer norm over the last axis. gamma and beta may be nil.
func (f *function) FusedLayerNorm(
	x backends.Value, axes []int, epsilon float64, gamma, beta backends.Value,
) (backends.Value, error) {
	inputs, has := optional([]backends.Value{x}, gamma, beta)
	return f.add1(backends.OpTypeFusedLayerNorm, inputs,
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			s := in[0]
			last := s.Rank() - 1
			if !slices.Equal(axes, []int{last}) {
				return s, nil, fmt.Errorf("the axes are %v; the kernel takes the last axis: %w", axes, backends.ErrNotImplemented)
			}
			for _, v := range in[1:] {
				if v.DType != s.DType || v.Size() != s.Dimensions[last] {
					return s, nil, fmt.Errorf("gamma and beta must have the dtype and the last axis of %v; one is %v", s, v)
				}
			}
			return s, func(in []*mlxc.Array) *mlxc.Array {
				rest := restore(in[1:], has)
				for i, v := range rest {
					if v != nil {
						rest[i] = v.Flatten(0, -1)
					}
				}
				return ops.LayerNorm(in[0], rest[0], rest[1], float32(epsilon))
			}, checkKernels(s.DType)
		})
}

// optional appends the values that are not nil to a list, and reports which they are.
func optional(list []backends.Value, values ...backends.Value) (out []backends.Value, has []bool) {
	for _, v := range values {
		has = append(has, v != nil)
		if v != nil {
			list = append(list, v)
		}
	}
	return list, has
}

// restore returns a list with the arrays of optional values, and nil for each value that is not there.
func restore(arrays []*mlxc.Array, has []bool) []*mlxc.Array {
	out := make([]*mlxc.Array, len(has))
	for i, h := range has {
		if h {
			out[i], arrays = arrays[0], arrays[1:]
		}
	}
	return out
}

// FusedDense is activation(x·weight + bias). bias may be nil.
func (f *function) FusedDense(
	x, weight, bias backends.Value, activation backends.ActivationType,
) (backends.Value, error) {
	inputs, has := optional([]backends.Value{x, weight}, bias)
	return f.add1(backends.OpTypeFusedDense, inputs,
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			x, w := in[0], in[1]
			if x.Rank() < 1 || w.Rank() < 1 || x.DType != w.DType || x.Dimensions[x.Rank()-1] != w.Dimensions[0] {
				return x, nil, fmt.Errorf("x is %v and the weight is %v; they must have one dtype, and x's last axis must have the "+
					"size of the weight's first", x, w)
			}
			activate, ok := activations[activation]
			if !ok {
				return x, nil, notImplemented("the activation %v", activation)
			}
			features := w.Dimensions[1:]
			out := shapes.Shape{DType: x.DType, Dimensions: slices.Concat(x.Dimensions[:x.Rank()-1], features)}
			if len(in) > 2 && !in[2].Equal(shapes.Shape{DType: x.DType, Dimensions: features}) {
				return x, nil, fmt.Errorf("the bias is %v; it must have the dtype %v and the dimensions %v", in[2], x.DType, features)
			}
			return out, func(in []*mlxc.Array) *mlxc.Array {
				k := in[1].Dim(0)
				y := matMul(in[0].Reshape(size(x.Dimensions[:x.Rank()-1]), k), in[1].Reshape(k, size(features)))
				y = y.Reshape(out.Dimensions...)
				if b := restore(in[2:], has)[0]; b != nil {
					y = y.Add(b)
				}
				return activate(y)
			}, checkKernels(x.DType)
		})
}

var activations = map[backends.ActivationType]unaryFunc{
	backends.ActivationNone: func(x *mlxc.Array) *mlxc.Array { return x },
	backends.ActivationGelu: gelu,
	backends.ActivationRelu: func(x *mlxc.Array) *mlxc.Array { return x.MaximumScalar(0) },
	backends.ActivationSilu: func(x *mlxc.Array) *mlxc.Array { return x.Mul(x.Sigmoid()) },
	backends.ActivationHardSwish: func(x *mlxc.Array) *mlxc.Array {
		return x.Mul(x.AddScalar(3).Clip(0, 6)).DivScalar(6)
	},
	backends.ActivationTanh: (*mlxc.Array).Tanh,
}

// FusedScaledDotProductAttention is attention by the kernel of package ops. mask may be nil.
func (f *function) FusedScaledDotProductAttention(
	query, key, value, mask backends.Value, numHeads, numKVHeads int, layout backends.AxesLayout, scale float64,
	causal bool, _ *backends.ScaledDotProductAttentionConfig,
) (backends.Value, error) {
	inputs, has := optional([]backends.Value{query, key, value}, mask)
	return f.add1(backends.OpTypeFusedScaledDotProductAttention, inputs,
		func(in []shapes.Shape) (shapes.Shape, func([]*mlxc.Array) *mlxc.Array, error) {
			q, k, v := in[0], in[1], in[2]
			heads, length := layout.HeadsAxis(), layout.SeqAxis()
			if q.Rank() != 4 || k.Rank() != 4 || v.Rank() != 4 {
				return q, nil, fmt.Errorf("query, key and value are %v, %v and %v; they must have 4 axes", q, k, v)
			}
			if q.Dimensions[heads] != numHeads || k.Dimensions[heads] != numKVHeads {
				return q, nil, fmt.Errorf("query and key are %v and %v; they must have %d and %d heads", q, k, numHeads, numKVHeads)
			}
			if causal && q.Dimensions[length] != k.Dimensions[length] {
				return q, nil, fmt.Errorf("the causal mask of %d queries and %d keys: %w", q.Dimensions[length],
					k.Dimensions[length], backends.ErrNotImplemented)
			}
			if len(in) > 3 && in[3].DType != dtypes.Bool {
				if err := checkKernels(in[3].DType); err != nil {
					return q, nil, fmt.Errorf("the mask: %w", err)
				}
			}
			return q, func(in []*mlxc.Array) *mlxc.Array {
				c := ops.AttentionConfig{Scale: float32(scale), Causal: causal, Mask: restore(in[3:], has)[0]}
				if layout == backends.AxesLayoutBHSD {
					return ops.Attention(in[0], in[1], in[2], c)
				}
				return ops.Attention(in[0].SwapAxes(1, 2), in[1].SwapAxes(1, 2), in[2].SwapAxes(1, 2), c).SwapAxes(1, 2)
			}, checkKernels(q.DType)
		})
}

// FusedAttentionQKVProjection is one product, split into queries, keys and values. The biases may be nil.
func (f *function) FusedAttentionQKVProjection(
	x, wQKV, biasQ, biasK, biasV backends.Value, queryDim, keyValueDim int,
) (query, key, value backends.Value, err error) {
	inputs, has := optional([]backends.Value{x, wQKV}, biasQ, biasK, biasV)
	widths := []int{queryDim, keyValueDim, keyValueDim}
	return three(f.add(backends.OpTypeFusedAttentionQKVProjection, inputs,
		func(in []shapes.Shape) ([]shapes.Shape, runFunc, error) {
			x, w := in[0], in[1]
			if x.Rank() < 1 || w.Rank() != 2 || x.DType != w.DType || x.Dimensions[x.Rank()-1] != w.Dimensions[0] ||
				min(queryDim, keyValueDim) < 0 || w.Dimensions[1] != queryDim+2*keyValueDim {
				return nil, nil, fmt.Errorf("x is %v and the weight is %v; the widths are %v", x, w, widths)
			}
			batch := x.Dimensions[:x.Rank()-1]
			out := make([]shapes.Shape, len(widths))
			for i, width := range widths {
				out[i] = shapes.Shape{DType: x.DType, Dimensions: slices.Concat(batch, []int{width})}
			}
			return out, func(in []*mlxc.Array) ([]*mlxc.Array, error) {
				y := matMul(in[0].Reshape(size(batch), w.Dimensions[0]), in[1]).Reshape(append(slices.Clone(batch), w.Dimensions[1])...)
				parts := y.SplitAt(len(batch), queryDim, queryDim+keyValueDim)
				for i, b := range restore(in[2:], has) {
					if b != nil {
						parts[i] = parts[i].Add(b)
					}
				}
				return parts, nil
			}, checkKernels(x.DType)
		}))
}

// FusedQuantizedDense returns backends.ErrNotImplemented: MLX groups the scales along the other axis of the weight.
func (f *function) FusedQuantizedDense(
	_, _, _ backends.Value, _ *backends.Quantization, _ backends.ActivationType,
) (backends.Value, error) {
	return nil, notImplemented("%v", backends.OpTypeFusedQuantizedDense)
}

// QuantizedEmbeddingLookup returns backends.ErrNotImplemented: MLX has no GGML blocks.
func (f *function) QuantizedEmbeddingLookup(
	_, _ backends.Value, _ *backends.Quantization,
) (backends.Value, error) {
	return nil, notImplemented("%v", backends.OpTypeQuantizedEmbeddingLookup)
}

// AllReduce returns backends.ErrNotImplemented: the backend has one device.
func (f *function) AllReduce([]backends.Value, backends.ReduceOpType, [][]int) ([]backends.Value, error) {
	return nil, notImplemented("%v: the backend has one device", backends.OpTypeAllReduce)
}
