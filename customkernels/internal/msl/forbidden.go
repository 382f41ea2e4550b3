package msl

import (
	"regexp"
	"slices"
	"strings"
)

// allowedAttributes holds the compiler attributes that a shader may name in __attribute__((…)), without underscores
// around them. Other attributes can hide code from the checker, run it before the kernel, or give it the name of
// another function.
var allowedAttributes = map[string]bool{
	"aligned": true, "always_inline": true, "annotate": true, "artificial": true, "availability": true, "cold": true,
	"const": true, "convergent": true, "deprecated": true, "ext_vector_type": true, "fallthrough": true,
	"flatten": true,
	"hot":     true, "likely": true, "may_alias": true, "maybe_unused": true, "nodebug": true, "nodiscard": true,
	"noinline": true, "noreturn": true, "nothrow": true, "opencl_unroll_hint": true, "overloadable": true,
	"packed": true, "pure": true, "unavailable": true, "unlikely": true, "unused": true, "used": true,
	"vector_size": true, "warn_unused_result": true,
}

// compilerPrefixes holds the prefixes of the compilers' attributes. allowedAttributes holds the names that may follow.
var compilerPrefixes = map[string]bool{"gnu": true, "__gnu__": true, "clang": true, "_Clang": true}

// allowedPragmas holds the words that may follow "#pragma GCC" and "#pragma clang". deniedPragmas holds the words
// that must not follow "#pragma".
var (
	allowedPragmas = map[string]bool{"diagnostic": true, "fp": true, "ivdep": true, "loop": true, "unroll": true}
	deniedPragmas  = map[string]bool{"include_alias": true, "omp": true, "redefine_extname": true, "weak": true}
)

// allowedBuiltin matches the compiler's functions that access no memory.
var allowedBuiltin = regexp.MustCompile(`^__builtin_(assume|expect|unreachable|constant_p|is_constant_evaluated|bit_cast|` +
	`(clz|ctz|ffs|clrsb|popcount|parity|bswap|bitreverse|rotateleft|rotateright|isnan|isinf|isfinite|signbit|inf|nan|huge_val|` +
	`fabs|copysign|fma|ilogb|ldexp|sqrt|floor|ceil|trunc|rint|fmin|fmax)\w*|shufflevector|convertvector|astype|offsetof|` +
	`add_overflow|sub_overflow|mul_overflow|types_compatible_p)$`)

// ownNames matches the names of the checker and of the compiler's instrumentation.
var ownNames = regexp.MustCompile(`^(mlxg|MLXG_|__(tsan|ubsan|asan|sanitizer|wrap|real|cxa)_)`)

// reserved rejects names of the checker in the preprocessed text of a shader.
func (s *Structure) reserved() error {
	for i, t := range s.Tokens {
		if t.Kind == Identifier && ownNames.MatchString(t.Text) {
			return s.ErrorAt(i, "%s is a name of the checker; rename it", t.Text)
		}
	}
	return nil
}

// forbidden rejects compiler extensions that let a shader escape the checker or run code before its kernel. It does not
// expand macros, so it misses names that a macro pastes together.
func (s *Structure) forbidden(items []Item) error {
	if err := Refused(s); err != nil {
		return err
	}
	if err := s.external(items); err != nil {
		return err
	}
	return s.startCode(items)
}

// Refused returns an [*Error] for the first word that a shader must not contain, such as asm.
func Refused(s *Structure) error {
	for i, t := range s.All {
		if s.Excluded[i] || t.Kind == Comment {
			continue
		}
		if err := s.forbiddenAt(i, t); err != nil {
			return err
		}
	}
	return nil
}

const externC = "extern \"C\" is allowed for structures and kernels only: a function or variable would share its " +
	"name with one outside of the shader; remove it"

// external rejects functions and variables with C linkage.
func (s *Structure) external(items []Item) error {
	for i, t := range s.Tokens {
		if !t.Is("extern") || s.At(i+1).Kind != String {
			continue
		}
		first, last := i, i
		if s.At(i + 2).Is("{") {
			first, last = i+2, s.Match[i+2]
		}
		for _, it := range items {
			if it.First >= first && it.First <= last && it.Scope == NamespaceScope && !it.Kernel &&
				it.Kind != ClassItem && it.Kind != usingItem {
				return s.ErrorAt(i, externC)
			}
		}
	}
	return nil
}

// next returns the token after token i of All and its index. It skips comments. The token is empty at the end of a
// directive.
func (s *Structure) next(i int) (int, Token) {
	for j := i + 1; j < len(s.All); j++ {
		if s.All[j].Directive != s.All[i].Directive {
			break
		}
		if s.All[j].Kind != Comment {
			return j, s.All[j]
		}
	}
	return len(s.All), Token{}
}

// forbiddenAt rejects a forbidden construct that begins at token i of All.
func (s *Structure) forbiddenAt(i int, t Token) error {
	j, next := s.next(i)
	refuse := func(format string, args ...any) error { return Errorf(s.Position(t), format, args...) }
	if wordSplit(s.Text, t, next) {
		return refuse(splitWord, t.Text)
	}
	switch {
	case t.Is("asm") || t.Is("__asm") || t.Is("__asm__"):
		return refuse("Metal has no assembly; remove %s", t.Text)
	case t.Kind == Identifier && strings.HasPrefix(t.Text, "__builtin_") && !allowedBuiltin.MatchString(t.Text):
		return refuse("the compiler's function %s is not part of Metal; remove it", t.Text)
	case t.Kind == Identifier && strings.HasPrefix(strings.TrimLeft(t.Text, "_"), "no_sanitize"):
		return refuse("the attribute %s is not allowed in a shader; remove it", t.Text)
	case t.Is("using") && i > 0 && s.All[i-1].Is("["):
		return refuse("an attribute cannot begin with using in a shader; remove it")
	case t.Is("__declspec"):
		return refuse("%s is not part of Metal; remove it", t.Text)
	case t.Is("extern") && next.Kind == String && t.Directive != 0:
		return refuse(externC)
	case t.Is("__attribute__") || t.Is("__attribute"):
		return s.attributes(i)
	case t.Is("[") && next.Is("[") && t.Directive == 0:
		return s.bracketed(j)
	case compilerPrefixes[t.Text] && next.Is("::"):
		if _, name := s.next(j); !allowedAttribute(name) {
			return refuse("the attribute %s::%s is not allowed in a shader; remove it", t.Text, name.Text)
		}
	case t.Is("_Pragma") || t.Is("__pragma"):
		k, text := s.next(j)
		_, end := s.next(k)
		if !next.Is("(") || text.Kind != String || !end.Is(")") {
			return refuse("%s needs the text of the pragma as one literal, such as _Pragma(\"unroll\")", t.Text)
		}
		content := strings.Trim(strings.TrimLeft(text.Text, "LuU8R"), `"()`)
		return s.pragma(t, Tokenize(strings.ReplaceAll(content, `\"`, `"`)))
	case t.Is("%") && next.Is(":") && next.Offset == t.End():
		return refuse(digraph)
	case s.BeginsDirective(i):
		switch name, words := s.Directive(i); {
		case name == "pragma":
			return s.pragma(t, s.All[j+1:s.DirectiveEnd(i)])
		case name == "define" && len(words) > 0 && allowedAttributes[words[0]]:
			return refuse("the macro %s has the name of an attribute; rename it", words[0])
		}
	}
	return nil
}

// Spliced returns an error if a word continues on the next line, or if a digraph stands for '#'. Both hide a directive
// from a reader of tokens.
func (s *Structure) Spliced() error {
	for i, t := range s.All {
		_, next := s.next(i)
		if wordSplit(s.Text, t, next) {
			return Errorf(s.Position(t), splitWord, t.Text)
		}
		if t.Is("%") && next.Is(":") && next.Offset == t.End() {
			return Errorf(s.Position(t), digraph)
		}
	}
	return nil
}

const (
	splitWord = "the word %s continues after a line continuation; write it on one line"
	digraph   = "%%: stands for # in C++ and is not part of Metal; write #"
)

// wordSplit reports whether two tokens are one word for a compiler, which joins continued lines first.
func wordSplit(text string, t, next Token) bool {
	word := func(t Token) bool { return t.Kind == Identifier || t.Kind == Number }
	if !word(t) || !word(next) || next.Offset <= t.End() {
		return false
	}
	gap := text[t.End():next.Offset]
	return strings.Contains(gap, "\\") && strings.Trim(strings.ReplaceAll(gap, "\\", ""), "\r\n") == ""
}

func allowedAttribute(t Token) bool {
	return allowedAttributes[strings.TrimSuffix(strings.TrimPrefix(t.Text, "__"), "__")]
}

// attributes checks the names within the __attribute__((…)) that token i of All begins.
func (s *Structure) attributes(i int) error {
	refuse := func(t Token, format string, args ...any) error { return Errorf(s.Position(t), format, args...) }
	t := s.All[i]
	j, open := s.next(i)
	k, second := s.next(j)
	if !open.Is("(") || !second.Is("(") {
		return refuse(t, "%s must be followed by its attributes in two pairs of parentheses", t.Text)
	}
	depth := 2
	for k, a := s.next(k); depth > 1 && a.Text != ""; k, a = s.next(k) {
		switch {
		case a.Is("("):
			depth++
		case a.Is(")"):
			depth--
		case depth == 2 && !a.Is(",") && !allowedAttribute(a):
			return refuse(a, "the attribute %s is not allowed in a shader; remove it", a.Text)
		}
	}
	return nil
}

// bracketed rejects names within the [[…]] whose second bracket is token i of All that neither Metal nor C++ has. A name
// may be a macro, which stands for attributes. forbiddenAt checks the names after a compiler's prefix.
func (s *Structure) bracketed(i int) error {
	depth, name := 0, true
	for j, t := s.next(i); depth >= 0 && t.Text != ""; j, t = s.next(j) {
		switch {
		case t.Is("(") || t.Is("["):
			depth++
		case t.Is(")") || t.Is("]"):
			depth--
		case depth > 0:
		case t.Is(","):
			name = true
		case name:
			name = false
			known := attributes[t.Text] || t.Is("using") || s.IsMacro(t.Text)
			if _, next := s.next(j); next.Is("::") {
				known = compilerPrefixes[t.Text]
			}
			if t.Kind == Identifier && !known {
				return Errorf(s.Position(t), "Metal has no attribute %s; correct its name, or remove it", t.Text)
			}
		}
	}
	return nil
}

// pragma checks the words of a pragma.
func (s *Structure) pragma(at Token, words []Token) error {
	words = slices.DeleteFunc(slices.Clone(words), func(t Token) bool { return t.Kind == Comment })
	if len(words) == 0 {
		return nil
	}
	name, denied := words[0].Text, deniedPragmas[words[0].Text]
	if name == "GCC" || name == "clang" {
		if denied = len(words) < 2 || !allowedPragmas[words[1].Text]; len(words) > 1 {
			name += " " + words[1].Text
		}
	}
	if denied {
		return Errorf(s.Position(at), "the pragma %s is not allowed in a shader; remove it", name)
	}
	return nil
}
