// Command cmd clones the repositories of package corpus into a folder, each at its commit:
//
//	go run ./internal/corpus/cmd FOLDER
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/mlxgrad/mlxgrad/internal/corpus"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./internal/corpus/cmd FOLDER")
		os.Exit(2)
	}
	for _, r := range corpus.Repositories {
		if err := clone(r, filepath.Join(os.Args[1], r.Folder)); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", r.Name, err)
			os.Exit(1)
		}
	}
}

// clone fetches the commit of a repository without its history.
func clone(r corpus.Repository, folder string) error {
	for _, args := range [][]string{
		{"init", "--quiet", folder},
		{"-C", folder, "fetch", "--quiet", "--depth=1", "https://github.com/" + r.Name, r.Commit},
		{"-C", folder, "checkout", "--quiet", "FETCH_HEAD"},
	} {
		git := exec.Command("git", args...)
		git.Stdout, git.Stderr = os.Stdout, os.Stderr
		if err := git.Run(); err != nil {
			return fmt.Errorf("git %v: %w", args, err)
		}
	}
	return nil
}
