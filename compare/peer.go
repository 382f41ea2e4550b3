package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare/internal/accuracy"
	"github.com/mlxgrad/mlxgrad/compare/internal/arrays"
	"github.com/mlxgrad/mlxgrad/compare/report"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// peer describes MLX's gradient of one target.
type peer struct {
	errors accuracy.Errors // in the dtype under test; NaN if there is no result
	// reference has the errors that ours is judged by: MLX's, or another gradient's if MLX's is not valid.
	reference   accuracy.Errors
	verdict     report.MLXVerdict
	substituted bool   // reference has the errors of another gradient
	message     string // the fault of MLX's gradient, or ""
}

// peersOf measures MLX's gradient of a case and returns a peer for each target.
//
// MLX's gradient is not always valid. In float16 and bfloat16 it may overflow, or cancel to zero, where float32
// arithmetic does not. Its errors then cannot be the reference: infinite errors would accept any result of ours. The
// reference is then the first valid one of
//   - the gradient of Composed in the same dtype;
//   - the gradient of Composed, or of MLX if Composed is nil, in float32 from the same rounded inputs;
//   - the truth at perturbed inputs (see Case.rounded).
//
// peersOnCPU replaces the first two if MLX's function must not run on the device.
func peersOf(c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := implementations(c, draws, dtype, truth)
	substitute(peers, byRounding, func() []peer {
		results, err := c.rounded(draws, c.targets(dtype))
		return roundingPeers(c, results, truth, err)
	})
	return peers
}

const byRounding = "the oracle with float32 rounding errors"

// roundingPeers measures how far rounding errors of float32 arithmetic move the truth to results (see rounded). A target
// whose errors are not usable gets no valid peer.
func roundingPeers(c Case, results, truth [][]float64, err error) []peer {
	peers := slices.Repeat([]peer{missingPeer(report.MLXNone, "")}, len(truth))
	if err != nil {
		return peers // the same function computed the truth without an error
	}
	results = c.ignoreUndefined(results, truth)
	for i := range peers {
		if errs := accuracy.Measure(results[i], truth[i]); errs.Usable() {
			peers[i] = peer{errors: errs, reference: errs, verdict: report.MLXValid}
		}
	}
	return peers
}

// atRandomInputs returns implementations without the errors of invalid ones.
func atRandomInputs(c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := implementations(c, draws, dtype, truth)
	for i, p := range peers {
		if p.verdict != report.MLXValid && !p.substituted {
			peers[i].reference = missingPeer(p.verdict, "").errors
		}
	}
	return peers
}

// composedInFloat32 measures the gradient of Composed, which is the truth in float64, in float32. It has the errors of
// terms that cancel at every input, which no change of the inputs shows.
func composedInFloat32(c Case, draws []operands, truth [][]float64) []peer {
	peers := measurePeers(c.Composed, c, widened(draws), mlxc.Float32, truth)
	for i := range peers {
		if accuracy.NoBetterThanZero(peers[i].errors, truth[i]) {
			peers[i].verdict = report.MLXWrong
		}
	}
	return peers
}

// afterRounding measures how far rounding errors of float32 arithmetic move the truth, with one pattern of signs.
func afterRounding(c Case, draws []operands, dtype mlxc.DType, truth [][]float64, pattern int) []peer {
	results, err := c.roundedAwayFromJumps(draws, c.targets(dtype), truth, pattern)
	return roundingPeers(c, results, truth, err)
}

// raise raises the reference errors of peers to the errors of other valid peers.
func raise(peers, others []peer) {
	for i, other := range others {
		switch ref := &peers[i].reference; {
		case other.verdict != report.MLXValid:
		case !ref.Usable():
			*ref = other.errors
		default:
			ref.Max, ref.Mean = max(ref.Max, other.errors.Max), max(ref.Mean, other.errors.Mean)
		}
	}
}

// implementations measures the gradients of MLX and Composed.
func implementations(c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	if reason := c.UnsafeReason(); reason != "" {
		return peersOnCPU(reason, c, draws, dtype, truth)
	}
	peers := slices.Repeat([]peer{missingPeer(report.MLXNone, "no MLX gradient to compare with")}, len(truth))
	if c.MLX != nil {
		peers = measurePeers(c.MLX, c, draws, dtype, truth)
	}
	wide := widened(draws)
	composed := c.Composed
	if c.Forward == nil {
		composed = nil // it is the truth
	}
	if composed != nil {
		if c.MLX != nil {
			markWrongFunction(peers, c, wide, truth)
		}
		substitute(peers, "a composition of MLX's functions", func() []peer {
			return measurePeers(composed, c, draws, dtype, truth)
		})
	}
	if dtype != mlxc.Float32 {
		f, name := c.MLX, "MLX's gradient in float32"
		if composed != nil {
			f, name = composed, "a composition of MLX's functions in float32"
		}
		if f == nil {
			return peers
		}
		substitute(peers, name, func() []peer { return measurePeers(f, c, wide, mlxc.Float32, truth) })
	}
	return peers
}

// peersOnCPU returns the peers of a case whose MLX function must not run on the current device. The reference is then
// MLX's gradient on the CPU, if the case has one: the same function in the same dtype. On badly conditioned problems
// float32 arithmetic cannot keep its errors below the floor of the rule, so the floor alone would be too strict.
func peersOnCPU(reason string, c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := slices.Repeat([]peer{missingPeer(report.MLXUnsafe, reason)}, len(truth))
	if c.MLX != nil {
		substitute(peers, "MLX's gradient on the CPU", func() (onCPU []peer) {
			// Every build of MLX has the CPU, so there is no error.
			_ = mlxc.WithDevice(mlxc.CPU, func() { onCPU = measurePeers(c.MLX, c, draws, dtype, truth) })
			return onCPU
		})
	}
	return peers
}

// UnsafeReason says why MLX's function must not run on the current device. It is "" if it may run.
func (c Case) UnsafeReason() string {
	switch {
	case c.Unsafe != "":
		return c.Unsafe
	case mlxc.CurrentBackend() != mlxc.BackendCUDA:
		return ""
	case c.empty():
		return "MLX's CUDA backend launches kernels with an empty grid for arrays without elements; " +
			"this launch and all later ones fail"
	}
	return c.UnsafeOnCUDA
}

// substitute replaces the reference of each peer that is not valid by the errors of another gradient, if that gradient
// is valid. It calls others only if a reference is missing.
func substitute(peers []peer, name string, others func() []peer) {
	lacking := func(p peer) bool { return p.verdict != report.MLXValid && !p.substituted }
	if !slices.ContainsFunc(peers, lacking) {
		return
	}
	for i, other := range others() {
		if lacking(peers[i]) && other.verdict == report.MLXValid {
			peers[i].reference, peers[i].substituted = other.errors, true
			peers[i].message += "; ours is judged by " + name
		}
	}
}

// markWrongFunction marks the targets for which MLX's function differs from the case's: MLX's float32 gradient is off
// by more than rounding, and the composition's is not.
func markWrongFunction(peers []peer, c Case, wide []operands, truth [][]float64) {
	mlx := measurePeers(c.MLX, c, wide, mlxc.Float32, truth)
	var composed []peer
	for i := range peers {
		if peers[i].verdict != report.MLXValid || !accuracy.OffByMoreThanRounding(mlx[i].errors, truth[i]) {
			continue
		}
		if composed == nil {
			composed = measurePeers(c.Composed, c, wide, mlxc.Float32, truth)
		}
		if composed[i].verdict == report.MLXValid && !accuracy.OffByMoreThanRounding(composed[i].errors, truth[i]) {
			peers[i].verdict, peers[i].message = report.MLXWrong, "MLX computes another function: off by more than rounding in float32"
		}
	}
}

// missingPeer returns the peer for a target without a result of MLX.
func missingPeer(verdict report.MLXVerdict, message string) peer {
	nan := accuracy.Errors{Max: math.NaN(), Mean: math.NaN()}
	return peer{errors: nan, verdict: verdict, message: message}
}

// measurePeers measures the gradient of f, MLX's function or a composition of MLX's functions.
func measurePeers(f mlxc.Func, c Case, draws []operands, dtype mlxc.DType, truth [][]float64) []peer {
	peers := make([]peer, len(truth))
	results, err := gradients(f, c, draws, dtype)
	if err == nil {
		results = c.ignoreUndefined(results, truth)
	}
	for i, t := range c.targets(dtype) {
		if err != nil {
			peers[i] = missingPeer(report.MLXRefuses, err.Error())
			continue
		}
		errs := accuracy.Measure(results[i], truth[i])
		peers[i] = peer{errors: errs, reference: errs, verdict: report.MLXValid}
		narrow := arrays.Spacing(t.dtype) > arrays.Spacing(mlxc.Float32)
		switch {
		case errs.Misplaced > 0:
			peers[i].message = fmt.Sprintf("NaN or infinity out of place in %d of %d elements", errs.Misplaced, len(truth[i]))
		case narrow && accuracy.NoBetterThanZero(errs, truth[i]):
			peers[i].message = "no better than zeros"
		default:
			continue
		}
		peers[i].verdict = report.MLXWrong
	}
	return peers
}

// widened returns the draws with every floating-point array converted to float32, which changes no value.
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
