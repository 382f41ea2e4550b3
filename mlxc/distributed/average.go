package distributed

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// messageBytes is the maximum size of a message of AverageGradients with several arrays. At this size the latency of a
// message is negligible, and the concatenated copy is small compared with a model.
const messageBytes = 32 << 20

// AverageGradients returns, for each array, the mean of the arrays that the processes pass in its place. If every
// process computes the gradients of an equal share of a batch, the means are the gradients of the batch. The processes
// must pass lists of equal length, shapes and dtypes, floating-point or complex. Arrays of one dtype are summed
// together, in few messages.
//
// With NCCL, AverageGradients starts to compute the arrays, from the last one to the first, and sends each message as
// soon as its arrays are computed, on a stream of its own. If the arrays are in the order of a model's layers, the
// gradients of the last layers are sent while those of the first layers are computed. Under a transform, such as
// [mlxc.Compile], and with other backends, messages are sent when a mean is evaluated.
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
	for _, message := range slices.Backward(messages(grads)) { // a backward pass begins with the last layers
		g.averageMessage(message, grads, means)
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
	mean := func(a *mlxc.Array) *mlxc.Array { return keep(g.sum(a)).DivScalar(float64(g.size)) }
	if len(message) == 1 {
		a := grads[message[0]]
		means[message[0]] = mean(a.Reshape(a.Shape()...))
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
	parts := keep(mean(mlxc.Concatenate(0, flat...))).SplitAt(0, ends[:len(ends)-1]...)
	for k, i := range message {
		means[i] = keep(parts[k]).Reshape(grads[i].Shape()...)
	}
}

// sum is AllSum, and frees a. With NCCL it also starts to compute a and the sum, unless a is traced.
func (g *Group) sum(a *mlxc.Array) *mlxc.Array {
	defer a.Free()
	if g.backend != NCCL || a.IsTraced() {
		return g.AllSum(a)
	}
	stream, err := messageStream()
	if err != nil {
		return invalid("AverageGradients", err, a)
	}
	// Two evaluations: within one, MLX for CUDA blocks the host until the operand of a message on another stream is
	// computed.
	if err := mlxc.AsyncEval(a); err != nil {
		return mlxc.InvalidArray(err)
	}
	var sum *mlxc.Array
	mlxc.WithStream(stream, func() { sum = g.AllSum(a) })
	a.Free() // without a handle, MLX writes the sum into the memory of a
	if err := mlxc.AsyncEval(sum); err != nil {
		sum.Free()
		return mlxc.InvalidArray(err)
	}
	return sum
}

// messageStream returns the GPU stream of messages. Only NCCL uses it: the ranks of a ring exchange all messages over the
// same sockets, so two streams would mix them up.
var messageStream = sync.OnceValues(func() (*mlxc.Stream, error) { return mlxc.NewStream(mlxc.GPU) })
