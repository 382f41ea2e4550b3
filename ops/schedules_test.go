package ops

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// shortDType is the dtype in which each geometry is checked in a run that is not long.
var shortDType = map[mlxc.Backend]mlxc.DType{
	mlxc.BackendCPU:   mlxc.Float16,
	mlxc.BackendMetal: mlxc.Float32,
	mlxc.BackendCUDA:  mlxc.Float16,
	variantGeometry:   mlxc.BFloat16,
}

// Every kernel computes the same bits in every order of its threads and threadgroups, and the checker has no findings,
// not even about portability. A default run checks a sample of the launches.
func TestKernelsUnderSchedules(t *testing.T) {
	schedules := 5
	if long.Enabled() {
		schedules = 50
	}
	var spent atomic.Int64
	launches := KernelLaunches(RaggedCases)
	launches = append(launches, variants(launches)...)
	t.Cleanup(func() {
		t.Logf("%d launches under %d schedules each, %v in the checker", len(launches), schedules,
			time.Duration(spent.Load()).Round(time.Millisecond))
	})
	if !long.Enabled() {
		launches = slices.DeleteFunc(launches, func(l KernelLaunch) bool { return l.DType != shortDType[l.Backend] })
	}
	launches = distinctPrograms(launches)
	if !long.Full() {
		launches = sampleLaunches(launches)
	}
	for _, l := range launches {
		t.Run(fmt.Sprint(l.Name(), l.Launch.Threadgroup), func(t *testing.T) {
			t.Parallel() // compiling takes most of the time
			r, err := l.Kernel.Sanitize(t.Context(), l.Launch, sanitizer.Config{
				Schedules: schedules, Seed: 1, Timeout: 10 * time.Minute,
			}, l.Inputs()...)
			require.NoError(t, err)
			require.Empty(t, r.Findings)
			if r.AddressSpacesSkipped != "" {
				skip.Lacking(t, skip.Clang, r.AddressSpacesSkipped)
			}
			require.True(t, r.SameBits, r.Difference)
			require.Equal(t, schedules, r.Schedules)
			spent.Add(int64(r.Duration))
		})
	}
}

// distinctPrograms returns the launches that differ from the ones before them in more than the values of inputs. The
// kernels of the gated delta rule convert all dtypes to float32.
func distinctPrograms(launches []KernelLaunch) []KernelLaunch {
	type place struct {
		op, name string
		backend  mlxc.Backend
		kernel   *customkernels.Kernel
		index    int
	}
	seen := map[place][]customkernels.Launch{}
	return slices.DeleteFunc(slices.Clone(launches), func(l KernelLaunch) bool {
		at := place{l.Op, l.Case, l.Backend, l.Kernel, l.index}
		for _, other := range seen[at] {
			if reflect.DeepEqual(l.Launch, other) {
				return true
			}
		}
		seen[at] = append(seen[at], l.Launch)
		return false
	})
}
