package translate

import (
	"fmt"
	"slices"
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
// With dynamicMemory, the variables of a kernel lie one after the other in CUDA's dynamic shared memory:
//
//	constexpr unsigned mlxg_tg_end_0 = mlxg::end_of_variable<mlxg_tg_type_0>(0);
//	mlxg_tg_type_0& a = mlxg::dynamic_variable<mlxg_tg_type_0, 0>();
//
// Pointers and references to threadgroup memory are not changed here.
func (h *rewriter) threadgroupVariables() error {
	variables, err := h.ThreadgroupVariables(h.code, h.items)
	if err != nil {
		return err
	}
	h.variables = len(variables)
	kernel, end := -1, "0" // the kernel of the previous variable, and the end of that variable
	for id, v := range variables {
		kind, zero := fmt.Sprintf("%stg_type_%d", msl.Prefix, id), ""
		if v.Zero && !h.zeroMemory {
			return h.ErrorAt(h.tokenAt(v.Qualifier), "the threadgroup variable %s cannot have an initializer; assign it in "+
				"one thread, then use a barrier", v.Name)
		} else if v.Zero {
			zero = ", true"
		}
		separator, space := "", ""
		if !v.First {
			// The separator replaces the comma. Newlines keep the declarator on its line.
			separator = "; " + strings.Repeat("\n", strings.Count(h.Text[v.Start:v.NameAt], "\n"))
		}
		if v.Dimensions != "" {
			space = " "
		}
		place := fmt.Sprintf("%s& %s = mlxg::threadgroup_variable<%s, %d%s>()", kind, v.Name, kind, id, zero)
		if h.dynamicMemory {
			if k := h.kernelAt(v.Qualifier); k != kernel {
				kernel, end = k, "0"
			}
			next := fmt.Sprintf("%stg_end_%d", msl.Prefix, id)
			place = fmt.Sprintf("constexpr unsigned %s = mlxg::end_of_variable<%s>(%s); "+
				"static_assert(%s <= MLXG_DYNAMIC_MEMORY, \"ThreadgroupMemory is less than the kernel's variables\"); "+
				"%s& %s = mlxg::dynamic_variable<%s, %s>()", next, kind, end, next, kind, v.Name, kind, end)
			end = next
		}
		h.edits.Replace(v.Start, v.End, fmt.Sprintf("%stypedef %s %s%s%s; %s",
			separator, v.Element, kind, space, v.Dimensions, place))
		h.words[v.Qualifier] = "threadgroup"
	}
	return nil
}

// tokenAt returns the index of the token at an offset.
func (h *rewriter) tokenAt(offset int) int {
	return slices.IndexFunc(h.Tokens, func(t msl.Token) bool { return t.Offset == offset })
}

// kernelAt returns the index of the item of the kernel that contains an offset.
func (h *rewriter) kernelAt(offset int) int {
	return slices.IndexFunc(h.items, func(it msl.Item) bool {
		return it.Kernel && h.Tokens[it.First].Offset <= offset && offset <= h.Tokens[it.Last].Offset
	})
}
