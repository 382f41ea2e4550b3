package ops

import (
	"errors"
	"fmt"

	"github.com/mlxgrad/mlxgrad/mlxc"
)

// LinearCrossEntropy is the cross-entropy of the logits hidden·weightᵀ, which are never
// there all at once.
//
// hidden has shape (…,H) and is float32, float16 or bfloat16; weight has shape (V,H) and
// hidden's dtype; targets has the shape (…) and is int32 or uint32. The result, the
// options, and the policy for targets that are ignored or out of range are those of
// CrossEntropy. The hidden row of an ignored target may hold anything.
//
// The rows go through in chunks, one after the other. The logits of a chunk have
// hidden's dtype, to which the product in float32 is rounded, as it would be if all were
// kept. With dlogits their gradient, which is computed before the cotangent is
// multiplied in and so does not vanish in float16, the chunk's share of the gradients is
// dhidden = dlogits·weight, rounded to the dtype, and dweight = dlogitsᵀ·hidden, added
// up in float32 over the chunks, in order.
//
// Where a gradient is being taken (see mlxc.Differentiating) and the reduction is Mean
// or Sum, dhidden and dweight are made together with the loss, for any cotangent: three
// matrix products in all, and two where weight is captured and has no gradient (see
// mlxc.Array.Traced). Elsewhere the logits are computed once more for the gradient.
//
// Beside the arguments and the gradients there is memory for some chunks, of at most
// 64 MiB of logits each: one, its gradient, and as many more as MLX, which runs up to ten
// operations ahead, has begun; and for dweight twice in float32. Without a compiler for
// the kernels on a CPU, MLX's operations hold all logits.
func LinearCrossEntropy(hidden, weight, targets *mlxc.Array, cfg CrossEntropyConfig) *mlxc.Array {
	const op = "ops.LinearCrossEntropy"
	if err := checkLinearCrossEntropy(hidden, weight, targets, cfg); err != nil {
		return mlxc.InvalidArray(normError(op, err, hidden, weight, targets))
	}
	if targets.Size() == 0 {
		return cfg.ofNoRows(targets)
	}
	if !kernelsAvailable(op) {
		return crossEntropyOfMLX(hidden.MatMul(weight.Transpose()), targets, cfg)
	}
	return linearCrossEntropy(hidden, weight, targets, cfg, chunkRows(targets.Size(), weight.Dim(0)*weight.DType().Size()))
}

func checkLinearCrossEntropy(hidden, weight, targets *mlxc.Array, cfg CrossEntropyConfig) error {
	if err := checkRowsOf("hidden", hidden); err != nil {
		return err
	}
	if err := weight.Err(); err != nil {
		return err
	}
	switch {
	case weight.NDim() != 2 || weight.Dim(1) != hidden.Dim(-1):
		return fmt.Errorf("weight must have the shape [classes, %d], a row like hidden's for each class", hidden.Dim(-1))
	case weight.DType() != hidden.DType():
		return fmt.Errorf("hidden is %v and weight %v: convert one with AsType", hidden.DType(), weight.DType())
	case weight.Size() == 0:
		return errors.New("weight is empty: there must be a class and a column")
	}
	return cfg.check(targets, "hidden", hidden, weight.Dim(0))
}

// maxChunk is how many bytes the logits of a chunk may have: enough rows that matrix
// products run at full speed with the largest vocabularies (256 with 2¹⁷ classes in half
// precision), and little beside the weight of such a vocabulary.
const maxChunk = 64 << 20

// chunkRows is how many rows a chunk has, the last perhaps fewer: the chunks are about
// as long as each other.
func chunkRows(rows, rowBytes int) int {
	most := max(maxChunk/rowBytes, 1)
	chunks := (rows + most - 1) / most
	return (rows + chunks - 1) / chunks
}

func linearCrossEntropy(hidden, weight, targets *mlxc.Array, cfg CrossEntropyConfig, chunk int) *mlxc.Array {
	traced := weight.Traced()
	of := func(args []*mlxc.Array) linearLoss {
		rows := args[2].Size()
		return linearLoss{
			on: onCurrentDevice(), cfg: cfg, chunk: chunk,
			hidden: args[0].Reshape(rows, args[0].Dim(-1)), weight: args[1], frozen: !traced,
			classes: cfg.classes(args[2], args[1].Dim(0)),
		}
	}
	var made []*mlxc.Array
	results := withGradient([]*mlxc.Array{hidden, weight, targets},
		func(args []*mlxc.Array) []*mlxc.Array {
			made = scoped(func() []*mlxc.Array { return of(args).forward(args[2], mlxc.Differentiating()) })
			return made
		},
		func(primals, cotangents, outputs []*mlxc.Array) []*mlxc.Array {
			return scoped(func() []*mlxc.Array {
				grads := of(primals).backward(cotangents[0], outputs)
				return []*mlxc.Array{grads[0].Reshape(primals[0].Shape()...), grads[1], zerosLike(primals[2])[0]}
			})
		})
	// The graph has them; a handle would keep the gradients' memory for longer.
	free(made)
	free(results[1:])
	return results[0]
}

// scoped frees what f makes, but for its results.
func scoped(f func() []*mlxc.Array) (results []*mlxc.Array) {
	mlxc.WithScope(func() {
		results = f()
		for _, r := range results {
			r.Keep()
		}
	})
	return results
}

// A linearLoss is the work of LinearCrossEntropy. Its methods leave the arrays that they
// make to the caller's scope.
type linearLoss struct {
	on      launcher
	hidden  *mlxc.Array // [rows, H]
	weight  *mlxc.Array // [V, H]
	frozen  bool        // weight has no gradient
	classes *mlxc.Array // [rows]
	// cotangents of the rows' losses, [rows]; nil stands for ones.
	cotangents *mlxc.Array
	cfg        CrossEntropyConfig
	chunk      int // rows
}

// forward returns the loss; with gradient, where the reduction allows it, also the
// gradients of hidden and weight as gradients gives them.
func (l linearLoss) forward(targets *mlxc.Array, gradient bool) []*mlxc.Array {
	if l.cfg.Reduction == None {
		return []*mlxc.Array{l.losses().Reshape(targets.Shape()...)}
	}
	divisor := l.cfg.divisor(l.classes)
	if !gradient {
		return []*mlxc.Array{l.losses().Sum().Div(divisor)}
	}
	losses, dhidden, dweight := l.gradients()
	return []*mlxc.Array{losses.Sum().Div(divisor), dhidden, dweight}
}

// backward returns the gradients of hidden and weight, for the cotangent of the loss,
// from outputs of forward.
func (l linearLoss) backward(dloss *mlxc.Array, outputs []*mlxc.Array) []*mlxc.Array {
	var dhidden, dweight *mlxc.Array
	factor := mlxc.Scalar[float32](1)
	if l.cfg.Reduction == None {
		l.cotangents = dloss.Reshape(l.classes.Dim(0))
	} else {
		factor = dloss.Div(l.cfg.divisor(l.classes))
	}
	if prepared(outputs) {
		dhidden, dweight = outputs[1], outputs[2]
	} else {
		_, dhidden, dweight = l.gradients()
	}
	dtype := l.weight.DType()
	dhidden = dhidden.AsType(mlxc.Float32).Mul(factor).AsType(dtype)
	if l.frozen {
		return []*mlxc.Array{dhidden, zerosLike(l.weight)[0]} // that nobody asks for
	}
	return []*mlxc.Array{dhidden, dweight.Mul(factor).AsType(dtype)}
}

// losses returns the losses of the rows.
func (l linearLoss) losses() *mlxc.Array {
	var losses []*mlxc.Array
	l.chunks(func(rows linearLoss) []*mlxc.Array {
		logits := rows.hidden.MatMul(l.weight.Transpose())
		loss := crossEntropyLosses(l.on, logits, rows.classes, l.cfg, nil)[0]
		losses = append(losses, loss)
		return []*mlxc.Array{loss}
	})
	return mlxc.Concatenate(0, losses...)
}

// gradients returns the losses of the rows and the gradients of hidden, in its dtype,
// and of weight, in float32, or a 0 if it is frozen.
func (l linearLoss) gradients() (losses, dhidden, dweight *mlxc.Array) {
	one, zero, first := mlxc.Scalar[float32](1), mlxc.Scalar[float32](0), mlxc.Scalar[int32](0)
	var allLosses, allDHidden []*mlxc.Array
	l.chunks(func(rows linearLoss) []*mlxc.Array {
		logits := rows.hidden.MatMul(l.weight.Transpose())
		results := crossEntropyLosses(l.on, logits, rows.classes, l.cfg, one)
		losses, dlogits := results[0], results[2]
		dh, h := dlogits.MatMul(l.weight), rows.hidden.AsType(mlxc.Float32)

		// A row that is ignored has no part in dweight, whatever it holds. The cotangent
		// of a row commutes with the products.
		ignored := rows.classes.Less(first).ExpandDims(-1)
		if rows.cotangents != nil {
			each := mlxc.Where(ignored, zero, rows.cotangents.ExpandDims(-1))
			dh = dh.AsType(mlxc.Float32).Mul(each).AsType(dh.DType())
			h = h.Mul(each)
		}
		allLosses, allDHidden = append(allLosses, losses), append(allDHidden, dh)
		if l.frozen {
			return []*mlxc.Array{losses, dh}
		}
		dw := dlogits.AsType(mlxc.Float32).Transpose().MatMul(mlxc.Where(ignored, zero, h))
		if dweight != nil {
			dw = dweight.Add(dw)
		}
		dweight = dw
		return []*mlxc.Array{losses, dh, dw}
	})
	if l.frozen {
		dweight = zero
	}
	return mlxc.Concatenate(0, allLosses...), mlxc.Concatenate(0, allDHidden...), dweight
}

// chunks calls f with the rows of every chunk. The next chunk is not computed before
// what f returned of the last one is: else the logits of all of them could be there at
// once.
func (l linearLoss) chunks(f func(rows linearLoss) []*mlxc.Array) {
	var before []*mlxc.Array
	for begin, n := 0, l.classes.Dim(0); begin < n; begin += l.chunk {
		rows, end, width := l, min(begin+l.chunk, n), l.hidden.Dim(1)
		rows.hidden = l.hidden.Slice([]int{begin, 0}, []int{end, width}, nil)
		rows.classes = l.classes.Slice([]int{begin}, []int{end}, nil)
		if l.cotangents != nil {
			rows.cotangents = l.cotangents.Slice([]int{begin}, []int{end}, nil)
		}
		if before != nil {
			rows.hidden = rows.hidden.AfterDone(before...)
		}
		before = f(rows)
	}
}
