package sanitizer

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An overflow in several instances of a template has one cause. Overflows on other lines have others.
func TestOneLineIsOneCause(t *testing.T) {
	at := func(line int, function string) Finding {
		return Finding{Kind: FindingOverflow, Severity: SeverityError, Site: Site{File: "a", Line: line, Function: function}}
	}
	list := causes([]Finding{at(3, "f<int>"), at(3, "f<float>"), at(4, "f<int>")})
	require.Equal(t, []Finding{at(3, "f<int>"), at(4, "f<int>")}, list)
}
