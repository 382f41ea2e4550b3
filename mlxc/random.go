package mlxc

import (
	"errors"
	"fmt"
	"math"
	"runtime"
)

// MLX's generator is a function of a key and a position: the same key gives the same numbers on every device. A nil key
// stands for the next key of the process's sequence, which RandomSeed restarts. In a function under Compile or Vmap,
// pass the key as an argument: a key from the sequence would become a constant of the graph.

// RandomKey makes a key of MLX's counter-based generator. Equal seeds give equal numbers on every device.
func RandomKey(seed uint64) *Array {
	return mlxRandomKey(seed)
}

// RandomSplit derives n independent keys from one, at least 1. Do not use the key itself afterward. On an error it
// returns n arrays, but at least one, that carry it.
func RandomSplit(key *Array, n int) []*Array {
	const op = "random_split"
	if n < 1 {
		return invalidArrays(1, opError(op, fmt.Errorf("%d keys: there must be at least 1", n), key))
	}
	keys := withKey(key, func(key *Array) *Array { return mlxRandomSplitNum(key, n) })
	defer keys.Free()
	return orInvalid(n)(mlxUnstackAxis(keys, 0))
}

// RandomSeed restarts the process's sequence of keys. Draws with a nil key then give the same numbers as in Python
// after mx.random.seed(seed), if all goroutines draw in the same order. Without RandomSeed, the sequence starts at a
// random state.
func RandomSeed(seed uint64) {
	sequence.Lock()
	defer sequence.Unlock()
	sequence.state = seed
}

// withKey draws with the key, or with the next key of the sequence if key is nil.
func withKey(key *Array, draw func(key *Array) *Array) *Array {
	if key == nil {
		key = RandomKey(nextSeed())
		defer key.Free()
	}
	return draw(key)
}

// nextSeed returns the seed of the next key of the sequence. The key is made outside the sequence's lock: making a key
// takes MLX's graph lock, and the holder of the graph lock may block on the sequence's lock.
func nextSeed() uint64 {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if insideCallback() {
		return drawing.seed()
	}
	return (*seedTape)(nil).seed()
}

// seedTape records the seeds that a function drew. If MLX runs the function again for its gradient, the function draws
// the same seeds; otherwise the gradient would belong to a different function.
type seedTape struct {
	seeds []uint64
	next  int       // index of the next seed
	outer *seedTape // tape of the enclosing function
}

// drawing is the tape of the innermost running function that has one. The graph lock guards it; the thread of such a
// function holds the lock.
var drawing *seedTape

// seed returns the next seed of the tape. At the end of the tape it takes one from the enclosing tape, or from the
// sequence for a nil tape.
func (t *seedTape) seed() uint64 {
	if t == nil {
		return sequence.next()
	}
	if t.next == len(t.seeds) {
		t.seeds = append(t.seeds, t.outer.seed())
	}
	t.next++
	return t.seeds[t.next-1]
}

// run runs f with the tape rewound.
func (t *seedTape) run(f Func, args []*Array) []*Array {
	next, outer, last := t.next, t.outer, drawing
	defer func() { t.next, t.outer, drawing = next, outer, last }() // also after a panic or a Goexit
	t.next, t.outer, drawing = 0, last, t
	return f(args)
}

// draw is withKey for a result of dtype d and the given shape. It checks both first.
func draw(op string, key *Array, d DType, shape []int, f func(key *Array) *Array, operands ...*Array) *Array {
	if err := checkNew(d, shape); err != nil {
		return invalid(opError(op, err, operands...))
	}
	return withKey(key, f)
}

// draw32 is draw for distributions that MLX cannot draw as float64.
func draw32(op string, key *Array, d DType, shape []int, f func(key *Array) *Array, operands ...*Array) *Array {
	if d == Float64 {
		return invalid(opError(op, errors.New("MLX cannot draw float64 here: draw float32, and convert with AsType"),
			operands...))
	}
	return draw(op, key, d, shape, f, operands...)
}

// RandomBits draws uniform bits of dtype uint8, uint16 or uint32.
func RandomBits(key *Array, d DType, shape ...int) *Array {
	const op = "random_bits"
	if d != Uint8 && d != Uint16 && d != Uint32 {
		return invalid(opError(op, fmt.Errorf("the dtype is %v: it must be uint8, uint16 or uint32", d)))
	}
	return draw(op, key, d, shape, func(key *Array) *Array { return mlxRandomBits(shape, d.Size(), key) })
}

// RandomNormal draws from the standard normal distribution. d is a floating-point dtype, or complex64, whose parts
// each have variance ½.
func RandomNormal(key *Array, d DType, shape ...int) *Array {
	return draw("random_normal", key, d, shape, func(key *Array) *Array {
		return mlxRandomNormal(shape, d, 0, 1, key)
	})
}

// RandomNormalBroadcast draws from normal distributions with the given means and standard deviations, broadcast to the
// shape; nil stands for 0 and 1. d is a floating-point dtype or complex64.
func RandomNormalBroadcast(key, mean, deviation *Array, d DType, shape ...int) *Array {
	const op = "random_normal"
	for _, a := range []*Array{mean, deviation} {
		if err := broadcastsTo(a, shape); err != nil {
			return invalid(opError(op, err, mean, deviation))
		}
	}
	return draw(op, key, d, shape, func(key *Array) *Array {
		return mlxRandomNormalBroadcast(shape, d, mean, deviation, key)
	}, mean, deviation)
}

// RandomMultivariateNormal draws vectors from normal distributions with means of shape (…,N) and covariances of shape
// (…,N,N), symmetric and positive semi-definite. Batch axes are broadcast to the shape; the result is float32 of shape
// (shape…,N). It needs a CPU stream.
func RandomMultivariateNormal(key, mean, covariance *Array, shape ...int) *Array {
	const op = "random_multivariate_normal"
	if err := onCPU(); err != nil {
		return invalid(opError(op, err, mean, covariance))
	}
	return draw(op, key, Float32, append(shape[:len(shape):len(shape)], max(mean.Dim(-1), 0)), func(key *Array) *Array {
		return mlxRandomMultivariateNormal(mean, covariance, shape, Float32, key)
	}, mean, covariance)
}

// RandomUniform draws from the interval [low, high), with both bounds rounded to d. If they are equal in d, the result
// is low. d is a floating-point dtype other than float64.
func RandomUniform(key *Array, low, high float32, d DType, shape ...int) *Array {
	l, h := Scalar(low), Scalar(high)
	defer l.Free()
	defer h.Free()
	if low == 0 && high == 1 { // MLX's numbers, which are below 1
		return draw32("random_uniform", key, d, shape, func(key *Array) *Array {
			return mlxRandomUniform(l, h, shape, d, key)
		})
	}
	return RandomUniformBroadcast(key, l, h, d, shape...)
}

// RandomUniformBroadcast is RandomUniform with bounds that are broadcast to the shape.
func RandomUniformBroadcast(key, low, high *Array, d DType, shape ...int) *Array {
	return draw32("random_uniform", key, d, shape, func(key *Array) *Array {
		u := mlxRandomUniform(low, high, shape, d, key)
		if u.Err() != nil {
			return u
		}
		// MLX adds low to a number below high−low, and the sum may round to high. Both bounds get half the probability
		// of the numbers between them, so low takes the share of high.
		defer u.Free()
		l, h := low.AsType(d), high.AsType(d)
		defer l.Free()
		defer h.Free()
		reached := u.Equal(h)
		defer reached.Free()
		return Where(reached, l, u)
	}, low, high)
}

// RandomTruncatedNormal draws from the standard normal distribution truncated to lower … upper, which are broadcast to
// the shape. d is a floating-point dtype other than float64.
func RandomTruncatedNormal(key, lower, upper *Array, d DType, shape ...int) *Array {
	return draw32("random_truncated_normal", key, d, shape, func(key *Array) *Array {
		return mlxRandomTruncatedNormal(lower, upper, shape, d, key)
	}, lower, upper)
}

// RandomLaplace draws from the Laplace distribution with density e^(−|x−mean|/scale) / (2·scale). d is a floating-point
// dtype.
func RandomLaplace(key *Array, mean, scale float32, d DType, shape ...int) *Array {
	return draw("random_laplace", key, d, shape, func(key *Array) *Array {
		return mlxRandomLaplace(shape, d, mean, scale, key)
	})
}

// RandomGumbel draws from the standard Gumbel distribution, −ln(−ln u) for uniform u. d is a floating-point dtype other
// than float64.
func RandomGumbel(key *Array, d DType, shape ...int) *Array {
	return draw32("random_gumbel", key, d, shape, func(key *Array) *Array {
		return mlxRandomGumbel(shape, d, key)
	})
}

// RandomInt draws uniform integers from low … high−1. d is an integer dtype that holds them. Let m be the greatest of
// |low|, |high| and high−low. Up to m = 2²⁴, RandomInt returns MLX's numbers, which are rounded from float32: the
// relative error of their probabilities is up to m·2⁻²⁴. Beyond, it makes each number of 96 random bits, and the error
// is below 2⁻³².
func RandomInt(key *Array, low, high int, d DType, shape ...int) *Array {
	const op = "random_randint"
	if high <= low {
		return invalid(opError(op, fmt.Errorf("low is %d and high is %d: low must be below high", low, high)))
	}
	if least, greatest := d.integerRange(); d.IsInteger() && (low < least || high-1 > greatest) {
		return invalid(opError(op, fmt.Errorf("%v holds %d … %d, but the range is %d … %d", d, least, greatest, low,
			high-1)))
	}
	l, h := Scalar(int64(low)), Scalar(int64(high))
	defer l.Free()
	defer h.Free()
	return draw(op, key, d, shape, func(key *Array) *Array {
		if d.IsInteger() && (low < -exactFloat32 || high > exactFloat32 || high-low > exactFloat32) {
			return wideIntegers(key, l, h, d, shape)
		}
		return mlxRandomRandint(l, h, shape, d, key)
	})
}

// RandomIntBroadcast is RandomInt with bounds that are broadcast to the shape. Where high does not exceed low, the
// result is low. Bounds that are not integers, or both int64 and uint64, are converted to float32.
func RandomIntBroadcast(key, low, high *Array, d DType, shape ...int) *Array {
	return draw("random_randint", key, d, shape, func(key *Array) *Array {
		narrow := mlxRandomRandint(low, high, shape, d, key)
		bounds, ok := integerBounds(low.DType(), high.DType())
		if narrow.Err() != nil || !d.IsInteger() || !ok {
			return narrow
		}
		defer narrow.Free()
		var result *Array
		WithScope(func() {
			l, h := low.AsType(bounds), high.AsType(bounds)
			wide := h.GreaterScalar(exactFloat32).LogicalOr(h.Sub(l).GreaterScalar(exactFloat32))
			if bounds == Int64 {
				wide = wide.LogicalOr(l.LessScalar(-exactFloat32))
			}
			result = Where(wide, wideIntegers(key, l, h, d, shape), narrow).Keep()
		})
		return result
	}, low, high)
}

// exactFloat32 is the limit up to which float32 represents all integers.
const exactFloat32 = 1 << 24

// integerBounds returns the dtype in which wideIntegers computes with bounds of two dtypes. ok is false if no dtype
// holds both, or if float32 represents all their integers.
func integerBounds(low, high DType) (d DType, ok bool) {
	switch {
	case !low.exact() || !high.exact() || max(low.Size(), high.Size()) < 4:
		return Invalid, false
	case low != Uint64 && high != Uint64:
		return Int64, true
	case low >= Int8 || high >= Int8:
		return Invalid, false
	}
	return Uint64, true
}

// wideIntegers draws uniform integers from low … high−1, or low where high does not exceed it. low and high have the
// same dtype, int64 or uint64, and are broadcast to the shape. The result is ⌊x·n/2⁹⁶⌋ + low for n = high−low and 96
// random bits x.
func wideIntegers(key, low, high *Array, d DType, shape []int) *Array {
	var result *Array
	WithScope(func() {
		word := Scalar(uint64(32))
		split := func(n *Array) (upper, lower *Array) {
			return mlxRightShift(n, word), n.BitwiseAnd(Scalar(uint64(math.MaxUint32)))
		}
		n := Where(high.Greater(low), high.Sub(low), Ones(low.DType())).AsType(Uint64)
		nUpper, nLower := split(n)
		sum := Zeros(Uint64)
		for _, x := range mlxRandomBits(append([]int{3}, shape...), 4, key).AsType(Uint64).Rows() {
			// ⌊(sum + x·n)/2³²⌋ in parts of 32 bits, so that nothing overflows.
			upper, lower := split(sum)
			carry, _ := split(x.Mul(nLower).Add(lower))
			sum = x.Mul(nUpper).Add(upper).Add(carry)
		}
		result = sum.AsType(low.DType()).Add(low).AsType(d).Keep()
	})
	return result
}

// RandomBernoulli draws booleans that are true with probability p. p has a floating-point dtype and is broadcast to the
// shape. Without a shape, the result has the shape of p.
func RandomBernoulli(key, p *Array, shape ...int) *Array {
	if len(shape) == 0 {
		shape = p.Shape()
	}
	return draw("random_bernoulli", key, Bool, shape, func(key *Array) *Array {
		return mlxRandomBernoulli(p, shape, key)
	}, p)
}

// RandomCategorical draws class ids, as uint32, with probabilities softmax(logits) along the axis: logits of shape
// (B,V) give (B) along axis −1.
func RandomCategorical(key, logits *Array, axis int) *Array {
	return categorical(key, logits, axis, func(key *Array) *Array {
		return mlxRandomCategorical(logits, axis, key)
	})
}

// RandomCategoricalN draws n class ids per distribution; the draws are the last axis of the result: logits of shape
// (B,V) give (B,n) along axis −1.
func RandomCategoricalN(key, logits *Array, axis, n int) *Array {
	return categorical(key, logits, axis, func(key *Array) *Array {
		if n < 1 {
			return invalid(opError("random_categorical", fmt.Errorf("%d draws: there must be at least 1", n), logits))
		}
		return mlxRandomCategoricalNumSamples(logits, axis, n, key)
	})
}

// RandomCategoricalShape is RandomCategorical for a result of the given shape, to which the shape of the logits without
// the axis is broadcast: logits of shape (B,V) give (N,B) along axis −1.
func RandomCategoricalShape(key, logits *Array, axis int, shape ...int) *Array {
	return categorical(key, logits, axis, func(key *Array) *Array {
		if err := checkNew(Uint32, shape); err != nil {
			return invalid(opError("random_categorical", err, logits))
		}
		return mlxRandomCategoricalShape(logits, axis, shape, key)
	})
}

func categorical(key, logits *Array, axis int, f func(key *Array) *Array) *Array {
	const op = "random_categorical"
	if logits.Err() == nil {
		if _, err := logits.axis(axis); err != nil {
			return invalid(opError(op, err, logits))
		}
		if logits.Dim(axis) == 0 {
			return invalid(opError(op, errors.New("the axis has size 0: there is no class to draw"), logits))
		}
	}
	return withKey(key, f)
}

// RandomPermutation permutes the slices of a along the axis at random.
func RandomPermutation(key, a *Array, axis int) *Array {
	if a.Err() == nil {
		if _, err := a.axis(axis); err != nil {
			return invalid(opError("random_permutation", err, a))
		}
		if a.Size() == 0 { // MLX divides by the size
			return a.Reshape(a.Shape()...)
		}
	}
	return withKey(key, func(key *Array) *Array { return mlxRandomPermutation(a, axis, key) })
}

// RandomPermutationArange returns a random permutation of 0 … n−1, as uint32.
func RandomPermutationArange(key *Array, n int) *Array {
	const op = "random_permutation"
	if n < 0 || n > math.MaxInt32 {
		return invalid(opError(op, fmt.Errorf("n is %d: it must be 0 to 2³¹−1", n)))
	}
	return withKey(key, func(key *Array) *Array { return mlxRandomPermutationArange(n, key).zerosIfEmpty() })
}

// broadcastsTo returns an error if a, which may be nil, cannot be broadcast to the shape.
func broadcastsTo(a *Array, shape []int) error {
	if a == nil || a.Err() != nil {
		return nil // the operation returns that error
	}
	return broadcastInto(a.Shape(), shape)
}
