package msl

import (
	"slices"
	"strings"
)

// File is a parsed shader file.
type File struct {
	// Name is the file's name as given to Parse.
	Name string
	// Kernels holds the kernel functions in the order of the file.
	Kernels []*Kernel
	// Instances holds the explicit instantiations of kernel templates, of [ParseNative] only.
	Instances []Instance
}

// Kernel returns the kernel of this name. The empty name selects the only kernel of a file. If there is no such
// kernel, the error is an [*Error] that lists the names of the file's kernels.
func (f *File) Kernel(name string) (*Kernel, error) {
	names := make([]string, len(f.Kernels))
	for i, k := range f.Kernels {
		names[i] = k.Name
		if k.Name == name || name == "" && len(f.Kernels) == 1 {
			return k, nil
		}
	}
	at := Position{File: f.Name}
	if name == "" {
		return nil, Errorf(at, "the file has several kernels; choose one of %s", strings.Join(names, ", "))
	}
	return nil, Errorf(at, "the file has no kernel %q; it has %s", name, strings.Join(names, ", "))
}

// Kernel is a kernel function of a shader file.
type Kernel struct {
	// Name is the function's name.
	Name string
	// HostName is the name of [[host_name("…")]], or else Name.
	HostName string
	// Pos is the position of the name.
	Pos Position
	// Problem is the reason why the kernel cannot run, of [ParseNative] only.
	Problem error
	// Template holds the template parameters in order. It is empty for a plain function.
	Template []TemplateParameter
	// Buffers holds the arguments in device and constant memory in the order of the signature.
	Buffers []*Buffer
	// Samplers holds the sampler arguments, of [ParseNative] only.
	Samplers []Sampler
	// Threadgroup holds the threadgroup arguments. A launch must give each a size.
	Threadgroup []ThreadgroupArgument
	// Attributes holds the thread-position arguments.
	Attributes []Attribute
	// MaxThreads is the number of [[max_total_threads_per_threadgroup(n)]]. It is 0 if the attribute is missing or n
	// is not a plain number.
	MaxThreads int
	// Body is the text between the function's braces, byte for byte.
	Body string
	// BodyPos is the position of the first byte after the opening brace.
	BodyPos Position
	// Header is the text that this kernel depends on: the file, with the text of included files in place of the
	// #include lines. Blanks replace these parts, so that lines keep their numbers: all kernels and their
	// instantiations, includes of Metal's own headers, "using namespace metal", and the text after the kernel. The text
	// after the kernel stays if a function is declared without a body before it, because the definition may follow.
	Header string
	// Constants holds the function constants that Header declares.
	Constants []FunctionConstant

	// Namespaces holds the namespaces around the kernel, outermost first. An unnamed one is "".
	Namespaces []string
	structure  *Structure
	body       [2]int // the braces
}

// HasArgument reports whether the kernel has an argument with a name.
func (k *Kernel) HasArgument(name string) bool {
	return slices.ContainsFunc(k.Buffers, func(b *Buffer) bool { return b.Name == name }) ||
		slices.ContainsFunc(k.Attributes, func(a Attribute) bool { return a.Name == name }) ||
		slices.ContainsFunc(k.Samplers, func(s Sampler) bool { return s.Name == name }) ||
		slices.ContainsFunc(k.Threadgroup, func(a ThreadgroupArgument) bool { return a.Name == name })
}

// Structure returns the text that contains the kernel, and the indices of the tokens that enclose its body.
func (k *Kernel) Structure() (s *Structure, body [2]int) { return k.structure, k.body }

// TemplateKind is the kind of a template parameter.
type TemplateKind string

// The kinds of template parameters. All integer types except uint have the kind int.
const (
	TypeParameter  TemplateKind = "typename"
	IntParameter   TemplateKind = "int"
	UintParameter  TemplateKind = "uint"
	BoolParameter  TemplateKind = "bool"
	OtherParameter TemplateKind = "other" // a function, an enumerator, a pack: MLX's custom kernels have no such arguments
)

// TemplateParameter is a template parameter of a kernel.
type TemplateParameter struct {
	Kind    TemplateKind
	Type    string // as written: "typename", "int", "ushort", …
	Name    string
	Default string // as written; "" if there is none
}

// AddressSpace is an address space of Metal.
type AddressSpace string

// The address spaces of kernel arguments.
const (
	Device      AddressSpace = "device"
	Constant    AddressSpace = "constant"
	Threadgroup AddressSpace = "threadgroup"
)

// Buffer is a kernel's pointer or reference argument in device or constant memory.
type Buffer struct {
	Name      string
	Pos       Position
	Space     AddressSpace
	Reference bool   // a reference rather than a pointer
	Const     bool   // const, or in constant memory
	Element   string // element type as written, without const, volatile and address space
	Atomic    bool   // Element is atomic<…> or atomic_…
	Volatile  bool   // the elements are volatile
	Coherent  bool   // coherent; MLX's signature cannot express it
	Index     int    // n of [[buffer(n)]]; -1 if there is none
	Slot      int    // Index, or the lowest free number if Index is -1
	// Texture is set for a texture. Element is then the type of a component, and Index the n of [[texture(n)]].
	Texture TextureKind
	// Implicit is set for an argument that MLX adds itself: the shape, strides or number of dimensions of an input.
	// It is the name of that input: "x" for x_shape, x_strides and x_ndim. Such a buffer is not an input of a launch.
	Implicit string
}

// Writable reports whether the kernel can write to the buffer. Writable buffers are the outputs of a launch, the
// others its inputs.
func (b *Buffer) Writable() bool { return b.Space == Device && !b.Const }

// ThreadgroupArgument is a threadgroup pointer argument.
type ThreadgroupArgument struct {
	Name      string
	Pos       Position
	Element   string
	Index     int  // n of [[threadgroup(n)]]; -1 if there is none
	Reference bool // a reference rather than a pointer, in native files
}

// Attribute is a thread-position argument.
type Attribute struct {
	Name      string // name of the variable
	Pos       Position
	Type      string // uint, uint2, uint3, ushort, ushort2 or ushort3
	Attribute string // for example thread_position_in_grid
}

// FunctionConstant is a declaration with [[function_constant(n)]] in a kernel's header.
type FunctionConstant struct {
	Name  string
	Type  string
	Index int
	Pos   Position

	Line int // line of Kernel.Header
}

// Inputs returns the buffers that a launch must supply, sorted by slot.
func (k *Kernel) Inputs() []*Buffer {
	return k.sorted(func(b *Buffer) bool { return !b.Writable() && b.Implicit == "" })
}

// Outputs returns the buffers that a launch fills, sorted by slot.
func (k *Kernel) Outputs() []*Buffer {
	return k.sorted((*Buffer).Writable)
}

// sorted returns the chosen buffers, sorted by slot.
func (k *Kernel) sorted(choose func(*Buffer) bool) []*Buffer {
	var chosen []*Buffer
	for _, b := range k.Buffers {
		if choose(b) {
			chosen = append(chosen, b)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *Buffer) int { return a.Slot - b.Slot })
	return chosen
}
