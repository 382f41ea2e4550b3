package oracle

import (
	"math"
	"slices"
)

// Embedding returns the rows of weight [V, D] that ids name: y_s = weight_ids(s), of shape S+[D] for
// ids of shape S. A row whose id is not in [0, V) is NaN.
func Embedding(weight, ids Tensor) Tensor {
	vocabulary, width := weight.matrix()
	y := New(append(slices.Clone(ids.Shape), width)...)
	for s, id := range ids.Data {
		if inRange(id, vocabulary) {
			copy(y.row(s), weight.row(int(id)))
			continue
		}
		for j := range y.row(s) {
			y.row(s)[j] = math.NaN()
		}
	}
	return y
}

// EmbeddingVJP returns the gradient of ⟨dy, Embedding(weight, ids)⟩ with respect to a weight of
// vocabulary rows: dweight_v = Σ_{s: ids(s)=v} dy_s, zero for a row that no id names. An id that is not
// in range has no gradient.
func EmbeddingVJP(ids Tensor, vocabulary int, dy Tensor) Tensor {
	dweight := New(vocabulary, dy.Shape[len(dy.Shape)-1])
	for s, id := range ids.Data {
		if inRange(id, vocabulary) {
			row := dweight.row(int(id))
			for j, v := range dy.row(s) {
				row[j] += v
			}
		}
	}
	return dweight
}

// EmbeddingSparseGradient returns the rows of [EmbeddingVJP] that ids name, each once: rows holds the
// distinct ids in ascending order, gradients their rows, and count their number. Both have as many
// rows as there can be, the smaller of vocabulary and the number of ids; those that are not needed
// are the row number vocabulary, which there is not, and zeros.
func EmbeddingSparseGradient(dy, ids Tensor, vocabulary int) (rows, gradients, count Tensor) {
	distinct := slices.DeleteFunc(slices.Sorted(slices.Values(ids.Data)), func(id float64) bool {
		return !inRange(id, vocabulary)
	})
	distinct = slices.Compact(distinct)

	dense := EmbeddingVJP(ids, vocabulary, dy)
	rows = New(min(vocabulary, len(ids.Data)))
	gradients = New(rows.Shape[0], dy.Shape[len(dy.Shape)-1])
	for k := range rows.Data {
		rows.Data[k] = float64(vocabulary)
		if k < len(distinct) {
			rows.Data[k] = distinct[k]
			copy(gradients.row(k), dense.row(int(distinct[k])))
		}
	}
	return rows, gradients, Tensor{Data: []float64{float64(len(distinct))}}
}

func inRange(id float64, vocabulary int) bool {
	return id >= 0 && id < float64(vocabulary)
}
