package checker

import (
	"context"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// addRacesOfArms adds a finding of kind Race for each Lockstep finding whose accesses lie in the two arms of an if
// statement. Lockstep execution does not order the arms. The accesses come from a program without merged stores,
// because a merged store has the line of one arm and runs in both.
func (p *Program) addRacesOfArms(ctx context.Context, l Launch, r *Result) error {
	lockstep := func(f Finding) bool { return f.Kind == Lockstep }
	if !slices.ContainsFunc(r.Findings, lockstep) || !strings.Contains(p.text, "else") {
		return nil
	}
	separate, err := programFor(ctx, p.tools, p.text, variant{separate: true})
	if err != nil {
		return err
	}
	s, err := separate.run(ctx, l)
	if err != nil {
		return err
	}
	code := controlFlowOf(p.text)
	for _, f := range s.Findings {
		if lockstep(f) && code.ofTwoArms(f) {
			f.Kind, f.Arms = Race, true
			r.Findings = append(r.Findings, f)
		}
	}
	return nil
}

// controlFlow is the tokens of a text, without comments and directives. It is empty if a directive has a control
// statement, which may be part of any function.
type controlFlow []msl.Token

func controlFlowOf(text string) controlFlow {
	var code controlFlow
	for _, t := range msl.Tokenize(text) {
		switch {
		case t.Directive != 0 && (t.Text == "else" || t.Text == "if" || isLoop(t)):
			return nil
		case t.Directive == 0 && t.Kind != msl.Comment:
			code = append(code, t)
		}
	}
	return code
}

func isLoop(t msl.Token) bool { return t.Is("for") || t.Is("while") || t.Is("do") }

// ofTwoArms reports whether the accesses of f lie in the two arms of one execution of an if statement of the kernel:
// the text shows that a thread executes the statement at most once between two barriers.
func (c controlFlow) ofTwoArms(f Finding) bool {
	function, a := c.inKernel(f.Path, f.Column)
	other, b := c.inKernel(f.OtherPath, f.OtherColumn)
	if function != other || !c.isKernel(function) {
		return false
	}
	for i, t := range c {
		if !t.Is("if") {
			continue
		}
		then, otherwise := c.arms(i)
		if then.holds(a) && otherwise.holds(b) || then.holds(b) && otherwise.holds(a) {
			return c.onceBetweenBarriers(i)
		}
	}
	return false
}

// inKernel returns the outermost function of a path, and the tokens there that may be the access or its call. The path
// has the column of an access only.
func (c controlFlow) inKernel(path []Frame, column int) (function string, at tokenRange) {
	path = slices.DeleteFunc(slices.Clone(path), func(f Frame) bool { return f.Function == "mlxg_call" })
	if len(path) == 0 {
		return "", tokenRange{}
	}
	if len(path) > 1 {
		column = 0
	}
	outer := path[len(path)-1]
	return outer.Function, c.tokensAt(outer.Line, column)
}

// isKernel reports whether a function is the kernel, which the generated function at the end of the text calls once.
func (c controlFlow) isKernel(function string) bool {
	function, _, _ = strings.Cut(function, "<")
	entry := slices.IndexFunc(c, func(t msl.Token) bool { return t.Is("mlxg_call") || t.Is("mlxg_invoke") })
	for i := max(entry, 0); i < len(c); i++ {
		first := i // of a qualified name
		for first > 2 && c[first-1].Is("::") {
			first -= 2
		}
		if c[i].Is(function) && c.beginsStatement(first) {
			return true
		}
	}
	return false
}

// beginsStatement reports whether a token is the first of a statement that no other statement controls.
func (c controlFlow) beginsStatement(i int) bool {
	return i > 0 && (c[i-1].Is("{") || c[i-1].Is("}") || c[i-1].Is(";"))
}

// tokenRange is the indices begin to end-1 of tokens.
type tokenRange struct{ begin, end int }

func (r tokenRange) holds(o tokenRange) bool {
	return o.begin < o.end && r.begin <= o.begin && o.end <= r.end
}

// tokensAt returns the token at a column, or all tokens of a line if the column is 0.
func (c controlFlow) tokensAt(line, column int) tokenRange {
	r := tokenRange{begin: -1}
	for i, t := range c {
		if t.Line == line && (column == 0 || t.Column <= column) {
			if r.begin < 0 || column > 0 {
				r.begin = i
			}
			r.end = i + 1
		}
	}
	return r
}

// arms returns the two arms of the if statement at a token. The second is empty without an else.
func (c controlFlow) arms(i int) (then, otherwise tokenRange) {
	then.begin = c.body(i)
	then.end = c.statementEnd(then.begin)
	if then.end < len(c) && c[then.end].Is("else") {
		otherwise = tokenRange{then.end + 1, c.statementEnd(then.end + 1)}
	}
	return then, otherwise
}

// body returns the index of the statement that the if, for, while, switch or do at a token controls.
func (c controlFlow) body(i int) int {
	if c[i].Is("do") {
		return i + 1
	}
	for i < len(c) && !c[i].Is("(") { // if constexpr
		i++
	}
	return min(c.closing(i)+1, len(c))
}

func (c controlFlow) closing(i int) int {
	if i >= len(c) {
		return len(c)
	}
	return closing(c, i)
}

// statementEnd returns the index after the statement that begins at a token.
func (c controlFlow) statementEnd(i int) int {
	if i >= len(c) {
		return len(c)
	}
	switch t := c[i]; {
	case t.Is("{"):
		return min(closing(c, i)+1, len(c))
	case t.Is("if"):
		then, otherwise := c.arms(i)
		return max(then.end, otherwise.end)
	case t.Is("for"), t.Is("while"), t.Is("switch"):
		return c.statementEnd(c.body(i))
	}
	for ; i < len(c) && !c[i].Is(";"); i++ {
		if c[i].Is("(") || c[i].Is("{") || c[i].Is("[") {
			i = closing(c, i)
		}
	}
	return min(i+1, len(c))
}

// onceBetweenBarriers reports whether a thread executes the statement at a token at most once between two barriers:
// each loop around it executes a barrier in each iteration.
func (c controlFlow) onceBetweenBarriers(at int) bool {
	for i, t := range c[:at] {
		if !isLoop(t) {
			continue
		}
		begin := c.body(i)
		body := tokenRange{begin, c.statementEnd(begin)}
		if body.holds(tokenRange{at, at + 1}) && !c.hasBarrier(body) {
			return false
		}
	}
	return true
}

// hasBarrier reports whether each iteration of a loop executes a barrier, which is a statement of its body.
func (c controlFlow) hasBarrier(body tokenRange) bool {
	found, depth := false, 0
	for i := body.begin; i < body.end; i++ {
		switch t := c[i]; {
		case t.Is("continue"):
			return false
		case t.Is("{"):
			depth++
		case t.Is("}"):
			depth--
		case depth == 1 && (t.Is("threadgroup_barrier") || t.Is("simdgroup_barrier")):
			found = found || c.beginsStatement(i)
		}
	}
	return found
}
