package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/ranks"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// parallelVariable holds the task of the ranks that runRanks starts.
const parallelVariable = "LM_TEST_PARALLEL"

// A task is a training of several ranks.
type task struct {
	Steps      int
	Checkpoint string
	KillAt     int // step in which the last rank kills itself
	Result     string
}

// rankResult is what a rank writes to the file Result.RANK.
type rankResult struct {
	Losses     []float64
	Validation float32
	Active     []int // bytes in MLX's arrays after each hundredth step
}

func (k task) config(text corpus) config {
	c := small(text, ours)
	c.steps, c.saveEvery = k.Steps, 5
	return c
}

// TestRank runs in the processes that runRanks starts. Elsewhere it does nothing.
func TestRank(t *testing.T) {
	described := os.Getenv(parallelVariable)
	if described == "" {
		return
	}
	var k task
	require.NoError(t, json.Unmarshal([]byte(described), &k))
	text := newCorpus(opticks)
	c := k.config(text)
	require.NoError(t, c.join())
	trainer, err := c.start()
	require.NoError(t, err)
	defer trainer.Close()
	require.NoError(t, c.resume(k.Checkpoint, trainer))
	var r rankResult
	require.NoError(t, c.train(t.Context(), text, trainer, func(step int, loss float64) error {
		r.Losses = append(r.Losses, loss)
		if step%100 == 99 {
			r.Active = append(r.Active, mlxc.ActiveMemory())
		}
		if step+1 == k.KillAt && c.group.Rank() == c.group.Size()-1 {
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if k.Checkpoint != "" && (step+1)%c.saveEvery == 0 {
			return c.save(k.Checkpoint, trainer, text)
		}
		return nil
	}))
	r.Validation, err = c.validate(trainer.State.Params, text)
	require.NoError(t, err)
	written, err := json.Marshal(r)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(k.Result+"."+strconv.Itoa(c.group.Rank()), written, 0o600))
}

// runRanks trains in n ranks and returns the result of each.
func runRanks(t *testing.T, n int, k task) (results []rankResult, output string, err error) {
	t.Helper()
	k.Result = filepath.Join(t.TempDir(), "result")
	described, err := json.Marshal(k)
	require.NoError(t, err)
	t.Setenv(parallelVariable, string(described))
	hosts, err := ranks.LocalHosts(n)
	require.NoError(t, err)
	var out bytes.Buffer
	err = ranks.Launch{
		Backend: distributed.Ring, Hosts: hosts, Command: []string{os.Args[0], "-test.run=^TestRank$"},
		Grace: 20 * time.Second, Out: &out, Err: &out,
	}.Run(nil)
	if err != nil {
		return nil, out.String(), err
	}
	for rank := range n {
		text, err := os.ReadFile(k.Result + "." + strconv.Itoa(rank))
		require.NoError(t, err, "%s", &out)
		var r rankResult
		require.NoError(t, json.Unmarshal(text, &r))
		results = append(results, r)
	}
	return results, out.String(), nil
}

// Several ranks with shares of each batch have the losses of one process with the whole batch. Rounding differs, since
// the gradient is a mean of means. Every run with the same number of ranks has the same losses.
func TestRanksHaveTheCurveOfOneProcess(t *testing.T) {
	text := newCorpus(opticks)
	k := task{Steps: 12}
	alone, losses := train(t, k.config(text), text, "")
	validation, err := k.config(text).validate(alone.State.Params, text)
	require.NoError(t, err)
	for _, n := range []int{2, 4} {
		results, output, err := runRanks(t, n, k)
		require.NoError(t, err, output)
		for _, r := range results {
			require.Equal(t, results[0], r, "all ranks have the same losses")
		}
		require.InDeltaSlice(t, losses, results[0].Losses, 1e-4)
		require.InDelta(t, validation, results[0].Validation, 1e-4)
		again, output, err := runRanks(t, n, k)
		require.NoError(t, err, output)
		require.Equal(t, results, again)
	}
}

// If a rank is killed, the others end with an error. A new launch continues from the checkpoint with the losses and the
// checkpoint of a training without interruption.
func TestRanksResumeAfterAKill(t *testing.T) {
	dir := t.TempDir()
	whole := task{Steps: 10, Checkpoint: filepath.Join(dir, "whole.safetensors")}
	results, output, err := runRanks(t, 2, whole)
	require.NoError(t, err, output)

	killed := task{Steps: 10, Checkpoint: filepath.Join(dir, "killed.safetensors"), KillAt: 7}
	_, output, err = runRanks(t, 2, killed)
	require.ErrorContains(t, err, "rank 1: signal: killed")
	require.ErrorContains(t, err, "rank 0: exit status 1", "it ends by itself within the grace time")
	require.Contains(t, output, "connection to a peer was lost")

	killed.KillAt = 0
	resumed, output, err := runRanks(t, 2, killed)
	require.NoError(t, err, output)
	require.Equal(t, results[0].Losses[5:], resumed[0].Losses)
	want, err := os.ReadFile(whole.Checkpoint)
	require.NoError(t, err)
	got, err := os.ReadFile(killed.Checkpoint)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got))

	require.NoError(t, os.WriteFile(killed.Checkpoint, []byte("no checkpoint"), 0o600))
	_, output, err = runRanks(t, 2, killed)
	require.Error(t, err)
	require.Contains(t, output, "the function failed in rank 0", "the error of rank 1")
}

// The memory of the arrays does not grow in 1,000 steps.
func TestRanksDoNotLeak(t *testing.T) {
	long.Only(t, "1,000 steps in two processes")
	t.Setenv(long.Variable, "") // the ranks do not fuse
	results, output, err := runRanks(t, 2, task{Steps: 1000})
	require.NoError(t, err, output)
	for _, r := range results {
		t.Log(r.Active)
		require.Len(t, r.Active, 10)
		// It varies by a tenth with the garbage collector. An array of 500 bytes kept per step would double it.
		require.Less(t, r.Active[9], 2*r.Active[0])
	}
}

// The command prints in the first process only.
func TestDataParallelCommand(t *testing.T) {
	var out bytes.Buffer
	args := []string{
		"-data-parallel", "-steps", "2", "-width", "16", "-heads", "2", "-letters", "0",
		"-png", filepath.Join(t.TempDir(), "a.png"),
	}
	require.NoError(t, run(context.Background(), args, &out), "a process alone is a group of one")
	require.Contains(t, out.String(), "letters per second")
	require.True(t, strings.HasPrefix(out.String(), "mlxgrad gradients, step 1 of 2"))
	require.ErrorContains(t, run(context.Background(), append(args, "-heads", "0"), &out), "-heads is 0")
}
