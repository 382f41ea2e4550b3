package setup

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// fingerprint hashes everything that determines an installation. An installation with an equal fingerprint is up to
// date.
func (s *setup) fingerprint(tools *toolchain) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s/%s %q %q %q %q %q %q\n", runtime.GOOS, runtime.GOARCH, s.choice.backend(), s.choice.MLX,
		s.choice.MLXDir, s.choice.MLXCSource, tools.command, tools.version)
	fmt.Fprintf(h, "%q %q\n", tools.compileFlags(), tools.linkFlags("mlxc"))
	if err := s.hashSources(h); err != nil {
		return "", err
	}
	var files []string
	if s.choice.ASan {
		fmt.Fprintf(h, "%q\n", asanFlags)
	}
	if d := s.choice.MLXDir; d != "" {
		files = append(files, filepath.Join(d, "include", "mlx", "version.h"))
		// Hashing the library would take too long for every run.
		st, err := os.Stat(filepath.Join(d, "lib", tools.library("mlx")))
		if err != nil {
			return "", failf("set MLX_DIR to a folder that has include/mlx and lib/libmlx",
				"%s holds no MLX (lib/%s is missing)", d, tools.library("mlx"))
		}
		fmt.Fprintf(h, "%d %d\n", st.Size(), st.ModTime().UnixNano())
	}
	if src := s.choice.MLXCSource; src != "" {
		if st, err := os.Stat(src); err == nil && !st.IsDir() {
			files = append(files, src)
		} else {
			if _, err := mlxcVersionOf(src); err != nil {
				return "", err
			}
			tree, err := readTree(src)
			if err != nil {
				return "", err
			}
			files = append(files, filepath.Join(src, "CMakeLists.txt"))
			for _, name := range tree.names("") {
				files = append(files, filepath.Join(src, filepath.FromSlash(name)))
			}
		}
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(h, "%s %d\n", filepath.Base(name), len(data))
		h.Write(data)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// hashSources hashes the files of the repository that libmlxc and libmlxg are made from, and the pair's entry in the
// lock file without Prebuilt, which a release writes.
func (s *setup) hashSources(w io.Writer) error {
	entry := *s.pair
	entry.Prebuilt = nil
	data, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	patterns := append([]string{patches + "/*.h", patches + "/*.cpp"}, libmlxgSources...)
	for _, name := range s.pair.Rules {
		patterns = append(patterns, patches+"/"+name)
	}
	files, err := readFiles(s.sources, patterns...)
	if err != nil {
		return err
	}
	files[lockName] = data
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := fmt.Fprintf(w, "%s %d\n%s", name, len(files[name]), files[name]); err != nil {
			return err
		}
	}
	return nil
}
