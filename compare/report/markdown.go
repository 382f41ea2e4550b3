package report

import (
	"io"
	"strings"
)

// writeMarkdown writes a page in GitHub's Markdown, without plots and long tables.
func writeMarkdown(w io.Writer, p page) error {
	out := &printer{w: w}
	mark := "✅"
	if !p.Good {
		mark = "❌"
	}
	out.printf("## %s\n\n%s **%s**\n\n", escaped(p.Title), mark, escaped(p.Verdict))
	for _, fact := range p.Facts {
		out.printf("- %s\n", escaped(fact))
	}
	out.notes("Failures", p.Failures)
	if p.Legend != "" {
		out.printf("\n%s\n", escaped(p.Legend))
	}
	for _, t := range p.Tables {
		if !t.Long && len(t.Rows) > 0 {
			out.markdownTable(t)
		}
	}
	out.notes(p.FaultsTitle, p.Faults)
	return out.err
}

func (p *printer) markdownTable(t table) {
	p.printf("\n### %s\n\n|", escaped(t.Title))
	for _, c := range t.Columns {
		p.printf(" %s |", escaped(c.Name))
	}
	p.printf("\n|")
	for _, c := range t.Columns {
		if c.Number {
			p.printf("---:|")
		} else {
			p.printf("---|")
		}
	}
	for _, row := range t.Rows {
		p.printf("\n|")
		for _, c := range row {
			text := escaped(c.Text)
			if c.Bad {
				text = "**" + text + "**"
			}
			p.printf(" %s |", text)
		}
	}
	p.printf("\n")
}

// notes writes the first maxExplained notes as a list with their texts in code blocks.
func (p *printer) notes(title string, notes []note) {
	if len(notes) == 0 {
		return
	}
	p.printf("\n### %s\n\n", title)
	for i, n := range notes {
		if i == maxExplained {
			p.printf("- and %d more, each in the JSON report\n", len(notes)-maxExplained)
			return
		}
		if i > 0 {
			p.printf("\n")
		}
		p.printf("- **%s**\n\n      %s\n", escaped(n.Title), strings.ReplaceAll(n.Text, "\n", "\n      "))
	}
}

// escaped escapes the characters that Markdown interprets.
func escaped(text string) string {
	var out strings.Builder
	for _, c := range text {
		if strings.ContainsRune("\\`*_[]<>|&~", c) {
			out.WriteByte('\\')
		}
		out.WriteRune(c)
	}
	return strings.ReplaceAll(out.String(), "\n", " ")
}

// firstLine returns the first line of a text.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
