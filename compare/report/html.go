package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var pageText string

var pageTemplate = template.Must(template.New("page").Parse(pageText))

// writeHTML writes a page as one file that loads nothing else.
func writeHTML(w io.Writer, p page) error {
	if err := pageTemplate.Execute(w, p); err != nil {
		return fmt.Errorf("writing HTML: %w", err)
	}
	return nil
}
