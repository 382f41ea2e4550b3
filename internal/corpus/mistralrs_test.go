package corpus

import (
	"fmt"
	"math"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

func mistralrsCases() []launchCase {
	const quant = "mistralrs/mistralrs-quant/src/metal_kernels/"
	const attention = "mistralrs/mistralrs-paged-attn/src/metal/kernels/"
	var cases []launchCase
	for i, f := range []func(float64) float64{silu, tanhGelu, func(x float64) float64 { return max(x, 0) }, gelu, sigmoid} {
		cases = append(cases, launchCase{
			file: quant + "fused_glu.metal",
			launch: fmt.Sprintf("fused_glu_float grid=320 threadgroup=64 a=float32[301] b=float32[301] output=out:float32[301]"+
				" n_elements=uint32:301 activation=int32:%d", i),
			want: pairwise("a", "b", "output", func(a, b float64) float64 { return f(a) * b }), tolerance: 1e-5,
		})
	}
	for name, f := range map[string]func(a, b uint32) uint32{
		"or": func(a, b uint32) uint32 { return a | b }, "xor": func(a, b uint32) uint32 { return a ^ b },
		"and": func(a, b uint32) uint32 { return a & b },
	} {
		cases = append(cases, launchCase{
			file: quant + "bitwise.metal",
			launch: "bitwise_" + name + "_uint32_t grid=320 threadgroup=64 a=uint32[301]:0..4294967295 b=uint32[301]:0..4294967295" +
				" output=out:uint32[301] length=uint32[1]:301",
			want: pairwise("a", "b", "output", func(a, b float64) float64 { return float64(f(uint32(a), uint32(b))) }),
		})
	}
	// A matrix of 5×37 bytes, each of which holds several weights: the most significant ones come first, and the results
	// for the same bits are 185 elements apart.
	for _, bits := range []int{8, 4, 2, 1} {
		cases = append(cases, launchCase{
			file: quant + "hqq_dequantize.metal",
			launch: fmt.Sprintf("dequantize_%dbit_float grid=256 threadgroup=64 weight=uint8[5,37]:0..255 scale=float32[37] zero=float32[37]"+
				" output=out:float32[%d] h=uint32[1]:5 w=uint32[1]:37", bits, 185*8/bits),
			want: func(in arrays) arrays {
				return arrays{"output": tabulate(185*8/bits, func(i int) float64 {
					q := int(in["weight"][i%185]) >> (8 - bits - i/185*bits) & (1<<bits - 1)
					return (float64(q) - in["zero"][i%37]) * in["scale"][i%37]
				})}
			},
			tolerance: 1e-5,
		})
	}
	return append(cases, []launchCase{
		{
			file: quant + "rmsnorm_residual.metal",
			launch: "rmsnorm_residual_f32 grid=192 threadgroup=64 x=float32[3,203] residual=float32[3,203] weight=float32[203] scale=float32[1]" +
				" out=out:float32[3,203] n_cols=uint32:203 eps=float32:0.00001 has_scale=uint32:1 shared=threadgroup:64",
			want: func(in arrays) arrays {
				y := mlxtest.ByRow(in["x"], 203, func(r []float64) []float64 { return rmsNorm(r, 1e-5) })
				return arrays{"out": tabulate(len(y), func(i int) float64 {
					return (y[i]*in["weight"][i%203] + in["residual"][i]) * in["scale"][0]
				})}
			},
			tolerance: 1e-5,
		},
		{ // batch 2, 3 heads, 7 positions, and rotations of 32 of 40 elements
			file: quant + "rotary.metal",
			launch: "rotary_q_float grid=1728 threadgroup=64 q=float32[2,3,7,40] cos=float32[7,16] sin=float32[7,16] q_out=out:float32[2,3,7,40]" +
				" batch=uint32:2 q_heads=uint32:3 seq_len=uint32:7 head_dim=uint32:40 rot_dim=uint32:16 cache_rows=uint32:7 is_neox=bool:1",
			want: func(in arrays) arrays {
				q := in["q"]
				return arrays{"q_out": tabulate(len(q), func(i int) float64 {
					column, angle := i%40, i/40%7*16+i%40%16
					switch {
					case column >= 32:
						return q[i]
					case column >= 16:
						return q[i]*in["cos"][angle] + q[i-16]*in["sin"][angle]
					}
					return q[i]*in["cos"][angle] - q[i+16]*in["sin"][angle]
				})}
			},
			tolerance: 1e-5,
		},
		{
			file: quant + "moe.metal",
			launch: "moe_weighted_reduce_flat_float grid=128,7 threadgroup=64,1 inputs=float32[7,3,101] topk_weights=float32[7,3] outputs=out:float32[7,101]" +
				" num_tokens=int32:7 hidden=int32:101 topk=int32:3",
			want: func(in arrays) arrays {
				var out []float64
				for t := range 7 {
					out = append(out, mlxtest.MatMul(in["topk_weights"][3*t:3*t+3], in["inputs"][303*t:303*t+303], 1, 101, 3, false)...)
				}
				return arrays{"outputs": out}
			},
			tolerance: 1e-5,
		},
		{ // an exponent of 4 bits and a mantissa of 3 bits
			file: quant + "scalar_fp8.metal", launch: "fp8_to_dtype_float grid=320 threadgroup=64 input=uint8[256]:iota output=out:float32[256] num_elements=uint32:256",
			want: elementwise("input", "output", e4m3), wrong: true,
		},
		{
			file: quant + "f8q8.metal", launch: "f8q8_dequantize_float grid=64 threadgroup=32 w=uint8[40,33]:0..126 out=out:float32[40,32] num_blocks=uint32:40",
			want: fromTo("w", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 33, func(block []float64) []float64 {
					return each(block[1:], func(q float64) float64 { return q * e4m3(block[0]) / 448 })
				})
			}),
			tolerance: 1e-5,
		},
		{
			file: quant + "sort.metal",
			launch: "c_block_sort_float32_float32_bn128_tn4 grid=128,3 threadgroup=128 inp=float32[3,501] out=out:float32[3,501]" +
				" size_sorted_axis=int32:501 in_stride_sorted_axis=int32:1 out_stride_sorted_axis=int32:1 in_stride_segment_axis=int32:501" +
				" out_stride_segment_axis=int32:501",
			findings: []sanitizer.FindingKind{sanitizer.FindingOutOfBounds},
		},
		{
			file: quant + "scan.metal", launch: "contig_scan_inclusive_max_float32_float32 grid=64,3 threadgroup=64 in=float32[3,301] out=out:float32[3,301]" +
				" axis_size=uint64:301",
			want: fromTo("in", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 301, func(r []float64) []float64 {
					largest := math.Inf(-1)
					return each(r, func(v float64) float64 { largest = max(largest, v); return largest })
				})
			}),
			findings: []sanitizer.FindingKind{sanitizer.FindingRace},
		},
		{
			file: quant + "mxfp4.metal",
			launch: "mxfp4_vecmat_f16 grid=1024,3 threadgroup=256 x=float16[3,96] w=uint8[13,48]:0..255 scales=uint8[13,3]:125..128 bias=float16[13]" +
				" y=out:float16[3,13] M=int32:3 N=int32:13 K=int32:96 has_bias=int32:1",
			want: func(in arrays) arrays {
				values := []float64{0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6}
				w := tabulate(13*96, func(i int) float64 {
					return values[int(in["w"][i/2])>>(i%2*4)&15] * math.Exp2(in["scales"][i/32]-127)
				})
				y := products(w, in["x"], 96)
				return arrays{"y": tabulate(len(y), func(i int) float64 { return y[i] + in["bias"][i%13] })}
			},
			tolerance: 5e-3,
		},
		{ // each threadgroup copies a block, but thread i of the grid reads pair i of 2
			file: attention + "copy_blocks.metal",
			launch: "copy_blocks_float grid=128 threadgroup=64 key_cache=inout:float32[4,100]:normal value_cache=inout:float32[4,60]:normal" +
				" block_mapping=int64[2,2]:0,2,1,3 numel_per_block_key=int32[1]:100 numel_per_block_value=int32[1]:60",
			findings: []sanitizer.FindingKind{sanitizer.FindingOutOfBounds, sanitizer.FindingRace},
		},
	}...)
}

// e4m3 returns the number with these bits in an 8-bit format with 4 bits of exponent and no infinity.
func e4m3(bits float64) float64 {
	b := int(bits)
	exponent, mantissa := b>>3&15, float64(b&7)/8
	v := math.Ldexp(1+mantissa, exponent-7)
	switch {
	case b&127 == 127:
		return math.NaN()
	case exponent == 0:
		v = math.Ldexp(mantissa, -6)
	}
	return math.Copysign(v, float64(127-b))
}
