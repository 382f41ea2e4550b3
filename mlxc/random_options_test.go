package mlxc_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// optionTests compare operations of many options with float64 in Go. Shapes, layouts and options
// are drawn anew in each round. Elements are small integers, so that most results are exact.
var optionTests = map[string]func(t *testing.T, r *rand.Rand){}

func TestRandomOptions(t *testing.T) {
	testdevice.CPUOnly(t, "compares with results of Go, as exact as those of MLX's backend for CPUs")
	rounds := 40
	if long.Enabled() {
		rounds = 10_000
	}
	for _, name := range slices.Sorted(maps.Keys(optionTests)) {
		t.Run(name, func(t *testing.T) {
			for round := range rounds {
				mlxc.WithScope(func() {
					defer func() {
						if t.Failed() {
							t.Logf("round %d", round)
						}
					}()
					optionTests[name](t, rand.New(rand.NewPCG(uint64(round), 1)))
				})
			}
		})
	}
}

// drawnShape draws sizes from 1 to 5.
func drawnShape(r *rand.Rand, axes int) []int {
	shape := make([]int, axes)
	for i := range shape {
		shape[i] = 1 + r.IntN(5)
	}
	return shape
}

// drawn draws integers from −3 to 3, in one of several layouts.
func drawn(r *rand.Rand, shape ...int) *mlxc.Array {
	n := 1
	for _, k := range shape {
		n *= k
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.IntN(7) - 3)
	}
	if len(shape) == 0 {
		return mlxc.Scalar(v[0])
	}
	a := mlxc.FromSlice(v, shape...)
	switch layout := r.IntN(4); {
	case layout == 1 && len(shape) > 1:
		return across(a)
	case layout == 2:
		return inMiddle(a)
	case layout == 3:
		return a.Flip(0).Contiguous().Index(mlxc.All.Step(-1))
	}
	return a
}

// drawnAxes draws axes that differ, in any order, some counted from the end.
func drawnAxes(r *rand.Rand, n, count int) []int {
	axes := r.Perm(n)[:count]
	for i := range axes {
		if r.IntN(2) == 0 {
			axes[i] -= n
		}
	}
	return axes
}

// places calls f with the position of each element of an array in row-major order.
func places(shape []int, f func(at []int)) {
	at := make([]int, len(shape))
	n := 1
	for _, k := range shape {
		n *= k
	}
	for range n {
		f(at)
		for i := len(at) - 1; i >= 0; i-- {
			if at[i]++; at[i] < shape[i] {
				break
			}
			at[i] = 0
		}
	}
}

// flatPlace is the row-major place of a position; axes of size 1 are broadcast, missing ones left out.
func flatPlace(shape, at []int) int {
	flat := 0
	at = at[len(at)-len(shape):]
	for i, k := range shape {
		flat *= k
		if k > 1 {
			flat += at[i]
		}
	}
	return flat
}

// normalized counts axes from the front.
func normalized(axes []int, n int) []int {
	out := slices.Clone(axes)
	for i := range out {
		out[i] = (out[i] + n) % n
	}
	return out
}

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
		"Max":       {(*mlxc.Array).Max, (*mlxc.Array).MaxKeepDims, slices.Max[[]float64]},
		"Min":       {(*mlxc.Array).Min, (*mlxc.Array).MinKeepDims, slices.Min[[]float64]},
		"Var":       {(*mlxc.Array).Var, (*mlxc.Array).VarKeepDims, func(g []float64) float64 { return spread(g) / float64(len(g)) }},
		"Std":       {(*mlxc.Array).Std, (*mlxc.Array).StdKeepDims, func(g []float64) float64 { return math.Sqrt(spread(g) / float64(len(g))) }},
		"SampleVar": {(*mlxc.Array).SampleVar, (*mlxc.Array).SampleVarKeepDims, func(g []float64) float64 { return spread(g) / float64(len(g)-1) }},
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
		"All":          {(*mlxc.Array).All, (*mlxc.Array).AllKeepDims, func(g []float64) float64 { return truth(!slices.ContainsFunc(g, isZero)) }},
		"Any":          {(*mlxc.Array).Any, (*mlxc.Array).AnyKeepDims, func(g []float64) float64 { return truth(slices.ContainsFunc(g, isNonzero)) }},
		"CountNonzero": {(*mlxc.Array).CountNonzero, (*mlxc.Array).CountNonzeroKeepDims, func(g []float64) float64 { return float64(len(slices.DeleteFunc(slices.Clone(g), isZero))) }},
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

func init() {
	// source gives the element that stands at position i of a padded axis of size n, −1 for none.
	for name, c := range map[string]struct {
		pad    func(a *mlxc.Array, p ...mlxc.Padding) *mlxc.Array
		source func(i, n int) int
	}{
		"Pad": {func(a *mlxc.Array, p ...mlxc.Padding) *mlxc.Array { return a.Pad(mlxc.Scalar[float32](9), p...) }, func(i, n int) int {
			if i < 0 || i >= n {
				return -1
			}
			return i
		}},
		"PadEdge": {(*mlxc.Array).PadEdge, func(i, n int) int { return min(max(i, 0), n-1) }},
		"PadReflect": {(*mlxc.Array).PadReflect, func(i, n int) int {
			for i < 0 || i >= n {
				switch {
				case n == 1:
					return 0
				case i < 0:
					i = -i
				default:
					i = 2*(n-1) - i
				}
			}
			return i
		}},
		"PadSymmetric": {(*mlxc.Array).PadSymmetric, func(i, n int) int {
			for i < 0 || i >= n {
				if i < 0 {
					i = -1 - i
				} else {
					i = 2*n - 1 - i
				}
			}
			return i
		}},
	} {
		optionTests["padding "+name] = func(t *testing.T, r *rand.Rand) {
			a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
			shape, x := a.Shape(), wide(t, a)
			before, padded := make([]int, len(shape)), slices.Clone(shape)
			var padding []mlxc.Padding
			for range r.IntN(4) {
				p := mlxc.Padding{Axis: drawnAxes(r, len(shape), 1)[0], Before: r.IntN(7), After: r.IntN(7)}
				padding = append(padding, p)
				axis := (p.Axis + len(shape)) % len(shape)
				before[axis] += p.Before
				padded[axis] += p.Before + p.After
			}
			var want []float64
			places(padded, func(at []int) {
				from, inside := make([]int, len(at)), true
				for i, k := range at {
					from[i] = c.source(k-before[i], shape[i])
					inside = inside && from[i] >= 0
				}
				if !inside {
					want = append(want, 9)
					return
				}
				want = append(want, x[flatPlace(shape, from)])
			})
			requireArray(t, padded, want, c.pad(a, padding...))
		}
	}
	optionTests["Slice"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		shape, x := a.Shape(), wide(t, a)
		var start, stop, strides, sizes []int
		var chosen [][]int
		for _, n := range shape {
			from, to, step := r.IntN(2*n+3)-n-1, r.IntN(2*n+3)-n-1, 1+r.IntN(3)
			start, stop, strides = append(start, from), append(stop, to), append(strides, step)
			clip := func(k int) int {
				if k < 0 {
					k += n
				}
				return min(max(k, 0), n)
			}
			taken := []int{}
			for k := clip(from); k < clip(to); k += step {
				taken = append(taken, k)
			}
			chosen, sizes = append(chosen, taken), append(sizes, len(taken))
		}
		want, updated := []float64{}, slices.Clone(x)
		places(sizes, func(at []int) {
			from := make([]int, len(at))
			for i, k := range at {
				from[i] = chosen[i][k]
			}
			want = append(want, x[flatPlace(shape, from)])
			updated[flatPlace(shape, from)] = 7
		})
		requireArray(t, sizes, want, a.Slice(start, stop, strides))
		requireArray(t, shape, updated, a.SliceUpdate(mlxc.Scalar[float32](7), start, stop, strides))
	}
	optionTests["Index"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(4))...)
		s, x := randomSelection(r, a.Shape(), true), wide(t, a)
		want := []float64{}
		for _, p := range s.positions {
			want = append(want, x[p])
		}
		requireArray(t, append([]int{}, s.shape...), want, a.Index(s.at...))
	}
	optionTests["Roll, Repeat, Tile"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		shape, x := a.Shape(), wide(t, a)
		axis, n := drawnAxes(r, len(shape), 1)[0], r.IntN(9)-4
		k := (axis + len(shape)) % len(shape)
		moved := func(result []int, from func(at []int)) (want []float64) {
			places(result, func(at []int) {
				at = slices.Clone(at)
				from(at)
				want = append(want, x[flatPlace(shape, at)])
			})
			return want
		}
		requireArray(t, shape, moved(shape, func(at []int) { at[k] = ((at[k]-n)%shape[k] + shape[k]) % shape[k] }), a.Roll(n, axis))
		times, longer := 1+r.IntN(3), slices.Clone(shape)
		longer[k] *= times
		requireArray(t, longer, moved(longer, func(at []int) { at[k] /= times }), a.Repeat(times, axis))
		reps, tiled := drawnShape(r, len(shape)), slices.Clone(shape)
		for i := range reps {
			tiled[i] *= reps[i]
		}
		requireArray(t, tiled, moved(tiled, func(at []int) {
			for i := range at {
				at[i] %= shape[i]
			}
		}), a.Tile(reps...))
	}
}

func init() {
	optionTests["Take and ScatterAdd"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		shape, x := a.Shape(), wide(t, a)
		axis := drawnAxes(r, len(shape), 1)[0]
		k := (axis + len(shape)) % len(shape)
		idShape := drawnShape(r, 1+r.IntN(2))
		n := shape[k]
		ids := drawn(r, idShape...).AsType(mlxc.Int32).Remainder(mlxc.Scalar(int32(n))).Sub(mlxc.Scalar(int32(r.IntN(2) * n)))
		id := wide(t, ids)
		taken := slices.Concat(shape[:k], idShape, shape[k+1:])
		updates := drawn(r, taken...)
		u, want, sums := wide(t, updates), []float64{}, slices.Clone(x)
		places(taken, func(at []int) {
			p := int(id[flatPlace(idShape, at[k:k+len(idShape)])])
			from := flatPlace(shape, slices.Concat(at[:k], []int{(p + n) % n}, at[k+len(idShape):]))
			sums[from] += u[len(want)]
			want = append(want, x[from])
		})
		requireArray(t, taken, want, a.Take(ids, axis))
		requireArray(t, shape, sums, a.ScatterAdd(ids, updates, axis))
	}
	optionTests["TakeAlongAxis and PutAlongAxis"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		shape, x := a.Shape(), wide(t, a)
		axis := drawnAxes(r, len(shape), 1)[0]
		k := (axis + len(shape)) % len(shape)
		idShape := slices.Clone(shape)
		idShape[k] = 1 + r.IntN(shape[k])
		// A permutation, so that no element is put twice.
		ids := mlxc.RandomUniform(mlxc.RandomKey(r.Uint64()), 0, 1, mlxc.Float32, shape...).ArgSort(axis).
			Split(1, axis)[0].AsType(mlxc.Int32)
		ids = ids.Index(append(slices.Repeat([]mlxc.Index{mlxc.All}, k), mlxc.Range(0, idShape[k]))...)
		values := drawn(r, idShape...)
		id, v, want, put, added := wide(t, ids), wide(t, values), []float64{}, slices.Clone(x), slices.Clone(x)
		places(idShape, func(at []int) {
			from := slices.Clone(at)
			from[k] = int(id[len(want)])
			put[flatPlace(shape, from)] = v[len(want)]
			added[flatPlace(shape, from)] += v[len(want)]
			want = append(want, x[flatPlace(shape, from)])
		})
		requireArray(t, idShape, want, a.TakeAlongAxis(ids, axis))
		requireArray(t, shape, put, a.PutAlongAxis(ids, values, axis))
		requireArray(t, shape, added, a.ScatterAddAlongAxis(ids, values, axis))
	}
	optionTests["sorting"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		axes := drawnAxes(r, a.NDim(), 1)
		axis, n := axes[0], a.Dim(axes[0])
		kth := r.IntN(n)
		in := groups(wide(t, a), a.Shape(), axes)
		sorted := groups(wide(t, a.Sort(axis)), a.Shape(), axes)
		byPosition := groups(wide(t, a.TakeAlongAxis(a.ArgSort(axis), axis)), a.Shape(), axes)
		parts := groups(wide(t, a.Partition(kth, axis)), a.Shape(), axes)
		topShape := a.Shape()
		topShape[(axis+len(topShape))%len(topShape)] = kth + 1
		top := groups(wide(t, a.TopK(kth+1, axis)), topShape, axes)
		for i, g := range in {
			slices.Sort(g)
			require.Equal(t, g, sorted[i])
			require.Equal(t, g, byPosition[i])
			require.InDelta(t, g[kth], parts[i][kth], 0)
			require.InDelta(t, g[kth], slices.Max(parts[i][:kth+1]), 0)
			slices.Sort(parts[i])
			require.Equal(t, g, parts[i])
			slices.Sort(top[i])
			require.Equal(t, g[n-kth-1:], top[i])
		}
	}
}

func init() {
	optionTests["MatMul"] = func(t *testing.T, r *rand.Rand) {
		batch := drawnShape(r, r.IntN(3))
		part := func(rows, columns int) *mlxc.Array {
			own := slices.Clone(batch[r.IntN(len(batch)+1):])
			for i := range own {
				if r.IntN(2) == 0 {
					own[i] = 1
				}
			}
			return drawn(r, append(own, rows, columns)...)
		}
		m, k, n := 1+r.IntN(5), 1+r.IntN(5), 1+r.IntN(5)
		a, b := part(m, k), part(k, n)
		x, y := wide(t, a), wide(t, b)
		got := a.MatMul(b)
		var want []float64
		places(got.Shape(), func(at []int) {
			sum, axes := 0.0, len(at)
			for i := range k {
				sum += x[flatPlace(a.Shape(), slices.Concat(at[:axes-1], []int{i}))] *
					y[flatPlace(b.Shape(), slices.Concat(at[:axes-2], []int{i, at[axes-1]}))]
			}
			want = append(want, sum)
		})
		near(t, want, got, 0)
		c := drawn(r, n)
		row := wide(t, c)
		for i := range want {
			want[i] = 2*want[i] - row[i%n]
		}
		near(t, want, c.AddMM(a, b, 2, -1), 0)
	}
	optionTests["Einsum and TensorDot"] = func(t *testing.T, r *rand.Rand) {
		const letters = "abcd"
		sizes := drawnShape(r, len(letters))
		var subscripts string
		var operands arrays
		var factors []func(at []int) float64
		used := ""
		for i := range 1 + r.IntN(3) {
			if i > 0 {
				subscripts += ","
			}
			own, shape := "", []int{}
			for range r.IntN(4) {
				k := r.IntN(len(letters))
				own += letters[k : k+1]
				shape = append(shape, sizes[k])
			}
			a := drawn(r, shape...)
			x := wide(t, a)
			operands = append(operands, a)
			factors = append(factors, func(at []int) float64 {
				place := make([]int, len(own))
				for i := range own {
					place[i] = at[own[i]-'a']
				}
				return x[flatPlace(shape, place)]
			})
			subscripts += own
			used += own
		}
		out, result := "", []int{}
		for _, k := range r.Perm(len(letters)) {
			if l := letters[k : k+1]; slices.Contains([]byte(used), l[0]) && r.IntN(2) == 0 {
				out += l
				result = append(result, sizes[k])
			}
		}
		n := 1
		for _, k := range result {
			n *= k
		}
		want := make([]float64, n)
		over := slices.Clone(sizes)
		for k := range over {
			if !slices.Contains([]byte(used), letters[k]) {
				over[k] = 1
			}
		}
		places(over, func(at []int) {
			product := 1.0
			for _, f := range factors {
				product *= f(at)
			}
			place := make([]int, len(out))
			for i := range out {
				place[i] = at[out[i]-'a']
			}
			want[flatPlace(result, place)] += product
		})
		got := mlxc.Einsum(subscripts+"->"+out, operands...)
		require.NoError(t, got.Err(), "%s->%s", subscripts, out)
		require.Equal(t, result, append([]int{}, got.Shape()...), "%s->%s", subscripts, out)
		near(t, want, got, 1e-6)

		a, b := drawn(r, 2, 3, 4), drawn(r, 4, 2, 3)
		x, y := wide(t, a), wide(t, b)
		want = make([]float64, 9)
		places([]int{3, 3, 2, 4}, func(at []int) {
			want[at[0]*3+at[1]] += x[flatPlace([]int{2, 3, 4}, []int{at[2], at[0], at[3]})] * y[flatPlace([]int{4, 2, 3}, []int{at[3], at[2], at[1]})]
		})
		near(t, want, a.TensorDot(b, []int{0 - 3*r.IntN(2), 2 - 3*r.IntN(2)}, []int{1 - 3*r.IntN(2), 0 - 3*r.IntN(2)}), 0)
	}
	optionTests["ConvGeneral"] = func(t *testing.T, r *rand.Rand) {
		dims := 1 + r.IntN(3)
		list := func(least, most int) []int {
			if r.IntN(3) == 0 {
				return nil
			}
			out := make([]int, []int{1, dims}[r.IntN(2)])
			for i := range out {
				out[i] = least + r.IntN(most-least+1)
			}
			return out
		}
		c := mlxc.ConvGeneralConfig{
			Stride: list(1, 3), PaddingLow: list(0, 2), PaddingHigh: list(0, 2), Dilation: list(1, 2), InputDilation: list(1, 2), Flip: r.IntN(2) == 0,
		}
		if dims < 3 {
			c.Groups = []int{0, 1, 2}[r.IntN(3)]
		}
		groups := max(c.Groups, 1)
		channels := groups * (1 + r.IntN(3))
		input, weight := []int{1 + r.IntN(2)}, []int{groups * (1 + r.IntN(3))}
		for range dims {
			input, weight = append(input, 5+r.IntN(3)), append(weight, 1+r.IntN(3))
		}
		x, w := drawn(r, append(input, channels)...), drawn(r, append(weight, channels/groups)...)
		want := correlate(gridOf(t, x), gridOf(t, w), walk{
			entries(c.Stride, dims, 1), entries(c.PaddingLow, dims, 0), entries(c.PaddingHigh, dims, 0), entries(c.Dilation, dims, 1),
			entries(c.InputDilation, dims, 1), groups, c.Flip,
		})
		requireGrid(t, want, mlxc.ConvGeneral(x, w, c))
	}
}

func init() {
	optionTests["RMSNorm and LayerNorm"] = func(t *testing.T, r *rand.Rand) {
		a := drawn(r, drawnShape(r, 1+r.IntN(3))...)
		n, eps := a.Dim(-1), 0.01+r.Float64()
		x := wide(t, a)
		var weight, bias *mlxc.Array
		w, b := slices.Repeat([]float64{1}, n), make([]float64, n)
		if r.IntN(2) == 0 {
			weight = drawn(r, n)
			w = wide(t, weight)
		}
		if r.IntN(2) == 0 {
			bias = drawn(r, n)
			b = wide(t, bias)
		}
		var rms, layer []float64
		for row := range slices.Chunk(x, n) {
			sum, squares := 0.0, 0.0
			for _, v := range row {
				sum += v
				squares += v * v
			}
			mean := sum / float64(n)
			for i, v := range row {
				rms = append(rms, v*w[i]/math.Sqrt(squares/float64(n)+eps))
				layer = append(layer, (v-mean)*w[i]/math.Sqrt(squares/float64(n)-mean*mean+eps)+b[i])
			}
		}
		near(t, rms, mlxc.RMSNorm(a, weight, float32(eps)), 1e-5)
		near(t, layer, mlxc.LayerNorm(a, weight, bias, float32(eps)), 1e-4)
	}
	optionTests["RoPE"] = func(t *testing.T, r *rand.Rand) {
		shape := [4]int{1 + r.IntN(3), 1 + r.IntN(3), 1 + r.IntN(6), 2 * (1 + r.IntN(6))}
		x := drawn(r, shape[:]...)
		c := mlxc.RoPEConfig{
			Dims: 2 * r.IntN(shape[3]/2+1), Traditional: r.IntN(2) == 0, Base: []float32{0, 100, 500}[r.IntN(3)],
			Scale: []float32{0, 0.5, 2}[r.IntN(3)], Offset: r.IntN(20),
		}
		dims, base, scale := c.Dims, float64(c.Base), float64(c.Scale)
		if dims == 0 {
			dims = shape[3]
		}
		if base == 0 {
			base = 10000
		}
		if scale == 0 {
			scale = 1
		}
		frequency := func(i int) float64 { return math.Pow(base, -2*float64(i)/float64(dims)) }
		if r.IntN(3) == 0 {
			each := make([]float32, dims/2)
			for i := range each {
				each[i] = float32(1 + r.IntN(9))
			}
			c.Base, c.Freqs = 0, mlxc.FromSlice(each)
			frequency = func(i int) float64 { return 1 / float64(each[i]) }
		}
		want := func(offset func(int) int) []float64 {
			return rotated(wide(t, x), shape, dims, c.Traditional, scale, offset, frequency)
		}
		near(t, want(func(int) int { return c.Offset }), mlxc.RoPE(x, c), 1e-4)
		offsets := make([]int32, shape[0])
		for i := range offsets {
			offsets[i] = int32(r.IntN(20))
		}
		c.Offset = 0
		near(t, want(func(batch int) int { return int(offsets[batch]) }), mlxc.RoPEDynamic(x, mlxc.FromSlice(offsets), c), 1e-4)
	}
	optionTests["ScaledDotProductAttention"] = func(t *testing.T, r *rand.Rand) {
		batch, kvHeads, queries, dim, valueDim := 1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(5), 1+r.IntN(9), 1+r.IntN(9)
		heads, keys := kvHeads*(1+r.IntN(3)), queries+r.IntN(4)
		q, k, v := drawn(r, batch, heads, queries, dim), drawn(r, batch, kvHeads, keys, dim), drawn(r, batch, kvHeads, keys, valueDim)
		c := mlxc.AttentionConfig{Scale: []float32{0, 0.3}[r.IntN(2)]}
		scale := float64(c.Scale)
		if scale == 0 {
			scale = 1 / math.Sqrt(float64(dim))
		}
		hide := func(_, _, _ int) float64 { return 0 }
		switch r.IntN(4) {
		case 0:
			c.Causal = true
			hide = func(_, query, key int) float64 {
				if key > query+keys-queries {
					return math.Inf(-1)
				}
				return 0
			}
		case 1:
			shape := []int{[]int{1, heads}[r.IntN(2)], []int{1, queries}[r.IntN(2)], keys}
			c.Mask = drawn(r, shape...)
			m := wide(t, c.Mask)
			hide = func(head, query, key int) float64 { return m[flatPlace(shape, []int{head, query, key})] }
		case 2:
			shape := []int{queries, keys}
			// Each query sees the first key.
			c.Mask = drawn(r, shape...).Greater(mlxc.Scalar[float32](0)).LogicalOr(mlxc.Arange(mlxc.Float32, 0, float64(keys), 1).Equal(mlxc.Scalar[float32](0)))
			m := wide(t, c.Mask)
			hide = func(_, query, key int) float64 {
				if m[flatPlace(shape, []int{query, key})] == 0 {
					return math.Inf(-1)
				}
				return 0
			}
		}
		var sinks []float32
		if r.IntN(3) == 0 {
			c.Sinks = drawn(r, heads)
			sinks = floats(t, c.Sinks)
		}
		want := attention(floats(t, q), floats(t, k), floats(t, v), batch, heads, kvHeads, queries, keys, dim, valueDim, scale, hide, sinks)
		near(t, want, mlxc.ScaledDotProductAttention(q, k, v, c), 1e-4)
	}
	optionTests["QuantizedMatMul"] = func(t *testing.T, r *rand.Rand) {
		names := slices.Sorted(maps.Keys(quantizations))
		c := quantizations[names[r.IntN(len(names))]].c
		rows, columns, batch := 32*(1+r.IntN(2)), 128, 1+r.IntN(3)
		q := normal(r.Uint64(), rows, columns).Quantize(c)
		w := decoded(t, q)
		x, y := drawn(r, batch, columns), drawn(r, batch, rows)
		turned := make([]float64, len(w))
		for i := range rows {
			for k := range columns {
				turned[k*rows+i] = w[i*columns+k]
			}
		}
		near(t, product(wide(t, x), turned, batch, columns, rows), x.QuantizedMatMul(q, true), 1e-4)
		near(t, product(wide(t, y), w, batch, rows, columns), y.QuantizedMatMul(q, false), 1e-4)
	}
}
