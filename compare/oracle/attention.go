package oracle

import (
	"math"
	"sync"
)

// Attention holds the operands and options of softmax(scale·q·kᵀ + bias)·v for the heads of a batch. Optional fields
// are nil or zero if omitted. Query head h of Hq uses the key head h·Hkv/Hq, so neighboring query heads share a key
// head (Ainslie et al., "GQA", 2023).
//
// For query i of a head and the scores s over the keys j:
//
//	u_j   = scale·⟨q_i, k_j⟩
//	s_j   = u_j, or c·tanh(u_j/c) with a soft cap c (Gemma Team, "Gemma 2", 2024)
//	s_j   = s_j + bias_ij, or −∞ if key j is masked
//	lse   = ln(Σ_j exp(s_j) + exp(sink)), without the last term if there are no sinks
//	p_j   = exp(s_j − lse)
//	out_i = Σ_j p_j·v_j
//
// A query whose keys are all masked has out = 0, and lse = −∞ or its sink.
type Attention struct {
	Q, K, V Tensor  // [B, Hq, Lq, D], [B, Hkv, Lkv, D], [B, Hkv, Lkv, DV]
	Scale   float64 // of the scores
	SoftCap float64 // c, or 0 for no cap

	// Seen is 0 for masked keys; Bias is added to the scores. Both are broadcast to [B, Hq, Lq, Lkv].
	Seen, Bias *Tensor
	Sinks      *Tensor // [Hq]

	// Causal and Window mask keys by position. The last query of a sequence has the position of its last key.
	Causal bool
	Window *[2]int // number of keys to the left and to the right of the query; negative for no limit
	// QueryStarts and KeyStarts hold the first index of each of several concatenated sequences, and the end of the
	// last. Keys of other sequences are masked.
	QueryStarts, KeyStarts []int
}

// AttentionGradients holds the gradients of the fields of an [Attention], in the shapes of the fields. The gradient of
// a nil field is nil.
type AttentionGradients struct {
	Q, K, V     Tensor
	Bias, Sinks *Tensor
}

// Forward returns out [B, Hq, Lq, DV] and lse [B, Hq, Lq].
func (a Attention) Forward() (out, lse Tensor) {
	batch, heads, queries := a.Q.Shape[0], a.Q.Shape[1], a.Q.Shape[2]
	out, lse = New(batch, heads, queries, a.V.Shape[3]), New(batch, heads, queries)
	a.eachKeyHead(func(b, kv int, group []int) {
		for _, h := range group {
			for i := range queries {
				row := a.row(b, h, kv, i)
				lse.Data[(b*heads+h)*queries+i] = row.lse
				o := out.row((b*heads+h)*queries + i)
				for n, j := range row.keys {
					for d, v := range a.V.row(a.keyRow(b, kv, j)) {
						o[d] += row.p[n] * v
					}
				}
			}
		}
	})
	return out, lse
}

// VJP returns the gradients of ⟨dout, out⟩ + ⟨dlse, lse⟩.
//
// From ∂p_j/∂s_k = p_j·(1[j=k] − p_k) and ∂lse/∂s_k = p_k follow, with delta = ⟨dout_i, out_i⟩ (Dao et al.,
// "FlashAttention", 2022, appendix B.2):
//
//	dv_j  = Σ_i p_j·dout_i
//	ds_j  = p_j·(⟨dout_i, v_j⟩ − delta + dlse_i)
//	dbias = ds, summed over broadcast axes
//	dsink = Σ_i exp(sink − lse)·(dlse_i − delta)
//	g_j   = scale·ds_j, with a soft cap times sech²(scale·⟨q_i, k_j⟩/c)
//	dq_i  = Σ_j g_j·k_j
//	dk_j  = Σ_i g_j·q_i
func (a Attention) VJP(dout, dlse Tensor) AttentionGradients {
	batch, heads, queries, keys := a.Q.Shape[0], a.Q.Shape[1], a.Q.Shape[2], a.K.Shape[2]
	grads := AttentionGradients{Q: New(a.Q.Shape...), K: New(a.K.Shape...), V: New(a.V.Shape...)}
	// Per score and per query, and summed at the end: goroutines must not add to the same element.
	var ds, dsink Tensor
	if a.Bias != nil {
		ds = New(batch, heads, queries, keys)
	}
	if a.Sinks != nil {
		dsink = New(batch, heads, queries)
	}
	a.eachKeyHead(func(b, kv int, group []int) {
		for _, h := range group {
			for i := range queries {
				at := (b*heads+h)*queries + i
				row, do := a.row(b, h, kv, i), dout.row(at)
				delta := 0.0
				dp := make([]float64, len(row.keys))
				for n, j := range row.keys {
					for d, v := range a.V.row(a.keyRow(b, kv, j)) {
						dp[n] += do[d] * v
					}
					delta += row.p[n] * dp[n]
				}
				q, dq := a.Q.row(at), grads.Q.row(at)
				for n, j := range row.keys {
					d := row.p[n] * (dp[n] - delta + dlse.Data[at])
					if a.Bias != nil {
						ds.Data[at*keys+j] = d
					}
					key := a.keyRow(b, kv, j)
					k, dk, dv := a.K.row(key), grads.K.row(key), grads.V.row(key)
					g := a.Scale * d * row.slope[n]
					for c := range k {
						dq[c] += g * k[c]
						dk[c] += g * q[c]
					}
					for c := range do {
						dv[c] += row.p[n] * do[c]
					}
				}
				if a.Sinks != nil {
					dsink.Data[at] = row.sink * (dlse.Data[at] - delta)
				}
			}
		}
	})
	if a.Bias != nil {
		sum := New(a.Bias.Shape...)
		for at, d := range ds.Data {
			sum.Data[broadcastFrom(sum.Shape, ds.Shape, at)] += d
		}
		grads.Bias = &sum
	}
	if a.Sinks != nil {
		sum := New(heads)
		for at, d := range dsink.Data {
			sum.Data[at/queries%heads] += d
		}
		grads.Sinks = &sum
	}
	return grads
}

// eachKeyHead calls f for every batch element and key head, with the query heads that share the key head. The calls are
// concurrent.
func (a Attention) eachKeyHead(f func(b, kv int, group []int)) {
	heads, kvHeads := a.Q.Shape[1], a.K.Shape[1]
	var all sync.WaitGroup
	for b := range a.Q.Shape[0] {
		for kv := range kvHeads {
			var group []int
			for h := range heads {
				if h*kvHeads/heads == kv {
					group = append(group, h)
				}
			}
			all.Go(func() { f(b, kv, group) })
		}
	}
	all.Wait()
}

// keyRow returns the row of K and V with key j of a head.
func (a Attention) keyRow(b, kv, j int) int { return (b*a.K.Shape[1]+kv)*a.K.Shape[2] + j }

// attentionRow holds the probabilities of a query.
type attentionRow struct {
	keys  []int     // keys that are not masked
	p     []float64 // probabilities of keys
	slope []float64 // derivatives of the scores with respect to the scores before the soft cap
	sink  float64   // probability of the sink, exp(sink − lse)
	lse   float64
}

// row returns the probabilities of query i of head h, which uses key head kv.
func (a Attention) row(b, h, kv, i int) attentionRow {
	var row attentionRow
	var scores []float64
	q := a.Q.row((b*a.Q.Shape[1]+h)*a.Q.Shape[2] + i)
	for j := range a.K.Shape[2] {
		if !a.PositionSeen(i, j, a.Q.Shape[2], a.K.Shape[2]) || a.Seen != nil && a.element(*a.Seen, b, h, i, j) == 0 {
			continue
		}
		s := 0.0
		for d, k := range a.K.row(a.keyRow(b, kv, j)) {
			s += q[d] * k
		}
		s *= a.Scale
		slope := 1.0
		if c := a.SoftCap; c != 0 {
			s, slope = c*math.Tanh(s/c), tanhSlope(s/c)
		}
		if a.Bias != nil {
			s += a.element(*a.Bias, b, h, i, j)
		}
		row.keys, row.slope, scores = append(row.keys, j), append(row.slope, slope), append(scores, s)
	}
	if a.Sinks != nil {
		scores = append(scores, a.Sinks.Data[h])
	}

	largest := math.Inf(-1)
	for _, s := range scores {
		largest = math.Max(largest, s) // NaN if s is NaN
	}
	row.lse = largest
	row.p = make([]float64, len(scores))
	if !math.IsInf(largest, -1) {
		row.lse = softmaxRow(row.p, scores)
	}
	if a.Sinks != nil {
		row.sink = row.p[len(row.keys)]
	}
	return row
}

// element returns the element of a mask or bias for a score.
func (a Attention) element(mask Tensor, b, h, i, j int) float64 {
	scores := []int{a.Q.Shape[0], a.Q.Shape[1], a.Q.Shape[2], a.K.Shape[2]}
	return mask.Data[broadcastFrom(mask.Shape, scores, ((b*scores[1]+h)*scores[2]+i)*scores[3]+j)]
}

// broadcastFrom returns the index of an element in an array of shape `from`, given its index `at` in the array
// broadcast to the shape `to`.
func broadcastFrom(from, to []int, at int) int {
	position, stride := 0, 1
	for n := range from {
		axis, size := len(to)-1-n, from[len(from)-1-n]
		if size != 1 {
			position += at % to[axis] * stride
			stride *= size
		}
		at /= to[axis]
	}
	return position
}

// PositionSeen reports whether Causal, Window and the sequences let query i see key j, of `queries` queries and `keys`
// keys.
func (a Attention) PositionSeen(i, j, queries, keys int) bool {
	for n := range len(a.QueryStarts) - 1 {
		if i >= a.QueryStarts[n] && i < a.QueryStarts[n+1] {
			if j < a.KeyStarts[n] || j >= a.KeyStarts[n+1] {
				return false
			}
			i, j = i-a.QueryStarts[n], j-a.KeyStarts[n]
			queries, keys = a.QueryStarts[n+1]-a.QueryStarts[n], a.KeyStarts[n+1]-a.KeyStarts[n]
			break
		}
	}
	distance := j - (i + keys - queries) // from the query's position
	if a.Causal && distance > 0 {
		return false
	}
	if w := a.Window; w != nil {
		return (w[0] < 0 || distance >= -w[0]) && (w[1] < 0 || distance <= w[1])
	}
	return true
}
