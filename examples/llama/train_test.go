package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

const textFile = "../lora/gettysburg.txt"

var (
	quick = training{steps: 40, batch: 4, length: 16, saveEvery: 100, rate: 0.02, seed: 1}
	small = settings{FineTuneType: "lora", Model: "base", NumLayers: -1, LoRA: loraParameters{
		Rank: 4, Scale: 20, Keys: []string{"self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"},
	}}
)

func textIDs(t testing.TB) []int32 {
	t.Helper()
	text, err := os.ReadFile(textFile)
	require.NoError(t, err)
	tok, err := loadTokens("testdata")
	require.NoError(t, err)
	ids, err := tok.encode(string(text))
	require.NoError(t, err)
	return ids
}

// tune trains new adapters, writes them to the folder and returns the losses of the steps.
func tune(t testing.TB, m *model, s training, dir string) (losses []float64) {
	t.Helper()
	begin, err := m.newAdapters(small, 1)
	require.NoError(t, err)
	require.NoError(t, m.train(t.Context(), s, begin, textIDs(t), dir, func(_ int, loss float64) {
		losses = append(losses, loss)
	}))
	return losses
}

func elements[T any](t testing.TB, tr T) (all [][]float64) {
	t.Helper()
	arrays, err := tree.Flatten(tr)
	require.NoError(t, err)
	for _, a := range arrays {
		all = append(all, mlxtest.Wide(t, a))
	}
	return all
}

var _ = testdevice.AlsoOnGPU(TestTuning)

// The loss falls in each dtype, the model does not change, and the written adapter has the same logits.
func TestTuning(t *testing.T) {
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
		m, dir := load(t, writeModel(t, d, 1, nil)), t.TempDir()
		base, ids := elements(t, m.weights), textIDs(t)
		before, err := m.meanLoss(adapters{}, ids, quick.length)
		require.NoError(t, err)
		require.Len(t, tune(t, m, quick, dir), quick.steps)
		require.Equal(t, base, elements(t, m.weights))
		tuned, err := m.loadAdapters(dir)
		require.NoError(t, err)
		after, err := m.meanLoss(tuned, ids, quick.length)
		require.NoError(t, err)
		t.Logf("%v: the loss fell from %.3f to %.3f", d, before, after)
		require.Less(t, after, before-0.5)
	}
}

// mlx-lm finds these files, names, shapes and settings.
func TestFilesOfAdapter(t *testing.T) {
	m, dir := load(t, writeModel(t, mlxc.BFloat16, 1, nil)), t.TempDir()
	s := small
	s.NumLayers = 1
	begin, err := m.newAdapters(s, 1)
	require.NoError(t, err)
	require.NoError(t, begin.save(dir))
	arrays, _, err := mlxio.LoadSafetensors(filepath.Join(dir, "adapters.safetensors"))
	require.NoError(t, err)
	shapes := map[string]string{}
	for name, a := range arrays {
		shapes[name] = fmt.Sprintf("%v%v", a.DType(), a.Shape())
	}
	require.Equal(t, map[string]string{
		"model.layers.1.self_attn.q_proj.lora_a": "float32[64 4]",
		"model.layers.1.self_attn.q_proj.lora_b": "float32[4 64]",
		"model.layers.1.self_attn.v_proj.lora_a": "float32[64 4]",
		"model.layers.1.self_attn.v_proj.lora_b": "float32[4 32]",
		"model.layers.1.mlp.down_proj.lora_a":    "float32[96 4]",
		"model.layers.1.mlp.down_proj.lora_b":    "float32[4 64]",
	}, shapes)
	data, err := os.ReadFile(filepath.Join(dir, "adapter_config.json"))
	require.NoError(t, err)
	require.JSONEq(t, `{"fine_tune_type": "lora", "model": "base", "num_layers": 1, "lora_parameters": {"rank": 4, "scale": 20,
		"dropout": 0, "keys": ["self_attn.q_proj", "self_attn.v_proj", "mlp.down_proj"]}}`, string(data))

	// An adapter in another dtype is converted.
	halves := map[string]*mlxc.Array{}
	for name, a := range arrays {
		halves[name] = a.AsType(mlxc.Float16)
	}
	half := t.TempDir()
	require.NoError(t, begin.save(half))
	require.NoError(t, mlxio.SaveSafetensors(filepath.Join(half, adapterFile), halves, nil))
	converted, err := m.loadAdapters(half)
	require.NoError(t, err)
	for i, a := range elements(t, converted) {
		require.InDeltaSlice(t, elements(t, begin)[i], a, 1e-3)
	}

	// New adapters change nothing.
	require.Equal(t, elements(t, m.allLogits(adapters{}, testIDs())), elements(t, m.allLogits(begin, testIDs())))
}

// An adapter changes a matrix by scale·A·B.
func TestAdapterIsAChangeOfTheMatrix(t *testing.T) {
	x, w, bias := mlxtest.Normal(1, 5, 8), mlxtest.Normal(2, 8, 6), mlxtest.Normal(3, 6)
	p := pair{mlxtest.Normal(4, 8, 2), mlxtest.Normal(5, 2, 6)}
	a := adapters{map[string]pair{"w": p}, settings{LoRA: loraParameters{Scale: 3}}}
	want := x.MatMul(w.Add(p.A.MatMul(p.B).MulScalar(3))).Add(bias)
	mlxtest.Near(t, mlxtest.Wide(t, want), a.apply(linear{w, bias, "w"}, x), 1e-5)
}

var _ = testdevice.AlsoOnGPU(TestResume)

// A training that was interrupted continues with the same losses and ends with the same bits.
func TestResume(t *testing.T) {
	m := load(t, writeModel(t, mlxc.BFloat16, 1, nil))
	s, whole, parts := quick, t.TempDir(), t.TempDir()
	s.steps, s.saveEvery = 12, 3
	losses := tune(t, m, s, whole)
	require.Len(t, losses, 12)

	ctx, cancel := context.WithCancel(t.Context())
	begin, err := m.newAdapters(small, 1)
	require.NoError(t, err)
	var first []float64
	require.NoError(t, m.train(ctx, s, begin, textIDs(t), parts, func(step int, loss float64) {
		if first = append(first, loss); step == 5 {
			cancel()
		}
	}))
	require.Len(t, first, 5)
	require.Equal(t, losses, append(first, tune(t, m, s, parts)...))
	for _, name := range []string{stateFile, adapterFile, settingsFile} {
		a, err := os.ReadFile(filepath.Join(whole, name))
		require.NoError(t, err)
		b, err := os.ReadFile(filepath.Join(parts, name))
		require.NoError(t, err)
		require.Equal(t, a, b, name)
	}

	other := small
	other.LoRA.Rank = 2
	begin, err = m.newAdapters(other, 1)
	require.NoError(t, err)
	err = m.train(t.Context(), s, begin, textIDs(t), parts, nil)
	require.ErrorContains(t, err, "training.safetensors is of another training: tree: params.of.model.layers.0.mlp.down_proj.lora_a: ")
}

func TestAdapterErrors(t *testing.T) {
	m := load(t, writeModel(t, mlxc.Float32, 1, nil))
	for want, s := range map[string]settings{
		"the rank is 0; it must be positive":                                 {NumLayers: -1},
		"the number of layers is 3; it must be between 1 and 2, or -1":       {NumLayers: 3, LoRA: loraParameters{Rank: 1}},
		"the number of layers is 0; it must be between 1 and 2, or -1":       {LoRA: loraParameters{Rank: 1}},
		`there is no matrix "q_proj"; the matrices of a layer are mlp.down_`: {NumLayers: 1, LoRA: loraParameters{Rank: 1, Keys: []string{"q_proj"}}},
	} {
		_, err := m.newAdapters(s, 1)
		require.ErrorContains(t, err, want)
	}
	begin, err := m.newAdapters(small, 1)
	require.NoError(t, err)
	for want, changes := range map[string]change{
		`fine_tune_type is "dora" and the rank 4; they must be lora`:        {"fine_tune_type": "dora"},
		`fine_tune_type is "lora" and the rank 0; they must be lora`:        {"lora_parameters": change{"rank": 0}},
		"adapters.safetensors does not fit the model: tree: model.layers.0": {"lora_parameters": change{"rank": 5}},
	} {
		dir := t.TempDir()
		require.NoError(t, begin.save(dir))
		rewriteJSON(t, filepath.Join(dir, settingsFile), changes)
		_, err := m.loadAdapters(dir)
		require.ErrorContains(t, err, want)
	}
	_, err = m.loadAdapters(t.TempDir())
	require.ErrorIs(t, err, os.ErrNotExist)
}

// mlx-lm computes the same logits with our adapter, and we compute the same logits with an adapter that mlx-lm trained.
func TestMLXLM(t *testing.T) {
	long.Only(t, "it installs mlx-lm by pip")
	python := mlxtest.Python(t, mlxc.Version(), "mlx-lm==0.32.2")
	dir, adapter := writeModel(t, mlxc.Float32, 1, nil), t.TempDir()
	m := load(t, dir)
	tune(t, m, quick, adapter)
	ours, err := m.loadAdapters(adapter)
	require.NoError(t, err)
	requireNear(t, reference(t, python, "mlx-lm", dir, adapter), elements(t, m.allLogits(ours, testIDs()))[0], 1e-4)

	data, adapter := t.TempDir(), t.TempDir()
	text, err := os.ReadFile(textFile)
	require.NoError(t, err)
	var lines bytes.Buffer
	for paragraph := range bytes.SplitSeq(text, []byte("\n\n")) {
		require.NoError(t, json.NewEncoder(&lines).Encode(change{"text": string(paragraph)}))
	}
	for _, name := range []string{"train.jsonl", "valid.jsonl"} {
		require.NoError(t, os.WriteFile(filepath.Join(data, name), lines.Bytes(), 0o666))
	}
	cmd := exec.CommandContext(t.Context(), python, "-m", "mlx_lm", "lora", "--train", "--model", dir, "--data", data,
		"--adapter-path", adapter, "--num-layers", "-1", "--iters", "5", "--batch-size", "2", "--learning-rate", "1e-2")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	theirs, err := m.loadAdapters(adapter)
	require.NoError(t, err)
	require.Len(t, theirs.Of, 14, "every matrix")
	logits := elements(t, m.allLogits(theirs, testIDs()))[0]
	requireNear(t, reference(t, python, "mlx-lm", dir, adapter), logits, 1e-4)
	require.NotEqual(t, elements(t, m.allLogits(adapters{}, testIDs()))[0], logits)
}
