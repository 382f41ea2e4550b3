package corpus

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

func mlxCases() []launchCase {
	const kernels = "mlx/mlx/backend/metal/kernels/"
	var cases []launchCase
	for _, u := range []struct {
		name, fill string
		f          func(float64) float64
	}{
		{"Abs", "normal", math.Abs},
		{"ArcCos", "uniform", math.Acos},
		{"ArcSinh", "normal", math.Asinh},
		{"ArcTan", "normal", math.Atan},
		{"ArcTanh", "uniform", math.Atanh},
		{"Cosh", "normal", math.Cosh},
		{"Erf", "normal", math.Erf},
		{"ErfInv", "uniform", math.Erfinv},
		{"Exp", "normal", math.Exp},
		{"Expm1", "normal", math.Expm1},
		{"Log1p", "uniform", math.Log1p},
		{"Log2", "1..9", math.Log2},
		{"Log10", "1..9", math.Log10},
		{"Negative", "normal", func(x float64) float64 { return -x }},
		{"Round", "normal", math.RoundToEven},
		{"Rsqrt", "1..9", func(x float64) float64 { return 1 / math.Sqrt(x) }},
		{"Sigmoid", "normal", sigmoid},
		{"Sign", "normal", sign},
		{"Sin", "normal", math.Sin},
		{"Square", "normal", func(x float64) float64 { return x * x }},
		{"Tanh", "normal", math.Tanh},
	} {
		cases = append(cases, launchCase{
			file: kernels + "unary.metal",
			launch: fmt.Sprintf("v2_%sfloat32float32 grid=31,5 threadgroup=8,4 in=float32[309]:%s out=out:float32[309] size=int64:309",
				u.name, u.fill),
			want: elementwise("in", "out", u.f), tolerance: 2e-5,
		})
	}
	for _, b := range []struct {
		name, out string
		f         func(a, b float64) float64
	}{
		{"Add", "float32", func(a, b float64) float64 { return a + b }},
		{"Divide", "float32", func(a, b float64) float64 { return a / b }},
		{"GreaterEqual", "bool", func(a, b float64) float64 { return truth(a >= b) }},
		{"LogAddExp", "float32", func(a, b float64) float64 { return math.Log(math.Exp(a) + math.Exp(b)) }},
		{"Maximum", "float32", math.Max},
		{"NotEqual", "bool", func(a, b float64) float64 { return truth(a != b) }},
		{"Power", "float32", math.Pow},
		{"Remainder", "float32", func(a, b float64) float64 { return a - b*math.Floor(a/b) }},
		{"ArcTan2", "float32", math.Atan2},
	} {
		cases = append(cases,
			launchCase{
				file: kernels + "binary.metal",
				launch: fmt.Sprintf("vvn_%sfloat32 grid=151 threadgroup=64 a=float32[301]:1..5 b=float32[301]:1..5 c=out:%s[301] size=uint32:301",
					b.name, b.out),
				want: pairwise("a", "b", "c", b.f), tolerance: 1e-5,
			},
			launchCase{ // the transpose of a, and b broadcast along the first axis
				file: kernels + "binary.metal",
				launch: fmt.Sprintf("g2_%sfloat32 grid=19,13 threadgroup=8,8 a=float32[19,13]:1..5 b=float32[19]:1..5 c=out:%s[13,19]"+
					" a_strides=int64[2]:1,13 b_strides=int64[2]:0,1", b.name, b.out),
				want: func(in arrays) arrays {
					a := transpose(in["a"], 13)
					return arrays{"c": tabulate(len(a), func(i int) float64 { return b.f(a[i], in["b"][i%19]) })}
				},
				tolerance: 1e-5,
			})
	}
	logsumexp := func(x []float64) []float64 {
		return []float64{math.Log(sum(each(x, math.Exp)))}
	}
	for _, r := range []struct {
		file, kernel string
		f            func([]float64) []float64
	}{
		{"softmax", "block_softmax_float32", mlxtest.Softmax},
		{"softmax", "looped_softmax_float32", mlxtest.Softmax},
		{"softmax", "block_softmax_precise_float16", mlxtest.Softmax},
		{"logsumexp", "block_logsumexp_float32", logsumexp},
		{"logsumexp", "looped_logsumexp_float32", logsumexp},
	} {
		dtype := r.kernel[len(r.kernel)-7:]
		size, threads := 203, 64
		if r.kernel[0] == 'l' {
			size, threads = 5003, 1024 // the host launches it with all simdgroups only
		}
		cases = append(cases, launchCase{
			file: kernels + r.file + ".metal",
			launch: fmt.Sprintf("%s grid=%d threadgroup=%d in=%s[3,%d] out=out:%s[%d] axis_size=int32:%d",
				r.kernel, 3*threads, threads, dtype, size, dtype, 3*len(r.f(make([]float64, size))), size),
			want:      fromTo("in", "out", func(x []float64) []float64 { return mlxtest.ByRow(x, size, r.f) }),
			tolerance: map[string]float64{"float32": 1e-5, "float16": 1e-3}[dtype],
		})
	}
	for _, norm := range []string{"rmsfloat32 grid=192", "rms_loopedfloat32 grid=192"} {
		cases = append(cases, launchCase{
			file: kernels + "rms_norm.metal",
			launch: norm + " threadgroup=64 has_w=true x=float32[3,203] w=float32[203] out=out:float32[3,203] eps=float32:0.00001" +
				" axis_size=uint32:203 w_stride=uint32:1",
			want: func(in arrays) arrays {
				y := mlxtest.ByRow(in["x"], 203, func(r []float64) []float64 { return rmsNorm(r, 1e-5) })
				return arrays{"out": tabulate(len(y), func(i int) float64 { return y[i] * in["w"][i%203] })}
			},
			tolerance: 1e-5,
		})
	}
	for _, norm := range []string{"layer_normfloat32 grid=96 threadgroup=32", "layer_norm_loopedfloat32 grid=96 threadgroup=32"} {
		cases = append(cases, launchCase{
			file: kernels + "layer_norm.metal",
			launch: norm + " has_w=true x=float32[3,250] w=float32[250] b=float32[250] out=out:float32[3,250] eps=float32:0.00001" +
				" axis_size=uint32:250 w_stride=uint32:1 b_stride=uint32:1",
			want: func(in arrays) arrays {
				y := mlxtest.ByRow(in["x"], 250, func(r []float64) []float64 { return layerNorm(r, 1e-5) })
				return arrays{"out": tabulate(len(y), func(i int) float64 { return y[i]*in["w"][i%250] + in["b"][i%250] })}
			},
			tolerance: 1e-5,
		})
	}
	cumulate := func(x []float64) []float64 {
		total := 0.0
		return each(x, func(v float64) float64 { total += v; return total })
	}
	return append(cases, []launchCase{
		{
			file: kernels + "layer_norm.metal",
			launch: "layer_normfloat32 grid=96 threadgroup=32 has_w=true x=float32[3,203] w=float32[203] b=float32[203] out=out:float32[3,203]" +
				" eps=float32:0.00001 axis_size=uint32:203 w_stride=uint32:1 b_stride=uint32:1",
			findings: []sanitizer.FindingKind{sanitizer.FindingOutOfBounds},
		},
		{
			file: kernels + "ternary.metal",
			launch: "g2_Selectfloat32 grid=19,13 threadgroup=8,8 a=bool[19] b=float32[19,13] c=float32[13,19] d=out:float32[13,19]" +
				" a_strides=int64[2]:0,1 b_strides=int64[2]:1,13 c_strides=int64[2]:19,1",
			want: func(in arrays) arrays {
				b := transpose(in["b"], 13)
				return arrays{"d": tabulate(len(b), func(i int) float64 {
					if in["a"][i%19] != 0 {
						return b[i]
					}
					return in["c"][i]
				})}
			},
		},
		{
			file:   kernels + "copy.metal",
			launch: "g2_copyfloat32float32 grid=19,13 threadgroup=8,8 src=float32[19,13] dst=out:float32[13,19] src_strides=int64[2]:1,13",
			want:   fromTo("src", "dst", func(x []float64) []float64 { return transpose(x, 13) }),
		},
		{
			file: kernels + "arange.metal", launch: "arangefloat32 grid=300 threadgroup=128 start=float32:3 step=float32:0.5 out=out:float32[300]",
			want: func(arrays) arrays {
				return arrays{"out": tabulate(300, func(i int) float64 { return 3 + float64(i)/2 })}
			},
		},
		{
			file: kernels + "arg_reduce.metal",
			launch: "argmax_float32 grid=64,5 threadgroup=64 in=float32[5,301] out=out:uint32[5] shape=int32[1]:5 in_strides=int64[1]:301" +
				" out_strides=int64[1]:1 ndim=uint64:1 axis_stride=int64:1 axis_size=uint64:301",
			want: fromTo("in", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 301, func(r []float64) []float64 { return []float64{float64(slices.Index(r, slices.Max(r)))} })
			}),
		},
		{
			file: kernels + "reduce.metal", launch: "all_reduce_sumfloat32 grid=64,2 threadgroup=64,1 in=float32[900]:0..9" +
				" out=out:float32[2] in_size=uint64:900 row_size=uint64:500",
			want: fromTo("in", "out", func(x []float64) []float64 { return []float64{sum(x[:500]), sum(x[500:])} }),
		},
		{
			file: kernels + "reduce.metal", launch: "row_reduce_simple_maxfloat32 grid=32,3 threadgroup=32,1 in=float32[10,203]" +
				" out=out:float32[10] reduction_size=uint64:203 out_size=int64:10",
			want: fromTo("in", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 203, func(r []float64) []float64 { return []float64{slices.Max(r)} })
			}),
			findings: []sanitizer.FindingKind{sanitizer.FindingSameValueWrite},
		},
		{
			file: kernels + "scan.metal", launch: "contig_scan_inclusive_sum_float32_float32 grid=64,3 threadgroup=64 in=float32[3,301]:0..9" +
				" out=out:float32[3,301] axis_size=uint64:301",
			want: fromTo("in", "out", func(x []float64) []float64 { return mlxtest.ByRow(x, 301, cumulate) }),
		},
		{
			file: kernels + "scan.metal", launch: "contig_scan_reverse_exclusive_sum_int32_int32 grid=32,3 threadgroup=32 in=int32[3,301]:0..9" +
				" out=out:int32[3,301] axis_size=uint64:301",
			want: fromTo("in", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 301, func(r []float64) []float64 {
					total := sum(r)
					return each(r, func(v float64) float64 { total -= v; return total })
				})
			}),
		},
		{
			file: kernels + "sort.metal",
			launch: "c_block_sort_float32_float32_bn128_tn4 grid=128,3 threadgroup=128 inp=float32[3,501] out=out:float32[3,501]" +
				" size_sorted_axis=int32:501 in_stride_sorted_axis=int32:1 out_stride_sorted_axis=int32:1 in_stride_segment_axis=int32:501" +
				" out_stride_segment_axis=int32:501",
			want: fromTo("inp", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 501, func(r []float64) []float64 { return slices.Sorted(slices.Values(r)) })
			}),
		},
		{
			file: kernels + "searchsorted.metal",
			launch: "searchsorted_int32_left grid=101 threadgroup=64 a=int32[50]:iota v=int32[101]:-9..60 out=out:uint32[101] n=uint32:50" +
				" a_stride=int64:1",
			want: elementwise("v", "out", func(v float64) float64 { return max(0, min(v, 50)) }),
		},
		{
			file: kernels + "rope.metal",
			launch: "rope_single_float32 grid=16,7 threadgroup=8,4 forward=true traditional=false hs_transpose=false in=float32[7,32]" +
				" out=out:float32[7,32] offset=int32:5 scale=float32:1 stride=int64:32 base=float32:4",
			want: fromTo("in", "out", func(x []float64) []float64 {
				return tabulate(len(x), func(i int) float64 {
					s, c := math.Sincos(5 * math.Exp2(-float64(i%16)/16*4))
					if i%32 < 16 {
						return x[i]*c - x[i+16]*s
					}
					return x[i-16]*s + x[i]*c
				})
			}),
			tolerance: 1e-5,
		},
		{
			file: kernels + "gemv.metal",
			launch: "gemv_float32_bm1_bn8_sm1_sn32_tm4_tn4_nc0_axpby0 grid=192,8 threadgroup=32,8 mat=float32[21,203] in_vec=float32[203]" +
				" bias=float32[21] out_vec=out:float32[21] in_vec_size=int32:203 out_vec_size=int32:21 marix_ld=int32:203 alpha=float32:1" +
				" beta=float32:0 batch_ndim=int32:1 batch_shape=int32[1]:1 vector_batch_stride=int64[1]:0 matrix_batch_stride=int64[1]:0" +
				" bias_batch_stride=int64[1]:0 bias_stride=int32:1",
			want: func(in arrays) arrays {
				return arrays{"out_vec": mlxtest.MatMul(in["mat"], in["in_vec"], 21, 1, 203, false)}
			},
			tolerance: 1e-4, findings: []sanitizer.FindingKind{
				sanitizer.FindingDivergentBarrier, sanitizer.FindingFence, sanitizer.FindingSameValueWrite,
			},
		},
		{ // 4 bits for each weight, groups of 64
			file: kernels + "quantized.metal",
			launch: "affine_qmv_fast_float_gs_64_b_4_batch_0 grid=64,4 threadgroup=32,2 w=uint32[16,64]:0..2147483647 scales=float32[16,8]" +
				" biases=float32[16,8] x=float32[2,512] y=out:float32[2,16] in_vec_size=int32:512 out_vec_size=int32:16 x_batch_ndims=int32:0" +
				" x_shape=int32[1]:0 x_strides=int64[1]:0 w_batch_ndims=int32:0 w_shape=int32[1]:0 w_strides=int64[1]:0 s_strides=int64[1]:0" +
				" b_strides=int64[1]:0",
			want: func(in arrays) arrays {
				w := tabulate(16*512, func(i int) float64 {
					q := uint32(in["w"][i/8]) >> (4 * (i % 8)) & 15
					return float64(q)*in["scales"][i/64] + in["biases"][i/64]
				})
				return arrays{"y": transpose(mlxtest.MatMul(w, transpose(in["x"], 512), 16, 2, 512, false), 2)}
			},
			tolerance: 1e-3,
		},
		{
			file: kernels + "scaled_dot_product_attention.metal",
			launch: "sdpa_vector_float_64_64 grid=4096,2 threadgroup=1024 has_mask=false query_transposed=false do_causal=false bool_mask=false" +
				" float_mask=false has_sinks=false blocks=1 queries=float32[4,2,64] keys=float32[2,100,64] values=float32[2,100,64] out=out:float32[4,2,64]" +
				" gqa_factor=int32:2 N=int32:100 k_head_stride=uint64:6400 k_seq_stride=uint64:64 v_head_stride=uint64:6400 v_seq_stride=uint64:64" +
				" scale=float32:0.125 bmask=bool[1] fmask=float32[1] mask_kv_seq_stride=int32:0 mask_q_seq_stride=int32:0 mask_head_stride=int32:0" +
				" sinks=float32[1] num_q_heads=int32:4",
			want: func(in arrays) arrays {
				var out []float64
				for i := range 8 {
					kv := i / 4 * 6400
					out = append(out, attention(in["queries"][64*i:64*i+64], in["keys"][kv:kv+6400], in["values"][kv:kv+6400], 0.125)...)
				}
				return arrays{"out": out}
			},
			tolerance: 1e-4,
		},
		{
			file: kernels + "fft.metal",
			launch: "fft_mem_256_float2_float2 grid=3,1,32 threadgroup=1,1,32 inv_=false is_power_of_2_=true elems_per_thread_=8 rader_m_=1" +
				" use_bluestein_twiddle_table_=false" + steps("radix_", map[int]int{8: 2, 4: 1}) + steps("rader_", nil) +
				" in=float32[3,256,2] out=out:float32[3,256,2] n=int32:256 batch_size=int32:3",
			want: fromTo("in", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 512, func(r []float64) []float64 { return dft(r, -1) })
			}),
			tolerance: 1e-4,
		},
	}...)
}

// steps returns the function constants for the number of steps of each radix.
func steps(prefix string, count map[int]int) string {
	text := ""
	for _, radix := range []int{13, 11, 8, 7, 6, 5, 4, 3, 2} {
		text += fmt.Sprintf(" %s%d_steps_=%d", prefix, radix, count[radix])
	}
	return text
}
