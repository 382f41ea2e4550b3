package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// MLX calls a compiler for each new fused operation on a CPU, which takes tens of seconds.
func TestMain(m *testing.M) {
	if _, err := mlxc.SetCompileMode(mlxc.CompileNoFuse); err != nil {
		panic(err)
	}
	testdevice.Main(m)
}

func TestOnGPU(t *testing.T) { testdevice.RunOnGPU(t) }

// change is a change of the fields of a JSON file. A nil value removes the field.
type change map[string]any

// writeModel writes the folder of a small random model in the layout of the Hugging Face hub. Its weights are in one file,
// or in as many as there are shards.
func writeModel(t testing.TB, d mlxc.DType, shards int, changes change) string {
	t.Helper()
	dir := t.TempDir()
	fields := change{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu", "vocab_size": 512,
		"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
		"num_key_value_heads": 2, "head_dim": 16, "rms_norm_eps": 1e-5, "tie_word_embeddings": true,
		"max_position_embeddings": 4096, "rope_theta": 500000, "bos_token_id": 0, "eos_token_id": 1,
		"torch_dtype": d.String(), "rope_scaling": change{
			// Three of the eight frequencies stay, two are interpolated, three are divided by the factor.
			"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 40,
			"original_max_position_embeddings": 1024,
		},
	}
	for name, value := range changes {
		if fields[name] = value; value == nil {
			delete(fields, name)
		}
	}
	writeJSON(t, filepath.Join(dir, "config.json"), fields)
	data, err := os.ReadFile("testdata/tokenizer.json")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokenizer.json"), data, 0o666))
	writeJSON(t, filepath.Join(dir, "tokenizer_config.json"), change{ // for mlx-lm
		"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>",
	})
	c, err := readConfig(dir)
	require.NoError(t, err)
	arrays, err := tree.ToMap(c.empty(d, c.TieWordEmbeddings != nil && *c.TieWordEmbeddings))
	require.NoError(t, err)
	files := make([]map[string]*mlxc.Array, shards)
	index := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(arrays)) {
		a := mlxtest.Normal(uint64(i), arrays[name].Shape()...)
		switch {
		case strings.HasSuffix(name, "norm.weight"):
			a = a.MulScalar(0.1).AddScalar(1)
		default:
			a = a.MulScalar(0.15)
		}
		k := i % shards
		if files[k] == nil {
			files[k] = map[string]*mlxc.Array{}
		}
		files[k][name], index[name] = a.AsType(d), shardName(k, shards)
	}
	for k, file := range files {
		require.NoError(t, mlxio.SaveSafetensors(filepath.Join(dir, shardName(k, shards)), file, map[string]string{"format": "pt"}))
	}
	if shards > 1 {
		writeJSON(t, filepath.Join(dir, "model.safetensors.index.json"), change{"metadata": change{}, "weight_map": index})
	}
	return dir
}

func shardName(k, n int) string {
	if n == 1 {
		return "model.safetensors"
	}
	return "model-0000" + string(rune('1'+k)) + "-of-0000" + string(rune('0'+n)) + ".safetensors"
}

func writeJSON(t testing.TB, file string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, data, 0o666))
}

// variants are models that differ in everything that config.json chooses.
var variants = map[string]change{
	"llama3":  nil, // tied embedding, grouped heads, scaled frequencies
	"untied":  {"tie_word_embeddings": false, "rope_scaling": nil, "rope_theta": 10000},
	"biases":  {"attention_bias": true, "mlp_bias": true, "num_key_value_heads": nil, "rope_scaling": nil},
	"linear":  {"rope_scaling": change{"type": "linear", "factor": 4}, "head_dim": 24},
	"current": {"rope_scaling": nil, "rope_theta": nil, "rope_parameters": change{"rope_type": "default", "rope_theta": 1000}},
}

func load(t testing.TB, dir string) *model {
	t.Helper()
	m, err := loadModel(dir, 0)
	require.NoError(t, err)
	return m
}

// testIDs is longer than a tile of attention.
func testIDs() []int32 {
	ids := make([]int32, 70)
	for i := range ids {
		ids[i] = int32(i * i % 512)
	}
	return ids
}

func (m *model) allLogits(a adapters, ids []int32) *mlxc.Array {
	return m.logits(m.hidden(a, mlxc.FromSlice(ids, 1, len(ids)), nil))
}

var python = flag.String("python", "", "`path` of a Python with transformers and torch, to rewrite testdata/logits.json")

// transformers 5.24 with PyTorch 2.15 computed the logits in the file, the first ones of the last token.
func TestLogitsOfTransformers(t *testing.T) {
	const file, first = "testdata/logits.json", 8
	want := map[string][]float64{}
	if *python == "" {
		require.NoError(t, readJSON(file, &want))
	}
	for name, changes := range variants {
		dir := writeModel(t, mlxc.Float32, 2, changes)
		ours := mlxtest.Wide(t, load(t, dir).allLogits(adapters{}, testIDs()))
		if *python != "" {
			theirs := reference(t, *python, "transformers", dir)
			requireNear(t, theirs, ours, 2e-5)
			want[name] = theirs[len(theirs)-512:][:first]
		}
		requireNear(t, want[name], ours[len(ours)-512:][:first], 2e-5)
	}
	if *python != "" {
		writeJSON(t, file, want)
	}
}

// reference returns the logits of testIDs by reference.py.
func reference(t testing.TB, python string, args ...string) (logits []float64) {
	t.Helper()
	ids, err := json.Marshal([][]int32{testIDs()})
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), python, append([]string{"reference.py"}, args...)...)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(ids), os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var rows [][][]float64
	require.NoError(t, json.Unmarshal(out, &rows))
	return slices.Concat(rows[0]...)
}

// requireNear logs the largest difference, which must not exceed the limit.
func requireNear(t testing.TB, want, got []float64, limit float64) {
	t.Helper()
	require.Len(t, got, len(want))
	require.NotEmpty(t, want)
	largest := 0.0
	for i := range want {
		largest = max(largest, math.Abs(want[i]-got[i])) // NaN stays NaN
	}
	t.Logf("largest difference %.1e", largest)
	require.LessOrEqual(t, largest, limit)
}

// The number of files does not change the weights, and -dtype converts them.
func TestFilesAndDTypes(t *testing.T) {
	whole := mlxtest.Wide(t, load(t, writeModel(t, mlxc.Float32, 1, nil)).allLogits(adapters{}, testIDs()))
	for _, d := range []mlxc.DType{mlxc.Float32, mlxc.Float16, mlxc.BFloat16} {
		dir := writeModel(t, d, 3, nil)
		m := load(t, dir)
		require.Equal(t, d, m.head().DType())
		limit := map[mlxc.DType]float64{mlxc.Float32: 0, mlxc.Float16: 0.02, mlxc.BFloat16: 0.15}[d]
		requireNear(t, whole, mlxtest.Wide(t, m.allLogits(adapters{}, testIDs())), limit)
		converted, err := loadModel(dir, mlxc.Float32)
		require.NoError(t, err)
		require.Equal(t, mlxc.Float32, converted.Model.Layers[1].MLP.UpProj.Weight.DType())
	}
}

// Old files hold rotary frequencies and a copy of a tied embedding.
func TestFilesOfOlderPrograms(t *testing.T) {
	dir := writeModel(t, mlxc.Float32, 1, change{"rope_scaling": nil})
	want := mlxtest.Wide(t, load(t, dir).allLogits(adapters{}, testIDs()))
	file := filepath.Join(dir, "model.safetensors")
	arrays, _, err := mlxio.LoadSafetensors(file)
	require.NoError(t, err)
	arrays["lm_head.weight"] = arrays["model.embed_tokens.weight"]
	arrays["model.layers.0.self_attn.rotary_emb.inv_freq"] = mlxc.Ones(mlxc.Float32, 8)
	require.NoError(t, mlxio.SaveSafetensors(file, arrays, nil))
	require.Equal(t, want, mlxtest.Wide(t, load(t, dir).allLogits(adapters{}, testIDs())))
}

// Tokens one by one, in blocks, and at once have the same logits.
func TestCache(t *testing.T) {
	for d, limit := range map[mlxc.DType]float64{mlxc.Float32: 2e-5, mlxc.Float16: 0.01, mlxc.BFloat16: 0.1} {
		m := load(t, writeModel(t, d, 1, nil))
		ids := testIDs()
		want := mlxtest.Wide(t, m.allLogits(adapters{}, ids))
		for _, sizes := range [][]int{{70}, {1, 69}, {33, 1, 36}, slices.Repeat([]int{1}, 70)} {
			past, got, at := m.newCache(), []float64{}, 0
			for _, n := range sizes {
				require.Equal(t, at, past.length())
				hidden := m.hidden(adapters{}, mlxc.FromSlice(ids[at:at+n], 1, n), past)
				got, at = append(got, mlxtest.Wide(t, m.logits(hidden))...), at+n
			}
			requireNear(t, want, got, limit)
		}
	}
}

// Generation with a cache takes the tokens that the logits of the whole text choose.
func TestGenerate(t *testing.T) {
	m := load(t, writeModel(t, mlxc.Float32, 1, nil))
	prompt := testIDs()[:5]
	got, err := m.generate(adapters{}, prompt, 40, 0, 1)
	require.NoError(t, err)
	ids := slices.Clone(prompt)
	for range 40 {
		logits := mlxtest.Wide(t, m.allLogits(adapters{}, ids))
		last := logits[len(logits)-512:]
		ids = append(ids, int32(slices.Index(last, slices.Max(last))))
	}
	require.Equal(t, ids[5:], got)

	// The first token that ends a text ends the generation.
	m.EOSTokenID = tokenIDs{-1, got[7]}
	short, err := m.generate(adapters{}, prompt, 40, 0, 1)
	require.NoError(t, err)
	require.Equal(t, got[:slices.Index(got, got[7])], short)

	// With a temperature, the seed decides.
	m.EOSTokenID = nil
	var drawn [3][]int32
	for i, seed := range []uint64{1, 1, 2} {
		drawn[i], err = m.generate(adapters{}, prompt, 40, 1, seed)
		require.NoError(t, err)
	}
	require.Equal(t, drawn[0], drawn[1])
	require.NotEqual(t, drawn[0], drawn[2])
}

func TestModelErrors(t *testing.T) {
	for want, changes := range map[string]change{
		"vocab_size is 0; it must be positive":                                                {"vocab_size": 0},
		`model_type is "gemma"; it must be llama`:                                             {"model_type": "gemma"},
		`hidden_act is "gelu"; it must be silu`:                                               {"hidden_act": "gelu"},
		"num_attention_heads is 4; it must be a multiple of num_key_value_heads, 3":           {"num_key_value_heads": 3},
		"rms_norm_eps is 0; it must be positive":                                              {"rms_norm_eps": nil},
		"head_dim is 15; it must be even":                                                     {"head_dim": 15},
		"rope_theta is -1; it must be positive":                                               {"rope_theta": -1},
		`rope_type is "yarn"; it must be default, linear or llama3`:                           {"rope_scaling": change{"rope_type": "yarn"}},
		"factor of rope_scaling is 0; it must be positive":                                    {"rope_scaling": change{"rope_type": "linear"}},
		"and high_freq_factor the larger of the two":                                          {"rope_scaling": change{"rope_type": "llama3", "factor": 2, "low_freq_factor": 4, "high_freq_factor": 1, "original_max_position_embeddings": 64}},
		"the model is quantized; use the model with float16, bfloat16 or float32 weights":     {"quantization": change{"bits": 4}},
		"model.layers.0.mlp.gate_proj.weight: the map's array is float32 [96 64]: it must be": {"intermediate_size": 100},
		"model.layers.2.input_layernorm.weight: the map has no such array":                    {"num_hidden_layers": 3},
		"lm_head.weight: the map has no such array":                                           {"tie_word_embeddings": false},
		"model.layers.0.self_attn.q_proj.bias: the map has no such array":                     {"attention_bias": true},
		"config.json: json: cannot unmarshal string into Go struct field config.hidden_size":  {"hidden_size": "64"},
		"config.json: json: cannot unmarshal string into Go struct field config.eos_token_id": {"eos_token_id": "x"},
	} {
		dir := writeModel(t, mlxc.Float32, 1, nil)
		rewriteJSON(t, filepath.Join(dir, "config.json"), changes)
		_, err := loadModel(dir, 0)
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, dir)
	}
	dir := writeModel(t, mlxc.Float32, 2, nil)
	index := filepath.Join(dir, "model.safetensors.index.json")
	var old struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	require.NoError(t, readJSON(index, &old))
	for want, entry := range map[string][2]string{
		`weight_map has the file "../x.safetensors"; it must be in the model's folder`: {"model.norm.weight", "../x.safetensors"},
		"no such file or directory":                          {"model.norm.weight", "a.safetensors"},
		"missing is not in model-00001-of-00002.safetensors": {"missing", shardName(0, 2)},
		`weight_map has "model-00001-of-00002.safetensors" for model.norm.weight, which is in model-00002-of-00002.safetensors`: {
			"model.norm.weight", shardName(0, 2),
		},
	} {
		changed := maps.Clone(old.WeightMap)
		changed[entry[0]] = entry[1]
		writeJSON(t, index, change{"weight_map": changed})
		_, err := loadModel(dir, 0)
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "config.json")))
	_, err := loadModel(dir, 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func rewriteJSON(t testing.TB, file string, changes change) {
	t.Helper()
	fields := change{}
	require.NoError(t, readJSON(file, &fields))
	maps.Copy(fields, changes)
	writeJSON(t, file, fields)
}

// Ids of both files end a text.
func TestEndOfText(t *testing.T) {
	dir := writeModel(t, mlxc.Float32, 1, nil)
	writeJSON(t, filepath.Join(dir, "generation_config.json"), change{"eos_token_id": []int{1, 5}})
	c, err := readConfig(dir)
	require.NoError(t, err)
	require.Equal(t, tokenIDs{1, 1, 5}, c.EOSTokenID)
	rewriteJSON(t, filepath.Join(dir, "config.json"), change{"eos_token_id": nil})
	c, err = readConfig(dir)
	require.NoError(t, err)
	require.Equal(t, tokenIDs{1, 5}, c.EOSTokenID)
}
