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

// decideFusing decides whether MLX may fuse on CPU streams, at the first call of a compiled function there.
var decideFusing = sync.OnceFunc(func() {
	if _, err := exec.LookPath("g++"); err != nil {
		return // MLX does not fuse without it
	}
	if err := prepareCacheFolder(temporaryFolder()); err != nil {
		C.mlxg_compile_no_fusing()
		slog.Warn("mlxc: compiled functions are not fused on CPU streams; remove the folder, or set TMPDIR to a "+
			"folder of your own",
			"reason", err)
	}
})

// temporaryFolder returns MLX's folder for temporary files, as std::filesystem::temp_directory_path does.
func temporaryFolder() string {
	for _, name := range []string{"TMPDIR", "TMP", "TEMP", "TEMPDIR"} {
		if dir := os.Getenv(name); dir != "" {
			return dir
		}
	}
	return "/tmp"
}

// prepareCacheFolder creates the folder in which MLX keeps compiled functions. MLX loads libraries from it. So the
// function returns an error if users other than this one and root can write to the folder or to a folder above it.
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
	// Check that MLX can write there.
	f, err := os.CreateTemp(dir, "mlxc-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// checkOwner returns an error if users other than this one and root can write to the folder.
func checkOwner(dir string, info fs.FileInfo) error {
	if owner := int(info.Sys().(*syscall.Stat_t).Uid); owner != 0 && owner != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d, but this process runs as user %d", dir, owner, os.Geteuid())
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 {
		return fmt.Errorf("%s has mode %04o: other users may write to it", dir, mode)
	}
	return nil
}
