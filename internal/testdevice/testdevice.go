// Package testdevice selects the device of tests. Tests run on the CPU on every machine, because most of them test the
// host executor, float64, or results with the accuracy of a CPU. If there is a GPU, tests that also apply to it run
// there again, in a separate process. A package registers them with [AlsoOnGPU], or all of its tests with [AllOnGPU].
// Its TestMain calls [Main], and its TestOnGPU calls [RunOnGPU], which fails unless every registered test ran.
//
//	go test ./ops -gpu            only the registered tests, on the GPU
//	go test ./ops -gpu -list .    their names, on any machine
//
// "mlxgrad parity" checks the gradients on a GPU. Benchmarks run on MLX's default device.
package testdevice

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/memorylimit"
	"github.com/mlxgrad/mlxgrad/internal/quickcompile"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// variable is set in processes whose tests run on the GPU.
const variable = "MLXGRAD_TESTS_ON_GPU"

// starter is the name of the test that calls RunOnGPU.
const starter = "TestOnGPU"

var (
	gpuOnly    = flag.Bool("gpu", false, "run the tests that are registered for a GPU on the GPU, and no others")
	registered []string
	all        bool
)

// AlsoOnGPU registers a test to run on a GPU too. It is called in the initialization of a variable next to the test:
//
//	var _ = testdevice.AlsoOnGPU(TestSoftmax)
func AlsoOnGPU(test func(*testing.T)) struct{} {
	name := runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name()
	registered = append(registered, name[strings.LastIndexByte(name, '.')+1:])
	return struct{}{}
}

// AllOnGPU registers every test, fuzz target and example of the package. A test that calls [CPUOnly] is skipped.
func AllOnGPU() struct{} {
	all = true
	return struct{}{}
}

// CPUOnly skips a test in the process whose tests run on the GPU. The reason says why the test does not apply there.
func CPUOnly(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv(variable) != "" {
		skip.Platform(t, reason)
	}
}

// Main implements the TestMain of a package: it parses flags, sets the default device, runs the tests and exits.
func Main(m *testing.M) {
	flag.Parse()
	if err := memorylimit.FromEnvironment(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	child := os.Getenv(variable) != ""
	if *gpuOnly && !child {
		os.Exit(mainOnGPU())
	}
	benchmarks := flag.Lookup("test.bench").Value.String() != ""
	quickcompile.Set(!benchmarks && !long.Full())
	if !child && !benchmarks && mlxc.GPU.Available() {
		if err := mlxc.SetDefaultDevice(mlxc.CPU); err != nil {
			panic(err)
		}
	}
	status := m.Run()
	if err := mlxc.Shutdown(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}

// mainOnGPU implements -gpu and returns the exit status.
func mainOnGPU() int {
	ctx := context.Background()
	names, err := chosen(ctx)
	switch {
	case err != nil:
	case flag.Lookup("test.list").Value.String() != "":
		fmt.Println(strings.Join(names, "\n"))
		return 0
	case !mlxc.GPU.Available():
		err = fmt.Errorf("MLX finds no GPU for the %d registered tests", len(names))
	default:
		var summary string
		summary, err = run(ctx, names, os.Stdout)
		fmt.Println(summary)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "-gpu:", err)
		return 1
	}
	return 0
}

// RunOnGPU runs the registered tests of the calling package on the GPU. It fails unless each of them ran.
func RunOnGPU(t *testing.T) {
	t.Helper()
	if !mlxc.GPU.Available() {
		skip.Missing(t, skip.GPU, "MLX finds none")
	}
	names, err := chosen(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	summary, err := run(t.Context(), names, &out)
	t.Log(out.String() + summary)
	if err != nil {
		t.Fatal(err)
	}
}

// chosen returns the names of the registered tests. With -gpu, only those that -test.run matches.
func chosen(ctx context.Context) ([]string, error) {
	names := slices.Clone(registered)
	if all {
		listed, err := command(ctx, "-test.list=^(Test|Fuzz|Example)").Output()
		if err != nil {
			return nil, fmt.Errorf("listing the tests: %w", err)
		}
		names = slices.DeleteFunc(strings.Fields(string(listed)), func(name string) bool { return name == starter })
	}
	if *gpuOnly {
		pattern, err := regexp.Compile(flag.Lookup("test.run").Value.String())
		if err != nil {
			return nil, err
		}
		names = slices.DeleteFunc(names, func(name string) bool { return !pattern.MatchString(name) })
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no test that matches -test.run is registered for a GPU")
	}
	return names, nil
}

var ended = regexp.MustCompile(`(?m)\x16--- (PASS|FAIL|SKIP): (\S+) \(`)

// unmarked passes text on without the marks of test2json.
type unmarked struct{ io.Writer }

func (u unmarked) Write(p []byte) (int, error) {
	_, err := u.Writer.Write(bytes.ReplaceAll(p, []byte{0x16}, nil))
	return len(p), err
}

// run runs the named tests in a process that keeps MLX's default device, the GPU. It writes their output to w as it
// comes. The summary has the number of tests that ran. The error names the tests that did not run.
func run(ctx context.Context, names []string, w io.Writer) (summary string, err error) {
	// test2json marks the lines that report the end of a test.
	flags := []string{"-test.run=^(" + strings.Join(names, "|") + ")$", "-test.v=test2json"}
	for _, name := range []string{"long", "test.timeout", "test.parallel"} {
		if f := flag.Lookup(name); f != nil {
			flags = append(flags, "-"+name+"="+f.Value.String())
		}
	}
	cmd := command(ctx, flags...)
	cmd.Env = append(os.Environ(), variable+"=1", skip.Variable+"="+os.Getenv(skip.Variable)+","+string(skip.GPU))
	var out bytes.Buffer
	cmd.Stdout = io.MultiWriter(&out, unmarked{w})
	cmd.Stderr = cmd.Stdout
	err = cmd.Run()
	ran, skipped := map[string]bool{}, 0
	for _, m := range ended.FindAllSubmatch(out.Bytes(), -1) {
		ran[string(m[2])] = true
		if string(m[1]) == "SKIP" {
			skipped++
		}
	}
	summary = fmt.Sprintf("%d tests and subtests ran on the GPU; %d of them were skipped", len(ran), skipped)
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return ran[name] })
	switch {
	case err != nil:
		return summary, fmt.Errorf("the tests on the GPU: %w", err)
	case len(missing) > 0:
		return summary, fmt.Errorf("%d of %d registered tests did not run on the GPU: %q",
			len(missing), len(names), missing)
	}
	return summary, nil
}

func command(ctx context.Context, flags ...string) *exec.Cmd {
	return exec.CommandContext(ctx, os.Args[0], flags...)
}
