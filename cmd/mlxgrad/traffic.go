package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/ops"
)

// trafficCommand is "mlxgrad traffic".
type trafficCommand struct {
	metalsan.Flags
	Timeout time.Duration
	JSON    string
}

func newTraffic() *cobra.Command {
	var c trafficCommand
	command := &cobra.Command{
		Use:   "traffic [FILE...]",
		Short: "Count the bytes that Metal kernels move, their barriers and SIMD operations",
		Long:  trafficHelp,
		Example: `  mlxgrad traffic kernel.metal
  mlxgrad traffic --case '^softmax_backward bfloat16' --json traffic.json`,
	}
	c.Register(command)
	f := command.Flags()
	f.DurationVar(&c.Timeout, "timeout", time.Minute, "time limit `TIME` of a launch")
	f.StringVar(&c.JSON, "json", "",
		"also write the report as JSON to `FILE`; with - it goes to standard output, and the text to standard error")
	return cli.Verb(command, c.validate, c.run)
}

const trafficHelp = `Counts the memory traffic of a launch. For each buffer and threadgroup variable: the bytes issued,
the compulsory bytes (each address once), and their ratio, which is at least 1. For each launch:
barriers and SIMD operations, once for each group or simdgroup; 32-byte segments of device memory
that the accesses of simdgroups touch; bank conflicts of threadgroup memory.

The counts depend on the compiler and its flags. Compare only counts of the same compiler and
flags. They are not times.

Without a file the command counts the kernels of this project.`

// validate checks the flags.
func (c *trafficCommand) validate(args []string) error {
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout is %v; it must be positive", c.Timeout)
	}
	if err := c.Check(args); err != nil {
		return err
	}
	return cli.CheckOutput("--json", c.JSON)
}

// trafficReport is the JSON of "mlxgrad traffic".
type trafficReport struct {
	MLX        string `json:"mlx"`
	Compiler   string `json:"compiler"`
	Flags      string `json:"flags"`
	Incomplete bool   `json:"incomplete"` // the run was interrupted
	// WithoutLaunch lists the kernels of the files that have no launch description.
	WithoutLaunch []string              `json:"without_launch"`
	Unsupported   []string              `json:"unsupported_kernels"`
	FailedFiles   []metalsan.FailedFile `json:"failed_files"`
	Launches      []launchTraffic       `json:"launches"`
}

// launchTraffic is the traffic of one launch.
type launchTraffic struct {
	Kernel string `json:"kernel"`
	File   string `json:"file,omitempty"`
	Launch string `json:"launch"`
	// Error says why there are no figures.
	Error             string          `json:"error,omitempty"`
	Barriers          uint64          `json:"barriers"`
	SIMDOperations    uint64          `json:"simd_operations"`
	Segments          uint64          `json:"segments"`
	BankConflicts     uint64          `json:"bank_conflicts"`
	ThreadgroupMemory int             `json:"threadgroup_memory"`
	Buffers           []bufferTraffic `json:"buffers"`
}

// bufferTraffic is the traffic of a launch with one buffer, in bytes.
type bufferTraffic struct {
	Name        string  `json:"name"`
	Threadgroup bool    `json:"threadgroup"`
	Read        uint64  `json:"read"`
	Written     uint64  `json:"written"`
	Compulsory  uint64  `json:"compulsory"`
	Ratio       float64 `json:"ratio"`
}

// run counts the traffic and reports as text and in the JSON file.
func (c *trafficCommand) run(s cli.Streams) error {
	if len(c.Files) == 0 {
		if err := checkMLX(); err != nil {
			return err
		}
	}
	ctx, stop := cli.UntilSignal()
	defer stop()
	chosen := c.Launches(ctx, func() []metalsan.Launch { return launchesOf(ops.TypicalCases) })
	r := &trafficReport{
		MLX: sanitizer.MLXVersion, WithoutLaunch: append([]string{}, chosen.Without...),
		Unsupported: append([]string{}, chosen.Unsupported...),
		FailedFiles: append([]metalsan.FailedFile{}, chosen.Failed...), Launches: []launchTraffic{},
	}
	out := s.Text(c.JSON)
	defer out.Status.End()
	for _, f := range chosen.Failed {
		out.Print(f.String())
	}
	failed := len(chosen.Failed) > 0
	for i, l := range chosen.List {
		out.Status.Set("launch %d of %d: %s", i+1, len(chosen.List), l.Kernel)
		found, err := l.Sanitize(ctx, sanitizer.Config{Schedules: 1, Seed: c.Seed, Timeout: c.Timeout})
		if r.Incomplete = ctx.Err() != nil; r.Incomplete {
			break
		}
		t := newLaunchTraffic(l, found, err)
		failed = failed || t.Error != ""
		if err == nil && t.Error == "" {
			r.Compiler, r.Flags = found.Traffic.Compiler, found.Traffic.Flags
		}
		r.Launches = append(r.Launches, t)
		out.Print(t.String())
	}
	out.Print(r.summary())
	if err := s.WriteJSON(c.JSON, r); err != nil {
		return err
	}
	switch {
	case out.Err() != nil:
		return out.Err()
	case r.Incomplete:
		return cli.ErrInterrupted
	case len(chosen.List) == 0 || failed:
		return cli.ErrFailed
	}
	return nil
}

func newLaunchTraffic(l metalsan.Launch, found *sanitizer.Report, err error) launchTraffic {
	t := launchTraffic{Kernel: l.Kernel, File: l.File, Launch: l.Label, Buffers: []bufferTraffic{}}
	if err != nil {
		t.Error = err.Error()
		return t
	}
	// After a finding the counts are meaningless.
	if found.Schedules == 0 {
		t.Error = "the launch did not end"
		if errs := found.Errors(); len(errs) > 0 {
			t.Error = errs[0].String()
		}
		return t
	}
	m := found.Traffic
	t.Barriers, t.SIMDOperations, t.Segments, t.BankConflicts = m.Barriers, m.SIMDOperations, m.Segments, m.BankConflicts
	t.ThreadgroupMemory = m.ThreadgroupMemory
	for _, b := range m.Buffers {
		t.Buffers = append(t.Buffers, bufferTraffic{
			Name: b.Name, Threadgroup: b.Threadgroup, Read: b.Read, Written: b.Written,
			Compulsory: b.UniqueRead + b.UniqueWritten, Ratio: b.Ratio(),
		})
	}
	return t
}

// String returns a table of the buffers and the other counts below it.
func (l launchTraffic) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, %s\n", l.Kernel, l.Launch)
	if l.Error != "" {
		fmt.Fprintf(&text, "  not counted: %s\n\n", l.Error)
		return text.String()
	}
	var rows [][]string
	for _, b := range l.Buffers {
		name := "  " + b.Name
		if b.Threadgroup {
			name += " (threadgroup)"
		}
		ratio := "-"
		if b.Compulsory > 0 {
			ratio = strconv.FormatFloat(b.Ratio, 'f', 2, 64)
		}
		rows = append(rows, []string{name, number(b.Read), number(b.Written), number(b.Compulsory), ratio})
	}
	table, err := report.Columns("lrrrr", []string{"", "read", "written", "compulsory", "ratio"}, rows)
	if err != nil {
		table = err.Error() + "\n"
	}
	text.WriteString(table)
	fmt.Fprintf(&text, "  %d barriers, %d SIMD operations, %d segments, %d bank conflicts, %d bytes of threadgroup memory\n\n",
		l.Barriers, l.SIMDOperations, l.Segments, l.BankConflicts, l.ThreadgroupMemory)
	return text.String()
}

// summary returns the end of the text: kernels left out, and the compiler.
func (r *trafficReport) summary() string {
	var text strings.Builder
	text.WriteString(metalsan.LeftOut("counted", r.WithoutLaunch, r.Unsupported, r.Incomplete, len(r.Launches)))
	if r.Compiler != "" {
		fmt.Fprintf(&text, "bytes, as compiled by %s with %s\n", r.Compiler, r.Flags)
	}
	return text.String()
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }
