package main

import (
	"fmt"
	"os"
	"regexp"
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

// failedFile is a shader file of which not everything could be launched.
type failedFile struct {
	File  string `json:"file"`
	Error string `json:"error"`
}

func (f failedFile) String() string { return fmt.Sprintf("%s: error: not run: %s\n", f.File, f.Error) }

// chosenLaunches are the launches that flags ask for, and what was left out.
type chosenLaunches struct {
	list    []kernelLaunch
	without []string // kernels that no description is of
	failed  []failedFile
}

// add adds the launches of a file. A file that cannot be read, and a description that does not fit
// its kernel, are failures of their own.
func (c *chosenLaunches) add(file string, include []string, seed uint64) {
	fail := func(err error) { c.failed = append(c.failed, failedFile{file, message(err)}) }
	files, err := newShaderFiles(file, include)
	if err != nil {
		fail(err)
		return
	}
	lib, err := customkernels.Load(files, file)
	if err != nil {
		fail(err)
		return
	}
	specs, err := customkernels.ParseLaunches(files.text)
	if err != nil {
		fail(err)
		return
	}
	described := map[string]bool{}
	for _, spec := range specs {
		described[spec.Kernel] = true
		k, err := lib.Kernel(spec.Kernel, spec.Options()...)
		if err != nil {
			fail(fmt.Errorf("line %d: launch description: %w", spec.Line, err))
			continue
		}
		described[k.Name()] = true
		launch, inputs, err := spec.Arguments(k, seed)
		if err != nil {
			fail(err)
			continue
		}
		c.list = append(c.list, kernelLaunch{
			kernel: k,
			file:   file,
			label:  fmt.Sprintf("described at line %d", spec.Line),
			launch: launch,
			inputs: func() []*mlxc.Array { return inputs },
		})
	}
	for _, name := range lib.Names() {
		if !described[name] {
			c.without = append(c.without, file+": "+name)
		}
	}
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
	Files   []string `arg:"" optional:"" name:"file" help:"Shader files with launch descriptions. Without any, the kernels of this project."`
	Include []string `name:"include" help:"A folder whose files the shaders may include, besides those below a shader's own folder. May be given several times." placeholder:"DIR"`
	Case    string   `help:"Only launches whose names match this regular expression, such as '^scale |float16'." placeholder:"REGEXP"`
	Seed    uint64   `help:"Decides the random inputs of launch descriptions and the shuffled orders of threads (default: ${default})." default:"1" placeholder:"S"`

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
func (f *launchFlags) launches(set ops.CaseSet) chosenLaunches {
	var c chosenLaunches
	if len(f.Files) == 0 {
		c.list = shippedLaunches(set)
	}
	for _, file := range f.Files {
		c.add(file, f.Include, f.Seed)
	}
	c.list = pick(c.list, f.pattern)
	return c
}
