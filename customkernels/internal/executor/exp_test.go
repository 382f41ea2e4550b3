package executor

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/metalstd"
	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// expFunctions holds the functions of testdata/exp.cpp, in the same order, with their float64 references.
var expFunctions = []struct {
	name      string
	reference func(float64) float64
}{
	{"exp", math.Exp},
	{"exp2", math.Exp2},
	{"exp10", func(x float64) float64 { return math.Pow(10, x) }},
	{"log", math.Log},
	{"log2", math.Log2},
	{"log10", math.Log10},
	{"tanh", math.Tanh},
	{"fast::exp", func(x float64) float64 { return normalOrZero(math.Exp(x)) }},
	{"fast::exp2", func(x float64) float64 { return normalOrZero(math.Exp2(x)) }},
}

// normalOrZero returns 0 for a positive number below the normal floats, and x otherwise.
func normalOrZero(x float64) float64 {
	if x < 0x1p-126 {
		return 0
	}
	return x
}

// A floatRange is a sequence of n floats with the bit patterns first, first + step, ….
type floatRange struct{ first, step, n uint32 }

func (r floatRange) at(i int) float32 { return math.Float32frombits(r.first + uint32(i)*r.step) }

// expRanges returns the arguments to test: all floats in a long run. Otherwise it returns 2²⁰ floats spread over all
// bit patterns, and the neighbors of the arguments at which a function or its implementation changes.
func expRanges() []floatRange {
	const million = 1 << 20
	if long.Enabled() {
		var all []floatRange
		for first := uint64(0); first < 1<<32; first += million {
			all = append(all, floatRange{uint32(first), 1, million})
		}
		return all
	}
	some := []floatRange{{0, 4099, million}}
	const near = 1 << 13
	for _, x := range []float64{
		0, 0x1p-126, 1, 0.625, math.Inf(1), math.NaN(), math.Sqrt2, math.Sqrt2 / 2, math.Ln2 / 2, 0.5, math.Log10(2) / 2,
		89, 104, 126 * math.Ln2, 128 * math.Ln2, 129, 151, 126, 128, 150, 46, 39, 128 * math.Log10(2), 126 * math.Log10(2),
	} {
		bits := math.Float32bits(float32(x))
		some = append(some, floatRange{bits - near/2, 1, near}, floatRange{bits + 1<<31 - near/2, 1, near})
	}
	return some
}

// Exponentials, logarithms and tanh are within 2 ulp of the float64 references, with and without FMA instructions.
// Every compiler gives the same bits.
func TestExponentials(t *testing.T) {
	type library struct {
		*Library
		name    string
		worst   [9]float64 // in ulp
		at      [9]float32
		results []float32
	}
	var tested []*library
	found := compilers(t)
	ranges := expRanges()
	size := len(expFunctions) * int(ranges[0].n)
	for _, v := range []struct{ name, before string }{{"", ""}, {" without fma", "#undef __FMA__\n#undef __ARM_FEATURE_FMA\n"}} {
		for _, c := range found {
			l, err := libraries.CompileWith(context.Background(), c.Toolchain, v.before+source(t, "exp"))
			require.NoError(t, err)
			tested = append(tested, &library{Library: l, name: c.name + v.name, results: make([]float32, size)})
		}
	}
	require.Len(t, expFunctions, len(tested[0].worst))

	want := make([]float64, size)
	for _, r := range ranges {
		n := int(r.n)
		eachFunction(func(f int) {
			for i := range n {
				want[f*n+i] = expFunctions[f].reference(float64(r.at(i)))
			}
		})
		for k, l := range tested {
			run(t, l.Library, [3]int{n / 1024, len(expFunctions), 1}, [3]int{1, 1, 1},
				[]Buffer{buf([]uint32{r.first, r.step})}, []Buffer{buf(l.results)})
			first := tested[k/len(found)*len(found)]
			eachFunction(func(f int) {
				for i := range n {
					got, other := l.results[f*n+i], first.results[f*n+i]
					if e := ulpsOff(want[f*n+i], got); e > l.worst[f] {
						l.worst[f], l.at[f] = e, r.at(i)
					}
					if math.Float32bits(got) != math.Float32bits(other) && got == got {
						t.Errorf("%s(%v) is %v with %s and %v with %s", expFunctions[f].name, r.at(i), got, l.name, other, first.name)
						return
					}
				}
			})
		}
	}
	for f, function := range expFunctions {
		for _, l := range tested {
			t.Logf("%-5s %.3f ulp at %v, %s", function.name, l.worst[f], l.at[f], l.name)
			require.LessOrEqual(t, l.worst[f], 2.0, "%s of %v with %s", function.name, l.at[f], l.name)
		}
	}
}

// Powers of tiles have the bits of exp and fast::exp2 for exponents up to 80.
func TestExponentialsOfTiles(t *testing.T) {
	for _, c := range compilers(t) {
		t.Run(c.name, func(t *testing.T) {
			l, err := libraries.CompileWith(context.Background(), c.Toolchain, source(t, "exp_tile"))
			require.NoError(t, err)
			for _, r := range expRanges() {
				threads := int(r.n / 1024)
				counts := make([]uint32, 3*threads)
				run(t, l, [3]int{threads, 1, 1}, [3]int{1, 1, 1}, []Buffer{buf([]uint32{r.first, r.step})}, []Buffer{buf(counts)})
				for i := 0; i < len(counts); i += 3 {
					if counts[i+2] == 0 {
						skip.Platform(t, "tiles have exponentials of their own only with AVX-512")
					}
					require.Equal(t, []uint32{0, 0}, counts[i:i+2], "from bits %#x", r.first+uint32(i/3)*1024*r.step)
				}
			}
		})
	}
}

// eachFunction calls do concurrently, once for every function.
func eachFunction(do func(f int)) {
	var all sync.WaitGroup
	for f := range expFunctions {
		all.Go(func() { do(f) })
	}
	all.Wait()
}

// ulpsOff returns the distance from want to got in ulp, or 0 if got is the float nearest to want. It returns infinity
// if only one of them is NaN, or if they are zeros of different signs. Infinity counts as 2¹²⁸, one ulp above the
// largest float.
func ulpsOff(want float64, got float32) float64 {
	const beyond = 1 << 63 * 2 * 0x1p64 // 2¹²⁸
	g := float64(got)
	switch {
	case float32(want) == got && got != 0:
		return 0
	case want != want && got != got:
		return 0
	case want != want || got != got || want == 0 && g == 0 && math.Signbit(want) != math.Signbit(g):
		return math.Inf(1)
	}
	want, g = min(max(want, -beyond), beyond), min(max(g, -beyond), beyond)
	if want == g {
		return 0
	}
	_, exponent := math.Frexp(want)
	return math.Abs(want-g) / math.Ldexp(1, max(min(exponent, 128)-24, -149))
}

// word returns a function's name without colons.
func word(name string) string { return strings.ReplaceAll(name, ":", "") }

// The compilers vectorize loops over these functions: the assembly has vector multiplications and neither scalar ones
// nor calls.
func TestExponentialsVectorize(t *testing.T) {
	vector := regexp.MustCompile(map[string]string{
		"amd64": `\tv?(mulps|fmadd\d+ps)\s.*%[xyz]mm`,
		"arm64": `\t(fmul|fmla|fmad)\t?.*(\.4s|z\d)`,
	}[runtime.GOARCH])
	scalar := regexp.MustCompile(map[string]string{
		"amd64": `\t(v?(mulss|fmadd\d+ss)|call)\s`,
		"arm64": `\t(fmul|fmadd|fmsub|bl)\s+(s\d|_?\w*f\b)`,
	}[runtime.GOARCH])
	text := "#include \"metal_host.h\"\n"
	for _, f := range expFunctions {
		text += fmt.Sprintf("extern \"C\" void begin_%s(float* __restrict y, const float* __restrict x) {\n"+
			"  for (int i = 0; i < 16; ++i) y[i] = %s(x[i]);\n}\n", word(f.name), f.name)
	}
	for _, c := range compilers(t) {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, metalstd.WriteHost(dir))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "loops.cpp"), []byte(text), 0o600))
			args := append(c.Flags(), "-O3", "-S", "-I.", "-o", "loops.s", "loops.cpp")
			require.NoError(t, c.Run(t.Context(), dir, "loops", args...))
			assembly, err := os.ReadFile(filepath.Join(dir, "loops.s"))
			require.NoError(t, err)
			for _, f := range expFunctions {
				_, body, found := strings.Cut(string(assembly), "begin_"+word(f.name)+":")
				require.True(t, found)
				body, _, _ = strings.Cut(body, ".cfi_endproc")
				require.Regexp(t, vector, body, f.name)
				require.NotRegexp(t, scalar, body, f.name)
			}
		})
	}
}
