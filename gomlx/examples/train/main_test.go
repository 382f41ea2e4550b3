package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/stretchr/testify/require"
)

func TestTheLossFalls(t *testing.T) {
	t.Setenv(backends.ConfigEnvVar, "mlx")
	require.NoError(t, run(1))

	// The backends draw other random numbers, so their losses differ.
	var last [2]float32
	for i, config := range []string{"mlx", "go"} {
		b, err := backends.NewWithConfig(config)
		require.NoError(t, err)
		tr := newTraining(b)
		first, err := tr.step()
		require.NoError(t, err)
		for range 60 {
			last[i], err = tr.step()
			require.NoError(t, err)
		}
		require.Less(t, last[i], first/2, config)
	}
}

// BenchmarkStep times a step, and the processor time of all its threads, which other programs disturb less.
func BenchmarkStep(b *testing.B) {
	for _, config := range []string{"mlx:cpu", "go"} {
		b.Run(config, func(b *testing.B) {
			backend, err := backends.NewWithConfig(config)
			require.NoError(b, err)
			tr := newTraining(backend)
			for range 3 { // compile
				_, err := tr.step()
				require.NoError(b, err)
			}
			before := cpuTime(b)
			for b.Loop() {
				_, err := tr.step()
				require.NoError(b, err)
			}
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// cpuTime returns the processor time of the process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
