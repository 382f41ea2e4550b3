package msl

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/addrspace/prelude"
)

// metalVersion is the value of __METAL_VERSION__ for every executor and check: Metal 3.1, the first version with
// bfloat. The prelude of the address-space check and the headers for the host define the same value.
const metalVersion = 310

// conditions evaluates the conditions of preprocessor directives, as far as the text decides them. A name that the
// text does not define counts as undefined. The names of the language, of Metal's library and of the executors'
// headers are unknown, because executors differ. Only Metal's version is known.
type conditions struct {
	macros map[string][]string // replacements of the macros that the text defines; nil if unknown
	undone map[string]bool     // names that an #undef outside of undecided branches has removed
}

// foreign matches names that may be macros of the language, of a system or of an executor's headers.
var foreign = regexp.MustCompile(`^(_|TARGET_|METAL_|MLX_|MLXG_|(U|S)?CHAR_|U?SHRT_|U?INT_|U?LONG_|` +
	`FLT_|HALF_|HUGE_|M_|MAX|NAN$|INFINITY$)`)

// define records a #define. certain is false if it stands in a branch that may not be taken.
func (c *conditions) define(words []string, certain bool) {
	if c == nil || len(words) == 0 {
		return
	}
	if c.macros == nil {
		c.macros, c.undone = map[string][]string{}, map[string]bool{}
	}
	c.macros[words[0]] = nil
	if certain {
		c.macros[words[0]] = append([]string{}, words[1:]...)
	}
	delete(c.undone, words[0])
}

// undefine records an #undef.
func (c *conditions) undefine(words []string, certain bool) {
	c.define(words, false)
	if c != nil && certain && len(words) > 0 {
		delete(c.macros, words[0])
		c.undone[words[0]] = true
	}
}

// truth is a value that may be unknown.
type truth struct {
	value int64
	known bool
}

func truthOf(b bool) truth {
	if b {
		return truth{1, true}
	}
	return truth{0, true}
}

// holds evaluates the condition of #if, #elif, #ifdef or #ifndef. If c is nil, only the conditions 0, 1, false and true
// have a known value.
func (c *conditions) holds(directive string, words []string) truth {
	if c == nil {
		text := strings.Join(words, " ")
		no, yes := text == "0" || text == "false", text == "1" || text == "true"
		return truth{truthOf(yes).value, directive == "if" && (no || yes)}
	}
	if directive == "ifdef" || directive == "ifndef" {
		if len(words) == 0 {
			return truth{}
		}
		t := c.defined(words[0])
		if directive == "ifndef" {
			t.value = 1 - t.value
		}
		return t
	}
	e := expression{conditions: c, words: words}
	t := e.binary(0)
	if e.wrong || len(e.words) > 0 {
		return truth{}
	}
	return t
}

// defined returns whether a name is a defined macro.
func (c *conditions) defined(name string) truth {
	words, found := c.macros[name]
	switch {
	case found:
		return truth{1, words != nil}
	case c.undone[name]:
		return truthOf(false)
	case name == "__METAL_VERSION__" || name == "__METAL__":
		return truthOf(true)
	case foreign.MatchString(name) || prelude.Macros()[name]:
		return truth{}
	}
	return truthOf(false)
}

// expression is the unread rest of a condition.
type expression struct {
	*conditions
	words []string
	depth int
	wrong bool
}

// precedences holds the precedence of each binary operator.
var precedences = map[string]int{
	"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6,
}

func (e *expression) next() string {
	if len(e.words) == 0 {
		e.wrong = true
		return ""
	}
	word := e.words[0]
	e.words = e.words[1:]
	return word
}

// binary evaluates operators with a precedence greater than above.
func (e *expression) binary(above int) truth {
	left := e.unary()
	for len(e.words) > 0 && precedences[e.words[0]] > above && !e.wrong {
		operator := e.next()
		left = operate(operator, left, e.binary(precedences[operator]))
	}
	return left
}

func operate(operator string, a, b truth) truth {
	decided := func(t truth, value bool) bool { return t.known && (t.value != 0) == value }
	switch {
	case operator == "||" && (decided(a, true) || decided(b, true)):
		return truthOf(true)
	case operator == "&&" && (decided(a, false) || decided(b, false)):
		return truthOf(false)
	case !a.known || !b.known, (operator == "/" || operator == "%") && b.value == 0:
		return truth{}
	}
	switch operator {
	case "||", "&&": // neither operand alone decided the value
		return truthOf(operator == "&&")
	case "==":
		return truthOf(a.value == b.value)
	case "!=":
		return truthOf(a.value != b.value)
	case "<":
		return truthOf(a.value < b.value)
	case ">":
		return truthOf(a.value > b.value)
	case "<=":
		return truthOf(a.value <= b.value)
	case ">=":
		return truthOf(a.value >= b.value)
	case "+":
		return truth{a.value + b.value, true}
	case "-":
		return truth{a.value - b.value, true}
	case "*":
		return truth{a.value * b.value, true}
	case "/":
		return truth{a.value / b.value, true}
	}
	return truth{a.value % b.value, true}
}

func (e *expression) unary() truth {
	if e.depth++; e.depth > 256 {
		e.wrong = true
		return truth{}
	}
	switch word := e.next(); {
	case word == "!":
		t := e.unary()
		return truth{truthOf(t.value == 0).value, t.known}
	case word == "-":
		t := e.unary()
		return truth{-t.value, t.known}
	case word == "(":
		t := e.binary(0)
		e.wrong = e.wrong || e.next() != ")"
		return t
	case word == "defined":
		name := e.next()
		if name == "(" {
			name = e.next()
			e.wrong = e.wrong || e.next() != ")"
		}
		return e.defined(name)
	case word != "" && IsDigit(word[0]):
		n, err := strconv.ParseInt(strings.TrimRight(word, "uUlL"), 0, 64)
		e.wrong = e.wrong || err != nil
		return truth{n, true}
	case word != "" && isIdentifierStart(word[0]):
		return e.name(word)
	}
	e.wrong = true
	return truth{}
}

// name evaluates a name: a macro by its replacement, a truth value, or 0.
func (e *expression) name(name string) truth {
	words, found := e.macros[name]
	switch {
	case found && words == nil, e.depth > 32:
		return truth{}
	case found:
		inner := expression{conditions: e.conditions, words: words, depth: e.depth}
		if t := inner.binary(0); !inner.wrong && len(inner.words) == 0 {
			return t
		}
		return truth{} // a macro with arguments or without a value
	case name == "true":
		return truthOf(true)
	case name == "__METAL_VERSION__" && !e.undone[name]:
		return truth{metalVersion, true}
	case name == "__METAL__" && !e.undone[name]:
		return truthOf(true)
	}
	if t := e.defined(name); !t.known {
		return t
	}
	if len(e.words) > 0 && e.words[0] == "(" { // __has_include(…) and its like
		return truth{}
	}
	return truthOf(false)
}
