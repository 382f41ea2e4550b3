package toolchain

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// CacheDir returns the folder to which this process writes compiled kernels, and creates it if necessary. It is
// MLXGRAD_CACHE/host, or mlxgrad/host in the user's cache folder. If that folder is unsafe or unusable, CacheDir
// returns mlxgrad-host-UID in the system's temporary folder. Only this user and root can write it.
func CacheDir() (string, error) {
	dirs, err := folders()
	if err != nil {
		return "", err
	}
	return dirs[len(dirs)-1], nil
}

// Find returns the path of a file in the cache, if one of its folders holds it.
func Find(name string) (path string, ok bool) {
	dirs, _ := folders()
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); Kept(path) {
			return path, true
		}
	}
	return "", false
}

// InCache calls write with the folder of the cache, and again with the next folder if the disk of the first is full or
// read-only.
func InCache(write func(dir string) error) error {
	for {
		dir, err := CacheDir()
		if err != nil {
			return err
		}
		err = write(dir)
		failure := diskFailure(err)
		if failure == nil {
			return err
		}
		placesLock.Lock()
		for name, p := range examined {
			if p.dir == dir {
				examined[name] = place{dir, fmt.Errorf("%s: %w", name, failure)}
			}
		}
		placesLock.Unlock()
	}
}

// A place is a candidate for the cache's folder.
type place struct {
	dir string // without symbolic links; empty if files must not be loaded from it
	err error  // why it cannot be written
}

var (
	placesLock sync.Mutex
	examined   = map[string]place{} // by name, for the life of the process
	told       = map[string]bool{}  // by the values of warnings that were logged
)

// places returns the candidates in order of preference. reasons has the error if the user has no cache folder.
func places() (names, reasons []string) {
	if dir := os.Getenv("MLXGRAD_CACHE"); dir != "" {
		names = append(names, filepath.Join(dir, "host"))
	} else if base, err := os.UserCacheDir(); err == nil {
		names = append(names, filepath.Join(base, "mlxgrad", "host"))
	} else {
		reasons = append(reasons, err.Error())
	}
	return append(names, filepath.Join(os.TempDir(), "mlxgrad-host-"+strconv.Itoa(os.Geteuid()))), reasons
}

// folders returns the folders from which kernels are loaded. Kernels are written to the last one. The error says why no
// folder can be written.
func folders() (dirs []string, err error) {
	placesLock.Lock()
	defer placesLock.Unlock()
	names, reasons := places()
	for _, name := range names {
		p, known := examined[name]
		if _, err := os.Lstat(p.dir); !known || p.err == nil && err != nil {
			p = examine(name)
			examined[name] = p
		}
		if p.dir != "" {
			dirs = append(dirs, p.dir)
		}
		if p.err == nil {
			if len(reasons) > 0 {
				warn("customkernels: compiled kernels are kept in a temporary folder", "folder", p.dir, "reason",
					strings.Join(reasons, "; "))
			}
			return dirs, nil
		}
		reasons = append(reasons, p.err.Error())
	}
	return dirs, fmt.Errorf("no folder can hold compiled kernels (%s): set MLXGRAD_CACHE to a folder that only "+
		"you can write, with 100 MB free, on a disk that is not mounted noexec", strings.Join(reasons, "; "))
}

// warn logs a message once for the same values. The caller holds placesLock.
func warn(message string, values ...any) {
	if key := fmt.Sprint(values...); !told[key] {
		told[key] = true
		slog.Warn(message, values...)
	}
}

// examine creates the folder if necessary and returns whether the cache can use it.
func examine(name string) place {
	refuse := func(err error) place { return place{err: fmt.Errorf("%s: %w", name, err)} }
	name, err := filepath.Abs(name)
	if err != nil {
		return refuse(err)
	}
	if err := os.MkdirAll(name, 0o700); err != nil {
		return refuse(err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(name))
	if err != nil {
		return refuse(err)
	}
	dir = filepath.Join(dir, filepath.Base(name))
	if err := trustAbove(dir); err != nil {
		return refuse(err)
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return refuse(err)
	case !info.IsDir():
		return refuse(errors.New("not a folder"))
	}
	if err := makePrivate(dir, info); err != nil {
		return refuse(err)
	}
	if noexec(dir) {
		return refuse(errors.New("mounted noexec"))
	}
	probe, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return place{dir, fmt.Errorf("%s: %w", name, err)}
	}
	probe.Close()
	os.Remove(probe.Name())
	sweep(dir)
	return place{dir: dir}
}

// makePrivate removes other users' permissions for a folder of this user. If other users could write the folder,
// makePrivate removes all cached files from it. For a folder of another user, it returns an error unless only root can
// write it.
func makePrivate(dir string, info fs.FileInfo) error {
	if owner, ok := ownerOf(info); !ok || owner != os.Geteuid() {
		return trust(info)
	}
	mode := info.Mode().Perm()
	if mode == 0o700 {
		return nil
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		return err
	}
	if mode&0o022 == 0 {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if kept.MatchString(e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	warn("customkernels: others could write the folder of compiled kernels, so it was emptied", "folder", dir, "mode",
		fmt.Sprintf("%04o", mode))
	return nil
}

// noexec reports whether the file system of dir is mounted noexec: libraries cannot be loaded from it.
func noexec(dir string) bool {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return false
	}
	flag := uint64(0x8) // ST_NOEXEC of Linux
	if runtime.GOOS == "darwin" {
		flag = 0x4 // MNT_NOEXEC
	}
	return uint64(s.Flags)&flag != 0
}

// diskWords matches the messages of compilers about disk failures.
var diskWords = regexp.MustCompile(`No space left on device|Disk quota exceeded|Read-only file system`)

// diskFailure returns the part of err about a disk that cannot be written, or nil.
func diskFailure(err error) error {
	for _, number := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS} {
		if errors.Is(err, number) {
			return number
		}
	}
	var refused *CompileError
	if errors.As(err, &refused) && diskWords.MatchString(refused.Output) {
		return errors.New(diskWords.FindString(refused.Output))
	}
	return nil
}
