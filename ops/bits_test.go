package ops

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var updateBits = flag.Bool("update-bits", false, "rewrite "+bitsFile)

// bitsFile holds a hash of the results of a sample of launches. Its first line is the platform. On another platform
// MLX's random inputs may differ.
const bitsFile = "testdata/bits.txt"

// The host executor computes the recorded bits. A change of a shader that alters them on purpose, for example the order
// of a sum, runs the test with -update-bits. A default run checks one launch of each kernel and class of devices.
func TestResultsHaveRecordedBits(t *testing.T) {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	launches := KernelLaunches(RaggedCases)
	launches = append(launches, variants(launches)...)
	named := map[string]KernelLaunch{}
	for _, l := range launches {
		name := fmt.Sprintf("%s %v%v", l.Name(), l.Launch.Grid, l.Launch.Threadgroup)
		require.NotContains(t, named, name)
		named[name] = l
	}
	if *updateBits {
		sample := slices.DeleteFunc(launches, func(l KernelLaunch) bool { return l.DType != shortDType[l.Backend] })
		var lines strings.Builder
		fmt.Fprintln(&lines, platform)
		for _, l := range sampleLaunches(sample) {
			fmt.Fprintf(&lines, "%s  %s %v%v\n", resultHash(t, l), l.Name(), l.Launch.Grid, l.Launch.Threadgroup)
		}
		require.NoError(t, os.WriteFile(bitsFile, []byte(lines.String()), 0o644))
		return
	}

	text, err := os.ReadFile(bitsFile)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if lines[0] != platform {
		skip.Platform(t, bitsFile+" has the bits of "+lines[0])
	}
	kernels, sampled := map[string]bool{}, map[string]bool{}
	type check struct {
		KernelLaunch
		hash string
	}
	var checks []check
	for _, line := range lines[1:] {
		hash, name, _ := strings.Cut(line, "  ")
		l, ok := named[name]
		require.True(t, ok, "%s: %s has no such launch", bitsFile, name)
		kernels[l.Kernel.Name()] = true
		if key := l.Kernel.Name() + string(l.Backend); long.Enabled() || !sampled[key] {
			sampled[key] = true
			checks = append(checks, check{l, hash})
		}
	}
	for _, l := range launches {
		require.True(t, kernels[l.Kernel.Name()], "%s has no launch of %s", bitsFile, l.Kernel.Name())
	}
	var list []KernelLaunch
	for _, c := range checks {
		list = append(list, c.KernelLaunch)
	}
	compileAll(t, list)
	for _, c := range checks {
		require.Equal(t, c.hash, resultHash(t, c.KernelLaunch), c.Name())
	}
}

// compileAll compiles the kernels of the launches on all cores.
func compileAll(t *testing.T, launches []KernelLaunch) {
	t.Helper()
	programs := ahead.Collect(func() {
		for _, l := range launches {
			l.Kernel.Launch(l.Launch, l.Inputs()...)
		}
	})
	seen := map[string]bool{}
	work := make(chan ahead.Program)
	var workers sync.WaitGroup
	for range runtime.NumCPU() {
		workers.Go(func() {
			for p := range work {
				if err := p.Compile(context.Background()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, p := range programs {
		if !seen[p.Signature] {
			seen[p.Signature] = true
			work <- p
		}
	}
	close(work)
	workers.Wait()
}

// resultHash runs the launch and hashes its outputs. Elements that the kernel does not write keep a fixed value.
func resultHash(t *testing.T, l KernelLaunch) string {
	t.Helper()
	unwritten := float32(7)
	if l.Launch.InitValue == nil {
		l.Launch.InitValue = &unwritten
	}
	h := sha256.New()
	err := mlxc.WithDevice(mlxc.CPU, func() {
		for _, a := range l.Kernel.Launch(l.Launch, l.Inputs()...) {
			if a.DType() == mlxc.Uint32 {
				v, err := mlxc.ToSlice[uint32](a)
				require.NoError(t, err)
				fmt.Fprintf(h, "%x", v)
				continue
			}
			for _, v := range mlxtest.Floats(t, a) {
				bits := math.Float32bits(v)
				if v != v {
					bits = 0x7fc00000 // a NaN's sign and payload depend on the compiler
				}
				fmt.Fprintf(h, "%08x", bits)
			}
		}
	})
	require.NoError(t, err)
	return fmt.Sprintf("%x", h.Sum(nil)[:8])
}
