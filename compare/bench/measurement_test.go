package bench

import (
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
