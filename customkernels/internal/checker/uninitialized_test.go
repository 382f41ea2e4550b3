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
