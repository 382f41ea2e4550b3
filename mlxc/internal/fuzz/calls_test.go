package fuzz

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
)

const workerVariable = "MLXG_FUZZ_WORKER"

var (
	seed  = flag.Uint64("seed", 1, "of the random calls")
	from  = flag.Int("from", 0, "number of the first call")
	calls = flag.Int("calls", 0, "how many in each mode; 2000 by default, 2000000 in long tests")
	guard = flag.String("guard", "", "only this mode: off, end, start, or new, which is end with operator new")
)

func TestMain(m *testing.M) {
	if text := os.Getenv(workerVariable); text != "" {
		if err := work(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestCalls makes random calls: without guard pages, with a guard page after each allocation of MLX, and with a guard
// page before it.
func TestCalls(t *testing.T) {
	n := *calls
	if n == 0 {
		n = 2000
		if long.Enabled() {
			n = 2_000_000
		}
	}
	for _, mode := range []string{"off", "end", "start", "new"} {
		if *guard != "" && *guard != mode || *guard == "" && mode == "new" {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			d := driver{t: t, mode: mode, dir: t.TempDir(), accepted: map[string]int{}, kinds: map[string]int{}}
			if mode != "off" {
				d.library = buildGuard(t)
			}
			d.drive(*from/sequenceLength*sequenceLength, n)
		})
	}
}

// driver runs workers.
type driver struct {
	t        *testing.T
	mode     string
	library  string // guard.so
	dir      string
	accepted map[string]int
	total    report
	kinds    map[string]int // failures
}

// drive makes n calls, in processes of some ten thousand calls each. It continues after a process dies, so that a run
// can show several defects.
func (d *driver) drive(first, n int) {
	const each, patience = 50_000, 20
	begin := time.Now()
	for at := first; at < first+n; {
		at += d.worker(at, min(each, first+n-at))
		d.t.Logf("came to call %d in %v", at, time.Since(begin).Round(time.Second))
		if len(d.kinds) >= patience {
			d.t.Fatalf("%d kinds of failures: stopped at call %d", len(d.kinds), at)
		}
	}
	seconds := time.Since(begin).Seconds()
	d.t.Logf("seed %d, guard %s: %d calls, %d arrays evaluated, %d results compared, %.0f calls per second",
		*seed, d.mode, d.total.Calls, d.total.Evaluated, d.total.Compared, float64(d.total.Calls)/seconds)
	var never []string
	for name, n := range d.accepted {
		if n == 0 {
			never = append(never, name)
		}
	}
	for kind, n := range d.kinds {
		d.t.Logf("%d times %s", n, kind)
	}
	slices.Sort(never)
	d.t.Logf("never accepted: %v", never)
}

// worker runs one process and returns the number of the n calls that it reached.
func (d *driver) worker(first, n int) int {
	t := d.t
	journal := filepath.Join(d.dir, "journal")
	files := filepath.Join(d.dir, "files")
	require.NoError(t, os.MkdirAll(files, 0o700))
	output, err := os.Create(filepath.Join(d.dir, "output"))
	require.NoError(t, err)
	defer output.Close()
	reported := filepath.Join(d.dir, "report")
	text, err := json.Marshal(job{*seed, first, n, d.library != "", files, journal, output.Name(), reported})
	require.NoError(t, err)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+string(text))
	if d.library != "" {
		// guard.c looks for libmlx when the process begins, so libmlx is preloaded too.
		const mlx = "../../../third_party/mlx-c/install/mlx/lib/libmlx.so"
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+d.library+":"+mlx, "MLXG_GUARD="+d.mode)
		if d.mode == "new" {
			cmd.Env = append(cmd.Env, "MLXG_GUARD_NEW=1")
		}
	}
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = output, &stderr
	_ = os.Remove(reported)
	err = cmd.Run()
	if d.library != "" {
		require.Contains(t, stderr.String(), "guard: on")
	}
	var r report
	done := n
	// A library may end the process with status 0.
	if text, reading := os.ReadFile(reported); err == nil && reading == nil {
		require.NoError(t, json.Unmarshal(text, &r))
		for name, n := range r.Accepted {
			d.accepted[name] += n
		}
	} else {
		script, _ := os.ReadFile(journal)
		call := first
		if lines := strings.Split(strings.TrimSpace(string(script)), "\n"); lines[0] != "" {
			_, _ = fmt.Sscanf(lines[len(lines)-1], "%d:", &call)
		}
		printed, _ := os.ReadFile(output.Name())
		said := string(printed) + stderr.String()
		done = (call/sequenceLength+1)*sequenceLength - first
		r.Calls = done
		r.Failures = []failure{{
			call, fmt.Sprintf("the process ended: %v\n%s", err, said[:min(len(said), 6000)]),
			string(script),
		}}
	}
	for _, f := range r.Failures {
		kind := f.kind()
		if d.kinds[kind]++; d.kinds[kind] > 1 {
			t.Fail()
			continue
		}
		t.Errorf("call %d: %s\nThe sequence:\n%srepeat with -run TestCalls -guard %s -seed %d -from %d -calls %d",
			f.Call, f.What, f.Transcript, d.mode, *seed, f.Call, sequenceLength)
	}
	d.total.Calls += r.Calls
	d.total.Evaluated += r.Evaluated
	d.total.Compared += r.Compared
	return done
}

var (
	madeCall = regexp.MustCompile(`(?m)^\d+: (?:f = )?([A-Z][\w.]+)\(`)
	numbers  = regexp.MustCompile(`[-\d.(e+)i]+`)
)

// kind returns an equal string for failures that probably have the same cause: the last call, and the first line of the
// message without numbers.
func (f failure) kind() string {
	name := ""
	for _, m := range madeCall.FindAllStringSubmatch(f.Transcript, -1) {
		if !slices.Contains([]string{"ToSlice", "Eval", "AsyncEval"}, m[1]) {
			name = m[1]
		}
	}
	what, _, _ := strings.Cut(f.What, "\n")
	return name + ": " + numbers.ReplaceAllString(what, "#")
}
