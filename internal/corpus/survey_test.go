package corpus

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// surveyed is the number of kernels of each repository that run, and the total. A template counts once.
var surveyed = map[string]struct{ run, total int }{
	"candle":      {357, 357},
	"ggml":        {117, 117},
	"lambdaworks": {86, 95},
	"mistralrs":   {144, 146},
	"mlx":         {163, 167},
	"tract":       {73, 73},
}

// An exception is a file with kernels that do not run.
type exception struct{ file, reason string }

const (
	noInstantiation = "the file does not instantiate the template, and its argument must be a class with certain members"
	noPrimitives    = "the file includes MetalPerformancePrimitives, whose source is not public"
)

var exceptions = []exception{
	{"fft_extension.h.metal", noInstantiation},
	{"twiddles.h.metal", noInstantiation},
	{"sumcheck_contribute.h.metal", noInstantiation},
	{"sumcheck_reduce.h.metal", noInstantiation},
	{"scan_impl.metal", noInstantiation},
	{"fp_quantized_nax.metal", noPrimitives},
	{"quantized_nax.metal", noPrimitives},
	{"steel_attention_nax.metal", noPrimitives},
	{"steel_gemm_fused_nax.metal", noPrimitives},
	{"steel_gemm_gather_nax.metal", noPrimitives},
	{"steel_gemm_segmented_nax.metal", noPrimitives},
	{"steel_gemm_splitk_nax.metal", noPrimitives},
	{"random.metal", "a vector of four is initialized with three values in braces"},
	{"steel_gemm_masked.metal", "two templates have one name and different parameters"},
}

func expectedFailure(file string) bool {
	return slices.ContainsFunc(exceptions, func(e exception) bool { return e.file == path.Base(file) })
}

// A survey counts the kernels of a repository.
type survey struct {
	mu         sync.Mutex
	run, total int
	findings   map[sanitizer.FindingKind]int // number of kernels
}

// Every kernel of the six repositories compiles and runs with its draft, except for those of the list.
func TestSurvey(t *testing.T) {
	long.Only(t, "it compiles some 950 kernels")
	skip.Program(t, skip.GXX)
	skip.Program(t, skip.Clang)
	folder := Folder(t)
	fsys := os.DirFS(folder)
	for _, r := range Repositories {
		t.Run(r.Folder, func(t *testing.T) {
			s := &survey{findings: map[sanitizer.FindingKind]int{}}
			t.Cleanup(func() {
				t.Logf("%s: %d of %d kernels run; kernels with findings: %v", r.Name, s.run, s.total, s.findings)
				require.Equal(t, surveyed[r.Folder], struct{ run, total int }{s.run, s.total})
			})
			require.NoError(t, fs.WalkDir(fsys, r.Folder, func(name string, _ fs.DirEntry, err error) error {
				if err == nil && strings.HasSuffix(name, ".metal") {
					t.Run(path.Base(name), func(t *testing.T) {
						t.Parallel()
						s.file(t, fsys, r.Folder, name)
					})
				}
				return err
			}))
		})
	}
}

// file runs the drafts of a file.
func (s *survey) file(t *testing.T, fsys fs.FS, repository, name string) {
	lib, err := sanitizer.LoadNative(t.Context(), fsys, name, sanitizer.NativeOptions{Include: []string{repository}})
	if err != nil {
		require.True(t, expectedFailure(name), err)
		return
	}
	for _, draft := range lib.Drafts() {
		specs, err := launchspec.Parse([]byte(draft))
		require.NoError(t, err)
		report, err := runDraft(t, lib, specs[0])
		if err != nil && !expectedFailure(name) {
			t.Errorf("%s: %v", specs[0].Kernel, err)
		}
		s.add(report)
		if report != nil {
			for _, f := range report.Findings {
				t.Logf("%s: %v", specs[0].Kernel, f)
			}
		}
	}
}

// runDraft runs one launch in one order of threads.
func runDraft(t *testing.T, lib *sanitizer.Library, spec launchspec.Spec) (*sanitizer.Report, error) {
	kernel, err := lib.Kernel(spec.Kernel, spec.Options()...)
	if err != nil {
		return nil, err
	}
	launch, inputs, err := spec.Arguments(kernel, 1)
	if err != nil {
		return nil, err
	}
	return kernel.Sanitize(t.Context(), launch, sanitizer.Config{Schedules: 1, Timeout: 10 * time.Second}, inputs...)
}

// add counts a kernel. A kernel without a report did not run.
func (s *survey) add(report *sanitizer.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	if report == nil {
		return
	}
	s.run++
	seen := map[sanitizer.FindingKind]bool{}
	for _, f := range report.Findings {
		if !seen[f.Kind] {
			seen[f.Kind] = true
			s.findings[f.Kind]++
		}
	}
}
