// Package upgrade shows what a new release of MLX means for this project: the entry of the lock file, the changes of the
// C++ headers and their users in mlx-c and libmlxg, compiler errors, and the decisions that remain for a person.
// ./build.sh upgrade runs it. It changes no tracked file unless told to write the lock file.
package upgrade

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/internal/outfile"
	"github.com/mlxgrad/mlxgrad/internal/setup"
)

// Options are the arguments of ./build.sh upgrade.
type Options struct {
	Root     string // third_party/mlx-c of the checkout
	Version  string // of MLX, or newest
	From     string // the version to compare with; empty: the lock file's default
	Write    bool   // add the entry to the lock file
	Markdown string // if set, the file of the report in Markdown
}

// Newest stands for the newest release that pip finds.
const Newest = "newest"

// Run compares a release of MLX with one of the lock file and writes the report to out. If the version is Newest and the
// lock file has it, Run says so and writes no file. progress is called for each step and may be nil. Faults of the new
// release, such as compiler errors, are part of the report. Run returns an error if it cannot make or write the report.
func Run(ctx context.Context, o Options, out io.Writer, progress func(setup.Progress)) (err error) {
	w, err := setup.OpenWorkshop(ctx, o.Root, progress)
	if err != nil {
		return err
	}
	defer func() {
		if closing := w.Close(); err == nil {
			err = closing
		}
	}()
	if o.Version == Newest {
		if o.Version, err = w.Newest(ctx); err != nil {
			return err
		}
		if _, err := w.Known(o.Version); err == nil {
			_, err := fmt.Fprintf(out, "MLX %s is the newest release that pip finds, and the lock file has it.\n", o.Version)
			return err
		}
	}
	r, err := examine(ctx, w, o, progress)
	if err != nil {
		return err
	}
	if err := r.write(out, plain{}); err != nil {
		return err
	}
	if o.Markdown != "" {
		return outfile.Write(o.Markdown, func(f io.Writer) error { return r.write(f, markdown{}) })
	}
	return nil
}

// examine makes the report.
func examine(ctx context.Context, w *setup.Workshop, o Options, progress func(setup.Progress)) (*report, error) {
	say := func(format string, args ...any) {
		if progress != nil {
			progress(setup.Progress{Message: fmt.Sprintf(format, args...)})
		}
	}
	c, err := findClang(ctx)
	if err != nil {
		return nil, err
	}
	from, err := w.Known(o.From)
	if err != nil {
		return nil, err
	}
	to, notes, err := w.Candidate(ctx, o.Version, from)
	if err != nil {
		return nil, err
	}
	r := &report{From: from.Version(), To: to.Version(), MLXC: to.MLXC(), Rules: to.Rules(), Packages: notes, Written: o.Write}
	if r.Entry, err = to.Entry(); err != nil {
		return nil, err
	}
	if _, err := w.Unpack(ctx, from); err != nil {
		return nil, err
	}
	if r.Unfit, err = w.Unpack(ctx, to); err != nil {
		return nil, err
	}

	say("comparing the headers of MLX %s and %s", r.From, r.To)
	dir, units := from.Sources()
	headers, err := includedHeaders(dir)
	if err != nil {
		return nil, err
	}
	had, _ := partition(from.Include(), headers)
	has, gone := partition(to.Include(), headers)
	before, beforeBases, err := readHeaders(c, from.Include(), had)
	if err != nil {
		return nil, err
	}
	after, bases, err := readHeaders(c, to.Include(), has)
	if err != nil {
		return nil, err
	}
	r.Headers = gone
	r.Changes = compare(before, after)
	maps.Copy(bases, beforeBases)

	say("parsing mlx-c and libmlxg against MLX %s", r.From)
	used, err := checkSources(c, dir, from.Include(), units)
	if err != nil {
		return nil, err
	}
	if len(used.errors) > 0 {
		first := used.errors[0]
		return nil, fmt.Errorf("mlx-c does not compile against MLX %s with %s: %s: %s", r.From, c.name, first.Place(), first.Message)
	}
	mark(r.Changes, used.uses, bases)

	say("parsing mlx-c and libmlxg against MLX %s", r.To)
	dir, units = to.Sources()
	checked, err := checkSources(c, dir, to.Include(), units)
	if err != nil {
		return nil, err
	}
	r.Errors = checked.errors
	if len(r.Errors) == 0 {
		r.Build = w.Compile(ctx, to)
		r.Built = true
	}

	say("generating the bindings")
	if r.Generated, r.Generator, err = generate(ctx, w.Repository(), filepath.Join(dir, "mlx", "c")); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if o.Write {
		return r, w.Write(to)
	}
	return r, nil
}

var included = regexp.MustCompile(`(?m)^\s*#include "(mlx/[^"]+)"`)

// includedHeaders returns the headers of MLX that the sources of mlx-c and libmlxg include, and mlx/mlx.h, sorted.
func includedHeaders(dir string) ([]string, error) {
	found := map[string]bool{"mlx/mlx.h": true}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range included.FindAllStringSubmatch(string(text), -1) {
			if !strings.HasPrefix(m[1], "mlx/c/") {
				found[m[1]] = true
			}
		}
		return err
	})
	return slices.Sorted(maps.Keys(found)), err
}

// partition separates the headers that an include folder has from the others.
func partition(include string, headers []string) (present, missing []string) {
	for _, h := range headers {
		if _, err := os.Stat(filepath.Join(include, filepath.FromSlash(h))); err != nil {
			missing = append(missing, h)
		} else {
			present = append(present, h)
		}
	}
	return present, missing
}
