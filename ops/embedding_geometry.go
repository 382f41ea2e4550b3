package ops

import "github.com/mlxgrad/mlxgrad/mlxc"

// embeddingTuning holds the tuning of the embedding kernels by backend. Their threads do not communicate. Neighboring
// threads share a row of the table; each processes a few vectors of the row.
var embeddingTuning = map[mlxc.Backend]struct {
	threads          int // per threadgroup
	vecBytes         int // of a vector
	vecsPerThread    int
	minThreadsPerRow int // fewer only if the row has fewer vectors
	maxRows          int // rows that the grid processes at a time
}{
	// 4096 floats of a row are half of a 32 KiB cache. Rows differ in cost. 512 threads, each with rows that are far
	// apart, balance the load.
	mlxc.BackendCPU: {threads: 1, vecBytes: 64, vecsPerThread: 256, minThreadsPerRow: 1, maxRows: 512},
	// Eight vectors of 16 bytes amortize the 4-byte id that each thread reads per row. In half precision their sums
	// are 64 floats; at about 128 registers per thread, a core's 208 KiB hold 400 threads, with 50 KiB of loads in
	// flight. Eight neighboring threads access a cache line.
	mlxc.BackendMetal: {threads: 256, vecBytes: 16, vecsPerThread: 8, minThreadsPerRow: 8, maxRows: 1 << 18},
	// On a multiprocessor, more threads put more loads in flight than more vectors per thread.
	mlxc.BackendCUDA: {threads: 256, vecBytes: 16, vecsPerThread: 2, minThreadsPerRow: 8, maxRows: 1 << 18},
}

// embeddingGeometry is the launch geometry of an embedding kernel.
type embeddingGeometry struct {
	grid, threads      int // threads of the grid and of a threadgroup
	vec, vecsPerThread int
	threadsPerRow      int
}

// embeddingGeometryFor returns the geometry for rows of `width` elements.
func embeddingGeometryFor(backend mlxc.Backend, dtype mlxc.DType, rows, width int) embeddingGeometry {
	t := embeddingTuning[backend]
	vec := t.vecBytes / dtype.Size()
	if backend == mlxc.BackendCPU {
		vec = t.vecBytes / mlxc.Float32.Size() // the dtype of the sums
	}
	vecs := ceilDiv(width, vec)
	threadsPerRow := max(ceilDiv(vecs, t.vecsPerThread), min(vecs, t.minThreadsPerRow))
	return embeddingGeometry{
		grid:          min(rows, t.maxRows) * threadsPerRow,
		threads:       t.threads,
		vec:           vec,
		vecsPerThread: t.vecsPerThread,
		threadsPerRow: threadsPerRow,
	}
}
