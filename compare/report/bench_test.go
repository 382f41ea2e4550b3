package report

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// timed returns a timing of three repetitions around a median.
func timed(median float64) *Timing {
	return NewTiming(Timing{
		Repetitions: []float64{1.2 * median, 0.9 * median, median}, WallRepetitions: []float64{2 * median, 2 * median, 3 * median},
		BuildRepetitions: []float64{7, 8, 9}, Submit: 4, Copies: 5, ExtraMemory: 3 << 20,
	})
}

// sampleBench has four rows: limited by bytes, limited by arithmetic, without MLX, and failed.
func sampleBench() *Bench {
	b := &Bench{
		MLX: "0.32.2", MLXC: "0.7.0", Device: "gpu", DeviceName: "A GPU", Executor: "cuda", TF32: "on",
		Started: time.Date(2026, 11, 21, 20, 0, 0, 0, time.UTC),
		Rows: []BenchRow{
			{
				Op: "rmsnorm", Case: "8192x4096", DType: "float32", Pass: Backward, Elements: 8192 * 4096, Bytes: 400e6, AddBytes: 300e6,
				Launches: 2, Ours: timed(100), MLX: timed(150), Add: timed(60), Difference: 1e-6,
			},
			{
				Op: "rmsnorm", Case: "8192x1024", DType: "float16", Pass: Backward, Elements: 8192 * 1024, Bytes: 50e6, AddBytes: 50e6,
				Launches: 2, Ours: timed(20), Add: timed(10), Difference: Number(math.NaN()), MLXMessage: "it would read\nout of bounds",
			},
			{
				Op: "attention", Case: "4x32/8x4096x128, causal", DType: "float32", Pass: Step, Elements: 4 << 20, FLOPs: 2e12,
				Launches: 3, Ours: timed(10000), MLX: timed(5000), Difference: 1e-3,
			},
			{
				Op: "attention", Case: "1x2x3x4", DType: "float32", Pass: Step, FLOPs: 1,
				Difference: Number(math.NaN()), Error: "our gradient failed:\nout of paper",
			},
		},
	}
	mlx := b.Rows[2].MLX
	mlx.WallRepetitions = []float64{8000, 10000, 12000}
	mlx.Repetitions = mlx.WallRepetitions // the time of the GPU alone is unknown
	b.Rows[2].MLX = NewTiming(*mlx)
	for i := range b.Rows {
		b.Rows[i].Derive(nil)
	}
	return b
}

// sampleCPUBench is sampleBench on a CPU, which has limits and no timings of MLX's add.
func sampleCPUBench() *Bench {
	b := sampleBench()
	b.Device, b.DeviceName, b.Executor, b.TF32 = "cpu", "A CPU", "host", ""
	b.Limits = &CPULimits{Bandwidth: 36.4, Arithmetic: 0.2346}
	for i := range b.Rows {
		r := &b.Rows[i]
		r.Add, r.AddBytes, r.Bytes, r.FLOPs = nil, 0, r.Bytes/1000, r.FLOPs/1000
		r.Derive(b.Limits)
	}
	return b
}

func TestTiming(t *testing.T) {
	timing := timed(100)
	require.Equal(t, 100.0, timing.Median)
	require.InDelta(t, 95, timing.Q1, 1e-9)
	require.InDelta(t, 110, timing.Q3, 1e-9)
	require.InDelta(t, 0.075, timing.Spread(), 1e-9)
	require.Equal(t, 200.0, timing.Wall)
	require.Equal(t, 8.0, timing.Build)
	require.Equal(t, []float64{120, 90, 100}, timing.Repetitions, "in the order of time")
	require.Equal(t, 2.5, quantile([]float64{4, 1, 2, 3}, 0.5))
	require.Equal(t, 7.0, quantile([]float64{7}, 0.25))
}

func TestBenchDerives(t *testing.T) {
	rows := sampleBench().Rows
	require.Equal(t, 1.5, float64(rows[0].Ratio))
	// Add moves 300 MB in 60 µs, and therefore the row's 400 MB in 80 µs.
	require.InDelta(t, 1.25, float64(rows[0].OverLimit), 1e-9)
	rate, unit := rows[0].Rate(rows[0].Ours)
	require.Equal(t, "GB/s", unit)
	require.InDelta(t, 4000, rate, 1e-9)
	rate, unit = rows[2].Rate(rows[2].Ours)
	require.Equal(t, "TFLOP/s", unit)
	require.InDelta(t, 200, rate, 1e-9)
	require.True(t, math.IsNaN(float64(rows[1].Ratio)))
	require.Equal(t, 2.0, float64(rows[1].OverLimit))
	require.True(t, math.IsNaN(float64(rows[2].OverLimit)))
}

func TestBenchDerivesFromCPULimits(t *testing.T) {
	rows := sampleCPUBench().Rows
	// 400 kB in 100 µs are 4 GB/s, and 2 GFLOP in 10 ms are 0.2 TFLOP/s.
	require.InDelta(t, 36.4/4, float64(rows[0].OverLimit), 1e-9)
	require.InDelta(t, 0.2346/0.2, float64(rows[2].OverLimit), 1e-9)
	require.True(t, math.IsNaN(float64(rows[3].OverLimit)), "not timed")
}

func TestBenchSucceeded(t *testing.T) {
	b := sampleBench()
	require.False(t, b.Succeeded(), "a row failed")
	b.Rows = b.Rows[:3]
	require.True(t, b.Succeeded())
	b.Incomplete = true
	require.False(t, b.Succeeded())
	require.False(t, (&Bench{}).Succeeded(), "nothing ran")
}

func TestBenchTableGolden(t *testing.T) {
	for name, b := range map[string]*Bench{"bench.golden": sampleBench(), "bench.cpu.golden": sampleCPUBench()} {
		var out bytes.Buffer
		require.NoError(t, b.WriteTable(&out))
		golden := filepath.Join("testdata", name)
		if *update {
			require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), out.String())
	}
}

func TestBenchLine(t *testing.T) {
	rows := sampleBench().Rows
	require.Equal(t, "rmsnorm 8192x4096 float32 backward: 100 µs, MLX 150 µs, ratio 1.50", rows[0].Line())
	require.Equal(t, "rmsnorm 8192x1024 float16 backward: 20.0 µs", rows[1].Line())
	require.Equal(t, "attention 1x2x3x4 float32 step: FAIL", rows[3].Line())
}

// csvLines returns the lines of the CSV, by column.
func csvLines(t *testing.T, b *Bench) (got []map[string]string) {
	t.Helper()
	lines, err := csv.NewReader(strings.NewReader(rendered(t, b, CSV))).ReadAll()
	require.NoError(t, err)
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, name := range lines[0] {
			row[name] = line[i]
		}
		got = append(got, row)
	}
	return got
}

// Every form has the limits of a CPU, and explains the column by them.
func TestBenchCPULimits(t *testing.T) {
	b := sampleCPUBench()
	require.Equal(t, b.Limits, reread(t, b).(*Bench).Limits)
	for _, line := range csvLines(t, b) {
		require.Equal(t, "36.4", line["limit_gb_per_s"])
		require.Equal(t, "0.2346", line["limit_tflop_per_s"])
	}
	for _, format := range []Format{Text, Markdown, HTML} {
		text := rendered(t, b, format)
		require.Contains(t, text, "36.4 GB/s adding arrays in memory, 0.235 TFLOP/s of float32 multiply-adds")
		require.NotContains(t, text, "MLX's add", format)
		require.NotContains(t, text, "MLX&#39;s add", format)
	}
}

func TestBenchCSV(t *testing.T) {
	got := csvLines(t, sampleBench())
	require.Len(t, got, 8)
	var sides []string
	for _, row := range got {
		sides = append(sides, row["case"]+" "+row["side"])
	}
	require.Equal(t, []string{
		"8192x4096 ours", "8192x4096 mlx", "8192x4096 add", "8192x1024 ours", "8192x1024 add",
		"4x32/8x4096x128, causal ours", "4x32/8x4096x128, causal mlx", "1x2x3x4 ours",
	}, sides)
	ours := got[0]
	for name, want := range map[string]string{
		"device": "A GPU", "tf32": "on", "op": "rmsnorm", "dtype": "float32", "pass": "backward", "median_us": "100", "q1_us": "95", "q3_us": "110",
		"wall_us": "200", "submit_us": "4", "build_us": "8", "copies": "5", "repetitions_us": "120 90 100", "bytes": "400000000", "flops": "0",
		"rate": "4000", "unit": "GB/s", "extra_memory": "3145728", "mlx_over_ours": "1.5", "over_limit": "1.25", "message": "",
		"limit_gb_per_s": "", "limit_tflop_per_s": "",
	} {
		require.Equal(t, want, ours[name], name)
	}
	require.Equal(t, "300000000", got[2]["bytes"])
	require.Equal(t, "5000", got[2]["rate"])
	require.Equal(t, "it would read\nout of bounds", got[3]["message"])
	require.Equal(t, "0.5", got[5]["mlx_over_ours"], "of times from the submission on")
	require.Equal(t, "200", got[6]["rate"])
	require.Empty(t, got[6]["mlx_over_ours"], "it is a figure of ours")
	require.Empty(t, got[7]["median_us"])
	require.Equal(t, "our gradient failed:\nout of paper", got[7]["message"])
}

func TestBenchstatLines(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, sampleBench().WriteBenchstat(&out))
	text := out.String()
	require.True(t, strings.HasPrefix(text, "device: A GPU\nmlx: 0.32.2\nexecutor: cuda\ntf32: on\n"), text)
	require.Equal(t, 7*3, strings.Count(text, " ns/op"), "three repetitions of seven sides")
	require.Contains(
		t,
		text,
		"BenchmarkGradient/op=rmsnorm/case=8192x4096/dtype=float32/pass=backward/side=ours 5 120000.0 ns/op 200000.0 wall-ns 7000.0 build-ns 3145728 extra-B\n",
	)
	require.Contains(t, text, "/case=4x32:8x4096x128,causal/dtype=float32/pass=step/side=mlx 5 ")
	require.NotContains(t, text, "1x2x3x4")
}

func TestBenchJSON(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, sampleBench().Encode(&out))
	var got Bench
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, sampleBench().Rows[0], got.Rows[0])
	require.Nil(t, got.Rows[1].MLX)
	out.Reset()
	require.NoError(t, (&Bench{}).Encode(&out))
	require.Contains(t, out.String(), `"rows": []`)
}

// The script for PyTorch writes lines that can be joined with ours.
func TestColumnsOfPyTorchScript(t *testing.T) {
	script, err := os.ReadFile("../scripts/bench_torch.py")
	require.NoError(t, err)
	_, columns, found := strings.Cut(string(script), "COLUMNS = (")
	require.True(t, found)
	columns, _, found = strings.Cut(columns, ").split")
	require.True(t, found)
	var joined string
	for _, quoted := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(columns, -1) {
		joined += quoted[1]
	}
	require.Equal(t, benchColumns, strings.Split(joined, ","))
}
