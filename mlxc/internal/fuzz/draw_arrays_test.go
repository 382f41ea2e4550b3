package fuzz

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// arrayArgument draws an array: an array of the pool, a new array that suits the parameter, nil or a freed array.
func (s *sequence) arrayArgument(name string, like *mlxc.Array) *mlxc.Array {
	switch p := s.IntN(100); {
	case p < 2:
		return nil
	case p < 4:
		a := s.array(s.dtype(), s.shape())
		a.Free()
		return a
	case p < 40 && len(s.pool) > 0 && !s.tame:
		return s.pool[s.IntN(len(s.pool))]
	}
	shape := s.shape()
	switch name {
	case "ids", "left", "right", "targets", "segments", "offset", "start", "indices":
		return s.ids(s.sizes[0])
	case "key":
		if s.chance(80) {
			a := mlxc.RandomKey(s.Uint64())
			s.add(a, "a key")
			return a
		}
		return nil
	case "cond", "mask":
		if like != nil && s.chance(60) {
			shape = like.Shape()
		}
		if s.chance(70) {
			return s.array(mlxc.Bool, shape)
		}
	case "receiver":
	default:
		// The shape of the first operand, a shape that broadcasts to it, or the shape of a matrix product's operand.
		if like != nil && like.Size() <= maxSize && s.chance(60) {
			shape = like.Shape()
			switch i := s.IntN(max(len(shape), 1)); {
			case len(shape) == 0:
			case s.chance(20):
				shape[i] = 1
			case s.chance(25):
				shape = shape[i:]
			case len(shape) >= 2 && s.chance(40):
				k := len(shape)
				shape[k-1], shape[k-2] = shape[k-2], shape[k-1]
			}
		}
	}
	return s.array(s.dtype(), shape)
}

// index draws an Index, which selects elements.
func (s *sequence) index(like *mlxc.Array) mlxc.Index {
	n := s.sizes[0]
	switch s.IntN(9) {
	case 0:
		return mlxc.At(s.IntN(2*n+2) - n - 1)
	case 1:
		return mlxc.Range(s.int("start", like), s.int("stop", like))
	case 2:
		return mlxc.Range(s.IntN(2), mlxc.End).Step(s.pick(1, 2, -1, -2, 3, s.int("", like)))
	case 3:
		return mlxc.All.Step(s.pick(2, -1, -2, 3, s.int("", like)))
	case 4, 5:
		return mlxc.IDs(s.idsArgument(n))
	case 6:
		return mlxc.Rest
	case 7:
		return mlxc.NewAxis
	}
	return mlxc.All
}

func (s *sequence) idsArgument(size int) *mlxc.Array {
	if s.chance(5) {
		return s.arrayArgument("ids", nil)
	}
	return s.ids(size)
}

// quantized draws quantized weights. Most are a quantized matrix, some have parts that do not fit together.
func (s *sequence) quantized(like *mlxc.Array) mlxc.Quantized {
	type fields struct {
		Weight, Scales, Biases, GlobalScale *mlxc.Array
		QuantizeConfig                      mlxc.QuantizeConfig
	}
	c := s.argument("", reflect.TypeFor[mlxc.QuantizeConfig](), like).Interface().(mlxc.QuantizeConfig)
	if s.chance(85) {
		if s.chance(70) {
			c = mlxc.QuantizeConfig{Mode: c.Mode}
		}
		shape := append(s.shape(), s.size(), s.pick(64, 128))
		if k := like.Dim(-1); k > 0 && s.chance(50) {
			shape[len(shape)-1] = k
		}
		w := s.array(mlxc.Float32, shape[max(0, len(shape)-s.pick(2, 2, 3)):])
		q := w.Quantize(c)
		for _, a := range []*mlxc.Array{q.Weight, q.Scales, q.Biases, q.GlobalScale} {
			if a != nil {
				s.add(a, "a part of a quantized array")
			}
		}
		if s.chance(90) {
			return q
		}
		q.QuantizeConfig = c
		q.Scales = s.arrayArgument("", q.Scales)
		return q
	}
	f := s.argument("", reflect.TypeFor[fields](), like).Interface().(fields)
	return mlxc.Quantized{
		Weight: f.Weight, Scales: f.Scales, Biases: f.Biases, GlobalScale: f.GlobalScale,
		QuantizeConfig: f.QuantizeConfig,
	}
}

// function draws a function of arrays. Some violate the contract of mlxc.Func.
func (s *sequence) function() mlxc.Func {
	type arrays = []*mlxc.Array
	first := func(a arrays) *mlxc.Array {
		if len(a) == 0 {
			return mlxc.Ones(mlxc.Float32)
		}
		return a[0]
	}
	captured := s.arrayArgument("", nil)
	all := []struct {
		name string
		f    mlxc.Func
	}{
		{"same", func(a arrays) arrays { return a }},
		{"square", func(a arrays) arrays { return arrays{first(a).Square()} }},
		{"sum", func(a arrays) arrays { return arrays{first(a).Mul(first(a)).Sum()} }},
		{"captures", func(a arrays) arrays { return arrays{first(a).Mul(captured).Sum()} }},
		{"several", func(a arrays) arrays { return arrays{first(a).Exp(), first(a).Transpose().Sum(0)} }},
		{"random", func(a arrays) arrays { return arrays{first(a).Add(mlxc.RandomNormal(nil, mlxc.Float32, 2, 3))} }},
		{"evaluates", func(a arrays) arrays {
			if err := mlxc.Eval(a...); err != nil {
				return arrays{mlxc.InvalidArray(err)}
			}
			return a
		}},
		{"prints", func(a arrays) arrays { _ = first(a).String(); return arrays{first(a).Sum()} }},
		{"frees", func(a arrays) arrays { first(a).Free(); return a }},
		{"nothing", func(arrays) arrays { return nil }},
		{"nil array", func(arrays) arrays { return arrays{nil} }},
		{"invalid", func(arrays) arrays { return arrays{mlxc.InvalidArray(errors.New("of the function"))} }},
		{"panics", func(arrays) arrays { panic("of the function") }},
		{"scope", func(a arrays) (out arrays) {
			mlxc.WithScope(func() { out = arrays{first(a).Neg().Keep()} })
			return out
		}},
		{"ended scope", func(a arrays) (out arrays) {
			mlxc.WithScope(func() { out = arrays{first(a).Neg()} })
			return out
		}},
		{"gradient", func(a arrays) arrays {
			g, err := mlxc.Grad(func(a arrays) arrays { return arrays{first(a).Square().Sum()} })(a)
			if err != nil {
				return arrays{mlxc.InvalidArray(err)}
			}
			return g
		}},
	}
	f := all[s.IntN(len(all))]
	s.write("f = %s", f.name)
	return f.f
}

// reader returns a reader of a file that an earlier call wrote. The contents are often changed or truncated.
func (s *sequence) reader() io.Reader {
	files, _ := filepath.Glob(filepath.Join(s.dir, "*"))
	var text []byte
	if len(files) > 0 && s.chance(80) {
		text, _ = os.ReadFile(files[s.IntN(len(files))])
	}
	text = text[:min(len(text), 1<<16)]
	for range s.IntN(3) {
		if len(text) > 0 {
			text[s.IntN(len(text))] = byte(s.IntN(256))
		}
	}
	if s.chance(20) {
		text = text[:s.IntN(len(text)+1)]
	}
	return bytes.NewReader(text)
}
