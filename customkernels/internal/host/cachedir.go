package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// CacheDir returns the folder of the cache, made if need be, which nobody else
// can write: libraries are loaded from it.
func CacheDir() (string, error) {
	if dir := os.Getenv("MLXGRAD_CACHE"); dir != "" {
		dir = filepath.Join(dir, "host")
		if err := makePrivate(dir); err != nil {
			return "", fmt.Errorf("host: MLXGRAD_CACHE: %w", err)
		}
		return dir, nil
	}
	if base, err := os.UserCacheDir(); err == nil {
		dir := filepath.Join(base, "mlxgrad", "host")
		if makePrivate(dir) == nil {
			return dir, nil
		}
	}
	// No home, or one that cannot be written.
	dir := filepath.Join(os.TempDir(), "mlxgrad-host-"+strconv.Itoa(os.Getuid()))
	if err := makePrivate(dir); err != nil {
		return "", fmt.Errorf("host: no folder for the cache: %w", err)
	}
	return dir, nil
}

// checked remembers the folders that makePrivate has found good.
var checked sync.Map

func makePrivate(dir string) error {
	if _, ok := checked.Load(dir); ok {
		if _, err := os.Lstat(dir); err == nil {
			return nil
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !ok || int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a folder of this user", dir)
	}
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
	}
	// A folder on a read-only file system is no use.
	probe, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return err
	}
	probe.Close()
	os.Remove(probe.Name())
	sweep(dir)
	checked.Store(dir, true)
	return nil
}

// What lies in the cache: folders and files of somebody who works, and what is kept, under a
// hash. A folder that the user named may hold other things, too.
var (
	atWork = regexp.MustCompile(`^(compile|checked|probe|write)-[0-9]+$`)
	kept   = regexp.MustCompile(`^[0-9a-f]{64}\.`)
)

const (
	day    = 24 * time.Hour
	unused = 30 * day
)

// Kept reports whether the cache holds path, a file that may be made again, and tells sweep
// that it is used.
func Kept(path string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return false
	}
	if time.Since(info.ModTime()) > day {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // at worst it is made again
	}
	return true
}

// readKept reads a file that the cache keeps.
func readKept(path string) ([]byte, error) {
	if !Kept(path) {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile(path)
}

// Hash names in the cache what is made of these parts.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sweep removes, once a day, what processes left in the cache that were ended while they
// worked there, and what was not used for long: a kernel whose text, header or compiler has
// changed is never asked for again. What was not used while the cache was not, or while it was
// part of an image, stays.
func sweep(dir string) {
	swept := filepath.Join(dir, "swept")
	now := time.Now()
	last := time.Time{} // before all files
	if info, err := os.Lstat(swept); err == nil {
		if last = info.ModTime(); now.Sub(last) < day {
			return
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue
		}
		written := info.ModTime()
		if atWork.MatchString(e.Name()) && now.Sub(written) > day || kept.MatchString(e.Name()) && last.Sub(written) > unused {
			os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	// Last, where the disk was full. Where it still is, the next process sweeps.
	os.Remove(swept)
	_ = os.WriteFile(swept, nil, 0o600)
}
