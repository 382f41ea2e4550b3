package checker

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "checked-test-")
	if err != nil {
		panic(err)
	}
	os.Setenv("MLXGRAD_CACHE", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// body returns a translation unit of a kernel with one input and one output of type uint.
func body(text string) string {
	return `#include "metal_host.h"
void kernel_of_test(const uint* x, uint* y, uint i) {
` + text + `
}
namespace { void mlxg_invoke(void* const* b, const mlxg::thread_position& p) {
  kernel_of_test(static_cast<const uint*>(b[0]), static_cast<uint*>(b[1]), p.thread_position_in_grid.x); } }
extern "C" const mlxg::entry mlxgrad_entry = { "kernel_of_test", 2, mlxg_invoke };
`
}

func launchOf(threads int) Launch {
	return Launch{
		Grid: [3]int{threads, 1, 1}, Threadgroup: [3]int{32, 1, 1}, Schedules: 2, Timeout: 10 * time.Second,
		Buffers: []Buffer{
			{Data: make([]byte, 4*threads), Size: 4 * threads, Cell: 4, Element: 4},
			{Size: 4 * threads, Cell: 4, Element: 4, Writable: true},
		},
	}
}

func runBody(t *testing.T, text string) *Result { return runBodyOn(t, text, 40) }

func runBodyOn(t *testing.T, text string, threads int) *Result {
	t.Helper()
	p, err := Build(t.Context(), body(text))
	require.NoError(t, err)
	r, err := p.Run(t.Context(), launchOf(threads))
	require.NoError(t, err)
	return r
}

func TestRunGivesOutputsAndTraffic(t *testing.T) {
	r := runBody(t, "y[i] = x[i] + i;")
	require.Empty(t, r.Findings)
	require.Nil(t, r.Difference)
	require.Equal(t, 2, r.Schedules)
	require.Len(t, r.Outputs, 1)
	require.EqualValues(t, 39, r.Outputs[0][4*39])
	require.EqualValues(t, 160, r.Slots[0].Read)
	require.EqualValues(t, 160, r.Slots[1].UniqueWritten)
	require.EqualValues(t, 10, r.Segments) // 40 numbers are five pieces of 32 bytes, twice
}

func TestRunContinuesAfterAccessesOutOfBounds(t *testing.T) {
	r := runBody(t, "y[i] = x[i]; y[i + 1000000000u] = 1; y[i] += x[i - 4000000000u];")
	require.Len(t, r.Findings, 2)
	for _, f := range r.Findings {
		require.Equal(t, OutOfBounds, f.Kind)
		require.Equal(t, 3, f.Path[0].Line)
	}
	require.Equal(t, 2, r.Schedules)
}

// An index out of the bounds of the array's type is a finding, also if it leads to valid memory. If the access is a
// finding too, the index is not reported.
func TestIndicesBeyondArrays(t *testing.T) {
	r := runBody(t, "const uint v[4] = {1, 2, 3, 4};\ny[i] = v[int(i % 4) - 1];")
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	require.Equal(t, OutOfBounds, f.Kind)
	require.EqualValues(t, -1, f.Index)
	require.EqualValues(t, 4, f.ArraySize)
	require.Equal(t, -1, f.Slot)
	require.Equal(t, Frame{"kernel_of_test", 4}, f.Path[0])

	const tile = "auto& tile = mlxg::threadgroup_variable<uint[3][4], 0>();\nif (i < 12) tile[i / 4][i % 4] = " +
		"i;\nthreadgroup_barrier(mem_flags::mem_threadgroup);\n"
	r = runBodyOn(t, tile+"y[i] = tile[i % 2][i % 5];", 32)
	require.Len(t, r.Findings, 1) // most of the tile is read
	require.Equal(t, OutOfBounds, r.Findings[0].Kind)
	require.EqualValues(t, 4, r.Findings[0].Index)
	r = runBodyOn(t, tile+"y[i] = tile[i % 4][i % 4];", 32)
	require.Len(t, r.Findings, 2)
	require.Equal(t, OutOfBounds, r.Findings[0].Kind)
	require.Equal(t, 2, r.Findings[0].Slot)
	require.EqualValues(t, 60, r.Findings[0].Offset)
	require.Equal(t, NeverRead, r.Findings[1].Kind)
}

// In a threadgroup of one thread no other thread can read a value, so a value without a reader is no finding.
func TestValuesOfOneThread(t *testing.T) {
	const store = "auto& tile = mlxg::threadgroup_variable<uint[8], 0>();\ntile[i % 8] = i;\ny[i] = i;"
	require.Equal(t, NeverRead, runBodyOn(t, store, 2).Findings[0].Kind)
	require.Empty(t, runBodyOn(t, store, 1).Findings)
}

// The result of a launch that does not end has the sizes of its buffers.
func TestSlotsOfAnUnfinishedLaunch(t *testing.T) {
	r := runBody(t, "y[i + 100] = 7 / x[i];")
	require.Equal(t, Crash, r.Findings[0].Kind)
	require.Len(t, r.Slots, 2)
	require.Equal(t, 160, r.Slots[1].Size)
	require.Equal(t, 4, r.Slots[1].Element)
}

func TestFaultsAreFindings(t *testing.T) {
	for _, test := range []struct {
		text string
		kind Kind
	}{
		{"y[i] = 7 / x[i];", Crash},
		{"y[i] = x[0] + *reinterpret_cast<const uint*>(uintptr_t(x[i]) + 64);", OutOfBounds},
		{"while (true) {}", Timeout},
	} {
		p, err := Build(t.Context(), body(test.text))
		require.NoError(t, err)
		l := launchOf(32)
		if test.kind == Timeout {
			l.Timeout = 300 * time.Millisecond
		}
		r, err := p.Run(t.Context(), l)
		require.NoError(t, err)
		require.NotEmpty(t, r.Findings, test.text)
		require.Equal(t, test.kind, r.Findings[0].Kind)
		require.Nil(t, r.Outputs)
	}
}

// Two threads may write different halves of a word: the checker refines the shadow cells.
func TestSmallerAccessesRefineTheShadow(t *testing.T) {
	r := runBody(t, "reinterpret_cast<ushort*>(y)[i] = 1; reinterpret_cast<ushort*>(y)[40 + i] = 2;")
	require.Empty(t, r.Findings)
	require.EqualValues(t, 160, r.Slots[1].UniqueWritten)
}

func TestCanceledRun(t *testing.T) {
	p, err := Build(t.Context(), body("while (true) {}"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(500*time.Millisecond, cancel)
	l := launchOf(32)
	l.Timeout = time.Hour
	_, err = p.Run(ctx, l)
	require.ErrorIs(t, err, context.Canceled)
}

func TestConcurrentBuildsAndRuns(t *testing.T) {
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			p, err := Build(t.Context(), body("y[i] = x[i] + 2;"))
			if err == nil {
				_, err = p.Run(t.Context(), launchOf(64))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}
