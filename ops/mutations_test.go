package ops

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Every mutant of the shaders is noticed: the checker reports a finding, an output differs by more than
// rounding, or the text does not compile. The exceptions are in mutants.txt, each with its reason. Only a long run
// tries all mutants. A full run tries a sample of each file, and a default run tries a sample of every third file.
func TestMutationsAreNoticed(t *testing.T) {
	if long.Enabled() && os.Getenv("MLXGRAD_CACHE") == "" {
		t.Setenv("MLXGRAD_CACHE", t.TempDir()) // no other run needs these thousands of programs
	}
	files, all := shippedMutants(t)
	known := readMutantTable(t)
	known.requireCurrent(t, all)
	if *rekeyMutants {
		return
	}
	var summary strings.Builder
	table := tabwriter.NewWriter(&summary, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "file\tmutants\ttried\tkilled\tequivalent\tmissed\trate\t\n")
	for i, file := range files {
		if !long.Full() && i%7 != 0 {
			continue
		}
		t.Run(strings.TrimSuffix(file, filepath.Ext(file)), func(t *testing.T) {
			n := mutationsAreNoticed(t, file, all[file], known)
			fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t\n", file, len(all[file]),
				n.tried, n.killed, n.equivalent, n.missed, 100*float64(n.killed)/float64(max(n.tried-n.equivalent, 1)))
		})
	}
	require.NoError(t, table.Flush())
	t.Logf("rate: killed mutants among the mutants that are not equivalent\n%s", summary.String())
}

// sampleSize returns the largest number of mutants of a file in a sample.
func sampleSize() int {
	if long.Full() {
		return 4
	}
	return 1
}

// mutantCount counts the verdicts on a file's mutants.
type mutantCount struct{ tried, killed, equivalent, missed int }

func mutationsAreNoticed(t *testing.T, file string, tried []mutant, known mutantTable) (n mutantCount) {
	if !long.Enabled() {
		tried = sample(tried, known)
	}
	trials := mutationTrials(t, file)

	verdicts, errs := make([]string, len(tried)), make([]error, len(tried))
	var workers sync.WaitGroup
	work := make(chan int)
	for range runtime.NumCPU() {
		workers.Go(func() {
			for i := range work {
				verdicts[i], errs[i] = tryMutant(t.Context(), file, tried[i], trials)
			}
		})
	}
	for i := range tried {
		work <- i
	}
	close(work)
	workers.Wait()

	n.tried = len(tried)
	for i, m := range tried {
		require.NoError(t, errs[i])
		name := m.key + "  " + m.change
		verdict, reason := known.reason(m)
		switch {
		case verdicts[i] != "":
			n.killed++
			t.Logf("killed      %s: %s", name, verdicts[i])
			if verdict != "" {
				t.Errorf("killed, but %s lists it as %s: %s: %s", mutantsFile, verdict, name, verdicts[i])
			}
		case verdict == "equivalent":
			n.equivalent++
			t.Logf("equivalent  %s: %s", name, reason)
		case verdict == "missed":
			n.missed++
			t.Logf("missed      %s: %s", name, reason)
		default:
			t.Errorf("survived    %s", name)
		}
	}
	return n
}

// sample returns the first mutants without an entry, at most one of each kind.
func sample(all []mutant, known mutantTable) []mutant {
	var list []mutant
	for _, m := range all {
		same := func(o mutant) bool { return o.kind == m.kind }
		verdict, _ := known.reason(m)
		if verdict == "" && len(list) < sampleSize() && !slices.ContainsFunc(list, same) {
			list = append(list, m)
		}
	}
	return list
}

// A mutationTrial is a launch in which mutants are tried. The results of the unchanged kernel are computed when the
// first mutant needs them.
type mutationTrial struct {
	KernelLaunch
	file     string // the shader file of the kernel
	inputs   func() []*mlxc.Array
	original func() (original, error)
}

// An original holds the results of the unchanged kernel.
type original struct {
	want   [][]float64
	config sanitizer.Config // for the runs of mutants
}

// headerTrials names the shader files in whose launches the mutants of a header are tried. They call every function
// of the header. Mutants of any other header are tried in every file that includes it.
var headerTrials = map[string][]string{
	"reductions.h":     rowFiles,
	"rows.h":           rowFiles,
	"vectors.h":        rowFiles,
	"cross_entropy.h":  {"cross_entropy.metal"},
	"logit_rows.h":     {"cross_entropy.metal"},
	"soft_cap.h":       {"cross_entropy.metal"},
	"tiles.h":          attentionFiles,
	"tile_simdgroup.h": attentionFiles,
	"tile_columns.h":   attentionFiles,
	"tile_thread.h":    attentionFiles,
	"packed_product.h": append([]string{"matrix_product.metal"}, attentionFiles...),
}

// rowFiles call all functions of the headers for rows.
var rowFiles = []string{
	"softmax_backward.metal", "column_sum.metal", "rms_norm_residual.metal", "rms_norm_backward.metal", "transpose_2d.metal",
}

// attentionFiles call all functions of the headers for tiles.
var attentionFiles = []string{
	"attention_forward.metal", "attention_mask.metal", "attention_backward.metal", "attention_gradients.metal",
}

// mutationFiles returns the shader files in whose launches the mutants of a file are tried.
func mutationFiles(t *testing.T, file string) []string {
	t.Helper()
	if filepath.Ext(file) == ".metal" {
		return []string{file}
	}
	if files := headerTrials[file]; files != nil {
		return files
	}
	files, err := fs.Glob(customkernels.Shaders(), "*")
	require.NoError(t, err)
	including := []string{file}
	for changed := true; changed; {
		changed = false
		for _, other := range files {
			text, err := fs.ReadFile(customkernels.Shaders(), other)
			require.NoError(t, err)
			includes := func(name string) bool { return bytes.Contains(text, []byte(`#include "`+name+`"`)) }
			if !slices.Contains(including, other) && slices.ContainsFunc(including, includes) {
				including, changed = append(including, other), true
			}
		}
	}
	return slices.DeleteFunc(including, func(name string) bool { return filepath.Ext(name) != ".metal" })
}

// mutationTrials returns the ragged launches of a file's kernels, first in the geometry of GPUs. They are in the widest
// dtype, in which rounding hides the fewest errors, and in float16 if they prefetch both arrays, as only rows of 16 bits do.
func mutationTrials(t *testing.T, file string) []mutationTrial {
	t.Helper()
	launches := KernelLaunches(RaggedCases)
	launches = append(launches, variants(launches)...)
	geometries := []mlxc.Backend{mlxc.BackendMetal, mlxc.BackendCUDA, mlxc.BackendCPU, variantGeometry}
	// Launches of one kernel follow each other, because a mutant is compiled for each kernel.
	slices.SortStableFunc(launches, func(a, b KernelLaunch) int {
		return cmp.Or(
			cmp.Compare(slices.Index(geometries, a.Backend), slices.Index(geometries, b.Backend)),
			cmp.Compare(a.Kernel.Name(), b.Kernel.Name()))
	})
	widest := map[string]mlxc.DType{}
	for _, l := range launches {
		name := l.Kernel.Name()
		if old, ok := widest[name]; !ok || l.DType.Size() > old.Size() {
			widest[name] = l.DType
		}
	}
	var trials []mutationTrial
	for _, file := range mutationFiles(t, file) {
		lib, err := customkernels.Load(customkernels.Shaders(), file)
		require.NoError(t, err)
		for _, l := range launches {
			prefetches := l.DType == mlxc.Float16 &&
				slices.Contains(l.Launch.Template, mlxc.TemplateArg{Name: "PREFETCH", Value: 2})
			if l.DType != widest[l.Kernel.Name()] && !prefetches || !slices.Contains(lib.Names(), l.Kernel.Name()) {
				continue
			}
			trial := mutationTrial{KernelLaunch: l, file: file, inputs: sync.OnceValue(l.Inputs)}
			trial.original = sync.OnceValues(func() (original, error) { return trial.run(t.Context()) })
			trials = append(trials, trial)
		}
	}
	return trials
}

// run runs the unchanged kernel.
func (trial mutationTrial) run(ctx context.Context) (o original, err error) {
	o.config.Seed = 1
	r, err := trial.Kernel.Sanitize(ctx, trial.Launch, o.config, trial.inputs()...)
	if err != nil {
		return o, err
	}
	if len(r.Findings) > 0 {
		return o, fmt.Errorf("%s: %v", trial.Name(), r.Findings[0])
	}
	for _, a := range r.Outputs {
		values, err := mlxc.ToSlice[float64](a.AsType(mlxc.Float64))
		if err != nil {
			return o, err
		}
		o.want = append(o.want, values)
	}
	// Short, because some mutants never end.
	o.config.Timeout = 3*time.Second + 20*r.Duration
	return o, nil
}

// tryMutant returns the finding that reveals the mutant, or "" if no trial reveals it. An error means that the
// unchanged kernel failed.
func tryMutant(ctx context.Context, file string, m mutant, trials []mutationTrial) (string, error) {
	shaders := withMutant(file, m)
	libraries := map[string]*customkernels.Library{}
	kernels := map[string]*customkernels.Kernel{}
	for _, trial := range trials {
		lib, err := libraries[trial.file], error(nil)
		if lib == nil {
			if lib, err = customkernels.Load(shaders, trial.file); err != nil {
				return "does not load: " + firstLine(err), nil
			}
			libraries[trial.file] = lib
		}
		name := trial.Kernel.Name()
		if slices.Contains(lib.Names(), m.function) {
			if name != m.function {
				continue // the mutant is in another kernel
			}
		} else if kernelTestOf(name).sameHelpers {
			continue
		}
		lanes := lanesOfHead.FindStringSubmatch(m.head)
		if lanes != nil && fmt.Sprint(templateOf(trial.Launch)["LANES"]) != lanes[1] {
			continue // the launch uses another specialization
		}
		if kernels[name] == nil {
			if kernels[name], err = lib.Kernel(name); err != nil {
				return "does not load: " + firstLine(err), nil
			}
		}
		o, err := trial.original()
		if err != nil {
			return "", err
		}
		r, err := kernels[name].Sanitize(ctx, trial.Launch, o.config, trial.inputs()...)
		if err != nil {
			return "does not compile: " + firstLine(err), nil
		}
		if verdict := o.judge(r); verdict != "" {
			return fmt.Sprintf("%s (%s)", verdict, trial.Name()), nil
		}
	}
	return "", nil
}

// lanesOfHead matches the LANES of a specialization of the tiles for one number of lanes.
var lanesOfHead = regexp.MustCompile(`\b(?:Tile|Panel)<(\d+),`)

// withMutant returns the shader files, with the mutant in the place of `file`.
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

// judge returns the first difference of a mutant's report from the unchanged kernel, or "".
func (o original) judge(r *customkernels.SanitizeReport) string {
	if len(r.Findings) > 0 {
		return fmt.Sprintf("%s at line %d", r.Findings[0].Kind, r.Findings[0].Site.Line)
	}
	if !r.SameBits {
		return "the bits depend on the order of threads: " + r.Difference
	}
	if len(r.Outputs) != len(o.want) {
		return "the run did not end"
	}
	for i, want := range o.want {
		got, err := mlxc.ToSlice[float64](r.Outputs[i].AsType(mlxc.Float64))
		if err != nil {
			return err.Error()
		}
		eps := 0.0 // of integers
		switch r.Outputs[i].DType() {
		case mlxc.Float32:
			eps = 1e-5 // as in closeTo
		case mlxc.Float16, mlxc.BFloat16:
			eps = 1.0 / 256
		}
		largest := 1.0
		for _, v := range want {
			if a := math.Abs(v); a < math.Inf(1) {
				largest = max(largest, a)
			}
		}
		for j := range want {
			if math.Float64bits(want[j]) == math.Float64bits(got[j]) {
				continue // covers infinities, NaNs and unwritten elements
			}
			if d := math.Abs(got[j] - want[j]); !(d <= eps*largest) {
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
