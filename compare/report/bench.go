package report

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/mlxgrad/mlxgrad/internal/outfile"
)

// Bench is the result of a timing run.
type Bench struct {
	MLX        string    `json:"mlx"`
	MLXC       string    `json:"mlx_c"`
	Device     string    `json:"device"`      // "cpu" or "gpu"
	DeviceName string    `json:"device_name"` // MLX's name of the device
	Executor   string    `json:"executor"`
	TF32       string    `json:"tf32"` // TF32 for float32 matrices: "on", "off", or "" on devices without TF32
	Started    time.Time `json:"started"`
	// Limits holds the limits of a CPU. It is nil on other devices, whose limit is [BenchRow.Add].
	Limits *CPULimits `json:"limits,omitempty"`
	// Incomplete is set if the run was interrupted. Rows then holds the rows measured before that.
	Incomplete bool       `json:"incomplete"`
	Rows       []BenchRow `json:"rows"`
}

// CPULimits holds the rates that two kernels reach before the first row, with all threads of the host executor.
type CPULimits struct {
	// Bandwidth is the rate in GB/s of adding arrays outside the caches: two reads and one write.
	Bandwidth float64 `json:"gb_per_s"`
	// Arithmetic is the rate of fused multiply-adds of float32 in registers, in TFLOP/s.
	Arithmetic float64 `json:"tflop_per_s"`
}

// Pass is the timed part of an operation.
type Pass string

// The passes.
const (
	// Backward computes the gradients. The outputs, and the arrays that the operation keeps for its gradients, are
	// computed before and not timed.
	Backward Pass = "backward"
	// Step computes outputs and gradients.
	Step Pass = "step"
)

// BenchRow is one pass of one operation on one shape in one dtype.
type BenchRow struct {
	Op       string  `json:"op"`
	Case     string  `json:"case"`
	DType    string  `json:"dtype"`
	Pass     Pass    `json:"pass"`
	Elements int     `json:"elements"` // of the largest array
	Bytes    int     `json:"bytes"`    // bytes that must be moved; 0 if arithmetic limits the time
	FLOPs    float64 `json:"flops"`    // of matrix products; 0 if bytes limit the time
	Launches int     `json:"launches"` // number of our kernels that one evaluation launches

	Ours *Timing `json:"ours"`
	MLX  *Timing `json:"mlx"` // nil if MLX has no gradient; MLXMessage says why
	// Add times MLX's sum of two arrays with the dtype and size of the largest moved array: the measured limit of two
	// reads and one write. It is nil on a CPU and if arithmetic limits the time.
	Add      *Timing `json:"add"`
	AddBytes int     `json:"add_bytes"`

	// Difference is Σ|ours − MLX's| / Σ|MLX's| of the gradient for which it is largest.
	Difference Number `json:"difference"`
	// Ratio is MLX's median time divided by ours, or NaN. If the time of the device alone is unknown for one side,
	// both are compared by Wall.
	Ratio Number `json:"ratio"`
	// OverLimit is our time divided by the time of the same work at the rate of [CPULimits] or, on other devices, of Add.
	// It is NaN if arithmetic limits the time on another device. The times are compared like those of Ratio.
	OverLimit  Number `json:"over_limit"`
	MLXMessage string `json:"mlx_message,omitempty"`
	// Error says why the row failed. The measurements of such a row are meaningless.
	Error string `json:"error,omitempty"`
}

// Timing is the measurement of one side: our gradient, MLX's, or MLX's add. Times are microseconds per evaluation, each
// the mean of Copies consecutive evaluations.
type Timing struct {
	// Median, Q1 and Q3 are the median and the quartiles of Repetitions.
	Median float64 `json:"median_us"`
	Q1     float64 `json:"q1_us"`
	Q3     float64 `json:"q3_us"`
	// Wall is the median of WallRepetitions, Build the median of BuildRepetitions.
	Wall  float64 `json:"wall_us"`
	Build float64 `json:"build_us"`
	// Submit is the time in which the host submits one evaluation to an idle device, measured once. If it is near Wall,
	// the device waits for the host.
	Submit float64 `json:"submit_us"`
	// Repetitions are times of the device alone. On a GPU, other work keeps the device busy while the host submits all
	// copies; the time runs from the end of that work to the end of the last copy. If this time is not known,
	// and on a CPU, a repetition equals the one of WallRepetitions.
	Repetitions []float64 `json:"repetitions_us"`
	// WallRepetitions begin with the submission to an idle device.
	WallRepetitions []float64 `json:"wall_repetitions_us"`
	// BuildRepetitions are the mean times in which the host builds a graph. The other times do not contain them.
	BuildRepetitions []float64 `json:"build_repetitions_us"`
	// Copies is the number of evaluations in a repetition.
	Copies int `json:"copies"`
	// ExtraMemory is the peak of memory in the pass beyond arguments and results, in bytes. It includes arrays kept for
	// a gradient.
	ExtraMemory int `json:"extra_memory"`
}

// NewTiming returns t with the medians and quartiles of its repetitions. There must be at least one repetition of each
// kind.
func NewTiming(t Timing) *Timing {
	t.Median, t.Q1, t.Q3 = quantile(t.Repetitions, 0.5), quantile(t.Repetitions, 0.25), quantile(t.Repetitions, 0.75)
	t.Wall, t.Build = quantile(t.WallRepetitions, 0.5), quantile(t.BuildRepetitions, 0.5)
	return &t
}

// Spread returns half the interquartile range, divided by the median.
func (t *Timing) Spread() float64 { return (t.Q3 - t.Q1) / 2 / t.Median }

// isWall reports whether the time of the device alone is unknown for at least half of the repetitions, so that Median
// contains times from the submission on.
func (t *Timing) isWall() bool {
	same := 0
	for i, v := range t.Repetitions {
		if i < len(t.WallRepetitions) && v == t.WallRepetitions[i] {
			same++
		}
	}
	return 2*same >= len(t.Repetitions)
}

// comparedByWall reports whether times of two sides are compared from the submission to an idle device.
func comparedByWall(a, b *Timing) bool { return a != nil && b != nil && (a.isWall() || b.isWall()) }

// quotient returns the time of a divided by that of b.
func quotient(a, b *Timing) float64 {
	if comparedByWall(a, b) {
		return a.Wall / b.Wall
	}
	return a.Median / b.Median
}

// quantile interpolates between the two nearest sorted values.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (at-float64(low))*(sorted[high]-sorted[low])
}

// Derive sets Ratio and OverLimit from the timings and the limits of a CPU. limits is nil on other devices.
func (r *BenchRow) Derive(limits *CPULimits) {
	r.Ratio, r.OverLimit = Number(math.NaN()), Number(math.NaN())
	if r.Ours == nil {
		return
	}
	if r.MLX != nil {
		r.Ratio = Number(quotient(r.MLX, r.Ours))
	}
	rate, _ := r.Rate(r.Ours)
	switch {
	case limits != nil && r.FLOPs > 0:
		r.OverLimit = Number(limits.Arithmetic / rate)
	case limits != nil:
		r.OverLimit = Number(limits.Bandwidth / rate)
	case r.Add != nil:
		r.OverLimit = Number(quotient(r.Ours, r.Add) * float64(r.AddBytes) / float64(r.Bytes))
	}
}

// Rate returns the row's work divided by the median of t, in GB/s or TFLOP/s.
func (r *BenchRow) Rate(t *Timing) (value float64, unit string) {
	if r.FLOPs > 0 {
		return r.FLOPs / t.Median / 1e6, "TFLOP/s"
	}
	return float64(r.Bytes) / t.Median / 1e3, "GB/s"
}

// sentence returns the limits as a fact of a report.
func (l *CPULimits) sentence() string {
	return fmt.Sprintf("Measured rates of this CPU: %s GB/s adding arrays in memory, %.3g TFLOP/s of float32 multiply-adds",
		digits(l.Bandwidth), l.Arithmetic)
}

// limitMeaning names the time by which OverLimit divides ours.
func (b *Bench) limitMeaning() string {
	if b.Limits != nil {
		return "the time of the same work at the CPU's measured rate"
	}
	return "the time of MLX's add for the same bytes"
}

// Succeeded reports whether the run is complete, has rows and has no failure.
func (b *Bench) Succeeded() bool {
	return !b.Incomplete && len(b.Rows) > 0 && !slices.ContainsFunc(b.Rows, func(r BenchRow) bool { return r.Error != "" })
}

// Encode writes the report as indented JSON.
func (b *Bench) Encode(w io.Writer) error {
	// Programs index into Rows, so an empty list must not be null.
	whole := *b
	whole.Rows = append([]BenchRow{}, b.Rows...)
	return outfile.EncodeJSON(w, struct {
		Kind string `json:"kind"`
		*Bench
	}{kindBench, &whole})
}
