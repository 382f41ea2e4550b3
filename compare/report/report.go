// Package report holds the results of comparisons and timings and renders them as text, JSON, CSV and plots.
package report

// Report is the result of one comparison run.
type Report struct {
	MLX      string `json:"mlx"`      // MLX version
	MLXC     string `json:"mlx_c"`    // mlx-c version
	Device   string `json:"device"`   // device of the arrays, "cpu" or "gpu"
	Executor string `json:"executor"` // executor of our kernels: "host", "metal" or "cuda"
	// TF32 for float32 matrices: "on", "off", or "" on devices without TF32.
	TF32 string `json:"tf32,omitempty"`

	// Sample is set if the run was a sample of the suite.
	Sample bool `json:"sample"`
	// Kernels is the number of kernel variants that were compiled before the run or found in the cache. CompileSeconds
	// is the time for that.
	Kernels        int     `json:"kernels"`
	CompileSeconds float64 `json:"compile_seconds"`

	// Incomplete is set if the run was interrupted. Rows then holds the rows judged before that.
	Incomplete bool `json:"incomplete"`
	// Passed counts the rows that passed. Failed counts failed rows and failed suites.
	Passed int `json:"passed"`
	Failed int `json:"failed"`

	Suites []Suite `json:"suites"`
	Rows   []Row   `json:"rows"`
}

// Row is the judgment of one output of one operation on one input in one dtype.
type Row struct {
	Op     string `json:"op"`
	Name   string `json:"case"`
	DType  string `json:"dtype"`
	Shape  []int  `json:"shape"`  // shape of the operation's first input
	Layout string `json:"layout"` // memory layout of that input
	Output string `json:"output"` // name of the result, such as "dx"
	// OutputDType is the dtype of the result. It differs from DType for a result with a fixed dtype, such as a float32
	// loss.
	OutputDType string `json:"output_dtype"`

	MaxErr     Number `json:"max_err"` // ours, against the float64 oracle, like all errors here
	MLXMaxErr  Number `json:"mlx_max_err"`
	MeanErr    Number `json:"mean_err"`
	MLXMeanErr Number `json:"mlx_mean_err"`
	Floor      Number `json:"floor"` // 2·eps·max|oracle|; a max_err up to this always passes
	// Ratio is (max_err + floor) / (mlx_max_err + floor), or NaN if MLX's gradient is not valid.
	Ratio Number `json:"ratio"`

	Draws    int  `json:"draws"`    // number of draws of random inputs; the errors are over all draws
	Launches int  `json:"launches"` // number of our kernels that the gradient launched
	Pass     bool `json:"pass"`
	// Message says why the row failed, in one or more lines.
	Message string `json:"message,omitempty"`
	// MLX is the verdict on MLX's gradient, and MLXMessage its reason. Neither makes a row fail.
	MLX        MLXVerdict `json:"mlx_gradient"`
	MLXMessage string     `json:"mlx_message,omitempty"`
}

// MLXVerdict is the verdict on MLX's gradient.
type MLXVerdict string

// The verdicts. If MLX's gradient is not valid, ours is judged by the oracle alone or by another reference, which
// MLXMessage names.
const (
	MLXValid   MLXVerdict = "valid"
	MLXWrong   MLXVerdict = "wrong"   // NaN or infinity out of place, no better than zeros, or the gradient of another function
	MLXRefuses MLXVerdict = "refuses" // MLX returns an error
	MLXNone    MLXVerdict = "none"    // the case has no function of MLX
	MLXUnsafe  MLXVerdict = "unsafe"  // not run, because it may read or write out of bounds
)

// MaxMeanRatio is the limit below which a judged mean ratio passes: it must round to 1.00 or less. The limit is not 1,
// because kernels that round as MLX does have a ratio of exactly 1 in nearly every row, and other ratios by chance.
const MaxMeanRatio = 1.005

// Suite is the verdict on all cases of one operation in one dtype together.
type Suite struct {
	Op    string `json:"op"`
	DType string `json:"dtype"`
	// Ratio is the geometric mean of the rows' ratios. Outputs counts the rows that have one.
	Ratio   Number `json:"ratio"`
	Outputs int    `json:"outputs"`
	// Judged is false if Ratio is only shown: in float32, and if some cases were not run.
	Judged bool `json:"judged"`
	Pass   bool `json:"pass"`
	// Seconds is the time for the cases: ours, MLX's and the oracle's.
	Seconds float64 `json:"seconds"`
}

// SetCounts sets Passed and Failed from Rows and Suites.
func (r *Report) SetCounts() {
	r.Passed, r.Failed = 0, 0
	for _, c := range r.Rows {
		if c.Pass {
			r.Passed++
		} else {
			r.Failed++
		}
	}
	for _, s := range r.Suites {
		if !s.Pass {
			r.Failed++
		}
	}
}

// Succeeded reports whether the run is complete, compared something and found no failure.
func (r *Report) Succeeded() bool {
	return !r.Incomplete && r.Passed > 0 && r.Failed == 0
}
