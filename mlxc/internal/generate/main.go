// Command generate writes the generated bindings of package mlxc: one C function and one Go function for each regular
// function in the headers of the pinned mlx-c, which ./build.sh setup installs. `go generate ./mlxc` runs it.
//
// libmlxg's mlxg_ahead.h declares functions of MLX that mlx-c lacks, in mlx-c's style. They are bound like mlx-c's.
//
// A function is regular if its parameters and results are arrays, numbers, lists of these, dtypes and strings.
// Functions on closures, files, devices or kernels are bound by hand in mlxc's other files. skipped.txt lists functions
// without a binding, with the reason. Any other function is an error, so that an update of mlx-c cannot add one
// unnoticed.
//
// To update mlx-c, change third_party/mlx-c/lock.json, run ./build.sh setup and go generate ./mlxc, and review the
// difference.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	headers := flag.String("headers", filepath.Join("..", "third_party", "mlx-c", "install", "include", "mlx", "c"),
		"mlx-c's headers")
	pkg := flag.String("package", ".", "the folder of package mlxc")
	list := flag.Bool("list", false, "print every function of the headers and how it is bound, and write nothing")
	flag.Parse()
	if err := run(*headers, *pkg, *list, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(headers, pkg string, list bool, out io.Writer) error {
	c, err := survey(headers, pkg)
	if err != nil {
		return err
	}
	if list {
		c.print(out)
		return c.err()
	}
	files, err := allFiles(c, pkg)
	if err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(pkg, name), text, 0o644); err != nil {
			return err
		}
	}
	return errors.Join(c.err(), removeStale(pkg, files))
}

// allFiles returns the generated files by their paths in the package's folder.
func allFiles(c *coverage, pkg string) (map[string][]byte, error) {
	files, err := emit(c.generated())
	if err != nil {
		return nil, err
	}
	var headers []string
	for _, name := range []string{"mlxg.h", "mlxg_io.h"} {
		text, err := os.ReadFile(filepath.Join(pkg, name))
		if err != nil {
			return nil, err
		}
		headers = append(headers, string(text))
	}
	// The interface of the host executor, and the data that it shares with compiled kernels.
	var executor strings.Builder
	for _, name := range []string{"executor/runtime.h", "metalstd/host/mlxg_abi.h", "metalstd/host/mlxg_positions.h"} {
		text, err := os.ReadFile(filepath.Join(pkg, "..", "customkernels", "internal", name))
		if err != nil {
			return nil, err
		}
		executor.Write(text)
	}
	maps.Copy(files, emitInterface(executor.String(), append(headers, string(files[callsHeader]))...))
	return files, nil
}

// removeStale removes generated files of earlier runs that are not in files.
func removeStale(pkg string, files map[string][]byte) error {
	old, err := filepath.Glob(filepath.Join(pkg, generatedPrefix+"*.go"))
	if err != nil {
		return err
	}
	for _, f := range old {
		if _, ok := files[filepath.Base(f)]; !ok {
			if err := os.Remove(f); err != nil {
				return err
			}
		}
	}
	return nil
}
