package compare

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
)

// failure is an input at which our function has a wrong result or none.
type failure struct {
	trial  trial
	reason string
	// The failing result; target is nil if there is none.
	p           problem
	target      *target
	ours, truth []float64
	undefinedAt *int // the position of an element that is not finite and has no true value, or nil
}

// output names the failing result. It is "" if there is none.
func (f failure) output() string {
	if f.target == nil {
		return ""
	}
	return f.target.name
}

// message describes the failure in a test.
func (f failure) message(test string) string {
	var out strings.Builder
	if f.target == nil {
		fmt.Fprintf(&out, "no result in %s: %s", f.trial.place(), f.reason)
	} else {
		fmt.Fprintf(&out, "%s is wrong in %s:\n%s\n", f.target.name, f.trial.place(), indented(f.reason))
		size := oracle.Size(f.target.shape)
		what, worst, want := "largest error", 0, "a finite number"
		if f.undefinedAt != nil {
			what, worst = "first", *f.undefinedAt
		} else {
			worst = accuracy.Worst(f.ours, f.truth)
			want = number(f.truth[worst])
		}
		draw, at := worst/size, worst%size
		fmt.Fprintf(&out, "The %s is in %s%s: got %v, want %s",
			what, f.target.name, accuracy.Index(at, f.target.shape), number(f.ours[worst]), want)
		if len(f.p.draws) > 1 {
			fmt.Fprintf(&out, ", in draw %d", draw)
		}
		out.WriteString(", with\n")
		for i, x := range f.p.draws[draw].inputs {
			fmt.Fprintf(&out, "    %s = %s\n", f.p.c.Inputs[i].Name, text(x.exact))
		}
		for i, u := range f.p.draws[draw].cotangents {
			fmt.Fprintf(&out, "    d%s = %s\n", f.p.c.Outputs[i].Name, text(u.exact))
		}
	}
	return strings.TrimSuffix(out.String(), "\n") + fmt.Sprintf("\nTo run only this input, in the folder of the test:\n"+
		"    go test -run '%s' -compare.case='%s'", pattern(test), f.trial)
}

// place names the dtype and the sizes of the dimensions.
func (tr trial) place() string {
	tr.values, tr.layouts = nil, nil
	words := strings.Fields(tr.String())
	words = slices.DeleteFunc(words[:len(words)-1], func(w string) bool {
		return strings.HasPrefix(w, "call=") || strings.HasPrefix(w, "case=")
	})
	if len(words) == 1 {
		return words[0]
	}
	return words[0] + " at " + strings.Join(words[1:], ", ")
}

// pattern returns the value of -run that selects a test.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// largestText is the number of elements above which arrays are printed as their shape.
const largestText = 64

// text writes a tensor as nested lists.
func text(t oracle.Tensor) string {
	switch {
	case len(t.Data) > largestText:
		return fmt.Sprintf("%d elements of shape %v", len(t.Data), t.Shape)
	case len(t.Shape) == 0:
		return number(t.Data[0])
	}
	parts := make([]string, t.Shape[0])
	size := oracle.Size(t.Shape[1:])
	for i := range parts {
		parts[i] = text(oracle.Tensor{Shape: t.Shape[1:], Data: t.Data[i*size : (i+1)*size]})
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

// number writes an element with the digits of float32, which holds every stored value exactly.
func number(v float64) string {
	if math.Abs(v) > math.MaxFloat32 {
		return strconv.FormatFloat(v, 'g', 6, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 32)
}

func indented(lines string) string { return "    " + strings.ReplaceAll(lines, "\n", "\n    ") }
