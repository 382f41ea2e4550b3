package ops

// equivalentMutants are the mutants of our kernels that compute the same and break no rule, each
// with the reason.
var equivalentMutants = map[string]string{
	"threadgroup_max: constant: if (simdgroups == 1) { → if (simdgroups == 0) {": "one simdgroup takes the way of several, through its slot",

	"add_row: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) {": "the R packs of all threads have the row, so the width ends the loop",

	"rms_norm_backward: drop guard: if (HAS_WEIGHT) { → if (true) {": weightNotUsed,
	"rms_norm_residual: drop guard: if (HAS_WEIGHT) { → if (true) {": weightNotUsed,

	"place: constant: constexpr size_t bank = 4 / sizeof(T); → constexpr size_t bank = 3 / sizeof(T);":                                               whichBank,
	"place: swap operands: constexpr size_t bank = 4 / sizeof(T); → constexpr size_t bank = (sizeof(T)) / (4);":                                      whichBank,
	"place: compare: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E >= 32 ? r / 32 * 3 * bank : 0) + c;": whichBank,
	"place: constant: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 1) + c;": whichBank,
	"transpose_2d: constant: threadgroup T tile[E * (E + 4)]; → threadgroup T tile[E * (E + 3)];":                                                    "the array has room for every dtype's padding, float32's is one column",
}

const (
	weightNotUsed = "the input in the weight's place is read, and what it gives not used"
	whichBank     = "elements of the tile lie elsewhere, each still in a place of its own"
)

// missedMutants are wrong, and nothing shows it: each with the reason.
var missedMutants = map[string]string{
	"add_products: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) {": "reads the first element of the thread's next pack, in the same array",
	"gradient: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) {":     "writes one element behind an array of the thread's own, through a pointer, whose bounds no compiler knows",

	"place: constant: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 31 ? r / 32 * 3 * bank : 0) + c;":          onlyHalves,
	"place: swap operands: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? (32) / (r) * 3 * bank : 0) + c;": onlyHalves,
	"place: constant: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 31 * 3 * bank : 0) + c;":          onlyHalves,
	"place: sign: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 32 + 3 * bank : 0) + c;":              onlyHalves,
	"place: constant: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 32 * 2 * bank : 0) + c;":          onlyHalves,
	"place: sign: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 32 * 3 + bank : 0) + c;":              onlyHalves,
}

const onlyHalves = "tiles wider than 32 are of halves, and mutants are tried in float32"
