package accuracy

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

func TestMeasure(t *testing.T) {
	tests := []struct {
		name      string
		got, want []float64
		expect    Errors
	}{
		{"equal", []float64{1, -2}, []float64{1, -2}, Errors{}},
		{"empty", nil, nil, Errors{}},
		{"one off", []float64{1, 2, 3, 5}, []float64{1, 2, 3, 4}, Errors{Max: 1, Mean: 0.25}},
		{"sign", []float64{-1}, []float64{1}, Errors{Max: 2, Mean: 2}},
		{"NaN in place", []float64{nan, 2}, []float64{nan, 1}, Errors{Max: 1, Mean: 0.5}},
		{"NaN out of place", []float64{nan, 2}, []float64{1, nan}, Errors{Max: inf, Mean: inf, Misplaced: 2}},
		{"infinity in place", []float64{inf, -inf}, []float64{inf, -inf}, Errors{}},
		{"infinity of the other sign", []float64{inf}, []float64{-inf}, Errors{Max: inf, Mean: inf, Misplaced: 1}},
		{"infinity for NaN", []float64{inf}, []float64{nan}, Errors{Max: inf, Mean: inf, Misplaced: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.expect, Measure(test.got, test.want))
		})
	}
	require.Panics(t, func() { Measure([]float64{1}, nil) })
}

func TestVerdict(t *testing.T) {
	const eps = 0x1p-10 // float16
	// max|want| = 4, mean|want| = 2: floor 2·eps·4 = 8·eps, mean floor ½·eps·2 = eps.
	want := []float64{4, 0, -2, 2}
	tests := []struct {
		name       string
		peer, ours Errors
		pass       bool
	}{
		{"exact", Errors{}, Errors{}, true},
		{"at both floors", Errors{}, Errors{Max: 8 * eps, Mean: eps}, true},
		{"max above the floor", Errors{}, Errors{Max: 8.01 * eps, Mean: eps}, false},
		{"mean above the floor", Errors{}, Errors{Max: 8 * eps, Mean: 1.01 * eps}, false},
		{"twice the peer", Errors{Max: 1, Mean: 0.5}, Errors{Max: 2, Mean: 1}, true},
		{"more than twice the peer's max", Errors{Max: 1, Mean: 0.5}, Errors{Max: 2.01, Mean: 1}, false},
		{"more than twice the peer's mean", Errors{Max: 1, Mean: 0.5}, Errors{Max: 2, Mean: 1.01}, false},
		{"max alone does not excuse the mean", Errors{Max: 100}, Errors{Max: 2, Mean: 1}, false},
		{"misplaced", Errors{Max: inf, Mean: inf, Misplaced: 1}, Errors{Max: inf, Mean: inf, Misplaced: 1}, false},
		{"a failing peer allows the floor", Errors{Max: inf, Mean: inf, Misplaced: 1}, Errors{Max: 8 * eps, Mean: eps}, true},
		{"a failing peer allows no more", Errors{Max: inf, Mean: inf, Misplaced: 1}, Errors{Max: 9 * eps, Mean: eps}, false},
		{"a peer that is NaN allows no more", Errors{Max: nan, Mean: nan}, Errors{Max: 9 * eps, Mean: eps}, false},
		{"ours NaN", Errors{}, Errors{Max: nan, Mean: nan}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			bound := Allow(eps, want, test.peer)
			require.Equal(t, 8*eps, bound.Floor)
			require.Equal(t, test.pass, bound.Accepts(test.ours), "%+v", bound)
		})
	}
}

func TestVerdictOnAllZeroTruth(t *testing.T) {
	want := []float64{0, 0}
	require.True(t, Allow(0x1p-7, want, Errors{}).Accepts(Errors{}))
	require.False(t, Allow(0x1p-7, want, Errors{}).Accepts(Errors{Max: 1e-30, Mean: 1e-30}))
	require.True(t, Allow(0x1p-7, want, Errors{Max: 1e-30, Mean: 1e-30}).Accepts(Errors{Max: 1e-30, Mean: 1e-30}))
}

func TestVerdictOnEmptyResult(t *testing.T) {
	bound := Allow(0x1p-23, nil, Measure(nil, nil))
	require.Equal(t, Bound{}, bound)
	require.True(t, bound.Accepts(Measure(nil, nil)))
	require.Empty(t, Explain(nil, nil, []int{0, 3}, bound))
}

func TestSizeIgnoresNaNAndInfinity(t *testing.T) {
	require.Equal(t, 2*0x1p-7*3.0, Allow(0x1p-7, []float64{nan, inf, -3, 1}, Errors{}).Floor)
}

func TestNoBetterThanZero(t *testing.T) {
	want := []float64{3, -1}
	require.False(t, NoBetterThanZero(Measure(want, want), want))
	require.False(t, NoBetterThanZero(Measure([]float64{2, 0}, want), want))
	require.True(t, NoBetterThanZero(Measure([]float64{0, 0}, want), want))
	require.True(t, NoBetterThanZero(Measure([]float64{-3, 1}, want), want))
	require.True(t, NoBetterThanZero(Measure([]float64{nan, -1}, want), want))
	require.False(t, NoBetterThanZero(Errors{}, []float64{0}), "false if the truth is zero")
}

func TestOffByMoreThanRounding(t *testing.T) {
	want := []float64{4, -1}
	require.False(t, OffByMoreThanRounding(Measure(want, want), want))
	require.False(t, OffByMoreThanRounding(Measure([]float64{4, -1.003}, want), want))
	require.True(t, OffByMoreThanRounding(Measure([]float64{4, -1.005}, want), want))
	require.True(t, OffByMoreThanRounding(Measure([]float64{nan, -1}, want), want))
	require.False(t, OffByMoreThanRounding(Measure([]float64{1e-9}, []float64{0}), []float64{0}), "false if the truth is zero")
}

func TestRatio(t *testing.T) {
	require.Equal(t, 1.0, Ratio(Errors{Max: 3}, Errors{Max: 3}, 1))
	require.Equal(t, 0.5, Ratio(Errors{Max: 1}, Errors{Max: 3}, 1))
	require.Equal(t, 2.0, Ratio(Errors{Max: 3}, Errors{Max: 1}, 1))
	require.Equal(t, 1.0, Ratio(Errors{}, Errors{}, 0))
	require.Equal(t, 1.0, Ratio(Errors{}, Errors{Max: 1}, 0))
	require.Equal(t, inf, Ratio(Errors{Max: 1}, Errors{}, 0))
	require.Equal(t, inf, Ratio(Errors{Max: inf, Misplaced: 1}, Errors{}, 1))
	require.True(t, math.IsNaN(Ratio(Errors{}, Errors{Max: inf}, 1)))
}

func TestGeometricMean(t *testing.T) {
	mean, n := GeometricMean([]float64{0.25, nan, 1})
	require.InDelta(t, 0.5, mean, 1e-15)
	require.Equal(t, 2, n)
	mean, _ = GeometricMean([]float64{0.1, inf})
	require.Equal(t, inf, mean)
	mean, n = GeometricMean([]float64{nan})
	require.True(t, math.IsNaN(mean))
	require.Zero(t, n)
	mean, _ = GeometricMean([]float64{1, 1, 1})
	require.Equal(t, 1.0, mean, "equal errors must not fail by rounding")
}

func TestExplain(t *testing.T) {
	want := []float64{1, 2, 3, 4, 0.001, 6}
	tests := map[string][]float64{
		"elements":  {1, 2, 3, 5, 0.102, 6},
		"misplaced": {1, nan, 3, 4, inf, 6.5},
		"mean":      {1.05, 2.05, 3.05, 4.05, 0.051, 6.05},
	}
	for name, got := range tests {
		t.Run(name, func(t *testing.T) {
			text := Explain(got, want, []int{2, 3}, Bound{Max: 0.1, Mean: 0.01}) + "\n"
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(golden, []byte(text), 0o644))
			}
			expect, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(expect), text)
		})
	}
	require.Empty(t, Explain(want, want, []int{2, 3}, Bound{}))
}
