package corpus

import (
	"fmt"
	"math"
	"slices"

	"github.com/x448/float16"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

func candleCases() []launchCase {
	const kernels = "candle/candle-metal-kernels/src/metal_src/"
	var cases []launchCase
	for _, u := range []struct {
		name, fill string
		f          func(float64) float64
	}{
		{"exp", "normal", math.Exp},
		{"gelu", "normal", tanhGelu},
		{"gelu_erf", "normal", gelu},
		{"log", "1..9", math.Log},
		{"recip", "1..9", func(x float64) float64 { return 1 / x }},
		{"relu", "normal", func(x float64) float64 { return max(0, x) }},
		{"sigmoid", "normal", sigmoid},
		{"sign", "normal", sign},
		{"silu", "normal", silu},
		{"sqr", "normal", func(x float64) float64 { return x * x }},
		{"tanh", "normal", math.Tanh},
	} {
		cases = append(cases, launchCase{ // a thread computes elements that are half the array apart
			file:   kernels + "unary.metal",
			launch: u.name + "_f32 grid=151 threadgroup=64 dim=uint64:301 input=float32[301]:" + u.fill + " output=out:float32[301]",
			want:   elementwise("input", "output", u.f), tolerance: 2e-5,
		})
	}
	for _, b := range []struct {
		name string
		f    func(a, b float64) float64
	}{
		{"badd", func(a, b float64) float64 { return a + b }},
		{"bsub", func(a, b float64) float64 { return a - b }},
		{"bmul", func(a, b float64) float64 { return a * b }},
		{"bdiv", func(a, b float64) float64 { return a / b }},
	} {
		cases = append(cases, launchCase{ // the transpose of the left operand, and a row
			file: kernels + "binary.metal",
			launch: b.name + "_f32_strided grid=256 threadgroup=64 dim=uint64:247 num_dims=uint64:2 dims=uint64[2]:13,19 left_strides=uint64[2]:1,13" +
				" right_strides=uint64[2]:0,1 left=float32[19,13]:1..9 right=float32[19]:1..9 output=out:float32[13,19]",
			want: func(in arrays) arrays {
				left := transpose(in["left"], 13)
				return arrays{"output": tabulate(len(left), func(i int) float64 { return b.f(left[i], in["right"][i%19]) })}
			},
			tolerance: 1e-6, findings: []sanitizer.FindingKind{sanitizer.FindingSameValueWrite},
		})
	}
	for name, f := range map[string]func([]float64) float64{"sum": sum, "max": slices.Max[[]float64], "min": slices.Min[[]float64]} {
		cases = append(cases, launchCase{
			file: kernels + "reduce.metal",
			launch: fmt.Sprintf("fast_%s_f32 grid=320 threadgroup=64 src_numel=uint32:1505 num_dims=uint32:1 dims=uint32[1]:1505"+
				" el_per_block=uint32:301 src=float32[1505] dst=out:float32[5]", name),
			want: fromTo("src", "dst", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 301, func(r []float64) []float64 { return []float64{f(r)} })
			}),
			tolerance: 1e-5, findings: []sanitizer.FindingKind{sanitizer.FindingFence},
		})
	}
	for name, f := range map[string]func([]float64) float64{"argmax": slices.Max[[]float64], "argmin": slices.Min[[]float64]} {
		cases = append(cases, launchCase{
			file: kernels + "reduce.metal",
			launch: fmt.Sprintf("fast_%s_f32 grid=320 threadgroup=64 src_numel=uint32:1505 num_dims=uint32:2 dims=uint32[2]:5,301"+
				" el_per_block=uint32:301 src=float32[1505] dst=out:uint32[5]", name),
			want: fromTo("src", "dst", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 301, func(r []float64) []float64 { return []float64{float64(slices.Index(r, f(r)))} })
			}),
			findings: []sanitizer.FindingKind{sanitizer.FindingFence},
		})
	}
	norm := func(in arrays, normalize func([]float64, float64) []float64, beta bool) arrays {
		y := mlxtest.ByRow(in["src"], 203, func(r []float64) []float64 { return normalize(r, 1e-5) })
		return arrays{"dst": tabulate(len(y), func(i int) float64 {
			if beta {
				return y[i]*in["alpha"][i%203] + in["beta"][i%203]
			}
			return y[i] * in["alpha"][i%203]
		})}
	}
	rotate := func(in arrays, pair func(i int) (first, second int)) arrays {
		y := make([]float64, len(in["src"]))
		for i := range len(y) / 2 {
			a, b := pair(i)
			x1, x2, c, s := in["src"][a], in["src"][b], in["cos"][i%(7*16)], in["sin"][i%(7*16)]
			y[a], y[b] = x1*c-x2*s, x1*s+x2*c
		}
		return arrays{"dst": y}
	}
	return append(cases, []launchCase{
		{ // the host rounds the number of threads up to whole threadgroups
			file: kernels + "unary.metal", launch: "exp_f32 grid=2048 threadgroup=1024 dim=uint64:3000 input=float32[3000] output=out:float32[3000]",
			want: elementwise("input", "output", math.Exp), tolerance: 1e-5,
			findings: []sanitizer.FindingKind{sanitizer.FindingSameValueWrite},
		},
		{
			file:   kernels + "affine.metal",
			launch: "affine_f32 grid=151 threadgroup=64 dim=uint64:301 mul=float32:2.5 add=float32:0.5 input=float32[301] output=out:float32[301]",
			want:   elementwise("input", "output", func(x float64) float64 { return 2.5*x + 0.5 }), tolerance: 1e-6,
		},
		{
			file: kernels + "cast.metal", launch: "cast_f32_i64 grid=151 threadgroup=64 dim=uint64:301 input=float32[301]:-9..9 output=out:int64[301]",
			want: elementwise("input", "output", math.Trunc),
		},
		{
			file: kernels + "fill.metal", launch: "fill_f32 grid=301 threadgroup=64 out=out:float32[301] value=float32:2.5 numel=uint64:301",
			want: func(arrays) arrays { return arrays{"out": tabulate(301, func(int) float64 { return 2.5 })} },
		},
		{
			file: kernels + "ternary.metal",
			launch: "where_u8_f32 grid=124 threadgroup=64 IDS_CONTIGUOUS=true T_CONTIGUOUS=false F_CONTIGUOUS=true numel=uint64:247 num_dims=uint64:2" +
				" dims=uint64[2]:13,19 strides=uint64[2]:19,1 strides_t=uint64[2]:1,13 strides_f=uint64[2]:19,1 ids=uint8[13,19]:0..1" +
				" t=float32[19,13] f=float32[13,19] out=out:float32[13,19]",
			want: func(in arrays) arrays {
				t := transpose(in["t"], 13)
				return arrays{"out": tabulate(len(t), func(i int) float64 {
					if in["ids"][i] != 0 {
						return t[i]
					}
					return in["f"][i]
				})}
			},
		},
		{
			file: kernels + "indexing.metal",
			launch: "is_u32_f32 grid=320 threadgroup=64 dst_size=uint64:315 left_size=uint64:3 src_dim_size=uint64:6 right_size=uint64:7 ids_size=uint64:15" +
				" contiguous=bool:1 src_dims=uint64[3]:3,6,7 src_strides=uint64[3]:42,7,1 input=float32[3,6,7] input_ids=uint32[15]:0..5" +
				" output=out:float32[3,15,7]",
			want: func(in arrays) arrays {
				return arrays{"output": tabulate(315, func(i int) float64 {
					return in["input"][i/105*42+int(in["input_ids"][i/7%15])*7+i%7]
				})}
			},
		},
		{
			file: kernels + "indexing.metal",
			launch: "gather_u32_f32 grid=320 threadgroup=64 dst_size=uint64:315 left_size=uint64:3 src_dim_size=uint64:6 right_size=uint64:7" +
				" ids_size=uint64:15 input=float32[3,6,7] input_ids=uint32[3,15,7]:0..5 output=out:float32[3,15,7]",
			want: func(in arrays) arrays {
				return arrays{"output": tabulate(315, func(i int) float64 {
					return in["input"][(i/105*6+int(in["input_ids"][i]))*7+i%7]
				})}
			},
		},
		{
			file: kernels + "indexing.metal",
			launch: "sa_u32_f32 grid=64 threadgroup=16 dst_size=uint64:21 left_size=uint64:3 src_dim_size=uint64:15 right_size=uint64:7" +
				" dst_dim_size=uint64:6 input=float32[3,15,7] input_ids=uint32[3,15,7]:0..5 output=inout:float32[3,6,7]:1..9",
			want: func(in arrays) arrays {
				out := slices.Clone(in["output"])
				for i, v := range in["input"] {
					out[(i/105*6+int(in["input_ids"][i]))*7+i%7] += v
				}
				return arrays{"output": out}
			},
			tolerance: 1e-5,
		},
		{
			file: kernels + "mlx_sort.metal",
			launch: "c_block_sort_float32_float32_bn128_tn8 grid=128,3 threadgroup=128 inp=float32[3,501] out=out:float32[3,501]" +
				" size_sorted_axis=int32:501 in_stride_sorted_axis=int32:1 out_stride_sorted_axis=int32:1 in_stride_segment_axis=int32:501" +
				" out_stride_segment_axis=int32:501",
			findings: []sanitizer.FindingKind{sanitizer.FindingOutOfBounds},
		},
		{
			file: kernels + "sort.metal",
			launch: "asort_desc_f32 grid=128,3 threadgroup=128,1 x=float32[3,101] dst=out:uint32[3,101] ncols=int64:101 ncols_pad=int64:128" +
				" shared_values=threadgroup:128",
			want: fromTo("x", "dst", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 101, func(r []float64) []float64 {
					order := tabulate(101, func(i int) float64 { return float64(i) })
					slices.SortFunc(order, func(a, b float64) int { return int(sign(r[int(b)] - r[int(a)])) })
					return order
				})
			}),
		},
		{
			file:   kernels + "reduce.metal",
			launch: "softmax_f32 grid=192 threadgroup=64 src_numel=uint32:609 el_per_block=uint32:203 src=float32[3,203] dst=out:float32[3,203]",
			want:   fromTo("src", "dst", func(x []float64) []float64 { return mlxtest.ByRow(x, 203, mlxtest.Softmax) }), tolerance: 1e-5,
			findings: []sanitizer.FindingKind{sanitizer.FindingFence},
		},
		{
			file: kernels + "reduce.metal",
			launch: "rmsnorm_f32 grid=192 threadgroup=64 src_numel=uint32:609 el_per_block=uint32:203 src=float32[3,203] dst=out:float32[3,203]" +
				" alpha=float32[203] eps=float32:0.00001",
			want: func(in arrays) arrays { return norm(in, rmsNorm, false) }, tolerance: 1e-5,
			findings: []sanitizer.FindingKind{sanitizer.FindingFence},
		},
		{
			file: kernels + "reduce.metal",
			launch: "layernorm_f32 grid=192 threadgroup=64 src_numel=uint32:609 el_per_block=uint32:203 src=float32[3,203] dst=out:float32[3,203]" +
				" alpha=float32[203] beta=float32[203] eps=float32:0.00001",
			want: func(in arrays) arrays { return norm(in, layerNorm, true) }, tolerance: 1e-5,
			findings: []sanitizer.FindingKind{sanitizer.FindingFence},
		},
		{
			file: kernels + "reduce.metal",
			launch: "rope_f32 grid=384 threadgroup=64 bh=uint64:3 td=uint64:224 d=uint64:32 stride_b=uint64:0 src=float32[3,7,32] cos=float32[7,16]" +
				" sin=float32[7,16] dst=out:float32[3,7,32]",
			want: func(in arrays) arrays {
				return rotate(in, func(i int) (int, int) { return i/16*32 + i%16, i/16*32 + i%16 + 16 })
			},
			tolerance: 1e-5,
		},
		{
			file: kernels + "reduce.metal",
			launch: "rope_i_f32 grid=384 threadgroup=64 bh=uint64:3 td=uint64:224 stride_b=uint64:0 src=float32[3,7,32] cos=float32[7,16]" +
				" sin=float32[7,16] dst=out:float32[3,7,32]",
			want: func(in arrays) arrays {
				return rotate(in, func(i int) (int, int) { return 2 * i, 2*i + 1 })
			},
			tolerance: 1e-5,
		},
		{
			file: kernels + "conv.metal",
			launch: "avg_pool2d_f32 grid=256 threadgroup=64 w_k=uint64:3 h_k=uint64:2 w_s=uint64:2 h_s=uint64:2 src_dims=uint64[4]:2,5,9,8" +
				" src_s=uint64[4]:360,72,8,1 src=float32[2,5,9,8] dst=out:float32[2,5,4,4]",
			want: fromTo("src", "dst", func(x []float64) []float64 {
				return tabulate(160, func(i int) float64 {
					at := i/16*72 + i/4%4*2*8 + i%4*2
					s := 0.0
					for k := range 6 {
						s += x[at+k/2*8+k%2] / 6
					}
					return s
				})
			}),
			tolerance: 1e-5,
		},
		{
			file: kernels + "conv.metal",
			launch: "upsample_nearest2d_f32 grid=1024 threadgroup=64 w_out=uint64:12 h_out=uint64:8 w_scale=float32:0.5 h_scale=float32:0.5" +
				" dims=uint64[4]:2,5,6,4 strides=uint64[4]:120,24,4,1 src=float32[2,5,6,4] dst=out:float32[2,5,12,8]",
			want: fromTo("src", "dst", func(x []float64) []float64 {
				return tabulate(960, func(i int) float64 { return x[i/96*24+i/8%12/2*4+i%8/2] })
			}),
		},
		{ // 2 vectors, and 18 bytes for 32 weights
			file: kernels + "quantized.metal",
			launch: "kernel_mul_mv_q4_0_f32 grid=16,16 threadgroup=8,8 src0=uint16[16,8,9]:0..14335 src1=float32[2,256] dst=out:float32[2,16]" +
				" ne00=int64:256 ne01=int64:16 ne02=int64:1 nb00=uint64:18 nb01=uint64:164 nb02=uint64:2304 ne10=int64:256 ne11=int64:2 ne12=int64:1" +
				" nb10=uint64:4 nb11=uint64:1024 nb12=uint64:2048 ne0=int64:16 ne1=int64:2 r2=uint32:1 r3=uint32:1",
			want: func(in arrays) arrays {
				return arrays{"dst": products(q4(in["src0"]), in["src1"], 256)}
			},
			tolerance: 1e-3,
		},
		{ // the last threadgroup of 8 rows has 6
			file: kernels + "quantized.metal",
			launch: "kernel_mul_mv_q4_0_f32 grid=16,16 threadgroup=8,8 src0=uint16[14,8,9]:0..14335 src1=float32[2,256] dst=out:float32[2,14]" +
				" ne00=int64:256 ne01=int64:14 ne02=int64:1 nb00=uint64:18 nb01=uint64:144 nb02=uint64:2016 ne10=int64:256 ne11=int64:2 ne12=int64:1" +
				" nb10=uint64:4 nb11=uint64:1024 nb12=uint64:2048 ne0=int64:14 ne1=int64:2 r2=uint32:1 r3=uint32:1",
			want: func(in arrays) arrays {
				return arrays{"dst": products(q4(in["src0"]), in["src1"], 256)}
			},
			tolerance: 1e-3, findings: []sanitizer.FindingKind{sanitizer.FindingOutOfBounds},
		},
	}...)
}

// half returns the number with these bits in the format float16.
func half(bits float64) float64 {
	return float64(float16.Frombits(uint16(bits)).Float32())
}

// q4 returns the weights in blocks of ggml's format q4_0: a scale, and 32 numbers of 4 bits from −8.
func q4(words []float64) []float64 {
	return mlxtest.ByRow(words, 9, func(block []float64) []float64 {
		return tabulate(32, func(i int) float64 {
			q := int(block[1+i%16/2]) >> (i % 2 * 8) >> (i / 16 * 4) & 15
			return half(block[0]) * float64(q-8)
		})
	})
}

// q8 returns the weights in blocks of ggml's format q8_0: a scale, and 32 bytes.
func q8(words []float64) []float64 {
	return mlxtest.ByRow(words, 17, func(block []float64) []float64 {
		return tabulate(32, func(i int) float64 { return half(block[0]) * float64(int8(int(block[1+i/2])>>(i%2*8))) })
	})
}

// products returns the dot product of each row of y with each row of x. Rows have n elements.
func products(x, y []float64, n int) []float64 {
	return mlxtest.MatMul(y, transpose(x, n), len(y)/n, len(x)/n, n, false)
}
