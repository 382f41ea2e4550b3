package oracle

// LinearCrossEntropy returns the [CrossEntropy] of logits = hidden·weightᵀ, with hidden [..., H] and
// weight [V, H].
func LinearCrossEntropy(hidden, weight, targets Tensor, cfg CrossEntropyConfig) Tensor {
	return CrossEntropy(linear(hidden, weight), targets, cfg)
}

// LinearCrossEntropyVJP returns the gradients of ⟨dloss, LinearCrossEntropy(hidden, weight, targets)⟩ with respect to
// hidden and weight. With dlogits from [CrossEntropyVJP],
//
//	dhidden = dlogits·weight
//	dweight = dlogitsᵀ·hidden, summed over all rows
func LinearCrossEntropyVJP(
	hidden, weight, targets Tensor, cfg CrossEntropyConfig, dloss Tensor,
) (dhidden, dweight Tensor) {
	dlogits := CrossEntropyVJP(linear(hidden, weight), targets, cfg, dloss)
	dhidden, dweight = New(hidden.Shape...), New(weight.Shape...)
	rows, _ := hidden.matrix()
	vocabulary, _ := weight.matrix()
	for i := range rows {
		hi, dhi := hidden.row(i), dhidden.row(i)
		for v := range vocabulary {
			d, wv, dwv := dlogits.row(i)[v], weight.row(v), dweight.row(v)
			if d == 0 {
				continue // the row may be ignored, and 0 times an infinity in hi would be NaN
			}
			for k := range hi {
				dhi[k] += d * wv[k]
				dwv[k] += d * hi[k]
			}
		}
	}
	return dhidden, dweight
}

// linear returns hidden·weightᵀ.
func linear(hidden, weight Tensor) Tensor {
	rows, _ := hidden.matrix()
	vocabulary, _ := weight.matrix()
	shape := append([]int(nil), hidden.Shape...)
	shape[len(shape)-1] = vocabulary
	logits := New(shape...)
	for i := range rows {
		hi, out := hidden.row(i), logits.row(i)
		for v := range vocabulary {
			sum := 0.0
			for k, w := range weight.row(v) {
				sum += hi[k] * w
			}
			out[v] = sum
		}
	}
	return logits
}
