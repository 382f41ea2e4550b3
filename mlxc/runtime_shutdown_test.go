//go:build darwin || linux

package mlxc_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/internal/cexit"
)

// shutdownVariable is the environment variable that selects the program of a process started by TestShutdown.
const shutdownVariable = "MLXC_SHUTDOWN"

// withoutShutdown makes the busy program skip Shutdown, to show the crash that Shutdown prevents.
const withoutShutdown = "MLXC_SHUTDOWN_LEFT_OUT"

// shutdownStatus is the exit status of an orderly end, which a crash does not have.
const shutdownStatus = 7

// shutdownPrograms are the programs that TestShutdown runs, each in a process.
var shutdownPrograms = map[string]func(*testing.T){
	"operations": shutdownOperations,
	"error":      shutdownError,
	"transform":  shutdownInTransform,
	"work":       shutdownDuringWork,
	"busy":       shutdownBusy,
}

func TestShutdown(t *testing.T) {
	if name := os.Getenv(shutdownVariable); name != "" {
		shutdownPrograms[name](t)
		if !t.Failed() {
			os.Exit(shutdownStatus)
		}
		return
	}
	for name := range shutdownPrograms {
		t.Run(name, func(t *testing.T) {
			times := 1
			if name == "busy" {
				if instrumented {
					skip.Platform(t, "sanitizers have work of their own in the C library's exit")
				}
				times = 5
				if long.Enabled() {
					times = 50
				}
			}
			for range times {
				program := exec.Command(os.Args[0], "-test.run=^TestShutdown$")
				program.Env = append(os.Environ(), shutdownVariable+"="+name)
				out, err := program.CombinedOutput()
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit, "%s", out)
				require.Equal(t, shutdownStatus, exit.ExitCode(), "%s", out)
			}
		})
	}
}

// After Shutdown, every operation returns ErrShutdown and does nothing else.
func shutdownOperations(t *testing.T) {
	x := mlxc.FromSlice([]float32{1, 2, 3})
	lazy := x.Add(x)
	square := func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Mul(args[0]).Sum()} }
	compiled := mlxc.Compile(square)
	stream, err := mlxc.NewStream(mlxc.CPU)
	require.NoError(t, err)
	require.NoError(t, mlxc.Eval(x.MulScalar(2)))
	require.NoError(t, mlxc.Shutdown())
	require.NoError(t, mlxc.Shutdown(), "a second time")

	is := func(err error, operation string) {
		t.Helper()
		require.ErrorIs(t, err, mlxc.ErrShutdown, operation)
	}
	is(mlxc.Check(), "Check")
	is(mlxc.Ones(mlxc.Float32, 2).Err(), "Ones")
	is(mlxc.FromSlice([]float32{1}).Err(), "FromSlice")
	is(x.Add(x).Err(), "Add")
	is(lazy.Sum().Tanh().Err(), "a chain")
	is(mlxc.Eval(lazy), "Eval")
	is(mlxc.Eval(x), "Eval of a leaf")
	is(mlxc.AsyncEval(lazy), "AsyncEval")
	is(mlxc.Synchronize(), "Synchronize")
	is(stream.Synchronize(), "Stream.Synchronize")
	_, err = mlxc.ToSlice[float32](x)
	is(err, "ToSlice")
	_, err = mlxc.Item[float32](x.Sum())
	is(err, "Item")
	_, _, err = mlxc.VJP(square, []*mlxc.Array{x}, []*mlxc.Array{x})
	is(err, "VJP")
	_, _, err = mlxc.JVP(square, []*mlxc.Array{x}, []*mlxc.Array{x})
	is(err, "JVP")
	_, err = mlxc.Grad(square)([]*mlxc.Array{x})
	is(err, "Grad")
	is(mlxc.Vmap(square, nil, nil)([]*mlxc.Array{x})[0].Err(), "Vmap")
	_, err = compiled.Call(x)
	is(err, "Compiled.Call")
	_, err = mlxc.Compile(square).Call(x)
	is(err, "Compile")
	_, err = mlxc.NewStream(mlxc.CPU)
	is(err, "NewStream")
	_, err = mlxc.StreamNames()
	is(err, "StreamNames")
	_, err = mlxc.Import("nothing.mlxfn")
	is(err, "Import")
	_, err = mlxc.Trace(square, []*mlxc.Array{x})
	is(err, "Trace")

	require.NoError(t, x.Err(), "an array stays valid")
	require.Equal(t, []int{3}, x.Shape())
	require.Contains(t, x.String(), mlxc.ErrShutdown.Error())
	mlxc.WithScope(func() { is(x.Exp().Err(), "in a scope") })
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { is(x.Exp().Err(), "on a device") }))
	mlxc.ClearCache()
	compiled.Close()
	x.Free()
	lazy, stream = nil, nil
	for range 3 {
		runtime.GC()
		time.Sleep(10 * time.Millisecond) // longer than freed arrays stay queued
	}
}

// Shutdown returns the error of work that was not waited for.
func shutdownError(t *testing.T) {
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { require.NoError(t, mlxc.AsyncEval(singularInverse())) }))
	require.ErrorContains(t, mlxc.Shutdown(), "LU factorization failed")
	require.NoError(t, mlxc.Shutdown())
}

// Shutdown waits for a transform for a limited time. Called inside a transform, it returns an error.
func shutdownInTransform(t *testing.T) {
	mlxc.SetShutdownLimit(50 * time.Millisecond)
	x := mlxc.FromSlice([]float32{1, 2, 3})
	entered, leave, left := make(chan error), make(chan bool), make(chan error)
	go func() {
		_, err := mlxc.Grad(func(args []*mlxc.Array) []*mlxc.Array {
			entered <- mlxc.Shutdown()
			<-leave
			return []*mlxc.Array{args[0].Sum()}
		})([]*mlxc.Array{x})
		left <- err
	}()
	require.ErrorContains(t, <-entered, "it was called by a function under a transform")
	require.NoError(t, mlxc.Check(), "the failed Shutdown does not end MLX")
	for range 2 {
		require.ErrorContains(t, mlxc.Shutdown(), "MLX is still at work after 50ms: it waits for a transform")
	}
	close(leave)
	require.ErrorIs(t, <-left, mlxc.ErrShutdown, "the function cannot start another operation")
	mlxc.SetShutdownLimit(time.Minute)
	require.NoError(t, mlxc.Shutdown())
	require.ErrorIs(t, x.Add(x).Err(), mlxc.ErrShutdown)
}

// Shutdown waits for work and for goroutines that wait for it.
func shutdownDuringWork(t *testing.T) {
	mlxc.SetShutdownLimit(time.Millisecond)
	y := mlxc.Ones(mlxc.Float32, 256, 256)
	for range 20 {
		y = y.MatMul(y).MulScalar(1.0 / 256)
	}
	require.NoError(t, mlxc.AsyncEval(y))
	read := make(chan error)
	go func() {
		v, err := mlxc.Item[float32](y.Max())
		if err == nil && v != 1 {
			err = fmt.Errorf("the value is %v", v)
		}
		read <- err
	}()
	time.Sleep(10 * time.Millisecond)
	err := mlxc.Shutdown()
	if err != nil { // nil if the work ended within the millisecond
		require.ErrorContains(t, err, "MLX is still at work after 1ms: it waits for ")
	}
	mlxc.SetShutdownLimit(time.Minute)
	require.NoError(t, mlxc.Shutdown())
	if err := <-read; !errors.Is(err, mlxc.ErrShutdown) {
		require.NoError(t, err)
	}
}

// The process ends through the C library while goroutines evaluate and free arrays. Without Shutdown it crashes: on
// Linux, MLX looks up streams in a destroyed map.
func shutdownBusy(*testing.T) {
	fused := mlxc.Compile(func(args []*mlxc.Array) []*mlxc.Array {
		return []*mlxc.Array{args[0].Tanh().Add(args[0].Exp())}
	})
	work := func(kind int) error {
		x := mlxc.RandomNormal(nil, mlxc.Float32, 32, 32)
		y := x.MatMul(x).Tanh()
		switch kind {
		case 0:
			defer y.Free() // the collector frees the others
		case 1:
			f, err := fused.Call(x)
			if err != nil {
				return err
			}
			y = f[0]
		case 2:
			g, err := mlxc.Grad(func(args []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{args[0].Exp().Sum()} })([]*mlxc.Array{x})
			if err != nil {
				return err
			}
			y = g[0]
		case 3:
			err := mlxc.WithDevice(mlxc.CPU, func() { y = x.MatMul(x).AddScalar(100).Inv() })
			if err != nil {
				return err
			}
		}
		if kind%2 == 0 {
			_, err := mlxc.ToSlice[float32](y)
			return err
		}
		return mlxc.Eval(y)
	}
	must := func(err error) {
		if err != nil {
			fmt.Println(err)
			cexit.Exit(1)
		}
	}
	var started sync.WaitGroup
	for kind := range 4 {
		must(work(kind)) // MLX compiles the fused function
		started.Add(1)
		go func() {
			begun := false
			for {
				err := work(kind)
				if err != nil && !errors.Is(err, mlxc.ErrShutdown) {
					must(err)
				}
				if !begun {
					started.Done()
					begun = true
				}
			}
		}()
	}
	go func() {
		for {
			runtime.GC()
		}
	}()
	started.Wait()
	if os.Getenv(withoutShutdown) == "" {
		must(mlxc.Shutdown())
	}
	cexit.Exit(shutdownStatus)
}
