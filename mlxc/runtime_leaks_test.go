package mlxc_test

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// When MLX copies the graph of a function, it leaks arrays whose sibling outputs refer to each other, and everything
// that they depend on.
func TestGraphsOfTracedFunctionsAreFreed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	call := func(f mlxc.Func, x arrays) error {
		c := mlxc.Compile(f)
		defer c.Close()
		out, err := c.Call(x...)
		if err != nil {
			return err
		}
		return mlxc.Eval(out...)
	}
	for name, traced := range map[string]func(f mlxc.Func, x arrays) error{
		"Compile": call,
		"Trace": func(f mlxc.Func, x arrays) error {
			_, err := mlxc.Trace(f, x)
			return err
		},
		"Export": func(f mlxc.Func, x arrays) error { return mlxc.Export(file, f, x...) },
		"ExportShapeless": func(f mlxc.Func, x arrays) error {
			// MLX cannot infer the shapes of a checkpoint. Its graph is freed too.
			if err := mlxc.ExportShapeless(file, f, x...); err == nil || !strings.Contains(err.Error(), "Depends") {
				return fmt.Errorf("the error of a checkpoint is %w", err)
			}
			return mlxc.ExportShapeless(file, func(a arrays) arrays {
				quotient, remainder := a[0].DivMod(x[1])
				return arrays{quotient.Add(remainder)}
			}, x[0])
		},
		"ExportTraces": func(f mlxc.Func, x arrays) error { return mlxc.ExportTraces(file, f, x) },
		"ExportNamed": func(f mlxc.Func, x arrays) error {
			named := func(args []*mlxc.Array, named map[string]*mlxc.Array) []*mlxc.Array {
				return f(arrays{args[0], named["y"]})
			}
			return mlxc.ExportNamed(file, named, map[string]*mlxc.Array{"y": x[1]}, x[0])
		},
	} {
		t.Run(name, func(t *testing.T) {
			const size = 1 << 18 // bytes of a constant
			before := mlxc.ActiveMemory()
			for range 30 {
				mlxc.WithScope(func() {
					constant := mlxc.Ones(mlxc.Float32, size/4)
					require.NoError(t, mlxc.Eval(constant))
					part := mlxc.Checkpoint(func(a arrays) arrays { return arrays{a[0].Mul(a[1]).Sin()} })
					f := mlxc.AsFunc(mlxc.Grad(func(a arrays) arrays {
						return arrays{part(arrays{a[0].Mul(constant), a[1]})[0].Sum()}
					}))
					require.NoError(t, traced(f, arrays{
						mlxc.Ones(mlxc.Float32, size/4),
						mlxc.Ones(mlxc.Float32, size/4),
					}))
				})
			}
			require.Eventually(t, func() bool {
				runtime.GC()
				return mlxc.ActiveMemory()-before < 3*size
			}, 10*time.Second, 10*time.Millisecond)
		})
	}
}

// MLX never frees the stream that it makes for an unknown thread.
func TestThreadsLeaveNoStreams(t *testing.T) {
	streams := func() int {
		names, err := mlxc.StreamNames()
		require.NoError(t, err)
		return len(names)
	}
	ended := func(f func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread() // the thread ends with the goroutine
			f()
		}()
		<-done
	}
	file := filepath.Join(t.TempDir(), "f")
	constant := mlxc.Ones(mlxc.Float32, 4)
	require.NoError(t, mlxc.Eval(constant))
	x := mlxc.FromSlice([]float32{1, 2, 3, 4})
	require.NoError(t, mlxc.Export(file, func(a arrays) arrays { return arrays{a[0].Mul(constant)} }, x))
	q := mlxc.Ones(mlxc.Float16, 8, 64).Quantize(mlxc.QuantizeConfig{})
	require.NoError(t, mlxc.Eval(q.Weight, q.Scales, q.Biases))
	for name, f := range map[string]func(){
		"Eval":      func() { _ = mlxc.Eval(x.Sin()) },
		"AsyncEval": func() { _ = mlxc.AsyncEval(x.Sin()) },
		"ToSlice":   func() { _, _ = mlxc.ToSlice[float32](x.Sin()) },
		"a product with casts on MLX's default stream": func() {
			_ = mlxc.Ones(mlxc.Float32, 1, 64).QuantizedMatMul(q, true)
		},
		"Import": func() {
			if imported, err := mlxc.Import(file); err == nil {
				imported.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ended(f)
			before := streams()
			for range 10 {
				ended(f)
			}
			require.Equal(t, before, streams())
		})
	}
	var y *mlxc.Array
	ended(func() { y = mlxc.Ones(mlxc.Float32, 1, 64).QuantizedMatMul(q, true) })
	require.Equal(t, []float32{64, 64, 64, 64, 64, 64, 64, 64}, floats(t, y), "the node can be computed on another thread")
}
