package oracle

import (
	"math"
	"slices"
)

// Embedding returns rows of weight [V, D] by id: y_s = weight_ids(s), of shape S+[D] for ids of shape S. The row of an
// id outside [0, V) is NaN.
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

// EmbeddingVJP returns the gradient of ⟨dy, Embedding(weight, ids)⟩ with respect to weight, which has `vocabulary`
// rows: dweight_v = Σ_{s: ids(s)=v} dy_s, zero for a row without ids. Ids out of range contribute nothing.
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

// EmbeddingSparseGradient returns the rows of [EmbeddingVJP] that have an id in ids. rows [K] holds the distinct ids in
// ascending order, gradients [K, D] their rows, and count, a scalar, their number. K is the smaller of vocabulary and
// the number of ids. rows is padded with the id `vocabulary`, which is out of range, and gradients with zeros.
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
