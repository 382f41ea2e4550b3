package setup

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
)

// A rule replaces a text in the mlx-c sources. Count is the required number of occurrences: if upstream's text changes,
// the set-up fails instead of compiling incompletely patched sources.
type rule struct {
	Name    string `json:"name"`
	Files   string `json:"files"` // a file, or a folder of .h and .cpp files
	Find    string `json:"find"`
	Replace string `json:"replace"`
	Count   int    `json:"count"`

	source string // the file with the rule
}

func readRules(sources fs.FS, file string) ([]rule, error) {
	data, err := fs.ReadFile(sources, file)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var rules []rule
	if err := dec.Decode(&rules); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	for i := range rules {
		r := &rules[i]
		r.source = file
		if r.Name == "" || r.Files == "" || r.Find == "" || r.Count <= 0 {
			return nil, fmt.Errorf("%s: rule %q lacks a field", filepath.Base(file), r.Name)
		}
	}
	return rules, nil
}

// A sourceTree holds the text of the mlx-c sources by slash-separated path.
type sourceTree map[string][]byte

// readTree reads the part of an mlx-c tree that is compiled: mlx/c.
func readTree(dir string) (sourceTree, error) {
	tree := sourceTree{}
	err := filepath.WalkDir(filepath.Join(dir, "mlx", "c"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if ext := filepath.Ext(p); ext != ".h" && ext != ".cpp" {
			return nil
		}
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		tree[filepath.ToSlash(rel)] = data
		return nil
	})
	if err != nil {
		return nil, err
	}
	return tree, nil
}

// apply carries out a rule on the tree. It returns an error if the number of occurrences differs from Count.
func (t sourceTree) apply(r rule) error {
	found := 0
	for name, data := range t {
		if name != r.Files && !strings.HasPrefix(name, r.Files+"/") {
			continue
		}
		n := bytes.Count(data, []byte(r.Find))
		if n > 0 {
			found += n
			t[name] = bytes.ReplaceAll(data, []byte(r.Find), []byte(r.Replace))
		}
	}
	if found != r.Count {
		return failf("use the mlx-c version of the lock file, or bring "+r.source+" up to date",
			"patch %q fits %d places of the mlx-c sources where %d are expected", r.Name, found, r.Count)
	}
	return nil
}

// patchedTree reads the mlx-c sources, applies the rules and adds the files of patches.
func (s *setup) patchedTree(source string) (sourceTree, error) {
	tree, unfit, err := s.patch(source)
	if err == nil && len(unfit) > 0 {
		err = unfit[0]
	}
	return tree, err
}

// patch is like patchedTree, but returns the errors of rules that do not fit separately and applies the others.
func (s *setup) patch(source string) (tree sourceTree, unfit []error, err error) {
	if tree, err = readTree(source); err != nil {
		return nil, nil, err
	}
	for _, name := range s.pair.Rules {
		rules, err := readRules(s.sources, patches+"/"+name)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range rules {
			if err := tree.apply(r); err != nil {
				unfit = append(unfit, err)
			}
		}
	}
	for from, to := range map[string]string{
		"mlxgrad_format.h":    "mlx/c/private/mlxgrad_format.h",
		"mlxgrad_version.cpp": "mlx/c/mlxgrad_version.cpp",
	} {
		data, err := fs.ReadFile(s.sources, patches+"/"+from)
		if err != nil {
			return nil, nil, err
		}
		tree[to] = data
	}
	return tree, unfit, nil
}

// write puts the tree into a folder that does not exist yet.
func (t sourceTree) write(dir string) error {
	for _, name := range t.names("") {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(p, t[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// names lists the files with an extension (all, if it is empty) in order.
func (t sourceTree) names(ext string) []string {
	var out []string
	for name := range t {
		if ext == "" || path.Ext(name) == ext {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// closure returns a source file and all files of the tree that it includes, sorted. It leaves out headers outside the
// tree: an object's key has a hash of MLX's headers, and the compiler's version for the system's.
func (t sourceTree) closure(name string) []string {
	seen := map[string]bool{}
	var visit func(string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		for line := range bytes.Lines(t[name]) {
			rest, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("#include \""))
			if !ok {
				continue
			}
			inc, _, _ := strings.Cut(string(rest), "\"")
			for _, candidate := range []string{path.Join(path.Dir(name), inc), path.Clean(inc)} {
				if _, ok := t[candidate]; ok {
					visit(candidate)
					break
				}
			}
		}
	}
	visit(name)
	out := make([]string, 0, len(seen))
	for n := range seen {
		out = append(out, n)
	}
	sort.Strings(out)
	return out
}
