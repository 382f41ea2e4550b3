package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// A page is a Markdown file of this repository.
type page struct {
	path     string // from the root of the repository
	headings []string
	links    []string // targets of links and pictures
	spans    []string // code in a line
	blocks   []block
}

// A block is a fenced block of code.
type block struct {
	language, code string
}

// pages parses all documents: those at the root, in docs and in examples.
func pages(t *testing.T) []page {
	t.Helper()
	var paths []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	var all []page
	for _, path := range paths {
		source, err := os.ReadFile(path)
		require.NoError(t, err)
		name, err := filepath.Rel(root, path)
		require.NoError(t, err)
		all = append(all, parse(t, filepath.ToSlash(name), source))
	}
	require.Greater(t, len(all), 10)
	return all
}

var htmlLink = regexp.MustCompile(`(?:src|srcset|href)="([^"]*)"`)

func parse(t *testing.T, path string, source []byte) page {
	t.Helper()
	p := page{path: path}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM))
	html := func(lines *text.Segments) {
		for _, m := range htmlLink.FindAllSubmatch(lines.Value(source), -1) {
			p.links = append(p.links, string(m[1]))
		}
	}
	err := ast.Walk(markdown.Parser().Parse(text.NewReader(source)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			p.headings = append(p.headings, anchor(plainText(n, source)))
		case *ast.Link:
			p.links = append(p.links, string(n.Destination))
		case *ast.Image:
			p.links = append(p.links, string(n.Destination))
		case *ast.HTMLBlock:
			html(n.Lines())
		case *ast.RawHTML:
			html(n.Segments)
		case *ast.CodeSpan:
			p.spans = append(p.spans, plainText(n, source))
		case *ast.FencedCodeBlock:
			p.blocks = append(p.blocks, block{language: string(n.Language(source)), code: string(n.Lines().Value(source))})
		}
		return ast.WalkContinue, nil
	})
	require.NoError(t, err)
	return p
}

func plainText(n ast.Node, source []byte) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if leaf, ok := c.(*ast.Text); ok {
			out.Write(leaf.Value(source))
			if leaf.SoftLineBreak() {
				out.WriteByte(' ')
			}
		} else {
			out.WriteString(plainText(c, source))
		}
	}
	return out.String()
}

// anchor returns the anchor that GitHub and the site give a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		default:
			return -1
		}
	}, heading)
}

const onGitHub = "https://github.com/mlxgrad/mlxgrad/"

// Links to files and headings of this repository lead somewhere. In docs they also work on the site, so they stay
// inside docs or name the file on GitHub.
func TestLinks(t *testing.T) {
	all := pages(t)
	for _, p := range all {
		for _, link := range p.links {
			target, fragment, _ := strings.Cut(link, "#")
			switch file, own := strings.CutPrefix(target, onGitHub+"blob/main/"); {
			case own:
				target = file
			case strings.HasPrefix(link, "https://"), strings.HasPrefix(link, "http://"):
				continue
			case target == "":
				target = p.path
			default:
				target = filepath.ToSlash(filepath.Join(filepath.Dir(p.path), target))
				if strings.HasPrefix(p.path, "docs/") {
					require.True(t, strings.HasPrefix(target, "docs/"), "%s: write %sblob/main/%s for %s", p.path, onGitHub, target, link)
				}
			}
			_, err := os.Stat(filepath.Join(root, target))
			require.NoError(t, err, "%s: %s", p.path, link)
			if to := slices.IndexFunc(all, func(p page) bool { return p.path == target }); fragment != "" && to >= 0 {
				require.Contains(t, all[to].headings, fragment, "%s: %s", p.path, link)
			}
		}
	}
}
