package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// embeddingBackward returns the gradient of a table of `vocabulary` rows.
func embeddingBackward(on target, dy, ids *mlxc.Array, vocabulary int) *mlxc.Array {
	if dy.Size() == 0 || vocabulary == 0 {
		return mlxc.Zeros(dy.DType(), vocabulary, dy.Dim(-1))
	}
	keys := sortedTokens(on, ids, vocabulary)
	defer keys.Free()
	return sumRuns(on, dy, keys, vocabulary)
}

// sortedTokens returns the tokens sorted by id and then by position, as uint64 keys id·2³² + token in ascending order.
// Ids out of range count as the id `vocabulary`. All keys are different, so the order does not depend on the stability
// of MLX's sort.
func sortedTokens(on target, ids *mlxc.Array, vocabulary int) *mlxc.Array {
	tokens := ids.Size()
	unsigned := unsignedIDs(ids)
	defer unsigned.Free()
	n := uint32Args(tokens, vocabulary)
	perToken := mlxc.Output{Shape: []int{tokens}, DType: mlxc.Uint64}
	if on.backend == mlxc.BackendCPU && vocabulary <= 8*tokens {
		// A counting sort takes time proportional to tokens + vocabulary. In one thread it is many times faster than
		// MLX's sort, which has one thread too.
		zero := float32(0) // the counts start at zero
		sorted := on.launch(embeddingKernels.kernel("embedding_sorted_keys"), customkernels.Launch{
			Grid:        [3]int{1},
			Threadgroup: [3]int{1},
			Outputs:     []mlxc.Output{perToken, {Shape: []int{vocabulary + 1}, DType: mlxc.Uint32}},
			InitValue:   &zero,
		}, unsigned, n[0], n[1])
		sorted[1].Free()
		return sorted[0]
	}
	grid, threads := elementGrid(on.backend, tokens)
	keys := on.launch(embeddingKernels.kernel("embedding_keys"), customkernels.Launch{
		Grid:        [3]int{grid},
		Threadgroup: [3]int{threads},
		Outputs:     []mlxc.Output{perToken},
	}, unsigned, n[0], n[1])[0]
	defer keys.Free()
	return keys.Sort(0)
}

// embeddingSumTemplate holds the template parameters of the kernels that add up rows.
type embeddingSumTemplate struct {
	embeddingTemplate
	vecsPerThread int
}

func (t embeddingSumTemplate) args() []mlxc.TemplateArg {
	return append(t.embeddingTemplate.args(), mlxc.TemplateArg{Name: "VECS_PER_THREAD", Value: t.vecsPerThread})
}

// sumRuns returns the sums of the rows of dy by slot: row i of the result is the sum over the tokens t with a key
// i·2³² + t. keys is in ascending order. Keys of slots that are not below `slots` are ignored.
func sumRuns(on target, dy, keys *mlxc.Array, slots int) *mlxc.Array {
	tokens, width := keys.Size(), dy.Dim(-1)
	segment := segmentTokens(tokens)
	segments := tokens / segment
	bySlot := embeddingGeometryFor(on.backend, dy.DType(), slots, width)
	bySegment := embeddingGeometryFor(on.backend, dy.DType(), segments, width)
	n := uint32Args(tokens, slots, segment, segments, width, bySlot.threadsPerRow)
	tokenCount, slotCount, segmentLength, segmentCount, widthCount, threadCount := n[0], n[1], n[2], n[3], n[4], n[5]
	template := embeddingSumTemplate{embeddingTemplate{dy.DType(), bySlot.vec}, bySlot.vecsPerThread}.args()

	grid, threads := elementGrid(on.backend, tokens)
	zero := float32(0) // begins and ends of slots without tokens
	perToken := mlxc.Output{Shape: []int{tokens}, DType: mlxc.Uint32}
	perSlot := mlxc.Output{Shape: []int{slots}, DType: mlxc.Uint32}
	runs := on.launch(embeddingKernels.kernel("embedding_runs"), customkernels.Launch{
		Grid:        [3]int{grid},
		Threadgroup: [3]int{threads},
		Outputs:     []mlxc.Output{perToken, perSlot, perSlot},
		InitValue:   &zero,
	}, keys, tokenCount, slotCount)
	defer freeAll(runs)
	order, begins, ends := runs[0], runs[1], runs[2]

	partial := mlxc.Zeros(mlxc.Float32, 1) // not read if there are no segments
	if segments > 0 {
		partial.Free()
		partial = on.launch(embeddingKernels.kernel("embedding_backward_partial"), customkernels.Launch{
			Grid:        [3]int{bySegment.grid},
			Threadgroup: [3]int{bySegment.threads},
			Template:    template,
			Outputs:     []mlxc.Output{{Shape: []int{segments, width}, DType: mlxc.Float32}},
			Undefined:   []string{"partial"}, // rows of segments with several slots are not written
		}, dy, keys, order, slotCount, segmentLength, segmentCount, widthCount, threadCount)[0]
	}
	defer partial.Free()
	return on.launch(embeddingKernels.kernel("embedding_backward"), customkernels.Launch{
		Grid:        [3]int{bySlot.grid},
		Threadgroup: [3]int{bySlot.threads},
		Template:    template,
		Outputs:     []mlxc.Output{{Shape: []int{slots, width}, DType: dy.DType()}},
	}, dy, order, begins, ends, partial, slotCount, segmentLength, widthCount, threadCount)[0]
}

// segmentTokens returns the number of consecutive tokens in a segment. For one slot a thread adds at most
// tokens/segment sums of segments and almost 2·segment single tokens. Their number is smallest for segments of about
// √tokens. From 128 tokens on, writing and reading the segment's sum (two floats per column) is at most a thirtieth of
// the traffic of its rows in half precision.
func segmentTokens(tokens int) int {
	return max(128, int(math.Sqrt(float64(tokens))))
}
