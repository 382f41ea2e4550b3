package executor

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// pauseSteps is the number of steps, and of pauses, of a thread of testdata/pause.cpp.
const pauseSteps = 50

// pauseTickets launches testdata/pause.cpp, requires that each thread has its sum and that no two steps have the same
// ticket, and returns the tickets of each thread.
func pauseTickets(t *testing.T, l *Library, groups, threads int) [][]uint32 {
	all := groups * threads
	counter, tickets, sums := make([]uint32, 1), make([]uint32, all*pauseSteps), make([]uint32, all)
	run(t, l, [3]int{all, 1, 1}, [3]int{threads, 1, 1}, []Buffer{buf([]int32{pauseSteps})},
		[]Buffer{buf(counter), buf(tickets), buf(sums)})
	for i, sum := range sums {
		require.EqualValues(t, i/threads*pauseSteps+pauseSteps*(pauseSteps-1)/2, sum)
	}
	steps := slices.Collect(slices.Chunk(tickets, pauseSteps))
	for _, s := range steps {
		require.IsIncreasing(t, s)
	}
	sorted := slices.Sorted(slices.Values(tickets))
	require.Len(t, slices.Compact(sorted), len(tickets))
	return steps
}

// setWorkers sets the number of threads of later launches until the test ends.
func setWorkers(t *testing.T, n int) {
	before := runtime.GOMAXPROCS(n)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}

// sumOfOnes launches testdata/row_sum.cpp on rows of ones, with these many threads for each row.
func sumOfOnes(t *testing.T, l *Library, rows, width, threads int) {
	x, y := slices.Repeat([]uint16{0x3f80}, rows*width), make([]float32, rows)
	run(t, l, [3]int{rows * threads, 1, 1}, [3]int{threads, 1, 1}, []Buffer{buf(x), buf([]int32{int32(width)})}, []Buffer{buf(y)})
	require.Equal(t, slices.Repeat([]float32{float32(width)}, rows), y)
}

// Threadgroups that pause end with the right results for any number of workers and threadgroups, and in concurrent
// launches.
func TestPauses(t *testing.T) {
	l := compileFile(t, "pause")
	require.False(t, l.NeedsFibers())
	for _, workers := range []int{1, 2, 3, 8} {
		setWorkers(t, workers)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				for _, groups := range []int{1, 2, 3, 4, 7, 16, 100} {
					pauseTickets(t, l, groups, 1)
					pauseTickets(t, l, groups, 3)
				}
			})
		}
		wg.Wait()
	}
}

// The two threadgroups of a share take turns, so that another thread can take over one of them. Rarely, a second thread
// takes one threadgroup before the other pauses. Then they do not take turns.
func TestPausedThreadgroupsTakeTurns(t *testing.T) {
	setWorkers(t, 2)
	l := compileFile(t, "pause")
	turns := 0
	for range 50 {
		steps := pauseTickets(t, l, 4, 1)
		for _, first := range []int{0, 2} {
			if steps[first][0] < steps[first+1][pauseSteps-2] && steps[first+1][0] < steps[first][pauseSteps-2] {
				turns++
			}
		}
	}
	require.Greater(t, turns, 25)
}

// Launches that need all stacks of a process end after launches whose threadgroups pause: idle workers keep no stacks.
func TestPausesKeepNoStacks(t *testing.T) {
	setWorkers(t, 64)
	l, sums := compileFile(t, "pause"), compileFile(t, "row_sum")
	for range 100 {
		for range 3 {
			pauseTickets(t, l, 128, 1)
		}
		sumOfOnes(t, sums, 160, 3000, 1024)
	}
}

// Idle workspaces of small threadgroups do not keep the stacks that a larger threadgroup needs.
func TestLargerThreadgroupsAfterManySmallOnes(t *testing.T) {
	setWorkers(t, 64)
	l := compileFile(t, "row_sum")
	var wg sync.WaitGroup
	for range 80 {
		wg.Go(func() { sumOfOnes(t, l, 128, 20000, 512) })
	}
	wg.Wait()
	sumOfOnes(t, l, 128, 20000, 1024)
}

// A larger threadgroup waits for the stacks that running launches use. Only the first larger one of a process can wait,
// so the test runs in a process of its own.
func TestLargerThreadgroupsDuringManySmallOnes(t *testing.T) {
	const variable = "EXECUTOR_TEST_LARGER"
	if os.Getenv(variable) == "" {
		exe, err := os.Executable()
		require.NoError(t, err)
		cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: "+t.Name())
		return
	}
	setWorkers(t, 64)
	l := compileFile(t, "row_sum")
	var small, large sync.WaitGroup
	stop := make(chan struct{})
	for range 64 {
		small.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					sumOfOnes(t, l, 32, 20000, 512)
				}
			}
		})
	}
	time.Sleep(100 * time.Millisecond) // until the workers have taken all stacks
	for threads := 576; threads <= 1024; threads += 64 {
		large.Go(func() { sumOfOnes(t, l, 4, 2000, threads) })
	}
	large.Wait()
	close(stop)
	small.Wait()
}
