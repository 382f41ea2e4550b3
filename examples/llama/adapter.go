package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/mlxgrad/mlxgrad/ops"
)

// adapters change matrices W of a model to W + scale·A·B (Hu et al., "LoRA: Low-Rank Adaptation of Large Language
// Models", 2021, section 4.1). Names, shapes and dtypes equal mlx-lm's.
type adapters struct {
	Of       map[string]pair // by the name of the matrix
	Settings settings        `mlx:"-"`
}

// pair is float32, whatever the model's dtype is.
type pair struct {
	A *mlxc.Array `mlx:"lora_a"` // (in, rank)
	B *mlxc.Array `mlx:"lora_b"` // (rank, out), initially zero
}

// settings is the part of adapter_config.json that mlx-lm reads.
type settings struct {
	FineTuneType string         `json:"fine_tune_type"`
	Model        string         `json:"model"`
	NumLayers    int            `json:"num_layers"` // the last layers; -1 for all
	LoRA         loraParameters `json:"lora_parameters"`
}

type loraParameters struct {
	Rank    int      `json:"rank"`
	Scale   float64  `json:"scale"`
	Dropout float64  `json:"dropout"`
	Keys    []string `json:"keys,omitempty"` // names of matrices within a layer
}

// apply returns x·(W + scale·A·B) + bias without computing A·B, which is as large as W.
func (a adapters) apply(l linear, x *mlxc.Array) *mlxc.Array {
	y := ops.MatMul(x, l.Weight)
	if l.Bias != nil {
		y = y.Add(l.Bias)
	}
	p, ok := a.Of[l.Name]
	if !ok {
		return y
	}
	z := ops.MatMul(ops.MatMul(x.AsType(mlxc.Float32), p.A), p.B)
	return y.Add(z.MulScalar(a.Settings.LoRA.Scale).AsType(y.DType()))
}

// newAdapters returns adapters that change nothing yet.
func (m *model) newAdapters(s settings, seed uint64) (adapters, error) {
	a := adapters{map[string]pair{}, s}
	switch layers := len(m.Model.Layers); {
	case s.LoRA.Rank < 1:
		return a, fmt.Errorf("the rank is %d; it must be positive", s.LoRA.Rank)
	case s.NumLayers == 0 || s.NumLayers < -1 || s.NumLayers > layers:
		return a, fmt.Errorf("the number of layers is %d; it must be between 1 and %d, or -1 for all", s.NumLayers, layers)
	case s.NumLayers == -1:
		s.NumLayers = layers
	}
	known := map[string]bool{}
	for _, b := range m.Model.Layers[len(m.Model.Layers)-s.NumLayers:] {
		b.projections(func(name string, l *linear) {
			if known[name] = true; !slices.Contains(s.LoRA.Keys, name) {
				return
			}
			seed++
			in, out := l.Weight.Dim(0), l.Weight.Dim(1)
			bound := float32(1 / math.Sqrt(float64(in)))
			a.Of[l.Name] = pair{
				mlxc.RandomUniform(mlxc.RandomKey(seed), -bound, bound, mlxc.Float32, in, s.LoRA.Rank),
				mlxc.Zeros(mlxc.Float32, s.LoRA.Rank, out),
			}
		})
	}
	for _, key := range s.LoRA.Keys {
		if !known[key] {
			return a, fmt.Errorf("there is no matrix %q; the matrices of a layer are %s", key,
				strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
	}
	return a, tree.Eval(a)
}

const (
	adapterFile  = "adapters.safetensors"
	settingsFile = "adapter_config.json"
)

// save writes the folder of an adapter as mlx-lm does.
func (a adapters) save(dir string) error {
	arrays, err := tree.ToMap(a.Of)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(a.Settings, "", "    ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, settingsFile), append(data, '\n'), 0o666); err != nil {
		return err
	}
	return mlxio.SaveSafetensors(filepath.Join(dir, adapterFile), arrays, nil)
}

// loadAdapters reads a folder that save or mlx-lm wrote. The names of the arrays say which matrices have an adapter.
func (m *model) loadAdapters(dir string) (adapters, error) {
	a := adapters{Of: map[string]pair{}}
	if err := readJSON(filepath.Join(dir, settingsFile), &a.Settings); err != nil {
		return a, err
	}
	if s := a.Settings; s.FineTuneType != "lora" || s.LoRA.Rank < 1 {
		return a, fmt.Errorf("%s: fine_tune_type is %q and the rank %d; they must be lora and positive",
			filepath.Join(dir, settingsFile), s.FineTuneType, s.LoRA.Rank)
	}
	file := filepath.Join(dir, adapterFile)
	arrays, _, err := mlxio.LoadSafetensors(file)
	if err != nil {
		return a, err
	}
	for name, array := range arrays {
		arrays[name] = array.AsType(mlxc.Float32)
	}
	for _, b := range m.Model.Layers {
		b.projections(func(_ string, l *linear) {
			if arrays[l.Name+".lora_a"] != nil || arrays[l.Name+".lora_b"] != nil {
				a.Of[l.Name] = pair{
					mlxc.Zeros(mlxc.Float32, l.Weight.Dim(0), a.Settings.LoRA.Rank),
					mlxc.Zeros(mlxc.Float32, a.Settings.LoRA.Rank, l.Weight.Dim(1)),
				}
			}
		})
	}
	if a.Of, err = tree.FromMap(a.Of, arrays); err != nil {
		return a, fmt.Errorf("%s does not fit the model: %w", file, err)
	}
	return a, tree.Eval(a)
}
