package suite

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/mlxgrad/mlxgrad/compare"
	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/ops"
)

// embeddingCase is a lookup of ids of any shape in a table w[v, d]. The zero value of any other field is the default:
// unsigned, uniformly distributed ids.
type embeddingCase struct {
	ids     []int
	v, d    int
	signed  bool
	layouts layouts
	draw    compare.Values // of the ids
	label   string         // the name of draw
	// outOfRange adds ids outside the table. The operation refuses them in evaluated ids, so ours gets unevaluated
	// ones.
	outOfRange bool
}

func embedding() compare.Op {
	op := compare.Op{Name: "embedding"}
	for _, c := range embeddingCases() {
		op.Cases = append(op.Cases, c.lookup())
	}
	return op
}

// embeddingSparse is the gradient of w without its zero rows. It is not differentiated.
func embeddingSparse() compare.Op {
	op := compare.Op{Name: "embedding-sparse"}
	for _, c := range embeddingCases() {
		if c.layouts["w"] == "" {
			op.Cases = append(op.Cases, c.sparse())
		}
	}
	return op
}

// embeddingCases covers tables and numbers of ids of every size, with few and with all rows in use, ids that share no
// rows, some rows or one row, and every layout.
func embeddingCases() []embeddingCase {
	var cases []embeddingCase
	add := func(c embeddingCase) { cases = append(cases, c) }

	for _, ids := range []int{1, 3, 37, 199} {
		for _, v := range []int{1, 2, 33, 1000} {
			for _, d := range []int{1, 33, 128} {
				add(embeddingCase{ids: []int{ids}, v: v, d: d})
			}
		}
	}
	for _, d := range []int{7, 31, 32, 127, 129, 1024, 4099, 8192} {
		add(embeddingCase{ids: []int{37}, v: 13, d: d})
	}
	for _, c := range []embeddingCase{
		{ids: []int{3}, v: 32003, d: 33},
		{ids: []int{4099}, v: 7, d: 7},
		{ids: []int{4099}, v: 1000, d: 16},
		{ids: nil, v: 33, d: 129},
		{ids: []int{0}, v: 33, d: 7},
		{ids: []int{2, 0}, v: 3, d: 33},
	} {
		add(c)
	}
	for _, ids := range [][]int{{2, 33}, {5, 1}, {2, 3, 7}, {1, 37, 1}} {
		add(embeddingCase{ids: ids, v: 33, d: 31})
		add(embeddingCase{ids: ids, v: 33, d: 31, signed: true})
	}
	for _, c := range []embeddingCase{{ids: []int{199}, v: 33, d: 129}, {ids: []int{8, 512}, v: 1000, d: 33}} {
		for _, ids := range []struct {
			draw  compare.Values
			label string
		}{{equalIDs(c.v), "equal"}, {skewedIDs(c.v), "skewed"}, {distinctIDs(c.v), "in turn"}, {endIDs(c.v), "ends"}} {
			c.draw, c.label = ids.draw, ids.label
			add(c)
		}
	}
	for _, layout := range everyLayout() {
		for _, operand := range []string{"w", "ids", "dy"} {
			add(embeddingCase{ids: []int{5, 9}, v: 33, d: 31, layouts: layouts{operand: layout}})
		}
	}
	add(embeddingCase{ids: []int{37}, v: 33, d: 31, outOfRange: true})
	add(embeddingCase{ids: []int{37}, v: 33, d: 31, outOfRange: true, signed: true})
	return cases
}

func (c embeddingCase) lookup() compare.Case {
	out := compare.Case{
		Name: c.name(),
		Inputs: []compare.Input{
			{Name: "w", Shape: []int{c.v, c.d}, Layout: c.layouts["w"]},
			c.idsInput(),
		},
		Outputs: []compare.Output{{Name: "y", Shape: c.rows(), Layout: c.layouts["dy"]}},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor { return []oracle.Tensor{oracle.Embedding(in[0], in[1])} },
			Gradient: func(in, ct []oracle.Tensor) []oracle.Tensor {
				return []oracle.Tensor{oracle.EmbeddingVJP(in[1], c.v, ct[0])}
			},
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{ops.Embedding(in[0], in[1])} },
		MLX:  func(in []*mlxc.Array) []*mlxc.Array { return []*mlxc.Array{in[0].Take(in[1], 0)} },
	}
	return c.guarded(out)
}

func (c embeddingCase) sparse() compare.Case {
	k := min(c.v, oracle.Size(c.ids))
	out := compare.Case{
		Name: c.name(),
		Inputs: []compare.Input{
			{Name: "dy", Shape: c.rows(), Kind: compare.Constant, Layout: c.layouts["dy"]},
			c.idsInput(),
		},
		Outputs: []compare.Output{
			{Name: "rows", Shape: []int{k}, DType: mlxc.Uint32},
			{Name: "grads", Shape: []int{k, c.d}},
			{Name: "count", DType: mlxc.Uint32},
		},
		Reference: compare.Reference{
			Forward: func(in []oracle.Tensor) []oracle.Tensor {
				rows, gradients, count := oracle.EmbeddingSparseGradient(in[0], in[1], c.v)
				return []oracle.Tensor{rows, gradients, count}
			},
		},
		Ours: func(in []*mlxc.Array) []*mlxc.Array {
			rows, gradients, count := ops.EmbeddingSparseGradient(in[0], in[1], c.v)
			return []*mlxc.Array{rows, gradients, count}
		},
		MLX: func(in []*mlxc.Array) []*mlxc.Array { return sparseGradientOfMLX(in[0], in[1], c.v, k) },
	}
	return c.guarded(out)
}

// sparseGradientOfMLX computes MLX's gradient of the whole table and returns the distinct ids, their rows and their
// number.
func sparseGradientOfMLX(dy, ids *mlxc.Array, v, k int) []*mlxc.Array {
	width := dy.Dim(-1)
	n := ids.Size()
	ids, dy = ids.Reshape(n), dy.Reshape(n, width)
	// Row v is zero. The list of ids is padded with v.
	table := mlxc.Zeros(dy.DType(), v+1, width).ScatterAdd(ids, dy, 0)
	uses := mlxc.Zeros(mlxc.Uint32, v).ScatterAdd(ids, mlxc.Ones(mlxc.Uint32, n), 0)
	named := uses.Greater(mlxc.Scalar[uint32](0))
	numbers := mlxc.Arange(mlxc.Uint32, 0, float64(v), 1)
	rows := mlxc.Where(named, numbers, mlxc.Scalar(uint32(v))).Sort(0).Slice([]int{0}, []int{k}, nil)
	return []*mlxc.Array{rows, table.Take(rows, 0), named.AsType(mlxc.Uint32).Sum()}
}

// guarded adapts a case with ids out of range: ours gets unevaluated ids, and MLX, which would read out of bounds, does
// not run.
func (c embeddingCase) guarded(out compare.Case) compare.Case {
	if c.outOfRange {
		out.Ours, out.MLX = withComputed(1, out.Ours), nil
		out.Unsafe = "MLX would read and write out of bounds"
	}
	return out
}

// withComputed passes f, as argument i, an equal but unevaluated array.
func withComputed(i int, f mlxc.Func) mlxc.Func {
	return func(in []*mlxc.Array) []*mlxc.Array {
		in = slices.Clone(in)
		in[i] = in[i].Add(mlxc.Zeros(in[i].DType()))
		return f(in)
	}
}

// rows returns the shape of y.
func (c embeddingCase) rows() []int { return append(slices.Clone(c.ids), c.d) }

func (c embeddingCase) idsInput() compare.Input {
	in := compare.Input{Name: "ids", Shape: c.ids, Kind: indexKind(c.signed), Layout: c.layouts["ids"], Values: c.draw}
	if in.Values == nil {
		in.Values = uniformIDs(c.v)
	}
	if c.outOfRange {
		in.Values = sometimes(in.Values, outside(c.v, c.signed))
	}
	return in
}

func (c embeddingCase) name() string {
	return caseName(fmt.Sprintf("%s of %dx%d", dimensions(c.ids), c.v, c.d),
		noteIf(c.signed, "int32"), noteIf(c.outOfRange, "out of range"), c.layouts.String(), c.label)
}

// noteIf returns the note of a name if a condition holds.
func noteIf(holds bool, note string) string {
	if holds {
		return note
	}
	return ""
}

// indexKind returns the kind of ids and targets.
func indexKind(signed bool) compare.Kind {
	if signed {
		return compare.SignedIndex
	}
	return compare.Index
}

// outside returns indices outside a table of v rows.
func outside(v int, signed bool) []float64 {
	if signed {
		return []float64{float64(v), -1, 1 << 30, -1 << 31}
	}
	return []float64{float64(v), 1 << 31, 1<<32 - 1}
}

// uniformIDs draws uniformly from v rows.
func uniformIDs(v int) compare.Values {
	return eachID(func(rng *rand.Rand, _ int) int { return rng.IntN(v) })
}

// equalIDs repeats one random row of v.
func equalIDs(v int) compare.Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		return slices.Repeat([]float64{float64(rng.IntN(v))}, oracle.Size(shape))
	}
}

// skewedIDs draws few of v rows often and many never, like the words of a language.
func skewedIDs(v int) compare.Values {
	return eachID(func(rng *rand.Rand, _ int) int {
		u := rng.Float64()
		return int(float64(v) * u * u * u * u)
	})
}

// distinctIDs returns the v rows in turn, from the last one.
func distinctIDs(v int) compare.Values {
	return eachID(func(_ *rand.Rand, i int) int { return v - 1 - i%v })
}

// endIDs draws the first and the last of v rows.
func endIDs(v int) compare.Values {
	return eachID(func(rng *rand.Rand, _ int) int { return rng.IntN(2) * (v - 1) })
}

func eachID(draw func(rng *rand.Rand, i int) int) compare.Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := make([]float64, oracle.Size(shape))
		for i := range out {
			out[i] = float64(draw(rng, i))
		}
		return out
	}
}

// sometimes replaces about every fourth value by one of the others.
func sometimes(values compare.Values, others []float64) compare.Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := values(rng, shape)
		for i := range out {
			if rng.IntN(4) == 0 {
				out[i] = others[rng.IntN(len(others))]
			}
		}
		return out
	}
}
