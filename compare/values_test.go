package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestValues(t *testing.T) {
	shape := []int{4, 50}
	all := map[string]Values{
		"normal": Normal(2), "equal": EqualRows, "spread": Spread, "spike": Spike, "zero": Zeros,
		"far": Far, "either sign": EitherSign,
		"NaN": NormalExcept(math.NaN()), "infinity": NormalExcept(math.Inf(1)),
	}
	for name, values := range all {
		t.Run(name, func(t *testing.T) {
			draw := func() []float64 { return values(rand.New(rand.NewPCG(1, 2)), shape) }
			got := draw()
			require.Len(t, got, 200)
			again := draw()
			for i := range got {
				require.Equal(t, math.Float64bits(got[i]), math.Float64bits(again[i]), "the data must be the same every time")
			}
			notFinite, nonzero := 0, 0
			for _, v := range got {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					notFinite++
				}
				if v != 0 {
					nonzero++
				}
			}
			switch name {
			case "zero":
				require.Zero(t, nonzero)
			case "spike":
				require.Equal(t, 4, nonzero)
			case "NaN", "infinity":
				require.Equal(t, 1, notFinite)
			case "equal":
				require.Equal(t, got[0], got[49])
				require.NotEqual(t, got[0], got[50])
			default:
				require.Zero(t, notFinite)
			}
		})
	}
	require.Empty(t, EqualRows(rand.New(rand.NewPCG(1, 2)), []int{0, 3}))
	require.Empty(t, Spike(rand.New(rand.NewPCG(1, 2)), []int{3, 0}))
}

// The values fit float16: no input overflows before a kernel runs.
func TestNormalStaysInsideFloat16(t *testing.T) {
	for _, v := range Normal(1e4)(rand.New(rand.NewPCG(1, 2)), []int{1 << 16}) {
		require.LessOrEqual(t, math.Abs(v), 65504.0)
	}
}
