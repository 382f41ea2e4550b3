package ops

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Every one-token mistake in our kernels is noticed: the checker finds something, the outputs
// leave what rounding allows, or the text does not compile. Otherwise it is
// known why it makes no difference (see equivalentMutants), or known that it is missed
// (see missedMutants). In the short run, the first mutant of each kind.
func TestMutationsAreNoticed(t *testing.T) {
	files, err := fs.Glob(customkernels.Shaders(), "*.metal")
	require.NoError(t, err)
	if long.Enabled() && os.Getenv("MLXGRAD_CACHE") == "" {
		// Hundreds of programs that nobody needs again.
		t.Setenv("MLXGRAD_CACHE", t.TempDir())
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(file, filepath.Ext(file)), func(t *testing.T) { mutationsAreNoticed(t, file) })
	}
}

// sampleSize bounds the mutants of the short run.
const sampleSize = 4

func mutationsAreNoticed(t *testing.T, file string) {
	text, err := fs.ReadFile(customkernels.Shaders(), file)
	require.NoError(t, err)
	all := mutants(string(text))
	names := map[string]bool{}
	for _, m := range all {
		names[m.name] = true
	}
	if long.Enabled() {
		for _, table := range []map[string]string{equivalentMutants, missedMutants} {
			for name := range table {
				require.True(t, names[name], "there is no such mutant any more: %s", name)
			}
		}
	}
	tried := all
	if !long.Enabled() {
		tried = sample(all)
	}
	trials := mutationTrials(t, file)

	verdicts := make([]string, len(tried))
	var workers sync.WaitGroup
	work := make(chan int)
	for range 2 {
		workers.Add(1)
		go func() {
			defer workers.Done()
			for i := range work {
				verdicts[i] = killer(t.Context(), file, tried[i], trials)
			}
		}()
	}
	for i := range tried {
		work <- i
	}
	close(work)
	workers.Wait()

	killed, equivalent := 0, 0
	for i, m := range tried {
		reason, known := equivalentMutants[m.name]
		switch {
		case verdicts[i] != "":
			killed++
			t.Logf("killed      %s: %s", m.name, verdicts[i])
			if known {
				t.Errorf("killed, and so not equivalent: %s: %s", m.name, verdicts[i])
			}
		case known:
			equivalent++
			t.Logf("equivalent  %s: %s", m.name, reason)
		case missedMutants[m.name] != "":
			t.Logf("missed      %s: %s", m.name, missedMutants[m.name])
		default:
			t.Errorf("survived    %s", m.name)
		}
	}
	t.Logf("%d of %d mutants tried, %d killed, %d equivalent: %.1f %% of those that differ are killed", len(tried), len(all),
		killed, equivalent, 100*float64(killed)/float64(max(len(tried)-equivalent, 1)))
}

// sample is the first mutant of each kind that makes a difference.
func sample(all []mutant) []mutant {
	var list []mutant
	for _, m := range all {
		same := func(o mutant) bool { return o.kind == m.kind }
		if known := equivalentMutants[m.name] + missedMutants[m.name]; known == "" && len(list) < sampleSize && !slices.ContainsFunc(list, same) {
			list = append(list, m)
		}
	}
	return list
}

// A mutationTrial is a launch with what the kernel as it stands makes of it.
type mutationTrial struct {
	KernelLaunch
	inputs arrays
	want   [][]float32
}

// mutationConfig leaves a mutant that never ends enough time to be found out.
var mutationConfig = customkernels.SanitizeConfig{Schedules: 3, Seed: 1, Timeout: 15 * time.Second}

// mutationTrials are the ragged launches of a file's kernels in float32, where rounding
// hides least: in a GPU's geometry first, then in others.
func mutationTrials(t *testing.T, file string) []mutationTrial {
	t.Helper()
	lib, err := customkernels.Load(customkernels.Shaders(), file)
	require.NoError(t, err)
	launches := Launches(RaggedCases)
	launches = append(launches, variants(launches)...)
	slices.SortStableFunc(launches, func(a, b KernelLaunch) int { return cmp.Compare(a.Device, b.Device) })
	var trials []mutationTrial
	for _, l := range launches {
		if l.DType != mlxc.Float32 || !slices.Contains(lib.Names(), l.Kernel.Name()) {
			continue
		}
		trial := mutationTrial{KernelLaunch: l, inputs: l.Inputs()}
		r, err := l.Kernel.Sanitize(t.Context(), l.Launch, mutationConfig, trial.inputs...)
		require.NoError(t, err)
		require.Empty(t, r.Findings, l.Name())
		for _, a := range r.Outputs {
			trial.want = append(trial.want, floats(t, a))
		}
		trials = append(trials, trial)
	}
	return trials
}

// killer says what gives the mutant away, "" for nothing.
func killer(ctx context.Context, file string, m mutant, trials []mutationTrial) string {
	lib, err := customkernels.Load(withMutant(file, m), file)
	if err != nil {
		return "does not load: " + firstLine(err)
	}
	kernels := map[string]*customkernels.Kernel{}
	for _, trial := range trials {
		name := trial.Kernel.Name()
		if slices.Contains(lib.Names(), m.function) && name != m.function {
			continue // the mutant is in another kernel, not in a helper
		}
		if kernels[name] == nil {
			if kernels[name], err = lib.Kernel(name); err != nil {
				return "does not load: " + firstLine(err)
			}
		}
		r, err := kernels[name].Sanitize(ctx, trial.Launch, mutationConfig, trial.inputs...)
		if err != nil {
			return "does not compile: " + firstLine(err)
		}
		if verdict := trial.judge(r); verdict != "" {
			return fmt.Sprintf("%s (%s)", verdict, trial.Name())
		}
	}
	return ""
}

// withMutant are the shaders with the mutant in the place of a file.
func withMutant(file string, m mutant) fs.FS {
	files := fstest.MapFS{}
	shipped := customkernels.Shaders()
	names, err := fs.Glob(shipped, "*")
	if err != nil {
		panic(err) // the pattern is a constant and valid
	}
	for _, name := range names {
		text, err := fs.ReadFile(shipped, name)
		if err != nil {
			panic(err) // the files are part of the program
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	files[file] = &fstest.MapFile{Data: []byte(m.text)}
	return files
}

// judge says how a report differs from what it should be, "" for not at all.
func (trial mutationTrial) judge(r *customkernels.SanitizeReport) string {
	if len(r.Findings) > 0 {
		return fmt.Sprintf("%s at line %d", r.Findings[0].Kind, r.Findings[0].Site.Line)
	}
	if !r.SameBits {
		return "other bits in another order: " + r.Difference
	}
	if len(r.Outputs) != len(trial.want) {
		return "it did not end"
	}
	for i, want := range trial.want {
		got, err := mlxc.ToSlice[float32](r.Outputs[i].AsType(mlxc.Float32))
		if err != nil {
			return err.Error()
		}
		// As closeTo does for float32.
		const eps = 1e-5
		largest := 1.0
		for _, v := range want {
			if v == v {
				largest = max(largest, math.Abs(float64(v)))
			}
		}
		for j := range want {
			if want[j] != want[j] && math.Float32bits(want[j]) == math.Float32bits(got[j]) {
				continue // a NaN, or what is left alone, which is another
			}
			if d := math.Abs(float64(got[j]) - float64(want[j])); !(d <= eps*largest) {
				return fmt.Sprintf("output %d[%d] is %g, not %g", i, j, got[j], want[j])
			}
		}
	}
	return ""
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
