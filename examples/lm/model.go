package main

import (
	"math"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// shape holds the sizes of a model.
type shape struct {
	letters int // in the vocabulary
	width   int
	heads   int
	layers  int
}

// params holds the parameters of a transformer with norms before its blocks, rotary position embeddings and gated
// feed-forward blocks (Touvron et al., "LLaMA", 2023, section 2.2).
type params struct {
	Embedding *mlxc.Array // (letters, width)
	Layers    []layer
	Norm      *mlxc.Array // (width)
	Head      *mlxc.Array // (width, letters)
}

type layer struct {
	AttentionNorm *mlxc.Array // (width)
	QKV           *mlxc.Array // (width, 3·width)
	Out           *mlxc.Array // (width, width)
	MLPNorm       *mlxc.Array // (width)
	Gate, Up      *mlxc.Array // (width, hidden)
	Down          *mlxc.Array // (hidden, width)
}

func newParams(s shape, seed uint64) params {
	// Each array has its own key. A matrix keeps the variance of its input.
	normal := func(scale float64, shape ...int) *mlxc.Array {
		seed++
		return mlxc.RandomNormal(mlxc.RandomKey(seed), mlxc.Float32, shape...).MulScalar(scale)
	}
	matrix := func(in, out int) *mlxc.Array { return normal(1/math.Sqrt(float64(in)), in, out) }
	hidden := 8 * s.width / 3
	p := params{
		Embedding: normal(0.1, s.letters, s.width),
		Norm:      mlxc.Ones(mlxc.Float32, s.width),
		Head:      normal(0.02, s.width, s.letters),
	}
	for range s.layers {
		p.Layers = append(p.Layers, layer{
			AttentionNorm: mlxc.Ones(mlxc.Float32, s.width),
			QKV:           matrix(s.width, 3*s.width),
			Out:           matrix(s.width, s.width),
			MLPNorm:       mlxc.Ones(mlxc.Float32, s.width),
			Gate:          matrix(s.width, hidden),
			Up:            matrix(s.width, hidden),
			Down:          matrix(hidden, s.width),
		})
	}
	return p
}

// gradients holds the operations of the model, with the gradients of package ops or of MLX.
type gradients struct {
	name         string
	embedding    func(weight, ids *mlxc.Array) *mlxc.Array
	norm         func(x, weight *mlxc.Array) *mlxc.Array
	matMul       func(x, weight *mlxc.Array) *mlxc.Array
	attention    func(q, k, v *mlxc.Array) *mlxc.Array // causal
	crossEntropy func(logits, targets *mlxc.Array) *mlxc.Array
}

const eps = 1e-5

var ours = gradients{
	name:      "mlxgrad",
	embedding: ops.Embedding,
	norm:      func(x, weight *mlxc.Array) *mlxc.Array { return ops.RMSNorm(x, weight, eps) },
	matMul:    ops.MatMul,
	attention: func(q, k, v *mlxc.Array) *mlxc.Array {
		return ops.Attention(q, k, v, ops.AttentionConfig{Causal: true})
	},
	crossEntropy: func(logits, targets *mlxc.Array) *mlxc.Array {
		return ops.CrossEntropy(logits, targets, ops.CrossEntropyConfig{})
	},
}

var builtIn = gradients{
	name:      "MLX",
	embedding: func(weight, ids *mlxc.Array) *mlxc.Array { return weight.Take(ids, 0) },
	norm:      func(x, weight *mlxc.Array) *mlxc.Array { return mlxc.RMSNorm(x, weight, eps) },
	matMul:    (*mlxc.Array).MatMul,
	attention: func(q, k, v *mlxc.Array) *mlxc.Array {
		return mlxc.ScaledDotProductAttention(q, k, v, mlxc.AttentionConfig{Causal: true})
	},
	crossEntropy: func(logits, targets *mlxc.Array) *mlxc.Array {
		return mlxc.CrossEntropy(logits, targets).Mean()
	},
}

// logits returns the logits of the letter that follows each id, of shape (batch, length, letters).
func (g gradients) logits(s shape, p params, ids *mlxc.Array) *mlxc.Array {
	x := g.embedding(p.Embedding, ids)
	for _, l := range p.Layers {
		x = x.Add(g.attend(s, l, g.norm(x, l.AttentionNorm)))
		h := g.norm(x, l.MLPNorm)
		gate := g.matMul(h, l.Gate)
		x = x.Add(g.matMul(gate.Mul(gate.Sigmoid()).Mul(g.matMul(h, l.Up)), l.Down))
	}
	return g.matMul(g.norm(x, p.Norm), p.Head)
}

func (g gradients) attend(s shape, l layer, x *mlxc.Array) *mlxc.Array {
	shape := x.Shape()
	qkv := g.matMul(x, l.QKV).Split(3, -1)
	for i := range qkv {
		qkv[i] = qkv[i].Reshape(shape[0], shape[1], s.heads, s.width/s.heads).Transpose(0, 2, 1, 3)
	}
	q, k := mlxc.RoPE(qkv[0], mlxc.RoPEConfig{}), mlxc.RoPE(qkv[1], mlxc.RoPEConfig{})
	return g.matMul(g.attention(q, k, qkv[2]).Transpose(0, 2, 1, 3).Reshape(shape...), l.Out)
}
