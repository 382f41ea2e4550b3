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
	replaced  bool   // Whether yardstick is that of another.
	message   string // What is wrong with MLX's gradient, or "".
}

// peersOf measures MLX's gradient of a case, a peer for each target.
//
// In f16 and bf16 MLX's own gradient may overflow or cancel to nothing where arithmetic in f32 does
// not. Its errors are no measure then: infinite ones would allow ours everything. So where it fails,
// another takes its place: the gradient of the composition in the same dtype, if there is one; else, or
// where that fails too, the gradient in float32 of the same, already rounded, inputs.
func peersOf(c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	if reason := c.unsafe(); reason != "" {
		return peersWithout(reason, c, draws, dtype, truth)
	}
	peers := slices.Repeat([]peer{absent(report.MLXNone, "no MLX gradient to compare with")}, len(truth))
	if c.MLX != nil {
		peers = measurePeers(c.MLX, c, draws, dtype, truth)
	}
	wide := widened(draws)
	if c.Composed != nil {
		if c.MLX != nil {
			convict(peers, c, wide, truth)
		}
		replaceFailing(peers, "a composition of MLX's functions", func() []peer {
			return measurePeers(c.Composed, c, draws, dtype, truth)
		})
	}
	if dtype != mlxc.Float32 {
		f, name := c.MLX, "MLX's gradient in float32"
		if c.Composed != nil {
			f, name = c.Composed, "a composition of MLX's functions in float32"
		}
		if f == nil {
			return peers
		}
		replaceFailing(peers, name, func() []peer { return measurePeers(f, c, wide, mlxc.Float32, truth) })
	}
	return peers
}

// peersWithout are the peers where MLX must not be run on the current device for a reason. If it can be
// run at all, its gradient on the CPU, which is the same function in the same dtype, judges ours: the
// floor alone asks for more than float32 can give where the problem is badly conditioned.
func peersWithout(reason string, c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := slices.Repeat([]peer{absent(report.MLXUnsafe, reason)}, len(truth))
	if c.MLX != nil {
		replaceFailing(peers, "MLX's gradient on the CPU", func() (onCPU []peer) {
			_ = mlxc.WithDevice(mlxc.CPU, func() { onCPU = measurePeers(c.MLX, c, draws, dtype, truth) }) // Every build of MLX has the CPU.
			return onCPU
		})
	}
	return peers
}

// unsafe says why MLX must not be run on the current device, or "".
func (c Case) unsafe() string {
	switch {
	case c.Unsafe != "":
		return c.Unsafe
	case mlxc.CurrentBackend() != mlxc.BackendCUDA:
		return ""
	case c.empty():
		return "MLX's CUDA backend launches kernels without threads for arrays without elements: they fail, and all that come after them"
	}
	return c.UnsafeOnCUDA
}

// replaceFailing puts the yardsticks of others in the place of those that are none.
func replaceFailing(peers []peer, name string, others func() []peer) {
	failing := func(p peer) bool { return p.verdict != report.MLXSound && !p.replaced }
	if !slices.ContainsFunc(peers, failing) {
		return
	}
	for i, other := range others() {
		if failing(peers[i]) && other.verdict == report.MLXSound {
			peers[i].yardstick, peers[i].replaced = other.errors, true
			peers[i].message += "; ours is judged by " + name
		}
	}
}

// convict finds the targets for which MLX computes another function than the operation: in float32 its
// gradient is off by more than rounding explains, and that of the composition is not.
func convict(peers []peer, c Case, wide []operands, truth [][]float64) {
	mlx := measurePeers(c.MLX, c, wide, mlxc.Float32, truth)
	var composed []peer
	for i := range peers {
		if peers[i].verdict != report.MLXSound || !accuracy.Astray(mlx[i].errors, truth[i]) {
			continue
		}
		if composed == nil {
			composed = measurePeers(c.Composed, c, wide, mlxc.Float32, truth)
		}
		if composed[i].verdict == report.MLXSound && !accuracy.Astray(composed[i].errors, truth[i]) {
			peers[i].verdict, peers[i].message = report.MLXWrong, "another function: far off even in float32"
		}
	}
}

// absent is the peer where MLX gives no result.
func absent(verdict report.MLXVerdict, message string) peer {
	nan := accuracy.Errors{Max: math.NaN(), Mean: math.NaN()}
	return peer{errors: nan, verdict: verdict, message: message}
}

// measurePeers measures the gradient that MLX gives f.
func measurePeers(f mlxc.Func, c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := make([]peer, len(truth))
	results, err := gradients(f, c, draws, dtype)
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
