package python

import (
	"errors"
	"fmt"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// A Call is a call of mx.fast.metal_kernel.
type Call struct {
	Name            string
	Inputs, Outputs []string
	Source, Header  Text
	AtomicOutputs   bool
	Pos             msl.Position
	// Problem is an [*msl.Error] with the reason why the arguments cannot be read, or nil. Name may be empty then.
	Problem error
}

// parameters are the parameters of metal_kernel in order.
var parameters = []string{
	"name", "input_names", "output_names", "source", "header", "ensure_row_contiguous", "atomic_outputs",
}

// Calls returns the calls of metal_kernel in a Python file.
func Calls(file, src string) []Call {
	p := parser{file: file, tokens: scan(src), constants: map[string][]token{}}
	p.collectConstants()
	var calls []Call
	for i, t := range p.tokens {
		if t.kind != name || t.text != "metal_kernel" || p.tokens[i+1].text != "(" || i > 0 && p.tokens[i-1].text == "def" {
			continue
		}
		p.at = i + 2
		c := Call{Pos: p.position(t)}
		if err := p.call(&c); err != nil {
			c.Problem = err
		}
		calls = append(calls, c)
	}
	return calls
}

type parser struct {
	file   string
	tokens []token
	at     int
	// constants holds the string literals that a module assigns to a name once. The list of a name that it assigns
	// again is empty.
	constants map[string][]token
}

func (p *parser) position(t token) msl.Position {
	return msl.Position{File: p.file, Offset: t.offset, Line: t.line, Column: t.column}
}

func (p *parser) next() token { return p.tokens[min(p.at, len(p.tokens)-1)] }

func (p *parser) take(text string) bool {
	if p.next().kind == literal || p.next().text != text {
		return false
	}
	p.at++
	return true
}

// collectConstants finds the lines "NAME = strings" that begin in the first column.
func (p *parser) collectConstants() {
	for i := range p.tokens {
		first := p.tokens[i]
		if first.kind != name || first.column != 1 {
			continue
		}
		p.at = i + 1
		if p.take(":") { // an annotation
			for k := p.next().kind; k != newline && k != end && p.next().text != "="; k = p.next().kind {
				p.at++
			}
		}
		if !p.take("=") || p.next().text == "=" {
			continue
		}
		value := p.strings()
		_, again := p.constants[first.text]
		if k := p.next().kind; again || k != newline && k != end {
			value = nil
		}
		p.constants[first.text] = value
	}
}

// strings takes string literals, which may be in parentheses.
func (p *parser) strings() (list []token) {
	open := p.take("(")
	for p.next().kind == literal {
		list = append(list, p.next())
		p.at++
	}
	if open && !p.take(")") {
		return nil
	}
	return list
}

// call reads the arguments from behind the parenthesis on.
func (p *parser) call(c *Call) error {
	given := map[string]bool{}
	for i := 0; !p.take(")"); i++ {
		parameter := ""
		if i < len(parameters) {
			parameter = parameters[i]
		}
		start := p.next()
		if k := p.next(); k.kind == name && p.tokens[p.at+1].text == "=" {
			parameter = k.text
			p.at += 2
		}
		if err := p.argument(c, parameter); err != nil {
			return msl.Errorf(p.position(start), "metal_kernel: %s: %v", parameter, err)
		}
		if !p.take(",") && p.next().text != ")" {
			return msl.Errorf(p.position(p.next()), "metal_kernel: %s: %v", parameter, errUnsupported)
		}
		given[parameter] = true
	}
	for _, parameter := range parameters[:4] {
		if !given[parameter] {
			return msl.Errorf(c.Pos, "metal_kernel: the argument %s is missing", parameter)
		}
	}
	return nil
}

// argument reads the value of a parameter.
func (p *parser) argument(c *Call, parameter string) (err error) {
	var text Text
	switch parameter {
	case "name":
		text, err = p.text()
		c.Name = text.Value
	case "source":
		c.Source, err = p.text()
	case "header":
		c.Header, err = p.text()
	case "input_names":
		c.Inputs, err = p.names()
	case "output_names":
		c.Outputs, err = p.names()
	case "atomic_outputs":
		c.AtomicOutputs, err = p.bool()
	case "ensure_row_contiguous":
		_, err = p.bool()
	default:
		err = fmt.Errorf("it is none of %s", strings.Join(parameters, ", "))
	}
	return err
}

// text reads a string.
func (p *parser) text() (Text, error) {
	var list []token
	if t := p.next(); t.kind == name {
		list = p.constants[t.text]
		p.at++
	} else {
		list = p.strings()
	}
	if len(list) == 0 {
		return Text{}, errUnsupported
	}
	var text Text
	for _, l := range list {
		if err := text.decode(l); err != nil {
			return Text{}, err
		}
	}
	return text, nil
}

// names reads a list or tuple of strings.
func (p *parser) names() (list []string, err error) {
	closing := "]"
	if p.take("(") {
		closing = ")"
	} else if !p.take("[") {
		return nil, errors.New("it is no list of strings")
	}
	for !p.take(closing) {
		text, err := p.text()
		if err != nil {
			return nil, err
		}
		list = append(list, text.Value)
		if !p.take(",") && p.next().text != closing {
			return nil, errUnsupported
		}
	}
	return list, nil
}

func (p *parser) bool() (bool, error) {
	switch {
	case p.take("True"):
		return true, nil
	case p.take("False"):
		return false, nil
	}
	return false, errors.New("it is neither True nor False")
}
