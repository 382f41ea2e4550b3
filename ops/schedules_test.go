package ops

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// shortDType is the one dtype for each geometry that the short run checks: compiling for
// the checker is what takes the time.
var shortDType = map[string]mlxc.DType{
	host.String(): mlxc.Float16, apple.String(): mlxc.Float32, cuda.String(): mlxc.Float16, "variant": mlxc.BFloat16,
}

// Every kernel gives the same bits in every order of its threads and threadgroups, and
// the checker has nothing to say about it, not even about portability.
func TestKernelsUnderSchedules(t *testing.T) {
	schedules := 5
	if long.Enabled() {
		schedules = 50
	}
	var spent atomic.Int64
	launches := Launches(RaggedCases)
	launches = append(launches, variants(launches)...)
	t.Cleanup(func() {
		t.Logf("%d launches under %d schedules each, %v in the checker", len(launches), schedules,
			time.Duration(spent.Load()).Round(time.Millisecond))
	})
	for _, l := range launches {
		if !long.Enabled() && l.DType != shortDType[l.Device] {
			continue
		}
		t.Run(fmt.Sprint(l.Name(), l.Launch.Threadgroup), func(t *testing.T) {
			t.Parallel() // compiling takes most of it
			r, err := l.Kernel.Sanitize(t.Context(), l.Launch, sanitizer.Config{
				Schedules: schedules, Seed: 1, Timeout: 10 * time.Minute,
			}, l.Inputs()...)
			require.NoError(t, err)
			require.Empty(t, r.Findings)
			if r.Unchecked != "" {
				skip.Lacking(t, skip.Clang, r.Unchecked)
			}
			require.True(t, r.SameBits, r.Difference)
			require.Equal(t, schedules, r.Schedules)
			spent.Add(int64(r.Duration))
		})
	}
}
