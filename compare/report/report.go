// Package report holds the results of a comparison and renders them, as a table for people and as
// JSON for programs. It knows nothing of how they came about.
package report

// Report is the outcome of one run.
type Report struct {
	MLX      string `json:"mlx"`      // MLX's version.
	MLXC     string `json:"mlx_c"`    // mlx-c's version.
	Device   string `json:"device"`   // The device that arrays lived on, "cpu" or "gpu".
	Executor string `json:"executor"` // What ran our kernels: "host", "metal" or "cuda".
	// Whether float32 matrices are multiplied as TF32: "on", "off", or "" where no device does.
	TF32 string `json:"tf32,omitempty"`

	// Sample is set when the run was a sample of the suite.
	Sample bool `json:"sample"`
	// Kernels is the number of variants of kernels that were compiled ahead, or found in the cache, and CompileSeconds
	// the time that it took.
	Kernels        int     `json:"kernels"`
	CompileSeconds float64 `json:"compile_seconds"`

	// Incomplete is set when the run was interrupted, and Cases holds what was done by then.
	Incomplete bool `json:"incomplete"`
	// Passed counts the cases that passed. Failed counts those that did not, and the suites.
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
	Shape  []int  `json:"shape"`  // The shape of the operation's first input.
	Layout string `json:"layout"` // How that input lies in memory.
	Output string `json:"output"` // The output's name, such as "dx".
	// OutputDType is DType, or that of an output which has the same one in every DType, such as a loss.
	OutputDType string `json:"output_dtype"`

	MaxErr     Number `json:"max_err"` // Ours, against the float64 oracle, as all errors here.
	MLXMaxErr  Number `json:"mlx_max_err"`
	MeanErr    Number `json:"mean_err"`
	MLXMeanErr Number `json:"mlx_mean_err"`
	Floor      Number `json:"floor"` // 2·eps·max|oracle|, which max_err may reach whatever MLX does.
	// Ratio is (max_err + floor) / (mlx_max_err + floor), NaN when MLX's own gradient is not sound.
	Ratio Number `json:"ratio"`

	Draws    int  `json:"draws"`    // How many times random inputs were drawn; the errors are over all.
	Launches int  `json:"launches"` // How many kernels of ours the gradient was made of.
	Pass     bool `json:"pass"`
	// Message says why the case failed, in one or more lines.
	Message string `json:"message,omitempty"`
	// MLX says whether MLX's own gradient can be compared with, and MLXMessage why not. Neither fails
	// anything.
	MLX        MLXVerdict `json:"mlx_gradient"`
	MLXMessage string     `json:"mlx_message,omitempty"`
}

// MLXVerdict is the judgement of MLX's own gradient.
type MLXVerdict string

// The verdicts. Where MLX's own gradient is not sound, ours is judged against the oracle alone, or
// against another gradient of MLX, which MLXMessage names.
const (
	MLXValid   MLXVerdict = "valid"
	MLXWrong   MLXVerdict = "wrong"   // NaN or infinity out of place, no better than zeros, or of another function.
	MLXRefuses MLXVerdict = "refuses" // An error.
	MLXNone    MLXVerdict = "none"    // The case has no function of MLX's.
	MLXUnsafe  MLXVerdict = "unsafe"  // Not run, because it may read or write out of bounds.
)

// MaxMeanRatio bounds the mean ratio of a suite: 1 in two decimals. If our kernels round where MLX rounds, nearly every
// ratio is exactly 1, and the few others differ by luck.
const MaxMeanRatio = 1.005

// Suite is the judgement of all the cases of one operation in one dtype together.
type Suite struct {
	Op    string `json:"op"`
	DType string `json:"dtype"`
	// Ratio is the geometric mean of the cases' ratios, over the Outputs that have one.
	Ratio   Number `json:"ratio"`
	Outputs int    `json:"outputs"`
	// Judged is false where Ratio is only shown: in float32, and when not every case was run.
	Judged bool `json:"judged"`
	Pass   bool `json:"pass"`
	// Seconds is how long the cases took: ours, MLX's and the oracle.
	Seconds float64 `json:"seconds"`
}

// Count sets Passed and Failed from Cases and Suites.
func (r *Report) Count() {
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
