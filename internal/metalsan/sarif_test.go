package metalsan

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// sampleSARIF encodes a report with two findings, a launch that did not run and a file that did not load.
func sampleSARIF(t *testing.T) map[string]any {
	t.Helper()
	wd, err := os.Getwd()
	require.NoError(t, err)
	race := newSanitizeFinding(sanitizer.Finding{
		Kind: sanitizer.FindingRace, Message: "a race",
		Site:  sanitizer.Site{File: filepath.Join(wd, "a b.metal"), Line: 3, Function: "f"},
		Path:  []sanitizer.Site{{File: "c.h", Line: 9, Function: "g"}},
		Other: sanitizer.Site{File: "dir/d.metal", Line: 4, Function: "f"},
	})
	limit := newSanitizeFinding(sanitizer.Finding{
		Kind: sanitizer.FindingShift, Message: "a shift",
		Site: sanitizer.Site{File: "/elsewhere/e.metal"},
	})
	r := newReport(&Command{Program: "metalsan"}, Chosen{Failed: []FailedFile{{"lost.metal", 1, 10, "no such file"}}})
	r.add([]sanitizedLaunch{
		{Kernel: "f", Launch: "1", Findings: []sanitizeFinding{race, limit}},
		{Kernel: "f", File: "a.metal", Launch: "2", Error: "no"},
	})
	text, err := json.Marshal(newSARIF(r))
	require.NoError(t, err)
	var log map[string]any
	require.NoError(t, json.Unmarshal(text, &log))
	return log
}

// The report has the properties that SARIF 2.1.0 requires, with allowed values.
func TestSARIFStructure(t *testing.T) {
	log := sampleSARIF(t)
	require.Equal(t, "2.1.0", log["version"])
	require.Contains(t, log["$schema"], "sarif-2.1.0")
	runs := log["runs"].([]any)
	require.Len(t, runs, 1)
	run := runs[0].(map[string]any)
	driver := run["tool"].(map[string]any)["driver"].(map[string]any)
	require.Equal(t, "metalsan", driver["name"])
	require.NotEmpty(t, driver["version"])
	requireURI(t, driver["informationUri"], true)

	levels := []any{"none", "note", "warning", "error"}
	ids := map[any]bool{}
	rules := driver["rules"].([]any)
	for _, r := range rules {
		rule := r.(map[string]any)
		require.NotEmpty(t, rule["id"])
		require.False(t, ids[rule["id"]], "the id %v is there twice", rule["id"])
		ids[rule["id"]] = true
		require.NotEmpty(t, rule["shortDescription"].(map[string]any)["text"])
		require.Contains(t, levels, rule["defaultConfiguration"].(map[string]any)["level"])
		requireURI(t, rule["helpUri"], true)
	}

	invocation := run["invocations"].([]any)[0].(map[string]any)
	require.Equal(t, false, invocation["executionSuccessful"])
	notifications := invocation["toolExecutionNotifications"].([]any)
	require.Len(t, notifications, 2)
	for _, n := range notifications {
		require.Equal(t, "error", n.(map[string]any)["level"])
		require.NotEmpty(t, n.(map[string]any)["message"].(map[string]any)["text"])
		requireLocations(t, n.(map[string]any)["locations"])
	}

	results := run["results"].([]any)
	require.Len(t, results, 2)
	for _, r := range results {
		result := r.(map[string]any)
		index := int(result["ruleIndex"].(float64))
		require.Equal(t, result["ruleId"], rules[index].(map[string]any)["id"])
		require.Contains(t, levels, result["level"])
		require.NotEmpty(t, result["message"].(map[string]any)["text"])
		require.Len(t, result["partialFingerprints"].(map[string]any)["finding/v1"], 32)
		requireLocations(t, result["locations"])
		if related, ok := result["relatedLocations"]; ok {
			requireLocations(t, related)
		}
	}
}

func requireLocations(t *testing.T, list any) {
	t.Helper()
	require.NotEmpty(t, list)
	for _, l := range list.([]any) {
		physical := l.(map[string]any)["physicalLocation"].(map[string]any)
		requireURI(t, physical["artifactLocation"].(map[string]any)["uri"], false)
		if region, ok := physical["region"]; ok {
			require.GreaterOrEqual(t, region.(map[string]any)["startLine"], 1.0)
		}
	}
}

func requireURI(t *testing.T, text any, absolute bool) {
	t.Helper()
	uri, err := url.Parse(text.(string))
	require.NoError(t, err)
	require.NotContains(t, text, " ")
	if absolute {
		require.True(t, uri.IsAbs(), text)
	}
}

func TestSARIFValues(t *testing.T) {
	run := sampleSARIF(t)["runs"].([]any)[0].(map[string]any)
	result := run["results"].([]any)[0].(map[string]any)
	require.Equal(t, "race", result["ruleId"])
	require.Equal(t, "error", result["level"])
	require.Equal(t, map[string]any{"text": "a race (launch 1)"}, result["message"])
	at := func(list any, i int) map[string]any {
		return list.([]any)[i].(map[string]any)["physicalLocation"].(map[string]any)
	}
	require.Equal(t, map[string]any{
		"artifactLocation": map[string]any{"uri": "a%20b.metal"}, "region": map[string]any{"startLine": 3.0},
	}, at(result["locations"], 0), "a file below the working folder")
	require.Equal(t, "dir/d.metal", at(result["relatedLocations"], 0)["artifactLocation"].(map[string]any)["uri"])
	require.Equal(t, "c.h", at(result["relatedLocations"], 1)["artifactLocation"].(map[string]any)["uri"])

	result = run["results"].([]any)[1].(map[string]any)
	require.Equal(t, "warning", result["level"])
	require.Equal(t, map[string]any{"artifactLocation": map[string]any{"uri": "file:///elsewhere/e.metal"}},
		at(result["locations"], 0))
}

// The fingerprint of a finding does not depend on its line.
func TestSARIFFingerprint(t *testing.T) {
	print := func(line int) string {
		f := newSanitizeFinding(sanitizer.Finding{
			Kind: sanitizer.FindingRace, Buffer: "x",
			Site: sanitizer.Site{File: "a", Line: line},
		})
		return sarifResultOf(findingGroup{f, []string{"1"}}).PartialFingerprints["finding/v1"]
	}
	require.Equal(t, print(1), print(2))
}

func TestEveryKindHasADescription(t *testing.T) {
	severity := sanitizer.SeverityError
	for _, k := range sanitizer.FindingKinds() {
		require.NotEmpty(t, k.Description(), k)
		if k.Severity() != severity {
			require.Equal(t, sanitizer.SeverityPortability, k.Severity(), "errors come first")
			severity = k.Severity()
		}
	}
}
