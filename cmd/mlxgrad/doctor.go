package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/suite"
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
	"github.com/mlxgrad/mlxgrad/internal/cxx"
	"github.com/mlxgrad/mlxgrad/internal/library"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// oldestGCC is the oldest GCC in the tests of the kernels.
const oldestGCC = 12

func newDoctor() *cobra.Command {
	return cli.Verb(&cobra.Command{
		Use:     "doctor",
		Short:   "Examine this machine, and say how to fix problems",
		Long:    "Examines every component that the library and its tests need, and computes a small gradient.",
		Example: "  mlxgrad doctor",
		Args:    cli.NoArgs,
	}, nil, doctor)
}

// finding is one examined component.
type finding struct {
	what   string
	found  string // the component found, or the fault
	remedy string // the remedy; empty if all is well
	// needed is set if nothing works without the component. Otherwise found names the parts that do not work.
	needed bool
}

// doctor prints the findings. It fails if a needed component is missing.
func doctor(s cli.Streams) error {
	out := s.Text()
	defer out.Status.End()
	out.Status.Set("compiling and running a kernel")
	return printFindings(out, examine())
}

func printFindings(w io.Writer, findings []finding) error {
	failed := false
	for _, f := range findings {
		state := "ok"
		switch {
		case f.remedy == "":
		case f.needed:
			state, failed = "MISSING", true
		default:
			state = "missing"
		}
		// Further lines of a compiler's message are indented below the first.
		found := strings.ReplaceAll(f.found, "\n", fmt.Sprintf("\n%-24s", ""))
		if _, err := fmt.Fprintf(w, "%-8s %-14s %s\n", state, f.what, found); err != nil {
			return err
		}
		if f.remedy != "" {
			if _, err := fmt.Fprintf(w, "%-8s %-14s to do: %s\n", "", "", f.remedy); err != nil {
				return err
			}
		}
	}
	if failed {
		return cli.ErrFailed
	}
	return nil
}

// examine examines every component that the library and its tests use. It skips components whose prerequisites are
// missing.
func examine() []finding {
	mlx := finding{what: "MLX", found: fmt.Sprintf("%s, backend %s", mlxc.Version(), mlxc.CurrentBackend())}
	if err := mlxc.Check(); err != nil {
		mlx.found, mlx.remedy, mlx.needed = err.Error(), library.Remedy(), true
		return []finding{mlx, clang()}
	}
	return []finding{
		mlx,
		{what: "mlx-c", found: mlxc.CVersion()},
		libmlxg(),
		device(),
		executor(),
		hostCompiler(),
		cache(),
		clang(),
		containment(),
		probe(),
	}
}

// libmlxg describes the loaded library, the first one in the search order.
func libmlxg() finding {
	f := finding{what: "libmlxg", found: "removed since it was loaded"}
	for _, path := range library.Places() {
		if _, err := os.Stat(path); err == nil {
			f.found = path
			break
		}
	}
	return f
}

func device() finding {
	f := finding{what: "device", found: mlxc.DefaultDevice().String()}
	if !mlxc.GPU.Available() {
		f.found += "; there is no GPU that this build of MLX can use"
	}
	return f
}

// executor describes the executor of our kernels.
func executor() finding {
	f := finding{what: "executor", found: customkernels.ExecutorName()}
	if err := customkernels.CheckExecutor(); err != nil {
		f.found += ", not usable: " + err.Error()
		f.remedy, f.needed = "see below", true
	}
	return f
}

// cache names the folder of compiled kernels, which may be deleted at any time.
func cache() finding {
	dir, err := customkernels.CacheDir()
	if err != nil {
		return finding{what: "cache", found: err.Error(), remedy: "set MLXGRAD_CACHE to a folder of yours"}
	}
	return finding{what: "cache", found: dir}
}

// hostCompiler describes the compiler of the kernels on a CPU.
func hostCompiler() finding {
	f := finding{what: "C++ compiler", needed: mlxc.DefaultDevice() == mlxc.CPU}
	compiler, err := customkernels.HostCompiler()
	if err != nil {
		f.found = "without it kernels do not run on a CPU, and gradients fall back to MLX's: " + err.Error()
		f.remedy = fmt.Sprintf("install GCC %d or clang %d or later (%s), or set CXX", oldestGCC, cxx.OldestClang, install("g++"))
		return f
	}
	f.found = compiler
	return f
}

// clang describes the compiler of the address-space check, where it stands in for Apple's compiler.
func clang() finding {
	f := finding{what: "clang", found: cxx.FindClang("clang++", "clang")}
	if f.found != "" {
		return f
	}
	f.found = "without it \"mlxgrad sanitize\" does not check address spaces"
	f.remedy = fmt.Sprintf("install clang %d or later (%s)", cxx.OldestClang, install("clang"))
	return f
}

// containment describes the restrictions of compilers and checked kernels.
func containment() finding {
	inForce, open := sanitizer.Containment()
	f := finding{what: "containment", found: inForce}
	if open != "" {
		f.found += "\nnot restricted: " + open
		if runtime.GOOS == "linux" {
			f.remedy = "use Linux 6.12 or later with Landlock and seccomp, or check untrusted shaders in a virtual machine"
		}
	}
	return f
}

// install returns the command that installs a package on this system.
func install(name string) string {
	if runtime.GOOS == "darwin" {
		return "xcode-select --install"
	}
	return "Debian and Ubuntu: apt-get install " + name
}

// probe computes a small gradient, since a compiler may be present and not work.
func probe() finding {
	small := compare.Matching(suite.Ops()[:1], regexp.MustCompile(`^3x33$`))
	r := compare.Run(context.Background(), small, compare.Options{DTypes: []mlxc.DType{mlxc.Float32}})
	f := finding{what: "a gradient", needed: true}
	if !r.Succeeded() {
		f.found = "could not be computed"
		f.remedy = "see \"mlxgrad parity --case '^3x33$'\""
		if len(r.Rows) > 0 {
			f.found = r.Rows[0].Message
		}
		return f
	}
	f.found = fmt.Sprintf("%s computed correctly by %d of our kernels", r.Rows[0].Op, r.Rows[0].Launches)
	return f
}
