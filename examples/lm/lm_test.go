package main

import (
	"bytes"
	"context"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

func small(text corpus, g gradients) config {
	return config{
		shape:     shape{letters: len(text.letters), width: 32, heads: 2, layers: 2},
		gradients: g,
		batch:     4,
		length:    32,
		steps:     40,
		rate:      5e-3,
		seed:      1,
	}
}

// train compiles the step in long tests; that alone takes MLX tens of seconds on a CPU, where it
// calls a compiler for each fused operation that it has not met before.
func train(t *testing.T, c config, text corpus) (params, []float64, error) {
	if !long.Enabled() {
		return c.train(t.Context(), text, c.step, quietly)
	}
	compiled := tree.Compile(c.step)
	defer compiled.Close()
	return c.train(t.Context(), text, compiled.Call, quietly)
}

func quietly(int, float64) {}

// The curves of this project's gradients and of MLX's differ by rounding, which training
// amplifies; both fall from ln 79 = 4.37 to where the frequencies of letters are known.
func TestCurvesAgree(t *testing.T) {
	require.NoError(t, customkernels.Available(), "without kernels both curves are MLX's")
	text := newCorpus(opticks)
	c, tolerance := small(text, ours), 1e-3
	if long.Enabled() {
		c.steps, c.width, c.heads, c.batch, c.length, c.rate = 300, 64, 4, 8, 64, 3e-3
		tolerance = 0.02
	}
	p, losses, err := train(t, c, text)
	require.NoError(t, err)
	c.gradients = builtIn
	_, others, err := train(t, c, text)
	require.NoError(t, err)
	require.Len(t, losses, c.steps)
	require.InDelta(t, math.Log(79), losses[0], 0.1)
	require.Less(t, losses[len(losses)-1], 3.3)
	largest := 0.0
	for i := range losses {
		largest = max(largest, math.Abs(losses[i]-others[i]))
	}
	t.Logf("largest difference %.2g, last losses %.4f and %.4f", largest, losses[len(losses)-1], others[len(losses)-1])
	require.InDeltaSlice(t, others, losses, tolerance)

	held, err := c.validate(p, text)
	require.NoError(t, err)
	require.Less(t, held, float32(3.4))

	for _, temperature := range []float64{0, 1} {
		written, err := c.generate(p, text, "Light", 2*c.length, temperature)
		require.NoError(t, err)
		require.Len(t, written, len("Light")+2*c.length)
		require.True(t, strings.HasPrefix(written, "Light"))
		again, err := c.generate(p, text, "Light", 2*c.length, temperature)
		require.NoError(t, err)
		require.Equal(t, written, again)
	}
	_, err = c.generate(p, text, "Licht: λ", 1, 0)
	require.EqualError(t, err, `the letter 'Î' does not occur in the corpus`)
}

// Without masks of the future a letter would be seen before it is predicted.
func TestLogitsDoNotSeeTheFuture(t *testing.T) {
	text := newCorpus(opticks)
	for _, g := range []gradients{ours, builtIn} {
		c := small(text, g)
		p := newParams(c.shape, 1)
		ids, _ := batch(rand.New(rand.NewPCG(1, 1)), text.train, 1, c.length)
		before := c.logits(c.shape, p, ids)
		changed := ids.SliceUpdate(mlxc.Scalar[int32](3), []int{0, 20}, []int{1, 21}, nil)
		after := c.logits(c.shape, p, changed)
		for i, same := range map[int]bool{0: true, 19: true, 20: false, 31: false} {
			differ := before.Sub(after).Abs().Slice([]int{0, i, 0}, []int{1, i + 1, c.letters}, nil).Max()
			d, err := mlxc.Item[float32](differ)
			require.NoError(t, err)
			require.Equal(t, same, d < 1e-6, "%s, position %d: %v", g.name, i, d)
		}
	}
}

func TestInterruptedTrainingKeepsWhatItHas(t *testing.T) {
	text := newCorpus(opticks)
	c := small(text, builtIn)
	ctx, cancel := context.WithCancel(t.Context())
	p, losses, err := c.train(ctx, text, c.step, func(step int, _ float64) {
		if step == 2 {
			cancel()
		}
	})
	require.NoError(t, err)
	require.Len(t, losses, 3)
	require.NoError(t, tree.Eval(p))
	names, err := tree.Names(p)
	require.NoError(t, err)
	require.Equal(t, []string{
		"embedding",
		"layers.0.attention_norm", "layers.0.qkv", "layers.0.out",
		"layers.0.mlp_norm", "layers.0.gate", "layers.0.up", "layers.0.down",
		"layers.1.attention_norm", "layers.1.qkv", "layers.1.out",
		"layers.1.mlp_norm", "layers.1.gate", "layers.1.up", "layers.1.down",
		"norm", "head",
	}, names)
}

func TestCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "loss.png")
	var out bytes.Buffer
	err := run(t.Context(), []string{
		"-steps", "4", "-width", "32", "-layers", "1", "-batch", "2",
		"-length", "16", "-letters", "5", "-prompt", "The ", "-png", file,
	}, &out)
	require.NoError(t, err)
	require.Contains(t, out.String(), "mlxgrad gradients, step 4 of 4: loss 4.")
	require.Contains(t, out.String(), "loss on text that was held back: 4.")
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n\n")
	require.Len(t, lines[len(lines)-1], len("The ")+5)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.DecodeConfig(f)
	require.NoError(t, err)
	require.Greater(t, picture.Width, picture.Height)

	for _, c := range []struct {
		args    []string
		message string
	}{
		{[]string{"-gradients", "theirs"}, `-gradients is "theirs": it must be ours, mlx or both`},
		{[]string{"-width", "12"}, "-width is 12: it must be a multiple of 8, two for each head"},
		{[]string{"-steps", "0"}, "-layers, -steps and -batch are 2, 0 and 8: they must be positive"},
		{[]string{"-length", "20000"}, "-length is 20000: it must be positive and below the 13538 letters held back"},
	} {
		require.EqualError(t, run(t.Context(), c.args, &out), c.message)
	}
}

func TestSparkline(t *testing.T) {
	require.Equal(t, "▁▂▃▄▅▆▇█", sparkline([]float64{0, 1, 2, 3, 4, 5, 6, 7}, 20))
	require.Equal(t, "█▁", sparkline([]float64{3, 5, 1, 2}, 2))
	require.Equal(t, "▁▁", sparkline([]float64{1, 1}, 2))
	require.Empty(t, sparkline(nil, 10))
}

func TestCorpus(t *testing.T) {
	text := newCorpus(opticks)
	require.Len(t, text.letters, 79)
	require.Equal(t, opticks, text.decode(append(text.train[:len(text.train):len(text.train)], text.held...)))
	inputs, targets := batch(rand.New(rand.NewPCG(1, 2)), text.train, 3, 10)
	in, err := mlxc.ToSlice[int32](inputs)
	require.NoError(t, err)
	out, err := mlxc.ToSlice[int32](targets)
	require.NoError(t, err)
	for row := range 3 {
		require.Equal(t, in[row*10+1:row*10+10], out[row*10:row*10+9])
		require.Contains(t, opticks, text.decode(in[row*10:row*10+10])+text.decode(out[row*10+9:row*10+10]))
	}
}
