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
	Default string `json:"default"` // the version of MLX that is installed unless another is chosen
	Pairs   []pair `json:"pairs"`   // one for each version of MLX
}

// A pair is a version of MLX and the mlx-c that is compiled against it.
type pair struct {
	MLX  lockMLX  `json:"mlx"`
	MLXC lockMLXC `json:"mlx_c"`
	// Rules names the files of third_party/mlx-c/patches whose rules adapt this mlx-c to this MLX, in order.
	Rules    []string      `json:"rules"`
	Tested   bool          `json:"tested"`             // the project's tests run on the pair
	Prebuilt *lockPrebuilt `json:"prebuilt,omitempty"` // nil before the first release
}

func (p *pair) String() string { return "mlx-c " + p.MLXC.Version + " with MLX " + p.MLX.Version }

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
	versions := map[string]bool{}
	for i := range l.Pairs {
		p := &l.Pairs[i]
		if err := p.check(); err != nil {
			return nil, fmt.Errorf("pairs, %s: %w", p, err)
		}
		if versions[p.MLX.Version] {
			return nil, fmt.Errorf("pairs lists MLX %s twice", p.MLX.Version)
		}
		versions[p.MLX.Version] = true
	}
	if p, err := l.pair(""); err != nil || !p.Tested {
		return nil, fmt.Errorf("pairs does not list the default, MLX %q, as tested", l.Default)
	}
	return &l, nil
}

// check returns an error if a field is missing or not valid.
func (p *pair) check() error {
	if p.MLX.Version == "" || p.MLXC.Version == "" {
		return fmt.Errorf("mlx.version and mlx_c.version must be given")
	}
	for _, w := range p.MLX.Wheels {
		if w.Backend == "" || w.OS == "" || w.Arch == "" || w.Package == "" || w.Version == "" || w.Platform == "" ||
			w.License == "" {
			return fmt.Errorf("wheel %q lacks a field", w.File)
		}
		if err := checkArtifact(w.File, w.Size, w.SHA256); err != nil {
			return err
		}
	}
	c := p.MLXC.Crate
	if err := checkArtifact(c.File, c.Size, c.SHA256); err != nil {
		return err
	}
	if c.Name == "" || c.Version == "" || !filepath.IsLocal(c.Folder) {
		return fmt.Errorf("mlx_c.crate lacks a field")
	}
	if a := p.MLXC.Archive; !isHex(a.SHA256, 32) || !filepath.IsLocal(a.Folder) {
		return fmt.Errorf("mlx_c.archive lacks a field")
	}
	if g := p.MLXC.Git; g.URL == "" || g.Tag == "" || !isHex(g.Commit, 20) {
		return fmt.Errorf("mlx_c.git needs a url, a tag and a commit of 40 hexadecimal digits")
	}
	for _, name := range p.Rules {
		if err := checkPlainName(name); err != nil {
			return err
		}
	}
	return p.Prebuilt.check()
}

// check returns an error if a field is missing or not valid.
func (p *lockPrebuilt) check() error {
	if p == nil {
		return nil
	}
	if p.URL == "" || !isHex(p.Sources, 32) || len(p.Archives) == 0 {
		return fmt.Errorf("prebuilt lacks a field")
	}
	for _, a := range p.Archives {
		if err := checkArtifact(a.File, a.Size, a.SHA256); err != nil {
			return err
		}
		if a.OS == "" || a.Arch == "" {
			return fmt.Errorf("prebuilt archive %q lacks a field", a.File)
		}
	}
	return nil
}

func checkArtifact(file string, size int64, sha string) error {
	if err := checkPlainName(file); err != nil {
		return err
	}
	if size <= 0 {
		return fmt.Errorf("%s has no size", file)
	}
	if !isHex(sha, 32) {
		return fmt.Errorf("%s: sha256 must have 64 hexadecimal digits", file)
	}
	return nil
}

func checkPlainName(file string) error {
	if file == "" || strings.ContainsAny(file, `/\`) {
		return fmt.Errorf("file name %q is not a plain name", file)
	}
	return nil
}

func isHex(s string, n int) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == n && s == strings.ToLower(s)
}

// wheelsFor returns the wheels of a backend on a platform. MLX's own is the first.
func (p *pair) wheelsFor(backend, goos, goarch string) []wheel {
	var out []wheel
	for _, w := range p.MLX.Wheels {
		if w.Backend == backend && w.OS == goos && w.Arch == goarch {
			out = append(out, w)
		}
	}
	return out
}

// pair returns the pair with a version of MLX, or the default for "".
func (l *lockFile) pair(mlx string) (*pair, error) {
	if mlx == "" {
		mlx = l.Default
	}
	var known []string
	for i := range l.Pairs {
		p := &l.Pairs[i]
		if p.MLX.Version == mlx {
			return p, nil
		}
		known = append(known, p.MLX.Version)
	}
	return nil, failf("choose one of "+strings.Join(known, ", ")+" with --mlx or MLXGRAD_MLX",
		"MLX %s is not in the lock file", mlx)
}
