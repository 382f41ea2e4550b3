package bench

import "github.com/mlxgrad/mlxgrad/mlxc"

// busyWork keeps a GPU busy while the host submits the timed work, so that the GPU never waits for the host during that
// work. It consists of a few long matrix products, because MLX blocks the host while more than ten tasks are
// unfinished, and an operation on large arrays is a task of its own.
type busyWork struct {
	factor   *mlxc.Array
	products int
}

const (
	busySize    = 8192
	maxProducts = 8
)

// newBusyWork returns the work for the current device. It is nil on a CPU, where the host is the device.
func newBusyWork() (*busyWork, error) {
	if mlxc.CurrentDevice() == mlxc.CPU {
		return nil, nil
	}
	// The factor 1/128 keeps the size of the products' elements constant.
	factor := mlxc.RandomNormal(mlxc.RandomKey(3), mlxc.BFloat16, busySize, busySize).MulScalar(1.0 / 128)
	return &busyWork{factor: factor, products: 1}, mlxc.Eval(factor)
}

// start submits the work and returns its result, which is available when the work is done.
func (b *busyWork) start() (*mlxc.Array, error) {
	end := b.factor
	for range b.products {
		end = end.MatMul(b.factor)
	}
	return end, mlxc.AsyncEval(end)
}

// lengthen doubles the work, up to maxProducts.
func (b *busyWork) lengthen() { b.products = min(2*b.products, maxProducts) }
