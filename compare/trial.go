package compare

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/mlxgrad/mlxgrad/compare/oracle"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// trial is one input of [Gradients]: the choice of everything that a case leaves open. Its text is the value of
// -compare.case.
type trial struct {
	call, at int // the numbers of the call of Gradients and of the case
	dtype    mlxc.DType
	sizes    map[string]int    // by the name of a dimension
	values   map[string]string // by the name of an input: a key of namedValues; usualValues if absent
	layouts  map[string]Layout // by the name of an input, or cotangents; contiguous if absent
	seed     uint64
}

// cotangents is the name of all cotangents in a trial.
const cotangents = "cotangents"

// usualValues names Normal(1), the values of an input without an entry in trial.values.
const usualValues = "normal"

// namedValues returns the values from which [Gradients] chooses for an input without Values, by their names in a trial.
func namedValues() map[string]Values {
	return map[string]Values{
		usualValues: Normal(1), "integers": integers, "either-sign": EitherSign, "equal": EqualRows, "far": Far, "spread": Spread,
		"spike": Spike, "zero": Zeros,
	}
}

// integers draws integers from −3 to 3 without 0.
func integers(rng *rand.Rand, shape []int) []float64 {
	out := make([]float64, oracle.Size(shape))
	for i := range out {
		out[i] = math.Copysign(float64(1+rng.IntN(3)), rng.Float64()-0.5)
	}
	return out
}

// defaultSizes returns powers of two up to 128 with their neighbors. Between them kernels change their use of vectors,
// simdgroups and threadgroups.
func defaultSizes() []int {
	return []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129}
}

// sizesOf returns the sizes that a dimension may have, in ascending order.
func (c Case) sizesOf(dim string) []int {
	if sizes := c.Sizes[dim]; len(sizes) > 0 {
		return slices.Compact(slices.Sorted(slices.Values(sizes)))
	}
	return defaultSizes()
}

// dims lists the names of the dimensions in the order of the inputs.
func (c Case) dims() []string {
	var names []string
	for _, in := range c.Inputs {
		for _, dim := range in.Dims {
			if !slices.Contains(names, dim) {
				names = append(names, dim)
			}
		}
	}
	return names
}

// The largest numbers of elements of an input, which limit the time of a trial. A size that a trial must have may exceed
// them. Finite differences call the reference at least four times for each element.
const (
	largestInput            = 1 << 14
	largestInputDifferences = 1 << 8
)

// dimSize is a size of a dimension.
type dimSize struct {
	dim  string
	size int
}

// requiredSizes lists sizes that trials must have, one for each trial: the sizes in c.Sizes, whose number is listed, and
// the default sizes of the other dimensions in turn, the largest first and the rest in random order.
func (c Case) requiredSizes(rng *rand.Rand) (required []dimSize, listed int) {
	var usual [][]int
	var dims []string
	for _, dim := range c.dims() {
		sizes := c.sizesOf(dim)
		switch {
		case len(c.Sizes[dim]) == 0:
			order := []int{sizes[len(sizes)-1]}
			for _, at := range rng.Perm(len(sizes) - 1) {
				order = append(order, sizes[at])
			}
			dims, usual = append(dims, dim), append(usual, order)
		case len(sizes) > 1:
			for _, size := range sizes {
				required = append(required, dimSize{dim, size})
			}
		}
	}
	listed = len(required)
	for i := range defaultSizes() {
		for k, dim := range dims {
			required = append(required, dimSize{dim, usual[k][i]})
		}
	}
	return required, listed
}

// randomTrial draws a trial without a dtype, with a required size unless its dimension is "".
func (c Case) randomTrial(rng *rand.Rand, required dimSize) trial {
	tr := trial{sizes: map[string]int{}, values: map[string]string{}, layouts: map[string]Layout{}, seed: uint64(rng.Uint32())}
	dims := c.dims()
	for _, dim := range dims {
		sizes := c.sizesOf(dim)
		tr.sizes[dim] = sizes[rng.IntN(len(sizes))]
	}
	if required.dim != "" {
		tr.sizes[required.dim] = required.size
	}
	limit := largestInput
	if c.byDifferences() {
		limit = largestInputDifferences
	}
	// Reduce the sizes of random dimensions until every input is within the limit, or no size can be smaller.
	for c.largest(tr) > limit {
		shrinkable := slices.DeleteFunc(slices.Clone(dims), func(dim string) bool {
			return dim == required.dim || tr.sizes[dim] == c.sizesOf(dim)[0]
		})
		if len(shrinkable) == 0 {
			break
		}
		dim := shrinkable[rng.IntN(len(shrinkable))]
		sizes := c.sizesOf(dim)
		tr.sizes[dim] = sizes[slices.Index(sizes, tr.sizes[dim])-1]
	}
	names := slices.Sorted(maps.Keys(namedValues()))
	large := required.dim != "" && (len(c.Sizes[required.dim]) > 0 || required.size == slices.Max(c.sizesOf(required.dim)))
	layouts := layouts()[1:]
	for _, in := range c.Inputs {
		if in.random() && rng.IntN(2) == 0 {
			tr.values[in.Name] = names[rng.IntN(len(names))]
			if large && tr.values[in.Name] == "zero" {
				delete(tr.values, in.Name) // zeros hide mistakes, and the size may occur once
			}
		}
		if in.Layout == "" && rng.IntN(2) == 0 {
			tr.layouts[in.Name] = layouts[rng.IntN(len(layouts))].within(len(in.Dims) + len(in.Shape))
		}
	}
	if rng.IntN(2) == 0 {
		tr.layouts[cotangents] = layouts[rng.IntN(len(layouts))]
	}
	return tr
}

// largest returns the number of elements of the largest input.
func (c Case) largest(tr trial) int {
	n := 0
	for _, in := range c.Inputs {
		n = max(n, oracle.Size(in.shapeAt(tr)))
	}
	return n
}

// random reports whether Gradients chooses the values of the input.
func (in Input) random() bool { return in.Values == nil && (in.Kind == Real || in.Kind == Constant) }

func (in Input) shapeAt(tr trial) []int {
	if in.Dims == nil {
		return in.Shape
	}
	shape := make([]int, len(in.Dims))
	for i, dim := range in.Dims {
		shape[i] = tr.sizes[dim]
	}
	return shape
}

// within returns the layout, or Contiguous if it needs more axes than an array has.
func (l Layout) within(axes int) Layout {
	if axes >= l.leastAxes() {
		return l
	}
	return Contiguous
}

// resolve returns the case with the shapes, values and layouts of a trial. The shapes of the outputs are the reference's.
func (c Case) resolve(tr trial) (Case, error) {
	c.Name = strconv.FormatUint(tr.seed, 10) // seeds the values
	c.sampling = true
	c.Inputs = slices.Clone(c.Inputs)
	for i := range c.Inputs {
		in := &c.Inputs[i]
		in.Shape, in.Dims = in.shapeAt(tr), nil
		if in.Layout == "" {
			in.Layout = tr.layouts[in.Name].within(len(in.Shape))
		}
		switch {
		case in.random():
			in.Values = Normal(1)
			if name, given := tr.values[in.Name]; given {
				in.Values = namedValues()[name]
			}
		case in.Values == nil && in.Kind == Mask:
			in.Values = halves
		case in.Values == nil:
			in.Values = below(tr.sizes[in.Below])
		}
	}

	forward := c
	forward.Outputs, forward.Inputs = nil, slices.Clone(c.Inputs)
	for i := range forward.Inputs {
		if forward.Inputs[i].Kind == Real {
			forward.Inputs[i].Kind = Constant // without gradients
		}
	}
	data, err := drawOperands(RNG("", c.Name), forward, tr.dtype)
	if err != nil {
		return c, err
	}
	results, _, err := forward.evaluate(tensors(data.inputs), nil)
	if err != nil {
		return c, err
	}
	if c.Outputs == nil {
		c.Outputs = defaultOutputs(len(results))
	}
	if len(results) != len(c.Outputs) {
		return c, fmt.Errorf("it returns %d outputs; the case has %d", len(results), len(c.Outputs))
	}
	c.Outputs = slices.Clone(c.Outputs)
	for i := range c.Outputs {
		out := &c.Outputs[i]
		if len(results[i].Data) != oracle.Size(results[i].Shape) {
			return c, fmt.Errorf("its output %d has the shape %v and %d elements", i, results[i].Shape, len(results[i].Data))
		}
		out.Shape = results[i].Shape
		if out.Layout == "" {
			out.Layout = tr.layouts[cotangents].within(len(out.Shape))
		}
	}
	return c, nil
}

// defaultOutputs names n outputs: y, or y0, y1 and so on.
func defaultOutputs(n int) []Output {
	if n == 1 {
		return []Output{{Name: "y"}}
	}
	out := make([]Output, n)
	for i := range out {
		out[i].Name = "y" + strconv.Itoa(i)
	}
	return out
}

// halves draws 0 or 1 with equal probability.
func halves(rng *rand.Rand, shape []int) []float64 { return below(2)(rng, shape) }

// below draws integers from 0 to n−1.
func below(n int) Values {
	return func(rng *rand.Rand, shape []int) []float64 {
		out := make([]float64, oracle.Size(shape))
		for i := range out {
			out[i] = float64(rng.IntN(n))
		}
		return out
	}
}

// String writes the trial as "float32 d=4 rows=3 x:spike x:strided seed=7".
func (tr trial) String() string {
	var words []string
	for _, n := range []struct {
		name  string
		value int
	}{{"call", tr.call}, {"case", tr.at}} {
		if n.value > 0 {
			words = append(words, fmt.Sprintf("%s=%d", n.name, n.value))
		}
	}
	words = append(words, tr.dtype.String())
	for _, dim := range slices.Sorted(maps.Keys(tr.sizes)) {
		words = append(words, fmt.Sprintf("%s=%d", dim, tr.sizes[dim]))
	}
	for _, name := range slices.Sorted(maps.Keys(tr.values)) {
		words = append(words, name+":"+tr.values[name])
	}
	for _, name := range slices.Sorted(maps.Keys(tr.layouts)) {
		words = append(words, name+":"+string(tr.layouts[name]))
	}
	return strings.Join(append(words, fmt.Sprintf("seed=%d", tr.seed)), " ")
}

// parseTrial reads the text of a trial. It returns nil for an empty text.
func parseTrial(text string) (*trial, error) {
	if text == "" {
		return nil, nil
	}
	tr := trial{sizes: map[string]int{}, values: map[string]string{}, layouts: map[string]Layout{}}
	for word := range strings.FieldsSeq(text) {
		if name, number, found := strings.Cut(word, "="); found {
			n, err := strconv.ParseUint(number, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("%q must be a name, an equal sign and a number", word)
			}
			switch name {
			case "seed":
				tr.seed = n
			case "call":
				tr.call = int(n)
			case "case":
				tr.at = int(n)
			default:
				tr.sizes[name] = int(n)
			}
			continue
		}
		if name, value, found := strings.Cut(word, ":"); found {
			if _, known := namedValues()[value]; known {
				tr.values[name] = value
			} else {
				tr.layouts[name] = Layout(value)
			}
			continue
		}
		at := slices.IndexFunc(DTypes(), func(d mlxc.DType) bool { return d.String() == word })
		if at < 0 {
			return nil, fmt.Errorf("%q is neither NAME=NUMBER, NAME:CHOICE nor one of the dtypes %v", word, DTypes())
		}
		tr.dtype = DTypes()[at]
	}
	if tr.dtype == mlxc.Invalid {
		return nil, fmt.Errorf("the dtype is missing; it must be one of %v", DTypes())
	}
	return &tr, nil
}
