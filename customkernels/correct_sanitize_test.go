package customkernels

import (
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/stretchr/testify/require"
)

// The checker finds no error in correct shaders and computes right values under every
// schedule. A sample has some launches of each kernel.
func TestSanitizeFindsNothingInCorrectShaders(t *testing.T) {
	for _, n := range sampleLaunches(correctLaunches(t)) {
		t.Run(n.name, func(t *testing.T) {
			t.Parallel()
			report, err := n.kernel.Sanitize(t.Context(), n.launch, sanitizer.Config{Schedules: 3, Seed: 1}, n.inputs...)
			require.NoError(t, err)
			for _, f := range report.Findings {
				// A scan's last slot and a padded tile's edge are written and not read:
				// portability findings are a matter of taste here.
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
