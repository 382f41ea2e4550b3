package translate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mlxgrad/mlxgrad/customkernels/internal/msl"
)

// CUDASource is a kernel in the form of MLX's custom CUDA kernels. Its header contains the shader as CUDA. Its body,
// which [CUDASource.Body] returns, calls the shader's kernel.
type CUDASource struct {
	// Header is the rewritten text, which must follow metal_cuda.h.
	Header string
	// Inputs and Outputs hold the names of the array buffers in the body, in the order of the buffers' numbers. As for
	// Metal, MLX adds the shape, strides and number of dimensions of an input if the body contains their names.
	Inputs, Outputs []string
	// NeedsSIMDGroups is set if the text may contain an operation of a SIMD-group or quad-group, or read a thread's
	// position in one.
	NeedsSIMDGroups bool
	// UsesMetadata is set if the kernel reads the shape, strides or number of dimensions of an input.
	UsesMetadata bool

	kernel    *msl.Kernel
	arguments []string // template arguments
	scope     string
}

// GridInput is the name of an additional input: the grid as three unsigned integers. A launch has it unless full
// threadgroups cover the grid exactly.
const GridInput = "mlxg_grid"

// CUDA rewrites the complete text that MLX generates for a kernel into CUDA, by the same steps as [Host]. Functions
// and constants become device functions and device constants. With dynamicMemory, threadgroup variables lie in dynamic
// shared memory of MLXG_DYNAMIC_MEMORY bytes.
func CUDA(text string, dynamicMemory bool) (*CUDASource, error) {
	h, err := rewrite(text, "unroll", dynamicMemory)
	if err != nil {
		return nil, err
	}
	h.swizzles()
	out := &CUDASource{NeedsSIMDGroups: h.needsSIMDGroups()}
	if out.kernel, out.arguments, err = h.GeneratedKernel(h.items); err != nil {
		return nil, err
	}
	buffers, err := hostBuffers(out.kernel)
	if err != nil {
		return nil, err
	}
	for _, b := range buffers {
		switch {
		case b.Name == "":
		case out.metadata(b.Name) != "":
			out.UsesMetadata = true
		case b.Writable:
			out.Outputs = append(out.Outputs, cudaName(b.Name))
		default:
			out.Inputs = append(out.Inputs, cudaName(b.Name))
		}
	}
	ending, scope, obstacle := h.wrap()
	if scope == "" {
		return nil, h.ErrorAt(obstacle, "the shader must be in the global namespace, where its names collide with CUDA's; "+
			"remove :: before names, do not reopen namespace metal, and begin the code outside of #if")
	}
	out.scope = scope + "::"
	h.annotate() // after wrap, whose insertion at the same offset must come first
	out.Header = h.edits.Apply()
	if !strings.HasSuffix(out.Header, "\n") {
		out.Header += "\n"
	}
	out.Header += out.enter() + ending
	return out, nil
}

// cudaName returns a buffer's name in the body. It collides with no name of CUDA or MLX.
func cudaName(name string) string { return msl.Prefix + "buffer_" + name }

// metadata returns the expression with which the body reads the shape, strides or number of dimensions of an input. MLX
// passes shape and strides as arrays by value. metadata returns "" for other buffers.
func (c *CUDASource) metadata(name string) string {
	for suffix, access := range map[string]string{"_shape": ".data()", "_strides": ".data()", "_ndim": ""} {
		input, ok := strings.CutSuffix(name, suffix)
		if ok && slices.ContainsFunc(c.kernel.Buffers, func(b *msl.Buffer) bool { return b.Name == input }) {
			return cudaName(input) + suffix + access
		}
	}
	return ""
}

// Body returns the body of MLX's kernel for a threadgroup size. whole is set if full threadgroups cover the grid
// exactly.
func (c *CUDASource) Body(threadgroup [3]int, whole bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  const mlxg::thread_position<%d, %d, %d, %t> mlxg_at", threadgroup[0], threadgroup[1],
		threadgroup[2], whole)
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

// enter returns the function that Body calls. It is in the shader's namespace, because CUDA's global namespace has
// other types with Metal's names, such as uint3.
func (c *CUDASource) enter() string {
	var b strings.Builder
	b.WriteString("template <class Position>\nMLXG_INLINE void mlxg_enter(const Position& mlxg_at")
	for _, buffer := range c.kernel.Buffers {
		if buffer.Writable() {
			fmt.Fprintf(&b, ", void* %s", cudaName(buffer.Name))
		} else {
			// MLX never passes the memory of an output as an input, so no write changes an input.
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

// needsSIMDGroups reports whether a token, also in macros, depends on which threads form a SIMD-group or quad-group.
// A SIMD-group barrier does not.
func (h *rewriter) needsSIMDGroups() bool {
	for _, t := range h.code.Tokens {
		if t.Kind == msl.Identifier && t.Text != "simdgroup_barrier" &&
			(strings.Contains(t.Text, "simd") || strings.Contains(t.Text, "quad")) {
			return true
		}
	}
	return false
}

// annotate adds __device__ to functions and to namespace-scope constants.
func (h *rewriter) annotate() {
	const device = "__device__ "
	for _, it := range h.items {
		if !h.dropped[it.First] && (h.declaresFunction(it) || h.declaresConstant(it)) {
			at := h.Tokens[it.Start].Offset
			h.edits.Insert(at, device)
		}
	}
	// A macro may define functions. METAL_FUNC contains __device__, inline does not.
	for i, t := range h.All {
		if t.Directive != 0 && t.Is("inline") && !h.Excluded[i] {
			h.edits.Insert(t.Offset, device)
		}
	}
}

// declaresFunction reports whether an item is a function, with or without a body.
func (h *rewriter) declaresFunction(it msl.Item) bool {
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
	// Only a name precedes the parentheses of a macro call, and of a constructor.
	return it.Scope == msl.ClassScope || it.Params > it.Start+1
}

// declaresConstant reports whether an item is a namespace-scope variable in constant memory.
func (h *rewriter) declaresConstant(it msl.Item) bool {
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
