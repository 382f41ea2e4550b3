package ops

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A mutant is the text of a shader file with one mutation.
type mutant struct {
	kind     string // of the mutation, such as "drop barrier"
	function string // the name of the mutated function
	head     string // the declarations of its type, if it has one, and of the function
	key      string // identifies it in mutants.txt, see mutator.key
	change   string // some tokens around the mutation, before and after
	text     string
}

// binary reports whether the operator at i has two operands. The format of the shaders puts spaces around binary
// operators, but not inside the brackets of a template or before the star of a pointer.
func (m *mutator) binary(i int) bool {
	spaced := m.tokens[i-1].end < m.tokens[i].start && m.tokens[i].end < m.tokens[i+1].start
	return spaced && endsOperand(m.tokens[i-1].text)
}

// executorText matches the text from #if to #else or #endif. It is for executors with instructions of their own, and the
// checker, in which mutants are tried, does not compile it.
var executorText = regexp.MustCompile(`(?ms)^#if.*?^#(?:else|endif)`)

// mutants returns every mutant of the text of a shader that the checker compiles.
func mutants(text string) []mutant {
	m := mutator{text: text, tokens: shaderTokens(text), seen: map[string]int{}}
	others := executorText.FindAllStringIndex(text, -1)
	for i, t := range m.tokens {
		isOther := slices.ContainsFunc(others, func(at []int) bool { return at[0] <= t.start && t.start < at[1] })
		if t.function != "" && !isOther {
			m.mutate(i)
		}
	}
	return m.list
}

type mutator struct {
	text   string
	tokens []shaderToken
	seen   map[string]int
	list   []mutant
}

// add appends a mutant whose text has a replacement in the place of [start, end).
func (m *mutator) add(i int, kind string, start, end int, replacement string) {
	m.list = append(m.list, mutant{
		kind:     kind,
		function: m.tokens[i].function,
		head:     m.tokens[i].head,
		key:      m.key(i, kind),
		change:   m.change(start, end, replacement),
		text:     m.text[:start] + replacement + m.text[end:],
	})
}

// keptNames are the identifiers that a mutant's key contains as they are.
var keptNames = []string{
	"if", "else", "for", "while", "do", "switch", "case", "return", "break", "continue", "const",
	"constexpr", "auto", "enum", "using", "true", "false", "int", "uint", "float", "bool", "size_t", "thread",
	"threadgroup", "device", "min", "max", "fma", "reinterpret_cast", "static_cast", "alignof", "sizeof",
}

// key identifies a mutant by its function, its kind, a hash of its statement and the index of the token in the
// statement. The hash depends on the tokens alone. Identifiers count by the order of their first appearance, so
// neither white space, nor comments, nor the names of variables and template parameters change it. Mutants of equal
// statements in functions of the same name are numbered.
func (m *mutator) key(i int, kind string) string {
	statement := m.tokens[i].statement
	h := sha256.New()
	order := map[string]int{}
	for _, t := range m.tokens[statement[0]:statement[1]] {
		text := t.text
		if isWord(text) && !slices.Contains(keptNames, text) {
			if _, ok := order[text]; !ok {
				order[text] = len(order)
			}
			text = fmt.Sprintf("#%d", order[text])
		}
		fmt.Fprintln(h, text)
	}
	key := fmt.Sprintf("%s  %s  %x.%d", m.tokens[i].function, kind, h.Sum(nil)[:4], i-statement[0])
	m.seen[key]++
	if n := m.seen[key]; n > 1 {
		key += fmt.Sprintf(".%d", n)
	}
	return key
}

// change shows the replacement of [start, end) with the tokens around it.
func (m *mutator) change(start, end int, replacement string) string {
	const around = 5
	first := slices.IndexFunc(m.tokens, func(t shaderToken) bool { return t.end > start })
	last := first
	for last+1 < len(m.tokens) && m.tokens[last+1].start < end {
		last++
	}
	first = max(first-around, m.tokens[first].statement[0])
	last = max(min(last+around+1, m.tokens[last].statement[1])-1, last)
	from, to := min(m.tokens[first].start, start), max(m.tokens[last].end, end)
	return oneLine(m.text[from:to]) + " → " + oneLine(m.text[from:start]+replacement+m.text[end:to])
}

var lineComment = regexp.MustCompile(`//[^\n]*`)

// oneLine returns a part of a shader without comments and line breaks.
func oneLine(s string) string {
	return strings.Join(strings.Fields(lineComment.ReplaceAllString(s, "")), " ")
}

// mutate appends the mutants of one token.
func (m *mutator) mutate(i int) {
	t := m.tokens[i]
	replace := func(kind, replacement string) { m.add(i, kind, t.start, t.end, replacement) }
	binary := m.binary(i)
	switch t.text {
	case "threadgroup_barrier", "simdgroup_barrier":
		m.add(i, "drop barrier", t.start, m.tokens[m.closing(i+1)+1].end, "")
		if t.text == "threadgroup_barrier" {
			replace("weaken barrier", "simdgroup_barrier")
		}
	case "mem_threadgroup", "mem_device":
		replace("weaken flag", "mem_none")
	case "if":
		end := m.closing(i + 1)
		m.add(i, "drop guard", m.tokens[i+1].start, m.tokens[end].end, "(true)")
	case "[":
		if t.subscript {
			end := m.closing(i)
			m.add(i, "shift index", t.end, m.tokens[end].start, "("+m.text[t.end:m.tokens[end].start]+") + 1")
		}
	case "<", ">":
		if binary {
			replace("compare", t.text+"=")
		}
	case "<=", ">=":
		replace("compare", t.text[:1])
	case "==":
		replace("compare", "!=")
	case "+":
		if binary {
			replace("sign", "-")
		}
	case "+=":
		replace("sign", "-=")
	case "*":
		if binary {
			replace("sign", "+")
		}
	case "-", "/":
		if binary {
			m.swap(i)
		} else if t.text == "-" {
			replace("sign", "+")
		}
	case "min":
		replace("function", "max")
	case "max":
		replace("function", "min")
	}
	if t.text[0] >= '0' && t.text[0] <= '9' {
		digits := strings.TrimRight(t.text, "u")
		if n, err := strconv.Atoi(digits); err == nil {
			other := n - 1
			if n == 0 {
				other = 1
			}
			replace("constant", strconv.Itoa(other)+t.text[len(digits):])
		}
	}
}

// closing returns the index of the bracket that closes the bracket at i.
func (m *mutator) closing(i int) int {
	depth := 0
	for ; ; i++ {
		switch m.tokens[i].text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth == 0 {
				return i
			}
		}
	}
}

// swap exchanges the operands of the subtraction or division at i.
func (m *mutator) swap(i int) {
	weaker := []string{
		",", ";", "=", "+=", "-=", "*=", "/=", "?", ":", "<", ">", "<=", ">=", "==", "!=", "&&", "||",
		"return",
	}
	left, right := weaker, slices.Concat(weaker, []string{"+", "-"})
	if m.tokens[i].text == "/" {
		left = right
		right = slices.Concat(right, []string{"*", "/", "%"})
	}
	first := m.reach(i, -1, left)
	last := m.reach(i, 1, right)
	a := m.text[m.tokens[first].start:m.tokens[i-1].end]
	b := m.text[m.tokens[i+1].start:m.tokens[last].end]
	m.add(i, "swap operands", m.tokens[first].start, m.tokens[last].end, "("+b+") "+m.tokens[i].text+" ("+a+")")
}

// reach returns the index of the last token of the operand beside the operator at i. It advances by step, 1 or −1, and
// stops before a token in ends.
func (m *mutator) reach(i, step int, ends []string) int {
	depth := 0
	for j := i + step; ; j += step {
		switch m.tokens[j].text {
		case "(", "[", "{":
			depth += step
		case ")", "]", "}":
			depth -= step
		default:
			if depth == 0 && slices.Contains(ends, m.tokens[j].text) {
				return j - step
			}
		}
		if depth < 0 {
			return j - step
		}
	}
}

func TestMutants(t *testing.T) {
	const shader = `#define N 1 + 2
// a[1] - b
inline float f(threadgroup const float* p [[buffer(0)]], uint n) {
  float q[2][3] = {};
  array<int> r[4], s[5];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  if (n < 4) {
    q[1][n + 2] = -p[0] * 2.0f - (p[n] + 1) / q[0][0] / 3;
  }
  return f<float>(q[0], n);
}
template <int L>
struct S<L, 1> {
  enum { N = 2 };
  float g(int i) const {
    return i + 1;
  }
};
inline float h() {
#ifdef MLXG_FAST
  return mlxg::fast(1, 2);
#else
  return 1;
#endif
}
`
	var changes []string
	for _, m := range mutants(shader) {
		switch m.function {
		case "f", "h":
			require.NotContains(t, m.head, "struct")
		default:
			require.Equal(t, "g", m.function)
			require.Contains(t, m.head, "struct S<L, 1>")
		}
		changes = append(changes, m.kind+": "+m.change[strings.Index(m.change, "→")+len("→ "):])
	}
	require.Equal(t, []string{
		"constant: float q[1][3] =",
		"constant: q[2][2] = {};",
		"constant: <int> r[3], s[5",
		"constant: 4], s[4];",
		"drop barrier: ",
		"weaken barrier: simdgroup_barrier(mem_flags::mem_threadgroup)",
		"weaken flag: threadgroup_barrier(mem_flags::mem_none);",
		"drop guard: if (true)",
		"compare: if (n <= 4)",
		"constant: if (n < 3)",
		"shift index: q[(1) + 1][n + 2",
		"constant: q[0][n + 2",
		"shift index: q[1][(n + 2) + 1] = -p[",
		"sign: [1][n - 2] = -p",
		"constant: 1][n + 1] = -p[",
		"sign: n + 2] = +p[0] *",
		"shift index: ] = -p[(0) + 1] * 2.0f - (",
		"constant: ] = -p[1] * 2.0f - (",
		"sign: -p[0] + 2.0f - (p[",
		"swap operands: n + 2] = ((p[n] + 1) / q[0][0] / 3) - (-p[0] * 2.0f);",
		"shift index: 2.0f - (p[(n) + 1] + 1) /",
		"sign: (p[n] - 1) / q[",
		"constant: p[n] + 0) / q[0",
		"swap operands: 0] * 2.0f - (q[0][0]) / ((p[n] + 1)) / 3;",
		"shift index: 1) / q[(0) + 1][0] /",
		"constant: 1) / q[1][0] /",
		"shift index: q[0][(0) + 1] / 3;",
		"constant: q[0][1] / 3;",
		"swap operands: 0] * 2.0f - (3) / ((p[n] + 1) / q[0][0]);",
		"constant: ][0] / 2;",
		"shift index: float>(q[(0) + 1], n);",
		"constant: float>(q[1], n);",
		"sign: return i - 1;",
		"constant: return i + 0;",
		"constant: return 0;",
	}, changes)
}
