package ops

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

var updateTraffic = flag.Bool("update", false, "rewrite "+trafficFile)

// trafficFile is the table that TestTraffic compares its figures with.
const trafficFile = "testdata/traffic.md"

const writeTrafficTable = "go test ./ops -run 'TestTraffic$' -long -update"

// The bytes that the threads issue, divided by the bytes that must be moved once, are at most the limit of the case.
// With the compiler of the committed table they are also at most the figure in the table, which must be made with the
// same flags. A sample has one case of every third kernel or operation.
func TestTraffic(t *testing.T) {
	known := readTraffic(t)
	var found trafficTable
	cases := collect(func(d descriptor) func() []trafficCase { return d.traffic })
	if !long.Full() {
		cases, found.left = sampleTraffic(cases)
	}
	for _, c := range cases {
		for _, dtype := range gradientDTypes {
			if dtype != mlxc.Float16 && !long.Enabled() {
				continue
			}
			t.Run(fmt.Sprintf("%s/%v", c.name, dtype), func(t *testing.T) {
				found.rows = append(found.rows, measureTraffic(t, c, dtype, &found))
			})
		}
	}
	if *updateTraffic {
		require.True(t, long.Enabled(), "-update requires -long, for all cases")
		require.False(t, t.Failed(), "the table is written only if all cases pass")
		found.write(t)
		return
	}
	t.Run("table", func(t *testing.T) {
		if found.compiler != known.compiler {
			skip.Missing(t, skip.TrafficCompiler, fmt.Sprintf(
				"%s has figures of %s, this is %s; only the limits were checked", trafficFile, known.compiler, found.compiler))
		}
		for _, problem := range found.problems(known) {
			t.Error(problem)
		}
	})
}

// A trafficTable is the content of testdata/traffic.md.
type trafficTable struct {
	compiler string // name, version and platform, such as "g++ 12.2.0 linux/amd64"
	flags    string
	rows     []trafficRow
	left     []string // cases that were not measured
}

// sampleTraffic returns one case of every third kernel or operation, and the names of the other cases. The first group
// gives its first case, the fourth its fourth, and so on.
func sampleTraffic(cases []trafficCase) (sample []trafficCase, left []string) {
	var groups [][]trafficCase
	at := map[string]int{}
	for _, c := range cases {
		name, _, _ := strings.Cut(c.name, ",")
		if _, ok := at[name]; !ok {
			at[name] = len(groups)
			groups = append(groups, nil)
		}
		groups[at[name]] = append(groups[at[name]], c)
	}
	for i, group := range groups {
		for j, c := range group {
			if i%3 == 0 && j == i%len(group) {
				sample = append(sample, c)
			} else {
				left = append(left, c.name)
			}
		}
	}
	return sample, left
}

// A trafficRow is one case in one dtype.
type trafficRow struct {
	name, dtype  string
	ratio        float64 // issued ÷ compulsory
	limit, again float64
	conflicts    uint64 // of banks of threadgroup memory
}

// problems compares with the known table of the same compiler. It lists the ratios that exceed the known ones, the rows
// that are missing in the known table, and the known rows that match no case.
func (found trafficTable) problems(known trafficTable) (list []string) {
	const stale = trafficFile + " is stale: run " + writeTrafficTable
	if found.flags != known.flags {
		return []string{fmt.Sprintf("the flags are %q, in the table %q; %s", found.flags, known.flags, stale)}
	}
	key := func(r trafficRow) string { return r.name + ", " + r.dtype }
	rows, cases := map[string]trafficRow{}, map[string]bool{}
	for _, name := range found.left {
		cases[name] = true
	}
	for _, r := range known.rows {
		rows[key(r)] = r
	}
	for _, r := range found.rows {
		cases[r.name] = true
		before, ok := rows[key(r)]
		switch {
		case !ok:
			list = append(list, key(r)+" is not in the table; "+stale)
		case r.ratio > before.ratio+0.0005 || r.conflicts > before.conflicts:
			list = append(list, fmt.Sprintf(
				"%s: ratio %.3f and %d bank conflicts, in the table %.3f and %d; if the increase is intended, run %s",
				key(r), r.ratio, r.conflicts, before.ratio, before.conflicts, writeTrafficTable))
		}
	}
	for _, r := range known.rows {
		if !cases[r.name] {
			list = append(list, r.name+" is in the table, but is not a case; "+stale)
		}
	}
	return slices.Compact(list) // a removed case has a row for each dtype
}

// A table with other flags, a larger figure, or a missing or superfluous row is a problem.
func TestTrafficTableProblems(t *testing.T) {
	table := func() trafficTable {
		return trafficTable{
			compiler: "g++ 12", flags: "-O1",
			rows: []trafficRow{
				{name: "a", dtype: "float16", ratio: 1.5, conflicts: 7},
				{name: "b", dtype: "float16", ratio: 1},
			},
		}
	}
	known := table()
	require.Empty(t, table().problems(known))
	sampled := table()
	sampled.rows, sampled.left = sampled.rows[:1], []string{"b"}
	require.Empty(t, sampled.problems(known))
	sample, left := sampleTraffic([]trafficCase{
		{name: "a, 1"}, {name: "a, 2"}, {name: "b, 1"}, {name: "b, 2"}, {name: "c"}, {name: "d, 1"}, {name: "d, 2"},
	})
	require.Equal(t, []string{"a, 1", "d, 2"}, []string{sample[0].name, sample[1].name})
	require.Equal(t, []string{"a, 2", "b, 1", "b, 2", "c", "d, 1"}, left)
	for want, change := range map[string]func(found *trafficTable){
		"the flags are \"-O2\", in the table \"-O1\"; testdata/traffic.md is stale: run go test ./ops": func(f *trafficTable) {
			f.flags = "-O2"
		},
		"c, float16 is not in the table": func(f *trafficTable) {
			f.rows = append(f.rows, trafficRow{name: "c", dtype: "float16"})
		},
		"b is in the table, but is not a case":     func(f *trafficTable) { f.rows = f.rows[:1] },
		"ratio 1.501 and 7 bank conflicts, in the": func(f *trafficTable) { f.rows[0].ratio = 1.501 },
		"ratio 1.500 and 8 bank conflicts, in the": func(f *trafficTable) { f.rows[0].conflicts = 8 },
	} {
		found := table()
		change(&found)
		problems := found.problems(known)
		require.Len(t, problems, 1)
		require.Contains(t, problems[0], want)
	}
	platform := runtime.GOOS + "/" + runtime.GOARCH
	require.Equal(t, "g++ 12.2.0 "+platform, compilerVersion("/usr/bin/g++ (g++ (Debian 12.2.0-14+deb12u1) 12.2.0)"))
	require.Equal(t, "g++ 13.3.0 "+platform, compilerVersion("/usr/bin/g++-13 (g++-13 (Ubuntu 13.3.0-6) 13.3.0)"))
}

// measureTraffic runs the launches of a case once in the checker and adds up the bytes that they issue to device
// memory. If the case names kernels, only their launches count. Scalar inputs do not count, because they are in the
// constant address space. The kernels declare inputs before outputs. measureTraffic records the compiler in the table.
func measureTraffic(t *testing.T, c trafficCase, dtype mlxc.DType, table *trafficTable) trafficRow {
	row := trafficRow{name: c.name, dtype: dtype.String(), limit: c.limit}
	issued, compulsory, again := 0, c.compulsory*dtype.Size(), c.again*dtype.Size()
	on := target{backend: mlxc.BackendMetal}
	on.intercept = func(k *customkernels.Kernel, l customkernels.Launch, inputs []*mlxc.Array) []*mlxc.Array {
		if !strings.HasPrefix(k.Name(), c.kernel) {
			return k.Launch(l, inputs...)
		}
		if c.model != nil {
			compulsory, again = c.model(k.Name(), l, dtype.Size())
		}
		r, err := k.Sanitize(t.Context(), l, sanitizer.Config{Schedules: 1, Timeout: 5 * time.Minute}, inputs...)
		require.NoError(t, err)
		require.Empty(t, r.Findings)
		row.conflicts += r.Traffic.BankConflicts
		for i, b := range r.Traffic.Buffers {
			if !b.Threadgroup && (i >= len(inputs) || inputs[i].NDim() > 0) {
				issued += int(b.Read + b.Written)
			}
		}
		table.compiler, table.flags = compilerVersion(r.Traffic.Compiler), r.Traffic.Flags
		return r.Outputs
	}
	require.NoError(t, mlxc.WithDevice(mlxc.CPU, func() { c.run(on, dtype) }))
	require.Positive(t, issued, "no launch was counted")
	row.ratio, row.again = float64(issued-again)/float64(compulsory), float64(again)/float64(compulsory)
	t.Logf("%.3f of %.2f", row.ratio, c.limit)
	require.LessOrEqual(t, row.ratio, c.limit)
	if c.model == nil && !c.vectors { // only matrix products and stores of vectors have conflicts
		require.Zero(t, row.conflicts)
	}
	return row
}

var gccVersion = regexp.MustCompile(`\((g\+\+)\S* \(.*\) (\d\S*)\)$`)

// compilerVersion reduces a report's compiler to its name and version, and adds the platform. The path, the
// distribution and its revision do not change the compiled code.
func compilerVersion(compiler string) string {
	if m := gccVersion.FindStringSubmatch(compiler); m != nil {
		compiler = m[1] + " " + m[2]
	}
	return compiler + " " + runtime.GOOS + "/" + runtime.GOARCH
}

// readTraffic reads the committed table.
func readTraffic(t *testing.T) (known trafficTable) {
	text, err := os.ReadFile(trafficFile)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if compiler, ok := strings.CutPrefix(line, "Compiler: "); ok {
			known.compiler = compiler
		}
		if flags, ok := strings.CutPrefix(line, "Flags: "); ok {
			known.flags = flags
		}
		cells := strings.Split(line, "|")
		if len(cells) != 8 {
			continue
		}
		row := trafficRow{name: strings.TrimSpace(cells[1]), dtype: strings.TrimSpace(cells[2])}
		if row.ratio, err = strconv.ParseFloat(strings.TrimSpace(cells[3]), 64); err != nil {
			continue // the header of the table
		}
		row.conflicts, err = strconv.ParseUint(strings.TrimSpace(cells[6]), 10, 64)
		require.NoError(t, err, line)
		known.rows = append(known.rows, row)
	}
	return known
}

func (found trafficTable) write(t *testing.T) {
	var text strings.Builder
	fmt.Fprintf(&text, `# Traffic

The table has the bytes that the threads of an operation's kernels issue to device memory, divided by the bytes that
must be moved once, in the geometry for Apple GPUs. Repeated reads, which a cache may serve, are in the column "read
again", divided by the same number, and are not part of the ratio. Bank conflicts are accesses to threadgroup memory that
wait for another access of the same instruction. TestTraffic compares each figure with its limit. With the compiler below
it also compares it with this table, because the figures depend on the compiled code.

Written by %s%s%[1]s.

Compiler: %[3]s

Flags: %[4]s

| operation | dtype | issued ÷ compulsory | limit | read again | bank conflicts |
|---|---|---|---|---|---|
`, "`", writeTrafficTable, found.compiler, found.flags)
	for _, r := range found.rows {
		fmt.Fprintf(&text, "| %s | %s | %.3f | %.2f | %.2f | %d |\n",
			r.name, r.dtype, r.ratio, r.limit, r.again, r.conflicts)
	}
	require.NoError(t, os.WriteFile(trafficFile, []byte(text.String()), 0o644))
}
