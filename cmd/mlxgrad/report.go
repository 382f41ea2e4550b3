package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/internal/cli"
)

// reportCommand is "mlxgrad report".
type reportCommand struct {
	file   string
	format string
	output string
}

func newReport() *cobra.Command {
	var c reportCommand
	var formats []string
	for _, format := range report.Formats() {
		formats = append(formats, string(format))
	}
	command := &cobra.Command{
		Use:   "report FILE.json",
		Short: "Render the JSON of parity or bench as text, CSV, JUnit XML, Markdown or HTML",
		Long: `Renders the JSON that "mlxgrad parity --json" or "mlxgrad bench --json" wrote. The file - is
standard input. docs/reports.md describes the formats. The exit code says whether the report was
rendered, not whether the run succeeded.`,
		Example: `  mlxgrad report parity.json
  mlxgrad report parity.json --format junit -o parity.xml
  mlxgrad report bench.json --format html -o bench.html
  mlxgrad bench --op softmax --json - | mlxgrad report - --format markdown`,
		Args:              cli.OneArg("files"),
		ValidArgsFunction: cli.Files("json"),
	}
	cli.Choice(command, &c.format, "format", "format of the report", formats)
	command.Flags().StringVarP(&c.output, "output", "o", cli.StandardOutput, "write to `FILE`; - is standard output")
	return cli.Verb(command, c.validate, c.run)
}

// validate checks the flags.
func (c *reportCommand) validate(args []string) error {
	c.file = args[0]
	return cli.CheckOutput("--output", c.output)
}

// run renders the report.
func (c *reportCommand) run(s cli.Streams) error {
	in := os.Stdin
	if c.file != cli.StandardOutput {
		f, err := os.Open(c.file)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	r, err := report.Read(in)
	if err != nil {
		return fmt.Errorf("%s: %w", c.file, err)
	}
	if c.format == string(report.Text) && c.output == cli.StandardOutput {
		out := s.Text()
		defer out.Status.End()
		return r.WriteText(out)
	}
	return s.WriteFile(c.output, func(w io.Writer) error { return report.Write(w, r, report.Format(c.format)) })
}
