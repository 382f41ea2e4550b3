package mlxc

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// QuantizeMode is the format of quantized elements and of the scale that a group of elements shares.
type QuantizeMode string

// The modes of MLX. An element is stored as an integer q or a small floating-point number f.
const (
	Affine QuantizeMode = "affine" // q·scale + bias; 2, 3, 4, 5, 6 or 8 bits in groups of 32, 64 or 128
	MXFP4  QuantizeMode = "mxfp4"  // f of 4 bits (E2M1) times a power of 2 (E8M0) per 32 elements
	MXFP8  QuantizeMode = "mxfp8"  // f of 8 bits (E4M3) times a power of 2 (E8M0) per 32 elements
	NVFP4  QuantizeMode = "nvfp4"  // f of 4 bits (E2M1) times a number of 8 bits (E4M3) per 16 elements
)

// QuantizeConfig holds the options of a quantization. The zero value is affine, with 4 bits in groups of 64.
type QuantizeConfig struct {
	Mode QuantizeMode // "" for Affine
	// GroupSize is the number of neighbors along the last axis that share a scale. Bits is the number of bits of an
	// element. 0 stands for the mode's default: 64 and 4 (affine), 32 and 4 (mxfp4), 32 and 8 (mxfp8), 16 and 4
	// (nvfp4).
	GroupSize, Bits int
}

func (c QuantizeConfig) mode() string {
	if c.Mode == "" {
		return string(Affine)
	}
	return string(c.Mode)
}

// known returns an error if the mode does not exist or a number is negative.
func (c QuantizeConfig) known() error {
	switch m := QuantizeMode(c.mode()); m {
	case Affine, MXFP4, MXFP8, NVFP4:
	default:
		return fmt.Errorf("the mode is %q: it must be affine, mxfp4, mxfp8 or nvfp4", string(m))
	}
	if c.GroupSize < 0 || c.Bits < 0 {
		return fmt.Errorf("GroupSize is %d and Bits is %d: neither may be negative", c.GroupSize, c.Bits)
	}
	return nil
}

// Quantized is a quantized array of shape (…,M,N), made by Quantize or read from a file. In a tree (see package tree)
// it consists of its arrays weight, scales, biases and global_scale, as in files; the config is not part of the tree.
type Quantized struct {
	Weight         *Array // packed elements, uint32: (…,M,N·Bits/32)
	Scales         *Array // one per group: (…,M,N/GroupSize)
	Biases         *Array `mlx:",omitempty"` // one per group, in mode Affine; else nil
	GlobalScale    *Array `mlx:",omitempty"` // a float32 scalar for all elements, in mode NVFP4 on CUDA; or nil
	QuantizeConfig `mlx:"-"`
}

// Err returns the error that one of the arrays carries, or nil.
func (q Quantized) Err() error {
	for i, a := range []*Array{q.Weight, q.Scales, q.Biases, q.GlobalScale} {
		if a == nil && i > 0 {
			continue // optional
		}
		if err := a.Err(); err != nil {
			return err
		}
	}
	return nil
}

// Quantize quantizes a, which has a floating-point dtype and shape (…,N) with at least two axes. N must be a multiple
// of GroupSize. On an error, the arrays of the result carry it.
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

// Dequantize returns the array of shape (…,M,N) that q represents. d is a floating-point dtype; Invalid stands for the
// dtype of the scales in mode Affine, else for bfloat16.
func (q Quantized) Dequantize(d DType) *Array {
	if err := q.check(true); err != nil {
		return invalid(opError("dequantize", err, q.Weight, q.Scales, q.Biases))
	}
	if d == Float64 && q.mode() != string(Affine) { // fault to-fp8-float64
		single := q.Dequantize(Float32)
		defer single.Free()
		return single.AsType(Float64)
	}
	return mlxDequantize(q.Weight, q.Scales, q.Biases, q.GroupSize, q.Bits, q.mode(), q.GlobalScale, d)
}

var errFloat64 = errors.New("quantization does not support float64: convert with AsType(Float32)")

// errNoElements is the error for empty arrays: MLX would divide by their size.
var errNoElements = errors.New("there are no elements to quantize")

// check returns an error if q is incomplete or inconsistent. With scales, q must have Scales.
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
		return errors.New("Scales is nil")
	case scales && affine && q.Biases == nil:
		return errors.New("Biases is nil: mode affine needs it")
	case !affine && q.Biases != nil:
		return fmt.Errorf("there are Biases: mode %s has none", q.mode())
	}
	return cmp.Or(q.checkRows("scales", q.Scales), q.checkRows("biases", q.Biases))
}

// checkRows returns an error if scales or biases do not match the weight: MLX would read past their end.
func (q Quantized) checkRows(what string, a *Array) error {
	if a == nil || a.Err() != nil || q.Weight.Err() != nil {
		return nil // the operation returns that error
	}
	rows, own, groups := q.Weight.Shape(), a.Shape(), q.Scales.Dim(-1)
	if len(own) != len(rows) || !slices.Equal(own[:len(own)-1], rows[:len(rows)-1]) || a.Dim(-1) != groups {
		return fmt.Errorf("the %s have the shape %s: they must have %d groups per row of the weight, whose shape is %s",
			what, shapeText(own), groups, shapeText(rows))
	}
	return nil
}

// QuantizedMatMul returns the matrix product of a and the quantized w. a has a floating-point dtype and shape (…,K).
// With transpose, w has shape (N,K), as layers store it, and the product is a·wᵀ; otherwise w has shape (K,N). The
// result has a's dtype. On a CPU, float16 and bfloat16 are computed in float32. The gradient flows to a, and in mode
// Affine to the scales and biases.
func (a *Array) QuantizedMatMul(w Quantized, transpose bool) *Array {
	err := w.check(true)
	switch {
	case err != nil:
	case a.DType() == Float64:
		err = errFloat64
	case w.GlobalScale != nil: // MLX would ignore it
		err = errors.New("the product has no GlobalScale: use QQMatMul, GatherQMM or Dequantize")
	}
	if err != nil {
		return invalid(opError("quantized_matmul", err, a, w.Weight, w.Scales, w.Biases))
	}
	return a.inFloat32(w, func(a *Array) *Array {
		return mlxQuantizedMatmul(a, w.Weight, w.Scales, w.Biases, transpose, w.GroupSize, w.Bits,
			w.mode()).zerosIfEmpty()
	})
}

// inFloat32 computes a product of float16 or bfloat16 in float32 on a CPU. MLX adds the terms one by one in a's dtype,
// which takes ten to forty times as long and rounds every partial sum (fault quantized-matmul-half).
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
		return product(a) // returns the error with the operands' dtypes
	}
	return y.AsType(d)
}

// GatherQMM is QuantizedMatMul for selected matrices of two batches; see GatherMM. A GlobalScale of w needs a GPU and
// MLX 0.32.4.
func (a *Array) GatherQMM(w Quantized, ids MatMulIDs, transpose bool) *Array {
	const op = "gather_qmm"
	err := w.check(true)
	if err == nil && a.DType() == Float64 {
		err = errFloat64
	}
	if err == nil && w.GlobalScale != nil && CurrentDevice() == CPU {
		err = errors.New("a GlobalScale needs a GPU: use Dequantize and GatherMM")
	}
	free := func() {}
	if err == nil {
		ids, free, err = ids.limit(a, w.Weight)
	}
	if err != nil {
		return invalid(opError(op, err, a, w.Weight, w.Scales, w.Biases, ids.Left, ids.Right))
	}
	defer free()
	if w.GlobalScale != nil {
		return mlxGatherQmmGlobalScale(a, w.Weight, w.Scales, w.Biases, ids.Left, ids.Right, transpose, w.GroupSize,
			w.Bits, w.mode(), w.GlobalScale, ids.Sorted)
	}
	return a.inFloat32(w, func(a *Array) *Array {
		if !transpose && w.mode() == string(Affine) && (w.Scales.IsTraced() || w.Biases.IsTraced()) {
			// MLX computes the gradients of scales and biases for the transpose (fault gather-qmm-scale-gradient). The
			// scales of other modes have none.
			dense := w.Dequantize(w.Scales.DType())
			defer dense.Free()
			return mlxGatherMm(a, dense, ids.Left, ids.Right, ids.Sorted).zerosIfEmpty().float32OnCPU(op, a, w.Scales)
		}
		return mlxGatherQmm(a, w.Weight, w.Scales, w.Biases, ids.Left, ids.Right, transpose, w.GroupSize, w.Bits,
			w.mode(), ids.Sorted).zerosIfEmpty()
	})
}

// QQMatMul quantizes a, of shape (…,M,K), in the format of w, and returns its matrix product with wᵀ. w has shape (N,K)
// and a mode other than Affine. Here w may also be a matrix that is not quantized: Weight has its elements, and Scales
// is nil. globalScale is the global scale of a in mode NVFP4, or nil; that of w is w.GlobalScale. On a CPU, MLX
// supports only a quantized w and a single row.
func (a *Array) QQMatMul(w Quantized, globalScale *Array) *Array {
	err := w.checkBoth()
	if err == nil && CurrentDevice() == CPU && a.Err() == nil && (a.Size() != a.Dim(-1) || w.Scales == nil) {
		err = errors.New("on a CPU, MLX computes this for a single row and a quantized w only: use Dequantize and " +
			"QuantizedMatMul")
	}
	if err != nil {
		return invalid(opError("qqmm", err, a, w.Weight, w.Scales))
	}
	return mlxQqmm(a, w.Weight, w.Scales, w.GroupSize, w.Bits, w.mode(), globalScale, w.GlobalScale)
}

// GatherQQMM is QQMatMul for selected matrices of two batches; see GatherMM. MLX supports it on GPUs only.
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
	return mlxGatherQqmm(a, w.Weight, w.Scales, ids.Left, ids.Right, w.GroupSize, w.Bits, w.mode(), globalScale,
		w.GlobalScale, ids.Sorted)
}

// checkBoth is check for a product of two quantized operands.
func (q Quantized) checkBoth() error {
	if q.mode() == string(Affine) {
		return errors.New("mode affine does not support two quantized operands")
	}
	return q.check(false)
}
