package distributed

import (
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// messageBytes is the maximum size of a message of AverageGradients with several arrays. At this size the latency of a
// message is negligible, and the concatenated copy is small compared with a model.
const messageBytes = 32 << 20

// AverageGradients returns, for each array, the mean of the arrays that the processes pass in its place. If every
// process computes the gradients of an equal share of a batch, the means are the gradients of the batch. The processes
// must pass lists of equal length, shapes and dtypes, floating-point or complex. Arrays of one dtype are summed
// together, in few messages. Those of float16 are summed in float32, because a sum may overflow where the mean does not.
//
// If an argument is not allowed, all results are invalid arrays with the error.
func (g *Group) AverageGradients(grads []*mlxc.Array) []*mlxc.Array {
	means := make([]*mlxc.Array, len(grads))
	if err := g.checkGradients(grads); err != nil {
		for i := range means {
			means[i] = mlxc.InvalidArray(err)
		}
		return means
	}
	wide := make([]*mlxc.Array, len(grads))
	for i, a := range grads {
		wide[i] = a
		if a.DType() == mlxc.Float16 {
			wide[i] = a.AsType(mlxc.Float32)
			defer wide[i].Free()
		}
	}
	for _, message := range messages(wide) {
		g.averageMessage(message, wide, means)
	}
	for i, a := range grads {
		if a.DType() == mlxc.Float16 {
			defer means[i].Free()
			means[i] = means[i].AsType(mlxc.Float16)
		}
	}
	return means
}

func (g *Group) checkGradients(grads []*mlxc.Array) error {
	const op = "AverageGradients"
	if g == nil {
		return mlxc.NewError(op, errNoGroup)
	}
	for i, a := range grads {
		if err := a.Err(); err != nil {
			return mlxc.NewError(op, fmt.Errorf("array %d: %w", i, err))
		}
		if d := a.DType(); !d.IsFloating() && d != mlxc.Complex64 {
			return mlxc.NewError(op, fmt.Errorf("the dtype is %v; it must be floating-point or complex", d), a)
		}
	}
	return nil
}

// messages returns the indices of the arrays of each message.
func messages(arrays []*mlxc.Array) [][]int {
	var all [][]int
	current := map[mlxc.DType]int{} // index, in all, of the message to extend
	bytes := map[mlxc.DType]int{}
	for i, a := range arrays {
		d := a.DType()
		m, ok := current[d]
		if !ok || bytes[d]+a.NBytes() > messageBytes {
			m = len(all)
			current[d], bytes[d] = m, 0
			all = append(all, nil)
		}
		all[m] = append(all[m], i)
		bytes[d] += a.NBytes()
	}
	return all
}

// averageMessage sets the means of the arrays of one message.
func (g *Group) averageMessage(message []int, grads, means []*mlxc.Array) {
	var temporary []*mlxc.Array
	keep := func(a *mlxc.Array) *mlxc.Array { temporary = append(temporary, a); return a }
	defer func() {
		for _, a := range temporary {
			a.Free()
		}
	}()
	mean := func(a *mlxc.Array) *mlxc.Array { return keep(g.AllSum(a)).DivScalar(float64(g.size)) }
	if len(message) == 1 {
		means[message[0]] = mean(grads[message[0]])
		return
	}
	var flat []*mlxc.Array
	var ends []int
	end := 0
	for _, i := range message {
		flat = append(flat, keep(grads[i].Reshape(grads[i].Size())))
		end += grads[i].Size()
		ends = append(ends, end)
	}
	parts := keep(mean(keep(mlxc.Concatenate(0, flat...)))).SplitAt(0, ends[:len(ends)-1]...)
	for k, i := range message {
		means[i] = keep(parts[k]).Reshape(grads[i].Shape()...)
	}
}
