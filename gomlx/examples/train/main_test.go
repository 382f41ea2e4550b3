package main

import (
	"testing"

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
			for b.Loop() {
				_, err := tr.step()
				require.NoError(b, err)
			}
		})
	}
}
