package checker

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// kinds returns the kinds of the findings, except values that are never read.
func kinds(r *Result) []Kind {
	var list []Kind
	for _, f := range r.Findings {
		if f.Kind != NeverRead && !slices.Contains(list, f.Kind) {
			list = append(list, f.Kind)
		}
	}
	return list
}

// The shadow records only some readers of an element. A write that conflicts with an unrecorded reader is still
// found, because it also conflicts with a recorded one.
func TestWritersBehindManyReaders(t *testing.T) {
	const read = `
  uint& shared = mlxg::threadgroup_variable<uint, 0>();
  if (i == 3) shared = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint sum = 0;
  for (uint k = 0; k < 4; ++k) sum += *const_cast<volatile uint*>(&shared);
`
	for _, test := range []struct {
		name, text string
		want       []Kind
	}{
		{"none", "", nil},
		{"behind a barrier", "threadgroup_barrier(mem_flags::mem_threadgroup); if (i == 40) shared = 2;", nil},
		{
			"behind a barrier, and read", "threadgroup_barrier(mem_flags::mem_threadgroup); if (i == 40) sum += ++shared;",
			nil,
		},
		{"of another simdgroup", "if (i == 40) shared = 2;", []Kind{Race}},
		{"the first reader", "if (i == 0) shared = 2;", []Kind{Race}},
		{"behind another flag", "threadgroup_barrier(mem_flags::mem_device); if (i == 40) shared = 2;", []Kind{WriteAfterRead}},
		// Ordered behind the readers of the same simdgroup, not of the other.
		{
			"behind its simdgroup", "simdgroup_barrier(mem_flags::mem_threadgroup); if (i == 40) shared = 2;",
			[]Kind{Race},
		},
	} {
		for _, threads := range []int{64, 41} {
			p, err := Build(t.Context(), body(read+test.text+"\ny[i] = sum;"))
			require.NoError(t, err)
			l := launchOf(threads)
			l.Threadgroup[0], l.Schedules = threads, 1
			r, err := p.Run(t.Context(), l)
			require.NoError(t, err)
			require.Subset(t, kinds(r), test.want, "%s, %d threads", test.name, threads)
			if test.want == nil {
				require.Empty(t, kinds(r), "%s, %d threads", test.name, threads)
			}
		}
	}
}

// The same holds for the lanes of one simdgroup, which simdgroup barriers order.
func TestWritersBehindManyLanes(t *testing.T) {
	const read = `
  uint& shared = mlxg::threadgroup_variable<uint, 0>();
  if (i == 3) shared = 1;
  threadgroup_barrier(mem_flags::mem_threadgroup);
  uint sum = *const_cast<volatile uint*>(&shared);
  simdgroup_barrier(mem_flags::mem_threadgroup);
`
	for _, test := range []struct {
		name, text string
		want       []Kind
	}{
		{"ordered", "if (i == 6) shared = 2;", nil},
		{"another lane reads again", "if (i == 5) sum += shared; if (i == 6) shared = 2;", []Kind{Lockstep}},
		{"the first lane reads again", "if (i == 0) sum += shared; if (i == 31) shared = 2;", []Kind{Lockstep}},
		{"it reads itself", "if (i == 6) sum += shared++;", nil},
	} {
		p, err := Build(t.Context(), body(read+test.text+"\ny[i] = sum;"))
		require.NoError(t, err)
		l := launchOf(32)
		l.Schedules = 1 // in order, so that the reader comes before the writer
		r, err := p.Run(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, test.want, kinds(r), test.name)
	}
}
