package suite

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare"
)

// rowCase is one configuration of an operation on the rows of x, with the output y. The zero value of a
// field but the shape is what is usual: dense arrays, normal values.
type rowCase struct {
	shape   []int
	layouts layouts
	values  compare.Values // Of x.
	label   string         // Names values.
}

// layouts has a layout for the inputs and, by "d" and an output's name, the cotangents that are not
// contiguous.
type layouts map[string]compare.Layout

// rowWidths has every size class of a row: one element, below, at and above a simdgroup and a
// threadgroup, not a multiple of either.
func rowWidths() []int { return []int{1, 7, 31, 32, 33, 127, 128, 129, 1024, 4096, 4099} }

// everyLayout is all but the usual one.
func everyLayout() []compare.Layout {
	return []compare.Layout{compare.Transposed, compare.Strided, compare.Sliced, compare.Offset, compare.Reversed, compare.Broadcast}
}

// rowCases covers every width with few and many rows, and then one property at a time.
func rowCases() []rowCase {
	var cases []rowCase
	add := func(c rowCase) { cases = append(cases, c) }

	for _, rows := range []int{1, 3, 37, 199} {
		for _, width := range rowWidths() {
			add(rowCase{shape: []int{rows, width}})
		}
	}
	for _, shape := range append(moreAxes(), []int{4099, 7}, []int{3, 8192}, []int{2, 16384}, []int{0, 33}, []int{2, 0, 7}) {
		add(rowCase{shape: shape})
	}
	add(rowCase{shape: []int{4099, 1}})
	for _, layout := range everyLayout() {
		add(rowCase{shape: []int{37, 33}, layouts: layouts{"x": layout}})
		add(rowCase{shape: []int{37, 33}, layouts: layouts{"dy": layout}})
		add(rowCase{shape: []int{3, 5, 128}, layouts: layouts{"x": layout}})
		add(rowCase{shape: []int{2, 3, 5, 129}, layouts: layouts{"x": layout, "dy": layout}})
	}
	for _, shape := range [][]int{{37, 129}, {3, 4099}} {
		add(rowCase{shape: shape, values: compare.Equal, label: "equal rows"})
		add(rowCase{shape: shape, values: compare.Normal(1e4), label: "huge"})
		add(rowCase{shape: shape, values: compare.Normal(1e-4), label: "tiny"})
		add(rowCase{shape: shape, values: compare.Far, label: "far from 0"})
		add(rowCase{shape: shape, values: compare.Spread, label: "spread"})
		add(rowCase{shape: shape, values: compare.Spike, label: "spike"})
		add(rowCase{shape: shape, values: compare.Zero, label: "zero"})
		add(rowCase{shape: shape, values: compare.With(math.NaN()), label: "one NaN"})
		add(rowCase{shape: shape, values: compare.With(math.Inf(1)), label: "one infinity"})
	}
	return cases
}

// moreAxes are shapes with one axis and with several before the last.
func moreAxes() [][]int {
	return [][]int{{1}, {33}, {4099}, {2, 3, 33}, {5, 1, 129}, {2, 3, 4, 31}, {1, 7, 2, 128}}
}

// fewRowCases is for a second form of an operation, of which rowCases judges the first.
func fewRowCases() []rowCase {
	var cases []rowCase
	for _, rows := range []int{3, 37} {
		for _, width := range rowWidths() {
			cases = append(cases, rowCase{shape: []int{rows, width}})
		}
	}
	for _, shape := range append(moreAxes(), []int{4099, 7}, []int{2, 8192}, []int{0, 33}) {
		cases = append(cases, rowCase{shape: shape})
	}
	for _, layout := range everyLayout() {
		cases = append(cases, rowCase{shape: []int{3, 5, 129}, layouts: layouts{"x": layout, "dy": layout}})
	}
	return cases
}

// input is the input of this name.
func (c rowCase) input(name string, shape []int) compare.Input {
	in := compare.Input{Name: name, Shape: shape, Layout: c.layouts[name]}
	if name == "x" {
		in.Values = c.values
	}
	return in
}

// output is the output of this name.
func (c rowCase) output(name string, shape []int, own bool) compare.Output {
	return compare.Output{Name: name, Shape: shape, Judged: own, Layout: c.layouts["d"+name]}
}

// name says what is not usual about the case.
func (c rowCase) name(notes ...string) string {
	return caseName(dimensions(c.shape), append([]string{c.layouts.String(), c.label}, notes...)...)
}

// caseName joins the notes that are not empty, so that a pattern can select by them.
func caseName(shape string, notes ...string) string {
	notes = slices.DeleteFunc(slices.Clone(notes), func(s string) bool { return s == "" })
	return strings.Join(append([]string{shape}, notes...), ", ")
}

// dimensions writes a shape as 37x129, and that of a scalar as "scalar".
func dimensions(shape []int) string {
	if len(shape) == 0 {
		return "scalar"
	}
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(shape), " ", "x"), "[]")
}

// String lists the layouts as "dy, x transposed, w strided".
func (l layouts) String() string {
	names := map[compare.Layout][]string{}
	for _, name := range slices.Sorted(maps.Keys(l)) {
		names[l[name]] = append(names[l[name]], name)
	}
	var all []string
	for _, layout := range slices.Sorted(maps.Keys(names)) {
		all = append(all, strings.Join(names[layout], ", ")+" "+string(layout))
	}
	return strings.Join(all, ", ")
}
