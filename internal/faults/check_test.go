//go:build mlxheaders

package faults_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/faults"
	mlx "github.com/mlxgrad/mlxgrad/internal/faults/unguarded"
)

// A check calls MLX without the guard of a fault. It returns "" if MLX is right, or describes MLX's mistake. It may end
// the process.
type check = func() string

// checks holds the check of each fault by name.
func checks() map[string]check {
	all := map[string]check{}
	for _, area := range []map[string]check{
		valueChecks, emptyChecks, memoryChecks, fileChecks, gradientChecks, complexChecks, transformChecks, evaluationChecks,
	} {
		maps.Copy(all, area)
	}
	return all
}

const (
	variable = "MLXGRAD_FAULT" // names the fault that the process checks
	folder   = "MLXGRAD_FAULT_FOLDER"
)

// Exit statuses of a process that checks a fault.
const (
	right      = 0
	wrong      = 3
	unexpected = 4 // the check fails for another reason
)

func TestMain(m *testing.M) {
	name := os.Getenv(variable)
	if name == "" {
		os.Exit(m.Run())
	}
	// An endless loop ends by SIGXCPU, however loaded the machine is.
	if err := syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: 2, Max: 4}); err != nil {
		fmt.Println(err)
		os.Exit(unexpected)
	}
	var mistake string
	if err := mlx.Try(func() { mistake = checks()[name]() }); err != nil {
		fmt.Println(err)
		os.Exit(unexpected)
	}
	if mistake != "" {
		fmt.Println(mistake)
		os.Exit(wrong)
	}
	os.Exit(right)
}

// state runs a check in a process of its own. there reports whether MLX has the fault.
func state(t *testing.T, name string) (there bool, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+name, folder+"="+t.TempDir(), "GOTRACEBACK=none")
	out, err := cmd.CombinedOutput()
	text = string(out)
	if err == nil {
		return false, text
	}
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, text)
	if exit.ExitCode() == unexpected {
		t.Fatalf("the check fails for another reason: %s", text)
	}
	// Go turns a signal of C code into exit status 2.
	return true, fmt.Sprintf("%v: %s", err, text)
}

// Each fault is there exactly in the versions that the table names.
func TestChecks(t *testing.T) {
	version := mlx.Version()
	all := checks()
	for _, f := range faults.All() {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, all, f.Name)
			there, text := state(t, f.Name)
			for n := 1; n < 10 && !there && f.Chance; n++ {
				there, text = state(t, f.Name)
			}
			switch {
			case there && !f.In(version):
				t.Errorf("fault %s is in MLX %s, but the table says that it is gone in %s: %s", f.Name, version, f.Gone, text)
			case !there && f.In(version):
				t.Errorf("fault %s is gone in MLX %s: set Gone, and remove the guard in %v when no supported version needs it",
					f.Name, version, f.Guards)
			}
		})
	}
	names := slices.Collect(maps.Keys(all))
	for _, f := range faults.All() {
		names = slices.DeleteFunc(names, func(n string) bool { return n == f.Name })
	}
	require.Empty(t, names, "checks without a fault")
}

// differ returns "" if both lists are equal.
func differ[T comparable](got, want []T) string {
	if slices.Equal(got, want) {
		return ""
	}
	return fmt.Sprintf("%v instead of %v", got[:min(len(got), 8)], want[:min(len(want), 8)])
}

// floats returns "" if the elements of a are the numbers.
func floats(a mlx.Array, want ...float32) string { return differ(a.Read(), want) }

// ends returns "" if MLX computes the arrays. The process ends if MLX has the fault.
func ends(arrays ...mlx.Array) string {
	mlx.Eval(arrays...)
	return ""
}

// refused returns "" if f computes something or fails with an error of MLX: only a crash is a fault.
func refused(f func() mlx.Array) string {
	_ = mlx.Try(func() { mlx.Eval(f()) }) // an error is allowed
	return ""
}

// failure returns the error of MLX in f, which must have none.
func failure(f func()) string {
	var e mlx.Error
	if errors.As(mlx.Try(f), &e) {
		return e.Error()
	}
	return ""
}
