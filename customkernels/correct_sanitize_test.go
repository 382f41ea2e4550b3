package customkernels

import (
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/stretchr/testify/require"
)

// The checker finds no error in correct shaders, and its outputs are right. A sample has some launches of each kernel.
func TestSanitizeFindsNothingInCorrectShaders(t *testing.T) {
	for _, n := range sampleLaunches(correctLaunches(t)) {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			report, err := n.kernel.Sanitize(t.Context(), n.launch, sanitizer.Config{Schedules: 3, Seed: 1}, n.inputs...)
			require.NoError(t, err)
			for _, f := range report.Findings {
				// Portability findings are allowed: some correct kernels write elements that no thread reads, such as
				// the last element of a scan or the edge of a padded tile.
				if f.Severity == sanitizer.SeverityError {
					t.Errorf("%v", f)
				}
			}
			if n.finding != "" {
				require.True(t, slices.ContainsFunc(report.Findings, func(f sanitizer.Finding) bool { return f.Kind == n.finding }))
			}
			n.check(t, report.Outputs)
		})
	}
}
