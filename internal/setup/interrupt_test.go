package setup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A failure leaves a working installation as it was.
func TestFailureKeepsTheInstallation(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	before := w.read("install/manifest.json")
	w.failingCompiler("error: broken")
	w.fails("compiling libmlxc_part2.cpp failed (error: broken): ")
	require.Equal(t, before, w.read("install/manifest.json"))
}

func TestInterruptedRun(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	before := w.read("install/manifest.json")

	// Stopped by a signal while it compiles.
	slow := `[ "$1" = --version ] && { echo "slow compiler"; exit 0; }; : >"$FAKES/compiling"; exec /bin/sleep 600`
	w.fake("g++", slow)
	w.fake("clang++", slow)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- w.setupUnder(ctx) }()
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(filepath.Dir(w.bin), "compiling"))
		return err == nil
	}, time.Minute, time.Millisecond)
	cancel()
	require.ErrorIs(t, <-done, context.Canceled)
	require.Equal(t, before, w.read("install/manifest.json"))
	w.tidy()
}

// Killed between the two renames that put an installation into place, or earlier.
func TestKilledRun(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.setup())
	before := w.read("install/manifest.json")
	install := filepath.Join(w.root, "install")
	require.NoError(t, os.Rename(install, install+oldSuffix))
	require.NoError(t, os.Mkdir(install+".tmp-1", 0o755))
	require.NoError(t, os.Mkdir(filepath.Join(w.root, "build", "tmp-1"), 0o755))
	w.compiled()
	require.NoError(t, w.setup())
	require.Empty(t, w.compiled())
	require.Equal(t, before, w.read("install/manifest.json"))
	require.NoDirExists(t, install+".tmp-1")
	require.NoDirExists(t, install+oldSuffix)
}

func TestReplaceDir(t *testing.T) {
	dir := t.TempDir()
	target, stage := filepath.Join(dir, "install"), filepath.Join(dir, "install.tmp-1")
	for _, text := range []string{"first", "second"} {
		require.NoError(t, os.Mkdir(stage, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(stage, "f"), []byte(text), 0o644))
		require.NoError(t, replaceDir(stage, target))
		data, err := os.ReadFile(filepath.Join(target, "f"))
		require.NoError(t, err)
		require.Equal(t, text, string(data))
		requireOnly(t, dir, "install", "install/f")
	}
	// Without a stage, the target stays.
	require.Error(t, replaceDir(stage, target))
	require.FileExists(t, filepath.Join(target, "f"))
}

func TestOneSetupAtATime(t *testing.T) {
	w := newWorld(t)
	// A waiting set-up says so once, and stops at an interrupt.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &setup{root: w.root, progress: func(p Progress) {
		w.log.WriteString(p.Message)
		cancel()
	}}
	unlock, _, err := s.exclusive(t.Context())
	require.NoError(t, err)
	_, _, err = s.exclusive(ctx)
	require.ErrorIs(t, err, context.Canceled)
	require.Equal(t, 1, strings.Count(w.log.String(), "waiting for another set-up to end"))

	// It continues when the other has ended.
	s.progress = func(Progress) { unlock() }
	unlock2, _, err := s.exclusive(t.Context())
	require.NoError(t, err)
	unlock2()
}
