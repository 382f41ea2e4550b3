package main

import (
	"bytes"
	"flag"
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
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
	"github.com/mlxgrad/mlxgrad/mlxc"
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

// MLX calls a compiler for each new fused operation on a CPU, which takes tens of seconds. Only long tests fuse.
func TestMain(m *testing.M) {
	flag.Parse()
	if !long.Enabled() {
		if _, err := mlxc.SetCompileMode(mlxc.CompileNoFuse); err != nil {
			panic(err)
		}
	}
	quickcompile.Set(!long.Full() && flag.Lookup("test.bench").Value.String() == "")
	os.Exit(m.Run())
}

// train trains from the start, or from a checkpoint if it exists, and returns the trainer and the losses.
func train(t *testing.T, c config, text corpus, checkpoint string) (*trainer, []float64) {
	t.Helper()
	trainer, err := c.start()
	require.NoError(t, err)
	t.Cleanup(trainer.Close)
	require.NoError(t, c.resume(checkpoint, trainer))
	var losses []float64
	require.NoError(t, c.train(t.Context(), text, trainer, func(_ int, loss float64) error {
		losses = append(losses, loss)
		return nil
	}))
	return trainer, losses
}

// The losses with the gradients of package ops and of MLX differ by rounding, which training amplifies: by 5e-7 after
// 40 steps and 1.4e-6 after the 300 steps of the long test, on a CPU. Both fall from ln 79 = 4.37 to the entropy of the
// letters' frequencies.
func TestCurvesAgree(t *testing.T) {
	require.NoError(t, customkernels.CheckExecutor(), "without kernels both curves are MLX's")
	text := newCorpus(opticks)
	c, tolerance := small(text, ours), 1e-4
	if long.Enabled() {
		c.steps, c.width, c.heads, c.batch, c.length, c.rate = 300, 64, 4, 8, 64, 3e-3
		tolerance = 1e-3
	}
	end, losses := train(t, c, text, "")
	p := end.State.Params
	c.gradients = builtIn
	_, others := train(t, c, text, "")
	require.Len(t, losses, c.steps)
	require.InDelta(t, math.Log(79), losses[0], 0.1)
	require.Less(t, losses[len(losses)-1], 3.3)
	largest := 0.0
	for i := range losses {
		largest = max(largest, math.Abs(losses[i]-others[i]))
	}
	t.Logf("largest difference %.2g, last losses %.4f and %.4f", largest, losses[len(losses)-1], others[len(losses)-1])
	require.InDeltaSlice(t, others, losses, tolerance)

	validation, err := c.validate(p, text)
	require.NoError(t, err)
	require.Less(t, validation, float32(3.4))

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
	require.EqualError(t, err, `the corpus does not contain the letter 'Î'`)
}

func TestDivergenceIsAnError(t *testing.T) {
	text := newCorpus(opticks)
	c := small(text, builtIn)
	c.rate = 1e30
	trainer, err := c.start()
	require.NoError(t, err)
	defer trainer.Close()
	err = c.train(t.Context(), text, trainer, func(int, float64) error { return nil })
	require.Error(t, err)
	require.Regexp(t, `^step [345]: mlxc: optim.Trainer.Step: the loss is NaN.* \(at lm/train.go:\d+\)$`, err.Error())
}

// Logits do not depend on later letters.
func TestLogitsAreCausal(t *testing.T) {
	text := newCorpus(opticks)
	for _, g := range []gradients{ours, builtIn} {
		c := small(text, g)
		p := newParams(c.shape, 1)
		ids := batch(rand.New(rand.NewPCG(1, 1)), text.train, 1, c.length, 0, 1).Inputs
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

func TestCommand(t *testing.T) {
	file := filepath.Join(t.TempDir(), "loss.png")
	checkpoint := filepath.Join(t.TempDir(), "lm.safetensors")
	args := []string{
		"-checkpoint", checkpoint, "-steps", "4", "-width", "32", "-layers", "1", "-batch", "2",
		"-length", "16", "-letters", "5", "-prompt", "The ", "-png", file,
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), args, &out))
	require.Contains(t, out.String(), "mlxgrad gradients, step 4 of 4: loss 4.")
	require.Contains(t, out.String(), "validation loss: 4.")
	lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n\n")
	require.Len(t, lines[len(lines)-1], len("The ")+5)
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	picture, err := png.DecodeConfig(f)
	require.NoError(t, err)
	require.Greater(t, picture.Width, picture.Height)

	// A second run has no steps left and generates the same text.
	var again bytes.Buffer
	require.NoError(t, run(t.Context(), args, &again))
	require.NotContains(t, again.String(), "step 4 of 4")
	require.True(t, strings.HasSuffix(again.String(), "\n"+lines[len(lines)-1]+"\n"))

	for _, c := range []struct {
		args    []string
		message string
	}{
		{[]string{"-gradients", "theirs"}, `-gradients is "theirs"; it must be ours, mlx or both`},
		{
			[]string{"-gradients", "both", "-checkpoint", "x"},
			"-checkpoint requires a single training: choose -gradients ours or mlx",
		},
		{[]string{"-png", "loss.svg"}, `-png is "loss.svg"; it must end in .png`},
		{[]string{"-png", "missing/loss.png"}, `-png is "missing/loss.png"; its folder must exist`},
		{[]string{"-checkpoint", "lm_test.go/c"}, `-checkpoint is "lm_test.go/c"; its folder must exist`},
		{[]string{"-prompt", "~"}, "-prompt: the corpus does not contain the letter '~'"},
		{[]string{"-width", "12"}, "-width is 12; it must be a positive multiple of 8, twice the number of heads"},
		{[]string{"-steps", "0"}, "-layers, -steps, -batch and -save-every are 2, 0, 8 and 100; they must be positive"},
		{
			[]string{"-length", "20000"},
			"-length is 20000; it must be positive and below 13538, the number of letters for validation",
		},
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
	require.Equal(t, opticks, text.decode(append(text.train[:len(text.train):len(text.train)], text.validation...)))
	b := batch(rand.New(rand.NewPCG(1, 2)), text.train, 3, 10, 0, 3)
	in, err := mlxc.ToSlice[int32](b.Inputs)
	require.NoError(t, err)
	out, err := mlxc.ToSlice[int32](b.Targets)
	require.NoError(t, err)
	for row := range 3 {
		require.Equal(t, in[row*10+1:row*10+10], out[row*10:row*10+9])
		require.Contains(t, opticks, text.decode(in[row*10:row*10+10])+text.decode(out[row*10+9:row*10+10]))
	}
}
