package customkernels

import (
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/stretchr/testify/require"
)

// The checker finds nothing in correct shaders, except the portability findings that a launch names, and its outputs are
// right. A sample has some launches of each kernel.
func TestSanitizeFindsNothingInCorrectShaders(t *testing.T) {
	for _, n := range sampleLaunches(correctLaunches(t)) {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			report, err := n.kernel.Sanitize(t.Context(), n.launch, sanitizer.Config{Schedules: 3, Seed: 1}, n.inputs...)
			require.NoError(t, err)
			for _, f := range report.Findings {
				if f.Severity == sanitizer.SeverityError || f.Kind != n.finding {
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
