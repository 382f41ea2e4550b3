package ops

import (
	"math"

	"github.com/mlxgrad/mlxgrad/customkernels"
	"github.com/mlxgrad/mlxgrad/mlxc"
)

// embeddingBackward returns the gradient of a table of so many rows.
func embeddingBackward(on target, dy, ids *mlxc.Array, vocabulary int) *mlxc.Array {
	if dy.Size() == 0 || vocabulary == 0 {
		return mlxc.Zeros(dy.DType(), vocabulary, dy.Dim(-1))
	}
	keys := sortedTokens(on, ids, vocabulary)
	defer keys.Free()
	return sumRuns(on, dy, keys, vocabulary)
}

// sortedTokens are the tokens in the order of their ids, and within an id in their
// own: the keys id·2³² + token, ascending. Ids out of range count as the vocabulary.
// Keys, unlike the ids alone, differ, so that the order is the same however MLX sorts.
func sortedTokens(on target, ids *mlxc.Array, vocabulary int) *mlxc.Array {
	tokens := ids.Size()
	unsigned := unsignedIDs(ids)
	defer unsigned.Free()
	n := uint32Args(tokens, vocabulary)
	perToken := mlxc.Output{Shape: []int{tokens}, DType: mlxc.Uint64}
	if on.backend == mlxc.BackendCPU && vocabulary <= 8*tokens {
		// Counting takes time for the vocabulary too, but is many times faster than MLX's
		// sort, by one thread too.
		zero := float32(0)
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

// sumRuns adds up the rows of dy by slots: row i of the result is the sum over the
// tokens t with a key i·2³² + t. keys ascend; those with slots from the number of slots
// on do not count.
func sumRuns(on target, dy, keys *mlxc.Array, slots int) *mlxc.Array {
	tokens, width := keys.Size(), dy.Dim(-1)
	segment := segmentOf(tokens)
	segments := tokens / segment
	g, forSegments := sharesOf(on.backend, dy.DType(), slots, width), sharesOf(on.backend, dy.DType(), segments, width)
	n := uint32Args(tokens, slots, segment, segments, width, g.shares)
	tokenCount, slotCount, segmentLength, segmentCount, widthCount, shareCount := n[0], n[1], n[2], n[3], n[4], n[5]
	template := embeddingSumTemplate{embeddingTemplate{dy.DType(), g.chunk}, g.packs}.args()

	grid, threads := elementGrid(on.backend, tokens)
	untouched := float32(0)
	perToken := mlxc.Output{Shape: []int{tokens}, DType: mlxc.Uint32}
	perSlot := mlxc.Output{Shape: []int{slots}, DType: mlxc.Uint32}
	runs := on.launch(embeddingKernels.kernel("embedding_runs"), customkernels.Launch{
		Grid:        [3]int{grid},
		Threadgroup: [3]int{threads},
		Outputs:     []mlxc.Output{perToken, perSlot, perSlot},
		InitValue:   &untouched,
	}, keys, tokenCount, slotCount)
	defer freeAll(runs)
	order, begins, ends := runs[0], runs[1], runs[2]

	partial := mlxc.Zeros(mlxc.Float32, 1) // not read
	if segments > 0 {
		partial.Free()
		partial = on.launch(embeddingKernels.kernel("embedding_backward_partial"), customkernels.Launch{
			Grid:        [3]int{forSegments.grid},
			Threadgroup: [3]int{forSegments.threads},
			Template:    template,
			Outputs:     []mlxc.Output{{Shape: []int{segments, width}, DType: mlxc.Float32}},
			Undefined:   []string{"partial"}, // the rows of segments with several slots
		}, dy, keys, order, slotCount, segmentLength, segmentCount, widthCount, shareCount)[0]
	}
	defer partial.Free()
	return on.launch(embeddingKernels.kernel("embedding_backward"), customkernels.Launch{
		Grid:        [3]int{g.grid},
		Threadgroup: [3]int{g.threads},
		Template:    template,
		Outputs:     []mlxc.Output{{Shape: []int{slots, width}, DType: dy.DType()}},
	}, dy, order, begins, ends, partial, slotCount, segmentLength, widthCount, shareCount)[0]
}

// segmentOf is how many neighbouring tokens have a sum of their own if they share a
// slot. A thread adds up at most tokens/segment such sums and not quite two segments
// of single tokens, which is least near √tokens. From 128 tokens on, their sum, two
// floats moved for every column, is a thirtieth of what they are in half precision.
func segmentOf(tokens int) int {
	return max(128, int(math.Sqrt(float64(tokens))))
}
