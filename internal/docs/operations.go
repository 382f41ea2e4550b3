package docs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An operation has a page in docs/ops.
type operation struct {
	file      string   // of the page, without its ending
	functions []string // of package ops; the first names the page
	config    string   // type of the options, or ""
	suites    []string // names in reports of parity and bench
}

// operations are in the order of the navigation.
var operations = []operation{
	{file: "rms-norm", functions: []string{"RMSNorm"}, suites: []string{"rmsnorm"}},
	{file: "layer-norm", functions: []string{"LayerNorm"}, suites: []string{"layernorm"}},
	{file: "rms-norm-residual", functions: []string{"RMSNormResidual"}, suites: []string{"rmsnorm-residual"}},
	{file: "add-rms-norm", functions: []string{"AddRMSNorm"}, suites: []string{"add-rmsnorm"}},
	{file: "softmax", functions: []string{"Softmax"}, suites: []string{"softmax"}},
	{file: "transpose", functions: []string{"Transpose2D"}, suites: []string{"transpose2d"}},
	{
		file: "embedding", functions: []string{"Embedding", "EmbeddingSparseGradient"},
		suites: []string{"embedding", "embedding-sparse"},
	},
	{
		file: "cross-entropy", functions: []string{"CrossEntropy"}, config: "CrossEntropyConfig",
		suites: []string{"cross-entropy"},
	},
	{
		file: "linear-cross-entropy", functions: []string{"LinearCrossEntropy"}, config: "CrossEntropyConfig",
		suites: []string{"linear-cross-entropy"},
	},
	{file: "matmul", functions: []string{"MatMul"}, suites: []string{"matmul"}},
	{
		file: "attention", functions: []string{"Attention", "AttentionLogSumExp"}, config: "AttentionConfig",
		suites: []string{"attention"},
	},
	{file: "causal-attention", functions: []string{"CausalAttention"}, suites: []string{"causal-attention"}},
	{
		file: "gated-delta-rule", functions: []string{"GatedDeltaRule", "GatedDeltaStep"}, config: "GatedDeltaRuleConfig",
		suites: []string{"gated-delta-rule"},
	},
	{file: "ssm-scan", functions: []string{"SSMScan", "SSMStep"}, config: "SSMScanConfig", suites: []string{"ssm-scan"}},
}

// sources are the declarations and the examples of package ops.
type sources struct {
	files    *token.FileSet
	pkg      *doc.Package
	examples map[string]*ast.FuncDecl // by name
	texts    map[string][]byte        // by file name
}

func readSources(root string) (*sources, error) {
	paths, err := filepath.Glob(filepath.Join(root, "ops/*.go"))
	if err != nil {
		return nil, err
	}
	s := &sources{files: token.NewFileSet(), examples: map[string]*ast.FuncDecl{}, texts: map[string][]byte{}}
	var parsed []*ast.File
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		f, err := parser.ParseFile(s.files, path, text, parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if !strings.HasSuffix(path, "_test.go") {
			parsed = append(parsed, f)
			continue
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Example") {
				s.examples[strings.TrimPrefix(fn.Name.Name, "Example")], s.texts[path] = fn, text
			}
		}
	}
	s.pkg, err = doc.NewFromFiles(s.files, parsed, "github.com/mlxgrad/mlxgrad/ops")
	return s, err
}

// operationPage writes the page of an operation and its figures.
func (f files) operationPage(root string, o operation, s *sources, timings []timing, composed, errs []record) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# %s\n\n<!-- Written by: go test ./internal/docs -run Generated -update -->\n", o.functions[0])
	for i, name := range o.functions {
		if i > 0 {
			fmt.Fprintf(&out, "\n## %s\n", name)
		}
		if err := s.function(&out, name); err != nil {
			return err
		}
	}
	if o.config != "" {
		if err := s.options(&out, o.config); err != nil {
			return err
		}
	}
	out.WriteString("\n## Determinism\n\n" +
		"The results have the same bits at every run, for any number of threads, on the same device.\n")
	if err := f.accuracy(&out, o, errs); err != nil {
		return err
	}
	if err := f.speed(&out, o, timings, composed); err != nil {
		return err
	}
	if err := traffic(&out, root, o.functions[0]); err != nil {
		return err
	}
	f["docs/ops/"+o.file+".md"] = out.Bytes()
	return nil
}

// function writes the signature, the documentation and the example of a function.
func (s *sources) function(out *bytes.Buffer, name string) error {
	i := slices.IndexFunc(s.pkg.Funcs, func(fn *doc.Func) bool { return fn.Name == name })
	if i < 0 {
		return fmt.Errorf("package ops has no function %s", name)
	}
	fn := s.pkg.Funcs[i]
	start, end := s.files.Position(fn.Decl.Pos()), s.files.Position(fn.Decl.Type.End())
	text, err := os.ReadFile(start.Filename)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\n`%s`\n\n%s", strings.Join(strings.Fields(string(text[start.Offset:end.Offset])), " "), s.markdown(fn.Doc))
	example := s.examples[name]
	if example == nil {
		return nil
	}
	start, end = s.files.Position(example.Body.Lbrace), s.files.Position(example.Body.Rbrace)
	body := string(s.texts[start.Filename][start.Offset+1 : end.Offset])
	body, output, found := strings.Cut(body, "\t// Output:")
	if !found {
		return fmt.Errorf("Example%s has no output", name)
	}
	output = strings.ReplaceAll(strings.ReplaceAll(output, "\t// ", ""), "\t//", "")
	heading := "\n## Example\n"
	if strings.Contains(out.String(), heading) {
		heading = ""
	}
	fmt.Fprintf(out, "%s\n```go\n%s\n```\n\n```text\n%s\n```\n", heading,
		strings.ReplaceAll(strings.Trim(body, "\n"), "\n\t", "\n")[1:], strings.TrimSpace(output))
	return nil
}

// options writes the fields of a struct with their comments.
func (s *sources) options(out *bytes.Buffer, name string) error {
	i := slices.IndexFunc(s.pkg.Types, func(t *doc.Type) bool { return t.Name == name })
	if i < 0 {
		return fmt.Errorf("package ops has no type %s", name)
	}
	fmt.Fprintf(out, "\n## Options\n\n%s", s.markdown(s.pkg.Types[i].Doc))
	fields, ok := s.pkg.Types[i].Decl.Specs[0].(*ast.TypeSpec).Type.(*ast.StructType)
	if !ok {
		return fmt.Errorf("%s is not a struct", name)
	}
	out.WriteString("\n| field | meaning |\n|---|---|\n")
	for _, field := range fields.Fields.List {
		var names []string
		for _, n := range field.Names {
			names = append(names, "`"+n.Name+"`")
		}
		meaning := s.markdown(cmp.Or(field.Doc.Text(), field.Comment.Text()))
		fmt.Fprintf(out, "| %s | %s |\n", strings.Join(names, ", "),
			strings.ReplaceAll(strings.Join(strings.Fields(meaning), " "), "|", `\|`))
	}
	return nil
}

// markdown renders a doc comment. Links to identifiers lead to pkg.go.dev.
func (s *sources) markdown(text string) string {
	p := s.pkg.Printer()
	p.HeadingLevel = 3
	p.DocLinkURL = func(link *comment.DocLink) string {
		return link.DefaultURL("https://pkg.go.dev")
	}
	rendered := string(p.Markdown(s.pkg.Parser().Parse(text)))
	return strings.ReplaceAll(rendered, "](#", "](https://pkg.go.dev/"+s.pkg.ImportPath+"#")
}

// traffic writes the rows of ops/testdata/traffic.md of an operation.
func traffic(out *bytes.Buffer, root, name string) error {
	table, err := os.ReadFile(filepath.Join(root, "ops/testdata/traffic.md"))
	if err != nil {
		return err
	}
	heading, rest, found := strings.Cut(string(table), "| operation |")
	if !found {
		return errors.New("traffic.md has no table: " + heading)
	}
	var rows []string
	for line := range strings.Lines(rest) {
		if strings.HasPrefix(line, "| "+name+" ") || strings.HasPrefix(line, "| "+name+",") {
			rows = append(rows, line)
		}
	}
	if len(rows) == 0 {
		return nil // the operation has no kernel of its own
	}
	fmt.Fprintf(out, "\n## Cost\n\nBytes that the kernels issue to device memory, divided by the bytes that must be moved once, and"+
		" the limit of\nthe tests ([traffic.md](%sblob/main/ops/testdata/traffic.md) explains the columns):\n\n", source)
	out.WriteString("| operation | dtype | issued ÷ compulsory | limit | read again | bank conflicts |\n|---|---|---|---|---|---|\n")
	out.WriteString(strings.Join(rows, ""))
	return nil
}

const source = "https://github.com/mlxgrad/mlxgrad/"
