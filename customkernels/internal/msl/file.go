package msl

import (
	"slices"
	"strings"
)

// File is a parsed Metal shader file.
type File struct {
	// Name is the file's name as given to Parse.
	Name string
	// Kernels holds the kernel functions in the order of the file.
	Kernels []*Kernel
}

// Kernel returns the kernel of this name. Without one the error is an [*Error] that lists
// the names that the file has. The empty name stands for the only kernel of a file.
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

// Kernel is one kernel function of a shader file.
type Kernel struct {
	// Name is the function's name.
	Name string
	// Pos is the place of the name.
	Pos Position
	// Template holds the template parameters in order, none for a plain function.
	Template []TemplateParameter
	// Buffers holds the arguments in device and constant memory, in the order of the signature.
	Buffers []*Buffer
	// Threadgroup holds the threadgroup arguments, which a launch must size.
	Threadgroup []ThreadgroupArgument
	// Attributes holds the thread-position arguments.
	Attributes []Attribute
	// MaxThreads is the argument of [[max_total_threads_per_threadgroup(n)]], 0 without one
	// and where it is not a plain number.
	MaxThreads int
	// Body is the text between the function's braces, byte for byte.
	Body string
	// BodyPos is the place of the first byte behind the opening brace.
	BodyPos Position
	// Header is the rest of the text as this kernel needs it: the file, with the text of what it
	// includes in the place of the #include lines. What is left out leaves its newlines: all
	// kernels and their instantiations, the inclusion of Metal's own headers, "using namespace
	// metal", and what comes behind the kernel unless it defines a function that was declared before.
	Header string
	// Constants holds the function constants that the header declares.
	Constants []FunctionConstant

	Namespaces []string
	structure  *Structure
	body       [2]int // the braces
}

// TemplateKind is the kind of a template parameter.
type TemplateKind string

// The kinds of template parameters. Every integer type but int and uint is of kind int.
const (
	TypeParameter TemplateKind = "typename"
	IntParameter  TemplateKind = "int"
	UintParameter TemplateKind = "uint"
	BoolParameter TemplateKind = "bool"
)

// TemplateParameter is a template parameter of a kernel.
type TemplateParameter struct {
	Kind    TemplateKind
	Type    string // as written: "typename", "class", "int", "ushort", …
	Name    string
	Default string // as written, "" for none
}

// AddressSpace is an address space of Metal.
type AddressSpace string

// The address spaces that a kernel's arguments can have.
const (
	Device      AddressSpace = "device"
	Constant    AddressSpace = "constant"
	Threadgroup AddressSpace = "threadgroup"
)

// Buffer is a pointer or reference argument in device or constant memory.
type Buffer struct {
	Name      string
	Pos       Position
	Space     AddressSpace
	Reference bool   // a reference, not a pointer
	Const     bool   // const, or in constant memory
	Element   string // the element type as written, without const, volatile and address space
	Atomic    bool   // Element is atomic<…> or atomic_…
	Volatile  bool   // what it leads to is volatile
	Coherent  bool   // coherent, which MLX's signature cannot say
	Index     int    // the n of [[buffer(n)]], -1 without one
	Slot      int    // Index, or for a buffer without one the lowest number that is free
	// Implicit is the name of the input whose shape, strides or dimension count this
	// buffer holds, if it is an argument that MLX itself adds: "x" for x_shape, x_strides
	// and x_ndim. It is no input of a launch then.
	Implicit string
}

// Writable reports whether the kernel can write to the buffer: such buffers are a
// launch's outputs, the others its inputs.
func (b *Buffer) Writable() bool { return b.Space == Device && !b.Const }

// ThreadgroupArgument is a threadgroup pointer argument.
type ThreadgroupArgument struct {
	Name    string
	Pos     Position
	Element string
	Index   int // the n of [[threadgroup(n)]], -1 without one
}

// Attribute is a thread-position argument.
type Attribute struct {
	Name      string // the variable
	Pos       Position
	Type      string // uint, uint2, uint3, ushort, ushort2 or ushort3
	Attribute string // for instance thread_position_in_grid
}

// FunctionConstant is a declaration with [[function_constant(n)]] of a kernel's header.
type FunctionConstant struct {
	Name  string
	Type  string
	Index int
	Pos   Position

	Line int // of the header
}

// Inputs returns the buffers that a launch must give, in the order of their slots.
func (k *Kernel) Inputs() []*Buffer {
	return k.sorted(func(b *Buffer) bool { return !b.Writable() && b.Implicit == "" })
}

// Outputs returns the buffers that a launch fills, in the order of their slots.
func (k *Kernel) Outputs() []*Buffer {
	return k.sorted((*Buffer).Writable)
}

// sorted returns the chosen buffers in the order of their slots.
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
