package customkernels

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/long"
	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// renameNamespace renames mlxg in a header, because the host executor has a namespace of that name.
func renameNamespace(text []byte) []byte {
	text = bytes.ReplaceAll(text, []byte("namespace mlxg "), []byte("namespace mma "))
	text = bytes.ReplaceAll(text, []byte("mlxg::"), []byte("mma::"))
	return bytes.ReplaceAll(text, []byte("mma::line_writer"), []byte("mlxg::line_writer")) // of the host executor
}

// attentionLibrary returns the kernels of all attention shaders. With onDevice they use the CUDA executor's tiles, whose
// instructions testdata/mma emulates, and DefaultProducts are in TF32.
func attentionLibrary(t *testing.T, onDevice bool, products FloatProducts) *Library {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(Shaders(), "*")
	require.NoError(t, err)
	for _, name := range names {
		text, err := fs.ReadFile(Shaders(), name)
		require.NoError(t, err)
		files[name] = &fstest.MapFile{Data: renameNamespace(text)}
	}
	// The functions of these macros are in the host executor's namespace.
	text := "#undef MLXG_VECTOR_CONVERSIONS\n#undef MLXG_THREAD_PRODUCTS\n#undef MLXG_TILE_EXPONENTIALS\n" +
		"#include <metal_stdlib>\nusing namespace metal;\n"
	if onDevice {
		// An include of a name that the host's library has would be taken for a system header.
		rename := strings.NewReplacer(
			`"metal_mma.h"`, `"mma.h"`, `"metal_wgmma.h"`, `"wgmma.h"`, `"metal_panels.h"`, `"device_panels.h"`,
			`"metal_wgmma_tf32.h"`, `"wgmma_tf32.h"`, `"metal_tiles.h"`, `"device_tiles.h"`,
			`"metal_warpgroup.h"`, `"device_warpgroup.h"`)
		for name, path := range map[string]string{
			"mma.h":              "testdata/mma/mma.h",
			"wgmma.h":            "testdata/mma/wgmma.h",
			"device_panels.h":    "internal/metalstd/cuda/metal_panels.h",
			"device_tiles.h":     "internal/metalstd/cuda/metal_tiles.h",
			"device_warpgroup.h": "internal/metalstd/cuda/metal_warpgroup.h",
			"wgmma_tf32.h":       "testdata/mma/wgmma_tf32.h",
			"device_floats.h":    "internal/metalstd/cuda/metal_warpgroup_tf32.h",
		} {
			header, err := os.ReadFile(path)
			require.NoError(t, err)
			files[name] = &fstest.MapFile{Data: []byte(rename.Replace(string(renameNamespace(header))))}
		}
		bit := map[bool]int{true: 1}
		text += fmt.Sprintf("#define MLXG_TF32 %d\n#define MLXG_FMA %d\n#define MLXG_FULL_SPLIT %d\n#define MLXG_DYNAMIC_MEMORY 0\n",
			bit[products == DefaultProducts], bit[products == FMAProducts], bit[products == FullSplitProducts])
		for _, header := range []string{"tiles", "warpgroup", "floats"} {
			text += fmt.Sprintf("#include \"device_%s.h\"\n", header)
		}
	}
	for _, kernels := range []string{"forward", "backward", "mask"} {
		text += fmt.Sprintf("#include \"attention_%s.metal\"\n", kernels)
	}
	files["attention.metal"] = &fstest.MapFile{Data: []byte(text)}
	lib, err := Load(files, "attention.metal")
	require.NoError(t, err)
	return lib
}

// The CUDA executor's tiles give the results of simdgroup_matrix up to rounding: for whole tiles and at their ends,
// with two simdgroups that share several panels, and also their rows, with and without masks, and for warpgroups.
func TestTilesOfCUDA(t *testing.T) {
	plain := attentionLibrary(t, false, DefaultProducts)
	const batches, heads, keyHeads = 1, 2, 1
	for i, c := range []struct {
		dtype     mlxc.DType
		products  FloatProducts // with TF32 enabled
		lanes     int
		queries   int
		keys      int
		masked    bool
		paired    bool
		columns   int // BLOCK_N
		d, dv     int
		tolerance float64 // relative to the largest element
	}{
		{mlxc.Float16, DefaultProducts, 32, 37, 53, false, false, 16, 24, 40, 4e-3},
		{mlxc.Float16, DefaultProducts, 32, 37, 64, true, false, 32, 16, 16, 4e-3},
		{mlxc.Float16, DefaultProducts, 32, 37, 53, true, true, 16, 48, 32, 4e-3},
		{mlxc.BFloat16, DefaultProducts, 32, 37, 53, true, false, 64, 32, 16, 3e-2},
		{mlxc.Float32, DefaultProducts, 32, 37, 53, false, false, 16, 16, 24, 4e-3},
		{mlxc.Float32, DefaultProducts, 32, 37, 53, false, true, 16, 48, 64, 4e-3},
		{mlxc.Float32, SplitProducts, 32, 37, 53, false, false, 16, 40, 24, 1e-6},
		{mlxc.Float32, FullSplitProducts, 32, 37, 53, false, true, 16, 80, 48, 1e-6},
		{mlxc.Float32, SplitProducts, 32, 37, 53, false, false, 16, 16, 8, 1e-6},
		{mlxc.Float32, FMAProducts, 32, 37, 53, false, false, 16, 40, 24, 1e-6},
		{mlxc.Float32, FMAProducts, 32, 37, 53, false, true, 16, 80, 48, 1e-6},
		{mlxc.Float16, DefaultProducts, 128, 70, 83, false, false, 32, 64, 64, 4e-3},
		{mlxc.BFloat16, DefaultProducts, 128, 70, 83, true, false, 16, 64, 64, 3e-2},
		{mlxc.BFloat16, DefaultProducts, 128, 70, 83, true, false, 16, 64, 128, 3e-2},
		{mlxc.Float16, DefaultProducts, 128, 64, 64, false, false, 16, 128, 64, 4e-3},
		{mlxc.BFloat16, DefaultProducts, 128, 70, 83, true, true, 16, 128, 128, 3e-2},
		{mlxc.Float32, DefaultProducts, 128, 133, 83, false, false, 32, 32, 32, 4e-3},
		{mlxc.Float32, DefaultProducts, 128, 133, 83, true, false, 32, 64, 32, 4e-3},
		{mlxc.Float16, DefaultProducts, 128, 70, 83, false, false, 16, 96, 80, 4e-3},
		{mlxc.BFloat16, DefaultProducts, 128, 70, 83, true, false, 16, 72, 72, 3e-2},
		{mlxc.Float16, DefaultProducts, 128, 64, 64, false, false, 16, 192, 96, 4e-3},
		{mlxc.BFloat16, DefaultProducts, 128, 70, 83, true, true, 16, 192, 128, 3e-2},
		{mlxc.Float16, DefaultProducts, 128, 70, 83, false, true, 16, 160, 128, 4e-3},
		{mlxc.BFloat16, DefaultProducts, 128, 70, 83, true, true, 16, 144, 128, 3e-2},
		{mlxc.BFloat16, DefaultProducts, 128, 20, 83, false, false, 32, 64, 64, 3e-2}, // one panel for each head of queries
	} {
		// A sample has each dtype, each kind of multiplication, and each option with and without.
		if !long.Full() && !slices.Contains([]int{1, 3, 5, 7, 8, 9, 12, 15, 16, 19, 24}, i) {
			continue
		}
		t.Run(fmt.Sprintf("%v/%v/%d/%d/%dx%d", c.dtype, c.products, c.lanes, c.keys, c.d, c.dv), func(t *testing.T) {
			dtype, queries, keys, d, dv := c.dtype, c.queries, c.keys, c.d, c.dv
			emulated := attentionLibrary(t, true, c.products)
			first := i % 2 // in odd cases, arrays are unaligned views
			random := func(seed uint64, d mlxc.DType, shape ...int) *mlxc.Array {
				n := first + mlxc.Zeros(d, shape...).Size()
				return mlxc.RandomNormal(mlxc.RandomKey(seed), d, n).Slice([]int{first}, []int{n}, nil).Reshape(shape...)
			}
			q, key := random(1, dtype, batches, heads, queries, d), random(2, dtype, batches, keyHeads, keys, d)
			v, dOut := random(3, dtype, batches, keyHeads, keys, dv), random(4, dtype, batches, heads, queries, dv)
			starts := mlxc.Zeros(mlxc.Int32, 8)
			maskShape := make([]int32, 4)
			if c.masked {
				maskShape = []int32{1, heads, int32(queries), int32(keys)}
			}
			lengths := []int32{heads, keyHeads, int32(queries), int32(keys), 1 << 29, 0, 0}
			sizes := mlxc.FromSlice(slices.Concat(lengths, maskShape, []int32{batches}), 12)
			scalars := mlxc.FromSlice([]float32{float32(1 / math.Sqrt(float64(d))), 0, 0, 0, 0, 0, 0, 0}, 8)
			mask, keyMask := mlxc.Zeros(mlxc.Uint32, 8), mlxc.Zeros(mlxc.Uint32, 8)
			if c.masked {
				kernel, err := plain.Kernel("attention_mask_bits")
				require.NoError(t, err)
				words := func(n int) int { return (n + 31) / 32 }
				bits := kernel.Launch(Launch{
					Grid: [3]int{words(queries) * words(keys) * 32, heads, 1}, Threadgroup: [3]int{32, 1, 1},
					Template: template("LANES", 32),
					Outputs: []mlxc.Output{
						output(mlxc.Uint32, heads, queries, words(keys)),
						output(mlxc.Uint32, heads, keys, words(queries)),
					},
				}, random(6, mlxc.Float32, heads, queries, keys).Greater(mlxc.Scalar(float32(0))), sizes)
				mask, keyMask = bits[0], bits[1]
			}
			sinks := mlxc.Full(mlxc.Float32, mlxc.Scalar(float32(math.Inf(-1))), heads)
			// m, 1 / l, delta and log₂ of exp(m)·l of each row
			each := func(value float32) *mlxc.Array {
				return mlxc.Full(mlxc.Float32, mlxc.Scalar(value), batches, heads, queries, 1)
			}
			statistics := mlxc.Concatenate(-1, each(1), each(10))
			delta := random(5, mlxc.Float32, batches, heads, queries, 1)
			rows := mlxc.Concatenate(-1, each(1), each(0.1), delta, each(float32(math.Log2E+math.Log2(10))))
			compared := 0
			for _, k := range []struct {
				kernel  string
				rows    int
				heads   int
				inputs  []*mlxc.Array
				outputs []mlxc.Output
			}{
				{
					"attention_forward", queries, heads,
					arrays{q, key, v, mask, sinks, starts, starts, sizes, scalars},
					[]mlxc.Output{
						output(dtype, batches, heads, queries, dv), output(mlxc.Float32, batches, heads, queries, 2),
					},
				},
				{
					"attention_delta", queries, heads,
					arrays{q, key, v, mask, dOut, statistics, each(0.5), starts, starts, sizes, scalars},
					[]mlxc.Output{output(mlxc.Float32, batches, heads, queries, 4)},
				},
				{
					"attention_dq", queries, heads,
					arrays{q, key, v, mask, dOut, rows, starts, starts, sizes, scalars},
					[]mlxc.Output{output(dtype, batches, heads, queries, d)},
				},
				{
					"attention_dkv", keys, keyHeads,
					arrays{q, key, v, keyMask, dOut, rows, starts, starts, sizes, scalars},
					[]mlxc.Output{
						output(dtype, batches, keyHeads, keys, d), output(dtype, batches, keyHeads, keys, dv),
					},
				},
			} {
				run := func(lib *Library, lanes, simdgroups, tileRows, columns int) [][]float32 {
					groupRows := tileRows * simdgroups
					if c.paired {
						groupRows /= 2
					}
					kernel, err := lib.Kernel(k.kernel)
					require.NoError(t, err)
					var results [][]float32
					arguments := template(
						"T", dtype, "MASK_T", mlxc.Uint32, "CAPPED", false, "MASKED", c.masked, "PAIRED", c.paired,
						"LANES", lanes, "SIMDGROUPS", simdgroups, "BLOCK_M", tileRows, "BLOCK_N", columns,
						"HEAD_DIM", d, "VALUE_DIM", dv)
					if k.kernel == "attention_delta" {
						arguments = append(arguments, template("HAS_DLSE", true)...)
					}
					for _, a := range kernel.Launch(Launch{
						Grid:        [3]int{(k.rows + groupRows - 1) / groupRows * lanes * simdgroups, k.heads, batches},
						Threadgroup: [3]int{lanes * simdgroups, 1, 1},
						Template:    arguments,
						Outputs:     k.outputs,
					}, k.inputs...) {
						results = append(results, mlxtest.Floats(t, a.AsType(mlxc.Float32)))
					}
					if k.kernel == "attention_forward" {
						// m need not be the maximum, but m + ln l does not depend on it.
						for i := 0; i < len(results[1]); i += 2 {
							results[1][i] += float32(math.Log(float64(results[1][i+1])))
							results[1][i+1] = results[1][i]
						}
					}
					if k.kernel == "attention_delta" {
						// The other RowStats have other units for powers of 2 than for powers of e.
						for i := range results[0] {
							if i%4 != 2 {
								results[0][i] = 0
							}
						}
					}
					return results
				}
				warpgroups := 1
				if dtype == mlxc.Float32 && k.kernel == "attention_forward" {
					warpgroups = 2
				}
				// Wider rows take more threadgroup memory than a CPU has. A warpgroup's 16-bit columns are padded.
				widest := map[string]int{"attention_forward": 512, "attention_delta": 512, "attention_dq": 512}
				width, parts := d+dv, 1
				if dtype == mlxc.Float32 {
					widest["attention_forward"], widest["attention_delta"], widest["attention_dq"] = 256, 64, 64
				} else {
					if c.paired {
						parts = 2
						widest["attention_forward"], widest["attention_delta"], widest["attention_dq"] = 384, 256, 256
					}
					width = ((d/parts+63)/64 + (dv/parts+63)/64) * 64 * parts
					widest["attention_dkv"] = 16 * 128 / c.columns
				}
				if c.lanes == 128 && width > widest[k.kernel] {
					continue
				}
				compared++
				want := run(plain, 32, 2, 16, min(c.columns, 32))
				var got [][]float32
				if c.lanes == 32 {
					got = run(emulated, 32, 2, 16, c.columns)
				} else if c.paired {
					got = run(emulated, c.lanes, 2, 64, c.columns)
				} else {
					got = run(emulated, c.lanes, warpgroups, 64, c.columns)
				}
				for i := range want {
					largest := 0.0
					for _, x := range want[i] {
						largest = max(largest, math.Abs(float64(x)))
					}
					require.Positive(t, largest)
					require.InDeltaSlice(t, want[i], got[i], c.tolerance*largest, "%s, output %d", k.kernel, i)
				}
			}
			require.Positive(t, compared)
		})
	}
}
