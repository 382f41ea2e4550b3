package checker

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// A conflict of two lanes is a race if they execute the two arms of a branch, which lockstep execution does not order.
// Other conflicts at two places are ordered if the lanes run in lockstep.
func TestArmsOfBranches(t *testing.T) {
	const (
		shared = `
  uint& shared = mlxg::threadgroup_variable<uint, 0>();
  if (i == 0) shared = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint sum = 0;
`
		barrier = "simdgroup_barrier(mem_flags::mem_threadgroup);"
	)
	for text, want := range map[string]Kind{
		"if (i == 31) shared = 7; else sum = shared;":                                                     Race,
		"if (i == 31) {\n shared = 7;\n} else {\n sum = shared;\n}":                                       Race,
		"if (i != 31) sum = shared; else shared = 7;":                                                     Race,
		"if (i == 31) shared = 7; else if (i < 9) sum = 1; else sum = shared;":                            Race,
		"if (i % 2 == 0) y[i / 2] = 1; else y[i / 2] = 2;":                                                Race,
		"if (i % 2 == 0) { if (i == 4) shared = 7; sum = 3; } else if (shared == 1) sum = 4;":             Race,
		"for (uint k = 0; k < 2; ++k) { if (i == k) shared = 7; else sum += shared; " + barrier + " }":    Race,
		"uint k = 0; do { " + barrier + " if (i == k) shared = 7; else sum += shared; } while (++k < 2);": Race,
		"if (i == 31) shared = 7; sum = shared;":                                                          Lockstep,
		"sum = shared; if (i == 31) shared = 7;":                                                          Lockstep,
		"sum = shared; if (i == 31) shared = 7; else sum += 4;":                                           Lockstep,
		"if (i == 31) { sum = 3; } else { sum = shared; } if (i == 31) shared = 7;":                       Lockstep,
		"if (i > 15) { sum = shared; if (i == 31) shared = 7; } else { sum = 4; }":                        Lockstep,
		// The lanes may be in different iterations.
		"for (uint k = 0; k < 2; ++k) if (i == k) shared = 7; else if (i > k) sum += shared;":                      Lockstep,
		"for (uint k = 0; k < 2; ++k) { if (i == k) shared = 7; else sum += shared; if (k == 1) " + barrier + " }": Lockstep,
		"for (uint k = 0; k < 3; ++k) { if (i == k) shared = 7; else sum += shared; " +
			"if (k < 2) continue; " + barrier + " }": Lockstep,
		"for (uint k = 0; k < 2; ++k) { for (uint m = 0; m < 2; ++m) if (i == m) shared = 7; else sum += shared; " +
			barrier + " }": Lockstep,
		"auto f = [&](uint k) { if (i == k) shared = 7; else sum += shared; };\nf(0); f(1);": Lockstep,
		// A compiler may merge the stores of lanes below and from 16.
		"uint* p = y + i; *p += 1; " + barrier + " if (i >= 16) {\n *p = 0;\n} else {\n" +
			"sum = y[15 - i];\n *p = sum + 1;\n}\nreturn;": Lockstep,
	} {
		p, err := Build(t.Context(), body(shared+text+"\nif (i > 15) y[i] = sum;"))
		require.NoError(t, err)
		l := launchOf(32)
		l.Buffers[1].Data = make([]byte, 4*32)
		r, err := p.Run(t.Context(), l)
		require.NoError(t, err)
		require.Contains(t, kinds(r), want, text)
		require.Equal(t, want == Race, slices.Contains(kinds(r), Race), text)
	}
}
