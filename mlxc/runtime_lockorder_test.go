package mlxc_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/distributed"
)

// inTransform runs f in a function whose gradient is taken, which holds the graph lock. It fails the test if f does not
// return.
func inTransform(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		_, _, err := mlxc.VJP(func(a arrays) arrays {
			f()
			return a
		}, arrays{mlxc.Scalar[float32](1)}, arrays{mlxc.Scalar[float32](1)})
		done <- err
	}()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		t.Fatal("goroutines wait for each other")
	}
}

// whileWaiting starts f on a new goroutine, and returns when one more thread waits for the graph lock.
func whileWaiting(t *testing.T, f func()) {
	t.Helper()
	before := mlxc.WaitingForLock()
	go f()
	require.Eventually(t, func() bool { return mlxc.WaitingForLock() > before }, 10*time.Second, time.Millisecond,
		"no thread waits for the graph lock")
}

// A goroutine that waits for the graph lock must not hold a resource that a function under a transform needs.
func TestDrawInATransformWhileAnotherWaits(t *testing.T) {
	inTransform(t, func() {
		whileWaiting(t, func() { mlxc.RandomNormal(nil, mlxc.Float32, 1) })
		require.NoError(t, mlxc.RandomNormal(nil, mlxc.Float32, 1).Err())
	})
}

func TestGroupInATransformWhileAnotherWaits(t *testing.T) {
	inTransform(t, func() {
		whileWaiting(t, func() { _, _ = distributed.Init(distributed.Any, false) })
		_, err := distributed.Init(distributed.Any, false)
		require.NoError(t, err)
	})
}

func TestImportInATransform(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	x := mlxc.Scalar[float32](3)
	require.NoError(t, mlxc.Export(file, func(a arrays) arrays { return arrays{a[0].Square()} }, x))
	inTransform(t, func() {
		f, err := mlxc.Import(file)
		require.NoError(t, err)
		f.Close()
	})
}

func TestImportedInATransformWhileOthersWait(t *testing.T) {
	x := mlxc.Scalar[float32](1)
	f := imported(t, func(file string) error {
		return mlxc.Export(file, func(a arrays) arrays { return arrays{a[0].Square()} }, x)
	})
	inTransform(t, func() {
		whileWaiting(t, func() { _, _ = f.Call(x) })
		whileWaiting(t, f.Close)
		_, err := f.Call(x)
		require.ErrorContains(t, err, "closed")
	})
}
