package corpus

import (
	"math/big"
	"math/bits"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
)

// A field is a prime field as kernels store its elements.
type field struct {
	p *big.Int
	// words is the number of uint32 of an element. Pairs of them are in little-endian order, and the pairs are in
	// big-endian order.
	words int
	r     *big.Int // a kernel stores x as r·x: Montgomery's form
}

func number(hex string) *big.Int {
	n, ok := new(big.Int).SetString(hex, 16)
	if !ok {
		panic(hex)
	}
	return n
}

var (
	babyBear   = field{number("78000001"), 1, number("100000000")}
	mersenne31 = field{number("7fffffff"), 1, number("1")}
	goldilocks = field{number("ffffffff00000001"), 2, number("1")}
	stark      = field{
		number("800000000000011000000000000000000000000000000000000000000000001"), 8,
		new(big.Int).Lsh(big.NewInt(1), 256),
	}
)

// numbers returns the elements in the words of a buffer.
func (f field) numbers(words []float64) []*big.Int {
	inverse := new(big.Int).ModInverse(f.r, f.p)
	var list []*big.Int
	for element := range slices.Chunk(words, f.words) {
		n := new(big.Int)
		for i := range element {
			w := element[i]
			if f.words > 1 {
				w = element[i^1]
			}
			n.Lsh(n, 32).Or(n, big.NewInt(int64(w)))
		}
		list = append(list, n.Mul(n, inverse).Mod(n, f.p))
	}
	return list
}

// store returns the words of elements.
func (f field) store(list []*big.Int) []float64 {
	var words []float64
	for _, n := range list {
		n = new(big.Int).Mul(n, f.r)
		n.Mod(n, f.p)
		element := make([]float64, f.words)
		for i := range slices.Backward(element) {
			at := i
			if f.words > 1 {
				at = i ^ 1
			}
			element[at] = float64(uint32(n.Uint64()))
			n.Rsh(n, 32)
		}
		words = append(words, element...)
	}
	return words
}

func (f field) add(a, b *big.Int) *big.Int { return new(big.Int).Mod(new(big.Int).Add(a, b), f.p) }
func (f field) sub(a, b *big.Int) *big.Int { return new(big.Int).Mod(new(big.Int).Sub(a, b), f.p) }
func (f field) mul(a, b *big.Int) *big.Int { return new(big.Int).Mod(new(big.Int).Mul(a, b), f.p) }

// between returns a + t·(b − a).
func (f field) between(a, b, t *big.Int) *big.Int { return f.add(a, f.mul(t, f.sub(b, a))) }

// reversed returns the reverse of the lower n bits of i.
func reversed(i, n int) int { return int(bits.Reverse32(uint32(i)) >> (32 - n)) }

// butterfly returns stages of a transform: groups of pairs, whose elements are half a group apart.
func (f field) butterfly(stages ...int) func(arrays) arrays {
	return func(in arrays) arrays {
		x, twiddles := f.numbers(in["input"]), f.numbers(in["twiddles"])
		for _, stage := range stages {
			half := len(x) / 2 >> stage
			for group := range 1 << stage {
				for i := range half {
					a, b := &x[2*half*group+i], &x[2*half*group+half+i]
					product := f.mul(twiddles[group], *b)
					*a, *b = f.add(*a, product), f.sub(*a, product)
				}
			}
		}
		return arrays{"input": f.store(x)}
	}
}

// powers returns powers of the argument _omega, which f permutes.
func (f field) powers(n int, exponent func(i int) int) func(arrays) arrays {
	return func(in arrays) arrays {
		omega := f.numbers(in["_omega"])[0]
		list := make([]*big.Int, n)
		for i := range list {
			list[i] = new(big.Int).Exp(omega, big.NewInt(int64(exponent(i))), f.p)
		}
		return arrays{"result": f.store(list)}
	}
}

func (f field) fold(half int) func(arrays) arrays {
	return func(in arrays) arrays {
		table, t := f.numbers(in["table"]), f.numbers(in["challenge"])[0]
		for i := range half {
			table[i] = f.between(table[i], table[half+i], t)
		}
		return arrays{"table": f.store(table)}
	}
}

func lambdaworksCases() []launchCase {
	const file = "lambdaworks/crates/math/src/gpu/metal/all.metal"
	const word, small = ":0..4294967295", ":0..2013265920"
	return []launchCase{
		{
			file: file, launch: "sumcheck_fold_BabyBear grid=128 threadgroup=64 table=inout:uint32[200]" + small +
				" challenge=uint32[1]" + small + " half_len=uint32:100",
			want: babyBear.fold(100),
		},
		{
			file: file, launch: "sumcheck_fold_Goldilocks grid=128 threadgroup=64 table=inout:uint32[200,2]" + word +
				" challenge=uint32[2]" + word + " half_len=uint32:100",
			want: goldilocks.fold(100),
		},
		{ // two factors, and a sum for each threadgroup
			file: file, launch: "sumcheck_contribute_BabyBear grid=128 threadgroup=64 tables=uint32[2,200]" + small +
				" partial_sums=out:uint32[2] half_len=uint32:100 table_len=uint32:200 num_factors=uint32:2 eval_point=uint32[1]" + small,
			want: func(in arrays) arrays {
				f := babyBear
				tables, t := f.numbers(in["tables"]), f.numbers(in["eval_point"])[0]
				sums := []*big.Int{new(big.Int), new(big.Int)}
				for i := range 100 {
					product := f.mul(f.between(tables[i], tables[100+i], t), f.between(tables[200+i], tables[300+i], t))
					sums[i/64] = f.add(sums[i/64], product)
				}
				return arrays{"partial_sums": f.store(sums)}
			},
		},
		{
			file: file, launch: "sumcheck_reduce_Goldilocks grid=64 threadgroup=64 data=inout:uint32[50,2]" + word + " count=uint32:50",
			want: func(in arrays) arrays {
				data := goldilocks.numbers(in["data"])
				for _, v := range data[1:] {
					data[0] = goldilocks.add(data[0], v)
				}
				return arrays{"data": goldilocks.store(data)}
			},
		},
		{
			file: file, launch: "bitrev_permutation_stark256 grid=128 threadgroup=32 input=inout:uint32[128,8]:iota result=out:uint32[128,8]",
			want: fromTo("input", "result", func(x []float64) []float64 {
				return tabulate(len(x), func(i int) float64 { return x[reversed(i/8, 7)*8+i%8] })
			}),
			findings: []sanitizer.FindingKind{sanitizer.FindingShift},
		},
		{
			file: file, launch: "radix2_dit_butterfly_Goldilocks grid=128 threadgroup=32 input=inout:uint32[256,2]" + word +
				" twiddles=uint32[8,2]" + word + " stage=uint32:3",
			want: goldilocks.butterfly(3),
		},
		{ // a threadgroup transforms 32 elements
			file: file, launch: "radix2_dit_butterfly_fused_Goldilocks grid=128 threadgroup=16 input=inout:uint32[256,2]" + word +
				" twiddles=uint32[128,2]" + word + " start_stage=uint32:3 num_stages=uint32:5 shared_data=threadgroup:32",
			want: goldilocks.butterfly(3, 4, 5, 6, 7),
		},
		{ // the most significant word keeps elements below the modulus
			file: file, launch: "radix2_dit_butterfly_stark256 grid=64 threadgroup=32 input=inout:uint32[128,8]:0..134217728" +
				" twiddles=uint32[4,8]:0..134217728 stage=uint32:2",
			want: stark.butterfly(2),
		},
		{
			file: file, launch: "calc_twiddles_Goldilocks grid=100 threadgroup=32 result=out:uint32[100,2] _omega=uint32[2]" + word,
			want: goldilocks.powers(100, func(i int) int { return i }),
		},
		{
			file: file, launch: "calc_twiddles_inv_Goldilocks grid=20 threadgroup=8 result=out:uint32[20,2] _omega=uint32[2]" + word,
			want: goldilocks.powers(20, func(i int) int { return -i }),
		},
		{
			file: file, launch: "calc_twiddles_bitrev_stark256 grid=64 threadgroup=32 result=out:uint32[64,8] _omega=uint32[8]:0..134217728",
			want:     stark.powers(64, func(i int) int { return reversed(i, 6) }),
			findings: []sanitizer.FindingKind{sanitizer.FindingShift},
		},
		{
			file: file, launch: "cfft_butterfly_mersenne31 grid=128 threadgroup=32 input=inout:uint32[256]:0..2147483646" +
				" twiddles=uint32[20]:0..2147483646 half_chunk_shift=uint32:3 tw_offset=uint32:7",
			want: func(in arrays) arrays {
				x, twiddles := mersenne31.numbers(in["input"]), mersenne31.numbers(in["twiddles"])
				for i := range 128 {
					j := i % 8
					high, low := &x[i/8*16+j], &x[i/8*16+8+j]
					product := mersenne31.mul(*low, twiddles[7+j])
					*high, *low = mersenne31.add(*high, product), mersenne31.sub(*high, product)
				}
				return arrays{"input": mersenne31.store(x)}
			},
		},
		{
			file: file, launch: "icfft_butterfly_mersenne31 grid=128 threadgroup=32 input=inout:uint32[256]:0..2147483646" +
				" twiddles=uint32[20]:0..2147483646 half_chunk_shift=uint32:3 tw_offset=uint32:7",
			want: func(in arrays) arrays {
				x, twiddles := mersenne31.numbers(in["input"]), mersenne31.numbers(in["twiddles"])
				for i := range 128 {
					j := i % 8
					high, low := &x[i/8*16+j], &x[i/8*16+8+j]
					*high, *low = mersenne31.add(*high, *low), mersenne31.mul(mersenne31.sub(*high, *low), twiddles[7+j])
				}
				return arrays{"input": mersenne31.store(x)}
			},
		},
	}
}
