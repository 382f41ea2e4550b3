package report

import (
	"strings"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
)

// Columns returns a header and rows as text in columns with two spaces between them. align has a letter for each
// column, "l" for left or "r" for right.
func Columns(align string, header []string, rows [][]string) (string, error) {
	var cell tw.CellAlignment
	for _, c := range align {
		cell.PerColumn = append(cell.PerColumn, map[rune]tw.Align{'l': tw.AlignLeft, 'r': tw.AlignRight}[c])
	}
	cells := tw.CellConfig{
		Alignment:  cell,
		Padding:    tw.CellPadding{Global: tw.Padding{Left: "", Right: "  ", Overwrite: true}},
		Formatting: tw.CellFormatting{AutoFormat: tw.Off, AutoWrap: tw.WrapNone},
	}
	var text strings.Builder
	t := tablewriter.NewTable(&text,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders:  tw.BorderNone,
			Settings: tw.Settings{Separators: tw.SeparatorsNone, Lines: tw.LinesNone},
		})),
		tablewriter.WithConfig(tablewriter.Config{Header: cells, Row: cells}),
	)
	t.Header(header)
	if err := t.Bulk(rows); err != nil {
		return "", err
	}
	if err := t.Render(); err != nil {
		return "", err
	}
	var trimmed strings.Builder
	for line := range strings.Lines(text.String()) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n") // the last column is padded too
	}
	return trimmed.String(), nil
}
