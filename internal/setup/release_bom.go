package setup

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// licenseName matches the files of a Go module that must accompany its binaries.
var licenseName = regexp.MustCompile(`(?i)^(licen[cs]e|notice|copying|patents)(\.|-|$)`)

// notices returns the licenses of Go and of all modules in a program.
func (s *setup) notices(ctx context.Context, info *buildinfo.BuildInfo) ([]byte, error) {
	var text bytes.Buffer
	add := func(title, dir string) error {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !licenseName.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			found = true
			fmt.Fprintf(&text, "==== %s: %s\n\n%s\n\n", title, e.Name(), bytes.TrimSpace(data))
		}
		if !found {
			return failf("add its license to the notices by hand", "%s has no license file in %s", title, dir)
		}
		return nil
	}
	goroot, err := s.releaseTool(ctx, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	if err := add(info.GoVersion, strings.TrimSpace(string(goroot))); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		dir, err := s.releaseTool(ctx, nil, "go", "list", "-m", "-f", "{{.Dir}}", m.Path)
		if err != nil {
			return nil, err
		}
		if err := add(m.Path+" "+m.Version, strings.TrimSpace(string(dir))); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}

// materials writes the bill of materials of a command in the CycloneDX format: its Go modules and the packages that
// set-up installs.
func (s *setup) materials(ctx context.Context, t releaseTarget, version, program, file string) error {
	out, err := s.releaseTool(ctx, nil, "go", "tool", "-modfile=tools/go.mod", "cyclonedx-gomod", "bin", "-json",
		"-noserial", "-licenses", "-version", version, program)
	if err != nil {
		return err
	}
	var bom map[string]any
	if err := json.Unmarshal(out, &bom); err != nil {
		return fmt.Errorf("cyclonedx-gomod: %w", err)
	}
	components, _ := bom["components"].([]any)
	if metadata, ok := bom["metadata"].(map[string]any); ok {
		// These members would differ between two builds of the same sources.
		delete(metadata, "timestamp")
		tools, _ := metadata["tools"].([]any)
		for _, tool := range tools {
			if tool, ok := tool.(map[string]any); ok {
				delete(tool, "hashes")
			}
		}
	}
	added := map[string]bool{} // pairs share packages
	add := func(name, version, license, purl, sha string) {
		if added[purl] {
			return
		}
		added[purl] = true
		c := map[string]any{
			"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
			"licenses": []any{map[string]any{"license": map[string]any{"name": license}}},
		}
		if sha != "" {
			c["hashes"] = []any{map[string]any{"alg": "SHA-256", "content": sha}}
		}
		components = append(components, c)
	}
	for _, p := range s.lock.Pairs {
		add("mlx-c", p.MLXC.Version, p.MLXC.License, "pkg:github/ml-explore/mlx-c@"+p.MLXC.Git.Tag, "")
		for _, w := range p.MLX.Wheels {
			if w.OS == t.goos && w.Arch == t.goarch {
				add(w.Package, w.Version, w.License, "pkg:pypi/"+w.Package+"@"+w.Version, w.SHA256)
			}
		}
	}
	bom["components"] = components
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetIndent("", "  ")
	if err := e.Encode(bom); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}
