package mlxc_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// logged is a log/slog handler that sends messages with their attributes.
type logged struct {
	slog.Handler
	lines chan string
}

func (l logged) Enabled(context.Context, slog.Level) bool { return true }

func (l logged) Handle(_ context.Context, r slog.Record) error {
	line := r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += "\n" + a.String()
		return true
	})
	l.lines <- line
	return nil
}

// logs returns a channel of the lines logged during the test.
func logs(t *testing.T) <-chan string {
	t.Helper()
	before := slog.Default()
	l := logged{before.Handler(), make(chan string, 16)}
	slog.SetDefault(slog.New(l))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l.lines
}

// A function that MLX calls waits for a goroutine that waits for the graph lock: after a while, a log line names both.
// In this test the function returns once it has seen the line.
func TestGoroutinesBlockedByACallbackAreLogged(t *testing.T) {
	lines := logs(t)
	t.Cleanup(func(before time.Duration) func() {
		return func() { mlxc.SetLockPatience(before) }
	}(mlxc.SetLockPatience(20 * time.Millisecond)))
	x := mlxc.Ones(mlxc.Float32, 2)
	added := make(chan error, 1)
	inTransform(t, func() {
		go func() { added <- x.Add(x).Err() }()
		select {
		case line := <-lines:
			require.Contains(t, line, "a function that MLX calls blocks goroutines")
			require.Regexp(t, `function=goroutine \d+: \S+TestGoroutinesBlockedByACallbackAreLogged\S* at \S+lockwatch_test.go:\d+`, line)
			require.Regexp(t, `waiting=.*goroutine \d+: \(\*Array\)\.Add, called at \S+lockwatch_test.go:\d+`, line)
		case err := <-added:
			t.Errorf("the graph lock is free inside a transform, and Add gives %v", err)
		case <-time.After(10 * time.Second):
			t.Error("nothing is logged")
		}
	})
	require.NoError(t, <-added)
	// A slow function is not logged if only the destruction of an unused function waits for the lock.
	unused := mlxc.Compile(func(a arrays) arrays { return a })
	inTransform(t, func() {
		unused.Close()
		time.Sleep(100 * time.Millisecond)
	})
	select {
	case line := <-lines:
		t.Errorf("no caller waits, but is logged: %s", line)
	default:
	}
}
