package metalsan

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/cli"
)

// The types below are the part of SARIF 2.1.0 that a report needs. All names are the standard's.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Invocations []sarifInvocation `json:"invocations"`
		Results     []sarifResult     `json:"results"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID                   string             `json:"id"`
		ShortDescription     sarifMessage       `json:"shortDescription"`
		HelpURI              string             `json:"helpUri"`
		DefaultConfiguration sarifConfiguration `json:"defaultConfiguration"`
	}
	sarifConfiguration struct {
		Level string `json:"level"`
	}
	sarifInvocation struct {
		CommandLine         string              `json:"commandLine"`
		ExecutionSuccessful bool                `json:"executionSuccessful"`
		Notifications       []sarifNotification `json:"toolExecutionNotifications,omitempty"`
	}
	sarifNotification struct {
		Level     string          `json:"level"`
		Message   sarifMessage    `json:"message"`
		Locations []sarifLocation `json:"locations,omitempty"`
	}
	sarifResult struct {
		RuleID              string             `json:"ruleId"`
		RuleIndex           int                `json:"ruleIndex"`
		Level               string             `json:"level"`
		Message             sarifMessage       `json:"message"`
		Locations           []sarifLocation    `json:"locations"`
		RelatedLocations    []sarifLocation    `json:"relatedLocations,omitempty"`
		PartialFingerprints map[string]string  `json:"partialFingerprints"`
		Suppressions        []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifLocation struct {
		ID               int             `json:"id,omitempty"`
		Message          *sarifMessage   `json:"message,omitempty"`
		PhysicalLocation sarifPhysical   `json:"physicalLocation"`
		LogicalLocations []sarifFunction `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		ArtifactLocation struct {
			URI string `json:"uri"`
		} `json:"artifactLocation"`
		Region *sarifRegion `json:"region,omitempty"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifFunction struct {
		Name string `json:"name"`
		Kind string `json:"kind"`
	}
)

const sarifHelp = "https://github.com/mlxgrad/mlxgrad/blob/main/docs/sanitize.md#findings"

// newSARIF returns the report in SARIF: a rule per kind of finding, a result per finding, and a notification for each
// launch and file that did not run.
func newSARIF(r *Report) sarifLog {
	var run sarifRun
	run.Tool.Driver = sarifDriver{
		Name: "metalsan", Version: cli.Version(), InformationURI: "https://github.com/mlxgrad/mlxgrad",
		Rules: []sarifRule{},
	}
	for _, k := range sanitizer.FindingKinds() {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: string(k), ShortDescription: sarifMessage{k.Description()}, HelpURI: sarifHelp,
			DefaultConfiguration: sarifConfiguration{sarifLevel(k.Severity())},
		})
	}
	invocation := sarifInvocation{CommandLine: r.Replay, ExecutionSuccessful: !r.Incomplete}
	notify := func(at findingSite, text string) {
		invocation.ExecutionSuccessful = false
		n := sarifNotification{Level: "error", Message: sarifMessage{text}}
		if at.File != "" {
			n.Locations = []sarifLocation{sarifAt(at)}
		}
		invocation.Notifications = append(invocation.Notifications, n)
	}
	for _, f := range r.FailedFiles {
		notify(findingSite{File: f.File, Line: f.Line, Column: f.Column}, f.Error)
	}
	for _, l := range r.Launches {
		if l.Error != "" {
			notify(findingSite{File: l.File}, fmt.Sprintf("%s, %s: %s", l.Kernel, l.Launch, l.Error))
		}
	}
	run.Invocations = []sarifInvocation{invocation}
	run.Results = []sarifResult{}
	for _, g := range r.groups {
		run.Results = append(run.Results, sarifResultOf(g))
	}
	return sarifLog{Schema: "https://json.schemastore.org/sarif-2.1.0.json", Version: "2.1.0", Runs: []sarifRun{run}}
}

func sarifResultOf(g findingGroup) sarifResult {
	f := g.finding
	kind := sanitizer.FindingKind(f.Kind)
	result := sarifResult{
		RuleID: f.Kind, RuleIndex: slices.Index(sanitizer.FindingKinds(), kind), Level: sarifLevel(kind.Severity()),
		Message:   sarifMessage{f.Message + " (launch " + andMore(g.launches) + ")"},
		Locations: []sarifLocation{sarifAt(f.Site)},
	}
	related := func(text string, s findingSite) {
		l := sarifAt(s)
		l.ID, l.Message = len(result.RelatedLocations)+1, &sarifMessage{text}
		result.RelatedLocations = append(result.RelatedLocations, l)
	}
	if f.Other != nil {
		related("the other access or barrier", *f.Other)
	}
	for _, s := range f.More {
		related("the same cause", s)
	}
	for _, s := range f.Path {
		related("called here", s)
	}
	result.PartialFingerprints = map[string]string{"finding/v1": fingerprint(f)}
	switch {
	case f.Suppressed != "":
		result.Suppressions = []sarifSuppression{{"inSource", f.Suppressed}}
	case f.InBaseline:
		result.Suppressions = []sarifSuppression{{"external", "in the baseline"}}
	}
	return result
}

func sarifLevel(s sanitizer.Severity) string {
	if s == sanitizer.SeverityError {
		return "error"
	}
	return "warning"
}

// sarifAt returns a location.
func sarifAt(s findingSite) sarifLocation {
	var l sarifLocation
	l.PhysicalLocation.ArtifactLocation.URI = uriOf(s.File)
	if s.Line > 0 {
		l.PhysicalLocation.Region = &sarifRegion{s.Line, s.Column}
	}
	if s.Function != "" {
		l.LogicalLocations = []sarifFunction{{s.Function, "function"}}
	}
	return l
}

// uriOf returns the URI of a file, which is relative if the file lies below the working folder.
func uriOf(file string) string {
	file = cmp.Or(file, ".")
	if wd, err := os.Getwd(); err == nil && filepath.IsAbs(file) {
		if below, err := filepath.Rel(wd, file); err == nil && filepath.IsLocal(below) {
			file = below
		}
	}
	uri := url.URL{Path: filepath.ToSlash(filepath.Clean(file))}
	if filepath.IsAbs(file) {
		uri.Scheme = "file"
	}
	return uri.String()
}
