package setup

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// A Workshop prepares releases of MLX that the lock file need not list, for package upgrade. It works on a checkout,
// locks it against set-ups until Close, and keeps files in a temporary folder. Downloads stay in the checkout's folder
// of downloads, which git ignores. One goroutine at a time may use a Workshop.
type Workshop struct {
	s      *setup
	unlock func()
}

// OpenWorkshop opens the workshop of a checkout. root is the folder third_party/mlx-c. progress is called for each step
// and may be nil. OpenWorkshop blocks while another set-up runs. The caller must call Close.
func OpenWorkshop(ctx context.Context, root string, progress func(Progress)) (*Workshop, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	s, err := newSetup(root, os.DirFS(filepath.Dir(filepath.Dir(root))), progress)
	if err != nil {
		return nil, err
	}
	_, unlock, readOnly, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	if readOnly != nil {
		err = fmt.Errorf("%s cannot be written: %w", root, readOnly)
	} else {
		s.tmp, err = os.MkdirTemp(s.path("build"), "tmp-")
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return &Workshop{s: s, unlock: unlock}, nil
}

// Close removes the temporary files and unlocks the checkout.
func (w *Workshop) Close() error {
	defer w.unlock()
	return os.RemoveAll(w.s.tmp)
}

// Repository returns the checkout.
func (w *Workshop) Repository() string { return w.s.repository() }

// A Candidate is a pair of mlx-c and MLX, with files in a folder of the workshop once [Workshop.Unpack] has run.
type Candidate struct {
	pair  pair
	stage string
	tree  sourceTree
}

// Version returns MLX's version.
func (c *Candidate) Version() string { return c.pair.MLX.Version }

// MLXC returns mlx-c's version.
func (c *Candidate) MLXC() string { return c.pair.MLXC.Version }

// Rules returns the files with the patch rules for mlx-c.
func (c *Candidate) Rules() []string { return c.pair.Rules }

// Include returns MLX's include folder.
func (c *Candidate) Include() string { return filepath.Join(c.stage, "mlx", "include") }

// Sources returns the folder with the sources of mlx-c and libmlxg, and the translation units in it.
func (c *Candidate) Sources() (dir string, units []string) {
	return filepath.Join(c.stage, "sources"), append(c.tree.parts("libmlxc"), c.tree.parts("libmlxg")...)
}

// Entry returns the candidate as an entry of the lock file, in JSON.
func (c *Candidate) Entry() (string, error) {
	var text strings.Builder
	err := encodeLock(&text, c.pair)
	return text.String(), err
}

// Known returns the lock file's pair for a version of MLX, or the default pair for "". It returns an error if the lock
// file does not list the version.
func (w *Workshop) Known(version string) (*Candidate, error) {
	p, err := w.s.lock.pair(version)
	if err != nil {
		return nil, err
	}
	return &Candidate{pair: *p}, nil
}

// Unpack unpacks a candidate's MLX for this machine, and its mlx-c with the patch rules applied. unfit has the errors
// of rules that do not fit; the other rules are applied.
func (w *Workshop) Unpack(ctx context.Context, c *Candidate) (unfit []error, err error) {
	if c.stage, err = os.MkdirTemp(w.s.tmp, "mlx-"); err != nil {
		return nil, err
	}
	w.s.pair = &c.pair
	m := &manifest{
		Backend: choice{}.backend(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Sources: map[string]string{},
	}
	if err := w.s.bringMLX(ctx, m, c.stage); err != nil {
		return nil, err
	}
	source, err := w.s.bringMLXC(ctx, m)
	if err != nil {
		return nil, err
	}
	if c.tree, unfit, err = w.s.patch(source); err != nil {
		return nil, err
	}
	if err := c.tree.addUnits(w.s.sources); err != nil {
		return nil, err
	}
	dir, _ := c.Sources()
	return unfit, c.tree.write(dir)
}

// Compile compiles and links mlx-c and libmlxg against the candidate's MLX, with the compiler of set-ups, and loads the
// library once. Unpack must have run.
func (w *Workshop) Compile(ctx context.Context, c *Candidate) error {
	tools, err := findToolchain(ctx)
	if err != nil {
		return err
	}
	w.s.pair = &c.pair
	m := &manifest{Backend: choice{}.backend(), MLX: c.Version(), MLXC: c.MLXC()}
	dir, _ := c.Sources()
	if err := copyHeaders(c.tree, dir, c.stage); err != nil {
		return err
	}
	b, err := w.s.buildLibraries(ctx, tools, m, c.tree, dir, c.stage)
	if err != nil {
		return err
	}
	return w.s.check(ctx, b, m, c.stage)
}

// Write adds the candidate to the lock file. It replaces an entry for the same version of MLX.
func (w *Workshop) Write(c *Candidate) error {
	lock := lockFile{Default: w.s.lock.Default, Pairs: slices.Clone(w.s.lock.Pairs)}
	same := func(p pair) bool { return p.MLX.Version == c.Version() }
	if i := slices.IndexFunc(lock.Pairs, same); i >= 0 {
		lock.Pairs[i] = c.pair
	} else {
		lock.Pairs = append(lock.Pairs, c.pair)
	}
	var text strings.Builder
	if err := encodeLock(&text, lock); err != nil {
		return err
	}
	if _, err := parseLock([]byte(text.String())); err != nil {
		return fmt.Errorf("the new lock file is not valid: %w", err)
	}
	return os.WriteFile(w.s.path("lock.json"), []byte(text.String()), 0o644)
}

// encodeLock writes a part of the lock file in the format of the file: JSON, indented by two spaces.
func encodeLock(out *strings.Builder, part any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(part)
}
