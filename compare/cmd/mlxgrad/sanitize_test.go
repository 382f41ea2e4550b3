package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
)

func TestReplayIsOneCommand(t *testing.T) {
	c := &sanitizeCommand{
		launchFlags: launchFlags{Seed: 3, Case: "it's|a", Files: []string{"a b.metal", "dir/c-1.metal"}},
		Schedules:   9,
	}
	require.Equal(t, `mlxgrad sanitize --seed=3 --schedules=9 --case='it'\''s|a' 'a b.metal' dir/c-1.metal`, c.replay())
}

// The same two places, either way round and in whatever launch, are one finding.
func TestFindingsOfSeveralLaunchesAreOne(t *testing.T) {
	at := func(line int) customkernels.Site {
		return customkernels.Site{File: "f.metal", Line: line, Function: "f"}
	}
	race := func(a, b int) sanitizeFinding {
		return newSanitizeFinding(customkernels.Finding{
			Kind: customkernels.FindingRace, Severity: customkernels.SeverityError, Site: at(a), Other: at(b), Buffer: "x",
		})
	}
	never := newSanitizeFinding(customkernels.Finding{
		Kind: customkernels.FindingNeverRead, Severity: customkernels.SeverityPortability, Site: at(1),
	})
	launches := []sanitizedLaunch{
		{Kernel: "f", Launch: "1", Findings: []sanitizeFinding{never, race(1, 2)}},
		{Kernel: "f", Launch: "2", Findings: []sanitizeFinding{race(2, 1), race(2, 2)}},
		{Kernel: "f", Launch: "3", Error: "no"},
	}
	r := newSanitizeReport(&sanitizeCommand{}, nil)
	text := r.add(launches)
	require.Equal(t, 3, r.Errors, "two races and a launch that was not run")
	require.Equal(t, 1, r.Portability)
	require.Contains(t, text, "f: 3 launches: 3 errors, 1 portability finding\n")
	require.Contains(t, text, "    launch    1 and 1 more\n")
	require.True(t, r.failed())
}

func TestWhatFailsARun(t *testing.T) {
	for _, c := range []struct {
		report sanitizeReport
		failed bool
	}{
		{sanitizeReport{LaunchCount: 1}, false},
		{sanitizeReport{}, true},
		{sanitizeReport{LaunchCount: 1, Errors: 1}, true},
		{sanitizeReport{LaunchCount: 1, Portability: 1}, false},
		{sanitizeReport{LaunchCount: 1, Portability: 1, Strict: true}, true},
	} {
		require.Equal(t, c.failed, c.report.failed(), "%+v", c.report)
	}
}
