package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// weights holds the arrays of a model under their names in the files.
type weights struct {
	Model  decoder
	LMHead *table `mlx:"lm_head"` // nil if the embedding is also the head
}

type decoder struct {
	EmbedTokens table
	Layers      []block
	Norm        norm
}

type block struct {
	InputLayernorm         norm
	SelfAttn               attention
	PostAttentionLayernorm norm
	MLP                    mlp
}

type attention struct{ QProj, KProj, VProj, OProj linear }

type mlp struct{ GateProj, UpProj, DownProj linear }

// table has a row of hidden_size elements for each token.
type table struct{ Weight *mlxc.Array }

type norm struct{ Weight *mlxc.Array }

// linear is a matrix of shape (out, in) in files and (in, out) in a loaded model, which ops.MatMul takes without a copy.
type linear struct {
	Weight *mlxc.Array
	Bias   *mlxc.Array `mlx:"bias,omitempty"`
	Name   string      `mlx:"-"` // such as model.layers.0.mlp.up_proj
}

// projections calls f for each matrix of the block, with its name within the block.
func (b *block) projections(f func(name string, l *linear)) {
	f("self_attn.q_proj", &b.SelfAttn.QProj)
	f("self_attn.k_proj", &b.SelfAttn.KProj)
	f("self_attn.v_proj", &b.SelfAttn.VProj)
	f("self_attn.o_proj", &b.SelfAttn.OProj)
	f("mlp.gate_proj", &b.MLP.GateProj)
	f("mlp.up_proj", &b.MLP.UpProj)
	f("mlp.down_proj", &b.MLP.DownProj)
}

// empty returns arrays of zeros with the shapes that the files must have. They are not computed.
func (c config) empty(d mlxc.DType, tied bool) weights {
	zeros := func(shape ...int) *mlxc.Array { return mlxc.Zeros(d, shape...) }
	w := weights{Model: decoder{EmbedTokens: table{zeros(c.VocabSize, c.HiddenSize)}, Norm: norm{zeros(c.HiddenSize)}}}
	if !tied {
		w.LMHead = &table{zeros(c.VocabSize, c.HiddenSize)}
	}
	q, kv := c.NumAttentionHeads*c.HeadDim, c.NumKeyValueHeads*c.HeadDim
	sizes := map[string][2]int{
		"self_attn.q_proj": {q, c.HiddenSize},
		"self_attn.k_proj": {kv, c.HiddenSize},
		"self_attn.v_proj": {kv, c.HiddenSize},
		"self_attn.o_proj": {c.HiddenSize, q},
		"mlp.gate_proj":    {c.IntermediateSize, c.HiddenSize},
		"mlp.up_proj":      {c.IntermediateSize, c.HiddenSize},
		"mlp.down_proj":    {c.HiddenSize, c.IntermediateSize},
	}
	for i := range c.NumHiddenLayers {
		b := block{InputLayernorm: norm{zeros(c.HiddenSize)}, PostAttentionLayernorm: norm{zeros(c.HiddenSize)}}
		b.projections(func(name string, l *linear) {
			size := sizes[name]
			l.Name = fmt.Sprintf("model.layers.%d.%s", i, name)
			l.Weight = zeros(size[0], size[1])
			if inMLP := strings.HasPrefix(name, "mlp."); inMLP && c.MLPBias || !inMLP && c.AttentionBias {
				l.Bias = zeros(size[0])
			}
		})
		w.Model.Layers = append(w.Model.Layers, b)
	}
	return w
}

// load reads the weights from a model's folder and converts them to d. If d is 0, the dtype is the embedding's.
func (c config) load(dir string, d mlxc.DType) (weights, error) {
	arrays, err := readArrays(dir)
	if err != nil {
		return weights{}, err
	}
	const embedding, head = "model.embed_tokens.weight", "lm_head.weight"
	if d == 0 {
		if arrays[embedding] == nil {
			return weights{}, fmt.Errorf("%s: there is no array %s", dir, embedding)
		}
		d = arrays[embedding].DType()
	}
	if !slices.Contains([]mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16}, d) {
		return weights{}, fmt.Errorf("%s: the weights are %v; they must be float32, float16 or bfloat16", dir, d)
	}
	tied := arrays[head] == nil
	if c.TieWordEmbeddings != nil {
		tied = *c.TieWordEmbeddings
	}
	for name, a := range arrays {
		// Files of older programs hold the rotary frequencies, and a copy of a tied embedding.
		if strings.HasSuffix(name, ".rotary_emb.inv_freq") || tied && name == head {
			delete(arrays, name)
			continue
		}
		arrays[name] = a.AsType(d)
	}
	w, err := tree.FromMap(c.empty(d, tied), arrays)
	if err != nil {
		return weights{}, fmt.Errorf("%s: %w", dir, err)
	}
	for i := range w.Model.Layers {
		// Compute a layer at a time: only one is in memory twice.
		b := &w.Model.Layers[i]
		b.projections(func(_ string, l *linear) { l.Weight = l.Weight.Transpose().Contiguous() })
		if err := tree.Eval(*b); err != nil {
			return weights{}, fmt.Errorf("%s: %w", dir, err)
		}
	}
	return w, tree.Eval(w)
}

// readArrays opens the safetensors files of a model: model.safetensors, or the files of the index.
func readArrays(dir string) (map[string]*mlxc.Array, error) {
	file := filepath.Join(dir, "model.safetensors.index.json")
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := readJSON(file, &index); errors.Is(err, os.ErrNotExist) {
		arrays, _, err := mlxio.LoadSafetensors(filepath.Join(dir, "model.safetensors"))
		return arrays, err
	} else if err != nil {
		return nil, err
	}
	all := map[string]*mlxc.Array{}
	for _, shard := range slices.Compact(slices.Sorted(maps.Values(index.WeightMap))) {
		if !filepath.IsLocal(shard) {
			return nil, fmt.Errorf("%s: weight_map has the file %q; it must be in the model's folder", file, shard)
		}
		arrays, _, err := mlxio.LoadSafetensors(filepath.Join(dir, shard))
		if err != nil {
			return nil, err
		}
		for name, a := range arrays {
			if index.WeightMap[name] != shard {
				return nil, fmt.Errorf("%s: weight_map has %q for %s, which is in %s", file, index.WeightMap[name], name, shard)
			}
			all[name] = a
		}
	}
	for name, shard := range index.WeightMap {
		if all[name] == nil {
			return nil, fmt.Errorf("%s: %s is not in %s", file, name, shard)
		}
	}
	return all, nil
}
