package customkernels

import "github.com/mlxgrad/mlxgrad/internal/mlxtest"

// sampleLaunches returns the first launch of each kernel and one in twelve of the others.
func sampleLaunches(launches []namedLaunch) (sample []namedLaunch) {
	seen := map[*Kernel]bool{}
	for i, l := range launches {
		// A kernel's launches cycle through three dtypes. Adding i/3 makes the sample cycle through them too.
		if !seen[l.kernel] || mlxtest.InSample(i+i/3) {
			seen[l.kernel] = true
			sample = append(sample, l)
		}
	}
	return sample
}
