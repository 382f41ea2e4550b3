package distributed_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/ranks"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

type arrays = []*mlxc.Array

// roles maps the roles of startRing to the functions that the processes run.
var roles = map[string]func(t *testing.T, g *distributed.Group){
	"collectives": collectives,
	"training":    training,
	"lostPeer":    lostPeer,
	"agreement":   agreement,
}

// TestProcessOfARing runs in the processes that startRing starts, where the environment names a role. Elsewhere it does
// nothing.
func TestProcessOfARing(t *testing.T) {
	role := os.Getenv("MLXC_TEST_ROLE")
	if role == "" {
		return
	}
	g, err := distributed.Init(distributed.Ring, true)
	require.NoError(t, err)
	roles[role](t, g)
}

type process struct {
	*exec.Cmd
	output bytes.Buffer
}

// startRing starts n processes of this test in a role, connected in a ring. They are
// killed when the test ends, or after a minute.
func startRing(t *testing.T, role string, n int) []*process {
	t.Helper()
	hosts, err := ranks.LocalHosts(n)
	require.NoError(t, err)
	environments, err := ranks.Environments(t.TempDir(), distributed.Ring, hosts, nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	program, err := os.Executable()
	require.NoError(t, err)
	processes := make([]*process, n)
	for rank := range processes {
		p := &process{Cmd: exec.CommandContext(ctx, program, "-test.run=^TestProcessOfARing$", "-test.v")}
		p.Env = append(append(os.Environ(), "MLXC_TEST_ROLE="+role), environments[rank]...)
		p.Stdout, p.Stderr = &p.output, &p.output
		processes[rank] = p
	}
	return processes
}

func start(t *testing.T, processes []*process) {
	t.Helper()
	for _, p := range processes {
		require.NoError(t, p.Start())
	}
}

func TestRing(t *testing.T) {
	for _, c := range []struct {
		role string
		n    int
	}{{"collectives", 2}, {"collectives", 3}, {"training", 2}, {"agreement", 2}, {"agreement", 4}} {
		t.Run(fmt.Sprintf("%s of %d", c.role, c.n), func(t *testing.T) {
			ring := startRing(t, c.role, c.n)
			start(t, ring)
			errs, outputs := make([]error, c.n), make([]string, c.n)
			for rank, p := range ring {
				errs[rank] = p.Wait()
				outputs[rank] = fmt.Sprintf("process %d: %s", rank, &p.output)
			}
			for rank, err := range errs {
				require.NoError(t, err, "process %d\n%s", rank, strings.Join(outputs, "\n"))
				require.Contains(t, outputs[rank], "--- PASS: TestProcessOfARing")
			}
		})
	}
}

// If a peer is killed, every later operation of the other process returns an error and does not block.
func TestKilledPeer(t *testing.T) {
	ring := startRing(t, "lostPeer", 2)
	start(t, ring)
	require.NoError(t, ring[0].Wait(), "%s", &ring[0].output)
	require.Contains(t, ring[0].output.String(), "--- PASS: TestProcessOfARing")
	err := ring[1].Wait()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
}

func lostPeer(t *testing.T, g *distributed.Group) {
	require.Equal(t, []float32{2}, mlxtest.Read[float32](t, g.AllSum(mlxc.Ones(mlxc.Float32, 1))))
	if g.Rank() == 1 {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGKILL))
		select {}
	}
	x := mlxc.Ones(mlxc.Float32, 1000)
	// One evaluation with two operations; the second finds that the group is lost.
	require.ErrorContains(t, mlxc.Eval(g.AllSum(x), g.AllGather(x)), "connection to a peer was lost")
	lost := "the group is lost"
	for i, op := range []func() *mlxc.Array{
		func() *mlxc.Array { return g.AllSum(x) },
		func() *mlxc.Array { return g.AllGather(x).Sum() },
		func() *mlxc.Array { return g.AllSum(x).AddScalar(1) },
		func() *mlxc.Array { return g.Recv(1, mlxc.Float32, 10) },
		func() *mlxc.Array { return g.Send(x, 1) },
		func() *mlxc.Array { return g.AverageGradients(arrays{x, x})[1] },
	} {
		y := op()
		t.Log("operation", i)
		require.ErrorContains(t, mlxc.Eval(y), lost)
		require.Equal(t, []float32{2}, mlxtest.Read[float32](t, mlxc.Scalar[float32](1).AddScalar(1)),
			"other operations work")
	}
}

func collectives(t *testing.T, g *distributed.Group) {
	rank, n := g.Rank(), g.Size()
	require.Equal(t, os.Getenv("MLX_RANK"), strconv.Itoa(rank))
	require.Equal(t, distributed.Ring, g.Backend())
	again, err := distributed.Init(distributed.Any, true)
	require.NoError(t, err)
	require.Equal(t, []int{rank, n}, []int{again.Rank(), again.Size()})

	// Process r has r, r+1, …
	own := func(count int) *mlxc.Array {
		return mlxc.Arange(mlxc.Float32, float64(rank), float64(rank+count), 1)
	}
	ranks := n * (n - 1) / 2 // 0 + 1 + …
	require.Equal(t, []float32{float32(ranks), float32(ranks + n)}, mlxtest.Read[float32](t, g.AllSum(own(2))))
	require.Equal(t, []float32{float32(n - 1), float32(n)}, mlxtest.Read[float32](t, g.AllMax(own(2))))
	require.Equal(t, []float32{0, 1}, mlxtest.Read[float32](t, g.AllMin(own(2))))
	require.Equal(t, []int32{int32(n - 1)}, mlxtest.Read[int32](t, g.AllMax(mlxc.FromSlice([]int32{int32(rank)}))))
	require.Equal(t, []float32{float32(ranks)}, mlxtest.Read[float32](t, g.AllSum(mlxc.Scalar(float32(rank)))))
	require.Empty(t, mlxtest.Read[float32](t, g.AllSum(mlxc.Zeros(mlxc.Float32, 0, 3))))
	for _, d := range mlxc.DTypes() {
		if d != mlxc.Bool && (d != mlxc.Float64 || mlxc.DefaultDevice() == mlxc.CPU) {
			sum := g.AllSum(mlxc.Ones(d, 5))
			require.Equal(t, d, sum.DType())
			require.Equal(t, []float32{float32(n), float32(n), float32(n), float32(n), float32(n)},
				mlxtest.Read[float32](t, sum.AsType(mlxc.Float32)))
		}
	}
	transposed := own(6).Reshape(2, 3).Transpose()
	require.Equal(t, mlxtest.Read[float32](t, transposed.MulScalar(float64(n)).AddScalar(float64(ranks-n*rank))),
		mlxtest.Read[float32](t, g.AllSum(transposed)))
	large := mlxtest.Read[float32](t, g.AllSum(own(1<<20)))
	for _, i := range []int{0, 1, 1 << 18, 1<<20 - 1} {
		require.Equal(t, float32(ranks+n*i), large[i])
	}

	gathered := g.AllGather(own(2).Reshape(1, 2))
	require.Equal(t, []int{n, 2}, gathered.Shape())
	scalars := g.AllGather(mlxc.Scalar(float32(rank)))
	require.Equal(t, []int{n}, scalars.Shape())
	rows, all := mlxtest.Read[float32](t, gathered), mlxtest.Read[float32](t, scalars)
	for r := range n {
		require.Equal(t, []float32{float32(r), float32(r + 1)}, rows[2*r:2*r+2])
		require.Equal(t, float32(r), all[r])
	}
	require.Equal(t, []float32{float32(ranks + 2*rank*n), float32(ranks + (2*rank+1)*n)},
		mlxtest.Read[float32](t, g.SumScatter(own(2*n))))

	// Once around the ring.
	next, previous := (rank+1)%n, (rank+n-1)%n
	token := mlxc.FromSlice([]int32{int32(rank)})
	var got *mlxc.Array
	if rank == 0 {
		require.NoError(t, mlxc.Eval(g.Send(token, next)))
		got = g.RecvLike(token, previous)
	} else {
		got = g.Recv(previous, mlxc.Int32, 1)
		require.NoError(t, mlxc.Eval(got))
		require.NoError(t, mlxc.Eval(g.Send(token, next)))
	}
	require.Equal(t, []int32{int32(previous)}, mlxtest.Read[int32](t, got))

	// Transforms. The gradient belongs to the process's own array.
	x := own(2)
	_, vjps, err := mlxc.VJP(func(a arrays) arrays { return arrays{g.AllSum(a[0].Square())} }, arrays{x},
		arrays{mlxc.FromSlice([]float32{1, 10})})
	require.NoError(t, err)
	require.Equal(t, []float32{2 * float32(rank), 20 * float32(rank+1)}, mlxtest.Read[float32](t, vjps[0]))
	_, jvps, err := mlxc.JVP(func(a arrays) arrays { return arrays{g.AllSum(a[0].MulScalar(2))} }, arrays{x}, arrays{x})
	require.NoError(t, err)
	require.Equal(t, []float32{float32(2 * ranks), float32(2 * (ranks + n))}, mlxtest.Read[float32](t, jvps[0]))
	_, vjps, err = mlxc.VJP(func(a arrays) arrays { return arrays{g.AllGather(a[0])} }, arrays{x},
		arrays{mlxc.Arange(mlxc.Float32, 0, float64(2*n), 1)})
	require.NoError(t, err)
	require.Equal(t, []float32{float32(2 * rank), float32(2*rank + 1)}, mlxtest.Read[float32](t, vjps[0]))
	for op, f := range map[string]func(*mlxc.Array) *mlxc.Array{"all_max": g.AllMax, "all_min": g.AllMin} {
		of := func(a arrays) arrays { return arrays{f(a[0])} }
		_, _, err = mlxc.VJP(of, arrays{x}, arrays{x})
		require.ErrorContains(t, err, op+" float32(2): the operation has no gradient")
		_, _, err = mlxc.JVP(of, arrays{x}, arrays{x})
		require.ErrorContains(t, err, "the operation has no gradient")
	}
	rowSums := mlxc.Vmap(func(a arrays) arrays { return arrays{g.AllSum(a[0])} }, nil, nil)(arrays{own(2)})
	require.Equal(t, []float32{float32(ranks), float32(ranks + n)}, mlxtest.Read[float32](t, rowSums[0]))
	c := mlxc.Compile(func(a arrays) arrays { return arrays{g.AllSum(a[0].Exp().Log()).DivScalar(float64(n))} })
	for range 3 {
		out, err := c.Call(mlxc.Ones(mlxc.Float32, 4))
		require.NoError(t, err)
		require.InDeltaSlice(t, []float32{1, 1, 1, 1}, mlxtest.Read[float32](t, out[0]), 1e-6)
	}

	// Means of several dtypes, shapes and sizes.
	grads := arrays{
		own(3), mlxc.Ones(mlxc.Float16, 2, 2).MulScalar(4e4), own(1).Sum(), mlxc.Zeros(mlxc.Float32, 0),
		own(4).Reshape(2, 2),
	}
	mean := float32(ranks) / float32(n)
	means := g.AverageGradients(grads)
	for i, a := range grads {
		require.Equal(t, a.Shape(), means[i].Shape())
		require.Equal(t, a.DType(), means[i].DType())
	}
	require.InDeltaSlice(t, []float32{mean, mean + 1, mean + 2}, mlxtest.Read[float32](t, means[0]), 1e-6)
	require.Equal(t, []float32{4e4, 4e4, 4e4, 4e4}, mlxtest.Read[float32](t, means[1].AsType(mlxc.Float32)))
	require.InDeltaSlice(t, []float32{mean}, mlxtest.Read[float32](t, means[2]), 1e-6)
	require.InDeltaSlice(t, []float32{mean, mean + 1, mean + 2, mean + 3}, mlxtest.Read[float32](t, means[4]), 1e-6)

	for want, err := range map[string]error{
		"in a group of":          g.Send(x, n).Err(),
		"there is no process -1": g.Recv(-1, mlxc.Float32, 1).Err(),
		"is this one":            g.RecvLike(x, rank).Err(),
		"is invalid":             g.Recv(next, mlxc.Invalid, 1).Err(),
		"2³¹":                    g.Recv(next, mlxc.Float32, 1<<40).Err(),
		"equal parts":            g.SumScatter(mlxc.Ones(mlxc.Float32, n+1)).Err(),
		"sum_scatter float32()":  g.SumScatter(mlxc.Scalar[float32](1)).Err(),
		"floating-point":         g.AverageGradients(arrays{x, token})[0].Err(),
		"the array is nil":       g.AllSum(nil).Err(),
		"all_gather":             g.AllGather(nil).Err(),
		"longer than 2³¹−1":      g.AllGather(mlxc.Zeros(mlxc.Float32, 1<<30)).Err(),
	} {
		require.ErrorContains(t, err, want)
	}
	_, err = g.Split(0, 0)
	require.ErrorContains(t, err, "not supported")
	_, err = g.Split(-1, 0)
	require.ErrorContains(t, err, "negative")

	// The last message keeps each process running until all have finished.
	require.Equal(t, []float32{float32(n)}, mlxtest.Read[float32](t, g.AllSum(mlxc.Ones(mlxc.Float32, 1))))
}

// Two processes fit y = 3x − 2, each on half of the points. Their steps equal the steps of one process on all points.
func training(t *testing.T, g *distributed.Group) {
	const points, rate, steps = 8, 0.1, 60
	at := func(i int) (x, y float32) { x = float32(i)/points - 0.5; return x, 3*x - 2 }
	var xs, ys []float32
	for i := g.Rank(); i < points; i += g.Size() {
		x, y := at(i)
		xs, ys = append(xs, x), append(ys, y)
	}
	x, y := mlxc.FromSlice(xs), mlxc.FromSlice(ys)
	loss := mlxc.ValueAndGrad(func(p arrays) arrays {
		return arrays{x.Mul(p[0]).Add(p[1]).Sub(y).Square().Mean()}
	}, 0, 1)
	step := mlxc.Compile(func(p arrays) arrays {
		_, grads, err := loss(p)
		if err != nil {
			return arrays{mlxc.InvalidArray(err)}
		}
		next := make(arrays, len(p))
		for i, mean := range g.AverageGradients(grads) {
			next[i] = p[i].Sub(mean.MulScalar(rate))
		}
		return next
	})
	params := arrays{mlxc.Scalar[float32](0), mlxc.Scalar[float32](0)}
	var a, b float64 // the same on all points, in Go
	for range steps {
		next, err := step.Call(params...)
		require.NoError(t, err)
		require.NoError(t, mlxc.Eval(next...))
		params = next
		var da, db float64
		for i := range points {
			x, y := at(i)
			e := a*float64(x) + b - float64(y)
			da += 2 * e * float64(x) / points
			db += 2 * e / points
		}
		a, b = a-rate*da, b-rate*db
		require.InDelta(t, a, mlxtest.Read[float32](t, params[0])[0], 1e-4)
		require.InDelta(t, b, mlxtest.Read[float32](t, params[1])[0], 1e-4)
	}
	require.Less(t, math.Abs(b+2), 0.1)
	// All processes have the same parameters.
	for _, p := range params {
		require.Equal(t, mlxtest.Read[float32](t, g.AllMax(p)), mlxtest.Read[float32](t, g.AllMin(p)))
	}
}

func TestGroupOfOne(t *testing.T) {
	g, err := distributed.Init(distributed.Any, false)
	require.NoError(t, err)
	require.Equal(t, 0, g.Rank())
	require.Equal(t, 1, g.Size())
	require.Empty(t, g.Backend())
	x := mlxc.FromSlice([]float32{1, 2})
	for _, y := range []*mlxc.Array{
		g.AllSum(x), g.AllMax(x), g.AllMin(x), g.AllGather(x), g.SumScatter(x),
		g.AverageGradients(arrays{x, x})[1],
	} {
		require.Equal(t, []float32{1, 2}, mlxtest.Read[float32](t, y))
	}
	require.Equal(t, []int{1}, g.AllGather(mlxc.Scalar[float32](1)).Shape())
	require.ErrorContains(t, g.Send(x, 0).Err(), "is this one")
	require.ErrorContains(t, g.Recv(1, mlxc.Float32, 1).Err(), "in a group of 1")
	_, err = g.Split(0, 0)
	require.ErrorContains(t, err, "split")

	var none *distributed.Group
	for _, y := range []*mlxc.Array{
		none.AllSum(x), none.AllGather(x), none.SumScatter(x), none.Send(x, 0),
		none.Recv(0, mlxc.Float32, 1), none.RecvLike(x, 0), none.AverageGradients(arrays{x})[0],
	} {
		require.ErrorContains(t, y.Err(), "the group is nil")
	}
	_, err = none.Split(0, 0)
	require.ErrorContains(t, err, "the group is nil")
}

func TestDistributedBackends(t *testing.T) {
	require.True(t, distributed.Any.Available())
	require.True(t, distributed.Ring.Available())
	require.False(t, distributed.Backend("pigeons").Available())
	_, err := distributed.Init("pigeons", false)
	require.ErrorContains(t, err, "valid values for backend")
	_, err = distributed.Init(distributed.Ring, true)
	require.ErrorContains(t, err, "MLX_RANK")
	// The other backends need processes that a launcher such as mpirun starts.
	for _, b := range []distributed.Backend{distributed.MPI, distributed.NCCL, distributed.JACCL, distributed.Any} {
		_, err = distributed.Init(b, true)
		require.Error(t, err, b)
	}
}

func ExampleGroup() {
	// A process alone is a group of one. If it is started with others (see Init), the same program averages its
	// gradients with theirs.
	group, err := distributed.Init(distributed.Any, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	grads := []*mlxc.Array{mlxc.FromSlice([]float32{1, 2})}
	means := group.AverageGradients(grads)
	fmt.Println(group.Size(), means[0])
	// Output: 1 array([1, 2], dtype=float32)
}

func ExampleBackend() {
	fmt.Println(distributed.Ring, distributed.Ring.Available())
	// This process was not started for a ring.
	_, err := distributed.Init(distributed.Ring, true)
	fmt.Println(err != nil)
	// Output:
	// ring true
	// true
}
