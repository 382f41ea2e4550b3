package mlxc

// #include "mlxg.h"
import "C"

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// decideFusing decides, at the first call of a compiled function on a CPU stream, whether MLX may
// fuse there.
var decideFusing = sync.OnceFunc(func() {
	if _, err := exec.LookPath("g++"); err != nil {
		return // MLX does not fuse without it
	}
	if err := prepareCacheFolder(temporaryFolder()); err != nil {
		C.mlxg_compile_no_fusing()
		slog.Warn("mlxc: compiled functions are not fused on CPU streams; remove the folder, or set TMPDIR to a folder of your own",
			"reason", err)
	}
})

// temporaryFolder is the folder that MLX takes for temporary files, that of
// std::filesystem::temp_directory_path.
func temporaryFolder() string {
	for _, name := range []string{"TMPDIR", "TMP", "TEMP", "TEMPDIR"} {
		if dir := os.Getenv(name); dir != "" {
			return dir
		}
	}
	return "/tmp"
}

// prepareCacheFolder makes the folder into which MLX compiles functions, under the folder for temporary
// files. MLX loads what it finds there, so it returns an error unless only this user, or root, can
// write to the folder and to the folders above it.
func prepareCacheFolder(temporary string) error {
	info, err := os.Stat(temporary)
	if err != nil {
		return err
	}
	if err := checkOwner(temporary, info); err != nil && info.Mode()&fs.ModeSticky == 0 {
		return err
	}
	dir := temporary
	for _, name := range []string{"mlx", Version(), "cpu"} {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(dir)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", dir)
		}
		if err := checkOwner(dir, info); err != nil {
			return err
		}
	}
	// As MLX writes there.
	f, err := os.CreateTemp(dir, "mlxc-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkOwner returns an error if another user than this one and root can write to the folder.
func checkOwner(dir string, info fs.FileInfo) error {
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != 0 && owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to the user %d, not to the user %d of this process", dir, owner, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s has the mode %04o; others may write to it", dir, mode)
	}
	return nil
}
