// Command metalprobe prints the properties of the Metal device, and for each of a few small kernels whether it
// compiles and computes the right values. The output is a Markdown table for the summary of a workflow.
//
// Each check runs in a separate process with a time limit, so that a crash or a hang does not end the other checks. A
// failed check is a row of the table and not an error: the command exits 0 unless the table cannot be written.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// limit is the time that one check may take. Metal's first compilation in a fresh virtual machine takes seconds.
const limit = time.Minute

// checkVerb is the first argument of a process that runs one check.
const checkVerb = "check"

func main() {
	if len(os.Args) == 3 && os.Args[1] == checkVerb {
		fmt.Println(verdict(os.Args[2]))
		return
	}
	if len(os.Args) > 1 {
		fmt.Fprintf(os.Stderr, "metalprobe: unexpected argument %q; the command takes none\n", os.Args[1])
		os.Exit(2)
	}
	if err := writeTable(os.Stdout, checkNames(), inProcess(limit)); err != nil {
		fmt.Fprintln(os.Stderr, "metalprobe:", err)
		os.Exit(1)
	}
}

// writeTable runs each check and writes its verdict as soon as it is known.
func writeTable(w io.Writer, names []string, run func(name string) string) error {
	if _, err := io.WriteString(w, "| check | verdict |\n|---|---|\n"); err != nil {
		return err
	}
	for _, name := range names {
		text := strings.ReplaceAll(run(name), "|", `\|`)
		text = strings.Join(strings.Split(text, "\n"), "<br>") // a cell is one line
		if _, err := fmt.Fprintf(w, "| %s | %s |\n", name, text); err != nil {
			return err
		}
	}
	return nil
}

// inProcess returns a function that runs a check in a separate process and returns its verdict. A process that
// fails or exceeds the limit is a verdict too.
func inProcess(limit time.Duration) func(name string) string {
	return func(name string) string {
		program, err := os.Executable()
		if err != nil {
			return "not run: " + err.Error()
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, checkVerb, name)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		text := strings.TrimSpace(string(out))
		switch {
		case ctx.Err() != nil:
			return strings.TrimSpace(fmt.Sprintf("no end within %v\n%s", limit, firstLines(text)))
		case err != nil:
			return strings.TrimSpace(fmt.Sprintf("process failed: %v\n%s", err, firstLines(text)))
		}
		return text
	}
}

// firstLines shortens the output of a crash, which lists every goroutine.
func firstLines(text string) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[:min(len(lines), 5)], "\n")
}

// deviceCheck is the name of the check that lists the device's properties.
const deviceCheck = "device"

func checkNames() []string {
	names := []string{deviceCheck}
	for _, k := range kernels() {
		names = append(names, k.source.Name)
	}
	return names
}

// verdict runs the check of this name.
func verdict(name string) string {
	if !mlxc.MetalAvailable() {
		return "MLX finds no Metal device"
	}
	if name == deviceCheck {
		return device(mlxc.GPU.Info(0))
	}
	for _, k := range kernels() {
		if k.source.Name == name {
			if err := k.check(applyMetal); err != nil {
				return "failed: " + err.Error()
			}
			return "ok"
		}
	}
	return "there is no check " + name
}

// device formats the properties of a device.
func device(info map[string]any, err error) string {
	if err != nil {
		return "failed: " + err.Error()
	}
	var lines []string
	for key, value := range info {
		lines = append(lines, fmt.Sprintf("%s: %v", key, value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
