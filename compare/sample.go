package compare

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/internal/ahead"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// Sample adds cases to an operation until it has 1/sampleShare of its rows.
const sampleShare = 10

// Sample returns ops with a part of their cases, each case in a part of the dtypes. The selection depends only on ops
// and the device. Sample goes through the cases in order, each in every dtype, and takes each pair of a case and a
// dtype that is the first with one of these traits:
//   - a kernel, counted for each operation; a kernel with the dtype as an argument also counts for each dtype;
//   - a kernel argument that is a type, a truth value or the size class of an input, counted for each kernel, and for
//     each dtype as above;
//   - a kernel argument that is a number, counted for each shader file;
//   - a word in the name of the case (an option, a layout or a kind of values), counted for each operation.
//
// Then it adds evenly spaced cases that need no further variant of a kernel, until an operation has a tenth of its rows
// or no such case is left. Sample runs no kernel. No other goroutine may launch kernels at the same time.
func Sample(ops []Op) []Op {
	seen, compiled := set{}, set{}
	parts := make([]Op, len(ops))
	for i, op := range ops {
		parts[i] = Op{Name: op.Name, Cases: op.sample(seen, compiled), part: true}
	}
	return parts
}

// sample returns the cases of an operation that are in the sample. seen holds the traits of the sample so far, compiled
// the variants of kernels.
func (op Op) sample(seen, compiled set) []Case {
	taken := make([][]mlxc.DType, len(op.Cases))
	var rest []candidate
	all, rows := 0, 0
	take := func(c candidate) {
		taken[c.at] = append(taken[c.at], c.dtype)
		rows += c.rows
	}
	for _, c := range op.candidates() {
		all += c.rows
		if seen.add(c.traits) {
			compiled.add(c.variants)
			take(c)
		} else {
			rest = append(rest, c)
		}
	}
	rest = slices.DeleteFunc(rest, func(c candidate) bool { return !compiled.has(c.variants) })
	available := 0
	for _, c := range rest {
		available += c.rows
	}
	missing := min(max((all+sampleShare-1)/sampleShare-rows, 0), available)
	due := 0 // rows due so far minus rows taken, times available
	for _, c := range rest {
		due += c.rows * missing
		if due >= c.rows*available {
			due -= c.rows * available
			take(c)
		}
	}

	var cases []Case
	for i, c := range op.Cases {
		if c.DTypes = taken[i]; len(c.DTypes) > 0 {
			cases = append(cases, c)
		}
	}
	return cases
}

// candidate is a case in one dtype that the sample may take.
type candidate struct {
	at       int // its position among the cases
	dtype    mlxc.DType
	rows     int
	traits   []string
	variants []string // of the kernels that it launches
}

var (
	wordInName     = regexp.MustCompile(`\pL{2,}`)
	numberArgument = regexp.MustCompile(`=-?\d+$`)
)

// candidates returns the cases in order, each in every dtype.
func (op Op) candidates() []candidate {
	var list []candidate
	for i, c := range op.Cases {
		for k := range DTypes() {
			// A trait that counts once for all dtypes selects the first dtype in which it occurs. The order of dtypes
			// rotates, so that not all these traits select the same dtype.
			dtype := DTypes()[(i+k)%len(DTypes())]
			one := candidate{at: i, dtype: dtype, rows: len(c.targets(dtype))}
			for _, word := range wordInName.FindAllString(c.Name, -1) {
				one.traits = append(one.traits, op.Name+" "+word)
			}
			for _, p := range c.programs(op.Name, dtype) {
				one.variants = append(one.variants, p.Kernel+p.Signature)
				one.traits = append(one.traits, traits(op.Name, p, dtype)...)
			}
			list = append(list, one)
		}
	}
	return list
}

// traits returns the traits of a launch by an operation in a dtype.
func traits(op string, p ahead.Program, dtype mlxc.DType) []string {
	kernel := p.Kernel
	// A kernel without the dtype among its arguments is the same in all dtypes.
	if slices.ContainsFunc(p.Arguments, func(a string) bool { return strings.HasSuffix(a, "="+dtype.String()) }) {
		kernel += " " + dtype.String()
	}
	list := []string{op + " " + kernel}
	for _, argument := range p.Arguments {
		if numberArgument.MatchString(argument) {
			list = append(list, p.File+" "+argument)
		} else {
			list = append(list, kernel+" "+argument)
		}
	}
	return list
}

// set is a set of names.
type set map[string]bool

// add adds names and reports whether one of them is new.
func (s set) add(names []string) bool {
	before := len(s)
	for _, name := range names {
		s[name] = true
	}
	return len(s) > before
}

// has reports whether s holds all names.
func (s set) has(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !s[name] })
}

// Matching returns ops with only the cases whose names match re, and without operations that have none.
func Matching(ops []Op, re *regexp.Regexp) []Op {
	var parts []Op
	for _, op := range ops {
		cases := slices.DeleteFunc(slices.Clone(op.Cases), func(c Case) bool { return !re.MatchString(c.Name) })
		if len(cases) > 0 {
			parts = append(parts, Op{Name: op.Name, Cases: cases, part: op.part || len(cases) < len(op.Cases)})
		}
	}
	return parts
}

// CountRows returns the number of rows that [Run] reports for ops in dtypes if all cases are valid.
func CountRows(ops []Op, dtypes []mlxc.DType) int {
	n := 0
	for _, op := range ops {
		for _, c := range op.Cases {
			for _, dtype := range dtypes {
				if c.runsIn(dtype) {
					n += len(c.targets(dtype))
				}
			}
		}
	}
	return n
}

// runsIn reports whether the case is to be run in a dtype.
func (c Case) runsIn(dtype mlxc.DType) bool {
	return c.DTypes == nil || slices.Contains(c.DTypes, dtype)
}

// standIn returns an array of the input's shape and dtype. Integers have the input's values, since operations check
// them. Other elements are zeros.
func (in Input) standIn(rng *rand.Rand, dtype mlxc.DType) *mlxc.Array {
	stored := in.Kind.StoredDType(dtype)
	if in.Values == nil || in.Kind != Index && in.Kind != SignedIndex {
		return mlxc.Zeros(stored, in.Shape...)
	}
	return arrays.New(in.Values(rng, in.Shape), stored, in.Shape)
}
