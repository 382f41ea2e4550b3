package setup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// releaseNotes returns the changelog's section of a version, or the unreleased one for a snapshot.
func releaseNotes(changelog, version string) ([]byte, error) {
	data, err := os.ReadFile(changelog)
	if err != nil {
		return nil, err
	}
	heading := strings.TrimPrefix(version, "v")
	if version == "snapshot" {
		heading = "Unreleased"
	}
	for section := range strings.SplitSeq("\n"+string(data), "\n## ") {
		first, rest, _ := strings.Cut(section, "\n")
		if title, _, _ := strings.Cut(first, " "); strings.Trim(title, "[]") == heading &&
			strings.TrimSpace(rest) != "" {
			return []byte(strings.TrimSpace(rest) + "\n"), nil
		}
	}
	return nil, failf("add it, as RELEASING.md says", "%s has no section %q", filepath.Base(changelog), "## "+heading)
}

// writeArchive writes files and folders of dir to a tar archive, below folder. The bytes depend only on names and
// contents.
func writeArchive(archive, folder, dir string, names ...string) error {
	var files []string
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(dir, name), func(p string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				files = append(files, p)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(files)
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	w := tar.NewWriter(gz)
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: folder + "/" + filepath.ToSlash(rel), Mode: int64(info.Mode().Perm()&0o111 | 0o644), Size: info.Size(),
			ModTime: time.Unix(0, 0), Typeflag: tar.TypeReg,
		}
		if err := errors.Join(w.WriteHeader(header),
			func() error { _, err := w.Write(data); return err }()); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Close(), gz.Close()); err != nil {
		return err
	}
	return os.WriteFile(archive, out.Bytes(), 0o644)
}

// writeSums writes SHA256SUMS, which "sha256sum --check" reads.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		sum, err := hashFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(text.String()), 0o644)
}
