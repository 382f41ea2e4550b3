package translate

import (
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// HostLineShift is the number of lines that a [HostSource] has before the generated text: its
// line n+HostLineShift is the text's line n.
const HostLineShift = 1

// HostSource is a generated text as C++ for the host executor.
type HostSource struct {
	// Source is the complete C++ text. It includes metal_host.h and defines mlxgrad_entry.
	Source string
	// KernelName is the name of the kernel function.
	KernelName string
	// Buffers holds the kernel's buffers in the order in which mlxgrad_entry takes them, that of
	// their numbers. Where the kernel leaves a number out stands one without a name.
	Buffers []HostBuffer
	// UsesFibers tells that the text may contain a barrier, a SIMD-group or quad-group
	// operation or threadgroup memory, so that its threads must run side by side.
	UsesFibers bool
}

// HostBuffer is one buffer of a generated kernel: an input, an output, or a shape, strides
// or dimension count that MLX added.
type HostBuffer struct {
	Name      string
	Element   string // for instance float16_t or atomic<float>
	Reference bool
	Writable  bool
}

// Host rewrites the complete text that MLX generates for a kernel into C++ for the host
// executor. Only what C++ does not know changes: address spaces, attributes, the word
// kernel, explicit instantiations, Metal's includes, and threadgroup variables, which become
// references to the executor's arena. Lines keep their numbers (see [HostLineShift]).
//
// Helpers that differ in nothing but an address space become one. Where C++ could not tell
// such overloads apart and they differ in their bodies, where a threadgroup variable has an
// initializer, and where a function constant has no value, the error is an [*Error] with
// its place in the generated text.
//
// The conditionals are lines of the text in which both values of a conditional operator become
// one type first, for C++ finds none of a half and a number.
func Host(text string, conditionals ...int) (*HostSource, error) {
	h, err := rewritten(text, Unroll)
	if err != nil {
		return nil, err
	}
	h.conditionals(conditionals)
	return h.finish()
}

// rewritten is a text without what C++ does not know; the pragma asks for unrolled loops.
func rewritten(text, unrolled string) (*hostWriter, error) {
	s, err := msl.NewStructure("", text, nil)
	if err != nil {
		return nil, err
	}
	items, err := s.Items()
	if err != nil {
		return nil, err
	}
	h := &hostWriter{
		Structure: s, items: items, code: msl.NewCode(s.All), unrolled: unrolled,
		edits: msl.Edits{Text: text}, words: map[int]string{}, dropped: map[int]bool{},
	}
	steps := []func() error{
		h.directives, h.literals, h.threadgroupVariables, h.qualifiers, h.instantiations, h.overloads,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// hostWriter is the state of [Host].
type hostWriter struct {
	*msl.Structure
	items    []msl.Item
	code     *msl.Code
	unrolled string // the pragma that unrolls a loop
	edits    msl.Edits
	// dropped are the items that overloads took out, by their first token.
	dropped map[int]bool
	// words holds what becomes of single tokens, by offset: "" for those that go.
	words map[int]string
}

// drop removes a token.
func (h *hostWriter) drop(t msl.Token) { h.change(t, "") }

// change replaces a token by a word.
func (h *hostWriter) change(t msl.Token, with string) {
	h.words[t.Offset] = with
	h.edits.Replace(t.Offset, t.End(), with)
}

// directives drops Metal's includes and refuses others, and asks for loops to be unrolled in
// words that both compilers know: g++ has no arrays in registers otherwise.
func (h *hostWriter) directives() error {
	for i, t := range h.All {
		h.unroll(i)
		if t.Kind != msl.HeaderName || h.Off[i] {
			continue
		}
		name := strings.Trim(t.Text, `<>"`)
		if !msl.IsMetalHeader(name) {
			return msl.Errorf(h.Position(t), "the header %s cannot be included on the host; copy what the kernel needs of it into its header text", t.Text)
		}
		first := i
		for first > 0 && h.All[first-1].Directive == t.Directive {
			first--
		}
		h.edits.Blank(h.All[first].Offset, t.End())
	}
	return nil
}

// Unroll is the pragma that [Host] asks for unrolled loops with. A loop of more turns stays
// one.
const Unroll = "GCC unroll 64"

// unroll replaces the token of a pragma that unrolls a loop.
func (h *hostWriter) unroll(i int) {
	t := h.All[i]
	if t.Text == `"clang loop unroll(full)"` {
		h.edits.Replace(t.Offset, t.End(), `"`+h.unrolled+`"`)
		return
	}
	if !h.BeginsDirective(i) {
		return
	}
	name, rest := h.Directive(i)
	if text := strings.Join(rest, " "); name == "pragma" && (text == "unroll" || text == "clang loop unroll ( full )") {
		h.edits.Replace(t.Offset, h.All[h.DirectiveEnd(i)-1].End(), "#pragma "+h.unrolled)
	}
}

// literals spells half and bfloat literals in a way that both compilers know: clang takes no suffix of
// a program's own.
func (h *hostWriter) literals() error {
	for _, t := range h.code.Tokens {
		lower := strings.ToLower(t.Text)
		switch hex := strings.HasPrefix(lower, "0x"); {
		case t.Kind != msl.Number:
		case strings.HasSuffix(lower, "bf") && (!hex || strings.Contains(lower, "p")):
			h.change(t, "::metal::bfloat("+t.Text[:len(t.Text)-2]+"f)")
		case strings.HasSuffix(t.Text, "H"):
			h.change(t, strings.TrimSuffix(t.Text, "H")+"h")
		}
	}
	return nil
}

// qualifiers drops attributes, address spaces and the word kernel. Constant memory becomes const.
func (h *hostWriter) qualifiers() error {
	for i := 0; i < len(h.Tokens); i++ {
		if h.IsAttribute(i) {
			h.dropAttribute(i)
			i = h.Match[i]
		}
	}
	for _, q := range h.code.Qualifiers() {
		t := h.code.Tokens[q.Token]
		if _, done := h.words[t.Offset]; done {
			continue
		}
		if alias := t.Directive != 0 && h.code.Neighbor(q.Token, 1).Kind == 0 && h.code.Neighbor(q.Token, -2).Is("define"); alias {
			h.drop(t)
		} else if q.NeedsConst {
			h.change(t, "const")
		} else {
			h.drop(t)
		}
	}
	for i, t := range h.code.Tokens {
		if next := h.code.Neighbor(i, 1); t.Is("kernel") && (next.Kind == msl.Identifier || next.Is("[")) {
			if previous := h.code.Neighbor(i, -1); !previous.Is(".") && !previous.Is("->") && !previous.Is("::") {
				h.drop(t)
			}
		}
	}
	return nil
}

// dropAttribute removes the attribute that begins at i.
func (h *hostWriter) dropAttribute(i int) {
	for j := i; j <= h.Match[i]; j++ {
		h.words[h.Tokens[j].Offset] = ""
	}
	h.edits.Blank(h.Tokens[i].Offset, h.Tokens[h.Match[i]].End())
}

// instantiations drops the explicit instantiations of kernels and the "template <>" of
// members, and refuses function constants.
func (h *hostWriter) instantiations() error {
	for _, it := range h.items {
		for i := it.First; i <= it.Last && it.Kind == msl.OtherItem; i++ {
			if h.IsAttribute(i) && h.At(i+2).Is("function_constant") {
				return h.ErrorAt(i, "the function constant %s has no value; give it one when the kernel is loaded", h.At(i-1).Text)
			}
		}
		if it.Scope == msl.ClassScope && it.Header >= 0 && h.At(it.Header+1).Is(">") {
			// g++ has no explicit specialization in a class; as an overload it is found as well.
			h.edits.Blank(h.Tokens[it.First].Offset, h.Tokens[it.Header+1].End())
		}
		if it.Kind == msl.Instantiation && (it.Kernel || h.IsAttribute(it.First+1)) {
			h.edits.Blank(h.Tokens[it.First].Offset, h.Tokens[it.Last].End())
		}
	}
	return nil
}
