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
	TF32       string    `json:"tf32"` // Whether float32 matrices are multiplied as TF32: "on", "off", or "" where no device does.
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

// Timing is what was measured of one side. Times are microseconds of one evaluation, each the mean of
// Copies that follow each other.
type Timing struct {
	// Median is that of Repetitions, and Q1 and Q3 are the quartiles.
	Median float64 `json:"median_us"`
	Q1     float64 `json:"q1_us"`
	Q3     float64 `json:"q3_us"`
	// Wall is the median of WallRepetitions, Build that of BuildRepetitions.
	Wall  float64 `json:"wall_us"`
	Build float64 `json:"build_us"`
	// Submit is what the host needs to hand one evaluation to an idle device, in one trial. Where it is
	// near Wall, the host holds the device up.
	Submit float64 `json:"submit_us"`
	// Repetitions are the device's times: on a GPU from the end of other work, which kept it busy until
	// the host had submitted all copies, to the end of the last. Where there are too many to be submitted
	// in that time, and on a CPU, they are those of WallRepetitions.
	Repetitions []float64 `json:"repetitions_us"`
	// WallRepetitions begin with the submission to an idle device.
	WallRepetitions []float64 `json:"wall_repetitions_us"`
	// BuildRepetitions are of the graphs' construction on the host, which the other times do not contain.
	BuildRepetitions []float64 `json:"build_repetitions_us"`
	// Copies is how many evaluations a repetition has.
	Copies int `json:"copies"`
	// ExtraMemory is the peak of memory in the pass beyond arguments and results, in bytes: what is kept
	// for a gradient counts.
	ExtraMemory int `json:"extra_memory"`
}

// NewTiming adds the medians and quartiles of the repetitions, of which there is at least one of each kind.
func NewTiming(t Timing) *Timing {
	t.Median, t.Q1, t.Q3 = quantile(t.Repetitions, 0.5), quantile(t.Repetitions, 0.25), quantile(t.Repetitions, 0.75)
	t.Wall, t.Build = quantile(t.WallRepetitions, 0.5), quantile(t.BuildRepetitions, 0.5)
	return &t
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
