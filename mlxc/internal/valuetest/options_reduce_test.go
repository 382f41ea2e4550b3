package valuetest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/stretchr/testify/require"
)

func init() {
	total := func(g []float64) (s float64) {
		for _, v := range g {
			s += v
		}
		return s
	}
	mean := func(g []float64) float64 { return total(g) / float64(len(g)) }
	spread := func(g []float64) (s float64) {
		for _, v := range g {
			s += (v - mean(g)) * (v - mean(g))
		}
		return s
	}
	truth := func(b bool) float64 {
		if b {
			return 1
		}
		return 0
	}
	isZero := func(v float64) bool { return v == 0 }
	isNonzero := func(v float64) bool { return v != 0 }
	type reduction = func(a *mlxc.Array, axes ...int) *mlxc.Array
	for name, c := range map[string]struct {
		plain, keep reduction
		of          func(g []float64) float64
	}{
		"Sum":  {(*mlxc.Array).Sum, (*mlxc.Array).SumKeepDims, total},
		"Mean": {(*mlxc.Array).Mean, (*mlxc.Array).MeanKeepDims, mean},
		"Prod": {(*mlxc.Array).Prod, (*mlxc.Array).ProdKeepDims, func(g []float64) float64 {
			p := 1.0
			for _, v := range g {
				p *= v
			}
			return p
		}},
		"Max": {(*mlxc.Array).Max, (*mlxc.Array).MaxKeepDims, slices.Max[[]float64]},
		"Min": {(*mlxc.Array).Min, (*mlxc.Array).MinKeepDims, slices.Min[[]float64]},
		"Var": {
			(*mlxc.Array).Var, (*mlxc.Array).VarKeepDims,
			func(g []float64) float64 { return spread(g) / float64(len(g)) },
		},
		"Std": {
			(*mlxc.Array).Std, (*mlxc.Array).StdKeepDims,
			func(g []float64) float64 { return math.Sqrt(spread(g) / float64(len(g))) },
		},
		"SampleVar": {
			(*mlxc.Array).SampleVar, (*mlxc.Array).SampleVarKeepDims,
			func(g []float64) float64 { return spread(g) / float64(len(g)-1) },
		},
		"Median": {(*mlxc.Array).Median, (*mlxc.Array).MedianKeepDims, func(g []float64) float64 {
			g = slices.Sorted(slices.Values(g))
			return (g[(len(g)-1)/2] + g[len(g)/2]) / 2
		}},
		"LogSumExp": {(*mlxc.Array).LogSumExp, (*mlxc.Array).LogSumExpKeepDims, func(g []float64) (s float64) {
			for _, v := range g {
				s += math.Exp(v)
			}
			return math.Log(s)
		}},
		"All": {
			(*mlxc.Array).All, (*mlxc.Array).AllKeepDims,
			func(g []float64) float64 { return truth(!slices.ContainsFunc(g, isZero)) },
		},
		"Any": {
			(*mlxc.Array).Any, (*mlxc.Array).AnyKeepDims,
			func(g []float64) float64 { return truth(slices.ContainsFunc(g, isNonzero)) },
		},
		"CountNonzero": {
			(*mlxc.Array).CountNonzero, (*mlxc.Array).CountNonzeroKeepDims,
			func(g []float64) float64 { return float64(len(slices.DeleteFunc(slices.Clone(g), isZero))) },
		},
	} {
		optionTests["reduction "+name] = func(t *testing.T, r *rand.Rand) {
			a := drawn(r, drawnShape(r, 1+r.IntN(4))...)
			shape := a.Shape()
			axes := drawnAxes(r, len(shape), 1+r.IntN(len(shape)))
			var want []float64
			for _, g := range groups(wide(t, a), shape, axes) {
				want = append(want, c.of(g))
			}
			near(t, want, c.plain(a, axes...), 1e-5)
			near(t, want, c.keep(a, axes...), 1e-5)
			kept := slices.Clone(shape)
			for _, axis := range normalized(axes, len(shape)) {
				kept[axis] = 1
			}
			require.Equal(t, kept, c.keep(a, axes...).Shape())
			require.Equal(t, c.keep(a, axes...).Squeeze(axes...).Shape(), c.plain(a, axes...).Shape())
		}
	}
	optionTests["norms"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		axis := drawnAxes(r, a.NDim(), 1)
		ord := []float64{0, 1, 2, 3, -1, -2, math.Inf(1), math.Inf(-1)}[r.IntN(8)]
		var want []float64
		for _, g := range groups(wide(t, a), a.Shape(), axis) {
			sum := 0.0
			for i, v := range g {
				g[i] = math.Abs(v)
				sum += math.Pow(g[i], ord)
			}
			switch ord {
			case 0:
				sum = float64(len(slices.DeleteFunc(slices.Clone(g), isZero)))
			case math.Inf(1):
				sum = slices.Max(g)
			case math.Inf(-1):
				sum = slices.Min(g)
			default:
				sum = math.Pow(sum, 1/ord)
			}
			want = append(want, sum)
		}
		near(t, want, a.NormOrd(ord, axis...), 1e-5)
		near(t, want, a.NormOrdKeepDims(ord, axis...), 1e-5)
	}
}

func init() {
	type scan = func(a *mlxc.Array, axis int, c mlxc.ScanConfig) *mlxc.Array
	for name, c := range map[string]struct {
		with scan
		none float64
		step func(s, v float64) float64
	}{
		"CumSum":  {(*mlxc.Array).CumSumWith, 0, func(s, v float64) float64 { return s + v }},
		"CumProd": {(*mlxc.Array).CumProdWith, 1, func(s, v float64) float64 { return s * v }},
		"CumMax":  {(*mlxc.Array).CumMaxWith, math.Inf(-1), math.Max},
		"CumMin":  {(*mlxc.Array).CumMinWith, math.Inf(1), math.Min},
		"LogCumSumExp": {(*mlxc.Array).LogCumSumExpWith, math.Inf(-1), func(s, v float64) float64 {
			return math.Log(math.Exp(s) + math.Exp(v))
		}},
	} {
		optionTests["scan "+name] = func(t *testing.T, r *rand.Rand) {
			a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
			axis := drawnAxes(r, a.NDim(), 1)
			config := mlxc.ScanConfig{Reverse: r.IntN(2) == 0, Exclusive: r.IntN(2) == 0}
			got := groups(wide(t, c.with(a, axis[0], config)), a.Shape(), axis)
			for i, g := range groups(wide(t, a), a.Shape(), axis) {
				if config.Reverse {
					slices.Reverse(g)
					slices.Reverse(got[i])
				}
				state := c.none
				for k, v := range g {
					next := c.step(state, v)
					if config.Exclusive {
						closeTo(t, state, got[i][k], 1e-5, "%+v along %d", config, axis)
					} else {
						closeTo(t, next, got[i][k], 1e-5, "%+v along %d", config, axis)
					}
					state = next
				}
			}
		}
	}
}
