package corpus

import (
	"fmt"
	"math"
	"slices"

	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
)

// contiguous returns the sizes and the strides in bytes of a contiguous array of float32, innermost axis first, as
// members of ggml's structures.
func contiguous(n0, n1 int) []any {
	row := 4 * n0
	return []any{
		int32(n0), int32(n1), int32(1), int32(1),
		uint64(4), uint64(row), uint64(row * n1), uint64(row * n1),
	}
}

func ggmlCases() []launchCase {
	const file = "ggml/src/ggml-metal/ggml-metal.metal"
	var cases []launchCase
	for _, u := range []struct {
		op   int
		fill string
		f    func(float64) float64
	}{
		{10, "normal", func(x float64) float64 { return 2*x + 3 }},
		{12, "normal", func(x float64) float64 { return max(-0.5, min(x, 0.25)) }},
		{14, "0..9", math.Sqrt},
		{17, "1..9", math.Log},
		{102, "normal", sigmoid},
		{103, "normal", tanhGelu},
		{104, "normal", gelu},
		{106, "normal", silu},
		{107, "normal", func(x float64) float64 { return max(x, math.Expm1(min(x, 0))) }},
		{112, "normal", func(x float64) float64 { return x * max(0, min(1, (x+3)/6)) }},
		{115, "normal", func(x float64) float64 { return math.Log1p(math.Exp(x)) }},
		{120, "normal", math.Trunc},
	} {
		members := append(contiguous(101, 7), contiguous(101, 7)...)
		members = append(members, float32(0), float32(2), float32(3), float32(0), float32(-0.5), float32(0.25))
		cases = append(cases, launchCase{
			file: file,
			launch: fmt.Sprintf("kernel_unary_f32_f32 grid=896 threadgroup=64 FC_unary_op=%d FC_unary_cnt=false args=%s"+
				" src0=float32[7,101]:%s dst=out:float32[7,101]", u.op, structure(members...), u.fill),
			want: elementwise("src0", "dst", u.f), tolerance: 1e-5,
		})
	}
	for op, f := range []func(a, b float64) float64{
		func(a, b float64) float64 { return a + b }, func(a, b float64) float64 { return a - b },
		func(a, b float64) float64 { return a * b }, func(a, b float64) float64 { return a / b },
	} {
		members := append(append(contiguous(101, 7), contiguous(101, 1)...), contiguous(101, 7)...)
		members = append(members, uint64(0))
		for range 8 {
			members = append(members, uint64(0))
		}
		cases = append(cases, launchCase{ // the same row of the second operand for each row
			file: file,
			launch: fmt.Sprintf("kernel_bin_fuse_f32_f32_f32 grid=448 threadgroup=64 FC_bin_op=%d FC_bin_f=1 FC_bin_rb=false FC_bin_cb=false"+
				" args=%s src0=float32[7,101]:1..9 src1=float32[101]:1..9 dst=out:float32[7,101]", op, structure(members...)),
			want: func(in arrays) arrays {
				return arrays{"dst": tabulate(7*101, func(i int) float64 { return f(in["src0"][i], in["src1"][i%101]) })}
			},
			tolerance: 1e-6,
		})
	}
	for name, f := range map[string]func([]float64, float64) []float64{"norm": layerNorm, "rms_norm": rmsNorm} {
		members := []any{int32(101), int32(101), uint64(404), uint64(2828), uint64(2828), float32(1e-5)}
		for _, rows := range []int32{7, 1, 1, 1, 1, 1, 1, 1, 1} {
			members = append(members, rows)
		}
		for range 9 {
			members = append(members, uint64(0))
		}
		members[len(members)-9] = uint64(404)
		cases = append(cases, launchCase{
			file: file,
			launch: "kernel_" + name + "_mul_add_f32 grid=448 threadgroup=64 args=" + structure(members...) + " src0=float32[7,101]" +
				" src1_0=float32[101] src1_1=float32[101] dst=out:float32[7,101] shmem_f32=threadgroup:32",
			want: func(in arrays) arrays {
				y := mlxtest.ByRow(in["src0"], 101, func(r []float64) []float64 { return f(r, 1e-5) })
				return arrays{"dst": tabulate(len(y), func(i int) float64 { return y[i]*in["src1_0"][i%101] + in["src1_1"][i%101] })}
			},
			tolerance: 1e-5,
		})
	}
	softMax := structure(int32(101), int32(7), int32(2), uint64(404), uint64(2828), uint64(5656), int32(7), int32(1), int32(1),
		uint64(404), uint64(0), uint64(0), uint64(404), uint64(2828), uint64(5656), float32(0.5), float32(0), float32(0), float32(0), int32(0))
	multiply := func(rowBytes, n, m int) string {
		return structure(int32(n), int32(m), int32(1), uint64(18), uint64(rowBytes), uint64(rowBytes*m), uint64(rowBytes*m),
			int32(n), int32(2), int32(1), uint64(4), uint64(4*n), uint64(8*n), uint64(8*n), int32(m), int32(2), int32(4), int16(1), int16(1))
	}
	return append(cases, []launchCase{
		{
			file: file, launch: "kernel_soft_max_f32 grid=448,2 threadgroup=64 args=" + softMax + " src0=float32[2,7,101] src1=float32[7,101]" +
				" src2=float32[2] dst=out:float32[2,7,101] buf=threadgroup:32",
			want: func(in arrays) arrays { // src2 holds an additional logit of each head
				var out []float64
				for i := range 14 {
					x := tabulate(102, func(j int) float64 {
						if j == 101 {
							return in["src2"][i/7]
						}
						return in["src0"][i*101+j]/2 + in["src1"][i%7*101+j]
					})
					out = append(out, mlxtest.Softmax(x)[:101]...)
				}
				return arrays{"dst": out}
			},
			tolerance: 1e-5, findings: []sanitizer.FindingKind{sanitizer.FindingWriteAfterRead},
		},
		{
			file: file, launch: "kernel_sum_rows_f32_f32 grid=448 threadgroup=64 FC_sum_rows_op=11 args=" + sumRows() +
				" src0=float32[7,101] dst=out:float32[7] shmem=threadgroup:128",
			want: fromTo("src0", "dst", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 101, func(r []float64) []float64 { return []float64{mean(r)} })
			}),
			tolerance: 1e-5,
		},
		{
			file: file, launch: "kernel_argmax_f32 grid=448 threadgroup=64 args=" + structure(int64(101), uint64(404)) +
				" src0=float32[7,101] dst=out:int32[7] shmem=threadgroup:256",
			want: fromTo("src0", "dst", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 101, func(r []float64) []float64 { return []float64{float64(slices.Index(r, slices.Max(r)))} })
			}),
			findings: []sanitizer.FindingKind{sanitizer.FindingSameValueWrite},
		},
		{
			file: file, launch: "kernel_swiglu_f32 grid=448 threadgroup=64 args=" +
				structure(int32(202), uint64(808), int32(202), uint64(808), int32(101), uint64(404), int32(0), int32(101), float32(0), float32(0)) +
				" src0=float32[7,202] src1=float32[7,202] dst=out:float32[7,101]",
			want: func(in arrays) arrays {
				return arrays{"dst": tabulate(7*101, func(i int) float64 {
					at := i/101*202 + i%101
					return silu(in["src0"][at]) * in["src1"][at+101]
				})}
			},
			tolerance: 1e-5,
		},
		groupNorm(64, sanitizer.FindingRace), // the host uses 32 threads
		groupNorm(32),
		{
			file: file, launch: "kernel_argsort_f32_i32_asc grid=896 threadgroup=128 args=" +
				structure(int32(101), int32(7), int32(1), int32(1), uint64(4), uint64(404), uint64(2828), uint64(2828),
					int32(101), int32(7), int32(1), int32(1), int32(101)) +
				" src0=float32[7,101] dst=out:int32[7,101] shmem_i32=threadgroup:128",
			want: fromTo("src0", "dst", func(x []float64) []float64 {
				return mlxtest.ByRow(x, 101, func(r []float64) []float64 {
					order := tabulate(101, func(i int) float64 { return float64(i) })
					slices.SortFunc(order, func(a, b float64) int { return int(sign(r[int(a)] - r[int(b)])) })
					return order
				})
			}),
		},
		{
			file: file, launch: "kernel_arange_f32 grid=64 threadgroup=64 args=" + structure(int64(101), float32(3), float32(0.5)) +
				" dst=out:float32[101]",
			want: func(arrays) arrays {
				return arrays{"dst": tabulate(101, func(i int) float64 { return 3 + float64(i)/2 })}
			},
		},
		{
			file: file, launch: "kernel_get_rows_q4_0 grid=320 threadgroup=64 args=" +
				structure(int32(4), int32(64), uint64(36), uint64(360), uint64(360), int32(5), uint64(4), uint64(20), uint64(20),
					uint64(256), uint64(1280), uint64(1280)) + " src0=uint16[10,2,9]:0..14335 src1=int32[5]:0..9 dst=out:float32[5,64]",
			want: func(in arrays) arrays {
				w := q4(in["src0"])
				return arrays{"dst": tabulate(320, func(i int) float64 { return w[int(in["src1"][i/64])*64+i%64] })}
			},
			tolerance: 1e-5,
		},
		{
			file: file, launch: "kernel_mul_mv_q4_0_f32 grid=64,4 threadgroup=32,2 FC_mul_mv_nsg=2 FC_mul_mv_ne12=1 FC_mul_mv_r2=1 FC_mul_mv_r3=1 args=" + multiply(144, 256, 16) +
				" src0=uint16[16,8,9]:0..14335 src1=float32[2,256] dst=out:float32[2,16] shmem=threadgroup:512",
			want:      func(in arrays) arrays { return arrays{"dst": products(q4(in["src0"]), in["src1"], 256)} },
			tolerance: 1e-3,
		},
		{
			file: file, launch: "kernel_mul_mv_q8_0_f32 grid=224,8 threadgroup=32,4 FC_mul_mv_nsg=4 FC_mul_mv_ne12=1 FC_mul_mv_r2=1 FC_mul_mv_r3=1 args=" + multiply(272, 256, 14) +
				" src0=uint16[14,8,17]:0..14335 src1=float32[2,256] dst=out:float32[2,14] shmem=threadgroup:512",
			want:      func(in arrays) arrays { return arrays{"dst": products(q8(in["src0"]), in["src1"], 256)} },
			tolerance: 1e-3,
		},
		{
			file: file, launch: "kernel_rope_neox_f32 grid=24,7 threadgroup=8 FC_rope_is_imrope=false FC_rope_is_back=false args=" + rope() +
				" src0=float32[7,3,40] src1=int32[7]:iota src2=float32[1] dst=out:float32[7,3,40]",
			want: fromTo("src0", "dst", func(x []float64) []float64 {
				return tabulate(len(x), func(i int) float64 {
					at := i % 40
					if at >= 32 {
						return x[i]
					}
					s, c := math.Sincos(float64(i/120) * math.Pow(10000, -float64(at%16)/16))
					if at < 16 {
						return x[i]*c - x[i+16]*s
					}
					return x[i-16]*s + x[i]*c
				})
			}),
			tolerance: 1e-4,
		},
		{
			file: file, launch: "kernel_pool_2d_max_f32 grid=128 threadgroup=64 args=" +
				structure(int32(3), int32(3), int32(2), int32(2), int32(1), int32(1), int64(7), int64(9), int64(4), int64(5), int64(120)) +
				" src0=float32[6,7,9] dst=out:float32[6,4,5]",
			want: fromTo("src0", "dst", func(x []float64) []float64 {
				return tabulate(120, func(i int) float64 {
					largest := math.Inf(-1)
					pool(i%20*6, func(_, h, w, _ int) { largest = max(largest, x[i/20*63+h*9+w]) })
					return largest
				})
			}),
		},
	}...)
}

func sumRows() string {
	return structure(int64(101), int64(7), int64(1), int64(1), uint64(4), uint64(404), uint64(2828), uint64(2828),
		int64(1), int64(7), int64(1), int64(1), uint64(4), uint64(4), uint64(28), uint64(28))
}

// rope returns arguments that rotate 32 of 40 elements, for 3 heads and 7 positions.
func rope() string {
	shape := []any{
		int32(40), int32(3), int32(7), int32(1), uint64(4), uint64(160), uint64(480), uint64(3360),
		int32(40), int32(3), int32(7), int32(1), uint64(4), uint64(160), uint64(480), uint64(3360),
	}
	return structure(append(shape, int32(0), int32(32), int32(0), int32(2048), float32(10000), float32(1), float32(0), float32(1),
		float32(32), float32(1), int32(0), int32(0), int32(0), int32(0), false, false)...)
}

// groupNorm returns a launch with groups of [5,11] and [4,11] elements.
func groupNorm(threads int, findings ...sanitizer.FindingKind) launchCase {
	return launchCase{
		file: "ggml/src/ggml-metal/ggml-metal.metal", launch: fmt.Sprintf("kernel_group_norm_f32 grid=%d threadgroup=%d args=%s"+
			" src0=float32[9,11] dst=out:float32[9,11] buf=threadgroup:32", 2*threads, threads,
			structure(int64(11), int64(1), int64(9), uint64(4), uint64(44), uint64(44), int32(2), float32(1e-5))),
		want: fromTo("src0", "dst", func(x []float64) []float64 {
			return append(layerNorm(x[:55], 1e-5), layerNorm(x[55:], 1e-5)...)
		}),
		tolerance: 1e-5, wrong: true, findings: findings,
	}
}
