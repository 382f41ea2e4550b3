package main

import (
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// model is a Llama model whose weights do not change.
type model struct {
	config
	weights
	positions mlxc.RoPEConfig
}

// loadModel reads a folder with config.json and safetensors files. It converts the weights to d, or keeps their dtype if
// d is 0.
func loadModel(dir string, d mlxc.DType) (*model, error) {
	c, err := readConfig(dir)
	if err != nil {
		return nil, err
	}
	m := &model{config: c}
	if m.positions, err = c.rope(); err != nil {
		return nil, err
	}
	m.weights, err = c.load(dir, d)
	return m, err
}

// cache holds the keys and values of the tokens so far, of shape (batch, heads, length, head_dim), for each layer.
type cache []struct{ keys, values *mlxc.Array }

func (m *model) newCache() cache { return make(cache, m.NumHiddenLayers) }

func (c cache) length() int {
	if len(c) == 0 || c[0].keys == nil {
		return 0
	}
	return c[0].keys.Dim(2)
}

// hidden returns the normalized output of the last layer, of shape (batch, length, hidden_size), for ids of shape
// (batch, length). With a cache, the ids follow the tokens in it, and are added to it.
func (m *model) hidden(a adapters, ids *mlxc.Array, past cache) *mlxc.Array {
	positions := m.positions
	positions.Offset = past.length()
	x := ops.Embedding(m.Model.EmbedTokens.Weight, ids)
	for i, b := range m.Model.Layers {
		h := ops.RMSNorm(x, b.InputLayernorm.Weight, m.RMSNormEps)
		shape := []int{h.Dim(0), h.Dim(1)}
		heads := func(l linear) *mlxc.Array {
			return a.apply(l, h).Reshape(shape[0], shape[1], -1, m.HeadDim).Transpose(0, 2, 1, 3)
		}
		q := mlxc.RoPE(heads(b.SelfAttn.QProj), positions)
		k, v := mlxc.RoPE(heads(b.SelfAttn.KProj), positions), heads(b.SelfAttn.VProj)
		if past != nil {
			if p := past[i]; p.keys != nil {
				k, v = mlxc.Concatenate(2, p.keys, k), mlxc.Concatenate(2, p.values, v)
			}
			past[i].keys, past[i].values = k, v
		}
		y := ops.Attention(q, k, v, ops.AttentionConfig{Causal: true}).Transpose(0, 2, 1, 3)
		x = x.Add(a.apply(b.SelfAttn.OProj, y.Reshape(shape[0], shape[1], -1)))
		h = ops.RMSNorm(x, b.PostAttentionLayernorm.Weight, m.RMSNormEps)
		gate := a.apply(b.MLP.GateProj, h)
		x = x.Add(a.apply(b.MLP.DownProj, gate.Mul(gate.Sigmoid()).Mul(a.apply(b.MLP.UpProj, h))))
	}
	return ops.RMSNorm(x, m.Model.Norm.Weight, m.RMSNormEps)
}

// head returns the matrix that maps hidden to logits, of shape (vocab_size, hidden_size).
func (m *model) head() *mlxc.Array {
	if m.LMHead == nil {
		return m.Model.EmbedTokens.Weight
	}
	return m.LMHead.Weight
}

// logits returns the logits of rows of hidden, in float32 and of shape (rows, vocab_size). The head is the left operand,
// because ops.MatMul would copy its transpose, which is much larger than the rows.
func (m *model) logits(hidden *mlxc.Array) *mlxc.Array {
	rows := hidden.Reshape(-1, m.HiddenSize)
	return ops.MatMul(m.head(), rows.Transpose()).Transpose().AsType(mlxc.Float32)
}
