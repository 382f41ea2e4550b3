package mlxc_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/testdevice"
	"github.com/mlxgrad/mlxgrad/mlxc"
	"github.com/mlxgrad/mlxgrad/mlxc/mlxio"
)

// Failing and successful evaluations run concurrently on one stream. Each call returns its own error, and every
// successful one its own numbers. Run with -race.
func TestFailuresStayWithTheirEvaluation(t *testing.T) {
	testdevice.CPUOnly(t, "evaluates factorizations, which MLX has for CPUs only")
	rounds := 200
	if long.Enabled() {
		rounds = 20_000
	}
	dir := t.TempDir()
	one := mlxc.Scalar[float32](1)
	compiled := mlxc.Compile(single(func(a *mlxc.Array) *mlxc.Array { return a.Mul(a).Add(one) }))
	defer compiled.Close()
	compiledInverse := mlxc.Compile(single((*mlxc.Array).Inv))
	defer compiledInverse.Close()

	fails := func(text string, err error) error {
		if err == nil {
			return fmt.Errorf("there is no error: an error with %q is wanted", text)
		}
		if !strings.Contains(err.Error(), text) {
			return fmt.Errorf("%q is not in the error: %w", text, err)
		}
		return nil
	}
	equals := func(want ...float32) func(a *mlxc.Array) error {
		return func(a *mlxc.Array) error {
			got, err := mlxc.ToSlice[float32](a)
			if err == nil && !slices.EqualFunc(got, want, close32) {
				err = fmt.Errorf("the elements are %v, want %v", got, want)
			}
			return err
		}
	}
	const singular, triangular, memory = "LU factorization failed", "triangular inversion failed", "out of memory"
	zeros := func() *mlxc.Array { return mlxc.Zeros(mlxc.Float32, 3, 3) }
	two := func() *mlxc.Array { return mlxc.FromSlice([]float32{2, 0, 0, 2}, 2, 2) }
	works := map[string]func(i int) error{
		"singular, Eval": func(int) error { return fails(singular, mlxc.Eval(zeros().Inv())) },
		"singular, ToSlice": func(int) error {
			_, err := mlxc.ToSlice[float32](zeros().Inv())
			return fails(singular,
				err)
		},
		"singular, twice": func(int) error {
			a := zeros().Inv()
			if err := fails(singular, mlxc.Eval(a)); err != nil {
				return err
			}
			return fails(singular, mlxc.Eval(a))
		},
		"singular, AsyncEval": func(int) error {
			a := zeros().Inv()
			if err := mlxc.AsyncEval(a); err != nil {
				return fails(singular, err)
			}
			return fails(singular, mlxc.Eval(a))
		},
		"singular, compiled": func(int) error {
			out, err := compiledInverse.Call(zeros())
			if err != nil {
				return err
			}
			return fails(singular, mlxc.Eval(out...))
		},
		"triangular": func(int) error { return fails(triangular, mlxc.Eval(zeros().TriInv(false))) },
		"memory": func(int) error {
			return fails(memory, mlxc.Eval(mlxc.Ones(mlxc.Float32, 1<<23, 1<<22).Exp()))
		},
		"inverse": func(int) error { return equals(0.5, 0, 0, 0.5)(two().Inv()) },
		"sum": func(i int) error {
			return equals(float32(8 * i))(mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(i)), 8).Sum())
		},
		"AsyncEval": func(i int) error {
			a := mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(i)), 2).Add(one)
			if err := mlxc.AsyncEval(a); err != nil {
				return err
			}
			return equals(float32(i+1), float32(i+1))(a)
		},
		"compiled": func(i int) error {
			out, err := compiled.Call(mlxc.FromSlice([]float32{float32(i)}))
			if err != nil {
				return err
			}
			return equals(float32(i*i + 1))(out[0])
		},
		"gradient": func(i int) error {
			x := mlxc.FromSlice([]float32{float32(i)})
			_, grads, err := mlxc.VJP(single((*mlxc.Array).Square), arrays{x}, arrays{mlxc.OnesLike(x)})
			if err != nil {
				return err
			}
			return equals(float32(2 * i))(grads[0])
		},
		"saved": func(i int) error {
			path := filepath.Join(dir, fmt.Sprint(i%4, ".npy"))
			return mlxio.SaveNPY(path, mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(i)), 4).Exp())
		},
		"freed": func(i int) error {
			a := mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(i)), 4)
			b := a.Neg()
			a.Free()
			return equals(slices.Repeat([]float32{float32(-i)}, 4)...)(b)
		},
		"printed": func(int) error {
			if text := two().String(); !strings.Contains(text, "[2, 0]") {
				return fmt.Errorf("printed as %s", text)
			}
			return nil
		},
	}
	var wg sync.WaitGroup
	for name, work := range works {
		wg.Go(func() {
			wrong, first := 0, error(nil)
			// Factorizations need CPU streams.
			err := mlxc.WithDevice(mlxc.CPU, func() {
				for i := range rounds {
					mlxc.WithScope(func() {
						if err := work(i % 1000); err != nil {
							if wrong++; first == nil {
								first = err
							}
						}
					})
				}
			})
			if err != nil {
				t.Error(err)
			}
			if wrong > 0 {
				t.Errorf("%s: %d of %d calls are wrong, the first with %v", name, wrong, rounds, first)
			}
		})
	}
	wg.Wait()
	require.NoError(t, mlxc.Synchronize())
}
