package translate

import (
	"fmt"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// threadgroupVariables replaces declarations of threadgroup variables by references to the executor's arena:
//
//	threadgroup float a[32], b;
//
// becomes
//
//	typedef float mlxg_tg_type_0 [32]; mlxg_tg_type_0& a = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); …
//
// Pointers and references to threadgroup memory stay.
func (h *rewriter) threadgroupVariables() error {
	variables, err := h.ThreadgroupVariables(h.code, h.items)
	if err != nil {
		return err
	}
	for id, v := range variables {
		kind := fmt.Sprintf("%stg_type_%d", msl.Prefix, id)
		separator, space := "", ""
		if !v.First {
			// The separator replaces the comma. Newlines keep the declarator on its line.
			separator = "; " + strings.Repeat("\n", strings.Count(h.Text[v.Start:v.NameAt], "\n"))
		}
		if v.Dimensions != "" {
			space = " "
		}
		h.edits.Replace(v.Start, v.End, fmt.Sprintf("%stypedef %s %s%s%s; %s& %s = mlxg::threadgroup_variable<%s, "+
			"%d>()",
			separator, v.Element, kind, space, v.Dimensions, kind, v.Name, kind, id))
		h.words[v.Qualifier] = "threadgroup"
	}
	return nil
}
