package launchspec

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// An Expectation describes the values of an output after the launch.
type Expectation struct {
	Output string // name of the kernel's parameter
	// Text is the list of numbers, the expression, or the name of a file after "@".
	Text string
	// Tolerance is that of [sanitizer.Expected].
	Tolerance float64

	values     []float64 // of a list, or of a file after [Spec.ReadFiles]
	expression ast.Expr  // of element i
}

// parseExpectation reads TEXT[:within=TOLERANCE].
func parseExpectation(output, text string) (Expectation, error) {
	text, within, limited := strings.Cut(text, ":within=")
	e := Expectation{Output: output, Text: text}
	if limited {
		var err error
		if e.Tolerance, err = strconv.ParseFloat(within, 64); err != nil || !(e.Tolerance > 0) || math.IsInf(e.Tolerance, 0) {
			return e, fmt.Errorf("%q is not a tolerance: write a positive number", within)
		}
	}
	if strings.HasPrefix(text, "@") {
		return e, nil
	}
	if values, err := numbers(strings.Split(text, ",")); err == nil {
		e.values = values
		return e, nil
	}
	expression, err := parser.ParseExpr(text)
	if err != nil {
		return e, fmt.Errorf("%q is neither a list of numbers nor an expression: write one such as 2*x[i]+1, or @FILE", text)
	}
	e.expression = expression
	return e, nil
}

func numbers(words []string) ([]float64, error) {
	values := make([]float64, len(words))
	for i, w := range words {
		var err error
		if values[i], err = strconv.ParseFloat(w, 64); err != nil {
			return nil, fmt.Errorf("%q is not a number", w)
		}
	}
	return values, nil
}

// of returns the expected values of an output with n elements. buffers holds the inputs by name.
func (e Expectation) of(n int, buffers map[string]operand) (sanitizer.Expected, error) {
	expected := sanitizer.Expected{Values: e.values, Tolerance: e.Tolerance}
	switch {
	case len(e.values) == 1:
		expected.Values = make([]float64, n)
		for i := range expected.Values {
			expected.Values[i] = e.values[0]
		}
	case e.expression != nil:
		expected.Values = make([]float64, n)
		for i := range expected.Values {
			v, err := evaluator{buffers, map[string]int64{"i": int64(i)}}.value(e.expression)
			if err != nil {
				return expected, fmt.Errorf("expected value %d of %s: %w", i, e.Output, err)
			}
			expected.Values[i] = v.float()
		}
	case e.values == nil:
		return expected, fmt.Errorf("the expected values of %s are in a file: call Spec.ReadFiles first", e.Output)
	case len(e.values) != n:
		return expected, fmt.Errorf("%d expected values for the %d elements of %s: give one for all, or one for each",
			len(e.values), n, e.Output)
	}
	return expected, nil
}

// operand is an input as expressions see it.
type operand struct {
	values  []float64
	integer bool
}

func operandOf(a sanitizer.Array) operand { return operand{a.Values(), !isReal(a.DType)} }

// number is the value of an expression: an integer or a floating-point number.
type number struct {
	integer bool
	n       int64
	f       float64
}

func (v number) float() float64 {
	if v.integer {
		return float64(v.n)
	}
	return v.f
}

// evaluator computes an expression with Go's syntax and precedence. Integers divide as in C++. If one operand is a
// floating-point number, both are.
type evaluator struct {
	buffers   map[string]operand
	variables map[string]int64
}

// functions are the functions of one number that expressions may call.
var functions = map[string]func(float64) float64{
	"abs": math.Abs, "exp": math.Exp, "log": math.Log, "sqrt": math.Sqrt, "sin": math.Sin, "cos": math.Cos,
	"tan": math.Tan, "tanh": math.Tanh, "erf": math.Erf, "floor": math.Floor, "ceil": math.Ceil, "round": math.Round,
	"trunc": math.Trunc, "float": func(v float64) float64 { return v },
}

// maxTerms bounds the terms of a sum.
const maxTerms = 1 << 24

func (e evaluator) value(x ast.Expr) (number, error) {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return e.value(x.X)
	case *ast.BasicLit:
		if n, err := strconv.ParseInt(x.Value, 0, 64); err == nil {
			return number{integer: true, n: n}, nil
		}
		f, err := strconv.ParseFloat(x.Value, 64)
		if err != nil {
			return number{}, fmt.Errorf("%s is not a number", x.Value)
		}
		return number{f: f}, nil
	case *ast.Ident:
		return e.name(x.Name)
	case *ast.SelectorExpr:
		if name := nameOf(x); name != "" {
			return e.name(name)
		}
	case *ast.IndexExpr:
		return e.element(x)
	case *ast.UnaryExpr:
		v, err := e.value(x.X)
		if x.Op == token.SUB {
			return number{v.integer, -v.n, -v.f}, err
		}
		if x.Op == token.ADD {
			return v, err
		}
		return v, fmt.Errorf("the operator %s is not known", x.Op)
	case *ast.BinaryExpr:
		a, err := e.value(x.X)
		if err != nil {
			return a, err
		}
		b, err := e.value(x.Y)
		if err != nil {
			return b, err
		}
		return operate(x.Op, a, b)
	case *ast.CallExpr:
		return e.call(x)
	}
	return number{}, errors.New("write an expression of numbers, i, inputs such as x[i], + - * / %, comparisons and functions")
}

func (e evaluator) name(name string) (number, error) {
	if n, ok := e.variables[name]; ok {
		return number{integer: true, n: n}, nil
	}
	if name == "inf" {
		return number{f: math.Inf(1)}, nil
	}
	if b, ok := e.buffers[name]; ok && len(b.values) == 1 {
		return b.at(0), nil
	}
	return number{}, fmt.Errorf("%s is neither i, a variable of a reduction, nor an input or field with one element", name)
}

// nameOf returns the name of an input or a field, such as x or params.rows, or "" for another expression.
func nameOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		if outer := nameOf(x.X); outer != "" {
			return outer + "." + x.Sel.Name
		}
	case *ast.IndexExpr: // an array of structures, such as params.parts[0].low
		if index, ok := x.Index.(*ast.BasicLit); ok && nameOf(x.X) != "" {
			return nameOf(x.X) + "[" + index.Value + "]"
		}
	}
	return ""
}

func (b operand) at(i int64) number {
	if v := b.values[i]; !b.integer {
		return number{f: v}
	} else {
		return number{integer: true, n: int64(v)}
	}
}

func (e evaluator) element(x *ast.IndexExpr) (number, error) {
	name := nameOf(x.X)
	if name == "" {
		return number{}, errors.New("only an input can be indexed")
	}
	b, ok := e.buffers[name]
	if !ok {
		return number{}, fmt.Errorf("the launch has no input %s", name)
	}
	i, err := e.value(x.Index)
	if err != nil {
		return i, err
	}
	if !i.integer || i.n < 0 || i.n >= int64(len(b.values)) {
		return i, fmt.Errorf("%s[%v] lies outside of its %d elements", name, i.float(), len(b.values))
	}
	return b.at(i.n), nil
}

func operate(op token.Token, a, b number) (number, error) {
	truth := func(v bool) (number, error) {
		if v {
			return number{integer: true, n: 1}, nil
		}
		return number{integer: true}, nil
	}
	x, y := a.float(), b.float()
	switch op {
	case token.LSS:
		return truth(x < y)
	case token.LEQ:
		return truth(x <= y)
	case token.GTR:
		return truth(x > y)
	case token.GEQ:
		return truth(x >= y)
	case token.EQL:
		return truth(x == y)
	case token.NEQ:
		return truth(x != y)
	}
	integers := a.integer && b.integer
	if integers && b.n == 0 && (op == token.QUO || op == token.REM) {
		return a, errors.New("division by zero")
	}
	switch op {
	case token.ADD:
		return number{integers, a.n + b.n, x + y}, nil
	case token.SUB:
		return number{integers, a.n - b.n, x - y}, nil
	case token.MUL:
		return number{integers, a.n * b.n, x * y}, nil
	case token.QUO:
		if integers {
			return number{integer: true, n: a.n / b.n}, nil
		}
		return number{f: x / y}, nil
	case token.REM:
		if integers {
			return number{integer: true, n: a.n % b.n}, nil
		}
		return number{f: math.Mod(x, y)}, nil
	}
	return a, fmt.Errorf("the operator %s is not known", op)
}

// call computes a function of one number, min, max or pow of two, where(condition, a, b), or a reduction:
// sum(k,low,high,term) and greatest(k,low,high,term), with low ≤ k < high.
func (e evaluator) call(x *ast.CallExpr) (number, error) {
	name, ok := x.Fun.(*ast.Ident)
	if !ok {
		return number{}, errors.New("only a function can be called")
	}
	if (name.Name == "sum" || name.Name == "greatest") && len(x.Args) == 4 {
		return e.reduction(name.Name, x.Args)
	}
	if name.Name == "where" && len(x.Args) == 3 {
		condition, err := e.value(x.Args[0])
		if err != nil {
			return condition, err
		}
		if condition.float() != 0 {
			return e.value(x.Args[1])
		}
		return e.value(x.Args[2])
	}
	var v []number
	for _, arg := range x.Args {
		a, err := e.value(arg)
		if err != nil {
			return a, err
		}
		v = append(v, a)
	}
	if f := functions[name.Name]; f != nil && len(v) == 1 {
		return number{f: f(v[0].float())}, nil
	}
	if len(v) == 2 {
		switch name.Name {
		case "min":
			return pick(v[0], v[1], v[0].float() <= v[1].float()), nil
		case "max":
			return pick(v[0], v[1], v[0].float() >= v[1].float()), nil
		case "pow":
			return number{f: math.Pow(v[0].float(), v[1].float())}, nil
		}
	}
	return number{}, fmt.Errorf("there is no function %s of %d arguments", name.Name, len(x.Args))
}

func pick(a, b number, first bool) number {
	if first {
		return a
	}
	return b
}

func (e evaluator) reduction(name string, args []ast.Expr) (number, error) {
	variable, ok := args[0].(*ast.Ident)
	low, err := e.value(args[1])
	if err != nil {
		return low, err
	}
	high, err := e.value(args[2])
	if err != nil {
		return high, err
	}
	if !ok || !low.integer || !high.integer || high.n-low.n > maxTerms {
		return number{}, fmt.Errorf("write %s(k,low,high,term) with at most %d terms", name, maxTerms)
	}
	inner := evaluator{e.buffers, map[string]int64{}}
	for n, v := range e.variables {
		inner.variables[n] = v
	}
	total := number{integer: true}
	if name == "greatest" {
		total = number{f: math.Inf(-1)}
	}
	for k := low.n; k < high.n; k++ {
		inner.variables[variable.Name] = k
		v, err := inner.value(args[3])
		if err != nil {
			return v, err
		}
		if name == "sum" {
			total = number{total.integer && v.integer, total.n + v.n, total.float() + v.float()}
		} else if v.float() > total.float() {
			total = v
		}
	}
	return total, nil
}
