package fuzz

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

const (
	sequenceLength = 16 // calls
	hang           = 30 * time.Second
)

// job is the work of one process.
type job struct {
	Seed    uint64
	From    int    // number of the first call
	Calls   int    // how many
	Guarded bool   // guard.c is loaded
	Dir     string // for files
	Journal string // path of the file with the calls of the current sequence
	Output  string // path of the file that receives the standard output
	Report  string // path of the report
}

// failure describes a failed call.
type failure struct {
	Call       int
	What       string
	Transcript string
}

// report is the result of a job.
type report struct {
	Calls     int            // calls made
	Evaluated int            // evaluated arrays
	Compared  int            // results compared with other layouts or with transforms
	Accepted  map[string]int // calls with valid arrays as results, by function
	Failures  []failure
}

// worker runs a job.
type worker struct {
	job
	table   []callable
	stream  *mlxc.Stream
	journal *os.File
	printed int64        // bytes of the standard output that are checked
	steps   atomic.Int64 // lines of the journal; without new ones, watch reports a hang
	report  report
}

// work runs the job that text describes in JSON, and writes a report.
func work(text string) error {
	w := &worker{report: report{Accepted: map[string]int{}}}
	if err := json.Unmarshal([]byte(text), &w.job); err != nil {
		return err
	}
	if err := w.setUp(); err != nil {
		return err
	}
	go w.watch()
	for first := w.From; first < w.From+w.Calls; first += sequenceLength {
		if err := w.run(first / sequenceLength); err != nil {
			return err
		}
	}
	out, err := json.Marshal(w.report)
	if err != nil {
		return err
	}
	return os.WriteFile(w.Report, out, 0o600)
}

func (w *worker) setUp() (err error) {
	if w.table, err = table(); err != nil {
		return err
	}
	if w.journal, err = os.Create(w.Journal); err != nil {
		return err
	}
	if w.stream, err = mlxc.NewStream(mlxc.CPU); err != nil {
		return err
	}
	// Fusing would run a C++ compiler for most calls of compiled functions.
	if _, err = mlxc.SetCompileMode(mlxc.CompileNoFuse); err != nil {
		return err
	}
	if w.Guarded {
		// Without a cache: a cached buffer may be longer than its array, so the guard page would not follow the array.
		if _, err = mlxc.SetCacheLimit(0); err != nil {
			return err
		}
	}
	return limitMemory()
}

// limitMemory limits the process to 4 GiB more address space than it has.
func limitMemory() error {
	var pages uint64
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return nil //nolint:nilerr // not Linux: the sizes of arrays are the only limit
	}
	if _, err := fmt.Sscan(string(text), &pages); err != nil {
		return err
	}
	size := pages*uint64(os.Getpagesize()) + 4<<30
	return syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: size, Max: size})
}

// watch ends the process if it makes no progress.
func (w *worker) watch() {
	for last := int64(-1); ; {
		now := w.steps.Load()
		if now == last {
			stacks := make([]byte, 1<<20)
			fmt.Fprintf(os.Stderr, "hang: no progress in %v\n%s\n", hang, stacks[:runtime.Stack(stacks, true)])
			os.Exit(1)
		}
		last = now
		time.Sleep(hang)
	}
}

// sequence is the state of sequenceLength random calls. A call may use the results of earlier calls.
type sequence struct {
	*rand.Rand
	*worker
	call       int
	sizes      []int
	mainDType  mlxc.DType
	tame       bool // small numbers, and results compared with the results for contiguous operands
	dir        string
	pool       []*mlxc.Array
	names      map[*mlxc.Array]string
	special    map[reflect.Type]func(name string, like *mlxc.Array) any
	transcript strings.Builder
}

func (w *worker) run(number int) error {
	s := &sequence{
		Rand: rand.New(rand.NewPCG(w.Seed, uint64(number))), worker: w,
		call: number * sequenceLength, names: map[*mlxc.Array]string{},
	}
	s.special = s.specials()
	all := []int{0, 1, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64}
	s.sizes = []int{all[2+s.IntN(8)], all[2+s.IntN(8)], all[s.IntN(len(all))]}
	s.mainDType = []mlxc.DType{
		mlxc.Float32, mlxc.Float32, mlxc.Float32, mlxc.Float16, mlxc.BFloat16, mlxc.Int32,
		mlxc.Float64, mlxc.Complex64, mlxc.Bool, mlxc.Uint8, mlxc.Int64, mlxc.Int8,
	}[s.IntN(12)]
	s.tame = s.chance(35)
	s.dir = w.Dir
	if err := w.journal.Truncate(0); err != nil {
		return err
	}
	if _, err := w.journal.Seek(0, 0); err != nil {
		return err
	}
	mlxc.RandomSeed(uint64(number))
	mlxc.WithScope(func() {
		for range sequenceLength {
			s.one()
			s.call++
		}
		s.call--
		s.finish()
	})
	return nil
}
