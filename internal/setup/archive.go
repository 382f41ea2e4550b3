package setup

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

const distrust = "run the set-up again; if the file differs again, do not use it, and report it to the project"

// verifyFile checks a file's size and hash against the lock file.
func verifyFile(name string, size int64, sha string) error {
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	if st.Size() != size {
		return failf(distrust, "%s has %d bytes where the lock file says %d", filepath.Base(name), st.Size(), size)
	}
	got, err := hashFile(name)
	if err != nil {
		return err
	}
	if got != sha {
		return failf(distrust, "%s has SHA-256 %s where the lock file says %s", filepath.Base(name), got, sha)
	}
	return nil
}

func hashFile(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// An unpacker writes archive entries beneath one folder. Names are checked before
// anything is written, and the folder is held as an [os.Root], so that an entry
// cannot leave it through a symbolic link that an earlier entry made.
type unpacker struct {
	root *os.Root
}

func newUnpacker(dir string) (*unpacker, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &unpacker{root: root}, nil
}

func (u *unpacker) close() { u.root.Close() }

// errEntry marks an archive entry that must not be unpacked.
var errEntry = errors.New("unsafe archive entry")

// entryName returns the local path of an archive entry, or an error if the name is
// absolute, climbs with "..", or uses a separator of another system.
func entryName(name string) (string, error) {
	for _, part := range strings.Split(name, "/") {
		if part == ".." {
			return "", fmt.Errorf("%w: %q climbs out of the archive", errEntry, name)
		}
	}
	if strings.ContainsAny(name, "\\\x00") || path.IsAbs(name) || !filepath.IsLocal(filepath.FromSlash(name)) {
		return "", fmt.Errorf("%w: %q is not a local path", errEntry, name)
	}
	return filepath.FromSlash(path.Clean(name)), nil
}

func (u *unpacker) dir(name string) error { return u.root.MkdirAll(name, 0o755) }

func (u *unpacker) file(name string, mode fs.FileMode, r io.Reader) error {
	if err := u.dir(filepath.Dir(name)); err != nil {
		return err
	}
	// O_EXCL refuses a second entry of the same name, which could overwrite a file or write through a link.
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm()&0o755|0o644)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// link makes a symbolic link whose target stays inside the archive.
func (u *unpacker) link(name, target string) error {
	if target == "" || path.IsAbs(target) || strings.ContainsAny(target, "\\\x00") {
		return fmt.Errorf("%w: link %q points to %q", errEntry, name, target)
	}
	if !filepath.IsLocal(filepath.FromSlash(path.Join(path.Dir(filepath.ToSlash(name)), target))) {
		return fmt.Errorf("%w: link %q points out of the archive, to %q", errEntry, name, target)
	}
	if err := u.dir(filepath.Dir(name)); err != nil {
		return err
	}
	return u.root.Symlink(target, name)
}

// unzip unpacks a wheel, which is a zip archive of plain files.
func unzip(archive, dir string) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	defer z.Close()
	u, err := newUnpacker(dir)
	if err != nil {
		return err
	}
	defer u.close()
	for _, e := range z.File {
		name, err := entryName(e.Name)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(archive), err)
		}
		switch mode := e.Mode(); {
		case mode.IsDir():
			err = u.dir(name)
		case mode.IsRegular():
			err = unzipFile(u, e, name)
		default:
			// Wheels have no links, since the zip format has no portable form for them.
			err = fmt.Errorf("%w: %q is neither a file nor a folder", errEntry, e.Name)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(archive), err)
		}
	}
	return nil
}

func unzipFile(u *unpacker, e *zip.File, name string) error {
	r, err := e.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	return u.file(name, e.Mode(), r)
}

// untarGz unpacks the part of a gzipped tar archive that lies beneath folder.
// The names of entries outside folder are checked too.
func untarGz(archive, folder, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	if err := untar(gz, folder, dir); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	return nil
}

func untar(r io.Reader, folder, dir string) error {
	u, err := newUnpacker(dir)
	if err != nil {
		return err
	}
	defer u.close()
	found := false
	for t := tar.NewReader(r); ; {
		e, err := t.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if e.Typeflag == tar.TypeXGlobalHeader {
			continue // git archive records the commit here
		}
		name, err := entryName(e.Name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.FromSlash(folder), name)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		found = true
		switch e.Typeflag {
		case tar.TypeDir:
			err = u.dir(rel)
		case tar.TypeReg:
			err = u.file(rel, e.FileInfo().Mode(), t)
		case tar.TypeSymlink:
			err = u.link(rel, e.Linkname)
		default:
			err = fmt.Errorf("%w: %q is not a file, a folder or a symbolic link", errEntry, e.Name)
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("nothing beneath %q", folder)
	}
	return nil
}
