package report

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// manyRows is a report with enough rows to scroll, and every kind of figure.
func manyRows() *Report {
	r := sample()
	for i := range 200 {
		row := r.Rows[i%2]
		row.MaxErr = Number(float64((i*7919)%200)) * 1e-9
		row.Ratio = Number(float64((i*31)%200) / 100)
		r.Rows = append(r.Rows, row)
	}
	r.SetCounts()
	return r
}

// A click on the head of a column sorts a table, another click reverses it, and the filter hides rows. The page
// shows the figures of the JSON.
func TestPageInBrowser(t *testing.T) {
	long.Only(t, "starts Chromium")
	browser := skip.Browser(t)
	r := manyRows()
	const script = `<script>
const table = document.querySelectorAll("table")[1];
const head = [...table.tHead.rows[0].cells].find(c => c.textContent === "max");
head.firstElementChild.click();
if (head.getAttribute("aria-sort") !== "ascending") throw new Error("not sorted");
CLICK
const field = document.getElementById("filter");
field.value = "bfloat16";
field.dispatchEvent(new Event("input"));
document.body.dataset.shown = [...document.querySelectorAll("tbody tr")].filter(row => !row.hidden).length;
</script>`
	for _, click := range []string{"", "head.firstElementChild.click();"} {
		file := filepath.Join(t.TempDir(), "page.html")
		html := rendered(t, r, HTML)
		require.NoError(t, os.WriteFile(file, []byte(html+strings.Replace(script, "CLICK", click, 1)), 0o644))
		dom, err := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "file://"+file).Output()
		require.NoError(t, err)
		shown := strings.ReplaceAll(string(dom), ` hidden=""`, "")
		require.True(t, strings.Contains(string(dom), `data-shown="1"`), "one line of the summary is bfloat16")

		want := slices.Clone(r.Rows)
		slices.SortFunc(want, func(a, b Row) int { return cmp.Compare(a.MaxErr, b.MaxErr) })
		if click != "" {
			slices.Reverse(want)
		}
		got := dataCells(t, shown)[len(r.Suites):]
		require.Len(t, got, len(want))
		for i, c := range want {
			requireSame(t, []float64{
				float64(c.MaxErr), float64(c.MLXMaxErr), float64(c.MeanErr), float64(c.MLXMeanErr), float64(c.Floor), float64(c.Ratio),
			}, got[i])
		}
	}
}

// Both kinds of pages open on a phone and on a desktop, light and dark, without errors of the console.
func TestPagesHaveNoErrors(t *testing.T) {
	long.Only(t, "compiles the program that drives Chromium")
	skip.Browser(t)
	folder := t.TempDir()
	for name, r := range map[string]Result{"parity": manyRows(), "bench": sampleBench(), "nothing": &Report{}} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name+".html"), []byte(rendered(t, r, HTML)), 0o644))
	}
	for _, scheme := range [][]string{nil, {"-dark"}} {
		args := slices.Concat([]string{"-C", "../../tools", "run", "./pagecheck"}, scheme, []string{folder})
		out, err := exec.Command(skip.Program(t, skip.Go), args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "3 pages at 2 widths: 0 problems")
	}
}
