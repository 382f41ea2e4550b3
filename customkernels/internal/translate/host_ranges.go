package translate

import (
	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// ranges rewrites array initializers with a range, which clang and Apple's compiler have and g++ does not:
//
//	float a[N] = {[0 ... N - 1] = x};
//
// becomes
//
//	float a[N]                      ; for (auto& mlxg_element : a) mlxg_element = x;
//
// The declaration must be a statement, and the range must begin at 0.
func (h *rewriter) ranges() error {
	for i := range h.Tokens {
		if !h.Tokens[i].Is("{") || !h.At(i+1).Is("[") || h.At(i+2).Text != "0" || !h.At(i+3).Is("...") || !h.At(i-1).Is("=") {
			continue
		}
		open, equal := i-2, h.Match[i+1]+1
		for h.At(open).Is("]") { // dimensions
			open = h.Match[open] - 1
		}
		end := h.Match[i]
		if !h.At(equal).Is("=") || h.At(open).Kind != msl.Identifier || open == i-2 {
			continue
		}
		last := end
		for last < len(h.Tokens) && !h.Tokens[last].Is(";") {
			if last++; last < len(h.Tokens) && h.Match[last] > last {
				last = h.Match[last]
			}
		}
		if last == len(h.Tokens) {
			continue
		}
		h.edits.Insert(h.Tokens[last].End(), " for (auto& mlxg_element : "+h.Tokens[open].Text+") mlxg_element = "+
			h.JoinSpaced(equal+1, end-1)+";")
		h.edits.Blank(h.Tokens[i-1].Offset, h.Tokens[end].End())
	}
	return nil
}
