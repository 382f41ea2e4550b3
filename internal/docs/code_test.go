package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// output returns the block of text that follows block i, or "".
func (p page) output(i int) string {
	if i+1 < len(p.blocks) && p.blocks[i+1].language == "text" {
		return p.blocks[i+1].code
	}
	if i+2 < len(p.blocks) && p.blocks[i+1].language == "sh" && p.blocks[i+2].language == "text" {
		return p.blocks[i+2].code
	}
	return ""
}

// Go programs in the documents print the text that follows them.
func TestPrograms(t *testing.T) {
	skip.Program(t, skip.Go)
	ran := 0
	for _, p := range pages(t) {
		for i, b := range p.blocks {
			if b.language != "go" || !strings.HasPrefix(b.code, "package main") {
				continue
			}
			ran++
			require.Equal(t, p.output(i), runProgram(t, b.code), "%s: %s", p.path, b.code)
		}
	}
	require.Positive(t, ran)
}

// runProgram compiles a program as a package of this module, and returns its output.
func runProgram(t *testing.T, code string) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(source, []byte(code), 0o644))
	module, err := filepath.Abs(root)
	require.NoError(t, err)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(module, "internal/docs/program/main.go"): source,
	}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644))
	build := exec.Command("go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./internal/docs/program")
	build.Dir = module
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	// The folder of the program has the shaders of the documents.
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if name := shaderName(b); name != "" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(b.code), 0o644))
			}
		}
	}
	run := exec.Command(program)
	run.Dir = dir
	out, err = run.Output()
	require.NoError(t, err, "%s", out)
	return string(out)
}

// shaderName returns the file name of a complete shader, which is the name of its first kernel, or "".
func shaderName(b block) string {
	if b.language != "metal" || !strings.HasPrefix(b.code, "// launch: ") {
		return ""
	}
	return strings.Fields(b.code)[2] + ".metal"
}

// The checker passes complete shaders, or prints the text that follows them.
func TestShaders(t *testing.T) {
	skip.Program(t, skip.CXX)
	dir := t.TempDir()
	program := filepath.Join(dir, "metalsan")
	out, err := exec.Command("go", "build", "-o", program, root+"/cmd/metalsan").CombinedOutput()
	require.NoError(t, err, "%s", out)
	ran := 0
	for _, p := range pages(t) {
		for i, b := range p.blocks {
			name := shaderName(b)
			if name == "" {
				continue
			}
			ran++
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(b.code), 0o644))
			check := exec.Command(program, name)
			check.Dir = dir
			out, err := check.CombinedOutput()
			if want := p.output(i); strings.Contains(want, ": error: ") {
				require.Error(t, err)
				require.Contains(t, string(out), want, p.path)
			} else {
				require.NoError(t, err, "%s: %s", p.path, out)
			}
		}
	}
	require.Positive(t, ran)
}

// Other blocks of Go and Metal are excerpts of files of this repository. A line with "…" stands for omitted lines.
func TestExcerpts(t *testing.T) {
	sources := map[string][]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && slices.Contains([]string{".git", "src", "build", "install"}, d.Name()) {
			return fs.SkipDir
		}
		if kind := strings.TrimPrefix(filepath.Ext(path), "."); kind == "go" || kind == "metal" {
			text, err := os.ReadFile(filepath.Join(root, path))
			sources[kind] = append(sources[kind], trimmed(string(text)))
			return err
		}
		return nil
	})
	require.NoError(t, err)
	for _, p := range pages(t) {
		for _, b := range p.blocks {
			if sources[b.language] == nil || strings.HasPrefix(b.code, "package main") || shaderName(b) != "" {
				continue
			}
			for _, part := range parts(b.code) {
				found := slices.ContainsFunc(sources[b.language], func(s string) bool { return strings.Contains(s, part) })
				require.True(t, found, "%s: no file has these lines:\n%s", p.path, part)
			}
		}
	}
}

// Python in the documents compiles. TestPythonRuns needs Python's MLX.
func TestPython(t *testing.T) {
	python := skip.Program(t, skip.Python)
	dir := t.TempDir()
	var files []string
	for _, p := range pages(t) {
		for i, b := range p.blocks {
			if b.language == "python" {
				name := fmt.Sprintf("%s, block %d", strings.ReplaceAll(p.path, "/", "_"), i)
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(b.code), 0o644))
				files = append(files, name)
			}
		}
	}
	require.NotEmpty(t, files)
	compile := exec.Command(python, append([]string{"-m", "py_compile"}, files...)...)
	compile.Dir = dir
	out, err := compile.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// Python in the documents runs, and prints the text that follows it. TestSnippets of internal/faults runs the blocks of
// the page of faults, most of which fail by intention.
func TestPythonRuns(t *testing.T) {
	long.Only(t, "installs MLX with pip")
	skip.Program(t, skip.Go)
	if mlxc.CurrentBackend() == mlxc.BackendCUDA {
		skip.Platform(t, "Python's MLX is one for CPUs, which cannot import a step for an NVIDIA GPU")
	}
	python, dir := mlxtest.Python(t, mlxc.Version()), t.TempDir()
	// examples/export/README.md reads the folder step. The default target is a Mac.
	export := exec.Command("go", "run", "./examples/export", "-dir", filepath.Join(dir, "step"), "-target", "here", "-gradients", "mlx")
	export.Dir = root
	out, err := export.CombinedOutput()
	require.NoError(t, err, "%s", out)
	ran := 0
	for _, p := range pages(t) {
		for i, b := range p.blocks {
			if b.language != "python" || p.path == "docs/mlx-faults.md" {
				continue
			}
			ran++
			var failure bytes.Buffer
			run := exec.CommandContext(t.Context(), python, "-c", b.code)
			run.Dir, run.Stderr = dir, &failure
			out, err := run.Output()
			require.NoError(t, err, "%s: %s\n%s", p.path, b.code, &failure)
			if i+1 < len(p.blocks) && p.blocks[i+1].language == "text" {
				require.Equal(t, p.blocks[i+1].code, string(out), "%s: %s", p.path, b.code)
			}
		}
	}
	require.Positive(t, ran)
}

// parts returns the lines between omissions, without indentation.
func parts(code string) []string {
	var out []string
	part := "\n"
	for line := range strings.Lines(code + "…\n") {
		if !strings.Contains(line, "…") {
			part += strings.TrimSpace(line) + "\n"
			continue
		}
		if strings.TrimSpace(part) != "" {
			out = append(out, part)
		}
		part = "\n"
	}
	return out
}

// trimmed returns the text without the indentation of its lines.
func trimmed(text string) string {
	var out strings.Builder
	for line := range strings.Lines("\n" + text) {
		fmt.Fprintln(&out, strings.TrimSpace(line))
	}
	return out.String()
}
