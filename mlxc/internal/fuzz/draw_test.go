package fuzz

import (
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// chance returns true with a probability of percent in 100.
func (s *sequence) chance(percent int) bool { return s.IntN(100) < percent }

func (s *sequence) pick(choices ...int) int { return choices[s.IntN(len(choices))] }

// argument draws a value of type t for the parameter or field of this name. like is the call's first array, or nil.
func (s *sequence) argument(name string, t reflect.Type, like *mlxc.Array) reflect.Value {
	name = strings.ToLower(name)
	if f, ok := s.special[t]; ok {
		return reflect.ValueOf(f(name, like))
	}
	switch t.Kind() {
	case reflect.Bool:
		return reflect.ValueOf(s.chance(50)).Convert(t)
	case reflect.Int, reflect.Int64, reflect.Int32:
		return reflect.ValueOf(s.int(name, like)).Convert(t)
	case reflect.Uint64, reflect.Uint32, reflect.Uint8:
		return reflect.ValueOf(s.IntN(20)).Convert(t)
	case reflect.Float32, reflect.Float64:
		return reflect.ValueOf(s.float()).Convert(t)
	case reflect.String:
		return reflect.ValueOf(s.text(name, like)).Convert(t)
	case reflect.Pointer:
		p := reflect.New(t.Elem())
		if s.chance(30) {
			return reflect.Zero(t)
		}
		p.Elem().Set(s.argument(name, t.Elem(), like))
		return p
	case reflect.Struct:
		v := reflect.New(t).Elem()
		for i := range t.NumField() {
			// Most fields keep their zero value, which is the usual operation.
			if f := t.Field(i); f.IsExported() && (f.Type.Kind() == reflect.Bool || s.chance(50)) {
				v.Field(i).Set(s.argument(f.Name, f.Type, like))
			}
		}
		return v
	case reflect.Array:
		v := reflect.New(t).Elem()
		for i := range t.Len() {
			v.Index(i).Set(s.argument(name, t.Elem(), like))
		}
		return v
	case reflect.Slice:
		n := s.count(name, t, like)
		if n < 0 {
			return reflect.Zero(t)
		}
		v := reflect.MakeSlice(t, n, n)
		for i := range n {
			v.Index(i).Set(s.argument(name, t.Elem(), like))
		}
		if t.Elem().Kind() == reflect.Int && s.chance(50) {
			s.proper(name, v.Interface().([]int), like)
		}
		return v
	case reflect.Map:
		v := reflect.MakeMap(t)
		for i := range s.IntN(3) {
			v.SetMapIndex(s.key(t.Key(), i), s.argument(name, t.Elem(), like))
		}
		return v
	}
	panic(fmt.Sprintf("there is no way to draw a %v", t))
}

func (s *sequence) key(t reflect.Type, i int) reflect.Value {
	if t.Kind() == reflect.String {
		return reflect.ValueOf(string(rune('a' + i)))
	}
	return s.argument("", t, nil)
}

// count draws the length of a list. −1 stands for a nil list.
func (s *sequence) count(name string, t reflect.Type, like *mlxc.Array) int {
	switch name {
	case "start", "stop", "strides", "sizes", "at", "reps":
		if s.chance(80) {
			return like.NDim()
		}
	case "shape":
		return s.IntN(5)
	}
	if t.Elem() == reflect.TypeFor[float32]() || t.Elem() == reflect.TypeFor[byte]() {
		return s.IntN(40)
	}
	return s.pick(-1, 0, 1, 1, 1, 2, 2, 3)
}

// proper replaces v by integers that the operation may accept: distinct axes, a shape of the same size, or windows
// within the array.
func (s *sequence) proper(name string, v []int, like *mlxc.Array) {
	shape := like.Shape()
	switch name {
	case "axes", "axesa", "axesb":
		order := s.Perm(max(len(shape), len(v)))
		copy(v, order)
	case "start":
		for i := range min(len(v), len(shape)) {
			v[i] = s.IntN(shape[i]+2) - 1
		}
	case "stop":
		for i := range min(len(v), len(shape)) {
			v[i] = s.IntN(shape[i]+2) - s.pick(0, 0, 1)
		}
	case "sizes":
		for i := range min(len(v), len(shape)) {
			v[i] = s.IntN(shape[i] + 1)
		}
	case "shape":
		if len(v) > 0 && like != nil && len(shape) > 0 {
			copy(v, shape)
			rest := 1
			for _, n := range shape[min(len(v), len(shape)):] {
				rest *= n
			}
			v[len(v)-1] *= rest
			if s.chance(40) {
				v[s.IntN(len(v))] = -1
			}
		}
	}
}

// int draws an integer: a value that may suit the parameter, a small value or an extreme value.
func (s *sequence) int(name string, like *mlxc.Array) int {
	n := like.NDim()
	switch {
	case s.chance(3):
		return s.pick(math.MaxInt32, math.MinInt32, math.MaxInt32+1, math.MinInt32-1, 1<<16, 1<<31-2, 1<<33, 1<<40,
			math.MaxInt, math.MinInt, math.MaxInt-1)
	case s.chance(10):
		return s.pick(-1, 0, 1, 2, 3, 4, 5, 8, 16, 31, 32, 33, 64, 128, -2, -3, -7)
	}
	switch name {
	case "axis", "axes", "axis1", "axis2", "first", "last", "i", "j", "argnums", "inaxes", "outaxes", "axesa", "axesb":
		if n > 0 {
			return s.IntN(2*n) - n
		}
		return s.pick(0, -1)
	case "shape", "sizes", "rows", "columns", "n":
		return s.size()
	case "reps", "groups", "stride", "strides", "dilation", "inputdilation":
		return s.pick(1, 1, 1, 2, 2, 3, 0, -1)
	case "padding", "paddinglow", "paddinghigh", "outputpadding", "before", "after", "offset":
		return s.pick(0, 0, 1, 1, 2, 3)
	case "groupsize":
		return s.pick(0, 0, 32, 64, 128, 16, 7)
	case "bits":
		return s.pick(0, 2, 3, 4, 5, 6, 8, 1, 7)
	case "dims":
		return s.pick(0, 0, 2, 4, 8, 6)
	case "size":
		return s.pick(0, 32, 64)
	case "positions", "kth", "k", "start", "stop", "from", "to":
		return s.IntN(max(like.Dim(-1), 0)+3) - 1
	}
	return s.pick(-1, 0, 0, 1, 1, 1, 2, 2, 3, 4)
}

func (s *sequence) float() float64 {
	if s.chance(10) {
		special := []float64{
			math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, math.MaxFloat32, 1e-45, 5e-324,
			math.MaxInt32, math.MinInt64, math.Copysign(0, -1),
		}
		return special[s.IntN(len(special))]
	}
	return float64(s.pick(0, 1, 1, 2, -1, 3, 10, 100)) * []float64{1, 1, 0.5, 0.1, 1e-5}[s.IntN(5)]
}

// text draws a string for a parameter: a path, the subscripts of Einsum, a mode, a name.
func (s *sequence) text(name string, like *mlxc.Array) string {
	var choices []string
	switch name {
	case "path", "file":
		choices = []string{"a.npy", "a.safetensors", "a.gguf", "a.mlxfn", "", "absent/b", "."}
		return filepath.Join(s.dir, choices[s.IntN(len(choices))])
	case "subscripts":
		choices = []string{
			"ij,jk->ik", "ij,ij->", "ii->i", "ii", "...ij->...ji", "i,j", "ij,jk,kl->il", "bij,bjk->bik", "ij->", "...,...",
			"", "->", "i,i->ii", "ij,kj->ik", "aij,bjk", "i...->...", "ij,j", "iij->j", "1j", "i->ij", "ab,bc,cd,de->ea", "ij , jk -> ik", "...i,...i",
		}
	case "mode":
		choices = []string{"", "affine", "mxfp4", "mxfp8", "nvfp4", "x"}
	default:
		choices = []string{"a", "b", "x", "", "é", "%s%n", "a b", "1", "void", "\x00"}
	}
	return choices[s.IntN(len(choices))]
}

// specials returns functions that draw values of types with invariants.
func (s *sequence) specials() map[reflect.Type]func(name string, like *mlxc.Array) any {
	type draw = func(name string, like *mlxc.Array) any
	all := map[reflect.Type]draw{
		reflect.TypeFor[*mlxc.Array](): func(name string,
			like *mlxc.Array,
		) any {
			return s.arrayArgument(name, like)
		},
		reflect.TypeFor[mlxc.Index]():     func(_ string, like *mlxc.Array) any { return s.index(like) },
		reflect.TypeFor[mlxc.Quantized](): func(_ string, like *mlxc.Array) any { return s.quantized(like) },
		reflect.TypeFor[mlxc.Func]():      func(string, *mlxc.Array) any { return s.function() },
		reflect.TypeFor[mlxc.DType](): func(string, *mlxc.Array) any {
			if s.chance(3) {
				return mlxc.DType(s.pick(0, 15, 255))
			}
			return s.dtype()
		},
		reflect.TypeFor[mlxc.Device](): func(string, *mlxc.Array) any {
			if s.chance(90) {
				return mlxc.CPU
			}
			return mlxc.Device(s.IntN(4) - 1)
		},
		reflect.TypeFor[*mlxc.Stream]():   func(string, *mlxc.Array) any { return s.stream },
		reflect.TypeFor[*mlxc.Compiled](): func(string, *mlxc.Array) any { return mlxc.Compile(s.function()) },
		reflect.TypeFor[*mlxc.Error](): func(string,
			*mlxc.Array,
		) any {
			return mlxc.NewError("x", errors.New("y"), s.pool...)
		},
		reflect.TypeFor[*mlxc.PanicError](): func(string,
			*mlxc.Array,
		) any {
			return &mlxc.PanicError{Value: errors.New("x")}
		},
		reflect.TypeFor[*mlxc.MetalKernel](): func(string, *mlxc.Array) any {
			k, err := mlxc.NewMetalKernel(mlxc.MetalKernelSource{
				Name: "f", Inputs: []string{"x"},
				Outputs: []string{"y"}, Body: "y[0] = x[0];",
			})
			s.check(err)
			return k
		},
		reflect.TypeFor[error]():     func(string, *mlxc.Array) any { return errors.New("drawn") },
		reflect.TypeFor[io.Writer](): func(string, *mlxc.Array) any { return io.Discard },
		reflect.TypeFor[io.Reader](): func(string, *mlxc.Array) any { return s.reader() },
		reflect.TypeFor[any](): func(string, *mlxc.Array) any {
			return []any{1, "a", true, mlxc.Float32, 1.5, uint8(3), []string{"x"}, []float32{1}}[s.IntN(8)]
		},
		reflect.TypeFor[func()](): func(string, *mlxc.Array) any {
			return func() { _ = mlxc.Ones(mlxc.Float32, 2, 3).Exp().Sum() }
		},
		reflect.TypeFor[func() error](): func(string, *mlxc.Array) any {
			return func() error { return mlxc.Ones(mlxc.Float32, 2, 3).Exp().Sum().Err() }
		},
		reflect.TypeFor[func([]*mlxc.Array) ([]*mlxc.Array, error)](): func(string, *mlxc.Array) any {
			return mlxc.Grad(s.function())
		},
		reflect.TypeFor[mlxc.NamedFunc](): func(string, *mlxc.Array) any {
			f := s.function()
			return func(a []*mlxc.Array, _ map[string]*mlxc.Array) []*mlxc.Array { return f(a) }
		},
		reflect.TypeFor[mlxc.VJPFunc](): func(string, *mlxc.Array) any {
			f := s.function()
			return func(p, c, o []*mlxc.Array) []*mlxc.Array { return f(slices.Concat(p, c, o)[:len(p)]) }
		},
		reflect.TypeFor[mlxc.JVPFunc](): func(string, *mlxc.Array) any {
			f := s.function()
			return func(p, t []*mlxc.Array) []*mlxc.Array { return f(t) }
		},
		reflect.TypeFor[mlxc.VmapFunc](): func(string, *mlxc.Array) any {
			f := s.function()
			return func(a []*mlxc.Array, _ []bool) []*mlxc.Array { return f(a) }
		},
	}
	return all
}
