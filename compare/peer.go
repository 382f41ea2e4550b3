package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// peer is what MLX's own gradient gives for one target.
type peer struct {
	errors accuracy.Errors // In the dtype under test; NaN if there is no result.
	// yardstick is what ours is judged by: errors, unless they mean that MLX's gradient fails.
	yardstick accuracy.Errors
	verdict   report.MLXVerdict
	message   string // What is wrong with MLX's gradient, or "".
}

// peersOf measures MLX's gradient of a case, a peer for each target.
//
// In f16 and bf16 MLX's own gradient may overflow or cancel to nothing where arithmetic in f32 does
// not. Its errors are no measure then: infinite ones would allow ours everything. So where it fails,
// MLX's gradient in float32 of the same, already rounded, inputs takes its place.
func peersOf(c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	if c.Unsafe != "" {
		return slices.Repeat([]peer{absent(report.MLXUnsafe, c.Unsafe)}, len(truth))
	}
	peers := measurePeers(c, draws, dtype, truth)
	failing := func(p peer) bool { return p.verdict != report.MLXSound }
	if dtype == mlxc.Float32 || !slices.ContainsFunc(peers, failing) {
		return peers
	}
	wide := measurePeers(c, widened(draws), mlxc.Float32, truth)
	for i := range peers {
		if failing(peers[i]) && !failing(wide[i]) {
			peers[i].yardstick = wide[i].errors
			peers[i].message += "; ours is judged by MLX's gradient in float32"
		}
	}
	return peers
}

// absent is the peer where MLX gives no result.
func absent(verdict report.MLXVerdict, message string) peer {
	nan := accuracy.Errors{Max: math.NaN(), Mean: math.NaN()}
	return peer{errors: nan, verdict: verdict, message: message}
}

func measurePeers(c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := make([]peer, len(truth))
	results, err := gradients(c.MLX, c, draws, dtype)
	for i, t := range c.targets(dtype) {
		if err != nil {
			peers[i] = absent(report.MLXRefuses, err.Error())
			continue
		}
		errs := accuracy.Measure(results[i], truth[i])
		peers[i] = peer{errors: errs, yardstick: errs, verdict: report.MLXSound}
		switch {
		case errs.Misplaced > 0:
			peers[i].message = fmt.Sprintf("NaN or infinity out of place in %d of %d elements", errs.Misplaced, len(truth[i]))
		case spacing(t.dtype) > spacing(mlxc.Float32) && accuracy.NoBetterThanZero(errs, truth[i]):
			peers[i].message = "no better than zeros"
		default:
			continue
		}
		peers[i].verdict = report.MLXWrong
	}
	return peers
}

// widened returns the draws with every floating-point array in float32, which changes no value.
func widened(draws []operands) []operands {
	widen := func(os []operand) []operand {
		out := slices.Clone(os)
		for i := range out {
			if out[i].array.DType().IsFloating() {
				out[i].array = out[i].array.AsType(mlxc.Float32)
			}
		}
		return out
	}
	out := make([]operands, len(draws))
	for i, data := range draws {
		out[i] = operands{inputs: widen(data.inputs), cotangents: widen(data.cotangents)}
	}
	return out
}
