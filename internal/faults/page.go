package faults

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed snippets
var snippets embed.FS

// Snippet returns the lines of Python that show the fault.
func (f Fault) Snippet() (string, error) {
	text, err := snippets.ReadFile("snippets/" + f.Name + ".py")
	return string(text), err
}

const introduction = `# Faults of MLX

This project guards against the faults of MLX below. Each section has a Python snippet. Where MLX has the fault, the snippet
fails, crashes or does not end; otherwise it ends silently. All faults were observed on the CPU backend (Linux x86-64, MLX's
wheels of the named versions); other backends were not tried.

    python3 -m venv /tmp/mlx && /tmp/mlx/bin/pip install 'mlx[cpu]'
    /tmp/mlx/bin/python internal/faults/snippets/try.py

prints the state of each fault with any version of MLX. The nightly tests compare it with this page for the versions below:
` + "`go test ./internal/faults -long -run TestSnippets`" + `.
` + "`go test -tags=mlxheaders ./internal/faults`" + ` calls the installed MLX without our guards. It fails if this page is wrong
about a fault. ` + "`go generate ./internal/faults`" + ` writes the page.

Faults that only NVIDIA or Apple GPUs show are not listed. Comments in the code describe the known ones: MLX's CUDA kernels and
arrays without elements (` + "`mlxc/libmlxg/mlxg_eval.cpp`, `compare/peer.go`" + `), the row-major copy of one element
(` + "`mlxc/ops_shape.go`" + `), and the gradient of layer norm for some widths (` + "`compare/suite/layernorm.go`" + `).
`

// Page returns the text of docs/mlx-faults.md.
func Page() (string, error) {
	var b strings.Builder
	b.WriteString(introduction)
	oldest, newest := Checked[0], Checked[len(Checked)-1]
	fmt.Fprintf(&b, "\n## Overview\n\n| fault | MLX %s | MLX %s |\n|---|---|---|\n", oldest, newest)
	for _, f := range All() {
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", f.Name, f.Name, f.stateIn(oldest), f.stateIn(newest))
	}
	for _, a := range Areas() {
		fmt.Fprintf(&b, "\n## %s\n", a.Title)
		for _, f := range a.Faults {
			if err := f.section(&b); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

// section writes the section of a fault.
func (f Fault) section(b *strings.Builder) error {
	code, err := f.Snippet()
	if err != nil {
		return err
	}
	fmt.Fprintf(b, "\n### %s\n\n**%s**\n\n```python\n%s```\n\n", f.Name, f.Title, code)
	fmt.Fprintf(b, "- MLX: %s\n- Right: %s\n- Versions: %s\n", f.Wrong, f.Right, f.versions())
	if f.Chance {
		b.WriteString("- It happens in some processes only.\n")
	}
	var guards []string
	for _, g := range f.Guards {
		guards = append(guards, fmt.Sprintf("`%s` in [%s](https://github.com/mlxgrad/mlxgrad/blob/main/%s)", g.Func, g.File, g.File))
	}
	fmt.Fprintf(b, "- Our guard: %s\n", strings.Join(guards, ", "))
	if f.Cost != "" {
		fmt.Fprintf(b, "- Its cost: %s\n", f.Cost)
	}
	return nil
}

func (f Fault) stateIn(version string) string {
	switch {
	case !f.In(version):
		return "gone"
	case f.Crash:
		return "crash"
	}
	return "present"
}

func (f Fault) versions() string {
	var list []string
	for _, v := range Checked {
		list = append(list, v+": "+f.stateIn(v))
	}
	return strings.Join(list, "; ")
}
