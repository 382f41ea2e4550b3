package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/ops"
)

// sourceCommand is "mlxgrad source".
type sourceCommand struct {
	Kernel  string
	File    string
	Include []string
	DType   string
	Backend string
	Launch  int
}

func newSource() *cobra.Command {
	var c sourceCommand
	command := &cobra.Command{
		Use:   "source KERNEL",
		Short: "Print the Metal text that MLX generates for a kernel",
		Long: `Prints the Metal text that MLX generates for a launch, without MLX's own prelude. Apple's compiler
gets this text on an Apple GPU; the host executor and the checker compile it elsewhere.`,
		Example: `  mlxgrad source softmax_backward --dtype float16
  mlxgrad source scale --file kernel.metal --launch 2`,
		Args:              cli.OneArg("kernels"),
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := command.Flags()
	f.StringVar(&c.File, "file", "", "shader `FILE` with the kernel and a launch description (default: a kernel of this project)")
	metalsan.AddInclude(command, &c.Include)
	cli.Choice(command, &c.DType, "dtype", "dtype of a kernel of this project", dtypeNames())
	cli.Choice(command, &c.Backend, "backend", "for a kernel of this project, the backend that selects the geometry; "+
		"a launch that backends share is listed under the first of cpu, metal, cuda", []string{"metal", "cpu", "cuda"})
	f.IntVar(&c.Launch, "launch", 1, "for a kernel of a file, the number `N` of its launch description, from 1")
	return cli.Verb(command, c.validate, c.run)
}

// validate checks the flags.
func (c *sourceCommand) validate(args []string) error {
	c.Kernel = args[0]
	if c.Launch < 1 {
		return fmt.Errorf("--launch is %d; it must be at least 1", c.Launch)
	}
	return metalsan.CheckShader(c.File)
}

// run prints the text.
func (c *sourceCommand) run(s cli.Streams) error {
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
	_, err = fmt.Fprintln(s.Out, strings.TrimRight(text, "\n"))
	return err
}

// find returns the selected launch.
func (c *sourceCommand) find() (metalsan.Launch, error) {
	var chosen metalsan.Chosen
	var all []shippedLaunch
	if c.File == "" {
		all = shippedLaunches(ops.TypicalCases)
	} else if chosen.Add(context.Background(), c.File, sanitizer.NativeOptions{Include: c.Include}, 1); len(chosen.Failed) > 0 {
		return metalsan.Launch{}, errors.New(strings.TrimSuffix(chosen.Failed[0].String(), "\n"))
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
			"%s has %s; --launch must not be larger",
			c.Kernel,
			metalsan.Count(len(found), "launch description"),
		)
	case slices.Contains(chosen.Without, c.File+": "+c.Kernel):
		return metalsan.Launch{}, fmt.Errorf("%s: %s has no launch description; see docs/sanitize.md", c.File, c.Kernel)
	}
	return metalsan.Launch{}, fmt.Errorf("there is no kernel %s; the kernels are %s", c.Kernel, strings.Join(names, ", "))
}
