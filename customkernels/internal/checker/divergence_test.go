package checker

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// helpers are functions before the kernel of body. PUT is a barrier in a macro.
const helpers = `using namespace metal;
uint pair(uint v) { return v + simd_shuffle_xor(v, 1); }
uint total(uint v) { return simd_sum(v); }
uint lanes(bool v) { return popcount(uint(ulong(simd_ballot(v)))); }
template <int n> uint times(uint v) { return n * total(v); }
uint nested(uint v, uint depth) { return depth ? nested(pair(v), depth - 1) : total(v); }
uint put(uint* y, uint i) {
  y[i] = i;
  threadgroup_barrier(mem_flags::mem_device);
  return i;
}
#define PUT(v) { y[i] = v; threadgroup_barrier(mem_flags::mem_device); }
`

func withHelpers(text string) string {
	return strings.Replace(body(text), "void kernel_of_test", helpers+"void kernel_of_test", 1)
}

func kindsOf(t *testing.T, text string) (kinds []Kind) {
	t.Helper()
	p, err := Build(t.Context(), withHelpers(text))
	require.NoError(t, err)
	r, err := p.Run(t.Context(), launchOf(32))
	require.NoError(t, err)
	for _, f := range r.Findings {
		kinds = append(kinds, f.Kind)
	}
	return slices.Compact(kinds)
}

// Two calls differ, also if they lead to one line of the text: in a function, in a macro or in an expression.
func TestCallsInDivergentBranches(t *testing.T) {
	for _, test := range []struct {
		text  string
		kinds []Kind
	}{
		{"if (i % 2) y[i] = pair(i);\nelse y[i] = pair(i + 1);", []Kind{ShuffleInactive}},
		{"y[i] = i % 2 ? simd_sum(i) : simd_sum(i);", []Kind{DivergentReduction}},
		{"y[i] = i % 2 ? times<2>(i) : times<3>(i);", []Kind{DivergentReduction}},
		{"y[i] = nested(i, i % 2);", []Kind{ShuffleInactive, DivergentReduction}},
		{"const auto f = [&](uint v) { return pair(v); };\ny[i] = i % 2 ? f(i) : f(1);", []Kind{ShuffleInactive}},
		{"y[i] = i % 2 ? put(y, i) : put(y, i);", []Kind{DivergentBarrier}},
		{"if (i % 2) PUT(1) else PUT(2)", []Kind{DivergentBarrier}},
	} {
		assert.Equal(t, test.kinds, kindsOf(t, test.text), test.text)
	}
}

// A finding has the callers of both threads.
func TestCallersOfDivergentBarriers(t *testing.T) {
	p, err := Build(t.Context(), withHelpers("if (i % 2) put(y, i);\nelse put(y, i);"))
	require.NoError(t, err)
	r, err := p.Run(t.Context(), launchOf(32))
	require.NoError(t, err)
	require.Len(t, r.Findings, 1)
	f := r.Findings[0]
	require.Equal(t, []Frame{{"put", 10}, {"kernel_of_test", 16}}, f.Path)
	require.Equal(t, []Frame{{"put", 10}, {"kernel_of_test", 15}}, f.OtherPath)
}

// Calls that all lanes reach together are legal however they are written, as are calls of some lanes that use only
// those.
func TestLegalCalls(t *testing.T) {
	require.Empty(t, kindsOf(t, `uint s = pair(i);
s += pair(s);
const auto f = [&](uint v) { return pair(v) + total(v); };
for (uint j = 0; j < 3; j++) s += f(j) + nested(j, j) + times<2>(s) + times<3>(s);
for (uint j = 0; j < i; j++) s += j;
if (x[0] == 0) s += pair(s); else s += pair(s + 1);
s += x[0] ? put(y, i) : put(y, i) + total(i);
if (i % 4 < 2) s += pair(s); else s += pair(i);
s += i < 16 ? simd_shuffle_xor(s, 1) : simd_shuffle_xor(s, 2);
if (i < 16) s += lanes(true);
s += lanes(true);
if (i >= 16) s += pair(s);
s += pair(s) + total(s);
PUT(s)
PUT(s)
do {
  s += total(s);
  if (x[0] == 0) break;
} while (true);
y[i] = s;
if (x[0] == 0) return;
threadgroup_barrier(mem_flags::mem_device);`))
}

// The lane of a broadcast, and the delta or mask of a shuffle, must be equal in the simdgroup or quadgroup.
func TestArgumentsOfShuffles(t *testing.T) {
	calls := []string{
		"simd_broadcast(i, 31 - i)", "simd_shuffle_down(i, i / 2)", "simd_shuffle_up(i, i & 3)", "simd_shuffle_xor(i, i & 1)",
		"simd_shuffle_rotate_up(i, i)", "simd_shuffle_and_fill_up(i, i, i, 8)", "quad_broadcast(i, i & 3)",
		"quad_shuffle_down(i, i & 1)", "quad_shuffle_rotate_down(i, i & 1)",
	}
	p, err := Build(t.Context(), withHelpers("y[i] =\n"+strings.Join(calls, " +\n")+";"))
	require.NoError(t, err)
	r, err := p.Run(t.Context(), launchOf(32))
	require.NoError(t, err)
	require.Len(t, r.Findings, len(calls))
	for _, f := range r.Findings {
		require.Equal(t, DivergentArgument, f.Kind)
	}
	require.Empty(t, kindsOf(t, `uint s = simd_shuffle(i, 31 - i) + quad_shuffle(i, 3 - i % 4);
s += quad_broadcast(s, i / 4 & 3) + quad_shuffle_xor(s, i / 4 & 3) + simd_shuffle_and_fill_down(s, i, 3);
for (ushort j = 16; j > 0; j /= 2) s += simd_shuffle_down(s, j) + simd_broadcast(s, j);
if (i % 2) s += simd_broadcast(s, 1); else s += simd_broadcast(s, 0);
y[i] = s;`))
}
