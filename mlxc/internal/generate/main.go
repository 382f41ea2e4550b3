// Command generate writes the thin layer of package mlxc: one C function and one Go
// function for every regular function of mlx-c's headers, the pinned ones that
// ./build.sh setup brings. `go generate ./mlxc` runs it.
//
// Regular is a function whose parameters and results are arrays, lists of arrays,
// numbers, lists of numbers, dtypes and text. What takes closures, files, devices or
// kernels is bound by hand, in mlxc's other files; what needs no binding is on the list
// in skipped.txt, with the reason. A function of the headers that is none of these is an
// error, so that a new mlx-c cannot bring one unnoticed.
//
// To move to another mlx-c: change third_party/mlx-c/lock.json, run ./build.sh setup and
// go generate ./mlxc, and read the difference.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
)

func main() {
	headers := flag.String("headers", filepath.Join("..", "third_party", "mlx-c", "install", "include", "mlx", "c"), "mlx-c's headers")
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

// allFiles are the files that this command writes, by their paths in the package's folder.
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
	executor, err := os.ReadFile(filepath.Join(pkg, "..", "customkernels", "internal", "executor", "runtime.h"))
	if err != nil {
		return nil, err
	}
	maps.Copy(files, emitInterface(string(executor), append(headers, string(files[callsHeader]))...))
	return files, nil
}

// removeStale removes what an earlier run wrote and this one did not.
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
