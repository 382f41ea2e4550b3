package mlxc_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// asked records the results of Differentiating.
type asked []bool

func (s *asked) ask() { *s = append(*s, mlxc.Differentiating()) }

// squareSum records Differentiating and returns Σ x².
func (s *asked) squareSum(a arrays) arrays {
	s.ask()
	return arrays{a[0].Square().Sum()}
}

func TestDifferentiating(t *testing.T) {
	x, one := mlxc.FromSlice([]float32{1, 2}), mlxc.Scalar[float32](1)
	vjp := func(t *testing.T, f mlxc.Func) {
		t.Helper()
		_, grads, err := mlxc.VJP(f, arrays{x}, arrays{one})
		require.NoError(t, err)
		require.Equal(t, []float32{2, 4}, floats(t, grads[0]))
	}
	ok := func(t *testing.T, a arrays) arrays {
		t.Helper()
		require.NoError(t, a[0].Err())
		return a
	}
	for _, c := range []struct {
		name string
		run  func(t *testing.T, s *asked)
		want asked
	}{
		{"nowhere", func(_ *testing.T, s *asked) { s.ask() }, asked{false}},
		{"VJP", func(t *testing.T, s *asked) { vjp(t, s.squareSum); s.ask() }, asked{true, false}},
		{"ValueAndGrad", func(t *testing.T, s *asked) {
			_, _, err := mlxc.ValueAndGrad(s.squareSum)(arrays{x})
			require.NoError(t, err)
			s.ask()
		}, asked{true, false}},
		{"nested", func(t *testing.T, s *asked) {
			vjp(t, func(a arrays) arrays {
				s.ask()
				_, _, err := mlxc.VJP(s.squareSum, a, arrays{one})
				require.NoError(t, err)
				s.ask()
				return arrays{a[0].Square().Sum()}
			})
			s.ask()
		}, asked{true, true, true, false}},
		{"CustomVJP alone", func(t *testing.T, s *asked) {
			ok(t, mlxc.CustomVJP(s.squareSum, func(p, _, _ arrays) arrays { return p })(arrays{x}))
		}, asked{false}},
		{"CustomVJP: its function, not its gradient", func(t *testing.T, s *asked) {
			vjp(t, mlxc.CustomVJP(s.squareSum, func(p, c, _ arrays) arrays {
				s.ask()
				return arrays{p[0].MulScalar(2).Mul(c[0])}
			}))
		}, asked{true, false}},
		{"the gradient of a gradient", func(t *testing.T, s *asked) {
			f := mlxc.CustomVJP(func(a arrays) arrays { return arrays{a[0].Square()} }, func(p, c, _ arrays) arrays {
				s.ask()
				return arrays{p[0].MulScalar(2).Mul(c[0])}
			})
			vjp(t, func(a arrays) arrays {
				_, g, err := mlxc.VJP(f, a, arrays{mlxc.Ones(mlxc.Float32, 2)})
				require.NoError(t, err)
				return arrays{g[0].Square().MulScalar(0.25).Sum()}
			})
		}, asked{true}},
		{
			"Checkpoint alone", func(t *testing.T, s *asked) { ok(t, mlxc.Checkpoint(s.squareSum)(arrays{x})) },
			asked{false},
		},
		{"Checkpoint, both times", func(t *testing.T, s *asked) {
			vjp(t, mlxc.Checkpoint(s.squareSum))
			s.ask()
		}, asked{true, true, false}},
		{"Checkpoint whose gradient comes later", func(t *testing.T, s *asked) {
			// The node is made before VJP runs; VJP then runs the function a second time.
			vjp(t, func(a arrays) arrays { return mlxc.Checkpoint(s.squareSum)(a) })
		}, asked{true, true}},
		{
			"Vmap alone", func(t *testing.T, s *asked) { ok(t, mlxc.Vmap(s.squareSum, nil, nil)(arrays{x})) },
			asked{false},
		},
		{"Vmap inside", func(t *testing.T, s *asked) {
			vjp(t, func(a arrays) arrays { return arrays{ok(t, mlxc.Vmap(s.squareSum, nil, nil)(a))[0].Sum()} })
		}, asked{true}},
		{"Vmap outside", func(t *testing.T, s *asked) {
			ok(t, mlxc.Vmap(func(a arrays) arrays {
				s.ask()
				_, g, err := mlxc.VJP(s.squareSum, a, arrays{one})
				require.NoError(t, err)
				return g
			}, nil, nil)(arrays{x}))
		}, asked{false, true}},
		{"Compile alone", func(t *testing.T, s *asked) {
			_, err := mlxc.Compile(s.squareSum).Call(x)
			require.NoError(t, err)
		}, asked{false}},
		{"Compile inside", func(t *testing.T, s *asked) {
			c := mlxc.Compile(s.squareSum)
			_, err := c.Call(x)
			require.NoError(t, err)
			_, grads, err := mlxc.ValueAndGrad(func(a arrays) arrays {
				out, err := c.Call(a...)
				require.NoError(t, err)
				return out
			})(arrays{x})
			require.NoError(t, err)
			require.Equal(t, []float32{2, 4}, floats(t, grads[0]))
		}, asked{false, true}},
		{"Compile outside", func(t *testing.T, s *asked) {
			c := mlxc.Compile(func(a arrays) arrays {
				s.ask()
				_, grads, err := mlxc.ValueAndGrad(s.squareSum)(a)
				s.ask()
				if err != nil {
					return arrays{mlxc.InvalidArray(err)}
				}
				return grads
			})
			for range 2 {
				out, err := c.Call(x)
				require.NoError(t, err)
				require.Equal(t, []float32{2, 4}, floats(t, out[0]))
			}
		}, asked{false, true, false}},
		{"Trace", func(t *testing.T, s *asked) {
			_, err := mlxc.Trace(s.squareSum, arrays{x})
			require.NoError(t, err)
		}, asked{false}},
		{"an error", func(t *testing.T, s *asked) {
			_, _, err := mlxc.VJP(func(arrays) arrays { s.ask(); return nil }, arrays{x}, arrays{one})
			require.Error(t, err)
			s.ask()
		}, asked{true, false}},
		{"a panic", func(t *testing.T, s *asked) {
			vjp(t, func(a arrays) arrays {
				_, _, err := mlxc.VJP(func(arrays) arrays { s.ask(); panic("boom") }, a, arrays{one})
				require.ErrorContains(t, err, "boom")
				s.ask()
				return arrays{a[0].Square().Sum()}
			})
			s.ask()
		}, asked{true, true, false}},
		{"Goexit", func(t *testing.T, s *asked) {
			endsGoroutine(t)
			done := make(chan bool)
			go func() {
				defer close(done)
				defer s.ask()
				_, _, _ = mlxc.VJP(func(arrays) arrays { s.ask(); runtime.Goexit(); return nil }, arrays{x},
					arrays{one})
			}()
			<-done
			s.ask()
			vjp(t, s.squareSum)
		}, asked{true, false, false, true}},
		{"Goexit in a compiled function", func(t *testing.T, s *asked) {
			endsGoroutine(t)
			done := make(chan bool)
			go func() {
				defer close(done)
				_, _ = mlxc.Compile(func(a arrays) arrays {
					_, _, _ = mlxc.VJP(func(arrays) arrays { s.ask(); runtime.Goexit(); return nil }, a, arrays{one})
					return a
				}).Call(x)
			}()
			<-done
			_, err := mlxc.Compile(s.squareSum).Call(x)
			require.NoError(t, err)
		}, asked{true, false}},
		{"another goroutine", func(t *testing.T, s *asked) {
			vjp(t, func(a arrays) arrays {
				done := make(chan bool)
				go func() { s.ask(); close(done) }()
				<-done
				s.ask()
				return arrays{a[0].Square().Sum()}
			})
		}, asked{false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s asked
			c.run(t, &s)
			require.Equal(t, c.want, s)
			require.False(t, mlxc.Differentiating())
		})
	}
}
