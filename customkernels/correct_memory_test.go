package customkernels

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mlxgrad/mlxgrad/internal/mlxtest"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// addAtomics adds kernels with atomics whose results do not depend on the order of the threads.
func addAtomics(c *corpus) {
	for _, d := range mlxtest.FloatDTypes {
		c.addHistogram(d, 1111)
		c.addAtomicMax(d, 300)
	}
}

// addTables adds kernels with tables in constant memory, with indices, and with counter-based random numbers.
func addTables(c *corpus) {
	c.addFresnel(70)
	c.addMapPoints(45)
	for _, d := range mlxtest.FloatDTypes {
		c.addGather(d, mlxc.Int32)
	}
	c.addGather(mlxc.Float32, mlxc.Uint32)
	c.addPhilox(50)
}

func (c *corpus) addHistogram(d mlxc.DType, size int) {
	const classes = 64
	x, v := c.Uniform(d, -0.1, 1.1, size)
	c.add(namedLaunch{
		name:   named("histogram", d),
		kernel: c.kernel("histogram", ""),
		launch: Launch{
			Grid: [3]int{330}, Threadgroup: [3]int{96}, Template: template("T", d),
			Outputs: []mlxc.Output{output(mlxc.Uint32, classes)}, InitValue: initially(0),
		},
		inputs: inputs(arrays{x}, uints(size)),
		check: func(t testing.TB, out arrays) {
			want := make([]float64, classes)
			for _, e := range v {
				want[int(min(max(math.Floor(e*classes), 0), classes-1))]++
			}
			mlxtest.RequireNear(t, want, out[0], mlxtest.Bound{})
		},
	})
}

func (c *corpus) addAtomicMax(d mlxc.DType, size int) {
	const classes = 11
	x, v := c.Uniform(d, 0, 5, size)
	class := make([]uint32, size)
	want := make([]float32, classes)
	for i := range class {
		class[i] = uint32(c.Random.IntN(classes))
		want[class[i]] = max(want[class[i]], float32(v[i]))
	}
	c.add(namedLaunch{
		name:   named("atomic_max", d),
		kernel: c.kernel("atomic_max", ""),
		launch: Launch{
			Grid: [3]int{size}, Threadgroup: [3]int{64}, Template: template("T", d),
			Outputs: []mlxc.Output{output(mlxc.Uint32, classes)}, InitValue: initially(0),
		},
		inputs: arrays{x, mlxc.FromSlice(class)},
		check: func(t testing.TB, out arrays) {
			bits, err := mlxc.ToSlice[uint32](out[0])
			require.NoError(t, err)
			for i, b := range bits {
				require.Equal(t, want[i], math.Float32frombits(b))
			}
		},
	})
}

func (c *corpus) addFresnel(size int) {
	x, v := c.Uniform(mlxc.Float32, -3, 3, size)
	c.add(namedLaunch{
		name:   "fresnel",
		kernel: c.kernel("constant_table", "fresnel"),
		launch: Launch{
			Grid: [3]int{size}, Threadgroup: [3]int{32}, Outputs: []mlxc.Output{output(mlxc.Float32, size)},
		},
		inputs: arrays{x},
		check: func(t testing.TB, out arrays) {
			want := mlxtest.ByRow(v, 1, func(row []float64) []float64 {
				const panels = 4096 // the error of Simpson's rule is about (x/panels)⁴
				h := row[0] / panels
				sum := 0.0
				for i := range panels {
					a, m, b := float64(i)*h, (float64(i)+0.5)*h, (float64(i)+1)*h
					sum += (math.Cos(a*a) + 4*math.Cos(m*m) + math.Cos(b*b)) * h / 6
				}
				return []float64{sum}
			})
			// The sum has 80 terms. Their arguments are at most 9 and have several roundings.
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(mlxc.Float32, 80, 3))
		},
	})
}

func (c *corpus) addMapPoints(size int) {
	rows := [2][4]float32{{1.5, -0.5, 0.25, 9}, {0.75, 1, -0.5, 9}}
	lowest, limit := [2]float32{-2, -1}, float32(1.5)
	const repeat = 5
	words := make([]uint32, 12)
	for i := range 4 {
		words[i] = math.Float32bits(rows[0][i])
		words[4+i] = math.Float32bits(rows[1][i])
	}
	words[8], words[9] = math.Float32bits(lowest[0]), math.Float32bits(lowest[1])
	words[10], words[11] = math.Float32bits(limit), repeat
	x, v := c.Normal(mlxc.Float32, size, 2)
	c.add(namedLaunch{
		name:   "map_points",
		kernel: c.kernel("constant_table", "map_points"),
		launch: Launch{
			Grid: [3]int{size}, Threadgroup: [3]int{32}, Outputs: []mlxc.Output{output(mlxc.Float32, size, 2)},
		},
		inputs: arrays{x, mlxc.FromSlice(words)},
		check: func(t testing.TB, out arrays) {
			want := mlxtest.ByRow(v, 2, func(p []float64) []float64 {
				for range repeat {
					var q []float64
					for i, r := range rows {
						y := float64(r[0])*p[0] + float64(r[1])*p[1] + float64(r[2])
						q = append(q, min(max(y, float64(lowest[i])), float64(limit)))
					}
					p = q
				}
				return p
			})
			// Each of five iterations may double the error of the previous one.
			mlxtest.RequireNear(t, want, out[0], mlxtest.Rounded(mlxc.Float32, 4*32, 4))
		},
	})
}

func (c *corpus) addGather(d, indexType mlxc.DType) {
	const rows, width, size = 13, 37, 21
	table, v := c.Normal(d, rows, width)
	index := make([]float32, size)
	var want []float64
	for i := range index {
		at := c.Random.IntN(rows)
		want = append(want, v[at*width:(at+1)*width]...)
		index[i] = float32(at)
		if indexType == mlxc.Int32 && i%2 == 1 {
			index[i] -= rows
		}
	}
	c.add(namedLaunch{
		name:   named("gather", d, indexType),
		kernel: c.kernel("gather", ""),
		launch: Launch{
			Grid: [3]int{width, size}, Threadgroup: [3]int{32, 4},
			Template: template("T", d, "I", indexType), Outputs: []mlxc.Output{output(d, size, width)},
		},
		inputs: inputs(arrays{table, mlxc.FromSlice(index).AsType(indexType)}, uints(rows)),
		check: func(t testing.TB, out arrays) {
			mlxtest.RequireNear(t, want, out[0], mlxtest.Bound{})
		},
	})
}

// philox returns the reference result of Philox 4x32-10: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3".
func philox(counter [4]uint32, key [2]uint32) [4]uint32 {
	for range 10 {
		a, b := uint64(0xD2511F53)*uint64(counter[0]), uint64(0xCD9E8D57)*uint64(counter[2])
		counter = [4]uint32{uint32(b>>32) ^ counter[1] ^ key[0], uint32(b), uint32(a>>32) ^ counter[3] ^ key[1], uint32(a)}
		key[0] += 0x9E3779B9
		key[1] += 0xBB67AE85
	}
	return counter
}

func (c *corpus) addPhilox(size int) {
	key := [2]uint32{c.Random.Uint32(), c.Random.Uint32()}
	c.add(namedLaunch{
		name:   "philox",
		kernel: c.kernel("philox", ""),
		launch: Launch{
			Grid: [3]int{size}, Threadgroup: [3]int{32}, Outputs: []mlxc.Output{output(mlxc.Uint32, size, 4)},
		},
		inputs: arrays{mlxc.Scalar(key[0]), mlxc.Scalar(key[1])},
		check: func(t testing.TB, out arrays) {
			got, err := mlxc.ToSlice[uint32](out[0])
			require.NoError(t, err)
			// The authors' test vector for a counter and a key of zeros.
			require.Equal(t, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}, philox([4]uint32{}, [2]uint32{}))
			for i := range size {
				require.Equal(t, philox([4]uint32{uint32(i)}, key), [4]uint32(got[4*i:4*i+4]))
			}
		},
	})
}
