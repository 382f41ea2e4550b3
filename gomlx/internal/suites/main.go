// Suites runs the test suites of GoMLX, unchanged, with GoMLX's backend in Go and with the backend of this module. It
// prints the numbers of passed tests as a Markdown table, and then each test that passes only with the backend in Go.
//
//	go run ./internal/suites [-run REGEXP] [PACKAGE...]
//
// A package is named by its path in GoMLX, such as pkg/core/graph. Without packages it runs all of pkg/core/graph/...
// and pkg/ml/.... It returns an error if a test fails that failures.txt does not list, or if fewer than 90 % of the
// tests pass that pass with the backend in Go.
package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const module = "github.com/gomlx/gomlx/"

// failures has a line for each test that fails: its name, a tab, and the reason.
//
//go:embed failures.txt
var failures string

func main() {
	run := flag.String("run", ".", "run only the top-level tests that match the regular expression")
	flag.Parse()
	if err := suites(*run, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

// goBackend selects GoMLX's backend in Go. With few CPUs, its parallel operations wait for each other forever.
const goBackend = "go:ops_sequential"

// A runner holds the folders of a run.
type runner struct {
	dir     string // temporary
	home    string // the home of the tests
	modfile string
}

func suites(run string, packages []string) error {
	filter, err := regexp.Compile(run)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		packages = []string{"pkg/core/graph/...", "pkg/ml/..."}
	}
	// The folder always has the same path, so that Go's build cache knows the copy of GoMLX.
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("mlxgrad-gomlx-suites-%d", os.Getuid()))
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	r := runner{dir: dir, home: filepath.Join(dir, "home"), modfile: filepath.Join(dir, "go.mod")}
	if err := r.prepare(); err != nil {
		return err
	}
	list, err := r.list(packages)
	if err != nil {
		return err
	}
	reasons := make(map[string]string)
	for line := range strings.Lines(failures) {
		if name, reason, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			reasons[name] = reason
		}
	}
	fmt.Println("| package | pass with Go's backend | of these, with MLX | only with MLX | with neither | skipped |")
	fmt.Println("|---|---:|---:|---:|---:|---:|")
	var total report
	for _, p := range list {
		reference, mlx, err := r.compare(p, filter)
		if err != nil {
			return err
		}
		row := newReport(reference, mlx)
		row.print(strings.TrimPrefix(p.ImportPath, module))
		total.add(row)
	}
	total.print("all")
	return total.check(reasons)
}

// prepare copies the module file, so that the dependencies of GoMLX's tests stay out of this module. It also stands in
// for the plugin of XLA, which GoMLX's tests download even if another backend is selected.
func (r runner) prepare() error {
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(r.dir, name), data, 0o600)
		}
		if err != nil {
			return err
		}
	}
	// Go refuses an overlay of its module cache, so the suites run in a copy.
	source, err := r.source("github.com/gomlx/gomlx")
	if err != nil {
		return err
	}
	gomlx := filepath.Join(r.dir, "gomlx")
	if err := os.CopyFS(gomlx, os.DirFS(source)); err != nil {
		return err
	}
	if _, err := command("go", "mod", "edit", "-replace=github.com/gomlx/gomlx="+gomlx, r.modfile); err != nil {
		return err
	}
	if source, err = r.source("github.com/gomlx/go-xla"); err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(source, "internal/utils/utils.go"))
	if err != nil {
		return err
	}
	version := regexp.MustCompile(`DefaultCPUVersion = "(.*)"`).FindSubmatch(data)
	if version == nil {
		return fmt.Errorf("go-xla does not name the version of its plugin")
	}
	plugins := filepath.Join(r.home, ".local/lib/go-xla")
	if err := os.MkdirAll(plugins, 0o700); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(plugins, fmt.Sprintf("pjrt_c_api_cpu_%s_plugin.so", version[1])), nil, 0o600)
}

// source downloads a module, if the module cache lacks it, and returns its folder.
func (r runner) source(module string) (string, error) {
	out, err := command("go", "mod", "download", "-modfile", r.modfile, "-json", module)
	if err != nil {
		return "", err
	}
	var m struct{ Dir string }
	err = json.Unmarshal([]byte(out), &m)
	return m.Dir, err
}

type pkg struct {
	ImportPath, Dir, Name     string
	TestGoFiles, XTestGoFiles []string
}

// list returns the packages that have tests.
func (r runner) list(patterns []string) ([]pkg, error) {
	args := []string{"list", "-modfile", r.modfile, "-mod=mod", "-json=ImportPath,Dir,Name,TestGoFiles,XTestGoFiles"}
	for _, p := range patterns {
		args = append(args, module+p)
	}
	out, err := command("go", args...)
	if err != nil {
		return nil, err
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
		var p pkg
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		if len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 {
			all = append(all, p)
		}
	}
	return all, nil
}

// compare runs the tests of a package with the backend in Go and with MLX.
func (r runner) compare(p pkg, filter *regexp.Regexp) (reference, mlx results, err error) {
	binary, err := r.build(p)
	if err != nil {
		return nil, nil, err
	}
	out, err := r.test(p, binary, goBackend, "-test.list", ".")
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w: %s", p.ImportPath, err, out)
	}
	var names []string
	for _, name := range strings.Fields(out) {
		if strings.HasPrefix(name, "Test") && filter.MatchString(name) {
			names = append(names, name)
		}
	}
	return r.run(p, binary, goBackend, slices.Clone(names)), r.run(p, binary, "mlx", names), nil
}

// imports is the file that is added to the tests of a package.
const imports = `package %s_test

import (
	_ "github.com/gomlx/gomlx/backends/simplego"
	_ "github.com/mlxgrad/mlxgrad/gomlx"
)
`

// build compiles the tests of a package, with a file that imports the backend.
func (r runner) build(p pkg) (binary string, err error) {
	text := fmt.Sprintf(imports, p.Name)
	if err := os.WriteFile(filepath.Join(p.Dir, "mlxgrad_import_test.go"), []byte(text), 0o600); err != nil {
		return "", err
	}
	binary = filepath.Join(r.dir, "test")
	_, err = command("go", "test", "-c", "-modfile", r.modfile, "-mod=mod", "-vet=off",
		"-ldflags=-w", "-o", binary, p.ImportPath)
	return binary, err
}

// results maps the names of tests to the words of package testing. A name has no part for the backend.
type results map[string]string

const (
	passed  = "--- PASS:"
	failed  = "--- FAIL:"
	skipped = "--- SKIP:"
)

var line = regexp.MustCompile(`(?m)^\s*(--- PASS:|--- FAIL:|--- SKIP:|=== RUN)\s+(\S+)`)

// run runs the tests. If one ends the process, run records a failure and continues with the next test.
func (r runner) run(p pkg, binary, backend string, names []string) results {
	all := make(results)
	for len(names) > 0 {
		out, err := r.test(p, binary, backend, "-test.v", "-test.timeout=5m",
			"-test.run", "^("+strings.Join(names, "|")+")$")
		var running []string
		for _, m := range line.FindAllStringSubmatch(out, -1) {
			if name := withoutBackend(m[2], backend); m[1] == "=== RUN" {
				running = append(running, name)
			} else {
				all[name] = m[1]
			}
		}
		running = slices.DeleteFunc(running, func(name string) bool { return all[name] != "" })
		for _, name := range running {
			all[name] = failed
		}
		before := len(names)
		names = slices.DeleteFunc(names, func(name string) bool { return all[name] != "" })
		if err == nil || len(names) == before {
			break
		}
	}
	return all
}

// test runs the tests of a package.
func (r runner) test(p pkg, binary, backend string, args ...string) (output string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	c := exec.Command(binary, args...)
	c.Dir = p.Dir
	// The kernels of package ops are compiled once for all homes.
	c.Env = append(os.Environ(), "HOME="+r.home, "XDG_CACHE_HOME="+cache, "GOMLX_BACKEND="+backend)
	out, err := c.CombinedOutput()
	return string(out), err
}

// withoutBackend replaces the part of a test's name that is the backend's name.
func withoutBackend(name, backend string) string {
	parts := strings.Split(name, "/")
	for i := range parts {
		if i > 0 && parts[i] == backend {
			parts[i] = "BACKEND"
		}
	}
	return strings.Join(parts, "/")
}

// A report counts tests, with their subtests.
type report struct {
	reference, both, onlyMLX, neither, skipped int
	broken                                     []string // tests that pass only with the backend in Go
}

func newReport(reference, mlx results) (r report) {
	all := maps.Clone(reference)
	maps.Copy(all, mlx)
	for _, test := range slices.Sorted(maps.Keys(all)) {
		switch inGo, inMLX := reference[test] == passed, mlx[test] == passed; {
		case inGo && inMLX:
			r.reference++
			r.both++
		case inGo:
			r.reference++
			r.broken = append(r.broken, test)
		case inMLX:
			r.onlyMLX++
		case mlx[test] == skipped:
			r.skipped++
		default:
			r.neither++
		}
	}
	return r
}

func (r *report) add(o report) {
	r.reference += o.reference
	r.both += o.both
	r.onlyMLX += o.onlyMLX
	r.neither += o.neither
	r.skipped += o.skipped
	r.broken = append(r.broken, o.broken...)
}

func (r report) print(name string) {
	fmt.Printf("| %s | %d | %d | %d | %d | %d |\n", name, r.reference, r.both, r.onlyMLX, r.neither, r.skipped)
}

// check prints the broken tests with their reasons. It returns an error if one has none, or if there are too many.
func (r report) check(reasons map[string]string) error {
	var unknown []string
	if len(r.broken) > 0 {
		fmt.Print("\n| fails only with MLX | reason |\n|---|---|\n")
	}
	for _, test := range r.broken {
		fmt.Printf("| %s | %s |\n", test, reasons[test])
		if reasons[test] == "" {
			unknown = append(unknown, test)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%d tests fail that failures.txt does not list: %s", len(unknown), strings.Join(unknown, ", "))
	}
	if r.both*10 < r.reference*9 {
		return fmt.Errorf("%d of %d tests pass; at least 90 %% must", r.both, r.reference)
	}
	return nil
}

// command runs a program and returns its output. The error has the program's messages.
func command(name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	var out, messages bytes.Buffer
	c.Stdout, c.Stderr = &out, &messages
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", strings.Join(c.Args, " "), err, messages.String())
	}
	return out.String(), nil
}
