package mlxc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// QuantizeMode is how groups of elements share a scale.
type QuantizeMode string

// The modes of MLX. An element is stored as an integer q or a small float f.
const (
	Affine QuantizeMode = "affine" // q·scale + bias; 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128
	MXFP4  QuantizeMode = "mxfp4"  // f of 4 bits (E2M1), times a power of 2 (E8M0) for each 32
	MXFP8  QuantizeMode = "mxfp8"  // f of 8 bits (E4M3), times a power of 2 (E8M0) for each 32
	NVFP4  QuantizeMode = "nvfp4"  // f of 4 bits (E2M1), times one of 8 bits (E4M3) for each 16
)

// QuantizeConfig says how an array is quantised. The zero value is affine, with 4 bits in
// groups of 64.
type QuantizeConfig struct {
	Mode QuantizeMode // "" stands for Affine
	// GroupSize is the number of neighbours along the last axis that share a scale, and
	// Bits those of an element; 0 stands for the mode's own: 64 and 4, 32 and 4, 32 and
	// 8, 16 and 4.
	GroupSize, Bits int
}

func (c QuantizeConfig) mode() string {
	if c.Mode == "" {
		return string(Affine)
	}
	return string(c.Mode)
}

// known says so if there is no such mode.
func (c QuantizeConfig) known() error {
	switch m := QuantizeMode(c.mode()); m {
	case Affine, MXFP4, MXFP8, NVFP4:
	default:
		return fmt.Errorf("there is no mode %q: it must be affine, mxfp4, mxfp8 or nvfp4", string(m))
	}
	if c.GroupSize < 0 || c.Bits < 0 {
		return fmt.Errorf("a group of %d and %d bits: neither may be negative", c.GroupSize, c.Bits)
	}
	return nil
}

// Quantized is an array of shape (…,M,N) in few bits, as Quantize makes it or as it was
// read from a file. In a tree (see package tree) it is its arrays, weight, scales and
// biases, as files name them; the config is no part of it.
type Quantized struct {
	Weight         *Array // the elements, packed into uint32: (…,M,N·bits/32)
	Scales         *Array // of the groups: (…,M,N/group)
	Biases         *Array `mlx:",omitempty"` // of the groups, in mode Affine; else nil
	GlobalScale    *Array `mlx:",omitempty"` // of all elements, a float32 scalar, in mode NVFP4 on CUDA; or nil
	QuantizeConfig `mlx:"-"`
}

// Err returns the error that one of the arrays carries, or nil.
func (q Quantized) Err() error {
	for i, a := range []*Array{q.Weight, q.Scales, q.Biases, q.GlobalScale} {
		if a == nil && i > 0 {
			continue // there need not be one
		}
		if err := a.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Quantize stores a, of shape (…,N) with two axes at least and a floating-point dtype, in
// few bits. N is a multiple of the group's size. If it fails, the result's arrays carry
// the error.
func (a *Array) Quantize(c QuantizeConfig) Quantized {
	n := 2
	if c.mode() == string(Affine) {
		n = 3
	}
	var parts []*Array
	err := c.known()
	switch {
	case err != nil:
	case a.Err() == nil && a.Size() == 0:
		err = errNoElements
	case a.DType() == Float64:
		err = errFloat64
	}
	if err != nil {
		parts = invalidArrays(n, opError("quantize", err, a))
	} else {
		parts = orInvalid(n)(mlxQuantize(a, c.GroupSize, c.Bits, c.mode(), nil))
	}
	q := Quantized{QuantizeConfig: c, Weight: parts[0], Scales: parts[1]}
	if n == 3 {
		q.Biases = parts[2]
	}
	return q
}

// Dequantize returns the array of shape (…,M,N) that q stands for. d is a floating-point
// dtype; Invalid stands for that of the scales in mode Affine, else for bfloat16.
func (q Quantized) Dequantize(d DType) *Array {
	if err := q.check(true); err != nil {
		return invalid(opError("dequantize", err, q.Weight, q.Scales, q.Biases))
	}
	return mlxDequantize(q.Weight, q.Scales, q.Biases, q.GroupSize, q.Bits, q.mode(), q.GlobalScale, d)
}

var errFloat64 = errors.New("float64 is not quantised, nor multiplied with what is: convert with AsType(Float32)")

// errNoElements is for what MLX would divide by their number.
var errNoElements = errors.New("there are no elements to quantise")

// check says what is missing.
func (q Quantized) check(scales bool) error {
	if err := q.known(); err != nil {
		return err
	}
	affine := q.mode() == string(Affine)
	switch {
	case q.Weight.Err() == nil && q.Weight.Size() == 0:
		return errNoElements
	case q.Weight.Err() == nil && q.Weight.NDim() < 2:
		return errors.New("the weight must have two axes or more")
	case q.Scales.DType() == Float64 || q.Biases.DType() == Float64:
		return errFloat64
	case scales && q.Scales == nil:
		return errors.New("there are no scales")
	case scales && affine && q.Biases == nil:
		return errors.New("there are no biases, which the affine mode needs")
	case !affine && q.Biases != nil:
		return fmt.Errorf("there are biases, which mode %s has not", q.mode())
	}
	return cmp.Or(q.checkRows("scales", q.Scales), q.checkRows("biases", q.Biases))
}

// checkRows says so if what groups have is for other rows than the weight's: MLX would read
// past its end.
func (q Quantized) checkRows(what string, a *Array) error {
	if a == nil || a.Err() != nil || q.Weight.Err() != nil {
		return nil // the operation passes that error on
	}
	rows, own, groups := q.Weight.Shape(), a.Shape(), q.Scales.Dim(-1)
	if len(own) != len(rows) || !slices.Equal(own[:len(own)-1], rows[:len(rows)-1]) || a.Dim(-1) != groups {
		return fmt.Errorf("the %s have the shape %s: there must be %d groups for each row of the weight %s", what, shapeText(own), groups, shapeText(rows))
	}
	return nil
}

// QuantizedMatMul returns the matrix product of a, of a floating-point dtype and shape
// (…,K), with wᵀ if transpose is set, w then standing for (N,K), as layers store it, or
// else with w, standing for (K,N). The result has a's dtype; on a CPU, that of halves is
// computed in float32. The gradient flows to a alone, and in mode Affine to the scales and
// biases.
func (a *Array) QuantizedMatMul(w Quantized, transpose bool) *Array {
	err := w.check(true)
	if err == nil && a.DType() == Float64 {
		err = errFloat64
	}
	if err != nil {
		return invalid(opError("quantized_matmul", err, a, w.Weight, w.Scales, w.Biases))
	}
	return a.inFloat32(w, func(a *Array) *Array {
		return mlxQuantizedMatmul(a, w.Weight, w.Scales, w.Biases, transpose, w.GroupSize, w.Bits, w.mode()).zerosIfEmpty()
	})
}

// inFloat32 multiplies halves on a CPU as float32. MLX adds them up in their own dtype, one
// by one: that takes ten to forty times as long, and rounds every sum.
func (a *Array) inFloat32(w Quantized, product func(a *Array) *Array) *Array {
	d := a.DType()
	promoted := w.mode() == string(Affine) && w.Scales.DType() != d
	if d != Float16 && d != BFloat16 || promoted || CurrentDevice() != CPU {
		return product(a)
	}
	x := a.AsType(Float32)
	defer x.Free()
	y := product(x)
	defer y.Free()
	if y.Err() != nil {
		return product(a) // its error has the operands' dtypes
	}
	return y.AsType(d)
}

// GatherQMM is QuantizedMatMul of chosen matrices of two batches: see GatherMM.
func (a *Array) GatherQMM(w Quantized, ids MatMulIDs, transpose bool) *Array {
	const op = "gather_qmm"
	err := w.check(true)
	if err == nil && a.DType() == Float64 {
		err = errFloat64
	}
	free := func() {}
	if err == nil {
		ids, free, err = ids.limit(a, w.Weight)
	}
	if err != nil {
		return invalid(opError(op, err, a, w.Weight, w.Scales, w.Biases, ids.Left, ids.Right))
	}
	defer free()
	return a.inFloat32(w, func(a *Array) *Array {
		if !transpose && (w.Scales.IsTraced() || w.Biases.IsTraced()) {
			// MLX's gradients of the scales and biases are those of the transpose.
			dense := w.Dequantize(w.Scales.DType())
			defer dense.Free()
			return mlxGatherMm(a, dense, ids.Left, ids.Right, ids.Sorted).zerosIfEmpty().float32OnCPU(op, a, w.Scales)
		}
		return mlxGatherQmm(a, w.Weight, w.Scales, w.Biases, ids.Left, ids.Right, transpose, w.GroupSize, w.Bits, w.mode(), ids.Sorted).zerosIfEmpty()
	})
}

// QQMatMul quantises a, of shape (…,M,K), as w is, and returns its matrix product with wᵀ.
// w stands for (N,K), in a mode that is not Affine; without Scales its Weight is not
// quantised yet. globalScale is that of a in mode NVFP4, or nil. On a CPU, MLX computes it
// for a quantised w and a single row.
func (a *Array) QQMatMul(w Quantized, globalScale *Array) *Array {
	err := w.checkBoth()
	if err == nil && CurrentDevice() == CPU && a.Err() == nil && (a.Size() != a.Dim(-1) || w.Scales == nil) {
		err = errors.New("on a CPU, MLX computes this for a single row and a quantised w: use Dequantize and QuantizedMatMul")
	}
	if err != nil {
		return invalid(opError("qqmm", err, a, w.Weight, w.Scales))
	}
	return mlxQqmm(a, w.Weight, w.Scales, w.GroupSize, w.Bits, w.mode(), globalScale, w.GlobalScale)
}

// GatherQQMM is QQMatMul of chosen matrices of two batches: see GatherMM. MLX computes it
// on GPUs only.
func (a *Array) GatherQQMM(w Quantized, ids MatMulIDs, globalScale *Array) *Array {
	const op = "gather_qqmm"
	err := w.checkBoth()
	if err == nil && CurrentDevice() == CPU {
		err = errors.New("MLX computes this on GPUs only: use Dequantize and GatherMM")
	}
	free := func() {}
	if err == nil {
		ids, free, err = ids.limit(a, w.Weight)
	}
	if err != nil {
		return invalid(opError(op, err, a, w.Weight, w.Scales, ids.Left, ids.Right))
	}
	defer free()
	return mlxGatherQqmm(a, w.Weight, w.Scales, ids.Left, ids.Right, w.GroupSize, w.Bits, w.mode(), globalScale, w.GlobalScale, ids.Sorted)
}

// checkBoth is check where both operands are quantised.
func (q Quantized) checkBoth() error {
	if q.mode() == string(Affine) {
		return errors.New("operands that are both quantised cannot be so in mode affine")
	}
	return q.check(false)
}
