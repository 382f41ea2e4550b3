package translate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// MLXSource is a kernel in the form of MLX's custom-kernel interface. MLX generates the signature. Where its parameter
// names differ from the kernel's, a prologue on the first line of Body binds the kernel's names. Body and Header keep
// the lines of the kernel's body and header, so that [msl.Kernel.Locate] finds them.
type MLXSource struct {
	// InputNames and OutputNames are the names for MLX, in the order of the buffers' slots. A name is the kernel's
	// own unless the prologue must bind it.
	InputNames, OutputNames []string
	// Inputs and Outputs are the kernel's buffers in the same order.
	Inputs, Outputs []*msl.Buffer
	// Cast is set for each input that the prologue casts to another element type or to a device reference. A launch
	// must pass an array of 1 dimension or more for such an input. If the kernel declares the input in device memory,
	// the array must have 8 elements or more, because MLX puts smaller ones into constant memory. A constant reference
	// that is not cast needs an array of dimension 0, for which MLX declares a reference.
	Cast []bool
	// TemplateNames are the names for MLX of the template arguments, in the order of [msl.Kernel.Template].
	TemplateNames []string
	// Body and Header are MLX's source and header. The header is empty or ends with a newline.
	Body, Header string
	// Prologue is the length in bytes of the text that precedes the kernel's own text in Body.
	Prologue int
	// AtomicOutputs is set if an output is atomic. MLX must then be told to declare all outputs atomic. The prologue
	// casts the others back to their plain types.
	AtomicOutputs bool
	// Unsized and Unset name the threadgroup arguments and the function constants that still need a value (see
	// [Values]).
	Unsized, Unset []string
}

// Values holds the values that a kernel's text leaves open and that MLX's custom-kernel interface has no parameter for.
type Values struct {
	Sizes     map[string]int    // elements of each [[threadgroup(n)]] argument
	Constants map[string]string // expressions such as "true" or "16"
	Samplers  map[string]string // arguments of the constructor of each sampler argument
	// Structures holds the buffers and textures to which the fields of a structure refer, by the buffer that holds it.
	Structures map[string]map[string]string
	// Layouts are the layouts of the structures that the launch describes by fields, by the name of the type.
	Layouts map[string]*msl.Layout
	// Indirect holds the buffers and textures that are no arguments. They follow the arguments.
	Indirect []HostBuffer
	// Given names the buffers that the launch gives although MLX would add them, such as x_shape of the input x.
	Given map[string]bool
}

// NewValues returns the values that the options set.
func NewValues(options ...Option) Values {
	v := Values{
		Sizes: map[string]int{}, Constants: map[string]string{}, Samplers: map[string]string{}, Given: map[string]bool{},
		Structures: map[string]map[string]string{}, Layouts: map[string]*msl.Layout{},
	}
	for _, o := range options {
		o(v)
	}
	return v
}

// Option sets one of the [Values].
type Option func(Values)

// ThreadgroupSize sets the number of elements of a [[threadgroup(n)]] argument.
func ThreadgroupSize(argument string, elements int) Option {
	return func(v Values) { v.Sizes[argument] = elements }
}

// ConstantValue sets the value of a function constant, an expression such as "true" or "16".
func ConstantValue(name, value string) Option {
	return func(v Values) { v.Constants[name] = value }
}

// SamplerState sets the arguments of the constructor of a sampler argument, such as "metal::filter::linear".
func SamplerState(name, arguments string) Option {
	return func(v Values) { v.Samplers[name] = arguments }
}

// Structure marks a buffer as described by its fields.
func Structure(buffer string, references map[string]string) Option {
	return func(v Values) { v.Structures[buffer] = references }
}

// GivenBuffer marks a buffer as given by the launch.
func GivenBuffer(name string) Option {
	return func(v Values) { v.Given[name] = true }
}

// mlxWriter holds the state of [MLX].
type mlxWriter struct {
	*msl.Kernel
	values Values
	source MLXSource
	words  map[string]bool // identifiers of the body, including directives
	passed map[string]bool // identifiers that are a complete argument of a call
	bare   map[string]bool // identifiers that occur without an index

	outer     []string // statements of the prologue
	inner     []string // statements of the prologue in a nested scope
	scope     bool     // the body needs a nested scope
	needsCast bool     // the prologue calls mlxg_cast_const
}

// castConst defines mlxg_cast_const, which casts an input to a pointer to V. It has an overload for constant memory and
// one for device memory, where MLX puts inputs of 8 elements or more. MLX declares inputs const. The cast drops const
// in constant memory, because the parameters of the shader's functions may lack it.
const castConst = "template <typename V> const device V* mlxg_cast_const(const device void* p) { return (const " +
	"device V*)p; } " +
	"template <typename V> constant V* mlxg_cast_const(const constant void* p) { return (constant V*)p; }\n"

// MLX returns the kernel in the form of MLX's custom-kernel interface. The result depends only on the kernel and the
// options.
func MLX(k *msl.Kernel, options ...Option) MLXSource {
	w := mlxWriter{
		Kernel: k, values: NewValues(options...), words: map[string]bool{}, passed: map[string]bool{},
		bare: map[string]bool{},
	}
	body := msl.Tokenize(k.Body)
	for i, t := range body {
		if t.Kind != msl.Identifier {
			continue
		}
		w.words[t.Text] = true
		w.bare[t.Text] = w.bare[t.Text] || i+1 == len(body) || !body[i+1].Is("[")
		if i > 0 && i+1 < len(body) && (body[i-1].Is("(") || body[i-1].Is(",")) &&
			(body[i+1].Is(",") || body[i+1].Is(")")) {
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

// namespacesAndTemplate opens the kernel's namespaces and binds template parameters whose types MLX does not declare:
// MLX has typename, int and bool.
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
		name, cast := w.input(b)
		w.source.InputNames = append(w.source.InputNames, name)
		w.source.Cast = append(w.source.Cast, cast)
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

// substituteName returns a name that replaces a buffer's name in MLX's signature. It must not equal the name of an
// argument that MLX adds for another input, such as x_shape.
func substituteName(b *msl.Buffer) string {
	for suffix := range msl.ImplicitTypes {
		if strings.HasSuffix(b.Name, suffix) {
			return msl.Prefix + "own_" + b.Name
		}
	}
	return msl.Prefix + b.Name
}

// plain reports whether MLX itself declares an element type: a dtype or a template parameter.
func (w *mlxWriter) plain(element string) bool {
	return msl.DType(element) != "" || slices.ContainsFunc(w.Template, func(t msl.TemplateParameter) bool {
		return t.Kind == msl.TypeParameter && t.Name == element
	})
}

// input returns the name of an input for MLX and binds the kernel's name if it differs. cast is the input's value in
// [MLXSource.Cast].
func (w *mlxWriter) input(b *msl.Buffer) (name string, cast bool) {
	cast = !w.plain(b.Element) || b.Reference && b.Space == msl.Device
	passed := b.Space == msl.Constant && (w.passed[b.Name] || !b.Reference && w.bare[b.Name])
	if !cast && !passed && !w.clashes(b) {
		return b.Name, false
	}
	name = substituteName(b)
	switch {
	case b.Space == msl.Constant && !b.Reference && (cast || passed):
		w.needsCast = true
		w.bind("auto %s = mlxg_cast_const<%s>(%s);", b.Name, b.Element, name)
	case b.Space == msl.Constant && cast:
		w.needsCast = true
		w.bind("decltype(*mlxg_cast_const<%s>(%s)) %s = *mlxg_cast_const<%s>(%s);", b.Element, name, b.Name, b.Element,
			name)
	case b.Reference && passed: // MLX declares an array of dimension 0 as a reference
		w.bind("constant %s& %s = const_cast<constant %s&>(%s);", b.Element, b.Name, b.Element, name)
	case b.Reference && !cast:
		w.bind("const constant %s& %s = %s;", b.Element, b.Name, name)
	case !cast:
		w.bind("auto %s = %s;", b.Name, name)
	case b.Reference:
		w.bind("const device %s& %s = *reinterpret_cast<const device %s*>(%s);", b.Element, b.Name, b.Element, name)
	default:
		w.bind("const device %s* %s = reinterpret_cast<const device %s*>(%s);", b.Element, b.Name, b.Element, name)
	}
	return name, cast
}

// output returns the name of an output for MLX and binds the kernel's name if it differs.
func (w *mlxWriter) output(b *msl.Buffer) string {
	plain := w.plain(b.Element) && !w.source.AtomicOutputs || b.Atomic
	name, kind := substituteName(b), "device "+b.Element
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

// clashes reports whether the body's names would collide with MLX's arguments if MLX used the buffer's own name: a
// name such as x_shape of the input x, or a thread position.
func (w *mlxWriter) clashes(b *msl.Buffer) bool {
	if _, is := msl.PositionTypes[b.Name]; is {
		return true
	}
	if b.Writable() {
		return false
	}
	for suffix := range msl.ImplicitTypes {
		name := b.Name + suffix
		implicit := slices.ContainsFunc(w.Buffers, func(o *msl.Buffer) bool {
			return o.Name == name &&
				o.Implicit != ""
		})
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

// threadgroup declares arrays for the threadgroup arguments.
func (w *mlxWriter) threadgroup() {
	for _, a := range w.Threadgroup {
		elements, ok := w.values.Sizes[a.Name]
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
			// MLX has an argument with this name. A nested scope hides it.
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

// convert returns an expression that converts value, a thread position of type declared, to the type to.
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

// finish joins the prologue, the body and the header.
func (w *mlxWriter) finish() {
	implicit := slices.ContainsFunc(w.Buffers, func(b *msl.Buffer) bool { return b.Implicit != "" })
	if implicit && len(w.Attributes) == 0 {
		// Without a thread position MLX ends the signature one argument early. It adds a position that the body names,
		// also in a comment.
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
	w.source.Body = prologue + w.resolveQueries(w.Body) + epilogue
	w.source.Prologue = len(prologue)
	if w.needsCast {
		w.source.Header += castConst // last, so that the file's lines keep their numbers
	}
}

// constants returns the header with the values of the function constants. If the text calls
// is_function_constant_defined for a constant without a value, the constant becomes 0, and the kernel must not depend
// on that value. Any other constant without a value is added to Unset.
func (w *mlxWriter) constants() string {
	header := w.Header
	for _, c := range slices.Backward(w.Constants) {
		value, ok := w.values.Constants[c.Name]
		if !ok && w.queriesConstant(c.Name) {
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
	return w.resolveQueries(header)
}

// definedQuery matches a call of is_function_constant_defined, which queries whether a function constant has a value.
var definedQuery = regexp.MustCompile(`\bis_function_constant_defined\s*\(\s*(\w+)\s*\)`)

// queriesConstant reports whether the text queries whether a function constant has a value.
func (w *mlxWriter) queriesConstant(name string) bool {
	for _, text := range []string{w.Header, w.Body} {
		for _, m := range definedQuery.FindAllStringSubmatch(text, -1) {
			if m[1] == name {
				return true
			}
		}
	}
	return false
}

// resolveQueries replaces each query whether a function constant has a value by true or false. In MLX's text the
// function constants are ordinary constants, for which Metal does not define the query.
func (w *mlxWriter) resolveQueries(text string) string {
	return definedQuery.ReplaceAllStringFunc(text, func(query string) string {
		_, ok := w.values.Constants[definedQuery.FindStringSubmatch(query)[1]]
		return strconv.FormatBool(ok) + strings.Repeat("\n", strings.Count(query, "\n"))
	})
}
