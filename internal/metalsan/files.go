package metalsan

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// extensions holds the extensions of the files that a folder stands for.
var extensions = []string{".metal"}

// expand replaces folders by the shader files below them, and patterns by the files that match. Hidden folders are left
// out. The error is for a missing file, and for a folder or pattern without a shader file.
func expand(args []string) ([]string, error) {
	var files []string
	for _, arg := range args {
		found, err := shadersOf(arg)
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("%s: there is no shader file", arg)
		}
		for _, file := range found {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files, nil
}

// shadersOf returns the files that an argument stands for, sorted.
func shadersOf(arg string) ([]string, error) {
	info, err := os.Stat(arg)
	switch {
	case err == nil && info.IsDir():
		return shadersBelow(arg)
	case err == nil:
		return []string{arg}, nil
	case strings.ContainsAny(arg, "*?[{"):
		found, err := doublestar.FilepathGlob(arg, doublestar.WithFilesOnly(), doublestar.WithNoHidden())
		slices.Sort(found)
		return found, err
	}
	return nil, err
}

func shadersBelow(folder string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != folder && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !d.IsDir() && slices.Contains(extensions, filepath.Ext(path)):
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// launchFile returns the file beside a shader that describes its launches, or the empty string.
func launchFile(shader string) string {
	if info, err := os.Stat(shader + ".launches"); err == nil && info.Mode().IsRegular() {
		return shader + ".launches"
	}
	return ""
}
