package bench

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// trueAt returns a function whose calls take the given times and return false but for the last.
func trueAt(calls ...time.Duration) func() bool {
	return func() bool {
		time.Sleep(calls[0])
		calls = calls[1:]
		return len(calls) == 0
	}
}

func TestPollUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		at, maxError, ok := pollUntil(trueAt(1, 2, 4))
		require.True(t, ok)
		require.EqualValues(t, 1+3, at.Sub(start))
		require.EqualValues(t, 3, maxError, "the change happened in the last two calls, of 2 and 4 ns")

		_, _, ok = pollUntil(trueAt(1))
		require.False(t, ok, "a change before the first call")
		_, _, ok = pollUntil(trueAt(maxPolling+1, 1))
		require.False(t, ok, "a change that comes too late")
	})
}

func TestTimeBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		between, ok := timeBetween(trueAt(2, 2), trueAt(38, 2, 2))
		require.True(t, ok)
		require.EqualValues(t, 44-2, between)

		_, ok = timeBetween(trueAt(1), trueAt(38, 2, 2))
		require.False(t, ok, "the begin is unknown")
		_, ok = timeBetween(trueAt(2, 4), trueAt(38, 2, 2))
		require.False(t, ok, "the begin was seen late")
		_, ok = timeBetween(trueAt(2, 2), trueAt(100))
		require.False(t, ok, "the end is unknown")
		_, ok = timeBetween(trueAt(2, 2), trueAt(38, 2, 4))
		require.False(t, ok, "the end was seen late")
	})
}

// Graphs that are built fast are built minBuilds times, whatever the number of copies.
func TestMeanOfBuilds(t *testing.T) {
	for _, c := range []struct {
		copies, calls int
		first, others time.Duration
	}{
		{copies: 1, calls: minBuilds, first: 17, others: 1},
		{copies: minBuilds + 1, calls: minBuilds + 1, first: 18, others: 1},
		{copies: 1, calls: 2, first: repetitionTime - 1, others: 1},
		{copies: 3, calls: 3, first: repetitionTime, others: repetitionTime},
	} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			mean, err := meanOfBuilds(c.copies, func(i int) error {
				require.Equal(t, calls, i)
				calls++
				if i == 0 {
					time.Sleep(c.first)
				} else {
					time.Sleep(c.others)
				}
				return nil
			})
			require.NoError(t, err)
			require.Equal(t, c.calls, calls)
			n := time.Duration(calls)
			require.Equal(t, (c.first+(n-1)*c.others)/n, mean)
		})
	}
	failed := errors.New("out of paper")
	_, err := meanOfBuilds(1, func(int) error { return failed })
	require.Equal(t, failed, err)
}
