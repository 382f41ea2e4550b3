package setup

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A manifest describes an installation and its sources. It is written last; a folder without one is not an
// installation.
type manifest struct {
	Fingerprint string `json:"fingerprint"`
	Choice      choice `json:"choice"`
	Backend     string `json:"backend"`
	Platform    string `json:"platform"`
	MLX         string `json:"mlx"`
	MLXC        string `json:"mlx_c"`
	Tested      bool   `json:"tested_pair"`
	Compiler    string `json:"compiler"`
	CXX         string `json:"cxx"`
	// Sources maps each downloaded or local source to its SHA-256, commit or path.
	Sources map[string]string `json:"sources"`
	// Files maps the shared libraries, relative to the folder, to size and SHA-256.
	Files map[string]installedFile `json:"files"`
}

type installedFile struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func readManifest(install string) (*manifest, error) {
	data, err := os.ReadFile(filepath.Join(install, "manifest.json"))
	if err != nil {
		return nil, err
	}
	var m manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	return &m, nil
}

// complete reports whether all listed libraries exist with the listed sizes. It does not read them, since it runs
// before every verb.
func (m *manifest) complete(install string) bool {
	for name, f := range m.Files {
		st, err := os.Stat(filepath.Join(install, filepath.FromSlash(name)))
		if err != nil || st.Size() != f.Size {
			return false
		}
	}
	for _, name := range []string{"include/mlx/c/mlx.h", "mlx/include/mlx/mlx.h"} {
		if _, err := os.Stat(filepath.Join(install, filepath.FromSlash(name))); err != nil {
			return false
		}
	}
	return len(m.Files) > 0
}

// writeManifest adds the shared libraries of a staged installation to the manifest and writes it to the folder.
func writeManifest(m *manifest, stage string) error {
	m.Files = map[string]installedFile{}
	err := filepath.WalkDir(stage, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if base := filepath.Base(p); !strings.HasPrefix(base, "lib") && filepath.Ext(p) != ".metallib" {
			return nil
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		sum, err := hashFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(stage, p)
		if err != nil {
			return err
		}
		m.Files[filepath.ToSlash(rel)] = installedFile{Size: st.Size(), SHA256: sum}
		return nil
	})
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(stage, "manifest.json"), append(data, '\n'), 0o644)
}
