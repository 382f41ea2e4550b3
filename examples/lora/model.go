package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/mlxgrad/mlxgrad/ops"
)

// params holds the parameters of examples/lm, by the names of its checkpoints.
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

// model is a model whose parameters do not change.
type model struct {
	params
	heads   int
	letters string // the letter of each id
}

// loadModel reads a checkpoint of examples/lm. It ignores the optimizer's state.
func loadModel(file string) (model, error) {
	arrays, metadata, err := mlxio.LoadSafetensors(file)
	if err != nil {
		return model{}, err
	}
	weights := map[string]*mlxc.Array{}
	var p params
	for name, a := range arrays {
		if name, ok := strings.CutPrefix(name, "params."); ok {
			weights[name] = a
			if strings.HasSuffix(name, ".qkv") {
				p.Layers = append(p.Layers, layer{})
			}
		}
	}
	m := model{letters: metadata["letters"]}
	if m.params, err = tree.FromMap(p, weights); err != nil {
		return model{}, fmt.Errorf("%s: %w", file, err)
	}
	if m.heads, err = strconv.Atoi(metadata["heads"]); err != nil || m.heads < 1 || m.Norm.Size()%m.heads != 0 {
		return model{}, fmt.Errorf("%s: the metadata heads is %q; it must divide the width %d", file, metadata["heads"],
			m.Norm.Size())
	}
	if len(m.letters) != m.Embedding.Dim(0) {
		return model{}, fmt.Errorf("%s: the metadata has %d letters; the embedding has %d", file, len(m.letters),
			m.Embedding.Dim(0))
	}
	return m, tree.Eval(m.params)
}

const eps = 1e-5

// logits returns the logits of the letter that follows each id, of shape (batch, length, letters).
func (m model) logits(a adapters, ids *mlxc.Array) *mlxc.Array {
	x := ops.Embedding(m.Embedding, ids)
	for i, l := range m.Layers {
		x = x.Add(m.attend(l, a.Layers[i], ops.RMSNorm(x, l.AttentionNorm, eps)))
		h := ops.RMSNorm(x, l.MLPNorm, eps)
		gate := ops.MatMul(h, l.Gate)
		x = x.Add(ops.MatMul(gate.Mul(gate.Sigmoid()).Mul(ops.MatMul(h, l.Up)), l.Down))
	}
	return ops.MatMul(ops.RMSNorm(x, m.Norm, eps), m.Head)
}

func (m model) attend(l layer, a layerAdapters, x *mlxc.Array) *mlxc.Array {
	shape := x.Shape()
	qkv := a.QKV.linear(x, l.QKV).Split(3, -1)
	for i := range qkv {
		qkv[i] = qkv[i].Reshape(shape[0], shape[1], m.heads, shape[2]/m.heads).Transpose(0, 2, 1, 3)
	}
	q, k := mlxc.RoPE(qkv[0], mlxc.RoPEConfig{}), mlxc.RoPE(qkv[1], mlxc.RoPEConfig{})
	y := ops.Attention(q, k, qkv[2], ops.AttentionConfig{Causal: true})
	return a.Out.linear(y.Transpose(0, 2, 1, 3).Reshape(shape...), l.Out)
}
