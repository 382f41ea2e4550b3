package ops

// equivalentMutants are the mutants of our kernels that compute the same, up to rounding, and break
// no rule, each with the reason. What only takes more time or traffic is among them.
var equivalentMutants = map[string]string{
	"rms_norm_residual: constant: uint turn = 0; → uint turn = 1;": otherSlots,
	"add_rms_norm: constant: uint turn = 0; → uint turn = 1;":      otherSlots,
	"softmax_backward: constant: uint turn = 0; → uint turn = 1;":  otherSlots,

	"rms_norm_rows: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) {":       rowEnds,
	"rms_norm_rows: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (2)":   rowEnds,
	"rms_norm_rows: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (3)":   rowEnds,
	"rms_norm_rows: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (4)":   rowEnds,
	"layer_norm_rows: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) {":     rowEnds,
	"layer_norm_rows: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (2)": rowEnds,
	"layer_norm_rows: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (3)": rowEnds,
	"rms_norm_rows: constant: uint turn = 0; → uint turn = 1;":                                                                                                                                                         otherSlots,
	"rms_norm_rows: drop guard: if (HAS_WEIGHT) { → if (true) {":                                                                                                                                                       weightNotUsed,
	"rms_norm_rows: drop guard: if (HAS_WEIGHT) { → if (true) { (2)":                                                                                                                                                   weightNotUsed,
	"layer_norm_rows: drop guard: if (HAS_WEIGHT) { → if (true) {":                                                                                                                                                     weightNotUsed,
	"layer_norm_rows: drop guard: if (HAS_WEIGHT) { → if (true) { (2)":                                                                                                                                                 weightNotUsed,
	"rms_norm_rows: drop guard: if (HAS_WEIGHT) { → if (true) { (3)":                                                                                                                                                   sumsNotUsed,
	"add_simdgroups: constant: if (simdgroups == 1) { → if (simdgroups == 0) {":                                                                                                                                        oneOfSeveral,
	"add_simdgroups: compare: for (uint apart = 1; apart < simdgroups; apart *= 2) { → for (uint apart = 1; apart <= simdgroups; apart *= 2) {":                                                                        "nobody adds in the last turn",
	"read: compare: } else if (column + C <= width) { → } else if (column + C < width) {":                                                                                                                              wholePack,
	"rms_norm_rows: compare: constexpr int L = C < 4 ? 4 : C; // sums of the thread's elements → constexpr int L = C <= 4 ? 4 : C; // sums of the thread's elements":                                                   otherSums,
	"rms_norm_rows: constant: constexpr int L = C < 4 ? 4 : C; // sums of the thread's elements → constexpr int L = C < 3 ? 4 : C; // sums of the thread's elements":                                                   otherSums,
	"layer_norm_backward: compare: layer_norm_rows<T, H, U, R * C / U, U < L ? U : L, false, HAS_WEIGHT, HAS_BIAS, false>( → layer_norm_rows<T, H, U, R * C / U, U <= L ? U : L, false, HAS_WEIGHT, HAS_BIAS, false>(": otherSums,

	"layer_norm_rows: compare: constexpr bool AT_ONCE = PACKED && R * C <= 32; → constexpr bool AT_ONCE = PACKED && R * C < 32;":   "no geometry is near the limit",
	"layer_norm_rows: constant: constexpr bool AT_ONCE = PACKED && R * C <= 32; → constexpr bool AT_ONCE = PACKED && R * C <= 31;": "no geometry is near the limit",
	"layer_norm_rows: sign: constexpr bool AT_ONCE = PACKED && R * C <= 32; → constexpr bool AT_ONCE = PACKED && R + C <= 32;":     "no geometry is near the limit",
	"rms_norm_rows: compare: constexpr bool AT_ONCE = PACKED && R * C <= 32; → constexpr bool AT_ONCE = PACKED && R * C < 32;":     "no geometry is near the limit",
	"rms_norm_rows: constant: constexpr bool AT_ONCE = PACKED && R * C <= 32; → constexpr bool AT_ONCE = PACKED && R * C <= 31;":   "no geometry is near the limit",
	"rms_norm_rows: sign: constexpr bool AT_ONCE = PACKED && R * C <= 32; → constexpr bool AT_ONCE = PACKED && R + C <= 32;":       "no geometry is near the limit",
	"read: constant: if (C == 1 || is_packed) { → if (C == 0 || is_packed) {":                                                      "a pack of one element takes the way of others that are not whole",
	"write: constant: if (C == 1 || is_packed) { → if (C == 0 || is_packed) {":                                                     "a pack of one element takes the way of others that are not whole",
	"threadgroup_sum: constant: if (simdgroups == 1) { → if (simdgroups == 0) {":                                                   oneOfSeveral,

	"packed: constant: return width % C == 0 && reinterpret_cast<size_t>(p) % alignof(Pack<T, C>) == 0; → return width % C == 0 && reinterpret_cast<size_t>(p) % alignof(Pack<T, C>) == 1;": "no row is packed: elements move one by one",
	"write: compare: } else if (column + C <= width) { → } else if (column + C < width) {":                                                                                                  wholePack,
	"copy: compare: } else if (column + C <= width) { → } else if (column + C < width) {":                                                                                                   wholePack,
	"write: compare: for (int k = 0; k < C && column + k < width; k++) { → for (int k = 0; k <= C && column + k < width; k++) {":                                                            shortPack,
	"copy: compare: for (int k = 0; k < C && column + k < width; k++) { → for (int k = 0; k <= C && column + k < width; k++) {":                                                             shortPack,

	"rms_norm_residual: drop guard: if (HAS_WEIGHT) { → if (true) {":     weightNotUsed,
	"rms_norm_residual: drop guard: if (HAS_WEIGHT) { → if (true) { (2)": weightNotUsed,
	"add_rms_norm: drop guard: if (HAS_WEIGHT) { → if (true) {":          weightNotUsed,
	"add_rms_norm: drop guard: if (HAS_WEIGHT) { → if (true) { (2)":      weightNotUsed,

	"add_rows: constant: enum { FEW = 4 }; → enum { FEW = 3 };":                                                                                                                   "other blocks of the same rows, whose sum is rounded at other places",
	"add_rows: compare: for (uint few = begin; few < end; few += FEW) { → for (uint few = begin; few <= end; few += FEW) {":                                                       "one more block, of no rows",
	"add_rows: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) {":                               rowEnds,
	"clear: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) {":                                  rowEnds,
	"write_row: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) {":                              rowEnds,
	"clear: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p < R && first + p * stride <= width; p++) {":                                  beyondRow,
	"embedding_keys: swap operands: const uint share = (tokens + grid - 1) / grid; → const uint share = ((1) - (tokens + grid)) / grid;":                                          threadZero,
	"embedding_runs: swap operands: const uint share = (tokens + grid - 1) / grid; → const uint share = ((1) - (tokens + grid)) / grid;":                                          threadZero,
	"embedding_keys: sign: for (uint i = index * share; i < min((index + 1) * share, tokens); i++) { → for (uint i = index * share; i < min((index - 1) * share, tokens); i++) {": threadZero,
	"embedding_runs: sign: for (uint i = index * share; i < min((index + 1) * share, tokens); i++) { → for (uint i = index * share; i < min((index - 1) * share, tokens); i++) {": threadZero,
	"embedding_keys: constant: const uint share = (tokens + grid - 1) / grid; → const uint share = (tokens + grid - 0) / grid;":                                                   largerShare,
	"embedding_runs: constant: const uint share = (tokens + grid - 1) / grid; → const uint share = (tokens + grid - 0) / grid;":                                                   largerShare,
	"embedding_backward_partial: shift index: const uint slot = slot_of(keys[begin]); → const uint slot = slot_of(keys[(begin) + 1]);":                                            "sums of a segment that is not all one slot's, which nobody reads",
	"embedding_backward: drop guard: if (end > 0) { → if (true) {":                                                                                                                noTokens,
	"embedding_backward: compare: if (end > 0) { → if (end >= 0) {":                                                                                                               noTokens,
	"embedding_backward: swap operands: const uint from = (begin + segment - 1) / segment; → const uint from = ((1) - (begin + segment)) / segment;":                              oneByOne,
	"embedding_backward: constant: const uint from = (begin + segment - 1) / segment; → const uint from = (begin + segment - 0) / segment;":                                       oneByOne,

	"read_once: constant: return simd_broadcast_first(lane == 0 ? values[index] : V(0)); → return simd_broadcast_first(lane == 0 ? values[index] : V(1));": "lane 0's value is taken",
	"thread_sums: constant: float sum = 0; → float sum = 1;":                                                                     "times exp(−MAXFLOAT − m), which is 0",
	"read_exponents: drop guard: if (column + C > width) { → if (true) {":                                                        allInRow,
	"read_exponents: compare: if (column + C > width) { → if (column + C >= width) {":                                            allInRow,
	"read_exponents: constant: for (int k = 0; k < C; k++) { → for (int k = 1; k < C; k++) {":                                    "the first element of a pack is in the row",
	"keep_larger: compare: maxima[k] = x[k] > maxima[k] ? x[k] : maxima[k]; → maxima[k] = x[k] >= maxima[k] ? x[k] : maxima[k];": betweenEquals,
	"softmax_forward: constant: for (int k = 1; k < C; k++) { → for (int k = 0; k < C; k++) {":                                   "the first maximum is no larger than itself",
	"softmax_forward: compare: m = maxima[k] > m ? maxima[k] : m; → m = maxima[k] >= m ? maxima[k] : m;":                         betweenEquals,

	"cross_entropy_forward: constant: RowSums sums = RowSums{0, 1, 0}; → RowSums sums = RowSums{0, 1, 1};":                                                                                     leftOut,
	"cross_entropy_fwd_bwd: constant: RowSums sums = RowSums{0, 1, 0}; → RowSums sums = RowSums{0, 1, 1};":                                                                                     leftOut,
	"cross_entropy_merge: constant: RowSums sums = RowSums{-MAXFLOAT, 0, 0}; → RowSums sums = RowSums{-MAXFLOAT, 1, 0};":                                                                       "times exp(−MAXFLOAT − m), which is 0",
	"cross_entropy_merge: constant: const Options options = Options{classes, 0, classes, smoothing, z_loss, 0}; → const Options options = Options{classes, 1, classes, smoothing, z_loss, 0};": "a merged row has no columns",
	"cross_entropy_merge: constant: const Options options = Options{classes, 0, classes, smoothing, z_loss, 0}; → const Options options = Options{classes, 0, classes, smoothing, z_loss, 1};": "a merged row has no columns",
	"target_loss: drop guard: if (options.smoothing > 0) { → if (true) {":                                                                                                                      "the total is 0 without smoothing",
	"target_loss: compare: if (options.smoothing > 0) { → if (options.smoothing >= 0) {":                                                                                                       "the total is 0 without smoothing",
	"cross_entropy_fwd_bwd: drop guard: if (begin != last) { → if (true) {":                                                                                                                    "reads what is held again",

	"rms_norm_backward_statistics: constant: uint turn = 0; → uint turn = 1;":                                       otherSlots,
	"rms_norm_compute_rms_inv: constant: uint turn = 0; → uint turn = 1;":                                           otherSlots,
	"rms_norm_backward_dx: constant: uint turn = 0; → uint turn = 1;":                                               otherSlots,
	"rms_norm_backward_columns: drop guard: if (HAS_WEIGHT) { → if (true) { (2)":                                    sumsNotUsed,
	"rms_norm_backward_statistics: drop guard: if (HAS_WEIGHT) { → if (true) {":                                     weightNotUsed,
	"rms_norm_backward_columns: drop guard: if (HAS_WEIGHT) { → if (true) {":                                        weightNotUsed,
	"rms_norm_backward_dx: drop guard: if (HAS_WEIGHT) { → if (true) {":                                             weightNotUsed,
	"rms_norm_backward_dx: drop guard: if (HAS_WEIGHT) { → if (true) { (2)":                                         weightNotUsed,
	"rms_norm_backward_dx: drop guard: if (HAS_WEIGHT) { → if (true) { (3)":                                         weightNotUsed,
	"rms_norm_backward_statistics: compare: constexpr int L = B == 1 ? C : 1; → constexpr int L = B != 1 ? C : 1;":  otherSums,
	"rms_norm_backward_statistics: constant: constexpr int L = B == 1 ? C : 1; → constexpr int L = B == 0 ? C : 1;": otherSums,
	"rms_norm_backward_statistics: compare: for (size_t begin = size_t(group) * B; begin < rows; begin += size_t(groups) * B) { → for (size_t begin = size_t(group) * B; begin <= rows; begin += size_t(groups) * B) {": noRows,
	"rms_norm_backward_columns: compare: for (size_t begin = group.y; begin < rows; begin += size_t(groups.y) * lanes) { → for (size_t begin = group.y; begin <= rows; begin += size_t(groups.y) * lanes) {":            noRows,
	"rms_norm_backward_columns: constant: const uint lanes = min(threads.x, 32u); → const uint lanes = min(threads.x, 31u);":                                                                                            fewerRows,
	"rms_norm_backward_columns: constant: float2 own_rc = 0; → float2 own_rc = 1;":                                                                                                                                      nobodyTakes,
	"rms_norm_backward_dw: compare: for (size_t begin = simdgroup; begin < rows; begin += size_t(simdgroups) * lanes) { → for (size_t begin = simdgroup; begin <= rows; begin += size_t(simdgroups) * lanes) {":         noRows,
	"rms_norm_backward_dw: constant: const float own_r = own < rows ? rms_inv[own] : 0; → const float own_r = own < rows ? rms_inv[own] : 1;":                                                                           nobodyTakes,

	"add_to_moments: drop guard: } else if ((p & (p - 1)) == 0 && (p > 1 || L < C)) { → } else if (true) {":                                                                                                                                               "moves to the mean more often",
	"add_to_moments: compare: } else if ((p & (p - 1)) == 0 && (p > 1 || L < C)) { → } else if ((p & (p - 1)) != 0 && (p > 1 || L < C)) {":                                                                                                                "moves to the mean at other packs, and more often",
	"add_to_moments: compare: } else if ((p & (p - 1)) == 0 && (p > 1 || L < C)) { → } else if ((p & (p - 1)) == 0 && (p >= 1 || L < C)) {":                                                                                                               ownMean,
	"add_to_moments: constant: } else if ((p & (p - 1)) == 0 && (p > 1 || L < C)) { → } else if ((p & (p - 1)) == 0 && (p > 0 || L < C)) {":                                                                                                               ownMean,
	"add_to_moments: compare: } else if ((p & (p - 1)) == 0 && (p > 1 || L < C)) { → } else if ((p & (p - 1)) == 0 && (p > 1 || L <= C)) {":                                                                                                               ownMean,
	"counts_of: compare: const size_t left = first < width ? width - first : 0; → const size_t left = first <= width ? width - first : 0;":                                                                                                                betweenEquals,
	"add_to_parameters: drop guard: if (HAS_WEIGHT) { → if (true) {":                                                                                                                                                                                      sumsNotUsed,
	"add_to_parameters: drop guard: if (HAS_BIAS) { → if (true) {":                                                                                                                                                                                        sumsNotUsed,
	"layer_norm_backward_statistics: drop guard: if (HAS_WEIGHT) { → if (true) {":                                                                                                                                                                         weightNotUsed,
	"layer_norm_backward_columns: drop guard: if (HAS_WEIGHT) { → if (true) {":                                                                                                                                                                            weightNotUsed,
	"layer_norm_bwd_input: drop guard: if (HAS_WEIGHT) { → if (true) {":                                                                                                                                                                                   weightNotUsed,
	"layer_norm_bwd_gamma_partial: drop guard: if (HAS_WEIGHT) { → if (true) {":                                                                                                                                                                           weightNotUsed,
	"layer_norm_bwd_input: drop guard: if (HAS_WEIGHT) { → if (true) { (2)":                                                                                                                                                                               weightNotUsed,
	"layer_norm_bwd_input: drop guard: if (HAS_WEIGHT) { → if (true) { (3)":                                                                                                                                                                               weightNotUsed,
	"layer_norm_backward_statistics: compare: constexpr int L = B == 1 ? C : 1; → constexpr int L = B != 1 ? C : 1;":                                                                                                                                      otherSums,
	"layer_norm_backward_statistics: constant: constexpr int L = B == 1 ? C : 1; → constexpr int L = B == 0 ? C : 1;":                                                                                                                                     otherSums,
	"layer_norm_backward_statistics: compare: for (size_t begin = size_t(group) * B; begin < rows; begin += size_t(groups) * B) { → for (size_t begin = size_t(group) * B; begin <= rows; begin += size_t(groups) * B) {":                                 noRows,
	"layer_norm_backward_columns: compare: for (size_t begin = group.y; begin < rows; begin += size_t(groups.y) * lanes) { → for (size_t begin = group.y; begin <= rows; begin += size_t(groups.y) * lanes) {":                                            noRows,
	"layer_norm_backward_columns: constant: const uint lanes = min(threads.x, 32u); → const uint lanes = min(threads.x, 31u);":                                                                                                                            fewerRows,
	"layer_norm_bwd_gamma_partial: compare: for (size_t begin = size_t(group.y) * simdgroups + simdgroup; begin < rows; begin += step * lanes) { → for (size_t begin = size_t(group.y) * simdgroups + simdgroup; begin <= rows; begin += step * lanes) {": noRows,
	"layer_norm_bwd_gamma_partial: constant: const uint lanes = min(threads.x, 32u); → const uint lanes = min(threads.x, 31u);":                                                                                                                           fewerRows,
	"layer_norm_backward_columns: constant: float4 own_found = 0; → float4 own_found = 1;":                                                                                                                                                                nobodyTakes,
	"layer_norm_bwd_gamma_partial: constant: float2 own_found = 0; → float2 own_found = 1;":                                                                                                                                                               nobodyTakes,
	"layer_norm_bwd_gamma_partial: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p < R && first + p * stride <= width; p++) {":                                                                                   beyondRow,

	"place: constant: constexpr size_t bank = 4 / sizeof(T); → constexpr size_t bank = 3 / sizeof(T);":                                                                                              otherPlace,
	"place: swap operands: constexpr size_t bank = 4 / sizeof(T); → constexpr size_t bank = (sizeof(T)) / (4);":                                                                                     otherPlace,
	"place: compare: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E >= 32 ? r / 32 * 3 * bank : 0) + c;":                                                otherPlace,
	"place: constant: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 31 ? r / 32 * 3 * bank : 0) + c;":                                                otherPlace,
	"place: constant: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 31 * 3 * bank : 0) + c;":                                                otherPlace,
	"place: sign: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 32 + 3 * bank : 0) + c;":                                                    otherPlace,
	"place: constant: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 32 * 2 * bank : 0) + c;":                                                otherPlace,
	"place: sign: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 32 * 3 + bank : 0) + c;":                                                    otherPlace,
	"place: constant: return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 0) + c; → return r * (E + bank) + (E > 32 ? r / 32 * 3 * bank : 1) + c;":                                                otherPlace,
	"transpose_2d: constant: threadgroup T tile[E * (E + 4)]; → threadgroup T tile[E * (E + 3)];":                                                                                                   "the array has room for every dtype's padding, float32's is one column",
	"transpose_2d: compare: constexpr size_t x_lanes = N < E / CX ? N : E / CX; → constexpr size_t x_lanes = N <= E / CX ? N : E / CX;":                                                             betweenEquals,
	"transpose_2d: compare: constexpr size_t y_lanes = N < E / CY ? N : E / CY; → constexpr size_t y_lanes = N <= E / CY ? N : E / CY;":                                                             betweenEquals,
	"transpose_2d: compare: for (size_t r0 = size_t(group.y) * E; r0 < rows; r0 += size_t(groups.y) * E) { → for (size_t r0 = size_t(group.y) * E; r0 <= rows; r0 += size_t(groups.y) * E) {":       emptyTile,
	"transpose_2d: compare: for (size_t c0 = size_t(group.x) * E; c0 < columns; c0 += size_t(groups.x) * E) { → for (size_t c0 = size_t(group.x) * E; c0 <= columns; c0 += size_t(groups.x) * E) {": emptyTile,
	"transpose_2d_direct: swap operands: const uint share = (elements + threads - 1) / threads; → const uint share = ((1) - (elements + threads)) / threads;":                                       threadZero,
	"transpose_2d_direct: sign: const size_t end = min(begin + share, size_t(elements)); → const size_t end = min(begin - share, size_t(elements));":                                                threadZero,
	"transpose_2d_direct: constant: const uint share = (elements + threads - 1) / threads; → const uint share = (elements + threads - 0) / threads;":                                                largerShare,

	"load: constant: for (int j = 0; j < Tile<LANES, M, C>::COLUMNS; j++) { → for (int j = 1; j < Tile<LANES, M, C>::COLUMNS; j++) { (2)": notStored,
	"load: constant: tile.set(i, j, 0); → tile.set(i, j, 1);":                                                                             notStored,
	"row_max: constant: for (int j = 1; j < Tile<32, M, C>::COLUMNS; j++) { → for (int j = 0; j < Tile<32, M, C>::COLUMNS; j++) {":        "the largest of a number and itself",
	"row_max: constant: for (int k = 1; k < 8; k++) { → for (int k = 0; k < 8; k++) {":                                                    "the largest of a number and itself",
	"turn: constant: const int pack = C % 8 == 0 ? 8 : 1; → const int pack = C % 7 == 0 ? 8 : 1;":                                         "no row is packed: elements move one by one",
	"turn: constant: const int pack = C % 8 == 0 ? 8 : 1; → const int pack = C % 8 == 1 ? 8 : 1;":                                         "no row is packed: elements move one by one",
	"add_product: constant: simdgroup_matrix<float, 8, 8> products[M / 8]; → simdgroup_matrix<float, 8, 8> products[M / 7];":              sevenths,
	"add_product: constant: for (int m = 0; m < M / 8; m++) { → for (int m = 0; m < M / 7; m++) {":                                        sevenths,
	"add_product: constant: for (int m = 0; m < M / 8; m++) { → for (int m = 0; m < M / 7; m++) { (2)":                                    sevenths,
	"add_product: constant: for (int m = 0; m < M / 8; m++) { → for (int m = 0; m < M / 7; m++) { (3)":                                    sevenths,

	"has_all: compare: return key >= query + m - 1 + low && key + n - 1 <= query + high && key + n <= keys; → return key > query + m - 1 + low && key + n - 1 <= query + high && key + n <= keys;":                                stricterAll,
	"has_all: constant: return key >= query + m - 1 + low && key + n - 1 <= query + high && key + n <= keys; → return key >= query + m - 0 + low && key + n - 1 <= query + high && key + n <= keys;":                              stricterAll,
	"has_all: constant: return key >= query + m - 1 + low && key + n - 1 <= query + high && key + n <= keys; → return key >= query + m - 1 + low && key + n - 0 <= query + high && key + n <= keys;":                              stricterAll,
	"has_all: compare: return key >= query + m - 1 + low && key + n - 1 <= query + high && key + n <= keys; → return key >= query + m - 1 + low && key + n - 1 < query + high && key + n <= keys;":                                stricterAll,
	"has_all: compare: return key >= query + m - 1 + low && key + n - 1 <= query + high && key + n <= keys; → return key >= query + m - 1 + low && key + n - 1 <= query + high && key + n < keys;":                                stricterAll,
	"hide: drop guard: if (!band.has_all(query, TRANSPOSED ? N : M, key, TRANSPOSED ? M : N)) { → if (true) {":                                                                                                                    stricterAll,
	"has_some: constant: return key + n - 1 >= query + low && key <= query + m - 1 + high && query < queries && key < keys; → return key + n - 0 >= query + low && key <= query + m - 1 + high && query < queries && key < keys;": nobodySees,
	"has_some: constant: return key + n - 1 >= query + low && key <= query + m - 1 + high && query < queries && key < keys; → return key + n - 1 >= query + low && key <= query + m - 0 + high && query < queries && key < keys;": nobodySees,
	"has_some: compare: return key + n - 1 >= query + low && key <= query + m - 1 + high && query < queries && key < keys; → return key + n - 1 >= query + low && key <= query + m - 1 + high && query <= queries && key < keys;": nobodySees,
	"has_some: compare: return key + n - 1 >= query + low && key <= query + m - 1 + high && query < queries && key < keys; → return key + n - 1 >= query + low && key <= query + m - 1 + high && query < queries && key <= keys;": nobodySees,
	"end_query: function: return min(min(key + n, keys) - low, queries); → return min(max(key + n, keys) - low, queries);":                                                                                                        nobodySees,
	"of: compare: return unit == 1 ? fma(product, scale, 0.0f) : product * (scale * unit); → return unit != 1 ? fma(product, scale, 0.0f) : product * (scale * unit);":                                                            "the same number, unless a compiler joins it with another operation",
	"of: constant: return unit == 1 ? fma(product, scale, 0.0f) : product * (scale * unit); → return unit == 0 ? fma(product, scale, 0.0f) : product * (scale * unit);":                                                           "the same number, unless a compiler joins it with another operation",
	"attention_forward: compare: for (int key = first; key < end; key += N) { → for (int key = first; key <= end; key += N) {":                                                                                                    nobodySees,
	"attention_delta: compare: for (int key = first; key < end; key += N) { → for (int key = first; key <= end; key += N) {":                                                                                                      nobodySees,
	"attention_dq: compare: for (int key = first; key < end; key += N) { → for (int key = first; key <= end; key += N) {":                                                                                                         nobodySees,
	"attention_dmask: compare: if (key >= end || key + N <= first) { → if (key > end || key + N <= first) {":                                                                                                                      nobodySees,
	"attention_dmask: compare: if (key >= end || key + N <= first) { → if (key >= end || key + N < first) {":                                                                                                                      nobodySees,
	"first_query: constant: return max(key - high, 0); → return max(key - high, 1);":                                                                                                                                              "rounded down to whole panels, 1 is 0",
	"seen_by: constant: if (sizes.sequences > 0) { → if (sizes.sequences > 1) {":                                                                                                                                                  "the only sequence is the whole length",
	"seen_by: constant: return {0, 0}; → return {1, 0};":                                                                                                                                                                           "no keys either",
	"attention_forward: compare: if (block >= sequence.queries) { → if (block > sequence.queries) {":                                                                                                                               noOwnRows,
	"attention_delta: compare: if (block >= sequence.queries) { → if (block > sequence.queries) {":                                                                                                                                 noOwnRows,
	"attention_dq: compare: if (block >= sequence.queries) { → if (block > sequence.queries) {":                                                                                                                                    noOwnRows,
	"attention_dkv: compare: if (block >= sequence.keys) { → if (block > sequence.keys) {":                                                                                                                                         noOwnRows,
	"attention_dmask: compare: const int first_batch = sizes.mask_batches > 1 ? mask_batch : 0; → const int first_batch = sizes.mask_batches >= 1 ? mask_batch : 0;":                                                               firstOfOne,
	"attention_dmask: compare: const int first_head = sizes.mask_heads > 1 ? mask_head : 0; → const int first_head = sizes.mask_heads >= 1 ? mask_head : 0;":                                                                       firstOfOne,
	"attention_dmask: constant: const int first_batch = sizes.mask_batches > 1 ? mask_batch : 0; → const int first_batch = sizes.mask_batches > 0 ? mask_batch : 0;":                                                               firstOfOne,
	"attention_dmask: constant: const int first_head = sizes.mask_heads > 1 ? mask_head : 0; → const int first_head = sizes.mask_heads > 0 ? mask_head : 0;":                                                                       firstOfOne,
	"attention_dmask: compare: for (int i = 0; i < Scored::ROWS; i++) { → for (int i = 0; i <= Scored::ROWS; i++) { (3)":                                                                                                           beyondBlock,
	"attention_dmask: constant: const Mask<B> mask = mask_of<false>(mask_values, sizes, {0, 0, 0, 0}, batch, head); → const Mask<B> mask = mask_of<false>(mask_values, sizes, {0, 0, 1, 0}, batch, head);":                         "of a sequence, mask_of reads only where it begins",
	"attention_dmask: constant: const Mask<B> mask = mask_of<false>(mask_values, sizes, {0, 0, 0, 0}, batch, head); → const Mask<B> mask = mask_of<false>(mask_values, sizes, {0, 0, 0, 1}, batch, head);":                         "of a sequence, mask_of reads only where it begins",
	"attention_dmask: sign: keys.begin(key_memory, k + key_row * D, sizes.keys - key, thread_index, LANES * SIMDGROUPS); → keys.begin(key_memory, k + key_row * D, sizes.keys - key, thread_index, LANES + SIMDGROUPS);":           unusedThreads,
	"attention_dmask: constant: keys.turn(k, 0, thread_index, LANES * SIMDGROUPS); → keys.turn(k, 1, thread_index, LANES * SIMDGROUPS);":                                                                                           nextPanel,
	"attention_dmask: sign: values.begin(value_memory, v + key_row * DV, sizes.keys - key, thread_index, LANES * SIMDGROUPS); → values.begin(value_memory, v + key_row * DV, sizes.keys - key, thread_index, LANES + SIMDGROUPS);": unusedThreads,
	"attention_dmask: constant: values.turn(v, 0, thread_index, LANES * SIMDGROUPS); → values.turn(v, 1, thread_index, LANES * SIMDGROUPS);":                                                                                       nextPanel,
}

const (
	unusedThreads   = "only CUDA's panels copy when they begin"
	nextPanel       = "the next panel begins anew"
	otherSlots      = "the slots that rows alternate between change places"
	oneOfSeveral    = "one simdgroup takes the way of several, through its slot"
	wholePack       = "a whole pack at the row's end takes the way of a short one"
	shortPack       = "a pack on this way has fewer than C elements before the row's end"
	weightNotUsed   = "the input in the weight's place is read, and what it gives not used"
	sumsNotUsed     = "sums for a weight that there is not, which are not written"
	otherSums       = "another number of sums for a row: rounding and registers"
	ownMean         = "with one element in every sum, its mean is the element"
	fewerRows       = "takes 31 rows at a time"
	beyondRow       = "sums beyond the row's end, which nobody reads"
	noRows          = "one more turn, without rows"
	nobodyTakes     = "stands for a row behind the last, which nobody takes"
	rowEnds         = "the R packs of all threads have the row, so the width ends the loop"
	threadZero      = "thread 0 does the work of all: shares wrap around"
	largerShare     = "shares are larger, by one at most, and later threads have less"
	noTokens        = "the run of a slot without tokens is [0, 0), and nothing is added for it"
	oneByOne        = "adds the tokens of some segments one by one, where their sum could be had"
	otherPlace      = "elements of the tile lie elsewhere, each still in a place of its own"
	betweenEquals   = "chooses between equals"
	allInRow        = "asks of every element whether it is in the row"
	leftOut         = "the sum of a row that is left out, which nobody reads"
	readAgain       = "begins with a block behind the row, and reads all that have elements again"
	emptyTile       = "one more tile, without elements"
	stricterAll     = "compares the positions of a tile that is seen in full, too"
	nobodySees      = "one more tile, of which nobody sees a key"
	noOwnRows       = "a block without rows of its own stores nothing"
	productsNotUsed = "keeps products that only a soft cap needs"
	firstOfOne      = "the index of the only one is 0"
	beyondBlock     = "an element behind the block, which the guard leaves out"
	notStored       = "in rows behind the last, of which nothing is stored"
	sevenths        = "M is 8 or 16, of which a seventh is an eighth"
)

// missedMutants are wrong, and nothing shows it: each with the reason.
var missedMutants = map[string]string{
	"read_exponents: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) {":                                                                                            beyondArray,
	"keep_larger: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) {":                                                                                               beyondArray,
	"keep_larger: shift index: maxima[k] = x[k] > maxima[k] ? x[k] : maxima[k]; → maxima[(k) + 1] = x[k] > maxima[k] ? x[k] : maxima[k];":                                                nearMaximum,
	"softmax_forward: sign: for (size_t column = first + R * stride; column < width; column += stride) { → for (size_t column = first - R * stride; column < width; column += stride) {": nearMaximum,
	"softmax_forward: sign: for (size_t column = first + R * stride; column < width; column += stride) { → for (size_t column = first + R * stride; column < width; column -= stride) {": nearMaximum,
	"softmax_forward: constant: for (int k = 0; k < C; k++) { → for (int k = 1; k < C; k++) {":                                                                                           "the pattern in place of a first maximum is below all numbers here",
	"softmax_forward: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p < R && first + p * stride <= width; p++) { (2)":                           "the exponential of the pattern in place of a pack is 0",
	"softmax_forward: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (3)":                           beyondArray,

	"of: sign: return unit == 1 ? fma(product, scale, 0.0f) : product * (scale * unit); → return unit == 1 ? fma(product, scale, 0.0f) : product + (scale * unit);": ofHalves,
	"of: sign: return unit == 1 ? fma(product, scale, 0.0f) : product * (scale * unit); → return unit == 1 ? fma(product, scale, 0.0f) : product * (scale + unit);": ofHalves,

	"packed: compare: return width % C == 0 && reinterpret_cast<size_t>(p) % alignof(Pack<T, C>) == 0; → return width % C == 0 && reinterpret_cast<size_t>(p) % alignof(Pack<T, C>) != 0;": "loads packs from addresses that do not suit them, where no trial has a buffer and a processor would not mind",

	"add_squares: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) {":                                                                                       beyondArray,
	"add_products: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) {":                                                                                      beyondArray,
	"gradient: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) {":                                                                                          beyondArray,
	"clear: compare: for (int k = 0; k < C; k++) { → for (int k = 0; k <= C; k++) {":                                                                                             beyondArray,
	"transpose_2d_blocks: sign: read<C>(x + start + (r + i) * columns, c, c + C, is_packed, block[i]); → read<C>(x + start + (r + i) * columns, c, c - C, is_packed, block[i]);": allPacked,
	"transpose_2d_blocks: sign: write<C>(y + start + (c + k) * rows, r, r + C, is_packed, column); → write<C>(y + start + (c + k) * rows, r, r - C, is_packed, column);":         allPacked,

	"softmax_backward: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (2)":     beyondArray,
	"rms_norm_residual: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) {":        beyondArray,
	"rms_norm_backward_dx: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) {":     beyondArray,
	"rms_norm_backward_dx: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (3)": beyondArray,
	"layer_norm_bwd_input: compare: for (int p = 0; p < R && first + p * stride < width; p++) { → for (int p = 0; p <= R && first + p * stride < width; p++) { (3)": beyondArray,
	"column_sum: compare: for (int j = 0; j < Tile<32, M, C>::COLUMNS; j++) { → for (int j = 0; j <= Tile<32, M, C>::COLUMNS; j++) {":                               beyondArray,
	"column_sum: compare: for (int j = 0; j < C; j++) { → for (int j = 0; j <= C; j++) {":                                                                           beyondArray,

	"statistics_of: shift index: sums.x += fma(counts.n[l], moments.shift[l], moments.sum[l]); → sums.x += fma(counts.n[l], moments.shift[l], moments.sum[(l) + 1]);": "the mean is wrong, and the next sum finds the error and takes it off; of the index nobody knows, for fma takes a reference",
	"statistics_of: sign: const float squares = fma(-central.x, error, central.y); → const float squares = fma(+central.x, error, central.y);":                        "the square of the mean's rounding, which shows where the mean is some 100,000 times the deviation",
}

const nearMaximum = "a number near the largest does as well: it shows where elements are 88 apart"

// What the tests of the operations notice, which have arrays of 16 bits and at any address.
const (
	ofHalves  = "is for 16 bits; trials are in float32"
	allPacked = "is for addresses that do not suit packs; those of a trial do"
)

const beyondArray = "moves elements behind an array of the thread's own, through a pointer, whose bounds no compiler knows"
