package corpus

import (
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/customkernels/launchspec"
	"github.com/mlxgrad/mlxgrad/customkernels/sanitizer"
	"github.com/mlxgrad/mlxgrad/internal/skip"
)

// A host is a kernel with a launch in which it is correct.
type host struct{ file, launch string }

const (
	nnOps = "tract/metal/src/kernels/nn/nn_ops.metal"
	norm  = "mistralrs/mistralrs-quant/src/metal_kernels/rmsnorm_residual.metal"
)

var (
	reduce = host{nnOps, "nn_ops::reduce_sum_nd3_f32 grid=384,1,2 threadgroup=128 init=0 input_b=float32[2,600,3]" +
		" output_b=out:float32[2,1,3]:expect=sum(k,0,600,input_b[i/3*1800+k*3+i%3]):within=1e-5" +
		" input_shape=uint64[3]:2,600,3 input_strides=uint64[3]:1800,3,1 output_strides=uint64[3]:3,3,1"}
	rms = host{nnOps, "nn_ops::rms_norm_nd3_f32 grid=768 threadgroup=128 input_b=float32[3,100,2] eps_b=float32[1]:0.00001" +
		" output_b=out:float32[3,100,2]:expect=input_b[i]/sqrt(sum(k,0,100,pow(input_b[i/200*200+k*2+i%2],2))/100+eps_b):within=1e-5" +
		" shape=uint64[3]:3,100,2 shmem_f32=threadgroup:32 strides=uint64[3]:200,2,1"}
	softmax3 = host{nnOps, "nn_ops::softmax_nd3_f32 grid=64,1,3 threadgroup=32 input_b=float32[3,100,2]" +
		" output_b=out:float32[3,100,2]:expect=exp(input_b[i])/sum(k,0,100,exp(input_b[i/200*200+k*2+i%2])):within=1e-5" +
		" shape=uint64[3]:3,100,2 strides=uint64[3]:200,2,1"}
	conv = host{"tract/metal/src/kernels/gdn_recurrent.metal", "causal_conv1d_update_f16 grid=128 threadgroup=64" +
		" input=float16[70] weight=float16[70,4] initial_state=float16[70,4] output=out:float16[70]" +
		" final_state=out:float16[70,4]:expect=where(i%4==3,input[i/4],initial_state[min(i+1,279)])" +
		" channels=int32:70 kernel_width=int32:4"}
	pooled = host{"tract/metal/src/kernels/nn/pool.metal", "max_pool_2d_f32 grid=8,5,8 threadgroup=4,2,2" +
		" input=float32[2,7,9,6] output=out:float32[2,4,5,6] p=int32[16]:2,7,9,6,4,5,3,3,2,2,1,1,1,1,0,0"}
	arange = host{"mlx/mlx/backend/metal/kernels/arange.metal", "arangefloat32 grid=300 threadgroup=128 start=float32:3" +
		" step=float32:0.5 out=out:float32[300]:expect=start+i*step"}
	residual = host{norm, "rmsnorm_residual_f32 grid=192 threadgroup=64 x=float32[3,203] residual=float32[3,203]" +
		" weight=float32[203] scale=float32[1] out=out:float32[3,203]:expect=" +
		"(x[i]*weight[i%203]/sqrt(sum(k,0,203,pow(x[i/203*203+k],2))/203+eps)+residual[i])*scale:within=1e-5" +
		" n_cols=uint32:203 eps=float32:0.00001 has_scale=uint32:1 shared=threadgroup:64"}
	quantized = host{"mlx/mlx/backend/metal/kernels/quantized.metal", "affine_qmv_fast_float_gs_64_b_4_batch_0 grid=64,4" +
		" threadgroup=32,2 w=uint32[16,64]:0..2147483647 scales=float32[16,8] biases=float32[16,8] x=float32[2,512]" +
		" y=out:float32[2,16] in_vec_size=int32:512 out_vec_size=int32:16 x_batch_ndims=int32:0 x_shape=int32[1]:0" +
		" x_strides=int64[1]:0 w_batch_ndims=int32:0 w_shape=int32[1]:0 w_strides=int64[1]:0 s_strides=int64[1]:0" +
		" b_strides=int64[1]:0"}
)

// A planted bug replaces text in a line of a host's file, or of an included file. The checker must report one finding
// of this kind at this line.
type planted struct {
	host
	in       string // the changed file; empty for the host's
	line     int
	from, to string
	kind     sanitizer.FindingKind
	at       int
}

const (
	barrier = "threadgroup_barrier(mem_flags::mem_threadgroup)"
	none    = "threadgroup_barrier(mem_flags::mem_none)"
)

var plantedBugs = []planted{
	{reduce, "", 159, "(device const F *)", "(constant F *)", sanitizer.FindingAddressSpace, 159},
	{reduce, "", 167, "IdxT(tgpig.x)", "IdxT(tgpig.x / 2)", sanitizer.FindingRace, 220},
	{reduce, "", 167, "output_strides[2]", "output_strides[1]", sanitizer.FindingOutOfBounds, 220},
	{reduce, "", 175, "* tpsg", "* 16", sanitizer.FindingWrongValue, 220},
	{reduce, "", 177, "auto partial_acc = Op::init", "float partial_acc", sanitizer.FindingUninitializedRead, 220},
	{reduce, "", 191, "i < reduce_dim", "i <= reduce_dim", sanitizer.FindingOutOfBounds, 192},
	{reduce, "", 205, "32", "2", sanitizer.FindingOutOfBounds, 208},
	{reduce, "", 205, "32", "32768", sanitizer.FindingLimit, 205},
	{reduce, "", 206, "op.simd_accumulate(partial_acc)", "partial_acc", sanitizer.FindingWrongValue, 220},
	{reduce, "", 207, "if (tiisg == 0)", "", sanitizer.FindingSameValueWrite, 208},
	{reduce, "", 210, barrier, "", sanitizer.FindingRace, 208},
	{reduce, "", 210, barrier, none, sanitizer.FindingFence, 208},
	{
		reduce, "", 208, "partials[sgitg] = sg_acc", "partials[sgitg] = partials[sgitg + 8] = sg_acc", sanitizer.FindingNeverRead, 208,
	},
	{reduce, "", 210, barrier, "if (sgitg == 0) " + barrier, sanitizer.FindingBarrierAfterExit, 210},
	{
		reduce, "", 212, "if (sgitg == 0)", "if (tiisg == 0) atomic_fetch_add_explicit((device atomic_float *)(output + out_idx)," +
			" partials[sgitg], memory_order_relaxed); if (sgitg == 32)", sanitizer.FindingOrderDependent, 149,
	},
	{reduce, "", 213, "+ tpsg - 1", "- 1", sanitizer.FindingDroppedElement, 208},
	{reduce, "", 216, "partials[i]", "partials[0]", sanitizer.FindingWrongValue, 208},
	{reduce, "", 219, "tiisg == 0", "tiisg < 2", sanitizer.FindingSameValueWrite, 220},

	{rms, "", 254, "ushort", "uint", sanitizer.FindingPositionType, 257},
	{rms, "", 258, "sgitg == 0", "sgitg == 9", sanitizer.FindingUninitializedRead, 285},
	{rms, "", 265, "dim = shape[1]", "dim = shape[1]; if (tpitg >= dim) return", sanitizer.FindingBarrierAfterExit, 277},
	{rms, "", 270, "partial_acc = 0.0", "partial_acc", sanitizer.FindingUninitializedRead, 294},
	{rms, "", 271, "i < dim", "i <= dim", sanitizer.FindingOutOfBounds, 272},
	{
		rms, "", 273, "partial_acc +=", "((device float *)input)[base_idx + i * strides[1]] = 0; partial_acc +=",
		sanitizer.FindingWriteToInput, 273,
	},
	{rms, "", 276, "partial_acc =", "if (tpitg < 100) partial_acc =", sanitizer.FindingDivergentReduction, 276},
	{rms, "", 277, barrier, "", sanitizer.FindingRace, 280},
	{rms, "", 277, barrier, none, sanitizer.FindingFence, 280},
	{rms, "", 277, barrier, "if (sgitg < 2) " + barrier, sanitizer.FindingDivergentBarrier, 277},
	{rms, "", 279, "tiisg == 0", "tiisg == 0 && tpitg < 96", sanitizer.FindingWrongValue, 294},
	{rms, "", 280, "[sgitg]", "[tiisg]", sanitizer.FindingRace, 280},
	{rms, "", 283, barrier, "", sanitizer.FindingRace, 280},
	{rms, "", 285, "[tiisg]", "[tiisg + 1]", sanitizer.FindingOutOfBounds, 285},
	{rms, "", 285, "shmem_f32[tiisg]", "partial_acc", sanitizer.FindingWrongValue, 280},
	{rms, "", 286, "simd_sum(partial_acc)", "simd_shuffle(partial_acc, tiisg + 1)", sanitizer.FindingShuffleInactive, 286},
	{rms, "", 286, "simd_sum(partial_acc)", "simd_broadcast(partial_acc, tiisg)", sanitizer.FindingDivergentArgument, 286},
	{rms, "", 292, "i = tpitg", "i = tpitg + 1", sanitizer.FindingUnwrittenOutput, 248},

	{softmax3, "", 428, "i < dim", "i <= dim", sanitizer.FindingOutOfBounds, 430},
	{softmax3, "", 431, "max(partial_max, el)", "max(partial_max, 0)", sanitizer.FindingAmbiguous, 431},
	{softmax3, "", 443, "output[idx]", "output[base_idx]", sanitizer.FindingRace, 443},
	{softmax3, "", 451, "output[idx]", "output[idx] + 0 * output[idx ^ 2]", sanitizer.FindingLockstep, 451},

	{conv, "", 59, "channel >=", "channel >", sanitizer.FindingOutOfBounds, 63},
	{conv, "", 60, "channel * kernel_width", "int(channel) * (1 << 30)", sanitizer.FindingOverflow, 60},
	{conv, "", 60, "kernel_width", "kernel_width + 0 * int(1u << (channel + 31))", sanitizer.FindingShift, 60},
	{
		conv, "", 61, "float sum", "float taps[3]; thread float *p = taps; for (int t = 0; t < kernel_width; ++t) p[t] = t;" +
			" float sum", sanitizer.FindingOutOfBounds, 61,
	},
	{
		conv, "", 61, "float sum", "simdgroup_float8x8 m(0.0f); simdgroup_multiply(m, m, m); float sum",
		sanitizer.FindingDivergentMatrix, 61,
	},
	{conv, "", 62, "kernel_width - 1", "kernel_width", sanitizer.FindingOutOfBounds, 63},
	{
		conv, "", 63, "initial_state[base + tap + 1]",
		"((device const half *)((device const char *)initial_state + 1))[base + tap]", sanitizer.FindingMisaligned, 63,
	},
	{conv, "", 68, "final_state[base + kernel_width - 1] = newest", "", sanitizer.FindingUnwrittenOutput, 50},

	{pooled, "", 42, "rest % p.oh", "rest % (p.oh - 4)", sanitizer.FindingCrash, 42},
	{pooled, "", 44, "c >= p.c", "c > p.c", sanitizer.FindingOutOfBounds, 66},
	{pooled, "", 53, "best = T(-INFINITY)", "best", sanitizer.FindingUninitializedRead, 70},
	{pooled, "", 61, "iw >= p.iw", "iw > p.iw", sanitizer.FindingOutOfBounds, 66},

	{arange, "mlx/mlx/backend/metal/kernels/arange.h", 8, "out[index]", "out[index + 1]", sanitizer.FindingOutOfBounds, 8},
	{
		arange, "mlx/mlx/backend/metal/kernels/arange.h", 8, "out[index]", "while (index < 1000) {} out[index]",
		sanitizer.FindingTimeout, 8,
	},
	{arange, "mlx/mlx/backend/metal/kernels/arange.h", 8, "out[index]", "out[index / 2]", sanitizer.FindingRace, 8},
	{arange, "mlx/mlx/backend/metal/kernels/arange.h", 8, "index * step", "(index + index / 299) * step", sanitizer.FindingWrongValue, 8},

	{residual, "", 20, "row_off + i", "row_off * 33554432 + i", sanitizer.FindingOverflow, 20},
	{residual, "", 24, barrier, "", sanitizer.FindingRace, 28},
	{residual, "", 26, "s > 0", "s > 1", sanitizer.FindingWrongValue, 39},
	{residual, "", 28, "tid + s]", "tid + s + 1]", sanitizer.FindingOutOfBounds, 28},
	{residual, "", 30, barrier, "", sanitizer.FindingRace, 28},
	{residual, "", 30, barrier, none, sanitizer.FindingFence, 28},
	{residual, "", 33, "shared[0]", "shared[n_cols]", sanitizer.FindingOutOfBounds, 33},
	{
		residual, "", 33, "const float inv_rms", "while (atomic_load_explicit((threadgroup atomic_uint *)shared," +
			" memory_order_relaxed) != 12345) {} const float inv_rms", sanitizer.FindingDeadlock, 33,
	},
	{
		residual, "", 34, "const float scale_v = has_scale ? float(scale[0])", none + "; shared[tid] = float(scale[0]);" +
			" simdgroup_barrier(mem_flags::mem_threadgroup); const float scale_v = has_scale ? shared[tid ^ 1]",
		sanitizer.FindingWriteAfterRead, 34,
	},

	{
		quantized, "mlx/mlx/backend/metal/kernels/quantized.h", 68, "x_thread[i + 3]", "x_thread[i + 4]",
		sanitizer.FindingOutOfBounds, 68,
	},
}

// overlay is a folder in which one file has another text.
type overlay struct {
	fs.FS
	name string
	text []byte
}

func (o overlay) Open(name string) (fs.File, error) {
	if name == o.name {
		return fstest.MapFS{name: {Data: o.text}}.Open(name)
	}
	return o.FS.Open(name)
}

// edited returns the folder of the corpus with the bug.
func (p planted) edited(t *testing.T, folder fs.FS) fs.FS {
	t.Helper()
	name := p.in
	if name == "" {
		name = p.file
	}
	text, err := fs.ReadFile(folder, name)
	require.NoError(t, err)
	lines := strings.SplitAfter(string(text), "\n")
	require.Contains(t, lines[p.line-1], p.from)
	lines[p.line-1] = strings.Replace(lines[p.line-1], p.from, p.to, 1)
	return overlay{folder, name, []byte(strings.Join(lines, ""))}
}

// check runs the launch of a host on the files of folder.
func (h host) check(t *testing.T, folder fs.FS, c sanitizer.Config) []sanitizer.Finding {
	t.Helper()
	repository, _, _ := strings.Cut(h.file, "/")
	lib, err := sanitizer.LoadNative(t.Context(), folder, h.file, sanitizer.NativeOptions{Include: []string{repository}})
	require.NoError(t, err)
	specs, err := launchspec.Parse([]byte("// launch: " + h.launch))
	require.NoError(t, err)
	kernel, err := lib.Kernel(specs[0].Kernel, specs[0].Options()...)
	require.NoError(t, err)
	launch, inputs, err := specs[0].Arguments(kernel, 1)
	require.NoError(t, err)
	report, err := kernel.Sanitize(t.Context(), launch, c, inputs...)
	require.NoError(t, err)
	return report.Findings
}

// The checker finds bugs that are planted in kernels of other projects: one finding for each, at the right line. It
// finds nothing in the kernels as they are, under the same launches.
func TestPlantedBugs(t *testing.T) {
	skip.Program(t, skip.GXX)
	skip.Program(t, skip.Clang)
	folder := os.DirFS(Folder(t))
	checked := map[host]bool{}
	for _, p := range plantedBugs {
		if !checked[p.host] {
			checked[p.host] = true
			kernel, _, _ := strings.Cut(p.launch, " ")
			t.Run(kernel, func(t *testing.T) {
				t.Parallel()
				require.Empty(t, p.check(t, folder, sanitizer.Config{}))
			})
		}
		t.Run(fmt.Sprintf("%s/%d", p.kind, p.line), func(t *testing.T) {
			t.Parallel()
			config := sanitizer.Config{}
			if p.kind == sanitizer.FindingTimeout {
				config.Timeout = 5 * time.Second
			}
			found := p.check(t, p.edited(t, folder), config)
			for _, f := range found {
				t.Log(f)
			}
			require.Len(t, found, 1)
			require.Equal(t, p.kind, found[0].Kind)
			places := append([]sanitizer.Site{found[0].Site, found[0].Other}, found[0].More...)
			require.True(t, slices.ContainsFunc(places, func(s sanitizer.Site) bool { return s.Line == p.at }), places)
		})
	}
}

// The planted bugs are of every kind of finding, except for the kind of textures: no kernel of the repositories has one.
// Package launchspec tests that kind.
func TestPlantedKinds(t *testing.T) {
	for _, kind := range sanitizer.FindingKinds() {
		if kind == sanitizer.FindingTextureBounds {
			continue
		}
		require.True(t, slices.ContainsFunc(plantedBugs, func(p planted) bool { return p.kind == kind }), kind)
	}
}
