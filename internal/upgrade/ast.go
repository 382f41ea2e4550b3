package upgrade

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// A node is a declaration, statement or type of clang's syntax tree in JSON, with the used fields only.
type node struct {
	Kind       string   `json:"kind"`
	Loc        location `json:"loc"` // of the name
	Range      struct{ Begin, End location }
	Name       string   `json:"name"`
	Type       typeName `json:"type"`
	CtorType   typeName `json:"ctorType"`
	IsImplicit bool     `json:"isImplicit"`
	Previous   string   `json:"previousDecl"` // set in a redeclaration

	// classes
	Complete bool   `json:"completeDefinition"`
	Tag      string `json:"tagUsed"`
	Access   string `json:"access"` // of an access specifier
	Bases    []base `json:"bases"`

	// members and functions
	Virtual   bool   `json:"virtual"`
	Pure      bool   `json:"pure"`
	Storage   string `json:"storageClass"`
	Constexpr bool   `json:"constexpr"`
	Deleted   bool   `json:"explicitlyDeleted"`
	Default   string `json:"init"` // set if a parameter or variable has a value
	InClass   bool   `json:"hasInClassInitializer"`

	Value      any   `json:"value"` // of an enumerator's constant, a string
	Referenced *node `json:"referencedDecl"`

	Inner []node `json:"inner"`
}

type typeName struct {
	Written string `json:"qualType"`
	Full    string `json:"desugaredQualType"` // empty if it equals Written
}

// full returns the type without typedefs.
func (t typeName) full() string {
	if t.Full != "" {
		return t.Full
	}
	return t.Written
}

type base struct {
	Access string   `json:"access"`
	Type   typeName `json:"type"`
}

// A location is a token of a file. Clang omits the file and the line if they equal the preceding location's; readTree
// fills them in. In a macro's expansion, only Spelling and Expansion are set.
type location struct {
	Offset    int       `json:"offset"` // in bytes
	File      string    `json:"file"`
	Line      int       `json:"line"`
	Length    int       `json:"tokLen"`
	Spelling  *location `json:"spellingLoc"`
	Expansion *location `json:"expansionLoc"`
}

// at returns the location in the file that uses the macro, if there is one.
func (l location) at() location {
	if l.Expansion != nil {
		return *l.Expansion
	}
	return l
}

// readTree decodes the output of clang++ -Xclang -ast-dump=json: one document, or several if clang filters declarations.
func readTree(out []byte) ([]node, error) {
	dec := json.NewDecoder(bytes.NewReader(out))
	var nodes []node
	for {
		var n node
		if err := dec.Decode(&n); errors.Is(err, io.EOF) {
			return nodes, nil
		} else if err != nil {
			return nil, err
		}
		last := location{}
		last.fill(&n)
		nodes = append(nodes, n)
	}
}

// fill completes the locations of a node and its children, which are in the order of clang's output. The receiver is the
// preceding location.
func (l *location) fill(n *node) {
	l.complete(&n.Loc)
	l.complete(&n.Range.Begin)
	l.complete(&n.Range.End)
	for i := range n.Inner {
		l.fill(&n.Inner[i])
	}
}

func (l *location) complete(at *location) {
	if at.Spelling != nil || at.Expansion != nil {
		for _, part := range []*location{at.Spelling, at.Expansion} {
			if part != nil {
				l.complete(part)
			}
		}
		return
	}
	if at.Length == 0 && at.Line == 0 && at.File == "" {
		return // a declaration of the compiler
	}
	if at.File == "" {
		at.File = l.File
	}
	if at.Line == 0 {
		at.Line = l.Line
	}
	*l = *at
}
