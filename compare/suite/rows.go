package suite

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare"
)

// rowCase is one configuration of an operation on the rows of x with the output y. Except for shape, the zero value of
// a field is the default: dense arrays, normal values.
type rowCase struct {
	shape   []int
	layouts layouts
	values  compare.Values // of x
	label   string         // the name of values
}

// layouts has the layout of each non-contiguous input by name, and of each cotangent by "d" and the name of the output.
type layouts map[string]compare.Layout

// rowWidths has every size class of a row: one element; below, at and above a simdgroup and a threadgroup; multiples of
// neither.
func rowWidths() []int { return []int{1, 7, 31, 32, 33, 127, 128, 129, 1024, 4096, 4099} }

// everyLayout lists all layouts but Contiguous and Interleaved.
func everyLayout() []compare.Layout {
	return []compare.Layout{compare.Transposed, compare.Strided, compare.Sliced, compare.Offset, compare.Reversed, compare.Broadcast}
}

// rowCases covers every width with few and many rows, then single properties.
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
		add(rowCase{shape: shape, values: compare.EqualRows, label: "equal rows"})
		add(rowCase{shape: shape, values: compare.Normal(1e4), label: "huge"})
		add(rowCase{shape: shape, values: compare.Normal(1e-4), label: "tiny"})
		add(rowCase{shape: shape, values: compare.Far, label: "far from 0"})
		add(rowCase{shape: shape, values: compare.Spread, label: "spread"})
		add(rowCase{shape: shape, values: compare.Spike, label: "spike"})
		add(rowCase{shape: shape, values: compare.Zeros, label: "zero"})
		add(rowCase{shape: shape, values: compare.NormalExcept(math.NaN()), label: "one NaN"})
		add(rowCase{shape: shape, values: compare.NormalExcept(math.Inf(1)), label: "one infinity"})
	}
	return cases
}

// moreAxes returns shapes with one axis, and with several axes before the last.
func moreAxes() [][]int {
	return [][]int{{1}, {33}, {4099}, {2, 3, 33}, {5, 1, 129}, {2, 3, 4, 31}, {1, 7, 2, 128}}
}

// fewRowCases returns fewer cases, for a second implementation of an operation.
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

// input returns the input with a name.
func (c rowCase) input(name string, shape []int) compare.Input {
	in := compare.Input{Name: name, Shape: shape, Layout: c.layouts[name]}
	if name == "x" {
		in.Values = c.values
	}
	return in
}

// output returns the output with a name.
func (c rowCase) output(name string, shape []int, own bool) compare.Output {
	return compare.Output{Name: name, Shape: shape, FromMLX: !own, Layout: c.layouts["d"+name]}
}

// name lists the shape and everything that differs from the default.
func (c rowCase) name(notes ...string) string {
	return caseName(dimensions(c.shape), append([]string{c.layouts.String(), c.label}, notes...)...)
}

// caseName joins the shape and the nonempty notes.
func caseName(shape string, notes ...string) string {
	notes = slices.DeleteFunc(slices.Clone(notes), func(s string) bool { return s == "" })
	return strings.Join(append([]string{shape}, notes...), ", ")
}

// dimensions writes a shape as 37x129, and the shape of a scalar as "scalar".
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
