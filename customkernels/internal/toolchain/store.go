package toolchain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// The cache holds a file under a hash of its key and its content, and for every key a file with
// that hash. So a file is checked before the dynamic linker or g++ maps it, and found only
// under its own key. Both files come into being by renaming, the content first: two processes
// that fill the same entry, even with different bytes, leave it whole.

func keyFile(dir, key string) string { return filepath.Join(dir, key+".key") }

// errDamaged says that a file is not the one that was kept under its key.
var errDamaged = errors.New("content differs from its hash")

// find returns the path of the file that dir keeps under key.
func find(dir, key, extension string) (string, error) {
	sum, err := readKept(keyFile(dir, key))
	if err != nil {
		return "", err
	}
	if raw, err := hex.DecodeString(string(sum)); err != nil || len(raw) != sha256.Size {
		return "", errors.New("broken key file")
	}
	path := filepath.Join(dir, string(sum)+extension)
	if !Kept(path) {
		return "", fs.ErrNotExist
	}
	got, err := contentHash(key, path)
	if err != nil {
		return "", err
	}
	if got != string(sum) {
		os.Remove(path) // it may be large, and the next one may have another name
		return "", errDamaged
	}
	return path, nil
}

// store moves file, which lies in a work folder of dir, to its place under key.
func store(dir, key, extension, file string) error {
	sum, err := contentHash(key, file)
	if err != nil {
		return err
	}
	name := file + ".key"
	if err := os.WriteFile(name, []byte(sum), 0o600); err != nil {
		return err
	}
	if err := Keep(file, filepath.Join(dir, sum+extension)); err != nil {
		return err
	}
	return Keep(name, keyFile(dir, key))
}

// contentHash names a file that is kept under key.
func contentHash(key, path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	fmt.Fprintf(h, "%s\n", key)
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Kept reports whether the cache holds path, a file that nobody else could have written. It marks the
// file as used.
func Kept(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || trustFile(info) != nil {
		return false
	}
	if time.Since(info.ModTime()) > day {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // at worst the file is made again
	}
	return true
}

// Keep moves file, which lies in a work folder of the cache, to path, where Kept finds it: the
// tools that write files follow the umask, which may let a group write.
func Keep(file, path string) error {
	if err := os.Chmod(file, 0o700); err != nil {
		return err
	}
	return os.Rename(file, path)
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
