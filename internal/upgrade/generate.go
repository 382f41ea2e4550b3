package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// generate runs the generator of mlxc's bindings on the headers of mlx-c in a copy of the files that it reads and writes.
// It returns the generated files that would change, and the generator's error.
func generate(ctx context.Context, repository, headers string) (changed []string, failure, err error) {
	tmp, err := os.MkdirTemp("", "mlxgrad-upgrade-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(tmp)
	for _, folder := range []string{"mlxc", "internal/library", "customkernels/internal/executor"} {
		if err := os.CopyFS(filepath.Join(tmp, folder), os.DirFS(filepath.Join(repository, folder))); err != nil {
			return nil, nil, err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "run", "./mlxc/internal/generate", "-headers", headers,
		"-package", filepath.Join(tmp, "mlxc"))
	cmd.Dir = repository
	if out, err := cmd.CombinedOutput(); err != nil {
		failure = fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	changed, err = differences(repository, tmp)
	return changed, failure, err
}

// differences lists the files named gen_* that differ between the repository and a copy of some of its folders.
func differences(repository, dir string) (changed []string, err error) {
	for _, side := range []string{repository, dir} {
		for _, folder := range []string{"mlxc", "internal/library"} {
			err := fs.WalkDir(os.DirFS(side), folder, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() || !strings.HasPrefix(d.Name(), "gen_") {
					return err
				}
				before, errBefore := os.ReadFile(filepath.Join(repository, path))
				after, errAfter := os.ReadFile(filepath.Join(dir, path))
				switch {
				case errors.Is(errAfter, fs.ErrNotExist):
					changed = append(changed, path+" would be removed")
				case errors.Is(errBefore, fs.ErrNotExist):
					changed = append(changed, path+" would be new")
				case side == dir && errBefore == nil && errAfter == nil && !bytes.Equal(before, after):
					changed = append(changed, path+" would change")
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return changed, nil
}
