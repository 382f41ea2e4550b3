package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
	"github.com/mlxgrad/mlxgrad/ops"
)

// MLX calls a compiler for each new fused operation on a CPU, which takes tens of seconds.
func TestMain(m *testing.M) {
	if _, err := mlxc.SetCompileMode(mlxc.CompileNoFuse); err != nil {
		panic(err)
	}
	quickcompile.Set(true)
	os.Exit(m.Run())
}

var small = config{rank: 2, steps: 40, length: 32, rate: 0.01}

// writeBase writes a checkpoint of a model with two layers.
func writeBase(t *testing.T, metadata map[string]string) string {
	t.Helper()
	const letters, width, hidden = 79, 16, 40
	seed := uint64(0)
	normal := func(shape ...int) *mlxc.Array {
		seed++
		return mlxc.RandomNormal(mlxc.RandomKey(seed), mlxc.Float32, shape...).MulScalar(0.25)
	}
	p := params{Embedding: normal(letters, width), Norm: mlxc.Ones(mlxc.Float32, width), Head: normal(width, letters)}
	for range 2 {
		p.Layers = append(p.Layers, layer{
			AttentionNorm: mlxc.Ones(mlxc.Float32, width), QKV: normal(width, 3*width), Out: normal(width, width),
			MLPNorm: mlxc.Ones(mlxc.Float32, width), Gate: normal(width, hidden), Up: normal(width, hidden),
			Down: normal(hidden, width),
		})
	}
	arrays, err := tree.ToMap(struct {
		Params params
		Step   *mlxc.Array // stands for the optimizer's state
	}{p, mlxc.Scalar[int32](7)})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "base.safetensors")
	require.NoError(t, mlxio.SaveSafetensors(file, arrays, metadata))
	return file
}

// alphabet holds 79 letters, which include the letters of the text.
func alphabet() string {
	set := map[byte]bool{}
	for i := range len(gettysburg) {
		set[gettysburg[i]] = true
	}
	for b := byte('!'); len(set) < 79; b++ {
		set[b] = true
	}
	return string(slices.Sorted(maps.Keys(set)))
}

func load(t *testing.T) model {
	t.Helper()
	m, err := loadModel(writeBase(t, map[string]string{"letters": alphabet(), "heads": "2"}))
	require.NoError(t, err)
	return m
}

func elements[T any](t *testing.T, tr T) (all [][]float32) {
	t.Helper()
	arrays, err := tree.Flatten(tr)
	require.NoError(t, err)
	for _, a := range arrays {
		all = append(all, mlxtest.Read[float32](t, a))
	}
	return all
}

// Only the adapters change, the loss falls, and the saved adapters give the same outputs.
func TestTuning(t *testing.T) {
	m := load(t)
	ids, err := m.encode(gettysburg)
	require.NoError(t, err)
	base := elements(t, m.params)
	begin := m.newAdapters(small.rank)
	before := elements(t, begin)
	untrained, err := m.meanLoss(begin, ids, small.length)
	require.NoError(t, err)

	var losses []float64
	a, err := m.tune(small, ids, func(_ int, loss float64) { losses = append(losses, loss) })
	require.NoError(t, err)
	require.Len(t, losses, small.steps)
	require.Equal(t, base, elements(t, m.params), "the base does not change")
	for i, after := range elements(t, a) {
		require.NotEqual(t, before[i], after, "adapter %d", i)
	}
	tuned, err := m.meanLoss(a, ids, small.length)
	require.NoError(t, err)
	t.Logf("the loss fell from %.3f to %.3f", untrained, tuned)
	require.Less(t, tuned, untrained-0.5)

	file := filepath.Join(t.TempDir(), "adapters.safetensors")
	require.NoError(t, a.save(file))
	arrays, _, err := mlxio.LoadSafetensors(file)
	require.NoError(t, err)
	require.ElementsMatch(t, []string{
		"layers.0.qkv.a", "layers.0.qkv.b", "layers.0.out.a", "layers.0.out.b",
		"layers.1.qkv.a", "layers.1.qkv.b", "layers.1.out.a", "layers.1.out.b",
	}, slices.Collect(maps.Keys(arrays)))
	loaded, err := m.loadAdapters(file, small.rank)
	require.NoError(t, err)
	inputs := cut(ids, small.length, []int{0, 100}).Inputs
	require.Equal(t, mlxtest.Read[float32](t, m.logits(a, inputs)), mlxtest.Read[float32](t, m.logits(loaded, inputs)))
	_, err = m.loadAdapters(file, small.rank+1)
	require.ErrorContains(t, err, "adapters.safetensors does not fit the model: tree: layers.0.qkv.a: ")
}

// New adapters give the outputs of the base, and an adapter is a change of the matrix by A·B.
func TestAdapterIsAChangeOfTheMatrix(t *testing.T) {
	x, w := mlxtest.Normal(1, 5, 8), mlxtest.Normal(2, 8, 6)
	a := adapter{mlxtest.Normal(3, 8, 2), mlxtest.Normal(4, 2, 6)}
	mlxtest.Near(t, mlxtest.Wide(t, x.MatMul(w.Add(a.A.MatMul(a.B)))), a.linear(x, w), 1e-5)
	none := load(t).newAdapters(2).Layers[0].Out
	x = mlxtest.Normal(5, 3, 16)
	w = mlxtest.Normal(6, 16, 16)
	require.Equal(t, mlxtest.Read[float32](t, ops.MatMul(x, w)), mlxtest.Read[float32](t, none.linear(x, w)))
}

func TestCommand(t *testing.T) {
	base := writeBase(t, map[string]string{"letters": alphabet(), "heads": "2"})
	tuneByCommand(t, base)
	var out bytes.Buffer
	require.ErrorIs(t, run([]string{"-base", base + ".missing"}, &out), os.ErrNotExist)
	require.EqualError(t, run([]string{"-rank", "0"}, &out), "-rank and -steps are 0 and 100; they must be positive")
}

// The command tunes a checkpoint that examples/lm has written.
func TestCommandTunesACheckpointOfLM(t *testing.T) {
	long.Only(t, "it builds and runs examples/lm")
	dir := t.TempDir()
	base := filepath.Join(dir, "base.safetensors")
	lm := exec.CommandContext(t.Context(), "go", "run", "../lm", "-steps", "3", "-width", "32", "-layers", "1",
		"-letters", "0", "-checkpoint", base, "-png", filepath.Join(dir, "loss.png"))
	lm.Env = append(os.Environ(), "MLX_DISABLE_COMPILE=1")
	output, err := lm.CombinedOutput()
	require.NoError(t, err, "%s", output)
	tuneByCommand(t, base)
}

// tuneByCommand runs the command on a base, whose file must not change.
func tuneByCommand(t *testing.T, base string) {
	t.Helper()
	before, err := os.ReadFile(base)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "adapters.safetensors")
	var out bytes.Buffer
	require.NoError(t, run([]string{"-base", base, "-adapters", file, "-steps", "25"}, &out))
	require.Contains(t, out.String(), "step 25: loss ")
	require.Contains(t, out.String(), "with "+file+": loss ")
	after, err := os.ReadFile(base)
	require.NoError(t, err)
	require.Equal(t, before, after)
}

func TestModelErrors(t *testing.T) {
	for message, metadata := range map[string]map[string]string{
		`the metadata heads is "3"; it must divide the width 16`: {"letters": alphabet(), "heads": "3"},
		`the metadata heads is ""; it must divide the width 16`:  {"letters": alphabet()},
		"the metadata has 2 letters; the embedding has 79":       {"letters": "ab", "heads": "2"},
	} {
		_, err := loadModel(writeBase(t, metadata))
		require.ErrorContains(t, err, message)
	}
	file := filepath.Join(t.TempDir(), "other.safetensors")
	require.NoError(t, mlxio.SaveSafetensors(file, map[string]*mlxc.Array{"weight": mlxc.Ones(mlxc.Float32, 2)}, nil))
	_, err := loadModel(file)
	require.ErrorContains(t, err, "other.safetensors: tree: embedding: the map has no such array")
	m := load(t)
	_, err = m.encode("λ" + strings.Repeat("a", 10))
	require.EqualError(t, err, "the model does not have the letter 'Î'")
}
