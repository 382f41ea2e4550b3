package ops

// equivalentMutants are the mutants of our kernels that compute the same and break no rule, each
// with the reason.
var equivalentMutants = map[string]string{
	"threadgroup_sum: constant: if (simdgroups == 1) { → if (simdgroups == 0) {": "one simdgroup takes the way of several, through its slot",

	"rms_norm_compute_rms_inv: constant: uint turn = 0; → uint turn = 1;": whichSlot,
	"rms_norm_backward_dx: constant: uint turn = 0; → uint turn = 1;":     whichSlot,

	"rms_norm_compute_rms_inv: compare: for (; j + C <= width; j += threads * C) { → for (; j + C < width; j += threads * C) {": lastVector,
	"rms_norm_backward_dx: compare: for (; j + C <= width; j += threads * C) { → for (; j + C < width; j += threads * C) {":     lastVector,
	"rms_norm_backward_dx: compare: for (; j + C <= width; j += threads * C) { → for (; j + C < width; j += threads * C) { (2)": lastVector,

	"rms_norm_compute_rms_inv: shift index: sums[0] += v * v; → sums[(0) + 1] += v * v;":                                 whichSum,
	"rms_norm_compute_rms_inv: constant: sums[0] += v * v; → sums[1] += v * v;":                                          whichSum,
	"rms_norm_backward_dx: shift index: sums[0] += g * float(x[start + j]); → sums[(0) + 1] += g * float(x[start + j]);": whichSum,
	"rms_norm_backward_dx: constant: sums[0] += g * float(x[start + j]); → sums[1] += g * float(x[start + j]);":          whichSum,

	"rms_norm_backward_dw: compare: const uint own = column < width ? min(uint(C), width - column) : 0; → const uint own = column <= width ? min(uint(C), width - column) : 0;": "at column == width the other branch has no columns either",

	"rms_norm_backward_dw: drop guard: if (simdgroups > 1) { → if (true) {":         throughMemory,
	"rms_norm_backward_dw: compare: if (simdgroups > 1) { → if (simdgroups >= 1) {": throughMemory,
	"rms_norm_backward_dw: constant: if (simdgroups > 1) { → if (simdgroups > 0) {": throughMemory,
	"rms_norm_backward_dw: drop guard: if (simdgroup == 0) { → if (true) {":         "the other simdgroups add the sum up too, and store nothing",
}

const (
	whichSlot     = "the two sets of slots are alike"
	lastVector    = "the loop over single elements does a last whole vector too"
	whichSum      = "any of the C ≥ 4 sums of a thread may take the rest"
	throughMemory = "one simdgroup takes the way of several, through threadgroup memory"
)

// missedMutants are wrong, and nothing shows it: each with the reason.
var missedMutants = map[string]string{
	"rms_norm_compute_rms_inv: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) { (2)":       pastOwnArray,
	"rms_norm_backward_dx: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) { (2)":           pastOwnArray,
	"rms_norm_backward_dw: compare: for (uint k = 0; k < uint(C); k++) { → for (uint k = 0; k <= uint(C); k++) {": pastOwnArray,
}

const pastOwnArray = "reads one element behind an array of the thread's own, around which the checker has no red zone"
