package suite

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// lossCase is a cross-entropy of targets of any shape over v classes. The zero value of any other field is the default:
// mean reduction, unsigned targets, dense arrays, normal logits.
type lossCase struct {
	targets []int
	v       int
	lossOptions
	signed  bool
	layouts layouts
	values  compare.Values // of the logits
	label   string         // the name of values
	draw    compare.Values // of the targets, instead of the options' targets
	// outOfRange adds targets that are not classes. The operation refuses them only in evaluated arrays, so ours is not.
	outOfRange bool
	// trained makes the cotangent 1, as in training. The operation has a separate path for it.
	trained bool
	// caps, if not 0, is the absolute value of all logits in units of the soft cap. The cotangent compensates the slope
	// of the cap, so that gradients stay in the range of float16.
	caps float64
}

// lossOptions are the options of a loss.
type lossOptions struct {
	reduction                      ops.Reduction
	ignore, smooth, zLoss, softCap bool
}

// The values of the options. Each changes the first digit of the loss of normal logits.
const (
	smoothing = 0.1
	zLoss     = 0.02
	softCap   = 2
)

func crossEntropy() compare.Op {
	op := compare.Op{Name: "cross-entropy"}
	add := func(c lossCase) { op.Cases = append(op.Cases, c.ofLogits()) }

	all := everyLossOption()
	for _, o := range all {
		add(lossCase{targets: []int{19}, v: 33, lossOptions: o})
	}
	for _, v := range []int{1, 2, 7, 31, 32, 33, 127, 128, 129, 1000, 4099} {
		for _, rows := range []int{1, 37} {
			add(lossCase{targets: []int{rows}, v: v, lossOptions: lossOptions{reduction: ops.ReductionNone}})
		}
		add(lossCase{targets: []int{5}, v: v})
		add(lossCase{targets: []int{3}, v: v, lossOptions: all[len(all)-1]})
	}
	for _, c := range []lossCase{
		{targets: []int{3}, v: 32003},
		{targets: []int{2}, v: 16384},
		{targets: []int{3}, v: 8192},
		{targets: []int{199}, v: 1000},
		{targets: []int{4099}, v: 7},
	} {
		c.reduction = ops.ReductionNone // a reduction gives few results and therefore many draws
		add(c)
		c.smooth, c.zLoss, c.softCap = true, true, true
		add(c)
	}
	add(lossCase{targets: []int{1}, v: 32003})
	add(lossCase{targets: []int{0}, v: 33})
	add(lossCase{targets: []int{2, 0}, v: 7, lossOptions: lossOptions{reduction: ops.ReductionNone}})
	add(lossCase{targets: []int{1031}, v: 2, lossOptions: lossOptions{reduction: ops.ReductionSum}})
	for _, c := range []lossCase{
		{targets: []int{199}, v: 33},
		{targets: nil, v: 33},
		{targets: []int{2, 33}, v: 31},
		{targets: []int{5, 1}, v: 129},
		{targets: []int{2, 3, 7}, v: 33},
	} {
		add(c)
		c.reduction = ops.ReductionNone
		add(c)
	}
	for _, reduction := range reductions() {
		o := lossOptions{reduction: reduction, ignore: true}
		add(lossCase{targets: []int{37}, v: 33, lossOptions: o, signed: true})
		add(lossCase{targets: []int{37}, v: 33, lossOptions: o, draw: equalTo(ignoredClass(33)), label: "all ignored"})
		add(
			lossCase{
				targets:     []int{37},
				v:           33,
				lossOptions: lossOptions{reduction: reduction},
				signed:      true,
				draw:        equalTo(-100),
				label:       "all negative",
			},
		)
		add(lossCase{targets: []int{2, 3}, v: 1000, lossOptions: lossOptions{reduction: reduction}, signed: true})
	}
	for _, layout := range everyLayout() {
		for _, operand := range []string{"x", "t", "dloss"} {
			c := lossCase{targets: []int{5, 9}, v: 33, layouts: layouts{operand: layout}}
			c.reduction, c.ignore = ops.ReductionNone, true
			add(c)
		}
		add(lossCase{targets: []int{5}, v: 129, layouts: layouts{"x": layout}})
	}
	for _, v := range []int{129, 4099} {
		for _, values := range []struct {
			values compare.Values
			label  string
		}{
			{compare.EqualRows, "equal rows"},
			{compare.Normal(1e4), "huge"},
			{compare.Normal(1e-4), "tiny"},
			{compare.Far, "far from 0"},
			{compare.Spread, "spread"},
			{compare.Spike, "spike"},
			{compare.Zeros, "zero"},
		} {
			c := lossCase{targets: []int{3}, v: v, values: values.values, label: values.label}
			// A mean needs many draws, which take long with many classes. For equal rows and zeros they have one mean.
			if v == 129 && values.label != "equal rows" && values.label != "zero" {
				add(c)
			}
			c.reduction, c.targets = ops.ReductionNone, []int{37}
			add(c)
			c.smooth, c.zLoss, c.softCap = true, true, true
			add(c)
		}
		// Only one row has the NaN. A reduction would spread it to all rows.
		c := lossCase{
			targets:     []int{37},
			v:           v,
			lossOptions: lossOptions{reduction: ops.ReductionNone},
			values:      compare.NormalExcept(math.NaN()),
			label:       "one NaN",
		}
		add(c)
		c.values, c.label = compare.NormalExcept(math.Inf(-1)), "one -infinity" // as for a class that is left out
		add(c)
	}
	for _, signed := range []bool{false, true} {
		o := lossOptions{reduction: ops.ReductionNone, ignore: true}
		add(lossCase{targets: []int{37}, v: 33, lossOptions: o, signed: signed, outOfRange: true})
	}
	for _, c := range trainedLosses() {
		add(c)
	}
	// 1 − tanh² loses 7, 12, 22 and all 24 bits of float32 here.
	for _, caps := range []float64{3, 5, 8, 20} {
		for _, c := range saturatedLosses(caps) {
			add(c)
		}
		add(lossCase{targets: []int{37}, v: 4099, lossOptions: lossOptions{reduction: ops.ReductionNone, softCap: true}, caps: caps})
	}
	return op
}

// capSlope returns the derivative of the soft cap at a number of caps.
func capSlope(caps float64) float64 { return math.Pow(math.Cosh(caps), -2) }

// saturatedLosses returns a sum and a case without reduction, which run different kernels, with logits of several caps.
func saturatedLosses(caps float64) []lossCase {
	o := lossOptions{smooth: true, zLoss: true, softCap: true}
	sum, none := lossCase{
		targets:     []int{5},
		v:           129,
		lossOptions: o,
		caps:        caps,
	}, lossCase{
		targets:     []int{37},
		v:           129,
		lossOptions: o,
		caps:        caps,
	}
	sum.reduction, none.reduction = ops.ReductionSum, ops.ReductionNone
	return []lossCase{sum, none}
}

// trainedLosses returns means and sums with cotangent 1, without options and with all.
func trainedLosses() []lossCase {
	var cases []lossCase
	for _, reduction := range []ops.Reduction{ops.ReductionMean, ops.ReductionSum} {
		plain := lossOptions{reduction: reduction}
		all := lossOptions{reduction: reduction, ignore: true, smooth: true, zLoss: true, softCap: true}
		for _, o := range []lossOptions{plain, all} {
			for _, v := range []int{33, 129, 4099} {
				cases = append(cases, lossCase{targets: []int{19}, v: v, lossOptions: o, trained: true})
			}
		}
	}
	return cases
}

func reductions() []ops.Reduction {
	return []ops.Reduction{ops.ReductionMean, ops.ReductionSum, ops.ReductionNone}
}

// everyLossOption lists all combinations; the last has all options and no reduction.
func everyLossOption() []lossOptions {
	var out []lossOptions
	for _, reduction := range reductions() {
		for bits := range 16 {
			out = append(out, lossOptions{
				reduction: reduction, ignore: bits&1 != 0, smooth: bits&2 != 0, zLoss: bits&4 != 0, softCap: bits&8 != 0,
			})
		}
	}
	return out
}

func (c lossCase) ofLogits() compare.Case {
	exact := c.exactConfig()
	return compare.Case{
		Name: c.name(dimensions(append(slices.Clone(c.targets), c.v))),
		Inputs: []compare.Input{
			{Name: "x", Shape: append(slices.Clone(c.targets), c.v), Layout: c.layouts["x"], Values: c.logits()},
			c.targetsInput(),
		},
		Outputs: []compare.Output{c.loss()},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{oracle.CrossEntropy(in[0], in[1], exact)}
			},
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{oracle.CrossEntropyVJP(in[0], in[1], exact, ct[0])}
			},
		},
		Ours: c.ours(func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{ops.CrossEntropy(in[0], in[1], c.config())}
		}),
		MLX: func(in []*mlxc.Array) []*mlxc.Array {
			return []*mlxc.Array{crossEntropyOfMLX(in[0], in[1], c.config())}
		},
	}
}

// crossEntropyOfMLX is MLX's function, or the definition composed of MLX operations for options that MLX lacks.
func crossEntropyOfMLX(logits, targets *mlxc.Array, cfg ops.CrossEntropyConfig) *mlxc.Array {
	targets = targets.AsType(mlxc.Int32)
	zero := mlxc.Scalar[int32](0)
	counted := targets.GreaterEqual(zero)
	if cfg.IgnoreIndex != nil {
		counted = counted.LogicalAnd(targets.NotEqual(mlxc.Scalar(int32(*cfg.IgnoreIndex))))
	}
	targets = mlxc.Where(counted, targets, zero)
	classes := targets.Less(mlxc.Scalar(int32(logits.Dim(-1))))
	targets = mlxc.Where(classes, targets, zero)

	losses := mlxc.CrossEntropy(logits, targets)
	if cfg.LabelSmoothing > 0 || cfg.ZLoss > 0 || cfg.SoftCap > 0 {
		losses = composedLosses(logits.AsType(mlxc.Float32), targets, cfg)
	}
	// The loss of a target that is no class is NaN. A factor of NaN makes its gradient NaN too.
	losses = losses.Mul(mlxc.Where(classes, mlxc.Scalar[float32](1), mlxc.Scalar(float32(math.NaN()))))
	losses = mlxc.Where(counted, losses, mlxc.Scalar[float32](0))
	switch cfg.Reduction {
	case ops.ReductionNone:
		return losses
	case ops.ReductionSum:
		return losses.Sum()
	default:
		return losses.Sum().Div(counted.AsType(mlxc.Float32).Sum().Maximum(mlxc.Scalar[float32](1)))
	}
}

// composedLosses returns the losses of the rows s in basic MLX operations.
func composedLosses(s, targets *mlxc.Array, cfg ops.CrossEntropyConfig) *mlxc.Array {
	if limit := float64(cfg.SoftCap); limit > 0 {
		s = s.DivScalar(limit).Tanh().MulScalar(limit)
	}
	lse := s.LogSumExp(-1)
	losses := lse.Sub(s.TakeAlongAxis(targets.ExpandDims(-1), -1).Squeeze(-1))
	if e := float64(cfg.LabelSmoothing); e > 0 {
		losses = losses.MulScalar(1 - e).Add(lse.Sub(s.Mean(-1)).MulScalar(e))
	}
	if z := float64(cfg.ZLoss); z > 0 {
		losses = losses.Add(lse.Square().MulScalar(z))
	}
	return losses
}

// loss is the output, which is float32 for every dtype of the logits.
func (c lossCase) loss() compare.Output {
	out := compare.Output{Name: "loss", DType: mlxc.Float32, Layout: c.layouts["dloss"]}
	if c.reduction == ops.ReductionNone {
		out.Shape = c.targets
	}
	if c.trained {
		out.Values = equalTo(1)
	}
	if c.caps > 0 {
		out.Values = times(compare.EitherSign, 1/capSlope(c.caps))
	}
	return out
}

func (c lossCase) logits() compare.Values {
	if c.caps > 0 {
		return around(c.caps * softCap)
	}
	return c.values
}

func (c lossCase) targetsInput() compare.Input {
	in := compare.Input{Name: "t", Shape: c.targets, Kind: indexKind(c.signed), Layout: c.layouts["t"], Values: c.draw}
	if in.Values == nil {
		in.Values = uniformIDs(c.v)
		if c.ignore {
			in.Values = sometimes(in.Values, []float64{float64(ignoredClass(c.v))})
		}
		if c.signed {
			in.Values = sometimes(in.Values, []float64{-1, -100})
		}
		if c.outOfRange {
			in.Values = sometimes(in.Values, []float64{float64(c.v), 1 << 30})
		}
	}
	return in
}

// ours passes f unevaluated targets if some are out of range. The targets are the last argument.
func (c lossCase) ours(f mlxc.Func) mlxc.Func {
	if !c.outOfRange {
		return f
	}
	return func(in []*mlxc.Array) []*mlxc.Array { return withComputed(len(in)-1, f)(in) }
}

// ignoredClass returns the ignored target: a class if v is odd, and v, which is not a class, if v is even.
func ignoredClass(v int) int {
	if v%2 == 0 {
		return v
	}
	return v / 2
}

func equalTo(v int) compare.Values {
	return eachID(func(*rand.Rand, int) int { return v })
}

func (c lossCase) config() ops.CrossEntropyConfig {
	cfg := ops.CrossEntropyConfig{Reduction: c.reduction}
	if c.ignore {
		ignored := ignoredClass(c.v)
		cfg.IgnoreIndex = &ignored
	}
	if c.smooth {
		cfg.LabelSmoothing = smoothing
	}
	if c.zLoss {
		cfg.ZLoss = zLoss
	}
	if c.softCap {
		cfg.SoftCap = softCap
	}
	return cfg
}

// exactConfig is config for the oracle.
func (c lossCase) exactConfig() oracle.CrossEntropyConfig {
	cfg := c.config()
	reduction := map[ops.Reduction]oracle.Reduction{
		ops.ReductionMean: oracle.Mean, ops.ReductionSum: oracle.Sum, ops.ReductionNone: oracle.None,
	}
	return oracle.CrossEntropyConfig{
		Reduction: reduction[cfg.Reduction], IgnoreIndex: cfg.IgnoreIndex,
		LabelSmoothing: float64(cfg.LabelSmoothing), ZLoss: float64(cfg.ZLoss), SoftCap: float64(cfg.SoftCap),
	}
}

// capsNote is the note in a name that gives the size of logits or scores in units of the soft cap.
func capsNote(caps float64) string { return noteIf(caps > 0, fmt.Sprintf("cap%g", caps)) }

func (c lossCase) name(shape string) string {
	return caseName(
		shape,
		map[ops.Reduction]string{ops.ReductionSum: "sum", ops.ReductionNone: "none"}[c.reduction],
		noteIf(c.ignore, "ign"),
		noteIf(c.smooth, "smooth"),
		noteIf(c.zLoss, "z"),
		noteIf(c.softCap, "cap"),
		noteIf(
			c.signed,
			"int32",
		),
		noteIf(c.outOfRange, "out of range"),
		noteIf(c.trained, "ct 1"),
		capsNote(c.caps),
		c.layouts.String(),
		c.label,
	)
}
