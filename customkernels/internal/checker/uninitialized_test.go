package checker

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A value that depends on an uninitialized variable is found at its store.
func TestUninitializedVariables(t *testing.T) {
	for name, text := range map[string]string{
		"number":   "uint n;\nif (i > 3) n = i;\ny[i] = n;",
		"sum":      "float sum;\nfor (uint k = 0; k < i; ++k) sum += x[k];\ny[i] = as_type<uint>(sum / 4);",
		"array":    "float v[4];\nfor (uint k = 0; k < 4; ++k) v[(k * i) % 4] = k;\ny[i] = as_type<uint>(v[1] + v[3]);",
		"one lane": "uint2 v;\nv.x = i;\ny[i] = i == 7 ? v.y : v.x;",
	} {
		r := runBody(t, text)
		require.Len(t, r.Findings, 1, name)
		f := r.Findings[0]
		require.Equal(t, UninitializedRead, f.Kind)
		require.True(t, f.Write)
		require.Equal(t, 1, f.Slot)
		require.Equal(t, Frame{"kernel_of_test", 5}, f.Path[0])
		require.NotNil(t, r.Outputs)
	}
}

// A value that depends on an uninitialized variable is found although it is an ordinary number: threads from 12 on
// leave a unset, and a / (1 + exp(-a)) is 0 both for a huge negative a and for a = 0.
func TestUninitializedVariableBehindAnOrdinaryNumber(t *testing.T) {
	r := runBody(t, "float a;\nif (i < 12) a = x[i];\ny[i] = as_type<uint>(a / (1 + exp(-a)));")
	require.Len(t, r.Findings, 1)
	require.Equal(t, UninitializedRead, r.Findings[0].Kind)
	require.Equal(t, Frame{"kernel_of_test", 5}, r.Findings[0].Path[0])
	require.NotZero(t, r.Findings[0].Thread)
}

// Numbers that look like the pattern of an uninitialized variable are no finding if the kernel computes them. Padding
// between the members of a structure is none either.
func TestHugeNumbersAreNoFinding(t *testing.T) {
	for name, text := range map[string]string{
		"infinity": "y[i] = as_type<uint>(-INFINITY);",
		"no number": "const float zero = x[i];\ny[i] = as_type<uint>(zero / zero + as_type<float>(0x7fc00000u " +
			"+ i));",
		"negative":    "y[i] = -1 - i;",
		"pattern":     "y[i] = 0xfefefefeu;",
		"dropped":     "uint n;\nif (i > 3) n = i;\ny[i] = i > 3 ? n : ~0u;",
		"three lanes": "if (i < 10) reinterpret_cast<float3*>(y)[i] = float3(INFINITY, i, i);",
		"a structure": "struct pair { ushort a; float b; } p;\np.a = i;\np.b = INFINITY;\nif (i < 20) " +
			"reinterpret_cast<pair*>(y)[i] = p;",
		"zero elsewhere": "uint v[4] = {};\nv[i % 4] = ~0u;\ny[i] = v[(i + 1) % 4] | v[i % 4];",
	} {
		p, err := Build(t.Context(), body(text))
		require.NoError(t, err)
		l := launchOf(40)
		l.Buffers[1].Padding = 4
		r, err := p.Run(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, r.Findings, name)
	}
}

// If the search for uninitialized variables fails, Run returns the error and no result.
func TestFailedSearchForUninitializedVariables(t *testing.T) {
	p, err := Build(t.Context(), body("y[i] = x[i] + 12345;"))
	require.NoError(t, err)
	p.text += "#error of the second program\n"
	r, err := p.Run(t.Context(), launchOf(40))
	require.ErrorContains(t, err, "of the second program")
	require.Nil(t, r)
}

// An uninitialized read is a finding only if an output, an address or a branch depends on its value. Other reads of the
// same memory do not matter.
func TestUsedReads(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		lines []int
	}{
		"discarded":          {"float v = sums[i % 32];\ny[i] = i % 32 < 4 ? uint(v) : i;", nil},
		"in a discarded sum": {"float v = simd_prefix_exclusive_sum(sums[i % 32]);\ny[i] = i % 32 < 4 ? uint(v) : i;", nil},
		"copied":             {"sums[i % 32] = sums[i % 32] + 1;\ny[i] = i;", nil},
		"output":             {"y[i] = as_type<uint>(sums[i % 32]);", []int{5}},
		"maximum":            {"y[i] = uint(max(sums[i % 32], 0.0f));", []int{5}},
		"through a copy":     {"sums[i % 32 + 32] = sums[i % 32];\ny[i] = uint(sums[i % 32 + 32]);", []int{5}},
		"branch":             {"if (sums[i % 32] > 0) sums[40 + i % 2] = 1;\ny[i] = i;", []int{5}},
		"address":            {"volatile float v = sums[uint(sums[i % 32]) % 32];\ny[i] = i;", []int{5}},
		"output itself":      {"y[i] = y[i] + 1;", []int{5}},
		"output, discarded":  {"const uint v = y[i];\ny[i] = i < 100 ? i : v;", nil},
		"one of two":         {"float v = sums[i % 32];\ny[i] = i < 100 ? i : uint(v);\ny[i] += uint(sums[i % 32]);", []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			r := runBody(t, "float (&sums)[64] = mlxg::threadgroup_variable<float[64], 0>();\n"+
				"if (i % 32 < 4) sums[i % 32] = 1;\n"+c.text)
			var lines []int
			for _, f := range r.Findings {
				if f.Kind == UninitializedRead {
					lines = append(lines, f.Path[0].Line)
				}
			}
			require.Equal(t, c.lines, lines)
			require.NotNil(t, r.Outputs)
		})
	}
}
