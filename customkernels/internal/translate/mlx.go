package translate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// MLXSource is a kernel as MLX's custom-kernel interface takes it. MLX writes the
// signature; a prologue on the body's first line binds the kernel's own names where MLX's
// differ. So the body's lines are those of the kernel's body, and the header's those of
// its header: [Kernel.Locate] finds them.
type MLXSource struct {
	// InputNames and OutputNames are the names to give MLX, in the order of the buffers'
	// slots. A name is the kernel's own unless the prologue must bind it.
	InputNames, OutputNames []string
	// Inputs and Outputs are the kernel's buffers of the same order.
	Inputs, Outputs []*msl.Buffer
	// Viewed tells for each input whether the prologue casts it to another element type or to
	// a device reference: then it must be given an array of dimension 1 or more. (A constant
	// reference without a cast wants an array of dimension 0, for which MLX makes a reference.)
	// An input in device memory needs 8 elements, else MLX puts it in constant memory.
	Viewed []bool
	// TemplateNames are the names to give MLX for the template arguments, in the order of
	// [Kernel.Template].
	TemplateNames []string
	// Body and Header are MLX's source and header. The header is empty or ends with a newline.
	Body, Header string
	// Prologue is the length in bytes of what Body has before the kernel's own text.
	Prologue int
	// AtomicOutputs tells that some output is atomic: MLX must be asked for atomic outputs, and
	// makes all of them so. The prologue gives the others their plain type back.
	AtomicOutputs bool
	// Unsized and Unset name the threadgroup arguments and the function constants that
	// need a value (see [MLXOption]) before the source is complete.
	Unsized, Unset []string
}

// MLXOption gives [Kernel.MLX] a value that MLX's interface has no place for.
type MLXOption func(*mlxWriter)

// ThreadgroupSize sizes a [[threadgroup(n)]] argument, in elements.
func ThreadgroupSize(argument string, elements int) MLXOption {
	return func(w *mlxWriter) { w.sizes[argument] = elements }
}

// ConstantValue gives a function constant its value, an expression such as "true" or "16".
func ConstantValue(name, value string) MLXOption {
	return func(w *mlxWriter) { w.values[name] = value }
}

// mlxWriter is the state of [Kernel.MLX].
type mlxWriter struct {
	*msl.Kernel
	source MLXSource
	sizes  map[string]int
	values map[string]string
	words  map[string]bool // the identifiers of the body, preprocessor lines included
	passed map[string]bool // those that stand alone among a call's arguments
	bare   map[string]bool // those that no index follows

	outer []string // statements of the prologue, and
	inner []string // those in a scope of their own behind them
	scope bool
	view  bool // the prologue calls mlxg_view
}

// view casts an input in constant memory, or in device memory where MLX puts one of 8
// elements or more there. MLX declares both const, which a helper's parameter need not be.
const view = "template <typename V> const device V* mlxg_view(const device void* p) { return (const device V*)p; } " +
	"template <typename V> constant V* mlxg_view(const constant void* p) { return (constant V*)p; }\n"

// MLX turns the kernel into what MLX's custom-kernel interface takes. The result depends
// on the options alone.
func MLX(k *msl.Kernel, options ...MLXOption) MLXSource {
	w := mlxWriter{
		Kernel: k, sizes: map[string]int{}, values: map[string]string{}, words: map[string]bool{}, passed: map[string]bool{}, bare: map[string]bool{},
	}
	for _, o := range options {
		o(&w)
	}
	body := msl.Tokenize(k.Body)
	for i, t := range body {
		if t.Kind != msl.Identifier {
			continue
		}
		w.words[t.Text] = true
		w.bare[t.Text] = w.bare[t.Text] || i+1 == len(body) || !body[i+1].Is("[")
		if i > 0 && i+1 < len(body) && (body[i-1].Is("(") || body[i-1].Is(",")) && (body[i+1].Is(",") || body[i+1].Is(")")) {
			w.passed[t.Text] = true
		}
	}
	w.namespacesAndTemplate()
	w.buffers()
	w.threadgroup()
	w.positions()
	w.finish()
	return w.source
}

// namespacesAndTemplate opens the kernel's namespaces and binds template parameters of
// types that MLX does not declare: it knows typename, int and bool.
func (w *mlxWriter) namespacesAndTemplate() {
	var path []string
	for _, n := range w.Namespaces {
		if n != "" {
			path = append(path, n)
			w.outer = append(w.outer, "using namespace "+strings.Join(path, "::")+";")
		}
	}
	for _, t := range w.Template {
		name := t.Name
		declared := strings.TrimPrefix(t.Type, "const ")
		if t.Kind != msl.TypeParameter && declared != "int" && declared != "bool" && declared != "int32_t" {
			name = msl.Prefix + t.Name
			w.outer = append(w.outer, fmt.Sprintf("constexpr %s %s = %s;", declared, t.Name, name))
		}
		w.source.TemplateNames = append(w.source.TemplateNames, name)
	}
}

// buffers names the inputs and outputs.
func (w *mlxWriter) buffers() {
	w.source.Inputs, w.source.Outputs = w.Inputs(), w.Outputs()
	for _, b := range w.source.Outputs {
		w.source.AtomicOutputs = w.source.AtomicOutputs || b.Atomic
	}
	for _, b := range w.source.Inputs {
		name, viewed := w.input(b)
		w.source.InputNames = append(w.source.InputNames, name)
		w.source.Viewed = append(w.source.Viewed, viewed)
	}
	for _, b := range w.source.Outputs {
		w.source.OutputNames = append(w.source.OutputNames, w.output(b))
	}
	for _, b := range w.Buffers {
		input := slices.IndexFunc(w.source.Inputs, func(i *msl.Buffer) bool { return i.Name == b.Implicit })
		if input < 0 || w.source.InputNames[input] == b.Implicit {
			continue
		}
		if b.Reference {
			w.bind("const constant %s& %s = %s%s;", b.Element, b.Name, msl.Prefix, b.Name)
		} else {
			w.bind("const constant %s* %s = %s%s;", b.Element, b.Name, msl.Prefix, b.Name)
		}
	}
}

// own is a name for MLX in the place of a buffer's. One with a suffix of MLX's must not be that of an
// argument that MLX adds for another input.
func own(b *msl.Buffer) string {
	for suffix := range msl.ImplicitTypes {
		if strings.HasSuffix(b.Name, suffix) {
			return msl.Prefix + "own_" + b.Name
		}
	}
	return msl.Prefix + b.Name
}

// plain reports whether an element type is one that MLX itself declares: a dtype or a
// template parameter.
func (w *mlxWriter) plain(element string) bool {
	return msl.DType(element) != "" || slices.ContainsFunc(w.Template, func(t msl.TemplateParameter) bool {
		return t.Kind == msl.TypeParameter && t.Name == element
	})
}

// input names an input and binds it if need be.
func (w *mlxWriter) input(b *msl.Buffer) (name string, viewed bool) {
	viewed = !w.plain(b.Element) || b.Reference && b.Space == msl.Device
	passed := b.Space == msl.Constant && (w.passed[b.Name] || !b.Reference && w.bare[b.Name])
	if !viewed && !passed && !w.clashes(b) {
		return b.Name, false
	}
	name = own(b)
	switch {
	case b.Space == msl.Constant && !b.Reference && (viewed || passed):
		w.view = true
		w.bind("auto %s = mlxg_view<%s>(%s);", b.Name, b.Element, name)
	case b.Space == msl.Constant && viewed:
		w.view = true
		w.bind("decltype(*mlxg_view<%s>(%s)) %s = *mlxg_view<%s>(%s);", b.Element, name, b.Name, b.Element, name)
	case b.Reference && passed: // MLX makes a reference of an array of dimension 0
		w.bind("constant %s& %s = const_cast<constant %s&>(%s);", b.Element, b.Name, b.Element, name)
	case b.Reference && !viewed:
		w.bind("const constant %s& %s = %s;", b.Element, b.Name, name)
	case !viewed:
		w.bind("auto %s = %s;", b.Name, name)
	case b.Reference:
		w.bind("const device %s& %s = *reinterpret_cast<const device %s*>(%s);", b.Element, b.Name, b.Element, name)
	default:
		w.bind("const device %s* %s = reinterpret_cast<const device %s*>(%s);", b.Element, b.Name, b.Element, name)
	}
	return name, viewed
}

// output names an output and binds it if need be.
func (w *mlxWriter) output(b *msl.Buffer) string {
	plain := w.plain(b.Element) && !w.source.AtomicOutputs || b.Atomic
	name, kind := own(b), "device "+b.Element
	if b.Volatile {
		kind = "volatile " + kind
	}
	switch {
	case b.Reference && plain:
		w.bind("%s& %s = *%s;", kind, b.Name, name)
	case b.Reference:
		w.bind("%s& %s = *reinterpret_cast<%s*>(%s);", kind, b.Name, kind, name)
	case !plain:
		w.bind("%s* %s = reinterpret_cast<%s*>(%s);", kind, b.Name, kind, name)
	case w.clashes(b) || b.Volatile:
		w.bind("%s* %s = %s;", kind, b.Name, name)
	default:
		return b.Name
	}
	return name
}

// clashes reports whether MLX would declare a name of the body a second time if it knew the
// buffer by its own name: one like x_shape for the input x, or that of a thread position.
func (w *mlxWriter) clashes(b *msl.Buffer) bool {
	if _, is := msl.PositionTypes[b.Name]; is {
		return true
	}
	if b.Writable() {
		return false
	}
	for suffix := range msl.ImplicitTypes {
		name := b.Name + suffix
		implicit := slices.ContainsFunc(w.Buffers, func(o *msl.Buffer) bool { return o.Name == name && o.Implicit != "" })
		if w.words[name] && !implicit {
			return true
		}
	}
	return false
}

// bind adds a statement to the prologue.
func (w *mlxWriter) bind(format string, args ...any) {
	w.outer = append(w.outer, fmt.Sprintf(format, args...))
}

// threadgroup makes arrays of the threadgroup arguments.
func (w *mlxWriter) threadgroup() {
	for _, a := range w.Threadgroup {
		elements, ok := w.sizes[a.Name]
		if !ok {
			w.source.Unsized = append(w.source.Unsized, a.Name)
			continue
		}
		w.bind("threadgroup %s %s%s[%d]; threadgroup %s* %s = %s%s;",
			a.Element, msl.Prefix, a.Name, elements, a.Element, a.Name, msl.Prefix, a.Name)
	}
}

// positions binds the thread positions.
func (w *mlxWriter) positions() {
	bound := map[string]bool{}
	for _, a := range w.Attributes {
		bound[a.Name] = true
	}
	for _, a := range w.Attributes {
		declared := msl.PositionTypes[a.Attribute]
		if a.Name == a.Attribute && a.Type == declared {
			continue
		}
		value := a.Attribute
		if _, taken := msl.PositionTypes[a.Name]; taken {
			// The name is that of one of MLX's own arguments: hide it in a scope.
			value = msl.Prefix + a.Name
			w.bind("const %s %s = %s;", declared, value, a.Attribute)
			w.inner = append(w.inner, fmt.Sprintf("%s %s = %s;", a.Type, a.Name, convert(a.Type, declared, value)))
			continue
		}
		w.bind("%s %s = %s;", a.Type, a.Name, convert(a.Type, declared, value))
	}
	for name := range msl.PositionTypes {
		w.scope = w.scope || w.words[name] && !bound[name]
	}
}

// convert writes a thread position that MLX declares in one type as another.
func convert(to, declared, value string) string {
	base := strings.TrimRight(to, "23")
	lanes := strings.TrimPrefix(to, base)
	if declared == "uint3" {
		value += map[string]string{"": ".x", "2": ".xy", "3": ""}[lanes]
	}
	if base == "uint" {
		return value
	}
	return fmt.Sprintf("%s(%s)", to, value)
}

// finish puts the body together.
func (w *mlxWriter) finish() {
	implicit := slices.ContainsFunc(w.Buffers, func(b *msl.Buffer) bool { return b.Implicit != "" })
	if implicit && len(w.Attributes) == 0 {
		// Without a thread position MLX ends the signature one argument early.
		w.outer = append(w.outer, "/* thread_index_in_threadgroup */")
	}
	prologue, epilogue := strings.Join(w.outer, " "), ""
	if w.scope || len(w.inner) > 0 {
		prologue, epilogue = strings.TrimSpace(prologue+" { "+strings.Join(w.inner, " ")), "}"
	}
	if prologue != "" {
		prologue = "  " + prologue
	}
	w.source.Header = w.constants()
	w.source.Body = prologue + w.decided(w.Body) + epilogue
	w.source.Prologue = len(prologue)
	if w.view {
		w.source.Header += view // behind all lines of the file
	}
}

// constants is the header with the values of the function constants. One without a value whose text asks
// whether it has one stays undefined: nothing may depend on what stands there then.
func (w *mlxWriter) constants() string {
	header := w.Header
	for _, c := range slices.Backward(w.Constants) {
		value, ok := w.values[c.Name]
		if !ok && w.asked(c.Name) {
			value, ok = c.Type+"(0)", true
		}
		if !ok {
			w.source.Unset = append(w.source.Unset, c.Name)
			continue
		}
		lines := strings.Split(header, "\n")
		begin, rest := lines[c.Line-1][:c.Pos.Column-1], lines[c.Line-1][c.Pos.Column-1:]
		open, end := strings.Index(rest, "[["), strings.Index(rest, "]]")
		if open < 0 || end < open {
			w.source.Unset = append(w.source.Unset, c.Name)
			continue
		}
		lines[c.Line-1] = begin + rest[:open] + "= " + value + rest[end+2:]
		header = strings.Join(lines, "\n")
	}
	slices.Reverse(w.source.Unset)
	return w.decided(header)
}

// question matches what asks whether a function constant has a value.
var question = regexp.MustCompile(`\bis_function_constant_defined\s*\(\s*(\w+)\s*\)`)

// asked reports whether the text asks for the value of a function constant.
func (w *mlxWriter) asked(name string) bool {
	for _, text := range []string{w.Header, w.Body} {
		for _, m := range question.FindAllStringSubmatch(text, -1) {
			if m[1] == name {
				return true
			}
		}
	}
	return false
}

// decided answers a text's questions whether function constants have values: to a compiler that is
// given values, they are no function constants.
func (w *mlxWriter) decided(text string) string {
	return question.ReplaceAllStringFunc(text, func(asked string) string {
		_, ok := w.values[question.FindStringSubmatch(asked)[1]]
		return strconv.FormatBool(ok) + strings.Repeat("\n", strings.Count(asked, "\n"))
	})
}
