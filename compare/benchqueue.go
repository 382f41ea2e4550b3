package compare

import "github.com/mlxgrad/mlxgrad/mlxc"

// benchQueue keeps a GPU busy while the host submits what is timed, so that the GPU then has it all at hand
// and waits for nothing. Matrix products take long for what they hold: beyond ten unfinished tasks, of which
// arrays of many bytes are one each, MLX lets nobody submit more.
type benchQueue struct {
	factor *mlxc.Array
	links  int
}

const (
	queueSize = 8192
	mostLinks = 8
)

// newBenchQueue makes one for the current device; nil on a CPU, where the host is the device.
func newBenchQueue() (*benchQueue, error) {
	if mlxc.CurrentDevice() == mlxc.CPU {
		return nil, nil
	}
	// The products' rows have the factor's size, so that no number grows.
	factor := mlxc.RandomNormal(mlxc.RandomKey(3), mlxc.BFloat16, queueSize, queueSize).MulScalar(1.0 / 128)
	return &benchQueue{factor: factor, links: 1}, mlxc.Eval(factor)
}

// start submits the work, and returns the array that is there when it is done.
func (q *benchQueue) start() (*mlxc.Array, error) {
	end := q.factor
	for range q.links {
		end = end.MatMul(q.factor)
	}
	return end, mlxc.AsyncEval(end)
}

// lengthen doubles the work, up to a limit.
func (q *benchQueue) lengthen() { q.links = min(2*q.links, mostLinks) }
