package report

import (
	"encoding/json"
	"io"
	"math"
	"slices"
	"time"
)

// Bench is the outcome of one run that times gradients.
type Bench struct {
	MLX        string    `json:"mlx"`
	MLXC       string    `json:"mlx_c"`
	Device     string    `json:"device"`      // "cpu" or "gpu".
	DeviceName string    `json:"device_name"` // As MLX names it.
	Executor   string    `json:"executor"`
	TF32       string    `json:"tf32"` // Whether MLX multiplies float32 matrices in TF32: "on", "off", or "" on a CPU.
	Started    time.Time `json:"started"`
	// Incomplete is set when the run was interrupted, and Rows holds what was measured by then.
	Incomplete bool       `json:"incomplete"`
	Rows       []BenchRow `json:"rows"`
}

// Pass is the part of an operation that is timed.
type Pass string

// The passes.
const (
	// Backward is the computation of the gradients, after the outputs have been computed with whatever
	// the operation keeps for its gradients.
	Backward Pass = "backward"
	// Step is the computation of outputs and gradients.
	Step Pass = "step"
)

// BenchRow is one pass of one operation on one shape in one dtype.
type BenchRow struct {
	Op       string  `json:"op"`
	Case     string  `json:"case"`
	DType    string  `json:"dtype"`
	Pass     Pass    `json:"pass"`
	Elements int     `json:"elements"` // Of the largest array.
	Bytes    int     `json:"bytes"`    // The least that must be moved; 0 where FLOPs take the time.
	FLOPs    float64 `json:"flops"`    // Of matrix products; 0 where bytes take the time.
	Launches int     `json:"launches"` // How many kernels of ours a step launches.

	Ours *Timing `json:"ours"`
	MLX  *Timing `json:"mlx"` // Nil where MLX has no gradient, for the reason in MLXMessage.
	// Add is MLX's sum of two arrays of the size of the largest that is moved, of the same dtype: the
	// measured limit of 2 reads and 1 write. Nil where FLOPs take the time.
	Add      *Timing `json:"add"`
	AddBytes int     `json:"add_bytes"`

	// Difference is the sum of |ours − MLX's| over that of |MLX's|, of the gradient where it is largest.
	Difference Number `json:"difference"`
	// Ratio is MLX's time over ours, by the medians; NaN where there is none.
	Ratio Number `json:"ratio"`
	// OverLimit is our time over that in which add would move the same bytes.
	OverLimit  Number `json:"over_limit"`
	MLXMessage string `json:"mlx_message,omitempty"`
	// Error says why the row failed; what was measured is no measure then.
	Error string `json:"error,omitempty"`
}

// Timing is what was measured of one side. Times are microseconds of one evaluation.
type Timing struct {
	Median float64 `json:"median_us"`
	Q1     float64 `json:"q1_us"` // Quartiles.
	Q3     float64 `json:"q3_us"`
	// Build is the median time in which the host makes the graph, which the other times do not contain.
	Build float64 `json:"build_us"`
	// Copies is how many evaluations a repetition has between two synchronisations; a repetition's time
	// is their mean.
	Copies      int       `json:"copies"`
	Repetitions []float64 `json:"repetitions_us"`
	// ExtraMemory is the peak of memory in a step beyond arguments and results, in bytes.
	ExtraMemory int `json:"extra_memory"`
}

// NewTiming summarises repetitions, of which there is at least one.
func NewTiming(repetitions, builds []float64, copies, extraMemory int) *Timing {
	return &Timing{
		Median: quantile(repetitions, 0.5), Q1: quantile(repetitions, 0.25), Q3: quantile(repetitions, 0.75),
		Build: quantile(builds, 0.5), Copies: copies, Repetitions: repetitions, ExtraMemory: extraMemory,
	}
}

// Spread is half the distance of the quartiles, over the median.
func (t *Timing) Spread() float64 { return (t.Q3 - t.Q1) / 2 / t.Median }

// quantile interpolates between the nearest of the sorted values.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Derive sets Ratio and OverLimit from the timings.
func (r *BenchRow) Derive() {
	r.Ratio, r.OverLimit = Number(math.NaN()), Number(math.NaN())
	if r.Ours == nil {
		return
	}
	if r.MLX != nil {
		r.Ratio = Number(r.MLX.Median / r.Ours.Median)
	}
	if r.Add != nil {
		limit := r.Add.Median * float64(r.Bytes) / float64(r.AddBytes)
		r.OverLimit = Number(r.Ours.Median / limit)
	}
}

// Rate is what a side achieves of the row's work: GB/s, or TFLOP/s if arithmetic holds.
func (r *BenchRow) Rate(t *Timing) (value float64, unit string) {
	if r.FLOPs > 0 {
		return r.FLOPs / t.Median / 1e6, "TFLOP/s"
	}
	return float64(r.Bytes) / t.Median / 1e3, "GB/s"
}

// Succeeded reports whether the run is complete, measured something and nothing failed.
func (b *Bench) Succeeded() bool {
	return !b.Incomplete && len(b.Rows) > 0 && !slices.ContainsFunc(b.Rows, func(r BenchRow) bool { return r.Error != "" })
}

// Encode writes the report as indented JSON.
func (b *Bench) Encode(w io.Writer) error {
	// Programs index into it, so an empty list must not be null.
	whole := *b
	whole.Rows = append([]BenchRow{}, b.Rows...)
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(&whole)
}
