package msl

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestParseErrors(t *testing.T) {
	tests := []struct {
		name string
		src  string
		at   string // line:column
		want string
	}{
		{"empty", "", "1:1", "no kernel"},
		{"no kernel", "float f(float x) { return x; }", "1:1", "no kernel"},
		{
			"texture", "kernel void f(device float* y,\n  texture2d<float> t [[texture(0)]]) {}", "2:3",
			"texture arguments are not supported",
		},
		{
			"sampler", "kernel void f(device float* y, sampler s [[sampler(0)]]) {}", "1:32",
			"sampler arguments are not supported",
		},
		{"stage in", "kernel void f(device float* y, P p [[stage_in]]) {}", "1:38", "stage_in"},
		{
			"acceleration structure", "kernel void f(device float* y, instance_acceleration_structure s [[buffer(1)]]) {}",
			"1:32", "not supported",
		},
		{"missing body", "\nkernel void f(device float* y);", "2:13", "has no body"},
		{
			"unknown attribute", "kernel void f(device float* y, uint i [[thread_position]]) {}", "1:41",
			"Metal has no attribute thread_position",
		},
		{
			"a buffer attribute that is none", "kernel void f(device float* y [[thread_position_in_grid]]) {}", "1:33",
			"does not fit",
		},
		{"struct by value", "struct P { int a; };\nkernel void f(device float* y, P p) {}", "2:34", "constant P& p"},
		{"no address space", "kernel void f(float* y) {}", "1:22", "no address space"},
		{"two address spaces", "kernel void f(device constant float* y) {}", "1:22", "two address spaces"},
		{"thread argument", "kernel void f(device float* y, thread float* z) {}", "1:32", "thread memory"},
		{
			"threadgroup reference", "kernel void f(device float* y, threadgroup float& z) {}", "1:32",
			"must be a pointer",
		},
		{"pointer to pointer", "kernel void f(device float* device* y) {}", "1:35", "pointer to a pointer"},
		{"array argument", "kernel void f(device float* y[4]) {}", "1:30", "array of arguments"},
		{"default value", "kernel void f(device float* y = nullptr) {}", "1:31", "cannot have a default value"},
		{"no name", "kernel void f(device float*) {}", "1:15", "no name"},
		{"odd argument", "kernel void f(device float* y, 3) {}", "1:32", "unexpected \"3\" in a kernel's argument"},
		{
			"function pointer", "kernel void f(device float* y, void (*g)(int)) {}", "1:37",
			"unexpected \"(\" in a kernel's argument",
		},
		{
			"trailing comma", "kernel void f(device float* y, , uint i [[thread_position_in_grid]]) {}", "1:32",
			"missing",
		},
		{"same name twice", "kernel void f(device float* y, constant int& y) {}", "1:46", "occurs twice"},
		{
			"same index twice", "kernel void f(device float* y [[buffer(1)]], constant int& x [[buffer(1)]]) {}", "1:60",
			"both have [[buffer(1)]]",
		},
		{"index that is no number", "kernel void f(device float* y [[buffer(N)]]) {}", "1:33", "needs a number"},
		{
			"vector of a scalar position", "kernel void f(device float* y, uint3 i [[thread_index_in_simdgroup]]) {}",
			"1:42", "single number",
		},
		{
			"type of a position", "kernel void f(device float* y, float i [[thread_position_in_grid]]) {}", "1:38",
			"uint",
		},
		{"no output", "kernel void f(device const float* y) {}", "1:13", "no output"},
		{"not void", "kernel float f(device float* y) {}", "1:8", "unexpected \"float\" in a kernel's declaration"},
		{"no return type", "kernel f(device float* y) {}", "1:8", "must return void"},
		{"member", "struct S { kernel void f(device float* y) {} };", "1:12", "cannot be a member"},
		{
			"twice", "kernel void f(device float* y) {}\nkernel void f(device float* z) {}", "2:13",
			"defined twice, first at dir/f.metal:1:13",
		},
		{"unclosed brace", "kernel void f(device float* y) {\n  if (1) {\n}", "1:32", "never closed"},
		{"brace too many", "kernel void f(device float* y) { } }", "1:36", "closes nothing"},
		{"wrong bracket", "kernel void f(device float* y) { y[0) = 1; }", "1:37", "does not fit"},
		{"unclosed comment", "kernel void f(device float* y) {} /* ", "1:35", "does not end"},
		{"unclosed string", "kernel void f(device float* y) { \"a\n }", "1:34", "does not end on its line"},
		{"odd character", "kernel void f(device float* y) { ` }", "1:34", "has no meaning"},
		{"open conditional", "#ifdef A\nkernel void f(device float* y) {}", "1:1", "no #endif"},
		{"stray endif", "kernel void f(device float* y) {}\n#endif", "2:1", "#endif without #if"},
		{"stray else", "#else\nkernel void f(device float* y) {}", "1:1", "#else without #if"},
		{
			"template of floats", "template <float F> kernel void f(device float* y) {}", "1:11",
			"cannot be given at launch",
		},
		{
			"template without a name", "template <typename> kernel void f(device float* y) {}", "1:11",
			"each with a name",
		},
		{
			"template pack", "template <typename... T> kernel void f(device float* y) {}", "1:11",
			"cannot be given at launch",
		},
		{"template twice", "template <int N, int N> kernel void f(device float* y) {}", "1:22", "occurs twice"},
		{
			"threads", "[[max_total_threads_per_threadgroup(4096)]] kernel void f(device float* y) {}", "1:3",
			"1 to 1024",
		},
		{
			"deep namespaces", strings.Repeat("namespace a {", 100) + strings.Repeat("}", 100), "1:846",
			"nested more than",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Parse(fstest.MapFS{"dir/f.metal": {Data: []byte(test.src)}}, "dir/f.metal")
			var problem *Error
			require.ErrorAs(t, err, &problem)
			require.Contains(t, problem.Message, test.want)
			require.True(t, strings.HasPrefix(err.Error(), "dir/f.metal:"+test.at+": "), err.Error())
		})
	}
}
