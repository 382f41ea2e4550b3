package customkernels

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The shaders in testdata/bugs test the checker. Each file has a kernel with one bug, NAME_bug, and its corrected twin,
// NAME_fixed. Both have the same launch, unless the bug is the launch. The checker does not find the bugs in
// testdata/bugs_not_found, which show its limits. Trailing comments mark the expected findings. All other findings are
// errors:
//
//	// want: KIND  a site of a finding of this kind; once in a file
//	// also: KIND  the other site of the finding
//	// path: KIND  a caller in the path of the finding
//	// allow: KIND another possible site, depending on the schedule

const bugSeed = 1

// A bugMark is one of these comments.
type bugMark struct {
	role string
	kind sanitizer.FindingKind
	line int
}

var bugMarkSyntax = regexp.MustCompile(`// (want|also|path|allow): ([a-z-]+)$`)

func bugMarks(src []byte) []bugMark {
	var marks []bugMark
	for i, line := range strings.Split(string(src), "\n") {
		if m := bugMarkSyntax.FindStringSubmatch(line); m != nil {
			marks = append(marks, bugMark{m[1], sanitizer.FindingKind(m[2]), i + 1})
		}
	}
	return marks
}

// A bugKernel is one of the two kernels of a file, with its launch.
type bugKernel struct {
	*Kernel
	launch Launch
	inputs arrays
	spec   launchspec.Spec
}

// bugFiles runs f for every file of a folder.
func bugFiles(t *testing.T, dir string, f func(t *testing.T, b bugFile)) {
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*.metal"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".metal"), func(t *testing.T) {
			b := loadBug(t, file)
			b.index = i
			f(t, b)
		})
	}
}

// A bugFile is a file of testdata/bugs or testdata/bugs_not_found.
type bugFile struct {
	name       string
	index      int // among the files of the folder
	bug, fixed bugKernel
	marks      []bugMark
	want       bugMark
}

func loadBug(t *testing.T, file string) bugFile {
	t.Helper()
	b := bugFile{name: strings.TrimSuffix(filepath.Base(file), ".metal")}
	src, err := os.ReadFile(file)
	require.NoError(t, err)
	lib, err := Load(os.DirFS(filepath.Dir(file)), filepath.Base(file))
	require.NoError(t, err)
	require.Equal(t, []string{b.name + "_bug", b.name + "_fixed"}, lib.Names())
	specs, err := launchspec.Parse(src)
	require.NoError(t, err)
	require.Len(t, specs, 2)
	for i, k := range []*bugKernel{&b.bug, &b.fixed} {
		k.spec = specs[i]
		require.Equal(t, lib.Names()[i], k.spec.Kernel)
		k.Kernel, err = lib.Kernel(k.spec.Kernel)
		require.NoError(t, err)
		k.launch, k.inputs, err = k.Kernel.Arguments(k.spec, bugSeed)
		require.NoError(t, err)
	}
	b.marks = bugMarks(src)
	wants := slices.DeleteFunc(slices.Clone(b.marks), func(m bugMark) bool { return m.role != "want" })
	require.Len(t, wants, 1, "one bug, so one want: comment")
	b.want = wants[0]
	require.Contains(t, fixedValues, b.name)
	return b
}

// bugFolders holds the folders of bugs that the checker finds, and of bugs that it misses.
var bugFolders = []string{"bugs", "bugs_not_found"}

// The address-space check, which stands in for Apple's compiler, accepts every kernel: the bugs are not compile errors.
func TestAddressSpacesOfBugs(t *testing.T) {
	for _, dir := range bugFolders {
		bugFiles(t, dir, func(t *testing.T, b bugFile) {
			if !mlxtest.InSample(b.index + 1) {
				return
			}
			for _, k := range []bugKernel{b.bug, b.fixed} {
				k.launch.Threadgroup = [3]int{} // the text does not depend on it, and one is intentionally too large
				text, err := k.MetalSource(k.launch, k.inputs...)
				require.NoError(t, err)
				findings, err := addrspace.Check(t.Context(), text)
				require.NoError(t, err)
				require.Empty(t, findings)
			}
		})
	}
}

// The corrected twins compute the values of fixedValues on the executor of the current device.
func TestValuesOfFixedBugs(t *testing.T) {
	for _, dir := range bugFolders {
		bugFiles(t, dir, func(t *testing.T, b bugFile) {
			if !mlxtest.InSample(b.index + 2) {
				return
			}
			requireFixedValues(t, b, b.fixed.Launch(b.fixed.launch, b.fixed.inputs...))
		})
	}
}

func requireFixedValues(t *testing.T, b bugFile, got arrays) {
	t.Helper()
	in := map[string][]float64{}
	for i, buffer := range b.fixed.source.Inputs {
		in[buffer.Name] = mlxtest.Values(t, b.fixed.inputs[i])
	}
	for i, want := range fixedValues[b.name](in) {
		if want == nil {
			continue
		}
		name := b.fixed.spec.OutputNames[i]
		j := slices.IndexFunc(b.fixed.source.Outputs, func(o *msl.Buffer) bool { return o.Name == name })
		mlxtest.RequireNear(t, want, got[j], mlxtest.Rounded(mlxc.Float32, 128, 16))
	}
}

// config returns the checker's configuration for a file.
func (b bugFile) config() sanitizer.Config {
	c := sanitizer.Config{Schedules: 4, Seed: bugSeed, Timeout: 20 * time.Second}
	if b.want.kind == sanitizer.FindingTimeout {
		c.Timeout = time.Second
	}
	return c
}

// problemsOfBug runs the kernel with the bug, and returns the differences between the findings and the marks.
func (b bugFile) problemsOfBug(t *testing.T) (problems []string, findings []sanitizer.Finding) {
	t.Helper()
	r, err := b.bug.Sanitize(t.Context(), b.bug.launch, b.config(), b.bug.inputs...)
	require.NoError(t, err)
	return bugProblems(r.Findings, b.name+".metal", b.marks), r.Findings
}

// requireCleanTwin requires that the checker finds nothing in the corrected twin.
func (b bugFile) requireCleanTwin(t *testing.T) {
	t.Helper()
	r, err := b.fixed.Sanitize(t.Context(), b.fixed.launch, b.config(), b.fixed.inputs...)
	require.NoError(t, err)
	require.Empty(t, r.Findings, "the twin is correct\n%s", findingLines(r.Findings))
	require.True(t, r.SameBits, r.Difference)
	require.Equal(t, b.config().Schedules, r.Schedules)
	requireFixedValues(t, b, r.Outputs)
}

func hostCompilerIsClang(t *testing.T) bool {
	t.Helper()
	compiler, err := HostCompiler()
	require.NoError(t, err)
	return strings.Contains(compiler, "clang")
}

// The checker finds each bug with the right kind and sites, and nothing else. It finds nothing in the corrected twins,
// whose results are right. A sample has the first bug of each kind, one in twelve of the others, and one in twelve of
// their twins.
func TestBugsAreFound(t *testing.T) {
	clang := hostCompilerIsClang(t)
	kinds, files := map[sanitizer.FindingKind]int{}, 0
	bugFiles(t, "bugs", func(t *testing.T, b bugFile) {
		if b.want.kind == sanitizer.FindingMisaligned && clang { // alignment is checked only with g++
			b.requireCleanTwin(t)
			return
		}
		if kinds[b.want.kind] > 0 && !mlxtest.InSample(b.index) {
			return
		}
		kinds[b.want.kind]++
		files++
		if problems, findings := b.problemsOfBug(t); len(problems) > 0 {
			t.Errorf("%s\nfindings:\n%s", strings.Join(problems, "\n"), findingLines(findings))
		}
		if mlxtest.InSample(files) {
			b.requireCleanTwin(t)
		}
	})
	if !t.Failed() {
		t.Logf("%d bugs found, by kind: %v", files, kinds)
	}
}

// With g++ 12, the checker does not find the bugs in testdata/bugs_not_found. If it finds one, the test fails, so that
// the file moves to testdata/bugs. Another compiler may give an uninitialized variable another value, with which the checker
// finds the bug.
func TestMissedBugs(t *testing.T) {
	compiler, err := HostCompiler()
	require.NoError(t, err)
	missed := strings.Contains(compiler, "g++") && strings.Contains(compiler, ") 12.")
	bugFiles(t, "bugs_not_found", func(t *testing.T, b bugFile) {
		problems, _ := b.problemsOfBug(t)
		if missed {
			require.NotEmpty(t, problems, "the checker finds this now: move the file to testdata/bugs")
		}
		b.requireCleanTwin(t)
	})
}

// bugProblems returns the differences between the findings and the marks of a file.
func bugProblems(findings []sanitizer.Finding, file string, marks []bugMark) (problems []string) {
	fail := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	marked := func(kind sanitizer.FindingKind, line int, roles ...string) bool {
		return slices.ContainsFunc(marks, func(m bugMark) bool {
			return m.kind == kind && m.line == line && slices.Contains(roles, m.role)
		})
	}
	if len(findings) > 1 {
		fail("%d findings for one cause", len(findings))
	}
	for _, f := range findings {
		known := marked(f.Kind, f.Site.Line, "want", "also", "allow") &&
			(f.Other.Line == 0 || marked(f.Kind, f.Other.Line, "want", "also", "allow"))
		if !known || f.Site.File != file {
			fail("no mark for the finding: %v", f)
		}
		if f.Message == "" || f.Schedule == "" && f.Kind != sanitizer.FindingLimit {
			fail("no message or no schedule: %+v", f)
		}
	}
	for _, m := range marks {
		at := func(s sanitizer.Site) bool {
			return s.Line == m.line || m.role == "want" && marked(m.kind, s.Line, "allow")
		}
		found := slices.ContainsFunc(findings, func(f sanitizer.Finding) bool {
			return f.Kind == m.kind && (m.role == "path" && slices.ContainsFunc(f.Path, at) ||
				m.role != "path" && (at(f.Site) || at(f.Other) || slices.ContainsFunc(f.More, at)))
		})
		if !found && m.role != "allow" {
			fail("not found: %s at line %d", m.kind, m.line)
		}
	}
	return problems
}

func findingLines(findings []sanitizer.Finding) string {
	var b strings.Builder
	for _, f := range findings {
		fmt.Fprintf(&b, "%v (%s)\n", f, f.Schedule)
		for _, s := range f.Path {
			fmt.Fprintf(&b, "\tcalled at %v in %s\n", s, s.Function)
		}
	}
	return b.String()
}
