package metalsan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
)

// Launch is a kernel launch that a command can check. The functions of different launches may run concurrently.
type Launch struct {
	Kernel            string
	File              string         // empty for a kernel of this project
	Described         sanitizer.Site // place of the launch description, or empty
	Label             string         // distinguishes the launches of a kernel
	Grid, Threadgroup [3]int
	Sanitize          func(ctx context.Context, c sanitizer.Config) (*sanitizer.Report, error)
	Source            func() (string, error) // the Metal text that MLX generates
}

// name returns the name that --case matches.
func (l Launch) name() string { return l.Kernel + " " + l.Label }

// LeftOut returns the end of a report: the kernels without a launch description or that cannot run, and the reason if
// launches are missing. done is the participle of the command's verb, such as "run". n is the number of launches in
// the report.
func LeftOut(done string, withoutLaunch, unsupported []string, incomplete bool, n int) string {
	var text strings.Builder
	for _, problem := range unsupported {
		fmt.Fprintf(&text, "not %s: unsupported: %s\n", done, problem)
	}
	for _, name := range withoutLaunch {
		fmt.Fprintf(&text, "not %s: no launch description: %s\n", done, name)
	}
	switch {
	case incomplete:
		fmt.Fprintf(&text, "interrupted: not every launch was %s\n", done)
	case n == 0:
		text.WriteString("nothing ran: no launch matches; docs/sanitize.md documents launch descriptions and --case\n")
	}
	return text.String()
}

// Chosen holds the launches that the flags select.
type Chosen struct {
	List    []Launch
	Without []string // kernels without a launch description
	// Unsupported holds the kernels that cannot run, with the reason.
	Unsupported []string
	Failed      []FailedFile

	descriptions string // file with the launch descriptions; empty for the shader itself or the file beside it
	suppressions []*suppression
}

// Add adds the launches of a file. A file that does not load, or a description that does not fit its kernel, is added
// to Failed.
func (c *Chosen) Add(ctx context.Context, file string, o sanitizer.NativeOptions, seed uint64) {
	fail := func(err error, file string, line int) { c.Failed = append(c.Failed, problemsOf(err, file, line)...) }
	files, err := newShaderFiles(file, o.Include)
	if err != nil {
		fail(err, file, 1)
		return
	}
	lib, err := load(ctx, files, o)
	c.addSuppressions(files)
	if err != nil {
		fail(err, file, 1)
		return
	}
	from, descriptions, place := cmp.Or(c.descriptions, launchFile(file)), files.text, ""
	if from != "" {
		if descriptions, err = os.ReadFile(from); err != nil {
			fail(err, file, 1)
			return
		}
		place = " of " + from
	}
	from = cmp.Or(from, file)
	specs, err := launchspec.Parse(lib.comments(descriptions))
	if err != nil {
		fail(err, from, 1)
		return
	}
	if len(lib.Names()) == 0 {
		c.Unsupported = append(c.Unsupported, file+": the file has no kernel")
	}
	described := map[string]bool{}
	for _, spec := range specs {
		described[spec.Kernel] = true
		k, err := lib.kernel(ctx, spec)
		if err != nil {
			fail(fmt.Errorf("launch description: %w", err), from, spec.Line)
			continue
		}
		described[k.Name()] = true
		if err := spec.ReadFiles(files, filepath.Dir(file)); err != nil {
			fail(err, from, spec.Line)
			continue
		}
		for i := range uint64(max(spec.Seeds, 1)) {
			label := fmt.Sprintf("described at line %d%s", spec.Line, place)
			if spec.Seeds > 1 {
				label += fmt.Sprintf(", seed %d", seed+i)
			}
			launch, err := newLaunch(k, lib, files, spec, seed+i, label)
			if err != nil {
				fail(err, from, spec.Line)
				break
			}
			launch.Described = sanitizer.Site{File: from, Line: spec.Line, Column: 1}
			c.List = append(c.List, launch)
		}
	}
	for _, name := range lib.Names() {
		if err := lib.Problem(name); err != nil {
			c.Unsupported = append(c.Unsupported, fmt.Sprintf("%s: %v", name, err))
		} else if !described[name] {
			c.Without = append(c.Without, file+": "+name)
		}
	}
}

// newLaunch returns the launch of a description with the inputs of a seed.
func newLaunch(
	k *sanitizer.Kernel, lib source, files shaderFiles, spec launchspec.Spec, seed uint64, label string,
) (Launch, error) {
	launch, inputs, err := spec.Arguments(k, seed)
	if err != nil {
		return Launch{}, err
	}
	launch.Template = lib.template(launch)
	return Launch{
		Kernel: k.Name(), File: files.shader, Label: label,
		Grid: launch.Grid, Threadgroup: launch.Threadgroup,
		Sanitize: func(ctx context.Context, config sanitizer.Config) (*sanitizer.Report, error) {
			return k.Sanitize(ctx, launch, config, inputs...)
		},
		Source: func() (string, error) {
			if _, isPython := lib.(pythonSource); isPython {
				return "", fmt.Errorf("%s: Python has the source of its kernels", files.shader)
			}
			k, launch, inputs, err := mlxLaunch(files, files.shader, spec, seed)
			if err != nil {
				return "", err
			}
			if reason := k.UnsupportedByMLX(launch, inputs...); reason != "" {
				return "", fmt.Errorf("MLX's custom kernels do not support this launch of %s, but the sanitizer "+
					"can check it: %s", k.Name(), reason)
			}
			return k.MetalSource(launch, inputs...)
		},
	}, nil
}

// mlxLaunch returns the kernel and arguments of a launch as MLX's custom kernels take them.
func mlxLaunch(files shaderFiles, file string, spec launchspec.Spec, seed uint64) (
	k *sanitizer.Kernel, l sanitizer.Launch, inputs []sanitizer.Array, err error,
) {
	lib, err := sanitizer.Load(files, file)
	if err != nil {
		return nil, l, nil, fmt.Errorf("MLX's custom kernels do not support the file: %w", err)
	}
	if k, err = lib.Kernel(spec.Kernel, spec.Options()...); err != nil {
		return nil, l, nil, err
	}
	l, inputs, err = spec.Arguments(k, seed)
	return k, l, inputs, err
}

// Flags holds the flags that select launches.
type Flags struct {
	Files   []string // shader files with launch descriptions
	Include []string
	Define  []string // macros
	From    string   // file with the launch descriptions of the only shader file
	Case    string
	Seed    uint64

	pattern *regexp.Regexp
}

// Register adds the flags to a command whose arguments are shader files.
func (f *Flags) Register(c *cobra.Command) {
	c.ValidArgsFunction = cli.Files("metal", "py")
	AddInclude(c, &f.Include)
	c.Flags().StringVar(&f.From, "launches", "", "read the launch descriptions from `FILE` instead of from the shader file")
	c.Flags().StringArrayVarP(&f.Define, "define", "D", nil, "macro `NAME` or NAME=VALUE for the shaders; may be repeated")
	c.Flags().StringVar(&f.Case, "case", "", "run only launches whose names match this `REGEXP`, such as '^scale |float16'")
	c.Flags().Uint64Var(&f.Seed, "seed", 1, "seed `S` of the random inputs and thread orders")
}

// AddInclude adds the flag --include.
func AddInclude(c *cobra.Command, p *[]string) {
	c.Flags().StringArrayVarP(p, "include", "I", nil,
		"folder `DIR` from which shaders may include files, besides their own folder; may be repeated")
	if err := c.MarkFlagDirname("include"); err != nil {
		panic(err) // the flag exists
	}
}

// Check sets Files to the files that the arguments stand for. It returns an error if a file is missing, or if --case is
// not a regular expression.
func (f *Flags) Check(args []string) (err error) {
	if f.Files, err = expand(args); err != nil {
		return err
	}
	if f.From != "" && len(f.Files) != 1 {
		return fmt.Errorf("--launches is for one shader file, and there are %d", len(f.Files))
	}
	f.pattern, err = cli.Pattern("--case", f.Case)
	return err
}

// CheckShader returns an error if a shader file is missing or is a folder. An empty name means no file.
func CheckShader(file string) error {
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		err = errors.New(file + " is a folder; name shader files")
	}
	return err
}

// Launches returns the launches of the files, or of own if there are no files. It keeps only launches that --case
// matches. Failed files and kernels without a launch description are not filtered.
func (f *Flags) Launches(ctx context.Context, own func() []Launch) Chosen {
	c := Chosen{}
	if len(f.Files) == 0 {
		c.List = own()
	}
	for _, part := range inParallel(f.Files, func(file string) Chosen {
		part := Chosen{descriptions: f.From}
		part.Add(ctx, file, f.options(), f.Seed)
		return part
	}) {
		c.List, c.Without = append(c.List, part.List...), append(c.Without, part.Without...)
		c.Unsupported, c.Failed = append(c.Unsupported, part.Unsupported...), append(c.Failed, part.Failed...)
		c.mergeSuppressions(part.suppressions)
	}
	if f.pattern != nil {
		var picked []Launch
		for _, l := range c.List {
			if f.pattern.MatchString(l.name()) {
				picked = append(picked, l)
			}
		}
		c.List = picked
	}
	return c
}

// inParallel calls a function for each file on all processors, and returns the results in the order of the files.
func inParallel[R any](files []string, call func(file string) R) []R {
	results := make([]R, len(files))
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	var running sync.WaitGroup
	for i, file := range files {
		limit <- struct{}{}
		running.Go(func() {
			defer func() { <-limit }()
			results[i] = call(file)
		})
	}
	running.Wait()
	return results
}

// options returns the options of the preprocessor.
func (f *Flags) options() sanitizer.NativeOptions {
	return sanitizer.NativeOptions{Include: f.Include, Define: f.Define}
}
