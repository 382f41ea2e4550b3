package corpus

import (
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

func tractCases() []launchCase {
	const kernels = "tract/metal/src/kernels/"
	const nn = kernels + "nn/nn_ops.metal"
	const array = kernels + "array/array_ops.metal"
	var cases []launchCase

	// Element by element, in place and out of place, 300 elements in three threadgroups.
	for _, u := range []struct {
		name, fill string
		f          func(float64) float64
	}{
		{"abs", "normal", math.Abs},
		{"exp", "normal", math.Exp},
		{"ln", "1..9", math.Log},
		{"sqrt", "0..9", math.Sqrt},
		{"rsqrt", "1..9", func(x float64) float64 { return 1 / math.Sqrt(x) }},
		{"sigmoid", "normal", sigmoid},
		{"recip", "1..9", func(x float64) float64 { return 1 / x }},
		{"ceil", "normal", math.Ceil},
		{"floor", "normal", math.Floor},
		{"roundhalftoeven", "normal", math.RoundToEven},
		{"cos", "normal", math.Cos},
		{"acos", "uniform", math.Acos},
		{"acosh", "1..9", math.Acosh},
		{"sin", "normal", math.Sin},
		{"sinh", "normal", math.Sinh},
		{"asinh", "normal", math.Asinh},
		{"tan", "uniform", math.Tan},
		{"atan", "normal", math.Atan},
		{"tanh", "normal", math.Tanh},
		{"erf", "normal", math.Erf},
		{"neg", "normal", func(x float64) float64 { return -x }},
		{"sign", "normal", sign},
		{"hardswish", "normal", func(x float64) float64 { return x * max(0, min(1, x/6+0.5)) }},
		{"silu", "normal", silu},
	} {
		cases = append(cases, launchCase{
			file:   kernels + "element_wise.metal",
			launch: "element_wise_ops::" + u.name + "_out_of_place_f32 grid=300 threadgroup=128 input=float32[300]:" + u.fill + " output=out:float32[300]",
			want:   elementwise("input", "output", u.f), tolerance: 1e-5,
		})
	}
	cases = append(cases, launchCase{
		file:   kernels + "element_wise.metal",
		launch: "element_wise_ops::square_in_place_f32 grid=300 threadgroup=128 inout=inout:float32[300]:0..9",
		want:   elementwise("inout", "inout", func(x float64) float64 { return x * x }), tolerance: 1e-6,
	})

	// Two arrays, of which the second is broadcast along all axes but the last: [2,3,5,37] and [37].
	for _, b := range []struct {
		name, out string
		f         func(a, b float64) float64
	}{
		{"add", "float32", func(a, b float64) float64 { return a + b }},
		{"sub", "float32", func(a, b float64) float64 { return a - b }},
		{"mul", "float32", func(a, b float64) float64 { return a * b }},
		{"div", "float32", func(a, b float64) float64 { return a / b }},
		{"min", "float32", math.Min},
		{"max", "float32", math.Max},
		{"lt", "bool", func(a, b float64) float64 { return truth(a < b) }},
		{"gte", "bool", func(a, b float64) float64 { return truth(a >= b) }},
		{"eq", "bool", func(a, b float64) float64 { return truth(a == b) }},
	} {
		cases = append(cases, launchCase{
			file: kernels + "bin_ops.metal",
			launch: "bin_ops::" + b.name + "_f32 grid=320,3,2 threadgroup=64 lhs_b=float32[2,3,5,37]:0..9 lhs_shape=uint64[4]:2,3,5,37" +
				" lhs_strides=uint64[4]:555,185,37,1 rhs_b=float32[37]:1..9 rhs_shape=uint64[4]:1,1,1,37 rhs_strides=uint64[4]:0,0,0,1" +
				" output_b=out:" + b.out + "[2,3,5,37] out_shape=uint64[4]:2,3,5,37 out_strides=uint64[4]:555,185,37,1",
			want: func(in arrays) arrays {
				return arrays{"output_b": tabulate(2*3*5*37, func(i int) float64 { return b.f(in["lhs_b"][i], in["rhs_b"][i%37]) })}
			},
			tolerance: 1e-6,
		})
	}

	// Rows of a matrix [3,dim,2] along its middle axis, and of its other axes.
	strides := " strides=uint64[3]:200,2,1"
	middle := func(f func([]float64) []float64) func(x []float64) []float64 {
		return func(x []float64) []float64 {
			return mlxtest.ByRow(x, 200, func(m []float64) []float64 { return transpose(mlxtest.ByRow(transpose(m, 2), 100, f), 100) })
		}
	}
	return append(cases, []launchCase{
		{
			file: kernels + "bin_ops.metal",
			launch: "bin_ops::iff_generic_u32 grid=210 threadgroup=64 cond=bool[7] then_values=uint32[210] else_values=uint32[1] out=out:uint32[210]" +
				" out_shape=uint64[5]:1,2,3,5,7 cond_strides=uint64[5]:0,0,0,0,1 then_strides=uint64[5]:0,105,35,7,1 else_strides=uint64[5]:0,0,0,0,0" +
				" out_strides=uint64[5]:0,105,35,7,1",
			want: func(in arrays) arrays {
				return arrays{"out": tabulate(210, func(i int) float64 {
					if in["cond"][i%7] != 0 {
						return in["then_values"][i]
					}
					return in["else_values"][0]
				})}
			},
		},
		{
			file: nn, launch: "nn_ops::reduce_sum_nd3_f32 grid=768,1,3 threadgroup=256 input_b=float32[3,1000,3] output_b=out:float32[3,1,3]" +
				" input_shape=uint64[3]:3,1000,3 input_strides=uint64[3]:3000,3,1 output_strides=uint64[3]:3,3,1",
			want: fromTo("input_b", "output_b", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 3000, func(m []float64) []float64 {
					return mlxtest.ByRow(transpose(m, 3), 1000, func(r []float64) []float64 { return []float64{sum(r)} })
				})
			}),
			tolerance: 1e-5,
		},
		{
			file: nn, launch: "nn_ops::reduce_max_nd3_f32 grid=32,1,5 threadgroup=32 input_b=float32[5,270,1] output_b=out:float32[5]" +
				" input_shape=uint64[3]:5,270,1 input_strides=uint64[3]:270,1,1 output_strides=uint64[3]:1,1,1",
			want: fromTo("input_b", "output_b", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 270, func(r []float64) []float64 { return []float64{slices.Max(r)} })
			}),
		},
		{
			file: nn, launch: "nn_ops::reduce_mean_of_squares_nd3_f32 grid=64,1,5 threadgroup=64 input_b=float32[5,270,1] output_b=out:float32[5]" +
				" input_shape=uint64[3]:5,270,1 input_strides=uint64[3]:270,1,1 output_strides=uint64[3]:1,1,1",
			want: fromTo("input_b", "output_b", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 270, func(r []float64) []float64 { return []float64{dot(r, r) / 270} })
			}),
			tolerance: 1e-5,
		},
		{
			file: nn, launch: "nn_ops::rms_norm_nd3_f32 grid=768 threadgroup=128 input_b=float32[3,100,2] eps_b=float32[1]:0.00001" +
				" output_b=out:float32[3,100,2] shape=uint64[3]:3,100,2 shmem_f32=threadgroup:32" + strides,
			want:      fromTo("input_b", "output_b", middle(func(r []float64) []float64 { return rmsNorm(r, 1e-5) })),
			tolerance: 1e-5,
		},
		{
			file: nn, launch: "nn_ops::rms_norm_nd2_l4_f32 grid=320 threadgroup=64 input_b=float32[5,300] eps_b=float32[1]:0.00001" +
				" output_b=out:float32[5,300] n=uint64:300 n_div_4=uint64:75 outer_stride=uint64:1200 shmem_f32=threadgroup:32",
			want: fromTo("input_b", "output_b", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 300, func(r []float64) []float64 { return rmsNorm(r, 1e-5) })
			}),
			tolerance: 1e-5,
		},
		{
			file: nn, launch: "nn_ops::silu_4_f32 grid=75 threadgroup=64 input_b=float32[300] output_b=out:float32[300]",
			want: elementwise("input_b", "output_b", silu), tolerance: 1e-5,
		},
		{
			file: nn, launch: "nn_ops::leaky_relu_f32 grid=300 threadgroup=64 input_b=float32[300] output_b=out:float32[300] alpha=float32:0.25",
			want: elementwise("input_b", "output_b", func(x float64) float64 { return max(x, x/4) }), tolerance: 1e-6,
		},
		{
			file: nn, launch: "nn_ops::gelu_approx_f32 grid=300 threadgroup=64 input_b=float32[300] output_b=out:float32[300]",
			want: elementwise("input_b", "output_b", tanhGelu), tolerance: 1e-5,
		},
		{
			file: nn, launch: "nn_ops::softmax_nd3_f32 grid=64,1,3 threadgroup=32 input_b=float32[3,100,2] output_b=out:float32[3,100,2]" +
				" shape=uint64[3]:3,100,2" + strides,
			want: fromTo("input_b", "output_b", middle(mlxtest.Softmax)), tolerance: 1e-5,
		},
		{
			file: nn, launch: "nn_ops::softmax_nd3_contig_f32 grid=32,1,3 threadgroup=32 input_b=float32[3,200,1] output_b=out:float32[3,200,1]" +
				" shape=uint64[3]:3,200,1 strides=uint64[3]:200,1,1",
			want:      fromTo("input_b", "output_b", func(x []float64) []float64 { return mlxtest.ByRow(x, 200, mlxtest.Softmax) }),
			tolerance: 1e-5,
		},
		{
			file: nn, launch: "nn_ops::scaled_masked_softmax_nd5_f32 grid=320,2,2 threadgroup=64 input_b=float32[2,2,5,100] mask_b=float32[5,100]" +
				" scale_b=float32[1]:0.5 output_b=out:float32[2,2,5,100] shape=uint64[5]:1,2,2,5,100 strides=uint64[5]:2000,1000,500,100,1" +
				" mask_strides=uint64[5]:0,0,0,100,1 out_strides=uint64[5]:2000,1000,500,100,1 tgmem=threadgroup:132",
			want: func(in arrays) arrays {
				x := tabulate(2000, func(i int) float64 { return in["input_b"][i]/2 + in["mask_b"][i%500] })
				return arrays{"output_b": mlxtest.ByRow(x, 100, mlxtest.Softmax)}
			},
			tolerance: 1e-5, findings: []sanitizer.FindingKind{sanitizer.FindingRace},
		},
		{
			file: nn, launch: "nn_ops::apply_rope_nd3_f32 grid=16,7,3 threadgroup=8,4 input_b=float32[3,7,32] cos_b=float32[7,32] sin_b=float32[7,32]" +
				" output_b=out:float32[3,7,32] shape=uint64[3]:3,7,32 strides=uint64[3]:224,32,1 cos_sin_strides=uint64[3]:0,32,1 out_strides=uint64[3]:224,32,1",
			want: func(in arrays) arrays {
				return arrays{"output_b": tabulate(3*7*32, func(i int) float64 {
					partner := -in["input_b"][i^16]
					if i%32 >= 16 {
						partner = -partner
					}
					return in["input_b"][i]*in["cos_b"][i%224] + partner*in["sin_b"][i%224]
				})}
			},
			tolerance: 1e-5,
		},
		{
			file: array, launch: "array_ops::copy_nd3_u32 grid=224,5,1 threadgroup=32 input_b=uint32[5,40,7]:iota input_strides=uint64[3]:280,1,7" +
				" output_b=out:uint32[5,7,40] out_shape=uint64[3]:5,7,40 out_strides=uint64[3]:280,40,1",
			want: fromTo("input_b", "output_b", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 280, func(m []float64) []float64 { return transpose(m, 7) })
			}),
		},
		{
			file: array, launch: "array_ops::cast_f32_i32 grid=300 threadgroup=64 input_b=float32[300]:-9..9 output_b=out:int32[300]",
			want: elementwise("input_b", "output_b", math.Trunc),
		},
		{
			file: array, launch: "array_ops::rotate_half_nd2_f32 grid=16,9 threadgroup=8,4 input_b=float32[9,32] output_b=out:float32[9,32]" +
				" shape=uint64[2]:9,32 strides=uint64[2]:32,1",
			want: fromTo("input_b", "output_b", func(x []float64) []float64 {
				return tabulate(len(x), func(i int) float64 {
					if i%32 < 16 {
						return -x[i+16]
					}
					return x[i-16]
				})
			}),
		},
		{
			file: array, launch: "array_ops::gather_f32 grid=40,9,3 threadgroup=32 data_b=float32[3,6,37] indices_b=int64[8]:-6..5" +
				" output_b=out:float32[3,8,37] params=int32[4]:3,6,37,8",
			want: func(in arrays) arrays {
				return arrays{"output_b": tabulate(3*8*37, func(i int) float64 {
					k := (int(in["indices_b"][i/37%8]) + 6) % 6
					return in["data_b"][(i/(8*37)*6+k)*37+i%37]
				})}
			},
		},
		{
			file: array, launch: "array_ops::diag_gather_f32 grid=40,12,2 threadgroup=32 input_b=float32[2,10,50] output_b=out:float32[2,10,37]" +
				" params=int32[10]:9,10,50,37,500,50,1,370,37,1",
			want: fromTo("input_b", "output_b", func(x []float64) []float64 {
				return tabulate(2*10*37, func(n int) float64 {
					b, i, k := n/370, n/37%10, n%37
					if r := 9 + k - i; r < 50 {
						return x[b*500+i*50+r]
					}
					return 0
				})
			}),
		},
		{
			file: kernels + "nn/pool.metal",
			launch: "max_pool_2d_f32 grid=8,5,8 threadgroup=4,2,2 input=float32[2,7,9,6] output=out:float32[2,4,5,6]" +
				" p=" + numbers("int32", 2, 7, 9, 6, 4, 5, 3, 3, 2, 2, 1, 1, 1, 1, 0, 0),
			want: fromTo("input", "output", func(x []float64) []float64 {
				return tabulate(2*4*5*6, func(i int) float64 {
					largest := math.Inf(-1)
					pool(i, func(n, h, w, c int) { largest = max(largest, x[((n*7+h)*9+w)*6+c]) })
					return largest
				})
			}),
		},
		{
			file: kernels + "nn/pool.metal",
			launch: "sum_pool_2d_f32 grid=8,5,8 threadgroup=4,2,2 input=float32[2,7,9,6] output=out:float32[2,4,5,6]" +
				" p=" + numbers("int32", 2, 7, 9, 6, 4, 5, 3, 3, 2, 2, 1, 1, 1, 1, 0, 1),
			want: fromTo("input", "output", func(x []float64) []float64 {
				return tabulate(2*4*5*6, func(i int) float64 {
					s, n := 0.0, 0.0
					pool(i, func(b, h, w, c int) { s, n = s+x[((b*7+h)*9+w)*6+c], n+1 })
					return s / n
				})
			}),
			tolerance: 1e-5,
		},
		{ // the threads beyond the output compute elements again
			file: kernels + "conv.metal",
			launch: "conv1d_f32_generic grid=128,4,2 threadgroup=64 input=float32[2,6,100] in_shape=int32[3]:2,6,100 in_strides=int32[3]:600,100,1" +
				" weights=float32[4,3,5] ker_params=int32[4]:2,2,3,5 ker_strides=int32[4]:30,15,5,1 bias=float32[4] bias_stride=int32:1" +
				" p=int32[1]:2 str=int32[1]:1 dil=int32[1]:1 output=out:float32[2,4,100] out_shape=int32[3]:2,4,100 out_strides=int32[3]:400,100,1",
			want: func(in arrays) arrays {
				return arrays{"output": tabulate(800, func(i int) float64 {
					n, co, x := i/400, i/100%4, i%100
					s := in["bias"][co]
					for ci := range 3 {
						for k := range 5 {
							if at := x + k - 2; at >= 0 && at < 100 {
								s += in["input"][n*600+(co/2*3+ci)*100+at] * in["weights"][co*15+ci*5+k]
							}
						}
					}
					return s
				})}
			},
			tolerance: 1e-5, findings: []sanitizer.FindingKind{sanitizer.FindingSameValueWrite},
		},
		{
			file: kernels + "matmul/basic/basic_mat_mul.metal",
			launch: "matmul::basic_matmul_f32 grid=96,6 threadgroup=32 lhs=float32[21,50] rhs=float32[50,11] output=out:float32[21,11]" +
				" m=int32:21 k=int32:50 n=int32:11 transpose_lhs=int32:0 transpose_rhs=int32:0",
			want: func(in arrays) arrays {
				return arrays{"output": mlxtest.MatMul(in["lhs"], in["rhs"], 21, 11, 50, false)}
			},
			tolerance: 1e-5,
		},
		{
			file:   kernels + "matmul/basic/basic_mat_mul.metal",
			launch: "matmul::basic_matvec_f32 grid=32,6 threadgroup=32 lhs=float32[21,50] rhs=float32[50] output=out:float32[21] m=int32:21 k=int32:50",
			want: func(in arrays) arrays {
				return arrays{"output": mlxtest.MatMul(in["lhs"], in["rhs"], 21, 1, 50, false)}
			},
			tolerance: 1e-5,
		},
		{
			file: kernels + "fft.metal", launch: "fft256_forward grid=384 threadgroup=128 in=float32[3,256,2] out=out:float32[3,256,2]",
			want: fromTo("in", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 512, func(r []float64) []float64 { return dft(r, -1) })
			}),
			tolerance: 1e-4,
		},
		{
			file: kernels + "fft.metal", launch: "fft512_inverse grid=512 threadgroup=256 in=float32[2,512,2] out=out:float32[2,512,2]",
			want: fromTo("in", "out", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 1024, func(r []float64) []float64 { return dft(r, 1) })
			}),
			tolerance: 1e-4,
		},
		{
			file: kernels + "fft.metal",
			launch: "stft256_forward grid=512,2 threadgroup=128 in=float32[2,600,2] win=float32[256]:uniform out=out:float32[2,4,256,2]" +
				" T=int32:600 frames=int32:4 stride=int32:100",
			want: func(in arrays) arrays {
				var out []float64
				for f := range 8 {
					begin := 2 * (f/4*600 + f%4*100)
					out = append(out, dft(tabulate(512, func(i int) float64 { return in["in"][begin+i] * in["win"][i/2] }), -1)...)
				}
				return arrays{"out": out}
			},
			tolerance: 1e-4,
		},
		{
			file: kernels + "gdn_recurrent.metal",
			launch: "causal_conv1d_update_f16 grid=70 threadgroup=64 input=float16[70] weight=float16[70,4] initial_state=float16[70,4]" +
				" output=out:float16[70] final_state=out:float16[70,4] channels=int32:70 kernel_width=int32:4",
			want: func(in arrays) arrays {
				state := tabulate(280, func(i int) float64 {
					if i%4 == 3 {
						return in["input"][i/4]
					}
					return in["initial_state"][i+1]
				})
				return arrays{"final_state": state, "output": tabulate(70, func(i int) float64 {
					return silu(dot(state[4*i:4*i+4], in["weight"][4*i:4*i+4]))
				})}
			},
			tolerance: 2e-3,
		},
	}...)
}

// truth returns 1 for true and 0 for false.
func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// pool calls visit for the elements of [2,7,9,6] in the window of element i of a pooled array [2,4,5,6].
func pool(i int, visit func(n, h, w, c int)) {
	n, h, w, c := i/120, i/30%4, i/6%5, i%6
	for y := 2*h - 1; y < 2*h+2; y++ {
		for x := 2*w - 1; x < 2*w+2; x++ {
			if y >= 0 && y < 7 && x >= 0 && x < 9 {
				visit(n, y, x, c)
			}
		}
	}
}
