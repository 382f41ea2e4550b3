package setup

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
)

// A lockFile is the content of lock.json, which names all downloads with versions, sizes, hashes and licenses.
type lockFile struct {
	MLX      lockMLX       `json:"mlx"`
	MLXC     lockMLXC      `json:"mlx_c"`
	Pairs    []pair        `json:"pairs"`
	Prebuilt *lockPrebuilt `json:"prebuilt,omitempty"` // nil before the first release
}

// lockPrebuilt names the archives of a release with libmlxc and libmlxg. ./build.sh release writes it.
type lockPrebuilt struct {
	URL      string            `json:"url"`     // the folder of the archives
	Sources  string            `json:"sources"` // sourcesHash of the sources that the libraries were compiled from
	Archives []prebuiltArchive `json:"archives"`
}

type prebuiltArchive struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	File   string `json:"file"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

type lockMLX struct {
	Version string  `json:"version"`
	Source  string  `json:"source"`
	License string  `json:"license"`
	Wheels  []wheel `json:"wheels"`
}

// A wheel is a Python package of MLX, or a package that it needs at run time.
type wheel struct {
	Backend  string `json:"backend"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
	Package  string `json:"package"`
	Version  string `json:"version"`
	Platform string `json:"platform"` // the platform tag for pip
	File     string `json:"file"`
	Size     int64  `json:"size"`
	SHA256   string `json:"sha256"`
	License  string `json:"license"`
}

type lockMLXC struct {
	Version string `json:"version"`
	Source  string `json:"source"`
	License string `json:"license"`
	Git     struct {
		URL    string `json:"url"`
		Tag    string `json:"tag"`
		Commit string `json:"commit"`
	} `json:"git"`
	// Archive is upstream's release archive. Set-up does not download it; a user may pass it as MLX_C_SOURCE.
	Archive struct {
		File   string `json:"file"`
		SHA256 string `json:"sha256"`
		Folder string `json:"folder"`
	} `json:"archive"`
	Crate struct {
		Name    string `json:"name"`
		Version string `json:"version"`
		File    string `json:"file"`
		Size    int64  `json:"size"`
		SHA256  string `json:"sha256"`
		Folder  string `json:"folder"` // the folder of the mlx-c tree in the archive
		License string `json:"license"`
	} `json:"crate"`
}

// A pair states that an mlx-c version works with an MLX version. The project's tests run on the tested pair. Other
// pairs are accepted, with a warning, for libraries of the user. There are none: mlx-c 0.7.0 does not compile against
// MLX 0.32.0, 0.32.1 and 0.32.3.
type pair struct {
	MLXC   string `json:"mlx_c"`
	MLX    string `json:"mlx"`
	Tested bool   `json:"tested"`
}

func readLock(sources fs.FS, name string) (*lockFile, error) {
	data, err := fs.ReadFile(sources, name)
	if err != nil {
		return nil, failf("restore it from the repository", "the lock file cannot be read (%v)", err)
	}
	l, err := parseLock(data)
	if err != nil {
		return nil, failf("correct third_party/mlx-c/lock.json or restore it from the repository",
			"the lock file is not valid (%v)", err)
	}
	return l, nil
}

// parseLock parses a lock file. Each entry must have an exact version, a size and a complete hash. Unknown fields are
// errors, so that a misspelled "sha256" cannot disable a check.
func parseLock(data []byte) (*lockFile, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var l lockFile
	if err := dec.Decode(&l); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("text after the end of the document")
	}
	if l.MLX.Version == "" || l.MLXC.Version == "" {
		return nil, fmt.Errorf("mlx.version and mlx_c.version must be given")
	}
	for _, w := range l.MLX.Wheels {
		if w.Backend == "" || w.OS == "" || w.Arch == "" || w.Package == "" || w.Version == "" || w.Platform == "" ||
			w.License == "" {
			return nil, fmt.Errorf("wheel %q lacks a field", w.File)
		}
		if err := checkArtifact(w.File, w.Size, w.SHA256); err != nil {
			return nil, err
		}
	}
	c := l.MLXC.Crate
	if err := checkArtifact(c.File, c.Size, c.SHA256); err != nil {
		return nil, err
	}
	if c.Name == "" || c.Version == "" || !filepath.IsLocal(c.Folder) {
		return nil, fmt.Errorf("mlx_c.crate lacks a field")
	}
	if a := l.MLXC.Archive; !isHex(a.SHA256, 32) || !filepath.IsLocal(a.Folder) {
		return nil, fmt.Errorf("mlx_c.archive lacks a field")
	}
	if g := l.MLXC.Git; g.URL == "" || g.Tag == "" || !isHex(g.Commit, 20) {
		return nil, fmt.Errorf("mlx_c.git needs a url, a tag and a commit of 40 hexadecimal digits")
	}
	if p := l.Prebuilt; p != nil {
		if p.URL == "" || !isHex(p.Sources, 32) || len(p.Archives) == 0 {
			return nil, fmt.Errorf("prebuilt lacks a field")
		}
		for _, a := range p.Archives {
			if err := checkArtifact(a.File, a.Size, a.SHA256); err != nil {
				return nil, err
			}
			if a.OS == "" || a.Arch == "" {
				return nil, fmt.Errorf("prebuilt archive %q lacks a field", a.File)
			}
		}
	}
	tested := false
	for _, p := range l.Pairs {
		tested = tested || p.Tested && p.MLX == l.MLX.Version && p.MLXC == l.MLXC.Version
	}
	if !tested {
		return nil, fmt.Errorf("pairs does not list mlx-c %s with MLX %s as tested", l.MLXC.Version, l.MLX.Version)
	}
	return &l, nil
}

func checkArtifact(file string, size int64, sha string) error {
	if file == "" || strings.ContainsAny(file, `/\`) {
		return fmt.Errorf("file name %q is not a plain name", file)
	}
	if size <= 0 {
		return fmt.Errorf("%s has no size", file)
	}
	if !isHex(sha, 32) {
		return fmt.Errorf("%s: sha256 must have 64 hexadecimal digits", file)
	}
	return nil
}

func isHex(s string, n int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == n && s == strings.ToLower(s)
}

// wheelsFor returns the wheels of a backend on a platform. MLX's own is the first.
func (l *lockFile) wheelsFor(backend, goos, goarch string) []wheel {
	var out []wheel
	for _, w := range l.MLX.Wheels {
		if w.Backend == backend && w.OS == goos && w.Arch == goarch {
			out = append(out, w)
		}
	}
	return out
}

// checkPair returns an error if these versions do not work together, and reports whether the project's tests run on
// them.
func (l *lockFile) checkPair(mlxc, mlx string) (tested bool, err error) {
	for _, p := range l.Pairs {
		if p.MLXC == mlxc && p.MLX == mlx {
			return p.Tested, nil
		}
	}
	var known []string
	for _, p := range l.Pairs {
		known = append(known, fmt.Sprintf("mlx-c %s with MLX %s", p.MLXC, p.MLX))
	}
	return false, failf("use one of: "+strings.Join(known, "; ")+", or leave MLX_DIR and MLX_C_SOURCE unset",
		"mlx-c %s does not work with MLX %s", mlxc, mlx)
}
