package nvrtc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTarget(t *testing.T) {
	c := &Compiler{archs: []int{75, 80, 90, 100}}
	for _, e := range []struct {
		major, minor int
		want         Target
	}{
		{8, 0, Target{name: "sm_80"}},
		{9, 0, Target{name: "sm_90a"}},
		{10, 0, Target{name: "sm_100a"}},
		{12, 1, Target{name: "compute_100", ptx: true}},
		{8, 9, Target{name: "compute_80", ptx: true}},
	} {
		got, err := c.Target(e.major, e.minor)
		require.NoError(t, err)
		require.Equal(t, e.want, got)
	}
	_, err := c.Target(7, 0)
	require.ErrorContains(t, err, "compute capability 7.0: it must be at least 7.5")
}

func TestProcessWithoutNVRTC(t *testing.T) {
	_, err := Open("/nonexistent/libnvrtc.so.13")
	require.ErrorContains(t, err, "/nonexistent/libnvrtc.so.13")
}
