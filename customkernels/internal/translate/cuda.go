package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// CUDASource is a generated text as CUDA, in the form that MLX's CUDA kernels take: a header,
// and the body of a kernel of MLX's own that calls the shader's.
type CUDASource struct {
	// Header is the rewritten text. It relies on metal_cuda.h.
	Header string
	// Inputs and Outputs are the names that the body has for the buffers that are arrays, in
	// their order. MLX adds the shape, strides and number of axes of an input where the body
	// names them, as it does for Metal.
	Inputs, Outputs []string
	// Lanes tells that the text may contain an operation of a SIMD-group or quad-group, or ask
	// for a place in one.
	Lanes bool

	kernel    *msl.Kernel
	arguments []string // of its template
	scope     string
}

// GridInput is the name of one more input of a launch that does not fill its threadgroups:
// the grid, three unsigned integers.
const GridInput = "mlxg_grid"

// CUDA rewrites the complete text that MLX generates for a kernel into CUDA, in the same way
// as [Host] does for a CPU; functions and constants of the text become the device's.
func CUDA(text string) (*CUDASource, error) {
	h, err := rewritten(text, "unroll")
	if err != nil {
		return nil, err
	}
	out := &CUDASource{Lanes: h.usesLanes()}
	if out.kernel, out.arguments, err = h.GeneratedKernel(h.items); err != nil {
		return nil, err
	}
	buffers, err := hostBuffers(out.kernel)
	if err != nil {
		return nil, err
	}
	for _, b := range buffers {
		switch {
		case b.Name == "" || out.metadata(b.Name) != "":
		case b.Writable:
			out.Outputs = append(out.Outputs, cudaName(b.Name))
		default:
			out.Inputs = append(out.Inputs, cudaName(b.Name))
		}
	}
	ending, scope := h.wrap()
	if scope == "" {
		return nil, h.ErrorAt(0, "the text has names that only the global namespace can have; on CUDA they would meet CUDA's own")
	}
	out.scope = scope + "::"
	h.annotate() // behind wrap, whose words come before a function's at the same place
	out.Header = h.edits.Apply()
	if !strings.HasSuffix(out.Header, "\n") {
		out.Header += "\n"
	}
	out.Header += out.enter() + ending
	return out, nil
}

// cudaName is a buffer's name in the body: none that CUDA or MLX has.
func cudaName(name string) string { return msl.Prefix + "buffer_" + name }

// metadata tells that a buffer of this name is the shape, strides or number of axes of an
// input, and how the body reaches it: MLX passes arrays by value.
func (c *CUDASource) metadata(name string) string {
	for suffix, access := range map[string]string{"_shape": ".data()", "_strides": ".data()", "_ndim": ""} {
		input, ok := strings.CutSuffix(name, suffix)
		if ok && slices.ContainsFunc(c.kernel.Buffers, func(b *msl.Buffer) bool { return b.Name == input }) {
			return cudaName(input) + suffix + access
		}
	}
	return ""
}

// Body is the body of MLX's kernel for threadgroups of this size. A launch is whole if they
// fill its grid.
func (c *CUDASource) Body(threadgroup [3]int, whole bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  const mlxg::thread_position<%d, %d, %d, %t> mlxg_at", threadgroup[0], threadgroup[1], threadgroup[2], whole)
	if whole {
		b.WriteString(";\n")
	} else {
		fmt.Fprintf(&b, "(%s);\n  if (!mlxg_at.exists()) return;\n", GridInput)
	}
	fmt.Fprintf(&b, "  ::%smlxg_enter(mlxg_at", c.scope)
	for _, buffer := range c.kernel.Buffers {
		text := c.metadata(buffer.Name)
		if text == "" {
			text = cudaName(buffer.Name)
		} else if buffer.Reference {
			text = "&" + text
		}
		b.WriteString(", " + text)
	}
	b.WriteString(");\n")
	return b.String()
}

// enter is the function that Body calls. It stands in the shader's namespace, where Metal's
// names of types are not CUDA's.
func (c *CUDASource) enter() string {
	var b strings.Builder
	b.WriteString("template <class Position>\nMLXG_INLINE void mlxg_enter(const Position& mlxg_at")
	for _, buffer := range c.kernel.Buffers {
		if buffer.Writable() {
			fmt.Fprintf(&b, ", void* %s", cudaName(buffer.Name))
		} else {
			// MLX gives a kernel no output's memory as an input's, so that what was read need not
			// be read again after a write.
			fmt.Fprintf(&b, ", const void* __restrict__ %s", cudaName(buffer.Name))
		}
	}
	b.WriteString(") {\n" + elementNames(c.kernel, c.arguments))
	list := callArguments(c.kernel, func(b *msl.Buffer) string {
		constness := "const "
		if b.Writable() {
			constness = ""
		}
		return fmt.Sprintf("static_cast<%s%s*>(%s)", constness, b.Element, cudaName(b.Name))
	}, func(attribute string) string { return "mlxg_at." + attribute + "()" })
	b.WriteString("  " + kernelCall(c.kernel, c.arguments, list, "") + ";\n}\n")
	return b.String()
}

// usesLanes looks for what depends on which threads make up a SIMD-group or quad-group, in
// macros too. A barrier of a SIMD-group does not.
func (h *hostWriter) usesLanes() bool {
	for _, t := range h.code.Tokens {
		if t.Kind == msl.Identifier && t.Text != "simdgroup_barrier" &&
			(strings.Contains(t.Text, "simd") || strings.Contains(t.Text, "quad")) {
			return true
		}
	}
	return false
}

// annotate makes functions and the constants of namespaces the device's.
func (h *hostWriter) annotate() {
	const device = "__device__ "
	for _, it := range h.items {
		if !h.dropped[it.First] && (h.declaresFunction(it) || h.declaresConstant(it)) {
			at := h.Tokens[it.Start].Offset
			h.edits.Insert(at, device)
		}
	}
	// A macro may define functions; METAL_FUNC says what they are, inline does not.
	for i, t := range h.All {
		if t.Directive != 0 && t.Is("inline") && !h.Off[i] {
			h.edits.Insert(t.Offset, device)
		}
	}
}

// declaresFunction reports whether an item is a function, with its body or without.
func (h *hostWriter) declaresFunction(it msl.Item) bool {
	if it.Kind == msl.FunctionItem {
		return true
	}
	if it.Kind != msl.OtherItem || it.Params < 0 {
		return false
	}
	first := h.At(it.Start)
	if first.Is("using") || first.Is("typedef") || first.Is("static_assert") || first.Is("enum") {
		return false
	}
	if last := h.At(it.Last - 1); last.Is("default") || last.Is("delete") {
		return false
	}
	// A macro's call has its name alone before its parentheses, and so has a constructor.
	return it.Scope == msl.ClassScope || it.Params > it.Start+1
}

// declaresConstant reports whether an item is a variable of a namespace in constant memory.
func (h *hostWriter) declaresConstant(it msl.Item) bool {
	if it.Kind != msl.OtherItem || it.Scope != msl.NamespaceScope || it.Params >= 0 {
		return false
	}
	for i := it.Start; i <= it.Last; i++ {
		switch t := h.Tokens[i]; {
		case t.Is("=") || t.Is("{") || t.Is("["):
			return false
		case t.Is("using") || t.Is("typedef"):
			return false
		case t.Is("constant"):
			return true
		}
	}
	return false
}
