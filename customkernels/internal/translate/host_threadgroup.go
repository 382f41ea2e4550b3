package translate

import (
	"fmt"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// threadgroupVariables turns the declarations of threadgroup variables into references to
// the executor's arena:
//
//	threadgroup float a[32], b;
//
// becomes
//
//	typedef float mlxg_tg_type_0 [32]; mlxg_tg_type_0& a = mlxg::threadgroup_variable<mlxg_tg_type_0, 0>(); …
//
// Pointers and references into threadgroup memory are no such variables.
func (h *hostWriter) threadgroupVariables() error {
	variables, err := h.ThreadgroupVariables(h.code, h.items)
	if err != nil {
		return err
	}
	for id, v := range variables {
		kind := fmt.Sprintf("%stg_type_%d", msl.Prefix, id)
		separator, space := "", ""
		if !v.First {
			// In the place of the comma; what is declared stays on its line.
			separator = "; " + strings.Repeat("\n", strings.Count(h.Text[v.Start:v.NameAt], "\n"))
		}
		if v.Dimensions != "" {
			space = " "
		}
		h.edits.Replace(v.Start, v.End, fmt.Sprintf("%stypedef %s %s%s%s; %s& %s = mlxg::threadgroup_variable<%s, %d>()",
			separator, v.Element, kind, space, v.Dimensions, kind, v.Name, kind, id))
		h.words[v.Qualifier] = "threadgroup"
	}
	return nil
}
