package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/suite"
	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/internal/library"
	"github.com/mlxgrad/mlxgrad/internal/metalsan"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// The oldest compilers that the kernels are tested with.
const (
	oldestGCC   = 12
	oldestClang = 14
)

// doctorCommand is "mlxgrad doctor".
type doctorCommand struct{}

// finding is one thing that was looked for.
type finding struct {
	what   string
	found  string // What is there, or what is wrong.
	remedy string // What to do. Empty if all is well.
	// needed says that nothing of use works without it. Otherwise found says what does not.
	needed bool
}

// Run prints what was found. It fails if something needed is missing.
func (doctorCommand) Run(w io.Writer) error {
	return printFindings(w, examine())
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
		// Further lines of what a compiler says stand below the first.
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
		return metalsan.ErrFailed
	}
	return nil
}

// examine looks for everything that the library and its tests use. What depends on a thing that is
// missing is not looked for.
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
		probe(),
	}
}

// libmlxg is the file that was loaded, the first one in its places.
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

// executor is what runs our kernels.
func executor() finding {
	f := finding{what: "executor", found: customkernels.ExecutorName()}
	if err := customkernels.Available(); err != nil {
		f.found += ", not usable: " + err.Error()
		f.remedy, f.needed = "see below", true
	}
	return f
}

// cache is where the host executor keeps what it compiled, which is safe to delete.
func cache() finding {
	dir, err := customkernels.CacheDir()
	if err != nil {
		return finding{what: "cache", found: err.Error(), remedy: "set MLXGRAD_CACHE to a folder of yours"}
	}
	return finding{what: "cache", found: dir}
}

// hostCompiler is what the kernels on a CPU are compiled by.
func hostCompiler() finding {
	f := finding{what: "C++ compiler", needed: mlxc.DefaultDevice() == mlxc.CPU}
	compiler, err := customkernels.HostCompiler()
	if err != nil {
		f.found = "kernels on a CPU need one, and gradients fall back to MLX's: " + err.Error()
		f.remedy = fmt.Sprintf("install GCC %d or clang %d or later (%s), or set CXX", oldestGCC, oldestClang, install("g++"))
		return f
	}
	f.found = compiler
	return f
}

// clang is what stands in for Apple's compiler when shaders are checked.
func clang() finding {
	f := finding{what: "clang"}
	names := []string{"clang++", "clang"}
	for version := 20; version >= oldestClang; version-- {
		names = append(names, fmt.Sprintf("clang-%d", version))
	}
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			f.found = path
			return f
		}
	}
	f.found = "without it \"mlxgrad sanitize\" does not check address spaces"
	f.remedy = fmt.Sprintf("install clang %d or later (%s)", oldestClang, install("clang"))
	return f
}

// install is the command that most machines of this kind install a package with.
func install(name string) string {
	if runtime.GOOS == "darwin" {
		return "xcode-select --install"
	}
	return "Debian and Ubuntu: apt-get install " + name
}

// probe computes a small gradient: a compiler that is found may still not work.
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
	f.found = fmt.Sprintf("%s computed by %d kernels of ours, as it should be", r.Rows[0].Op, r.Rows[0].Launches)
	return f
}
