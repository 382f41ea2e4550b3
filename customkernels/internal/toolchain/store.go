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

// The cache names a file by a hash of its key and content, and stores that hash in a second file that is named by the
// key. So the content is verified before the dynamic linker or g++ maps it, and a file is found only by its own key.
// Both files are created by renaming, the content first. Two processes that fill the same entry, even with different
// bytes, leave it consistent.

func keyFile(dir, key string) string { return filepath.Join(dir, key+".key") }

// errDamaged is the error of a file whose content does not match its name.
var errDamaged = errors.New("content differs from its hash")

// locate returns the path of the file in dir with the key, and the hash that its content must have.
func locate(dir, key, extension string) (path, sum string, err error) {
	text, err := readKept(keyFile(dir, key))
	if err != nil {
		return "", "", err
	}
	if raw, err := hex.DecodeString(string(text)); err != nil || len(raw) != sha256.Size {
		return "", "", errors.New("broken key file")
	}
	path = filepath.Join(dir, string(text)+extension)
	if !Kept(path) {
		return "", "", fs.ErrNotExist
	}
	return path, string(text), nil
}

// find returns the path of the file in dir with the key, after it has verified the file's content.
func find(dir, key, extension string) (string, error) {
	path, sum, err := locate(dir, key, extension)
	if err != nil {
		return "", err
	}
	got, err := contentHash(key, path)
	if err != nil {
		return "", err
	}
	if got != sum {
		os.Remove(path) // it may be large, and its replacement may have another name
		return "", errDamaged
	}
	return path, nil
}

// store moves a file from a work folder of dir to its place under key.
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

// Stored returns the content of the cached file with a key and an extension, such as ".cubin". If no folder of the
// cache holds an undamaged file, Stored calls compile and stores its result.
func Stored(key, extension string, compile func() ([]byte, error)) ([]byte, error) {
	dirs, _ := folders()
	for _, dir := range dirs {
		if path, err := find(dir, key, extension); err == nil {
			if content, err := os.ReadFile(path); err == nil {
				return content, nil
			}
		}
	}
	content, err := compile()
	if err != nil {
		return nil, err
	}
	err = InCache(func(dir string) error {
		work, remove, err := WorkFolder(dir, "compile-")
		if err != nil {
			return err
		}
		defer remove()
		file := filepath.Join(work, "code")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			return err
		}
		return store(dir, key, extension, file)
	})
	if err != nil {
		return nil, fmt.Errorf("cache of compiled kernels: %w", err)
	}
	return content, nil
}

// contentHash returns the hash of the key and of the file's content. It is the file's name in the cache.
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

// Kept reports whether path is a file of the cache that no other user could have written. It marks the file as used.
func Kept(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || trustFile(info) != nil {
		return false
	}
	if time.Since(info.ModTime()) > day {
		now := time.Now()
		_ = os.Chtimes(path, now, now) // at worst the file is removed and compiled again
	}
	return true
}

// Keep moves a file from a work folder of the cache to path, where Kept accepts it. It sets the mode, because tools
// follow the umask, which may let a group write.
func Keep(file, path string) error {
	if err := os.Chmod(file, 0o700); err != nil {
		return err
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	// Kept does not read the file, so it must be complete after a power failure, too.
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(file, path)
}

// readKept reads a file of the cache.
func readKept(path string) ([]byte, error) {
	if !Kept(path) {
		return nil, fs.ErrNotExist
	}
	return os.ReadFile(path)
}

// Hash returns a cache key of the given parts.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d\n%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil))
}
