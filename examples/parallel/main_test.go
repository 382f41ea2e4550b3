package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
	"github.com/mlxgrad/mlxgrad/internal/ranks"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
	"github.com/mlxgrad/mlxgrad/mlxc/tree"
)

// roleVariable makes a process of this test run a role instead of the tests.
const roleVariable = "PARALLEL_TEST_ROLE"

func TestMain(m *testing.M) {
	quickcompile.Set(true)
	var err error
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "command":
		if _, err = mlxc.SetCompileMode(mlxc.CompileNoFuse); err == nil {
			err = run(os.Args[1:], os.Stdout)
		}
	case "curve":
		err = printCurve(short)
	case "killed":
		err = printCurve(endless)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

var (
	short   = config{batch: 64, steps: 100}
	endless = config{batch: 64, steps: 1_000_000}
)

// result is the output of a process of a ring.
type result struct {
	Losses []float64
	Params [][]float32
}

// resultMark stands before the result in the output.
const resultMark = "result: "

// printCurve trains in the ring of the environment. It prints "step" after each step, and the result.
func printCurve(c config) error {
	if _, err := mlxc.SetCompileMode(mlxc.CompileNoFuse); err != nil {
		return err
	}
	g, err := distributed.Init(distributed.Ring, true)
	if err != nil {
		return err
	}
	var r result
	p, err := c.train(g, func(_ int, loss float64) {
		r.Losses = append(r.Losses, loss)
		fmt.Println("step")
	})
	if err != nil {
		return err
	}
	arrays, err := tree.Flatten(p)
	if err != nil {
		return err
	}
	for _, a := range arrays {
		v, err := mlxc.ToSlice[float32](a)
		if err != nil {
			return err
		}
		r.Params = append(r.Params, v)
	}
	fmt.Print(resultMark)
	return json.NewEncoder(os.Stdout).Encode(r)
}

// output is the output of a process.
type output struct {
	text  bytes.Buffer
	begin chan struct{} // closed at the first write
}

func (o *output) Write(p []byte) (int, error) {
	if o.text.Len() == 0 {
		close(o.begin)
	}
	return o.text.Write(p)
}

// startRing starts two processes in a role. They are killed when the test ends, or after a minute.
func startRing(t *testing.T, role string) (processes [2]*exec.Cmd, outputs [2]*output) {
	t.Helper()
	hosts, err := ranks.LocalHosts(2)
	require.NoError(t, err)
	environments, err := ranks.Environments(t.TempDir(), distributed.Ring, hosts, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	for rank := range processes {
		p := exec.CommandContext(ctx, os.Args[0])
		p.Env = append(append(os.Environ(), roleVariable+"="+role), environments[rank]...)
		outputs[rank] = &output{begin: make(chan struct{})}
		p.Stdout, p.Stderr = outputs[rank], outputs[rank]
		require.NoError(t, p.Start())
		processes[rank] = p
	}
	return processes, outputs
}

// Two processes with half of each batch have the loss curve of one process with the whole batch. Rounding differs, since
// the gradient is a mean of two means.
func TestTwoProcessesHaveTheCurveOfOne(t *testing.T) {
	processes, outputs := startRing(t, "curve")
	var results [2]result
	for rank, p := range processes {
		require.NoError(t, p.Wait(), "process %d: %s", rank, &outputs[rank].text)
		_, text, found := strings.Cut(outputs[rank].text.String(), resultMark)
		require.True(t, found)
		require.NoError(t, json.Unmarshal([]byte(text), &results[rank]))
	}
	require.Equal(t, results[0], results[1], "both processes have the same losses and parameters")

	alone, err := distributed.Init(distributed.Any, false)
	require.NoError(t, err)
	require.Equal(t, 1, alone.Size())
	var losses []float64
	p, err := short.train(alone, func(_ int, loss float64) { losses = append(losses, loss) })
	require.NoError(t, err)
	require.InDeltaSlice(t, losses, results[0].Losses, 1e-4)
	require.Less(t, losses[len(losses)-1], losses[0]/10)
	arrays, err := tree.Flatten(p)
	require.NoError(t, err)
	for i, a := range arrays {
		require.InDeltaSlice(t, mlxtest.Read[float32](t, a), results[0].Params[i], 1e-3)
	}
	largest := 0.0
	for i, loss := range losses {
		largest = max(largest, loss-results[0].Losses[i], results[0].Losses[i]-loss)
	}
	t.Logf("the largest difference of the losses is %.2g", largest)

	// A share alone has another curve.
	require.NotEqual(t, losses[0], mlxtest.Wide(t, loss(newParams(), short.half()))[0])
}

// half returns the first half of the first batch.
func (c config) half() points {
	x := mlxc.RandomUniform(mlxc.RandomKey(0), -1, 1, mlxc.Float32, c.batch, 1).Split(2, 0)[0]
	return points{x, x.MulScalar(3).Sin()}
}

// If a process is killed, the other ends with an error.
func TestKilledProcessIsAnErrorOfItsPeer(t *testing.T) {
	processes, outputs := startRing(t, "killed")
	for _, o := range outputs {
		select {
		case <-o.begin: // the training runs
		case <-time.After(30 * time.Second):
			t.Fatal("no process has printed a step for 30 s")
		}
	}
	begin := time.Now()
	require.NoError(t, processes[1].Process.Signal(syscall.SIGKILL))
	require.Error(t, processes[1].Wait())
	var exit *exec.ExitError
	err := processes[0].Wait()
	require.ErrorAs(t, err, &exit)
	require.Equal(t, 1, exit.ExitCode())
	require.Contains(t, outputs[0].text.String(), "connection to a peer was lost")
	require.Less(t, time.Since(begin), 30*time.Second)
}

func TestCommand(t *testing.T) {
	t.Setenv(roleVariable, "command")
	launch := func(n int) (string, error) {
		hosts, err := ranks.LocalHosts(n)
		require.NoError(t, err)
		var out bytes.Buffer
		err = ranks.Launch{
			Backend: distributed.Ring, Hosts: hosts, Command: []string{os.Args[0], "-steps", "100"},
			Grace: 10 * time.Second, Out: &out, Err: &out,
		}.Run(nil)
		return out.String(), err
	}
	text, err := launch(2)
	require.NoError(t, err, text)
	require.Contains(t, text, "[0] step 100: loss 0.0")
	require.Contains(t, text, "[0] process 0 of 2 is done\n")
	require.Contains(t, text, "[1] process 1 of 2 is done\n")
	text, err = launch(1)
	require.NoError(t, err, text)
	// With g++ 13 and later, MLX fuses nothing on a CPU.
	require.Regexp(t, `^(\[0\] .* are not fused on CPU streams .*\n)?\[0\] step 100: loss 0.0\d+\n\[0\] process 0 of 1 is done\n$`, text)
	text, err = launch(3)
	require.Error(t, err)
	require.Contains(t, text, "there are 3 processes; the number must divide 64, the points of a batch")
}
