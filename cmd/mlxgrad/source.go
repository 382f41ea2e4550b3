package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/ops"
)

// sourceCommand is "mlxgrad source".
type sourceCommand struct {
	Kernel  string   `arg:"" help:"The kernel's name."`
	File    string   `help:"A shader file with the kernel and a launch description (default: a kernel of this project)." placeholder:"FILE"`
	Include []string `name:"include" help:"A folder whose files the shader may include, besides those below its own folder. May be given several times." placeholder:"DIR"`
	DType   string   `name:"dtype" help:"For a kernel of this project, its dtype: ${enum} (default: ${default})." enum:"float32,float16,bfloat16" default:"float32" placeholder:"DTYPE"`
	Backend string   `help:"For a kernel of this project, the backend that selects the geometry: ${enum} (default: ${default}). A launch that backends share is listed under the first." enum:"cpu,metal,cuda" default:"metal" placeholder:"BACKEND"`
	Launch  int      `help:"For a kernel of a file, the number of its launch description, from 1 (default: ${default})." default:"1" placeholder:"N"`
}

// Help returns the text of --help after the flags.
func (*sourceCommand) Help() string {
	return `Prints the Metal text that MLX generates for a launch, without MLX's own prelude. Apple's compiler gets this text on an
Apple GPU; the host executor and the checker compile it elsewhere.`
}

// Validate checks the flags.
func (c *sourceCommand) Validate() error {
	if c.Launch < 1 {
		return fmt.Errorf("--launch must be at least 1, not %d", c.Launch)
	}
	return metalsan.CheckShader(c.File)
}

// Run prints the text on w.
func (c *sourceCommand) Run(w io.Writer) error {
	if c.File == "" {
		if err := checkMLX(); err != nil {
			return err
		}
	}
	l, err := c.find()
	if err != nil {
		return err
	}
	text, err := l.Source()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(text, "\n"))
	return err
}

// find returns the selected launch.
func (c *sourceCommand) find() (metalsan.Launch, error) {
	var chosen metalsan.Chosen
	var all []shippedLaunch
	if c.File == "" {
		all = shippedLaunches(ops.TypicalCases)
	} else if chosen.Add(c.File, c.Include, 1); len(chosen.Failed) > 0 {
		return metalsan.Launch{}, errors.New(chosen.Failed[0].File + ": " + chosen.Failed[0].Error)
	}
	for _, l := range chosen.List {
		all = append(all, shippedLaunch{Launch: l})
	}
	var names, others []string
	var found []metalsan.Launch
	for _, l := range all {
		if !slices.Contains(names, l.Kernel) {
			names = append(names, l.Kernel)
		}
		if l.Kernel != c.Kernel {
			continue
		}
		if c.File == "" && (l.dtype.String() != c.DType || string(l.backend) != c.Backend) {
			if l.dtype.String() == c.DType && !slices.Contains(others, string(l.backend)) {
				others = append(others, string(l.backend))
			}
			continue
		}
		found = append(found, l.Launch)
	}
	switch {
	case len(found) >= c.Launch:
		return found[c.Launch-1], nil
	case len(others) > 0 && len(found) == 0:
		return metalsan.Launch{}, fmt.Errorf(
			"%s has no launch of its own for %s on %s: use --backend %s",
			c.Kernel,
			c.DType,
			c.Backend,
			strings.Join(others, " or "),
		)
	case len(found) > 0:
		return metalsan.Launch{}, fmt.Errorf(
			"%s has %s; --launch must be at most that",
			c.Kernel,
			metalsan.Count(len(found), "launch description"),
		)
	case slices.Contains(chosen.Without, c.File+": "+c.Kernel):
		return metalsan.Launch{}, fmt.Errorf("%s: %s has no launch description; see docs/sanitize.md", c.File, c.Kernel)
	}
	return metalsan.Launch{}, fmt.Errorf("there is no kernel %s; the kernels are %s", c.Kernel, strings.Join(names, ", "))
}
