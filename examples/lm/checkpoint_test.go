package main

import (
	"bytes"
	"context"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// requireEqualBits requires two trees of the same names and elements.
func requireEqualBits(t *testing.T, want, got training) {
	t.Helper()
	a, err := tree.ToMap(want)
	require.NoError(t, err)
	b, err := tree.ToMap(got)
	require.NoError(t, err)
	require.ElementsMatch(t, slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	for name := range a {
		differ, err := mlxc.Item[bool](a[name].NotEqual(b[name]).Any())
		require.NoError(t, err)
		require.False(t, differ, name)
	}
}

func TestTrainingResumesFromCheckpoint(t *testing.T) {
	text := newCorpus(opticks)
	c := small(text, ours)
	c.steps = 8
	end, losses := train(t, c, text, "")

	file := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	interrupted, err := c.start()
	require.NoError(t, err)
	defer interrupted.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var first []float64
	require.NoError(t, c.train(ctx, text, interrupted, func(step int, loss float64) error {
		if first = append(first, loss); step == 2 {
			cancel()
		}
		return nil
	}))
	require.Len(t, first, 3)
	require.NoError(t, c.save(file, interrupted, text))

	resumed, rest := train(t, c, text, file)
	require.Equal(t, losses, append(first, rest...))
	requireEqualBits(t, end.State, resumed.State)

	c.width = 16
	other, err := c.start()
	require.NoError(t, err)
	require.ErrorContains(t, c.resume(file, other), "checkpoint.safetensors does not fit the model: tree: params.embedding: ")
}

// killedVariable names the checkpoint of the process that TestKilledDuringCheckpoint kills.
const killedVariable = "LM_TEST_CHECKPOINT"

// killedConfig has steps for minutes, and a checkpoint after each.
func killedConfig(text corpus) config {
	c := small(text, ours)
	c.steps, c.saveEvery = 10_000, 1
	return c
}

// TestProcessThatIsKilled trains in the process that TestKilledDuringCheckpoint starts. Elsewhere it does nothing.
func TestProcessThatIsKilled(t *testing.T) {
	file := os.Getenv(killedVariable)
	if file == "" {
		return
	}
	text := newCorpus(opticks)
	_, _, err := killedConfig(text).fit(t.Context(), text, file, io.Discard)
	t.Fatalf("the training was not killed: %v", err)
}

// A process that is killed while it writes a checkpoint leaves the former one. The training continues from it with the
// same bits as a training without interruption.
func TestKilledDuringCheckpoint(t *testing.T) {
	file := filepath.Join(t.TempDir(), "checkpoint.safetensors")
	for range 3 { // each process continues after the former one
		killInCheckpoint(t, file)
	}
	text := newCorpus(opticks)
	c := killedConfig(text)
	resumed, err := c.start()
	require.NoError(t, err)
	defer resumed.Close()
	require.NoError(t, c.resume(file, resumed))
	begin, err := done(resumed)
	require.NoError(t, err)
	t.Logf("killed after the checkpoint of step %d", begin)
	require.Positive(t, begin)

	whole, err := c.start()
	require.NoError(t, err)
	defer whole.Close()
	steps := func(trainer *trainer, end int) (losses []float64) {
		ctx, cancel := context.WithCancel(t.Context())
		require.NoError(t, c.train(ctx, text, trainer, func(step int, loss float64) error {
			if losses = append(losses, loss); step+1 == end {
				cancel()
			}
			return nil
		}))
		return losses
	}
	steps(whole, begin)
	requireEqualBits(t, whole.State, resumed.State)
	require.Equal(t, steps(whole, begin+3), steps(resumed, begin+3))
	requireEqualBits(t, whole.State, resumed.State)
}

// killInCheckpoint starts processes that train, and kills each while it writes a checkpoint over an older one. It returns
// when a killed process leaves one more unfinished file, which shows that the write was under way.
func killInCheckpoint(t *testing.T, file string) {
	t.Helper()
	unfinished := func() int {
		files, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.tmp"))
		require.NoError(t, err)
		return len(files)
	}
	written := func() time.Time {
		info, err := os.Stat(file)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	before := unfinished()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		p := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestProcessThatIsKilled$")
		p.Env = append(os.Environ(), killedVariable+"="+file)
		var output bytes.Buffer
		p.Stdout, p.Stderr = &output, &output
		former := written()
		require.NoError(t, p.Start())
		for ctx.Err() == nil && (written().Equal(former) || unfinished() == before) {
			time.Sleep(100 * time.Microsecond)
		}
		require.NoError(t, p.Process.Kill())
		var exit *exec.ExitError
		require.ErrorAs(t, p.Wait(), &exit)
		require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal(), "%s", &output)
		if unfinished() > before {
			return
		}
	}
	t.Fatal("no process was killed during a checkpoint within a minute")
}
