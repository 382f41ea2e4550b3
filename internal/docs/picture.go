package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// pathPicture adds path.svg, a drawing of the way from a shader to its executors, in both themes. It replaces the
// placeholders TEXT, GRID and BLUE by colors.
func (f files) pathPicture(root string) error {
	drawing, err := os.ReadFile(filepath.Join(root, "internal/docs/path.svg"))
	if err != nil {
		return err
	}
	for _, theme := range themes {
		colors := strings.NewReplacer("TEXT", theme.textColor(), "GRID", theme.gridColor(), "BLUE", theme.accent())
		f[figurePath("path", theme.Name)] = []byte(colors.Replace(string(drawing)))
	}
	return nil
}

// picture returns the HTML of a figure for a page in the folder from.
func picture(from, name, alt string) string {
	path := func(theme string) string {
		p, err := filepath.Rel(from, figurePath(name, theme))
		if err != nil {
			panic(err) // both paths are relative to the root
		}
		return filepath.ToSlash(p)
	}
	return fmt.Sprintf(`<picture><source media="(prefers-color-scheme: dark)" srcset="%s"><img src="%s" alt="%s"></picture>`,
		path("dark"), path("light"), alt)
}
