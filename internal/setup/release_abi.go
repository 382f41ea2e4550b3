package setup

import (
	"debug/elf"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// compatible returns an error if libmlxc or libmlxg needs a newer C or C++ library than libmlx.
func compatible(install string) error {
	allowed, err := neededVersions(filepath.Join(install, "mlx", "lib", "libmlx.so"))
	if err != nil {
		return err
	}
	for _, name := range []string{"libmlxc.so", "libmlxg.so"} {
		needed, err := neededVersions(filepath.Join(install, "lib", name))
		if err != nil {
			return err
		}
		for family, version := range needed {
			if slices.Compare(version, allowed[family]) > 0 {
				return failf("compile on an older system, such as Debian 12", "%s needs %s %v, and MLX at most %v",
					name, family, version, allowed[family])
			}
		}
	}
	return nil
}

var symbolVersion = regexp.MustCompile(`^(GLIBC|GLIBCXX|CXXABI|GCC)_([0-9.]+)$`)

// neededVersions returns the newest versions of the symbols that a library needs, such as GLIBC 2 35.
func neededVersions(library string) (map[string][]int, error) {
	f, err := elf.Open(library)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	symbols, err := f.ImportedSymbols()
	if err != nil {
		return nil, err
	}
	newest := map[string][]int{}
	for _, s := range symbols {
		m := symbolVersion.FindStringSubmatch(s.Version)
		if m == nil {
			continue
		}
		var version []int
		for part := range strings.SplitSeq(m[2], ".") {
			var n int
			if _, err := fmt.Sscan(part, &n); err != nil {
				return nil, err
			}
			version = append(version, n)
		}
		if slices.Compare(version, newest[m[1]]) > 0 {
			newest[m[1]] = version
		}
	}
	return newest, nil
}
