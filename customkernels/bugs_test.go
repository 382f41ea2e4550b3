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

// The shaders in testdata/bugs prove the checker. Each file has a kernel with one bug,
// NAME_bug, and its corrected twin, NAME_fixed, with the same launch where the bug is not
// the launch itself. Those in testdata/bugs_not_found show its limits. Comments behind code
// say what is to be found, and all that may be:
//
//	// want: KIND  one of the sites of a finding of this kind; once in a file
//	// also: KIND  the other site
//	// path: KIND  a call on the way to the site
//	// allow: KIND another site that chance may choose instead

const bugSeed = 1

// bugMark is such a comment.
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

// bugKernel is one of the two kernels of a file, with its launch.
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

// bugFile is a file of the corpus.
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

// bugFolders are the bugs that are found, and those that are not yet.
var bugFolders = []string{"bugs", "bugs_not_found"}

// Every file is one that Apple's compiler could take, as far as the stand-in can tell: bugs
// are not syntax errors. The checker reports the same of the kernels that it runs.
func TestAddressSpacesOfBugs(t *testing.T) {
	for _, dir := range bugFolders {
		bugFiles(t, dir, func(t *testing.T, b bugFile) {
			if !mlxtest.InSample(b.index + 1) {
				return
			}
			for _, k := range []bugKernel{b.bug, b.fixed} {
				k.launch.Threadgroup = [3]int{} // the text does not depend on it, and one is too large on purpose
				text, err := k.MetalSource(k.launch, k.inputs...)
				require.NoError(t, err)
				findings, err := addrspace.Check(t.Context(), text)
				require.NoError(t, err)
				require.Empty(t, findings)
			}
		})
	}
}

// The corrected twins compute the values of fixedValues.
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

// bugConfig is how the checker looks at a file.
func (b bugFile) config() sanitizer.Config {
	c := sanitizer.Config{Schedules: 4, Seed: bugSeed, Timeout: 20 * time.Second}
	if b.want.kind == sanitizer.FindingTimeout {
		c.Timeout = time.Second
	}
	return c
}

// problemsOfBug runs the bug and tells what of the findings is not as announced.
func (b bugFile) problemsOfBug(t *testing.T) (problems []string, findings []sanitizer.Finding) {
	t.Helper()
	r, err := b.bug.Sanitize(t.Context(), b.bug.launch, b.config(), b.bug.inputs...)
	require.NoError(t, err)
	return bugProblems(r.Findings, b.name+".metal", b.marks), r.Findings
}

// requireCleanTwin runs the twin, or one in three of them.
func (b bugFile) requireCleanTwin(t *testing.T) {
	t.Helper()
	if !mlxtest.InSample(b.index) {
		return
	}
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

// The checker finds each bug for what it is, where it is, and nothing besides; and nothing at
// all in the corrected twins, whose values are right under every schedule.
func TestBugsAreFound(t *testing.T) {
	clang := hostCompilerIsClang(t)
	kinds, files := map[sanitizer.FindingKind]int{}, 0
	bugFiles(t, "bugs", func(t *testing.T, b bugFile) {
		if b.want.kind == sanitizer.FindingMisaligned && clang { // only g++ is made to look at alignment
			b.requireCleanTwin(t)
			return
		}
		kinds[b.want.kind]++
		files++
		if problems, findings := b.problemsOfBug(t); len(problems) > 0 {
			t.Errorf("%s\nfindings:\n%s", strings.Join(problems, "\n"), findingLines(findings))
		}
		b.requireCleanTwin(t)
	})
	if !t.Failed() {
		t.Logf("%d bugs found, by kind: %v", files, kinds)
	}
}

// Bugs that the checker does not find. They document the limits of a passing check.
func TestBugsThatAreNotFoundYet(t *testing.T) {
	clang := hostCompilerIsClang(t)
	bugFiles(t, "bugs_not_found", func(t *testing.T, b bugFile) {
		problems, _ := b.problemsOfBug(t)
		if !clang {
			require.NotEmpty(t, problems, "the checker finds this now: move the file to testdata/bugs")
		}
		b.requireCleanTwin(t)
	})
}

// bugProblems compares findings with the comments of the file.
func bugProblems(findings []sanitizer.Finding, file string, marks []bugMark) (problems []string) {
	fail := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	marked := func(kind sanitizer.FindingKind, line int, roles ...string) bool {
		return slices.ContainsFunc(marks, func(m bugMark) bool {
			return m.kind == kind && m.line == line && slices.Contains(roles, m.role)
		})
	}
	for _, f := range findings {
		known := marked(f.Kind, f.Site.Line, "want", "also", "allow") &&
			(f.Other.Line == 0 || marked(f.Kind, f.Other.Line, "want", "also", "allow"))
		if !known || f.Site.File != file {
			fail("not announced: %v", f)
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
				m.role != "path" && (at(f.Site) || at(f.Other)))
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
