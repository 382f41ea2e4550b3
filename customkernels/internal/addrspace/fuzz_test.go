package addrspace

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl/msltest"
)

// translated translates a text for clang; ok is false if the text is broken.
func translated(text string) (source string, ok bool) {
	s, err := msl.NewStructure("", text, nil)
	if err != nil {
		return "", false
	}
	items, err := s.Items()
	if err != nil {
		return "", false
	}
	w := &rewriter{Structure: s, items: items, code: msl.NewCode(s.All), edits: msl.Edits{Text: text}}
	if source, err = w.translate(); err != nil {
		return "", false
	}
	w.programScope()
	return source, true
}

// FuzzTranslate looks for a text that makes the translation panic or loses lines.
func FuzzTranslate(f *testing.F) {
	msltest.Seeds(f, "../*/testdata/*.metal")
	f.Fuzz(func(t *testing.T, text string) {
		if source, ok := translated(text); ok {
			require.GreaterOrEqual(t, strings.Count(source, "\n"), strings.Count(text, "\n"))
		}
	})
}

func TestTranslationOfHostileTexts(t *testing.T) {
	msltest.Hostile(t, func(text string) { translated(text) })
}
