package translate

import (
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// HostLineShift is the number of lines that precede the generated text in a [HostSource]: line n of the text is line
// n+HostLineShift of the source.
const HostLineShift = 1

// HostSource is a generated text as C++ for the host executor.
type HostSource struct {
	// Source is the complete C++ text. It includes metal_host.h and defines mlxgrad_entry.
	Source string
	// KernelName is the name of the kernel function.
	KernelName string
	// Buffers holds the kernel's buffers in the order of their numbers, in which mlxgrad_entry takes them. A missing
	// number has an entry with an empty name.
	Buffers []HostBuffer
	// ThreadgroupArguments names the threadgroup arguments of a native kernel. Their variables have the numbers from
	// Variables on, the number of the kernel's own threadgroup variables.
	ThreadgroupArguments []string
	Variables            int
}

// HostBuffer is a buffer of a generated kernel: an input, an output, or a shape, strides or number of dimensions that
// MLX adds.
type HostBuffer struct {
	Name      string
	Element   string // for example float16_t or atomic<float>
	Reference bool
	Writable  bool
}

// Host rewrites the complete text that MLX generates for a kernel into C++ for the host executor. It changes only
// constructs that C++ does not have: address spaces, attributes, the word kernel, explicit instantiations and Metal's
// includes. Threadgroup variables become references to the executor's arena. Everything else stays byte for byte, on
// the same line (see [HostLineShift]).
//
// Functions that differ only in address spaces become one. Host returns an [*msl.Error] with a position in the
// generated text for such functions with different bodies, for a threadgroup variable with an initializer, and for a
// function constant without a value.
func Host(text string, c Conversions) (*HostSource, error) {
	h, err := rewrite(text, Unroll, false)
	if err != nil {
		return nil, err
	}
	h.convert(c)
	return h.finish()
}

// Conversions are conversions that C++ needs and Metal does not. They move the columns of the text that follows on the
// same line.
type Conversions struct {
	// Conditionals lists lines of the generated text. In these lines, both values of each conditional operator are
	// converted to a common type, because C++ finds none for a half and a number.
	Conditionals []int
	// Swizzles converts each swizzle that is read to a vector.
	Swizzles bool
}

func (h *rewriter) convert(c Conversions) {
	if c.Swizzles {
		h.swizzles()
	}
	h.conditionals(c.Conditionals)
}

// rewrite removes the constructs that C++ does not have. unrollPragma is the pragma that replaces Metal's request to
// unroll a loop.
func rewrite(text, unrollPragma string, dynamicMemory bool) (*rewriter, error) {
	return rewriteFor(text, rewriter{unrollPragma: unrollPragma, dynamicMemory: dynamicMemory})
}

// rewriteFor is rewrite with the settings of a rewriter.
func rewriteFor(text string, settings rewriter) (*rewriter, error) {
	s, err := msl.NewStructure("", text, nil)
	if err != nil {
		return nil, err
	}
	items, err := s.Items()
	if err != nil {
		return nil, err
	}
	h := &settings
	h.Structure, h.items, h.code = s, items, msl.NewCode(s.All)
	h.edits, h.words, h.dropped = msl.Edits{Text: text}, map[int]string{}, map[int]bool{}
	steps := []func() error{
		h.directives, h.literals, h.ranges, h.threadgroupVariables, h.qualifiers, h.instantiations, h.overloads,
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// rewriter holds the state of [Host] and [CUDA].
type rewriter struct {
	*msl.Structure
	items        []msl.Item
	code         *msl.Code
	unrollPragma string // pragma that unrolls a loop
	// dynamicMemory is set if threadgroup variables lie in CUDA's dynamic shared memory.
	dynamicMemory bool
	edits         msl.Edits
	variables     int // threadgroup variables
	// zeroMemory is set if threadgroup variables may be initialized with zeros.
	zeroMemory bool
	// dropped holds the first tokens of the items that the step overloads removed.
	dropped map[int]bool
	// words maps the offset of each changed token to its replacement, which is "" for a removed token.
	words map[int]string
}

// drop removes a token.
func (h *rewriter) drop(t msl.Token) { h.change(t, "") }

// change replaces a token.
func (h *rewriter) change(t msl.Token, with string) {
	h.words[t.Offset] = with
	h.edits.Replace(t.Offset, t.End(), with)
}

// directives removes Metal's includes, rejects other includes, and rewrites the pragmas that unroll loops. g++ keeps an
// array in registers only if it unrolls the loops that index the array.
func (h *rewriter) directives() error {
	for i, t := range h.All {
		h.unroll(i)
		if t.Kind != msl.HeaderName || h.Excluded[i] {
			continue
		}
		name := strings.Trim(t.Text, `<>"`)
		if !msl.IsMetalHeader(name) {
			return msl.Errorf(h.Position(t), "the header %s is not part of Metal's library; copy the declarations "+
				"that the kernel uses into the shader file", t.Text)
		}
		first := i
		for first > 0 && h.All[first-1].Directive == t.Directive {
			first--
		}
		h.edits.Blank(h.All[first].Offset, t.End())
	}
	return nil
}

// Unroll is the pragma that unrolls loops on the host. It unrolls a loop at most 64 times.
const Unroll = "GCC unroll 64"

// unroll rewrites token i of All if it begins a pragma that unrolls a loop.
func (h *rewriter) unroll(i int) {
	t := h.All[i]
	if t.Text == `"clang loop unroll(full)"` {
		h.edits.Replace(t.Offset, t.End(), `"`+h.unrollPragma+`"`)
		return
	}
	if !h.BeginsDirective(i) {
		return
	}
	name, rest := h.Directive(i)
	if text := strings.Join(rest, " "); name == "pragma" && (text == "unroll" || text == "clang loop unroll ( full )") {
		h.edits.Replace(t.Offset, h.All[h.DirectiveEnd(i)-1].End(), "#pragma "+h.unrollPragma)
	}
}

// literals rewrites half and bfloat literals, because clang rejects user-defined suffixes without an underscore.
func (h *rewriter) literals() error {
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

// qualifiers removes attributes, address spaces and the word kernel. Constant memory becomes const.
func (h *rewriter) qualifiers() error {
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
		if alias := t.Directive != 0 && h.code.Neighbor(q.Token, 1).Kind == 0 &&
			h.code.Neighbor(q.Token, -2).Is("define"); alias {
			h.drop(t)
		} else if q.NeedsConst {
			h.change(t, "const")
		} else {
			h.drop(t)
		}
	}
	for i := range h.Tokens {
		h.coherent(i)
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

// coherent removes the qualifier coherent, coherent(device) or coherent(system) at token i.
func (h *rewriter) coherent(i int) {
	if !h.Tokens[i].Is("coherent") {
		return
	}
	switch next := h.At(i + 1); {
	case next.Is("(") && (h.At(i+2).Is("device") || h.At(i+2).Is("system")) && h.At(i+3).Is(")"):
		for j := i; j <= i+3; j++ {
			h.drop(h.Tokens[j])
		}
	case next.Kind == msl.Identifier && !h.At(i-1).Is("."):
		h.drop(h.Tokens[i])
	}
}

// dropAttribute removes the attribute that begins at token i.
func (h *rewriter) dropAttribute(i int) {
	for j := i; j <= h.Match[i]; j++ {
		h.words[h.Tokens[j].Offset] = ""
	}
	h.edits.Blank(h.Tokens[i].Offset, h.Tokens[h.Match[i]].End())
}

// instantiations removes explicit instantiations of kernels and the "template <>" of members. It rejects function
// constants.
func (h *rewriter) instantiations() error {
	for _, it := range h.items {
		for i := it.First; i <= it.Last && it.Kind == msl.OtherItem; i++ {
			if h.IsAttribute(i) && h.At(i+2).Is("function_constant") {
				return h.ErrorAt(i, "the function constant %s has no value; give it one when the kernel is loaded",
					h.At(i-1).Text)
			}
		}
		if it.Scope == msl.ClassScope && it.Header >= 0 && h.At(it.Header+1).Is(">") {
			// g++ has no explicit specialization in a class. An overload serves the same calls.
			h.edits.Blank(h.Tokens[it.First].Offset, h.Tokens[it.Header+1].End())
		}
		if it.Kind == msl.Instantiation && (it.Kernel || h.IsAttribute(it.First+1)) {
			h.edits.Blank(h.Tokens[it.First].Offset, h.Tokens[it.Last].End())
		}
	}
	return nil
}
