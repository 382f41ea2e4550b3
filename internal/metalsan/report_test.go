package metalsan

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

func TestReplayIsOneCommand(t *testing.T) {
	c := &Command{
		Program:   "mlxgrad sanitize",
		Flags:     Flags{Seed: 3, Case: "it's|a", Files: []string{"a b.metal", "dir/c-1.metal"}},
		Schedules: 9,
		Timeout:   defaultTimeout,
	}
	require.Equal(t, `mlxgrad sanitize --seed=3 --schedules=9 --case='it'\''s|a' 'a b.metal' dir/c-1.metal`, c.replay())
	c = &Command{Program: "metalsan", Flags: Flags{Seed: 1}, Schedules: 3, Strict: true, Timeout: 90 * time.Second}
	require.Equal(t, "metalsan --seed=1 --schedules=3 --strict --timeout=1m30s", c.replay())
}

// Findings with the same two places, in either order and in any launch, are one finding.
func TestFindingsOfSeveralLaunchesAreOne(t *testing.T) {
	at := func(line int) sanitizer.Site {
		return sanitizer.Site{File: "f.metal", Line: line, Function: "f"}
	}
	race := func(a, b int) sanitizeFinding {
		return newSanitizeFinding(sanitizer.Finding{
			Kind: sanitizer.FindingRace, Severity: sanitizer.SeverityError, Site: at(a), Other: at(b), Buffer: "x",
		})
	}
	never := newSanitizeFinding(sanitizer.Finding{
		Kind: sanitizer.FindingNeverRead, Severity: sanitizer.SeverityPortability, Site: at(1),
	})
	launches := []sanitizedLaunch{
		{Kernel: "f", Launch: "1", Findings: []sanitizeFinding{never, race(1, 2)}},
		{Kernel: "f", Launch: "2", Findings: []sanitizeFinding{race(2, 1), race(2, 2)}},
		{Kernel: "f", Launch: "3", Error: "no"},
	}
	r := newReport(&Command{}, Chosen{})
	text := r.add(launches)
	require.Equal(t, 3, r.Errors, "two races and a launch that was not run")
	require.Equal(t, 1, r.Portability)
	require.Contains(t, text, "f: 3 launches: 3 errors, 1 portability finding\n")
	require.Contains(t, text, "    launch    1 and 1 more\n")
	require.True(t, r.failed())
}

// A remark on several launches of a kernel is printed once.
func TestRemarksOnLaunches(t *testing.T) {
	kernel := sanitizer.Report{Schedules: 3, SameBits: true}
	unread, outside := kernel, kernel
	unread.AddressSpacesSkipped = "clang is missing"
	outside.AddressSpacesSkipped, outside.UnsupportedByMLX = "clang is missing", "y is read and written"
	r := newReport(&Command{Flags: Flags{Files: []string{"f.metal"}}}, Chosen{})
	launch := func(label string, line int) Launch {
		return Launch{Kernel: "softmax", File: "f.metal", Label: label, Described: sanitizer.Site{File: "f.metal", Line: line}}
	}
	require.Equal(t, "softmax: 3 launches: ok\n"+
		"f.metal:9:1: note: outside MLX (c): y is read and written\n"+
		"f.metal:8:1: note: address spaces not checked (b and 1 more): clang is missing\n",
		r.add([]sanitizedLaunch{
			newSanitizedLaunch(launch("a", 7), &kernel, nil),
			newSanitizedLaunch(launch("b", 8), &unread, nil),
			newSanitizedLaunch(launch("c", 9), &outside, nil),
		}))
	require.Zero(t, r.Errors)
	require.Equal(t, 2, r.Unchecked)
	require.False(t, r.failed())
	r.Strict = true
	require.True(t, r.failed(), "with --strict every launch must have been checked")
}

// A finding about the order of threads names no threads.
func TestOrderDependentNamesNoThreads(t *testing.T) {
	f := sanitizer.Finding{Kind: sanitizer.FindingOrderDependent, Schedule: "reversed", Buffer: "y"}
	require.Empty(t, newSanitizeFinding(f).Threads)
	f.Kind = sanitizer.FindingRace
	require.Len(t, newSanitizeFinding(f).Threads, 1)
}

func TestReportFailed(t *testing.T) {
	for _, c := range []struct {
		report Report
		failed bool
	}{
		{Report{LaunchCount: 1}, false},
		{Report{}, true},
		{Report{LaunchCount: 1, Errors: 1}, true},
		{Report{LaunchCount: 1, Portability: 1}, false},
		{Report{LaunchCount: 1, Portability: 1, Strict: true}, true},
		{Report{LaunchCount: 1, Unchecked: 1}, false},
		{Report{LaunchCount: 1, Unchecked: 1, Strict: true}, true},
	} {
		require.Equal(t, c.failed, c.report.failed(), "%+v", c.report)
	}
}
