package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// The notice is logged once, when compilations have taken a second in total, whether sequential or concurrent.
func TestNotice(t *testing.T) {
	c := &compiler{path: "/usr/bin/g++", version: "g++ 12"}
	line := "level=INFO msg=\"customkernels: compiling kernels, which the cache keeps for later runs\" compiler=\"/usr/bin/g++ (g++ 12)\" done="
	run := func(name string, test func(t *testing.T, n *notice, log func() string)) {
		t.Run(name, func(t *testing.T) {
			log := logged(t)
			synctest.Test(t, func(t *testing.T) { test(t, &notice{after: time.Second}, log) })
		})
	}
	take := func(n *notice, d time.Duration) {
		end := n.begin(c)
		time.Sleep(d)
		end()
	}
	run("short", func(t *testing.T, n *notice, log func() string) {
		take(n, 900*time.Millisecond)
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Empty(t, log())
	})
	run("long", func(t *testing.T, n *notice, log func() string) {
		take(n, 1100*time.Millisecond)
		require.Contains(t, log(), line+"0")
	})
	run("one after another", func(t *testing.T, n *notice, log func() string) {
		for range 10 {
			take(n, 300*time.Millisecond)
			time.Sleep(time.Minute)
		}
		require.Contains(t, log(), line+"3")
		require.Equal(t, 1, strings.Count(log(), "\n"))
	})
	run("side by side", func(t *testing.T, n *notice, log func() string) {
		for range 5 {
			go take(n, 900*time.Millisecond)
		}
		time.Sleep(899 * time.Millisecond)
		take(n, 100*time.Millisecond)
		require.Empty(t, log())
		take(n, 10*time.Millisecond)
		require.Contains(t, log(), line+"6")
		take(n, time.Hour)
		require.Equal(t, 1, strings.Count(log(), "\n"))
	})
}

// A slow compilation is logged while it still runs.
func TestSlowCompilationIsLogged(t *testing.T) {
	cold(t)
	log := logged(t)
	compiling.mu.Lock()
	compiling.told, compiling.spent = false, 0
	compiling.mu.Unlock()
	set(t, &compiling.after, time.Millisecond)
	slow := newStandIn(t, `read line <$DIR/gate`)
	gate := filepath.Join(slow.dir, "gate")
	require.NoError(t, syscall.Mkfifo(gate, 0o600))
	text := source(t, "copy") + "// slow\n"
	done := make(chan error, 1)
	go func() {
		_, err := slow.library(t.Context(), text)
		done <- err
	}()
	eventually(t, func() bool { return strings.Contains(log(), "compiling kernels") })
	f, err := os.OpenFile(gate, os.O_RDWR, 0)
	require.NoError(t, err)
	defer f.Close()
	_, err = f.WriteString("headers\nkernel\n")
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, 1, strings.Count(log(), "\n"), log())
}
