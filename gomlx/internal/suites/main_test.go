package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	reference := results{"A": passed, "A/x": passed, "B": failed, "C": skipped, "D": failed}
	mlx := results{"A": passed, "A/x": failed, "B": passed, "C": skipped, "D": failed, "D/new": failed}
	r := newReport(reference, mlx)
	require.Equal(t, report{reference: 2, both: 1, onlyMLX: 1, neither: 2, skipped: 1, broken: []string{"A/x"}}, r)
	require.ErrorContains(t, r.check(nil), "A/x")
	require.ErrorContains(t, r.check(map[string]string{"A/x": "known"}), "1 of 2 tests pass")
	r.add(report{reference: 18, both: 18})
	require.NoError(t, r.check(map[string]string{"A/x": "known"}))

	require.Equal(t, "TestX/BACKEND/go_on", withoutBackend("TestX/"+goBackend+"/go_on", goBackend))
	require.Equal(t, [][]string{{"    --- FAIL: TestX/a", failed, "TestX/a"}, {"=== RUN   TestX/b", "=== RUN", "TestX/b"}},
		line.FindAllStringSubmatch("    --- FAIL: TestX/a (0.00s)\n=== RUN   TestX/b\n", -1))
}
