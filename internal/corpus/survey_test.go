package corpus

import (
	"fmt"
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

// A survey counts the kernels of a repository and collects their findings.
type survey struct {
	mu         sync.Mutex
	run, total int
	found      map[string]string // findings by file and kernel
}

// Every kernel of the six repositories compiles and runs with its draft, except for those of the list. Every finding is
// one that testdata/findings.txt judges.
func TestSurvey(t *testing.T) {
	long.Only(t, "it compiles some 950 kernels")
	skip.Program(t, skip.GXX)
	skip.Program(t, skip.Clang)
	folder := Folder(t)
	fsys := os.DirFS(folder)
	judged := judgments(t)
	for _, r := range Repositories {
		t.Run(r.Folder, func(t *testing.T) {
			s := &survey{found: map[string]string{}}
			t.Cleanup(func() {
				t.Logf("%s: %d of %d kernels run; %d have findings", r.Name, s.run, s.total, len(s.found))
				require.Equal(t, surveyed[r.Folder], struct{ run, total int }{s.run, s.total})
				s.compare(t, r.Folder, judged)
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
		s.add(name+" "+specs[0].Kernel, report)
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
func (s *survey) add(key string, report *sanitizer.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	if report == nil {
		return
	}
	s.run++
	var found []string
	for _, f := range report.Findings {
		if f.Kind == sanitizer.FindingTimeout {
			f.Site.Line = 0 // depends on the machine
		}
		found = append(found, fmt.Sprintf("%s@%s:%d", f.Kind, path.Base(f.Site.File), f.Site.Line))
	}
	if found != nil {
		slices.Sort(found)
		s.found[key] = strings.Join(slices.Compact(found), ",")
	}
}

// compare compares the findings in a repository with the judged ones.
func (s *survey) compare(t *testing.T, repository string, judged map[string]judgment) {
	for key, found := range s.found {
		if judged[key].findings != found {
			t.Errorf("judge these findings and correct testdata/findings.txt:\n%s %s", key, found)
		}
	}
	for key := range judged {
		if strings.HasPrefix(key, repository+"/") && s.found[key] == "" {
			t.Errorf("testdata/findings.txt has findings of %s, which has none", key)
		}
	}
}

// A judgment says whether the findings in a kernel are true.
type judgment struct {
	findings string
	verdicts []string // of each finding
}

// judgments reads testdata/findings.txt, whose beginning describes its lines.
func judgments(t *testing.T) map[string]judgment {
	text, err := os.ReadFile("testdata/findings.txt")
	require.NoError(t, err)
	judged, verdicts := map[string]judgment{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || words[0] == "#":
		case words[0] == "reason":
			verdicts[words[1]] = words[2]
		default:
			require.Len(t, words, 4, line)
			j := judgment{findings: words[2]}
			for reason := range strings.SplitSeq(words[3], ",") {
				require.Contains(t, verdicts, reason, line)
				j.verdicts = append(j.verdicts, verdicts[reason])
			}
			judged[words[0]+" "+words[1]] = j
		}
	}
	require.NotEmpty(t, judged)
	return judged
}

// No error is false, and at most 2 % of the kernels have a false finding.
func TestJudgments(t *testing.T) {
	kernels, withFalse, findings := 0, 0, map[string]int{}
	for key, j := range judgments(t) {
		list := strings.Split(j.findings, ",")
		require.Len(t, j.verdicts, len(list), key)
		for i, finding := range list {
			name, _, _ := strings.Cut(finding, "@")
			kind := sanitizer.FindingKind(name)
			require.Contains(t, sanitizer.FindingKinds(), kind)
			findings[j.verdicts[i]]++
			switch j.verdicts[i] {
			case "bug", "launch":
			case "hint", "false":
				require.Equal(t, sanitizer.SeverityPortability, kind.Severity(), key)
			default:
				t.Fatalf("%s: unknown verdict %s", key, j.verdicts[i])
			}
		}
		if slices.Contains(j.verdicts, "false") {
			withFalse++
		}
	}
	for _, s := range surveyed {
		kernels += s.run
	}
	t.Logf("%d kernels run, %d have findings: %v", kernels, len(judgments(t)), findings)
	require.LessOrEqual(t, 50*withFalse, kernels)
}
