package main

import (
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// kernelLaunch is a launch to look at: of a kernel of this project, or of one in a user's file.
type kernelLaunch struct {
	kernel *customkernels.Kernel
	file   string // The user's; empty for a kernel of this project.
	// dtype and device are those of a kernel of this project.
	dtype  mlxc.DType
	device string
	// label tells the launch from others of its kernel.
	label  string
	launch customkernels.Launch
	inputs func() []*mlxc.Array
}

func (l kernelLaunch) name() string { return l.kernel.Name() + " " + l.label }

// leftOut is what a page of launches says at its end of those that are not on it: done is what
// was to be done with them, and was with n.
func leftOut(done string, withoutLaunch []string, incomplete bool, n int) string {
	var text strings.Builder
	for _, name := range withoutLaunch {
		fmt.Fprintf(&text, "not %s, for want of a launch description: %s\n", done, name)
	}
	switch {
	case incomplete:
		fmt.Fprintf(&text, "interrupted: not every launch was %s\n", done)
	case n == 0:
		text.WriteString("nothing ran: docs/sanitize.md says how a shader file describes launches, and --case may match none\n")
	}
	return text.String()
}

// shippedLaunches are those of this project's kernels.
func shippedLaunches(set ops.CaseSet) []kernelLaunch {
	var list []kernelLaunch
	for _, l := range ops.Launches(set) {
		list = append(list, kernelLaunch{
			kernel: l.Kernel,
			dtype:  l.DType,
			device: l.Device,
			label:  fmt.Sprintf("%v %s, %s geometry", l.DType, l.Case, l.Device),
			launch: l.Launch,
			inputs: l.Inputs,
		})
	}
	return list
}

// fileLaunches are those that the files' launch descriptions ask for, and the kernels that no
// description is of.
func fileLaunches(files []string, seed uint64) (list []kernelLaunch, without []string, err error) {
	for _, file := range files {
		launches, rest, err := launchesOf(file, seed)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, launches...)
		without = append(without, rest...)
	}
	return list, without, nil
}

// anyFile opens files wherever they are. The functions of package os that make a file system allow
// only paths below a folder, and so a shader would lose the name that the user gave it. The shader itself
// has been read: from a pipe it can be read once.
type anyFile struct {
	shader string
	text   []byte
}

// Open implements [fs.FS], but for the names that it takes.
func (anyFile) Open(name string) (fs.File, error) { return os.Open(name) }

// ReadFile implements [fs.ReadFileFS] in the same way.
func (f anyFile) ReadFile(name string) ([]byte, error) {
	if name == f.shader {
		return slices.Clone(f.text), nil
	}
	return os.ReadFile(name)
}

func launchesOf(file string, seed uint64) (list []kernelLaunch, without []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, nil, err
	}
	lib, err := customkernels.Load(anyFile{file, text}, file)
	if err != nil {
		return nil, nil, err
	}
	specs, err := customkernels.ParseLaunches(text)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	launched := map[string]bool{}
	for _, spec := range specs {
		k, err := lib.Kernel(spec.Kernel, spec.Options()...)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: line %d: launch description: %w", file, spec.Line, err)
		}
		launch, inputs, err := spec.Arguments(k, seed)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		launched[k.Name()] = true
		list = append(list, kernelLaunch{
			kernel: k,
			file:   file,
			label:  fmt.Sprintf("described at line %d", spec.Line),
			launch: launch,
			inputs: func() []*mlxc.Array { return inputs },
		})
	}
	for _, name := range lib.Names() {
		if !launched[name] {
			without = append(without, file+": "+name)
		}
	}
	return list, without, nil
}

// pick keeps the launches whose names match, all if there is no pattern.
func pick(list []kernelLaunch, pattern *regexp.Regexp) []kernelLaunch {
	if pattern == nil {
		return list
	}
	var picked []kernelLaunch
	for _, l := range list {
		if pattern.MatchString(l.name()) {
			picked = append(picked, l)
		}
	}
	return picked
}

// launchFlags choose launches: those of the commands that run kernels.
type launchFlags struct {
	Files []string `arg:"" optional:"" name:"file" help:"Shader files with launch descriptions. Without any, the kernels of this project."`
	Case  string   `help:"Only launches whose names match this regular expression, such as '^scale |float16'." placeholder:"REGEXP"`
	Seed  uint64   `help:"Decides the random inputs of launch descriptions and the shuffled orders of threads (default: ${default})." default:"1" placeholder:"S"`

	pattern *regexp.Regexp
}

// validate finds what is wrong with the flags.
func (f *launchFlags) validate() error {
	for _, file := range f.Files {
		if err := checkFile(file); err != nil {
			return err
		}
	}
	var err error
	f.pattern, err = patternOf("--case", f.Case)
	return err
}

// checkFile says what is wrong with the name of a shader file, if there is one.
func checkFile(file string) error {
	if file == "" {
		return nil
	}
	info, err := os.Stat(file)
	if err == nil && info.IsDir() {
		err = fmt.Errorf("%s is a folder: name shader files", file)
	}
	return err
}

// launches are those that the flags ask for; with no file, those of set.
func (f *launchFlags) launches(set ops.CaseSet) (list []kernelLaunch, without []string, err error) {
	if len(f.Files) == 0 {
		return pick(shippedLaunches(set), f.pattern), nil, nil
	}
	list, without, err = fileLaunches(f.Files, f.Seed)
	return pick(list, f.pattern), without, err
}
