package mlxc

// #include "mlxg.h"
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// decideFusing decides whether MLX may fuse on CPU streams, at the first call of a compiled function there.
var decideFusing = sync.OnceFunc(func() {
	const message = "mlxc: compiled functions are not fused on CPU streams"
	compiler, err := exec.LookPath("g++")
	if err != nil {
		return // MLX does not fuse without it
	}
	if err := prepareCacheFolder(temporaryFolder()); err != nil {
		C.mlxg_compile_no_fusing()
		slog.Warn(message+"; remove the folder, or set TMPDIR to a folder of your own", "reason", err)
	} else if rejects(compiler, float32Type) && bytes.Contains(loadedMLX(), []byte(float32Type)) {
		C.mlxg_compile_no_fusing()
		slog.Info(message, "reason", compiler+" is newer than version 12 and rejects the headers in this build of MLX")
	}
})

// float32Type is a line of the headers that MLX holds for fused functions. MLX's wheels hold them as a g++ older than 13
// preprocessed them, and later versions have the type built in.
const float32Type = "typedef float _Float32;"

// rejects reports whether the C++ compiler rejects the text.
func rejects(compiler, text string) bool {
	cmd := exec.Command(compiler, "-x", "c++", "-fsyntax-only", "-")
	cmd.Stdin = strings.NewReader(text)
	return cmd.Run() != nil
}

// loadedMLX returns the file of MLX that this process has loaded, or nil on systems other than Linux.
func loadedMLX() []byte {
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "/"); ok && filepath.Base(name) == "libmlx.so" {
			data, _ := os.ReadFile("/" + name)
			return data
		}
	}
	return nil
}

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
